//! Generators, and what the library says of itself. Source: cuRAND manual, "Host API"; the order of the checks is that of
//! NVIDIA's library, whose host generators answer without a GPU.

use core::ffi::c_int;

use border::Out;

use crate::generator::{self, Generator, kind};
use crate::release::RELEASES;
use crate::types::*;
use crate::{Error, Result};

pub fn curandCreateGenerator(generator: Out<'_, curandGenerator_t>, rng_type: curandRngType_t) -> Result {
    let made = Generator::on_device(kind(rng_type)?)?;
    generator.write(generator::add(made));
    Ok(())
}

pub fn curandCreateGeneratorHost(generator: Out<'_, curandGenerator_t>, rng_type: curandRngType_t) -> Result {
    let made = Generator::on_host(kind(rng_type)?);
    generator.write(generator::add(made));
    Ok(())
}

pub fn curandDestroyGenerator(generator: curandGenerator_t) -> Result {
    generator::remove(generator)
}

fn release() -> [i32; 3] {
    let major = kit::release::major();
    RELEASES.iter().find(|(cuda, _)| *cuda == major).unwrap_or(&RELEASES[0]).1
}

/// Follows the CUDA runtime of the process: `libcurand.so.10` is that of CUDA 11, 12 and 13.
pub fn curandGetVersion(version: Out<'_, c_int>) -> Result {
    let [major, minor, patch] = release();
    version.write(1000 * major + 100 * minor + patch);
    Ok(())
}

pub fn curandGetProperty(property: libraryPropertyType, value: Out<'_, c_int>) -> Result {
    let [major, minor, patch] = release();
    value.write(match property {
        libraryPropertyType::MAJOR_VERSION => major,
        libraryPropertyType::MINOR_VERSION => minor,
        libraryPropertyType::PATCH_LEVEL => patch,
        _ => return Err(Error::OutOfRange("there is no such property")),
    });
    Ok(())
}
