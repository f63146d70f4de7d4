//! NVIDIA's libraries that make machine code of PTX while a program runs, or pack it: NVRTC, nvPTXCompiler, nvFatbin.
//! Nothing here runs machine code, and each of them has the PTX. So those of their functions that hand out or take machine code
//! become jumps to ours ([`answer`]), which answer with the PTX of the same compilation.
//!
//! The rule: all of a library's functions become jumps or none does, since a program asks one for a size and the other for as
//! many bytes. The original functions can still be called, by what the jumps took the place of ([`crate::prologue`]): what such a
//! library refuses stays refused.

mod answer;

pub use answer::tell_by;

use core::ffi::CStr;
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::elf::{self, File};
use crate::memory::Tables;
use crate::patch::{self, Island, STUB_BYTES, Unprotected};
use crate::prologue::{self, MOVED_BYTES};
use crate::record::{self, Outcome, Record};
use crate::takeover::Loaded;

/// One such library.
struct Compiler {
    /// As the log calls it.
    name: &'static str,
    replaced: &'static [Replaced],
    /// Functions that ours call besides.
    used: &'static [&'static CStr],
}

/// A function that becomes a jump.
struct Replaced {
    name: &'static CStr,
    n_arguments: usize,
    /// The address of ours, which has one more argument: an [`Originals`].
    ours: fn() -> usize,
}

const fn replaced(name: &'static CStr, n_arguments: usize, ours: fn() -> usize) -> Replaced {
    Replaced { name, n_arguments, ours }
}

const COMPILERS: [Compiler; 3] = [
    Compiler {
        name: "NVRTC",
        replaced: &[
            replaced(c"nvrtcGetCUBINSize", 2, || answer::nvrtc_cubin_size as *const () as usize),
            replaced(c"nvrtcGetCUBIN", 2, || answer::nvrtc_cubin as *const () as usize),
        ],
        used: &[c"nvrtcGetPTXSize", c"nvrtcGetPTX"],
    },
    Compiler {
        name: "nvPTXCompiler",
        replaced: &[
            replaced(c"nvPTXCompilerGetCompiledProgramSize", 2, || {
                answer::ptx_compiler_program_size as *const () as usize
            }),
            replaced(c"nvPTXCompilerGetCompiledProgram", 2, || {
                answer::ptx_compiler_program as *const () as usize
            }),
            replaced(c"nvPTXCompilerCreate", 3, || answer::ptx_compiler_create as *const () as usize),
            replaced(c"nvPTXCompilerDestroy", 1, || answer::ptx_compiler_destroy as *const () as usize),
        ],
        used: &[],
    },
    Compiler {
        name: "nvFatbin",
        replaced: &[replaced(c"nvFatbinAddCubin", 5, || answer::fatbin_add_cubin as *const () as usize)],
        used: &[c"nvFatbinAddPTX"],
    },
];

const MOST_REPLACED: usize = 4;
const MOST_USED: usize = 2;

/// The functions of one library that ours call. Lies beside the stubs that pass its address on, for the process's life.
#[repr(C)]
pub struct Originals {
    /// What the replaced ones were, in the order of [`Compiler::replaced`].
    replaced: [usize; MOST_REPLACED],
    used: [usize; MOST_USED],
    /// The library may have been in use when its functions were replaced.
    was_in_use: bool,
}

/// Where what lies on an island: the originals, then a stub for each replaced function, then what its jump took the place of.
const STUBS: usize = size_of::<Originals>().next_multiple_of(STUB_BYTES);
const MOVED: usize = STUBS + MOST_REPLACED * STUB_BYTES;
const ISLAND_BYTES: usize = MOVED + MOST_REPLACED * MOVED_BYTES;

/// A function in memory: its address, and its code as the file has it.
#[derive(Clone, Copy)]
struct Function<'a> {
    at: usize,
    code: &'a [u8],
}

/// So much of a function is looked at.
const LOOKED_AT: usize = 32;

/// Looks at what a loaded object exports, where that is one of these libraries, or holds one and exports it.
///
/// # Safety
/// The loader has the object in its list with these tables, and keeps it mapped meanwhile. The caller holds the loader's lock or is alone.
pub unsafe fn consider_exports(tables: &Tables, file: &CStr, bias: usize, is_in_use: bool) {
    for compiler in &COMPILERS {
        let find = |name: &CStr| {
            // SAFETY: the caller's promise.
            let symbol = unsafe { tables.exported(name) }?;
            let at = bias.wrapping_add(symbol.value as usize);
            let len_bytes = (symbol.size as usize).min(LOOKED_AT);
            // SAFETY: a function that the loader gives to whoever asks for it lies there, this long.
            Some(Function { at, code: unsafe { core::slice::from_raw_parts(at as *const u8, len_bytes) } })
        };
        take(compiler, find, file, is_in_use);
    }
}

/// Looks at the names in an object's file, where one of these libraries was linked into it.
pub fn consider_file(file: File, object: Loaded) {
    let Some(symbols) = file.symbols(elf::SHT_SYMTAB) else { return };
    let mentioned = |compiler: &&Compiler| {
        compiler.replaced.iter().all(|it| elf::mentions(symbols.strings, it.name.to_bytes_with_nul()))
    };
    for compiler in COMPILERS.iter().filter(mentioned) {
        let find = |name: &CStr| {
            let is_it = |symbol: &elf::Symbol| {
                symbol.kind == elf::STT_FUNC
                    && symbol.section != elf::SHN_UNDEF
                    && symbol.name == name.to_bytes()
            };
            let symbol = symbols.iter().find(is_it)?;
            let code = file.code_at(symbol.value, symbol.size.min(LOOKED_AT as u64))?;
            Some(Function { at: object.bias.wrapping_add(symbol.value as usize), code })
        };
        take(compiler, find, object.file, object.is_in_use);
    }
}

/// Replaces a library's functions, if it is this one, and writes down what became of it.
fn take<'a>(compiler: &Compiler, find: impl Fn(&CStr) -> Option<Function<'a>>, file: &CStr, is_in_use: bool) {
    let mut functions = [None; MOST_REPLACED];
    for (function, replaced) in functions.iter_mut().zip(compiler.replaced) {
        *function = find(replaced.name);
        if function.is_none() {
            return;
        }
    }
    let mut originals =
        Originals { replaced: [0; MOST_REPLACED], used: [0; MOST_USED], was_in_use: is_in_use };
    for (address, name) in originals.used.iter_mut().zip(compiler.used) {
        let Some(function) = find(name) else { return };
        *address = function.at;
    }
    let outcome = match replace(compiler, &functions, originals) {
        Ok(()) => Outcome::HasPtx,
        Err(None) => return,
        Err(Some(outcome)) => outcome,
    };
    let mut record = Record::new(file);
    record.follow_link(file);
    record.library = compiler.name;
    record.outcome = outcome;
    record::add(record);
}

/// `None` is an error too: the functions are nothing but jumps.
fn replace(
    compiler: &Compiler,
    functions: &[Option<Function>; MOST_REPLACED],
    mut originals: Originals,
) -> Result<(), Option<Outcome>> {
    let functions = || functions.iter().flatten();
    let was_in_use = originals.was_in_use;
    let in_memory = |function: &Function| {
        // SAFETY: as long as the function, which is mapped.
        unsafe { core::slice::from_raw_parts(function.at as *const u8, function.code.len()) }
    };
    // To us already, or to the library itself, which is looked at when it is loaded.
    let is_jump = |function: &Function| {
        matches!(in_memory(function), [patch::JUMP_OPCODE | 0xeb, ..] | [0xff, 0x25, ..])
    };
    if functions().all(is_jump) {
        return Err(None);
    }
    // Somebody else, such as a debugger, has written there.
    if functions().any(|function| in_memory(function) != function.code) {
        return Err(Some(Outcome::UnknownCode));
    }
    let mut known = true;
    let island = ISLANDS.get(functions().map(|function| function.at), |bytes| {
        let at = bytes.as_ptr() as usize;
        for (index, (function, replaced)) in functions().zip(compiler.replaced).enumerate() {
            let (stub, moved) = (STUBS + index * STUB_BYTES, MOVED + index * MOVED_BYTES);
            let code = patch::place(function.code).and_then(|place| {
                prologue::moved(function.code, function.at, at + moved, place + patch::JUMP_BYTES)
            });
            let call = patch::argument_stub(replaced.n_arguments, at, (replaced.ours)());
            let (Some(code), Some(call)) = (code, call) else {
                known = false;
                return;
            };
            bytes[stub..stub + STUB_BYTES].copy_from_slice(&call);
            bytes[moved..moved + MOVED_BYTES].copy_from_slice(&code);
            originals.replaced[index] = at + moved;
        }
        // SAFETY: an island begins at a page, and this fits below the stubs.
        unsafe { bytes.as_mut_ptr().cast::<Originals>().write(originals) };
    });
    if !known {
        return Err(Some(Outcome::UnknownCode));
    }
    let island = island.ok_or(Some(Outcome::NoIsland))?;
    let executable = libc::PROT_READ | libc::PROT_EXEC;
    // Where nobody is in the code yet, it need not be writable and executable at once.
    let during = if was_in_use { executable } else { libc::PROT_READ } | libc::PROT_WRITE;
    let mut writable = [const { None }; MOST_REPLACED];
    for (writable, function) in writable.iter_mut().zip(functions()) {
        // SAFETY: code, which the loader maps readable and executable.
        *writable = unsafe {
            Unprotected::new(
                function.at,
                function.at + LOOKED_AT.min(function.code.len()),
                during,
                executable,
            )
        };
        if writable.is_none() {
            return Err(Some(Outcome::Protected));
        }
    }
    // A thread that is stopped right between the first instructions of a function would go on in the middle of the jump. That takes a
    // thread that asks for a cubin while another opens the driver for the first time: some nanoseconds after a compilation.
    for (index, function) in functions().enumerate() {
        let place = patch::place(function.code).unwrap_or_default();
        let stub = island.at + STUBS + index * STUB_BYTES;
        // SAFETY: over the function's own first instructions, which were just made writable, and to the island within reach.
        unsafe { patch::write_jump_at_once(function.at + place, stub) };
    }
    Ok(())
}

/// The islands so far, each by the address of a function that leads there. Where that is a function's address once more, the
/// library is gone for which the island was made.
struct Islands {
    entries: [[AtomicUsize; 2]; 32],
}

static ISLANDS: Islands = Islands { entries: [const { [const { AtomicUsize::new(0) }; 2] }; 32] };

impl Islands {
    /// An island within reach of functions at these addresses, filled. The caller holds the loader's lock or is alone.
    fn get(
        &self,
        functions: impl Iterator<Item = usize> + Clone,
        fill: impl FnOnce(&mut [u8]),
    ) -> Option<Island> {
        let (first, low) = (functions.clone().next()?, functions.clone().min()?);
        let high = functions.max()? + LOOKED_AT;
        let of = |address: usize| self.entries.iter().find(|[of, _]| of.load(Ordering::Relaxed) == address);
        if let Some([_, at]) = of(first) {
            let island = Island { at: at.load(Ordering::Relaxed), len_bytes: ISLAND_BYTES };
            if island.reaches(low, high) {
                return island.refilled(fill);
            }
        }
        let island = Island::near(low, high, ISLAND_BYTES, fill)?;
        // Past their number, islands are not used again.
        if let Some([of, at]) = of(first).or_else(|| of(0)) {
            at.store(island.at, Ordering::Relaxed);
            of.store(first, Ordering::Relaxed);
        }
        Some(island)
    }
}
