//! Matrices with vectors. Source: cuBLAS manual, "cuBLAS Level-2 Function Reference".

use cublas_cpu::{Diag, Op, Real, Scalar, Stored, Uplo, level2, parallel};
use kit::Address;

use super::operand::{leading, sizes};
use crate::handle::Handle;
use crate::{Result, convert, cublasDiagType_t, cublasFillMode_t, cublasOperation_t};

pub fn gemv<T: Scalar>(
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
    let (alpha, beta) = (handle.scalar(alpha)?, handle.scalar(beta)?);
    handle.enqueue((A, x, y), move |(A, x, y)| {
        // SAFETY: cuBLAS's contract: device memory of that size until the routine has run. So it is everywhere here.
        unsafe { level2::gemv(op, m, n, alpha.get(), A, lda, x, incx, beta.get(), y, incy) }
    })
}

/// `Aarray`, `xarray` and `yarray` are themselves in device memory.
pub fn gemv_batched<S: Scalar, A: Stored<S>, Y: Stored<S>>(
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
    let (alpha, beta) = (handle.scalar(alpha)?, handle.scalar(beta)?);
    let arrays = Address((Aarray, xarray, yarray));
    handle.enqueue((), move |()| {
        let (alpha, beta) = (alpha.get(), beta.get());
        parallel(batchCount, m * n, |i| {
            let (a, x, y) = arrays.get();
            // SAFETY: as in `gemv`; the arrays have `batchCount` pointers.
            unsafe {
                let i = i as usize;
                let (a, x, y) = (*a.add(i), *x.add(i), *y.add(i));
                level2::gemv(op, m, n, alpha, a, lda, x, incx, beta, y, incy);
            }
        });
    })
}

pub fn gemv_strided_batched<S: Scalar, A: Stored<S>, Y: Stored<S>>(
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
    let (alpha, beta) = (handle.scalar(alpha)?, handle.scalar(beta)?);
    let first = Address((A, x, y));
    handle.enqueue((), move |()| {
        let (alpha, beta) = (alpha.get(), beta.get());
        parallel(batchCount, m * n, |i| {
            let (a, x, y) = first.get();
            let step = |stride: i64| (i * stride) as isize;
            // SAFETY: as in `gemv`, of each vector and matrix of the batch.
            unsafe {
                let (a, x, y) = (a.offset(step(strideA)), x.offset(step(stridex)), y.offset(step(stridey)));
                level2::gemv(op, m, n, alpha, a, lda, x, incx, beta, y, incy);
            }
        });
    })
}

pub fn gbmv<T: Scalar>(
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
    let (alpha, beta) = (handle.scalar(alpha)?, handle.scalar(beta)?);
    handle.enqueue((A, x, y), move |(A, x, y)| {
        // SAFETY: as in `gemv`.
        unsafe { level2::gbmv(op, m, n, kl, ku, alpha.get(), A, lda, x, incx, beta.get(), y, incy) }
    })
}

pub fn symv<T: Scalar>(
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
    product(level2::symv, handle, uplo, n, alpha, A, lda, x, incx, beta, y, incy)
}

pub fn hemv<T: Scalar>(
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
    product(level2::hemv, handle, uplo, n, alpha, A, lda, x, incx, beta, y, incy)
}

pub fn sbmv<T: Scalar>(
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
    band_product(level2::sbmv, handle, uplo, n, k, alpha, A, lda, x, incx, beta, y, incy)
}

pub fn hbmv<T: Scalar>(
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
    band_product(level2::hbmv, handle, uplo, n, k, alpha, A, lda, x, incx, beta, y, incy)
}

pub fn spmv<T: Scalar>(
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
    packed_product(level2::spmv, handle, uplo, n, alpha, AP, x, incx, beta, y, incy)
}

pub fn hpmv<T: Scalar>(
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
    packed_product(level2::hpmv, handle, uplo, n, alpha, AP, x, incx, beta, y, incy)
}

pub fn trmv<T: Scalar>(
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
    triangle(level2::trmv, handle, uplo, trans, diag, n, A, lda, x, incx)
}

pub fn trsv<T: Scalar>(
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
    triangle(level2::trsv, handle, uplo, trans, diag, n, A, lda, x, incx)
}

pub fn tbmv<T: Scalar>(
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
    band_triangle(level2::tbmv, handle, uplo, trans, diag, n, k, A, lda, x, incx)
}

pub fn tbsv<T: Scalar>(
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
    band_triangle(level2::tbsv, handle, uplo, trans, diag, n, k, A, lda, x, incx)
}

pub fn tpmv<T: Scalar>(
    handle: &Handle,
    uplo: cublasFillMode_t,
    trans: cublasOperation_t,
    diag: cublasDiagType_t,
    n: i64,
    AP: *const T,
    x: *mut T,
    incx: i64,
) -> Result {
    packed_triangle(level2::tpmv, handle, uplo, trans, diag, n, AP, x, incx)
}

pub fn tpsv<T: Scalar>(
    handle: &Handle,
    uplo: cublasFillMode_t,
    trans: cublasOperation_t,
    diag: cublasDiagType_t,
    n: i64,
    AP: *const T,
    x: *mut T,
    incx: i64,
) -> Result {
    packed_triangle(level2::tpsv, handle, uplo, trans, diag, n, AP, x, incx)
}

/// Of real vectors.
pub fn ger<T: Real>(
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
    geru(handle, m, n, alpha, x, incx, y, incy, A, lda)
}

pub fn geru<T: Scalar>(
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
    outer(level2::geru, handle, m, n, alpha, x, incx, y, incy, A, lda)
}

pub fn gerc<T: Scalar>(
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
    outer(level2::gerc, handle, m, n, alpha, x, incx, y, incy, A, lda)
}

pub fn syr<T: Scalar>(
    handle: &Handle,
    uplo: cublasFillMode_t,
    n: i64,
    alpha: *const T,
    x: *const T,
    incx: i64,
    A: *mut T,
    lda: i64,
) -> Result {
    square(level2::syr, handle, uplo, n, alpha, x, incx, A, lda)
}

pub fn her<T: Scalar>(
    handle: &Handle,
    uplo: cublasFillMode_t,
    n: i64,
    alpha: *const T::Real,
    x: *const T,
    incx: i64,
    A: *mut T,
    lda: i64,
) -> Result {
    square(level2::her, handle, uplo, n, alpha, x, incx, A, lda)
}

pub fn spr<T: Scalar>(
    handle: &Handle,
    uplo: cublasFillMode_t,
    n: i64,
    alpha: *const T,
    x: *const T,
    incx: i64,
    AP: *mut T,
) -> Result {
    packed_square(level2::spr, handle, uplo, n, alpha, x, incx, AP)
}

pub fn hpr<T: Scalar>(
    handle: &Handle,
    uplo: cublasFillMode_t,
    n: i64,
    alpha: *const T::Real,
    x: *const T,
    incx: i64,
    AP: *mut T,
) -> Result {
    packed_square(level2::hpr, handle, uplo, n, alpha, x, incx, AP)
}

pub fn syr2<T: Scalar>(
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
    update(level2::syr2, handle, uplo, n, alpha, x, incx, y, incy, A, lda)
}

pub fn her2<T: Scalar>(
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
    update(level2::her2, handle, uplo, n, alpha, x, incx, y, incy, A, lda)
}

pub fn spr2<T: Scalar>(
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
    packed_update(level2::spr2, handle, uplo, n, alpha, x, incx, y, incy, AP)
}

pub fn hpr2<T: Scalar>(
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
    packed_update(level2::hpr2, handle, uplo, n, alpha, x, incx, y, incy, AP)
}

/// `uplo, n, alpha, A, lda, x, incx, beta, y, incy`
type Product<T> = unsafe fn(Uplo, i64, T, *const T, i64, *const T, i64, T, *mut T, i64);

fn product<T: Scalar>(
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
    let (alpha, beta) = (handle.scalar(alpha)?, handle.scalar(beta)?);
    // SAFETY: as in `gemv`.
    handle.enqueue((A, x, y), move |(A, x, y)| unsafe {
        routine(uplo, n, alpha.get(), A, lda, x, incx, beta.get(), y, incy)
    })
}

/// `uplo, n, k, alpha, A, lda, x, incx, beta, y, incy`
type BandProduct<T> = unsafe fn(Uplo, i64, i64, T, *const T, i64, *const T, i64, T, *mut T, i64);

fn band_product<T: Scalar>(
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
    let (alpha, beta) = (handle.scalar(alpha)?, handle.scalar(beta)?);
    // SAFETY: as in `gemv`.
    handle.enqueue((A, x, y), move |(A, x, y)| unsafe {
        routine(uplo, n, k, alpha.get(), A, lda, x, incx, beta.get(), y, incy)
    })
}

fn packed_product<T: Scalar>(
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
    let (alpha, beta) = (handle.scalar(alpha)?, handle.scalar(beta)?);
    // SAFETY: as in `gemv`.
    handle.enqueue((AP, x, y), move |(AP, x, y)| unsafe {
        routine(uplo, n, alpha.get(), AP, x, incx, beta.get(), y, incy)
    })
}

fn triangle<T: Scalar>(
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
    // SAFETY: as in `gemv`.
    handle.enqueue((A, x), move |(A, x)| unsafe { routine(uplo, op, diag, n, A, lda, x, incx) })
}

fn band_triangle<T: Scalar>(
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
    // SAFETY: as in `gemv`.
    handle.enqueue((A, x), move |(A, x)| unsafe { routine(uplo, op, diag, n, k, A, lda, x, incx) })
}

fn packed_triangle<T: Scalar>(
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
    // SAFETY: as in `gemv`.
    handle.enqueue((AP, x), move |(AP, x)| unsafe { routine(uplo, op, diag, n, AP, x, incx) })
}

fn outer<T: Scalar>(
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
    let alpha = handle.scalar(alpha)?;
    // SAFETY: as in `gemv`.
    handle
        .enqueue((x, y, A), move |(x, y, A)| unsafe { routine(m, n, alpha.get(), x, incx, y, incy, A, lda) })
}

/// A vector times itself: of Hermitian matrices the factor is real.
fn square<T: Scalar, F: Copy + Send + Sync + 'static>(
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
    let alpha = handle.scalar(alpha)?;
    // SAFETY: as in `gemv`.
    handle.enqueue((x, A), move |(x, A)| unsafe { routine(uplo, n, alpha.get(), x, incx, A, lda) })
}

fn packed_square<T: Scalar, F: Copy + Send + Sync + 'static>(
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
    let alpha = handle.scalar(alpha)?;
    // SAFETY: as in `gemv`.
    handle.enqueue((x, AP), move |(x, AP)| unsafe { routine(uplo, n, alpha.get(), x, incx, AP) })
}

fn update<T: Scalar>(
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
    let alpha = handle.scalar(alpha)?;
    // SAFETY: as in `gemv`.
    handle.enqueue((x, y, A), move |(x, y, A)| unsafe {
        routine(uplo, n, alpha.get(), x, incx, y, incy, A, lda)
    })
}

fn packed_update<T: Scalar>(
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
    let alpha = handle.scalar(alpha)?;
    // SAFETY: as in `gemv`.
    handle
        .enqueue((x, y, AP), move |(x, y, AP)| unsafe { routine(uplo, n, alpha.get(), x, incx, y, incy, AP) })
}
