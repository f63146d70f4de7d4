//! What the loader reads of a library.

use std::fs::File;
use std::path::Path;

use object::elf::{self, FileHeader64};
use object::read::elf::{Dyn as _, FileHeader as _, SectionHeader as _};
use object::read::{ReadCache, ReadRef};
use object::{Endianness, FileKind};

/// Why a file cannot be one of our libraries.
#[derive(Debug, PartialEq, Eq)]
pub enum Unfit {
    Unreadable(String),
    NotElf,
    /// 32 bits, or another processor.
    OtherMachine,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Library {
    pub soname: Option<String>,
    /// DT_RPATH, which comes before LD_LIBRARY_PATH; DT_RUNPATH, which comes behind, takes its effect away.
    pub rpath: Option<String>,
    /// Version nodes that it defines.
    pub nodes: Vec<String>,
    /// The newest glibc that it asks for.
    pub glibc: (u32, u32),
    pub has_device_code: bool,
    pub has_symbols: bool,
}

pub fn read(path: &Path) -> Result<Library, Unfit> {
    let file = File::open(path).map_err(|error| Unfit::Unreadable(error.to_string()))?;
    parse(&ReadCache::new(file))
}

pub fn parse<'data>(data: impl ReadRef<'data>) -> Result<Library, Unfit> {
    match FileKind::parse(data) {
        Ok(FileKind::Elf64) => {}
        Ok(FileKind::Elf32) => return Err(Unfit::OtherMachine),
        _ => return Err(Unfit::NotElf),
    }
    sections(data).ok_or(Unfit::NotElf)?.ok_or(Unfit::OtherMachine)
}

fn sections<'data>(data: impl ReadRef<'data>) -> Option<Option<Library>> {
    let header = FileHeader64::<Endianness>::parse(data).ok()?;
    let endian = header.endian().ok()?;
    if header.e_machine(endian) != elf::EM_X86_64 {
        return Some(None);
    }
    let sections = header.sections(endian, data).ok()?;
    let mut library = Library {
        has_device_code: sections.section_by_name(endian, b".nv_fatbin").is_some(),
        has_symbols: sections.iter().any(|section| section.sh_type(endian) == elf::SHT_SYMTAB),
        ..Library::default()
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if let Ok(Some((entries, link))) = sections.dynamic(endian, data) {
        let strings = sections.strings(endian, data, link).ok()?;
        let string = |tag| {
            let entry = entries.iter().find(|entry| entry.tag(endian) == tag)?;
            entry.string(endian, strings).ok().map(text)
        };
        library.soname = string(elf::DT_SONAME);
        library.rpath = string(elf::DT_RPATH).filter(|_| string(elf::DT_RUNPATH).is_none());
    }
    if let Ok(Some((mut definitions, link))) = sections.gnu_verdef(endian, data) {
        let strings = sections.strings(endian, data, link).ok()?;
        while let Ok(Some((definition, mut names))) = definitions.next() {
            // The base is no node: it has the SONAME.
            if definition.vd_flags.get(endian).contains(elf::VER_FLG_BASE) {
                continue;
            }
            // The first is the node's own, others are those that it goes on from.
            if let Ok(Some(name)) = names.next() {
                library.nodes.extend(name.name(endian, strings).ok().map(text));
            }
        }
    }
    if let Ok(Some((mut needs, link))) = sections.gnu_verneed(endian, data) {
        let strings = sections.strings(endian, data, link).ok()?;
        while let Ok(Some((_, mut names))) = needs.next() {
            while let Ok(Some(name)) = names.next() {
                let version = name.name(endian, strings).ok().map(text).and_then(|name| glibc(&name));
                library.glibc = library.glibc.max(version.unwrap_or_default());
            }
        }
    }
    Some(Some(library))
}

/// `GLIBC_2.34` → (2, 34); also `2.36` as glibc calls itself.
pub fn glibc(name: &str) -> Option<(u32, u32)> {
    let name = name.strip_prefix("GLIBC_").unwrap_or(name);
    let (major, rest) = name.split_once('.')?;
    Some((major.parse().ok()?, rest.split('.').next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_test_is_read_as_the_loader_does() {
        let own = read(&std::env::current_exe().unwrap()).unwrap();
        assert!(own.has_symbols && own.soname.is_none() && !own.has_device_code);
        assert!(own.glibc >= (2, 2), "{:?}", own.glibc);
        assert_eq!(parse(b"#!/bin/sh".as_slice()), Err(Unfit::NotElf));
    }

    #[test]
    fn a_version_is_a_pair() {
        assert_eq!(glibc("GLIBC_2.2.5"), Some((2, 2)));
        assert_eq!(glibc("2.36"), Some((2, 36)));
        assert_eq!(glibc("GLIBC_PRIVATE"), None);
    }
}
