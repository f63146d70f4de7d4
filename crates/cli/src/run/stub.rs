//! Shared objects without code: a SONAME, and names of what they need.
//!
//! glibc compares a name that is asked for with the SONAME of everything loaded before it looks at any file, and slashes
//! are no obstacle. So a loaded object whose SONAME is `/usr/local/cuda/lib64/libcudart.so.12` answers for that path, and
//! names that are looked up in it are found in what it needs: in ours.

use object::Endianness;
use object::elf;
use object::write::elf::{FileHeader, ProgramHeader, Writer};

const PAGE_BYTES: u64 = 4096;

/// The bytes of an object with this SONAME; what it needs is looked for in `rpath` first, whatever LD_LIBRARY_PATH says. It has
/// no code, so a folder that is mounted `noexec` will do.
pub fn shared_object(soname: &str, needed: &[String], rpath: Option<&str>) -> object::write::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(Endianness::Little, true, &mut bytes);
    let soname = writer.add_dynamic_string(soname.as_bytes());
    let needed: Vec<_> = needed.iter().map(|name| writer.add_dynamic_string(name.as_bytes())).collect();
    let rpath = rpath.map(|folder| writer.add_dynamic_string(folder.as_bytes()));

    writer.reserve_file_header();
    writer.reserve_program_headers(4);
    writer.reserve_null_dynamic_symbol_index();
    // Sections are for people's tools; the loader reads segments.
    writer.reserve_hash_section_index();
    writer.reserve_dynsym_section_index();
    writer.reserve_dynstr_section_index();
    writer.reserve_dynamic_section_index();
    writer.reserve_shstrtab_section_index();
    // Without a bucket the loader passes the object by, whatever name it looks for.
    let hash = writer.reserve_hash(0, 1);
    let symbols = writer.reserve_dynsym();
    let strings = writer.reserve_dynstr()?;
    let string_bytes = u64::from(writer.dynstr_len());
    let read_only_bytes = writer.reserved_len();
    // glibc up to 2.34 writes addresses into the dynamic section.
    writer.reserve_until(read_only_bytes.next_multiple_of(PAGE_BYTES));
    let entries = [
        (elf::DT_HASH, hash),
        (elf::DT_STRTAB, strings),
        (elf::DT_SYMTAB, symbols),
        (elf::DT_STRSZ, string_bytes),
        (elf::DT_SYMENT, 24),
        (elf::DT_NULL, 0),
    ];
    let dynamic = writer.reserve_dynamic(1 + needed.len() + usize::from(rpath.is_some()) + entries.len());
    let dynamic_bytes = writer.reserved_len() - dynamic;
    writer.reserve_shstrtab()?;
    writer.reserve_section_headers();

    writer.write_file_header(&FileHeader {
        os_abi: elf::ELFOSABI_NONE,
        abi_version: 0,
        e_type: elf::ET_DYN,
        e_machine: elf::EM_X86_64,
        e_entry: 0,
        e_flags: elf::FileFlags(0),
    })?;
    writer.write_align_program_headers();
    let segment = |p_type, p_flags, at, len_bytes, p_align| ProgramHeader {
        p_type,
        p_flags,
        p_offset: at,
        p_vaddr: at,
        p_paddr: at,
        p_filesz: len_bytes,
        p_memsz: len_bytes,
        p_align,
    };
    writer.write_program_header(&segment(elf::PT_LOAD, elf::PF_R, 0, read_only_bytes, PAGE_BYTES));
    let writable = elf::PF_R | elf::PF_W;
    writer.write_program_header(&segment(elf::PT_LOAD, writable, dynamic, dynamic_bytes, PAGE_BYTES));
    writer.write_program_header(&segment(elf::PT_DYNAMIC, writable, dynamic, dynamic_bytes, 8));
    // Without this one the loader would make the process's stack executable.
    writer.write_program_header(&segment(elf::PT_GNU_STACK, writable, 0, 0, 16));
    writer.write_hash(0, 1, |_| None);
    writer.write_null_dynamic_symbol();
    writer.write_dynstr();
    writer.pad_until(dynamic);
    writer.write_align_dynamic();
    writer.write_dynamic_string(elf::DT_SONAME, soname)?;
    for name in needed {
        writer.write_dynamic_string(elf::DT_NEEDED, name)?;
    }
    if let Some(folder) = rpath {
        writer.write_dynamic_string(elf::DT_RPATH, folder)?;
    }
    for (tag, value) in entries {
        writer.write_dynamic(tag, value)?;
    }
    writer.write_shstrtab();
    writer.write_null_section_header();
    writer.write_hash_section_header(hash);
    writer.write_dynsym_section_header(symbols, 1);
    writer.write_dynstr_section_header(strings);
    writer.write_dynamic_section_header(dynamic);
    writer.write_shstrtab_section_header();
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::read::elf::{Dyn as _, FileHeader as _, ProgramHeader as _};

    #[test]
    fn the_object_says_what_it_was_made_with() {
        let needed = ["libcuda.so.1".to_owned(), "/a b/c.so".to_owned()];
        let bytes = shared_object("/usr/lib/libcuda.so", &needed, Some("$ORIGIN")).unwrap();
        let data = bytes.as_slice();
        let header = elf::FileHeader64::<Endianness>::parse(data).unwrap();
        let endian = header.endian().unwrap();
        let segments = header.program_headers(endian, data).unwrap();
        let dynamic = segments.iter().find_map(|it| it.dynamic(endian, data).unwrap()).unwrap();
        let value = |tag| dynamic.iter().find(|it| it.tag(endian) == tag).unwrap().val(endian);
        let strings = usize::try_from(value(elf::DT_STRTAB)).unwrap();
        let string = |at: u64| {
            let tail = &data[strings + usize::try_from(at).unwrap()..];
            core::ffi::CStr::from_bytes_until_nul(tail).unwrap().to_str().unwrap()
        };
        assert_eq!(string(value(elf::DT_SONAME)), "/usr/lib/libcuda.so");
        assert_eq!(string(value(elf::DT_RPATH)), "$ORIGIN");
        let found: Vec<&str> = dynamic
            .iter()
            .filter(|it| it.tag(endian) == elf::DT_NEEDED)
            .map(|it| string(it.val(endian)))
            .collect();
        assert_eq!(found, needed);
        let is_executable = |it: &elf::ProgramHeader64<_>| it.p_flags(endian).contains(elf::PF_X);
        assert!(!segments.iter().any(is_executable));
    }
}
