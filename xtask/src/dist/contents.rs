//! What lies in the archive beside the objects.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use anyhow::{Context as _, Result};

use crate::setup::root;

/// Files of the tree, and their places in the archive.
const FILES: &[(&str, &str)] = &[
    ("cmake/exports/libcuda.version", "libcuda.map"),
    ("docs/LD_PRELOAD.md", "docs/LD_PRELOAD.md"),
    ("docs/environment.md", "docs/environment.md"),
    ("docs/python.md", "docs/python.md"),
    ("docs/rocm.md", "docs/rocm.md"),
    ("docs/security.md", "docs/security.md"),
    ("docs/coverage.md", "docs/coverage.md"),
    ("docs/differences.md", "docs/differences.md"),
    ("docs/libraries.md", "docs/libraries.md"),
    ("tools/preload-wrapper", "tools/preload-wrapper"),
    ("tools/data/cuda-mapper.json", "tools/cuda-mapper.json"),
    ("examples/smoke_test.sh", "examples/smoke_test.sh"),
    ("README.md", "README.md"),
    ("LICENSE", "LICENSE"),
    ("LICENSE-MIT", "LICENSE-MIT"),
    ("LICENSE-APACHE", "LICENSE-APACHE"),
];

/// The two names that people preload, on top; the objects themselves lie in `lib`.
const LINKS: &[(&str, &str)] = &[("libcuda.so", "lib/libcuda.so.1"), ("libcudart.so", "lib/libcudart.so.13")];

pub fn add(tree: &Path) -> Result<()> {
    for (from, to) in FILES {
        let to = tree.join(to);
        fs::create_dir_all(to.parent().context("a folder")?)?;
        fs::copy(root().join(from), &to).with_context(|| format!("{from} into the archive"))?;
    }
    for (name, target) in LINKS {
        symlink(target, tree.join(name))?;
    }
    Ok(())
}
