//! A client, installed once for all checkouts, below the download cache: an environment with its wheels, and its sources
//! where the tests are there. What a run writes goes to a folder of its own.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::list::{Client, Source};
use crate::setup;
use crate::toolchain::Release;

/// What every suite of pytest's needs.
const PYTEST: &[&str] = &["pytest==9.2.0", "pytest-timeout==2.4.0"];

/// A client that is ready to run.
pub struct Ready {
    /// Where it is installed.
    pub home: PathBuf,
    pub python: PathBuf,
    /// Where its tests are run.
    pub tests: PathBuf,
    /// Where its wheels lie.
    pub wheels: PathBuf,
    /// What this run writes.
    pub dir: PathBuf,
}

impl Ready {
    /// Where a wheel of [`Source::Files`] is unpacked.
    pub fn files(&self) -> PathBuf {
        self.home.join("files")
    }

    /// NVIDIA's wheels: headers and libraries.
    pub fn cuda(&self) -> PathBuf {
        self.wheels.join("nvidia/cu13")
    }
}

/// Installs the client where an earlier run has not, and readies it for one that writes below `dir`.
pub fn prepare(client: &Client, dir: &Path) -> Result<Ready> {
    fs::create_dir_all(dir)?;
    let home = home(client)?;
    let here = at_hand(client);
    if !here {
        println!("setup: {} to install into {}: {}", client.title, home.display(), pins(client));
        ensure!(!setup::offline(), "--offline");
        let _ = fs::remove_dir_all(&home);
        environment(&home.join("venv"), &[client.wheels, PYTEST].concat())?;
    }
    let python = home.join("venv/bin/python");
    let wheels = setup::packages_of(&python)?;
    let tests = match client.source {
        Source::Wheels | Source::Numba | Source::Files(_) => home.clone(),
        Source::Sdist(pin) | Source::PyCuda(pin) => home.join(pin.replace("==", "-")),
        Source::Crate { name, version } => home.join(format!("{name}-{version}")),
        Source::Repository { .. } => home.join("repository"),
    };
    let ready = Ready { home, python, tests, wheels, dir: dir.to_owned() };
    if !here {
        sources(client, &ready)?;
        fs::write(ready.home.join(STAMP), pins(client))?;
    }
    Ok(ready)
}

/// Written when all is there: what was installed.
const STAMP: &str = "installed";

/// Whether an earlier run has installed it as it stands in the list, so that nothing is downloaded now.
pub fn at_hand(client: &Client) -> bool {
    home(client).and_then(|home| Ok(fs::read_to_string(home.join(STAMP))?)).is_ok_and(|it| it == pins(client))
}

fn home(client: &Client) -> Result<PathBuf> {
    Ok(setup::download_cache()?.join("clients").join(client.name))
}

fn pins(client: &Client) -> String {
    format!("{} {} and {:?}", client.wheels.join(" "), PYTEST.join(" "), client.source)
}

/// An environment that holds the wheels.
fn environment(dir: &Path, wheels: &[&str]) -> Result<()> {
    setup::run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(dir))
        .context("python3 -m venv")?;
    setup::run(pip(&dir.join("bin/python"), &["install"]).args(wheels)).context("pip install")
}

fn pip(python: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(python);
    command.args(["-m", "pip"]).args(words).args(["--quiet", "--disable-pip-version-check"]);
    command
}

/// Gets what its tests need besides the wheels.
fn sources(client: &Client, ready: &Ready) -> Result<()> {
    match client.source {
        Source::Wheels => Ok(()),
        // pytest imports them as `cuda.tests`, and processes that they start must find them as that.
        Source::Numba => {
            fs::create_dir_all(ready.home.join("import/cuda"))?;
            let tests = ready.wheels.join("numba_cuda/numba/cuda/tests");
            link(&tests, &ready.home.join("import/cuda/tests"))
        }
        Source::Sdist(pin) => {
            sdist(ready, pin)?;
            // Python would take its packages for the installed ones.
            for package in ["tinygrad", "cupy", "cupyx", "cupy_backends"] {
                let _ = fs::remove_dir_all(ready.tests.join(package));
            }
            Ok(())
        }
        Source::PyCuda(pin) => pycuda(ready, pin),
        Source::Files(pin) => files(ready, pin),
        Source::Repository { url, commit, alone } => {
            setup::run(pip(&ready.python, &["install", "--no-deps"]).args(alone)).context("pip install")?;
            setup::checkout(url, commit, &ready.tests)?;
            // Python would take its packages for the installed ones.
            fs::remove_dir_all(ready.tests.join("src")).with_context(|| format!("the sources of {url}"))
        }
        Source::Crate { name, version } => source_of_crate(ready, name, version),
    }
}

/// Unpacks a source distribution.
fn sdist(ready: &Ready, pin: &str) -> Result<()> {
    let archives = ready.home.join("archives");
    setup::run(
        // pip asks an sdist about itself; CuPy's looks for a toolkit then, unless only its manual is made.
        pip(&ready.python, &["download", "--no-deps", "--no-build-isolation", "--no-binary", ":all:", pin])
            .arg("--dest")
            .arg(&archives)
            .env("READTHEDOCS", "True"),
    )?;
    let archive = archives.join(format!("{}.tar.gz", pin.replace("==", "-")));
    setup::run(Command::new("tar").arg("-xf").arg(&archive).arg("-C").arg(&ready.home))
}

/// Unpacks a wheel aside.
fn files(ready: &Ready, pin: &str) -> Result<()> {
    let archives = ready.home.join("archives");
    setup::run(
        pip(&ready.python, &["download", "--no-deps", "--only-binary", ":all:", pin])
            .arg("--dest")
            .arg(&archives),
    )?;
    let wheel = fs::read_dir(&archives)?.next().context("pip downloaded nothing")??.path();
    // A wheel is a zip file, which Python unpacks.
    setup::run(Command::new(&ready.python).args(["-m", "zipfile", "--extract"]).arg(wheel).arg(ready.files()))
}

/// Builds PyCUDA as its manual says, on our libcuda.so.1 and libcudart, with NVIDIA's headers.
fn pycuda(ready: &Ready, pin: &str) -> Result<()> {
    sdist(ready, pin)?;
    let (toolkit, libraries) = (toolkit(ready)?, ready.dir.join("lib"));
    fs::create_dir_all(&libraries)?;
    link(&setup::lib_dir().join("libcuda.so.1"), &libraries.join("libcuda.so"))?;
    link(&setup::lib_dir().join("libcudart.so.13"), &libraries.join("libcudart.so"))?;
    link(&ready.cuda().join("lib/libcurand.so.10"), &libraries.join("libcurand.so"))?;
    let libraries = libraries.display();
    let include = |dir: &Path| dir.join("include").display().to_string();
    setup::run(
        Command::new(&ready.python)
            .current_dir(&ready.tests)
            .arg("configure.py")
            .arg(format!("--cuda-root={}", toolkit.display()))
            .arg(format!("--cuda-inc-dir={},{}", include(&toolkit), include(&ready.cuda())))
            .args(["cudadrv", "cudart", "curand"].map(|it| format!("--{it}-lib-dir={libraries}"))),
    )?;
    let path = format!("{}/bin:{}", toolkit.display(), std::env::var("PATH").unwrap_or_default());
    setup::run(
        pip(&ready.python, &["install", "--no-build-isolation", "--no-deps", "."])
            .current_dir(&ready.tests)
            .env("PATH", path),
    )?;
    // The sources would be imported instead of what was built.
    fs::remove_dir_all(ready.tests.join("pycuda")).context("PyCUDA's sources")
}

/// NVIDIA's compiler, headers and libraries, laid out as an installed toolkit.
fn toolkit(ready: &Ready) -> Result<PathBuf> {
    let real = Release::V13_5.get()?.dir;
    let dir = ready.dir.join("toolkit");
    fs::create_dir_all(&dir)?;
    for (name, place) in [("bin", "bin"), ("include", "include"), ("lib", "lib64")] {
        link(&real.join(name), &dir.join(place))?;
    }
    Ok(dir)
}

/// A copy of a crate's source that cargo takes for a workspace of its own.
fn source_of_crate(ready: &Ready, name: &str, version: &str) -> Result<()> {
    // cargo has no command that downloads a crate, but one that needs it does.
    let user = ready.home.join("user");
    fs::create_dir_all(user.join("src"))?;
    fs::write(user.join("src/lib.rs"), "")?;
    fs::write(
        user.join("Cargo.toml"),
        format!(
            "[package]\nname = \"user\"\nversion = \"0.0.0\"\n\n[dependencies]\n{name} = {{ version = \"={version}\", \
             default-features = false }}\n\n[workspace]\n"
        ),
    )?;
    setup::run(Command::new("cargo").args(["vendor", "--quiet"]).current_dir(&user))?;
    fs::rename(user.join("vendor").join(name), &ready.tests)?;
    let manifest = ready.tests.join("Cargo.toml");
    let text = fs::read_to_string(&manifest)?;
    fs::write(manifest, text + "\n[workspace]\n").context("its manifest")
}

/// Makes a symbolic link anew.
fn link(target: &Path, at: &Path) -> Result<()> {
    let _ = fs::remove_file(at);
    symlink(target, at).with_context(|| at.display().to_string())
}
