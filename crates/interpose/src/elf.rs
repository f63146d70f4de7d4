//! Reading an ELF file that is mapped read-only: sections, symbols, the dynamic section.
//! The rule: no length or offset of the file is trusted, nothing allocates, nothing panics. What cannot be read is `None`.

pub const SHT_SYMTAB: u32 = 2;
pub const SHT_DYNAMIC: u32 = 6;
pub const SHT_NOBITS: u32 = 8;
pub const SHT_DYNSYM: u32 = 11;

const STB_LOCAL: u8 = 0;
const STV_INTERNAL: u8 = 1;
const STV_HIDDEN: u8 = 2;
pub const STT_OBJECT: u8 = 1;
pub const STT_FUNC: u8 = 2;
pub const SHN_UNDEF: u16 = 0;

pub const PT_LOAD: u32 = 1;
pub const PF_X: u32 = 1;
pub const PF_W: u32 = 2;
pub const PF_R: u32 = 4;

const DT_NULL: u64 = 0;
const DT_NEEDED: u64 = 1;
const DT_SONAME: u64 = 14;

/// A 64-bit little-endian x86-64 ELF file.
#[derive(Clone, Copy)]
pub struct File<'a> {
    bytes: &'a [u8],
    sections_at: usize,
    n_sections: usize,
    section_names: Option<&'a [u8]>,
}

#[derive(Clone, Copy)]
pub struct Section<'a> {
    pub name: &'a [u8],
    pub kind: u32,
    pub bytes: &'a [u8],
    pub link: u32,
}

#[derive(Clone, Copy)]
pub struct Segment {
    pub kind: u32,
    pub flags: u32,
    pub offset: u64,
    pub address: u64,
    pub file_bytes: u64,
    pub memory_bytes: u64,
}

#[derive(Clone, Copy)]
pub struct Symbol<'a> {
    pub name: &'a [u8],
    /// No other object can bind to it. (A link of a position-independent file makes hidden symbols local, another one does not.)
    pub is_private: bool,
    pub kind: u8,
    pub section: u16,
    pub value: u64,
    pub size: u64,
}

impl<'a> File<'a> {
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        const IDENT: [u8; 6] = [0x7f, b'E', b'L', b'F', 2, 1];
        const EM_X86_64: u16 = 62;
        if bytes.get(..6)? != IDENT || u16_at(bytes, 18)? != EM_X86_64 {
            return None;
        }
        let mut file = File {
            bytes,
            sections_at: usize::try_from(u64_at(bytes, 0x28)?).ok()?,
            n_sections: usize::from(u16_at(bytes, 0x3c)?),
            section_names: None,
        };
        if usize::from(u16_at(bytes, 0x3a)?) != SECTION_BYTES {
            // Stripped of its section table ("sstrip"): still a valid program, with nothing for us to read.
            file.n_sections = 0;
        }
        let names_index = usize::from(u16_at(bytes, 0x3e)?);
        file.section_names = file.raw_section(names_index).map(|section| section.bytes);
        Some(file)
    }

    pub fn sections(self) -> impl Iterator<Item = Section<'a>> {
        (0..self.n_sections).filter_map(move |index| self.section(index))
    }

    pub fn section_named(self, name: &[u8]) -> Option<Section<'a>> {
        self.sections().find(|section| section.name == name)
    }

    pub fn section_of_kind(self, kind: u32) -> Option<Section<'a>> {
        self.sections().find(|section| section.kind == kind)
    }

    fn section(self, index: usize) -> Option<Section<'a>> {
        let mut section = self.raw_section(index)?;
        let name_at = u32_at(self.bytes, self.sections_at + index * SECTION_BYTES)?;
        section.name = self.section_names.and_then(|names| c_string(names, name_at)).unwrap_or(b"");
        Some(section)
    }

    fn raw_section(self, index: usize) -> Option<Section<'a>> {
        if index >= self.n_sections {
            return None;
        }
        let at = self.sections_at.checked_add(index.checked_mul(SECTION_BYTES)?)?;
        let kind = u32_at(self.bytes, at.checked_add(4)?)?;
        let offset = usize::try_from(u64_at(self.bytes, at + 0x18)?).ok()?;
        let len_bytes = usize::try_from(u64_at(self.bytes, at + 0x20)?).ok()?;
        let bytes = match kind {
            SHT_NOBITS => &[],
            _ => self.bytes.get(offset..offset.checked_add(len_bytes)?)?,
        };
        Some(Section { name: b"", kind, bytes, link: u32_at(self.bytes, at + 0x28)? })
    }

    /// The symbols of `.symtab` (`SHT_SYMTAB`) or `.dynsym` (`SHT_DYNSYM`), with their string table.
    pub fn symbols(self, table: u32) -> Option<Symbols<'a>> {
        let section = self.section_of_kind(table)?;
        let strings = self.raw_section(usize::try_from(section.link).ok()?)?.bytes;
        Some(Symbols { entries: section.bytes, strings })
    }

    pub fn segments(self) -> impl Iterator<Item = Segment> {
        let at = u64_at(self.bytes, 0x20).and_then(|at| usize::try_from(at).ok()).unwrap_or(usize::MAX);
        let n_segments = usize::from(u16_at(self.bytes, 0x38).unwrap_or(0));
        (0..n_segments).filter_map(move |index| {
            let at = at.checked_add(index * SEGMENT_BYTES)?;
            Segment::parse(self.bytes.get(at..at.checked_add(SEGMENT_BYTES)?)?)
        })
    }

    pub fn bytes_at(self, offset: u64, len_bytes: u64) -> Option<&'a [u8]> {
        let offset = usize::try_from(offset).ok()?;
        self.bytes.get(offset..offset.checked_add(usize::try_from(len_bytes).ok()?)?)
    }

    /// Code at one of the file's addresses, where a segment that is executed has all of it.
    pub fn code_at(self, address: u64, len_bytes: u64) -> Option<&'a [u8]> {
        let segment = self.segments().find(|segment| {
            segment.kind == PT_LOAD
                && segment.flags & PF_X != 0
                && segment.address <= address
                && address.saturating_add(len_bytes) <= segment.address.saturating_add(segment.file_bytes)
        })?;
        self.bytes_at(segment.offset.checked_add(address - segment.address)?, len_bytes)
    }

    /// `DT_NEEDED` names.
    pub fn needed(self) -> impl Iterator<Item = &'a [u8]> {
        self.dynamic_strings(DT_NEEDED)
    }

    pub fn soname(self) -> Option<&'a [u8]> {
        self.dynamic_strings(DT_SONAME).next()
    }

    fn dynamic_strings(self, tag: u64) -> impl Iterator<Item = &'a [u8]> {
        let dynamic = self.section_of_kind(SHT_DYNAMIC);
        let strings = dynamic
            .and_then(|dynamic| self.raw_section(usize::try_from(dynamic.link).ok()?))
            .map_or(&[][..], |section| section.bytes);
        let entries = dynamic.map_or(&[][..], |section| section.bytes);
        entries
            .chunks_exact(16)
            .map_while(|entry| Some((u64_at(entry, 0)?, u64_at(entry, 8)?)))
            .take_while(|&(tag, _)| tag != DT_NULL)
            .filter(move |&(found, _)| found == tag)
            .filter_map(move |(_, value)| c_string(strings, u32::try_from(value).ok()?))
    }
}

impl Segment {
    /// One program header, from the file or from memory (the layout is the same).
    pub fn parse(header: &[u8]) -> Option<Self> {
        Some(Segment {
            kind: u32_at(header, 0)?,
            flags: u32_at(header, 4)?,
            offset: u64_at(header, 8)?,
            address: u64_at(header, 0x10)?,
            file_bytes: u64_at(header, 0x20)?,
            memory_bytes: u64_at(header, 0x28)?,
        })
    }
}

#[derive(Clone, Copy)]
pub struct Symbols<'a> {
    entries: &'a [u8],
    pub strings: &'a [u8],
}

impl<'a> Symbols<'a> {
    pub fn iter(self) -> impl Iterator<Item = Symbol<'a>> {
        self.entries.chunks_exact(SYMBOL_BYTES).filter_map(move |entry| {
            let info = *entry.get(4)?;
            let visibility = *entry.get(5)? & 3;
            Some(Symbol {
                name: c_string(self.strings, u32_at(entry, 0)?)?,
                is_private: info >> 4 == STB_LOCAL || matches!(visibility, STV_INTERNAL | STV_HIDDEN),
                kind: info & 0xf,
                section: u16_at(entry, 6)?,
                value: u64_at(entry, 8)?,
                size: u64_at(entry, 16)?,
            })
        })
    }
}

const SECTION_BYTES: usize = 64;
const SEGMENT_BYTES: usize = 56;
const SYMBOL_BYTES: usize = 24;

pub fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Whether these bytes are among those.
pub fn mentions(bytes: &[u8], needle: &[u8]) -> bool {
    // SAFETY: both ranges are slices.
    let found =
        unsafe { libc::memmem(bytes.as_ptr().cast(), bytes.len(), needle.as_ptr().cast(), needle.len()) };
    !found.is_null()
}

fn c_string(strings: &[u8], at: u32) -> Option<&[u8]> {
    let tail = strings.get(usize::try_from(at).ok()?..)?;
    tail.split(|&byte| byte == 0).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_this_test_program() {
        let bytes = std::fs::read("/proc/self/exe").unwrap();
        let file = File::parse(&bytes).unwrap();
        assert!(file.needed().any(|name| name == b"libc.so.6"));
        assert!(file.section_named(b".text").is_some());
        assert!(file.segments().any(|segment| segment.kind == PT_LOAD && segment.flags & PF_X != 0));
        assert!(
            file.symbols(SHT_SYMTAB)
                .unwrap()
                .iter()
                .any(|symbol| symbol.name == b"main" && symbol.kind == STT_FUNC)
        );
    }

    #[test]
    fn a_truncated_file_gives_none_and_no_panic() {
        let bytes = std::fs::read("/proc/self/exe").unwrap();
        for len_bytes in (0..4096).chain((4096..bytes.len()).step_by(50_021)) {
            let Some(file) = File::parse(&bytes[..len_bytes]) else { continue };
            let _ = file.needed().count() + file.sections().count() + file.segments().count();
            let _ = file.symbols(SHT_SYMTAB).map(|symbols| symbols.iter().count());
        }
    }

    #[test]
    fn a_header_of_noise_gives_none_and_no_panic() {
        let mut bytes = std::fs::read("/proc/self/exe").unwrap();
        let mut seed = 7u64;
        for _ in 0..2000 {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let at = 16 + usize::try_from(seed >> 33).unwrap() % 48;
            let old = bytes[at];
            bytes[at] = u8::try_from(seed & 0xff).unwrap();
            if let Some(file) = File::parse(&bytes) {
                let _ = file.needed().count() + file.sections().count() + file.segments().count();
                let _ = file.symbols(SHT_SYMTAB).map(|symbols| symbols.iter().take(1000).count());
            }
            bytes[at] = old;
        }
    }
}
