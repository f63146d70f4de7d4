//! Products with triangular matrices, and systems of them.
//!
//! A triangle is halved: its two smaller triangles are done in the same way, what is beside them is a product of general
//! matrices. The smallest triangles are loops.

use crate::lanes::vectorized;
use crate::matrix::Matrix;
use crate::{Diag, Op, Scalar, Side, Uplo, gemm, parallel};

/// Triangles of this size are loops.
const SMALL: usize = 32;

/// Rows that the loops over a right side's columns take at a time.
const ROWS: i64 = 256;

/// `C = alpha·op(A)·B`, or `B·op(A)`; A is triangular, B and C have m rows and n columns and may be the same.
///
/// # Safety
/// The matrices are there; C does not overlap A, and is B or does not overlap it.
#[expect(clippy::too_many_arguments, reason = "the BLAS's own")]
pub unsafe fn trmm<S: Scalar>(
    side: Side,
    uplo: Uplo,
    op: Op,
    diag: Diag,
    m: i64,
    n: i64,
    alpha: S,
    a: *const S,
    lda: i64,
    b: *const S,
    ldb: i64,
    c: *mut S,
    ldc: i64,
) {
    let triangle = Triangle { matrix: Matrix::read(a, lda), uplo, op, diag };
    let (source, c) = (Matrix::read(b, ldb), Matrix::new(c, ldc));
    // SAFETY: the caller's word.
    unsafe {
        if !alpha.is_zero() && !std::ptr::eq(b, c.start()) {
            parallel(n, m, |column| {
                c.column_mut(column, m.max(0)).copy_from_slice(source.column(column, m.max(0)))
            });
        }
        c.scale(m, n, alpha);
        if !alpha.is_zero() && m > 0 && n > 0 {
            multiply(side, triangle, m, n, c);
        }
    }
}

/// Solves `op(A)·X = alpha·B`, or `X·op(A) = alpha·B`, for X, which replaces B of m rows and n columns.
///
/// # Safety
/// The matrices are there; B does not overlap A.
#[expect(clippy::too_many_arguments, reason = "the BLAS's own")]
pub unsafe fn trsm<S: Scalar>(
    side: Side,
    uplo: Uplo,
    op: Op,
    diag: Diag,
    m: i64,
    n: i64,
    alpha: S,
    a: *const S,
    lda: i64,
    b: *mut S,
    ldb: i64,
) {
    // SAFETY: the caller's word.
    unsafe {
        let b = Matrix::new(b, ldb);
        b.scale(m, n, alpha);
        if !alpha.is_zero() {
            solve(side, uplo, op, diag, m, n, Matrix::read(a, lda), b);
        }
    }
}

/// [`trsm`] with a factor of one.
///
/// # Safety
/// As there.
#[expect(clippy::too_many_arguments, reason = "the BLAS's own")]
pub(crate) unsafe fn solve<S: Scalar>(
    side: Side,
    uplo: Uplo,
    op: Op,
    diag: Diag,
    m: i64,
    n: i64,
    a: Matrix<S>,
    b: Matrix<S>,
) {
    if m > 0 && n > 0 {
        // SAFETY: the caller's word.
        unsafe { divide(side, Triangle { matrix: a, uplo, op, diag }, m, n, b) }
    }
}

/// `op` of a triangle, as the products see it.
#[derive(Clone, Copy)]
struct Triangle<S> {
    matrix: Matrix<S>,
    uplo: Uplo,
    op: Op,
    diag: Diag,
}

impl<S: Scalar> Triangle<S> {
    /// Whether `op` of it is lower.
    fn is_lower(self) -> bool {
        (self.uplo == Uplo::Lower) != self.op.transposes()
    }

    /// What is beside the two triangles into which it falls after `first` rows.
    fn beside(self, first: i64) -> Matrix<S> {
        match self.uplo {
            Uplo::Lower => self.matrix.from(first, 0),
            Uplo::Upper => self.matrix.from(0, first),
        }
    }

    fn second(self, first: i64) -> Self {
        Self { matrix: self.matrix.from(first, first), ..self }
    }

    /// `op` of it, column after column; outside of the triangle nothing is read.
    unsafe fn read(self, n: usize) -> [[S; SMALL]; SMALL] {
        let mut elements = [[S::zero(); SMALL]; SMALL];
        for (j, column) in elements.iter_mut().enumerate().take(n) {
            let rows = if self.is_lower() { j..n } else { 0..j + 1 };
            for i in rows {
                column[i] = match self.diag {
                    Diag::Unit if i == j => S::one(),
                    // SAFETY: the caller's word: the triangle is n by n.
                    _ => unsafe { self.matrix.get_op(self.op, i as i64, j as i64) },
                };
            }
        }
        elements
    }
}

/// Where a triangle of this size falls in two.
fn half(n: i64) -> i64 {
    (n / 2 + SMALL as i64 - 1) / SMALL as i64 * SMALL as i64
}

/// `C += factor·op(A)·op(B)`
unsafe fn add<S: Scalar>(
    (op_a, a): (Op, Matrix<S>),
    (op_b, b): (Op, Matrix<S>),
    (m, n, k): (i64, i64, i64),
    factor: S,
    c: Matrix<S>,
) {
    // SAFETY: the caller's word.
    unsafe {
        gemm(op_a, op_b, m, n, k, factor, a.start(), a.ld(), b.start(), b.ld(), S::one(), c.start(), c.ld())
    }
}

/// `C = T·C`, or `C·T`.
unsafe fn multiply<S: Scalar>(side: Side, t: Triangle<S>, m: i64, n: i64, c: Matrix<S>) {
    let order = if side == Side::Left { m } else { n };
    // SAFETY: the caller's word holds for every part.
    unsafe {
        if order <= SMALL as i64 {
            return multiply_small(side, t, m, n, c);
        }
        let first = half(order);
        let rest = order - first;
        let beside = (t.op, t.beside(first));
        // The part that is written first is the one that no other part needs afterwards.
        match side {
            Side::Left => {
                let second = c.from(first, 0);
                if t.is_lower() {
                    multiply(side, t.second(first), rest, n, second);
                    add(beside, (Op::N, c), (rest, n, first), S::one(), second);
                    multiply(side, t, first, n, c);
                } else {
                    multiply(side, t, first, n, c);
                    add(beside, (Op::N, second), (first, n, rest), S::one(), c);
                    multiply(side, t.second(first), rest, n, second);
                }
            }
            Side::Right => {
                let second = c.from(0, first);
                if t.is_lower() {
                    multiply(side, t, m, first, c);
                    add((Op::N, second), beside, (m, first, rest), S::one(), c);
                    multiply(side, t.second(first), m, rest, second);
                } else {
                    multiply(side, t.second(first), m, rest, second);
                    add((Op::N, c), beside, (m, rest, first), S::one(), second);
                    multiply(side, t, m, first, c);
                }
            }
        }
    }
}

/// Solves `T·X = B`, or `X·T = B`.
unsafe fn divide<S: Scalar>(side: Side, t: Triangle<S>, m: i64, n: i64, b: Matrix<S>) {
    let order = if side == Side::Left { m } else { n };
    // SAFETY: the caller's word holds for every part.
    unsafe {
        if order <= SMALL as i64 {
            return divide_small(side, t, m, n, b);
        }
        let first = half(order);
        let rest = order - first;
        let beside = (t.op, t.beside(first));
        match side {
            Side::Left => {
                let second = b.from(first, 0);
                if t.is_lower() {
                    divide(side, t, first, n, b);
                    add(beside, (Op::N, b), (rest, n, first), -S::one(), second);
                    divide(side, t.second(first), rest, n, second);
                } else {
                    divide(side, t.second(first), rest, n, second);
                    add(beside, (Op::N, second), (first, n, rest), -S::one(), b);
                    divide(side, t, first, n, b);
                }
            }
            Side::Right => {
                let second = b.from(0, first);
                if t.is_lower() {
                    divide(side, t.second(first), m, rest, second);
                    add((Op::N, second), beside, (m, first, rest), -S::one(), b);
                    divide(side, t, m, first, b);
                } else {
                    divide(side, t, m, first, b);
                    add((Op::N, b), beside, (m, rest, first), -S::one(), second);
                    divide(side, t.second(first), m, rest, second);
                }
            }
        }
    }
}

/// The places `0..n` in the order in which each may be replaced.
fn in_order(n: usize, upwards: bool) -> impl Iterator<Item = usize> {
    (0..n).map(move |i| if upwards { i } else { n - 1 - i })
}

/// The elements of a column that are off the diagonal.
fn off_diagonal(column: usize, n: usize, lower: bool) -> std::ops::Range<usize> {
    if lower { column + 1..n } else { 0..column }
}

unsafe fn multiply_small<S: Scalar>(side: Side, t: Triangle<S>, m: i64, n: i64, c: Matrix<S>) {
    let lower = t.is_lower();
    match side {
        Side::Left => {
            let order = m as usize;
            // SAFETY: the caller's word.
            let columns = unsafe { t.read(order) };
            parallel(n, m * m, |j| {
                // SAFETY: the caller's word; a column for each call.
                let x = unsafe { c.column_mut(j, m) };
                vectorized(|| {
                    for k in in_order(order, !lower) {
                        let factor = x[k];
                        for i in off_diagonal(k, order, lower) {
                            x[i] += columns[k][i] * factor;
                        }
                        x[k] = columns[k][k] * factor;
                    }
                });
            });
        }
        Side::Right => {
            let order = n as usize;
            // SAFETY: the caller's word.
            let columns = unsafe { t.read(order) };
            by_rows(m, n, |start, rows| {
                vectorized(|| {
                    for j in in_order(order, lower) {
                        // SAFETY: the caller's word; the rows are this call's.
                        let into = unsafe { c.from(start, 0).column_mut(j as i64, rows) };
                        into.iter_mut().for_each(|element| *element *= columns[j][j]);
                        for k in off_diagonal(j, order, lower) {
                            // SAFETY: as above; another column.
                            let other = unsafe { c.from(start, 0).column(k as i64, rows) };
                            axpy(columns[j][k], other, into);
                        }
                    }
                });
            });
        }
    }
}

unsafe fn divide_small<S: Scalar>(side: Side, t: Triangle<S>, m: i64, n: i64, b: Matrix<S>) {
    let lower = t.is_lower();
    let unit = t.diag == Diag::Unit;
    match side {
        Side::Left => {
            let order = m as usize;
            // SAFETY: the caller's word.
            let columns = unsafe { t.read(order) };
            // Columns that are solved beside each other.
            let share = if n < BESIDE { 1 } else { BESIDE };
            parallel((n + share - 1) / share, share * m * m, |part| {
                let first = part * share;
                if first + BESIDE <= n {
                    // SAFETY: the caller's word; columns for each call.
                    let four = [0, 1, 2, 3].map(|at| unsafe { b.column_mut(first + at, m) });
                    divide_columns(order, lower, unit, &columns, four);
                } else {
                    for j in first..n.min(first + share) {
                        // SAFETY: as above.
                        divide_columns(order, lower, unit, &columns, [unsafe { b.column_mut(j, m) }]);
                    }
                }
            });
        }
        Side::Right => {
            let order = n as usize;
            // SAFETY: the caller's word.
            let columns = unsafe { t.read(order) };
            by_rows(m, n, |start, rows| {
                vectorized(|| {
                    for j in in_order(order, !lower) {
                        // SAFETY: the caller's word; the rows are this call's.
                        let into = unsafe { b.from(start, 0).column_mut(j as i64, rows) };
                        for k in off_diagonal(j, order, lower) {
                            // SAFETY: as above; another column.
                            let other = unsafe { b.from(start, 0).column(k as i64, rows) };
                            axpy(-columns[j][k], other, into);
                        }
                        if !unit {
                            into.iter_mut().for_each(|element| *element = element.over(columns[j][j]));
                        }
                    }
                });
            });
        }
    }
}

/// Columns that are solved at a time by one triangle.
const BESIDE: i64 = 4;

crate::vectorized! {
    /// Solves `T·x = b` for some columns in their places.
    fn divide_columns[S: Scalar, const N: usize](
        order: usize,
        lower: bool,
        unit: bool,
        t: &[[S; SMALL]; SMALL],
        x: [&mut [S]; N],
    ) {
        assert!(order <= SMALL && x.iter().all(|x| x.len() == order), "a column is as long as the triangle");
        // By index, since iterators' adapters stay calls here.
        let mut step = 0;
        while step < order {
            let k = if lower { step } else { order - 1 - step };
            let (start, end) = if lower { (k + 1, order) } else { (0, k) };
            let mut factors = [S::zero(); N];
            for at in 0..N {
                if !unit {
                    x[at][k] = x[at][k].over(t[k][k]);
                }
                factors[at] = x[at][k];
            }
            // SAFETY: rows are below `order`.
            unsafe {
                for i in start..end {
                    let value = *t[k].get_unchecked(i);
                    for at in 0..N {
                        *x[at].get_unchecked_mut(i) -= value * factors[at];
                    }
                }
            }
            step += 1;
        }
    }
}

/// Calls `body` with pieces of the rows.
fn by_rows(m: i64, n: i64, body: impl Fn(i64, i64) + Send + Sync) {
    parallel((m + ROWS - 1) / ROWS, ROWS * n * n, |piece| body(piece * ROWS, ROWS.min(m - piece * ROWS)));
}

#[inline(always)]
fn axpy<S: Scalar>(factor: S, x: &[S], y: &mut [S]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y += factor * *x;
    }
}
