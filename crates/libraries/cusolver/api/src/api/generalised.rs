//! Eigenvalues of pairs of Hermitian matrices in the 64-bit API. Source: cuSOLVER manual, `cusolverDnXsygvd`, `cusolverDnXsygvdx` and
//! `cusolverDnXsygvStridedBatched`.

use core::ffi::{c_int, c_void};

use border::Out;
use cusolver_cpu::eigen::{self, Range};
use cusolver_cpu::{Complex, Scalar};

use super::eigen::{kind, range};
use super::generic::{areas, bound, check_square, real, same, typed};
use super::lifecycle::params;
use crate::arguments::{array, arrays, matrix, place, size, strided, triangle, vectors};
use crate::error::require;
use crate::handle::computing;
use crate::types::*;
use crate::{Error, Result};

/// What all calls are given: the type of problem, whether eigenvectors are wanted, and which triangles are read.
fn check(
    (itype, jobz, uplo): (cusolverEigType_t, cusolverEigMode_t, cublasFillMode_t),
    (n, lda, ldb): (i64, i64, i64),
    (a, b, w, computed): (cudaDataType, cudaDataType, cudaDataType, cudaDataType),
) -> Result<(u32, bool, cusolver_cpu::Uplo)> {
    let found = (kind(itype)?, vectors(jobz)?, triangle(uplo)?);
    check_square(n, lda)?;
    check_square(n, ldb)?;
    same(a, &[b, computed])?;
    same(real(a), &[w])?;
    typed!(a, T => { let _: Option<T> = None; Ok(found) })
}

pub fn cusolverDnXsygvd_bufferSize(
    handle: cusolverDnHandle_t,
    params: cusolverDnParams_t,
    itype: cusolverEigType_t,
    jobz: cusolverEigMode_t,
    uplo: cublasFillMode_t,
    n: i64,
    dataTypeA: cudaDataType,
    _d_A: *const c_void,
    lda: i64,
    dataTypeB: cudaDataType,
    _d_B: *const c_void,
    ldb: i64,
    dataTypeW: cudaDataType,
    _d_W: *const c_void,
    computeType: cudaDataType,
    workspaceInBytesOnDevice: Out<'_, usize>,
    workspaceInBytesOnHost: Out<'_, usize>,
) -> Result {
    computing(handle)?;
    self::params(params)?;
    check((itype, jobz, uplo), (n, lda, ldb), (dataTypeA, dataTypeB, dataTypeW, computeType))?;
    areas(n, workspaceInBytesOnDevice, workspaceInBytesOnHost)
}

/// # Safety
/// The arrays are there as the manual says of them: those of the device's until the stream has done the work, those of the host's while
/// the call lasts.
pub unsafe fn cusolverDnXsygvd(
    handle: cusolverDnHandle_t,
    params: cusolverDnParams_t,
    itype: cusolverEigType_t,
    jobz: cusolverEigMode_t,
    uplo: cublasFillMode_t,
    n: i64,
    dataTypeA: cudaDataType,
    d_A: *mut c_void,
    lda: i64,
    dataTypeB: cudaDataType,
    d_B: *mut c_void,
    ldb: i64,
    dataTypeW: cudaDataType,
    d_W: *mut c_void,
    computeType: cudaDataType,
    _bufferOnDevice: *mut c_void,
    _workspaceInBytesOnDevice: usize,
    _bufferOnHost: *mut c_void,
    _workspaceInBytesOnHost: usize,
    d_info: *mut c_int,
) -> Result {
    let context = computing(handle)?;
    self::params(params)?;
    let types = (dataTypeA, dataTypeB, dataTypeW, computeType);
    let (kind, wanted, uplo) = check((itype, jobz, uplo), (n, lda, ldb), types)?;
    typed!(dataTypeA, T => {
        let (a, b) = (matrix(d_A.cast::<T>(), (n, n), lda)?, matrix(d_B.cast::<T>(), (n, n), ldb)?);
        let w = array(d_W.cast::<<T as Scalar>::Real>(), n)?;
        // SAFETY: the caller's word.
        unsafe {
            context.run(d_info, move || eigen::sygvd(kind, wanted, Range::All, uplo, n, a.matrix, b.matrix, w.get()).1)
        }
    })
}

/// The range that is asked for is not told here.
pub fn cusolverDnXsygvdx_bufferSize(
    handle: cusolverDnHandle_t,
    params: cusolverDnParams_t,
    itype: cusolverEigType_t,
    jobz: cusolverEigMode_t,
    uplo: cublasFillMode_t,
    n: i64,
    dataTypeA: cudaDataType,
    d_A: *const c_void,
    lda: i64,
    dataTypeB: cudaDataType,
    d_B: *const c_void,
    ldb: i64,
    _vl: *mut c_void,
    _vu: *mut c_void,
    _il: i64,
    _iu: i64,
    _meig: *mut i64,
    dataTypeW: cudaDataType,
    d_W: *const c_void,
    computeType: cudaDataType,
    workspaceInBytesOnDevice: Out<'_, usize>,
    workspaceInBytesOnHost: Out<'_, usize>,
) -> Result {
    cusolverDnXsygvd_bufferSize(
        handle,
        params,
        itype,
        jobz,
        uplo,
        n,
        dataTypeA,
        d_A,
        lda,
        dataTypeB,
        d_B,
        ldb,
        dataTypeW,
        d_W,
        computeType,
        workspaceInBytesOnDevice,
        workspaceInBytesOnHost,
    )
}

/// How many there are goes to the host, for which the call waits.
///
/// # Safety
/// As [`cusolverDnXsygvd`].
pub unsafe fn cusolverDnXsygvdx(
    handle: cusolverDnHandle_t,
    params: cusolverDnParams_t,
    itype: cusolverEigType_t,
    jobz: cusolverEigMode_t,
    range: cusolverEigRange_t,
    uplo: cublasFillMode_t,
    n: i64,
    dataTypeA: cudaDataType,
    d_A: *mut c_void,
    lda: i64,
    dataTypeB: cudaDataType,
    d_B: *mut c_void,
    ldb: i64,
    vl: *mut c_void,
    vu: *mut c_void,
    il: i64,
    iu: i64,
    meig: *mut i64,
    dataTypeW: cudaDataType,
    d_W: *mut c_void,
    computeType: cudaDataType,
    _bufferOnDevice: *mut c_void,
    _workspaceInBytesOnDevice: usize,
    _bufferOnHost: *mut c_void,
    _workspaceInBytesOnHost: usize,
    d_info: *mut c_int,
) -> Result {
    let context = computing(handle)?;
    self::params(params)?;
    let types = (dataTypeA, dataTypeB, dataTypeW, computeType);
    let (kind, wanted, uplo) = check((itype, jobz, uplo), (n, lda, ldb), types)?;
    // SAFETY: the caller's word.
    let values = unsafe { (bound(vl, dataTypeA, range)?, bound(vu, dataTypeA, range)?) };
    let (range, meig) = (self::range(range, n, values, (il, iu))?, place(meig)?);
    typed!(dataTypeA, T => {
        let (a, b) = (matrix(d_A.cast::<T>(), (n, n), lda)?, matrix(d_B.cast::<T>(), (n, n), ldb)?);
        let w = array(d_W.cast::<<T as Scalar>::Real>(), n)?;
        // SAFETY: the caller's word.
        unsafe {
            context.run(d_info, move || {
                let found = eigen::sygvd(kind, wanted, range, uplo, n, a.matrix, b.matrix, w.get());
                meig.get().write(found.0);
                found.1
            })
        }
    })?;
    context.deliver()
}

/// Strides are no shorter than what lies between them.
fn check_strides(n: i64, batch: i64, sizes: [(i64, i64); 3], bytes: i64) -> Result {
    let holds = |(stride, column): (i64, i64)| {
        let length = if column == 0 { Some(n) } else { column.checked_mul(n) };
        length.is_some_and(|length| stride >= length)
            && stride.checked_mul(batch.max(1)).and_then(|all| all.checked_mul(bytes)).is_some()
    };
    require(
        batch <= 1 || sizes.into_iter().all(holds),
        "a stride is too short, or no memory has such a batch",
    )
}

pub fn cusolverDnXsygvStridedBatched_bufferSize(
    handle: cusolverDnHandle_t,
    params: cusolverDnParams_t,
    itype: cusolverEigType_t,
    jobz: cusolverEigMode_t,
    uplo: cublasFillMode_t,
    n: i64,
    dataTypeA: cudaDataType,
    A: *const c_void,
    lda: i64,
    strideA: i64,
    dataTypeB: cudaDataType,
    B: *const c_void,
    ldb: i64,
    strideB: i64,
    dataTypeW: cudaDataType,
    W: *const c_void,
    strideW: i64,
    computeType: cudaDataType,
    batchSize: i64,
    workspaceInBytesOnDevice: Out<'_, usize>,
    workspaceInBytesOnHost: Out<'_, usize>,
) -> Result {
    check_strides(size(n)?, size(batchSize)?, [(strideA, lda), (strideB, ldb), (strideW, 0)], 1)?;
    cusolverDnXsygvd_bufferSize(
        handle,
        params,
        itype,
        jobz,
        uplo,
        n,
        dataTypeA,
        A,
        lda,
        dataTypeB,
        B,
        ldb,
        dataTypeW,
        W,
        computeType,
        workspaceInBytesOnDevice,
        workspaceInBytesOnHost,
    )
}

/// Pairs at strides that count elements; an info for each.
///
/// # Safety
/// As [`cusolverDnXsygvd`].
pub unsafe fn cusolverDnXsygvStridedBatched(
    handle: cusolverDnHandle_t,
    params: cusolverDnParams_t,
    itype: cusolverEigType_t,
    jobz: cusolverEigMode_t,
    uplo: cublasFillMode_t,
    n: i64,
    dataTypeA: cudaDataType,
    A: *mut c_void,
    lda: i64,
    strideA: i64,
    dataTypeB: cudaDataType,
    B: *mut c_void,
    ldb: i64,
    strideB: i64,
    dataTypeW: cudaDataType,
    W: *mut c_void,
    strideW: i64,
    computeType: cudaDataType,
    batchSize: i64,
    _bufferOnDevice: *mut c_void,
    _workspaceInBytesOnDevice: usize,
    _bufferOnHost: *mut c_void,
    _workspaceInBytesOnHost: usize,
    info: *mut c_int,
) -> Result {
    let context = computing(handle)?;
    self::params(params)?;
    let types = (dataTypeA, dataTypeB, dataTypeW, computeType);
    let (kind, wanted, uplo) = check((itype, jobz, uplo), (n, lda, ldb), types)?;
    let (count, infos) = (size(batchSize)?, array(info, batchSize)?);
    typed!(dataTypeA, T => {
        let bytes = size_of::<T>() as i64;
        check_strides(n, count, [(strideA, lda), (strideB, ldb), (strideW, 0)], bytes)?;
        let first_a = strided(A.cast_const().cast::<T>(), (n, n, lda), count, strideA)?;
        let first_b = strided(B.cast_const().cast::<T>(), (n, n, ldb), count, strideB)?;
        let w = arrays(W.cast_const().cast::<<T as Scalar>::Real>(), n, count, strideW)?;
        context.enqueue(move || {
            cusolver_cpu::each(count, |number| {
                let a = cusolver_cpu::Matrix::new(first_a.get().wrapping_offset((number * strideA) as isize), lda);
                let b = cusolver_cpu::Matrix::new(first_b.get().wrapping_offset((number * strideB) as isize), ldb);
                let w = w.get().wrapping_offset((number * strideW) as isize);
                // SAFETY: as above; a pair for each call.
                unsafe {
                    let found = eigen::sygvd(kind, wanted, Range::All, uplo, n, a, b, w);
                    infos.get().offset(number as isize).write(found.1 as c_int);
                }
            });
        })
    })
}
