//! Generic calls of CUDA 11 alone. Source: its manual, `cusparseConstrainedGeMM`, `cusparseCsrmvEx`.

use core::ffi::{c_int, c_void};

use border::Out;

use super::products::{Vectors, cusparseSDDMM, cusparseSDDMM_bufferSize, multiply_vector};
use crate::bare::general;
use crate::descriptor::*;
use crate::error::require;
use crate::handle;
use crate::memory::*;
use crate::types::*;
use crate::{Error, Result};

const DEFAULT: cusparseSDDMMAlg_t = cusparseSDDMMAlg_t::CUSPARSE_SDDMM_ALG_DEFAULT;

/// What is `cusparseSDDMM` since 11.2.
#[expect(clippy::too_many_arguments, reason = "C's")]
pub fn cusparseConstrainedGeMM_bufferSize(
    handle: cusparseHandle_t,
    opA: cusparseOperation_t,
    opB: cusparseOperation_t,
    alpha: *const c_void,
    matA: cusparseDnMatDescr_t,
    matB: cusparseDnMatDescr_t,
    beta: *const c_void,
    matC: cusparseSpMatDescr_t,
    computeType: cudaDataType,
    bufferSize: Out<'_, usize>,
) -> Result {
    cusparseSDDMM_bufferSize(
        handle,
        opA,
        opB,
        alpha,
        matA,
        matB,
        beta,
        matC,
        computeType,
        DEFAULT,
        bufferSize,
    )
}

/// # Safety
/// The arrays are there as the manual says of them: those of the device's until the stream has done the work, those of the host's while
/// the call lasts.
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseConstrainedGeMM(
    handle: cusparseHandle_t,
    opA: cusparseOperation_t,
    opB: cusparseOperation_t,
    alpha: *const c_void,
    matA: cusparseDnMatDescr_t,
    matB: cusparseDnMatDescr_t,
    beta: *const c_void,
    matC: cusparseSpMatDescr_t,
    computeType: cudaDataType,
    externalBuffer: *mut c_void,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe {
        cusparseSDDMM(handle, opA, opB, alpha, matA, matB, beta, matC, computeType, DEFAULT, externalBuffer)
    }
}

/// Matrix, vectors, and both factors.
type Product = (Vectors, [Factor; 2]);

/// # Safety
/// As [`cusparseConstrainedGeMM`].
#[expect(clippy::too_many_arguments, reason = "C's")]
unsafe fn product(
    context: &handle::Context,
    alg: cusparseAlgMode_t,
    transA: cusparseOperation_t,
    (m, n, nnz): (c_int, c_int, c_int),
    (alpha, alphatype): (*const c_void, cudaDataType),
    descrA: cusparseMatDescr_t,
    (values, csrValAtype, offsets, indices): (*const c_void, cudaDataType, *const c_int, *const c_int),
    (x, xtype): (*const c_void, cudaDataType),
    (beta, betatype): (*const c_void, cudaDataType),
    (y, ytype): (*mut c_void, cudaDataType),
    executiontype: cudaDataType,
) -> Result<Product> {
    require(alg == cusparseAlgMode_t::CUSPARSE_ALG_MERGE_PATH, "there is no such algorithm")?;
    for ty in [csrValAtype, xtype, ytype, executiontype] {
        check_value(ty)?;
    }
    let go_together = types_go_together((csrValAtype, xtype), ytype, executiontype, false);
    if !go_together || alphatype != executiontype || betatype != executiontype {
        return Err(Error::NotSupported("these types together"));
    }
    let a = SparseMatrix {
        offsets: offsets.cast_mut().cast(),
        indices: indices.cast_mut().cast(),
        values: values.cast_mut(),
        base: general(descrA)?.base,
        value_type: csrValAtype,
        ..SparseMatrix::new(Format::Csr, (m.into(), n.into(), nnz.into()))?
    };
    let (rows, cols) = operation(transA)?.size(a.rows, a.cols);
    let x = DenseVector { size: cols, values: x.cast_mut(), value_type: xtype };
    let y = DenseVector { size: rows, values: y, value_type: ytype };
    check_matrix(&a)?;
    check_dense_vector(&x)?;
    check_dense_vector(&y)?;
    // SAFETY: the caller's promise.
    let factors = unsafe { Factor::pair([alpha, beta], executiontype, context.on_host()) }?;
    Ok((Vectors { a, x, y }, factors.into()))
}

/// # Safety
/// As [`cusparseConstrainedGeMM`].
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseCsrmvEx_bufferSize(
    handle: cusparseHandle_t,
    alg: cusparseAlgMode_t,
    transA: cusparseOperation_t,
    m: c_int,
    n: c_int,
    nnz: c_int,
    alpha: *const c_void,
    alphatype: cudaDataType,
    descrA: cusparseMatDescr_t,
    csrValA: *const c_void,
    csrValAtype: cudaDataType,
    csrRowPtrA: *const c_int,
    csrColIndA: *const c_int,
    x: *const c_void,
    xtype: cudaDataType,
    beta: *const c_void,
    betatype: cudaDataType,
    y: *mut c_void,
    ytype: cudaDataType,
    executiontype: cudaDataType,
    bufferSizeInBytes: Out<'_, usize>,
) -> Result {
    let context = handle::get(handle)?;
    context.can_compute()?;
    let arrays = (csrValA, csrValAtype, csrRowPtrA, csrColIndA);
    // SAFETY: the caller's promise.
    unsafe {
        product(
            &context,
            alg,
            transA,
            (m, n, nnz),
            (alpha, alphatype),
            descrA,
            arrays,
            (x, xtype),
            (beta, betatype),
            (y, ytype),
            executiontype,
        )
    }?;
    bufferSizeInBytes.write(0);
    Ok(())
}

/// # Safety
/// As [`cusparseConstrainedGeMM`].
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseCsrmvEx(
    handle: cusparseHandle_t,
    alg: cusparseAlgMode_t,
    transA: cusparseOperation_t,
    m: c_int,
    n: c_int,
    nnz: c_int,
    alpha: *const c_void,
    alphatype: cudaDataType,
    descrA: cusparseMatDescr_t,
    csrValA: *const c_void,
    csrValAtype: cudaDataType,
    csrRowPtrA: *const c_int,
    csrColIndA: *const c_int,
    x: *const c_void,
    xtype: cudaDataType,
    beta: *const c_void,
    betatype: cudaDataType,
    y: *mut c_void,
    ytype: cudaDataType,
    executiontype: cudaDataType,
    _buffer: *mut c_void,
) -> Result {
    let context = handle::get(handle)?;
    let arrays = (csrValA, csrValAtype, csrRowPtrA, csrColIndA);
    // SAFETY: the caller's promise.
    let (vectors, factors) = unsafe {
        product(
            &context,
            alg,
            transA,
            (m, n, nnz),
            (alpha, alphatype),
            descrA,
            arrays,
            (x, xtype),
            (beta, betatype),
            (y, ytype),
            executiontype,
        )
    }?;
    multiply_vector(&context, vectors, operation(transA)?, factors, executiontype)
}
