//! `cudaway run`: starts a program with our libraries in front of it, after asking whether they would be.
//!
//! Exit codes: the program's own, and as env(1) has them 125 when we failed ourselves, 126 when the program cannot be
//! started or would run without us, 127 when there is no such program.

mod claims;
mod loaded;
mod plan;
mod preflight;
mod stub;
mod target;

use std::ffi::{CStr, OsString};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::Result;

use plan::Plan;
use preflight::Finding;
use target::Missing;

/// Runs a program, and everything that it starts, with CUDAway's libraries in front of NVIDIA's.
///
/// The exit status is the program's own; 125 if CUDAway itself failed, 126 if the program cannot be started or would not be
/// reached, 127 if there is no such program.
#[derive(clap::Args)]
pub struct Arguments {
    /// The devices: auto, hip, cpu, or the path of a HIP library (CUDAWAY_DEVICE).
    #[arg(long)]
    device: Option<OsString>,
    /// What to log: error, warn, info, debug, trace (CUDAWAY_LOG).
    #[arg(long)]
    log: Option<OsString>,
    /// Where to log instead of to stderr (CUDAWAY_LOG_FILE).
    #[arg(long)]
    log_file: Option<OsString>,
    /// One more path, or name without a version, by which the program asks for a library of CUDA's; may be repeated.
    #[arg(long, value_name = "NAME")]
    claim: Vec<String>,
    /// Claims no name: only what is asked for as libcuda.so.1 and the like comes to us.
    #[arg(long, conflicts_with = "claim")]
    no_claims: bool,
    /// Looks into every dlsym, or dlopen, of the program, for names that reach us in no other way; `log` tells of each
    /// that was redirected (CUDAWAY_HOOKS).
    #[arg(long, value_delimiter = ',', value_name = "dlsym,dlopen,log")]
    hooks: Vec<Hook>,
    /// Has the loader ask us for each library (LD_AUDIT): reaches copies that a program brings along in any way, and costs a
    /// second C library in every process.
    #[arg(long)]
    audit: bool,
    /// Only says whether the program would be reached; 0 when it would.
    #[arg(long)]
    verify: bool,
    /// Prints the command line instead of starting it.
    #[arg(long)]
    dry_run: bool,
    /// Starts nothing: prints as one JSON object whether the program would be reached, what is in the way, what would be
    /// preloaded and which variables would be set.
    #[arg(long, conflicts_with_all = ["verify", "dry_run"])]
    json: bool,
    /// A process of that program which runs already and would load our objects itself: whether it has loaded what would stay
    /// past us.
    #[arg(long, value_name = "PID", requires = "json")]
    into: Option<u32>,
    /// Starts the program even if it would not be reached.
    #[arg(long)]
    force: bool,
    /// The folder of CUDAway's libraries, if it is not `lib` beside the folder of this program.
    #[arg(long)]
    lib: Option<PathBuf>,
    /// The program and its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_hint = clap::ValueHint::CommandWithArguments)]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Hook {
    Dlsym,
    Dlopen,
    Log,
}

const FAILED: u8 = 125;
const CANNOT_RUN: u8 = 126;
const NOT_FOUND: u8 = 127;

pub fn run(arguments: &Arguments) -> ExitCode {
    start(arguments).unwrap_or_else(|error| {
        eprintln!("cudaway: {error:#}");
        ExitCode::from(FAILED)
    })
}

fn start(arguments: &Arguments) -> Result<ExitCode> {
    let images = match target::find(&arguments.command[0]).and_then(|path| target::images(&path)) {
        Ok(images) => images,
        Err(missing) => return Ok(refuse(&missing)),
    };
    let lib = crate::own::lib(arguments.lib.as_deref())?;
    let check =
        |plan: &Plan| images.iter().flat_map(|image| preflight::check(image, plan)).collect::<Vec<_>>();
    let mut plan = plan::make(arguments, &lib, &[])?;
    let mut findings = check(&plan);
    let past: Vec<&CStr> = findings.iter().filter_map(Finding::past).collect();
    if !past.is_empty() {
        let alone = plan::make(arguments, &lib, &past)?;
        if alone.preload != plan.preload {
            findings = check(&alone);
            plan = alone;
        }
    }
    if arguments.json {
        if let Some(pid) = arguments.into {
            findings.extend(loaded::check(pid, &lib)?);
        }
        println!("{}", plan.json(&findings));
        let is_reached = arguments.force || findings.iter().all(Finding::leaves_us);
        return Ok(if is_reached { ExitCode::SUCCESS } else { ExitCode::from(CANNOT_RUN) });
    }
    if let Some(why) = &plan.unclaimed {
        eprintln!(
            "cudaway: no names are claimed, so what the program opens as libcuda.so or by a path does not come to us: {why}"
        );
    }
    let mut is_reached = true;
    for finding in &findings {
        match finding {
            Finding::Unreached(why) | Finding::Past(_, why) => {
                is_reached = false;
                eprintln!("cudaway: not reached: {why}");
            }
            Finding::Partly(why) => eprintln!("cudaway: reached in part: {why}"),
            // Most programs that link such a library do without it: who starts one is not told each time.
            Finding::Refused(why) if arguments.verify => eprintln!("cudaway: refused: {why}"),
            Finding::Refused(_) => {}
        }
    }
    if arguments.dry_run {
        println!("{}", plan.command_line(&arguments.command));
    }
    if !is_reached && !arguments.force {
        return Ok(ExitCode::from(CANNOT_RUN));
    }
    if arguments.dry_run || arguments.verify {
        return Ok(ExitCode::SUCCESS);
    }
    let mut command = Command::new(&arguments.command[0]);
    command.args(&arguments.command[1..]).envs(plan.variables);
    let error = command.exec();
    Ok(refuse(&Missing::NotExecutable(format!("{}: {error}", arguments.command[0].to_string_lossy()))))
}

fn refuse(missing: &Missing) -> ExitCode {
    let (why, code) = match missing {
        Missing::NotFound(why) => (why, NOT_FOUND),
        Missing::NotExecutable(why) => (why, CANNOT_RUN),
    };
    eprintln!("cudaway: {why}");
    ExitCode::from(code)
}
