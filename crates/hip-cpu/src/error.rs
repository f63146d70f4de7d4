//! A body's answer is HIP's code; the calling thread keeps its last failure for `hipGetLastError`.

use std::cell::Cell;

use border::{BadPointer, Library, Parameter, Sort, Voice};
use hip_sys::{
    hipError_t, hipErrorInvalidValue, hipErrorNotInitialized, hipErrorNotReady, hipErrorUnknown, hipSuccess,
};

use crate::thread;

pub type Result<T = ()> = std::result::Result<T, hipError_t>;

thread_local! {
    static LAST: Cell<hipError_t> = const { Cell::new(hipSuccess) };
}

/// The border (`crates/border`) of the CPU device. There are no spans: the driver above has one for the call that a program made.
struct Cpu;

impl Library for Cpu {
    type Status = hipError_t;
    type Error = hipError_t;

    const VOICE: Voice = border::voice!("cudaway::cpu");
    const SUCCESS: hipError_t = hipSuccess;

    fn start(&self) {
        // The unit tests keep the harness's hook.
        #[cfg(not(test))]
        (Self::VOICE.start)();
    }

    fn sort<'a>(&self, &error: &'a hipError_t) -> Sort<'a> {
        // HIP: "not ready" is an answer, not an error.
        if error == hipErrorNotReady { Sort::Answer } else { Sort::Detail }
    }

    fn failed(&self, _name: &'static str, &error: &hipError_t) -> hipError_t {
        if error != hipErrorNotReady {
            let _ = LAST.try_with(|last| last.set(error));
        }
        error
    }

    fn broken(&self, name: &'static str) -> hipError_t {
        self.failed(name, &hipErrorUnknown)
    }
}

/// Every export goes through here: a panic becomes `hipErrorUnknown`, a failure is remembered and traced.
pub fn entry(name: &'static str, mut body: impl FnMut() -> Result) -> hipError_t {
    guarded(name, &mut body)
}

/// [`entry`], once for all bodies, of which there are hundreds.
fn guarded(name: &'static str, body: &mut dyn FnMut() -> Result) -> hipError_t {
    if thread::is_forked() {
        return hipErrorNotInitialized;
    }
    border::call(&Cpu, name, body)
}

/// What a body gets of an argument.
///
/// # Safety
/// As [`Parameter::of`].
pub unsafe fn given<C, P: Parameter<C>>(argument: C, name: &'static str) -> Result<P> {
    // SAFETY: the caller's promise.
    unsafe { P::of(argument, name) }.map_err(|BadPointer(_)| hipErrorInvalidValue)
}

/// The last failure of this thread; `clear` resets it.
pub fn last(clear: bool) -> hipError_t {
    LAST.try_with(|last| if clear { last.replace(hipSuccess) } else { last.get() }).unwrap_or(hipSuccess)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_that_panics_answers_unknown_and_the_thread_remembers_it() {
        assert_eq!(entry("hipTest", || panic!("a bug")), hipErrorUnknown);
        assert_eq!((last(true), last(false)), (hipErrorUnknown, hipSuccess));
    }
}
