//! Folders that are made once and stay, in the cache or, where there is none that is ours alone, below the temporary folder.
//! Programs that a program starts may come much later, so nothing here is ever removed.

use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// The place of the folder of this kind and key.
pub fn folder(cache: Option<&Path>, kind: &str, key: &blake3::Hash) -> Result<PathBuf> {
    Ok(match cache.map(|cache| cache.join(kind)).filter(|folder| private(folder)) {
        Some(folder) => folder.join(&key.to_hex()[..16]),
        None => fresh(&std::env::temp_dir())?.join(kind),
    })
}

/// Makes the folder if need be; whether nobody else can write there.
fn private(folder: &Path) -> bool {
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    // SAFETY: it only returns a number.
    let user = unsafe { libc::geteuid() };
    let is_ours = |path: &Path| path.metadata().is_ok_and(|it| it.uid() == user && it.mode() & 0o022 == 0);
    made.is_ok() && is_ours(folder)
}

fn fresh(parent: &Path) -> Result<PathBuf> {
    let folder = tempfile::Builder::new().prefix("cudaway-").tempdir_in(parent);
    Ok(folder.with_context(|| parent.display().to_string())?.keep())
}

/// Has `fill` fill the folder if it is not there: beside its place, then renamed, so that another process sees all of it or nothing.
pub fn make(folder: &Path, fill: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    if folder.exists() {
        return Ok(());
    }
    let aside = fresh(folder.parent().context("a folder")?)?;
    fill(&aside).with_context(|| aside.display().to_string())?;
    if std::fs::rename(&aside, folder).is_err() {
        // Somebody was faster, with the same.
        std::fs::remove_dir_all(&aside)?;
    }
    Ok(())
}
