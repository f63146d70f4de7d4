//! Execution Control: functions of the host in stream order, the program's and those of our libraries.

use core::ffi::{c_uint, c_void};
use std::sync::Arc;

use cuda_abi::{CUDA_HOST_NODE_PARAMS, CUhostFn, CUstream};
use hip_sys::{HipError, hipError_t, hipStream_t, hipSuccess};

use super::stream::call_back;
use crate::object::Stream;
use crate::object::graph::capture::captured;
use crate::object::graph::{Op, Params};
use crate::{Error, Result};

/// A host function that is called later.
pub(crate) fn host_op(host: CUDA_HOST_NODE_PARAMS) -> Result<Arc<Op>> {
    if host.fn_.is_none() {
        return Err(Error::InvalidValue("fn"));
    }
    Ok(Op::new(Params::Host(host), |params, stream| match params {
        // SAFETY: CUDA's contract for the structure: the function may be called with its argument.
        Params::Host(host) => unsafe { enqueue_host_function(stream, host.fn_, host.userData) },
        _ => Ok(()),
    }))
}

/// Runs `fn_` on the host when the stream gets there. It may not call CUDA.
///
/// # Safety
/// `fn_` may be called with `userData` when the stream gets there, from any thread.
pub unsafe fn cuLaunchHostFunc(hStream: CUstream, fn_: CUhostFn, userData: *mut c_void) -> Result {
    if fn_.is_none() {
        return Err(Error::InvalidValue("fn"));
    }
    if captured(hStream, || host_op(CUDA_HOST_NODE_PARAMS { fn_, userData }))? {
        return Ok(());
    }
    // SAFETY: the caller's promise.
    unsafe { enqueue_host_function(hStream, fn_, userData) }
}

/// The same, whatever captures the stream: who has asked that already may not be told otherwise by a capture that began since.
///
/// # Safety
/// `fn_` may be called with `userData` when the stream gets there, from any thread.
pub(crate) unsafe fn enqueue_host_function(stream: CUstream, fn_: CUhostFn, userData: *mut c_void) -> Result {
    let stream = Stream::from_handle(stream)?;
    // SAFETY: the stream is alive; both ABIs have the same function type, and the caller promised that it may be called.
    or_call_back(&stream, fn_, userData, unsafe {
        stream.hip().hipLaunchHostFunc(stream.hip.0, fn_, userData)
    })
}

/// The same for what a library of ours computes: on the CPU device a thread that waits for the stream may run it.
///
/// # Safety
/// `fn_` may be called with `data` when the stream gets there, from any thread.
pub(crate) unsafe fn enqueue_work(stream: CUstream, fn_: CUhostFn, data: *mut c_void) -> Result {
    let stream = Stream::from_handle(stream)?;
    // SAFETY: as above.
    or_call_back(&stream, fn_, data, unsafe { stream.hip().work(stream.hip.0, fn_, data) })
}

/// HIP differs: ROCm before 5.3 has callbacks only, which are called after an error too.
fn or_call_back(
    stream: &Stream,
    fn_: CUhostFn,
    userData: *mut c_void,
    answer: std::result::Result<(), HipError>,
) -> Result {
    match answer {
        Err(HipError::Missing(_)) => {
            call_back(stream, run_host_function, Box::new(CUDA_HOST_NODE_PARAMS { fn_, userData }))
        }
        answer => Ok(answer?),
    }
}

unsafe extern "C" fn run_host_function(_stream: hipStream_t, status: hipError_t, data: *mut c_void) {
    // SAFETY: `data` is the box that `call_back` leaked; HIP calls back once.
    let host = unsafe { Box::from_raw(data.cast::<CUDA_HOST_NODE_PARAMS>()) };
    if status == hipSuccess
        && let Some(function) = host.fn_
    {
        // SAFETY: the program's function, with the argument it asked for.
        unsafe { function(host.userData) };
    }
}

/// `syncMode` says how the stream waits for the function; there is one way.
///
/// # Safety
/// `fn_` may be called with `userData` when the stream gets there, from any thread.
pub unsafe fn cuLaunchHostFunc_v2(
    hStream: CUstream,
    fn_: CUhostFn,
    userData: *mut c_void,
    _syncMode: c_uint,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { cuLaunchHostFunc(hStream, fn_, userData) }
}
