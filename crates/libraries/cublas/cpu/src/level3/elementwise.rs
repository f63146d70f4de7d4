//! cuBLAS's sums and scalings of whole matrices.

use crate::matrix::Matrix;
use crate::{Op, Scalar, Side, parallel};

/// Columns, and rows, of the tiles in which a transposed matrix is read.
const TILE: i64 = 32;

/// `C = alpha·op(A) + beta·op(B)`, m rows and n columns. C may be A or B, if that is taken as it is.
///
/// # Safety
/// The matrices that are not multiplied by zero are there.
#[expect(clippy::too_many_arguments, reason = "the BLAS's own")]
pub unsafe fn geam<S: Scalar>(
    op_a: Op,
    op_b: Op,
    m: i64,
    n: i64,
    alpha: S,
    a: *const S,
    lda: i64,
    beta: S,
    b: *const S,
    ldb: i64,
    c: *mut S,
    ldc: i64,
) {
    let (a, b, c) = (Matrix::read(a, lda), Matrix::read(b, ldb), Matrix::new(c, ldc));
    let (with_a, with_b) = (!alpha.is_zero(), !beta.is_zero());
    parallel((n + TILE - 1) / TILE, TILE * m, |tile| {
        let columns = tile * TILE..n.min((tile + 1) * TILE);
        for start in (0..m).step_by(TILE as usize) {
            for column in columns.clone() {
                for row in start..m.min(start + TILE) {
                    // SAFETY: the caller's word; columns of C for each call. An element is read before it is written.
                    unsafe {
                        let left = if with_a { alpha * a.get_op(op_a, row, column) } else { S::zero() };
                        let right = if with_b { beta * b.get_op(op_b, row, column) } else { S::zero() };
                        c.set(row, column, left + right);
                    }
                }
            }
        }
    });
}

/// `C = diag(x)·A`, or `A·diag(x)`, m rows and n columns. C may be A.
///
/// # Safety
/// The matrices and the vector are there.
#[expect(clippy::too_many_arguments, reason = "the BLAS's own")]
pub unsafe fn dgmm<S: Scalar>(
    side: Side,
    m: i64,
    n: i64,
    a: *const S,
    lda: i64,
    x: *const S,
    incx: i64,
    c: *mut S,
    ldc: i64,
) {
    let (a, c) = (Matrix::read(a, lda), Matrix::new(c, ldc));
    let length = if side == Side::Left { m } else { n };
    let start = if incx < 0 { (1 - length) * incx } else { 0 };
    let x = Matrix::read(x.wrapping_offset(start as isize), incx);
    parallel(n, m, |column| {
        for row in 0..m {
            // SAFETY: the caller's word; a column for each call.
            unsafe {
                let factor = x.get(0, if side == Side::Left { row } else { column });
                c.set(row, column, a.get(row, column) * factor);
            }
        }
    });
}
