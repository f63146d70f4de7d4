//! Passes over the IR, one file each; this file is the ordered list.
//!
//! `open` says which kernels need no code for each block shape · `fold` decides what the block's shape decides · `common` does each pure thing once · `cfg` cleans the graph, splits at
//! barriers and gives loops one back edge and exits of their own · `invariant` finds what never changes for a thread · `lcssa` closes loops · `shape` says what lanes have in common (with `number`'s
//! ranges and divisors) · `classify` decides whether lockstep is allowed (`members`: whether a collective's have all come) and `in_step` whether it is counted on · `spins`
//! finds loops that wait, `intake` has them take in what their lanes do before they meet · `release` has them take in what others wait for and `waves` says which kernels cannot have two warps in a wave (AMD GPUs) · `regions` cuts at barriers · `places` finds what passes through a region.
//! `offsets` finds values whose lanes lie at constant distances · `apart` finds atomics whose lanes all have words of their own · `effects` finds what others see of a block · `known` tabulates what follows from the thread index · `dominators`, `loops`, `layout`, `liveness`, `ssa`, `visit`, `bits` are what they stand on.

pub mod apart;
pub mod bits;
pub mod cfg;
pub mod classify;
pub mod common;
pub mod dominators;
pub mod effects;
pub mod evaluate;
pub mod fold;
pub mod in_step;
pub mod intake;
pub mod invariant;
pub mod known;
pub mod layout;
pub mod lcssa;
pub mod liveness;
pub mod loops;
pub mod members;
pub mod number;
pub mod offsets;
pub mod open;
pub mod places;
pub mod regions;
pub mod release;
pub mod shape;
pub mod spins;
pub mod ssa;
pub mod steps;
#[cfg(test)]
pub mod testing;
pub mod visit;
pub mod waves;
