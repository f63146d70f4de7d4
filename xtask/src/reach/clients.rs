//! The programs that look for the driver, each in one way, and what they are built with.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::setup;

/// Where NVIDIA's driver lies on the machine of the test.
pub const SYSTEM: &str = "/usr/lib/x86_64-linux-gnu";
/// The file behind its links.
pub const REAL: &str = "libcuda.so.999.0";

/// What a client needs beyond a C compiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    Nothing,
    /// `gcc -m32`
    Multilib,
    /// `musl-gcc`
    Musl,
    Cffi,
    Go,
    Java,
    Node,
    Bubblewrap,
    /// Another user than root to run as.
    Users,
}

/// One row of docs/reach.md.
pub struct Client {
    pub name: &'static str,
    pub need: Need,
    /// `{}` is the folder of the built programs, `{system}` that of the driver.
    pub command: &'static str,
}

const fn row(name: &'static str, need: Need, command: &'static str) -> Client {
    Client { name, need, command }
}

pub const CLIENTS: &[Client] = &[
    row("C, linked", Need::Nothing, "{}/linked"),
    row("C, linked, a copy in its RPATH", Need::Nothing, "{}/rpath"),
    row("C, linked, a copy in its RUNPATH", Need::Nothing, "{}/runpath"),
    row("C, `dlopen` by SONAME", Need::Nothing, "{}/client dlopen libcuda.so.1"),
    row("C, `dlopen` of `libcuda.so`", Need::Nothing, "{}/client dlopen libcuda.so"),
    row("C, `dlopen` of the path", Need::Nothing, "{}/client dlopen {system}/libcuda.so.1"),
    row(
        "C, `dlopen` of the full version's path",
        Need::Nothing,
        "{}/client dlopen {system}/libcuda.so.999.0",
    ),
    row("C, `RTLD_DEEPBIND`", Need::Nothing, "{}/client deepbind libcuda.so.1"),
    row("C, `RTLD_GLOBAL`, then `RTLD_DEFAULT`", Need::Nothing, "{}/client global libcuda.so.1"),
    row("C, `RTLD_DEFAULT` alone", Need::Nothing, "{}/client default"),
    row("C, `dlmopen` in a new namespace", Need::Nothing, "{}/client dlmopen libcuda.so.1"),
    row("C, static, `dlopen`", Need::Nothing, "{}/static dlopen libcuda.so.1"),
    row(
        "C, set-user-ID",
        Need::Users,
        "setpriv --reuid=65534 --clear-groups /mnt/set-user-id dlopen libcuda.so.1",
    ),
    row("C, 32-bit", Need::Multilib, "{}/client32 dlopen libcuda.so.1"),
    row("C, musl", Need::Musl, "{}/musl dlopen libcuda.so.1"),
    row("C++, before `main`", Need::Nothing, "{}/before-main"),
    row("forked child", Need::Nothing, "{}/client fork libcuda.so.1"),
    row("started child", Need::Nothing, "{}/client exec libcuda.so.1"),
    row("started child, environment cleared", Need::Nothing, "{}/client exec-cleared libcuda.so.1"),
    row("`env -i`", Need::Nothing, "env -i {}/client dlopen libcuda.so.1"),
    row("shell script", Need::Nothing, "{}/script libcuda.so.1"),
    row(
        "`bwrap --clearenv`",
        Need::Bubblewrap,
        "bwrap --dev-bind / / --clearenv {}/client dlopen libcuda.so.1",
    ),
    row("Go with cgo", Need::Go, "{}/cgo dlopen libcuda.so.1"),
    row("Go with cgo, path", Need::Go, "{}/cgo dlopen {system}/libcuda.so.1"),
    row("Go with cgo, child", Need::Go, "{}/cgo child {}/client dlopen libcuda.so.1"),
    row("Go with cgo, child with `os.Environ()`", Need::Go, "{}/cgo environ {}/client dlopen libcuda.so.1"),
    row("Go with cgo, child, environment cleared", Need::Go, "{}/cgo cleared {}/client dlopen libcuda.so.1"),
    row("Go without cgo", Need::Go, "{}/plain-go self"),
    row("Go without cgo, child", Need::Go, "{}/plain-go child {}/client dlopen libcuda.so.1"),
    row("Python, ctypes by SONAME", Need::Nothing, "/usr/bin/python3 {}/ctypes_client.py libcuda.so.1"),
    row("Python, ctypes `find_library`", Need::Nothing, "/usr/bin/python3 {}/ctypes_client.py find"),
    row("Python, cffi", Need::Cffi, "/usr/bin/python3 {}/cffi_client.py"),
    row("Java, JNA", Need::Java, "java -cp {}:/usr/share/java/jna.jar Jna"),
    row("Node.js, koffi", Need::Node, "node {}/koffi.js"),
];

/// What `cargo xtask reach` installs where the program or file beside it is missing; a test takes what is there.
const PACKAGES: &[(&str, setup::Package)] = &[
    ("/usr/lib/gcc/x86_64-linux-gnu/12/32", ("gcc-multilib", "a 32-bit client")),
    ("musl-gcc", ("musl-tools", "a client of another C library")),
    ("/usr/lib/python3/dist-packages/cffi", ("python3-cffi", "a Python client with cffi")),
    ("go", ("golang-go", "clients in Go")),
    ("javac", ("default-jdk-headless", "a client in Java")),
    (JNA, ("libjna-java", "a client in Java")),
    ("node", ("nodejs", "a client in JavaScript")),
    ("npm", ("npm", "fetches koffi for it")),
    ("bwrap", ("bubblewrap", "a client in a sandbox")),
];

pub fn packages() -> Result<()> {
    let is_there = |what: &str| Path::new(what).exists() || setup::which(what).is_some();
    let missing: Vec<setup::Package> =
        PACKAGES.iter().filter(|(what, _)| !is_there(what)).map(|(_, package)| *package).collect();
    setup::packages(&missing)
}

const JNA: &str = "/usr/share/java/jna.jar";
const KOFFI: &str = "koffi@2.9.0";

impl Client {
    pub fn words(&self, built: &Path) -> Vec<String> {
        let place = |word: &str| word.replace("{system}", SYSTEM).replace("{}", &built.display().to_string());
        self.command.split_whitespace().map(place).collect()
    }
}

/// Builds every client into `at`. Gives the needs that cannot be had here, each with its reason.
pub fn build(at: &Path, wanted: &dyn Fn(Need) -> bool) -> Result<Vec<(Need, String)>> {
    let sources = setup::root().join("xtask/src/reach/sources");
    let source = |name: &str| sources.join(name);
    std::fs::create_dir_all(at.join("bundle"))?;
    let real = at.join(REAL);
    let bundled = at.join("bundle/libcuda.so.1");
    let soname = ["-shared", "-fPIC", "-Wl,-soname,libcuda.so.1"];
    for library in [&real, &bundled] {
        quiet(cc(library, &source("real.c")).args(soname))?;
    }
    let rpath = |tags: &str| format!("-Wl,--{tags}-new-dtags,-rpath,{}", at.join("bundle").display());
    let linked = |name: &str, option: &str| {
        quiet(cc(&at.join(name), &source("client.c")).args(["-DLINK", option]).arg(&real))
    };
    linked("linked", "-O1")?;
    linked("rpath", &rpath("disable"))?;
    linked("runpath", &rpath("enable"))?;
    quiet(&mut cc(&at.join("client"), &source("client.c")))?;
    quiet(cc(&at.join("static"), &source("client.c")).args(["-DSTATIC", "-static"]))?;
    quiet(Command::new("g++").arg("-o").arg(at.join("before-main")).arg(source("client.cc")))?;
    let script = at.join("script");
    std::fs::write(&script, format!("#!/bin/sh\n{}/client dlopen \"$1\"\n", at.display()))?;
    for name in ["ctypes_client.py", "cffi_client.py", "koffi.js"] {
        std::fs::copy(source(name), at.join(name))?;
    }
    for (name, mode) in [("script", 0o755), ("client", 0o755)] {
        std::fs::set_permissions(at.join(name), std::os::unix::fs::PermissionsExt::from_mode(mode))?;
    }

    let mut missing = Vec::new();
    let mut has = |need: Need, tried: &mut dyn FnMut() -> Result<()>| {
        let answer = if wanted(need) { tried() } else { Err(anyhow::anyhow!("asked for with --all")) };
        if let Err(why) = answer {
            missing.push((need, format!("{why:#}")));
        }
    };
    has(Need::Multilib, &mut || quiet(cc(&at.join("client32"), &source("client.c")).arg("-m32")));
    // Its <dlfcn.h> has neither.
    let musl = ["-DSTATIC", "-DRTLD_DEEPBIND=0"];
    has(Need::Musl, &mut || {
        let mut compiler = Command::new("musl-gcc");
        quiet(compiler.args(["-w", "-o"]).arg(at.join("musl")).arg(source("client.c")).args(musl))
    });
    has(Need::Cffi, &mut || quiet(Command::new("/usr/bin/python3").args(["-c", "import cffi"])));
    has(Need::Go, &mut || {
        go(at, "cgo", &source("cgo.go"), "1")?;
        go(at, "plain-go", &source("plain.go"), "0")
    });
    has(Need::Java, &mut || {
        ensure!(Path::new(JNA).exists(), "{JNA} is missing (libjna-java)");
        quiet(Command::new("javac").args(["-cp", JNA]).arg("-d").arg(at).arg(source("Jna.java")))
    });
    has(Need::Node, &mut || koffi(at));
    has(Need::Bubblewrap, &mut || setup::which("bwrap").map(drop).context("bwrap is not there (bubblewrap)"));
    has(Need::Users, &mut || {
        let id = Command::new("id").arg("-u").output()?;
        ensure!(id.stdout == b"0\n", "only root can run as somebody else");
        Ok(())
    });
    Ok(missing)
}

fn cc(out: &Path, source: &Path) -> Command {
    let mut command = Command::new("gcc");
    command.args(["-w", "-O1", "-o"]).arg(out).arg(source);
    command
}

fn go(at: &Path, name: &str, source: &Path, cgo: &str) -> Result<()> {
    let mut command = Command::new("go");
    command.args(["build", "-o"]).arg(at.join(name)).arg(source);
    command.env("CGO_ENABLED", cgo).env("GO111MODULE", "off").env("GOFLAGS", "");
    quiet(command.env("GOCACHE", at.join("go-cache")))
}

/// Kept with the other downloads, and linked to from where node looks.
fn koffi(at: &Path) -> Result<()> {
    ensure!(setup::which("node").is_some(), "node is not there (nodejs)");
    let home: PathBuf = setup::download_cache()?.join("koffi");
    if !home.join("node_modules/koffi").exists() {
        ensure!(!setup::offline(), "--offline, and {KOFFI} is missing");
        std::fs::create_dir_all(&home)?;
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--prefix"]).arg(&home).arg(KOFFI);
        quiet(&mut npm)?;
    }
    let link = at.join("node_modules");
    let _ = std::fs::remove_file(&link);
    Ok(std::os::unix::fs::symlink(home.join("node_modules"), link)?)
}

fn quiet(command: &mut Command) -> Result<()> {
    let out = command.output().with_context(|| format!("cannot start {command:?}"))?;
    let said = String::from_utf8_lossy(&out.stderr);
    ensure!(out.status.success(), "{command:?}: {}", said.lines().next().unwrap_or("it failed"));
    Ok(())
}
