//! `cargo xtask bench first`: what a program waits for when the cache is empty. Kernels by themselves, by CPU time for each 1,000
//! PTX instructions, and whole programs cold and warm.

mod corpora;
mod kernels;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Result, bail, ensure};
use testkit::Installed;

use super::section;
use crate::samples::processor;
use crate::test::corpus;
use corpora::{CORPORA, Corpus};

#[derive(clap::Args)]
pub struct Args {
    /// Runs of each program of each kind, by turns.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    #[command(flatten)]
    ours: super::Ours,
    /// Only these corpora, comma separated; docs/performance.md is left as it is.
    #[arg(long, value_delimiter = ',')]
    corpus: Vec<String>,
    /// Kernels of a corpus whose best code is made too.
    #[arg(long, default_value_t = 60)]
    best: usize,
    /// Run no programs; docs/performance.md is left as it is.
    #[arg(long)]
    kernels: bool,
    /// Run the programs alone: docs/performance.md keeps what it has of kernels.
    #[arg(long, conflicts_with_all = ["kernels", "corpus", "ptx"])]
    programs: bool,
    /// PTX files whose kernels are measured in the corpora's place; docs/performance.md is left as it is.
    ptx: Vec<PathBuf>,
}

/// Seconds that a cold run may take beyond a warm one.
const GOAL_COLD_S: f64 = 2.5;

pub fn run(args: &Args) -> Result<()> {
    let lib = args.ours.objects()?;
    if !args.programs {
        let text = kernels(args, &lib)?;
        println!("{text}");
        if !args.ours.are_given() && args.ptx.is_empty() && args.corpus.is_empty() && !args.kernels {
            section::write("first", &text)?;
        }
    }
    if !args.kernels {
        let programs = corpus::built(&["thrust", "cub"])?;
        let text = programs_table(&Installed::at(lib), &programs, args.rounds, args.ours.built())?;
        println!("{text}");
        if !args.ours.are_given() {
            section::write_by_processor("first --programs", &text)?;
        }
    }
    Ok(())
}

/// The table of the corpora, and what each of them is.
fn kernels(args: &Args, lib: &Path) -> Result<String> {
    let is_wanted = |corpus: &&Corpus| match &args.corpus[..] {
        [] => args.ptx.is_empty(),
        names => names.iter().any(|it| it == corpus.name),
    };
    if let Some(name) = args.corpus.iter().find(|name| CORPORA.iter().all(|it| it.name != **name)) {
        let names: Vec<&str> = CORPORA.iter().map(|it| it.name).collect();
        bail!("no corpus is called {name}; there are: {}", names.join(", "));
    }
    let mut found = vec![];
    if !args.ptx.is_empty() {
        found.push(("files", kernels::measured(&args.ptx, args.best, args.ours.profile())));
    }
    let mut legend = String::new();
    for corpus in CORPORA.iter().filter(is_wanted) {
        println!("{}", corpus.name);
        let _ = writeln!(legend, "- **{}**: {}", corpus.name, corpus.what);
        let kernels =
            corpus.ptx(lib).and_then(|files| kernels::measured(&files, args.best, args.ours.profile()));
        found.push((corpus.name, kernels.inspect_err(|error| println!("{}: {error:#}", corpus.name))));
    }
    Ok(kernels::table(&found) + "\n" + &legend)
}

fn name_of(program: &Path) -> String {
    program.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn verdict(is_met: bool) -> &'static str {
    if is_met { "met" } else { "missed" }
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
    let run = section::told(installed.preloaded(program)).env("CUDAWAY_CACHE_DIR", cache);
    let run = variables.iter().fold(run, |run, (name, value)| run.env(name, value));
    let (start, before) = (Instant::now(), processor()?);
    let ended = run.run()?;
    let took = Took { wall: start.elapsed().as_secs_f64(), cpu: processor()? - before };
    ensure!(ended.passed(), "{}", ended.describe());
    Ok(took)
}

fn programs_table(installed: &Installed, programs: &[PathBuf], rounds: usize, built: &str) -> Result<String> {
    let mut text = format!(
        "Whole programs, fastest of {rounds} runs by turns{built}, seconds on the clock and of CPU: warm with what a run kept that waited for all code; \
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
