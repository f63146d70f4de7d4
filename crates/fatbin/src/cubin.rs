//! A cubin of ours: the form of one, an ELF file for an NVIDIA architecture, with an image of ours in it where NVIDIA's have
//! machine code. What makes cubins here (nvJitLink, `cuLink*`) gives these, so that NVIDIA's tools, and programs that look at the
//! first bytes, take them for what they are called: nvFatbin packs them.

use crate::elf::{self, EM_CUDA};
use crate::{Entry, Error, Kind, MAX_IMAGE_BYTES, u16_at, u32_at, u64_at};

/// The section that holds the image.
const SECTION: &[u8] = b".cudaway";
/// Both sections' names, as the last of them holds them.
const NAMES: &[u8] = b"\0.cudaway\0.shstrtab\0";

pub const HEADER_BYTES: usize = 64;
const SECTION_HEADER_BYTES: usize = 64;

/// `EI_OSABI`, `EI_ABIVERSION` and the low bits of `e_flags` as CUDA 13 writes them.
const OS_ABI: u8 = 0x41;
const ABI_VERSION: u8 = 8;
const FLAGS: u32 = 0x0600_0002;

/// A cubin for an architecture (90) that holds `image`.
pub fn wrap(arch: u32, image: &[u8]) -> Vec<u8> {
    let names_at = HEADER_BYTES + image.len();
    let sections_at = (names_at + NAMES.len()).next_multiple_of(8);
    let mut file = Vec::with_capacity(sections_at + 3 * SECTION_HEADER_BYTES);
    file.extend(elf::MAGIC);
    // 64 bits, little-endian, version 1.
    file.extend([2, 1, 1, OS_ABI, ABI_VERSION, 0, 0, 0, 0, 0, 0, 0]);
    let half = |file: &mut Vec<u8>, numbers: &[u16]| {
        file.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    };
    let word = |file: &mut Vec<u8>, number: u32| file.extend(number.to_le_bytes());
    let long = |file: &mut Vec<u8>, numbers: &[u64]| {
        file.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    };
    const ET_EXEC: u16 = 2;
    half(&mut file, &[ET_EXEC, EM_CUDA]);
    word(&mut file, 1);
    // No entry point, no program headers.
    long(&mut file, &[0, 0, sections_at as u64]);
    word(&mut file, FLAGS | arch << 8);
    half(&mut file, &[HEADER_BYTES as u16, 0, 0, SECTION_HEADER_BYTES as u16, 3, 2]);
    file.extend(image);
    file.extend(NAMES);
    file.resize(sections_at + SECTION_HEADER_BYTES, 0);
    const SHT_PROGBITS: u32 = 1;
    const SHT_STRTAB: u32 = 3;
    for (name, kind, at, len_bytes) in [
        (1, SHT_PROGBITS, HEADER_BYTES, image.len()),
        (2 + SECTION.len() as u32, SHT_STRTAB, names_at, NAMES.len()),
    ] {
        word(&mut file, name);
        word(&mut file, kind);
        long(&mut file, &[0, 0, at as u64, len_bytes as u64, 0, 1, 0]);
    }
    file
}

/// Bytes of the cubin that begins with `header`, as far as its sections' headers reach, which are the last of [`wrap`]'s.
/// None for what is no cubin, or has no sensible size.
pub fn len_bytes(header: &[u8; HEADER_BYTES]) -> Option<usize> {
    if elf::machine(header) != Some(EM_CUDA) {
        return None;
    }
    let headers = usize::from(u16_at(header, 58)?) * usize::from(u16_at(header, 60)?);
    let end = usize::try_from(u64_at(header, 40)?).ok()?.checked_add(headers)?;
    (end as u64 <= MAX_IMAGE_BYTES).then_some(end)
}

/// The image in a cubin of [`wrap`]'s; None for any other file.
pub fn unwrap(file: &[u8]) -> Option<&[u8]> {
    let len_bytes = len_bytes(file.first_chunk()?)?;
    elf::section(file.get(..len_bytes)?, SECTION)
}

/// Of the cubins of ours in a container the image to take for a device of compute capability `capability`: the highest
/// architecture not above it.
pub fn choose(entries: &[Entry], capability: u32) -> Result<Option<Vec<u8>>, Error> {
    let mut cubins: Vec<_> =
        entries.iter().filter(|entry| entry.kind == Kind::Elf && entry.arch <= capability).collect();
    cubins.sort_by_key(|entry| core::cmp::Reverse(entry.arch));
    for entry in cubins {
        if let Some(image) = unwrap(&entry.bytes()?) {
            return Ok(Some(image.to_vec()));
        }
    }
    Ok(None)
}

/// The architecture that a cubin's header names.
pub fn arch(header: &[u8]) -> Option<u32> {
    let flags = u32_at(header, 48)?;
    // Up to CUDA 12 it is the lowest byte, from 13 on the second.
    Some(if *header.get(8)? >= ABI_VERSION { (flags >> 8) & 0xff } else { flags & 0xff })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrapped_comes_back() {
        for image in [&b""[..], b"x", &[7; 1000]] {
            let cubin = wrap(90, image);
            assert_eq!(unwrap(&cubin), Some(image));
            assert_eq!(len_bytes(cubin.first_chunk().unwrap()), Some(cubin.len()));
            assert_eq!(arch(&cubin), Some(90));
        }
    }

    #[test]
    fn every_truncation_and_any_other_file_is_told() {
        let cubin = wrap(90, b"an image");
        for end in 0..cubin.len() {
            assert_eq!(unwrap(&cubin[..end]), None, "{end} bytes were accepted");
        }
        let mut other = cubin.clone();
        other[18] = 62;
        assert_eq!(unwrap(&other), None, "for x86-64");
        let mut large = cubin;
        large[40..48].copy_from_slice(&u64::MAX.to_le_bytes());
        assert_eq!(len_bytes(large.first_chunk().unwrap()), None);
        assert_eq!(unwrap(&large), None);
    }
}
