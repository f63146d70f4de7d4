//! `A = Q·R`, Q itself, and products with it.

use cublas_cpu::lapack::factor_reflections;
use cublas_cpu::{Matrix, Op, Scalar, Side};

use crate::reflection::{BLOCK, Product};

/// m by n: R in the upper triangle, below it and in `tau` the reflections whose product Q is.
///
/// # Safety
/// The matrix is there, and room for min(m, n) values of `tau`.
pub unsafe fn geqrf<S: Scalar>(m: i64, n: i64, a: Matrix<S>, tau: *mut S) {
    let size = m.min(n).max(0);
    for start in (0..size).step_by(BLOCK as usize) {
        let width = BLOCK.min(size - start);
        let panel = a.from(start, start);
        // SAFETY: the caller's word holds for every part.
        unsafe {
            let factors = tau.offset(start as isize);
            factor_reflections(m - start, width, panel, factors);
            let rest = n - start - width;
            if rest > 0 {
                let block = product(m - start, width, panel, factors);
                block.apply(Side::Left, Op::C, m - start, rest, a.from(start, start + width));
            }
        }
    }
}

/// The product of the first `count` reflections that stand below A's diagonal, A with m rows.
///
/// # Safety
/// They are there.
pub(crate) unsafe fn product<S: Scalar>(m: i64, count: i64, a: Matrix<S>, tau: *const S) -> Product<S> {
    // SAFETY: the caller's word.
    let tau = if count > 0 { unsafe { std::slice::from_raw_parts(tau, count as usize) } } else { &[] };
    Product::new(m, tau, |i, into| {
        // SAFETY: as above.
        into[i as usize + 1..].copy_from_slice(unsafe { a.from(i + 1, i).column(0, m - i - 1) });
        into[i as usize] = S::one();
        i
    })
}

/// The first n columns of the product of k reflections, in their place, m by n.
///
/// # Safety
/// The matrix is there, and k values of `tau`.
pub unsafe fn orgqr<S: Scalar>(m: i64, n: i64, k: i64, a: Matrix<S>, tau: *const S) {
    // SAFETY: the caller's word.
    unsafe { product(m, k, a, tau).columns(m, n).write(m, n, a) };
}

/// `op(Q)·C` or `C·op(Q)` in C's place, m by n; Q is a product of k reflections.
///
/// # Safety
/// The matrices are there, and k values of `tau`.
pub unsafe fn ormqr<S: Scalar>(
    side: Side,
    op: Op,
    m: i64,
    n: i64,
    k: i64,
    a: Matrix<S>,
    tau: *const S,
    c: Matrix<S>,
) {
    let size = if side == Side::Left { m } else { n };
    // SAFETY: the caller's word.
    unsafe { product(size, k, a, tau).apply(side, op, m, n, c) };
}

/// The triangle T of which the product of `k` reflections of n elements is `I - V·T·Vᴴ`. It is an upper one of a product that begins with the
/// first (`forward`, where V's column i begins with a one in row i that is not stored), a lower one of a product that begins with the last
/// (where it ends with a one in row `n - k + i`).
///
/// # Safety
/// V is there, n by k, k values of `tau`, and T's triangle.
pub unsafe fn larft<S: Scalar>(forward: bool, n: i64, k: i64, v: Matrix<S>, tau: *const S, t: Matrix<S>) {
    // SAFETY: the caller's word.
    let column = |i: i64| unsafe { v.column(i, n) };
    let one = |i: i64| if forward { i } else { n - k + i } as usize;
    // What another reflection's vector and this one's have in common.
    let along = |i: i64, j: i64| {
        let (x, y) = (column(i), column(j));
        // Beyond its one a vector is nothing; here j is beyond i.
        let (first, rest) = if forward { (one(j), one(j) + 1..n as usize) } else { (one(j), 0..one(j)) };
        rest.fold(x[first].conj(), |sum, row| sum + x[row].conj() * y[row])
    };
    let order: Vec<i64> = if forward { (0..k).collect() } else { (0..k).rev().collect() };
    for (step, &i) in order.iter().enumerate() {
        // SAFETY: the caller's word.
        let factor = unsafe { *tau.offset(i as isize) };
        let before = &order[..step];
        let products: Vec<S> = before.iter().map(|&j| -factor * along(j, i)).collect();
        for (place, &row) in before.iter().enumerate() {
            // T's part that is there already, times these products.
            let sum =
                before[place..].iter().zip(&products[place..]).fold(S::zero(), |sum, (&of, product)| {
                    // SAFETY: as above.
                    sum + unsafe { t.get(row, of) } * *product
                });
            // SAFETY: as above.
            unsafe { t.set(row, i, sum) };
        }
        // SAFETY: as above.
        unsafe { t.set(i, i, factor) };
    }
}
