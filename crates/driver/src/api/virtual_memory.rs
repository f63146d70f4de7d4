//! Virtual Memory Management: addresses that are reserved, memory that is created, and the one mapped at the other.
//!
//! No context owns any of it. A handle is ours and counts its references; each of them is one of the provider's too.
//! Lock order: `RESERVED` and the registries are taken alone, never over a HIP call.

use core::ffi::{c_int, c_uint, c_ulonglong, c_void};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use border::Out;
use cuda_abi::{
    CUarrayMapInfo, CUdeviceptr, CUmemAccessDesc, CUmemAllocationGranularity_flags,
    CUmemAllocationHandleType, CUmemAllocationProp, CUmemAllocationType, CUmemGenericAllocationHandle,
    CUmemLocation, CUmemLocationType, CUstream,
};
use hip_sys::{
    Hip, hipMemAccessDesc, hipMemAllocationProp, hipMemAllocationPropFlags, hipMemAllocationTypePinned,
    hipMemGenericAllocationHandle_t, hipMemLocation, hipMemLocationTypeDevice,
};
use parking_lot::Mutex;

use crate::handle::Registry;
use crate::object::device::Target;
use crate::object::memory::{self, Allocation, Kind, device_pointer, raw};
use crate::object::{Context, Device, Shared, Stream, location};
use crate::process::driver;
use crate::{Error, Result};

static PHYSICAL: Registry<Arc<Physical>, CUmemGenericAllocationHandle> = Registry::new(16);

/// Reserved ranges by start: bytes, and the device whose provider reserved them.
static RESERVED: Mutex<BTreeMap<u64, (usize, &'static Device)>> = Mutex::new(BTreeMap::new());

struct Physical {
    device: &'static Device,
    hip: Shared<hipMemGenericAllocationHandle_t>,
    properties: CUmemAllocationProp,
    /// Creation, imports and retains, less the releases.
    references: AtomicU32,
}

// SAFETY: the pointers among the properties are kept for the program and never followed.
unsafe impl Send for Physical {}
// SAFETY: as above.
unsafe impl Sync for Physical {}

impl Physical {
    fn of(handle: CUmemGenericAllocationHandle) -> Result<Arc<Physical>> {
        driver()?;
        PHYSICAL.get(handle).ok_or(Error::InvalidValue("handle"))
    }

    fn enter(
        device: &'static Device,
        hip: hipMemGenericAllocationHandle_t,
        properties: CUmemAllocationProp,
    ) -> Result<CUmemGenericAllocationHandle> {
        let physical = Physical { device, hip: Shared(hip), properties, references: AtomicU32::new(1) };
        PHYSICAL.insert(Arc::new(physical)).ok_or(Error::OutOfMemory)
    }
}

/// The device of a location. The host's memory, of whatever node, is the CPU device's too.
fn device_of(location: &CUmemLocation, parameter: &'static str) -> Result<&'static Device> {
    if let Some(number) = location::number(location, parameter)? {
        return Device::get(number);
    }
    // HIP differs: physical memory is a device's, and access is granted to devices.
    let device = device_of_the_thread()?;
    let is_cpu = device.target == Target::Cpu;
    is_cpu.then_some(device).ok_or(Error::NotSupported("virtual memory management: locations of the host"))
}

fn hip_location(device: &Device) -> hipMemLocation {
    hipMemLocation { r#type: hipMemLocationTypeDevice, id: device.hip_ordinal }
}

/// What HIP is asked for; its numbers are CUDA's.
fn hip_properties(properties: &CUmemAllocationProp) -> Result<(&'static Device, hipMemAllocationProp)> {
    match properties.type_ {
        CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED => {}
        CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_MANAGED => {
            return Err(Error::NotSupported("cuMemCreate: managed memory"));
        }
        _ => return Err(Error::InvalidValue("prop.type")),
    }
    let device = device_of(&properties.location, "prop.location")?;
    if !matches!(properties.requestedHandleTypes.0, 0 | DESCRIPTOR) {
        return Err(Error::NotSupported("cuMemCreate: handles other than POSIX file descriptors"));
    }
    let flags = properties.allocFlags;
    // CUDA: memory is compressed only if asked for and where the device can.
    let wanted = hipMemAllocationProp {
        r#type: hipMemAllocationTypePinned,
        requestedHandleType: properties.requestedHandleTypes.0.cast_signed(),
        location: hip_location(device),
        win32HandleMetaData: core::ptr::null_mut(),
        allocFlags: hipMemAllocationPropFlags {
            compressionType: 0,
            gpuDirectRDMACapable: flags.gpuDirectRDMACapable,
            usage: 0,
        },
    };
    Ok((device, wanted))
}

/// CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
const DESCRIPTOR: c_uint = 1;

pub fn cuMemGetAllocationGranularity(
    granularity: Out<'_, usize>,
    prop: &CUmemAllocationProp,
    option: CUmemAllocationGranularity_flags,
) -> Result {
    driver()?;
    let (device, wanted) = hip_properties(prop)?;
    if option.0 > CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_RECOMMENDED.0 {
        return Err(Error::InvalidValue("option"));
    }
    let mut answer = 0;
    // SAFETY: `answer` is writable, the properties readable.
    unsafe { device.hip().hipMemGetAllocationGranularity(&mut answer, &wanted, option.0.cast_signed()) }?;
    granularity.write(answer);
    Ok(())
}

pub fn cuMemCreate(
    handle: Out<'_, CUmemGenericAllocationHandle>,
    size: usize,
    prop: &CUmemAllocationProp,
    flags: c_ulonglong,
) -> Result {
    driver()?;
    // CUDA: no flags exist yet.
    if flags != 0 || size == 0 {
        return Err(Error::InvalidValue("flags or size"));
    }
    let (device, wanted) = hip_properties(prop)?;
    let mut made: hipMemGenericAllocationHandle_t = core::ptr::null_mut();
    // SAFETY: `made` is writable, the properties readable.
    unsafe { device.hip().hipMemCreate(&mut made, size, &wanted, flags) }?;
    handle.write(Physical::enter(device, made, *prop)?);
    Ok(())
}

/// CUDA: the memory stays until the last mapping of it is gone.
pub fn cuMemRelease(handle: CUmemGenericAllocationHandle) -> Result {
    let physical = Physical::of(handle)?;
    if physical.references.fetch_sub(1, Ordering::AcqRel) == 1 {
        PHYSICAL.remove(handle);
    }
    // SAFETY: one of as many references as there are.
    Ok(unsafe { physical.device.hip().hipMemRelease(physical.hip.0) }?)
}

pub fn cuMemGetAllocationPropertiesFromHandle(
    prop: Out<'_, CUmemAllocationProp>,
    handle: CUmemGenericAllocationHandle,
) -> Result {
    prop.write(Physical::of(handle)?.properties);
    Ok(())
}

/// One more reference to the memory that is mapped at an address.
pub fn cuMemRetainAllocationHandle(
    handle: Out<'_, CUmemGenericAllocationHandle>,
    addr: *mut c_void,
) -> Result {
    let device = device_at(device_pointer(addr), 1)?;
    let hip = device.hip();
    let mut found: hipMemGenericAllocationHandle_t = core::ptr::null_mut();
    // SAFETY: `found` is writable.
    unsafe { hip.hipMemRetainAllocationHandle(&mut found, raw(device_pointer(addr))) }?;
    if let Some(known) = known(device, found) {
        handle.write(known);
        return Ok(());
    }
    // Every handle of it was released; this one is new.
    // SAFETY: numbers and pointers, all zeros is a value of it; written before it is read.
    let mut properties: hipMemAllocationProp = unsafe { core::mem::zeroed() };
    // SAFETY: `properties` is writable, the handle alive.
    unsafe { hip.hipMemGetAllocationPropertiesFromHandle(&mut properties, found) }?;
    handle.write(Physical::enter(device, found, of_hip(device, properties.requestedHandleType))?);
    Ok(())
}

/// The handle of a provider's memory, with one reference more.
fn known(
    device: &'static Device,
    hip: hipMemGenericAllocationHandle_t,
) -> Option<CUmemGenericAllocationHandle> {
    PHYSICAL.find_where(|physical| {
        let same = physical.hip.0 == hip && core::ptr::eq(physical.device.provider, device.provider);
        same && physical.references.fetch_add(1, Ordering::AcqRel) > 0
    })
}

/// Properties of memory that was not made by this process's `cuMemCreate`.
fn of_hip(device: &Device, handle_types: c_int) -> CUmemAllocationProp {
    let mut properties = CUmemAllocationProp {
        type_: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
        requestedHandleTypes: CUmemAllocationHandleType(handle_types.cast_unsigned()),
        ..Default::default()
    };
    properties.location.type_ = CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.__bindgen_anon_1.id = device.ordinal;
    properties
}

/// # Safety
/// `shareableHandle` is NULL, or has room for a handle of that type.
pub unsafe fn cuMemExportToShareableHandle(
    shareableHandle: *mut c_void,
    handle: CUmemGenericAllocationHandle,
    handleType: CUmemAllocationHandleType,
    flags: c_ulonglong,
) -> Result {
    let physical = Physical::of(handle)?;
    // CUDA: the handle can be of a type that was asked for at creation.
    let asked = physical.properties.requestedHandleTypes.0;
    if shareableHandle.is_null() || flags != 0 || handleType.0 == 0 || asked & handleType.0 == 0 {
        return Err(Error::InvalidValue("shareableHandle, handleType or flags"));
    }
    let hip = physical.device.hip();
    let kind = handleType.0.cast_signed();
    // SAFETY: the caller's promise: room for a handle of that type; the memory is alive.
    Ok(unsafe { hip.hipMemExportToShareableHandle(shareableHandle, physical.hip.0, kind, flags) }?)
}

pub fn cuMemImportFromShareableHandle(
    handle: Out<'_, CUmemGenericAllocationHandle>,
    osHandle: *mut c_void,
    shHandleType: CUmemAllocationHandleType,
) -> Result {
    driver()?;
    if shHandleType.0 != DESCRIPTOR {
        return Err(Error::NotSupported("cuMemImportFromShareableHandle: other than file descriptors"));
    }
    let device = device_of_the_thread()?;
    let mut made: hipMemGenericAllocationHandle_t = core::ptr::null_mut();
    let kind = shHandleType.0.cast_signed();
    // SAFETY: `made` is writable; a descriptor is a number.
    unsafe { device.hip().hipMemImportFromShareableHandle(&mut made, raw(osHandle.addr() as u64), kind) }?;
    handle.write(Physical::enter(device, made, of_hip(device, kind))?);
    Ok(())
}

/// The current context's device, else the first one: these calls need no context.
fn device_of_the_thread() -> Result<&'static Device> {
    match Context::current_raw()? {
        Some(context) => Ok(context.device),
        None => Device::get(0),
    }
}

pub fn cuMemAddressReserve(
    ptr: Out<'_, CUdeviceptr>,
    size: usize,
    alignment: usize,
    addr: CUdeviceptr,
    flags: c_ulonglong,
) -> Result {
    driver()?;
    if size == 0 || flags != 0 || (alignment != 0 && !alignment.is_power_of_two()) {
        return Err(Error::InvalidValue("size, alignment or flags"));
    }
    let device = device_of_the_thread()?;
    let mut at = core::ptr::null_mut();
    // SAFETY: `at` is writable; the address is only a wish.
    unsafe { device.hip().hipMemAddressReserve(&mut at, size, alignment, raw(addr), flags) }?;
    let base = device_pointer(at);
    RESERVED.lock().insert(base, (size, device));
    ptr.write(base);
    Ok(())
}

/// The reservations from the one that holds `ptr` on, without a hole, until they hold `size` bytes from there.
///
/// CUDA treats neighbours as one range: programs grow arrays by reserving what follows.
fn reservations(ptr: CUdeviceptr, size: usize) -> Result<Vec<(u64, usize, &'static Device)>> {
    driver()?;
    let wrong = Error::InvalidValue("ptr or size: not reserved");
    let end = ptr.checked_add(size as u64).filter(|end| *end > ptr).ok_or(wrong)?;
    let reserved = RESERVED.lock();
    let first = reserved.range(..=ptr).next_back().map(|(base, _)| *base).ok_or(wrong)?;
    let (mut found, mut next) = (Vec::new(), first);
    while found.is_empty() || next < end {
        let (len_bytes, device) = reserved.get(&next).copied().ok_or(wrong)?;
        found.push((next, len_bytes, device));
        next += len_bytes as u64;
    }
    if next < end || next <= ptr { Err(wrong) } else { Ok(found) }
}

/// The device whose provider reserved a range.
fn device_at(ptr: CUdeviceptr, size: usize) -> Result<&'static Device> {
    let all = reservations(ptr, size)?;
    let device = all[0].2;
    if all.iter().all(|(.., other)| core::ptr::eq(other.provider, device.provider)) {
        Ok(device)
    } else {
        Err(Error::InvalidValue("ptr or size: reserved by two providers"))
    }
}

/// CUDA: whole reservations, with nothing mapped in them.
pub fn cuMemAddressFree(ptr: CUdeviceptr, size: usize) -> Result {
    let all = reservations(ptr, size)?;
    let whole: usize = all.iter().map(|(_, len_bytes, _)| len_bytes).sum();
    if all[0].0 != ptr || whole != size {
        return Err(Error::InvalidValue("ptr or size: a part of a reservation"));
    }
    for (base, len_bytes, device) in all {
        // SAFETY: the range is the provider's reservation.
        unsafe { device.hip().hipMemAddressFree(raw(base), len_bytes) }?;
        RESERVED.lock().remove(&base);
    }
    Ok(())
}

fn hip_of(ptr: CUdeviceptr, size: usize) -> Result<&'static Hip> {
    Ok(device_at(ptr, size)?.hip())
}

pub fn cuMemMap(
    ptr: CUdeviceptr,
    size: usize,
    offset: usize,
    handle: CUmemGenericAllocationHandle,
    flags: c_ulonglong,
) -> Result {
    let device = device_at(ptr, size)?;
    let physical = Physical::of(handle)?;
    // CUDA: offsets and flags are for later.
    if offset != 0 || flags != 0 {
        return Err(Error::InvalidValue("offset or flags"));
    }
    if !core::ptr::eq(device.provider, physical.device.provider) {
        return Err(Error::NotSupported("cuMemMap: addresses and memory of two providers"));
    }
    // SAFETY: reserved addresses and memory that is alive.
    unsafe { device.hip().hipMemMap(raw(ptr), size, offset, physical.hip.0, flags) }?;
    let context = Context::primary(physical.device)?;
    memory::enter(Allocation::of_no_context(ptr, size, Kind::Mapped, context));
    Ok(())
}

/// CUDA: whole mappings, as many as lie in the range.
pub fn cuMemUnmap(ptr: CUdeviceptr, size: usize) -> Result {
    let hip = hip_of(ptr, size)?;
    // SAFETY: the provider checks that its mappings fill the range.
    unsafe { hip.hipMemUnmap(raw(ptr), size) }?;
    let end = ptr + size as u64;
    let mut at = ptr;
    while at < end
        && let Some(range) = memory::take(at, |range| range.kind == Kind::Mapped)
    {
        at += range.len_bytes as u64;
    }
    Ok(())
}

/// # Safety
/// `desc` is NULL, or has `count` elements.
pub unsafe fn cuMemSetAccess(
    ptr: CUdeviceptr,
    size: usize,
    desc: *const CUmemAccessDesc,
    count: usize,
) -> Result {
    let hip = hip_of(ptr, size)?;
    if desc.is_null() || count == 0 {
        return Err(Error::InvalidValue("desc or count"));
    }
    // SAFETY: the caller's promise: `count` entries.
    let wanted = unsafe { core::slice::from_raw_parts(desc, count) };
    let wanted = wanted.iter().map(|entry| {
        let device = device_of(&entry.location, "desc.location")?;
        if !matches!(entry.flags.0, 0 | 1 | 3) {
            return Err(Error::InvalidValue("desc.flags"));
        }
        Ok(hipMemAccessDesc { location: hip_location(device), flags: entry.flags.0.cast_signed() })
    });
    let wanted = wanted.collect::<Result<Vec<_>>>()?;
    // SAFETY: the entries are readable; the provider checks that its mappings fill the range.
    Ok(unsafe { hip.hipMemSetAccess(raw(ptr), size, wanted.as_ptr(), wanted.len()) }?)
}

pub fn cuMemGetAccess(flags: Out<'_, c_ulonglong>, location: &CUmemLocation, ptr: CUdeviceptr) -> Result {
    let hip = hip_of(ptr, 1)?;
    let location = hip_location(device_of(location, "location")?);
    let mut answer = 0;
    // SAFETY: `answer` is writable, the location readable.
    unsafe { hip.hipMemGetAccess(&mut answer, &location, raw(ptr)) }?;
    flags.write(answer);
    Ok(())
}

/// Maps parts of sparse arrays, of which there are none: `cuArrayCreate` does not make them.
pub fn cuMemMapArrayAsync(mapInfoList: *mut CUarrayMapInfo, count: c_uint, hStream: CUstream) -> Result {
    Stream::from_handle(hStream)?;
    if mapInfoList.is_null() || count == 0 {
        return Err(Error::InvalidValue("mapInfoList or count"));
    }
    Err(Error::NotSupported("cuMemMapArrayAsync: sparse arrays"))
}
