//! NVIDIA's own host generators, which need no driver: `libcurand.so.10` of the wheel that `cargo xtask` installs beside
//! nvcc's.

use std::ffi::{c_int, c_void};
use std::path::{Path, PathBuf};
use std::ptr;

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW, Symbol};

pub struct Nvidia {
    library: Library,
    /// Kept open: cuRAND was linked to it.
    _runtime: Library,
}

type Handle = *mut c_void;

impl Nvidia {
    /// The library, or what is missing.
    pub fn open() -> Result<Nvidia, String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(4).ok_or("no workspace")?;
        let runtime =
            find(&root.join(".venv/lib"), "libcudart.so.13").ok_or("nvidia-cuda-runtime's wheel in .venv")?;
        let curand =
            find(&root.join(".venv/lib"), "libcurand.so.10").ok_or("nvidia-curand's wheel in .venv")?;
        let open = |path: &Path| {
            // SAFETY: NVIDIA's libraries have no initialisation that asks anything of us.
            unsafe { Library::open(Some(path), RTLD_NOW | RTLD_GLOBAL) }.map_err(|error| error.to_string())
        };
        Ok(Nvidia { _runtime: open(&runtime)?, library: open(&curand)? })
    }

    fn function<F: Copy>(&self, name: &str) -> F {
        // SAFETY: each caller names the type that curand.h has for this function.
        let symbol: Symbol<F> = unsafe { self.library.get(name.as_bytes()) }.unwrap();
        *symbol
    }

    pub fn generator(&self, kind: c_int) -> Host<'_> {
        let create: unsafe extern "C" fn(*mut Handle, c_int) -> c_int =
            self.function("curandCreateGeneratorHost");
        let mut handle = ptr::null_mut();
        // SAFETY: the handle is ours to write.
        assert_eq!(unsafe { create(&mut handle, kind) }, 0);
        Host { nvidia: self, handle }
    }

    /// A table of direction vectors.
    pub fn directions<T: Copy>(&self, function: &str, set: c_int, words: usize) -> Vec<T> {
        let get: unsafe extern "C" fn(*mut *const T, c_int) -> c_int = self.function(function);
        let mut table = ptr::null();
        // SAFETY: the table has as many words as curand.h says, and lives as long as the library.
        unsafe {
            assert_eq!(get(&mut table, set), 0);
            std::slice::from_raw_parts(table, words).to_vec()
        }
    }
}

/// A file of this name below a folder.
fn find(folder: &Path, name: &str) -> Option<PathBuf> {
    std::fs::read_dir(folder).ok()?.flatten().find_map(|entry| {
        let path = entry.path();
        if entry.file_name() == name {
            Some(path)
        } else {
            path.is_dir().then(|| find(&path, name)).flatten()
        }
    })
}

/// One of NVIDIA's generators; every call answers its status.
pub struct Host<'a> {
    nvidia: &'a Nvidia,
    handle: Handle,
}

impl Host<'_> {
    pub fn call(&self, name: &str) -> c_int {
        let function: unsafe extern "C" fn(Handle) -> c_int = self.nvidia.function(name);
        // SAFETY: the handle is live.
        unsafe { function(self.handle) }
    }

    pub fn set<A: Copy>(&self, name: &str, argument: A) -> c_int {
        let function: unsafe extern "C" fn(Handle, A) -> c_int = self.nvidia.function(name);
        // SAFETY: the handle is live, and the caller knows the argument's type.
        unsafe { function(self.handle, argument) }
    }

    pub fn fill<T>(&self, name: &str, out: &mut [T]) -> c_int {
        let function: unsafe extern "C" fn(Handle, *mut T, usize) -> c_int = self.nvidia.function(name);
        // SAFETY: the slice is as long as we say.
        unsafe { function(self.handle, out.as_mut_ptr(), out.len()) }
    }

    pub fn fill_with<T, A: Copy>(&self, name: &str, out: &mut [T], argument: A) -> c_int {
        let function: unsafe extern "C" fn(Handle, *mut T, usize, A) -> c_int = self.nvidia.function(name);
        // SAFETY: as for `fill`.
        unsafe { function(self.handle, out.as_mut_ptr(), out.len(), argument) }
    }

    pub fn fill_normal<T>(&self, name: &str, out: &mut [T], mean: T, stddev: T) -> c_int {
        let function: unsafe extern "C" fn(Handle, *mut T, usize, T, T) -> c_int = self.nvidia.function(name);
        // SAFETY: as for `fill`.
        unsafe { function(self.handle, out.as_mut_ptr(), out.len(), mean, stddev) }
    }
}

impl Drop for Host<'_> {
    fn drop(&mut self) {
        self.call("curandDestroyGenerator");
    }
}
