//! CUDA runtime types. `v11`, `v12` and `v13` are complete: each holds what is its own and re-exports what all share.
//! In the generated files, all-zero bytes are a value of every C struct: that is what bindgen's `Default` relies on.

#![expect(clippy::undocumented_unsafe_blocks, reason = "bindgen's `Default`, see above")]

#[rustfmt::skip]
#[path = "generated/runtime/shared.rs"]
mod shared;
#[rustfmt::skip]
#[path = "generated/runtime/v11.rs"]
pub mod v11;
#[rustfmt::skip]
#[path = "generated/runtime/v12.rs"]
pub mod v12;
#[rustfmt::skip]
#[path = "generated/runtime/v13.rs"]
pub mod v13;

pub use crate::special::{cudaStreamLegacy, cudaStreamPerThread};
pub use shared::*;
