//! The numerics of cuSOLVER on the CPU: LAPACK's results in LAPACK's places, no handles, no CUDA types, no streams.
//!
//! Callers (crate `cusolver`) have checked every argument. Matrices lie column after column, sizes are `i64`, pivots count from 1. What a
//! routine returns is LAPACK's `info` where it is not negative. Products are `cublas_cpu`'s; of what is here only complex eigenvalues
//! and sparse factors are `faer`'s.
//!
//! The rule: nothing is written that LAPACK does not write, and rows between a matrix's last and its leading dimension are nobody's.
#![expect(clippy::too_many_arguments, reason = "LAPACK's own lists")]

mod bidiagonal;
pub mod cholesky;
mod dense;
mod divide;
pub mod eigen;
pub mod factors;
mod field;
pub mod indefinite;
pub mod jacobi;
pub mod least;
pub mod lu;
pub mod ordering;
pub mod polar;
pub mod qr;
pub mod reduction;
pub mod refactor;
mod reflection;
mod schur;
pub mod sparse;
pub mod spectrum;
pub mod svd;

pub use cublas_cpu::lapack::getrs;
pub use cublas_cpu::{Complex, Diag, Matrix, Op, Real, Scalar, Side, Uplo};
pub use field::Field;

/// Calls `body` with `0..count`, each on some core: matrices of a batch.
pub fn each(count: i64, body: impl Fn(i64) + Sync + Send) {
    use rayon::prelude::*;
    (0..count).into_par_iter().for_each(body);
}
