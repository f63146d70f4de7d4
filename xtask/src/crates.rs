//! What the workspace's manifests keep to: a crate uses only crates below its own line (docs/architecture.md), and
//! docs/dependencies.md has a reason for each foreign crate.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::build;
use crate::setup::root;

/// docs/architecture.md's map, top to bottom; crates of one line that use each other stand on lines of their own.
const LINES: &[&[&str]] = &[
    &["xtask"],
    &["testkit", "hip-recorder", "cli"],
    &[
        "libcuda",
        "libcudart",
        "libcudart-11",
        "libcudart-12",
        "libcudart-13",
        "preload-11",
        "preload-12",
        "preload-13",
        "libcudaway-cpu",
        "libcudaway-hooks",
        "libcudaway-audit",
        "libnvml",
        "libcublas",
        "libcudnn",
        "libcufft",
        "libcurand",
        "libcusolver",
        "libcusparse",
        "libnvjitlink",
        "libcudaway-refused",
    ],
    &[
        "driver",
        "runtime",
        "hip-cpu",
        "interpose",
        "nvml",
        "cublas",
        "cudnn",
        "cufft",
        "curand",
        "cusolver",
        "cusparse",
        "nvjitlink",
    ],
    &["compiler", "comgr", "kit"],
    &["ptx", "fatbin", "cache", "hip-null"],
    &["hip-sys", "trace", "trampoline", "border"],
    // Convolutions and factorizations are made of cuBLAS's products.
    &["cudnn-cpu", "cusolver-cpu"],
    // The tests' second opinion knows none of us.
    &["oracle"],
    &["cublas-cpu", "cufft-cpu", "curand-cpu", "cusparse-cpu"],
    &["cuda-abi", "config", "loader", "printf"],
    &["secure", "build-once"],
];

/// Arrows that point down and are wrong all the same, over however many crates, with the reason.
const NEVER: &[(&str, &[&str], &str)] = &[
    ("libcuda", &["hip-cpu"], "the CPU device is opened like ROCm is"),
    (
        "libcudart",
        &["driver", "interpose"],
        "two shared objects never share Rust statics: the driver is reached through libcuda.so.1",
    ),
    ("libcudart", &["compiler", "ptx", "hip-sys", "hip-cpu"], "the runtime knows no device"),
];

fn line(name: &str) -> usize {
    // Shells lie where the first of the shared objects lies.
    let is_shell = crate::libraries::objects().any(|(_, object)| object.package() == name);
    let name = if is_shell { "libcuda" } else { name };
    LINES
        .iter()
        .position(|line| line.contains(&name))
        .unwrap_or_else(|| panic!("say in {} on which line {name} lies", file!()))
}

/// The workspace's crates.
fn packages() -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    serde_json::from_value(metadata["packages"].take()).unwrap()
}

/// Each crate's uses of our own crates; true beside those of its tests alone.
fn edges() -> BTreeMap<String, Vec<(String, bool)>> {
    let edges = |package: &Value| -> Vec<(String, bool)> {
        let dependencies = package["dependencies"].as_array().unwrap().iter();
        dependencies
            .filter(|dependency| dependency["path"].is_string())
            .map(|dependency| (dependency["name"].as_str().unwrap().to_owned(), dependency["kind"] == "dev"))
            .collect()
    };
    packages().iter().map(|package| (package["name"].as_str().unwrap().to_owned(), edges(package))).collect()
}

#[test]
fn a_crate_uses_only_crates_below_its_own_line() {
    for (name, needs) in edges() {
        for (need, dev) in needs {
            // Any crate's tests may run real programs.
            assert!(line(&need) > line(&name) || dev && need == "testkit", "{name} must not use {need}");
        }
    }
}

#[test]
fn shared_objects_reach_each_other_through_their_c_exports_only() {
    let edges = edges();
    for (name, strangers, why) in NEVER {
        let mut reached = vec![*name];
        let mut at = 0;
        while at < reached.len() {
            for (need, dev) in &edges[reached[at]] {
                if !dev && !reached.contains(&need.as_str()) {
                    reached.push(need);
                }
            }
            at += 1;
        }
        for stranger in *strangers {
            assert!(!reached.contains(stranger), "{name} reaches {stranger}: {why}");
        }
    }
}

#[test]
fn every_foreign_crate_has_its_reason_in_the_dependencies_page() {
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let (_, table) = manifest.split_once("[workspace.dependencies]\n").unwrap();
    let (table, _) = table.split_once("\n[").unwrap();
    let declared: Vec<&str> = table
        .lines()
        .filter(|row| !row.contains("path ="))
        .filter_map(|row| Some(row.split_once(" = ")?.0))
        .collect();

    let page = std::fs::read_to_string(root().join("docs/dependencies.md")).unwrap();
    let (_, rows) = page.split_once("|---|---|\n").unwrap();
    let (rows, _) = rows.split_once("\n\n").unwrap_or((rows, ""));
    let explained: Vec<&str> = rows.lines().map(|row| row.split('|').nth(1).unwrap().trim()).collect();
    assert_eq!(
        explained, declared,
        "docs/dependencies.md and [workspace.dependencies], in the alphabet's order"
    );
    assert!(declared.is_sorted(), "{declared:?}");

    let packages = packages();
    let used = |name: &&str| {
        packages.iter().any(|package| {
            let dependencies = package["dependencies"].as_array().unwrap();
            dependencies.iter().any(|it| it["rename"].as_str().or(it["name"].as_str()) == Some(*name))
        })
    };
    let unused: Vec<&str> = declared.into_iter().filter(|name| !used(name)).collect();
    assert!(unused.is_empty(), "no crate uses {unused:?}");
}

/// Foreign crates that are compiled more than once for the objects: nothing that takes long stands on them.
const SMALL: [&str; 1] = ["num-traits"];

/// Cargo compiles a crate again for each set of its features, and all that uses it with it. `crates/build-once` says more.
#[test]
fn every_object_has_its_foreign_crates_with_the_same_features() {
    let objects = build::objects().iter().filter(|object| !object.is_shell()).map(|object| object.package);
    let programs = build::PROGRAMS.iter().map(|program| program.package);
    let mut found: BTreeMap<String, BTreeMap<String, Vec<&str>>> = BTreeMap::new();
    for package in objects.chain(programs).collect::<BTreeSet<_>>() {
        let output = Command::new(env!("CARGO"))
            .args(["tree", "--offline", "--package", package, "--edges", "normal,build"])
            .args(["--prefix", "none", "--no-dedupe", "--format", "{p}|{f}"])
            .current_dir(root())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        for line in String::from_utf8(output.stdout).unwrap().lines().collect::<BTreeSet<_>>() {
            let (name, features) = line.split_once('|').unwrap();
            let users = found.entry(name.to_owned()).or_default().entry(features.to_owned()).or_default();
            users.push(package);
        }
    }
    found.retain(|name, sets| {
        sets.len() > 1 && !SMALL.iter().any(|small| name.starts_with(&format!("{small} ")))
    });
    assert!(found.is_empty(), "{found:#?}");
}

/// The text of each file of Rust in a folder and in those below it.
fn sources(folder: &Path) -> Vec<String> {
    let mut texts = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            texts.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            texts.push(std::fs::read_to_string(path).unwrap());
        }
    }
    texts
}

/// What follows a comment's fence: of an example of Rust nothing, or how it is one; of other text its language.
fn fence(line: &str) -> Option<&str> {
    let line = line.trim_start();
    line.strip_prefix("///").or_else(|| line.strip_prefix("//!"))?.trim().strip_prefix("```")
}

/// Cargo compiles a library once more for the tests in its source, and reads its comments for examples: `[lib]` says where there are none.
/// Where it said so wrongly, tests would be left out without a word.
#[test]
fn a_library_says_whether_its_source_has_tests() {
    for package in packages() {
        let name = package["name"].as_str().unwrap();
        let targets = package["targets"].as_array().unwrap();
        let kinds = |target: &Value| target["kind"].as_array().unwrap().clone();
        let is_library = |target: &&Value| {
            kinds(target).iter().any(|kind| kind == "lib" || kind == "cdylib" || kind == "rlib")
        };
        let Some(library) = targets.iter().find(is_library) else { continue };
        let texts = sources(Path::new(library["src_path"].as_str().unwrap()).parent().unwrap());
        let has_tests = texts.iter().any(|text| text.contains("#[test]"));
        assert_eq!(library["test"], has_tests, "[lib] test in {name}'s Cargo.toml");
        let has_examples = texts.iter().any(|text| {
            // Every second one closes what the one before has opened.
            text.lines()
                .filter_map(fence)
                .step_by(2)
                .any(|what| ["", "rust", "no_run", "should_panic"].contains(&what))
        });
        assert_eq!(library["doctest"], has_examples, "[lib] doctest in {name}'s Cargo.toml");
    }
}
