//! Functions of our libraries in this process, which lie beside this object.

use core::ffi::{CStr, c_char, c_void};

use loader::place::PATH_BYTES;

use crate::real;

/// The function of our library `file`; none when the library is not in the process from its start.
///
/// Ours are in front of the program's scope. A handle of a library that was never opened by `dlopen` cannot be made here:
/// glibc 2.36's `dlsym` follows a list in it that only `dlopen` makes, and `dlopen` allocates.
pub fn function(file: &CStr, name: &CStr) -> Option<*mut c_void> {
    // Each major's names have a version of its own, which is called as the library is.
    let found = real::global(name, loader::names::has_versions(file).then_some(file));
    (!found.is_null() && is_ours(found)).then_some(found)
}

/// Whether our library `file` is in the process.
pub fn is_here(file: &CStr) -> bool {
    let any = match file {
        _ if file == loader::names::DRIVER => c"cuInit",
        _ if file == loader::names::NVML => c"nvmlInit_v2",
        _ => match loader::names::families().find(|family| family.files.contains(&file)) {
            Some(family) => family.own,
            None => return false,
        },
    };
    function(file, any).is_some()
}

/// Whether the address is in an object that lies beside this one.
fn is_ours(address: *const c_void) -> bool {
    let (mut its, mut own) = ([0; PATH_BYTES], [0; PATH_BYTES]);
    let joined = loader::place::join(address, c"", &mut its).and(loader::place::join(
        is_ours as *const c_void,
        c"",
        &mut own,
    ));
    // SAFETY: `join` ends them with a zero.
    joined.is_some() && unsafe { CStr::from_ptr(its.as_ptr()) == CStr::from_ptr(own.as_ptr()) }
}

/// The path of the object behind a handle of the loader's; empty for the program itself.
///
/// # Safety
/// `handle` is one of the loader's, of an object that stays loaded.
pub unsafe fn path_of(handle: *mut c_void) -> &'static CStr {
    /// The start of glibc's `struct link_map`, which is what its handles point to.
    #[repr(C)]
    struct LinkMap {
        bias: usize,
        name: *const c_char,
    }
    // SAFETY: the caller's promise: what `dlsym` takes as a handle, which libc itself reads as this.
    let name = unsafe { (*handle.cast::<LinkMap>()).name };
    // SAFETY: the loader's string lives as long as the object.
    if name.is_null() { c"" } else { unsafe { CStr::from_ptr(name) } }
}
