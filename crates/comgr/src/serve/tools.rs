//! Compiler and linker as programs: ROCm's own `clang` and `ld.lld`, or a distribution's LLVM.

use std::fs;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use comgr::protocol::Reply;

use super::{Job, OPAQUE_POINTERS, OPTIONS, wants_opaque_pointers};

/// Why there is no code object.
enum Failure {
    /// Not the text's fault.
    Unavailable(String),
    Refused(String),
}

pub fn compile(compiler: &Path, linker: &Path, job: &Job) -> Reply {
    let mut answer = build(compiler, linker, job, &[]);
    if let Err(Failure::Refused(log)) = &answer
        && wants_opaque_pointers(log)
    {
        answer = build(compiler, linker, job, &OPAQUE_POINTERS);
    }
    match answer {
        Ok((code, log)) => Reply::Done { code, log },
        Err(Failure::Unavailable(why)) => Reply::Unavailable(why),
        Err(Failure::Refused(log)) => Reply::Refused(log),
    }
}

fn build(compiler: &Path, linker: &Path, job: &Job, more: &[&str]) -> Result<(Vec<u8>, String), Failure> {
    let io = |error: std::io::Error| Failure::Unavailable(error.to_string());
    let folder = tempfile::tempdir().map_err(io)?;
    let (relocatable, executable) = (folder.path().join("kernel.o"), folder.path().join("kernel.co"));
    let mut command = Command::new(compiler);
    if compiler.file_name().is_some_and(|name| name == "llc") {
        // llc is not told features by the processor's name, nor knows the driver's options.
        let mut parts = job.target.split(':');
        command.arg("-mtriple=amdgcn-amd-amdhsa").arg(format!("-mcpu={}", parts.next().unwrap_or_default()));
        let features: Vec<String> = parts.filter_map(feature).collect();
        if !features.is_empty() {
            command.arg(format!("-mattr={}", features.join(",")));
        }
        command.args(["-O2", "--amdhsa-code-object-version=4", "-filetype=obj"]);
        // The pair begins with what makes clang hand the other on.
        command.args(more.iter().filter(|option| **option != "-mllvm"));
        command.arg("-o").arg(&relocatable).arg("-");
    } else {
        command.args(["-x", "ir", "--target=amdgcn-amd-amdhsa", "-nogpulib", "-c"]);
        command.arg(format!("-mcpu={}", job.target)).args(OPTIONS).args(more);
        command.arg("-o").arg(&relocatable).arg("-");
    }
    let mut log = run(&mut command, job)?;
    log += &run(Command::new(linker).arg("-shared").arg("-o").arg(&executable).arg(&relocatable), job)?;
    Ok((fs::read(&executable).map_err(io)?, log))
}

/// `xnack-` as LLVM writes it: `-xnack`.
fn feature(text: &str) -> Option<String> {
    let (name, sign) = text.split_at_checked(text.len().checked_sub(1)?)?;
    matches!(sign, "+" | "-").then(|| format!("{sign}{name}"))
}

/// A compiler that does not come to an end is not to outlive the helper, which the time limit ends.
fn end_with_parent() -> std::io::Result<()> {
    // SAFETY: a plain system call on this process.
    match unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// Runs one of them with the text as its input; gives what it printed.
fn run(command: &mut Command, job: &Job) -> Result<String, Failure> {
    // SAFETY: between fork and exec only system calls.
    unsafe { command.pre_exec(end_with_parent) };
    let start = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let name = command.get_program().to_string_lossy().into_owned();
    let mut child = start.map_err(|error| Failure::Unavailable(format!("{name}: {error}")))?;
    // Compilers read all before they print; one that ends early says why.
    drop(child.stdin.take().map(|mut input| input.write_all(job.text.as_bytes())));
    let output = child.wait_with_output();
    let Output { status, stderr, .. } =
        output.map_err(|error| Failure::Unavailable(format!("{name}: {error}")))?;
    let said = String::from_utf8_lossy(&stderr).into_owned();
    if status.success() {
        return Ok(said);
    }
    // clang and llc say so in these words; another compiler may know it.
    let is_unknown =
        ["invalid target ID", "unknown target CPU", "is not a recognized processor", "unsupported argument"]
            .into_iter()
            .any(|words| said.contains(words));
    if is_unknown {
        return Err(Failure::Unavailable(format!("it does not know {}", job.target)));
    }
    Err(Failure::Refused(format!("{name}: {status}\n{said}")))
}
