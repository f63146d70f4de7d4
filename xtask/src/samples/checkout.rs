//! Where the samples come from. They are NVIDIA's and never part of this tree.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::setup;

const REPOSITORY: &str = "https://github.com/NVIDIA/cuda-samples";
/// CUDA 13.0's samples and a month of corrections: the master branch on 5 September 2025.
pub const PIN: &str = "c94ff366aed18c797b8a85dfaac7817b0228b420";

/// A checkout at the pin: the one given, or a clone of our own.
pub fn find(given: Option<&Path>) -> Result<PathBuf> {
    let given = given.map(Path::to_owned).or_else(|| std::env::var_os("SAMPLES").map(PathBuf::from));
    let dir = match given {
        Some(dir) => std::fs::canonicalize(&dir).with_context(|| dir.display().to_string())?,
        None => cloned()?,
    };
    ensure!(dir.join("Samples").is_dir(), "{} is no checkout of {REPOSITORY}", dir.display());
    let commit = setup::said(Command::new("git").arg("-C").arg(&dir).args(["rev-parse", "HEAD"]))
        .context("which commit the samples are of")?;
    ensure!(commit == PIN, "{} is at {commit}; the results are those of {PIN}", dir.display());
    Ok(dir)
}

fn cloned() -> Result<PathBuf> {
    let cache = setup::download_cache()?;
    let _lock = setup::alone_in(&cache)?;
    let dir = cache.join("cuda-samples");
    if dir.join("Samples").is_dir() {
        return Ok(dir);
    }
    ensure!(!setup::offline(), "--offline, and {} is not there; or say --from DIR", dir.display());
    println!("setup: {REPOSITORY} at {PIN}, to {}", dir.display());
    let git = |words: &[&str]| setup::run(Command::new("git").arg("-C").arg(&dir).args(words));
    std::fs::create_dir_all(&dir)?;
    git(&["init", "--quiet"])?;
    git(&["fetch", "--quiet", "--depth=1", REPOSITORY, PIN])
        .context("GitHub cannot be reached: give a checkout by --from DIR or SAMPLES=DIR")?;
    git(&["checkout", "--quiet", PIN])?;
    Ok(dir)
}
