//! gemv, gbmv.

use rayon::prelude::*;

use super::matrix::Matrix;
use super::{column, finish, scale};
use crate::vector::{Vector, gather};
use crate::{Op, Scalar, Stored};

/// y = α op(A) x + β y
pub unsafe fn gemv<S: Scalar, A: Stored<S>, X: Stored<S>, Y: Stored<S>>(
    op: Op,
    m: i64,
    n: i64,
    alpha: S,
    a: *const A,
    lda: i64,
    x: *const X,
    incx: i64,
    beta: S,
    y: *mut Y,
    incy: i64,
) {
    // SAFETY: this function's caller promises it.
    unsafe { product(op, Matrix::full(m, n, a, lda), alpha, x, incx, beta, y, incy) }
}

/// y = α op(A) x + β y, A a band of `kl` rows below the diagonal and `ku` above.
pub unsafe fn gbmv<S: Scalar>(
    op: Op,
    m: i64,
    n: i64,
    kl: i64,
    ku: i64,
    alpha: S,
    a: *const S,
    lda: i64,
    x: *const S,
    incx: i64,
    beta: S,
    y: *mut S,
    incy: i64,
) {
    // SAFETY: this function's caller promises it.
    unsafe { product(op, Matrix::band(m, n, kl, ku, a, lda), alpha, x, incx, beta, y, incy) }
}

unsafe fn product<S: Scalar, A: Stored<S>, X: Stored<S>, Y: Stored<S>>(
    op: Op,
    a: Matrix<A>,
    alpha: S,
    x: *const X,
    incx: i64,
    beta: S,
    y: *mut Y,
    incy: i64,
) {
    let (m, n) = (a.n_rows(), a.n_columns());
    if m == 0 || n == 0 {
        return;
    }
    let (n_x, n_y) = if op.transposes() { (m, n) } else { (n, m) };
    // SAFETY: this function's caller promises it.
    let (x, y) = unsafe { (Vector::new(n_x as i64, x, incx), Vector::new(n_y as i64, y, incy)) };
    if alpha.is_zero() {
        return scale(beta, y);
    }
    let x = gather(x);
    let mut sums = vec![S::zero(); n_y];
    // Each thread has its own elements of y, so the sums are the same on any number of cores.
    let threads = if m * n < SHARED { 1 } else { rayon::current_num_threads() };
    let turn = n_y.div_ceil(threads).next_multiple_of(16);
    if turn >= n_y {
        piece(op, &a, &x, 0, &mut sums);
    } else {
        let pieces = sums.par_chunks_mut(turn).enumerate();
        pieces.for_each(|(i, sums)| piece(op, &a, &x, i * turn, sums));
    }
    finish(alpha, &sums, beta, y);
}

/// Elements of a matrix from which on cores share it.
const SHARED: usize = 1 << 16;

/// The elements of op(A) x from `start` on.
fn piece<S: Scalar, A: Stored<S>>(op: Op, a: &Matrix<A>, x: &[S], start: usize, sums: &mut [S]) {
    if op.transposes() {
        let mut j = start;
        for sums in sums.chunks_mut(4) {
            let rows = a.rows(j);
            if let [one, two, three, four] = sums
                && (j + 1..j + 4).all(|j| a.rows(j) == rows)
            {
                let columns = [a.column(j), a.column(j + 1), a.column(j + 2), a.column(j + 3)];
                [*one, *two, *three, *four] = column::dot_four(columns, &x[rows], op.conjugates());
            } else {
                for (j, sum) in (j..).zip(sums.iter_mut()) {
                    *sum = column::dot(a.column(j), &x[a.rows(j)], op.conjugates());
                }
            }
            j += sums.len();
        }
        return;
    }
    let end = start + sums.len();
    let rows = |j: usize| {
        let stored = a.rows(j);
        stored.start.max(start)..stored.end.min(end)
    };
    let column = |j: usize| {
        let (stored, rows) = (a.rows(j), rows(j));
        if rows.is_empty() { &[] } else { &a.column(j)[rows.start - stored.start..rows.end - stored.start] }
    };
    let mut j = 0;
    while j < x.len() {
        let here = rows(j);
        let part = if here.is_empty() { &mut [] } else { &mut sums[here.start - start..here.end - start] };
        // Four columns at once where they have the same rows, as all but a band's have.
        if j + 4 <= x.len() && (j..j + 4).all(|j| rows(j) == here) {
            let factors = [x[j], x[j + 1], x[j + 2], x[j + 3]];
            column::add_four(part, [column(j), column(j + 1), column(j + 2), column(j + 3)], factors);
            j += 4;
        } else {
            column::add(part, column(j), x[j]);
            j += 1;
        }
    }
}
