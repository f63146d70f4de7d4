//! Programs of others that bring their own CUDA runtimes and compilers, as their users install them: CuPy, Numba and
//! Triton (its compiler; its launcher needs PyTorch); and a few of each client's own tests, where `cargo xtask clients` has
//! installed it.
//! They come from PyPI into environments under the download cache, outside the tree; our scripts in examples/clients
//! compare what they compute with NumPy.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use testkit::{Installed, Run};

use super::report::{Outcome, Report};
use crate::{clients, setup};

/// A Python package that uses CUDA, and what it is checked with.
struct Client {
    name: &'static str,
    /// Exact pins; pip adds what they need.
    wheels: &'static [&'static str],
    script: &'static str,
    environment: &'static [(&'static str, &'static str)],
}

/// Each of its extension modules has a static runtime of its own, which is taken over when Python opens it.
const CUPY: Client = Client {
    name: "CuPy 14.2.0",
    wheels: &[
        "cupy-cuda13x==14.2.0",
        "numpy==2.4.6",
        "nvidia-cuda-nvrtc==13.5.37",
        "nvidia-cuda-runtime==13.5.37",
    ],
    script: "cupy_check.py",
    // Else it has NVRTC write machine code for one GPU, without PTX.
    environment: &[("CUPY_COMPILE_WITH_PTX", "1")],
};

/// Opens libcuda.so.1 and libcudart by itself. nvJitLink writes machine code only, so it is not among the wheels.
const NUMBA: Client = Client {
    name: "Numba 0.68 with numba-cuda 0.30.4",
    wheels: &[
        "numba-cuda==0.30.4",
        "numpy==2.4.6",
        "nvidia-nvvm==13.5.37",
        "nvidia-cuda-nvrtc==13.5.37",
        "nvidia-cuda-runtime==13.5.37",
        "nvidia-cuda-cccl==13.3.5.0.6",
    ],
    script: "numba_check.py",
    // Hints about speed on a GPU.
    environment: &[("NUMBA_CUDA_LOW_OCCUPANCY_WARNINGS", "0"), ("NUMBA_CUDA_WARN_ON_IMPLICIT_COPY", "0")],
};

/// Compiles to PTX by itself; the script launches it.
const TRITON: Client = Client {
    name: "Triton 3.5.0",
    wheels: &["triton==3.5.0", "numpy==2.4.6"],
    script: "triton_check.py",
    environment: &[],
};

pub fn run(installed: &Installed, report: &mut Report) {
    let dir = match testkit::temporary() {
        Ok(dir) => dir,
        Err(error) => return report.note("clients", Outcome::Failed(error.to_string())),
    };
    for client in [CUPY, NUMBA, TRITON] {
        match client.environment() {
            Ok(python) => report.note(
                &format!("{}: {}", client.name, client.script),
                client.check(&python, installed, dir.path()),
            ),
            Err(error) => {
                let reason = format!("its wheels cannot be had: {error:#}");
                report.note(client.name, Outcome::Skipped(reason));
            }
        }
    }
    for (title, result) in clients::smoke(installed.lib()) {
        let absent = || Outcome::Skipped("not installed; `cargo xtask clients` does it".to_owned());
        report.note(&format!("{title}: some of its own tests"), result.map_or_else(absent, Outcome::from));
    }
}

impl Client {
    /// The Python of an environment that holds the wheels.
    fn environment(&self) -> Result<PathBuf> {
        let stem = self.script.trim_end_matches(".py");
        let dir = setup::download_cache()?.join("clients").join(stem);
        let (python, stamp) = (dir.join("bin/python"), dir.join("wheels"));
        let wanted = self.wheels.join("\n");
        if fs::read_to_string(&stamp).is_ok_and(|have| have == wanted) {
            return Ok(python);
        }
        println!("setup: Python wheels to install into {}: {}", dir.display(), self.wheels.join(" "));
        ensure!(!setup::offline(), "--offline");
        setup::run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&dir))
            .context("python3 -m venv")?;
        setup::run(
            Command::new(&python)
                .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
                .args(self.wheels),
        )
        .context("pip install")?;
        fs::write(stamp, wanted)?;
        Ok(python)
    }

    /// The script passes, and the log says that every static runtime was taken over whole.
    fn check(&self, python: &Path, installed: &Installed, dir: &Path) -> Result<()> {
        let log = dir.join(self.script).with_extension("log");
        let ended = self
            .start(python, installed, dir)
            .env("CUDAWAY_LOG", "info")
            .env("CUDAWAY_LOG_FILE", &log)
            .run()?;
        ensure!(ended.passed(), "{}", ended.describe());
        let log = fs::read_to_string(log).context("the log file")?;
        let taken: Vec<&str> = log.lines().filter(|line| line.contains("runtime taken over, ")).collect();
        if self.script == CUPY.script {
            for module in ["cupy_backends/cuda/api/runtime.", "cupy/cuda/cub.", "cupy/cuda/thrust."] {
                ensure!(
                    taken.iter().any(|line| line.contains(module)),
                    "the log does not say that the runtime in {module}so was taken over:\n{}",
                    taken.join("\n")
                );
            }
        }
        for line in taken {
            ensure!(is_whole(line), "a runtime was not taken over whole: {line}");
        }
        Ok(())
    }

    fn start(&self, python: &Path, installed: &Installed, dir: &Path) -> Run {
        let run = installed
            .preloaded(python)
            .arg(setup::root().join("examples/clients").join(self.script))
            .env("CUDAWAY_CACHE_DIR", dir.join("images"))
            // What an earlier run had NVRTC compile must not answer for this one.
            .env("CUPY_CACHE_DIR", dir.join("cupy"))
            .env("TRITON_CACHE_DIR", dir.join("triton"))
            .limit(Duration::from_secs(900));
        self.environment.iter().fold(run, |run, (name, value)| run.env(name, value))
    }
}

/// `… 452 of 452 functions redirected …`
fn is_whole(line: &str) -> bool {
    let counts =
        line.split_once("taken over, ").and_then(|(_, rest)| rest.split_once(" functions redirected"));
    counts
        .and_then(|(counts, _)| counts.split_once(" of "))
        .is_some_and(|(done, all)| done == all && all != "0")
}

#[cfg(test)]
mod tests {
    use super::is_whole;

    #[test]
    fn a_runtime_with_a_function_left_alone_is_not_whole() {
        let line = |counts: &str| {
            format!("a.so: CUDA 13 runtime taken over, {counts} functions redirected (0 too short)")
        };
        assert!(is_whole(&line("452 of 452")));
        assert!(!is_whole(&line("451 of 452")));
        assert!(!is_whole(&line("0 of 0")));
        assert!(!is_whole("a.so: CUDA 13 runtime taken over"));
    }
}
