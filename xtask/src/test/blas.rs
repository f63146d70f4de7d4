//! cuBLAS on the CPU device by programs of our own in tools/blas-proof. Beside NumPy: every routine, type, option, layout,
//! batch, pointer mode and width of integers, within the error bounds of the BLAS literature; of 64-bit integers and of other types
//! than a routine's first, a part of the cases that is drawn anew in each run. By the manual: the calls that
//! keep, tell or log something.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::ensure;
use testkit::{Ended, Installed};

use super::report::{Outcome, Report};
use crate::setup;

const WHEELS: &[&str] = &["numpy==2.4.6", "ml_dtypes==0.5.4"];

/// Which names the programs called, by the case that shows them; docs/libraries.md is made of it.
const SHOWN: &str = "tools/data/cublas/shown.json";
const LIBRARIES: [&str; 3] = ["libcublas.so.13", "libcublasLt.so.13", "libcudart.so.13"];

/// Program → case → names.
type Shown = BTreeMap<String, BTreeMap<String, Vec<String>>>;

pub fn run(installed: &Installed, bless: bool, report: &mut Report) {
    let mut shown = Shown::new();
    let seed = super::seed("BLAS_SEED");
    println!("again: BLAS_SEED={seed}");
    let programs = [
        ("calls.py", "calls of cuBLAS", &[][..], None),
        ("proof.py", "cuBLAS beside NumPy", &["tools/data/cublas/cublas.json"][..], Some(seed)),
    ];
    for (program, title, arguments, seed) in programs {
        if let Err(error) = setup::wheels(WHEELS) {
            return report.note(title, Outcome::Skipped(format!("NumPy cannot be had: {error:#}")));
        }
        match on_cpu(installed, program, arguments, seed) {
            Ok((ended, found)) => {
                tell(title, &ended, report);
                if !ended.passed() {
                    return;
                }
                shown.insert(program.to_owned(), found);
            }
            Err(error) => return report.note(title, Outcome::Failed(format!("{error:#}"))),
        }
    }
    report.note(&format!("{SHOWN} has the names that were called"), remember(&shown, bless));
}

/// The committed list is what was shown just now; with `bless` it becomes so.
fn remember(shown: &Shown, bless: bool) -> anyhow::Result<()> {
    let path = setup::root().join(SHOWN);
    let text = serde_json::to_string_pretty(shown)? + "\n";
    if bless {
        std::fs::write(&path, &text)?;
    }
    let is_same = std::fs::read_to_string(&path)? == text;
    ensure!(is_same, "cargo xtask test --only blas --bless, then cargo xtask codegen");
    Ok(())
}

/// How a program of tools/blas-proof ended, and the names that its cases called.
fn on_cpu(
    installed: &Installed,
    program: &str,
    arguments: &[&str],
    seed: Option<u64>,
) -> anyhow::Result<(Ended, BTreeMap<String, Vec<String>>)> {
    let root = setup::root();
    let folder = root.join("target/blas-proof");
    std::fs::create_dir_all(&folder)?;
    let found = folder.join(program).with_extension("json");
    let mut run = installed
        .preloaded(setup::venv()?)
        .env("CUDAWAY_DEVICE", "cpu")
        .env("CUDAWAY_BLAS", "cpu")
        // NumPy's, whose matrices are small here.
        .env("OPENBLAS_NUM_THREADS", "1")
        .arg(root.join("tools/blas-proof").join(program))
        .limit(Duration::from_secs(1200));
    run = arguments.iter().fold(run, |run, argument| run.arg(root.join(argument)));
    run = LIBRARIES.iter().fold(run, |run, name| run.arg(installed.lib().join(name)));
    run = seed.into_iter().fold(run, |run, seed| run.arg("--seed").arg(seed.to_string()));
    let ended = run.arg("--found").arg(&found).run()?;
    let found = if ended.passed() {
        serde_json::from_str(&std::fs::read_to_string(&found)?)?
    } else {
        BTreeMap::new()
    };
    Ok((ended, found))
}

/// A line for each family; what is indented under it is its detail.
pub fn tell(title: &str, ended: &Ended, report: &mut Report) {
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
