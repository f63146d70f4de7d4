//! Names the translator: a hash of the sources that decide what a text becomes. It is part of every cache key, so that
//! what one translator made or said is never taken for another's.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};

fn main() {
    let own = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let mut files = vec![];
    for folder in ["src", "../ptx/src"] {
        println!("cargo:rerun-if-changed={}", own.join(folder).display());
        collect(&own.join(folder), &mut files);
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
        } else if path.extension().is_some_and(|e| e == "rs" || e == "ptx") {
            files.push(path);
        }
    }
}
