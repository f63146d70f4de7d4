//! Products of sparse matrices. Source: cuSPARSE manual, `cusparseSpGEMM` and `cusparseSpGEMMreuse`.
//!
//! The rule: the call that finds the product waits for the stream, because the descriptor of C knows its size afterwards. The product
//! is kept by the product's descriptor until it is copied. Algorithms are hints. Our own code asks
//! for work areas and does not use them.

use core::ffi::c_void;
use std::any::Any;
use std::sync::Arc;

use border::Out;
use cusparse_cpu::Product;
use parking_lot::{Mutex, MutexGuard};

use super::conversion::SOME;
use crate::bare::pattern_matrix;
use crate::descriptor::*;
use crate::error::require;
use crate::handle;
use crate::hip::generic::{KeptProduct, Products, Scale};
use crate::memory::*;
use crate::types::*;
use crate::{Error, Result};

#[derive(Default)]
struct Found {
    products: Option<i64>,
    /// A [`Product`] of the type that was computed with, and that type.
    product: Option<(cudaDataType, Arc<dyn Any + Send + Sync>)>,
    /// Whose products are still to be counted: hipSPARSE does not tell.
    uncounted: Option<(Arc<handle::Context>, SparseMatrix, SparseMatrix)>,
}

#[derive(Default)]
struct Descriptor {
    found: Mutex<Found>,
    /// hipSPARSE's product, where that is whose.
    hip: KeptProduct,
}

impl Descriptor {
    fn lock(&self) -> MutexGuard<'_, Found> {
        self.found.lock()
    }
}

// SAFETY: addresses are numbers until the work follows them.
unsafe impl Send for Descriptor {}
// SAFETY: as above.
unsafe impl Sync for Descriptor {}

static FOUND: Descriptors<Descriptor> = Descriptors::new();

pub fn cusparseSpGEMM_createDescr(descr: Out<'_, cusparseSpGEMMDescr_t>) -> Result {
    descr.write(FOUND.add(Descriptor::default()));
    Ok(())
}

pub fn cusparseSpGEMM_destroyDescr(descr: cusparseSpGEMMDescr_t) -> Result {
    FOUND.remove(descr)
}

#[derive(Clone, Copy)]
struct Three {
    a: SparseMatrix,
    b: SparseMatrix,
    c: SparseMatrix,
}

kit::addresses! { Three { a, b, c } }

fn three(
    operations: [cusparseOperation_t; 2],
    matA: cusparseSpMatDescr_t,
    matB: cusparseSpMatDescr_t,
    matC: cusparseSpMatDescr_t,
    computeType: Option<cudaDataType>,
    alg: cusparseSpGEMMAlg_t,
) -> Result<Three> {
    let (a, b, c) = (SPARSE_MATRICES.get(matA)?, SPARSE_MATRICES.get(matB)?, SPARSE_MATRICES.get(matC)?);
    require(alg <= cusparseSpGEMMAlg_t::CUSPARSE_SPGEMM_ALG3, "there is no such algorithm")?;
    for one in operations {
        operation(one)?;
        if one != cusparseOperation_t::CUSPARSE_OPERATION_NON_TRANSPOSE {
            return Err(Error::NotSupported("products of transposed sparse matrices"));
        }
    }
    require(a.cols == b.rows && c.rows == a.rows && c.cols == b.cols, "the matrices' sizes do not fit")?;
    for one in [&a, &b, &c] {
        if one.format != Format::Csr {
            return Err(Error::NotSupported("sparse products in other formats than CSR"));
        }
        if one.batches > 1 {
            return Err(Error::NotSupported("sparse products of batches"));
        }
    }
    let same = a.value_type == b.value_type && b.value_type == c.value_type;
    let compute = computeType.or(natural_compute(a.value_type));
    let is_float = |compute: cudaDataType| compute != cudaDataType::CUDA_R_32I;
    if !same || compute.is_none_or(|it| natural_compute(a.value_type) != Some(it) || !is_float(it)) {
        return Err(Error::NotSupported("these types together"));
    }
    check_matrix(&a)?;
    check_matrix(&b)?;
    Ok(Three { a, b, c })
}

fn products<'a>(
    kept: &'a KeptProduct,
    ops: [cusparseOperation_t; 2],
    Three { a, b, c }: &'a Three,
    alg: cusparseSpGEMMAlg_t,
) -> Products<'a> {
    Products { kept, ops, a, b, c, alg }
}

/// What both steps of a product begin with: without a work area its size is all that is asked for.
fn asks(bufferSize: Out<'_, usize>, externalBuffer: *mut c_void) -> bool {
    bufferSize.write(SOME);
    externalBuffer.is_null()
}

/// # Safety
/// The arrays are there as the manual says of them: those of the device's until the stream has done the work, those of the host's while
/// the call lasts.
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseSpGEMM_workEstimation(
    handle: cusparseHandle_t,
    opA: cusparseOperation_t,
    opB: cusparseOperation_t,
    alpha: *const c_void,
    matA: cusparseConstSpMatDescr_t,
    matB: cusparseConstSpMatDescr_t,
    beta: *const c_void,
    matC: cusparseSpMatDescr_t,
    computeType: cudaDataType,
    alg: cusparseSpGEMMAlg_t,
    spgemmDescr: cusparseSpGEMMDescr_t,
    bufferSize1: Out<'_, usize>,
    externalBuffer1: *mut c_void,
) -> Result {
    let context = handle::get(handle)?;
    context.can_compute()?;
    require(!alpha.is_null() && !beta.is_null(), "alpha or beta is NULL")?;
    let found = FOUND.get(spgemmDescr)?;
    let three = three([opA, opB], matA, matB, matC, Some(computeType), alg)?;
    // HIP differs: hipSPARSE estimates no memory of a product of sparse matrices, which these two algorithms go on with.
    let is_estimated =
        matches!(alg, cusparseSpGEMMAlg_t::CUSPARSE_SPGEMM_ALG2 | cusparseSpGEMMAlg_t::CUSPARSE_SPGEMM_ALG3);
    if let Some(hip) = context.hip(true)?.filter(|_| !is_estimated) {
        let (scale, mut bytes) = (Scale { factors: [alpha, beta], compute: computeType }, 0);
        let on_hip = products(&found.hip, [opA, opB], &three, alg);
        if on_hip.estimate(&hip, &scale, [(&mut bytes, externalBuffer1)])? {
            return estimated(context, &found, &three, bufferSize1, bytes, externalBuffer1);
        }
    }
    *found.hip.lock() = None;
    if asks(bufferSize1, externalBuffer1) {
        return Ok(());
    }
    found.lock().products = Some(context.now((three.a, three.b), count)?);
    Ok(())
}

/// What hipSPARSE has estimated: the size of a work area, or with that what there is to do.
fn estimated(
    context: Arc<handle::Context>,
    found: &Descriptor,
    three: &Three,
    size: Out<'_, usize>,
    bytes: usize,
    area: *mut c_void,
) -> Result {
    if area.is_null() {
        size.write(bytes.max(SOME));
    } else {
        let mut found = found.lock();
        (found.products, found.uncounted) = (None, Some((context, three.a, three.b)));
    }
    Ok(())
}

/// How many products of entries are added.
fn count((a, b): (SparseMatrix, SparseMatrix)) -> i64 {
    // The pattern alone is looked at, whatever the type.
    index!(a.index_type, I => index!(b.index_type, J => {
        // SAFETY: cuSPARSE's contract: what the descriptors say is there; the stream has nothing to do any more.
        let (a, b) = unsafe { (pattern_matrix::<I>(&a), pattern_matrix::<J>(&b)) };
        cusparse_cpu::count_products(&a, &b) as i64
    }))
}

pub fn cusparseSpGEMM_getNumProducts(spgemmDescr: cusparseSpGEMMDescr_t, num_prods: Out<'_, i64>) -> Result {
    let found = FOUND.get(spgemmDescr)?;
    let (mut products, uncounted) = {
        let mut found = found.lock();
        (found.products, found.uncounted.take())
    };
    if let Some((context, a, b)) = uncounted {
        context.can_compute()?;
        products = Some(context.now((a, b), count)?);
        found.lock().products = products;
    }
    num_prods.write(products.ok_or(Error::InvalidValue("the work was not estimated"))?);
    Ok(())
}

/// The size of the second work area is written by the call that has the third.
///
/// # Safety
/// As [`cusparseSpGEMM_workEstimation`].
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseSpGEMM_estimateMemory(
    handle: cusparseHandle_t,
    opA: cusparseOperation_t,
    opB: cusparseOperation_t,
    alpha: *const c_void,
    matA: cusparseConstSpMatDescr_t,
    matB: cusparseConstSpMatDescr_t,
    beta: *const c_void,
    matC: cusparseSpMatDescr_t,
    computeType: cudaDataType,
    alg: cusparseSpGEMMAlg_t,
    spgemmDescr: cusparseSpGEMMDescr_t,
    chunk_fraction: f32,
    bufferSize3: Out<'_, usize>,
    externalBuffer3: *mut c_void,
    bufferSize2: border::OptOut<'_, usize>,
) -> Result {
    handle::get(handle)?.can_compute()?;
    require(!alpha.is_null() && !beta.is_null(), "alpha or beta is NULL")?;
    let found = FOUND.get(spgemmDescr)?;
    three([opA, opB], matA, matB, matC, Some(computeType), alg)?;
    // These sizes are our own code's, and so is what takes them.
    *found.hip.lock() = None;
    require(chunk_fraction > 0.0 && chunk_fraction <= 1.0, "the fraction is not above 0 and at most 1")?;
    if !asks(bufferSize3, externalBuffer3) {
        bufferSize2.write(SOME);
    }
    Ok(())
}

const TOO_LARGE: Error = Error::InsufficientResources(
    "the product has more entries than its indices can number or the memory can hold",
);

/// How many entries a product may have: its offsets number them, and there is room on the device for it and for what is kept of it.
fn most_entries(c: &SparseMatrix) -> Result<usize> {
    let (mut free, mut total) = (0, 0);
    // SAFETY: both are writable.
    kit::driver::check("cuMemGetInfo", unsafe {
        (kit::driver::driver()?.cuMemGetInfo_v2)(&mut free, &mut total)
    })?;
    let numbers = index!(c.offset_type, O => size_of::<O>());
    let by_index = if numbers == size_of::<i32>() { i32::MAX as usize } else { usize::MAX };
    let bytes = 2 * (numbers + element!(c.value_type, E => size_of::<E>()));
    Ok(by_index.min(free / bytes))
}

/// Finds the product, and tells the descriptor of C how many entries it has.
///
/// # Safety
/// As [`cusparseSpGEMM_workEstimation`].
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseSpGEMM_compute(
    handle: cusparseHandle_t,
    opA: cusparseOperation_t,
    opB: cusparseOperation_t,
    alpha: *const c_void,
    matA: cusparseConstSpMatDescr_t,
    matB: cusparseConstSpMatDescr_t,
    beta: *const c_void,
    matC: cusparseSpMatDescr_t,
    computeType: cudaDataType,
    alg: cusparseSpGEMMAlg_t,
    spgemmDescr: cusparseSpGEMMDescr_t,
    bufferSize2: Out<'_, usize>,
    externalBuffer2: *mut c_void,
) -> Result {
    let context = handle::get(handle)?;
    context.can_compute()?;
    require(!alpha.is_null() && !beta.is_null(), "alpha or beta is NULL")?;
    let found = FOUND.get(spgemmDescr)?;
    let three = three([opA, opB], matA, matB, matC, Some(computeType), alg)?;
    if let Some(hip) = context.hip(true)? {
        let (scale, mut bytes) = (Scale { factors: [alpha, beta], compute: computeType }, 0);
        let on_hip = products(&found.hip, [opA, opB], &three, alg);
        if let Some(nnz) = on_hip.compute(&hip, &scale, [(&mut bytes, externalBuffer2)])? {
            if externalBuffer2.is_null() {
                bufferSize2.write(bytes.max(SOME));
            }
            return SPARSE_MATRICES.change(matC, |c| c.nnz = nnz);
        }
    }
    if asks(bufferSize2, externalBuffer2) {
        return Ok(());
    }
    let most = most_entries(&three.c)?;
    let made = context.now((three.a, three.b), |(a, b)| -> Option<(Arc<dyn Any + Send + Sync>, usize)> {
        compute!(computeType, C => index!(a.index_type, I => index!(b.index_type, J => {
            // SAFETY: as in `count`.
            let (a, b) = unsafe { (matrix::<C, I>(&a, 0).0, matrix::<C, J>(&b, 0).0) };
            let product = cusparse_cpu::multiply(&a, &b, most)?;
            let nnz = product.len();
            Some((Arc::new(product), nnz))
        })))
    })?;
    let (product, nnz) = made.ok_or(TOO_LARGE)?;
    found.lock().product = Some((computeType, product));
    SPARSE_MATRICES.change(matC, |c| c.nnz = nnz)
}

/// # Safety
/// As [`cusparseSpGEMM_workEstimation`].
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseSpGEMM_copy(
    handle: cusparseHandle_t,
    opA: cusparseOperation_t,
    opB: cusparseOperation_t,
    alpha: *const c_void,
    matA: cusparseConstSpMatDescr_t,
    matB: cusparseConstSpMatDescr_t,
    beta: *const c_void,
    matC: cusparseSpMatDescr_t,
    computeType: cudaDataType,
    alg: cusparseSpGEMMAlg_t,
    spgemmDescr: cusparseSpGEMMDescr_t,
) -> Result {
    let context = handle::get(handle)?;
    let factors = [alpha, beta];
    // SAFETY: the caller's promise.
    let (alpha, beta) = unsafe { Factor::pair([alpha, beta], computeType, context.on_host()) }?;
    let descriptor = FOUND.get(spgemmDescr)?;
    if let Some(hip) = context.hip(true)? {
        let three = three([opA, opB], matA, matB, matC, Some(computeType), alg)?;
        check_matrix(&three.c)?;
        let scale = Scale { factors, compute: computeType };
        if products(&descriptor.hip, [opA, opB], &three, alg).copy(&hip, &scale)? {
            return Ok(());
        }
    }
    let found = descriptor.lock().product.clone();
    let (known, product) = found.ok_or(Error::InvalidValue("the product was not computed"))?;
    require(known == computeType, "the product was computed with another type")?;
    let c = three([opA, opB], matA, matB, matC, Some(computeType), alg)?.c;
    check_matrix(&c)?;
    context.enqueue((c, alpha, beta), move |(c, alpha, beta)| {
        compute!(computeType, C => if let Some(product) = product.downcast_ref::<Product<C>>() {
            // SAFETY: cuSPARSE's contract: what the descriptor says is there until the stream has come here.
            unsafe {
                write_pattern(&c, product);
                write_values(&c, product, (alpha.get(), beta.get()));
            }
        })
    })
}

/// # Safety
/// Nobody else uses the matrix's offsets and columns.
unsafe fn write_pattern<C: Computed>(c: &SparseMatrix, product: &Product<C>) {
    let (base, count) = (c.base.0 as usize, product.len());
    assert!(count <= c.nnz, "more entries than C has places");
    // SAFETY: the caller's promise.
    unsafe {
        if !c.offsets.is_null() {
            index!(c.offset_type, O => product.copy_offsets(base, slice_mut::<O>(c.offsets, c.rows + 1)));
        }
        index!(c.index_type, I => product.copy_indices(base, slice_mut::<I>(c.indices, count)));
    }
}

/// # Safety
/// Nobody else uses the matrix's values.
unsafe fn write_values<C: Computed>(c: &SparseMatrix, product: &Product<C>, (alpha, beta): (C, C)) {
    if c.value_type == C::TYPE && (alpha, beta) == (C::ONE, C::ZERO) {
        // SAFETY: the caller's promise.
        return product.copy_values(unsafe { slice_mut::<C>(c.values, product.len()) });
    }
    let (mut first, bytes) = (0, value_bytes(c.value_type).unwrap_or(1));
    for part in &product.parts {
        let at = in_batch(c.values, first, 1, bytes);
        // SAFETY: as above.
        unsafe { blend(at, c.value_type, column(part.values.len()), &part.values, (alpha, beta)) };
        first += part.values.len();
    }
}

/// # Safety
/// As [`cusparseSpGEMM_workEstimation`].
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseSpGEMMreuse_workEstimation(
    handle: cusparseHandle_t,
    opA: cusparseOperation_t,
    opB: cusparseOperation_t,
    matA: cusparseConstSpMatDescr_t,
    matB: cusparseConstSpMatDescr_t,
    matC: cusparseSpMatDescr_t,
    alg: cusparseSpGEMMAlg_t,
    spgemmDescr: cusparseSpGEMMDescr_t,
    bufferSize1: Out<'_, usize>,
    externalBuffer1: *mut c_void,
) -> Result {
    let context = handle::get(handle)?;
    context.can_compute()?;
    let found = FOUND.get(spgemmDescr)?;
    let three = three([opA, opB], matA, matB, matC, None, alg)?;
    if let Some(hip) = context.hip(true)? {
        let mut bytes = 0;
        let on_hip = products(&found.hip, [opA, opB], &three, alg);
        if on_hip.estimate_reused(&hip, [(&mut bytes, externalBuffer1)])? {
            return estimated(context, &found, &three, bufferSize1, bytes, externalBuffer1);
        }
    }
    if !asks(bufferSize1, externalBuffer1) {
        found.lock().products = Some(context.now((three.a, three.b), count)?);
    }
    Ok(())
}

/// Finds the pattern, and tells the descriptor of C how many entries it has.
///
/// # Safety
/// As [`cusparseSpGEMM_workEstimation`].
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseSpGEMMreuse_nnz(
    handle: cusparseHandle_t,
    opA: cusparseOperation_t,
    opB: cusparseOperation_t,
    matA: cusparseConstSpMatDescr_t,
    matB: cusparseConstSpMatDescr_t,
    matC: cusparseSpMatDescr_t,
    alg: cusparseSpGEMMAlg_t,
    spgemmDescr: cusparseSpGEMMDescr_t,
    bufferSize2: Out<'_, usize>,
    externalBuffer2: *mut c_void,
    bufferSize3: Out<'_, usize>,
    externalBuffer3: *mut c_void,
    bufferSize4: Out<'_, usize>,
    externalBuffer4: *mut c_void,
) -> Result {
    let context = handle::get(handle)?;
    context.can_compute()?;
    let found = FOUND.get(spgemmDescr)?;
    let three = three([opA, opB], matA, matB, matC, None, alg)?;
    if let Some(hip) = context.hip(true)? {
        let [mut bytes2, mut bytes3, mut bytes4] = [0; 3];
        let areas =
            [(&mut bytes2, externalBuffer2), (&mut bytes3, externalBuffer3), (&mut bytes4, externalBuffer4)];
        if let Some(nnz) = products(&found.hip, [opA, opB], &three, alg).pattern(&hip, areas)? {
            if [externalBuffer2, externalBuffer3, externalBuffer4].iter().any(|area| area.is_null()) {
                bufferSize2.write(bytes2.max(SOME));
                bufferSize3.write(bytes3.max(SOME));
                bufferSize4.write(bytes4.max(SOME));
            }
            return SPARSE_MATRICES.change(matC, |c| c.nnz = nnz);
        }
    }
    let asked = [
        asks(bufferSize2, externalBuffer2),
        asks(bufferSize3, externalBuffer3),
        asks(bufferSize4, externalBuffer4),
    ];
    if asked.contains(&true) {
        return Ok(());
    }
    let most = most_entries(&three.c)?;
    let product = context.now((three.a, three.b), |(a, b)| {
        index!(a.index_type, I => index!(b.index_type, J => {
            // SAFETY: as in `count`.
            let (a, b) = unsafe { (pattern_matrix::<I>(&a), pattern_matrix::<J>(&b)) };
            cusparse_cpu::multiply(&a, &b, most)
        }))
    })?;
    let product = product.ok_or(TOO_LARGE)?;
    let nnz = product.len();
    found.lock().product = Some((cudaDataType::CUDA_R_32F, Arc::new(product)));
    SPARSE_MATRICES.change(matC, |c| c.nnz = nnz)
}

/// Writes the pattern to where C lies now.
///
/// # Safety
/// As [`cusparseSpGEMM_workEstimation`].
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseSpGEMMreuse_copy(
    handle: cusparseHandle_t,
    opA: cusparseOperation_t,
    opB: cusparseOperation_t,
    matA: cusparseConstSpMatDescr_t,
    matB: cusparseConstSpMatDescr_t,
    matC: cusparseSpMatDescr_t,
    alg: cusparseSpGEMMAlg_t,
    spgemmDescr: cusparseSpGEMMDescr_t,
    bufferSize5: Out<'_, usize>,
    externalBuffer5: *mut c_void,
) -> Result {
    let context = handle::get(handle)?;
    context.can_compute()?;
    let found = FOUND.get(spgemmDescr)?;
    let three = three([opA, opB], matA, matB, matC, None, alg)?;
    if let Some(hip) = context.hip(true)? {
        let mut bytes = 0;
        let on_hip = products(&found.hip, [opA, opB], &three, alg);
        if on_hip.copy_pattern(&hip, [(&mut bytes, externalBuffer5)])? {
            if externalBuffer5.is_null() {
                bufferSize5.write(bytes.max(SOME));
            }
            return Ok(());
        }
    }
    let c = three.c;
    if asks(bufferSize5, externalBuffer5) {
        return Ok(());
    }
    let product = found.lock().product.clone();
    let (_, product) = product.ok_or(Error::InvalidValue("the pattern was not found"))?;
    check_matrix(&c)?;
    context.enqueue(c, move |c| {
        if let Some(product) = product.downcast_ref::<Product<f32>>() {
            // SAFETY: as in `cusparseSpGEMM_copy`.
            unsafe { write_pattern(&c, product) };
        }
    })
}

/// # Safety
/// As [`cusparseSpGEMM_workEstimation`].
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseSpGEMMreuse_compute(
    handle: cusparseHandle_t,
    opA: cusparseOperation_t,
    opB: cusparseOperation_t,
    alpha: *const c_void,
    matA: cusparseConstSpMatDescr_t,
    matB: cusparseConstSpMatDescr_t,
    beta: *const c_void,
    matC: cusparseSpMatDescr_t,
    computeType: cudaDataType,
    alg: cusparseSpGEMMAlg_t,
    spgemmDescr: cusparseSpGEMMDescr_t,
) -> Result {
    let context = handle::get(handle)?;
    let factors = [alpha, beta];
    // SAFETY: the caller's promise.
    let (alpha, beta) = unsafe { Factor::pair([alpha, beta], computeType, context.on_host()) }?;
    let found = FOUND.get(spgemmDescr)?;
    let is_known = found.lock().product.is_some() || found.hip.lock().is_some();
    require(is_known, "the pattern was not found")?;
    let three = three([opA, opB], matA, matB, matC, Some(computeType), alg)?;
    check_matrix(&three.c)?;
    if let Some(hip) = context.hip(true)? {
        let scale = Scale { factors, compute: computeType };
        if products(&found.hip, [opA, opB], &three, alg).compute_values(&hip, &scale)? {
            return Ok(());
        }
    }
    context.enqueue((three, alpha, beta), move |(Three { a, b, c }, alpha, beta)| {
        compute!(computeType, C => index!(a.index_type, I => index!(b.index_type, J => {
            // SAFETY: as in `cusparseSpGEMM_copy`.
            unsafe {
                let (a, b) = (matrix::<C, I>(&a, 0).0, matrix::<C, J>(&b, 0).0);
                let base = c.base.0 as usize;
                let offsets = offsets(c.offsets, c.rows + 1, c.offset_type, base);
                let sums: Vec<C> = index!(c.index_type, K => {
                    cusparse_cpu::multiply_into(&a, &b, (&offsets, slice::<K>(c.indices, c.nnz), base))
                });
                blend(c.values, c.value_type, column(c.nnz), &sums, (alpha.get(), beta.get()));
            }
        })))
    })
}
