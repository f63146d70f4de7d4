//! The 64-bit API's first names, which have one work area and are deprecated: each is its successor. Source: cuSOLVER manual, "Dense Linear
//! Solver Reference (64-bit API)".

use core::ffi::{c_int, c_schar, c_void};
use core::ptr::null_mut;

use border::Out;

use super::generic::*;
use crate::Result;
use crate::types::*;

pub fn cusolverDnGetrf_bufferSize(
    handle: cusolverDnHandle_t,
    params: cusolverDnParams_t,
    m: i64,
    n: i64,
    dataTypeA: cudaDataType,
    A: *const c_void,
    lda: i64,
    computeType: cudaDataType,
    workspaceInBytes: Out<'_, usize>,
) -> Result {
    cusolverDnXgetrf_bufferSize(
        handle,
        params,
        m,
        n,
        dataTypeA,
        A,
        lda,
        computeType,
        workspaceInBytes,
        (&mut 0).into(),
    )
}

/// # Safety
/// As [`cusolverDnXgetrf`].
pub unsafe fn cusolverDnGetrf(
    handle: cusolverDnHandle_t,
    params: cusolverDnParams_t,
    m: i64,
    n: i64,
    dataTypeA: cudaDataType,
    A: *mut c_void,
    lda: i64,
    ipiv: *mut i64,
    computeType: cudaDataType,
    pBuffer: *mut c_void,
    workspaceInBytes: usize,
    info: *mut c_int,
) -> Result {
    // SAFETY: the caller's word.
    unsafe {
        cusolverDnXgetrf(
            handle,
            params,
            m,
            n,
            dataTypeA,
            A,
            lda,
            ipiv,
            computeType,
            pBuffer,
            workspaceInBytes,
            null_mut(),
            0,
            info,
        )
    }
}

/// # Safety
/// As [`cusolverDnXgetrf`].
pub unsafe fn cusolverDnGetrs(
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
    // SAFETY: the caller's word.
    unsafe {
        cusolverDnXgetrs(handle, params, trans, n, nrhs, dataTypeA, A, lda, ipiv, dataTypeB, B, ldb, info)
    }
}

pub fn cusolverDnPotrf_bufferSize(
    handle: cusolverDnHandle_t,
    params: cusolverDnParams_t,
    uplo: cublasFillMode_t,
    n: i64,
    dataTypeA: cudaDataType,
    A: *const c_void,
    lda: i64,
    computeType: cudaDataType,
    workspaceInBytes: Out<'_, usize>,
) -> Result {
    cusolverDnXpotrf_bufferSize(
        handle,
        params,
        uplo,
        n,
        dataTypeA,
        A,
        lda,
        computeType,
        workspaceInBytes,
        (&mut 0).into(),
    )
}

/// # Safety
/// As [`cusolverDnXgetrf`].
pub unsafe fn cusolverDnPotrf(
    handle: cusolverDnHandle_t,
    params: cusolverDnParams_t,
    uplo: cublasFillMode_t,
    n: i64,
    dataTypeA: cudaDataType,
    A: *mut c_void,
    lda: i64,
    computeType: cudaDataType,
    pBuffer: *mut c_void,
    workspaceInBytes: usize,
    info: *mut c_int,
) -> Result {
    // SAFETY: the caller's word.
    unsafe {
        cusolverDnXpotrf(
            handle,
            params,
            uplo,
            n,
            dataTypeA,
            A,
            lda,
            computeType,
            pBuffer,
            workspaceInBytes,
            null_mut(),
            0,
            info,
        )
    }
}

/// # Safety
/// As [`cusolverDnXgetrf`].
pub unsafe fn cusolverDnPotrs(
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
    // SAFETY: the caller's word.
    unsafe { cusolverDnXpotrs(handle, params, uplo, n, nrhs, dataTypeA, A, lda, dataTypeB, B, ldb, info) }
}

pub fn cusolverDnGeqrf_bufferSize(
    handle: cusolverDnHandle_t,
    params: cusolverDnParams_t,
    m: i64,
    n: i64,
    dataTypeA: cudaDataType,
    A: *const c_void,
    lda: i64,
    dataTypeTau: cudaDataType,
    tau: *const c_void,
    computeType: cudaDataType,
    workspaceInBytes: Out<'_, usize>,
) -> Result {
    cusolverDnXgeqrf_bufferSize(
        handle,
        params,
        m,
        n,
        dataTypeA,
        A,
        lda,
        dataTypeTau,
        tau,
        computeType,
        workspaceInBytes,
        (&mut 0).into(),
    )
}

/// # Safety
/// As [`cusolverDnXgetrf`].
pub unsafe fn cusolverDnGeqrf(
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
    pBuffer: *mut c_void,
    workspaceInBytes: usize,
    info: *mut c_int,
) -> Result {
    // SAFETY: the caller's word.
    unsafe {
        cusolverDnXgeqrf(
            handle,
            params,
            m,
            n,
            dataTypeA,
            A,
            lda,
            dataTypeTau,
            tau,
            computeType,
            pBuffer,
            workspaceInBytes,
            null_mut(),
            0,
            info,
        )
    }
}

pub fn cusolverDnSyevd_bufferSize(
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
    workspaceInBytes: Out<'_, usize>,
) -> Result {
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
        workspaceInBytes,
        (&mut 0).into(),
    )
}

/// # Safety
/// As [`cusolverDnXgetrf`].
pub unsafe fn cusolverDnSyevd(
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
    pBuffer: *mut c_void,
    workspaceInBytes: usize,
    info: *mut c_int,
) -> Result {
    // SAFETY: the caller's word.
    unsafe {
        cusolverDnXsyevd(
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
            pBuffer,
            workspaceInBytes,
            null_mut(),
            0,
            info,
        )
    }
}

/// # Safety
/// As [`cusolverDnXgetrf`].
pub unsafe fn cusolverDnSyevdx_bufferSize(
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
    h_meig: *mut i64,
    dataTypeW: cudaDataType,
    W: *const c_void,
    computeType: cudaDataType,
    workspaceInBytes: Out<'_, usize>,
) -> Result {
    // SAFETY: the caller's word.
    unsafe {
        cusolverDnXsyevdx_bufferSize(
            handle,
            params,
            jobz,
            range,
            uplo,
            n,
            dataTypeA,
            A,
            lda,
            vl,
            vu,
            il,
            iu,
            h_meig,
            dataTypeW,
            W,
            computeType,
            workspaceInBytes,
            (&mut 0).into(),
        )
    }
}

/// # Safety
/// As [`cusolverDnXgetrf`].
pub unsafe fn cusolverDnSyevdx(
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
    pBuffer: *mut c_void,
    workspaceInBytes: usize,
    info: *mut c_int,
) -> Result {
    // SAFETY: the caller's word.
    unsafe {
        cusolverDnXsyevdx(
            handle,
            params,
            jobz,
            range,
            uplo,
            n,
            dataTypeA,
            A,
            lda,
            vl,
            vu,
            il,
            iu,
            meig64,
            dataTypeW,
            W,
            computeType,
            pBuffer,
            workspaceInBytes,
            null_mut(),
            0,
            info,
        )
    }
}

pub fn cusolverDnGesvd_bufferSize(
    handle: cusolverDnHandle_t,
    params: cusolverDnParams_t,
    jobu: c_schar,
    jobvt: c_schar,
    m: i64,
    n: i64,
    dataTypeA: cudaDataType,
    A: *const c_void,
    lda: i64,
    dataTypeS: cudaDataType,
    S: *const c_void,
    dataTypeU: cudaDataType,
    U: *const c_void,
    ldu: i64,
    dataTypeVT: cudaDataType,
    VT: *const c_void,
    ldvt: i64,
    computeType: cudaDataType,
    workspaceInBytes: Out<'_, usize>,
) -> Result {
    cusolverDnXgesvd_bufferSize(
        handle,
        params,
        jobu,
        jobvt,
        m,
        n,
        dataTypeA,
        A,
        lda,
        dataTypeS,
        S,
        dataTypeU,
        U,
        ldu,
        dataTypeVT,
        VT,
        ldvt,
        computeType,
        workspaceInBytes,
        (&mut 0).into(),
    )
}

/// # Safety
/// As [`cusolverDnXgetrf`].
pub unsafe fn cusolverDnGesvd(
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
    pBuffer: *mut c_void,
    workspaceInBytes: usize,
    info: *mut c_int,
) -> Result {
    // SAFETY: the caller's word.
    unsafe {
        cusolverDnXgesvd(
            handle,
            params,
            jobu,
            jobvt,
            m,
            n,
            dataTypeA,
            A,
            lda,
            dataTypeS,
            S,
            dataTypeU,
            U,
            ldu,
            dataTypeVT,
            VT,
            ldvt,
            computeType,
            pBuffer,
            workspaceInBytes,
            null_mut(),
            0,
            info,
        )
    }
}
