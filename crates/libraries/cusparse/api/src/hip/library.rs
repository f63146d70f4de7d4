//! libhipsparse.so, and which of its functions are there.

use core::ffi::c_void;
use std::ffi::OsStr;
use std::sync::OnceLock;

use kit::hip::{Listed, Wanted};

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
    listed: Listed<{ NAMES.len() }>,
    pub generation: Generation,
}

impl Library {
    /// The process's, opened at the first call on an AMD GPU; none where it is not there, or where our own code is asked for.
    pub fn get() -> Option<&'static Library> {
        static LIBRARY: OnceLock<Option<Library>> = OnceLock::new();
        LIBRARY.get_or_init(|| HIPSPARSE.unless_own(&config::get().sparse, Library::open)).as_ref()
    }

    /// # Errors
    /// Why it is none, in words.
    pub fn open(path: &OsStr) -> core::result::Result<Library, String> {
        let listed = Listed::open(path, &NAMES, calls::hipsparseCreate)?;
        // Descriptors of what is only read came with the numbers of cuSPARSE 12.
        let is_second = listed.find(calls::hipsparseCreateConstCsr).is_some();
        let generation = if is_second { Generation::Second } else { Generation::First };
        kit::hip_opened!("cudaway::sparse", "hipSPARSE", path, listed.lacks(&NAMES));
        Ok(Library { listed, generation })
    }

    /// The address of the function with this place in [`NAMES`], if the library has it.
    pub fn find(&self, function: usize) -> Option<*mut c_void> {
        self.listed.find(function)
    }
}
