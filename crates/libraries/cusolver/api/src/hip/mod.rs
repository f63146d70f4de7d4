//! ROCm's hipSOLVER behind the dense API on AMD GPUs: a call is handed on, with its numbers as hipSOLVER has them, before our own body of
//! the name sees it. What the library has no function for is the body's.
//!
//! [`calls`] is generated from both libraries' signatures; [`by_hand`] has what hipSOLVER has under another shape.

pub mod by_hand;
pub mod call;
#[rustfmt::skip]
#[allow(clippy::undocumented_unsafe_blocks, reason = "each hands on its caller's promise")]
#[allow(clippy::too_many_arguments, non_upper_case_globals, reason = "C's names and arguments")]
#[path = "../generated/hip_calls.rs"]
pub mod calls;
pub mod convert;
pub mod info;
pub mod library;
#[cfg(test)]
mod tests;

pub use call::{HipCall, HipHandle};

use crate::types::cusolverDnHandle_t;
use crate::{Result, handle};

/// The handle's hipSOLVER, made ready for a call; none where our own code computes. `enqueues`: the call has work for the stream.
pub fn of(handle: cusolverDnHandle_t, enqueues: bool) -> Result<Option<HipCall>> {
    handle::get(handle)?.hip(enqueues)
}

/// Ends an export's call where hipSOLVER has it.
#[macro_export]
macro_rules! on_hip {
    ($handle:ident, $enqueues:literal, $module:ident::$name:ident($($argument:ident),*)) => {
        if let Some(hip) = $crate::hip::of($handle, $enqueues)? {
            // SAFETY: cuSOLVER's contract for the pointers is hipSOLVER's.
            if unsafe { $crate::hip::$module::$name(&hip, $($argument),*) }? {
                return Ok(());
            }
        }
    };
}
