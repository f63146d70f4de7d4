//! ThreadSanitizer over the tests of the CPU device and of the driver: data races of our own code, whose standard library is
//! built along with it. Code made for kernels is not looked into; what it does to memory is the program's affair.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::report::{Outcome, Report};
use super::unit;
use crate::setup;

const TOOLCHAIN: &str = "nightly";
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Of each package the tests that have threads of their own.
const RUNS: [(&str, &[&str]); 2] = [
    (
        "hip-cpu",
        &[
            "--lib",
            "threads",
            "allocations",
            "cooperative",
            "tiers",
            "stuck",
            "eager",
            "faults",
            "litmus",
            "module",
        ],
    ),
    ("driver", &["--lib", "threads", "allocations", "owned_work", "graphs", "batch_copies"]),
];

/// What maps memory at addresses of its choice, where ThreadSanitizer has its own, and what asks glibc's heap a question that
/// ThreadSanitizer's answers otherwise.
const LEFT_OUT: [&str; 2] = ["memory::mapped", "the_rest_of_a_granule_is_nobody_elses"];

/// LLVM is Debian's, compiled without it: its atomic pointers are not seen.
const SUPPRESSIONS: &str = "race:^llvm::\n";

/// The part: by name alone, since it builds everything once more.
pub fn run(by_name: bool, report: &mut Report) {
    if !by_name {
        let why = "asked for with --only races (a nightly compiler with its sources, a build of its own)"
            .to_owned();
        return report.note("data races, by ThreadSanitizer", Outcome::Skipped(why));
    }
    let folder = setup::root().join("target/races");
    let suppressions = folder.join("suppressions");
    let ready = install().and_then(|()| {
        std::fs::create_dir_all(&folder)?;
        Ok(std::fs::write(&suppressions, SUPPRESSIONS)?)
    });
    if let Err(error) = ready {
        return report.note("data races, by ThreadSanitizer", Err(error));
    }
    for (package, tests) in RUNS {
        let mut command = rustup(&["cargo", "test", "--no-fail-fast", "-Zbuild-std", "--target", TARGET]);
        command.args(["--package", package]);
        for test in tests {
            match *test {
                "--lib" => command.arg(test),
                _ => command.args(["--test", test]),
            };
        }
        command.arg("--");
        for test in LEFT_OUT {
            command.args(["--skip", test]);
        }
        command.env("RUSTFLAGS", "-Zsanitizer=thread");
        command.env("CARGO_TARGET_DIR", &folder);
        // Reports say where.
        command.env("CARGO_PROFILE_DEV_DEBUG", "line-tables-only");
        // Any report ends a test's process with a number that libtest does not know.
        let options = format!("halt_on_error=1 history_size=4 suppressions={}", suppressions.display());
        command.env("TSAN_OPTIONS", options);
        unit::counted(report, &format!("{package} by ThreadSanitizer"), &mut command);
    }
}

fn rustup(words: &[&str]) -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", TOOLCHAIN]).args(words).current_dir(setup::root());
    // What this program's own cargo has set.
    command.env_remove("CARGO").env_remove("RUSTC").env_remove("RUSTUP_TOOLCHAIN");
    command
}

/// The compiler and the sources of its standard library.
fn install() -> Result<()> {
    let sysroot = rustup(&["rustc", "--print", "sysroot"]).output().context("rustup cannot be started")?;
    let sysroot = String::from_utf8_lossy(&sysroot.stdout).trim().to_owned();
    if !sysroot.is_empty() && std::fs::exists(format!("{sysroot}/lib/rustlib/src/rust/library"))? {
        return Ok(());
    }
    println!("setup: rustup toolchain install {TOOLCHAIN}, with rust-src");
    let mut command = Command::new("rustup");
    command.args(["toolchain", "install", TOOLCHAIN, "--profile", "minimal", "--component", "rust-src"]);
    command.env_remove("RUSTUP_TOOLCHAIN");
    let done = command.status().context("rustup cannot be started")?;
    ensure!(done.success(), "{TOOLCHAIN} with rust-src cannot be had");
    Ok(())
}
