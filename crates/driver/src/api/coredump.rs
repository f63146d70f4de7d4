//! GPU core dumps: the settings are kept, but no dump is ever written, so what would turn dumps on is refused.

use core::ffi::{c_int, c_void};
use std::collections::BTreeMap;

use border::OptOut;
use cuda_abi::{CUcoredumpCallbackHandle, CUcoredumpSettings, CUcoredumpStatusCallback};
use parking_lot::Mutex;

use crate::handle::Registry;
use crate::object::Context;
use crate::process::driver;
use crate::{Error, Result};

/// What was set, by context (0: for all) and setting. Bound: contexts that set something, eight settings each.
static SETTINGS: Mutex<BTreeMap<(u64, u32), Value>> = Mutex::new(BTreeMap::new());
/// Whether a callback is for the start of a dump.
static CALLBACKS: Registry<bool, CUcoredumpCallbackHandle> = Registry::new(19);

/// CUDA: names of files have up to 1023 characters.
const TEXT_BYTES: usize = 1024;

#[derive(Clone)]
enum Value {
    Bool(bool),
    Text(Vec<u8>),
    Flags(c_int),
}

impl Value {
    /// What CUDA documents where nothing was set.
    fn default_of(setting: CUcoredumpSettings) -> Result<Value> {
        Ok(match setting {
            CUcoredumpSettings::CU_COREDUMP_ENABLE_ON_EXCEPTION
            | CUcoredumpSettings::CU_COREDUMP_LIGHTWEIGHT
            | CUcoredumpSettings::CU_COREDUMP_ENABLE_USER_TRIGGER => Value::Bool(false),
            CUcoredumpSettings::CU_COREDUMP_TRIGGER_HOST => Value::Bool(true),
            CUcoredumpSettings::CU_COREDUMP_FILE => Value::Text(named("core.cuda")),
            CUcoredumpSettings::CU_COREDUMP_PIPE => Value::Text(named("corepipe.cuda")),
            CUcoredumpSettings::CU_COREDUMP_GENERATION_FLAGS => Value::Flags(0),
            _ => return Err(Error::InvalidValue("attrib")),
        })
    }

    /// Room that a program has to have for it.
    fn room(&self) -> usize {
        match self {
            Value::Bool(_) => 1,
            Value::Text(_) => TEXT_BYTES,
            Value::Flags(_) => size_of::<c_int>(),
        }
    }

    fn bytes(&self) -> Vec<u8> {
        match self {
            Value::Bool(value) => vec![u8::from(*value)],
            Value::Text(text) => text.iter().copied().chain([0]).collect(),
            Value::Flags(value) => value.to_ne_bytes().to_vec(),
        }
    }

    /// A value of the same type from a program's bytes.
    fn read(&self, bytes: &[u8]) -> Result<Value> {
        let wrong = Error::InvalidValue("size");
        Ok(match self {
            Value::Bool(_) => Value::Bool(*bytes.first().ok_or(wrong)? != 0),
            Value::Text(_) => {
                let text = bytes.split(|&byte| byte == 0).next().unwrap_or(bytes);
                if text.len() >= TEXT_BYTES {
                    return Err(wrong);
                }
                Value::Text(text.to_vec())
            }
            Value::Flags(_) => Value::Flags(c_int::from_ne_bytes(
                bytes.get(..4).ok_or(wrong)?.try_into().map_err(|_| wrong)?,
            )),
        })
    }
}

/// `kind.HOSTNAME.PID`
fn named(kind: &str) -> Vec<u8> {
    let mut host = [0u8; 256];
    // SAFETY: as many writable bytes as said.
    if unsafe { libc::gethostname(host.as_mut_ptr().cast(), host.len() - 1) } != 0 {
        host = [0; 256];
    }
    let host = host.split(|&byte| byte == 0).next().unwrap_or_default();
    [kind.as_bytes(), b".", host, b".", std::process::id().to_string().as_bytes()].concat()
}

/// The value for one of the owners, the first that has set it.
fn found(owners: &[u64], setting: CUcoredumpSettings) -> Result<Value> {
    let default = Value::default_of(setting)?;
    let settings = SETTINGS.lock();
    Ok(owners.iter().find_map(|&owner| settings.get(&(owner, setting.0)).cloned()).unwrap_or(default))
}

/// # Safety
/// `size` is NULL, or may be read and written; `value` is NULL, or has `size` bytes that may be written.
unsafe fn get(owners: &[u64], setting: CUcoredumpSettings, value: *mut c_void, size: *mut usize) -> Result {
    let answer = found(owners, setting)?;
    // SAFETY: the caller's promise: NULL or a size.
    let Some(size) = (unsafe { size.as_mut() }) else { return Err(Error::InvalidValue("size")) };
    if value.is_null() {
        *size = answer.room();
        return Ok(());
    }
    let bytes = answer.bytes();
    if *size < bytes.len() {
        return Err(Error::InvalidValue("size"));
    }
    // SAFETY: the caller's promise: `size` writable bytes, of which there are enough.
    unsafe { value.cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    *size = bytes.len();
    Ok(())
}

/// # Safety
/// `size` is NULL, or may be read; `value` is NULL, or has `size` bytes.
unsafe fn set(owner: u64, setting: CUcoredumpSettings, value: *mut c_void, size: *mut usize) -> Result {
    let default = Value::default_of(setting)?;
    if value.is_null() || size.is_null() {
        return Err(Error::InvalidValue("value or size"));
    }
    // SAFETY: the caller's promise: a size, and as many readable bytes.
    let bytes = unsafe { core::slice::from_raw_parts(value.cast::<u8>(), *size) };
    let wanted = default.read(bytes)?;
    let turns_on = matches!(
        setting,
        CUcoredumpSettings::CU_COREDUMP_ENABLE_ON_EXCEPTION
            | CUcoredumpSettings::CU_COREDUMP_ENABLE_USER_TRIGGER
    );
    if turns_on && matches!(wanted, Value::Bool(true)) {
        // HIP differs: it has no core dumps that a program could turn on.
        return Err(Error::NotSupported("core dumps of a device: none is ever written"));
    }
    SETTINGS.lock().insert((owner, setting.0), wanted);
    Ok(())
}

/// # Safety
/// `size` is NULL, or may be read and written; `value` is NULL, or has `size` bytes that may be written.
pub unsafe fn cuCoredumpGetAttribute(
    attrib: CUcoredumpSettings,
    value: *mut c_void,
    size: *mut usize,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { get(&[Context::current()?.id(), 0], attrib, value, size) }
}

/// # Safety
/// `size` is NULL, or may be read and written; `value` is NULL, or has `size` bytes that may be written.
pub unsafe fn cuCoredumpGetAttributeGlobal(
    attrib: CUcoredumpSettings,
    value: *mut c_void,
    size: *mut usize,
) -> Result {
    driver()?;
    // SAFETY: the caller's promise.
    unsafe { get(&[0], attrib, value, size) }
}

/// # Safety
/// `size` is NULL, or may be read; `value` is NULL, or has `size` bytes.
pub unsafe fn cuCoredumpSetAttribute(
    attrib: CUcoredumpSettings,
    value: *mut c_void,
    size: *mut usize,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { set(Context::current()?.id(), attrib, value, size) }
}

/// # Safety
/// `size` is NULL, or may be read; `value` is NULL, or has `size` bytes.
pub unsafe fn cuCoredumpSetAttributeGlobal(
    attrib: CUcoredumpSettings,
    value: *mut c_void,
    size: *mut usize,
) -> Result {
    driver()?;
    // SAFETY: the caller's promise.
    unsafe { set(0, attrib, value, size) }
}

/// Callbacks are for dumps, so they are kept and never called.
fn register(
    function: CUcoredumpStatusCallback,
    is_start: bool,
    handle: OptOut<'_, CUcoredumpCallbackHandle>,
) -> Result {
    driver()?;
    if function.is_none() {
        return Err(Error::InvalidValue("callback"));
    }
    handle.write(CALLBACKS.insert(is_start).ok_or(Error::OutOfMemory)?);
    Ok(())
}

fn deregister(handle: CUcoredumpCallbackHandle, is_start: bool) -> Result {
    driver()?;
    if CALLBACKS.get(handle) != Some(is_start) {
        return Err(Error::InvalidValue("callback"));
    }
    CALLBACKS.remove(handle).map(|_| ()).ok_or(Error::InvalidValue("callback"))
}

pub fn cuCoredumpRegisterStartCallback(
    callback: CUcoredumpStatusCallback,
    _userData: *mut c_void,
    callbackOut: OptOut<'_, CUcoredumpCallbackHandle>,
) -> Result {
    register(callback, true, callbackOut)
}

pub fn cuCoredumpRegisterCompleteCallback(
    callback: CUcoredumpStatusCallback,
    _userData: *mut c_void,
    callbackOut: OptOut<'_, CUcoredumpCallbackHandle>,
) -> Result {
    register(callback, false, callbackOut)
}

pub fn cuCoredumpDeregisterStartCallback(callback: CUcoredumpCallbackHandle) -> Result {
    deregister(callback, true)
}

pub fn cuCoredumpDeregisterCompleteCallback(callback: CUcoredumpCallbackHandle) -> Result {
    deregister(callback, false)
}
