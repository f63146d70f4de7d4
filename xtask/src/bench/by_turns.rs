//! Benches of a library of ours beside others in one process of Python: benches/by_turns.py and a program each. It prints a line for each
//! row, `name|ours|theirs|…`, in seconds.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::{Ours, section};
use crate::setup;

/// What is measured.
#[derive(clap::Args)]
pub struct What {
    #[command(flatten)]
    pub ours: Ours,
    /// Only rows whose name has all of these words; docs/performance.md is left as it is.
    words: Vec<String>,
}

impl What {
    /// The program in `benches`, on our objects and on what else it is told.
    pub fn program(&self, path: &str, lib: &Path) -> Result<Command> {
        let benches = setup::root().join("benches");
        let mut command = Command::new(setup::venv()?);
        command.arg(benches.join(path)).env("PYTHONPATH", benches);
        command.env("LD_PRELOAD", format!("{0}/libcuda.so.1:{0}/libcudart.so.13", lib.display()));
        command.env("LD_LIBRARY_PATH", lib).env("CUDAWAY_DEVICE", "cpu");
        Ok(command)
    }

    /// What it says, of ours and so many others.
    pub fn rows<const N: usize>(&self, mut program: Command) -> Result<Vec<Row<N>>> {
        let out = program.args(&self.words).output().context("cannot start Python")?;
        ensure!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let rows = String::from_utf8_lossy(&out.stdout).lines().map(Row::read).collect::<Result<Vec<_>>>()?;
        ensure!(!rows.is_empty(), "no row's name has all of {:?}", self.words);
        Ok(rows)
    }

    /// Prints a table, and keeps it if it is the whole one.
    pub fn tell(&self, name: &str, text: &str) -> Result<()> {
        println!("{text}");
        if self.ours.are_given() || !self.words.is_empty() { Ok(()) } else { section::write(name, text) }
    }
}

/// A line of the program, in seconds.
#[derive(Debug, PartialEq)]
pub struct Row<const N: usize> {
    pub name: String,
    pub ours: f64,
    /// 0 where another has no such thing.
    pub theirs: [f64; N],
}

impl<const N: usize> Row<N> {
    pub fn read(line: &str) -> Result<Row<N>> {
        let mut parts = line.split('|');
        let name = parts.next().unwrap_or_default().to_owned();
        let seconds = parts.map(str::parse).collect::<Result<Vec<f64>, _>>()?;
        let read = seconds.split_first().and_then(|(ours, theirs)| Some((*ours, theirs.try_into().ok()?)));
        let (ours, theirs) = read.with_context(|| format!("the program says {line:?}"))?;
        Ok(Row { name, ours, theirs })
    }

    /// Our speed beside that of the fastest other.
    pub fn ratio(&self) -> f64 {
        let there = self.theirs.iter().copied().filter(|seconds| *seconds > 0.0);
        there.fold(f64::INFINITY, f64::min) / self.ours
    }
}

/// The geometric mean of rows' ratios.
pub fn mean<'a, const N: usize>(rows: impl IntoIterator<Item = &'a Row<N>>) -> f64 {
    let (sum, count) = rows.into_iter().fold((0.0, 0.0), |(sum, n), row| (sum + row.ratio().ln(), n + 1.0));
    f64::exp(sum / count)
}

/// The mean of all rows beside a goal, and that of each kind that there is: what rows begin with.
pub fn means<const N: usize>(rows: &[Row<N>], goal: f64, kinds: &[&str]) -> String {
    let all = mean(rows);
    let met = if all >= goal { "met" } else { "not met" };
    let mut text = format!("{all:.2} (goal {goal}: {met}); by kind");
    for kind in kinds {
        let own = || rows.iter().filter(|row| row.name.starts_with(&format!("{kind} ")));
        if own().next().is_some() {
            let _ = write!(text, " {kind} {:.2},", mean(own()));
        }
    }
    text.pop();
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_as_many_numbers_as_there_are_libraries() {
        assert!(Row::<1>::read("SpMV|0.002|0.001|0.004").is_err());
        assert!(Row::<2>::read("SpMV|0.002|0.001").is_err());
        assert!(Row::<1>::read("SpMV|0.002|soon").is_err());
    }
}
