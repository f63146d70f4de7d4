//! Virtual memory management: what the calls check; `memory::mapped` does the work.

use std::ffi::{c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use border::Out;
use hip_sys::*;

use crate::device::{self, healthy};
use crate::error::Result;
use crate::handle::Registry;
use crate::memory::mapped::{self, GRANULARITY, Physical};
use crate::stream;

static MEMORY: Registry<Physical> = Registry::new();

/// `hipMemHandleTypePosixFileDescriptor`, the one way to pass memory on.
const DESCRIPTOR: hipMemAllocationHandleType = 1;

fn physical(handle: hipMemGenericAllocationHandle_t) -> Result<Arc<Physical>> {
    MEMORY.get(handle as usize).map_err(|_| hipErrorInvalidValue)
}

/// Pinned memory of this device, to be passed on by descriptor or not at all.
fn check(properties: &hipMemAllocationProp) -> Result<hipMemAllocationProp> {
    if properties.r#type != hipMemAllocationTypePinned
        || properties.location.r#type != hipMemLocationTypeDevice
    {
        return Err(hipErrorInvalidValue);
    }
    device::check(properties.location.id)?;
    if !matches!(properties.requestedHandleType, 0 | DESCRIPTOR) {
        return Err(hipErrorNotSupported);
    }
    Ok(*properties)
}

pub fn hipMemGetAllocationGranularity(
    granularity: Out<'_, usize>,
    prop: &hipMemAllocationProp,
    option: hipMemAllocationGranularity_flags,
) -> Result {
    check(prop)?;
    // HIP: the least, and the recommended one.
    if !matches!(option, 0 | 1) {
        return Err(hipErrorInvalidValue);
    }
    granularity.write(GRANULARITY);
    Ok(())
}

pub fn hipMemCreate(
    handle: Out<'_, hipMemGenericAllocationHandle_t>,
    size: usize,
    prop: &hipMemAllocationProp,
    flags: u64,
) -> Result {
    healthy()?;
    let properties = check(prop)?;
    if flags != 0 || size == 0 || !size.is_multiple_of(GRANULARITY) {
        return Err(hipErrorInvalidValue);
    }
    handle.write(MEMORY.add(Arc::new(Physical::create(size, properties)?)) as _);
    Ok(())
}

/// Views of it keep the memory.
pub fn hipMemRelease(handle: hipMemGenericAllocationHandle_t) -> Result {
    let physical = physical(handle)?;
    if physical.handles.fetch_sub(1, Ordering::AcqRel) == 1 {
        MEMORY.remove(handle as usize)?;
    }
    Ok(())
}

pub fn hipMemRetainAllocationHandle(
    handle: Out<'_, hipMemGenericAllocationHandle_t>,
    addr: *mut c_void,
) -> Result {
    let physical = mapped::physical_at(addr as usize).ok_or(hipErrorInvalidValue)?;
    physical.handles.fetch_add(1, Ordering::AcqRel);
    handle.write(MEMORY.add(physical) as _);
    Ok(())
}

pub fn hipMemGetAllocationPropertiesFromHandle(
    prop: Out<'_, hipMemAllocationProp>,
    handle: hipMemGenericAllocationHandle_t,
) -> Result {
    prop.write(physical(handle)?.properties);
    Ok(())
}

pub fn hipMemExportToShareableHandle(
    shareableHandle: Out<'_, c_int>,
    handle: hipMemGenericAllocationHandle_t,
    handleType: hipMemAllocationHandleType,
    flags: u64,
) -> Result {
    let physical = physical(handle)?;
    // HIP: memory can be passed on in the way that was asked for when it was made.
    if flags != 0 || handleType != DESCRIPTOR || physical.properties.requestedHandleType != DESCRIPTOR {
        return Err(hipErrorInvalidValue);
    }
    shareableHandle.write(physical.export()?);
    Ok(())
}

pub fn hipMemImportFromShareableHandle(
    handle: Out<'_, hipMemGenericAllocationHandle_t>,
    osHandle: *mut c_void,
    shHandleType: hipMemAllocationHandleType,
) -> Result {
    healthy()?;
    if shHandleType != DESCRIPTOR {
        return Err(hipErrorInvalidValue);
    }
    let properties = hipMemAllocationProp {
        r#type: hipMemAllocationTypePinned,
        requestedHandleType: DESCRIPTOR,
        location: hipMemLocation { r#type: hipMemLocationTypeDevice, id: 0 },
        win32HandleMetaData: std::ptr::null_mut(),
        allocFlags: hipMemAllocationPropFlags { compressionType: 0, gpuDirectRDMACapable: 0, usage: 0 },
    };
    // HIP: the descriptor itself is passed, not a pointer to one.
    let descriptor = c_int::try_from(osHandle as usize).map_err(|_| hipErrorInvalidValue)?;
    handle.write(MEMORY.add(Arc::new(Physical::import(descriptor, properties)?)) as _);
    Ok(())
}

pub fn hipMemAddressReserve(
    ptr: Out<'_, *mut c_void>,
    size: usize,
    alignment: usize,
    addr: *mut c_void,
    flags: u64,
) -> Result {
    if flags != 0 {
        return Err(hipErrorInvalidValue);
    }
    ptr.write(mapped::reserve(size, alignment, addr as usize)? as *mut c_void);
    Ok(())
}

pub fn hipMemAddressFree(devPtr: *mut c_void, size: usize) -> Result {
    mapped::unreserve(devPtr as usize, size)
}

pub fn hipMemMap(
    ptr: *mut c_void,
    size: usize,
    offset: usize,
    handle: hipMemGenericAllocationHandle_t,
    flags: u64,
) -> Result {
    healthy()?;
    // HIP: both are for later.
    if offset != 0 || flags != 0 {
        return Err(hipErrorInvalidValue);
    }
    mapped::map(ptr as usize, size, physical(handle)?)
}

pub fn hipMemUnmap(ptr: *mut c_void, size: usize) -> Result {
    // Work that uses it comes first.
    stream::quiesce();
    mapped::unmap(ptr as usize, size)
}

/// This device is the host, so access is one for both; HIP's locations can only name the device.
///
/// # Safety
/// `desc` is NULL, or has `count` elements.
pub unsafe fn hipMemSetAccess(
    ptr: *mut c_void,
    size: usize,
    desc: *const hipMemAccessDesc,
    count: usize,
) -> Result {
    if desc.is_null() || count == 0 {
        return Err(hipErrorInvalidValue);
    }
    for i in 0..count {
        // SAFETY: the caller's promise.
        let entry = unsafe { desc.add(i).read() };
        if entry.location.r#type != hipMemLocationTypeDevice {
            return Err(hipErrorInvalidValue);
        }
        device::check(entry.location.id)?;
        let access = u32::try_from(entry.flags).map_err(|_| hipErrorInvalidValue)?;
        if access != mapped::ACCESS_READ_WRITE {
            // Work that uses it comes first: a fill or a copy that runs still would end the process.
            stream::quiesce();
        }
        mapped::set_access(ptr as usize, size, access)?;
    }
    Ok(())
}

pub fn hipMemGetAccess(flags: Out<'_, u64>, location: &hipMemLocation, ptr: *mut c_void) -> Result {
    if location.r#type != hipMemLocationTypeDevice {
        return Err(hipErrorInvalidValue);
    }
    device::check(location.id)?;
    let found = crate::memory::find(ptr as usize).filter(|found| found.kind == crate::memory::Kind::Mapped);
    flags.write(found.ok_or(hipErrorInvalidValue)?.flags.into());
    Ok(())
}
