//! The 64-bit API: one name for all types, sizes of 64 bits, work areas in bytes. Source: cuSOLVER manual, "Dense Linear Solver Reference
//! (64-bit API)" and "Dense Eigenvalue Solver Reference (64-bit API)". Work areas are not used.

use core::ffi::{c_int, c_schar, c_void};

use border::Out;
use cusolver_cpu::indefinite::Kind;
use cusolver_cpu::{Complex, Field, Scalar, cholesky, eigen};

use super::eigen::{hermitian, range};
use super::lifecycle::params;
use super::orthogonal::qr_of;
use super::svd::{check_jobs, singular};
use super::systems::{bunch_kaufman, lu_of, solve_lu, solve_symmetric};
use crate::arguments::{array, diagonal, matrix, operation, place, size, triangle, vectors};
use crate::error::require;
use crate::handle::computing;
use crate::types::*;
use crate::{Error, Result};

/// Runs a body with `$T` as the type that a call computes with.
macro_rules! typed {
    ($ty:expr, $T:ident => $body:expr) => {
        match $ty {
            cudaDataType::CUDA_R_32F => {
                type $T = f32;
                $body
            }
            cudaDataType::CUDA_R_64F => {
                type $T = f64;
                $body
            }
            cudaDataType::CUDA_C_32F => {
                type $T = Complex<f32>;
                $body
            }
            cudaDataType::CUDA_C_64F => {
                type $T = Complex<f64>;
                $body
            }
            _ => Err(Error::InvalidValue("a type other than float, double and their complex ones")),
        }
    };
}

pub(super) use typed;

/// The type of a type's real numbers.
pub(crate) fn real(ty: cudaDataType) -> cudaDataType {
    match ty {
        cudaDataType::CUDA_C_32F => cudaDataType::CUDA_R_32F,
        cudaDataType::CUDA_C_64F => cudaDataType::CUDA_R_64F,
        ty => ty,
    }
}

/// One type for all, as the manual's tables have it.
pub(crate) fn same(ty: cudaDataType, others: &[cudaDataType]) -> Result {
    require(others.iter().all(|other| *other == ty), "types that do not go together")
}

/// Sizes of work areas: some bytes on the device, none on the host.
pub(super) fn areas(n: i64, device: Out<'_, usize>, host: Out<'_, usize>) -> Result {
    device.write(usize::try_from(n.max(1)).unwrap_or(1).saturating_mul(size_of::<Complex<f64>>()));
    host.write(0);
    Ok(())
}

pub(super) fn check_square(n: i64, lda: i64) -> Result {
    require(n >= 0 && lda >= n.max(1), "a size is negative, or lda too small")
}

pub fn cusolverDnXgetrf_bufferSize(
    handle: cusolverDnHandle_t,
    params: cusolverDnParams_t,
    m: i64,
    n: i64,
    dataTypeA: cudaDataType,
    _A: *const c_void,
    lda: i64,
    computeType: cudaDataType,
    workspaceInBytesOnDevice: Out<'_, usize>,
    workspaceInBytesOnHost: Out<'_, usize>,
) -> Result {
    computing(handle)?;
    self::params(params)?;
    same(dataTypeA, &[computeType])?;
    require(m >= 0 && n >= 0 && lda >= m.max(1), "a size is negative, or lda too small")?;
    areas(n, workspaceInBytesOnDevice, workspaceInBytesOnHost)
}

/// # Safety
/// The arrays are there as the manual says of them: those of the device's until the stream has done the work, those of the host's while
/// the call lasts.
pub unsafe fn cusolverDnXgetrf(
    handle: cusolverDnHandle_t,
    params: cusolverDnParams_t,
    m: i64,
    n: i64,
    dataTypeA: cudaDataType,
    A: *mut c_void,
    lda: i64,
    ipiv: *mut i64,
    computeType: cudaDataType,
    _bufferOnDevice: *mut c_void,
    _workspaceInBytesOnDevice: usize,
    _bufferOnHost: *mut c_void,
    _workspaceInBytesOnHost: usize,
    info: *mut c_int,
) -> Result {
    let context = computing(handle)?;
    self::params(params)?;
    same(dataTypeA, &[computeType])?;
    // SAFETY: the caller's word.
    typed!(dataTypeA, T => unsafe { context.run(info, lu_of(matrix(A.cast::<T>(), (m, n), lda)?, ipiv)?) })
}

/// # Safety
/// As [`cusolverDnXgetrf`].
pub unsafe fn cusolverDnXgetrs(
    handle: cusolverDnHandle_t,
    params: cusolverDnParams_t,
    trans: cublasOperation_t,
    n: i64,
    nrhs: i64,
    dataTypeA: cudaDataType,
    A: *const c_void,
    lda: i64,
    ipiv: *const i64,
    dataTypeB: cudaDataType,
    B: *mut c_void,
    ldb: i64,
    info: *mut c_int,
) -> Result {
    let context = computing(handle)?;
    self::params(params)?;
    same(dataTypeA, &[dataTypeB])?;
    let op = operation(trans)?;
    typed!(dataTypeA, T => {
        let (a, b) = (matrix(A.cast::<T>(), (n, n), lda)?, matrix(B.cast::<T>(), (n, nrhs), ldb)?);
        // SAFETY: the caller's word.
        unsafe { context.run(info, solve_lu(op, a, ipiv, b)?) }
    })
}

pub fn cusolverDnXpotrf_bufferSize(
    handle: cusolverDnHandle_t,
    params: cusolverDnParams_t,
    uplo: cublasFillMode_t,
    n: i64,
    dataTypeA: cudaDataType,
    _A: *const c_void,
    lda: i64,
    computeType: cudaDataType,
    workspaceInBytesOnDevice: Out<'_, usize>,
    workspaceInBytesOnHost: Out<'_, usize>,
) -> Result {
    computing(handle)?;
    self::params(params)?;
    triangle(uplo)?;
    same(dataTypeA, &[computeType])?;
    check_square(n, lda)?;
    areas(n, workspaceInBytesOnDevice, workspaceInBytesOnHost)
}

/// # Safety
/// As [`cusolverDnXgetrf`].
pub unsafe fn cusolverDnXpotrf(
    handle: cusolverDnHandle_t,
    params: cusolverDnParams_t,
    uplo: cublasFillMode_t,
    n: i64,
    dataTypeA: cudaDataType,
    A: *mut c_void,
    lda: i64,
    computeType: cudaDataType,
    _bufferOnDevice: *mut c_void,
    _workspaceInBytesOnDevice: usize,
    _bufferOnHost: *mut c_void,
    _workspaceInBytesOnHost: usize,
    info: *mut c_int,
) -> Result {
    let context = computing(handle)?;
    self::params(params)?;
    same(dataTypeA, &[computeType])?;
    let uplo = triangle(uplo)?;
    typed!(dataTypeA, T => {
        let a = matrix(A.cast::<T>(), (n, n), lda)?;
        // SAFETY: the caller's word.
        unsafe { context.run(info, move || cholesky::potrf(uplo, a.rows, a.matrix)) }
    })
}

/// # Safety
/// As [`cusolverDnXgetrf`].
pub unsafe fn cusolverDnXpotrs(
    handle: cusolverDnHandle_t,
    params: cusolverDnParams_t,
    uplo: cublasFillMode_t,
    n: i64,
    nrhs: i64,
    dataTypeA: cudaDataType,
    A: *const c_void,
    lda: i64,
    dataTypeB: cudaDataType,
    B: *mut c_void,
    ldb: i64,
    info: *mut c_int,
) -> Result {
    let context = computing(handle)?;
    self::params(params)?;
    same(dataTypeA, &[dataTypeB])?;
    let uplo = triangle(uplo)?;
    typed!(dataTypeA, T => {
        let (a, b) = (matrix(A.cast::<T>(), (n, n), lda)?, matrix(B.cast::<T>(), (n, nrhs), ldb)?);
        // SAFETY: the caller's word.
        unsafe {
            context.run(info, move || {
                cholesky::potrs(uplo, a.rows, b.columns, a.matrix, b.matrix);
                0
            })
        }
    })
}

pub fn cusolverDnXtrtri_bufferSize(
    handle: cusolverDnHandle_t,
    uplo: cublasFillMode_t,
    diag: cublasDiagType_t,
    n: i64,
    _dataTypeA: cudaDataType,
    _A: *mut c_void,
    lda: i64,
    workspaceInBytesOnDevice: Out<'_, usize>,
    workspaceInBytesOnHost: Out<'_, usize>,
) -> Result {
    computing(handle)?;
    triangle(uplo)?;
    diagonal(diag)?;
    check_square(n, lda)?;
    areas(n, workspaceInBytesOnDevice, workspaceInBytesOnHost)
}

/// # Safety
/// As [`cusolverDnXgetrf`].
pub unsafe fn cusolverDnXtrtri(
    handle: cusolverDnHandle_t,
    uplo: cublasFillMode_t,
    diag: cublasDiagType_t,
    n: i64,
    dataTypeA: cudaDataType,
    A: *mut c_void,
    lda: i64,
    _bufferOnDevice: *mut c_void,
    _workspaceInBytesOnDevice: usize,
    _bufferOnHost: *mut c_void,
    _workspaceInBytesOnHost: usize,
    devInfo: *mut c_int,
) -> Result {
    let context = computing(handle)?;
    let (uplo, diag) = (triangle(uplo)?, diagonal(diag)?);
    typed!(dataTypeA, T => {
        let a = matrix(A.cast::<T>(), (n, n), lda)?;
        // SAFETY: as above.
        unsafe { context.run(devInfo, move || cholesky::trtri(uplo, diag, a.rows, a.matrix)) }
    })
}

pub fn cusolverDnXsytrf_bufferSize(
    handle: cusolverDnHandle_t,
    params: cusolverDnParams_t,
    uplo: cublasFillMode_t,
    n: i64,
    dataTypeA: cudaDataType,
    _A: *const c_void,
    lda: i64,
    _ipiv: *const i64,
    computeType: cudaDataType,
    workspaceInBytesOnDevice: Out<'_, usize>,
    workspaceInBytesOnHost: Out<'_, usize>,
) -> Result {
    computing(handle)?;
    self::params(params)?;
    triangle(uplo)?;
    same(dataTypeA, &[computeType])?;
    check_square(n, lda)?;
    areas(n, workspaceInBytesOnDevice, workspaceInBytesOnHost)
}

/// # Safety
/// As [`cusolverDnXgetrf`].
pub unsafe fn cusolverDnXsytrf(
    handle: cusolverDnHandle_t,
    params: cusolverDnParams_t,
    uplo: cublasFillMode_t,
    n: i64,
    dataTypeA: cudaDataType,
    A: *mut c_void,
    lda: i64,
    ipiv: *mut i64,
    computeType: cudaDataType,
    _bufferOnDevice: *mut c_void,
    _workspaceInBytesOnDevice: usize,
    _bufferOnHost: *mut c_void,
    _workspaceInBytesOnHost: usize,
    info: *mut c_int,
) -> Result {
    let context = computing(handle)?;
    self::params(params)?;
    same(dataTypeA, &[computeType])?;
    typed!(dataTypeA, T => {
        // SAFETY: the caller's word.
        unsafe {
            context.run(info, bunch_kaufman(Kind::Symmetric, uplo, matrix(A.cast::<T>(), (n, n), lda)?, ipiv)?)
        }
    })
}

pub fn cusolverDnXsytrs_bufferSize(
    handle: cusolverDnHandle_t,
    uplo: cublasFillMode_t,
    n: i64,
    nrhs: i64,
    dataTypeA: cudaDataType,
    _A: *const c_void,
    lda: i64,
    _ipiv: *const i64,
    dataTypeB: cudaDataType,
    _B: *mut c_void,
    ldb: i64,
    workspaceInBytesOnDevice: Out<'_, usize>,
    workspaceInBytesOnHost: Out<'_, usize>,
) -> Result {
    computing(handle)?;
    triangle(uplo)?;
    same(dataTypeA, &[dataTypeB])?;
    check_square(n, lda)?;
    require(nrhs >= 0 && ldb >= n.max(1), "a size is negative, or ldb too small")?;
    areas(n, workspaceInBytesOnDevice, workspaceInBytesOnHost)
}

/// # Safety
/// As [`cusolverDnXgetrf`].
pub unsafe fn cusolverDnXsytrs(
    handle: cusolverDnHandle_t,
    uplo: cublasFillMode_t,
    n: i64,
    nrhs: i64,
    dataTypeA: cudaDataType,
    A: *const c_void,
    lda: i64,
    ipiv: *const i64,
    dataTypeB: cudaDataType,
    B: *mut c_void,
    ldb: i64,
    _bufferOnDevice: *mut c_void,
    _workspaceInBytesOnDevice: usize,
    _bufferOnHost: *mut c_void,
    _workspaceInBytesOnHost: usize,
    info: *mut c_int,
) -> Result {
    let context = computing(handle)?;
    same(dataTypeA, &[dataTypeB])?;
    typed!(dataTypeA, T => {
        let (a, b) = (matrix(A.cast::<T>(), (n, n), lda)?, matrix(B.cast::<T>(), (n, nrhs), ldb)?);
        // SAFETY: the caller's word.
        unsafe { context.run(info, solve_symmetric(Kind::Symmetric, uplo, a, ipiv, b)?) }
    })
}

pub fn cusolverDnXgeqrf_bufferSize(
    handle: cusolverDnHandle_t,
    params: cusolverDnParams_t,
    m: i64,
    n: i64,
    dataTypeA: cudaDataType,
    _A: *const c_void,
    lda: i64,
    dataTypeTau: cudaDataType,
    _tau: *const c_void,
    computeType: cudaDataType,
    workspaceInBytesOnDevice: Out<'_, usize>,
    workspaceInBytesOnHost: Out<'_, usize>,
) -> Result {
    computing(handle)?;
    self::params(params)?;
    same(dataTypeA, &[dataTypeTau, computeType])?;
    require(m >= 0 && n >= 0 && lda >= m.max(1), "a size is negative, or lda too small")?;
    areas(n, workspaceInBytesOnDevice, workspaceInBytesOnHost)
}

/// # Safety
/// As [`cusolverDnXgetrf`].
pub unsafe fn cusolverDnXgeqrf(
    handle: cusolverDnHandle_t,
    params: cusolverDnParams_t,
    m: i64,
    n: i64,
    dataTypeA: cudaDataType,
    A: *mut c_void,
    lda: i64,
    dataTypeTau: cudaDataType,
    tau: *mut c_void,
    computeType: cudaDataType,
    _bufferOnDevice: *mut c_void,
    _workspaceInBytesOnDevice: usize,
    _bufferOnHost: *mut c_void,
    _workspaceInBytesOnHost: usize,
    info: *mut c_int,
) -> Result {
    let context = computing(handle)?;
    self::params(params)?;
    same(dataTypeA, &[dataTypeTau, computeType])?;
    // SAFETY: the caller's word.
    typed!(dataTypeA, T => unsafe { context.run(info, qr_of(matrix(A.cast::<T>(), (m, n), lda)?, tau.cast())?) })
}

pub fn cusolverDnXsyevd_bufferSize(
    handle: cusolverDnHandle_t,
    params: cusolverDnParams_t,
    jobz: cusolverEigMode_t,
    uplo: cublasFillMode_t,
    n: i64,
    dataTypeA: cudaDataType,
    _A: *const c_void,
    lda: i64,
    dataTypeW: cudaDataType,
    _W: *const c_void,
    computeType: cudaDataType,
    workspaceInBytesOnDevice: Out<'_, usize>,
    workspaceInBytesOnHost: Out<'_, usize>,
) -> Result {
    computing(handle)?;
    self::params(params)?;
    vectors(jobz)?;
    triangle(uplo)?;
    same(dataTypeA, &[computeType])?;
    same(real(dataTypeA), &[dataTypeW])?;
    check_square(n, lda)?;
    areas(n, workspaceInBytesOnDevice, workspaceInBytesOnHost)
}

/// # Safety
/// As [`cusolverDnXgetrf`].
pub unsafe fn cusolverDnXsyevd(
    handle: cusolverDnHandle_t,
    params: cusolverDnParams_t,
    jobz: cusolverEigMode_t,
    uplo: cublasFillMode_t,
    n: i64,
    dataTypeA: cudaDataType,
    A: *mut c_void,
    lda: i64,
    dataTypeW: cudaDataType,
    W: *mut c_void,
    computeType: cudaDataType,
    _bufferOnDevice: *mut c_void,
    _workspaceInBytesOnDevice: usize,
    _bufferOnHost: *mut c_void,
    _workspaceInBytesOnHost: usize,
    info: *mut c_int,
) -> Result {
    let context = computing(handle)?;
    self::params(params)?;
    same(dataTypeA, &[computeType])?;
    same(real(dataTypeA), &[dataTypeW])?;
    typed!(dataTypeA, T => {
        // SAFETY: the caller's word.
        unsafe { context.run(info, hermitian(jobz, uplo, matrix(A.cast::<T>(), (n, n), lda)?, W.cast())?) }
    })
}

pub fn cusolverDnXsyevBatched_bufferSize(
    handle: cusolverDnHandle_t,
    params: cusolverDnParams_t,
    jobz: cusolverEigMode_t,
    uplo: cublasFillMode_t,
    n: i64,
    dataTypeA: cudaDataType,
    A: *const c_void,
    lda: i64,
    dataTypeW: cudaDataType,
    W: *const c_void,
    computeType: cudaDataType,
    workspaceInBytesOnDevice: Out<'_, usize>,
    workspaceInBytesOnHost: Out<'_, usize>,
    batchSize: i64,
) -> Result {
    size(batchSize)?;
    cusolverDnXsyevd_bufferSize(
        handle,
        params,
        jobz,
        uplo,
        n,
        dataTypeA,
        A,
        lda,
        dataTypeW,
        W,
        computeType,
        workspaceInBytesOnDevice,
        workspaceInBytesOnHost,
    )
}

/// Matrices one behind the other, `lda·n` elements each.
///
/// # Safety
/// As [`cusolverDnXgetrf`].
pub unsafe fn cusolverDnXsyevBatched(
    handle: cusolverDnHandle_t,
    params: cusolverDnParams_t,
    jobz: cusolverEigMode_t,
    uplo: cublasFillMode_t,
    n: i64,
    dataTypeA: cudaDataType,
    A: *mut c_void,
    lda: i64,
    dataTypeW: cudaDataType,
    W: *mut c_void,
    computeType: cudaDataType,
    _bufferOnDevice: *mut c_void,
    _workspaceInBytesOnDevice: usize,
    _bufferOnHost: *mut c_void,
    _workspaceInBytesOnHost: usize,
    info: *mut c_int,
    batchSize: i64,
) -> Result {
    let context = computing(handle)?;
    self::params(params)?;
    same(dataTypeA, &[computeType])?;
    same(real(dataTypeA), &[dataTypeW])?;
    let (wanted, uplo, count) = (vectors(jobz)?, triangle(uplo)?, size(batchSize)?);
    let infos = array(info, count)?;
    typed!(dataTypeA, T => {
        let at = if count == 0 { core::ptr::dangling() } else { A.cast_const().cast::<T>() };
        let a = matrix(at, (n, n), lda)?;
        let all = (a.columns.max(1) * lda).checked_mul(count.saturating_mul(size_of::<T>() as i64));
        require(all.is_some(), "no memory has such a batch")?;
        // The columns of all matrices lie one behind the other.
        matrix(at, (n, n * count), lda)?;
        let w = array(W.cast::<<T as Scalar>::Real>(), n * count)?;
        context.enqueue(move || {
            cusolver_cpu::each(count, |number| {
                let matrix = a.matrix.from(0, a.columns * number);
                // SAFETY: as above; a matrix for each call.
                unsafe {
                    let w = w.get().offset((number * n) as isize);
                    let found = eigen::syevdx(wanted, eigen::Range::All, uplo, n, matrix, w);
                    infos.get().offset(number as isize).write(found.1 as c_int);
                }
            });
        })
    })
}

/// A number of the host's in the type that a call computes with.
///
/// # Safety
/// `at` is NULL, or a real number of the type, in the host's memory.
pub(super) unsafe fn bound(at: *const c_void, ty: cudaDataType, range: cusolverEigRange_t) -> Result<f64> {
    if range != cusolverEigRange_t::CUSOLVER_EIG_RANGE_V {
        return Ok(0.0);
    }
    require(!at.is_null(), "vl or vu is NULL")?;
    // SAFETY: the caller's word: a real number of the type, in the host's memory.
    Ok(unsafe {
        match real(ty) {
            cudaDataType::CUDA_R_32F => at.cast::<f32>().read_unaligned().into(),
            _ => at.cast::<f64>().read_unaligned(),
        }
    })
}

/// # Safety
/// As [`cusolverDnXgetrf`].
pub unsafe fn cusolverDnXsyevdx_bufferSize(
    handle: cusolverDnHandle_t,
    params: cusolverDnParams_t,
    jobz: cusolverEigMode_t,
    range: cusolverEigRange_t,
    uplo: cublasFillMode_t,
    n: i64,
    dataTypeA: cudaDataType,
    A: *const c_void,
    lda: i64,
    vl: *mut c_void,
    vu: *mut c_void,
    il: i64,
    iu: i64,
    _h_meig: *mut i64,
    dataTypeW: cudaDataType,
    W: *const c_void,
    computeType: cudaDataType,
    workspaceInBytesOnDevice: Out<'_, usize>,
    workspaceInBytesOnHost: Out<'_, usize>,
) -> Result {
    // SAFETY: the caller's word.
    let values = unsafe { (bound(vl, dataTypeA, range)?, bound(vu, dataTypeA, range)?) };
    self::range(range, size(n)?, values, (il, iu))?;
    cusolverDnXsyevd_bufferSize(
        handle,
        params,
        jobz,
        uplo,
        n,
        dataTypeA,
        A,
        lda,
        dataTypeW,
        W,
        computeType,
        workspaceInBytesOnDevice,
        workspaceInBytesOnHost,
    )
}

/// How many there are goes to the host, for which the call waits.
///
/// # Safety
/// As [`cusolverDnXgetrf`].
pub unsafe fn cusolverDnXsyevdx(
    handle: cusolverDnHandle_t,
    params: cusolverDnParams_t,
    jobz: cusolverEigMode_t,
    range: cusolverEigRange_t,
    uplo: cublasFillMode_t,
    n: i64,
    dataTypeA: cudaDataType,
    A: *mut c_void,
    lda: i64,
    vl: *mut c_void,
    vu: *mut c_void,
    il: i64,
    iu: i64,
    meig64: *mut i64,
    dataTypeW: cudaDataType,
    W: *mut c_void,
    computeType: cudaDataType,
    _bufferOnDevice: *mut c_void,
    _workspaceInBytesOnDevice: usize,
    _bufferOnHost: *mut c_void,
    _workspaceInBytesOnHost: usize,
    info: *mut c_int,
) -> Result {
    let context = computing(handle)?;
    self::params(params)?;
    same(dataTypeA, &[computeType])?;
    same(real(dataTypeA), &[dataTypeW])?;
    // SAFETY: the caller's word.
    let values = unsafe { (bound(vl, dataTypeA, range)?, bound(vu, dataTypeA, range)?) };
    let range = self::range(range, size(n)?, values, (il, iu))?;
    let (wanted, uplo, meig) = (vectors(jobz)?, triangle(uplo)?, place(meig64)?);
    typed!(dataTypeA, T => {
        let a = matrix(A.cast::<T>(), (n, n), lda)?;
        let w = array(W.cast::<<T as Scalar>::Real>(), n)?;
        // SAFETY: the caller's word.
        unsafe {
            context.run(info, move || {
                let (count, info) = eigen::syevdx(wanted, range, uplo, a.rows, a.matrix, w.get());
                meig.get().write(count);
                info
            })
        }
    })?;
    context.deliver()
}

pub fn cusolverDnXgesvd_bufferSize(
    handle: cusolverDnHandle_t,
    params: cusolverDnParams_t,
    jobu: c_schar,
    jobvt: c_schar,
    m: i64,
    n: i64,
    dataTypeA: cudaDataType,
    _A: *const c_void,
    lda: i64,
    dataTypeS: cudaDataType,
    _S: *const c_void,
    dataTypeU: cudaDataType,
    _U: *const c_void,
    _ldu: i64,
    dataTypeVT: cudaDataType,
    _VT: *const c_void,
    _ldvt: i64,
    computeType: cudaDataType,
    workspaceInBytesOnDevice: Out<'_, usize>,
    workspaceInBytesOnHost: Out<'_, usize>,
) -> Result {
    computing(handle)?;
    self::params(params)?;
    check_jobs(jobu, jobvt)?;
    same(dataTypeA, &[dataTypeU, dataTypeVT, computeType])?;
    same(real(dataTypeA), &[dataTypeS])?;
    require(n >= 0 && m >= n && lda >= m.max(1), "gesvd: not m >= n >= 0, or lda too small")?;
    areas(m, workspaceInBytesOnDevice, workspaceInBytesOnHost)
}

/// # Safety
/// As [`cusolverDnXgetrf`].
pub unsafe fn cusolverDnXgesvd(
    handle: cusolverDnHandle_t,
    params: cusolverDnParams_t,
    jobu: c_schar,
    jobvt: c_schar,
    m: i64,
    n: i64,
    dataTypeA: cudaDataType,
    A: *mut c_void,
    lda: i64,
    dataTypeS: cudaDataType,
    S: *mut c_void,
    dataTypeU: cudaDataType,
    U: *mut c_void,
    ldu: i64,
    dataTypeVT: cudaDataType,
    VT: *mut c_void,
    ldvt: i64,
    computeType: cudaDataType,
    _bufferOnDevice: *mut c_void,
    _workspaceInBytesOnDevice: usize,
    _bufferOnHost: *mut c_void,
    _workspaceInBytesOnHost: usize,
    info: *mut c_int,
) -> Result {
    let context = computing(handle)?;
    self::params(params)?;
    same(dataTypeA, &[dataTypeU, dataTypeVT, computeType])?;
    same(real(dataTypeA), &[dataTypeS])?;
    typed!(dataTypeA, T => {
        let a = matrix(A.cast::<T>(), (m, n), lda)?;
        // SAFETY: the caller's word.
        unsafe {
            context.run(info, singular((jobu, jobvt), a, S.cast(), (U.cast(), ldu), (VT.cast(), ldvt))?)
        }
    })
}

/// The complex type of a type's numbers.
fn complex(ty: cudaDataType) -> cudaDataType {
    match ty {
        cudaDataType::CUDA_R_32F => cudaDataType::CUDA_C_32F,
        cudaDataType::CUDA_R_64F => cudaDataType::CUDA_C_64F,
        ty => ty,
    }
}

fn check_geev(
    (jobvl, jobvr): (cusolverEigMode_t, cusolverEigMode_t),
    (n, lda, ldvl, ldvr): (i64, i64, i64, i64),
    (a, w, vl, vr, computed): (cudaDataType, cudaDataType, cudaDataType, cudaDataType, cudaDataType),
) -> Result<(bool, bool)> {
    let (left, right) = (vectors(jobvl)?, vectors(jobvr)?);
    same(a, &[vl, vr, computed])?;
    require(w == a || w == complex(a), "types that do not go together")?;
    check_square(n, lda)?;
    require(!left || ldvl >= n.max(1), "ldvl is too small")?;
    require(!right || ldvr >= n.max(1), "ldvr is too small")?;
    Ok((left, right))
}

pub fn cusolverDnXgeev_bufferSize(
    handle: cusolverDnHandle_t,
    params: cusolverDnParams_t,
    jobvl: cusolverEigMode_t,
    jobvr: cusolverEigMode_t,
    n: i64,
    dataTypeA: cudaDataType,
    _A: *const c_void,
    lda: i64,
    dataTypeW: cudaDataType,
    _W: *const c_void,
    dataTypeVL: cudaDataType,
    _VL: *const c_void,
    ldvl: i64,
    dataTypeVR: cudaDataType,
    _VR: *const c_void,
    ldvr: i64,
    computeType: cudaDataType,
    workspaceInBytesOnDevice: Out<'_, usize>,
    workspaceInBytesOnHost: Out<'_, usize>,
) -> Result {
    computing(handle)?;
    self::params(params)?;
    let types = (dataTypeA, dataTypeW, dataTypeVL, dataTypeVR, computeType);
    check_geev((jobvl, jobvr), (n, lda, ldvl, ldvr), types)?;
    areas(n, workspaceInBytesOnDevice, workspaceInBytesOnHost)
}

/// Eigenvalues of a real matrix are complex numbers, or real parts and behind them imaginary ones.
///
/// # Safety
/// As [`cusolverDnXgetrf`].
pub unsafe fn cusolverDnXgeev(
    handle: cusolverDnHandle_t,
    params: cusolverDnParams_t,
    jobvl: cusolverEigMode_t,
    jobvr: cusolverEigMode_t,
    n: i64,
    dataTypeA: cudaDataType,
    A: *mut c_void,
    lda: i64,
    dataTypeW: cudaDataType,
    W: *mut c_void,
    dataTypeVL: cudaDataType,
    VL: *mut c_void,
    ldvl: i64,
    dataTypeVR: cudaDataType,
    VR: *mut c_void,
    ldvr: i64,
    computeType: cudaDataType,
    _bufferOnDevice: *mut c_void,
    _workspaceInBytesOnDevice: usize,
    _bufferOnHost: *mut c_void,
    _workspaceInBytesOnHost: usize,
    info: *mut c_int,
) -> Result {
    let context = computing(handle)?;
    self::params(params)?;
    let types = (dataTypeA, dataTypeW, dataTypeVL, dataTypeVR, computeType);
    let (left, right) = check_geev((jobvl, jobvr), (n, lda, ldvl, ldvr), types)?;
    let apart = dataTypeW == real(dataTypeW);
    typed!(dataTypeA, T => {
        let a = matrix(A.cast::<T>(), (n, n), lda)?;
        let side = |wanted: bool, at: *mut c_void, ld: i64| {
            wanted.then(|| matrix(at.cast::<T>(), (n, n), ld)).transpose()
        };
        let (vl, vr) = (side(left, VL, ldvl)?, side(right, VR, ldvr)?);
        let w = array(W.cast::<<T as Scalar>::Real>(), n.saturating_mul(2))?;
        // SAFETY: as above.
        unsafe {
            context.run(info, move || general(a, (vl.map(|vl| vl.matrix), vr.map(|vr| vr.matrix)), w.get(), apart))
        }
    })
}

/// # Safety
/// The matrices are there, and room for twice n real numbers.
unsafe fn general<T: Field>(
    a: crate::arguments::Given<T>,
    sides: (Option<cusolver_cpu::Matrix<T>>, Option<cusolver_cpu::Matrix<T>>),
    w: *mut T::Real,
    apart: bool,
) -> i64 {
    let n = a.rows as usize;
    let zero = T::zero().real();
    let (mut real, mut imaginary) = (vec![zero; n], vec![zero; n]);
    // SAFETY: the caller's word.
    unsafe {
        let info = eigen::geev(a.rows, a.matrix, (&mut real, &mut imaginary), sides);
        for i in 0..n {
            let (at_real, at_imaginary) = if apart { (i, n + i) } else { (2 * i, 2 * i + 1) };
            w.add(at_real).write(real[i]);
            w.add(at_imaginary).write(imaginary[i]);
        }
        info
    }
}
