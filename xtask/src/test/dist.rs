//! What is shipped: the same bytes from two folders, and all that packages.rs and installs.rs try of it.
//! Needs root, the network, 12 GB and hours; asked for with `--only dist`.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::report::{Outcome, Report};
use super::{installs, packages};
use crate::build::Profile;
use crate::dist::{self, Wanted};
use crate::setup;

pub fn run(report: &mut Report) {
    let made = match dist::make(&Wanted { wheel: true, deb: true, oci: false }, Profile::Release, &[]) {
        Ok(made) => made,
        Err(error) => return report.note("cargo xtask dist", Err(error)),
    };
    report.note("cargo xtask dist", Ok(()));
    report.note("another folder gives the same archives, wheel and packages", same_elsewhere(&made));
    packages::try_all(&made, report);
    installs::try_all(&made, report);
}

fn same_elsewhere(archives: &[PathBuf]) -> Outcome {
    let mut status = Command::new("git");
    status.args(["status", "--porcelain", "--untracked-files=no"]).current_dir(setup::root());
    let status = status.output();
    if status.is_ok_and(|status| !status.stdout.is_empty()) {
        return Outcome::Skipped("the tree has changes that are not committed".to_owned());
    }
    build_elsewhere(archives).into()
}

fn build_elsewhere(archives: &[PathBuf]) -> Result<()> {
    let folder = setup::root().join("target/dist/elsewhere");
    let _ = fs::remove_dir_all(&folder);
    setup::run(Command::new("git").args(["clone", "--quiet"]).arg(setup::root()).arg(&folder))?;
    let mut again = Command::new("cargo");
    again
        .args(["run", "--quiet", "--package", "xtask", "--", "dist", "--wheel", "--deb"])
        .current_dir(&folder);
    setup::run(again.env_remove("CARGO_TARGET_DIR").env("CARGO_TARGET_DIR", folder.join("target")))?;
    for archive in archives {
        let name = archive.file_name().context("an archive has a name")?;
        let same = fs::read(archive)? == fs::read(folder.join("target/dist").join(name))?;
        ensure!(same, "{} differs; diffoscope tells where", archive.display());
    }
    fs::remove_dir_all(&folder)?;
    Ok(())
}
