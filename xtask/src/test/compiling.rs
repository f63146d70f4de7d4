//! That compiling can be seen: in the profile, in a trace, and on a terminal while somebody waits.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use testkit::{Installed, Run};

use super::faults::module_loader;
use super::report::Report;

pub fn run(installed: &Installed, report: &mut Report) {
    report.note(
        "CUDAWAY_PROFILE tells when a kernel had its first code, and when its best",
        profile(installed),
    );
    report.note("cudaway trace shows compiling as spans on a track of its own", trace(installed));
    report.note("CUDAWAY_PROGRESS says on a terminal what a launch has waited for", progress(installed));
}

/// A kernel of so many instructions, which nothing can be left out of. That it never comes to them again a parameter and an atomic operation
/// decide, so its best code is waited for.
fn kernel(name: &str, times: u32) -> String {
    let mut text = format!(
        ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry {name}(.param .u64 p)\n{{\n.reg .u64 %a, %o;\n\
         .reg .u32 %t, %x, %n;\n.reg .pred %again;\nld.param.u64 %a, [p];\n\
         cvt.u32.u64 %n, %a;\nor.b32 %n, %n, 1;\nmov.u32 %t, %tid.x;\nmov.u32 %x, %t;\n\
         mul.wide.u32 %o, %t, 4;\nadd.u64 %a, %a, %o;\nAGAIN:\n"
    );
    for i in 0..times {
        _ = write!(
            text,
            "mad.lo.u32 %x, %x, {}, %t;\nshf.l.wrap.b32 %x, %x, %t, {};\n",
            2 * i + 3,
            i % 31 + 1
        );
        if i % 8 == 7 {
            text += "st.global.u32 [%a], %x;\nld.global.u32 %x, [%a];\n";
        }
    }
    text + "st.global.u32 [%a], %x;\natom.global.add.u32 %x, [%a], 0;\nsetp.eq.u32 %again, %x, %n;\n\
            @%again bra AGAIN;\nret;\n}\n"
}

/// The program that loads a kernel of that length and launches it, and the words it takes.
fn long(dir: &Path, times: u32) -> Result<(PathBuf, PathBuf)> {
    let ptx = dir.join(format!("{times}.ptx"));
    fs::write(&ptx, kernel("long", times))?;
    Ok((module_loader(dir)?, ptx))
}

fn start(installed: &Installed, (loader, ptx): &(PathBuf, PathBuf), dir: &Path) -> Run {
    let run = installed.found(loader).arg(ptx).arg("long");
    let run = run.env("CUDAWAY_DEVICE", "cpu").env("CUDAWAY_CACHE_DIR", dir.join("cache"));
    // The best code is waited for at the end.
    run.env("CUDAWAY_EXIT_WAIT", "300")
}

fn profile(installed: &Installed) -> Result<()> {
    let dir = testkit::temporary()?;
    // So short that nothing is made between its baseline code and its best (`hip-cpu/src/budget.rs`), whatever the processor's vectors.
    let program = long(dir.path(), 200)?;
    // Tier and milliseconds of the first code, and of the best.
    let row = |run: Run| -> Result<(String, f64, String, String)> {
        let ended = run.env("CUDAWAY_PROFILE", "1").run()?;
        ensure!(ended.status.success(), "{}", ended.describe());
        let head = "CUDAWAY PROFILE: code, from the first launch that waited for it";
        let table = ended.stderr.split_once(head).with_context(|| ended.describe())?.1;
        let row = table.lines().find(|line| line.ends_with(" long")).with_context(|| ended.describe())?;
        let words: Vec<&str> = row.split_whitespace().collect();
        let [first, first_ms, best, best_ms, "32x1x1", "long"] = words[..] else { anyhow::bail!("{row}") };
        Ok((first.to_owned(), first_ms.parse()?, best.to_owned(), best_ms.to_owned()))
    };
    let (first, first_ms, best, best_ms) = row(start(installed, &program, dir.path()))?;
    ensure!(first == "baseline" && first_ms > 0.0 && best == "best", "{first} {first_ms} {best}");
    ensure!(best_ms.parse::<f64>()? > first_ms, "the best at {best_ms}, the first at {first_ms}");
    let again = row(start(installed, &program, dir.path()))?;
    // It may have been got ready while the module was loaded, so that the launch waited for nothing.
    ensure!(again.0 == "cache" && again.2 == "cache" && again.3.parse::<f64>()? == again.1, "{again:?}");
    Ok(())
}

fn trace(installed: &Installed) -> Result<()> {
    let dir = testkit::temporary()?;
    let (loader, ptx) = long(dir.path(), 10)?;
    let (tool, file) = (installed.lib().with_file_name("bin").join("cudaway"), dir.path().join("trace.json"));
    let run =
        Run::new(tool).args(["trace", "--output"]).arg(&file).arg("--").arg(loader).arg(&ptx).arg("long");
    // One piece of code.
    let run = run.env("CUDAWAY_CPU_TIER", "best");
    let ended = run.env("CUDAWAY_DEVICE", "cpu").env("CUDAWAY_CACHE_DIR", dir.path().join("cache")).run()?;
    ensure!(ended.status.success(), "{}", ended.describe());
    let trace: Value = serde_json::from_str(&fs::read_to_string(&file)?)?;
    let events = trace["traceEvents"].as_array().context("events")?;
    let one = |category: &str| {
        let mut found = events.iter().filter(|event| event["cat"] == category);
        found
            .next()
            .filter(|_| found.next().is_none())
            .with_context(|| format!("not one {category}: {events:?}"))
    };
    let (compile, kernel) = (one("compile")?, one("kernel")?);
    ensure!(compile["name"] == "compile long" && compile["args"]["code"] == "best", "{compile}");
    ensure!(compile["args"]["block"] == "32x1x1", "{compile}");
    let time = |event: &Value, key: &str| event[key].as_f64().unwrap_or_default();
    ensure!(time(compile, "dur") > 0.0, "{compile}");
    // The kernel ran when there was code.
    ensure!(time(compile, "ts") + time(compile, "dur") <= time(kernel, "ts"), "{compile} {kernel}");
    let is_name = |event: &&Value| event["ph"] == "M" && event["tid"] == compile["tid"];
    let name = events.iter().find(is_name).context("a track without a name")?;
    ensure!(name["args"]["name"] == "compiler 0" && compile["tid"] != kernel["tid"], "{name}");
    Ok(())
}

fn progress(installed: &Installed) -> Result<()> {
    let dir = testkit::temporary()?;
    let said = "cudaway: compiling long, block 32x1x1 (";
    let on = |run: Run, cache: &str| {
        let run = run.env("LD_LIBRARY_PATH", installed.lib()).env("CUDAWAY_DEVICE", "cpu");
        run.env("CUDAWAY_CACHE_DIR", dir.path().join(cache)).env("CUDAWAY_PROGRESS", "1").run()
    };
    // As long as it takes for any code to be a second's work.
    for times in [1500, 15_000, 150_000] {
        let (loader, ptx) = long(dir.path(), times)?;
        // What `script` starts has a terminal of its own, whose text is the output.
        let line = format!("{} {} long", loader.display(), ptx.display());
        let ended =
            on(Run::new("script").args(["-qec", &line, "/dev/null"]).env("TERM", "xterm"), "terminal")?;
        ensure!(ended.status.success() && ended.stdout.contains("launch long 0"), "{}", ended.describe());
        if !ended.stdout.contains(said) {
            continue;
        }
        // The line is gone at the end: the carriage returns, and what stands there is erased.
        let (_, behind) = ended.stdout.rsplit_once(said).context("the last line")?;
        ensure!(behind.contains("\r\u{1b}[2K"), "the line stays:\n{behind}");
        let ended = on(Run::new(&loader).arg(&ptx).arg("long"), "file")?;
        ensure!(ended.status.success() && !ended.stderr.contains("compiling"), "{}", ended.describe());
        return Ok(());
    }
    anyhow::bail!("the terminal shows no such line")
}
