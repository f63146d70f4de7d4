//! A device: one of a provider's, under its CUDA number, with the identity all interfaces agree on.

use core::ffi::c_int;
use std::sync::OnceLock;

use cuda_abi::CUdevice;
use hip_sys::{self as hip, Hip, Layout, Provider};

use super::context::Primary;
use crate::process::driver;
use crate::{Error, Result};

/// Threads of a warp, on every target (docs/architecture.md).
pub const WARP_SIZE: c_int = 32;

/// What becomes of PTX for this device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The provider translates PTX itself (docs/architecture.md, "The image").
    Cpu,
    /// AMD code objects are needed.
    Amdgcn,
}

/// Bounds a launch is checked against.
#[derive(Clone, Copy, Debug)]
pub struct LaunchBounds {
    pub threads_per_block: u32,
    pub block: [u32; 3],
    pub grid: [u32; 3],
    pub shared_per_block: u32,
    pub shared_per_block_optin: u32,
}

pub struct Device {
    pub ordinal: CUdevice,
    /// The device's number among all, of which `CUDA_VISIBLE_DEVICES` may hide some.
    pub place: CUdevice,
    pub provider: &'static Provider,
    /// The device's number inside its provider.
    pub hip_ordinal: c_int,
    pub name: String,
    pub arch: String,
    pub uuid: [u8; 16],
    /// Added to the provider's PCI domain: a device that is listed twice has two addresses.
    pub pci_domain_offset: c_int,
    pub total_memory: usize,
    pub compute_capability: (u32, u32),
    pub target: Target,
    pub bounds: LaunchBounds,
    pub primary: Primary,
    /// The provider's limits before anyone set them: what a new context starts with. By HIP's number.
    fresh_limits: [OnceLock<Option<usize>>; 3],
}

impl Device {
    /// Whether libraries of ROCm have nothing to do here: the device is our own provider's. One that shows the CPU with a
    /// release's face (crates/hip-recorder) has them.
    pub fn is_ours(&self) -> bool {
        self.provider.path.as_os_str().as_encoded_bytes().ends_with(b"libcudaway_cpu.so")
    }

    pub fn open(provider: &'static Provider, hip_ordinal: c_int, ordinal: CUdevice) -> Result<Device> {
        let hip = &provider.hip;
        let identity = Layout::identity(hip, hip_ordinal)?;
        let ask = |attribute| attribute_of(hip, attribute, hip_ordinal);
        let bound = |attribute, otherwise: u32| {
            ask(attribute)
                .and_then(|value| u32::try_from(value).ok())
                .filter(|&value| value > 0)
                .unwrap_or(otherwise)
        };
        let shared = bound(hip::hipDeviceAttributeMaxSharedMemoryPerBlock, 48 << 10);
        let bounds = LaunchBounds {
            threads_per_block: bound(hip::hipDeviceAttributeMaxThreadsPerBlock, 1024),
            block: [
                bound(hip::hipDeviceAttributeMaxBlockDimX, 1024),
                bound(hip::hipDeviceAttributeMaxBlockDimY, 1024),
                bound(hip::hipDeviceAttributeMaxBlockDimZ, 64),
            ],
            grid: [
                bound(hip::hipDeviceAttributeMaxGridDimX, i32::MAX.unsigned_abs()),
                bound(hip::hipDeviceAttributeMaxGridDimY, 65535),
                bound(hip::hipDeviceAttributeMaxGridDimZ, 65535),
            ],
            shared_per_block: shared,
            shared_per_block_optin: bound(hip::hipDeviceAttributeSharedMemPerBlockOptin, shared).max(shared),
        };
        let target = if identity.arch == "cpu" { Target::Cpu } else { Target::Amdgcn };
        let uuid = identity.uuid.unwrap_or_else(|| derived_uuid(provider, hip_ordinal, &identity.name));
        Ok(Device {
            ordinal,
            place: ordinal,
            provider,
            hip_ordinal,
            name: identity.name,
            arch: identity.arch,
            uuid,
            pci_domain_offset: 0,
            total_memory: identity.total_global_mem,
            compute_capability: config::get().compute_capability,
            target,
            bounds,
            primary: Primary::new(),
            fresh_limits: [const { OnceLock::new() }; 3],
        })
    }

    /// The device with this number.
    #[inline]
    pub fn get(ordinal: CUdevice) -> Result<&'static Device> {
        let devices = &driver()?.devices;
        usize::try_from(ordinal).ok().and_then(|index| devices.get(index)).ok_or(Error::InvalidDevice)
    }

    #[inline]
    pub fn hip(&self) -> &'static Hip {
        &self.provider.hip
    }

    /// The provider's answer to a device attribute, or `None` when it has none.
    pub fn hip_attribute(&self, attribute: hip::hipDeviceAttribute_t) -> Option<c_int> {
        let value = attribute_of(self.hip(), attribute, self.hip_ordinal);
        // A second address exists also where the provider does not tell the first.
        if attribute == hip::hipDeviceAttributePciDomainID && self.pci_domain_offset != 0 {
            return Some(value.unwrap_or(0).wrapping_add(self.pci_domain_offset));
        }
        value
    }

    /// A limit as the provider came with it, or `None` when it has none. The calling thread is bound to the device.
    ///
    /// HIP differs: limits are the device's there. So this is asked before the first is set.
    pub fn fresh_limit(&self, limit: hip::hipLimit_t) -> Option<usize> {
        let kept = usize::try_from(limit).ok().and_then(|index| self.fresh_limits.get(index))?;
        *kept.get_or_init(|| {
            let mut value = 0;
            // SAFETY: `value` is writable.
            unsafe { self.hip().hipDeviceGetLimit(&mut value, limit) }.ok().map(|()| value)
        })
    }

    /// `domain:bus:device.0`, as `nvidia-smi` and `cuDeviceGetPCIBusId` print it.
    pub fn pci_bus_id(&self) -> String {
        let part = |attribute| self.hip_attribute(attribute).unwrap_or(0);
        format!(
            "{:04x}:{:02x}:{:02x}.0",
            part(hip::hipDeviceAttributePciDomainID),
            part(hip::hipDeviceAttributePciBusId),
            part(hip::hipDeviceAttributePciDeviceId)
        )
    }
}

fn attribute_of(hip: &Hip, attribute: hip::hipDeviceAttribute_t, device: c_int) -> Option<c_int> {
    let mut value = 0;
    // SAFETY: `value` is a writable int.
    unsafe { hip.hipDeviceGetAttribute(&mut value, attribute, device) }.ok().map(|()| value)
}

/// Stable across runs for the same library, number and name, where the provider has no UUID of its own.
fn derived_uuid(provider: &Provider, ordinal: c_int, name: &str) -> [u8; 16] {
    let fnv = |seed: u64| {
        let path = provider.path.as_os_str().as_encoded_bytes();
        path.iter()
            .chain(name.as_bytes())
            .chain(&ordinal.to_le_bytes())
            .fold(seed, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
    };
    let mut uuid = [0; 16];
    uuid[..8].copy_from_slice(&fnv(0xcbf2_9ce4_8422_2325).to_be_bytes());
    uuid[8..].copy_from_slice(&fnv(0x8422_2325_cbf2_9ce4).to_be_bytes());
    // RFC 9562 version 8, variant 1: "made by a rule of our own".
    uuid[6] = (uuid[6] & 0x0f) | 0x80;
    uuid[8] = (uuid[8] & 0x3f) | 0x80;
    uuid
}
