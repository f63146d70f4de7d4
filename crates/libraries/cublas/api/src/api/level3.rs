//! Matrices with matrices. Source: cuBLAS manual, "cuBLAS Level-3 Function Reference" and "BLAS-like Extension".

use cublas_cpu::{Diag, Op, Scalar, Side, Uplo, level3, parallel};
use kit::Address;

use super::operand::{leading, sizes};
use crate::handle::Handle;
use crate::product::Product;
use crate::{
    Result, convert, cublasDiagType_t, cublasFillMode_t, cublasOperation_t, cublasSideMode_t, require,
};

/// The rows of a matrix that is `rows` × `columns` once the operation has been applied.
fn stored_rows(op: Op, rows: i64, columns: i64) -> i64 {
    if op.transposes() { columns } else { rows }
}

/// The order of a matrix that stands on that side of one with m rows and n columns.
fn order(side: Side, m: i64, n: i64) -> i64 {
    match side {
        Side::Left => m,
        Side::Right => n,
    }
}

/// What a product of general matrices is told, checked.
pub(super) fn product(
    transa: cublasOperation_t,
    transb: cublasOperation_t,
    m: i64,
    n: i64,
    k: i64,
    lda: i64,
    ldb: i64,
    ldc: i64,
) -> Result<(Op, Op)> {
    let (op_a, op_b) = (convert::op(transa)?, convert::op(transb)?);
    sizes(&[m, n, k], &[])?;
    leading(lda, stored_rows(op_a, m, k))?;
    leading(ldb, stored_rows(op_b, k, n))?;
    leading(ldc, m)?;
    Ok((op_a, op_b))
}

/// # Safety
/// The pointers are good for what cuBLAS's manual says of them: those to the host's memory during the call, those to the
/// device's until the routine has run.
pub unsafe fn gemm<T: Product>(
    handle: &Handle,
    transa: cublasOperation_t,
    transb: cublasOperation_t,
    m: i64,
    n: i64,
    k: i64,
    alpha: *const T,
    A: *const T,
    lda: i64,
    B: *const T,
    ldb: i64,
    beta: *const T,
    C: *mut T,
    ldc: i64,
) -> Result {
    let (op_a, op_b) = product(transa, transb, m, n, k, lda, ldb, ldc)?;
    // SAFETY: the caller's promise.
    let (alpha, beta) = unsafe { (handle.scalar(alpha)?, handle.scalar(beta)?) };
    handle.enqueue((A, B, C), move |(A, B, C)| {
        // SAFETY: the caller's promise.
        unsafe { T::gemm((op_a, op_b), (m, n, k), alpha.get(), (A, lda), (B, ldb), beta.get(), (C, ldc)) }
    })
}

/// By three products of real matrices on a GPU, within a bound that the plain way keeps too.
///
/// # Safety
/// As [`gemm`].
pub unsafe fn gemm3m<T: Product>(
    handle: &Handle,
    transa: cublasOperation_t,
    transb: cublasOperation_t,
    m: i64,
    n: i64,
    k: i64,
    alpha: *const T,
    A: *const T,
    lda: i64,
    B: *const T,
    ldb: i64,
    beta: *const T,
    C: *mut T,
    ldc: i64,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { gemm(handle, transa, transb, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc) }
}

/// `Aarray`, `Barray` and `Carray` are themselves in device memory.
///
/// # Safety
/// As [`gemm`].
pub unsafe fn gemm_batched<T: Product>(
    handle: &Handle,
    transa: cublasOperation_t,
    transb: cublasOperation_t,
    m: i64,
    n: i64,
    k: i64,
    alpha: *const T,
    Aarray: *const *const T,
    lda: i64,
    Barray: *const *const T,
    ldb: i64,
    beta: *const T,
    Carray: *const *mut T,
    ldc: i64,
    batchCount: i64,
) -> Result {
    let (op_a, op_b) = product(transa, transb, m, n, k, lda, ldb, ldc)?;
    sizes(&[batchCount], &[])?;
    // SAFETY: the caller's promise.
    let (alpha, beta) = unsafe { (handle.scalar(alpha)?, handle.scalar(beta)?) };
    let arrays = Address((Aarray, Barray, Carray));
    handle.enqueue((), move |()| {
        let (alpha, beta) = (alpha.get(), beta.get());
        each_product(batchCount, m, n, k, |i| {
            let (a, b, c) = arrays.get();
            let i = i as usize;
            // SAFETY: the caller's promise, and of the arrays.
            unsafe {
                let (a, b, c) = (a.add(i).read(), b.add(i).read(), c.add(i).read());
                T::gemm((op_a, op_b), (m, n, k), alpha, (a, lda), (b, ldb), beta, (c, ldc));
            }
        });
    })
}

/// A stride of 0 gives every product the same matrix.
///
/// # Safety
/// As [`gemm`].
pub unsafe fn gemm_strided_batched<T: Product>(
    handle: &Handle,
    transa: cublasOperation_t,
    transb: cublasOperation_t,
    m: i64,
    n: i64,
    k: i64,
    alpha: *const T,
    A: *const T,
    lda: i64,
    strideA: i64,
    B: *const T,
    ldb: i64,
    strideB: i64,
    beta: *const T,
    C: *mut T,
    ldc: i64,
    strideC: i64,
    batchCount: i64,
) -> Result {
    let (op_a, op_b) = product(transa, transb, m, n, k, lda, ldb, ldc)?;
    sizes(&[batchCount], &[])?;
    // SAFETY: the caller's promise.
    let (alpha, beta) = unsafe { (handle.scalar(alpha)?, handle.scalar(beta)?) };
    let matrices = Address((A, B, C));
    handle.enqueue((), move |()| {
        let (alpha, beta) = (alpha.get(), beta.get());
        each_product(batchCount, m, n, k, |i| {
            let (a, b, c) = matrices.get();
            let (a, b) =
                (a.wrapping_offset((i * strideA) as isize), b.wrapping_offset((i * strideB) as isize));
            let c = c.wrapping_offset((i * strideC) as isize);
            // SAFETY: the caller's promise, of each matrix.
            unsafe { T::gemm((op_a, op_b), (m, n, k), alpha, (a, lda), (b, ldb), beta, (c, ldc)) }
        });
    })
}

/// As [`gemm3m`].
///
/// # Safety
/// As [`gemm`].
pub unsafe fn gemm3m_batched<T: Product>(
    handle: &Handle,
    transa: cublasOperation_t,
    transb: cublasOperation_t,
    m: i64,
    n: i64,
    k: i64,
    alpha: *const T,
    Aarray: *const *const T,
    lda: i64,
    Barray: *const *const T,
    ldb: i64,
    beta: *const T,
    Carray: *const *mut T,
    ldc: i64,
    batchCount: i64,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe {
        gemm_batched(
            handle, transa, transb, m, n, k, alpha, Aarray, lda, Barray, ldb, beta, Carray, ldc, batchCount,
        )
    }
}

/// As [`gemm3m`].
///
/// # Safety
/// As [`gemm`].
pub unsafe fn gemm3m_strided_batched<T: Product>(
    handle: &Handle,
    transa: cublasOperation_t,
    transb: cublasOperation_t,
    m: i64,
    n: i64,
    k: i64,
    alpha: *const T,
    A: *const T,
    lda: i64,
    strideA: i64,
    B: *const T,
    ldb: i64,
    strideB: i64,
    beta: *const T,
    C: *mut T,
    ldc: i64,
    strideC: i64,
    batchCount: i64,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe {
        gemm_strided_batched(
            handle, transa, transb, m, n, k, alpha, A, lda, strideA, B, ldb, strideB, beta, C, ldc, strideC,
            batchCount,
        )
    }
}

/// By strides of 0 one after the other: products that share C are in the order of the batch.
fn each_product(count: i64, m: i64, n: i64, k: i64, product: impl Fn(i64) + Sync + Send) {
    parallel(count, m.saturating_mul(n).saturating_mul(k), product);
}

/// # Safety
/// As [`gemm`].
pub unsafe fn symm<T: Scalar>(
    handle: &Handle,
    side: cublasSideMode_t,
    uplo: cublasFillMode_t,
    m: i64,
    n: i64,
    alpha: *const T,
    A: *const T,
    lda: i64,
    B: *const T,
    ldb: i64,
    beta: *const T,
    C: *mut T,
    ldc: i64,
) -> Result {
    let (side, uplo) = (convert::side(side)?, convert::uplo(uplo)?);
    sizes(&[m, n], &[])?;
    leading(lda, order(side, m, n))?;
    leading(ldb.min(ldc), m)?;
    // SAFETY: the caller's promise.
    let (alpha, beta) = unsafe { (handle.scalar(alpha)?, handle.scalar(beta)?) };
    handle.enqueue((A, B, C), move |(A, B, C)| {
        // SAFETY: the caller's promise.
        unsafe { level3::symm(side, uplo, m, n, alpha.get(), A, lda, B, ldb, beta.get(), C, ldc) }
    })
}

/// # Safety
/// As [`gemm`].
pub unsafe fn hemm<T: Scalar>(
    handle: &Handle,
    side: cublasSideMode_t,
    uplo: cublasFillMode_t,
    m: i64,
    n: i64,
    alpha: *const T,
    A: *const T,
    lda: i64,
    B: *const T,
    ldb: i64,
    beta: *const T,
    C: *mut T,
    ldc: i64,
) -> Result {
    let (side, uplo) = (convert::side(side)?, convert::uplo(uplo)?);
    sizes(&[m, n], &[])?;
    leading(lda, order(side, m, n))?;
    leading(ldb.min(ldc), m)?;
    // SAFETY: the caller's promise.
    let (alpha, beta) = unsafe { (handle.scalar(alpha)?, handle.scalar(beta)?) };
    handle.enqueue((A, B, C), move |(A, B, C)| {
        // SAFETY: the caller's promise.
        unsafe { level3::hemm(side, uplo, m, n, alpha.get(), A, lda, B, ldb, beta.get(), C, ldc) }
    })
}

/// What an update of a triangle is told, checked; `lds` are those of its factors.
pub(super) fn update(
    uplo: cublasFillMode_t,
    trans: cublasOperation_t,
    n: i64,
    k: i64,
    lds: &[i64],
    ldc: i64,
) -> Result<(Uplo, Op)> {
    let (uplo, op) = (convert::uplo(uplo)?, convert::op(trans)?);
    sizes(&[n, k], &[])?;
    for &ld in lds {
        leading(ld, stored_rows(op, n, k))?;
    }
    leading(ldc, n)?;
    Ok((uplo, op))
}

/// Of real matrices the conjugate transpose is the transpose.
fn symmetric<T: Scalar>(op: Op) -> Result {
    require(op != Op::C || !T::IS_COMPLEX, "a symmetric update takes no conjugate transpose")
}

fn hermitian<T: Scalar>(op: Op) -> Result {
    require(op != Op::T || !T::IS_COMPLEX, "a Hermitian update takes no plain transpose")
}

/// # Safety
/// As [`gemm`].
pub unsafe fn syrk<T: Scalar>(
    handle: &Handle,
    uplo: cublasFillMode_t,
    trans: cublasOperation_t,
    n: i64,
    k: i64,
    alpha: *const T,
    A: *const T,
    lda: i64,
    beta: *const T,
    C: *mut T,
    ldc: i64,
) -> Result {
    let (uplo, op) = update(uplo, trans, n, k, &[lda], ldc)?;
    symmetric::<T>(op)?;
    // SAFETY: the caller's promise.
    let (alpha, beta) = unsafe { (handle.scalar(alpha)?, handle.scalar(beta)?) };
    handle.enqueue((A, C), move |(A, C)| {
        // SAFETY: the caller's promise.
        unsafe { level3::syrk(uplo, op, n, k, alpha.get(), A, lda, beta.get(), C, ldc) }
    })
}

/// # Safety
/// As [`gemm`].
pub unsafe fn herk<T: Scalar>(
    handle: &Handle,
    uplo: cublasFillMode_t,
    trans: cublasOperation_t,
    n: i64,
    k: i64,
    alpha: *const T::Real,
    A: *const T,
    lda: i64,
    beta: *const T::Real,
    C: *mut T,
    ldc: i64,
) -> Result {
    let (uplo, op) = update(uplo, trans, n, k, &[lda], ldc)?;
    hermitian::<T>(op)?;
    // SAFETY: the caller's promise.
    let (alpha, beta) = unsafe { (handle.scalar(alpha)?, handle.scalar(beta)?) };
    handle.enqueue((A, C), move |(A, C)| {
        // SAFETY: the caller's promise.
        unsafe { level3::herk(uplo, op, n, k, alpha.get(), A, lda, beta.get(), C, ldc) }
    })
}

/// # Safety
/// As [`gemm`].
pub unsafe fn syr2k<T: Scalar>(
    handle: &Handle,
    uplo: cublasFillMode_t,
    trans: cublasOperation_t,
    n: i64,
    k: i64,
    alpha: *const T,
    A: *const T,
    lda: i64,
    B: *const T,
    ldb: i64,
    beta: *const T,
    C: *mut T,
    ldc: i64,
) -> Result {
    let (uplo, op) = update(uplo, trans, n, k, &[lda, ldb], ldc)?;
    symmetric::<T>(op)?;
    // SAFETY: the caller's promise.
    let (alpha, beta) = unsafe { (handle.scalar(alpha)?, handle.scalar(beta)?) };
    handle.enqueue((A, B, C), move |(A, B, C)| {
        // SAFETY: the caller's promise.
        unsafe { level3::syr2k(uplo, op, n, k, alpha.get(), A, lda, B, ldb, beta.get(), C, ldc) }
    })
}

/// # Safety
/// As [`gemm`].
pub unsafe fn her2k<T: Scalar>(
    handle: &Handle,
    uplo: cublasFillMode_t,
    trans: cublasOperation_t,
    n: i64,
    k: i64,
    alpha: *const T,
    A: *const T,
    lda: i64,
    B: *const T,
    ldb: i64,
    beta: *const T::Real,
    C: *mut T,
    ldc: i64,
) -> Result {
    let (uplo, op) = update(uplo, trans, n, k, &[lda, ldb], ldc)?;
    hermitian::<T>(op)?;
    // SAFETY: the caller's promise.
    let (alpha, beta) = unsafe { (handle.scalar(alpha)?, handle.scalar(beta)?) };
    handle.enqueue((A, B, C), move |(A, B, C)| {
        // SAFETY: the caller's promise.
        unsafe { level3::her2k(uplo, op, n, k, alpha.get(), A, lda, B, ldb, beta.get(), C, ldc) }
    })
}

/// # Safety
/// As [`gemm`].
pub unsafe fn syrkx<T: Scalar>(
    handle: &Handle,
    uplo: cublasFillMode_t,
    trans: cublasOperation_t,
    n: i64,
    k: i64,
    alpha: *const T,
    A: *const T,
    lda: i64,
    B: *const T,
    ldb: i64,
    beta: *const T,
    C: *mut T,
    ldc: i64,
) -> Result {
    let (uplo, op) = update(uplo, trans, n, k, &[lda, ldb], ldc)?;
    symmetric::<T>(op)?;
    // SAFETY: the caller's promise.
    let (alpha, beta) = unsafe { (handle.scalar(alpha)?, handle.scalar(beta)?) };
    handle.enqueue((A, B, C), move |(A, B, C)| {
        // SAFETY: the caller's promise.
        unsafe { level3::syrkx(uplo, op, n, k, alpha.get(), A, lda, B, ldb, beta.get(), C, ldc) }
    })
}

/// # Safety
/// As [`gemm`].
pub unsafe fn herkx<T: Scalar>(
    handle: &Handle,
    uplo: cublasFillMode_t,
    trans: cublasOperation_t,
    n: i64,
    k: i64,
    alpha: *const T,
    A: *const T,
    lda: i64,
    B: *const T,
    ldb: i64,
    beta: *const T::Real,
    C: *mut T,
    ldc: i64,
) -> Result {
    let (uplo, op) = update(uplo, trans, n, k, &[lda, ldb], ldc)?;
    hermitian::<T>(op)?;
    // SAFETY: the caller's promise.
    let (alpha, beta) = unsafe { (handle.scalar(alpha)?, handle.scalar(beta)?) };
    handle.enqueue((A, B, C), move |(A, B, C)| {
        // SAFETY: the caller's promise.
        unsafe { level3::herkx(uplo, op, n, k, alpha.get(), A, lda, B, ldb, beta.get(), C, ldc) }
    })
}

/// A triangular matrix on one side of an m × n one, checked.
fn triangle(
    side: cublasSideMode_t,
    uplo: cublasFillMode_t,
    trans: cublasOperation_t,
    diag: cublasDiagType_t,
    m: i64,
    n: i64,
    lda: i64,
    ldb: i64,
) -> Result<(Side, Uplo, Op, Diag)> {
    let of = (convert::side(side)?, convert::uplo(uplo)?, convert::op(trans)?, convert::diag(diag)?);
    sizes(&[m, n], &[])?;
    leading(lda, order(of.0, m, n))?;
    leading(ldb, m)?;
    Ok(of)
}

/// Out of place; in place where C is B.
///
/// # Safety
/// As [`gemm`].
pub unsafe fn trmm<T: Scalar>(
    handle: &Handle,
    side: cublasSideMode_t,
    uplo: cublasFillMode_t,
    trans: cublasOperation_t,
    diag: cublasDiagType_t,
    m: i64,
    n: i64,
    alpha: *const T,
    A: *const T,
    lda: i64,
    B: *const T,
    ldb: i64,
    C: *mut T,
    ldc: i64,
) -> Result {
    let (side, uplo, op, diag) = triangle(side, uplo, trans, diag, m, n, lda, ldb)?;
    leading(ldc, m)?;
    // SAFETY: the caller's promise.
    let alpha = unsafe { handle.scalar(alpha)? };
    handle.enqueue((A, B, C), move |(A, B, C)| {
        // SAFETY: the caller's promise.
        unsafe { level3::trmm(side, uplo, op, diag, m, n, alpha.get(), A, lda, B, ldb, C, ldc) }
    })
}

/// # Safety
/// As [`gemm`].
pub unsafe fn trsm<T: Scalar>(
    handle: &Handle,
    side: cublasSideMode_t,
    uplo: cublasFillMode_t,
    trans: cublasOperation_t,
    diag: cublasDiagType_t,
    m: i64,
    n: i64,
    alpha: *const T,
    A: *const T,
    lda: i64,
    B: *mut T,
    ldb: i64,
) -> Result {
    let (side, uplo, op, diag) = triangle(side, uplo, trans, diag, m, n, lda, ldb)?;
    // SAFETY: the caller's promise.
    let alpha = unsafe { handle.scalar(alpha)? };
    handle.enqueue((A, B), move |(A, B)| {
        // SAFETY: the caller's promise.
        unsafe { level3::trsm(side, uplo, op, diag, m, n, alpha.get(), A, lda, B, ldb) }
    })
}

/// `A` and `B` are arrays of pointers in device memory.
///
/// # Safety
/// As [`gemm`].
pub unsafe fn trsm_batched<T: Scalar>(
    handle: &Handle,
    side: cublasSideMode_t,
    uplo: cublasFillMode_t,
    trans: cublasOperation_t,
    diag: cublasDiagType_t,
    m: i64,
    n: i64,
    alpha: *const T,
    A: *const *const T,
    lda: i64,
    B: *const *mut T,
    ldb: i64,
    batchCount: i64,
) -> Result {
    let (side, uplo, op, diag) = triangle(side, uplo, trans, diag, m, n, lda, ldb)?;
    sizes(&[batchCount], &[])?;
    // SAFETY: the caller's promise.
    let alpha = unsafe { handle.scalar(alpha)? };
    let arrays = Address((A, B));
    handle.enqueue((), move |()| {
        let alpha = alpha.get();
        each_product(batchCount, m, n, order(side, m, n), |i| {
            let (a, b) = arrays.get();
            // SAFETY: the caller's promise, and of the arrays.
            unsafe {
                let (a, b) = (a.add(i as usize).read(), b.add(i as usize).read());
                level3::trsm(side, uplo, op, diag, m, n, alpha, a, lda, b, ldb);
            }
        });
    })
}

/// # Safety
/// As [`gemm`].
pub unsafe fn geam<T: Scalar>(
    handle: &Handle,
    transa: cublasOperation_t,
    transb: cublasOperation_t,
    m: i64,
    n: i64,
    alpha: *const T,
    A: *const T,
    lda: i64,
    beta: *const T,
    B: *const T,
    ldb: i64,
    C: *mut T,
    ldc: i64,
) -> Result {
    let (op_a, op_b) = (convert::op(transa)?, convert::op(transb)?);
    sizes(&[m, n], &[])?;
    leading(lda, stored_rows(op_a, m, n))?;
    leading(ldb, stored_rows(op_b, m, n))?;
    leading(ldc, m)?;
    let in_place =
        |matrix: *const T, ld: i64, op: Op| !std::ptr::eq(matrix, C) || (ld == ldc && !op.transposes());
    require(in_place(A, lda, op_a) && in_place(B, ldb, op_b), "C is A or B, but not in its place")?;
    // SAFETY: the caller's promise.
    let (alpha, beta) = unsafe { (handle.scalar(alpha)?, handle.scalar(beta)?) };
    handle.enqueue((A, B, C), move |(A, B, C)| {
        // SAFETY: the caller's promise.
        unsafe { level3::geam(op_a, op_b, m, n, alpha.get(), A, lda, beta.get(), B, ldb, C, ldc) }
    })
}

/// # Safety
/// As [`gemm`].
pub unsafe fn dgmm<T: Scalar>(
    handle: &Handle,
    mode: cublasSideMode_t,
    m: i64,
    n: i64,
    A: *const T,
    lda: i64,
    x: *const T,
    incx: i64,
    C: *mut T,
    ldc: i64,
) -> Result {
    let side = convert::side(mode)?;
    sizes(&[m, n], &[])?;
    leading(lda.min(ldc), m)?;
    handle.enqueue((A, x, C), move |(A, x, C)| {
        // SAFETY: the caller's promise.
        unsafe { level3::dgmm(side, m, n, A, lda, x, incx, C, ldc) }
    })
}

/// # Safety
/// As [`gemm`].
pub unsafe fn tpttr<T: Scalar>(
    handle: &Handle,
    uplo: cublasFillMode_t,
    n: i64,
    AP: *const T,
    A: *mut T,
    lda: i64,
) -> Result {
    let uplo = convert::uplo(uplo)?;
    sizes(&[n], &[])?;
    leading(lda, n)?;
    handle.enqueue((AP, A), move |(AP, A)| {
        // SAFETY: the caller's promise.
        unsafe { level3::tpttr(uplo, n, AP, A, lda) }
    })
}

/// # Safety
/// As [`gemm`].
pub unsafe fn trttp<T: Scalar>(
    handle: &Handle,
    uplo: cublasFillMode_t,
    n: i64,
    A: *const T,
    lda: i64,
    AP: *mut T,
) -> Result {
    let uplo = convert::uplo(uplo)?;
    sizes(&[n], &[])?;
    leading(lda, n)?;
    handle.enqueue((A, AP), move |(A, AP)| {
        // SAFETY: the caller's promise.
        unsafe { level3::trttp(uplo, n, A, lda, AP) }
    })
}
