//! Error Log Management: what calls failed, and why.

use core::ffi::{CStr, c_char, c_uint, c_void};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use border::{OptOut, Out};
use cuda_abi::{CUlogIterator, CUlogsCallback, CUlogsCallbackHandle};

use crate::object::log;
use crate::{Error, Result};

/// Calls `callbackFunc` for every call that fails from now on, in the thread that made it.
pub fn cuLogsRegisterCallback(
    callbackFunc: CUlogsCallback,
    userData: *mut c_void,
    callback_out: OptOut<'_, CUlogsCallbackHandle>,
) -> Result {
    if callbackFunc.is_none() {
        return Err(Error::InvalidValue("callbackFunc"));
    }
    callback_out.write(log::register(callbackFunc, userData)?);
    Ok(())
}

pub fn cuLogsUnregisterCallback(callback: CUlogsCallbackHandle) -> Result {
    log::unregister(callback)
}

/// CUDA: the flags are for later.
fn no_flags(flags: c_uint) -> Result {
    if flags == 0 { Ok(()) } else { Err(Error::InvalidValue("flags")) }
}

/// CUDA: the flags are for later as well, but any are taken (measured on driver 580).
pub fn cuLogsCurrent(iterator_out: Out<'_, CUlogIterator>, _flags: c_uint) -> Result {
    iterator_out.write(log::next());
    Ok(())
}

/// Where an iterator stands; without one everything is read.
///
/// # Safety
/// `iterator` is NULL, or may be read.
unsafe fn place(iterator: *mut CUlogIterator) -> CUlogIterator {
    // SAFETY: the caller's promise: NULL or an iterator.
    unsafe { iterator.as_ref() }.copied().unwrap_or(0)
}

/// # Safety
/// `iterator` is NULL, or may be written.
unsafe fn advance(iterator: *mut CUlogIterator, next: CUlogIterator) {
    // SAFETY: the caller's promise: NULL or an iterator.
    if let Some(iterator) = unsafe { iterator.as_mut() } {
        *iterator = next;
    }
}

/// # Safety
/// `iterator` is NULL, or may be read and written; `pathToFile` is NULL or a C string.
pub unsafe fn cuLogsDumpToFile(
    iterator: *mut CUlogIterator,
    pathToFile: *const c_char,
    flags: c_uint,
) -> Result {
    no_flags(flags)?;
    if pathToFile.is_null() {
        return Err(Error::InvalidValue("pathToFile"));
    }
    // SAFETY: the caller's promise: a C string.
    let path = OsStr::from_bytes(unsafe { CStr::from_ptr(pathToFile) }.to_bytes());
    // SAFETY: the caller's promise: NULL or an iterator.
    let (text, _, next) = log::read(unsafe { place(iterator) }, usize::MAX);
    std::fs::write(path, text).map_err(|_| Error::InvalidValue("pathToFile: cannot be written"))?;
    // SAFETY: the caller's promise: NULL or an iterator.
    unsafe { advance(iterator, next) };
    Ok(())
}

/// CUDA: no text is cut within a message; a buffer for none of them is an error. The terminator comes on top.
///
/// # Safety
/// `iterator` and `size` are NULL, or may be read and written; `buffer` is NULL, or has `size` bytes that may be written.
pub unsafe fn cuLogsDumpToMemory(
    iterator: *mut CUlogIterator,
    buffer: *mut c_char,
    size: *mut usize,
    flags: c_uint,
) -> Result {
    no_flags(flags)?;
    // SAFETY: the caller's promise: NULL or a size.
    let Some(size) = (unsafe { size.as_mut() }) else { return Err(Error::InvalidValue("size")) };
    if buffer.is_null() || *size == 0 {
        return Err(Error::InvalidValue("buffer or size"));
    }
    let room = *size;
    // SAFETY: the caller's promise: NULL or an iterator.
    let (text, is_any, next) = log::read(unsafe { place(iterator) }, room - 1);
    // SAFETY: the caller's promise: `room` writable bytes, at least one.
    unsafe { log::write_text(&text, buffer, room) };
    *size = text.len();
    if is_any && text.is_empty() {
        return Err(Error::InvalidValue("size: no message fits"));
    }
    // SAFETY: the caller's promise: NULL or an iterator.
    unsafe { advance(iterator, next) };
    Ok(())
}
