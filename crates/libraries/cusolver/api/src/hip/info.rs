//! hipSOLVER's objects of iterations by Jacobi's method behind ours, which keep what the program said.

use core::ffi::{c_int, c_void};
use core::ptr;

use cusolver_cpu::jacobi::Settings;

use super::call::check;
use super::calls;
use super::library::Library;
use crate::{Error, Result};

/// The functions of one kind of them.
pub struct Kind {
    create: usize,
    destroy: usize,
    set_tolerance: usize,
    set_max_sweeps: usize,
    set_sorted: usize,
}

pub const SYEVJ: Kind = Kind {
    create: calls::hipsolverDnCreateSyevjInfo,
    destroy: calls::hipsolverDnDestroySyevjInfo,
    set_tolerance: calls::hipsolverDnXsyevjSetTolerance,
    set_max_sweeps: calls::hipsolverDnXsyevjSetMaxSweeps,
    set_sorted: calls::hipsolverDnXsyevjSetSortEig,
};

pub const GESVDJ: Kind = Kind {
    create: calls::hipsolverDnCreateGesvdjInfo,
    destroy: calls::hipsolverDnDestroyGesvdjInfo,
    set_tolerance: calls::hipsolverDnXgesvdjSetTolerance,
    set_max_sweeps: calls::hipsolverDnXgesvdjSetMaxSweeps,
    set_sorted: calls::hipsolverDnXgesvdjSetSortEig,
};

/// One of them.
pub struct HipInfo {
    library: &'static Library,
    kind: &'static Kind,
    raw: *mut c_void,
}

// SAFETY: hipSOLVER's objects may be used by any thread, as cuSOLVER's one after the other.
unsafe impl Send for HipInfo {}
// SAFETY: as above.
unsafe impl Sync for HipInfo {}

/// A function of the object and a value.
///
/// # Safety
/// `T` is the value's type in hipSOLVER's header.
unsafe fn call<T>(library: &Library, function: usize, value: T) -> Result {
    let found =
        library.find(function).ok_or(Error::NotSupported("this hipSOLVER has no Jacobi iterations"))?;
    // SAFETY: the caller's word.
    let function: unsafe extern "C" fn(T) -> c_int = unsafe { core::mem::transmute(found) };
    // SAFETY: as above.
    check(unsafe { function(value) })
}

/// As [`call`], of the object and a value.
///
/// # Safety
/// `T` is the value's type in hipSOLVER's header, and the object is alive.
unsafe fn set<T>(library: &Library, function: usize, raw: *mut c_void, value: T) -> Result {
    let found =
        library.find(function).ok_or(Error::NotSupported("this hipSOLVER has no Jacobi iterations"))?;
    // SAFETY: the caller's word.
    let function: unsafe extern "C" fn(*mut c_void, T) -> c_int = unsafe { core::mem::transmute(found) };
    // SAFETY: as above.
    check(unsafe { function(raw, value) })
}

impl HipInfo {
    pub fn new(library: &'static Library, kind: &'static Kind) -> Result<HipInfo> {
        let mut raw: *mut c_void = ptr::null_mut();
        // SAFETY: hipSOLVER's signature; `raw` is writable.
        unsafe { call(library, kind.create, &raw mut raw) }?;
        Ok(HipInfo { library, kind, raw })
    }

    /// The object with the settings; a tolerance that is not positive is hipSOLVER's own, as it is cuSOLVER's.
    pub fn with(&self, settings: Settings) -> Result<*mut c_void> {
        let Kind { set_tolerance, set_max_sweeps, set_sorted, .. } = *self.kind;
        // SAFETY: hipSOLVER's signatures.
        unsafe {
            if settings.tolerance > 0.0 {
                set(self.library, set_tolerance, self.raw, settings.tolerance)?;
            }
            set(self.library, set_max_sweeps, self.raw, settings.max_sweeps)?;
            set(self.library, set_sorted, self.raw, c_int::from(settings.sorted))?;
        }
        Ok(self.raw)
    }
}

impl Drop for HipInfo {
    fn drop(&mut self) {
        // SAFETY: hipSOLVER's signature, and nobody else has it.
        if let Err(error) = unsafe { call(self.library, self.kind.destroy, self.raw) } {
            tracing::info!(target: "cudaway::solver", "hipSOLVER's parameters of an iteration: {error}");
        }
    }
}
