//! What an object's tables in memory tell of it before its file is opened: what it imports and exports.
//! The rule: only what the loader itself reads is read, and an object that cannot be judged may hold a runtime.

use core::ffi::CStr;

/// Every runtime of CUDA imports it, static or shared (17 releases from 10.0 to 13.5 were looked at), and hardly anything else
/// does (of Debian's libraries and programs on our test machine, one): so few files need to be opened.
const BY_RUNTIMES: &CStr = c"pthread_rwlockattr_setpshared";

/// NVRTC, nvPTXCompiler and nvFatbin import it as static libraries (11.8, 12.4, 13.5), and hardly anything else does (5 of 951 there).
const BY_COMPILERS: &CStr = c"sched_get_priority_max";

const DT_NULL: usize = 0;
const DT_PLTRELSZ: usize = 2;
const DT_HASH: usize = 4;
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
pub struct Symbol {
    name: u32,
    /// What it is, and how it binds.
    info: u8,
    visibility: u8,
    /// 0: an import.
    section: u16,
    pub value: u64,
    pub size: u64,
}

/// `Elf64_Rela`
#[repr(C)]
struct Relocation {
    offset: u64,
    info: u64,
    addend: i64,
}

/// What the dynamic section names, as addresses and bytes.
#[derive(Default)]
pub struct Tables {
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
    /// The older one, which few objects have alone.
    hash: usize,
}

impl Tables {
    /// The tables of an object that is mapped with this bias and dynamic section.
    ///
    /// # Safety
    /// The loader has the object in its list, and keeps it mapped as long as the tables are looked at.
    pub unsafe fn read(bias: usize, dynamic: usize) -> Option<Tables> {
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
                [DT_HASH, value] => tables.hash = address(value),
                _ => {}
            }
            // SAFETY: not past DT_NULL.
            entry = unsafe { entry.add(1) };
        }
        (tables.symbols != 0 && tables.strings != 0).then_some(tables)
    }

    /// Whether a runtime may have been linked into the object.
    ///
    /// # Safety
    /// As [`Tables::read`].
    pub unsafe fn may_hold_runtime(&self) -> bool {
        // SAFETY: the caller's promise.
        unsafe { self.imports(BY_RUNTIMES) }
    }

    /// Likewise one of the libraries in [`crate::compilers`].
    ///
    /// # Safety
    /// As [`Tables::read`].
    pub unsafe fn may_hold_compiler(&self) -> bool {
        // SAFETY: the caller's promise.
        unsafe { self.imports(BY_COMPILERS) }
    }

    /// The function that the object exports by this name.
    ///
    /// # Safety
    /// As [`Tables::read`].
    pub unsafe fn exported(&self, name: &CStr) -> Option<&Symbol> {
        const STT_FUNC: u8 = 2;
        // SAFETY: the caller's promise; the loader looks names up in the same tables.
        let index = unsafe {
            match (self.gnu_hash, self.hash) {
                (0, 0) => None,
                (0, _) => self.by_hash(name),
                _ => self.by_gnu_hash(name),
            }
        }?;
        // SAFETY: the hash table names symbols that are there.
        let symbol = unsafe { self.symbol(index) };
        (symbol.section != 0 && symbol.info & 0xf == STT_FUNC && symbol.size > 0).then_some(symbol)
    }

    /// # Safety
    /// The symbol is there.
    unsafe fn symbol(&self, index: u32) -> &Symbol {
        // SAFETY: the caller's promise.
        unsafe { &*(self.symbols as *const Symbol).add(index as usize) }
    }

    /// # Safety
    /// As [`Tables::symbol`].
    unsafe fn is_named(&self, index: u32, name: &CStr) -> bool {
        // SAFETY: the table that the loader takes names from.
        let strings = unsafe { slice::<u8>(self.strings, self.strings_bytes) };
        // SAFETY: the caller's promise.
        let at = unsafe { self.symbol(index) }.name as usize;
        strings.get(at..).is_some_and(|rest| rest.starts_with(name.to_bytes_with_nul()))
    }

    /// # Safety
    /// The object has a `DT_GNU_HASH`.
    unsafe fn by_gnu_hash(&self, name: &CStr) -> Option<u32> {
        let hash = name
            .to_bytes()
            .iter()
            .fold(5381u32, |hash, &byte| hash.wrapping_mul(33).wrapping_add(byte.into()));
        // SAFETY: the table's head: numbers of buckets, of symbols before the first with a hash, of words of the filter, and a shift.
        let [n_buckets, n_before, n_words, shift] = unsafe { *(self.gnu_hash as *const [u32; 4]) };
        if n_buckets == 0 || n_words == 0 {
            return None;
        }
        let filter = self.gnu_hash + 16;
        let buckets = filter + n_words as usize * 8;
        let chains = buckets + n_buckets as usize * 4;
        // SAFETY: `index` is below the number of the table's elements, for the tables that lie behind the head.
        let word = |table: usize, index: u32| unsafe { *(table as *const u32).add(index as usize) };
        // SAFETY: as above.
        let bits = unsafe { *(filter as *const u64).add((hash / 64 % n_words) as usize) };
        if bits >> (hash % 64) & 1 == 0 || bits >> ((hash >> (shift % 32)) % 64) & 1 == 0 {
            return None;
        }
        let mut index = word(buckets, hash % n_buckets);
        // A chain ends with a hash that is odd, an empty bucket is 0.
        while index >= n_before && index != 0 {
            let found = word(chains, index - n_before);
            // SAFETY: a symbol of the chain.
            if found | 1 == hash | 1 && unsafe { self.is_named(index, name) } {
                return Some(index);
            }
            if found & 1 == 1 {
                break;
            }
            index += 1;
        }
        None
    }

    /// # Safety
    /// The object has a `DT_HASH`.
    unsafe fn by_hash(&self, name: &CStr) -> Option<u32> {
        let hash = name.to_bytes().iter().fold(0u32, |hash, &byte| {
            let hash = (hash << 4).wrapping_add(byte.into());
            (hash ^ (hash >> 24 & 0xf0)) & 0x0fff_ffff
        });
        // SAFETY: the table's head: numbers of buckets and of symbols.
        let [n_buckets, n_symbols] = unsafe { *(self.hash as *const [u32; 2]) };
        let bucket = hash.checked_rem(n_buckets)?;
        let chains = 2 + n_buckets;
        // SAFETY: below the number of the table's elements.
        let word = |index: u32| unsafe { *(self.hash as *const u32).add(index as usize) };
        let mut index = word(2 + bucket);
        // No chain is longer than the table.
        for _ in 0..n_symbols {
            if index == 0 || index >= n_symbols {
                return None;
            }
            // SAFETY: as above.
            if unsafe { self.is_named(index, name) } {
                return Some(index);
            }
            index = word(chains + index);
        }
        None
    }

    /// Whether the object imports a symbol of this name.
    ///
    /// # Safety
    /// As [`Tables::read`].
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
    /// As [`Tables::read`].
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
        // SAFETY: all-zero is a valid Dl_info.
        let mut info: libc::Dl_info = unsafe { core::mem::zeroed() };
        let mut map: *mut core::ffi::c_void = core::ptr::null_mut();
        // SAFETY: dladdr1 accepts any address, and writes both.
        assert_ne!(unsafe { libc::dladdr1(address, &mut info, &mut map, 2) }, 0);
        // SAFETY: struct link_map: the bias, the name, the dynamic section.
        let [bias, _, dynamic] = unsafe { *map.cast::<[usize; 3]>() };
        (bias, dynamic)
    }

    #[test]
    fn imports_are_told_from_exports_and_from_names_that_are_not_there() {
        let here = object_of(object_of as *const _);
        let libc = object_of(libc::getpid as *const _);
        // SAFETY: of objects that stay loaded.
        let by_symbols = |(bias, dynamic)| unsafe { Tables::read(bias, dynamic).unwrap() };
        let by_relocations = |object| Tables { gnu_hash: 0, ..by_symbols(object) };
        for tables in [&by_symbols as &dyn Fn(_) -> Tables, &by_relocations] {
            // SAFETY: as above.
            let imports = |object, name| unsafe { tables(object).imports(name) };
            assert!(imports(here, c"dladdr1"));
            assert!(!imports(here, c"dladdr"));
            assert!(!imports(here, c"no_such_name"));
            assert!(!imports(libc, BY_RUNTIMES), "libc exports it, and does not import it");
        }
        let tables = by_symbols(libc);
        // SAFETY: as above.
        assert!(unsafe { tables.without_hash() }.is_some(), "so the first way was tried");
        // SAFETY: as above.
        assert!(!unsafe { tables.may_hold_runtime() });
    }

    #[test]
    fn exported_functions_are_found_by_either_hash_table() {
        let folder = tempfile::tempdir().unwrap();
        for (style, has_gnu) in [("gnu", true), ("sysv", false), ("both", true)] {
            let (source, library) = (folder.path().join("l.c"), folder.path().join(format!("{style}.so")));
            let functions: String =
                (0..200).map(|n| format!("int function_{n}(void) {{ return {n}; }}\n")).collect();
            std::fs::write(
                &source,
                functions
                    + "int variable = 1; extern int absent(void); int user(void) { return absent(); }\n",
            )
            .unwrap();
            let status = std::process::Command::new("cc")
                .args(["-shared", "-fPIC", "-nostdlib", &format!("-Wl,--hash-style={style}"), "-o"])
                .args([&library, &source])
                .status();
            assert!(status.unwrap().success());
            let path = std::ffi::CString::new(library.to_str().unwrap()).unwrap();
            // SAFETY: a library without constructors.
            let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_LAZY) };
            assert!(!handle.is_null());
            // SAFETY: the library stays open.
            let symbol = |name: &CStr| unsafe { libc::dlsym(handle, name.as_ptr()) };
            let (bias, dynamic) = object_of(symbol(c"function_0"));
            // SAFETY: as above.
            let tables = unsafe { Tables::read(bias, dynamic).unwrap() };
            assert_eq!(tables.gnu_hash != 0, has_gnu);
            for n in 0..200 {
                let name = std::ffi::CString::new(format!("function_{n}")).unwrap();
                // SAFETY: as above.
                let found = unsafe { tables.exported(&name) }.unwrap_or_else(|| panic!("{style} {n}"));
                assert_eq!(bias + found.value as usize, symbol(&name) as usize, "{style} {n}");
            }
            for name in [c"function_200", c"variable", c"absent", c"", c"function_"] {
                // SAFETY: as above.
                assert!(unsafe { tables.exported(name) }.is_none(), "{style} {name:?}");
            }
        }
    }
}
