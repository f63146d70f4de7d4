//! What the calls of cuDNN mean, 8's and 9's. On the CPU device the numbers are `cudnn_cpu`'s, in stream order; on an AMD GPU ROCm's
//! MIOpen's where it has a function that means the same (`hip`), else those of kernels of ours (`kernels`), and of the rest `cudnn_cpu`'s, on
//! copies of its memory, before the call comes back.

#![expect(non_snake_case, non_camel_case_types, non_upper_case_globals, reason = "these are the C names")]
#![expect(clippy::too_many_arguments, reason = "cuDNN's own lists")]

pub mod api;
mod descriptor;
mod error;
mod face;
mod graph;
mod handle;
mod hip;
mod kernels;
mod memory;
mod recurrent;
mod tensor;
pub mod types;

pub use error::{Error, Result};
pub use face::{entry, entry_value, missing};
