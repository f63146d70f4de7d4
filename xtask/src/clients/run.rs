//! Runs one suite of one client.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context as _, Result, ensure};
use testkit::{Ended, Run};

use super::list::{Client, Suite, Tests};
use super::prepare::Ready;
use super::results::{self, Ending, launches};
use crate::setup;
use crate::toolchain::Release;

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
    let endings = match suite.tests {
        Tests::Script(script) => {
            let path = setup::root().join("examples/clients").join(script);
            let run = python(client, ready, extent).arg(path);
            let ended = once(client, ready, extent, run, &mut counted)?;
            results::from_script(&ended.stdout, ended.passed(), &ended.describe())
        }
        Tests::Cargo(features) => {
            let run = Run::new("cargo")
                .arg("test")
                .arg("--lib")
                .arg("--no-default-features")
                .arg("--features")
                .arg(features)
                .arg("--")
                .arg("--test-threads=1")
                .env("CARGO_TARGET_DIR", ready.home.join("target"));
            let ended = once(client, ready, extent, run, &mut counted)?;
            let endings = results::from_cargo(&ended.stdout);
            ensure!(!endings.is_empty(), "no test ran: {}", ended.describe());
            endings
        }
        Tests::Pytest(tests) => pytest(client, tests, ready, extent, &mut counted)?,
    };
    counted.minutes = started.elapsed().as_secs_f64() / 60.0;
    counted.count(client, &endings);
    Ok(counted)
}

fn once(
    client: &Client,
    ready: &Ready,
    extent: &Extent,
    run: Run,
    counted: &mut results::Suite,
) -> Result<Ended> {
    let ended = place(client, ready, extent, run)?.limit(extent.limit).run()?;
    (counted.launches, counted.kernels) = launches(&ended.stderr);
    counted.unfinished = ended.timed_out;
    Ok(ended)
}

/// pytest until every test has ended: one that takes the process down counts as failed, and the rest goes on.
fn pytest(
    client: &Client,
    tests: &[&str],
    ready: &Ready,
    extent: &Extent,
    counted: &mut results::Suite,
) -> Result<Vec<Ending>> {
    let file = ready.dir.join("results.tsv");
    if !extent.resume {
        let _ = fs::remove_file(&file);
    }
    let until = SystemTime::now() + extent.limit;
    let mut before = 0;
    loop {
        let left = until.duration_since(SystemTime::now()).unwrap_or_default();
        let run = python(client, ready, extent)
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
            .env("CUDAWAY_SAMPLE", extent.sample.to_string())
            .env("CUDAWAY_MINUTES", (left.as_secs_f64() / 60.0).to_string());
        let run = tests.iter().fold(run, |run, argument| run.arg(argument));
        // It ends by itself after the test that is running then, and says what it launched.
        let ended = place(client, ready, extent, run)?.limit(left + Duration::from_secs(400)).run()?;
        fs::write(ready.dir.join("pytest.log"), format!("{}\n{}", ended.stdout, ended.stderr))?;
        let (launched, kernels) = launches(&ended.stderr);
        let mut text = fs::read_to_string(&file).unwrap_or_default();
        if launched > 0 {
            let _ = writeln!(text, "launches\t{launched}\t{kernels}");
            fs::write(&file, &text)?;
        }
        (counted.launches, counted.kernels) = results::launches_of_runs(&text);
        let endings = results::from_plugin(&text);
        ensure!(!endings.is_empty(), "no test ran: {}", ended.describe());
        if !ended.crashed() || endings.len() == before {
            let all = text.lines().find_map(|line| line.strip_prefix("collected\t")?.parse().ok());
            counted.drawn_from = all.filter(|&all| all > endings.len());
            let wanted = all.unwrap_or(0).min(if extent.sample == 0 { usize::MAX } else { extent.sample });
            counted.unfinished = endings.len() < wanted;
            return Ok(endings);
        }
        before = endings.len();
    }
}

/// Its Python, before the arguments.
fn python(client: &Client, ready: &Ready, extent: &Extent) -> Run {
    if !client.by_run {
        return Run::new(&ready.python);
    }
    let cudaway = extent.lib.with_file_name("bin").join("cudaway");
    Run::new(cudaway).arg("run").arg("--").arg(&ready.python)
}

/// Where it runs, and with what: the client's own variables, our libraries, a count of the kernels, a log.
fn place(client: &Client, ready: &Ready, extent: &Extent, run: Run) -> Result<Run> {
    let uses = |what| client.environment.iter().any(|(_, value)| value.contains(what));
    let toolkit = if uses("{toolkit}") { Release::V13_5.get()?.dir } else { PathBuf::new() };
    let plugin = setup::root().join("xtask/src/clients");
    let run = run
        .dir(&ready.tests)
        .env("PYTHONPATH", format!("{}:{}", ready.home.join("import").display(), plugin.display()))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("CUDAWAY_CACHE_DIR", ready.dir.join("images"))
        .env("CUDAWAY_LOG", "info")
        .env("CUDAWAY_LOG_FILE", ready.dir.join(LOG))
        .env("CUDAWAY_PROFILE", "1");
    let path = std::env::var("PATH").context("PATH")?;
    let places = [
        ("{lib}", extent.lib.display().to_string()),
        ("{wheels}", ready.wheels.display().to_string()),
        ("{cuda}", ready.cuda().display().to_string()),
        ("{dir}", ready.dir.display().to_string()),
        ("{toolkit}", toolkit.display().to_string()),
        ("{path}", path),
    ];
    let fill = |value: &str| places.iter().fold(value.to_owned(), |text, (name, it)| text.replace(name, it));
    Ok(client.environment.iter().fold(run, |run, (name, value)| run.env(name, fill(value))))
}

/// What our libraries said, in the folder of a run.
pub const LOG: &str = "cudaway.log";
