//! What is done when the process ends: what the user asked to be told on stderr.

use std::ffi::{CStr, CString, c_char, c_int, c_void};

unsafe extern "C" {
    static stderr: *mut libc::FILE;
    fn on_exit(call: extern "C" fn(c_int, *mut c_void), data: *mut c_void) -> c_int;
    /// libstdc++'s, which LLVM brings along.
    fn __cxa_demangle(
        name: *const c_char,
        out: *mut c_char,
        bytes: *mut usize,
        status: *mut c_int,
    ) -> *mut c_char;
}

// LLVM's and libstdc++'s global objects are never destroyed: the process may end while kernels are compiled in other
// threads, and the library is never unloaded. The build scripts of this crate (for its tests) and of libcudaway-cpu bind their registrations
// here, inside of what they link only.
core::arch::global_asm!(
    ".pushsection .text.cudaway_no_exit_handler,\"ax\",@progbits",
    ".globl cudaway_no_exit_handler",
    ".hidden cudaway_no_exit_handler",
    ".type cudaway_no_exit_handler,@function",
    "cudaway_no_exit_handler:",
    "xor eax, eax",
    "ret",
    ".size cudaway_no_exit_handler, . - cudaway_no_exit_handler",
    ".popsection",
);

/// In one write.
pub fn say(text: &str) {
    // SAFETY: C's own stream, with a buffer of the given length.
    unsafe { libc::fwrite(text.as_ptr().cast(), 1, text.len(), stderr) };
}

/// Calls `print` when the process ends; it must do little: [`say`] something, wait for a thread of ours.
pub fn register(print: extern "C" fn(c_int, *mut c_void)) {
    // SAFETY: the library stays loaded. (`atexit` is bound to nothing in this library.)
    unsafe { on_exit(print, std::ptr::null_mut()) };
}

/// A C++ name as the source has it.
pub fn demangled(name: &str) -> String {
    let Ok(mangled) = CString::new(name) else { return name.to_owned() };
    let mut status = 0;
    // SAFETY: a C string in, a string of C's allocator or null out.
    unsafe {
        let text = __cxa_demangle(mangled.as_ptr(), std::ptr::null_mut(), std::ptr::null_mut(), &mut status);
        if text.is_null() {
            return name.to_owned();
        }
        let plain = CStr::from_ptr(text).to_string_lossy().into_owned();
        libc::free(text.cast());
        plain
    }
}
