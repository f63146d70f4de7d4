//! Where our objects lie.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::{Context as _, Result};
use loader::names::{REFUSING, REFUSING_IMPLEMENTATION};

use crate::links;

/// As installed, `lib` beside the folder of this program; or where the user says.
pub fn lib(named: Option<&Path>) -> Result<PathBuf> {
    if let Some(lib) = named {
        return std::path::absolute(lib).with_context(|| lib.display().to_string());
    }
    Ok(tree()?.join("lib"))
}

/// The folder with `bin/cudaway`, `lib` and all links among them. Where this program's own lacks its links, as in a wheel, it is
/// one in the cache ([`links`]), or its own if there can be none: [`unlinked`] has the reason.
pub fn tree() -> Result<PathBuf> {
    let own = folder()?;
    Ok(match linked(&own) {
        Some(Ok(tree)) => tree.clone(),
        Some(Err(_)) | None => own,
    })
}

/// The folder that this program's own file lies in, below `bin`.
pub fn folder() -> Result<PathBuf> {
    let own =
        std::env::current_exe().and_then(|own| own.canonicalize()).context("where this program lies")?;
    Ok(own.parent().and_then(Path::parent).context("the folder above this program")?.to_path_buf())
}

/// Why our folder has no links, where it should have some.
pub fn unlinked() -> Option<&'static str> {
    let own = folder().ok()?;
    linked(&own)?.as_ref().err().map(String::as_str)
}

/// The folder of the objects' own files: `lib` may have links in their place.
pub fn files(lib: &Path) -> PathBuf {
    let driver = lib.join(loader::names::DRIVER.to_string_lossy().as_ref()).canonicalize();
    let folder = driver.ok().and_then(|driver| driver.parent().map(Path::to_path_buf));
    folder.or_else(|| lib.canonicalize().ok()).unwrap_or_else(|| lib.to_path_buf())
}

/// Whether it is an object of ours that refuses every call, for programs that would not start without one of its name.
pub fn refuses(object: &Path) -> bool {
    let is_named = REFUSING
        .iter()
        .any(|(name, _)| object.file_name().is_some_and(|file| file == std::ffi::OsStr::new(name)));
    is_named && object.with_file_name(REFUSING_IMPLEMENTATION).exists()
}

/// What is to be said of such objects, by their names, and what mends it.
pub const REFUSED_WHY: &str = "CUDAway has nothing of it: each of its calls answers with an error";
pub const REFUSED_FIX: &str =
    "none is needed where the program can do without; NVIDIA's own, in LD_LIBRARY_PATH, goes in front";

/// Looked for once; `None` where it has its links itself.
fn linked(own: &Path) -> Option<&'static Result<PathBuf, String>> {
    static TREE: OnceLock<Option<Result<PathBuf, String>>> = OnceLock::new();
    let find = || links::tree_of(own).map(|tree| tree.map_err(|why| format!("{why:#}")));
    TREE.get_or_init(find).as_ref()
}
