//! Calls of the 64-bit API that hipSOLVER, or a release of it, has for one type and sizes of `int` alone: where the sizes fit, that is
//! called. Work areas have bytes here and elements there.

#![expect(clippy::too_many_arguments, reason = "C's")]

use core::ffi::{c_int, c_schar, c_void};
use core::ptr::null_mut;

use super::HipCall;
use super::calls;
use crate::api::generic::{real, same};
use crate::api::lifecycle::params as check_params;
use crate::error::require;
use crate::types::*;
use crate::{Error, Result};

/// Calls the function of the type.
macro_rules! by_type {
    ($ty:expr, [$s:ident, $d:ident, $c:ident, $z:ident]($($argument:expr),* $(,)?)) => {
        // SAFETY: each hands on its caller's promise, arrays being of that type.
        unsafe {
            match $ty {
                cudaDataType::CUDA_R_32F => calls::$s($($argument),*),
                cudaDataType::CUDA_R_64F => calls::$d($($argument),*),
                cudaDataType::CUDA_C_32F => calls::$c($($argument),*),
                cudaDataType::CUDA_C_64F => calls::$z($($argument),*),
                _ => Err(Error::InvalidValue("a type other than float, double and their complex ones")),
            }
        }
    };
}

/// Sizes as the functions for one type have them; `Ok(false)` for the caller where one does not fit.
macro_rules! narrow {
    ($($size:ident),*) => {
        let ($(Ok($size),)*) = ($(c_int::try_from($size),)*) else { return Ok(false) };
    };
}

fn bytes(ty: cudaDataType) -> usize {
    match ty {
        cudaDataType::CUDA_R_32F => 4,
        cudaDataType::CUDA_C_64F => 16,
        _ => 8,
    }
}

fn elements(area: usize, ty: cudaDataType) -> c_int {
    c_int::try_from(area / bytes(ty)).unwrap_or(c_int::MAX)
}

/// Sizes of work areas, which hipSOLVER has on the device alone.
///
/// # Safety
/// NULL, or places of numbers.
unsafe fn areas(lwork: c_int, ty: cudaDataType, device: *mut usize, host: *mut usize) -> Result<bool> {
    require(!device.is_null() && !host.is_null(), "a place for a size is NULL")?;
    let size = usize::try_from(lwork).unwrap_or_default().saturating_mul(bytes(ty));
    // SAFETY: cuSOLVER's contract: places of numbers.
    unsafe {
        device.write(size);
        host.write(0);
    }
    Ok(true)
}

/// # Safety
/// cuSOLVER's contract for the pointers.
pub unsafe fn cusolverDnXpotrf_bufferSize(
    hip: &HipCall,
    params: cusolverDnParams_t,
    uplo: cublasFillMode_t,
    n: i64,
    dataTypeA: cudaDataType,
    A: *const c_void,
    lda: i64,
    computeType: cudaDataType,
    workspaceInBytesOnDevice: *mut usize,
    workspaceInBytesOnHost: *mut usize,
) -> Result<bool> {
    check_params(params)?;
    same(dataTypeA, &[computeType])?;
    narrow!(n, lda);
    let mut lwork = 0;
    let A = A.cast_mut();
    Ok(by_type!(
        dataTypeA,
        [
            cusolverDnSpotrf_bufferSize,
            cusolverDnDpotrf_bufferSize,
            cusolverDnCpotrf_bufferSize,
            cusolverDnZpotrf_bufferSize
        ](hip, uplo, n, A.cast(), lda, &mut lwork) // SAFETY: the caller's word.
    )? && unsafe { areas(lwork, dataTypeA, workspaceInBytesOnDevice, workspaceInBytesOnHost) }?)
}

/// # Safety
/// cuSOLVER's contract for the pointers.
pub unsafe fn cusolverDnXpotrf(
    hip: &HipCall,
    params: cusolverDnParams_t,
    uplo: cublasFillMode_t,
    n: i64,
    dataTypeA: cudaDataType,
    A: *mut c_void,
    lda: i64,
    computeType: cudaDataType,
    bufferOnDevice: *mut c_void,
    workspaceInBytesOnDevice: usize,
    _bufferOnHost: *mut c_void,
    _workspaceInBytesOnHost: usize,
    info: *mut c_int,
) -> Result<bool> {
    check_params(params)?;
    same(dataTypeA, &[computeType])?;
    narrow!(n, lda);
    let (work, lwork) = (bufferOnDevice, elements(workspaceInBytesOnDevice, dataTypeA));
    by_type!(
        dataTypeA,
        [cusolverDnSpotrf, cusolverDnDpotrf, cusolverDnCpotrf, cusolverDnZpotrf](
            hip,
            uplo,
            n,
            A.cast(),
            lda,
            work.cast(),
            lwork,
            info
        )
    )
}

/// # Safety
/// cuSOLVER's contract for the pointers.
pub unsafe fn cusolverDnXpotrs(
    hip: &HipCall,
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
) -> Result<bool> {
    check_params(params)?;
    same(dataTypeA, &[dataTypeB])?;
    narrow!(n, nrhs, lda, ldb);
    by_type!(
        dataTypeA,
        [cusolverDnSpotrs, cusolverDnDpotrs, cusolverDnCpotrs, cusolverDnZpotrs](
            hip,
            uplo,
            n,
            nrhs,
            A.cast(),
            lda,
            B.cast(),
            ldb,
            info
        )
    )
}

/// # Safety
/// cuSOLVER's contract for the pointers.
pub unsafe fn cusolverDnXgeqrf_bufferSize(
    hip: &HipCall,
    params: cusolverDnParams_t,
    m: i64,
    n: i64,
    dataTypeA: cudaDataType,
    A: *const c_void,
    lda: i64,
    dataTypeTau: cudaDataType,
    _tau: *const c_void,
    computeType: cudaDataType,
    workspaceInBytesOnDevice: *mut usize,
    workspaceInBytesOnHost: *mut usize,
) -> Result<bool> {
    check_params(params)?;
    same(dataTypeA, &[dataTypeTau, computeType])?;
    narrow!(m, n, lda);
    let mut lwork = 0;
    let A = A.cast_mut();
    Ok(by_type!(
        dataTypeA,
        [
            cusolverDnSgeqrf_bufferSize,
            cusolverDnDgeqrf_bufferSize,
            cusolverDnCgeqrf_bufferSize,
            cusolverDnZgeqrf_bufferSize
        ](hip, m, n, A.cast(), lda, &mut lwork) // SAFETY: the caller's word.
    )? && unsafe { areas(lwork, dataTypeA, workspaceInBytesOnDevice, workspaceInBytesOnHost) }?)
}

/// # Safety
/// cuSOLVER's contract for the pointers.
pub unsafe fn cusolverDnXgeqrf(
    hip: &HipCall,
    params: cusolverDnParams_t,
    m: i64,
    n: i64,
    dataTypeA: cudaDataType,
    A: *mut c_void,
    lda: i64,
    dataTypeTau: cudaDataType,
    tau: *mut c_void,
    computeType: cudaDataType,
    bufferOnDevice: *mut c_void,
    workspaceInBytesOnDevice: usize,
    _bufferOnHost: *mut c_void,
    _workspaceInBytesOnHost: usize,
    info: *mut c_int,
) -> Result<bool> {
    check_params(params)?;
    same(dataTypeA, &[dataTypeTau, computeType])?;
    narrow!(m, n, lda);
    let (work, lwork) = (bufferOnDevice, elements(workspaceInBytesOnDevice, dataTypeA));
    by_type!(
        dataTypeA,
        [cusolverDnSgeqrf, cusolverDnDgeqrf, cusolverDnCgeqrf, cusolverDnZgeqrf](
            hip,
            m,
            n,
            A.cast(),
            lda,
            tau.cast(),
            work.cast(),
            lwork,
            info
        )
    )
}

/// # Safety
/// cuSOLVER's contract for the pointers.
pub unsafe fn cusolverDnXsyevd_bufferSize(
    hip: &HipCall,
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
    workspaceInBytesOnDevice: *mut usize,
    workspaceInBytesOnHost: *mut usize,
) -> Result<bool> {
    check_params(params)?;
    same(dataTypeA, &[computeType])?;
    same(real(dataTypeA), &[dataTypeW])?;
    narrow!(n, lda);
    let mut lwork = 0;
    Ok(by_type!(
        dataTypeA,
        [
            cusolverDnSsyevd_bufferSize,
            cusolverDnDsyevd_bufferSize,
            cusolverDnCheevd_bufferSize,
            cusolverDnZheevd_bufferSize
        ](hip, jobz, uplo, n, A.cast(), lda, W.cast(), &mut lwork) // SAFETY: the caller's word.
    )? && unsafe { areas(lwork, dataTypeA, workspaceInBytesOnDevice, workspaceInBytesOnHost) }?)
}

/// # Safety
/// cuSOLVER's contract for the pointers.
pub unsafe fn cusolverDnXsyevd(
    hip: &HipCall,
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
    bufferOnDevice: *mut c_void,
    workspaceInBytesOnDevice: usize,
    _bufferOnHost: *mut c_void,
    _workspaceInBytesOnHost: usize,
    info: *mut c_int,
) -> Result<bool> {
    check_params(params)?;
    same(dataTypeA, &[computeType])?;
    same(real(dataTypeA), &[dataTypeW])?;
    narrow!(n, lda);
    let (work, lwork) = (bufferOnDevice, elements(workspaceInBytesOnDevice, dataTypeA));
    by_type!(
        dataTypeA,
        [cusolverDnSsyevd, cusolverDnDsyevd, cusolverDnCheevd, cusolverDnZheevd](
            hip,
            jobz,
            uplo,
            n,
            A.cast(),
            lda,
            W.cast(),
            work.cast(),
            lwork,
            info
        )
    )
}

/// # Safety
/// cuSOLVER's contract for the pointers.
pub unsafe fn cusolverDnXgesvd_bufferSize(
    hip: &HipCall,
    params: cusolverDnParams_t,
    _jobu: c_schar,
    _jobvt: c_schar,
    m: i64,
    n: i64,
    dataTypeA: cudaDataType,
    _A: *const c_void,
    _lda: i64,
    dataTypeS: cudaDataType,
    _S: *const c_void,
    dataTypeU: cudaDataType,
    _U: *const c_void,
    _ldu: i64,
    dataTypeVT: cudaDataType,
    _VT: *const c_void,
    _ldvt: i64,
    computeType: cudaDataType,
    workspaceInBytesOnDevice: *mut usize,
    workspaceInBytesOnHost: *mut usize,
) -> Result<bool> {
    check_params(params)?;
    same(dataTypeA, &[dataTypeU, dataTypeVT, computeType])?;
    same(real(dataTypeA), &[dataTypeS])?;
    narrow!(m, n);
    let mut lwork = 0;
    Ok(by_type!(
        dataTypeA,
        [
            cusolverDnSgesvd_bufferSize,
            cusolverDnDgesvd_bufferSize,
            cusolverDnCgesvd_bufferSize,
            cusolverDnZgesvd_bufferSize
        ](hip, m, n, &mut lwork) // SAFETY: the caller's word.
    )? && unsafe { areas(lwork, dataTypeA, workspaceInBytesOnDevice, workspaceInBytesOnHost) }?)
}

/// # Safety
/// cuSOLVER's contract for the pointers.
pub unsafe fn cusolverDnXgesvd(
    hip: &HipCall,
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
    bufferOnDevice: *mut c_void,
    workspaceInBytesOnDevice: usize,
    _bufferOnHost: *mut c_void,
    _workspaceInBytesOnHost: usize,
    info: *mut c_int,
) -> Result<bool> {
    check_params(params)?;
    same(dataTypeA, &[dataTypeU, dataTypeVT, computeType])?;
    same(real(dataTypeA), &[dataTypeS])?;
    narrow!(m, n, lda, ldu, ldvt);
    let (work, lwork) = (bufferOnDevice, elements(workspaceInBytesOnDevice, dataTypeA));
    by_type!(
        dataTypeA,
        [cusolverDnSgesvd, cusolverDnDgesvd, cusolverDnCgesvd, cusolverDnZgesvd](
            hip,
            jobu,
            jobvt,
            m,
            n,
            A.cast(),
            lda,
            S.cast(),
            U.cast(),
            ldu,
            VT.cast(),
            ldvt,
            work.cast(),
            lwork,
            null_mut(),
            info
        )
    )
}

/// A limit of a range, of the real type; 0 where none is given.
///
/// # Safety
/// A number of that type is there, or NULL.
unsafe fn limit<R: Copy + Default>(at: *const c_void) -> R {
    // SAFETY: the caller's word.
    if at.is_null() { R::default() } else { unsafe { at.cast::<R>().read_unaligned() } }
}

/// # Safety
/// cuSOLVER's contract for the pointers.
pub unsafe fn cusolverDnXsyevdx_bufferSize(
    hip: &HipCall,
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
    workspaceInBytesOnDevice: *mut usize,
    workspaceInBytesOnHost: *mut usize,
) -> Result<bool> {
    check_params(params)?;
    same(dataTypeA, &[computeType])?;
    same(real(dataTypeA), &[dataTypeW])?;
    narrow!(n, lda, il, iu);
    let (mut lwork, mut found) = (0, 0);
    Ok(by_type!(
        dataTypeA,
        [
            cusolverDnSsyevdx_bufferSize,
            cusolverDnDsyevdx_bufferSize,
            cusolverDnCheevdx_bufferSize,
            cusolverDnZheevdx_bufferSize
        ](
            hip,
            jobz,
            range,
            uplo,
            n,
            A.cast(),
            lda,
            limit(vl),
            limit(vu),
            il,
            iu,
            &mut found,
            W.cast(),
            &mut lwork
        ) // SAFETY: the caller's word.
    )? && unsafe { areas(lwork, dataTypeA, workspaceInBytesOnDevice, workspaceInBytesOnHost) }?)
}

/// # Safety
/// cuSOLVER's contract for the pointers.
pub unsafe fn cusolverDnXsyevdx(
    hip: &HipCall,
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
    bufferOnDevice: *mut c_void,
    workspaceInBytesOnDevice: usize,
    _bufferOnHost: *mut c_void,
    _workspaceInBytesOnHost: usize,
    info: *mut c_int,
) -> Result<bool> {
    check_params(params)?;
    same(dataTypeA, &[computeType])?;
    same(real(dataTypeA), &[dataTypeW])?;
    require(!meig64.is_null(), "the place for the number of eigenvalues is NULL")?;
    narrow!(n, lda, il, iu);
    let (work, lwork) = (bufferOnDevice, elements(workspaceInBytesOnDevice, dataTypeA));
    let mut found = 0;
    let done = by_type!(
        dataTypeA,
        [cusolverDnSsyevdx, cusolverDnDsyevdx, cusolverDnCheevdx, cusolverDnZheevdx](
            hip,
            jobz,
            range,
            uplo,
            n,
            A.cast(),
            lda,
            limit(vl),
            limit(vu),
            il,
            iu,
            &mut found,
            W.cast(),
            work.cast(),
            lwork,
            info
        )
    )?;
    if done {
        // SAFETY: cuSOLVER's contract: a number's place on the host.
        unsafe { meig64.write(found.into()) };
    }
    Ok(done)
}
