//! `cargo xtask`: everything a developer, a packager or CI does with this tree.
//! Each subcommand is one module; this file only names them.

mod bench;
mod build;
mod clients;
mod codegen;
#[cfg(test)]
mod crates;
mod cutlass;
mod demo;
mod dist;
mod frontend;
mod libraries;
mod on_nvidia;
mod reach;
mod samples;
mod session;
mod settings;
mod setup;
mod site;
mod symbols;
mod test;
mod toolchain;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "CUDAway's developer commands")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Turn tools/data into generated sources, version scripts and docs/coverage.md.
    Codegen(codegen::Args),
    /// Build the shared objects and lay them out under target/cudaway/lib.
    Build(build::Args),
    /// Measure, and write what was measured into docs/.
    #[command(subcommand)]
    Bench(bench::Bench),
    /// Run clients from PyPI and crates.io with their own test suites; writes docs/clients.md.
    Clients(clients::Args),
    /// Run CUTLASS's examples for sm_90a, sm_100a and sm_120a, which a folder has built, with small problems; writes docs/cutlass.md.
    Cutlass(cutlass::Args),
    /// Build the archives that users install, into target/dist.
    Dist(dist::Args),
    /// Set up, build and run two unmodified nvcc binaries with no GPU.
    Demo(demo::Args),
    /// Pack what a machine with an NVIDIA GPU is asked, for tools/on-nvidia/run.py there: its answers are what ours should be.
    OnNvidia(on_nvidia::Args),
    /// Run cudnn-frontend's samples, which a folder has built, on the CPU device; writes docs/cudnn-frontend.md.
    Frontend(frontend::Args),
    /// Try which kinds of programs get our driver by which method (docs/reach.md), in a mount namespace.
    Reach(reach::Args),
    /// Build NVIDIA's cuda-samples, or CUDALibrarySamples, and run them on our libraries; writes docs/samples.md, or docs/library-samples.md.
    Samples(samples::Args),
    /// Run the session of README.md's picture, and draw it anew: docs/session.svg.
    Session(session::Args),
    /// Count in which setting of the CPU device the kernels of the corpora run, and why; writes docs/settings.md.
    Settings(settings::Args),
    /// Wrap the prose of the pages, check their links, and build them into a site that a browser shows (target/site/html).
    Site(site::Args),
    /// Compare the exports, nodes, SONAMEs and needs of built objects with the committed lists.
    Symbols(symbols::Args),
    /// Set up, build and run every check; `--all` adds the CUDA 11.8 and 12.4 toolchains.
    Test(test::Args),
}

fn main() -> anyhow::Result<()> {
    match Cli::parse().command {
        Command::Codegen(args) => codegen::run(&args),
        Command::Build(args) => build::run(&args),
        Command::Bench(bench) => bench::run(&bench),
        Command::Clients(args) => clients::run(&args),
        Command::Cutlass(args) => cutlass::run(&args),
        Command::Dist(args) => dist::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::OnNvidia(args) => on_nvidia::run(&args),
        Command::Frontend(args) => frontend::run(&args),
        Command::Reach(args) => reach::run(&args),
        Command::Samples(args) => samples::run(&args),
        Command::Session(args) => session::run(&args),
        Command::Settings(args) => settings::run(&args),
        Command::Site(args) => site::run(&args),
        Command::Symbols(args) => symbols::run(&args),
        Command::Test(args) => test::run(&args),
    }
}
