//! Matrices to which products of vectors are added.

use super::column;
use super::matrix::Matrix;
use crate::vector::{Vector, gather};
use crate::{Scalar, Uplo};

/// A = α x yᵀ + A
pub unsafe fn geru<S: Scalar>(
    m: i64,
    n: i64,
    alpha: S,
    x: *const S,
    incx: i64,
    y: *const S,
    incy: i64,
    a: *mut S,
    lda: i64,
) {
    // SAFETY: this function's caller promises it.
    unsafe { outer(m, n, alpha, x, incx, y, incy, a, lda, false) }
}

/// A = α x yᴴ + A
pub unsafe fn gerc<S: Scalar>(
    m: i64,
    n: i64,
    alpha: S,
    x: *const S,
    incx: i64,
    y: *const S,
    incy: i64,
    a: *mut S,
    lda: i64,
) {
    // SAFETY: this function's caller promises it.
    unsafe { outer(m, n, alpha, x, incx, y, incy, a, lda, true) }
}

unsafe fn outer<S: Scalar>(
    m: i64,
    n: i64,
    alpha: S,
    x: *const S,
    incx: i64,
    y: *const S,
    incy: i64,
    a: *mut S,
    lda: i64,
    conjugates: bool,
) {
    if m < 1 || n < 1 || alpha.is_zero() {
        return;
    }
    // SAFETY: this function's caller promises it.
    let (x, y, mut a) =
        unsafe { (gather(Vector::new(m, x, incx)), Vector::new(n, y, incy), Matrix::full(m, n, a, lda)) };
    for j in 0..y.len() {
        column::add(a.column_mut(j), &x, alpha * y.get(j).conj_if(conjugates));
    }
}

/// A = α x xᵀ + A, in one triangle.
pub unsafe fn syr<S: Scalar>(uplo: Uplo, n: i64, alpha: S, x: *const S, incx: i64, a: *mut S, lda: i64) {
    // SAFETY: this function's caller promises it.
    unsafe { square(Matrix::triangle(uplo, n, a, lda), alpha, x, incx, false) }
}

/// A = α x xᵀ + A, in one packed triangle.
pub unsafe fn spr<S: Scalar>(uplo: Uplo, n: i64, alpha: S, x: *const S, incx: i64, ap: *mut S) {
    // SAFETY: this function's caller promises it.
    unsafe { square(Matrix::packed(uplo, n, ap), alpha, x, incx, false) }
}

/// A = α x xᴴ + A, in one triangle, whose diagonal becomes real.
pub unsafe fn her<S: Scalar>(
    uplo: Uplo,
    n: i64,
    alpha: S::Real,
    x: *const S,
    incx: i64,
    a: *mut S,
    lda: i64,
) {
    // SAFETY: this function's caller promises it.
    unsafe { square(Matrix::triangle(uplo, n, a, lda), S::from_real(alpha), x, incx, true) }
}

/// A = α x xᴴ + A, in one packed triangle, whose diagonal becomes real.
pub unsafe fn hpr<S: Scalar>(uplo: Uplo, n: i64, alpha: S::Real, x: *const S, incx: i64, ap: *mut S) {
    // SAFETY: this function's caller promises it.
    unsafe { square(Matrix::packed(uplo, n, ap), S::from_real(alpha), x, incx, true) }
}

unsafe fn square<S: Scalar>(mut a: Matrix<S>, alpha: S, x: *const S, incx: i64, hermitian: bool) {
    if alpha.is_zero() {
        return;
    }
    // SAFETY: this function's caller promises it.
    let x = gather(unsafe { Vector::new(a.n_columns() as i64, x, incx) });
    for j in 0..x.len() {
        let rows = a.rows(j);
        column::add(a.column_mut(j), &x[rows], alpha * x[j].conj_if(hermitian));
        if hermitian {
            make_diagonal_real(&mut a, j);
        }
    }
}

/// A = α x yᵀ + α y xᵀ + A, in one triangle.
pub unsafe fn syr2<S: Scalar>(
    uplo: Uplo,
    n: i64,
    alpha: S,
    x: *const S,
    incx: i64,
    y: *const S,
    incy: i64,
    a: *mut S,
    lda: i64,
) {
    // SAFETY: this function's caller promises it.
    unsafe { both_ways(Matrix::triangle(uplo, n, a, lda), alpha, x, incx, y, incy, false) }
}

/// A = α x yᵀ + α y xᵀ + A, in one packed triangle.
pub unsafe fn spr2<S: Scalar>(
    uplo: Uplo,
    n: i64,
    alpha: S,
    x: *const S,
    incx: i64,
    y: *const S,
    incy: i64,
    ap: *mut S,
) {
    // SAFETY: this function's caller promises it.
    unsafe { both_ways(Matrix::packed(uplo, n, ap), alpha, x, incx, y, incy, false) }
}

/// A = α x yᴴ + ᾱ y xᴴ + A, in one triangle, whose diagonal becomes real.
pub unsafe fn her2<S: Scalar>(
    uplo: Uplo,
    n: i64,
    alpha: S,
    x: *const S,
    incx: i64,
    y: *const S,
    incy: i64,
    a: *mut S,
    lda: i64,
) {
    // SAFETY: this function's caller promises it.
    unsafe { both_ways(Matrix::triangle(uplo, n, a, lda), alpha, x, incx, y, incy, true) }
}

/// A = α x yᴴ + ᾱ y xᴴ + A, in one packed triangle, whose diagonal becomes real.
pub unsafe fn hpr2<S: Scalar>(
    uplo: Uplo,
    n: i64,
    alpha: S,
    x: *const S,
    incx: i64,
    y: *const S,
    incy: i64,
    ap: *mut S,
) {
    // SAFETY: this function's caller promises it.
    unsafe { both_ways(Matrix::packed(uplo, n, ap), alpha, x, incx, y, incy, true) }
}

unsafe fn both_ways<S: Scalar>(
    mut a: Matrix<S>,
    alpha: S,
    x: *const S,
    incx: i64,
    y: *const S,
    incy: i64,
    hermitian: bool,
) {
    if alpha.is_zero() {
        return;
    }
    let n = a.n_columns() as i64;
    // SAFETY: this function's caller promises it.
    let (x, y) = unsafe { (gather(Vector::new(n, x, incx)), gather(Vector::new(n, y, incy))) };
    for j in 0..x.len() {
        let rows = a.rows(j);
        column::add(a.column_mut(j), &x[rows.clone()], alpha * y[j].conj_if(hermitian));
        column::add(a.column_mut(j), &y[rows], (alpha * x[j]).conj_if(hermitian));
        if hermitian {
            make_diagonal_real(&mut a, j);
        }
    }
}

fn make_diagonal_real<S: Scalar>(a: &mut Matrix<S>, j: usize) {
    let place = j - a.rows(j).start;
    let diagonal = &mut a.column_mut(j)[place];
    *diagonal = S::from_real(diagonal.real());
}
