//! Debian packages: `cudaway` with the libraries and the tool, `libcudaway-cpu` with the CPU device, which needs a newer glibc.
//!
//! The tree lies in /usr/lib/cudaway as it lies in an archive, since its parts find each other by it. Who comes first where NVIDIA's
//! driver is installed too is a choice of the administrator's, by Debian's alternatives (deb/postinst).

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::build::gate;
use crate::setup;

const CPU_DEVICE: &str = "lib/libcudaway_cpu.so";

/// Where the tree lies.
const TREE: &str = "usr/lib/cudaway";

/// What the version of packages ends in that are to be tried, not to be shipped.
const LOCAL: &str = "~local";

struct Package {
    name: &'static str,
    section: &'static str,
    /// `{version}` and `{glibc}` are filled in.
    relations: &'static [(&'static str, &'static str)],
    summary: &'static str,
    description: &'static [&'static str],
    /// dpkg's scripts and triggers.
    control: &'static [(&'static str, &'static str)],
    /// What lintian says of it and why it stays so.
    overrides: &'static str,
    has: fn(&str) -> bool,
}

const PACKAGES: [Package; 2] = [
    Package {
        name: "cudaway",
        section: "libs",
        relations: &[
            ("Depends", "libc6 (>= {glibc})"),
            ("Recommends", "libcudaway-cpu (= {version})"),
            ("Suggests", "libamdhip64-5, libamd-comgr2 | libamd-comgr3"),
        ],
        summary: "CUDA programs without an NVIDIA GPU",
        description: &[
            "CUDAway runs programs that were built for CUDA on machines that have no",
            "NVIDIA GPU. Its libraries have the names of NVIDIA's, such as libcuda.so.1,",
            "and kernels run on the CPU (package libcudaway-cpu) or on AMD GPUs (ROCm).",
            "",
            "With the package installed programs find these libraries by themselves. Where",
            "NVIDIA's driver is installed, that one stays first, and \"cudaway run --",
            "program\" starts a program on CUDAway; \"update-alternatives --config",
            "cudaway-loader\" changes the order.",
        ],
        control: &[
            ("postinst", include_str!("deb/postinst")),
            ("prerm", include_str!("deb/prerm")),
            ("postrm", include_str!("deb/postrm")),
            ("triggers", include_str!("deb/triggers")),
        ],
        overrides: include_str!("deb/cudaway.lintian-overrides"),
        has: |place| !is_of_cpu_device(place),
    },
    Package {
        name: "libcudaway-cpu",
        section: "libs",
        relations: &[("Depends", "cudaway (= {version}), libc6 (>= {glibc})")],
        summary: "CUDA programs without an NVIDIA GPU: the CPU as a device",
        description: &[
            "CUDAway runs programs that were built for CUDA on machines that have no",
            "NVIDIA GPU.",
            "",
            "This package has the device that is always there: it compiles kernels for the",
            "processor, by LLVM, and runs them on all of its cores.",
        ],
        control: &[],
        overrides: include_str!("deb/libcudaway-cpu.lintian-overrides"),
        has: is_of_cpu_device,
    },
];

fn is_of_cpu_device(place: &str) -> bool {
    place.ends_with("/libcudaway_cpu.so")
}

/// What a place in a package has.
enum Entry {
    File(PathBuf),
    Text(Vec<u8>),
    Link(String),
}

/// The packages of the tree, whose parts are `trees`. What is to be tried only has a version that says so, and that every
/// released one replaces.
pub fn pack(trees: &[&Path], epoch_s: u64, is_local: bool) -> Result<Vec<PathBuf>> {
    setup::packages(&[("dpkg", "packs Debian packages"), ("binutils", "strips objects")])?;
    let version = format!("{}{}", env!("CARGO_PKG_VERSION"), if is_local { LOCAL } else { "" });
    let entries = entries(trees)?;
    PACKAGES.iter().map(|package| package.pack(&entries, &version, epoch_s)).collect()
}

/// All of the tree, by where it lies on a Debian system.
fn entries(trees: &[&Path]) -> Result<BTreeMap<String, Entry>> {
    let mut entries = BTreeMap::new();
    for tree in trees {
        for name in files(tree, Path::new(""))? {
            let at = tree.join(&name);
            let Some(place) = place(&name) else { continue };
            let entry = if at.is_symlink() {
                Entry::Link(fs::read_link(&at)?.to_string_lossy().into_owned())
            } else if place.ends_with(".gz") {
                Entry::Text(gzipped(&fs::read(&at)?)?)
            } else {
                Entry::File(at)
            };
            entries.insert(place, entry);
        }
    }
    ensure!(entries.contains_key("usr/lib/cudaway/bin/cudaway"), "the tool is missing");
    ensure!(entries.contains_key(&format!("{TREE}/{CPU_DEVICE}")), "the CPU device is missing");
    // As `cudaway install --system` does: the loader looks there first, whatever folder another library lies in.
    let libraries = entries.keys().filter_map(|place| place.strip_prefix("usr/lib/cudaway/lib/"));
    let libraries: Vec<String> = libraries.filter(|name| !name.contains('/')).map(str::to_owned).collect();
    for name in libraries {
        let link = format!("{TREE}/lib/glibc-hwcaps/x86-64-v2/{name}");
        entries.insert(link, Entry::Link(format!("../../{name}")));
    }
    entries.insert("usr/bin/cudaway".to_owned(), Entry::Link("../lib/cudaway/bin/cudaway".to_owned()));
    for (name, text) in
        [("first.conf", include_str!("deb/first.conf")), ("later.conf", include_str!("deb/later.conf"))]
    {
        entries.insert(format!("{TREE}/loader/{name}"), Entry::Text(text.as_bytes().to_vec()));
    }
    Ok(entries)
}

/// Where a file of the tree lies on a Debian system, if it is wanted there.
fn place(name: &str) -> Option<String> {
    let (folder, rest) = name.split_once('/').unwrap_or(("", name));
    Some(match (folder, rest) {
        ("bin" | "lib" | "tools", "cuda-mapper.json") => "usr/share/doc/cudaway/cuda-mapper.json".to_owned(),
        ("bin" | "lib" | "tools", _) => format!("{TREE}/{name}"),
        ("share", _) => match rest.strip_prefix("zsh/site-functions/") {
            Some(zsh) => format!("usr/share/zsh/vendor-completions/{zsh}"),
            None if rest.starts_with("man/") => format!("usr/share/{rest}.gz"),
            None => format!("usr/share/{rest}"),
        },
        ("docs", _)
        | ("", "README.md" | "SECURITY.md" | "cudaway.cdx.json" | "RUST-STANDARD-LIBRARY-NOTICES.html") => {
            format!("usr/share/doc/cudaway/{name}")
        }
        ("", "CHANGELOG.md") => "usr/share/doc/cudaway/NEWS.md.gz".to_owned(),
        ("", "THIRD-PARTY-NOTICES.txt") => "usr/share/doc/cudaway/THIRD-PARTY-NOTICES.txt.gz".to_owned(),
        // Licences are in `copyright`; the links are for who preloads from an unpacked archive.
        _ => return None,
    })
}

/// Files and links below a folder; what begins with a dot was left by a build that was ended.
fn files(tree: &Path, below: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(tree.join(below))? {
        let entry = entry?;
        let name = below.join(entry.file_name());
        match entry.file_type()? {
            _ if entry.file_name().to_string_lossy().starts_with('.') => {}
            kind if kind.is_dir() => found.extend(files(tree, &name)?),
            _ => found.push(name.to_string_lossy().into_owned()),
        }
    }
    Ok(found)
}

/// Without a name or a time in it.
fn gzipped(bytes: &[u8]) -> Result<Vec<u8>> {
    let folder = testkit::temporary()?;
    let at = folder.path().join("text");
    fs::write(&at, bytes)?;
    setup::run(Command::new("gzip").args(["--no-name", "--best"]).arg(&at))?;
    Ok(fs::read(at.with_extension("gz"))?)
}

impl Package {
    fn pack(&self, entries: &BTreeMap<String, Entry>, version: &str, epoch_s: u64) -> Result<PathBuf> {
        let out = super::out();
        let stage = out.join("deb").join(self.name);
        let _ = fs::remove_dir_all(&stage);
        let mut oldest_glibc = vec![2, 17];
        for (place, entry) in entries.iter().filter(|(place, _)| (self.has)(place)) {
            let at = stage.join(place);
            fs::create_dir_all(at.parent().context("a folder")?)?;
            match entry {
                Entry::Link(target) => symlink(target, &at)?,
                Entry::Text(text) => write(&at, text, 0o644)?,
                Entry::File(from) => {
                    let bytes = fs::read(from)?;
                    let is_object = bytes.starts_with(b"\x7fELF");
                    let is_program = from.metadata()?.permissions().mode() & 0o111 != 0;
                    // A library is not started; only programs may be.
                    let is_program = is_program && !place.contains(".so");
                    write(&at, &bytes, if is_program { 0o755 } else { 0o644 })?;
                    if is_object {
                        // Names of functions that nobody outside asks for; our note stays, it is loaded.
                        setup::run(
                            Command::new("strip").args(["--strip-unneeded", "-R", ".comment"]).arg(&at),
                        )?;
                        oldest_glibc = oldest_glibc.max(gate::newest_glibc(&at)?.unwrap_or_default());
                    }
                }
            }
        }
        let doc = stage.join("usr/share/doc").join(self.name);
        fs::create_dir_all(&doc)?;
        write(&doc.join("copyright"), copyright().as_bytes(), 0o644)?;
        write(&doc.join("changelog.gz"), &gzipped(self.changelog(version, epoch_s)?.as_bytes())?, 0o644)?;
        if !self.overrides.is_empty() {
            let overrides = stage.join("usr/share/lintian/overrides");
            fs::create_dir_all(&overrides)?;
            write(&overrides.join(self.name), self.overrides.as_bytes(), 0o644)?;
        }
        self.describe(&stage, version, &glibc(&oldest_glibc), epoch_s)?;
        let deb = out.join(format!("{}_{version}_amd64.deb", self.name));
        let mut build = Command::new("dpkg-deb");
        // What is tried once need not be small.
        let how = if version.ends_with(LOCAL) { ["-Zgzip", "-z1"] } else { ["-Zxz", "-z6"] };
        build.args(["--root-owner-group", "--threads-max=1"]).args(how).arg("--build").arg(&stage).arg(&deb);
        setup::run(build.env("SOURCE_DATE_EPOCH", epoch_s.to_string()).stdout(std::process::Stdio::null()))?;
        Ok(deb)
    }

    /// The folder `DEBIAN`.
    fn describe(&self, stage: &Path, version: &str, glibc: &str, epoch_s: u64) -> Result<()> {
        let (kib, sums) = contents(stage)?;
        let control = stage.join("DEBIAN");
        fs::create_dir_all(&control)?;
        let mut text = format!(
            "Package: {}\nVersion: {version}\nArchitecture: amd64\nMaintainer: {}\nInstalled-Size: {kib}\n",
            self.name,
            maintainer()
        );
        for (field, value) in self.relations {
            writeln!(text, "{field}: {}", value.replace("{version}", version).replace("{glibc}", glibc))?;
        }
        writeln!(text, "Section: {}\nPriority: optional\nDescription: {}", self.section, self.summary)?;
        for line in self.description {
            writeln!(text, " {}", if line.is_empty() { "." } else { line })?;
        }
        write(&control.join("control"), text.as_bytes(), 0o644)?;
        write(&control.join("md5sums"), sums.as_bytes(), 0o644)?;
        for (name, text) in self.control {
            let mode = if *name == "triggers" { 0o644 } else { 0o755 };
            write(&control.join(name), text.as_bytes(), mode)?;
        }
        // Folders get the commit's time too: dpkg-deb only moves times back to it.
        let mut touch = Command::new("find");
        touch.arg(stage).args(["-exec", "touch", "--no-dereference"]).arg(format!("--date=@{epoch_s}"));
        setup::run(touch.args(["{}", "+"]))
    }

    fn changelog(&self, version: &str, epoch_s: u64) -> Result<String> {
        let date = setup::said(Command::new("date").args(["-u", "-R", "-d"]).arg(format!("@{epoch_s}")))?;
        Ok(format!(
            "cudaway ({version}) unstable; urgency=medium\n\n  * What users notice is in NEWS.md.gz of the package cudaway.\n\n -- {}  {date}\n",
            maintainer()
        ))
    }
}

/// As Debian's own tools find it.
fn maintainer() -> String {
    let said = |name: &str, default: &str| std::env::var(name).unwrap_or_else(|_| default.to_owned());
    format!(
        "{} <{}>",
        said("DEBFULLNAME", "CUDAway developers"),
        said("DEBEMAIL", "cudaway@packages.invalid")
    )
}

/// `2.17`
fn glibc(release: &[u32]) -> String {
    release.iter().map(u32::to_string).collect::<Vec<_>>().join(".")
}

fn write(at: &Path, bytes: &[u8], mode: u32) -> Result<()> {
    fs::write(at, bytes).with_context(|| at.display().to_string())?;
    Ok(fs::set_permissions(at, fs::Permissions::from_mode(mode))?)
}

/// KiB that the files take, and their MD5 sums as dpkg wants them; every folder may be read by all.
fn contents(stage: &Path) -> Result<(u64, String)> {
    let mut names = files(stage, Path::new(""))?;
    names.sort();
    let mut kib = 0;
    let mut sum = Command::new("md5sum");
    for name in &names {
        let data = stage.join(name).symlink_metadata()?;
        kib += data.len().div_ceil(1024).max(1);
        if data.is_file() {
            sum.arg(name);
        }
        for folder in stage.join(name).ancestors().skip(1).take_while(|folder| folder.starts_with(stage)) {
            fs::set_permissions(folder, fs::Permissions::from_mode(0o755))?;
        }
    }
    let sums = setup::said(sum.current_dir(stage))?;
    Ok((kib, sums + "\n"))
}

/// Debian's machine-readable form.
fn copyright() -> String {
    let mit = include_str!("../../../LICENSE-MIT");
    let text: String = mit.lines().fold(String::new(), |mut text, line| {
        let _ = writeln!(text, " {}", if line.trim().is_empty() { "." } else { line });
        text
    });
    format!(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: CUDAway\n\
         Comment: Open-source code of others is linked into the objects. THIRD-PARTY-NOTICES.txt.gz in\n \
         /usr/share/doc/cudaway has each part with its licence, cudaway.cdx.json the same for programs.\n\n\
         Files: *\nCopyright: CUDAway developers\nLicense: Expat or Apache-2.0\n\n\
         License: Expat\n{text}\nLicense: Apache-2.0\n On Debian systems the text of this licence is in\n \
         /usr/share/common-licenses/Apache-2.0.\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_of_a_tree_has_its_place_on_a_debian_system() {
        for (name, wanted) in [
            ("bin/cudaway", Some("usr/lib/cudaway/bin/cudaway")),
            ("lib/preload/libcudart.so.13", Some("usr/lib/cudaway/lib/preload/libcudart.so.13")),
            ("lib/refused/libnccl.so.2", Some("usr/lib/cudaway/lib/refused/libnccl.so.2")),
            ("share/man/man1/cudaway.1", Some("usr/share/man/man1/cudaway.1.gz")),
            ("share/zsh/site-functions/_cudaway", Some("usr/share/zsh/vendor-completions/_cudaway")),
            ("docs/python.md", Some("usr/share/doc/cudaway/docs/python.md")),
            ("tools/cuda-mapper.json", Some("usr/share/doc/cudaway/cuda-mapper.json")),
            ("libcuda.so", None),
        ] {
            assert_eq!(place(name).as_deref(), wanted);
        }
    }

    #[test]
    fn the_cpu_device_is_in_a_package_of_its_own() {
        let owners =
            |place: &str| PACKAGES.iter().filter(|it| (it.has)(place)).map(|it| it.name).collect::<Vec<_>>();
        assert_eq!(owners("usr/lib/cudaway/lib/libcudaway_cpu.so"), ["libcudaway-cpu"]);
        assert_eq!(
            owners("usr/lib/cudaway/lib/glibc-hwcaps/x86-64-v2/libcudaway_cpu.so"),
            ["libcudaway-cpu"]
        );
        assert_eq!(owners("usr/lib/cudaway/lib/libcuda.so.1"), ["cudaway"]);
    }
}
