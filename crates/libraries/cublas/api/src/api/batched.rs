//! Factorizations of many small matrices. Source: cuBLAS manual, "cuBLAS-like Extension".
//!
//! Arrays of matrices, and of what is told of each, lie in device memory; `info` of the routines that solve is the host's
//! and tells of the arguments.

use core::ffi::c_int;

use cublas_cpu::{Op, Scalar, lapack, parallel};
use kit::Address;

use super::operand::{leading, sizes};
use crate::handle::Handle;
use crate::{Error, Result, convert, cublasOperation_t};

/// Where matrix `i`'s pivots are; without pivots, nowhere.
fn pivots_of(pivots: *mut c_int, n: i64, i: i64) -> *mut c_int {
    if pivots.is_null() { pivots } else { pivots.wrapping_offset((i * n) as isize) }
}

/// Calls `each` for every matrix of the batch, in stream order.
fn for_each(handle: &Handle, count: i64, work: i64, each: impl Fn(i64) + Send + Sync + 'static) -> Result {
    handle.enqueue((), move |()| parallel(count, work, &each))
}

/// `P` may be null: no pivots then.
///
/// # Safety
/// The pointers are good for what cuBLAS's manual says of them: those to the host's memory during the call, those to the
/// device's until the routine has run.
pub unsafe fn getrf_batched<T: Scalar>(
    handle: &Handle,
    n: i64,
    A: *const *mut T,
    lda: i64,
    P: *mut c_int,
    info: *mut c_int,
    batchSize: i64,
) -> Result {
    sizes(&[n, batchSize], &[])?;
    leading(lda, n)?;
    let arrays = Address((A, P, info));
    for_each(handle, batchSize, n * n * n, move |i| {
        let (a, pivots, info) = arrays.get();
        // SAFETY: the caller's promise.
        unsafe {
            let a = a.offset(i as isize).read();
            *info.offset(i as isize) = lapack::getrf(n, a, lda, pivots_of(pivots, n, i)) as c_int;
        }
    })
}

/// # Safety
/// As [`getrf_batched`].
pub unsafe fn getri_batched<T: Scalar>(
    handle: &Handle,
    n: i64,
    A: *const *const T,
    lda: i64,
    P: *const c_int,
    C: *const *mut T,
    ldc: i64,
    info: *mut c_int,
    batchSize: i64,
) -> Result {
    sizes(&[n, batchSize], &[])?;
    leading(lda.min(ldc), n)?;
    let arrays = Address((A, P.cast_mut(), C, info));
    for_each(handle, batchSize, n * n * n, move |i| {
        let (a, pivots, c, info) = arrays.get();
        // SAFETY: the caller's promise.
        unsafe {
            let (a, c) = (a.offset(i as isize).read(), c.offset(i as isize).read());
            *info.offset(i as isize) = lapack::getri(n, a, lda, pivots_of(pivots, n, i), c, ldc) as c_int;
        }
    })
}

/// # Safety
/// As [`getrf_batched`].
pub unsafe fn matinv_batched<T: Scalar>(
    handle: &Handle,
    n: i64,
    A: *const *const T,
    lda: i64,
    Ainv: *const *mut T,
    lda_inv: i64,
    info: *mut c_int,
    batchSize: i64,
) -> Result {
    sizes(&[n, batchSize], &[])?;
    leading(lda.min(lda_inv), n)?;
    let arrays = Address((A, Ainv, info));
    for_each(handle, batchSize, n * n * n, move |i| {
        let (a, c, info) = arrays.get();
        // SAFETY: the caller's promise.
        unsafe {
            let (a, c) = (a.offset(i as isize).read(), c.offset(i as isize).read());
            *info.offset(i as isize) = lapack::matinv(n, a, lda, c, lda_inv) as c_int;
        }
    })
}

/// Tells the host which argument is wrong, counted from 1 after the handle: the first of those that are not good.
///
/// # Safety
/// `info` is NULL, or the host's place for a number.
unsafe fn tell(info: *mut c_int, arguments: &[(c_int, bool)]) -> Result {
    let wrong = arguments.iter().find(|(_, good)| !good).map(|(place, _)| *place);
    if info.is_null() {
        return Err(Error::InvalidValue("info is NULL"));
    }
    // SAFETY: cuBLAS's contract: the host's place for a number.
    unsafe { info.write(wrong.map_or(0, |place| -place)) };
    wrong.map_or(Ok(()), |_| Err(Error::InvalidValue("info says which argument")))
}

/// # Safety
/// As [`getrf_batched`].
pub unsafe fn getrs_batched<T: Scalar>(
    handle: &Handle,
    trans: cublasOperation_t,
    n: i64,
    nrhs: i64,
    Aarray: *const *const T,
    lda: i64,
    devIpiv: *const c_int,
    Barray: *const *mut T,
    ldb: i64,
    info: *mut c_int,
    batchSize: i64,
) -> Result {
    let op = convert::op(trans);
    let fits = |ld: i64| ld >= n.max(1);
    // SAFETY: the caller's promise.
    unsafe { tell(info, &[(1, op.is_ok()), (2, n >= 0), (3, nrhs >= 0), (5, fits(lda)), (8, fits(ldb))]) }?;
    sizes(&[batchSize], &[])?;
    let op = op?;
    let arrays = Address((Aarray, devIpiv.cast_mut(), Barray));
    for_each(handle, batchSize, n * n * nrhs, move |i| {
        let (a, pivots, b) = arrays.get();
        // SAFETY: the caller's promise.
        unsafe {
            let (a, b) = (a.offset(i as isize).read(), b.offset(i as isize).read());
            lapack::getrs(op, n, nrhs, a, lda, pivots_of(pivots, n, i), b, ldb);
        }
    })
}

/// # Safety
/// As [`getrf_batched`].
pub unsafe fn geqrf_batched<T: Scalar>(
    handle: &Handle,
    m: i64,
    n: i64,
    Aarray: *const *mut T,
    lda: i64,
    TauArray: *const *mut T,
    info: *mut c_int,
    batchSize: i64,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { tell(info, &[(1, m >= 0), (2, n >= 0), (4, lda >= m.max(1))]) }?;
    sizes(&[batchSize], &[])?;
    let arrays = Address((Aarray, TauArray));
    for_each(handle, batchSize, m * n * m.min(n), move |i| {
        let (a, tau) = arrays.get();
        // SAFETY: the caller's promise.
        unsafe { lapack::geqrf(m, n, a.offset(i as isize).read(), lda, tau.offset(i as isize).read()) }
    })
}

/// # Safety
/// As [`getrf_batched`].
pub unsafe fn gels_batched<T: Scalar>(
    handle: &Handle,
    trans: cublasOperation_t,
    m: i64,
    n: i64,
    nrhs: i64,
    Aarray: *const *mut T,
    lda: i64,
    Carray: *const *mut T,
    ldc: i64,
    info: *mut c_int,
    devInfoArray: *mut c_int,
    batchSize: i64,
) -> Result {
    let op = convert::op(trans);
    let fits = |ld: i64| ld >= m.max(1);
    let sizes_good = [(2, m >= 0), (3, n >= 0), (4, nrhs >= 0), (6, fits(lda)), (8, fits(ldc))];
    // SAFETY: the caller's promise.
    unsafe { tell(info, &[&[(1, op.is_ok())][..], &sizes_good].concat()) }?;
    sizes(&[batchSize], &[])?;
    if op? != Op::N {
        return Err(Error::NotSupported("least squares of a transposed matrix"));
    }
    if m < n {
        return Err(Error::NotSupported("least squares of fewer rows than columns"));
    }
    let arrays = Address((Aarray, Carray, devInfoArray));
    for_each(handle, batchSize, m * n * n, move |i| {
        let (a, c, infos) = arrays.get();
        // SAFETY: the caller's promise.
        unsafe {
            let (a, c) = (a.offset(i as isize).read(), c.offset(i as isize).read());
            let zero = lapack::gels(m, n, nrhs, a, lda, c, ldc);
            if !infos.is_null() {
                *infos.offset(i as isize) = zero as c_int;
            }
        }
    })
}
