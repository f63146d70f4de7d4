//! Products of a sparse matrix with a vector or a dense matrix.

use rayon::prelude::*;

use crate::parts::split;
use crate::{Index, Matrix, Scalar};

/// How `op(A)` follows from the matrix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Operation {
    pub transposed: bool,
    pub conjugated: bool,
}

impl Operation {
    /// The size of what it makes of a matrix of that size.
    #[must_use]
    pub fn size(self, rows: usize, cols: usize) -> (usize, usize) {
        if self.transposed { (cols, rows) } else { (rows, cols) }
    }

    /// The same of a matrix that lies transposed.
    pub fn of(self, is_transposed: bool) -> Operation {
        Operation { transposed: self.transposed != is_transposed, ..self }
    }
}

/// `op(A) · x`
pub fn spmv<C: Scalar, I: Index>(a: &Matrix<'_, C, I>, operation: Operation, x: &[C]) -> Vec<C> {
    let bounds = a.parts();
    let Operation { transposed, conjugated } = operation;
    if !transposed {
        let mut y = vec![C::ZERO; a.rows()];
        let parts: Vec<_> = split(&mut y, &bounds, 1).into_iter().zip(&bounds).collect();
        parts.into_par_iter().with_max_len(1).for_each(|(part, first)| {
            for (row, y) in (*first..).zip(part) {
                let mut sum = C::ZERO;
                a.row(row, |column, value| sum += value.conj_if(conjugated) * x[column]);
                *y = sum;
            }
        });
        return y;
    }
    // Each part has sums of its own, which are not worth more than the entries are.
    let most = (a.entries() / a.cols().max(1) + 1).min(rayon::current_num_threads());
    let step = bounds.len().div_ceil(most).max(1);
    let mut starts: Vec<usize> = bounds.iter().copied().step_by(step).collect();
    starts.push(a.rows());
    let sums: Vec<Vec<C>> = starts
        .par_windows(2)
        .with_max_len(1)
        .map(|bounds| {
            let mut sums = vec![C::ZERO; a.cols()];
            for (row, factor) in (bounds[0]..bounds[1]).zip(&x[bounds[0]..bounds[1]]) {
                a.row(row, |column, value| sums[column] += value.conj_if(conjugated) * *factor);
            }
            sums
        })
        .collect();
    let mut sums = sums.into_iter();
    let mut y = sums.next().unwrap_or_else(|| vec![C::ZERO; a.cols()]);
    for more in sums {
        y.iter_mut().zip(&more).for_each(|(y, more)| *y += *more);
    }
    y
}

/// `op(A) · B` by rows, of a matrix by rows without gaps that has so many columns.
pub fn spmm<C: Scalar, I: Index>(
    a: &Matrix<'_, C, I>,
    operation: Operation,
    b: &[C],
    width: usize,
) -> Vec<C> {
    if operation.transposed {
        return spmm(&a.transposed(), Operation { transposed: false, ..operation }, b, width);
    }
    let mut computed = vec![C::ZERO; a.rows() * width];
    if width > 0 {
        let bounds = a.parts();
        let parts: Vec<_> = split(&mut computed, &bounds, width).into_iter().zip(&bounds).collect();
        parts.into_par_iter().with_max_len(1).for_each(|(part, first)| {
            for (row, sums) in (*first..).zip(part.chunks_exact_mut(width)) {
                a.row(row, |column, value| {
                    let value = value.conj_if(operation.conjugated);
                    let line = &b[column * width..][..width];
                    sums.iter_mut().zip(line).for_each(|(sum, b)| *sum += value * *b);
                });
            }
        });
    }
    computed
}
