//! From the pointer a program calls an image to the PTX texts in it.
//!
//! An image is a fat binary's wrapper, a bare container, PTX text, or a cubin, which `cuLinkComplete` made of PTX; the pointer
//! comes without a length, so everything is copied through the kernel, which refuses addresses that are not mapped.
//! Links also take host objects and archives of them.

use core::ffi::{CStr, c_void};
use std::collections::HashSet;

use compiler::Source;

use crate::{Error, Result};

/// Longest PTX text that is looked for its end.
const MAX_TEXT_BYTES: usize = 1 << 30;
const PAGE: usize = 4096;
/// Pages of a text that are read at once.
const MAX_PAGES: usize = 256;

/// What an image holds.
#[derive(Clone, Debug, Default)]
pub struct Image {
    pub sources: Vec<Source>,
    /// Translation units (`-rdc`) that came without PTX.
    pub machine_code: Vec<MachineCode>,
    /// It is PTX text: of a container's texts one that fits was chosen.
    pub is_text: bool,
}

/// A translation unit that nothing here can run: it has no PTX, or only for newer devices.
#[derive(Clone, Debug)]
pub struct MachineCode {
    /// `sm_75, sm_80`
    pub archs: String,
    /// The lowest architecture that it has PTX for.
    pub newer_ptx: Option<u32>,
    /// The kernels, functions and variables it defines.
    pub names: HashSet<String>,
}

impl MachineCode {
    /// Why nothing of it runs here; `holder` is where it was found.
    pub fn why_left_out(&self, holder: &str) -> String {
        match self.newer_ptx {
            Some(arch) => too_new(&format!("{holder} holds PTX for compute_{arch}"), arch),
            None => format!("{holder} holds machine code for {} only and no PTX; {REBUILD}", self.archs),
        }
    }
}

impl From<Vec<Source>> for Image {
    fn from(sources: Vec<Source>) -> Image {
        Image { sources, ..Image::default() }
    }
}

/// What could not be loaded and why: the code for the program, the sentence for its log.
#[derive(Debug)]
pub struct Failure {
    pub error: Error,
    pub message: String,
}

fn fail<T>(error: Error, message: impl Into<String>) -> core::result::Result<T, Failure> {
    Err(Failure { error, message: message.into() })
}

/// The PTX sources of what is at `image`, for a device of compute capability `capability` (90 for 9.0).
///
/// # Safety
/// `image` points to an image that stays as it is during the call.
pub unsafe fn read(image: *const c_void, capability: u32) -> core::result::Result<Image, Failure> {
    // SAFETY: the caller's promise: an image, which has as many bytes.
    let Some(first) = (unsafe { copy::<4>(image.cast()) }) else {
        return fail(Error::InvalidValue("image"), "the image's address is not readable");
    };
    match u32::from_le_bytes(first) {
        // SAFETY: the caller's promise.
        fatbin::WRAPPER_MAGIC => unsafe { wrapper(image.cast(), capability) },
        // SAFETY: the caller's promise.
        fatbin::CONTAINER_MAGIC => unsafe { from_containers(&[image.cast()], capability) },
        // SAFETY: the caller's promise.
        _ if first == *b"\x7fELF" => unsafe { elf(image.cast()) },
        // SAFETY: the caller's promise.
        _ if first == compiler::image::MAGIC[..4] => unsafe { linked(image.cast()) },
        // SAFETY: the caller's promise.
        _ => unsafe { text(image.cast()) },
    }
}

/// As [`read`], for an image whose length is known (`cuLinkAddData`).
///
/// # Safety
/// `data` is readable for `len_bytes`.
pub unsafe fn read_sized(
    data: *const c_void,
    len_bytes: usize,
    capability: u32,
    name: &str,
) -> core::result::Result<Image, Failure> {
    if data.is_null() || len_bytes == 0 {
        return fail(Error::InvalidValue("data"), "no data");
    }
    // SAFETY: the caller promised the bytes.
    let bytes = unsafe { core::slice::from_raw_parts(data.cast::<u8>(), len_bytes) };
    match bytes.first_chunk::<4>() {
        Some(first) if u32::from_le_bytes(*first) == fatbin::WRAPPER_MAGIC => {
            // SAFETY: the caller's promise; a wrapper names what is mapped with it.
            unsafe { wrapper(data.cast(), capability) }
        }
        Some(first) if u32::from_le_bytes(*first) == fatbin::CONTAINER_MAGIC => choose(&[bytes], capability),
        Some(b"\x7fELF") => object(bytes, capability),
        _ if bytes.starts_with(&compiler::image::MAGIC) => decode(bytes),
        _ if bytes.starts_with(&fatbin::archive::MAGIC) => library(bytes, capability),
        _ => ptx(bytes.split(|&byte| byte == 0).next().unwrap_or(bytes), name),
    }
}

/// # Safety
/// `at` points to an image that stays as it is during the call.
unsafe fn wrapper(at: *const u8, capability: u32) -> core::result::Result<Image, Failure> {
    // SAFETY: the caller's promise.
    let Some(bytes) = (unsafe { copy::<{ fatbin::WRAPPER_BYTES }>(at) }) else {
        return fail(Error::InvalidImage, "the fat binary wrapper is not readable");
    };
    let wrapper = match fatbin::Wrapper::parse(&bytes) {
        Ok(wrapper) => wrapper,
        Err(error) => return fail(Error::InvalidImage, error.to_string()),
    };
    let address = |address: u64| core::ptr::with_exposed_provenance::<u8>(address as usize);
    // With -rdc every translation unit has a container of its own; the linked one holds machine code.
    let mut containers = Vec::new();
    if let Some(parts) = wrapper.parts {
        let mut entry = address(parts).cast::<u64>();
        // SAFETY: the list that the wrapper names, up to its end.
        let part_at = |entry: *const u64| unsafe { copy::<8>(entry.cast()) }.map(u64::from_le_bytes);
        while let Some(part) = part_at(entry).filter(|&part| part != 0) {
            containers.push(address(part));
            entry = entry.wrapping_add(1);
        }
        // SAFETY: the wrapper names its containers.
        match unsafe { from_containers(&containers, capability) } {
            Err(Failure { error: Error::NoBinaryForGpu, .. }) if wrapper.container != 0 => {
                containers.push(address(wrapper.container));
            }
            other => return other,
        }
    } else {
        containers.push(address(wrapper.container));
    }
    // SAFETY: the wrapper names its containers.
    unsafe { from_containers(&containers, capability) }
}

/// # Safety
/// Each address points to a container that stays as it is during the call.
unsafe fn from_containers(addresses: &[*const u8], capability: u32) -> core::result::Result<Image, Failure> {
    let mut containers = Vec::new();
    for &at in addresses {
        // SAFETY: the caller's promise.
        let Some(header) = (unsafe { copy::<{ fatbin::CONTAINER_HEADER_BYTES }>(at) }) else {
            return fail(Error::InvalidImage, "the fat binary container is not readable");
        };
        let len_bytes = match fatbin::container_bytes(&header) {
            Ok(len_bytes) => len_bytes,
            Err(error) => return fail(Error::InvalidImage, error.to_string()),
        };
        // SAFETY: the caller's promise: the header says how long the container is.
        match unsafe { copy_vec(at, len_bytes) } {
            Some(bytes) => containers.push(bytes),
            None => {
                return fail(Error::InvalidImage, "the fat binary container is longer than what is mapped");
            }
        }
    }
    let containers: Vec<&[u8]> = containers.iter().map(Vec::as_slice).collect();
    choose(&containers, capability)
}

/// A host object: its containers. A cubin is an object as well, one that cannot be used.
fn object(bytes: &[u8], capability: u32) -> core::result::Result<Image, Failure> {
    if fatbin::elf::machine(bytes) == Some(fatbin::elf::EM_CUDA) {
        // SAFETY: the bytes are the whole file.
        return unsafe { elf(bytes.as_ptr()) };
    }
    let containers = fatbin::elf::containers(bytes);
    if containers.is_empty() {
        return fail(Error::InvalidImage, "an object file without device code");
    }
    choose(&containers, capability)
}

/// An archive of host objects; those without device code do not matter. Members that do not fit are left out, as a
/// linker leaves out what nobody asks for: who needs one of their names finds it undefined.
fn library(bytes: &[u8], capability: u32) -> core::result::Result<Image, Failure> {
    let containers = fatbin::archive::containers(bytes);
    if containers.is_empty() {
        return fail(Error::InvalidImage, "a library without device code");
    }
    fitting(&containers, capability)
}

/// As [`fitting`]; containers with machine code only are an error when nothing else is left.
fn choose(containers: &[&[u8]], capability: u32) -> core::result::Result<Image, Failure> {
    let image = fitting(containers, capability)?;
    if !image.sources.is_empty() {
        return Ok(image);
    }
    let message = match image.machine_code.first() {
        None => "the fat binary holds no code at all".to_owned(),
        Some(first) => {
            let unit = image.machine_code.iter().find(|unit| unit.newer_ptx.is_some()).unwrap_or(first);
            unit.why_left_out("the fat binary")
        }
    };
    fail(Error::NoBinaryForGpu, message)
}

/// One PTX per container, or a cubin of ours, and what of the others is known.
fn fitting(containers: &[&[u8]], capability: u32) -> core::result::Result<Image, Failure> {
    let mut image = Image::default();
    for (index, container) in containers.iter().enumerate() {
        let entries = match fatbin::parse(container) {
            Ok(entries) => entries,
            Err(error) => return fail(Error::InvalidImage, error.to_string()),
        };
        let Some(entry) = fatbin::choose_ptx(&entries, capability) else {
            match fatbin::cubin::choose(&entries, capability) {
                Ok(Some(linked)) => image.sources.extend(decode(&linked)?.sources),
                Ok(None) => image.machine_code.extend(machine_code(&entries)),
                Err(error) => return fail(Error::InvalidImage, error.to_string()),
            }
            continue;
        };
        match entry.text() {
            Ok(text) => {
                let name = match &entry.name {
                    Some(name) => format!("{name} (compute_{})", entry.arch),
                    None if containers.len() == 1 => format!("compute_{}.ptx", entry.arch),
                    None => format!("compute_{}.{index}.ptx", entry.arch),
                };
                image.sources.push(Source { name, text });
            }
            Err(error) => return fail(Error::InvalidImage, error.to_string()),
        }
    }
    Ok(image)
}

/// What to say of PTX that is for a newer device: `what` it is.
pub fn too_new(what: &str, arch: u32) -> String {
    format!(
        "{what}, and this device's compute capability is lower (CUDAWAY_COMPUTE_CAPABILITY={}.{} sets it)",
        arch / 10,
        arch % 10
    )
}

/// What the builder of a program without PTX has to do.
pub const REBUILD: &str = "rebuild the program with PTX in it (-gencode arch=compute_XX,code=compute_XX)";

/// A container's machine code; `None` when it holds nothing.
fn machine_code(entries: &[fatbin::Entry]) -> Option<MachineCode> {
    let cubins = || entries.iter().filter(|entry| entry.kind == fatbin::Kind::Elf);
    let mut archs: Vec<u32> = cubins().map(|entry| entry.arch).collect();
    archs.sort_unstable();
    archs.dedup();
    let archs: Vec<String> = archs.iter().map(|arch| format!("sm_{arch}")).collect();
    let texts = entries.iter().filter(|entry| entry.kind == fatbin::Kind::Ptx);
    let newer_ptx = texts.map(|entry| entry.arch).min();
    if archs.is_empty() && newer_ptx.is_none() {
        return None;
    }
    // All of them are translations of the same unit.
    let cubin = cubins().next().and_then(|entry| entry.bytes().ok());
    let names = cubin.map(|cubin| fatbin::elf::defined_names(&cubin)).unwrap_or_default();
    Some(MachineCode { archs: archs.join(", "), newer_ptx, names: names.into_iter().collect() })
}

/// A cubin is machine code for one NVIDIA architecture, which nothing here runs, unless a link of ours made it.
///
/// # Safety
/// `at` points to an image that stays as it is during the call.
unsafe fn elf(at: *const u8) -> core::result::Result<Image, Failure> {
    // SAFETY: the caller's promise.
    let Some(header) = (unsafe { copy::<{ fatbin::cubin::HEADER_BYTES }>(at) }) else {
        return fail(Error::InvalidImage, "the ELF header is not readable");
    };
    if fatbin::elf::machine(&header) != Some(fatbin::elf::EM_CUDA) {
        return fail(Error::InvalidImage, "an ELF file that holds no CUDA code");
    }
    // SAFETY: the caller's promise: the header says how long the file is.
    let file = fatbin::cubin::len_bytes(&header).and_then(|len_bytes| unsafe { copy_vec(at, len_bytes) });
    if let Some(image) = file.as_deref().and_then(fatbin::cubin::unwrap) {
        return decode(image);
    }
    let arch = fatbin::cubin::arch(&header).unwrap_or_default();
    fail(Error::NoBinaryForGpu, format!("a cubin for sm_{arch} without PTX; only PTX can be translated"))
}

/// An image of ours as it is.
///
/// # Safety
/// `at` points to an image that stays as it is during the call.
unsafe fn linked(at: *const u8) -> core::result::Result<Image, Failure> {
    // SAFETY: the caller's promise.
    let total = unsafe { copy::<{ compiler::image::HEADER_BYTES }>(at) }
        .and_then(|header| compiler::image::total_bytes(&header));
    // SAFETY: the caller's promise: the header says how long the image is.
    match total.and_then(|total| unsafe { copy_vec(at, total) }) {
        Some(bytes) => decode(&bytes),
        None => fail(Error::InvalidImage, "no image of a kind that CUDA has"),
    }
}

fn decode(bytes: &[u8]) -> core::result::Result<Image, Failure> {
    compiler::image::decode(bytes)
        .map(Image::from)
        .map_err(|error| Failure { error: Error::InvalidImage, message: error.to_string() })
}

/// NUL-terminated text.
///
/// # Safety
/// `at` points to a text that stays as it is during the call.
unsafe fn text(at: *const u8) -> core::result::Result<Image, Failure> {
    let mut bytes = Vec::new();
    // Whole pages, ever more of them: one at a time is slow for a long text.
    let (mut n_pages, mut most) = (1, MAX_PAGES);
    loop {
        let begun = bytes.len();
        let here = at.wrapping_add(begun);
        let until = |n_pages: usize| n_pages * PAGE - here.addr() % PAGE;
        match append(&mut bytes, here, until(n_pages)) {
            Appended::All => {}
            // A text may end right before unmapped memory.
            Appended::Unmapped if n_pages > 1 => {
                n_pages = 1;
                continue;
            }
            Appended::Unmapped => {
                return fail(Error::InvalidImage, "no image of a kind that CUDA has: text without an end");
            }
            Appended::Refused => {
                // Nobody says where mapped memory ends: up to the next page border something is there.
                most = 1;
                // SAFETY: the caller promised a text, of which this page holds a part.
                unsafe { append_unseen(&mut bytes, here, until(1)) };
            }
        }
        if let Ok(rest) = CStr::from_bytes_until_nul(&bytes[begun..]) {
            bytes.truncate(begun + rest.count_bytes());
            return match String::from_utf8(bytes) {
                Ok(text) => source(text, ""),
                Err(_) => fail(Error::InvalidImage, NO_IMAGE),
            };
        }
        if bytes.len() > MAX_TEXT_BYTES {
            return fail(Error::InvalidImage, "no image of a kind that CUDA has: text without an end");
        }
        n_pages = (2 * n_pages).min(most);
    }
}

const NO_IMAGE: &str = "no image of a kind that CUDA has: neither a container, an ELF file nor PTX";

fn ptx(bytes: &[u8], name: &str) -> core::result::Result<Image, Failure> {
    match core::str::from_utf8(bytes) {
        Ok(text) => source(text.to_owned(), name),
        Err(_) => fail(Error::InvalidImage, NO_IMAGE),
    }
}

fn source(text: String, name: &str) -> core::result::Result<Image, Failure> {
    let name = if name.is_empty() { "ptx" } else { name };
    // Every PTX file has the directive; other text is no image.
    if !text.contains(".version") {
        return fail(Error::InvalidImage, NO_IMAGE);
    }
    Ok(Image { is_text: true, ..vec![Source { name: name.to_owned(), text }].into() })
}

/// # Safety
/// `N` bytes at `at` are readable, unless the kernel can be asked whether they are.
unsafe fn copy<const N: usize>(at: *const u8) -> Option<[u8; N]> {
    // SAFETY: the caller's promise.
    let bytes = unsafe { copy_vec(at, N) }?;
    bytes.first_chunk().copied()
}

/// Copies memory of this process; `None` when part of it is not mapped or not readable.
///
/// # Safety
/// `len_bytes` at `at` are readable, unless the kernel can be asked whether they are.
unsafe fn copy_vec(at: *const u8, len_bytes: usize) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(len_bytes).ok()?;
    match append(&mut bytes, at, len_bytes) {
        Appended::All => Some(bytes),
        Appended::Unmapped => None,
        Appended::Refused => {
            // SAFETY: the caller's promise is what is left.
            unsafe { append_unseen(&mut bytes, at, len_bytes) };
            Some(bytes)
        }
    }
}

/// What became of a copy.
enum Appended {
    All,
    /// Part of it is not mapped or not readable; nothing was appended.
    Unmapped,
    /// A sandbox without the call; nothing was appended.
    Refused,
}

/// Copies memory of this process through the kernel.
fn append(bytes: &mut Vec<u8>, at: *const u8, len_bytes: usize) -> Appended {
    if at.is_null() || bytes.try_reserve(len_bytes).is_err() {
        return Appended::Unmapped;
    }
    let room = bytes.spare_capacity_mut().as_mut_ptr();
    let local = libc::iovec { iov_base: room.cast(), iov_len: len_bytes };
    let remote = libc::iovec { iov_base: at.cast_mut().cast(), iov_len: len_bytes };
    // SAFETY: `bytes` has room for `len_bytes`; the kernel checks the other side.
    let n = unsafe { libc::process_vm_readv(libc::getpid(), &local, 1, &remote, 1, 0) };
    if n < 0 {
        return match std::io::Error::last_os_error().raw_os_error() {
            Some(libc::ENOSYS | libc::EPERM | libc::EINVAL) => Appended::Refused,
            _ => Appended::Unmapped,
        };
    }
    if n.unsigned_abs() != len_bytes {
        return Appended::Unmapped;
    }
    // SAFETY: all `len_bytes` were written.
    unsafe { bytes.set_len(bytes.len() + len_bytes) };
    Appended::All
}

/// Copies memory without asking the kernel.
///
/// # Safety
/// `at` is readable for `len_bytes`.
unsafe fn append_unseen(bytes: &mut Vec<u8>, at: *const u8, len_bytes: usize) {
    // SAFETY: the caller's promise.
    bytes.extend_from_slice(unsafe { core::slice::from_raw_parts(at, len_bytes) });
}

/// Reads a file that holds an image.
pub fn file(path: &std::path::Path) -> Result<Vec<u8>> {
    let mut bytes = std::fs::read(path).map_err(|error| {
        tracing::info!(target: "cudaway::driver", "{}: {error}", path.display());
        Error::FileNotFound
    })?;
    bytes.push(0);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_bytes(bytes: &[u8]) -> core::result::Result<Vec<Source>, Failure> {
        // SAFETY: `bytes` outlives the call.
        unsafe { read(bytes.as_ptr().cast(), 90) }.map(|image| image.sources)
    }

    #[test]
    fn text_with_the_version_directive_is_ptx() {
        let sources = read_bytes(b"// hi\n.version 8.0\n.target sm_80\n\0").unwrap();
        assert_eq!(sources[0].text, "// hi\n.version 8.0\n.target sm_80\n");
    }

    #[test]
    fn other_text_is_no_image() {
        assert_eq!(read_bytes(b"hello\0").unwrap_err().error, Error::InvalidImage);
    }

    #[test]
    fn a_cubin_names_its_architecture() {
        let mut cubin = [0u8; 64];
        cubin[..4].copy_from_slice(b"\x7fELF");
        cubin[18] = 190;
        cubin[48] = 80;
        let failure = read_bytes(&cubin).unwrap_err();
        assert_eq!(failure.error, Error::NoBinaryForGpu);
        assert!(failure.message.contains("sm_80"), "{}", failure.message);
    }

    #[test]
    fn an_address_that_is_not_mapped_is_an_error_and_no_crash() {
        // SAFETY: the address is only looked at through the kernel.
        let failure = unsafe { read(core::ptr::without_provenance(64), 90) }.unwrap_err();
        assert_eq!(failure.error, Error::InvalidValue("image"));
        // A wrapper whose container lies nowhere.
        let mut wrapper = [0u8; 24];
        wrapper[..4].copy_from_slice(&fatbin::WRAPPER_MAGIC.to_le_bytes());
        wrapper[4] = 1;
        wrapper[8] = 64;
        assert_eq!(read_bytes(&wrapper).unwrap_err().error, Error::InvalidImage);
    }

    #[test]
    fn a_text_of_any_length_may_end_right_before_unmapped_memory() {
        let n_pages = 600;
        // SAFETY: a fresh private mapping, whose last page nobody may read.
        let (base, end) = unsafe {
            let (prot, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
            let base = libc::mmap(core::ptr::null_mut(), n_pages * PAGE, prot, flags, -1, 0).cast::<u8>();
            assert!(!base.is_null() && base.addr() % PAGE == 0);
            let end = base.add((n_pages - 1) * PAGE);
            assert_eq!(libc::mprotect(end.cast(), PAGE, libc::PROT_NONE), 0);
            (base, end)
        };
        for len_bytes in [20, PAGE - 1, PAGE, 3 * PAGE + 7, 500 * PAGE + 1] {
            // SAFETY: inside the mapping.
            let text = unsafe { core::slice::from_raw_parts_mut(end.sub(len_bytes), len_bytes) };
            text.fill(b' ');
            text[..12].copy_from_slice(b".version 8.0");
            text[len_bytes - 1] = 0;
            assert_eq!(read_bytes(text).unwrap()[0].text.len(), len_bytes - 1);
            // Without its end it is no text.
            text[len_bytes - 1] = b' ';
            assert_eq!(read_bytes(text).unwrap_err().error, Error::InvalidImage);
        }
        // SAFETY: the whole mapping, which nobody has a reference to any more.
        assert_eq!(unsafe { libc::munmap(base.cast(), n_pages * PAGE) }, 0);
    }
}
