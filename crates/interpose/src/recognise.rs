//! Which CUDA runtime an ELF file carries inside itself, told from its sections and names alone.

use crate::elf::{self, File, Symbol};
use crate::slots::{RUNTIMES, Runtime};

/// What a file turned out to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Nothing of CUDA's runtime is inside.
    Other,
    /// A static runtime whose functions have their names (nvcc's output, not stripped).
    Static,
    /// Fat binaries, no shared runtime asked for, and no names: a static runtime in a stripped file.
    Stripped,
    /// A shared runtime, recognised by its SONAME.
    Shared,
}

/// Private functions of these names in a file without fat binaries: fewer could be somebody's own helpers.
const MIN_NAMES_WITHOUT_FATBIN: usize = 4;

pub fn kind(file: File) -> Kind {
    if shared_major(file).is_some() {
        return Kind::Shared;
    }
    let n_names = functions(file, Kind::Static).count();
    let has_fatbin = has_fat_binaries(file);
    if n_names >= MIN_NAMES_WITHOUT_FATBIN || (has_fatbin && n_names > 0) {
        return Kind::Static;
    }
    let asks_for_cudart = file.needed().any(|name| name.starts_with(b"libcudart.so."));
    if has_fatbin && !asks_for_cudart { Kind::Stripped } else { Kind::Other }
}

/// The functions of the runtime in the file that have a public name of any major.
pub fn functions(file: File, kind: Kind) -> impl Iterator<Item = Symbol> {
    let table = match kind {
        Kind::Shared => elf::SHT_DYNSYM,
        _ => elf::SHT_SYMTAB,
    };
    file.symbols(table)
        .filter(|symbols| elf::mentions(symbols.strings, b"cuda"))
        .into_iter()
        .flat_map(elf::Symbols::iter)
        .filter(move |symbol| {
            symbol.kind == elf::STT_FUNC
                && symbol.section != elf::SHN_UNDEF
                && (symbol.is_private || kind == Kind::Shared)
                && looks_public(symbol.name)
        })
        .filter(|symbol| RUNTIMES.iter().any(|runtime| runtime.index_of(symbol.name).is_some()))
}

/// The major whose ABI the file's runtime has.
///
/// The names tell: the major that knows the most of them. Where that leaves a choice, the PTX version that the compiler wrote,
/// and last `ask`, which calls the copy's own cudaRuntimeGetVersion where that is possible.
pub fn major<'a>(
    file: File<'a>,
    kind: Kind,
    ask: impl FnOnce(Symbol<'a>) -> Option<u32>,
) -> Option<&'static Runtime> {
    if kind == Kind::Shared {
        return Runtime::of_major(shared_major(file)?);
    }
    let n_unknown = RUNTIMES.each_ref().map(|runtime| {
        functions(file, kind).filter(|symbol| runtime.index_of(symbol.name).is_none()).count()
    });
    let fewest = n_unknown.iter().min()?;
    let mut fits = RUNTIMES.iter().zip(n_unknown).filter(|(_, n)| n == fewest).map(|(runtime, _)| runtime);
    let mut only = fits.clone();
    if let (Some(runtime), None) = (only.next(), only.next()) {
        return Some(runtime);
    }
    let told_by_version = || {
        let function = functions(file, kind).find(|symbol| symbol.name == b"cudaRuntimeGetVersion")?;
        Some(ask(function)? / 1000)
    };
    let major = ptx_major(file).or_else(told_by_version);
    fits.clone().find(|runtime| Some(runtime.major) == major).or_else(|| fits.next_back())
}

fn looks_public(name: &[u8]) -> bool {
    name.starts_with(b"cuda") || name.starts_with(b"__cuda")
}

fn has_fat_binaries(file: File) -> bool {
    file.sections()
        .any(|section| matches!(section.name, b".nv_fatbin" | b".nvFatBinSegment" | b"__nv_relfatbin"))
}

fn shared_major(file: File) -> Option<u32> {
    match file.soname()? {
        b"libcudart.so.11.0" => Some(11),
        b"libcudart.so.12" => Some(12),
        b"libcudart.so.13" => Some(13),
        _ => None,
    }
}

/// The toolkit major that wrote the first PTX of the file: PTX ISA 7.x came with CUDA 11, 8.x with 12, 9.x with 13.
fn ptx_major(file: File) -> Option<u32> {
    const MAGIC: u32 = 0xba55_ed50;
    const KIND_PTX: u16 = 1;
    let bytes = file.section_named(b".nv_fatbin").or_else(|| file.section_named(b"__nv_relfatbin"))?.bytes;
    let mut at = 0usize;
    while elf::u32_at(bytes, at)? == MAGIC {
        let header_bytes = usize::from(elf::u16_at(bytes, at + 6)?);
        let end =
            at.checked_add(header_bytes)?.checked_add(usize::try_from(elf::u64_at(bytes, at + 8)?).ok()?)?;
        let mut entry = at + header_bytes;
        while entry < end {
            if elf::u16_at(bytes, entry)? == KIND_PTX {
                return Some(u32::from(elf::u16_at(bytes, entry + 0x1a)?) + 4);
            }
            let entry_bytes = usize::try_from(elf::u32_at(bytes, entry + 4)?).ok()?;
            let payload_bytes = usize::try_from(elf::u64_at(bytes, entry + 8)?).ok()?;
            entry = entry.checked_add(entry_bytes)?.checked_add(payload_bytes)?.max(entry + 64);
        }
        at = end.next_multiple_of(8);
    }
    None
}

/// The variables in which nvcc's code keeps what registration gave it: non-zero says the file's constructors have run.
pub fn registration_handles(file: File) -> impl Iterator<Item = Symbol> {
    file.symbols(elf::SHT_SYMTAB).into_iter().flat_map(elf::Symbols::iter).filter(|symbol| {
        symbol.kind == elf::STT_OBJECT && symbol.section != elf::SHN_UNDEF && symbol.size == 8 && {
            let name = symbol.name;
            name.starts_with(b"_ZL20__cudaFatCubinHandle") || name == b"__cudaFatCubinHandle"
        }
    })
}
