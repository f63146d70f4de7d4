//! Whose code is in the objects: `THIRD-PARTY-NOTICES.txt` with every licence, and `cudaway.cdx.json`, a bill of materials
//! (CycloneDX 1.5).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};
use serde::Deserialize;
use serde_json::json;

use crate::build::{PROGRAMS, objects};
use crate::setup;

/// Debian packages whose static libraries are linked into libcudaway_cpu.so; of libgcc-12-dev, into all.
const STATIC: &[&str] = &[
    "libgcc-12-dev",
    "llvm-19-dev",
    "libstdc++-12-dev",
    "zlib1g-dev",
    "libzstd-dev",
    "libtinfo-dev",
    "libxml2-dev",
];

/// Rust's standard library and what is in it, with their licences, as Rust's project writes them.
const STANDARD_LIBRARY: &str = "RUST-STANDARD-LIBRARY-NOTICES.html";

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Crate>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Crate {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    /// None for ours.
    source: Option<String>,
    manifest_path: String,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    pkg: String,
    dep_kinds: Vec<Kind>,
}

#[derive(Deserialize)]
struct Kind {
    /// None: not for tests, nor for build scripts.
    kind: Option<String>,
}

pub fn add(tree: &Path) -> Result<()> {
    let crates = foreign_crates()?;
    let packages = STATIC.iter().map(|name| Ok((*name, version_of(name)?))).collect::<Result<Vec<_>>>()?;
    fs::write(tree.join("THIRD-PARTY-NOTICES.txt"), notices(&crates, &packages)?)?;
    fs::write(tree.join("cudaway.cdx.json"), bill(&crates, &packages, &rust_release()?)?)?;
    let sysroot = setup::said(Command::new("rustc").args(["--print", "sysroot"]))?;
    let library = Path::new(&sysroot).join("share/doc/rust/COPYRIGHT-library.html");
    fs::copy(&library, tree.join(STANDARD_LIBRARY)).with_context(|| library.display().to_string())?;
    Ok(())
}

/// `1.95.0`
fn rust_release() -> Result<String> {
    let said = setup::said(Command::new("rustc").arg("--version"))?;
    Ok(said.split(' ').nth(1).context("rustc has no version")?.to_owned())
}

/// The crates of others that end up in our objects.
fn foreign_crates() -> Result<Vec<Crate>> {
    let mut metadata = setup::cargo();
    metadata.args([
        "metadata",
        "--format-version",
        "1",
        "--locked",
        "--filter-platform",
        "x86_64-unknown-linux-gnu",
    ]);
    let metadata = setup::said(&mut metadata)?;
    let metadata: Metadata = serde_json::from_str(&metadata)?;
    let nodes: BTreeMap<&str, &Node> =
        metadata.resolve.nodes.iter().map(|node| (node.id.as_str(), node)).collect();
    let shipped = |name: &str| {
        objects()
            .iter()
            .map(|object| object.package)
            .chain(PROGRAMS.iter().map(|program| program.package))
            .any(|own| own == name)
    };
    let mut queue: Vec<&str> = metadata
        .packages
        .iter()
        .filter(|package| package.source.is_none() && shipped(&package.name))
        .map(|package| package.id.as_str())
        .collect();
    let mut reached = BTreeSet::new();
    while let Some(id) = queue.pop() {
        if reached.insert(id.to_owned()) {
            let of_objects =
                |dependency: &&Dependency| dependency.dep_kinds.iter().any(|kind| kind.kind.is_none());
            let node = nodes.get(id).context("cargo metadata has no node for a package")?;
            queue.extend(node.deps.iter().filter(of_objects).map(|dependency| dependency.pkg.as_str()));
        }
    }
    let mut crates: Vec<Crate> = metadata.packages;
    crates.retain(|package| package.source.is_some() && reached.contains(&package.id));
    crates.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
    Ok(crates)
}

fn version_of(package: &str) -> Result<String> {
    setup::said(Command::new("dpkg-query").args(["-W", "-f", "${Version}", package]))
}

fn notices(crates: &[Crate], packages: &[(&str, String)]) -> Result<String> {
    let mut text = format!(
        "Code of others in CUDAway's objects and programs, and its licences.\nThose of Rust's standard library are in {STANDARD_LIBRARY}.\n"
    );
    for package in crates {
        let license = package.license.as_deref().unwrap_or("see below");
        write!(
            text,
            "\n{0}\n{1} {2} (crates.io): {license}\n{0}\n",
            "=".repeat(80),
            package.name,
            package.version
        )?;
        let folder = Path::new(&package.manifest_path).parent().context("a crate's folder")?;
        for (name, license) in license_texts(folder)? {
            write!(text, "\n--- {name}\n\n{license}")?;
        }
    }
    for (name, version) in packages {
        let copyright = fs::read_to_string(Path::new("/usr/share/doc").join(name).join("copyright"))
            .with_context(|| format!("the copyright file of {name}"))?;
        write!(
            text,
            "\n{0}\n{name} {version} (Debian), in libcudaway_cpu.so\n{0}\n\n{copyright}",
            "=".repeat(80)
        )?;
    }
    Ok(text)
}

fn license_texts(folder: &Path) -> Result<Vec<(String, String)>> {
    let mut texts = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_license = ["LICENSE", "LICENCE", "COPYING", "NOTICE", "COPYRIGHT", "UNLICENSE"]
            .iter()
            .any(|start| name.to_uppercase().starts_with(start));
        if is_license && entry.path().is_file() {
            texts.push((name, fs::read_to_string(entry.path())?));
        }
    }
    texts.sort();
    Ok(texts)
}

fn bill(crates: &[Crate], packages: &[(&str, String)], rust: &str) -> Result<String> {
    let library = json!({
        "type": "library",
        "name": "rust-std",
        "version": rust,
        "licenses": [{ "expression": "MIT OR Apache-2.0" }],
    });
    let of_crates = crates.iter().map(|package| {
        json!({
            "type": "library",
            "name": package.name,
            "version": package.version,
            "purl": format!("pkg:cargo/{}@{}", package.name, package.version),
            "licenses": package.license.iter().map(|license| json!({ "expression": license.replace('/', " OR ") })).collect::<Vec<_>>(),
        })
    });
    let of_packages = packages.iter().map(|(name, version)| {
        json!({
            "type": "library",
            "name": name,
            "version": version,
            "purl": format!("pkg:deb/debian/{name}@{version}"),
        })
    });
    let bill = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": { "component": { "type": "application", "name": "CUDAway", "version": env!("CARGO_PKG_VERSION") } },
        "components": std::iter::once(library).chain(of_crates).chain(of_packages).collect::<Vec<_>>(),
    });
    Ok(format!("{}\n", serde_json::to_string_pretty(&bill)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bill_has_what_is_in_the_objects_and_no_tool_of_the_tests() {
        let names: Vec<String> = foreign_crates().unwrap().into_iter().map(|package| package.name).collect();
        for shipped in ["parking_lot", "llvm-sys", "clap"] {
            assert!(names.iter().any(|name| name == shipped), "{shipped} is missing: {names:?}");
        }
        for tool in ["criterion", "proptest", "compiler"] {
            assert!(!names.iter().any(|name| name == tool), "{tool} is not shipped, or ours");
        }
        let bound = foreign_crates().unwrap().into_iter().filter(|package| {
            let license = package.license.as_deref().unwrap_or_default();
            license.contains("GPL") && !license.contains(" OR ")
        });
        let bound: Vec<String> = bound.map(|package| package.name).collect();
        assert!(bound.is_empty(), "a licence that asks for more than its text beside the objects: {bound:?}");
        assert!(version_of("llvm-19-dev").unwrap().contains("19."));
    }
}
