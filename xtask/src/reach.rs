//! `cargo xtask reach`: which program gets our driver by which method, beside a driver of NVIDIA's: docs/reach.md, cell by cell.

mod clients;
mod inside;
mod table;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use crate::setup;
use clients::Need;

#[derive(clap::Args)]
pub struct Args {
    /// Test the objects in this folder, with `cudaway` in the folder `bin` beside it, instead of target/cudaway/lib.
    #[arg(long)]
    lib: Option<PathBuf>,
    /// Write what was found into docs/reach.md instead of comparing.
    #[arg(long)]
    bless: bool,
    /// The programs' folder; this process is in a namespace of its own.
    #[arg(long, hide = true, requires = "lib")]
    inside: Option<PathBuf>,
    /// Needs of clients that are not there.
    #[arg(long, hide = true, value_delimiter = ',')]
    missing: Vec<String>,
    #[arg(long, hide = true)]
    quick: bool,
    #[command(flatten)]
    setup: setup::Args,
}

/// What a run has to say.
pub struct Found {
    pub n_cells: usize,
    /// Cells that are not as docs/reach.md has them.
    pub differences: Vec<String>,
    /// What could not be tried, and why.
    pub skipped: Vec<(String, String)>,
}

pub fn run(args: &Args) -> Result<()> {
    args.setup.apply();
    let lib = args.lib.clone().unwrap_or_else(setup::lib_dir);
    if let Some(built) = &args.inside {
        let missing: Vec<Need> =
            CLIENT_NEEDS.into_iter().filter(|need| is_among(*need, &args.missing)).collect();
        return inside::run(built, &lib, &missing, args.quick);
    }
    if let Err(why) = clients::packages() {
        println!("reach: going on with what is there: {why:#}");
    }
    let found = look(&lib, false, args.bless)?;
    for (what, why) in &found.skipped {
        println!("skipped {what}: {why}");
    }
    println!("{} cells, {} not as {} has them", found.n_cells, found.differences.len(), table::PAGE);
    ensure!(found.differences.is_empty(), "{}", found.differences.join("\n"));
    Ok(())
}

const CLIENT_NEEDS: [Need; 8] =
    [Need::Multilib, Need::Musl, Need::Cffi, Need::Go, Need::Java, Need::Node, Need::Bubblewrap, Need::Users];

fn is_among(need: Need, names: &[String]) -> bool {
    names.contains(&format!("{need:?}"))
}

/// Whether this user may make a mount namespace.
pub fn has_namespaces() -> bool {
    let unshare = |options: &[&str]| {
        let output = Command::new("unshare").arg("--mount").args(options).arg("true").output();
        output.is_ok_and(|output| output.status.success())
    };
    unshare(&[]) || unshare(&["--map-root-user"])
}

/// Builds the clients and tries them in a namespace; `is_quick`: those in C, C++ and Python, and what the environment alone can do.
pub fn look(lib: &Path, is_quick: bool, bless: bool) -> Result<Found> {
    let built = setup::root().join("target/reach");
    std::fs::create_dir_all(&built)?;
    let wanted =
        |need: Need| !is_quick || matches!(need, Need::Cffi | Need::Users | Need::Multilib | Need::Musl);
    let missing = clients::build(&built, &wanted)?;
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private"]);
    if missing.iter().any(|(need, _)| *need == Need::Users) {
        command.arg("--map-root-user");
    }
    command.arg(std::env::current_exe()?).args(["reach", "--lib"]).arg(std::path::absolute(lib)?);
    command.arg("--inside").arg(&built).stderr(Stdio::inherit());
    let names: Vec<String> = missing.iter().map(|(need, _)| format!("{need:?}")).collect();
    command.args(["--missing", &names.join(",")]).args(is_quick.then_some("--quick"));
    for name in ["LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "CUDAWAY_HOOKS", "CUDAWAY_DRIVER_VERSION"] {
        command.env_remove(name);
    }
    let output = command.output().context("unshare (package util-linux)")?;
    ensure!(output.status.success(), "the part in a mount namespace ended with {}", output.status);
    let found = table::from_lines(&String::from_utf8(output.stdout)?)?;
    if bless {
        table::write(&found)?;
    }
    let skipped = clients::CLIENTS.iter().filter_map(|client| {
        let (_, why) = missing.iter().find(|(need, _)| *need == client.need)?;
        Some((client.name.to_owned(), why.clone()))
    });
    Ok(Found {
        n_cells: found.values().map(|row| row.len()).sum(),
        differences: table::differences(&table::of_page()?, &found),
        skipped: skipped.collect(),
    })
}
