//! NVML as a program compiled with NVIDIA's own header has it.

use std::process::Command;

use anyhow::{Result, ensure};
use testkit::{Installed, Run};

use super::examples::quiet;
use super::report::Report;
use crate::setup;

/// It has the header; read by the compiler, never committed.
const HEADER: &str = "nvidia-nvml-dev==13.4.92";

pub fn run(installed: &Installed, report: &mut Report) {
    report.note(
        "NVML: a C program with NVIDIA's nvml.h, one device, and two of which CUDA sees one or none",
        header(installed),
    );
}

fn header(installed: &Installed) -> Result<()> {
    setup::wheels(&[HEADER])?;
    let include = setup::packages_of(&setup::venv()?)?.join("nvidia/cu13/include");
    let dir = testkit::temporary()?;
    let (source, program) = (dir.path().join("nvml.c"), dir.path().join("nvml"));
    std::fs::write(&source, include_str!("nvml.c"))?;
    let mut cc = Command::new("cc");
    cc.args(["-std=gnu11", "-Wall", "-Werror", "-o"]).arg(&program).arg(&source).arg("-I").arg(include);
    quiet(cc.arg(installed.lib().join("libnvidia-ml.so.1")).arg("-ldl"))?;
    // Devices, what shows some of them, and how many NVML has, how many CUDA, which is CUDA's first.
    for (devices, shown, expected) in [
        ("cpu", None, ["1", "1", "0"]),
        ("cpu,cpu", None, ["2", "2", "0"]),
        ("cpu,cpu", Some("1"), ["2", "1", "1"]),
        ("cpu,cpu", Some(""), ["2", "0", "0"]),
    ] {
        let program = installed.found(&program).env("CUDAWAY_DEVICE", devices);
        let mut run: Run = expected.iter().fold(program, |run, word| run.arg(word));
        if let Some(shown) = shown {
            run = run.env("CUDA_VISIBLE_DEVICES", shown);
        }
        let ended = run.run()?;
        ensure!(
            ended.passed(),
            "CUDAWAY_DEVICE={devices} CUDA_VISIBLE_DEVICES={shown:?}: {}",
            ended.describe()
        );
    }
    Ok(())
}
