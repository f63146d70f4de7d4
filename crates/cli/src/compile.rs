//! `cudaway compile`: code for programs before they run, for AMD GPUs (`amd`) and for the CPU device (`cpu`).

mod amd;
mod cpu;

use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;

use anyhow::{Context as _, Result, ensure};
use compiler::{Module, gcn};

use crate::input;

/// Compiles the kernels of PTX files, and of programs and libraries with PTX inside, before anything runs.
///
/// For AMD GPUs it writes a code object for every kernel. For the CPU device it fills a cache folder, which programs
/// look into where CUDAWAY_CACHE_PATH names it, or where it lies at /usr/share/cudaway/cache (docs/ahead-of-time.md).
#[derive(clap::Args)]
pub struct Arguments {
    /// An AMD GPU, as ROCm names it (gfx1100, gfx90a:sramecc+:xnack-), or cpu (cpu=native, cpu=x86-64-v3,
    /// cpu=x86-64-v4). Several may be given.
    #[arg(long, required = true, value_delimiter = ',')]
    target: Vec<Target>,
    /// For the CPU: a block that kernels are launched with, such as 256 or 16,16. May be given several times. Without
    /// any: one code for all blocks in a row where that is possible, and the usual tiles for the others.
    #[arg(long, value_name = "X,Y,Z")]
    block: Vec<Block>,
    /// Folder for the code objects (.), or the cache (the user's own).
    #[arg(short, long)]
    output: Option<PathBuf>,
    /// PTX text, a fat binary, or a program, library or object with fat binaries.
    #[arg(required = true)]
    files: Vec<PathBuf>,
}

/// Whom code is for.
#[derive(Clone, Debug)]
enum Target {
    Gfx(gcn::Target),
    /// A processor, by the name that the CPU device knows.
    Cpu(String),
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> core::result::Result<Target, String> {
        match text.strip_prefix("cpu") {
            Some("") => Ok(Target::Cpu(cpu::NATIVE.to_owned())),
            Some(name) => {
                let known = |name: &&str| cpu::PROCESSORS.contains(name);
                let name = name.strip_prefix('=').filter(known);
                let name = name.ok_or_else(|| format!("cpu may be {}", cpu::PROCESSORS.join(", ")))?;
                Ok(Target::Cpu(name.to_owned()))
            }
            None => text
                .parse()
                .map(Target::Gfx)
                .map_err(|error: <gcn::Target as FromStr>::Err| error.to_string()),
        }
    }
}

/// Threads of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Block([u32; 3]);

impl FromStr for Block {
    type Err = &'static str;

    fn from_str(text: &str) -> core::result::Result<Block, &'static str> {
        let mut block = [1; 3];
        let sides: Vec<&str> = text.split([',', 'x']).collect();
        let is_side = |side: u32| (1..=1024).contains(&side);
        for (index, side) in sides.iter().enumerate() {
            let side = side.trim().parse().ok().filter(|&side| is_side(side));
            *block.get_mut(index).ok_or("one to three numbers")? = side.ok_or("each number is 1 to 1024")?;
        }
        let n_threads: u32 = block.iter().product();
        if n_threads > 1024 { Err("a block has at most 1024 threads") } else { Ok(Block(block)) }
    }
}

pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let mut modules = Vec::new();
    let mut n_failed = 0;
    for file in &arguments.files {
        for unit in input::read(file, config::get().architecture())? {
            match Module::link(unit) {
                Ok(module) => modules.push(module),
                Err(diagnostics) => {
                    n_failed += 1;
                    eprintln!("{}", amd::lines(&diagnostics));
                }
            }
        }
    }
    let n_kernels: usize = modules.iter().map(|module| module.kernels().len()).sum();
    ensure!(n_kernels > 0 || n_failed > 0, "no kernel in there");

    let (mut gpus, mut processors) = (Vec::new(), Vec::new());
    for target in &arguments.target {
        match target {
            Target::Gfx(target) => gpus.push(target),
            Target::Cpu(name) => processors.push(&**name),
        }
    }
    if !gpus.is_empty() {
        n_failed += amd::run(&modules, &gpus, &arguments.output.clone().unwrap_or_else(|| ".".into()))?;
    }
    if !processors.is_empty() {
        let own = || config::get().cache_dir.clone();
        let folder =
            arguments.output.clone().or_else(own).context("name a folder for the cache with --output")?;
        let blocks: Vec<[u32; 3]> = arguments.block.iter().map(|block| block.0).collect();
        n_failed += cpu::run(&modules, &processors, &folder, &blocks)?;
    }
    if n_failed > 0 {
        eprintln!("{n_failed} failed");
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_a_gpu_or_a_processor() {
        let cpu = |text: &str| match text.parse() {
            Ok(Target::Cpu(name)) => name,
            other => panic!("{other:?}"),
        };
        assert_eq!(cpu("cpu"), "native");
        assert_eq!(cpu("cpu=x86-64-v3"), "x86-64-v3");
        assert!(matches!("gfx1100".parse(), Ok(Target::Gfx(_))));
        assert!("cpu=i386".parse::<Target>().is_err() && "cpus".parse::<Target>().is_err());
    }

    #[test]
    fn a_block_is_one_to_three_numbers() {
        assert_eq!("256".parse(), Ok(Block([256, 1, 1])));
        assert_eq!("16,16".parse(), Ok(Block([16, 16, 1])));
        assert_eq!("8x8x4".parse(), Ok(Block([8, 8, 4])));
        for wrong in ["", "0", "1,2,3,4", "1025", "64,32", "16,"] {
            assert!(wrong.parse::<Block>().is_err(), "{wrong}");
        }
    }
}
