//! Systems and eigenvalues of matrices that are distributed over several devices. Source: cuSOLVER manual, "cuSolverMG".
//!
//! What a call asks for is there when it comes back. Work areas are not used. Triangles are the lower ones, as the manual has it.

use core::ffi::{c_int, c_void};

use border::Out;
use cusolver_cpu::eigen::Range;
use cusolver_cpu::{Matrix, Uplo, cholesky, eigen, getrs, lu};

use super::generic::{real, same, typed};
use crate::arguments::{area, operation, size, triangle, vectors};
use crate::error::require;
use crate::mg::{self, Meant, Said};
use crate::types::*;
use crate::{Error, Result};

pub fn cusolverMgCreate(handle: Out<'_, cusolverMgHandle_t>) -> Result {
    handle.write(mg::create()?);
    Ok(())
}

pub fn cusolverMgDestroy(handle: cusolverMgHandle_t) -> Result {
    mg::destroy(handle)
}

/// # Safety
/// `deviceId` is NULL, or has `nbDevices` numbers.
pub unsafe fn cusolverMgDeviceSelect(
    handle: cusolverMgHandle_t,
    nbDevices: c_int,
    deviceId: *mut c_int,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { mg::select(handle, nbDevices, deviceId) }
}

/// # Safety
/// `deviceId` is NULL, or has a number for each column.
pub unsafe fn cusolverMgCreateDeviceGrid(
    grid: Out<'_, cudaLibMgGrid_t>,
    numRowDevices: i32,
    numColDevices: i32,
    deviceId: *const i32,
    mapping: cusolverMgGridMapping_t,
) -> Result {
    // SAFETY: the caller's promise.
    grid.write(unsafe { mg::create_grid((numRowDevices, numColDevices), deviceId, mapping)? });
    Ok(())
}

pub fn cusolverMgDestroyGrid(grid: cudaLibMgGrid_t) -> Result {
    mg::destroy_grid(grid)
}

pub fn cusolverMgCreateMatrixDesc(
    desc: Out<'_, cudaLibMgMatrixDesc_t>,
    numRows: i64,
    numCols: i64,
    rowBlockSize: i64,
    colBlockSize: i64,
    dataType: cudaDataType,
    grid: cudaLibMgGrid_t,
) -> Result {
    desc.write(mg::create_layout((numRows, numCols), (rowBlockSize, colBlockSize), dataType, grid)?);
    Ok(())
}

pub fn cusolverMgDestroyMatrixDesc(desc: cudaLibMgMatrixDesc_t) -> Result {
    mg::destroy_layout(desc)
}

/// The matrix of a call that has a square one, of which it says the triangle.
fn square(
    handle: cusolverMgHandle_t,
    uplo: cublasFillMode_t,
    N: c_int,
    first: (c_int, c_int),
    descriptor: cudaLibMgMatrixDesc_t,
    ty: cudaDataType,
) -> Result<Meant> {
    let a = mg::meant(handle, Said { rows: N, columns: N, first, descriptor }, ty)?;
    require(triangle(uplo)? == Uplo::Lower, "the upper triangle")?;
    Ok(a)
}

/// Leading dimension of what was collected.
fn collected<T: Copy>(values: &mut [T], rows: i64) -> Matrix<T> {
    Matrix::new(values.as_mut_ptr(), rows.max(1))
}

fn number(info: i64) -> c_int {
    c_int::try_from(info).unwrap_or(c_int::MAX)
}

pub fn cusolverMgSyevd_bufferSize(
    handle: cusolverMgHandle_t,
    jobz: cusolverEigMode_t,
    uplo: cublasFillMode_t,
    N: c_int,
    _array_d_A: *mut *mut c_void,
    IA: c_int,
    JA: c_int,
    descrA: cudaLibMgMatrixDesc_t,
    _W: *mut c_void,
    dataTypeW: cudaDataType,
    computeType: cudaDataType,
    lwork: Out<'_, i64>,
) -> Result {
    let a = square(handle, uplo, N, (IA, JA), descrA, computeType)?;
    vectors(jobz)?;
    same(real(computeType), &[dataTypeW])?;
    lwork.write(area(a.columns).into());
    Ok(())
}

/// Eigenvalues go to the host. Without eigenvectors the matrix stays as it is.
///
/// # Safety
/// cuSOLVER's contract for the pointers.
pub unsafe fn cusolverMgSyevd(
    handle: cusolverMgHandle_t,
    jobz: cusolverEigMode_t,
    uplo: cublasFillMode_t,
    N: c_int,
    array_d_A: *mut *mut c_void,
    IA: c_int,
    JA: c_int,
    descrA: cudaLibMgMatrixDesc_t,
    W: *mut c_void,
    dataTypeW: cudaDataType,
    computeType: cudaDataType,
    _array_d_work: *mut *mut c_void,
    lwork: i64,
    info: Out<'_, c_int>,
) -> Result {
    let a = square(handle, uplo, N, (IA, JA), descrA, computeType)?;
    size(lwork)?;
    let wanted = vectors(jobz)?;
    same(real(computeType), &[dataTypeW])?;
    require(!W.is_null() || N == 0, "the place for the eigenvalues is NULL")?;
    typed!(computeType, T => {
        // SAFETY: the caller's promise.
        let columns = unsafe { a.at::<T>(array_d_A.cast())? };
        let mut values = columns.read()?;
        let matrix = collected(&mut values, a.rows);
        // SAFETY: the values are all there; the place for the eigenvalues is the caller's promise.
        let (_, found) = unsafe { eigen::syevdx(wanted, Range::All, Uplo::Lower, a.rows, matrix, W.cast()) };
        if wanted {
            columns.write(&values)?;
        }
        info.write(number(found));
        Ok(())
    })
}

pub fn cusolverMgGetrf_bufferSize(
    handle: cusolverMgHandle_t,
    M: c_int,
    N: c_int,
    _array_d_A: *mut *mut c_void,
    IA: c_int,
    JA: c_int,
    descrA: cudaLibMgMatrixDesc_t,
    _array_d_IPIV: *mut *mut c_int,
    computeType: cudaDataType,
    lwork: Out<'_, i64>,
) -> Result {
    let said = Said { rows: M, columns: N, first: (IA, JA), descriptor: descrA };
    let a = mg::meant(handle, said, computeType)?;
    lwork.write(area(a.columns).into());
    Ok(())
}

/// Without pivots no rows are swapped.
///
/// # Safety
/// cuSOLVER's contract for the pointers.
pub unsafe fn cusolverMgGetrf(
    handle: cusolverMgHandle_t,
    M: c_int,
    N: c_int,
    array_d_A: *mut *mut c_void,
    IA: c_int,
    JA: c_int,
    descrA: cudaLibMgMatrixDesc_t,
    array_d_IPIV: *mut *mut c_int,
    computeType: cudaDataType,
    _array_d_work: *mut *mut c_void,
    lwork: i64,
    info: Out<'_, c_int>,
) -> Result {
    let said = Said { rows: M, columns: N, first: (IA, JA), descriptor: descrA };
    let a = mg::meant(handle, said, computeType)?;
    size(lwork)?;
    typed!(computeType, T => {
        // SAFETY: the caller's promise.
        let (columns, pivots) = unsafe { (a.at::<T>(array_d_A.cast())?, a.pivots(array_d_IPIV)?) };
        let mut values = columns.read()?;
        // SAFETY: the values are all there.
        let (found, swaps) =
            unsafe { lu::getrf(a.rows, a.columns, collected(&mut values, a.rows), pivots.is_some()) };
        columns.write(&values)?;
        if let Some(pivots) = pivots {
            pivots.write(&swaps.into_iter().map(number).collect::<Vec<_>>())?;
        }
        info.write(number(found));
        Ok(())
    })
}

pub fn cusolverMgGetrs_bufferSize(
    handle: cusolverMgHandle_t,
    TRANS: cublasOperation_t,
    N: c_int,
    NRHS: c_int,
    _array_d_A: *mut *mut c_void,
    IA: c_int,
    JA: c_int,
    descrA: cudaLibMgMatrixDesc_t,
    _array_d_IPIV: *mut *mut c_int,
    _array_d_B: *mut *mut c_void,
    IB: c_int,
    JB: c_int,
    descrB: cudaLibMgMatrixDesc_t,
    computeType: cudaDataType,
    lwork: Out<'_, i64>,
) -> Result {
    let said = Said { rows: N, columns: N, first: (IA, JA), descriptor: descrA };
    let a = mg::meant(handle, said, computeType)?;
    mg::meant(handle, Said { rows: N, columns: NRHS, first: (IB, JB), descriptor: descrB }, computeType)?;
    operation(TRANS)?;
    lwork.write(area(a.columns).into());
    Ok(())
}

/// # Safety
/// cuSOLVER's contract for the pointers.
pub unsafe fn cusolverMgGetrs(
    handle: cusolverMgHandle_t,
    TRANS: cublasOperation_t,
    N: c_int,
    NRHS: c_int,
    array_d_A: *mut *mut c_void,
    IA: c_int,
    JA: c_int,
    descrA: cudaLibMgMatrixDesc_t,
    array_d_IPIV: *mut *mut c_int,
    array_d_B: *mut *mut c_void,
    IB: c_int,
    JB: c_int,
    descrB: cudaLibMgMatrixDesc_t,
    computeType: cudaDataType,
    _array_d_work: *mut *mut c_void,
    lwork: i64,
    info: Out<'_, c_int>,
) -> Result {
    let said = Said { rows: N, columns: N, first: (IA, JA), descriptor: descrA };
    let a = mg::meant(handle, said, computeType)?;
    let said = Said { rows: N, columns: NRHS, first: (IB, JB), descriptor: descrB };
    let b = mg::meant(handle, said, computeType)?;
    size(lwork)?;
    let op = operation(TRANS)?;
    typed!(computeType, T => {
        // SAFETY: the caller's promise.
        let (columns, pivots, sides) =
            unsafe { (a.at::<T>(array_d_A.cast())?, a.pivots(array_d_IPIV)?, b.at::<T>(array_d_B.cast())?) };
        let pivots = pivots.map(|pivots| pivots.read()).transpose()?;
        let are_rows = pivots.iter().flatten().all(|pivot| (1..=N).contains(pivot));
        require(are_rows, "a pivot is no row's number")?;
        let pivots = pivots.as_ref().map_or(core::ptr::null(), |pivots| pivots.as_ptr());
        let (factors, mut values) = (columns.read()?, sides.read()?);
        let ld = a.rows.max(1);
        // SAFETY: the values are all there.
        unsafe { getrs(op, a.rows, b.columns, factors.as_ptr(), ld, pivots, values.as_mut_ptr(), ld) };
        sides.write(&values)?;
        info.write(0);
        Ok(())
    })
}

pub fn cusolverMgPotrf_bufferSize(
    handle: cusolverMgHandle_t,
    uplo: cublasFillMode_t,
    N: c_int,
    _array_d_A: *mut *mut c_void,
    IA: c_int,
    JA: c_int,
    descrA: cudaLibMgMatrixDesc_t,
    computeType: cudaDataType,
    lwork: Out<'_, i64>,
) -> Result {
    lwork.write(area(square(handle, uplo, N, (IA, JA), descrA, computeType)?.columns).into());
    Ok(())
}

/// # Safety
/// cuSOLVER's contract for the pointers.
pub unsafe fn cusolverMgPotrf(
    handle: cusolverMgHandle_t,
    uplo: cublasFillMode_t,
    N: c_int,
    array_d_A: *mut *mut c_void,
    IA: c_int,
    JA: c_int,
    descrA: cudaLibMgMatrixDesc_t,
    computeType: cudaDataType,
    _array_d_work: *mut *mut c_void,
    lwork: i64,
    h_info: Out<'_, c_int>,
) -> Result {
    let a = square(handle, uplo, N, (IA, JA), descrA, computeType)?;
    size(lwork)?;
    typed!(computeType, T => {
        // SAFETY: the caller's promise.
        let columns = unsafe { a.at::<T>(array_d_A.cast())? };
        let mut values = columns.read()?;
        // SAFETY: the values are all there.
        let found = unsafe { cholesky::potrf(Uplo::Lower, a.rows, collected(&mut values, a.rows)) };
        columns.write(&values)?;
        h_info.write(number(found));
        Ok(())
    })
}

pub fn cusolverMgPotrs_bufferSize(
    handle: cusolverMgHandle_t,
    uplo: cublasFillMode_t,
    n: c_int,
    nrhs: c_int,
    _array_d_A: *mut *mut c_void,
    IA: c_int,
    JA: c_int,
    descrA: cudaLibMgMatrixDesc_t,
    _array_d_B: *mut *mut c_void,
    IB: c_int,
    JB: c_int,
    descrB: cudaLibMgMatrixDesc_t,
    computeType: cudaDataType,
    lwork: Out<'_, i64>,
) -> Result {
    let a = square(handle, uplo, n, (IA, JA), descrA, computeType)?;
    mg::meant(handle, Said { rows: n, columns: nrhs, first: (IB, JB), descriptor: descrB }, computeType)?;
    lwork.write(area(a.columns).into());
    Ok(())
}

/// # Safety
/// cuSOLVER's contract for the pointers.
pub unsafe fn cusolverMgPotrs(
    handle: cusolverMgHandle_t,
    uplo: cublasFillMode_t,
    n: c_int,
    nrhs: c_int,
    array_d_A: *mut *mut c_void,
    IA: c_int,
    JA: c_int,
    descrA: cudaLibMgMatrixDesc_t,
    array_d_B: *mut *mut c_void,
    IB: c_int,
    JB: c_int,
    descrB: cudaLibMgMatrixDesc_t,
    computeType: cudaDataType,
    _array_d_work: *mut *mut c_void,
    lwork: i64,
    h_info: Out<'_, c_int>,
) -> Result {
    let a = square(handle, uplo, n, (IA, JA), descrA, computeType)?;
    let said = Said { rows: n, columns: nrhs, first: (IB, JB), descriptor: descrB };
    let b = mg::meant(handle, said, computeType)?;
    size(lwork)?;
    typed!(computeType, T => {
        // SAFETY: the caller's promise.
        let (columns, sides) = unsafe { (a.at::<T>(array_d_A.cast())?, b.at::<T>(array_d_B.cast())?) };
        let (mut factors, mut values) = (columns.read()?, sides.read()?);
        let (factors, right) = (collected(&mut factors, a.rows), collected(&mut values, a.rows));
        // SAFETY: the values are all there.
        unsafe { cholesky::potrs(Uplo::Lower, a.rows, b.columns, factors, right) };
        sides.write(&values)?;
        h_info.write(0);
        Ok(())
    })
}

pub fn cusolverMgPotri_bufferSize(
    handle: cusolverMgHandle_t,
    uplo: cublasFillMode_t,
    N: c_int,
    _array_d_A: *mut *mut c_void,
    IA: c_int,
    JA: c_int,
    descrA: cudaLibMgMatrixDesc_t,
    computeType: cudaDataType,
    lwork: Out<'_, i64>,
) -> Result {
    lwork.write(area(square(handle, uplo, N, (IA, JA), descrA, computeType)?.columns).into());
    Ok(())
}

/// # Safety
/// cuSOLVER's contract for the pointers.
pub unsafe fn cusolverMgPotri(
    handle: cusolverMgHandle_t,
    uplo: cublasFillMode_t,
    N: c_int,
    array_d_A: *mut *mut c_void,
    IA: c_int,
    JA: c_int,
    descrA: cudaLibMgMatrixDesc_t,
    computeType: cudaDataType,
    _array_d_work: *mut *mut c_void,
    lwork: i64,
    h_info: Out<'_, c_int>,
) -> Result {
    let a = square(handle, uplo, N, (IA, JA), descrA, computeType)?;
    size(lwork)?;
    typed!(computeType, T => {
        // SAFETY: the caller's promise.
        let columns = unsafe { a.at::<T>(array_d_A.cast())? };
        let mut values = columns.read()?;
        // SAFETY: the values are all there.
        let found = unsafe { cholesky::potri(Uplo::Lower, a.rows, collected(&mut values, a.rows)) };
        columns.write(&values)?;
        h_info.write(number(found));
        Ok(())
    })
}
