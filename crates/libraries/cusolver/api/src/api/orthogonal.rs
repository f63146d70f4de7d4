//! Orthogonal factors: QR, reductions to two and three diagonals, and products with what they are made by. Source: cuSOLVER manual, "Dense
//! Linear Solver Reference (legacy)" and "Dense Eigenvalue Solver Reference (legacy)".

use core::ffi::c_int;

use border::Out;
use cusolver_cpu::{Field, Op, qr, reduction};

use super::systems::square_area;
use crate::Result;
use crate::arguments::{Given, area, array, matrix, operation, side, size, triangle};
use crate::error::require;
use crate::handle::computing;
use crate::types::*;

pub use self::{
    cusolverDnTorgbr as cusolverDnTungbr, cusolverDnTorgbr_bufferSize as cusolverDnTungbr_bufferSize,
    cusolverDnTorgqr as cusolverDnTungqr, cusolverDnTorgqr_bufferSize as cusolverDnTungqr_bufferSize,
    cusolverDnTorgtr as cusolverDnTungtr, cusolverDnTorgtr_bufferSize as cusolverDnTungtr_bufferSize,
    cusolverDnTormqr as cusolverDnTunmqr, cusolverDnTormqr_bufferSize as cusolverDnTunmqr_bufferSize,
    cusolverDnTormtr as cusolverDnTunmtr, cusolverDnTormtr_bufferSize as cusolverDnTunmtr_bufferSize,
    cusolverDnTsytrd as cusolverDnThetrd, cusolverDnTsytrd_bufferSize as cusolverDnThetrd_bufferSize,
};

/// The work of `geqrf`.
///
/// # Safety
/// The arrays are there whenever the work runs.
pub(super) unsafe fn qr_of<T: Field>(a: Given<T>, tau: *mut T) -> Result<impl Fn() -> i64> {
    let tau = array(tau, a.rows.min(a.columns))?;
    Ok(move || {
        // SAFETY: the caller's word.
        unsafe { qr::geqrf(a.rows, a.columns, a.matrix, tau.get()) };
        0
    })
}

/// The leading dimension is not looked at: CuPy gives n of a matrix that has m rows, and NVIDIA's library answers.
pub fn cusolverDnTgeqrf_bufferSize<T: Field>(
    handle: cusolverDnHandle_t,
    m: c_int,
    n: c_int,
    _A: *mut T,
    _lda: c_int,
    lwork: Out<'_, c_int>,
) -> Result {
    computing(handle)?;
    size(m)?;
    lwork.write(area(size(n)?));
    Ok(())
}

/// # Safety
/// The arrays are there as the manual says of them: those of the device's until the stream has done the work, those of the host's while
/// the call lasts.
pub unsafe fn cusolverDnTgeqrf<T: Field>(
    handle: cusolverDnHandle_t,
    m: c_int,
    n: c_int,
    A: *mut T,
    lda: c_int,
    TAU: *mut T,
    _Workspace: *mut T,
    Lwork: c_int,
    devInfo: *mut c_int,
) -> Result {
    let context = computing(handle)?;
    size(Lwork)?;
    // SAFETY: the caller's word.
    unsafe { context.run(devInfo, qr_of(matrix(A, (m, n), lda)?, TAU)?) }
}

fn check_orgqr((m, n, k): (c_int, c_int, c_int)) -> Result {
    require(n >= 0 && m >= n && k >= 0 && n >= k, "orgqr: not m >= n >= k >= 0")
}

pub fn cusolverDnTorgqr_bufferSize<T: Field>(
    handle: cusolverDnHandle_t,
    m: c_int,
    n: c_int,
    k: c_int,
    _A: *const T,
    lda: c_int,
    _tau: *const T,
    lwork: Out<'_, c_int>,
) -> Result {
    computing(handle)?;
    check_orgqr((m, n, k))?;
    require(lda >= m.max(1), "lda is too small")?;
    lwork.write(area(n.into()));
    Ok(())
}

/// # Safety
/// As [`cusolverDnTgeqrf`].
pub unsafe fn cusolverDnTorgqr<T: Field>(
    handle: cusolverDnHandle_t,
    m: c_int,
    n: c_int,
    k: c_int,
    A: *mut T,
    lda: c_int,
    tau: *const T,
    _work: *mut T,
    lwork: c_int,
    info: *mut c_int,
) -> Result {
    let context = computing(handle)?;
    size(lwork)?;
    check_orgqr((m, n, k))?;
    let (a, tau) = (matrix(A, (m, n), lda)?, array(tau, k.into())?);
    // SAFETY: the caller's word.
    unsafe {
        context.run(info, move || {
            qr::orgqr(a.rows, a.columns, k.into(), a.matrix, tau.get());
            0
        })
    }
}

/// Complex factors are not merely transposed.
fn operation_of<T: Field>(trans: cublasOperation_t) -> Result<Op> {
    let op = operation(trans)?;
    require(!T::IS_COMPLEX || op != Op::T, "a complex factor that is transposed and not conjugated")?;
    Ok(op)
}

fn check_ormqr<T: Field>(
    (side_, trans): (cublasSideMode_t, cublasOperation_t),
    (m, n, k): (c_int, c_int, c_int),
    (lda, ldc): (c_int, c_int),
) -> Result {
    let rows = if side(side_)? == cusolver_cpu::Side::Left { m } else { n };
    operation_of::<T>(trans)?;
    require(m >= 0 && n >= 0 && k >= 0 && k <= rows, "ormqr: a size is negative, or k too large")?;
    require(lda >= rows.max(1) && ldc >= m.max(1), "a leading dimension is too small")
}

pub fn cusolverDnTormqr_bufferSize<T: Field>(
    handle: cusolverDnHandle_t,
    side: cublasSideMode_t,
    trans: cublasOperation_t,
    m: c_int,
    n: c_int,
    k: c_int,
    _A: *const T,
    lda: c_int,
    _tau: *const T,
    _C: *const T,
    ldc: c_int,
    lwork: Out<'_, c_int>,
) -> Result {
    computing(handle)?;
    check_ormqr::<T>((side, trans), (m, n, k), (lda, ldc))?;
    lwork.write(area(m.max(n).into()));
    Ok(())
}

/// # Safety
/// As [`cusolverDnTgeqrf`].
pub unsafe fn cusolverDnTormqr<T: Field>(
    handle: cusolverDnHandle_t,
    side: cublasSideMode_t,
    trans: cublasOperation_t,
    m: c_int,
    n: c_int,
    k: c_int,
    A: *const T,
    lda: c_int,
    tau: *const T,
    C: *mut T,
    ldc: c_int,
    _work: *mut T,
    lwork: c_int,
    devInfo: *mut c_int,
) -> Result {
    let context = computing(handle)?;
    size(lwork)?;
    check_ormqr::<T>((side, trans), (m, n, k), (lda, ldc))?;
    let (side, op) = (self::side(side)?, operation(trans)?);
    let rows = if side == cusolver_cpu::Side::Left { m } else { n };
    let (a, c, tau) = (matrix(A, (rows, k), lda)?, matrix(C, (m, n), ldc)?, array(tau, k.into())?);
    // SAFETY: the caller's word.
    unsafe {
        context.run(devInfo, move || {
            qr::ormqr(side, op, c.rows, c.columns, a.columns, a.matrix, tau.get(), c.matrix);
            0
        })
    }
}

pub fn cusolverDnTgebrd_bufferSize(
    handle: cusolverDnHandle_t,
    m: c_int,
    n: c_int,
    Lwork: Out<'_, c_int>,
) -> Result {
    computing(handle)?;
    require(n >= 0 && m >= n, "gebrd: not m >= n >= 0")?;
    Lwork.write(area(n.into()));
    Ok(())
}

/// Of matrices that are not wide, as the manual has it.
///
/// # Safety
/// As [`cusolverDnTgeqrf`].
pub unsafe fn cusolverDnTgebrd<T: Field>(
    handle: cusolverDnHandle_t,
    m: c_int,
    n: c_int,
    A: *mut T,
    lda: c_int,
    D: *mut T::Real,
    E: *mut T::Real,
    TAUQ: *mut T,
    TAUP: *mut T,
    _Work: *mut T,
    Lwork: c_int,
    devInfo: *mut c_int,
) -> Result {
    let context = computing(handle)?;
    size(Lwork)?;
    require(n >= 0 && m >= n, "gebrd: not m >= n >= 0")?;
    let a = matrix(A, (m, n), lda)?;
    let (d, e) = (array(D, a.columns)?, array(E, a.columns - 1)?);
    let (tauq, taup) = (array(TAUQ, a.columns)?, array(TAUP, a.columns)?);
    // SAFETY: the caller's word.
    unsafe {
        context.run(devInfo, move || {
            reduction::gebrd(a.rows, a.columns, a.matrix, d.get(), e.get(), tauq.get(), taup.get());
            0
        })
    }
}

fn check_orgbr(side_: cublasSideMode_t, (m, n, k): (c_int, c_int, c_int), lda: c_int) -> Result<bool> {
    let of_q = side(side_)? == cusolver_cpu::Side::Left;
    let fits = if of_q { m >= n && n >= m.min(k) } else { n >= m && m >= n.min(k) };
    require(m >= 0 && n >= 0 && k >= 0 && fits, "orgbr: sizes do not go together")?;
    require(lda >= m.max(1), "lda is too small")?;
    Ok(of_q)
}

pub fn cusolverDnTorgbr_bufferSize<T: Field>(
    handle: cusolverDnHandle_t,
    side: cublasSideMode_t,
    m: c_int,
    n: c_int,
    k: c_int,
    _A: *const T,
    lda: c_int,
    _tau: *const T,
    lwork: Out<'_, c_int>,
) -> Result {
    computing(handle)?;
    check_orgbr(side, (m, n, k), lda)?;
    lwork.write(area(m.max(n).into()));
    Ok(())
}

/// # Safety
/// As [`cusolverDnTgeqrf`].
pub unsafe fn cusolverDnTorgbr<T: Field>(
    handle: cusolverDnHandle_t,
    side: cublasSideMode_t,
    m: c_int,
    n: c_int,
    k: c_int,
    A: *mut T,
    lda: c_int,
    tau: *const T,
    _work: *mut T,
    lwork: c_int,
    info: *mut c_int,
) -> Result {
    let context = computing(handle)?;
    size(lwork)?;
    let of_q = check_orgbr(side, (m, n, k), lda)?;
    let a = matrix(A, (m, n), lda)?;
    let count = if of_q { m.min(k) } else { n.min(k) };
    let tau = array(tau, if a.rows.min(a.columns) == 0 { 0 } else { count.into() })?;
    // SAFETY: the caller's word.
    unsafe {
        context.run(info, move || {
            if a.rows.min(a.columns) > 0 {
                reduction::orgbr(of_q, a.rows, a.columns, k.into(), a.matrix, tau.get());
            }
            0
        })
    }
}

pub fn cusolverDnTsytrd_bufferSize<T: Field>(
    handle: cusolverDnHandle_t,
    uplo: cublasFillMode_t,
    n: c_int,
    _A: *const T,
    lda: c_int,
    _d: *const T::Real,
    _e: *const T::Real,
    _tau: *const T,
    lwork: Out<'_, c_int>,
) -> Result {
    square_area(handle, Some(uplo), n, lda, lwork)
}

/// # Safety
/// As [`cusolverDnTgeqrf`].
pub unsafe fn cusolverDnTsytrd<T: Field>(
    handle: cusolverDnHandle_t,
    uplo: cublasFillMode_t,
    n: c_int,
    A: *mut T,
    lda: c_int,
    d: *mut T::Real,
    e: *mut T::Real,
    tau: *mut T,
    _work: *mut T,
    lwork: c_int,
    info: *mut c_int,
) -> Result {
    let context = computing(handle)?;
    size(lwork)?;
    let (uplo, a) = (triangle(uplo)?, matrix(A, (n, n), lda)?);
    let (d, e, tau) = (array(d, a.rows)?, array(e, a.rows - 1)?, array(tau, a.rows - 1)?);
    // SAFETY: the caller's word.
    unsafe {
        context.run(info, move || {
            reduction::sytrd(uplo, a.rows, a.matrix, d.get(), e.get(), tau.get());
            0
        })
    }
}

pub fn cusolverDnTorgtr_bufferSize<T: Field>(
    handle: cusolverDnHandle_t,
    uplo: cublasFillMode_t,
    n: c_int,
    _A: *const T,
    lda: c_int,
    _tau: *const T,
    lwork: Out<'_, c_int>,
) -> Result {
    square_area(handle, Some(uplo), n, lda, lwork)
}

/// # Safety
/// As [`cusolverDnTgeqrf`].
pub unsafe fn cusolverDnTorgtr<T: Field>(
    handle: cusolverDnHandle_t,
    uplo: cublasFillMode_t,
    n: c_int,
    A: *mut T,
    lda: c_int,
    tau: *const T,
    _work: *mut T,
    lwork: c_int,
    info: *mut c_int,
) -> Result {
    let context = computing(handle)?;
    size(lwork)?;
    let (uplo, a) = (triangle(uplo)?, matrix(A, (n, n), lda)?);
    let tau = array(tau, a.rows - 1)?;
    // SAFETY: the caller's word.
    unsafe {
        context.run(info, move || {
            reduction::orgtr(uplo, a.rows, a.matrix, tau.get());
            0
        })
    }
}

fn check_ormtr<T: Field>(
    (side_, uplo, trans): (cublasSideMode_t, cublasFillMode_t, cublasOperation_t),
    (m, n): (c_int, c_int),
    (lda, ldc): (c_int, c_int),
) -> Result {
    let rows = if side(side_)? == cusolver_cpu::Side::Left { m } else { n };
    triangle(uplo)?;
    operation_of::<T>(trans)?;
    require(m >= 0 && n >= 0, "a size is negative")?;
    require(lda >= rows.max(1) && ldc >= m.max(1), "a leading dimension is too small")
}

pub fn cusolverDnTormtr_bufferSize<T: Field>(
    handle: cusolverDnHandle_t,
    side: cublasSideMode_t,
    uplo: cublasFillMode_t,
    trans: cublasOperation_t,
    m: c_int,
    n: c_int,
    _A: *const T,
    lda: c_int,
    _tau: *const T,
    _C: *const T,
    ldc: c_int,
    lwork: Out<'_, c_int>,
) -> Result {
    computing(handle)?;
    check_ormtr::<T>((side, uplo, trans), (m, n), (lda, ldc))?;
    lwork.write(area(m.max(n).into()));
    Ok(())
}

/// # Safety
/// As [`cusolverDnTgeqrf`].
pub unsafe fn cusolverDnTormtr<T: Field>(
    handle: cusolverDnHandle_t,
    side: cublasSideMode_t,
    uplo: cublasFillMode_t,
    trans: cublasOperation_t,
    m: c_int,
    n: c_int,
    A: *mut T,
    lda: c_int,
    tau: *mut T,
    C: *mut T,
    ldc: c_int,
    _work: *mut T,
    lwork: c_int,
    info: *mut c_int,
) -> Result {
    let context = computing(handle)?;
    size(lwork)?;
    check_ormtr::<T>((side, uplo, trans), (m, n), (lda, ldc))?;
    let (side, uplo, op) = (self::side(side)?, triangle(uplo)?, operation(trans)?);
    let rows = if side == cusolver_cpu::Side::Left { m } else { n };
    let (a, c) = (matrix(A, (rows, rows), lda)?, matrix(C, (m, n), ldc)?);
    let tau = array(tau, a.rows - 1)?;
    // SAFETY: the caller's word.
    unsafe {
        context.run(info, move || {
            reduction::ormtr(side, uplo, op, c.rows, c.columns, a.matrix, tau.get(), c.matrix);
            0
        })
    }
}
