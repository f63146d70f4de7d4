//! What each `cuda*` call means. `api/` has one body per name; the exports are generated in crates/libcudart.
//! The rule: the driver is reached only through the C functions of `libcuda.so.1`, so this runtime also runs on another driver.
//!
//! State kept here is what CUDA's runtime adds to the driver: registered kernels and variables, each thread's device, call
//! configuration and last errors (one per instance of the runtime). Contexts, memory, streams and modules live in the driver.

#![allow(non_snake_case, reason = "bodies have C's names")]
#![allow(clippy::too_many_arguments, reason = "signatures are CUDA's")]

pub mod api;
mod device;
mod driver;
mod entry;
mod error;
mod error_names;
mod last_error;
mod registry;
mod stream;

pub use driver::{majors, use_major};
pub use entry::{entry, entry_per_thread, entry_value, missing, v13};
pub use error::{Error, Result};
