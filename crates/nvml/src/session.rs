//! Between `nvmlInit` and `nvmlShutdown`, which are counted. The list of devices is made by the first `nvmlInit` and holds
//! for the process's life, so a handle means the same device in a later session.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::{Device, Error, Result, identity};

static OPEN: AtomicU32 = AtomicU32::new(0);
static DEVICES: OnceLock<Result<Vec<Device>>> = OnceLock::new();

pub fn is_open() -> bool {
    OPEN.load(Ordering::Acquire) > 0
}

/// `without_devices`: a machine without one will do.
pub fn open(without_devices: bool) -> Result {
    let devices = DEVICES.get_or_init(list).as_ref().map_err(|error| *error)?;
    if devices.is_empty() && !without_devices {
        return Err(Error::GpuNotFound);
    }
    OPEN.fetch_add(1, Ordering::AcqRel);
    Ok(())
}

pub fn close() -> Result {
    let closed = OPEN.fetch_update(Ordering::AcqRel, Ordering::Acquire, |open| open.checked_sub(1));
    closed.map(drop).map_err(|_| Error::Uninitialized)
}

fn list() -> Result<Vec<Device>> {
    let identities = identity::devices()?;
    Ok(identities.into_iter().enumerate().map(|(index, identity)| Device::new(index, identity)).collect())
}

/// All devices; empty before the first `nvmlInit`.
pub fn devices() -> &'static [Device] {
    match DEVICES.get() {
        Some(Ok(devices)) => devices,
        _ => &[],
    }
}
