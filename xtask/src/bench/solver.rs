//! `cargo xtask bench solver`: factorizations, eigenvalues and singular values through cuSOLVER beside SciPy's LAPACK, in one process.

use std::fmt::Write as _;

use anyhow::Result;

use super::by_turns::{Row, What, mean};
use crate::setup;

#[derive(clap::Args)]
pub struct Args {
    /// Seconds that each row is measured for, by turns; the fastest turn counts.
    #[arg(long, default_value_t = 2.0)]
    seconds: f32,
    #[command(flatten)]
    what: What,
}

/// What is wanted: the least of a row, and of the geometric mean.
const GOAL: f64 = 0.6;
const GOAL_OF_MEAN: f64 = 1.0;

const WHEELS: &[&str] = &["numpy==2.4.6", "scipy==1.17.1"];

pub fn run(args: &Args) -> Result<()> {
    let lib = args.what.ours.objects()?;
    setup::wheels(WHEELS)?;
    let mut program = args.what.program("solver/solver.py", &lib)?;
    program.args([lib.join("libcusolver.so.12"), lib.join("libcudart.so.13")]);
    program.arg(args.seconds.to_string()).env_remove("CUDAWAY_SOLVER");
    program.envs([("RAYON_NUM_THREADS", "1"), ("OPENBLAS_NUM_THREADS", "1")]);
    let rows = args.what.rows(program)?;
    args.what.tell("solver", &table(&rows, args.what.ours.built()))
}

fn table(rows: &[Row<1>], built: &str) -> String {
    let below = rows.iter().filter(|row| row.ratio() < GOAL).count();
    let mut text = format!(
        "One thread each, doubles{built}. Geometric mean of our speed beside LAPACK's {:.2} (goal {GOAL_OF_MEAN:.1}: {}); \
         {below} of {} rows are below {GOAL} (goal: none).\n\n| what | ours, ms | LAPACK | speed beside LAPACK's |\n|---|---:|---:|---:|\n",
        mean(rows),
        if mean(rows) >= GOAL_OF_MEAN { "met" } else { "missed" },
        rows.len()
    );
    for row in rows {
        let (ours, lapack) = (row.ours * 1e3, row.theirs[0] * 1e3);
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
        assert!(Row::<1>::read("oops").is_err());
        let text = table(&[row], "");
        assert!(text.contains("LAPACK's 0.50 (goal 1.0: missed); 1 of 1 rows"), "{text}");
        assert!(text.contains("| getrf, n = 64 | 2.000 | 1.000 | 0.50 |"), "{text}");
    }
}
