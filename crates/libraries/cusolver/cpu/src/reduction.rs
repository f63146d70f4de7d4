//! Reductions to two and three diagonals by reflections from both sides, and the matrices that do them.

use cublas_cpu::lapack::{larfg, reflect_columns};
use cublas_cpu::{Matrix, Op, Real as _, Scalar, Side, Uplo, gemm, level1, level2, vectorized};
use num_traits::Zero as _;

use crate::dense::Dense;
use crate::qr;
use crate::reflection::{Product, multiply, reflect_right};

/// Columns that are reduced before the rest of the matrix hears of them, and how large a rest hears of each at once.
const PANEL: i64 = 32;
const SMALL: i64 = 64;

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
    let mut first = 0;
    // SAFETY: the caller's word holds for every element.
    unsafe {
        while n - first > SMALL {
            let (rows, columns, at) = (m - first, n - first, first as isize);
            let mut panel = Panel {
                d: std::slice::from_raw_parts_mut(d.offset(at), PANEL as usize),
                e: std::slice::from_raw_parts_mut(e.offset(at), PANEL as usize),
                tauq: std::slice::from_raw_parts_mut(tauq.offset(at), PANEL as usize),
                taup: std::slice::from_raw_parts_mut(taup.offset(at), PANEL as usize),
                x: Dense::zeros(rows, PANEL),
                y: Dense::zeros(columns, PANEL),
                u: Dense::zeros(columns, PANEL),
            };
            panel.reduce(rows, columns, a.from(first, first));
            first += PANEL;
        }
        gebrd_small(m, n, first, a, d, e, tauq, taup);
    }
}

/// The first columns and rows of what is left of a matrix that becomes bidiagonal, and what the rest still has to lose: `V·Yᴴ + X·Uᴴ`, where
/// V's columns are the reflections from the left, in the matrix, and U's those from the right.
struct Panel<'a, S: Scalar> {
    d: &'a mut [S::Real],
    e: &'a mut [S::Real],
    tauq: &'a mut [S],
    taup: &'a mut [S],
    x: Dense<S>,
    y: Dense<S>,
    u: Dense<S>,
}

impl<S: Scalar> Panel<'_, S> {
    /// # Safety
    /// The matrix is there, m by n, with more columns than the panel.
    unsafe fn reduce(&mut self, m: i64, n: i64, a: Matrix<S>) {
        let width = self.x.columns;
        let (x, y, u) = (self.x.matrix(), self.y.matrix(), self.u.matrix());
        let (one, zero) = (S::one(), S::zero());
        let mut row = vec![zero; width as usize + 1];
        let mut along = row.clone();
        // SAFETY: the caller's word, and matrices of ours.
        unsafe {
            for i in 0..width {
                let (number, below, beside) = (i as usize, m - i - 1, n - i - 1);
                let conjugated = |of: Matrix<S>, count: i64, row: &mut [S]| {
                    (0..count).for_each(|k| row[k as usize] = of.get(i, k).conj());
                };
                // What the reflections before take from this column.
                for (of, other) in [(a, y), (x, u)] {
                    conjugated(other, i, &mut row);
                    times(Op::N, m - i, i, of.from(i, 0), row.as_ptr(), one, a.at(i, i));
                }
                let factor = larfg(m - i, a.at(i, i), a.at(i + 1, i), 1);
                (self.tauq[number], self.d[number]) = (factor, a.get(i, i).real());
                a.set(i, i, one);
                let (v, into) = (a.at(i, i), y.at(i + 1, i));
                times(Op::C, m - i, beside, a.from(i, i + 1), v, zero, into);
                for (of, other) in [(y, a), (u, x)] {
                    times(Op::C, m - i, i, other.from(i, 0), v, zero, along.as_mut_ptr());
                    times(Op::N, beside, i, of.from(i + 1, 0), along.as_ptr(), one, into);
                }
                y.from(i + 1, i).column_mut(0, beside).iter_mut().for_each(|value| *value *= factor);
                // And from this row.
                let right = u.from(i + 1, i).column_mut(0, beside);
                (i + 1..).zip(right.iter_mut()).for_each(|(column, to)| *to = a.get(i, column).conj());
                for (of, other, count) in [(y, a, i + 1), (u, x, i)] {
                    conjugated(other, count, &mut row);
                    times(Op::N, beside, count, of.from(i + 1, 0), row.as_ptr(), one, right.as_mut_ptr());
                }
                let factor = larfg(beside, right.as_mut_ptr(), right.as_mut_ptr().wrapping_add(1), 1);
                (self.taup[number], self.e[number]) = (factor, right[0].real());
                right[0] = one;
                let into = x.at(i + 1, i);
                times(Op::N, below, beside, a.from(i + 1, i + 1), right.as_ptr(), zero, into);
                for (of, other, count) in [(a, y, i + 1), (x, u, i)] {
                    times(
                        Op::C,
                        beside,
                        count,
                        other.from(i + 1, 0),
                        right.as_ptr(),
                        zero,
                        along.as_mut_ptr(),
                    );
                    times(Op::N, below, count, of.from(i + 1, 0), along.as_ptr(), one, into);
                }
                x.from(i + 1, i).column_mut(0, below).iter_mut().for_each(|value| *value *= factor);
                (i + 1..).zip(right.iter()).for_each(|(column, value)| a.set(i, column, value.conj()));
            }
            let (rows, columns) = (m - width, n - width);
            // A - V·Yᴴ - X·Uᴴ is one product of two matrices twice as wide.
            let left = beside(rows, width, a.from(width, 0), x.from(width, 0));
            let right = beside(columns, width, y.from(width, 0), u.from(width, 0));
            let (left, right, into) = (left.values.as_ptr(), right.values.as_ptr(), a.at(width, width));
            gemm(Op::N, Op::C, rows, columns, 2 * width, -one, left, rows, right, columns, one, into, a.ld());
            for i in 0..width {
                a.set(i, i, S::from_real(self.d[i as usize]));
                a.set(i, i + 1, S::from_real(self.e[i as usize]));
            }
        }
    }
}

/// `y = op(A)·x` where `beta` is 0, and `y - op(A)·x` where it is 1, of neighbours in memory.
///
/// # Safety
/// A is there, with so many rows and columns, and the vectors.
unsafe fn times<S: Scalar>(op: Op, rows: i64, columns: i64, a: Matrix<S>, x: *const S, beta: S, y: *mut S) {
    let alpha = if beta.is_zero() { S::one() } else { -S::one() };
    // SAFETY: the caller's word.
    unsafe { level2::gemv::<S, S, S, S>(op, rows, columns, alpha, a.start(), a.ld(), x, 1, beta, y, 1) };
}

/// Two matrices as one.
///
/// # Safety
/// They are there, and have so many rows and columns each.
unsafe fn beside<S: Scalar>(rows: i64, columns: i64, one: Matrix<S>, other: Matrix<S>) -> Dense<S> {
    // SAFETY: the caller's word.
    unsafe {
        let mut both = Dense::read(rows, columns, one);
        both.values.extend(Dense::read(rows, columns, other).values);
        both.columns = 2 * columns;
        both
    }
}

/// [`gebrd`] from a column on, column by column and row by row.
///
/// # Safety
/// As there.
unsafe fn gebrd_small<S: Scalar>(
    m: i64,
    n: i64,
    first: i64,
    a: Matrix<S>,
    d: *mut S::Real,
    e: *mut S::Real,
    tauq: *mut S,
    taup: *mut S,
) {
    let mut u = vec![S::zero(); (n - first).max(0) as usize];
    let mut along = vec![S::zero(); (m - first).max(0) as usize];
    for i in first..n {
        let at = i as isize;
        // SAFETY: the caller's word holds for every element.
        unsafe {
            let factor = larfg(m - i, a.at(i, i), a.at(i + 1, i), 1);
            *tauq.offset(at) = factor;
            *d.offset(at) = a.get(i, i).real();
            let kept = a.get(i, i);
            a.set(i, i, S::one());
            reflect_columns(a.from(i, i).column(0, m - i), factor.conj(), n - i - 1, a.from(i, i + 1));
            a.set(i, i, kept);
            if i + 1 == n {
                *taup.offset(at) = S::zero();
                continue;
            }
            let u = &mut u[..(n - i - 1) as usize];
            (i + 1..).zip(u.iter_mut()).for_each(|(column, to)| *to = a.get(i, column).conj());
            let factor = larfg(n - i - 1, u.as_mut_ptr(), u.as_mut_ptr().wrapping_add(1), 1);
            *taup.offset(at) = factor;
            *e.offset(at) = u[0].real();
            (i + 1..).zip(u.iter()).for_each(|(column, value)| a.set(i, column, value.conj()));
            u[0] = S::one();
            reflect_right(u, factor, &mut along[..(m - i - 1) as usize], a.from(i + 1, i + 1));
        }
    }
}

/// `Q·C` in C's place, with so many columns, of Q that [`gebrd`] left in a matrix, whose rows are C's first ones.
///
/// # Safety
/// C is there.
pub(crate) unsafe fn turn_left<S: Scalar>(reduced: &mut Dense<S>, tauq: &[S], columns: i64, c: Matrix<S>) {
    let (rows, matrix) = (reduced.rows, reduced.matrix());
    let vector = |i: i64, into: &mut [S]| {
        into[i as usize] = S::one();
        // SAFETY: a part of the matrix.
        into[i as usize + 1..].copy_from_slice(unsafe { matrix.from(i + 1, i).column(0, rows - i - 1) });
        i
    };
    // SAFETY: the caller's word.
    unsafe { turn(rows, tauq, vector, columns, c) };
}

/// `P·C` in C's place, with so many columns, of P that [`gebrd`] left in a matrix with as many columns as C has rows.
///
/// # Safety
/// C is there.
pub(crate) unsafe fn turn_right<S: Scalar>(reduced: &mut Dense<S>, taup: &[S], columns: i64, c: Matrix<S>) {
    let (n, matrix) = (reduced.columns, reduced.matrix());
    let vector = |i: i64, into: &mut [S]| {
        into[i as usize + 1] = S::one();
        // SAFETY: elements of the matrix.
        (i + 2..n).for_each(|at| into[at as usize] = unsafe { matrix.get(i, at).conj() });
        i + 1
    };
    // SAFETY: the caller's word.
    unsafe { turn(n, &taup[..(n - 1).max(0) as usize], vector, columns, c) };
}

/// `H·C` in C's place of the product H of reflections, whose vectors `vector` gives as [`Product::new`] wants them.
///
/// # Safety
/// C is there, as many columns and at least `rows` rows.
unsafe fn turn<S: Scalar>(
    rows: i64,
    tau: &[S],
    vector: impl Fn(i64, &mut [S]) -> i64,
    columns: i64,
    c: Matrix<S>,
) {
    if rows > SMALL {
        // SAFETY: the caller's word.
        unsafe { Product::new(rows, tau, vector).apply(Side::Left, Op::N, rows, columns, c) };
        return;
    }
    let mut v = vec![S::zero(); rows.max(0) as usize];
    for (i, &factor) in tau.iter().enumerate().rev() {
        v.fill(S::zero());
        let from = vector(i as i64, &mut v);
        // SAFETY: as above.
        unsafe { reflect_columns(&v[from as usize..], factor, columns, c.from(from, 0)) };
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
    // An upper triangle is the lower one of the same matrix from its end to its start, and so is what becomes of it.
    let place = |at: i64, of: i64| (if uplo == Uplo::Lower { at } else { of - 1 - at }) as isize;
    // SAFETY: the caller's word.
    unsafe {
        let mut full = Dense::hermitian(uplo, n, a);
        if uplo == Uplo::Upper {
            full.values.reverse();
        }
        let made = tridiagonalize(&mut full);
        if uplo == Uplo::Upper {
            full.values.reverse();
        }
        (0..).zip(made.d).for_each(|(i, value)| *d.offset(place(i, n)) = value);
        (0..).zip(made.e).for_each(|(i, value)| *e.offset(place(i, n - 1)) = value);
        (0..).zip(made.tau).for_each(|(i, value)| *tau.offset(place(i, n - 1)) = value);
        full.write_triangle(uplo, a);
    }
}

/// Three diagonals, of which two are the same, and the factors of the reflections that made them.
pub(crate) struct Diagonals<S: Scalar> {
    pub d: Vec<S::Real>,
    pub e: Vec<S::Real>,
    pub tau: Vec<S>,
}

/// [`sytrd`] of a lower triangle. What stands above it is lost.
pub(crate) fn tridiagonalize<S: Scalar>(a: &mut Dense<S>) -> Diagonals<S> {
    let n = a.rows;
    let (neighbours, matrix) = ((n - 1).max(0) as usize, a.matrix());
    let mut made = Diagonals {
        d: vec![S::Real::zero(); n.max(0) as usize],
        e: vec![S::Real::zero(); neighbours],
        tau: vec![S::zero(); neighbours],
    };
    let mut first = 0;
    while n - first > SMALL {
        let width = PANEL;
        let mut w = Dense::zeros(n - first, width);
        // SAFETY: a square matrix of ours.
        unsafe {
            tridiagonalize_panel(matrix.from(first, first), &mut w, &mut made, first as usize);
            let (next, rest) = (first + width, n - first - width);
            // A - V·Wᴴ - W·Vᴴ is one product of two matrices twice as wide.
            let v = matrix.from(next, first);
            let w = w.matrix().from(width, 0);
            let (p, q) = (beside(rest, width, v, w), beside(rest, width, w, v));
            update_triangle(&p, &q, matrix.from(next, next));
            first = next;
        }
    }
    let start = first as usize;
    let last =
        (&mut made.d[start..], &mut made.e[start.min(neighbours)..], &mut made.tau[start.min(neighbours)..]);
    // SAFETY: what is left of a square matrix of ours.
    unsafe { tridiagonalize_small(n - first, matrix.from(first, first), last) };
    for (i, value) in (0..).zip(&made.e) {
        a.set(i + 1, i, S::from_real(*value));
    }
    made
}

/// [`tridiagonalize`] of n rows and columns, column by column.
///
/// # Safety
/// The matrix is there, and room for n, n - 1 and n - 1 numbers.
unsafe fn tridiagonalize_small<S: Scalar>(
    n: i64,
    a: Matrix<S>,
    (d, e, tau): (&mut [S::Real], &mut [S::Real], &mut [S]),
) {
    let mut w = vec![S::zero(); n as usize];
    // SAFETY: the caller's word.
    unsafe {
        for column in 0..n {
            for row in column + 1..n {
                a.set(column, row, a.get(row, column).conj());
            }
        }
        for i in 0..n {
            let (number, below) = (i as usize, n - i - 1);
            d[number] = a.get(i, i).real();
            if below == 0 {
                return;
            }
            let factor = larfg(below, a.at(i + 1, i), a.at(i + 2, i), 1);
            (tau[number], e[number]) = (factor, a.get(i + 1, i).real());
            a.set(i + 1, i, S::one());
            if !factor.is_zero() {
                let v = a.from(i + 1, i).column(0, below);
                reflect_both(v, factor, &mut w[..below as usize], a.from(i + 1, i + 1));
            }
        }
    }
}

vectorized! {
    /// `H·A·Hᴴ` in A's place for `H = I - tau·v·vᴴ` and a Hermitian A with as many rows and columns as v has elements: A is there, nothing of
    /// it is v's, and `w` is as long as v.
    fn reflect_both[S: Scalar](v: &[S], tau: S, w: &mut [S], a: Matrix<S>) {
        let n = v.len();
        assert!(w.len() == n, "w is as long as v");
        let column = |at: usize| a.at(0, at as i64);
        // SAFETY: rows and columns are below n.
        unsafe {
            multiply(a, v, w);
            let mut along = S::zero();
            for row in 0..n {
                along += w.get_unchecked(row).conj() * *v.get_unchecked(row);
            }
            let by = (tau * tau.conj() * along).times_real(S::Real::rounded(0.5));
            for row in 0..n {
                *w.get_unchecked_mut(row) = tau * *w.get_unchecked(row) - by * *v.get_unchecked(row);
            }
            for at in 0..n {
                let (left, right, into) = (w[at].conj(), v[at].conj(), column(at));
                for row in 0..n {
                    *into.add(row) -= *v.get_unchecked(row) * left + *w.get_unchecked(row) * right;
                }
            }
        }
    }
}

/// `C - P·Qᴴ` in C's place, of its lower triangle and what stands beside that in blocks on the diagonal.
///
/// # Safety
/// C is there, as many rows and columns as P and Q have rows.
unsafe fn update_triangle<S: Scalar>(p: &Dense<S>, q: &Dense<S>, c: Matrix<S>) {
    const BLOCK: i64 = 128;
    let (n, k) = (p.rows, p.columns);
    for start in (0..n).step_by(BLOCK as usize) {
        let (rows, columns) = (n - start, BLOCK.min(n - start));
        let at = |of: &Dense<S>| of.values[start as usize..].as_ptr();
        let into = c.from(start, start);
        // SAFETY: the caller's word.
        unsafe {
            gemm(
                Op::N,
                Op::C,
                rows,
                columns,
                k,
                -S::one(),
                at(p),
                n,
                at(q),
                n,
                S::one(),
                into.start(),
                c.ld(),
            );
        }
    }
}

/// The first columns, as many as `w` has, of what is left of a matrix: their reflections below the diagonal's neighbours, whose places have
/// ones, and in `w` what the rest still has to lose: `V·Wᴴ + W·Vᴴ`.
///
/// # Safety
/// The matrix is there, as many rows and columns as `w` has rows.
unsafe fn tridiagonalize_panel<S: Scalar>(
    a: Matrix<S>,
    w: &mut Dense<S>,
    made: &mut Diagonals<S>,
    first: usize,
) {
    let (n, ld) = (w.rows, a.ld());
    let (one, zero) = (S::one(), S::zero());
    let w_at = w.matrix();
    let mut row = vec![S::zero(); w.columns as usize];
    let mut along = row.clone();
    for i in 0..w.columns {
        let (number, below) = (first + i as usize, n - i - 1);
        // SAFETY: the caller's word; W is another matrix.
        unsafe {
            // What the columns before take from this one.
            for (of, other) in [(a, w_at), (w_at, a)] {
                (0..i).for_each(|k| row[k as usize] = other.get(i, k).conj());
                let (of, into) = (of.from(i, 0), a.at(i, i));
                times(Op::N, n - i, i, of, row.as_ptr(), one, into);
            }
            made.d[number] = a.get(i, i).real();
            let factor = larfg(below, a.at(i + 1, i), a.at(i + 2, i), 1);
            made.tau[number] = factor;
            made.e[number] = a.get(i + 1, i).real();
            a.set(i + 1, i, one);
            let (v, into) = (a.at(i + 1, i), w_at.at(i + 1, i));
            level2::hemv(Uplo::Lower, below, one, a.at(i + 1, i + 1), ld, v, 1, zero, into, 1);
            for (of, other) in [(a, w_at), (w_at, a)] {
                let (of, other) = (of.from(i + 1, 0), other.from(i + 1, 0));
                times(Op::C, below, i, other, v, zero, along.as_mut_ptr());
                times(Op::N, below, i, of, along.as_ptr(), one, into);
            }
            let v = a.from(i + 1, i).column(0, below);
            let into = w_at.from(i + 1, i).column_mut(0, below);
            into.iter_mut().for_each(|value| *value *= factor);
            let common = level1::dotc::<S, S, S>(below, into.as_ptr(), 1, v.as_ptr(), 1);
            let by = (factor * common).times_real(S::Real::rounded(0.5));
            into.iter_mut().zip(v).for_each(|(value, v)| *value -= by * *v);
        }
    }
}

/// The product of [`sytrd`]'s reflections.
///
/// # Safety
/// The triangle is there, and n - 1 values of `tau`.
unsafe fn product<S: Scalar>(uplo: Uplo, n: i64, a: Matrix<S>, tau: *const S) -> Product<S> {
    let count = (n - 1).max(0);
    // SAFETY: the caller's word.
    let tau = unsafe {
        std::slice::from_raw_parts(if count > 0 { tau } else { std::ptr::dangling() }, count as usize)
    };
    match uplo {
        Uplo::Lower => Product::new(n, tau, |i, into| lower_vector(a, n, i, into)),
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

/// `Q·C` in C's place, with so many columns, of Q that [`tridiagonalize`] left in a matrix.
///
/// # Safety
/// C is there, with as many rows as the matrix.
pub(crate) unsafe fn turn_back<S: Scalar>(reduced: &mut Dense<S>, tau: &[S], columns: i64, c: Matrix<S>) {
    let (n, matrix) = (reduced.rows, reduced.matrix());
    // SAFETY: the caller's word, and a matrix of ours.
    unsafe { turn(n, tau, |i, into| lower_vector(matrix, n, i, into), columns, c) };
}

/// A reflection of the lower triangle, in full; where it begins.
fn lower_vector<S: Scalar>(a: Matrix<S>, n: i64, i: i64, into: &mut [S]) -> i64 {
    into[i as usize + 1] = S::one();
    // SAFETY: the matrix is there, as who asks for its reflections says.
    into[i as usize + 2..].copy_from_slice(unsafe { a.from(i + 2, i).column(0, n - i - 2) });
    i + 1
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
