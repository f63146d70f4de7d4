//! `A = L·D·Lᵀ` or `U·D·Uᵀ` of symmetric matrices, `L·D·Lᴴ` or `U·D·Uᴴ` of Hermitian ones, by Bunch and Kaufman, D in blocks of one and two;
//! what is solved by it, and the inverse.

use cublas_cpu::{Matrix, Real as _, Scalar, Uplo};
use num_traits::{Float as _, One as _, Zero as _};

use crate::dense::Dense;

/// What the triangle that is not stored is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    Symmetric,
    /// Diagonals are taken to be real.
    Hermitian,
}

impl Kind {
    /// What stands in the other triangle.
    fn across<S: Scalar>(self, value: S) -> S {
        if self == Kind::Hermitian { value.conj() } else { value }
    }

    /// A diagonal element.
    fn diagonal<S: Scalar>(self, value: S) -> S {
        if self == Kind::Hermitian { S::from_real(value.real()) } else { value }
    }

    /// What a block of two is divided by before anything is multiplied, and what its element beside the diagonal becomes by that.
    fn scale<S: Scalar>(self, beside: S) -> (S, S) {
        if self == Kind::Hermitian {
            let size = beside.modulus();
            (S::from_real(size), beside.over_real(size))
        } else {
            (beside, S::one())
        }
    }
}

/// Factors n by n in the triangle's place. A pivot that is positive says with which row its own was swapped; two that are the same and
/// negative are a block of two. Unless it `moves` rows, each is its own pivot, however small. The answers are the first diagonal element,
/// as the factorization comes to them, that is zero, or 0, and the pivots.
///
/// # Safety
/// The triangle is there.
pub unsafe fn sytrf<S: Scalar>(kind: Kind, moves: bool, uplo: Uplo, n: i64, a: Matrix<S>) -> (i64, Vec<i64>) {
    let mut pivots = vec![0; n.max(0) as usize];
    let is_lower = uplo == Uplo::Lower;
    // SAFETY: the caller's word, for every element of the triangle below.
    let place = |row: i64, column: i64| unsafe {
        let stored = (row >= column) == is_lower || row == column;
        &mut *(if stored { a.at(row, column) } else { a.at(column, row) })
    };
    // Lower goes down, upper up: `at(i)` is the i-th that it comes to.
    let at = |i: i64| if is_lower { i } else { n - 1 - i };
    let alpha = (S::Real::one() + S::Real::rounded(17.0).sqrt()) / S::Real::rounded(8.0);
    let (mut info, mut k) = (0, 0);
    while k < n {
        *place(at(k), at(k)) = kind.diagonal(*place(at(k), at(k)));
        let size = |i: i64, j: i64| {
            let value = *place(at(i), at(j));
            if i == j { kind.diagonal(value).abs1() } else { value.abs1() }
        };
        // The first of the largest in memory's order, as LAPACK finds it.
        let largest = |from: i64, to: i64, size: &dyn Fn(i64) -> S::Real| {
            let mut best = (from, S::Real::zero());
            let candidates: Box<dyn Iterator<Item = i64>> =
                if is_lower { Box::new(from..to) } else { Box::new((from..to).rev()) };
            candidates.for_each(|i| {
                if size(i) > best.1 {
                    best = (i, size(i));
                }
            });
            best
        };
        let own = size(k, k);
        let (row, beside) = largest(k + 1, n, &|i| size(i, k));
        let (mut step, mut swap) = (1, k);
        let is_none = if moves { own.max(beside).is_zero() } else { own.is_zero() };
        if is_none || own.is_nan() {
            info = if info == 0 { at(k) + 1 } else { info };
            pivots[at(k) as usize] = at(k) + 1;
            k += 1;
            continue;
        }
        if moves && own < alpha * beside {
            let (_, in_row) = largest(k, row, &|j| size(row, j));
            let (_, below) = largest(row + 1, n, &|i| size(i, row));
            let most = in_row.max(below);
            if own >= alpha * beside * (beside / most) {
            } else if size(row, row) >= alpha * most {
                swap = row;
            } else {
                (step, swap) = (2, row);
            }
        }
        let last = k + step - 1;
        if swap != last {
            let exchange = |one: (i64, i64), other: (i64, i64)| {
                let (one, other): (*mut S, *mut S) =
                    (place(at(one.0), at(one.1)), place(at(other.0), at(other.1)));
                // SAFETY: two elements of the triangle.
                unsafe { std::ptr::swap(one, other) };
            };
            // What came from the other side of the diagonal.
            let turn = |i: i64, j: i64| *place(at(i), at(j)) = kind.across(*place(at(i), at(j)));
            (swap + 1..n).for_each(|i| exchange((i, last), (i, swap)));
            (last + 1..swap).for_each(|i| {
                exchange((i, last), (swap, i));
                turn(i, last);
                turn(swap, i);
            });
            exchange((last, last), (swap, swap));
            turn(swap, last);
            if step == 2 {
                exchange((last, k), (swap, k));
            }
        }
        if step == 1 {
            *place(at(k), at(k)) = kind.diagonal(*place(at(k), at(k)));
            let inverse = S::one().over(*place(at(k), at(k)));
            for j in k + 1..n {
                let by = inverse * kind.across(*place(at(j), at(k)));
                (j..n).for_each(|i| *place(at(i), at(j)) -= *place(at(i), at(k)) * by);
                *place(at(j), at(j)) = kind.diagonal(*place(at(j), at(j)));
            }
            (k + 1..n).for_each(|i| *place(at(i), at(k)) *= inverse);
        } else if k + 2 < n {
            [k, k + 1].into_iter().for_each(|i| *place(at(i), at(i)) = kind.diagonal(*place(at(i), at(i))));
            let (d, unit) = kind.scale(*place(at(k + 1), at(k)));
            let (d11, d22) = (place(at(k + 1), at(k + 1)).over(d), place(at(k), at(k)).over(d));
            let d = S::one().over(d11 * d22 - S::one()).over(d);
            for j in k + 2..n {
                let (x, y) = (*place(at(j), at(k)), *place(at(j), at(k + 1)));
                let first = d * (d11 * x - unit * y);
                let second = d * (d22 * y - kind.across(unit) * x);
                let (by_first, by_second) = (kind.across(first), kind.across(second));
                for i in j..n {
                    let (x, y) = (*place(at(i), at(k)), *place(at(i), at(k + 1)));
                    *place(at(i), at(j)) -= x * by_first + y * by_second;
                }
                *place(at(j), at(j)) = kind.diagonal(*place(at(j), at(j)));
                *place(at(j), at(k)) = first;
                *place(at(j), at(k + 1)) = second;
            }
        }
        let number = at(swap) + 1;
        (k..k + step).for_each(|i| pivots[at(i) as usize] = if step == 1 { number } else { -number });
        k += step;
    }
    (info, pivots)
}

/// Solves for `columns` right sides in B's place by what [`sytrf`] made.
///
/// # Safety
/// The matrices are there, and the pivots.
pub unsafe fn sytrs<S: Scalar>(
    kind: Kind,
    uplo: Uplo,
    n: i64,
    columns: i64,
    a: Matrix<S>,
    pivots: &[i64],
    b: Matrix<S>,
) {
    let is_lower = uplo == Uplo::Lower;
    let at = |i: i64| if is_lower { i } else { n - 1 - i };
    // SAFETY: the caller's word, for the triangle's elements.
    let element = |row: i64, column: i64| unsafe {
        let (row, column) = (at(row), at(column));
        if (row >= column) == is_lower || row == column { a.get(row, column) } else { a.get(column, row) }
    };
    let pivot = |i: i64| pivots[at(i) as usize];
    // The place, in the order of the factorization, that a pivot says.
    let swapped = |pivot: i64| at(pivot.abs() - 1);
    cublas_cpu::parallel(columns, n * n, |column| {
        // SAFETY: the caller's word; a column for each call.
        let x = unsafe { b.column_mut(column, n) };
        let mut k = 0;
        while k < n {
            if pivot(k) > 0 {
                x.swap(at(k) as usize, at(swapped(pivot(k))) as usize);
                let value = x[at(k) as usize];
                (k + 1..n).for_each(|i| x[at(i) as usize] -= element(i, k) * value);
                x[at(k) as usize] = value.over(kind.diagonal(element(k, k)));
                k += 1;
            } else {
                x.swap(at(k + 1) as usize, at(swapped(pivot(k))) as usize);
                let (first, second) = (x[at(k) as usize], x[at(k + 1) as usize]);
                for i in k + 2..n {
                    x[at(i) as usize] -= element(i, k) * first + element(i, k + 1) * second;
                }
                let (beside, unit) = kind.scale(element(k + 1, k));
                let diagonal = |i: i64| kind.diagonal(element(i, i)).over(beside);
                let (own, other) = (diagonal(k), diagonal(k + 1));
                let denominator = own * other - S::one();
                let (first, second) = (first.over(beside), second.over(beside));
                x[at(k) as usize] = (other * first - kind.across(unit) * second).over(denominator);
                x[at(k + 1) as usize] = (own * second - unit * first).over(denominator);
                k += 2;
            }
        }
        let mut k = n - 1;
        while k >= 0 {
            let single = pivot(k) > 0;
            for column in if single { k..k + 1 } else { k - 1..k + 1 } {
                let sum = (k + 1..n)
                    .fold(S::zero(), |sum, i| sum + kind.across(element(i, column)) * x[at(i) as usize]);
                x[at(column) as usize] -= sum;
            }
            x.swap(at(k) as usize, at(swapped(pivot(k))) as usize);
            k -= if single { 1 } else { 2 };
        }
    });
}

/// A symmetric matrix's inverse's triangle by what [`sytrf`] made. The answer is a diagonal element that is zero (then nothing is written), or 0.
///
/// # Safety
/// The triangle is there.
pub unsafe fn sytri<S: Scalar>(uplo: Uplo, n: i64, a: Matrix<S>, pivots: &[i64]) -> i64 {
    // SAFETY: the caller's word.
    let is_zero = |i: &i64| pivots[*i as usize] > 0 && unsafe { a.get(*i, *i) }.is_zero();
    let zero = if uplo == Uplo::Lower { (0..n).find(is_zero) } else { (0..n).rev().find(is_zero) };
    if let Some(zero) = zero {
        return zero + 1;
    }
    let mut inverse = Dense::identity(n, n);
    // SAFETY: as above, and a matrix of ours.
    unsafe {
        sytrs(Kind::Symmetric, uplo, n, n, a, pivots, inverse.matrix());
        inverse.write_triangle(uplo, a);
    }
    0
}
