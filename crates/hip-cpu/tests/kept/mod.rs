//! What a test's cache folder has.

use std::path::Path;

/// Files in the folder and below.
pub fn n_files(folder: &Path) -> usize {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    entries.flatten().map(|it| if it.path().is_dir() { n_files(&it.path()) } else { 1 }).sum()
}
