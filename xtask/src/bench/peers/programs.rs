//! The programs of benches/peers: built with each one's own compiler, and started as a user would.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use testkit::{Installed, Run};

use super::Reading;
use crate::bench::section;
use crate::setup;
use crate::toolchain::Release;

/// clang's flags for the native program. The last two let it call vectors of expf and logf.
fn native_flags() -> Vec<String> {
    let march = section::march();
    ["-O3", &march, "-fopenmp", "-fno-math-errno", "-fveclib=libmvec"].map(str::to_owned).into()
}

/// Intel's CPU runtime for OpenCL, as PyPI has it.
const INTEL: &[&str] = &["intel-opencl-rt==2026.2.0", "intel-cmplr-lib-rt==2026.2.0", "tbb==2023.2.0"];

const POCL: &str = "/etc/OpenCL/vendors/pocl.icd";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    Ours,
    Native,
    Pocl,
    Intel,
}

impl Peer {
    pub fn name(self) -> &'static str {
        match self {
            Peer::Ours => "CUDAway",
            Peer::Native => "native C",
            Peer::Pocl => "PoCL",
            Peer::Intel => "Intel OpenCL",
        }
    }
}

/// A program that can be run here.
pub struct Program {
    pub peer: Peer,
    /// What it was built with or runs on, with its version.
    pub version: String,
    path: PathBuf,
    env: Vec<(&'static str, PathBuf)>,
    /// Our objects, which the program is started with.
    preloaded: Option<Installed>,
}

/// Builds all programs; one whose compiler or runtime cannot be had is named and left out. Ours must be there.
pub fn all(installed: &Installed) -> Result<Vec<Program>> {
    let out = setup::root().join("target/peers");
    fs::create_dir_all(&out)?;
    let mut programs = vec![ours(installed, &out)?];
    for (peer, program) in
        [(Peer::Native, native(&out)), (Peer::Pocl, pocl(&out)), (Peer::Intel, intel(&out))]
    {
        match program {
            Ok(program) => programs.push(program),
            Err(error) => println!("{}: not installed: {error:#}", peer.name()),
        }
    }
    Ok(programs)
}

impl Program {
    /// Runs one row once; `limit` ends what hangs.
    pub fn measure(&self, row: &str, seconds: f64, limit: Duration) -> Reading {
        self.reading(self.run(), row, seconds, limit)
    }

    /// As `measure`, on that many threads; ours and the native program can be told.
    pub fn measure_on(&self, threads: u32, row: &str, seconds: f64, limit: Duration) -> Reading {
        let name = if self.peer == Peer::Ours { "CUDAWAY_CPU_THREADS" } else { "OMP_NUM_THREADS" };
        self.reading(self.run().env(name, threads.to_string()), row, seconds, limit)
    }

    fn reading(&self, run: Run, row: &str, seconds: f64, limit: Duration) -> Reading {
        let mut run = run.arg(row).arg(seconds.to_string()).limit(limit);
        for (name, value) in &self.env {
            run = run.env(name, value);
        }
        match run.run() {
            Ok(ended) if ended.status.success() => read(&ended.stdout),
            Ok(ended) => Reading::Failed(ended.describe()),
            Err(error) => Reading::Failed(format!("{error:#}")),
        }
    }

    fn run(&self) -> Run {
        match &self.preloaded {
            Some(installed) => section::told(installed.preloaded(&self.path)),
            None => Run::new(&self.path),
        }
    }
}

/// The one line a program prints (benches/peers/bench.h).
fn read(stdout: &str) -> Reading {
    let line = stdout.lines().last().unwrap_or_default();
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    let mut numbers = rest.split(' ').map(str::parse::<f64>);
    match word {
        "measured" => match (numbers.next(), numbers.next()) {
            (Some(Ok(cpu)), Some(Ok(wall))) => Reading::Measured { cpu, wall },
            _ => Reading::Failed(format!("it said {line:?}")),
        },
        "wrong" => Reading::Wrong(rest.to_owned()),
        "unsupported" => Reading::Cannot(rest.to_owned()),
        _ => Reading::Failed(format!("it said {line:?}")),
    }
}

fn source(file: &str) -> PathBuf {
    setup::root().join("benches/peers").join(file)
}

/// An ordinary nvcc program, its runtime linked statically. compute_80 is the oldest with mma's m16n8k16.
fn ours(installed: &Installed, out: &Path) -> Result<Program> {
    ensure!(
        installed.lib().join("libcuda.so.1").exists(),
        "{} has no libcuda.so.1",
        installed.lib().display()
    );
    let toolchain = Release::V13_5.get()?;
    let path = out.join("cuda");
    setup::run(
        toolchain
            .nvcc()
            .args(["-O3", "-std=c++17", "-arch=compute_80", "-I"])
            .arg(toolchain.dir.join("include/cccl"))
            .arg("-o")
            .arg(&path)
            .args([source("cuda.cu"), source("cub.cu")]),
    )?;
    Ok(Program {
        peer: Peer::Ours,
        version: format!("nvcc {}, -O3 -arch=compute_80", toolchain.release.version()),
        path,
        // The best code is what a later run finds: it is waited for, at the end of the first.
        env: vec![("CUDAWAY_CACHE_DIR", out.join("cache")), ("CUDAWAY_EXIT_WAIT", PathBuf::from("100"))],
        preloaded: Some(installed.clone()),
    })
}

fn native(out: &Path) -> Result<Program> {
    setup::packages(&[
        ("clang-19", "compiles the native programs"),
        ("libomp-19-dev", "clang's OpenMP runtime"),
    ])?;
    let path = out.join("native");
    let mut objects = Vec::new();
    for name in ["native", "native_gemm", "native_transformer"] {
        let object = out.join(format!("{name}.o"));
        setup::run(
            Command::new("clang-19")
                .args(native_flags())
                .arg("-c")
                .arg("-o")
                .arg(&object)
                .arg(source(&format!("{name}.c"))),
        )?;
        objects.push(object);
    }
    setup::run(
        Command::new("clang++-19")
            .arg("-std=c++17")
            .args(native_flags())
            .arg("-o")
            .arg(&path)
            .args([source("native.cc"), source("native_cub.cc")])
            .args(&objects)
            .arg("-lm"),
    )?;
    let said = Command::new("clang-19").arg("--version").output()?;
    let said = String::from_utf8_lossy(&said.stdout);
    let version = format!("{}, {}", said.lines().next().unwrap_or("clang"), native_flags().join(" "));
    Ok(Program { peer: Peer::Native, version, path, env: Vec::new(), preloaded: None })
}

fn pocl(out: &Path) -> Result<Program> {
    setup::packages(&[("pocl-opencl-icd", "PoCL, a peer of the CPU device")])?;
    opencl(Peer::Pocl, Path::new(POCL), out)
}

fn intel(out: &Path) -> Result<Program> {
    setup::wheels(INTEL)?;
    opencl(Peer::Intel, &setup::root().join(".venv/lib/libintelocl.so"), out)
}

/// One program for both runtimes: the loader takes the one that `vendor` names.
fn opencl(peer: Peer, vendor: &Path, out: &Path) -> Result<Program> {
    ensure!(vendor.exists(), "{} is missing", vendor.display());
    setup::packages(&[("ocl-icd-opencl-dev", "OpenCL's headers and loader")])?;
    let path = out.join("opencl");
    let folder = setup::root().join("benches/peers");
    setup::run(
        Command::new("g++")
            .args(["-std=c++17", "-O2"])
            .arg(format!("-DPEERS_DIR=\"{}\"", folder.display()))
            .arg("-o")
            .arg(&path)
            .arg(source("opencl.cc"))
            .arg("-lOpenCL"),
    )?;
    let mut env = vec![("OCL_ICD_VENDORS", vendor.to_path_buf())];
    if section::is_narrowed() && peer == Peer::Intel {
        // PoCL has no such variable: it takes what the processor has.
        env.push(("CL_CONFIG_CPU_TARGET_ARCH", PathBuf::from("core-avx2")));
    }
    let mut run = Run::new(&path).arg("--platform");
    for (name, value) in &env {
        run = run.env(name, value);
    }
    let said = run.run()?;
    ensure!(said.status.success(), "{}", said.describe());
    let driver = said.stdout.lines().last().context("it names no version")?.to_owned();
    let version = match peer {
        Peer::Intel => format!("PyPI {}, driver {driver}", INTEL[0]),
        _ => format!("Debian pocl-opencl-icd {driver}"),
    };
    Ok(Program { peer, version, path, env, preloaded: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_line_is_read_and_anything_else_is_a_failure() {
        assert_eq!(read("measured 12.5 7.25 40\n"), Reading::Measured { cpu: 12.5, wall: 7.25 });
        assert_eq!(read("wrong element 3 is 4\n"), Reading::Wrong("element 3 is 4".to_owned()));
        assert_eq!(read("unsupported no shuffles\n"), Reading::Cannot("no shuffles".to_owned()));
        assert!(matches!(read("measured twelve\n"), Reading::Failed(_)));
        assert!(matches!(read(""), Reading::Failed(_)));
    }
}
