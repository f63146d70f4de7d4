//! `cargo xtask bench amd-isa`: the code that we make for AMD GPUs from nvcc's PTX beside what clang makes of the same
//! kernels as HIP. Counted, not timed.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};

use super::section;
use crate::test::unit;
use crate::toolchain::Release;
use crate::{build, setup};

#[derive(clap::Args)]
pub struct Args {
    /// The GPUs, as ROCm names them; docs/performance.md is written for those that stand here by default.
    #[arg(long, value_delimiter = ',', default_value = DEFAULT_TARGETS)]
    target: Vec<String>,
    /// Take target/cudaway/bin/cudaway as it is.
    #[arg(long)]
    no_build: bool,
    #[command(flatten)]
    setup: setup::Args,
}

/// A wave of 32 lanes and one of 64.
const DEFAULT_TARGETS: &str = "gfx1100,gfx90a";

/// Ours in AMD's compiler's, in the median of all kernels.
const GOAL: f64 = 1.15;

const COLUMNS: [&str; 5] = ["instructions", "VGPRs", "SGPRs", "LDS", "scratch"];

/// What one kernel takes, by [`COLUMNS`].
type Counts = [u32; COLUMNS.len()];

pub fn run(args: &Args) -> Result<()> {
    args.setup.apply();
    setup::packages(&[
        ("clang-19", "compiles the kernels as HIP"),
        ("lld-19", "links code objects"),
        ("llvm-19", "counts instructions"),
    ])?;
    if !args.no_build {
        build::to_try()?;
    }
    let out = setup::root().join("target/amd-isa");
    fs::create_dir_all(&out)?;
    let mut text = String::new();
    for target in &args.target {
        let hip = hip(target, &out)?;
        let ours = ours(target, &out)?;
        text += &table(target, &ours, &hip)?;
    }
    println!("{text}");
    if args.target.join(",") != DEFAULT_TARGETS {
        println!("docs/performance.md is left as it is: it has {DEFAULT_TARGETS}.");
        return Ok(());
    }
    section::write("amd-isa", &text)
}

fn kernels() -> PathBuf {
    setup::root().join("benches/peers/kernels.cuh")
}

/// The kernels by clang, all in one code object.
fn hip(target: &str, out: &Path) -> Result<BTreeMap<String, Counts>> {
    let path = out.join(format!("hip.{target}.co"));
    let mut clang = Command::new("clang-19");
    clang.args(["-x", "hip", "--offload-device-only", "--no-gpu-bundle-output", "-nogpuinc", "-nogpulib"]);
    clang.args(["-std=c++17", "-O3", "-fdeclspec", "-mcode-object-version=4", "-Wno-everything"]);
    clang.arg(format!("--offload-arch={target}"));
    clang.arg("-include").arg(setup::root().join("benches/amd-isa/hip.h"));
    setup::run(clang.arg(kernels()).arg("-o").arg(&path))?;
    counts(&path)
}

/// The kernels by nvcc and us, a code object each. One that we cannot make yet is named on stderr and left out.
fn ours(target: &str, out: &Path) -> Result<BTreeMap<String, Counts>> {
    let ptx = out.join("kernels.ptx");
    let mut nvcc = Release::V13_5.get()?.nvcc();
    nvcc.args(["-ptx", "-arch=compute_80", "-x", "cu", "-w", "-o"]).arg(&ptx);
    setup::run(nvcc.arg(kernels()))?;
    let folder = out.join(target);
    let _ = fs::remove_dir_all(&folder);
    let mut compile = Command::new(setup::root().join("target/cudaway/bin/cudaway"));
    compile.args(["compile", "--target", target, "--output"]).arg(&folder).arg(&ptx);
    // The same LLVM as clang's, and no code object of an older translator.
    compile.env("CUDAWAY_GFX_COMPILER", "tools").env("CUDAWAY_CACHE_MAX_MB", "0");
    compile.stdout(std::process::Stdio::null()).status().with_context(|| format!("{compile:?}"))?;
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
        all.append(&mut counts(&entry?.path())?);
    }
    Ok(all)
}

/// Each kernel of a code object; what it calls is in its own instructions or in nobody's.
fn counts(path: &Path) -> Result<BTreeMap<String, Counts>> {
    let mut objdump = Command::new("llvm-objdump-19");
    objdump.args(["-d", "--no-show-raw-insn", "--no-leading-addr"]).arg(path);
    let instructions = instructions(&said(&mut objdump)?);
    let resources = said(unit::example("kernel_resources")?.arg(path))?;
    let counts = resources.lines().map(|line| {
        let (name, numbers) = line.split_once(' ').context("a kernel's line")?;
        let n = *instructions.get(name).with_context(|| format!("no code of {name}"))?;
        let numbers: Vec<u32> = numbers.split(' ').map(str::parse).collect::<Result<_, _>>()?;
        let [vgprs, sgprs, lds_bytes, scratch_bytes] = numbers[..] else { bail!("{line}") };
        Ok((name.to_owned(), [n, vgprs, sgprs, lds_bytes, scratch_bytes]))
    });
    counts.collect()
}

/// What a program prints.
fn said(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("{command:?}"))?;
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

/// Instructions of each symbol, without what fills the space behind its end.
fn instructions(disassembly: &str) -> BTreeMap<String, u32> {
    let mut all = BTreeMap::new();
    let mut name = None;
    let (mut n, mut n_filling) = (0, 0);
    for line in disassembly.lines() {
        if let Some(symbol) = line.strip_prefix('<').and_then(|rest| rest.strip_suffix(">:")) {
            if let Some(name) = name.replace(symbol.to_owned()) {
                all.insert(name, n - n_filling);
            }
            (n, n_filling) = (0, 0);
        } else if let Some(word) =
            line.strip_prefix(['\t', ' ']).and_then(|rest| rest.split_whitespace().next())
        {
            n += 1;
            n_filling = if matches!(word, "s_code_end" | "s_nop") { n_filling + 1 } else { 0 };
        }
    }
    all.extend(name.map(|name| (name, n - n_filling)));
    all
}

fn table(target: &str, ours: &BTreeMap<String, Counts>, hip: &BTreeMap<String, Counts>) -> Result<String> {
    let mut text = format!(
        "\n`{target}`, ours / clang's:\n\n| kernel | {} | × instructions |\n|---|",
        COLUMNS.join(" | ")
    );
    text += &"--:|".repeat(COLUMNS.len() + 1);
    text.push('\n');
    let mut ratios: [Vec<f64>; COLUMNS.len()] = Default::default();
    for (name, theirs) in hip {
        let Some(mine) = ours.get(name) else { continue };
        let _ = write!(text, "| `{}` |", plain(name));
        for column in 0..COLUMNS.len() {
            let _ = write!(text, " {} / {} |", mine[column], theirs[column]);
            if theirs[column] > 0 {
                ratios[column].push(f64::from(mine[column]) / f64::from(theirs[column]));
            } else if mine[column] > 0 {
                ratios[column].push(f64::INFINITY);
            }
        }
        let _ = writeln!(text, " {:.2} |", f64::from(mine[0]) / f64::from(theirs[0]));
    }
    ensure!(!ratios[0].is_empty(), "no kernel was compiled for {target}");
    let _ = write!(text, "\nMedians of {} kernels:", ratios[0].len());
    for (column, ratios) in COLUMNS.iter().zip(&mut ratios) {
        let median = median(ratios);
        let outcome = median.map_or("none in any".to_owned(), |median| {
            format!("{median:.2} × ({})", if median <= GOAL { "met" } else { "**missed**" })
        });
        let _ = write!(text, " {column} {outcome};");
    }
    text.pop();
    text.push_str(".\n");
    Ok(text)
}

fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    let lower = values[(values.len() - 1) / 2];
    Some(lower.midpoint(upper))
}

/// `_Z6vecaddPKfS0_Pfi` is `vecadd`.
fn plain(symbol: &str) -> &str {
    let Some(rest) = symbol.strip_prefix("_Z") else { return symbol };
    let n_digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let name = rest[..n_digits].parse().ok().and_then(|length: usize| rest.get(n_digits..n_digits + length));
    name.unwrap_or(symbol)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fills_the_end_of_a_kernel_is_not_counted() {
        let text = "\n<a>:\n\ts_nop 0\n\tv_add_f32 v0, v1\n\ts_endpgm\n\ts_code_end\n\ts_code_end\n\n<b>:\n\ts_endpgm\n";
        assert_eq!(instructions(text), BTreeMap::from([("a".to_owned(), 3), ("b".to_owned(), 1)]));
    }

    #[test]
    fn the_median_of_an_even_number_is_between_the_two_in_the_middle() {
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&mut [4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&mut []), None);
    }

    #[test]
    fn kernels_are_called_as_in_the_source() {
        assert_eq!(plain("_Z13sgemm_blockedPKfS0_Pfi"), "sgemm_blocked");
        assert_eq!(plain("empty"), "empty");
    }
}
