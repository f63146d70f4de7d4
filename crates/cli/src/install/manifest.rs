//! What an installation wrote: enough to undo it and to see what somebody else changed since.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use super::files::Root;

const NAME: &str = "manifest.json";

#[derive(Serialize, Deserialize)]
pub struct Manifest {
    version: String,
    /// Whether the loader's cache has to follow.
    pub is_system: bool,
    entries: Vec<Entry>,
    /// The folders that were not there before, which go with what is in them. Others are left, empty as they may be.
    #[serde(default)]
    folders: BTreeSet<PathBuf>,
}

/// A file (with the BLAKE3 hash of its bytes) or a link (with its target).
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    path: PathBuf,
    #[serde(skip_serializing_if = "Option::is_none")]
    blake3: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<PathBuf>,
}

impl Entry {
    pub fn file(path: &Path, bytes: &[u8]) -> Entry {
        Entry { path: path.to_owned(), blake3: Some(blake3::hash(bytes).to_string()), target: None }
    }

    pub fn link(path: &Path, target: &Path) -> Entry {
        Entry { path: path.to_owned(), blake3: None, target: Some(target.to_owned()) }
    }

    /// Whether what lies there is what was written.
    fn is_unchanged(&self, root: &Root) -> bool {
        let at = root.at(&self.path);
        match &self.target {
            Some(target) => fs::read_link(at).is_ok_and(|found| found == *target),
            None => {
                !at.is_symlink() && fs::read(&at).is_ok_and(|bytes| Entry::file(&self.path, &bytes) == *self)
            }
        }
    }
}

impl Manifest {
    pub fn new(is_system: bool) -> Manifest {
        Manifest {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            is_system,
            entries: Vec::new(),
            folders: BTreeSet::new(),
        }
    }

    pub fn path(root: &Root, prefix: &Path) -> PathBuf {
        root.at(&prefix.join(NAME))
    }

    /// Whether a file at this place in a tree is an installation's manifest.
    pub fn is_name(below_prefix: &Path) -> bool {
        below_prefix == Path::new(NAME)
    }

    /// The installation's that is there, if one is.
    pub fn read(root: &Root, prefix: &Path) -> Result<Option<Manifest>> {
        let path = Manifest::path(root, prefix);
        match fs::read(&path) {
            Ok(bytes) => {
                let manifest = serde_json::from_slice(&bytes);
                manifest.with_context(|| format!("{} cannot be understood", path.display())).map(Some)
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
    }

    pub fn write(&self, root: &Root, prefix: &Path) -> Result<()> {
        let bytes = serde_json::to_vec_pretty(self)?;
        super::files::write(root, &prefix.join(NAME), &bytes, 0o644, &mut Manifest::new(false))
    }

    /// Removes it, and the folders that were made for it and are empty now.
    pub fn forget(&self, root: &Root, prefix: &Path) -> Result<()> {
        let path = Manifest::path(root, prefix);
        fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        self.remove_folders(root);
        Ok(())
    }

    pub fn add(&mut self, entry: Entry) {
        self.entries.push(entry);
    }

    pub fn add_folder(&mut self, path: &Path) {
        self.folders.insert(path.to_owned());
    }

    /// The folders that an earlier installation made are there already, and are this one's to remove.
    pub fn adopt_folders(&mut self, before: &Manifest) {
        self.folders.extend(before.folders.iter().cloned());
    }

    /// Takes over what an earlier installation wrote and this one did not.
    pub fn adopt(&mut self, before: &Manifest) {
        self.is_system |= before.is_system;
        let left = before.without(self);
        self.entries.extend(left.entries);
    }

    /// The entries that `other` has not.
    pub fn without(&self, other: &Manifest) -> Manifest {
        let kept: BTreeSet<&Path> = other.entries.iter().map(|entry| entry.path.as_path()).collect();
        let entries = self.entries.iter().filter(|entry| !kept.contains(entry.path.as_path())).cloned();
        Manifest {
            version: self.version.clone(),
            is_system: self.is_system,
            entries: entries.collect(),
            folders: self.folders.clone(),
        }
    }

    /// Removes everything that is as it was written, and the folders made for it that are empty then.
    pub fn remove(&self, root: &Root) -> Result<()> {
        for entry in &self.entries {
            let at = root.at(&entry.path);
            if !at.is_symlink() && !at.exists() {
                continue;
            }
            if !entry.is_unchanged(root) {
                println!("left, it was changed: {}", at.display());
                continue;
            }
            fs::remove_file(&at).with_context(|| format!("cannot remove {}", at.display()))?;
        }
        self.remove_folders(root);
        Ok(())
    }

    /// The inner ones first. Only empty ones can be removed.
    fn remove_folders(&self, root: &Root) {
        for folder in self.folders.iter().rev() {
            let _ = fs::remove_dir(root.at(folder));
        }
    }
}
