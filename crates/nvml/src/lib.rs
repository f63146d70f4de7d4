//! What NVML's calls mean. Who the devices are comes from `libcuda.so.1`, what they do at the moment from the system
//! (`sensors`); what nobody can tell is `NVML_ERROR_NOT_SUPPORTED`.
//!
//! Nothing here makes a CUDA context.

#![expect(non_snake_case, non_camel_case_types, non_upper_case_globals, reason = "these are the C names")]

pub mod api;
mod device;
mod entry;
mod error;
mod identity;
pub mod sensors;
mod session;
#[rustfmt::skip]
#[expect(clippy::undocumented_unsafe_blocks, reason = "bindgen's `Default`: all-zero bytes are a value of every C struct here")]
#[path = "generated/types.rs"]
pub mod types;
mod version;

pub use device::Device;
pub use entry::{entry, entry_value, missing};
pub use error::{Error, Result};
