//! Which entries are kept: of dense matrices those that are not zero, of any those that are greater than a threshold. Source: cuSPARSE
//! manual, `nnz`, `nnz_compress`, `csr2csr_compress`, `prune*`, and `dense2csr`, `dense2csc`, `csr2dense`, `csc2dense` (of 11).

use core::ffi::{c_int, c_void};

use border::Out;
use cusparse_cpu::{Dense, Element, Entries, is_entry};
use kit::Addresses;

use super::conversion::SOME;
use super::info::INFOS;
use crate::Result;
use crate::bare::*;
use crate::descriptor::{DenseMatrix, SparseMatrix};
use crate::error::require;
use crate::handle;
use crate::memory::*;
use crate::types::*;

/// A type that is kept or not; those of `prune*` are real.
pub trait Kept: Element {
    const TYPE: cudaDataType;
}

macro_rules! kept {
    ($($ty:ty, $name:ident;)*) => {$(
        impl Kept for $ty {
            const TYPE: cudaDataType = cudaDataType::$name;
        }
    )*};
}

kept! {
    half::f16, CUDA_R_16F;
    f32, CUDA_R_32F;
    f64, CUDA_R_64F;
    cuComplex, CUDA_C_32F;
    cuDoubleComplex, CUDA_C_64F;
}

/// The matrix whose entries are looked at.
#[derive(Clone, Copy)]
enum Source {
    Dense { matrix: DenseMatrix, transposed: bool },
    Rows { rows: usize, base: usize, values: *const c_void, offsets: *const c_int, indices: *const c_int },
}

// SAFETY: addresses and numbers.
unsafe impl Addresses for Source {
    fn near(self) -> kit::Result<Self> {
        Ok(match self {
            Source::Dense { matrix, transposed } => Source::Dense { matrix: matrix.near()?, transposed },
            Source::Rows { rows, base, values, offsets, indices } => {
                let (values, offsets, indices) = (values, offsets, indices).near()?;
                Source::Rows { rows, base, values, offsets, indices }
            }
        })
    }
}

impl Source {
    fn dense<T: Kept>((m, n, lda): (c_int, c_int, c_int), A: *const T, transposed: bool) -> Result<Source> {
        let matrix = columns_of((m, n, lda), A.cast(), T::TYPE)?;
        check_dense_matrix(&matrix)?;
        Ok(Source::Dense { matrix, transposed })
    }

    /// Where there are no column numbers, entries are counted alone.
    fn rows<T: Kept>(
        (m, nnz): (c_int, Option<c_int>),
        descr: cusparseMatDescr_t,
        (values, offsets, indices): (*const T, *const c_int, Option<*const c_int>),
    ) -> Result<Source> {
        let (rows, base) = (count(m)?, general(descr)?.base.0 as usize);
        check_numbers(offsets, if rows == 0 { 0 } else { rows + 1 })?;
        if let Some(nnz) = nnz {
            let nnz = count(nnz)?;
            check_array(values.cast(), nnz, align_of::<T>())?;
            check_numbers(indices.unwrap_or(core::ptr::null()), if indices.is_some() { nnz } else { 0 })?;
        }
        let indices = indices.unwrap_or(core::ptr::null());
        Ok(Source::Rows { rows, base, values: values.cast(), offsets, indices })
    }

    fn lines(&self) -> usize {
        match self {
            Source::Dense { matrix, transposed: false } => matrix.rows,
            Source::Dense { matrix, .. } => matrix.cols,
            Source::Rows { rows, .. } => *rows,
        }
    }

    /// # Safety
    /// All that it says is there, and nobody writes to it.
    unsafe fn entries<'a, T: Element>(&self) -> Entries<'a, T> {
        match *self {
            Source::Dense { matrix, transposed } => {
                let layout = matrix.layout();
                // SAFETY: the caller's promise.
                let dense = Dense { layout, values: unsafe { slice::<T>(matrix.values, layout.len()) } };
                Entries::Dense(if transposed { dense.transposed() } else { dense })
            }
            Source::Rows { rows, base, values, offsets, indices } => {
                // SAFETY: as above.
                let offsets = unsafe { slice::<c_int>(offsets.cast(), if rows == 0 { 0 } else { rows + 1 }) };
                let nnz = offsets.last().map_or(0, |last| (i64::from(*last) - base as i64).max(0) as usize);
                // SAFETY: as above; behind the last row stands how many there are.
                let (indices, values) = unsafe {
                    (slice(indices.cast(), if indices.is_null() { 0 } else { nnz }), slice(values, nnz))
                };
                Entries::Rows { offsets, indices, values, base }
            }
        }
    }
}

/// What an entry must be to be kept.
#[derive(Clone, Copy)]
enum Keep {
    NotZero,
    Above(Factor),
    /// Greater than what so many per cent are not greater than.
    Percentage(f32),
}

// SAFETY: addresses and numbers.
unsafe impl Addresses for Keep {
    fn near(self) -> kit::Result<Self> {
        match self {
            Keep::Above(threshold) => threshold.near().map(Keep::Above),
            none => Ok(none),
        }
    }
}

impl Keep {
    /// # Safety
    /// A threshold on the device is there.
    unsafe fn test<T: Element>(self, entries: &Entries<'_, T>) -> impl Fn(T) -> bool {
        let threshold = match self {
            Keep::NotZero => None,
            // SAFETY: the caller's promise.
            Keep::Above(threshold) => Some(unsafe { threshold.get::<f64>() }),
            Keep::Percentage(percentage) => entries.percentile(percentage),
        };
        move |value: T| threshold.map_or_else(|| is_entry(value), |threshold| value.wide().norm() > threshold)
    }

    /// # Safety
    /// As [`Factor::new`].
    unsafe fn above<T: Kept>(context: &handle::Context, at: *const T) -> Result<Keep> {
        // SAFETY: the caller's promise.
        unsafe { Factor::new(at.cast(), T::TYPE, context.on_host()) }.map(Keep::Above)
    }

    fn percentage(percentage: f32) -> Result<Keep> {
        require((0.0..=100.0).contains(&percentage), "a percentage that is none")?;
        Ok(Keep::Percentage(percentage))
    }
}

/// Where counts go: of each line, or as offsets.
#[derive(Clone, Copy)]
struct Counts {
    lines: *mut c_int,
    offsets: *mut c_int,
    total: *mut c_int,
    base: usize,
}

kit::addresses! { Counts { lines, offsets, total } }

impl Counts {
    fn of_lines(lines: *mut c_int, total: *mut c_int) -> Counts {
        Counts { lines, offsets: core::ptr::null_mut(), total, base: 0 }
    }

    fn offsets(offsets: *mut c_int, total: *mut c_int, descrC: cusparseMatDescr_t) -> Result<Counts> {
        let base = general(descrC)?.base.0 as usize;
        Ok(Counts { lines: core::ptr::null_mut(), offsets, total, base })
    }
}

/// Counts what is kept. A number on the host is there when the call is over.
fn count_kept<T: Kept>(handle: cusparseHandle_t, source: Source, keep: Keep, counts: Counts) -> Result {
    let context = handle::get(handle)?;
    require(!counts.lines.is_null() || !counts.offsets.is_null() || source.lines() == 0, "an array is NULL")?;
    context.enqueue((source, keep, counts), |(source, keep, counts)| {
        // SAFETY: cuSPARSE's contract: the arrays are there until the stream has come here.
        unsafe {
            let entries = source.entries::<T>();
            let found = entries.count(keep.test(&entries));
            if !counts.lines.is_null() {
                let lines = slice_mut::<c_int>(counts.lines.cast(), found.len());
                lines.iter_mut().zip(&found).for_each(|(to, count)| *to = *count as c_int);
            }
            if !counts.offsets.is_null() {
                let offsets = slice_mut::<c_int>(counts.offsets.cast(), found.len() + 1);
                cusparse_cpu::offsets_of(&found, counts.base, offsets);
            }
            tell(counts.total, found.iter().sum());
        }
    })?;
    if !counts.total.is_null() && context.on_host() { context.deliver() } else { Ok(()) }
}

/// Where entries go that are kept.
#[derive(Clone, Copy)]
struct Target {
    values: *mut c_void,
    indices: *mut c_int,
    /// NULL where they are there already.
    offsets: *mut c_int,
    base: usize,
}

kit::addresses! { Target { values, indices, offsets } }

fn target<T>(
    descrC: cusparseMatDescr_t,
    (values, offsets, indices): (*mut T, *mut c_int, *mut c_int),
) -> Result<Target> {
    let base = general(descrC)?.base.0 as usize;
    Ok(Target { values: values.cast(), indices, offsets, base })
}

fn copy_kept<T: Kept>(handle: cusparseHandle_t, source: Source, keep: Keep, target: Target) -> Result {
    handle::get(handle)?.enqueue((source, keep, target), |(source, keep, target)| {
        // SAFETY: as above.
        unsafe {
            let entries = source.entries::<T>();
            let keep = keep.test(&entries);
            let found = entries.count(&keep);
            if !target.offsets.is_null() {
                let offsets = slice_mut::<c_int>(target.offsets.cast(), found.len() + 1);
                cusparse_cpu::offsets_of(&found, target.base, offsets);
            }
            let count = found.iter().sum();
            let indices = slice_mut::<c_int>(target.indices.cast(), count);
            let values = slice_mut::<T>(target.values, count);
            let mut at = 0;
            entries.each(keep, |_, column, value| {
                (indices[at], values[at]) = ((column + target.base) as c_int, value);
                at += 1;
            });
        }
    })
}

/// # Safety
/// The arrays are there as the manual says of them: those of the device's until the stream has done the work, those of the host's while
/// the call lasts.
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseTnnz<T: Kept>(
    handle: cusparseHandle_t,
    dirA: cusparseDirection_t,
    m: c_int,
    n: c_int,
    descrA: cusparseMatDescr_t,
    A: *const T,
    lda: c_int,
    nnzPerRowCol: *mut c_int,
    nnzTotalDevHostPtr: *mut c_int,
) -> Result {
    general(descrA)?;
    require(!nnzTotalDevHostPtr.is_null(), "there is no place for the number of entries")?;
    let source = Source::dense((m, n, lda), A, !is_row_major(dirA)?)?;
    count_kept::<T>(handle, source, Keep::NotZero, Counts::of_lines(nnzPerRowCol, nnzTotalDevHostPtr))
}

/// A tolerance that is given by its value: real, and not negative.
fn tolerance<T: Kept>(tol: T) -> Result<Keep> {
    let wide = tol.wide();
    require(wide.re >= 0.0 && wide.im == 0.0, "a tolerance below 0")?;
    let value = wide.re;
    // SAFETY: a number of ours, read at once.
    unsafe { Factor::new((&raw const value).cast(), cudaDataType::CUDA_R_64F, true) }.map(Keep::Above)
}

/// # Safety
/// As [`cusparseTnnz`].
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseTnnz_compress<T: Kept>(
    handle: cusparseHandle_t,
    m: c_int,
    descr: cusparseMatDescr_t,
    csrSortedValA: *const T,
    csrSortedRowPtrA: *const c_int,
    nnzPerRow: *mut c_int,
    nnzC: *mut c_int,
    tol: T,
) -> Result {
    let source = Source::rows((m, None), descr, (csrSortedValA, csrSortedRowPtrA, None))?;
    count_kept::<T>(handle, source, tolerance(tol)?, Counts::of_lines(nnzPerRow, nnzC))
}

/// # Safety
/// As [`cusparseTnnz`].
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseTcsr2csr_compress<T: Kept>(
    handle: cusparseHandle_t,
    m: c_int,
    n: c_int,
    descrA: cusparseMatDescr_t,
    csrSortedValA: *const T,
    csrSortedColIndA: *const c_int,
    csrSortedRowPtrA: *const c_int,
    nnzA: c_int,
    nnzPerRow: *const c_int,
    csrSortedValC: *mut T,
    csrSortedColIndC: *mut c_int,
    csrSortedRowPtrC: *mut c_int,
    tol: T,
) -> Result {
    count(n)?;
    check_numbers(nnzPerRow, count(m)?)?;
    check_numbers(csrSortedRowPtrC, count(m)? + 1)?;
    let arrays = (csrSortedValA, csrSortedRowPtrA, Some(csrSortedColIndA));
    let source = Source::rows((m, Some(nnzA)), descrA, arrays)?;
    let target = target(descrA, (csrSortedValC, csrSortedRowPtrC, csrSortedColIndC))?;
    copy_kept::<T>(handle, source, tolerance(tol)?, target)
}

/// # Safety
/// As [`cusparseTnnz`].
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseTdense2csr<T: Kept>(
    handle: cusparseHandle_t,
    m: c_int,
    n: c_int,
    descrA: cusparseMatDescr_t,
    A: *const T,
    lda: c_int,
    nnzPerRow: *const c_int,
    csrSortedValA: *mut T,
    csrSortedRowPtrA: *mut c_int,
    csrSortedColIndA: *mut c_int,
) -> Result {
    let source = Source::dense((m, n, lda), A, false)?;
    check_numbers(nnzPerRow, source.lines())?;
    check_numbers(csrSortedRowPtrA, source.lines() + 1)?;
    let target = target(descrA, (csrSortedValA, csrSortedRowPtrA, csrSortedColIndA))?;
    copy_kept::<T>(handle, source, Keep::NotZero, target)
}

/// # Safety
/// As [`cusparseTnnz`].
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseTdense2csc<T: Kept>(
    handle: cusparseHandle_t,
    m: c_int,
    n: c_int,
    descrA: cusparseMatDescr_t,
    A: *const T,
    lda: c_int,
    nnzPerCol: *const c_int,
    cscSortedValA: *mut T,
    cscSortedRowIndA: *mut c_int,
    cscSortedColPtrA: *mut c_int,
) -> Result {
    let source = Source::dense((m, n, lda), A, true)?;
    check_numbers(nnzPerCol, source.lines())?;
    check_numbers(cscSortedColPtrA, source.lines() + 1)?;
    let target = target(descrA, (cscSortedValA, cscSortedColPtrA, cscSortedRowIndA))?;
    copy_kept::<T>(handle, source, Keep::NotZero, target)
}

/// How many entries there are stands behind the last line.
fn to_dense<T: Computed>(
    handle: cusparseHandle_t,
    (m, n, lda): (c_int, c_int, c_int),
    descrA: cusparseMatDescr_t,
    (values, offsets, indices): Arrays<T>,
    A: *mut T,
    by_columns: bool,
) -> Result {
    let (base, dense) = (general(descrA)?.base, columns((m, n, lda), A.cast_const())?);
    let (rows, cols) = if by_columns { (dense.cols, dense.rows) } else { (dense.rows, dense.cols) };
    check_numbers(offsets, if rows == 0 { 0 } else { rows + 1 })?;
    let sparse = SparseMatrix {
        offsets: offsets.cast_mut().cast(),
        indices: indices.cast_mut().cast(),
        values: values.cast_mut().cast(),
        base,
        value_type: T::TYPE,
        ..SparseMatrix::new(crate::descriptor::Format::Csr, (rows as i64, cols as i64, 0))?
    };
    handle::get(handle)?.enqueue((sparse, dense), move |(mut sparse, dense)| {
        // SAFETY: as above.
        unsafe {
            let offsets = slice::<c_int>(sparse.offsets, if rows == 0 { 0 } else { rows + 1 });
            let nnz = offsets.last().map_or(0, |last| i64::from(*last) - i64::from(sparse.base.0));
            sparse.nnz = nnz.max(0) as usize;
            let sparse = kit::far::all_in_work(sparse);
            let sums = cusparse_cpu::to_dense(&matrix::<T, c_int>(&sparse, 0).0, by_columns);
            blend(dense.values, T::TYPE, dense.layout(), &sums, (T::ONE, T::ZERO));
        }
    })
}

/// # Safety
/// As [`cusparseTnnz`].
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseTcsr2dense<T: Computed>(
    handle: cusparseHandle_t,
    m: c_int,
    n: c_int,
    descrA: cusparseMatDescr_t,
    csrSortedValA: *const T,
    csrSortedRowPtrA: *const c_int,
    csrSortedColIndA: *const c_int,
    A: *mut T,
    lda: c_int,
) -> Result {
    to_dense(handle, (m, n, lda), descrA, (csrSortedValA, csrSortedRowPtrA, csrSortedColIndA), A, false)
}

/// # Safety
/// As [`cusparseTnnz`].
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseTcsc2dense<T: Computed>(
    handle: cusparseHandle_t,
    m: c_int,
    n: c_int,
    descrA: cusparseMatDescr_t,
    cscSortedValA: *const T,
    cscSortedRowIndA: *const c_int,
    cscSortedColPtrA: *const c_int,
    A: *mut T,
    lda: c_int,
) -> Result {
    to_dense(handle, (m, n, lda), descrA, (cscSortedValA, cscSortedColPtrA, cscSortedRowIndA), A, true)
}

#[expect(clippy::too_many_arguments, reason = "C's")]
pub fn cusparseTpruneDense2csr_bufferSizeExt<T: Kept>(
    handle: cusparseHandle_t,
    m: c_int,
    n: c_int,
    A: *const T,
    lda: c_int,
    threshold: *const T,
    descrC: cusparseMatDescr_t,
    _csrSortedValC: *const T,
    _csrSortedRowPtrC: *const c_int,
    _csrSortedColIndC: *const c_int,
    pBufferSizeInBytes: Out<'_, usize>,
) -> Result {
    handle::get(handle)?.can_compute()?;
    Source::dense((m, n, lda), A, false)?;
    require(!threshold.is_null(), "threshold is NULL")?;
    general(descrC)?;
    pBufferSizeInBytes.write(SOME);
    Ok(())
}

/// # Safety
/// As [`cusparseTnnz`].
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseTpruneDense2csrNnz<T: Kept>(
    handle: cusparseHandle_t,
    m: c_int,
    n: c_int,
    A: *const T,
    lda: c_int,
    threshold: *const T,
    descrC: cusparseMatDescr_t,
    csrSortedRowPtrC: *mut c_int,
    nnzTotalDevHostPtr: *mut c_int,
    _pBuffer: *mut c_void,
) -> Result {
    let (source, keep) =
        // SAFETY: the caller's promise.
        (Source::dense((m, n, lda), A, false)?, unsafe { Keep::above(&*handle::get(handle)?, threshold) }?);
    let counts = Counts::offsets(csrSortedRowPtrC, nnzTotalDevHostPtr, descrC)?;
    count_kept::<T>(handle, source, keep, counts)
}

/// # Safety
/// As [`cusparseTnnz`].
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseTpruneDense2csr<T: Kept>(
    handle: cusparseHandle_t,
    m: c_int,
    n: c_int,
    A: *const T,
    lda: c_int,
    threshold: *const T,
    descrC: cusparseMatDescr_t,
    csrSortedValC: *mut T,
    csrSortedRowPtrC: *const c_int,
    csrSortedColIndC: *mut c_int,
    _pBuffer: *mut c_void,
) -> Result {
    let (source, keep) =
        // SAFETY: the caller's promise.
        (Source::dense((m, n, lda), A, false)?, unsafe { Keep::above(&*handle::get(handle)?, threshold) }?);
    check_numbers(csrSortedRowPtrC, source.lines() + 1)?;
    let target = target(descrC, (csrSortedValC, core::ptr::null_mut(), csrSortedColIndC))?;
    copy_kept::<T>(handle, source, keep, target)
}

#[expect(clippy::too_many_arguments, reason = "C's")]
pub fn cusparseTpruneDense2csrByPercentage_bufferSizeExt<T: Kept>(
    handle: cusparseHandle_t,
    m: c_int,
    n: c_int,
    A: *const T,
    lda: c_int,
    percentage: f32,
    descrC: cusparseMatDescr_t,
    _csrSortedValC: *const T,
    _csrSortedRowPtrC: *const c_int,
    _csrSortedColIndC: *const c_int,
    info: pruneInfo_t,
    pBufferSizeInBytes: Out<'_, usize>,
) -> Result {
    handle::get(handle)?.can_compute()?;
    INFOS.get(info)?;
    Source::dense((m, n, lda), A, false)?;
    Keep::percentage(percentage)?;
    general(descrC)?;
    pBufferSizeInBytes.write(SOME);
    Ok(())
}

/// # Safety
/// As [`cusparseTnnz`].
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseTpruneDense2csrNnzByPercentage<T: Kept>(
    handle: cusparseHandle_t,
    m: c_int,
    n: c_int,
    A: *const T,
    lda: c_int,
    percentage: f32,
    descrC: cusparseMatDescr_t,
    csrSortedRowPtrC: *mut c_int,
    nnzTotalDevHostPtr: *mut c_int,
    info: pruneInfo_t,
    _pBuffer: *mut c_void,
) -> Result {
    INFOS.get(info)?;
    let (source, keep) = (Source::dense((m, n, lda), A, false)?, Keep::percentage(percentage)?);
    let counts = Counts::offsets(csrSortedRowPtrC, nnzTotalDevHostPtr, descrC)?;
    count_kept::<T>(handle, source, keep, counts)
}

/// # Safety
/// As [`cusparseTnnz`].
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseTpruneDense2csrByPercentage<T: Kept>(
    handle: cusparseHandle_t,
    m: c_int,
    n: c_int,
    A: *const T,
    lda: c_int,
    percentage: f32,
    descrC: cusparseMatDescr_t,
    csrSortedValC: *mut T,
    csrSortedRowPtrC: *const c_int,
    csrSortedColIndC: *mut c_int,
    info: pruneInfo_t,
    _pBuffer: *mut c_void,
) -> Result {
    INFOS.get(info)?;
    let (source, keep) = (Source::dense((m, n, lda), A, false)?, Keep::percentage(percentage)?);
    check_numbers(csrSortedRowPtrC, source.lines() + 1)?;
    let target = target(descrC, (csrSortedValC, core::ptr::null_mut(), csrSortedColIndC))?;
    copy_kept::<T>(handle, source, keep, target)
}

#[expect(clippy::too_many_arguments, reason = "C's")]
pub fn cusparseTpruneCsr2csr_bufferSizeExt<T: Kept>(
    handle: cusparseHandle_t,
    m: c_int,
    n: c_int,
    nnzA: c_int,
    descrA: cusparseMatDescr_t,
    csrSortedValA: *const T,
    csrSortedRowPtrA: *const c_int,
    csrSortedColIndA: *const c_int,
    threshold: *const T,
    descrC: cusparseMatDescr_t,
    _csrSortedValC: *const T,
    _csrSortedRowPtrC: *const c_int,
    _csrSortedColIndC: *const c_int,
    pBufferSizeInBytes: Out<'_, usize>,
) -> Result {
    handle::get(handle)?.can_compute()?;
    count(n)?;
    Source::rows((m, Some(nnzA)), descrA, (csrSortedValA, csrSortedRowPtrA, Some(csrSortedColIndA)))?;
    require(!threshold.is_null(), "threshold is NULL")?;
    general(descrC)?;
    pBufferSizeInBytes.write(SOME);
    Ok(())
}

/// # Safety
/// As [`cusparseTnnz`].
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseTpruneCsr2csrNnz<T: Kept>(
    handle: cusparseHandle_t,
    m: c_int,
    n: c_int,
    nnzA: c_int,
    descrA: cusparseMatDescr_t,
    csrSortedValA: *const T,
    csrSortedRowPtrA: *const c_int,
    csrSortedColIndA: *const c_int,
    threshold: *const T,
    descrC: cusparseMatDescr_t,
    csrSortedRowPtrC: *mut c_int,
    nnzTotalDevHostPtr: *mut c_int,
    _pBuffer: *mut c_void,
) -> Result {
    count(n)?;
    let (source, keep) = (
        Source::rows((m, Some(nnzA)), descrA, (csrSortedValA, csrSortedRowPtrA, Some(csrSortedColIndA)))?,
        // SAFETY: the caller's promise.
        unsafe { Keep::above(&*handle::get(handle)?, threshold) }?,
    );
    let counts = Counts::offsets(csrSortedRowPtrC, nnzTotalDevHostPtr, descrC)?;
    count_kept::<T>(handle, source, keep, counts)
}

/// # Safety
/// As [`cusparseTnnz`].
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseTpruneCsr2csr<T: Kept>(
    handle: cusparseHandle_t,
    m: c_int,
    n: c_int,
    nnzA: c_int,
    descrA: cusparseMatDescr_t,
    csrSortedValA: *const T,
    csrSortedRowPtrA: *const c_int,
    csrSortedColIndA: *const c_int,
    threshold: *const T,
    descrC: cusparseMatDescr_t,
    csrSortedValC: *mut T,
    csrSortedRowPtrC: *const c_int,
    csrSortedColIndC: *mut c_int,
    _pBuffer: *mut c_void,
) -> Result {
    count(n)?;
    let (source, keep) = (
        Source::rows((m, Some(nnzA)), descrA, (csrSortedValA, csrSortedRowPtrA, Some(csrSortedColIndA)))?,
        // SAFETY: the caller's promise.
        unsafe { Keep::above(&*handle::get(handle)?, threshold) }?,
    );
    check_numbers(csrSortedRowPtrC, source.lines() + 1)?;
    let target = target(descrC, (csrSortedValC, core::ptr::null_mut(), csrSortedColIndC))?;
    copy_kept::<T>(handle, source, keep, target)
}

#[expect(clippy::too_many_arguments, reason = "C's")]
pub fn cusparseTpruneCsr2csrByPercentage_bufferSizeExt<T: Kept>(
    handle: cusparseHandle_t,
    m: c_int,
    n: c_int,
    nnzA: c_int,
    descrA: cusparseMatDescr_t,
    csrSortedValA: *const T,
    csrSortedRowPtrA: *const c_int,
    csrSortedColIndA: *const c_int,
    percentage: f32,
    descrC: cusparseMatDescr_t,
    _csrSortedValC: *const T,
    _csrSortedRowPtrC: *const c_int,
    _csrSortedColIndC: *const c_int,
    info: pruneInfo_t,
    pBufferSizeInBytes: Out<'_, usize>,
) -> Result {
    handle::get(handle)?.can_compute()?;
    INFOS.get(info)?;
    count(n)?;
    Source::rows((m, Some(nnzA)), descrA, (csrSortedValA, csrSortedRowPtrA, Some(csrSortedColIndA)))?;
    Keep::percentage(percentage)?;
    general(descrC)?;
    pBufferSizeInBytes.write(SOME);
    Ok(())
}

/// # Safety
/// As [`cusparseTnnz`].
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseTpruneCsr2csrNnzByPercentage<T: Kept>(
    handle: cusparseHandle_t,
    m: c_int,
    n: c_int,
    nnzA: c_int,
    descrA: cusparseMatDescr_t,
    csrSortedValA: *const T,
    csrSortedRowPtrA: *const c_int,
    csrSortedColIndA: *const c_int,
    percentage: f32,
    descrC: cusparseMatDescr_t,
    csrSortedRowPtrC: *mut c_int,
    nnzTotalDevHostPtr: *mut c_int,
    info: pruneInfo_t,
    _pBuffer: *mut c_void,
) -> Result {
    INFOS.get(info)?;
    count(n)?;
    let (source, keep) = (
        Source::rows((m, Some(nnzA)), descrA, (csrSortedValA, csrSortedRowPtrA, Some(csrSortedColIndA)))?,
        Keep::percentage(percentage)?,
    );
    let counts = Counts::offsets(csrSortedRowPtrC, nnzTotalDevHostPtr, descrC)?;
    count_kept::<T>(handle, source, keep, counts)
}

/// # Safety
/// As [`cusparseTnnz`].
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseTpruneCsr2csrByPercentage<T: Kept>(
    handle: cusparseHandle_t,
    m: c_int,
    n: c_int,
    nnzA: c_int,
    descrA: cusparseMatDescr_t,
    csrSortedValA: *const T,
    csrSortedRowPtrA: *const c_int,
    csrSortedColIndA: *const c_int,
    percentage: f32,
    descrC: cusparseMatDescr_t,
    csrSortedValC: *mut T,
    csrSortedRowPtrC: *const c_int,
    csrSortedColIndC: *mut c_int,
    info: pruneInfo_t,
    _pBuffer: *mut c_void,
) -> Result {
    INFOS.get(info)?;
    count(n)?;
    let (source, keep) = (
        Source::rows((m, Some(nnzA)), descrA, (csrSortedValA, csrSortedRowPtrA, Some(csrSortedColIndA)))?,
        Keep::percentage(percentage)?,
    );
    check_numbers(csrSortedRowPtrC, source.lines() + 1)?;
    let target = target(descrC, (csrSortedValC, core::ptr::null_mut(), csrSortedColIndC))?;
    copy_kept::<T>(handle, source, keep, target)
}
