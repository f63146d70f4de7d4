//! rustfmt, clippy, and the pages' links. What either would change or warns of is a failure: the levels in Cargo.toml's `[workspace.lints]` say what
//! a developer sees, this part is who refuses it.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result};

use super::report::Report;
use crate::setup;

/// Everything that is compiled: tests, examples and benches too, and with every feature (xtask's `headers`).
const CLIPPY: [&str; 5] = ["clippy", "--workspace", "--all-targets", "--all-features", "--keep-going"];
const DENY: [&str; 3] = ["--", "--deny", "warnings"];

pub fn run(report: &mut Report) {
    report.note("cargo fmt --check", formatted());
    report.note("cargo clippy, warnings denied", setup::run(&mut clippy()));
    report.note("pages: prose, links, list of contents", crate::site::check());
}

/// Has clippy look at everything, and says nothing: the part then finds what it said.
pub fn get_ready() {
    let _ = clippy().output();
}

fn clippy() -> Command {
    let mut command = setup::cargo();
    command.args(CLIPPY).args(DENY);
    setup::stay_offline(&mut command);
    command
}

/// The workspace, and the fuzzers, which are workspaces of their own.
fn formatted() -> Result<()> {
    setup::run(setup::cargo().args(["fmt", "--all", "--check"]))?;
    fuzzers()?.iter().try_for_each(|dir| setup::run(setup::cargo().current_dir(dir).args(["fmt", "--check"])))
}

fn fuzzers() -> Result<Vec<PathBuf>> {
    let crates = fs::read_dir(setup::root().join("crates")).context("crates")?;
    let dirs: Result<Vec<PathBuf>> = crates.map(|entry| Ok(entry?.path().join("fuzz"))).collect();
    Ok(dirs?.into_iter().filter(|dir| dir.exists()).collect())
}
