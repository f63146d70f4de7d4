//! Many kernels in one LLVM module, so that the tools start once, and the tools.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use compiler::gcn::Code;

/// The kernels' texts as one module, in which the kernel at index n is called `k<n>`.
pub fn merged(codes: &[&Code]) -> String {
    let mut text = "target triple = \"amdgcn-amd-amdhsa\"\n".to_owned();
    let mut declarations = BTreeSet::new();
    for (n, code) in codes.iter().enumerate() {
        for line in code.text.lines() {
            if line.starts_with("target triple") || line.starts_with('!') {
                continue;
            }
            let line = line.replace(&format!("@\"{}\"", code.symbol), &format!("@k{n}"));
            let line = line.replace("@cudaway_shared", &format!("@k{n}_shared"));
            let line = line.replace("@f", &format!("@k{n}_f"));
            let line = line.replace("@cudaway_malloc", &format!("@k{n}_malloc"));
            let line = line.replace("@cudaway_wide", &format!("@k{n}_wide"));
            let line = line.replace("@cudaway_free", &format!("@k{n}_free"));
            let line = renumbered(&line, n);
            if line.starts_with("declare") {
                declarations.insert(line);
            } else {
                text += &line;
                text += "\n";
            }
        }
    }
    for declaration in declarations {
        text += &declaration;
        text += "\n";
    }
    text + "!llvm.module.flags = !{!0}\n!0 = !{i32 1, !\"amdgpu_code_object_version\", i32 400}\n"
}

/// The PTX files of a folder and of those below it, in order.
#[allow(dead_code, reason = "the textures' test has no files")]
pub fn ptx_files(folder: &Path) -> Vec<PathBuf> {
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = paths
        .flat_map(|path| if path.is_dir() { ptx_files(&path) } else { vec![path] })
        .filter(|path| path.extension().is_some_and(|e| e == "ptx"))
        .collect();
    files.sort();
    files
}

/// Attribute groups have numbers.
fn renumbered(line: &str, n: usize) -> String {
    let group = |old: usize| format!("#{}", 3 * n + old);
    if let Some(rest) = line.strip_prefix("attributes #") {
        let (old, rest) = rest.split_once(' ').expect("a group is defined");
        return format!("attributes {} {rest}", group(old.parse().expect("a number")));
    }
    match line.strip_suffix(" {").and_then(|it| it.rsplit_once(" #")) {
        Some((before, old)) if line.starts_with("define") => {
            format!("{before} {} {{", group(old.parse().expect("a number")))
        }
        _ => line.to_owned(),
    }
}

/// Makes a code object of LLVM IR text with Debian's LLVM 19.
pub fn code_object(folder: &Path, name: &str, text: &str, processor: &str) -> PathBuf {
    let at = |extension: &str| folder.join(format!("{name}.{extension}"));
    std::fs::write(at("ll"), text).unwrap();
    let cpu = format!("-mcpu={processor}");
    tool("llc-19", &[&cpu, "-O2", "-filetype=obj", &path(&at("ll")), "-o", &path(&at("o"))]);
    tool("ld.lld-19", &["-shared", "--no-undefined", &path(&at("o")), "-o", &path(&at("hsaco"))]);
    at("hsaco")
}

pub fn path(path: &Path) -> String {
    path.to_str().expect("paths are UTF-8").to_owned()
}

/// What a tool prints; it must succeed.
pub fn tool(name: &str, args: &[&str]) -> String {
    let output = Command::new(name).args(args).output().unwrap_or_else(|error| panic!("{name}: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name} {}: {errors}", args.join(" "));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
