//! The border of every `cuda*` call: no panic crosses it, a failure becomes the thread's last error.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use config::logging::is_news;
use cuda_abi::runtime::cudaError_t;

use crate::last_error::set_last_error;
use crate::{Error, Result};

thread_local! {
    static PER_THREAD: Cell<bool> = const { Cell::new(false) };
}

/// Runs one call's body and gives its answer in C's terms.
pub fn entry(name: &'static str, mut body: impl FnMut() -> Result) -> cudaError_t {
    border(name, Error::code, &mut body)
}

/// The same for a `_ptsz` or `_ptds` name: in the body, stream 0 is the calling thread's own default stream.
pub fn entry_per_thread(name: &'static str, mut body: impl FnMut() -> Result) -> cudaError_t {
    per_thread(name, Error::code, &mut body)
}

/// The border of CUDA 13's calls, some of whose failures have other numbers.
pub mod v13 {
    use super::*;

    pub fn entry(name: &'static str, mut body: impl FnMut() -> Result) -> cudaError_t {
        border(name, Error::code_of_13, &mut body)
    }

    pub fn entry_per_thread(name: &'static str, mut body: impl FnMut() -> Result) -> cudaError_t {
        per_thread(name, Error::code_of_13, &mut body)
    }
}

type Body<'a> = &'a mut dyn FnMut() -> Result;

/// Once for all bodies, of which there are thousands.
fn border(name: &'static str, code: fn(Error) -> cudaError_t, body: Body<'_>) -> cudaError_t {
    start();
    let _inside = config::call_span!("cudaway::runtime", "cuda", name);
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => cudaError_t::cudaSuccess,
        Ok(Err(error)) => failed(name, error, code(error)),
        Err(panic) => broken(name, panic),
    }
}

fn per_thread(name: &'static str, code: fn(Error) -> cudaError_t, body: Body<'_>) -> cudaError_t {
    let before = PER_THREAD.replace(true);
    let code = border(name, code, body);
    PER_THREAD.set(before);
    code
}

/// A call that answers with something else than a status; `nothing` is the answer when its body breaks.
pub fn entry_value<T>(name: &'static str, nothing: T, body: impl FnOnce() -> T) -> T {
    start();
    let _inside = config::call_span!("cudaway::runtime", "cuda", name);
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| {
        tracing::error!(target: "cudaway::runtime", "{name}: internal error");
        nothing
    })
}

/// The answer of a name that has no body.
#[cold]
pub fn missing(name: &'static str) -> cudaError_t {
    const WHY: &str = "it has no body yet";
    start();
    if is_news(name, WHY) {
        tracing::warn!(target: "cudaway::runtime", "{name} is not supported: {WHY}");
    }
    set_last_error(cudaError_t::cudaErrorNotSupported);
    cudaError_t::cudaErrorNotSupported
}

#[cold]
fn failed(name: &'static str, error: Error, code: cudaError_t) -> cudaError_t {
    match error {
        // An answer, not a failure.
        _ if code == cudaError_t::cudaErrorNotReady => {}
        Error::NotSupported(what) if is_news(name, what) => {
            tracing::warn!(target: "cudaway::runtime", "{name} is not supported: {what}")
        }
        Error::NewerDriver(what) if is_news(name, what) => {
            tracing::warn!(target: "cudaway::runtime", "{name} is not supported: {error}")
        }
        _ => tracing::info!(target: "cudaway::runtime", "{name}: {error}"),
    }
    set_last_error(code);
    code
}

/// The answer of a body that panicked.
#[cold]
fn broken(name: &'static str, _panic: Box<dyn Any + Send>) -> cudaError_t {
    tracing::error!(target: "cudaway::runtime", "{name}: internal error, answering cudaErrorUnknown");
    set_last_error(cudaError_t::cudaErrorUnknown);
    cudaError_t::cudaErrorUnknown
}

/// Whether the call in progress was made by a per-thread spelling.
pub fn is_per_thread() -> bool {
    PER_THREAD.get()
}

/// Not part of the generic bodies above, which there are many of.
fn start() {
    config::start_logging!("cudaway::runtime");
}
