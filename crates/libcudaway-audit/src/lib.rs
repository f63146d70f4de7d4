//! `libcudaway_audit.so`, for `LD_AUDIT`: whoever asks for a library of CUDA's by any name or path is shown ours, before the
//! loader looks for anything. For programs that bring their own copies along and search them in ways that a preload and its
//! claims do not reach, `dlmopen` among them. It costs a second C library in every process, so it is never the default.
//!
//! The loader gives auditors a namespace of their own: nothing of the program's is reached from here. No allocation, no locks.

mod place;

use core::ffi::{CStr, c_char, c_uint};

/// `link.h`: the newest version that we were written for.
const LAV_CURRENT: c_uint = 2;
/// `link.h`: the name as it was asked for, not one that the search has made of it.
const LA_SER_ORIG: c_uint = 1;

/// glibc before 2.35 speaks version 1 and refuses an auditor that answers with a higher one.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn la_version(version: c_uint) -> c_uint {
    place::find();
    version.min(LAV_CURRENT)
}

/// The name that is looked for in place of `name`; a null pointer would mean that there is no such library.
///
/// # Safety
/// The loader's call: `name` is a C string.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn la_objsearch(
    name: *const c_char,
    _cookie: *mut usize,
    flag: c_uint,
) -> *const c_char {
    if flag != LA_SER_ORIG || name.is_null() {
        return name;
    }
    // SAFETY: the caller's promise.
    match loader::names::of_path(unsafe { CStr::from_ptr(name) }.to_bytes()) {
        Some(ours) => place::path(ours).unwrap_or(name),
        None => name,
    }
}
