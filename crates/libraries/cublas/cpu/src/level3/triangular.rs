//! Products with triangular matrices, and systems of them.
//!
//! A triangle is halved: its two smaller triangles are done in the same way, what is beside them is a product of general
//! matrices. The smallest triangles are loops.

use super::small::{BESIDE, SMALL, Small, divide_column, divide_rows};
use crate::lanes::vectorized;
use crate::matrix::Matrix;
use crate::{Diag, Op, Scalar, Side, Uplo, gemm, parallel};

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

    /// `op` of it into zeros, column after column; outside of the triangle nothing is read.
    #[expect(clippy::needless_range_loop, reason = "a column that is stored is one of them or a row of them")]
    unsafe fn read(self, n: usize, elements: &mut Small<S>) {
        let conjugates = self.op.conjugates();
        for stored in 0..n {
            let (start, end) = if self.uplo == Uplo::Lower { (stored, n) } else { (0, stored + 1) };
            // SAFETY: the caller's word: the triangle is n by n.
            let part =
                unsafe { self.matrix.from(start as i64, stored as i64).column(0, (end - start) as i64) };
            if self.op.transposes() {
                part.iter()
                    .zip(start..)
                    .for_each(|(from, at)| elements[at][stored] = from.conj_if(conjugates));
            } else {
                elements[stored][start..end].copy_from_slice(part);
            }
        }
        if self.diag == Diag::Unit {
            (0..n).for_each(|i| elements[i][i] = S::one());
        }
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
            let mut columns = [[S::zero(); SMALL]; SMALL];
            // SAFETY: the caller's word.
            unsafe { t.read(order, &mut columns) };
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
            let mut columns = [[S::zero(); SMALL]; SMALL];
            // SAFETY: the caller's word.
            unsafe { t.read(order, &mut columns) };
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
            let mut columns = [[S::zero(); SMALL]; SMALL];
            // SAFETY: the caller's word.
            unsafe { t.read(order, &mut columns) };
            // Columns that are solved beside each other.
            let beside = BESIDE as i64;
            parallel((n + beside - 1) / beside, beside * m * m, |part| {
                let first = part * beside;
                let count = beside.min(n - first);
                if count > beside / 4 {
                    divide_rows(order, lower, unit, &columns, b.from(0, first), count as usize);
                } else {
                    for j in first..first + count {
                        // SAFETY: the caller's word; columns for each call.
                        divide_column(order, lower, unit, &columns, unsafe { b.column_mut(j, m) });
                    }
                }
            });
        }
        Side::Right => {
            let order = n as usize;
            let mut columns = [[S::zero(); SMALL]; SMALL];
            // SAFETY: the caller's word.
            unsafe { t.read(order, &mut columns) };
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
