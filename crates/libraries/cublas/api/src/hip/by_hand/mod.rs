//! Routines that hipBLAS has under another shape: other arguments, several calls, or one type of many.

mod gemm;
pub(super) mod inverse;
mod level1;
pub mod otherwise;
mod packed;

pub use gemm::*;
pub use inverse::*;
pub use level1::*;
pub use packed::*;

/// The form with 32-bit integers of a routine: the same with wide ones.
macro_rules! narrow_forms {
    ($(fn $name:ident($($param:ident: $ty:ty),* $(,)?) = $wide:ident;)*) => { $(
        /// # Safety
        /// cuBLAS's contract for the pointers.
        pub unsafe fn $name(hip: &$crate::hip::HipCall, $($param: $ty),*) -> $crate::Result {
            // SAFETY: the caller's promise.
            unsafe { $wide(hip, $($param.into()),*) }
        }
    )* };
}
use narrow_forms;
