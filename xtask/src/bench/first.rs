//! `cargo xtask bench first`: what a program waits for when the cache is empty. Kernels by themselves, by CPU time for each 1,000
//! PTX instructions, and whole programs cold and warm.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};
use testkit::Installed;

use super::section;
use crate::samples::processor;
use crate::setup;
use crate::test::corpus;

#[derive(clap::Args)]
pub struct Args {
    /// Runs of each program of each kind, by turns.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Measure the objects in this folder; docs/performance.md is left as it is.
    #[arg(long)]
    lib: Option<PathBuf>,
    /// More PTX files whose kernels are measured; docs/performance.md is left as it is.
    ptx: Vec<PathBuf>,
}

/// CPU until baseline code runs, in milliseconds for 1,000 PTX instructions; kernels below `SHORT` instructions have a price of their own.
const GOAL_MS_PER_1000: f64 = 40.0;
const SHORT: f64 = 100.0;
/// The same for any one kernel.
const GOAL_MS: f64 = 400.0;
/// Of LLVM for the best code of a kernel.
const GOAL_BEST_MS: f64 = 5000.0;
/// Seconds that a cold run may take beyond a warm one.
const GOAL_COLD_S: f64 = 2.5;

/// What examples/cold says of a kernel.
struct Kernel {
    name: String,
    instructions: f64,
    /// CPU until its baseline code can be called.
    first_ms: f64,
    setting: String,
    /// CPU of its best code: the text, and LLVM.
    best_ms: f64,
    llvm_ms: f64,
}

impl Kernel {
    fn of(line: &str) -> Option<Kernel> {
        let fields: Vec<&str> = line.split('\t').collect();
        let [n, lower, text, llvm, load, _, setting, best_text, best_llvm, _, effort, name] = fields[..]
        else {
            return None;
        };
        let sum = |parts: &[&str]| parts.iter().map(|it| it.parse::<f64>()).sum::<Result<f64, _>>().ok();
        Some(Kernel {
            name: name.to_owned(),
            instructions: sum(&[n])?.max(1.0),
            first_ms: sum(&[lower, text, llvm, load])?,
            setting: if effort == "Best" { setting.to_owned() } else { format!("{setting}, for less") },
            best_ms: sum(&[best_text, best_llvm])?,
            llvm_ms: sum(&[best_llvm])?,
        })
    }

    fn ms_per_1000(&self) -> f64 {
        self.first_ms / self.instructions * 1e3
    }
}

pub fn run(args: &Args) -> Result<()> {
    let programs = corpus::built(&["thrust", "cub"])?;
    let folder = testkit::temporary()?;
    let mut files = args.ptx.clone();
    for program in &programs {
        files.extend(corpus::ptx_of(program, &folder.path().join(name_of(program)))?);
    }
    let mut text = kernels_table(&kernels(&files)?);
    let lib = super::objects(args.lib.as_deref())?;
    let installed = Installed::at(lib);
    text.push_str(&programs_table(&installed, &programs, args.rounds)?);
    println!("{text}");
    if args.lib.is_some() || !args.ptx.is_empty() { Ok(()) } else { section::write("first", &text) }
}

fn name_of(program: &Path) -> String {
    program.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn kernels(files: &[PathBuf]) -> Result<Vec<Kernel>> {
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(setup::root());
    command.args(["run", "--quiet", "--release", "-p", "hip-cpu", "--example", "cold", "--"]).args(files);
    let out = command.output().with_context(|| format!("{command:?}"))?;
    ensure!(out.status.success(), "{command:?}: {}", String::from_utf8_lossy(&out.stderr));
    let kernels: Vec<Kernel> = String::from_utf8_lossy(&out.stdout).lines().filter_map(Kernel::of).collect();
    if kernels.is_empty() {
        bail!("no kernel was measured: {}", String::from_utf8_lossy(&out.stderr));
    }
    Ok(kernels)
}

fn verdict(is_met: bool) -> &'static str {
    if is_met { "met" } else { "missed" }
}

fn kernels_table(kernels: &[Kernel]) -> String {
    let (long, short): (Vec<&Kernel>, Vec<&Kernel>) = kernels.iter().partition(|it| it.instructions >= SHORT);
    let most = |of: &[&Kernel], value: fn(&Kernel) -> f64| of.iter().map(|it| value(it)).fold(0.0, f64::max);
    let all: Vec<&Kernel> = kernels.iter().collect();
    let (n, slowest) = (kernels.len(), most(&long, Kernel::ms_per_1000));
    let (first, llvm) = (most(&all, |it| it.first_ms), most(&all, |it| it.llvm_ms));
    let mut sorted: Vec<f64> = long.iter().map(|it| it.ms_per_1000()).collect();
    sorted.sort_by(f64::total_cmp);
    let median = sorted.get(sorted.len() / 2).copied().unwrap_or_default();
    let mut text = format!(
        "{n} kernels of CUB and Thrust. CPU from PTX to baseline code that can be called:\n\n\
         | | measured | goal | |\n|---|--:|--:|---|\n\
         | kernels of {SHORT} instructions and more ({}): most, ms for 1,000 | {slowest:.1} | {GOAL_MS_PER_1000} | {} |\n\
         | the same, median | {median:.1} | | |\n\
         | shorter kernels ({}): most, ms each | {:.1} | | |\n\
         | any kernel: most, ms | {first:.0} | {GOAL_MS} | {} |\n\
         | LLVM for the best code of any kernel: most, ms of CPU | {llvm:.0} | {GOAL_BEST_MS} | {} |\n\n\
         | kernel | PTX instructions | baseline, ms | for 1,000 | best code in | its text and LLVM, ms |\n|---|--:|--:|--:|---|--:|\n",
        long.len(),
        verdict(slowest <= GOAL_MS_PER_1000),
        short.len(),
        most(&short, |it| it.first_ms),
        verdict(first <= GOAL_MS),
        verdict(llvm <= GOAL_BEST_MS),
    );
    let mut longest = all;
    longest.sort_by(|a, b| b.best_ms.total_cmp(&a.best_ms));
    for kernel in longest.iter().take(12) {
        let Kernel { name, instructions, first_ms, setting, best_ms, .. } = kernel;
        let by = kernel.ms_per_1000();
        let _ = writeln!(
            text,
            "| `{}` | {instructions} | {first_ms:.1} | {by:.1} | {setting} | {best_ms:.0} |",
            short_name(name)
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

/// Seconds on the clock, and of CPU.
#[derive(Clone, Copy)]
struct Took {
    wall: f64,
    cpu: f64,
}

impl Took {
    const LONG: Took = Took { wall: f64::MAX, cpu: f64::MAX };

    fn min(self, other: Took) -> Took {
        Took { wall: self.wall.min(other.wall), cpu: self.cpu.min(other.cpu) }
    }
}

fn once(installed: &Installed, program: &Path, cache: &Path, variables: &[(&str, &str)]) -> Result<Took> {
    let run = installed.preloaded(program).env("CUDAWAY_CACHE_DIR", cache);
    let run = variables.iter().fold(run, |run, (name, value)| run.env(name, value));
    let (start, before) = (Instant::now(), processor()?);
    let ended = run.run()?;
    let took = Took { wall: start.elapsed().as_secs_f64(), cpu: processor()? - before };
    ensure!(ended.passed(), "{}", ended.describe());
    Ok(took)
}

fn programs_table(installed: &Installed, programs: &[PathBuf], rounds: usize) -> Result<String> {
    let mut text = format!(
        "\nWhole programs, fastest of {rounds} runs by turns, seconds on the clock and of CPU: warm with what a run kept that waited for all code; \
         cold with an empty cache; and cold with launches that wait for the best code (`CUDAWAY_CPU_TIER=best`).\n\n\
         | program | warm | cold | cold, best code only | cold beyond warm | goal | |\n|---|--:|--:|--:|--:|--:|---|\n"
    );
    for program in programs {
        let kept = testkit::temporary()?;
        once(installed, program, kept.path(), &[("CUDAWAY_EXIT_WAIT", "300")])?;
        let [mut warm, mut cold, mut best] = [Took::LONG; 3];
        for _ in 0..rounds {
            let folders = [testkit::temporary()?, testkit::temporary()?];
            cold = cold.min(once(installed, program, folders[0].path(), &[])?);
            best = best.min(once(installed, program, folders[1].path(), &[("CUDAWAY_CPU_TIER", "best")])?);
            warm = warm.min(once(installed, program, kept.path(), &[])?);
        }
        let more = cold.wall - warm.wall;
        let shown = |took: Took| format!("{:.2}, {:.2}", took.wall, took.cpu);
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {more:.2} | {GOAL_COLD_S} | {} |",
            name_of(program),
            shown(warm),
            shown(cold),
            shown(best),
            verdict(more <= GOAL_COLD_S)
        );
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_cold_is_read_and_one_without_best_code_is_not() {
        let line = "200\t1.0\t0.5\t3.0\t0.5\t800\tS\t4.0\t100.0\t2000\tBest\t_Z1kv";
        let kernel = Kernel::of(line).unwrap();
        assert_eq!((kernel.ms_per_1000(), kernel.best_ms, &*kernel.name), (25.0, 104.0, "_Z1kv"));
        assert!(Kernel::of("200\t1.0\t0.5\t3.0\t0.5\t800\t_Z1kv").is_none());
    }

    #[test]
    fn kernels_are_called_by_what_they_are() {
        let name = "_ZN3cub6detail10radix_sort29DeviceRadixSortOnesweepKernelINS2_26policy_selectorE";
        assert_eq!(short_name(name), "DeviceRadixSortOnesweep");
        assert_eq!(short_name("_Z6vecaddPf"), "_Z6vecaddPf");
    }
}
