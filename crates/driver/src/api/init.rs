//! Initialization, Version Management.

use core::ffi::{c_int, c_uint};

use border::Out;

use crate::process;
use crate::{Error, Result};

/// Initializes the driver API. Any number of calls; each gives the first one's answer.
pub fn cuInit(Flags: c_uint) -> Result {
    // CUDA: the parameter must be 0.
    if Flags != 0 {
        return Err(Error::InvalidValue("Flags"));
    }
    process::initialize().map(|_| ())
}

/// The newest CUDA version the driver supports; needs no initialization.
pub fn cuDriverGetVersion(driverVersion: Out<'_, c_int>) -> Result {
    process::not_gone()?;
    driverVersion.write(c_int::try_from(config::get().driver_version).unwrap_or(c_int::MAX));
    Ok(())
}
