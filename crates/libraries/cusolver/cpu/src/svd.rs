//! `A = U·S·Vᴴ`

use cublas_cpu::{Matrix, Op, Real};
use num_traits::{Float as _, Zero as _};

use crate::dense::Dense;
use crate::eigen::{balance, scale, unscale};
use crate::field::Field;
use crate::qr;

/// Which singular vectors are wanted, and where they go.
#[derive(Clone, Copy)]
pub enum Wanted<S> {
    None,
    /// As many as there are singular values.
    Some(Matrix<S>),
    All(Matrix<S>),
    /// As many as there are singular values, in A's place.
    InPlace,
}

impl<S> Wanted<S> {
    fn is_some(&self) -> bool {
        !matches!(self, Wanted::None)
    }
}

/// U and V.
type Sides<S> = (Dense<S>, Dense<S>);

/// Singular values, not ascending, with U and V, thin or whole; whether all converged.
pub(crate) fn singular<S: Field>(
    mut a: Dense<S>,
    vectors: bool,
    whole: bool,
) -> (Vec<S::Real>, Option<Sides<S>>, bool) {
    let (m, n) = (a.rows, a.columns);
    let size = m.min(n).max(0);
    let mut s = vec![S::Real::zero(); size as usize];
    let columns = |of: i64| if whole { of } else { size };
    if size == 0 {
        let made = vectors.then(|| (Dense::identity(m, columns(m)), Dense::identity(n, columns(n))));
        return (s, made, true);
    }
    let mut made = vectors.then(|| (Dense::zeros(m, columns(m)), Dense::zeros(n, columns(n))));
    let Some(factors) = balance(&a.values) else {
        s.fill(S::Real::nan());
        return (s, made, false);
    };
    scale(&mut a.values, factors);
    let into = made.as_mut().map(|(u, v)| (&mut u.values[..], &mut v.values[..]));
    let converged = S::singular((m as usize, n as usize), &a.values, &mut s, into, whole);
    unscale(&mut s, factors);
    (s, made, converged)
}

/// Singular values, not ascending, to `s`; U's columns and Vᴴ's rows as they are wanted. The answer is 0, or how many did not converge.
///
/// # Safety
/// The matrices are there, and room for min(m, n) singular values.
pub unsafe fn gesvd<S: Field>(
    m: i64,
    n: i64,
    a: Matrix<S>,
    s: *mut S::Real,
    u: Wanted<S>,
    vt: Wanted<S>,
) -> i64 {
    let size = m.min(n).max(0);
    let whole = matches!(u, Wanted::All(_)) || matches!(vt, Wanted::All(_));
    // SAFETY: the caller's word.
    unsafe {
        let (values, vectors, converged) = singular(Dense::read(m, n, a), u.is_some() || vt.is_some(), whole);
        std::ptr::copy_nonoverlapping(values.as_ptr(), s, size as usize);
        if let Some((made, right)) = vectors {
            match u {
                Wanted::None => {}
                Wanted::Some(to) => made.write(m, size, to),
                Wanted::All(to) => made.write(m, m, to),
                Wanted::InPlace => made.write(m, size, a),
            }
            let right = right.conjugate_transposed();
            match vt {
                Wanted::None => {}
                Wanted::Some(to) => right.write(size, n, to),
                Wanted::All(to) => right.write(n, n, to),
                Wanted::InPlace => right.write(size, n, a),
            }
        }
        if converged { 0 } else { size.max(1) }
    }
}

/// The first `rank` singular values of m by n, with U and V, m and n by `rank`. The answers are [`gesvd`]'s and the Frobenius norm of what
/// they leave of A.
///
/// # Safety
/// The matrices are there, and room for `rank` singular values.
pub unsafe fn gesvda<S: Field>(
    rank: i64,
    m: i64,
    n: i64,
    a: Matrix<S>,
    s: *mut S::Real,
    vectors: Option<(Matrix<S>, Matrix<S>)>,
) -> (i64, f64) {
    // SAFETY: the caller's word.
    unsafe {
        let (values, made, converged) = singular(Dense::read(m, n, a), vectors.is_some(), false);
        std::ptr::copy_nonoverlapping(values.as_ptr(), s, rank as usize);
        if let (Some((u, v)), Some((to_u, to_v))) = (made, vectors) {
            u.write(m, rank, to_u);
            v.write(n, rank, to_v);
        }
        let left = values[rank as usize..]
            .iter()
            .map(|value| num_traits::ToPrimitive::to_f64(value).unwrap_or(f64::NAN));
        let norm = left.fold(0.0, |sum, value| sum + value * value).sqrt();
        (if converged { 0 } else { rank.max(1) }, norm)
    }
}

/// As [`gesvd`], with V and not Vᴴ, and of a wide matrix too; U and V are square where they are `whole`.
///
/// # Safety
/// The matrices are there, and room for min(m, n) singular values.
pub unsafe fn gesvdp<S: Field>(
    whole: bool,
    m: i64,
    n: i64,
    a: Matrix<S>,
    s: *mut S::Real,
    vectors: Option<(Matrix<S>, Matrix<S>)>,
) -> i64 {
    let size = m.min(n).max(0);
    // SAFETY: the caller's word.
    unsafe {
        let (values, made, converged) = singular(Dense::read(m, n, a), vectors.is_some(), whole);
        std::ptr::copy_nonoverlapping(values.as_ptr(), s, values.len());
        if let (Some((u, v)), Some((to_u, to_v))) = (made, vectors) {
            u.write(m, u.columns, to_u);
            v.write(n, v.columns, to_v);
        }
        if converged { 0 } else { size.max(1) }
    }
}

/// How a matrix's range is looked for.
#[derive(Clone, Copy)]
pub struct Sketch {
    /// Vectors beside those that are wanted.
    pub more: i64,
    /// How often they are multiplied with A and Aᴴ.
    pub powers: i64,
}

/// The first `rank` singular values of m by n about, with U's and V's columns where they are wanted: of what A makes of drawn vectors
/// (Halko, Martinsson and Tropp), which are the same ones in each call.
///
/// # Safety
/// The matrices are there, and room for `rank` singular values.
pub unsafe fn gesvdr<S: Field>(
    rank: i64,
    sketch: Sketch,
    m: i64,
    n: i64,
    a: Matrix<S>,
    s: *mut S::Real,
    (u, v): (Option<Matrix<S>>, Option<Matrix<S>>),
) -> i64 {
    let vectors = u.is_some() || v.is_some();
    // SAFETY: the caller's word.
    unsafe {
        let (values, made, converged) =
            sketched(Dense::read(m, n, a), rank + sketch.more, sketch.powers, vectors);
        std::ptr::copy_nonoverlapping(values.as_ptr(), s, rank as usize);
        if let Some((left, right)) = made {
            if let Some(to) = u {
                left.write(m, rank, to);
            }
            if let Some(to) = v {
                right.write(n, rank, to);
            }
        }
        if converged { 0 } else { rank.max(1) }
    }
}

/// As [`singular`], of `width` vectors of A's range.
fn sketched<S: Field>(
    mut a: Dense<S>,
    width: i64,
    powers: i64,
    vectors: bool,
) -> (Vec<S::Real>, Option<Sides<S>>, bool) {
    let factors = balance(&a.values);
    // Nearly all of it is no less work than all of it.
    let (Some(factors), true) = (factors, 2 * width < a.rows.min(a.columns)) else {
        return singular(a, vectors, false);
    };
    scale(&mut a.values, factors);
    let mut found = basis(a.times(Op::N, &drawn(a.columns, width), Op::N));
    for _ in 0..powers {
        let across = basis(a.times(Op::C, &found, Op::N));
        found = basis(a.times(Op::N, &across, Op::N));
    }
    let (mut s, made, converged) = singular(found.times(Op::C, &a, Op::N), vectors, false);
    unscale(&mut s, factors);
    (s, made.map(|(u, v)| (found.times(Op::N, &u, Op::N), v)), converged)
}

/// Orthonormal columns that have the same range.
fn basis<S: Field>(mut of: Dense<S>) -> Dense<S> {
    let (m, n) = (of.rows, of.columns);
    let mut tau = vec![S::zero(); n as usize];
    let matrix = of.matrix();
    // SAFETY: a matrix of ours that is not wide, and as many values of `tau` as it has columns.
    unsafe {
        qr::geqrf(m, n, matrix, tau.as_mut_ptr());
        qr::orgqr(m, n, n, matrix, tau.as_ptr());
    }
    of
}

/// Numbers of a normal distribution, by Box and Muller of Steele's SplitMix64.
fn drawn<S: Field>(rows: i64, columns: i64) -> Dense<S> {
    let mut state = 0_u64;
    let mut uniform = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        // Above 0, so that it has a logarithm.
        (((mixed ^ (mixed >> 31)) >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    };
    let mut made = Dense::zeros(rows, columns);
    for value in &mut made.values {
        let (size, turn) = ((-2.0 * uniform().ln()).sqrt(), core::f64::consts::TAU * uniform());
        let (imaginary, real) = turn.sin_cos();
        *value = S::from_real(S::Real::rounded(size * real));
        if S::IS_COMPLEX {
            *value = value.with_imag(S::Real::rounded(size * imaginary));
        }
    }
    made
}
