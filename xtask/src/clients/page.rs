//! docs/clients.md, from the results that are kept.

use std::fmt::Write as _;
use std::fs;

use anyhow::{Context as _, Result};

use super::list::CLIENTS;
use super::results::{Group, Results, Suite};
use crate::setup;

const HEAD: &str = "# Real programs on our libraries

Written by `cargo xtask clients`: programs from PyPI and crates.io, unmodified, each in an environment of its own below
`~/.cache/cudaway-toolchains/clients`, with their own test suites, on the CPU device. `--only NAME` runs one of them, `--quick` a
small sample without writing this page. What is installed and run is listed in `xtask/src/clients/list.rs`; results are kept in
`tools/data/clients`. Suites whose names end in `_check.py` are our scripts in `examples/clients`, which use the client and
compare results with NumPy's.

A test that passes although no kernel ran proves nothing. *Null passes* is how many of the whole suite pass on a driver that does
everything but run kernels, where that was measured; *launches* counts the kernels that the run launched here, and how many different
ones. *N of M run* says that a part was run, in an order drawn by a fixed seed. *Share* is passed of passed and failed.

| client | suite | passed | failed | skipped | share | null passes | launches (kernels) | minutes |
|---|---|--:|--:|--:|--:|--:|--:|--:|
";

pub fn write() -> Result<()> {
    let (mut table, mut details) = (HEAD.to_owned(), String::new());
    for client in CLIENTS {
        let Some(results) = Results::load(client.name) else { continue };
        for suite in &results.suites {
            row(&mut table, &results, suite);
        }
        let _ = write!(details, "\n## {}\n", results.title);
        if !client.note.is_empty() {
            let _ = write!(details, "\n{}\n", client.note);
        }
        for suite in results.suites {
            groups(&mut details, &suite.name, "fails", &suite.failures);
            groups(&mut details, &suite.name, "skipped", &suite.skips);
        }
    }
    let path = setup::root().join("docs/clients.md");
    fs::write(&path, table + &details).with_context(|| path.display().to_string())
}

fn row(table: &mut String, results: &Results, suite: &Suite) {
    let name = match suite.drawn_from {
        Some(all) => {
            format!("{}: {} of {all} run", suite.name, suite.passed + suite.failed + suite.skipped)
        }
        None => suite.name.clone(),
    };
    let unfinished = if suite.unfinished { " (ended by its time limit)" } else { "" };
    let ran = suite.passed + suite.failed;
    let share = 100.0 * suite.passed as f64 / ran.max(1) as f64;
    let null = suite.null_passes.map_or("?".to_owned(), |it| it.to_string());
    // A process that we ended did not tell.
    let launches = match suite.launches {
        0 => "?".to_owned(),
        launches => format!("{launches} ({})", suite.kernels),
    };
    let _ = writeln!(
        table,
        "| {} | {name}{unfinished} | {} | {} | {} | {share:.1} % | {null} | {launches} | {:.1} |",
        results.title, suite.passed, suite.failed, suite.skipped, suite.minutes
    );
}

fn groups(text: &mut String, suite: &str, word: &str, groups: &[Group]) {
    if groups.is_empty() {
        return;
    }
    let _ = write!(text, "\n| {suite}: {word} | why | for example |\n|--:|---|---|\n");
    for group in groups {
        let why = if group.known { group.why.clone() } else { format!("`{}`", group.why) };
        let _ = writeln!(text, "| {} | {why} | `{}` |", group.count, group.example);
    }
}
