//! Sums of sparse matrices. Source: cuSPARSE manual, `cusparseSpGEAM`.
//!
//! The rule: the call that counts waits for the stream, because the descriptor of C knows its size afterwards. A matrix whose factor is 0
//! is not in the sum.

use core::ffi::c_void;

use border::Out;
use cusparse_cpu::{Operation, Product};

use super::conversion::SOME;
use super::sums::{Term, sum};
use crate::descriptor::*;
use crate::error::require;
use crate::handle;
use crate::memory::*;
use crate::types::*;
use crate::{Error, Result};

static DESCRIPTORS: Descriptors<()> = Descriptors::new();

pub fn cusparseSpGEAM_createDescr(descr: Out<'_, cusparseSpGEAMDescr_t>) -> Result {
    descr.write(DESCRIPTORS.add(()));
    Ok(())
}

pub fn cusparseSpGEAM_destroyDescr(descr: cusparseSpGEAMDescr_t) -> Result {
    DESCRIPTORS.remove(descr)
}

#[derive(Clone, Copy)]
struct Three {
    matrices: [SparseMatrix; 2],
    operations: [(bool, bool); 2],
    factors: [Factor; 2],
    c: SparseMatrix,
    compute: cudaDataType,
}

kit::addresses! { Three { matrices, factors, c } }

/// # Safety
/// As [`Factor::new`].
unsafe fn three(
    context: &handle::Context,
    operations: [cusparseOperation_t; 2],
    factors: [*const c_void; 2],
    matrices: [cusparseSpMatDescr_t; 2],
    matC: cusparseSpMatDescr_t,
    (compute, alg): (cudaDataType, cusparseSpGEAMAlg_t),
) -> Result<Three> {
    let [a, b] = [SPARSE_MATRICES.get(matrices[0])?, SPARSE_MATRICES.get(matrices[1])?];
    let c = SPARSE_MATRICES.get(matC)?;
    require(alg <= cusparseSpGEAMAlg_t::CUSPARSE_SPGEAM_ALG1, "there is no such algorithm")?;
    let operations = [operation(operations[0])?, operation(operations[1])?];
    for (one, operation) in [&a, &b, &c].into_iter().zip([operations[0], operations[1], Operation::default()])
    {
        require(operation.size(one.rows, one.cols) == (c.rows, c.cols), "the matrices' sizes do not fit")?;
        if one.format != Format::Csr || one.batches > 1 {
            return Err(Error::NotSupported("sums of batches or in other formats than CSR"));
        }
        if one.value_type != compute || compute == cudaDataType::CUDA_R_32I {
            return Err(Error::NotSupported("these types together"));
        }
        if one.index_type != c.index_type || one.offset_type != c.offset_type {
            return Err(Error::NotSupported("indices of different types"));
        }
    }
    if !types_go_together((compute, compute), compute, compute, false) {
        return Err(Error::NotSupported("sums of this type"));
    }
    check_matrix(&a)?;
    check_matrix(&b)?;
    // SAFETY: the caller's promise.
    let factors = unsafe { Factor::pair(factors, compute, context.on_host()) }?;
    Ok(Three {
        matrices: [a, b],
        operations: operations.map(|it| (it.transposed, it.conjugated)),
        factors: factors.into(),
        c,
        compute,
    })
}

impl Three {
    /// # Safety
    /// What the descriptors of A and B say is there, and nobody writes to it.
    unsafe fn sum<C: Computed, I: cusparse_cpu::Index>(&self) -> Product<C> {
        let mut terms = Vec::new();
        for ((a, factor), (transposed, conjugated)) in
            self.matrices.iter().zip(&self.factors).zip(self.operations)
        {
            // SAFETY: the caller's promise.
            let (factor, (a, _)) = unsafe { (factor.get::<C>(), matrix::<C, I>(a, 0)) };
            if factor == C::ZERO {
                continue;
            }
            terms.push(match transposed {
                true => Term::scaled(factor, a.transposed(), conjugated),
                false => Term::scaled(factor, a, conjugated),
            });
        }
        sum((self.c.rows, self.c.cols), &terms)
    }
}

/// # Safety
/// As [`cusparseSpGEAM_nnz`].
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseSpGEAM_bufferSize(
    handle: cusparseHandle_t,
    opA: cusparseOperation_t,
    opB: cusparseOperation_t,
    alpha: *const c_void,
    matA: cusparseSpMatDescr_t,
    beta: *const c_void,
    matB: cusparseSpMatDescr_t,
    matC: cusparseSpMatDescr_t,
    computeType: cudaDataType,
    alg: cusparseSpGEAMAlg_t,
    spgeamDescr: cusparseSpGEAMDescr_t,
    bufferSize: Out<'_, usize>,
) -> Result {
    let context = handle::get(handle)?;
    context.can_compute()?;
    DESCRIPTORS.get(spgeamDescr)?;
    // SAFETY: the caller's promise.
    unsafe { three(&context, [opA, opB], [alpha, beta], [matA, matB], matC, (computeType, alg)) }?;
    bufferSize.write(SOME);
    Ok(())
}

/// Offsets of C, and how many entries it has.
///
/// # Safety
/// The arrays are there as the manual says of them: those of the device's until the stream has done the work, those of the host's while
/// the call lasts.
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseSpGEAM_nnz(
    handle: cusparseHandle_t,
    opA: cusparseOperation_t,
    opB: cusparseOperation_t,
    alpha: *const c_void,
    matA: cusparseSpMatDescr_t,
    beta: *const c_void,
    matB: cusparseSpMatDescr_t,
    matC: cusparseSpMatDescr_t,
    computeType: cudaDataType,
    alg: cusparseSpGEAMAlg_t,
    spgeamDescr: cusparseSpGEAMDescr_t,
    _externalBuffer: *mut c_void,
) -> Result {
    let context = handle::get(handle)?;
    DESCRIPTORS.get(spgeamDescr)?;
    // SAFETY: the caller's promise.
    let three =
        unsafe { three(&context, [opA, opB], [alpha, beta], [matA, matB], matC, (computeType, alg)) }?;
    let c = three.c;
    index!(c.offset_type, O => check_array(c.offsets, c.rows + 1, align_of::<O>()))?;
    let nnz = context.now(three, |three| {
        let c = three.c;
        compute!(computeType, C => index!(c.index_type, I => index!(c.offset_type, O => {
            // SAFETY: cuSPARSE's contract: what the descriptors say is there; the stream has nothing to do any more.
            unsafe {
                let sum = three.sum::<C, I>();
                sum.copy_offsets(c.base.0 as usize, slice_mut::<O>(c.offsets, c.rows + 1));
                sum.len()
            }
        })))
    })?;
    SPARSE_MATRICES.change(matC, |matrix| matrix.nnz = nnz)
}

/// Columns and values of C. What is behind its last entry is not written.
///
/// # Safety
/// As [`cusparseSpGEAM_nnz`].
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseSpGEAM(
    handle: cusparseHandle_t,
    opA: cusparseOperation_t,
    opB: cusparseOperation_t,
    alpha: *const c_void,
    matA: cusparseSpMatDescr_t,
    beta: *const c_void,
    matB: cusparseSpMatDescr_t,
    matC: cusparseSpMatDescr_t,
    computeType: cudaDataType,
    alg: cusparseSpGEAMAlg_t,
    spgeamDescr: cusparseSpGEAMDescr_t,
    _externalBuffer: *mut c_void,
) -> Result {
    let context = handle::get(handle)?;
    DESCRIPTORS.get(spgeamDescr)?;
    // SAFETY: the caller's promise.
    let three =
        unsafe { three(&context, [opA, opB], [alpha, beta], [matA, matB], matC, (computeType, alg)) }?;
    check_matrix(&three.c)?;
    context.enqueue(three, |three| {
        let c = three.c;
        compute!(three.compute, C => index!(c.index_type, I => {
            // SAFETY: cuSPARSE's contract: what the descriptors say is there until the stream has come here.
            unsafe {
                let sum = three.sum::<C, I>();
                assert!(sum.len() <= c.nnz, "more entries than C has places");
                sum.copy_indices(c.base.0 as usize, slice_mut::<I>(c.indices, sum.len()));
                sum.copy_values(slice_mut::<C>(c.values, sum.len()));
            }
        }))
    })
}
