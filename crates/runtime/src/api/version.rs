//! Version management.

use core::ffi::c_int;

use border::Out;

use crate::{Error, Result, driver};

/// The version of CUDA that the driver supports. CUDA: 0 and success when there is no driver.
pub fn cudaDriverGetVersion(driverVersion: Out<'_, c_int>) -> Result {
    let mut version = 0;
    match driver::open().and_then(|driver| driver.cuDriverGetVersion(&mut version)) {
        Ok(()) | Err(Error::NoDriver(_)) => {
            driverVersion.write(version);
            Ok(())
        }
        Err(error) => Err(error),
    }
}

pub fn cudaRuntimeGetVersion_v11(runtimeVersion: Out<'_, c_int>) -> Result {
    runtimeVersion.write(11080);
    Ok(())
}

pub fn cudaRuntimeGetVersion_v12(runtimeVersion: Out<'_, c_int>) -> Result {
    runtimeVersion.write(12090);
    Ok(())
}

pub fn cudaRuntimeGetVersion_v13(runtimeVersion: Out<'_, c_int>) -> Result {
    runtimeVersion.write(13050);
    Ok(())
}
