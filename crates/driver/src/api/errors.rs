//! Error Handling. These two work at any time, also after teardown.

use core::ffi::c_char;

use border::Out;
use cuda_abi::CUresult;

use crate::{Error, Result, describe};

/// The C name of a result.
pub fn cuGetErrorName(error: CUresult, pStr: Out<'_, *const c_char>) -> Result {
    // CUDA: an unknown number is an invalid value, and the string becomes NULL.
    let Some((name, _)) = describe(error) else {
        pStr.write(core::ptr::null());
        return Err(Error::InvalidValue("error"));
    };
    pStr.write(name.as_ptr());
    Ok(())
}

/// The description of a result.
pub fn cuGetErrorString(error: CUresult, pStr: Out<'_, *const c_char>) -> Result {
    let Some((_, text)) = describe(error) else {
        pStr.write(core::ptr::null());
        return Err(Error::InvalidValue("error"));
    };
    pStr.write(text.as_ptr());
    Ok(())
}
