//! Sparse vectors beside dense ones. Source: cuSPARSE manual, "Sparse Vector Operations".

use core::ffi::c_void;

use border::Out;

use crate::descriptor::*;
use crate::error::require;
use crate::handle;
use crate::hip::generic::Vectors;
use crate::memory::*;
use crate::types::*;
use crate::{Error, Result};

/// Both, of which nothing that is followed is NULL.
fn both(x: cusparseSpVecDescr_t, y: cusparseDnVecDescr_t) -> Result<(SparseVector, DenseVector)> {
    let (x, y) = (SPARSE_VECTORS.get(x)?, DENSE_VECTORS.get(y)?);
    require(x.size == y.size, "vectors of different sizes")?;
    check_sparse_vector(&x)?;
    check_dense_vector(&y)?;
    Ok((x, y))
}

fn same_types(x: &SparseVector, y: &DenseVector) -> Result<cudaDataType> {
    require(x.value_type == y.value_type, "vectors of different types")?;
    let is_number = x.value_type != cudaDataType::CUDA_R_8I && x.value_type != cudaDataType::CUDA_R_32I;
    let compute = natural_compute(x.value_type).filter(|_| is_number);
    compute.ok_or(Error::NotSupported("this type of values here"))
}

/// # Safety
/// The arrays are there as the manual says of them: those of the device's until the stream has done the work, those of the host's while
/// the call lasts.
pub unsafe fn cusparseAxpby(
    handle: cusparseHandle_t,
    alpha: *const c_void,
    vecX: cusparseConstSpVecDescr_t,
    beta: *const c_void,
    vecY: cusparseDnVecDescr_t,
) -> Result {
    let context = handle::get(handle)?;
    let (x, y) = both(vecX, vecY)?;
    let compute = same_types(&x, &y)?;
    // Scalars are of the type that is computed with.
    let (alpha_at, beta_at) = (alpha, beta);
    // SAFETY: the caller's promise.
    let (alpha, beta) = unsafe { Factor::pair([alpha, beta], compute, context.on_host()) }?;
    if let Some(hip) = context.hip(true)?
        && (Vectors { x: &x, y: &y }).add(&hip, alpha_at, beta_at)?
    {
        return Ok(());
    }
    context.enqueue((x, y, alpha, beta), move |(x, y, alpha, beta)| {
        element!(x.value_type, E => compute!(compute, C => index!(x.index_type, I => {
            // SAFETY: cuSPARSE's contract: the vectors are there until the stream has come here.
            unsafe {
                let entries = (slice::<I>(x.indices, x.nnz), slice::<E>(x.values, x.nnz), x.base.0 as usize);
                cusparse_cpu::axpby::<C, I, E>((alpha.get(), beta.get()), entries, slice_mut(y.values, y.size));
            }
        })))
    })
}

pub fn cusparseGather(
    handle: cusparseHandle_t,
    vecY: cusparseConstDnVecDescr_t,
    vecX: cusparseSpVecDescr_t,
) -> Result {
    let context = handle::get(handle)?;
    let (x, y) = both(vecX, vecY)?;
    require(x.value_type == y.value_type, "vectors of different types")?;
    if let Some(hip) = context.hip(true)?
        && (Vectors { x: &x, y: &y }).gather(&hip)?
    {
        return Ok(());
    }
    context.enqueue((x, y), |(x, y)| {
        element!(x.value_type, E => index!(x.index_type, I => {
            // SAFETY: as in `cusparseAxpby`.
            unsafe {
                let indices = (slice::<I>(x.indices, x.nnz), x.base.0 as usize);
                cusparse_cpu::gather::<I, E>(slice(y.values, y.size), indices, slice_mut(x.values, x.nnz));
            }
        }))
    })
}

pub fn cusparseScatter(
    handle: cusparseHandle_t,
    vecX: cusparseConstSpVecDescr_t,
    vecY: cusparseDnVecDescr_t,
) -> Result {
    let context = handle::get(handle)?;
    let (x, y) = both(vecX, vecY)?;
    require(x.value_type == y.value_type, "vectors of different types")?;
    if let Some(hip) = context.hip(true)?
        && (Vectors { x: &x, y: &y }).scatter(&hip)?
    {
        return Ok(());
    }
    context.enqueue((x, y), |(x, y)| {
        element!(x.value_type, E => index!(x.index_type, I => {
            // SAFETY: as in `cusparseAxpby`.
            unsafe {
                let entries = (slice::<I>(x.indices, x.nnz), slice::<E>(x.values, x.nnz), x.base.0 as usize);
                cusparse_cpu::scatter(entries, slice_mut(y.values, y.size));
            }
        }))
    })
}

/// # Safety
/// As [`cusparseAxpby`].
pub unsafe fn cusparseRot(
    handle: cusparseHandle_t,
    c_coeff: *const c_void,
    s_coeff: *const c_void,
    vecX: cusparseSpVecDescr_t,
    vecY: cusparseDnVecDescr_t,
) -> Result {
    let context = handle::get(handle)?;
    let (x, y) = both(vecX, vecY)?;
    let compute = same_types(&x, &y)?;
    if compute != x.value_type {
        return Err(Error::NotSupported("rotations of 16-bit values"));
    }
    // SAFETY: the caller's promise.
    let (c, s) = unsafe { Factor::pair([c_coeff, s_coeff], compute, context.on_host()) }?;
    if let Some(hip) = context.hip(true)?
        && (Vectors { x: &x, y: &y }).rotate(&hip, c_coeff, s_coeff)?
    {
        return Ok(());
    }
    context.enqueue((x, y, c, s), |(x, y, c, s)| {
        compute!(x.value_type, C => index!(x.index_type, I => {
            // SAFETY: as in `cusparseAxpby`.
            unsafe {
                let values = slice_mut::<C>(x.values, x.nnz);
                let entries = (slice::<I>(x.indices, x.nnz), values, x.base.0 as usize);
                cusparse_cpu::rotate((c.get(), s.get()), entries, slice_mut(y.values, y.size));
            }
        }))
    })
}

fn check_dot(
    opX: cusparseOperation_t,
    x: &SparseVector,
    y: &DenseVector,
    result: *const c_void,
    computeType: cudaDataType,
) -> Result {
    require(!result.is_null(), "the result is NULL")?;
    let is_complex = matches!(computeType, cudaDataType::CUDA_C_32F | cudaDataType::CUDA_C_64F);
    match opX {
        cusparseOperation_t::CUSPARSE_OPERATION_NON_TRANSPOSE => {}
        cusparseOperation_t::CUSPARSE_OPERATION_CONJUGATE_TRANSPOSE if is_complex => {}
        _ => return Err(Error::NotSupported("this operation on a vector")),
    }
    // The result is of the type that is computed with.
    let types = (x.value_type, y.value_type);
    let go = types_go_together(types, computeType, computeType, false)
        || types_go_together(types, x.value_type, computeType, false);
    if go { Ok(()) } else { Err(Error::NotSupported("these types together")) }
}

pub fn cusparseSpVV_bufferSize(
    handle: cusparseHandle_t,
    opX: cusparseOperation_t,
    vecX: cusparseConstSpVecDescr_t,
    vecY: cusparseConstDnVecDescr_t,
    result: *const c_void,
    computeType: cudaDataType,
    bufferSize: Out<'_, usize>,
) -> Result {
    let context = handle::get(handle)?;
    context.can_compute()?;
    let (x, y) = both(vecX, vecY)?;
    check_dot(opX, &x, &y, result, computeType)?;
    let on_hip = Vectors { x: &x, y: &y };
    let bytes = |hip| on_hip.dot_bytes(&hip, opX, result, computeType);
    bufferSize.write(context.hip(false)?.map_or(Ok(0), bytes)?);
    Ok(())
}

/// With a result on the host the call waits for it, but for one that is captured.
///
/// # Safety
/// As [`cusparseAxpby`].
pub unsafe fn cusparseSpVV(
    handle: cusparseHandle_t,
    opX: cusparseOperation_t,
    vecX: cusparseConstSpVecDescr_t,
    vecY: cusparseConstDnVecDescr_t,
    result: *mut c_void,
    computeType: cudaDataType,
    externalBuffer: *mut c_void,
) -> Result {
    let context = handle::get(handle)?;
    let (x, y) = both(vecX, vecY)?;
    check_dot(opX, &x, &y, result, computeType)?;
    if let Some(hip) = context.hip(true)?
        && (Vectors { x: &x, y: &y }).dot(&hip, opX, result, computeType, externalBuffer)?
    {
        return if context.on_host() { context.deliver() } else { Ok(()) };
    }
    let conjugated = opX == cusparseOperation_t::CUSPARSE_OPERATION_CONJUGATE_TRANSPOSE;
    let to = Factor::to(result, computeType);
    context.enqueue((x, y, to), move |(x, y, to)| {
        compute!(computeType, C => index!(x.index_type, I => {
            // SAFETY: as in `cusparseAxpby`; the result has room for one number of the type.
            unsafe {
                let values = values::<C>(x.values, x.nnz, x.value_type);
                let entries = (slice::<I>(x.indices, x.nnz), &*values, x.base.0 as usize);
                let y = values_of::<C>(&y);
                let sum: C = cusparse_cpu::dot(entries, conjugated, &y);
                to.write::<C>(sum);
            }
        }))
    })?;
    if context.on_host() { context.deliver() } else { Ok(()) }
}

/// # Safety
/// As [`values`].
unsafe fn values_of<'a, C: Computed>(y: &DenseVector) -> std::borrow::Cow<'a, [C]> {
    // SAFETY: the caller's promise.
    unsafe { values(y.values, y.size, y.value_type) }
}
