//! The map of docs/architecture.md, compared with what Cargo says: arrows go down only.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;

/// One line of the map a row, top first: a crate uses only crates of rows below its own.
const MAP: &[&[&str]] = &[
    &["xtask"],
    &["testkit"],
    &["libcuda", "libcudart", "libcudart-11", "libcudart-12", "libcudart-13", "libcudaway-cpu"],
    &["driver", "runtime", "hip-cpu", "interpose"],
    &["compiler"],
    &["ptx", "fatbin", "cache"],
    &["hip-sys"],
    &["cuda-abi", "config", "beside"],
];

/// Arrows that point down and are wrong all the same, with the reason.
const NEVER: &[(&str, &str, &str)] = &[
    ("libcuda", "hip-cpu", "the CPU device is opened like ROCm is"),
    ("libcuda", "compiler", "only the provider compiles"),
    ("libcudart", "driver", "the runtime reaches the driver through libcuda.so.1 only"),
    ("libcudart", "hip-sys", "the runtime knows no device"),
    ("runtime", "hip-sys", "the runtime knows no device"),
];

fn row(name: &str) -> Option<usize> {
    MAP.iter().position(|row| row.contains(&name))
}

fn workspace() -> BTreeMap<String, Vec<(String, bool)>> {
    let out = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--no-deps", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo metadata");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let metadata: Value = serde_json::from_slice(&out.stdout).expect("JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    let edges = |package: &Value| {
        let dependencies = package["dependencies"].as_array().expect("dependencies");
        let own = dependencies.iter().filter(|dependency| dependency["path"].is_string());
        own.map(|dependency| (dependency["name"].as_str().unwrap().to_owned(), dependency["kind"] == "dev"))
            .collect()
    };
    packages.iter().map(|package| (package["name"].as_str().unwrap().to_owned(), edges(package))).collect()
}

#[test]
fn every_crate_is_on_the_map() {
    let missing: Vec<String> = workspace().into_keys().filter(|name| row(name).is_none()).collect();
    assert!(missing.is_empty(), "not on the map: {missing:?}");
}

#[test]
fn arrows_go_down_only() {
    let mut wrong = Vec::new();
    for (name, edges) in workspace() {
        for (to, dev) in edges {
            // Any crate's tests may run real programs.
            if dev && to == "testkit" {
                continue;
            }
            if row(&name) >= row(&to) {
                wrong.push(format!("{name} -> {to}"));
            }
            if let Some((.., why)) =
                NEVER.iter().find(|(from, never, _)| *from == name && *never == to && !dev)
            {
                wrong.push(format!("{name} -> {to}: {why}"));
            }
        }
    }
    assert!(wrong.is_empty(), "arrows that do not go down:\n  {}", wrong.join("\n  "));
}
