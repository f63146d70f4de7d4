//! A crate uses only crates below its own line (docs/architecture.md); compared with what Cargo sees.

use std::collections::BTreeMap;
use std::process::Command;

use crate::setup::root;

/// Top to bottom.
const LINES: &[&[&str]] = &[
    &["xtask"],
    &["testkit"],
    &["libcuda", "libcudart", "libcudart-11", "libcudart-12", "libcudart-13", "libcudaway-cpu"],
    &["driver", "runtime", "hip-cpu", "interpose"],
    &["compiler"],
    &["ptx", "fatbin", "cache"],
    &["cuda-abi", "hip-sys"],
    &["config", "beside"],
];

/// Normal and build dependencies; tests may reach anywhere.
fn edges() -> BTreeMap<String, Vec<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let ours: Vec<&str> = packages.iter().map(|package| package["name"].as_str().unwrap()).collect();
    packages
        .iter()
        .map(|package| {
            let needs = package["dependencies"]
                .as_array()
                .unwrap()
                .iter()
                .filter(|dependency| dependency["kind"].as_str() != Some("dev"))
                .map(|dependency| dependency["name"].as_str().unwrap().to_owned())
                .filter(|name| ours.contains(&name.as_str()))
                .collect();
            (package["name"].as_str().unwrap().to_owned(), needs)
        })
        .collect()
}

fn line(name: &str) -> usize {
    LINES
        .iter()
        .position(|line| line.contains(&name))
        .unwrap_or_else(|| panic!("say in {} on which line {name} lies", file!()))
}

#[test]
fn a_crate_uses_only_crates_below_its_own_line() {
    for (name, needs) in edges() {
        for need in needs {
            assert!(line(&need) > line(&name), "{name} must not use {need}");
        }
    }
}

/// Two shared objects never share Rust statics: the runtime reaches the driver through its C exports only.
#[test]
fn the_runtime_does_not_link_the_driver() {
    let edges = edges();
    let mut reached = vec!["runtime".to_owned()];
    let mut at = 0;
    while at < reached.len() {
        for need in &edges[&reached[at]] {
            if !reached.contains(need) {
                reached.push(need.clone());
            }
        }
        at += 1;
    }
    for stranger in ["driver", "compiler", "ptx", "hip-sys", "hip-cpu", "interpose"] {
        assert!(!reached.iter().any(|name| name == stranger), "runtime reaches {stranger}");
    }
}
