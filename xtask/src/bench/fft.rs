//! `cargo xtask bench fft`: cuFFT's numerics on the CPU beside FFTW 3's, by `cargo bench -p cufft-cpu --bench fft`.

use std::fmt::Write as _;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::section;
use crate::setup;

#[derive(clap::Args)]
pub struct Args {
    /// Threads of both. With one, time is the thread's own, so other programs count for less.
    #[arg(long, default_value_t = 1)]
    threads: u32,
    /// FFTW plans patiently, which takes long.
    #[arg(long)]
    patient: bool,
    /// Seconds after which FFTW takes the best plan that it has found.
    #[arg(long, default_value_t = 20)]
    plan_seconds: u32,
    /// Only rows whose name has all of these words; docs/performance.md is left as it is.
    words: Vec<String>,
}

/// Of FFTW's speed: on average, and at least.
const GOALS: [f64; 2] = [0.8, 0.5];

pub fn run(args: &Args) -> Result<()> {
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(setup::root()).args(["bench", "--quiet", "-p", "cufft-cpu", "--bench", "fft", "--"]);
    command.args(&args.words).env("THREADS", args.threads.to_string());
    command.env("FFTW", if args.patient { "patient" } else { "measure" });
    command.env("FFTW_SECONDS", args.plan_seconds.to_string());
    let out = command.output().context("cargo bench")?;
    let said = String::from_utf8_lossy(&out.stdout);
    ensure!(out.status.success(), "{command:?}: {}", String::from_utf8_lossy(&out.stderr));
    let rows: Vec<Row> = said.lines().filter_map(Row::read).collect();
    ensure!(
        !rows.is_empty(),
        "FFTW 3 is not there (Debian's libfftw3-single3 and libfftw3-double3):\n{said}"
    );
    let text = table(&rows, args);
    println!("{text}");
    if args.words.is_empty() { section::write("fft", &text) } else { Ok(()) }
}

/// A line of the bench's table.
#[derive(Debug, PartialEq)]
struct Row {
    name: String,
    ours: f64,
    theirs: f64,
}

impl Row {
    /// None of its other lines ends in three numbers.
    fn read(line: &str) -> Option<Row> {
        let mut words = line.split_whitespace().rev();
        let mut number = || words.next()?.parse::<f64>().ok();
        let (_, theirs, ours) = (number()?, number()?, number()?);
        let name: Vec<&str> = words.rev().collect();
        Some(Row { name: name.join(" "), ours, theirs })
    }

    fn ratio(&self) -> f64 {
        self.ours / self.theirs
    }
}

fn table(rows: &[Row], args: &Args) -> String {
    let mean = rows.iter().map(|row| row.ratio().ln()).sum::<f64>() / rows.len() as f64;
    let least = rows.iter().min_by(|a, b| a.ratio().total_cmp(&b.ratio())).expect("there are rows");
    let met = |value: f64, goal: f64| if value >= goal { "met" } else { "not met" };
    let planned = if args.patient { "patiently" } else { "by measuring" };
    let mut text = format!(
        "{} thread(s), FFTW planned {planned}, for {} seconds at most. Geometric mean of our speed beside FFTW's {:.2} (goal {}: {}), the least {:.2}, {} (goal {}: {}).\n\n\
         | transforms | ours, Gflop/s | FFTW | ours / FFTW |\n|---|---:|---:|---:|\n",
        args.threads,
        args.plan_seconds,
        mean.exp(),
        GOALS[0],
        met(mean.exp(), GOALS[0]),
        least.ratio(),
        least.name,
        GOALS[1],
        met(least.ratio(), GOALS[1]),
    );
    for row in rows {
        let _ = writeln!(text, "| {} | {:.2} | {:.2} | {:.2} |", row.name, row.ours, row.theirs, row.ratio());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_ends_in_three_numbers() {
        let row = Row::read("f32 C2C 2D 480 x 640 * 1                12.50     10.00     1.25").unwrap();
        assert_eq!(row, Row { name: "f32 C2C 2D 480 x 640 * 1".to_owned(), ours: 12.5, theirs: 10.0 });
        assert_eq!(Row::read("                  ours     FFTW ours/FFTW"), None);
        assert_eq!(Row::read("geometric mean 1.05, the least 0.70 (f32 C2C 1D 8 * 1)"), None);
        assert_eq!(Row::read("1 thread(s); Gflop/s of 5 n log2 n, half of it for real transforms"), None);
    }
}
