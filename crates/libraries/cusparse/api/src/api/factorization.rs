//! Incomplete factorizations without fill-in, and systems with three diagonals. Source: cuSPARSE manual, `csrilu02`, `csric02`, `gtsv2`.
//!
//! A body whose name has T in the place of the type's letter is that of all four types. An analysis has nothing to find but missing
//! diagonals, which the factorization finds too; policies are hints.

use core::ffi::{c_int, c_void};
use std::sync::Arc;

use cuda_abi::out::Out;
use cusparse_cpu::Boost;
use kit::{Address, Addresses};
use parking_lot::Mutex;

use super::conversion::SOME;
use super::legacy;
use crate::descriptor::{Descriptors, size};
use crate::error::require;
use crate::handle;
use crate::memory::{Computed, Factor, check_array, slice, slice_mut};
use crate::types::*;
use crate::{Error, Result};

/// What is known of a factorization.
#[derive(Default)]
struct Found {
    /// The first row without a pivot, counted from the matrix's base.
    zero: Option<c_int>,
    /// The tolerance, and what is put in a small pivot's place.
    boost: Option<(Factor, Factor)>,
}

// SAFETY: addresses are numbers until the work follows them.
unsafe impl Send for Found {}

/// Those of both kinds.
static FOUND: Descriptors<Mutex<Found>> = Descriptors::new();

pub fn cusparseCreateCsrilu02Info(info: Out<'_, csrilu02Info_t>) -> Result {
    info.write(FOUND.add(Mutex::new(Found::default())));
    Ok(())
}

pub fn cusparseDestroyCsrilu02Info(info: csrilu02Info_t) -> Result {
    FOUND.remove(info)
}

pub fn cusparseCreateCsric02Info(info: Out<'_, csric02Info_t>) -> Result {
    info.write(FOUND.add(Mutex::new(Found::default())));
    Ok(())
}

pub fn cusparseDestroyCsric02Info(info: csric02Info_t) -> Result {
    FOUND.remove(info)
}

/// A square matrix by rows, in bare arrays.
#[derive(Clone, Copy)]
struct Square {
    rows: usize,
    nnz: usize,
    base: usize,
    values: *mut c_void,
    offsets: *const c_int,
    indices: *const c_int,
}

// SAFETY: addresses and numbers.
unsafe impl Addresses for Square {}

fn square<T: Computed>(
    (m, nnz): (c_int, c_int),
    descrA: cusparseMatDescr_t,
    values: *const T,
    offsets: *const c_int,
    indices: *const c_int,
) -> Result<Square> {
    let description = *legacy::get(descrA)?.lock();
    if description.kind != cusparseMatrixType_t::CUSPARSE_MATRIX_TYPE_GENERAL {
        return Err(Error::MatrixType("only general matrices are factorized"));
    }
    let (rows, nnz) = (size(m.into())?, size(nnz.into())?);
    check_array(values.cast(), nnz, align_of::<T>())?;
    check_array(offsets.cast(), rows + 1, align_of::<c_int>())?;
    check_array(indices.cast(), nnz, align_of::<c_int>())?;
    let base = description.base.0 as usize;
    Ok(Square { rows, nnz, base, values: values.cast_mut().cast(), offsets, indices })
}

impl Square {
    /// # Safety
    /// The arrays are there, and nobody writes to them.
    unsafe fn pattern<'a>(&self) -> (&'a [c_int], &'a [c_int], usize) {
        // SAFETY: the caller's promise.
        unsafe {
            (slice(self.offsets.cast(), self.rows + 1), slice(self.indices.cast(), self.nnz), self.base)
        }
    }

    /// # Safety
    /// The values are there, and nobody else uses them.
    unsafe fn values<'a, T>(&self) -> &'a mut [T] {
        // SAFETY: the caller's promise.
        unsafe { slice_mut(self.values, self.nnz) }
    }
}

/// Looks for rows without a diagonal.
fn analyse(context: &handle::Context, a: Square, found: Arc<Mutex<Found>>) -> Result {
    context.enqueue(a, move |a| {
        // SAFETY: cuSPARSE's contract: the arrays are there until the stream has come here.
        let (offsets, indices, base) = unsafe { a.pattern() };
        let place = |number: c_int| number as usize - base;
        let lacks = |row: &usize| {
            let line = &indices[place(offsets[*row])..place(offsets[row + 1])];
            !line.iter().any(|column| place(*column) == *row)
        };
        found.lock().zero = (0..a.rows).find(lacks).map(|row| (row + base) as c_int);
    })
}

/// Waits for the stream. The position is −1 where all pivots are there.
fn zero_pivot(handle: cusparseHandle_t, found: &Mutex<Found>, position: *mut c_int) -> Result {
    let context = handle::get(handle)?;
    check_array(position.cast(), 1, align_of::<c_int>())?;
    context.synchronize()?;
    let zero = found.lock().zero;
    // SAFETY: cuSPARSE's contract: a number's place, on the host or on the CPU device, whose memory is the host's.
    unsafe { position.write(zero.unwrap_or(-1)) };
    if zero.is_some() { Err(Error::ZeroPivot) } else { Ok(()) }
}

pub fn cusparseXcsrilu02_zeroPivot(
    handle: cusparseHandle_t,
    info: csrilu02Info_t,
    position: *mut c_int,
) -> Result {
    zero_pivot(handle, &*FOUND.get(info)?, position)
}

pub fn cusparseXcsric02_zeroPivot(
    handle: cusparseHandle_t,
    info: csric02Info_t,
    position: *mut c_int,
) -> Result {
    zero_pivot(handle, &*FOUND.get(info)?, position)
}

pub fn cusparseTcsrilu02_numericBoost<T: Computed>(
    handle: cusparseHandle_t,
    info: csrilu02Info_t,
    enable_boost: c_int,
    tol: *mut f64,
    boost_val: *mut T,
) -> Result {
    let context = handle::get(handle)?;
    let found = FOUND.get(info)?;
    let boost = match enable_boost {
        0 => None,
        _ => Some((
            Factor::new(tol.cast(), cudaDataType::CUDA_R_64F, context.on_host())?,
            Factor::new(boost_val.cast(), T::TYPE, context.on_host())?,
        )),
    };
    found.lock().boost = boost;
    Ok(())
}

#[expect(clippy::too_many_arguments, reason = "C's")]
pub fn cusparseTcsrilu02_bufferSize<T: Computed>(
    handle: cusparseHandle_t,
    m: c_int,
    nnz: c_int,
    descrA: cusparseMatDescr_t,
    csrSortedValA: *const T,
    csrSortedRowPtrA: *const c_int,
    csrSortedColIndA: *const c_int,
    info: csrilu02Info_t,
    pBufferSizeInBytes: Out<'_, c_int>,
) -> Result {
    handle::get(handle)?.can_compute()?;
    FOUND.get(info)?;
    square((m, nnz), descrA, csrSortedValA, csrSortedRowPtrA, csrSortedColIndA)?;
    pBufferSizeInBytes.write(SOME as c_int);
    Ok(())
}

#[expect(clippy::too_many_arguments, reason = "C's")]
pub fn cusparseTcsrilu02_analysis<T: Computed>(
    handle: cusparseHandle_t,
    m: c_int,
    nnz: c_int,
    descrA: cusparseMatDescr_t,
    csrSortedValA: *const T,
    csrSortedRowPtrA: *const c_int,
    csrSortedColIndA: *const c_int,
    info: csrilu02Info_t,
    _policy: cusparseSolvePolicy_t,
    _pBuffer: *mut c_void,
) -> Result {
    let (context, found) = (handle::get(handle)?, FOUND.get(info)?);
    let a = square((m, nnz), descrA, csrSortedValA, csrSortedRowPtrA, csrSortedColIndA)?;
    analyse(&context, a, found)
}

#[expect(clippy::too_many_arguments, reason = "C's")]
pub fn cusparseTcsrilu02<T: Computed>(
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
    let (context, found) = (handle::get(handle)?, FOUND.get(info)?);
    let a = square((m, nnz), descrA, csrSortedValA_valM, csrSortedRowPtrA, csrSortedColIndA)?;
    let boost = found.lock().boost.map(Address);
    context.enqueue(a, move |a| {
        // SAFETY: cuSPARSE's contract: the arrays and numbers are there until the stream has come here.
        let (pattern, values, boost) = unsafe {
            let (pattern, values) = (a.pattern(), a.values::<T>());
            let boost = boost.map(|boost| {
                let (tolerance, value) = boost.get();
                Boost { tolerance: tolerance.get::<f64>(), value: value.get::<T>() }
            });
            (pattern, values, boost)
        };
        let zero = cusparse_cpu::lower_upper(pattern, values, boost);
        found.lock().zero = zero.map(|row| (row + a.base) as c_int);
    })
}

#[expect(clippy::too_many_arguments, reason = "C's")]
pub fn cusparseTcsric02_bufferSize<T: Computed>(
    handle: cusparseHandle_t,
    m: c_int,
    nnz: c_int,
    descrA: cusparseMatDescr_t,
    csrSortedValA: *const T,
    csrSortedRowPtrA: *const c_int,
    csrSortedColIndA: *const c_int,
    info: csric02Info_t,
    pBufferSizeInBytes: Out<'_, c_int>,
) -> Result {
    handle::get(handle)?.can_compute()?;
    FOUND.get(info)?;
    square((m, nnz), descrA, csrSortedValA, csrSortedRowPtrA, csrSortedColIndA)?;
    pBufferSizeInBytes.write(SOME as c_int);
    Ok(())
}

#[expect(clippy::too_many_arguments, reason = "C's")]
pub fn cusparseTcsric02_analysis<T: Computed>(
    handle: cusparseHandle_t,
    m: c_int,
    nnz: c_int,
    descrA: cusparseMatDescr_t,
    csrSortedValA: *const T,
    csrSortedRowPtrA: *const c_int,
    csrSortedColIndA: *const c_int,
    info: csric02Info_t,
    _policy: cusparseSolvePolicy_t,
    _pBuffer: *mut c_void,
) -> Result {
    let (context, found) = (handle::get(handle)?, FOUND.get(info)?);
    let a = square((m, nnz), descrA, csrSortedValA, csrSortedRowPtrA, csrSortedColIndA)?;
    analyse(&context, a, found)
}

#[expect(clippy::too_many_arguments, reason = "C's")]
pub fn cusparseTcsric02<T: Computed>(
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
    let (context, found) = (handle::get(handle)?, FOUND.get(info)?);
    let a = square((m, nnz), descrA, csrSortedValA_valM, csrSortedRowPtrA, csrSortedColIndA)?;
    context.enqueue(a, move |a| {
        // SAFETY: as above.
        let (pattern, values) = unsafe { (a.pattern(), a.values::<T>()) };
        let zero = cusparse_cpu::cholesky(pattern, values);
        found.lock().zero = zero.map(|row| (row + a.base) as c_int);
    })
}

/// Three diagonals and right sides.
#[derive(Clone, Copy)]
struct Diagonals {
    n: usize,
    sides: usize,
    ld: usize,
    lower: *const c_void,
    diagonal: *const c_void,
    upper: *const c_void,
    b: *mut c_void,
}

// SAFETY: addresses and numbers.
unsafe impl Addresses for Diagonals {}

fn diagonals<T: Computed>(
    (m, n, ldb): (c_int, c_int, c_int),
    (dl, d, du): (*const T, *const T, *const T),
    b: *const T,
) -> Result<Diagonals> {
    let (rows, sides, ld) = (size(m.into())?, size(n.into())?, size(ldb.into())?);
    require(rows >= 3, "fewer than three rows")?;
    require(ld >= rows, "lines are longer than the leading dimension")?;
    for at in [dl, d, du] {
        check_array(at.cast(), rows, align_of::<T>())?;
    }
    check_array(b.cast(), sides, align_of::<T>())?;
    let b = b.cast_mut().cast();
    Ok(Diagonals { n: rows, sides, ld, lower: dl.cast(), diagonal: d.cast(), upper: du.cast(), b })
}

type Solve<T> = fn((&[T], &[T], &[T]), &mut [T], usize);

fn solve<T: Computed>(handle: cusparseHandle_t, all: Diagonals, solve: Solve<T>) -> Result {
    handle::get(handle)?.enqueue(all, move |Diagonals { n, sides, ld, lower, diagonal, upper, b }| {
        if sides == 0 {
            return;
        }
        // SAFETY: as above.
        unsafe {
            let three = (slice::<T>(lower, n), slice::<T>(diagonal, n), slice::<T>(upper, n));
            solve(three, slice_mut::<T>(b, (sides - 1) * ld + n), ld);
        }
    })
}

#[expect(clippy::too_many_arguments, reason = "C's")]
pub fn cusparseTgtsv2_bufferSizeExt<T: Computed>(
    handle: cusparseHandle_t,
    m: c_int,
    n: c_int,
    dl: *const T,
    d: *const T,
    du: *const T,
    B: *const T,
    ldb: c_int,
    bufferSizeInBytes: Out<'_, usize>,
) -> Result {
    handle::get(handle)?.can_compute()?;
    diagonals((m, n, ldb), (dl, d, du), B)?;
    bufferSizeInBytes.write(SOME);
    Ok(())
}

#[expect(clippy::too_many_arguments, reason = "C's")]
pub fn cusparseTgtsv2<T: Computed>(
    handle: cusparseHandle_t,
    m: c_int,
    n: c_int,
    dl: *const T,
    d: *const T,
    du: *const T,
    B: *mut T,
    ldb: c_int,
    _pBuffer: *mut c_void,
) -> Result {
    solve::<T>(handle, diagonals((m, n, ldb), (dl, d, du), B)?, cusparse_cpu::solve_pivoting)
}

#[expect(clippy::too_many_arguments, reason = "C's")]
pub fn cusparseTgtsv2_nopivot_bufferSizeExt<T: Computed>(
    handle: cusparseHandle_t,
    m: c_int,
    n: c_int,
    dl: *const T,
    d: *const T,
    du: *const T,
    B: *const T,
    ldb: c_int,
    bufferSizeInBytes: Out<'_, usize>,
) -> Result {
    cusparseTgtsv2_bufferSizeExt(handle, m, n, dl, d, du, B, ldb, bufferSizeInBytes)
}

#[expect(clippy::too_many_arguments, reason = "C's")]
pub fn cusparseTgtsv2_nopivot<T: Computed>(
    handle: cusparseHandle_t,
    m: c_int,
    n: c_int,
    dl: *const T,
    d: *const T,
    du: *const T,
    B: *mut T,
    ldb: c_int,
    _pBuffer: *mut c_void,
) -> Result {
    solve::<T>(handle, diagonals((m, n, ldb), (dl, d, du), B)?, cusparse_cpu::solve_tridiagonal)
}
