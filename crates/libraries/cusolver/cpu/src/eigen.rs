//! Eigenvalues and eigenvectors: Hermitian, generalised and of any matrix.

use cublas_cpu::{Diag, Matrix, Op, Real, Scalar, Side, Uplo, level3};
use num_traits::{Float as _, One as _, Zero as _};

use crate::cholesky;
use crate::dense::Dense;
use crate::field::Field;

/// Which eigenvalues of all are wanted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Range {
    All,
    /// From and to, counted from 1, both included.
    Numbers(i64, i64),
    /// From and to, the second one included.
    Values(f64, f64),
}

/// Powers of two by which the largest element's size becomes about 1, in two steps, so that neither overflows; none where an element is no
/// finite number.
pub(crate) fn balance<S: Scalar>(values: &[S]) -> Option<[S::Real; 2]> {
    let one = S::Real::one();
    let mut largest = S::Real::zero();
    for value in values {
        let size = value.real().abs().max(value.imag().abs());
        if !(value.real().is_finite() && value.imag().is_finite()) {
            return None;
        }
        largest = largest.max(size);
    }
    if largest.is_zero() {
        return Some([one; 2]);
    }
    let exponent = -num_traits::ToPrimitive::to_f64(&largest.log2().floor()).unwrap_or(0.0) as i32;
    let two = one + one;
    Some([two.powi(exponent / 2), two.powi(exponent - exponent / 2)])
}

pub(crate) fn scale<S: Scalar>(values: &mut [S], [first, second]: [S::Real; 2]) {
    if !(first.is_one() && second.is_one()) {
        values.iter_mut().for_each(|value| *value = value.times_real(first).times_real(second));
    }
}

pub(crate) fn unscale<R: Real>(values: &mut [R], [first, second]: [R; 2]) {
    values.iter_mut().for_each(|value| *value = *value / second / first);
}

/// Eigenvalues of a Hermitian matrix, ascending, and its eigenvectors; how many did not converge.
pub(crate) fn hermitian<S: Field>(mut a: Dense<S>, vectors: bool) -> (Vec<S::Real>, Option<Dense<S>>, i64) {
    let n = a.rows;
    let mut w = vec![S::Real::zero(); n.max(0) as usize];
    if n <= 0 {
        return (w, vectors.then(|| Dense::zeros(0, 0)), 0);
    }
    let mut found = vectors.then(|| Dense::zeros(n, n));
    let Some(factors) = balance(&a.values) else {
        w.fill(S::Real::nan());
        found.iter_mut().for_each(|found| found.values.fill(S::from_real(S::Real::nan())));
        return (w, found, n);
    };
    scale(&mut a.values, factors);
    let converged =
        S::hermitian(n as usize, &a.values, &mut w, found.as_mut().map(|found| &mut found.values[..]));
    unscale(&mut w, factors);
    (w, found, if converged { 0 } else { n })
}

/// Which eigenvectors of a tridiagonal matrix are wanted, and where they go.
#[derive(Clone, Copy)]
pub enum Tridiagonal<S> {
    None,
    /// The matrix's own.
    Own(Matrix<S>),
    /// Multiplied from the left by the matrix that is there, by which a Hermitian one became tridiagonal.
    Of(Matrix<S>),
}

/// Eigenvalues of a real symmetric tridiagonal matrix, ascending, in the diagonal's place. The answer is 0, or how many did not converge, and
/// then nothing is written.
///
/// # Safety
/// The n elements of the diagonal and the n - 1 beside it are there, and n by n for eigenvectors.
pub unsafe fn stedc<R: Field + Real, S: Scalar<Real = R>>(
    n: i64,
    d: *mut R,
    e: *const R,
    vectors: Tridiagonal<S>,
) -> i64 {
    let size = n.max(0) as usize;
    if size == 0 {
        return 0;
    }
    // SAFETY: the caller's word.
    unsafe {
        let mut both = std::slice::from_raw_parts(d, size).to_vec();
        (0..size - 1).for_each(|i| both.push(*e.add(i)));
        let Some(factors) = balance(&both) else { return n };
        scale(&mut both, factors);
        let (diagonal, beside) = both.split_at(size);
        let mut w = vec![R::zero(); size];
        let mut found = (!matches!(vectors, Tridiagonal::None)).then(|| Dense::<R>::zeros(n, n));
        if !R::tridiagonal(diagonal, beside, &mut w, found.as_mut().map(|found| &mut found.values[..])) {
            return n;
        }
        unscale(&mut w, factors);
        std::ptr::copy_nonoverlapping(w.as_ptr(), d, size);
        let found = found.map(|found| Dense {
            rows: n,
            columns: n,
            values: found.values.iter().map(|value| S::from_real(*value)).collect(),
        });
        match (vectors, found) {
            (Tridiagonal::Own(to), Some(found)) => found.write(n, n, to),
            (Tridiagonal::Of(z), Some(found)) => {
                Dense::read(n, n, z).times(Op::N, &found, Op::N).write(n, n, z);
            }
            _ => {}
        }
    }
    0
}

/// The wanted ones of ascending eigenvalues: the first, and how many.
fn chosen<R: Real>(w: &[R], range: Range) -> (usize, usize) {
    let value = |at: &R| num_traits::ToPrimitive::to_f64(at).unwrap_or(f64::NAN);
    match range {
        Range::All => (0, w.len()),
        Range::Numbers(from, to) => ((from - 1) as usize, (to - from + 1).max(0) as usize),
        Range::Values(from, to) => {
            let first = w.iter().take_while(|at| value(at) <= from).count();
            (first, w[first..].iter().take_while(|at| value(at) <= to).count())
        }
    }
}

/// Eigenvalues, ascending, to `w`; eigenvectors, where they are wanted, in A's place. The answers are how many there are, and how many did
/// not converge.
///
/// # Safety
/// The triangle is there, all of A where eigenvectors are wanted, and room for n eigenvalues.
pub unsafe fn syevdx<S: Field>(
    vectors: bool,
    range: Range,
    uplo: Uplo,
    n: i64,
    a: Matrix<S>,
    w: *mut S::Real,
) -> (i64, i64) {
    // SAFETY: the caller's word.
    unsafe {
        let (values, found, info) = hermitian(Dense::hermitian(uplo, n, a), vectors);
        let (first, count) = chosen(&values, range);
        give(&values, found, (first, count), a, w);
        (count as i64, info)
    }
}

unsafe fn give<S: Field>(
    values: &[S::Real],
    found: Option<Dense<S>>,
    (first, count): (usize, usize),
    a: Matrix<S>,
    w: *mut S::Real,
) {
    // SAFETY: the caller's word.
    unsafe {
        // Behind those that were asked for lie the ones that follow: so it is on NVIDIA's GPUs, as their samples of `syevdx` and `sygvdx` show.
        std::ptr::copy_nonoverlapping(values[first..].as_ptr(), w, values.len() - first);
        if let Some(found) = found {
            for column in 0..count {
                a.column_mut(column as i64, found.rows)
                    .copy_from_slice(found.column((first + column) as i64));
            }
        }
    }
}

/// Generalised eigenvalues: of `A·x = w·B·x` (kind 1), `A·B·x = w·x` (2) or `B·A·x = w·x` (3), as [`syevdx`]; B becomes its Cholesky factor.
/// `solve` finds those of a Hermitian matrix. Where B is not positive the second answer is n and the order of the minor.
///
/// # Safety
/// As [`syevdx`], and B's triangle is there.
pub unsafe fn sygvdx<S: Field>(
    kind: u32,
    vectors: bool,
    range: Range,
    uplo: Uplo,
    n: i64,
    a: Matrix<S>,
    b: Matrix<S>,
    w: *mut S::Real,
    solve: impl Fn(Dense<S>, bool) -> (Vec<S::Real>, Option<Dense<S>>, i64),
) -> (i64, i64) {
    // SAFETY: the caller's word.
    unsafe {
        let mut c = Dense::hermitian(uplo, n, a);
        let info = cholesky::potrf(uplo, n, b);
        if info != 0 {
            return (0, n + info);
        }
        let (factor, ld, one, diag) = (b.start(), b.ld(), S::one(), Diag::NonUnit);
        // L·A·Lᴴ in other words: what stands on the left, and its conjugate transpose on the right.
        let (outer, inner) = if uplo == Uplo::Lower { (Op::N, Op::C) } else { (Op::C, Op::N) };
        let (at, ldc) = (c.values.as_mut_ptr(), n.max(1));
        if kind == 1 {
            level3::trsm(Side::Left, uplo, outer, diag, n, n, one, factor, ld, at, ldc);
            level3::trsm(Side::Right, uplo, inner, diag, n, n, one, factor, ld, at, ldc);
        } else {
            level3::trmm(Side::Left, uplo, inner, diag, n, n, one, factor, ld, at, ldc, at, ldc);
            level3::trmm(Side::Right, uplo, outer, diag, n, n, one, factor, ld, at, ldc, at, ldc);
        }
        let (values, mut found, info) = solve(c, vectors);
        if let Some(found) = &mut found {
            let at = found.values.as_mut_ptr();
            if kind == 3 {
                level3::trmm(Side::Left, uplo, outer, diag, n, n, one, factor, ld, at, ldc, at, ldc);
            } else {
                level3::trsm(Side::Left, uplo, inner, diag, n, n, one, factor, ld, at, ldc);
            }
        }
        let (first, count) = chosen(&values, range);
        give(&values, found, (first, count), a, w);
        (count as i64, info)
    }
}

/// [`sygvdx`] by divide and conquer.
///
/// # Safety
/// As [`sygvdx`].
pub unsafe fn sygvd<S: Field>(
    kind: u32,
    vectors: bool,
    range: Range,
    uplo: Uplo,
    n: i64,
    a: Matrix<S>,
    b: Matrix<S>,
    w: *mut S::Real,
) -> (i64, i64) {
    // SAFETY: the caller's word.
    unsafe { sygvdx(kind, vectors, range, uplo, n, a, b, w, hermitian) }
}

/// Eigenvalues of any matrix, and its left and right eigenvectors: of length 1, their largest component real. A left one is that of which
/// `uᴴ·A = w·uᴴ`.
///
/// # Safety
/// The matrix is there, room for n eigenvalues, and for eigenvectors where they are wanted.
pub unsafe fn geev<S: Field>(
    n: i64,
    a: Matrix<S>,
    w: (&mut [S::Real], &mut [S::Real]),
    (left, right): (Option<Matrix<S>>, Option<Matrix<S>>),
) -> i64 {
    if n <= 0 {
        return 0;
    }
    // SAFETY: the caller's word.
    let mut copy = unsafe { Dense::read(n, n, a) };
    let (mut found_left, mut found_right) =
        (left.map(|_| Dense::zeros(n, n)), right.map(|_| Dense::zeros(n, n)));
    let (real, imaginary) = w;
    let factors = balance(&copy.values);
    // What all of the diagonal has in common is taken away first: a matrix near a multiple of the identity keeps its digits.
    let mut shift = S::zero();
    if let Some(factors) = factors {
        scale(&mut copy.values, factors);
        let trace = (0..n).fold(S::zero(), |sum, i| sum + copy.get(i, i));
        shift = trace.over_real(S::Real::rounded(n as f64));
        (0..n).for_each(|i| copy.set(i, i, copy.get(i, i) - shift));
    }
    let converged = factors.is_some()
        && S::general(
            n as usize,
            &copy.values,
            (&mut *real, &mut *imaginary),
            (
                found_left.as_mut().map(|found| &mut found.values[..]),
                found_right.as_mut().map(|found| &mut found.values[..]),
            ),
        );
    if !converged {
        real.fill(S::Real::nan());
        imaginary.fill(S::Real::nan());
        return n;
    }
    for (found, to) in [(found_left, left), (found_right, right)] {
        let (Some(mut found), Some(to)) = (found, to) else { continue };
        let mut column = 0;
        while column < n {
            let is_pair = !S::IS_COMPLEX && !imaginary[column as usize].is_zero() && column + 1 < n;
            if is_pair {
                let (x, y) = found.pair_mut(column, column + 1);
                normalize_pair(x, y);
            } else {
                normalize(found.column_mut(column));
            }
            column += if is_pair { 2 } else { 1 };
        }
        // SAFETY: the caller's word.
        unsafe { found.write(n, n, to) };
    }
    real.iter_mut().for_each(|value| *value += shift.real());
    imaginary.iter_mut().for_each(|value| *value += shift.imag());
    if let Some(factors) = factors {
        unscale(real, factors);
        unscale(imaginary, factors);
    }
    0
}

fn normalize<S: Scalar>(v: &mut [S]) {
    let size = |v: &S| v.modulus();
    let largest = v.iter().fold(S::zero(), |most, v| if size(v) > size(&most) { *v } else { most });
    // Squares of the largest would leave the type's range.
    if !largest.is_zero() {
        let most = size(&largest);
        v.iter_mut().for_each(|v| *v = v.over_real(most));
    }
    let length = v.iter().fold(S::Real::zero(), |sum, v| sum + size(v) * size(v)).sqrt();
    let turned =
        if S::IS_COMPLEX && !largest.is_zero() { largest.conj().over_real(size(&largest)) } else { S::one() };
    v.iter_mut().for_each(|v| *v = (*v * turned).over_real(length));
    if S::IS_COMPLEX
        && let Some(most) =
            v.iter_mut().max_by(|a, b| size(a).partial_cmp(&size(b)).unwrap_or(std::cmp::Ordering::Equal))
    {
        *most = S::from_real(most.real());
    }
}

/// The same for real and imaginary parts that stand apart.
fn normalize_pair<S: Scalar>(x: &mut [S], y: &mut [S]) {
    let size = |x: S, y: S| x.real().hypot(y.real());
    let most = x.iter().zip(y.iter()).fold((S::zero(), S::zero()), |most, (x, y)| {
        if size(*x, *y) > size(most.0, most.1) { (*x, *y) } else { most }
    });
    let largest = size(most.0, most.1);
    if largest.is_zero() {
        return;
    }
    let (cosine, sine) = (most.0.over_real(largest), most.1.over_real(largest));
    let mut sum = S::Real::zero();
    for (x, y) in x.iter_mut().zip(y.iter_mut()) {
        let (a, b) = (x.over_real(largest), y.over_real(largest));
        (*x, *y) = (a * cosine + b * sine, b * cosine - a * sine);
        sum += size(*x, *y) * size(*x, *y);
    }
    let length = sum.sqrt();
    x.iter_mut().chain(y).for_each(|part| *part = part.over_real(length));
}
