//! `cargo xtask bench preload`: what our objects cost a program that never asks for CUDA: the start of `true`.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use super::section;
use crate::setup;
use crate::test::harmless;

#[derive(clap::Args)]
pub struct Args {
    /// Starts of each kind, by turns.
    #[arg(long, default_value_t = 1000)]
    starts: usize,
    /// Measure the objects in this folder; docs/performance.md is left as it is.
    #[arg(long)]
    lib: Option<PathBuf>,
}

/// Of one kind of start.
struct Times {
    name: String,
    /// LD_PRELOAD
    preload: Option<String>,
    took: Vec<Duration>,
}

pub fn run(args: &Args) -> Result<()> {
    let lib = args.lib.clone().map_or_else(|| Ok(setup::lib_dir()), std::path::absolute)?;
    let all = harmless::preload(&lib);
    ensure!(!all.is_empty(), "nothing of ours is in {}", lib.display());
    let kind = |name: &str, preload| Times { name: name.to_owned(), preload, took: Vec::new() };
    let mut kinds = vec![kind("nothing", None)];
    for path in all.split(':') {
        let name = path.rsplit('/').next().unwrap_or(path);
        kinds.push(kind(&format!("`{name}`"), Some(path.to_owned())));
    }
    kinds.push(kind("all of them", Some(all.clone())));
    // By turns, so that what else the machine does falls on all alike.
    for _ in 0..args.starts {
        for kind in &mut kinds {
            kind.took.push(start(kind.preload.as_deref())?);
        }
    }
    let text = table(&mut kinds);
    println!("{text}");
    if args.lib.is_some() { Ok(()) } else { section::write("preload", &text) }
}

fn start(preload: Option<&str>) -> Result<Duration> {
    let mut command = Command::new("/bin/true");
    command.env_remove("LD_LIBRARY_PATH").env_remove("LD_PRELOAD").stdin(Stdio::null());
    if let Some(preload) = preload {
        command.env("LD_PRELOAD", preload);
    }
    let began = Instant::now();
    let status = command.status().context("/bin/true")?;
    ensure!(status.success(), "/bin/true: {status}");
    Ok(began.elapsed())
}

fn table(kinds: &mut [Times]) -> String {
    let mut text =
        "| preloaded | fastest start | median | fastest, beyond nothing |\n|---|---|---|---|\n".to_owned();
    let mut bare = Duration::ZERO;
    for (index, kind) in kinds.iter_mut().enumerate() {
        kind.took.sort_unstable();
        let (fastest, median) = (kind.took[0], kind.took[kind.took.len() / 2]);
        if index == 0 {
            bare = fastest;
        }
        let us = |time: Duration| time.as_micros();
        let more = us(fastest.saturating_sub(bare));
        let _ = writeln!(text, "| {} | {} µs | {} µs | {more} µs |", kind.name, us(fastest), us(median));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beyond_nothing_is_told_of_the_fastest() {
        let kind = |name: &str, us: [u64; 3]| Times {
            name: name.to_owned(),
            preload: None,
            took: us.map(Duration::from_micros).to_vec(),
        };
        let text = table(&mut [kind("nothing", [9, 5, 7]), kind("x", [30, 12, 20])]);
        assert!(text.ends_with("| nothing | 5 µs | 7 µs | 0 µs |\n| x | 12 µs | 20 µs | 7 µs |\n"), "{text}");
    }
}
