//! What an object's imports, in memory, tell of it before its file is opened.
//! The rule: only what the loader itself reads is read, and an object that cannot be judged may hold a runtime.

use core::ffi::CStr;

/// Every runtime of CUDA imports it, static or shared (17 releases from 10.0 to 13.5 were looked at), and hardly anything else
/// does (of Debian's libraries and programs on our test machine, one): so few files need to be opened.
const IMPORTED: &CStr = c"pthread_rwlockattr_setpshared";

const DT_NULL: usize = 0;
const DT_PLTRELSZ: usize = 2;
const DT_STRTAB: usize = 5;
const DT_SYMTAB: usize = 6;
const DT_RELA: usize = 7;
const DT_RELASZ: usize = 8;
const DT_STRSZ: usize = 10;
const DT_JMPREL: usize = 23;
const DT_RELACOUNT: usize = 0x6fff_fff9;
const DT_GNU_HASH: usize = 0x6fff_fef5;

/// `Elf64_Sym`
#[repr(C)]
struct Symbol {
    name: u32,
    kind: u8,
    visibility: u8,
    /// 0: an import.
    section: u16,
    value: u64,
    size: u64,
}

/// `Elf64_Rela`
#[repr(C)]
struct Relocation {
    offset: u64,
    info: u64,
    addend: i64,
}

/// Whether the object, mapped with this bias and dynamic section, may hold a runtime.
///
/// # Safety
/// The loader has the object in its list, and keeps it mapped meanwhile.
pub unsafe fn may_hold_runtime(bias: usize, dynamic: usize) -> bool {
    // SAFETY: the caller's promise.
    unsafe { Tables::read(bias, dynamic).is_none_or(|tables| tables.imports(IMPORTED)) }
}

/// What the dynamic section names, as addresses and bytes.
#[derive(Default)]
struct Tables {
    symbols: usize,
    strings: usize,
    strings_bytes: usize,
    relocations: usize,
    relocations_bytes: usize,
    /// The first ones, which are about no symbol.
    n_relative: usize,
    calls: usize,
    calls_bytes: usize,
    gnu_hash: usize,
}

impl Tables {
    /// # Safety
    /// As [`may_hold_runtime`].
    unsafe fn read(bias: usize, dynamic: usize) -> Option<Tables> {
        let mut tables = Tables::default();
        // The loader adds the bias in place, but for objects that it may not write to.
        let address = |value: usize| if value < bias { value.wrapping_add(bias) } else { value };
        let mut entry = dynamic as *const [usize; 2];
        loop {
            // SAFETY: the section ends with DT_NULL, as the loader relies on.
            match unsafe { entry.read() } {
                [DT_NULL, _] => break,
                [DT_SYMTAB, value] => tables.symbols = address(value),
                [DT_STRTAB, value] => tables.strings = address(value),
                [DT_STRSZ, value] => tables.strings_bytes = value,
                [DT_RELA, value] => tables.relocations = address(value),
                [DT_RELASZ, value] => tables.relocations_bytes = value,
                [DT_RELACOUNT, value] => tables.n_relative = value,
                [DT_JMPREL, value] => tables.calls = address(value),
                [DT_PLTRELSZ, value] => tables.calls_bytes = value,
                [DT_GNU_HASH, value] => tables.gnu_hash = address(value),
                _ => {}
            }
            // SAFETY: not past DT_NULL.
            entry = unsafe { entry.add(1) };
        }
        (tables.symbols != 0 && tables.strings != 0).then_some(tables)
    }

    /// Whether the object imports a symbol of this name.
    ///
    /// # Safety
    /// As [`may_hold_runtime`].
    unsafe fn imports(&self, name: &CStr) -> bool {
        let name = name.to_bytes_with_nul();
        // SAFETY: the table that the loader takes names from.
        let strings = unsafe { slice::<u8>(self.strings, self.strings_bytes) };
        // Most names differ in their first letter, and there are thousands.
        let is_it = |symbol: &Symbol| {
            let found = strings.get(symbol.name as usize..).unwrap_or(&[]);
            symbol.section == 0 && found.first() == name.first() && found.starts_with(name)
        };
        // SAFETY: the caller's promise.
        if let Some(symbols) = unsafe { self.without_hash() } {
            return symbols.iter().any(is_it);
        }
        // SAFETY: the tables that the loader goes through.
        let [data, calls] = unsafe {
            [
                slice::<Relocation>(self.relocations, self.relocations_bytes),
                slice(self.calls, self.calls_bytes),
            ]
        };
        let data = data.get(self.n_relative..).unwrap_or(&[]);
        data.iter().chain(calls).any(|relocation| {
            let index = (relocation.info >> 32) as usize;
            // SAFETY: the loader looks the relocation's symbol up in this table.
            index != 0 && is_it(unsafe { &*(self.symbols as *const Symbol).add(index) })
        })
    }

    /// The symbols in front of those that the GNU hash table finds: each import once, one after the other, where the relocations
    /// name it as often as it is used. None where the table is missing, or empty, when it does not tell how many there are.
    ///
    /// # Safety
    /// As [`may_hold_runtime`].
    unsafe fn without_hash(&self) -> Option<&[Symbol]> {
        if self.gnu_hash == 0 {
            return None;
        }
        // SAFETY: the table's head: numbers of buckets, of symbols before the first with a hash, of words of the filter, and a shift.
        let [_, n, ..] = unsafe { *(self.gnu_hash as *const [u32; 4]) };
        // SAFETY: the symbol table has those with a hash behind them.
        (n > 1).then(|| unsafe { slice(self.symbols, n as usize * size_of::<Symbol>()) })
    }
}

/// # Safety
/// `bytes` at `address` are mapped and not written to, or there are none.
unsafe fn slice<'a, T>(address: usize, bytes: usize) -> &'a [T] {
    if address == 0 {
        return &[];
    }
    // SAFETY: the caller's promise; the tables of an ELF file are aligned.
    unsafe { core::slice::from_raw_parts(address as *const T, bytes / size_of::<T>()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bias and the dynamic section of the object that holds an address, from the loader.
    fn object_of(address: *const core::ffi::c_void) -> (usize, usize) {
        let mut info: libc::Dl_info = unsafe { core::mem::zeroed() };
        let mut map: *mut core::ffi::c_void = core::ptr::null_mut();
        assert_ne!(unsafe { libc::dladdr1(address, &mut info, &mut map, 2) }, 0);
        // struct link_map: the bias, the name, the dynamic section.
        let [bias, _, dynamic] = unsafe { *map.cast::<[usize; 3]>() };
        (bias, dynamic)
    }

    #[test]
    fn imports_are_told_from_exports_and_from_names_that_are_not_there() {
        let here = object_of(object_of as *const _);
        let libc = object_of(libc::getpid as *const _);
        let by_symbols = |(bias, dynamic)| unsafe { Tables::read(bias, dynamic).unwrap() };
        let by_relocations = |object| Tables { gnu_hash: 0, ..by_symbols(object) };
        for tables in [&by_symbols as &dyn Fn(_) -> Tables, &by_relocations] {
            let imports = |object, name| unsafe { tables(object).imports(name) };
            assert!(imports(here, c"dladdr1"));
            assert!(!imports(here, c"dladdr"));
            assert!(!imports(here, c"no_such_name"));
            assert!(!imports(libc, IMPORTED), "libc exports it, and does not import it");
        }
        let tables = by_symbols(libc);
        assert!(unsafe { tables.without_hash() }.is_some(), "so the first way was tried");
        assert!(!unsafe { may_hold_runtime(libc.0, libc.1) });
    }
}
