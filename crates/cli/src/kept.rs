//! Folders that are made once and stay, in the cache, or where that cannot be had below the system's temporary folder or in memory.
//! Programs that a program starts may come much later, so nothing here is ever removed. What lies there is loaded and started: nobody
//! else may have put it there (`cache::trusted`).

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use cache::trusted::Folder;
use rustix::fs::{CWD, RenameFlags, renameat_with};

/// Where the system keeps files in memory.
const MEMORY: &str = "/dev/shm";

/// The names of all that was put into a folder: who cleans temporary folders removes files one by one.
const LIST: &str = ".all";

/// The folder of this kind and key. Where it is not there yet, `fill` fills one that then takes its place, so that another process
/// sees all of it or nothing.
///
/// # Errors
/// None of the places takes it; each with its reason.
pub fn folder(
    cache: Option<&Path>,
    kind: &str,
    key: &blake3::Hash,
    fill: impl Fn(&Path, &Path) -> Result<()>,
) -> Result<PathBuf> {
    let mut reasons = Vec::new();
    for place in places(cache) {
        match make(&place.join(kind), &key.to_hex()[..16], &fill) {
            Ok(folder) => return Ok(folder),
            Err(why) => reasons.push(format!("{why:#}")),
        }
    }
    bail!("{}", reasons.join("; "))
}

/// A folder of this name for others to write to.
pub fn place(cache: Option<&Path>, kind: &str) -> Option<PathBuf> {
    places(cache).map(|place| place.join(kind)).find(|folder| Folder::create(folder).is_ok())
}

/// Best first.
fn places(cache: Option<&Path>) -> impl Iterator<Item = PathBuf> {
    // SAFETY: it only returns a number.
    let own = format!("cudaway-{}", unsafe { libc::geteuid() });
    let shared = [std::env::temp_dir(), PathBuf::from(MEMORY)];
    cache.map(Path::to_path_buf).into_iter().chain(shared.map(|folder| folder.join(&own)))
}

fn make(parent: &Path, name: &str, fill: impl Fn(&Path, &Path) -> Result<()>) -> Result<PathBuf> {
    let folder = parent.join(name);
    if is_whole(&folder) {
        return Ok(folder);
    }
    let parent = Folder::create(parent)?;
    let aside = tempfile::Builder::new().prefix("new-").tempdir_in(parent.path());
    let aside = aside.with_context(|| parent.path().display().to_string())?;
    let filled = fill(&folder, aside.path()).and_then(|()| list(aside.path()));
    filled.with_context(|| folder.display().to_string())?;
    // It is refused where there is one: somebody was faster, with the same, or some of it is gone. Then the two change places at
    // once, since others may be using it.
    if std::fs::rename(aside.path(), &folder).is_ok() {
        let _ = aside.keep();
    } else if !is_whole(&folder) {
        renameat_with(CWD, aside.path(), CWD, &folder, RenameFlags::EXCHANGE)?;
    }
    ensure!(is_whole(&folder), "{}: it is not as it was made", folder.display());
    Ok(folder)
}

fn list(folder: &Path) -> Result<()> {
    Ok(std::fs::write(folder.join(LIST), names(folder)?)?)
}

/// Whether all of it is there. Whose the folder is decides about all in it: nobody else can write below it.
fn is_whole(folder: &Path) -> bool {
    let is_listed = || Some(std::fs::read(folder.join(LIST)).ok()? == names(folder).ok()?);
    Folder::open(folder).is_ok() && is_listed().unwrap_or_default()
}

/// Of all that lies in it and below.
fn names(folder: &Path) -> std::io::Result<Vec<u8>> {
    let (mut names, mut folders) = (Vec::new(), vec![PathBuf::new()]);
    while let Some(below) = folders.pop() {
        for entry in std::fs::read_dir(folder.join(&below))? {
            let entry = entry?;
            let name = below.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                folders.push(name.clone());
            }
            names.push(name.into_os_string().into_encoded_bytes());
        }
    }
    names.retain(|name| name != LIST.as_bytes());
    names.sort();
    Ok(names.join(&b'\n'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_made_once_and_again_when_some_of_it_is_gone() {
        let there = tempfile::tempdir().unwrap();
        let key = blake3::hash(b"key");
        let made = std::cell::Cell::new(0);
        let keep = || {
            folder(Some(there.path()), "kind", &key, |folder, aside| {
                made.set(made.get() + 1);
                std::fs::write(aside.join("a"), folder.to_string_lossy().as_bytes())?;
                Ok(std::fs::write(aside.join("b"), "b")?)
            })
            .unwrap()
        };
        let first = keep();
        assert_eq!(std::fs::read_to_string(first.join("a")).unwrap(), first.to_string_lossy());
        assert_eq!((keep(), made.get()), (first.clone(), 1));
        std::fs::remove_file(first.join("b")).unwrap();
        assert_eq!((keep(), made.get()), (first.clone(), 2));
        assert!(first.join("b").exists());
        // Nothing is left beside it.
        assert_eq!(std::fs::read_dir(there.path().join("kind")).unwrap().count(), 1);
    }

    #[test]
    fn a_place_that_cannot_be_had_is_passed_by_and_if_none_can_each_reason_is_told() {
        let there = tempfile::tempdir().unwrap();
        let file = there.path().join("file");
        std::fs::write(&file, "").unwrap();
        let key = blake3::hash(there.path().as_os_str().as_encoded_bytes());
        let elsewhere = folder(Some(&file.join("cache")), "kind", &key, |_, _| Ok(())).unwrap();
        assert!(!elsewhere.starts_with(there.path()), "{}", elsewhere.display());
        std::fs::remove_dir_all(&elsewhere).unwrap();
        let fails = |_: &Path, _: &Path| bail!("no room");
        let why = folder(Some(there.path()), "kind", &key, fails).unwrap_err().to_string();
        assert_eq!(why.matches("no room").count(), 3, "{why}");
    }
}
