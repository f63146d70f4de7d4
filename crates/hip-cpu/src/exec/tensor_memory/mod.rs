//! Tensor memory and what `tcgen05` does with it: what kernels ask for by [`ask`], `compiler::tensor_memory` says how.
//!
//! A block's lies at `TENSOR_MEMORY` behind its shared memory, that of the other block of a pair as far from this as
//! their shared memories are from each other. One OS thread runs both blocks, so nothing here is locked or atomic.

mod columns;

use compiler::ir::{CLUSTER_SHIFT, TENSOR_MEMORY, TENSOR_MEMORY_BYTES};
use compiler::tensor_memory::{ALLOC, DEALLOC, PAIR, RANK_SHIFT, RANKS_SHIFT, RELINQUISH, WRONG};

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
pub fn clear(shared: *mut u8) {
    // SAFETY: whoever calls has mapped the block's window up to `END`, and nobody runs on it.
    unsafe { shared.add(START).cast::<Columns>().write(Columns::default()) }
}

/// A block's tensor memory: `(lane, column)` is word `column × 128 + lane`.
#[derive(Clone, Copy)]
struct Memory(*mut u8);

impl Memory {
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
    first: u64,
    second: u64,
    _: u64,
    _: u64,
    _: u64,
    _: u64,
    _: u64,
    _: u64,
) -> i32 {
    let request = match operation & 0xff {
        ALLOC => Request::Alloc(first as u32),
        DEALLOC => Request::Dealloc { columns: first as u32, address: second as u32 },
        RELINQUISH => Request::Relinquish,
        _ => return WRONG,
    };
    if operation & PAIR == 0 {
        // SAFETY: the block's own, and no other call of this is under way.
        return unsafe { Memory(tensors).columns() }.answer(request);
    }
    let Some(pair) = Pair::of(tensors, operation) else { return WRONG };
    // SAFETY: as above; the even block keeps what the pair has.
    unsafe { pair.memories[0].columns() }.answer_pair(pair.own, request)
}
