//! What a shipped object must look like to the loader, read with `readelf` from the object itself.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::{Object, PRELOAD_RPATH, Program};
use crate::codegen::{facts, library, shell};
use crate::libraries;

/// Everything an object of ours may need to start.
const ALLOWED: &[&str] =
    &["libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "ld-linux-x86-64.so.2"];

/// Objects with a few names of their own, and no other. The hooks alone have names of libc's.
const EXACT: &[(&str, &[&str])] = &[
    ("libcudaway_cudart.so", &["cudaway_runtime_majors", "cudaway_runtime_table"]),
    ("libcudaway_hooks.so", &["dlopen", "dlsym"]),
    ("libcudaway_audit.so", &["la_objsearch", "la_version"]),
];

/// One dynamic symbol that the object defines.
#[derive(Debug, PartialEq, Eq)]
struct Export {
    name: String,
    node: Option<String>,
    is_absolute: bool,
}

/// What is wrong with the object at `path`; empty when it is fit to ship.
pub fn check(object: &Object, path: &Path) -> Result<Vec<String>> {
    let dynamic = readelf("-d", path)?;
    let segments = readelf("-l", path)?;
    let versions = readelf("-V", path)?;
    let exports = exports(&readelf("--dyn-syms", path)?);

    let mut findings = loader_findings(object, &dynamic, &segments);
    if object.is_for_preload() {
        let libraries: Vec<&str> = std::iter::once(object.name).chain(object.links.iter().copied()).collect();
        findings.extend(shell_findings(&libraries, &exports)?);
    } else {
        findings.extend(export_findings(object.name, &exports, &versions)?);
    }
    Ok(findings.into_iter().map(|finding| format!("{}: {finding}", object.name)).collect())
}

/// Symbols of glibc that the object at `path` asks for and that `oldest` (`2.17`) does not have.
pub fn glibc_symbols_after(path: &Path, oldest: &str) -> Result<Vec<String>> {
    let limit = release(oldest).context("a release of glibc")?;
    let symbols = readelf("--dyn-syms", path)?;
    Ok(needed(&symbols).filter(|(_, needed)| *needed > limit).map(|(symbol, _)| symbol.to_owned()).collect())
}

/// The newest release of glibc that the object at `path` asks for a symbol of.
pub fn newest_glibc(path: &Path) -> Result<Option<Vec<u32>>> {
    let symbols = readelf("--dyn-syms", path)?;
    Ok(needed(&symbols).map(|(_, needed)| needed).max())
}

/// The symbols of glibc that an object asks for, and the release that each is of.
fn needed(symbols: &str) -> impl Iterator<Item = (&str, Vec<u32>)> {
    let undefined = symbols.lines().filter(|line| line.contains(" UND "));
    let names = undefined.filter_map(|line| line.split_whitespace().nth(7));
    names.filter_map(|symbol| Some((symbol, release(symbol.split_once("@GLIBC_")?.1)?)))
}

/// `2.17`, with or without a third number, as numbers.
pub fn release(text: &str) -> Option<Vec<u32>> {
    text.split('.').map(|number| number.parse().ok()).collect()
}

/// As [`check`], of a program: it starts everywhere, and exports nothing.
pub fn check_program(program: &Program, path: &Path) -> Result<Vec<String>> {
    let dynamic = readelf("-d", path)?;
    let segments = readelf("-l", path)?;
    let mut findings = common_findings(&dynamic, &segments, &[]);
    if !dynamic.contains("PIE") {
        findings.push("is not position-independent".to_owned());
    }
    Ok(findings.into_iter().map(|finding| format!("{}: {finding}", program.name)).collect())
}

fn readelf(option: &str, path: &Path) -> Result<String> {
    let output = Command::new("readelf")
        .args(["-W", option])
        .arg(path)
        .env("LC_ALL", "C")
        .output()
        .context("could not start readelf (package binutils)")?;
    ensure!(
        output.status.success(),
        "readelf {option} {}: {}",
        path.display(),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn bracketed<'t>(dynamic: &'t str, tag: &str) -> Vec<&'t str> {
    let tag = format!("({tag})");
    dynamic
        .lines()
        .filter(|line| line.contains(&tag))
        .filter_map(|line| line.split_once('[')?.1.split_once(']').map(|(value, _)| value))
        .collect()
}

fn loader_findings(object: &Object, dynamic: &str, segments: &str) -> Vec<String> {
    let own_names = if object.is_for_preload() { &object.links[..] } else { &[] };
    let mut findings = common_findings(dynamic, segments, own_names);
    let soname = bracketed(dynamic, "SONAME");
    if soname != [object.name] {
        findings.push(format!("SONAME is {soname:?}"));
    }
    if !dynamic.contains("NODELETE") {
        findings.push("not linked with -z nodelete".to_owned());
    }
    findings
}

/// What objects and programs keep to alike; `own_names` are those that an object needs of itself, found in its own folder.
fn common_findings(dynamic: &str, segments: &str, own_names: &[&str]) -> Vec<String> {
    let mut findings = Vec::new();
    let needed = bracketed(dynamic, "NEEDED");
    for needed in &needed {
        if !ALLOWED.contains(needed) && !own_names.contains(needed) {
            findings.push(format!("needs {needed}"));
        }
    }
    for name in own_names.iter().filter(|name| !needed.contains(name)) {
        findings.push(format!("does not need its own name {name}"));
    }
    if !dynamic.contains("BIND_NOW") {
        findings.push("not linked with -z now".to_owned());
    }
    // A RUNPATH would be read after LD_LIBRARY_PATH.
    let rpaths: &[&str] = if own_names.is_empty() { &[] } else { &[PRELOAD_RPATH] };
    for (tag, wanted) in [("RPATH", rpaths), ("RUNPATH", &[])] {
        let found = bracketed(dynamic, tag);
        if found != wanted {
            findings.push(format!("has the {tag} {found:?}, not {wanted:?}"));
        }
    }
    if dynamic.contains("TEXTREL") {
        findings.push("has text relocations".to_owned());
    }
    if !segments.contains("GNU_RELRO") {
        findings.push("not linked with -z relro".to_owned());
    }
    if segments.lines().any(|line| line.contains("GNU_STACK") && line.contains("RWE")) {
        findings.push("asks for an executable stack".to_owned());
    }
    findings
}

fn exports(symbols: &str) -> Vec<Export> {
    symbols
        .lines()
        .filter_map(|line| {
            // Num: Value Size Type Bind Vis Ndx Name
            let columns: Vec<&str> = line.split_whitespace().collect();
            let [_, _, _, _, bind, _, index, name, ..] = columns[..] else { return None };
            if index == "UND" || index == "Ndx" || !matches!(bind, "GLOBAL" | "WEAK") {
                return None;
            }
            let (name, node) = match name.split_once('@') {
                Some((name, node)) => (name, Some(node.trim_start_matches('@').to_owned())),
                None => (name, None),
            };
            Some(Export { name: name.to_owned(), node, is_absolute: index == "ABS" })
        })
        .collect()
}

fn export_findings(object: &str, exports: &[Export], versions: &str) -> Result<Vec<String>> {
    let mut findings = Vec::new();
    let names: BTreeSet<&str> = exports.iter().map(|export| export.name.as_str()).collect();
    let mut must = |wanted: &BTreeSet<String>, extra_is_fine: &dyn Fn(&str) -> bool| {
        let missing: Vec<&String> = wanted.iter().filter(|name| !names.contains(name.as_str())).collect();
        if !missing.is_empty() {
            findings.push(format!("{} names are not exported: {missing:?}", missing.len()));
        }
        let extra: Vec<&&str> =
            names.iter().filter(|name| !wanted.contains(**name) && !extra_is_fine(name)).collect();
        if !extra.is_empty() {
            findings.push(format!("exports what it must not: {extra:?}"));
        }
    };
    if object == "libcuda.so.1" {
        let wanted = facts::driver_list()?.into_iter().map(|(name, ..)| name).collect();
        let own = own_names("tools/data/cudaway_exports.txt")?;
        must(&wanted, &|name| own.contains(name));
        if !versions.contains("Name: CUDAWAY_0.1") {
            findings.push("has no node CUDAWAY_0.1".to_owned());
        }
        // Versioned exports would tie programs linked against us to us.
        if let Some(export) = exports.iter().find(|export| export.node.is_some()) {
            findings.push(format!("{} is on node {:?}, not on the base version", export.name, export.node));
        }
    } else if shell(object)?.is_some() {
        return shell_findings(&[object], exports);
    } else if let Some(wanted) = library::exported(object)? {
        must(&wanted, &|_| false);
    } else if object == "libnvidia-ml.so.1" {
        must(&facts::nvml()?.into_keys().collect(), &|_| false);
        if let Some(export) = exports.iter().find(|export| export.node.is_some()) {
            findings.push(format!("{} is on node {:?}, not on the base version", export.name, export.node));
        }
    } else if object == "libcudaway_cpu.so" {
        must(&own_names("tools/data/cudaway_cpu_exports.txt")?, &|name| name.starts_with("hip"));
    } else if let Some((_, wanted)) = EXACT.iter().find(|(name, _)| *name == object) {
        must(&wanted.iter().map(|name| (*name).to_owned()).collect(), &|_| false);
    } else {
        must(&BTreeSet::new(), &|name| {
            name.trim_start_matches('_').starts_with("hip") || name.starts_with("cudaway_")
        });
        if names.is_empty() {
            findings.push("exports nothing".to_owned());
        }
    }
    findings.extend(absolute(exports));
    Ok(findings)
}

/// The names that such a list has of CUDAway's own.
fn own_names(list: &str) -> Result<BTreeSet<String>> {
    let rows = facts::read(list)?;
    let rows = rows.lines().filter(|line| !line.starts_with('#'));
    Ok(rows.filter_map(|line| line.split_whitespace().next().map(str::to_owned)).collect())
}

fn absolute(exports: &[Export]) -> Option<String> {
    let export = exports.iter().find(|export| export.is_absolute)?;
    Some(format!("{} is absolute", export.name))
}

/// CUDAway's own exports of libraries' shells, on no node.
fn is_of_shells(name: &str) -> bool {
    ["cudaway_forward", "cudaway_backend_of"].contains(&name)
}

/// As [`export_findings`], of an object that is these libraries: the names of each on its node, and nothing else.
fn shell_findings(files: &[&str], exports: &[Export]) -> Result<Vec<String>> {
    let mut findings = Vec::new();
    let mut rest: Vec<&Export> = exports.iter().collect();
    for library in files {
        let (names, node) = shell(library)?.with_context(|| format!("no library {library}"))?;
        let (on_node, others): (Vec<_>, Vec<_>) =
            rest.into_iter().partition(|export| export.node.as_deref() == Some(&node));
        let found: BTreeSet<&String> = on_node.iter().map(|export| &export.name).collect();
        let wanted: BTreeSet<&String> = names.iter().collect();
        let missing: Vec<_> = wanted.difference(&found).collect();
        if !missing.is_empty() {
            findings.push(format!("{} names are not on {node}: {missing:?}", missing.len()));
        }
        let extra: Vec<_> = found.difference(&wanted).collect();
        if !extra.is_empty() {
            findings.push(format!("has on {node} what it must not: {extra:?}"));
        }
        rest = others;
    }
    let forwards = libraries::objects()
        .any(|(library, object)| library.forwards && files.contains(&object.file().as_str()));
    rest.retain(|export| !(forwards && is_of_shells(&export.name) && export.node.is_none()));
    if !rest.is_empty() {
        findings.push(format!("exports what it must not: {rest:?}"));
    }
    findings.extend(absolute(exports));
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD_DYNAMIC: &str = "\
 0x01 (NEEDED)             Shared library: [libc.so.6]
 0x0e (SONAME)             Library soname: [libcudaway_cudart.so]
 0x1e (FLAGS)              BIND_NOW
 0x6ffffffb (FLAGS_1)      Flags: NOW NODELETE
";
    const GOOD_SEGMENTS: &str = "  GNU_RELRO 0x0\n  GNU_STACK 0x0 0x0 RW 0x0\n";

    fn object(name: &str) -> &'static Object {
        crate::build::objects().iter().find(|object| object.name == name).unwrap()
    }

    #[test]
    fn a_good_object_has_no_findings() {
        assert_eq!(
            loader_findings(object("libcudaway_cudart.so"), GOOD_DYNAMIC, GOOD_SEGMENTS),
            [] as [&str; 0]
        );
    }

    #[test]
    fn each_fault_is_named() {
        let faults = GOOD_DYNAMIC
            .replace("libc.so.6", "libLLVM-19.so")
            .replace("NODELETE", "")
            .replace("BIND_NOW", "TEXTREL");
        let found = loader_findings(object("libcuda.so.1"), &faults, "  GNU_STACK 0x0 RWE\n");
        assert_eq!(found.len(), 7, "{found:?}");
    }

    #[test]
    fn an_unversioned_name_or_a_libc_name_is_found() {
        let symbols = "\
   1: 0 0 FUNC GLOBAL DEFAULT UND malloc@GLIBC_2.2.5 (2)
   2: 0 9 FUNC GLOBAL DEFAULT 12 cudaway_runtime_table
   3: 0 9 FUNC WEAK   DEFAULT 12 dlsym
   4: 0 9 FUNC LOCAL  DEFAULT 12 hidden
   5: 0 9 FUNC GLOBAL DEFAULT 12 cudaway_runtime_majors
";
        let exports = exports(symbols);
        assert_eq!(exports.len(), 3);
        let found = export_findings("libcudaway_cudart.so", &exports, "").unwrap();
        assert_eq!(found, ["exports what it must not: [\"dlsym\"]"]);
        let found = export_findings("libcudart.so.12", &exports, "").unwrap();
        assert!(found.iter().any(|finding| finding.contains("not on libcudart.so.12")), "{found:?}");
    }
}
