//! Memory management: copies in batches, and copies that say when their source is read. 12 tells which copy failed, 13 does not.

use core::ffi::{c_ulonglong, c_void};
use std::ptr;

use border::OptOut;
use cuda_abi::runtime::{cudaStream_t, v12, v13};
use cuda_abi::{CUDA_MEMCPY3D_BATCH_OP, CUmemcpyAttributes};

use super::memory::address;
use crate::{Result, device, stream};

// The runtime's structures are the driver's under other names; a pointer is an address.
const _: () = {
    assert!(size_of::<v12::cudaMemcpyAttributes>() == size_of::<CUmemcpyAttributes>());
    assert!(size_of::<v13::cudaMemcpyAttributes>() == size_of::<CUmemcpyAttributes>());
    assert!(size_of::<v12::cudaMemcpy3DBatchOp>() == size_of::<CUDA_MEMCPY3D_BATCH_OP>());
    assert!(size_of::<v13::cudaMemcpy3DBatchOp>() == size_of::<CUDA_MEMCPY3D_BATCH_OP>());
};

pub fn cudaMemcpyBatchAsync_v12(
    dsts: *mut *mut c_void,
    srcs: *mut *mut c_void,
    sizes: *mut usize,
    count: usize,
    attrs: *mut v12::cudaMemcpyAttributes,
    attrsIdxs: *mut usize,
    numAttrs: usize,
    failIdx: OptOut<'_, usize>,
    stream: cudaStream_t,
) -> Result {
    let at = failIdx.wanted().map_or(ptr::null_mut(), |at| at.as_ptr());
    let (dsts, srcs, attrs) = (dsts.cast(), srcs.cast(), attrs.cast());
    let stream = stream::meant(stream);
    device::attach()?.cuMemcpyBatchAsync(dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, at, stream)
}

pub fn cudaMemcpyBatchAsync_v13(
    dsts: *const *mut c_void,
    srcs: *const *const c_void,
    sizes: *const usize,
    count: usize,
    attrs: *mut v13::cudaMemcpyAttributes,
    attrsIdxs: *mut usize,
    numAttrs: usize,
    stream: cudaStream_t,
) -> Result {
    // The driver does not write to the lists either.
    let (dsts, srcs, sizes) = (dsts.cast_mut().cast(), srcs.cast_mut().cast(), sizes.cast_mut());
    let stream = stream::meant(stream);
    let driver = device::attach()?;
    driver.cuMemcpyBatchAsync_v2(dsts, srcs, sizes, count, attrs.cast(), attrsIdxs, numAttrs, stream)
}

pub fn cudaMemcpy3DBatchAsync_v12(
    numOps: usize,
    opList: *mut v12::cudaMemcpy3DBatchOp,
    failIdx: OptOut<'_, usize>,
    flags: c_ulonglong,
    stream: cudaStream_t,
) -> Result {
    let at = failIdx.wanted().map_or(ptr::null_mut(), |at| at.as_ptr());
    device::attach()?.cuMemcpy3DBatchAsync(numOps, opList.cast(), at, flags, stream::meant(stream))
}

pub fn cudaMemcpy3DBatchAsync_v13(
    numOps: usize,
    opList: *mut v13::cudaMemcpy3DBatchOp,
    flags: c_ulonglong,
    stream: cudaStream_t,
) -> Result {
    device::attach()?.cuMemcpy3DBatchAsync_v2(numOps, opList.cast(), flags, stream::meant(stream))
}

pub fn cudaMemcpyWithAttributesAsync(
    dst: *mut c_void,
    src: *const c_void,
    size: usize,
    attr: *mut v13::cudaMemcpyAttributes,
    stream: cudaStream_t,
) -> Result {
    let stream = stream::meant(stream);
    device::attach()?.cuMemcpyWithAttributesAsync(address(dst), address(src), size, attr.cast(), stream)
}

pub fn cudaMemcpy3DWithAttributesAsync(
    op: *mut v13::cudaMemcpy3DBatchOp,
    flags: c_ulonglong,
    stream: cudaStream_t,
) -> Result {
    device::attach()?.cuMemcpy3DWithAttributesAsync(op.cast(), flags, stream::meant(stream))
}
