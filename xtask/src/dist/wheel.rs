//! The Python package `cudaway` as a wheel: the files of python/, and the tree that the archives have.
//!
//! The wheel's tag says which glibc it needs, by PEP 600, and pip keeps to it. It is the newest that anything in it needs. The
//! libraries need 2.17 (`manylinux2014`), but the CPU device 2.31, and it is the device that is always there: without it `import` would work
//! and no kernel run, so a shipped wheel is `manylinux_2_31`. On a system in between the archives do for AMD GPUs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::build::{self, gate};
use crate::setup::{self, root};

/// How hard to compress: what is shipped, and what is tried once.
pub const SMALLEST: u32 = 9;
pub const FASTEST: u32 = 1;

/// The newest glibc that an object or a program in the tree needs.
pub fn newest_glibc(tree: &Path) -> Result<Vec<u32>> {
    let mut newest = None;
    for folder in build::folders() {
        for entry in fs::read_dir(tree.join(folder))? {
            let entry = entry?;
            if entry.file_type()?.is_file() && !entry.file_name().to_string_lossy().starts_with('.') {
                newest = newest.max(gate::newest_glibc(&entry.path())?);
            }
        }
    }
    newest.with_context(|| format!("nothing in {} needs glibc", tree.display()))
}

/// `trees` are the parts of one tree; `glibc` is `[2, 31]`.
pub fn pack(trees: &[&Path], glibc: &[u32], epoch_s: u64, level: u32) -> Result<PathBuf> {
    let [major, minor, ..] = glibc[..] else { anyhow::bail!("no release of glibc: {glibc:?}") };
    let out = super::out();
    fs::create_dir_all(&out)?;
    let mut python = Command::new("python3");
    // As it is, without what this machine's user has set for Python.
    python.args(["-I", "-B"]).arg(root().join("python/pack.py"));
    for tree in trees {
        python.arg("--tree").arg(tree);
    }
    python.arg("--platform").arg(format!("manylinux_{major}_{minor}_x86_64"));
    python.arg("--epoch").arg(epoch_s.to_string()).arg("--level").arg(level.to_string()).arg(&out);
    Ok(out.join(setup::said(&mut python)?))
}
