//! What a fresh machine needs: Debian packages and a local Python environment.
//! Each step says what it does and why, skips what is there, and is safe to repeat.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

/// A Debian package and why we want it.
pub type Package = (&'static str, &'static str);

/// Needed to build the workspace and to lay out target/cudaway/lib.
const BUILD: &[Package] = &[
    ("gcc", "links Rust code; nvcc's host compiler"),
    ("g++", "nvcc's host compiler"),
    ("libc6-dev", "C headers and start files"),
    ("binutils", "readelf and nm, which the tests use"),
    ("llvm-19-dev", "LLVM 19, linked statically into libcudaway_cpu.so"),
    ("libpolly-19-dev", "named by llvm-config's static link line"),
    ("libz3-dev", "named by llvm-config's static link line"),
    ("zlib1g-dev", "named by llvm-config's static link line"),
    ("libzstd-dev", "named by llvm-config's static link line"),
    ("libxml2-dev", "named by llvm-config's static link line"),
    ("libffi-dev", "used by LLVM's interpreter library"),
    ("libtinfo-dev", "used by LLVM's terminal support"),
    ("python3", "runs pip in the local environment"),
    ("python3-venv", "makes the local environment"),
];

/// Needed by tests alone.
const TEST: &[Package] = &[
    ("zstd", "packs what `cudaway doctor --bundle` writes"),
    ("clang-19", "compiles the translator's output on its own, as a second opinion"),
    ("lld-19", "links AMD code objects where there is no comgr"),
    ("libamd-comgr2", "AMD's compiler of ROCm 5.2, the strictest reader of our LLVM IR"),
    ("libgmp-dev", "MPFR's integers"),
    (
        "libmpfr-dev",
        "exact values of sine and the like, which the approximate instructions are measured against",
    ),
];

static OFFLINE: AtomicBool = AtomicBool::new(false);

/// Options of every command that may install something.
#[derive(clap::Args)]
#[group(skip)]
pub struct Args {
    /// Install and download nothing: use what is there and say what is missing.
    #[arg(long)]
    pub offline: bool,
}

impl Args {
    /// Makes `--offline` hold for the rest of this process.
    pub fn apply(&self) {
        if self.offline {
            OFFLINE.store(true, Ordering::Relaxed);
        }
    }
}

/// Whether downloads are ruled out, by `--offline` or by Cargo's own `CARGO_NET_OFFLINE=true`.
pub fn offline() -> bool {
    OFFLINE.load(Ordering::Relaxed)
        || std::env::var("CARGO_NET_OFFLINE").is_ok_and(|value| value == "true" || value == "1")
}

/// Makes a command that is cargo, or runs cargo or us, keep to `--offline` too.
pub fn stay_offline(command: &mut Command) -> &mut Command {
    if offline() {
        command.env("CARGO_NET_OFFLINE", "true");
    }
    command
}

/// The cargo that runs us, in the checkout.
pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// The checkout.
pub fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().expect("xtask lies in the checkout").to_path_buf()
}

/// Where the shipped objects are laid out by `cargo xtask build`.
pub fn lib_dir() -> PathBuf {
    root().join("target/cudaway/lib")
}

/// Where large downloads are kept, outside the tree.
pub fn download_cache() -> Result<PathBuf> {
    let base = std::env::var_os("XDG_CACHE_HOME").filter(|dir| !dir.is_empty()).map(PathBuf::from);
    let base = base.or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache")));
    Ok(base.context("neither XDG_CACHE_HOME nor HOME is set")?.join("cudaway-toolchains"))
}

/// This commit of a repository and nothing before it, in `dir`.
pub fn checkout(repository: &str, commit: &str, dir: &Path) -> Result<()> {
    let git = |words: &[&str]| run(Command::new("git").arg("-C").arg(dir).args(words));
    fs::create_dir_all(dir)?;
    git(&["init", "--quiet"])?;
    git(&["fetch", "--quiet", "--depth=1", repository, commit])
        .with_context(|| format!("{repository} cannot be reached"))?;
    git(&["checkout", "--quiet", commit])
}

/// Keeps every other thread and process that sets something up in `dir` waiting, until the file is dropped.
pub fn alone_in(dir: &Path) -> Result<File> {
    fs::create_dir_all(dir)?;
    let path = dir.join("setup.lock");
    let lock = File::create(&path).with_context(|| path.display().to_string())?;
    lock.lock().with_context(|| path.display().to_string())?;
    Ok(lock)
}

/// The same for this checkout: its `.venv`, and the machine's packages on its behalf.
fn alone() -> Result<File> {
    alone_in(&root().join("target"))
}

/// Installs what a build needs.
pub fn build_packages() -> Result<()> {
    packages(BUILD)
}

/// Installs what the tests need on top of that.
pub fn test_packages() -> Result<()> {
    packages(TEST)
}

/// Installs those of `wanted` that are missing.
pub fn packages(wanted: &[Package]) -> Result<()> {
    let _lock = alone()?;
    if which("dpkg-query").is_none() {
        println!("setup: this is not a Debian system; you need the equivalents of:{}", list(wanted));
        return Ok(());
    }
    let missing: Vec<Package> = wanted.iter().copied().filter(|(name, _)| !installed(name)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    println!("setup: Debian packages to install:{}", list(&missing));
    let names: Vec<&str> = missing.iter().map(|(name, _)| *name).collect();
    if offline() {
        bail!("--offline, and these packages are missing; when online: apt-get install {}", names.join(" "));
    }
    // Package lists that are too old name files the mirror no longer has; a second try with fresh lists heals that.
    if known(&names) && apt_install(&names).is_ok() {
        return Ok(());
    }
    update_lists()?;
    apt_install(&names)
}

/// `apt-get update`, on the machine's own state.
pub fn update_lists() -> Result<()> {
    run(&mut as_root("apt-get", &["-q", "-o", "Acquire::Retries=3", "update"])).context("apt-get update")
}

/// Makes the local Python environment `.venv` and returns its `bin/python`.
pub fn venv() -> Result<PathBuf> {
    let _lock = alone()?;
    venv_alone()
}

fn venv_alone() -> Result<PathBuf> {
    let dir = root().join(".venv");
    let python = dir.join("bin/python");
    if python.exists()
        && Command::new(&python)
            .args(["-m", "pip", "--version"])
            .output()
            .is_ok_and(|out| out.status.success())
    {
        return Ok(python);
    }
    println!("setup: making the local Python environment {}", dir.display());
    run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&dir))
        .context("python3 -m venv (Debian: apt-get install python3-venv)")?;
    Ok(python)
}

/// Installs wheels into `.venv`; `wanted` are exact `name==version` pins.
pub fn wheels(wanted: &[&str]) -> Result<()> {
    let _lock = alone()?;
    wheels_alone(wanted)
}

fn wheels_alone(wanted: &[&str]) -> Result<()> {
    let python = venv_alone()?;
    let have = Command::new(&python).args(["-m", "pip", "freeze"]).output().context("pip freeze")?;
    let have = String::from_utf8_lossy(&have.stdout);
    let missing: Vec<&str> =
        wanted.iter().copied().filter(|pin| !have.lines().any(|line| line == *pin)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    println!("setup: Python wheels to install into .venv: {}", missing.join(" "));
    if offline() {
        bail!(
            "--offline, and these wheels are missing; when online: .venv/bin/pip install {}",
            missing.join(" ")
        );
    }
    download(
        Command::new(&python)
            .args(["-m", "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check"])
            .args(&missing),
    )
    .context("pip install")
}

/// What reads single files of a wheel over HTTP, and what it stands on.
const REMOTEZIP: &[&str] = &[
    "remotezip==0.12.6",
    "requests==2.34.2",
    "certifi==2026.10.18",
    "charset-normalizer==3.5.2",
    "idna==3.20",
    "urllib3==2.8.0",
];

/// Unpacks the files of a wheel whose path has `part` into `to`, flat, without loading the rest of it: a library's headers
/// are 1 part in 1,000 of its wheel. Whoever reads there sees a file whole or not at all, and a file named like the pin
/// when all are there.
pub fn files_of_wheel(pin: &str, part: &str, to: &Path) -> Result<()> {
    const SCRIPT: &str = "\
import json, os, subprocess, sys, tempfile
from remotezip import RemoteZip
pin, part, to = sys.argv[1:]
ask = [sys.executable, '-m', 'pip', 'install', '--dry-run', '--quiet', '--report', '-', '--no-deps',
       '--only-binary=:all:', '--ignore-installed', pin]
report = json.loads(subprocess.run(ask, check=True, stdout=subprocess.PIPE).stdout)
with RemoteZip(report['install'][0]['download_info']['url']) as wheel, tempfile.TemporaryDirectory(dir=to) as new:
    for name in wheel.namelist():
        if part in name:
            file = os.path.basename(name)
            with open(os.path.join(new, file), 'wb') as whole:
                whole.write(wheel.read(name))
            os.replace(os.path.join(new, file), os.path.join(to, file))
";
    let _lock = alone()?;
    let all_there = to.join(format!(".{pin}"));
    if all_there.exists() {
        return Ok(());
    }
    println!("setup: files of {pin} with {part:?} in their path, to {}", to.display());
    if offline() {
        bail!("--offline, and files of {pin} are missing in {}", to.display());
    }
    wheels_alone(REMOTEZIP)?;
    fs::create_dir_all(to)?;
    download(Command::new(venv_alone()?).args(["-c", SCRIPT, pin, part]).arg(to))
        .with_context(|| pin.to_owned())?;
    fs::write(&all_there, "").with_context(|| all_there.display().to_string())
}

/// Where the packages of a Python lie.
pub fn packages_of(python: &Path) -> Result<PathBuf> {
    let purelib = Command::new(python)
        .args(["-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])"])
        .output()
        .context("asking Python for its package directory")?;
    Ok(PathBuf::from(String::from_utf8(purelib.stdout)?.trim()))
}

/// Whether dpkg calls this package installed.
pub fn installed(package: &str) -> bool {
    Command::new("dpkg-query").args(["-W", "-f", "${db:Status-Status}\n", package]).output().is_ok_and(
        |out| {
            out.status.success()
                && String::from_utf8_lossy(&out.stdout).lines().any(|line| line == "installed")
        },
    )
}

/// The first executable of this name in `PATH`.
pub fn which(name: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?).map(|dir| dir.join(name)).find(|path| path.is_file())
}

/// Writes what a run found to a JSON file of the tree, whole or not at all.
pub fn keep(file: &str, found: &impl serde::Serialize) -> Result<()> {
    let path = root().join(file);
    let aside = path.with_extension("json.new");
    let write = || -> Result<()> {
        fs::write(&aside, serde_json::to_string_pretty(found)? + "\n")?;
        Ok(fs::rename(&aside, &path)?)
    };
    write().with_context(|| file.to_owned())
}

/// What a command says on its standard output, without the spaces around it; anything but success is an error that names it.
pub fn said(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot start {command:?}"))?;
    if !output.status.success() {
        bail!("{}: {command:?}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// Runs a command with our own output streams; anything but success is an error that names the command.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start {command:?}"))?;
    if !status.success() {
        bail!("{status}: {command:?}");
    }
    Ok(())
}

/// Runs a command that downloads; a network may fail it twice.
fn download(command: &mut Command) -> Result<()> {
    for pause in [5, 20] {
        match run(command) {
            Ok(()) => return Ok(()),
            Err(error) => println!("setup: {error:#}; again in {pause} s"),
        }
        thread::sleep(Duration::from_secs(pause));
    }
    run(command)
}

fn apt_install(names: &[&str]) -> Result<()> {
    let mut args = vec!["-q", "-y", "--no-install-recommends", "-o", "Dpkg::Use-Pty=0"];
    args.extend(["-o", "Acquire::Retries=3", "-o", "DPkg::Lock::Timeout=300", "install"]);
    args.extend(names);
    run(&mut as_root("apt-get", &args)).context("apt-get install")
}

/// Whether apt's present lists can name every package.
fn known(names: &[&str]) -> bool {
    Command::new("apt-cache").args(["--quiet=2", "--no-all-versions", "show"]).args(names).output().is_ok_and(
        |out| {
            out.status.success()
                && String::from_utf8_lossy(&out.stdout).matches("Package:").count() >= names.len()
        },
    )
}

fn as_root(program: &str, args: &[&str]) -> Command {
    let root = Command::new("id").arg("-u").output().is_ok_and(|out| out.stdout.starts_with(b"0\n"));
    let mut command = if root { Command::new("env") } else { Command::new("sudo") };
    command.args(["DEBIAN_FRONTEND=noninteractive", program]).args(args);
    command
}

fn list(packages: &[Package]) -> String {
    packages.iter().fold(String::new(), |mut text, (name, why)| {
        let _ = write!(text, "\n    {name:<18} {why}");
        text
    })
}

#[cfg(test)]
mod tests {
    use std::fs::{File, TryLockError};

    #[test]
    fn one_sets_up_and_another_waits() {
        let dir = testkit::temporary().expect("a folder");
        let dir = dir.path().join("new");
        let held = super::alone_in(&dir).expect("nobody else is there");
        let another = File::open(dir.join("setup.lock")).expect("the lock's file");
        assert!(matches!(another.try_lock(), Err(TryLockError::WouldBlock)));
        drop(held);
        another.try_lock().expect("it is free again");
    }
}
