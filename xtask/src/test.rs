//! `cargo xtask test`: sets up, builds, and runs every check there is; ends with a plain total.
//! A part that cannot be had here is reported as skipped with its reason; nothing is left out silently.

mod aarch64;
mod ahead;
mod amd;
mod blas;
mod clients;
mod compiling;
pub mod conformance;
mod cores;
pub mod corpus;
pub mod debian;
mod deny;
mod disks;
mod dist;
mod doctor;
pub mod examples;
mod faults;
mod fft;
mod foreseen;
mod gates;
pub mod harmless;
mod installs;
mod instances;
mod kernels;
mod lint;
mod nvml;
mod nvrtc;
mod once;
mod packages;
mod proof;
mod providers;
mod races;
mod rand;
mod reach;
mod report;
mod rocm;
mod sanitizer;
mod share;
mod stripped;
mod threads;
mod tools;
mod trees;
mod trust;
pub mod unit;
mod wheel;
mod workflows;

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Result, bail};
use testkit::Installed;

use crate::build;
use crate::session;
use crate::setup;
use crate::toolchain::Release;
use cores::on_cores;
use report::{Outcome, Report};

#[derive(clap::Args)]
pub struct Args {
    /// Also build and run the examples with CUDA 11.8 and 12.4, and install clients such as CuPy (about 5 GB of downloads, once).
    #[arg(long)]
    all: bool,
    /// Only these parts, comma separated: codegen, lint, unit, rows, gates, examples, conformance, rocm, corpus, nvrtc, instances, stripped, cache, trust, faults, sanitizer, threads, tools, wheel, blas, fft, rand, dnn, solver, sparse, providers, reach, harmless, amd, amd-emu, aarch64, debian, packages, dist, clients.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Only examples whose `release/form/name` contains one of these, comma separated.
    #[arg(long, value_delimiter = ',')]
    example: Vec<String>,
    /// Only chapters of conformance/ whose `driver/chapter` or `runtime/chapter` contains one of these, comma separated.
    #[arg(long, value_delimiter = ',')]
    chapter: Vec<String>,
    /// How long the 64 threads of the part `threads` go on.
    #[arg(long, default_value_t = 4)]
    seconds: u32,
    /// Write down which names the part `blas` has called (tools/data/cublas/shown.json).
    #[arg(long)]
    bless: bool,
    /// Test target/cudaway/lib as it is.
    #[arg(long)]
    no_build: bool,
    /// Test the objects in another folder, as they are.
    #[arg(long)]
    lib: Option<PathBuf>,
    #[command(flatten)]
    setup: setup::Args,
}

/// The parts, in order.
const PARTS: &[&str] = &[
    "codegen",
    "lint",
    "unit",
    "rows",
    "gates",
    "examples",
    "conformance",
    "rocm",
    "corpus",
    "nvrtc",
    "instances",
    "stripped",
    "cache",
    "trust",
    "faults",
    "sanitizer",
    "threads",
    "tools",
    "wheel",
    "blas",
    "fft",
    "rand",
    "dnn",
    "solver",
    "sparse",
    "providers",
    "reach",
    "harmless",
    "amd",
    "amd-emu",
    "races",
    "aarch64",
    "debian",
    "packages",
    "dist",
    "clients",
];

/// Parts that run beside each other: each is for the most part one program on one core, and writes nothing that another reads.
const PROOFS: [&str; 6] = ["blas", "fft", "rand", "dnn", "solver", "sparse"];

pub fn run(args: &Args) -> Result<()> {
    args.setup.apply();
    if let Some(unknown) = args.only.iter().find(|part| !PARTS.contains(&part.as_str())) {
        bail!("no part is called {unknown}; there are: {}", PARTS.join(", "));
    }
    let started = Instant::now();
    let mut report = Report::default();
    setup::build_packages()?;
    setup::test_packages()?;
    if !args.no_build && args.lib.is_none() {
        heading("build: target/cudaway/lib", started);
        // Most of a build is one linker at a time; the other core gets ready what the parts begin with.
        let built = thread::scope(|scope| {
            scope.spawn(|| get_ready(args));
            build::to_try()
        });
        let failed = built.is_err();
        report.note("cargo xtask build", built);
        if failed {
            report.finish(started);
            return Ok(());
        }
    }
    let lib = args.lib.as_deref().map(std::path::absolute).transpose()?;
    let installed = Installed::at(lib.unwrap_or_else(setup::lib_dir));
    let wanted = |part: &str| args.only.is_empty() || args.only.iter().any(|only| only == part);
    let parts: Vec<&str> = PARTS.iter().copied().filter(|part| wanted(part)).collect();
    for beside in parts.chunk_by(|one, other| [one, other].iter().all(|it| PROOFS.contains(it))) {
        heading(&beside.join(", "), started);
        let found = on_cores(beside.to_vec(), |part| {
            let mut report = Report::default();
            run_part(part, args, &installed, &mut report);
            report
        });
        found.into_iter().for_each(|found| report.join(found));
    }
    report.finish(started);
    Ok(())
}

fn run_part(part: &str, args: &Args, installed: &Installed, report: &mut Report) {
    // What is asked for by name runs whole.
    let whole = args.all || !args.only.is_empty();
    match part {
        "codegen" => report.note("cargo xtask codegen --check", unit::xtask(&["codegen", "--check"])),
        "lint" => {
            lint::run(report);
            deny::run(report);
            once::run(report);
            workflows::run(report);
        }
        "unit" => unit::cargo_test(args.all, report),
        "rows" => unit::rows(installed, report),
        "gates" => gates::run(installed, report),
        "examples" => run_examples(args, whole, installed, report),
        "conformance" => conformance::run(installed, &args.chapter, report),
        "rocm" => rocm::run(installed, &args.chapter, report),
        "corpus" => corpus::run(args.all, whole, installed, report),
        "nvrtc" => nvrtc::run(whole, installed, report),
        "instances" => instances::run(installed, report),
        "stripped" => stripped::run(installed, whole, report),
        "cache" => {
            faults::cache(installed, report);
            ahead::run(installed, report);
            compiling::run(installed, report);
            foreseen::run(installed, report);
        }
        "trust" => trust::run(installed, report),
        "faults" => faults::run(installed, report),
        "sanitizer" => {
            sanitizer::run(installed, report);
            report.note("README.md's picture shows what is said today", session::is_as_shown(installed));
        }
        "threads" => threads::run(installed, args.seconds, report),
        "tools" => tools::run(installed, report),
        "wheel" => wheel::run(installed, whole, report),
        "blas" => blas::run(installed, args.bless, report),
        "fft" => fft::run(installed, report),
        "rand" => rand::run(installed, report),
        "dnn" => {
            rocm::dnn(installed, report);
            proof::DNN.run(installed, report);
        }
        "solver" => proof::SOLVER.run(installed, report),
        "sparse" => {
            rocm::sparse(installed, report);
            proof::SPARSE.run(installed, report);
        }
        "providers" => providers::run(installed, report),
        "reach" => reach::run(installed, whole, report),
        "harmless" => harmless::run(installed, report),
        "amd" => amd::run(installed, report),
        "amd-emu" => unit::amd_emulator(report),
        "races" => races::run(!args.only.is_empty(), report),
        "aarch64" => aarch64::run(!args.only.is_empty(), report),
        "debian" if args.only.is_empty() => report.note(
            "ROCm 5.7 and 6.4 of newer Debians",
            Outcome::Skipped("asked for with --only debian (root, 2 GB)".to_owned()),
        ),
        "debian" => debian::run(installed, report),
        "packages" if args.only.is_empty() => report.note(
            "packages, archives and wheel on three Debians, and the container image",
            Outcome::Skipped("asked for with --only packages (root, 8 GB, another build)".to_owned()),
        ),
        "packages" => packages::run(installed, !args.no_build && args.lib.is_none(), report),
        "dist" if args.only.is_empty() => report.note(
            "the same of what is shipped, and that another folder gives the same bytes",
            Outcome::Skipped("asked for with --only dist (root, 12 GB, two long builds)".to_owned()),
        ),
        "dist" => dist::run(report),
        // Asked for by name, --all is not needed.
        _ => clients::run(installed, whole, report),
    }
}

/// What the parts would do for themselves, ahead of them. They meet what fails here once more and report it.
fn get_ready(args: &Args) {
    if !args.only.is_empty() {
        return;
    }
    let _ = Release::V13_5.get();
    unit::compile_tests();
    lint::get_ready();
}

fn run_examples(args: &Args, whole: bool, installed: &Installed, report: &mut Report) {
    let drawn = (!whole).then(|| seed("EXAMPLES_SEED"));
    let releases: &[Release] =
        if args.all { &[Release::V13_5, Release::V12_4, Release::V11_8] } else { &[Release::V13_5] };
    for release in releases {
        match release.get() {
            Ok(toolchain) => examples::matrix(&toolchain, installed, &args.example, drawn, report),
            Err(error) => {
                let reason = format!("nvcc {} cannot be had: {error:#}", release.version());
                // Without the one compiler that every run needs, nothing real was tested.
                if *release == Release::V13_5 {
                    report.note("examples built by nvcc 13.5", Outcome::Failed(reason));
                } else {
                    report.note(
                        &format!("examples built by nvcc {}", release.version()),
                        Outcome::Skipped(reason),
                    );
                }
            }
        }
    }
    if !args.all {
        let reason = "asked for with --all (large downloads)".to_owned();
        report.note("examples built by nvcc 12.4 and 11.8", Outcome::Skipped(reason));
    }
}

/// What a part draws by: another number in each run, or the one that the variable gives.
fn seed(variable: &str) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |now| now.as_nanos() as u64);
    std::env::var(variable).ok().and_then(|seed| seed.parse().ok()).unwrap_or(now)
}

fn heading(text: &str, started: Instant) {
    let after = started.elapsed().as_secs_f64();
    println!("\n== {text} (after {after:.0} s, {:.0} s of CPU)", cpu_s().unwrap_or_default());
}

/// What this process and those that it has waited for took of the processor, by proc_pid_stat(5).
fn cpu_s() -> Option<f64> {
    const TICKS_PER_S: f64 = 100.0;
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // Behind the name, which may have blanks, utime, stime, cutime and cstime are the 12th to 15th.
    let (_, fields) = stat.rsplit_once(')')?;
    let ticks = fields.split_whitespace().skip(11).take(4).filter_map(|field| field.parse::<f64>().ok());
    Some(ticks.sum::<f64>() / TICKS_PER_S)
}
