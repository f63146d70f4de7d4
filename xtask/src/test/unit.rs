//! Cargo's own tests, and other xtask commands as checks.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::num::NonZero;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Condvar, Mutex};
use std::thread;

use anyhow::{Result, ensure};
use serde_json::Value;
use testkit::Installed;
use testkit::skip::{self, Skip};

use super::report::{Outcome, Report};
use crate::setup;

/// Runs another command of this very program.
pub fn xtask(args: &[&str]) -> Outcome {
    let result = std::env::current_exe().map_err(anyhow::Error::from).and_then(|exe| {
        setup::run(setup::stay_offline(Command::new(exe).args(args)).current_dir(setup::root()))
    });
    result.into()
}

/// The crates of NVIDIA's libraries other than the driver and the runtime. Their tests are compiled as the objects are, in the
/// profile `local`: what they stand on, minutes of matrix products and factorizations, is compiled already. What code checks of
/// itself (overflows, assertions) that profile leaves out; `--all` has them in the profile `dev`.
pub const LIBRARIES: [&str; 14] = [
    "cublas",
    "cublas-cpu",
    "cudnn",
    "cudnn-cpu",
    "cufft",
    "cufft-cpu",
    "curand",
    "curand-cpu",
    "cusolver",
    "cusolver-cpu",
    "cusparse",
    "cusparse-cpu",
    "kit",
    "nvjitlink",
];

/// What the objects of those libraries are linked from, without tests of its own: it asks for all of them.
pub fn implementations() -> impl Iterator<Item = &'static str> {
    crate::libraries::ours().map(|library| library.package.as_str())
}

/// All other crates, as `cargo test` and `cargo build` are told of them. All together: for a crate alone, its dependencies have other
/// features, and would be compiled once more.
pub fn others(command: &mut Command) -> &mut Command {
    command.arg("--workspace");
    for package in LIBRARIES.into_iter().chain(implementations()) {
        command.args(["--exclude", package]);
    }
    command
}

fn libraries(command: &mut Command) -> &mut Command {
    command.args(["--profile", "local"]);
    for package in LIBRARIES {
        command.args(["--package", package]);
    }
    command
}

/// Compiles what this part and others run, and says nothing: what does not compile is reported there.
pub fn compile_tests() {
    let mut command = setup::cargo();
    others(command.arg("test")).args(["--quiet", "--no-run"]);
    let _ = setup::stay_offline(&mut command).output();
}

/// An example of a crate of ours, as it is run. It is built once, whoever asks how often.
pub fn example(name: &str) -> Result<Command> {
    static BUILT: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let mut built = BUILT.lock().expect("nothing panics with it");
    if !built.contains(name) {
        let mut build = setup::cargo();
        others(build.arg("build")).args(["--quiet", "--example", name]);
        setup::run(setup::stay_offline(&mut build))?;
        built.insert(name.to_owned());
    }
    let mut command = Command::new(setup::root().join("target/debug/examples").join(name));
    command.current_dir(setup::root());
    Ok(command)
}

/// Tests of the workspace; each counts as one check of ours. As many binaries run at a time as there are cores: many have one test that
/// takes long, which would leave the others idle.
pub fn cargo_test(all: bool, report: &mut Report) {
    let selections: &[Select] = if all { &[everything] } else { &[others, libraries] };
    let name = "tests of the workspace";
    let mut all = Ran::default();
    for (of, ran) in beside_each_other(selections) {
        match ran {
            Ok(ran) => all.add(&of, ran),
            Err(error) => report.note(&format!("{name}: {of}"), Err::<(), _>(error)),
        }
    }
    tell(report, name, all);
}

/// What takes longest is begun first.
const LONGEST: [&str; 9] = [
    "run",
    "differential",
    "cusolver_cpu",
    "oracle",
    "tcgen05",
    "matrix",
    "documentation",
    "gcn",
    "coverage",
];

/// What runs tests, and what it is called.
struct Tests {
    name: String,
    command: Command,
}

/// Tells cargo of which packages.
type Select = fn(&mut Command) -> &mut Command;

fn everything(command: &mut Command) -> &mut Command {
    command.arg("--workspace")
}

/// The test binaries of these packages, built.
fn binaries(select: Select) -> Result<Vec<Tests>> {
    let mut command = setup::cargo();
    select(command.arg("test")).args(["--no-run", "--message-format", "json-render-diagnostics"]);
    let output = setup::stay_offline(&mut command).stderr(Stdio::inherit()).output()?;
    ensure!(output.status.success(), "they do not build: {command:?}");
    let messages = String::from_utf8(output.stdout)?;
    Ok(messages.lines().filter_map(binary).collect())
}

/// Of a message of cargo's.
fn binary(message: &str) -> Option<Tests> {
    let message: Value = serde_json::from_str(message).ok()?;
    let executable = message["executable"].as_str()?;
    if message["profile"]["test"] != true {
        return None;
    }
    // As cargo has it: in the folder of the package.
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?;
    let mut command = Command::new(executable);
    command.current_dir(folder).env("CARGO_MANIFEST_DIR", folder);
    // The emulator is a part of its own.
    command.env_remove("TINYGRAD");
    Some(Tests { name: message["target"]["name"].as_str()?.to_owned(), command })
}

/// What the documentation of these packages shows.
fn documentation(select: Select) -> Tests {
    let mut command = setup::cargo();
    select(command.arg("test")).args(["--doc", "--no-fail-fast"]);
    setup::stay_offline(&mut command);
    Tests { name: "documentation".to_owned(), command }
}

/// What waits to be run, and how many selections are not built yet, whose tests come then.
struct Queue {
    waiting: Vec<Tests>,
    n_building: usize,
}

impl Queue {
    fn take(&mut self) -> Option<Tests> {
        let place = |tests: &Tests| LONGEST.iter().position(|name| *name == tests.name);
        let first =
            (0..self.waiting.len()).min_by_key(|&at| place(&self.waiting[at]).unwrap_or(LONGEST.len()));
        first.map(|at| self.waiting.remove(at))
    }
}

/// Runs the tests of these selections on all cores, those of one while another is built still, and prints what each has said when it
/// has ended.
fn beside_each_other(selections: &[Select]) -> Vec<(String, Result<Ran>)> {
    let poisoned = "nothing panics with it";
    let queue = Mutex::new(Queue { waiting: vec![], n_building: selections.len() });
    let changed = Condvar::new();
    let ended = Mutex::new(vec![]);
    let build = |selection: Select| {
        let found = binaries(selection);
        let mut queue = queue.lock().expect(poisoned);
        queue.n_building -= 1;
        match found {
            Ok(found) => queue.waiting.extend(found.into_iter().chain([documentation(selection)])),
            Err(error) => ended.lock().expect(poisoned).push(("built".to_owned(), Err(error))),
        }
        changed.notify_all();
    };
    let next = || {
        let mut queue = queue.lock().expect(poisoned);
        while queue.waiting.is_empty() && queue.n_building > 0 {
            queue = changed.wait(queue).expect(poisoned);
        }
        queue.take()
    };
    let run = || {
        while let Some(Tests { name, mut command }) = next() {
            let what = command.get_program().to_string_lossy().into_owned();
            let ran = aside(&mut command).map(|(said, ran)| {
                println!("     Running {name} ({what})\n{said}");
                ran
            });
            ended.lock().expect(poisoned).push((name, ran));
        }
    };
    thread::scope(|scope| {
        for &selection in selections {
            scope.spawn(move || build(selection));
        }
        for _ in 0..thread::available_parallelism().map_or(1, NonZero::get) {
            scope.spawn(run);
        }
    });
    ended.into_inner().expect(poisoned)
}

/// Runs a `cargo test` whose tests are counted one by one. Those that say `testkit::skip!` are skipped, whatever libtest says.
pub fn counted(report: &mut Report, name: &str, command: &mut Command) {
    match ran(command, |line| println!("{line}")) {
        Ok(ran) => tell(report, name, ran),
        Err(error) => report.note(name, Err::<(), _>(error)),
    }
}

/// What tests say, kept until they have ended, and what they give.
fn aside(command: &mut Command) -> Result<(String, Ran)> {
    let folder = testkit::temporary()?;
    let errors = folder.path().join("stderr");
    command.stderr(File::create(&errors)?);
    let mut said = String::new();
    let ran = ran(command, |line| {
        said.push_str(line);
        said.push('\n');
    })?;
    let errors = std::fs::read(&errors)?;
    Ok((String::from_utf8_lossy(&errors).into_owned() + &said, ran))
}

/// Tests that have ended.
#[derive(Default)]
struct Ran {
    counted: Counted,
    skips: Vec<Skip>,
    /// What did not end well, and how.
    failed: Vec<String>,
}

impl Ran {
    /// Those of another run, known by its name.
    fn add(&mut self, name: &str, other: Ran) {
        self.counted.passed += other.counted.passed;
        self.counted.failed.extend(other.counted.failed);
        self.counted.skipped.extend(other.counted.skipped);
        self.skips.extend(other.skips);
        self.failed.extend(other.failed.into_iter().map(|how| format!("{name}: {how}")));
    }
}

fn ran(command: &mut Command, mut says: impl FnMut(&str)) -> Result<Ran> {
    let folder = testkit::temporary()?;
    let skips = folder.path().join("skips");
    command.env(skip::VARIABLE, &skips);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let mut counted = Counted::default();
    for line in BufReader::new(child.stdout.take().expect("piped")).lines().map_while(Result::ok) {
        says(&line);
        counted.read(&line);
    }
    let status = child.wait()?;
    let failed = if status.success() { vec![] } else { vec![status.to_string()] };
    Ok(Ran { counted, skips: skip::read(&skips)?, failed })
}

fn tell(report: &mut Report, name: &str, ran: Ran) {
    let Ran { mut counted, skips, failed } = ran;
    counted.skip(skips);
    report.add(counted.passed);
    for (test, why) in counted.skipped {
        report.note(&test, Outcome::Skipped(why));
    }
    for test in &counted.failed {
        report.note(test, Outcome::Failed("see cargo test's output above".to_owned()));
    }
    // A crate that does not build, or a test that takes the whole runner with it, has no line of its own.
    let overall = match failed.is_empty() {
        true if counted.passed > 0 => Outcome::Passed,
        true => Outcome::Failed("no test ran".to_owned()),
        false => {
            Outcome::Failed(format!("{}; {} tests failed by name", failed.join(", "), counted.failed.len()))
        }
    };
    report.note(&format!("{name}, as a whole"), overall);
}

/// Every value row of PTX once more, this time by the driver API of the built library.
pub fn rows(installed: &Installed, report: &mut Report) {
    let run = || -> Result<()> {
        let cache = testkit::temporary()?;
        let mut command = example("rows_on_cuda")?;
        command.arg(installed.lib().join("libcuda.so.1"));
        command.env("CUDAWAY_DEVICE", "cpu").env("CUDAWAY_CACHE_DIR", cache.path());
        // Some rows are for newer devices than the one we are unasked.
        command.env("CUDAWAY_COMPUTE_CAPABILITY", "10.7");
        setup::run(&mut command)
    };
    report.note("every value row has its results by cuLaunchKernelEx", run());
}

/// The value rows on an instruction emulator of AMD GPUs.
pub fn amd_emulator(report: &mut Report) {
    let name = "value rows on the emulator of gfx1100, gfx942 and gfx1201, textures on gfx1100";
    if std::env::var_os("TINYGRAD").is_none() {
        let why = "TINYGRAD does not name a checkout of github.com/tinygrad/tinygrad".to_owned();
        return report.note(name, Outcome::Skipped(why));
    }
    let mut command = setup::cargo();
    command.args([
        "test",
        "--package",
        "compiler",
        "--test",
        "amd_emu",
        "--test",
        "gcn_texture",
        "--",
        "--nocapture",
    ]);
    counted(report, name, setup::stay_offline(&mut command));
}

/// The sum over all `test result:` lines, and the names of tests that did not pass.
#[derive(Default)]
struct Counted {
    passed: usize,
    failed: Vec<String>,
    /// And why.
    skipped: Vec<(String, String)>,
}

impl Counted {
    fn read(&mut self, line: &str) {
        if let Some((name, word)) = line.strip_prefix("test ").and_then(|rest| rest.rsplit_once(" ... ")) {
            if word == "FAILED" {
                self.failed.push(name.to_owned());
            } else if let Some(why) = word.strip_prefix("ignored") {
                let why = why.strip_prefix(", ").unwrap_or("marked as ignored in its source");
                self.skipped.push((name.to_owned(), why.to_owned()));
            }
        }
        let Some(rest) = line.strip_prefix("test result: ") else { return };
        for part in rest.split([';', '.']) {
            let mut words = part.split_whitespace();
            if let (Some(Ok(count)), Some("passed")) = (words.next().map(str::parse::<usize>), words.next()) {
                self.passed += count;
            }
        }
    }

    /// Tests that libtest counts as passed, since they returned. One that failed after all is not skipped.
    fn skip(&mut self, skips: Vec<Skip>) {
        let mut known = BTreeSet::new();
        for Skip { binary, test, missing } in skips {
            if !self.failed.contains(&test) && known.insert((binary.clone(), test.clone())) {
                self.passed = self.passed.saturating_sub(1);
                self.skipped.push((format!("{binary}: {test}"), missing));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::{Counted, Skip};
    use crate::setup;

    #[test]
    fn cargo_tests_result_lines_are_summed() {
        let mut counted = Counted::default();
        for line in [
            "test shl::later ... ignored",
            "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.10s",
            "test shl::clamps ... FAILED",
            "test result: FAILED. 3 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.10s",
        ] {
            counted.read(line);
        }
        assert_eq!(counted.passed, 15);
        assert_eq!(counted.failed, ["shl::clamps"]);
        let ignored = ("shl::later".to_owned(), "marked as ignored in its source".to_owned());
        assert_eq!(counted.skipped, [ignored]);
    }

    #[test]
    fn a_test_that_skips_did_not_pass() {
        let mut counted = Counted { passed: 3, failed: vec!["b".to_owned()], skipped: vec![] };
        let skip = |test: &str, missing: &str| Skip {
            binary: "amd_emu".to_owned(),
            test: test.to_owned(),
            missing: missing.to_owned(),
        };
        counted.skip(vec![skip("a", "an emulator"), skip("a", "a compiler"), skip("b", "an emulator")]);
        assert_eq!(counted.passed, 2);
        assert_eq!(counted.skipped, [("amd_emu: a".to_owned(), "an emulator".to_owned())]);
    }

    /// What a test prints before it returns is seen by nobody: `testkit::skip!` is.
    #[test]
    fn no_test_says_by_itself_that_it_skips() {
        fn look(folder: &Path, found: &mut Vec<String>) {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let is_rust = path.extension().is_some_and(|it| it == "rs");
                if path.is_dir() && !path.ends_with("benches") && !path.ends_with("target") {
                    look(&path, found);
                } else if is_rust && !path.ends_with("testkit/src/skip.rs") {
                    let text = fs::read_to_string(&path).unwrap();
                    let says = |line: &&str| line.contains("println!(\"skip");
                    found.extend(text.lines().filter(says).map(|line| format!("{}: {line}", path.display())));
                }
            }
        }
        let mut found = vec![];
        look(&setup::root().join("crates"), &mut found);
        assert!(found.is_empty(), "{}", found.join("\n"));
    }
}
