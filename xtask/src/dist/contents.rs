//! What lies in the archive beside the objects.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use anyhow::{Context as _, Result};

use crate::setup::root;

/// Files of the tree, and their places in the archive.
const FILES: &[(&str, &str)] = &[
    ("cmake/exports/libcuda.version", "libcuda.map"),
    ("tools/preload-wrapper", "tools/preload-wrapper"),
    ("tools/data/cuda-mapper.json", "tools/cuda-mapper.json"),
    ("examples/smoke_test.sh", "examples/smoke_test.sh"),
    ("README.md", "README.md"),
    ("CHANGELOG.md", "CHANGELOG.md"),
    ("SECURITY.md", "SECURITY.md"),
    ("LICENSE", "LICENSE"),
    ("LICENSE-MIT", "LICENSE-MIT"),
    ("LICENSE-APACHE", "LICENSE-APACHE"),
];

/// The two names that people preload, on top; the objects themselves lie in `lib`.
const LINKS: &[(&str, &str)] = &[("libcuda.so", "lib/libcuda.so.1"), ("libcudart.so", "lib/libcudart.so.13")];

pub fn add(tree: &Path) -> Result<()> {
    let files = FILES.iter().map(|(from, to)| ((*from).to_owned(), (*to).to_owned()));
    for (from, to) in files.chain(pages()?) {
        let to = tree.join(to);
        fs::create_dir_all(to.parent().context("a folder")?)?;
        fs::copy(root().join(&from), &to).with_context(|| format!("{from} into the archive"))?;
    }
    for (name, target) in LINKS {
        let _ = fs::remove_file(tree.join(name));
        symlink(target, tree.join(name))?;
    }
    Ok(())
}

/// All of docs/, whose pages lead to each other.
fn pages() -> Result<Vec<(String, String)>> {
    let mut pages = Vec::new();
    for entry in fs::read_dir(root().join("docs"))? {
        let name = format!("docs/{}", entry?.file_name().to_string_lossy());
        pages.push((name.clone(), name));
    }
    Ok(pages)
}
