//! Descriptors of tensors and filters. Source: cuDNN manual, "cudnn_ops library", tensors.

use core::ffi::c_int;

use border::{OptOut, Out};

use crate::error::{require, supports};
use crate::tensor::{FILTERS, Filter, MOST, TENSORS, Tensor, give, list};
use crate::types::*;
use crate::{Error, Result};

pub fn cudnnCreateTensorDescriptor(descriptor: Out<'_, cudnnTensorDescriptor_t>) -> Result {
    descriptor.write(TENSORS.add());
    Ok(())
}

pub fn cudnnDestroyTensorDescriptor(descriptor: cudnnTensorDescriptor_t) -> Result {
    TENSORS.remove(descriptor)
}
pub fn cudnnCreateFilterDescriptor(descriptor: Out<'_, cudnnFilterDescriptor_t>) -> Result {
    descriptor.write(FILTERS.add());
    Ok(())
}

pub fn cudnnDestroyFilterDescriptor(descriptor: cudnnFilterDescriptor_t) -> Result {
    FILTERS.remove(descriptor)
}

pub fn cudnnSetTensor4dDescriptor(
    tensorDesc: cudnnTensorDescriptor_t,
    format: cudnnTensorFormat_t,
    dataType: cudnnDataType_t,
    n: c_int,
    c: c_int,
    h: c_int,
    w: c_int,
) -> Result {
    TENSORS.get(tensorDesc)?;
    TENSORS.set(tensorDesc, Tensor::of_format(format, dataType, &[n, c, h, w])?)
}

pub fn cudnnSetTensor4dDescriptorEx(
    tensorDesc: cudnnTensorDescriptor_t,
    dataType: cudnnDataType_t,
    n: c_int,
    c: c_int,
    h: c_int,
    w: c_int,
    nStride: c_int,
    cStride: c_int,
    hStride: c_int,
    wStride: c_int,
) -> Result {
    TENSORS.get(tensorDesc)?;
    let strides = [nStride, cStride, hStride, wStride];
    TENSORS.set(tensorDesc, Tensor::of_strides(dataType, &[n, c, h, w], &strides)?)
}

/// The strides of a vectorised tensor are counted in vectors. What was not set is zeros.
pub fn cudnnGetTensor4dDescriptor(
    tensorDesc: cudnnTensorDescriptor_t,
    dataType: OptOut<'_, cudnnDataType_t>,
    n: OptOut<'_, c_int>,
    c: OptOut<'_, c_int>,
    h: OptOut<'_, c_int>,
    w: OptOut<'_, c_int>,
    nStride: OptOut<'_, c_int>,
    cStride: OptOut<'_, c_int>,
    hStride: OptOut<'_, c_int>,
    wStride: OptOut<'_, c_int>,
) -> Result {
    let tensor = TENSORS.get(tensorDesc)?;
    require(matches!(tensor.sizes.len(), 0 | 4), "the tensor has not four sizes")?;
    dataType.write(tensor.kind);
    let number = |of: &[c_int], at: usize| of.get(at).copied().unwrap_or(0);
    for (at, (size, stride)) in
        [(n, nStride), (c, cStride), (h, hStride), (w, wStride)].into_iter().enumerate()
    {
        size.write(number(&tensor.sizes, at));
        stride.write(number(&tensor.strides, at));
    }
    Ok(())
}

/// Two to eight sizes.
fn n_sizes(nbDims: c_int) -> Result {
    require(nbDims >= 2, "a tensor has at least two sizes")?;
    supports(nbDims <= MOST as c_int, "a tensor of more than eight sizes")
}

/// # Safety
/// The memory is there as the manual says of it: the device's until the stream has done the work, the host's while the call lasts.
pub unsafe fn cudnnSetTensorNdDescriptor(
    tensorDesc: cudnnTensorDescriptor_t,
    dataType: cudnnDataType_t,
    nbDims: c_int,
    dimA: *const c_int,
    strideA: *const c_int,
) -> Result {
    TENSORS.get(tensorDesc)?;
    n_sizes(nbDims)?;
    // SAFETY: the caller's promise.
    let tensor =
        Tensor::of_strides(dataType, unsafe { list(dimA, nbDims) }?, unsafe { list(strideA, nbDims) }?)?;
    TENSORS.set(tensorDesc, tensor)
}

/// # Safety
/// As [`cudnnSetTensorNdDescriptor`].
pub unsafe fn cudnnSetTensorNdDescriptorEx(
    tensorDesc: cudnnTensorDescriptor_t,
    format: cudnnTensorFormat_t,
    dataType: cudnnDataType_t,
    nbDims: c_int,
    dimA: *const c_int,
) -> Result {
    TENSORS.get(tensorDesc)?;
    n_sizes(nbDims)?;
    // SAFETY: the caller's promise.
    TENSORS.set(tensorDesc, Tensor::of_format(format, dataType, unsafe { list(dimA, nbDims) }?)?)
}

/// # Safety
/// As [`cudnnSetTensorNdDescriptor`].
pub unsafe fn cudnnGetTensorNdDescriptor(
    tensorDesc: cudnnTensorDescriptor_t,
    nbDimsRequested: c_int,
    dataType: OptOut<'_, cudnnDataType_t>,
    nbDims: OptOut<'_, c_int>,
    dimA: *mut c_int,
    strideA: *mut c_int,
) -> Result {
    let tensor = TENSORS.get(tensorDesc)?;
    dataType.write(tensor.kind);
    nbDims.write(tensor.sizes.len() as c_int);
    for (to, numbers) in [(dimA, &tensor.sizes), (strideA, &tensor.strides)] {
        if !to.is_null() {
            // SAFETY: the caller's promise.
            unsafe { give(to, nbDimsRequested, numbers) }?;
        }
    }
    Ok(())
}

pub fn cudnnGetTensorSizeInBytes(tensorDesc: cudnnTensorDescriptor_t, size: Out<'_, usize>) -> Result {
    size.write(TENSORS.get(tensorDesc)?.bytes()?);
    Ok(())
}

pub fn cudnnSetFilter4dDescriptor(
    filterDesc: cudnnFilterDescriptor_t,
    dataType: cudnnDataType_t,
    format: cudnnTensorFormat_t,
    k: c_int,
    c: c_int,
    h: c_int,
    w: c_int,
) -> Result {
    FILTERS.get(filterDesc)?;
    FILTERS.set(filterDesc, Filter::new(dataType, format, &[k, c, h, w])?)
}

pub fn cudnnGetFilter4dDescriptor(
    filterDesc: cudnnFilterDescriptor_t,
    dataType: OptOut<'_, cudnnDataType_t>,
    format: OptOut<'_, cudnnTensorFormat_t>,
    k: OptOut<'_, c_int>,
    c: OptOut<'_, c_int>,
    h: OptOut<'_, c_int>,
    w: OptOut<'_, c_int>,
) -> Result {
    let filter = FILTERS.get(filterDesc)?;
    require(matches!(filter.sizes.len(), 0 | 4), "the filter has not four sizes")?;
    dataType.write(filter.kind);
    format.write(filter.format);
    for (at, to) in [k, c, h, w].into_iter().enumerate() {
        to.write(filter.sizes.get(at).copied().unwrap_or(0));
    }
    Ok(())
}

/// Three to eight sizes.
///
/// # Safety
/// As [`cudnnSetTensorNdDescriptor`].
pub unsafe fn cudnnSetFilterNdDescriptor(
    filterDesc: cudnnFilterDescriptor_t,
    dataType: cudnnDataType_t,
    format: cudnnTensorFormat_t,
    nbDims: c_int,
    filterDimA: *const c_int,
) -> Result {
    FILTERS.get(filterDesc)?;
    require(nbDims >= 3, "a filter has at least three sizes")?;
    supports(nbDims <= MOST as c_int, "a filter of more than eight sizes")?;
    // SAFETY: the caller's promise.
    FILTERS.set(filterDesc, Filter::new(dataType, format, unsafe { list(filterDimA, nbDims) }?)?)
}

/// # Safety
/// As [`cudnnSetTensorNdDescriptor`].
pub unsafe fn cudnnGetFilterNdDescriptor(
    filterDesc: cudnnFilterDescriptor_t,
    nbDimsRequested: c_int,
    dataType: OptOut<'_, cudnnDataType_t>,
    format: OptOut<'_, cudnnTensorFormat_t>,
    nbDims: OptOut<'_, c_int>,
    filterDimA: *mut c_int,
) -> Result {
    let filter = FILTERS.get(filterDesc)?;
    dataType.write(filter.kind);
    format.write(filter.format);
    nbDims.write(filter.sizes.len() as c_int);
    if filterDimA.is_null() {
        return Err(Error::BadParam("filterDimA"));
    }
    // SAFETY: the caller's promise.
    unsafe { give(filterDimA, nbDimsRequested, &filter.sizes) }
}

pub fn cudnnGetFilterSizeInBytes(filterDesc: cudnnFilterDescriptor_t, size: Out<'_, usize>) -> Result {
    size.write(FILTERS.get(filterDesc)?.bytes()?);
    Ok(())
}
