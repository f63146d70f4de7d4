//! Temperatures and fans.

use core::ffi::c_uint;

use border::Out;

use super::struct_version;
use crate::sensors::Spot;
use crate::types::{
    nvmlDevice_t, nvmlFanSpeedInfo_t, nvmlTemperature_t, nvmlTemperatureSensors_t,
    nvmlTemperatureThresholds_t,
};
use crate::{Device, Error, Result};

fn celsius(device: nvmlDevice_t, spot: Spot) -> Result<c_uint> {
    let found = Device::of(device)?.sensors.temperature_celsius(spot);
    found.ok_or(Error::NotSupported("the system has no such sensor"))
}

fn of_sensor(device: nvmlDevice_t, sensor: nvmlTemperatureSensors_t) -> Result<c_uint> {
    if sensor != nvmlTemperatureSensors_t::NVML_TEMPERATURE_GPU {
        return Err(Error::InvalidArgument("sensorType"));
    }
    celsius(device, Spot::Device)
}

pub fn nvmlDeviceGetTemperature(
    device: nvmlDevice_t,
    sensorType: nvmlTemperatureSensors_t,
    temp: Out<'_, c_uint>,
) -> Result {
    temp.write(of_sensor(device, sensorType)?);
    Ok(())
}

pub fn nvmlDeviceGetTemperatureV(device: nvmlDevice_t, temperature: Out<'_, nvmlTemperature_t>) -> Result {
    // SAFETY: the program has set the version and the sensor.
    let asked = unsafe { *temperature.as_ptr() };
    if asked.version != struct_version::<nvmlTemperature_t>(1) {
        return Err(Error::ArgumentVersionMismatch);
    }
    let celsius = of_sensor(device, asked.sensorType)?;
    temperature.write(nvmlTemperature_t { temperature: celsius.cast_signed(), ..asked });
    Ok(())
}

pub fn nvmlDeviceGetTemperatureThreshold(
    device: nvmlDevice_t,
    thresholdType: nvmlTemperatureThresholds_t,
    temp: Out<'_, c_uint>,
) -> Result {
    let spot = match thresholdType {
        nvmlTemperatureThresholds_t::NVML_TEMPERATURE_THRESHOLD_SHUTDOWN => Spot::Shutdown,
        nvmlTemperatureThresholds_t::NVML_TEMPERATURE_THRESHOLD_SLOWDOWN => Spot::Slowdown,
        other if other.0 < nvmlTemperatureThresholds_t::NVML_TEMPERATURE_THRESHOLD_COUNT.0 => {
            return Err(Error::NotSupported("the system has no such threshold"));
        }
        _ => return Err(Error::InvalidArgument("thresholdType")),
    };
    temp.write(celsius(device, spot)?);
    Ok(())
}

const NO_FAN: Error = Error::NotSupported("the device has no fan of its own that the system shows");

pub fn nvmlDeviceGetFanSpeed(device: nvmlDevice_t, speed: Out<'_, c_uint>) -> Result {
    speed.write(Device::of(device)?.sensors.fan_percent().ok_or(NO_FAN)?);
    Ok(())
}

pub fn nvmlDeviceGetFanSpeed_v2(device: nvmlDevice_t, fan: c_uint, speed: Out<'_, c_uint>) -> Result {
    let percent = Device::of(device)?.sensors.fan_percent().ok_or(NO_FAN)?;
    if fan != 0 {
        return Err(Error::InvalidArgument("fan"));
    }
    speed.write(percent);
    Ok(())
}

pub fn nvmlDeviceGetFanSpeedRPM(device: nvmlDevice_t, fanSpeed: Out<'_, nvmlFanSpeedInfo_t>) -> Result {
    // SAFETY: the program has set the version and the fan.
    let asked = unsafe { *fanSpeed.as_ptr() };
    if asked.version != struct_version::<nvmlFanSpeedInfo_t>(1) {
        return Err(Error::ArgumentVersionMismatch);
    }
    let speed = Device::of(device)?.sensors.fan_rpm().ok_or(NO_FAN)?;
    if asked.fan != 0 {
        return Err(Error::InvalidArgument("fan"));
    }
    fanSpeed.write(nvmlFanSpeedInfo_t { speed, ..asked });
    Ok(())
}

pub fn nvmlDeviceGetNumFans(device: nvmlDevice_t, numFans: Out<'_, c_uint>) -> Result {
    let sensors = &Device::of(device)?.sensors;
    numFans.write(c_uint::from(sensors.fan_percent().or(sensors.fan_rpm()).is_some()));
    Ok(())
}
