//! `A = P·L·U` with partial pivoting.

use cublas_cpu::lapack::eliminations;
pub use cublas_cpu::lapack::laswp;
use cublas_cpu::{Diag, Matrix, Op, Scalar, Side, Uplo, gemm, level3, parallel};

/// So few columns are factored one by one: fewer where they are long.
fn few(rows: i64) -> i64 {
    if rows <= 128 { 32 } else { 16 }
}

/// Factors m by n in A's place: L's ones are not stored. The answers are the first diagonal element of U, counted from 1, that is exactly
/// zero, or 0, and the pivots: row i was swapped with that one, counted from 1. Without pivoting no rows are swapped.
///
/// # Safety
/// The matrix is there.
pub unsafe fn getrf<S: Scalar>(m: i64, n: i64, a: Matrix<S>, pivoting: bool) -> (i64, Vec<i64>) {
    let mut swaps: Vec<i64> = (0..m.min(n).max(0)).collect();
    // SAFETY: the caller's word.
    let info = unsafe { factor(m, n, a, &mut swaps, pivoting) };
    swaps.iter_mut().for_each(|swap| *swap += 1);
    (info, swaps)
}

/// The left half first, then the right one with its part of U and what is left of it below.
unsafe fn factor<S: Scalar>(m: i64, n: i64, a: Matrix<S>, swaps: &mut [i64], pivoting: bool) -> i64 {
    let size = m.min(n);
    if size <= few(m) {
        // SAFETY: the caller's word.
        return unsafe { factor_few(m, n, a, swaps, pivoting) };
    }
    let left = size / 2;
    let right = n - left;
    let (above, below) = swaps.split_at_mut(left as usize);
    // SAFETY: the caller's word holds for every part.
    unsafe {
        let first = factor(m, left, a, above, pivoting);
        let (beside, corner, under) = (a.from(0, left), a.from(left, left), a.from(left, 0));
        swap_rows(beside, right, above, 0);
        let one = S::one();
        let (start, ld) = (a.start(), a.ld());
        level3::trsm(
            Side::Left,
            Uplo::Lower,
            Op::N,
            Diag::Unit,
            left,
            right,
            one,
            start,
            ld,
            beside.start(),
            ld,
        );
        let (l, u, c) = (under.start(), beside.start(), corner.start());
        gemm(Op::N, Op::N, m - left, right, left, -one, l, ld, u, ld, one, c, ld);
        let second = factor(m - left, right, corner, below, pivoting);
        swap_rows(under, left, below, 0);
        below.iter_mut().for_each(|swap| *swap += left);
        match (first, second) {
            (0, 0) => 0,
            (0, second) => left + second,
            (first, _) => first,
        }
    }
}

unsafe fn factor_few<S: Scalar>(m: i64, n: i64, a: Matrix<S>, swaps: &mut [i64], pivoting: bool) -> i64 {
    // SAFETY: the caller's word.
    unsafe { eliminations(m, n, a, pivoting, |k, pivot| swaps[k as usize] = pivot) }
}

/// Swaps row `first + i` with row `swaps[i]`, one after the other.
unsafe fn swap_rows<S: Scalar>(a: Matrix<S>, columns: i64, swaps: &[i64], first: i64) {
    parallel(columns, 2 * swaps.len() as i64, |column| {
        for (row, &other) in (first..).zip(swaps) {
            // SAFETY: the caller's word; a column for each call.
            unsafe { std::ptr::swap(a.at(row, column), a.at(other, column)) };
        }
    });
}
