//! The runtime's border (`crates/border`): a failure becomes the thread's last error, in the numbers of the major that is called.

use std::cell::Cell;

use border::{Library, NO_BODY, Sort, Voice};
use cuda_abi::runtime::cudaError_t;

use crate::last_error::set_last_error;
use crate::{Error, Result};

/// What number a failure has.
struct Runtime(fn(Error) -> cudaError_t);

impl Library for Runtime {
    type Status = cudaError_t;
    type Error = Error;

    const VOICE: Voice = border::voice!("cudaway::runtime", "cuda");
    const SUCCESS: cudaError_t = cudaError_t::cudaSuccess;

    fn sort<'a>(&self, error: &'a Error) -> Sort<'a> {
        match error {
            _ if self.0(*error) == cudaError_t::cudaErrorNotReady => Sort::Answer,
            Error::NotSupported(what) => Sort::Unsupported { news: what, why: what },
            Error::NewerDriver(what) => Sort::Unsupported { news: what, why: error },
            _ => Sort::Failure,
        }
    }

    fn failed(&self, _name: &'static str, &error: &Error) -> cudaError_t {
        let code = self.0(error);
        set_last_error(code);
        code
    }

    fn broken(&self, _name: &'static str) -> cudaError_t {
        set_last_error(cudaError_t::cudaErrorUnknown);
        cudaError_t::cudaErrorUnknown
    }
}

thread_local! {
    static PER_THREAD: Cell<bool> = const { Cell::new(false) };
}

/// Runs one call's body and gives its answer in C's terms.
pub fn entry(name: &'static str, mut body: impl FnMut() -> Result) -> cudaError_t {
    guarded(name, Error::code, &mut body)
}

/// The same for a `_ptsz` or `_ptds` name: in the body, stream 0 is the calling thread's own default stream.
pub fn entry_per_thread(name: &'static str, mut body: impl FnMut() -> Result) -> cudaError_t {
    per_thread(name, Error::code, &mut body)
}

/// The border of CUDA 13's calls, some of whose failures have other numbers.
pub mod v13 {
    use super::*;

    pub fn entry(name: &'static str, mut body: impl FnMut() -> Result) -> cudaError_t {
        guarded(name, Error::code_of_13, &mut body)
    }

    pub fn entry_per_thread(name: &'static str, mut body: impl FnMut() -> Result) -> cudaError_t {
        per_thread(name, Error::code_of_13, &mut body)
    }
}

type Body<'a> = &'a mut dyn FnMut() -> Result;

/// Once for all bodies, of which there are thousands.
fn guarded(name: &'static str, code: fn(Error) -> cudaError_t, body: Body<'_>) -> cudaError_t {
    border::call(&Runtime(code), name, body)
}

fn per_thread(name: &'static str, code: fn(Error) -> cudaError_t, body: Body<'_>) -> cudaError_t {
    let before = PER_THREAD.replace(true);
    let code = guarded(name, code, body);
    PER_THREAD.set(before);
    code
}

/// A call that answers with something else than a status; `nothing` is the answer when its body breaks.
pub fn entry_value<T>(name: &'static str, nothing: T, body: impl FnOnce() -> T) -> T {
    border::value(&Runtime(Error::code), name, nothing, body)
}

/// The answer of a name that has no body.
#[cold]
pub fn missing(name: &'static str) -> cudaError_t {
    entry(name, || Err(Error::NotSupported(NO_BODY)))
}

/// Whether the call in progress was made by a per-thread spelling.
pub fn is_per_thread() -> bool {
    PER_THREAD.get()
}
