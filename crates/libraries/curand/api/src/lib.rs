//! What the calls of cuRAND mean. The numbers are `curand_cpu`'s, whatever the device: on the CPU device they are written in
//! stream order; on a GPU kernels of ours make them (`kernels.rs`), or, of the one generator that has none, the host does and they are
//! copied. `CUDAWAY_RAND=hip` has hipRAND make other numbers (`hip.rs`).

#![expect(non_snake_case, non_camel_case_types, reason = "these are the C names")]

pub mod api;
mod distribution;
mod draw;
mod error;
mod generator;
mod hip;
mod kernels;
#[rustfmt::skip]
#[path = "generated/release.rs"]
mod release;
pub mod types;

pub use error::{Error, Result, entry, entry_value, missing};
