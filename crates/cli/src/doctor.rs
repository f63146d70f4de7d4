//! `cudaway doctor`: why a program does or does not run on CUDAway. Each finding says what was seen, why it matters and what
//! mends it.
//!
//! Exit codes: 0 nothing found, 1 warnings, 2 something that keeps programs from running.

mod bundle;
mod device;
mod elf;
mod files;
mod finding;
pub mod function;
mod loader;
mod process;
mod search;
mod subject;
mod target;
mod unit;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, ensure};

use finding::{Finding, Level};
use subject::Subject;

/// Says what keeps programs from running here, why, and what mends it.
///
/// It looks at CUDAway's files, at what the loader finds, at the device, and runs a kernel end to end; and, if given, at a process
/// that runs, at a systemd unit, or at a program that would be started. The exit status is 0 if nothing was found, 1 with
/// warnings, 2 with faults.
#[derive(clap::Args)]
pub struct Arguments {
    /// A process to look at: does it use CUDAway's libraries, and if not, why.
    #[arg(long, conflicts_with = "command")]
    pid: Option<u32>,
    /// A systemd unit to look at, and its main process, if that runs.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["command", "pid"])]
    unit: Option<String>,
    /// Runs the program once, for 20 seconds at most, and has its loader tell which file answers each CUDA name.
    #[arg(long)]
    loader: bool,
    /// Writes the report, what is mapped, the environment without its secrets, and versions into one archive for a bug report.
    #[arg(long, value_name = "FILE.tar.gz|FILE.tar.zst")]
    bundle: Option<PathBuf>,
    /// Prints one JSON object, for scripts.
    #[arg(long)]
    json: bool,
    /// The folder of CUDAway's libraries, if it is not `lib` beside the folder of this program.
    #[arg(long)]
    lib: Option<PathBuf>,
    /// Runs a kernel in this process and says how it went; what the check of a kernel end to end starts.
    #[arg(long, hide = true)]
    self_test: bool,
    /// A program as it would be started, to be looked at; it is started only with --loader.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_hint = clap::ValueHint::CommandWithArguments)]
    command: Vec<OsString>,
}

pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let lib = crate::own::lib(arguments.lib.as_deref())?;
    if arguments.self_test {
        return Ok(function::test_here(&lib));
    }
    ensure!(!arguments.loader || !arguments.command.is_empty(), "--loader needs a program: -- PROGRAM");
    let (mut findings, pid) = match &arguments.unit {
        Some(name) => unit::check(&lib, name),
        None => (Vec::new(), arguments.pid),
    };
    let subject = Subject::of(pid);
    findings.extend(check(arguments, &lib, &subject)?);
    if arguments.json {
        println!("{}", finding::json(&findings));
    } else {
        print!("{}", finding::text(&findings));
    }
    if let Some(file) = &arguments.bundle {
        bundle::write(file, &lib, &subject, &findings)?;
    }
    let worst = findings.iter().map(|finding| finding.level).max().unwrap_or(Level::Fine);
    Ok(ExitCode::from(match worst {
        Level::Fine => 0,
        Level::Warning => 1,
        Level::Fault => 2,
    }))
}

fn check(arguments: &Arguments, lib: &Path, subject: &Subject) -> Result<Vec<Finding>> {
    let mut findings = files::check(lib);
    if let Some(why) = crate::own::unlinked().filter(|_| arguments.lib.is_none()) {
        files::tell_of_links(&mut findings, why);
    }
    // A kernel cannot run on objects that are broken, and would only say so again in other words.
    let is_whole = findings.iter().all(|finding| finding.level != Level::Fault);
    findings.extend(search::check(lib));
    if !arguments.command.is_empty() {
        findings.extend(target::check(lib, &arguments.command)?);
    }
    if arguments.loader {
        findings.extend(loader::check(lib, &arguments.command)?);
    }
    if let Some(pid) = subject.pid {
        findings.extend(process::check(lib, subject, pid));
    }
    findings.extend(device::check(subject));
    findings.push(function::cache(subject));
    findings.extend(function::shipped_caches(subject));
    if is_whole {
        findings.push(function::end_to_end(lib, subject)?);
    }
    Ok(findings)
}
