//! From the bytes that a program adds to PTX texts.

use compiler::Source;

use crate::result::{Error, Failure};

/// `nvJitLinkInputType`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Cubin,
    Ptx,
    LtoIr,
    FatBinary,
    Object,
    Library,
    Any,
}

impl Kind {
    pub fn new(number: i32) -> Option<Kind> {
        Some(match number {
            1 => Kind::Cubin,
            2 => Kind::Ptx,
            3 => Kind::LtoIr,
            4 => Kind::FatBinary,
            5 => Kind::Object,
            6 => Kind::Library,
            10 => Kind::Any,
            _ => return None,
        })
    }
}

type Found = Result<Vec<Source>, Failure>;

const NO_LTO: &str = "LTO IR cannot be linked by CUDAway, which reads PTX: have the compiler make PTX, without -dlto, -gen-lto or lto=True";
const NO_PTX: &str = "machine code without PTX, which nothing here can run";

/// LLVM's bitcode, bare and with a header, and NVIDIA's container for it.
const BITCODE: [[u8; 4]; 3] = [*b"BC\xc0\xde", [0xde, 0xc0, 0x17, 0x0b], *b"\xedCN\x7f"];

/// The texts in `bytes`; of a fat binary the best one for `arch`.
pub fn read(kind: Kind, bytes: &[u8], arch: u32, name: &str) -> Found {
    let wrong = |why: &str| Err((Error::IncorrectInputType, format!("{name}: {why}")));
    let starts_with = |magic: &[u8]| bytes.starts_with(magic);
    if kind == Kind::LtoIr || (kind == Kind::Any && BITCODE.iter().any(|magic| starts_with(magic))) {
        return Err((Error::NvvmCompile, format!("{name}: {NO_LTO}")));
    }
    let is_container = starts_with(&fatbin::CONTAINER_MAGIC.to_le_bytes());
    match kind {
        // What another link gave.
        Kind::Cubin | Kind::Any if let Some(image) = fatbin::cubin::unwrap(bytes) => linked(image, name),
        Kind::Cubin | Kind::Any if fatbin::elf::machine(bytes) == Some(fatbin::elf::EM_CUDA) => {
            Err((Error::InvalidInput, format!("{name}: {NO_PTX}")))
        }
        Kind::FatBinary | Kind::Any if is_container => from_containers(&[bytes], arch, name),
        Kind::Object | Kind::Any if starts_with(&fatbin::elf::MAGIC) => {
            from_containers(&fatbin::elf::containers(bytes), arch, name)
        }
        Kind::Library | Kind::Any if starts_with(&fatbin::archive::MAGIC) => {
            from_library(&fatbin::archive::containers(bytes), arch, name)
        }
        Kind::Ptx | Kind::Cubin | Kind::Any => match text(bytes) {
            Some(text) => Ok(vec![Source { name: name.to_owned(), text }]),
            None => wrong("neither PTX nor anything else that can be linked"),
        },
        Kind::FatBinary => wrong("no fat binary"),
        Kind::Object => wrong("no object file"),
        Kind::Library => wrong("no library"),
        Kind::LtoIr => unreachable!("answered above"),
    }
}

/// An image of ours, which is what another link gave.
fn linked(image: &[u8], name: &str) -> Found {
    compiler::image::decode(image).map_err(|error| (Error::InvalidInput, format!("{name}: {error}")))
}

/// PTX, with or without a zero behind it.
fn text(bytes: &[u8]) -> Option<String> {
    let text = bytes.split(|&byte| byte == 0).next()?;
    // Every PTX file has the directive.
    core::str::from_utf8(text).ok().filter(|text| text.contains(".version")).map(str::to_owned)
}

fn from_containers(containers: &[&[u8]], arch: u32, name: &str) -> Found {
    let bad = |error: fatbin::Error| (Error::InvalidInput, format!("{name}: {error}"));
    let mut sources = Vec::new();
    for container in containers {
        let entries = fatbin::parse(container).map_err(bad)?;
        let Some(entry) = fatbin::choose_ptx(&entries, arch) else {
            if let Some(image) = fatbin::cubin::choose(&entries, arch).map_err(bad)? {
                sources.extend(linked(&image, name)?);
                continue;
            }
            if entries.is_empty() {
                continue;
            }
            return Err((
                Error::InvalidInput,
                format!("{name}: {NO_PTX}, or PTX for newer GPUs than sm_{arch}"),
            ));
        };
        sources.push(Source { name: name.to_owned(), text: entry.text().map_err(bad)? });
    }
    Ok(sources)
}

/// Most members of a library have no device code. What does not fit is left out, as a linker leaves out what nobody asks
/// for: who needs one of its names finds it undefined.
fn from_library(containers: &[&[u8]], arch: u32, name: &str) -> Found {
    let bad = |error: fatbin::Error| (Error::InvalidInput, format!("{name}: {error}"));
    let mut fitting = Vec::new();
    for &container in containers {
        let entries = fatbin::parse(container).map_err(bad)?;
        let has_cubin = || fatbin::cubin::choose(&entries, arch).map_err(bad);
        if fatbin::choose_ptx(&entries, arch).is_some() || has_cubin()?.is_some() {
            fitting.push(container);
        }
    }
    from_containers(&fitting, arch, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PTX: &str = ".version 8.0\n.target sm_80\n.address_size 64\n";

    fn texts(kind: Kind, bytes: &[u8]) -> Result<Vec<String>, Error> {
        let found = read(kind, bytes, 80, "input").map_err(|(error, why)| {
            assert!(why.starts_with("input: "), "{why}");
            error
        })?;
        Ok(found.into_iter().map(|source| source.text).collect())
    }

    /// `nvcc -fatbin` puts one entry into a container: header of 16 bytes, entry of 64, text.
    fn container(text: &str) -> Vec<u8> {
        container_for(80, text)
    }

    fn container_for(arch: u8, text: &str) -> Vec<u8> {
        let padded = text.len().next_multiple_of(8);
        let mut bytes = fatbin::CONTAINER_MAGIC.to_le_bytes().to_vec();
        bytes.extend([1, 0, 16, 0]);
        bytes.extend((64 + padded as u64).to_le_bytes());
        let mut entry = [0; 64];
        entry[..8].copy_from_slice(&[1, 0, 1, 1, 64, 0, 0, 0]);
        entry[8..16].copy_from_slice(&(padded as u64).to_le_bytes());
        entry[28] = arch;
        bytes.extend(entry);
        bytes.extend(text.as_bytes());
        bytes.resize(16 + 64 + padded, 0);
        bytes
    }

    #[test]
    fn ptx_is_found_in_what_holds_it() {
        let image = compiler::image::encode(&[Source { name: "a".to_owned(), text: PTX.to_owned() }]);
        let cubin = fatbin::cubin::wrap(80, &image);
        let with_zero = [PTX.as_bytes(), b"\0"].concat();
        for (kind, bytes) in [
            (Kind::Ptx, PTX.as_bytes()),
            (Kind::Ptx, &with_zero),
            // What our ptxas and nvcc leave in place of machine code, and NVRTC gives.
            (Kind::Cubin, &with_zero),
            (Kind::Cubin, &cubin),
            (Kind::FatBinary, &container(PTX)),
        ] {
            assert_eq!(texts(kind, bytes).as_deref(), Ok(&[PTX.to_owned()][..]), "{kind:?}");
            assert_eq!(texts(Kind::Any, bytes).as_deref(), Ok(&[PTX.to_owned()][..]), "{kind:?}");
        }
        assert_eq!(texts(Kind::Library, b"!<arch>\n"), Ok(Vec::new()));
    }

    #[test]
    fn members_of_a_library_that_do_not_fit_are_left_out() {
        let [fits, newer] = [80, 120].map(|arch| container_for(arch, PTX));
        let n_found = |found: Found| found.map(|sources| sources.len()).map_err(|(error, _)| error);
        assert_eq!(n_found(from_library(&[&newer, &fits, &newer], 90, "library")), Ok(1));
        assert_eq!(n_found(from_library(&[&newer], 90, "library")), Ok(0));
        assert_eq!(n_found(from_containers(&[&newer, &fits], 90, "object")), Err(Error::InvalidInput));
    }

    #[test]
    fn what_holds_none_is_told_apart() {
        let mut cubin = [0; 64];
        cubin[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        cubin[18] = 190;
        for (kind, bytes, error) in [
            (Kind::Cubin, &cubin[..], Error::InvalidInput),
            (Kind::Any, &cubin, Error::InvalidInput),
            (Kind::LtoIr, b"anything", Error::NvvmCompile),
            (Kind::Any, b"BC\xc0\xde", Error::NvvmCompile),
            // As nvrtcGetLTOIR gives it.
            (Kind::Any, b"\xedCN\x7f\x01\x00", Error::NvvmCompile),
            (Kind::Ptx, b"hello", Error::IncorrectInputType),
            (Kind::Ptx, &container(PTX), Error::IncorrectInputType),
            (Kind::FatBinary, PTX.as_bytes(), Error::IncorrectInputType),
            (Kind::Object, PTX.as_bytes(), Error::IncorrectInputType),
            (Kind::Library, PTX.as_bytes(), Error::IncorrectInputType),
        ] {
            assert_eq!(texts(kind, bytes), Err(error), "{kind:?}");
        }
    }
}
