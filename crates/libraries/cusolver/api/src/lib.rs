//! What the calls of cuSOLVER mean. The numbers are `cusolver_cpu`'s, on the CPU device in stream order; on an AMD GPU hipSOLVER
//! computes what it has ([`hip`]), and the rest is `cusolver_cpu`'s on copies, before the call comes back.

#![expect(non_snake_case, non_camel_case_types, reason = "these are the C names")]

pub mod api;
mod arguments;
mod description;
mod error;
mod handle;
pub mod hip;
mod mg;
#[rustfmt::skip]
#[path = "generated/release.rs"]
mod release;
pub mod types;

pub use error::{Error, Result, entry, entry_value, missing};
