//! What a test's cache folder has.

use std::path::{Path, PathBuf};

/// Files in the folder and below.
pub fn n_files(folder: &Path) -> usize {
    files(folder).len()
}

/// Their paths, in order.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return vec![] };
    let of = |path: PathBuf| if path.is_dir() { files(&path) } else { vec![path] };
    let mut files: Vec<PathBuf> = entries.flatten().flat_map(|it| of(it.path())).collect();
    files.sort();
    files
}
