//! What the library says of itself. The order of checks is that of NVIDIA's library, which answers without a GPU.

use core::ffi::c_int;

use border::{OptOut, Out};

use crate::release::RELEASES;
use crate::types::*;
use crate::{Error, Result};

fn release() -> [i32; 3] {
    let major = kit::release::major();
    RELEASES.iter().find(|(cuda, _)| *cuda == major).unwrap_or(&RELEASES[0]).1
}

/// Follows the CUDA runtime of the process. NULL is let pass.
pub fn cufftGetVersion(version: OptOut<'_, c_int>) -> Result {
    let [major, minor, patch] = release();
    version.write(1000 * major + 100 * minor + patch);
    Ok(())
}

pub fn cufftGetProperty(type_: libraryPropertyType, value: Out<'_, c_int>) -> Result {
    let [major, minor, patch] = release();
    value.write(match type_ {
        libraryPropertyType::MAJOR_VERSION => major,
        libraryPropertyType::MINOR_VERSION => minor,
        libraryPropertyType::PATCH_LEVEL => patch,
        _ => return Err(Error::Type("there is no such property")),
    });
    Ok(())
}
