//! The calls of `libcuda.so.1` that cuBLAS stands on: all memory, streams and graphs are the driver's.

use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::OnceLock;

use cuda_abi::{
    CUDA_MEMCPY2D, CUcontext, CUdevice, CUdeviceptr, CUgraph, CUgraphNode, CUhostFn, CUresult, CUstream,
    CUstreamCaptureStatus, CUuserObject,
};
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use crate::hip::call::HipStream;
use crate::{Error, Result};

macro_rules! driver {
    ($($name:ident($($argument:ty),*);)*) => {
        pub struct Driver {
            $(pub $name: unsafe extern "C" fn($($argument),*) -> CUresult,)*
            cudaway_get_config: Option<unsafe extern "C" fn() -> *const Config>,
            pub cudaway_hip_stream: Option<unsafe extern "C" fn(CUstream, c_int, *mut HipStream) -> CUresult>,
        }

        impl Driver {
            fn of(library: &Library) -> Option<Driver> {
                // SAFETY: each field has its name's type in the driver's ABI, and the library is never closed.
                unsafe {
                    Some(Driver {
                        $($name: *library.get(concat!(stringify!($name), "\0")).ok()?,)*
                        cudaway_get_config: library.get("cudaway_get_config\0").ok().map(|symbol| *symbol),
                        cudaway_hip_stream: library.get("cudaway_hip_stream\0").ok().map(|symbol| *symbol),
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
    cuCtxGetDevice(*mut CUdevice);
    cuDevicePrimaryCtxRetain(*mut CUcontext, CUdevice);
    cuLaunchHostFunc(CUstream, CUhostFn, *mut c_void);
    cuStreamSynchronize(CUstream);
    cuStreamIsCapturing(CUstream, *mut CUstreamCaptureStatus);
    cuStreamGetCaptureInfo_v2(
        CUstream,
        *mut CUstreamCaptureStatus,
        *mut u64,
        *mut CUgraph,
        *mut *const CUgraphNode,
        *mut usize
    );
    cuUserObjectCreate(*mut CUuserObject, *mut c_void, CUhostFn, c_uint, c_uint);
    cuGraphRetainUserObject(CUgraph, CUuserObject, c_uint, c_uint);
    cuMemAllocAsync(*mut CUdeviceptr, usize, CUstream);
    cuMemFreeAsync(CUdeviceptr, CUstream);
    cuMemcpyHtoDAsync_v2(CUdeviceptr, *const c_void, usize, CUstream);
    cuMemAlloc_v2(*mut cuda_abi::CUdeviceptr, usize);
    cuMemFree_v2(cuda_abi::CUdeviceptr);
    cuMemcpy2D_v2(*const CUDA_MEMCPY2D);
    cuMemcpy2DAsync_v2(*const CUDA_MEMCPY2D, CUstream);
}

const NAME: &CStr = c"libcuda.so.1";

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

/// The one already in the process, else the one beside this library, else the one the loader finds.
fn library() -> Option<Library> {
    let open = |path: &OsStr, flags: c_int| {
        // SAFETY: a CUDA driver's constructors do not depend on who opens it.
        unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL | flags) }
            .inspect_err(|error| tracing::debug!(target: "cudaway::blas", "{}: {error}", path.display()))
            .ok()
    };
    let name = OsStr::from_bytes(NAME.to_bytes());
    let beside = || beside_us(NAME).and_then(|path| open(path.as_os_str(), 0));
    open(name, libc::RTLD_NOLOAD).or_else(beside).or_else(|| open(name, 0))
}

/// The file of that name in the directory this library was loaded from.
fn beside_us(file: &CStr) -> Option<PathBuf> {
    let mut path = [0; beside::PATH_BYTES];
    beside::join(beside_us as *const c_void, file, &mut path)?;
    // SAFETY: `join` ends it with a zero.
    let path = unsafe { CStr::from_ptr(path.as_ptr()) };
    Some(PathBuf::from(OsStr::from_bytes(path.to_bytes()))).filter(|path| path.exists())
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

/// `CudawayProvider` of crates/driver/src/api/cudaway.rs.
#[repr(C)]
struct Provider {
    path: *const c_char,
    hip_version: c_int,
    n_devices: c_int,
    n_functions: c_int,
}

/// The start of `CudawayConfig`, beside it.
#[repr(C)]
struct Config {
    size_bytes: usize,
    n_providers: usize,
    providers: *const Provider,
}

/// Whether the calling thread's device is our CPU device, whose memory is the CPU's. By the driver's own word: NVIDIA's
/// driver, which has no such call, has no such device.
pub fn is_cpu_device() -> Result<bool> {
    context(None)?;
    let driver = driver()?;
    let mut device = CUdevice::default();
    // SAFETY: the place outlives the call.
    check("cuCtxGetDevice", unsafe { (driver.cuCtxGetDevice)(&mut device) })?;
    let Some(config) = driver.cudaway_get_config else { return Ok(false) };
    // SAFETY: the driver keeps what it gives out for the process's life; the pointer and the number belong together.
    let providers = unsafe {
        match config().as_ref() {
            Some(config) if config.n_providers > 0 => {
                core::slice::from_raw_parts(config.providers, config.n_providers)
            }
            _ => return Ok(false),
        }
    };
    let mut first = 0;
    let of_device = providers.iter().find(|provider| {
        first += provider.n_devices;
        device < first
    });
    // SAFETY: a C string of the driver's.
    let path = of_device.map(|provider| unsafe { CStr::from_ptr(provider.path) });
    Ok(path.is_some_and(|path| path.to_bytes().ends_with(b"libcudaway_cpu.so")))
}
