//! Handles and names of statuses. Source: cuBLAS manual, "cuBLAS Helper Function Reference".

use core::ffi::{CStr, c_char};

use border::Out;

use crate::handle::{self, Handle};
use crate::{Result, cublasHandle_t, cublasStatus_t};

pub fn cublasCreate_v2(handle: Out<'_, cublasHandle_t>) -> Result {
    handle.write(handle::add(Handle::new()?));
    Ok(())
}

/// Waits for the device, as the manual says. The handle's stream may be gone by then.
pub fn cublasDestroy_v2(handle: cublasHandle_t) -> Result {
    handle::remove(handle)?.synchronize();
    Ok(())
}

pub fn cublasGetStatusName(status: cublasStatus_t) -> *const c_char {
    texts(status).0.as_ptr()
}

pub fn cublasGetStatusString(status: cublasStatus_t) -> *const c_char {
    texts(status).1.as_ptr()
}

/// The words of NVIDIA's library (13.1), which programs print.
fn texts(status: cublasStatus_t) -> (&'static CStr, &'static CStr) {
    match status {
        cublasStatus_t::CUBLAS_STATUS_SUCCESS => (c"CUBLAS_STATUS_SUCCESS", c"success"),
        cublasStatus_t::CUBLAS_STATUS_NOT_INITIALIZED => {
            (c"CUBLAS_STATUS_NOT_INITIALIZED", c"the library was not initialized")
        }
        cublasStatus_t::CUBLAS_STATUS_ALLOC_FAILED => {
            (c"CUBLAS_STATUS_ALLOC_FAILED", c"the resource allocation failed")
        }
        cublasStatus_t::CUBLAS_STATUS_INVALID_VALUE => {
            (c"CUBLAS_STATUS_INVALID_VALUE", c"an unsupported value or parameter was passed to the function")
        }
        cublasStatus_t::CUBLAS_STATUS_ARCH_MISMATCH => (
            c"CUBLAS_STATUS_ARCH_MISMATCH",
            c"the function requires an architectural feature absent from the device",
        ),
        cublasStatus_t::CUBLAS_STATUS_MAPPING_ERROR => {
            (c"CUBLAS_STATUS_MAPPING_ERROR", c"an access to GPU memory space failed")
        }
        cublasStatus_t::CUBLAS_STATUS_EXECUTION_FAILED => {
            (c"CUBLAS_STATUS_EXECUTION_FAILED", c"the function failed to launch on the GPU")
        }
        cublasStatus_t::CUBLAS_STATUS_INTERNAL_ERROR => {
            (c"CUBLAS_STATUS_INTERNAL_ERROR", c"an internal operation failed")
        }
        cublasStatus_t::CUBLAS_STATUS_NOT_SUPPORTED => {
            (c"CUBLAS_STATUS_NOT_SUPPORTED", c"the requested functionality is not supported")
        }
        cublasStatus_t::CUBLAS_STATUS_LICENSE_ERROR => {
            (c"CUBLAS_STATUS_LICENSE_ERROR", c"the license check failed")
        }
        _ => (c"unrecognized status", c"unrecognized status"),
    }
}
