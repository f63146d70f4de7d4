//! A HIP provider for tests and benches: memory is malloc, copies are memcpy, kernels do nothing but count.
//!
//! It answers at once, so what a call costs on top of it is the driver's own work. Inside a test's process it is a table
//! ([`hip`]); `libhip_null.so` is one more library with the HIP ABI.
#![allow(non_snake_case, non_upper_case_globals, reason = "HIP's names")]

use core::ffi::{CStr, c_char, c_int, c_uchar, c_uint, c_ushort, c_void};
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};

use hip_sys::*;

pub static LAUNCHES: AtomicUsize = AtomicUsize::new(0);
/// Calls of `hipStreamSynchronize`.
pub static WAITS: AtomicUsize = AtomicUsize::new(0);
/// Objects made and not destroyed: memory, streams, events, modules.
pub static LIVE: AtomicI64 = AtomicI64::new(0);
/// The device of each `hipSetDevice`, last one.
pub static DEVICE: AtomicUsize = AtomicUsize::new(usize::MAX);
/// The first argument of the last launch that had a list of them.
pub static LAST_ARGUMENT: AtomicU64 = AtomicU64::new(0);
/// A word that every launch sets to 0, if it is not null: what a kernel may do to a condition.
pub static ON_LAUNCH: AtomicUsize = AtomicUsize::new(0);
/// What ended the last launch's `extra`.
pub static LAST_EXTRA_END: AtomicUsize = AtomicUsize::new(0);

pub const N_DEVICES: c_int = 2;

fn made<T>() -> *mut T {
    LIVE.fetch_add(1, Ordering::Relaxed);
    // SAFETY: malloc of a small block, used as a name only.
    unsafe { libc::malloc(16) }.cast()
}

/// # Safety
/// `object` came from `made` or from `hipMalloc`, and nobody uses it any more.
unsafe fn gone<T>(object: *mut T) -> hipError_t {
    LIVE.fetch_sub(1, Ordering::Relaxed);
    // SAFETY: the caller's promise: it came from `made` or from `hipMalloc`, both malloc.
    unsafe { libc::free(object.cast()) };
    hipSuccess
}

#[unsafe(no_mangle)]
unsafe extern "C" fn hipInit(_: c_uint) -> hipError_t {
    hipSuccess
}
#[unsafe(no_mangle)]
unsafe extern "C" fn hipRuntimeGetVersion(version: *mut c_int) -> hipError_t {
    // SAFETY: the driver calls with what HIP asks for.
    unsafe { *version = 60_443_484 };
    hipSuccess
}
#[unsafe(no_mangle)]
unsafe extern "C" fn hipGetDeviceCount(count: *mut c_int) -> hipError_t {
    // SAFETY: the driver calls with what HIP asks for.
    unsafe { *count = N_DEVICES };
    hipSuccess
}
#[unsafe(no_mangle)]
unsafe extern "C" fn hipGetDevicePropertiesR0600(prop: *mut c_void, device: c_int) -> hipError_t {
    // SAFETY: the driver calls with what HIP asks for.
    let prop = unsafe { &mut *prop.cast::<hipDeviceProp_tR0600>() };
    let name = if device == 0 { c"Null device 0" } else { c"Null device 1" };
    for (to, from) in prop.name.iter_mut().zip(name.to_bytes()) {
        *to = *from as c_char;
    }
    for (to, from) in prop.gcnArchName.iter_mut().zip(b"cpu") {
        *to = *from as c_char;
    }
    prop.totalGlobalMem = 1 << 30;
    hipSuccess
}
#[unsafe(no_mangle)]
unsafe extern "C" fn hipDeviceGetAttribute(value: *mut c_int, attribute: c_int, _: c_int) -> hipError_t {
    let answer = match attribute {
        hipDeviceAttributeMaxThreadsPerBlock => 1024,
        hipDeviceAttributeMaxBlockDimX | hipDeviceAttributeMaxBlockDimY => 1024,
        hipDeviceAttributeMaxBlockDimZ => 64,
        hipDeviceAttributeMaxGridDimX => c_int::MAX,
        hipDeviceAttributeMaxGridDimY | hipDeviceAttributeMaxGridDimZ => 65535,
        hipDeviceAttributeMaxSharedMemoryPerBlock => 49152,
        hipDeviceAttributeSharedMemPerBlockOptin => 65536,
        hipDeviceAttributeMultiprocessorCount => 4,
        hipDeviceAttributePciBusId => 10,
        _ => return hipErrorInvalidValue,
    };
    // SAFETY: the driver calls with what HIP asks for.
    unsafe { *value = answer };
    hipSuccess
}
#[unsafe(no_mangle)]
unsafe extern "C" fn hipSetDevice(device: c_int) -> hipError_t {
    DEVICE.store(device as usize, Ordering::Relaxed);
    hipSuccess
}
#[unsafe(no_mangle)]
unsafe extern "C" fn hipDeviceSynchronize() -> hipError_t {
    hipSuccess
}
#[unsafe(no_mangle)]
unsafe extern "C" fn hipMalloc(at: *mut *mut c_void, bytes: usize) -> hipError_t {
    if bytes > 1 << 40 {
        return hipErrorOutOfMemory;
    }
    LIVE.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the driver calls with what HIP asks for.
    unsafe { *at = libc::malloc(bytes) };
    hipSuccess
}
#[unsafe(no_mangle)]
unsafe extern "C" fn hipMallocManaged(at: *mut *mut c_void, bytes: usize, _: c_uint) -> hipError_t {
    // SAFETY: the driver calls with what HIP asks for.
    unsafe { hipMalloc(at, bytes) }
}
#[unsafe(no_mangle)]
unsafe extern "C" fn hipHostMalloc(at: *mut *mut c_void, bytes: usize, _: c_uint) -> hipError_t {
    // SAFETY: the driver calls with what HIP asks for.
    unsafe { hipMalloc(at, bytes) }
}
/// Bytes reserved and not given back.
pub static RESERVED: AtomicUsize = AtomicUsize::new(0);

/// Grants every wish, else the same place.
#[unsafe(no_mangle)]
unsafe extern "C" fn hipMemAddressReserve(
    at: *mut *mut c_void,
    bytes: usize,
    _: usize,
    wish: *mut c_void,
    _: u64,
) -> hipError_t {
    RESERVED.fetch_add(bytes, Ordering::Relaxed);
    // SAFETY: the driver calls with what HIP asks for.
    unsafe { *at = if wish.is_null() { core::ptr::without_provenance_mut(1 << 44) } else { wish } };
    hipSuccess
}
#[unsafe(no_mangle)]
unsafe extern "C" fn hipMemAddressFree(_: *mut c_void, bytes: usize) -> hipError_t {
    RESERVED.fetch_sub(bytes, Ordering::Relaxed);
    hipSuccess
}
#[unsafe(no_mangle)]
unsafe extern "C" fn hipHostRegister(_: *mut c_void, _: usize, _: c_uint) -> hipError_t {
    LIVE.fetch_add(1, Ordering::Relaxed);
    hipSuccess
}
#[unsafe(no_mangle)]
unsafe extern "C" fn hipHostUnregister(_: *mut c_void) -> hipError_t {
    LIVE.fetch_sub(1, Ordering::Relaxed);
    hipSuccess
}
#[unsafe(no_mangle)]
unsafe extern "C" fn hipHostGetDevicePointer(
    device: *mut *mut c_void,
    host: *mut c_void,
    _: c_uint,
) -> hipError_t {
    // SAFETY: the driver calls with what HIP asks for.
    unsafe { *device = host };
    hipSuccess
}
#[unsafe(no_mangle)]
unsafe extern "C" fn hipFree(at: *mut c_void) -> hipError_t {
    // SAFETY: the driver destroys what it was given, once.
    unsafe { gone(at) }
}
#[unsafe(no_mangle)]
unsafe extern "C" fn hipHostFree(at: *mut c_void) -> hipError_t {
    // SAFETY: the driver destroys what it was given, once.
    unsafe { gone(at) }
}
#[unsafe(no_mangle)]
unsafe extern "C" fn hipMemcpy(to: *mut c_void, from: *const c_void, n: usize, _: c_int) -> hipError_t {
    // SAFETY: the driver calls with what HIP asks for.
    unsafe { core::ptr::copy(from.cast::<u8>(), to.cast::<u8>(), n) };
    hipSuccess
}
#[unsafe(no_mangle)]
unsafe extern "C" fn hipMemcpyAsync(
    to: *mut c_void,
    from: *const c_void,
    n: usize,
    kind: c_int,
    _: hipStream_t,
) -> hipError_t {
    // SAFETY: the driver calls with what HIP asks for.
    unsafe { hipMemcpy(to, from, n, kind) }
}
#[unsafe(no_mangle)]
unsafe extern "C" fn hipMemcpy2DAsync(
    to: *mut c_void,
    to_pitch: usize,
    from: *const c_void,
    from_pitch: usize,
    width: usize,
    height: usize,
    kind: c_int,
    _: hipStream_t,
) -> hipError_t {
    for y in 0..height {
        // SAFETY: the driver calls with what HIP asks for.
        let (to, from) = unsafe { (to.byte_add(y * to_pitch), from.byte_add(y * from_pitch)) };
        // SAFETY: the driver calls with what HIP asks for.
        let _ = unsafe { hipMemcpy(to, from, width, kind) };
    }
    hipSuccess
}
#[unsafe(no_mangle)]
unsafe extern "C" fn hipMemsetD8Async(
    to: *mut c_void,
    value: c_uchar,
    n: usize,
    _: hipStream_t,
) -> hipError_t {
    // SAFETY: the driver calls with what HIP asks for.
    unsafe { core::slice::from_raw_parts_mut(to.cast::<u8>(), n) }.fill(value);
    hipSuccess
}
#[unsafe(no_mangle)]
unsafe extern "C" fn hipMemsetD16Async(
    to: *mut c_void,
    value: c_ushort,
    n: usize,
    _: hipStream_t,
) -> hipError_t {
    // SAFETY: the driver calls with what HIP asks for.
    unsafe { core::slice::from_raw_parts_mut(to.cast::<u16>(), n) }.fill(value);
    hipSuccess
}
#[unsafe(no_mangle)]
unsafe extern "C" fn hipMemsetD32Async(
    to: *mut c_void,
    value: c_int,
    n: usize,
    _: hipStream_t,
) -> hipError_t {
    // SAFETY: the driver calls with what HIP asks for.
    unsafe { core::slice::from_raw_parts_mut(to.cast::<i32>(), n) }.fill(value);
    hipSuccess
}
#[unsafe(no_mangle)]
unsafe extern "C" fn hipMemGetInfo(free: *mut usize, total: *mut usize) -> hipError_t {
    // SAFETY: the driver calls with what HIP asks for.
    unsafe { (*free, *total) = (1 << 29, 1 << 30) };
    hipSuccess
}
#[unsafe(no_mangle)]
unsafe extern "C" fn hipStreamCreateWithFlags(stream: *mut hipStream_t, _: c_uint) -> hipError_t {
    // SAFETY: the driver calls with what HIP asks for.
    unsafe { *stream = made() };
    hipSuccess
}
#[unsafe(no_mangle)]
unsafe extern "C" fn hipStreamCreateWithPriority(
    stream: *mut hipStream_t,
    flags: c_uint,
    _: c_int,
) -> hipError_t {
    // SAFETY: the driver calls with what HIP asks for.
    unsafe { hipStreamCreateWithFlags(stream, flags) }
}
#[unsafe(no_mangle)]
unsafe extern "C" fn hipDeviceGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int) -> hipError_t {
    // SAFETY: the driver calls with what HIP asks for.
    unsafe { (*least, *greatest) = (0, -1) };
    hipSuccess
}
#[unsafe(no_mangle)]
unsafe extern "C" fn hipStreamDestroy(stream: hipStream_t) -> hipError_t {
    // SAFETY: the driver destroys what it was given, once.
    unsafe { gone(stream) }
}
#[unsafe(no_mangle)]
unsafe extern "C" fn hipStreamSynchronize(_: hipStream_t) -> hipError_t {
    WAITS.fetch_add(1, Ordering::Relaxed);
    hipSuccess
}
#[unsafe(no_mangle)]
unsafe extern "C" fn hipStreamQuery(_: hipStream_t) -> hipError_t {
    hipErrorNotReady
}
#[unsafe(no_mangle)]
unsafe extern "C" fn hipStreamWaitEvent(_: hipStream_t, _: hipEvent_t, _: c_uint) -> hipError_t {
    hipSuccess
}
#[unsafe(no_mangle)]
unsafe extern "C" fn hipStreamAddCallback(
    stream: hipStream_t,
    callback: hipStreamCallback_t,
    data: *mut c_void,
    _: c_uint,
) -> hipError_t {
    // SAFETY: the driver calls with what HIP asks for.
    unsafe { callback.unwrap()(stream, hipSuccess, data) };
    hipSuccess
}
#[unsafe(no_mangle)]
unsafe extern "C" fn hipEventCreateWithFlags(event: *mut hipEvent_t, _: c_uint) -> hipError_t {
    // SAFETY: the driver calls with what HIP asks for.
    unsafe { *event = made() };
    hipSuccess
}
#[unsafe(no_mangle)]
unsafe extern "C" fn hipEventDestroy(event: hipEvent_t) -> hipError_t {
    // SAFETY: the driver destroys what it was given, once.
    unsafe { gone(event) }
}
#[unsafe(no_mangle)]
unsafe extern "C" fn hipEventRecord(_: hipEvent_t, _: hipStream_t) -> hipError_t {
    hipSuccess
}
#[unsafe(no_mangle)]
unsafe extern "C" fn hipEventQuery(_: hipEvent_t) -> hipError_t {
    hipSuccess
}
#[unsafe(no_mangle)]
unsafe extern "C" fn hipEventSynchronize(_: hipEvent_t) -> hipError_t {
    hipSuccess
}
#[unsafe(no_mangle)]
unsafe extern "C" fn hipEventElapsedTime(ms: *mut f32, _: hipEvent_t, _: hipEvent_t) -> hipError_t {
    // SAFETY: the driver calls with what HIP asks for.
    unsafe { *ms = 1.5 };
    hipSuccess
}
#[unsafe(no_mangle)]
unsafe extern "C" fn hipModuleLoadData(module: *mut hipModule_t, image: *const c_void) -> hipError_t {
    // SAFETY: the driver calls with what HIP asks for.
    let header = unsafe { &*image.cast::<[u8; 24]>() };
    if !header.starts_with(b"CUDAWAY\x01") {
        return hipErrorInvalidImage;
    }
    // SAFETY: the driver calls with what HIP asks for.
    unsafe { *module = made() };
    hipSuccess
}
#[unsafe(no_mangle)]
unsafe extern "C" fn hipModuleUnload(module: hipModule_t) -> hipError_t {
    // SAFETY: the driver destroys what it was given, once.
    unsafe { gone(module) }
}
#[unsafe(no_mangle)]
unsafe extern "C" fn hipModuleGetFunction(
    function: *mut hipFunction_t,
    module: hipModule_t,
    name: *const c_char,
) -> hipError_t {
    // SAFETY: the driver calls with what HIP asks for.
    let name = unsafe { CStr::from_ptr(name) };
    if name.is_empty() {
        return hipErrorNotFound;
    }
    // A provider sees what it cannot translate.
    if name.to_bytes().starts_with(b"bad") {
        return hipErrorInvalidKernelFile;
    }
    // SAFETY: the driver calls with what HIP asks for.
    unsafe { *function = module.cast() };
    hipSuccess
}
#[unsafe(no_mangle)]
unsafe extern "C" fn hipModuleGetGlobal(
    at: *mut hipDeviceptr_t,
    bytes: *mut usize,
    module: hipModule_t,
    _: *const c_char,
) -> hipError_t {
    // SAFETY: the driver calls with what HIP asks for.
    unsafe { (*at, *bytes) = (module.cast(), 16) };
    hipSuccess
}
#[unsafe(no_mangle)]
unsafe extern "C" fn hipFuncGetAttribute(
    value: *mut c_int,
    attribute: c_int,
    _: hipFunction_t,
) -> hipError_t {
    // SAFETY: the driver calls with what HIP asks for.
    unsafe { *value = if attribute == HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK { 1024 } else { 0 } };
    hipSuccess
}
#[unsafe(no_mangle)]
unsafe extern "C" fn hipModuleLaunchKernel(
    _: hipFunction_t,
    _: c_uint,
    _: c_uint,
    _: c_uint,
    _: c_uint,
    _: c_uint,
    _: c_uint,
    _: c_uint,
    _: hipStream_t,
    params: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> hipError_t {
    LAUNCHES.fetch_add(1, Ordering::Relaxed);
    let word = core::ptr::with_exposed_provenance_mut::<u32>(ON_LAUNCH.load(Ordering::Relaxed));
    if !word.is_null() {
        // SAFETY: the test's own word.
        unsafe { word.write(0) };
    }
    if !params.is_null() {
        // SAFETY: the driver calls with what HIP asks for.
        LAST_ARGUMENT.store(unsafe { *(*params).cast::<u64>() }, Ordering::Relaxed);
    }
    if !extra.is_null() {
        // SAFETY: the driver calls with what HIP asks for.
        LAST_EXTRA_END.store(unsafe { *extra.add(4) }.addr(), Ordering::Relaxed);
    }
    hipSuccess
}

#[unsafe(no_mangle)]
unsafe extern "C" fn hipModuleLaunchCooperativeKernel(
    function: hipFunction_t,
    gx: c_uint,
    gy: c_uint,
    gz: c_uint,
    bx: c_uint,
    by: c_uint,
    bz: c_uint,
    shared: c_uint,
    stream: hipStream_t,
    params: *mut *mut c_void,
) -> hipError_t {
    let none = core::ptr::null_mut();
    // SAFETY: the driver calls with what HIP asks for.
    unsafe { hipModuleLaunchKernel(function, gx, gy, gz, bx, by, bz, shared, stream, params, none) }
}
/// The cluster that the last launch with attributes asked for, its three numbers in 16 bits each; 0 for none.
pub static LAST_CLUSTER: AtomicU64 = AtomicU64::new(0);

#[unsafe(no_mangle)]
unsafe extern "C" fn hipDrvLaunchKernelEx(
    config: *const HIP_LAUNCH_CONFIG,
    function: hipFunction_t,
    params: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> hipError_t {
    // SAFETY: the driver calls with what HIP asks for.
    let config = unsafe { &*config };
    // SAFETY: the driver calls with what HIP asks for.
    let attributes = unsafe { core::slice::from_raw_parts(config.attrs, config.numAttrs as usize) };
    let cluster = attributes.iter().find(|it| it.id == hipLaunchAttributeClusterDimension).map_or(0, |it| {
        // SAFETY: the member that belongs to the id is the one set.
        unsafe { it.value.clusterDim }.iter().rfold(0, |all, &size| all << 16 | u64::from(size))
    });
    LAST_CLUSTER.store(cluster, Ordering::Relaxed);
    // SAFETY: the driver calls with what HIP asks for.
    unsafe {
        hipModuleLaunchKernel(
            function,
            config.gridDimX,
            config.gridDimY,
            config.gridDimZ,
            config.blockDimX,
            config.blockDimY,
            config.blockDimZ,
            config.sharedMemBytes,
            config.hStream,
            params,
            extra,
        )
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn hipStreamWriteValue32(
    _: hipStream_t,
    at: *mut c_void,
    value: u32,
    _: c_uint,
) -> hipError_t {
    // SAFETY: the driver calls with what HIP asks for.
    unsafe { *at.cast::<u32>() = value };
    hipSuccess
}
/// All that went before is done, so the value is there or never will be.
#[unsafe(no_mangle)]
unsafe extern "C" fn hipStreamWaitValue32(
    _: hipStream_t,
    at: *mut c_void,
    value: u32,
    _: c_uint,
    _: u32,
) -> hipError_t {
    // SAFETY: the driver calls with what HIP asks for.
    if unsafe { *at.cast::<u32>() } >= value { hipSuccess } else { hipErrorLaunchTimeOut }
}

macro_rules! table {
    ($($name:ident),* $(,)?) => {
        /// The address of one of the functions above, null for any other name.
        pub fn lookup(name: &CStr) -> *mut c_void {
            match name.to_str().unwrap_or("") {
                $(stringify!($name) => $name as *mut c_void,)*
                _ => core::ptr::null_mut(),
            }
        }
    };
}

table! {
    hipStreamWriteValue32, hipStreamWaitValue32, hipInit, hipRuntimeGetVersion, hipGetDeviceCount, hipGetDevicePropertiesR0600, hipDeviceGetAttribute,
    hipSetDevice, hipDeviceSynchronize, hipMalloc, hipMallocManaged, hipHostMalloc, hipFree, hipHostFree,
    hipMemAddressReserve, hipMemAddressFree, hipHostRegister, hipHostUnregister, hipHostGetDevicePointer, hipMemcpy,
    hipMemcpyAsync, hipMemcpy2DAsync, hipMemsetD8Async, hipMemsetD16Async, hipMemsetD32Async, hipMemGetInfo,
    hipStreamCreateWithFlags, hipStreamDestroy, hipStreamSynchronize, hipStreamQuery, hipStreamWaitEvent,
    hipStreamAddCallback, hipEventCreateWithFlags, hipEventDestroy, hipEventRecord, hipEventQuery,
    hipEventElapsedTime, hipModuleLoadData, hipModuleUnload, hipModuleGetFunction, hipModuleGetGlobal,
    hipFuncGetAttribute, hipModuleLaunchKernel, hipModuleLaunchCooperativeKernel, hipDrvLaunchKernelEx,
    hipEventSynchronize, hipStreamCreateWithPriority, hipDeviceGetStreamPriorityRange,
}

/// The provider's own table, for measuring the bare call.
pub fn hip() -> Hip {
    // SAFETY: every function above has its name's HIP signature.
    unsafe { Hip::from_lookup(lookup) }
}
