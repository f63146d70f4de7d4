//! `cargo xtask bench sparse`: products and systems of sparse matrices through cuSPARSE beside Intel's MKL and SciPy, in one process.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::Result;

use super::by_turns::{Row, What, means};
use crate::setup;

#[derive(clap::Args)]
pub struct Args {
    /// Threads of cuSPARSE's numerics and of MKL.
    #[arg(long, default_value_t = 2)]
    threads: u32,
    /// Seconds that each row is measured for, by turns; the fastest turn counts.
    #[arg(long, default_value_t = 3.0)]
    seconds: f32,
    #[command(flatten)]
    what: What,
}

/// Of the faster one's speed, on average.
const GOAL: f64 = 0.8;

const WHEELS: &[&str] = &["numpy==2.4.6", "scipy==1.17.1"];

/// Files of these wheels are measured and never shipped.
const MKL: [(&str, &str); 2] =
    [("mkl==2026.2.0", "data/lib/libmkl_"), ("intel-openmp==2026.2.0", "data/lib/libiomp5.so")];

/// What rows begin with.
const KINDS: [&str; 5] = ["SpMV", "SpMM", "SpGEMM", "SpSV", "SpSM"];

/// The folder that MKL is fetched into.
pub fn mkl() -> Result<PathBuf> {
    let folder = setup::download_cache()?.join("mkl");
    for (pin, part) in MKL {
        setup::files_of_wheel(pin, part, &folder)?;
    }
    Ok(folder)
}

pub fn run(args: &Args) -> Result<()> {
    let lib = args.what.ours.objects()?;
    setup::wheels(WHEELS)?;
    let mkl = mkl()?;
    let threads = args.threads.to_string();
    let mut program = args.what.program("sparse/sparse.py", &lib)?;
    program.args([lib.join("libcusparse.so.12"), lib.join("libcudart.so.13"), mkl.clone()]);
    program.args([&threads, &args.seconds.to_string()]);
    program.env("LD_LIBRARY_PATH", format!("{}:{}", lib.display(), mkl.display()));
    program.env_remove("CUDAWAY_SPARSE");
    program.env("RAYON_NUM_THREADS", &threads).env("OMP_NUM_THREADS", &threads).env("KMP_BLOCKTIME", "0");
    program.envs([("MKL_THREADING_LAYER", "INTEL"), ("MKL_INTERFACE_LAYER", "LP64")]);
    let rows = args.what.rows(program)?;
    args.what.tell("sparse", &table(&rows, &format!("{threads} thread(s){}", args.what.ours.built())))
}

/// Beside MKL, and SciPy where it has such a thing.
fn table(rows: &[Row<2>], what: &str) -> String {
    let mut text = format!(
        "{what}. Geometric mean of our speed beside that of the faster of both {}.\n\n\
         | what | ours, ms | MKL | SciPy | speed beside the faster one's |\n|---|---:|---:|---:|---:|\n",
        means(rows, GOAL, &KINDS)
    );
    for row in rows {
        let [mkl, scipy] = row.theirs.map(|seconds| seconds * 1e3);
        let scipy = if scipy > 0.0 { format!("{scipy:.2}") } else { "–".to_owned() };
        let _ = writeln!(
            text,
            "| {} | {:.2} | {mkl:.2} | {scipy} | {:.2} |",
            row.name,
            row.ours * 1e3,
            row.ratio()
        );
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
        assert!((Row::<2>::read("SpSM grid f64|0.002|0.001|0.000000").unwrap().ratio() - 0.5).abs() < 1e-9);
        assert!(Row::<2>::read("oops").is_err());
        let text = table(&[row], "2 thread(s)");
        assert!(text.contains("0.50 (goal 0.8: not met); by kind SpMV 0.50."), "{text}");
        let without = Row::read("SpSM grid f64|0.002|0.001|0.000000").unwrap();
        let text = table(&[without], "2 thread(s)");
        assert!(text.contains("| SpSM grid f64 | 2.00 | 1.00 | – | 0.50 |"), "{text}");
    }
}
