//! Runs one suite of one client.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use testkit::Run;

use super::list::{Client, Source, Suite};
use super::prepare::{self, Ready};
use super::results::{self, Ending, launches};
use crate::setup;

/// How much of a suite is run, and on what.
pub struct Extent {
    /// Our objects.
    pub lib: PathBuf,
    /// At most so many tests; 0 for all.
    pub sample: usize,
    pub limit: Duration,
    /// Goes on where the time limit ended an earlier run.
    pub resume: bool,
}

pub fn suite(client: &Client, suite: &Suite, ready: &Ready, extent: &Extent) -> Result<results::Suite> {
    let started = Instant::now();
    let mut counted = results::Suite {
        name: suite.name.to_owned(),
        null_passes: suite.null_passes,
        ..results::Suite::default()
    };
    let endings = match client.source {
        Source::Script(script) => {
            let path = setup::root().join("examples/clients").join(script);
            let ended =
                place(client, ready, extent, Run::new(&ready.python).arg(path))?.limit(extent.limit).run()?;
            (counted.launches, counted.kernels) = launches(&ended.stderr);
            counted.unfinished = ended.timed_out;
            results::from_script(&ended.stdout, ended.passed(), &ended.describe())
        }
        Source::Crate { features, .. } => {
            let run = Run::new("cargo")
                .arg("test")
                .arg("--lib")
                .arg("--no-default-features")
                .arg("--features")
                .arg(features)
                .arg("--")
                .arg("--test-threads=1")
                .env("CARGO_TARGET_DIR", ready.dir.join("target"));
            let ended = place(client, ready, extent, run)?.limit(extent.limit).run()?;
            (counted.launches, counted.kernels) = launches(&ended.stderr);
            counted.unfinished = ended.timed_out;
            let endings = results::from_cargo(&ended.stdout);
            ensure!(!endings.is_empty(), "no test ran: {}", ended.describe());
            endings
        }
        _ => pytest(client, suite, ready, extent, &mut counted)?,
    };
    counted.minutes = started.elapsed().as_secs_f64() / 60.0;
    counted.count(client, &endings);
    Ok(counted)
}

/// pytest until every test has ended: one that takes the process down counts as failed, and the rest goes on.
fn pytest(
    client: &Client,
    suite: &Suite,
    ready: &Ready,
    extent: &Extent,
    counted: &mut results::Suite,
) -> Result<Vec<Ending>> {
    let file = ready.dir.join("results.tsv");
    if !extent.resume {
        let _ = fs::remove_file(&file);
    }
    let until = Instant::now() + extent.limit;
    let mut before = 0;
    loop {
        let run = Run::new(&ready.python)
            .arg("-m")
            .arg("pytest")
            .arg("-q")
            .arg("--tb=short")
            .arg("--timeout=300")
            .arg("-p")
            .arg("no:cacheprovider")
            .arg("-p")
            .arg("cudaway_results")
            .env("CUDAWAY_RESULTS", &file)
            .env("CUDAWAY_SAMPLE", extent.sample.to_string());
        let run = suite.tests.iter().fold(run, |run, argument| run.arg(argument));
        let left = until.saturating_duration_since(Instant::now());
        let ended = place(client, ready, extent, run)?.limit(left).run()?;
        fs::write(ready.dir.join("pytest.log"), format!("{}\n{}", ended.stdout, ended.stderr))?;
        let (launched, kernels) = launches(&ended.stderr);
        let mut text = fs::read_to_string(&file).unwrap_or_default();
        if launched > 0 {
            let _ = writeln!(text, "launches\t{launched}\t{kernels}");
            fs::write(&file, &text)?;
        }
        (counted.launches, counted.kernels) = results::launches_of_runs(&text);
        counted.unfinished = ended.timed_out;
        let mut endings = results::from_plugin(&text);
        if ended.timed_out {
            // We ended the one that was running.
            endings.pop_if(|last| last.said == results::DIED);
        }
        ensure!(!endings.is_empty(), "no test ran: {}", ended.describe());
        if !ended.crashed() || endings.len() == before {
            let collected = text.lines().find_map(|line| line.strip_prefix("collected\t")?.parse().ok());
            counted.drawn_from = collected.filter(|&all| extent.sample != 0 && all > extent.sample);
            return Ok(endings);
        }
        before = endings.len();
    }
}

/// Where it runs, and with what: the client's own variables, our libraries, a count of the kernels.
fn place(client: &Client, ready: &Ready, extent: &Extent, run: Run) -> Result<Run> {
    let nvcc = match client.environment.iter().any(|(_, value)| value.contains("{nvcc}")) {
        true => prepare::nvcc()?.display().to_string(),
        false => String::new(),
    };
    let plugin = setup::root().join("xtask/src/clients");
    let run = run
        .dir(&ready.tests)
        .env("PYTHONPATH", format!("{}:{}", ready.dir.join("import").display(), plugin.display()))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("CUDAWAY_CACHE_DIR", ready.dir.join("images"))
        .env("CUDAWAY_PROFILE", "1");
    let path = std::env::var("PATH").context("PATH")?;
    let lib = extent.lib.display().to_string();
    let fill = |value: &str| {
        value
            .replace("{lib}", &lib)
            .replace("{cuda}", &ready.cuda.display().to_string())
            .replace("{dir}", &ready.dir.display().to_string())
            .replace("{nvcc}", &nvcc)
            .replace("{path}", &path)
    };
    Ok(client.environment.iter().fold(run, |run, (name, value)| run.env(name, fill(value))))
}
