//! Newer Debians in folders of their own, each with a real ROCm that this machine's Debian does not have: ROCm 5.7's HIP
//! with comgr 2.6, and 6.4's with comgr 3.0. Needs root, the network and 2 GB; asked for with `--only debian`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use testkit::{Installed, Run};

use super::examples::{self, Form};
use super::report::Report;
use crate::setup;
use crate::toolchain::Release;

struct Debian {
    suite: &'static str,
    packages: &'static [&'static str],
    hip: &'static str,
    comgr: &'static str,
    /// GPUs that this comgr knows.
    targets: &'static str,
}

const DEBIANS: [Debian; 2] = [
    Debian {
        suite: "trixie",
        packages: &["libamdhip64-5", "libamd-comgr2"],
        hip: "libamdhip64.so.5 (HIP 507",
        comgr: "libamd_comgr.so.2",
        targets: "gfx90a,gfx942,gfx1030,gfx1100",
    },
    Debian {
        suite: "sid",
        packages: &["libamdhip64-6", "libamd-comgr3"],
        hip: "libamdhip64.so.6 (HIP 604",
        comgr: "libamd_comgr.so.3",
        targets: "gfx90a,gfx942,gfx1030,gfx1100,gfx1201",
    },
];

pub fn run(installed: &Installed, report: &mut Report) {
    for debian in DEBIANS {
        let name = |what: &str| format!("Debian {}: {what}", debian.suite);
        let root = match debian.root(installed) {
            Ok(root) => root,
            Err(error) => {
                report.note(&name("its ROCm"), Err(error));
                continue;
            }
        };
        report.note(&name(&format!("{}…) has no device, and says so", debian.hip)), debian.no_device(&root));
        let what =
            format!("{} makes code objects of a program's kernels for {}", debian.comgr, debian.targets);
        report.note(&name(&what), debian.compiles(&root));
    }
}

/// A minimal Debian in target/debian/`name`, made if it is not there, with more of debootstrap's options; `finish` adds to a
/// new one.
pub fn bootstrapped(
    suite: &str,
    name: &str,
    options: &[&str],
    finish: impl FnOnce(&Path) -> Result<()>,
) -> Result<PathBuf> {
    setup::packages(&[("debootstrap", "makes another Debian in a folder")])?;
    let root = setup::root().join("target/debian").join(name);
    if !root.join("installed").exists() {
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(&root)?;
        setup::run(Command::new("debootstrap").arg("--variant=minbase").args(options).arg(suite).arg(&root))?;
        finish(&root)?;
        fs::write(root.join("installed"), "")?;
    }
    Ok(root)
}

impl Debian {
    /// The folder, with ROCm and our objects in it.
    fn root(&self, installed: &Installed) -> Result<PathBuf> {
        let root = bootstrapped(self.suite, self.suite, &[], |root| {
            // Snapshots of sid may be older than their files allow.
            let mut update = Command::new("chroot");
            setup::run(update.arg(root).args([
                "apt-get",
                "-o",
                "Acquire::Check-Valid-Until=false",
                "update",
            ]))?;
            let mut install = Command::new("chroot");
            install.arg(root).args(["apt-get", "install", "--yes", "--no-install-recommends"]);
            setup::run(install.args(self.packages))
        })?;
        let program = examples::build(&Release::V13_5.get()?, Form::Static, "vector_add", installed)?;
        let ours = root.join("cudaway");
        let _ = fs::remove_dir_all(&ours);
        let shipped = installed.lib().parent().context("the installed folder")?;
        setup::run(Command::new("cp").arg("--archive").arg(shipped).arg(&ours))?;
        fs::copy(program, ours.join("vector_add"))?;
        Ok(root)
    }

    fn in_root(root: &Path, program: &str) -> Run {
        // /proc is not mounted there, so what lies beside a program has to be named.
        Run::new("chroot")
            .arg(root)
            .arg("/usr/bin/env")
            .arg("CUDAWAY_COMGR_HELPER=/cudaway/lib/cudaway-comgr")
            .arg("CUDAWAY_CACHE_MAX_MB=0")
            .arg("CUDAWAY_LOG=info")
            .arg("CUDAWAY_LOG_FILE=/log")
            .arg("LD_PRELOAD=/cudaway/lib/libcuda.so.1:/cudaway/lib/libcudart.so.13")
            .arg(program)
    }

    fn no_device(&self, root: &Path) -> Result<()> {
        let _ = fs::remove_file(root.join("log"));
        let ended = Self::in_root(root, "/cudaway/vector_add").env("CUDAWAY_DEVICE", "hip").run()?;
        ensure!(ended.stdout.contains("100 cudaErrorNoDevice"), "{}", ended.describe());
        let log = fs::read_to_string(root.join("log")).context("the log file")?;
        ensure!(log.contains(self.hip) && log.contains("hipErrorNoDevice"), "{log}");
        let ended = Self::in_root(root, "/cudaway/vector_add").env("CUDAWAY_DEVICE", "auto").run()?;
        ensure!(ended.passed(), "CUDAWAY_DEVICE=auto: {}", ended.describe());
        Ok(())
    }

    fn compiles(&self, root: &Path) -> Result<()> {
        let _ = fs::remove_file(root.join("log"));
        let compile = Self::in_root(root, "/cudaway/bin/cudaway").arg("compile");
        let compile = compile.arg("--target").arg(self.targets).arg("--output").arg("/objects");
        let ended = compile.arg("/cudaway/vector_add").run()?;
        ensure!(ended.status.success(), "{}", ended.describe());
        let log = fs::read_to_string(root.join("log")).context("the log file")?;
        let made = log.lines().filter(|line| line.contains(&format!("{} in ", self.comgr))).count();
        ensure!(made >= self.targets.split(',').count(), "{made} code objects by {}:\n{log}", self.comgr);
        Ok(())
    }
}
