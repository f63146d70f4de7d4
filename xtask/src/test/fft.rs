//! cuFFT through its C names: a program built by nvcc against NVIDIA's headers (tools/fft-proof/client.cu), which draws plans and
//! compares what it gets with the transform's definition in the 64 bits of x87's numbers; cuFFTW likewise (fftw.cu); and each
//! of their objects by a program of its CUDA (each.c).

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use testkit::Installed;

use super::report::{Outcome, Report};
use crate::libraries;
use crate::setup;
use crate::toolchain::{Release, Toolchain};

/// The client's parts, and what each shows.
const PARTS: [(&str, &str); 11] = [
    (
        "single",
        "single precision, of drawn plans, is the definition's within 1e-6 for each bit of the length",
    ),
    (
        "double",
        "double precision, of drawn plans, is the definition's within 1e-15 for each bit of the length",
    ),
    ("half", "half precision, of drawn plans, is the definition's within 1e-3"),
    ("bfloat16", "bfloat16, of drawn plans, is the definition's within 8e-3"),
    ("lengths", "long lengths, primes among them, are the definition's"),
    ("refusals", "what NVIDIA's library and the manual refuse is refused with their numbers"),
    ("streams", "transforms run in stream order, whatever becomes of their handle"),
    ("graphs", "captured transforms run with their graph"),
    ("descriptors", "descriptors of one device hold what is transformed"),
    ("devices", "arrays in parts on three devices are transformed, and lie as the manual says"),
    ("threads", "threads make plans, and share one"),
];

/// Plans of each type that are drawn.
const PLANS: &str = "1000";

pub fn run(installed: &Installed, report: &mut Report) {
    let seed = super::seed("FFT_SEED").to_string();
    report.note("each of cuFFT's and cuFFTW's objects transforms for its CUDA", objects(installed));
    let toolchain = match toolchain() {
        Ok(toolchain) => toolchain,
        Err(error) => {
            let reason = format!("nvcc or cuFFT's headers cannot be had: {error:#}");
            return report.note("cuFFT and cuFFTW by NVIDIA's headers", Outcome::Skipped(reason));
        }
    };
    let client = program(installed, &toolchain, "client", "-lcufft");
    for (part, what) in PARTS {
        let client = client.as_ref().map_err(|error| anyhow::anyhow!("{error:#}"));
        let ran = client.and_then(|client| said(installed, client, &[part, &seed, PLANS]));
        report.note(&format!("{part}: {what}"), ran.with_context(|| format!("again: FFT_SEED={seed}")));
    }
    let ran = program(installed, &toolchain, "fftw", "-lcufftw")
        .and_then(|client| said(installed, &client, &[&seed, PLANS]))
        .with_context(|| format!("again: FFT_SEED={seed}"));
    report.note("cuFFTW's plans, drawn, on the memory of host and device, are the definition's", ran);
}

fn toolchain() -> Result<Toolchain> {
    let toolchain = Release::V13_5.get()?;
    toolchain.with_cufft()?;
    Ok(toolchain)
}

fn folder() -> Result<PathBuf> {
    let folder = setup::root().join("target/fft-proof");
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}

fn source(name: &str) -> PathBuf {
    setup::root().join("tools/fft-proof").join(name)
}

/// Builds a program against NVIDIA's headers and our library.
fn program(installed: &Installed, toolchain: &Toolchain, name: &str, library: &str) -> Result<PathBuf> {
    let program = folder()?.join(name);
    let mut nvcc = toolchain.nvcc();
    nvcc.args(["-O2", "-std=c++17", "-cudart", "shared", "-arch=compute_75", "-o"]).arg(&program);
    nvcc.arg(source(&format!("{name}.cu"))).arg(format!("-L{}", installed.lib().display())).arg(library);
    setup::run(&mut nvcc)?;
    Ok(program)
}

fn said(installed: &Installed, program: &Path, arguments: &[&str]) -> Result<()> {
    let mut command = Command::new(program);
    command.args(arguments).env("LD_LIBRARY_PATH", installed.lib());
    command.env("CUDAWAY_DEVICE", "cpu,cpu,cpu").env_remove("CUDAWAY_FFT");
    let output = command.output().context("the client")?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(
        output.status.success(),
        "{} {}: {}: {}{}",
        program.display(),
        arguments.join(" "),
        output.status,
        text.trim_end(),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}

/// The version that each says is that of its CUDA's runtime.
fn objects(installed: &Installed) -> Result<()> {
    let program = folder()?.join("each");
    setup::run(
        Command::new("cc")
            .args(["-O1", "-w", "-o"])
            .arg(&program)
            .arg(source("each.c"))
            .args(["-ldl", "-lm"]),
    )?;
    let library = libraries::named("cuFFT");
    for object in library.objects.iter().filter(|object| object.stem == "libcufft") {
        for major in &object.cuda {
            let runtime = if *major == 11 { "11.0".to_owned() } else { major.to_string() };
            let runtime = installed.lib().join(format!("libcudart.so.{runtime}"));
            let release: Vec<u32> =
                library.releases[major].split('.').map(str::parse).collect::<std::result::Result<_, _>>()?;
            let version = release[0] * 1000 + release[1] * 100 + release[2];
            let files = [object.file(), object.file().replace("libcufft.", "libcufftw.")];
            let [fft, fftw] = files.map(|file| installed.lib().join(file).display().to_string());
            let runtime = runtime.display().to_string();
            said(installed, &program, &[&fft, &fftw, &runtime, &version.to_string()])?;
        }
    }
    Ok(())
}
