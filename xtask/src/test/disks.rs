//! `cudaway run` and `cudaway compile` where something is missing that they could do without: room on a disk, a compiler. The disks are
//! small ones of a mount namespace.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, ensure};
use testkit::{Ended, Installed, Run, TempDir};

use super::report::{Outcome, Report};
use super::tools::cudaway;
use crate::{reach, setup};

/// What a case does to the disks, and whether names can be claimed all the same.
type Case = (&'static str, &'static str, bool);

const FULL: &str = "small \"$CUDAWAY_CACHE_DIR\" && fill \"$CUDAWAY_CACHE_DIR\"";
const READ_ONLY: &str = "small \"$CUDAWAY_CACHE_DIR\" && mkdir -m 700 \"$CUDAWAY_CACHE_DIR/claims\" && mount -o remount,ro \"$CUDAWAY_CACHE_DIR\"";

const CASES: [Case; 4] = [
    ("where the disk of the cache is full", FULL, true),
    ("where the disk of the cache is read-only", READ_ONLY, true),
    (
        "where the disks of the cache and of temporary files are full",
        "small \"$CUDAWAY_CACHE_DIR\" && fill \"$CUDAWAY_CACHE_DIR\" && small \"$TMPDIR\" && fill \"$TMPDIR\"",
        true,
    ),
    (
        "where no disk takes anything, and says what is missing",
        "small \"$CUDAWAY_CACHE_DIR\" && fill \"$CUDAWAY_CACHE_DIR\" && small \"$TMPDIR\" && fill \"$TMPDIR\" && \
         small /dev/shm && fill /dev/shm",
        false,
    ),
];

pub fn run(installed: &Installed, report: &mut Report) {
    for (what, disks, is_claimed) in CASES {
        let outcome = if reach::has_namespaces() {
            start(installed, disks, is_claimed).into()
        } else {
            Outcome::Skipped("this user may not make a mount namespace".to_owned())
        };
        report.note(&format!("cudaway run starts a program {what}"), outcome);
    }
    report.note("cudaway compile without a compiler says once what to install", compile(installed));
}

/// Opens the driver by each name that it is given, and asks its version.
const OPENER: &str = r#"
#include <dlfcn.h>
#include <stdio.h>
int main(int n, char **words) {
    for (int i = 1; i < n; i++) {
        int version = 0;
        void *library = dlopen(words[i], RTLD_NOW);
        int (*get)(int *) = library ? (int (*)(int *))dlsym(library, "cuDriverGetVersion") : 0;
        printf("%s %d\n", words[i], get && !get(&version) ? version : 0);
    }
    return 0;
}
"#;

/// Where only a claim leads to us, and where anything does.
const CLAIMED: &str = "/usr/lib64/libcuda.so.1";
const SONAME: &str = "libcuda.so.1";

fn start(installed: &Installed, disks: &str, is_claimed: bool) -> Result<()> {
    let folder = testkit::temporary()?;
    let opener = opener(&folder)?;
    for name in ["cache", "tmp"] {
        std::fs::create_dir(folder.path().join(name))?;
    }
    let script = format!(
        "small() {{ mount -t tmpfs -o size=64k,mode=700 tmpfs \"$1\"; }}\n\
         fill() {{ head -c 1000000 /dev/zero > \"$1/filled\" 2>/dev/null || test -s \"$1/filled\"; }}\n\
         set -e\n{disks}\nexec \"$0\" \"$@\"\n"
    );
    let mut namespace = Run::new("unshare").args(["--mount", "--propagation", "private"]);
    if !is_root()? {
        namespace = namespace.arg("--map-root-user");
    }
    let ended = namespace
        .args(["sh", "-c", &script])
        .arg(installed.lib().with_file_name("bin").join("cudaway"))
        .args(["run", "--device", "cpu", "--"])
        .arg(&opener)
        .args([SONAME, CLAIMED])
        .env("CUDAWAY_CACHE_DIR", folder.path().join("cache"))
        .env("TMPDIR", folder.path().join("tmp"))
        .run()?;
    let wanted = format!("{SONAME} 13050\n{CLAIMED} {}\n", if is_claimed { 13050 } else { 0 });
    ensure!(ended.status.success() && ended.stdout == wanted, "{}", ended.describe());
    let said: Vec<&str> = ended.stderr.lines().collect();
    if is_claimed {
        ensure!(said.is_empty(), "{}", ended.describe());
    } else {
        let is_told =
            |line: &str| line.starts_with("cudaway: no names are claimed") && line.contains("No space left");
        ensure!(said.len() == 1 && is_told(said[0]), "{}", ended.describe());
    }
    Ok(())
}

fn is_root() -> Result<bool> {
    Ok(std::os::unix::fs::MetadataExt::uid(&std::fs::metadata("/proc/self")?) == 0)
}

fn opener(folder: &TempDir) -> Result<PathBuf> {
    let (source, program) = (folder.path().join("opener.c"), folder.path().join("opener"));
    std::fs::write(&source, OPENER)?;
    setup::run(Command::new("cc").arg("-o").arg(&program).arg(&source).arg("-ldl"))?;
    Ok(program)
}

fn compile(installed: &Installed) -> Result<()> {
    let folder = testkit::temporary()?;
    let source = folder.path().join("two.ptx");
    let kernel = |name: &str| format!(".visible .entry {name}()\n{{\nret;\n}}\n");
    let head = ".version 6.0\n.target sm_50\n.address_size 64\n";
    std::fs::write(&source, format!("{head}{}{}", kernel("one"), kernel("two")))?;
    let run = cudaway(installed).args(["compile", "--target", "gfx1100", "--output"]).arg(folder.path());
    let ended: Ended = run
        .arg(&source)
        .env("CUDAWAY_CACHE_DIR", folder.path().join("cache"))
        // A ROCm that is named is the only place where a compiler is looked for.
        .env("CUDAWAY_ROCM_ROOT", folder.path().join("no-rocm"))
        .run()?;
    ensure!(ended.status.code() == Some(1), "{}", ended.describe());
    for words in
        ["nothing here compiles for gfx1100", "libamd-comgr2", "package comgr of ROCm", "clang-19 and lld-19"]
    {
        ensure!(ended.stderr.matches(words).count() == 1, "{words}, once: {}", ended.describe());
    }
    ensure!(ended.stderr.ends_with("2 failed\n"), "{}", ended.describe());
    Ok(())
}
