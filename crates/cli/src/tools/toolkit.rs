//! NVIDIA's toolkit as programs see it that look for it where the `nvcc` in `PATH` lies: a folder of links to everything in the real
//! one but `bin`, where our tools are.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::kept;

/// The `bin` of the links to the toolkit of this `nvcc`, made once for each.
pub fn bin(nvcc: &Path, tools: &Path, cache: Option<&Path>) -> Result<PathBuf> {
    let real = nvcc.parent().and_then(Path::parent).context("a toolkit's folder")?;
    let mut names: Vec<OsString> = std::fs::read_dir(real)
        .with_context(|| real.display().to_string())?
        .flatten()
        .map(|entry| entry.file_name())
        .filter(|name| name != "bin")
        .collect();
    names.sort();
    let mut key = blake3::Hasher::new();
    for part in [real.as_os_str(), tools.as_os_str()].into_iter().chain(names.iter().map(|it| &**it)) {
        key.update(part.as_bytes()).update(b"\0");
    }
    let folder = kept::folder(cache, "toolkit", &key.finalize())?;
    kept::make(&folder, |aside| {
        names.iter().try_for_each(|name| symlink(real.join(name), aside.join(name)))?;
        // No other tool: this folder goes before all others in PATH, and theirs may be /usr/bin.
        std::fs::create_dir(aside.join("bin"))?;
        symlink(tools.join("ptxas"), aside.join("bin/ptxas"))?;
        Ok(symlink(tools.join("nvcc/nvcc"), aside.join("bin/nvcc"))?)
    })?;
    Ok(folder.join("bin"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_toolkit_is_found_beside_our_compiler() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["cuda/bin", "cuda/include", "cuda/lib64", "tools/nvcc", "cache"] {
            std::fs::create_dir_all(at(name)).unwrap();
        }
        for name in
            ["cuda/bin/nvcc", "cuda/bin/python", "cuda/include/cuda.h", "tools/nvcc/nvcc", "tools/ptxas"]
        {
            std::fs::write(at(name), name).unwrap();
        }
        let made = || bin(&at("cuda/bin/nvcc"), &at("tools"), Some(&at("cache"))).unwrap();
        let bin = made();
        let read = |name: &str| std::fs::read_to_string(bin.join(name)).unwrap();
        assert_eq!(read("nvcc"), "tools/nvcc/nvcc");
        assert_eq!(read("ptxas"), "tools/ptxas");
        assert_eq!(read("../include/cuda.h"), "cuda/include/cuda.h");
        assert!(bin.join("../lib64").is_dir() && !bin.join("python").exists());
        assert_eq!(made(), bin);
        // What came to the toolkit since comes here.
        std::fs::create_dir(at("cuda/nvvm")).unwrap();
        assert!(made().join("../nvvm").is_dir());
    }
}
