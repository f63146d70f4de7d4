//! What an export of the library is: those of tools/data/hip/functions.json that the CPU device has (`generated`), and a few
//! that answer otherwise. The body of the same name is in `hip_cpu::api`; a HIP function that is not here does not exist, which
//! `hip-sys` sees as `None`.

use std::ffi::{c_char, c_int, c_uint, c_void};

use cuda_abi::ahead::{cudaway_compile_t, cudaway_told_t};
use hip_sys::*;

macro_rules! exports {
    ($($name:ident($($arg:ident: $ty:ty),* $(,)?);)*) => {
        $(
            /// # Safety
            /// HIP's contract for this function.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($arg: $ty),*) -> hipError_t {
                hip_cpu::entry(stringify!($name), || exports!(@body $name $($arg),*))
            }
        )*
    };
    (@body $name:ident) => { hip_cpu::api::$name() };
    (@body $name:ident $($arg:ident),+) => {
        // SAFETY: the caller's promise.
        unsafe { hip_cpu::api::$name($(hip_cpu::given($arg, stringify!($arg))?),+) }
    };
}
pub(crate) use exports;

// These four answer something else than a call's success.

#[unsafe(no_mangle)]
pub extern "C" fn hipGetLastError() -> hipError_t {
    hip_cpu::api::hipGetLastError()
}

#[unsafe(no_mangle)]
pub extern "C" fn hipPeekAtLastError() -> hipError_t {
    hip_cpu::api::hipPeekAtLastError()
}

#[unsafe(no_mangle)]
pub extern "C" fn hipGetErrorName(hip_error: hipError_t) -> *const c_char {
    hip_cpu::api::error_text(hip_error).unwrap_or(c"hipErrorUnknown").as_ptr()
}

#[unsafe(no_mangle)]
pub extern "C" fn hipGetErrorString(hip_error: hipError_t) -> *const c_char {
    hipGetErrorName(hip_error)
}

/// See [`cuda_abi::ahead::cudaway_compile_t`], which has this signature.
///
/// # Safety
/// What that says: an image, C strings, three numbers for each block, a function that takes `data` from any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaway_compile(
    image: *const c_void,
    processor: *const c_char,
    folder: *const c_char,
    blocks: *const u32,
    n_blocks: usize,
    told: cudaway_told_t,
    data: *mut c_void,
) -> c_int {
    hip_cpu::entry("cudaway_compile", || {
        // SAFETY: the caller's promise.
        unsafe { hip_cpu::api::cudaway_compile(image, processor, folder, blocks, n_blocks, told, data) }
    })
    .0
}

const _: cudaway_compile_t = cudaway_compile;

/// See [`hip_sys::Hip::prepare`].
///
/// # Safety
/// None: a handle is looked for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaway_prepare(
    function: hipFunction_t,
    x: c_uint,
    y: c_uint,
    z: c_uint,
    is_clustered: c_int,
) -> hipError_t {
    hip_cpu::entry("cudaway_prepare", || {
        hip_cpu::api::cudaway_prepare(function, [x, y, z], is_clustered != 0)
    })
}

const _: hip_sys::Prepare = cudaway_prepare;

/// See [`hip_sys::Hip::graph`].
///
/// # Safety
/// None: handles are looked for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaway_graph(
    what: c_uint,
    graph: u64,
    stream: hipStream_t,
    other: hipStream_t,
) -> hipError_t {
    hip_cpu::entry("cudaway_graph", || hip_cpu::api::cudaway_graph(what, graph, stream, other))
}

const _: hip_sys::Graph = cudaway_graph;

/// See [`hip_sys::Hip::work`].
///
/// # Safety
/// The function may be called with `data`, once, on any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaway_work(
    stream: hipStream_t,
    function: hipHostFn_t,
    data: *mut c_void,
) -> hipError_t {
    hip_cpu::entry("cudaway_work", || hip_cpu::api::cudaway_work(stream, function, data))
}

const _: hip_sys::Work = cudaway_work;
