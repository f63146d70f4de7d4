//! Archives and the wheel where they are used: installed in fresh systems, tried, and taken away again, after which nothing is left.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};

use super::report::{Outcome, Report};
use super::trees::{SUITES, Tree};
use crate::build::gate;
use crate::setup::{self, root};

/// The archives and the wheel among what was made.
pub fn try_all(made: &[PathBuf], report: &mut Report) {
    let archives: Vec<&Path> = made.iter().filter(|path| is_archive(path)).map(PathBuf::as_path).collect();
    let wheel = made.iter().find(|path| path.extension().is_some_and(|it| it == "whl"));
    for suite in SUITES {
        if !archives.is_empty() {
            let name =
                format!("the archive is installed, run and uninstalled on a bare Debian {}", suite.version);
            report.note(&name, Tree::bare(suite).and_then(|tree| by_archive(tree, &archives)));
        }
        if let Some(wheel) = wheel {
            let name = format!("pip installs, runs and uninstalls the wheel on Debian {}", suite.version);
            report.note(
                &name,
                fit(wheel, suite.glibc, || by_pip(Tree::with_python(suite)?, "/opt/venv/bin", wheel)),
            );
        }
    }
    if let Some(wheel) = wheel {
        let name = "pip installs, runs and uninstalls the wheel where Python was built into /usr/local";
        let outcome = match Tree::with_own_python() {
            Ok(tree) => by_pip(tree, "/usr/local/bin", wheel).into(),
            Err(error) => Outcome::Skipped(format!("such a system cannot be made here: {error:#}")),
        };
        report.note(name, outcome);
    }
}

fn is_archive(path: &Path) -> bool {
    path.to_string_lossy().contains(".tar.")
}

/// The smoke test, and the same by the ways that depend most on the C library.
const SMOKE_TESTS: [&str; 3] = [
    "/opt/unpacked/examples/smoke_test.sh",
    "/opt/unpacked/bin/cudaway run --hooks dlsym,dlopen -- /opt/unpacked/bin/cudaway selftest",
    "/opt/unpacked/bin/cudaway run --audit -- /opt/unpacked/bin/cudaway selftest",
];

fn by_archive(tree: Tree, archives: &[&Path]) -> Result<()> {
    let at = tree.root.join("opt/unpacked");
    for archive in archives {
        let _ = std::fs::remove_dir_all(&at);
        std::fs::create_dir_all(&at)?;
        let mut tar = Command::new("tar");
        tar.args(["--extract", "--strip-components=1", "--file"]).arg(archive).arg("--directory").arg(&at);
        setup::run(&mut tar)?;
        for smoke_test in SMOKE_TESTS {
            let said = tree.said(smoke_test)?;
            ensure!(said.lines().last() == Some("PASSED"), "{}, {smoke_test}: {said}", archive.display());
        }
    }
    // As it lies; copied to a folder; and found by the loader, so that nothing needs to be in front.
    tree.works_by("/opt/unpacked/bin/cudaway")?;
    tree.said("/opt/unpacked/bin/cudaway install --prefix /opt/cudaway")?;
    tree.works_by("/opt/cudaway/bin/cudaway")?;
    tree.said("/opt/cudaway/bin/cudaway uninstall --prefix /opt/cudaway")?;
    tree.said("/opt/unpacked/bin/cudaway install --system")?;
    let said = tree.said("cudaway selftest")?;
    ensure!(
        said.contains("libcuda.so.1: /opt/cudaway/lib/") && said.lines().last() == Some("PASSED"),
        "{said}"
    );
    tree.works_by("cudaway")?;
    tree.is_healthy("cudaway", "-- /root/vector_add")?;
    tree.said("cudaway uninstall")?;
    std::fs::remove_dir_all(&at)?;
    tree.left_as_it_was()
}

/// `bin` has the Python.
fn by_pip(tree: Tree, bin: &str, wheel: &Path) -> Result<()> {
    let python = format!("{bin}/python3");
    let file = tree.bring(wheel)?;
    tree.said(&format!("{python} -m pip install --quiet --no-index --no-cache-dir {file}"))?;
    setup::run(
        Command::new("cp").arg("-r").arg(root().join("python/tests")).arg(tree.root.join("tmp/tests")),
    )?;
    for script in ["installed.py", "activated.py"] {
        let said = tree.said(&format!("{python} /tmp/tests/{script}"))?;
        ensure!(said.lines().last() == Some("PASSED"), "{script}: {said}");
    }
    for tool in [format!("{bin}/cudaway"), format!("{python} -m cudaway")] {
        tree.works_by(&tool)?;
    }
    let script =
        "import cudaway; print({finding.level for finding in cudaway.doctor([\"/root/vector_add\"])})";
    let said = tree.said(&format!("{python} -c '{script}'"))?;
    ensure!(said.contains("'ok'") && !said.contains("fault"), "cudaway.doctor(): {said}");
    tree.said(&format!("{python} -m pip uninstall --quiet --yes cudaway && rm -r {file} /tmp/tests"))?;
    tree.left_as_it_was()
}

/// Tried where the wheel's tag says that it may be.
fn fit(wheel: &Path, glibc: [u32; 2], check: impl FnOnce() -> Result<()>) -> Outcome {
    let name = wheel.file_name().unwrap_or_default().to_string_lossy();
    let tag =
        name.split_once("manylinux_").map(|(_, tag)| tag.trim_end_matches("_x86_64.whl").replace('_', "."));
    match tag.and_then(|tag| Some((gate::release(&tag)?, tag))) {
        None => Outcome::Failed(format!("no tag of a glibc in {name}")),
        Some((needed, tag)) if needed > glibc.to_vec() => {
            Outcome::Skipped(format!("it was made by --local and needs glibc {tag}"))
        }
        Some(_) => check().into(),
    }
}
