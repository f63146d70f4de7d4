//! Systems with a triangle of a matrix in bare arrays. Source: cuSPARSE manual, `csrsv2`, `csrsm2` (both of 11), `bsrsv2`, `bsrsm2`.
//!
//! The rule: an analysis finds where entries are; a solution is made of the values that its own call is given, so that a factorization
//! may run between both. Blocks are solved as the entries that they are. Policies and algorithms are hints.

use core::ffi::{c_int, c_void};

use border::Out;
use cusparse_cpu::{Operation, Triangle};

use super::conversion::SOME;
use super::info::INFOS;
use super::triangular::{Asked, solve_sides};
use crate::bare::*;
use crate::descriptor::{DenseMatrix, SparseMatrix};
use crate::error::require;
use crate::handle;
use crate::memory::{Computed, Factor, check_dense_matrix, matrix};
use crate::types::*;
use crate::{Error, Result};

/// The matrix, and what is asked of it.
type Wanted = Result<(SparseMatrix, Asked)>;

fn wanted<T: Computed>(a: Result<SparseMatrix>, transA: cusparseOperation_t) -> Wanted {
    let a = a?;
    Ok((a, Asked::new(&a, transA, T::TYPE)?))
}

fn check<I>(handle: cusparseHandle_t, wanted: Wanted, info: *mut I) -> Result {
    handle::get(handle)?.can_compute()?;
    INFOS.get(info)?;
    wanted.map(|_| ())
}

/// The row of blocks of a row, counted from the matrix's base.
fn number(a: &SparseMatrix, row: usize) -> c_int {
    let block = match a.format {
        crate::descriptor::Format::Bsr { size, .. } => size,
        _ => 1,
    };
    (row / block) as c_int + a.base.0 as c_int
}

fn analyse<T: Computed, I>(handle: cusparseHandle_t, wanted: Wanted, info: *mut I) -> Result {
    let (context, info, (a, asked)) = (handle::get(handle)?, INFOS.get(info)?, wanted?);
    context.can_compute()?;
    info.analysis.ask(asked);
    context.enqueue(a, move |a| {
        // SAFETY: cuSPARSE's contract: the arrays are there until the stream has come here.
        let triangle = Triangle::new(&unsafe { matrix::<T, c_int>(&a, 0) }.0, asked.shape());
        *info.zero.lock() = triangle.missing().map(|row| number(&a, row));
        info.analysis.find(triangle);
    })
}

/// Right sides and how they are taken; solutions, and whether they are stored transposed.
type Sides = ((DenseMatrix, Operation), (DenseMatrix, bool));

/// # Safety
/// As [`cusparseTcsrsv2_analysis`].
unsafe fn solve<T: Computed, I>(
    handle: cusparseHandle_t,
    wanted: Wanted,
    alpha: *const T,
    info: *mut I,
    ((b, b_operation), (x, x_transposed)): Sides,
) -> Result {
    let (context, info, (a, asked)) = (handle::get(handle)?, INFOS.get(info)?, wanted?);
    // SAFETY: the caller's promise.
    let alpha = unsafe { Factor::new(alpha.cast(), T::TYPE, context.on_host()) }?;
    info.analysis.check_matrix(asked)?;
    context.enqueue((a, alpha, b, x), move |(a, alpha, b, x)| {
        // SAFETY: as above.
        unsafe {
            let (values, _) = matrix::<T, c_int>(&a, 0);
            info.analysis.with::<T, _>(|triangle| {
                if triangle.shape() == asked.shape() {
                    triangle.set_matrix(&values);
                } else {
                    *triangle = Triangle::new(&values, asked.shape());
                }
                *info.zero.lock() = triangle.zero().map(|row| number(&a, row));
                solve_sides(triangle, alpha.get(), (&b, b_operation), (&x, x_transposed));
            });
        }
    })
}

/// A vector for each.
fn vectors<T: Computed>(rows: usize, f: *const T, x: *const T) -> Result<Sides> {
    let vector = |values: *const T| {
        let rows = rows as c_int;
        columns((rows, 1, rows.max(1)), values)
    };
    Ok(((vector(f)?, Operation::default()), (vector(x)?, false)))
}

/// Matrices whose operations are the same.
fn matrices<T: Computed>(
    operation: cusparseOperation_t,
    (rows, sides): (usize, c_int),
    (b, ldb): (*const T, c_int),
    (x, ldx): (*const T, c_int),
) -> Result<Sides> {
    let operation = real_operation(operation)?;
    let (rows, cols) = lying(operation, (rows as c_int, sides));
    let side = |values: *const T, ld| {
        let matrix = columns_of((rows, cols, ld), values.cast(), T::TYPE)?;
        check_dense_matrix(&matrix).map(|()| matrix)
    };
    Ok(((side(b, ldb)?, operation), (side(x, ldx)?, operation.transposed)))
}

#[expect(clippy::too_many_arguments, reason = "C's")]
pub fn cusparseTcsrsv2_bufferSize<T: Computed>(
    handle: cusparseHandle_t,
    transA: cusparseOperation_t,
    m: c_int,
    nnz: c_int,
    descrA: cusparseMatDescr_t,
    csrSortedValA: *mut T,
    csrSortedRowPtrA: *const c_int,
    csrSortedColIndA: *const c_int,
    info: csrsv2Info_t,
    pBufferSizeInBytes: Out<'_, c_int>,
) -> Result {
    let arrays = (csrSortedValA.cast_const(), csrSortedRowPtrA, csrSortedColIndA);
    check(handle, wanted::<T>(csr((m, m, nnz), descrA, arrays), transA), info)?;
    pBufferSizeInBytes.write(SOME as c_int);
    Ok(())
}

/// # Safety
/// The arrays are there as the manual says of them: those of the device's until the stream has done the work, those of the host's while
/// the call lasts.
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseTcsrsv2_analysis<T: Computed>(
    handle: cusparseHandle_t,
    transA: cusparseOperation_t,
    m: c_int,
    nnz: c_int,
    descrA: cusparseMatDescr_t,
    csrSortedValA: *const T,
    csrSortedRowPtrA: *const c_int,
    csrSortedColIndA: *const c_int,
    info: csrsv2Info_t,
    _policy: cusparseSolvePolicy_t,
    _pBuffer: *mut c_void,
) -> Result {
    let a = csr((m, m, nnz), descrA, (csrSortedValA, csrSortedRowPtrA, csrSortedColIndA));
    analyse::<T, _>(handle, wanted::<T>(a, transA), info)
}

/// # Safety
/// As [`cusparseTcsrsv2_analysis`].
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseTcsrsv2_solve<T: Computed>(
    handle: cusparseHandle_t,
    transA: cusparseOperation_t,
    m: c_int,
    nnz: c_int,
    alpha: *const T,
    descrA: cusparseMatDescr_t,
    csrSortedValA: *const T,
    csrSortedRowPtrA: *const c_int,
    csrSortedColIndA: *const c_int,
    info: csrsv2Info_t,
    f: *const T,
    x: *mut T,
    _policy: cusparseSolvePolicy_t,
    _pBuffer: *mut c_void,
) -> Result {
    let a = csr((m, m, nnz), descrA, (csrSortedValA, csrSortedRowPtrA, csrSortedColIndA));
    let sides = vectors(count(m)?, f, x)?;
    // SAFETY: the caller's promise.
    unsafe { solve(handle, wanted::<T>(a, transA), alpha, info, sides) }
}

#[expect(clippy::too_many_arguments, reason = "C's")]
pub fn cusparseTcsrsm2_bufferSizeExt<T: Computed>(
    handle: cusparseHandle_t,
    algo: c_int,
    transA: cusparseOperation_t,
    transB: cusparseOperation_t,
    m: c_int,
    nrhs: c_int,
    nnz: c_int,
    alpha: *const T,
    descrA: cusparseMatDescr_t,
    csrSortedValA: *const T,
    csrSortedRowPtrA: *const c_int,
    csrSortedColIndA: *const c_int,
    B: *const T,
    ldb: c_int,
    info: csrsm2Info_t,
    _policy: cusparseSolvePolicy_t,
    pBufferSize: Out<'_, usize>,
) -> Result {
    check_algorithm(algo)?;
    require(!alpha.is_null(), "alpha is NULL")?;
    let a = csr((m, m, nnz), descrA, (csrSortedValA, csrSortedRowPtrA, csrSortedColIndA));
    check(handle, wanted::<T>(a, transA), info)?;
    matrices(transB, (count(m)?, nrhs), (B, ldb), (B, ldb))?;
    pBufferSize.write(SOME);
    Ok(())
}

/// With blocks or without: the numbers are the same.
fn check_algorithm(algo: c_int) -> Result {
    require(matches!(algo, 0 | 1), "there is no such algorithm")
}

/// # Safety
/// As [`cusparseTcsrsv2_analysis`].
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseTcsrsm2_analysis<T: Computed>(
    handle: cusparseHandle_t,
    algo: c_int,
    transA: cusparseOperation_t,
    transB: cusparseOperation_t,
    m: c_int,
    nrhs: c_int,
    nnz: c_int,
    alpha: *const T,
    descrA: cusparseMatDescr_t,
    csrSortedValA: *const T,
    csrSortedRowPtrA: *const c_int,
    csrSortedColIndA: *const c_int,
    B: *const T,
    ldb: c_int,
    info: csrsm2Info_t,
    _policy: cusparseSolvePolicy_t,
    _pBuffer: *mut c_void,
) -> Result {
    check_algorithm(algo)?;
    require(!alpha.is_null(), "alpha is NULL")?;
    matrices(transB, (count(m)?, nrhs), (B, ldb), (B, ldb))?;
    let a = csr((m, m, nnz), descrA, (csrSortedValA, csrSortedRowPtrA, csrSortedColIndA));
    analyse::<T, _>(handle, wanted::<T>(a, transA), info)
}

/// Solutions take the places of right sides.
///
/// # Safety
/// As [`cusparseTcsrsv2_analysis`].
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseTcsrsm2_solve<T: Computed>(
    handle: cusparseHandle_t,
    algo: c_int,
    transA: cusparseOperation_t,
    transB: cusparseOperation_t,
    m: c_int,
    nrhs: c_int,
    nnz: c_int,
    alpha: *const T,
    descrA: cusparseMatDescr_t,
    csrSortedValA: *const T,
    csrSortedRowPtrA: *const c_int,
    csrSortedColIndA: *const c_int,
    B: *mut T,
    ldb: c_int,
    info: csrsm2Info_t,
    _policy: cusparseSolvePolicy_t,
    _pBuffer: *mut c_void,
) -> Result {
    check_algorithm(algo)?;
    let a = csr((m, m, nnz), descrA, (csrSortedValA, csrSortedRowPtrA, csrSortedColIndA));
    let sides = matrices(transB, (count(m)?, nrhs), (B.cast_const(), ldb), (B.cast_const(), ldb))?;
    // SAFETY: the caller's promise.
    unsafe { solve(handle, wanted::<T>(a, transA), alpha, info, sides) }
}

#[expect(clippy::too_many_arguments, reason = "C's")]
pub fn cusparseTbsrsv2_bufferSize<T: Computed>(
    handle: cusparseHandle_t,
    dirA: cusparseDirection_t,
    transA: cusparseOperation_t,
    mb: c_int,
    nnzb: c_int,
    descrA: cusparseMatDescr_t,
    bsrSortedValA: *mut T,
    bsrSortedRowPtrA: *const c_int,
    bsrSortedColIndA: *const c_int,
    blockDim: c_int,
    info: bsrsv2Info_t,
    pBufferSizeInBytes: Out<'_, c_int>,
) -> Result {
    let arrays = (bsrSortedValA.cast_const(), bsrSortedRowPtrA, bsrSortedColIndA);
    check(handle, wanted::<T>(bsr(dirA, (mb, mb, nnzb, blockDim), descrA, arrays), transA), info)?;
    pBufferSizeInBytes.write(SOME as c_int);
    Ok(())
}

/// # Safety
/// As [`cusparseTcsrsv2_analysis`].
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseTbsrsv2_analysis<T: Computed>(
    handle: cusparseHandle_t,
    dirA: cusparseDirection_t,
    transA: cusparseOperation_t,
    mb: c_int,
    nnzb: c_int,
    descrA: cusparseMatDescr_t,
    bsrSortedValA: *const T,
    bsrSortedRowPtrA: *const c_int,
    bsrSortedColIndA: *const c_int,
    blockDim: c_int,
    info: bsrsv2Info_t,
    _policy: cusparseSolvePolicy_t,
    _pBuffer: *mut c_void,
) -> Result {
    let arrays = (bsrSortedValA, bsrSortedRowPtrA, bsrSortedColIndA);
    analyse::<T, _>(handle, wanted::<T>(bsr(dirA, (mb, mb, nnzb, blockDim), descrA, arrays), transA), info)
}

/// # Safety
/// As [`cusparseTcsrsv2_analysis`].
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseTbsrsv2_solve<T: Computed>(
    handle: cusparseHandle_t,
    dirA: cusparseDirection_t,
    transA: cusparseOperation_t,
    mb: c_int,
    nnzb: c_int,
    alpha: *const T,
    descrA: cusparseMatDescr_t,
    bsrSortedValA: *const T,
    bsrSortedRowPtrA: *const c_int,
    bsrSortedColIndA: *const c_int,
    blockDim: c_int,
    info: bsrsv2Info_t,
    f: *const T,
    x: *mut T,
    _policy: cusparseSolvePolicy_t,
    _pBuffer: *mut c_void,
) -> Result {
    let arrays = (bsrSortedValA, bsrSortedRowPtrA, bsrSortedColIndA);
    let a = bsr(dirA, (mb, mb, nnzb, blockDim), descrA, arrays)?;
    // SAFETY: the caller's promise.
    unsafe { solve(handle, wanted::<T>(Ok(a), transA), alpha, info, vectors(a.rows, f, x)?) }
}

/// The manual has the matrix as it is alone here.
fn not_transposed<T: Computed>(a: Result<SparseMatrix>, transA: cusparseOperation_t) -> Wanted {
    let wanted = wanted::<T>(a, transA)?;
    plain(transA).map(|()| wanted).map_err(|_| Error::NotSupported("bsrsm2 of the transposed matrix"))
}

#[expect(clippy::too_many_arguments, reason = "C's")]
pub fn cusparseTbsrsm2_bufferSize<T: Computed>(
    handle: cusparseHandle_t,
    dirA: cusparseDirection_t,
    transA: cusparseOperation_t,
    transXY: cusparseOperation_t,
    mb: c_int,
    n: c_int,
    nnzb: c_int,
    descrA: cusparseMatDescr_t,
    bsrSortedVal: *mut T,
    bsrSortedRowPtr: *const c_int,
    bsrSortedColInd: *const c_int,
    blockSize: c_int,
    info: bsrsm2Info_t,
    pBufferSizeInBytes: Out<'_, c_int>,
) -> Result {
    let arrays = (bsrSortedVal.cast_const(), bsrSortedRowPtr, bsrSortedColInd);
    real_operation(transXY)?;
    count(n)?;
    check(handle, not_transposed::<T>(bsr(dirA, (mb, mb, nnzb, blockSize), descrA, arrays), transA), info)?;
    pBufferSizeInBytes.write(SOME as c_int);
    Ok(())
}

/// # Safety
/// As [`cusparseTcsrsv2_analysis`].
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseTbsrsm2_analysis<T: Computed>(
    handle: cusparseHandle_t,
    dirA: cusparseDirection_t,
    transA: cusparseOperation_t,
    transXY: cusparseOperation_t,
    mb: c_int,
    n: c_int,
    nnzb: c_int,
    descrA: cusparseMatDescr_t,
    bsrSortedVal: *const T,
    bsrSortedRowPtr: *const c_int,
    bsrSortedColInd: *const c_int,
    blockSize: c_int,
    info: bsrsm2Info_t,
    _policy: cusparseSolvePolicy_t,
    _pBuffer: *mut c_void,
) -> Result {
    let arrays = (bsrSortedVal, bsrSortedRowPtr, bsrSortedColInd);
    real_operation(transXY)?;
    count(n)?;
    let a = bsr(dirA, (mb, mb, nnzb, blockSize), descrA, arrays);
    analyse::<T, _>(handle, not_transposed::<T>(a, transA), info)
}

/// # Safety
/// As [`cusparseTcsrsv2_analysis`].
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseTbsrsm2_solve<T: Computed>(
    handle: cusparseHandle_t,
    dirA: cusparseDirection_t,
    transA: cusparseOperation_t,
    transXY: cusparseOperation_t,
    mb: c_int,
    n: c_int,
    nnzb: c_int,
    alpha: *const T,
    descrA: cusparseMatDescr_t,
    bsrSortedVal: *const T,
    bsrSortedRowPtr: *const c_int,
    bsrSortedColInd: *const c_int,
    blockSize: c_int,
    info: bsrsm2Info_t,
    B: *const T,
    ldb: c_int,
    X: *mut T,
    ldx: c_int,
    _policy: cusparseSolvePolicy_t,
    _pBuffer: *mut c_void,
) -> Result {
    let arrays = (bsrSortedVal, bsrSortedRowPtr, bsrSortedColInd);
    let a = bsr(dirA, (mb, mb, nnzb, blockSize), descrA, arrays)?;
    let sides = matrices(transXY, (a.rows, n), (B, ldb), (X.cast_const(), ldx))?;
    // SAFETY: the caller's promise.
    unsafe { solve(handle, not_transposed::<T>(Ok(a), transA), alpha, info, sides) }
}
