//! Power, in milliwatts.

use core::ffi::c_uint;

use border::Out;

use crate::sensors::Bound;
use crate::types::{nvmlDevice_t, nvmlEnableState_t};
use crate::{Device, Error, Result};

fn limit(device: nvmlDevice_t, bound: Bound) -> Result<c_uint> {
    let found = Device::of(device)?.sensors.power_limit_milliwatts(bound);
    found.ok_or(Error::NotSupported("the system shows no power limit"))
}

pub fn nvmlDeviceGetPowerUsage(device: nvmlDevice_t, power: Out<'_, c_uint>) -> Result {
    let found = Device::of(device)?.sensors.power_milliwatts();
    power.write(found.ok_or(Error::NotSupported("the system does not measure the device's power"))?);
    Ok(())
}

pub fn nvmlDeviceGetPowerManagementMode(device: nvmlDevice_t, mode: Out<'_, nvmlEnableState_t>) -> Result {
    limit(device, Bound::Now)?;
    mode.write(nvmlEnableState_t::NVML_FEATURE_ENABLED);
    Ok(())
}

pub fn nvmlDeviceGetPowerManagementLimit(device: nvmlDevice_t, value: Out<'_, c_uint>) -> Result {
    value.write(limit(device, Bound::Now)?);
    Ok(())
}

pub fn nvmlDeviceGetEnforcedPowerLimit(device: nvmlDevice_t, value: Out<'_, c_uint>) -> Result {
    nvmlDeviceGetPowerManagementLimit(device, value)
}

pub fn nvmlDeviceGetPowerManagementDefaultLimit(
    device: nvmlDevice_t,
    defaultLimit: Out<'_, c_uint>,
) -> Result {
    defaultLimit.write(limit(device, Bound::Default)?);
    Ok(())
}

pub fn nvmlDeviceGetPowerManagementLimitConstraints(
    device: nvmlDevice_t,
    minLimit: Out<'_, c_uint>,
    maxLimit: Out<'_, c_uint>,
) -> Result {
    let (least, most) = (limit(device, Bound::Least)?, limit(device, Bound::Most)?);
    minLimit.write(least);
    maxLimit.write(most);
    Ok(())
}
