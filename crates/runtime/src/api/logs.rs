//! Error Log Management: the driver's log.

use core::ffi::{c_char, c_uint, c_void};
use std::ptr;

use border::{OptOut, Out};
use cuda_abi::CUlogsCallback;
use cuda_abi::runtime::{cudaLogIterator, cudaLogsCallback_t, cudaLogsCallbackHandle};

use crate::{Result, driver};

pub fn cudaLogsRegisterCallback(
    callbackFunc: cudaLogsCallback_t,
    userData: *mut c_void,
    callback_out: OptOut<'_, cudaLogsCallbackHandle>,
) -> Result {
    // SAFETY: the same function type: the level is the driver's number under another name.
    let function = unsafe { core::mem::transmute::<cudaLogsCallback_t, CUlogsCallback>(callbackFunc) };
    let mut handle = ptr::null_mut();
    driver::get()?.cuLogsRegisterCallback(function, userData, &mut handle)?;
    callback_out.write(handle.cast());
    Ok(())
}

pub fn cudaLogsUnregisterCallback(callback: cudaLogsCallbackHandle) -> Result {
    driver::get()?.cuLogsUnregisterCallback(callback.cast())
}

pub fn cudaLogsCurrent(iterator_out: Out<'_, cudaLogIterator>, flags: c_uint) -> Result {
    driver::get()?.cuLogsCurrent(iterator_out.as_ptr(), flags)
}

pub fn cudaLogsDumpToFile(
    iterator: *mut cudaLogIterator,
    pathToFile: *const c_char,
    flags: c_uint,
) -> Result {
    driver::get()?.cuLogsDumpToFile(iterator, pathToFile, flags)
}

pub fn cudaLogsDumpToMemory(
    iterator: *mut cudaLogIterator,
    buffer: *mut c_char,
    size: *mut usize,
    flags: c_uint,
) -> Result {
    driver::get()?.cuLogsDumpToMemory(iterator, buffer, size, flags)
}
