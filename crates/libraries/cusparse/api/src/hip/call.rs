//! The hipSPARSE handle behind a cuSPARSE handle, made ready for one call.

use core::ffi::{c_int, c_uint, c_void};
use core::ptr;
use core::sync::atomic::{AtomicU32, Ordering};
use std::collections::BTreeSet;
use std::sync::Arc;

use kit::driver::Number;
use kit::hip::LastStream;
use parking_lot::Mutex;

use super::convert::pointer_mode;
use super::info::{self, Kind};
use super::library::Library;
use crate::api::conversion::SOME;
use crate::types::*;
use crate::{Error, Result};

/// A hipSPARSE handle, and what it was last told.
pub struct HipHandle {
    pub library: &'static Library,
    raw: *mut c_void,
    stream: LastStream,
    pointers: AtomicU32,
    /// Major times 100000 and minor times 100 and patch of hipSPARSE's own version.
    pub version: c_int,
    /// Whose work areas have been sized for our own code: hipSPARSE would write behind their end.
    left: Mutex<BTreeSet<&'static str>>,
}

// SAFETY: hipSPARSE's handles may be used by any thread; the rest is numbers.
unsafe impl Send for HipHandle {}
// SAFETY: as above. As with cuSPARSE, threads that use one handle at one time do not know on which of their streams.
unsafe impl Sync for HipHandle {}

/// A function of hipSPARSE's with these types of arguments, called with these values: its status, or `None` where a release lacks it.
macro_rules! call {
    ($library:expr, $function:ident $arguments:tt) => {
        kit::listed_call!($library, $crate::hip::calls::$function, $crate::hip::call::check, $arguments)
    };
}
pub(crate) use call;

/// The same, an error where a release lacks it.
macro_rules! must {
    ($library:expr, $function:ident($($arguments:tt)*)) => {
        $crate::hip::call::call!($library, $function($($arguments)*))
            .unwrap_or(Err($crate::Error::NotSupported(concat!("this hipSPARSE has no ", stringify!($function)))))
    };
}
pub(crate) use must;

impl HipHandle {
    /// For HIP's current device.
    pub fn of(library: &'static Library) -> Result<HipHandle> {
        let mut raw = ptr::null_mut();
        must!(library, hipsparseCreate(*mut *mut c_void = &mut raw))?;
        let mut handle = HipHandle {
            library,
            raw,
            // HIP's default stream, and scalars on the host, as a new handle has them.
            stream: LastStream::default(),
            pointers: AtomicU32::new(0),
            version: 0,
            left: Mutex::default(),
        };
        must!(library, hipsparseGetVersion(*mut c_void = raw, *mut c_int = &mut handle.version))?;
        Ok(handle)
    }

    /// Sets what has changed since the last call.
    pub fn tell(&self, stream: *mut c_void, pointers: cusparsePointerMode_t) -> Result {
        self.stream.tell(stream, |stream| {
            must!(self.library, hipsparseSetStream(*mut c_void = self.raw, Number<*mut c_void> = stream))
        })?;
        let mode = pointer_mode(pointers)?;
        if self.pointers.load(Ordering::Relaxed) != mode {
            must!(self.library, hipsparseSetPointerMode(*mut c_void = self.raw, c_uint = mode))?;
            self.pointers.store(mode, Ordering::Relaxed);
        }
        Ok(())
    }
}

impl Drop for HipHandle {
    fn drop(&mut self) {
        if let Some(Err(error)) = call!(self.library, hipsparseDestroy(*mut c_void = self.raw)) {
            tracing::info!(target: "cudaway::sparse", "hipsparseDestroy: {error}");
        }
    }
}

/// hipSPARSE's handle during a call, bound to the stream and in the mode of cuSPARSE's.
pub struct HipCall {
    pub handle: Arc<HipHandle>,
    pub stream: cudaStream_t,
}

/// What a call with an info is to those with the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It asks for a size alone.
    Asks,
    /// Who does it does what goes on with it.
    Begins,
    GoesOn,
}

impl HipCall {
    pub fn library(&self) -> &'static Library {
        self.handle.library
    }

    pub fn raw(&self) -> *mut c_void {
        self.handle.raw
    }

    /// Waits for what the stream has to do.
    pub fn synchronize(&self) -> Result {
        Ok(kit::stream::synchronize(self.stream)?)
    }

    /// hipSPARSE's descriptor for a typed call's.
    pub fn description(&self, descr: cusparseMatDescr_t) -> Result<*mut c_void> {
        crate::api::legacy::on_hip(descr, self.library())
    }

    /// Runs with hipSPARSE's info for the program's. What goes on is done where its beginning was, which has been done.
    pub fn with<I>(
        &self,
        info: *mut I,
        kind: &'static Kind,
        step: Step,
        work: impl FnOnce(*mut c_void) -> Result<bool>,
    ) -> Result<bool> {
        info::with(&*crate::api::info::INFOS.get(info)?, self.library(), kind, step, work)
    }
}

/// hipSPARSE's answer.
pub fn check(status: c_int) -> Result {
    match status {
        0 => Ok(()),
        9 => Err(Error::ZeroPivot),
        other => Err(Error::Hip(other)),
    }
}

/// What hipSPARSE refuses of arguments, before it has begun, is our own code's: that does it, or says of them what cuSPARSE says.
pub fn settle(answer: Result<bool>, what: &str) -> Result<bool> {
    match answer {
        Err(error) if error.is_refusal() => {
            tracing::debug!(target: "cudaway::sparse", "{what} is our own code's: {error}");
            Ok(false)
        }
        answer => answer,
    }
}

/// A typed call by hipSPARSE, if it is one for it. Where it refuses to say how large a work area is, all calls that take the area are
/// our own code's on this handle from there on, whichever their arguments.
pub fn hand_over(
    hip: &HipCall,
    (name, family, asks): (&str, &'static str, bool),
    call: impl FnOnce() -> Result<bool>,
) -> Result<bool> {
    let left = &hip.handle.left;
    if !asks && left.lock().contains(family) {
        return Ok(false);
    }
    let done = settle(call(), name)?;
    if asks && !done && left.lock().insert(family) {
        tracing::info!(target: "cudaway::sparse", "{family} is our own code's with this handle from here on");
    }
    Ok(done)
}

/// A work area that hipSPARSE needs none of has some bytes nevertheless, in case that our own code does the work.
///
/// # Safety
/// A number's place, or NULL.
pub unsafe fn at_least<T: PartialOrd + TryFrom<usize>>(bytes: *mut T) {
    // SAFETY: the caller's word.
    if let (Some(bytes), Ok(some)) = (unsafe { bytes.as_mut() }, T::try_from(SOME))
        && *bytes < some
    {
        *bytes = some;
    }
}

/// A size as cuSPARSE has it.
///
/// # Safety
/// As [`at_least`].
pub unsafe fn narrow(to: *mut c_int, bytes: usize) -> Result {
    crate::error::require(!to.is_null(), "the place for a size is NULL")?;
    let bytes = c_int::try_from(bytes).map_err(|_| Error::NotSupported("a work area of so many bytes"))?;
    // SAFETY: the caller's word.
    unsafe { to.write(bytes) };
    Ok(())
}

/// A call of a hipSPARSE function: whether the library has it. The types are those of the parameters behind the handle.
macro_rules! hand {
    ($hip:ident, $function:ident($($ty:ty = $value:expr),* $(,)?)) => {
        match $crate::hip::call::call!($hip.library(), $function(*mut c_void = $hip.raw() $(, $ty = $value)*)) {
            Some(answer) => answer.map(|()| true),
            None => Ok(false),
        }
    };
}
pub(crate) use hand;

/// The routines that are handed on, each as a function of its C name: whether hipSPARSE has done it.
macro_rules! routines {
    (@is asks) => { true };
    (@is runs) => { false };
    ($hip:ident; $($does:ident $family:literal fn $name:ident($($param:ident: $ty:ty),* $(,)?) $body:block)*) => {
        $(
            /// # Safety
            /// cuSPARSE's contract for the pointers.
            pub unsafe fn $name($hip: &$crate::hip::HipCall, $($param: $ty),*) -> $crate::Result<bool> {
                let what = (stringify!($name), $family, $crate::hip::call::routines!(@is $does));
                $crate::hip::call::hand_over($hip, what, || $body)
            }
        )*

        kit::hip_for_c! { $crate::hip::HipCall, $crate::hip::call::status; $($name($($param: $ty),*);)* }
    };
}
pub(crate) use routines;

/// cuSPARSE's status for a routine's answer, or -1 where hipSPARSE has not done it.
#[cfg(test)]
pub fn status(answer: Result<bool>) -> c_int {
    match answer {
        Ok(true) => 0,
        Ok(false) => -1,
        Err(error) => error.code().0 as c_int,
    }
}
