//! The hipBLAS handle behind a cuBLAS handle, made ready for one call.

use core::ffi::{CStr, c_void};
use core::sync::atomic::{AtomicU32, Ordering};

use cuda_abi::CUstream;
use kit::hip::{LastStream, stream as hip_stream};

use super::convert::*;
use super::library::{Entry, Library, Release};
use crate::handle::Handle;
use crate::{Error, Result, cublasAtomicsMode_t, cublasPointerMode_t};

/// What a mode is before it is set for the first time: none of its numbers.
const UNSET: u32 = u32::MAX;

/// A hipBLAS handle, and what it was last told.
pub struct HipHandle {
    library: &'static Library,
    raw: hipblasHandle_t,
    stream: LastStream,
    pointer_mode: AtomicU32,
    atomics_mode: AtomicU32,
}

// SAFETY: hipBLAS's handles may be used by any thread; the rest is numbers.
unsafe impl Send for HipHandle {}
// SAFETY: as above. As with cuBLAS, threads that set the same handle's modes at one time do not know which of them holds.
unsafe impl Sync for HipHandle {}

impl HipHandle {
    /// For the calling thread's device.
    pub fn new() -> Result<HipHandle> {
        let library = Library::get()?;
        // hipBLAS's handle is the current HIP device's.
        hip_stream(CUstream::default(), false)?;
        HipHandle::of(library)
    }

    /// For HIP's current device.
    pub fn of(library: &'static Library) -> Result<HipHandle> {
        let create = library.find_other(c"hipblasCreate").ok_or(Error::NotSupported("hipblasCreate"))?;
        let mut raw: hipblasHandle_t = core::ptr::null_mut();
        // SAFETY: hipBLAS's signature.
        let create: unsafe extern "C" fn(*mut hipblasHandle_t) -> hipblasStatus_t =
            unsafe { core::mem::transmute(create) };
        // SAFETY: `raw` is writable.
        check(unsafe { create(&mut raw) })?;
        Ok(HipHandle {
            library,
            raw,
            // HIP's default stream, which a new handle works on.
            stream: LastStream::default(),
            pointer_mode: AtomicU32::new(UNSET),
            atomics_mode: AtomicU32::new(UNSET),
        })
    }

    /// Runs one routine, or a part of one, on the handle's stream and in its modes.
    pub fn call(&self, handle: &Handle, run: impl FnOnce(&HipCall) -> Result) -> Result {
        run(&self.ready(handle)?)
    }

    /// Not part of [`Self::call`], of which each routine has its own.
    fn ready(&self, handle: &Handle) -> Result<HipCall> {
        let stream = hip_stream(handle.stream()?, true)?;
        let state = handle.state();
        let pointer_mode = pointer_mode(state.pointer_mode);
        self.tell(stream.stream, pointer_mode, state.atomics_mode)?;
        Ok(HipCall { library: self.library, handle: self.raw, stream: state.stream, pointer_mode })
    }

    /// The answer of a routine that hipBLAS has nothing for.
    pub fn lacks(&self) -> Result {
        Err(Error::NotSupported("hipBLAS has no such routine"))
    }

    /// Sets what has changed since the last call.
    pub fn tell(
        &self,
        stream: *mut c_void,
        pointer_mode: hipblasPointerMode_t,
        atomics_mode: cublasAtomicsMode_t,
    ) -> Result {
        // SAFETY: hipBLAS's signature.
        self.stream.tell(stream, |stream| unsafe { self.set(c"hipblasSetStream", stream) })?;
        if self.pointer_mode.load(Ordering::Relaxed) != pointer_mode.0 {
            // SAFETY: as above.
            unsafe { self.set(c"hipblasSetPointerMode", pointer_mode) }?;
            self.pointer_mode.store(pointer_mode.0, Ordering::Relaxed);
        }
        let atomics_mode = match atomics_mode {
            cublasAtomicsMode_t::CUBLAS_ATOMICS_ALLOWED => hipblasAtomicsMode_t::HIPBLAS_ATOMICS_ALLOWED,
            _ => hipblasAtomicsMode_t::HIPBLAS_ATOMICS_NOT_ALLOWED,
        };
        // HIP differs: a new handle allows atomics, cuBLAS's does not.
        if self.atomics_mode.load(Ordering::Relaxed) != atomics_mode.0 {
            // SAFETY: as above.
            unsafe { self.set(c"hipblasSetAtomicsMode", atomics_mode) }?;
            self.atomics_mode.store(atomics_mode.0, Ordering::Relaxed);
        }
        Ok(())
    }

    /// One of the functions that take the handle and a value.
    ///
    /// # Safety
    /// `T` is the value's type in hipBLAS's header.
    unsafe fn set<T>(&self, name: &CStr, value: T) -> Result {
        let set = self
            .library
            .find_other(name)
            .ok_or(Error::NotSupported("hipBLAS lacks a function that sets a mode"))?;
        // SAFETY: the caller's promise.
        let set: unsafe extern "C" fn(hipblasHandle_t, T) -> hipblasStatus_t =
            unsafe { core::mem::transmute(set) };
        // SAFETY: the handle is alive; a stream was looked up by the driver.
        check(unsafe { set(self.raw, value) })
    }
}

impl Drop for HipHandle {
    fn drop(&mut self) {
        let Some(destroy) = self.library.find_other(c"hipblasDestroy") else { return };
        // SAFETY: hipBLAS's signature.
        let destroy: unsafe extern "C" fn(hipblasHandle_t) -> hipblasStatus_t =
            unsafe { core::mem::transmute(destroy) };
        // SAFETY: made by hipblasCreate, and nobody else has it.
        if let Err(error) = check(unsafe { destroy(self.raw) }) {
            tracing::info!(target: "cudaway::blas", "hipblasDestroy: {error}");
        }
    }
}

fn pointer_mode(mode: cublasPointerMode_t) -> hipblasPointerMode_t {
    match mode {
        cublasPointerMode_t::CUBLAS_POINTER_MODE_DEVICE => hipblasPointerMode_t::HIPBLAS_POINTER_MODE_DEVICE,
        _ => hipblasPointerMode_t::HIPBLAS_POINTER_MODE_HOST,
    }
}

/// hipBLAS's handle during a call, bound to the stream and in the modes of cuBLAS's.
pub struct HipCall {
    pub library: &'static Library,
    pub handle: hipblasHandle_t,
    pub stream: CUstream,
    pub pointer_mode: hipblasPointerMode_t,
}

impl HipCall {
    pub fn release(&self) -> Release {
        self.library.release
    }

    pub fn find(&self, entry: &Entry) -> Option<*mut c_void> {
        self.library.find(entry)
    }

    /// A function that no routine of cuBLAS's is handed on to.
    pub fn function(&self, name: &CStr) -> Result<*mut c_void> {
        self.library
            .find_other(name)
            .ok_or(Error::NotSupported("this hipBLAS lacks a function for parts of the routine"))
    }

    /// Runs a part of a routine whose factors are ours, and on the host whatever the handle's mode.
    pub fn with_factors_on_host(&self, run: impl FnOnce() -> Result) -> Result {
        if self.pointer_mode == hipblasPointerMode_t::HIPBLAS_POINTER_MODE_HOST {
            return run();
        }
        let set = self.function(c"hipblasSetPointerMode")?;
        // SAFETY: hipBLAS's signature.
        let set: unsafe extern "C" fn(hipblasHandle_t, hipblasPointerMode_t) -> hipblasStatus_t =
            unsafe { core::mem::transmute(set) };
        // SAFETY: the handle is alive.
        check(unsafe { set(self.handle, hipblasPointerMode_t::HIPBLAS_POINTER_MODE_HOST) })?;
        let answer = run();
        // SAFETY: as above.
        check(unsafe { set(self.handle, self.pointer_mode) })?;
        answer
    }
}

pub fn check(status: hipblasStatus_t) -> Result {
    match status {
        hipblasStatus_t::HIPBLAS_STATUS_SUCCESS => Ok(()),
        hipblasStatus_t::HIPBLAS_STATUS_NOT_SUPPORTED => {
            Err(Error::NotSupported("hipBLAS has not got it for these arguments"))
        }
        other => Err(Error::Hip(other)),
    }
}

/// Ends the routine with a call of a hipBLAS function, if the library has it. The types are those of the parameters behind
/// the handle.
macro_rules! hand_on {
    ($hip:ident, $entry:ident($($ty:ty = $value:expr),* $(,)?)) => {
        if let Some(function) = $hip.find(&$entry) {
            // SAFETY: the signature is hipBLAS's, from tools/data/hip.
            let function = unsafe {
                core::mem::transmute::<
                    *mut core::ffi::c_void,
                    unsafe extern "C" fn($crate::hip::convert::hipblasHandle_t $(, $ty)*)
                        -> $crate::hip::convert::hipblasStatus_t,
                >(function)
            };
            // SAFETY: cuBLAS's contract for the pointers is hipBLAS's.
            return $crate::hip::call::check(unsafe { function($hip.handle $(, $value)*) });
        }
    };
}
pub(crate) use hand_on;

/// The routines that are handed on, each as a function of its C name.
macro_rules! routines {
    ($hip:ident; $(fn $name:ident($($param:ident: $ty:ty),* $(,)?) $body:block)*) => {
        $(
            /// # Safety
            /// cuBLAS's contract for the pointers.
            pub unsafe fn $name($hip: &$crate::hip::HipCall, $($param: $ty),*) -> $crate::Result {
                $body
                Err($crate::Error::NotSupported(concat!("this hipBLAS has no function for ", stringify!($name))))
            }
        )*

        kit::hip_for_c! { $crate::hip::HipCall, $crate::hip::call::status; $($name($($param: $ty),*);)* }
    };
}
pub(crate) use routines;

/// cuBLAS's status for a routine's answer.
#[cfg(test)]
pub fn status(answer: Result) -> core::ffi::c_int {
    answer.map_or_else(|error| error.code().0 as core::ffi::c_int, |()| 0)
}
