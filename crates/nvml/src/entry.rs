//! The border of every export: no panic crosses it, every call has a span with its C name, nothing but a few names works
//! before `nvmlInit`, and what is not supported logs itself once.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use config::logging::is_news;

use crate::types::nvmlReturn_t;
use crate::{Error, Result, session};

/// Calls that the manual lets come before `nvmlInit`.
const BEFORE_INIT: [&str; 6] = [
    "nvmlInit",
    "nvmlInit_v2",
    "nvmlInitWithFlags",
    "nvmlSystemGetNVMLVersion",
    "nvmlSystemGetCudaDriverVersion",
    "nvmlSystemGetCudaDriverVersion_v2",
];

/// Runs one call's body and gives its answer in C's terms.
pub fn entry(name: &'static str, mut body: impl FnMut() -> Result) -> nvmlReturn_t {
    border(name, &mut body)
}

/// [`entry`], once for all bodies, of which there are hundreds.
fn border(name: &'static str, body: &mut dyn FnMut() -> Result) -> nvmlReturn_t {
    start();
    let _inside = config::call_span!("cudaway::nvml", "nvml", name);
    if !BEFORE_INIT.contains(&name) && !session::is_open() {
        return Error::Uninitialized.code();
    }
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => nvmlReturn_t::NVML_SUCCESS,
        Ok(Err(error)) => failed(name, error),
        Err(panic) => broken(name, panic),
    }
}

/// As [`entry`], for a body that gives the C value itself.
pub fn entry_value<T>(name: &'static str, otherwise: T, body: impl FnOnce() -> T) -> T {
    start();
    let _inside = config::call_span!("cudaway::nvml", "nvml", name);
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(otherwise)
}

#[cold]
fn failed(name: &'static str, error: Error) -> nvmlReturn_t {
    match error {
        // A monitor asks again every second.
        Error::NotSupported(what) if is_news(name, what) => {
            tracing::warn!(target: "cudaway::nvml", "{name} is not supported: {what}")
        }
        Error::NotSupported(_) => {}
        _ => tracing::info!(target: "cudaway::nvml", "{name}: {error}"),
    }
    error.code()
}

/// The answer of a body that panicked.
#[cold]
fn broken(name: &'static str, _panic: Box<dyn Any + Send>) -> nvmlReturn_t {
    tracing::error!(target: "cudaway::nvml", "{name}: internal error, answering NVML_ERROR_UNKNOWN");
    nvmlReturn_t::NVML_ERROR_UNKNOWN
}

/// The answer of a name that has no body.
#[cold]
pub fn missing(name: &'static str) -> nvmlReturn_t {
    entry(name, || {
        Err(Error::NotSupported("there is no such thing on CUDAway's devices, or it has no body yet"))
    })
}

/// Not part of the generic bodies above, which there are many of.
fn start() {
    config::start_logging!("cudaway::nvml");
}
