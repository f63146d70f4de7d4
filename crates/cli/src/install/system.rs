//! Having the loader find our libraries first, whoever starts a program and however.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::cdi;
use super::files::{self, Root};
use super::manifest::Manifest;

/// Sorted first: of two folders with a library of the same SONAME the one that is read first wins.
const CONF: &str = "/etc/ld.so.conf.d/00-cudaway.conf";

/// Libraries for a processor's features win over all that are for any processor, whatever folder is read first (glibc 2.33
/// and newer; x86-64-v2 is every x86 processor since 2009).
const HWCAPS: &str = "lib/glibc-hwcaps/x86-64-v2";

/// Where a system's own programs, manual pages and completions lie, which no package of the system touches.
const LOCAL: &str = "/usr/local";

pub fn add(root: &Root, prefix: &Path, written: &mut Manifest) -> Result<()> {
    let lib = prefix.join("lib");
    // All of them: our libraries look for each other in the folder that they were loaded from.
    for entry in fs::read_dir(root.at(&lib))? {
        let entry = entry?;
        if !entry.file_type()?.is_dir() && !entry.file_name().to_string_lossy().starts_with('.') {
            let target = Path::new("../..").join(entry.file_name());
            files::link(root, &prefix.join(HWCAPS).join(entry.file_name()), &target, written)?;
        }
    }
    let conf = format!(
        "# Written by cudaway install; cudaway uninstall --prefix {} removes it.\n{}\n",
        prefix.display(),
        lib.display()
    );
    files::write(root, Path::new(CONF), conf.as_bytes(), 0o644, written)?;
    let spec = cdi::spec(root, prefix)?;
    files::write(root, Path::new(cdi::PATH), spec.as_bytes(), 0o644, written)?;
    if prefix != Path::new(LOCAL) {
        link_below(Path::new("bin/cudaway"), root, prefix, written)?;
        link_below(Path::new("share"), root, prefix, written)?;
    }
    Ok(())
}

/// Links from /usr/local to what is installed below the prefix at that place. What is another's there is left, and named.
fn link_below(below: &Path, root: &Root, prefix: &Path, written: &mut Manifest) -> Result<()> {
    let at = root.at(&prefix.join(below));
    if at.is_dir() {
        for entry in fs::read_dir(&at)? {
            link_below(&below.join(entry?.file_name()), root, prefix, written)?;
        }
        return Ok(());
    }
    if !at.exists() {
        return Ok(());
    }
    let (link, target) = (Path::new(LOCAL).join(below), prefix.join(below));
    match fs::read_link(root.at(&link)) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Ok(found) if found == target => {}
        _ => {
            println!("left, it is another's: {}", root.at(&link).display());
            return Ok(());
        }
    }
    files::link(root, &link, &target, written)
}

/// `ldconfig`: the loader reads its cache and not the folders.
pub fn refresh_cache(root: &Root) -> Result<()> {
    let mut ldconfig = Command::new("/sbin/ldconfig");
    if root.0 != Path::new("/") {
        ldconfig.arg("-r").arg(&root.0);
    }
    let ended = ldconfig.output().context("could not start /sbin/ldconfig")?;
    ensure!(ended.status.success(), "ldconfig: {}", String::from_utf8_lossy(&ended.stderr).trim());
    Ok(())
}
