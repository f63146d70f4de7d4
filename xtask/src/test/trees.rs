//! Fresh systems in folders, to install CUDAway in: Debian 11, 12 and 13, bare or with their Python, and a Debian with a Python of its
//! own in /usr/local, as images of Python for containers have it. Need root and the network; kept below target/debian.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use testkit::Run;

use super::debian::bootstrapped;
use crate::dist;
use crate::setup::{self, root};
use crate::toolchain::{Release, apt_state, mirror};

#[derive(Clone, Copy)]
pub struct Suite {
    pub name: &'static str,
    pub version: &'static str,
    /// What the packages and the wheel ask for.
    pub glibc: [u32; 2],
}

pub const SUITES: [Suite; 3] = [
    Suite { name: "bullseye", version: "11", glibc: [2, 31] },
    Suite { name: "bookworm", version: "12", glibc: [2, 36] },
    Suite { name: "trixie", version: "13", glibc: [2, 41] },
];

/// The suite of this machine's glibc, for which a Python is built here, and the suite whose source package it is: the newest
/// Python whose sources Debian has.
const OWN_PYTHON: (&str, &str, &str) = ("bookworm", "trixie", "python3.13");

/// A system in a folder, of whose programs each sees a /proc.
pub struct Tree {
    pub root: PathBuf,
    before: BTreeSet<String>,
}

impl Tree {
    /// What debootstrap calls a minimal base.
    pub fn bare(suite: Suite) -> Result<Tree> {
        Tree::copy_of(&bare(suite.name)?)
    }

    /// The same with Debian's own Python, in which users make environments, and one of these in /opt/venv.
    pub fn with_python(suite: Suite) -> Result<Tree> {
        let name = format!("python-{}", suite.name);
        let tree = grown(suite.name, &name, |root| {
            in_root(
                root,
                "apt-get -q update && apt-get -q install --yes --no-install-recommends python3-venv",
            )?;
            in_root(root, "python3 -m venv /opt/venv")
        })?;
        Tree::copy_of(&tree)
    }

    /// Debian 12 with a Python that was built from its sources, in /usr/local.
    pub fn with_own_python() -> Result<Tree> {
        let (suite, of, package) = OWN_PYTHON;
        let tree = grown(suite, "own-python", |root| {
            let folder = testkit::temporary()?;
            let keyring = "/usr/share/keyrings/debian-archive-keyring.gpg";
            let sources = format!("deb-src [signed-by={keyring}] {} {of} main\n", mirror()?);
            let apt = apt_state(&folder.path().join("apt"), &sources)?;
            let mut get = Command::new("apt-get");
            get.env("APT_CONFIG", apt).args(["-q", "source", "--download-only", package]);
            setup::run(get.current_dir(folder.path()))?;
            let script = "mkdir source && tar xf python3*.orig.tar.xz --strip-components=1 --directory source && cd source && \
                ./configure --quiet --prefix=/usr/local --disable-test-modules >log 2>&1 && make -j\"$1\" >>log 2>&1 && \
                make install DESTDIR=\"$2\" >>log 2>&1 || { tail -n 20 log >&2; exit 1; }";
            let cores = thread::available_parallelism().map_or(1, usize::from).to_string();
            let mut build = Command::new("sh");
            build.args(["-ec", script, "python", &cores]).arg(root).current_dir(folder.path());
            // Optimised by measurements it would take ten times as long.
            setup::run(build.env_remove("MAKEFLAGS"))?;
            in_root(root, "/usr/local/bin/python3 -m pip --version")
        })?;
        Tree::copy_of(&tree)
    }

    /// A copy, so that what is left in it shows. Of nvcc's it has a program.
    fn copy_of(tree: &Path) -> Result<Tree> {
        let name = tree.file_name().unwrap_or_default().to_string_lossy();
        let root = tree.with_file_name(format!("used-{name}"));
        let _ = fs::remove_dir_all(&root);
        setup::run(Command::new("cp").arg("--archive").arg(tree).arg(&root))?;
        fs::copy(example()?, root.join("root/vector_add"))?;
        let mut tree = Tree { root, before: BTreeSet::new() };
        tree.before = tree.files()?;
        Ok(tree)
    }

    /// What a shell there says to this script; `$1` and so on are `words`.
    pub fn said(&self, script: &str) -> Result<String> {
        let ended =
            start(&self.root, script).env("CUDAWAY_DEVICE", "cpu").limit(Duration::from_secs(300)).run()?;
        ensure!(ended.status.success(), "{script}: {}", ended.describe());
        Ok(ended.stdout)
    }

    /// A file of this machine's, into the tree's /tmp; where it lies there.
    pub fn bring(&self, file: &Path) -> Result<String> {
        let name = file.file_name().context("a name")?.to_string_lossy().into_owned();
        fs::copy(file, self.root.join("tmp").join(&name))?;
        Ok(format!("/tmp/{name}"))
    }

    /// The tool's own check, its doctor, and a program built by nvcc, each started by the tool that is called so.
    pub fn works_by(&self, tool: &str) -> Result<()> {
        let said = self.said(&format!("{tool} run -- {tool} selftest"))?;
        ensure!(said.lines().last() == Some("PASSED"), "{tool} selftest: {said}");
        let said = self.said(&format!("{tool} run -- /root/vector_add"))?;
        ensure!(said.lines().last() == Some("PASSED"), "vector_add: {said}");
        self.is_healthy(tool, "")
    }

    /// `cudaway doctor` finds no fault. It may warn, such as of limits of this machine.
    pub fn is_healthy(&self, tool: &str, words: &str) -> Result<()> {
        let said = self.said(&format!("{tool} doctor {words} || test $? = 1"))?;
        ensure!(said.contains("0 faults"), "{tool} doctor {words}: {said}");
        Ok(())
    }

    /// The tree has the files that it had before anything was installed, no more and no less; then it goes.
    pub fn left_as_it_was(self) -> Result<()> {
        let left: Vec<_> = self.files()?.symmetric_difference(&self.before).cloned().collect();
        ensure!(left.is_empty(), "left or lost: {left:?}");
        ensure!(!self.said("ldconfig -p")?.contains("cudaway"), "the loader's cache has what is gone");
        Ok(fs::remove_dir_all(&self.root)?)
    }

    /// Everything but what dpkg, apt and ldconfig keep for themselves, and what was compiled.
    fn files(&self) -> Result<BTreeSet<String>> {
        let own = ["/var/lib/dpkg/", "/var/lib/apt/", "/var/log/", "/var/cache/", "/etc/ld.so.cache"];
        let said = setup::said(Command::new("find").arg(&self.root).args(["-xdev", "-printf", "/%P\n"]))?;
        Ok(said
            .lines()
            .filter(|path| !own.iter().any(|own| path.starts_with(own)))
            .map(str::to_owned)
            .collect())
    }
}

fn bare(suite: &str) -> Result<PathBuf> {
    bootstrapped(suite, &format!("plain-{suite}"), &[], |_| Ok(()))
}

/// A bare suite with more in it, made if it is not there.
fn grown(suite: &str, name: &str, grow: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
    let plain = bare(suite)?;
    let root = plain.with_file_name(name);
    if !root.join("grown").exists() {
        if setup::offline() {
            bail!("--offline, and {} is missing", root.display());
        }
        let _ = fs::remove_dir_all(&root);
        setup::run(Command::new("cp").arg("--archive").arg(plain).arg(&root))?;
        grow(&root)?;
        fs::write(root.join("grown"), "")?;
    }
    Ok(root)
}

/// A shell in the root, in a private mount namespace: programs find their own path in /proc.
fn start(root: &Path, script: &str) -> Run {
    let mounted = "mount -t proc proc \"$1/proc\" && exec chroot \"$@\"";
    let run = Run::new("unshare").args(["--mount", "sh", "-c", mounted, "tree"]).arg(root);
    run.args(["/bin/sh", "-ec", script])
        .env("CUDAWAY_CACHE_DIR", "/var/cache/cudaway")
        .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
        .env("HOME", "/root")
        .env("DEBIAN_FRONTEND", "noninteractive")
        .env("PYTHONDONTWRITEBYTECODE", "1")
}

fn in_root(root: &Path, script: &str) -> Result<()> {
    let ended = start(root, script).limit(Duration::from_secs(600)).run()?;
    ensure!(ended.status.success(), "{script}: {}", ended.describe());
    Ok(())
}

/// vector_add by nvcc 13.5, as one builds it who has a Debian 11: its C library is of that time, its runtime is linked statically.
fn example() -> Result<PathBuf> {
    let toolchain = Release::V13_5.get()?;
    let sysroot = dist::oldest_glibc("libcudaway_cpu.so");
    let (folder, newer) = (sysroot.folder()?, sysroot.newer_glibc()?);
    let program = root().join("target/dist/vector_add");
    fs::create_dir_all(root().join("target/dist"))?;
    let mut nvcc = toolchain.nvcc();
    nvcc.arg("-I").arg(root().join("examples")).arg(root().join("examples/vector_add.cu")).arg(newer);
    nvcc.arg("-Xcompiler").arg(format!("-B{0},-L{0},-static-libstdc++,-static-libgcc", folder.display()));
    nvcc.args(["-Xlinker", "--allow-shlib-undefined", "-o"]).arg(&program);
    setup::said(&mut nvcc)?;
    Ok(program)
}
