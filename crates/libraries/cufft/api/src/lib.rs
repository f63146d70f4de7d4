//! What the calls of cuFFT mean. On the CPU device transforms are `cufft_cpu`'s, in stream order; on AMD GPUs hipFFT's.

#![expect(non_snake_case, non_camel_case_types, reason = "these are the C names")]
#![expect(clippy::too_many_arguments, reason = "as many as the C functions have")]

pub mod api;
mod arguments;
mod descriptor;
mod error;
mod fftw;
mod hip;
mod plan;
#[rustfmt::skip]
#[path = "generated/release.rs"]
mod release;
pub mod types;

pub use error::{Error, Result, entry, entry_value, missing};
