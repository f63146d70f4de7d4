//! Each kernel of a corpus from its PTX to code that can be called, by hip-cpu's example `cold`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};

use crate::setup;

/// CPU until baseline code runs, in milliseconds for 1,000 PTX instructions; kernels below `SHORT` instructions have a price of their own.
const GOAL_MS_PER_1000: f64 = 40.0;
const SHORT: f64 = 100.0;
/// The same for any one kernel.
const GOAL_MS: f64 = 400.0;
/// Of LLVM for the best code of a kernel.
const GOAL_BEST_MS: f64 = 5000.0;
/// Of the compiling process, at its peak.
const GOAL_MB: f64 = 600.0;

/// What `cold` says of a kernel.
#[derive(Clone)]
pub struct Kernel {
    name: String,
    instructions: f64,
    /// CPU until its baseline code can be called.
    first_ms: f64,
    peak_mb: f64,
    best: Option<Best>,
}

#[derive(Clone)]
struct Best {
    setting: String,
    /// CPU for its text and by LLVM.
    text_ms: f64,
    llvm_ms: f64,
}

impl Kernel {
    fn of(line: &str) -> Option<Kernel> {
        let fields: Vec<&str> = line.split('\t').collect();
        let (first, best) = match &fields[..] {
            [first @ .., _, _] if first.len() == 6 => (first, None),
            [first @ .., setting, text, llvm, _, effort, _, _] if first.len() == 6 => {
                let for_less = if *effort == "Best" { "" } else { ", for less" };
                (first, Some((format!("{setting}{for_less}"), *text, *llvm)))
            }
            _ => return None,
        };
        let number = |text: &str| text.parse::<f64>().ok();
        let [n, lower, text, llvm, load, _] = first else { return None };
        let best = match best {
            None => None,
            Some((setting, text, llvm)) => {
                Some(Best { setting, text_ms: number(text)?, llvm_ms: number(llvm)? })
            }
        };
        Some(Kernel {
            name: fields.last()?.to_string(),
            instructions: number(n)?.max(1.0),
            first_ms: number(lower)? + number(text)? + number(llvm)? + number(load)?,
            peak_mb: number(fields[fields.len() - 2])?,
            best,
        })
    }

    fn ms_per_1000(&self) -> f64 {
        self.first_ms / self.instructions * 1e3
    }

    fn best_ms(&self) -> f64 {
        self.best.as_ref().map_or(0.0, |it| it.text_ms + it.llvm_ms)
    }

    fn llvm_ms(&self) -> f64 {
        self.best.as_ref().map_or(0.0, |it| it.llvm_ms)
    }
}

/// Baseline code of every kernel, and the best code of `n_best`, by a compiler of that profile.
pub fn measured(files: &[PathBuf], n_best: usize, profile: &str) -> Result<Vec<Kernel>> {
    let mut kernels = cold(profile, files, &["--baseline"])?;
    ensure!(!kernels.is_empty(), "no kernel was measured");
    let folder = testkit::temporary()?;
    let list = folder.path().join("names");
    fs::write(&list, chosen(&kernels, n_best).join("\n"))?;
    let named = cold(profile, files, &["--named", &list.to_string_lossy()])?;
    let mut named: BTreeMap<&str, &Kernel> = named.iter().map(|it| (&*it.name, it)).collect();
    for kernel in &mut kernels {
        if let Some(best) = named.remove(&*kernel.name) {
            kernel.best = best.best.clone();
            kernel.peak_mb = kernel.peak_mb.max(best.peak_mb);
        }
    }
    Ok(kernels)
}

/// Half of them the longest, the others at equal distances in the order of their lengths.
fn chosen(kernels: &[Kernel], most: usize) -> Vec<&str> {
    let mut sorted: Vec<&Kernel> = kernels.iter().collect();
    sorted.sort_by(|a, b| b.instructions.total_cmp(&a.instructions));
    let (longest, rest) = sorted.split_at(sorted.len().min(most.div_ceil(2)));
    let step = rest.len().div_ceil((most - most.div_ceil(2)).max(1)).max(1);
    longest.iter().chain(rest.iter().step_by(step)).map(|it| &*it.name).collect()
}

fn cold(profile: &str, files: &[PathBuf], options: &[&str]) -> Result<Vec<Kernel>> {
    let mut kernels = vec![];
    // A command line has its bounds.
    for part in files.chunks(500) {
        let mut command = Command::new(env!("CARGO"));
        command.current_dir(setup::root());
        command.args(["run", "--quiet", "--profile", profile, "-p", "hip-cpu", "--example", "cold", "--"]);
        let out = command.args(options).args(part).output().with_context(|| format!("{command:?}"))?;
        if !out.status.success() {
            bail!("{command:?}: {}", String::from_utf8_lossy(&out.stderr));
        }
        kernels.extend(String::from_utf8_lossy(&out.stdout).lines().filter_map(Kernel::of));
    }
    Ok(kernels)
}

fn most(of: &[Kernel], value: fn(&Kernel) -> f64) -> f64 {
    of.iter().map(value).fold(0.0, f64::max)
}

/// A number, which is bold where it misses its goal.
fn held(value: f64, goal: f64, digits: usize) -> String {
    if value <= goal { format!("{value:.digits$}") } else { format!("**{value:.digits$}**") }
}

fn over(of: &[Kernel], value: fn(&Kernel) -> f64, goal: f64) -> usize {
    of.iter().filter(|it| value(it) > goal).count()
}

/// A row for each corpus; one that could not be had says why.
pub fn table(corpora: &[(&str, Result<Vec<Kernel>>)]) -> String {
    let mut text = format!(
        "Milliseconds of CPU from PTX to baseline code that can be called, for 1,000 instructions of kernels of {SHORT} instructions and more and for \
         any kernel; of LLVM for the best code of as many kernels as the table says, half of them the longest; and the peak of the compiling process's \
         memory. What misses its goal is bold, with the number of kernels that miss it.\n\n\
         | corpus | kernels | most for 1,000 | median | most for any | best code of | LLVM, most | peak, MB | |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|---|\n\
         | goal | | {GOAL_MS_PER_1000} | | {GOAL_MS} | | {GOAL_BEST_MS} | {GOAL_MB} | |\n"
    );
    let mut all = vec![];
    for (name, kernels) in corpora {
        match kernels {
            Ok(kernels) => {
                let _ = writeln!(text, "| {name} | {}", row(kernels));
                all.extend(kernels.iter().cloned());
            }
            Err(error) => {
                let _ = writeln!(text, "| {name} | not measured: {} | | | | | | | |", first_line(error));
            }
        }
    }
    text + &longest(&all)
}

fn first_line(error: &anyhow::Error) -> String {
    format!("{error:#}").lines().next().unwrap_or_default().replace('|', "/")
}

fn row(kernels: &[Kernel]) -> String {
    let long: Vec<Kernel> = kernels.iter().filter(|it| it.instructions >= SHORT).cloned().collect();
    let mut sorted: Vec<f64> = long.iter().map(Kernel::ms_per_1000).collect();
    sorted.sort_by(f64::total_cmp);
    let median = sorted.get(sorted.len() / 2).copied().unwrap_or_default();
    let missed = [
        over(&long, Kernel::ms_per_1000, GOAL_MS_PER_1000),
        over(kernels, |it| it.first_ms, GOAL_MS),
        over(kernels, Kernel::llvm_ms, GOAL_BEST_MS),
        over(kernels, |it| it.peak_mb, GOAL_MB),
    ];
    let verdict = if missed.iter().all(|it| *it == 0) {
        "met".to_owned()
    } else {
        format!("missed by {}", missed.map(|it| it.to_string()).join(", "))
    };
    format!(
        "{} | {} | {median:.1} | {} | {} | {} | {} | {verdict} |",
        kernels.len(),
        held(most(&long, Kernel::ms_per_1000), GOAL_MS_PER_1000, 1),
        held(most(kernels, |it| it.first_ms), GOAL_MS, 0),
        kernels.iter().filter(|it| it.best.is_some()).count(),
        held(most(kernels, Kernel::llvm_ms), GOAL_BEST_MS, 0),
        held(most(kernels, |it| it.peak_mb), GOAL_MB, 0),
    )
}

/// The kernels whose best code takes longest.
fn longest(all: &[Kernel]) -> String {
    let mut text = "\n| kernel | PTX instructions | baseline, ms | for 1,000 | best code in | its text and LLVM, ms | peak, MB |\n\
                    |---|--:|--:|--:|---|--:|--:|\n"
        .to_owned();
    let mut longest: Vec<&Kernel> = all.iter().collect();
    longest.sort_by(|a, b| b.best_ms().total_cmp(&a.best_ms()));
    for kernel in longest.iter().take(12) {
        let Kernel { name, instructions, first_ms, peak_mb, best } = kernel;
        let setting = best.as_ref().map_or("", |it| &it.setting);
        let _ = writeln!(
            text,
            "| `{}` | {instructions} | {first_ms:.1} | {:.1} | {setting} | {:.0} | {peak_mb:.0} |",
            short_name(name),
            kernel.ms_per_1000(),
            kernel.best_ms(),
        );
    }
    text
}

/// What CUB calls the kernel, where a mangled name has that, else the name's beginning.
fn short_name(name: &str) -> String {
    let device = name.find("Device").map(|at| &name[at..]);
    match device.and_then(|rest| rest.split_once("Kernel")) {
        Some((word, _)) if word.chars().all(char::is_alphanumeric) => word.to_owned(),
        _ => name.chars().take(40).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_cold_is_read_with_and_without_best_code() {
        let line = "200\t1.0\t0.5\t3.0\t0.5\t800\tS\t4.0\t100.0\t2000\tBest\t90\t_Z1kv";
        let kernel = Kernel::of(line).unwrap();
        assert_eq!((kernel.ms_per_1000(), kernel.best_ms(), &*kernel.name), (25.0, 104.0, "_Z1kv"));
        assert_eq!(kernel.peak_mb, 90.0);
        let kernel = Kernel::of("200\t1.0\t0.5\t3.0\t0.5\t800\t91\t_Z1kv").unwrap();
        assert_eq!((kernel.first_ms, kernel.peak_mb, kernel.best.is_none()), (5.0, 91.0, true));
        assert!(Kernel::of("200\t1.0\t0.5\t3.0\t_Z1kv").is_none());
    }

    #[test]
    fn a_corpus_that_misses_a_goal_says_by_how_many_kernels() {
        let lines =
            ["1000\t1\t1\t37\t0\t800\t90\ta", "1000\t1\t1\t47\t1\t800\t700\tb", "1000\t1\t1\t1\t1\t9\t80\tc"];
        let kernels: Vec<Kernel> = lines.iter().map(|it| Kernel::of(it).unwrap()).collect();
        assert_eq!(row(&kernels), "3 | **50.0** | 39.0 | 50 | 0 | 0 | **700** | missed by 1, 0, 0, 1 |");
        assert!(row(&kernels[..1]).ends_with("| met |"));
    }

    #[test]
    fn the_longest_get_their_best_code_and_some_of_the_others() {
        let kernel = |n: usize| Kernel::of(&format!("{n}\t1\t1\t1\t0\t800\t90\tk{n}")).unwrap();
        let kernels: Vec<Kernel> = (1..=100).map(kernel).collect();
        let names = chosen(&kernels, 10);
        assert_eq!(names[..5], ["k100", "k99", "k98", "k97", "k96"]);
        assert_eq!(names.len(), 10);
        assert_eq!(chosen(&kernels[..3], 10).len(), 3);
    }

    #[test]
    fn kernels_are_called_by_what_they_are() {
        let name = "_ZN3cub6detail10radix_sort29DeviceRadixSortOnesweepKernelINS2_26policy_selectorE";
        assert_eq!(short_name(name), "DeviceRadixSortOnesweep");
        assert_eq!(short_name("_Z6vecaddPf"), "_Z6vecaddPf");
    }
}
