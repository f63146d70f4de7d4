//! Products whose result is symmetric or Hermitian, of which one triangle is written.

use super::{BLOCK, blocks};
use crate::matrix::{Matrix, scale_slice};
use crate::{Op, Scalar, Uplo, gemm};

/// `C = alpha·op(A)·op(A)ᵀ + beta·C`, where C is n by n and `op(A)` has k columns.
///
/// # Safety
/// The matrices are there; C does not overlap A.
#[expect(clippy::too_many_arguments, reason = "the BLAS's own")]
pub unsafe fn syrk<S: Scalar>(
    uplo: Uplo,
    op: Op,
    n: i64,
    k: i64,
    alpha: S,
    a: *const S,
    lda: i64,
    beta: S,
    c: *mut S,
    ldc: i64,
) {
    let a = Matrix::read(a, lda);
    // SAFETY: the caller's word.
    unsafe { update(uplo, op, Op::T, n, k, &[(alpha, a, a)], beta, Matrix::new(c, ldc)) }
}

/// `C = alpha·op(A)·op(A)ᴴ + beta·C`; the diagonal becomes real.
///
/// # Safety
/// As [`syrk`].
#[expect(clippy::too_many_arguments, reason = "the BLAS's own")]
pub unsafe fn herk<S: Scalar>(
    uplo: Uplo,
    op: Op,
    n: i64,
    k: i64,
    alpha: S::Real,
    a: *const S,
    lda: i64,
    beta: S::Real,
    c: *mut S,
    ldc: i64,
) {
    let a = Matrix::read(a, lda);
    let (alpha, beta) = (S::from_real(alpha), S::from_real(beta));
    // SAFETY: the caller's word.
    unsafe { update(uplo, op, Op::C, n, k, &[(alpha, a, a)], beta, Matrix::new(c, ldc)) }
}

/// `C = alpha·op(A)·op(B)ᵀ + alpha·op(B)·op(A)ᵀ + beta·C`
///
/// # Safety
/// The matrices are there; C overlaps neither A nor B.
#[expect(clippy::too_many_arguments, reason = "the BLAS's own")]
pub unsafe fn syr2k<S: Scalar>(
    uplo: Uplo,
    op: Op,
    n: i64,
    k: i64,
    alpha: S,
    a: *const S,
    lda: i64,
    b: *const S,
    ldb: i64,
    beta: S,
    c: *mut S,
    ldc: i64,
) {
    let (a, b) = (Matrix::read(a, lda), Matrix::read(b, ldb));
    // SAFETY: the caller's word.
    unsafe { update(uplo, op, Op::T, n, k, &[(alpha, a, b), (alpha, b, a)], beta, Matrix::new(c, ldc)) }
}

/// `C = alpha·op(A)·op(B)ᴴ + conj(alpha)·op(B)·op(A)ᴴ + beta·C`; the diagonal becomes real.
///
/// # Safety
/// As [`syr2k`].
#[expect(clippy::too_many_arguments, reason = "the BLAS's own")]
pub unsafe fn her2k<S: Scalar>(
    uplo: Uplo,
    op: Op,
    n: i64,
    k: i64,
    alpha: S,
    a: *const S,
    lda: i64,
    b: *const S,
    ldb: i64,
    beta: S::Real,
    c: *mut S,
    ldc: i64,
) {
    let (a, b) = (Matrix::read(a, lda), Matrix::read(b, ldb));
    let terms = [(alpha, a, b), (alpha.conj(), b, a)];
    // SAFETY: the caller's word.
    unsafe { update(uplo, op, Op::C, n, k, &terms, S::from_real(beta), Matrix::new(c, ldc)) }
}

/// `C = alpha·op(A)·op(B)ᵀ + beta·C`, which the caller knows to be symmetric.
///
/// # Safety
/// As [`syr2k`].
#[expect(clippy::too_many_arguments, reason = "the BLAS's own")]
pub unsafe fn syrkx<S: Scalar>(
    uplo: Uplo,
    op: Op,
    n: i64,
    k: i64,
    alpha: S,
    a: *const S,
    lda: i64,
    b: *const S,
    ldb: i64,
    beta: S,
    c: *mut S,
    ldc: i64,
) {
    let (a, b) = (Matrix::read(a, lda), Matrix::read(b, ldb));
    // SAFETY: the caller's word.
    unsafe { update(uplo, op, Op::T, n, k, &[(alpha, a, b)], beta, Matrix::new(c, ldc)) }
}

/// `C = alpha·op(A)·op(B)ᴴ + beta·C`, which the caller knows to be Hermitian; the diagonal becomes real.
///
/// # Safety
/// As [`syr2k`].
#[expect(clippy::too_many_arguments, reason = "the BLAS's own")]
pub unsafe fn herkx<S: Scalar>(
    uplo: Uplo,
    op: Op,
    n: i64,
    k: i64,
    alpha: S,
    a: *const S,
    lda: i64,
    b: *const S,
    ldb: i64,
    beta: S::Real,
    c: *mut S,
    ldc: i64,
) {
    let (a, b) = (Matrix::read(a, lda), Matrix::read(b, ldb));
    // SAFETY: the caller's word.
    unsafe { update(uplo, op, Op::C, n, k, &[(alpha, a, b)], S::from_real(beta), Matrix::new(c, ldc)) }
}

/// `C = sum of factor·op(left)·op(right)ᵀ + beta·C`, or with ᴴ, as `other` says.
#[expect(clippy::too_many_arguments, reason = "the BLAS's own")]
unsafe fn update<S: Scalar>(
    uplo: Uplo,
    op: Op,
    other: Op,
    n: i64,
    k: i64,
    terms: &[(S, Matrix<S>, Matrix<S>)],
    beta: S,
    c: Matrix<S>,
) {
    let nothing_to_add = k <= 0 || terms[0].0.is_zero();
    if n <= 0 || (nothing_to_add && beta.is_one()) {
        return;
    }
    // In memory both are columns by k, or both k by columns.
    let (op_left, op_right) = if op == Op::N { (Op::N, other) } else { (other, Op::N) };
    let rows_of = |matrix: Matrix<S>, start: i64| {
        if op == Op::N { matrix.from(start, 0) } else { matrix.from(0, start) }
    };
    // SAFETY: the caller's word holds for every block.
    let add = |rows: (i64, i64), columns: (i64, i64), into: Matrix<S>, mut beta: S| unsafe {
        for &(factor, left, right) in terms {
            let factor = if nothing_to_add { S::zero() } else { factor };
            let (left, right) = (rows_of(left, rows.0), rows_of(right, columns.0));
            let (m, n) = (rows.1, columns.1);
            let (a, lda, b, ldb) = (left.start(), left.ld(), right.start(), right.ld());
            gemm(op_left, op_right, m, n, k, factor, a, lda, b, ldb, beta, into.start(), into.ld());
            beta = S::one();
        }
    };
    let mut square = vec![S::zero(); (BLOCK.min(n) * BLOCK.min(n)) as usize];
    for (start, size) in blocks(n) {
        let block = (start, size);
        add(block, block, Matrix::new(square.as_mut_ptr(), size), S::zero());
        // SAFETY: the caller's word.
        unsafe { add_triangle(uplo, other, size, &square, beta, c.from(start, start)) };
        let rest = match uplo {
            Uplo::Lower => (start + size, n - start - size),
            Uplo::Upper => (0, start),
        };
        add(rest, block, c.from(rest.0, start), beta);
    }
}

/// `C = square + beta·C` in a triangle.
unsafe fn add_triangle<S: Scalar>(uplo: Uplo, other: Op, size: i64, square: &[S], beta: S, c: Matrix<S>) {
    for column in 0..size {
        let (from, to) = match uplo {
            Uplo::Lower => (column, size),
            Uplo::Upper => (0, column + 1),
        };
        // SAFETY: the caller's word.
        let into = unsafe { c.from(from, 0).column_mut(column, to - from) };
        scale_slice(into, beta);
        let added = &square[(from + column * size) as usize..];
        for (element, added) in into.iter_mut().zip(added) {
            *element += *added;
        }
        if other.conjugates() {
            let diagonal = &mut into[(column - from) as usize];
            *diagonal = S::from_real(diagonal.real());
        }
    }
}
