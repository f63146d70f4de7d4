//! `cudaway --version`: which build this is, and each library's, from the ELF note that xtask/src/build/note.rs writes.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use object::elf::FileHeader64;
use object::endian::Endianness;
use object::read::elf::{FileHeader as _, SectionHeader as _};

use crate::own;

const OWNER: &[u8] = b"CUDAway";

pub fn run(is_verbose: bool) -> Result<()> {
    if is_verbose {
        print!("{}", verbose(&own::lib(None)?)?);
    } else {
        println!("cudaway {}", env!("CARGO_PKG_VERSION"));
    }
    Ok(())
}

/// This program and each library in the folder and below it, with what its note says.
pub fn verbose(lib: &Path) -> Result<String> {
    let own = std::env::current_exe().context("where this program lies")?;
    let mut files =
        files(&own::files(lib)).with_context(|| format!("our libraries, in {}", lib.display()))?;
    files.sort();
    let mut text = format!("cudaway {}\n", env!("CARGO_PKG_VERSION"));
    for file in std::iter::once(&own).chain(files.iter().filter(|file| !file.is_symlink())) {
        describe(file, &mut text)?;
    }
    Ok(text)
}

fn files(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        match entry.file_type()? {
            kind if kind.is_dir() => found.extend(files(&entry.path())?),
            _ => found.push(entry.path()),
        }
    }
    Ok(found)
}

fn describe(file: &Path, text: &mut String) -> Result<()> {
    let bytes = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    writeln!(text, "\n{}", file.display())?;
    match note(&bytes) {
        Some(note) => note.lines().try_for_each(|line| writeln!(text, "  {line}"))?,
        None => writeln!(text, "  no note of CUDAway's: not one of our objects")?,
    }
    Ok(())
}

/// The text of our note in an ELF file.
fn note(bytes: &[u8]) -> Option<String> {
    let header = FileHeader64::<Endianness>::parse(bytes).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.sections(endian, bytes).ok()?;
    sections.iter().find_map(|section| {
        let mut notes = section.notes(endian, bytes).ok()??;
        while let Ok(Some(note)) = notes.next() {
            if note.name() == OWNER {
                return String::from_utf8(note.desc().to_vec()).ok();
            }
        }
        None
    })
}
