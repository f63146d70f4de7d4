//! The environment in which a program and everything it starts find us.

use std::collections::BTreeMap;
use std::ffi::{CStr, OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use clap::ValueEnum;
use loader::names::REFUSED;
use serde_json::{Value, json};

use super::preflight::Finding;
use super::{Arguments, claims};
use crate::tools;

/// Objects and variables; nothing in here has happened yet.
pub struct Plan {
    /// What must be in the process at its start.
    pub preload: Vec<PathBuf>,
    /// Ours that are found by their folder alone, which a process that runs cannot be given: cuDNN's parts.
    pub parts: Vec<PathBuf>,
    /// Why no name is claimed, where some would be.
    pub unclaimed: Option<String>,
    pub variables: Vec<(&'static str, OsString)>,
}

/// `alone` are libraries that the program would not take from an object that is several ([`several`]).
pub fn make(arguments: &Arguments, lib: &Path, alone: &[&CStr]) -> Result<Plan> {
    let searched: Vec<PathBuf> = set("LD_LIBRARY_PATH").iter().flat_map(std::env::split_paths).collect();
    let mut preload = preload(arguments, lib, alone)?;
    let mut unclaimed = None;
    if !arguments.no_claims {
        match claimed(arguments, lib, alone, &searched) {
            Ok(objects) => preload.extend(objects),
            Err(why) => unclaimed = Some(format!("{why:#}")),
        }
    }
    let mut variables = loader_variables(&preload, lib, searched)?;
    variables.extend(tools::search_path().map(|path| ("PATH", path)));
    variables.extend(tools::cuda_root());
    variables.extend(tools::xla_flags());
    let for_libraries = [
        // Triton asks `ldconfig -p` otherwise, Numba takes the first of a list of folders.
        ("TRITON_LIBCUDA_PATH", lib.into()),
        ("NUMBA_CUDA_DRIVER", preload[0].clone().into()),
    ];
    for (name, value) in for_libraries.into_iter().chain(tools::variables()) {
        if std::env::var_os(name).is_none() {
            variables.push((name, value));
        }
    }
    for (name, value) in [
        ("CUDAWAY_DEVICE", &arguments.device),
        ("CUDAWAY_LOG", &arguments.log),
        ("CUDAWAY_LOG_FILE", &arguments.log_file),
    ] {
        variables.extend(value.clone().map(|value| (name, value)));
    }
    if !arguments.hooks.is_empty() {
        let names = arguments.hooks.iter().filter_map(ValueEnum::to_possible_value);
        let names: Vec<String> = names.map(|name| name.get_name().to_owned()).collect();
        variables.push(("CUDAWAY_HOOKS", names.join(",").into()));
    }
    if arguments.audit {
        let theirs = set("LD_AUDIT");
        let auditors = [ours(lib, "libcudaway_audit.so")?].into_iter();
        let auditors = std::env::join_paths(auditors.chain(theirs.iter().flat_map(std::env::split_paths)));
        variables.push(("LD_AUDIT", auditors.context("our folder's name cannot stand in LD_AUDIT")?));
    }
    let parts = loader::names::ALL.into_iter().filter(|name| !loader::names::is_preloaded(name));
    let parts = parts.filter_map(|name| file(arguments, lib, alone, name)).collect();
    Ok(Plan { preload, parts, unclaimed, variables })
}

/// What the user has set, if there is something in it.
fn set(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

fn ours(lib: &Path, name: &str) -> Result<PathBuf> {
    let path = lib.join(name);
    ensure!(path.exists(), "{} is missing; --lib DIR says where our objects are", path.display());
    Ok(path)
}

/// What is preloaded of ours for a library.
fn file(arguments: &Arguments, lib: &Path, alone: &[&CStr], name: &CStr) -> Option<PathBuf> {
    // The auditor leads each name to the library of that name in `lib`.
    let is_alone = arguments.audit || alone.contains(&name);
    let several = if is_alone { None } else { several(lib, name) };
    several.or_else(|| Some(lib.join(name.to_string_lossy().as_ref())).filter(|path| path.exists()))
}

/// The driver first: what the others need is then in the process.
fn preload(arguments: &Arguments, lib: &Path, alone: &[&CStr]) -> Result<Vec<PathBuf>> {
    ours(lib, &loader::names::DRIVER.to_string_lossy())?;
    let mut preload: Vec<PathBuf> = Vec::new();
    for path in loader::names::ALL
        .into_iter()
        .filter(|name| loader::names::is_preloaded(name))
        .filter_map(|name| file(arguments, lib, alone, name))
    {
        if !preload.contains(&path) {
            preload.push(path);
        }
    }
    if !arguments.hooks.is_empty() {
        preload.push(ours(lib, "libcudaway_hooks.so")?);
    }
    Ok(preload)
}

/// The objects that claim names.
fn claimed(arguments: &Arguments, lib: &Path, alone: &[&CStr], searched: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let claims = claims::names(lib, &arguments.claim, searched);
    let file = |name: &CStr| file(arguments, lib, alone, name).unwrap_or_default();
    claims::objects(&claims, &arguments.claim, file, config::get().cache_dir.as_deref())
}

/// The object that is this library and others of its major: `preload/libcudart.so.12`, for which the others' names are links
/// there. It costs a program that starts less than the libraries do, and answers all that it loads; but to the names that stand
/// in the program's own file it answers only after the loader has looked into the program's `RPATH`, but for its SONAME.
fn several(lib: &Path, name: &CStr) -> Option<PathBuf> {
    let folder = lib.join("preload");
    let name = name.to_string_lossy();
    let is_it = |(runtime, links): &&(&str, &[&str])| *runtime == name || links.contains(&&*name);
    let (runtime, links) = loader::names::PRELOADED.iter().find(is_it)?;
    // In a tree without links it has one name alone.
    let is_several = folder.join(&*name).exists() && links.iter().any(|link| folder.join(link).exists());
    // Of a folder that cannot stand in LD_PRELOAD the loader would only take names, which are those in `lib`.
    Some(folder.join(runtime)).filter(|path| is_several && path.exists() && stands_in_preload(path))
}

/// What stands in LD_PRELOAD ends at a blank or a colon.
fn stands_in_preload(path: &Path) -> bool {
    !path.as_os_str().as_bytes().iter().any(|byte| b" \t\n:".contains(byte))
}

/// What the loader reads, with the user's own behind ours.
fn loader_variables(
    preload: &[PathBuf],
    lib: &Path,
    searched: Vec<PathBuf>,
) -> Result<Vec<(&'static str, OsString)>> {
    // A file's name alone is looked for in LD_LIBRARY_PATH (after the program's own RPATH: the check tells when that has
    // another file of the name).
    let mut folders = vec![lib.to_path_buf()];
    let mut words: Vec<OsString> = Vec::new();
    for path in preload {
        if stands_in_preload(path) {
            words.push(path.clone().into());
            continue;
        }
        let (folder, name) = (path.parent().context("a file")?, path.file_name().context("a file")?);
        words.push(name.to_owned());
        if !folders.iter().any(|it| it == folder) {
            folders.push(folder.to_path_buf());
        }
    }
    // Ours once, when a program in front of which we are is started by `cudaway run` again.
    let theirs = set("LD_PRELOAD").unwrap_or_default();
    for word in theirs.as_bytes().split(|byte| b" :".contains(byte)).filter(|word| !word.is_empty()) {
        if !words.iter().any(|it| it.as_bytes() == word) {
            words.push(OsStr::from_bytes(word).to_owned());
        }
    }
    // Behind what the user names: who has NVIDIA's library of these has it.
    let last = lib.join(REFUSED);
    folders.extend(searched.into_iter().filter(|it| it != lib && *it != last));
    folders.extend(Some(last).filter(|it| it.is_dir()));
    let folders =
        std::env::join_paths(folders).context("our folder's name cannot stand in LD_LIBRARY_PATH")?;
    Ok(vec![("LD_LIBRARY_PATH", folders), ("LD_PRELOAD", words.join(OsStr::new(":")))])
}

impl Plan {
    /// For programs: `cudaway.activate()` of our Python package does in its process what it reads here.
    pub fn json(&self, findings: &[Finding]) -> Value {
        let finding = |finding: &Finding| json!({ "reached": finding.leaves_us(), "why": finding.why() });
        let text = |text: &OsStr| text.to_string_lossy().into_owned();
        let texts = |paths: &[PathBuf]| paths.iter().map(|path| text(path.as_os_str())).collect::<Vec<_>>();
        json!({
            "reached": findings.iter().all(Finding::leaves_us),
            "findings": findings.iter().map(finding).collect::<Vec<_>>(),
            "unclaimed": self.unclaimed,
            "preload": texts(&self.preload),
            "parts": texts(&self.parts),
            "variables": self.variables.iter().map(|(name, value)| (*name, text(value))).collect::<BTreeMap<_, _>>(),
        })
    }

    /// The line a shell would take for the same start.
    pub fn command_line(&self, command: &[OsString]) -> String {
        let variables = self.variables.iter().map(|(name, value)| format!("{name}={}", quoted(value)));
        let words = command.iter().map(|word| quoted(word));
        std::iter::once("env".to_owned()).chain(variables).chain(words).collect::<Vec<_>>().join(" ")
    }
}

fn quoted(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "%+,-./:=@_".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.into_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_that_refuse_are_found_behind_all_others() {
        let lib = tempfile::tempdir().unwrap();
        let refused = lib.path().join(REFUSED);
        let searched = |folders: &[&Path]| {
            let folders = folders.iter().map(|folder| folder.to_path_buf()).collect();
            let variables = loader_variables(&[], lib.path(), folders).unwrap();
            let (_, value) = variables.into_iter().find(|(name, _)| *name == "LD_LIBRARY_PATH").unwrap();
            std::env::split_paths(&value).collect::<Vec<_>>()
        };
        let theirs = Path::new("/opt/nccl/lib");
        assert_eq!(searched(&[theirs]), [lib.path(), theirs], "a tree without them");
        std::fs::create_dir(&refused).unwrap();
        assert_eq!(searched(&[theirs]), [lib.path(), theirs, &refused]);
        // A program that `cudaway run` started starts another by it.
        assert_eq!(searched(&[lib.path(), &refused, theirs]), [lib.path(), theirs, &refused]);
    }

    #[test]
    fn a_shell_reads_the_words_back() {
        for word in ["a b", "it's", "$HOME", "", "-x=1", "a\nb"] {
            let script = format!("printf %s {}", quoted(OsStr::new(word)));
            let output = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
            assert_eq!(output.stdout, word.as_bytes(), "{script}");
        }
    }
}
