//! Who the devices are, asked of `libcuda.so.1` so that no two interfaces can differ. The calls used need no context.

use core::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;

use cuda_abi::{CUresult, CudawayDevice};
use libloading::os::unix::Library;

use crate::{Error, Result};

/// One device as the driver describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    pub name: String,
    pub uuid: [u8; 16],
    pub total_memory: u64,
    pub compute_capability: (c_int, c_int),
    pub pci: Pci,
    pub memory_bus_bits: c_int,
    pub has_ecc: bool,
    pub compute_mode: c_int,
    /// It is our CPU device.
    pub is_cpu: bool,
}

/// Where a device is on the PCI bus; the function is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pci {
    pub domain: u32,
    pub bus: u32,
    pub device: u32,
}

/// The calls, each with the type it has in the driver's ABI.
struct Driver {
    cuDriverGetVersion: unsafe extern "C" fn(*mut c_int) -> CUresult,
    cudaway_devices: unsafe extern "C" fn(usize, *mut CudawayDevice, c_int, *mut c_int) -> CUresult,
}

impl Driver {
    fn get() -> Result<&'static Driver> {
        static DRIVER: OnceLock<Option<Driver>> = OnceLock::new();
        let driver = DRIVER.get_or_init(|| Driver::of(library()?));
        driver.as_ref().ok_or(Error::DriverNotLoaded("there is no libcuda.so.1 of ours"))
    }

    fn of(library: &Library) -> Option<Driver> {
        macro_rules! find {
            ($($name:ident),*) => {
                // SAFETY: each field has its name's type in the driver's ABI, and the library is never closed.
                Some(Driver { $($name: *unsafe { library.get(concat!(stringify!($name), "\0")) }.ok()?),* })
            };
        }
        find!(cuDriverGetVersion, cudaway_devices)
    }
}

/// The process's driver; it stays open.
fn library() -> Option<&'static Library> {
    static LIBRARY: OnceLock<Option<Library>> = OnceLock::new();
    LIBRARY.get_or_init(open_library).as_ref()
}

fn open_library() -> Option<Library> {
    let failed =
        |path: &CStr, reason: &CStr| tracing::debug!(target: "cudaway::nvml", "{path:?}: {reason:?}");
    let handle = loader::place::open(library as *const c_void, c"libcuda.so.1", failed)?;
    // SAFETY: the loader's handle, which nobody else closes.
    Some(unsafe { Library::from_raw(handle.as_ptr()) })
}

/// 1000 × major + 10 × minor.
pub fn cuda_version() -> Result<c_int> {
    let mut version = 0;
    // SAFETY: the call writes one int.
    match unsafe { (Driver::get()?.cuDriverGetVersion)(&mut version) } {
        CUresult::CUDA_SUCCESS => Ok(version),
        _ => Err(Error::DriverNotLoaded("cuDriverGetVersion")),
    }
}

/// All devices of the machine, in the order of their providers. `Ok` and empty: the driver works and has none.
pub fn devices() -> Result<Vec<Identity>> {
    let driver = Driver::get()?;
    let mut list = Vec::new();
    loop {
        let (room, mut count) = (c_int::try_from(list.len()).unwrap_or(c_int::MAX), 0);
        // SAFETY: the list has `room` elements of that size.
        let answer = unsafe {
            (driver.cudaway_devices)(size_of::<CudawayDevice>(), list.as_mut_ptr(), room, &mut count)
        };
        match answer {
            CUresult::CUDA_SUCCESS if count <= room => return Ok(list.iter().map(Identity::of).collect()),
            CUresult::CUDA_SUCCESS => {
                list.resize(usize::try_from(count).unwrap_or(0), CudawayDevice::default())
            }
            CUresult::CUDA_ERROR_NO_DEVICE => return Ok(Vec::new()),
            _ => return Err(Error::DriverNotLoaded("cudaway_devices fails")),
        }
    }
}

impl Identity {
    fn of(device: &CudawayDevice) -> Identity {
        let name: Vec<u8> = device
            .name
            .iter()
            .map(|byte: &c_char| byte.cast_unsigned())
            .take_while(|&byte| byte != 0)
            .collect();
        let [domain, bus, slot] = device.pci.map(|number| u32::try_from(number).unwrap_or(0));
        Identity {
            name: String::from_utf8_lossy(&name).into_owned(),
            uuid: device.uuid,
            total_memory: device.total_memory,
            compute_capability: (device.compute_capability[0], device.compute_capability[1]),
            pci: Pci { domain, bus, device: slot },
            memory_bus_bits: device.memory_bus_bits,
            has_ecc: device.has_ecc != 0,
            compute_mode: device.compute_mode,
            is_cpu: device.is_cpu != 0,
        }
    }
}
