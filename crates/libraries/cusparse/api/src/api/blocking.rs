//! Matrices by rows in blocks, and in blocks of another size. Source: cuSPARSE manual, `csr2bsr`, `bsr2csr`, `csr2gebsr`, `gebsr2csr`,
//! `gebsr2gebsr`, `gebsr2gebsc`.
//!
//! The rule: a matrix by rows is one of blocks of one value, so all of them are one conversion.

use core::ffi::{c_int, c_void};

use border::Out;
use cusparse_cpu::{Blocks, Regrouped};

use super::conversion::{SOME, Turn};
use crate::Result;
use crate::bare::*;
use crate::descriptor::check_base;
use crate::error::require;
use crate::handle;
use crate::memory::{Computed, check_array, slice, slice_mut};
use crate::types::*;

/// Arrays of numbers and, where they count, of values.
#[derive(Clone, Copy)]
struct Lines {
    values: *mut c_void,
    offsets: *mut c_int,
    indices: *mut c_int,
    base: cusparseIndexBase_t,
}

kit::addresses! { Lines { values, offsets, indices } }

/// A matrix in blocks, and the blocks that it is to be in.
#[derive(Clone, Copy)]
struct Conversion {
    rows: usize,
    cols: usize,
    from: Lines,
    from_blocks: Blocks,
    to: Lines,
    to_blocks: Blocks,
}

kit::addresses! { Conversion { from, to } }

fn lines<T>(
    descr: cusparseMatDescr_t,
    (values, offsets, indices): (*const T, *const c_int, *const c_int),
) -> Result<Lines> {
    let base = general(descr)?.base;
    let (offsets, indices) = (offsets.cast_mut(), indices.cast_mut());
    Ok(Lines { values: values.cast_mut().cast(), offsets, indices, base })
}

fn blocks(direction: cusparseDirection_t, rows: c_int, cols: c_int) -> Result<Blocks> {
    Ok(Blocks { rows: edge(rows)?, cols: edge(cols)?, row_major: is_row_major(direction)? })
}

impl Conversion {
    /// Of a matrix of so many rows and columns of blocks.
    fn new(
        (rows, cols): (c_int, c_int),
        (from, from_blocks): (Lines, Blocks),
        (to, to_blocks): (Lines, Blocks),
    ) -> Result<Conversion> {
        let (rows, cols) = (count(rows)? * from_blocks.rows, count(cols)? * from_blocks.cols);
        let conversion = Conversion { rows, cols, from, from_blocks, to, to_blocks };
        check_numbers(from.offsets, if rows == 0 { 0 } else { rows / from_blocks.rows + 1 })?;
        check_numbers(to.offsets, rows.div_ceil(to_blocks.rows) + 1)?;
        Ok(conversion)
    }

    /// # Safety
    /// All that is described is there, and nobody writes to it.
    unsafe fn regrouped<'a>(&self) -> Regrouped<'a, c_int> {
        let rows = self.rows / self.from_blocks.rows;
        let (offsets, indices) = (self.from.offsets.cast_const(), self.from.indices.cast_const());
        let base = self.from.base.0 as c_int;
        // How many blocks there are stands behind the last row.
        // SAFETY: the caller's promise.
        let last = if rows == 0 { base } else { unsafe { offsets.add(rows).read() } };
        // SAFETY: as above.
        let from = unsafe {
            blocked(
                (rows, last.saturating_sub(base).max(0) as usize),
                (offsets.cast(), indices.cast()),
                self.from.base,
                self.from_blocks,
            )
        };
        Regrouped { from, rows: self.rows, cols: self.cols, to: self.to_blocks }
    }

    fn to_lines(self) -> usize {
        self.rows.div_ceil(self.to_blocks.rows)
    }

    /// Where rows of blocks begin, and the number of blocks.
    ///
    /// # Safety
    /// The arrays are there until the stream has done the work; of a number on the host there is room for it.
    unsafe fn count(self, handle: cusparseHandle_t, total: *mut c_int) -> Result {
        let context = handle::get(handle)?;
        context.enqueue((self, total), |(it, total)| {
            // SAFETY: the caller's promise.
            unsafe {
                let offsets = slice_mut::<c_int>(it.to.offsets.cast(), it.to_lines() + 1);
                tell(total, it.regrouped().offsets(it.to.base.0 as usize, offsets));
            }
        })?;
        // The number is on the host when the call is over.
        if !total.is_null() && context.on_host() { context.deliver() } else { Ok(()) }
    }

    /// Offsets too, which are written where `count` has not.
    ///
    /// # Safety
    /// As [`Conversion::count`].
    unsafe fn convert<T: Computed>(self, handle: cusparseHandle_t) -> Result {
        handle::get(handle)?.enqueue(self, |it| {
            // SAFETY: as above.
            unsafe {
                let regrouped = it.regrouped();
                let offsets = slice_mut::<c_int>(it.to.offsets.cast(), it.to_lines() + 1);
                let count = regrouped.offsets(it.to.base.0 as usize, offsets);
                let from = regrouped.from.indices.len() * it.from_blocks.area();
                let indices = slice_mut::<c_int>(it.to.indices.cast(), count);
                let values = slice_mut::<T>(it.to.values, count * it.to_blocks.area());
                regrouped.fill(slice::<T>(it.from.values, from), it.to.base.0 as usize, (indices, values));
            }
        })
    }
}

const NONE: *const f32 = core::ptr::null();
const NO_NUMBERS: *const c_int = core::ptr::null();

/// # Safety
/// The arrays are there as the manual says of them: those of the device's until the stream has done the work, those of the host's while
/// the call lasts.
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseXcsr2bsrNnz(
    handle: cusparseHandle_t,
    dirA: cusparseDirection_t,
    m: c_int,
    n: c_int,
    descrA: cusparseMatDescr_t,
    csrSortedRowPtrA: *const c_int,
    csrSortedColIndA: *const c_int,
    blockDim: c_int,
    descrC: cusparseMatDescr_t,
    bsrSortedRowPtrC: *mut c_int,
    nnzTotalDevHostPtr: *mut c_int,
) -> Result {
    let from = lines(descrA, (NONE, csrSortedRowPtrA, csrSortedColIndA))?;
    let to = lines(descrC, (NONE, bsrSortedRowPtrC.cast_const(), NO_NUMBERS))?;
    let to = (to, blocks(dirA, blockDim, blockDim)?);
    // SAFETY: the caller's promise.
    unsafe { Conversion::new((m, n), (from, Blocks::SINGLE), to)?.count(handle, nnzTotalDevHostPtr) }
}

/// # Safety
/// As [`cusparseXcsr2bsrNnz`].
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseTcsr2bsr<T: Computed>(
    handle: cusparseHandle_t,
    dirA: cusparseDirection_t,
    m: c_int,
    n: c_int,
    descrA: cusparseMatDescr_t,
    csrSortedValA: *const T,
    csrSortedRowPtrA: *const c_int,
    csrSortedColIndA: *const c_int,
    blockDim: c_int,
    descrC: cusparseMatDescr_t,
    bsrSortedValC: *mut T,
    bsrSortedRowPtrC: *mut c_int,
    bsrSortedColIndC: *mut c_int,
) -> Result {
    let from = lines(descrA, (csrSortedValA, csrSortedRowPtrA, csrSortedColIndA))?;
    let to = lines(descrC, (bsrSortedValC.cast_const(), bsrSortedRowPtrC, bsrSortedColIndC))?;
    let to = (to, blocks(dirA, blockDim, blockDim)?);
    // SAFETY: the caller's promise.
    unsafe { Conversion::new((m, n), (from, Blocks::SINGLE), to)?.convert::<T>(handle) }
}

/// # Safety
/// As [`cusparseXcsr2bsrNnz`].
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseTbsr2csr<T: Computed>(
    handle: cusparseHandle_t,
    dirA: cusparseDirection_t,
    mb: c_int,
    nb: c_int,
    descrA: cusparseMatDescr_t,
    bsrSortedValA: *const T,
    bsrSortedRowPtrA: *const c_int,
    bsrSortedColIndA: *const c_int,
    blockDim: c_int,
    descrC: cusparseMatDescr_t,
    csrSortedValC: *mut T,
    csrSortedRowPtrC: *mut c_int,
    csrSortedColIndC: *mut c_int,
) -> Result {
    let arrays = (bsrSortedValA, bsrSortedRowPtrA, bsrSortedColIndA);
    let to = (csrSortedValC, csrSortedRowPtrC, csrSortedColIndC);
    // SAFETY: the caller's promise.
    unsafe { to_rows(handle, dirA, (mb, nb), (descrA, arrays), (blockDim, blockDim), (descrC, to)) }
}

/// # Safety
/// As [`cusparseXcsr2bsrNnz`].
unsafe fn to_rows<T: Computed>(
    handle: cusparseHandle_t,
    dirA: cusparseDirection_t,
    size: (c_int, c_int),
    (descrA, arrays): (cusparseMatDescr_t, (*const T, *const c_int, *const c_int)),
    block: (c_int, c_int),
    (descrC, (values, offsets, indices)): (cusparseMatDescr_t, (*mut T, *mut c_int, *mut c_int)),
) -> Result {
    let from = (lines(descrA, arrays)?, blocks(dirA, block.0, block.1)?);
    let to = lines(descrC, (values.cast_const(), offsets, indices))?;
    // SAFETY: the caller's promise.
    unsafe { Conversion::new(size, from, (to, Blocks::SINGLE))?.convert::<T>(handle) }
}

/// # Safety
/// As [`cusparseXcsr2bsrNnz`].
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseTgebsr2csr<T: Computed>(
    handle: cusparseHandle_t,
    dirA: cusparseDirection_t,
    mb: c_int,
    nb: c_int,
    descrA: cusparseMatDescr_t,
    bsrSortedValA: *const T,
    bsrSortedRowPtrA: *const c_int,
    bsrSortedColIndA: *const c_int,
    rowBlockDim: c_int,
    colBlockDim: c_int,
    descrC: cusparseMatDescr_t,
    csrSortedValC: *mut T,
    csrSortedRowPtrC: *mut c_int,
    csrSortedColIndC: *mut c_int,
) -> Result {
    let arrays = (bsrSortedValA, bsrSortedRowPtrA, bsrSortedColIndA);
    let to = (csrSortedValC, csrSortedRowPtrC, csrSortedColIndC);
    // SAFETY: the caller's promise.
    unsafe { to_rows(handle, dirA, (mb, nb), (descrA, arrays), (rowBlockDim, colBlockDim), (descrC, to)) }
}

#[expect(clippy::too_many_arguments, reason = "C's")]
pub fn cusparseTcsr2gebsr_bufferSize<T: Computed>(
    handle: cusparseHandle_t,
    dirA: cusparseDirection_t,
    m: c_int,
    n: c_int,
    descrA: cusparseMatDescr_t,
    _csrSortedValA: *const T,
    csrSortedRowPtrA: *const c_int,
    _csrSortedColIndA: *const c_int,
    rowBlockDim: c_int,
    colBlockDim: c_int,
    pBufferSizeInBytes: Out<'_, c_int>,
) -> Result {
    handle::get(handle)?.can_compute()?;
    general(descrA)?;
    blocks(dirA, rowBlockDim, colBlockDim)?;
    check_numbers(csrSortedRowPtrA, count(m)?)?;
    count(n)?;
    pBufferSizeInBytes.write(SOME as c_int);
    Ok(())
}

/// # Safety
/// As [`cusparseXcsr2bsrNnz`].
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseXcsr2gebsrNnz(
    handle: cusparseHandle_t,
    dirA: cusparseDirection_t,
    m: c_int,
    n: c_int,
    descrA: cusparseMatDescr_t,
    csrSortedRowPtrA: *const c_int,
    csrSortedColIndA: *const c_int,
    descrC: cusparseMatDescr_t,
    bsrSortedRowPtrC: *mut c_int,
    rowBlockDim: c_int,
    colBlockDim: c_int,
    nnzTotalDevHostPtr: *mut c_int,
    _pBuffer: *mut c_void,
) -> Result {
    let from = lines(descrA, (NONE, csrSortedRowPtrA, csrSortedColIndA))?;
    let to = lines(descrC, (NONE, bsrSortedRowPtrC.cast_const(), NO_NUMBERS))?;
    let to = (to, blocks(dirA, rowBlockDim, colBlockDim)?);
    // SAFETY: the caller's promise.
    unsafe { Conversion::new((m, n), (from, Blocks::SINGLE), to)?.count(handle, nnzTotalDevHostPtr) }
}

/// # Safety
/// As [`cusparseXcsr2bsrNnz`].
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseTcsr2gebsr<T: Computed>(
    handle: cusparseHandle_t,
    dirA: cusparseDirection_t,
    m: c_int,
    n: c_int,
    descrA: cusparseMatDescr_t,
    csrSortedValA: *const T,
    csrSortedRowPtrA: *const c_int,
    csrSortedColIndA: *const c_int,
    descrC: cusparseMatDescr_t,
    bsrSortedValC: *mut T,
    bsrSortedRowPtrC: *mut c_int,
    bsrSortedColIndC: *mut c_int,
    rowBlockDim: c_int,
    colBlockDim: c_int,
    _pBuffer: *mut c_void,
) -> Result {
    let from = lines(descrA, (csrSortedValA, csrSortedRowPtrA, csrSortedColIndA))?;
    let to = lines(descrC, (bsrSortedValC.cast_const(), bsrSortedRowPtrC, bsrSortedColIndC))?;
    let to = (to, blocks(dirA, rowBlockDim, colBlockDim)?);
    // SAFETY: the caller's promise.
    unsafe { Conversion::new((m, n), (from, Blocks::SINGLE), to)?.convert::<T>(handle) }
}

#[expect(clippy::too_many_arguments, reason = "C's")]
pub fn cusparseTgebsr2gebsr_bufferSize<T: Computed>(
    handle: cusparseHandle_t,
    dirA: cusparseDirection_t,
    mb: c_int,
    nb: c_int,
    nnzb: c_int,
    descrA: cusparseMatDescr_t,
    _bsrSortedValA: *const T,
    bsrSortedRowPtrA: *const c_int,
    bsrSortedColIndA: *const c_int,
    rowBlockDimA: c_int,
    colBlockDimA: c_int,
    rowBlockDimC: c_int,
    colBlockDimC: c_int,
    pBufferSizeInBytes: Out<'_, c_int>,
) -> Result {
    handle::get(handle)?.can_compute()?;
    general(descrA)?;
    blocks(dirA, rowBlockDimA, colBlockDimA)?;
    blocks(dirA, rowBlockDimC, colBlockDimC)?;
    check_numbers(bsrSortedRowPtrA, count(mb)?)?;
    check_numbers(bsrSortedColIndA, count(nnzb)?)?;
    count(nb)?;
    pBufferSizeInBytes.write(SOME as c_int);
    Ok(())
}

/// # Safety
/// As [`cusparseXcsr2bsrNnz`].
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseXgebsr2gebsrNnz(
    handle: cusparseHandle_t,
    dirA: cusparseDirection_t,
    mb: c_int,
    nb: c_int,
    nnzb: c_int,
    descrA: cusparseMatDescr_t,
    bsrSortedRowPtrA: *const c_int,
    bsrSortedColIndA: *const c_int,
    rowBlockDimA: c_int,
    colBlockDimA: c_int,
    descrC: cusparseMatDescr_t,
    bsrSortedRowPtrC: *mut c_int,
    rowBlockDimC: c_int,
    colBlockDimC: c_int,
    nnzTotalDevHostPtr: *mut c_int,
    _pBuffer: *mut c_void,
) -> Result {
    check_numbers(bsrSortedColIndA, count(nnzb)?)?;
    let from = lines(descrA, (NONE, bsrSortedRowPtrA, bsrSortedColIndA))?;
    let to = lines(descrC, (NONE, bsrSortedRowPtrC.cast_const(), NO_NUMBERS))?;
    let from = (from, blocks(dirA, rowBlockDimA, colBlockDimA)?);
    let to = (to, blocks(dirA, rowBlockDimC, colBlockDimC)?);
    // SAFETY: the caller's promise.
    unsafe { Conversion::new((mb, nb), from, to)?.count(handle, nnzTotalDevHostPtr) }
}

/// # Safety
/// As [`cusparseXcsr2bsrNnz`].
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseTgebsr2gebsr<T: Computed>(
    handle: cusparseHandle_t,
    dirA: cusparseDirection_t,
    mb: c_int,
    nb: c_int,
    nnzb: c_int,
    descrA: cusparseMatDescr_t,
    bsrSortedValA: *const T,
    bsrSortedRowPtrA: *const c_int,
    bsrSortedColIndA: *const c_int,
    rowBlockDimA: c_int,
    colBlockDimA: c_int,
    descrC: cusparseMatDescr_t,
    bsrSortedValC: *mut T,
    bsrSortedRowPtrC: *mut c_int,
    bsrSortedColIndC: *mut c_int,
    rowBlockDimC: c_int,
    colBlockDimC: c_int,
    _pBuffer: *mut c_void,
) -> Result {
    check_numbers(bsrSortedColIndA, count(nnzb)?)?;
    check_array(bsrSortedValA.cast(), count(nnzb)?, align_of::<T>())?;
    let from = lines(descrA, (bsrSortedValA, bsrSortedRowPtrA, bsrSortedColIndA))?;
    let to = lines(descrC, (bsrSortedValC.cast_const(), bsrSortedRowPtrC, bsrSortedColIndC))?;
    let from = (from, blocks(dirA, rowBlockDimA, colBlockDimA)?);
    let to = (to, blocks(dirA, rowBlockDimC, colBlockDimC)?);
    // SAFETY: the caller's promise.
    unsafe { Conversion::new((mb, nb), from, to)?.convert::<T>(handle) }
}

#[expect(clippy::too_many_arguments, reason = "C's")]
pub fn cusparseTgebsr2gebsc_bufferSize<T: Computed>(
    handle: cusparseHandle_t,
    mb: c_int,
    nb: c_int,
    nnzb: c_int,
    _bsrSortedVal: *const T,
    bsrSortedRowPtr: *const c_int,
    bsrSortedColInd: *const c_int,
    rowBlockDim: c_int,
    colBlockDim: c_int,
    pBufferSizeInBytes: Out<'_, c_int>,
) -> Result {
    handle::get(handle)?.can_compute()?;
    edge(rowBlockDim)?;
    edge(colBlockDim)?;
    check_numbers(bsrSortedRowPtr, count(mb)?)?;
    check_numbers(bsrSortedColInd, count(nnzb)?)?;
    count(nb)?;
    pBufferSizeInBytes.write(SOME as c_int);
    Ok(())
}

/// Blocks lie as they lay: where each was is found as for single values, and they follow.
///
/// # Safety
/// As [`cusparseXcsr2bsrNnz`].
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseTgebsr2gebsc<T: Computed>(
    handle: cusparseHandle_t,
    mb: c_int,
    nb: c_int,
    nnzb: c_int,
    bsrSortedVal: *const T,
    bsrSortedRowPtr: *const c_int,
    bsrSortedColInd: *const c_int,
    rowBlockDim: c_int,
    colBlockDim: c_int,
    bscVal: *mut T,
    bscRowInd: *mut c_int,
    bscColPtr: *mut c_int,
    copyValues: cusparseAction_t,
    idxBase: cusparseIndexBase_t,
    _pBuffer: *mut c_void,
) -> Result {
    let context = handle::get(handle)?;
    let (area, blocks) = (edge(rowBlockDim)? * edge(colBlockDim)?, count(nnzb)?);
    check_base(idxBase)?;
    require(copyValues <= cusparseAction_t::CUSPARSE_ACTION_NUMERIC, "there is no such action")?;
    let is_numeric = copyValues == cusparseAction_t::CUSPARSE_ACTION_NUMERIC;
    if is_numeric {
        check_array(bsrSortedVal.cast(), blocks, align_of::<T>())?;
        check_array(bscVal.cast_const().cast(), blocks, align_of::<T>())?;
    }
    let turn = Turn::of_pattern(
        (mb, nb, nnzb),
        (bsrSortedRowPtr, bsrSortedColInd),
        (bscColPtr, bscRowInd),
        idxBase,
    )?;
    context.enqueue((turn, bsrSortedVal, bscVal), move |(turn, from, to)| {
        let order: Vec<c_int> = (0..blocks as c_int).collect();
        let mut places = order.clone();
        // SAFETY: cuSPARSE's contract: the arrays are there until the stream has come here.
        unsafe {
            turn.run_with(Some(&order), Some(&mut places));
            if is_numeric {
                let (from, to) =
                    (slice::<T>(from.cast(), blocks * area), slice_mut::<T>(to.cast(), blocks * area));
                for (to, place) in to.chunks_exact_mut(area).zip(&places) {
                    to.copy_from_slice(&from[*place as usize * area..][..area]);
                }
            }
        }
    })
}
