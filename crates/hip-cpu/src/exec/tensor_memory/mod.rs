//! Tensor memory and what `tcgen05` does with it: what kernels ask for by [`ask`], `compiler::tensor_memory` says how.
//!
//! A block's lies at `TENSOR_MEMORY` behind its shared memory, that of the other block of a pair as far from this as
//! their shared memories are from each other. One OS thread runs both blocks, so nothing here is locked or atomic.

mod columns;
mod copy;
mod element;
mod product;
mod shared;

use compiler::ir::{CLUSTER_SHIFT, TENSOR_MEMORY, TENSOR_MEMORY_BYTES};
use compiler::tensor_memory::{
    ALLOC, COPY, DEALLOC, MMA, PAIR, RANK_SHIFT, RANKS_SHIFT, RELINQUISH, SHIFT, WRONG,
};

use super::Launch;
use columns::{Columns, Request};

/// The state of a block's columns lies in front of its tensor memory, out of reach of what runs past the end of that.
const STATE_BYTES: usize = 4096;
const _: () = assert!(size_of::<Columns>() <= STATE_BYTES);
/// Where both lie in a block's part of the window.
pub const START: usize = TENSOR_MEMORY as usize - STATE_BYTES;
pub const END: usize = (TENSOR_MEMORY + TENSOR_MEMORY_BYTES) as usize;

/// The block's tensor memory, what is asked for, and its operands.
pub type Service =
    unsafe extern "C" fn(*const Launch, *mut u8, u64, u64, u64, u64, u64, u64, u64, u64, u64) -> i32;

/// At the start of a block whose shared memory begins at `shared`: nothing is allocated.
///
/// # Safety
/// The block's window is mapped up to [`END`], and nobody runs on it.
pub unsafe fn clear(shared: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe { shared.add(START).cast::<Columns>().write(Columns::default()) }
}

/// Of a block in setting `simd` that has not given back what it allocated; no code answers it.
pub const LEAK: i32 = -100;

/// Whether columns are allocated.
///
/// # Safety
/// As [`clear`].
pub unsafe fn is_left(shared: *mut u8) -> bool {
    // SAFETY: the caller's promise.
    unsafe { &*shared.add(START).cast::<Columns>() }.is_left()
}

/// Whether the address lies in the tensor memory of a block whose window begins at `shared`.
pub fn has(shared: *const u8, address: *const u8) -> bool {
    let offset = (address as usize).wrapping_sub(shared as usize);
    let in_part = offset & ((1 << CLUSTER_SHIFT) - 1);
    (TENSOR_MEMORY as usize..END).contains(&in_part)
}

/// A block's tensor memory: `(lane, column)` is word `column × 128 + lane`.
#[derive(Clone, Copy)]
struct Memory(*mut u8);

impl Memory {
    /// A word; what lies outside of the memory is taken modulo its size.
    ///
    /// # Safety
    /// The memory is mapped.
    unsafe fn read(self, lane: usize, column: usize) -> u32 {
        // SAFETY: the caller's promise.
        unsafe { self.word(lane, column).read() }
    }

    /// # Safety
    /// As for [`Memory::read`].
    unsafe fn write(self, lane: usize, column: usize, word: u32) {
        // SAFETY: the caller's promise.
        unsafe { self.word(lane, column).write(word) }
    }

    /// The block's shared memory.
    fn shared(self) -> *const u8 {
        self.0.wrapping_sub(TENSOR_MEMORY as usize)
    }

    fn word(self, lane: usize, column: usize) -> *mut u32 {
        self.0.cast::<u32>().wrapping_add(column % 512 * 128 + lane % 128)
    }

    /// # Safety
    /// The memory is mapped, and nobody else has a reference to the state.
    unsafe fn columns<'a>(self) -> &'a mut Columns {
        // SAFETY: the caller's promise; the state lies right in front of the memory.
        unsafe { &mut *self.0.sub(STATE_BYTES).cast() }
    }
}

/// The tensor memories of the pair that a block is in: that of the even rank, and that of the odd one.
struct Pair {
    memories: [Memory; 2],
    /// Which of them is the block's own.
    own: usize,
}

impl Pair {
    /// `None` where the cluster has no other block.
    fn of(tensors: *mut u8, operation: u64) -> Option<Pair> {
        let rank = operation >> RANK_SHIFT & 0xffff;
        let n_ranks = operation >> RANKS_SHIFT;
        if rank | 1 >= n_ranks {
            return None;
        }
        let own = (rank & 1) as usize;
        let even = tensors.wrapping_sub(own << CLUSTER_SHIFT);
        Some(Pair { memories: [Memory(even), Memory(even.wrapping_add(1 << CLUSTER_SHIFT))], own })
    }
}

/// What the kernel's code asks for.
///
/// # Safety
/// A kernel calls it, with the address of its block's tensor memory.
pub unsafe extern "C" fn ask(
    _: *const Launch,
    tensors: *mut u8,
    operation: u64,
    w0: u64,
    w1: u64,
    w2: u64,
    w3: u64,
    w4: u64,
    w5: u64,
    w6: u64,
    w7: u64,
) -> i32 {
    let own = Memory(tensors);
    let pair = match operation & PAIR != 0 {
        true => match Pair::of(tensors, operation) {
            Some(pair) => Some(pair),
            None => return WRONG,
        },
        false => None,
    };
    let request = match operation & 0xff {
        ALLOC => Request::Alloc(w0 as u32),
        DEALLOC => Request::Dealloc { columns: w0 as u32, address: w1 as u32 },
        RELINQUISH => Request::Relinquish,
        // SAFETY: the caller's promise.
        MMA => unsafe {
            return product::run(own, pair.as_ref(), operation, &[w0, w1, w2, w3, w4, w5, w6, w7]);
        },
        // SAFETY: as above.
        COPY => return unsafe { copy::cp(own, pair.as_ref(), operation, w0 as u32, w1) },
        // SAFETY: as above.
        SHIFT => return unsafe { copy::shift(own, pair.as_ref(), w0 as u32) },
        _ => return WRONG,
    };
    match pair {
        // SAFETY: the block's own, and no other call of this is under way.
        None => unsafe { own.columns() }.answer(request),
        // SAFETY: as above; the even block keeps what the pair has.
        Some(pair) => unsafe { pair.memories[0].columns() }.answer_pair(pair.own, request),
    }
}
