//! AMD GPUs without one: code objects of a program that nvcc built, and the program itself, unmodified, on a GPU that
//! tinygrad's emulator plays, behind a HIP library with ROCm's ABI (crates/testkit/programs/hip_emulated.c).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use testkit::Installed;

use super::examples::{self, Form};
use super::report::{Outcome, Report};
use crate::setup;
use crate::toolchain::Release;

/// An example and the GPUs it runs on: gfx90a's code is Debian's comgr's, which does not know the others; gfx1100 has waves of 32
/// lanes, the others of 64.
const RUNS: &[(&str, &str)] =
    &[("vector_add", "gfx90a"), ("vector_add", "gfx942"), ("vector_add", "gfx1100")];

pub fn run(installed: &Installed, report: &mut Report) {
    report.note("cudaway compile: a code object for every kernel of vector_add", compile(installed));
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

fn build_library(folder: &Path) -> Result<PathBuf> {
    let source = setup::root().join("crates/testkit/programs/hip_emulated.c");
    let library = folder.join("libhip_emulated.so");
    let mut command = Command::new("cc");
    command.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(source).arg("-lpthread");
    let output = command.output().context("cc")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(library)
}

fn emulated(installed: &Installed, library: &Path, tinygrad: &Path, name: &str, gpu: &str) -> Result<()> {
    let program = examples::build(&Release::V13_5.get()?, Form::Static, name, installed)?;
    let folder = testkit::temporary()?;
    let record = folder.path().join("record");
    let run = installed.preloaded(&program).env("CUDAWAY_DEVICE", library);
    let run = run.env("CUDAWAY_CACHE_DIR", folder.path().join("cache")).env("TINYGRAD", tinygrad);
    let run = run.env("HIP_EMULATED_SERVER", setup::root().join("tools/amd-emu/serve.py"));
    let run = run.env("HIP_EMULATED_GPU", gpu).env("HIP_EMULATED_RECORD", &record);
    let ended = run.limit(Duration::from_secs(600)).run()?;
    ensure!(ended.passed() && ended.stderr.is_empty(), "{}", ended.describe());
    // Nothing but the emulator can have run it.
    let record = fs::read_to_string(&record).context("the record of launches")?;
    ensure!(record.contains("object ") && record.contains("launch "), "{record}");
    Ok(())
}
