//! `cargo xtask on-nvidia`: what is built and kept here and put before NVIDIA's own driver elsewhere, as one archive. What is built there
//! (examples, the proofs of libraries) `tools/on-nvidia/run.py` takes from the tree.

use std::fs;
use std::process::Command;

use anyhow::{Context as _, Result};
use testkit::Installed;

use crate::setup;
use crate::test::{conformance, unit};
use crate::toolchain::Release;

#[derive(clap::Args)]
pub struct Args {
    /// The GPU's architecture: 90 is an H100's and an H200's.
    #[arg(long, default_value_t = 90)]
    architecture: u32,
    #[command(flatten)]
    setup: setup::Args,
}

/// Tests of hip-cpu whose launches are kept, with what they are told; tests beside them have their names, and launch nothing.
const CASES: [(&str, &[(&str, &str)]); 4] = [
    ("wgmma", &[]),
    ("matrix", &[]),
    ("random", &[("PROGRAMS", "300")]),
    // Not their whole sweeps: a block of rows for each form.
    ("oracle", &[("SWEEP", "glance")]),
];

pub fn run(args: &Args) -> Result<()> {
    args.setup.apply();
    let installed = Installed::at(setup::lib_dir());
    let out = setup::root().join("target/on-nvidia");
    let pack = out.join("pack");
    if pack.exists() {
        fs::remove_dir_all(&pack)?;
    }
    for folder in ["cases", "conformance", "lib"] {
        fs::create_dir_all(pack.join(folder))?;
    }
    for (test, variables) in CASES {
        let cases = pack.join("cases").join(test);
        fs::create_dir_all(&cases)?;
        let mut command = setup::cargo();
        unit::others(command.arg("test")).args(["--quiet", "--test", test]);
        command.env("CASES", &cases).envs(variables.iter().copied());
        setup::run(setup::stay_offline(&mut command))?;
        println!("on-nvidia: {} launches of {test}", fs::read_dir(&cases)?.count());
    }
    let rows = unit::example("rows_on_cuda")?;
    setup::run(Command::new("strip").arg("-o").arg(pack.join("rows_on_cuda")).arg(rows.get_program()))?;
    conformance::build_for(args.architecture, &installed, &pack.join("conformance"))?;
    // The runtime of the headers that the chapters are built with.
    let runtime = Release::V13_5.get()?.dir.join("lib/libcudart.so.13");
    fs::copy(&runtime, pack.join("lib/libcudart.so.13")).with_context(|| runtime.display().to_string())?;
    let archive = out.join("pack.tar.xz");
    setup::run(Command::new("tar").arg("-cJf").arg(&archive).arg("-C").arg(&pack).arg("."))?;
    println!("on-nvidia: {}, {} KiB", archive.display(), fs::metadata(&archive)?.len() / 1024);
    println!("there, in this tree's root: python3 tools/on-nvidia/run.py {} OUT", archive.display());
    Ok(())
}
