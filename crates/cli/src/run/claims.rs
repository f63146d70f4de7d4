//! The names by which programs look for CUDA's libraries past every search path: names without a version, and paths.
//! For each path there is an object ([`super::stub`]) that answers for it. A name without a folder is one more name of the object
//! of ours that it means, since it is a link to it in a folder where the loader looks. One more object, for `LD_PRELOAD`, needs
//! them all.

use std::collections::BTreeSet;
use std::ffi::CStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::stub;
use crate::{kept, own};

/// Asked for by Numba, Triton and others, whether such a file exists or not.
const ALWAYS: [&str; 6] = [
    "libcuda.so",
    "libcudart.so",
    "libnvidia-ml.so",
    "libnvJitLink.so",
    "/usr/lib/x86_64-linux-gnu/libcuda.so.1",
    "/usr/lib64/libcuda.so.1",
];

/// Where NVIDIA's files are put, and where programs look for them by themselves; `*` is any name.
const FOLDERS: [&str; 15] = [
    "/usr/lib/x86_64-linux-gnu",
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu/nvidia/current",
    "/usr/lib64",
    "/lib64",
    "/usr/lib",
    "/usr/local/lib",
    "/usr/lib/wsl/lib",
    "/usr/lib/wsl/drivers/*",
    "/opt/cuda/lib64",
    "/opt/cuda/lib64/stubs",
    "/usr/local/*/lib64",
    "/usr/local/*/lib64/stubs",
    "/usr/local/*/targets/x86_64-linux/lib",
    "/usr/local/*/compat",
];

/// More would cost the start of every process more than they could ever bring.
const MOST: usize = 64;

const UMBRELLA: &str = "libcudaway_claims.so";

/// A name, and our object that answers for it.
type Claim = (String, &'static CStr);

/// What is claimed: the names of [`ALWAYS`], `wanted`, and every file of such a name in [`FOLDERS`] and `searched`.
pub fn names(lib: &Path, wanted: &[String], searched: &[PathBuf]) -> Vec<Claim> {
    let folders = FOLDERS.iter().flat_map(|pattern| expand(pattern)).chain(searched.iter().cloned());
    let files: BTreeSet<String> = folders.flat_map(|folder| files(&folder)).collect();
    let own = own::files(lib);
    let is_ours = |name: &str| Path::new(name).canonicalize().is_ok_and(|path| path.starts_with(&own));
    let mut seen = BTreeSet::new();
    ALWAYS
        .iter()
        .map(|name| (*name).to_owned())
        .chain(wanted.iter().cloned())
        .chain(files)
        .filter(|name| !is_ours(name) && seen.insert(name.clone()))
        .filter_map(|name| loader::names::of_path(name.as_bytes()).map(|ours| (name, ours)))
        .filter(|(_, ours)| lib.join(ours.to_string_lossy().as_ref()).exists())
        .take(MOST)
        .collect()
}

/// The folders a pattern with at most one `*` stands for.
fn expand(pattern: &str) -> Vec<PathBuf> {
    let Some((before, after)) = pattern.split_once('*') else { return vec![PathBuf::from(pattern)] };
    let found = std::fs::read_dir(before).into_iter().flatten().flatten();
    found.map(|entry| entry.path().join(after.trim_start_matches('/'))).collect()
}

/// The files in `folder` with a name of NVIDIA's, and what they are links to.
fn files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if loader::names::of(entry.file_name().as_bytes()).is_none() {
            continue;
        }
        let path = entry.path();
        found.extend(
            path.canonicalize()
                .ok()
                .into_iter()
                .chain([path])
                .filter_map(|it| it.to_str().map(str::to_owned)),
        );
    }
    found
}

/// What to preload so that all of them are claimed, made once for each list of names and kept in `cache`: the stubs of the
/// names `linked`, which may stand in the program's own `DT_NEEDED`, and the one object that needs the others. (What a preloaded
/// object needs is loaded after what the program needs.) `file` is what is preloaded of ours for a library.
pub fn objects(
    claims: &[Claim],
    linked: &[String],
    file: impl Fn(&CStr) -> PathBuf,
    cache: Option<&Path>,
) -> Result<Vec<PathBuf>> {
    let is_linked = |name: &String| linked.contains(name);
    let answers = claims.iter().map(|(name, ours)| {
        Ok(if name.contains('/') || is_linked(name) {
            let needed = [ours.to_string_lossy().into_owned()];
            Answer::Stub(name.clone(), stub::shared_object(name, &needed, None)?)
        } else {
            Answer::Link(name.clone(), file(ours))
        })
    });
    let answers: Vec<Answer> = answers.collect::<Result<_>>()?;
    let mut key = blake3::Hasher::new();
    for answer in &answers {
        for part in [answer.name().as_bytes(), answer.bytes()] {
            key.update(&part.len().to_ne_bytes()).update(part);
        }
    }
    let folder =
        kept::folder(cache, "claims", &key.finalize(), |folder, aside| fill(&answers, folder, aside))?;
    let stubs = answers.iter().enumerate().filter(|(_, answer)| is_linked(answer.name()));
    let paths = stubs.map(|(number, _)| folder.join(file_name(number)));
    Ok(paths.chain([folder.join(UMBRELLA)]).collect())
}

/// How a name is answered.
enum Answer {
    /// By an object of that SONAME.
    Stub(String, Vec<u8>),
    /// By this object, which is loaded already.
    Link(String, PathBuf),
}

impl Answer {
    fn name(&self) -> &String {
        let (Answer::Stub(name, _) | Answer::Link(name, _)) = self;
        name
    }

    /// What it is made of.
    fn bytes(&self) -> &[u8] {
        match self {
            Answer::Stub(_, bytes) => bytes,
            Answer::Link(_, target) => target.as_os_str().as_bytes(),
        }
    }
}

fn file_name(number: usize) -> String {
    format!("{number}.so")
}

/// Writes what will lie in `folder`.
fn fill(answers: &[Answer], folder: &Path, aside: &Path) -> Result<()> {
    let mut needed = Vec::new();
    for (number, answer) in answers.iter().enumerate() {
        match answer {
            Answer::Stub(_, bytes) => {
                let file = file_name(number);
                std::fs::write(aside.join(&file), bytes)?;
                needed.push(folder.join(file).to_string_lossy().into_owned());
            }
            Answer::Link(name, target) => {
                std::os::unix::fs::symlink(target, aside.join(name))?;
                needed.push(name.clone());
            }
        }
    }
    // glibc looks into these first, and then into some twenty others before it looks into the folder itself.
    let features = aside.join("glibc-hwcaps");
    std::fs::create_dir(&features)?;
    for level in ["x86-64-v4", "x86-64-v3", "x86-64-v2"] {
        std::os::unix::fs::symlink("..", features.join(level))?;
    }
    Ok(std::fs::write(aside.join(UMBRELLA), stub::shared_object(UMBRELLA, &needed, Some("$ORIGIN"))?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_there_are_claimed_under_all_their_names() {
        let folder = tempfile::tempdir().unwrap();
        let (lib, there) = (folder.path().join("lib"), folder.path().join("there"));
        for folder in [&lib, &there] {
            std::fs::create_dir(folder).unwrap();
        }
        std::fs::write(lib.join("libcuda.so.1"), "").unwrap();
        for name in ["libcuda.so.99.0", "libcudart.so.12", "libcudnn.so.9"] {
            std::fs::write(there.join(name), "").unwrap();
        }
        std::os::unix::fs::symlink("libcuda.so.99.0", there.join("libcuda.so.1")).unwrap();
        let found: Vec<String> = names(
            &lib,
            &["/x/libcuda.so.1".to_owned(), "/x/other.so".to_owned()],
            &[there.clone(), lib.clone()],
        )
        .into_iter()
        .map(|(name, ours)| {
            assert_eq!(ours, loader::names::DRIVER);
            name
        })
        .collect();
        for name in ["libcuda.so", "/x/libcuda.so.1"] {
            assert!(found.iter().any(|it| it == name), "{found:?}");
        }
        for name in ["libcuda.so.1", "libcuda.so.99.0"] {
            assert!(found.contains(&there.join(name).display().to_string()), "{found:?}");
        }
        // We have no runtime here to answer with, and what is ours already needs no claim.
        assert!(!found.iter().any(|it| it.contains("libcudart") || it.contains("other")), "{found:?}");
        assert!(!found.iter().any(|it| Path::new(it).starts_with(&lib)), "{found:?}");
    }

    #[test]
    fn the_same_names_are_the_same_files() {
        let folder = tempfile::tempdir().unwrap();
        let claims = [("libcuda.so".to_owned(), loader::names::DRIVER)];
        let ours = |name: &CStr| Path::new("/opt/lib").join(name.to_string_lossy().as_ref());
        let object = |claims: &[Claim]| objects(claims, &[], ours, Some(folder.path())).unwrap().remove(0);
        let first = object(&claims);
        let time = || first.metadata().unwrap().modified().unwrap();
        let made = time();
        assert_eq!(object(&claims), first);
        assert_eq!(time(), made);
        let link = std::fs::read_link(first.with_file_name("libcuda.so")).unwrap();
        assert_eq!(link, Path::new("/opt/lib/libcuda.so.1"));
        assert_ne!(object(&[]), first);
        // Ours lie elsewhere.
        let elsewhere = objects(&claims, &[], |_| PathBuf::from("/x"), Some(folder.path())).unwrap();
        assert_ne!(elsewhere[0], first);
        let linked = objects(&claims, &["libcuda.so".to_owned()], ours, Some(folder.path())).unwrap();
        assert_eq!(linked[0], linked[1].with_file_name("0.so"));
        assert!(linked[0].exists() && linked.len() == 2);
    }
}
