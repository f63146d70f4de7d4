//! What is built for AArch64 too, the objects for `cudaway run --hooks` and `--audit`, by a cross compiler and QEMU: on this
//! Debian's glibc where the tools are there, and by name (which installs them; needs root) on Debian 11's, from before
//! libdl's functions were libc's.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use super::debian;
use super::report::{Outcome, Report};
use super::unit;
use crate::setup;

const TARGET: &str = "aarch64-unknown-linux-gnu";
const CC: &str = "aarch64-linux-gnu-gcc";
const QEMU: &str = "qemu-aarch64";
/// The cross compiler's glibc.
const SYSROOT: &str = "/usr/aarch64-linux-gnu";

const PACKAGES: [setup::Package; 3] = [
    ("gcc-aarch64-linux-gnu", "compiles C for AArch64, and links Rust"),
    ("libc6-dev-arm64-cross", "its C library"),
    ("qemu-user", "runs AArch64's programs"),
];

/// The part; `by_name` installs what it needs.
pub fn run(by_name: bool, report: &mut Report) {
    let name = "hooks and auditor on AArch64";
    if by_name {
        if let Err(error) = install() {
            return report.note(name, Err(error));
        }
    } else if let Some(missing) = missing() {
        let why = format!("{missing} is not there; --only aarch64 installs it");
        return report.note(name, Outcome::Skipped(why));
    }
    test(name, Path::new(CC), Path::new(SYSROOT), report);
    let name = "hooks and auditor on AArch64 with Debian 11's glibc";
    if by_name {
        match debian_11() {
            Ok(root) => test(name, &root.join("cc"), &root, report),
            Err(error) => report.note(name, Err(error)),
        }
    } else {
        report.note(name, Outcome::Skipped("asked for with --only aarch64 (root, 250 MB)".to_owned()));
    }
}

fn test(name: &str, cc: &Path, sysroot: &Path, report: &mut Report) {
    let mut command = setup::cargo();
    command.args(["test", "--no-fail-fast", "--target", TARGET]);
    for package in ["loader", "libcudaway-hooks", "libcudaway-audit"] {
        command.args(["--package", package]);
    }
    // Cargo does not link again for another linker.
    let own = setup::root().join("target/aarch64").join(sysroot.file_name().unwrap_or_default());
    command.env("CARGO_TARGET_DIR", own);
    command.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", cc);
    let runner = format!("{QEMU} -L {}", sysroot.display());
    command.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", runner);
    unit::counted(report, name, setup::stay_offline(&mut command));
}

fn missing() -> Option<&'static str> {
    let tool = [CC, QEMU].into_iter().find(|tool| setup::which(tool).is_none());
    tool.or_else(|| (!Path::new(SYSROOT).join("lib/libc.so").exists()).then_some(PACKAGES[1].0))
        .or_else(|| (!has_rust()).then_some("Rust's library for AArch64"))
}

fn has_rust() -> bool {
    let folder = setup::said(Command::new("rustc").args(["--print", "target-libdir", "--target", TARGET]));
    folder.is_ok_and(|folder| Path::new(&folder).exists())
}

fn install() -> Result<()> {
    setup::packages(&PACKAGES)?;
    if has_rust() {
        return Ok(());
    }
    println!("setup: Rust's library for {TARGET}");
    anyhow::ensure!(!setup::offline(), "--offline; when online: rustup target add {TARGET}");
    setup::run(Command::new("rustup").args(["target", "add", TARGET]).current_dir(setup::root()))
}

/// Debian 11's AArch64 in a folder, which nothing runs in: its libraries, what links with them, and `cc`, which does.
fn debian_11() -> Result<PathBuf> {
    let options = ["--foreign", "--arch=arm64", "--include=libc6-dev"];
    debian::bootstrapped("bullseye", "bullseye-arm64", &options, |root| {
        for package in fs::read_dir(root.join("var/cache/apt/archives"))? {
            let package = package?;
            let name = package.file_name();
            // debootstrap unpacks what a system needs first, and leaves the rest to the system.
            if ["libc6-dev_", "linux-libc-dev_"].iter().any(|dev| name.to_string_lossy().starts_with(dev)) {
                setup::run(Command::new("dpkg").arg("--extract").arg(package.path()).arg(root))?;
            }
        }
        let libraries = root.join("usr/lib/aarch64-linux-gnu");
        for library in fs::read_dir(&libraries)? {
            let library = library?.path();
            // A link to the library in that system's root, not in ours.
            if let Ok(to) = fs::read_link(&library)
                && let Ok(to) = to.strip_prefix("/")
                && library.extension().is_some_and(|extension| extension == "so")
            {
                fs::remove_file(&library)?;
                symlink(root.join(to), &library)?;
            }
        }
        let cc = root.join("cc");
        let (root, libraries) = (root.display(), libraries.display());
        fs::write(&cc, format!("#!/bin/sh\nexec {CC} '--sysroot={root}' '-B{libraries}' \"$@\" -ldl\n"))?;
        fs::set_permissions(&cc, fs::Permissions::from_mode(0o755)).context("the compiler")
    })
}
