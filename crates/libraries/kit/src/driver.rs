//! The calls of `libcuda.so.1` that libraries stand on: all memory, streams and graphs are the driver's.

use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;

use cuda_abi::{
    CUDA_MEMCPY2D, CUcontext, CUdevice, CUdeviceptr, CUevent, CUfunction, CUgraph, CUgraphNode, CUhostFn,
    CUmodule, CUpointer_attribute, CUresult, CUstream, CUstreamCaptureMode, CUstreamCaptureStatus,
    CUuserObject, CudawayHipStream,
};
use libloading::os::unix::Library;

use crate::{Error, Result};

/// A handle as a function takes it that looks it up: here it is a number, which nobody follows.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Number<H>(pub H);

/// Nodes in front, what is said of their edges, and how many they are.
type CaptureToGraph = unsafe extern "C" fn(
    CUstream,
    Number<CUgraph>,
    *const CUgraphNode,
    *const c_void,
    usize,
    CUstreamCaptureMode,
) -> CUresult;

macro_rules! driver {
    ($($name:ident($($argument:ty),*);)*) => {
        pub struct Driver {
            $(pub $name: unsafe extern "C" fn($($argument),*) -> CUresult,)*
            pub cudaway_hip_stream: Option<unsafe extern "C" fn(Number<CUstream>, c_int, *mut CudawayHipStream) -> CUresult>,
            pub cudaway_launch_host_function:
                Option<unsafe extern "C" fn(CUstream, CUhostFn, *mut c_void, CUhostFn) -> CUresult>,
            pub cuStreamBeginCaptureToGraph: Option<CaptureToGraph>,
            pub cuUserObjectCreate:
                Option<unsafe extern "C" fn(*mut CUuserObject, *mut c_void, CUhostFn, c_uint, c_uint) -> CUresult>,
            pub cuGraphRetainUserObject:
                Option<unsafe extern "C" fn(Number<CUgraph>, CUuserObject, c_uint, c_uint) -> CUresult>,
        }

        impl Driver {
            fn of(library: &Library) -> Option<Driver> {
                // SAFETY: each field has its name's type in the driver's ABI, and the library is never closed.
                unsafe {
                    Some(Driver {
                        $($name: *library.get(concat!(stringify!($name), "\0")).ok()?,)*
                        cudaway_hip_stream: library.get("cudaway_hip_stream\0").ok().map(|symbol| *symbol),
                        cudaway_launch_host_function:
                            library.get("cudaway_launch_host_function\0").ok().map(|symbol| *symbol),
                        cuStreamBeginCaptureToGraph:
                            library.get("cuStreamBeginCaptureToGraph\0").ok().map(|symbol| *symbol),
                        cuUserObjectCreate: library.get("cuUserObjectCreate\0").ok().map(|symbol| *symbol),
                        cuGraphRetainUserObject:
                            library.get("cuGraphRetainUserObject\0").ok().map(|symbol| *symbol),
                    })
                }
            }
        }
    };
}

driver! {
    cuInit(c_uint);
    cuCtxGetCurrent(*mut CUcontext);
    cuCtxSetCurrent(CUcontext);
    cuDeviceGetCount(*mut c_int);
    cuPointerGetAttribute(*mut c_void, CUpointer_attribute, CUdeviceptr);
    cuDevicePrimaryCtxRetain(*mut CUcontext, CUdevice);
    cuStreamSynchronize(Number<CUstream>);
    cuStreamIsCapturing(Number<CUstream>, *mut CUstreamCaptureStatus);
    cuCtxSynchronize_v2(CUcontext);
    cuMemAllocAsync(*mut CUdeviceptr, usize, CUstream);
    cuMemFreeAsync(CUdeviceptr, CUstream);
    cuMemcpyHtoDAsync_v2(CUdeviceptr, *const c_void, usize, CUstream);
    cuMemcpyDtoHAsync_v2(*mut c_void, CUdeviceptr, usize, CUstream);
    cuMemcpyDtoDAsync_v2(CUdeviceptr, CUdeviceptr, usize, CUstream);
    cuCtxGetDevice(*mut CUdevice);
    cuMemAlloc_v2(*mut cuda_abi::CUdeviceptr, usize);
    cuMemFree_v2(cuda_abi::CUdeviceptr);
    cuMemGetInfo_v2(*mut usize, *mut usize);
    cuMemcpy2D_v2(*const CUDA_MEMCPY2D);
    cuMemcpy2DAsync_v2(*const CUDA_MEMCPY2D, CUstream);
    cuStreamCreate(*mut CUstream, c_uint);
    cuStreamDestroy_v2(CUstream);
    cuStreamEndCapture(CUstream, *mut CUgraph);
    cuGraphGetNodes(Number<CUgraph>, *mut CUgraphNode, *mut usize);
    cuGraphDestroyNode(Number<CUgraphNode>);
    cuModuleLoadData(*mut CUmodule, *const c_void);
    cuModuleUnload(CUmodule);
    cuModuleGetFunction(*mut CUfunction, CUmodule, *const c_char);
    cuLaunchKernel(
        CUfunction, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, CUstream, *mut *mut c_void, *mut *mut c_void
    );
    cuEventCreate(*mut CUevent, c_uint);
    cuEventRecord(CUevent, CUstream);
    cuEventDestroy_v2(CUevent);
    cuStreamWaitEvent(CUstream, CUevent, c_uint);
    cuThreadExchangeStreamCaptureMode(*mut CUstreamCaptureMode);
    cuStreamGetCaptureInfo_v2(
        CUstream, *mut CUstreamCaptureStatus, *mut u64, *mut CUgraph, *mut *const CUgraphNode, *mut usize
    );
}

/// The process's driver, initialised.
pub fn driver() -> Result<&'static Driver> {
    static DRIVER: OnceLock<Option<Driver>> = OnceLock::new();
    let driver = DRIVER.get_or_init(|| {
        let library = library()?;
        let driver = Driver::of(&library);
        // It has threads and handlers of its own: it stays.
        std::mem::forget(library);
        // SAFETY: 0 is the one value that the manual has.
        driver.filter(|driver| unsafe { (driver.cuInit)(0) } == CUresult::CUDA_SUCCESS)
    });
    driver.as_ref().ok_or(Error::NoDevice("libcuda.so.1 cannot be opened or finds no device"))
}

fn library() -> Option<Library> {
    let failed =
        |path: &CStr, reason: &CStr| tracing::debug!(target: "cudaway::library", "{path:?}: {reason:?}");
    let handle = loader::place::open(library as *const c_void, c"libcuda.so.1", failed)?;
    // SAFETY: the loader's handle, which nobody else closes.
    Some(unsafe { Library::from_raw(handle.as_ptr()) })
}

pub fn check(call: &'static str, code: CUresult) -> Result {
    if code == CUresult::CUDA_SUCCESS { Ok(()) } else { Err(Error::Driver { call, code }) }
}

/// The calling thread's context. A thread that has none gets `otherwise`, or the first device's primary one, as a thread
/// that uses the runtime does.
pub fn context(otherwise: Option<CUcontext>) -> Result<CUcontext> {
    let driver = driver()?;
    let mut context = CUcontext::default();
    // SAFETY: `context` outlives the call.
    check("cuCtxGetCurrent", unsafe { (driver.cuCtxGetCurrent)(&mut context) })?;
    if !context.is_null() {
        return Ok(context);
    }
    match otherwise {
        Some(known) => context = known,
        // SAFETY: as above.
        None => check("cuDevicePrimaryCtxRetain", unsafe {
            (driver.cuDevicePrimaryCtxRetain)(&mut context, CUdevice::default())
        })?,
    }
    // SAFETY: a live context.
    check("cuCtxSetCurrent", unsafe { (driver.cuCtxSetCurrent)(context) })?;
    Ok(context)
}

/// The context that programs with a runtime have on a device. It stays retained, as the runtime keeps it.
pub fn primary_context(device: CUdevice) -> Result<Number<CUcontext>> {
    let mut context = CUcontext::default();
    // SAFETY: `context` outlives the call.
    check("cuDevicePrimaryCtxRetain", unsafe { (driver()?.cuDevicePrimaryCtxRetain)(&mut context, device) })?;
    Ok(Number(context))
}

/// Calls `body` in a context; the calling thread has the one before again then.
pub fn inside<R, E: From<Error>>(
    context: Number<CUcontext>,
    body: impl FnOnce() -> core::result::Result<R, E>,
) -> core::result::Result<R, E> {
    let (driver, mut before) = (driver()?, CUcontext::default());
    // SAFETY: the place outlives the call.
    check("cuCtxGetCurrent", unsafe { (driver.cuCtxGetCurrent)(&mut before) })?;
    // SAFETY: a live context.
    check("cuCtxSetCurrent", unsafe { (driver.cuCtxSetCurrent)(context.0) })?;
    let answer = body();
    // SAFETY: none, or a context that was live.
    check("cuCtxSetCurrent", unsafe { (driver.cuCtxSetCurrent)(before) })?;
    answer
}
