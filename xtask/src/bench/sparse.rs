//! `cargo xtask bench sparse`: products and systems of sparse matrices through cuSPARSE beside Intel's MKL and SciPy, in one process.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::section;
use crate::setup;

#[derive(clap::Args)]
pub struct Args {
    /// Threads of cuSPARSE's numerics and of MKL.
    #[arg(long, default_value_t = 2)]
    threads: u32,
    /// Seconds that each row is measured for, by turns; the fastest turn counts.
    #[arg(long, default_value_t = 3.0)]
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

/// Of the faster one's speed, on average.
const GOAL: f64 = 0.8;

const WHEELS: &[&str] = &["numpy==2.4.6", "scipy==1.17.1"];

/// Files of these wheels are measured and never shipped.
const MKL: [(&str, &str); 2] =
    [("mkl==2026.2.0", "data/lib/libmkl_"), ("intel-openmp==2026.2.0", "data/lib/libiomp5.so")];

pub fn run(args: &Args) -> Result<()> {
    let local = args.local.then(setup::lib_dir);
    let lib = super::objects(args.lib.as_deref().or(local.as_deref()))?;
    setup::wheels(WHEELS)?;
    let mkl = setup::download_cache()?.join("mkl");
    for (pin, part) in MKL {
        setup::files_of_wheel(pin, part, &mkl)?;
    }
    let out = command(args, &lib, &mkl)?.output().context("cannot start Python")?;
    let said = String::from_utf8_lossy(&out.stdout);
    ensure!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let rows = said.lines().map(Row::read).collect::<Result<Vec<_>>>()?;
    let built = if args.local { ", the objects of target/cudaway/lib" } else { "" };
    let text = table(&rows, &format!("{} thread(s){built}", args.threads));
    println!("{text}");
    if args.lib.is_some() || !args.words.is_empty() { Ok(()) } else { section::write("sparse", &text) }
}

fn command(args: &Args, lib: &Path, mkl: &Path) -> Result<Command> {
    let mut command = Command::new(setup::venv()?);
    command.arg(setup::root().join("benches/sparse/sparse.py"));
    command.args([lib.join("libcusparse.so.12"), lib.join("libcudart.so.13"), mkl.to_owned()]);
    command.args([args.threads.to_string(), args.seconds.to_string()]).args(&args.words);
    command.env("LD_PRELOAD", format!("{0}/libcuda.so.1:{0}/libcudart.so.13", lib.display()));
    command.env("LD_LIBRARY_PATH", format!("{}:{}", lib.display(), mkl.display()));
    command.env("CUDAWAY_DEVICE", "cpu").env_remove("CUDAWAY_SPARSE");
    let threads = args.threads.to_string();
    command.env("RAYON_NUM_THREADS", &threads).env("OMP_NUM_THREADS", &threads).env("KMP_BLOCKTIME", "0");
    command.envs([("MKL_THREADING_LAYER", "INTEL"), ("MKL_INTERFACE_LAYER", "LP64")]);
    Ok(command)
}

/// A line of the program, in seconds.
#[derive(Debug, PartialEq)]
struct Row {
    name: String,
    ours: f64,
    mkl: f64,
    /// 0 where SciPy has no such thing.
    scipy: f64,
}

impl Row {
    fn read(line: &str) -> Result<Row> {
        let parts: Vec<&str> = line.split('|').collect();
        let [name, ours, mkl, scipy] = parts[..] else { anyhow::bail!("the program says {line:?}") };
        Ok(Row { name: name.to_owned(), ours: ours.parse()?, mkl: mkl.parse()?, scipy: scipy.parse()? })
    }

    /// Our speed beside that of the faster one.
    fn ratio(&self) -> f64 {
        let best = if self.scipy > 0.0 { self.scipy.min(self.mkl) } else { self.mkl };
        best / self.ours
    }
}

fn table(rows: &[Row], what: &str) -> String {
    let mean =
        |rows: &[&Row]| (rows.iter().map(|row| row.ratio().ln()).sum::<f64>() / rows.len() as f64).exp();
    let all = mean(&rows.iter().collect::<Vec<_>>());
    let met = if all >= GOAL { "met" } else { "not met" };
    let mut text = format!(
        "{what}. Geometric mean of our speed beside that of the faster of both {all:.2} (goal {GOAL}: {met}); by kind"
    );
    for kind in ["SpMV", "SpMM", "SpGEMM", "SpSV", "SpSM"] {
        let own: Vec<&Row> = rows.iter().filter(|row| row.name.starts_with(&format!("{kind} "))).collect();
        if !own.is_empty() {
            let _ = write!(text, " {kind} {:.2},", mean(&own));
        }
    }
    text.pop();
    text +=
        ".\n\n| what | ours, ms | MKL | SciPy | speed beside the faster one's |\n|---|---:|---:|---:|---:|\n";
    for row in rows {
        let scipy = if row.scipy > 0.0 { format!("{:.2}", row.scipy * 1e3) } else { "–".to_owned() };
        let (ours, mkl) = (row.ours * 1e3, row.mkl * 1e3);
        let _ = writeln!(text, "| {} | {ours:.2} | {mkl:.2} | {scipy} | {:.2} |", row.name, row.ratio());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_beside_the_faster_one() {
        let row = Row::read("SpMV grid f64, 9 rows, 20 entries|0.002|0.001|0.004").unwrap();
        assert!((row.ratio() - 0.5).abs() < 1e-9);
        assert!((Row::read("SpSM grid f64|0.002|0.001|0.000000").unwrap().ratio() - 0.5).abs() < 1e-9);
        assert!(Row::read("oops").is_err());
        let text = table(&[row], "2 thread(s)");
        assert!(text.contains("0.50 (goal 0.8: not met); by kind SpMV 0.50."), "{text}");
    }
}
