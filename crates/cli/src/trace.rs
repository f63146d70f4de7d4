//! `cudaway trace`: starts a program as `cudaway run` does, with every call of it written down (crates/trace), and says
//! afterwards what it did.

mod child;
mod chrome;
mod read;
mod summary;

use std::ffi::OsString;
use std::fs::File;
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitCode, ExitStatus};

use anyhow::{Context as _, Result};

/// Runs a program and lists its CUDA calls: how many, how long, which failed, which are not supported.
///
/// It tells the CUDA and NVML calls of the program and of all that it starts, and what its kernels and copies took. The
/// program's output is left alone; the list goes to standard error.
#[derive(clap::Args)]
pub struct Arguments {
    /// Prints every call before the summary, with arguments and results.
    #[arg(long)]
    calls: bool,
    /// Writes a file for chrome://tracing and ui.perfetto.dev.
    #[arg(short, long, value_name = "FILE.json")]
    output: Option<PathBuf>,
    /// The folder of CUDAway's libraries, if it is not `lib` beside the folder of this program.
    #[arg(long)]
    lib: Option<PathBuf>,
    /// The program and its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_hint = clap::ValueHint::CommandWithArguments)]
    command: Vec<OsString>,
}

pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let output = arguments.output.as_ref();
    // Before the program runs, perhaps for hours.
    let output =
        output.map(|path| File::create(path).with_context(|| path.display().to_string())).transpose()?;
    let dir = tempfile::tempdir().context("a folder for the calls")?;
    let status = start(arguments, &dir.path().join("calls"))?;
    let processes = read::all(dir.path())?;
    if arguments.calls {
        processes.iter().for_each(|process| eprint!("{}", read::listing(process)));
    }
    eprint!("{}", summary::text(&processes));
    if let (Some(mut file), Some(path)) = (output, &arguments.output) {
        file.write_all(chrome::json(&processes).as_bytes()).with_context(|| path.display().to_string())?;
        eprintln!("cudaway: {} is for chrome://tracing or ui.perfetto.dev", path.display());
    }
    Ok(exit_code(status))
}

/// `cudaway run` knows how to put us in front of the program.
fn start(arguments: &Arguments, prefix: &std::path::Path) -> Result<ExitStatus> {
    let own = std::env::current_exe().context("where this program lies")?;
    let mut command = Command::new(own);
    command.arg("run");
    if let Some(lib) = &arguments.lib {
        command.arg("--lib").arg(lib);
    }
    command.arg("--").args(&arguments.command).env("CUDAWAY_TRACE", prefix);
    command.spawn().and_then(child::wait).context("cudaway run")
}

/// As shells do: a signal is 128 and its number.
fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}
