//! Singular values by methods of their own in the 64-bit API. Source: cuSOLVER manual, `cusolverDnXgesvdp` and `cusolverDnXgesvdr`.

use core::ffi::{c_int, c_schar, c_void};

use border::Out;
use cusolver_cpu::svd::{self, Sketch};
use cusolver_cpu::{Complex, Scalar};

use super::generic::{areas, real, same, typed};
use super::lifecycle::params;
use crate::arguments::{array, matrix, place, vectors};
use crate::error::require;
use crate::handle::computing;
use crate::types::*;
use crate::{Error, Result};

/// What a call says of U's or V's letter.
fn is_wanted(job: c_schar) -> Result<bool> {
    match job as u8 {
        b'S' => Ok(true),
        b'N' => Ok(false),
        _ => Err(Error::InvalidValue("there is no such job")),
    }
}

fn check_types(
    a: cudaDataType,
    s: cudaDataType,
    (u, v): (cudaDataType, cudaDataType),
    computed: cudaDataType,
) -> Result {
    same(a, &[u, v, computed])?;
    same(real(a), &[s])
}

fn check_shape((m, n): (i64, i64), lda: i64) -> Result {
    require(m >= 0 && n >= 0 && lda >= m.max(1), "a size is negative, or lda too small")
}

pub fn cusolverDnXgesvdp_bufferSize(
    handle: cusolverDnHandle_t,
    params: cusolverDnParams_t,
    jobz: cusolverEigMode_t,
    econ: c_int,
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
    dataTypeV: cudaDataType,
    _V: *const c_void,
    _ldv: i64,
    computeType: cudaDataType,
    workspaceInBytesOnDevice: Out<'_, usize>,
    workspaceInBytesOnHost: Out<'_, usize>,
) -> Result {
    computing(handle)?;
    self::params(params)?;
    vectors(jobz)?;
    require(matches!(econ, 0 | 1), "econ is neither 0 nor 1")?;
    check_types(dataTypeA, dataTypeS, (dataTypeU, dataTypeV), computeType)?;
    check_shape((m, n), lda)?;
    areas(m.max(n), workspaceInBytesOnDevice, workspaceInBytesOnHost)
}

/// By the method of `gesvd`, and not by the polar decomposition: nothing is added to A, so that `h_err_sigma`, by how much singular values may
/// be off for what is added, is 0. It goes to the host, for which the call waits.
///
/// # Safety
/// The arrays are there as the manual says of them: those of the device's until the stream has done the work, those of the host's while
/// the call lasts.
pub unsafe fn cusolverDnXgesvdp(
    handle: cusolverDnHandle_t,
    params: cusolverDnParams_t,
    jobz: cusolverEigMode_t,
    econ: c_int,
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
    dataTypeV: cudaDataType,
    V: *mut c_void,
    ldv: i64,
    computeType: cudaDataType,
    _bufferOnDevice: *mut c_void,
    _workspaceInBytesOnDevice: usize,
    _bufferOnHost: *mut c_void,
    _workspaceInBytesOnHost: usize,
    d_info: *mut c_int,
    h_err_sigma: *mut f64,
) -> Result {
    let context = computing(handle)?;
    self::params(params)?;
    let wanted = vectors(jobz)?;
    require(matches!(econ, 0 | 1), "econ is neither 0 nor 1")?;
    check_types(dataTypeA, dataTypeS, (dataTypeU, dataTypeV), computeType)?;
    check_shape((m, n), lda)?;
    let error = place(h_err_sigma)?;
    typed!(dataTypeA, T => {
        let a = matrix(A.cast::<T>(), (m, n), lda)?;
        let s = array(S.cast::<<T as Scalar>::Real>(), m.min(n))?;
        let columns = |of: i64| if econ == 1 { m.min(n) } else { of };
        let vectors = match wanted {
            true => {
                let u = matrix(U.cast::<T>(), (m, columns(m)), ldu)?;
                Some((u, matrix(V.cast::<T>(), (n, columns(n)), ldv)?))
            }
            false => None,
        };
        // SAFETY: the caller's word.
        unsafe {
            context.run(d_info, move || {
                let vectors = vectors.map(|(u, v)| (u.matrix, v.matrix));
                error.get().write(0.0);
                svd::gesvdp(econ == 0, a.rows, a.columns, a.matrix, s.get(), vectors)
            })
        }
    })?;
    context.deliver()
}

fn check_rank((m, n): (i64, i64), (k, p, niters): (i64, i64, i64)) -> Result {
    require(k >= 0 && p >= 0 && niters >= 0, "k, p or niters is negative")?;
    require(k.checked_add(p).is_some_and(|sum| sum <= m.min(n)), "k + p is more than the matrix has")
}

pub fn cusolverDnXgesvdr_bufferSize(
    handle: cusolverDnHandle_t,
    params: cusolverDnParams_t,
    jobu: c_schar,
    jobv: c_schar,
    m: i64,
    n: i64,
    k: i64,
    p: i64,
    niters: i64,
    dataTypeA: cudaDataType,
    _A: *const c_void,
    lda: i64,
    dataTypeSrand: cudaDataType,
    _Srand: *const c_void,
    dataTypeUrand: cudaDataType,
    _Urand: *const c_void,
    _ldUrand: i64,
    dataTypeVrand: cudaDataType,
    _Vrand: *const c_void,
    _ldVrand: i64,
    computeType: cudaDataType,
    workspaceInBytesOnDevice: Out<'_, usize>,
    workspaceInBytesOnHost: Out<'_, usize>,
) -> Result {
    computing(handle)?;
    self::params(params)?;
    is_wanted(jobu)?;
    is_wanted(jobv)?;
    check_types(dataTypeA, dataTypeSrand, (dataTypeUrand, dataTypeVrand), computeType)?;
    check_shape((m, n), lda)?;
    check_rank((m, n), (k, p, niters))?;
    areas(m.max(n), workspaceInBytesOnDevice, workspaceInBytesOnHost)
}

/// V has the right singular vectors as its columns.
///
/// # Safety
/// As [`cusolverDnXgesvdp`].
pub unsafe fn cusolverDnXgesvdr(
    handle: cusolverDnHandle_t,
    params: cusolverDnParams_t,
    jobu: c_schar,
    jobv: c_schar,
    m: i64,
    n: i64,
    k: i64,
    p: i64,
    niters: i64,
    dataTypeA: cudaDataType,
    A: *mut c_void,
    lda: i64,
    dataTypeSrand: cudaDataType,
    Srand: *mut c_void,
    dataTypeUrand: cudaDataType,
    Urand: *mut c_void,
    ldUrand: i64,
    dataTypeVrand: cudaDataType,
    Vrand: *mut c_void,
    ldVrand: i64,
    computeType: cudaDataType,
    _bufferOnDevice: *mut c_void,
    _workspaceInBytesOnDevice: usize,
    _bufferOnHost: *mut c_void,
    _workspaceInBytesOnHost: usize,
    d_info: *mut c_int,
) -> Result {
    let context = computing(handle)?;
    self::params(params)?;
    let (with_u, with_v) = (is_wanted(jobu)?, is_wanted(jobv)?);
    check_types(dataTypeA, dataTypeSrand, (dataTypeUrand, dataTypeVrand), computeType)?;
    check_shape((m, n), lda)?;
    check_rank((m, n), (k, p, niters))?;
    typed!(dataTypeA, T => {
        let a = matrix(A.cast::<T>(), (m, n), lda)?;
        let s = array(Srand.cast::<<T as Scalar>::Real>(), k)?;
        let u = if with_u { Some(matrix(Urand.cast::<T>(), (m, k), ldUrand)?) } else { None };
        let v = if with_v { Some(matrix(Vrand.cast::<T>(), (n, k), ldVrand)?) } else { None };
        let sketch = Sketch { more: p, powers: niters };
        // SAFETY: the caller's word.
        unsafe {
            context.run(d_info, move || {
                let vectors = (u.map(|u| u.matrix), v.map(|v| v.matrix));
                svd::gesvdr(k, sketch, a.rows, a.columns, a.matrix, s.get(), vectors)
            })
        }
    })
}
