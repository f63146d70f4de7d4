//! `cargo xtask settings`: in which setting of the CPU device (docs/architecture.md) every kernel of the corpora runs, and why those
//! that go one lane at a time do; docs/settings.md is made of what came of it.

pub mod corpora;
pub mod page;
mod results;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};

use crate::setup;
use results::{Counts, Results};

#[derive(clap::Args)]
pub struct Args {
    /// Only these corpora, comma separated; `none` is no corpus of this tree.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Counts the PTX files of a folder under this name, as `CUDAWAY_DUMP_DIR` leaves them there.
    #[arg(long, value_name = "NAME=DIR")]
    add: Vec<String>,
    #[command(flatten)]
    setup: setup::Args,
}

pub fn run(args: &Args) -> Result<()> {
    args.setup.apply();
    let mut results = Results::read()?;
    let known = corpora::all();
    if let Some(name) =
        args.only.iter().find(|name| *name != "none" && known.iter().all(|it| it.name != **name))
    {
        let names: Vec<&str> = known.iter().map(|it| it.name).collect();
        bail!("no corpus is called {name}; there are: {}", names.join(", "));
    }
    for corpus in
        known.iter().filter(|it| args.only.is_empty() || args.only.iter().any(|name| name == it.name))
    {
        println!("{}: compiling", corpus.name);
        let files = corpus.ptx()?;
        count(&mut results, corpus.name, corpus.what, &files)?;
    }
    for added in &args.add {
        let (name, dir) = added.split_once('=').context("--add NAME=DIR")?;
        let what = results.what(name).unwrap_or("PTX that the program gave to the driver").to_owned();
        count(&mut results, name, &what, &ptx_in(Path::new(dir))?)?;
    }
    page::write(&results)
}

fn count(results: &mut Results, name: &str, what: &str, files: &[PathBuf]) -> Result<()> {
    let counts = Counts::of(&looked_at(files)?, files.len());
    println!("{name}: {}", counts.line());
    results.put(name, what, counts);
    results.save()
}

fn ptx_in(dir: &Path) -> Result<Vec<PathBuf>> {
    let found = std::fs::read_dir(dir).with_context(|| dir.display().to_string())?;
    let mut files = found.map(|it| Ok(it?.path())).collect::<Result<Vec<_>>>()?;
    files.retain(|path| path.extension().is_some_and(|it| it == "ptx"));
    files.sort();
    ensure!(!files.is_empty(), "{}: no PTX in it", dir.display());
    Ok(files)
}

/// What the compiler's example `setting` says of each kernel.
fn looked_at(files: &[PathBuf]) -> Result<String> {
    let mut said = String::new();
    // A command line has its bounds.
    for part in files.chunks(500) {
        let mut command = Command::new(env!("CARGO"));
        command.current_dir(setup::root());
        command
            .args(["run", "--quiet", "--release", "-p", "compiler", "--example", "setting", "--"])
            .args(part);
        let out = command.output().with_context(|| format!("{command:?}"))?;
        ensure!(out.status.success(), "{command:?}: {}", String::from_utf8_lossy(&out.stderr));
        said += &String::from_utf8_lossy(&out.stdout);
    }
    Ok(said)
}
