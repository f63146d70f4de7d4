//! The hipSOLVER handle behind a cuSOLVER handle, made ready for one call.

use core::ffi::{c_int, c_uint, c_void};
use core::ptr;
use core::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

use kit::driver::Number;
use kit::hip::LastStream;
use once_cell::sync::OnceCell;

use super::convert::deterministic_mode;
use super::library::Library;
use crate::error::require;
use crate::handle::State;
use crate::types::*;
use crate::{Error, Result};

/// A hipSOLVER handle, and what it was last told.
pub struct HipHandle {
    pub library: &'static Library,
    raw: *mut c_void,
    stream: LastStream,
    /// 0: nothing.
    determinism: AtomicU32,
    /// The parameters of calls of the 64-bit API; made at the first.
    params: OnceCell<Params>,
}

// SAFETY: hipSOLVER's handles may be used by any thread; the rest is numbers.
unsafe impl Send for HipHandle {}
// SAFETY: as above. As with cuSOLVER, threads that use one handle at one time do not know on which of their streams.
unsafe impl Sync for HipHandle {}

/// A function of hipSOLVER's with these types of arguments, called with these values: its status, or `None` where a release lacks it.
macro_rules! call {
    ($library:expr, $function:ident $arguments:tt) => {
        kit::listed_call!($library, $crate::hip::calls::$function, $crate::hip::call::check, $arguments)
    };
}
pub(crate) use call;

impl HipHandle {
    /// For HIP's current device.
    pub fn of(library: &'static Library) -> Result<HipHandle> {
        let mut raw = ptr::null_mut();
        let created = call!(library, hipsolverDnCreate(*mut *mut c_void = &mut raw));
        created.unwrap_or(Err(Error::NotSupported("hipsolverDnCreate")))?;
        Ok(HipHandle {
            library,
            raw,
            // HIP's default stream, which a new handle works on.
            stream: LastStream::default(),
            determinism: AtomicU32::new(0),
            params: OnceCell::new(),
        })
    }

    /// Sets what has changed since the last call.
    pub fn tell(&self, stream: *mut c_void, state: &State) -> Result {
        self.stream.tell(stream, |stream| {
            let set = call!(
                self.library,
                hipsolverDnSetStream(*mut c_void = self.raw, Number<*mut c_void> = stream)
            );
            set.unwrap_or(Err(Error::NotSupported("hipsolverDnSetStream")))
        })?;
        let mode = deterministic_mode(state.determinism)?;
        if self.determinism.load(Ordering::Relaxed) != mode {
            // A release without the function has one way alone.
            let set = call!(
                self.library,
                hipsolverDnSetDeterministicMode(*mut c_void = self.raw, c_uint = mode)
            );
            set.unwrap_or(Ok(()))?;
            self.determinism.store(mode, Ordering::Relaxed);
        }
        Ok(())
    }
}

impl Drop for HipHandle {
    fn drop(&mut self) {
        if let Some(Err(error)) = call!(self.library, hipsolverDnDestroy(*mut c_void = self.raw)) {
            tracing::info!(target: "cudaway::solver", "hipsolverDnDestroy: {error}");
        }
    }
}

/// hipSOLVER's parameters of functions of the 64-bit API, as they are when they are made.
struct Params {
    library: &'static Library,
    raw: *mut c_void,
}

impl Drop for Params {
    fn drop(&mut self) {
        if let Some(Err(error)) = call!(self.library, hipsolverDnDestroyParams(*mut c_void = self.raw)) {
            tracing::info!(target: "cudaway::solver", "hipsolverDnDestroyParams: {error}");
        }
    }
}

/// hipSOLVER's handle during a call, bound to the stream and in the modes of cuSOLVER's.
pub struct HipCall {
    pub handle: Arc<HipHandle>,
    pub stream: cudaStream_t,
}

impl HipCall {
    pub fn library(&self) -> &'static Library {
        self.handle.library
    }

    pub fn find(&self, function: usize) -> Option<*mut c_void> {
        self.library().find(function)
    }

    pub fn raw(&self) -> *mut c_void {
        self.handle.raw
    }

    /// Waits for what the stream has to do.
    pub fn synchronize(&self) -> Result {
        Ok(kit::stream::synchronize(self.stream)?)
    }

    /// hipSOLVER's parameters for those of a program, whose algorithms are hints: each gives the same numbers.
    pub fn params(&self, params: cusolverDnParams_t) -> Result<*mut c_void> {
        crate::api::lifecycle::params(params)?;
        // HIP differs: NULL is not its default parameters.
        let made = self.handle.params.get_or_try_init(|| {
            let mut raw = ptr::null_mut();
            let created = call!(self.library(), hipsolverDnCreateParams(*mut *mut c_void = &mut raw));
            created.unwrap_or(Ok(()))?;
            Ok::<_, Error>(Params { library: self.library(), raw })
        });
        Ok(made?.raw)
    }

    pub fn gesvdj_info(&self, info: gesvdjInfo_t) -> Result<*mut c_void> {
        crate::api::jacobi::hip_info(info, self.library(), &super::info::GESVDJ)
    }

    pub fn syevj_info(&self, info: syevjInfo_t) -> Result<*mut c_void> {
        crate::api::jacobi::hip_info(info, self.library(), &super::info::SYEVJ)
    }
}

/// hipSOLVER's answer.
pub fn check(status: c_int) -> Result {
    match status {
        0 => Ok(()),
        7 => Err(Error::NotSupported("hipSOLVER has not got it for these arguments")),
        other => Err(Error::Hip(other)),
    }
}

/// Solvers that may refine what a narrower type gave work in the main type at once: there are no iterations, which hipSOLVER does not say.
///
/// # Safety
/// cuSOLVER's contract: a number's place on the host, or NULL.
pub unsafe fn no_iterations(iter: *mut c_int) -> Result {
    require(!iter.is_null(), "the place for the number of iterations is NULL")?;
    // SAFETY: the caller's word.
    unsafe { iter.write(0) };
    Ok(())
}

/// Ends the routine with a call of a hipSOLVER function, if the library has it. The types are those of the parameters behind the
/// handle.
macro_rules! hand_on {
    ($hip:ident, $function:ident($($ty:ty = $value:expr),* $(,)?)) => {
        if $hip.find($function).is_some() {
            let answer = $crate::hip::call::call!(
                $hip.library(),
                $function(*mut c_void = $hip.raw() $(, $ty = $value)*)
            );
            return answer.unwrap_or(Ok(())).map(|()| true);
        }
    };
}
pub(crate) use hand_on;

/// The routines that are handed on, each as a function of its C name: whether hipSOLVER has done it.
macro_rules! routines {
    ($hip:ident; $(fn $name:ident($($param:ident: $ty:ty),* $(,)?) $body:block)*) => {
        $(
            /// # Safety
            /// cuSOLVER's contract for the pointers.
            pub unsafe fn $name($hip: &$crate::hip::HipCall, $($param: $ty),*) -> $crate::Result<bool> {
                $body
                Ok(false)
            }
        )*

        kit::hip_for_c! { $crate::hip::HipCall, $crate::hip::call::status; $($name($($param: $ty),*);)* }
    };
}
pub(crate) use routines;

/// cuSOLVER's status for a routine's answer, or -1 where hipSOLVER has not done it.
#[cfg(test)]
pub fn status(answer: Result<bool>) -> c_int {
    match answer {
        Ok(true) => 0,
        Ok(false) => -1,
        Err(error) => error.code().0 as c_int,
    }
}
