//! `cargo xtask bench solver`: factorizations, eigenvalues and singular values through cuSOLVER beside SciPy's LAPACK, in one process.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::section;
use crate::setup;

#[derive(clap::Args)]
pub struct Args {
    /// Seconds that each row is measured for, by turns; the fastest turn counts.
    #[arg(long, default_value_t = 2.0)]
    seconds: f32,
    /// Measure the objects in this folder; docs/performance.md is left as it is.
    #[arg(long)]
    lib: Option<PathBuf>,
    /// Measure the objects of target/cudaway/lib as they are, and not all as they are shipped.
    #[arg(long, conflicts_with = "lib")]
    local: bool,
    /// Only rows whose name has all of these words; docs/performance.md is left as it is.
    words: Vec<String>,
}

/// What is slower than this beside LAPACK is worth mending.
const GOAL: f64 = 0.5;

const WHEELS: &[&str] = &["numpy==2.4.6", "scipy==1.17.1"];

pub fn run(args: &Args) -> Result<()> {
    let local = args.local.then(setup::lib_dir);
    let lib = super::objects(args.lib.as_deref().or(local.as_deref()))?;
    setup::wheels(WHEELS)?;
    let out = command(args, &lib)?.output().context("cannot start Python")?;
    let said = String::from_utf8_lossy(&out.stdout);
    ensure!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let rows = said.lines().map(Row::read).collect::<Result<Vec<_>>>()?;
    let text = table(&rows, if args.local { ", the objects of target/cudaway/lib" } else { "" });
    println!("{text}");
    if args.lib.is_some() || !args.words.is_empty() { Ok(()) } else { section::write("solver", &text) }
}

fn command(args: &Args, lib: &Path) -> Result<Command> {
    let mut command = Command::new(setup::venv()?);
    command.arg(setup::root().join("benches/solver/solver.py"));
    command.args([lib.join("libcusolver.so.12"), lib.join("libcudart.so.13")]);
    command.arg(args.seconds.to_string()).args(&args.words);
    command.env("LD_PRELOAD", format!("{0}/libcuda.so.1:{0}/libcudart.so.13", lib.display()));
    command.env("LD_LIBRARY_PATH", lib).env("CUDAWAY_DEVICE", "cpu").env_remove("CUDAWAY_SOLVER");
    command.envs([("RAYON_NUM_THREADS", "1"), ("OPENBLAS_NUM_THREADS", "1")]);
    Ok(command)
}

/// A line of the program, in seconds.
#[derive(Debug, PartialEq)]
struct Row {
    name: String,
    ours: f64,
    lapack: f64,
}

impl Row {
    fn read(line: &str) -> Result<Row> {
        let parts: Vec<&str> = line.split('|').collect();
        let [name, ours, lapack] = parts[..] else { anyhow::bail!("the program says {line:?}") };
        Ok(Row { name: name.to_owned(), ours: ours.parse()?, lapack: lapack.parse()? })
    }

    fn ratio(&self) -> f64 {
        self.lapack / self.ours
    }
}

fn table(rows: &[Row], what: &str) -> String {
    let mean = (rows.iter().map(|row| row.ratio().ln()).sum::<f64>() / rows.len() as f64).exp();
    let below = rows.iter().filter(|row| row.ratio() < GOAL).count();
    let mut text = format!(
        "One thread each, doubles{what}. Geometric mean of our speed beside LAPACK's {mean:.2}; {below} of {} rows \
         are below {GOAL}.\n\n| what | ours, ms | LAPACK | speed beside LAPACK's |\n|---|---:|---:|---:|\n",
        rows.len()
    );
    for row in rows {
        let (ours, lapack) = (row.ours * 1e3, row.lapack * 1e3);
        let _ = writeln!(text, "| {} | {ours:.3} | {lapack:.3} | {:.2} |", row.name, row.ratio());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_beside_lapack() {
        let row = Row::read("getrf, n = 64|0.002|0.001").unwrap();
        assert!(Row::read("oops").is_err());
        let text = table(&[row], "");
        assert!(text.contains("LAPACK's 0.50; 0 of 1 rows"), "{text}");
        assert!(text.contains("| getrf, n = 64 | 2.000 | 1.000 | 0.50 |"), "{text}");
    }
}
