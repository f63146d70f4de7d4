//! A device: who it is (`identity`), what it does (`sensors`), and its handle, a number that is never followed as a pointer.

use core::ffi::c_uint;

use crate::identity::Identity;
use crate::sensors::{self, Sensors};
use crate::types::nvmlDevice_t;
use crate::{Error, Result, session};

pub struct Device {
    pub index: usize,
    pub identity: Identity,
    pub sensors: Box<dyn Sensors>,
}

impl Device {
    pub fn new(index: usize, identity: Identity) -> Device {
        Device { index, sensors: sensors::of(&identity), identity }
    }

    /// The device behind a handle.
    pub fn of(handle: nvmlDevice_t) -> Result<&'static Device> {
        let devices = session::devices();
        handle
            .addr()
            .checked_sub(1)
            .and_then(|index| devices.get(index))
            .ok_or(Error::InvalidArgument("device"))
    }

    pub fn handle(&self) -> nvmlDevice_t {
        core::ptr::without_provenance_mut(self.index + 1)
    }

    pub fn number(&self) -> c_uint {
        c_uint::try_from(self.index).unwrap_or(c_uint::MAX)
    }

    /// `GPU-` and the driver's UUID in the usual spelling.
    pub fn uuid(&self) -> String {
        let hex: String = self.identity.uuid.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("GPU-{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
    }

    /// `domain:bus:device.0`, the domain in `digits` digits.
    pub fn bus_id(&self, digits: usize) -> String {
        let pci = self.identity.pci;
        format!("{:0digits$X}:{:02X}:{:02X}.0", pci.domain, pci.bus, pci.device)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::Pci;

    #[test]
    fn names_are_spelt_as_programs_compare_them() {
        let mut identity =
            Identity { pci: Pci { domain: 1, bus: 0xc3, device: 0x1f }, ..Identity::default() };
        identity.uuid = core::array::from_fn(|n| u8::try_from(n).unwrap() * 0x11);
        let device = Device::new(0, identity);
        assert_eq!(device.uuid(), "GPU-00112233-4455-6677-8899-aabbccddeeff");
        assert_eq!(device.bus_id(8), "00000001:C3:1F.0");
        assert_eq!(device.bus_id(4), "0001:C3:1F.0");
    }
}
