//! The null provider (crates/hip-null) as this process's only one, and something for it to load.
#![allow(dead_code, unused_imports, reason = "each user takes what it needs")]

use core::ffi::CStr;

pub use hip_null::*;
use hip_sys::Provider;

/// Chooses the null provider for this process.
pub fn choose() {
    driver::process::choose(Provider::from_table(hip(), "null"), true).unwrap();
}

/// Chooses the null provider and initialises CUDA, once per process.
pub fn start() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        choose();
        driver::api::init::cuInit(0).unwrap();
    });
}

/// A kernel with one parameter, one that cannot be translated, and a variable.
pub const PTX: &CStr = c"
.version 8.0
.target sm_80
.address_size 64

.visible .global .align 4 .b8 numbers[16];

.visible .entry good(.param .u64 p)
{
    ret;
}

.visible .entry bad(.param .u64 p)
{
    frobnicate.u32 %r1, %r2;
    ret;
}
";
