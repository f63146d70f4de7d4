//! The loggers of cuBLAS and cuBLASLt: a line for each call, and for each that failed, where the program or its user asked for
//! them. Source: cuBLAS manual, "cublasLoggerConfigure" and "cuBLASLt Logging".
//!
//! The rule: off, a call costs one relaxed load; no lock is held while a callback of the program's runs.

use core::ffi::{CStr, c_int};
use std::ffi::CString;
use std::path::Path;
use std::sync::LazyLock;

pub use kit::log::Target;
use kit::log::{bit, of_variables};
use parking_lot::Mutex;
use trace::{Arguments, Switch};

use crate::{CUBLAS_VER_MAJOR, CUBLAS_VER_MINOR, cublasLogCallback, cublasLtLoggerCallback_t};

/// A kind of message of cuBLASLt: its level, which is the number of its bit in a mask from 1 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    Error = 1,
    Trace = 2,
    Hint = 3,
    Info = 4,
    Api = 5,
}

/// What the program itself asked to be said.
pub fn to_stderr(line: &str) {
    Target::Stderr.write(line);
}

/// cuBLAS's.
#[derive(Clone, Default)]
pub struct Blas {
    pub is_on: bool,
    /// stdout, stderr and a file may all be on.
    pub targets: Vec<Target>,
    pub callback: cublasLogCallback,
}

/// cuBLASLt's.
#[derive(Clone, Default)]
pub struct Lt {
    pub mask: c_int,
    /// For the rest of the process.
    pub is_disabled: bool,
    /// What the program or its user named. Without one and without a callback it is stdout.
    pub target: Target,
    pub callback: cublasLtLoggerCallback_t,
}

#[derive(Default)]
struct Loggers {
    blas: Blas,
    lt: Lt,
}

static LOGGERS: LazyLock<Mutex<Loggers>> =
    LazyLock::new(|| Mutex::new(Loggers::read(|name| config::var(name)?.into_string().ok())));

impl Loggers {
    fn read(var: impl Fn(&str) -> Option<String>) -> Loggers {
        let mut made = Loggers::default();
        made.blas.is_on = var("CUBLAS_LOGINFO_DBG").is_some_and(|value| value == "1");
        made.blas.targets = match var("CUBLAS_LOGDEST_DBG").as_deref() {
            None | Some("") => Vec::new(),
            Some("stdout") => vec![Target::Stdout],
            Some("stderr") => vec![Target::Stderr],
            Some(path) if made.blas.is_on => Target::file(Path::new(path)).into_iter().collect(),
            Some(_) => Vec::new(),
        };
        (made.lt.mask, made.lt.target) = of_variables("CUBLASLT", var);
        made
    }

    fn is_on(&self) -> bool {
        let blas = self.blas.is_on && (self.blas.callback.is_some() || !self.blas.targets.is_empty());
        blas || self.lt.wants_any()
    }
}

impl Lt {
    fn wants_any(&self) -> bool {
        self.mask != 0 && !self.is_disabled
    }
}

static SWITCH: Switch = Switch::new();

/// Whether any call has to be told of.
#[inline]
pub fn is_on() -> bool {
    SWITCH.is_on(|| LOGGERS.lock().is_on())
}

/// Changes what is told to whom.
pub fn change<R>(change: impl FnOnce(&mut Blas, &mut Lt) -> R) -> R {
    let mut loggers = LOGGERS.lock();
    let Loggers { blas, lt } = &mut *loggers;
    let answer = change(blas, lt);
    SWITCH.set(loggers.is_on());
    answer
}

/// Runs a body, the call of this name, and says so before it where somebody listens.
#[macro_export]
macro_rules! call {
    ($name:literal, ($($shown:tt)*), $body:expr) => {{
        if $crate::log::is_on() {
            $crate::log::called($name, &::trace::shown!($($shown)*));
        }
        ::trace::call!($name, ($($shown)*), $body)
    }};
}

/// As [`call`], of a call that answers with something else than a status.
#[macro_export]
macro_rules! call_value {
    ($name:literal, ($($shown:tt)*), $body:expr) => {{
        if $crate::log::is_on() {
            $crate::log::called($name, &::trace::shown!($($shown)*));
        }
        ::trace::call_value!($name, ($($shown)*), $body)
    }};
}

#[cold]
pub fn called(name: &'static str, arguments: &dyn Fn(&mut Arguments)) {
    // A panic must not leave the export, which is C's.
    let text = || trace::plain(arguments);
    _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| match name.starts_with("cublasLt") {
        true => tell_lt(Level::Api, name, text),
        false => tell_blas('I', name, || format!("called: {}", text())),
    }));
}

/// A call fails, for this reason.
#[cold]
pub fn failed(name: &'static str, reason: &dyn core::fmt::Display) {
    if !is_on() {
        return;
    }
    match name.starts_with("cublasLt") {
        true => tell_lt(Level::Error, name, || reason.to_string()),
        false => tell_blas('E', name, || format!("failed: {reason}")),
    }
}

/// Something that cuBLASLt says of a call.
pub fn tell_lt(level: Level, name: &'static str, message: impl FnOnce() -> String) {
    if !is_on() {
        return;
    }
    let Lt { mask, is_disabled, target, callback } = LOGGERS.lock().lt.clone();
    if is_disabled || mask & bit(level as c_int) == 0 {
        return;
    }
    let message = message();
    let target = target.or_stdout(callback.is_some());
    let process = std::process::id();
    target.write(&format!("[{}][cublasLt][{process}][{level:?}][{name}] {message}\n", time()));
    let (Some(callback), Ok(name), Ok(message)) = (callback, CString::new(name), CString::new(message))
    else {
        return;
    };
    // SAFETY: the program's function, as it handed it over; the texts live as long as the call.
    unsafe { callback(level as c_int, name.as_ptr(), message.as_ptr()) };
}

/// A message begins with its kind in a capital, every further line of it with the small letter.
fn tell_blas(kind: char, name: &'static str, message: impl FnOnce() -> String) {
    let Blas { is_on, targets, callback } = LOGGERS.lock().blas.clone();
    if !is_on || (callback.is_none() && targets.is_empty()) {
        return;
    }
    let (process, thread) = (std::process::id(), trace::thread());
    let text = format!(
        "{kind}! cuBLAS (v{CUBLAS_VER_MAJOR}.{CUBLAS_VER_MINOR}) function {name} {}\n\
         {}! Time: {}; Process={process}; Thread={thread}",
        message(),
        kind.to_ascii_lowercase(),
        time()
    );
    targets.iter().for_each(|target| target.write(&format!("{text}\n")));
    if let (Some(callback), Ok(text)) = (callback, CString::new(text)) {
        // SAFETY: as above.
        unsafe { callback(text.as_ptr()) };
    }
}

/// The local time, to the second.
fn time() -> String {
    let mut text = [0u8; 32];
    // SAFETY: the places outlive the calls, and all-zero bytes are a value of `tm`.
    unsafe {
        let (now, mut parts) = (libc::time(core::ptr::null_mut()), core::mem::zeroed());
        libc::localtime_r(&now, &mut parts);
        libc::strftime(text.as_mut_ptr().cast(), text.len(), c"%Y-%m-%d %H:%M:%S".as_ptr(), &parts);
    }
    CStr::from_bytes_until_nul(&text)
        .map_or_else(|_| String::new(), |text| text.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Loggers {
        Loggers::read(|name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn nothing_is_told_unless_it_is_asked_for_and_has_somewhere_to_go() {
        assert!(!read(&[]).is_on());
        assert!(!read(&[("CUBLAS_LOGDEST_DBG", "stdout")]).is_on());
        assert!(!read(&[("CUBLAS_LOGINFO_DBG", "1")]).is_on());
        assert!(read(&[("CUBLAS_LOGINFO_DBG", "1"), ("CUBLAS_LOGDEST_DBG", "stderr")]).is_on());
    }
}
