//! conformance/: what NVIDIA's manual promises, a file per chapter, through our driver and runtime; and, where there is
//! an NVIDIA GPU, through NVIDIA's driver: the same programs on it alone, and our runtime over it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result, ensure};
use testkit::{Installed, Run};

use super::cores::on_cores;
use super::report::{Outcome, Report};
use crate::setup;
use crate::toolchain::{Release, Toolchain};

pub fn run(installed: &Installed, wanted: &[String], report: &mut Report) {
    if let Err(error) = all(installed, wanted, report) {
        report.note("conformance", Outcome::Failed(format!("{error:#}")));
    }
}

fn all(installed: &Installed, wanted: &[String], report: &mut Report) -> Result<()> {
    for (name, program) in programs(installed, wanted)? {
        match program {
            Ok(program) => {
                note(&name, installed.found(&program), report);
                if Path::new("/proc/driver/nvidia/version").exists() {
                    note(&format!("{name}, NVIDIA's driver"), Run::new(&program), report);
                }
            }
            Err(error) => report.note(&format!("conformance {name}"), Outcome::Failed(format!("{error:#}"))),
        }
    }
    Ok(())
}

/// The chapters whose name has a part of `wanted`, or all: each one's name, and its program or why there is none.
pub fn programs(installed: &Installed, wanted: &[String]) -> Result<Vec<(String, Result<PathBuf>)>> {
    let toolchain = Release::V13_5.get()?;
    let out = setup::root().join("target/conformance");
    fs::create_dir_all(&out)?;
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|part| name.contains(part.as_str()));
    let newest = newest(&setup::root().join("conformance"))?;
    let mut chapters = chapters()?;
    chapters.retain(|chapter| is_wanted(&chapter.name()));
    Ok(on_cores(chapters, |chapter| (chapter.name(), chapter.built(newest, &toolchain, installed, &out))))
}

/// Builds all chapters into a folder with machine code for GPUs of this architecture: a driver older than the toolkit takes no PTX of its.
pub fn build_for(architecture: u32, installed: &Installed, out: &Path) -> Result<()> {
    let toolchain = Release::V13_5.get()?;
    let codes = format!("-gencode=arch=compute_{architecture},code=sm_{architecture}");
    for chapter in chapters()? {
        let program = out.join(chapter.name().replace('/', "-"));
        chapter.build(
            &toolchain,
            installed,
            &["-gencode=arch=compute_80,code=compute_80", &codes],
            &program,
        )?;
    }
    Ok(())
}

/// When a file of the folder was changed last.
fn newest(folder: &Path) -> Result<SystemTime> {
    let mut newest = SystemTime::UNIX_EPOCH;
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        newest = newest.max(fs::metadata(&path)?.modified()?);
        if path.is_dir() {
            newest = newest.max(self::newest(&path)?);
        }
    }
    Ok(newest)
}

/// Each promise's line becomes a line of the report.
fn note(name: &str, run: Run, report: &mut Report) {
    match promises(run) {
        Ok(promises) => {
            for (promise, outcome) in promises {
                report.note(&format!("conformance {name}: {promise}"), outcome);
            }
        }
        Err(error) => report.note(&format!("conformance {name}"), Outcome::Failed(format!("{error:#}"))),
    }
}

/// What a chapter's program says of each promise.
pub fn promises(run: Run) -> Result<Vec<(String, Outcome)>> {
    let ended = run.limit(Duration::from_secs(600)).run()?;
    let promise = |line: &str| {
        let (outcome, rest) = line.split_once(' ').unwrap_or((line, ""));
        let (promise, why) = rest.split_once(": ").unwrap_or((rest, ""));
        let outcome = match outcome {
            "ok" => Outcome::Passed,
            "skipped" => Outcome::Skipped(why.to_owned()),
            _ => Outcome::Failed(why.to_owned()),
        };
        (promise.replace('_', " "), outcome)
    };
    let promises: Vec<_> = ended.stdout.lines().map(promise).collect();
    ensure!(!promises.is_empty(), "{}", ended.describe());
    Ok(promises)
}

/// One file of conformance/.
struct Chapter {
    /// `driver` or `runtime`.
    api: String,
    source: PathBuf,
}

fn chapters() -> Result<Vec<Chapter>> {
    let mut all = Vec::new();
    for api in ["driver", "runtime"] {
        let folder = setup::root().join("conformance").join(api);
        let entries = fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
        for entry in entries {
            all.push(Chapter { api: api.to_owned(), source: entry?.path() });
        }
    }
    all.sort_by(|a, b| a.source.cmp(&b.source));
    ensure!(!all.is_empty(), "conformance/ has no chapters");
    Ok(all)
}

impl Chapter {
    fn name(&self) -> String {
        let chapter = self.source.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        format!("{}/{chapter}", self.api)
    }

    /// Its program, made anew unless it is younger than everything in conformance/.
    fn built(
        &self,
        newest: SystemTime,
        toolchain: &Toolchain,
        installed: &Installed,
        out: &Path,
    ) -> Result<PathBuf> {
        let program = out.join(self.name().replace('/', "-"));
        let made = fs::metadata(&program).and_then(|program| program.modified());
        if !made.is_ok_and(|made| made > newest) {
            self.build(toolchain, installed, &["-arch=compute_80"], &program)?;
        }
        Ok(program)
    }

    /// Linked with the driver by its SONAME, and with the runtime as a shared object: whichever is found answers.
    fn build(
        &self,
        toolchain: &Toolchain,
        installed: &Installed,
        codes: &[&str],
        program: &Path,
    ) -> Result<()> {
        let mut command = if self.api == "runtime" {
            let mut nvcc = toolchain.nvcc();
            nvcc.args(["-w", "-cudart", "shared"]).args(codes);
            nvcc.args(own_flags(&self.source)?);
            nvcc
        } else {
            let mut gcc = Command::new("g++");
            gcc.arg("-w").arg("-I").arg(toolchain.dir.join("include"));
            gcc
        };
        command
            .args(["-std=c++17", "-O0", "-o"])
            .arg(program)
            .arg(&self.source)
            .arg("-L")
            .arg(installed.lib())
            .arg("-lcuda")
            .arg("-lpthread");
        setup::run(&mut command)
    }
}

/// What a file's first line asks of its compiler: `// nvcc: --default-stream per-thread`.
fn own_flags(source: &Path) -> Result<Vec<String>> {
    let text = fs::read_to_string(source).with_context(|| source.display().to_string())?;
    let flags = text.lines().next().and_then(|line| line.strip_prefix("// nvcc: ")).unwrap_or_default();
    Ok(flags.split_whitespace().map(str::to_owned).collect())
}
