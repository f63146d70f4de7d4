//! ROCm's hipSPARSE behind cuSPARSE on AMD GPUs. A call of the typed API is handed on, with its numbers as hipSPARSE has them, before our
//! own body of the name sees it; a body of the generic API asks [`generic`], once it has looked at its arguments, to do the work with
//! hipSPARSE's descriptors made of ours.
//!
//! The rule: what hipSPARSE lacks, or refuses before it has written anything, is our own code's, on copies. Of calls that go on with what
//! another has begun, the one that begins decides for all of them.

pub mod call;
#[rustfmt::skip]
#[allow(clippy::undocumented_unsafe_blocks, reason = "each hands on its caller's promise")]
#[allow(clippy::too_many_arguments, non_upper_case_globals, reason = "C's names and arguments")]
#[path = "../generated/hip_calls.rs"]
pub mod calls;
pub mod convert;
pub(crate) mod generic;
pub mod info;
pub mod library;
pub mod objects;
#[cfg(test)]
mod tests;

pub use call::{HipCall, HipHandle};

use crate::types::cusparseHandle_t;
use crate::{Result, handle};

/// The handle's hipSPARSE, made ready for a call; none where our own code computes. `enqueues`: the call has work for the stream.
pub fn of(handle: cusparseHandle_t, enqueues: bool) -> Result<Option<HipCall>> {
    handle::get(handle)?.hip(enqueues)
}

/// Ends an export's call where hipSPARSE has it.
#[macro_export]
macro_rules! on_hip {
    ($handle:ident, $enqueues:literal, $name:ident($($argument:ident),*)) => {
        if let Some(hip) = $crate::hip::of($handle, $enqueues)? {
            // SAFETY: cuSPARSE's contract for the pointers is hipSPARSE's.
            if unsafe { $crate::hip::calls::$name(&hip, $($argument),*) }? {
                return Ok(());
            }
        }
    };
}
