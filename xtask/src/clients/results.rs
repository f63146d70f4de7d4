//! How tests ended: what suites print, read; and the records of tools/data/clients, of which docs/clients.md is made.
//!
//! Rule: a record has what ran and how each test ended, never a sum. Sums are made when they are shown. Each run is sealed, so
//! one that was changed by anything but the tool is refused.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};
use testkit::known::{self, Known};

use crate::setup;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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

/// A client's file.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// The client with its release.
    pub title: String,
    pub suites: Vec<Suite>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suite {
    pub name: String,
    /// One of all that was wanted, then what was run after it: the rest, or some tests again. A test's last run counts.
    pub runs: Vec<Run>,
}

/// The tool ran tests once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    pub date: String,
    /// That the objects were built from, with a `+` where files had changed; unknown of another folder's objects, and of runs
    /// before it was kept.
    pub commit: Option<String>,
    pub of: Of,
    /// Tests there are; where the suite says so.
    pub collected: Option<usize>,
    pub launches: u64,
    /// Different kernels, in the process that had most of them.
    pub kernels: usize,
    pub seconds: u64,
    /// The time limit ended it.
    pub cut_off: bool,
    pub ended: Ended,
    pub seal: String,
}

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Of {
    All,
    /// So many, in an order drawn by a fixed seed.
    Sample(usize),
    /// What the runs before it left, of all or of so many.
    Rest(Option<usize>),
    /// These, which had been run before.
    Again(Vec<String>),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Ended {
    /// Every test by its name.
    Tests { passed: Vec<String>, failed: Vec<Said>, skipped: Vec<Said> },
    /// As the tool counted before it kept names: these runs cannot be gone on with, nor corrected by later ones.
    Counts { passed: usize, failed: Vec<Count>, skipped: Vec<Count> },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Said {
    pub test: String,
    pub said: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Count {
    pub why: String,
    pub count: usize,
    pub example: String,
}

/// The sums of a run, or of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    pub passed: usize,
    pub failed: usize,
    pub skipped: usize,
}

/// Tests that ended alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    pub why: String,
    /// The reason is one we know; else `why` is what the tests said.
    pub known: bool,
    pub count: usize,
    pub example: String,
}

impl Sums {
    pub fn all(self) -> usize {
        self.passed + self.failed + self.skipped
    }
}

impl Ended {
    pub fn of(endings: &[Ending]) -> Ended {
        let mut endings: Vec<&Ending> = endings.iter().collect();
        endings.sort_by(|a, b| a.test.cmp(&b.test));
        let of = |how| endings.iter().filter(move |it| it.how == how);
        let said = |how| of(how).map(|it| Said { test: it.test.clone(), said: it.said.clone() }).collect();
        Ended::Tests {
            passed: of(How::Passed).map(|it| it.test.clone()).collect(),
            failed: said(How::Failed),
            skipped: said(How::Skipped),
        }
    }

    /// Where tests have names.
    pub fn endings(&self) -> Option<Vec<Ending>> {
        let Ended::Tests { passed, failed, skipped } = self else { return None };
        let ending =
            |how, test: &str, said: &str| Ending { how, test: test.to_owned(), said: said.to_owned() };
        let passed = passed.iter().map(|test| ending(How::Passed, test, ""));
        let failed = failed.iter().map(|it| ending(How::Failed, &it.test, &it.said));
        let skipped = skipped.iter().map(|it| ending(How::Skipped, &it.test, &it.said));
        Some(passed.chain(failed).chain(skipped).collect())
    }

    pub fn sums(&self) -> Sums {
        match self {
            Ended::Tests { passed, failed, skipped } => {
                Sums { passed: passed.len(), failed: failed.len(), skipped: skipped.len() }
            }
            Ended::Counts { passed, failed, skipped } => {
                let sum = |counts: &[Count]| counts.iter().map(|it| it.count).sum();
                Sums { passed: *passed, failed: sum(failed), skipped: sum(skipped) }
            }
        }
    }
}

impl Run {
    /// With the seal of what it says.
    pub fn sealed(self) -> Run {
        Run { seal: self.seal_of(), ..self }
    }

    fn seal_of(&self) -> String {
        let bare = Run { seal: String::new(), ..self.clone() };
        let text = serde_json::to_string(&bare).expect("a run is JSON");
        blake3::hash(text.as_bytes()).to_hex()[..16].to_owned()
    }
}

impl Suite {
    /// How each test ended last; nothing where the first run has no names.
    pub fn endings(&self) -> Option<Vec<Ending>> {
        let mut last: BTreeMap<String, Ending> = BTreeMap::new();
        for run in &self.runs {
            last.extend(run.ended.endings()?.into_iter().map(|ending| (ending.test.clone(), ending)));
        }
        Some(last.into_values().collect())
    }

    /// The runs whose sums are the suite's: all, or the first alone where it has no names.
    pub fn counted(&self) -> &[Run] {
        if self.endings().is_some() { &self.runs } else { &self.runs[..1] }
    }

    pub fn ended(&self) -> Ended {
        self.endings().map_or_else(|| self.runs[0].ended.clone(), |endings| Ended::of(&endings))
    }

    /// Tests there are, if not all of them were run; and whether some are missing that were wanted.
    pub fn extent(&self) -> (Option<usize>, bool) {
        let (done, runs) = (self.ended().sums().all(), self.counted());
        let collected = runs.iter().rev().find_map(|run| run.collected);
        let wanted = runs.iter().rev().find_map(|run| match run.of {
            Of::All | Of::Rest(None) => Some(usize::MAX),
            Of::Sample(n) | Of::Rest(Some(n)) => Some(n),
            Of::Again(_) => None,
        });
        let all = collected.unwrap_or(done);
        let begun_whole = runs.iter().rfind(|run| !matches!(run.of, Of::Again(_)));
        let cut_off = begun_whole.is_some_and(|run| run.cut_off) || done < all.min(wanted.unwrap_or(all));
        (collected.filter(|&all| all > done), cut_off)
    }
}

/// What tests said that ended so, in groups: the known ones by the reason, the others by what they said.
pub fn groups(known: &[Known], ended: &Ended, how: How) -> Vec<Group> {
    let mut found: BTreeMap<(bool, String), Group> = BTreeMap::new();
    if let Ended::Counts { failed, skipped, .. } = ended {
        let counts = if how == How::Failed { failed } else { skipped };
        let group = |it: &Count| Group {
            why: it.why.clone(),
            known: false,
            count: it.count,
            example: it.example.clone(),
        };
        return counts.iter().map(group).collect();
    }
    for ending in ended.endings().unwrap_or_default().into_iter().filter(|it| it.how == how) {
        let said = answer(&ending.said);
        let entry = if how == How::Failed { known::find(known, &ending.test, &said) } else { None };
        let why = entry.map_or_else(|| plain(&ending.said), |entry| entry.why.clone());
        let example = ending.test.rsplit("::").next().unwrap_or_default().to_owned();
        let key = (entry.is_some(), why.clone());
        let group = found.entry(key).or_insert(Group { why, known: entry.is_some(), count: 0, example });
        group.count += 1;
    }
    let mut groups: Vec<Group> = found.into_values().collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.count));
    groups
}

/// What was said without what is another in each run: numbers and the names of temporary files. A known failure has all of it.
pub fn answer(said: &str) -> String {
    const TEMPORARY: &str = "/tmp/";
    let (mut text, mut rest) = (String::new(), said);
    while let Some(c) = rest.chars().next() {
        if let Some(name) = rest.strip_prefix(TEMPORARY) {
            text.push_str(TEMPORARY);
            text.push('…');
            rest = &name[name.find([' ', ',', ':', ';', '\'', '"', ')']).unwrap_or(name.len())..];
            continue;
        }
        match c {
            '0'..='9' if text.ends_with('#') => {}
            '0'..='9' => text.push('#'),
            ',' if text.ends_with('#') && is_group(&rest[1..]) => {}
            other if other.is_control() => {}
            other => text.push(other),
        }
        rest = &rest[c.len_utf8()..];
    }
    if text.is_empty() { "nothing was said".to_owned() } else { text }
}

/// The three digits behind a comma within a large number.
fn is_group(rest: &str) -> bool {
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    digits == 3
}

/// The start of it, for the page: equal troubles are one group.
pub fn plain(said: &str) -> String {
    answer(said).chars().take(120).map(|c| if matches!(c, '|' | '`') { ' ' } else { c }).collect()
}

fn file(name: &str) -> PathBuf {
    setup::root().join("tools/data/clients").join(name).with_extension("json")
}

impl Record {
    /// Nothing where the client has no record yet.
    pub fn load(name: &str) -> Result<Option<Record>> {
        let path = file(name);
        if !path.exists() {
            return Ok(None);
        }
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        Record::parse(&text).map(Some).with_context(|| path.display().to_string())
    }

    fn parse(text: &str) -> Result<Record> {
        let record: Record = serde_json::from_str(text)?;
        for suite in &record.suites {
            ensure!(!suite.runs.is_empty(), "{} has no run", suite.name);
            for run in &suite.runs {
                ensure!(
                    run.seal == run.seal_of(),
                    "{}, the run of {}: `cargo xtask clients` has not written this",
                    suite.name,
                    run.date
                );
            }
        }
        Ok(record)
    }

    pub fn suite(&self, name: &str) -> Option<&Suite> {
        self.suites.iter().find(|suite| suite.name == name)
    }

    pub fn save(&self, name: &str) -> Result<()> {
        let path = file(name);
        fs::create_dir_all(path.parent().context("a folder")?)?;
        fs::write(&path, serde_json::to_string_pretty(self)? + "\n").context("writing the record")
    }
}

/// `passed <tab> test <tab> reason`, as `cudaway_results.py` writes it. A test that was begun and did not end took its
/// process down.
pub fn from_plugin(text: &str) -> Vec<Ending> {
    let lines = || {
        text.lines().map(|line| {
            let mut fields = line.splitn(3, '\t');
            let mut next = || fields.next().unwrap_or_default();
            (next(), next(), next())
        })
    };
    let how = |word: &str| match word {
        "passed" => Some(How::Passed),
        "failed" => Some(How::Failed),
        "skipped" => Some(How::Skipped),
        _ => None,
    };
    // Several processes may have run them side by side.
    let ended: BTreeSet<&str> =
        lines().filter(|(word, ..)| how(word).is_some()).map(|(_, test, _)| test).collect();
    let ending = |(word, test, said): (&str, &str, &str)| match how(word) {
        Some(how) => Some(Ending { how, test: test.to_owned(), said: said.to_owned() }),
        None => (word == "begun" && !ended.contains(test)).then(|| died(test)),
    };
    lines().filter_map(ending).collect()
}

fn died(test: &str) -> Ending {
    Ending { how: How::Failed, test: test.to_owned(), said: DIED.to_owned() }
}

/// What is said of a test that began and did not end.
pub const DIED: &str = "its process died";

/// `test a::b ... ok`, as `cargo test` prints it.
pub fn from_cargo(text: &str) -> Vec<Ending> {
    let tests = text.lines().filter_map(|line| line.strip_prefix("test ")?.rsplit_once(" ... "));
    // Its own section has `thread '…' panicked at …:` and what it said in the lines below.
    let panicked = |test: &str| {
        let (_, section) = text.split_once(&format!("---- {test} stdout ----\n"))?;
        let section = section.split_once("\n---- ").map_or(section, |(section, _)| section);
        let (_, said) = section.split_once(" panicked at ")?;
        Some(said.lines().nth(1)?.trim())
    };
    let ended = tests.filter_map(|(test, word)| {
        let (how, said) = match word {
            "ok" => (How::Passed, ""),
            "FAILED" => (How::Failed, panicked(test).unwrap_or("it failed")),
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
    // Those that name the check, where some do: `1.2:sum FAILED` and `FAILED: sum: it is 3`.
    let said = |name: &str| {
        let own = name.rsplit(':').next().unwrap_or(name);
        let of_it = |line: &&&str| line.strip_prefix(own).is_some_and(|rest| rest.starts_with(": "));
        let lines: Vec<&str> = because.iter().filter(of_it).copied().collect();
        if lines.is_empty() { because.join("; ") } else { lines.join("; ") }
    };
    let ending = |(name, how): (&str, How)| {
        let said = if how == How::Passed { String::new() } else { said(name) };
        Ending { how, test: name.to_owned(), said }
    };
    let mut endings: Vec<Ending> = checks.map(ending).collect();
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

/// Launches of all processes of the run, and kernels of the one that had most of them, in what `CUDAWAY_PROFILE` printed.
pub fn launches(stderr: &str) -> (u64, usize) {
    let row = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [time, total, launches, _, _, _, _, ..] = fields[..] else { return None };
        let (Ok(_), Ok(_)) = (time.parse::<f64>(), total.parse::<f64>()) else { return None };
        launches.parse::<u64>().ok().filter(|&launches| launches > 0)
    };
    let processes = stderr.split("CUDAWAY PROFILE: kernels").map(|table| {
        table.lines().filter_map(row).fold((0, 0), |(sum, kernels), launches| (sum + launches, kernels + 1))
    });
    processes
        .fold((0, 0), |(sum, most), (launches, kernels): (u64, usize)| (sum + launches, most.max(kernels)))
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
        let endings = from_plugin("begun\ta\nbegun\tb\npassed\ta\t\nbegun\tc\nskipped\tc\tno GPU\n");
        let told: Vec<(How, &str)> = endings.iter().map(|it| (it.how, &*it.test)).collect();
        let mut sorted = told;
        sorted.sort_by_key(|it| it.1);
        assert_eq!(sorted, [(How::Passed, "a"), (How::Failed, "b"), (How::Skipped, "c")], "by two processes");
    }

    #[test]
    fn cargos_lines_are_counted() {
        let endings = from_cargo(
            "running 3 tests\ntest a::b ... ok\ntest c ... FAILED\ntest d ... ignored, why\n\nfailures:\n\n\
             ---- c stdout ----\n\nthread 'c' (7) panicked at src/c.rs:1:2:\nassertion failed: 1 > 2\nnote: run with\n",
        );
        let told: Vec<(How, &str)> = endings.iter().map(|it| (it.how, &*it.said)).collect();
        let said = "assertion failed: 1 > 2";
        assert_eq!(told, [(How::Passed, ""), (How::Failed, said), (How::Skipped, "why")]);
    }

    #[test]
    fn a_script_that_dies_after_its_first_check_did_not_pass() {
        assert_eq!(from_script("add ok\n", false, "signal 11").len(), 2);
        assert_eq!(from_script("add ok\nPASSED\n", true, "").len(), 1);
        assert_eq!(from_script("PASSED\n", true, "")[0].how, How::Passed);
    }

    #[test]
    fn a_check_of_a_script_says_its_own_lines() {
        let text = "9.0:sum FAILED\n9.0:max FAILED\n9.0:min ok\nFAILED: sum: it is 3\nFAILED: element 4\n";
        let endings = from_script(text, false, "");
        let told: Vec<(&str, &str)> = endings.iter().map(|it| (&*it.test, &*it.said)).collect();
        let all = "sum: it is 3; element 4";
        assert_eq!(told, [("9.0:sum", "sum: it is 3"), ("9.0:max", all), ("9.0:min", "")]);
    }

    #[test]
    fn an_answer_is_the_same_in_each_run() {
        let said = "ptxas /tmp/tmpsa28h33d.ptx, line 239; error: `a|b` is not known; 1.5 ms";
        assert_eq!(answer(said), "ptxas /tmp/…, line #; error: `a|b` is not known; #.# ms");
        assert_eq!(plain(said), "ptxas /tmp/…, line #; error:  a b  is not known; #.# ms");
        assert_eq!(answer("34,359,738,880 bytes, 12 of [1,2,3456]"), "# bytes, # of [#,#,#]");
        assert_eq!(answer("no\0"), "no");
        assert_eq!(answer(""), "nothing was said");
    }

    #[test]
    fn launches_are_those_of_kernels_that_ran() {
        let text = "CUDAWAY PROFILE: kernels on the CPU device\ntime %    total ms  launches     mean us\n \
                    26.8       0.720         3      720.38      720.38      720.38       124.4  simd, 1  8x4x1        r_5\n  \
                    0.0       0.000         0        0.00        0.00        0.00       614.8  simd, 16 16x1x1       r_10\n";
        assert_eq!(launches(text), (3, 1));
        assert_eq!(launches(&text.repeat(2)), (6, 1), "of two processes");
    }

    fn run(of: Of, endings: &[(How, &str)]) -> Run {
        let ending =
            |&(how, test): &(How, &str)| Ending { how, test: test.to_owned(), said: "n 17".to_owned() };
        let endings: Vec<Ending> = endings.iter().map(ending).collect();
        Run {
            date: "2026-11-23".to_owned(),
            commit: None,
            of,
            collected: Some(4),
            launches: 1,
            kernels: 1,
            seconds: 60,
            cut_off: false,
            ended: Ended::of(&endings),
            seal: String::new(),
        }
        .sealed()
    }

    fn suite(runs: Vec<Run>) -> Suite {
        Suite { name: "s".to_owned(), runs }
    }

    #[test]
    fn a_tests_last_run_counts() {
        let first = run(Of::All, &[(How::Passed, "a"), (How::Failed, "b"), (How::Failed, "c")]);
        let cut_off = suite(vec![first.clone()]);
        assert_eq!(cut_off.ended().sums(), Sums { passed: 1, failed: 2, skipped: 0 });
        assert_eq!(cut_off.extent(), (Some(4), true));
        let again = run(Of::Again(vec!["b".to_owned()]), &[(How::Passed, "b")]);
        assert_eq!(
            suite(vec![first.clone(), again]).ended().sums(),
            Sums { passed: 2, failed: 1, skipped: 0 }
        );
        let rest = suite(vec![first, run(Of::Rest(None), &[(How::Skipped, "d")])]);
        assert_eq!(rest.ended().sums(), Sums { passed: 1, failed: 2, skipped: 1 });
        assert_eq!(rest.extent(), (None, false));
    }

    /// Which of its tests failed is not known, so nothing that is run later is taken from its counts.
    #[test]
    fn a_run_without_names_keeps_its_counts() {
        let count = |count| Count { why: "w".to_owned(), count, example: "e".to_owned() };
        let ended = Ended::Counts { passed: 3, failed: vec![count(1), count(2)], skipped: vec![] };
        let old = Run { ended, ..run(Of::All, &[]) };
        let suite = suite(vec![old, run(Of::Again(vec!["b".to_owned()]), &[(How::Passed, "b")])]);
        assert_eq!(suite.ended().sums(), Sums { passed: 3, failed: 3, skipped: 0 });
        assert_eq!(suite.counted().len(), 1);
    }

    #[test]
    fn what_another_hand_wrote_is_refused() {
        let suites = vec![suite(vec![run(Of::All, &[(How::Passed, "a"), (How::Failed, "b")])])];
        let text = serde_json::to_string_pretty(&Record { title: "t".to_owned(), suites }).unwrap();
        Record::parse(&text).unwrap();
        let moved = text.replace("\"a\"", "\"a\", \"b\"");
        assert!(moved != text);
        assert!(Record::parse(&moved).unwrap_err().to_string().contains("has not written this"));
        let summed = text.replace("\"runs\"", "\"passed\": 2, \"runs\"");
        assert!(Record::parse(&summed).unwrap_err().to_string().contains("unknown field `passed`"));
    }

    #[test]
    fn a_known_failure_is_one_test_with_one_answer() {
        let known = Known {
            test: "a::b".to_owned(),
            said: "n #".to_owned(),
            why: "its reason".to_owned(),
            wavers: false,
        };
        let ended = run(Of::All, &[(How::Failed, "a::b"), (How::Failed, "a::bc")]).ended;
        let found = groups(&[known], &ended, How::Failed);
        let told: Vec<(bool, &str, usize)> = found.iter().map(|it| (it.known, &*it.why, it.count)).collect();
        assert_eq!(told, [(false, "n #", 1), (true, "its reason", 1)]);
    }
}
