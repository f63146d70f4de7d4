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

/// What is in front of a program that nvcc 13.5 has built. It wants no package but a linker, which linked xtask.
const IN_FRONT: [&str; 3] = ["libcuda.so.1", "libcudart.so.13", "libcudaway_cudart.so"];
/// What it stands on: LLVM is in it, which is a package.
const DEVICE: &str = "libcudaway_cpu.so";

const PROGRAMS: [&str; 3] = ["device_query", "vector_add", "matmul_tiled"];

pub fn run(args: &Args) -> Result<()> {
    args.setup.apply();
    let started = Instant::now();
    println!(
        "== build: what three programs need, into target/cudaway/lib; beside it Debian packages, nvcc 13.5 into .venv, and the programs"
    );
    let installed = Installed::at(setup::lib_dir());
    let (programs, packages, preparing) = thread::scope(|scope| -> Result<_> {
        let packages = scope.spawn(|| setup::build_packages().map(|()| started.elapsed()));
        let in_front = build::some_to_try(&IN_FRONT);
        // What failed beside it may be why the build did.
        let packages = packages.join().expect("no panic")?;
        in_front?;
        let programs = scope.spawn(|| programs(&installed).map(|programs| (programs, started.elapsed())));
        let built = build::some_to_try(&[DEVICE]);
        let (programs, preparing) = programs.join().expect("no panic")?;
        built.map(|()| (programs, packages, preparing))
    })?;
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
    println!(
        "{}  build; beside it Debian packages until {}, then nvcc, its wheels and the programs until {}",
        seconds(built),
        seconds(packages).trim(),
        seconds(preparing).trim()
    );
    println!("{}  three programs", seconds(ended - built));
    println!("`cargo xtask build` makes the tool `cudaway`, and the other libraries, too.");
    Ok(())
}

/// The programs, built by nvcc.
fn programs(installed: &Installed) -> Result<Vec<PathBuf>> {
    let toolchain = Release::V13_5.get()?;
    PROGRAMS.iter().map(|name| examples::build(&toolchain, Form::Static, name, installed)).collect()
}
