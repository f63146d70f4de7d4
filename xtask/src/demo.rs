//! `cargo xtask demo`: from a fresh clone to three unmodified nvcc programs running with no GPU. It builds what they need, and says
//! where the time went.

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use testkit::Installed;

use crate::build;
use crate::setup;
use crate::test::examples::{self, Form};
use crate::toolchain::Release;

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    setup: setup::Args,
}

/// What is in front of a program that nvcc 13.5 has built, and what it stands on.
const NEEDED: [&str; 4] = ["libcuda.so.1", "libcudart.so.13", "libcudaway_cudart.so", "libcudaway_cpu.so"];

const PROGRAMS: [&str; 3] = ["device_query", "vector_add", "matmul_tiled"];

pub fn run(args: &Args) -> Result<()> {
    args.setup.apply();
    let started = Instant::now();
    println!("== set-up: Debian packages");
    setup::build_packages()?;
    let packages = started.elapsed();

    println!(
        "== build: what the three programs need, into target/cudaway/lib; beside it nvcc 13.5 into .venv, and the programs by it"
    );
    let installed = Installed::at(setup::lib_dir());
    let (programs, built) = thread::scope(|scope| {
        let programs = scope.spawn(|| programs(&installed));
        let built = build::some_to_try(&NEEDED);
        (programs.join().expect("no panic"), built)
    });
    built?;
    let (programs, preparing) = programs?;
    let built = started.elapsed();

    for (name, program) in PROGRAMS.iter().zip(&programs) {
        let run = examples::command(Form::Static, program, &installed);
        println!(
            "\n== {name}: built by nvcc 13.5, its runtime linked statically, nothing changed\n$ {}",
            run.command_line()
        );
        let ended = run.run()?;
        print!("{}", ended.stdout);
        eprint!("{}", ended.stderr);
        ensure!(ended.passed(), "{name}: {}", ended.describe());
        println!("({:.2} s)", ended.took.as_secs_f64());
    }
    let ended = started.elapsed();
    let seconds = |took: Duration| format!("{:>6.1} s", took.as_secs_f64());
    println!(
        "\ndemo: three programs passed, {} in all, behind the build of xtask itself:",
        seconds(ended).trim()
    );
    println!("{}  Debian packages", seconds(packages));
    println!(
        "{}  build; beside it {} for nvcc, its wheels and the programs",
        seconds(built - packages),
        seconds(preparing).trim()
    );
    println!("{}  three programs", seconds(ended - built));
    println!("`cargo xtask build` makes the tool `cudaway`, and the other libraries, too.");
    Ok(())
}

/// The programs, built by nvcc, and how long that took with all that nvcc needs.
fn programs(installed: &Installed) -> Result<(Vec<PathBuf>, Duration)> {
    let started = Instant::now();
    let toolchain = Release::V13_5.get()?;
    let programs = PROGRAMS.iter().map(|name| examples::build(&toolchain, Form::Static, name, installed));
    Ok((programs.collect::<Result<_>>()?, started.elapsed()))
}
