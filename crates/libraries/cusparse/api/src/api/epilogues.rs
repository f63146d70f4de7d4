//! Products with an operation of the program's own behind them. Source: cusparse.h of CUDA 13.5, the release notes of 13.1 to 13.5,
//! NVIDIA's sample `cuSPARSE/spmvop_csr`.
//!
//! `z = epilogue(alpha · A · x + beta · y)`, where the epilogue comes as LTO IR. Without one it is the identity, and that is what there
//! is here: LTO IR is refused. A plan knows where the matrix lies, and reads its values when it is run, so others may be written there.

use core::ffi::{c_char, c_void};

use border::Out;

use crate::descriptor::*;
use crate::error::require;
use crate::handle;
use crate::memory::*;
use crate::types::*;
use crate::{Error, Result};

/// What a description and the plans of it keep: the matrix as it was described then, and what is computed with.
#[derive(Clone, Copy)]
struct Product {
    a: SparseMatrix,
    compute: cudaDataType,
}

static DESCRIPTIONS: Known<Product> = Known::new();
static PLANS: Known<Product> = Known::new();

/// The matrix and the vectors x, y and z fit. What the vectors' memory is shows only when a plan is run.
fn product(
    opA: cusparseOperation_t,
    matA: cusparseSpMatDescr_t,
    vectors: [cusparseDnVecDescr_t; 3],
    computeType: cudaDataType,
    alg: cusparseSpMVOpAlg_t,
) -> Result<Product> {
    let a = SPARSE_MATRICES.get(matA)?;
    require(alg <= cusparseSpMVOpAlg_t::CUSPARSE_SPMVOP_ALG2, "there is no such algorithm")?;
    let operation = operation(opA)?;
    if operation.transposed {
        return Err(Error::NotSupported("a product with an epilogue of a transposed matrix"));
    }
    if a.format != Format::Csr {
        return Err(Error::NotSupported("a product with an epilogue in this format"));
    }
    let product = Product { a, compute: computeType };
    product.fits(vectors)?;
    check_matrix(&a)?;
    Ok(product)
}

impl Product {
    fn fits(&self, vectors: [cusparseDnVecDescr_t; 3]) -> Result<[DenseVector; 3]> {
        let Product { a, compute } = *self;
        let [x, y, z] = vectors.map(|vector| DENSE_VECTORS.get(vector));
        let (x, y, z) = (x?, y?, z?);
        let fit = x.size == a.cols && y.size == a.rows && z.size == a.rows;
        require(fit, "the vectors' sizes are not the matrix's")?;
        let is_one = [x, y, z].iter().all(|vector| vector.value_type == a.value_type);
        if !is_one || !types_go_together((a.value_type, x.value_type), z.value_type, compute, false) {
            return Err(Error::NotSupported("these types together"));
        }
        Ok([x, y, z])
    }
}

/// No work area is used.
#[expect(clippy::too_many_arguments, reason = "C's")]
pub fn cusparseSpMVOp_bufferSize(
    handle: cusparseHandle_t,
    opA: cusparseOperation_t,
    matA: cusparseConstSpMatDescr_t,
    vecX: cusparseConstDnVecDescr_t,
    vecY: cusparseDnVecDescr_t,
    vecZ: cusparseDnVecDescr_t,
    computeType: cudaDataType,
    alg: cusparseSpMVOpAlg_t,
    bufferSize: Out<'_, usize>,
) -> Result {
    handle::get(handle)?.can_compute()?;
    product(opA, matA, [vecX, vecY, vecZ], computeType, alg)?;
    bufferSize.write(0);
    Ok(())
}

#[expect(clippy::too_many_arguments, reason = "C's")]
pub fn cusparseSpMVOp_createDescr(
    handle: cusparseHandle_t,
    desc: Out<'_, cusparseSpMVOpDescr_t>,
    opA: cusparseOperation_t,
    matA: cusparseConstSpMatDescr_t,
    vecX: cusparseConstDnVecDescr_t,
    vecY: cusparseDnVecDescr_t,
    vecZ: cusparseDnVecDescr_t,
    computeType: cudaDataType,
    alg: cusparseSpMVOpAlg_t,
    _buffer: *mut c_void,
) -> Result {
    handle::get(handle)?.can_compute()?;
    desc.write(DESCRIPTIONS.add(product(opA, matA, [vecX, vecY, vecZ], computeType, alg)?));
    Ok(())
}

pub fn cusparseSpMVOp_destroyDescr(desc: cusparseSpMVOpDescr_t) -> Result {
    DESCRIPTIONS.remove(desc)
}

/// # Safety
/// The arrays are there as the manual says of them: those of the device's until the stream has done the work, those of the host's while
/// the call lasts.
pub unsafe fn cusparseSpMVOp_createPlan(
    handle: cusparseHandle_t,
    desc: cusparseSpMVOpDescr_t,
    plan: Out<'_, cusparseSpMVOpPlan_t>,
    code: *const c_void,
    codeSize: usize,
) -> Result {
    handle::get(handle)?.can_compute()?;
    let product = DESCRIPTIONS.get(desc)?;
    require(code.is_null() == (codeSize == 0), "code without a size, or a size without code")?;
    if !code.is_null() {
        return Err(Error::NotSupported("an epilogue in LTO IR"));
    }
    plan.write(PLANS.add(product));
    Ok(())
}

pub fn cusparseSpMVOp_destroyPlan(plan: cusparseSpMVOpPlan_t) -> Result {
    PLANS.remove(plan)
}

/// No epilogue has variables here.
pub fn cusparseSpMVOp_setGlobalUserData(
    handle: cusparseHandle_t,
    plan: cusparseSpMVOpPlan_t,
    _global_data_name: *const c_char,
    _input_data: *mut c_void,
    _data_size: usize,
) -> Result {
    handle::get(handle)?.can_compute()?;
    PLANS.get(plan)?;
    Err(Error::InvalidValue("the plan's epilogue has no such variable"))
}

/// `z` may be `y`.
///
/// # Safety
/// As [`cusparseSpMVOp_createPlan`].
pub unsafe fn cusparseSpMVOp(
    handle: cusparseHandle_t,
    plan: cusparseSpMVOpPlan_t,
    alpha: *const c_void,
    beta: *const c_void,
    vecX: cusparseConstDnVecDescr_t,
    vecY: cusparseConstDnVecDescr_t,
    vecZ: cusparseDnVecDescr_t,
) -> Result {
    let context = handle::get(handle)?;
    let product = PLANS.get(plan)?;
    let vectors = product.fits([vecX, vecY, vecZ])?;
    vectors.iter().try_for_each(check_dense_vector)?;
    // SAFETY: the caller's promise.
    let (alpha, beta) = unsafe { Factor::pair([alpha, beta], product.compute, context.on_host()) }?;
    context.enqueue((product.a, (vectors, alpha, beta)), move |(a, ([x, y, z], alpha, beta))| {
        compute!(product.compute, C => index!(a.index_type, I => {
            // SAFETY: cuSPARSE's contract: what the descriptors say is there until the stream has come here, and z is y or apart from it.
            unsafe {
                if z.values != y.values {
                    slice_mut::<C>(z.values, z.size).copy_from_slice(slice(y.values, y.size));
                }
                let (a, _) = matrix::<C, I>(&a, 0);
                let x = values::<C>(x.values, x.size, x.value_type);
                multiply(&a, cusparse_cpu::Operation::default(), &x, (alpha.get(), beta.get()), &z);
            }
        }))
    })
}
