//! `cudaway`: the tools for users and packagers.

mod compile;
mod doctor;
mod input;
mod install;
mod kept;
mod links;
mod own;
mod run;
mod selftest;
mod share;
mod smi;
mod table;
mod tools;
mod trace;
mod version;

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory as _, Parser, Subcommand};
use tools::{Tool, Words};

/// Runs CUDA programs without an NVIDIA GPU.
///
/// Most of the time it is `cudaway run -- PROGRAM`. Where that does not work, `cudaway doctor -- PROGRAM` says why.
#[derive(Parser)]
#[command(name = "cudaway", disable_version_flag = true, arg_required_else_help = true)]
struct Arguments {
    /// Print the version; with --verbose, where this program and each of its libraries come from.
    #[arg(short = 'V', long)]
    version: bool,
    /// With --version: the build that this program and each library come from.
    #[arg(long, requires = "version")]
    verbose: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    Compile(compile::Arguments),
    Doctor(doctor::Arguments),
    Run(run::Arguments),
    Smi(smi::Arguments),
    Trace(trace::Arguments),
    /// Checks PTX as ptxas does, and writes it where machine code is asked for; takes ptxas's options.
    #[command(disable_help_flag = true)]
    Ptxas(tools::Words),
    /// Starts NVIDIA's nvcc, and has it write PTX where only machine code is asked for; takes nvcc's options.
    #[command(disable_help_flag = true)]
    Nvcc(tools::Words),
    Selftest(selftest::Arguments),
    Install(install::Arguments),
    Uninstall(install::Removal),
    Completions(share::Completions),
    #[command(hide = true)]
    Share(share::Share),
}

fn main() -> ExitCode {
    // As other tools: who reads only our first lines (`| head`) has seen enough.
    // SAFETY: before anything else runs.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    config::logging::init();
    let mut words = std::env::args_os();
    let answer = match words.next().as_deref().and_then(Tool::named) {
        Some(tool) => tool.run(&Words::new(words)),
        None => command(Arguments::parse()),
    };
    answer.unwrap_or_else(|error| {
        eprintln!("cudaway: {error:#}");
        ExitCode::FAILURE
    })
}

fn command(arguments: Arguments) -> anyhow::Result<ExitCode> {
    match arguments.command {
        _ if arguments.version => done(version::run(arguments.verbose)),
        Some(Command::Compile(arguments)) => compile::run(&arguments),
        Some(Command::Doctor(arguments)) => doctor::run(&arguments),
        Some(Command::Run(arguments)) => Ok(run::run(&arguments)),
        Some(Command::Smi(arguments)) => smi::run(&arguments),
        Some(Command::Trace(arguments)) => trace::run(&arguments),
        Some(Command::Ptxas(words)) => Tool::Ptxas.run(&words),
        Some(Command::Nvcc(words)) => Tool::Nvcc.run(&words),
        Some(Command::Selftest(arguments)) => done(selftest::run(&arguments)),
        Some(Command::Install(arguments)) => done(install::install(&arguments)),
        Some(Command::Uninstall(arguments)) => done(install::uninstall(&arguments)),
        Some(Command::Completions(arguments)) => done(share::completions(&arguments)),
        Some(Command::Share(arguments)) => done(share::share(&arguments)),
        None => Arguments::command().error(ErrorKind::MissingSubcommand, "what to do?").exit(),
    }
}

/// Of a command that succeeds or says why not.
fn done(answer: anyhow::Result<()>) -> anyhow::Result<ExitCode> {
    answer.map(|()| ExitCode::SUCCESS)
}
