//! Object code → callable functions: a linker for what LLVM's code generator makes of our texts (System V ABI, AMD64
//! supplement, "Relocation"), which takes a few microseconds and leaves nothing behind but the code.
//!
//! Code, constants, and a table of what the code calls outside of itself lie side by side in [`Pages`]. Data that could be
//! written to has no place there: a kernel's variables are the module's, never the object's.

use std::collections::HashMap;
use std::ffi::c_void;
use std::io;
use std::ptr;

use object::elf;
use object::read::{
    Object as _, ObjectSection as _, ObjectSymbol as _, RelocationTarget, SectionIndex, SymbolIndex,
};
use object::{RelocationFlags, SectionFlags, SymbolSection};

use super::pages::{Pages, Sealed};
use super::{Error, exchanges};

/// Object code in executable memory; dropping it unmaps the code.
pub struct Code {
    pages: Sealed,
    /// Where exported functions begin, from the start of the pages.
    functions: Vec<(Box<str>, usize)>,
    stack_bytes: usize,
}

impl Code {
    /// Links object code that [`compile`](super::compile) made (now or in another run) into this process.
    pub fn load(object: &[u8]) -> Result<Code, Error> {
        let file = object::File::parse(object).map_err(not_read)?;
        let is_ours =
            file.architecture() == object::Architecture::X86_64 && file.format() == object::BinaryFormat::Elf;
        if !is_ours || file.kind() != object::ObjectKind::Relocatable {
            return Err(Error::Load("not object code for x86-64".to_owned()));
        }
        let layout = Layout::of(&file)?;
        let pages = Pages::new(layout.len).map_err(Error::from)?;
        let base = pages.address();
        let pages = pages.seal(|memory| layout.link(&file, base, memory))?;
        Ok(Code { pages, functions: layout.functions, stack_bytes: stack_bytes(&file)? })
    }

    /// Bytes of stack that all functions of the code take together, each called once; small frames do not count.
    pub fn stack_bytes(&self) -> usize {
        self.stack_bytes
    }

    /// Address of an exported function.
    pub fn function(&self, name: &str) -> Result<*const c_void, Error> {
        let (_, offset) = self
            .functions
            .iter()
            .find(|(it, _)| **it == *name)
            .ok_or_else(|| Error::Load(format!("there is no function {name}")))?;
        Ok(ptr::with_exposed_provenance(self.pages.address() + offset))
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Error {
        Error::Load(format!("no memory for code: {error}"))
    }
}

fn not_read(error: object::Error) -> Error {
    Error::Load(format!("object code: {error}"))
}

/// Functions of others that the code calls have an entry each: their address, and a jump there for calls that do not reach so far.
const ENTRY: usize = 16;

/// `jmp [rip - 14]`: to the address that stands before it.
const JUMP: [u8; 8] = [0xff, 0x25, 0xf2, 0xff, 0xff, 0xff, 0x90, 0x90];

/// What the object's functions subtract from the stack pointer before they do anything else: code that LLVM made in little time has a
/// place on the stack for each of its vectors.
fn stack_bytes(file: &object::File<'_>) -> Result<usize, Error> {
    let mut all = 0usize;
    for symbol in file.symbols().filter(|it| it.is_definition() && it.kind() == object::SymbolKind::Text) {
        let SymbolSection::Section(section) = symbol.section() else { continue };
        let data = file.section_by_index(section).and_then(|it| it.data()).map_err(not_read)?;
        let start = usize::try_from(symbol.address()).unwrap_or(usize::MAX);
        let code = data.get(start..).unwrap_or_default();
        all = all.saturating_add(frame_bytes(&code[..code.len().min(PROLOGUE)]));
    }
    Ok(all)
}

/// Before a function subtracts its frame from the stack pointer it saves at most seven registers and aligns the pointer.
const PROLOGUE: usize = 40;
/// `sub rsp, imm32`.
const SUBTRACT: [u8; 3] = [0x48, 0x81, 0xec];

fn frame_bytes(prologue: &[u8]) -> usize {
    let at = prologue.windows(SUBTRACT.len()).position(|bytes| bytes == SUBTRACT);
    let bytes = at.and_then(|at| prologue[at + SUBTRACT.len()..].first_chunk());
    bytes.map_or(0, |bytes| i32::from_le_bytes(*bytes).max(0) as usize)
}

/// Where everything goes, from the start of the pages.
struct Layout {
    sections: HashMap<SectionIndex, usize>,
    /// The entry of what lies outside of the object, and its address.
    outside: HashMap<SymbolIndex, (usize, usize)>,
    /// Where an address of the object's own stands for code that asks for it through a table.
    slots: HashMap<SymbolIndex, usize>,
    functions: Vec<(Box<str>, usize)>,
    len: usize,
}

impl Layout {
    fn of(file: &object::File<'_>) -> Result<Layout, Error> {
        let mut layout = Layout {
            sections: HashMap::new(),
            outside: HashMap::new(),
            slots: HashMap::new(),
            functions: vec![],
            len: 0,
        };
        for section in file.sections().filter(|it| is_loaded(it)) {
            let name = section.name().unwrap_or("?");
            if is_written(&section) {
                return Err(Error::Load(format!("object code has variables: {name}")));
            }
            let align = usize::try_from(section.align()).unwrap_or(usize::MAX).max(1);
            let size = usize::try_from(section.size()).unwrap_or(usize::MAX);
            let place = layout.len.checked_next_multiple_of(align).filter(|_| align <= 4096);
            let end =
                place.and_then(|place| place.checked_add(size)).filter(|end| *end < isize::MAX as usize);
            let (Some(place), Some(end)) = (place, end) else {
                return Err(Error::Load(format!("object code: section {name} has no bounds")));
            };
            layout.sections.insert(section.index(), place);
            layout.len = end;
        }
        layout.len = layout.len.next_multiple_of(ENTRY);
        layout.add_tables(file)?;
        for symbol in file.symbols().filter(|it| it.is_global() && it.is_definition()) {
            let name = symbol.name().map_err(not_read)?;
            layout.functions.push((name.into(), layout.place_of(&symbol)?));
        }
        Ok(layout)
    }

    /// Entries for what relocations name and the object has not, and for what they want the address of.
    fn add_tables(&mut self, file: &object::File<'_>) -> Result<(), Error> {
        for section in file.sections().filter(|it| self.sections.contains_key(&it.index())) {
            for (_, relocation) in section.relocations() {
                let RelocationTarget::Symbol(index) = relocation.target() else { continue };
                let symbol = file.symbol_by_index(index).map_err(not_read)?;
                if symbol.is_undefined() {
                    if !self.outside.contains_key(&index) {
                        let name = symbol.name().map_err(not_read)?;
                        let address = outside(name).ok_or_else(|| {
                            Error::Load(format!("object code wants {name}, which is not there"))
                        })?;
                        self.outside.insert(index, (self.len, address));
                        self.len += ENTRY;
                    }
                } else if is_through_table(relocation.flags()) && !self.slots.contains_key(&index) {
                    self.slots.insert(index, self.len);
                    self.len += ENTRY;
                }
            }
        }
        Ok(())
    }

    /// Where a symbol of the object's own lies.
    fn place_of(&self, symbol: &object::Symbol<'_, '_>) -> Result<usize, Error> {
        let nowhere = || Error::Load(format!("object code: {} is nowhere", symbol.name().unwrap_or("?")));
        let SymbolSection::Section(section) = symbol.section() else { return Err(nowhere()) };
        let place = self.sections.get(&section).ok_or_else(nowhere)?;
        // A section's end is a place too.
        let offset =
            usize::try_from(symbol.address()).ok().filter(|it| *it <= self.len).ok_or_else(nowhere)?;
        Ok(place + offset)
    }

    /// Writes it all to `memory`, which lies at `base` and has zeros.
    fn link(&self, file: &object::File<'_>, base: usize, memory: &mut [u8]) -> Result<(), Error> {
        for section in file.sections() {
            let Some(&place) = self.sections.get(&section.index()) else { continue };
            let data = section.data().map_err(not_read)?;
            memory.get_mut(place..place + data.len()).ok_or_else(out_of_bounds)?.copy_from_slice(data);
        }
        for &(place, address) in self.outside.values() {
            write(memory, place, &address.to_le_bytes())?;
            write(memory, place + 8, &JUMP)?;
        }
        for (&index, &place) in &self.slots {
            let symbol = file.symbol_by_index(index).map_err(not_read)?;
            write(memory, place, &(base + self.place_of(&symbol)?).to_le_bytes())?;
        }
        for section in file.sections() {
            let Some(&place) = self.sections.get(&section.index()) else { continue };
            for (offset, relocation) in section.relocations() {
                let size = section.size();
                let offset = usize::try_from(offset)
                    .ok()
                    .filter(|it| (*it as u64) < size)
                    .ok_or_else(out_of_bounds)?;
                self.relocate(file, base, memory, place + offset, &relocation)?;
            }
        }
        Ok(())
    }

    fn relocate(
        &self,
        file: &object::File<'_>,
        base: usize,
        memory: &mut [u8],
        place: usize,
        relocation: &object::Relocation,
    ) -> Result<(), Error> {
        let RelocationTarget::Symbol(index) = relocation.target() else {
            return Err(Error::Load("object code: a relocation without a symbol".to_owned()));
        };
        let RelocationFlags::Elf { r_type } = relocation.flags() else { return Err(out_of_bounds()) };
        let symbol = file.symbol_by_index(index).map_err(not_read)?;
        // From the start of the pages, but for what lies outside of them.
        let outside = self.outside.get(&index);
        let slot =
            || outside.map(|it| it.0).or_else(|| self.slots.get(&index).copied()).ok_or_else(out_of_bounds);
        let value = |offset: usize| (base + offset) as i64;
        let (target, is_relative, n_bytes) = match r_type {
            elf::R_X86_64_64 => match outside {
                Some(&(_, address)) => (address as i64, false, 8),
                None => (value(self.place_of(&symbol)?), false, 8),
            },
            elf::R_X86_64_PC32 | elf::R_X86_64_PLT32 | elf::R_X86_64_PC64 => {
                let n_bytes = if r_type == elf::R_X86_64_PC64 { 8 } else { 4 };
                match outside {
                    // The jump of its entry.
                    Some(&(entry, _)) => (value(entry + 8), true, n_bytes),
                    None => (value(self.place_of(&symbol)?), true, n_bytes),
                }
            }
            elf::R_X86_64_GOTPCREL | elf::R_X86_64_GOTPCRELX | elf::R_X86_64_REX_GOTPCRELX => {
                (value(slot()?), true, 4)
            }
            _ => {
                return Err(Error::Load(format!("object code: relocations of type {r_type} are not linked")));
            }
        };
        let from = if is_relative { value(place) } else { 0 };
        let value = target.wrapping_add(relocation.addend()).wrapping_sub(from);
        match n_bytes {
            8 => write(memory, place, &value.to_le_bytes()),
            _ => write(memory, place, &i32::try_from(value).map_err(|_| out_of_bounds())?.to_le_bytes()),
        }
    }
}

fn is_loaded(section: &object::Section<'_, '_>) -> bool {
    // Nobody unwinds through kernels: what they call neither panics nor throws.
    let is_unwinding = section.name().is_ok_and(|name| name == ".eh_frame");
    let SectionFlags::Elf { sh_flags, .. } = section.flags() else { return false };
    sh_flags.0 & elf::SHF_ALLOC.0 != 0 && section.size() > 0 && !is_unwinding
}

/// Whether it has what code may write to; `.data.rel.ro` has addresses, and is written to by linkers alone.
fn is_written(section: &object::Section<'_, '_>) -> bool {
    let SectionFlags::Elf { sh_flags, .. } = section.flags() else { return true };
    let is_linkers = section.name().is_ok_and(|name| name.starts_with(".data.rel.ro"));
    sh_flags.0 & elf::SHF_WRITE.0 != 0 && !is_linkers || sh_flags.0 & elf::SHF_TLS.0 != 0
}

fn is_through_table(flags: RelocationFlags) -> bool {
    let RelocationFlags::Elf { r_type } = flags else { return false };
    matches!(r_type, elf::R_X86_64_GOTPCREL | elf::R_X86_64_GOTPCRELX | elf::R_X86_64_REX_GOTPCRELX)
}

fn out_of_bounds() -> Error {
    Error::Load("object code: a relocation out of bounds".to_owned())
}

fn write(memory: &mut [u8], place: usize, bytes: &[u8]) -> Result<(), Error> {
    let end = place.checked_add(bytes.len()).ok_or_else(out_of_bounds)?;
    memory.get_mut(place..end).ok_or_else(out_of_bounds)?.copy_from_slice(bytes);
    Ok(())
}

unsafe extern "C" {
    fn __udivti3(a: u128, b: u128) -> u128;
    fn __umodti3(a: u128, b: u128) -> u128;
    fn __divti3(a: i128, b: i128) -> i128;
    fn __modti3(a: i128, b: i128) -> i128;
    fn __multi3(a: i128, b: i128) -> i128;
}

// Half-precision conversions of processors without F16C, which take and give halves as LLVM does: in vector registers.
unsafe extern "C" {
    fn __extendhfsf2();
    fn __truncsfhf2();
    fn __truncdfhf2();
}

unsafe extern "C" {
    fn fma(a: f64, b: f64, c: f64) -> f64;
    fn fmaf(a: f32, b: f32, c: f32) -> f32;
    fn fmin(a: f64, b: f64) -> f64;
    fn fminf(a: f32, b: f32) -> f32;
    fn fmax(a: f64, b: f64) -> f64;
    fn fmaxf(a: f32, b: f32) -> f32;
    fn fmod(a: f64, b: f64) -> f64;
    fn fmodf(a: f32, b: f32) -> f32;
    fn floor(a: f64) -> f64;
    fn floorf(a: f32) -> f32;
    fn ceil(a: f64) -> f64;
    fn ceilf(a: f32) -> f32;
    fn trunc(a: f64) -> f64;
    fn truncf(a: f32) -> f32;
    fn rint(a: f64) -> f64;
    fn rintf(a: f32) -> f32;
    fn nearbyint(a: f64) -> f64;
    fn nearbyintf(a: f32) -> f32;
    fn roundeven(a: f64) -> f64;
    fn roundevenf(a: f32) -> f32;
    fn sqrt(a: f64) -> f64;
    fn sqrtf(a: f32) -> f32;
    fn ldexp(a: f64, b: i32) -> f64;
    fn ldexpf(a: f32, b: i32) -> f32;
}

/// What LLVM's code generator may call on its own, and what baseline code does. Defined here, so that a function of the same name in the
/// program is never taken.
fn outside(name: &str) -> Option<usize> {
    macro_rules! table {
        ($($name:ident)*) => { [$((stringify!($name), ($name as *const c_void).expose_provenance())),*] };
    }
    use libc::{memcmp, memcpy, memmove, memset};
    let table = table! {
        memcpy memmove memset memcmp
        __udivti3 __umodti3 __divti3 __modti3 __multi3
        __extendhfsf2 __truncsfhf2 __truncdfhf2
        fma fmaf fmin fminf fmax fmaxf fmod fmodf floor floorf ceil ceilf trunc truncf rint rintf nearbyint nearbyintf
        roundeven roundevenf sqrt sqrtf ldexp ldexpf
    };
    let known = table.iter().find(|(it, _)| *it == name).map(|(_, address)| *address);
    known.or_else(|| exchanges::address(name))
}

#[cfg(test)]
mod tests {
    use super::super::{Effort, Target, compile};
    use super::*;

    fn object(text: &str) -> Vec<u8> {
        compile("test", text, Target::host(), Effort::Best).unwrap()
    }

    fn said(object: &[u8]) -> String {
        Code::load(object).err().map(|error| error.to_string()).unwrap_or_default()
    }

    /// The address of a function without arguments.
    fn address_of(code: &Code, name: &str) -> usize {
        let f = code.function(name).unwrap();
        // SAFETY: the texts below have this signature.
        unsafe { std::mem::transmute::<*const c_void, extern "C" fn() -> usize>(f)() }
    }

    /// Jumps through a table of 8 and constants in a section of their own.
    const TABLE: &str = "define i32 @f(i32 %n) {\n\
        switch i32 %n, label %z [i32 0, label %a i32 1, label %b i32 2, label %c i32 3, label %d i32 4, label %e i32 5, label %g]\n\
        a:\n call void @t(i32 3)\n br label %z\nb:\n call void @t(i32 1)\n br label %z\nc:\n call void @t(i32 4)\n br label %z\n\
        d:\n call void @t(i32 15)\n br label %z\ne:\n call void @t(i32 9)\n br label %z\ng:\n call void @t(i32 2)\n br label %z\n\
        z:\n %r = phi i32 [ -1, %0 ], [ 10, %a ], [ 11, %b ], [ 12, %c ], [ 13, %d ], [ 14, %e ], [ 15, %g ]\n ret i32 %r\n}\n\
        define void @t(i32 %n) noinline {\n call void asm sideeffect \"\", \"r\"(i32 %n)\n ret void\n}\n";

    #[test]
    fn jump_tables_and_calls_within_the_object_lead_where_they_should() {
        let code = Code::load(&object(TABLE)).unwrap();
        let f = code.function("f").unwrap();
        // SAFETY: the text has this signature.
        let f = unsafe { std::mem::transmute::<*const c_void, extern "C" fn(i32) -> i32>(f) };
        assert_eq!([0, 1, 2, 3, 4, 5, 6, -1].map(|n| f(n)), [10, 11, 12, 13, 14, 15, -1, -1]);
    }

    #[test]
    fn constants_are_read_and_addresses_are_absolute() {
        let code = Code::load(&object(
            "@words = constant [4 x i64] [i64 7, i64 9, i64 11, i64 13]\n\
             @places = constant [2 x ptr] [ptr getelementptr ([4 x i64], ptr @words, i64 0, i64 2), ptr @f]\n\
             define i64 @f(i64 %n) {\n %p = getelementptr [4 x i64], ptr @words, i64 0, i64 %n\n %v = load i64, ptr %p\n ret i64 %v\n}\n\
             define i64 @third() {\n %p = load volatile ptr, ptr @places\n %v = load i64, ptr %p\n ret i64 %v\n}\n\
             define ptr @own() {\n %at = getelementptr [2 x ptr], ptr @places, i64 0, i64 1\n %p = load volatile ptr, ptr %at\n ret ptr %p\n}\n",
        ))
        .unwrap();
        let f = code.function("f").unwrap();
        assert_eq!(address_of(&code, "own"), f.addr());
        assert_eq!(address_of(&code, "third"), 11);
        // SAFETY: the text has this signature.
        let f = unsafe { std::mem::transmute::<*const c_void, extern "C" fn(i64) -> i64>(f) };
        assert_eq!([0, 1, 2, 3].map(|n| f(n)), [7, 9, 11, 13]);
    }

    #[test]
    fn what_llvm_calls_is_ours() {
        let code = Code::load(&object(
            "declare double @fmod(double, double)\n\
             define double @f(double %a, double %b) {\n %r = call double @fmod(double %a, double %b)\n ret double %r\n}\n\
             define ptr @where() {\n ret ptr @fmod\n}\n",
        ))
        .unwrap();
        assert_eq!(address_of(&code, "where"), (fmod as *const c_void).addr());
        let f = code.function("f").unwrap();
        // SAFETY: the text has this signature.
        let f = unsafe { std::mem::transmute::<*const c_void, extern "C" fn(f64, f64) -> f64>(f) };
        assert_eq!(f(7.5, 2.0), 1.5);
    }

    #[test]
    fn an_unknown_symbol_is_an_error() {
        let text = "declare i32 @cudaway_nowhere()\ndefine i32 @f() {\n  %a = call i32 @cudaway_nowhere()\n  ret i32 %a\n}\n";
        assert!(said(&object(text)).contains("cudaway_nowhere"));
        let code = Code::load(&object("define i32 @f() {\n  ret i32 1\n}\n")).unwrap();
        assert!(code.function("g").unwrap_err().to_string().contains('g'));
    }

    #[test]
    fn variables_are_refused() {
        let text = "@v = global i32 5\ndefine i32 @f() {\n %a = load volatile i32, ptr @v\n ret i32 %a\n}\n";
        assert!(said(&object(text)).contains("has variables: .data"));
        let text = "@v = global i32 0\ndefine i32 @f() {\n %a = load volatile i32, ptr @v\n ret i32 %a\n}\n";
        assert!(said(&object(text)).contains("has variables: .bss"));
    }

    /// Bytes of an entry are verified by their hash; should they be wrong all the same, nothing outside of the pages is touched.
    #[test]
    fn no_bytes_take_the_process_down() {
        assert!(!said(b"").is_empty());
        assert!(!said(b"\x7fELF").is_empty());
        let whole = object(TABLE);
        for len in 0..whole.len() {
            let _ = Code::load(&whole[..len]);
        }
        for nth in 0..whole.len() {
            for change in [1, 0x80, 0xff] {
                let mut object = whole.clone();
                object[nth] ^= change;
                let _ = Code::load(&object);
            }
        }
    }

    #[test]
    fn code_of_another_processor_is_refused() {
        let mut object = object(TABLE);
        // e_machine: AArch64.
        object[18] = 183;
        assert!(said(&object).contains("not object code for x86-64"));
    }
}
