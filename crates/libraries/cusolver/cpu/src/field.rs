//! The four types, and what `faer` does for each: it knows its own traits, we `cublas_cpu`'s.

use std::num::NonZeroUsize;

use cublas_cpu::{Complex, Matrix, Op, Real, Scalar, Side};
use faer::diag::DiagMut;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::evd::{self, ComputeEigenvectors};
use faer::{MatMut, MatRef, Par};

use crate::bidiagonal;
use crate::dense::Dense;
use crate::divide;
use crate::factors::{self, Factored, Factors};
use crate::schur;
use crate::sparse::{Columns, Failure, Method};
use crate::{qr, reduction};

/// Smaller problems are not worth a second core.
const SMALL: usize = 96;

fn cores(size: usize) -> Par {
    match NonZeroUsize::new(rayon::current_num_threads()) {
        Some(count) if size > SMALL && count.get() > 1 => Par::Rayon(count),
        _ => Par::Seq,
    }
}

/// Where left and right eigenvectors go, as they are wanted.
pub type Sides<'a, S> = (Option<&'a mut [S]>, Option<&'a mut [S]>);

/// A type that systems are solved in. Matrices here lie without gaps; false says that an iteration did not converge.
pub trait Field: Scalar {
    /// Eigenvalues of a Hermitian matrix, n by n, not descending, and its eigenvectors.
    fn hermitian(n: usize, a: &[Self], w: &mut [Self::Real], vectors: Option<&mut [Self]>) -> bool;

    /// Eigenvalues of a real symmetric tridiagonal matrix, not descending, and its eigenvectors, of its diagonal and what stands beside it.
    fn tridiagonal(d: &[Self], e: &[Self], w: &mut [Self], vectors: Option<&mut [Self]>) -> bool;

    /// Singular values of m by n, not ascending, all left singular vectors, and all right ones. Both or none.
    fn singular(
        size: (usize, usize),
        a: &[Self],
        s: &mut [Self::Real],
        vectors: Option<(&mut [Self], &mut [Self])>,
        whole: bool,
    ) -> bool;

    /// Eigenvalues of any matrix, n by n, real and imaginary parts, and its left and right eigenvectors; of a real matrix a pair's are real and imaginary
    /// parts of the first one's. (Real ones are our own: of pairs `faer` 0.24's eigenvectors are up to some thousand units in the last place off
    /// where rows and columns are of very different sizes.)
    fn general(
        n: usize,
        a: &[Self],
        w: (&mut [Self::Real], &mut [Self::Real]),
        vectors: Sides<'_, Self>,
    ) -> bool;

    /// Factors of a sparse matrix, square, or for QR not wide.
    ///
    /// # Errors
    /// There is not enough memory.
    fn factored(
        method: Method,
        a: &Columns<Self>,
        reorders: bool,
    ) -> Result<Factored<Box<dyn Factors<Self>>>, Failure>;
}

fn hermitian<S: Scalar<Real: Real>>(n: usize, a: &[S], w: &mut [S::Real], vectors: Option<&mut [S]>) -> bool {
    let size = n as i64;
    let mut reduced = Dense { rows: size, columns: size, values: a.to_vec() };
    let mut made = reduction::tridiagonalize(&mut reduced);
    w.copy_from_slice(&made.d);
    let Some(found) = divide::eigen(w, &mut made.e, vectors.is_some()) else { return false };
    let (Some(found), Some(vectors)) = (found, vectors) else { return true };
    vectors.iter_mut().zip(&found.values).for_each(|(to, value)| *to = S::from_real(*value));
    let into = Matrix::new(vectors.as_mut_ptr(), size);
    // SAFETY: two square matrices, and the reflections of one of them.
    unsafe { reduction::turn_back(&mut reduced, &made.tau, size, into) };
    true
}

/// The diagonals are real.
fn tridiagonal<T: Scalar>(d: &[T], e: &[T], w: &mut [T], vectors: Option<&mut [T]>) -> bool {
    let mut values: Vec<T::Real> = d.iter().map(|d| d.real()).collect();
    let mut beside: Vec<T::Real> = e.iter().map(|e| e.real()).collect();
    let Some(found) = divide::eigen(&mut values, &mut beside, vectors.is_some()) else { return false };
    w.iter_mut().zip(values).for_each(|(w, value)| *w = T::from_real(value));
    if let (Some(found), Some(vectors)) = (found, vectors) {
        vectors.iter_mut().zip(found.values).for_each(|(to, value)| *to = T::from_real(value));
    }
    true
}

/// By QR first where the matrix is much taller than wide; of a wide one's conjugate transpose.
fn singular<S: Scalar<Real: Real>>(
    (m, n): (usize, usize),
    a: &[S],
    s: &mut [S::Real],
    vectors: Option<(&mut [S], &mut [S])>,
    whole: bool,
) -> bool {
    let a = Dense { rows: m as i64, columns: n as i64, values: a.to_vec() };
    if m < n {
        let vectors = vectors.map(|(u, v)| (v, u));
        return singular_tall(a.conjugate_transposed(), s, vectors, whole);
    }
    singular_tall(a, s, vectors, whole)
}

fn singular_tall<S: Scalar<Real: Real>>(
    mut a: Dense<S>,
    s: &mut [S::Real],
    vectors: Option<(&mut [S], &mut [S])>,
    whole: bool,
) -> bool {
    let (m, n) = (a.rows, a.columns);
    let size = n as usize;
    let mut tau = vec![S::zero(); size];
    let taller = 5 * m > 8 * n;
    let mut reduced = if taller {
        // SAFETY: a matrix of ours.
        unsafe { qr::geqrf(m, n, a.matrix(), tau.as_mut_ptr()) };
        let mut r = Dense::zeros(n, n);
        for column in 0..n {
            let rows = column as usize + 1;
            r.column_mut(column)[..rows].copy_from_slice(&a.column(column)[..rows]);
        }
        r
    } else {
        std::mem::replace(&mut a, Dense::zeros(0, 0))
    };
    let mut e = vec![num_traits::zero(); size];
    let (mut tauq, mut taup) = (vec![S::zero(); size], vec![S::zero(); size]);
    let rows = reduced.rows;
    // SAFETY: as above, and room for the numbers.
    unsafe {
        let (d, e, tauq) = (s.as_mut_ptr(), e.as_mut_ptr(), tauq.as_mut_ptr());
        reduction::gebrd(rows, n, reduced.matrix(), d, e, tauq, taup.as_mut_ptr());
    }
    let beside = size - 1;
    let Some(found) = bidiagonal::singular(s, &mut e[..beside], vectors.is_some()) else { return false };
    let (Some((left, right)), Some((u, v))) = (found, vectors) else { return true };
    let columns = if whole { m } else { n };
    let mut into = Dense { rows: m, columns, values: vec![S::zero(); u.len()] };
    for column in 0..n {
        let to = into.column_mut(column).iter_mut();
        to.zip(left.column(column)).for_each(|(to, value)| *to = S::from_real(*value));
    }
    (n..columns).for_each(|column| into.set(column, column, S::one()));
    v.iter_mut().zip(&right.values).for_each(|(to, value)| *to = S::from_real(*value));
    // SAFETY: matrices of these sizes.
    unsafe {
        let (whole_u, right) = (into.matrix(), Matrix::new(v.as_mut_ptr(), n.max(1)));
        reduction::turn_left(&mut reduced, &tauq, columns, whole_u);
        reduction::turn_right(&mut reduced, &taup, n, right);
        if taller {
            qr::ormqr(Side::Left, Op::N, m, columns, n, a.matrix(), tau.as_ptr(), whole_u);
        }
    }
    u.copy_from_slice(&into.values);
    true
}

fn area_of_general<T: faer::traits::ComplexField>(n: usize, vectors: bool, par: Par) -> MemBuffer {
    let right = if vectors { ComputeEigenvectors::Yes } else { ComputeEigenvectors::No };
    MemBuffer::new(evd::evd_scratch::<T>(n, ComputeEigenvectors::No, right, par, Default::default()))
}

macro_rules! field {
    ($($ty:ty: $general:expr;)*) => {$(
        impl Field for $ty {
            fn hermitian(n: usize, a: &[Self], w: &mut [Self::Real], vectors: Option<&mut [Self]>) -> bool {
                hermitian(n, a, w, vectors)
            }

            fn tridiagonal(d: &[Self], e: &[Self], w: &mut [Self], vectors: Option<&mut [Self]>) -> bool {
                tridiagonal(d, e, w, vectors)
            }

            fn singular(
                size: (usize, usize),
                a: &[Self],
                s: &mut [Self::Real],
                vectors: Option<(&mut [Self], &mut [Self])>,
                whole: bool,
            ) -> bool {
                singular(size, a, s, vectors, whole)
            }

            fn general(
                n: usize,
                a: &[Self],
                w: (&mut [Self::Real], &mut [Self::Real]),
                vectors: Sides<'_, Self>,
            ) -> bool {
                $general(n, a, w, vectors)
            }

            fn factored(
                method: Method,
                a: &Columns<Self>,
                reorders: bool,
            ) -> Result<Factored<Box<dyn Factors<Self>>>, Failure> {
                factors::factored_by_faer(method, a, reorders, cores(a.size().1))
            }
        }
    )*};
}

field! {
    f32: general_real;
    f64: general_real;
    Complex<f32>: general_complex;
    Complex<f64>: general_complex;
}

/// Copies what was found to where it is wanted.
fn give<S: Copy>(found: Option<Dense<S>>, to: Option<&mut [S]>) {
    if let (Some(found), Some(to)) = (found, to) {
        to.copy_from_slice(&found.values);
    }
}

fn general_real<R: Real>(
    n: usize,
    a: &[R],
    (real, imaginary): (&mut [R], &mut [R]),
    (left, right): Sides<'_, R>,
) -> bool {
    let a = Dense { rows: n as i64, columns: n as i64, values: a.to_vec() };
    let wanted = schur::Wanted { left: left.is_some(), right: right.is_some() };
    let Some(((re, im), found)) = schur::eigen(a, wanted) else { return false };
    real.copy_from_slice(&re);
    imaginary.copy_from_slice(&im);
    give(found.0, left);
    give(found.1, right);
    true
}

fn general_complex<T: faer::traits::RealField + Real>(
    n: usize,
    a: &[Complex<T>],
    (real, imaginary): (&mut [T], &mut [T]),
    (left, mut right): Sides<'_, Complex<T>>,
) -> bool
where
    Complex<T>: Scalar<Real = T>,
{
    let nothing = || <T as num_traits::Zero>::zero();
    let mut values: Vec<_> = (0..n).map(|_| Complex::new(nothing(), nothing())).collect();
    let mut converged = false;
    if left.is_none() {
        let par = cores(n);
        let mut area = area_of_general::<Complex<T>>(n, right.is_some(), par);
        converged = evd::evd_cplx(
            MatRef::from_column_major_slice(a, n, n),
            DiagMut::from_slice_mut(&mut values),
            None,
            right.as_mut().map(|vectors| MatMut::from_column_major_slice_mut(vectors, n, n)),
            par,
            MemStack::new(&mut area),
            Default::default(),
        )
        .is_ok();
    }
    let is_finite = |v: &Complex<T>| !v.has_nan() && v.modulus() <= T::max_value();
    // Of Jordan's blocks `faer` 0.24's vectors grow until they leave the type's range. Left ones are our own.
    let ours =
        left.is_some() || right.as_ref().is_some_and(|vectors| !(converged && vectors.iter().all(is_finite)));
    if ours {
        let a = Dense { rows: n as i64, columns: n as i64, values: a.to_vec() };
        let wanted = schur::Wanted { left: left.is_some(), right: right.is_some() };
        let found = schur::eigen_complex(a, wanted);
        converged = found.is_some();
        if let Some((found, sides)) = found {
            values = found;
            give(sides.0, left);
            give(sides.1, right);
        }
    }
    for ((value, real), imaginary) in values.into_iter().zip(real).zip(imaginary) {
        (*real, *imaginary) = (value.re, value.im);
    }
    converged
}
