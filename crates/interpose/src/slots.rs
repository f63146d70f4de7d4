//! Where the written jumps lead: one slot per public name and major, bound when the first of them is called.
//! The rule: a slot holds a callable address from the moment its table is armed. Taking a runtime over never opens a library;
//! the first call does, from the program's own thread, when `dlopen` is allowed again.

use crate::names;
use core::ffi::{CStr, c_char, c_void};
use core::sync::atomic::{AtomicUsize, Ordering};

/// One major of the CUDA runtime.
pub struct Runtime {
    pub major: u32,
    pub file: &'static CStr,
    pub names: &'static [&'static [u8]],
    slots: &'static [AtomicUsize],
    code: u32,
}

pub static RUNTIMES: [Runtime; 3] = [
    Runtime { major: 11, file: c"libcudart.so.11.0", names: &names::V11, slots: &SLOTS_11, code: 0 },
    Runtime { major: 12, file: c"libcudart.so.12", names: &names::V12, slots: &SLOTS_12, code: 1 },
    Runtime { major: 13, file: c"libcudart.so.13", names: &names::V13, slots: &SLOTS_13, code: 2 },
];

static SLOTS_11: [AtomicUsize; names::V11.len()] = [const { AtomicUsize::new(0) }; names::V11.len()];
static SLOTS_12: [AtomicUsize; names::V12.len()] = [const { AtomicUsize::new(0) }; names::V12.len()];
static SLOTS_13: [AtomicUsize; names::V13.len()] = [const { AtomicUsize::new(0) }; names::V13.len()];

impl Runtime {
    pub fn of_major(major: u32) -> Option<&'static Runtime> {
        RUNTIMES.iter().find(|runtime| runtime.major == major)
    }

    pub fn index_of(&self, name: &[u8]) -> Option<usize> {
        self.names.binary_search(&name).ok()
    }

    /// Gives every slot that has none yet its first address: the one that binds the table.
    pub fn arm(&self) {
        for slot in self.slots {
            let _ = slot.compare_exchange(
                0,
                bind_and_jump as *const () as usize,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
        }
    }

    pub fn slot_address(&self, index: usize) -> Option<usize> {
        self.slots.get(index).map(|slot| slot.as_ptr() as usize)
    }

    /// What the stub puts in r10 for `bind`.
    pub fn ticket(&self, index: usize) -> Option<u32> {
        Some(self.code << 16 | u32::try_from(index).ok()?)
    }
}

/// The first call of any name of a major arrives here with the name's ticket in r10 and the call's own arguments untouched.
/// It binds the major's table and goes on to the function, which sees the original call.
#[unsafe(naked)]
unsafe extern "C" fn bind_and_jump() {
    core::arch::naked_asm!(
        "push rbp",
        "mov rbp, rsp",
        "push rdi",
        "push rsi",
        "push rdx",
        "push rcx",
        "push r8",
        "push r9",
        "push rax",
        "push r10",
        "sub rsp, 128",
        "movups [rsp], xmm0",
        "movups [rsp + 16], xmm1",
        "movups [rsp + 32], xmm2",
        "movups [rsp + 48], xmm3",
        "movups [rsp + 64], xmm4",
        "movups [rsp + 80], xmm5",
        "movups [rsp + 96], xmm6",
        "movups [rsp + 112], xmm7",
        "mov edi, r10d",
        "call {bind}",
        "mov r11, rax",
        "movups xmm0, [rsp]",
        "movups xmm1, [rsp + 16]",
        "movups xmm2, [rsp + 32]",
        "movups xmm3, [rsp + 48]",
        "movups xmm4, [rsp + 64]",
        "movups xmm5, [rsp + 80]",
        "movups xmm6, [rsp + 96]",
        "movups xmm7, [rsp + 112]",
        "add rsp, 128",
        "pop r10",
        "pop rax",
        "pop r9",
        "pop r8",
        "pop rcx",
        "pop rdx",
        "pop rsi",
        "pop rdi",
        "pop rbp",
        "jmp r11",
        bind = sym bind,
    )
}

/// Fills the table of the ticket's major and returns the address for the ticket's name.
///
/// Several threads may do this at once; they store the same addresses, `dlopen` gives them the same library.
extern "C" fn bind(ticket: u32) -> usize {
    let runtime = &RUNTIMES[(ticket >> 16) as usize % RUNTIMES.len()];
    let index = (ticket & 0xffff) as usize;
    let library = open_beside_us(runtime.file);
    for (name, slot) in runtime.names.iter().zip(runtime.slots) {
        // SAFETY: just opened, and never closed.
        let found = library.and_then(|library| unsafe { find(library, name) });
        let address = found.unwrap_or_else(|| unavailable(name));
        slot.store(address, Ordering::Release);
    }
    runtime
        .slots
        .get(index)
        .map_or(answer_initialization_error as *const () as usize, |slot| slot.load(Ordering::Acquire))
}

const NAME_BYTES: usize = 96;

/// # Safety
/// `library` is a handle that stays open.
unsafe fn find(library: *mut c_void, name: &[u8]) -> Option<usize> {
    let mut terminated = [0 as c_char; NAME_BYTES];
    for (to, &from) in terminated.iter_mut().take(NAME_BYTES - 1).zip(name) {
        *to = from as c_char;
    }
    // SAFETY: the caller's promise: a live handle; the name ends in a zero.
    let address = unsafe { libc::dlsym(library, terminated.as_ptr()) };
    (!address.is_null()).then_some(address as usize)
}

/// Opens a library of the directory that holds this very object.
fn open_beside_us(file: &CStr) -> Option<*mut c_void> {
    let mut path = [0 as c_char; loader::place::PATH_BYTES];
    join_own_directory(file, &mut path)?;
    // SAFETY: `path` ends in a zero. Called from a program's own call into the runtime, where dlopen is allowed.
    let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    (!library.is_null()).then_some(library)
}

/// Writes `<directory of this object>/<file>` with a final zero.
pub fn join_own_directory(file: &CStr, path: &mut [c_char; loader::place::PATH_BYTES]) -> Option<()> {
    loader::place::join(bind as *const c_void, file, path)
}

/// What a name does when our runtime library cannot be opened: the call fails with cudaErrorInitializationError, and nothing crashes.
fn unavailable(name: &[u8]) -> usize {
    match name {
        b"cudaGetErrorName" => answer_error_name as *const () as usize,
        b"cudaGetErrorString" => answer_error_string as *const () as usize,
        b"__cudaInitModule" => answer_zero as *const () as usize,
        b"__cudaRegisterFatBinary" | b"cudaCreateChannelDesc" => answer_first_argument as *const () as usize,
        _ => answer_initialization_error as *const () as usize,
    }
}

extern "C" fn answer_initialization_error() -> i32 {
    3
}

extern "C" fn answer_zero() -> i32 {
    0
}

/// The handle of a registration that nothing will look at; for a struct returned in memory, its address.
extern "C" fn answer_first_argument(first: *mut c_void) -> *mut c_void {
    first
}

extern "C" fn answer_error_name() -> *const c_char {
    c"cudaErrorInitializationError".as_ptr()
}

extern "C" fn answer_error_string() -> *const c_char {
    c"initialization error".as_ptr()
}
