//! `cargo xtask demo`: from a fresh clone to three unmodified nvcc programs running with no GPU. It builds what they need, and says
//! where the time went.

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

pub fn run(args: &Args) -> Result<()> {
    args.setup.apply();
    let started = Instant::now();
    let mut parts = Vec::new();
    let mut part = |name: &'static str| parts.push((name, started.elapsed()));
    println!("== set-up: Debian packages, and nvcc 13.5 in .venv");
    setup::build_packages()?;
    part("Debian packages");
    let toolchain = Release::V13_5.get()?;
    println!("   nvcc: {}", toolchain.dir.join("bin/nvcc").display());

    part("nvcc and its wheels");

    println!("== build: what the three programs need, into target/cudaway/lib");
    build::some_to_try(&NEEDED)?;
    part("build");
    let installed = Installed::at(setup::lib_dir());

    for name in ["device_query", "vector_add", "matmul_tiled"] {
        let program = examples::build(&toolchain, Form::Static, name, &installed)?;
        let run = examples::command(Form::Static, &program, &installed);
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
    part("three programs, built by nvcc and run");
    println!("\ndemo: three programs passed, {:.1} s in all:", started.elapsed().as_secs_f64());
    let mut before = Duration::ZERO;
    for (name, until) in parts {
        println!("  {:>6.1} s  {name}", (until - before).as_secs_f64());
        before = until;
    }
    println!("`cargo xtask build` makes the tool `cudaway`, and the other libraries, too.");
    Ok(())
}
