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
    report.note("an object that is preloaded is each library of its major", several(installed));
    report.note("cudaway trace tells of a program that a signal ends", signals(installed));
    report.note("cudaway smi answers scripts as nvidia-smi does", smi(installed));
    super::share::run(installed, report);
    super::disks::run(installed, report);
    super::doctor::run(installed, report);
    super::nvml::run(installed, report);
}

/// For pairs of a library's name and a function of its: which object the name leads to, which one the function is in, and which
/// release it says it is.
const SEVERAL: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <link.h>
#include <string.h>
int main(int n, char **words) {
    for (int i = 1; i + 1 < n; i += 2) {
        struct link_map *map = 0;
        Dl_info info = {0};
        void *library = dlopen(words[i], RTLD_NOW | RTLD_NOLOAD);
        if (library) dlinfo(library, RTLD_DI_LINKMAP, &map);
        if (library) dladdr(dlsym(library, words[i + 1]), &info);
        printf("%s %s %s\n", words[i], map ? map->l_name : "none", info.dli_fname ? info.dli_fname : "none");
    }
    for (int i = 1; i + 1 < n; i += 2) {
        int version = 0;
        void *library = dlopen(words[i], RTLD_NOW);
        if (strstr(words[i], "libcublasLt"))
            version = ((size_t (*)(void))dlsym(library, "cublasLtGetVersion"))();
        else if (strstr(words[i], "libcublas"))
            ((int (*)(int, int *))dlsym(library, "cublasGetProperty"))(0, &version);
        else
            ((int (*)(int *))dlsym(library, "cudaRuntimeGetVersion"))(&version), version /= 1000;
        printf("%d\n", version);
    }
    return 0;
}
"#;

/// `cudaway run` preloads one object for each major, which answers to the names of the major's libraries.
fn several(installed: &Installed) -> Result<()> {
    let dir = testkit::temporary()?;
    let (source, client) = (dir.path().join("several.c"), dir.path().join("several"));
    std::fs::write(&source, SEVERAL)?;
    setup::run(Command::new("cc").args(["-w", "-o"]).arg(&client).arg(&source).arg("-ldl"))?;
    let (mut words, mut objects, mut releases) = (Vec::new(), String::new(), String::new());
    // The last is what NVIDIA's cublasLtGetVersion answers in the releases that ours follow.
    for (major, runtime, cublas_lt) in [
        (11, "libcudart.so.11.0", 111_103),
        (12, "libcudart.so.12", 120_901),
        (13, "libcudart.so.13", 131_000),
    ] {
        let object = installed.lib().join("preload").join(runtime).display().to_string();
        for (stem, function) in [
            ("libcublas.so", "cublasCreate_v2"),
            ("libcublasLt.so", "cublasLtCreate"),
            ("libnvJitLink.so", "nvJitLinkVersion"),
            ("libcudart.so", "cudaMalloc"),
        ] {
            let name = if stem == "libcudart.so" { runtime.to_owned() } else { format!("{stem}.{major}") };
            // CUDA 11 has none.
            if name != "libnvJitLink.so.11" {
                objects += &format!("{name} {object} {object}\n");
                releases += &format!("{}\n", if stem == "libcublasLt.so" { cublas_lt } else { major });
                words.extend([name, function.to_owned()]);
            }
        }
    }
    let ended = cudaway(installed).arg("run").arg("--").arg(client).args(&words).run()?;
    let wanted = objects + &releases;
    ensure!(ended.stdout == wanted, "wanted\n{wanted}got\n{}{}", ended.stdout, ended.describe());
    Ok(())
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
