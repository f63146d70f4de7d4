//! Systems with three or five diagonals. Source: cuSPARSE manual, `gtsv2`, `gtsv2StridedBatch`, `gtsvInterleavedBatch`,
//! `gpsvInterleavedBatch`.

use core::ffi::{c_int, c_void};

use border::Out;

use super::conversion::SOME;
use crate::Result;
use crate::bare::count;
use crate::error::require;
use crate::handle;
use crate::memory::{Computed, check_array, slice, slice_mut};
use crate::types::*;

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

kit::addresses! { Diagonals { lower, diagonal, upper, b } }

fn diagonals<T: Computed>(
    (m, n, ldb): (c_int, c_int, c_int),
    (dl, d, du): (*const T, *const T, *const T),
    b: *const T,
) -> Result<Diagonals> {
    let (rows, sides, ld) = (count(m)?, count(n)?, count(ldb)?);
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
        // SAFETY: cuSPARSE's contract: the arrays are there until the stream has come here.
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

/// # Safety
/// The arrays are there as the manual says of them: those of the device's until the stream has done the work, those of the host's while
/// the call lasts.
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseTgtsv2<T: Computed>(
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

/// # Safety
/// As [`cusparseTgtsv2`].
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseTgtsv2_nopivot<T: Computed>(
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

/// Systems one behind the other, or value by value of all systems.
#[derive(Clone, Copy)]
struct Batch {
    n: usize,
    systems: usize,
    /// From a value of a system to the next, and from a system to the next.
    strides: (usize, usize),
    /// From the lowest to the highest; the first of so many.
    diagonals: [*const c_void; 5],
    width: usize,
    x: *mut c_void,
}

kit::addresses! { Batch { diagonals, x } }

impl Batch {
    fn new<T: Computed>(
        (n, systems): (usize, usize),
        strides: (usize, usize),
        diagonals: &[*const T],
        x: *const T,
    ) -> Result<Batch> {
        let mut all = [core::ptr::null(); 5];
        let mut batch =
            Batch { n, systems, strides, diagonals: all, width: diagonals.len(), x: x.cast_mut().cast() };
        for at in diagonals.iter().chain([&x]) {
            check_array(at.cast(), batch.len(), align_of::<T>())?;
        }
        diagonals.iter().zip(&mut all).for_each(|(at, to)| *to = at.cast());
        batch.diagonals = all;
        Ok(batch)
    }

    /// Values from the first to the last.
    fn len(&self) -> usize {
        match (self.n.checked_sub(1), self.systems.checked_sub(1)) {
            (Some(value), Some(system)) => value * self.strides.0 + system * self.strides.1 + 1,
            _ => 0,
        }
    }

    /// Solves each system by itself.
    fn solve<T: Computed>(self, handle: cusparseHandle_t, solve: fn(&[&[T]], &mut [T])) -> Result {
        handle::get(handle)?.enqueue(self, move |batch| {
            let (step, stride) = batch.strides;
            // SAFETY: cuSPARSE's contract: the arrays are there until the stream has come here.
            let (diagonals, x) = unsafe {
                let diagonals = batch.diagonals[..batch.width].iter();
                let diagonals: Vec<&[T]> = diagonals.map(|at| slice(*at, batch.len())).collect();
                (diagonals, slice_mut::<T>(batch.x, batch.len()))
            };
            for system in 0..batch.systems {
                let line = |values: &[T]| -> Vec<T> {
                    (0..batch.n).map(|k| values[k * step + system * stride]).collect()
                };
                let (own, mut side): (Vec<Vec<T>>, _) =
                    (diagonals.iter().map(|it| line(it)).collect(), line(x));
                solve(&own.iter().map(Vec::as_slice).collect::<Vec<_>>(), &mut side);
                (0..batch.n).for_each(|k| x[k * step + system * stride] = side[k]);
            }
        })
    }
}

fn without_pivots<T: Computed>(diagonals: &[&[T]], x: &mut [T]) {
    let n = x.len();
    cusparse_cpu::solve_tridiagonal((diagonals[0], diagonals[1], diagonals[2]), x, n.max(1));
}

fn strided<T: Computed>(
    (m, batchCount, batchStride): (c_int, c_int, c_int),
    (dl, d, du): (*const T, *const T, *const T),
    x: *const T,
) -> Result<Batch> {
    let (n, systems, stride) = (count(m)?, count(batchCount)?, count(batchStride)?);
    require(n >= 3, "fewer than three rows")?;
    require(stride >= n, "systems are longer than their stride")?;
    Batch::new((n, systems), (1, stride), &[dl, d, du], x)
}

#[expect(clippy::too_many_arguments, reason = "C's")]
pub fn cusparseTgtsv2StridedBatch_bufferSizeExt<T: Computed>(
    handle: cusparseHandle_t,
    m: c_int,
    dl: *const T,
    d: *const T,
    du: *const T,
    x: *const T,
    batchCount: c_int,
    batchStride: c_int,
    bufferSizeInBytes: Out<'_, usize>,
) -> Result {
    handle::get(handle)?.can_compute()?;
    strided((m, batchCount, batchStride), (dl, d, du), x)?;
    bufferSizeInBytes.write(SOME);
    Ok(())
}

/// Without pivoting, as the manual has it.
///
/// # Safety
/// As [`cusparseTgtsv2`].
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseTgtsv2StridedBatch<T: Computed>(
    handle: cusparseHandle_t,
    m: c_int,
    dl: *const T,
    d: *const T,
    du: *const T,
    x: *mut T,
    batchCount: c_int,
    batchStride: c_int,
    _pBuffer: *mut c_void,
) -> Result {
    strided((m, batchCount, batchStride), (dl, d, du), x)?.solve::<T>(handle, without_pivots)
}

fn interleaved<T: Computed>(
    (algo, last): (c_int, c_int),
    (m, batchCount): (c_int, c_int),
    diagonals: &[*const T],
    x: *const T,
) -> Result<Batch> {
    require((0..=last).contains(&algo), "there is no such algorithm")?;
    let (n, systems) = (count(m)?, count(batchCount)?);
    Batch::new((n, systems), (systems, 1), diagonals, x)
}

#[expect(clippy::too_many_arguments, reason = "C's")]
pub fn cusparseTgtsvInterleavedBatch_bufferSizeExt<T: Computed>(
    handle: cusparseHandle_t,
    algo: c_int,
    m: c_int,
    dl: *const T,
    d: *const T,
    du: *const T,
    x: *const T,
    batchCount: c_int,
    pBufferSizeInBytes: Out<'_, usize>,
) -> Result {
    handle::get(handle)?.can_compute()?;
    interleaved((algo, 2), (m, batchCount), &[dl, d, du], x)?;
    pBufferSizeInBytes.write(SOME);
    Ok(())
}

/// Algorithm 0 is Thomas's, without pivots; the others exchange rows. The diagonals stay as they are, which the manual does not promise.
///
/// # Safety
/// As [`cusparseTgtsv2`].
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseTgtsvInterleavedBatch<T: Computed>(
    handle: cusparseHandle_t,
    algo: c_int,
    m: c_int,
    dl: *mut T,
    d: *mut T,
    du: *mut T,
    x: *mut T,
    batchCount: c_int,
    _pBuffer: *mut c_void,
) -> Result {
    let batch = interleaved((algo, 2), (m, batchCount), &[dl.cast_const(), d, du], x)?;
    batch.solve::<T>(handle, if algo == 0 { without_pivots } else { cusparse_cpu::solve_banded })
}

#[expect(clippy::too_many_arguments, reason = "C's")]
pub fn cusparseTgpsvInterleavedBatch_bufferSizeExt<T: Computed>(
    handle: cusparseHandle_t,
    algo: c_int,
    m: c_int,
    ds: *const T,
    dl: *const T,
    d: *const T,
    du: *const T,
    dw: *const T,
    x: *const T,
    batchCount: c_int,
    pBufferSizeInBytes: Out<'_, usize>,
) -> Result {
    handle::get(handle)?.can_compute()?;
    interleaved((algo, 0), (m, batchCount), &[ds, dl, d, du, dw], x)?;
    pBufferSizeInBytes.write(SOME);
    Ok(())
}

/// The manual's only algorithm is QR; rows are exchanged here, which is as stable.
///
/// # Safety
/// As [`cusparseTgtsv2`].
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseTgpsvInterleavedBatch<T: Computed>(
    handle: cusparseHandle_t,
    algo: c_int,
    m: c_int,
    ds: *mut T,
    dl: *mut T,
    d: *mut T,
    du: *mut T,
    dw: *mut T,
    x: *mut T,
    batchCount: c_int,
    _pBuffer: *mut c_void,
) -> Result {
    let batch = interleaved((algo, 0), (m, batchCount), &[ds.cast_const(), dl, d, du, dw], x)?;
    batch.solve::<T>(handle, cusparse_cpu::solve_banded)
}
