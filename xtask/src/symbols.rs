//! `cargo xtask symbols`: the gate for packagers. Names, nodes, SONAMEs and needs of objects that lie in a folder, against
//! the committed lists (tools/data, cmake/exports). `cargo xtask build` asks the same of what it builds; the layouts of
//! structures are asserted where they are declared, when cuda-abi, hip-sys and nvml are compiled.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

use crate::build::{gate, objects};
use crate::setup;

#[derive(clap::Args)]
pub struct Args {
    /// The folder of the objects, if not target/cudaway/lib.
    #[arg(long)]
    lib: Option<PathBuf>,
}

pub fn run(args: &Args) -> Result<()> {
    let lib = args.lib.clone().unwrap_or_else(setup::lib_dir);
    let mut findings = Vec::new();
    for object in objects() {
        let found = gate::check(object, &object.path(&lib))?;
        if found.is_empty() {
            println!("ok {}", object.path(Path::new("")).display());
        }
        findings.extend(found);
    }
    ensure!(
        findings.is_empty(),
        "the objects in {} are not as listed:\n  {}",
        lib.display(),
        findings.join("\n  ")
    );
    Ok(())
}
