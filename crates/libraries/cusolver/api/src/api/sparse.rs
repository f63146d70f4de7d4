//! Systems of sparse matrices by rows. Source: cuSOLVER manual, "cuSolverSP: sparse LAPACK Function Reference".
//!
//! A body whose name has T in the place of the type's letter is that of all four types. All calls here are done when they come back: those
//! with the matrix in the device's memory wait for the stream, and cannot be captured; those whose names end with `Host` need no device.

use core::ffi::c_int;
use std::sync::Arc;

use border::Out;
use cusolver_cpu::Field;
use cusolver_cpu::sparse::{self, Columns, Failure, Method};
use kit::{Address, Registry};
use num_traits::ToPrimitive;
use parking_lot::Mutex;

use crate::arguments::{array, place};
use crate::description;
use crate::error::require;
use crate::handle::Context;
use crate::types::*;
use crate::{Error, Result};

static CONTEXTS: Registry<Context> = Registry::new();

pub(super) fn get(handle: cusolverSpHandle_t) -> Result<Arc<Context>> {
    Ok(CONTEXTS.get(handle)?)
}

pub fn cusolverSpCreate(handle: Out<'_, cusolverSpHandle_t>) -> Result {
    handle.write(CONTEXTS.add(Context::new()?));
    Ok(())
}

pub fn cusolverSpDestroy(handle: cusolverSpHandle_t) -> Result {
    CONTEXTS.remove(handle)?;
    Ok(())
}

pub fn cusolverSpSetStream(handle: cusolverSpHandle_t, streamId: cudaStream_t) -> Result {
    get(handle)?.change(|state| state.stream = streamId);
    Ok(())
}

pub fn cusolverSpGetStream(handle: cusolverSpHandle_t, streamId: Out<'_, cudaStream_t>) -> Result {
    streamId.write(get(handle)?.state().stream);
    Ok(())
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::NotAMatrix => Error::InvalidValue("the arrays are no matrix by rows"),
            Failure::NoMemory => Error::NoMemory,
            Failure::NoFactors => Error::NoFactors,
        }
    }
}

/// A matrix by rows as a call gives it.
pub(super) struct Rows<T> {
    base: c_int,
    /// Its rows.
    pub(super) n: usize,
    columns_count: usize,
    entries: usize,
    values: Address<*mut T>,
    starts: Address<*mut c_int>,
    columns: Address<*mut c_int>,
}

impl<T: Field> Rows<T> {
    /// A square one.
    pub(super) fn new(
        (n, entries): (c_int, c_int),
        descr: cusparseMatDescr_t,
        (values, starts, columns): (*const T, *const c_int, *const c_int),
    ) -> Result<Rows<T>> {
        Rows::of((n, n, entries), descr, (values, starts, columns))
    }

    pub(super) fn of(
        (n, columns_count, entries): (c_int, c_int, c_int),
        descr: cusparseMatDescr_t,
        (values, starts, columns): (*const T, *const c_int, *const c_int),
    ) -> Result<Rows<T>> {
        require(n >= 0 && columns_count >= 0 && entries >= 0, "a size is negative")?;
        let base = description::base(descr)?;
        let starts = array(starts, if n == 0 { 0 } else { i64::from(n) + 1 })?;
        let (values, columns) = (array(values, entries.into())?, array(columns, entries.into())?);
        let (n, columns_count, entries) = (n as usize, columns_count as usize, entries as usize);
        Ok(Rows { base, n, columns_count, entries, values, starts, columns })
    }

    /// # Safety
    /// The arrays are there, and nobody writes them.
    pub(super) unsafe fn read(&self) -> Result<Columns<T>> {
        // SAFETY: the caller's word.
        unsafe { self.number(0) }
    }

    /// One of several matrices, whose values lie one behind the other.
    ///
    /// # Safety
    /// As [`read`](Self::read).
    pub(super) unsafe fn number(&self, number: usize) -> Result<Columns<T>> {
        // SAFETY: the caller's word.
        let (starts, columns, values) = unsafe {
            let (starts, columns) = self.lines()?;
            (starts, columns, slice(self.values.get().wrapping_add(number * self.entries), self.entries))
        };
        Ok(Columns::of_rows_of(self.columns_count, self.base, starts, columns, values)?)
    }

    /// # Safety
    /// The arrays are there but for the values, and nobody writes them.
    unsafe fn lines(&self) -> Result<(&[c_int], &[c_int])> {
        // SAFETY: the caller's word.
        let starts = unsafe { slice(self.starts.get(), if self.n == 0 { 0 } else { self.n + 1 }) };
        let first = starts.first().copied().unwrap_or(self.base);
        let last = starts.last().copied().unwrap_or(self.base);
        if first != self.base || i64::from(last) - i64::from(self.base) != self.entries as i64 {
            return Err(Failure::NotAMatrix.into());
        }
        // SAFETY: as above.
        Ok((starts, unsafe { slice(self.columns.get(), self.entries) }))
    }
}

impl Rows<f64> {
    /// Where a matrix has entries, whatever they are.
    pub(super) fn pattern(
        shape: (c_int, c_int, c_int),
        descr: cusparseMatDescr_t,
        (starts, columns): (*const c_int, *const c_int),
    ) -> Result<Rows<f64>> {
        Rows::of(shape, descr, (core::ptr::dangling(), starts, columns))
    }

    /// Whether it is a matrix.
    ///
    /// # Safety
    /// The arrays are there but for the values, and nobody writes them.
    pub(super) unsafe fn check(&self) -> Result {
        // SAFETY: the caller's word.
        let (starts, columns) = unsafe { self.lines()? };
        Columns::of_rows_of(self.columns_count, self.base, starts, columns, &vec![0.0; self.entries])?;
        Ok(())
    }
}

/// # Safety
/// So many are there; NULL only has none.
pub(super) unsafe fn slice<'a, T>(at: *const T, count: usize) -> &'a [T] {
    // SAFETY: the caller's word.
    if count == 0 { &[] } else { unsafe { core::slice::from_raw_parts(at, count) } }
}

/// Solves a system, and tells the first column that makes its matrix singular, or -1. Columns may be taken in another order where `reorder`
/// is not 0: every one that it names is the one that suits the method.
///
/// # Safety
/// The arrays are there whenever the work runs.
unsafe fn system<T: Field>(
    method: Method,
    a: Rows<T>,
    (b, x): (*const T, *mut T),
    tol: T::Real,
    reorder: c_int,
    singularity: *mut c_int,
) -> Result<impl Fn() -> Result + Send + Sync + 'static> {
    require((0..=3).contains(&reorder), "there is no such order")?;
    let (b, x) = (array(b, a.n as i64)?, array(x, a.n as i64)?);
    let singularity = place(singularity)?;
    let tol = tol.to_f64().unwrap_or(0.0);
    Ok(move || {
        // SAFETY: the caller's word.
        let solved = unsafe { sparse::solve(method, &a.read()?, slice(b.get(), a.n), tol, reorder != 0)? };
        let singular = solved.singular.and_then(|column| c_int::try_from(column).ok());
        // SAFETY: as above; the solution is `n` long.
        unsafe {
            singularity.get().write(singular.unwrap_or(-1));
            if let Some(found) = solved.x {
                core::ptr::copy_nonoverlapping(found.as_ptr(), x.get(), found.len());
            }
        }
        Ok(())
    })
}

/// Does it when the stream has come to it, and waits for it.
pub(super) fn on_device(context: &Context, work: impl Fn() -> Result + Send + Sync + 'static) -> Result {
    // A stream that is being captured refuses it.
    context.synchronize()?;
    // The answer of work that has not ended.
    let done = Arc::new(Mutex::new(Err(Error::Internal("the work"))));
    let told = Arc::clone(&done);
    context.enqueue(move || *told.lock() = work())?;
    context.synchronize()?;
    *done.lock()
}

/// # Safety
/// The arrays are there as the manual says of them, while the call lasts.
pub unsafe fn cusolverSpTcsrlsvqr<T: Field>(
    handle: cusolverSpHandle_t,
    m: c_int,
    nnz: c_int,
    descrA: cusparseMatDescr_t,
    csrVal: *const T,
    csrRowPtr: *const c_int,
    csrColInd: *const c_int,
    b: *const T,
    tol: T::Real,
    reorder: c_int,
    x: *mut T,
    singularity: *mut c_int,
) -> Result {
    let context = get(handle)?;
    context.can_compute()?;
    let a = Rows::new((m, nnz), descrA, (csrVal, csrRowPtr, csrColInd))?;
    // SAFETY: the caller's word.
    on_device(&context, unsafe { system(Method::Qr, a, (b, x), tol, reorder, singularity) }?)
}

/// # Safety
/// As [`cusolverSpTcsrlsvqr`].
pub unsafe fn cusolverSpTcsrlsvchol<T: Field>(
    handle: cusolverSpHandle_t,
    m: c_int,
    nnz: c_int,
    descrA: cusparseMatDescr_t,
    csrVal: *const T,
    csrRowPtr: *const c_int,
    csrColInd: *const c_int,
    b: *const T,
    tol: T::Real,
    reorder: c_int,
    x: *mut T,
    singularity: *mut c_int,
) -> Result {
    let context = get(handle)?;
    context.can_compute()?;
    let a = Rows::new((m, nnz), descrA, (csrVal, csrRowPtr, csrColInd))?;
    // SAFETY: the caller's word.
    on_device(&context, unsafe { system(Method::Cholesky, a, (b, x), tol, reorder, singularity) }?)
}

/// # Safety
/// As [`cusolverSpTcsrlsvqr`].
pub unsafe fn cusolverSpTcsrlsvqrHost<T: Field>(
    handle: cusolverSpHandle_t,
    m: c_int,
    nnz: c_int,
    descrA: cusparseMatDescr_t,
    csrValA: *const T,
    csrRowPtrA: *const c_int,
    csrColIndA: *const c_int,
    b: *const T,
    tol: T::Real,
    reorder: c_int,
    x: *mut T,
    singularity: *mut c_int,
) -> Result {
    get(handle)?;
    let a = Rows::new((m, nnz), descrA, (csrValA, csrRowPtrA, csrColIndA))?;
    // SAFETY: the caller's word.
    unsafe { system(Method::Qr, a, (b, x), tol, reorder, singularity) }?()
}

/// # Safety
/// As [`cusolverSpTcsrlsvqr`].
pub unsafe fn cusolverSpTcsrlsvcholHost<T: Field>(
    handle: cusolverSpHandle_t,
    m: c_int,
    nnz: c_int,
    descrA: cusparseMatDescr_t,
    csrVal: *const T,
    csrRowPtr: *const c_int,
    csrColInd: *const c_int,
    b: *const T,
    tol: T::Real,
    reorder: c_int,
    x: *mut T,
    singularity: *mut c_int,
) -> Result {
    get(handle)?;
    let a = Rows::new((m, nnz), descrA, (csrVal, csrRowPtr, csrColInd))?;
    // SAFETY: the caller's word.
    unsafe { system(Method::Cholesky, a, (b, x), tol, reorder, singularity) }?()
}

/// # Safety
/// As [`cusolverSpTcsrlsvqr`].
pub unsafe fn cusolverSpTcsrlsvluHost<T: Field>(
    handle: cusolverSpHandle_t,
    n: c_int,
    nnzA: c_int,
    descrA: cusparseMatDescr_t,
    csrValA: *const T,
    csrRowPtrA: *const c_int,
    csrColIndA: *const c_int,
    b: *const T,
    tol: T::Real,
    reorder: c_int,
    x: *mut T,
    singularity: *mut c_int,
) -> Result {
    get(handle)?;
    let a = Rows::new((n, nnzA), descrA, (csrValA, csrRowPtrA, csrColIndA))?;
    // SAFETY: the caller's word.
    unsafe { system(Method::Lu, a, (b, x), tol, reorder, singularity) }?()
}
