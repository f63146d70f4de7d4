//! Matrices with vectors.
//!
//! Vectors are gathered first and given back last: sums are kept in `S` whatever lies in memory, and loops see
//! neighbours whatever the increments are. A zero in a vector is multiplied like any other number, so that an infinity
//! or a NaN in the matrix is seen.
//!
//! # Safety
//! Of every function here: matrices and vectors are as their arguments say, to be read, and written where they are
//! results, until it returns; a matrix that is written overlaps nothing else.
#![expect(clippy::missing_safety_doc, reason = "the module's documentation says it once for all")]

mod column;
mod general;
mod matrix;
mod symmetric;
mod triangular;
mod update;

pub use general::{gbmv, gemv};
pub use symmetric::{hbmv, hemv, hpmv, sbmv, spmv, symv};
pub use triangular::{tbmv, tbsv, tpmv, tpsv, trmv, trsv};
pub use update::{gerc, geru, her, her2, hpr, hpr2, spr, spr2, syr, syr2};

use crate::vector::Vector;
use crate::{Scalar, Stored};

/// y = β y, where zero means that y is not read.
fn scale<S: Scalar, Y: Stored<S>>(beta: S, y: Vector<Y>) {
    if beta.is_one() {
        return;
    }
    for i in 0..y.len() {
        y.set(i, Y::store(if beta.is_zero() { S::zero() } else { beta * y.get(i).load() }));
    }
}

/// y = α sums + β y, where a zero β means that y is not read.
fn finish<S: Scalar, Y: Stored<S>>(alpha: S, sums: &[S], beta: S, y: Vector<Y>) {
    for (i, sum) in sums.iter().enumerate() {
        let product = alpha * *sum;
        y.set(i, Y::store(if beta.is_zero() { product } else { product + beta * y.get(i).load() }));
    }
}
