//! The border of every export.

use crate::handle::{self, Handle};
use crate::{Error, Result, cublasHandle_t, cublasStatus_t};

kit::border! {
    target: "cudaway::blas",
    span: "blas",
    variable: blas,
    status: cublasStatus_t,
    success: cublasStatus_t::CUBLAS_STATUS_SUCCESS,
    error: Error,
    failed: crate::log::failed,
}

/// As [`entry`], for a routine of a handle.
pub fn on_handle(
    name: &'static str,
    handle: cublasHandle_t,
    mut body: impl FnMut(&Handle) -> Result,
) -> cublasStatus_t {
    routine(name, handle, &mut body)
}

/// [`on_handle`], once for all routines.
fn routine(
    name: &'static str,
    handle: cublasHandle_t,
    body: &mut dyn FnMut(&Handle) -> Result,
) -> cublasStatus_t {
    entry(name, || body(&*handle::get(handle)?))
}
