//! Files written so that nobody sees half of one.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::manifest::{Entry, Manifest};
use crate::links;

/// The folder that stands for `/`.
pub struct Root(pub PathBuf);

impl Root {
    /// Where an absolute path lies.
    pub fn at(&self, path: &Path) -> PathBuf {
        self.0.join(path.strip_prefix("/").unwrap_or(path))
    }
}

/// Copies every file and link below `tree` to `prefix`.
pub fn copy_tree(tree: &Path, root: &Root, prefix: &Path, written: &mut Manifest) -> Result<()> {
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        let from = tree.join(&folder);
        for entry in fs::read_dir(&from).with_context(|| format!("cannot read {}", from.display()))? {
            let entry = entry?;
            let below = folder.join(entry.file_name());
            let to = prefix.join(&below);
            let kind = entry.file_type()?;
            if kind.is_dir() {
                folders.push(below);
            } else if kind.is_symlink() {
                link(root, &to, &fs::read_link(entry.path())?, written)?;
            } else if !Manifest::is_name(&below) && !links::is_list(&below) {
                let mode = entry.metadata()?.permissions().mode();
                write(root, &to, &fs::read(entry.path())?, mode, written)?;
            }
        }
    }
    // A tree that came without its links gets them here.
    for (name, target) in links::of(tree)? {
        link(root, &prefix.join(name), &target, written)?;
    }
    Ok(())
}

pub fn write(root: &Root, path: &Path, bytes: &[u8], mode: u32, written: &mut Manifest) -> Result<()> {
    let at = root.at(path);
    let aside = aside(root, path, written)?;
    // Noted first: what is half done when something fails is ours to remove as well.
    written.add(Entry::file(path, bytes));
    let write = || {
        fs::write(&aside, bytes)?;
        fs::set_permissions(&aside, fs::Permissions::from_mode(mode & 0o777))?;
        fs::rename(&aside, &at)
    };
    write()
        .inspect_err(|_| drop(fs::remove_file(&aside)))
        .with_context(|| format!("cannot write {}", at.display()))
}

pub fn link(root: &Root, path: &Path, target: &Path, written: &mut Manifest) -> Result<()> {
    let at = root.at(path);
    let aside = aside(root, path, written)?;
    written.add(Entry::link(path, target));
    symlink(target, &aside)
        .and_then(|()| fs::rename(&aside, &at))
        .inspect_err(|_| drop(fs::remove_file(&aside)))
        .with_context(|| format!("cannot write {}", at.display()))
}

/// A name beside the path's place, whose folder is there from now on.
fn aside(root: &Root, path: &Path, written: &mut Manifest) -> Result<PathBuf> {
    let at = root.at(path);
    let folder = at.parent().context("a file lies in a folder")?;
    for folder in path.ancestors().skip(1).take_while(|folder| !root.at(folder).exists()) {
        written.add_folder(folder);
    }
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let name = at.file_name().context("a file has a name")?.to_string_lossy();
    let aside = folder.join(format!(".{name}.{}", std::process::id()));
    let _ = fs::remove_file(&aside);
    Ok(aside)
}
