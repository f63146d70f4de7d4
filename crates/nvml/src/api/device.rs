//! Device Queries: which there are, and who they are.

use core::ffi::{CStr, c_char, c_int, c_uint};

use border::Out;

use super::{struct_version, text_field, write_text};
use crate::types::{
    NVML_BUS_TYPE_PCIE, NVML_DEVICE_ARCH_ADA, NVML_DEVICE_ARCH_AMPERE, NVML_DEVICE_ARCH_BLACKWELL,
    NVML_DEVICE_ARCH_HOPPER, NVML_DEVICE_ARCH_MAXWELL, NVML_DEVICE_ARCH_PASCAL, NVML_DEVICE_ARCH_TURING,
    NVML_DEVICE_ARCH_UNKNOWN, NVML_DEVICE_ARCH_VOLTA, nvmlBrandType_t, nvmlBusType_t, nvmlDevice_t,
    nvmlDeviceArchitecture_t, nvmlPciInfo_t, nvmlPciInfoExt_t, nvmlUUID_t, nvmlUUIDType_t,
};
use crate::{Device, Error, Result, session};

pub fn nvmlDeviceGetCount_v2(deviceCount: Out<'_, c_uint>) -> Result {
    deviceCount.write(c_uint::try_from(session::devices().len()).unwrap_or(c_uint::MAX));
    Ok(())
}

pub fn nvmlDeviceGetCount(deviceCount: Out<'_, c_uint>) -> Result {
    nvmlDeviceGetCount_v2(deviceCount)
}

fn find(is_it: impl Fn(&Device) -> bool, what: &'static str) -> Result<nvmlDevice_t> {
    session::devices().iter().find(|device| is_it(device)).map(Device::handle).ok_or(Error::NotFound(what))
}

/// The devices' places among all: CUDA's ordinals where `CUDA_VISIBLE_DEVICES` hides none.
pub fn nvmlDeviceGetHandleByIndex_v2(index: c_uint, device: Out<'_, nvmlDevice_t>) -> Result {
    let found = session::devices().iter().find(|device| device.number() == index);
    device.write(found.ok_or(Error::InvalidArgument("index"))?.handle());
    Ok(())
}

pub fn nvmlDeviceGetHandleByIndex(index: c_uint, device: Out<'_, nvmlDevice_t>) -> Result {
    nvmlDeviceGetHandleByIndex_v2(index, device)
}

pub fn nvmlDeviceGetHandleByUUID(uuid: &CStr, device: Out<'_, nvmlDevice_t>) -> Result {
    let uuid = uuid.to_string_lossy();
    device.write(find(|device| device.uuid().eq_ignore_ascii_case(&uuid), "no device has this UUID")?);
    Ok(())
}

pub fn nvmlDeviceGetHandleByUUIDV(uuid: &nvmlUUID_t, device: Out<'_, nvmlDevice_t>) -> Result {
    if uuid.version != struct_version::<nvmlUUID_t>(1) {
        return Err(Error::ArgumentVersionMismatch);
    }
    let found = match nvmlUUIDType_t(uuid.type_) {
        nvmlUUIDType_t::NVML_UUID_TYPE_ASCII => {
            // SAFETY: any bytes are characters; `type_` says that they are meant so.
            let text = unsafe { uuid.value.str_ };
            let text: Vec<u8> = text.iter().map(|c| c.cast_unsigned()).take_while(|&c| c != 0).collect();
            find(|device| device.uuid().as_bytes().eq_ignore_ascii_case(&text), "no device has this UUID")
        }
        nvmlUUIDType_t::NVML_UUID_TYPE_BINARY => {
            // SAFETY: any bytes are bytes.
            let bytes = unsafe { uuid.value.bytes };
            find(|device| device.identity.uuid == bytes, "no device has this UUID")
        }
        _ => Err(Error::InvalidArgument("uuid.type")),
    };
    device.write(found?);
    Ok(())
}

/// `domain:bus:device.function`, hexadecimal; the function, and a domain of 0, may be left out.
pub fn nvmlDeviceGetHandleByPciBusId_v2(pciBusId: &CStr, device: Out<'_, nvmlDevice_t>) -> Result {
    let text = pciBusId.to_string_lossy();
    let wanted = parse_bus_id(&text).ok_or(Error::InvalidArgument("pciBusId"))?;
    let is_it = |device: &Device| {
        let pci = device.identity.pci;
        (pci.domain, pci.bus, pci.device) == wanted
    };
    device.write(find(is_it, "no device at this PCI address")?);
    Ok(())
}

pub fn nvmlDeviceGetHandleByPciBusId(pciBusId: &CStr, device: Out<'_, nvmlDevice_t>) -> Result {
    nvmlDeviceGetHandleByPciBusId_v2(pciBusId, device)
}

fn parse_bus_id(text: &str) -> Option<(u32, u32, u32)> {
    let without_function = text.trim().split('.').next()?;
    let parts: Option<Vec<u32>> =
        without_function.split(':').map(|part| u32::from_str_radix(part, 16).ok()).collect();
    match parts?[..] {
        [domain, bus, device] => Some((domain, bus, device)),
        [bus, device] => Some((0, bus, device)),
        _ => None,
    }
}

pub fn nvmlDeviceGetHandleBySerial(serial: &CStr, device: Out<'_, nvmlDevice_t>) -> Result {
    let serial = serial.to_string_lossy();
    device.write(find(
        |device| device.sensors.serial().is_some_and(|own| own == serial),
        "no device has this serial",
    )?);
    Ok(())
}

pub fn nvmlDeviceGetIndex(device: nvmlDevice_t, index: Out<'_, c_uint>) -> Result {
    index.write(Device::of(device)?.number());
    Ok(())
}

/// # Safety
/// `name` is NULL, or has `length` bytes that may be written.
pub unsafe fn nvmlDeviceGetName(device: nvmlDevice_t, name: *mut c_char, length: c_uint) -> Result {
    // SAFETY: the caller's promise.
    unsafe { write_text(&Device::of(device)?.identity.name, name, length, "name") }
}

/// # Safety
/// `uuid` is NULL, or has `length` bytes that may be written.
pub unsafe fn nvmlDeviceGetUUID(device: nvmlDevice_t, uuid: *mut c_char, length: c_uint) -> Result {
    // SAFETY: the caller's promise.
    unsafe { write_text(&Device::of(device)?.uuid(), uuid, length, "uuid") }
}

/// # Safety
/// `serial` is NULL, or has `length` bytes that may be written.
pub unsafe fn nvmlDeviceGetSerial(device: nvmlDevice_t, serial: *mut c_char, length: c_uint) -> Result {
    let text = Device::of(device)?
        .sensors
        .serial()
        .ok_or(Error::NotSupported("the board tells no serial number"))?;
    // SAFETY: the caller's promise.
    unsafe { write_text(&text, serial, length, "serial") }
}

/// # Safety
/// `version` is NULL, or has `length` bytes that may be written.
pub unsafe fn nvmlDeviceGetVbiosVersion(
    device: nvmlDevice_t,
    version: *mut c_char,
    length: c_uint,
) -> Result {
    let text =
        Device::of(device)?.sensors.vbios().ok_or(Error::NotSupported("the device has no video BIOS"))?;
    // SAFETY: the caller's promise.
    unsafe { write_text(&text, version, length, "version") }
}

pub fn nvmlDeviceGetPciInfo_v3(device: nvmlDevice_t, pci: Out<'_, nvmlPciInfo_t>) -> Result {
    let device = Device::of(device)?;
    let (id, subsystem) = device.sensors.pci_ids().unwrap_or_default();
    pci.write(nvmlPciInfo_t {
        busIdLegacy: text_field(&device.bus_id(4)),
        domain: device.identity.pci.domain,
        bus: device.identity.pci.bus,
        device: device.identity.pci.device,
        pciDeviceId: id,
        pciSubSystemId: subsystem,
        busId: text_field(&device.bus_id(8)),
    });
    Ok(())
}

/// The structure ended with four reserved words; the last one's place is the wider bus id's now.
const OLD_PCI_INFO_BYTES: usize = core::mem::offset_of!(nvmlPciInfo_t, busId);

/// # Safety
/// `pci` is NULL, or a structure that may be written up to the wider bus id.
unsafe fn old_pci_info(device: nvmlDevice_t, pci: *mut nvmlPciInfo_t) -> Result {
    if pci.is_null() {
        return Err(Error::InvalidArgument("pci"));
    }
    let mut now = nvmlPciInfo_t::default();
    nvmlDeviceGetPciInfo_v3(device, Out::from(&mut now))?;
    // SAFETY: the caller's promise: the structure has at least these bytes, whatever header the program was compiled with.
    unsafe {
        core::ptr::copy_nonoverlapping((&raw const now).cast::<u8>(), pci.cast::<u8>(), OLD_PCI_INFO_BYTES);
    }
    Ok(())
}

/// # Safety
/// `pci` is NULL, or a structure that may be written up to the wider bus id.
pub unsafe fn nvmlDeviceGetPciInfo_v2(device: nvmlDevice_t, pci: *mut nvmlPciInfo_t) -> Result {
    // SAFETY: the caller's promise.
    unsafe { old_pci_info(device, pci) }
}

/// # Safety
/// `pci` is NULL, or a structure that may be written up to the wider bus id.
pub unsafe fn nvmlDeviceGetPciInfo(device: nvmlDevice_t, pci: *mut nvmlPciInfo_t) -> Result {
    // SAFETY: the caller's promise.
    unsafe { old_pci_info(device, pci) }
}

pub fn nvmlDeviceGetPciInfoExt(device: nvmlDevice_t, pci: Out<'_, nvmlPciInfoExt_t>) -> Result {
    let device = Device::of(device)?;
    // SAFETY: the program has set the version that it reads.
    let version = unsafe { (*pci.as_ptr()).version };
    if version != struct_version::<nvmlPciInfoExt_t>(1) {
        return Err(Error::ArgumentVersionMismatch);
    }
    let (id, subsystem) = device.sensors.pci_ids().unwrap_or_default();
    pci.write(nvmlPciInfoExt_t {
        version,
        domain: device.identity.pci.domain,
        bus: device.identity.pci.bus,
        device: device.identity.pci.device,
        pciDeviceId: id,
        pciSubSystemId: subsystem,
        // A display controller; the CPU device is on no bus.
        baseClass: if id == 0 { 0 } else { 3 },
        subClass: 0,
        busId: text_field(&device.bus_id(8)),
    });
    Ok(())
}

pub fn nvmlDeviceGetCudaComputeCapability(
    device: nvmlDevice_t,
    major: Out<'_, c_int>,
    minor: Out<'_, c_int>,
) -> Result {
    let (x, y) = Device::of(device)?.identity.compute_capability;
    major.write(x);
    minor.write(y);
    Ok(())
}

/// The generation whose compute capability the device reports.
pub fn nvmlDeviceGetArchitecture(device: nvmlDevice_t, arch: Out<'_, nvmlDeviceArchitecture_t>) -> Result {
    arch.write(match Device::of(device)?.identity.compute_capability {
        (5, _) => NVML_DEVICE_ARCH_MAXWELL,
        (6, _) => NVML_DEVICE_ARCH_PASCAL,
        (7, 5) => NVML_DEVICE_ARCH_TURING,
        (7, _) => NVML_DEVICE_ARCH_VOLTA,
        (8, 9) => NVML_DEVICE_ARCH_ADA,
        (8, _) => NVML_DEVICE_ARCH_AMPERE,
        (9, _) => NVML_DEVICE_ARCH_HOPPER,
        (10..=12, _) => NVML_DEVICE_ARCH_BLACKWELL,
        _ => NVML_DEVICE_ARCH_UNKNOWN,
    });
    Ok(())
}

/// None of NVIDIA's.
pub fn nvmlDeviceGetBrand(device: nvmlDevice_t, type_: Out<'_, nvmlBrandType_t>) -> Result {
    Device::of(device)?;
    type_.write(nvmlBrandType_t::NVML_BRAND_UNKNOWN);
    Ok(())
}

pub fn nvmlDeviceGetBusType(device: nvmlDevice_t, type_: Out<'_, nvmlBusType_t>) -> Result {
    Device::of(device)?.sensors.pci_ids().ok_or(Error::NotSupported("the device is on no bus"))?;
    type_.write(NVML_BUS_TYPE_PCIE);
    Ok(())
}

/// Boards are told apart by their place.
pub fn nvmlDeviceGetBoardId(device: nvmlDevice_t, boardId: Out<'_, c_uint>) -> Result {
    let pci = Device::of(device)?.identity.pci;
    boardId.write(pci.domain << 16 | pci.bus << 8 | pci.device);
    Ok(())
}

pub fn nvmlDeviceGetMultiGpuBoard(device: nvmlDevice_t, multiGpuBool: Out<'_, c_uint>) -> Result {
    Device::of(device)?;
    multiGpuBool.write(0);
    Ok(())
}

pub fn nvmlDeviceOnSameBoard(
    device1: nvmlDevice_t,
    device2: nvmlDevice_t,
    onSameBoard: Out<'_, c_int>,
) -> Result {
    let same = Device::of(device1)?.index == Device::of(device2)?.index;
    onSameBoard.write(c_int::from(same));
    Ok(())
}

pub fn nvmlDeviceGetNumaNodeId(device: nvmlDevice_t, node: Out<'_, c_uint>) -> Result {
    node.write(
        Device::of(device)?
            .sensors
            .numa_node()
            .ok_or(Error::NotSupported("the device is on no NUMA node"))?,
    );
    Ok(())
}

/// The number of the device's node: of an AMD GPU /dev/dri/card`N`. The CPU device has none.
pub fn nvmlDeviceGetMinorNumber(device: nvmlDevice_t, minorNumber: Out<'_, c_uint>) -> Result {
    let minor = Device::of(device)?.sensors.minor();
    minorNumber.write(minor.ok_or(Error::NotSupported("the device has no node in /dev"))?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bus_id_is_read_in_each_of_its_spellings() {
        assert_eq!(parse_bus_id("00000000:3B:00.0"), Some((0, 0x3b, 0)));
        assert_eq!(parse_bus_id("0001:c1:1f.0"), Some((1, 0xc1, 0x1f)));
        assert_eq!(parse_bus_id("3b:00"), Some((0, 0x3b, 0)));
        assert_eq!(parse_bus_id("GPU"), None);
    }
}
