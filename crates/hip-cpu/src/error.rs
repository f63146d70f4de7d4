//! A body's answer is HIP's code; the calling thread keeps its last failure for `hipGetLastError`.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use cuda_abi::out::{OptOut, Out};
use hip_sys::{
    hipError_t, hipErrorInvalidValue, hipErrorNotInitialized, hipErrorNotReady, hipErrorUnknown, hipSuccess,
};

use crate::thread;

pub type Result<T = ()> = std::result::Result<T, hipError_t>;

thread_local! {
    static LAST: Cell<hipError_t> = const { Cell::new(hipSuccess) };
}

/// Every export goes through here: a panic becomes `hipErrorUnknown`, a failure is remembered and traced.
pub fn entry(name: &'static str, mut body: impl FnMut() -> Result) -> hipError_t {
    border(name, &mut body)
}

/// [`entry`], once for all bodies, of which there are hundreds.
fn border(name: &'static str, body: &mut dyn FnMut() -> Result) -> hipError_t {
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

/// How a body takes what C gives: most things as they are, places for answers looked at before anything else happens.
pub trait Parameter<C>: Sized {
    /// # Safety
    /// HIP's contract for the parameter: a place for an answer is writable until the call returns, a structure readable.
    unsafe fn of(given: C) -> Result<Self>;
}

impl<T> Parameter<T> for T {
    unsafe fn of(given: T) -> Result<T> {
        Ok(given)
    }
}

impl<T> Parameter<*mut T> for Out<'_, T> {
    unsafe fn of(given: *mut T) -> Result<Self> {
        // SAFETY: the caller's promise.
        unsafe { Out::new(given, "") }.map_err(|_| hipErrorInvalidValue)
    }
}

/// A structure that is read: not null, and as aligned as its type is.
fn readable<T>(given: *const T) -> Result<*const T> {
    if given.is_null() || !given.is_aligned() { Err(hipErrorInvalidValue) } else { Ok(given) }
}

impl<T> Parameter<*const T> for &T {
    unsafe fn of(given: *const T) -> Result<Self> {
        // SAFETY: just looked at; the caller promises that it can be read until the call returns.
        readable(given).map(|given| unsafe { &*given })
    }
}

impl<T> Parameter<*mut T> for &T {
    unsafe fn of(given: *mut T) -> Result<Self> {
        // SAFETY: as above.
        readable(given.cast_const()).map(|given| unsafe { &*given })
    }
}

impl<T> Parameter<*const T> for Option<&T> {
    unsafe fn of(given: *const T) -> Result<Self> {
        if given.is_null() {
            return Ok(None);
        }
        // SAFETY: as above.
        readable(given).map(|given| Some(unsafe { &*given }))
    }
}

impl<T> Parameter<*mut T> for OptOut<'_, T> {
    unsafe fn of(given: *mut T) -> Result<Self> {
        // SAFETY: the caller's promise.
        Ok(unsafe { OptOut::new(given) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_that_panics_answers_unknown_and_the_thread_remembers_it() {
        assert_eq!(entry("hipTest", || panic!("a bug")), hipErrorUnknown);
        assert_eq!((last(true), last(false)), (hipErrorUnknown, hipSuccess));
    }

    #[test]
    fn places_for_answers_may_lie_anywhere_but_at_null() {
        let mut bytes = [0u8; 9];
        // SAFETY: eight bytes from there on are the array's.
        let place = unsafe { <Out<'_, u64> as Parameter<*mut u64>>::of(bytes[1..].as_mut_ptr().cast()) };
        place.unwrap().write(u64::MAX);
        assert_eq!(bytes, [0, 255, 255, 255, 255, 255, 255, 255, 255]);
        // SAFETY: NULL is looked for.
        let nowhere = unsafe { <Out<'_, u64> as Parameter<*mut u64>>::of(std::ptr::null_mut()) };
        assert_eq!(nowhere.err(), Some(hipErrorInvalidValue));
        // SAFETY: as above.
        let not_wanted = unsafe { <OptOut<'_, u64> as Parameter<*mut u64>>::of(std::ptr::null_mut()) };
        assert!(!not_wanted.unwrap().is_wanted());
    }

    #[test]
    fn structures_are_read_where_their_type_may_lie() {
        let words = [7u64, 8];
        // SAFETY: the first is aligned and readable; the others are looked at, not read.
        unsafe {
            assert_eq!(<&u64 as Parameter<*const u64>>::of(&words[0]), Ok(&7));
            let between = (&raw const words[0]).byte_add(1);
            assert_eq!(<&u64 as Parameter<*const u64>>::of(between), Err(hipErrorInvalidValue));
            assert_eq!(<&u64 as Parameter<*const u64>>::of(std::ptr::null()), Err(hipErrorInvalidValue));
            assert_eq!(<Option<&u64> as Parameter<*const u64>>::of(std::ptr::null()), Ok(None));
            assert_eq!(<Option<&u64> as Parameter<*const u64>>::of(between), Err(hipErrorInvalidValue));
        }
    }
}
