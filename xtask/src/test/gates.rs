//! What the laid-out objects look like from outside: names, versions, needed libraries, hardening.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};
use testkit::Installed;

use super::report::Report;
use crate::build::{gate, objects};
use crate::{dist, setup};

/// All that a program's process must have anyway.
const NEEDED: &[&str] = &["libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "ld-linux-x86-64.so.2"];

const CUDARTS: &[&str] = &["libcudart.so.11.0", "libcudart.so.12", "libcudart.so.13"];

pub fn run(installed: &Installed, report: &mut Report) {
    let lib = installed.lib();
    report.note("libcuda.so.1 has its SONAME", soname(&lib.join("libcuda.so.1"), "libcuda.so.1"));
    report.note("libcuda.so.1 exports every driver name and nothing else", driver_names(lib));
    report.note("libcuda.so.1 has unversioned names and the node CUDAWAY_0.1", driver_versions(lib));
    for cudart in CUDARTS {
        let path = lib.join(cudart);
        report.note(&format!("{cudart} has its SONAME"), soname(&path, cudart));
        report.note(
            &format!("{cudart} exports its major's names on its own node"),
            runtime_names(&path, cudart),
        );
    }
    for object in [
        "libcuda.so.1",
        "libcudart.so.11.0",
        "libcudart.so.12",
        "libcudart.so.13",
        "libcudaway_cudart.so",
        "libcudaway_hooks.so",
        "libcudaway_audit.so",
    ] {
        let path = lib.join(object);
        report.note(&format!("{object} needs only the C library's family"), needed(&path));
        report.note(&format!("{object} is hardened: relro, now, no undefined name"), hardened(&path));
    }
    match glibc() {
        Ok(glibc) => {
            for object in objects() {
                let oldest = dist::oldest_glibc(object.name).glibc;
                let shown = object.path(Path::new(""));
                let name = format!("{} asks for nothing that came after glibc {oldest}", shown.display());
                report.note(&name, glibc_has_all(&glibc, &object.path(lib), oldest));
            }
        }
        Err(error) => report.note("what each glibc has", Err(error)),
    }
    report.note(
        "libcudaway_cpu.so is hardened and shows no LLVM name",
        provider(&lib.join("libcudaway_cpu.so")),
    );
}

fn tool(program: &str, args: &[&str], path: &Path) -> Result<String> {
    let out =
        Command::new(program).args(args).arg(path).env("LC_ALL", "C").output().context(program.to_owned())?;
    ensure!(out.status.success(), "{program} {}: {}", path.display(), String::from_utf8_lossy(&out.stderr));
    Ok(String::from_utf8_lossy(&out.stdout).into_owned())
}

/// The bracketed values of one tag of the dynamic section.
fn dynamic(path: &Path, tag: &str) -> Result<Vec<String>> {
    let text = tool("readelf", &["-dW"], path)?;
    let lines = text.lines().filter(|line| line.contains(tag));
    Ok(lines.filter_map(|line| Some(line.split_once('[')?.1.split_once(']')?.0.to_owned())).collect())
}

fn soname(path: &Path, expected: &str) -> Result<()> {
    let found = dynamic(path, "(SONAME)")?;
    ensure!(found == [expected], "SONAME is {found:?}");
    Ok(())
}

/// Defined dynamic names, versions included (`name@@node`), of functions and data.
fn defined(path: &Path) -> Result<Vec<String>> {
    let text = tool("nm", &["-D", "--defined-only"], path)?;
    let rows = text.lines().filter_map(|line| {
        let mut fields = line.split_whitespace().rev();
        let (name, kind) = (fields.next()?, fields.next()?);
        (kind != "A").then(|| name.to_owned())
    });
    Ok(rows.collect())
}

/// Names listed in tools/data, one a line; `#` opens a comment, and what follows a name is facts about it.
fn listed(path: &Path) -> Result<BTreeSet<String>> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    Ok(rows.filter_map(|line| line.split_whitespace().next()).map(|name| bare(name).to_owned()).collect())
}

fn driver_names(lib: &Path) -> Result<()> {
    let expected = listed(&setup::root().join("tools/data/cuda_driver_exports.txt"))?;
    ensure!(expected.len() == 729, "tools/data lists {} names, not 729", expected.len());
    let found: BTreeSet<String> =
        defined(&lib.join("libcuda.so.1"))?.iter().map(|name| bare(name).to_owned()).collect();
    let missing: Vec<&String> = expected.difference(&found).collect();
    // Our own API is the only addition; a libc name here would change the whole process.
    let own = listed(&setup::root().join("tools/data/cudaway_exports.txt"))?;
    let extra: Vec<&String> = found.difference(&expected).filter(|name| !own.contains(*name)).collect();
    ensure!(missing.is_empty() && extra.is_empty(), "missing {missing:?}, too much {extra:?}");
    Ok(())
}

fn driver_versions(lib: &Path) -> Result<()> {
    let path = lib.join("libcuda.so.1");
    let versioned: Vec<String> = defined(&path)?.into_iter().filter(|name| name.contains('@')).collect();
    ensure!(versioned.is_empty(), "{} names have versions, such as {}", versioned.len(), versioned[0]);
    ensure!(tool("readelf", &["-VW"], &path)?.contains("CUDAWAY_0.1"), "the node CUDAWAY_0.1 is missing");
    Ok(())
}

fn runtime_names(path: &Path, node: &str) -> Result<()> {
    let found = defined(path)?;
    let suffix = format!("@@{node}");
    if let Some(name) = found.iter().find(|name| !name.ends_with(&suffix)) {
        bail!("{name} is not on {node}");
    }
    let major = node.trim_start_matches("libcudart.so.").split('.').next().unwrap_or_default();
    let list = setup::root().join(format!("tools/data/cuda/cudart_exports_{major}.txt"));
    let expected = listed(&list)?;
    let found: BTreeSet<String> = found.iter().map(|name| bare(name).to_owned()).collect();
    let missing: Vec<&String> = expected.difference(&found).collect();
    let extra: Vec<&String> = found.difference(&expected).collect();
    ensure!(missing.is_empty() && extra.is_empty(), "missing {missing:?}, too much {extra:?}");
    ensure!(expected.len() > 390, "{} lists only {} names", list.display(), expected.len());
    Ok(())
}

fn needed(path: &Path) -> Result<()> {
    let found = dynamic(path, "(NEEDED)")?;
    let other: Vec<&String> = found.iter().filter(|name| !NEEDED.contains(&name.as_str())).collect();
    ensure!(other.is_empty(), "it needs {other:?} too");
    Ok(())
}

/// The releases of glibc, as numbers, in which each of its names has a version, by this machine's.
type Glibc = Vec<(String, Vec<u32>)>;

fn glibc() -> Result<Glibc> {
    /// What old glibcs link into every program, and have in no library.
    const OF_EVERY_PROGRAM: [&str; 9] =
        ["stat", "stat64", "fstat", "fstat64", "fstatat", "fstatat64", "lstat", "lstat64", "mknod"];
    let folder = testkit::temporary()?;
    let stand_ins = folder.path().join("newer_glibc.o");
    dist::sysroot::compile_newer_glibc(&stand_ins)?;
    let stand_ins = tool("nm", &["--defined-only"], &stand_ins)?;
    let stand_ins = stand_ins.lines().filter_map(|line| line.split_whitespace().last());
    let mut names: Glibc =
        stand_ins.chain(OF_EVERY_PROGRAM).map(|name| (name.to_owned(), Vec::new())).collect();
    for library in ["libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"] {
        let defined = defined(&Path::new("/lib/x86_64-linux-gnu").join(library))?;
        names.extend(defined.iter().filter_map(|name| {
            let (name, version) = name.split_once('@')?;
            let release = gate::release(version.trim_start_matches('@').strip_prefix("GLIBC_")?)?;
            Some((name.to_owned(), release))
        }));
    }
    Ok(names)
}

/// Whether the archives, which are linked against an `oldest` glibc, can have the object: each name that it asks for was there
/// before, under another version or the same.
fn glibc_has_all(glibc: &Glibc, path: &Path, oldest: &str) -> Result<()> {
    let limit = gate::release(oldest).context("a release of glibc")?;
    let had = glibc.iter().filter(|(_, release)| *release <= limit).map(|(name, _)| name.as_str());
    let had: BTreeSet<&str> = had.collect();
    // Not those that are asked for with `w`, which may be missing.
    let asked = tool("nm", &["-D", "--undefined-only"], path)?;
    let asked = asked.lines().filter_map(|line| line.trim_start().strip_prefix("U "));
    let newer: Vec<&str> = asked.filter(|name| !had.contains(bare(name))).collect();
    ensure!(newer.is_empty(), "it asks for {newer:?}");
    Ok(())
}

fn hardened(path: &Path) -> Result<()> {
    let segments = tool("readelf", &["-lW"], path)?;
    ensure!(segments.contains("GNU_RELRO"), "there is no GNU_RELRO segment");
    let stack =
        segments.lines().find(|line| line.contains("GNU_STACK")).context("there is no GNU_STACK segment")?;
    ensure!(!stack.contains("RWE"), "the stack is executable");
    let dynamic = tool("readelf", &["-dW"], path)?;
    ensure!(dynamic.contains("NOW"), "symbols are bound lazily");
    ensure!(!dynamic.contains("TEXTREL"), "code is relocated");
    // `-z defs` seen from outside: the loader finds every name in the libraries that are needed.
    let unresolved = Command::new("ldd").arg("-r").arg(path).env("LC_ALL", "C").output().context("ldd")?;
    let said = String::from_utf8_lossy(&unresolved.stdout).into_owned()
        + &String::from_utf8_lossy(&unresolved.stderr);
    ensure!(!said.contains("undefined symbol") && !said.contains("not found"), "ldd -r says:\n{said}");
    Ok(())
}

fn provider(path: &Path) -> Result<()> {
    hardened(path)?;
    let llvm: Vec<String> = defined(path)?
        .into_iter()
        .filter(|name| name.starts_with("LLVM") || name.starts_with("_ZN4llvm"))
        .collect();
    ensure!(llvm.is_empty(), "{} LLVM names are exported, such as {}", llvm.len(), llvm[0]);
    Ok(())
}

fn bare(name: &str) -> &str {
    name.split('@').next().unwrap_or(name)
}
