//! Jacobi's method: eigenvalues of Hermitian matrices by rotations from both sides, singular values by rotations of columns.

use cublas_cpu::{Matrix, Op, Real as _, Scalar, Uplo, vectorized};
use num_traits::{Float as _, One as _, ToPrimitive as _, Zero as _};

use crate::dense::Dense;
use crate::eigen::{balance, scale, unscale};
use crate::field::Field;
use crate::reduction::whole_basis;

/// What a program may say of the iteration.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Not positive: the type's own.
    pub tolerance: f64,
    pub max_sweeps: i32,
    /// Ascending eigenvalues, descending singular values.
    pub sorted: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { tolerance: 0.0, max_sweeps: 100, sorted: true }
    }
}

/// What came of it: the norm of what is left beside the diagonal, and how many sweeps there were.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outcome {
    pub residual: f64,
    pub sweeps: i32,
    pub converged: bool,
}

fn tolerance<S: Scalar>(settings: Settings) -> S::Real {
    let own = S::Real::epsilon();
    own.max(S::Real::rounded(settings.tolerance))
}

/// Cosine, sine and phase of the rotation that makes two columns or rows orthogonal whose sizes (squares, or diagonal elements) and product
/// these are.
fn rotation<S: Scalar>(first: S::Real, second: S::Real, product: S) -> (S::Real, S) {
    let size = product.modulus();
    let zeta = (second - first) / (size + size);
    let one = S::Real::one();
    let tangent = one / (zeta.abs() + zeta.hypot(one));
    let tangent = if zeta < S::Real::zero() { -tangent } else { tangent };
    let cosine = one / tangent.hypot(one);
    (cosine, product.over_real(size).times_real(cosine * tangent))
}

vectorized! {
/// `(x, y) = (c·x - conj(s)·y, s·x + c·y)`, turned so that y keeps its phase.
fn rotate[S: Scalar](x: &mut [S], y: &mut [S], cosine: S::Real, sine: S) {
    let conjugate = sine.conj();
    for (x, y) in x.iter_mut().zip(y) {
        let (a, b) = (*x, *y);
        *x = a.times_real(cosine) - b * conjugate;
        *y = a * sine + b.times_real(cosine);
    }
}
}

/// Makes a row of a Hermitian matrix the conjugate of the column of its number.
fn mirror<S: Scalar>(a: &mut Dense<S>, number: i64) {
    let (n, number) = (a.rows as usize, number as usize);
    for i in 0..n {
        a.values[number + i * n] = a.values[i + number * n].conj();
    }
}

/// How many sums are added side by side, so that they are worked on as vectors.
const LANES: usize = 8;

fn total<R: num_traits::Zero + Copy>(lanes: [R; LANES]) -> R {
    lanes.into_iter().fold(R::zero(), |sum, lane| sum + lane)
}

vectorized! {
/// The sizes of two columns, squared and added, and their product.
fn products[S: Scalar](x: &[S], y: &[S]) -> (S::Real, S::Real, S) {
    let size = |v: S| v.real() * v.real() + v.imag() * v.imag();
    let (mut first, mut second) = ([S::Real::zero(); LANES], [S::Real::zero(); LANES]);
    let mut product = [S::zero(); LANES];
    let (x, x_rest) = x.as_chunks::<LANES>();
    let (y, y_rest) = y.as_chunks::<LANES>();
    for (x, y) in x.iter().zip(y) {
        for lane in 0..LANES {
            first[lane] += size(x[lane]);
            second[lane] += size(y[lane]);
            product[lane] += x[lane].conj() * y[lane];
        }
    }
    for (lane, (x, y)) in x_rest.iter().zip(y_rest).enumerate() {
        first[lane] += size(*x);
        second[lane] += size(*y);
        product[lane] += x.conj() * *y;
    }
    (total(first), total(second), total(product))
}
}

/// Sizes beside the diagonal, squared and added.
fn beside_diagonal<S: Scalar>(a: &Dense<S>) -> S::Real {
    let mut sum = S::Real::zero();
    for column in 0..a.columns {
        for (row, value) in (0..).zip(a.column(column)) {
            if row != column {
                sum = sum + value.real() * value.real() + value.imag() * value.imag();
            }
        }
    }
    sum
}

/// Eigenvalues of a Hermitian matrix and its eigenvectors.
pub(crate) fn hermitian<S: Field>(
    mut a: Dense<S>,
    vectors: bool,
    settings: Settings,
) -> (Vec<S::Real>, Option<Dense<S>>, Outcome) {
    let n = a.rows;
    let mut v = vectors.then(|| Dense::identity(n, n));
    let Some(factors) = balance(&a.values) else {
        let nan = S::Real::nan();
        let outcome = Outcome { residual: f64::NAN, sweeps: 0, converged: false };
        return (vec![nan; n as usize], v, outcome);
    };
    scale(&mut a.values, factors);
    let diagonal: S::Real =
        (0..n).fold(S::Real::zero(), |sum, i| sum + a.get(i, i).real() * a.get(i, i).real());
    let norm = (beside_diagonal(&a) + diagonal).sqrt();
    let limit = tolerance::<S>(settings) * norm;
    // A rotation for less changes nothing.
    let negligible = S::Real::epsilon() * S::Real::rounded(0.01) * norm / S::Real::rounded(n.max(1) as f64);
    let mut sweeps = 0;
    let mut left = beside_diagonal(&a).sqrt();
    while left > limit && sweeps < settings.max_sweeps {
        for p in 0..n {
            for q in p + 1..n {
                let product = a.get(p, q);
                if product.modulus() <= negligible {
                    continue;
                }
                let (cosine, sine) = rotation(a.get(p, p).real(), a.get(q, q).real(), product);
                let (x, y) = a.pair_mut(p, q);
                rotate(x, y, cosine, sine);
                let conjugate = sine.conj();
                // Rows change as columns do: what is beside the two is their conjugate.
                for column in [p, q] {
                    let column = a.column_mut(column);
                    let (x, y) = (column[p as usize], column[q as usize]);
                    column[p as usize] = x.times_real(cosine) - y * sine;
                    column[q as usize] = x * conjugate + y.times_real(cosine);
                }
                for (row, column) in [(p, q), (q, p)] {
                    a.set(row, column, S::zero());
                }
                for i in [p, q] {
                    a.set(i, i, S::from_real(a.get(i, i).real()));
                }
                mirror(&mut a, p);
                mirror(&mut a, q);
                if let Some(v) = &mut v {
                    let (x, y) = v.pair_mut(p, q);
                    rotate(x, y, cosine, sine);
                }
            }
        }
        sweeps += 1;
        left = beside_diagonal(&a).sqrt();
    }
    let mut w: Vec<S::Real> = (0..n).map(|i| a.get(i, i).real()).collect();
    unscale(&mut w, factors);
    let mut residual = [left];
    unscale(&mut residual, factors);
    if settings.sorted {
        let order = ordered(&w, |a, b| a < b);
        w = order.iter().map(|&i| w[i]).collect();
        v = v.map(|v| reordered(&v, &order));
    }
    let residual = residual[0].to_f64().unwrap_or(f64::NAN);
    (w, v, Outcome { residual, sweeps, converged: left <= limit })
}

fn ordered<R: PartialOrd>(values: &[R], before: impl Fn(&R, &R) -> bool) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| match (before(&values[a], &values[b]), before(&values[b], &values[a])) {
        (true, _) => std::cmp::Ordering::Less,
        (_, true) => std::cmp::Ordering::Greater,
        _ => std::cmp::Ordering::Equal,
    });
    order
}

fn reordered<S: Scalar>(of: &Dense<S>, order: &[usize]) -> Dense<S> {
    let values = order.iter().flat_map(|&column| of.column(column as i64).iter().copied()).collect();
    Dense { rows: of.rows, columns: order.len() as i64, values }
}

/// Eigenvalues to `w`; eigenvectors, where they are wanted, in A's place. Where it did not converge LAPACK's info is n + 1.
///
/// # Safety
/// The triangle is there, all of A where eigenvectors are wanted, and room for n eigenvalues.
pub unsafe fn syevj<S: Field>(
    vectors: bool,
    uplo: Uplo,
    n: i64,
    a: Matrix<S>,
    w: *mut S::Real,
    settings: Settings,
) -> Outcome {
    // SAFETY: the caller's word.
    unsafe {
        let (values, found, outcome) = hermitian(Dense::hermitian(uplo, n, a), vectors, settings);
        std::ptr::copy_nonoverlapping(values.as_ptr(), w, values.len());
        if let Some(found) = found {
            found.write(n, n, a);
        }
        outcome
    }
}

/// Generalised eigenvalues by [`syevj`]'s method; [`crate::eigen::sygvdx`] says what of which. The first answer is LAPACK's info.
///
/// # Safety
/// As [`crate::eigen::sygvdx`].
pub unsafe fn sygvj<S: Field>(
    kind: u32,
    vectors: bool,
    uplo: Uplo,
    n: i64,
    a: Matrix<S>,
    b: Matrix<S>,
    w: *mut S::Real,
    settings: Settings,
) -> (i64, Outcome) {
    let came = std::cell::Cell::new(Outcome::default());
    let solve = |c: Dense<S>, vectors: bool| {
        let (values, found, outcome) = hermitian(c, vectors, settings);
        came.set(outcome);
        (values, found, if outcome.converged { 0 } else { n + 1 })
    };
    // SAFETY: the caller's word.
    let (_, info) =
        unsafe { crate::eigen::sygvdx(kind, vectors, crate::eigen::Range::All, uplo, n, a, b, w, solve) };
    (info, came.get())
}

/// From so many columns on the sweeps begin with the vectors of [`crate::bidiagonal`], with which the columns are orthogonal but for rounding:
/// one or two sweeps then do what ten do otherwise.
const DIVIDED: i64 = 16;
/// So many are enough without that. Where fewer are allowed, what the program is told is what came of them alone.
const USUAL: i32 = 12;

/// Singular values of m by n with m at least n, U's first n columns and V.
fn tall<S: Field>(mut a: Dense<S>, settings: Settings) -> (Vec<S::Real>, Dense<S>, Dense<S>, Outcome) {
    let n = a.columns;
    let mut v = Dense::identity(n, n);
    let Some(factors) = balance(&a.values) else {
        let outcome = Outcome { residual: f64::NAN, sweeps: 0, converged: false };
        return (vec![S::Real::nan(); n as usize], a, v, outcome);
    };
    scale(&mut a.values, factors);
    if n >= DIVIDED && settings.max_sweeps >= USUAL {
        let (_, sides, converged) = crate::svd::singular(a.clone(), true, false);
        if let (Some((_, right)), true) = (sides, converged) {
            a = a.times(Op::N, &right, Op::N);
            v = right;
        }
    }
    let limit = tolerance::<S>(settings);
    let square =
        |v: &[S]| v.iter().fold(S::Real::zero(), |sum, v| sum + v.real() * v.real() + v.imag() * v.imag());
    // The rounding of a sum of so many terms: nobody can tell less from nothing.
    let floor = S::Real::epsilon() * S::Real::rounded(4.0 * (a.rows.max(1) as f64).sqrt());
    // Columns that are no longer are nothing but the rounding of others, which no rotation makes orthogonal to them.
    let noise =
        S::Real::epsilon() * a.values.iter().fold(S::Real::zero(), |sum, v| sum + square(&[*v])).sqrt();
    let (mut sweeps, mut rotated, mut left) = (0, n > 1, S::Real::zero());
    while rotated && sweeps < settings.max_sweeps {
        rotated = false;
        left = S::Real::zero();
        for p in 0..n {
            for q in p + 1..n {
                let (x, y) = a.pair_mut(p, q);
                let (first, second, product) = products(x, y);
                let size = product.modulus();
                left += size * size;
                let (first_size, second_size) = (first.sqrt(), second.sqrt());
                if size <= limit.max(floor) * first_size * second_size || first_size.min(second_size) <= noise
                {
                    continue;
                }
                rotated = true;
                let (cosine, sine) = rotation(first, second, product);
                rotate(x, y, cosine, sine);
                let (x, y) = v.pair_mut(p, q);
                rotate(x, y, cosine, sine);
            }
        }
        sweeps += 1;
    }
    let mut s: Vec<S::Real> = (0..n).map(|i| square(a.column(i)).sqrt()).collect();
    let order: Vec<usize> =
        if settings.sorted { ordered(&s, |a, b| a > b) } else { (0..n as usize).collect() };
    s = order.iter().map(|&i| s[i]).collect();
    let (mut u, v) = (reordered(&a, &order), reordered(&v, &order));
    // They are made anew, orthogonal to the others.
    let kept: Vec<usize> = (0..n as usize).filter(|&i| s[i] > noise).collect();
    for &i in &kept {
        let length = s[i];
        u.column_mut(i as i64).iter_mut().for_each(|u| *u = u.over_real(length));
    }
    if kept.len() < n as usize {
        let basis = whole_basis(reordered(&u, &kept));
        let made_anew = (0..n).filter(|i| !kept.contains(&(*i as usize)));
        for (next, i) in (kept.len() as i64..).zip(made_anew) {
            u.column_mut(i).copy_from_slice(basis.column(next));
        }
    }
    unscale(&mut s, factors);
    let mut residual = [left.sqrt()];
    unscale(&mut residual, factors);
    let residual = residual[0].to_f64().unwrap_or(f64::NAN);
    (s, u, v, Outcome { residual, sweeps, converged: !rotated })
}

/// Singular values to `s`; U and V (not its conjugate transpose), whole or as many columns as there are singular values. Where it did not
/// converge LAPACK's info is min(m, n) + 1.
///
/// # Safety
/// The matrices are there, and room for min(m, n) singular values.
pub unsafe fn gesvdj<S: Field>(
    thin: bool,
    m: i64,
    n: i64,
    a: Matrix<S>,
    s: *mut S::Real,
    vectors: Option<(Matrix<S>, Matrix<S>)>,
    settings: Settings,
) -> Outcome {
    // SAFETY: the caller's word.
    let a = unsafe { Dense::read(m, n, a) };
    let (values, left, right, outcome) = if m >= n {
        let (values, u, v, outcome) = tall(a, settings);
        (values, u, v, outcome)
    } else {
        let (values, v, u, outcome) = tall(a.conjugate_transposed(), settings);
        (values, u, v, outcome)
    };
    // SAFETY: the caller's word.
    unsafe {
        std::ptr::copy_nonoverlapping(values.as_ptr(), s, values.len());
        if let Some((to_u, to_v)) = vectors {
            for (found, to) in [(left, to_u), (right, to_v)] {
                let (rows, columns) = (found.rows, found.columns);
                found.write(rows, columns, to);
                if !thin && columns < rows && outcome.residual.is_finite() {
                    let rest = whole_basis(found);
                    (columns..rows).for_each(|i| to.column_mut(i, rows).copy_from_slice(rest.column(i)));
                }
            }
        }
    }
    outcome
}
