//! Whether LLVM takes the best code of each kernel of PTX files for valid, without compiling it: `cargo run -p hip-cpu --example
//! valid -- [--seed N] FILE.ptx …`.
//!
//! A kernel whose best code cannot be made runs on in its baseline code, right and slow, and a program that is tried says
//! nothing of it. Kernels are translated for blocks of several shapes and for vectors of each width; `--seed` draws some of them
//! for each kernel.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use compiler::back::cpu::Options;
use compiler::{Diagnostic, Module, Program, Source};
use hip_cpu::{budget, jit};
use rayon::prelude::*;

#[derive(Parser)]
struct Cli {
    /// Three ways for each kernel, drawn by this number, in place of all.
    #[arg(long)]
    seed: Option<u64>,
    #[arg(required = true)]
    files: Vec<PathBuf>,
}

const BLOCKS: [[u32; 3]; 7] =
    [[256, 1, 1], [32, 1, 1], [64, 1, 1], [128, 1, 1], [512, 1, 1], [1024, 1, 1], [32, 4, 1]];

/// Bits of a vector, and whether products of bytes are one instruction.
const VECTORS: [(u32, bool); 4] = [(512, true), (512, false), (256, false), (128, false)];

/// How many ways a kernel is tried in when they are drawn.
const DRAWN: u64 = 3;

/// The ways of a kernel that needs blocks of this shape, or has at most so many threads.
fn ways(name: &str, needs: Option<[u32; 3]>, most: Option<u32>, seed: Option<u64>) -> Vec<Options> {
    let fits = |block: &[u32; 3]| most.is_none_or(|most| block.iter().product::<u32>() <= most);
    let mut blocks: Vec<_> = BLOCKS.into_iter().filter(fits).collect();
    if let Some(only) = needs.or_else(|| blocks.is_empty().then_some([1, 1, 1])) {
        blocks = vec![only];
    }
    let all: Vec<_> = blocks.iter().flat_map(|block| VECTORS.map(|vectors| (*block, vectors))).collect();
    let numbers: Vec<usize> = match seed {
        None => (0..all.len()).collect(),
        Some(seed) => (0..DRAWN).map(|nth| drawn((seed, name, nth)) as usize % all.len()).collect(),
    };
    let options = |(block, (bits, has_vnni))| Options { has_vnni, ..Options::new(block, bits) };
    numbers.into_iter().map(|number| options(all[number])).collect()
}

fn drawn(of: (u64, &str, u64)) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

fn said(diagnostics: Vec<Diagnostic>) -> String {
    diagnostics.iter().map(Diagnostic::to_string).collect::<Vec<_>>().join("\n")
}

/// How many texts were looked at, and what is wrong with them.
fn look(path: &Path, seed: Option<u64>) -> Result<(usize, Vec<String>), String> {
    let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
    let source = Source { name: path.display().to_string(), text: ptx::text(&bytes).into_owned() };
    let module = Module::link(vec![source]).map_err(said)?;
    let look = |index: usize| {
        let header = &module.kernels()[index];
        let program = module.lower(index);
        let ways = ways(&header.name, header.req_ntid, header.max_threads(), seed);
        let wrong = ways.iter().filter_map(|options| {
            let error = look_at(&program, options).err()?;
            let Options { block, vector_bits, .. } = options;
            Some(format!("{}, blocks of {block:?}, vectors of {vector_bits} bits: {error}", header.name))
        });
        (wrong.collect::<Vec<_>>(), ways.len())
    };
    let looked: Vec<_> = (0..module.kernels().len()).into_par_iter().map(look).collect();
    let n = looked.iter().map(|(_, n)| n).sum();
    Ok((n, looked.into_iter().flat_map(|(wrong, _)| wrong).collect()))
}

fn look_at(program: &Program, options: &Options) -> Result<(), String> {
    let (code, _) = budget::emit(program, &program.kernels[0], options).map_err(said)?;
    jit::check_text(&program.kernels[0].name, &code.text).map_err(|error| error.to_string())
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let (mut n, mut n_wrong) = (0, 0);
    for path in &cli.files {
        let (looked, wrong) = look(path, cli.seed).unwrap_or_else(|error| (0, vec![error]));
        wrong.iter().for_each(|it| eprintln!("{}: {it}", path.display()));
        n += looked;
        n_wrong += wrong.len();
    }
    println!("{n} texts, {n_wrong} of them wrong");
    if n > 0 && n_wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
