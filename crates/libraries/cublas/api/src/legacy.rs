//! The first API of cuBLAS (`cublas.h`): one handle for the process, letters for options, results by value, a last error.
//! Each of its routines calls the later API's of the same name with that handle.

use core::ffi::c_char;

use parking_lot::Mutex;

use crate::{
    Error, Result, cublasDiagType_t, cublasFillMode_t, cublasHandle_t, cublasOperation_t, cublasSideMode_t,
    cublasStatus_t,
};

struct Library {
    /// An address; 0 before `cublasInit` and after `cublasShutdown`.
    handle: usize,
    /// What the last routine answered.
    last: cublasStatus_t,
}

static LIBRARY: Mutex<Library> =
    Mutex::new(Library { handle: 0, last: cublasStatus_t::CUBLAS_STATUS_SUCCESS });

/// The process's handle, and the one that takes its place.
pub fn replace(handle: cublasHandle_t) -> cublasHandle_t {
    let old = core::mem::replace(&mut LIBRARY.lock().handle, handle.expose_provenance());
    std::ptr::with_exposed_provenance_mut(old)
}

pub fn handle() -> Result<cublasHandle_t> {
    match LIBRARY.lock().handle {
        0 => Err(Error::NotInitialized),
        handle => Ok(std::ptr::with_exposed_provenance_mut(handle)),
    }
}

/// The last routine's status, which is told once.
pub fn take_last() -> cublasStatus_t {
    core::mem::replace(&mut LIBRARY.lock().last, cublasStatus_t::CUBLAS_STATUS_SUCCESS)
}

/// Calls the later API's routine and keeps what it answers: a good call takes the place of an error, as in NVIDIA's library (13.1).
pub fn call(routine: impl FnOnce(cublasHandle_t) -> cublasStatus_t) {
    keep(match handle() {
        Ok(handle) => routine(handle),
        Err(error) => error.code(),
    });
}

fn keep(status: cublasStatus_t) {
    LIBRARY.lock().last = status;
}

/// As [`call`], of a routine with a result; 0 when it fails.
pub fn value<T: Default>(routine: impl FnOnce(cublasHandle_t, *mut T) -> cublasStatus_t) -> T {
    let mut value = T::default();
    call(|handle| routine(handle, &mut value));
    value
}

/// What no option is: the routine answers that its value is invalid.
const NONE: u32 = u32::MAX;

pub fn operation(letter: c_char) -> cublasOperation_t {
    match letter as u8 {
        b'N' | b'n' => cublasOperation_t::CUBLAS_OP_N,
        b'T' | b't' => cublasOperation_t::CUBLAS_OP_T,
        b'C' | b'c' => cublasOperation_t::CUBLAS_OP_C,
        _ => cublasOperation_t(NONE),
    }
}

pub fn fill_mode(letter: c_char) -> cublasFillMode_t {
    match letter as u8 {
        b'L' | b'l' => cublasFillMode_t::CUBLAS_FILL_MODE_LOWER,
        b'U' | b'u' => cublasFillMode_t::CUBLAS_FILL_MODE_UPPER,
        _ => cublasFillMode_t(NONE),
    }
}

pub fn diagonal(letter: c_char) -> cublasDiagType_t {
    match letter as u8 {
        b'N' | b'n' => cublasDiagType_t::CUBLAS_DIAG_NON_UNIT,
        b'U' | b'u' => cublasDiagType_t::CUBLAS_DIAG_UNIT,
        _ => cublasDiagType_t(NONE),
    }
}

pub fn side(letter: c_char) -> cublasSideMode_t {
    match letter as u8 {
        b'L' | b'l' => cublasSideMode_t::CUBLAS_SIDE_LEFT,
        b'R' | b'r' => cublasSideMode_t::CUBLAS_SIDE_RIGHT,
        _ => cublasSideMode_t(NONE),
    }
}
