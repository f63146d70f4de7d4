//! Sparse products, solutions and conversions on the CPU's cores, over slices that the caller has made of memory.
//!
//! The rule: an index that points out of its vector or matrix ends the work with a panic, and nothing is written outside of the slices. Rows are
//! shared among cores so that each has as many entries as the others.

#![deny(unsafe_code)]

mod avx512;
mod blocks;
mod color;
mod convert;
mod dense;
mod entries;
mod factor;
mod isa;
mod matrix;
mod parts;
mod product;
mod sampled;
mod scalar;
mod shared;
mod spgemm;
mod triangle;
mod tridiagonal;
mod vector;

pub use blocks::{Blocked, Blocks, Regrouped};
pub use color::color;
pub use convert::{compress, expand, to_dense, transpose_arrays};
pub use dense::{Dense, DenseMut, Layout};
pub use entries::{Entries, is_entry, offsets_of};
pub use factor::{Boost, cholesky, lower_upper, missing_diagonal};
pub use matrix::{Index, Matrix, Offsets, group_coordinates};
pub use num_complex::Complex;
pub use product::{Operation, Subset, dense_times, spmm, spmv};
pub use sampled::sddmm;
pub use scalar::{Element, Scalar, widen};
pub use shared::SharedRows;
pub use spgemm::{
    Part, Product, Row, count_products, multiply, multiply_into, products, sum_rows, sum_rows_into,
};
pub use triangle::{Shape, Triangle};
pub use tridiagonal::{solve_banded, solve_pivoting, solve_tridiagonal};
pub use vector::{axpby, dot, gather, rotate, scatter};
