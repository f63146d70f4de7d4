//! `A = L·Lᴴ` or `Uᴴ·U`, what is solved by it, and inverses and products of triangles. Halves are done before wholes, so that nearly all work
//! is products.

use cublas_cpu::{Diag, Matrix, Op, Scalar, Side, Uplo, level3};
use num_traits::Zero as _;

/// So few columns are done one by one.
const FEW: i64 = 16;

/// Factors n by n in the place of the triangle. The answer is the order of the first leading minor that is not positive, or 0.
///
/// # Safety
/// The triangle is there.
pub unsafe fn potrf<S: Scalar>(uplo: Uplo, n: i64, a: Matrix<S>) -> i64 {
    if n <= FEW {
        // SAFETY: the caller's word.
        return unsafe { factor_few(uplo, n, a) };
    }
    let half = n / 2;
    let rest = n - half;
    let ld = a.ld();
    // SAFETY: the caller's word holds for every part.
    unsafe {
        let info = potrf(uplo, half, a);
        if info != 0 {
            return info;
        }
        let corner = a.from(half, half);
        let (one, minus) = (<S::Real as num_traits::One>::one(), -<S::Real as num_traits::One>::one());
        match uplo {
            Uplo::Lower => {
                let below = a.from(half, 0).start();
                let (side, op, diag) = (Side::Right, Op::C, Diag::NonUnit);
                level3::trsm(side, uplo, op, diag, rest, half, S::one(), a.start(), ld, below, ld);
                level3::herk(uplo, Op::N, rest, half, minus, below, ld, one, corner.start(), ld);
            }
            Uplo::Upper => {
                let beside = a.from(0, half).start();
                let (side, op, diag) = (Side::Left, Op::C, Diag::NonUnit);
                level3::trsm(side, uplo, op, diag, half, rest, S::one(), a.start(), ld, beside, ld);
                level3::herk(uplo, Op::C, rest, half, minus, beside, ld, one, corner.start(), ld);
            }
        }
        match potrf(uplo, rest, corner) {
            0 => 0,
            info => half + info,
        }
    }
}

/// An element below the diagonal, or the one that stands for it above.
unsafe fn place<S: Scalar>(uplo: Uplo, a: Matrix<S>, row: i64, column: i64) -> *mut S {
    if uplo == Uplo::Lower { a.at(row, column) } else { a.at(column, row) }
}

unsafe fn factor_few<S: Scalar>(uplo: Uplo, n: i64, a: Matrix<S>) -> i64 {
    for j in 0..n {
        // SAFETY: the caller's word holds for every element of the triangle.
        unsafe {
            // With U in the place of L every element is the conjugate, and so is what they are made of.
            let sum = (0..j).fold(a.get(j, j).real(), |sum, k| {
                let element = *place(uplo, a, j, k);
                sum - (element.real() * element.real() + element.imag() * element.imag())
            });
            // What is no number is not positive.
            if num_traits::Float::is_nan(sum) || sum <= S::Real::zero() {
                a.set(j, j, S::from_real(sum));
                return j + 1;
            }
            let diagonal = num_traits::Float::sqrt(sum);
            a.set(j, j, S::from_real(diagonal));
            for i in j + 1..n {
                let mut sum = *place(uplo, a, i, j);
                for k in 0..j {
                    let (left, right) = (*place(uplo, a, i, k), *place(uplo, a, j, k));
                    sum -= left * right.conj();
                }
                *place(uplo, a, i, j) = sum.over_real(diagonal);
            }
        }
    }
    0
}

/// Solves for `columns` right sides in B's place by what [`potrf`] made.
///
/// # Safety
/// The matrices are there.
pub unsafe fn potrs<S: Scalar>(uplo: Uplo, n: i64, columns: i64, a: Matrix<S>, b: Matrix<S>) {
    let (first, second) = if uplo == Uplo::Lower { (Op::N, Op::C) } else { (Op::C, Op::N) };
    for op in [first, second] {
        let (side, diag, one) = (Side::Left, Diag::NonUnit, S::one());
        // SAFETY: the caller's word.
        unsafe {
            level3::trsm(side, uplo, op, diag, n, columns, one, a.start(), a.ld(), b.start(), b.ld());
        }
    }
}

/// The inverse of a triangle in its place. The answer is the first diagonal element that is zero (then nothing is written), or 0.
///
/// # Safety
/// The triangle is there.
pub unsafe fn trtri<S: Scalar>(uplo: Uplo, diag: Diag, n: i64, a: Matrix<S>) -> i64 {
    if diag == Diag::NonUnit {
        // SAFETY: the caller's word.
        let zero = (0..n).find(|&i| unsafe { a.get(i, i) }.is_zero());
        if let Some(zero) = zero {
            return zero + 1;
        }
    }
    // SAFETY: the caller's word.
    unsafe { invert(uplo, diag, n, a) };
    0
}

unsafe fn invert<S: Scalar>(uplo: Uplo, diag: Diag, n: i64, a: Matrix<S>) {
    let (half, ld, one) = (n / 2, a.ld(), S::one());
    let rest = n - half;
    // SAFETY: the caller's word holds for every part.
    unsafe {
        if n <= 1 {
            if n == 1 && diag == Diag::NonUnit {
                a.set(0, 0, one.over(a.get(0, 0)));
            }
            return;
        }
        let (start, corner) = (a.start(), a.from(half, half).start());
        match uplo {
            Uplo::Lower => {
                let below = a.from(half, 0).start();
                level3::trsm(Side::Left, uplo, Op::N, diag, rest, half, -one, corner, ld, below, ld);
                level3::trsm(Side::Right, uplo, Op::N, diag, rest, half, one, start, ld, below, ld);
            }
            Uplo::Upper => {
                let beside = a.from(0, half).start();
                level3::trsm(Side::Left, uplo, Op::N, diag, half, rest, -one, start, ld, beside, ld);
                level3::trsm(Side::Right, uplo, Op::N, diag, half, rest, one, corner, ld, beside, ld);
            }
        }
        invert(uplo, diag, half, a);
        invert(uplo, diag, rest, a.from(half, half));
    }
}

/// `U·Uᴴ` or `Lᴴ·L` in the triangle's place.
///
/// # Safety
/// The triangle is there.
pub unsafe fn lauum<S: Scalar>(uplo: Uplo, n: i64, a: Matrix<S>) {
    let (half, ld, one) = (n / 2, a.ld(), S::one());
    let rest = n - half;
    // SAFETY: the caller's word holds for every part.
    unsafe {
        if n <= 1 {
            if n == 1 {
                let size = a.get(0, 0);
                a.set(0, 0, S::from_real(size.real() * size.real() + size.imag() * size.imag()));
            }
            return;
        }
        lauum(uplo, half, a);
        let (start, corner) = (a.start(), a.from(half, half).start());
        let real = <S::Real as num_traits::One>::one();
        match uplo {
            Uplo::Lower => {
                let below = a.from(half, 0).start();
                level3::herk(uplo, Op::C, half, rest, real, below, ld, real, start, ld);
                let (side, diag) = (Side::Left, Diag::NonUnit);
                level3::trmm(side, uplo, Op::C, diag, rest, half, one, corner, ld, below, ld, below, ld);
            }
            Uplo::Upper => {
                let beside = a.from(0, half).start();
                level3::herk(uplo, Op::N, half, rest, real, beside, ld, real, start, ld);
                let (side, diag) = (Side::Right, Diag::NonUnit);
                level3::trmm(side, uplo, Op::C, diag, half, rest, one, corner, ld, beside, ld, beside, ld);
            }
        }
        lauum(uplo, rest, a.from(half, half));
    }
}

/// The inverse's triangle by what [`potrf`] made. The answer is [`trtri`]'s.
///
/// # Safety
/// The triangle is there.
pub unsafe fn potri<S: Scalar>(uplo: Uplo, n: i64, a: Matrix<S>) -> i64 {
    // SAFETY: the caller's word.
    unsafe {
        let info = trtri(uplo, Diag::NonUnit, n, a);
        if info == 0 {
            lauum(uplo, n, a);
        }
        info
    }
}
