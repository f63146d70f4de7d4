//! `cargo xtask bench preload`: what the objects that `cudaway run` preloads cost programs that never ask for CUDA: the start of
//! `true` with each of them, and of some seventy ordinary programs with all of them.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use super::section;
use crate::setup;
use crate::test::harmless::{self, Front};

#[derive(clap::Args)]
pub struct Args {
    /// Starts of `true` of each kind, by turns.
    #[arg(long, default_value_t = 1000)]
    starts: usize,
    /// Starts of each ordinary program, with ours and without, by turns.
    #[arg(long, default_value_t = 100)]
    starts_of_programs: usize,
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
    let lib = super::objects(args.lib.as_deref())?;
    let front = Front::of_run(&lib)?;
    let kind = |name: &str, preload| Times { name: name.to_owned(), preload, took: Vec::new() };
    let mut kinds = vec![kind("nothing", None)];
    // The object that claims names needs all others.
    let (claims, libraries): (Vec<_>, Vec<_>) =
        front.preload.iter().cloned().partition(|path| path.ends_with("/libcudaway_claims.so"));
    for path in &libraries {
        let name = path.strip_prefix(&*lib.to_string_lossy()).unwrap_or(path).trim_start_matches('/');
        kinds.push(kind(&format!("`{name}`"), Some(path.clone())));
    }
    kinds.push(kind("all of these", Some(libraries.join(":"))));
    kinds.push(kind("all, and the claimed names", Some([libraries, claims].concat().join(":"))));
    let hooks = lib.join("libcudaway_hooks.so");
    kinds.push(kind("`libcudaway_hooks.so`, only if asked for", Some(hooks.display().to_string())));
    // By turns, so that what else the machine does falls on all alike.
    for _ in 0..args.starts {
        for kind in &mut kinds {
            let mut command = Command::new("/bin/true");
            command.env_remove("LD_LIBRARY_PATH").env_remove("LD_PRELOAD");
            if let Some(preload) = &kind.preload {
                command.env("LD_PRELOAD", preload);
            }
            let (status, took) = start(&mut command)?;
            ensure!(status.success(), "{command:?}: {status}");
            kind.took.push(took);
        }
    }
    let mut text = table(&mut kinds);
    let programs = harmless::PROGRAMS.iter().map(|line| line.split(' ').collect::<Vec<_>>());
    let programs = programs.filter(|words| setup::which(words[0]).is_some());
    let costs = programs.map(|words| cost(&front, &words, args.starts_of_programs));
    text.push_str(&programs_table(costs.collect::<Result<_>>()?));
    println!("{text}");
    if args.lib.is_some() { Ok(()) } else { section::write("preload", &text) }
}

fn start(command: &mut Command) -> Result<(ExitStatus, Duration)> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let began = Instant::now();
    let status = command.status().with_context(|| format!("{command:?}"))?;
    Ok((status, began.elapsed()))
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

/// What all of ours cost one program.
struct Cost {
    line: String,
    bare: Duration,
    with_ours: Duration,
}

impl Cost {
    fn more_us(&self) -> u128 {
        self.with_ours.saturating_sub(self.bare).as_micros()
    }
}

/// The fastest starts of the program, with all of ours and without.
fn cost(front: &Front, words: &[&str], starts: usize) -> Result<Cost> {
    let (mut bare, mut with_ours) = (Duration::MAX, Duration::MAX);
    for _ in 0..starts {
        let (before, took) = start(&mut harmless::command(None, words))?;
        bare = bare.min(took);
        let (after, took) = start(&mut harmless::command(Some(front), words))?;
        with_ours = with_ours.min(took);
        // Some of the programs compare files that differ.
        ensure!(before == after, "{words:?}: {before}, and with ours {after}");
    }
    Ok(Cost { line: words.join(" "), bare, with_ours })
}

/// How many stay below 1 ms, and those that take most.
fn programs_table(mut costs: Vec<Cost>) -> String {
    const GOAL_US: u128 = 1000;
    const SHOWN: usize = 12;
    costs.sort_by_key(|cost| std::cmp::Reverse(cost.more_us()));
    let below = costs.iter().filter(|cost| cost.more_us() < GOAL_US).count();
    let median = costs.get(costs.len() / 2).map_or(0, Cost::more_us);
    let mut text = format!(
        "\nOf {} ordinary programs with all of them, {below} take less than {GOAL_US} µs more; the median is {median} µs. Those that \
         take most:\n\n| program | fastest start | with all of ours | more |\n|---|---|---|---|\n",
        costs.len()
    );
    for cost in costs.iter().take(SHOWN) {
        let (bare, with_ours) = (cost.bare.as_micros(), cost.with_ours.as_micros());
        let _ = writeln!(text, "| `{}` | {bare} µs | {with_ours} µs | {} µs |", cost.line, cost.more_us());
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

    #[test]
    fn programs_are_told_by_what_they_cost_most_first() {
        let cost = |line: &str, bare, with_ours| Cost {
            line: line.to_owned(),
            bare: Duration::from_micros(bare),
            with_ours: Duration::from_micros(with_ours),
        };
        let text = programs_table(vec![cost("a", 500, 1400), cost("b", 3000, 4001), cost("c", 90, 80)]);
        assert!(text.contains(
            "Of 3 ordinary programs with all of them, 2 take less than 1000 µs more; the median is 900 µs"
        ));
        assert!(text.ends_with("| `b` | 3000 µs | 4001 µs | 1001 µs |\n| `a` | 500 µs | 1400 µs | 900 µs |\n| `c` | 90 µs | 80 µs | 0 µs |\n"), "{text}");
    }
}
