//! Matrices with vectors. Source: cuBLAS manual, "cuBLAS Level-2 Function Reference".

use cublas_cpu::{Diag, Op, Real, Scalar, Stored, Uplo, level2, parallel};
use kit::Address;

use super::operand::{leading, sizes};
use crate::handle::Handle;
use crate::{Result, convert, cublasDiagType_t, cublasFillMode_t, cublasOperation_t};

/// # Safety
/// The pointers are good for what cuBLAS's manual says of them: those to the host's memory during the call, those to the
/// device's until the routine has run.
pub unsafe fn gemv<T: Scalar>(
    handle: &Handle,
    trans: cublasOperation_t,
    m: i64,
    n: i64,
    alpha: *const T,
    A: *const T,
    lda: i64,
    x: *const T,
    incx: i64,
    beta: *const T,
    y: *mut T,
    incy: i64,
) -> Result {
    let op = convert::op(trans)?;
    sizes(&[m, n], &[incx, incy])?;
    leading(lda, m)?;
    // SAFETY: the caller's promise.
    let (alpha, beta) = unsafe { (handle.scalar(alpha)?, handle.scalar(beta)?) };
    handle.enqueue((A, x, y), move |(A, x, y)| {
        // SAFETY: the caller's promise.
        unsafe { level2::gemv(op, m, n, alpha.get(), A, lda, x, incx, beta.get(), y, incy) }
    })
}

/// `Aarray`, `xarray` and `yarray` are themselves in device memory.
///
/// # Safety
/// As [`gemv`].
pub unsafe fn gemv_batched<S: Scalar, A: Stored<S>, Y: Stored<S>>(
    handle: &Handle,
    trans: cublasOperation_t,
    m: i64,
    n: i64,
    alpha: *const S,
    Aarray: *const *const A,
    lda: i64,
    xarray: *const *const A,
    incx: i64,
    beta: *const S,
    yarray: *const *mut Y,
    incy: i64,
    batchCount: i64,
) -> Result {
    let op = convert::op(trans)?;
    sizes(&[m, n, batchCount], &[incx, incy])?;
    leading(lda, m)?;
    // SAFETY: the caller's promise.
    let (alpha, beta) = unsafe { (handle.scalar(alpha)?, handle.scalar(beta)?) };
    let arrays = Address((Aarray, xarray, yarray));
    handle.enqueue((), move |()| {
        let (alpha, beta) = (alpha.get(), beta.get());
        parallel(batchCount, m * n, |i| {
            let (a, x, y) = arrays.get();
            // SAFETY: the caller's promise; the arrays have `batchCount` pointers.
            unsafe {
                let i = i as usize;
                let (a, x, y) = (*a.add(i), *x.add(i), *y.add(i));
                level2::gemv(op, m, n, alpha, a, lda, x, incx, beta, y, incy);
            }
        });
    })
}

/// # Safety
/// As [`gemv`].
pub unsafe fn gemv_strided_batched<S: Scalar, A: Stored<S>, Y: Stored<S>>(
    handle: &Handle,
    trans: cublasOperation_t,
    m: i64,
    n: i64,
    alpha: *const S,
    A: *const A,
    lda: i64,
    strideA: i64,
    x: *const A,
    incx: i64,
    stridex: i64,
    beta: *const S,
    y: *mut Y,
    incy: i64,
    stridey: i64,
    batchCount: i64,
) -> Result {
    let op = convert::op(trans)?;
    sizes(&[m, n, batchCount], &[incx, incy])?;
    leading(lda, m)?;
    // SAFETY: the caller's promise.
    let (alpha, beta) = unsafe { (handle.scalar(alpha)?, handle.scalar(beta)?) };
    let first = Address((A, x, y));
    handle.enqueue((), move |()| {
        let (alpha, beta) = (alpha.get(), beta.get());
        parallel(batchCount, m * n, |i| {
            let (a, x, y) = first.get();
            let step = |stride: i64| (i * stride) as isize;
            // SAFETY: the caller's promise, of each vector and matrix of the batch.
            unsafe {
                let (a, x, y) = (a.offset(step(strideA)), x.offset(step(stridex)), y.offset(step(stridey)));
                level2::gemv(op, m, n, alpha, a, lda, x, incx, beta, y, incy);
            }
        });
    })
}

/// # Safety
/// As [`gemv`].
pub unsafe fn gbmv<T: Scalar>(
    handle: &Handle,
    trans: cublasOperation_t,
    m: i64,
    n: i64,
    kl: i64,
    ku: i64,
    alpha: *const T,
    A: *const T,
    lda: i64,
    x: *const T,
    incx: i64,
    beta: *const T,
    y: *mut T,
    incy: i64,
) -> Result {
    let op = convert::op(trans)?;
    sizes(&[m, n, kl, ku], &[incx, incy])?;
    leading(lda, kl.saturating_add(ku).saturating_add(1))?;
    // SAFETY: the caller's promise.
    let (alpha, beta) = unsafe { (handle.scalar(alpha)?, handle.scalar(beta)?) };
    handle.enqueue((A, x, y), move |(A, x, y)| {
        // SAFETY: the caller's promise.
        unsafe { level2::gbmv(op, m, n, kl, ku, alpha.get(), A, lda, x, incx, beta.get(), y, incy) }
    })
}

/// # Safety
/// As [`gemv`].
pub unsafe fn symv<T: Scalar>(
    handle: &Handle,
    uplo: cublasFillMode_t,
    n: i64,
    alpha: *const T,
    A: *const T,
    lda: i64,
    x: *const T,
    incx: i64,
    beta: *const T,
    y: *mut T,
    incy: i64,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { product(level2::symv, handle, uplo, n, alpha, A, lda, x, incx, beta, y, incy) }
}

/// # Safety
/// As [`gemv`].
pub unsafe fn hemv<T: Scalar>(
    handle: &Handle,
    uplo: cublasFillMode_t,
    n: i64,
    alpha: *const T,
    A: *const T,
    lda: i64,
    x: *const T,
    incx: i64,
    beta: *const T,
    y: *mut T,
    incy: i64,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { product(level2::hemv, handle, uplo, n, alpha, A, lda, x, incx, beta, y, incy) }
}

/// # Safety
/// As [`gemv`].
pub unsafe fn sbmv<T: Scalar>(
    handle: &Handle,
    uplo: cublasFillMode_t,
    n: i64,
    k: i64,
    alpha: *const T,
    A: *const T,
    lda: i64,
    x: *const T,
    incx: i64,
    beta: *const T,
    y: *mut T,
    incy: i64,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { band_product(level2::sbmv, handle, uplo, n, k, alpha, A, lda, x, incx, beta, y, incy) }
}

/// # Safety
/// As [`gemv`].
pub unsafe fn hbmv<T: Scalar>(
    handle: &Handle,
    uplo: cublasFillMode_t,
    n: i64,
    k: i64,
    alpha: *const T,
    A: *const T,
    lda: i64,
    x: *const T,
    incx: i64,
    beta: *const T,
    y: *mut T,
    incy: i64,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { band_product(level2::hbmv, handle, uplo, n, k, alpha, A, lda, x, incx, beta, y, incy) }
}

/// # Safety
/// As [`gemv`].
pub unsafe fn spmv<T: Scalar>(
    handle: &Handle,
    uplo: cublasFillMode_t,
    n: i64,
    alpha: *const T,
    AP: *const T,
    x: *const T,
    incx: i64,
    beta: *const T,
    y: *mut T,
    incy: i64,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { packed_product(level2::spmv, handle, uplo, n, alpha, AP, x, incx, beta, y, incy) }
}

/// # Safety
/// As [`gemv`].
pub unsafe fn hpmv<T: Scalar>(
    handle: &Handle,
    uplo: cublasFillMode_t,
    n: i64,
    alpha: *const T,
    AP: *const T,
    x: *const T,
    incx: i64,
    beta: *const T,
    y: *mut T,
    incy: i64,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { packed_product(level2::hpmv, handle, uplo, n, alpha, AP, x, incx, beta, y, incy) }
}

/// # Safety
/// As [`gemv`].
pub unsafe fn trmv<T: Scalar>(
    handle: &Handle,
    uplo: cublasFillMode_t,
    trans: cublasOperation_t,
    diag: cublasDiagType_t,
    n: i64,
    A: *const T,
    lda: i64,
    x: *mut T,
    incx: i64,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { triangle(level2::trmv, handle, uplo, trans, diag, n, A, lda, x, incx) }
}

/// # Safety
/// As [`gemv`].
pub unsafe fn trsv<T: Scalar>(
    handle: &Handle,
    uplo: cublasFillMode_t,
    trans: cublasOperation_t,
    diag: cublasDiagType_t,
    n: i64,
    A: *const T,
    lda: i64,
    x: *mut T,
    incx: i64,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { triangle(level2::trsv, handle, uplo, trans, diag, n, A, lda, x, incx) }
}

/// # Safety
/// As [`gemv`].
pub unsafe fn tbmv<T: Scalar>(
    handle: &Handle,
    uplo: cublasFillMode_t,
    trans: cublasOperation_t,
    diag: cublasDiagType_t,
    n: i64,
    k: i64,
    A: *const T,
    lda: i64,
    x: *mut T,
    incx: i64,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { band_triangle(level2::tbmv, handle, uplo, trans, diag, n, k, A, lda, x, incx) }
}

/// # Safety
/// As [`gemv`].
pub unsafe fn tbsv<T: Scalar>(
    handle: &Handle,
    uplo: cublasFillMode_t,
    trans: cublasOperation_t,
    diag: cublasDiagType_t,
    n: i64,
    k: i64,
    A: *const T,
    lda: i64,
    x: *mut T,
    incx: i64,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { band_triangle(level2::tbsv, handle, uplo, trans, diag, n, k, A, lda, x, incx) }
}

/// # Safety
/// As [`gemv`].
pub unsafe fn tpmv<T: Scalar>(
    handle: &Handle,
    uplo: cublasFillMode_t,
    trans: cublasOperation_t,
    diag: cublasDiagType_t,
    n: i64,
    AP: *const T,
    x: *mut T,
    incx: i64,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { packed_triangle(level2::tpmv, handle, uplo, trans, diag, n, AP, x, incx) }
}

/// # Safety
/// As [`gemv`].
pub unsafe fn tpsv<T: Scalar>(
    handle: &Handle,
    uplo: cublasFillMode_t,
    trans: cublasOperation_t,
    diag: cublasDiagType_t,
    n: i64,
    AP: *const T,
    x: *mut T,
    incx: i64,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { packed_triangle(level2::tpsv, handle, uplo, trans, diag, n, AP, x, incx) }
}

/// Of real vectors.
///
/// # Safety
/// As [`gemv`].
pub unsafe fn ger<T: Real>(
    handle: &Handle,
    m: i64,
    n: i64,
    alpha: *const T,
    x: *const T,
    incx: i64,
    y: *const T,
    incy: i64,
    A: *mut T,
    lda: i64,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { geru(handle, m, n, alpha, x, incx, y, incy, A, lda) }
}

/// # Safety
/// As [`gemv`].
pub unsafe fn geru<T: Scalar>(
    handle: &Handle,
    m: i64,
    n: i64,
    alpha: *const T,
    x: *const T,
    incx: i64,
    y: *const T,
    incy: i64,
    A: *mut T,
    lda: i64,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { outer(level2::geru, handle, m, n, alpha, x, incx, y, incy, A, lda) }
}

/// # Safety
/// As [`gemv`].
pub unsafe fn gerc<T: Scalar>(
    handle: &Handle,
    m: i64,
    n: i64,
    alpha: *const T,
    x: *const T,
    incx: i64,
    y: *const T,
    incy: i64,
    A: *mut T,
    lda: i64,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { outer(level2::gerc, handle, m, n, alpha, x, incx, y, incy, A, lda) }
}

/// # Safety
/// As [`gemv`].
pub unsafe fn syr<T: Scalar>(
    handle: &Handle,
    uplo: cublasFillMode_t,
    n: i64,
    alpha: *const T,
    x: *const T,
    incx: i64,
    A: *mut T,
    lda: i64,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { square(level2::syr, handle, uplo, n, alpha, x, incx, A, lda) }
}

/// # Safety
/// As [`gemv`].
pub unsafe fn her<T: Scalar>(
    handle: &Handle,
    uplo: cublasFillMode_t,
    n: i64,
    alpha: *const T::Real,
    x: *const T,
    incx: i64,
    A: *mut T,
    lda: i64,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { square(level2::her, handle, uplo, n, alpha, x, incx, A, lda) }
}

/// # Safety
/// As [`gemv`].
pub unsafe fn spr<T: Scalar>(
    handle: &Handle,
    uplo: cublasFillMode_t,
    n: i64,
    alpha: *const T,
    x: *const T,
    incx: i64,
    AP: *mut T,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { packed_square(level2::spr, handle, uplo, n, alpha, x, incx, AP) }
}

/// # Safety
/// As [`gemv`].
pub unsafe fn hpr<T: Scalar>(
    handle: &Handle,
    uplo: cublasFillMode_t,
    n: i64,
    alpha: *const T::Real,
    x: *const T,
    incx: i64,
    AP: *mut T,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { packed_square(level2::hpr, handle, uplo, n, alpha, x, incx, AP) }
}

/// # Safety
/// As [`gemv`].
pub unsafe fn syr2<T: Scalar>(
    handle: &Handle,
    uplo: cublasFillMode_t,
    n: i64,
    alpha: *const T,
    x: *const T,
    incx: i64,
    y: *const T,
    incy: i64,
    A: *mut T,
    lda: i64,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { update(level2::syr2, handle, uplo, n, alpha, x, incx, y, incy, A, lda) }
}

/// # Safety
/// As [`gemv`].
pub unsafe fn her2<T: Scalar>(
    handle: &Handle,
    uplo: cublasFillMode_t,
    n: i64,
    alpha: *const T,
    x: *const T,
    incx: i64,
    y: *const T,
    incy: i64,
    A: *mut T,
    lda: i64,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { update(level2::her2, handle, uplo, n, alpha, x, incx, y, incy, A, lda) }
}

/// # Safety
/// As [`gemv`].
pub unsafe fn spr2<T: Scalar>(
    handle: &Handle,
    uplo: cublasFillMode_t,
    n: i64,
    alpha: *const T,
    x: *const T,
    incx: i64,
    y: *const T,
    incy: i64,
    AP: *mut T,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { packed_update(level2::spr2, handle, uplo, n, alpha, x, incx, y, incy, AP) }
}

/// # Safety
/// As [`gemv`].
pub unsafe fn hpr2<T: Scalar>(
    handle: &Handle,
    uplo: cublasFillMode_t,
    n: i64,
    alpha: *const T,
    x: *const T,
    incx: i64,
    y: *const T,
    incy: i64,
    AP: *mut T,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { packed_update(level2::hpr2, handle, uplo, n, alpha, x, incx, y, incy, AP) }
}

/// `uplo, n, alpha, A, lda, x, incx, beta, y, incy`
type Product<T> = unsafe fn(Uplo, i64, T, *const T, i64, *const T, i64, T, *mut T, i64);

/// # Safety
/// As [`gemv`].
unsafe fn product<T: Scalar>(
    routine: Product<T>,
    handle: &Handle,
    uplo: cublasFillMode_t,
    n: i64,
    alpha: *const T,
    A: *const T,
    lda: i64,
    x: *const T,
    incx: i64,
    beta: *const T,
    y: *mut T,
    incy: i64,
) -> Result {
    let uplo = convert::uplo(uplo)?;
    sizes(&[n], &[incx, incy])?;
    leading(lda, n)?;
    // SAFETY: the caller's promise.
    let (alpha, beta) = unsafe { (handle.scalar(alpha)?, handle.scalar(beta)?) };
    // SAFETY: the caller's promise.
    handle.enqueue((A, x, y), move |(A, x, y)| unsafe {
        routine(uplo, n, alpha.get(), A, lda, x, incx, beta.get(), y, incy)
    })
}

/// `uplo, n, k, alpha, A, lda, x, incx, beta, y, incy`
type BandProduct<T> = unsafe fn(Uplo, i64, i64, T, *const T, i64, *const T, i64, T, *mut T, i64);

/// # Safety
/// As [`gemv`].
unsafe fn band_product<T: Scalar>(
    routine: BandProduct<T>,
    handle: &Handle,
    uplo: cublasFillMode_t,
    n: i64,
    k: i64,
    alpha: *const T,
    A: *const T,
    lda: i64,
    x: *const T,
    incx: i64,
    beta: *const T,
    y: *mut T,
    incy: i64,
) -> Result {
    let uplo = convert::uplo(uplo)?;
    sizes(&[n, k], &[incx, incy])?;
    leading(lda, k.saturating_add(1))?;
    // SAFETY: the caller's promise.
    let (alpha, beta) = unsafe { (handle.scalar(alpha)?, handle.scalar(beta)?) };
    // SAFETY: the caller's promise.
    handle.enqueue((A, x, y), move |(A, x, y)| unsafe {
        routine(uplo, n, k, alpha.get(), A, lda, x, incx, beta.get(), y, incy)
    })
}

/// # Safety
/// As [`gemv`].
unsafe fn packed_product<T: Scalar>(
    routine: unsafe fn(Uplo, i64, T, *const T, *const T, i64, T, *mut T, i64),
    handle: &Handle,
    uplo: cublasFillMode_t,
    n: i64,
    alpha: *const T,
    AP: *const T,
    x: *const T,
    incx: i64,
    beta: *const T,
    y: *mut T,
    incy: i64,
) -> Result {
    let uplo = convert::uplo(uplo)?;
    sizes(&[n], &[incx, incy])?;
    // SAFETY: the caller's promise.
    let (alpha, beta) = unsafe { (handle.scalar(alpha)?, handle.scalar(beta)?) };
    // SAFETY: the caller's promise.
    handle.enqueue((AP, x, y), move |(AP, x, y)| unsafe {
        routine(uplo, n, alpha.get(), AP, x, incx, beta.get(), y, incy)
    })
}

/// # Safety
/// As [`gemv`].
unsafe fn triangle<T: Scalar>(
    routine: unsafe fn(Uplo, Op, Diag, i64, *const T, i64, *mut T, i64),
    handle: &Handle,
    uplo: cublasFillMode_t,
    trans: cublasOperation_t,
    diag: cublasDiagType_t,
    n: i64,
    A: *const T,
    lda: i64,
    x: *mut T,
    incx: i64,
) -> Result {
    let op = convert::op(trans)?;
    let uplo = convert::uplo(uplo)?;
    let diag = convert::diag(diag)?;
    sizes(&[n], &[incx])?;
    leading(lda, n)?;
    // SAFETY: the caller's promise.
    handle.enqueue((A, x), move |(A, x)| unsafe { routine(uplo, op, diag, n, A, lda, x, incx) })
}

/// # Safety
/// As [`gemv`].
unsafe fn band_triangle<T: Scalar>(
    routine: unsafe fn(Uplo, Op, Diag, i64, i64, *const T, i64, *mut T, i64),
    handle: &Handle,
    uplo: cublasFillMode_t,
    trans: cublasOperation_t,
    diag: cublasDiagType_t,
    n: i64,
    k: i64,
    A: *const T,
    lda: i64,
    x: *mut T,
    incx: i64,
) -> Result {
    let op = convert::op(trans)?;
    let uplo = convert::uplo(uplo)?;
    let diag = convert::diag(diag)?;
    sizes(&[n, k], &[incx])?;
    leading(lda, k.saturating_add(1))?;
    // SAFETY: the caller's promise.
    handle.enqueue((A, x), move |(A, x)| unsafe { routine(uplo, op, diag, n, k, A, lda, x, incx) })
}

/// # Safety
/// As [`gemv`].
unsafe fn packed_triangle<T: Scalar>(
    routine: unsafe fn(Uplo, Op, Diag, i64, *const T, *mut T, i64),
    handle: &Handle,
    uplo: cublasFillMode_t,
    trans: cublasOperation_t,
    diag: cublasDiagType_t,
    n: i64,
    AP: *const T,
    x: *mut T,
    incx: i64,
) -> Result {
    let op = convert::op(trans)?;
    let uplo = convert::uplo(uplo)?;
    let diag = convert::diag(diag)?;
    sizes(&[n], &[incx])?;
    // SAFETY: the caller's promise.
    handle.enqueue((AP, x), move |(AP, x)| unsafe { routine(uplo, op, diag, n, AP, x, incx) })
}

/// # Safety
/// As [`gemv`].
unsafe fn outer<T: Scalar>(
    routine: unsafe fn(i64, i64, T, *const T, i64, *const T, i64, *mut T, i64),
    handle: &Handle,
    m: i64,
    n: i64,
    alpha: *const T,
    x: *const T,
    incx: i64,
    y: *const T,
    incy: i64,
    A: *mut T,
    lda: i64,
) -> Result {
    sizes(&[m, n], &[incx, incy])?;
    leading(lda, m)?;
    // SAFETY: the caller's promise.
    let alpha = unsafe { handle.scalar(alpha)? };
    // SAFETY: the caller's promise.
    handle
        .enqueue((x, y, A), move |(x, y, A)| unsafe { routine(m, n, alpha.get(), x, incx, y, incy, A, lda) })
}

/// A vector times itself: of Hermitian matrices the factor is real.
///
/// # Safety
/// As [`gemv`].
unsafe fn square<T: Scalar, F: Copy + Send + Sync + 'static>(
    routine: unsafe fn(Uplo, i64, F, *const T, i64, *mut T, i64),
    handle: &Handle,
    uplo: cublasFillMode_t,
    n: i64,
    alpha: *const F,
    x: *const T,
    incx: i64,
    A: *mut T,
    lda: i64,
) -> Result {
    let uplo = convert::uplo(uplo)?;
    sizes(&[n], &[incx])?;
    leading(lda, n)?;
    // SAFETY: the caller's promise.
    let alpha = unsafe { handle.scalar(alpha)? };
    // SAFETY: the caller's promise.
    handle.enqueue((x, A), move |(x, A)| unsafe { routine(uplo, n, alpha.get(), x, incx, A, lda) })
}

/// # Safety
/// As [`gemv`].
unsafe fn packed_square<T: Scalar, F: Copy + Send + Sync + 'static>(
    routine: unsafe fn(Uplo, i64, F, *const T, i64, *mut T),
    handle: &Handle,
    uplo: cublasFillMode_t,
    n: i64,
    alpha: *const F,
    x: *const T,
    incx: i64,
    AP: *mut T,
) -> Result {
    let uplo = convert::uplo(uplo)?;
    sizes(&[n], &[incx])?;
    // SAFETY: the caller's promise.
    let alpha = unsafe { handle.scalar(alpha)? };
    // SAFETY: the caller's promise.
    handle.enqueue((x, AP), move |(x, AP)| unsafe { routine(uplo, n, alpha.get(), x, incx, AP) })
}

/// # Safety
/// As [`gemv`].
unsafe fn update<T: Scalar>(
    routine: unsafe fn(Uplo, i64, T, *const T, i64, *const T, i64, *mut T, i64),
    handle: &Handle,
    uplo: cublasFillMode_t,
    n: i64,
    alpha: *const T,
    x: *const T,
    incx: i64,
    y: *const T,
    incy: i64,
    A: *mut T,
    lda: i64,
) -> Result {
    let uplo = convert::uplo(uplo)?;
    sizes(&[n], &[incx, incy])?;
    leading(lda, n)?;
    // SAFETY: the caller's promise.
    let alpha = unsafe { handle.scalar(alpha)? };
    // SAFETY: the caller's promise.
    handle.enqueue((x, y, A), move |(x, y, A)| unsafe {
        routine(uplo, n, alpha.get(), x, incx, y, incy, A, lda)
    })
}

/// # Safety
/// As [`gemv`].
unsafe fn packed_update<T: Scalar>(
    routine: unsafe fn(Uplo, i64, T, *const T, i64, *const T, i64, *mut T),
    handle: &Handle,
    uplo: cublasFillMode_t,
    n: i64,
    alpha: *const T,
    x: *const T,
    incx: i64,
    y: *const T,
    incy: i64,
    AP: *mut T,
) -> Result {
    let uplo = convert::uplo(uplo)?;
    sizes(&[n], &[incx, incy])?;
    // SAFETY: the caller's promise.
    let alpha = unsafe { handle.scalar(alpha)? };
    // SAFETY: the caller's promise.
    handle
        .enqueue((x, y, AP), move |(x, y, AP)| unsafe { routine(uplo, n, alpha.get(), x, incx, y, incy, AP) })
}
