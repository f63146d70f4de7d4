//! The numerics of cuFFT on the CPU: no handles, no CUDA types, no streams.
//!
//! A [`Plan`] is made of what `cufftMakePlanMany64` or `cufftXtMakePlanMany` is given, and executed on memory that the
//! CPU can read, over the threads that the caller names ([`Cores`]). Transforms are unnormalised, as cuFFT's are.
//! Complex to real keeps its input where it is out of place, which cuFFT does for one dimension only.

mod area;
mod axis;
mod butterfly;
mod columns;
mod cores;
mod element;
mod error;
mod isa;
mod kernel;
mod large;
mod layout;
mod line;
mod plan;
mod program;
mod real;
mod scratch;
mod simd;
mod stage;
mod status;
mod tables;

pub use cores::{Alone, Cores, Rayon};
pub use element::{Direction, Element, Kind, Precision, Real};
pub use error::{Error, Result};
pub use half::{bf16, f16};
#[doc(hidden)]
pub use isa::Isa;
pub use layout::{Description, Embedding, LONGEST, MOST_RANK, Strided};
pub use num_complex::Complex;
pub use plan::{Load, Plan, Store, Value};
