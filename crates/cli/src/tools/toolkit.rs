//! NVIDIA's toolkit as programs see it that look for it where the `nvcc` in `PATH` lies: a folder of links to everything in the real
//! one but `bin`, where our tools are.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::kept;

/// The `bin` of the links to the toolkit of this `nvcc`, made once for each. It has no other tool than ours: it goes before all
/// other folders in `PATH`, and theirs may be `/usr/bin`.
pub fn bin(nvcc: &Path, tools: &Path, cache: Option<&Path>) -> Result<PathBuf> {
    let real = nvcc.parent().and_then(Path::parent).context("a toolkit's folder")?;
    Ok(like(real, tools, cache, false)?.join("bin"))
}

/// The links to the toolkit in the folder `real`, with all of its other tools.
pub fn root(real: &Path, tools: &Path, cache: Option<&Path>) -> Result<PathBuf> {
    like(real, tools, cache, true)
}

/// Our tools, by where they lie below `tools`.
const OURS: [(&str, &str); 2] = [("ptxas", "ptxas"), ("nvcc", "compiler/nvcc")];

fn like(real: &Path, tools: &Path, cache: Option<&Path>, has_others: bool) -> Result<PathBuf> {
    let names = |folder: &Path| -> Result<Vec<OsString>> {
        let entries = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
        let mut names: Vec<OsString> = entries.flatten().map(|entry| entry.file_name()).collect();
        names.sort();
        Ok(names)
    };
    let mut folders = names(real)?;
    folders.retain(|name| name != "bin");
    let mut others = if has_others { names(&real.join("bin")).unwrap_or_default() } else { Vec::new() };
    others.retain(|name| OURS.iter().all(|(ours, _)| name != ours));
    let mut key = blake3::Hasher::new();
    for part in [real.as_os_str(), tools.as_os_str()].into_iter().chain(folders.iter().map(|it| &**it)) {
        key.update(part.as_bytes()).update(b"\0");
    }
    for tool in &others {
        key.update(b"bin/").update(tool.as_bytes()).update(b"\0");
    }
    let folder = kept::folder(cache, "toolkit", &key.finalize(), |_, aside| {
        let bin = aside.join("bin");
        std::fs::create_dir(&bin)?;
        folders.iter().try_for_each(|name| symlink(real.join(name), aside.join(name)))?;
        others.iter().try_for_each(|name| symlink(real.join("bin").join(name), bin.join(name)))?;
        Ok(OURS.iter().try_for_each(|(name, place)| symlink(tools.join(place), bin.join(name)))?)
    })?;
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_toolkit_is_found_beside_our_compiler() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["cuda/bin", "cuda/include", "cuda/lib64", "tools/compiler", "cache"] {
            std::fs::create_dir_all(at(name)).unwrap();
        }
        for name in
            ["cuda/bin/nvcc", "cuda/bin/python", "cuda/include/cuda.h", "tools/compiler/nvcc", "tools/ptxas"]
        {
            std::fs::write(at(name), name).unwrap();
        }
        let made = || bin(&at("cuda/bin/nvcc"), &at("tools"), Some(&at("cache"))).unwrap();
        let bin = made();
        let read = |name: &str| std::fs::read_to_string(bin.join(name)).unwrap();
        assert_eq!(read("nvcc"), "tools/compiler/nvcc");
        assert_eq!(read("ptxas"), "tools/ptxas");
        assert_eq!(read("../include/cuda.h"), "cuda/include/cuda.h");
        assert!(bin.join("../lib64").is_dir() && !bin.join("python").exists());
        assert_eq!(made(), bin);
        // What came to the toolkit since comes here.
        std::fs::create_dir(at("cuda/nvvm")).unwrap();
        assert!(made().join("../nvvm").is_dir());

        let root = root(&at("cuda"), &at("tools"), Some(&at("cache"))).unwrap();
        let read = |name: &str| std::fs::read_to_string(root.join(name)).unwrap();
        assert_eq!(read("bin/ptxas"), "tools/ptxas");
        assert_eq!(read("bin/python"), "cuda/bin/python", "its other tools are there");
        assert_eq!(read("include/cuda.h"), "cuda/include/cuda.h");
        assert_ne!(root.join("bin"), made());
    }
}
