//! `cargo xtask bench`: measurements that end in a page of docs/.

mod amd_isa;
mod blas;
mod by_turns;
mod copies;
pub mod dnn;
mod fft;
mod first;
mod peers;
mod preload;
mod rand;
mod section;
mod solver;
mod sparse;
mod thrust;

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Subcommand;

#[derive(Subcommand)]
pub enum Bench {
    /// The CPU device beside native C, PoCL and Intel's OpenCL: checked results, times, docs/performance.md.
    Peers(peers::Args),
    /// Our code for AMD GPUs beside AMD's own compiler's: instructions, registers, scratch, LDS; docs/performance.md.
    AmdIsa(amd_isa::Args),
    /// Products through cuBLAS on the CPU device beside OpenBLAS called directly; docs/performance.md.
    Blas(blas::Args),
    /// Copies of all kinds and small launches on the CPU device beside memcpy and loops; docs/performance.md.
    Copies(copies::Args),
    /// Transforms on the CPU beside FFTW 3's; docs/performance.md.
    Fft(fft::Args),
    /// What is waited for with an empty cache: kernels by CPU for each PTX instruction, programs cold and warm; docs/performance.md.
    First(first::Args),
    /// Layers of networks through cuDNN on the CPU device beside oneDNN; docs/performance.md.
    Dnn(dnn::Args),
    /// Factorizations, eigenvalues and singular values through cuSOLVER on the CPU device beside LAPACK; docs/performance.md.
    Solver(solver::Args),
    /// Numbers of cuRAND's generators on the CPU device beside NVIDIA's host generators and Intel's MKL; docs/performance.md.
    Rand(rand::Args),
    /// Products and systems of sparse matrices through cuSPARSE on the CPU device beside Intel's MKL and SciPy; docs/performance.md.
    Sparse(sparse::Args),
    /// Thrust's algorithms on the CPU device beside Thrust's own OpenMP and TBB backends; docs/performance.md.
    Thrust(thrust::Args),
    /// What our objects cost the start of a program that never asks for CUDA; docs/performance.md.
    Preload(preload::Args),
}

pub fn run(bench: &Bench) -> Result<()> {
    match bench {
        Bench::Peers(args) => peers::run(args),
        Bench::AmdIsa(args) => amd_isa::run(args),
        Bench::Blas(args) => blas::run(args),
        Bench::Copies(args) => copies::run(args),
        Bench::Fft(args) => fft::run(args),
        Bench::First(args) => first::run(args),
        Bench::Dnn(args) => dnn::run(args),
        Bench::Solver(args) => solver::run(args),
        Bench::Rand(args) => rand::run(args),
        Bench::Sparse(args) => sparse::run(args),
        Bench::Thrust(args) => thrust::run(args),
        Bench::Preload(args) => preload::run(args),
    }
}

/// Which of our objects a bench beside others measures.
#[derive(clap::Args)]
struct Ours {
    /// Measure the objects in this folder; docs/performance.md is left as it is.
    #[arg(long)]
    lib: Option<PathBuf>,
    /// Measure the objects of target/cudaway/lib as they are, and not all as they are shipped.
    #[arg(long, conflicts_with = "lib")]
    local: bool,
    /// Measure code for processors without AVX-512 on one that has it, and peers that can be told to do without: for the page's
    /// part of such processors.
    #[arg(long)]
    narrow: bool,
}

impl Ours {
    /// Where they are, built if they have to be.
    fn objects(&self) -> Result<PathBuf> {
        if self.narrow {
            section::narrow();
        }
        let local = self.local.then(crate::setup::lib_dir);
        objects(self.lib.as_deref().or(local.as_deref()))
    }

    /// By which what is measured without them is built.
    fn profile(&self) -> &'static str {
        if self.local { "local" } else { "release" }
    }

    /// What a page says of them.
    fn built(&self) -> &'static str {
        if self.local { ", the objects of target/cudaway/lib" } else { "" }
    }

    /// Objects that no page is written of.
    fn are_given(&self) -> bool {
        self.lib.is_some()
    }
}

/// The folder of the objects that are measured: the one given, or ours, built as they are shipped.
fn objects(given: Option<&Path>) -> Result<PathBuf> {
    match given {
        Some(lib) => Ok(std::path::absolute(lib)?),
        None => crate::build::to_measure(),
    }
}
