//! Where an object comes from, in its ELF note `.note.cudaway` (`readelf -n`, `cudaway --version --verbose`).

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::setup::{self, root};

/// The note's owner; `crates/cli/src/version.rs` looks for it.
const OWNER: &str = "CUDAway";

/// An object file with the note alone, to be linked into each of ours. Its name changes with its text, so that objects are
/// linked again when it does.
pub fn object(names_commit: bool) -> Result<PathBuf> {
    // A build to be tried is not linked again because of a commit.
    let source = if names_commit { commit() } else { "development".to_owned() };
    let text = text(&source)?;
    let at = root().join(format!("target/note/{source}.o"));
    if !at.exists() {
        fs::create_dir_all(root().join("target/note"))?;
        assemble(&text, &at)?;
    }
    Ok(at)
}

/// A tree without its history, such as an unpacked archive of it, is as good as any.
fn commit() -> String {
    let describe = ["describe", "--always", "--dirty", "--abbrev=12", "--match", "v*"];
    setup::said(Command::new("git").args(describe).current_dir(root()))
        .unwrap_or_else(|_| "unknown".to_owned())
}

/// Lines of a word and its value.
fn text(source: &str) -> Result<String> {
    let compiler = setup::said(Command::new("rustc").arg("--version"))?;
    Ok(format!(
        "version {}\nsource {source}\ncompiler {compiler}\nhip {}\n",
        env!("CARGO_PKG_VERSION"),
        HIP_RELEASES.join(" ")
    ))
}

/// The releases whose headers the calls to HIP follow (crates/hip-sys, tools/data/hip).
const HIP_RELEASES: &[&str] = &["5.2.3", "5.7.1", "6.4.3", "7.2"];

fn assemble(text: &str, at: &std::path::Path) -> Result<()> {
    let bytes: Vec<String> = text.bytes().map(|byte| byte.to_string()).collect();
    let source = format!(
        ".section .note.cudaway, \"a\", @note\n.balign 4\n.long {}, {}, 1\n.asciz \"{OWNER}\"\n.balign 4\n.byte {}\n.balign 4\n\
         .section .note.GNU-stack, \"\", @progbits\n",
        OWNER.len() + 1,
        bytes.len(),
        bytes.join(",")
    );
    let aside = at.with_extension(format!("{}.s", std::process::id()));
    fs::write(&aside, source)?;
    let assembled = Command::new("cc").arg("-c").arg(&aside).arg("-o").arg(at).status();
    fs::remove_file(&aside)?;
    ensure!(assembled.context("could not start cc")?.success(), "the note was not assembled");
    Ok(())
}
