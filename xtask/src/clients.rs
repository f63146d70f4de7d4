//! `cargo xtask clients`: programs of others, unmodified, with their own test suites, on our libraries; writes
//! docs/clients.md.

mod list;
pub mod page;
mod prepare;
pub mod readme;
mod results;
mod run;
mod takeover;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};

use crate::{build, setup};
pub use list::{CLIENTS, Client};
use list::{Suite, Tests};
pub use prepare::{Ready, at_hand, prepare};
use results::{Ended, How, Of, Record, Run};
use run::{Extent, Outcome};

#[derive(clap::Args)]
pub struct Args {
    /// Only these, comma separated: tinygrad, cudarc, taichi, numba, cuda-core, pycuda, cupy, triton, nvml.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Only suites of this name; may be given more than once.
    #[arg(long)]
    suite: Vec<String>,
    /// A small sample of each suite; writes nothing.
    #[arg(long)]
    quick: bool,
    /// So many tests of each suite, drawn by a fixed seed, in place of what the list says; 0 for all.
    #[arg(long)]
    sample: Option<usize>,
    /// Minutes that a suite may take.
    #[arg(long, default_value_t = 240)]
    limit: u64,
    /// Go on where the time limit ended the run that is recorded.
    #[arg(long, conflicts_with_all = ["quick", "again"])]
    resume: bool,
    /// Run only this test of one client once more, by all of its name, and record that; may be given more than once.
    #[arg(long, conflicts_with_all = ["quick", "sample"])]
    again: Vec<String>,
    /// Keep the PTX of every module that is loaded in this folder, for `cargo xtask settings --add`.
    #[arg(long, value_name = "DIR")]
    dump: Option<PathBuf>,
    /// Run on the objects in another folder, as they are, and do not build.
    #[arg(long)]
    lib: Option<PathBuf>,
    #[command(flatten)]
    setup: setup::Args,
}

/// Tests of a suite that a quick run takes.
const QUICK: usize = 20;

/// A small check of one client: our script that uses it, or a few of its own tests.
pub fn smoke(client: &Client, ready: &Ready, lib: &Path) -> Result<()> {
    let limit = Duration::from_secs(900);
    let extent = Extent { lib: lib.to_owned(), of: Of::Sample(QUICK), before: vec![], dump: None, limit };
    let suite = own_check(client).or(client.suites.first()).context("no suite")?;
    let done = run::suite(client, suite, ready, &extent)?;
    ensure!(done.differences.is_empty(), "{}: {}", suite.name, done.differences.join("; "));
    ensure!(done.launches > 0, "{}: no kernel was launched", suite.name);
    takeover::check(client, &fs::read_to_string(ready.dir.join(run::LOG)).context("the log file")?)
}

/// Our script that uses it.
fn own_check(client: &Client) -> Option<&Suite> {
    client.suites.iter().find(|suite| matches!(suite.tests, Tests::Script(_)))
}

/// The PTX that our check of a client hands to the driver, on these objects, and where the client's wheels lie. A check is run once for
/// all checkouts.
pub fn ptx_of_check(name: &str, lib: &Path) -> Result<(Vec<PathBuf>, PathBuf)> {
    let client = CLIENTS.iter().find(|it| it.name == name).context("no such client")?;
    let ready = prepare(client, &setup::root().join("target/clients").join(name))?;
    let dir = ready.home.join("ptx");
    if !dir.exists() {
        let suite = own_check(client).context("no check of ours")?;
        let aside = ready.home.join("ptx.new");
        let _ = fs::remove_dir_all(&aside);
        let (of, limit) = (Of::All, Duration::from_secs(1800));
        let dump = Some(aside.clone());
        let done = run::suite(
            client,
            suite,
            &ready,
            &Extent { lib: lib.to_owned(), of, before: vec![], dump, limit },
        )?;
        ensure!(done.launches > 0, "{}: no kernel was launched", suite.name);
        fs::rename(aside, &dir)?;
    }
    let found = fs::read_dir(&dir)?.map(|it| Ok(it?.path())).collect::<Result<Vec<_>>>()?;
    let mut files: Vec<PathBuf> =
        found.into_iter().filter(|path| path.extension().is_some_and(|it| it == "ptx")).collect();
    files.sort();
    Ok((files, ready.wheels))
}

pub fn run(args: &Args) -> Result<()> {
    args.setup.apply();
    if let Some(unknown) = args.only.iter().find(|name| !CLIENTS.iter().any(|client| client.name == **name)) {
        let names: Vec<&str> = CLIENTS.iter().map(|client| client.name).collect();
        bail!("no client is called {unknown}; there are: {}", names.join(", "));
    }
    ensure!(
        args.again.is_empty() || args.only.len() == 1,
        "--again takes --only with the client whose tests they are"
    );
    let lib = match &args.lib {
        Some(lib) => std::path::absolute(lib)?,
        // The commit that is recorded is that of the objects.
        None => {
            setup::build_packages()?;
            build::to_try()?;
            setup::lib_dir()
        }
    };
    ensure!(lib.join("libcuda.so.1").exists(), "{} has no libcuda.so.1", lib.display());
    let mut unexplained = 0;
    for client in
        CLIENTS.iter().filter(|it| args.only.is_empty() || args.only.iter().any(|name| it.name == name))
    {
        println!("\n== {}", client.title);
        match one(client, args, &lib) {
            Ok(failed) => unexplained += failed,
            Err(error) => {
                println!("FAILED  {}: {error:#}", client.name);
                unexplained += 1;
            }
        }
    }
    if !args.quick {
        // The page, and README.md's table.
        crate::codegen::refresh()?;
    }
    ensure!(unexplained == 0, "{unexplained} tests do not end as the list says");
    Ok(())
}

/// Runs suites of one client and records them; the number of tests that do not end as the list says.
fn one(client: &Client, args: &Args, lib: &Path) -> Result<usize> {
    let ready = prepare(client, &setup::root().join("target/clients").join(client.name))?;
    let mut differences = 0;
    for suite in client.suites {
        let is_wanted = args.suite.is_empty() || args.suite.iter().any(|name| name == suite.name);
        // A script of ours has no tests that could be run alone, and none that a time limit left.
        let in_part = args.resume || !args.again.is_empty();
        if !is_wanted || in_part && matches!(suite.tests, Tests::Script(_)) {
            continue;
        }
        let record = Record::load(client.name)?;
        let (of, before) = extent(client, suite, args, record.as_ref())?;
        let limit = Duration::from_secs(60 * args.limit);
        let dump = args.dump.as_ref().map(std::path::absolute).transpose()?;
        let extent = Extent { lib: lib.to_owned(), of, before, dump, limit };
        let done = run::suite(client, suite, &ready, &extent)?;
        tell(suite, &done);
        differences += done.differences.len();
        if !args.quick {
            add(client, suite, record, done, &extent)?.save(client.name)?;
        }
    }
    Ok(differences)
}

/// What of a suite is to be run, and the tests of it that were run before.
fn extent(client: &Client, suite: &Suite, args: &Args, record: Option<&Record>) -> Result<(Of, Vec<String>)> {
    let some = |sample: usize| if sample == 0 { None } else { Some(sample) };
    if !args.resume && args.again.is_empty() {
        let sample = if args.quick { QUICK } else { args.sample.unwrap_or(suite.sample) };
        return Ok((some(sample).map_or(Of::All, Of::Sample), vec![]));
    }
    let record = record.filter(|record| record.title == client.title).and_then(|it| it.suite(suite.name));
    let record = record.with_context(|| format!("there is no record of {}", suite.name))?;
    if !args.again.is_empty() {
        return Ok((Of::Again(args.again.clone()), vec![]));
    }
    let endings = record.endings().context("the run to go on with is of before tests were kept by name")?;
    let before = endings.into_iter().map(|ending| ending.test).collect();
    let sample = record.runs.iter().find_map(|run| match run.of {
        Of::Sample(n) => Some(n),
        _ => None,
    });
    Ok((Of::Rest(args.sample.map_or(sample, some)), before))
}

fn tell(suite: &Suite, done: &Outcome) {
    let ended = Ended::of(&done.endings);
    let sums = ended.sums();
    println!(
        "{}: {} passed, {} failed, {} skipped; {} launches of {} kernels; {:.1} min",
        suite.name,
        sums.passed,
        sums.failed,
        sums.skipped,
        done.launches,
        done.kernels,
        done.took.as_secs_f64() / 60.0
    );
    for group in results::groups(&suite.known(), &ended, How::Failed).iter().filter(|group| group.known) {
        println!("known   {} × {} (such as {})", group.count, group.why, group.example);
    }
    for line in &done.differences {
        println!("FAILED  {line}");
    }
}

/// The record with a run more: in place of what there was, unless that is only gone on with.
fn add(
    client: &Client,
    suite: &Suite,
    record: Option<Record>,
    done: Outcome,
    extent: &Extent,
) -> Result<Record> {
    if let Of::Again(tests) = &extent.of {
        let gone = tests.iter().find(|test| !done.endings.iter().any(|it| it.test == **test));
        ensure!(gone.is_none(), "{} has no test {}", suite.name, gone.map_or("", |it| it));
    }
    let run = Run {
        date: today(),
        commit: if extent.lib == setup::lib_dir() { commit() } else { None },
        of: extent.of.clone(),
        collected: done.collected,
        launches: done.launches,
        kernels: done.kernels,
        seconds: done.took.as_secs(),
        cut_off: done.cut_off,
        ended: Ended::of(&done.endings),
        seal: String::new(),
    };
    let earlier = record.filter(|record| record.title == client.title).map_or(vec![], |it| it.suites);
    let goes_on = matches!(extent.of, Of::Rest(_) | Of::Again(_));
    let mut suites = vec![];
    for one in client.suites {
        let mut runs = earlier.iter().find(|it| it.name == one.name).map_or(vec![], |it| it.runs.clone());
        if one.name == suite.name {
            if !goes_on {
                runs.clear();
            }
            runs.push(run.clone().sealed());
        }
        if !runs.is_empty() {
            suites.push(results::Suite { name: one.name.to_owned(), runs });
        }
    }
    Ok(Record { title: client.title.to_owned(), suites })
}

fn today() -> String {
    said("date", &["+%F"]).unwrap_or_default()
}

/// This tree's, with a `+` where files of it differ; records and their page do not count.
fn commit() -> Option<String> {
    let commit = said("git", &["rev-parse", "--short=12", "HEAD"])?;
    let others = [":/", ":(exclude,top)tools/data/clients", ":(exclude,top)docs"];
    let changes =
        said("git", &[&["status", "--porcelain", "--untracked-files=no", "--"], &others[..]].concat())?;
    Some(if changes.is_empty() { commit } else { commit + "+" })
}

fn said(program: &str, words: &[&str]) -> Option<String> {
    let output = Command::new(program).args(words).current_dir(setup::root()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
