//! Having the loader find our libraries first, whoever starts a program and however.

use std::fs;
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
    files::write(root, Path::new(cdi::PATH), spec.as_bytes(), 0o644, written)
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
