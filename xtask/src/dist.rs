//! `cargo xtask dist`: the archives that users install: `cudaWay-linux-x86_64.tar.zst` and `.tar.gz` in target/dist; with `--wheel`
//! the Python package `cudaway` too.
//!
//! Two runs on the same commit, in whatever folders, give the same bytes: paths are remapped, times are the commit's.

mod contents;
mod notices;
pub mod sysroot;
pub mod wheel;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::build::recipe::Shipped;
use crate::build::{self, Recipe, gate};
use crate::setup::{self, Package, root};
use sysroot::Sysroot;

const NAME: &str = "cudaWay-linux-x86_64";

/// The CPU device with LLVM inside is used on machines of our time; the rest goes in front of old programs on old systems.
const OLDEST_FOR_CPU_DEVICE: Sysroot = Sysroot { glibc: "2.31" };
const OLDEST: Sysroot = Sysroot { glibc: "2.17" };

const PACKAGES: &[Package] =
    &[("zstd", "packs the archive"), ("gzip", "packs the archive"), ("tar", "packs the archive")];

#[derive(clap::Args)]
pub struct Args {
    /// The Python package too, as a wheel.
    #[arg(long)]
    wheel: bool,
    /// The wheel alone, of what `cargo xtask build` made: for systems with this one's glibc or a newer one.
    #[arg(long, requires = "wheel")]
    local: bool,
    #[command(flatten)]
    setup: setup::Args,
}

pub fn run(args: &Args) -> Result<()> {
    args.setup.apply();
    setup::build_packages()?;
    if args.local {
        println!("dist: {}", wheel::local(&setup::lib_dir())?.display());
        return Ok(());
    }
    setup::packages(PACKAGES)?;
    crate::codegen::refresh()?;
    for archive in make(args.wheel)? {
        println!("dist: {}", archive.display());
    }
    Ok(())
}

/// Builds everything and packs it; the paths of the archives, and of the wheel, if it is wanted.
pub fn make(with_wheel: bool) -> Result<Vec<PathBuf>> {
    let out = out();
    let tree = out.join(NAME);
    let _ = fs::remove_dir_all(&tree);
    fs::create_dir_all(&tree)?;
    let epoch_s = epoch_s()?;
    let shipped = Shipped {
        target_dir: out.join("build"),
        remapped: remapped()?,
        epoch_s,
        sysroot_of: Box::new(oldest_glibc),
    };
    let lib = tree.join("lib");
    build::lay_out(&[], &Recipe::shipped(shipped), &lib)?;
    check_glibc(&tree)?;
    contents::add(&tree)?;
    notices::add(&tree)?;
    let mut made = pack(&out, epoch_s)?;
    if with_wheel {
        let oldest = gate::release(OLDEST_FOR_CPU_DEVICE.glibc).context("a release of glibc")?;
        made.push(wheel::pack(&[&tree], &oldest, epoch_s, wheel::SMALLEST)?);
    }
    let names = made.iter().filter_map(|path| path.file_name());
    let sums = setup::said(Command::new("sha256sum").args(names).current_dir(&out))?;
    fs::write(out.join("SHA256SUMS"), format!("{sums}\n"))?;
    Ok(made)
}

fn out() -> PathBuf {
    root().join("target/dist")
}

/// What the object or program of this name is linked against.
pub fn oldest_glibc(name: &str) -> Sysroot {
    if name == "libcudaway_cpu.so" { OLDEST_FOR_CPU_DEVICE } else { OLDEST }
}

fn check_glibc(tree: &Path) -> Result<()> {
    for folder in FOLDERS {
        for entry in fs::read_dir(tree.join(folder))? {
            let path = entry?.path();
            if path.is_dir() {
                continue;
            }
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let oldest = oldest_glibc(&name).glibc;
            let newer = gate::glibc_symbols_after(&path, oldest)?;
            ensure!(newer.is_empty(), "{name} needs what glibc {oldest} has not: {}", newer.join(", "));
        }
    }
    Ok(())
}

/// The folders of a tree that have objects and programs.
const FOLDERS: [&str; 3] = ["lib", "lib/preload", "bin"];

/// The commit's time, or what SOURCE_DATE_EPOCH says.
fn epoch_s() -> Result<u64> {
    let said = match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(said) => said,
        Err(_) => setup::said(Command::new("git").args(["log", "-1", "--format=%ct"]).current_dir(root()))?,
    };
    said.trim().parse().with_context(|| format!("not a time in seconds: {said:?}; set SOURCE_DATE_EPOCH"))
}

/// This machine's folders that a compiler writes into objects.
fn remapped() -> Result<Vec<(PathBuf, &'static str)>> {
    let sysroot = PathBuf::from(setup::said(Command::new("rustc").args(["--print", "sysroot"]))?);
    let cargo = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let cargo = cargo.or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".cargo")));
    let cargo = cargo.context("neither CARGO_HOME nor HOME is set")?;
    Ok(vec![(sysroot, "/rust"), (cargo, "/cargo"), (root(), "/cudaway")])
}

fn pack(out: &Path, epoch_s: u64) -> Result<Vec<PathBuf>> {
    let tar = out.join(format!("{NAME}.tar"));
    let mut packed = Command::new("tar");
    packed.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--format=gnu"]);
    packed.arg("--mode=u=rwX,go=rX").arg(format!("--mtime=@{epoch_s}"));
    setup::run(packed.arg("--directory").arg(out).arg("--create").arg("--file").arg(&tar).arg(NAME))?;
    // One thread: the number of threads shows in the bytes.
    setup::run(Command::new("zstd").args(["--quiet", "--force", "-19", "--single-thread"]).arg(&tar))?;
    setup::run(Command::new("gzip").args(["--force", "--no-name", "--best"]).arg(&tar))?;
    Ok(["tar.zst", "tar.gz"].map(|suffix| out.join(format!("{NAME}.{suffix}"))).to_vec())
}
