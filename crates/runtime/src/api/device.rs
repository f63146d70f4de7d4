//! Device management.

use core::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr;

use border::{OptOut, Out};
use cuda_abi::runtime::{
    cudaAsyncCallback, cudaAsyncCallbackHandle_t, cudaAtomicOperation, cudaDeviceAttr,
    cudaFlushGPUDirectRDMAWritesScope, cudaFlushGPUDirectRDMAWritesTarget, cudaFuncCache, cudaLimit,
    cudaOutputMode, cudaSharedMemConfig,
};
use cuda_abi::{
    CUasyncCallback, CUcontext, CUdevice_attribute, CUflushGPUDirectRDMAWritesScope,
    CUflushGPUDirectRDMAWritesTarget, CUfunc_cache, CUlimit, CUoutput_mode, CUresult, CUsharedconfig,
};

use crate::{Error, Result, device, driver};

/// CUDA: no driver is error 35, no device is error 100; the count is 0 in both cases.
pub fn cudaGetDeviceCount(count: Out<'_, c_int>) -> Result {
    match device::all() {
        Ok(all) => {
            count.write(c_int::try_from(all.len()).unwrap_or(c_int::MAX));
            Ok(())
        }
        Err(error) => {
            count.write(0);
            Err(error)
        }
    }
}

pub fn cudaSetDevice(device: c_int) -> Result {
    let chosen = device::at(device)?;
    chosen.make_current()?;
    device::choose(device);
    Ok(())
}

pub fn cudaGetDevice(device: Out<'_, c_int>) -> Result {
    device.write(device::current()?.ordinal);
    Ok(())
}

/// Tries the devices of the list in order, later.
///
/// # Safety
/// `device_arr` is NULL, or has `len` numbers.
pub unsafe fn cudaSetValidDevices(device_arr: *mut c_int, len: c_int) -> Result {
    let n = usize::try_from(len).map_err(|_| Error::InvalidValue("len"))?;
    if device_arr.is_null() && n > 0 {
        return Err(Error::InvalidValue("device_arr"));
    }
    for index in 0..n {
        // SAFETY: not NULL; the caller's promise.
        device::at(unsafe { *device_arr.add(index) })?;
    }
    if n > 0 {
        // SAFETY: as above.
        device::choose(unsafe { *device_arr });
    }
    Ok(())
}

pub fn cudaInitDevice(device: c_int, deviceFlags: c_uint, flags: c_uint) -> Result {
    const FLAGS_ARE_VALID: c_uint = 1;
    let chosen = device::at(device)?;
    if flags & FLAGS_ARE_VALID != 0 {
        driver::get()?.cuDevicePrimaryCtxSetFlags_v2(chosen.handle, deviceFlags)?;
    }
    chosen.context().map(|_| ())
}

/// The runtime's attributes have the driver's numbers.
pub fn cudaDeviceGetAttribute(value: Out<'_, c_int>, attr: cudaDeviceAttr, device: c_int) -> Result {
    value.write(device::at(device)?.attribute(CUdevice_attribute(attr.0))?);
    Ok(())
}

pub fn cudaDeviceSynchronize() -> Result {
    device::attach()?.cuCtxSynchronize()
}

pub fn cudaDeviceReset() -> Result {
    device::current()?.reset()?;
    crate::last_error::set_last_error(cuda_abi::runtime::cudaError_t::cudaSuccess);
    Ok(())
}

pub fn cudaThreadExit() -> Result {
    cudaDeviceReset()
}

pub fn cudaThreadSynchronize() -> Result {
    cudaDeviceSynchronize()
}

pub fn cudaDeviceGetLimit(pValue: Out<'_, usize>, limit: cudaLimit) -> Result {
    let mut value = 0;
    device::attach()?.cuCtxGetLimit(&mut value, CUlimit(limit.0))?;
    pValue.write(value);
    Ok(())
}

pub fn cudaDeviceSetLimit(limit: cudaLimit, value: usize) -> Result {
    device::attach()?.cuCtxSetLimit(CUlimit(limit.0), value)
}

pub fn cudaThreadGetLimit(pValue: Out<'_, usize>, limit: cudaLimit) -> Result {
    cudaDeviceGetLimit(pValue, limit)
}

pub fn cudaThreadSetLimit(limit: cudaLimit, value: usize) -> Result {
    cudaDeviceSetLimit(limit, value)
}

pub fn cudaDeviceGetCacheConfig(pCacheConfig: Out<'_, cudaFuncCache>) -> Result {
    let mut config = CUfunc_cache(0);
    device::attach()?.cuCtxGetCacheConfig(&mut config)?;
    pCacheConfig.write(cudaFuncCache(config.0));
    Ok(())
}

pub fn cudaDeviceSetCacheConfig(cacheConfig: cudaFuncCache) -> Result {
    device::attach()?.cuCtxSetCacheConfig(CUfunc_cache(cacheConfig.0))
}

pub fn cudaThreadGetCacheConfig(pCacheConfig: Out<'_, cudaFuncCache>) -> Result {
    cudaDeviceGetCacheConfig(pCacheConfig)
}

pub fn cudaThreadSetCacheConfig(cacheConfig: cudaFuncCache) -> Result {
    cudaDeviceSetCacheConfig(cacheConfig)
}

pub fn cudaDeviceGetSharedMemConfig(pConfig: Out<'_, cudaSharedMemConfig>) -> Result {
    let mut config = CUsharedconfig(0);
    device::attach()?.cuCtxGetSharedMemConfig(&mut config)?;
    pConfig.write(cudaSharedMemConfig(config.0));
    Ok(())
}

pub fn cudaDeviceSetSharedMemConfig(config: cudaSharedMemConfig) -> Result {
    device::attach()?.cuCtxSetSharedMemConfig(CUsharedconfig(config.0))
}

pub fn cudaDeviceGetStreamPriorityRange(
    leastPriority: OptOut<'_, c_int>,
    greatestPriority: OptOut<'_, c_int>,
) -> Result {
    let (mut least, mut greatest) = (0, 0);
    device::attach()?.cuCtxGetStreamPriorityRange(&mut least, &mut greatest)?;
    leastPriority.write(least);
    greatestPriority.write(greatest);
    Ok(())
}

pub fn cudaDeviceGetPCIBusId(pciBusId: Out<'_, c_char>, len: c_int, device: c_int) -> Result {
    let device = device::at(device)?;
    driver::get()?.cuDeviceGetPCIBusId(pciBusId.as_ptr(), len, device.handle)
}

pub fn cudaDeviceGetByPCIBusId(device: Out<'_, c_int>, pciBusId: *const c_char) -> Result {
    let mut handle = 0;
    driver::get()?.cuDeviceGetByPCIBusId(&mut handle, pciBusId)?;
    let found =
        device::all()?.iter().find(|device| device.handle == handle).ok_or(Error::InvalidDevice(handle))?;
    device.write(found.ordinal);
    Ok(())
}

/// The flags of the current context, else those that the thread's device will start with.
pub fn cudaGetDeviceFlags(flags: Out<'_, c_uint>) -> Result {
    let driver = driver::get()?;
    let mut context: CUcontext = ptr::null_mut();
    driver.cuCtxGetCurrent(&mut context)?;
    let (mut found, mut active) = (0, 0);
    if context.is_null() {
        driver.cuDevicePrimaryCtxGetState(device::current()?.handle, &mut found, &mut active)?;
    } else {
        driver.cuCtxGetFlags(&mut found)?;
    }
    flags.write(found);
    Ok(())
}

/// CUDA: flags may also be set while the device is in use (since 11.0 they then take effect at once).
pub fn cudaSetDeviceFlags(flags: c_uint) -> Result {
    let device = device::current()?;
    match driver::get()?.cuDevicePrimaryCtxSetFlags_v2(device.handle, flags) {
        Err(Error::Driver(CUresult::CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE)) => Ok(()),
        answer => answer,
    }
}

pub fn cudaCtxResetPersistingL2Cache() -> Result {
    device::attach()?.cuCtxResetPersistingL2Cache()
}

pub fn cudaProfilerStart() -> Result {
    device::attach()?.cuProfilerStart()
}

pub fn cudaProfilerStop() -> Result {
    device::attach()?.cuProfilerStop()
}

pub fn cudaDeviceFlushGPUDirectRDMAWrites(
    target: cudaFlushGPUDirectRDMAWritesTarget,
    scope: cudaFlushGPUDirectRDMAWritesScope,
) -> Result {
    device::attach()?.cuFlushGPUDirectRDMAWrites(
        CUflushGPUDirectRDMAWritesTarget(target.0),
        CUflushGPUDirectRDMAWritesScope(scope.0),
    )
}

/// The operations have the driver's numbers.
pub fn cudaDeviceGetHostAtomicCapabilities(
    capabilities: *mut c_uint,
    operations: *const cudaAtomicOperation,
    count: c_uint,
    device: c_int,
) -> Result {
    let device = device::at(device)?.handle;
    driver::get()?.cuDeviceGetHostAtomicCapabilities(capabilities, operations.cast(), count, device)
}

pub fn cudaDeviceGetP2PAtomicCapabilities(
    capabilities: *mut c_uint,
    operations: *const cudaAtomicOperation,
    count: c_uint,
    srcDevice: c_int,
    dstDevice: c_int,
) -> Result {
    let (from, to) = (device::at(srcDevice)?.handle, device::at(dstDevice)?.handle);
    driver::get()?.cuDeviceGetP2PAtomicCapabilities(capabilities, operations.cast(), count, from, to)
}

/// The callback is called by the driver, with the driver's structure, which is the runtime's under another name.
pub fn cudaDeviceRegisterAsyncNotification(
    device: c_int,
    callbackFunc: cudaAsyncCallback,
    userData: *mut c_void,
    callback: Out<'_, cudaAsyncCallbackHandle_t>,
) -> Result {
    let device = device::at(device)?.handle;
    // SAFETY: function pointers of one signature; only the names of the structures differ.
    let function = unsafe { core::mem::transmute::<cudaAsyncCallback, CUasyncCallback>(callbackFunc) };
    let mut handle = core::ptr::null_mut();
    driver::get()?.cuDeviceRegisterAsyncNotification(device, function, userData, &mut handle)?;
    callback.write(handle.cast());
    Ok(())
}

pub fn cudaDeviceUnregisterAsyncNotification(device: c_int, callback: cudaAsyncCallbackHandle_t) -> Result {
    let device = device::at(device)?.handle;
    driver::get()?.cuDeviceUnregisterAsyncNotification(device, callback.cast())
}

pub fn cudaDeviceGetNvSciSyncAttributes(
    nvSciSyncAttrList: *mut c_void,
    device: c_int,
    flags: c_int,
) -> Result {
    let device = device::at(device)?.handle;
    driver::get()?.cuDeviceGetNvSciSyncAttributes(nvSciSyncAttrList, device, flags)
}

/// CUDA 11's, for profilers of files; the driver says what it makes of it.
pub fn cudaProfilerInitialize(
    configFile: *const c_char,
    outputFile: *const c_char,
    outputMode: cudaOutputMode,
) -> Result {
    device::attach()?.cuProfilerInitialize(configFile, outputFile, CUoutput_mode(outputMode.0))
}
