//! Hermitian matrices that need not be positive. Source: cuSOLVER manual, `cusolverDnXhetrf` and `cusolverDnXhetrs`, which take complex numbers
//! alone; symmetric ones are `cusolverDnXsytrf`'s. Work areas are not used.

use core::ffi::{c_int, c_void};

use border::Out;
use cusolver_cpu::Complex;
use cusolver_cpu::indefinite::Kind;

use super::generic::{areas, check_square, same};
use super::lifecycle::params;
use super::systems::{bunch_kaufman, solve_symmetric};
use crate::arguments::{matrix, triangle};
use crate::error::require;
use crate::handle::computing;
use crate::types::*;
use crate::{Error, Result};

/// Runs a body with `$T` as the complex type that a call computes with.
macro_rules! complex {
    ($ty:expr, $T:ident => $body:expr) => {
        match $ty {
            cudaDataType::CUDA_C_32F => {
                type $T = Complex<f32>;
                $body
            }
            cudaDataType::CUDA_C_64F => {
                type $T = Complex<f64>;
                $body
            }
            _ => Err(Error::InvalidValue("a type that is not complex, or too narrow")),
        }
    };
}

pub fn cusolverDnXhetrf_bufferSize(
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
    complex!(dataTypeA, T => { let _: Option<T> = None; areas(n, workspaceInBytesOnDevice, workspaceInBytesOnHost) })
}

/// # Safety
/// The arrays are there as the manual says of them: those of the device's until the stream has done the work, those of the host's while
/// the call lasts.
pub unsafe fn cusolverDnXhetrf(
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
    complex!(dataTypeA, T => {
        // SAFETY: the caller's word.
        unsafe {
            context.run(info, bunch_kaufman(Kind::Hermitian, uplo, matrix(A.cast::<T>(), (n, n), lda)?, ipiv)?)
        }
    })
}

pub fn cusolverDnXhetrs_bufferSize(
    handle: cusolverDnHandle_t,
    params: cusolverDnParams_t,
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
    self::params(params)?;
    triangle(uplo)?;
    same(dataTypeA, &[dataTypeB])?;
    check_square(n, lda)?;
    require(nrhs >= 0 && ldb >= n.max(1), "a size is negative, or ldb too small")?;
    complex!(dataTypeA, T => { let _: Option<T> = None; areas(n, workspaceInBytesOnDevice, workspaceInBytesOnHost) })
}

/// # Safety
/// As [`cusolverDnXhetrf`].
pub unsafe fn cusolverDnXhetrs(
    handle: cusolverDnHandle_t,
    params: cusolverDnParams_t,
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
    self::params(params)?;
    same(dataTypeA, &[dataTypeB])?;
    complex!(dataTypeA, T => {
        let (a, b) = (matrix(A.cast::<T>(), (n, n), lda)?, matrix(B.cast::<T>(), (n, nrhs), ldb)?);
        // SAFETY: the caller's word.
        unsafe { context.run(info, solve_symmetric(Kind::Hermitian, uplo, a, ipiv, b)?) }
    })
}
