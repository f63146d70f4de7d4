//! Clocks. A GPU of another maker has one for its units and one for its memory.

use core::ffi::c_uint;

use border::Out;

use crate::sensors::{Bound, Clock};
use crate::types::{nvmlClockId_t, nvmlClockType_t, nvmlDevice_t};
use crate::{Device, Error, Result};

fn megahertz(device: nvmlDevice_t, kind: nvmlClockType_t, bound: Bound) -> Result<c_uint> {
    let device = Device::of(device)?;
    let clock = match kind {
        nvmlClockType_t::NVML_CLOCK_GRAPHICS | nvmlClockType_t::NVML_CLOCK_SM => Clock::Compute,
        nvmlClockType_t::NVML_CLOCK_MEM => Clock::Memory,
        nvmlClockType_t::NVML_CLOCK_VIDEO => return Err(Error::NotSupported("there is no video clock")),
        _ => return Err(Error::InvalidArgument("clockType")),
    };
    device.sensors.clock_mhz(clock, bound).ok_or(Error::NotSupported("this clock cannot be read"))
}

pub fn nvmlDeviceGetClockInfo(
    device: nvmlDevice_t,
    type_: nvmlClockType_t,
    clock: Out<'_, c_uint>,
) -> Result {
    clock.write(megahertz(device, type_, Bound::Now)?);
    Ok(())
}

pub fn nvmlDeviceGetMaxClockInfo(
    device: nvmlDevice_t,
    type_: nvmlClockType_t,
    clock: Out<'_, c_uint>,
) -> Result {
    clock.write(megahertz(device, type_, Bound::Most)?);
    Ok(())
}

pub fn nvmlDeviceGetClock(
    device: nvmlDevice_t,
    clockType: nvmlClockType_t,
    clockId: nvmlClockId_t,
    clockMHz: Out<'_, c_uint>,
) -> Result {
    let bound = match clockId {
        nvmlClockId_t::NVML_CLOCK_ID_CURRENT => Bound::Now,
        nvmlClockId_t::NVML_CLOCK_ID_APP_CLOCK_DEFAULT => Bound::Default,
        nvmlClockId_t::NVML_CLOCK_ID_CUSTOMER_BOOST_MAX => Bound::Most,
        nvmlClockId_t::NVML_CLOCK_ID_APP_CLOCK_TARGET => {
            return Err(Error::NotSupported("programs cannot ask for clocks"));
        }
        _ => return Err(Error::InvalidArgument("clockId")),
    };
    clockMHz.write(megahertz(device, clockType, bound)?);
    Ok(())
}

pub fn nvmlDeviceGetDefaultApplicationsClock(
    device: nvmlDevice_t,
    clockType: nvmlClockType_t,
    clockMHz: Out<'_, c_uint>,
) -> Result {
    clockMHz.write(megahertz(device, clockType, Bound::Default)?);
    Ok(())
}
