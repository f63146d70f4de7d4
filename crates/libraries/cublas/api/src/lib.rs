//! What the calls of cuBLAS and cuBLASLt mean. Who computes is the device's affair: `cublas_cpu` for the CPU device, hipBLAS
//! for AMD GPUs.

#![expect(non_snake_case, non_camel_case_types, non_upper_case_globals, reason = "these are the C names")]
#![expect(clippy::too_many_arguments, reason = "signatures are cuBLAS's")]

pub mod api;
mod convert;
mod engine;
mod entry;
mod error;
mod foreign;
pub mod handle;
pub mod hip;
pub mod legacy;
pub mod log;
mod lt;
mod mixed;
mod product;
mod stream;
pub mod xt;
#[rustfmt::skip]
#[expect(clippy::undocumented_unsafe_blocks, reason = "bindgen's `Default`: all-zero bytes are a value of every C struct here")]
#[path = "generated/types.rs"]
mod types;

pub use entry::{entry, entry_value, missing, on_handle};
pub use error::{Error, Result, require};
pub use foreign::*;
pub use handle::Handle;
pub use stream::Scalar;
pub use types::*;
