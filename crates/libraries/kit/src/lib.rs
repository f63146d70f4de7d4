//! What every library of NVIDIA's that we stand in for needs besides what its calls mean: handles that are numbers, the
//! driver's calls, work of the CPU in stream order, kernels, the border to C, a library of ROCm's, who computes, where loggers write, and which
//! CUDA the process is of.
//!
//! The rule: nothing here knows one library from another.

#![expect(non_snake_case, reason = "the driver's functions have C's names")]

pub mod address;
mod border;
pub mod driver;
pub mod engine;
mod error;
pub mod far;
pub mod graph;
pub mod hip;
pub mod kernels;
pub mod log;
mod numbers;
mod place;
pub mod registry;
pub mod release;
pub mod stream;

pub use address::{Address, Addresses};
pub use error::{Error, Result};
pub use place::Place;
pub use registry::{Numbered, Registry};
