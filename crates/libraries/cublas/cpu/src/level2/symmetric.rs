//! Products with symmetric and Hermitian matrices, of which one triangle is read.

use super::matrix::Matrix;
use super::{column, finish, scale};
use crate::vector::{Vector, gather};
use crate::{Scalar, Uplo};

/// What the other triangle is to the one that is stored.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Symmetric,
    /// The diagonal's imaginary parts are not read.
    Hermitian,
}

macro_rules! full {
    ($(#[$doc:meta])* $name:ident, $kind:expr) => {
        $(#[$doc])*
        pub unsafe fn $name<S: Scalar>(
            uplo: Uplo,
            n: i64,
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
            unsafe { product($kind, Matrix::triangle(uplo, n, a, lda), alpha, x, incx, beta, y, incy) }
        }
    };
}
full!(
    /// y = α A x + β y, A symmetric.
    symv,
    Kind::Symmetric
);
full!(
    /// y = α A x + β y, A Hermitian.
    hemv,
    Kind::Hermitian
);

macro_rules! band {
    ($(#[$doc:meta])* $name:ident, $kind:expr) => {
        $(#[$doc])*
        pub unsafe fn $name<S: Scalar>(
            uplo: Uplo,
            n: i64,
            k: i64,
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
            unsafe { product($kind, Matrix::triangle_band(uplo, n, k, a, lda), alpha, x, incx, beta, y, incy) }
        }
    };
}
band!(
    /// y = α A x + β y, A symmetric with `k` rows beside the diagonal.
    sbmv,
    Kind::Symmetric
);
band!(
    /// y = α A x + β y, A Hermitian with `k` rows beside the diagonal.
    hbmv,
    Kind::Hermitian
);

macro_rules! packed {
    ($(#[$doc:meta])* $name:ident, $kind:expr) => {
        $(#[$doc])*
        pub unsafe fn $name<S: Scalar>(
            uplo: Uplo,
            n: i64,
            alpha: S,
            ap: *const S,
            x: *const S,
            incx: i64,
            beta: S,
            y: *mut S,
            incy: i64,
        ) {
            // SAFETY: this function's caller promises it.
            unsafe { product($kind, Matrix::packed(uplo, n, ap), alpha, x, incx, beta, y, incy) }
        }
    };
}
packed!(
    /// y = α A x + β y, A symmetric and packed.
    spmv,
    Kind::Symmetric
);
packed!(
    /// y = α A x + β y, A Hermitian and packed.
    hpmv,
    Kind::Hermitian
);

unsafe fn product<S: Scalar>(
    kind: Kind,
    a: Matrix<S>,
    alpha: S,
    x: *const S,
    incx: i64,
    beta: S,
    y: *mut S,
    incy: i64,
) {
    let n = a.n_columns();
    // SAFETY: this function's caller promises it.
    let (x, y) = unsafe { (Vector::new(n as i64, x, incx), Vector::new(n as i64, y, incy)) };
    if alpha.is_zero() {
        return scale(beta, y);
    }
    let x = gather(x);
    let mut sums = vec![S::zero(); n];
    for j in 0..n {
        let stored = a.split(j);
        let hermitian = kind == Kind::Hermitian;
        let diagonal = if hermitian { S::from_real(stored.diagonal.real()) } else { stored.diagonal };
        // The column, and the row that is its mirror image.
        column::add(&mut sums[stored.rows.clone()], stored.others, x[j]);
        sums[j] += diagonal * x[j] + column::dot(stored.others, &x[stored.rows], hermitian);
    }
    finish(alpha, &sums, beta, y);
}
