//! Which HIP libraries make up the device list: Debian's real ROCm 5.2 without a GPU, the CPU, and two CPUs.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use testkit::{Ended, Installed};

use super::examples::{self, Form};
use super::report::{Outcome, Report};
use crate::setup;
use crate::toolchain::Release;

const LIBRARY: &str = "libamdhip64.so.5";

pub fn run(installed: &Installed, report: &mut Report) {
    report.note("two providers make two devices for eight threads", two_devices(installed));
    report.note("two providers make two devices, as listed", two_listed(installed));
    report.note(
        "two providers' streams wait for each other's events, and copy from each other",
        two_relay(installed),
    );
    report.note(
        "a library that is listed three times is three devices, whose streams wait for each other's events",
        relay(installed),
    );
    report.note("cuSOLVERMg's matrices lie on two devices", two_solve(installed));
    if let Err(error) = setup::packages(&[(
        "libamdhip64-5",
        "ROCm 5.2's HIP library, to be asked for devices it does not have",
    )]) {
        return report.note(
            "ROCm 5.2 without a GPU",
            Outcome::Skipped(format!("libamdhip64-5 cannot be had: {error:#}")),
        );
    }
    if fs::exists("/dev/kfd").unwrap_or(false) {
        return report.note(
            "ROCm 5.2 without a GPU",
            Outcome::Skipped("this machine has an AMD GPU (/dev/kfd)".to_owned()),
        );
    }
    report.note("ROCm 5.2, CUDAWAY_DEVICE=hip: no CUDA-capable device, and the log says why", hip(installed));
    report.note("ROCm 5.2, CUDAWAY_DEVICE=auto: the CPU", auto(installed));
}

fn hip(installed: &Installed) -> Result<()> {
    let program = examples::build(&Release::V13_5.get()?, Form::Static, "vector_add", installed)?;
    let dir = testkit::temporary()?;
    let log = dir.path().join("log");
    let run = || installed.preloaded(&program).env("CUDAWAY_DEVICE", "hip");
    let ended = run().run()?;
    ensure!(ended.status.code() == Some(1), "{}", ended.describe());
    ensure!(
        ended.stdout.contains("100 cudaErrorNoDevice (no CUDA-capable device is detected)"),
        "{}",
        ended.describe()
    );
    ensure!(ended.stderr.is_empty(), "{}", ended.describe());
    run().env("CUDAWAY_LOG", "info").env("CUDAWAY_LOG_FILE", &log).run()?;
    let log = fs::read_to_string(log).context("the log file")?;
    ensure!(log.contains(LIBRARY), "the log does not name {LIBRARY}:\n{log}");
    // HIP's own words or its number: hipErrorNoDevice is 100.
    ensure!(log.contains("hipErrorNoDevice"), "the log does not say HIP's answer:\n{log}");
    Ok(())
}

/// A program on the CPU provider and a copy of it under another name: two HIP libraries, one device list.
fn on_two_devices(installed: &Installed, name: &str) -> Result<Ended> {
    let program = examples::build(&Release::V13_5.get()?, Form::Static, name, installed)?;
    let dir = testkit::temporary()?;
    let copy = dir.path().join("libanother_hip.so");
    fs::copy(installed.lib().join("libcudaway_cpu.so"), &copy)?;
    let run = installed.preloaded(&program).env("CUDAWAY_CACHE_DIR", dir.path().join("images"));
    run.env("CUDAWAY_DEVICE", format!("cpu,{}", copy.display())).run()
}

fn two_devices(installed: &Installed) -> Result<()> {
    let ended = on_two_devices(installed, "multi_gpu_threads")?;
    ensure!(ended.passed() && ended.stderr.is_empty(), "{}", ended.describe());
    Ok(())
}

fn two_relay(installed: &Installed) -> Result<()> {
    let ended = on_two_devices(installed, "device_relay")?;
    ensure!(ended.passed() && ended.stderr.is_empty(), "{}", ended.describe());
    ensure!(ended.stdout.contains("device_relay: 6 steps"), "{}", ended.describe());
    Ok(())
}

fn two_solve(installed: &Installed) -> Result<()> {
    let ended = on_two_devices(installed, "cusolver_multi_device")?;
    ensure!(ended.passed() && ended.stderr.is_empty(), "{}", ended.describe());
    ensure!(ended.stdout.contains("on 2 device(s)"), "{}", ended.describe());
    Ok(())
}

fn two_listed(installed: &Installed) -> Result<()> {
    let ended = on_two_devices(installed, "device_query")?;
    ensure!(ended.passed() && ended.stderr.is_empty(), "{}", ended.describe());
    ensure!(ended.stdout.contains("\n2 device(s), "), "{}", ended.describe());
    Ok(())
}

fn relay(installed: &Installed) -> Result<()> {
    let program = examples::build(&Release::V13_5.get()?, Form::Static, "device_relay", installed)?;
    let dir = testkit::temporary()?;
    let run = installed.preloaded(&program).env("CUDAWAY_CACHE_DIR", dir.path());
    let ended = run.env("CUDAWAY_DEVICE", "cpu,cpu,cpu").run()?;
    ensure!(ended.passed() && ended.stderr.is_empty(), "{}", ended.describe());
    ensure!(ended.stdout.contains("device_relay: 9 steps"), "{}", ended.describe());
    Ok(())
}

fn auto(installed: &Installed) -> Result<()> {
    let program = examples::build(&Release::V13_5.get()?, Form::Static, "vector_add", installed)?;
    let dir = testkit::temporary()?;
    let run = installed.preloaded(&program).env("CUDAWAY_DEVICE", "auto");
    let ended = run.env("CUDAWAY_CACHE_DIR", dir.path()).run()?;
    ensure!(ended.passed() && ended.stderr.is_empty(), "{}", ended.describe());
    Ok(())
}
