//! Code that is there before a program runs: what `cudaway compile --target cpu` made serves a first run, wherever it lies, and is
//! refused where somebody could have changed it.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use testkit::{Installed, Run, TempDir};

use super::examples::{self, Form};
use super::faults::{files, module_loader};
use super::report::{Outcome, Report};
use crate::toolchain::Release;

const DISTRUST: &str = "the cache is not used, since somebody else could have put code there";

type Case = (&'static str, fn(&Bench) -> Result<()>);

pub fn run(installed: &Installed, report: &mut Report) {
    let cases: [Case; 5] = [
        (
            "cudaway compile --target cpu: a first run elsewhere compiles nothing, of programs by nvcc",
            programs,
        ),
        (
            "cudaway compile --target cpu: a first run elsewhere compiles nothing, of PTX by cuModuleLoad",
            modules,
        ),
        ("cudaway compile --target cpu=x86-64-v3 serves every processor that has the level", levels),
        ("CUDAWAY_CACHE_PATH: a poisoned entry is refused with a log line", poisoned),
        ("CUDAWAY_CACHE_PATH: a folder that others may write to is refused with a log line", foreign),
    ];
    for (name, case) in cases {
        let outcome = Bench::new(installed).and_then(|bench| case(&bench));
        report.note(name, Outcome::from(outcome));
    }
}

struct Bench<'i> {
    installed: &'i Installed,
    folder: TempDir,
}

impl Bench<'_> {
    fn new(installed: &Installed) -> Result<Bench<'_>> {
        Ok(Bench { installed, folder: testkit::temporary()? })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A cache for the file, in another folder than the one it was made in.
    fn compiled(&self, file: &Path, options: &[&str]) -> Result<PathBuf> {
        let (made, moved) = (self.path("made"), self.path("elsewhere"));
        let tool = self.installed.lib().with_file_name("bin").join("cudaway");
        let run = Run::new(tool).args(["compile", "--output"]).arg(&made).args(options).arg(file);
        let ended =
            run.env("CUDAWAY_CACHE_DIR", self.path("of the command")).env("CUDAWAY_CACHE_PATH", ":").run()?;
        ensure!(ended.status.success(), "{}", ended.describe());
        ensure!(!self.path("of the command").exists(), "something else was written than what was asked for");
        if moved.exists() {
            fs::remove_dir_all(&moved)?;
        }
        fs::rename(made, &moved)?;
        Ok(moved)
    }

    /// What the log of the first run of a program says, which has this cache behind its own; and whether it kept code itself.
    fn first_run(&self, run: Run, cache: &Path) -> Result<(String, bool)> {
        let own = self.path("own");
        if own.exists() {
            fs::remove_dir_all(&own)?;
        }
        let run = run.env("CUDAWAY_DEVICE", "cpu").env("CUDAWAY_LOG", "cache=debug,cpu=info");
        let ended = run.env("CUDAWAY_CACHE_DIR", &own).env("CUDAWAY_CACHE_PATH", cache).run()?;
        ensure!(ended.status.success(), "{}", ended.describe());
        // Besides code there is a list of what was launched, which is short.
        let kept = if own.exists() { files(&own)? } else { BTreeSet::new() };
        let has_code = kept.iter().any(|file| fs::metadata(file).is_ok_and(|about| about.len() > 1000));
        Ok((ended.stderr, has_code))
    }

    fn compiles_nothing(&self, run: Run, cache: &Path) -> Result<()> {
        let (log, has_kept) = self.first_run(run, cache)?;
        ensure!(log.contains("cache hit"), "nothing came from the cache:\n{log}");
        ensure!(
            !log.contains("compiled kernel") && !log.contains("cache miss"),
            "something was compiled:\n{log}"
        );
        ensure!(!has_kept, "code was written to the user's own cache");
        Ok(())
    }

    fn example(&self, form: Form, name: &str) -> Result<PathBuf> {
        examples::build(&Release::V13_5.get()?, form, name, self.installed)
    }
}

fn programs(bench: &Bench) -> Result<()> {
    for (form, name) in [
        (Form::Static, "vector_add"),
        (Form::Static, "matmul_tiled"),
        (Form::Rdc, "matmul_tiled"),
        (Form::Shared, "vector_add"),
    ] {
        let program = bench.example(form, name)?;
        let cache = bench.compiled(&program, &["--target", "cpu"])?;
        bench
            .compiles_nothing(bench.installed.preloaded(&program), &cache)
            .with_context(|| format!("{name}, {}", form.name()))?;
    }
    Ok(())
}

const HEAD: &str = ".version 6.0\n.target sm_50\n.address_size 64\n";

/// A kernel that writes where it stands in its block: the loader launches blocks of 32.
fn kernel(name: &str, number: &str) -> String {
    format!(
        ".visible .entry {name}(.param .u64 p)\n{{\n.reg .u64 %a, %o;\n.reg .u32 %t, %y;\nld.param.u64 %a, [p];\n\
         mov.u32 %t, %tid.x;\nmov.u32 %y, {number};\nmul.wide.u32 %o, %t, 4;\nadd.u64 %a, %a, %o;\n\
         add.u32 %t, %t, %y;\nst.global.u32 [%a], %t;\nret;\n}}\n"
    )
}

fn modules(bench: &Bench) -> Result<()> {
    let loader = module_loader(bench.folder.path())?;
    let ptx = bench.path("kernels.ptx");
    let start = || bench.installed.found(&loader).arg(&ptx).args(["flat", "tile"]);
    // Short ones are looked into at once. Of longer ones the cache says that nothing is wrong.
    for comment in [String::new(), "// long\n".repeat(1000)] {
        fs::write(&ptx, [HEAD, &comment, &kernel("flat", "1"), &kernel("tile", "%tid.y")].concat())?;
        let cache = bench.compiled(&ptx, &["--target", "cpu", "--block", "32"])?;
        bench.compiles_nothing(start(), &cache)?;
    }
    // Who does not say how it is launched has code for the usual blocks, of which those of 32 are none: all blocks in a row have one
    // code meanwhile.
    let cache = bench.compiled(&ptx, &["--target", "cpu"])?;
    let (log, _) = bench.first_run(start(), &cache)?;
    let at = |text: &str| log.find(text).with_context(|| format!("no {text}:\n{log}"));
    ensure!(at("cache hit flat, blocks of 32 to 1024")? < at("compiled kernel tile")?, "{log}");
    Ok(())
}

fn levels(bench: &Bench) -> Result<()> {
    let flags = fs::read_to_string("/proc/cpuinfo")?;
    let has = |name: &str| flags.split_whitespace().any(|flag| flag == name);
    let program = bench.example(Form::Static, "vector_add")?;
    for (level, is_here) in [("x86-64-v3", has("avx2") && has("bmi2")), ("x86-64-v4", has("avx512vl"))] {
        let cache = bench.compiled(&program, &["--target", &format!("cpu={level}")])?;
        let run = bench.installed.preloaded(&program);
        if is_here {
            bench.compiles_nothing(run, &cache).with_context(|| level.to_owned())?;
        } else {
            let (log, _) = bench.first_run(run, &cache)?;
            ensure!(log.contains("compiled kernel"), "code for a better processor was run:\n{log}");
        }
    }
    Ok(())
}

fn poisoned(bench: &Bench) -> Result<()> {
    let program = bench.example(Form::Static, "vector_add")?;
    let cache = bench.compiled(&program, &["--target", "cpu"])?;
    let entries = files(&cache)?;
    for entry in &entries {
        let mut bytes = fs::read(entry)?;
        // The last byte of what is stored, behind its hash.
        let last = bytes.last_mut().context("an entry is empty")?;
        *last ^= 1;
        fs::write(entry, bytes)?;
    }
    let before = entries.iter().map(fs::read).collect::<Result<Vec<_>, _>>()?;
    let (log, has_kept) = bench.first_run(bench.installed.preloaded(&program), &cache)?;
    ensure!(log.contains("cache entry damaged (Checksum), not used for"), "the log does not say it:\n{log}");
    ensure!(!log.contains("cache hit") && log.contains("compiled kernel") && has_kept, "{log}");
    let after = files(&cache)?.iter().map(fs::read).collect::<Result<Vec<_>, _>>()?;
    ensure!(before == after, "a cache that is only read was changed");
    Ok(())
}

fn foreign(bench: &Bench) -> Result<()> {
    let program = bench.example(Form::Static, "vector_add")?;
    let cache = bench.compiled(&program, &["--target", "cpu"])?;
    for mode in [0o777, 0o775] {
        fs::set_permissions(&cache, fs::Permissions::from_mode(mode))?;
        let (log, has_kept) = bench.first_run(bench.installed.preloaded(&program), &cache)?;
        let said = log.lines().filter(|line| line.contains(DISTRUST) && line.contains("elsewhere")).count();
        // The driver has a cache, and the CPU device has one.
        ensure!((1..=2).contains(&said), "the log does not say it once for each:\n{log}");
        ensure!(!log.contains("cache hit") && has_kept, "{log}");
    }
    fs::set_permissions(&cache, fs::Permissions::from_mode(0o755))?;
    bench.compiles_nothing(bench.installed.preloaded(&program), &cache)
}
