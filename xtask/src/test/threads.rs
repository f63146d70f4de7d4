//! 64 host threads on shared and own streams: every result is right, and nothing is left on the device at the end.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use testkit::Installed;

use super::report::{Outcome, Report};
use crate::setup;
use crate::toolchain::Release;

pub fn run(installed: &Installed, seconds: u32, report: &mut Report) {
    let dir = match testkit::temporary() {
        Ok(dir) => dir,
        Err(error) => return report.note("threads", Outcome::Failed(error.to_string())),
    };
    let program = match build(dir.path()) {
        Ok(program) => program,
        Err(error) => return report.note("threads", Outcome::Failed(format!("{error:#}"))),
    };
    report.note(
        &format!("64 threads for {seconds} s: right results, nothing left"),
        many_threads(installed, &program, seconds, ""),
    );
    // Whoever waits runs the work itself more often.
    report.note(
        &format!("64 threads for {seconds} s, one worker"),
        many_threads(installed, &program, seconds, "1"),
    );
}

fn build(dir: &Path) -> Result<PathBuf> {
    let source = setup::root().join("crates/testkit/programs/many_threads.cu");
    let program = dir.join("many_threads");
    let mut nvcc = Release::V13_5.get()?.nvcc();
    setup::run(nvcc.args(["-w", "-std=c++17", "-o"]).arg(&program).arg(source))?;
    Ok(program)
}

/// `workers`: threads of the CPU device, empty for as many as there are cores.
fn many_threads(installed: &Installed, program: &Path, seconds: u32, workers: &str) -> Result<()> {
    // A round that began in time ends in its own time; all 64 may have to wait for the first compile.
    let limit = Duration::from_secs(u64::from(seconds) * 4 + 120);
    let run = installed.preloaded(program).arg(seconds.to_string()).env("CUDAWAY_LEAKS", "1");
    let ended = run.env("CUDAWAY_CPU_THREADS", workers).limit(limit).run()?;
    let is_right = ended.status.success() && ended.stdout.starts_with("right: ");
    ensure!(is_right && !ended.timed_out, "{}", ended.describe());
    let left = ended.stderr.lines().find(|line| line.contains("left at the end:"));
    let left = left.with_context(|| format!("nothing was counted: {}", ended.describe()))?;
    // Every count and the bytes: all are 0.
    let digits: String = left.chars().filter(char::is_ascii_digit).collect();
    ensure!(digits.chars().all(|digit| digit == '0'), "{left}");
    Ok(())
}
