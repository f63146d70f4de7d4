//! Passes over the IR, one file each. This is the list, in the order in which they run for a kernel and a block shape:
//!
//! 0. `taken_apart`: what warps do with matrices, where the target has no function for it.
//! 1. `open`: which kernels need no code for each block shape.
//! 2. `rounds`: loops over the grid; `fold`: what the block's shape decides.
//! 3. `unroll`: loops of barriers whose trips the block's shape decides.
//! 4. `common_subexpressions`: each pure thing is done once.
//! 5. `cfg`: a clean graph, split at barriers, whose loops have one back edge and exits of their own.
//! 6. `invariant`: what never changes for a thread.
//! 7. `lcssa`: loops are closed.
//! 8. `disjoint`: what of addresses is a sum. `divergence`: what lanes have in common; `value_ranges` has ranges and divisors for it, `intervals` what is known of
//!    numbers with a sign.
//! 9. `flatten`: branches that are not worth the lanes' parting; what changes anything begins at 4 again.
//! 10. `classify`: whether lockstep is allowed (`members`: whether a collective's have all come), and `in_step` whether it is counted
//!     on.
//! 11. `spins`: loops that wait; `intake` has them take in what their lanes do before they meet, `release` what others wait for,
//!     `aside` has lanes that go past them do that first.
//!     `waves` says which kernels cannot have two warps in a wave (AMD GPUs).
//! 12. `regions`: cuts at barriers; `places` finds what passes through a region, `acting` who has nothing to do in it.
//! 13. `offsets`: values whose lanes lie at constant distances; `apart`: atomics whose lanes all have words of their own; `ranks`: lanes that count
//!     keys together; `effects`:
//!     what others see of a block; `meetings`: where lanes that parted come together; `known`: tables of what follows from the thread index; `steps`: how long a launch's threads are.
//!
//! `bits`, `dominators`, `evaluate`, `layout`, `liveness`, `loops`, `ssa` and `visit` are what they stand on.

pub mod acting;
pub mod apart;
pub mod aside;
pub mod bases;
pub mod bits;
pub mod cfg;
pub mod classify;
pub mod common_subexpressions;
pub mod disjoint;
pub mod divergence;
pub mod dominators;
pub mod effects;
pub mod evaluate;
pub mod flatten;
pub mod fold;
pub mod in_step;
pub mod intake;
pub mod intervals;
pub mod invariant;
pub mod known;
pub mod layout;
pub mod lcssa;
pub mod liveness;
pub mod loops;
pub mod meetings;
pub mod members;
pub mod offsets;
pub mod open;
pub mod per_value;
pub mod places;
pub mod pressure;
pub mod ranks;
pub mod regions;
pub mod release;
pub mod rounds;
pub mod spins;
pub mod ssa;
pub mod steps;
pub mod taken_apart;
#[cfg(test)]
pub mod testing;
pub mod unroll;
pub mod value_ranges;
pub mod visit;
pub mod waves;
pub mod whole_blocks;
