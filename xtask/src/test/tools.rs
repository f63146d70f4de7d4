//! `cudaway`'s tools as users start them; `doctor` has a file of its own.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use testkit::{Installed, Run};

use super::examples::{self, Form};
use super::report::Report;
use crate::setup;
use crate::toolchain::Release;

pub fn run(installed: &Installed, report: &mut Report) {
    report.note("cudaway trace tells calls, copies and kernels of a program", trace(installed));
    for release in ["12_0", "12_9", "13_0", "13_5"] {
        let name = format!("libnvJitLink links PTX for programs built with {}", release.replace('_', "."));
        report.note(&name, nvjitlink(installed, release));
    }
    report.note("cudaway trace tells of a program that a signal ends", signals(installed));
    report.note("cudaway smi answers scripts as nvidia-smi does", smi(installed));
    super::doctor::run(installed, report);
    super::nvml::run(installed, report);
}

fn smi(installed: &Installed) -> Result<()> {
    let ask = |words: &[&str]| -> Result<String> {
        let ended = cudaway(installed).arg("smi").args(words).env("TZ", "UTC").run()?;
        ensure!(ended.status.success(), "{words:?}: {}", ended.describe());
        Ok(ended.stdout)
    };
    let hour = || setup::said(Command::new("date").args(["-u", "+%Y/%m/%d %H:"]));
    let before = hour()?;
    // Heads are a field's own name, whichever of its names was asked for.
    let said = ask(&["--query-gpu=timestamp,gpu_name,clocks.gr,memory.total", "--format=csv"])?;
    let (head, row) = said.split_once('\n').context("one line")?;
    ensure!(head == "timestamp, name, clocks.current.graphics [MHz], memory.total [MiB]", "{said}");
    let digits: String = row.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    ensure!(digits.starts_with("0000/00/00 00:00:00.000, ") && digits.ends_with(" MiB\n"), "{said}");
    ensure!(row.starts_with(&before) || row.starts_with(&hour()?), "{said}");
    let said = ask(&["--query-compute-apps=pid,used_memory"])?;
    ensure!(said.starts_with("pid, used_gpu_memory [MiB]\n"), "{said}");

    // It goes on until it is ended, with one head, and into a file.
    let dir = testkit::temporary()?;
    let file = dir.path().join("log.csv");
    let program = installed.lib().with_file_name("bin").join("cudaway");
    let mut command = Command::new("timeout");
    command
        .arg("3")
        .arg(program)
        .args(["smi", "--query-gpu=index,uuid", "--loop-ms=50", "--filename"])
        .arg(&file);
    ensure!(command.status()?.code() == Some(124), "it ended by itself");
    let said = std::fs::read_to_string(&file)?;
    let n_heads = said.lines().filter(|line| *line == "index, uuid").count();
    let n_rows = said.lines().filter(|line| line.starts_with("0, GPU-")).count();
    ensure!(n_heads == 1 && n_rows > 1, "{said}");
    Ok(())
}

/// ^C in a terminal goes to all of a process group; `kill` and service managers may tell the tracer alone.
fn signals(installed: &Installed) -> Result<()> {
    let program = examples::build(&Release::V13_5.get()?, Form::Static, "vector_add", installed)?;
    for (whom, signal, number) in
        [("0", "INT", 2), ("0", "TERM", 15), ("$PPID", "TERM", 15), ("$PPID", "HUP", 1)]
    {
        let script = format!("\"$0\"; kill -{signal} {whom}; exec sleep 60");
        // Whoever starts the tests in the background has all below ignore ^C.
        let ended = Run::new("env").arg("--default-signal").arg(tool(installed));
        let ended = ended.args(["trace", "--", "sh", "-c", &script]).arg(&program).run()?;
        let told = ended.stderr.lines().any(|line| line.starts_with("cuLaunchKernel "));
        ensure!(
            ended.status.code() == Some(128 + number) && told,
            "{signal} to {whom}: {}",
            ended.describe()
        );
    }
    let missing =
        cudaway(installed).args(["trace", "--output", "/dev/null/trace.json", "--"]).arg(&program).run()?;
    ensure!(missing.status.code() == Some(1) && missing.stdout.is_empty(), "{}", missing.describe());
    Ok(())
}

/// As installed: `bin` beside `lib`.
pub fn cudaway(installed: &Installed) -> Run {
    Run::new(tool(installed))
}

fn tool(installed: &Installed) -> PathBuf {
    installed.lib().with_file_name("bin").join("cudaway")
}

/// A C program that is linked with the names of one release.
fn nvjitlink(installed: &Installed, release: &str) -> Result<()> {
    let dir = testkit::temporary()?;
    let program = dir.path().join("link");
    let major = release.split('_').next().unwrap_or_default();
    let library = |name: &str| installed.lib().join(name);
    setup::run(
        Command::new("cc")
            .args(["-Wall", "-Wextra", "-Werror"])
            .arg(format!("-DRELEASE={release}"))
            .arg(setup::root().join("examples/nvjitlink/link.c"))
            .arg(library(&format!("libnvJitLink.so.{major}")))
            .arg(library("libcuda.so.1"))
            .arg("-o")
            .arg(&program),
    )?;
    let ended = installed.found(&program).run()?;
    ensure!(ended.passed(), "{}", ended.describe());
    Ok(())
}

fn trace(installed: &Installed) -> Result<()> {
    let program = examples::build(&Release::V13_5.get()?, Form::Static, "vector_add", installed)?;
    let dir = testkit::temporary()?;
    let file = dir.path().join("trace.json");
    let ended = cudaway(installed)
        .arg("trace")
        .arg("--calls")
        .arg("--output")
        .arg(&file)
        .arg("--")
        .arg(&program)
        .run()?;
    ensure!(ended.passed(), "{}", ended.describe());
    let says = |text: &str| ended.stderr.contains(text);
    // The program has 1048589 floats in each of its arrays: two go there, one comes back.
    for wanted in [
        "cudaMemcpy(dst=",
        "count=4194356, kind=cudaMemcpyKind(1)) = 0",
        "<_Z10vector_addPKfS0_Pfi>",
        "copies: to the device 8388712 bytes in 2, to the host 4194356 bytes in 1",
        "\nvector_add(float const*, float const*, float*, int)      1 ",
    ] {
        ensure!(says(wanted), "there is no `{wanted}` in\n{}", ended.describe());
    }
    let trace: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&file)?).context("the trace file")?;
    let events = trace["traceEvents"].as_array().context("no events")?;
    let n = |name: &str| events.iter().filter(|event| event["name"] == name && event["ph"] == "X").count();
    ensure!(
        n("cudaMemcpy") == 3 && n("cuLaunchKernel") == 1,
        "{} copies, {} launches",
        n("cudaMemcpy"),
        n("cuLaunchKernel")
    );
    ensure!(n("vector_add(float const*, float const*, float*, int)") == 1, "no kernel on the device's track");

    // Nothing is written where nobody asked, and a program without CUDA is said to have none.
    let ended = cudaway(installed).arg("trace").arg("--").arg("/bin/true").run()?;
    ensure!(
        ended.status.success() && ended.stderr == "cudaway: no CUDA call reached us\n",
        "{}",
        ended.describe()
    );
    Ok(())
}
