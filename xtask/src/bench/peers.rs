//! `cargo xtask bench peers`: the same work on our CPU device, in native C, on PoCL and on Intel's OpenCL, in one run.
//! The programs take turns row by row, so that what else the machine does hits all of them alike. Each program checks
//! its own results; the smallest reading of all rounds counts.

mod page;
mod plot;
mod programs;
mod rows;
mod scaling;

use std::time::Duration;

use anyhow::{Result, bail};
use testkit::Installed;

use crate::setup;
use programs::{Peer, Program};
use rows::{ROWS, Row};

#[derive(clap::Args)]
pub struct Args {
    /// Only these rows, comma separated; docs/performance.md is left as it is.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// One short round, to see that all works; docs/performance.md is left as it is.
    #[arg(long)]
    quick: bool,
    /// How often each program measures each row.
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    #[command(flatten)]
    ours: super::Ours,
    #[command(flatten)]
    setup: setup::Args,
}

/// What one program said about one row.
#[derive(Clone, Debug, PartialEq)]
pub enum Reading {
    /// Microseconds per launch: of all threads together, and by the clock on the wall.
    Measured { cpu: f64, wall: f64 },
    /// It ran, and its results are not right.
    Wrong(String),
    /// The peer has no way to say this row.
    Cannot(String),
    /// It did not come to an end of its own.
    Failed(String),
}

const OPENCL: [Peer; 2] = [Peer::Pocl, Peer::Intel];

/// One row's readings, in the order of the programs.
pub struct Line {
    row: &'static Row,
    readings: Vec<(Peer, Reading)>,
}

impl Line {
    fn of(&self, peer: Peer) -> Option<&Reading> {
        self.readings.iter().find(|(other, _)| *other == peer).map(|(_, reading)| reading)
    }

    /// The time that counts in this row: the processors' for all but the empty launch, which is all waiting.
    fn time(&self, peer: Peer) -> Option<f64> {
        match self.of(peer)? {
            Reading::Measured { cpu, wall } => Some(if self.row.is_latency() { *wall } else { *cpu }),
            _ => None,
        }
    }

    /// The faster of the OpenCL runtimes that gave right results.
    fn best_peer(&self) -> Option<f64> {
        OPENCL.iter().filter_map(|peer| self.time(*peer)).min_by(f64::total_cmp)
    }
}

pub fn run(args: &Args) -> Result<()> {
    args.setup.apply();
    if let Some(unknown) = args.only.iter().find(|name| ROWS.iter().all(|row| row.name != **name)) {
        let names: Vec<&str> = ROWS.iter().map(|row| row.name).collect();
        bail!("no row is called {unknown}; there are: {}", names.join(", "));
    }
    let installed = Installed::at(args.ours.objects()?);
    let programs = programs::all(&installed)?;
    let before = page::load();
    let wanted: Vec<&'static Row> = ROWS
        .iter()
        .filter(|row| args.only.is_empty() || args.only.iter().any(|name| name == row.name))
        .collect();
    let (rounds, seconds) = if args.quick { (1, 0.05) } else { (args.rounds.max(1), 0.3) };
    let lines = measure(&programs, &wanted, rounds, seconds);
    let scaled = scaling::measure(&programs, &wanted, rounds, seconds);
    let table = format!("{}\n{}", page::table(&lines), scaling::table(&scaled));
    println!("\n{table}");
    if args.quick || !args.only.is_empty() || args.ours.are_given() {
        println!("docs/performance.md is left as it is: it wants a whole run of our own objects.");
        return Ok(());
    }
    page::write(&programs, &lines, &table, &before, args.ours.built())
}

fn measure(programs: &[Program], wanted: &[&'static Row], rounds: u32, seconds: f64) -> Vec<Line> {
    let mut lines: Vec<Line> = wanted.iter().map(|row| Line { row, readings: Vec::new() }).collect();
    for round in 1..=rounds {
        println!("round {round} of {rounds}: CPU and wall microseconds per launch");
        for line in &mut lines {
            for program in programs {
                let so_far = line.of(program.peer).cloned();
                if so_far.as_ref().is_some_and(|reading| !matches!(reading, Reading::Measured { .. })) {
                    continue;
                }
                let reading = program.measure(line.row.name, seconds, Duration::from_secs(120));
                println!("  {:<16} {:<12} {reading}", line.row.name, program.peer.name());
                line.readings.retain(|(peer, _)| *peer != program.peer);
                line.readings.push((program.peer, best(so_far, reading)));
            }
        }
    }
    lines
}

/// The smaller times of both; what went wrong once stays wrong.
fn best(so_far: Option<Reading>, reading: Reading) -> Reading {
    match (so_far, reading) {
        (Some(Reading::Measured { cpu: a, wall: b }), Reading::Measured { cpu, wall }) => {
            Reading::Measured { cpu: cpu.min(a), wall: wall.min(b) }
        }
        (_, reading) => reading,
    }
}

impl std::fmt::Display for Reading {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Reading::Measured { cpu, wall } => write!(f, "{cpu:>12.1} {wall:>12.1}"),
            Reading::Wrong(what) => write!(f, "WRONG: {what}"),
            Reading::Cannot(why) => write!(f, "cannot: {why}"),
            Reading::Failed(how) => write!(f, "FAILED: {how}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_times_of_all_rounds_count_and_a_wrong_result_stays() {
        let first = Reading::Measured { cpu: 5.0, wall: 3.0 };
        let second = Reading::Measured { cpu: 4.0, wall: 6.0 };
        assert_eq!(best(Some(first.clone()), second), Reading::Measured { cpu: 4.0, wall: 3.0 });
        let wrong = Reading::Wrong("element 3".to_owned());
        assert_eq!(best(Some(first), wrong.clone()), wrong);
    }

    #[test]
    fn a_wrong_peer_is_not_the_best_one() {
        let row = &ROWS[0];
        let readings = vec![
            (Peer::Ours, Reading::Measured { cpu: 10.0, wall: 5.0 }),
            (Peer::Pocl, Reading::Wrong("all of it".to_owned())),
            (Peer::Intel, Reading::Measured { cpu: 30.0, wall: 15.0 }),
        ];
        assert_eq!(Line { row, readings }.best_peer(), Some(30.0));
    }
}
