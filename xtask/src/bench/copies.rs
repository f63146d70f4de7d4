//! `cargo xtask bench copies`: copies of all kinds and launches of small kernels on the CPU device, beside memcpy, memset and loops of the
//! same work in the same program.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::{Result, ensure};
use testkit::Installed;

use super::section;
use crate::setup;
use crate::test::examples::quiet;
use crate::toolchain::Release;

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    ours: super::Ours,
}

/// Times memcpy that a copy of megabytes may take.
const GOAL: f64 = 1.5;

/// Milliseconds on the clock and of CPU, ours and plain C's.
struct Row {
    name: String,
    ours: [f64; 2],
    plain: [f64; 2],
}

impl Row {
    fn of(line: &str) -> Option<Row> {
        let fields: Vec<&str> = line.split('\t').collect();
        let [name, numbers @ ..] = &fields[..] else { return None };
        let numbers: Vec<f64> = numbers.iter().map(|it| it.parse().ok()).collect::<Option<_>>()?;
        let [a, b, c, d] = numbers[..] else { return None };
        Some(Row { name: (*name).to_owned(), ours: [a, b], plain: [c, d] })
    }

    /// Thousands of calls are a matter of what a call costs.
    fn of_many(&self) -> bool {
        self.name.starts_with("1,000")
    }
}

pub fn run(args: &Args) -> Result<()> {
    let out = setup::root().join("target/copies-bench");
    let nvcc = Release::V13_5.get()?;
    let mut command = nvcc.nvcc();
    command.args(["-O3", "-std=c++17", "-arch=compute_80", "-o"]).arg(&out);
    command.arg(setup::root().join("benches/copies/copies.cu"));
    quiet(&mut command)?;
    let lib = args.ours.objects()?;
    let ended = Installed::at(lib).preloaded(&out).limit(Duration::from_secs(300)).run()?;
    ensure!(ended.status.success(), "{}", ended.describe());
    let rows: Vec<Row> = ended.stdout.lines().filter_map(Row::of).collect();
    ensure!(!rows.is_empty(), "no row: {}", ended.describe());
    let text = table(&rows, args.ours.built());
    println!("{text}");
    if args.ours.are_given() { Ok(()) } else { section::write("copies", &text) }
}

fn table(rows: &[Row], built: &str) -> String {
    let mut text = format!(
        "The least of nine{built}, milliseconds on the clock and of CPU.\n\n\
         | | CUDAway | plain C | × its time | goal |\n|---|--:|--:|--:|---|\n",
    );
    for row in rows {
        let Row { name, ours, plain } = row;
        let times = ours[0] / plain[0];
        let verdict = match (row.of_many(), times <= GOAL) {
            (true, _) => format!("{:.2} µs a call more", ours[0] - plain[0]),
            (false, true) => "met".to_owned(),
            (false, false) => "**missed**".to_owned(),
        };
        let _ = writeln!(
            text,
            "| {name} | {:.3}, {:.3} | {:.3}, {:.3} | {times:.2} | {verdict} |",
            ours[0], ours[1], plain[0], plain[1]
        );
    }
    text
}
