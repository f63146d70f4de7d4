//! Jacobi's method for eigenvalues and singular values, one matrix and batches, and what programs say of it. Source: cuSOLVER manual,
//! `syevj`, `sygvj`, `gesvdj` and their batched forms.

use core::ffi::c_int;
use std::sync::Arc;

use border::Out;
use cusolver_cpu::jacobi::{self, Outcome, Settings};
use cusolver_cpu::{Field, Matrix, eigen};
use kit::Registry;
use once_cell::sync::OnceCell;
use parking_lot::Mutex;

use super::systems::square_area;
use crate::arguments::{Given, area, array, matrix, size, triangle, vectors};
use crate::error::require;
use crate::handle::{self, computing};
use crate::hip::info::{HipInfo, Kind};
use crate::hip::library::Library;
use crate::types::*;
use crate::{Error, Result};

pub use self::{
    cusolverDnTsyevj as cusolverDnTheevj, cusolverDnTsyevj_bufferSize as cusolverDnTheevj_bufferSize,
    cusolverDnTsyevjBatched as cusolverDnTheevjBatched,
    cusolverDnTsyevjBatched_bufferSize as cusolverDnTheevjBatched_bufferSize,
    cusolverDnTsygvj as cusolverDnThegvj, cusolverDnTsygvj_bufferSize as cusolverDnThegvj_bufferSize,
};

/// Parameters of an iteration, and what came of the last one; none of a batch.
#[derive(Default)]
struct Info {
    settings: Mutex<Settings>,
    outcome: Mutex<Option<Outcome>>,
    /// hipSOLVER's, made at the first call on an AMD GPU.
    hip: OnceCell<HipInfo>,
}

/// Those of both kinds.
static INFOS: Registry<Info> = Registry::new();

fn info_of<H>(info: *mut H) -> Result<Arc<Info>> {
    INFOS.get(info).map_err(|_| Error::InvalidValue("the parameters are none that were created"))
}

/// hipSOLVER's object behind it, with what the program said.
pub(crate) fn hip_info<H>(
    info: *mut H,
    library: &'static Library,
    kind: &'static Kind,
) -> Result<*mut core::ffi::c_void> {
    let info = info_of(info)?;
    let settings = *info.settings.lock();
    info.hip.get_or_try_init(|| HipInfo::new(library, kind))?.with(settings)
}

fn change<H>(info: *mut H, change: impl FnOnce(&mut Settings)) -> Result {
    change(&mut info_of(info)?.settings.lock());
    Ok(())
}

fn set_sweeps<H>(info: *mut H, max_sweeps: c_int) -> Result {
    require(max_sweeps >= 0, "a number of sweeps is negative")?;
    change(info, |settings| settings.max_sweeps = max_sweeps)
}

fn set_sorted<H>(info: *mut H, sorted: c_int) -> Result {
    require(matches!(sorted, 0 | 1), "sorting is 0 or 1")?;
    change(info, |settings| settings.sorted = sorted == 1)
}

/// Waits for the stream. A batch has no one outcome.
fn outcome<H>(handle: cusolverDnHandle_t, info: *mut H) -> Result<Outcome> {
    let context = handle::get(handle)?;
    let info = info_of(info)?;
    context.synchronize()?;
    let found = *info.outcome.lock();
    found.ok_or(Error::NotSupported("nothing but a single matrix tells of its iteration"))
}

pub fn cusolverDnCreateSyevjInfo(info: Out<'_, syevjInfo_t>) -> Result {
    info.write(INFOS.add(Info::default()));
    Ok(())
}

/// NULL is no error.
pub fn cusolverDnDestroySyevjInfo(info: syevjInfo_t) -> Result {
    if !info.is_null() {
        info_of(info)?;
        INFOS.remove(info)?;
    }
    Ok(())
}

pub fn cusolverDnXsyevjSetTolerance(info: syevjInfo_t, tolerance: f64) -> Result {
    change(info, |settings| settings.tolerance = tolerance)
}

pub fn cusolverDnXsyevjSetMaxSweeps(info: syevjInfo_t, max_sweeps: c_int) -> Result {
    set_sweeps(info, max_sweeps)
}

pub fn cusolverDnXsyevjSetSortEig(info: syevjInfo_t, sort_eig: c_int) -> Result {
    set_sorted(info, sort_eig)
}

pub fn cusolverDnXsyevjGetResidual(
    handle: cusolverDnHandle_t,
    info: syevjInfo_t,
    residual: Out<'_, f64>,
) -> Result {
    residual.write(outcome(handle, info)?.residual);
    Ok(())
}

pub fn cusolverDnXsyevjGetSweeps(
    handle: cusolverDnHandle_t,
    info: syevjInfo_t,
    executed_sweeps: Out<'_, c_int>,
) -> Result {
    executed_sweeps.write(outcome(handle, info)?.sweeps);
    Ok(())
}

pub fn cusolverDnCreateGesvdjInfo(info: Out<'_, gesvdjInfo_t>) -> Result {
    info.write(INFOS.add(Info::default()));
    Ok(())
}

/// NULL is no error.
pub fn cusolverDnDestroyGesvdjInfo(info: gesvdjInfo_t) -> Result {
    if !info.is_null() {
        info_of(info)?;
        INFOS.remove(info)?;
    }
    Ok(())
}

pub fn cusolverDnXgesvdjSetTolerance(info: gesvdjInfo_t, tolerance: f64) -> Result {
    change(info, |settings| settings.tolerance = tolerance)
}

pub fn cusolverDnXgesvdjSetMaxSweeps(info: gesvdjInfo_t, max_sweeps: c_int) -> Result {
    set_sweeps(info, max_sweeps)
}

pub fn cusolverDnXgesvdjSetSortEig(info: gesvdjInfo_t, sort_svd: c_int) -> Result {
    set_sorted(info, sort_svd)
}

pub fn cusolverDnXgesvdjGetResidual(
    handle: cusolverDnHandle_t,
    info: gesvdjInfo_t,
    residual: Out<'_, f64>,
) -> Result {
    residual.write(outcome(handle, info)?.residual);
    Ok(())
}

pub fn cusolverDnXgesvdjGetSweeps(
    handle: cusolverDnHandle_t,
    info: gesvdjInfo_t,
    executed_sweeps: Out<'_, c_int>,
) -> Result {
    executed_sweeps.write(outcome(handle, info)?.sweeps);
    Ok(())
}

/// LAPACK's info: one more than there are values where it did not converge.
fn told(outcome: Outcome, count: i64) -> i64 {
    if outcome.converged { 0 } else { count + 1 }
}

pub fn cusolverDnTsyevj_bufferSize<T: Field>(
    handle: cusolverDnHandle_t,
    jobz: cusolverEigMode_t,
    uplo: cublasFillMode_t,
    n: c_int,
    _A: *const T,
    lda: c_int,
    _W: *const T::Real,
    lwork: Out<'_, c_int>,
    params: syevjInfo_t,
) -> Result {
    vectors(jobz)?;
    info_of(params)?;
    square_area(handle, Some(uplo), n, lda, lwork)
}

/// # Safety
/// The arrays are there as the manual says of them: those of the device's until the stream has done the work, those of the host's while
/// the call lasts.
pub unsafe fn cusolverDnTsyevj<T: Field>(
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
    params: syevjInfo_t,
) -> Result {
    let context = computing(handle)?;
    size(lwork)?;
    let (wanted, uplo, a) = (vectors(jobz)?, triangle(uplo)?, matrix(A, (n, n), lda)?);
    let (w, params) = (array(W, a.rows)?, info_of(params)?);
    let settings = *params.settings.lock();
    // SAFETY: the caller's word.
    unsafe {
        context.run(info, move || {
            let found = jacobi::syevj(wanted, uplo, a.rows, a.matrix, w.get(), settings);
            *params.outcome.lock() = Some(found);
            told(found, a.rows)
        })
    }
}

pub fn cusolverDnTsyevjBatched_bufferSize<T: Field>(
    handle: cusolverDnHandle_t,
    jobz: cusolverEigMode_t,
    uplo: cublasFillMode_t,
    n: c_int,
    A: *const T,
    lda: c_int,
    W: *const T::Real,
    lwork: Out<'_, c_int>,
    params: syevjInfo_t,
    batchSize: c_int,
) -> Result {
    size(batchSize)?;
    cusolverDnTsyevj_bufferSize(handle, jobz, uplo, n, A, lda, W, lwork, params)
}

/// Matrices one behind the other, `lda·n` elements each.
///
/// # Safety
/// As [`cusolverDnTsyevj`].
pub unsafe fn cusolverDnTsyevjBatched<T: Field>(
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
    params: syevjInfo_t,
    batchSize: c_int,
) -> Result {
    let context = computing(handle)?;
    size(lwork)?;
    let (wanted, uplo, count) = (vectors(jobz)?, triangle(uplo)?, size(batchSize)?);
    let a = batched(A, (n, n), lda, count)?;
    let (w, infos) = (array(W, a.rows * count)?, array(info, count)?);
    let params = info_of(params)?;
    context.enqueue(move || {
        cusolver_cpu::each(count, |number| {
            let (n, matrix) = (a.rows, nth(a, number));
            // SAFETY: as above; a matrix for each call.
            unsafe {
                let w = w.get().offset((number * n) as isize);
                // Of a batch's sweeps and residuals nobody can ask: it is divided, which is sooner done.
                let (_, missing) = eigen::syevdx(wanted, eigen::Range::All, uplo, n, matrix, w);
                let info = if missing == 0 { 0 } else { n + 1 };
                infos.get().offset(number as isize).write(info as c_int);
            }
        });
        *params.outcome.lock() = None;
    })
}

/// The first of a batch of matrices one behind the other, all of which can be addressed.
fn batched<T: Field>(at: *const T, (m, n): (c_int, c_int), ld: c_int, count: i64) -> Result<Given<T>> {
    let at = if count == 0 { core::ptr::dangling() } else { at };
    let a = matrix(at, (m, n), ld)?;
    let all = (a.matrix.ld() * a.columns).checked_mul(count);
    require(
        all.and_then(|all| all.checked_mul(size_of::<T>() as i64)).is_some(),
        "no memory has such a batch",
    )?;
    // Their columns lie as those of one matrix do.
    matrix(at, (m, a.columns * count), ld)?;
    Ok(a)
}

fn nth<T: Field>(a: Given<T>, number: i64) -> Matrix<T> {
    a.matrix.from(0, a.columns * number)
}

pub fn cusolverDnTsygvj_bufferSize<T: Field>(
    handle: cusolverDnHandle_t,
    itype: cusolverEigType_t,
    jobz: cusolverEigMode_t,
    uplo: cublasFillMode_t,
    n: c_int,
    A: *const T,
    lda: c_int,
    _B: *const T,
    ldb: c_int,
    W: *const T::Real,
    lwork: Out<'_, c_int>,
    params: syevjInfo_t,
) -> Result {
    require(matches!(itype.0, 1..=3), "there is no such type of problem")?;
    require(ldb >= n.max(1), "ldb is too small")?;
    cusolverDnTsyevj_bufferSize(handle, jobz, uplo, n, A, lda, W, lwork, params)
}

/// # Safety
/// As [`cusolverDnTsyevj`].
pub unsafe fn cusolverDnTsygvj<T: Field>(
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
    params: syevjInfo_t,
) -> Result {
    let context = computing(handle)?;
    size(lwork)?;
    require(matches!(itype.0, 1..=3), "there is no such type of problem")?;
    let (wanted, uplo) = (vectors(jobz)?, triangle(uplo)?);
    let (a, b) = (matrix(A, (n, n), lda)?, matrix(B, (n, n), ldb)?);
    let (w, params) = (array(W, a.rows)?, info_of(params)?);
    let settings = *params.settings.lock();
    // SAFETY: the caller's word.
    unsafe {
        context.run(info, move || {
            let (info, found) =
                jacobi::sygvj(itype.0, wanted, uplo, a.rows, a.matrix, b.matrix, w.get(), settings);
            *params.outcome.lock() = Some(found);
            info
        })
    }
}

/// Where singular vectors go: U m by m or `size`, V n by n or `size`.
fn left_and_right<T: Field>(
    wanted: bool,
    thin: bool,
    (m, n): (c_int, c_int),
    (U, ldu): (*const T, c_int),
    (V, ldv): (*const T, c_int),
    count: i64,
) -> Result<Option<(Given<T>, Given<T>)>> {
    require(ldu >= 1 && ldv >= 1, "a leading dimension is not positive")?;
    if !wanted {
        return Ok(None);
    }
    let size = m.min(n);
    let of = |at: *const T, rows: c_int, ld| {
        let columns = if thin { size } else { rows };
        batched(at, (rows, columns), ld, count)
    };
    Ok(Some((of(U, m, ldu)?, of(V, n, ldv)?)))
}

pub fn cusolverDnTgesvdj_bufferSize<T: Field>(
    handle: cusolverDnHandle_t,
    jobz: cusolverEigMode_t,
    _econ: c_int,
    m: c_int,
    n: c_int,
    _A: *const T,
    lda: c_int,
    _S: *const T::Real,
    _U: *const T,
    ldu: c_int,
    _V: *const T,
    ldv: c_int,
    lwork: Out<'_, c_int>,
    params: gesvdjInfo_t,
) -> Result {
    computing(handle)?;
    info_of(params)?;
    let wanted = vectors(jobz)?;
    require(m >= 0 && n >= 0, "a size is negative")?;
    require(lda >= m.max(1), "lda is too small")?;
    require(!wanted || ldu >= m.max(1) && ldv >= n.max(1), "ldu or ldv is too small")?;
    lwork.write(area(m.max(n).into()));
    Ok(())
}

/// # Safety
/// As [`cusolverDnTsyevj`].
pub unsafe fn cusolverDnTgesvdj<T: Field>(
    handle: cusolverDnHandle_t,
    jobz: cusolverEigMode_t,
    econ: c_int,
    m: c_int,
    n: c_int,
    A: *mut T,
    lda: c_int,
    S: *mut T::Real,
    U: *mut T,
    ldu: c_int,
    V: *mut T,
    ldv: c_int,
    _work: *mut T,
    lwork: c_int,
    info: *mut c_int,
    params: gesvdjInfo_t,
) -> Result {
    let context = computing(handle)?;
    size(lwork)?;
    let (wanted, thin) = (vectors(jobz)?, econ != 0);
    let a = matrix(A, (m, n), lda)?;
    let vectors = left_and_right(wanted, thin, (m, n), (U, ldu), (V, ldv), 1)?;
    let values = a.rows.min(a.columns);
    let (s, params) = (array(S, values)?, info_of(params)?);
    let settings = *params.settings.lock();
    // SAFETY: the caller's word.
    unsafe {
        context.run(info, move || {
            let vectors = vectors.map(|(u, v)| (u.matrix, v.matrix));
            let found = jacobi::gesvdj(thin, a.rows, a.columns, a.matrix, s.get(), vectors, settings);
            *params.outcome.lock() = Some(found);
            told(found, values)
        })
    }
}

/// So large are the matrices of a batch at most.
const SMALL: c_int = 32;

pub fn cusolverDnTgesvdjBatched_bufferSize<T: Field>(
    handle: cusolverDnHandle_t,
    jobz: cusolverEigMode_t,
    m: c_int,
    n: c_int,
    A: *const T,
    lda: c_int,
    S: *const T::Real,
    U: *const T,
    ldu: c_int,
    V: *const T,
    ldv: c_int,
    lwork: Out<'_, c_int>,
    params: gesvdjInfo_t,
    batchSize: c_int,
) -> Result {
    size(batchSize)?;
    require(m <= SMALL && n <= SMALL, "matrices of a batch have 32 rows and columns at most")?;
    cusolverDnTgesvdj_bufferSize(handle, jobz, 0, m, n, A, lda, S, U, ldu, V, ldv, lwork, params)
}

/// # Safety
/// As [`cusolverDnTsyevj`].
pub unsafe fn cusolverDnTgesvdjBatched<T: Field>(
    handle: cusolverDnHandle_t,
    jobz: cusolverEigMode_t,
    m: c_int,
    n: c_int,
    A: *mut T,
    lda: c_int,
    S: *mut T::Real,
    U: *mut T,
    ldu: c_int,
    V: *mut T,
    ldv: c_int,
    _work: *mut T,
    lwork: c_int,
    info: *mut c_int,
    params: gesvdjInfo_t,
    batchSize: c_int,
) -> Result {
    let context = computing(handle)?;
    size(lwork)?;
    let (wanted, count) = (vectors(jobz)?, size(batchSize)?);
    require(m <= SMALL && n <= SMALL, "matrices of a batch have 32 rows and columns at most")?;
    let a = batched(A, (m, n), lda, count)?;
    let vectors = left_and_right(wanted, false, (m, n), (U, ldu), (V, ldv), count)?;
    let values = a.rows.min(a.columns);
    let (s, infos, params) = (array(S, values * count)?, array(info, count)?, info_of(params)?);
    let settings = *params.settings.lock();
    context.enqueue(move || {
        cusolver_cpu::each(count, |number| {
            let vectors = vectors.map(|(u, v)| (nth(u, number), nth(v, number)));
            // SAFETY: as above; a matrix for each call.
            unsafe {
                let s = s.get().offset((number * values) as isize);
                let found = jacobi::gesvdj(false, a.rows, a.columns, nth(a, number), s, vectors, settings);
                infos.get().offset(number as isize).write(told(found, values) as c_int);
            }
        });
        *params.outcome.lock() = None;
    })
}
