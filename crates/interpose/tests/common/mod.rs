//! What the tests of the takeover share.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The cdylib of this package's example, which `cargo test` builds beside the tests.
pub fn takeover_library() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let library = tests.ancestors().nth(2).unwrap().join("examples/libtakeover_alone.so");
    assert!(library.exists(), "{} is missing", library.display());
    library
}

/// Compiles sources of tests/c.
pub fn cc(options: &[&str], sources: &[&str], out: &Path) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c");
    let mut command = Command::new("cc");
    command
        .args(["-w", "-O1", "-o"])
        .arg(out)
        .args(sources.iter().map(|source| folder.join(source)))
        .args(options);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A library that prints the takeover's report at the program's end.
pub fn reporter(folder: &Path) -> PathBuf {
    let out = folder.join("reporter.so");
    cc(&["-shared", "-fPIC", "-ldl"], &["reporter.c"], &out);
    out
}
