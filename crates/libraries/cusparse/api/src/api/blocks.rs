//! Products with matrices of blocks in bare arrays, and of dense matrices with sparse vectors and matrices. Source: cuSPARSE manual,
//! `bsrmv`, `bsrxmv`, `bsrmm`, `gemvi`, and `gemmi` (of 11).

use core::ffi::{c_int, c_void};

use border::Out;
use cusparse_cpu::{Dense, Operation, Subset};

use super::conversion::SOME;
use crate::bare::*;
use crate::descriptor::{DenseMatrix, SparseMatrix, check_base};
use crate::error::require;
use crate::handle;
use crate::memory::*;
use crate::types::*;
use crate::{Error, Result};

/// What the manual says of `bsrmv` and `bsrxmv`.
fn check_blocks(blockDim: c_int, transA: cusparseOperation_t) -> Result {
    plain(transA)?;
    edge(blockDim)?;
    if blockDim == 1 {
        return Err(Error::NotSupported("products of vectors with blocks of one value"));
    }
    Ok(())
}

/// Which rows of blocks there are to do, and where each begins and ends.
#[derive(Clone, Copy)]
struct Mask {
    count: usize,
    rows: *const c_int,
    ends: *const c_int,
}

kit::addresses! { Mask { rows, ends } }

/// # Safety
/// The arrays are there as the manual says of them: those of the device's until the stream has done the work, those of the host's while
/// the call lasts.
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseTbsrmv<T: Computed>(
    handle: cusparseHandle_t,
    dirA: cusparseDirection_t,
    transA: cusparseOperation_t,
    mb: c_int,
    nb: c_int,
    nnzb: c_int,
    alpha: *const T,
    descrA: cusparseMatDescr_t,
    bsrSortedValA: *const T,
    bsrSortedRowPtrA: *const c_int,
    bsrSortedColIndA: *const c_int,
    blockDim: c_int,
    x: *const T,
    beta: *const T,
    y: *mut T,
) -> Result {
    let context = handle::get(handle)?;
    check_blocks(blockDim, transA)?;
    let arrays = (bsrSortedValA, bsrSortedRowPtrA, bsrSortedColIndA);
    let a = bsr(dirA, (mb, nb, nnzb, blockDim), descrA, arrays)?;
    check_array(x.cast(), a.cols, align_of::<T>())?;
    check_array(y.cast_const().cast(), a.rows, align_of::<T>())?;
    // SAFETY: the caller's promise.
    let (alpha, beta) = unsafe { Factor::pair([alpha.cast(), beta.cast()], T::TYPE, context.on_host()) }?;
    context.enqueue((a, x, y, (alpha, beta)), |(a, x, y, (alpha, beta))| {
        // SAFETY: cuSPARSE's contract: the arrays are there until the stream has come here.
        unsafe {
            let x = slice::<T>(x.cast(), a.cols);
            let y = slice_mut::<T>(y.cast(), a.rows);
            let factors = (alpha.get(), beta.get());
            cusparse_cpu::spmv(&matrix::<T, c_int>(&a, 0).0, Operation::default(), x, factors, y);
        }
    })
}

/// Rows that are not in the mask stay as they are.
///
/// # Safety
/// As [`cusparseTbsrmv`].
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseTbsrxmv<T: Computed>(
    handle: cusparseHandle_t,
    dirA: cusparseDirection_t,
    transA: cusparseOperation_t,
    sizeOfMask: c_int,
    mb: c_int,
    nb: c_int,
    nnzb: c_int,
    alpha: *const T,
    descrA: cusparseMatDescr_t,
    bsrSortedValA: *const T,
    bsrSortedMaskPtrA: *const c_int,
    bsrSortedRowPtrA: *const c_int,
    bsrSortedEndPtrA: *const c_int,
    bsrSortedColIndA: *const c_int,
    blockDim: c_int,
    x: *const T,
    beta: *const T,
    y: *mut T,
) -> Result {
    let context = handle::get(handle)?;
    check_blocks(blockDim, transA)?;
    let (size, row_major) = (edge(blockDim)?, is_row_major(dirA)?);
    let (rows, cols, blocks) = (count(mb)?, count(nb)?, count(nnzb)?);
    let mask = Mask { count: count(sizeOfMask)?, rows: bsrSortedMaskPtrA, ends: bsrSortedEndPtrA };
    require(mask.count <= rows, "more rows in the mask than there are")?;
    let base = general(descrA)?.base;
    check_numbers(mask.rows, mask.count)?;
    check_numbers(mask.ends, rows)?;
    check_numbers(bsrSortedRowPtrA, rows)?;
    check_numbers(bsrSortedColIndA, blocks)?;
    check_array(bsrSortedValA.cast(), blocks, align_of::<T>())?;
    check_array(x.cast(), cols, align_of::<T>())?;
    check_array(y.cast_const().cast(), rows, align_of::<T>())?;
    // SAFETY: the caller's promise.
    let (alpha, beta) = unsafe { Factor::pair([alpha.cast(), beta.cast()], T::TYPE, context.on_host()) }?;
    let arrays = (bsrSortedValA, bsrSortedRowPtrA, bsrSortedColIndA);
    context.enqueue((arrays, mask, (x, y), (alpha, beta)), move |(arrays, mask, (x, y), (alpha, beta))| {
        // SAFETY: as above.
        unsafe {
            let begins = slice::<c_int>(arrays.1.cast(), rows);
            let part = Subset {
                rows: slice(mask.rows.cast(), mask.count),
                begins,
                ends: slice(mask.ends.cast(), rows),
                indices: slice(arrays.2.cast(), blocks),
                values: slice::<T>(arrays.0.cast(), blocks * size * size),
                base: base.0 as usize,
                size,
                row_major,
            };
            let (x, y) = (slice::<T>(x.cast(), cols * size), slice_mut::<T>(y.cast(), rows * size));
            part.multiply((alpha.get(), beta.get()), x, y);
        }
    })
}

/// # Safety
/// As [`cusparseTbsrmv`].
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseTbsrmm<T: Computed>(
    handle: cusparseHandle_t,
    dirA: cusparseDirection_t,
    transA: cusparseOperation_t,
    transB: cusparseOperation_t,
    mb: c_int,
    n: c_int,
    kb: c_int,
    nnzb: c_int,
    alpha: *const T,
    descrA: cusparseMatDescr_t,
    bsrSortedValA: *const T,
    bsrSortedRowPtrA: *const c_int,
    bsrSortedColIndA: *const c_int,
    blockSize: c_int,
    B: *const T,
    ldb: c_int,
    beta: *const T,
    C: *mut T,
    ldc: c_int,
) -> Result {
    let context = handle::get(handle)?;
    plain(transA)?;
    let operation = real_operation(transB)?;
    let arrays = (bsrSortedValA, bsrSortedRowPtrA, bsrSortedColIndA);
    let a = bsr(dirA, (mb, kb, nnzb, blockSize), descrA, arrays)?;
    let (rows, cols) = lying(operation, (a.cols as c_int, n));
    let (b, c) = (columns((rows, cols, ldb), B)?, columns((a.rows as c_int, n, ldc), C.cast_const())?);
    // SAFETY: the caller's promise.
    let (alpha, beta) = unsafe { Factor::pair([alpha.cast(), beta.cast()], T::TYPE, context.on_host()) }?;
    context.enqueue((a, b, c, (alpha, beta)), move |(a, b, c, (alpha, beta))| {
        // SAFETY: as above.
        unsafe {
            let b = packed::<T>(&b, 0, operation.transposed, false);
            let (factors, to) = ((alpha.get(), beta.get()), (c.values, T::TYPE, c.layout()));
            multiply_dense(&matrix::<T, c_int>(&a, 0).0, Operation::default(), &b, factors, to);
        }
    })
}

pub fn cusparseTgemvi_bufferSize(
    handle: cusparseHandle_t,
    transA: cusparseOperation_t,
    m: c_int,
    n: c_int,
    nnz: c_int,
    pBufferSize: Out<'_, c_int>,
) -> Result {
    handle::get(handle)?.can_compute()?;
    operation(transA)?;
    count(m)?;
    count(n)?;
    count(nnz)?;
    pBufferSize.write(SOME as c_int);
    Ok(())
}

/// `op(A)` of a dense matrix.
///
/// # Safety
/// As [`slice`], of values of the layout.
unsafe fn dense<'a, T: Computed>(a: &DenseMatrix, operation: Operation) -> Dense<'a, T> {
    let layout = a.layout();
    // SAFETY: the caller's promise.
    let dense = Dense { layout, values: unsafe { slice(a.values, layout.len()) } };
    if operation.transposed { dense.transposed() } else { dense }
}

/// # Safety
/// As [`cusparseTbsrmv`].
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseTgemvi<T: Computed>(
    handle: cusparseHandle_t,
    transA: cusparseOperation_t,
    m: c_int,
    n: c_int,
    alpha: *const T,
    A: *const T,
    lda: c_int,
    nnz: c_int,
    xVal: *const T,
    xInd: *const c_int,
    beta: *const T,
    y: *mut T,
    idxBase: cusparseIndexBase_t,
    _pBuffer: *mut c_void,
) -> Result {
    let context = handle::get(handle)?;
    let (a, operation, nnz) = (columns((m, n, lda), A)?, operation(transA)?, count(nnz)?);
    check_base(idxBase)?;
    let (rows, _) = operation.size(a.rows, a.cols);
    check_numbers(xInd, nnz)?;
    check_array(xVal.cast(), nnz, align_of::<T>())?;
    check_array(y.cast_const().cast(), rows, align_of::<T>())?;
    // SAFETY: the caller's promise.
    let (alpha, beta) = unsafe { Factor::pair([alpha.cast(), beta.cast()], T::TYPE, context.on_host()) }?;
    context.enqueue((a, (xInd, xVal), y, (alpha, beta)), move |(a, (indices, values), y, (alpha, beta))| {
        // SAFETY: as above.
        unsafe {
            let entries =
                (slice::<c_int>(indices.cast(), nnz), slice(values.cast(), nnz), idxBase.0 as usize);
            let product = cusparse_cpu::dense_times(dense::<T>(&a, operation), operation.conjugated, entries);
            blend(y.cast(), T::TYPE, column(rows), &product, (alpha.get(), beta.get()));
        }
    })
}

/// The sparse matrix is by columns, its numbers from 0.
///
/// # Safety
/// As [`cusparseTbsrmv`].
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseTgemmi<T: Computed>(
    handle: cusparseHandle_t,
    m: c_int,
    n: c_int,
    k: c_int,
    nnz: c_int,
    alpha: *const T,
    A: *const T,
    lda: c_int,
    cscValB: *const T,
    cscColPtrB: *const c_int,
    cscRowIndB: *const c_int,
    beta: *const T,
    C: *mut T,
    ldc: c_int,
) -> Result {
    let context = handle::get(handle)?;
    let (a, c) = (columns((m, k, lda), A)?, columns((m, n, ldc), C.cast_const())?);
    // By columns it is the transposed matrix by rows.
    let b = SparseMatrix {
        values: cscValB.cast_mut().cast(),
        offsets: cscColPtrB.cast_mut().cast(),
        indices: cscRowIndB.cast_mut().cast(),
        value_type: T::TYPE,
        ..SparseMatrix::new(crate::descriptor::Format::Csr, (n.into(), k.into(), nnz.into()))?
    };
    check_matrix(&b)?;
    // SAFETY: the caller's promise.
    let (alpha, beta) = unsafe { Factor::pair([alpha.cast(), beta.cast()], T::TYPE, context.on_host()) }?;
    context.enqueue((a, b, c, (alpha, beta)), |(a, b, c, (alpha, beta))| {
        // Transposed: C is n lines of m values.
        // SAFETY: as above.
        unsafe {
            let a = packed::<T>(&a, 0, true, false);
            let (factors, to) = ((alpha.get(), beta.get()), (c.values, T::TYPE, c.layout().transposed()));
            multiply_dense(&matrix::<T, c_int>(&b, 0).0, Operation::default(), &a, factors, to);
        }
    })
}
