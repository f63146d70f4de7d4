//! Systems in one call: square ones, and those with more rows than unknowns, whose residual is made least.

use cublas_cpu::lapack::getrs;
use cublas_cpu::{Diag, Matrix, Op, Scalar, Side, Uplo, level3};
use num_traits::ToPrimitive;

use crate::dense::Dense;
use crate::{lu, qr};

/// `A·X = B`; A and B stay as they are. The answers are [`lu::getrf`]'s; with a zero on U's diagonal X is not written.
///
/// # Safety
/// The matrices are there: A n by n, B and X with `columns` columns.
pub unsafe fn gesv<S: Scalar>(
    n: i64,
    columns: i64,
    a: Matrix<S>,
    b: Matrix<S>,
    x: Matrix<S>,
) -> (i64, Vec<i64>) {
    // SAFETY: the caller's word, and matrices of ours.
    unsafe {
        let (mut factors, mut solution) = (Dense::read(n, n, a), Dense::read(n, columns, b));
        let (info, pivots) = lu::getrf(n, n, factors.matrix(), true);
        if info == 0 {
            let narrow: Vec<i32> = pivots.iter().map(|&pivot| pivot as i32).collect();
            let (start, ld) = (factors.values.as_ptr(), n.max(1));
            getrs(Op::N, n, columns, start, ld, narrow.as_ptr(), solution.values.as_mut_ptr(), ld);
            solution.write(n, columns, x);
        }
        (info, pivots)
    }
}

/// The X, n by `columns`, for which `A·X` is nearest to B, A m by n with m at least n; A and B stay as they are. The answer is the first
/// diagonal element of R that is zero (then X is not written), or 0.
///
/// # Safety
/// The matrices are there.
pub unsafe fn gels<S: Scalar>(m: i64, n: i64, columns: i64, a: Matrix<S>, b: Matrix<S>, x: Matrix<S>) -> i64 {
    // SAFETY: the caller's word, and matrices of ours.
    unsafe {
        let (mut factors, mut solution) = (Dense::read(m, n, a), Dense::read(m, columns, b));
        let mut tau = vec![S::zero(); n.max(0) as usize];
        let (r, into) = (factors.matrix(), solution.matrix());
        qr::geqrf(m, n, r, tau.as_mut_ptr());
        if let Some(zero) = (0..n).find(|&i| r.get(i, i).is_zero()) {
            return zero + 1;
        }
        qr::ormqr(Side::Left, Op::C, m, columns, n, r, tau.as_ptr(), into);
        let (uplo, one) = (Uplo::Upper, S::one());
        let (start, ld) = (r.start().cast_const(), r.ld());
        level3::trsm(Side::Left, uplo, Op::N, Diag::NonUnit, n, columns, one, start, ld, into.start(), ld);
        solution.write(n, columns, x);
        0
    }
}

/// The lengths of the columns of `B - A·X`, A m by n.
///
/// # Safety
/// The matrices are there, and nobody writes to them.
pub unsafe fn residuals<S: Scalar>(
    m: i64,
    n: i64,
    columns: i64,
    a: Matrix<S>,
    b: Matrix<S>,
    x: Matrix<S>,
) -> Vec<f64> {
    // SAFETY: the caller's word.
    let (a, b, x) = unsafe { (Dense::read(m, n, a), Dense::read(m, columns, b), Dense::read(n, columns, x)) };
    let product = a.times(Op::N, &x, Op::N);
    let squares = |column: i64| {
        let parts = b.column(column).iter().zip(product.column(column));
        parts.map(|(b, product)| ToPrimitive::to_f64(&(*b - *product).modulus()).unwrap_or(f64::NAN).powi(2))
    };
    (0..columns).map(|column| squares(column).sum::<f64>().sqrt()).collect()
}
