//! Runs real programs against the objects that `cargo xtask build` laid out, as a user would, and reads what they did; and libraries in C
//! that stand for ROCm's in tests ([`recorder`]).

pub mod known;
pub mod recorder;
mod run;
pub mod skip;
pub mod target;

use std::path::{Path, PathBuf};

pub use run::{Ended, Run};
pub use tempfile::TempDir;

/// An empty folder that goes away with the value: a cache or a log of one test's own.
pub fn temporary() -> std::io::Result<TempDir> {
    tempfile::Builder::new().prefix("cudaway-test-").tempdir()
}

/// A directory with our shared objects.
#[derive(Clone, Debug)]
pub struct Installed {
    lib: PathBuf,
}

impl Installed {
    pub fn at(lib: impl Into<PathBuf>) -> Installed {
        Installed { lib: lib.into() }
    }

    pub fn lib(&self) -> &Path {
        &self.lib
    }

    /// `program` started as docs/LD_PRELOAD.md says by hand, whatever runtime it was built with, and with nothing of this process's
    /// `CUDAWAY_*`.
    pub fn preloaded(&self, program: impl AsRef<Path>) -> Run {
        let preload = format!("{0}/libcuda.so.1:{0}/libcudart.so.13", self.lib.display());
        self.found(program).env("LD_PRELOAD", preload)
    }

    /// `program` that finds our libraries by itself: through `NEEDED` or `dlopen`.
    pub fn found(&self, program: impl AsRef<Path>) -> Run {
        Run::new(program).env("LD_LIBRARY_PATH", self.lib.as_os_str())
    }
}
