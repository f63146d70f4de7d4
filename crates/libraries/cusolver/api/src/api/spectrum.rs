//! Eigenvalues and least squares of sparse matrices. Source: cuSOLVER manual, `cusolverSp<t>csreigvsi`, `csreigs` and `csrlsqvqr`.
//!
//! A body whose name has T in the place of the type's letter is that of all four types. All calls here are done when they come back.

use core::ffi::c_int;

use border::Out;
use cusolver_cpu::spectrum;
use cusolver_cpu::{Complex, Field, Real};
use num_traits::ToPrimitive;

use super::sparse::{Rows, get, on_device, slice};
use crate::Result;
use crate::arguments::{array, place};
use crate::error::require;
use crate::types::*;

/// The manual refuses sizes of 0.
fn check_sizes(sizes: &[c_int]) -> Result {
    require(sizes.iter().all(|size| *size > 0), "a size is not above 0")
}

/// The eigenvalue nearest to `mu0`, with the vector that is found with it, whether the iteration has converged or not.
///
/// # Safety
/// The arrays are there whenever the work runs.
unsafe fn nearest<T: Field>(
    a: Rows<T>,
    (mu0, x0): (T, *const T),
    maxite: c_int,
    tol: T::Real,
    (mu, x): (*mut T, *mut T),
) -> Result<impl Fn() -> Result + Send + Sync + 'static> {
    let (x0, x, mu) = (array(x0, a.n as i64)?, array(x, a.n as i64)?, place(mu)?);
    // A negative tolerance is one of 0, which nothing is below.
    let tol = tol.to_f64().unwrap_or(0.0).max(0.0);
    let most = usize::try_from(maxite).unwrap_or(0);
    Ok(move || {
        // SAFETY: the caller's word.
        let (value, vector) = unsafe { spectrum::nearest(&a.read()?, mu0, slice(x0.get(), a.n), most, tol)? };
        // SAFETY: as above.
        unsafe {
            mu.get().write(value);
            core::ptr::copy_nonoverlapping(vector.as_ptr(), x.get(), vector.len());
        }
        Ok(())
    })
}

/// `mu` and `x` are in the device's memory.
///
/// # Safety
/// The arrays are there as the manual says of them, while the call lasts.
pub unsafe fn cusolverSpTcsreigvsi<T: Field>(
    handle: cusolverSpHandle_t,
    m: c_int,
    nnz: c_int,
    descrA: cusparseMatDescr_t,
    csrValA: *const T,
    csrRowPtrA: *const c_int,
    csrColIndA: *const c_int,
    mu0: T,
    x0: *const T,
    maxite: c_int,
    eps: T::Real,
    mu: *mut T,
    x: *mut T,
) -> Result {
    let context = get(handle)?;
    context.can_compute()?;
    check_sizes(&[m, nnz])?;
    let a = Rows::new((m, nnz), descrA, (csrValA, csrRowPtrA, csrColIndA))?;
    // SAFETY: the caller's word.
    on_device(&context, unsafe { nearest(a, (mu0, x0), maxite, eps, (mu, x)) }?)
}

/// # Safety
/// As [`cusolverSpTcsreigvsi`].
pub unsafe fn cusolverSpTcsreigvsiHost<T: Field>(
    handle: cusolverSpHandle_t,
    m: c_int,
    nnz: c_int,
    descrA: cusparseMatDescr_t,
    csrValA: *const T,
    csrRowPtrA: *const c_int,
    csrColIndA: *const c_int,
    mu0: T,
    x0: *const T,
    maxite: c_int,
    tol: T::Real,
    mu: *mut T,
    x: *mut T,
) -> Result {
    get(handle)?;
    check_sizes(&[m, nnz])?;
    let a = Rows::new((m, nnz), descrA, (csrValA, csrRowPtrA, csrColIndA))?;
    // SAFETY: the caller's word.
    unsafe { nearest(a, (mu0, x0), maxite, tol, (mu, x)) }?()
}

fn double<R: Real>(value: Complex<R>) -> Complex<f64> {
    let part = |part: R| part.to_f64().unwrap_or(f64::NAN);
    Complex::new(part(value.re), part(value.im))
}

/// How many eigenvalues are in the rectangle between two corners, whichever of them is which.
///
/// # Safety
/// As [`cusolverSpTcsreigvsi`].
pub unsafe fn cusolverSpTcsreigsHost<T: Field>(
    handle: cusolverSpHandle_t,
    m: c_int,
    nnz: c_int,
    descrA: cusparseMatDescr_t,
    csrValA: *const T,
    csrRowPtrA: *const c_int,
    csrColIndA: *const c_int,
    left_bottom_corner: Complex<T::Real>,
    right_upper_corner: Complex<T::Real>,
    num_eigs: Out<'_, c_int>,
) -> Result {
    get(handle)?;
    check_sizes(&[m, nnz])?;
    let a = Rows::new((m, nnz), descrA, (csrValA, csrRowPtrA, csrColIndA))?;
    // SAFETY: the caller's word.
    let a = unsafe { a.read()? }.map(|value| double(Complex::new(value.real(), value.imag())));
    let corners = (double(left_bottom_corner), double(right_upper_corner));
    num_eigs.write(spectrum::count_within(&a, corners)? as c_int);
    Ok(())
}

/// Of a matrix of any shape: 0 for unknowns whose columns depend on those before them in `p`.
///
/// # Safety
/// As [`cusolverSpTcsreigvsi`].
pub unsafe fn cusolverSpTcsrlsqvqrHost<T: Field>(
    handle: cusolverSpHandle_t,
    m: c_int,
    n: c_int,
    nnz: c_int,
    descrA: cusparseMatDescr_t,
    csrValA: *const T,
    csrRowPtrA: *const c_int,
    csrColIndA: *const c_int,
    b: *const T,
    tol: T::Real,
    rankA: Out<'_, c_int>,
    x: *mut T,
    p: *mut c_int,
    min_norm: *mut T::Real,
) -> Result {
    get(handle)?;
    check_sizes(&[m, n, nnz])?;
    let a = Rows::of((m, n, nnz), descrA, (csrValA, csrRowPtrA, csrColIndA))?;
    let (b, x, p) = (array(b, m.into())?, array(x, n.into())?, array(p, n.into())?);
    let min_norm = place(min_norm)?;
    // SAFETY: the caller's word.
    let found = unsafe {
        spectrum::least_squares(&a.read()?, slice(b.get(), m as usize), tol.to_f64().unwrap_or(0.0))?
    };
    rankA.write(found.rank as c_int);
    // SAFETY: as above; a number for each column.
    unsafe {
        core::ptr::copy_nonoverlapping(found.x.as_ptr(), x.get(), found.x.len());
        (0..).zip(&found.order).for_each(|(at, column)| p.get().offset(at).write(*column as c_int));
        min_norm.get().write(T::Real::rounded(found.left));
    }
    Ok(())
}
