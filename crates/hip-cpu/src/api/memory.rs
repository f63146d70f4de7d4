//! Allocation, registration, and what is known of a pointer.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_uint, c_void};

use border::{OptOut, Out};
use hip_sys::*;
use parking_lot::Mutex;

use crate::device::{self, PITCH_ALIGN, healthy};
use crate::error::Result;
use crate::memory::{self, Allocation, Kind};
use crate::stream;

fn allocate(ptr: Out<'_, *mut c_void>, size: usize, kind: Kind, flags: u32) -> Result {
    healthy()?;
    // HIP: nothing is allocated, and that succeeds.
    if size == 0 {
        ptr.write(std::ptr::null_mut());
        return Ok(());
    }
    ptr.write(memory::allocate(size, kind, flags)?.base as *mut c_void);
    Ok(())
}

pub fn hipMalloc(ptr: Out<'_, *mut c_void>, size: usize) -> Result {
    allocate(ptr, size, Kind::Device, 0)
}

/// Fine-grained or not is one on the CPU; signal memory is 8 bytes as in ROCm.
pub fn hipExtMallocWithFlags(ptr: Out<'_, *mut c_void>, sizeBytes: usize, flags: c_uint) -> Result {
    match flags {
        0..=3 => allocate(ptr, sizeBytes, Kind::Device, flags),
        _ => Err(hipErrorInvalidValue),
    }
}

pub fn hipMallocManaged(dev_ptr: Out<'_, *mut c_void>, size: usize, flags: c_uint) -> Result {
    if flags != hipMemAttachGlobal && flags != hipMemAttachHost || size == 0 {
        return Err(hipErrorInvalidValue);
    }
    allocate(dev_ptr, size, Kind::Managed, flags)
}

pub fn hipHostMalloc(ptr: Out<'_, *mut c_void>, size: usize, flags: c_uint) -> Result {
    // HIP has coherence and NUMA flags too; memory here is always coherent.
    const KNOWN: c_uint = 0x7 | 0x2000_0000 | 0x4000_0000 | 0x8000_0000;
    if flags & !KNOWN != 0 {
        return Err(hipErrorInvalidValue);
    }
    allocate(ptr, size, Kind::Host, flags)
}

pub fn hipHostAlloc(ptr: Out<'_, *mut c_void>, size: usize, flags: c_uint) -> Result {
    hipHostMalloc(ptr, size, flags)
}

pub fn hipMallocHost(ptr: Out<'_, *mut c_void>, size: usize) -> Result {
    hipHostMalloc(ptr, size, hipHostMallocDefault)
}

pub fn hipMemAllocHost(ptr: Out<'_, *mut c_void>, size: usize) -> Result {
    hipHostMalloc(ptr, size, hipHostMallocDefault)
}

fn pitched(width: usize, rows: usize) -> Result<(usize, usize)> {
    let pitch = width.checked_next_multiple_of(PITCH_ALIGN).ok_or(hipErrorOutOfMemory)?;
    Ok((pitch, pitch.checked_mul(rows).ok_or(hipErrorOutOfMemory)?))
}

pub fn hipMallocPitch(
    ptr: Out<'_, *mut c_void>,
    pitch: Out<'_, usize>,
    width: usize,
    height: usize,
) -> Result {
    let (row, bytes) = pitched(width, height)?;
    allocate(ptr, bytes, Kind::Device, 0)?;
    pitch.write(row);
    Ok(())
}

pub fn hipMemAllocPitch(
    dptr: Out<'_, hipDeviceptr_t>,
    pitch: Out<'_, usize>,
    widthInBytes: usize,
    height: usize,
    elementSizeBytes: c_uint,
) -> Result {
    if ![4, 8, 16].contains(&elementSizeBytes) || widthInBytes == 0 || height == 0 {
        return Err(hipErrorInvalidValue);
    }
    hipMallocPitch(dptr, pitch, widthInBytes, height)
}

pub fn hipMalloc3D(pitchedDevPtr: Out<'_, hipPitchedPtr>, extent: hipExtent) -> Result {
    let rows = extent.height.checked_mul(extent.depth).ok_or(hipErrorOutOfMemory)?;
    let (pitch, bytes) = pitched(extent.width, rows)?;
    let mut ptr: *mut c_void = std::ptr::null_mut();
    allocate((&mut ptr).into(), bytes, Kind::Device, 0)?;
    pitchedDevPtr.write(hipPitchedPtr { ptr, pitch, xsize: extent.width, ysize: extent.height });
    Ok(())
}

/// HIP: null is freed successfully; anything that is not an allocation's start is an error.
fn free(ptr: *mut c_void, kinds: &[Kind]) -> Result {
    if ptr.is_null() {
        return Ok(());
    }
    let found = memory::at(ptr as usize).ok_or(hipErrorInvalidValue)?;
    if found.is_global || !kinds.contains(&found.kind) {
        return Err(hipErrorInvalidValue);
    }
    // Work that uses it comes first.
    stream::quiesce();
    let taken = memory::take(ptr as usize, kinds).ok_or(hipErrorInvalidValue)?;
    super::pool::forget(&taken);
    ADVICE.lock().remove(&taken.id);
    memory::release(&taken);
    Ok(())
}

pub fn hipFree(ptr: *mut c_void) -> Result {
    free(ptr, &[Kind::Device, Kind::Managed])
}

pub fn hipHostFree(ptr: *mut c_void) -> Result {
    free(ptr, &[Kind::Host])
}

pub fn hipFreeHost(ptr: *mut c_void) -> Result {
    hipHostFree(ptr)
}

pub fn hipHostRegister(hostPtr: *mut c_void, sizeBytes: usize, flags: c_uint) -> Result {
    healthy()?;
    if hostPtr.is_null() || sizeBytes == 0 || flags & !0xf != 0 {
        return Err(hipErrorInvalidValue);
    }
    memory::register(hostPtr as usize, sizeBytes, flags)
}

pub fn hipHostUnregister(hostPtr: *mut c_void) -> Result {
    if hostPtr.is_null() {
        return Err(hipErrorInvalidValue);
    }
    if memory::at(hostPtr as usize).is_none_or(|found| found.kind != Kind::Registered) {
        return Err(hipErrorHostMemoryNotRegistered);
    }
    stream::quiesce();
    memory::take(hostPtr as usize, &[Kind::Registered]).map(drop).ok_or(hipErrorHostMemoryNotRegistered)
}

fn host_memory(pointer: *mut c_void) -> Result<Allocation> {
    memory::find(pointer as usize)
        .filter(|found| matches!(found.kind, Kind::Host | Kind::Registered))
        .ok_or(hipErrorInvalidValue)
}

pub fn hipHostGetDevicePointer(devPtr: Out<'_, *mut c_void>, hstPtr: *mut c_void, flags: c_uint) -> Result {
    if flags != 0 {
        return Err(hipErrorInvalidValue);
    }
    host_memory(hstPtr)?;
    devPtr.write(hstPtr);
    Ok(())
}

pub fn hipHostGetFlags(flagsPtr: Out<'_, c_uint>, hostPtr: *mut c_void) -> Result {
    flagsPtr.write(host_memory(hostPtr)?.flags);
    Ok(())
}

pub fn hipMemGetInfo(free: Out<'_, usize>, total: Out<'_, usize>) -> Result {
    healthy()?;
    let bytes = device::get().memory_bytes;
    let used = memory::used();
    let own = bytes.saturating_sub(used);
    free.write(memory::room::left(used).map_or(own, |left| left.min(own)));
    total.write(bytes);
    Ok(())
}

pub fn hipMemPtrGetInfo(ptr: *mut c_void, size: Out<'_, usize>) -> Result {
    size.write(memory::find(ptr as usize).ok_or(hipErrorInvalidValue)?.bytes);
    Ok(())
}

pub fn hipMemGetAddressRange(
    pbase: OptOut<'_, hipDeviceptr_t>,
    psize: OptOut<'_, usize>,
    dptr: hipDeviceptr_t,
) -> Result {
    let found = memory::find(dptr as usize).ok_or(hipErrorNotFound)?;
    pbase.write(found.base as hipDeviceptr_t);
    psize.write(found.bytes);
    Ok(())
}

fn memory_type(kind: Kind) -> hipMemoryType {
    match kind {
        Kind::Device | Kind::Mapped => hipMemoryTypeDevice,
        Kind::Host | Kind::Registered => hipMemoryTypeHost,
        Kind::Managed => hipMemoryTypeManaged,
    }
}

/// HIP 6: memory nobody told us about is `hipMemoryTypeUnregistered`, not an error.
pub fn hipPointerGetAttributes(attributes: Out<'_, hipPointerAttribute_t>, ptr: *const c_void) -> Result {
    if ptr.is_null() {
        return Err(hipErrorInvalidValue);
    }
    let address = ptr.cast_mut();
    attributes.write(match memory::find(ptr as usize) {
        None => hipPointerAttribute_t {
            r#type: hipMemoryTypeUnregistered,
            device: hipInvalidDeviceId,
            devicePointer: std::ptr::null_mut(),
            hostPointer: std::ptr::null_mut(),
            isManaged: 0,
            allocationFlags: 0,
        },
        Some(found) => hipPointerAttribute_t {
            r#type: memory_type(found.kind),
            device: 0,
            devicePointer: address,
            hostPointer: if memory_type(found.kind) == hipMemoryTypeDevice {
                std::ptr::null_mut()
            } else {
                address
            },
            isManaged: c_int::from(found.kind == Kind::Managed),
            allocationFlags: found.flags,
        },
    });
    Ok(())
}

/// # Safety
/// `data` is NULL, or has room for what the attribute is.
pub unsafe fn hipPointerGetAttribute(
    data: *mut c_void,
    attribute: hipPointer_attribute,
    ptr: hipDeviceptr_t,
) -> Result {
    if data.is_null() || ptr.is_null() {
        return Err(hipErrorInvalidValue);
    }
    let found = memory::find(ptr as usize).ok_or(hipErrorInvalidValue)?;
    // SAFETY: (all) not NULL; the caller's promise.
    unsafe {
        let int = |value: bool| data.cast::<c_uint>().write(c_uint::from(value));
        let byte = |value: bool| data.cast::<u8>().write(u8::from(value));
        let pointer = |value: *mut c_void| data.cast::<*mut c_void>().write(value);
        match attribute {
            HIP_POINTER_ATTRIBUTE_MEMORY_TYPE => data.cast::<hipMemoryType>().write(memory_type(found.kind)),
            HIP_POINTER_ATTRIBUTE_DEVICE_POINTER => pointer(ptr),
            HIP_POINTER_ATTRIBUTE_HOST_POINTER => {
                if memory_type(found.kind) == hipMemoryTypeDevice {
                    return Err(hipErrorInvalidValue);
                }
                pointer(ptr);
            }
            HIP_POINTER_ATTRIBUTE_SYNC_MEMOPS => int(false),
            HIP_POINTER_ATTRIBUTE_BUFFER_ID => data.cast::<u64>().write(found.id),
            HIP_POINTER_ATTRIBUTE_IS_MANAGED => byte(found.kind == Kind::Managed),
            HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL => data.cast::<c_int>().write(0),
            HIP_POINTER_ATTRIBUTE_IS_LEGACY_HIP_IPC_CAPABLE => byte(false),
            HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR => pointer(found.base as *mut c_void),
            HIP_POINTER_ATTRIBUTE_RANGE_SIZE => data.cast::<usize>().write(found.bytes),
            HIP_POINTER_ATTRIBUTE_MAPPED => byte(true),
            HIP_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES => data.cast::<u64>().write(0),
            HIP_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE => byte(false),
            HIP_POINTER_ATTRIBUTE_ACCESS_FLAGS => int(false),
            HIP_POINTER_ATTRIBUTE_MEMPOOL_HANDLE => pointer(found.pool as *mut c_void),
            _ => return Err(hipErrorInvalidValue),
        }
    }
    Ok(())
}

/// # Safety
/// Both arrays are NULL, or have `numAttributes` elements; those of `data` have room for what is asked.
pub unsafe fn hipDrvPointerGetAttributes(
    numAttributes: c_uint,
    attributes: *mut hipPointer_attribute,
    data: *mut *mut c_void,
    ptr: hipDeviceptr_t,
) -> Result {
    if attributes.is_null() || data.is_null() {
        return Err(hipErrorInvalidValue);
    }
    for i in 0..numAttributes as usize {
        // SAFETY: the caller's promise.
        let (attribute, data) = unsafe { (attributes.add(i).read(), data.add(i).read()) };
        // SAFETY: the caller's promise.
        unsafe { hipPointerGetAttribute(data, attribute, ptr) }?;
    }
    Ok(())
}

/// The range is managed memory, or the program's own, which kernels reach as well.
fn managed_range(pointer: *const c_void, count: usize) -> Result {
    if pointer.is_null() || count == 0 {
        return Err(hipErrorInvalidValue);
    }
    match memory::range(pointer as usize, count)? {
        Some(found) if memory_type(found.kind) == hipMemoryTypeDevice => Err(hipErrorInvalidValue),
        _ => Ok(()),
    }
}

/// What a program said about a managed allocation. It moves nothing: memory is where it has to be.
// CPU differs: kept per allocation, not per page.
#[derive(Clone, Copy)]
struct Advice {
    read_mostly: bool,
    preferred: c_int,
    accessed_by: [bool; 2],
    last_prefetch: c_int,
}

const NO_ADVICE: Advice = Advice {
    read_mostly: false,
    preferred: hipInvalidDeviceId,
    accessed_by: [false; 2],
    last_prefetch: hipInvalidDeviceId,
};

/// By `Allocation::id`. Bound: managed allocations that were advised about.
static ADVICE: Mutex<BTreeMap<u64, Advice>> = Mutex::new(BTreeMap::new());

fn advise(pointer: *const c_void, change: impl FnOnce(&mut Advice)) {
    if let Some(found) = memory::find(pointer as usize) {
        change(ADVICE.lock().entry(found.id).or_insert(NO_ADVICE));
    }
}

/// The device, or the host as `hipCpuDeviceId`.
fn location(device: c_int) -> Result {
    if device == hipCpuDeviceId { Ok(()) } else { device::check(device) }
}

pub fn hipMemPrefetchAsync(
    dev_ptr: *const c_void,
    count: usize,
    device: c_int,
    stream: hipStream_t,
) -> Result {
    healthy()?;
    managed_range(dev_ptr, count)?;
    location(device)?;
    stream::of_handle(stream)?;
    advise(dev_ptr, |advice| advice.last_prefetch = device);
    Ok(())
}

pub fn hipMemAdvise(dev_ptr: *const c_void, count: usize, advice: hipMemoryAdvise, device: c_int) -> Result {
    managed_range(dev_ptr, count)?;
    // HIP: these two do not look at the device.
    if !matches!(
        advice,
        hipMemAdviseSetReadMostly | hipMemAdviseUnsetReadMostly | hipMemAdviseUnsetPreferredLocation
    ) {
        location(device)?;
    }
    let by = usize::from(device == hipCpuDeviceId);
    match advice {
        hipMemAdviseSetReadMostly => advise(dev_ptr, |a| a.read_mostly = true),
        hipMemAdviseUnsetReadMostly => advise(dev_ptr, |a| a.read_mostly = false),
        hipMemAdviseSetPreferredLocation => advise(dev_ptr, |a| a.preferred = device),
        hipMemAdviseUnsetPreferredLocation => advise(dev_ptr, |a| a.preferred = hipInvalidDeviceId),
        hipMemAdviseSetAccessedBy => advise(dev_ptr, |a| a.accessed_by[by] = true),
        hipMemAdviseUnsetAccessedBy => advise(dev_ptr, |a| a.accessed_by[by] = false),
        // ROCm's coarse and fine grain: all memory is coherent.
        100 | 101 => {}
        _ => return Err(hipErrorInvalidValue),
    }
    Ok(())
}

/// # Safety
/// `data` is NULL, or has room for `data_size` bytes.
pub unsafe fn hipMemRangeGetAttribute(
    data: *mut c_void,
    data_size: usize,
    attribute: hipMemRangeAttribute,
    dev_ptr: *const c_void,
    count: usize,
) -> Result {
    if data.is_null() || data_size == 0 || !data_size.is_multiple_of(4) {
        return Err(hipErrorInvalidValue);
    }
    managed_range(dev_ptr, count)?;
    let found = memory::find(dev_ptr as usize)
        .filter(|found| found.kind == Kind::Managed)
        .ok_or(hipErrorInvalidValue)?;
    let advice = ADVICE.lock().get(&found.id).copied().unwrap_or(NO_ADVICE);
    let mut values = vec![hipInvalidDeviceId; data_size / 4];
    match attribute {
        1 => values[0] = c_int::from(advice.read_mostly),
        2 => values[0] = advice.preferred,
        3 => {
            let who = [0, hipCpuDeviceId].into_iter().zip(advice.accessed_by).filter(|(_, by)| *by);
            for (value, (device, _)) in values.iter_mut().zip(who) {
                *value = device;
            }
        }
        4 => values[0] = advice.last_prefetch,
        _ => return Err(hipErrorInvalidValue),
    }
    if attribute != 3 && data_size != 4 {
        return Err(hipErrorInvalidValue);
    }
    // SAFETY: HIP's contract: `data_size` writable bytes.
    unsafe { data.cast::<u8>().copy_from_nonoverlapping(values.as_ptr().cast(), data_size) };
    Ok(())
}

/// Attachment restricts who may touch managed memory at a time; here everyone may always.
pub fn hipStreamAttachMemAsync(
    stream: hipStream_t,
    dev_ptr: *mut c_void,
    length: usize,
    flags: c_uint,
) -> Result {
    stream::of_handle(stream)?;
    if !matches!(flags, hipMemAttachGlobal | hipMemAttachHost | hipMemAttachSingle) {
        return Err(hipErrorInvalidValue);
    }
    managed_range(dev_ptr, length.max(1))
}
