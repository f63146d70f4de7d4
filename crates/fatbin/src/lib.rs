//! NVIDIA's fat binaries: which images a container holds, and their bytes.
//!
//! The layout is measured (facts/abi.md §5 of the project's design): a 24-byte wrapper that generated code registers
//! points at one container, or with `-rdc` at an array of them; a container is a row of entries; an entry is PTX text,
//! a cubin, or a group of such compressed together. Nothing here trusts a length, an offset or a size it reads.

#![forbid(unsafe_code)]

pub mod archive;
pub mod cubin;
pub mod elf;
mod entry;

pub use entry::{Entry, Kind};

/// First word of the wrapper.
pub const WRAPPER_MAGIC: u32 = 0x4662_43b1;
/// First word of a container.
pub const CONTAINER_MAGIC: u32 = 0xba55_ed50;
pub const WRAPPER_BYTES: usize = 24;
pub const CONTAINER_HEADER_BYTES: usize = 16;
/// Largest image that is unpacked; real ones are far below, a damaged size field is not.
pub const MAX_IMAGE_BYTES: u64 = 1 << 30;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("no fat binary: the first word is {0:#010x}")]
    Magic(u32),
    #[error("fat binary wrapper of unknown version {0}")]
    WrapperVersion(u32),
    #[error("fat binary container of unknown version {0}")]
    ContainerVersion(u16),
    #[error("fat binary ends inside {what} at byte {offset}")]
    Truncated { what: &'static str, offset: usize },
    #[error("fat binary entry at byte {offset}: {what}")]
    Entry { what: &'static str, offset: usize },
    #[error("{0} payload does not decompress: {1}")]
    Compression(&'static str, String),
    #[error("PTX entry is not text")]
    Text,
}

/// The structure that generated code hands to `__cudaRegisterFatBinary`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wrapper {
    /// Address of the container.
    pub container: u64,
    /// `-rdc`: address of a NULL-terminated array of containers, one per translation unit.
    pub parts: Option<u64>,
}

impl Wrapper {
    pub fn parse(bytes: &[u8; WRAPPER_BYTES]) -> Result<Wrapper, Error> {
        let magic = u32_at(bytes, 0).unwrap_or(0);
        if magic != WRAPPER_MAGIC {
            return Err(Error::Magic(magic));
        }
        let container = u64_at(bytes, 8).unwrap_or(0);
        let parts = u64_at(bytes, 16).unwrap_or(0);
        match u32_at(bytes, 4).unwrap_or(0) {
            1 => Ok(Wrapper { container, parts: None }),
            2 => Ok(Wrapper { container, parts: Some(parts).filter(|&address| address != 0) }),
            version => Err(Error::WrapperVersion(version)),
        }
    }
}

/// Bytes of the container that starts with `header`, the header included.
pub fn container_bytes(header: &[u8; CONTAINER_HEADER_BYTES]) -> Result<usize, Error> {
    let magic = u32_at(header, 0).unwrap_or(0);
    if magic != CONTAINER_MAGIC {
        return Err(Error::Magic(magic));
    }
    let version = u16_at(header, 4).unwrap_or(0);
    if version != 1 {
        return Err(Error::ContainerVersion(version));
    }
    let header_bytes = usize::from(u16_at(header, 6).unwrap_or(0));
    if header_bytes < CONTAINER_HEADER_BYTES {
        return Err(Error::Entry { what: "container header size below 16", offset: 6 });
    }
    usize::try_from(u64_at(header, 8).unwrap_or(0))
        .ok()
        .and_then(|body| body.checked_add(header_bytes))
        .filter(|&total| isize::try_from(total).is_ok())
        .ok_or(Error::Entry { what: "container size beyond the address space", offset: 8 })
}

/// Every image of a container, groups taken apart, in file order. Payloads stay packed until [`Entry::bytes`].
pub fn parse(container: &[u8]) -> Result<Vec<Entry>, Error> {
    let header = container
        .first_chunk()
        .ok_or(Error::Truncated { what: "the container header", offset: container.len() })?;
    let total = container_bytes(header)?;
    let body =
        container.get(..total).ok_or(Error::Truncated { what: "the container", offset: container.len() })?;
    let mut offset = usize::from(u16_at(header, 6).unwrap_or(0));
    let mut entries = Vec::new();
    while offset < body.len() {
        offset += entry::read(body, offset, &mut entries)?;
    }
    Ok(entries)
}

/// The PTX to take for a device of compute capability `capability` (such as 90): the highest architecture not above it.
/// Entries for one architecture or family only (`sm_90a`, `sm_100f`) run there alone, and are taken where there is no
/// portable one. CUDA takes no PTX for a newer device; here it stands for machine code of the same unit that CUDA
/// would run on this one, the lowest architecture first.
pub fn choose_ptx(entries: &[Entry], capability: u32) -> Option<&Entry> {
    let texts = || entries.iter().filter(|entry| entry.kind == Kind::Ptx);
    let fitting = texts().filter(|entry| entry.runs_on(capability));
    fitting.max_by_key(|entry| (!entry.is_arch_specific(), entry.arch)).or_else(|| {
        let mut cubins = entries.iter().filter(|entry| entry.kind == Kind::Elf);
        let has_cubin = cubins.any(|entry| entry.runs_on(capability) && entry.arch / 10 == capability / 10);
        texts().filter(|_| has_cubin).min_by_key(|entry| (entry.is_arch_specific(), entry.arch))
    })
}

fn field<const N: usize>(bytes: &[u8], offset: usize) -> Option<[u8; N]> {
    bytes.get(offset..)?.first_chunk().copied()
}

fn u16_at(bytes: &[u8], offset: usize) -> Option<u16> {
    field(bytes, offset).map(u16::from_le_bytes)
}

fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    field(bytes, offset).map(u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    field(bytes, offset).map(u64::from_le_bytes)
}
