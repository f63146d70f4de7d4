//! What a device does at the moment. A figure that the machine does not tell is `None`, never a guess.
//!
//! Rule: everything is read from the kernel's files below a root that tests replace; nothing is opened for writing, and
//! nothing here needs more rights than the user has.

mod amd;
mod cpu;
mod file;
mod process;
mod stat;

use std::path::Path;

pub use amd::Gpu;
pub use cpu::Machine;
pub use process::Process;

use crate::identity::Identity;

/// Units are in the names; a frequency is in MHz, as everywhere in NVML.
pub trait Sensors: Send + Sync {
    fn memory_used_bytes(&self) -> Option<u64> {
        None
    }
    /// In which share of the last moment it worked: its units, and its memory.
    fn busy_percent(&self) -> (Option<u32>, Option<u32>) {
        (None, None)
    }
    fn temperature_celsius(&self, _: Spot) -> Option<u32> {
        None
    }
    fn power_milliwatts(&self) -> Option<u32> {
        None
    }
    fn power_limit_milliwatts(&self, _: Bound) -> Option<u32> {
        None
    }
    fn clock_mhz(&self, _: Clock, _: Bound) -> Option<u32> {
        None
    }
    fn fan_percent(&self) -> Option<u32> {
        None
    }
    fn fan_rpm(&self) -> Option<u32> {
        None
    }
    /// PCIe generation and lanes.
    fn pcie_link(&self, _: Bound) -> Option<(u32, u32)> {
        None
    }
    fn pcie_replays(&self) -> Option<u32> {
        None
    }
    /// Sent and received by the device.
    fn pcie_bytes_per_second(&self) -> Option<(u64, u64)> {
        None
    }
    /// What the processor can address of the device's memory, and how much of that is used.
    fn window_bytes(&self) -> Option<(u64, u64)> {
        None
    }
    /// How busy its encoders and decoders are.
    fn video_percent(&self) -> Option<u32> {
        None
    }
    /// The number of its node in /dev.
    fn minor(&self) -> Option<u32> {
        None
    }
    fn vbios(&self) -> Option<String> {
        None
    }
    fn serial(&self) -> Option<String> {
        None
    }
    /// Vendor << 0 and device << 16, then the subsystem's likewise.
    fn pci_ids(&self) -> Option<(u32, u32)> {
        None
    }
    fn numa_node(&self) -> Option<u32> {
        None
    }
    /// Who uses the device.
    fn processes(&self) -> Option<Vec<Process>> {
        None
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spot {
    Device,
    Memory,
    /// Where the device begins to slow down, and where it stops.
    Slowdown,
    Shutdown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    Now,
    Least,
    Most,
    Default,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    Compute,
    Memory,
}

/// Nothing is known of a device of somebody else's provider.
struct Unknown;
impl Sensors for Unknown {}

/// Who can tell of this device: the system, when it is the CPU; the amdgpu driver, when it knows a GPU at that address.
pub fn of(identity: &Identity) -> Box<dyn Sensors> {
    let root = Path::new("/");
    if identity.is_cpu {
        return Box::new(Machine::at(root, identity.total_memory));
    }
    match Gpu::at(root, identity.pci) {
        Some(gpu) => Box::new(gpu),
        None => Box::new(Unknown),
    }
}
