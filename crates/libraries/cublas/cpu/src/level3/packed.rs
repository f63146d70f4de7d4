//! Triangles between their packed form, where columns follow each other without gaps, and their place in a matrix.

use crate::matrix::Matrix;
use crate::{Scalar, Uplo};

/// The rows of a triangle's column, as (first, number).
fn rows(uplo: Uplo, column: i64, n: i64) -> (i64, i64) {
    match uplo {
        Uplo::Lower => (column, n - column),
        Uplo::Upper => (0, column + 1),
    }
}

/// Packed to triangle; the matrix's other triangle stays.
///
/// # Safety
/// Both are there and do not overlap.
pub unsafe fn tpttr<S: Scalar>(uplo: Uplo, n: i64, packed: *const S, a: *mut S, lda: i64) {
    let a = Matrix::new(a, lda);
    let mut packed = packed;
    for column in 0..n {
        let (first, count) = rows(uplo, column, n);
        // SAFETY: the caller's word.
        unsafe {
            std::ptr::copy_nonoverlapping(packed, a.at(first, column), count as usize);
            packed = packed.add(count as usize);
        }
    }
}

/// Triangle to packed.
///
/// # Safety
/// Both are there and do not overlap.
pub unsafe fn trttp<S: Scalar>(uplo: Uplo, n: i64, a: *const S, lda: i64, packed: *mut S) {
    let a = Matrix::read(a, lda);
    let mut packed = packed;
    for column in 0..n {
        let (first, count) = rows(uplo, column, n);
        // SAFETY: the caller's word.
        unsafe {
            std::ptr::copy_nonoverlapping(a.at(first, column).cast_const(), packed, count as usize);
            packed = packed.add(count as usize);
        }
    }
}
