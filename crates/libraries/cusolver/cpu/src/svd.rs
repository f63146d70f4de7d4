//! `A = U·S·Vᴴ`

use std::cmp::Ordering;

use cublas_cpu::Matrix;
use num_traits::{Float as _, Zero as _};

use crate::dense::Dense;
use crate::eigen::{balance, scale, unscale};
use crate::field::Field;

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
    sort(&mut s, made.as_mut());
    (s, made, converged)
}

/// Not ascending, with the columns that belong to them: `faer` 0.24 leaves values that have come to nothing among the others where a matrix is
/// graded beyond its type.
fn sort<S: Field>(s: &mut [S::Real], sides: Option<&mut Sides<S>>) {
    if s.is_sorted_by(|one, next| one >= next) || s.iter().any(|value| value.is_nan()) {
        return;
    }
    let mut order: Vec<usize> = (0..s.len()).collect();
    order.sort_by(|&one, &other| s[other].partial_cmp(&s[one]).unwrap_or(Ordering::Equal));
    let before = s.to_vec();
    s.iter_mut().zip(&order).for_each(|(to, &from)| *to = before[from]);
    let Some((u, v)) = sides else { return };
    for side in [u, v] {
        let before = side.clone();
        for (to, &from) in (0..).zip(&order) {
            side.column_mut(to).copy_from_slice(before.column(from as i64));
        }
    }
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
