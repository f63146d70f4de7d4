//! The contexts of cuBLASXt; its routines are generated (crate::xt). Source: cuBLAS manual, "Using the cuBLASXt API".

use core::ffi::{c_int, c_void};

use border::Out;

use crate::{
    Result, cublasXtBlasOp_t, cublasXtHandle_t, cublasXtOpType_t, cublasXtPinnedMemMode_t, require, xt,
};

pub fn cublasXtCreate(handle: Out<'_, cublasXtHandle_t>) -> Result {
    kit::driver::driver()?;
    handle.write(xt::create());
    Ok(())
}

pub fn cublasXtDestroy(handle: cublasXtHandle_t) -> Result {
    xt::destroy(handle)
}

/// # Safety
/// NULL, or `n` numbers.
unsafe fn devices<'d>(n: c_int, at: *mut c_int) -> Result<&'d [c_int]> {
    require(n > 0 && !at.is_null(), "no device is named")?;
    // SAFETY: the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts(at, n as usize) })
}

/// # Safety
/// `deviceId` is NULL, or has `nbDevices` numbers.
pub unsafe fn cublasXtDeviceSelect(
    handle: cublasXtHandle_t,
    nbDevices: c_int,
    deviceId: *mut c_int,
) -> Result {
    // SAFETY: the caller's promise.
    xt::select(handle, unsafe { devices(nbDevices, deviceId)? })
}

/// Each device is a board of its own.
///
/// # Safety
/// `deviceId` is NULL, or has `nbDevices` numbers.
pub unsafe fn cublasXtGetNumBoards(
    nbDevices: c_int,
    deviceId: *mut c_int,
    nbBoards: Out<'_, c_int>,
) -> Result {
    // SAFETY: the caller's promise.
    let mut devices = unsafe { devices(nbDevices, deviceId)? }.to_vec();
    let count = xt::n_devices()?;
    require(devices.iter().all(|device| (0..count).contains(device)), "there is no such device")?;
    devices.sort_unstable();
    devices.dedup();
    nbBoards.write(devices.len() as c_int);
    Ok(())
}

pub fn cublasXtMaxBoards(nbGpuBoards: Out<'_, c_int>) -> Result {
    nbGpuBoards.write(xt::n_devices()?);
    Ok(())
}

pub fn cublasXtSetBlockDim(handle: cublasXtHandle_t, blockDim: c_int) -> Result {
    let state = xt::get(handle)?;
    require(blockDim > 0, "blockDim is not positive")?;
    state.lock().block_dim = blockDim;
    Ok(())
}

pub fn cublasXtGetBlockDim(handle: cublasXtHandle_t, blockDim: Out<'_, c_int>) -> Result {
    blockDim.write(xt::get(handle)?.lock().block_dim);
    Ok(())
}

pub fn cublasXtSetPinningMemMode(handle: cublasXtHandle_t, mode: cublasXtPinnedMemMode_t) -> Result {
    let state = xt::get(handle)?;
    require(mode.0 <= cublasXtPinnedMemMode_t::CUBLASXT_PINNING_ENABLED.0, "there is no such mode")?;
    state.lock().pinning = mode;
    Ok(())
}

pub fn cublasXtGetPinningMemMode(handle: cublasXtHandle_t, mode: Out<'_, cublasXtPinnedMemMode_t>) -> Result {
    mode.write(xt::get(handle)?.lock().pinning);
    Ok(())
}

fn routine(operation: cublasXtBlasOp_t, data: cublasXtOpType_t) -> Result {
    require(operation.0 < cublasXtBlasOp_t::CUBLASXT_ROUTINE_MAX.0, "there is no such routine")?;
    require(data.0 <= cublasXtOpType_t::CUBLASXT_DOUBLECOMPLEX.0, "there is no such type")
}

/// A part of the work may go to it; ours all goes to the device.
pub fn cublasXtSetCpuRoutine(
    handle: cublasXtHandle_t,
    blasOp: cublasXtBlasOp_t,
    type_: cublasXtOpType_t,
    blasFunctor: *mut c_void,
) -> Result {
    xt::get(handle)?;
    routine(blasOp, type_)?;
    require(!blasFunctor.is_null(), "the routine is NULL")
}

pub fn cublasXtSetCpuRatio(
    handle: cublasXtHandle_t,
    blasOp: cublasXtBlasOp_t,
    type_: cublasXtOpType_t,
    ratio: f32,
) -> Result {
    xt::get(handle)?;
    routine(blasOp, type_)?;
    require((0.0..=1.0).contains(&ratio), "the ratio is not within 0 and 1")
}
