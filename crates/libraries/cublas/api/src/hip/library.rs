//! libhipblas.so: which release it is, and which of its functions are there.

use core::ffi::{CStr, c_void};
use std::ffi::OsStr;
use std::path::Path;
use std::sync::OnceLock;

pub use kit::hip::Entry;

use kit::hip::{Object, Wanted};

use super::calls;
use crate::{Error, Result};

const HIPBLAS: Wanted = Wanted {
    names: &["libhipblas.so", "libhipblas.so.3", "libhipblas.so.2", "libhipblas.so.1", "libhipblas.so.0"],
    stands_for: "cuBLAS",
    variable: "CUDAWAY_BLAS",
};

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

pub struct Library {
    object: Object<{ calls::N_ENTRIES }>,
    pub release: Release,
}

impl Library {
    /// The process's, opened with the first handle.
    pub fn get() -> Result<&'static Library> {
        static LIBRARY: OnceLock<Option<Library>> = OnceLock::new();
        LIBRARY
            .get_or_init(|| HIPBLAS.first(&config::get().blas, Library::open))
            .as_ref()
            .ok_or(Error::NoDevice("libhipblas.so is not found: cuBLAS on an AMD GPU is ROCm's hipBLAS"))
    }

    /// # Errors
    /// Why it is none, in words.
    pub fn open(path: &OsStr) -> core::result::Result<Library, String> {
        let object = Object::open(path)?;
        if !object.has(c"hipblasCreate") {
            return Err(format!("{} exports no hipblasCreate", path.display()));
        }
        // ROCm 6.0 has the functions with `_v2`, which ROCm 7 has no more; `_64` came with 6.1.
        let release = match (object.has(c"hipblasGemmEx_v2"), object.has(c"hipblasSgemm_64")) {
            (true, _) => Release::Rocm6,
            (false, true) => Release::Rocm7,
            (false, false) => Release::Rocm5,
        };
        tracing::info!(target: "cudaway::blas", "{} has hipBLAS as {release:?}", path.display());
        Ok(Library { object, release })
    }

    pub fn path(&self) -> &Path {
        &self.object.path
    }

    /// The function's address, if the library has it.
    pub fn find(&self, entry: &Entry) -> Option<*mut c_void> {
        self.object.find(entry)
    }

    /// As [`Self::find`], of a function that no routine uses.
    pub fn find_other(&self, name: &CStr) -> Option<*mut c_void> {
        self.object.find_other(name)
    }
}
