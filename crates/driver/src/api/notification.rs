//! Notifications of a device: the one kind there is says that a process uses more memory than its budget, which only Windows sets.
//!
//! So a callback can be registered here and is never called.

use core::ffi::c_void;

use border::Out;
use cuda_abi::{CUasyncCallback, CUasyncCallbackHandle, CUdevice};

use crate::handle::Registry;
use crate::object::Device;
use crate::{Error, Result};

/// The device that each callback was registered for.
static CALLBACKS: Registry<CUdevice, CUasyncCallbackHandle> = Registry::new(18);

pub fn cuDeviceRegisterAsyncNotification(
    device: CUdevice,
    callbackFunc: CUasyncCallback,
    _userData: *mut c_void,
    callback: Out<'_, CUasyncCallbackHandle>,
) -> Result {
    let device = Device::get(device)?;
    if callbackFunc.is_none() {
        return Err(Error::InvalidValue("callbackFunc"));
    }
    callback.write(CALLBACKS.insert(device.ordinal).ok_or(Error::OutOfMemory)?);
    Ok(())
}

pub fn cuDeviceUnregisterAsyncNotification(device: CUdevice, callback: CUasyncCallbackHandle) -> Result {
    let device = Device::get(device)?;
    if CALLBACKS.get(callback) != Some(device.ordinal) {
        return Err(Error::InvalidValue("callback"));
    }
    CALLBACKS.remove(callback).map(|_| ()).ok_or(Error::InvalidValue("callback"))
}
