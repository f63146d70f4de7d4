//! The libraries of NVIDIA's that we stand in for besides the driver, the runtime and NVML: `tools/data/<library>/library.toml`
//! says of each what its objects are. Shells, preloaded objects, what `build` makes and who knows the files follow from it.
//!
//! A SONAME's number is not CUDA's major: `libcurand.so.10` is that of CUDA 11, 12 and 13.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use crate::setup::root;

/// One library.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Library {
    /// As NVIDIA writes it.
    pub name: String,
    /// The file of our backend, and the package that makes it.
    pub implementation: String,
    pub package: String,
    /// The variable that lists backends.
    pub variable: String,
    /// The type that functions answer with.
    pub status: String,
    /// The signatures of its functions, where the generator is the one of all libraries.
    #[serde(default)]
    pub signatures: Option<String>,
    /// The crate that has the bodies.
    pub api: String,
    /// The crate of the generated exports, where the generator is the one of all libraries.
    #[serde(default)]
    pub exports: Option<String>,
    /// Its shells export `cudaway_forward` and `cudaway_backend_of`.
    #[serde(default)]
    pub forwards: bool,
    /// What it says its version is, by the major of the CUDA runtime that the process has.
    #[serde(default)]
    pub releases: BTreeMap<u32, String>,
    /// The numbers of its SONAMEs, where their functions do not answer alike: the backend exports each name once for each, with `_v`
    /// and two digits behind it.
    #[serde(default)]
    pub faces: Vec<u32>,
    /// The folder below that of our objects where all of it lies, for a library of NVIDIA's that is taken where it is installed:
    /// `cudaway run` has the loader look there last, nothing of it is preloaded, and no file of that name is taken for ours.
    #[serde(default)]
    pub folder: String,
    pub objects: Vec<Object>,
}

/// One SONAME.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Object {
    /// `libcurand`
    pub stem: String,
    /// What follows `.so.`, and the name of the version node is all of it.
    pub soname: String,
    /// The majors of CUDA whose programs ask for it.
    pub cuda: Vec<u32>,
    /// The status for what is not supported, and its name.
    pub not_supported: (u32, String),
    /// The list of the names of all releases that have this SONAME.
    pub names: String,
    /// The crate of its shell.
    pub shell: String,
    /// A function that no other library has; a part has none.
    #[serde(default)]
    pub own: String,
    /// It has some of the names of its library's main object again, or none, for who opens it by name: nothing is preloaded of it.
    #[serde(default)]
    pub part: bool,
    /// The name of its version node, where it is not the file's.
    #[serde(default)]
    node: String,
    /// It also has the name without a version.
    #[serde(default)]
    pub plain: bool,
}

impl Object {
    pub fn file(&self) -> String {
        format!("{}.so.{}", self.stem, self.soname)
    }

    /// The version node of its names.
    pub fn node(&self) -> String {
        if self.node.is_empty() { self.file() } else { self.node.clone() }
    }

    pub fn package(&self) -> String {
        format!("{}-{}", self.stem.to_lowercase(), self.soname)
    }

    /// What tells its symbols from those of other shells in one object: `cublas_13`.
    pub fn key(&self) -> String {
        format!("{}_{}", self.stem.trim_start_matches("lib").to_lowercase(), self.soname)
    }

    pub fn version_script(&self) -> String {
        format!("{}.{}.version", self.stem, self.soname)
    }

    /// In the order of the slots.
    pub fn names(&self) -> Result<Vec<String>> {
        let text = std::fs::read_to_string(root().join(&self.names)).with_context(|| self.names.clone())?;
        Ok(text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect())
    }

    /// The major whose object in `preload` has its names: the newest, since `cudaway run` preloads those of all majors.
    pub fn preloaded_in(&self) -> Option<u32> {
        self.cuda.iter().copied().max().filter(|_| !self.part)
    }
}

/// All, in the order of their folders.
pub fn all() -> &'static [Library] {
    static ALL: OnceLock<Vec<Library>> = OnceLock::new();
    ALL.get_or_init(|| read().unwrap_or_else(|error| panic!("tools/data: {error:#}")))
}

fn read() -> Result<Vec<Library>> {
    let mut folders: Vec<_> = std::fs::read_dir(root().join("tools/data"))?
        .map(|entry| Ok(entry?.path().join("library.toml")))
        .collect::<Result<_>>()?;
    folders.retain(|path| path.exists());
    folders.sort();
    folders
        .iter()
        .map(|path| {
            let text = std::fs::read_to_string(path)?;
            let library: Library = toml::from_str(&text).with_context(|| path.display().to_string())?;
            ensure!(!library.objects.is_empty(), "{} has no objects", path.display());
            Ok(library)
        })
        .collect()
}

/// The libraries whose place we take; the others are in the place of what is not installed.
pub fn ours() -> impl Iterator<Item = &'static Library> {
    all().iter().filter(|library| library.folder.is_empty())
}

/// Every object with its library.
pub fn objects() -> impl Iterator<Item = (&'static Library, &'static Object)> {
    all().iter().flat_map(|library| library.objects.iter().map(move |object| (library, object)))
}

pub fn named(name: &str) -> &'static Library {
    all().iter().find(|library| library.name == name).unwrap_or_else(|| panic!("no library {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_soname_serves_whom_it_says() {
        let files: Vec<_> = objects().map(|(_, object)| (object.file(), object.cuda.clone())).collect();
        assert!(files.contains(&("libcurand.so.10".to_owned(), vec![11, 12, 13])), "{files:?}");
        assert!(files.contains(&("libcublas.so.12".to_owned(), vec![12])), "{files:?}");
    }

    #[test]
    fn what_a_library_says_of_itself_is_said_for_each_cuda_that_it_serves() {
        for (library, object) in objects().filter(|(library, _)| !library.releases.is_empty()) {
            for major in &object.cuda {
                assert!(library.releases.contains_key(major), "{} in CUDA {major}", object.file());
            }
        }
    }

    #[test]
    fn parts_have_names_of_their_library_and_have_them_once() {
        for library in all() {
            for soname in library.objects.iter().filter(|object| !object.part).map(|object| &object.soname) {
                let of = |part: bool| library.objects.iter().filter(move |object| object.part == part);
                let names = |part: bool| of(part).filter(|object| object.soname == *soname);
                let mut parts: Vec<_> = names(true).flat_map(|object| object.names().unwrap()).collect();
                if parts.is_empty() {
                    continue;
                }
                let mut main: Vec<_> = names(false).flat_map(|object| object.names().unwrap()).collect();
                parts.sort();
                main.sort();
                assert_eq!(parts, main, "{} {soname}", library.name);
            }
        }
    }

    #[test]
    fn what_is_taken_where_it_is_installed_is_not_preloaded() {
        for library in all().iter().filter(|library| !library.folder.is_empty()) {
            assert!(library.objects.iter().all(|object| object.preloaded_in().is_none()), "{}", library.name);
            assert!(!ours().any(|other| other.name == library.name));
        }
    }

    #[test]
    fn each_object_has_its_own_function() {
        for (_, object) in objects().filter(|(_, object)| !object.part) {
            assert!(object.names().unwrap().contains(&object.own), "{}", object.file());
            let others = objects().filter(|(_, other)| other.stem != object.stem && !other.part);
            for (_, other) in others {
                assert!(!other.names().unwrap().contains(&object.own), "{} has {}", other.file(), object.own);
            }
        }
    }
}
