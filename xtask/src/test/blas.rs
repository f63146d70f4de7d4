//! cuBLAS on the CPU device by programs of our own in tools/blas-proof. Beside NumPy: every routine, type, option, layout,
//! batch, pointer mode and width of integers, within the error bounds of the BLAS literature. By the manual: the calls that
//! keep, tell or log something.

use std::path::Path;
use std::time::Duration;

use testkit::{Ended, Installed, Run};

use super::report::{Outcome, Report};
use crate::setup;

const WHEELS: &[&str] = &["numpy==2.4.6", "ml_dtypes==0.5.4"];

pub fn run(installed: &Installed, report: &mut Report) {
    calls(installed, report);
    let title = "cuBLAS beside NumPy";
    if let Err(error) = setup::wheels(WHEELS) {
        return report.note(title, Outcome::Skipped(format!("NumPy cannot be had: {error:#}")));
    }
    match prove(installed) {
        Ok(ended) => tell(title, &ended, report),
        Err(error) => report.note(title, Outcome::Failed(format!("{error:#}"))),
    }
}

fn calls(installed: &Installed, report: &mut Report) {
    let title = "calls of cuBLAS";
    let libraries = ["libcublas.so.13", "libcublasLt.so.13", "libcudart.so.13"];
    let ended = setup::venv().and_then(|python| {
        let program = on_cpu(installed, &python).arg(setup::root().join("tools/blas-proof/calls.py"));
        libraries.iter().fold(program, |program, name| program.arg(installed.lib().join(name))).run()
    });
    match ended {
        Ok(ended) => tell(title, &ended, report),
        Err(error) => report.note(title, Outcome::Failed(format!("{error:#}"))),
    }
}

fn on_cpu(installed: &Installed, program: &Path) -> Run {
    installed.preloaded(program).env("CUDAWAY_DEVICE", "cpu").env("CUDAWAY_BLAS", "cpu")
}

fn prove(installed: &Installed) -> anyhow::Result<Ended> {
    let root = setup::root();
    let libraries = ["libcublas.so.13", "libcudart.so.13", "libcublasLt.so.13"].map(|name| installed.lib().join(name));
    on_cpu(installed, &setup::venv()?)
        .arg(root.join("tools/blas-proof/proof.py"))
        .arg(root.join("tools/data/blas/blas.json"))
        .arg(&libraries[0])
        .arg(&libraries[1])
        .arg(&libraries[2])
        .limit(Duration::from_secs(1200))
        .run()
}

/// A line for each family; what is indented under it is its detail.
fn tell(title: &str, ended: &Ended, report: &mut Report) {
    let mut lines = ended.stdout.lines().peekable();
    while let Some(line) = lines.next() {
        let (ok, failed) = (line.strip_prefix("ok "), line.strip_prefix("FAILED "));
        let Some(family) = ok.or(failed) else { continue };
        let mut detail = String::new();
        while let Some(more) = lines.next_if(|line| line.starts_with(' ')) {
            detail.push('\n');
            detail.push_str(more);
        }
        let name = format!("{title}: {family}");
        if failed.is_some() {
            report.note(&name, Outcome::Failed(detail));
        } else {
            report.note(&name, Outcome::Passed);
            print!("{}", detail.strip_prefix('\n').map_or_else(String::new, |detail| format!("{detail}\n")));
        }
    }
    if !ended.passed() && !ended.stdout.contains("FAILED") {
        report.note(title, Outcome::Failed(ended.describe()));
    }
}
