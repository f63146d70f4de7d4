//! docs/reach.md: the table that the test keeps true.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Context as _, Result, ensure};

use super::clients::CLIENTS;
use super::inside::METHODS;
use crate::setup;

pub const PAGE: &str = "docs/reach.md";
const FIRST: &str = "| client |";

/// client → method → `yes`, `no`, `forced` or `refused`.
pub type Table = BTreeMap<String, BTreeMap<String, String>>;

/// The answers of a run.
pub fn from_lines(text: &str) -> Result<Table> {
    let mut table = Table::new();
    for line in text.lines() {
        let cells: Vec<&str> = line.split('\t').collect();
        let [client, method, answer] = cells[..] else { anyhow::bail!("not a cell: {line}") };
        table.entry(client.to_owned()).or_default().insert(method.to_owned(), answer.to_owned());
    }
    Ok(table)
}

/// What the page says.
pub fn of_page() -> Result<Table> {
    let text = std::fs::read_to_string(setup::root().join(PAGE)).context(PAGE)?;
    let mut rows = text.lines().skip_while(|line| !line.starts_with(FIRST)).map_while(cells);
    let head = rows.next().context("docs/reach.md has no table")?;
    let mut table = Table::new();
    for row in rows.skip(1) {
        ensure!(row.len() == head.len(), "docs/reach.md: {row:?} has not as many cells as the first row");
        let answers = head[1..].iter().cloned().zip(row[1..].iter().cloned()).collect();
        table.insert(row[0].clone(), answers);
    }
    let known: Vec<&str> = CLIENTS.iter().map(|client| client.name).collect();
    let stray: Vec<&String> = table.keys().filter(|name| !known.contains(&name.as_str())).collect();
    ensure!(
        stray.is_empty() && table.len() == known.len(),
        "docs/reach.md and the clients differ: {stray:?}"
    );
    Ok(table)
}

fn cells(line: &str) -> Option<Vec<String>> {
    let inner = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    Some(inner.split('|').map(|cell| cell.trim().to_owned()).collect())
}

/// The cells of `found` that are not as `expected` has them, one sentence each.
pub fn differences(expected: &Table, found: &Table) -> Vec<String> {
    let mut told = Vec::new();
    for (client, answers) in found {
        for (method, answer) in answers {
            let said = expected.get(client).and_then(|row| row.get(method)).map_or("nothing", String::as_str);
            if said != answer {
                told.push(format!("{client}, {method}: {answer}, and {PAGE} says {said}"));
            }
        }
    }
    told
}

/// Writes `found` over the page's table; cells that were not found keep what they say.
pub fn write(found: &Table) -> Result<()> {
    let path = setup::root().join(PAGE);
    let text = std::fs::read_to_string(&path).context(PAGE)?;
    let old = of_page().unwrap_or_default();
    let head: String = METHODS.iter().fold(FIRST.to_owned(), |line, (_, name)| format!("{line} {name} |"));
    let mut table = format!("{head}\n|---|{}\n", "---|".repeat(METHODS.len()));
    for client in CLIENTS {
        let _ = write!(table, "| {} |", client.name);
        for (_, method) in METHODS {
            let cell = [found, &old].into_iter().find_map(|it| it.get(client.name)?.get(method));
            let _ = write!(table, " {} |", cell.map_or("?", String::as_str));
        }
        table.push('\n');
    }
    let kept = |line: &&str| !line.starts_with('|');
    let before: String =
        text.lines().take_while(|line| !line.starts_with(FIRST)).map(|line| format!("{line}\n")).collect();
    let after: String = text
        .lines()
        .skip_while(|line| !line.starts_with(FIRST))
        .skip_while(|line| !kept(line))
        .map(|line| format!("{line}\n"))
        .collect();
    Ok(std::fs::write(path, format!("{before}{table}{after}"))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_that_changed_is_told() {
        let table = |answer: &str| from_lines(&format!("C\tpath\t{answer}\n")).unwrap();
        assert!(differences(&table("yes"), &table("yes")).is_empty());
        assert_eq!(differences(&table("yes"), &table("no")), ["C, path: no, and docs/reach.md says yes"]);
    }

    #[test]
    fn the_page_has_an_answer_in_every_cell() {
        for (client, row) in of_page().unwrap() {
            assert_eq!(row.len(), METHODS.len(), "{client}");
            for (method, answer) in row {
                let is_known = ["yes", "no", "forced", "refused"].contains(&answer.as_str());
                assert!(is_known, "{client}, {method}: {answer}");
            }
        }
    }
}
