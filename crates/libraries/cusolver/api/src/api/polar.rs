//! The polar decomposition. Source: cuSOLVER manual, `cusolverDnXpolar`.

use core::ffi::{c_int, c_void};

use border::Out;
use cusolver_cpu::{Complex, polar};

use super::generic::{areas, same, typed};
use super::lifecycle::params;
use crate::arguments::{array, matrix, size};
use crate::error::require;
use crate::handle::computing;
use crate::types::*;
use crate::{Error, Result};

/// The manual's `info` where the iteration does not converge.
const NOT_CONVERGED: i64 = 10;

/// Whether A is an upper triangle; a lower one is not supported.
fn is_upper(uplo: cublasFillMode_t) -> Result<bool> {
    match uplo {
        cublasFillMode_t::CUBLAS_FILL_MODE_UPPER => Ok(true),
        cublasFillMode_t::CUBLAS_FILL_MODE_FULL => Ok(false),
        _ => Err(Error::InvalidValue("neither an upper triangle nor a general matrix")),
    }
}

fn check(
    (m, n): (i64, i64),
    lda: i64,
    (has_h, ldh): (bool, i64),
    (a, h, computed): (cudaDataType, cudaDataType, cudaDataType),
) -> Result {
    size(n)?;
    require(m >= n, "there are more columns than rows")?;
    require(lda >= m.max(1), "lda is too small")?;
    require(!has_h || ldh >= n.max(1), "ldh is too small")?;
    same(a, &[h, computed])?;
    typed!(a, T => { let _: Option<T> = None; Ok(()) })
}

pub fn cusolverDnXpolar_bufferSize(
    handle: cusolverDnHandle_t,
    params: cusolverDnParams_t,
    uplo: cublasFillMode_t,
    M: i64,
    N: i64,
    dataTypeA: cudaDataType,
    _A: *const c_void,
    lda: i64,
    dataTypeH: cudaDataType,
    H: *const c_void,
    ldh: i64,
    computeType: cudaDataType,
    workspaceInBytesOnDevice: Out<'_, usize>,
    workspaceInBytesOnHost: Out<'_, usize>,
) -> Result {
    computing(handle)?;
    self::params(params)?;
    is_upper(uplo)?;
    check((M, N), lda, (!H.is_null(), ldh), (dataTypeA, dataTypeH, computeType))?;
    areas(M, workspaceInBytesOnDevice, workspaceInBytesOnHost)
}

/// Nothing is added to A, whatever `d_res_nrm` says of it on entry, and every rank has its factors.
///
/// # Safety
/// The arrays are there as the manual says of them: those of the device's until the stream has done the work, those of the host's while
/// the call lasts.
pub unsafe fn cusolverDnXpolar(
    handle: cusolverDnHandle_t,
    params: cusolverDnParams_t,
    uplo: cublasFillMode_t,
    M: i64,
    N: i64,
    dataTypeA: cudaDataType,
    A: *mut c_void,
    lda: i64,
    dataTypeH: cudaDataType,
    H: *mut c_void,
    ldh: i64,
    computeType: cudaDataType,
    _bufferOnDevice: *mut c_void,
    _workspaceInBytesOnDevice: usize,
    _bufferOnHost: *mut c_void,
    _workspaceInBytesOnHost: usize,
    d_res_nrm: *mut f64,
    d_A_nrmF: *mut f64,
    d_rcond: *mut f64,
    d_info: *mut c_int,
) -> Result {
    let context = computing(handle)?;
    self::params(params)?;
    let is_upper = is_upper(uplo)?;
    check((M, N), lda, (!H.is_null(), ldh), (dataTypeA, dataTypeH, computeType))?;
    // Each may be NULL, which asks for nothing.
    let place = |at: *mut f64| array(at, i64::from(!at.is_null()));
    let told = [place(d_res_nrm)?, place(d_A_nrmF)?, place(d_rcond)?];
    typed!(dataTypeA, T => {
        let a = matrix(A.cast::<T>(), (M, N), lda)?;
        let h = if H.is_null() { None } else { Some(matrix(H.cast::<T>(), (N, N), ldh)?) };
        // SAFETY: the caller's word.
        unsafe {
            context.run(d_info, move || {
                let wants_residual = !told[0].get().is_null();
                let found = polar::polar(is_upper, a.rows, a.columns, a.matrix, h.map(|h| h.matrix), wants_residual);
                let values = found.map_or([f64::NAN; 3], |found| [found.residual, found.norm, found.rcond]);
                for (at, value) in told.iter().zip(values).filter(|(at, _)| !at.get().is_null()) {
                    at.get().write(value);
                }
                if found.is_some() { 0 } else { NOT_CONVERGED }
            })
        }
    })
}
