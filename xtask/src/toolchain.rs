//! NVIDIA's compilers, as users have them: 13.5 from Python wheels, 11.8 and 12.4 from Debian's non-free packages.
//! Nothing here is installed on the machine or committed: wheels live in `.venv`, Debian's packages are
//! unpacked under the download cache, outside the tree.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context as _, Result, bail, ensure};

use crate::setup;

/// The wheels that make nvcc 13.5. `nvidia-cuda-cccl` counts its own way: 13.3.5 is CCCL 3.5 for CUDA 13.
const WHEELS_13_5: &[&str] = &[
    "nvidia-cuda-nvcc==13.5.37",
    "nvidia-nvvm==13.5.37",
    "nvidia-cuda-crt==13.5.37",
    "nvidia-cuda-runtime==13.5.37",
    "nvidia-cuda-cccl==13.3.5.0.6",
    // No part of nvcc: its host generators, which need no driver, are what ours are compared with.
    "nvidia-curand==10.4.5.25",
];

/// cuBLAS for CUDA 13.5; its headers are all that is used of it.
const CUBLAS_13_5: &str = "nvidia-cublas==13.10.0.20";

/// cuRAND for CUDA 13.5: its headers, and its library as the tests' oracle.
pub const CURAND_13_5: &str = "nvidia-curand==10.4.5.25";

/// cuFFT for CUDA 13.5; its headers are all that is used of it.
const CUFFT_13_5: &str = "nvidia-cufft==12.5.0.14";

/// cuDNN 8 and 9; their headers are all that is used of them.
const CUDNN_8: &str = "nvidia-cudnn-cu12==8.9.7.29";
const CUDNN_9: &str = "nvidia-cudnn-cu13==9.27.0.42";

/// cuSOLVER for CUDA 13.5; its headers are all that is used of it.
const CUSOLVER_13_5: &str = "nvidia-cusolver==12.4.1.2";

/// cuSPARSE for CUDA 13.5; its headers are all that is used of it.
const CUSPARSE_13_5: &str = "nvidia-cusparse==12.9.4.2";

/// A CUDA release that the tests build with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    V11_8,
    V12_4,
    V13_5,
}

/// A working toolkit directory: `bin/nvcc`, `include`, `lib64`, `nvvm`.
#[derive(Clone, Debug)]
pub struct Toolchain {
    pub release: Release,
    pub dir: PathBuf,
    /// The host compiler, where the machine's own is too new for this nvcc.
    host: Option<PathBuf>,
}

/// Where a release's Debian packages come from.
struct Debian {
    suite: &'static str,
    packages: &'static [&'static str],
}

impl Release {
    pub fn version(self) -> &'static str {
        match self {
            Release::V11_8 => "11.8",
            Release::V12_4 => "12.4",
            Release::V13_5 => "13.5",
        }
    }

    /// Gets this release, from what is there or by download. It is looked for once, whoever asks.
    pub fn get(self) -> Result<Toolchain> {
        static FOUND: Mutex<Vec<Toolchain>> = Mutex::new(Vec::new());
        let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(toolchain) = found.iter().find(|toolchain| toolchain.release == self) {
            return Ok(toolchain.clone());
        }
        let toolchain = self.find()?;
        found.push(toolchain.clone());
        Ok(toolchain)
    }

    fn find(self) -> Result<Toolchain> {
        match self {
            Release::V13_5 => from_wheels(),
            Release::V12_4 => from_debian(
                self,
                &Debian {
                    suite: "trixie",
                    packages: &["nvidia-cuda-toolkit", "nvidia-cuda-dev", "libcudart12"],
                },
            ),
            Release::V11_8 => from_debian(
                self,
                &Debian {
                    suite: "bookworm",
                    packages: &["nvidia-cuda-toolkit", "nvidia-cuda-dev", "libcudart11.0"],
                },
            ),
        }
    }

    /// The newest gcc this release's `host_config.h` accepts.
    fn newest_gcc(self) -> u32 {
        match self {
            Release::V11_8 => 11,
            Release::V12_4 => 13,
            Release::V13_5 => 15,
        }
    }
}

impl Toolchain {
    pub fn nvcc(&self) -> Command {
        let mut command = Command::new(self.dir.join("bin/nvcc"));
        if let Some(host) = &self.host {
            command.arg("-ccbin").arg(host);
        }
        command
    }

    /// Has cuBLAS's headers in the toolkit: Debian's packages bring them.
    pub fn with_cublas(&self) -> Result<()> {
        self.with_headers(CUBLAS_13_5, "cublas")
    }

    pub fn with_curand(&self) -> Result<()> {
        self.with_headers(CURAND_13_5, "curand")
    }

    /// Toolkits have none: 9's for CUDA 13.5, 8's for the older two.
    pub fn with_cudnn(&self) -> Result<()> {
        let wheel = match self.release {
            Release::V13_5 => CUDNN_9,
            Release::V11_8 | Release::V12_4 => CUDNN_8,
        };
        setup::files_of_wheel(wheel, "include/cudnn", &self.dir.join("include"))
    }

    /// cufft*.h and cudalibxt.h.
    pub fn with_cufft(&self) -> Result<()> {
        self.with_headers(CUFFT_13_5, "cu")
    }

    /// cusolver*.h, and what they include of cuBLAS's.
    pub fn with_cusolver(&self) -> Result<()> {
        self.with_cublas()?;
        self.with_headers(CUSOLVER_13_5, "cusolver")
    }

    pub fn with_cusparse(&self) -> Result<()> {
        self.with_headers(CUSPARSE_13_5, "cusparse")
    }

    /// The headers of all libraries that programs of ours are compiled with.
    pub fn with_all(&self) -> Result<()> {
        self.with_cudnn()?;
        self.with_cufft()?;
        self.with_curand()?;
        self.with_cusolver()?;
        self.with_cusparse()
    }

    /// The headers of a wheel whose names begin so.
    fn with_headers(&self, wheel: &str, prefix: &str) -> Result<()> {
        match self.release {
            Release::V13_5 => {
                setup::files_of_wheel(wheel, &format!("include/{prefix}"), &self.dir.join("include"))
            }
            Release::V11_8 | Release::V12_4 => Ok(()),
        }
    }

    pub fn tool(&self, name: &str) -> Command {
        Command::new(self.dir.join("bin").join(name))
    }
}

/// nvcc 13.5: the wheels already have a toolkit's layout, less the development links.
fn from_wheels() -> Result<Toolchain> {
    setup::wheels(WHEELS_13_5).context("nvcc 13.5 from Python wheels")?;
    let dir = setup::packages_of(&setup::venv()?)?.join("nvidia/cu13");
    link("libcudart.so.13", &dir.join("lib/libcudart.so"))?;
    link("lib", &dir.join("lib64"))?;
    finish(Release::V13_5, dir)
}

fn from_debian(release: Release, debian: &Debian) -> Result<Toolchain> {
    let cache = setup::download_cache()?;
    let _lock = setup::alone_in(&cache)?;
    let dir = cache.join(format!("cuda-{}", release.version()));
    if !dir.join("bin/nvcc").exists() {
        println!(
            "setup: CUDA {} from Debian {}'s non-free packages (about 1 GB, unpacked to {}, not installed)",
            release.version(),
            debian.suite,
            dir.display()
        );
        ensure!(!setup::offline(), "--offline, and CUDA {} is not in {}", release.version(), cache.display());
        let apt = private_apt(&cache)?;
        let unpacked = cache.join(format!("unpack-{}", release.version()));
        let _ = fs::remove_dir_all(&unpacked);
        fs::create_dir_all(&unpacked)?;
        for package in debian.packages {
            unpack(&apt, package, debian.suite, &cache, &unpacked)?;
        }
        assemble(&unpacked, &dir)?;
        fs::remove_dir_all(&unpacked)?;
    }
    finish(release, dir)
}

/// An apt state of our own that knows the non-free component of Debian 12 and 13; returns its configuration file.
/// The machine's own apt state is only asked for its mirror.
fn private_apt(cache: &Path) -> Result<PathBuf> {
    let keyring = "/usr/share/keyrings/debian-archive-keyring.gpg";
    ensure!(
        Path::new(keyring).exists(),
        "{keyring} is missing (Debian: apt-get install debian-archive-keyring)"
    );
    let mirror = mirror()?;
    let sources: String = ["bookworm", "trixie"]
        .iter()
        .map(|suite| format!("deb [arch=amd64 signed-by={keyring}] {mirror} {suite} main contrib non-free\n"))
        .collect();
    apt_state(&cache.join("apt"), &sources)
}

/// An apt state of our own in a folder, with fresh lists of these sources; returns its configuration file.
pub fn apt_state(state: &Path, sources: &str) -> Result<PathBuf> {
    for dir in ["lists/partial", "cache/archives/partial"] {
        fs::create_dir_all(state.join(dir))?;
    }
    fs::write(state.join("sources.list"), sources)?;
    let config = state.join("apt.conf");
    let state_path = state.display();
    fs::write(
        &config,
        format!(
            "Dir::Etc::sourcelist \"{state_path}/sources.list\";\nDir::Etc::sourceparts \"-\";\n\
             Dir::State::Lists \"{state_path}/lists\";\nDir::Cache \"{state_path}/cache\";\n\
             Acquire::Retries \"3\";\nAcquire::Languages \"none\";\nAcquire::IndexTargets::deb::DEP-11::DefaultEnabled \"false\";\n\
             APT::Architectures {{ \"amd64\"; }};\nAPT::Sandbox::User \"root\";\n"
        ),
    )?;
    setup::run(Command::new("apt-get").env("APT_CONFIG", &config).args(["-q", "update"]))
        .context("apt-get update (own state)")?;
    Ok(config)
}

/// The mirror this machine's apt uses for its own release.
pub fn mirror() -> Result<String> {
    let ask = || -> Result<String> {
        let targets = Command::new("apt-get")
            .args([
                "indextargets",
                "--format",
                "$(CODENAME)|$(RELEASE)|$(COMPONENT)|$(SITE)",
                "Created-By: Packages",
            ])
            .output()
            .context("apt-get indextargets (is this Debian?)")?;
        Ok(String::from_utf8_lossy(&targets.stdout).into_owned())
    };
    let mut targets = ask()?;
    if targets.is_empty() {
        // A machine that never ran it lists nothing.
        setup::update_lists()?;
        targets = ask()?;
    }
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let codename = release
        .lines()
        .find_map(|line| line.strip_prefix("VERSION_CODENAME="))
        .unwrap_or("bookworm")
        .to_owned();
    for line in targets.lines() {
        let fields: Vec<&str> = line.split('|').collect();
        if let [name, suite, "main", site] = fields[..]
            && (name == codename || suite == codename)
        {
            return Ok(site.to_owned());
        }
    }
    bail!("apt has no source for Debian {codename} main, so there is no mirror to ask")
}

/// Downloads one package, unpacks what a compiler needs of it, and drops the archive.
fn unpack(apt: &Path, package: &str, suite: &str, cache: &Path, unpacked: &Path) -> Result<()> {
    println!("setup: apt-get download {package}/{suite}");
    let archives = cache.join("archives");
    let _ = fs::remove_dir_all(&archives);
    fs::create_dir_all(&archives)?;
    setup::run(
        Command::new("apt-get")
            .env("APT_CONFIG", apt)
            .args(["-q", "download", &format!("{package}/{suite}")])
            .current_dir(&archives),
    )?;
    for entry in fs::read_dir(&archives)? {
        // The -dev package is mostly static cuBLAS and friends; only the runtime's own parts are written out.
        let mut archive = Command::new("dpkg-deb")
            .arg("--fsys-tarfile")
            .arg(entry?.path())
            .stdout(Stdio::piped())
            .spawn()?;
        let tar = archive.stdout.take().context("dpkg-deb has no output")?;
        setup::run(Command::new("tar").arg("-x").arg("-C").arg(unpacked).stdin(tar).args([
            "--exclude=*/lib/x86_64-linux-gnu/lib[abd-z]*",
            "--exclude=*/lib/x86_64-linux-gnu/libcu[abe-z]*",
            "--exclude=*/lib/x86_64-linux-gnu/cuda-gdb",
            "--exclude=*/compute-sanitizer",
            "--exclude=*/share",
            "--exclude=*/bin/nvdisasm",
            "--exclude=*/include/npp*",
        ]))?;
        ensure!(archive.wait()?.success(), "dpkg-deb failed on {package}");
    }
    fs::remove_dir_all(&archives)?;
    Ok(())
}

/// Turns Debian's layout into a toolkit directory, with an nvcc.profile that finds things beside itself.
fn assemble(unpacked: &Path, dir: &Path) -> Result<()> {
    let building = dir.with_extension("tmp");
    let _ = fs::remove_dir_all(&building);
    fs::create_dir_all(building.join("bin"))?;
    fs::create_dir_all(building.join("nvvm/bin"))?;
    let toolkit = unpacked.join("usr/lib/nvidia-cuda-toolkit");
    for tool in ["cudafe++", "fatbinary", "ptxas", "nvlink", "bin2c", "cuobjdump", "__nvcc_device_query"] {
        fs::rename(unpacked.join("usr/bin").join(tool), building.join("bin").join(tool)).context(tool)?;
    }
    // `usr/bin/nvcc` is Debian's wrapper script with an absolute path; the program itself is here.
    fs::rename(toolkit.join("bin/nvcc"), building.join("bin/nvcc"))?;
    fs::rename(toolkit.join("bin/crt"), building.join("bin/crt"))?;
    fs::rename(toolkit.join("bin/cicc"), building.join("nvvm/bin/cicc"))?;
    fs::rename(toolkit.join("libdevice"), building.join("nvvm/libdevice"))?;
    fs::rename(unpacked.join("usr/include"), building.join("include"))?;
    fs::rename(unpacked.join("usr/lib/x86_64-linux-gnu"), building.join("lib"))?;
    link("lib", &building.join("lib64"))?;
    fs::write(
        building.join("bin/nvcc.profile"),
        "TOP = $(_HERE_)/..\n\
         CICC_PATH = $(TOP)/nvvm/bin\n\
         NVVMIR_LIBRARY_DIR = $(TOP)/nvvm/libdevice\n\
         PATH += $(CICC_PATH):$(_HERE_):\n\
         INCLUDES += \"-I$(TOP)/include\" $(_SPACE_)\n\
         LIBRARIES =+ $(_SPACE_) \"-L$(TOP)/lib\"\n",
    )?;
    let _ = fs::remove_dir_all(dir);
    fs::rename(&building, dir)?;
    Ok(())
}

/// Picks the host compiler and asks nvcc for its version.
fn finish(release: Release, dir: PathBuf) -> Result<Toolchain> {
    let host = host_compiler(release)?;
    let toolchain = Toolchain { release, dir, host };
    let said =
        toolchain.nvcc().arg("--version").output().with_context(|| format!("nvcc {}", release.version()))?;
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    ensure!(said.contains(&format!("release {}", release.version())), "nvcc says:\n{said}");
    Ok(toolchain)
}

fn host_compiler(release: Release) -> Result<Option<PathBuf>> {
    let said = Command::new("g++").arg("-dumpversion").output().context("g++")?;
    let major: u32 =
        String::from_utf8_lossy(&said.stdout).trim().split('.').next().unwrap_or("0").parse().unwrap_or(0);
    let newest = release.newest_gcc();
    if major <= newest {
        return Ok(None);
    }
    let name = format!("g++-{newest}");
    if setup::which(&name).is_none() {
        println!("setup: nvcc {} accepts gcc up to {newest}; this machine's is {major}", release.version());
        match release {
            Release::V11_8 => setup::packages(&[
                ("gcc-11", "nvcc 11.8's host compiler"),
                ("g++-11", "nvcc 11.8's host compiler"),
            ])?,
            Release::V12_4 => setup::packages(&[
                ("gcc-13", "nvcc 12.4's host compiler"),
                ("g++-13", "nvcc 12.4's host compiler"),
            ])?,
            Release::V13_5 => setup::packages(&[
                ("gcc-15", "nvcc 13.5's host compiler"),
                ("g++-15", "nvcc 13.5's host compiler"),
            ])?,
        }
    }
    Ok(Some(setup::which(&name).with_context(|| format!("{name} is not in PATH"))?))
}

/// Makes a symbolic link; one that is there already is kept.
fn link(target: &str, at: &Path) -> Result<()> {
    match symlink(target, at) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        other => other.with_context(|| at.display().to_string()),
    }
}
