//! `cargo xtask frontend`: cudnn-frontend's C++ samples, run on the CPU device; docs/cudnn-frontend.md is made of what came of it.
//!
//! The programs are NVIDIA's, and no part of this tree: a folder has them, built as their CMakeLists asks, by the names of its targets. Each is
//! a Catch2 program whose test cases are run one by one.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};
use testkit::Ended;

use crate::samples::How;
use crate::samples::ran::{Ran, Way, kept};
use crate::setup;
use crate::site::wrap::wrapped;

#[derive(clap::Args)]
pub struct Args {
    /// The folder that has the built programs.
    #[arg(long, value_name = "DIR")]
    programs: PathBuf,
    /// Only test cases whose name has this.
    #[arg(long, value_name = "WORD")]
    only: Option<String>,
    /// Seconds that a test case may run.
    #[arg(long, default_value_t = 120)]
    limit: u64,
    /// Our objects.
    #[arg(long, value_name = "DIR")]
    lib: Option<PathBuf>,
}

const RESULTS: &str = "tools/data/frontend.json";
const PAGE: &str = "docs/cudnn-frontend.md";

/// The targets of its CMakeLists.
const PROGRAMS: [&str; 2] = ["samples", "legacy_samples"];

/// Some ask for more memory than a small machine has, and fail where it is refused. cudnn-frontend's log has what the library says.
const VARIABLES: &[(&str, &str)] = &[
    ("CUDAWAY_DEVICE", "cpu"),
    ("CUDAWAY_CPU_MEMORY_MB", "6144"),
    ("CUDNN_FRONTEND_LOG_INFO", "1"),
    ("CUDNN_FRONTEND_LOG_FILE", "stderr"),
];

/// The device of a test case that skips itself on the usual one: most of those are for one generation, whose features the translator has too.
const OTHERS: [&str; 2] = ["10.0", "12.0"];

/// Why a test case that does not pass does not: the word that its name or what it says has, and the reason.
const REASONS: &[(&str, &str)] = &[
    ("statistics of several GPUs", "blocks of several GPUs meet in that memory while their kernels run"),
    (
        "sdpa forward with dynamic shapes",
        "the sizes that it gives for the result are not those of its queries",
    ),
    (
        "statistics are not one for each channel",
        "it describes sums of 256 channels with the sizes of a scale of 32",
    ),
    (
        "a tensor in another order",
        "it keeps scores or gradients in memory in an order (F16x16) that no text describes",
    ),
    (
        "there is no engine of this number",
        "it asks for an engine 20 of a convolution; ours has the numbers 0 to 17",
    ),
    ("vectors of channels", "int8 in vectors of 4 or 32 channels is the legacy API's alone here"),
    ("out of memory", "it asks for more than 6 GB, which the command gives"),
    ("still running", "of a size for a GPU, on a machine that had other work"),
];

/// A test case's run, and how many of its own checks were made.
#[derive(Serialize, Deserialize)]
struct Case {
    program: String,
    #[serde(flatten)]
    ran: Ran,
    checks: u64,
    /// The compute capability that it was run with, where that is not the usual one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    capability: Option<String>,
}

pub fn run(args: &Args) -> Result<()> {
    let lib = fs::canonicalize(args.lib.clone().unwrap_or_else(setup::lib_dir))
        .context("our objects; first: cargo xtask build")?;
    ensure!(lib.join("libcuda.so.1").exists(), "{} has no libcuda.so.1", lib.display());
    let programs = fs::canonicalize(&args.programs).with_context(|| args.programs.display().to_string())?;
    let home = setup::root().join("target/frontend");
    let limit = Duration::from_secs(args.limit);
    let mut results: Vec<Case> = kept(RESULTS)?;
    for program in PROGRAMS {
        let path = programs.join(program);
        if !path.exists() {
            println!("{program}: not in {}", programs.display());
            continue;
        }
        let names = names(&path, &Way { lib: &lib, dir: &home.join(program), limit, variables: VARIABLES })?;
        if args.only.is_none() {
            results.retain(|it| it.program != program || names.contains(&it.ran.name));
        }
        let wanted = |name: &&String| args.only.as_ref().is_none_or(|word| name.contains(word.as_str()));
        for (number, name) in names.iter().enumerate().filter(|(_, name)| wanted(name)) {
            let dir = home.join(program).join(number.to_string());
            let once = |capability: Option<&str>| -> Result<Case> {
                let mut variables = VARIABLES.to_vec();
                variables.extend(capability.map(|version| ("CUDAWAY_COMPUTE_CAPABILITY", version)));
                let way = Way { lib: &lib, dir: &dir, limit, variables: &variables };
                let mut checks = 0;
                let ran = Ran::new(name, &path, &[escaped(name)], &way, |ended| {
                    checks = checks_of(&ended.stdout);
                    judged(ended, limit)
                })?;
                Ok(Case {
                    program: program.to_owned(),
                    ran,
                    checks,
                    capability: capability.map(str::to_owned),
                })
            };
            let mut case = once(None)?;
            for version in OTHERS {
                if case.ran.how == How::Waived {
                    let other = once(Some(version))?;
                    case = if other.ran.how == How::Waived { case } else { other };
                }
            }
            println!("{program}: {name}: {} {}", case.ran.how.word(), case.ran.said);
            results.retain(|it| it.program != program || it.ran.name != *name);
            results.push(case);
            results.sort_by(|a, b| (&b.program, &a.ran.name).cmp(&(&a.program, &b.ran.name)));
            setup::keep(RESULTS, &results)?;
        }
    }
    fs::write(setup::root().join(PAGE), wrapped(&page(&results))?)?;
    Ok(())
}

/// The test cases that a program lists.
fn names(program: &Path, way: &Way) -> Result<Vec<String>> {
    let mut names = Vec::new();
    let arguments = ["--list-tests", "--verbosity", "quiet"].map(str::to_owned);
    Ran::new("its list", program, &arguments, way, |ended| {
        names = ended.stdout.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect();
        (How::Passed, String::new())
    })?;
    ensure!(!names.is_empty(), "{} lists no test cases", program.display());
    Ok(names)
}

/// A name as Catch2 takes it for itself.
fn escaped(name: &str) -> String {
    let mut text = String::new();
    for letter in name.trim_end().chars() {
        if matches!(letter, ',' | '[' | '\\' | '"' | '*' | '~') {
            text.push('\\');
        }
        text.push(letter);
    }
    text
}

/// The checks that Catch2 counted.
fn checks_of(stdout: &str) -> u64 {
    let line = stdout.lines().rfind(|line| line.contains("assertion"));
    let words: Vec<&str> =
        line.unwrap_or_default().split([' ', '(', '|', ':']).filter(|it| !it.is_empty()).collect();
    let number = |at: usize| words.get(at).and_then(|word| word.parse().ok());
    let before = words.iter().position(|word| word.starts_with("assertion"));
    // `All tests passed (3 assertions in 1 test case)`, or `assertions: 3 | 2 passed | 1 failed`.
    before.and_then(|at| at.checked_sub(1).and_then(number).or_else(|| number(at + 1))).unwrap_or(0)
}

/// Catch2's exit codes: 0, 4 where all was skipped, else how many failed.
fn judged(ended: &Ended, limit: Duration) -> (How, String) {
    const SKIPPED: i32 = 4;
    if ended.timed_out || matches!(ended.status.code(), Some(124 | 137)) || ended.took >= limit {
        return (How::Failed, format!("still running after {} s", limit.as_secs()));
    }
    match ended.status.code() {
        Some(0) => (How::Passed, String::new()),
        Some(SKIPPED) => (How::Waived, message(&ended.stdout).unwrap_or_else(|| "skipped".to_owned())),
        Some(code) => {
            let said = error(ended).or_else(|| message(&ended.stdout));
            (How::Failed, said.unwrap_or_else(|| format!("exit code {code}")))
        }
        None => (How::Failed, ended.describe().lines().next().unwrap_or_default().to_owned()),
    }
}

fn short(line: &str) -> String {
    line.trim().chars().take(160).collect()
}

/// Of a line `… Failed` with the last error's words and `cudnn_status: CUDNN_STATUS_…` those words.
fn said_by_library(line: &str) -> Option<String> {
    let (before, _) = line.split_once(" cudnn_status").or_else(|| line.split_once(", and code: "))?;
    Some(short(&before[before.rfind("cudnnBackend")?..]))
}

/// What the library said to cudnn-frontend, which prints it.
fn error(ended: &Ended) -> Option<String> {
    let text = format!("{}\n{}", ended.stdout, ended.stderr);
    text.lines().find_map(said_by_library)
}

/// What the test case said of its end.
fn message(stdout: &str) -> Option<String> {
    ["with message:", "FAILED:"].iter().find_map(|before| {
        let mut lines = stdout.lines();
        lines.by_ref().find(|line| line.contains(before))?;
        lines.find(|line| !line.trim().is_empty()).map(short)
    })
}

/// The page, by its path.
pub fn pages() -> Result<Vec<(String, String)>> {
    Ok(vec![(PAGE.to_owned(), page(&kept(RESULTS)?))])
}

const HEAD: &str = "# cudnn-frontend's samples on our libraries

Written by `cargo xtask frontend --programs DIR` from `tools/data/frontend.json`, which it writes too. cudnn-frontend is NVIDIA's C++ interface to
cuDNN's graph API; its samples are no part of this tree: the folder `DIR` has both programs that its CMakeLists makes of them, `samples` and
`legacy_samples`, built by g++ and linked with CUDAway's libraries in place of NVIDIA's. Those of the table's last run were of commit
`3929da2ef4c1` (8 May 2026), built against the headers of cuDNN 9.27 and Catch2 3.3.2.

Each test case is run by itself on the CPU device by `cudaway run`, and passes if Catch2 says so; how many of its own checks were made stands beside
it. Most check that their graph was built and executed, and compare no numbers: those are compared by `cargo xtask test --only dnn`. \"Waived\" is what
skips itself, with what it says, on a device of the usual compute capability, 9.0, and on one of 10.0 and of 12.0 too (`CUDAWAY_COMPUTE_CAPABILITY`);
what does not skip itself on one of those has that in the last column. Times are seconds, as in [samples.md](samples.md): on the clock, and of the
processor.
";

fn page(results: &[Case]) -> String {
    let mut text = HEAD.to_owned();
    for program in PROGRAMS {
        let all: Vec<&Case> = results.iter().filter(|it| it.program == program).collect();
        if all.is_empty() {
            let _ = writeln!(text, "\n## `{program}`\n\nNo run has come to it yet.");
            continue;
        }
        let count = |how| all.iter().filter(|it| it.ran.how == how).count();
        let empty = all.iter().filter(|it| it.ran.how == How::Passed && it.checks == 0).count();
        let _ = writeln!(
            text,
            "\n## `{program}`\n\nOf {}: {} passed ({empty} of them without a check), {} failed, {} waived.\n",
            all.len(),
            count(How::Passed),
            count(How::Failed),
            count(How::Waived)
        );
        text.push_str(
            "| test case | checks | result | s | processor | kernels | compiled | launches | it says |\n",
        );
        text.push_str("|---|--:|---|--:|--:|--:|--:|--:|---|\n");
        for Case { ran, checks, capability, .. } in all {
            let reason = REASONS.iter().find(|(word, _)| ran.name.contains(word) || ran.said.contains(word));
            let reason = reason.filter(|_| ran.how == How::Failed).map_or("", |(_, reason)| *reason);
            let mut said = ran.quoted();
            if !reason.is_empty() {
                let _ = write!(said, "{}{reason}", if said.is_empty() { "" } else { ": " });
            }
            if let Some(version) = capability {
                let _ =
                    write!(said, "{}compute capability {version}", if said.is_empty() { "" } else { "; " });
            }
            let name = ran.name.replace('|', "/");
            let _ = writeln!(text, "| {name} | {checks} | {} | {said} |", ran.cells());
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn catch2_is_read() {
        assert_eq!(checks_of("All tests passed (3 assertions in 1 test case)\n"), 3);
        assert_eq!(checks_of("test cases: 1 | 1 failed\nassertions: 4 | 3 passed | 1 failed\n"), 4);
        assert_eq!(checks_of("test cases: 1 | 1 skipped\nassertions: - none -\n"), 0);
        assert_eq!(escaped("a, b [c]"), "a\\, b \\[c]");
        let refused =
            "ERROR: cudnnFinalize FailedcudnnBackendFinalize: not supported: x cudnn_status: CUDNN_STATUS_";
        assert_eq!(said_by_library(refused).as_deref(), Some("cudnnBackendFinalize: not supported: x"));
        let skipped = "f.cpp:3: SKIPPED:\nexplicitly with message:\n  needs Blackwell\n\n====";
        assert_eq!(message(skipped).as_deref(), Some("needs Blackwell"));
    }
}
