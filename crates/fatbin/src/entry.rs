//! One entry of a container: its header, and its payload unpacked on request.

use std::io::Read;

use crate::{Error, MAX_IMAGE_BYTES, u16_at, u32_at, u64_at};

const KIND_PTX: u16 = 1;
const KIND_ELF: u16 = 2;
/// Several images whose payloads are one zstd frame (`nvcc -concat`).
const KIND_GROUP: u16 = 0x100;

const FLAG_LZ4: u64 = 0x2000;
const FLAG_ZSTD: u64 = 0x8000;
const FLAG_ARCH_SPECIFIC: u64 = 0x10_0000;
const FLAG_FAMILY_SPECIFIC: u64 = 0x20_0000;

/// Bytes of an entry header that are always there.
const HEADER_BYTES: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Ptx,
    /// A cubin: machine code of one NVIDIA architecture.
    Elf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packing {
    Raw,
    Lz4,
    Zstd,
}

/// One image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub kind: Kind,
    /// Architecture times ten: 75, 90, 120.
    pub arch: u32,
    /// PTX ISA version (major, minor); not meaningful for cubins.
    pub isa: (u16, u16),
    /// Source file name, kept with `-G` and `-lineinfo`.
    pub name: Option<String>,
    /// Assembler options, such as ` -maxrregcount=32`.
    pub options: Option<String>,
    flags: u64,
    packing: Packing,
    unpacked_bytes: u64,
    payload: Vec<u8>,
}

impl Entry {
    /// Built for one architecture (`a`) or family (`f`) only.
    pub fn is_arch_specific(&self) -> bool {
        self.flags & (FLAG_ARCH_SPECIFIC | FLAG_FAMILY_SPECIFIC) != 0
    }

    /// Whether CUDA takes PTX for this architecture on a device of compute capability `capability` (such as 90). Machine
    /// code has to be of the same generation besides.
    pub fn runs_on(&self, capability: u32) -> bool {
        if self.flags & FLAG_ARCH_SPECIFIC != 0 {
            return self.arch == capability;
        }
        let is_other_family = self.flags & FLAG_FAMILY_SPECIFIC != 0 && self.arch / 10 != capability / 10;
        self.arch <= capability && !is_other_family
    }

    /// The image itself.
    pub fn bytes(&self) -> Result<Vec<u8>, Error> {
        unpack(self.packing, &self.payload, self.unpacked_bytes)
    }

    /// PTX text without the zero padding behind it.
    pub fn text(&self) -> Result<String, Error> {
        let mut bytes = self.bytes()?;
        if let Some(end) = bytes.iter().position(|&byte| byte == 0) {
            bytes.truncate(end);
        }
        String::from_utf8(bytes).map_err(|_| Error::Text)
    }
}

/// Reads the entry at `offset` into `entries`; gives the bytes to the next one.
pub(crate) fn read(body: &[u8], offset: usize, entries: &mut Vec<Entry>) -> Result<usize, Error> {
    let truncated = |what| Error::Truncated { what, offset };
    let wrong = |what| Error::Entry { what, offset };
    let rest = &body[offset..];
    let header = rest.get(..HEADER_BYTES).ok_or(truncated("an entry header"))?;
    let header_bytes = word(header, 4) as usize;
    if header_bytes < HEADER_BYTES {
        return Err(wrong("header size below 64"));
    }
    let header = rest.get(..header_bytes).ok_or(truncated("an entry header"))?;
    let padded = usize::try_from(long(header, 8)).map_err(|_| wrong("payload size"))?;
    let next = header_bytes.checked_add(padded).ok_or(wrong("payload size"))?;
    let payload = rest.get(header_bytes..next).ok_or(truncated("a payload"))?;
    let kind = u16_at(header, 0).unwrap_or(0);
    if kind == KIND_GROUP {
        read_group(header, payload, offset, entries)?;
    } else if let Some(entry) = Entry::parse(header, payload, kind).map_err(wrong)? {
        entries.push(entry);
    }
    Ok(next)
}

impl Entry {
    /// `None` for kinds that are neither PTX nor a cubin (newer tools may add some).
    fn parse(header: &[u8], payload: &[u8], kind: u16) -> Result<Option<Entry>, &'static str> {
        let kind = match kind {
            KIND_PTX => Kind::Ptx,
            KIND_ELF => Kind::Elf,
            _ => return Ok(None),
        };
        let flags = long(header, 0x28);
        let compressed_bytes = word(header, 0x10) as usize;
        let (packing, payload) = if compressed_bytes == 0 {
            (Packing::Raw, payload)
        } else {
            let packing = if flags & FLAG_ZSTD != 0 {
                Packing::Zstd
            } else if flags & FLAG_LZ4 != 0 {
                Packing::Lz4
            } else {
                return Err("compressed in an unknown way");
            };
            (packing, payload.get(..compressed_bytes).ok_or("compressed size beyond the payload")?)
        };
        let text = |offset: usize, bytes: usize| {
            header.get(offset..offset.checked_add(bytes)?).map(|text| {
                String::from_utf8_lossy(text.split(|&byte| byte == 0).next().unwrap_or_default()).into_owned()
            })
        };
        let record = word(header, 0x14) as usize;
        let options = (record != 0)
            .then(|| text(u32_at(header, record)? as usize, u32_at(header, record.checked_add(4)?)? as usize))
            .flatten()
            .filter(|options| !options.trim().is_empty());
        let name_bytes = word(header, 0x24) as usize;
        let name = (name_bytes != 0).then(|| text(word(header, 0x20) as usize, name_bytes)).flatten();
        let unpacked_bytes = if packing == Packing::Raw { payload.len() as u64 } else { long(header, 0x38) };
        Ok(Some(Entry {
            kind,
            arch: word(header, 0x1c),
            isa: (u16_at(header, 0x1a).unwrap_or(0), u16_at(header, 0x18).unwrap_or(0)),
            name,
            options,
            flags,
            packing,
            unpacked_bytes,
            payload: payload.to_vec(),
        }))
    }
}

/// A group: member headers at the options offset, their payloads inside one zstd frame.
fn read_group(header: &[u8], payload: &[u8], offset: usize, entries: &mut Vec<Entry>) -> Result<(), Error> {
    let wrong = |what| Error::Entry { what, offset };
    let compressed_bytes = word(header, 0x10) as usize;
    let frame = match compressed_bytes {
        0 => payload,
        bytes => payload.get(..bytes).ok_or(wrong("compressed size beyond the payload"))?,
    };
    let packing = if compressed_bytes == 0 { Packing::Raw } else { Packing::Zstd };
    let unpacked = unpack(packing, frame, long(header, 0x38))?;
    let table = word(header, 0x14) as usize;
    let members = u32_at(header, table).ok_or(wrong("group table beyond the header"))?;
    let mut at = table.checked_add(8).ok_or(wrong("group table beyond the header"))?;
    for _ in 0..members {
        let member = header
            .get(at..)
            .and_then(|rest| rest.get(..HEADER_BYTES))
            .ok_or(wrong("group member beyond the header"))?;
        at += HEADER_BYTES;
        if word(member, 0x14) != 0 {
            at += 16;
        }
        let start = word(member, 4) as usize;
        let bytes = usize::try_from(long(member, 8)).map_err(|_| wrong("group member size"))?;
        let image = start
            .checked_add(bytes)
            .and_then(|end| unpacked.get(start..end))
            .ok_or(wrong("group member beyond the unpacked payload"))?;
        let kind = u16_at(member, 0).unwrap_or(0);
        // Members lie unpacked in the frame; the options record behind a member header is not needed.
        let mut plain = [0; HEADER_BYTES];
        plain.copy_from_slice(member);
        plain[0x10..0x18].fill(0);
        entries.extend(Entry::parse(&plain, image, kind).map_err(wrong)?);
    }
    Ok(())
}

fn unpack(packing: Packing, payload: &[u8], unpacked_bytes: u64) -> Result<Vec<u8>, Error> {
    if packing == Packing::Raw {
        return Ok(payload.to_vec());
    }
    if unpacked_bytes > MAX_IMAGE_BYTES {
        return Err(Error::Compression("entry", format!("unpacked size {unpacked_bytes} is beyond reason")));
    }
    let limit = unpacked_bytes as usize;
    match packing {
        Packing::Raw => unreachable!("answered above"),
        // The block format has at most 255 bytes of output per byte of input.
        Packing::Lz4 => lz4_flex::block::decompress(payload, limit.min(payload.len().saturating_mul(255)))
            .map_err(|error| Error::Compression("LZ4", error.to_string())),
        Packing::Zstd => {
            let failed = |error: &dyn std::fmt::Display| Error::Compression("zstd", error.to_string());
            // Padding may follow the frame.
            let decoder = zstd::Decoder::with_buffer(payload).map_err(|error| failed(&error))?.single_frame();
            // What is announced may be a lie.
            let mut bytes = Vec::with_capacity(limit.min(payload.len().saturating_mul(16)));
            decoder
                .take(unpacked_bytes.saturating_add(1))
                .read_to_end(&mut bytes)
                .map_err(|error| failed(&error))?;
            if bytes.len() > limit {
                return Err(Error::Compression("zstd", format!("more than the {limit} bytes announced")));
            }
            Ok(bytes)
        }
    }
}

fn word(header: &[u8], offset: usize) -> u32 {
    u32_at(header, offset).unwrap_or(0)
}

fn long(header: &[u8], offset: usize) -> u64 {
    u64_at(header, offset).unwrap_or(0)
}
