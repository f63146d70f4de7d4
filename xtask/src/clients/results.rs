//! How the tests of one suite ended, counted and grouped, and kept in tools/data/clients so that each client can be run
//! by itself and the page still shows all.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use super::list::Client;
use crate::setup;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    Passed,
    Failed,
    Skipped,
}

/// How one test ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    pub how: How,
    pub test: String,
    /// What was said, where it did not pass.
    pub said: String,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Suite {
    pub name: String,
    /// Tests there are, where only some of them were run.
    pub drawn_from: Option<usize>,
    pub null_passes: Option<usize>,
    pub passed: usize,
    pub failed: usize,
    pub skipped: usize,
    /// Launches of kernels, and different kernels.
    pub launches: u64,
    pub kernels: usize,
    pub minutes: f64,
    /// It was ended by the time limit, so tests are missing.
    pub unfinished: bool,
    pub failures: Vec<Group>,
    pub skips: Vec<Group>,
}

/// Tests that ended alike.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Group {
    pub why: String,
    /// The reason is one we know; else `why` is what the test said.
    pub known: bool,
    pub count: usize,
    pub example: String,
}

#[derive(Serialize, Deserialize)]
pub struct Results {
    pub title: String,
    pub date: String,
    pub suites: Vec<Suite>,
}

impl Suite {
    pub fn count(&mut self, client: &Client, endings: &[Ending]) {
        let of = |how| endings.iter().filter(move |ending| ending.how == how);
        self.passed = of(How::Passed).count();
        self.failed = of(How::Failed).count();
        self.skipped = of(How::Skipped).count();
        self.failures = groups(client, of(How::Failed));
        self.skips = groups(client, of(How::Skipped));
    }

    /// Tests that failed for no reason we know.
    pub fn unexplained(&self) -> usize {
        self.failures.iter().filter(|group| !group.known).map(|group| group.count).sum()
    }
}

fn groups<'a>(client: &Client, endings: impl Iterator<Item = &'a Ending>) -> Vec<Group> {
    let mut found: BTreeMap<(bool, String), Group> = BTreeMap::new();
    for ending in endings {
        let reason =
            client.reasons.iter().find(|it| ending.test.contains(it.of) || ending.said.contains(it.of));
        let known = reason.is_some();
        let why = reason.map_or_else(|| plain(&ending.said), |reason| reason.why.to_owned());
        let example = ending.test.rsplit("::").next().unwrap_or_default().to_owned();
        let group = found.entry((known, why.clone())).or_insert(Group { why, known, count: 0, example });
        group.count += 1;
    }
    let mut groups: Vec<Group> = found.into_values().collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.count));
    groups
}

/// The start of what was said, with numbers left out, so that equal troubles are one group.
fn plain(said: &str) -> String {
    let mut text = String::new();
    for c in said.chars().take(120) {
        match c {
            '0'..='9' if text.ends_with('#') => {}
            '0'..='9' => text.push('#'),
            '|' | '`' => text.push(' '),
            other => text.push(other),
        }
    }
    if text.is_empty() { "nothing was said".to_owned() } else { text }
}

fn file(name: &str) -> PathBuf {
    setup::root().join("tools/data/clients").join(name).with_extension("json")
}

impl Results {
    pub fn load(name: &str) -> Option<Results> {
        serde_json::from_str(&fs::read_to_string(file(name)).ok()?).ok()
    }

    pub fn save(&self, name: &str) -> Result<()> {
        let path = file(name);
        fs::create_dir_all(path.parent().context("a folder")?)?;
        fs::write(&path, serde_json::to_string_pretty(self)? + "\n").context("writing the results")
    }
}

/// `passed <tab> test <tab> reason`, as `cudaway_results.py` writes it. A test that was begun and did not end took its
/// process down.
pub fn from_plugin(text: &str) -> Vec<Ending> {
    let mut endings: Vec<Ending> = Vec::new();
    let mut begun: Option<&str> = None;
    for line in text.lines() {
        let mut fields = line.splitn(3, '\t');
        let (word, test, said) =
            (fields.next().unwrap_or_default(), fields.next().unwrap_or_default(), fields.next());
        let how = match word {
            "passed" => How::Passed,
            "failed" => How::Failed,
            "skipped" => How::Skipped,
            "begun" => {
                endings.extend(begun.replace(test).map(died));
                continue;
            }
            _ => continue,
        };
        begun = begun.filter(|it| *it != test);
        endings.push(Ending { how, test: test.to_owned(), said: said.unwrap_or_default().to_owned() });
    }
    endings.extend(begun.map(died));
    endings
}

fn died(test: &str) -> Ending {
    Ending { how: How::Failed, test: test.to_owned(), said: DIED.to_owned() }
}

/// What is said of a test that began and did not end.
pub const DIED: &str = "its process died";

/// `test a::b ... ok`, as `cargo test` prints it.
pub fn from_cargo(text: &str) -> Vec<Ending> {
    let tests = text.lines().filter_map(|line| line.strip_prefix("test ")?.rsplit_once(" ... "));
    let ended = tests.filter_map(|(test, word)| {
        let (how, said) = match word {
            "ok" => (How::Passed, ""),
            "FAILED" => (How::Failed, "an assertion failed"),
            other => (How::Skipped, other.strip_prefix("ignored")?.trim_start_matches(", ")),
        };
        Some(Ending { how, test: test.to_owned(), said: said.to_owned() })
    });
    ended.collect()
}

/// `name ok` and `name FAILED`, as our scripts in examples/clients print them, and the last line for the whole.
pub fn from_script(text: &str, passed: bool, described: &str) -> Vec<Ending> {
    let checks = text.lines().filter_map(|line| match line.split_once(' ')? {
        (name, "ok") => Some((name, How::Passed)),
        (name, "FAILED") => Some((name, How::Failed)),
        _ => None,
    });
    let because: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("FAILED: ")).collect();
    let said = |how| if how == How::Passed { String::new() } else { because.join("; ") };
    let mut endings: Vec<Ending> =
        checks.map(|(name, how)| Ending { how, test: name.to_owned(), said: said(how) }).collect();
    if endings.is_empty() || (!passed && endings.iter().all(|ending| ending.how == How::Passed)) {
        let how = if passed { How::Passed } else { How::Failed };
        let said = if passed { "" } else { described };
        endings.push(Ending { how, test: "the script".to_owned(), said: said.to_owned() });
    }
    endings
}

/// Launches of all processes of a suite, and the most kernels that one of them launched.
pub fn launches_of_runs(text: &str) -> (u64, usize) {
    let lines = text.lines().filter_map(|line| line.strip_prefix("launches\t")?.split_once('\t'));
    let numbers =
        lines.filter_map(|(launches, kernels)| Some((launches.parse::<u64>().ok()?, kernels.parse().ok()?)));
    numbers.fold((0, 0), |(sum, most), (launches, kernels): (u64, usize)| (sum + launches, most.max(kernels)))
}

/// Launches and kernels in what `CUDAWAY_PROFILE` printed, for all processes of the run.
pub fn launches(stderr: &str) -> (u64, usize) {
    let rows = stderr.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [time, total, launches, _, _, _, _, ..] = fields[..] else { return None };
        let (Ok(_), Ok(_)) = (time.parse::<f64>(), total.parse::<f64>()) else { return None };
        launches.parse::<u64>().ok().filter(|&launches| launches > 0)
    });
    rows.fold((0, 0), |(sum, kernels), launches| (sum + launches, kernels + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_that_takes_its_process_down_failed() {
        let endings =
            from_plugin("begun\ta\npassed\ta\t\nbegun\tb\nbegun\tc\nskipped\tc\tno GPU\nbegun\td\n");
        let told: Vec<(How, &str)> = endings.iter().map(|it| (it.how, &*it.test)).collect();
        let expected = [(How::Passed, "a"), (How::Failed, "b"), (How::Skipped, "c"), (How::Failed, "d")];
        assert_eq!(told, expected);
    }

    #[test]
    fn cargos_lines_are_counted() {
        let endings =
            from_cargo("running 3 tests\ntest a::b ... ok\ntest c ... FAILED\ntest d ... ignored, why\n");
        let told: Vec<(How, &str)> = endings.iter().map(|it| (it.how, &*it.said)).collect();
        assert_eq!(told, [(How::Passed, ""), (How::Failed, "an assertion failed"), (How::Skipped, "why")]);
    }

    #[test]
    fn a_script_that_dies_after_its_first_check_did_not_pass() {
        assert_eq!(from_script("add ok\n", false, "signal 11").len(), 2);
        assert_eq!(from_script("add ok\nPASSED\n", true, "").len(), 1);
        assert_eq!(from_script("PASSED\n", true, "")[0].how, How::Passed);
    }

    #[test]
    fn launches_are_those_of_kernels_that_ran() {
        let text = "CUDAWAY PROFILE: kernels on the CPU device\ntime %    total ms  launches     mean us\n \
                    26.8       0.720         3      720.38      720.38      720.38       124.4  S, 1     8x4x1        r_5\n  \
                    0.0       0.000         0        0.00        0.00        0.00       614.8  S, 16    16x1x1       r_10\n";
        assert_eq!(launches(text), (3, 1));
    }
}
