//! docs/clients.md, from the records. Every sum on it is made here.

use std::fmt::Write as _;

use anyhow::Result;

use super::list::{CLIENTS, Client};
use super::results::{Ended, Group, How, Of, Record, Run, Suite, Sums, groups};

/// The page, as `cargo xtask codegen` and `cargo xtask clients` write it.
pub const PATH: &str = "docs/clients.md";

const HEAD: &str = "# Real programs on our libraries

Written by `cargo xtask clients`: programs from PyPI and crates.io, unmodified, each in an environment of its own below
`~/.cache/cudaway-toolchains/clients`, with their own test suites, on the CPU device. `--only NAME` runs one of them, `--quick` a
small sample without writing this page. What is installed and run is listed in `xtask/src/clients/list.rs`; `tools/data/clients` has
a record of every run, with the name of each test and how it ended, of which the numbers here are made; `cargo xtask codegen
--check` refuses a record that the tool has not written and a page that the records do not give. Suites whose names end in
`_check.py` are our scripts in `examples/clients`, which use the client and compare results with NumPy's.

A test that passes although no kernel ran proves nothing. *Null passes* is how many of the whole suite pass on a driver that does
everything but run kernels, where that was measured; *launches* counts the kernels that the run launched here, and how many different
ones. *N of M run* says that a part was run, in an order drawn by a fixed seed. *Share* is passed of passed and failed. Tests that
were run again, by themselves, count as they ended last; the runs are listed below. *Run* has the last one's day, and the commit that
our objects were built from where the tool built them. A reason is given for a failure only where
the list has that test, by all of its name, with what it said; of other failures the page has what they said.

| client | suite | passed | failed | skipped | share | null passes | launches (kernels) | minutes | run |
|---|---|--:|--:|--:|--:|--:|--:|--:|---|
";

pub fn text() -> Result<String> {
    let (mut table, mut details) = (HEAD.to_owned(), String::new());
    for client in CLIENTS {
        let Some(record) = Record::load(client.name)? else { continue };
        details += &format!("\n## {}\n", record.title);
        if !client.note.is_empty() {
            details += &format!("\n{}\n", client.note);
        }
        for suite in &record.suites {
            row(&mut table, client, &record, suite);
            runs(&mut details, suite);
            let known = client.suite(&suite.name).map(|it| it.known()).unwrap_or_default();
            let ended = suite.ended();
            told(&mut details, &suite.name, "fails", &groups(&known, &ended, How::Failed));
            told(&mut details, &suite.name, "skipped", &groups(&known, &ended, How::Skipped));
        }
    }
    Ok(table + &details)
}

fn row(table: &mut String, client: &Client, record: &Record, suite: &Suite) {
    let Sums { passed, failed, skipped } = suite.ended().sums();
    let (drawn_from, cut_off) = suite.extent();
    let name = match drawn_from {
        Some(all) => format!("{}: {} of {all} run", suite.name, passed + failed + skipped),
        None => suite.name.clone(),
    };
    let cut_off = if cut_off { " (ended by its time limit)" } else { "" };
    let share = 100.0 * passed as f64 / (passed + failed).max(1) as f64;
    let null = client.suite(&suite.name).and_then(|it| it.null_passes);
    let null = null.map_or("?".to_owned(), |it| it.to_string());
    let runs = suite.counted();
    // A process that we ended did not tell.
    let launches = match runs.iter().map(|run| run.launches).sum::<u64>() {
        0 => "?".to_owned(),
        sum => format!("{sum} ({})", runs.iter().map(|run| run.kernels).max().unwrap_or_default()),
    };
    let minutes = runs.iter().map(|run| run.seconds).sum::<u64>() as f64 / 60.0;
    let when = when(&runs[runs.len() - 1]);
    let _ = writeln!(
        table,
        "| {} | {name}{cut_off} | {passed} | {failed} | {skipped} | {share:.1} % | {null} | {launches} | {minutes:.1} | {when} |",
        record.title
    );
}

fn when(run: &Run) -> String {
    run.commit.as_ref().map_or(run.date.clone(), |commit| format!("{}, `{commit}`", run.date))
}

/// Where there is more to say than the table's row.
fn runs(text: &mut String, suite: &Suite) {
    if let Ended::Counts { .. } = suite.runs[0].ended {
        let (date, name) = (&suite.runs[0].date, &suite.name);
        let _ = write!(
            text,
            "\nThe run of {name} on {date} was counted when the tool did not keep tests by name: its reasons are as it grouped them \
             then, and what was run again later is listed below, not added.\n"
        );
    }
    if suite.runs.len() == 1 {
        return;
    }
    let _ =
        write!(text, "\n| {}: run | what | passed | failed | skipped |\n|---|---|--:|--:|--:|\n", suite.name);
    for run in &suite.runs {
        let Sums { passed, failed, skipped } = run.ended.sums();
        let what = match &run.of {
            Of::All => "all of it".to_owned(),
            Of::Sample(n) => format!("a sample of at most {n}"),
            Of::Rest(_) => "what the runs before had left".to_owned(),
            Of::Again(tests) => {
                format!("again, by themselves: {}", list(tests.iter().map(|test| name(test))))
            }
        };
        let _ = writeln!(text, "| {} | {what} | {passed} | {failed} | {skipped} |", when(run));
    }
    // What ran by itself says why it fails, where the row above cannot.
    for run in suite.runs.iter().skip(suite.counted().len()) {
        let Ended::Tests { failed, .. } = &run.ended else { continue };
        for it in failed {
            let _ = write!(text, "\n`{}` said: `{}`\n", name(&it.test), super::results::plain(&it.said));
        }
    }
}

/// The last part of a test's name.
fn name(test: &str) -> &str {
    test.rsplit("::").next().unwrap_or(test)
}

fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.map(|name| format!("`{}`", name.replace('|', "\\|"))).collect::<Vec<_>>().join(", ")
}

fn told(text: &mut String, suite: &str, word: &str, groups: &[Group]) {
    if groups.is_empty() {
        return;
    }
    let _ = write!(text, "\n| {suite}: {word} | why | for example |\n|--:|---|---|\n");
    for group in groups {
        let why = if group.known { group.why.clone() } else { format!("`{}`", group.why) };
        let _ = writeln!(text, "| {} | {why} | `{}` |", group.count, group.example);
    }
}

#[cfg(test)]
mod tests {
    use testkit::known::find;

    use super::super::results::answer;
    use super::*;

    /// The list names tests that the records have, with what they said: an entry that no record shows is one too many.
    #[test]
    fn every_known_failure_is_in_a_record() {
        for client in CLIENTS {
            let record = Record::load(client.name).unwrap();
            for suite in client.suites {
                let known = suite.known();
                let runs = record.iter().filter_map(|it| it.suite(suite.name)).flat_map(|it| &it.runs);
                let endings: Vec<_> = runs.filter_map(|run| run.ended.endings()).flatten().collect();
                for entry in &known {
                    let said = |said: &str| find(&known, &entry.test, &answer(said)).is_some();
                    let last = endings.iter().rfind(|it| it.test == entry.test);
                    let is_so =
                        last.is_some_and(|it| entry.wavers || it.how == How::Failed && said(&it.said));
                    assert!(is_so, "{}: {}: no record shows this failure", client.name, entry.test);
                }
            }
        }
    }

    /// Records name clients and suites that there are.
    #[test]
    fn every_record_is_of_a_client_and_its_suites() {
        let folder = crate::setup::root().join("tools/data/clients");
        for file in std::fs::read_dir(folder).unwrap() {
            let name = file.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned();
            let client = CLIENTS.iter().find(|client| client.name == name);
            let client = client.unwrap_or_else(|| panic!("{name} is no client"));
            for suite in Record::load(&name).unwrap().unwrap().suites {
                assert!(client.suite(&suite.name).is_some(), "{name} has no suite {}", suite.name);
            }
        }
    }
}
