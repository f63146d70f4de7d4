//! `C += A·B` for a B of few columns: A is read once, down some of its columns at a time, as memory likes it best; the copies that
//! products of larger matrices make first would cost as much as the product.

use crate::matrix::Matrix;
use crate::{Op, Scalar, parallel, vectorized};

/// As many columns of B are few.
pub const FEW: i64 = 16;

/// Elements of an A that is not better copied: one that caches near the core do not hold.
pub const WORTH: i64 = 1 << 18;

/// Columns of A that are read beside each other. More would meet in one set of a cache where their distance is a power of two.
const DEPTH: usize = 8;
/// Rows of a tile of C, and its columns.
const ROWS: usize = 8;
const COLUMNS: usize = 4;

/// Rows of one core's turn: their part of C stays in its cache.
const TURN: i64 = 512;

/// `C += alpha·A·op(B)`, m by n with k columns of A.
///
/// # Safety
/// The matrices are there in full; C overlaps neither A nor B.
pub unsafe fn add<S: Scalar>(
    (m, n, k): (i64, i64, i64),
    alpha: S,
    a: Matrix<S>,
    (op_b, b): (Op, Matrix<S>),
    c: Matrix<S>,
) {
    parallel((m + TURN - 1) / TURN, TURN * k, |turn| {
        let first = turn * TURN;
        let rows = TURN.min(m - first) as usize;
        let (a, c) = (a.from(first, 0), c.from(first, 0));
        for start in (0..k).step_by(DEPTH) {
            let depth = DEPTH.min((k - start) as usize);
            let mut column = 0;
            while column < n {
                let columns = COLUMNS.min((n - column) as usize);
                let mut by = [[S::zero(); COLUMNS]; DEPTH];
                for (at, by) in by.iter_mut().enumerate().take(depth) {
                    for (beside, by) in by.iter_mut().enumerate().take(columns) {
                        // SAFETY: the caller's word.
                        *by = alpha * unsafe { b.get_op(op_b, start + at as i64, column + beside as i64) };
                    }
                }
                add_strip(rows, depth, &by, a.from(0, start), c.from(0, column), columns);
                column += COLUMNS as i64;
            }
        }
    });
}

vectorized! {
    /// The part of some columns of A in some of C, whose caller's word this relies on.
    fn add_strip[S: Scalar](
        rows: usize,
        depth: usize,
        by: &[[S; COLUMNS]; DEPTH],
        a: Matrix<S>,
        c: Matrix<S>,
        columns: usize,
    ) {
        let mut row = 0;
        // SAFETY: the caller's word; rows are below `rows`.
        unsafe {
            if depth == DEPTH && columns == COLUMNS {
                let from: [*const S; DEPTH] = [0, 1, 2, 3, 4, 5, 6, 7].map(|at| a.at(0, at).cast_const());
                let into = [0, 1, 2, 3].map(|at| c.at(0, at));
                while row + ROWS <= rows {
                    let mut tile = [[S::zero(); ROWS]; COLUMNS];
                    for column in 0..COLUMNS {
                        tile[column] = into[column].add(row).cast::<[S; ROWS]>().read();
                    }
                    for at in 0..DEPTH {
                        let along = from[at].add(row).cast::<[S; ROWS]>().read();
                        for column in 0..COLUMNS {
                            for lane in 0..ROWS {
                                tile[column][lane] += along[lane] * by[at][column];
                            }
                        }
                    }
                    for column in 0..COLUMNS {
                        into[column].add(row).cast::<[S; ROWS]>().write(tile[column]);
                    }
                    row += ROWS;
                }
            }
            for column in 0..columns {
                for at in 0..depth {
                    let (from, into, by) = (a.at(0, at as i64), c.at(0, column as i64), by[at][column]);
                    for row in row..rows {
                        *into.add(row) += *from.add(row) * by;
                    }
                }
            }
        }
    }
}
