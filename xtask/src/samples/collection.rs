//! The collections of samples, and where each comes from. They are NVIDIA's and never part of this tree.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::setup;

/// A repository of samples, and what is kept of it.
pub struct Collection {
    repository: &'static str,
    pub pin: &'static str,
    /// A folder that it has at least.
    folder: &'static str,
    /// A checkout of it may be named by this variable.
    variable: &'static str,
    /// Below the download cache and below `target`.
    pub name: &'static str,
    /// How each sample ended; only a run writes there.
    pub results: &'static str,
    /// Limits and reasons, which people write.
    pub notes: &'static str,
    pub page: &'static str,
    /// `CUDAWAY_DEVICE`
    pub devices: &'static str,
}

pub const CUDA_SAMPLES: Collection = Collection {
    repository: "https://github.com/NVIDIA/cuda-samples",
    // CUDA 13.0's samples and a month of corrections: the master branch on 5 September 2025.
    pin: "c94ff366aed18c797b8a85dfaac7817b0228b420",
    folder: "Samples",
    variable: "SAMPLES",
    name: "samples",
    results: "tools/data/samples.json",
    notes: "tools/data/samples-notes.json",
    page: "docs/samples.md",
    devices: "auto",
};

pub const LIBRARY_SAMPLES: Collection = Collection {
    repository: "https://github.com/NVIDIA/CUDALibrarySamples",
    // The main branch on 18 August 2026.
    pin: "34377293fb148e90aad16fd762fa2445f941be55",
    folder: "cuFFT",
    variable: "LIBRARY_SAMPLES",
    name: "library-samples",
    results: "tools/data/library-samples.json",
    notes: "tools/data/library-samples-notes.json",
    page: "docs/library-samples.md",
    // Some divide their work among two.
    devices: "cpu,cpu",
};

impl Collection {
    /// A checkout at the pin: the one given, or a clone of our own.
    pub fn find(&self, given: Option<&Path>) -> Result<PathBuf> {
        let given = given.map(Path::to_owned).or_else(|| std::env::var_os(self.variable).map(PathBuf::from));
        let dir = match given {
            Some(dir) => std::fs::canonicalize(&dir).with_context(|| dir.display().to_string())?,
            None => self.cloned()?,
        };
        ensure!(dir.join(self.folder).is_dir(), "{} is no checkout of {}", dir.display(), self.repository);
        let commit = setup::said(Command::new("git").arg("-C").arg(&dir).args(["rev-parse", "HEAD"]))
            .context("which commit the samples are of")?;
        let pin = self.pin;
        ensure!(commit == pin, "{} is at {commit}; the results are those of {pin}", dir.display());
        Ok(dir)
    }

    fn cloned(&self) -> Result<PathBuf> {
        let Collection { repository, pin, variable, .. } = *self;
        let cache = setup::download_cache()?;
        let _lock = setup::alone_in(&cache)?;
        let dir = cache.join(repository.rsplit('/').next().context("a repository has a name")?);
        if dir.join(self.folder).is_dir() {
            return Ok(dir);
        }
        ensure!(!setup::offline(), "--offline, and {} is not there; or say --from DIR", dir.display());
        println!("setup: {repository} at {pin}, to {}", dir.display());
        setup::checkout(repository, pin, &dir)
            .with_context(|| format!("give a checkout by --from DIR or {variable}=DIR"))?;
        Ok(dir)
    }
}
