//! cuSPARSE's own logger: calls that fail are told where the program or its user asked for it. Source: cuSPARSE manual, "cuSPARSE
//! Logging".
//!
//! The rule: no lock is held while a callback of the program's runs.

use core::ffi::c_int;
use std::ffi::CString;
use std::sync::LazyLock;

pub use kit::log::Target;
use kit::log::{bit, of_variables};
use parking_lot::Mutex;

use crate::Error;
use crate::types::cusparseLoggerCallback_t;

/// The level of errors.
const ERROR: c_int = 1;

#[derive(Clone, Default)]
pub struct Logger {
    pub mask: c_int,
    /// For the rest of the process.
    pub is_disabled: bool,
    /// What the program or its user named. Without one and without a callback it is stdout.
    pub target: Target,
    pub callback: cusparseLoggerCallback_t,
}

static LOGGER: LazyLock<Mutex<Logger>> = LazyLock::new(|| {
    let (mask, target) = of_variables("CUSPARSE", |name| config::var(name)?.into_string().ok());
    Mutex::new(Logger { mask, target, ..Logger::default() })
});

pub fn change(change: impl FnOnce(&mut Logger)) {
    change(&mut LOGGER.lock());
}

/// A call fails, for this reason.
#[cold]
pub fn failed(name: &'static str, reason: &Error) {
    let Logger { mask, is_disabled, target, callback } = LOGGER.lock().clone();
    if is_disabled || mask & bit(ERROR) == 0 {
        return;
    }
    let target = target.or_stdout(callback.is_some());
    target.write(&format!("[CUSPARSE][{}][Error][{name}] {reason}\n", std::process::id()));
    if let (Some(callback), Ok(name), Ok(text)) =
        (callback, CString::new(name), CString::new(reason.to_string()))
    {
        // SAFETY: the program's function, as it handed it over; the texts live as long as the call.
        unsafe { callback(ERROR, name.as_ptr(), text.as_ptr()) };
    }
}
