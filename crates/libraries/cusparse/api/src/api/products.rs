//! Products of sparse and dense. Source: cuSPARSE manual, `cusparseSpMV`, `cusparseSpMM`, `cusparseSDDMM`.
//!
//! Algorithms are hints: each gives the same numbers, and the same again in every run on as many cores. Our own code uses no work
//! area; on an AMD GPU there is one as large as hipSPARSE asks for.

use core::ffi::c_void;

use border::Out;

use crate::descriptor::*;
use crate::error::require;
use crate::handle;
use crate::hip::generic::{Sampled as SampledOnHip, TimesDense, TimesVector};
use crate::hip::objects::Kept;
use crate::memory::*;
use crate::types::*;
use crate::{Error, Result};

fn check_types(go_together: bool) -> Result {
    if go_together { Ok(()) } else { Err(Error::NotSupported("these types together")) }
}

/// All that a product of a matrix and a vector is of.
#[derive(Clone, Copy)]
pub(super) struct Vectors {
    pub(super) a: SparseMatrix,
    pub(super) x: DenseVector,
    pub(super) y: DenseVector,
}

kit::addresses! { Vectors { a, x, y } }

fn vectors(
    opA: cusparseOperation_t,
    matA: cusparseSpMatDescr_t,
    vecX: cusparseDnVecDescr_t,
    vecY: cusparseDnVecDescr_t,
    computeType: cudaDataType,
    alg: cusparseSpMVAlg_t,
) -> Result<Vectors> {
    let (a, x, y) = (SPARSE_MATRICES.get(matA)?, DENSE_VECTORS.get(vecX)?, DENSE_VECTORS.get(vecY)?);
    let (rows, cols) = operation(opA)?.size(a.rows, a.cols);
    require(x.size == cols && y.size == rows, "the vectors' sizes are not the matrix's")?;
    require(alg <= cusparseSpMVAlg_t::CUSPARSE_SPMV_BSR_ALG1, "there is no such algorithm")?;
    let not = cusparseOperation_t::CUSPARSE_OPERATION_NON_TRANSPOSE;
    match a.format {
        Format::BlockedEll { .. } => return Err(Error::NotSupported("Blocked-ELL times a vector")),
        Format::SlicedEll { .. } | Format::Bsr { .. } if opA != not => {
            return Err(Error::NotSupported("transposed matrices in blocks or slices times a vector"));
        }
        _ => {}
    }
    check_types(types_go_together((a.value_type, x.value_type), y.value_type, computeType, true))?;
    check_matrix(&a)?;
    check_dense_vector(&x)?;
    check_dense_vector(&y)?;
    Ok(Vectors { a, x, y })
}

fn times_vector<'a>(
    kept: &'a Kept,
    op: cusparseOperation_t,
    Vectors { a, x, y }: &'a Vectors,
    factors: [*const c_void; 2],
    compute: cudaDataType,
    alg: cusparseSpMVAlg_t,
) -> TimesVector<'a> {
    TimesVector { kept, op, a, x, y, factors, compute, alg }
}

#[expect(clippy::too_many_arguments, reason = "C's")]
pub fn cusparseSpMV_bufferSize(
    handle: cusparseHandle_t,
    opA: cusparseOperation_t,
    alpha: *const c_void,
    matA: cusparseConstSpMatDescr_t,
    vecX: cusparseConstDnVecDescr_t,
    beta: *const c_void,
    vecY: cusparseDnVecDescr_t,
    computeType: cudaDataType,
    alg: cusparseSpMVAlg_t,
    bufferSize: Out<'_, usize>,
) -> Result {
    let context = handle::get(handle)?;
    context.can_compute()?;
    require(!alpha.is_null() && !beta.is_null(), "alpha or beta is NULL")?;
    let all = vectors(opA, matA, vecX, vecY, computeType, alg)?;
    let entry = SPARSE_MATRICES.entry(matA)?;
    let on_hip = times_vector(&entry.kept, opA, &all, [alpha, beta], computeType, alg);
    bufferSize.write(context.hip(false)?.map_or(Ok(0), |hip| on_hip.bytes(&hip))?);
    Ok(())
}

/// There is nothing to be known before.
#[expect(clippy::too_many_arguments, reason = "C's")]
pub fn cusparseSpMV_preprocess(
    handle: cusparseHandle_t,
    opA: cusparseOperation_t,
    alpha: *const c_void,
    matA: cusparseConstSpMatDescr_t,
    vecX: cusparseConstDnVecDescr_t,
    beta: *const c_void,
    vecY: cusparseDnVecDescr_t,
    computeType: cudaDataType,
    alg: cusparseSpMVAlg_t,
    externalBuffer: *mut c_void,
) -> Result {
    let context = handle::get(handle)?;
    context.can_compute()?;
    require(!alpha.is_null() && !beta.is_null(), "alpha or beta is NULL")?;
    let all = vectors(opA, matA, vecX, vecY, computeType, alg)?;
    if let Some(hip) = context.hip(true)? {
        let entry = SPARSE_MATRICES.entry(matA)?;
        // What hipSPARSE has nothing to know of before is nothing here, too.
        times_vector(&entry.kept, opA, &all, [alpha, beta], computeType, alg)
            .prepare(&hip, externalBuffer)?;
    }
    Ok(())
}

/// # Safety
/// The arrays are there as the manual says of them: those of the device's until the stream has done the work, those of the host's while
/// the call lasts.
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseSpMV(
    handle: cusparseHandle_t,
    opA: cusparseOperation_t,
    alpha: *const c_void,
    matA: cusparseConstSpMatDescr_t,
    vecX: cusparseConstDnVecDescr_t,
    beta: *const c_void,
    vecY: cusparseDnVecDescr_t,
    computeType: cudaDataType,
    alg: cusparseSpMVAlg_t,
    externalBuffer: *mut c_void,
) -> Result {
    let context = handle::get(handle)?;
    let all = vectors(opA, matA, vecX, vecY, computeType, alg)?;
    let operation = operation(opA)?;
    if let Some(hip) = context.hip(true)? {
        require(!alpha.is_null() && !beta.is_null(), "alpha or beta is NULL")?;
        let entry = SPARSE_MATRICES.entry(matA)?;
        if times_vector(&entry.kept, opA, &all, [alpha, beta], computeType, alg).run(&hip, externalBuffer)? {
            return Ok(());
        }
    }
    // SAFETY: the caller's promise.
    let (alpha, beta) = unsafe { Factor::pair([alpha, beta], computeType, context.on_host()) }?;
    multiply_vector(&context, all, operation, [alpha, beta], computeType)
}

/// `y = alpha · op(A) · x + beta · y`
pub(super) fn multiply_vector(
    context: &handle::Context,
    all: Vectors,
    operation: cusparse_cpu::Operation,
    factors: [Factor; 2],
    computeType: cudaDataType,
) -> Result {
    context.enqueue((all, factors), move |(Vectors { a, x, y }, [alpha, beta])| {
        compute!(computeType, C => index!(a.index_type, I => {
            // SAFETY: cuSPARSE's contract: what the descriptors say is there until the stream has come here.
            unsafe {
                let (a, is_transposed) = matrix::<C, I>(&a, 0);
                let operation = operation.of(is_transposed);
                let x = values::<C>(x.values, x.size, x.value_type);
                multiply(&a, operation, &x, (alpha.get(), beta.get()), &y);
            }
        }))
    })
}

#[derive(Clone, Copy)]
struct Matrices {
    a: SparseMatrix,
    b: DenseMatrix,
    c: DenseMatrix,
    batches: usize,
}

kit::addresses! { Matrices { a, b, c } }

/// How many products a call makes: of each matrix one or as many.
fn batches(counts: [core::ffi::c_int; 3]) -> Result<usize> {
    let most = counts.into_iter().max().unwrap_or(1);
    require(counts.iter().all(|count| *count == 1 || *count == most), "batches of different lengths")?;
    Ok(most as usize)
}

fn matrices(
    (opA, opB): (cusparseOperation_t, cusparseOperation_t),
    matA: cusparseSpMatDescr_t,
    matB: cusparseDnMatDescr_t,
    matC: cusparseDnMatDescr_t,
    computeType: cudaDataType,
    alg: cusparseSpMMAlg_t,
) -> Result<Matrices> {
    let (a, b, c) = (SPARSE_MATRICES.get(matA)?, DENSE_MATRICES.get(matB)?, DENSE_MATRICES.get(matC)?);
    let (m, k) = operation(opA)?.size(a.rows, a.cols);
    let (depth, n) = operation(opB)?.size(b.rows, b.cols);
    require(k == depth && c.rows == m && c.cols == n, "the matrices' sizes do not fit")?;
    let known = matches!(alg.0, 0..=6 | 12..=14);
    require(known, "there is no such algorithm")?;
    match a.format {
        Format::SlicedEll { .. } | Format::CooAoS => {
            return Err(Error::NotSupported("Sliced-ELL, or coordinates in one array, times a matrix"));
        }
        Format::BlockedEll { .. } | Format::Bsr { .. } if operation(opA)?.transposed => {
            return Err(Error::NotSupported("transposed matrices in blocks"));
        }
        _ => {}
    }
    check_types(types_go_together((a.value_type, b.value_type), c.value_type, computeType, false))?;
    check_matrix(&a)?;
    check_dense_matrix(&b)?;
    check_dense_matrix(&c)?;
    let batches = batches([a.batches, b.batches, c.batches])?;
    require(batches == 1 || (c.batches > 1 && c.stride != 0), "products of a batch in one place")?;
    Ok(Matrices { a, b, c, batches })
}

fn times_dense<'a>(
    kept: &'a Kept,
    ops: [cusparseOperation_t; 2],
    Matrices { a, b, c, .. }: &'a Matrices,
    factors: [*const c_void; 2],
    compute: cudaDataType,
    alg: cusparseSpMMAlg_t,
) -> TimesDense<'a> {
    TimesDense { kept, ops, a, b, c, factors, compute, alg }
}

#[expect(clippy::too_many_arguments, reason = "C's")]
pub fn cusparseSpMM_bufferSize(
    handle: cusparseHandle_t,
    opA: cusparseOperation_t,
    opB: cusparseOperation_t,
    alpha: *const c_void,
    matA: cusparseConstSpMatDescr_t,
    matB: cusparseConstDnMatDescr_t,
    beta: *const c_void,
    matC: cusparseDnMatDescr_t,
    computeType: cudaDataType,
    alg: cusparseSpMMAlg_t,
    bufferSize: Out<'_, usize>,
) -> Result {
    let context = handle::get(handle)?;
    context.can_compute()?;
    require(!alpha.is_null() && !beta.is_null(), "alpha or beta is NULL")?;
    let all = matrices((opA, opB), matA, matB, matC, computeType, alg)?;
    let entry = SPARSE_MATRICES.entry(matA)?;
    let on_hip = times_dense(&entry.kept, [opA, opB], &all, [alpha, beta], computeType, alg);
    bufferSize.write(context.hip(false)?.map_or(Ok(0), |hip| on_hip.bytes(&hip))?);
    Ok(())
}

/// There is nothing to be known before.
#[expect(clippy::too_many_arguments, reason = "C's")]
pub fn cusparseSpMM_preprocess(
    handle: cusparseHandle_t,
    opA: cusparseOperation_t,
    opB: cusparseOperation_t,
    alpha: *const c_void,
    matA: cusparseConstSpMatDescr_t,
    matB: cusparseConstDnMatDescr_t,
    beta: *const c_void,
    matC: cusparseDnMatDescr_t,
    computeType: cudaDataType,
    alg: cusparseSpMMAlg_t,
    externalBuffer: *mut c_void,
) -> Result {
    let context = handle::get(handle)?;
    context.can_compute()?;
    require(!alpha.is_null() && !beta.is_null(), "alpha or beta is NULL")?;
    let all = matrices((opA, opB), matA, matB, matC, computeType, alg)?;
    if let Some(hip) = context.hip(true)? {
        let entry = SPARSE_MATRICES.entry(matA)?;
        let on_hip = times_dense(&entry.kept, [opA, opB], &all, [alpha, beta], computeType, alg);
        on_hip.prepare(&hip, externalBuffer)?;
    }
    Ok(())
}

/// # Safety
/// As [`cusparseSpMV`].
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseSpMM(
    handle: cusparseHandle_t,
    opA: cusparseOperation_t,
    opB: cusparseOperation_t,
    alpha: *const c_void,
    matA: cusparseConstSpMatDescr_t,
    matB: cusparseConstDnMatDescr_t,
    beta: *const c_void,
    matC: cusparseDnMatDescr_t,
    computeType: cudaDataType,
    alg: cusparseSpMMAlg_t,
    externalBuffer: *mut c_void,
) -> Result {
    let context = handle::get(handle)?;
    let all = matrices((opA, opB), matA, matB, matC, computeType, alg)?;
    let (operation_a, operation_b) = (operation(opA)?, operation(opB)?);
    if let Some(hip) = context.hip(true)? {
        require(!alpha.is_null() && !beta.is_null(), "alpha or beta is NULL")?;
        let entry = SPARSE_MATRICES.entry(matA)?;
        let on_hip = times_dense(&entry.kept, [opA, opB], &all, [alpha, beta], computeType, alg);
        if on_hip.run(&hip, externalBuffer)? {
            return Ok(());
        }
    }
    // SAFETY: the caller's promise.
    let (alpha, beta) = unsafe { Factor::pair([alpha, beta], computeType, context.on_host()) }?;
    context.enqueue((all, alpha, beta), move |(Matrices { a, b, c, batches }, alpha, beta)| {
        compute!(computeType, C => index!(a.index_type, I => for number in 0..batches {
            // SAFETY: as in `cusparseSpMV`.
            unsafe {
                let (a, is_transposed) = matrix::<C, I>(&a, number);
                let b = packed::<C>(&b, number, operation_b.transposed, operation_b.conjugated);
                let to = (batch_place(&c, number), c.value_type, c.layout());
                multiply_dense(&a, operation_a.of(is_transposed), &b, (alpha.get(), beta.get()), to);
            }
        }))
    })
}

#[derive(Clone, Copy)]
struct Sampled {
    a: DenseMatrix,
    b: DenseMatrix,
    c: SparseMatrix,
    batches: usize,
    depth: usize,
}

kit::addresses! { Sampled { a, b, c } }

fn sampled(
    (opA, opB): (cusparseOperation_t, cusparseOperation_t),
    matA: cusparseDnMatDescr_t,
    matB: cusparseDnMatDescr_t,
    matC: cusparseSpMatDescr_t,
    computeType: cudaDataType,
    alg: cusparseSDDMMAlg_t,
) -> Result<Sampled> {
    let (a, b, c) = (DENSE_MATRICES.get(matA)?, DENSE_MATRICES.get(matB)?, SPARSE_MATRICES.get(matC)?);
    let (a_turned, b_turned) = (operation(opA)?, operation(opB)?);
    let (m, depth) = a_turned.size(a.rows, a.cols);
    let (k, n) = b_turned.size(b.rows, b.cols);
    require(k == depth && c.rows == m && c.cols == n, "the matrices' sizes do not fit")?;
    require(alg == cusparseSDDMMAlg_t::CUSPARSE_SDDMM_ALG_DEFAULT, "there is no such algorithm")?;
    if a_turned.conjugated || b_turned.conjugated {
        return Err(Error::NotSupported("conjugated factors of a sampled product"));
    }
    if !matches!(c.format, Format::Csr | Format::Bsr { .. }) {
        return Err(Error::NotSupported("a sampled product in this format"));
    }
    check_types(
        computeType != cudaDataType::CUDA_R_32I
            && a.value_type != cudaDataType::CUDA_R_8I
            && types_go_together((a.value_type, b.value_type), c.value_type, computeType, false),
    )?;
    check_dense_matrix(&a)?;
    check_dense_matrix(&b)?;
    check_matrix(&c)?;
    let batches = batches([a.batches, b.batches, c.batches])?;
    require(batches == 1 || (c.batches > 1 && c.strides.values != 0), "products of a batch in one place")?;
    Ok(Sampled { a, b, c, batches, depth })
}

fn sampled_product<'a>(
    kept: &'a Kept,
    ops: [cusparseOperation_t; 2],
    Sampled { a, b, c, .. }: &'a Sampled,
    factors: [*const c_void; 2],
    compute: cudaDataType,
) -> SampledOnHip<'a> {
    SampledOnHip { kept, ops, a, b, c, factors, compute }
}

#[expect(clippy::too_many_arguments, reason = "C's")]
pub fn cusparseSDDMM_bufferSize(
    handle: cusparseHandle_t,
    opA: cusparseOperation_t,
    opB: cusparseOperation_t,
    alpha: *const c_void,
    matA: cusparseConstDnMatDescr_t,
    matB: cusparseConstDnMatDescr_t,
    beta: *const c_void,
    matC: cusparseSpMatDescr_t,
    computeType: cudaDataType,
    alg: cusparseSDDMMAlg_t,
    bufferSize: Out<'_, usize>,
) -> Result {
    let context = handle::get(handle)?;
    context.can_compute()?;
    require(!alpha.is_null() && !beta.is_null(), "alpha or beta is NULL")?;
    let all = sampled((opA, opB), matA, matB, matC, computeType, alg)?;
    let entry = SPARSE_MATRICES.entry(matC)?;
    let on_hip = sampled_product(&entry.kept, [opA, opB], &all, [alpha, beta], computeType);
    bufferSize.write(context.hip(false)?.map_or(Ok(0), |hip| on_hip.bytes(&hip))?);
    Ok(())
}

/// There is nothing to be known before.
#[expect(clippy::too_many_arguments, reason = "C's")]
pub fn cusparseSDDMM_preprocess(
    handle: cusparseHandle_t,
    opA: cusparseOperation_t,
    opB: cusparseOperation_t,
    alpha: *const c_void,
    matA: cusparseConstDnMatDescr_t,
    matB: cusparseConstDnMatDescr_t,
    beta: *const c_void,
    matC: cusparseSpMatDescr_t,
    computeType: cudaDataType,
    alg: cusparseSDDMMAlg_t,
    externalBuffer: *mut c_void,
) -> Result {
    let context = handle::get(handle)?;
    context.can_compute()?;
    require(!alpha.is_null() && !beta.is_null(), "alpha or beta is NULL")?;
    let all = sampled((opA, opB), matA, matB, matC, computeType, alg)?;
    if let Some(hip) = context.hip(true)? {
        let entry = SPARSE_MATRICES.entry(matC)?;
        let on_hip = sampled_product(&entry.kept, [opA, opB], &all, [alpha, beta], computeType);
        on_hip.prepare(&hip, externalBuffer)?;
    }
    Ok(())
}

/// # Safety
/// As [`cusparseSpMV`].
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseSDDMM(
    handle: cusparseHandle_t,
    opA: cusparseOperation_t,
    opB: cusparseOperation_t,
    alpha: *const c_void,
    matA: cusparseConstDnMatDescr_t,
    matB: cusparseConstDnMatDescr_t,
    beta: *const c_void,
    matC: cusparseSpMatDescr_t,
    computeType: cudaDataType,
    alg: cusparseSDDMMAlg_t,
    externalBuffer: *mut c_void,
) -> Result {
    let context = handle::get(handle)?;
    let all = sampled((opA, opB), matA, matB, matC, computeType, alg)?;
    if let Some(hip) = context.hip(true)? {
        require(!alpha.is_null() && !beta.is_null(), "alpha or beta is NULL")?;
        let entry = SPARSE_MATRICES.entry(matC)?;
        let on_hip = sampled_product(&entry.kept, [opA, opB], &all, [alpha, beta], computeType);
        if on_hip.run(&hip, externalBuffer)? {
            return Ok(());
        }
    }
    let (turn_a, turn_b) = (operation(opA)?.transposed, operation(opB)?.transposed);
    // SAFETY: the caller's promise.
    let (alpha, beta) = unsafe { Factor::pair([alpha, beta], computeType, context.on_host()) }?;
    context.enqueue((all, alpha, beta), move |(Sampled { a, b, c, batches, depth }, alpha, beta)| {
        compute!(computeType, C => index!(c.index_type, I => for number in 0..batches {
            // SAFETY: as in `cusparseSpMV`.
            unsafe {
                // What borrows the values is gone before they are written.
                let places = matrix::<C, I>(&c, number).0.places();
                let (a, b) = (packed::<C>(&a, number, turn_a, false), packed::<C>(&b, number, !turn_b, false));
                let sums = cusparse_cpu::sddmm(&places, depth, &a, &b);
                let to = in_batch(c.values, number, c.strides.values, value_bytes(c.value_type).unwrap_or(1));
                blend(to, c.value_type, column(sums.len()), &sums, (alpha.get(), beta.get()));
            }
        }))
    })
}
