//! A body's answer is HIP's code; the calling thread keeps its last failure for `hipGetLastError`.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use hip_sys::{
    hipError_t, hipErrorInvalidValue, hipErrorNotInitialized, hipErrorNotReady, hipErrorUnknown, hipSuccess,
};

use crate::thread;

pub type Result<T = ()> = std::result::Result<T, hipError_t>;

thread_local! {
    static LAST: Cell<hipError_t> = const { Cell::new(hipSuccess) };
}

/// Every export goes through here: a panic becomes `hipErrorUnknown`, a failure is remembered and traced.
pub fn entry(name: &'static str, body: impl FnOnce() -> Result) -> hipError_t {
    if thread::is_forked() {
        return hipErrorNotInitialized;
    }
    start();
    let answer = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => return hipSuccess,
        Ok(Err(error)) => error,
        Err(_) => {
            tracing::error!(target: "cudaway::cpu", "{name}: internal error, answering hipErrorUnknown");
            hipErrorUnknown
        }
    };
    // HIP: "not ready" is an answer, not an error.
    if answer != hipErrorNotReady {
        let _ = LAST.try_with(|last| last.set(answer));
        tracing::debug!(target: "cudaway::cpu", "{name}: {answer}");
    }
    answer
}

/// Not part of [`entry`], of which there are many.
fn start() {
    // The unit tests keep the harness's hook.
    #[cfg(not(test))]
    config::start_logging!("cudaway::cpu");
}

/// The last failure of this thread; `clear` resets it.
pub fn last(clear: bool) -> hipError_t {
    LAST.try_with(|last| if clear { last.replace(hipSuccess) } else { last.get() }).unwrap_or(hipSuccess)
}

/// Refuses a null out-pointer before anything else happens.
pub fn out<'a, T>(pointer: *mut T) -> Result<&'a mut std::mem::MaybeUninit<T>> {
    // SAFETY: HIP's contract makes a non-null out-pointer writable until the call returns.
    unsafe { pointer.cast::<std::mem::MaybeUninit<T>>().as_mut() }.ok_or(hipErrorInvalidValue)
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
