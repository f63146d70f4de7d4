//! Memory, and how busy a device is.

use core::ffi::c_uint;

use border::Out;

use super::struct_version;
use crate::types::{nvmlBAR1Memory_t, nvmlDevice_t, nvmlMemory_t, nvmlMemory_v2_t, nvmlUtilization_t};
use crate::{Device, Error, Result};

/// Total, free and used bytes; the total is the driver's.
fn figures(device: nvmlDevice_t) -> Result<(u64, u64, u64)> {
    let device = Device::of(device)?;
    let total = device.identity.total_memory;
    let used =
        device.sensors.memory_used_bytes().ok_or(Error::NotSupported("who uses the memory is not known"))?;
    let used = used.min(total);
    Ok((total, total - used, used))
}

pub fn nvmlDeviceGetMemoryInfo(device: nvmlDevice_t, memory: Out<'_, nvmlMemory_t>) -> Result {
    let (total, free, used) = figures(device)?;
    memory.write(nvmlMemory_t { total, free, used });
    Ok(())
}

pub fn nvmlDeviceGetMemoryInfo_v2(device: nvmlDevice_t, memory: Out<'_, nvmlMemory_v2_t>) -> Result {
    // SAFETY: the program has set the version that it reads.
    let version = unsafe { (*memory.as_ptr()).version };
    if version != struct_version::<nvmlMemory_v2_t>(2) {
        return Err(Error::ArgumentVersionMismatch);
    }
    let (total, free, used) = figures(device)?;
    memory.write(nvmlMemory_v2_t { version, total, reserved: 0, free, used });
    Ok(())
}

/// What of the device's memory the processor can address at once.
pub fn nvmlDeviceGetBAR1MemoryInfo(device: nvmlDevice_t, bar1Memory: Out<'_, nvmlBAR1Memory_t>) -> Result {
    let window = Device::of(device)?.sensors.window_bytes();
    let (total, used) = window.ok_or(Error::NotSupported("the device shows no memory on a bus"))?;
    let used = used.min(total);
    bar1Memory.write(nvmlBAR1Memory_t { bar1Total: total, bar1Free: total - used, bar1Used: used });
    Ok(())
}

pub fn nvmlDeviceGetMemoryBusWidth(device: nvmlDevice_t, busWidth: Out<'_, c_uint>) -> Result {
    let bits = c_uint::try_from(Device::of(device)?.identity.memory_bus_bits).unwrap_or(0);
    if bits == 0 {
        return Err(Error::NotSupported("the width of the memory's bus is not known"));
    }
    busWidth.write(bits);
    Ok(())
}

/// The CPU device's share is the machine's: all cores, whoever uses them. How busy a memory is that nobody measures is 0.
pub fn nvmlDeviceGetUtilizationRates(
    device: nvmlDevice_t,
    utilization: Out<'_, nvmlUtilization_t>,
) -> Result {
    let (gpu, memory) = Device::of(device)?.sensors.busy_percent();
    let gpu = gpu.ok_or(Error::NotSupported("how busy the device is is not known"))?;
    utilization.write(nvmlUtilization_t { gpu, memory: memory.unwrap_or(0) });
    Ok(())
}
