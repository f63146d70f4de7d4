//! `libcudaway_cudart.so`: the CUDA runtime's implementation, one for all majors. One export hands a forwarder
//! (`libcudart.so.N`) the functions of its major, the other says which majors were asked for.

use core::ffi::c_void;
use core::ptr;

use cuda_abi::FunctionAddress;

#[rustfmt::skip]
#[path = "generated/table_11.rs"]
mod table_11;
#[rustfmt::skip]
#[path = "generated/table_12.rs"]
mod table_12;
#[rustfmt::skip]
#[path = "generated/table_13.rs"]
mod table_13;

/// The functions of a major, in the order of its forwarder's names, and their number. NULL for a major that there is none of.
///
/// # Safety
/// `n` is NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaway_runtime_table(major: u32, n: *mut usize) -> *const *const c_void {
    let table: &[FunctionAddress] = match major {
        11 => &table_11::TABLE,
        12 => &table_12::TABLE,
        13 => &table_13::TABLE,
        _ => &[],
    };
    runtime::use_major(major);
    // SAFETY: the caller's promise.
    if let Some(n) = unsafe { n.as_mut() } {
        *n = table.len();
    }
    if table.is_empty() {
        return ptr::null();
    }
    // `FunctionAddress` is transparent.
    table.as_ptr().cast()
}

/// A bit for each major whose functions were handed out: which CUDA the process uses, for libraries whose names do not say it
/// (crates/libraries/kit/src/release.rs).
#[unsafe(no_mangle)]
pub extern "C" fn cudaway_runtime_majors() -> u32 {
    runtime::majors()
}
