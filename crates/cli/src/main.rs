//! `cudaway`: the tools for users and packagers.

mod compile;
mod input;
mod table;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// CUDA programs without an NVIDIA GPU.
#[derive(Parser)]
#[command(name = "cudaway", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Compile(compile::Arguments),
}

fn main() -> ExitCode {
    config::logging::init();
    let answer = match Arguments::parse().command {
        Command::Compile(arguments) => compile::run(&arguments),
    };
    answer.unwrap_or_else(|error| {
        eprintln!("cudaway: {error:#}");
        ExitCode::FAILURE
    })
}
