//! What cuSPARSE's logger tells to whom. Source: cuSPARSE manual, "cuSPARSE Logging".

use core::ffi::{CStr, c_char, c_int, c_void};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::error::require;
use crate::log::{self, Target};
use crate::types::*;
use crate::{Error, Result};

pub fn cusparseLoggerSetCallback(callback: cusparseLoggerCallback_t) -> Result {
    log::change(|logger| logger.callback = callback);
    Ok(())
}

/// NULL takes the file away.
///
/// # Safety
/// The arrays are there as the manual says of them: those of the device's until the stream has done the work, those of the host's while
/// the call lasts.
pub unsafe fn cusparseLoggerSetFile(file: *mut c_void) -> Result {
    let target = if file.is_null() { Target::Nowhere } else { Target::Stream(file) };
    log::change(|logger| logger.target = target);
    Ok(())
}

/// # Safety
/// `logFile` is NULL or a C string.
pub unsafe fn cusparseLoggerOpenFile(logFile: *const c_char) -> Result {
    require(!logFile.is_null(), "logFile is NULL")?;
    // SAFETY: the caller's promise.
    let path = unsafe { CStr::from_ptr(logFile) };
    let target = Target::file(Path::new(OsStr::from_bytes(path.to_bytes())))
        .map_err(|_| Error::InvalidValue("the log file cannot be written"))?;
    log::change(|logger| logger.target = target);
    Ok(())
}

pub fn cusparseLoggerSetLevel(level: c_int) -> Result {
    require((0..=kit::log::LAST_LEVEL).contains(&level), "there is no such level")?;
    log::change(|logger| logger.mask = kit::log::up_to(level));
    Ok(())
}

pub fn cusparseLoggerSetMask(mask: c_int) -> Result {
    log::change(|logger| logger.mask = mask);
    Ok(())
}

/// For the rest of the process, whatever is set later.
pub fn cusparseLoggerForceDisable() -> Result {
    log::change(|logger| logger.is_disabled = true);
    Ok(())
}
