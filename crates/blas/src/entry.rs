//! The border of every export: no panic crosses it, every call has a span with its C name, and what is not supported logs
//! itself once.

use std::panic::{AssertUnwindSafe, catch_unwind};

use config::logging::is_news;

use crate::handle::{self, Handle};
use crate::{Error, Result, cublasHandle_t, cublasStatus_t};

/// Runs one call's body and gives its answer in C's terms.
pub fn entry(name: &'static str, body: impl FnOnce() -> Result) -> cublasStatus_t {
    start();
    let span = tracing::trace_span!(target: "cudaway::blas", "blas", call = name);
    let _inside = span.enter();
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => cublasStatus_t::CUBLAS_STATUS_SUCCESS,
        Ok(Err(error)) => failed(name, error),
        Err(_) => failed(name, Error::Internal(name)),
    }
}

/// As [`entry`], for a routine of a handle.
pub fn on_handle(
    name: &'static str,
    handle: cublasHandle_t,
    body: impl FnOnce(&Handle) -> Result,
) -> cublasStatus_t {
    entry(name, || body(&*handle::get(handle)?))
}

/// As [`entry`], for a body that gives the C value itself.
pub fn entry_value<T>(name: &'static str, otherwise: T, body: impl FnOnce() -> T) -> T {
    start();
    let span = tracing::trace_span!(target: "cudaway::blas", "blas", call = name);
    let _inside = span.enter();
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(otherwise)
}

#[cold]
fn failed(name: &'static str, error: Error) -> cublasStatus_t {
    crate::log::failed(name, &error);
    match error {
        Error::NotSupported(what) if is_news(name, what) => {
            tracing::warn!(target: "cudaway::blas", "{name} is not supported: {what}")
        }
        Error::Internal(_) => tracing::error!(target: "cudaway::blas", "{name}: internal error"),
        _ => tracing::info!(target: "cudaway::blas", "{name}: {error}"),
    }
    error.code()
}

/// The answer of a name that has no body.
#[cold]
pub fn missing(name: &'static str) -> cublasStatus_t {
    entry(name, || Err(Error::NotSupported("it has no body yet")))
}

/// Not part of the generic bodies above, which there are many of.
fn start() {
    config::start_logging!("cudaway::blas");
}
