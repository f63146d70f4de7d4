//! libhipblas.so: where it is looked for, and which of its functions are there.

use core::ffi::{CStr, c_void};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use config::BlasChoice;
use libloading::os::unix::{Library as Object, RTLD_LOCAL, RTLD_NOW};

use super::calls;
use crate::{Error, Result};

/// The names under which ROCm has it, newest first.
const NAMES: [&str; 5] =
    ["libhipblas.so", "libhipblas.so.3", "libhipblas.so.2", "libhipblas.so.1", "libhipblas.so.0"];

/// What the signatures of hipBLAS depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Release {
    /// ROCm 5: data types are hipBLAS's own, `trmm` works in place.
    Rocm5,
    /// ROCm 6: functions with HIP's data types stand beside the old ones, under names with `_v2`.
    Rocm6,
    /// ROCm 7: the old ones are gone, and the new ones have the plain names.
    Rocm7,
}

/// A function of hipBLAS.
pub struct Entry {
    pub index: usize,
    pub name: &'static CStr,
}

impl Entry {
    pub fn text(&self) -> &'static str {
        self.name.to_str().unwrap_or_default()
    }
}

pub struct Library {
    object: Object,
    pub path: PathBuf,
    pub release: Release,
    /// NULL: not looked for yet.
    entries: [AtomicPtr<c_void>; calls::N_ENTRIES],
}

/// Stands for a function that the library lacks.
const ABSENT: *mut c_void = core::ptr::without_provenance_mut(1);

impl Library {
    /// The process's, opened with the first handle.
    pub fn get() -> Result<&'static Library> {
        static LIBRARY: OnceLock<Option<Library>> = OnceLock::new();
        LIBRARY
            .get_or_init(|| first(&NAMES, Library::open))
            .as_ref()
            .ok_or(Error::NoDevice("libhipblas.so is not found: cuBLAS on an AMD GPU is ROCm's hipBLAS"))
    }

    /// # Errors
    /// Why it is none, in words.
    pub fn open(path: &OsStr) -> core::result::Result<Library, String> {
        // SAFETY: the constructors of a library that the user's configuration or ROCm's folders name.
        let object = unsafe { Object::open(Some(path), RTLD_NOW | RTLD_LOCAL) }
            .map_err(|error| format!("{}: {error}", path.display()))?;
        let has = |name: &CStr| address(&object, name).is_some();
        if !has(c"hipblasCreate") {
            return Err(format!("{} exports no hipblasCreate", path.display()));
        }
        // ROCm 6.0 has the functions with `_v2`, which ROCm 7 has no more; `_64` came with 6.1.
        let release = match (has(c"hipblasGemmEx_v2"), has(c"hipblasSgemm_64")) {
            (true, _) => Release::Rocm6,
            (false, true) => Release::Rocm7,
            (false, false) => Release::Rocm5,
        };
        tracing::info!(target: "cudaway::blas", "{} has hipBLAS as {release:?}", path.display());
        let entries = [const { AtomicPtr::new(core::ptr::null_mut()) }; calls::N_ENTRIES];
        Ok(Library { object, path: PathBuf::from(path), release, entries })
    }

    /// The function's address, if the library has it.
    pub fn find(&self, entry: &Entry) -> Option<*mut c_void> {
        let slot = &self.entries[entry.index];
        let mut found = slot.load(Ordering::Relaxed);
        if found.is_null() {
            found = self.find_other(entry.name).unwrap_or(ABSENT);
            slot.store(found, Ordering::Relaxed);
        }
        (found != ABSENT).then_some(found)
    }

    /// As [`Self::find`], of a function that no routine uses.
    pub fn find_other(&self, name: &CStr) -> Option<*mut c_void> {
        address(&self.object, name)
    }
}

fn address(object: &Object, name: &CStr) -> Option<*mut c_void> {
    // SAFETY: only the address is taken; `Library` is never closed while it is used.
    let symbol = unsafe { object.get::<*mut c_void>(name.to_bytes_with_nul()) }.ok()?;
    Some(symbol.into_raw()).filter(|address| !address.is_null())
}

/// The first library of ROCm's that can be opened: a path of `CUDAWAY_BLAS`, or one of these names where ROCm is.
pub fn first<T>(names: &[&str], open: impl Fn(&OsStr) -> core::result::Result<T, String>) -> Option<T> {
    let config = config::get();
    let paths = config.blas.iter().filter_map(|choice| match choice {
        BlasChoice::Path(path) => Some(path.as_os_str().to_owned()),
        _ => None,
    });
    let rocm = candidates(names, config.rocm_root.as_deref(), config::var);
    let found = paths.chain(rocm).find_map(|path| {
        let library = open(&path);
        if let Err(reason) = &library {
            tracing::debug!(target: "cudaway::blas", "{reason}");
        }
        library.ok()
    });
    if found.is_none() {
        tracing::warn!(
            target: "cudaway::blas",
            "{} is not found, which does cuBLAS's work on AMD GPUs: install ROCm's, or name it in CUDAWAY_BLAS",
            names[0]
        );
    }
    found
}

/// Every place where one of ROCm's libraries may be, in order: as HIP itself is looked for.
pub fn candidates(
    names: &[&str],
    root: Option<&Path>,
    var: impl Fn(&str) -> Option<OsString>,
) -> Vec<OsString> {
    let folders = config::rocm_roots(root, var)
        .into_iter()
        .flat_map(|root| config::ROCM_LIBRARY_FOLDERS.map(|folder| root.join(folder)));
    let files = folders.flat_map(|folder| names.iter().map(move |name| folder.join(name)));
    let mut candidates: Vec<OsString> =
        files.filter(|path| path.exists()).map(PathBuf::into_os_string).collect();
    if root.is_none() {
        candidates.extend(names.iter().map(OsString::from));
    }
    candidates
}
