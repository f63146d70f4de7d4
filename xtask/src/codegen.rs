//! `cargo xtask codegen`: `tools/data` and the bodies that exist → generated sources, version scripts, coverage.

mod facts;
#[cfg(feature = "headers")]
mod headers;

#[derive(clap::Args)]
pub struct Args {
    /// Read NVIDIA's public headers again (from PyPI wheels) and refresh the types and signatures.
    #[arg(long)]
    headers: bool,
    /// Change nothing; fail when a generated file is out of date.
    #[arg(long)]
    check: bool,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    if args.headers {
        #[cfg(feature = "headers")]
        return headers::run();
        #[cfg(not(feature = "headers"))]
        anyhow::bail!("this xtask has no bindgen: cargo run -p xtask --features headers -- codegen --headers");
    }
    Ok(())
}

use crate::setup::root;
