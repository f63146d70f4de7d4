//! What the headers say with casts, which bindgen cannot evaluate.

use core::ffi::c_void;

use crate::{CUdevice, CUstream};

/// The default stream that synchronises with the other blocking streams.
pub const CU_STREAM_LEGACY: CUstream = core::ptr::without_provenance_mut(1);
/// The calling thread's own default stream.
pub const CU_STREAM_PER_THREAD: CUstream = core::ptr::without_provenance_mut(2);
pub const cudaStreamLegacy: CUstream = CU_STREAM_LEGACY;
pub const cudaStreamPerThread: CUstream = CU_STREAM_PER_THREAD;

/// `extra` of `cuLaunchKernel`: ends the list.
pub const CU_LAUNCH_PARAM_END: *mut c_void = core::ptr::null_mut();
/// `extra` of `cuLaunchKernel`: the next entry is the parameter buffer.
pub const CU_LAUNCH_PARAM_BUFFER_POINTER: *mut c_void = core::ptr::without_provenance_mut(1);
/// `extra` of `cuLaunchKernel`: the next entry points to the buffer's length.
pub const CU_LAUNCH_PARAM_BUFFER_SIZE: *mut c_void = core::ptr::without_provenance_mut(2);

/// A memory location's device number for the host.
pub const CU_DEVICE_CPU: CUdevice = -1;
/// A memory location's device number for none.
pub const CU_DEVICE_INVALID: CUdevice = -2;

/// The address of an exported function, in tables that are handed from one crate or `.so` to another.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FunctionAddress(pub *const c_void);

// SAFETY: the address of code is the same for every thread and is never written through.
unsafe impl Send for FunctionAddress {}
// SAFETY: as above.
unsafe impl Sync for FunctionAddress {}
