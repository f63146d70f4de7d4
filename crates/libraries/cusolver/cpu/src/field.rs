//! The four types, and what `faer` does for each: it knows its own traits, we `cublas_cpu`'s.

use std::num::NonZeroUsize;

use cublas_cpu::{Complex, Matrix, Real, Scalar};
use faer::diag::DiagMut;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::evd::{self, ComputeEigenvectors};
use faer::linalg::svd::{self, ComputeSvdVectors};
use faer::{MatMut, MatRef, Par};

use crate::dense::Dense;
use crate::divide;
use crate::factors::{self, Factored, Factors};
use crate::reduction;
use crate::schur;
use crate::sparse::{Columns, Failure, Method};

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

fn singular<T: faer::traits::ComplexField>(
    (m, n): (usize, usize),
    a: &[T],
    s: &mut [T],
    vectors: Option<(&mut [T], &mut [T])>,
    whole: bool,
) -> bool {
    let par = cores(m.min(n));
    let wanted = match (&vectors, whole) {
        (None, _) => ComputeSvdVectors::No,
        (Some(_), false) => ComputeSvdVectors::Thin,
        (Some(_), true) => ComputeSvdVectors::Full,
    };
    let size = |rows: usize| if whole { rows } else { m.min(n) };
    let mut area = MemBuffer::new(svd::svd_scratch::<T>(m, n, wanted, wanted, par, Default::default()));
    let (u, v) = vectors.unzip();
    svd::svd(
        MatRef::from_column_major_slice(a, m, n),
        DiagMut::from_slice_mut(s),
        u.map(|u| MatMut::from_column_major_slice_mut(u, m, size(m))),
        v.map(|v| MatMut::from_column_major_slice_mut(v, n, size(n))),
        par,
        MemStack::new(&mut area),
        Default::default(),
    )
    .is_ok()
}

/// The same in twice the digits, for what is graded beyond the type: where values come to nothing on the way, `faer` 0.24's vectors are no
/// longer orthogonal.
fn singular_wide<S: Scalar, W: Field>(
    size: (usize, usize),
    a: &[S],
    s: &mut [S::Real],
    vectors: Option<(&mut [S], &mut [S])>,
    whole: bool,
) -> bool {
    let a: Vec<W> = a.iter().map(|value| cast(*value)).collect();
    let zeros = |like: &[S]| vec![<W as num_traits::Zero>::zero(); like.len()];
    let mut values = vec![<W::Real as num_traits::Zero>::zero(); s.len()];
    let mut sides = vectors.as_ref().map(|(u, v)| (zeros(u), zeros(v)));
    let into = sides.as_mut().map(|(u, v)| (&mut u[..], &mut v[..]));
    let converged = W::singular(size, &a, &mut values, into, whole);
    s.iter_mut().zip(values).for_each(|(to, from)| *to = cast(from));
    if let (Some((u, v)), Some((wide_u, wide_v))) = (vectors, sides) {
        u.iter_mut().zip(wide_u).for_each(|(to, from)| *to = cast(from));
        v.iter_mut().zip(wide_v).for_each(|(to, from)| *to = cast(from));
    }
    converged
}

/// The number in another type.
fn cast<A: Scalar, B: Scalar>(value: A) -> B {
    let part = |part: A::Real| B::Real::rounded(num_traits::ToPrimitive::to_f64(&part).unwrap_or(f64::NAN));
    B::from_real(part(value.real())).with_imag(part(value.imag()))
}

/// Whether a value is so small that its digits are lost, beside a largest one of about 1.
fn comes_to_nothing<R: Real>(values: &[R]) -> bool {
    values.iter().any(|value| *value < R::min_positive_value() / R::epsilon())
}

fn area_of_general<T: faer::traits::ComplexField>(n: usize, vectors: bool, par: Par) -> MemBuffer {
    let right = if vectors { ComputeEigenvectors::Yes } else { ComputeEigenvectors::No };
    MemBuffer::new(evd::evd_scratch::<T>(n, ComputeEigenvectors::No, right, par, Default::default()))
}

macro_rules! field {
    ($($ty:ty: $general:expr $(, $wide:ty)?;)*) => {$(
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
                #[allow(unused_mut, reason = "there are types without a wider one")] mut vectors: Option<(&mut [Self], &mut [Self])>,
                whole: bool,
            ) -> bool {
                let mut values = vec![<$ty as num_traits::Zero>::zero(); s.len()];
                let again = vectors.as_mut().map(|(u, v)| (&mut **u, &mut **v));
                #[allow(unused_mut, reason = "as above")]
                let mut converged = singular(size, a, &mut values, again, whole);
                s.iter_mut().zip(&values).for_each(|(s, value)| *s = Scalar::real(*value));
                $(if comes_to_nothing(s) {
                    converged = singular_wide::<Self, $wide>(size, a, s, vectors, whole);
                })?
                converged
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
    f32: general_real, f64;
    f64: general_real;
    Complex<f32>: general_complex, Complex<f64>;
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
