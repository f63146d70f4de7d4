//! The thread's device and the primary contexts behind it.
//! Lock order: one primary-context lock at a time, never over a call that can run a program's callback.

use core::ffi::c_int;
use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use cuda_abi::{CUcontext, CUdevice, CUdevice_attribute, CUresult};
use once_cell::sync::OnceCell;
use parking_lot::Mutex;

use crate::driver::{self, Driver};
use crate::{Error, Result, registry};

thread_local! {
    /// What the last cudaSetDevice of this thread chose.
    static CHOSEN: Cell<c_int> = const { Cell::new(0) };
    /// Whether the thread has had a context by [`attach`]: 0, or one more than the resets there had been.
    static ATTACHED: Cell<usize> = const { Cell::new(0) };
}

/// How often a device was reset in this process.
static RESETS: AtomicUsize = AtomicUsize::new(0);

/// One device of the driver's list, and what never changes about it.
pub struct Device {
    pub ordinal: c_int,
    pub handle: CUdevice,
    primary: Mutex<Primary>,
    limits: OnceCell<LaunchLimits>,
}

#[derive(Default)]
struct Primary {
    /// Retained, and not reset since.
    context: Option<Context>,
    /// What it was before its resets: threads may still have that as their current context.
    before: Vec<Context>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Context(CUcontext);
// SAFETY: a context handle may be used from any thread.
unsafe impl Send for Context {}

/// What a launch must stay within, whatever the kernel.
#[derive(Clone, Copy, Debug)]
pub struct LaunchLimits {
    pub threads_per_block: u32,
    pub block: [u32; 3],
    pub grid: [u32; 3],
}

/// All devices. Fails as the driver's initialisation does (no driver: 35, no device: 100).
pub fn all() -> Result<&'static [Device]> {
    static DEVICES: OnceCell<Vec<Device>> = OnceCell::new();
    let devices = DEVICES.get_or_try_init(|| {
        let driver = driver::get()?;
        let mut count = 0;
        driver.cuDeviceGetCount(&mut count)?;
        (0..count)
            .map(|ordinal| {
                let mut handle = 0;
                driver.cuDeviceGet(&mut handle, ordinal)?;
                Ok(Device { ordinal, handle, primary: Mutex::default(), limits: OnceCell::new() })
            })
            .collect::<Result<Vec<_>>>()
    })?;
    if devices.is_empty() {
        return Err(Error::Driver(CUresult::CUDA_ERROR_NO_DEVICE));
    }
    Ok(devices)
}

pub fn at(ordinal: c_int) -> Result<&'static Device> {
    usize::try_from(ordinal)
        .ok()
        .and_then(|index| all().map(|all| all.get(index)).transpose())
        .unwrap_or(Err(Error::InvalidDevice(ordinal)))
}

impl Device {
    pub fn attribute(&self, attribute: CUdevice_attribute) -> Result<c_int> {
        let mut value = 0;
        driver::get()?.cuDeviceGetAttribute(&mut value, attribute, self.handle)?;
        Ok(value)
    }

    pub fn limits(&self) -> Result<LaunchLimits> {
        self.limits
            .get_or_try_init(|| {
                let limit =
                    |attribute| Ok::<u32, Error>(u32::try_from(self.attribute(attribute)?).unwrap_or(0));
                Ok(LaunchLimits {
                    threads_per_block: limit(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
                    block: [
                        limit(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X)?,
                        limit(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y)?,
                        limit(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z)?,
                    ],
                    grid: [
                        limit(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X)?,
                        limit(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y)?,
                        limit(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)?,
                    ],
                })
            })
            .copied()
    }

    /// The primary context, retained the first time and again after each reset.
    pub fn context(&self) -> Result<CUcontext> {
        let mut primary = self.primary.lock();
        if let Some(context) = primary.context {
            return Ok(context.0);
        }
        let mut context: CUcontext = ptr::null_mut();
        driver::get()?.cuDevicePrimaryCtxRetain(&mut context, self.handle)?;
        registry::load_again();
        Ok(primary.context.insert(Context(context)).0)
    }

    /// Makes the primary context current on this thread.
    pub fn make_current(&self) -> Result {
        driver::get()?.cuCtxSetCurrent(self.context()?)?;
        registry::load_ahead()
    }

    /// Destroys what the primary context holds. The next call that needs a context starts anew.
    pub fn reset(&self) -> Result {
        let driver = driver::get()?;
        driver.cuDevicePrimaryCtxReset_v2(self.handle)?;
        let mut primary = self.primary.lock();
        // The variables get new addresses.
        registry::load_again();
        // A context that is reset is destroyed where it is current, until it is retained once more.
        if let Some(context) = primary.context.take() {
            if !primary.before.contains(&context) {
                primary.before.push(context);
            }
            RESETS.fetch_add(1, Ordering::Release);
        }
        Ok(())
    }
}

/// The device whose primary context this was before it was reset.
fn device_before_reset(context: CUcontext) -> Option<&'static Device> {
    if RESETS.load(Ordering::Acquire) == 0 {
        return None;
    }
    all().ok()?.iter().find(|device| device.primary.lock().before.contains(&Context(context)))
}

/// The driver, with a context current on this thread: the program's own if it has set one, else the thread's device's primary.
#[inline]
pub fn attach() -> Result<&'static Driver> {
    let driver = driver::get()?;
    let attached = RESETS.load(Ordering::Acquire) + 1;
    let mut current: CUcontext = ptr::null_mut();
    driver.cuCtxGetCurrent(&mut current)?;
    if current.is_null() {
        at(chosen())?.make_current()?;
    } else if ATTACHED.get() != attached
        && let Some(device) = device_before_reset(current)
    {
        device.make_current()?;
    } else if !registry::is_loaded_ahead() {
        registry::load_ahead()?;
    }
    ATTACHED.set(attached);
    Ok(driver)
}

/// As [`attach`], for calls that programs make in numbers: a thread that has attached before asks the driver for a context
/// only where the call finds none.
#[inline]
pub fn with_context(mut call: impl FnMut(&'static Driver) -> Result) -> Result {
    const NO_CONTEXT: Result = Err(Error::Driver(CUresult::CUDA_ERROR_INVALID_CONTEXT));
    if ATTACHED.get() == RESETS.load(Ordering::Acquire) + 1 && registry::is_loaded_ahead() {
        match call(driver::get()?) {
            NO_CONTEXT => {}
            answer => return answer,
        }
    }
    call(attach()?)
}

/// The device of this thread's next call.
pub fn current() -> Result<&'static Device> {
    let driver = driver::get()?;
    let mut context: CUcontext = ptr::null_mut();
    driver.cuCtxGetCurrent(&mut context)?;
    if context.is_null() {
        return at(chosen());
    }
    // The driver may know nothing of it any more.
    if let Some(device) = device_before_reset(context) {
        return Ok(device);
    }
    let mut handle = 0;
    driver.cuCtxGetDevice(&mut handle)?;
    all()?.iter().find(|device| device.handle == handle).ok_or(Error::InvalidDevice(handle))
}

pub fn chosen() -> c_int {
    CHOSEN.get()
}

pub fn choose(ordinal: c_int) {
    CHOSEN.set(ordinal);
}
