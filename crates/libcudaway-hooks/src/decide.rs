//! What is redirected: whole names of CUDA's functions, and file names of CUDA's libraries.

use core::ffi::{CStr, c_char, c_void};

use crate::generated::names;
use crate::{options, ours, real, say};

/// Our function in place of what `dlsym(handle, name)` would find; null when libc is to answer.
///
/// # Safety
/// The program's call: `name` is null or a C string, `handle` what `dlsym` takes.
pub unsafe extern "C" fn symbol(
    handle: *mut c_void,
    name: *const c_char,
    caller: *const c_void,
) -> *mut c_void {
    real::find();
    let nothing = core::ptr::null_mut();
    // The scope of the program has ours in front already; who says RTLD_NEXT knows what he wants.
    let is_scope = handle == libc::RTLD_DEFAULT || handle == libc::RTLD_NEXT;
    if is_scope || name.is_null() || !options::has(options::DLSYM) {
        return nothing;
    }
    // SAFETY: the caller's promise.
    let name = unsafe { CStr::from_ptr(name) };
    // SAFETY: the caller's promise: a handle, and of no scope.
    let Some(file) = (unsafe { library(name.to_bytes(), handle) }) else { return nothing };
    let Some(found) = ours::function(file, name) else { return nothing };
    // SAFETY: the caller's promise: a handle, and of no scope.
    if loader::place::path(found) == Some(unsafe { ours::path_of(handle) }) {
        return nothing; // libc finds the same.
    }
    if options::has(options::LOG) {
        say::symbol(handle, name, caller, file);
    }
    found
}

/// The library of ours that has this function. A name of the driver or of NVML is redirected on any handle; one of the
/// runtime where the handle is a runtime, for that tells the major.
///
/// # Safety
/// `handle` is one of the loader's, of an object that stays loaded.
unsafe fn library(name: &[u8], handle: *mut c_void) -> Option<&'static CStr> {
    let among = |names: &[&str]| names.binary_search_by(|it| it.as_bytes().cmp(name)).is_ok();
    // Most names are none of these, and are told so by their first letters.
    match name {
        [b'c', b'u', b'A'..=b'Z', ..] if among(&names::DRIVER) => Some(loader::names::DRIVER),
        [b'n', b'v', b'm', b'l', ..] if among(&names::NVML) => Some(loader::names::NVML),
        [b'c', b'u', b'd', b'a', ..] | [b'_', b'_', b'c', b'u', ..] if among(&names::RUNTIME) => {
            // SAFETY: the caller's promise.
            loader::names::of_path(unsafe { ours::path_of(handle) }.to_bytes())
                .filter(|file| loader::names::RUNTIMES.contains(file))
        }
        _ => None,
    }
}

/// The file that `dlopen` is to open: `file`, or ours in its place.
///
/// # Safety
/// The program's call: `file` is null or a C string.
pub unsafe extern "C" fn file(file: *const c_char, caller: *const c_void) -> *const c_char {
    real::find();
    if file.is_null() || !options::has(options::DLOPEN) {
        return file;
    }
    // SAFETY: the caller's promise.
    let asked = unsafe { CStr::from_ptr(file) };
    // Under its SONAME the loader finds what is in the process, wherever it came from.
    match loader::names::of_path(asked.to_bytes()) {
        Some(ours) if ours != asked && ours::is_here(ours) => {
            if options::has(options::LOG) {
                say::file(asked, caller, ours);
            }
            ours.as_ptr()
        }
        _ => file,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_sorted_and_hold_whole_names() {
        for names in [&names::DRIVER[..], &names::RUNTIME, &names::NVML] {
            assert!(names.is_sorted());
        }
        assert_eq!(names::DRIVER.len(), 729);
        // SAFETY: names of the driver and of NVML, for which no handle is looked at.
        let has = |name: &[u8]| unsafe { library(name, core::ptr::null_mut()) };
        assert_eq!(has(b"cuInit"), Some(loader::names::DRIVER));
        for name in [
            "cuInitialise",
            "cuIni",
            "cudnnCreate",
            "cublasCreate_v2",
            "curl_easy_init",
            "cupsGetDests",
            "",
            "cu",
        ] {
            assert_eq!(has(name.as_bytes()), None, "{name}");
        }
    }
}
