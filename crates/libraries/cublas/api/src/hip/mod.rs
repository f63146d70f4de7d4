//! ROCm's hipBLAS as the engine of a handle: every routine is handed on, with its arguments as hipBLAS has them.
//!
//! [`calls`] has the routines that differ in names and numbers only; it is generated from the two libraries' signatures.
//! [`by_hand`] has those that hipBLAS has under another shape, and [`lt`] cuBLASLt's products on hipBLASLt.

pub mod by_hand;
pub mod call;
pub mod convert;
pub mod library;
pub mod lt;
#[rustfmt::skip]
#[allow(clippy::undocumented_unsafe_blocks, reason = "each hands on its caller's promise")]
#[path = "../generated/hip_calls.rs"]
pub mod calls;
#[cfg(test)]
mod tests;

pub use call::{HipCall, HipHandle};
pub use library::Release;

use crate::Result;
use crate::handle::Engine;

/// For the calling thread's device, which is an AMD GPU.
pub fn engine() -> Result<Engine> {
    HipHandle::new().map(Engine::Hip)
}
