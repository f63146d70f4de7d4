//! What a code object says of itself: its symbols, and the metadata that HIP reads as well.

use object::elf::{EM_AMDGPU, FileHeader64, NoteType};
use object::read::elf::{ElfFile, FileHeader, ProgramHeader};
use object::{Endianness, Object, ObjectSymbol};
use serde::Deserialize;

use crate::Error;

/// The note of code objects since version 3; its content is MessagePack.
const NT_AMDGPU_METADATA: NoteType = NoteType(32);

/// A code object that was looked into.
#[derive(Clone, Debug)]
pub struct CodeObject {
    pub bytes: Vec<u8>,
    /// `amdgcn-amd-amdhsa--gfx1100`
    pub target: String,
    pub kernels: Vec<Kernel>,
}

/// One kernel's row of the metadata.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Kernel {
    #[serde(rename = ".name")]
    pub name: String,
    /// Of its descriptor: the name with `.kd`.
    #[serde(rename = ".symbol")]
    pub symbol: String,
    #[serde(rename = ".kernarg_segment_size")]
    pub kernarg_bytes: u32,
    #[serde(rename = ".kernarg_segment_align")]
    pub kernarg_align: u32,
    /// Static LDS.
    #[serde(rename = ".group_segment_fixed_size")]
    pub lds_bytes: u32,
    /// Scratch of one lane.
    #[serde(rename = ".private_segment_fixed_size")]
    pub scratch_bytes: u32,
    #[serde(rename = ".sgpr_count")]
    pub sgprs: u32,
    /// All that a lane takes: accumulation registers, where they are of the same file, are among them.
    #[serde(rename = ".vgpr_count")]
    pub vgprs: u32,
    #[serde(rename = ".wavefront_size")]
    pub wave: u32,
    #[serde(rename = ".max_flat_workgroup_size")]
    pub max_threads: u32,
    #[serde(rename = ".args", default)]
    pub args: Vec<Argument>,
}

/// One argument in the kernarg segment.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Argument {
    #[serde(rename = ".offset")]
    pub offset: u32,
    #[serde(rename = ".size")]
    pub bytes: u32,
    /// `by_value`, `global_buffer`, `hidden_…`
    #[serde(rename = ".value_kind")]
    pub kind: String,
}

#[derive(Deserialize)]
struct Metadata {
    #[serde(rename = "amdhsa.target", default)]
    target: String,
    #[serde(rename = "amdhsa.kernels")]
    kernels: Vec<Kernel>,
}

impl CodeObject {
    /// Looks into what a compiler made. Old linkers leave names that nobody defines and say nothing.
    pub fn read(bytes: Vec<u8>) -> Result<CodeObject, Error> {
        let damaged = |error: object::Error| Error::Damaged(error.to_string());
        let elf = ElfFile::<FileHeader64<Endianness>>::parse(&*bytes).map_err(damaged)?;
        let endian = elf.endian();
        if elf.elf_header().e_machine(endian) != EM_AMDGPU {
            return Err(Error::Damaged("an ELF file for another machine".to_owned()));
        }
        let undefined = elf.dynamic_symbols().filter(|symbol| symbol.is_undefined());
        let undefined: Vec<String> = undefined
            .filter_map(|symbol| symbol.name().ok().filter(|name| !name.is_empty()).map(str::to_owned))
            .collect();
        if !undefined.is_empty() {
            return Err(Error::Undefined(undefined));
        }
        let mut metadata = None;
        for segment in elf.elf_program_headers() {
            let Some(mut notes) = segment.notes(endian, &*bytes).map_err(damaged)? else { continue };
            while let Some(note) = notes.next().map_err(damaged)? {
                if note.name() == b"AMDGPU" && note.n_type(endian) == NT_AMDGPU_METADATA {
                    let read = rmp_serde::from_slice::<Metadata>(note.desc());
                    metadata = Some(read.map_err(|error| Error::Damaged(error.to_string()))?);
                }
            }
        }
        let Metadata { target, kernels } =
            metadata.ok_or_else(|| Error::Damaged("no metadata of its kernels".to_owned()))?;
        Ok(CodeObject { bytes, target, kernels })
    }

    #[must_use]
    pub fn kernel(&self, name: &str) -> Option<&Kernel> {
        self.kernels.iter().find(|kernel| kernel.name == name)
    }
}

impl Kernel {
    /// The arguments that the program gives; the others are the compiler's own agreement with HIP.
    pub fn explicit_args(&self) -> impl Iterator<Item = &Argument> {
        self.args.iter().filter(|argument| !argument.kind.starts_with("hidden_"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_code_object_is_named() {
        let error = CodeObject::read(b"text".to_vec()).unwrap_err();
        assert!(matches!(error, Error::Damaged(_)), "{error}");
        let own = std::fs::read("/proc/self/exe").unwrap();
        let error = CodeObject::read(own).unwrap_err();
        assert_eq!(error, Error::Damaged("an ELF file for another machine".to_owned()));
    }
}
