//! `cargo xtask bench`: measurements that end in a page of docs/.

mod amd_isa;
mod peers;
mod section;

use anyhow::Result;
use clap::Subcommand;

#[derive(Subcommand)]
pub enum Bench {
    /// The CPU device beside native C, PoCL and Intel's OpenCL: checked results, times, docs/performance.md.
    Peers(peers::Args),
    /// Our code for AMD GPUs beside AMD's own compiler's: instructions, registers, scratch, LDS; docs/performance.md.
    AmdIsa(amd_isa::Args),
}

pub fn run(bench: &Bench) -> Result<()> {
    match bench {
        Bench::Peers(args) => peers::run(args),
        Bench::AmdIsa(args) => amd_isa::run(args),
    }
}
