//! `cargo xtask bench thrust`: Thrust's algorithms from one source, by nvcc on our CPU device and by g++ with Thrust's own OpenMP and TBB
//! backends, by turns. Every result is checked by the program itself.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use testkit::{Installed, Run};

use super::{Ours, section};
use crate::setup;
use crate::test::examples::quiet;
use crate::toolchain::Release;

#[derive(clap::Args)]
pub struct Args {
    /// Only rows whose name has this; docs/performance.md is left as it is.
    #[arg(long)]
    only: Option<String>,
    /// Runs of each program, by turns.
    #[arg(long, default_value_t = 2)]
    rounds: usize,
    #[command(flatten)]
    ours: Ours,
}

/// Rows by name: milliseconds on the clock, and of CPU.
type Times = BTreeMap<String, (f64, f64)>;

const GOAL_ANY: f64 = 1.0;
const GOAL_MEAN: f64 = 1.5;

pub fn run(args: &Args) -> Result<()> {
    let out = setup::root().join("target/thrust-bench");
    fs::create_dir_all(&out)?;
    let programs = built(&out)?;
    let installed = Installed::at(args.ours.objects()?);
    let cache = testkit::temporary()?;
    let names: Vec<String> = times(ours(&installed, &programs[0], cache.path(), "300"), args)?.0;
    let mut found: [Times; 3] = Default::default();
    for _ in 0..args.rounds {
        for (nth, program) in programs.iter().enumerate() {
            let run = if nth == 0 { ours(&installed, program, cache.path(), "0") } else { Run::new(program) };
            for (name, took) in times(run, args)?.1 {
                let best = found[nth].entry(name).or_insert((f64::MAX, f64::MAX));
                *best = (best.0.min(took.0), best.1.min(took.1));
            }
        }
    }
    let text = table(&names, &found, args.ours.built())?;
    println!("{text}");
    let is_whole = args.only.is_none() && !args.ours.are_given();
    if is_whole { section::write_by_processor("thrust", &text) } else { Ok(()) }
}

/// The program for us, for OpenMP and for TBB.
fn built(out: &Path) -> Result<Vec<PathBuf>> {
    setup::packages(&[("libtbb-dev", "Thrust for the CPU")])?;
    let nvcc = Release::V13_5.get()?;
    let cccl = nvcc.dir.join("include/cccl");
    let source = setup::root().join("benches/thrust/algorithms.cu");
    let ways: [(&str, &[&str]); 3] = [
        ("cuda", &[]),
        ("omp", &["-DTHRUST_DEVICE_SYSTEM=THRUST_DEVICE_SYSTEM_OMP", "-fopenmp"]),
        ("tbb", &["-DTHRUST_DEVICE_SYSTEM=THRUST_DEVICE_SYSTEM_TBB", "-ltbb"]),
    ];
    let mut programs = vec![];
    for (name, flags) in ways {
        let program = out.join(name);
        let mut command = if name == "cuda" {
            let mut command = nvcc.nvcc();
            command.args(["-O3", "-std=c++17", "-arch=compute_80"]);
            command
        } else {
            let mut command = Command::new("g++");
            command.args([
                "-O3",
                &section::march(),
                "-std=c++17",
                "-x",
                "c++",
                "-DTHRUST_HOST_SYSTEM=THRUST_HOST_SYSTEM_CPP",
            ]);
            command.arg("-I").arg(nvcc.dir.join("include"));
            command
        };
        command.arg("-I").arg(&cccl).arg(&source).arg("-o").arg(&program).args(flags);
        quiet(&mut command)?;
        programs.push(program);
    }
    Ok(programs)
}

/// Warm: what an earlier run kept is there, and code that is made at the end is waited for `exit_wait` seconds.
fn ours(installed: &Installed, program: &Path, cache: &Path, exit_wait: &str) -> Run {
    let run = section::told(installed.preloaded(program)).env("CUDAWAY_CACHE_DIR", cache);
    run.env("CUDAWAY_EXIT_WAIT", exit_wait)
}

fn times(run: Run, args: &Args) -> Result<(Vec<String>, Times)> {
    let run = run.limit(Duration::from_secs(900));
    let run = args.only.iter().fold(run, |run, only| run.arg(only));
    let ended = run.run()?;
    ensure!(ended.status.success(), "{}", ended.describe());
    let mut names = vec![];
    let mut times = Times::new();
    for line in ended.stdout.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let [name, wall, cpu] = fields[..] else { continue };
        names.push(name.to_owned());
        times.insert(name.to_owned(), (wall.parse()?, cpu.parse()?));
    }
    ensure!(!names.is_empty(), "no row: {}", ended.describe());
    Ok((names, times))
}

fn table(names: &[String], found: &[Times; 3], objects: &str) -> Result<String> {
    let mut text = format!(
        "A million elements, warm{objects}, the fastest of the runs, milliseconds on the clock and of CPU; speed is that of CPU \
         time beside the better backend's.\n\n\
         | algorithm | CUDAway | Thrust, OpenMP | Thrust, TBB | × as fast | goal |\n|---|--:|--:|--:|--:|---|\n",
    );
    let mut product = 0.0;
    for name in names {
        let of =
            |nth: usize| found[nth].get(name).copied().with_context(|| format!("{name} was not measured"));
        let (ours, omp, tbb) = (of(0)?, of(1)?, of(2)?);
        let speed = omp.1.min(tbb.1) / ours.1;
        product += speed.ln();
        let verdict = if speed >= GOAL_ANY { "met" } else { "**missed**" };
        let shown = |took: (f64, f64)| format!("{:.2}, {:.2}", took.0, took.1);
        let _ = writeln!(
            text,
            "| {name} | {} | {} | {} | {speed:.2} | {verdict} |",
            shown(ours),
            shown(omp),
            shown(tbb)
        );
    }
    let mean = (product / names.len() as f64).exp();
    let verdict = if mean >= GOAL_MEAN { "met" } else { "missed" };
    let _ = write!(text, "\nGeometric mean: {mean:.2} × (goal: at least {GOAL_MEAN}; {verdict}).");
    Ok(text)
}
