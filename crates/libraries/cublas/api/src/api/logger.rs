//! What the loggers of cuBLAS and cuBLASLt tell to whom. Source: cuBLAS manual, "cublasLoggerConfigure" and "cuBLASLt Logging".

use core::ffi::{CStr, c_char, c_int};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use border::Out;

use crate::log::{self, Target};
use crate::{Error, FILE, Result, cublasLogCallback, cublasLtLoggerCallback_t, require};

/// # Safety
/// A C string.
unsafe fn file(path: *const c_char) -> Result<Target> {
    // SAFETY: the caller's promise.
    let path = unsafe { CStr::from_ptr(path) };
    Target::file(Path::new(OsStr::from_bytes(path.to_bytes())))
        .map_err(|_| Error::InvalidValue("the log file cannot be written"))
}

/// # Safety
/// `logFileName` is NULL or a C string.
pub unsafe fn cublasLoggerConfigure(
    logIsOn: c_int,
    logToStdOut: c_int,
    logToStdErr: c_int,
    logFileName: *const c_char,
) -> Result {
    let mut targets = Vec::new();
    if logToStdOut != 0 {
        targets.push(Target::Stdout);
    }
    if logToStdErr != 0 {
        targets.push(Target::Stderr);
    }
    if !logFileName.is_null() {
        // SAFETY: the caller's promise.
        targets.push(unsafe { file(logFileName)? });
    }
    log::change(|blas, _| {
        blas.is_on = logIsOn != 0;
        blas.targets = targets;
    });
    Ok(())
}

/// The manual: with a callback the logger is on.
pub fn cublasSetLoggerCallback(userCallback: cublasLogCallback) -> Result {
    log::change(|blas, _| {
        blas.callback = userCallback;
        blas.is_on |= userCallback.is_some();
    });
    Ok(())
}

pub fn cublasGetLoggerCallback(userCallback: Out<'_, cublasLogCallback>) -> Result {
    userCallback.write(log::change(|blas, _| blas.callback));
    Ok(())
}

pub fn cublasLtLoggerSetCallback(callback: cublasLtLoggerCallback_t) -> Result {
    log::change(|_, lt| lt.callback = callback);
    Ok(())
}

/// NULL takes the file away.
pub fn cublasLtLoggerSetFile(file: *mut FILE) -> Result {
    log::change(|_, lt| {
        lt.target = if file.is_null() { Target::Nowhere } else { Target::Stream(file.cast()) }
    });
    Ok(())
}

/// # Safety
/// `logFile` is NULL or a C string.
pub unsafe fn cublasLtLoggerOpenFile(logFile: *const c_char) -> Result {
    require(!logFile.is_null(), "logFile is NULL")?;
    // SAFETY: the caller's promise.
    let target = unsafe { file(logFile)? };
    log::change(|_, lt| lt.target = target);
    Ok(())
}

pub fn cublasLtLoggerSetLevel(level: c_int) -> Result {
    require((0..=kit::log::LAST_LEVEL).contains(&level), "there is no such level")?;
    log::change(|_, lt| lt.mask = kit::log::up_to(level));
    Ok(())
}

pub fn cublasLtLoggerSetMask(mask: c_int) -> Result {
    log::change(|_, lt| lt.mask = mask);
    Ok(())
}

/// For the rest of the process, whatever is set later.
pub fn cublasLtLoggerForceDisable() -> Result {
    log::change(|_, lt| lt.is_disabled = true);
    Ok(())
}

/// What the reference BLAS's XERBLA says; the program goes on.
///
/// # Safety
/// `srName` is NULL or a C string.
pub unsafe fn cublasXerbla(srName: *const c_char, info: c_int) {
    let name = match srName.is_null() {
        true => c"",
        // SAFETY: the caller's promise.
        false => unsafe { CStr::from_ptr(srName) },
    };
    log::to_stderr(&format!(
        " ** On entry to {} parameter number {info:2} had an illegal value\n",
        name.to_string_lossy()
    ));
}
