//! Providers: libraries with the HIP ABI, opened with `dlopen` and kept for the process's life.
//!
//! ROCm's library, `libcudaway_cpu.so` and any other path are treated alike from here on.

use core::ffi::{CStr, c_int, c_void};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use config::DeviceChoice;
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use crate::error::{hipErrorInvalidDevice, hipErrorNoDevice};
use crate::negotiate::Layout;
use crate::table::{Hip, HipError};

/// One library with the HIP ABI and at least one function.
pub struct Provider {
    pub hip: Hip,
    pub layout: Layout,
    /// What was opened, as given to the loader.
    pub path: PathBuf,
    /// `hipRuntimeGetVersion`'s answer, 0 when it had none.
    pub version: c_int,
    /// Devices, as `hipGetDeviceCount` counted them once.
    pub n_devices: c_int,
    /// What the provider said when it has no device.
    pub refusal: Option<HipError>,
    // Closing it would leave the table's pointers dangling in other threads, so it stays open.
    _library: Option<Library>,
}

/// Why a library gave no provider.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("cannot open {path}: {reason}", path = path.display())]
    Load { path: PathBuf, reason: String },
    #[error("{path} exports no hipInit, so it is no HIP library", path = path.display())]
    NotHip { path: PathBuf },
    #[error("cannot find the directory of this library to look for libcudaway_cpu.so")]
    NoHome,
}

impl Provider {
    /// As [`Provider::open`], of a library that a variable names or a folder that it lies in, if that may be opened.
    pub fn open_named(path: &OsStr) -> Result<Provider, OpenError> {
        config::named::library(Path::new(path))
            .map_err(|reason| OpenError::Load { path: PathBuf::from(path), reason })?;
        Provider::open(path)
    }

    /// Opens one library and asks it for its devices.
    pub fn open(path: &OsStr) -> Result<Provider, OpenError> {
        let shown = PathBuf::from(path);
        // SAFETY: the library's constructors run, as for any library the user's configuration names.
        let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }
            .map_err(|error| OpenError::Load { path: shown.clone(), reason: error_text(&error) })?;
        // SAFETY: names with the prefix `hip` have HIP's signatures; `library` is never closed.
        let hip = unsafe {
            Hip::from_lookup(|name| {
                library
                    .get::<*mut c_void>(name.to_bytes_with_nul())
                    .map_or(core::ptr::null_mut(), |symbol| symbol.into_raw())
            })
        };
        if !hip.has("hipInit") {
            return Err(OpenError::NotHip { path: shown });
        }
        Ok(Provider::with_table(hip, shown, Some(library)))
    }

    /// A provider from a table made elsewhere: in-process providers of tests and benches.
    #[must_use]
    pub fn from_table(hip: Hip, name: &str) -> Provider {
        Provider::with_table(hip, PathBuf::from(name), None)
    }

    fn with_table(hip: Hip, path: PathBuf, library: Option<Library>) -> Provider {
        let mut version = 0;
        // SAFETY: `version` is a writable int.
        if let Err(error) = unsafe { hip.hipRuntimeGetVersion(&mut version) } {
            tracing::debug!(target: "cudaway::hip", "{}: {error}", path.display());
        }
        let (n_devices, refusal) = count_devices(&hip);
        Provider { layout: Layout::of(&hip), hip, path, version, n_devices, refusal, _library: library }
    }

    /// Whether both were opened from one library, so that either's streams and events are known to the other.
    #[must_use]
    pub fn is_of_one_library(&self, other: &Provider) -> bool {
        core::ptr::eq(self, other) || self.hip.is_same(&other.hip)
    }
}

/// HIP differs: without a device, `hipInit` says 100 or 101 depending on the version, and the count says 100.
fn count_devices(hip: &Hip) -> (c_int, Option<HipError>) {
    // SAFETY: plain calls; `count` is a writable int.
    let init = unsafe { hip.hipInit(0) };
    if let Err(error) = init
        && error.code() != hipErrorNoDevice
        && error.code() != hipErrorInvalidDevice
    {
        return (0, Some(error));
    }
    let mut count = 0;
    // SAFETY: as above.
    match unsafe { hip.hipGetDeviceCount(&mut count) } {
        Ok(()) if count > 0 => (count, None),
        Ok(()) => (0, init.err()),
        Err(error) => (0, Some(error)),
    }
}

fn error_text(error: &libloading::Error) -> String {
    use std::error::Error;
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}

/// The names under which ROCm's library is looked for, newest first.
const ROCM_NAMES: [&str; 4] = ["libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"];

/// Every place where ROCm's library may be, in order: the configured root, the usual variables, `/opt/rocm`, then
/// the loader's own search.
fn rocm_candidates(root: Option<&Path>, var: impl Fn(&str) -> Option<OsString>) -> Vec<OsString> {
    let roots = config::rocm_roots(root, var);
    let mut candidates = Vec::new();
    for root in &roots {
        for folder in config::ROCM_LIBRARY_FOLDERS {
            for name in ROCM_NAMES {
                let path = root.join(folder).join(name);
                if path.exists() {
                    candidates.push(path.into_os_string());
                }
            }
        }
    }
    if root.is_none() {
        candidates.extend(ROCM_NAMES.iter().map(OsString::from));
    }
    candidates
}

/// Opens ROCm; the error names every library tried.
pub fn open_rocm(root: Option<&Path>) -> Result<Provider, Vec<OpenError>> {
    let mut errors = Vec::new();
    for candidate in rocm_candidates(root, config::var) {
        match Provider::open_named(&candidate) {
            Ok(provider) => return Ok(provider),
            Err(error) => errors.push(error),
        }
    }
    if errors.is_empty() {
        let path = root.unwrap_or(Path::new("/opt/rocm")).to_path_buf();
        errors.push(OpenError::Load { path, reason: "no libamdhip64.so in it".to_owned() });
    }
    Err(errors)
}

/// Opens `libcudaway_cpu.so`, which lies beside the library this code is linked into.
pub fn open_cpu() -> Result<Provider, OpenError> {
    let home = own_path().ok_or(OpenError::NoHome)?;
    let beside = |library: &Path| library.with_file_name("libcudaway_cpu.so");
    let first = beside(&home);
    let path = if first.exists() {
        first
    } else {
        // Loaded through a symbolic link in a folder that has only the link.
        home.canonicalize().map_or(first, |real| beside(&real))
    };
    Provider::open(path.as_os_str())
}

/// The file this code was loaded from.
fn own_path() -> Option<PathBuf> {
    let here = own_path as fn() -> Option<PathBuf> as *const c_void;
    let mut path = [0; loader::place::PATH_BYTES];
    loader::place::join(here, loader::place::file_name(here)?, &mut path)?;
    // SAFETY: `join` ends it with a zero.
    let path = unsafe { CStr::from_ptr(path.as_ptr()) };
    Some(PathBuf::from(OsStr::from_bytes(path.to_bytes())))
}

/// The providers that `choices` name, in order. Every library looked at and its answer go to the log.
#[must_use]
pub fn select(choices: &[DeviceChoice], rocm_root: Option<&Path>) -> Vec<Provider> {
    let mut providers = Vec::new();
    for choice in choices {
        match choice {
            DeviceChoice::Hip => providers.extend(rocm(rocm_root)),
            DeviceChoice::Cpu => providers.extend(cpu()),
            DeviceChoice::Path(path) => match Provider::open_named(path.as_os_str()) {
                Ok(provider) => {
                    announce(&provider);
                    providers.push(provider);
                }
                Err(error) => tracing::error!(target: "cudaway::hip", "{error}"),
            },
            DeviceChoice::Auto => match rocm(rocm_root) {
                Some(provider) if provider.n_devices > 0 => providers.push(provider),
                _ => {
                    tracing::info!(target: "cudaway::hip", "no ROCm device, so CUDA runs on the CPU");
                    providers.extend(cpu());
                }
            },
        }
    }
    providers
}

fn rocm(root: Option<&Path>) -> Option<Provider> {
    match open_rocm(root) {
        Ok(provider) => {
            announce(&provider);
            Some(provider)
        }
        Err(errors) => {
            for error in errors {
                tracing::info!(target: "cudaway::hip", "{error}");
            }
            None
        }
    }
}

fn cpu() -> Option<Provider> {
    match open_cpu() {
        Ok(provider) => {
            announce(&provider);
            Some(provider)
        }
        Err(error) => {
            tracing::error!(target: "cudaway::hip", "{error}");
            None
        }
    }
}

fn announce(provider: &Provider) {
    let Provider { path, version, n_devices, hip, refusal, .. } = provider;
    let n_functions = hip.n_present();
    match refusal {
        None => tracing::info!(
            target: "cudaway::hip",
            "opened {} (HIP {version}, {n_functions} functions): {n_devices} device(s)", path.display()
        ),
        Some(answer) => tracing::warn!(
            target: "cudaway::hip",
            "opened {} (HIP {version}, {n_functions} functions): no device, {answer}", path.display()
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configured_root_is_the_only_place_looked_at() {
        let folder = std::env::temp_dir().join(format!("hip-sys-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("lib")).unwrap();
        std::fs::write(folder.join("lib/libamdhip64.so.6"), b"").unwrap();
        let found = rocm_candidates(Some(&folder), |_| Some("/elsewhere".into()));
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(found, [folder.join("lib/libamdhip64.so.6").into_os_string()]);
    }

    #[test]
    fn without_a_root_the_loader_is_asked_for_every_major_newest_first() {
        let found = rocm_candidates(None, |_| None);
        let tail: Vec<_> = found.iter().rev().take(4).rev().collect();
        assert_eq!(tail, ["libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"]);
    }

    #[test]
    fn a_library_that_is_not_hip_is_named() {
        let error = Provider::open(OsStr::new("libc.so.6")).err().unwrap();
        assert_eq!(error.to_string(), "libc.so.6 exports no hipInit, so it is no HIP library");
    }

    #[test]
    fn a_library_that_is_not_there_is_named_with_the_loaders_reason() {
        let error = Provider::open(OsStr::new("/nowhere/libhip.so")).err().unwrap();
        assert!(error.to_string().starts_with("cannot open /nowhere/libhip.so: "), "{error}");
    }
}
