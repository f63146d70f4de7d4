//! Factorizations of square matrices and what is solved by them. Source: cuSOLVER manual, "Dense Linear Solver Reference (legacy)".
//!
//! A body whose name has T in the place of the type's letter is that of all four types. Work areas are not used.

use core::ffi::c_int;

use border::Out;
use cusolver_cpu::indefinite::{self, Kind};
use cusolver_cpu::{Field, Op, cholesky, getrs, lu};
use kit::Address;
use kit::far::{self, Extent};

use crate::Result;
use crate::arguments::{Given, area, array, matrix, operation, place, size, triangle};
use crate::error::require;
use crate::handle::computing;
use crate::types::*;

/// Pivots as a call has them: `int`s, or 64 bits wide.
pub(super) trait Pivot: Copy + Send + Sync + 'static {
    fn of(pivot: i64) -> Self;
    fn wide(self) -> i64;
}

impl Pivot for c_int {
    fn of(pivot: i64) -> Self {
        pivot as c_int
    }
    fn wide(self) -> i64 {
        self.into()
    }
}

impl Pivot for i64 {
    fn of(pivot: i64) -> Self {
        pivot
    }
    fn wide(self) -> i64 {
        self
    }
}

/// # Safety
/// There is room for them.
unsafe fn write_pivots<P: Pivot>(pivots: &[i64], to: *mut P) {
    // SAFETY: the caller's word.
    (0..).zip(pivots).for_each(|(i, pivot)| unsafe { to.offset(i).write(P::of(*pivot)) });
}

/// # Safety
/// So many are there.
unsafe fn read_pivots<P: Pivot>(from: *const P, count: i64) -> Vec<i64> {
    // SAFETY: the caller's word.
    (0..count).map(|i| unsafe { from.offset(i as isize).read() }.wide()).collect()
}

/// The work of `getrf`; no pivots, no pivoting.
///
/// # Safety
/// The arrays are there whenever the work runs.
pub(super) unsafe fn lu_of<T: Field, P: Pivot>(a: Given<T>, pivots: *mut P) -> Result<impl Fn() -> i64> {
    let pivoting = !pivots.is_null();
    let pivots = array(pivots, if pivoting { a.rows.min(a.columns) } else { 0 })?;
    // SAFETY: the caller's word.
    Ok(move || unsafe {
        let (info, found) = lu::getrf(a.rows, a.columns, a.matrix, pivoting);
        if pivoting {
            write_pivots(&found, pivots.get());
        }
        info
    })
}

/// The work of `getrs`.
///
/// # Safety
/// The arrays are there whenever the work runs.
pub(super) unsafe fn solve_lu<T: Field, P: Pivot>(
    op: Op,
    a: Given<T>,
    pivots: *const P,
    b: Given<T>,
) -> Result<impl Fn() -> i64> {
    let has_pivots = !pivots.is_null();
    let pivots = array(pivots, if has_pivots { a.rows } else { 0 })?;
    // SAFETY: as above.
    Ok(move || unsafe {
        let n = a.rows;
        let pivots = has_pivots.then(|| read_pivots(pivots.get().cast_const(), n));
        let narrow: Option<Vec<i32>> =
            pivots.map(|pivots| pivots.iter().map(|&pivot| pivot as i32).collect());
        if narrow.iter().flatten().any(|&pivot| pivot < 1 || i64::from(pivot) > n) {
            tracing::error!(target: "cudaway::solver", "getrs: a pivot is no row's number");
            return 0;
        }
        let pivots = narrow.as_ref().map_or(core::ptr::null(), |pivots| pivots.as_ptr());
        let (a, b, columns) = (a.matrix, b.matrix, b.columns);
        getrs(op, n, columns, a.start().cast_const(), a.ld(), pivots, b.start(), b.ld());
        0
    })
}

pub fn cusolverDnTgetrf_bufferSize<T: Field>(
    handle: cusolverDnHandle_t,
    m: c_int,
    n: c_int,
    _A: *mut T,
    lda: c_int,
    Lwork: Out<'_, c_int>,
) -> Result {
    computing(handle)?;
    let (m, n) = (size(m)?, size(n)?);
    require(i64::from(lda) >= m.max(1), "lda is too small")?;
    Lwork.write(area(n));
    Ok(())
}

/// Without pivots no rows are swapped.
///
/// # Safety
/// The arrays are there as the manual says of them: those of the device's until the stream has done the work, those of the host's while
/// the call lasts.
pub unsafe fn cusolverDnTgetrf<T: Field>(
    handle: cusolverDnHandle_t,
    m: c_int,
    n: c_int,
    A: *mut T,
    lda: c_int,
    _Workspace: *mut T,
    devIpiv: *mut c_int,
    devInfo: *mut c_int,
) -> Result {
    let context = computing(handle)?;
    // SAFETY: the caller's word.
    unsafe { context.run(devInfo, lu_of(matrix(A, (m, n), lda)?, devIpiv)?) }
}

/// # Safety
/// As [`cusolverDnTgetrf`].
pub unsafe fn cusolverDnTgetrs<T: Field>(
    handle: cusolverDnHandle_t,
    trans: cublasOperation_t,
    n: c_int,
    nrhs: c_int,
    A: *const T,
    lda: c_int,
    devIpiv: *const c_int,
    B: *mut T,
    ldb: c_int,
    devInfo: *mut c_int,
) -> Result {
    let context = computing(handle)?;
    let op = operation(trans)?;
    let (a, b) = (matrix(A, (n, n), lda)?, matrix(B, (n, nrhs), ldb)?);
    // SAFETY: the caller's word.
    unsafe { context.run(devInfo, solve_lu(op, a, devIpiv, b)?) }
}

/// Swaps rows; an increment of 1 or -1 says in which order.
///
/// # Safety
/// As [`cusolverDnTgetrf`].
pub unsafe fn cusolverDnTlaswp<T: Field>(
    handle: cusolverDnHandle_t,
    n: c_int,
    A: *mut T,
    lda: c_int,
    k1: c_int,
    k2: c_int,
    devIpiv: *const c_int,
    incx: c_int,
) -> Result {
    let context = computing(handle)?;
    require(matches!(incx, 1 | -1), "an increment other than 1 and -1")?;
    require(k1 >= 1 && k2 >= k1, "rows count from 1")?;
    let a = matrix(A, (lda.max(0), n), lda)?;
    let pivots = array(devIpiv, k2.into())?;
    require(k2 <= lda, "a row beyond the leading dimension")?;
    context.enqueue(move || {
        // SAFETY: the caller's word.
        let pivots = unsafe { core::slice::from_raw_parts(pivots.get().cast_const(), k2 as usize) };
        if pivots[k1 as usize - 1..].iter().any(|&pivot| pivot < 1 || pivot > lda) {
            tracing::error!(target: "cudaway::solver", "laswp: a pivot is no row's number");
            return;
        }
        // SAFETY: as above.
        unsafe { lu::laswp(a.columns, a.matrix, k1.into(), k2.into(), pivots, incx < 0) };
    })
}

pub fn cusolverDnTpotrf_bufferSize<T: Field>(
    handle: cusolverDnHandle_t,
    uplo: cublasFillMode_t,
    n: c_int,
    _A: *mut T,
    lda: c_int,
    Lwork: Out<'_, c_int>,
) -> Result {
    square_area(handle, Some(uplo), n, lda, Lwork)
}

/// What a call asks for that has a square matrix.
pub(super) fn square_area(
    handle: cusolverDnHandle_t,
    uplo: Option<cublasFillMode_t>,
    n: c_int,
    lda: c_int,
    lwork: Out<'_, c_int>,
) -> Result {
    computing(handle)?;
    uplo.map(triangle).transpose()?;
    let n = size(n)?;
    require(i64::from(lda) >= n.max(1), "lda is too small")?;
    lwork.write(area(n));
    Ok(())
}

/// # Safety
/// As [`cusolverDnTgetrf`].
pub unsafe fn cusolverDnTpotrf<T: Field>(
    handle: cusolverDnHandle_t,
    uplo: cublasFillMode_t,
    n: c_int,
    A: *mut T,
    lda: c_int,
    _Workspace: *mut T,
    Lwork: c_int,
    devInfo: *mut c_int,
) -> Result {
    let context = computing(handle)?;
    size(Lwork)?;
    let (uplo, a) = (triangle(uplo)?, matrix(A, (n, n), lda)?);
    // SAFETY: the caller's word.
    unsafe { context.run(devInfo, move || cholesky::potrf(uplo, a.rows, a.matrix)) }
}

/// # Safety
/// As [`cusolverDnTgetrf`].
pub unsafe fn cusolverDnTpotrs<T: Field>(
    handle: cusolverDnHandle_t,
    uplo: cublasFillMode_t,
    n: c_int,
    nrhs: c_int,
    A: *const T,
    lda: c_int,
    B: *mut T,
    ldb: c_int,
    devInfo: *mut c_int,
) -> Result {
    let context = computing(handle)?;
    let (uplo, a, b) = (triangle(uplo)?, matrix(A, (n, n), lda)?, matrix(B, (n, nrhs), ldb)?);
    // SAFETY: the caller's word.
    unsafe {
        context.run(devInfo, move || {
            cholesky::potrs(uplo, a.rows, b.columns, a.matrix, b.matrix);
            0
        })
    }
}

pub fn cusolverDnTpotri_bufferSize<T: Field>(
    handle: cusolverDnHandle_t,
    uplo: cublasFillMode_t,
    n: c_int,
    _A: *mut T,
    lda: c_int,
    lwork: Out<'_, c_int>,
) -> Result {
    square_area(handle, Some(uplo), n, lda, lwork)
}

/// # Safety
/// As [`cusolverDnTgetrf`].
pub unsafe fn cusolverDnTpotri<T: Field>(
    handle: cusolverDnHandle_t,
    uplo: cublasFillMode_t,
    n: c_int,
    A: *mut T,
    lda: c_int,
    _work: *mut T,
    lwork: c_int,
    devInfo: *mut c_int,
) -> Result {
    let context = computing(handle)?;
    size(lwork)?;
    let (uplo, a) = (triangle(uplo)?, matrix(A, (n, n), lda)?);
    // SAFETY: as above.
    unsafe { context.run(devInfo, move || cholesky::potri(uplo, a.rows, a.matrix)) }
}

pub fn cusolverDnTlauum_bufferSize<T: Field>(
    handle: cusolverDnHandle_t,
    uplo: cublasFillMode_t,
    n: c_int,
    _A: *mut T,
    lda: c_int,
    lwork: Out<'_, c_int>,
) -> Result {
    square_area(handle, Some(uplo), n, lda, lwork)
}

/// # Safety
/// As [`cusolverDnTgetrf`].
pub unsafe fn cusolverDnTlauum<T: Field>(
    handle: cusolverDnHandle_t,
    uplo: cublasFillMode_t,
    n: c_int,
    A: *mut T,
    lda: c_int,
    _work: *mut T,
    lwork: c_int,
    devInfo: *mut c_int,
) -> Result {
    let context = computing(handle)?;
    size(lwork)?;
    let (uplo, a) = (triangle(uplo)?, matrix(A, (n, n), lda)?);
    // SAFETY: the caller's word.
    unsafe {
        context.run(devInfo, move || {
            cholesky::lauum(uplo, a.rows, a.matrix);
            0
        })
    }
}

/// Addresses in the device's memory, a matrix each, looked at when the stream has come to them.
#[derive(Clone, Copy)]
struct Batch<T> {
    list: Address<*mut *mut T>,
    count: i64,
    of: Given<T>,
}

fn batch<T: Field>(list: *mut *mut T, count: c_int, sizes: (c_int, c_int), ld: c_int) -> Result<Batch<T>> {
    let count = size(count)?;
    let (rows, columns) = (size(sizes.0)?, size(sizes.1)?);
    require(i64::from(ld) >= rows.max(1), "a leading dimension is smaller than a column")?;
    let list = array(list, if rows.min(columns) == 0 { 0 } else { count })?;
    let matrix = cusolver_cpu::Matrix::new(core::ptr::null_mut(), ld.into());
    Ok(Batch { list, count, of: Given { rows, columns, matrix } })
}

impl<T: Field> Batch<T> {
    /// The matrices, for the work, on the thread that it begins on.
    ///
    /// # Safety
    /// The list has as many.
    unsafe fn all(&self) -> Vec<Address<*mut T>> {
        let (rows, columns) = (self.of.rows as usize, self.of.columns as usize);
        let extent = Extent::lines::<T>(columns, rows, self.of.matrix.ld() as usize);
        let at = |number: i64| {
            if rows.min(columns) == 0 {
                return Address(core::ptr::null_mut());
            }
            // SAFETY: the caller's word.
            let at = unsafe { self.list.get().offset(number as isize).read() };
            Address(far::near_in_work(at, extent))
        };
        (0..self.count).map(at).collect()
    }

    fn nth(&self, all: &[Address<*mut T>], number: i64) -> cusolver_cpu::Matrix<T> {
        cusolver_cpu::Matrix::new(all[number as usize].get(), self.of.matrix.ld())
    }
}

/// # Safety
/// As [`cusolverDnTgetrf`].
pub unsafe fn cusolverDnTpotrfBatched<T: Field>(
    handle: cusolverDnHandle_t,
    uplo: cublasFillMode_t,
    n: c_int,
    Aarray: *mut *mut T,
    lda: c_int,
    infoArray: *mut c_int,
    batchSize: c_int,
) -> Result {
    let context = computing(handle)?;
    let (uplo, all) = (triangle(uplo)?, batch(Aarray, batchSize, (n, n), lda)?);
    let infos = array(infoArray, all.count)?;
    context.enqueue(move || {
        // SAFETY: as above.
        let found = unsafe { all.all() };
        cusolver_cpu::each(all.count, |number| {
            // SAFETY: as above; a matrix for each call.
            unsafe {
                let info = cholesky::potrf(uplo, all.of.rows, all.nth(&found, number));
                infos.get().offset(number as isize).write(info as c_int);
            }
        });
    })
}

/// One right side each, as the manual has it.
///
/// # Safety
/// As [`cusolverDnTgetrf`].
pub unsafe fn cusolverDnTpotrsBatched<T: Field>(
    handle: cusolverDnHandle_t,
    uplo: cublasFillMode_t,
    n: c_int,
    nrhs: c_int,
    A: *mut *mut T,
    lda: c_int,
    B: *mut *mut T,
    ldb: c_int,
    d_info: *mut c_int,
    batchSize: c_int,
) -> Result {
    let context = computing(handle)?;
    require(nrhs == 1, "other than one right side")?;
    let uplo = triangle(uplo)?;
    let (all, sides) = (batch(A, batchSize, (n, n), lda)?, batch(B, batchSize, (n, nrhs), ldb)?);
    let info = place(d_info)?;
    context.enqueue(move || {
        // SAFETY: as above.
        let (found, found_sides) = unsafe { (all.all(), sides.all()) };
        cusolver_cpu::each(all.count, |number| {
            let (a, b) = (all.nth(&found, number), sides.nth(&found_sides, number));
            // SAFETY: as above; a matrix for each call.
            unsafe { cholesky::potrs(uplo, all.of.rows, 1, a, b) };
        });
        // SAFETY: as above.
        unsafe { info.get().write(0) };
    })
}

/// The work of `sytrf` and `hetrf`. Without an array of pivots no rows move.
///
/// # Safety
/// The arrays are there whenever the work runs.
pub(super) unsafe fn bunch_kaufman<T: Field, P: Pivot>(
    kind: Kind,
    uplo: cublasFillMode_t,
    a: Given<T>,
    pivots: *mut P,
) -> Result<impl Fn() -> i64> {
    let (uplo, moves) = (triangle(uplo)?, !pivots.is_null());
    let pivots = array(pivots, if moves { a.rows } else { 0 })?;
    // SAFETY: as above.
    Ok(move || unsafe {
        let (info, found) = indefinite::sytrf(kind, moves, uplo, a.rows, a.matrix);
        if moves {
            write_pivots(&found, pivots.get());
        }
        info
    })
}

/// Pivots of `sytrf` for what comes behind it: none names a row that is not there, and blocks of two are whole.
///
/// # Safety
/// As [`read_pivots`].
unsafe fn read_block_pivots<P: Pivot>(is_lower: bool, from: *const P, n: i64) -> Option<Vec<i64>> {
    // SAFETY: the caller's word.
    let pivots = unsafe { read_pivots(from, n) };
    let mut k = 0;
    while k < n {
        let at = |i: i64| (if is_lower { i } else { n - 1 - i }) as usize;
        let pivot = pivots[at(k)];
        let is_block = pivot < 0;
        let fits = pivot != 0 && pivot.abs() <= n;
        let whole = !is_block || k + 1 < n && pivots[at(k + 1)] == pivot;
        if !(fits && whole) {
            return None;
        }
        k += if is_block { 2 } else { 1 };
    }
    Some(pivots)
}

/// The work of `sytrs` and `hetrs`. Without an array of pivots no rows have moved.
///
/// # Safety
/// The arrays are there whenever the work runs.
pub(super) unsafe fn solve_symmetric<T: Field, P: Pivot>(
    kind: Kind,
    uplo: cublasFillMode_t,
    a: Given<T>,
    pivots: *const P,
    b: Given<T>,
) -> Result<impl Fn() -> i64> {
    let (uplo, moved) = (triangle(uplo)?, !pivots.is_null());
    let pivots = array(pivots, if moved { a.rows } else { 0 })?;
    // SAFETY: as above.
    Ok(move || unsafe {
        let is_lower = uplo == cusolver_cpu::Uplo::Lower;
        let pivots = match moved {
            true => read_block_pivots(is_lower, pivots.get().cast_const(), a.rows),
            false => Some((1..=a.rows).collect()),
        };
        match pivots {
            Some(pivots) => indefinite::sytrs(kind, uplo, a.rows, b.columns, a.matrix, &pivots, b.matrix),
            None => tracing::error!(target: "cudaway::solver", "sytrs: a pivot is no row's number"),
        }
        0
    })
}

pub fn cusolverDnTsytrf_bufferSize<T: Field>(
    handle: cusolverDnHandle_t,
    n: c_int,
    _A: *mut T,
    lda: c_int,
    lwork: Out<'_, c_int>,
) -> Result {
    square_area(handle, None, n, lda, lwork)
}

/// # Safety
/// As [`cusolverDnTgetrf`].
pub unsafe fn cusolverDnTsytrf<T: Field>(
    handle: cusolverDnHandle_t,
    uplo: cublasFillMode_t,
    n: c_int,
    A: *mut T,
    lda: c_int,
    ipiv: *mut c_int,
    _work: *mut T,
    lwork: c_int,
    info: *mut c_int,
) -> Result {
    let context = computing(handle)?;
    size(lwork)?;
    // SAFETY: the caller's word.
    unsafe { context.run(info, bunch_kaufman(Kind::Symmetric, uplo, matrix(A, (n, n), lda)?, ipiv)?) }
}

pub fn cusolverDnTsytri_bufferSize<T: Field>(
    handle: cusolverDnHandle_t,
    uplo: cublasFillMode_t,
    n: c_int,
    _A: *mut T,
    lda: c_int,
    _ipiv: *const c_int,
    lwork: Out<'_, c_int>,
) -> Result {
    square_area(handle, Some(uplo), n, lda, lwork)
}

/// # Safety
/// As [`cusolverDnTgetrf`].
pub unsafe fn cusolverDnTsytri<T: Field>(
    handle: cusolverDnHandle_t,
    uplo: cublasFillMode_t,
    n: c_int,
    A: *mut T,
    lda: c_int,
    ipiv: *const c_int,
    _work: *mut T,
    lwork: c_int,
    info: *mut c_int,
) -> Result {
    let context = computing(handle)?;
    size(lwork)?;
    let (uplo, a) = (triangle(uplo)?, matrix(A, (n, n), lda)?);
    let pivots = array(ipiv, a.rows)?;
    // SAFETY: as above.
    unsafe {
        context.run(info, move || {
            let is_lower = uplo == cusolver_cpu::Uplo::Lower;
            match read_block_pivots(is_lower, pivots.get().cast_const(), a.rows) {
                Some(pivots) => indefinite::sytri(uplo, a.rows, a.matrix, &pivots),
                None => {
                    tracing::error!(target: "cudaway::solver", "sytri: a pivot is no row's number");
                    0
                }
            }
        })
    }
}
