//! libhipsparse.so, and which of its functions are there.

use core::ffi::c_void;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::OnceLock;

use config::LibraryChoice;
use kit::hip::{Object, Wanted};

use super::calls::{self, NAMES};

/// ROCm 5 has `.so.0`, 6 `.so.1`, 7 `.so.4`.
pub const HIPSPARSE: Wanted = Wanted {
    names: &["libhipsparse.so", "libhipsparse.so.4", "libhipsparse.so.1", "libhipsparse.so.0"],
    stands_for: "cuSPARSE",
    variable: "CUDAWAY_SPARSE",
};

/// Which numbers its enumerations have, and what its functions mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
    /// ROCm 5.
    First,
    /// ROCm 6 and later: the numbers are cuSPARSE's.
    Second,
}

pub struct Library {
    /// Open as long as its functions are called.
    _object: Object<0>,
    pub path: PathBuf,
    pub generation: Generation,
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
            let choices = &config::get().sparse;
            if choices.contains(&LibraryChoice::Own) { None } else { HIPSPARSE.first(choices, Library::open) }
        });
        found.as_ref()
    }

    /// # Errors
    /// Why it is none, in words.
    pub fn open(path: &OsStr) -> core::result::Result<Library, String> {
        let object = Object::<0>::open(path)?;
        let functions = NAMES.map(|name| object.find_other(name));
        if functions[calls::hipsparseCreate].is_none() {
            return Err(format!("{} exports no hipsparseCreate", path.display()));
        }
        // Descriptors of what is only read came with the numbers of cuSPARSE 12.
        let is_second = functions[calls::hipsparseCreateConstCsr].is_some();
        let generation = if is_second { Generation::Second } else { Generation::First };
        let lacks: Vec<_> = NAMES
            .iter()
            .zip(&functions)
            .filter(|(_, function)| function.is_none())
            .map(|(name, _)| name.to_string_lossy())
            .collect();
        tracing::info!(target: "cudaway::sparse", "{} computes on AMD GPUs", path.display());
        if !lacks.is_empty() {
            tracing::info!(target: "cudaway::sparse", "this release of hipSPARSE lacks {}", lacks.join(", "));
        }
        Ok(Library { path: object.path.clone(), _object: object, generation, functions })
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
