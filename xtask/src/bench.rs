//! `cargo xtask bench`: measurements that end in a page of docs/.

mod peers;

use anyhow::Result;
use clap::Subcommand;

#[derive(Subcommand)]
pub enum Bench {
    /// The CPU device beside native C, PoCL and Intel's OpenCL: checked results, times, docs/performance.md.
    Peers(peers::Args),
}

pub fn run(bench: &Bench) -> Result<()> {
    match bench {
        Bench::Peers(args) => peers::run(args),
    }
}
