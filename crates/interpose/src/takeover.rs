//! Taking over one loaded object: every public function of the runtime inside it becomes a jump to ours.

use crate::compilers;
use crate::elf::{self, File, Segment};
use crate::patch::{self, Island, Islands, Unprotected};
use crate::recognise::{self, Kind};
use crate::record::{Outcome, Record};
use crate::signature;
use crate::slots::Runtime;
use core::ffi::{CStr, c_char, c_void};
use core::mem::MaybeUninit;

/// An object that the loader has mapped.
#[derive(Clone, Copy)]
pub struct Loaded<'a> {
    pub file: &'a CStr,
    /// What is added to the file's addresses.
    pub bias: usize,
    /// Address of its dynamic section, by which the file is checked to be the one that was mapped.
    pub dynamic: usize,
    /// Its code is relocated and may be called.
    pub runs: bool,
    /// It may have been called already, and other threads may be in its code.
    pub is_in_use: bool,
    pub may_hold: MayHold,
}

/// What may have been linked into an object.
#[derive(Clone, Copy)]
pub struct MayHold {
    pub runtime: bool,
    pub compiler: bool,
}

static ISLANDS: [Islands; 3] = [const { Islands::new() }; 3];

/// Looks into the object's file and, if a CUDA runtime is inside, redirects it, or what else is. The caller holds the loader's lock
/// or is alone.
pub fn consider(object: Loaded) -> Option<Record> {
    let mapping = Mapping::open(object.file)?;
    let file = File::parse(mapping.bytes())?;
    if !is_the_mapped_one(file, object) {
        return None;
    }
    if object.may_hold.compiler {
        compilers::consider_file(file, object);
    }
    if !object.may_hold.runtime {
        return None;
    }
    let kind = recognise::kind(file);
    let is_nameless = matches!(kind, Kind::Other | Kind::Stripped);
    let told = if is_nameless { signature::find(file) } else { None };
    if (kind == Kind::Other && told.is_none()) || (kind == Kind::Shared && is_ours(&mapping)) {
        return None;
    }
    let mut record = Record::new(object.file);
    record.follow_link(object.file);
    record.outcome = match (kind, told) {
        // Without names there is no telling whether it has registered anything.
        (_, Some(_)) if object.is_in_use => Outcome::TooLate,
        (_, Some(told)) => redirect_told(file, told, object, &mut record),
        (Kind::Other | Kind::Stripped, None) => Outcome::Stripped,
        (Kind::Static | Kind::Shared, None) if has_registered(file, object) => Outcome::TooLate,
        (Kind::Static | Kind::Shared, None) => redirect_named(file, kind, object, &mut record),
    };
    Some(record)
}

fn is_the_mapped_one(file: File, object: Loaded) -> bool {
    const PT_DYNAMIC: u32 = 2;
    file.segments().any(|segment| {
        segment.kind == PT_DYNAMIC && object.bias.wrapping_add(segment.address as usize) == object.dynamic
    })
}

/// Our own forwarders have the same SONAMEs and names.
fn is_ours(mapping: &Mapping) -> bool {
    crate::slots::RUNTIMES.iter().any(|runtime| {
        let mut path = [0 as c_char; loader::place::PATH_BYTES];
        let mut ours = MaybeUninit::<libc::stat>::uninit();
        crate::slots::join_own_directory(runtime.file, &mut path).is_some()
            // SAFETY: the path ends in a zero, `ours` is written when stat succeeds.
            && unsafe { libc::stat(path.as_ptr(), ours.as_mut_ptr()) } == 0
            // SAFETY: stat succeeded.
            && { let ours = unsafe { ours.assume_init_ref() }; (ours.st_dev, ours.st_ino) == mapping.identity }
    })
}

/// The object's constructors have already registered its kernels with its own runtime: redirecting now would lose them.
fn has_registered(file: File, object: Loaded) -> bool {
    recognise::registration_handles(file).any(|handle| {
        let inside = file.segments().any(|segment| {
            segment.kind == elf::PT_LOAD
                && segment.flags & elf::PF_W != 0
                && handle.value >= segment.address
                && handle.value.saturating_add(8) <= segment.address.saturating_add(segment.memory_bytes)
        });
        // SAFETY: inside a writable segment that the loader has mapped from this very file.
        inside
            && unsafe {
                core::ptr::read_unaligned(object.bias.wrapping_add(handle.value as usize) as *const usize)
            } != 0
    })
}

/// A function of a runtime in a file.
struct Function {
    /// Index of its name, where the runtime's major has it.
    name: Option<usize>,
    address: u64,
    len_bytes: u64,
    /// It is what its name says; only of one that was told by its code is that a question.
    is_known: bool,
}

fn redirect_named(file: File, kind: Kind, object: Loaded, record: &mut Record) -> Outcome {
    let Some(runtime) = recognise::major(file, kind, |symbol| ask_version(file, object, symbol)) else {
        return Outcome::UnknownMajor;
    };
    let functions = recognise::functions(file, kind).map(|symbol| Function {
        name: runtime.index_of(symbol.name),
        address: symbol.value,
        len_bytes: symbol.size,
        is_known: true,
    });
    redirect(file, runtime, functions, object, record)
}

fn redirect_told(file: File, told: signature::Found, object: Loaded, record: &mut Record) -> Outcome {
    let Some(runtime) = Runtime::of_major(told.release.major) else {
        return Outcome::UnknownMajor;
    };
    record.release = Some(told.release.name);
    let functions = told.functions(file).map(|signature::Function { name, address, len_bytes, is_known }| {
        Function { name: Some(name), address, len_bytes, is_known }
    });
    redirect(file, runtime, functions, object, record)
}

fn redirect(
    file: File,
    runtime: &'static Runtime,
    mut functions: impl Iterator<Item = Function>,
    object: Loaded,
    record: &mut Record,
) -> Outcome {
    record.major = runtime.major;
    let Some(first) = functions.next() else {
        return Outcome::NoCode;
    };
    let Some(segment) = code_segment(file, first.address) else {
        return Outcome::NoCode;
    };
    let low = object.bias.wrapping_add(segment.address as usize);
    let high = low + segment.memory_bytes as usize;
    let Some(island) = island_for(runtime, low, high) else {
        return Outcome::NoIsland;
    };
    let restore = protection(segment.flags);
    // The functions are not run: the program has not begun, a newly mapped object's constructors come later, and `has_registered`
    // turned others away. But threads may be in other code beside them where the object was there before us.
    let during = if object.is_in_use { libc::PROT_EXEC } else { 0 } | libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: the loader mapped the segment with these flags.
    let Some(_writable) = (unsafe { Unprotected::new(low, high, during, restore) }) else {
        return Outcome::Protected;
    };
    for function in core::iter::once(first).chain(functions) {
        record.n_found += 1;
        let Some(index) = function.name else { continue };
        if !function.is_known {
            record.add_unlike(runtime.names.get(index).copied().unwrap_or_default());
            continue;
        }
        let Some(place) = jump_place(file, segment, &function) else {
            record.n_too_short += 1;
            continue;
        };
        let at = object.bias.wrapping_add(function.address as usize);
        let end = place + patch::JUMP_BYTES;
        let expected = code_bytes(file, segment, function.address).and_then(|code| code.get(..end));
        // SAFETY: `code_bytes` found the range inside the mapped segment.
        let found =
            expected.map(|expected| unsafe { core::slice::from_raw_parts(at as *const u8, expected.len()) });
        if found != expected {
            // A second name of a function that already jumps is fine. Anything else, such as a debugger's breakpoint, is not.
            let jumps = found.and_then(|found| found.get(place)) == Some(&patch::JUMP_OPCODE);
            record.n_changed += usize::from(!jumps);
            continue;
        }
        // SAFETY: inside the writable range, over bytes of the function itself, which was just compared with the file.
        unsafe { patch::write_jump(at + place, island.at + index * patch::STUB_BYTES) };
        record.n_redirected += 1;
    }
    let ends = file.segments().filter(|segment| segment.kind == elf::PT_LOAD).map(|segment| {
        let start = object.bias.wrapping_add(segment.address as usize);
        (start, start.saturating_add(segment.memory_bytes as usize))
    });
    let (low, high) = ends.fold((low, high), |(low, high), (start, end)| (low.min(start), high.max(end)));
    crate::instance::add(low, high);
    Outcome::Redirected
}

/// Calls the copy's own cudaRuntimeGetVersion, which needs no driver.
fn ask_version(file: File, object: Loaded, symbol: elf::Symbol) -> Option<u32> {
    let segment = code_segment(file, symbol.value)?;
    if !object.runs || code_bytes(file, segment, symbol.value).is_none() {
        return None;
    }
    // SAFETY: a local function of this name in a file that carries the runtime, relocated, with the documented signature.
    let function: extern "C" fn(*mut i32) -> i32 =
        unsafe { core::mem::transmute(object.bias.wrapping_add(symbol.value as usize)) };
    let mut version = 0;
    (function(&mut version) == 0).then_some(u32::try_from(version).ok()?)
}

/// The segment that holds the runtime's functions, of which one is at this address.
fn code_segment(file: File, address: u64) -> Option<Segment> {
    file.segments().find(|segment| {
        segment.kind == elf::PT_LOAD
            && segment.flags & elf::PF_X != 0
            && segment.address <= address
            && address - segment.address < segment.file_bytes
    })
}

/// The file's bytes from an address of the segment on, to the segment's end.
fn code_bytes<'a>(file: File<'a>, segment: Segment, address: u64) -> Option<&'a [u8]> {
    let inside = address.checked_sub(segment.address)?;
    let len_bytes = segment.file_bytes.checked_sub(inside)?;
    file.bytes_at(segment.offset.checked_add(inside)?, len_bytes)
}

fn jump_place(file: File, segment: Segment, function: &Function) -> Option<usize> {
    let code = code_bytes(file, segment, function.address)?;
    let size = usize::try_from(function.len_bytes).ok().filter(|&size| size > 0 && size <= code.len())?;
    let room = size + patch::padding_bytes(code.get(size..)?.get(..16).unwrap_or(&[]));
    patch::place(code.get(..room)?)
}

fn island_for(runtime: &'static Runtime, low: usize, high: usize) -> Option<Island> {
    let islands = crate::slots::RUNTIMES
        .iter()
        .position(|one| one.major == runtime.major)
        .and_then(|at| ISLANDS.get(at))?;
    islands.get(low, high, || {
        runtime.arm();
        let len_bytes = runtime.names.len() * patch::STUB_BYTES;
        Island::near(low, high, len_bytes, |bytes| {
            for (index, stub) in
                bytes.chunks_exact_mut(patch::STUB_BYTES).take(runtime.names.len()).enumerate()
            {
                if let (Some(ticket), Some(slot)) = (runtime.ticket(index), runtime.slot_address(index)) {
                    stub.copy_from_slice(&patch::slot_stub(ticket, slot));
                }
            }
        })
    })
}

fn protection(flags: u32) -> i32 {
    let mut protection = 0;
    for (flag, bit) in
        [(elf::PF_R, libc::PROT_READ), (elf::PF_W, libc::PROT_WRITE), (elf::PF_X, libc::PROT_EXEC)]
    {
        if flags & flag != 0 {
            protection |= bit;
        }
    }
    protection
}

/// A file mapped read-only for as long as this lives.
struct Mapping {
    at: *mut c_void,
    len_bytes: usize,
    identity: (libc::dev_t, libc::ino_t),
}

impl Mapping {
    fn open(path: &CStr) -> Option<Self> {
        // SAFETY: `path` ends in a zero.
        let descriptor = unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
        if descriptor < 0 {
            return None;
        }
        let mut stat = MaybeUninit::<libc::stat>::uninit();
        // SAFETY: an open descriptor, and a buffer that fstat fills when it succeeds.
        let stat = (unsafe { libc::fstat(descriptor, stat.as_mut_ptr()) } == 0)
            .then(|| unsafe { stat.assume_init() });
        let mapping = stat.filter(|stat| stat.st_mode & libc::S_IFMT == libc::S_IFREG).and_then(|stat| {
            let len_bytes = usize::try_from(stat.st_size).ok().filter(|&len_bytes| len_bytes > 0)?;
            // SAFETY: a fresh private mapping at an address of the kernel's choice.
            let at = unsafe {
                libc::mmap(
                    core::ptr::null_mut(),
                    len_bytes,
                    libc::PROT_READ,
                    libc::MAP_PRIVATE,
                    descriptor,
                    0,
                )
            };
            (at != libc::MAP_FAILED).then_some(Mapping {
                at,
                len_bytes,
                identity: (stat.st_dev, stat.st_ino),
            })
        });
        // SAFETY: opened above; the mapping does not need it.
        unsafe { libc::close(descriptor) };
        mapping
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: mapped readable with this length until drop.
        unsafe { core::slice::from_raw_parts(self.at.cast(), self.len_bytes) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: our own mapping; the borrow checker saw that no slice of it is left.
        unsafe { libc::munmap(self.at, self.len_bytes) };
    }
}
