//! `cudaway_compile`, an export of `libcudaway_cpu.so`: how `cudaway compile --target cpu` reaches the compiler in there.

use core::ffi::{c_char, c_int, c_void};

/// What became of a kernel for certain blocks. The strings are there during the call alone.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct cudaway_compiled_t {
    /// The kernel's name; null where `error` is of all.
    pub kernel: *const c_char,
    /// `16x16x1`, or `flat, to 1024`.
    pub blocks: *const c_char,
    /// How it runs: `lane`, `warp`, or `simd` with its lanes.
    pub setting: *const c_char,
    /// Bytes of code.
    pub bytes: u64,
    /// 1: the folder had it already.
    pub was_there: c_int,
    /// Why there is none; else null.
    pub error: *const c_char,
}

/// Gets one kernel after the other, from any thread, never two at once.
pub type cudaway_told_t = unsafe extern "C" fn(data: *mut c_void, compiled: *const cudaway_compiled_t);

/// Compiles every kernel of `image` (PTX text, or what `compiler::image` packs) into the cache at `folder`, for `processor`: `native`,
/// `x86-64-v3`, `x86-64-v4`. `blocks` are three numbers each; without any, those are taken that are known or likely.
///
/// 0, or the error of HIP's for what could not be understood; `told` has the reason.
pub type cudaway_compile_t = unsafe extern "C" fn(
    image: *const c_void,
    processor: *const c_char,
    folder: *const c_char,
    blocks: *const u32,
    n_blocks: usize,
    told: cudaway_told_t,
    data: *mut c_void,
) -> c_int;
