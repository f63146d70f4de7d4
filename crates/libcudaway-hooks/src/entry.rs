//! `dlsym` and `dlopen` themselves, in the processor's own words: they ask [`decide`], and jump on to libc with the two
//! arguments, the stack and the return address as they came.

use core::ffi::{c_char, c_void};

use crate::decide;

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub use aarch64::{dlopen, dlsym};
#[cfg(target_arch = "x86_64")]
pub use x86_64::{dlopen, dlsym};

/// The address of [`decide::symbol`] once this object is relocated. Before (in the `ifunc` of a library that is relocated
/// earlier) nothing here may be called, and NULL is the only answer. Then it is NULL on x86-64; on AArch64 GNU ld leaves the
/// address here that the function would have in an object loaded at 0.
static RELOCATED: unsafe extern "C" fn(*mut c_void, *const c_char, *const c_void) -> *mut c_void =
    decide::symbol;
