//! Systems of triangles that are small enough for loops.

#![expect(
    clippy::needless_range_loop,
    reason = "iterators are calls, which LLVM leaves out of line in code for other vectors"
)]

use crate::matrix::Matrix;
use crate::{Scalar, vectorized};

/// Triangles of this size are loops.
pub(super) const SMALL: usize = 32;

/// A triangle's columns; zero outside of it.
pub(super) type Small<S> = [[S; SMALL]; SMALL];

/// Columns that are solved at a time by one triangle.
pub(super) const BESIDE: usize = 8;

vectorized! {
    /// Solves `T·x = b` for a column in its place.
    pub(super) fn divide_column[S: Scalar](order: usize, lower: bool, unit: bool, t: &Small<S>, x: &mut [S]) {
        assert!(order <= SMALL && x.len() == order, "a column is as long as the triangle");
        // By index, since iterators' adapters stay calls here.
        let mut step = 0;
        while step < order {
            let k = if lower { step } else { order - 1 - step };
            let (start, end) = if lower { (k + 1, order) } else { (0, k) };
            if !unit {
                x[k] = x[k].over(t[k][k]);
            }
            let factor = x[k];
            for i in start..end {
                x[i] -= t[k][i] * factor;
            }
            step += 1;
        }
    }
}

/// Rows that are solved at a time.
const TILE: usize = 4;

vectorized! {
    /// Solves `T·x = b` for as many columns as a vector has room for, whose rows are the vectors: none is short at the triangle's edge
    /// then. Where there are fewer columns, what stands beside them is zero. The caller's word is that X is there.
    pub(super) fn divide_rows[S: Scalar](
        order: usize,
        lower: bool,
        unit: bool,
        t: &Small<S>,
        x: Matrix<S>,
        columns: usize,
    ) {
        if lower {
            divide_tiles::<S, true>(order, unit, t, x, columns);
        } else {
            divide_tiles::<S, false>(order, unit, t, x, columns);
        }
    }
}

#[inline(always)]
fn divide_tiles<S: Scalar, const LOWER: bool>(
    order: usize,
    unit: bool,
    t: &Small<S>,
    x: Matrix<S>,
    columns: usize,
) {
    assert!(order <= SMALL && columns <= BESIDE, "no more than there is room for");
    let mut rows = [[S::zero(); BESIDE]; SMALL];
    for column in 0..columns {
        for row in 0..order {
            // SAFETY: the caller's word.
            rows[row][column] = unsafe { x.get(row as i64, column as i64) };
        }
    }
    let tiles = order.div_ceil(TILE);
    for step in 0..tiles {
        let first = TILE * if LOWER { step } else { tiles - 1 - step };
        let mut tile = [[S::zero(); BESIDE]; TILE];
        tile.copy_from_slice(&rows[first..first + TILE]);
        let (start, end) = if LOWER { (0, first) } else { (first + TILE, order) };
        for k in start..end {
            for row in 0..TILE {
                let value = t[k][first + row];
                for at in 0..BESIDE {
                    tile[row][at] -= value * rows[k][at];
                }
            }
        }
        for step in 0..TILE {
            let k = if LOWER { step } else { TILE - 1 - step };
            // What is beyond the triangle stays zero.
            if !unit && first + k < order {
                let divisor = t[first + k][first + k];
                for at in 0..BESIDE {
                    tile[k][at] = tile[k][at].over(divisor);
                }
            }
            for row in 0..TILE {
                if (LOWER && row > k) || (!LOWER && row < k) {
                    let value = t[first + k][first + row];
                    for at in 0..BESIDE {
                        let less = value * tile[k][at];
                        tile[row][at] -= less;
                    }
                }
            }
        }
        rows[first..first + TILE].copy_from_slice(&tile);
    }
    for column in 0..columns {
        for row in 0..order {
            // SAFETY: as above.
            unsafe { x.set(row as i64, column as i64, rows[row][column]) };
        }
    }
}
