//! What the calls of cuDNN mean, 8's and 9's. The numbers are `cudnn_cpu`'s: on the CPU device in stream order, on an AMD GPU on copies
//! of its memory, before the call comes back.

#![expect(non_snake_case, non_camel_case_types, non_upper_case_globals, reason = "these are the C names")]
#![expect(clippy::too_many_arguments, reason = "cuDNN's own lists")]

pub mod api;
mod descriptor;
mod error;
mod face;
mod graph;
mod handle;
mod memory;
mod recurrent;
mod tensor;
pub mod types;

pub use error::{Error, Result};
pub use face::{entry, entry_value, missing};
