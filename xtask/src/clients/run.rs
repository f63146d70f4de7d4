//! Runs one suite of one client.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail, ensure};
use testkit::known::{self, Ran};
use testkit::{Ended, Run};

use super::list::{Client, Suite, Tests, XDIST};
use super::prepare::Ready;
use super::results::{self, Ending, How, Of, launches};
use crate::setup;
use crate::toolchain::Release;

/// No test of a client may take longer (`PYTEST_TIMEOUT`).
const LONGEST: Duration = Duration::from_secs(2000);

/// How much of a suite is run, and on what.
pub struct Extent {
    /// Our objects.
    pub lib: PathBuf,
    pub of: Of,
    /// Tests that `Of::Rest` leaves out.
    pub before: Vec<String>,
    /// Where the PTX of every module goes.
    pub dump: Option<PathBuf>,
    pub limit: Duration,
}

/// How a suite went.
pub struct Outcome {
    pub endings: Vec<Ending>,
    pub launches: u64,
    pub kernels: usize,
    pub took: Duration,
    pub collected: Option<usize>,
    pub cut_off: bool,
    /// What is not as the list of known failures says, a line each.
    pub differences: Vec<String>,
}

/// What is read besides the tests' endings.
#[derive(Default)]
struct Counted {
    launches: u64,
    kernels: usize,
    collected: Option<usize>,
    cut_off: bool,
    /// Tests that are listed or asked for, and are none.
    absent: BTreeSet<String>,
}

pub fn suite(client: &Client, suite: &Suite, ready: &Ready, extent: &Extent) -> Result<Outcome> {
    let started = Instant::now();
    let mut counted = Counted::default();
    let endings = match suite.tests {
        Tests::Script(_) if matches!(extent.of, Of::Again(_) | Of::Rest(_)) => {
            bail!("{} runs as a whole", suite.name)
        }
        Tests::Cargo(_) if matches!(extent.of, Of::Rest(_)) => bail!("{} runs as a whole", suite.name),
        Tests::Script(script) => {
            let path = setup::root().join("examples/clients").join(script);
            let run = python(client, ready, extent).arg(path);
            // A script that takes long leaves then out what does.
            let run = if matches!(extent.of, Of::Sample(_)) { run.env("CUDAWAY_SAMPLE", "1") } else { run };
            let ended = once(client, ready, extent, run, &mut counted)?;
            results::from_script(&ended.stdout, ended.passed(), &ended.describe())
        }
        Tests::Cargo(features) => {
            let mut run = Run::new("cargo")
                .arg("test")
                .arg("--lib")
                .arg("--no-default-features")
                .arg("--features")
                .arg(features)
                .arg("--")
                .arg("--test-threads=1")
                .env("CARGO_TARGET_DIR", ready.home.join("target"));
            if let Of::Again(tests) = &extent.of {
                run = run.arg("--exact").args(tests);
            }
            let ended = once(client, ready, extent, run, &mut counted)?;
            let endings = results::from_cargo(&ended.stdout);
            ensure!(!endings.is_empty(), "no test ran: {}", ended.describe());
            endings
        }
        Tests::Pytest(tests) => pytest((client, suite), tests, ready, extent, &mut counted)?,
    };
    let differences = differences(suite, &endings, extent, &counted);
    let Counted { launches, kernels, collected, cut_off, .. } = counted;
    Ok(Outcome { endings, launches, kernels, took: started.elapsed(), collected, cut_off, differences })
}

/// A suite that ran as a whole has every test that is listed; of one that ran in part, pytest says which are none.
fn differences(suite: &Suite, endings: &[Ending], extent: &Extent, counted: &Counted) -> Vec<String> {
    let answers: Vec<String> = endings.iter().map(|it| results::answer(&it.said)).collect();
    let ran = endings.iter().zip(&answers).map(|(it, said)| {
        let failed = (it.how == How::Failed).then_some(said.as_str());
        Ran { test: &it.test, failed }
    });
    let ran: Vec<Ran> = ran.collect();
    let is_whole =
        !matches!(suite.tests, Tests::Pytest(_)) && !matches!(extent.of, Of::Again(_)) && !counted.cut_off;
    let mut known = suite.known();
    known.retain(|entry| {
        is_whole || counted.absent.contains(&entry.test) || ran.iter().any(|it| it.test == entry.test)
    });
    let mut lines = known::differences(&known, &ran);
    if let Of::Again(tests) = &extent.of {
        let gone = tests.iter().filter(|test| !ran.iter().any(|it| it.test == **test));
        lines.extend(gone.map(|test| format!("{test}: did not run")));
    }
    lines
}

fn once(client: &Client, ready: &Ready, extent: &Extent, run: Run, counted: &mut Counted) -> Result<Ended> {
    let ended = place(client, ready, extent, run)?.limit(extent.limit).run()?;
    (counted.launches, counted.kernels) = launches(&ended.stderr);
    counted.cut_off = ended.timed_out;
    Ok(ended)
}

/// pytest until every test has ended: one that takes the process down counts as failed, and the rest goes on.
fn pytest(
    (client, suite): (&Client, &Suite),
    tests: &[&str],
    ready: &Ready,
    extent: &Extent,
    counted: &mut Counted,
) -> Result<Vec<Ending>> {
    let file = ready.dir.join("results.tsv");
    let _ = fs::remove_file(&file);
    let list = |name: &str, tests: &[String]| -> Result<PathBuf> {
        let path = ready.dir.join(name);
        fs::write(&path, tests.iter().map(|test| format!("{test}\n")).collect::<String>())?;
        Ok(path)
    };
    let (sample, again) = match &extent.of {
        Of::All | Of::Rest(None) => (0, &[][..]),
        Of::Sample(n) | Of::Rest(Some(n)) => (*n, &[][..]),
        Of::Again(tests) => (0, &tests[..]),
    };
    let listed: Vec<String> = suite.known().into_iter().map(|entry| entry.test).collect();
    let lists = [
        ("CUDAWAY_AGAIN", list("again", again)?),
        ("CUDAWAY_BEFORE", list("before", &extent.before)?),
        ("CUDAWAY_LISTED", list("listed", &listed)?),
    ];
    let until = SystemTime::now() + extent.limit;
    let mut before = 0;
    loop {
        let left = until.duration_since(SystemTime::now()).unwrap_or_default();
        let run = python(client, ready, extent)
            .arg("-m")
            .arg("pytest")
            .arg("-q")
            .arg("--tb=short")
            .arg("-p")
            .arg("no:cacheprovider")
            .arg("-p")
            .arg("cudaway_results")
            // pytest-timeout's; a client may say another number of seconds.
            .env("PYTEST_TIMEOUT", "300")
            .env("CUDAWAY_RESULTS", &file)
            .env("CUDAWAY_SAMPLE", sample.to_string())
            .env("CUDAWAY_UNTIL", until.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs().to_string());
        let run = if client.wheels.contains(&XDIST) {
            let cores = std::thread::available_parallelism().map_or(1, |it| it.get());
            run.arg("-n").arg(cores.to_string())
        } else {
            run
        };
        let run = lists.iter().fold(run, |run, (name, list)| run.env(name, list));
        let examples = setup::root().join("examples/clients").display().to_string();
        let run = tests.iter().fold(run, |run, argument| run.arg(argument.replace("{examples}", &examples)));
        // It ends by itself after the test that is running then, and says what it launched.
        let ended = place(client, ready, extent, run)?.limit(left + LONGEST).run()?;
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
            counted.collected = text.lines().find_map(|line| line.strip_prefix("collected\t")?.parse().ok());
            let absent = text.lines().filter_map(|line| line.strip_prefix("absent\t"));
            counted.absent = absent.map(str::to_owned).collect();
            let all = counted.collected.unwrap_or(0);
            let wanted = match sample {
                _ if !again.is_empty() => again.len(),
                0 => all,
                n => n.min(all),
            };
            counted.cut_off = extent.before.len() + endings.len() < wanted;
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
    let run = extent.dump.iter().fold(run, |run, dir| run.env("CUDAWAY_DUMP_DIR", dir));
    let path = std::env::var("PATH").context("PATH")?;
    let places = [
        ("{lib}", extent.lib.display().to_string()),
        ("{wheels}", ready.wheels.display().to_string()),
        ("{cuda}", ready.cuda().display().to_string()),
        ("{files}", ready.files().display().to_string()),
        ("{dir}", ready.dir.display().to_string()),
        ("{toolkit}", toolkit.display().to_string()),
        ("{path}", path),
    ];
    let fill = |value: &str| places.iter().fold(value.to_owned(), |text, (name, it)| text.replace(name, it));
    Ok(client.environment.iter().fold(run, |run, (name, value)| run.env(name, fill(value))))
}

/// What our libraries said, in the folder of a run.
pub const LOG: &str = "cudaway.log";
