//! examples/corpus × compilers × options: what today's compilers make of CUDA C++ (libm, narrow floats, cooperative
//! groups, CUB, wmma, virtual functions, inline assembly) parses, runs, and is right. The programs check themselves.

use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use testkit::Installed;

use super::cores::on_cores;
use super::examples::{check, quiet};
use super::report::{Outcome, Report};
use super::unit::example;
use crate::setup;
use crate::toolchain::{Release, Toolchain};

/// Stands for a whole toolkit of 12.x when clang is the compiler.
const CLANG: &str = "clang++-19";
const NVRTC: &str = "nvidia-cuda-nvrtc==13.5.37";

/// A program and the lowest architecture it is written for.
struct Program {
    name: &'static str,
    lowest: u32,
    /// Seconds to compile: built at one set of options by each compiler.
    slow: bool,
    /// Needs the parts of libcu++ that Debian's CUDA 11.8 does not bring.
    cccl: bool,
}

const PROGRAMS: &[Program] = &[
    Program { name: "math", lowest: 50, slow: false, cccl: false },
    Program { name: "objects", lowest: 50, slow: false, cccl: false },
    Program { name: "narrow", lowest: 80, slow: false, cccl: false },
    Program { name: "groups", lowest: 60, slow: false, cccl: true },
    Program { name: "inline_ptx", lowest: 70, slow: false, cccl: false },
    Program { name: "tensor", lowest: 72, slow: false, cccl: false },
    Program { name: "output", lowest: 50, slow: false, cccl: false },
    Program { name: "cub", lowest: 50, slow: true, cccl: true },
    Program { name: "thrust", lowest: 50, slow: true, cccl: true },
];

/// A name, nvcc's options, and the architectures that a release is asked for: the newest nvcc begins at 75.
struct Options {
    name: &'static str,
    flags: &'static [&'static str],
    arch: u32,
    older: u32,
}

const OPTIONS: &[Options] = &[
    Options { name: "O3", flags: &["-O3"], arch: 90, older: 50 },
    Options { name: "O0", flags: &["-O0", "-Xcicc", "-O0"], arch: 75, older: 60 },
    Options { name: "O1", flags: &["-O1", "-Xcicc", "-O1"], arch: 80, older: 70 },
    Options { name: "O2", flags: &["-O2", "-Xcicc", "-O2"], arch: 86, older: 75 },
    Options { name: "G", flags: &["-G", "-g"], arch: 80, older: 80 },
    Options { name: "lineinfo", flags: &["-lineinfo"], arch: 89, older: 89 },
    Options { name: "fast", flags: &["-use_fast_math", "-DFAST_MATH"], arch: 87, older: 90 },
];

/// One program to build and run.
struct Job {
    label: String,
    name: &'static str,
    out: PathBuf,
    build: Vec<Command>,
    arguments: Vec<PathBuf>,
}

/// `whole`: each program with all options of the newest nvcc. Otherwise with the first and with a third of the others, drawn by
/// `CORPUS_SEED`: each of them has a program or two in each run.
pub fn run(all: bool, whole: bool, installed: &Installed, report: &mut Report) {
    let newest = match Release::V13_5.get() {
        Ok(toolchain) => toolchain,
        Err(error) => {
            return report.note("corpus", Outcome::Failed(format!("nvcc 13.5 cannot be had: {error:#}")));
        }
    };
    let cccl = newest.dir.join("include/cccl");
    let drawn = (!whole).then(|| super::seed("CORPUS_SEED"));
    if let Some(seed) = drawn {
        println!(
            "a third of the options beyond the first: CORPUS_SEED={seed}; --all and --only corpus take all"
        );
    }
    let mut jobs = nvcc(&newest, &cccl, drawn);
    jobs.extend(clang_without_headers(&newest, installed));
    if all {
        for release in [Release::V12_4, Release::V11_8] {
            match release.get() {
                Ok(toolchain) => {
                    jobs.extend(nvcc(&toolchain, &cccl, None));
                    if release == Release::V12_4 {
                        jobs.extend(clang(&toolchain, &cccl));
                    }
                }
                Err(error) => report.note(
                    &format!("corpus by nvcc {}", release.version()),
                    Outcome::Skipped(format!("it cannot be had: {error:#}")),
                ),
            }
        }
    } else {
        let reason = "asked for with --all (large downloads)".to_owned();
        report
            .note("corpus by nvcc 12.4 and 11.8 and by clang with CUDA's headers", Outcome::Skipped(reason));
    }
    let cache = dir().join("image-cache");
    let _ = fs::remove_dir_all(&cache);
    let notes = Mutex::new(&mut *report);
    on_cores(jobs, |job| {
        let label = job.label.clone();
        let outcome = work(job, installed, &cache);
        notes.lock().expect("no worker panics").note(&label, outcome);
    });
    match ptx_of_all(&newest) {
        Ok(files) => {
            report.note("IR in proportion to PTX: CUB's and Thrust's kernels", proportion(&files));
            report.note("LLVM takes the best code of CUB's and Thrust's kernels", valid(&files, drawn));
        }
        Err(error) => report.note("PTX of CUB's and Thrust's kernels", Err::<(), _>(error)),
    }
    report.note("NVRTC 13.5: nvrtc_check.py", nvrtc(&newest, installed, &cache));
}

fn dir() -> PathBuf {
    setup::root().join("target/corpus")
}

fn source(name: &str) -> PathBuf {
    setup::root().join("examples/corpus").join(format!("{name}.cu"))
}

/// What every compilation of a program has.
fn common(command: &mut Command, name: &str, out: &Path) {
    command.arg("-std=c++17").arg("-I").arg(setup::root().join("examples"));
    command.arg("-o").arg(out).arg(source(name));
}

fn nvcc(toolchain: &Toolchain, cccl: &Path, drawn: Option<u64>) -> Vec<Job> {
    let version = toolchain.release.version();
    let mut jobs = vec![];
    for (nth_options, options) in OPTIONS.iter().enumerate() {
        for (nth_program, program) in PROGRAMS.iter().enumerate() {
            let is_drawn =
                drawn.is_none_or(|seed| (seed % 3 + (nth_options + nth_program) as u64).is_multiple_of(3));
            if nth_options > 0 && !is_drawn {
                continue;
            }
            let old = toolchain.release != Release::V13_5;
            let no_cccl = toolchain.release == Release::V11_8 && program.cccl;
            if no_cccl || program.slow && options.name != "O3" {
                continue;
            }
            let arch = if old { options.older.max(program.lowest) } else { options.arch };
            let out = dir().join(version).join(options.name).join(program.name);
            let mut command = toolchain.nvcc();
            command.arg(format!("-gencode=arch=compute_{arch},code=compute_{arch}")).args(options.flags);
            if toolchain.release == Release::V12_4 {
                command.arg("-isystem").arg(cccl);
            }
            common(&mut command, program.name, &out);
            jobs.push(Job {
                label: format!("nvcc {version} {} compute_{arch}: {}", options.flags.join(" "), program.name),
                name: program.name,
                out,
                build: vec![command],
                arguments: vec![],
            });
        }
    }
    jobs
}

/// clang as the compiler of both halves, with a toolkit's headers.
fn clang(toolchain: &Toolchain, cccl: &Path) -> Vec<Job> {
    let mut jobs = vec![];
    for (level, arch) in [("-O0", 70), ("-O2", 80), ("-O3", 90)] {
        for program in PROGRAMS.iter().filter(|program| !program.slow && program.name != "tensor") {
            // At -O0 its device code takes the address of `__cxa_pure_virtual`, which ptxas refuses.
            if level == "-O0" && program.name == "objects" {
                continue;
            }
            let arch = arch.max(program.lowest);
            let out = dir().join("clang").join(&level[1..]).join(program.name);
            let mut command = Command::new(CLANG);
            command.args(["-x", "cuda", "-Wno-unknown-cuda-version", level]);
            command.arg(format!("--cuda-path={}", toolchain.dir.display()));
            command.args([format!("--cuda-gpu-arch=sm_{arch}"), format!("--cuda-include-ptx=sm_{arch}")]);
            command.arg("-isystem").arg(cccl);
            common(&mut command, program.name, &out);
            command.arg(format!("-L{}", toolchain.dir.join("lib").display()));
            command.args(["-lcudart_static", "-ldl", "-lrt", "-lpthread"]);
            jobs.push(Job {
                label: format!("clang 19 {level} sm_{arch}: {}", program.name),
                name: program.name,
                out,
                build: vec![command],
                arguments: vec![],
            });
        }
    }
    jobs
}

/// clang's PTX of a file that needs no headers of CUDA's, launched by a program of the driver API.
fn clang_without_headers(toolchain: &Toolchain, installed: &Installed) -> Vec<Job> {
    let mut jobs = vec![];
    for (level, arch) in
        [("-O0", "sm_50"), ("-O1", "sm_70"), ("-O2", "sm_80"), ("-O3", "sm_90"), ("-g", "sm_80")]
    {
        let out = dir().join("clang-ptx").join(&level[1..]).join("run_ptx");
        let ptx = out.with_file_name("clang_kernels.ptx");
        let mut device = Command::new(CLANG);
        device.args(["-x", "cuda", "--cuda-device-only", "-nocudainc", "-nocudalib", "-S", level]);
        device.args([&format!("--cuda-gpu-arch={arch}"), "-Xclang", "-target-feature", "-Xclang", "+ptx80"]);
        device.arg("-o").arg(&ptx).arg(source("clang_kernels"));
        let mut host = toolchain.nvcc();
        common(&mut host, "run_ptx", &out);
        host.arg("-L").arg(installed.lib()).arg("-lcuda");
        jobs.push(Job {
            label: format!("clang 19 {level} {arch}, without CUDA's headers"),
            name: "run_ptx",
            out,
            build: vec![device, host],
            arguments: vec![ptx],
        });
    }
    jobs
}

fn work(mut job: Job, installed: &Installed, cache: &Path) -> Result<()> {
    build(&mut job).context("building it")?;
    let run = installed.preloaded(&job.out).env("CUDAWAY_CACHE_DIR", cache).limit(Duration::from_secs(300));
    let run = job.arguments.iter().fold(run, |run, argument| run.arg(argument));
    check(&format!("corpus/{}", job.name), run)
}

/// Nothing is done when neither the sources nor the commands have changed.
fn build(job: &mut Job) -> Result<()> {
    let mut hasher = DefaultHasher::new();
    for file in [source(job.name), source("clang_kernels"), setup::root().join("examples/example.h")] {
        fs::read(file)?.hash(&mut hasher);
    }
    format!("{:?}", job.build).hash(&mut hasher);
    let (fingerprint, stamp) = (format!("{:016x}\n", hasher.finish()), job.out.with_extension("stamp"));
    if job.out.exists() && fs::read_to_string(&stamp).is_ok_and(|text| text == fingerprint) {
        return Ok(());
    }
    if let Some(parent) = job.out.parent() {
        fs::create_dir_all(parent)?;
    }
    let _ = fs::remove_file(&stamp);
    job.build.iter_mut().try_for_each(quiet)?;
    fs::write(stamp, fingerprint)?;
    Ok(())
}

/// Lines of LLVM IR for each PTX instruction, at most: in setting `lane`, and in `simd` and `warp`.
const LINES: &str = "15,30";

fn proportion(files: &[PathBuf]) -> Result<()> {
    quiet(example("lines")?.args(["--most", LINES]).args(files))
}

/// For blocks of several shapes and vectors of each width, all of them or drawn ones: a kernel whose best code cannot be made
/// runs on in baseline code, where no program that is tried would see it.
fn valid(files: &[PathBuf], drawn: Option<u64>) -> Result<()> {
    let seed = drawn.map(|seed| format!("--seed={seed}"));
    quiet(example("valid")?.args(seed).args(files))
}

/// Takes the PTX out of the programs that were built.
fn ptx_of_all(toolchain: &Toolchain) -> Result<Vec<PathBuf>> {
    let folder = dir().join("ptx");
    let _ = fs::remove_dir_all(&folder);
    let of = |name| ptx_of(&optimised(toolchain, name), &folder.join(name));
    Ok(["cub", "thrust"].into_iter().map(of).collect::<Result<Vec<_>>>()?.concat())
}

/// The program as nvcc builds it with -O3.
fn optimised(toolchain: &Toolchain, name: &str) -> PathBuf {
    dir().join(toolchain.release.version()).join("O3").join(name)
}

/// The files of PTX that a program has in it, written below `out`.
pub fn ptx_of(program: &Path, out: &Path) -> Result<Vec<PathBuf>> {
    fs::create_dir_all(out)?;
    quiet(example("list")?.arg("--extract").arg(out).arg(program))?;
    let found = fs::read_dir(out)?.map(|it| Ok(it?.path())).collect::<Result<Vec<_>>>()?;
    let files: Vec<PathBuf> =
        found.into_iter().filter(|path| path.extension().is_some_and(|it| it == "ptx")).collect();
    ensure!(!files.is_empty(), "{}: no PTX in it", program.display());
    Ok(files)
}

/// These programs of the corpus, built by nvcc 13.5 with -O3.
pub fn built(names: &[&str]) -> Result<Vec<PathBuf>> {
    let newest = Release::V13_5.get()?;
    let cccl = newest.dir.join("include/cccl");
    let mut jobs = nvcc(&newest, &cccl, None);
    names
        .iter()
        .map(|name| {
            let out = optimised(&newest, name);
            let job = jobs.iter_mut().find(|job| job.out == out).context("no such program in the corpus")?;
            build(job)?;
            Ok(out)
        })
        .collect()
}

fn nvrtc(toolchain: &Toolchain, installed: &Installed, cache: &Path) -> Result<()> {
    setup::wheels(&[NVRTC])?;
    let log = testkit::temporary()?;
    let log = log.path().join("log");
    let run = installed
        .found(setup::venv()?)
        .arg(setup::root().join("examples/clients/nvrtc_check.py"))
        .arg(toolchain.dir.join("lib/libnvrtc.so.13"))
        .arg(toolchain.dir.join("include"))
        .env("CUDAWAY_CACHE_DIR", cache)
        .env("CUDAWAY_LOG", "driver=info")
        .env("CUDAWAY_LOG_FILE", &log)
        .limit(Duration::from_secs(300));
    check("corpus/nvrtc", run)?;
    // It asks the driver for a table of NVIDIA's own, and compiles all the same when told that there is none.
    let said = fs::read_to_string(&log).context("the log")?;
    ensure!(said.contains("cuGetExportTable: da9151d3"), "NVRTC did not ask for its table:\n{said}");
    Ok(())
}
