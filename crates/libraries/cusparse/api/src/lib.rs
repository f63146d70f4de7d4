//! What the calls of cuSPARSE mean. The numbers are `cusparse_cpu`'s, on the CPU device in stream order, and where the device is an
//! AMD GPU hipSPARSE's ([`hip`]) or on copies, before the call comes back.

#![expect(non_snake_case, non_camel_case_types, reason = "these are the C names")]

pub mod api;
mod bare;
mod descriptor;
mod error;
mod handle;
pub mod hip;
mod log;
mod memory;
#[rustfmt::skip]
#[path = "generated/release.rs"]
mod release;
pub mod types;

pub use error::{Error, Result, entry, entry_value, missing};
