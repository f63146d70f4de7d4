//! `cargo xtask dist`: the archives that users install: `cudaWay-linux-x86_64.tar.zst` and `.tar.gz` in target/dist; with `--wheel`
//! the Python package `cudaway` too, with `--deb` Debian packages, with `--oci` a container image. `SHA256SUMS` has the sums of what was
//! made, and `--sign` signs it.
//!
//! Two runs on the same commit, in whatever folders, give the same bytes: paths are remapped, times are the commit's.

mod contents;
pub mod deb;
mod notices;
pub mod oci;
pub mod sysroot;
pub mod wheel;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::build::recipe::Shipped;
use crate::build::{self, Profile, Recipe, gate};
use crate::setup::{self, Package, root};
use sysroot::Sysroot;

const NAME: &str = "cudaWay-linux-x86_64";

/// The CPU device with LLVM inside is used on machines of our time; the rest goes in front of old programs on old systems.
const OLDEST_FOR_CPU_DEVICE: Sysroot = Sysroot { glibc: "2.31" };
const OLDEST: Sysroot = Sysroot { glibc: "2.17" };

const PACKAGES: &[Package] =
    &[("zstd", "packs the archive"), ("gzip", "packs the archive"), ("tar", "packs the archive")];

#[derive(clap::Args)]
pub struct Args {
    /// The Python package too, as a wheel.
    #[arg(long)]
    wheel: bool,
    /// Debian packages too: cudaway and libcudaway-cpu.
    #[arg(long)]
    deb: bool,
    /// A container image too, of Debian 12 with CUDAway; needs root and the network.
    #[arg(long)]
    oci: bool,
    /// The wheel, the packages and the image alone, as far as they are asked for, of what `cargo xtask build` made: for systems with
    /// this one's glibc or a newer one.
    #[arg(long)]
    local: bool,
    /// All that is asked for, for the old systems that are shipped for, but optimised crate by crate only, as `cargo xtask build` does
    /// it: to be tried, not to be shipped. It takes a fifth of the time.
    #[arg(long, conflicts_with = "local")]
    quick: bool,
    /// Only these objects anew, by file name (`libcuda.so.1`); the others are those of the last time.
    #[arg(long, value_delimiter = ',', requires = "quick")]
    only: Vec<String>,
    /// Sign the sums by gpg, with the key of this name.
    #[arg(long, value_name = "KEY")]
    sign: Option<String>,
    #[command(flatten)]
    setup: setup::Args,
}

pub fn run(args: &Args) -> Result<()> {
    args.setup.apply();
    setup::build_packages()?;
    setup::packages(PACKAGES)?;
    let wanted = Wanted { wheel: args.wheel, deb: args.deb, oci: args.oci };
    let made = if args.local {
        ensure!(args.wheel || args.deb || args.oci, "--local is for --wheel, --deb and --oci");
        local(&setup::lib_dir(), &wanted)?
    } else {
        crate::codegen::refresh()?;
        make(&wanted, if args.quick { Profile::Local } else { Profile::Release }, &args.only)?
    };
    for file in &made {
        println!("dist: {}", file.display());
    }
    sums(&out(), &made, args.sign.as_deref())
}

/// What is made besides the archives.
#[derive(Clone, Copy, Default)]
pub struct Wanted {
    pub wheel: bool,
    pub deb: bool,
    pub oci: bool,
}

/// Of the objects in `lib`, and of what lies beside that folder, as they are.
pub fn local(lib: &Path, wanted: &Wanted) -> Result<Vec<PathBuf>> {
    let tree = lib.parent().context("a folder")?;
    whole(tree).context("`cargo xtask build` makes them")?;
    let rest = out().join("rest");
    let _ = fs::remove_dir_all(&rest);
    fs::create_dir_all(&rest)?;
    contents::add(&rest)?;
    notices::add(&rest)?;
    let (trees, epoch_s) = ([tree, rest.as_path()], epoch_s()?);
    let mut made = Vec::new();
    if wanted.wheel {
        made.push(wheel::pack(&trees, &wheel::newest_glibc(tree)?, epoch_s, wheel::FASTEST)?);
    }
    if wanted.deb {
        made.extend(deb::pack(&trees, epoch_s, true)?);
    }
    if wanted.oci {
        made.push(oci::pack(&trees, epoch_s, true)?);
    }
    Ok(made)
}

/// What the last `cargo xtask dist` made.
pub fn made_last() -> Result<Vec<PathBuf>> {
    let list = out().join("SHA256SUMS");
    let text = fs::read_to_string(&list).with_context(|| {
        format!("{}: `cargo xtask dist --quick --wheel --deb --oci` makes what is tried", list.display())
    })?;
    Ok(text.lines().filter_map(|line| line.split_once("  ")).map(|(_, name)| out().join(name)).collect())
}

/// `SHA256SUMS` of these files, and its signature, which says who made them.
fn sums(out: &Path, made: &[PathBuf], key: Option<&str>) -> Result<()> {
    let names = made.iter().filter_map(|path| path.file_name());
    let sums = setup::said(Command::new("sha256sum").args(names).current_dir(out))?;
    let (list, signature) = (out.join("SHA256SUMS"), out.join("SHA256SUMS.asc"));
    fs::write(&list, format!("{sums}\n"))?;
    // An older one would be of other sums.
    let _ = fs::remove_file(&signature);
    let Some(key) = key else { return Ok(()) };
    setup::packages(&[("gpg", "signs the sums")])?;
    sign(&list, key, None)?;
    println!("dist: {}", signature.display());
    Ok(())
}

/// `FILE.asc`, by a key of the user's keyring, or of another one.
fn sign(file: &Path, key: &str, keyring: Option<&Path>) -> Result<()> {
    let mut gpg = Command::new("gpg");
    if let Some(keyring) = keyring {
        gpg.arg("--homedir").arg(keyring);
    }
    gpg.args(["--batch", "--yes", "--armor", "--local-user", key, "--detach-sign"]);
    setup::run(gpg.arg(file))
}

/// Builds everything and packs it; the paths of the archives, and of what else is wanted. What is shipped is optimised across crates
/// and packed as small as it gets. Where objects are named, only these are built.
pub fn make(wanted: &Wanted, profile: Profile, only: &[String]) -> Result<Vec<PathBuf>> {
    let is_shipped = profile == Profile::Release;
    let out = out();
    let tree = out.join(NAME);
    if only.is_empty() {
        let _ = fs::remove_dir_all(&tree);
    }
    fs::create_dir_all(&tree)?;
    let epoch_s = epoch_s()?;
    let shipped = Shipped {
        target_dir: out.join("build"),
        remapped: remapped()?,
        epoch_s,
        names_commit: is_shipped,
        sysroot_of: Box::new(oldest_glibc),
    };
    let lib = tree.join("lib");
    build::lay_out(only, &Recipe::shipped(shipped, profile), &lib)?;
    whole(&tree)?;
    check_glibc(&tree)?;
    contents::add(&tree)?;
    notices::add(&tree)?;
    let mut made = pack(&out, epoch_s, is_shipped)?;
    if wanted.wheel {
        let oldest = gate::release(OLDEST_FOR_CPU_DEVICE.glibc).context("a release of glibc")?;
        let level = if is_shipped { wheel::SMALLEST } else { wheel::FASTEST };
        made.push(wheel::pack(&[&tree], &oldest, epoch_s, level)?);
    }
    if wanted.deb {
        made.extend(deb::pack(&[&tree], epoch_s, !is_shipped)?);
    }
    if wanted.oci {
        made.push(oci::pack(&[&tree], epoch_s, !is_shipped)?);
    }
    Ok(made)
}

fn out() -> PathBuf {
    root().join("target/dist")
}

/// What the object or program of this name is linked against.
pub fn oldest_glibc(name: &str) -> Sysroot {
    if name == "libcudaway_cpu.so" { OLDEST_FOR_CPU_DEVICE } else { OLDEST }
}

/// A tree to be packed has all our objects and programs, in whatever folder.
fn whole(tree: &Path) -> Result<()> {
    let missing: Vec<String> = build::missing(tree).iter().map(|name| name.display().to_string()).collect();
    ensure!(missing.is_empty(), "{} does not have {}", tree.display(), missing.join(", "));
    Ok(())
}

fn check_glibc(tree: &Path) -> Result<()> {
    for folder in build::folders() {
        for entry in fs::read_dir(tree.join(folder))? {
            let path = entry?.path();
            if path.is_dir() {
                continue;
            }
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let oldest = oldest_glibc(&name).glibc;
            let newer = gate::glibc_symbols_after(&path, oldest)?;
            ensure!(newer.is_empty(), "{name} needs what glibc {oldest} has not: {}", newer.join(", "));
        }
    }
    Ok(())
}

/// The commit's time, or what SOURCE_DATE_EPOCH says.
fn epoch_s() -> Result<u64> {
    let said = match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(said) => said,
        Err(_) => setup::said(Command::new("git").args(["log", "-1", "--format=%ct"]).current_dir(root()))?,
    };
    said.trim().parse().with_context(|| format!("not a time in seconds: {said:?}; set SOURCE_DATE_EPOCH"))
}

/// This machine's folders that a compiler writes into objects.
fn remapped() -> Result<Vec<(PathBuf, &'static str)>> {
    let sysroot = PathBuf::from(setup::said(Command::new("rustc").args(["--print", "sysroot"]))?);
    let cargo = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let cargo = cargo.or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".cargo")));
    let cargo = cargo.context("neither CARGO_HOME nor HOME is set")?;
    Ok(vec![(sysroot, "/rust"), (cargo, "/cargo"), (root(), "/cudaway")])
}

fn pack(out: &Path, epoch_s: u64, is_shipped: bool) -> Result<Vec<PathBuf>> {
    let (zstd, gzip) = if is_shipped { ("-19", "--best") } else { ("-3", "--fast") };
    let tar = out.join(format!("{NAME}.tar"));
    let mut packed = Command::new("tar");
    packed.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--format=gnu"]);
    packed.arg("--mode=u=rwX,go=rX").arg(format!("--mtime=@{epoch_s}"));
    setup::run(packed.arg("--directory").arg(out).arg("--create").arg("--file").arg(&tar).arg(NAME))?;
    // One thread: the number of threads shows in the bytes.
    setup::run(Command::new("zstd").args(["--quiet", "--force", zstd, "--single-thread"]).arg(&tar))?;
    setup::run(Command::new("gzip").args(["--force", "--no-name", gzip]).arg(&tar))?;
    Ok(["tar.zst", "tar.gz"].map(|suffix| out.join(format!("{NAME}.{suffix}"))).to_vec())
}

/// Packs these paths from a folder, which all are named, in their order, with their modes and owners as they are there.
fn tar(folder: &Path, names: &[&Path], to: &Path, epoch_s: u64) -> Result<()> {
    let list = to.with_extension("list");
    let mut text = Vec::new();
    for name in names {
        text.extend_from_slice(name.as_os_str().as_encoded_bytes());
        text.push(0);
    }
    fs::write(&list, text)?;
    let is_whole = names == [Path::new(".")];
    let mut packed = Command::new("tar");
    packed.args(["--create", "--format=gnu", "--numeric-owner", "--sort=name"]);
    packed.arg(format!("--mtime=@{epoch_s}")).arg("--directory").arg(folder).arg("--file").arg(to);
    packed.arg(if is_whole { "--recursion" } else { "--no-recursion" }).args([
        "--null",
        "--verbatim-files-from",
        "--files-from",
    ]);
    setup::run(packed.arg(&list))?;
    Ok(fs::remove_file(list)?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::libraries;

    #[test]
    fn a_tree_without_one_of_its_folders_is_not_packed() {
        let tree = testkit::temporary().unwrap();
        let folders = build::folders();
        for name in build::missing(tree.path()) {
            let at = tree.path().join(name);
            fs::create_dir_all(at.parent().unwrap()).unwrap();
            fs::write(at, "").unwrap();
        }
        whole(tree.path()).unwrap();
        assert!(folders.contains(&Path::new("lib").join(&libraries::named("refused").folder)), "{folders:?}");
        for folder in &folders {
            let (at, aside) = (tree.path().join(folder), tree.path().join("aside"));
            fs::rename(&at, &aside).unwrap();
            let told = whole(tree.path()).unwrap_err().to_string();
            assert!(told.contains(&format!("{}/", folder.display())), "{told}");
            fs::rename(&aside, &at).unwrap();
        }
    }

    #[test]
    fn a_signature_is_of_the_sums_and_of_nothing_else() {
        if setup::which("gpg").is_none() {
            return testkit::skip!("gpg is not here");
        }
        let folder = testkit::temporary().unwrap();
        let (keyring, made) = (folder.path().join("keys"), folder.path().join("made.tar.gz"));
        fs::create_dir(&keyring).unwrap();
        fs::set_permissions(&keyring, fs::Permissions::from_mode(0o700)).unwrap();
        let gpg = |words: &[&str]| {
            let mut gpg = Command::new("gpg");
            gpg.arg("--homedir")
                .arg(&keyring)
                .args(["--batch", "--quiet"])
                .args(words)
                .current_dir(folder.path());
            gpg.output().unwrap()
        };
        let key = ["--passphrase", "", "--quick-generate-key", "A test", "ed25519", "sign", "never"];
        assert!(gpg(&key).status.success());
        fs::write(&made, "made").unwrap();
        sums(folder.path(), &[made], None).unwrap();
        assert!(!folder.path().join("SHA256SUMS.asc").exists(), "nobody asked for a signature");
        setup::said(Command::new("sha256sum").args(["--check", "SHA256SUMS"]).current_dir(folder.path()))
            .unwrap();
        sign(&folder.path().join("SHA256SUMS"), "A test", Some(&keyring)).unwrap();
        let verify = ["--verify", "SHA256SUMS.asc", "SHA256SUMS"];
        let verified = gpg(&verify);
        assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stderr));
        fs::write(folder.path().join("SHA256SUMS"), "other sums").unwrap();
        assert!(!gpg(&verify).status.success());
        // Its agent would outlive the folder.
        let _ = Command::new("gpgconf").arg("--homedir").arg(&keyring).args(["--kill", "all"]).status();
    }
}
