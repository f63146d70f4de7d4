//! Incomplete factorizations without fill-in, of entries and of blocks. Source: cuSPARSE manual, `csrilu02`, `csric02`, `bsrilu02`,
//! `bsric02`.
//!
//! A body whose name has T in the place of the type's letter is that of all four types. An analysis has nothing to find but missing
//! diagonals, which the factorization finds too; policies are hints.

use core::ffi::{c_int, c_void};
use std::sync::Arc;

use border::Out;
use cusparse_cpu::Boost;

pub use self::cusparseTbsrilu02_analysis as cusparseTbsric02_analysis;
pub use self::cusparseTbsrilu02_bufferSize as cusparseTbsric02_bufferSize;
pub use self::cusparseTcsrilu02_analysis as cusparseTcsric02_analysis;
pub use self::cusparseTcsrilu02_bufferSize as cusparseTcsric02_bufferSize;
pub use self::cusparseTcsrilu02_numericBoost as cusparseTbsrilu02_numericBoost;
use super::conversion::SOME;
use super::info::{INFOS, Info};
use crate::Result;
use crate::bare::{bsr, csr, pattern};
use crate::descriptor::SparseMatrix;
use crate::handle;
use crate::memory::{Computed, Factor, slice_mut};
use crate::types::*;

fn buffer<I>(
    handle: cusparseHandle_t,
    a: Result<SparseMatrix>,
    info: *mut I,
    bytes: Out<'_, c_int>,
) -> Result {
    handle::get(handle)?.can_compute()?;
    INFOS.get(info)?;
    a?;
    bytes.write(SOME as c_int);
    Ok(())
}

/// Looks for rows without a diagonal.
fn analyse<I>(handle: cusparseHandle_t, a: Result<SparseMatrix>, info: *mut I) -> Result {
    let (context, info, a) = (handle::get(handle)?, INFOS.get(info)?, a?);
    context.enqueue(a, move |a| {
        // SAFETY: cuSPARSE's contract: the arrays are there until the stream has come here.
        let missing = cusparse_cpu::missing_diagonal(&unsafe { pattern(&a) });
        note(&info, missing, &a);
    })
}

/// The row is counted from the matrix's base.
fn note(info: &Info, row: Option<usize>, a: &SparseMatrix) {
    *info.zero.lock() = row.map(|row| row as c_int + a.base.0 as c_int);
}

fn lower_upper<T: Computed, I>(handle: cusparseHandle_t, a: Result<SparseMatrix>, info: *mut I) -> Result {
    let (context, info, a) = (handle::get(handle)?, INFOS.get(info)?, a?);
    let boost = *info.boost.lock();
    context.enqueue((a, boost), move |(a, boost)| {
        // SAFETY: cuSPARSE's contract: the arrays and numbers are there until the stream has come here.
        let (pattern, values, boost) = unsafe {
            let boost = boost.map(|(tolerance, value)| Boost {
                tolerance: tolerance.get::<f64>(),
                value: value.get::<T>(),
            });
            (pattern(&a), slice_mut::<T>(a.values, a.nnz), boost)
        };
        note(&info, cusparse_cpu::lower_upper(&pattern, values, boost), &a);
    })
}

fn cholesky<T: Computed>(handle: cusparseHandle_t, a: Result<SparseMatrix>, info: Arc<Info>) -> Result {
    let (context, a) = (handle::get(handle)?, a?);
    context.enqueue(a, move |a| {
        // SAFETY: as above.
        let (pattern, values) = unsafe { (pattern(&a), slice_mut::<T>(a.values, a.nnz)) };
        note(&info, cusparse_cpu::cholesky(&pattern, values), &a);
    })
}

/// # Safety
/// The arrays are there as the manual says of them: those of the device's until the stream has done the work, those of the host's while
/// the call lasts.
pub unsafe fn cusparseTcsrilu02_numericBoost<T: Computed, I>(
    handle: cusparseHandle_t,
    info: *mut I,
    enable_boost: c_int,
    tol: *mut f64,
    boost_val: *mut T,
) -> Result {
    let (context, info) = (handle::get(handle)?, INFOS.get(info)?);
    let boost = match enable_boost {
        0 => None,
        // SAFETY: the caller's promise.
        _ => Some(unsafe {
            (
                Factor::new(tol.cast(), cudaDataType::CUDA_R_64F, context.on_host())?,
                Factor::new(boost_val.cast(), T::TYPE, context.on_host())?,
            )
        }),
    };
    *info.boost.lock() = boost;
    Ok(())
}

#[expect(clippy::too_many_arguments, reason = "C's")]
pub fn cusparseTcsrilu02_bufferSize<T: Computed, I>(
    handle: cusparseHandle_t,
    m: c_int,
    nnz: c_int,
    descrA: cusparseMatDescr_t,
    csrSortedValA: *const T,
    csrSortedRowPtrA: *const c_int,
    csrSortedColIndA: *const c_int,
    info: *mut I,
    pBufferSizeInBytes: Out<'_, c_int>,
) -> Result {
    let a = csr((m, m, nnz), descrA, (csrSortedValA, csrSortedRowPtrA, csrSortedColIndA));
    buffer(handle, a, info, pBufferSizeInBytes)
}

/// # Safety
/// As [`cusparseTcsrilu02_numericBoost`].
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseTcsrilu02_analysis<T: Computed, I>(
    handle: cusparseHandle_t,
    m: c_int,
    nnz: c_int,
    descrA: cusparseMatDescr_t,
    csrSortedValA: *const T,
    csrSortedRowPtrA: *const c_int,
    csrSortedColIndA: *const c_int,
    info: *mut I,
    _policy: cusparseSolvePolicy_t,
    _pBuffer: *mut c_void,
) -> Result {
    let a = csr((m, m, nnz), descrA, (csrSortedValA, csrSortedRowPtrA, csrSortedColIndA));
    analyse(handle, a, info)
}

/// # Safety
/// As [`cusparseTcsrilu02_numericBoost`].
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseTcsrilu02<T: Computed>(
    handle: cusparseHandle_t,
    m: c_int,
    nnz: c_int,
    descrA: cusparseMatDescr_t,
    csrSortedValA_valM: *mut T,
    csrSortedRowPtrA: *const c_int,
    csrSortedColIndA: *const c_int,
    info: csrilu02Info_t,
    _policy: cusparseSolvePolicy_t,
    _pBuffer: *mut c_void,
) -> Result {
    let arrays = (csrSortedValA_valM.cast_const(), csrSortedRowPtrA, csrSortedColIndA);
    lower_upper::<T, _>(handle, csr((m, m, nnz), descrA, arrays), info)
}

/// # Safety
/// As [`cusparseTcsrilu02_numericBoost`].
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseTcsric02<T: Computed>(
    handle: cusparseHandle_t,
    m: c_int,
    nnz: c_int,
    descrA: cusparseMatDescr_t,
    csrSortedValA_valM: *mut T,
    csrSortedRowPtrA: *const c_int,
    csrSortedColIndA: *const c_int,
    info: csric02Info_t,
    _policy: cusparseSolvePolicy_t,
    _pBuffer: *mut c_void,
) -> Result {
    let arrays = (csrSortedValA_valM.cast_const(), csrSortedRowPtrA, csrSortedColIndA);
    cholesky::<T>(handle, csr((m, m, nnz), descrA, arrays), INFOS.get(info)?)
}

#[expect(clippy::too_many_arguments, reason = "C's")]
pub fn cusparseTbsrilu02_bufferSize<T: Computed, I>(
    handle: cusparseHandle_t,
    dirA: cusparseDirection_t,
    mb: c_int,
    nnzb: c_int,
    descrA: cusparseMatDescr_t,
    bsrSortedVal: *const T,
    bsrSortedRowPtr: *const c_int,
    bsrSortedColInd: *const c_int,
    blockDim: c_int,
    info: *mut I,
    pBufferSizeInBytes: Out<'_, c_int>,
) -> Result {
    let arrays = (bsrSortedVal, bsrSortedRowPtr, bsrSortedColInd);
    buffer(handle, bsr(dirA, (mb, mb, nnzb, blockDim), descrA, arrays), info, pBufferSizeInBytes)
}

/// # Safety
/// As [`cusparseTcsrilu02_numericBoost`].
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseTbsrilu02_analysis<T: Computed, I>(
    handle: cusparseHandle_t,
    dirA: cusparseDirection_t,
    mb: c_int,
    nnzb: c_int,
    descrA: cusparseMatDescr_t,
    bsrSortedVal: *const T,
    bsrSortedRowPtr: *const c_int,
    bsrSortedColInd: *const c_int,
    blockDim: c_int,
    info: *mut I,
    _policy: cusparseSolvePolicy_t,
    _pBuffer: *mut c_void,
) -> Result {
    let arrays = (bsrSortedVal, bsrSortedRowPtr, bsrSortedColInd);
    analyse(handle, bsr(dirA, (mb, mb, nnzb, blockDim), descrA, arrays), info)
}

/// # Safety
/// As [`cusparseTcsrilu02_numericBoost`].
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseTbsrilu02<T: Computed>(
    handle: cusparseHandle_t,
    dirA: cusparseDirection_t,
    mb: c_int,
    nnzb: c_int,
    descrA: cusparseMatDescr_t,
    bsrSortedVal: *mut T,
    bsrSortedRowPtr: *const c_int,
    bsrSortedColInd: *const c_int,
    blockDim: c_int,
    info: bsrilu02Info_t,
    _policy: cusparseSolvePolicy_t,
    _pBuffer: *mut c_void,
) -> Result {
    let arrays = (bsrSortedVal.cast_const(), bsrSortedRowPtr, bsrSortedColInd);
    lower_upper::<T, _>(handle, bsr(dirA, (mb, mb, nnzb, blockDim), descrA, arrays), info)
}

/// # Safety
/// As [`cusparseTcsrilu02_numericBoost`].
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseTbsric02<T: Computed>(
    handle: cusparseHandle_t,
    dirA: cusparseDirection_t,
    mb: c_int,
    nnzb: c_int,
    descrA: cusparseMatDescr_t,
    bsrSortedVal: *mut T,
    bsrSortedRowPtr: *const c_int,
    bsrSortedColInd: *const c_int,
    blockDim: c_int,
    info: bsric02Info_t,
    _policy: cusparseSolvePolicy_t,
    _pBuffer: *mut c_void,
) -> Result {
    let arrays = (bsrSortedVal.cast_const(), bsrSortedRowPtr, bsrSortedColInd);
    cholesky::<T>(handle, bsr(dirA, (mb, mb, nnzb, blockDim), descrA, arrays), INFOS.get(info)?)
}
