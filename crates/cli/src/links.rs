//! The links of a tree of ours that came without them. A Python wheel is a zip archive, in which links do not survive: it has a list
//! of them in the file `links` (xtask/src/dist/wheel.rs writes it), a line each: name, tab, what stands in the link.
//!
//! The wheel's own folder stays as pip made it, so that `pip uninstall` leaves nothing and nothing differs from its hashes. A folder in
//! the cache stands for it: links to its files, and the links of the list.

use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

use crate::kept;

/// What a tree without links has at its top.
const LIST: &str = "links";

/// The folders that have something to be linked to; the rest is read by people.
const FOLDERS: [&str; 3] = ["bin", "lib", "tools"];

/// Whether a file at this place in a tree is its list.
pub fn is_list(below_tree: &Path) -> bool {
    below_tree == Path::new(LIST)
}

/// The links of the list, and what stands in them; nothing of a tree that has its links.
pub fn of(tree: &Path) -> Result<Vec<(PathBuf, PathBuf)>> {
    let path = tree.join(LIST);
    let list = match std::fs::read_to_string(&path) {
        Ok(list) => list,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).with_context(|| path.display().to_string()),
    };
    let link = |line: &str| {
        let (name, target) = line.split_once('\t').with_context(|| format!("{}: {line}", path.display()))?;
        ensure!(is_below(Path::new(name)), "{}: {name} does not lie in the tree", path.display());
        Ok((name.into(), target.into()))
    };
    list.lines().map(link).collect()
}

fn is_below(name: &Path) -> bool {
    name.components().all(|part| matches!(part, Component::Normal(_)))
}

/// The folder in the cache that stands for a tree which has a list.
pub fn tree_of(own: &Path) -> Option<Result<PathBuf>> {
    own.join(LIST).exists().then(|| make(own, config::get().cache_dir.as_deref()))
}

fn make(own: &Path, cache: Option<&Path>) -> Result<PathBuf> {
    let mut links = of(own)?;
    for folder in FOLDERS {
        add_files(own, Path::new(folder), &mut links)?;
    }
    links.sort();
    let mut key = blake3::Hasher::new();
    for part in links.iter().flat_map(|(name, target)| [name, target]) {
        let part = part.as_os_str().as_bytes();
        key.update(&part.len().to_ne_bytes()).update(part);
    }
    kept::folder(cache, "tree", &key.finalize(), |_, aside| {
        links.iter().try_for_each(|(name, target)| {
            let at = aside.join(name);
            std::fs::create_dir_all(at.parent().context("a folder")?)?;
            symlink(target, &at).with_context(|| at.display().to_string())
        })
    })
}

/// A link to each file in `folder` and below it.
fn add_files(own: &Path, folder: &Path, links: &mut Vec<(PathBuf, PathBuf)>) -> Result<()> {
    let at = own.join(folder);
    let entries = match std::fs::read_dir(&at) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error).with_context(|| at.display().to_string()),
    };
    for entry in entries {
        let entry = entry?;
        let below = folder.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            add_files(own, &below, links)?;
        } else {
            links.push((below, entry.path()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(list: &str) -> tempfile::TempDir {
        let tree = tempfile::tempdir().unwrap();
        for folder in ["bin", "lib/preload"] {
            std::fs::create_dir_all(tree.path().join(folder)).unwrap();
        }
        for file in ["bin/cudaway", "lib/libcuda.so.1", "lib/preload/libcudart.so.12", "README.md"] {
            std::fs::write(tree.path().join(file), file).unwrap();
        }
        std::fs::write(tree.path().join(LIST), list).unwrap();
        tree
    }

    const LINKS: &str = "lib/libcuda.so\tlibcuda.so.1\nlib/preload/glibc-hwcaps/x86-64-v2\t..\nlib/preload/libcublas.so.12\tlibcudart.so.12\n\
        tools/compiler/nvcc\t../../bin/cudaway\n";

    #[test]
    fn a_folder_in_the_cache_has_the_files_and_the_links_and_the_tree_stays_as_it_is() {
        let (own, cache) = (tree(LINKS), tempfile::tempdir().unwrap());
        let made = make(own.path(), Some(cache.path())).unwrap();
        assert!(made.starts_with(cache.path()));
        for (name, file) in [
            ("lib/libcuda.so", "lib/libcuda.so.1"),
            ("lib/preload/libcublas.so.12", "lib/preload/libcudart.so.12"),
            ("lib/preload/glibc-hwcaps/x86-64-v2/libcudart.so.12", "lib/preload/libcudart.so.12"),
            ("tools/compiler/nvcc", "bin/cudaway"),
        ] {
            let found = made.join(name).canonicalize().unwrap();
            assert_eq!(found, own.path().canonicalize().unwrap().join(file), "{name}");
        }
        assert!(!own.path().join("tools").exists());
        // Once; and again where one of them is gone.
        assert_eq!(make(own.path(), Some(cache.path())).unwrap(), made);
        std::fs::remove_file(made.join("lib/preload/libcublas.so.12")).unwrap();
        assert_eq!(make(own.path(), Some(cache.path())).unwrap(), made);
        assert!(made.join("lib/preload/libcublas.so.12").exists());
    }

    #[test]
    fn a_list_that_leads_out_of_the_tree_is_refused() {
        for list in ["../x\tlibcuda.so.1\n", "/etc/x\ty\n", "lib/libcuda.so libcuda.so.1\n"] {
            assert!(of(tree(list).path()).is_err(), "{list}");
        }
    }

    #[test]
    fn a_tree_with_its_links_has_no_list() {
        let own = tree("");
        std::fs::remove_file(own.path().join(LIST)).unwrap();
        assert!(tree_of(own.path()).is_none());
        assert_eq!(of(own.path()).unwrap(), []);
    }
}
