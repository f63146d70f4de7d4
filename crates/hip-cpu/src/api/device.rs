//! Initialisation, devices, limits, errors.

use std::ffi::{CStr, c_char, c_int, c_uint};
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicUsize, Ordering};

use border::Out;
use hip_sys::*;

use crate::device::{self, check, get};
use crate::error::{self, Result};
use crate::exec::{children, printf, services};
use crate::{leaks, memory, presence, stream};

pub fn hipInit(flags: c_uint) -> Result {
    if flags != 0 {
        return Err(hipErrorInvalidValue);
    }
    get();
    leaks::watch();
    Ok(())
}

pub fn hipDriverGetVersion(driverVersion: Out<'_, c_int>) -> Result {
    driverVersion.write(device::HIP_VERSION);
    Ok(())
}

pub fn hipRuntimeGetVersion(runtimeVersion: Out<'_, c_int>) -> Result {
    runtimeVersion.write(device::HIP_VERSION);
    Ok(())
}

pub fn hipGetDeviceCount(count: Out<'_, c_int>) -> Result {
    count.write(1);
    Ok(())
}

pub fn hipDeviceGet(device: Out<'_, hipDevice_t>, ordinal: c_int) -> Result {
    check(ordinal)?;
    device.write(ordinal);
    Ok(())
}

pub fn hipSetDevice(deviceId: c_int) -> Result {
    check(deviceId)
}

pub fn hipGetDevice(deviceId: Out<'_, c_int>) -> Result {
    deviceId.write(0);
    Ok(())
}

pub fn hipDeviceComputeCapability(
    major: Out<'_, c_int>,
    minor: Out<'_, c_int>,
    device: hipDevice_t,
) -> Result {
    check(device)?;
    let (x, y) = config::get().compute_capability;
    major.write(x as c_int);
    minor.write(y as c_int);
    Ok(())
}

/// Writes a C string of at most `len` bytes, its NUL included.
///
/// # Safety
/// `to` is NULL, or has room for `len` bytes.
unsafe fn write_text(to: *mut c_char, len: c_int, text: &str) -> Result {
    let len = usize::try_from(len).map_err(|_| hipErrorInvalidValue)?;
    if to.is_null() || len == 0 {
        return Err(hipErrorInvalidValue);
    }
    let n = text.len().min(len - 1);
    // SAFETY: the caller's promise.
    unsafe {
        to.cast::<u8>().copy_from_nonoverlapping(text.as_ptr(), n);
        to.add(n).write(0);
    }
    Ok(())
}

/// # Safety
/// `name` is NULL, or has room for `len` bytes.
pub unsafe fn hipDeviceGetName(name: *mut c_char, len: c_int, device: hipDevice_t) -> Result {
    check(device)?;
    // SAFETY: the caller's promise.
    unsafe { write_text(name, len, &get().name) }
}

pub fn hipDeviceGetUuid(uuid: Out<'_, hipUUID>, device: hipDevice_t) -> Result {
    check(device)?;
    uuid.write(hipUUID { bytes: get().uuid });
    Ok(())
}

fn pci_text() -> String {
    let (domain, bus, slot) = device::PCI;
    format!("{domain:04x}:{bus:02x}:{slot:02x}.0")
}

/// # Safety
/// `pciBusId` is NULL, or has room for `len` bytes.
pub unsafe fn hipDeviceGetPCIBusId(pciBusId: *mut c_char, len: c_int, device: c_int) -> Result {
    check(device)?;
    // SAFETY: the caller's promise.
    unsafe { write_text(pciBusId, len, &pci_text()) }
}

/// # Safety
/// `pciBusId` is NULL or a C string.
pub unsafe fn hipDeviceGetByPCIBusId(device: Out<'_, c_int>, pciBusId: *const c_char) -> Result {
    if pciBusId.is_null() {
        return Err(hipErrorInvalidValue);
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(pciBusId) }.to_string_lossy().to_ascii_lowercase();
    let own = pci_text();
    // The function and the domain may be left out.
    let own_short = own.trim_end_matches(".0");
    if ![own.as_str(), own_short, &own[5..], &own_short[5..]].contains(&text.as_str()) {
        return Err(hipErrorInvalidValue);
    }
    device.write(0);
    Ok(())
}

pub fn hipDeviceTotalMem(bytes: Out<'_, usize>, device: hipDevice_t) -> Result {
    check(device)?;
    bytes.write(get().memory_bytes);
    Ok(())
}

pub fn hipGetDevicePropertiesR0600(prop: Out<'_, hipDeviceProp_tR0600>, deviceId: c_int) -> Result {
    check(deviceId)?;
    prop.write(get().properties());
    Ok(())
}

pub fn hipDeviceGetAttribute(pi: Out<'_, c_int>, attr: hipDeviceAttribute_t, deviceId: c_int) -> Result {
    check(deviceId)?;
    pi.write(get().attribute(attr)?);
    Ok(())
}

pub fn hipDeviceGetP2PAttribute(
    _value: Out<'_, c_int>,
    attr: hipDeviceP2PAttr,
    src: c_int,
    dst: c_int,
) -> Result {
    // One device has no peer.
    let _ = attr;
    check(src)?;
    check(dst)?;
    Err(hipErrorInvalidDevice)
}

pub fn hipDeviceCanAccessPeer(canAccessPeer: Out<'_, c_int>, deviceId: c_int, peerDeviceId: c_int) -> Result {
    check(deviceId)?;
    check(peerDeviceId)?;
    // HIP: a device is not its own peer.
    canAccessPeer.write(0);
    Ok(())
}

/// The only other device would be this one, which is not its own peer.
fn peer(peerDeviceId: c_int) -> Result {
    check(peerDeviceId)?;
    Err(hipErrorInvalidDevice)
}

pub fn hipDeviceEnablePeerAccess(peerDeviceId: c_int, flags: c_uint) -> Result {
    if flags != 0 {
        return Err(hipErrorInvalidValue);
    }
    peer(peerDeviceId)
}

pub fn hipDeviceDisablePeerAccess(peerDeviceId: c_int) -> Result {
    peer(peerDeviceId)
}

pub fn hipDeviceSynchronize() -> Result {
    stream::synchronize_context();
    printf::flush();
    device::healthy()
}

/// Names the CUDA context that the calls of this thread belong to from now on: any number. It separates sticky errors,
/// default streams, and what waits for what.
// HIP differs: its contexts are made by hipCtxCreate; the driver above us makes ours.
pub fn hipCtxSetCurrent(ctx: hipCtx_t) -> Result {
    presence::announce();
    device::enter(ctx as usize);
    Ok(())
}

/// Waits for all work, then forgets the context's sticky error. Memory, modules and streams of the program stay valid.
// HIP differs: ROCm's reset frees them; the driver above us frees its own objects itself.
pub fn hipDeviceReset() -> Result {
    stream::synchronize_context();
    printf::flush();
    device::forgive();
    if device::context() != 0 {
        stream::forget_context(device::context());
    }
    memory::kept::empty();
    Ok(())
}

static CACHE_CONFIG: AtomicI32 = AtomicI32::new(0);
static BANK_CONFIG: AtomicI32 = AtomicI32::new(0);
static FLAGS: AtomicU32 = AtomicU32::new(0);
static STACK_LIMIT: AtomicUsize = AtomicUsize::new(1024);

/// A wish; there is no cache to divide.
pub fn hipDeviceSetCacheConfig(cacheConfig: hipFuncCache_t) -> Result {
    if !(0..=3).contains(&cacheConfig) {
        return Err(hipErrorInvalidValue);
    }
    CACHE_CONFIG.store(cacheConfig, Ordering::Relaxed);
    Ok(())
}

pub fn hipDeviceGetCacheConfig(cacheConfig: Out<'_, hipFuncCache_t>) -> Result {
    cacheConfig.write(CACHE_CONFIG.load(Ordering::Relaxed));
    Ok(())
}

/// A wish; shared memory has no banks here.
pub fn hipDeviceSetSharedMemConfig(config: hipSharedMemConfig) -> Result {
    if !(0..=2).contains(&config) {
        return Err(hipErrorInvalidValue);
    }
    BANK_CONFIG.store(config, Ordering::Relaxed);
    Ok(())
}

pub fn hipDeviceGetSharedMemConfig(pConfig: Out<'_, hipSharedMemConfig>) -> Result {
    pConfig.write(BANK_CONFIG.load(Ordering::Relaxed));
    Ok(())
}

pub fn hipSetDeviceFlags(flags: c_uint) -> Result {
    let known = hipDeviceScheduleSpin
        | hipDeviceScheduleYield
        | hipDeviceScheduleBlockingSync
        | hipDeviceMapHost
        | hipDeviceLmemResizeToMax;
    if flags & !known != 0 {
        return Err(hipErrorInvalidValue);
    }
    FLAGS.store(flags, Ordering::Relaxed);
    Ok(())
}

pub fn hipGetDeviceFlags(flags: Out<'_, c_uint>) -> Result {
    flags.write(FLAGS.load(Ordering::Relaxed));
    Ok(())
}

fn limit(limit: hipLimit_t) -> Result<&'static AtomicUsize> {
    match limit {
        // CPU differs: local memory and stack always have what the kernel needs, so this one is only kept.
        hipLimitStackSize => Ok(&STACK_LIMIT),
        hipLimitPrintfFifoSize => Ok(&printf::FIFO_BYTES),
        hipLimitMallocHeapSize => Ok(&services::HEAP_LIMIT),
        // HIP differs: it has no such limits; the numbers are CUDA's.
        hipLimitDevRuntimeSyncDepth => Ok(&children::SYNC_DEPTH),
        hipLimitDevRuntimePendingLaunchCount => Ok(&children::PENDING_LAUNCHES),
        _ => Err(hipErrorUnsupportedLimit),
    }
}

pub fn hipDeviceGetLimit(pValue: Out<'_, usize>, limit: hipLimit_t) -> Result {
    pValue.write(self::limit(limit)?.load(Ordering::Relaxed));
    Ok(())
}

pub fn hipDeviceSetLimit(limit: hipLimit_t, value: usize) -> Result {
    self::limit(limit)?.store(value, Ordering::Relaxed);
    Ok(())
}

/// The answer itself is the last error, so these two do not go through `entry`.
pub fn hipGetLastError() -> hipError_t {
    error::last(true)
}

pub fn hipPeekAtLastError() -> hipError_t {
    error::last(false)
}

/// `hipGetErrorName` and `hipGetErrorString`: C strings that live as long as the library.
pub fn error_text(error: hipError_t) -> Option<&'static CStr> {
    use std::collections::HashMap;
    use std::ffi::CString;
    use std::sync::LazyLock;
    static NAMES: LazyLock<HashMap<c_int, CString>> = LazyLock::new(|| {
        (0..1100).filter_map(|code| Some((code, CString::new(error_name(hipError_t(code))?).ok()?))).collect()
    });
    NAMES.get(&error.0).map(CString::as_c_str)
}

pub fn hipDrvGetErrorName(hipError: hipError_t, errorString: Out<'_, *const c_char>) -> Result {
    let text = error_text(hipError).ok_or(hipErrorInvalidValue)?;
    errorString.write(text.as_ptr());
    Ok(())
}

pub fn hipDrvGetErrorString(hipError: hipError_t, errorString: Out<'_, *const c_char>) -> Result {
    hipDrvGetErrorName(hipError, errorString)
}
