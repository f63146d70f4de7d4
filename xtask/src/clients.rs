//! `cargo xtask clients`: programs of others, unmodified, with their own test suites, on our libraries; writes
//! docs/clients.md.

mod list;
mod page;
mod prepare;
mod results;
mod run;
mod takeover;

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};

use crate::setup;
pub use list::{CLIENTS, Client};
use list::{Suite, Tests};
pub use prepare::{Ready, at_hand, prepare};
use results::Results;
use run::Extent;

#[derive(clap::Args)]
pub struct Args {
    /// Only these, comma separated: tinygrad, cudarc, taichi, numba, cuda-core, pycuda, cupy, triton, nvml.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// A small sample of each suite; writes nothing.
    #[arg(long)]
    quick: bool,
    /// So many tests of each suite, drawn by a fixed seed, in place of what the list says; 0 for all.
    #[arg(long)]
    sample: Option<usize>,
    /// Minutes that a suite may take.
    #[arg(long, default_value_t = 240)]
    limit: u64,
    /// Go on where the time limit ended an earlier run.
    #[arg(long)]
    resume: bool,
    #[command(flatten)]
    setup: setup::Args,
}

/// Tests of a suite that a quick run takes.
const QUICK: usize = 20;

/// A small check of one client: our script that uses it, or a few of its own tests.
pub fn smoke(client: &Client, ready: &Ready, lib: &Path) -> Result<()> {
    let extent =
        Extent { lib: lib.to_owned(), sample: QUICK, limit: Duration::from_secs(900), resume: false };
    let is_script = |suite: &&Suite| matches!(suite.tests, Tests::Script(_));
    let suite = client.suites.iter().find(is_script).or(client.suites.first()).context("no suite")?;
    let done = run::suite(client, suite, ready, &extent)?;
    let unknown: Vec<String> =
        done.failures.iter().filter(|it| !it.known).map(|it| format!("{}: {}", it.example, it.why)).collect();
    ensure!(unknown.is_empty(), "{}: {}", suite.name, unknown.join("; "));
    ensure!(done.launches > 0, "{}: no kernel was launched", suite.name);
    takeover::check(client, &fs::read_to_string(ready.dir.join(run::LOG)).context("the log file")?)
}

pub fn run(args: &Args) -> Result<()> {
    args.setup.apply();
    if let Some(unknown) = args.only.iter().find(|name| !CLIENTS.iter().any(|client| client.name == **name)) {
        let names: Vec<&str> = CLIENTS.iter().map(|client| client.name).collect();
        bail!("no client is called {unknown}; there are: {}", names.join(", "));
    }
    ensure!(
        setup::lib_dir().join("libcuda.so.1").exists(),
        "{} is empty; first: cargo xtask build",
        setup::lib_dir().display()
    );
    let mut unexplained = 0;
    for client in
        CLIENTS.iter().filter(|it| args.only.is_empty() || args.only.iter().any(|name| it.name == name))
    {
        println!("\n== {}", client.title);
        match one(client, args) {
            Ok(failed) => unexplained += failed,
            Err(error) => {
                println!("FAILED  {}: {error:#}", client.name);
                unexplained += 1;
            }
        }
    }
    if !args.quick {
        page::write()?;
    }
    ensure!(unexplained == 0, "{unexplained} tests fail for no reason that we know");
    Ok(())
}

/// Runs all suites of one client; the number of tests that fail without a reason in the list.
fn one(client: &Client, args: &Args) -> Result<usize> {
    let ready = prepare(client, &setup::root().join("target/clients").join(client.name))?;
    let mut suites = Vec::new();
    for suite in client.suites {
        let sample = if args.quick { QUICK } else { args.sample.unwrap_or(suite.sample) };
        let extent = Extent {
            lib: setup::lib_dir(),
            sample,
            limit: Duration::from_secs(60 * args.limit),
            resume: args.resume,
        };
        let done = run::suite(client, suite, &ready, &extent)?;
        println!(
            "{}: {} passed, {} failed, {} skipped; {} launches of {} kernels; {:.1} min",
            done.name, done.passed, done.failed, done.skipped, done.launches, done.kernels, done.minutes
        );
        for group in &done.failures {
            let known = if group.known { "known" } else { "FAILED" };
            println!("{known:<8}{} × {} (such as {})", group.count, group.why, group.example);
        }
        suites.push(done);
    }
    let unexplained = suites.iter().map(results::Suite::unexplained).sum();
    if !args.quick {
        Results { title: client.title.to_owned(), date: today(), suites }.save(client.name)?;
    }
    Ok(unexplained)
}

fn today() -> String {
    let said = std::process::Command::new("date").arg("+%F").output();
    said.map(|out| String::from_utf8_lossy(&out.stdout).trim().to_owned()).unwrap_or_default()
}
