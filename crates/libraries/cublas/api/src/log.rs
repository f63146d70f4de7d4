//! The loggers of cuBLAS and cuBLASLt: a line for each call, and for each that failed, where the program or its user asked for
//! them. Source: cuBLAS manual, "cublasLoggerConfigure" and "cuBLASLt Logging".
//!
//! The rule: off, a call costs one relaxed load; no lock is held while a callback of the program's runs.

use core::ffi::{CStr, c_int};
use std::ffi::CString;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use parking_lot::Mutex;
use trace::{Arguments, Switch};

use crate::{CUBLAS_VER_MAJOR, CUBLAS_VER_MINOR, FILE, cublasLogCallback, cublasLtLoggerCallback_t};

/// A kind of message of cuBLASLt: its level, which is the number of its bit in a mask from 1 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    Error = 1,
    Trace = 2,
    Hint = 3,
    Info = 4,
    Api = 5,
}

pub const LAST_LEVEL: c_int = Level::Api as c_int;

impl Level {
    const fn bit(self) -> c_int {
        1 << (self as c_int - 1)
    }
}

/// The mask of a level and all before it.
pub const fn up_to(level: c_int) -> c_int {
    (1 << level) - 1
}

/// Where lines go, besides a callback.
#[derive(Clone, Default)]
pub enum Target {
    #[default]
    Nowhere,
    Stdout,
    Stderr,
    File(Arc<File>),
    /// The program's own.
    Stream(*mut FILE),
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
            Target::Nowhere => {}
            // SAFETY: C's own streams.
            Target::Stdout => to_stream(unsafe { stdout }, line),
            // SAFETY: as above.
            Target::Stderr => to_stream(unsafe { stderr }, line),
            Target::File(file) => _ = file.as_ref().write_all(line.as_bytes()),
            Target::Stream(file) => to_stream(*file, line),
        }
    }
}

unsafe extern "C" {
    static stdout: *mut FILE;
    static stderr: *mut FILE;
}

/// Through C's buffer, so that lines stand between what the program prints.
fn to_stream(stream: *mut FILE, line: &str) {
    // SAFETY: the bytes are there, and the stream is C's or open by the program's promise.
    unsafe {
        libc::fwrite(line.as_ptr().cast(), 1, line.len(), stream.cast());
        libc::fflush(stream.cast());
    }
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
        let number = |name: &str| var(name).and_then(|value| value.trim().parse::<c_int>().ok());
        let of_level =
            number("CUBLASLT_LOG_LEVEL").filter(|level| (0..=LAST_LEVEL).contains(level)).map(up_to);
        made.lt.mask = number("CUBLASLT_LOG_MASK").or(of_level).unwrap_or(0);
        if made.lt.mask != 0
            && let Some(path) = var("CUBLASLT_LOG_FILE")
        {
            let path = path.replace("%i", &std::process::id().to_string());
            made.lt.target = Target::file(Path::new(&path)).unwrap_or_default();
        }
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
    if is_disabled || mask & level.bit() == 0 {
        return;
    }
    let message = message();
    let target = match (target, callback) {
        (Target::Nowhere, None) => Target::Stdout,
        (target, _) => target,
    };
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
    fn a_level_has_those_before_it_and_a_mask_goes_first() {
        assert_eq!(read(&[("CUBLASLT_LOG_LEVEL", "5")]).lt.mask, 31);
        assert_eq!(read(&[("CUBLASLT_LOG_LEVEL", "2")]).lt.mask, 3);
        assert_eq!(read(&[("CUBLASLT_LOG_LEVEL", "6")]).lt.mask, 0);
        assert_eq!(read(&[("CUBLASLT_LOG_LEVEL", "5"), ("CUBLASLT_LOG_MASK", "5")]).lt.mask, 5);
        assert_eq!([Level::Error, Level::Hint, Level::Api].map(Level::bit), [1, 4, 16]);
    }

    #[test]
    fn nothing_is_told_unless_it_is_asked_for_and_has_somewhere_to_go() {
        assert!(!read(&[]).is_on());
        assert!(!read(&[("CUBLAS_LOGDEST_DBG", "stdout")]).is_on());
        assert!(!read(&[("CUBLAS_LOGINFO_DBG", "1")]).is_on());
        assert!(read(&[("CUBLAS_LOGINFO_DBG", "1"), ("CUBLAS_LOGDEST_DBG", "stderr")]).is_on());
    }
}
