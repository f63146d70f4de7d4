//! That the libraries' objects and their tests stand on the same code.
//!
//! Cargo compiles a crate anew for each set of its features, and everything above it: one more feature that a dependency of the tests
//! asks for has cost minutes of matrix products and factorizations compiled twice. Who adds such a dependency names its features in
//! `crates/libraries/kit/Cargo.toml`.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, ensure};

use super::report::Report;
use super::unit::{LIBRARIES, implementations};
use crate::setup;

pub fn run(report: &mut Report) {
    report.note("libraries and their tests ask for the same features of what they stand on", check());
}

fn check() -> Result<()> {
    let tests = features(&LIBRARIES, "normal,build,dev")?;
    let mut differ = BTreeSet::new();
    for package in implementations() {
        for (name, found) in features(&[package], "normal,build")? {
            // What only the object has is not compiled twice.
            if let Some(other) = tests.get(&name).filter(|other| **other != found) {
                differ.insert(format!("{name}: {found:?} in {package}, {other:?} in tests"));
            }
        }
    }
    ensure!(differ.is_empty(), "compiled twice:\n  {}", differ.into_iter().collect::<Vec<_>>().join("\n  "));
    Ok(())
}

/// Each package below these, with all the sets of features that it is compiled with.
fn features(packages: &[&str], edges: &str) -> Result<BTreeMap<String, BTreeSet<String>>> {
    let mut command = setup::cargo();
    command.args(["tree", "--edges", edges, "--prefix", "none", "--no-dedupe", "--format", "{p}|{f}"]);
    for package in packages {
        command.args(["--package", package]);
    }
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in setup::said(setup::stay_offline(&mut command))?.lines() {
        if let Some((package, features)) = line.split_once('|') {
            found.entry(package.to_owned()).or_default().insert(features.to_owned());
        }
    }
    Ok(found)
}
