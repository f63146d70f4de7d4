//! What `cargo xtask bench peers` writes into docs/performance.md.

use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use anyhow::Result;

use super::programs::{Peer, Program};
use super::rows::LATENCY_GOAL_US;
use super::{Line, OPENCL, Reading, plot};
use crate::bench::section;
use crate::setup;

const PEERS: [Peer; 4] = [Peer::Ours, Peer::Native, Peer::Pocl, Peer::Intel];

/// Goals over all rows: how often faster than the best peer, and how many times native code's time.
const PEER_MEAN_GOAL: f64 = 4.0;
const NATIVE_MEAN_GOAL: f64 = 0.95;

/// Rows, ratios and goals, as Markdown that a terminal shows as well.
pub fn table(lines: &[Line]) -> String {
    let mut text = String::from(
        "| row | CUDAway | native C | PoCL | Intel OpenCL | × native | × faster than best peer | goals |\n\
         |---|--:|--:|--:|--:|--:|--:|---|\n",
    );
    for line in lines {
        let _ = write!(text, "| `{}` |", line.row.name);
        for peer in PEERS {
            let _ = write!(text, " {} |", cell(line.of(peer)));
        }
        let ratio = |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{value:.2}"));
        let _ = writeln!(
            text,
            " {} | {} | {} |",
            ratio(against_native(line)),
            ratio(against_peers(line)),
            goals(line)
        );
    }
    let _ = write!(
        text,
        "{}\n{}{}",
        reasons(lines),
        mean(
            "native C's time",
            lines,
            against_native,
            |mean| mean <= NATIVE_MEAN_GOAL,
            &format!("at most {NATIVE_MEAN_GOAL}")
        ),
        mean(
            "speed of the best correct OpenCL peer",
            lines,
            against_peers,
            |mean| mean >= PEER_MEAN_GOAL,
            &format!("at least {PEER_MEAN_GOAL}")
        )
    );
    text
}

/// Why a cell has no times.
fn reasons(lines: &[Line]) -> String {
    let mut text = String::new();
    for line in lines {
        for (peer, reading) in &line.readings {
            if !matches!(reading, Reading::Measured { .. }) {
                let _ = write!(text, "\n`{}`, {}: {reading}.", line.row.name, peer.name());
            }
        }
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

/// CPU / wall milliseconds, or why there are none.
fn cell(reading: Option<&Reading>) -> String {
    match reading {
        Some(Reading::Measured { cpu, wall }) => format!("{} / {}", milliseconds(*cpu), milliseconds(*wall)),
        Some(Reading::Wrong(_)) => "wrong result".to_owned(),
        Some(Reading::Cannot(_)) => "cannot".to_owned(),
        Some(Reading::Failed(_)) => "failed".to_owned(),
        None => "not installed".to_owned(),
    }
}

fn milliseconds(microseconds: f64) -> String {
    let value = microseconds / 1000.0;
    match value {
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 1.0 => format!("{value:.1}"),
        value => format!("{value:.4}"),
    }
}

/// Our time in native code's.
fn against_native(line: &Line) -> Option<f64> {
    Some(line.time(Peer::Ours)? / line.time(Peer::Native)?)
}

/// The best peer's time in ours.
fn against_peers(line: &Line) -> Option<f64> {
    Some(line.best_peer()? / line.time(Peer::Ours)?)
}

/// Each goal of a row that is missed, or that all are met. What could not be compared is not said to be met.
fn goals(line: &Line) -> String {
    let Some(ours) = line.time(Peer::Ours) else { return "**no right result**".to_owned() };
    let mut missed = Vec::new();
    if line.row.is_latency() {
        if ours > LATENCY_GOAL_US {
            missed.push(format!("above {LATENCY_GOAL_US} µs"));
        }
    } else if against_native(line).is_some_and(|ratio| ratio > line.row.native_goal()) {
        missed.push(format!("above {} × native", line.row.native_goal()));
    }
    for peer in OPENCL {
        if line.time(peer).is_some_and(|time| time < ours) {
            missed.push(format!("slower than {}", peer.name()));
        }
    }
    if !missed.is_empty() {
        return format!("**missed**: {}", missed.join(", "));
    }
    match not_compared(line) {
        Some(peer) => format!("not compared with {}", peer.name()),
        None => "met".to_owned(),
    }
}

/// A program that a row's goals name and that gave no time.
fn not_compared(line: &Line) -> Option<Peer> {
    let native = (!line.row.is_latency()).then_some(Peer::Native);
    native.into_iter().chain(line.row.named_peer()).find(|peer| line.time(*peer).is_none())
}

/// The geometric mean over the rows that do work, with its goal.
fn mean(
    what: &str,
    lines: &[Line],
    ratio: impl Fn(&Line) -> Option<f64>,
    met: impl Fn(f64) -> bool,
    goal: &str,
) -> String {
    let ratios: Vec<f64> = lines.iter().filter(|line| !line.row.is_latency()).filter_map(ratio).collect();
    if ratios.is_empty() {
        return String::new();
    }
    let mean = (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp();
    let outcome = if met(mean) { "met" } else { "**missed**" };
    format!("Geometric mean of {} rows: {mean:.2} × {what} (goal: {goal}; {outcome}).\n", ratios.len())
}

/// Writes the page's measured part and the plot beside it. `built` says how our objects were made, where not as they are shipped.
pub fn write(
    programs: &[Program],
    lines: &[Line],
    table: &str,
    load_before: &str,
    built: &str,
) -> Result<()> {
    fs::write(setup::root().join("docs").join(plot_name()), plot::svg(lines))?;
    section::write_by_processor("peers", &measured(programs, lines, table, load_before, built))
}

/// The plot's file, beside the page.
fn plot_name() -> &'static str {
    if section::has_avx512() { "performance.svg" } else { "performance-avx2.svg" }
}

fn measured(programs: &[Program], lines: &[Line], table: &str, load_before: &str, built: &str) -> String {
    let mut text = format!(
        "\nMeasured on {} on {}: {}{built}.\nLoad average before the run {load_before}, after it {}; on a machine that does other things too, CPU\n\
         time is the number to compare.\n\n",
        said("date", &["-u", "+%Y-%m-%d"]),
        said("uname", &["-srm"]),
        processor(),
        load()
    );
    for program in programs {
        let _ = writeln!(text, "* {}: {}", program.peer.name(), program.version);
    }
    let _ = write!(
        text,
        "\nMilliseconds per launch, CPU of all threads / wall. Ratios are of CPU time, `empty`'s of wall time.\n\n{table}\n\
         ![Times relative to native C]({})\n\nThe work of each row: ",
        plot_name()
    );
    let works: Vec<String> =
        lines.iter().map(|line| format!("`{}` {}", line.row.name, line.row.what)).collect();
    let _ = writeln!(text, "{}.", works.join("; "));
    text
}

/// One, five and fifteen minutes' load.
pub fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').take(3).collect::<Vec<_>>().join(" ")
}

fn processor() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = info.lines().find(|line| line.split(':').next().is_some_and(|key| key.trim() == name));
        line.and_then(|line| line.split_once(':')).map_or("?", |(_, value)| value.trim()).to_owned()
    };
    let vectors = match (section::has_avx512(), section::is_narrowed()) {
        (true, _) => "AVX-512",
        (false, false) => "no AVX-512",
        (false, true) => "AVX-512 left unused by all but PoCL (`--narrow`)",
    };
    let cores = std::thread::available_parallelism().map_or(0, Into::into);
    format!(
        "{cores} cores, {} (family {}, model {}), {vectors}",
        field("model name"),
        field("cpu family"),
        field("model")
    )
}

fn said(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).output();
    output.map_or_else(|_| "?".to_owned(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::rows::ROWS;
    use super::*;

    fn line(name: &str, times: [f64; 4]) -> Line {
        let readings =
            PEERS.iter().zip(times).map(|(peer, time)| (*peer, Reading::Measured { cpu: time, wall: time }));
        Line { row: ROWS.iter().find(|row| row.name == name).expect("a row"), readings: readings.collect() }
    }

    #[test]
    fn a_streaming_row_is_held_to_a_smaller_ratio_than_others() {
        assert_eq!(goals(&line("saxpy", [115.0, 100.0, 200.0, 300.0])), "met");
        assert_eq!(goals(&line("saxpy", [120.0, 100.0, 200.0, 300.0])), "**missed**: above 1.15 × native");
        assert_eq!(goals(&line("nbody", [120.0, 100.0, 200.0, 300.0])), "met");
    }

    #[test]
    fn a_row_slower_than_the_better_peer_is_missed_and_both_reasons_are_given() {
        assert_eq!(
            goals(&line("nbody", [250.0, 100.0, 200.0, 300.0])),
            "**missed**: above 2 × native, slower than PoCL"
        );
        assert_eq!(
            goals(&line("black_scholes", [150.0, 100.0, 140.0, 130.0])),
            "**missed**: slower than PoCL, slower than Intel OpenCL"
        );
    }

    #[test]
    fn each_kind_of_row_has_the_ratio_of_its_own() {
        let ratios =
            [("reduce_barrier", 1.25), ("reduce_shuffle", 1.25), ("histogram", 1.3), ("matvec_half", 1.5)];
        for (name, ratio) in
            ratios.into_iter().chain([("tex_bilinear", 2.0), ("tex_point", 2.0), ("sort", 2.0)])
        {
            let peers = [100.0, 900.0, 900.0];
            let of = |ours| goals(&line(name, [ours, peers[0], peers[1], peers[2]]));
            assert_eq!(of(100.0 * ratio - 1.0), "met", "{name}");
            assert_eq!(of(100.0 * ratio + 1.0), format!("**missed**: above {ratio} × native"));
        }
    }

    #[test]
    fn a_goal_that_names_a_program_is_not_met_without_its_time() {
        let without = |name, peer: Peer| {
            let mut line = line(name, [100.0; 4]);
            line.readings.retain(|(other, _)| *other != peer);
            goals(&line)
        };
        assert_eq!(without("md5", Peer::Pocl), "not compared with PoCL");
        assert_eq!(without("black_scholes", Peer::Intel), "not compared with Intel OpenCL");
        assert_eq!(without("nbody", Peer::Native), "not compared with native C");
        assert_eq!(without("nbody", Peer::Pocl), "met");
    }

    #[test]
    fn the_empty_launch_has_a_goal_of_its_own_and_no_part_in_the_means() {
        assert_eq!(goals(&line("empty", [1.9, 0.9, 40.0, 5.0])), "met");
        assert_eq!(goals(&line("empty", [2.1, 0.9, 40.0, 5.0])), "**missed**: above 2 µs");
        let table = table(&[line("empty", [9.0, 1.0, 40.0, 5.0]), line("nbody", [2.0, 1.0, 8.0, 6.0])]);
        assert!(table.contains("1 rows: 2.00 × native"), "{table}");
        assert!(table.contains("1 rows: 3.00 × speed"), "{table}");
    }
}
