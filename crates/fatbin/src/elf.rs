//! The little of ELF that device code needs: which names a cubin defines, and the containers inside a host object.

use crate::{CONTAINER_HEADER_BYTES, container_bytes, u16_at, u32_at, u64_at};

/// First bytes of every ELF file.
pub const MAGIC: [u8; 4] = *b"\x7fELF";
/// `e_machine` of a cubin.
pub const EM_CUDA: u16 = 190;

const SHT_SYMTAB: u32 = 2;
const SHT_NOBITS: u32 = 8;
const SYMBOL_BYTES: usize = 24;

struct Section<'a> {
    name: &'a [u8],
    kind: u32,
    link: usize,
    data: &'a [u8],
}

fn string_at(table: &[u8], offset: usize) -> &[u8] {
    let rest = table.get(offset..).unwrap_or_default();
    rest.split(|&byte| byte == 0).next().unwrap_or_default()
}

/// The sections of a 64-bit little-endian ELF file; none when the bytes are not one.
fn sections(file: &[u8]) -> Vec<Section<'_>> {
    if !file.starts_with(&MAGIC) {
        return Vec::new();
    }
    let header = || {
        let start = usize::try_from(u64_at(file, 40)?).ok()?;
        let size = usize::from(u16_at(file, 58)?);
        let n = usize::from(u16_at(file, 60)?);
        let names = usize::from(u16_at(file, 62)?);
        Some((start, size, n, names))
    };
    let Some((start, size, n, names)) = header() else { return Vec::new() };
    let section = |index: usize| -> Option<(usize, Section<'_>)> {
        let at = start.checked_add(index.checked_mul(size)?)?;
        let kind = u32_at(file, at.checked_add(4)?)?;
        let field =
            |offset: usize| u64_at(file, at.checked_add(offset)?).and_then(|it| usize::try_from(it).ok());
        let (offset, len_bytes) = (field(24)?, field(32)?);
        let data = if kind == SHT_NOBITS { &[] } else { file.get(offset..offset.checked_add(len_bytes)?)? };
        let link = u32_at(file, at.checked_add(40)?)? as usize;
        Some((u32_at(file, at)? as usize, Section { name: &[], kind, link, data }))
    };
    let table = section(names).map_or(&[][..], |(_, section)| section.data);
    (0..n)
        .filter_map(|index| {
            let (name, section) = section(index)?;
            Some(Section { name: string_at(table, name), ..section })
        })
        .collect()
}

/// `e_machine`
pub fn machine(file: &[u8]) -> Option<u16> {
    if file.starts_with(&MAGIC) { u16_at(file, 18) } else { None }
}

/// The contents of the section of this name.
pub(crate) fn section<'a>(file: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    sections(file).into_iter().find(|section| section.name == name).map(|section| section.data)
}

/// The kernels, functions and variables that a cubin defines.
pub fn defined_names(cubin: &[u8]) -> Vec<String> {
    let sections = sections(cubin);
    let mut names = Vec::new();
    for table in sections.iter().filter(|section| section.kind == SHT_SYMTAB) {
        let strings = sections.get(table.link).map_or(&[][..], |section| section.data);
        for symbol in table.data.chunks_exact(SYMBOL_BYTES) {
            let is_defined = u16_at(symbol, 6).is_some_and(|section| section != 0);
            let name = string_at(strings, u32_at(symbol, 0).unwrap_or(0) as usize);
            if is_defined && !name.is_empty() {
                names.push(String::from_utf8_lossy(name).into_owned());
            }
        }
    }
    names
}

/// The containers that nvcc put into a host object: one per translation unit.
pub fn containers(object: &[u8]) -> Vec<&[u8]> {
    units(object).into_iter().flatten().collect()
}

/// The same, those together that are one program: with `-rdc` all translation units are, else each is one by itself.
pub fn units(object: &[u8]) -> Vec<Vec<&[u8]>> {
    let sections = sections(object);
    let of = |name: &[u8]| -> Vec<&[u8]> {
        sections.iter().filter(|section| section.name == name).flat_map(|section| row(section.data)).collect()
    };
    let linked = of(b"__nv_relfatbin");
    let mut units: Vec<_> = of(b".nv_fatbin").into_iter().map(|container| vec![container]).collect();
    if !linked.is_empty() {
        units.push(linked);
    }
    units
}

/// Containers that lie in a row.
fn row(mut rest: &[u8]) -> Vec<&[u8]> {
    let mut found = Vec::new();
    while let Some(header) = rest.first_chunk::<CONTAINER_HEADER_BYTES>() {
        // Containers are aligned to eight bytes; what lies between them is zero.
        let total = container_bytes(header).unwrap_or(0);
        match rest.get(..total) {
            Some(container) if total > 0 => {
                found.push(container);
                rest = &rest[total..];
            }
            _ => rest = &rest[8..],
        }
    }
    found
}
