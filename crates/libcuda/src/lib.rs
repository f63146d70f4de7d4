//! `libcuda.so.1`: the 729 generated exports, CUDAway's own six, and the constructor that takes static runtimes over.
//! Nothing else: what calls mean is in `driver`.

use core::ffi::{c_char, c_int, c_void};

use border::Out;
use cuda_abi::{CUhostFn, CUresult, CUstream, CudawayDevice, CudawayHipStream};
use driver::api::cudaway::{CudawayConfig, config_now, devices, forward, hip_stream, launch_host_function};

mod generated {
    //! Made by `cargo xtask codegen`.
    #[rustfmt::skip]
    pub mod exports;
}

pub use generated::exports::*;

/// The one constructor: it uses libc alone and leaves everything else to the first call.
#[cfg(not(test))]
#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: unsafe extern "C" fn(c_int, *const *const c_char, *const *const c_char) = at_load;

/// # Safety
/// As [`interpose::at_load`].
#[cfg_attr(test, expect(dead_code, reason = "tests have no constructor"))]
unsafe extern "C" fn at_load(argc: c_int, argv: *const *const c_char, environment: *const *const c_char) {
    driver::on_news(tell_takeovers);
    interpose::tell_by(tell_ptx);
    // SAFETY: the caller's promise.
    unsafe { interpose::at_load(argc, argv, environment) };
}

/// Logs the runtimes that were found in the program since the last time.
fn tell_takeovers() {
    for record in interpose::news() {
        if record.is_trouble() {
            tracing::warn!(target: "cudaway::takeover", "{record}");
        } else {
            tracing::info!(target: "cudaway::takeover", "{record}");
        }
    }
}

/// Logs that PTX took the place of machine code in a call of one of NVIDIA's compilers; once for each function.
fn tell_ptx(function: &'static str, what: &'static str) {
    driver::start();
    if driver::is_news(function, what) {
        tell_takeovers();
        tracing::info!(target: "cudaway::takeover", "{function}: {what}");
    }
}

/// Takes the library at `path` as a HIP provider; `clear` forgets those chosen before; with `verbose` a refusal is also
/// printed to stderr. Gives the number of HIP functions found, 0 when it was not taken.
///
/// # Safety
/// `path` is NULL or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaway_forward(path: *const c_char, clear: c_int, verbose: c_int) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { forward(path, clear, verbose) }
}

/// The providers in use, or chosen so far.
#[unsafe(no_mangle)]
pub extern "C" fn cudaway_get_config() -> *const CudawayConfig {
    config_now()
}

/// The taken-over static runtime whose code holds `address`, as the address its object is mapped at; NULL for any other.
/// For NULL one of those that there are, or NULL.
/// Our runtime keeps the last error of each apart, as CUDA does.
#[unsafe(no_mangle)]
pub extern "C" fn cudaway_runtime_instance(address: *const c_void) -> *const c_void {
    let found =
        if address.is_null() { interpose::any_instance() } else { interpose::instance_of(address.addr()) };
    found.map_or(core::ptr::null(), core::ptr::without_provenance)
}

/// Who all devices are, also hidden ones; see `driver::api::cudaway::devices`.
///
/// # Safety
/// `list` is NULL or has room for `room` elements of `size_bytes`; `count` is NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaway_devices(
    size_bytes: usize,
    list: *mut CudawayDevice,
    room: c_int,
    count: *mut c_int,
) -> CUresult {
    driver::entry("cudaway_devices", || {
        // SAFETY: the caller's promise.
        unsafe { devices(size_bytes, list, room, Out::new(count, "count")?) }
    })
}

/// The HIP stream behind a CUDA stream and the provider's number of its device, to which the thread is bound then. With
/// `enqueues` a capture of the stream ends, as what the caller enqueues can be in no graph.
///
/// # Safety
/// `answer` is NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaway_hip_stream(
    stream: CUstream,
    enqueues: c_int,
    answer: *mut CudawayHipStream,
) -> CUresult {
    driver::entry("cudaway_hip_stream", || {
        // SAFETY: the caller's promise.
        hip_stream(stream, enqueues != 0, unsafe { Out::new(answer, "answer") }?)
    })
}

/// Work of a library of ours, whose data the driver owns from here on; see `driver::api::cudaway::launch_host_function`.
///
/// # Safety
/// `function` and `free` take `data`, on any thread, the first on several at a time if the stream is captured.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaway_launch_host_function(
    stream: CUstream,
    function: CUhostFn,
    data: *mut c_void,
    free: CUhostFn,
) -> CUresult {
    driver::entry("cudaway_launch_host_function", || {
        // SAFETY: the caller's promise.
        unsafe { launch_host_function(stream, function, data, free) }
    })
}
