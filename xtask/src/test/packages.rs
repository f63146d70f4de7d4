//! Debian packages and the container image of the objects that were built, where they are used: installed, run and purged on bare
//! Debians, and a program run in a container. Needs root, the network and 8 GB; asked for with `--only packages`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};
use testkit::{Installed, Run};

use super::debian::bootstrapped;
use super::installs;
use super::report::{Outcome, Report};
use super::trees::{SUITES, Suite, Tree};
use crate::build::Profile;
use crate::dist::{self, Wanted};
use crate::setup;

/// `may_build`: they are made first. Else those are tried that the last `cargo xtask dist` has left.
pub fn run(installed: &Installed, may_build: bool, report: &mut Report) {
    let (name, made) = if may_build {
        let wanted = Wanted { wheel: true, deb: true, oci: true };
        ("cargo xtask dist --quick --wheel --deb --oci", dist::make(&wanted, Profile::Local, &[]))
    } else {
        ("what cargo xtask dist made is there", dist::made_last())
    };
    let made = match made {
        Ok(made) => made,
        Err(error) => return report.note(name, Err(error)),
    };
    report.note(name, Ok(()));
    try_all(&made, report);
    installs::try_all(&made, report);
    report.note("an engine adds CUDAway to a bare Debian by its description", by_description(installed));
}

/// Packages and image among what was made.
pub fn try_all(made: &[PathBuf], report: &mut Report) {
    let debs: Vec<&PathBuf> = of_kind(made, "deb").collect();
    if !debs.is_empty() {
        report.note("lintian has nothing to say of the packages that they do not answer", lintian(&debs));
    }
    for suite in SUITES.into_iter().filter(|_| !debs.is_empty()) {
        let name = format!("apt installs the packages, and purges them, on a bare Debian {}", suite.version);
        report.note(&name, on_debian(suite, &debs));
    }
    if let Some(archive) = made.iter().find(|path| path.to_string_lossy().ends_with("-oci-x86_64.tar")) {
        report.note("the image is as the OCI's layout says, sum by sum", layout(archive));
        let way = Way::here();
        report.note(
            &format!("a program runs on CUDAway in a container of the image, by {}", way.name()),
            contained(archive, way),
        );
    }
}

fn of_kind<'a>(made: &'a [PathBuf], suffix: &'a str) -> impl Iterator<Item = &'a PathBuf> {
    made.iter().filter(move |path| path.extension().is_some_and(|it| it == suffix))
}

fn lintian(debs: &[&PathBuf]) -> Result<()> {
    setup::packages(&[("lintian", "looks for mistakes in Debian packages")])?;
    let mut lintian = Command::new("lintian");
    // What is packed here is nobody's upload to Debian: no bug to close, no address of a maintainer there.
    lintian.args(["--allow-root", "--fail-on", "error,warning", "--tag-display-limit", "0"]);
    lintian.args(["--suppress-tags", "initial-upload-closes-no-bugs,bogus-mail-host"]);
    let output = lintian.args(debs).output().context("lintian")?;
    ensure!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}

fn on_debian(suite: Suite, debs: &[&PathBuf]) -> Outcome {
    let needed = debs.iter().map(|deb| needed_glibc(deb)).collect::<Result<Vec<_>>>();
    match needed.map(|needed| needed.into_iter().max().unwrap_or_default()) {
        Err(error) => Err(error).into(),
        Ok(needed) if needed > suite.glibc.to_vec() => {
            let release = needed.iter().map(u32::to_string).collect::<Vec<_>>().join(".");
            Outcome::Skipped(format!("it was made by --local and needs glibc {release}"))
        }
        Ok(_) => installed_and_purged(suite, debs).into(),
    }
}

fn needed_glibc(deb: &Path) -> Result<Vec<u32>> {
    let depends = setup::said(Command::new("dpkg-deb").arg("--field").arg(deb).arg("Depends"))?;
    let (_, release) = depends.split_once("libc6 (>= ").context("a package that needs no glibc")?;
    let release = release.split(')').next().unwrap_or_default();
    crate::build::gate::release(release).with_context(|| depends.clone())
}

fn installed_and_purged(suite: Suite, debs: &[&PathBuf]) -> Result<()> {
    let debian = Tree::bare(suite)?;
    let files = debs.iter().map(|deb| debian.bring(deb)).collect::<Result<Vec<_>>>()?.join(" ");
    // No lists of packages are there, and none are needed: only the C library is asked for.
    let install = format!("apt-get -q install --yes --no-install-recommends --reinstall {files}");
    debian.said(&install)?;
    // Nothing is said to any of them: the loader finds it.
    let said = debian.said("cudaway selftest")?;
    ensure!(
        said.contains("libcuda.so.1: /usr/lib/cudaway/lib/") && said.lines().last() == Some("PASSED"),
        "{said}"
    );
    // A program that brings its runtime along has begun by then, and is told what it needs.
    let said = debian.said("CUDAWAY_LOG=warn /root/vector_add 2>&1 && exit 9 || exit 0")?;
    ensure!(said.contains("`cudaway run -- program`"), "{said}");
    debian.works_by("cudaway")?;
    debian
        .said("test -s /usr/share/man/man1/cudaway-run.1.gz && test -s /usr/share/doc/cudaway/copyright")?;
    beside_nvidias(&debian)?;
    // The same again, as an update is.
    debian.said(&format!("{install} && cudaway selftest"))?;
    debian.said("apt-get -q purge --yes libcudaway-cpu && cudaway --version")?;
    debian.said(&format!("apt-get -q purge --yes cudaway && rm {files}"))?;
    debian.left_as_it_was()
}

/// Whether the loader finds our driver before others.
fn is_first(debian: &Tree) -> Result<bool> {
    let cache = debian.said("ldconfig -p")?;
    Ok(cache.lines().any(|line| line.contains("libcuda.so.1 ") && line.contains("/usr/lib/cudaway/lib/")))
}

/// A package with a driver where Debian's of NVIDIA has it: that one is first while it is there, and whoever asks for CUDAway gets it.
fn beside_nvidias(debian: &Tree) -> Result<()> {
    let stage = testkit::temporary()?;
    let folder = stage.path().join("usr/lib/x86_64-linux-gnu/nvidia/current");
    fs::create_dir_all(&folder)?;
    fs::create_dir_all(stage.path().join("DEBIAN"))?;
    fs::write(folder.join("libcuda.so.1"), "stands for NVIDIA's")?;
    fs::write(
        stage.path().join("DEBIAN/control"),
        "Package: stand-in\nVersion: 1\nArchitecture: amd64\nMaintainer: Nobody <nobody@packages.invalid>\nDescription: a test's\n",
    )?;
    let mut build = Command::new("dpkg-deb");
    build
        .args(["--root-owner-group", "-Zxz", "--build"])
        .arg(stage.path())
        .arg(debian.root.join("tmp/stand-in"));
    setup::said(&mut build)?;
    ensure!(is_first(debian)?, "CUDAway is not found where no other driver is");
    debian.said("dpkg --install /tmp/stand-in")?;
    ensure!(!is_first(debian)?, "CUDAway stays first where NVIDIA's driver was installed");
    debian.said("cudaway run -- cudaway selftest")?;
    debian.said("update-alternatives --set cudaway-loader /usr/lib/cudaway/loader/first.conf && ldconfig")?;
    ensure!(is_first(debian)?, "the administrator's choice does not count");
    debian.said("update-alternatives --auto cudaway-loader && ldconfig")?;
    ensure!(!is_first(debian)?, "automatic mode does not come back");
    debian.said("dpkg --purge stand-in && rm /tmp/stand-in")?;
    ensure!(is_first(debian)?, "CUDAway does not come back when NVIDIA's driver goes");
    Ok(())
}

/// The archive's folder, unpacked.
fn unpacked(archive: &Path) -> Result<testkit::TempDir> {
    let folder = testkit::temporary()?;
    setup::run(
        Command::new("tar").arg("--extract").arg("--file").arg(archive).arg("--directory").arg(folder.path()),
    )?;
    Ok(folder)
}

fn read(image: &Path, blob: &Value) -> Result<Vec<u8>> {
    let digest = blob["digest"].as_str().and_then(|it| it.strip_prefix("sha256:")).context("a digest")?;
    let path = image.join("blobs/sha256").join(digest);
    let sum = setup::said(Command::new("sha256sum").arg(&path))?;
    ensure!(sum.starts_with(digest), "{} has other contents than its name says", path.display());
    let bytes = fs::read(&path)?;
    ensure!(blob["size"] == json!(bytes.len()), "{} has another size than is said", path.display());
    Ok(bytes)
}

/// Configuration and layers of the only image.
fn image(folder: &Path) -> Result<(Value, Vec<Vec<u8>>)> {
    let version: Value = serde_json::from_slice(&fs::read(folder.join("oci-layout"))?)?;
    ensure!(version["imageLayoutVersion"] == "1.0.0", "{version}");
    let index: Value = serde_json::from_slice(&fs::read(folder.join("index.json"))?)?;
    let manifest: Value = serde_json::from_slice(&read(folder, &index["manifests"][0])?)?;
    let config = serde_json::from_slice(&read(folder, &manifest["config"])?)?;
    let layers = manifest["layers"].as_array().context("layers")?;
    Ok((config, layers.iter().map(|layer| read(folder, layer)).collect::<Result<_>>()?))
}

fn layout(archive: &Path) -> Result<()> {
    let folder = unpacked(archive)?;
    let (config, layers) = image(folder.path())?;
    let diff_ids = config["rootfs"]["diff_ids"].as_array().context("diff_ids")?;
    ensure!(layers.len() == 2 && diff_ids.len() == 2, "{config}");
    for (bytes, wanted) in layers.iter().zip(diff_ids) {
        let packed = folder.path().join("layer.gz");
        fs::write(&packed, bytes)?;
        let script = "gzip --decompress --stdout \"$1\" | sha256sum";
        let sum = setup::said(Command::new("sh").args(["-c", script, "sum"]).arg(&packed))?;
        let sum = format!("sha256:{}", sum.split(' ').next().unwrap_or_default());
        ensure!(json!(sum) == *wanted, "a layer is not what the configuration says");
    }
    Ok(())
}

/// An engine copies an image's files several times before it starts anything.
const UNPACKING: Duration = Duration::from_secs(600);

/// What starts a container here.
#[derive(Clone, Copy)]
enum Way {
    Podman,
    Crun,
    Chroot,
}

impl Way {
    fn here() -> Way {
        let works = |program: &str, args: &[&str]| {
            setup::which(program).is_some()
                && Command::new(program).args(args).output().is_ok_and(|it| it.status.success())
        };
        // An engine that cannot make a container here, as in many containers, says so at `info`.
        if works("podman", &["info"]) {
            Way::Podman
        } else if works("crun", &["--version"]) {
            Way::Crun
        } else {
            Way::Chroot
        }
    }

    fn name(self) -> &'static str {
        match self {
            Way::Podman => "podman",
            Way::Crun => "crun",
            Way::Chroot => "chroot, as no engine is here",
        }
    }
}

fn contained(archive: &Path, way: Way) -> Result<()> {
    let folder = testkit::temporary()?;
    let run = match way {
        Way::Podman => {
            let run = podman(folder.path())?;
            run.arg(format!("oci-archive:{}", archive.display())).args(["cudaway", "selftest"])
        }
        Way::Crun => {
            rootfs(archive, folder.path())?;
            fs::write(folder.path().join("config.json"), serde_json::to_vec(&bundle())?)?;
            let name = format!("cudaway-{}", std::process::id());
            let run = alone("exec \"$@\"").arg("crun").arg("--root").arg(folder.path().join("state"));
            run.args(["--cgroup-manager", "disabled", "run", "--bundle"]).arg(folder.path()).arg(name)
        }
        Way::Chroot => {
            rootfs(archive, folder.path())?;
            let mounted = "mount -t proc proc \"$1/proc\" && exec chroot \"$@\"";
            let run = Run::new("unshare")
                .args(["--mount", "sh", "-c", mounted, "image"])
                .arg(folder.path().join("rootfs"));
            run.args(["/usr/bin/env", "PATH=/usr/local/bin:/usr/bin:/bin", "cudaway", "selftest"])
                .env("CUDAWAY_DEVICE", "cpu")
        }
    };
    let ended = run.limit(UNPACKING).run()?;
    if !(ended.passed() && ended.stdout.contains("libcuda.so.1: /opt/cudaway/lib/")) {
        bail!("{}", ended.describe());
    }
    Ok(())
}

/// In a mount namespace where control groups are of one version only: engines refuse a mixture, as some machines have it.
fn alone(then: &str) -> Run {
    let script =
        format!("umount -l -R /sys/fs/cgroup 2>/dev/null; mount -t cgroup2 none /sys/fs/cgroup; {then}");
    Run::new("unshare").args(["--mount", "--propagation", "private", "sh", "-c"]).arg(script).arg("engine")
}

/// `podman run` with its files below a folder, up to the image.
fn podman(folder: &Path) -> Result<Run> {
    podman_after("exec \"$@\"", folder)
}

fn podman_after(then: &str, folder: &Path) -> Result<Run> {
    // It asks for more open files than a machine may allow.
    let most = setup::said(Command::new("sh").args(["-c", "ulimit -Hn"]))?;
    let run = alone(then).arg("podman").arg("--root").arg(folder.join("root")).arg("--runroot");
    let run = run.arg(folder.join("run")).args(["--storage-driver", "vfs", "--cgroup-manager", "cgroupfs"]);
    let run = run.args(["run", "--rm", "--network", "none", "--cgroups", "disabled"]);
    Ok(run.arg("--ulimit").arg(format!("nofile={most}:{most}")).args(["--ulimit", "nproc=1000:1000"]))
}

/// `cudaway install --system` describes itself to engines: one that is asked for that device adds CUDAway to a bare Debian.
fn by_description(installed: &Installed) -> Outcome {
    if !matches!(Way::here(), Way::Podman) {
        return Outcome::Skipped("podman is not here, or cannot run".to_owned());
    }
    let check = || -> Result<()> {
        let base = bootstrapped("bookworm", "plain-bookworm", &[], |_| Ok(()))?;
        let folder = testkit::temporary()?;
        let (prefix, root) = (folder.path().join("cudaway"), folder.path().join("system"));
        fs::create_dir_all(&prefix)?;
        fs::create_dir_all(root.join("etc"))?;
        let tool = installed.lib().with_file_name("bin").join("cudaway");
        let mut install = Command::new(tool);
        install.args(["install", "--system", "--prefix"]).arg(&prefix).arg("--root").arg(&root);
        setup::said(&mut install)?;
        let installed = root.join(prefix.strip_prefix("/")?);
        let then = format!(
            "mount -t tmpfs none /run && mkdir /run/cdi && cp '{}' /run/cdi && mount --bind '{}' '{}' && exec \"$@\"",
            root.join("etc/cdi/cudaway.json").display(),
            installed.display(),
            prefix.display()
        );
        let run = podman_after(&then, folder.path())?.args(["--device", "cudaway.dev/gpu=cpu", "--rootfs"]);
        let run = run.arg(&base).arg(prefix.join("bin/cudaway")).arg("selftest");
        let ended = run.limit(UNPACKING).run()?;
        let is_ours = ended.stdout.contains(&format!("libcuda.so.1: {}/lib/", prefix.display()));
        ensure!(ended.passed() && is_ours, "{}", ended.describe());
        Ok(())
    };
    check().into()
}

/// The layers, one over the other.
fn rootfs(archive: &Path, folder: &Path) -> Result<()> {
    let image_folder = unpacked(archive)?;
    let root = folder.join("rootfs");
    fs::create_dir_all(&root)?;
    for (number, layer) in image(image_folder.path())?.1.iter().enumerate() {
        let packed = folder.join(format!("{number}.tar.gz"));
        fs::write(&packed, layer)?;
        let mut tar = Command::new("tar");
        setup::run(tar.args(["--extract", "--gzip", "--file"]).arg(&packed).arg("--directory").arg(&root))?;
    }
    Ok(())
}

/// What a runtime is told of a container: a program in it, and a /proc.
fn bundle() -> Value {
    json!({
        "ociVersion": "1.0.2",
        "process": {
            "user": { "uid": 0, "gid": 0 },
            "args": ["cudaway", "selftest"],
            "env": ["PATH=/usr/local/bin:/usr/bin:/bin", "CUDAWAY_DEVICE=cpu"],
            "cwd": "/",
        },
        "root": { "path": "rootfs" },
        "mounts": [
            { "destination": "/proc", "type": "proc", "source": "proc" },
            { "destination": "/dev", "type": "tmpfs", "source": "tmpfs" },
            { "destination": "/tmp", "type": "tmpfs", "source": "tmpfs" },
        ],
        "linux": { "namespaces": [{ "type": "pid" }, { "type": "mount" }, { "type": "ipc" }, { "type": "uts" }] },
    })
}
