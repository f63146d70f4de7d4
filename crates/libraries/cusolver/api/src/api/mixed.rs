//! Systems that may be factored in a lower precision and refined in the higher one. Source: cuSOLVER manual, `cusolverDn<T1><T2>gesv` and
//! `gels`.
//!
//! The second letter allows a precision and does not ask for it. Here the factorization is that of the main one, which leaves nothing to be
//! refined: the number of iterations is 0, and A stays as it is, as where an iteration has converged.

use core::ffi::{c_int, c_void};

use border::Out;
use cusolver_cpu::{Field, least};

use crate::Result;
use crate::arguments::{array, matrix, place};
use crate::error::require;
use crate::handle::computing;
use crate::types::*;

pub use self::{
    cusolverDnSSgels as cusolverDnDDgels, cusolverDnSSgels as cusolverDnCCgels,
    cusolverDnSSgels as cusolverDnZZgels, cusolverDnSSgels as cusolverDnSHgels,
    cusolverDnSSgels as cusolverDnSBgels, cusolverDnSSgels as cusolverDnSXgels,
    cusolverDnSSgels as cusolverDnDSgels, cusolverDnSSgels as cusolverDnDHgels,
    cusolverDnSSgels as cusolverDnDBgels, cusolverDnSSgels as cusolverDnDXgels,
    cusolverDnSSgels as cusolverDnCKgels, cusolverDnSSgels as cusolverDnCEgels,
    cusolverDnSSgels as cusolverDnCYgels, cusolverDnSSgels as cusolverDnZCgels,
    cusolverDnSSgels as cusolverDnZKgels, cusolverDnSSgels as cusolverDnZEgels,
    cusolverDnSSgels as cusolverDnZYgels, cusolverDnSSgels_bufferSize as cusolverDnDDgels_bufferSize,
    cusolverDnSSgels_bufferSize as cusolverDnCCgels_bufferSize,
    cusolverDnSSgels_bufferSize as cusolverDnZZgels_bufferSize,
    cusolverDnSSgels_bufferSize as cusolverDnSHgels_bufferSize,
    cusolverDnSSgels_bufferSize as cusolverDnSBgels_bufferSize,
    cusolverDnSSgels_bufferSize as cusolverDnSXgels_bufferSize,
    cusolverDnSSgels_bufferSize as cusolverDnDSgels_bufferSize,
    cusolverDnSSgels_bufferSize as cusolverDnDHgels_bufferSize,
    cusolverDnSSgels_bufferSize as cusolverDnDBgels_bufferSize,
    cusolverDnSSgels_bufferSize as cusolverDnDXgels_bufferSize,
    cusolverDnSSgels_bufferSize as cusolverDnCKgels_bufferSize,
    cusolverDnSSgels_bufferSize as cusolverDnCEgels_bufferSize,
    cusolverDnSSgels_bufferSize as cusolverDnCYgels_bufferSize,
    cusolverDnSSgels_bufferSize as cusolverDnZCgels_bufferSize,
    cusolverDnSSgels_bufferSize as cusolverDnZKgels_bufferSize,
    cusolverDnSSgels_bufferSize as cusolverDnZEgels_bufferSize,
    cusolverDnSSgels_bufferSize as cusolverDnZYgels_bufferSize, cusolverDnSSgesv as cusolverDnDDgesv,
    cusolverDnSSgesv as cusolverDnCCgesv, cusolverDnSSgesv as cusolverDnZZgesv,
    cusolverDnSSgesv as cusolverDnSHgesv, cusolverDnSSgesv as cusolverDnSBgesv,
    cusolverDnSSgesv as cusolverDnSXgesv, cusolverDnSSgesv as cusolverDnDSgesv,
    cusolverDnSSgesv as cusolverDnDHgesv, cusolverDnSSgesv as cusolverDnDBgesv,
    cusolverDnSSgesv as cusolverDnDXgesv, cusolverDnSSgesv as cusolverDnCKgesv,
    cusolverDnSSgesv as cusolverDnCEgesv, cusolverDnSSgesv as cusolverDnCYgesv,
    cusolverDnSSgesv as cusolverDnZCgesv, cusolverDnSSgesv as cusolverDnZKgesv,
    cusolverDnSSgesv as cusolverDnZEgesv, cusolverDnSSgesv as cusolverDnZYgesv,
    cusolverDnSSgesv_bufferSize as cusolverDnDDgesv_bufferSize,
    cusolverDnSSgesv_bufferSize as cusolverDnCCgesv_bufferSize,
    cusolverDnSSgesv_bufferSize as cusolverDnZZgesv_bufferSize,
    cusolverDnSSgesv_bufferSize as cusolverDnSHgesv_bufferSize,
    cusolverDnSSgesv_bufferSize as cusolverDnSBgesv_bufferSize,
    cusolverDnSSgesv_bufferSize as cusolverDnSXgesv_bufferSize,
    cusolverDnSSgesv_bufferSize as cusolverDnDSgesv_bufferSize,
    cusolverDnSSgesv_bufferSize as cusolverDnDHgesv_bufferSize,
    cusolverDnSSgesv_bufferSize as cusolverDnDBgesv_bufferSize,
    cusolverDnSSgesv_bufferSize as cusolverDnDXgesv_bufferSize,
    cusolverDnSSgesv_bufferSize as cusolverDnCKgesv_bufferSize,
    cusolverDnSSgesv_bufferSize as cusolverDnCEgesv_bufferSize,
    cusolverDnSSgesv_bufferSize as cusolverDnCYgesv_bufferSize,
    cusolverDnSSgesv_bufferSize as cusolverDnZCgesv_bufferSize,
    cusolverDnSSgesv_bufferSize as cusolverDnZKgesv_bufferSize,
    cusolverDnSSgesv_bufferSize as cusolverDnZEgesv_bufferSize,
    cusolverDnSSgesv_bufferSize as cusolverDnZYgesv_bufferSize,
};

pub(super) fn check_sizes(
    (m, n, nrhs): (c_int, c_int, c_int),
    (ldda, lddb, lddx): (c_int, c_int, c_int),
) -> Result {
    require(n >= 0 && m >= n && nrhs >= 0, "not m >= n >= 0, or a negative number of right sides")?;
    require(ldda >= m.max(1) && lddb >= m.max(1), "ldda or lddb is too small")?;
    require(lddx >= n.max(1), "lddx is too small")
}

fn area(n: c_int, bytes: Out<'_, usize>) -> Result {
    bytes.write(n.max(1) as usize * size_of::<cuDoubleComplex>());
    Ok(())
}

pub fn cusolverDnSSgesv_bufferSize<T: Field>(
    handle: cusolverDnHandle_t,
    n: c_int,
    nrhs: c_int,
    _dA: *mut T,
    ldda: c_int,
    _dipiv: *mut c_int,
    _dB: *mut T,
    lddb: c_int,
    _dX: *mut T,
    lddx: c_int,
    _dWorkspace: *mut c_void,
    lwork_bytes: Out<'_, usize>,
) -> Result {
    computing(handle)?;
    check_sizes((n, n, nrhs), (ldda, lddb, lddx))?;
    area(n, lwork_bytes)
}

/// The number of iterations goes to the host, for which the call waits.
///
/// # Safety
/// The arrays are there as the manual says of them: those of the device's until the stream has done the work, those of the host's while
/// the call lasts.
pub unsafe fn cusolverDnSSgesv<T: Field>(
    handle: cusolverDnHandle_t,
    n: c_int,
    nrhs: c_int,
    dA: *mut T,
    ldda: c_int,
    dipiv: *mut c_int,
    dB: *mut T,
    lddb: c_int,
    dX: *mut T,
    lddx: c_int,
    _dWorkspace: *mut c_void,
    _lwork_bytes: usize,
    iter: *mut c_int,
    d_info: *mut c_int,
) -> Result {
    let context = computing(handle)?;
    check_sizes((n, n, nrhs), (ldda, lddb, lddx))?;
    let (a, b) = (matrix(dA, (n, n), ldda)?, matrix(dB, (n, nrhs), lddb)?);
    let (x, pivots, iter) = (matrix(dX, (n, nrhs), lddx)?, array(dipiv, n.into())?, place(iter)?);
    // SAFETY: the caller's word.
    unsafe {
        context.run(d_info, move || {
            let (info, found) = least::gesv(a.rows, b.columns, a.matrix, b.matrix, x.matrix);
            (0..).zip(found).for_each(|(i, pivot)| pivots.get().offset(i).write(pivot as c_int));
            iter.get().write(0);
            info
        })
    }?;
    context.deliver()
}

pub fn cusolverDnSSgels_bufferSize<T: Field>(
    handle: cusolverDnHandle_t,
    m: c_int,
    n: c_int,
    nrhs: c_int,
    _dA: *mut T,
    ldda: c_int,
    _dB: *mut T,
    lddb: c_int,
    _dX: *mut T,
    lddx: c_int,
    _dWorkspace: *mut c_void,
    lwork_bytes: Out<'_, usize>,
) -> Result {
    computing(handle)?;
    check_sizes((m, n, nrhs), (ldda, lddb, lddx))?;
    area(n, lwork_bytes)
}

/// Of matrices that are not wide, as the manual has it.
///
/// # Safety
/// As [`cusolverDnSSgesv`].
pub unsafe fn cusolverDnSSgels<T: Field>(
    handle: cusolverDnHandle_t,
    m: c_int,
    n: c_int,
    nrhs: c_int,
    dA: *mut T,
    ldda: c_int,
    dB: *mut T,
    lddb: c_int,
    dX: *mut T,
    lddx: c_int,
    _dWorkspace: *mut c_void,
    _lwork_bytes: usize,
    iter: *mut c_int,
    d_info: *mut c_int,
) -> Result {
    let context = computing(handle)?;
    check_sizes((m, n, nrhs), (ldda, lddb, lddx))?;
    let (a, b) = (matrix(dA, (m, n), ldda)?, matrix(dB, (m, nrhs), lddb)?);
    let (x, iter) = (matrix(dX, (n, nrhs), lddx)?, place(iter)?);
    // SAFETY: the caller's word.
    unsafe {
        context.run(d_info, move || {
            iter.get().write(0);
            least::gels(a.rows, a.columns, b.columns, a.matrix, b.matrix, x.matrix)
        })
    }?;
    context.deliver()
}
