//! The border of every export: no panic crosses it, every call has a span with its C name, and a name without a
//! body answers `CUDA_ERROR_NOT_SUPPORTED` and logs itself once.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Once, OnceLock};

use config::logging::is_news;
use cuda_abi::CUresult;

use crate::object::gfx::services;
use crate::object::stream::with_per_thread_default;
use crate::object::{Context, log};
use crate::{Error, Result};

/// Runs one call's body and gives its answer in C's terms.
#[inline]
pub fn entry(name: &'static str, mut body: impl FnMut() -> Result) -> CUresult {
    border(name, &mut body)
}

/// [`entry`], once for all bodies, of which there are hundreds.
fn border(name: &'static str, body: &mut dyn FnMut() -> Result) -> CUresult {
    start();
    let _inside = config::call_span!("cudaway::driver", "cu", name);
    // What kernels said is shown by the call after which it can be; their fault is that call's answer.
    match catch_unwind(AssertUnwindSafe(|| body().and_then(|()| services::settle()))) {
        Ok(Ok(())) => CUresult::CUDA_SUCCESS,
        // An answer, not a failure.
        Ok(Err(Error::NotReady)) => Error::NotReady.result(),
        Ok(Err(error)) => failed(name, error),
        Err(panic) => broken(name, panic),
    }
}

/// As [`entry`], for the `_ptsz` and `_ptds` spellings: a null stream is the calling thread's own.
#[inline]
pub fn entry_per_thread(name: &'static str, mut body: impl FnMut() -> Result) -> CUresult {
    entry(name, || with_per_thread_default(&mut body))
}

/// What `on_news` was given.
static NEWS: OnceLock<fn()> = OnceLock::new();

/// Gives the function that logs what happened outside any call (taken-over runtimes). It is called at the process's first
/// call and at each failure. May itself be called before `main`.
pub fn on_news(tell: fn()) {
    _ = NEWS.set(tell);
}

fn tell_news() {
    if let Some(tell) = NEWS.get() {
        tell();
    }
}

#[cold]
fn failed(name: &'static str, error: Error) -> CUresult {
    tell_news();
    Context::note(error);
    log::note(name, error);
    match error {
        Error::NotSupported(what) if is_news(name, what) => {
            tracing::warn!(target: "cudaway::driver", "{name} is not supported: {what}")
        }
        _ => tracing::info!(target: "cudaway::driver", "{name}: {error}"),
    }
    error.result()
}

/// The answer of a body that panicked.
#[cold]
fn broken(name: &'static str, _panic: Box<dyn Any + Send>) -> CUresult {
    tracing::error!(target: "cudaway::driver", "{name}: internal error, answering CUDA_ERROR_UNKNOWN");
    CUresult::CUDA_ERROR_UNKNOWN
}

/// The answer of a name that has no body.
#[cold]
pub fn missing(name: &'static str) -> CUresult {
    const WHY: &str = "it has no body yet";
    start();
    log::note(name, Error::NotSupported(WHY));
    if is_news(name, WHY) {
        tracing::warn!(target: "cudaway::driver", "{name} is not supported: {WHY}");
    }
    CUresult::CUDA_ERROR_NOT_SUPPORTED
}

/// What the first call of a process does before all else: logging begins.
#[inline]
pub fn start() {
    static START: Once = Once::new();
    START.call_once(|| {
        config::start_logging!("cudaway::driver");
        tell_news();
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_unknown() {
        assert_eq!(entry("cuTest", || panic!("on purpose")), CUresult::CUDA_ERROR_UNKNOWN);
    }

    #[test]
    fn an_error_becomes_its_code() {
        assert_eq!(entry("cuTest", || Err(Error::InvalidValue("x"))), CUresult::CUDA_ERROR_INVALID_VALUE);
        assert_eq!(entry("cuTest", || Ok(())), CUresult::CUDA_SUCCESS);
        assert_eq!(missing("cuTest"), CUresult::CUDA_ERROR_NOT_SUPPORTED);
    }
}
