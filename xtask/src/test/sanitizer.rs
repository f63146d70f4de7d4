//! `CUDAWAY_SANITIZE=memcheck` finds each planted bug, points at the line, the kernel and the thread, and finds nothing else.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use testkit::{Ended, Installed};

use super::report::{Outcome, Report};
use super::unit;
use crate::setup;
use crate::toolchain::Release;

/// A planted bug, and what must be said about it.
struct Bug {
    name: &'static str,
    /// The first line of the report.
    what: &'static str,
    thread: &'static str,
    block: &'static str,
    /// Part of what follows.
    detail: &'static str,
    n_errors: u32,
    /// What the program's next synchronisation answers.
    answer: i32,
}

const fn bug(
    name: &'static str,
    what: &'static str,
    (thread, block): (&'static str, &'static str),
    detail: &'static str,
    (n_errors, answer): (u32, i32),
) -> Bug {
    Bug { name, what, thread, block, detail, n_errors, answer }
}

const FIRST: &str = "(0,0,0)";

/// Of planted_bugs.cu.
const PROGRAM: &[Bug] = &[
    bug(
        "past_the_end",
        "Invalid __global__ write of size 4 bytes",
        ("(36,0,0)", "(1,0,0)"),
        "1 bytes after the nearest allocation",
        (1, 700),
    ),
    bug(
        "before_the_start",
        "Invalid __global__ read of size 4 bytes",
        (FIRST, FIRST),
        "4 bytes before the nearest allocation",
        (1, 700),
    ),
    bug(
        "null_pointer",
        "Invalid __global__ write of size 4 bytes",
        ("(3,0,0)", FIRST),
        "Address 0x0 is out of bounds",
        (1, 700),
    ),
    bug(
        "after_free",
        "Invalid __global__ read of size 4 bytes",
        (FIRST, FIRST),
        "28 bytes inside the freed allocation",
        (1, 700),
    ),
    bug(
        "misaligned_8",
        "Invalid __global__ read of size 8 bytes",
        ("(1,0,0)", FIRST),
        "is misaligned",
        (1, 716),
    ),
    bug(
        "misaligned_vector",
        "Invalid __global__ write of size 16 bytes",
        (FIRST, FIRST),
        "is misaligned",
        (1, 716),
    ),
    bug(
        "shared_static",
        "Invalid __shared__ write of size 4 bytes",
        ("(63,0,0)", FIRST),
        "1 bytes after the nearest variable shared_static(int*)::tile at 0x0 of size 256 bytes",
        (1, 700),
    ),
    bug(
        "shared_dynamic",
        "Invalid __shared__ write of size 4 bytes",
        ("(8,0,0)", FIRST),
        "1 bytes after the nearest dynamic shared memory at 0x0 of size 128 bytes",
        (1, 700),
    ),
    bug(
        "local_array",
        "Invalid __local__ write of size 4 bytes",
        ("(1,0,0)", FIRST),
        "of size 32 bytes",
        (1, 700),
    ),
    bug(
        "unwritten_shared",
        "Uninitialized __shared__ read of size 4 bytes",
        ("(58,0,0)", FIRST),
        "Address 0x14 was not written",
        (1, 0),
    ),
    bug(
        "exit_before_barrier",
        "Barrier error detected. Divergent thread(s) in block",
        (FIRST, FIRST),
        "Thread (40,0,0) has ended",
        (1, 0),
    ),
    bug(
        "different_barriers",
        "Barrier error detected. The threads of a block wait for each other for ever",
        (FIRST, FIRST),
        "thread (32,0,0) in block (0,0,0) waits at ",
        (1, 719),
    ),
    bug(
        "atomic_past",
        "Invalid __global__ atomic of size 4 bytes",
        ("(3,0,0)", FIRST),
        "1 bytes after the nearest allocation",
        (1, 700),
    ),
    bug(
        "variable_past",
        "Invalid __global__ read of size 4 bytes",
        ("(3,0,0)", FIRST),
        "of size 64 bytes",
        (1, 700),
    ),
    bug(
        "in_a_function",
        "Invalid __global__ write of size 4 bytes",
        ("(17,0,0)", FIRST),
        "is out of bounds",
        (1, 700),
    ),
    bug(
        "device_heap",
        "Invalid __global__ write of size 4 bytes",
        ("(2,0,0)", FIRST),
        "1 bytes after the nearest block of the device's heap",
        (1, 700),
    ),
    // Threads 30 and 31; the report shows the first and says how often it came.
    bug(
        "copied_in",
        "Invalid __global__ read of size 4 bytes",
        ("(30,0,0)", FIRST),
        "1 bytes after the nearest allocation",
        (2, 700),
    ),
];

/// Of planted_bugs.ptx: one block of 32 threads, 128 bytes of global memory.
const PTX: &[Bug] = &[
    bug(
        "store_past",
        "Invalid __global__ write of size 4 bytes",
        ("(31,0,0)", FIRST),
        "1 bytes after the nearest allocation",
        (1, 700),
    ),
    // Threads 1, 3, 5, 7, 9 and 11.
    bug(
        "vector_misaligned",
        "Invalid __global__ read of size 16 bytes",
        ("(1,0,0)", FIRST),
        "is misaligned",
        (6, 716),
    ),
    // 100 bytes are 25 ints; thread 25 writes between the variables, 28 and after into the next: 25, 26, 27.
    bug(
        "shared_past",
        "Invalid __shared__ write of size 4 bytes",
        ("(25,0,0)", FIRST),
        "1 bytes after the nearest variable low at 0x0 of size 100 bytes",
        (3, 700),
    ),
    // 8 pairs fit; 24 threads are beyond.
    bug(
        "local_past",
        "Invalid __local__ write of size 8 bytes",
        ("(8,0,0)", FIRST),
        "1 bytes after the nearest variable room at 0x0 of size 64 bytes",
        (24, 700),
    ),
    bug(
        "unwritten_update",
        "Uninitialized __shared__ atomic of size 4 bytes",
        (FIRST, FIRST),
        "Address 0x4 was not written",
        (1, 0),
    ),
    // Pairs of threads read from -11 on: 22 are before the start, 8 inside, 2 behind the end.
    bug(
        "constant_past",
        "Invalid __constant__ read of size 4 bytes",
        (FIRST, FIRST),
        "44 bytes before the nearest allocation",
        (24, 700),
    ),
    bug(
        "barrier_in_branches",
        "Barrier error detected. Divergent thread(s) in warp",
        ("(9,0,0)", FIRST),
        "Other threads of the warp came to the barrier at PTX line",
        (1, 0),
    ),
];

pub fn run(installed: &Installed, report: &mut Report) {
    let dir = match testkit::temporary() {
        Ok(dir) => dir,
        Err(error) => return report.note("sanitizer", Outcome::Failed(error.to_string())),
    };
    let cache = dir.path().join("images");
    // With -G every address is generic; a vector store becomes single ones, and headers have no lines.
    let not_in_debug = ["misaligned_vector", "atomic_past"];
    match program(dir.path(), "-G") {
        Ok(program) => {
            for bug in PROGRAM.iter().filter(|bug| !not_in_debug.contains(&bug.name)) {
                let run = installed.preloaded(&program).arg(bug.name).env("CUDAWAY_SANITIZE", "memcheck");
                let ended = run.env("CUDAWAY_CACHE_DIR", &cache).run();
                let outcome = ended.and_then(|ended| examine(bug, &ended, &source("planted_bugs.cu")));
                report
                    .note(&format!("sanitizer: {} of nvcc -G is found, and nothing else", bug.name), outcome);
            }
        }
        Err(error) => report.note("sanitizer: planted_bugs.cu -G", Outcome::Failed(format!("{error:#}"))),
    }
    match program(dir.path(), "-lineinfo") {
        Ok(program) => {
            for bug in PROGRAM {
                let run = installed.preloaded(&program).arg(bug.name).env("CUDAWAY_SANITIZE", "memcheck");
                let outcome = run.env("CUDAWAY_CACHE_DIR", &cache).run().and_then(|ended| {
                    let answer = format!("synchronize {}", bug.answer);
                    ensure!(
                        ended.stdout.lines().any(|line| line == answer),
                        "no {answer:?}: {}",
                        ended.describe()
                    );
                    examine(bug, &ended, &source("planted_bugs.cu"))
                });
                report.note(
                    &format!("sanitizer: {} of nvcc -lineinfo is found, and nothing else", bug.name),
                    outcome,
                );
            }
            let clean = || -> Result<()> {
                let run = installed.preloaded(&program).arg("clean").env("CUDAWAY_SANITIZE", "memcheck");
                let ended = run.env("CUDAWAY_CACHE_DIR", &cache).run()?;
                ensure!(
                    !ended.stdout.contains("wrong") && ended.stdout.contains("synchronize 0"),
                    "{}",
                    ended.describe()
                );
                is_clean(&ended)
            };
            report.note("sanitizer: a program without a bug has 0 errors", clean());
        }
        Err(error) => report.note("sanitizer: planted_bugs.cu", Outcome::Failed(format!("{error:#}"))),
    }
    let loader = match super::faults::module_loader(dir.path()) {
        Ok(loader) => loader,
        Err(error) => return report.note("sanitizer: module_loader", Outcome::Failed(format!("{error:#}"))),
    };
    let load = |kernel: &str| {
        let run = installed.found(&loader).arg(source("planted_bugs.ptx")).arg(kernel);
        run.env("CUDAWAY_SANITIZE", "memcheck").env("CUDAWAY_CACHE_DIR", &cache).run()
    };
    for bug in PTX {
        let outcome = load(bug.name).and_then(|ended| {
            let answer = format!("launch {} {}:", bug.name, bug.answer);
            ensure!(ended.stdout.contains(&answer), "no {answer:?}: {}", ended.describe());
            examine(bug, &ended, &source("planted_bugs.ptx"))
        });
        report.note(&format!("sanitizer: {} of PTX is found, and nothing else", bug.name), outcome);
    }
    let clean = load("clean").and_then(|ended| {
        let reversed: String = (0..32).rev().map(|n| format!(" {n}")).collect();
        ensure!(ended.stdout.contains(&format!("launch clean 0:{reversed}\n")), "{}", ended.describe());
        is_clean(&ended)
    });
    report.note("sanitizer: PTX without a bug has 0 errors", clean);
    report.note("sanitizer: every value row has its results and no bad access", rows());
}

/// The rows of `crates/hip-cpu/tests/run`, with every access asked for.
fn rows() -> Result<()> {
    const TEST: &str = "every_row_gives_its_results";
    let mut command = setup::cargo();
    unit::others(command.arg("test")).args(["--test", "run", TEST]).env("CUDAWAY_SANITIZE", "memcheck");
    let ended = setup::stay_offline(&mut command).output().context("cargo test")?;
    let said = String::from_utf8_lossy(&ended.stdout);
    println!("{said}");
    ensure!(ended.status.success(), "{}: {}", ended.status, String::from_utf8_lossy(&ended.stderr));
    ensure!(said.contains(&format!("test {TEST} ... ok")), "no test is called {TEST}");
    Ok(())
}

fn source(name: &str) -> PathBuf {
    setup::root().join("crates/testkit/programs").join(name)
}

fn program(dir: &Path, lines: &str) -> Result<PathBuf> {
    let program = dir.join(format!("planted_bugs{lines}"));
    let mut nvcc: Command = Release::V13_5.get()?.nvcc();
    nvcc.args(["-w", "-Xptxas=-w", lines, "-arch=sm_80", "-o"]).arg(&program);
    setup::run(nvcc.arg(source("planted_bugs.cu")))?;
    Ok(program)
}

/// The line that carries the bug's name, from 1.
fn line(bug: &Bug, source: &Path) -> Result<usize> {
    let marker = format!("// BUG {}", bug.name);
    let text = fs::read_to_string(source)?;
    let at = text.lines().position(|line| line.trim_end().ends_with(&marker));
    Ok(1 + at.with_context(|| format!("{} has no {marker:?}", source.display()))?)
}

fn examine(bug: &Bug, ended: &Ended, source: &Path) -> Result<()> {
    let said = |text: &str| -> Result<()> {
        ensure!(ended.stderr.contains(text), "stderr does not say {text:?}:\n{}", ended.stderr);
        Ok(())
    };
    let headings = ["Invalid ", "Uninitialized ", "Barrier error"];
    let reports: Vec<&str> = ended
        .stderr
        .lines()
        .filter_map(|line| line.strip_prefix("========= "))
        .filter(|line| headings.iter().any(|heading| line.starts_with(heading)))
        .collect();
    ensure!(reports == [bug.what], "{reports:?} instead of {:?} alone:\n{}", bug.what, ended.stderr);
    let line = line(bug, source)?;
    match source.extension().is_some_and(|it| it == "cu") {
        true => said(&format!("{}:{line}\n", source.display()))?,
        false => said(&format!("PTX line {line} of "))?,
    }
    // C++ names come as the source has them.
    ensure!(
        ended.stderr.contains(&format!("at {}(", bug.name))
            || ended.stderr.contains(&format!("at {} in ", bug.name)),
        "the kernel's name is missing:\n{}",
        ended.stderr
    );
    said(&format!("thread {} in block {}", bug.thread, bug.block))?;
    said(bug.detail)?;
    let plural = if bug.n_errors == 1 { "" } else { "s" };
    said(&format!("========= ERROR SUMMARY: {} error{plural}\n", bug.n_errors))
}

fn is_clean(ended: &Ended) -> Result<()> {
    let expected = "========= CUDAWAY SANITIZER: memcheck\n========= ERROR SUMMARY: 0 errors\n";
    ensure!(ended.stderr == expected, "stderr says {:?}", ended.stderr);
    Ok(())
}
