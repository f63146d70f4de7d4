//! `cargo xtask demo`: from a fresh clone to two unmodified nvcc programs running with no GPU.

use std::time::Instant;

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

pub fn run(args: &Args) -> Result<()> {
    args.setup.apply();
    let started = Instant::now();
    println!("== set-up: Debian packages, and nvcc 13.5 in .venv");
    setup::build_packages()?;
    let toolchain = Release::V13_5.get()?;
    println!("   nvcc: {}", toolchain.dir.join("bin/nvcc").display());

    println!("== build: target/cudaway/lib");
    build::to_try()?;
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
    println!("\ndemo: three programs passed, {:.1} s in all", started.elapsed().as_secs_f64());
    Ok(())
}
