//! Row numbers and row offsets, and entries in order. Source: cuSPARSE manual, "Format Conversion" of bare arrays.

use core::ffi::{c_int, c_void};

use border::Out;

use super::conversion::SOME;
use super::legacy;
use crate::Result;
use crate::descriptor::{check_base, size};
use crate::handle;
use crate::memory::{check_array, slice, slice_mut};
use crate::types::*;

/// How many, of numbers that are not negative.
fn counts(m: c_int, nnz: c_int) -> Result<(usize, usize)> {
    Ok((size(m.into())?, size(nnz.into())?))
}

fn check(at: *const c_int, count: usize) -> Result {
    check_array(at.cast(), count, align_of::<c_int>())
}

/// # Safety
/// The arrays are there as the manual says of them: those of the device's until the stream has done the work, those of the host's while
/// the call lasts.
pub unsafe fn cusparseXcoo2csr(
    handle: cusparseHandle_t,
    cooRowInd: *const c_int,
    nnz: c_int,
    m: c_int,
    csrSortedRowPtr: *mut c_int,
    idxBase: cusparseIndexBase_t,
) -> Result {
    let context = handle::get(handle)?;
    let (rows, count) = counts(m, nnz)?;
    check_base(idxBase)?;
    check(cooRowInd, count)?;
    check(csrSortedRowPtr, rows + 1)?;
    context.enqueue((cooRowInd, csrSortedRowPtr), move |(numbers, offsets)| {
        // SAFETY: cuSPARSE's contract: the arrays are there until the stream has come here.
        let (numbers, offsets) =
            unsafe { (slice::<c_int>(numbers.cast(), count), slice_mut::<c_int>(offsets.cast(), rows + 1)) };
        cusparse_cpu::compress(numbers, idxBase.0 as usize, offsets);
    })
}

/// # Safety
/// As [`cusparseXcoo2csr`].
pub unsafe fn cusparseXcsr2coo(
    handle: cusparseHandle_t,
    csrSortedRowPtr: *const c_int,
    nnz: c_int,
    m: c_int,
    cooRowInd: *mut c_int,
    idxBase: cusparseIndexBase_t,
) -> Result {
    let context = handle::get(handle)?;
    let (rows, count) = counts(m, nnz)?;
    check_base(idxBase)?;
    check(csrSortedRowPtr, rows + 1)?;
    check(cooRowInd, count)?;
    context.enqueue((csrSortedRowPtr, cooRowInd), move |(offsets, numbers)| {
        // SAFETY: as above.
        let (offsets, numbers) =
            unsafe { (slice::<c_int>(offsets.cast(), rows + 1), slice_mut::<c_int>(numbers.cast(), count)) };
        cusparse_cpu::expand(offsets, idxBase.0 as usize, numbers);
    })
}

/// # Safety
/// As [`cusparseXcoo2csr`].
pub unsafe fn cusparseCreateIdentityPermutation(handle: cusparseHandle_t, n: c_int, p: *mut c_int) -> Result {
    let context = handle::get(handle)?;
    let count = size(n.into())?;
    check(p, count)?;
    context.enqueue(p, move |p: *mut c_int| {
        // SAFETY: as above.
        let numbers = unsafe { slice_mut::<c_int>(p.cast(), count) };
        numbers.iter_mut().zip(0..).for_each(|(to, number)| *to = number);
    })
}

pub fn cusparseXcoosort_bufferSizeExt(
    handle: cusparseHandle_t,
    m: c_int,
    n: c_int,
    nnz: c_int,
    _cooRowsA: *const c_int,
    _cooColsA: *const c_int,
    pBufferSizeInBytes: Out<'_, usize>,
) -> Result {
    handle::get(handle)?.can_compute()?;
    counts(m, nnz)?;
    counts(n, 0)?;
    pBufferSizeInBytes.write(SOME);
    Ok(())
}

/// Sorts by `first`, then by `second`; what is equal stays as it was. A permutation is carried along.
///
/// # Safety
/// As [`cusparseXcoo2csr`].
unsafe fn sort(
    handle: cusparseHandle_t,
    sizes: (c_int, c_int, c_int),
    first: *mut c_int,
    second: *mut c_int,
    P: *mut c_int,
) -> Result {
    let context = handle::get(handle)?;
    let (_, count) = counts(sizes.0, sizes.2)?;
    counts(sizes.1, 0)?;
    check(first, count)?;
    check(second, count)?;
    check(P, if P.is_null() { 0 } else { count })?;
    context.enqueue((first, second, P), move |(first, second, permutation)| {
        // SAFETY: as above.
        unsafe {
            let first = slice_mut::<c_int>(first.cast(), count);
            let second = slice_mut::<c_int>(second.cast(), count);
            let mut order: Vec<usize> = (0..count).collect();
            order.sort_by_key(|at| (first[*at], second[*at]));
            if !permutation.is_null() {
                reorder(slice_mut(permutation.cast(), count), &order);
            }
            reorder(first, &order);
            reorder(second, &order);
        }
    })
}

fn reorder(values: &mut [c_int], order: &[usize]) {
    let sorted: Vec<c_int> = order.iter().map(|at| values[*at]).collect();
    values.copy_from_slice(&sorted);
}

/// # Safety
/// As [`cusparseXcoo2csr`].
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseXcoosortByRow(
    handle: cusparseHandle_t,
    m: c_int,
    n: c_int,
    nnz: c_int,
    cooRowsA: *mut c_int,
    cooColsA: *mut c_int,
    P: *mut c_int,
    _pBuffer: *mut c_void,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { sort(handle, (m, n, nnz), cooRowsA, cooColsA, P) }
}

/// # Safety
/// As [`cusparseXcoo2csr`].
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseXcoosortByColumn(
    handle: cusparseHandle_t,
    m: c_int,
    n: c_int,
    nnz: c_int,
    cooRowsA: *mut c_int,
    cooColsA: *mut c_int,
    P: *mut c_int,
    _pBuffer: *mut c_void,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { sort(handle, (m, n, nnz), cooColsA, cooRowsA, P) }
}

pub use self::cusparseXcoosort_bufferSizeExt as cusparseXcscsort_bufferSizeExt;
pub use self::cusparseXcoosort_bufferSizeExt as cusparseXcsrsort_bufferSizeExt;

/// Sorts each of the lines, whose offsets are not moved.
///
/// # Safety
/// As [`cusparseXcoo2csr`].
unsafe fn sort_lines(
    handle: cusparseHandle_t,
    (lines, nnz): (c_int, c_int),
    descrA: cusparseMatDescr_t,
    offsets: *const c_int,
    indices: *mut c_int,
    P: *mut c_int,
) -> Result {
    let context = handle::get(handle)?;
    let (lines, count) = counts(lines, nnz)?;
    let base = legacy::get(descrA)?.lock().base.0 as c_int;
    check(offsets, lines + 1)?;
    check(indices, count)?;
    check(P, if P.is_null() { 0 } else { count })?;
    context.enqueue((offsets, indices, P), move |(offsets, indices, permutation)| {
        // SAFETY: as above.
        unsafe {
            let offsets = slice::<c_int>(offsets.cast(), lines + 1);
            let indices = slice_mut::<c_int>(indices.cast(), count);
            let mut permutation =
                (!permutation.is_null()).then(|| slice_mut::<c_int>(permutation.cast(), count));
            for bounds in offsets.windows(2) {
                let range = (bounds[0] - base) as usize..(bounds[1] - base) as usize;
                let line = &mut indices[range.clone()];
                let mut order: Vec<usize> = (0..line.len()).collect();
                order.sort_by_key(|at| line[*at]);
                reorder(line, &order);
                if let Some(permutation) = permutation.as_deref_mut() {
                    reorder(&mut permutation[range], &order);
                }
            }
        }
    })
}

/// # Safety
/// As [`cusparseXcoo2csr`].
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseXcsrsort(
    handle: cusparseHandle_t,
    m: c_int,
    _n: c_int,
    nnz: c_int,
    descrA: cusparseMatDescr_t,
    csrRowPtrA: *const c_int,
    csrColIndA: *mut c_int,
    P: *mut c_int,
    _pBuffer: *mut c_void,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { sort_lines(handle, (m, nnz), descrA, csrRowPtrA, csrColIndA, P) }
}

/// # Safety
/// As [`cusparseXcoo2csr`].
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseXcscsort(
    handle: cusparseHandle_t,
    _m: c_int,
    n: c_int,
    nnz: c_int,
    descrA: cusparseMatDescr_t,
    cscColPtrA: *const c_int,
    cscRowIndA: *mut c_int,
    P: *mut c_int,
    _pBuffer: *mut c_void,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { sort_lines(handle, (n, nnz), descrA, cscColPtrA, cscRowIndA, P) }
}
