//! libhipsolver.so, and which of its functions are there.

use core::ffi::c_void;
use std::ffi::OsStr;
use std::sync::OnceLock;

use kit::hip::{Listed, Wanted};

use super::calls::{self, NAMES};

/// ROCm 7 has `.so.1`.
pub const HIPSOLVER: Wanted = Wanted {
    names: &["libhipsolver.so", "libhipsolver.so.1", "libhipsolver.so.0"],
    stands_for: "cuSOLVER",
    variable: "CUDAWAY_SOLVER",
};

pub struct Library(Listed<{ NAMES.len() }>);

impl Library {
    /// The process's, opened at the first call on an AMD GPU; none where it is not there, or where our own code is asked for.
    pub fn get() -> Option<&'static Library> {
        static LIBRARY: OnceLock<Option<Library>> = OnceLock::new();
        LIBRARY.get_or_init(|| HIPSOLVER.unless_own(&config::get().solver, Library::open)).as_ref()
    }

    /// # Errors
    /// Why it is none, in words.
    pub fn open(path: &OsStr) -> core::result::Result<Library, String> {
        let listed = Listed::open(path, &NAMES, calls::hipsolverDnCreate)?;
        kit::hip_opened!("cudaway::solver", "hipSOLVER", path, listed.lacks(&NAMES));
        Ok(Library(listed))
    }

    /// The address of the function with this place in [`NAMES`], if the library has it.
    pub fn find(&self, function: usize) -> Option<*mut c_void> {
        self.0.find(function)
    }
}
