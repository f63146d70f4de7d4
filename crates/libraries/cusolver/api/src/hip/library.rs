//! libhipsolver.so, and which of its functions are there.

use core::ffi::c_void;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::OnceLock;

use config::LibraryChoice;
use kit::hip::{Object, Wanted};

use super::calls::{self, NAMES};

/// ROCm 7 has `.so.1`.
pub const HIPSOLVER: Wanted = Wanted {
    names: &["libhipsolver.so", "libhipsolver.so.1", "libhipsolver.so.0"],
    stands_for: "cuSOLVER",
    variable: "CUDAWAY_SOLVER",
};

pub struct Library {
    /// Open as long as its functions are called.
    _object: Object<0>,
    pub path: PathBuf,
    functions: [Option<*mut c_void>; NAMES.len()],
}

// SAFETY: addresses of functions.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

impl Library {
    /// The process's, opened at the first call on an AMD GPU; none where it is not there, or where our own code is asked for.
    pub fn get() -> Option<&'static Library> {
        static LIBRARY: OnceLock<Option<Library>> = OnceLock::new();
        let found = LIBRARY.get_or_init(|| {
            let choices = &config::get().solver;
            if choices.contains(&LibraryChoice::Own) { None } else { HIPSOLVER.first(choices, Library::open) }
        });
        found.as_ref()
    }

    /// # Errors
    /// Why it is none, in words.
    pub fn open(path: &OsStr) -> core::result::Result<Library, String> {
        let object = Object::<0>::open(path)?;
        let functions = NAMES.map(|name| object.find_other(name));
        if functions[calls::hipsolverDnCreate].is_none() {
            return Err(format!("{} exports no hipsolverDnCreate", path.display()));
        }
        let lacks: Vec<_> = NAMES
            .iter()
            .zip(&functions)
            .filter(|(_, function)| function.is_none())
            .map(|(name, _)| name.to_string_lossy())
            .collect();
        tracing::info!(target: "cudaway::solver", "{} computes on AMD GPUs", path.display());
        if !lacks.is_empty() {
            tracing::info!(target: "cudaway::solver", "this release of hipSOLVER lacks {}", lacks.join(", "));
        }
        Ok(Library { path: object.path.clone(), _object: object, functions })
    }

    /// The address of the function with this place in [`NAMES`], if the library has it.
    pub fn find(&self, function: usize) -> Option<*mut c_void> {
        self.functions.get(function).copied().flatten()
    }

    #[cfg(test)]
    pub fn find_other(&self, name: &core::ffi::CStr) -> Option<*mut c_void> {
        self._object.find_other(name)
    }
}
