//! Reductions to two and three diagonals by reflections from both sides, and the matrices that do them.

use cublas_cpu::lapack::reflect_columns;
use cublas_cpu::{Matrix, Op, Real as _, Scalar, Side, Uplo};

use crate::dense::Dense;
use crate::qr;
use crate::reflection::{Product, larfg, reflect_right};

/// `A = Q·B·Pᴴ` for m by n with m at least n: B's diagonal in `d`, the one above it in `e`; Q's reflections below the diagonal and in `tauq`,
/// P's beyond the diagonal above and in `taup`, conjugated.
///
/// # Safety
/// The matrix is there, and room for n, n - 1, n and n numbers.
pub unsafe fn gebrd<S: Scalar>(
    m: i64,
    n: i64,
    a: Matrix<S>,
    d: *mut S::Real,
    e: *mut S::Real,
    tauq: *mut S,
    taup: *mut S,
) {
    for i in 0..n {
        let at = i as isize;
        // SAFETY: the caller's word holds for every element.
        unsafe {
            let factor = larfg(m - i, a.at(i, i), a.at(i + 1, i), 1);
            *tauq.offset(at) = factor;
            *d.offset(at) = a.get(i, i).real();
            let mut v = a.from(i, i).column(0, m - i).to_vec();
            v[0] = S::one();
            reflect_columns(&v, factor.conj(), n - i - 1, a.from(i, i + 1));
            if i + 1 == n {
                *taup.offset(at) = S::zero();
                continue;
            }
            let conjugate =
                |from: i64| (from..n).for_each(|column| a.set(i, column, a.get(i, column).conj()));
            conjugate(i + 1);
            let factor = larfg(n - i - 1, a.at(i, i + 1), a.at(i, i + 2), a.ld());
            *taup.offset(at) = factor;
            *e.offset(at) = a.get(i, i + 1).real();
            let mut u: Vec<S> = (i + 1..n).map(|column| a.get(i, column)).collect();
            u[0] = S::one();
            reflect_right(&u, factor, m - i - 1, a.from(i + 1, i + 1));
            conjugate(i + 2);
        }
    }
}

/// Q of [`gebrd`]'s m by k (its first n columns), or the first m rows of Pᴴ of its k by n, in A's place.
///
/// # Safety
/// The matrix is there, and as many values of `tau` as there are reflections.
pub unsafe fn orgbr<S: Scalar>(of_q: bool, m: i64, n: i64, k: i64, a: Matrix<S>, tau: *const S) {
    let size = if of_q { m } else { n };
    // A square or wide one has a reflection less, which begins one row or column further.
    let shift = i64::from(if of_q { m < k } else { k >= n });
    let count = if shift == 0 { k.min(size) } else { (size - 1).max(0) };
    // SAFETY: the caller's word.
    unsafe {
        let tau =
            std::slice::from_raw_parts(if count > 0 { tau } else { std::ptr::dangling() }, count as usize);
        let product = Product::new(size, tau, |i, into| {
            let first = i + shift;
            into[first as usize] = S::one();
            for at in first + 1..size {
                into[at as usize] = if of_q { a.get(at, i) } else { a.get(i, at).conj() };
            }
            first
        });
        match of_q {
            true => product.columns(m, n).write(m, n, a),
            false => product.columns(n, m).conjugate_transposed().write(m, n, a),
        }
    }
}

/// `A = Q·T·Qᴴ`: T's diagonal in `d`, the one beside it in `e`; Q's reflections beyond them in the stored triangle, and in `tau`.
///
/// # Safety
/// The triangle is there, and room for n, n - 1 and n - 1 numbers.
pub unsafe fn sytrd<S: Scalar>(
    uplo: Uplo,
    n: i64,
    a: Matrix<S>,
    d: *mut S::Real,
    e: *mut S::Real,
    tau: *mut S,
) {
    // SAFETY: the caller's word.
    let mut full = unsafe { Dense::hermitian(uplo, n, a) };
    let half = S::Real::rounded(0.5);
    for step in 0..(n - 1).max(0) {
        // The column that is reduced, the rows that its reflection changes, and which of them keeps a value.
        let (column, rows, kept) = match uplo {
            Uplo::Lower => (step, step + 1..n, step + 1),
            Uplo::Upper => (n - 1 - step, 0..n - 1 - step, n - 2 - step),
        };
        let number = column.min(kept);
        let others = if uplo == Uplo::Lower { kept + 1 } else { 0 };
        let matrix = full.matrix();
        // SAFETY: elements of a matrix of ours, and the caller's word.
        let factor = unsafe {
            let factor = larfg(rows.end - rows.start, matrix.at(kept, column), matrix.at(others, column), 1);
            *e.offset(number as isize) = matrix.get(kept, column).real();
            *tau.offset(number as isize) = factor;
            factor
        };
        if factor.is_zero() {
            continue;
        }
        let range = rows.start as usize..rows.end as usize;
        let mut v = full.column(column)[range.clone()].to_vec();
        v[(kept - rows.start) as usize] = S::one();
        let mut w = vec![S::zero(); v.len()];
        for (column, v) in rows.clone().zip(&v) {
            let by = factor * *v;
            w.iter_mut().zip(&full.column(column)[range.clone()]).for_each(|(w, a)| *w += by * *a);
        }
        let along = w.iter().zip(&v).fold(S::zero(), |sum, (w, v)| sum + w.conj() * *v);
        let by = (factor * along).times_real(half);
        w.iter_mut().zip(&v).for_each(|(w, v)| *w -= by * *v);
        for (at, column) in rows.clone().enumerate() {
            let (left, right) = (w[at].conj(), v[at].conj());
            let into = &mut full.column_mut(column)[range.clone()];
            into.iter_mut().zip(v.iter().zip(&w)).for_each(|(a, (v, w))| *a -= *v * left + *w * right);
            into[at] = S::from_real(into[at].real());
        }
    }
    // SAFETY: the caller's word.
    unsafe {
        (0..n).for_each(|i| *d.offset(i as isize) = full.get(i, i).real());
        full.write_triangle(uplo, a);
    }
}

/// The product of [`sytrd`]'s reflections.
unsafe fn product<S: Scalar>(uplo: Uplo, n: i64, a: Matrix<S>, tau: *const S) -> Product<S> {
    let count = (n - 1).max(0);
    // SAFETY: the caller's word.
    let tau = unsafe {
        std::slice::from_raw_parts(if count > 0 { tau } else { std::ptr::dangling() }, count as usize)
    };
    match uplo {
        Uplo::Lower => Product::new(n, tau, |i, into| {
            into[i as usize + 1] = S::one();
            // SAFETY: as above.
            into[i as usize + 2..].copy_from_slice(unsafe { a.from(i + 2, i).column(0, n - i - 2) });
            i + 1
        }),
        // The last one comes first.
        Uplo::Upper => {
            let tau: Vec<S> = tau.iter().rev().copied().collect();
            Product::new(n, &tau, |i, into| {
                let kept = n - 2 - i;
                into[kept as usize] = S::one();
                // SAFETY: as above.
                into[..kept as usize].copy_from_slice(unsafe { a.column(kept + 1, kept) });
                0
            })
        }
    }
}

/// Q of [`sytrd`] in A's place, n by n.
///
/// # Safety
/// The matrix is there, and n - 1 values of `tau`.
pub unsafe fn orgtr<S: Scalar>(uplo: Uplo, n: i64, a: Matrix<S>, tau: *const S) {
    // SAFETY: the caller's word.
    unsafe { product(uplo, n, a, tau).columns(n, n).write(n, n, a) };
}

/// `op(Q)·C` or `C·op(Q)` in C's place, m by n, with Q of [`sytrd`].
///
/// # Safety
/// The matrices are there, and `tau`.
pub unsafe fn ormtr<S: Scalar>(
    side: Side,
    uplo: Uplo,
    op: Op,
    m: i64,
    n: i64,
    a: Matrix<S>,
    tau: *const S,
    c: Matrix<S>,
) {
    let size = if side == Side::Left { m } else { n };
    // SAFETY: the caller's word.
    unsafe { product(uplo, size, a, tau).apply(side, op, m, n, c) };
}

/// All of Q, for bases that are to be made whole: the first `count` columns of A are spanned by its first ones.
pub(crate) fn whole_basis<S: Scalar>(mut a: Dense<S>) -> Dense<S> {
    let (m, n) = (a.rows, a.columns);
    let mut tau = vec![S::zero(); m.min(n).max(0) as usize];
    let matrix = a.matrix();
    // SAFETY: a matrix of ours, and as many factors.
    unsafe {
        qr::geqrf(m, n, matrix, tau.as_mut_ptr());
        qr::product(m, tau.len() as i64, matrix, tau.as_ptr()).columns(m, m)
    }
}
