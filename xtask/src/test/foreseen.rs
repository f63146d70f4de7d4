//! Launches that are foreseen: what was launched the last time is got ready when its module is loaded, and a graph's kernels when it is
//! instantiated.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};
use testkit::{Installed, TempDir};

use super::report::{Outcome, Report};
use crate::setup;

const PTX: &str = ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n.reg .u64 %a, %o;\n\
                   .reg .u32 %t;\nld.param.u64 %a, [p];\nmov.u32 %t, %tid.x;\nmul.wide.u32 %o, %t, 4;\nadd.u64 %a, %a, %o;\n\
                   st.global.u32 [%a], %t;\nret;\n}\n.visible .entry other()\n{\nret;\n}\n";

type Case = (&'static str, fn(&Bench) -> Result<()>);

pub fn run(installed: &Installed, report: &mut Report) {
    let cases: [Case; 4] = [
        ("what was launched the last time is got ready while the module is loaded", last_time),
        ("what has run for a while in baseline code gets better code the next time", for_a_while),
        ("a graph's kernels are got ready when it is instantiated", graph),
        ("a module that is unloaded meanwhile leaves nothing behind", unloaded),
    ];
    for (name, case) in cases {
        report.note(name, Outcome::from(Bench::new(installed).and_then(|bench| case(&bench))));
    }
}

struct Bench<'i> {
    installed: &'i Installed,
    folder: TempDir,
    program: PathBuf,
}

impl Bench<'_> {
    fn new(installed: &Installed) -> Result<Bench<'_>> {
        let folder = testkit::temporary()?;
        let program = folder.path().join("program");
        let source = setup::root().join("xtask/src/test/foreseen/program.c");
        setup::run(Command::new("cc").arg("-o").arg(&program).arg(source).arg("-ldl"))?;
        fs::write(folder.path().join("k.ptx"), PTX)?;
        Ok(Bench { installed, folder, program })
    }

    /// What is logged while the program does this, by so many threads, with these variables.
    fn log(&self, what: &str, n_threads: u32, variables: &[(&str, &str)]) -> Result<String> {
        let run = self.installed.found(&self.program).arg(self.folder.path().join("k.ptx")).arg(what);
        let run = run.env("CUDAWAY_DEVICE", "cpu").env("CUDAWAY_CACHE_DIR", self.folder.path().join("cache"));
        let run = run.env("CUDAWAY_LOG", "cpu=info").env("CUDAWAY_CPU_THREADS", n_threads.to_string());
        let ended = variables.iter().fold(run, |run, (name, value)| run.env(name, value)).run()?;
        ensure!(ended.status.success(), "{}", ended.describe());
        let said = if what.starts_with("launch") { "31\n" } else { "waited\n" };
        ensure!(ended.stdout == said, "{}", ended.describe());
        Ok(ended.stderr)
    }

    /// The same of a program that only waits, until this is logged: a machine with other work takes its time.
    fn log_until(
        &self,
        wanted: &str,
        what: &str,
        n_threads: u32,
        variables: &[(&str, &str)],
    ) -> Result<String> {
        let mut log = String::new();
        for seconds in ["2", "10", "30"] {
            log = self.log(what, n_threads, &[variables, &[("SECONDS", seconds)]].concat())?;
            if log.contains(wanted) {
                break;
            }
        }
        Ok(log)
    }
}

const COMPILED: &str = "compiled kernel k, block [32, 1, 1]";
const HIT: &str = "cache hit k, block [32, 1, 1]";
/// A launch that is worth it.
const BEST: (&str, &str) = ("CUDAWAY_CPU_TIER", "best");
/// Other code than that of the cache.
const OTHER: (&str, &str) = ("CUDAWAY_CPU_SETTING", "lane");

fn last_time(bench: &Bench) -> Result<()> {
    let log = bench.log("wait", 2, &[])?;
    ensure!(!log.contains("kernel k"), "nobody has launched it yet:\n{log}");
    let log = bench.log("launch", 2, &[])?;
    ensure!(log.contains("compiled kernel k, all blocks, baseline") && !log.contains(COMPILED), "{log}");
    let log = bench.log("wait", 2, &[])?;
    ensure!(!log.contains("kernel k"), "it was not worth better code:\n{log}");
    let log = bench.log("launch", 2, &[])?;
    ensure!(log.contains("cache hit k, all blocks, baseline") && !log.contains("compiled kernel"), "{log}");
    let log = bench.log("launch", 2, &[BEST])?;
    ensure!(log.contains(COMPILED), "{log}");
    let log = bench.log_until(HIT, "wait", 2, &[])?;
    ensure!(
        log.contains(HIT) && !log.contains("compiled kernel"),
        "the code is taken from the cache:\n{log}"
    );
    // With one core there is none that has nothing to do.
    let log = bench.log("wait", 1, &[OTHER])?;
    ensure!(!log.contains("compiled kernel") && !log.contains("cache hit"), "{log}");
    let log = bench.log_until(COMPILED, "wait", 2, &[OTHER])?;
    ensure!(
        log.contains(COMPILED) && !log.contains("other"),
        "what was launched is compiled, nothing else:\n{log}"
    );
    let log = bench.log("launch", 2, &[OTHER])?;
    ensure!(log.matches("cache hit k").count() == 1 && !log.contains("compiled kernel"), "{log}");
    Ok(())
}

fn for_a_while(bench: &Bench) -> Result<()> {
    // How long a launch takes is the machine's: twice as many until they are enough, which is not yet enough for better code at once.
    for n_launches in (0..12).map(|nth| 8 << nth) {
        let log = bench.log(&format!("launch_{n_launches}"), 2, &[])?;
        ensure!(!log.contains(COMPILED), "{n_launches} launches got better code while they ran:\n{log}");
        let log = bench.log("wait", 2, &[])?;
        if log.contains(COMPILED) {
            ensure!(n_launches > 8, "so few launches are not worth better code:\n{log}");
            return Ok(());
        }
    }
    bail!("no number of launches was enough")
}

fn graph(bench: &Bench) -> Result<()> {
    for n_threads in [1, 2] {
        let log = bench.log_until(COMPILED, "graph", n_threads, &[])?;
        ensure!(log.contains(COMPILED) && !log.contains("other"), "{log}");
        fs::remove_dir_all(bench.folder.path().join("cache"))?;
    }
    Ok(())
}

fn unloaded(bench: &Bench) -> Result<()> {
    bench.log("launch", 2, &[BEST])?;
    let left = |n_threads: u32, variables: &[(&str, &str)]| -> Result<String> {
        let log = bench.log("unload", n_threads, variables)?;
        let line = log.lines().find(|line| line.contains("left at the end"));
        Ok(line.with_context(|| log.clone())?.to_owned())
    };
    let leaks = ("CUDAWAY_LEAKS", "1");
    let plain = left(1, &[leaks])?;
    ensure!(plain.contains("0 of module"), "{plain}");
    // The code is taken from the cache, and it is made.
    for variables in [&[leaks][..], &[leaks, OTHER], &[leaks, OTHER]] {
        let foreseen = left(2, variables)?;
        ensure!(foreseen == plain, "{foreseen}, without: {plain}");
    }
    Ok(())
}
