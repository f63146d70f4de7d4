//! How near devices are to each other: by the NUMA nodes that the system shows.

use core::ffi::c_uint;

use border::Out;

use super::write_list;
use crate::types::{nvmlDevice_t, nvmlGpuTopologyLevel_t};
use crate::{Device, Error, Result, session};

fn level(one: &Device, other: &Device) -> Result<nvmlGpuTopologyLevel_t> {
    if one.index == other.index || (one.identity.is_cpu && other.identity.is_cpu) {
        return Ok(nvmlGpuTopologyLevel_t::NVML_TOPOLOGY_INTERNAL);
    }
    match (one.sensors.numa_node(), other.sensors.numa_node()) {
        (Some(a), Some(b)) if a == b => Ok(nvmlGpuTopologyLevel_t::NVML_TOPOLOGY_NODE),
        (Some(_), Some(_)) => Ok(nvmlGpuTopologyLevel_t::NVML_TOPOLOGY_SYSTEM),
        _ => Err(Error::NotSupported("where the devices are is not known")),
    }
}

pub fn nvmlDeviceGetTopologyCommonAncestor(
    device1: nvmlDevice_t,
    device2: nvmlDevice_t,
    pathInfo: Out<'_, nvmlGpuTopologyLevel_t>,
) -> Result {
    pathInfo.write(level(Device::of(device1)?, Device::of(device2)?)?);
    Ok(())
}

/// The other devices whose way to this one is of that level.
///
/// # Safety
/// `count` is NULL, or may be read and written; `deviceArray` is NULL, or has room for as many elements.
pub unsafe fn nvmlDeviceGetTopologyNearestGpus(
    device: nvmlDevice_t,
    wanted: nvmlGpuTopologyLevel_t,
    count: *mut c_uint,
    deviceArray: *mut nvmlDevice_t,
) -> Result {
    let device = Device::of(device)?;
    let near = session::devices()
        .iter()
        .filter(|other| other.index != device.index && level(device, other).ok() == Some(wanted))
        .map(Device::handle);
    // SAFETY: the caller's promise.
    unsafe { write_list(&near.collect::<Vec<_>>(), count, deviceArray) }
}
