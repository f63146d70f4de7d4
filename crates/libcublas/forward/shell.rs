// What cuBLAS's and cuBLASLt's shells are beside their names. Included by each shell's lib.rs, so that they share no state.

use core::ffi::{c_char, c_int};

// CUBLAS_STATUS_NOT_SUPPORTED
trampoline::shell!(c"libcudaway_blas.so", c"CUDAWAY_BLAS", not_supported: 15);

/// Puts the library at `path` in front of what answers this library's names, for the names that it has; `clear` takes back
/// what was put there before. Gives the number of names that are its own now, 0 when it cannot be used.
///
/// # Safety
/// `path` is NULL or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaway_forward(path: *const c_char, clear: c_int, _verbose: c_int) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { LIBRARY.forward(path, clear != 0) }
}

/// The file that answers a name of this library's, or NULL.
///
/// # Safety
/// `name` is a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaway_backend_of(name: *const c_char) -> *const c_char {
    // SAFETY: the caller's promise.
    LIBRARY.backend_of(unsafe { core::ffi::CStr::from_ptr(name) })
}
