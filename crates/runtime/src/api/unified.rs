//! Unified addressing and managed memory: what a pointer is, advice, prefetching.

use core::ffi::{c_int, c_uint, c_ulonglong, c_void};
use std::ptr;

use border::Out;
use cuda_abi::runtime::{
    cudaMemLocationType, cudaMemRangeAttribute, cudaMemoryAdvise, cudaMemoryType, cudaStream_t, v11, v12, v13,
};
use cuda_abi::{
    CUdeviceptr, CUmem_advise, CUmem_range_attribute, CUmemLocation, CUmemLocationType, CUmemorytype,
    CUpointer_attribute,
};

use super::memory::{address, pointer};
use crate::{Error, Result, device, stream};

/// What the driver knows about a pointer.
struct Pointer {
    kind: cudaMemoryType,
    device: c_int,
    device_pointer: *mut c_void,
    host_pointer: *mut c_void,
}

impl Pointer {
    /// CUDA: a pointer that it does not know is unregistered host memory, not an error (11.0 and later).
    fn look_up(pointer: *const c_void) -> Result<Self> {
        let driver = device::attach()?;
        if pointer.is_null() {
            return Err(Error::InvalidValue("ptr"));
        }
        let mut memory_type = CUmemorytype(0);
        let mut is_managed: c_uint = 0;
        let mut ordinal: c_int = 0;
        let mut device_pointer: CUdeviceptr = 0;
        let mut host_pointer: *mut c_void = ptr::null_mut();
        let mut attributes = [
            CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
            CUpointer_attribute::CU_POINTER_ATTRIBUTE_IS_MANAGED,
            CUpointer_attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
            CUpointer_attribute::CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
            CUpointer_attribute::CU_POINTER_ATTRIBUTE_HOST_POINTER,
        ];
        let mut data: [*mut c_void; 5] = [
            (&raw mut memory_type).cast(),
            (&raw mut is_managed).cast(),
            (&raw mut ordinal).cast(),
            (&raw mut device_pointer).cast(),
            (&raw mut host_pointer).cast(),
        ];
        driver.cuPointerGetAttributes(5, attributes.as_mut_ptr(), data.as_mut_ptr(), address(pointer))?;
        let kind = match memory_type {
            _ if is_managed & 0xff != 0 => cudaMemoryType::cudaMemoryTypeManaged,
            CUmemorytype::CU_MEMORYTYPE_HOST => cudaMemoryType::cudaMemoryTypeHost,
            CUmemorytype::CU_MEMORYTYPE_DEVICE | CUmemorytype::CU_MEMORYTYPE_ARRAY => {
                cudaMemoryType::cudaMemoryTypeDevice
            }
            _ => {
                return Ok(Pointer {
                    kind: cudaMemoryType::cudaMemoryTypeUnregistered,
                    // CUDA's runtimes say -2 here, "no device".
                    device: -2,
                    device_pointer: ptr::null_mut(),
                    host_pointer: pointer.cast_mut(),
                });
            }
        };
        Ok(Pointer { kind, device: ordinal, device_pointer: self::pointer(device_pointer), host_pointer })
    }
}

pub fn cudaPointerGetAttributes_v11(
    attributes: Out<'_, v11::cudaPointerAttributes>,
    ptr: *const c_void,
) -> Result {
    let found = Pointer::look_up(ptr)?;
    attributes.write(v11::cudaPointerAttributes {
        type_: found.kind,
        device: found.device,
        devicePointer: found.device_pointer,
        hostPointer: found.host_pointer,
    });
    Ok(())
}

pub fn cudaPointerGetAttributes_v12(
    attributes: Out<'_, v12::cudaPointerAttributes>,
    ptr: *const c_void,
) -> Result {
    let found = Pointer::look_up(ptr)?;
    attributes.write(v12::cudaPointerAttributes {
        type_: found.kind,
        device: found.device,
        devicePointer: found.device_pointer,
        hostPointer: found.host_pointer,
    });
    Ok(())
}

pub fn cudaPointerGetAttributes_v13(
    attributes: Out<'_, v13::cudaPointerAttributes>,
    ptr: *const c_void,
) -> Result {
    let found = Pointer::look_up(ptr)?;
    attributes.write(v13::cudaPointerAttributes {
        type_: found.kind,
        device: found.device,
        devicePointer: found.device_pointer,
        hostPointer: found.host_pointer,
        ..Default::default()
    });
    Ok(())
}

/// A place for memory: a device, or the host.
#[derive(Clone, Copy)]
struct Location {
    kind: cudaMemLocationType,
    id: c_int,
}

impl Location {
    /// The older calls name a place by a device number, with -1 for the host.
    fn of_device(device: c_int) -> Self {
        const CPU_DEVICE: c_int = -1;
        if device == CPU_DEVICE {
            Location { kind: cudaMemLocationType::cudaMemLocationTypeHost, id: 0 }
        } else {
            Location { kind: cudaMemLocationType::cudaMemLocationTypeDevice, id: device }
        }
    }

    fn driver(self) -> CUmemLocation {
        let mut location = CUmemLocation { type_: CUmemLocationType(self.kind.0), ..Default::default() };
        location.__bindgen_anon_1.id = self.id;
        location
    }
}

impl From<v12::cudaMemLocation> for Location {
    fn from(location: v12::cudaMemLocation) -> Self {
        Location { kind: location.type_, id: location.id }
    }
}

impl From<v13::cudaMemLocation> for Location {
    fn from(location: v13::cudaMemLocation) -> Self {
        // SAFETY: every variant of the union is plain bytes, and `id` covers all of them.
        Location { kind: location.type_, id: unsafe { location.__bindgen_anon_1.id } }
    }
}

fn advise(devPtr: *const c_void, count: usize, advice: cudaMemoryAdvise, location: Location) -> Result {
    let driver = device::attach()?;
    driver.cuMemAdvise_v2(address(devPtr), count, CUmem_advise(advice.0), location.driver())
}

fn prefetch(
    devPtr: *const c_void,
    count: usize,
    location: Location,
    flags: c_uint,
    stream: cudaStream_t,
) -> Result {
    let driver = device::attach()?;
    driver.cuMemPrefetchAsync_v2(address(devPtr), count, location.driver(), flags, stream::meant(stream))
}

pub fn cudaMemAdvise_v12(
    devPtr: *const c_void,
    count: usize,
    advice: cudaMemoryAdvise,
    device: c_int,
) -> Result {
    advise(devPtr, count, advice, Location::of_device(device))
}
pub use cudaMemAdvise_v12 as cudaMemAdvise_v11;

pub fn cudaMemAdvise_v13(
    devPtr: *const c_void,
    count: usize,
    advice: cudaMemoryAdvise,
    location: v13::cudaMemLocation,
) -> Result {
    advise(devPtr, count, advice, location.into())
}

pub fn cudaMemAdvise_v2(
    devPtr: *const c_void,
    count: usize,
    advice: cudaMemoryAdvise,
    location: v12::cudaMemLocation,
) -> Result {
    advise(devPtr, count, advice, location.into())
}

pub fn cudaMemPrefetchAsync_v12(
    devPtr: *const c_void,
    count: usize,
    dstDevice: c_int,
    stream: cudaStream_t,
) -> Result {
    prefetch(devPtr, count, Location::of_device(dstDevice), 0, stream)
}
pub use cudaMemPrefetchAsync_v12 as cudaMemPrefetchAsync_v11;

pub fn cudaMemPrefetchAsync_v13(
    devPtr: *const c_void,
    count: usize,
    location: v13::cudaMemLocation,
    flags: c_uint,
    stream: cudaStream_t,
) -> Result {
    prefetch(devPtr, count, location.into(), flags, stream)
}

pub fn cudaMemPrefetchAsync_v2(
    devPtr: *const c_void,
    count: usize,
    location: v12::cudaMemLocation,
    flags: c_uint,
    stream: cudaStream_t,
) -> Result {
    prefetch(devPtr, count, location.into(), flags, stream)
}

pub fn cudaMemRangeGetAttribute(
    data: *mut c_void,
    dataSize: usize,
    attribute: cudaMemRangeAttribute,
    devPtr: *const c_void,
    count: usize,
) -> Result {
    let driver = device::attach()?;
    driver.cuMemRangeGetAttribute(data, dataSize, CUmem_range_attribute(attribute.0), address(devPtr), count)
}

pub fn cudaMemRangeGetAttributes(
    data: *mut *mut c_void,
    dataSizes: *mut usize,
    attributes: *mut cudaMemRangeAttribute,
    numAttributes: usize,
    devPtr: *const c_void,
    count: usize,
) -> Result {
    let driver = device::attach()?;
    let at = address(devPtr);
    // The attributes have the driver's numbers.
    driver.cuMemRangeGetAttributes(data, dataSizes, attributes.cast(), numAttributes, at, count)
}

pub fn cudaMemDiscardBatchAsync(
    dptrs: *mut *mut c_void,
    sizes: *mut usize,
    count: usize,
    flags: c_ulonglong,
    stream: cudaStream_t,
) -> Result {
    device::attach()?.cuMemDiscardBatchAsync(dptrs.cast(), sizes, count, flags, stream::meant(stream))
}

pub fn cudaMemPrefetchBatchAsync<Location>(
    dptrs: *mut *mut c_void,
    sizes: *mut usize,
    count: usize,
    prefetchLocs: *mut Location,
    prefetchLocIdxs: *mut usize,
    numPrefetchLocs: usize,
    flags: c_ulonglong,
    stream: cudaStream_t,
) -> Result {
    const { assert!(size_of::<Location>() == size_of::<CUmemLocation>()) };
    let (at, places) = (dptrs.cast(), prefetchLocs.cast());
    let stream = stream::meant(stream);
    let driver = device::attach()?;
    driver.cuMemPrefetchBatchAsync(at, sizes, count, places, prefetchLocIdxs, numPrefetchLocs, flags, stream)
}

pub fn cudaMemDiscardAndPrefetchBatchAsync<Location>(
    dptrs: *mut *mut c_void,
    sizes: *mut usize,
    count: usize,
    prefetchLocs: *mut Location,
    prefetchLocIdxs: *mut usize,
    numPrefetchLocs: usize,
    flags: c_ulonglong,
    stream: cudaStream_t,
) -> Result {
    const { assert!(size_of::<Location>() == size_of::<CUmemLocation>()) };
    let (at, places) = (dptrs.cast(), prefetchLocs.cast());
    device::attach()?.cuMemDiscardAndPrefetchBatchAsync(
        at,
        sizes,
        count,
        places,
        prefetchLocIdxs,
        numPrefetchLocs,
        flags,
        stream::meant(stream),
    )
}

pub fn cudaMemGetLocationInfo<Location>(
    devPtr: *mut c_void,
    size: usize,
    summaryGranularity: usize,
    samplingGranularity: usize,
    location_out: *mut Location,
) -> Result {
    const { assert!(size_of::<Location>() == size_of::<CUmemLocation>()) };
    let (at, places) = (address(devPtr), location_out.cast());
    device::attach()?.cuMemGetLocationInfo(at, size, summaryGranularity, samplingGranularity, places)
}
