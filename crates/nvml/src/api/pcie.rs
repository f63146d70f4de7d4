//! The PCIe link. The CPU device has none.

use core::ffi::c_uint;

use border::Out;

use crate::sensors::Bound;
use crate::types::{nvmlDevice_t, nvmlPcieUtilCounter_t};
use crate::{Device, Error, Result};

const NO_LINK: Error = Error::NotSupported("the device has no PCIe link that the system shows");

fn link(device: nvmlDevice_t, bound: Bound) -> Result<(u32, u32)> {
    Device::of(device)?.sensors.pcie_link(bound).ok_or(NO_LINK)
}

pub fn nvmlDeviceGetCurrPcieLinkGeneration(device: nvmlDevice_t, currLinkGen: Out<'_, c_uint>) -> Result {
    currLinkGen.write(link(device, Bound::Now)?.0);
    Ok(())
}

pub fn nvmlDeviceGetCurrPcieLinkWidth(device: nvmlDevice_t, currLinkWidth: Out<'_, c_uint>) -> Result {
    currLinkWidth.write(link(device, Bound::Now)?.1);
    Ok(())
}

pub fn nvmlDeviceGetMaxPcieLinkGeneration(device: nvmlDevice_t, maxLinkGen: Out<'_, c_uint>) -> Result {
    maxLinkGen.write(link(device, Bound::Most)?.0);
    Ok(())
}

pub fn nvmlDeviceGetMaxPcieLinkWidth(device: nvmlDevice_t, maxLinkWidth: Out<'_, c_uint>) -> Result {
    maxLinkWidth.write(link(device, Bound::Most)?.1);
    Ok(())
}

pub fn nvmlDeviceGetPcieReplayCounter(device: nvmlDevice_t, value: Out<'_, c_uint>) -> Result {
    value.write(Device::of(device)?.sensors.pcie_replays().ok_or(NO_LINK)?);
    Ok(())
}

/// KB/s. The manual's window is 20 ms; amdgpu counts a second, and takes that long to answer.
pub fn nvmlDeviceGetPcieThroughput(
    device: nvmlDevice_t,
    counter: nvmlPcieUtilCounter_t,
    value: Out<'_, c_uint>,
) -> Result {
    let device = Device::of(device)?;
    let pick: fn((u64, u64)) -> u64 = match counter {
        nvmlPcieUtilCounter_t::NVML_PCIE_UTIL_TX_BYTES => |(sent, _)| sent,
        nvmlPcieUtilCounter_t::NVML_PCIE_UTIL_RX_BYTES => |(_, received)| received,
        _ => return Err(Error::InvalidArgument("counter")),
    };
    let bytes = device.sensors.pcie_bytes_per_second().map(pick);
    let bytes = bytes.ok_or(Error::NotSupported("nobody counts what goes over the device's link"))?;
    value.write(c_uint::try_from(bytes / 1000).unwrap_or(c_uint::MAX));
    Ok(())
}
