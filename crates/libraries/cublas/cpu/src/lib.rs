//! The numerics of cuBLAS on the CPU: no handles, no CUDA types, no streams.
//!
//! Callers (crate `blas`) have checked every argument and give raw pointers to memory that the CPU can read;
//! dimensions, leading dimensions and increments are `i64`, matrices lie column after column. What the reference BLAS
//! says of special cases holds here: a factor of zero means that what it multiplies is never read, an empty size does
//! nothing, a negative increment starts at the vector's far end.
#![expect(clippy::too_many_arguments, reason = "BLAS's own lists")]

pub mod cblas;
pub mod epilogue;
pub mod fp8;
mod gemm;
pub mod isa;
mod lanes;
pub mod lapack;
pub mod level1;
pub mod level2;
pub mod level3;
mod matrix;
pub mod mixed;
pub mod op;
mod parallel;
pub mod rotation;
pub mod scalar;
pub mod storage;
mod thin;
mod vector;

pub use fp8::{E4M3, E5M2};
pub use gemm::gemm;
pub use half::{bf16, f16};
pub use matrix::Matrix;
pub use num_complex::Complex;
pub use op::{Diag, Op, Side, Uplo};
pub use parallel::parallel;
pub use scalar::{Number, Real, Scalar, Stored};
