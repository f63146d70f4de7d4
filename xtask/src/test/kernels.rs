//! Kernels of libraries of ours: their PTX is committed beside their sources.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};

use super::report::Outcome;
use crate::setup;
use crate::toolchain::Release;

/// How nvcc makes PTX: for every GPU that it knows, and no product fused with a sum unless the source says so.
const FLAGS: [&str; 6] =
    ["-ptx", "-arch=compute_75", "-fmad=false", "-std=c++17", "-I", "crates/libraries/kit/kernels"];

/// Each .ptx file is as nvcc 13.5 makes it of the .cu file beside it, but for comments.
pub fn are_of_their_source(folder: &str, names: &[&str]) -> Result<Outcome> {
    let Ok(toolchain) = Release::V13_5.get() else {
        return Ok(Outcome::Skipped("nvcc 13.5 is missing".to_owned()));
    };
    let (root, made) = (setup::root(), testkit::temporary()?);
    for name in names {
        let [source, text] = ["cu", "ptx"].map(|kind| format!("{folder}/{name}.{kind}"));
        let again = made.path().join(format!("{name}.ptx"));
        setup::run(toolchain.nvcc().current_dir(&root).args(FLAGS).arg("-o").arg(&again).arg(&source))?;
        let said = FLAGS.join(" ");
        ensure!(plain(&again)? == plain(&root.join(&text))?, "make it anew: nvcc {said} -o {text} {source}");
    }
    Ok(Outcome::Passed)
}

/// A text without its comments.
fn plain(path: &Path) -> Result<String> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    Ok(text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n"))
}
