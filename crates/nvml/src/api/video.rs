//! Encoders and decoders. AMD's are one engine, whose load its driver shows on some GPUs.

use core::ffi::c_uint;

use border::Out;

use crate::types::nvmlDevice_t;
use crate::{Device, Error, Result};

/// How long the driver looks for one figure is not told: 0.
fn load(device: nvmlDevice_t, utilization: Out<'_, c_uint>, samplingPeriodUs: Out<'_, c_uint>) -> Result {
    let percent = Device::of(device)?.sensors.video_percent();
    utilization.write(percent.ok_or(Error::NotSupported("the device tells of no video engine"))?);
    samplingPeriodUs.write(0);
    Ok(())
}

pub fn nvmlDeviceGetEncoderUtilization(
    device: nvmlDevice_t,
    utilization: Out<'_, c_uint>,
    samplingPeriodUs: Out<'_, c_uint>,
) -> Result {
    load(device, utilization, samplingPeriodUs)
}

pub fn nvmlDeviceGetDecoderUtilization(
    device: nvmlDevice_t,
    utilization: Out<'_, c_uint>,
    samplingPeriodUs: Out<'_, c_uint>,
) -> Result {
    load(device, utilization, samplingPeriodUs)
}
