//! libc's own functions, or those of the next interposer behind us.

use core::ffi::{CStr, c_char, c_void};
use core::sync::atomic::{AtomicPtr, Ordering};

/// Read by the jumps of `entry`; null until [`find`] has run.
pub static DLSYM: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
pub static DLOPEN: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());

/// The version of both in glibc's first port to this processor. glibc 2.34, which moved them from libdl into libc, gives them
/// under it too. One that a release may not have is never asked for: glibc writes its error into memory of `malloc`, which may
/// be who asks.
#[cfg(target_arch = "x86_64")]
const VERSION: &CStr = c"GLIBC_2.2.5";
#[cfg(target_arch = "aarch64")]
const VERSION: &CStr = c"GLIBC_2.17";

unsafe extern "C" {
    // By itself it is never interposed, so that this cannot lead back to us.
    fn dlvsym(handle: *mut c_void, name: *const c_char, version: *const c_char) -> *mut c_void;
}

/// Fills both; any number of threads may do it at once, with the same answer.
pub fn find() {
    for (slot, name) in [(&DLSYM, c"dlsym"), (&DLOPEN, c"dlopen")] {
        if slot.load(Ordering::Relaxed).is_null() {
            // SAFETY: two C strings; the next object after ours is meant.
            let found = unsafe { dlvsym(libc::RTLD_NEXT, name.as_ptr(), VERSION.as_ptr()) };
            slot.store(found, Ordering::Relaxed);
        }
    }
}

/// What the program's scope has for the name, of this version if one is given; null when it has nothing.
pub fn global(name: &CStr, version: Option<&CStr>) -> *mut c_void {
    type Dlsym = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;
    if let Some(version) = version {
        // SAFETY: two C strings.
        return unsafe { dlvsym(libc::RTLD_DEFAULT, name.as_ptr(), version.as_ptr()) };
    }
    let real = DLSYM.load(Ordering::Relaxed);
    if real.is_null() {
        return real;
    }
    // SAFETY: `find` stored libc's function of this name there.
    let real = unsafe { core::mem::transmute::<*mut c_void, Dlsym>(real) };
    // SAFETY: a C string.
    unsafe { real(libc::RTLD_DEFAULT, name.as_ptr()) }
}
