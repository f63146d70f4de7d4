//! Which CUDA the process is of, where a library's name does not say: `libcurand.so.10` is CUDA 11's, 12's and 13's.

use core::ffi::{CStr, c_void};
use core::ptr::NonNull;
use std::ffi::CString;
use std::sync::OnceLock;

/// CUDA's majors, the newest first, and their runtimes.
const RUNTIMES: [(u32, &CStr); 3] =
    [(13, c"libcudart.so.13"), (12, c"libcudart.so.12"), (11, c"libcudart.so.11.0")];

/// The major of the CUDA runtime that the process uses: of several the newest, without one the newest of all.
///
/// All of ours may be in a process that `cudaway run` has started, so they are asked which were called.
pub fn major() -> u32 {
    static MAJOR: OnceLock<u32> = OnceLock::new();
    let newest = RUNTIMES[0].0;
    if let Some(&known) = MAJOR.get() {
        return known;
    }
    // The answer may change until a runtime is called, which a program may do after it has asked.
    match called().or_else(theirs) {
        Some(major) => *MAJOR.get_or_init(|| major),
        None => newest,
    }
}

/// The newest of ours that was called.
fn called() -> Option<u32> {
    let ours = here(c"libcudaway_cudart.so")?;
    // SAFETY: a live handle and a C string.
    let ask = unsafe { libc::dlsym(ours, c"cudaway_runtime_majors".as_ptr()) };
    if ask.is_null() {
        return None;
    }
    // SAFETY: the function's signature (crates/libcudart/src/lib.rs).
    let ask: extern "C" fn() -> u32 = unsafe { core::mem::transmute(ask) };
    let majors = ask();
    RUNTIMES.iter().map(|(major, _)| *major).find(|major| majors & (1 << major) != 0)
}

/// The newest that is not ours.
fn theirs() -> Option<u32> {
    let is_theirs = |library: *mut c_void| {
        // SAFETY: a live handle and a C string.
        let function = unsafe { libc::dlsym(library, c"cudaMalloc".as_ptr()) };
        !function.is_null() && folder(function) != folder(theirs as *const c_void)
    };
    RUNTIMES.iter().find(|(_, name)| here(name).is_some_and(is_theirs)).map(|(major, _)| *major)
}

/// The folder of the object that has the address.
fn folder(address: *const c_void) -> Option<CString> {
    let mut path = [0; loader::place::PATH_BYTES];
    loader::place::join(address, c"", &mut path)?;
    // SAFETY: `join` ends it with a zero.
    Some(unsafe { CStr::from_ptr(path.as_ptr()) }.to_owned())
}

/// A function of a library that the process has, which stays then; nothing is loaded.
pub fn function_of(library: &CStr, name: &CStr) -> Option<NonNull<c_void>> {
    // SAFETY: a live handle and a C string.
    NonNull::new(unsafe { libc::dlsym(here(library)?, name.as_ptr()) })
}

/// The library, if the process has it. It stays: the count of its openings is not taken back.
fn here(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: a C string; nothing is loaded.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD) };
    (!handle.is_null()).then_some(handle)
}
