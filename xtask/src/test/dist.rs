//! The archives: the same bytes from two folders, and a smoke test on Debians that are older and newer than this one.
//! Needs root, the network and 3 GB; asked for with `--only dist`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use testkit::Run;

use super::debian::bootstrapped;
use super::packages;
use super::report::{Outcome, Report};
use crate::dist::{self, Wanted};
use crate::setup;

pub fn run(report: &mut Report) {
    let made = match dist::make(&Wanted { wheel: true, deb: true, oci: false }) {
        Ok(made) => made,
        Err(error) => return report.note("cargo xtask dist", Err(error)),
    };
    report.note("cargo xtask dist", Ok(()));
    report.note("another folder gives the same archives, wheel and packages", same_elsewhere(&made));
    let archives: Vec<PathBuf> =
        made.iter().filter(|path| path.to_string_lossy().contains(".tar.")).cloned().collect();
    packages::try_all(&made, report);
    for (suite, version, _) in packages::DEBIANS {
        let name = format!("the archive's smoke test passes on a bare Debian {version}");
        report.note(&name, passes_on(suite, &archives));
    }
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

/// The smoke test, and the same by the ways that depend most on the C library.
const SMOKE_TESTS: [&str; 3] = [
    "/opt/cudaway/examples/smoke_test.sh",
    "/opt/cudaway/bin/cudaway run --hooks dlsym,dlopen -- /opt/cudaway/bin/cudaway selftest",
    "/opt/cudaway/bin/cudaway run --audit -- /opt/cudaway/bin/cudaway selftest",
];

fn passes_on(suite: &str, archives: &[PathBuf]) -> Result<()> {
    let root = bootstrapped(suite, &format!("plain-{suite}"), &[], |_| Ok(()))?;
    for archive in archives {
        unpack(archive, &root)?;
        for smoke_test in SMOKE_TESTS {
            // A private mount namespace: programs find their own path in /proc.
            let script = "mount -t proc proc \"$1/proc\" && exec chroot \"$@\"";
            let mut run = Run::new("unshare").args(["--mount", "sh", "-c", script, "smoke"]).arg(&root);
            run = run.args(smoke_test.split(' ')).env("CUDAWAY_DEVICE", "cpu");
            let ended = run.run()?;
            ensure!(ended.passed(), "{}, {smoke_test}: {}", archive.display(), ended.describe());
        }
    }
    Ok(())
}

/// To /opt/cudaway below `root`.
fn unpack(archive: &Path, root: &Path) -> Result<()> {
    let at = root.join("opt/cudaway");
    let _ = fs::remove_dir_all(&at);
    fs::create_dir_all(&at)?;
    let mut tar = Command::new("tar");
    setup::run(
        tar.args(["--extract", "--strip-components=1", "--file"]).arg(archive).arg("--directory").arg(at),
    )
}
