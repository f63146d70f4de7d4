//! The table "Does my program run?" of README.md, from the same records as docs/clients.md.

use std::fmt::Write as _;

use anyhow::{Context as _, Result};

use super::list::CLIENTS;
use super::results::Record;
use crate::setup::root;

const PATH: &str = "README.md";
const START: &str = "<!-- clients: written by `cargo xtask codegen` -->";
const END: &str = "<!-- end of clients -->";

/// README.md with the table as the records give it.
pub fn page() -> Result<(String, String)> {
    let page = std::fs::read_to_string(root().join(PATH)).context(PATH)?;
    Ok((PATH.to_owned(), replaced(&page, &table()?)?))
}

fn replaced(page: &str, table: &str) -> Result<String> {
    let lost = || format!("{PATH} has lost the marks around the table of clients");
    let (head, rest) = page.split_once(START).with_context(lost)?;
    let (_, tail) = rest.split_once(END).with_context(lost)?;
    Ok(format!("{head}{START}\n{table}{END}{tail}"))
}

fn table() -> Result<String> {
    let mut table =
        "| program | tests that were run | pass | kernel launches |\n|---|---|--:|--:|\n".to_owned();
    for client in CLIENTS {
        let Some(record) = Record::load(client.name)? else { continue };
        let (mut passed, mut failed, mut launches, mut names) = (0, 0, 0, Vec::new());
        let mut n_ours = 0;
        for suite in &record.suites {
            let sums = suite.ended().sums();
            passed += sums.passed;
            failed += sums.failed;
            launches += suite.counted().iter().map(|run| run.launches).sum::<u64>();
            let part = match suite.extent() {
                (Some(all), _) => format!(" ({} of {all})", sums.all()),
                (None, _) => String::new(),
            };
            if suite.name.ends_with("_check.py") {
                n_ours += 1;
            } else {
                names.push(suite.name.clone() + &part);
            }
        }
        match n_ours {
            0 => {}
            1 => names.push("a check of ours".to_owned()),
            _ => names.push(format!("{n_ours} checks of ours")),
        }
        let share = 100.0 * passed as f64 / (passed + failed).max(1) as f64;
        // A process that we ended did not tell.
        let launches = if launches == 0 { "?".to_owned() } else { launches.to_string() };
        let _ = writeln!(
            table,
            "| {} | {} | {passed} of {} ({share:.1} %) | {launches} |",
            record.title,
            names.join("; "),
            passed + failed
        );
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_table_changes() {
        let page = |table: &str| format!("a\n{START}\n{table}{END}\nb\n");
        assert_eq!(replaced(&page("old\n"), "new\n").unwrap(), page("new\n"));
        assert!(replaced("no marks", "new").is_err());
    }
}
