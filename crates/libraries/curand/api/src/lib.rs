//! What the calls of cuRAND mean. The numbers are `curand_cpu`'s, whatever the device: on the CPU device they are written in
//! stream order, for a GPU they are made on the host and copied.

#![expect(non_snake_case, non_camel_case_types, reason = "these are the C names")]

pub mod api;
mod distribution;
mod error;
mod generator;
#[rustfmt::skip]
#[path = "generated/release.rs"]
mod release;
pub mod types;

pub use error::{Error, Result, entry, entry_value, missing};
