//! Factorizations and what is solved by them, one matrix at a time: LAPACK's results in LAPACK's places.
//!
//! A number that is returned is 0, or says which diagonal element, counted from 1, is exactly zero.

#![expect(
    clippy::needless_range_loop,
    reason = "iterators are calls, which LLVM leaves out of line in code for other vectors"
)]

mod panel;

use num_traits::{Float as _, Zero as _};

use crate::level3::solve;
use crate::matrix::Matrix;
use crate::{Diag, Op, Scalar, Side, Uplo, gemm, level1, parallel, vectorized};

/// Columns that are factored at a time.
const PANEL: i64 = 32;

/// `A = P·L·U`, n by n, in A's place: L's ones are not stored. Row i was swapped with `pivots[i] - 1`; a null pointer
/// means no swaps.
///
/// # Safety
/// The matrix is there, and room for n pivots.
pub unsafe fn getrf<S: Scalar>(n: i64, a: *mut S, lda: i64, pivots: *mut i32) -> i64 {
    let a = Matrix::new(a, lda);
    let mut info = 0;
    for start in (0..n).step_by(PANEL as usize) {
        let width = PANEL.min(n - start);
        let rest = n - start - width;
        // SAFETY: the caller's word holds for every part.
        unsafe {
            let zero = factor_panel(a, n, start, width, pivots);
            info = if info == 0 { zero } else { info };
            let (beside, right) = (start + width, a.from(start, start + width));
            let block = a.from(start, start);
            solve(Side::Left, Uplo::Lower, Op::N, Diag::Unit, width, rest, block, right);
            let (below, corner) = (a.from(beside, start), a.from(beside, beside));
            let (minus, one) = (-S::one(), S::one());
            let (left, top, into) = (below.start(), right.start(), corner.start());
            gemm(Op::N, Op::N, rest, rest, width, minus, left, lda, top, lda, one, into, lda);
        }
    }
    info
}

/// Factors the columns from `start` on, and swaps all columns' rows with theirs.
unsafe fn factor_panel<S: Scalar>(a: Matrix<S>, n: i64, start: i64, width: i64, pivots: *mut i32) -> i64 {
    let pivoting = !pivots.is_null();
    // SAFETY: the caller's word holds for every element.
    unsafe {
        let mut swapped = |k: i64, pivot: i64| {
            if pivoting {
                *pivots.offset((start + k) as isize) = (start + pivot + 1) as i32;
            }
        };
        let zero = eliminations(n - start, width, a.from(start, start), pivoting, &mut swapped);
        if pivoting {
            let (pivots, last) =
                (std::slice::from_raw_parts(pivots, (start + width) as usize), start + width);
            laswp(start, a, start + 1, last, pivots, false);
            laswp(n - last, a.from(0, last), start + 1, last, pivots, false);
        }
        if zero == 0 { 0 } else { start + zero }
    }
}

pub use panel::eliminations;

/// Swaps rows as [`getrf`] did, or back.
unsafe fn permute<S: Scalar>(b: Matrix<S>, n: i64, columns: i64, pivots: *const i32, back: bool) {
    if pivots.is_null() {
        return;
    }
    // SAFETY: the caller's word.
    unsafe { laswp(columns, b, 1, n, std::slice::from_raw_parts(pivots, n as usize), back) };
}

/// Swaps rows `k1` to `k2`, counted from 1, with those that the pivots say; an increment of -1 goes backwards.
///
/// # Safety
/// The matrix has n columns and every row that is named.
pub unsafe fn laswp<S: Scalar>(n: i64, a: Matrix<S>, k1: i64, k2: i64, pivots: &[i32], backwards: bool) {
    parallel(n, 2 * (k2 - k1 + 1), |column| {
        for step in 0..=k2 - k1 {
            let row = if backwards { k2 - step } else { k1 + step };
            let other = i64::from(pivots[row as usize - 1]);
            // SAFETY: the caller's word; a column for each call.
            unsafe { std::ptr::swap(a.at(row - 1, column), a.at(other - 1, column)) };
        }
    });
}

/// `op(A)·X = B` for X, in B's place, by what [`getrf`] made of A.
///
/// # Safety
/// The matrices are there, B with n rows and `columns` columns, and n pivots or a null pointer.
#[expect(clippy::too_many_arguments, reason = "LAPACK's own")]
pub unsafe fn getrs<S: Scalar>(
    op: Op,
    n: i64,
    columns: i64,
    a: *const S,
    lda: i64,
    pivots: *const i32,
    b: *mut S,
    ldb: i64,
) {
    let (a, b) = (Matrix::read(a, lda), Matrix::new(b, ldb));
    // SAFETY: the caller's word.
    unsafe {
        if op == Op::N {
            permute(b, n, columns, pivots, false);
            solve(Side::Left, Uplo::Lower, op, Diag::Unit, n, columns, a, b);
            solve(Side::Left, Uplo::Upper, op, Diag::NonUnit, n, columns, a, b);
        } else {
            solve(Side::Left, Uplo::Upper, op, Diag::NonUnit, n, columns, a, b);
            solve(Side::Left, Uplo::Lower, op, Diag::Unit, n, columns, a, b);
            permute(b, n, columns, pivots, true);
        }
    }
}

/// The inverse into C, by what [`getrf`] made of A. If there is none, as the answer says then, C has what dividing by zero gives: infinities
/// and NaNs (CuPy's `cond` tells singular matrices of a batch by them).
///
/// # Safety
/// The matrices are there and do not overlap, and n pivots or a null pointer.
pub unsafe fn getri<S: Scalar>(
    n: i64,
    a: *const S,
    lda: i64,
    pivots: *const i32,
    c: *mut S,
    ldc: i64,
) -> i64 {
    let (lu, inverse) = (Matrix::read(a, lda), Matrix::new(c, ldc));
    // SAFETY: the caller's word.
    unsafe {
        inverse.scale(n, n, S::zero());
        (0..n).for_each(|i| inverse.set(i, i, S::one()));
        getrs(Op::N, n, n, a, lda, pivots, c, ldc);
        (0..n).find(|&i| lu.get(i, i).is_zero()).map_or(0, |zero| zero + 1)
    }
}

/// The inverse of A into C, as [`getri`] has it; A stays as it is.
///
/// # Safety
/// The matrices are there and do not overlap.
pub unsafe fn matinv<S: Scalar>(n: i64, a: *const S, lda: i64, c: *mut S, ldc: i64) -> i64 {
    let a = Matrix::read(a, lda);
    let mut copy = Vec::with_capacity((n * n).max(0) as usize);
    // SAFETY: the caller's word.
    (0..n).for_each(|column| copy.extend_from_slice(unsafe { a.column(column, n) }));
    let mut pivots = vec![0_i32; n.max(0) as usize];
    // SAFETY: the caller's word, and the copy is as large.
    unsafe {
        getrf(n, copy.as_mut_ptr(), n, pivots.as_mut_ptr());
        getri(n, copy.as_ptr(), n, pivots.as_ptr(), c, ldc)
    }
}

/// Makes a vector (its first element, and the others so far apart) the reflection's whose conjugate leads it onto its first axis: the first
/// element becomes the result's length, which is real, the others v's, whose first is one and not stored. The answer is tau.
///
/// # Safety
/// `count` elements are there.
pub unsafe fn larfg<S: Scalar>(count: i64, first: *mut S, rest: *mut S, step: i64) -> S {
    if count <= 0 {
        return S::zero();
    }
    let others = count - 1;
    let zero = S::Real::zero();
    // SAFETY: the caller's word.
    unsafe {
        let mut alpha = *first;
        let mut norm = level1::nrm2::<S, S>(others, rest, step);
        if norm == zero && alpha.imag() == zero {
            return S::zero();
        }
        let length = |alpha: S, norm: S::Real| {
            let size = alpha.modulus().hypot(norm);
            if alpha.real() < zero { size } else { -size }
        };
        let scale = |factor: S::Real| {
            (0..others).for_each(|i| {
                let at = rest.offset((i * step) as isize);
                *at = (*at).times_real(factor);
            });
        };
        // Numbers so small that they have lost digits are made larger first.
        let small = S::Real::min_positive_value() / S::Real::epsilon();
        let (mut beta, mut rescaled) = (length(alpha, norm), 0);
        while beta.abs() < small && rescaled < 20 {
            let larger = small.recip();
            scale(larger);
            alpha = alpha.times_real(larger);
            norm = level1::nrm2::<S, S>(others, rest, step);
            beta = length(alpha, norm);
            rescaled += 1;
        }
        let tau = S::from_real((beta - alpha.real()) / beta).with_imag(-alpha.imag() / beta);
        let divisor = alpha - S::from_real(beta);
        (0..others).for_each(|i| {
            let at = rest.offset((i * step) as isize);
            *at = (*at).over(divisor);
        });
        (0..rescaled).for_each(|_| beta *= small);
        *first = S::from_real(beta);
        tau
    }
}

/// `A = Q·R`, m by n: R in the upper triangle, below it and in `tau` the reflections `I - tau·v·vᴴ` whose product Q is.
///
/// # Safety
/// The matrix is there, and room for min(m, n) values of `tau`.
pub unsafe fn geqrf<S: Scalar>(m: i64, n: i64, a: *mut S, lda: i64, tau: *mut S) {
    // SAFETY: the caller's word.
    unsafe { factor_reflections(m, n, Matrix::new(a, lda), tau) }
}

/// [`geqrf`], one reflection after the other.
///
/// # Safety
/// As there.
pub unsafe fn factor_reflections<S: Scalar>(m: i64, n: i64, a: Matrix<S>, tau: *mut S) {
    if m * n < SHARED {
        // SAFETY: the caller's word.
        return unsafe { panel::reflections(m, n, a, tau) };
    }
    for k in 0..m.min(n) {
        // SAFETY: the caller's word.
        unsafe {
            let factor = larfg(m - k, a.at(k, k), a.at(k + 1, k), 1);
            *tau.offset(k as isize) = factor;
            reflect(a.from(k, k), m - k, factor.conj(), a.from(k, k + 1), n - k - 1);
        }
    }
}

/// `(I - tau·v·vᴴ)·C`; v's first element is one and not stored.
unsafe fn reflect<S: Scalar>(v: Matrix<S>, rows: i64, tau: S, c: Matrix<S>, columns: i64) {
    if rows < 1 {
        return;
    }
    // SAFETY: the caller's word; the element gets its number back.
    unsafe {
        let first = v.get(0, 0);
        v.set(0, 0, S::one());
        reflect_columns(v.column(0, rows), tau, columns, c);
        v.set(0, 0, first);
    }
}

/// Columns that are reflected at a time: v is read once for all of them.
const BESIDE: i64 = 4;
/// Sums that grow beside each other in each.
const SUMS: usize = 8;

/// `(I - tau·v·vᴴ)·C`, v as many elements as C has rows.
///
/// # Safety
/// C is there, with so many columns, and nothing of it is v's.
pub unsafe fn reflect_columns<S: Scalar>(v: &[S], tau: S, columns: i64, c: Matrix<S>) {
    if tau.is_zero() {
        return;
    }
    let rows = v.len() as i64;
    let share = if columns * rows < SHARED { columns.max(1) } else { BESIDE };
    parallel((columns + share - 1) / share, 2 * rows * share, |part| {
        let first = part * share;
        reflect_some(v, tau, share.min(columns - first), c.from(0, first));
    });
}

/// Elements of a matrix whose columns are worth sharing out.
const SHARED: i64 = 1 << 15;

vectorized! {
    /// [`reflect_columns`], whose caller's word this relies on.
    fn reflect_some[S: Scalar](v: &[S], tau: S, columns: i64, c: Matrix<S>) {
        let mut column = 0;
        while column + BESIDE <= columns {
            // SAFETY: the caller's word; four columns.
            reflect_few(v, tau, [0, 1, 2, 3].map(|i| unsafe { c.column_mut(column + i, v.len() as i64) }));
            column += BESIDE;
        }
        while column < columns {
            // SAFETY: as above.
            reflect_few(v, tau, [unsafe { c.column_mut(column, v.len() as i64) }]);
            column += 1;
        }
    }
}

#[inline(always)]
fn reflect_few<S: Scalar, const N: usize>(v: &[S], tau: S, columns: [&mut [S]; N]) {
    let rows = v.len();
    for at in 0..N {
        assert!(columns[at].len() == rows, "a column is as long as the reflection");
    }
    let (mut sums, mut along) = ([[S::zero(); SUMS]; N], [S::zero(); N]);
    let mut row = 0;
    // SAFETY: rows are below `rows`, and all slices that long.
    unsafe {
        while row + SUMS <= rows {
            for at in 0..N {
                for lane in 0..SUMS {
                    sums[at][lane] +=
                        v.get_unchecked(row + lane).conj() * *columns[at].get_unchecked(row + lane);
                }
            }
            row += SUMS;
        }
        for at in 0..N {
            along[at] = panel::total(sums[at]);
        }
        while row < rows {
            for at in 0..N {
                along[at] += v.get_unchecked(row).conj() * *columns[at].get_unchecked(row);
            }
            row += 1;
        }
        for at in 0..N {
            let by = tau * along[at];
            for row in 0..rows {
                *columns[at].get_unchecked_mut(row) -= by * *v.get_unchecked(row);
            }
        }
    }
}

/// The X for which `A·X` is nearest to C, m by n with m at least n; X's rows are the first n of C's. A becomes what
/// [`geqrf`] makes of it.
///
/// # Safety
/// The matrices are there, C with m rows and `columns` columns.
pub unsafe fn gels<S: Scalar>(m: i64, n: i64, columns: i64, a: *mut S, lda: i64, c: *mut S, ldc: i64) -> i64 {
    let mut tau = vec![S::zero(); n.max(0) as usize];
    let (qr, into) = (Matrix::new(a, lda), Matrix::new(c, ldc));
    // SAFETY: the caller's word.
    unsafe {
        geqrf(m, n, a, lda, tau.as_mut_ptr());
        if let Some(zero) = (0..n).find(|&i| qr.get(i, i).is_zero()) {
            return zero + 1;
        }
        for (k, tau) in (0..n).zip(&tau) {
            reflect(qr.from(k, k), m - k, tau.conj(), into.from(k, 0), columns);
        }
        solve(Side::Left, Uplo::Upper, Op::N, Diag::NonUnit, n, columns, qr, into);
    }
    0
}
