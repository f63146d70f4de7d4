//! Handles, and what the library says of itself. Source: cuDNN manual, "cudnn_graph library" (9), "cudnn_ops_infer library" (8).

use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ffi::CString;

use border::{OptOut, Out};
use parking_lot::Mutex;

use crate::face::{self, Face};
use crate::handle::{self, Context};
use crate::types::*;
use crate::{Error, Result};

pub fn cudnnCreate(handle: Out<'_, cudnnHandle_t>) -> Result {
    handle.write(handle::add(Context::new()?));
    Ok(())
}

/// Waits for what the stream has to do.
pub fn cudnnDestroy(handle: cudnnHandle_t) -> Result {
    if handle.is_null() {
        return Ok(());
    }
    handle::get(handle)?.synchronize()?;
    handle::remove(handle)
}

pub fn cudnnSetStream(handle: cudnnHandle_t, streamId: cudaStream_t) -> Result {
    handle::get(handle)?.set_stream(streamId);
    Ok(())
}

pub fn cudnnGetStream(handle: cudnnHandle_t, streamId: Out<'_, cudaStream_t>) -> Result {
    streamId.write(handle::get(handle)?.stream());
    Ok(())
}

pub fn cudnnGetVersion() -> usize {
    face::current().version()
}

/// That of the process's runtime: the library was not compiled with one.
pub fn cudnnGetCudartVersion() -> usize {
    1000 * kit::release::major() as usize
}

/// The newest architecture that is known, in hundreds: any GPU is the CPU here.
pub fn cudnnGetMaxDeviceVersion() -> usize {
    match face::current() {
        Face::Eight => 900,
        Face::Nine => 1210,
    }
}

pub fn cudnnGetProperty(type_: libraryPropertyType, value: Out<'_, c_int>) -> Result {
    let [major, minor, patch] = face::current().release();
    value.write(match type_ {
        libraryPropertyType::MAJOR_VERSION => major,
        libraryPropertyType::MINOR_VERSION => minor,
        libraryPropertyType::PATCH_LEVEL => patch,
        _ => return Err(Error::BadParam("there is no such property")),
    });
    Ok(())
}

macro_rules! names {
    ($status:expr, $($name:ident = $number:literal,)*) => {
        match $status {
            $($number => {
                const NAME: &CStr = match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                    Ok(name) => name,
                    Err(_) => c"",
                };
                NAME
            })*
            _ => c"CUDNN_UNKNOWN_STATUS",
        }
    };
}

/// The status's name.
pub fn cudnnGetErrorString(status: cudnnStatus_t) -> *const c_char {
    let name = match face::current() {
        Face::Eight => names!(
            status.0,
            CUDNN_STATUS_SUCCESS = 0,
            CUDNN_STATUS_NOT_INITIALIZED = 1,
            CUDNN_STATUS_ALLOC_FAILED = 2,
            CUDNN_STATUS_BAD_PARAM = 3,
            CUDNN_STATUS_INTERNAL_ERROR = 4,
            CUDNN_STATUS_INVALID_VALUE = 5,
            CUDNN_STATUS_ARCH_MISMATCH = 6,
            CUDNN_STATUS_MAPPING_ERROR = 7,
            CUDNN_STATUS_EXECUTION_FAILED = 8,
            CUDNN_STATUS_NOT_SUPPORTED = 9,
            CUDNN_STATUS_LICENSE_ERROR = 10,
            CUDNN_STATUS_RUNTIME_PREREQUISITE_MISSING = 11,
            CUDNN_STATUS_RUNTIME_IN_PROGRESS = 12,
            CUDNN_STATUS_RUNTIME_FP_OVERFLOW = 13,
            CUDNN_STATUS_VERSION_MISMATCH = 14,
        ),
        Face::Nine => names!(
            status.0,
            CUDNN_STATUS_SUCCESS = 0,
            CUDNN_STATUS_NOT_INITIALIZED = 1001,
            CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH = 1002,
            CUDNN_STATUS_SERIALIZATION_VERSION_MISMATCH = 1003,
            CUDNN_STATUS_DEPRECATED = 1004,
            CUDNN_STATUS_LICENSE_ERROR = 1005,
            CUDNN_STATUS_RUNTIME_IN_PROGRESS = 1006,
            CUDNN_STATUS_RUNTIME_FP_OVERFLOW = 1007,
            CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED = 1008,
            CUDNN_STATUS_BAD_PARAM = 2000,
            CUDNN_STATUS_INVALID_VALUE = 2001,
            CUDNN_STATUS_BAD_PARAM_NULL_POINTER = 2002,
            CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER = 2003,
            CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED = 2004,
            CUDNN_STATUS_BAD_PARAM_OUT_OF_BOUND = 2005,
            CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT = 2006,
            CUDNN_STATUS_BAD_PARAM_STREAM_MISMATCH = 2007,
            CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH = 2008,
            CUDNN_STATUS_BAD_PARAM_DUPLICATED_ENTRIES = 2009,
            CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE = 2010,
            CUDNN_STATUS_BAD_PARAM_CUDA_GRAPH_MISMATCH = 2011,
            CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE = 2012,
            CUDNN_STATUS_NOT_SUPPORTED = 3000,
            CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN = 3001,
            CUDNN_STATUS_NOT_SUPPORTED_SHAPE = 3002,
            CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE = 3003,
            CUDNN_STATUS_NOT_SUPPORTED_LAYOUT = 3004,
            CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDA_DRIVER = 3005,
            CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDART = 3006,
            CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH = 3007,
            CUDNN_STATUS_NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING = 3008,
            CUDNN_STATUS_NOT_SUPPORTED_SUBLIBRARY_UNAVAILABLE = 3009,
            CUDNN_STATUS_NOT_SUPPORTED_SHARED_MEMORY_INSUFFICIENT = 3010,
            CUDNN_STATUS_NOT_SUPPORTED_PADDING = 3011,
            CUDNN_STATUS_NOT_SUPPORTED_BAD_LAUNCH_PARAM = 3012,
            CUDNN_STATUS_NOT_SUPPORTED_CUDA_GRAPH_NATIVE_API = 3013,
            CUDNN_STATUS_NOT_SUPPORTED_INVALID_DYNAMIC_SHAPE = 3014,
            CUDNN_STATUS_INTERNAL_ERROR = 4000,
            CUDNN_STATUS_INTERNAL_ERROR_COMPILATION_FAILED = 4001,
            CUDNN_STATUS_INTERNAL_ERROR_UNEXPECTED_VALUE = 4002,
            CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED = 4003,
            CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED = 4004,
            CUDNN_STATUS_INTERNAL_ERROR_BAD_LAUNCH_PARAM = 4005,
            CUDNN_STATUS_INTERNAL_ERROR_TEXTURE_CREATION_FAILED = 4006,
            CUDNN_STATUS_EXECUTION_FAILED = 5000,
            CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER = 5001,
            CUDNN_STATUS_EXECUTION_FAILED_CUBLAS = 5002,
            CUDNN_STATUS_EXECUTION_FAILED_CUDART = 5003,
            CUDNN_STATUS_EXECUTION_FAILED_CURAND = 5004,
        ),
    };
    name.as_ptr()
}

/// What the thread's last failed call said; each is told once.
///
/// # Safety
/// There is room for so many bytes.
pub unsafe fn cudnnGetLastErrorString(message: *mut c_char, max_size: usize) {
    let last = crate::error::take_last();
    if message.is_null() || max_size == 0 {
        return;
    }
    let bytes = &last.as_bytes()[..last.len().min(max_size - 1)];
    // SAFETY: cuDNN's contract: so many bytes of the program's.
    unsafe {
        core::ptr::copy_nonoverlapping(bytes.as_ptr(), message.cast(), bytes.len());
        message.add(bytes.len()).write(0);
    }
}

/// Errors are known when a call returns: there are none left to be asked for.
pub fn cudnnQueryRuntimeError(
    handle: cudnnHandle_t,
    rstatus: Out<'_, cudnnStatus_t>,
    mode: cudnnErrQueryMode_t,
    _tag: *mut cudnnRuntimeTag_t,
) -> Result {
    let context = handle::get(handle)?;
    match mode {
        cudnnErrQueryMode_t::CUDNN_ERRQUERY_BLOCKING => context.synchronize()?,
        cudnnErrQueryMode_t::CUDNN_ERRQUERY_RAWCODE | cudnnErrQueryMode_t::CUDNN_ERRQUERY_NONBLOCKING => {}
        _ => return Err(Error::BadParam("there is no such mode")),
    }
    rstatus.write(cudnnStatus_t::CUDNN_STATUS_SUCCESS);
    Ok(())
}

/// A program's function that hears of calls that fail.
#[derive(Clone, Copy)]
struct Callback {
    mask: c_uint,
    data: *mut c_void,
    function: cudnnCallback_t,
}

// SAFETY: the program's own data, which it gave for calls from any thread.
unsafe impl Send for Callback {}

static CALLBACK: Mutex<Callback> =
    Mutex::new(Callback { mask: 0, data: core::ptr::null_mut(), function: None });

pub fn cudnnSetCallback(mask: c_uint, udata: *mut c_void, fptr: cudnnCallback_t) -> Result {
    *CALLBACK.lock() = Callback { mask, data: udata, function: fptr };
    Ok(())
}

pub fn cudnnGetCallback(
    mask: OptOut<'_, c_uint>,
    udata: OptOut<'_, *mut c_void>,
    fptr: OptOut<'_, cudnnCallback_t>,
) -> Result {
    let callback = *CALLBACK.lock();
    mask.write(callback.mask);
    udata.write(callback.data);
    fptr.write(callback.function);
    Ok(())
}

/// Calls the program's function, where it asked to hear of errors.
pub(crate) fn tell_callback(name: &'static str, error: &Error) {
    let callback = *CALLBACK.lock();
    let severity = cudnnSeverity_t::CUDNN_SEV_ERROR;
    let Some(function) = callback.function.filter(|_| callback.mask & (1 << severity.0) != 0) else { return };
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let debug = cudnnDebug_t {
        cudnn_version: face::current().version() as c_uint,
        cudnnStatus: error.code(),
        time_sec: now.as_secs() as c_uint,
        time_usec: now.subsec_micros(),
        time_delta: 0,
        handle: core::ptr::null_mut(),
        stream: cudaStream_t::default(),
        pid: std::process::id().into(),
        tid: 0,
        cudaDeviceId: -1,
        reserved: [0; 15],
    };
    let message = CString::new(format!("{name}: {error}")).unwrap_or_default();
    // SAFETY: the program's function by its own word; what it gets outlives the call.
    unsafe { function(severity, callback.data, &debug, message.as_ptr()) };
}

/// The library is one object: its parts are of one version.
pub fn cudnnGraphVersionCheck() -> Result {
    Ok(())
}

pub use cudnnGraphVersionCheck as cudnnOpsVersionCheck;
pub use cudnnGraphVersionCheck as cudnnCnnVersionCheck;
pub use cudnnGraphVersionCheck as cudnnAdvVersionCheck;
pub use cudnnGraphVersionCheck as cudnnOpsInferVersionCheck;
pub use cudnnGraphVersionCheck as cudnnOpsTrainVersionCheck;
pub use cudnnGraphVersionCheck as cudnnCnnInferVersionCheck;
pub use cudnnGraphVersionCheck as cudnnCnnTrainVersionCheck;
pub use cudnnGraphVersionCheck as cudnnAdvInferVersionCheck;
pub use cudnnGraphVersionCheck as cudnnAdvTrainVersionCheck;
pub use cudnnGraphVersionCheck as cudnnSubquadraticOpsVersionCheck;
