//! AMD GPUs without one: code objects of a program that nvcc built, and the program itself, unmodified, on a GPU that
//! tinygrad's emulator plays, behind a HIP library with ROCm's ABI (crates/testkit/programs/hip_emulated.c).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use testkit::{Installed, Run};

use super::examples::{self, Form};
use super::report::{Outcome, Report};
use super::unit;
use crate::setup;
use crate::toolchain::Release;

/// An example and the GPUs it runs on: gfx90a's code is Debian's comgr's, which does not know the others; gfx1100 has waves of 32
/// lanes, the others of 64.
const RUNS: &[(&str, &str)] = &[
    ("vector_add", "gfx90a"),
    ("vector_add", "gfx942"),
    ("vector_add", "gfx1100"),
    ("constant_and_globals", "gfx1100"),
    ("matmul_tiled", "gfx1100"),
    ("histogram", "gfx942"),
];

/// One GPU of each generation that Debian's compiler knows: nothing after gfx1036 and gfx90a.
const OLD_GPUS: [&str; 3] = ["gfx900", "gfx90a", "gfx1030"];

/// What kernel_says.cu prints on any GPU; blocks print in any order, threads of a warp in theirs.
const SAID: &str = "\
kernel: block 0 thread  0 half 0.0 and so on
kernel: block 0 thread  1 half 0.5 and so on
kernel: block 0 thread  2 half 1.0 and so on
kernel: block 1 thread  0 half 0.0 and so on
kernel: block 1 thread  1 half 0.5 and so on
kernel: block 1 thread  2 half 1.0 and so on
says: cudaSuccess
holds: cudaSuccess
fails: ERROR
again: ERROR
reset: cudaSuccess
after: cudaSuccess
";
const ASSERTION: &str =
    "void check(int): block: [0,0,0], thread: [7,0,0] Assertion `(int)threadIdx.x < n` failed.\n";

/// What kernel_launches.cu prints on any device: by the programming guide, as its comments say.
const LAUNCHED: &str = "\
order: 14 1 11 111 112 113 12 121 122 123 13 131 132 133 2
streams: 1 3 2
copied: 2 1 2 0 0 0 0 0 400
large: 2646700
errors: 0 9 0 9
taken: 0 9 0 9
gone: 0 0 0 0
launched: 0
recursive: 7 0 1 2 3 4 6 7
its error: 9
tails: 3 0 1 2 0
answers: 0 0 0 69 69
wrong marks: 0
graph: 12 5 1 11 12 13 6 5 1 11 12 13 6
parent
child 1
child 2
memory: 0 7 0
trap: cudaErrorLaunchFailure
PASSED
";

pub fn run(installed: &Installed, report: &mut Report) {
    report.note("cudaway compile: a code object for every kernel of vector_add", compile(installed));
    for gpu in OLD_GPUS {
        let what = format!("every kernel of the value rows by comgr of ROCm 5.2 for {gpu}");
        report.note(&what, rows(installed, gpu));
    }
    let Some(tinygrad) = std::env::var_os("TINYGRAD").map(PathBuf::from) else {
        let why = "TINYGRAD does not name a checkout of tinygrad".to_owned();
        return report.note("programs on an emulated GPU", Outcome::Skipped(why));
    };
    let folder = match testkit::temporary() {
        Ok(folder) => folder,
        Err(error) => return report.note("programs on an emulated GPU", Err::<(), _>(error.into())),
    };
    let library = match build_library(folder.path()) {
        Ok(library) => library,
        Err(error) => return report.note("the emulated GPU's HIP library", Err::<(), _>(error)),
    };
    for (name, gpu) in RUNS {
        report.note(&format!("{name} on {gpu}"), emulated(installed, &library, &tinygrad, name, gpu));
    }
    report.note("textures and a surface on gfx1100", textures(installed, &library, &tinygrad));
    for gpu in ["gfx942", "gfx1100"] {
        report.note(
            &format!("kernels that launch kernels on {gpu}"),
            launches(installed, &library, &tinygrad, gpu),
        );
        for name in ["device_graphs", "updatable_nodes"] {
            let what = format!("{name} on {gpu}");
            report.note(&what, rdc(installed, &library, &tinygrad, gpu, &format!("examples/{name}.cu")));
        }
        let asks = "crates/testkit/programs/kernel_asks.cu";
        report.note(
            &format!("kernels that ask what kernels are like on {gpu}"),
            rdc(installed, &library, &tinygrad, gpu, asks),
        );
        let said = says(installed, &library, &tinygrad, gpu);
        report.note(&format!("printf, assert and trap on {gpu}"), said);
    }
}

fn compile(installed: &Installed) -> Result<()> {
    let program = examples::build(&Release::V13_5.get()?, Form::Static, "vector_add", installed)?;
    let folder = testkit::temporary()?;
    let tool = installed.lib().with_file_name("bin").join("cudaway");
    let mut command = Command::new(&tool);
    command.args(["compile", "--target", "gfx90a,gfx1100", "-o"]).arg(folder.path()).arg(&program);
    let output = command.env("CUDAWAY_CACHE_DIR", folder.path().join("cache")).output();
    let output = output.with_context(|| tool.display().to_string())?;
    let table = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "{table}{}", String::from_utf8_lossy(&output.stderr));
    ensure!(table.lines().count() == 3 && table.contains("vector_add"), "{table}");
    let made = fs::read_dir(folder.path())?.flatten();
    let n = made.filter(|entry| entry.path().extension().is_some_and(|it| it == "co")).count();
    ensure!(n == 2, "{n} code objects");
    Ok(())
}

fn rows(installed: &Installed, gpu: &str) -> Result<()> {
    let mut command = unit::example("rows_by_comgr")?;
    command.arg("/usr/lib/x86_64-linux-gnu/libamd_comgr.so.2");
    setup::run(command.arg(installed.lib().join("cudaway-comgr")).arg(gpu))
}

fn build_library(folder: &Path) -> Result<PathBuf> {
    let source = setup::root().join("crates/testkit/programs/hip_emulated.c");
    let library = folder.join("libhip_emulated.so");
    let mut command = Command::new("cc");
    command.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(source).arg("-lpthread");
    let output = command.output().context("cc")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(library)
}

/// `program` on an emulated GPU, with a cache of its own in `folder`.
fn on(run: Run, library: &Path, tinygrad: &Path, gpu: &str, folder: &Path) -> Run {
    let run = run.env("CUDAWAY_DEVICE", library).env("CUDAWAY_CACHE_DIR", folder.join("cache"));
    let run = run.env("HIP_EMULATED_SERVER", setup::root().join("tools/amd-emu/serve.py"));
    run.env("HIP_EMULATED_GPU", gpu).env("TINYGRAD", tinygrad).limit(Duration::from_secs(600))
}

fn says(installed: &Installed, library: &Path, tinygrad: &Path, gpu: &str) -> Result<()> {
    let folder = testkit::temporary()?;
    let source = setup::root().join("crates/testkit/programs/kernel_says.cu");
    let program = folder.path().join("kernel_says");
    setup::run(Release::V13_5.get()?.nvcc().arg("-w").arg("-o").arg(&program).arg(source))?;
    for (argument, error, words) in
        [(None, "cudaErrorAssert", ASSERTION), (Some("trap"), "cudaErrorLaunchFailure", "")]
    {
        let run = on(installed.preloaded(&program), library, tinygrad, gpu, folder.path());
        let ended = argument.into_iter().fold(run, Run::arg).run()?;
        ensure!(ended.stdout == SAID.replace("ERROR", error), "{}", ended.describe());
        ensure!(
            ended.stderr.ends_with(words) && ended.stderr.is_empty() == words.is_empty(),
            "{}",
            ended.describe()
        );
    }
    Ok(())
}

/// kernel_launches.cu on the CPU device, whose order is native, and on an emulated GPU, where the host runs what kernels have asked for.
fn launches(installed: &Installed, library: &Path, tinygrad: &Path, gpu: &str) -> Result<()> {
    let folder = testkit::temporary()?;
    let source = setup::root().join("crates/testkit/programs/kernel_launches.cu");
    let program = folder.path().join("kernel_launches");
    let mut nvcc = Release::V13_5.get()?.nvcc();
    setup::run(
        nvcc.args(["-w", "-rdc=true", "-Xnvlink", "--suppress-stack-size-warning", "-o"])
            .arg(&program)
            .arg(source),
    )?;
    for is_emulated in [false, true] {
        let run = installed.preloaded(&program);
        let run = if is_emulated { on(run, library, tinygrad, gpu, folder.path()) } else { run };
        let ended = run.run()?;
        ensure!(
            ended.passed() && ended.stdout == LAUNCHED && ended.stderr.is_empty(),
            "{}",
            ended.describe()
        );
    }
    Ok(())
}

/// A program that checks itself, with the device runtime: on the CPU device, and on an emulated GPU, which has to have all of it.
fn rdc(installed: &Installed, library: &Path, tinygrad: &Path, gpu: &str, source: &str) -> Result<()> {
    let folder = testkit::temporary()?;
    let program = folder.path().join("program");
    let mut nvcc = Release::V13_5.get()?.nvcc();
    nvcc.args(["-w", "-rdc=true", "-Xnvlink", "--suppress-stack-size-warning", "-o"]).arg(&program);
    setup::run(nvcc.arg("-I").arg(setup::root().join("examples")).arg(setup::root().join(source)))?;
    for is_emulated in [false, true] {
        let run = installed.preloaded(&program);
        let run = if is_emulated { on(run, library, tinygrad, gpu, folder.path()) } else { run };
        let ended = run.run()?;
        let has_all = !ended.stdout.contains(": no");
        ensure!(ended.passed() && has_all && ended.stderr.is_empty(), "{}", ended.describe());
    }
    Ok(())
}

/// textures.cu, which compares what it gets with what it computes itself.
fn textures(installed: &Installed, library: &Path, tinygrad: &Path) -> Result<()> {
    let folder = testkit::temporary()?;
    let source = setup::root().join("crates/testkit/programs/textures.cu");
    let program = folder.path().join("textures");
    setup::run(Release::V13_5.get()?.nvcc().arg("-w").arg("-o").arg(&program).arg(source))?;
    let ended = on(installed.preloaded(&program), library, tinygrad, "gfx1100", folder.path()).run()?;
    ensure!(ended.passed() && ended.stdout == "PASSED\n" && ended.stderr.is_empty(), "{}", ended.describe());
    Ok(())
}

fn emulated(installed: &Installed, library: &Path, tinygrad: &Path, name: &str, gpu: &str) -> Result<()> {
    let program = examples::build(&Release::V13_5.get()?, Form::Static, name, installed)?;
    let folder = testkit::temporary()?;
    let record = folder.path().join("record");
    let run = on(installed.preloaded(&program), library, tinygrad, gpu, folder.path());
    let ended = run.env("HIP_EMULATED_RECORD", &record).run()?;
    ensure!(ended.passed() && ended.stderr.is_empty(), "{}", ended.describe());
    // Nothing but the emulator can have run it.
    let record = fs::read_to_string(&record).context("the record of launches")?;
    ensure!(record.contains("object ") && record.contains("launch "), "{record}");
    Ok(())
}
