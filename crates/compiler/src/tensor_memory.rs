//! What `tcgen05` asks the host side for ([`crate::ir::Syscall::TensorMemory`]): the first word says what is to be done and
//! how, eight more are its operands.
//!
//! | operation | words |
//! |---|---|
//! | [`ALLOC`], [`DEALLOC`] | number of columns; address |
//! | [`RELINQUISH`] | |
//!
//! The answer is 0 or, of [`ALLOC`], the address; [`NOT_YET`] where a warp has to ask again; anything else below zero is an
//! instruction that the manual does not have.

/// Bits 0 to 7 of the first word.
pub const ALLOC: u64 = 0;
pub const DEALLOC: u64 = 1;
pub const RELINQUISH: u64 = 2;

/// `.cta_group::2`
pub const PAIR: u64 = 1 << 8;
/// The block's rank in its cluster, 16 bits, and the cluster's number of blocks, 16 bits.
pub const RANK_SHIFT: u32 = 32;
pub const RANKS_SHIFT: u32 = 48;

pub const N_WORDS: usize = 8;

/// Columns are not there yet, or the other block of the pair is not.
pub const NOT_YET: i32 = -1;
/// What the manual does not have.
pub const WRONG: i32 = -2;
