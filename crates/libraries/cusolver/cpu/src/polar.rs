//! `A = U·H`, U with orthonormal columns and H Hermitian, not negative: by singular values, so that a matrix of any rank has it as it is.

use cublas_cpu::{Matrix, Op, Real, Scalar};
use num_traits::ToPrimitive;

use crate::dense::Dense;
use crate::field::Field;
use crate::svd;

/// What is told of a matrix and its factors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Told {
    /// The 2-norm of `A - U·H`.
    pub residual: f64,
    /// The Frobenius norm of A.
    pub norm: f64,
    /// `1 / (|A|·|A⁻¹|)` in Frobenius norms; 0 of a matrix whose columns depend on each other.
    pub rcond: f64,
}

/// Writes U in A's place, and H whole where it is wanted. Of an upper triangle (`is_upper`) what is below is not read. None where the
/// singular values did not converge, and then nothing is written.
///
/// # Safety
/// The matrices are there: m by n, not wide, and n by n.
pub unsafe fn polar<S: Field>(
    is_upper: bool,
    m: i64,
    n: i64,
    a: Matrix<S>,
    h: Option<Matrix<S>>,
    residual: bool,
) -> Option<Told> {
    // SAFETY: the caller's word.
    let mut given = unsafe { Dense::read(m, n, a) };
    if is_upper {
        (0..n).for_each(|column| given.column_mut(column)[column as usize + 1..].fill(S::zero()));
    }
    let (s, sides, converged) = svd::singular(given.clone(), true, false);
    let (u, v) = sides.filter(|_| converged)?;
    let mut stretched = v.clone();
    for (column, s) in (0..n).zip(&s) {
        stretched.column_mut(column).iter_mut().for_each(|value| *value = value.times_real(*s));
    }
    let (unitary, mut hermitian) = (u.times(Op::N, &v, Op::C), stretched.times(Op::N, &v, Op::C));
    symmetrize(&mut hermitian);
    let mut told = measures(&s);
    if residual {
        let mut left = unitary.times(Op::N, &hermitian, Op::N);
        left.values.iter_mut().zip(&given.values).for_each(|(left, a)| *left = *a - *left);
        told.residual = svd::singular(left, false, false).0.first().and_then(S::Real::to_f64).unwrap_or(0.0);
    }
    // SAFETY: the caller's word.
    unsafe {
        unitary.write(m, n, a);
        if let Some(h) = h {
            hermitian.write(n, n, h);
        }
    }
    Some(told)
}

/// The mean of a matrix and its conjugate transpose.
fn symmetrize<S: Scalar>(of: &mut Dense<S>) {
    let half = S::Real::rounded(0.5);
    for column in 0..of.columns {
        for row in 0..=column {
            let mean = (of.get(row, column) + of.get(column, row).conj()).times_real(half);
            of.set(row, column, if row == column { S::from_real(mean.real()) } else { mean });
            of.set(column, row, of.get(row, column).conj());
        }
    }
}

/// Norms by singular values, which are not ascending.
fn measures<R: Real>(s: &[R]) -> Told {
    let s: Vec<f64> = s.iter().map(|s| s.to_f64().unwrap_or(f64::NAN)).collect();
    let Some(largest) = s.first().copied().filter(|largest| *largest > 0.0) else {
        return Told { residual: 0.0, norm: 0.0, rcond: 0.0 };
    };
    // By the largest, so that no square leaves the range.
    let sum = |of: &dyn Fn(f64) -> f64| s.iter().map(|s| of(s / largest).powi(2)).sum::<f64>().sqrt();
    let (norm, inverse) = (sum(&|s| s), sum(&|s| 1.0 / s));
    Told { residual: 0.0, norm: norm * largest, rcond: 1.0 / (norm * inverse) }
}
