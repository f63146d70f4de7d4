//! What modes a device is in. None of them can be changed.

use core::ffi::{c_int, c_uint};

use border::Out;

use crate::types::{nvmlComputeMode_t, nvmlDevice_t, nvmlEnableState_t, nvmlPstates_t, nvmlReturn_t};
use crate::{Device, Error, Result};

/// The driver stays loaded when nobody uses it: amdgpu does, and the CPU is always there.
pub fn nvmlDeviceGetPersistenceMode(device: nvmlDevice_t, mode: Out<'_, nvmlEnableState_t>) -> Result {
    Device::of(device)?;
    mode.write(nvmlEnableState_t::NVML_FEATURE_ENABLED);
    Ok(())
}

/// NVML and CUDA number them alike.
pub fn nvmlDeviceGetComputeMode(device: nvmlDevice_t, mode: Out<'_, nvmlComputeMode_t>) -> Result {
    let number: c_int = Device::of(device)?.identity.compute_mode;
    mode.write(nvmlComputeMode_t(c_uint::try_from(number).unwrap_or(0)));
    Ok(())
}

/// As a board of NVIDIA's without it, a device that tells of no ECC does not know the question.
pub fn nvmlDeviceGetEccMode(
    device: nvmlDevice_t,
    current: Out<'_, nvmlEnableState_t>,
    pending: Out<'_, nvmlEnableState_t>,
) -> Result {
    if !Device::of(device)?.identity.has_ecc {
        return Err(Error::NotSupported("the device tells of no ECC"));
    }
    current.write(nvmlEnableState_t::NVML_FEATURE_ENABLED);
    pending.write(nvmlEnableState_t::NVML_FEATURE_ENABLED);
    Ok(())
}

/// Other makers' devices have no such states.
pub fn nvmlDeviceGetPerformanceState(device: nvmlDevice_t, pState: Out<'_, nvmlPstates_t>) -> Result {
    Device::of(device)?;
    pState.write(nvmlPstates_t::NVML_PSTATE_UNKNOWN);
    Ok(())
}

pub fn nvmlDeviceGetPowerState(device: nvmlDevice_t, pState: Out<'_, nvmlPstates_t>) -> Result {
    nvmlDeviceGetPerformanceState(device, pState)
}

pub fn nvmlDeviceIsMigDeviceHandle(device: nvmlDevice_t, isMigDevice: Out<'_, c_uint>) -> Result {
    Device::of(device)?;
    isMigDevice.write(0);
    Ok(())
}

/// As a GPU of NVIDIA's that cannot be divided.
const NO_MIG: Error = Error::NotSupported("the device cannot be divided into instances");

pub fn nvmlDeviceGetMigMode(
    device: nvmlDevice_t,
    _currentMode: Out<'_, c_uint>,
    _pendingMode: Out<'_, c_uint>,
) -> Result {
    Device::of(device)?;
    Err(NO_MIG)
}

pub fn nvmlDeviceSetMigMode(
    device: nvmlDevice_t,
    _mode: c_uint,
    _activationStatus: Out<'_, nvmlReturn_t>,
) -> Result {
    Device::of(device)?;
    Err(NO_MIG)
}

pub fn nvmlDeviceGetMaxMigDeviceCount(device: nvmlDevice_t, count: Out<'_, c_uint>) -> Result {
    Device::of(device)?;
    count.write(0);
    Ok(())
}
