//! (being written)
use crate::{setup, toolchain::Release};

#[derive(clap::Args)]
pub struct Args {
    /// Also build and run the examples with CUDA 11.8 and 12.4 (about 2 GB of downloads, once).
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    setup: setup::Args,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    args.setup.apply();
    setup::build_packages()?;
    for release in [Release::V13_5, Release::V12_4, Release::V11_8] {
        println!("{:?}", release.get()?);
    }
    Ok(())
}
