//! The driver's border (`crates/border`): what settles behind a call, and who hears that one failed.

use std::sync::{Once, OnceLock};

use border::{Library, NO_BODY, Sort, Voice};
use cuda_abi::CUresult;

use crate::object::gfx::services;
use crate::object::stream::with_per_thread_default;
use crate::object::{Context, log};
use crate::{Error, Result};

struct Driver;

impl Library for Driver {
    type Status = CUresult;
    type Error = Error;

    const VOICE: Voice = border::voice!("cudaway::driver", "cu");
    const SUCCESS: CUresult = CUresult::CUDA_SUCCESS;

    #[inline]
    fn start(&self) {
        start();
    }

    fn sort<'a>(&self, error: &'a Error) -> Sort<'a> {
        match error {
            Error::NotReady => Sort::Answer,
            Error::NotSupported(what) => Sort::Unsupported { news: what, why: what },
            _ => Sort::Failure,
        }
    }

    fn failed(&self, name: &'static str, &error: &Error) -> CUresult {
        if error != Error::NotReady {
            tell_news();
            Context::note(error);
            log::note(name, error);
        }
        error.result()
    }

    fn broken(&self, _name: &'static str) -> CUresult {
        CUresult::CUDA_ERROR_UNKNOWN
    }
}

/// Runs one call's body and gives its answer in C's terms.
#[inline]
pub fn entry(name: &'static str, mut body: impl FnMut() -> Result) -> CUresult {
    guarded(name, &mut body)
}

/// [`entry`], once for all bodies, of which there are hundreds.
fn guarded(name: &'static str, body: &mut dyn FnMut() -> Result) -> CUresult {
    // What kernels said is shown by the call after which it can be; their fault is that call's answer.
    border::call(&Driver, name, || body().and_then(|()| services::settle()))
}

/// As [`entry`], for the `_ptsz` and `_ptds` spellings: a null stream is the calling thread's own.
#[inline]
pub fn entry_per_thread(name: &'static str, mut body: impl FnMut() -> Result) -> CUresult {
    entry(name, || with_per_thread_default(&mut body))
}

/// The answer of a name that has no body.
#[cold]
pub fn missing(name: &'static str) -> CUresult {
    entry(name, || Err(Error::NotSupported(NO_BODY)))
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

/// What the first call of a process does before all else: logging begins.
#[inline]
pub fn start() {
    static START: Once = Once::new();
    START.call_once(|| {
        (Driver::VOICE.start)();
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
