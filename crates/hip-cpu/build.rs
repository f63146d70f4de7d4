//! Names the translator: a hash of the sources that decide what code a kernel becomes. It is part of every cache key,
//! so a changed translator never runs code that another one made.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};

fn main() {
    let crates = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("..");
    let mut files = vec![crates.join("hip-cpu/src/jit.rs"), crates.join("hip-cpu/src/kernel.rs")];
    for folder in ["compiler/src", "ptx/src"] {
        println!("cargo:rerun-if-changed={}", crates.join(folder).display());
        collect(&crates.join(folder), &mut files);
    }
    files.sort();
    // SipHash with fixed keys: equal for equal sources.
    let mut hasher = DefaultHasher::new();
    for file in &files {
        println!("cargo:rerun-if-changed={}", file.display());
        file.file_name().hash(&mut hasher);
        std::fs::read(file).unwrap_or_default().hash(&mut hasher);
    }
    println!("cargo:rustc-env=CUDAWAY_TRANSLATOR={:016x}", hasher.finish());
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|e| e == "rs") {
            files.push(path);
        }
    }
}
