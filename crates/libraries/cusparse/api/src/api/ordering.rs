//! Rows in order and back, and colours. Source: cuSPARSE manual, `csru2csr`, `csr2csru`, `csrcolor`.

use core::ffi::{c_int, c_void};

use border::Out;
use cusparse_cpu::Index;

use super::conversion::SOME;
use super::info::INFOS;
use crate::Result;
use crate::bare::*;
use crate::error::require;
use crate::handle;
use crate::memory::{Computed, Factor, check_array, slice, slice_mut};
use crate::types::*;

#[expect(clippy::too_many_arguments, reason = "C's")]
pub fn cusparseTcsru2csr_bufferSizeExt<T: Computed>(
    handle: cusparseHandle_t,
    m: c_int,
    n: c_int,
    nnz: c_int,
    csrVal: *mut T,
    csrRowPtr: *const c_int,
    csrColInd: *mut c_int,
    info: csru2csrInfo_t,
    pBufferSizeInBytes: Out<'_, usize>,
) -> Result {
    handle::get(handle)?.can_compute()?;
    INFOS.get(info)?;
    count(n)?;
    check_rows((m, nnz), (csrVal, csrRowPtr, csrColInd))?;
    pBufferSizeInBytes.write(SOME);
    Ok(())
}

/// How many rows and entries.
fn check_rows<T>(
    (m, nnz): (c_int, c_int),
    (values, offsets, indices): (*mut T, *const c_int, *mut c_int),
) -> Result<(usize, usize)> {
    let (rows, nnz) = (count(m)?, count(nnz)?);
    check_numbers(offsets, if rows == 0 { 0 } else { rows + 1 })?;
    check_numbers(indices, nnz)?;
    check_array(values.cast_const().cast(), nnz, align_of::<T>())?;
    Ok((rows, nnz))
}

/// Sorts rows by their columns; the info keeps where entries were.
///
/// # Safety
/// The arrays are there as the manual says of them: those of the device's until the stream has done the work, those of the host's while
/// the call lasts.
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseTcsru2csr<T: Computed>(
    handle: cusparseHandle_t,
    m: c_int,
    n: c_int,
    nnz: c_int,
    descrA: cusparseMatDescr_t,
    csrVal: *mut T,
    csrRowPtr: *const c_int,
    csrColInd: *mut c_int,
    info: csru2csrInfo_t,
    _pBuffer: *mut c_void,
) -> Result {
    let (context, info, base) = (handle::get(handle)?, INFOS.get(info)?, general(descrA)?.base.0 as usize);
    count(n)?;
    let (rows, nnz) = check_rows((m, nnz), (csrVal, csrRowPtr, csrColInd))?;
    context.enqueue((csrVal, csrRowPtr, csrColInd), move |(values, offsets, indices)| {
        // SAFETY: cuSPARSE's contract: the arrays are there until the stream has come here.
        let (values, offsets, indices) = unsafe {
            let offsets = slice::<c_int>(offsets.cast(), if rows == 0 { 0 } else { rows + 1 });
            (slice_mut::<T>(values.cast(), nnz), offsets, slice_mut::<c_int>(indices.cast(), nnz))
        };
        let mut order: Vec<usize> = (0..nnz).collect();
        for bounds in offsets.windows(2) {
            order[bounds[0].place(base)..bounds[1].place(base)].sort_by_key(|at| indices[*at]);
        }
        let sorted: Vec<(c_int, T)> = order.iter().map(|at| (indices[*at], values[*at])).collect();
        sorted.into_iter().enumerate().for_each(|(at, entry)| (indices[at], values[at]) = entry);
        *info.order.lock() = order;
    })
}

/// Undoes it.
///
/// # Safety
/// As [`cusparseTcsru2csr`].
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseTcsr2csru<T: Computed>(
    handle: cusparseHandle_t,
    m: c_int,
    n: c_int,
    nnz: c_int,
    descrA: cusparseMatDescr_t,
    csrVal: *mut T,
    csrRowPtr: *const c_int,
    csrColInd: *mut c_int,
    info: csru2csrInfo_t,
    _pBuffer: *mut c_void,
) -> Result {
    let (context, info) = (handle::get(handle)?, INFOS.get(info)?);
    general(descrA)?;
    count(n)?;
    let (_, nnz) = check_rows((m, nnz), (csrVal, csrRowPtr, csrColInd))?;
    context.enqueue((csrVal, csrColInd), move |(values, indices)| {
        // SAFETY: as above.
        let (values, indices) =
            unsafe { (slice_mut::<T>(values.cast(), nnz), slice_mut::<c_int>(indices.cast(), nnz)) };
        let order = info.order.lock();
        assert!(order.len() == nnz, "other rows than those that were sorted");
        let sorted: Vec<(c_int, T)> = indices.iter().copied().zip(values.iter().copied()).collect();
        order.iter().zip(sorted).for_each(|(at, entry)| (indices[*at], values[*at]) = entry);
    })
}

/// Greedy, in the order of rows. A row's place in the reordering is behind those of the colours before its own.
///
/// # Safety
/// As [`cusparseTcsru2csr`].
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseTcsrcolor<T: Computed, F>(
    handle: cusparseHandle_t,
    m: c_int,
    nnz: c_int,
    descrA: cusparseMatDescr_t,
    _csrSortedValA: *const T,
    csrSortedRowPtrA: *const c_int,
    csrSortedColIndA: *const c_int,
    fractionToColor: *const F,
    ncolors: *mut c_int,
    coloring: *mut c_int,
    reordering: *mut c_int,
    info: cusparseColorInfo_t,
) -> Result {
    let context = handle::get(handle)?;
    INFOS.get(info)?;
    let a = csr_pattern((m, m, nnz), descrA, (csrSortedRowPtrA, csrSortedColIndA))?;
    // Of complex numbers the type of their parts.
    let ty = match size_of::<F>() {
        4 => cudaDataType::CUDA_R_32F,
        _ => cudaDataType::CUDA_R_64F,
    };
    // SAFETY: the caller's promise.
    let fraction = unsafe { Factor::new(fractionToColor.cast(), ty, context.on_host()) }?;
    check_numbers(coloring, a.rows)?;
    require(!ncolors.is_null(), "there is no place for the number of colours")?;
    context.enqueue(
        (a, fraction, ncolors, coloring, reordering),
        |(a, fraction, total, colors, order)| {
            // SAFETY: as above.
            unsafe {
                let wanted =
                    (fraction.get::<f64>() * a.rows as f64).ceil().clamp(0.0, a.rows as f64) as usize;
                let pattern = pattern(&a);
                let colors = slice_mut::<c_int>(colors.cast(), a.rows);
                let lines = (pattern.offsets, pattern.indices, pattern.base);
                tell(total, cusparse_cpu::color(lines, wanted, colors));
                if !order.is_null() {
                    let mut by_color: Vec<usize> = (0..a.rows).collect();
                    by_color.sort_by_key(|row| colors[*row]);
                    let order = slice_mut::<c_int>(order.cast(), a.rows);
                    by_color.iter().enumerate().for_each(|(place, row)| order[*row] = place as c_int);
                }
            }
        },
    )?;
    if context.on_host() { context.deliver() } else { Ok(()) }
}
