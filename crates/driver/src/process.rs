//! The process's CUDA: not yet initialised, ready with a list of devices, or gone (the process is exiting).
//!
//! The device list never changes once made. Providers are opened by `cuInit`, unless `cudaway_forward` chose before.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

use cuda_abi::CUdevice;
use hip_sys::Provider;
use parking_lot::Mutex;

use crate::object::Device;
use crate::object::device::Target;
use crate::object::gfx::timing;
use crate::{Error, Result};

pub struct Driver {
    /// Those that the process sees: by their CUDA numbers.
    pub devices: Vec<Device>,
    /// What `CUDA_VISIBLE_DEVICES` hides.
    hidden: Vec<Device>,
    pub providers: Vec<&'static Provider>,
}

const NEW: u8 = 0;
const READY: u8 = 1;
const GONE: u8 = 2;

static PHASE: AtomicU8 = AtomicU8::new(NEW);
static DRIVER: OnceLock<Result<Driver>> = OnceLock::new();
/// What `cudaway_forward` chose; `None` leaves it to `CUDAWAY_DEVICE`.
static CHOSEN: Mutex<Option<Vec<&'static Provider>>> = Mutex::new(None);

/// The driver, once `cuInit` succeeded.
#[inline]
pub fn driver() -> Result<&'static Driver> {
    match PHASE.load(Ordering::Acquire) {
        READY => match DRIVER.get() {
            Some(Ok(driver)) => Ok(driver),
            _ => Err(Error::NotInitialized),
        },
        GONE => Err(Error::Deinitialized),
        _ => Err(Error::NotInitialized),
    }
}

/// Whether calls that need no initialisation may still run.
pub fn not_gone() -> Result {
    if PHASE.load(Ordering::Acquire) == GONE { Err(Error::Deinitialized) } else { Ok(()) }
}

/// `cuInit`: opens the providers and lists their devices. Every later call gives the first one's answer.
pub fn initialize() -> Result<&'static Driver> {
    not_gone()?;
    let driver = opened()?;
    if driver.devices.is_empty() {
        return Err(Error::NoDevice);
    }
    if PHASE.compare_exchange(NEW, READY, Ordering::AcqRel, Ordering::Acquire).is_ok() {
        // SAFETY: `leave` is a C function that lives as long as this library, which is never unloaded while the
        // process ends: the C library runs a library's own handlers before it goes.
        unsafe { libc::atexit(leave) };
    }
    Ok(driver)
}

fn opened() -> Result<&'static Driver> {
    DRIVER.get_or_init(open_devices).as_ref().map_err(|error| *error)
}

/// All devices, also those that the process does not see, in the order of their providers. It is no `cuInit`.
pub fn all_devices() -> Result<Vec<&'static Device>> {
    not_gone()?;
    let driver = opened()?;
    let mut all: Vec<&Device> = driver.devices.iter().chain(&driver.hidden).collect();
    all.sort_by_key(|device| device.place);
    Ok(all)
}

/// From here on every call answers `CUDA_ERROR_DEINITIALIZED`, as NVIDIA's driver does during exit.
extern "C" fn leave() {
    timing::collect();
    PHASE.store(GONE, Ordering::Release);
}

fn open_devices() -> Result<Driver> {
    let chosen = CHOSEN.lock().clone();
    let providers = chosen.unwrap_or_else(|| {
        let config = config::get();
        hip_sys::provider::select(&config.devices, config.rocm_root.as_deref())
            .into_iter()
            .map(keep)
            .collect()
    });
    let mut devices = Vec::new();
    for &provider in &providers {
        for hip_ordinal in 0..provider.n_devices {
            let Ok(ordinal) = CUdevice::try_from(devices.len()) else { break };
            match Device::open(provider, hip_ordinal, ordinal) {
                Ok(mut device) => {
                    // A provider that is listed twice gives the same device twice; the copies need names of their own.
                    while devices.iter().any(|known: &Device| known.uuid == device.uuid) {
                        device.uuid[15] = device.uuid[15].wrapping_add(1);
                    }
                    while devices.iter().any(|known: &Device| known.pci_bus_id() == device.pci_bus_id()) {
                        device.pci_domain_offset += 1;
                    }
                    devices.push(device);
                }
                Err(error) => {
                    tracing::error!(
                        target: "cudaway::driver",
                        "{}: device {hip_ordinal} is left out: {error}", provider.path.display()
                    );
                }
            }
        }
    }
    if devices.is_empty() {
        tracing::error!(target: "cudaway::driver", "cuInit: no provider has a device");
        return Err(Error::NoDevice);
    }
    let (devices, hidden) = visible(devices);
    if devices.is_empty() {
        tracing::error!(target: "cudaway::driver", "cuInit: CUDA_VISIBLE_DEVICES shows none of the {} devices", hidden.len());
    }
    for device in &devices {
        tracing::info!(
            target: "cudaway::driver",
            "device {}: {} ({}, {} MiB)", device.ordinal, device.name, device.arch, device.total_memory >> 20
        );
    }
    Ok(Driver { devices, hidden, providers })
}

/// The devices that `CUDA_VISIBLE_DEVICES` names, in its order; and the others.
fn visible(all: Vec<Device>) -> (Vec<Device>, Vec<Device>) {
    let Some(list) = std::env::var_os("CUDA_VISIBLE_DEVICES") else { return (all, Vec::new()) };
    // ROCm heeds the variable itself: its GPUs are hidden and numbered already.
    if all.iter().any(|device| device.target != Target::Cpu) {
        return (all, Vec::new());
    }
    let uuids: Vec<[u8; 16]> = all.iter().map(|device| device.uuid).collect();
    let mut all: Vec<Option<Device>> = all.into_iter().map(Some).collect();
    let places = crate::visible::places(&list.to_string_lossy(), &uuids);
    let mut shown: Vec<Device> = places.into_iter().filter_map(|place| all[place].take()).collect();
    for (ordinal, device) in (0..).zip(&mut shown) {
        device.ordinal = ordinal;
    }
    (shown, all.into_iter().flatten().collect())
}

/// Providers stay open for the process's life: their code may run in any thread at any time.
fn keep(provider: Provider) -> &'static Provider {
    Box::leak(Box::new(provider))
}

/// Adds a provider for `cuInit` to use; `clear` forgets earlier choices. Too late once the device list is made.
pub fn choose(provider: Provider, clear: bool) -> Result {
    if DRIVER.get().is_some() {
        return Err(Error::IllegalState);
    }
    let mut chosen = CHOSEN.lock();
    if clear {
        *chosen = None;
    }
    chosen.get_or_insert_default().push(keep(provider));
    Ok(())
}

/// The providers in use, or chosen so far.
pub fn providers() -> Vec<&'static Provider> {
    match DRIVER.get() {
        Some(Ok(driver)) => driver.providers.clone(),
        _ => CHOSEN.lock().clone().unwrap_or_default(),
    }
}
