//! A client's folder below target/clients: an environment with its wheels, and its sources where the tests are there.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
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
    pub dir: PathBuf,
    pub python: PathBuf,
    /// Where its tests are run.
    pub tests: PathBuf,
    /// NVIDIA's wheels: headers and libraries.
    pub cuda: PathBuf,
}

pub fn root() -> PathBuf {
    setup::root().join("target/clients")
}

pub fn prepare(client: &Client) -> Result<Ready> {
    let dir = root().join(client.name);
    fs::create_dir_all(&dir)?;
    let venv = dir.join("venv");
    let python = environment(&venv, client.wheels)?;
    let library = Command::new(&python)
        .args(["-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])"])
        .output()
        .context("asking Python for its package directory")?;
    let cuda = Path::new(String::from_utf8(library.stdout)?.trim()).join("nvidia/cu13");
    let mut ready = Ready { tests: dir.clone(), python, cuda, dir };
    match client.source {
        Source::Wheels => import_path(&ready)?,
        Source::Script(_) => {}
        Source::Sdist(pin) => ready.tests = sdist(&ready, pin)?,
        Source::PyCuda(pin) => ready.tests = pycuda(&ready, pin)?,
        Source::Crate { name, version, .. } => ready.tests = source_of_crate(&ready.dir, name, version)?,
    }
    Ok(ready)
}

/// Whether an earlier run has installed it, so that nothing is downloaded now.
pub fn at_hand(client: &Client) -> bool {
    root().join(client.name).join("venv/wheels").exists()
}

/// The Python of an environment that holds the wheels.
pub fn environment(dir: &Path, wheels: &[&str]) -> Result<PathBuf> {
    let (python, stamp) = (dir.join("bin/python"), dir.join("wheels"));
    let wheels = [wheels, PYTEST].concat();
    let wanted = wheels.join("\n");
    if fs::read_to_string(&stamp).is_ok_and(|have| have == wanted) {
        return Ok(python);
    }
    println!("setup: Python wheels to install into {}: {}", dir.display(), wheels.join(" "));
    ensure!(!setup::offline(), "--offline");
    setup::run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(dir))?;
    pip(&python, &["install"])
        .args(&wheels)
        .status()
        .context("pip")?
        .success()
        .then_some(())
        .context("pip install")?;
    fs::write(stamp, wanted)?;
    Ok(python)
}

fn pip(python: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(python);
    command.args(["-m", "pip"]).args(words).args(["--quiet", "--disable-pip-version-check"]);
    command
}

/// The tests of Numba's wheel are imported by pytest as `cuda.tests`, and so must be found by processes they start.
fn import_path(ready: &Ready) -> Result<()> {
    let tests = ready.cuda.join("../../numba_cuda/numba/cuda/tests");
    fs::create_dir_all(ready.dir.join("import/cuda"))?;
    link(&tests, &ready.dir.join("import/cuda/tests"))
}

/// Unpacks a source distribution; only its tests are kept where Python could take its packages for the installed ones.
fn sdist(ready: &Ready, pin: &str) -> Result<PathBuf> {
    let at = ready.dir.join(pin.replace("==", "-"));
    if at.join("complete").exists() {
        return Ok(at);
    }
    ensure!(!setup::offline(), "--offline, and the sources of {pin} are missing");
    let archives = ready.dir.join("archives");
    setup::run(
        // pip asks an sdist about itself; CuPy's looks for a toolkit then, unless only its manual is made.
        pip(&ready.python, &["download", "--no-deps", "--no-build-isolation", "--no-binary", ":all:", pin])
            .arg("--dest")
            .arg(&archives)
            .env("READTHEDOCS", "True"),
    )?;
    let archive = archives.join(format!("{}.tar.gz", pin.replace("==", "-")));
    let _ = fs::remove_dir_all(&at);
    setup::run(Command::new("tar").arg("-xf").arg(&archive).arg("-C").arg(&ready.dir))?;
    if !matches!(pin.split("==").next(), Some("pycuda")) {
        for package in ["tinygrad", "cupy", "cupyx", "cupy_backends"] {
            let _ = fs::remove_dir_all(at.join(package));
        }
    }
    fs::write(at.join("complete"), "")?;
    Ok(at)
}

/// Builds PyCUDA as its manual says, on our libcuda.so.1 and libcudart, with NVIDIA's headers.
fn pycuda(ready: &Ready, pin: &str) -> Result<PathBuf> {
    // Belongs to the environment: a new one needs it built anew, from sources that are whole.
    let built = ready.dir.join("venv/built");
    if !built.exists() {
        let _ = fs::remove_dir_all(ready.dir.join(pin.replace("==", "-")));
    }
    let at = sdist(ready, pin)?;
    if built.exists() {
        return Ok(at);
    }
    let (toolkit, libraries) = (nvcc()?, ready.dir.join("lib"));
    fs::create_dir_all(&libraries)?;
    link(&setup::lib_dir().join("libcuda.so.1"), &libraries.join("libcuda.so"))?;
    link(&setup::lib_dir().join("libcudart.so.13"), &libraries.join("libcudart.so"))?;
    link(&ready.cuda.join("lib/libcurand.so.10"), &libraries.join("libcurand.so"))?;
    let libraries = libraries.display();
    let include = |dir: &Path| dir.join("include").display().to_string();
    setup::run(
        Command::new(&ready.python)
            .current_dir(&at)
            .arg("configure.py")
            .arg(format!("--cuda-root={}", toolkit.display()))
            .arg(format!("--cuda-inc-dir={},{}", include(&toolkit), include(&ready.cuda)))
            .args(["cudadrv", "cudart", "curand"].map(|it| format!("--{it}-lib-dir={libraries}"))),
    )?;
    let path = format!("{}/bin:{}", toolkit.display(), std::env::var("PATH").unwrap_or_default());
    setup::run(
        pip(&ready.python, &["install", "--no-build-isolation", "--no-deps", "."])
            .current_dir(&at)
            .env("PATH", path),
    )?;
    // The sources would be imported instead of what was built.
    fs::remove_dir_all(at.join("pycuda"))?;
    fs::write(built, "")?;
    Ok(at)
}

/// A toolkit whose nvcc makes PTX where machine code is asked for.
pub fn nvcc() -> Result<PathBuf> {
    let real = Release::V13_5.get()?.dir;
    let dir = root().join("nvcc");
    fs::create_dir_all(dir.join("bin"))?;
    for (target, name) in
        [(real.clone(), "toolkit"), (real.join("include"), "include"), (real.join("lib"), "lib64")]
    {
        link(&target, &dir.join(name))?;
    }
    let program = dir.join("bin/nvcc");
    fs::write(&program, include_str!("nvcc"))?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
    Ok(dir)
}

/// A copy of a crate's source that cargo takes for a workspace of its own.
fn source_of_crate(dir: &Path, name: &str, version: &str) -> Result<PathBuf> {
    let at = dir.join(format!("{name}-{version}"));
    if at.join("complete").exists() {
        return Ok(at);
    }
    // cargo has no command that downloads a crate, but one that needs it does.
    let user = dir.join("user");
    let _ = fs::remove_dir_all(&user);
    fs::create_dir_all(user.join("src"))?;
    fs::write(user.join("src/lib.rs"), "")?;
    fs::write(
        user.join("Cargo.toml"),
        format!(
            "[package]\nname = \"user\"\nversion = \"0.0.0\"\n\n[dependencies]\n{name} = {{ version = \"={version}\", \
             default-features = false }}\n\n[workspace]\n"
        ),
    )?;
    setup::run(
        setup::stay_offline(&mut Command::new("cargo")).args(["vendor", "--quiet"]).current_dir(&user),
    )?;
    let _ = fs::remove_dir_all(&at);
    fs::rename(user.join("vendor").join(name), &at)?;
    let manifest = at.join("Cargo.toml");
    let text = fs::read_to_string(&manifest)?;
    fs::write(manifest, text + "\n[workspace]\n")?;
    fs::write(at.join("complete"), "")?;
    Ok(at)
}

/// Makes a symbolic link anew.
fn link(target: &Path, at: &Path) -> Result<()> {
    let _ = fs::remove_file(at);
    symlink(target, at).with_context(|| at.display().to_string())
}
