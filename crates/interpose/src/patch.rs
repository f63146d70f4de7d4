//! Writing a jump over the first bytes of a function of the program.
//! The rule: look before writing, write only over bytes that belong to the function, leave every page as protected as it was.

use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};

/// `jmp rel32`
pub const JUMP_BYTES: usize = 5;
pub const JUMP_OPCODE: u8 = 0xe9;
const PAGE_BYTES: usize = 4096;
const ENDBR64: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];
/// How far a `jmp rel32` may go, with room for the object's and the island's own sizes to spare.
const REACH_BYTES: usize = (1 << 31) - (1 << 24);

/// Code of ours near somebody else's: stubs that a `jmp rel32` can reach, each jumping on to any address.
#[derive(Clone, Copy)]
pub struct Island {
    pub at: usize,
    pub len_bytes: usize,
}

/// A stub that loads `ticket` into r10d and jumps to the address held in the slot.
///
/// r10 and r11 belong to nobody at the entry of a C function.
pub const STUB_BYTES: usize = 32;

pub fn slot_stub(ticket: u32, slot_address: usize) -> [u8; STUB_BYTES] {
    let mut code = [0xcc; STUB_BYTES];
    code[..2].copy_from_slice(&[0x41, 0xba]); // mov r10d, imm32
    code[2..6].copy_from_slice(&ticket.to_le_bytes());
    code[6..8].copy_from_slice(&[0x49, 0xbb]); // movabs r11, imm64
    code[8..16].copy_from_slice(&slot_address.to_le_bytes());
    code[16..19].copy_from_slice(&[0x41, 0xff, 0x23]); // jmp [r11]
    code
}

/// Of [`absolute_stub`], what is not filling.
pub const ABSOLUTE_JUMP_BYTES: usize = 14;

/// A stub that jumps to a fixed address and changes no register.
pub fn absolute_stub(target: usize) -> [u8; STUB_BYTES] {
    let mut code = [0xcc; STUB_BYTES];
    code[..6].copy_from_slice(&[0xff, 0x25, 0, 0, 0, 0]); // jmp [rip + 0]
    code[6..14].copy_from_slice(&target.to_le_bytes());
    code
}

/// A stub that calls on to `target` with one more argument, behind the `n_arguments` that the call has. None where that would
/// not be in a register.
pub fn argument_stub(n_arguments: usize, argument: usize, target: usize) -> Option<[u8; STUB_BYTES]> {
    /// `movabs` to rdi, rsi, rdx, rcx, r8, r9.
    const MOVABS: [[u8; 2]; 6] =
        [[0x48, 0xbf], [0x48, 0xbe], [0x48, 0xba], [0x48, 0xb9], [0x49, 0xb8], [0x49, 0xb9]];
    let mut code = [0xcc; STUB_BYTES];
    code[..2].copy_from_slice(MOVABS.get(n_arguments)?);
    code[2..10].copy_from_slice(&argument.to_le_bytes());
    code[10..12].copy_from_slice(&[0x49, 0xbb]); // movabs r11, imm64
    code[12..20].copy_from_slice(&target.to_le_bytes());
    code[20..23].copy_from_slice(&[0x41, 0xff, 0xe3]); // jmp r11
    Some(code)
}

impl Island {
    /// Maps memory that every byte of `low..high` can reach with a `jmp rel32`, filled by `fill` and then made executable.
    pub fn near(low: usize, high: usize, len_bytes: usize, fill: impl FnOnce(&mut [u8])) -> Option<Island> {
        let len_bytes = len_bytes.next_multiple_of(PAGE_BYTES);
        let at = map_near(low, high, len_bytes)?;
        // SAFETY: `map_near` mapped exactly this range readable and writable, for us alone.
        fill(unsafe { core::slice::from_raw_parts_mut(at as *mut u8, len_bytes) });
        // SAFETY: the range is our own mapping.
        if unsafe { libc::mprotect(at as *mut c_void, len_bytes, libc::PROT_READ | libc::PROT_EXEC) } != 0 {
            // SAFETY: as above; nobody has its address yet.
            unsafe { libc::munmap(at as *mut c_void, len_bytes) };
            return None;
        }
        Some(Island { at, len_bytes })
    }

    /// The same island with other contents; nobody is in it.
    pub fn refilled(self, fill: impl FnOnce(&mut [u8])) -> Option<Island> {
        let len_bytes = self.len_bytes.next_multiple_of(PAGE_BYTES);
        let executable = libc::PROT_READ | libc::PROT_EXEC;
        // SAFETY: our own mapping, and the caller's promise.
        let _writable = unsafe {
            Unprotected::new(self.at, self.at + len_bytes, libc::PROT_READ | libc::PROT_WRITE, executable)
        }?;
        // SAFETY: as above.
        fill(unsafe { core::slice::from_raw_parts_mut(self.at as *mut u8, len_bytes) });
        Some(self)
    }

    pub fn reaches(self, low: usize, high: usize) -> bool {
        within_reach(self.at, self.len_bytes, low, high)
    }
}

fn within_reach(at: usize, len_bytes: usize, low: usize, high: usize) -> bool {
    high.max(at + len_bytes) - low.min(at) < REACH_BYTES
}

fn map_near(low: usize, high: usize, len_bytes: usize) -> Option<usize> {
    const STEP: usize = 2 << 20;
    let low = low & !(PAGE_BYTES - 1);
    // Below first: above a program is its heap, which wants to grow. So above, the farthest place is the best one.
    let below =
        (1..REACH_BYTES / STEP).map_while(|step| low.checked_sub(step * STEP)).filter(|&at| at >= 1 << 20);
    let above = (1..REACH_BYTES / STEP).rev().map(|step| high.next_multiple_of(PAGE_BYTES) + step * STEP);
    below.chain(above).filter(|&at| within_reach(at, len_bytes, low, high)).find(|&at| map_at(at, len_bytes))
}

fn map_at(at: usize, len_bytes: usize) -> bool {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
    // SAFETY: NOREPLACE never touches an existing mapping; old kernels take the address as a hint, which is checked below.
    let got =
        unsafe { libc::mmap(at as *mut c_void, len_bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
    if got == libc::MAP_FAILED {
        return false;
    }
    if got as usize != at {
        // SAFETY: the mapping that the kernel just made for us somewhere else.
        unsafe { libc::munmap(got, len_bytes) };
        return false;
    }
    true
}

/// Where the jump goes in a function: after `endbr64` when the function has one and room behind it, so that a call
/// under Intel CET still lands on one. `None`: too short for a jump.
pub fn place(function: &[u8]) -> Option<usize> {
    if function.starts_with(&ENDBR64) && function.len() >= ENDBR64.len() + JUMP_BYTES {
        return Some(ENDBR64.len());
    }
    (function.len() >= JUMP_BYTES).then_some(0)
}

/// Bytes that only fill the gap to the next function: nops of any length that assemblers use, and int3.
pub fn padding_bytes(code: &[u8]) -> usize {
    let mut at = 0;
    loop {
        let rest = code.get(at..).unwrap_or(&[]);
        let prefixes = rest.iter().take_while(|&&byte| byte == 0x66 || byte == 0x2e).count();
        at += match rest.get(prefixes..).unwrap_or(&[]) {
            [0x90, ..] => prefixes + 1,
            [0xcc, ..] if prefixes == 0 => 1,
            // nop with a ModRM byte and the displacement that it asks for
            [0x0f, 0x1f, 0x00, ..] => prefixes + 3,
            [0x0f, 0x1f, 0x40, _, ..] => prefixes + 4,
            [0x0f, 0x1f, 0x44, _, _, ..] => prefixes + 5,
            [0x0f, 0x1f, 0x80, _, _, _, _, ..] => prefixes + 7,
            [0x0f, 0x1f, 0x84, _, _, _, _, _, ..] => prefixes + 8,
            _ => return at,
        };
    }
}

/// Writes `jmp target` at `at`, so that a thread running through this very place sees either the old code or the jump:
/// the first byte comes last. (What it replaces is a one-byte instruction or a function nobody runs yet.)
///
/// # Safety
/// `at..at + 5` is mapped writable, and overwriting it is what the caller wants. `target` is within reach.
pub unsafe fn write_jump(at: usize, target: usize) {
    let distance = (target as isize).wrapping_sub((at + JUMP_BYTES) as isize) as i32;
    // SAFETY: the caller's promise.
    unsafe { ptr::write_volatile((at + 1) as *mut [u8; 4], distance.to_le_bytes()) };
    // SAFETY: the caller's promise; an AtomicU8 has no alignment to keep.
    unsafe { AtomicU8::from_ptr(at as *mut u8) }.store(JUMP_OPCODE, Ordering::Release);
}

/// As [`write_jump`], over a function that may be running: all of the jump comes at once where it lies in eight bytes that begin
/// at a multiple of eight, as it does in nearly every function.
///
/// # Safety
/// As [`write_jump`].
pub unsafe fn write_jump_at_once(at: usize, target: usize) {
    let word = at & !7;
    if at + JUMP_BYTES > word + 8 {
        // SAFETY: the caller's promise.
        return unsafe { write_jump(at, target) };
    }
    let distance = (target as isize).wrapping_sub((at + JUMP_BYTES) as isize) as i32;
    // SAFETY: aligned, and in the same page as the jump.
    let word = unsafe { AtomicU64::from_ptr(word as *mut u64) };
    let mut code = word.load(Ordering::Relaxed).to_le_bytes();
    let place = at % 8;
    code[place] = JUMP_OPCODE;
    code[place + 1..place + JUMP_BYTES].copy_from_slice(&distance.to_le_bytes());
    word.store(u64::from_le_bytes(code), Ordering::Release);
}

/// The pages of a range with another protection while this value lives.
pub struct Unprotected {
    at: usize,
    len_bytes: usize,
    restore: i32,
}

impl Unprotected {
    /// # Safety
    /// The range is mapped with `restore` as its protection, and stays mapped while the value lives.
    /// With `PROT_EXEC` missing from `during`, no thread runs code in it meanwhile.
    pub unsafe fn new(low: usize, high: usize, during: i32, restore: i32) -> Option<Self> {
        let at = low & !(PAGE_BYTES - 1);
        let len_bytes = high.next_multiple_of(PAGE_BYTES) - at;
        // SAFETY: the caller's promise.
        let done = unsafe { libc::mprotect(at as *mut c_void, len_bytes, during) } == 0;
        done.then_some(Unprotected { at, len_bytes, restore })
    }
}

impl Drop for Unprotected {
    fn drop(&mut self) {
        // SAFETY: the range was mapped with this protection before.
        unsafe { libc::mprotect(self.at as *mut c_void, self.len_bytes, self.restore) };
    }
}

/// Islands already made for one purpose; a new object near one of them shares it. Bounded, filled once, never freed.
pub struct Islands {
    entries: [[AtomicUsize; 2]; 16],
}

impl Islands {
    pub const fn new() -> Self {
        Islands { entries: [const { [const { AtomicUsize::new(0) }; 2] }; 16] }
    }

    /// An island within reach of `low..high`, made by `make` if there is none.
    /// The callers hold the loader's lock or are alone, so nobody else writes the entries.
    pub fn get(&self, low: usize, high: usize, make: impl FnOnce() -> Option<Island>) -> Option<Island> {
        for [at, len_bytes] in &self.entries {
            let found =
                Island { at: at.load(Ordering::Acquire), len_bytes: len_bytes.load(Ordering::Acquire) };
            if found.at == 0 {
                let island = make()?;
                len_bytes.store(island.len_bytes, Ordering::Release);
                at.store(island.at, Ordering::Release);
                return Some(island);
            }
            if found.reaches(low, high) {
                return Some(found);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_is_nops_and_int3_and_nothing_else() {
        // Measured behind glibc 2.36's _dl_debug_state.
        let gap = [0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0, 0x0f, 0x1f, 0x40, 0];
        assert_eq!(padding_bytes(&gap), 15);
        assert_eq!(padding_bytes(&[0x90, 0xcc, 0xc3, 0x90]), 2);
        assert_eq!(padding_bytes(&[0x55, 0x90]), 0);
        assert_eq!(padding_bytes(&[0x0f, 0x1f]), 0);
    }

    #[test]
    fn a_jump_goes_behind_endbr64_when_there_is_room() {
        assert_eq!(place(&[0xf3, 0x0f, 0x1e, 0xfa, 0x31, 0xc0, 0x90, 0x90, 0xc3]), Some(4));
        assert_eq!(place(&[0xf3, 0x0f, 0x1e, 0xfa, 0xeb, 0x02]), Some(0));
        assert_eq!(place(&[0xeb, 0x02, 0xc3]), None);
    }

    #[test]
    fn a_jump_that_comes_at_once_is_the_same_jump_and_leaves_its_neighbours() {
        #[repr(align(8))]
        struct Code([u8; 24]);
        for place in 0..16 {
            let mut codes = [const { Code([0x90; 24]) }; 2];
            let both: [unsafe fn(usize, usize); 2] = [write_jump, write_jump_at_once];
            for (code, write) in codes.iter_mut().zip(both) {
                let at = code.0.as_mut_ptr() as usize + place;
                // SAFETY: inside the array; nobody runs it.
                unsafe { write(at, at + (1 << 20)) };
            }
            assert_eq!(codes[0].0[place], JUMP_OPCODE);
            assert_eq!(codes[0].0, codes[1].0, "at {place}");
            assert_eq!(codes[1].0.iter().filter(|&&byte| byte == 0x90).count(), 24 - JUMP_BYTES);
        }
    }

    #[test]
    fn a_stub_adds_its_argument_behind_those_of_the_call() {
        extern "C" fn five(a: usize, b: usize, c: usize, d: usize, e: usize, f: usize) -> usize {
            [a, b, c, d, e, f].into_iter().fold(0, |sum, it| sum * 10 + it)
        }
        let here = five as *const () as usize;
        for n in 0..6 {
            let island = Island::near(here, here + 16, STUB_BYTES, |bytes| {
                bytes[..STUB_BYTES].copy_from_slice(&argument_stub(n, 9, here).unwrap());
            })
            .unwrap();
            // SAFETY: the stub leads to a function of this type.
            let call: extern "C" fn(usize, usize, usize, usize, usize, usize) -> usize =
                unsafe { core::mem::transmute(island.at) };
            let mut wanted = [1, 2, 3, 4, 5, 6];
            wanted[n] = 9;
            assert_eq!(
                call(1, 2, 3, 4, 5, 6),
                five(wanted[0], wanted[1], wanted[2], wanted[3], wanted[4], wanted[5])
            );
        }
        assert!(argument_stub(6, 0, 0).is_none());
    }

    #[test]
    fn an_island_is_near_and_a_jump_through_it_arrives() {
        extern "C" fn forty_two() -> i32 {
            42
        }
        let here = an_island_is_near_and_a_jump_through_it_arrives as *const () as usize;
        let island = Island::near(here, here + 16, STUB_BYTES, |bytes| {
            bytes[..STUB_BYTES].copy_from_slice(&absolute_stub(forty_two as *const () as usize));
        })
        .unwrap();
        assert!(island.reaches(here, here + 16));
        // SAFETY: the stub was written as a function of this type.
        let call: extern "C" fn() -> i32 = unsafe { core::mem::transmute(island.at) };
        assert_eq!(call(), 42);
    }
}
