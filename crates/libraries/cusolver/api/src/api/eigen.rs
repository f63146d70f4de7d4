//! Eigenvalues of Hermitian matrices and of pairs of them. Source: cuSOLVER manual, "Dense Eigenvalue Solver Reference (legacy)".

use core::ffi::c_int;

use border::Out;
use cusolver_cpu::eigen::Range;
use cusolver_cpu::{Field, eigen};

use super::systems::square_area;
use crate::arguments::{Given, array, matrix, place, size, triangle, vectors};
use crate::error::require;
use crate::handle::computing;
use crate::types::*;
use crate::{Error, Result};

pub use self::{
    cusolverDnTsyevd as cusolverDnTheevd, cusolverDnTsyevd_bufferSize as cusolverDnTheevd_bufferSize,
    cusolverDnTsyevdx as cusolverDnTheevdx, cusolverDnTsyevdx_bufferSize as cusolverDnTheevdx_bufferSize,
    cusolverDnTsygvd as cusolverDnThegvd, cusolverDnTsygvd_bufferSize as cusolverDnThegvd_bufferSize,
    cusolverDnTsygvdx as cusolverDnThegvdx, cusolverDnTsygvdx_bufferSize as cusolverDnThegvdx_bufferSize,
};

/// The work of `syevd`.
///
/// # Safety
/// The arrays are there whenever the work runs.
pub(super) unsafe fn hermitian<T: Field>(
    jobz: cusolverEigMode_t,
    uplo: cublasFillMode_t,
    a: Given<T>,
    w: *mut T::Real,
) -> Result<impl Fn() -> i64> {
    let (wanted, uplo, w) = (vectors(jobz)?, triangle(uplo)?, array(w, a.rows)?);
    // SAFETY: the caller's word.
    Ok(move || unsafe { eigen::syevdx(wanted, Range::All, uplo, a.rows, a.matrix, w.get()).1 })
}

/// Which eigenvalues a call asks for.
pub(super) fn range(
    range: cusolverEigRange_t,
    n: i64,
    values: (f64, f64),
    numbers: (i64, i64),
) -> Result<Range> {
    match range {
        cusolverEigRange_t::CUSOLVER_EIG_RANGE_ALL => Ok(Range::All),
        cusolverEigRange_t::CUSOLVER_EIG_RANGE_I => {
            let (from, to) = numbers;
            require(n == 0 || from >= 1 && from <= to && to <= n, "not 1 <= il <= iu <= n")?;
            Ok(if n == 0 { Range::All } else { Range::Numbers(from, to) })
        }
        cusolverEigRange_t::CUSOLVER_EIG_RANGE_V => {
            require(values.0 < values.1, "not vl < vu")?;
            Ok(Range::Values(values.0, values.1))
        }
        _ => Err(Error::InvalidValue("there is no such range")),
    }
}

fn wide<R: cusolver_cpu::Real>(value: R) -> f64 {
    num_traits::ToPrimitive::to_f64(&value).unwrap_or(f64::NAN)
}

pub(super) fn kind(itype: cusolverEigType_t) -> Result<u32> {
    require(matches!(itype.0, 1..=3), "there is no such type of problem")?;
    Ok(itype.0)
}

pub fn cusolverDnTsyevd_bufferSize<T: Field>(
    handle: cusolverDnHandle_t,
    jobz: cusolverEigMode_t,
    uplo: cublasFillMode_t,
    n: c_int,
    _A: *const T,
    lda: c_int,
    _W: *const T::Real,
    lwork: Out<'_, c_int>,
) -> Result {
    vectors(jobz)?;
    square_area(handle, Some(uplo), n, lda, lwork)
}

/// # Safety
/// The arrays are there as the manual says of them: those of the device's until the stream has done the work, those of the host's while
/// the call lasts.
pub unsafe fn cusolverDnTsyevd<T: Field>(
    handle: cusolverDnHandle_t,
    jobz: cusolverEigMode_t,
    uplo: cublasFillMode_t,
    n: c_int,
    A: *mut T,
    lda: c_int,
    W: *mut T::Real,
    _work: *mut T,
    lwork: c_int,
    info: *mut c_int,
) -> Result {
    let context = computing(handle)?;
    size(lwork)?;
    // SAFETY: the caller's word.
    unsafe { context.run(info, hermitian(jobz, uplo, matrix(A, (n, n), lda)?, W)?) }
}

pub fn cusolverDnTsyevdx_bufferSize<T: Field>(
    handle: cusolverDnHandle_t,
    jobz: cusolverEigMode_t,
    range: cusolverEigRange_t,
    uplo: cublasFillMode_t,
    n: c_int,
    _A: *const T,
    lda: c_int,
    vl: T::Real,
    vu: T::Real,
    il: c_int,
    iu: c_int,
    _meig: *mut c_int,
    _W: *const T::Real,
    lwork: Out<'_, c_int>,
) -> Result {
    vectors(jobz)?;
    self::range(range, n.into(), (wide(vl), wide(vu)), (il.into(), iu.into()))?;
    square_area(handle, Some(uplo), n, lda, lwork)
}

/// How many there are goes to the host, for which the call waits.
///
/// # Safety
/// As [`cusolverDnTsyevd`].
pub unsafe fn cusolverDnTsyevdx<T: Field>(
    handle: cusolverDnHandle_t,
    jobz: cusolverEigMode_t,
    range: cusolverEigRange_t,
    uplo: cublasFillMode_t,
    n: c_int,
    A: *mut T,
    lda: c_int,
    vl: T::Real,
    vu: T::Real,
    il: c_int,
    iu: c_int,
    meig: *mut c_int,
    W: *mut T::Real,
    _work: *mut T,
    lwork: c_int,
    info: *mut c_int,
) -> Result {
    let context = computing(handle)?;
    size(lwork)?;
    let (wanted, uplo, a) = (vectors(jobz)?, triangle(uplo)?, matrix(A, (n, n), lda)?);
    let range = self::range(range, a.rows, (wide(vl), wide(vu)), (il.into(), iu.into()))?;
    let (w, meig) = (array(W, a.rows)?, place(meig)?);
    // SAFETY: the caller's word.
    unsafe {
        context.run(info, move || {
            let (count, info) = eigen::syevdx(wanted, range, uplo, a.rows, a.matrix, w.get());
            meig.get().write(count as c_int);
            info
        })
    }?;
    context.deliver()
}

pub fn cusolverDnTsygvd_bufferSize<T: Field>(
    handle: cusolverDnHandle_t,
    itype: cusolverEigType_t,
    jobz: cusolverEigMode_t,
    uplo: cublasFillMode_t,
    n: c_int,
    _A: *const T,
    lda: c_int,
    _B: *const T,
    ldb: c_int,
    _W: *const T::Real,
    lwork: Out<'_, c_int>,
) -> Result {
    kind(itype)?;
    vectors(jobz)?;
    require(ldb >= n.max(1), "ldb is too small")?;
    square_area(handle, Some(uplo), n, lda, lwork)
}

/// # Safety
/// As [`cusolverDnTsyevd`].
pub unsafe fn cusolverDnTsygvd<T: Field>(
    handle: cusolverDnHandle_t,
    itype: cusolverEigType_t,
    jobz: cusolverEigMode_t,
    uplo: cublasFillMode_t,
    n: c_int,
    A: *mut T,
    lda: c_int,
    B: *mut T,
    ldb: c_int,
    W: *mut T::Real,
    _work: *mut T,
    lwork: c_int,
    info: *mut c_int,
) -> Result {
    let context = computing(handle)?;
    size(lwork)?;
    let (kind, wanted, uplo) = (kind(itype)?, vectors(jobz)?, triangle(uplo)?);
    let (a, b) = (matrix(A, (n, n), lda)?, matrix(B, (n, n), ldb)?);
    let w = array(W, a.rows)?;
    // SAFETY: as above.
    unsafe {
        context.run(info, move || {
            eigen::sygvd(kind, wanted, Range::All, uplo, a.rows, a.matrix, b.matrix, w.get()).1
        })
    }
}

pub fn cusolverDnTsygvdx_bufferSize<T: Field>(
    handle: cusolverDnHandle_t,
    itype: cusolverEigType_t,
    jobz: cusolverEigMode_t,
    range: cusolverEigRange_t,
    uplo: cublasFillMode_t,
    n: c_int,
    _A: *const T,
    lda: c_int,
    _B: *const T,
    ldb: c_int,
    vl: T::Real,
    vu: T::Real,
    il: c_int,
    iu: c_int,
    _meig: *mut c_int,
    _W: *const T::Real,
    lwork: Out<'_, c_int>,
) -> Result {
    kind(itype)?;
    vectors(jobz)?;
    self::range(range, n.into(), (wide(vl), wide(vu)), (il.into(), iu.into()))?;
    require(ldb >= n.max(1), "ldb is too small")?;
    square_area(handle, Some(uplo), n, lda, lwork)
}

/// # Safety
/// As [`cusolverDnTsyevd`].
pub unsafe fn cusolverDnTsygvdx<T: Field>(
    handle: cusolverDnHandle_t,
    itype: cusolverEigType_t,
    jobz: cusolverEigMode_t,
    range: cusolverEigRange_t,
    uplo: cublasFillMode_t,
    n: c_int,
    A: *mut T,
    lda: c_int,
    B: *mut T,
    ldb: c_int,
    vl: T::Real,
    vu: T::Real,
    il: c_int,
    iu: c_int,
    meig: *mut c_int,
    W: *mut T::Real,
    _work: *mut T,
    lwork: c_int,
    info: *mut c_int,
) -> Result {
    let context = computing(handle)?;
    size(lwork)?;
    let (kind, wanted, uplo) = (kind(itype)?, vectors(jobz)?, triangle(uplo)?);
    let (a, b) = (matrix(A, (n, n), lda)?, matrix(B, (n, n), ldb)?);
    let range = self::range(range, a.rows, (wide(vl), wide(vu)), (il.into(), iu.into()))?;
    let (w, meig) = (array(W, a.rows)?, place(meig)?);
    // SAFETY: the caller's word.
    unsafe {
        context.run(info, move || {
            let found = eigen::sygvd(kind, wanted, range, uplo, a.rows, a.matrix, b.matrix, w.get());
            meig.get().write(found.0 as c_int);
            found.1
        })
    }?;
    context.deliver()
}
