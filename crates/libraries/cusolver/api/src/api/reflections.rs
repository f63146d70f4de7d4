//! Blocks of reflections. Source: cuSOLVER manual, `cusolverDnXlarft`.

use core::ffi::c_void;

use border::Out;
use cusolver_cpu::{Complex, qr};

use super::generic::{areas, same, typed};
use super::lifecycle::params;
use crate::arguments::{array, matrix};
use crate::error::require;
use crate::handle::computing;
use crate::types::*;
use crate::{Error, Result};

/// Whether the first reflection is the product's first factor.
fn check(
    direct: cusolverDirectMode_t,
    storev: cusolverStorevMode_t,
    (n, k, ldv, ldt): (i64, i64, i64, i64),
    (v, others): (cudaDataType, [cudaDataType; 3]),
) -> Result<bool> {
    let forward = match direct {
        cusolverDirectMode_t::CUBLAS_DIRECT_FORWARD => true,
        cusolverDirectMode_t::CUBLAS_DIRECT_BACKWARD => false,
        _ => return Err(Error::InvalidValue("there is no such direction")),
    };
    require(
        storev == cusolverStorevMode_t::CUBLAS_STOREV_COLUMNWISE,
        "larft: vectors that are not stored as columns",
    )?;
    require(k >= 0 && n >= k, "larft: not n >= k >= 0")?;
    require(ldv >= n.max(1) && ldt >= k.max(1), "a leading dimension is smaller than a column")?;
    same(v, &others)?;
    typed!(v, T => { let _: Option<T> = None; Ok(forward) })
}

pub fn cusolverDnXlarft_bufferSize(
    handle: cusolverDnHandle_t,
    params: cusolverDnParams_t,
    direct: cusolverDirectMode_t,
    storev: cusolverStorevMode_t,
    n: i64,
    k: i64,
    dataTypeV: cudaDataType,
    _V: *const c_void,
    ldv: i64,
    dataTypeTau: cudaDataType,
    _tau: *const c_void,
    dataTypeT: cudaDataType,
    _T: *mut c_void,
    ldt: i64,
    computeType: cudaDataType,
    workspaceInBytesOnDevice: Out<'_, usize>,
    workspaceInBytesOnHost: Out<'_, usize>,
) -> Result {
    computing(handle)?;
    self::params(params)?;
    check(direct, storev, (n, k, ldv, ldt), (dataTypeV, [dataTypeTau, dataTypeT, computeType]))?;
    areas(k, workspaceInBytesOnDevice, workspaceInBytesOnHost)
}

/// The other triangle of T stays as it is, as LAPACK leaves it.
///
/// # Safety
/// The arrays are there as the manual says of them: those of the device's until the stream has done the work, those of the host's while
/// the call lasts.
pub unsafe fn cusolverDnXlarft(
    handle: cusolverDnHandle_t,
    params: cusolverDnParams_t,
    direct: cusolverDirectMode_t,
    storev: cusolverStorevMode_t,
    n: i64,
    k: i64,
    dataTypeV: cudaDataType,
    V: *const c_void,
    ldv: i64,
    dataTypeTau: cudaDataType,
    tau: *const c_void,
    dataTypeT: cudaDataType,
    T: *mut c_void,
    ldt: i64,
    computeType: cudaDataType,
    _bufferOnDevice: *mut c_void,
    _workspaceInBytesOnDevice: usize,
    _bufferOnHost: *mut c_void,
    _workspaceInBytesOnHost: usize,
) -> Result {
    let context = computing(handle)?;
    self::params(params)?;
    let types = (dataTypeV, [dataTypeTau, dataTypeT, computeType]);
    let forward = check(direct, storev, (n, k, ldv, ldt), types)?;
    typed!(dataTypeV, S => {
        let (v, t) = (matrix(V.cast::<S>(), (n, k), ldv)?, matrix(T.cast::<S>(), (k, k), ldt)?);
        let tau = array(tau.cast::<S>(), k)?;
        // SAFETY: the caller's word.
        context.enqueue(move || unsafe { qr::larft(forward, n, k, v.matrix, tau.get(), t.matrix) })
    })
}
