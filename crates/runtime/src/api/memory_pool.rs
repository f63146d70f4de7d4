//! Stream-ordered allocation.

use core::ffi::{c_int, c_void};
use std::ptr;

use cuda_abi::CUmemPool_attribute;
use cuda_abi::out::Out;
use cuda_abi::runtime::{cudaMemPool_t, cudaMemPoolAttr, cudaStream_t};

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

pub fn cudaMallocFromPoolAsync(ptr: Out<'_, *mut c_void>, size: usize, memPool: cudaMemPool_t, stream: cudaStream_t) -> Result {
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
