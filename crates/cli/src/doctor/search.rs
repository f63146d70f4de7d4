//! What the loader would find without `cudaway run`.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::finding::Finding;
use crate::own;

pub fn check(lib: &Path) -> Vec<Finding> {
    let mut findings = Vec::new();
    let folders: Vec<PathBuf> =
        std::env::var_os("LD_LIBRARY_PATH").iter().flat_map(std::env::split_paths).collect();
    findings.extend(shadows(&folders, lib));
    findings.extend(preload(&std::env::var("LD_PRELOAD").unwrap_or_default()));
    if let Ok(text) = std::fs::read_to_string("/etc/ld.so.preload")
        && text.contains("libcuda")
    {
        findings.push(Finding::warning(
            "search.preload",
            "/etc/ld.so.preload names a CUDA library",
            "it comes before everything else, in every program of this machine",
            "take it out of the file and use `cudaway run`",
        ));
    }
    findings.push(cache(lib));
    findings
}

/// Folders in LD_LIBRARY_PATH whose libcuda comes before ours; NVIDIA's toolkit has one that only answers errors.
fn shadows(folders: &[PathBuf], lib: &Path) -> Option<Finding> {
    let first = folders
        .iter()
        .find(|folder| folder.join("libcuda.so.1").exists() || folder.join("libcuda.so").exists())?;
    if own::files(first) == own::files(lib) {
        return None;
    }
    let what = if first.ends_with("stubs") {
        "the toolkit's stub, which answers error 34"
    } else {
        "another libcuda"
    };
    Some(Finding::warning(
        "search.path",
        format!("LD_LIBRARY_PATH has {} first: {what}", first.display()),
        "programs that are not started by `cudaway run` load that one",
        format!("export LD_LIBRARY_PATH={}", lib.display()),
    ))
}

/// A word of LD_PRELOAD that names no file does nothing: the loader says so on stderr and goes on.
fn preload(words: &str) -> Vec<Finding> {
    let missing = words.split([':', ' ']).filter(|word| word.contains('/') && !Path::new(word).exists());
    missing
        .map(|word| {
            Finding::warning(
                "search.preload",
                format!("LD_PRELOAD names {word}, which is not there"),
                "the program runs without it; that the variable is set proves nothing",
                "name the file with its whole path, or use `cudaway run`",
            )
        })
        .collect()
}

/// Who answers for `libcuda.so.1` by the loader's cache.
fn cache(lib: &Path) -> Finding {
    let listed = ["/sbin/ldconfig", "/usr/sbin/ldconfig"]
        .iter()
        .find_map(|it| Command::new(it).arg("-p").output().ok());
    let listed =
        listed.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let first = listed
        .lines()
        .find(|line| line.trim_start().starts_with("libcuda.so.1 "))
        .and_then(|it| it.split(" => ").nth(1));
    match first {
        None => Finding::fine(
            "search.cache",
            "no libcuda.so.1 is in the loader's cache: `cudaway run` puts ours in front",
        ),
        Some(path) if Path::new(path).canonicalize().ok() == lib.join("libcuda.so.1").canonicalize().ok() => {
            Finding::fine("search.cache", format!("the loader's cache leads to ours: {path}"))
        }
        Some(path) => Finding::warning(
            "search.cache",
            format!("the loader's cache leads to {path}"),
            "a program that is not started by `cudaway run` gets that one",
            "start programs by `cudaway run`",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stub_in_front_of_ours_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let (ours, stubs) = (folder.path().join("lib"), folder.path().join("stubs"));
        for at in [&ours, &stubs] {
            std::fs::create_dir(at).unwrap();
            std::fs::write(at.join("libcuda.so"), "").unwrap();
        }
        let found = shadows(&[stubs.clone(), ours.clone()], &ours).unwrap();
        assert!(found.seen.contains("error 34"), "{}", found.seen);
        assert_eq!(shadows(&[ours.clone(), stubs], &ours), None);
        assert_eq!(preload("/no/such/libcuda.so.1:libc.so.6").len(), 1);
    }
}
