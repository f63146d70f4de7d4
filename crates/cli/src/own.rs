//! Where our objects lie.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// As installed, `lib` beside the folder of this program; or where the user says.
pub fn lib(named: Option<&Path>) -> Result<PathBuf> {
    if let Some(lib) = named {
        return std::path::absolute(lib).with_context(|| lib.display().to_string());
    }
    Ok(tree()?.join("lib"))
}

/// The folder with `bin/cudaway` and `lib`.
pub fn tree() -> Result<PathBuf> {
    let own =
        std::env::current_exe().and_then(|own| own.canonicalize()).context("where this program lies")?;
    Ok(own.parent().and_then(Path::parent).context("the folder above this program")?.to_path_buf())
}
