//! Field Value Queries: figures by number, each with an answer of its own.

use core::ffi::{c_int, c_uint};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::sensors::{Bound, Spot};
use crate::types::{
    NVML_FI_DEV_ECC_CURRENT, NVML_FI_DEV_ECC_PENDING, NVML_FI_DEV_MEMORY_TEMP, NVML_FI_DEV_NVLINK_LINK_COUNT,
    NVML_FI_DEV_PCIE_REPLAY_COUNTER, NVML_FI_DEV_POWER_AVERAGE, NVML_FI_DEV_POWER_CURRENT_LIMIT,
    NVML_FI_DEV_POWER_DEFAULT_LIMIT, NVML_FI_DEV_POWER_INSTANT, NVML_FI_DEV_POWER_MAX_LIMIT,
    NVML_FI_DEV_POWER_MIN_LIMIT, NVML_FI_DEV_POWER_REQUESTED_LIMIT, NVML_FI_MAX, nvmlDevice_t,
    nvmlFieldValue_t, nvmlReturn_t, nvmlValue_t, nvmlValueType_t,
};
use crate::{Device, Error, Result};

/// NVML: the call succeeds when it could look at the fields; how each went is in the field.
///
/// # Safety
/// `values` is NULL, or has `valuesCount` elements that may be read and written.
pub unsafe fn nvmlDeviceGetFieldValues(
    device: nvmlDevice_t,
    valuesCount: c_int,
    values: *mut nvmlFieldValue_t,
) -> Result {
    let device = Device::of(device)?;
    let count = usize::try_from(valuesCount).ok().filter(|&count| count > 0);
    let count = count.ok_or(Error::InvalidArgument("valuesCount"))?;
    if values.is_null() {
        return Err(Error::InvalidArgument("values"));
    }
    // SAFETY: not null; the caller's promise. The program wrote the fields' numbers.
    let values = unsafe { core::slice::from_raw_parts_mut(values, count) };
    for field in values {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        field.timestamp = i64::try_from(since_1970.as_micros()).unwrap_or(i64::MAX);
        field.latencyUsec = 0;
        field.valueType = nvmlValueType_t::NVML_VALUE_TYPE_UNSIGNED_INT;
        field.value = nvmlValue_t { ullVal: 0 };
        field.nvmlReturn = match figure(device, field.fieldId) {
            Ok(value) => {
                field.value = nvmlValue_t { ullVal: value.into() };
                nvmlReturn_t::NVML_SUCCESS
            }
            Err(error) => error.code(),
        };
    }
    Ok(())
}

/// Temperatures in °C, power in milliwatts: the units of the calls that tell the same.
fn figure(device: &Device, field: c_uint) -> Result<c_uint> {
    let sensors = &device.sensors;
    let found = match field {
        NVML_FI_DEV_ECC_CURRENT | NVML_FI_DEV_ECC_PENDING => device.identity.has_ecc.then_some(1),
        NVML_FI_DEV_MEMORY_TEMP => sensors.temperature_celsius(Spot::Memory),
        // No device of ours has such links.
        NVML_FI_DEV_NVLINK_LINK_COUNT => Some(0),
        NVML_FI_DEV_PCIE_REPLAY_COUNTER => sensors.pcie_replays(),
        NVML_FI_DEV_POWER_AVERAGE | NVML_FI_DEV_POWER_INSTANT => sensors.power_milliwatts(),
        NVML_FI_DEV_POWER_MIN_LIMIT => sensors.power_limit_milliwatts(Bound::Least),
        NVML_FI_DEV_POWER_MAX_LIMIT => sensors.power_limit_milliwatts(Bound::Most),
        NVML_FI_DEV_POWER_DEFAULT_LIMIT => sensors.power_limit_milliwatts(Bound::Default),
        NVML_FI_DEV_POWER_CURRENT_LIMIT | NVML_FI_DEV_POWER_REQUESTED_LIMIT => {
            sensors.power_limit_milliwatts(Bound::Now)
        }
        0 | NVML_FI_MAX.. => return Err(Error::InvalidArgument("fieldId")),
        _ => None,
    };
    found.ok_or(Error::NotSupported("the device does not tell this field"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::Identity;

    #[test]
    fn each_field_has_its_own_answer() {
        // On no bus and not the CPU: nothing is known of it.
        let mut device = Device::new(0, Identity::default());
        assert_eq!(figure(&device, NVML_FI_DEV_NVLINK_LINK_COUNT), Ok(0));
        let unknown = Error::NotSupported("the device does not tell this field");
        assert_eq!(figure(&device, NVML_FI_DEV_POWER_INSTANT), Err(unknown));
        assert_eq!(figure(&device, NVML_FI_DEV_ECC_CURRENT), Err(unknown));
        assert_eq!(figure(&device, NVML_FI_MAX), Err(Error::InvalidArgument("fieldId")));
        device.identity.has_ecc = true;
        assert_eq!(figure(&device, NVML_FI_DEV_ECC_CURRENT), Ok(1));
    }
}
