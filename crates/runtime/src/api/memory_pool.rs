//! Stream-ordered allocation.

use core::ffi::{c_int, c_uint, c_void};
use std::ptr;

use border::Out;
use cuda_abi::runtime::{
    cudaMemAccessFlags, cudaMemAllocationHandleType, cudaMemAllocationType, cudaMemPool_t, cudaMemPoolAttr,
    cudaMemPoolPtrExportData, cudaStream_t,
};
use cuda_abi::{
    CUmemAccess_flags, CUmemAccessDesc, CUmemAllocationHandleType, CUmemAllocationType, CUmemLocation,
    CUmemPool_attribute, CUmemPoolProps, CUmemPoolPtrExportData,
};

use super::memory::{address, pointer};
use crate::{Result, device, driver, stream};

/// CUDA: 0 bytes succeed and give a null pointer, as with cudaMalloc.
pub fn cudaMallocAsync(devPtr: Out<'_, *mut c_void>, size: usize, hStream: cudaStream_t) -> Result {
    let driver = device::attach()?;
    let mut allocated = 0;
    if size != 0 {
        driver.cuMemAllocAsync(&mut allocated, size, stream::meant(hStream))?;
    }
    devPtr.write(pointer(allocated));
    Ok(())
}

pub fn cudaMallocFromPoolAsync(
    ptr: Out<'_, *mut c_void>,
    size: usize,
    memPool: cudaMemPool_t,
    stream: cudaStream_t,
) -> Result {
    let driver = device::attach()?;
    let mut allocated = 0;
    if size != 0 {
        driver.cuMemAllocFromPoolAsync(&mut allocated, size, memPool, stream::meant(stream))?;
    }
    ptr.write(pointer(allocated));
    Ok(())
}

pub fn cudaFreeAsync(devPtr: *mut c_void, hStream: cudaStream_t) -> Result {
    let driver = device::attach()?;
    if devPtr.is_null() { Ok(()) } else { driver.cuMemFreeAsync(address(devPtr), stream::meant(hStream)) }
}

pub fn cudaDeviceGetDefaultMemPool(memPool: Out<'_, cudaMemPool_t>, device: c_int) -> Result {
    let mut pool = ptr::null_mut();
    let device = device::at(device)?;
    driver::get()?.cuDeviceGetDefaultMemPool(&mut pool, device.handle)?;
    memPool.write(pool);
    Ok(())
}

pub fn cudaDeviceGetMemPool(memPool: Out<'_, cudaMemPool_t>, device: c_int) -> Result {
    let mut pool = ptr::null_mut();
    let device = device::at(device)?;
    driver::get()?.cuDeviceGetMemPool(&mut pool, device.handle)?;
    memPool.write(pool);
    Ok(())
}

pub fn cudaDeviceSetMemPool(device: c_int, memPool: cudaMemPool_t) -> Result {
    let device = device::at(device)?;
    driver::get()?.cuDeviceSetMemPool(device.handle, memPool)
}

/// `Props` is the major's cudaMemPoolProps, which has the driver's layout in all of them.
pub fn cudaMemPoolCreate<Props>(memPool: Out<'_, cudaMemPool_t>, poolProps: &Props) -> Result {
    const { assert!(size_of::<Props>() == size_of::<CUmemPoolProps>()) };
    let mut pool = ptr::null_mut();
    device::attach()?.cuMemPoolCreate(&mut pool, ptr::from_ref(poolProps).cast())?;
    memPool.write(pool);
    Ok(())
}

/// `Desc` is the major's cudaMemAccessDesc, which has the driver's layout in all of them.
pub fn cudaMemPoolSetAccess<Desc>(memPool: cudaMemPool_t, descList: *const Desc, count: usize) -> Result {
    const { assert!(size_of::<Desc>() == size_of::<CUmemAccessDesc>()) };
    device::attach()?.cuMemPoolSetAccess(memPool, descList.cast(), count)
}

/// `Location` is the major's cudaMemLocation, which has the driver's layout in all of them.
pub fn cudaMemPoolGetAccess<Location>(
    flags: Out<'_, cudaMemAccessFlags>,
    memPool: cudaMemPool_t,
    location: *mut Location,
) -> Result {
    const { assert!(size_of::<Location>() == size_of::<CUmemLocation>()) };
    let mut found = CUmemAccess_flags(0);
    device::attach()?.cuMemPoolGetAccess(&mut found, memPool, location.cast())?;
    flags.write(cudaMemAccessFlags(found.0));
    Ok(())
}

pub fn cudaMemPoolDestroy(memPool: cudaMemPool_t) -> Result {
    device::attach()?.cuMemPoolDestroy(memPool)
}

pub fn cudaMemPoolTrimTo(memPool: cudaMemPool_t, minBytesToKeep: usize) -> Result {
    device::attach()?.cuMemPoolTrimTo(memPool, minBytesToKeep)
}

/// The attributes have the driver's numbers and types.
pub fn cudaMemPoolGetAttribute(memPool: cudaMemPool_t, attr: cudaMemPoolAttr, value: *mut c_void) -> Result {
    device::attach()?.cuMemPoolGetAttribute(memPool, CUmemPool_attribute(attr.0), value)
}

pub fn cudaMemPoolSetAttribute(memPool: cudaMemPool_t, attr: cudaMemPoolAttr, value: *mut c_void) -> Result {
    device::attach()?.cuMemPoolSetAttribute(memPool, CUmemPool_attribute(attr.0), value)
}

/// `Location` is a major's cudaMemLocation, which has the driver's layout.
pub fn cudaMemGetDefaultMemPool<Location>(
    memPool: Out<'_, cudaMemPool_t>,
    location: *mut Location,
    type_: cudaMemAllocationType,
) -> Result {
    const { assert!(size_of::<Location>() == size_of::<CUmemLocation>()) };
    let mut pool = ptr::null_mut();
    let kind = CUmemAllocationType(type_.0);
    device::attach()?.cuMemGetDefaultMemPool(&mut pool, location.cast(), kind)?;
    memPool.write(pool);
    Ok(())
}

pub fn cudaMemGetMemPool<Location>(
    memPool: Out<'_, cudaMemPool_t>,
    location: *mut Location,
    type_: cudaMemAllocationType,
) -> Result {
    const { assert!(size_of::<Location>() == size_of::<CUmemLocation>()) };
    let mut pool = ptr::null_mut();
    device::attach()?.cuMemGetMemPool(&mut pool, location.cast(), CUmemAllocationType(type_.0))?;
    memPool.write(pool);
    Ok(())
}

pub fn cudaMemSetMemPool<Location>(
    location: *mut Location,
    type_: cudaMemAllocationType,
    memPool: cudaMemPool_t,
) -> Result {
    const { assert!(size_of::<Location>() == size_of::<CUmemLocation>()) };
    device::attach()?.cuMemSetMemPool(location.cast(), CUmemAllocationType(type_.0), memPool)
}

pub fn cudaMemPoolExportToShareableHandle(
    shareableHandle: *mut c_void,
    memPool: cudaMemPool_t,
    handleType: cudaMemAllocationHandleType,
    flags: c_uint,
) -> Result {
    let kind = CUmemAllocationHandleType(handleType.0);
    device::attach()?.cuMemPoolExportToShareableHandle(shareableHandle, memPool, kind, flags.into())
}

pub fn cudaMemPoolImportFromShareableHandle(
    memPool: Out<'_, cudaMemPool_t>,
    shareableHandle: *mut c_void,
    handleType: cudaMemAllocationHandleType,
    flags: c_uint,
) -> Result {
    let mut pool = ptr::null_mut();
    let kind = CUmemAllocationHandleType(handleType.0);
    device::attach()?.cuMemPoolImportFromShareableHandle(&mut pool, shareableHandle, kind, flags.into())?;
    memPool.write(pool);
    Ok(())
}

pub fn cudaMemPoolExportPointer(exportData: Out<'_, cudaMemPoolPtrExportData>, ptr: *mut c_void) -> Result {
    let mut data = CUmemPoolPtrExportData::default();
    device::attach()?.cuMemPoolExportPointer(&mut data, address(ptr))?;
    exportData.write(cudaMemPoolPtrExportData { reserved: data.reserved });
    Ok(())
}

pub fn cudaMemPoolImportPointer(
    ptr: Out<'_, *mut c_void>,
    memPool: cudaMemPool_t,
    exportData: &cudaMemPoolPtrExportData,
) -> Result {
    let mut data = CUmemPoolPtrExportData { reserved: exportData.reserved };
    let mut at = 0;
    device::attach()?.cuMemPoolImportPointer(&mut at, memPool, &mut data)?;
    ptr.write(pointer(at));
    Ok(())
}
