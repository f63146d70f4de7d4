//! Products with symmetric and Hermitian matrices, of which one triangle is read.

use std::ops::Range;

use rayon::prelude::*;

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
    let pieces = if n * n < SHARED { 1 } else { PIECES };
    if pieces == 1 {
        columns(kind, &a, &x, 0..n, &mut sums);
    } else {
        // The pieces are the same on any number of cores, and so are the sums.
        let bounds: Vec<usize> = (0..=pieces).map(|piece| bound(&a, piece, pieces)).collect();
        let parts: Vec<Vec<S>> = bounds
            .par_windows(2)
            .map(|bounds| {
                let mut sums = vec![S::zero(); n];
                columns(kind, &a, &x, bounds[0]..bounds[1], &mut sums);
                sums
            })
            .collect();
        parts.iter().for_each(|part| column::add(&mut sums, part, S::one()));
    }
    finish(alpha, &sums, beta, y);
}

/// Elements of a matrix from which on cores share it, and into how many pieces it is cut for them.
const SHARED: usize = 1 << 18;
const PIECES: usize = 4;

/// The column where a piece begins, about as large as the others.
fn bound<S: Scalar>(a: &Matrix<S>, piece: usize, pieces: usize) -> usize {
    let (n, part) = (a.n_columns(), piece as f64 / pieces as f64);
    let column = match a.rows(0).len() {
        // A band.
        len if len != 1 && len != n => part,
        // The upper triangle: its first column has one row.
        1 => part.sqrt(),
        _ => 1.0 - (1.0 - part).sqrt(),
    };
    if piece == pieces { n } else { (column * n as f64) as usize / 4 * 4 }
}

/// What some columns, and the rows that are their mirror images, add to the product's elements.
fn columns<S: Scalar>(kind: Kind, a: &Matrix<S>, x: &[S], range: Range<usize>, sums: &mut [S]) {
    let hermitian = kind == Kind::Hermitian;
    let diagonal = |value: S| if hermitian { S::from_real(value.real()) } else { value };
    let mirrored = |value: S| if hermitian { value.conj() } else { value };
    let n = a.n_columns();
    let mut j = range.start;
    while j < range.end {
        let end = j + 4;
        // Four columns are read once for both where they have the same rows but for those around the diagonal.
        let is_lower = end <= n && a.rows(j) == (j..n) && a.rows(end - 1) == (end - 1..n);
        let is_upper = end <= n && a.rows(j) == (0..j + 1) && a.rows(end - 1) == (0..end);
        if end > range.end || !(is_lower || is_upper) {
            let stored = a.split(j);
            column::add(&mut sums[stored.rows.clone()], stored.others, x[j]);
            sums[j] +=
                diagonal(stored.diagonal) * x[j] + column::dot(stored.others, &x[stored.rows], hermitian);
            j += 1;
            continue;
        }
        for at in j..end {
            let stored = a.split(at);
            sums[at] += diagonal(stored.diagonal) * x[at];
            let around = stored.rows.start.max(j)..stored.rows.end.min(end);
            for row in around {
                let value = stored.others[row - stored.rows.start];
                sums[row] += value * x[at];
                sums[at] += mirrored(value) * x[row];
            }
        }
        let common = if is_lower { end..n } else { 0..j };
        let column = |at: usize| {
            let start = common.start - a.rows(at).start;
            &a.column(at)[start..start + common.len()]
        };
        let four = [column(j), column(j + 1), column(j + 2), column(j + 3)];
        let factors = [x[j], x[j + 1], x[j + 2], x[j + 3]];
        let dots = column::add_and_dot_four(&mut sums[common.clone()], four, factors, &x[common], hermitian);
        sums[j..end].iter_mut().zip(dots).for_each(|(sum, dot)| *sum += dot);
        j = end;
    }
}
