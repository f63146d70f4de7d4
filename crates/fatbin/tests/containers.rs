//! Containers written here by the measured layout, in every form, and then damaged at random.

use fatbin::{CONTAINER_MAGIC, Entry, Error, Kind, WRAPPER_MAGIC, Wrapper, choose_ptx, parse};
use proptest::prelude::*;

const PTX: &str = ".version 9.0\n.target sm_75\n.address_size 64\n";
const FLAG_64BIT: u64 = 0x1;
const FLAG_LZ4: u64 = 0x2000;
const FLAG_ZSTD: u64 = 0x8000;
const FLAG_ARCH_SPECIFIC: u64 = 0x10_0000;
const FLAG_FAMILY_SPECIFIC: u64 = 0x20_0000;

struct Image<'a> {
    kind: u16,
    arch: u32,
    flags: u64,
    options: &'a str,
    /// Payload as stored, and its size once unpacked; raw when `None`.
    stored: &'a [u8],
    unpacked: Option<usize>,
}

fn put(header: &mut [u8], offset: usize, bytes: &[u8]) {
    header[offset..offset + bytes.len()].copy_from_slice(bytes);
}

fn entry(image: &Image) -> Vec<u8> {
    let mut header = vec![0; 64];
    if !image.options.is_empty() {
        put(&mut header, 0x14, &64u32.to_le_bytes());
        header.extend(72u32.to_le_bytes());
        header.extend((image.options.len() as u32).to_le_bytes());
        header.extend(image.options.as_bytes());
        header.resize(header.len().next_multiple_of(8), 0);
    }
    let header_bytes = header.len() as u32;
    let padded = image.stored.len().next_multiple_of(8);
    put(&mut header, 0, &image.kind.to_le_bytes());
    put(&mut header, 2, &0x0101u16.to_le_bytes());
    put(&mut header, 4, &header_bytes.to_le_bytes());
    put(&mut header, 8, &(padded as u64).to_le_bytes());
    if let Some(unpacked) = image.unpacked {
        put(&mut header, 0x10, &(image.stored.len() as u32).to_le_bytes());
        put(&mut header, 0x38, &(unpacked as u64).to_le_bytes());
    }
    put(&mut header, 0x1a, &9u16.to_le_bytes());
    put(&mut header, 0x1c, &image.arch.to_le_bytes());
    put(&mut header, 0x28, &(image.flags | FLAG_64BIT).to_le_bytes());
    header.extend(image.stored);
    header.resize(header_bytes as usize + padded, 0);
    header
}

fn container(entries: &[Vec<u8>]) -> Vec<u8> {
    let body = entries.concat();
    let mut bytes = CONTAINER_MAGIC.to_le_bytes().to_vec();
    bytes.extend(1u16.to_le_bytes());
    bytes.extend(16u16.to_le_bytes());
    bytes.extend((body.len() as u64).to_le_bytes());
    bytes.extend(body);
    bytes
}

fn raw(kind: u16, arch: u32) -> Vec<u8> {
    entry(&Image { kind, arch, flags: 0, options: "", stored: PTX.as_bytes(), unpacked: None })
}

/// A zstd frame with one raw block: enough of RFC 8878 to be written by hand.
fn zstd_frame(content: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0b1010_0000];
    frame.extend((content.len() as u32).to_le_bytes());
    frame.extend(&(((content.len() as u32) << 3) | 1).to_le_bytes()[..3]);
    frame.extend(content);
    frame
}

fn group(members: &[(u16, u32, &str)]) -> Vec<u8> {
    let blob: String = members.iter().map(|(_, _, text)| *text).collect();
    let frame = zstd_frame(blob.as_bytes());
    let mut header = vec![0; 64];
    header.extend((members.len() as u32).to_le_bytes());
    header.extend((64 * members.len() as u32).to_le_bytes());
    let mut start = 0u32;
    for (kind, arch, text) in members {
        let mut member = vec![0; 64];
        put(&mut member, 0, &kind.to_le_bytes());
        put(&mut member, 4, &start.to_le_bytes());
        put(&mut member, 8, &(text.len() as u64).to_le_bytes());
        put(&mut member, 0x1c, &arch.to_le_bytes());
        header.extend(member);
        start += text.len() as u32;
    }
    let header_bytes = header.len() as u32;
    let padded = frame.len().next_multiple_of(8);
    put(&mut header, 0, &0x100u16.to_le_bytes());
    put(&mut header, 4, &header_bytes.to_le_bytes());
    put(&mut header, 8, &(padded as u64).to_le_bytes());
    put(&mut header, 0x10, &(frame.len() as u32).to_le_bytes());
    put(&mut header, 0x14, &64u32.to_le_bytes());
    put(&mut header, 0x28, &FLAG_ZSTD.to_le_bytes());
    put(&mut header, 0x38, &(blob.len() as u64).to_le_bytes());
    header.extend(frame);
    header.resize(header_bytes as usize + padded, 0);
    header
}

fn every_form() -> Vec<u8> {
    let lz4 = lz4_flex::block::compress(PTX.as_bytes());
    let zstd = zstd_frame(PTX.as_bytes());
    container(&[
        raw(1, 52),
        entry(&Image {
            kind: 1,
            arch: 60,
            flags: FLAG_LZ4,
            options: "",
            stored: &lz4,
            unpacked: Some(PTX.len()),
        }),
        entry(&Image {
            kind: 1,
            arch: 70,
            flags: FLAG_ZSTD,
            options: " -maxrregcount=32",
            stored: &zstd,
            unpacked: Some(PTX.len()),
        }),
        raw(2, 80),
        raw(0x40, 99),
        group(&[(1, 86, PTX), (2, 90, "ELF"), (1, 89, PTX)]),
    ])
}

#[test]
fn every_container_form_gives_its_text() {
    let entries = parse(&every_form()).unwrap();
    let seen: Vec<_> = entries.iter().map(|entry| (entry.kind, entry.arch)).collect();
    use Kind::{Elf, Ptx};
    assert_eq!(seen, [(Ptx, 52), (Ptx, 60), (Ptx, 70), (Elf, 80), (Ptx, 86), (Elf, 90), (Ptx, 89)]);
    for entry in entries.iter().filter(|entry| entry.kind == Ptx) {
        assert_eq!(entry.text().unwrap(), PTX, "sm_{}", entry.arch);
    }
    assert_eq!(entries[2].options.as_deref(), Some(" -maxrregcount=32"));
}

#[test]
fn an_empty_container_is_legal() {
    assert_eq!(parse(&container(&[])).unwrap(), []);
}

#[test]
fn the_highest_architecture_not_above_the_device_is_taken_else_none() {
    let entries = parse(&container(&[raw(1, 52), raw(2, 75), raw(1, 75), raw(1, 100), raw(1, 120)])).unwrap();
    let arch = |capability| choose_ptx(&entries, capability).map(|entry: &Entry| entry.arch);
    assert_eq!(arch(90), Some(75));
    assert_eq!(arch(75), Some(75));
    assert_eq!(arch(61), Some(52));
    assert!(choose_ptx(&entries[3..], 90).is_none(), "PTX for a newer device");
    // Machine code that CUDA would run has PTX for newer devices beside it: of the same source.
    let fitting = parse(&container(&[raw(2, 86), raw(1, 120), raw(1, 100)])).unwrap();
    let arch = |capability| choose_ptx(&fitting, capability).map(|entry| entry.arch);
    assert_eq!([86, 89, 80, 90, 75].map(arch), [Some(100), Some(100), None, None, None]);
    assert!(choose_ptx(&entries[1..2], 90).is_none(), "a cubin is not PTX");
}

#[test]
fn ptx_for_one_architecture_or_family_runs_there_alone_and_after_portable_ptx() {
    let specific = |arch, flags| {
        entry(&Image { kind: 1, arch, flags, options: "", stored: PTX.as_bytes(), unpacked: None })
    };
    let family = parse(&container(&[specific(100, FLAG_FAMILY_SPECIFIC)])).unwrap();
    assert_eq!([90, 100, 103, 120].map(|it| choose_ptx(&family, it).is_some()), [false, true, true, false]);
    let specific = specific(90, FLAG_ARCH_SPECIFIC);
    let entries = parse(&container(&[specific, raw(1, 80)])).unwrap();
    assert_eq!(choose_ptx(&entries, 90).unwrap().arch, 80);
    assert_eq!(choose_ptx(&entries[..1], 90).unwrap().arch, 90);
    assert!(choose_ptx(&entries[..1], 100).is_none());
}

#[test]
fn a_size_that_lies_is_an_error_not_an_allocation() {
    let zstd = zstd_frame(PTX.as_bytes());
    let lie = |unpacked| {
        let image = Image {
            kind: 1,
            arch: 70,
            flags: FLAG_ZSTD,
            options: "",
            stored: &zstd,
            unpacked: Some(unpacked),
        };
        parse(&container(&[entry(&image)])).unwrap()[0].bytes()
    };
    assert!(matches!(lie(PTX.len() - 1), Err(Error::Compression(..))));
    assert!(matches!(lie(1 << 40), Err(Error::Compression(..))));
}

#[test]
fn the_wrapper_names_one_container_or_an_array() {
    let mut bytes = [0; 24];
    put(&mut bytes, 0, &WRAPPER_MAGIC.to_le_bytes());
    put(&mut bytes, 8, &0x1000u64.to_le_bytes());
    put(&mut bytes, 4, &1u32.to_le_bytes());
    assert_eq!(Wrapper::parse(&bytes).unwrap(), Wrapper { container: 0x1000, parts: None });
    put(&mut bytes, 4, &2u32.to_le_bytes());
    put(&mut bytes, 16, &0x2000u64.to_le_bytes());
    assert_eq!(Wrapper::parse(&bytes).unwrap(), Wrapper { container: 0x1000, parts: Some(0x2000) });
    put(&mut bytes, 4, &3u32.to_le_bytes());
    assert_eq!(Wrapper::parse(&bytes), Err(Error::WrapperVersion(3)));
    assert_eq!(Wrapper::parse(&[0; 24]), Err(Error::Magic(0)));
}

#[test]
fn every_truncation_is_an_error() {
    let bytes = every_form();
    for end in 0..bytes.len() {
        assert!(parse(&bytes[..end]).is_err(), "{end} of {} bytes were accepted", bytes.len());
    }
}

/// Everything a caller may do with what was read; only that it returns matters.
fn use_all(bytes: &[u8]) {
    for entry in parse(bytes).into_iter().flatten() {
        let _ = entry.text();
    }
}

proptest! {
    #[test]
    fn damaged_bytes_never_panic(damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)) {
        let mut bytes = every_form();
        for (at, value) in damage {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        use_all(&bytes);
    }

    #[test]
    fn noise_behind_a_valid_header_never_panics(noise in prop::collection::vec(any::<u8>(), 0..512)) {
        use_all(&container(&[noise]));
    }
}
