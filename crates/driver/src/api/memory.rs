//! Memory Management: allocation, page-locked and managed memory, what lies where.

use core::ffi::{c_int, c_uint, c_ulonglong, c_void};

use border::{OptOut, Out};
use cuda_abi::{
    CUdevice, CUdeviceptr, CUipcEventHandle, CUipcMemHandle, CUmem_advise, CUmemLocation, CUmemLocationType,
    CUstream,
};
use hip_sys::{HipError, hipIpcMemHandle_t};

use super::batch_copy::entries;
use crate::object::graph::Block;
use crate::object::graph::capture::{forbid_in_capture, forbid_unsafe};
use crate::object::memory::{self, Allocation, Kind, device_pointer, raw};
use crate::object::{Context, Device, Stream, location};
use crate::{Error, Result};

/// Row alignment of `cuMemAllocPitch` where the provider cannot say: wide enough for every access.
const PITCH_ALIGNMENT: usize = 512;

/// Allocates `bytesize` bytes of device memory in the current context.
///
/// HIP: `hipMalloc`.
pub fn cuMemAlloc_v2(dptr: Out<'_, CUdeviceptr>, bytesize: usize) -> Result {
    let context = Context::current()?;
    forbid_unsafe()?;
    // HIP differs: a size of 0 succeeds there and gives a null pointer.
    if bytesize == 0 {
        return Err(Error::InvalidValue("bytesize"));
    }
    dptr.write(allocate(context, bytesize)?);
    Ok(())
}

fn allocate(context: &'static Context, len_bytes: usize) -> Result<CUdeviceptr> {
    let mut at = core::ptr::null_mut();
    // SAFETY: `at` is writable.
    unsafe { context.hip().hipMalloc(&mut at, len_bytes) }?;
    let base = device_pointer(at);
    memory::enter(Allocation::new(base, len_bytes, Kind::Device, context));
    Ok(base)
}

/// Rows of `WidthInBytes`, each beginning at a multiple of the pitch.
pub fn cuMemAllocPitch_v2(
    dptr: Out<'_, CUdeviceptr>,
    pPitch: Out<'_, usize>,
    WidthInBytes: usize,
    Height: usize,
    ElementSizeBytes: c_uint,
) -> Result {
    let context = Context::current()?;
    forbid_unsafe()?;
    let (pitch, len_bytes) = pitched(WidthInBytes, Height, ElementSizeBytes)?;
    dptr.write(allocate(context, len_bytes)?);
    pPitch.write(pitch);
    Ok(())
}

/// The pitch of such rows, and the bytes of all of them.
pub(super) fn pitched(width: usize, height: usize, element: c_uint) -> Result<(usize, usize)> {
    if width == 0 || height == 0 || !matches!(element, 4 | 8 | 16) {
        return Err(Error::InvalidValue("WidthInBytes, Height or ElementSizeBytes"));
    }
    let pitch = width.checked_next_multiple_of(PITCH_ALIGNMENT).ok_or(Error::OutOfMemory)?;
    Ok((pitch, pitch.checked_mul(height).ok_or(Error::OutOfMemory)?))
}

/// Frees device, managed or pooled memory. NULL is fine.
///
/// HIP: `hipFree`, which waits for work that may use the memory.
pub fn cuMemFree_v2(dptr: CUdeviceptr) -> Result {
    crate::process::driver()?;
    if dptr == 0 {
        return Ok(());
    }
    forbid_unsafe()?;
    if let Some(block) = Block::at(dptr) {
        // CUDA: the memory is done with when the call returns.
        Context::current()?.synchronize()?;
        return block.free();
    }
    let freeable = |range: &Allocation| {
        matches!(range.kind, Kind::Device | Kind::Low | Kind::Managed | Kind::Pooled | Kind::External)
    };
    // CUDA: an address that no allocation begins at is an invalid value.
    let range = memory::take(dptr, freeable).ok_or(Error::InvalidValue("dptr"))?;
    super::pool::count_freed(&range);
    range.context.bind()?;
    memory::release(&range)
}

pub fn cuMemGetInfo_v2(free: Out<'_, usize>, total: Out<'_, usize>) -> Result {
    let context = Context::current()?;
    let (mut n_free, mut n_total) = (0, 0);
    // SAFETY: both are writable.
    unsafe { context.hip().hipMemGetInfo(&mut n_free, &mut n_total) }?;
    free.write(n_free);
    total.write(n_total);
    Ok(())
}

pub fn cuMemGetAddressRange_v2(
    pbase: OptOut<'_, CUdeviceptr>,
    psize: OptOut<'_, usize>,
    dptr: CUdeviceptr,
) -> Result {
    Context::current()?;
    // CUDA: an address in no allocation is not found.
    let range = memory::find(dptr).ok_or(Error::NotFound)?;
    pbase.write(range.base);
    psize.write(range.len_bytes);
    Ok(())
}

/// Page-locked host memory that every device of the process can use at the host's address.
pub fn cuMemHostAlloc(pp: Out<'_, *mut c_void>, bytesize: usize, Flags: c_uint) -> Result {
    let context = Context::current()?;
    let known = cuda_abi::CU_MEMHOSTALLOC_PORTABLE
        | cuda_abi::CU_MEMHOSTALLOC_DEVICEMAP
        | cuda_abi::CU_MEMHOSTALLOC_WRITECOMBINED;
    if Flags & !known != 0 || bytesize == 0 {
        return Err(Error::InvalidValue("Flags or bytesize"));
    }
    forbid_unsafe()?;
    pp.write(host_allocate(context, bytesize, Flags)?);
    Ok(())
}

fn host_allocate(context: &'static Context, len_bytes: usize, flags: c_uint) -> Result<*mut c_void> {
    let mut at = core::ptr::null_mut();
    // CUDA: with unified addressing all page-locked memory is portable and mapped, asked for or not.
    let all = flags | cuda_abi::CU_MEMHOSTALLOC_PORTABLE | cuda_abi::CU_MEMHOSTALLOC_DEVICEMAP;
    // SAFETY: `at` is writable. HIP's three flags have CUDA's values.
    unsafe { context.hip().hipHostMalloc(&mut at, len_bytes, all) }?;
    let mut range = Allocation::new(device_pointer(at), len_bytes, Kind::Host, context);
    range.flags = flags;
    range.device_base = device_address(context, at);
    memory::enter(range);
    Ok(at)
}

/// Where the device sees page-locked memory.
fn device_address(context: &'static Context, at: *mut c_void) -> CUdeviceptr {
    let mut device = core::ptr::null_mut();
    // SAFETY: `device` is writable; `at` was just allocated or registered.
    match unsafe { context.hip().hipHostGetDevicePointer(&mut device, at, 0) } {
        Ok(()) => device_pointer(device),
        Err(_) => device_pointer(at),
    }
}

pub fn cuMemAllocHost_v2(pp: Out<'_, *mut c_void>, bytesize: usize) -> Result {
    cuMemHostAlloc(pp, bytesize, 0)
}

pub fn cuMemFreeHost(p: *mut c_void) -> Result {
    crate::process::driver()?;
    forbid_unsafe()?;
    let range =
        memory::take(device_pointer(p), |range| range.kind == Kind::Host).ok_or(Error::InvalidValue("p"))?;
    range.context.bind()?;
    memory::release(&range)
}

/// Page-locks memory of the program's.
pub fn cuMemHostRegister_v2(p: *mut c_void, bytesize: usize, Flags: c_uint) -> Result {
    let context = Context::current()?;
    let known = cuda_abi::CU_MEMHOSTREGISTER_PORTABLE
        | cuda_abi::CU_MEMHOSTREGISTER_DEVICEMAP
        | cuda_abi::CU_MEMHOSTREGISTER_IOMEMORY
        | cuda_abi::CU_MEMHOSTREGISTER_READ_ONLY;
    if p.is_null() || bytesize == 0 || Flags & !known != 0 {
        return Err(Error::InvalidValue("p, bytesize or Flags"));
    }
    let base = device_pointer(p);
    let overlaps = memory::find(base).is_some() || memory::find(base + bytesize as u64 - 1).is_some();
    if overlaps {
        return Err(Error::HostMemoryAlreadyRegistered);
    }
    // SAFETY: HIP looks at the range, which is not followed here.
    unsafe {
        context.hip().hipHostRegister(raw(base), bytesize, Flags | cuda_abi::CU_MEMHOSTREGISTER_DEVICEMAP)
    }?;
    let mut range = Allocation::new(base, bytesize, Kind::Registered, context);
    range.flags = Flags;
    range.device_base = device_address(context, p);
    memory::enter(range);
    Ok(())
}

pub fn cuMemHostRegister(p: *mut c_void, bytesize: usize, Flags: c_uint) -> Result {
    cuMemHostRegister_v2(p, bytesize, Flags)
}

pub fn cuMemHostUnregister(p: *mut c_void) -> Result {
    crate::process::driver()?;
    let range = memory::take(device_pointer(p), |range| range.kind == Kind::Registered)
        .ok_or(Error::HostMemoryNotRegistered)?;
    range.context.bind()?;
    memory::release(&range)
}

pub fn cuMemHostGetDevicePointer_v2(pdptr: Out<'_, CUdeviceptr>, p: *mut c_void, Flags: c_uint) -> Result {
    Context::current()?;
    if Flags != 0 {
        return Err(Error::InvalidValue("Flags"));
    }
    let at = device_pointer(p);
    let range = memory::find(at).filter(Allocation::is_host).ok_or(Error::InvalidValue("p"))?;
    pdptr.write(range.device_base + (at - range.base));
    Ok(())
}

pub fn cuMemHostGetFlags(pFlags: Out<'_, c_uint>, p: *mut c_void) -> Result {
    Context::current()?;
    let range = memory::find(device_pointer(p)).filter(|range| range.kind == Kind::Host);
    // CUDA reports mapped memory as such also where mapping was implied.
    pFlags.write(range.ok_or(Error::InvalidValue("p"))?.flags | cuda_abi::CU_MEMHOSTALLOC_DEVICEMAP);
    Ok(())
}

/// Memory that host and device use at the same address.
pub fn cuMemAllocManaged(dptr: Out<'_, CUdeviceptr>, bytesize: usize, flags: c_uint) -> Result {
    let context = Context::current()?;
    // CUDA: CU_MEM_ATTACH_GLOBAL or CU_MEM_ATTACH_HOST, and at least one byte.
    if bytesize == 0 || !matches!(flags, 1 | 2) {
        return Err(Error::InvalidValue("bytesize or flags"));
    }
    forbid_unsafe()?;
    let mut at = core::ptr::null_mut();
    // SAFETY: `at` is writable. HIP's flags have CUDA's values.
    unsafe { context.hip().hipMallocManaged(&mut at, bytesize, flags) }?;
    let mut range = Allocation::new(device_pointer(at), bytesize, Kind::Managed, context);
    range.flags = flags;
    memory::enter(range);
    dptr.write(range.base);
    Ok(())
}

/// The managed range, or what CUDA says of another one.
fn managed(pointer: CUdeviceptr, len_bytes: usize) -> Result<Allocation> {
    let range = memory::find(pointer).filter(Allocation::is_managed).ok_or(Error::InvalidValue("devPtr"))?;
    if len_bytes == 0 {
        return Err(Error::InvalidValue("count"));
    }
    memory::check(pointer, len_bytes, "count")?;
    Ok(range)
}

/// The device number HIP knows a CUDA device or the host by.
fn hip_location(device: CUdevice) -> Result<c_int> {
    if device == cuda_abi::CU_DEVICE_CPU {
        Ok(hip_sys::hipCpuDeviceId)
    } else {
        Ok(Device::get(device)?.hip_ordinal)
    }
}

/// The device number of a location structure.
fn location_device(location: &CUmemLocation) -> Result<CUdevice> {
    Ok(location::number(location, "location")?.unwrap_or(cuda_abi::CU_DEVICE_CPU))
}

/// Advice changes where pages live, never what they hold.
pub fn cuMemAdvise(devPtr: CUdeviceptr, count: usize, advice: CUmem_advise, device: CUdevice) -> Result {
    let range = managed(devPtr, count)?;
    // CUDA and HIP number the six advices alike.
    let number = match advice.0 {
        number @ 1..=6 => number as c_int,
        _ => return Err(Error::InvalidValue("advice")),
    };
    // CUDA: the device is ignored where read-mostly is set or unset and where a preference is dropped.
    let target = if matches!(number, 1 | 2 | 4) { hip_sys::hipCpuDeviceId } else { hip_location(device)? };
    range.context.bind()?;
    // SAFETY: the range is managed memory of the provider's.
    match unsafe { range.context.hip().hipMemAdvise(raw(devPtr), count, number, target) } {
        // A hint that a provider cannot take changes nothing a program can see.
        Ok(()) | Err(HipError::Missing(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

pub fn cuMemAdvise_v2(
    devPtr: CUdeviceptr,
    count: usize,
    advice: CUmem_advise,
    location: CUmemLocation,
) -> Result {
    let device = match advice {
        CUmem_advise::CU_MEM_ADVISE_SET_READ_MOSTLY
        | CUmem_advise::CU_MEM_ADVISE_UNSET_READ_MOSTLY
        | CUmem_advise::CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION => cuda_abi::CU_DEVICE_CPU,
        _ => location_device(&location)?,
    };
    cuMemAdvise(devPtr, count, advice, device)
}

pub fn cuMemPrefetchAsync(
    devPtr: CUdeviceptr,
    count: usize,
    dstDevice: CUdevice,
    hStream: CUstream,
) -> Result {
    managed(devPtr, count)?;
    let target = hip_location(dstDevice)?;
    // No node does this.
    forbid_in_capture(hStream)?;
    let stream = Stream::from_handle(hStream)?;
    // SAFETY: the range is managed memory of the provider's; the stream is alive.
    match unsafe { stream.hip().hipMemPrefetchAsync(raw(devPtr), count, target, stream.hip.0) } {
        Ok(()) | Err(HipError::Missing(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

pub fn cuMemPrefetchAsync_v2(
    devPtr: CUdeviceptr,
    count: usize,
    location: CUmemLocation,
    flags: c_uint,
    hStream: CUstream,
) -> Result {
    if flags != 0 {
        return Err(Error::InvalidValue("flags"));
    }
    cuMemPrefetchAsync(devPtr, count, location_device(&location)?, hStream)
}

/// Visibility of managed memory to streams: devices that share all memory need no attaching.
pub fn cuStreamAttachMemAsync(hStream: CUstream, dptr: CUdeviceptr, length: usize, flags: c_uint) -> Result {
    // No node does this.
    forbid_in_capture(hStream)?;
    let stream = Stream::from_handle(hStream)?;
    let range = memory::find(dptr).filter(Allocation::is_managed).ok_or(Error::InvalidValue("dptr"))?;
    // CUDA: one of CU_MEM_ATTACH_GLOBAL, HOST and SINGLE; the length is 0 or the whole range.
    if !matches!(flags, 1 | 2 | 4) || !(length == 0 || length == range.len_bytes) {
        return Err(Error::InvalidValue("flags or length"));
    }
    // SAFETY: the range is managed memory of the provider's; the stream is alive.
    match unsafe { stream.hip().hipStreamAttachMemAsync(stream.hip.0, raw(dptr), length, flags) } {
        Ok(()) | Err(HipError::Missing(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

pub fn cuIpcGetMemHandle(pHandle: Out<'_, CUipcMemHandle>, dptr: CUdeviceptr) -> Result {
    let context = Context::current()?;
    memory::find(dptr).filter(|range| range.kind == Kind::Device).ok_or(Error::InvalidValue("dptr"))?;
    let mut handle = hipIpcMemHandle_t { reserved: [0; 64] };
    // SAFETY: `handle` is writable; the pointer is the provider's.
    unsafe { context.hip().hipIpcGetMemHandle(&mut handle, raw(dptr)) }?;
    pHandle.write(CUipcMemHandle { reserved: handle.reserved });
    Ok(())
}

pub fn cuIpcOpenMemHandle_v2(pdptr: Out<'_, CUdeviceptr>, handle: CUipcMemHandle, Flags: c_uint) -> Result {
    let context = Context::current()?;
    // CUDA: the one flag there is has to be given.
    if Flags != 1 {
        return Err(Error::InvalidValue("Flags"));
    }
    let handle = hipIpcMemHandle_t { reserved: handle.reserved };
    let mut at = core::ptr::null_mut();
    // SAFETY: `at` is writable.
    unsafe { context.hip().hipIpcOpenMemHandle(&mut at, handle, Flags) }?;
    let base = device_pointer(at);
    let mut len_bytes = 0;
    let mut start = core::ptr::null_mut();
    // SAFETY: both are writable; the pointer is the provider's.
    if unsafe { context.hip().hipMemGetAddressRange(&mut start, &mut len_bytes, at) }.is_err() {
        len_bytes = 1;
    }
    memory::enter(Allocation::new(base, len_bytes, Kind::Ipc, context));
    pdptr.write(base);
    Ok(())
}

pub fn cuIpcCloseMemHandle(dptr: CUdeviceptr) -> Result {
    crate::process::driver()?;
    let range = memory::take(dptr, |range| range.kind == Kind::Ipc).ok_or(Error::InvalidValue("dptr"))?;
    range.context.bind()?;
    memory::release(&range)
}

pub fn cuIpcGetEventHandle(pHandle: Out<'_, CUipcEventHandle>, event: cuda_abi::CUevent) -> Result {
    let event = crate::object::Event::from_handle(event)?;
    let mut handle = hip_sys::hipIpcEventHandle_t { reserved: [0; 64] };
    // SAFETY: `handle` is writable; the event is alive.
    unsafe { event.hip().hipIpcGetEventHandle(&mut handle, event.hip.0) }?;
    pHandle.write(CUipcEventHandle { reserved: handle.reserved });
    Ok(())
}

pub fn cuIpcOpenEventHandle(phEvent: Out<'_, cuda_abi::CUevent>, handle: CUipcEventHandle) -> Result {
    let context = Context::current()?;
    let handle = hip_sys::hipIpcEventHandle_t { reserved: handle.reserved };
    let mut event = core::ptr::null_mut();
    // SAFETY: `event` is writable.
    unsafe { context.hip().hipIpcOpenEventHandle(&mut event, handle) }?;
    let flags =
        cuda_abi::CUevent_flags::CU_EVENT_DISABLE_TIMING.0 | cuda_abi::CUevent_flags::CU_EVENT_INTERPROCESS.0;
    phEvent.write(crate::object::Event::enter(event, context, flags)?);
    Ok(())
}

/// Writes by other devices over PCIe: none of ours is one.
pub fn cuFlushGPUDirectRDMAWrites(
    _target: cuda_abi::CUflushGPUDirectRDMAWritesTarget,
    _scope: cuda_abi::CUflushGPUDirectRDMAWritesScope,
) -> Result {
    Context::current()?;
    Err(Error::NotSupported("cuFlushGPUDirectRDMAWrites"))
}

/// Handles of memory for other APIs.
pub fn cuMemGetHandleForAddressRange(
    _handle: *mut c_void,
    _dptr: CUdeviceptr,
    _size: usize,
    _handleType: cuda_abi::CUmemRangeHandleType,
    _flags: c_ulonglong,
) -> Result {
    Context::current()?;
    Err(Error::NotSupported("cuMemGetHandleForAddressRange"))
}

/// Where managed memory was advised to live and last moved.
///
/// # Safety
/// `data` is NULL, or has `dataSize` bytes that may be written.
pub unsafe fn cuMemRangeGetAttribute(
    data: *mut c_void,
    dataSize: usize,
    attribute: cuda_abi::CUmem_range_attribute,
    devPtr: CUdeviceptr,
    count: usize,
) -> Result {
    let range = managed(devPtr, count)?;
    if data.is_null() || dataSize == 0 {
        return Err(Error::InvalidValue("data or dataSize"));
    }
    // HIP has the four attributes that give device numbers, with CUDA's numbers.
    let number = match attribute.0 {
        number @ 1..=4 => number as c_int,
        5..=8 => return Err(Error::NotSupported("cuMemRangeGetAttribute: locations by type")),
        _ => return Err(Error::InvalidValue("attribute")),
    };
    range.context.bind()?;
    let hip = range.context.hip();
    // SAFETY: the caller's promise: `dataSize` bytes at `data`; the range is managed memory of the provider's.
    Ok(unsafe { hip.hipMemRangeGetAttribute(data, dataSize, number, raw(devPtr), count) }?)
}

/// # Safety
/// The arrays are NULL, or have `numAttributes` elements; each place has as many bytes that may be written as is said.
pub unsafe fn cuMemRangeGetAttributes(
    data: *mut *mut c_void,
    dataSizes: *mut usize,
    attributes: *mut cuda_abi::CUmem_range_attribute,
    numAttributes: usize,
    devPtr: CUdeviceptr,
    count: usize,
) -> Result {
    if data.is_null() || dataSizes.is_null() || attributes.is_null() || numAttributes == 0 {
        return Err(Error::InvalidValue("data, dataSizes, attributes or numAttributes"));
    }
    for index in 0..numAttributes {
        // SAFETY: the caller's promise: `numAttributes` entries in each array.
        let (data, size, attribute) =
            unsafe { (*data.add(index), *dataSizes.add(index), *attributes.add(index)) };
        // SAFETY: the caller's promise: a place of that size.
        unsafe { cuMemRangeGetAttribute(data, size, attribute, devPtr, count) }?;
    }
    Ok(())
}

/// The ranges of a batch and where each goes: `locations[i]` from range `indices[i]` on, up to the next one's.
///
/// # Safety
/// `dptrs` and `sizes` are NULL, or have `count` elements for `'a`.
unsafe fn batch<'a>(
    dptrs: *mut CUdeviceptr,
    sizes: *mut usize,
    count: usize,
    flags: c_ulonglong,
    hStream: CUstream,
) -> Result<impl Iterator<Item = (CUdeviceptr, usize)> + Clone + use<'a>> {
    // CUDA: no flags exist, and the stream is not the legacy default one.
    if dptrs.is_null() || sizes.is_null() || count == 0 || flags != 0 {
        return Err(Error::InvalidValue("dptrs, sizes, count or flags"));
    }
    // No node does this.
    forbid_in_capture(hStream)?;
    let stream = Stream::from_handle(hStream)?;
    if stream.hip.0.is_null() {
        return Err(Error::InvalidValue("hStream: the legacy default stream"));
    }
    // SAFETY: the caller's promise: `count` entries in both arrays.
    let (at, sizes) =
        unsafe { (core::slice::from_raw_parts(dptrs, count), core::slice::from_raw_parts(sizes, count)) };
    let ranges = at.iter().copied().zip(sizes.iter().copied());
    ranges.clone().try_for_each(|(at, len_bytes)| managed(at, len_bytes).map(|_| ()))?;
    Ok(ranges)
}

/// Says that contents are of no use any more. Reading them gives anything, so also what was there.
///
/// HIP differs: it cannot be told that contents are of no use.
///
/// # Safety
/// `dptrs` and `sizes` are NULL, or have `count` elements.
pub unsafe fn cuMemDiscardBatchAsync(
    dptrs: *mut CUdeviceptr,
    sizes: *mut usize,
    count: usize,
    flags: c_ulonglong,
    hStream: CUstream,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { batch(dptrs, sizes, count, flags, hStream) }.map(|_| ())
}

/// # Safety
/// `dptrs` and `sizes` are NULL, or have `count` elements, `prefetchLocs` and `prefetchLocIdxs` `numPrefetchLocs`.
pub unsafe fn cuMemPrefetchBatchAsync(
    dptrs: *mut CUdeviceptr,
    sizes: *mut usize,
    count: usize,
    prefetchLocs: *mut CUmemLocation,
    prefetchLocIdxs: *mut usize,
    numPrefetchLocs: usize,
    flags: c_ulonglong,
    hStream: CUstream,
) -> Result {
    // SAFETY: the caller's promise.
    let ranges = unsafe { batch(dptrs, sizes, count, flags, hStream) }?;
    let names = ("prefetchLocs, prefetchLocIdxs or numPrefetchLocs", "prefetchLocIdxs");
    // SAFETY: the caller's promise: `numPrefetchLocs` entries in both arrays.
    let (locations, starts) =
        unsafe { entries(prefetchLocs, prefetchLocIdxs, numPrefetchLocs, count, names) }?;
    let devices = locations.iter().map(location_device).collect::<Result<Vec<_>>>()?;
    for (index, (at, len_bytes)) in ranges.enumerate() {
        let group = starts.partition_point(|start| *start <= index) - 1;
        cuMemPrefetchAsync(at, len_bytes, devices[group], hStream)?;
    }
    Ok(())
}

/// CUDA: as the one call after the other.
///
/// # Safety
/// As [`cuMemPrefetchBatchAsync`].
pub unsafe fn cuMemDiscardAndPrefetchBatchAsync(
    dptrs: *mut CUdeviceptr,
    sizes: *mut usize,
    count: usize,
    prefetchLocs: *mut CUmemLocation,
    prefetchLocIdxs: *mut usize,
    numPrefetchLocs: usize,
    flags: c_ulonglong,
    hStream: CUstream,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { cuMemDiscardBatchAsync(dptrs, sizes, count, flags, hStream) }?;
    // SAFETY: the caller's promise.
    unsafe {
        cuMemPrefetchBatchAsync(
            dptrs,
            sizes,
            count,
            prefetchLocs,
            prefetchLocIdxs,
            numPrefetchLocs,
            flags,
            hStream,
        )
    }
}

/// Where managed memory lies, region by region.
///
/// HIP differs: it can say where a range was last prefetched to, and that for a whole range only. Memory that never was is on no
/// processor yet.
///
/// # Safety
/// `location_out` is NULL, or has room for an element for each `summaryGranularity` bytes of `size`.
pub unsafe fn cuMemGetLocationInfo(
    ptr: CUdeviceptr,
    size: usize,
    summaryGranularity: usize,
    samplingGranularity: usize,
    location_out: *mut CUmemLocation,
) -> Result {
    let range = managed(ptr, size)?;
    if location_out.is_null()
        || summaryGranularity == 0
        || summaryGranularity > size
        || samplingGranularity > summaryGranularity
    {
        return Err(Error::InvalidValue("location_out or a granularity"));
    }
    range.context.bind()?;
    const LAST_PREFETCH: c_int = 4;
    let mut last: c_int = 0;
    let (answer, four) = ((&raw mut last).cast(), size_of::<c_int>());
    let hip = range.context.hip();
    // SAFETY: four writable bytes; the range is managed memory of the provider's.
    unsafe { hip.hipMemRangeGetAttribute(answer, four, LAST_PREFETCH, raw(ptr), size) }?;
    let location = match last {
        hip_sys::hipCpuDeviceId => location_of(CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST, 0),
        hip_sys::hipInvalidDeviceId => location_of(CUmemLocationType::CU_MEM_LOCATION_TYPE_NONE, 0),
        _ => location_of(CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE, range.context.device.ordinal),
    };
    for index in 0..size.div_ceil(summaryGranularity) {
        // SAFETY: the caller's promise: an entry for each region.
        unsafe { location_out.add(index).write(location) };
    }
    Ok(())
}

fn location_of(kind: CUmemLocationType, id: c_int) -> CUmemLocation {
    let mut location = CUmemLocation { type_: kind, ..Default::default() };
    location.__bindgen_anon_1.id = id;
    location
}

/// CUDA: only where CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_ALGORITHM_MASK is not 0.
pub fn cuMemBatchDecompressAsync(
    paramsArray: *mut cuda_abi::CUmemDecompressParams,
    count: usize,
    flags: c_uint,
    _errorIndex: OptOut<'_, usize>,
    stream: CUstream,
) -> Result {
    Stream::from_handle(stream)?;
    if paramsArray.is_null() || count == 0 || flags != 0 {
        return Err(Error::InvalidValue("paramsArray, count or flags"));
    }
    // HIP differs: it has no decompression engine.
    Err(Error::NotSupported("cuMemBatchDecompressAsync: no device here has a decompression engine"))
}
