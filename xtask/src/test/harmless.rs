//! Our objects in front of ordinary programs: not a byte of their output changes, ROCm and our own parts are not opened, no
//! thread starts.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use anyhow::{Context as _, Result, ensure};
use testkit::{Installed, TempDir};

use super::report::{Outcome, Report};
use crate::setup;

/// Programs that say the same whenever they are run in this checkout.
pub const PROGRAMS: &[&str] = &[
    "awk {BEGIN{print(6*7)}}",
    "base64 Cargo.toml",
    "basename a/b",
    "bash -c echo${PATH}",
    "bc --version",
    "bzip2 --help",
    "cat Cargo.toml",
    "cc -dumpmachine",
    "cksum Cargo.toml",
    "cmp Cargo.toml README.md",
    "comm Cargo.toml Cargo.toml",
    "cp --version",
    "curl --version",
    "cut -c1-9 Cargo.toml",
    "date -u -d @0",
    "dd if=Cargo.toml status=none",
    "diff Cargo.toml README.md",
    "dirname a/b",
    "du -b Cargo.toml",
    "expr 6 * 7",
    "factor 5040",
    "file --version",
    "find crates/loader",
    "fold -w 9 Cargo.toml",
    "g++ --version",
    "gdb -nx -batch -ex print(6*7)",
    "git --version",
    "git config --list --file .cargo/config.toml",
    "grep -c crates Cargo.toml",
    "gzip -nc Cargo.toml",
    "head -3 Cargo.toml",
    "id",
    "java -version",
    "ld --version",
    "ls -la crates",
    "make --version",
    "md5sum Cargo.toml",
    "nl Cargo.toml",
    "nm --version",
    "node -p 6*7",
    "npm --version",
    "numfmt --to=iec 123456",
    "objdump -f /bin/true",
    "od -c Cargo.toml",
    "openssl version",
    "paste Cargo.toml Cargo.toml",
    "perl -e print(6*7)",
    "pr -h x -D x Cargo.toml",
    "printf %s x",
    "python3 -c print(6*7)",
    "readelf -h /bin/true",
    "readlink -f .",
    "realpath .",
    "rev Cargo.toml",
    "sed -n 1,3p Cargo.toml",
    "seq 9",
    "sh -c echo",
    "sha256sum Cargo.toml",
    "sort Cargo.toml",
    "sqlite3 :memory: .help",
    "stat -c %s Cargo.toml",
    "sum Cargo.toml",
    "tac Cargo.toml",
    "tail -3 Cargo.toml",
    "tar --version",
    "true",
    "uname -s",
    "uniq Cargo.toml",
    "wc Cargo.toml",
    "xz -kc Cargo.toml",
    "zstd -qc Cargo.toml",
];

/// What nobody wants to have opened who only listed a directory.
const FOREIGN: [&str; 7] = [
    "libamdhip64",
    "libamd_comgr",
    "libhsa-runtime",
    "/dev/kfd",
    "/opt/rocm",
    "libcudaway_cpu",
    "libcudaway_cudart",
];

pub fn run(installed: &Installed, report: &mut Report) {
    let has_strace = setup::which("strace").is_some();
    if !has_strace {
        let why = "strace is not there".to_owned();
        report.note("harmless: what ordinary programs open, and their threads", Outcome::Skipped(why));
    }
    let front = match Front::of_run(installed.lib()).and_then(|front| front.with_hooks(installed.lib())) {
        Ok(front) => front,
        Err(error) => return report.note("harmless: what `cudaway run` preloads", Err(error)),
    };
    let mut n_missing = 0;
    for line in PROGRAMS {
        let words: Vec<&str> = line.split(' ').collect();
        if setup::which(words[0]).is_none() {
            n_missing += 1;
            continue;
        }
        report.note(&format!("harmless: {line}"), compare(&front, &words, has_strace));
    }
    println!("{n_missing} of {} programs are not there", PROGRAMS.len());
}

fn compare(front: &Front, words: &[&str], has_strace: bool) -> Result<()> {
    let (plain, ours) = (start(None, words)?, start(Some(front), words)?);
    let streams = [("stdout", &plain.stdout, &ours.stdout), ("stderr", &plain.stderr, &ours.stderr)];
    for (stream, before, after) in streams {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        ensure!(before == after, "{stream} was\n{}and is\n{}", text(before), text(after));
    }
    ensure!(plain.status == ours.status, "it ended with {}, and ends with {}", plain.status, ours.status);
    if has_strace {
        let (before, after) = (trace(None, words)?, trace(Some(front), words)?);
        let foreign = after.opened.iter().find(|path| FOREIGN.iter().any(|it| path.contains(it)));
        ensure!(foreign.is_none(), "{} is opened", foreign.map_or("", String::as_str));
        // Programs with threads of their own (java, node) start as many as they like.
        ensure!(before.n_threads > 0 || after.n_threads == 0, "{} threads are started", after.n_threads);
    }
    Ok(())
}

/// What is put in front of a program.
pub struct Front {
    /// The words of LD_PRELOAD.
    pub preload: Vec<String>,
    library_path: String,
    /// Where the objects that claim names lie.
    _cache: TempDir,
}

impl Front {
    /// What `cudaway run` puts there.
    pub fn of_run(lib: &Path) -> Result<Front> {
        let cache = testkit::temporary()?;
        let mut cudaway = Command::new(lib.with_file_name("bin").join("cudaway"));
        cudaway.arg("run").arg("--lib").arg(lib).args(["--", "env"]).env("CUDAWAY_CACHE_DIR", cache.path());
        let output = cudaway.env_remove("LD_PRELOAD").env_remove("LD_LIBRARY_PATH").output();
        let output = output.with_context(|| format!("{cudaway:?}"))?;
        let said = String::from_utf8_lossy(&output.stdout);
        let value = |name: &str| {
            let value = said.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
            value.map(str::to_owned).with_context(|| format!("{cudaway:?} sets no {name}"))
        };
        let preload = value("LD_PRELOAD")?.split(':').map(str::to_owned).collect();
        Ok(Front { preload, library_path: value("LD_LIBRARY_PATH")?, _cache: cache })
    }

    /// The hooks too, which do nothing unless told.
    fn with_hooks(mut self, lib: &Path) -> Result<Front> {
        let hooks = lib.join("libcudaway_hooks.so");
        ensure!(hooks.exists(), "{} is not there", hooks.display());
        self.preload.push(hooks.display().to_string());
        Ok(self)
    }

    fn variables(&self) -> [(&str, String); 2] {
        [("LD_PRELOAD", self.preload.join(":")), ("LD_LIBRARY_PATH", self.library_path.clone())]
    }
}

fn start(front: Option<&Front>, words: &[&str]) -> Result<Output> {
    command(front, words).output().with_context(|| words[0].to_owned())
}

/// One of the programs, with ours in front of it or with nothing.
pub fn command(front: Option<&Front>, words: &[&str]) -> Command {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]);
    in_front(&mut command, front);
    command
}

fn in_front(command: &mut Command, front: Option<&Front>) {
    command.current_dir(setup::root()).stdin(Stdio::null()).env("LC_ALL", "C");
    command.env_remove("LD_PRELOAD").env_remove("LD_LIBRARY_PATH");
    command.envs(front.iter().flat_map(|front| front.variables()));
}

/// What strace saw of a program and all it started.
struct Trace {
    opened: BTreeSet<String>,
    n_threads: usize,
}

fn trace(front: Option<&Front>, words: &[&str]) -> Result<Trace> {
    let folder = testkit::temporary()?;
    let log = folder.path().join("calls");
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-e", "trace=open,openat,clone,clone3", "-o"]).arg(&log);
    // Set for the program alone, strace itself stays as it is.
    for (name, value) in front.iter().flat_map(|front| front.variables()) {
        command.arg("-E").arg(format!("{name}={value}"));
    }
    in_front(command.args(words), None);
    command.output().context("strace")?;
    let text = std::fs::read_to_string(&log)?;
    ensure!(text.contains("open"), "strace saw no call");
    let opened = text
        .lines()
        .filter(|line| line.contains("open") && !line.contains(" = -1 "))
        .filter_map(|line| line.split('"').nth(1).map(str::to_owned));
    Ok(Trace {
        opened: opened.collect(),
        n_threads: text.lines().filter(|line| line.contains("CLONE_THREAD")).count(),
    })
}
