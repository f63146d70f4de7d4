//! Memory of the device that the host cannot follow, as `HIP_RECORDER_FAR` asks for it: what is allocated has an address where no memory
//! may be read or written, and calls that take one get the CPU device's. Who follows such an address himself ends there. Kernels do too:
//! this is for what runs none.

use core::ffi::{c_int, c_void};
use std::collections::BTreeMap;
use std::sync::{OnceLock, RwLock};

use hip_sys::*;

use crate::{call, refuse};

struct Far {
    len_bytes: usize,
    /// The CPU device's address.
    near: usize,
}

static FAR: RwLock<BTreeMap<usize, Far>> = RwLock::new(BTreeMap::new());

fn is_asked_for() -> bool {
    static ASKED: OnceLock<bool> = OnceLock::new();
    *ASKED.get_or_init(|| std::env::var_os("HIP_RECORDER_FAR").is_some())
}

/// Puts another address in the place of one that was allocated.
///
/// # Safety
/// `at` holds it.
unsafe fn hide(at: *mut *mut c_void, len_bytes: usize) {
    if !is_asked_for() {
        return;
    }
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: new addresses, of the kernel's choice.
    let far = unsafe {
        libc::mmap(core::ptr::null_mut(), len_bytes.max(1), libc::PROT_NONE, flags, -1 as c_int, 0)
    };
    if far == libc::MAP_FAILED {
        refuse("HIP_RECORDER_FAR: no addresses are left");
    }
    // SAFETY: the caller's promise.
    let near = unsafe { at.replace(far) };
    let mut all = FAR.write().unwrap_or_else(|all| all.into_inner());
    all.insert(far.addr(), Far { len_bytes, near: near.expose_provenance() });
}

/// The CPU device's address of memory.
pub fn near<T>(at: *mut T) -> *mut T {
    if !is_asked_for() {
        return at;
    }
    let all = FAR.read().unwrap_or_else(|all| all.into_inner());
    match all.range(..=at.addr()).next_back() {
        Some((start, far)) if at.addr() - start < far.len_bytes.max(1) => {
            core::ptr::with_exposed_provenance_mut(far.near + (at.addr() - start))
        }
        _ => at,
    }
}

fn forget(at: *mut c_void) {
    let mut all = FAR.write().unwrap_or_else(|all| all.into_inner());
    if let Some(far) = all.remove(&at.addr()) {
        // SAFETY: made by `hide`.
        unsafe { libc::munmap(at, far.len_bytes.max(1)) };
    }
}

/// # Safety
/// HIP's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipMalloc(ptr: *mut *mut c_void, size: usize) -> hipError_t {
    call("hipMalloc", &[("ptr", &ptr), ("size", &size)], |body| {
        // SAFETY: the caller's promise.
        unsafe {
            body.hipMalloc(ptr, size)?;
            hide(ptr, size);
        }
        Ok(())
    })
}

/// # Safety
/// HIP's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipMallocAsync(
    dev_ptr: *mut *mut c_void,
    size: usize,
    stream: hipStream_t,
) -> hipError_t {
    call("hipMallocAsync", &[("dev_ptr", &dev_ptr), ("size", &size), ("stream", &stream)], |body| {
        // SAFETY: the caller's promise.
        unsafe {
            body.hipMallocAsync(dev_ptr, size, stream)?;
            hide(dev_ptr, size);
        }
        Ok(())
    })
}

/// # Safety
/// HIP's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipFree(ptr: *mut c_void) -> hipError_t {
    call("hipFree", &[("ptr", &ptr)], |body| {
        // SAFETY: the caller's promise.
        unsafe { body.hipFree(near(ptr)) }?;
        forget(ptr);
        Ok(())
    })
}

/// # Safety
/// HIP's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipFreeAsync(dev_ptr: *mut c_void, stream: hipStream_t) -> hipError_t {
    call("hipFreeAsync", &[("dev_ptr", &dev_ptr), ("stream", &stream)], |body| {
        // SAFETY: the caller's promise.
        unsafe { body.hipFreeAsync(near(dev_ptr), stream) }?;
        forget(dev_ptr);
        Ok(())
    })
}
