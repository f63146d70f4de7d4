//! cuSPARSE's own logger: calls that fail are told where the program or its user asked for it. Source: cuSPARSE manual, "cuSPARSE
//! Logging".
//!
//! The rule: no lock is held while a callback of the program's runs.

use core::ffi::{c_int, c_void};
use std::ffi::CString;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use parking_lot::Mutex;

use crate::Error;
use crate::types::cusparseLoggerCallback_t;

/// The level of errors, and the bit of it in a mask.
const ERROR: c_int = 1;
/// Errors, trace, hints, information, calls.
pub const LAST_LEVEL: c_int = 5;

/// The mask of a level and all before it.
pub const fn up_to(level: c_int) -> c_int {
    (1 << level) - 1
}

#[derive(Clone, Default)]
pub enum Target {
    #[default]
    Stdout,
    File(Arc<File>),
    /// The program's own `FILE`.
    Stream(*mut c_void),
}

// SAFETY: C's streams may be used by any thread.
unsafe impl Send for Target {}

impl Target {
    /// # Errors
    /// The file cannot be written.
    pub fn file(path: &Path) -> std::io::Result<Target> {
        Ok(Target::File(Arc::new(File::create(path)?)))
    }

    fn write(&self, line: &str) {
        // What cannot be written is lost: a logger fails no call.
        match self {
            // SAFETY: C's own stream.
            Target::Stdout => to_stream(unsafe { stdout }, line),
            Target::File(file) => _ = file.as_ref().write_all(line.as_bytes()),
            Target::Stream(stream) => to_stream(*stream, line),
        }
    }
}

unsafe extern "C" {
    static stdout: *mut c_void;
    fn fputs(text: *const core::ffi::c_char, stream: *mut c_void) -> c_int;
}

/// Through C's buffer, so that lines stand between what the program prints.
fn to_stream(stream: *mut c_void, line: &str) {
    if let Ok(line) = CString::new(line) {
        // SAFETY: a C string; the stream is C's or open by the program's promise.
        unsafe { fputs(line.as_ptr(), stream) };
    }
}

#[derive(Clone, Default)]
pub struct Logger {
    pub mask: c_int,
    /// For the rest of the process.
    pub is_disabled: bool,
    pub target: Target,
    pub callback: cusparseLoggerCallback_t,
}

impl Logger {
    fn read(var: impl Fn(&str) -> Option<String>) -> Logger {
        let number = |name: &str| var(name).and_then(|value| value.trim().parse::<c_int>().ok());
        let of_level = number("CUSPARSE_LOG_LEVEL").filter(|level| (0..=LAST_LEVEL).contains(level));
        let mask = number("CUSPARSE_LOG_MASK").or(of_level.map(up_to)).unwrap_or(0);
        let mut made = Logger { mask, ..Logger::default() };
        if mask != 0
            && let Some(path) = var("CUSPARSE_LOG_FILE")
        {
            let path = path.replace("%i", &std::process::id().to_string());
            made.target = Target::file(Path::new(&path)).unwrap_or_default();
        }
        made
    }
}

static LOGGER: LazyLock<Mutex<Logger>> =
    LazyLock::new(|| Mutex::new(Logger::read(|name| config::var(name)?.into_string().ok())));

pub fn change(change: impl FnOnce(&mut Logger)) {
    change(&mut LOGGER.lock());
}

/// A call fails, for this reason.
#[cold]
pub fn failed(name: &'static str, reason: &Error) {
    let Logger { mask, is_disabled, target, callback } = LOGGER.lock().clone();
    if is_disabled || mask & (1 << (ERROR - 1)) == 0 {
        return;
    }
    if callback.is_none() || !matches!(target, Target::Stdout) {
        target.write(&format!("[CUSPARSE][{}][Error][{name}] {reason}\n", std::process::id()));
    }
    if let (Some(callback), Ok(name), Ok(text)) =
        (callback, CString::new(name), CString::new(reason.to_string()))
    {
        // SAFETY: the program's function, as it handed it over; the texts live as long as the call.
        unsafe { callback(ERROR, name.as_ptr(), text.as_ptr()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_has_those_before_it_and_a_mask_goes_first() {
        let read = |variables: &[(&str, &str)]| {
            Logger::read(|name| {
                variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
            })
        };
        assert_eq!(read(&[]).mask, 0);
        assert_eq!(read(&[("CUSPARSE_LOG_LEVEL", "5")]).mask, 31);
        assert_eq!(read(&[("CUSPARSE_LOG_LEVEL", "6")]).mask, 0);
        assert_eq!(read(&[("CUSPARSE_LOG_LEVEL", "5"), ("CUSPARSE_LOG_MASK", "5")]).mask, 5);
    }
}
