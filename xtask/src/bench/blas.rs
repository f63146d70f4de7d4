//! `cargo xtask bench blas`: products of 2048 × 2048 through cuBLAS beside OpenBLAS called directly, in one process.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::section;
use crate::setup;

#[derive(clap::Args)]
pub struct Args {
    /// Rows and columns.
    #[arg(long, default_value_t = 2048)]
    n: u32,
    /// Products of each kind, by turns; the fastest counts.
    #[arg(long, default_value_t = 20)]
    rounds: u32,
    /// Measure the objects in this folder; docs/performance.md is left as it is.
    #[arg(long)]
    lib: Option<PathBuf>,
}

/// Through cuBLAS at least this part of OpenBLAS's speed.
const GOAL: f64 = 0.9;

pub fn run(args: &Args) -> Result<()> {
    let lib = super::objects(args.lib.as_deref())?;
    let dir = setup::root().join("target/bench/blas");
    std::fs::create_dir_all(&dir)?;
    let openblas = openblas(&dir)?;
    let program = dir.join("gemm");
    let source = setup::root().join("benches/blas/gemm.c");
    setup::run(Command::new("gcc").args(["-O2", "-o"]).arg(&program).arg(source).args(["-ldl", "-lm"]))?;

    let mut text = format!(
        "| {0} × {0}, by | through cuBLAS | OpenBLAS | speed beside OpenBLAS's (goal {GOAL}) |\n|---|---|---|---|\n",
        args.n
    );
    let found = [("what is there without it", None), ("`CUDAWAY_BLAS=libopenblas.so.0`", Some(&openblas))];
    for (by, chosen) in found {
        let mut command = Command::new(&program);
        command
            .arg(lib.join("libcublas.so.13"))
            .arg(&openblas)
            .args([args.n, args.rounds].map(|n| n.to_string()));
        command.env("LD_PRELOAD", format!("{0}/libcuda.so.1:{0}/libcudart.so.13", lib.display()));
        command.env("CUDAWAY_DEVICE", "cpu").env_remove("CUDAWAY_BLAS");
        command.env("LD_LIBRARY_PATH", dir.join("usr/lib/x86_64-linux-gnu"));
        if let Some(path) = chosen {
            command.env("CUDAWAY_BLAS", path);
        }
        let out = command.output().with_context(|| format!("cannot start {}", program.display()))?;
        ensure!(out.status.success(), "{command:?}: {}", String::from_utf8_lossy(&out.stderr));
        for line in String::from_utf8_lossy(&out.stdout).lines() {
            writeln!(text, "{}", row(by, line)?)?;
        }
    }
    println!("{text}");
    if args.lib.is_some() { Ok(()) } else { section::write("blas", &text) }
}

fn row(by: &str, line: &str) -> Result<String> {
    let words: Vec<&str> = line.split(' ').collect();
    let [name, through, direct] = words[..] else { anyhow::bail!("the program says {line:?}") };
    let (through, direct): (f64, f64) = (through.parse()?, direct.parse()?);
    let ratio = direct / through;
    let met = if ratio >= GOAL { "met" } else { "not met" };
    Ok(format!("| {name}, {by} | {:.1} ms | {:.1} ms | {ratio:.2} ({met}) |", through * 1e3, direct * 1e3))
}

/// OpenBLAS and what it stands on.
const PACKAGES: [&str; 3] = ["libopenblas0-pthread", "libgfortran5", "libquadmath0"];

/// Debian's OpenBLAS, unpacked and not installed: what is installed is found by others too.
fn openblas(dir: &Path) -> Result<PathBuf> {
    let library = dir.join("usr/lib/x86_64-linux-gnu/openblas-pthread/libopenblas.so.0");
    if library.exists() {
        return Ok(library);
    }
    println!("setup: apt-get download {}, unpacked to {}", PACKAGES.join(" "), dir.display());
    ensure!(!setup::offline(), "--offline, and OpenBLAS is not in {}", dir.display());
    setup::run(Command::new("apt-get").current_dir(dir).args(["-q", "download"]).args(PACKAGES))?;
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "deb") {
            setup::run(Command::new("dpkg").arg("-x").arg(&path).arg(dir))?;
        }
    }
    ensure!(library.exists(), "Debian's package has no {}", library.display());
    Ok(library)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_line_becomes_a_ratio() {
        let row = super::row("x", "SGEMM 0.100000 0.095000").unwrap();
        assert_eq!(row, "| SGEMM, x | 100.0 ms | 95.0 ms | 0.95 (met) |");
        assert!(super::row("x", "SGEMM 0.1 0.05").unwrap().contains("0.50 (not met)"));
        assert!(super::row("x", "oops").is_err());
    }
}
