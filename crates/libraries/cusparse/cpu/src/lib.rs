//! Sparse products, solutions and conversions on the CPU's cores, over slices that the caller has made of memory.
//!
//! The rule: an index that points out of its vector or matrix ends the work with a panic, and nothing is written outside of the slices. Rows are
//! shared among cores so that each has as many entries as the others.

#![forbid(unsafe_code)]

mod convert;
mod dense;
mod factor;
mod matrix;
mod parts;
mod product;
mod sampled;
mod scalar;
mod spgemm;
mod triangle;
mod tridiagonal;
mod vector;

pub use convert::{compress, count_dense, expand, rows_of, scatter_dense, to_dense, transpose_arrays};
pub use dense::{Dense, DenseMut, Layout};
pub use factor::{Boost, cholesky, lower_upper};
pub use matrix::{Index, Matrix, Offsets, group_coordinates};
pub use num_complex::Complex;
pub use product::{Operation, spmm, spmv};
pub use sampled::sddmm;
pub use scalar::{Element, Scalar, widen};
pub use spgemm::{Product, count_products, multiply, multiply_into};
pub use triangle::{Shape, Triangle};
pub use tridiagonal::{solve_pivoting, solve_tridiagonal};
pub use vector::{axpby, dot, gather, rotate, scatter};
