//! Factorizations and what is solved by them, one matrix at a time: LAPACK's results in LAPACK's places.
//!
//! A number that is returned is 0, or says which diagonal element, counted from 1, is exactly zero.

#![expect(
    clippy::needless_range_loop,
    reason = "iterators are calls, which LLVM leaves out of line in code for other vectors"
)]

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
    let mut info = 0;
    for k in start..start + width {
        // SAFETY: the caller's word holds for every element.
        unsafe {
            if !pivots.is_null() {
                let column = a.from(k, k).column(0, n - k);
                let pivot = k + largest(column);
                *pivots.offset(k as isize) = (pivot + 1) as i32;
                swap_rows(a, n, k, pivot);
            }
            let divisor = a.get(k, k);
            if divisor.is_zero() {
                info = if info == 0 { k + 1 } else { info };
                continue;
            }
            let factors = a.from(k + 1, k).column_mut(0, n - k - 1);
            eliminate(factors, divisor, start + width - k - 1, a.from(k, k + 1));
        }
    }
    info
}

/// Divides what stands below a pivot, and takes as much of it off the columns beside, which begin in the pivot's row.
///
/// # Safety
/// The columns are there, with a row more than there are factors, and nothing of them is the factors'.
pub unsafe fn eliminate<S: Scalar>(factors: &mut [S], divisor: S, columns: i64, beside: Matrix<S>) {
    eliminate_columns(factors, divisor, columns, beside);
}

vectorized! {
    /// [`eliminate`], whose caller's word this relies on.
    fn eliminate_columns[S: Scalar](factors: &mut [S], divisor: S, columns: i64, beside: Matrix<S>) {
        let rows = factors.len();
        for row in 0..rows {
            factors[row] = factors[row].over(divisor);
        }
        let mut column = 0;
        // SAFETY: the caller's word; rows are below `rows`.
        unsafe {
            // Whether so many columns overlap is looked at first: that pays in long ones.
            while rows >= 64 && column + 4 <= columns {
                let at = [column, column + 1, column + 2, column + 3];
                let (top, into) = (at.map(|at| beside.get(0, at)), at.map(|at| beside.at(1, at)));
                for row in 0..rows {
                    let factor = *factors.get_unchecked(row);
                    for at in 0..4 {
                        *into[at].add(row) -= top[at] * factor;
                    }
                }
                column += 4;
            }
            while column < columns {
                let (top, into) = (beside.get(0, column), beside.at(1, column));
                for row in 0..rows {
                    *into.add(row) -= top * *factors.get_unchecked(row);
                }
                column += 1;
            }
        }
    }
}

vectorized! {
    /// Where the first of the largest elements is; one that is not a number counts as the largest.
    pub fn largest[S: Scalar](column: &[S]) -> i64 {
        const LANES: usize = 8;
        let zero: S::Real = num_traits::zero();
        let (chunks, rest) = column.as_chunks::<LANES>();
        let (mut best, mut nans) = ([zero; LANES], [false; LANES]);
        for chunk in chunks {
            for lane in 0..LANES {
                let size = chunk[lane].abs1();
                best[lane] = if size > best[lane] { size } else { best[lane] };
                nans[lane] |= chunk[lane].has_nan();
            }
        }
        if nans.contains(&true) || rest.iter().any(|element| element.has_nan()) {
            return column.iter().position(|element| element.has_nan()).unwrap_or(0) as i64;
        }
        let sizes = best.into_iter().chain(rest.iter().map(|element| element.abs1()));
        let most = sizes.fold(zero, |most, size| if size > most { size } else { most });
        column.iter().position(|element| element.abs1() == most).unwrap_or(0) as i64
    }
}

unsafe fn swap_rows<S: Scalar>(a: Matrix<S>, columns: i64, one: i64, other: i64) {
    if one != other {
        // SAFETY: the caller's word.
        (0..columns).for_each(|column| unsafe { std::ptr::swap(a.at(one, column), a.at(other, column)) });
    }
}

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

/// `A = Q·R`, m by n: R in the upper triangle, below it and in `tau` the reflections `I - tau·v·vᴴ` whose product Q is.
///
/// # Safety
/// The matrix is there, and room for min(m, n) values of `tau`.
pub unsafe fn geqrf<S: Scalar>(m: i64, n: i64, a: *mut S, lda: i64, tau: *mut S) {
    let a = Matrix::new(a, lda);
    for k in 0..m.min(n) {
        // SAFETY: the caller's word.
        unsafe {
            let factor = reflector(a.from(k, k).column_mut(0, m - k));
            *tau.offset(k as isize) = factor;
            reflect(a.from(k, k), m - k, factor.conj(), a.from(k, k + 1), n - k - 1);
        }
    }
}

/// Makes a vector the reflection's that leads it onto its first axis, the result's length in its first place; the
/// return value is tau.
fn reflector<S: Scalar>(x: &mut [S]) -> S {
    let Some((first, rest)) = x.split_first_mut() else { return S::zero() };
    // SAFETY: as many elements as it says.
    let norm = unsafe { level1::nrm2::<S, S>(rest.len() as i64, rest.as_ptr(), 1) };
    let zero = num_traits::zero();
    if norm == zero && first.imag() == zero {
        return S::zero();
    }
    let length = num_traits::Float::hypot(first.modulus(), norm);
    let beta = if first.real() < zero { length } else { -length };
    let tau = S::from_real((beta - Scalar::real(*first)) / beta).with_imag(-first.imag() / beta);
    let divisor = *first - S::from_real(beta);
    divide(rest, divisor);
    *first = S::from_real(beta);
    tau
}

vectorized! {
    fn divide[S: Scalar](elements: &mut [S], divisor: S) {
        for element in elements {
            *element = element.over(divisor);
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
            let sums = &sums[at];
            along[at] =
                ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
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
