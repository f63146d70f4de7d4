//! CUDA's C types, with the sizes and offsets of NVIDIA's headers asserted at compile time.
//!
//! Driver types lie at the root (`cuda_abi::CUresult`), runtime types per major (`cuda_abi::runtime::v12::cudaDeviceProp`).
//! Enums are transparent integers with associated constants (`CUresult::CUDA_ERROR_INVALID_VALUE`): a program may pass any value.

#![no_std]
#![expect(non_camel_case_types, non_snake_case, non_upper_case_globals, reason = "these are the C names")]

pub mod ahead;
#[rustfmt::skip]
#[expect(clippy::undocumented_unsafe_blocks, reason = "bindgen's `Default`: all-zero bytes are a value of every C struct here")]
#[path = "generated/driver.rs"]
mod driver;
mod kernel_node;
mod known;
pub mod proc_address;
pub mod runtime;
mod special;

pub use driver::*;
pub use known::{CudawayDevice, CudawayHipStream};
pub use special::*;
