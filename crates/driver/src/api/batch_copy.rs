//! Memory Management: copies in batches, and copies that say when their source is read.

use core::ffi::c_ulonglong;
use std::sync::Arc;

use border::OptOut;
use cuda_abi::{
    CU_STREAM_LEGACY, CUDA_MEMCPY_BATCH_NODE_PARAMS, CUDA_MEMCPY3D, CUDA_MEMCPY3D_BATCH_OP, CUarray,
    CUdeviceptr, CUextent3D, CUmemcpy3DOperand, CUmemcpy3DOperandType, CUmemcpyAttributes,
    CUmemcpySrcAccessOrder, CUmemorytype, CUstream, CUstreamCaptureStatus,
};

use super::copy::{cuMemcpyAsync, enqueue};
use super::graph_node::named;
use crate::object::Stream;
use crate::object::array::Array;
use crate::object::graph::capture::{self, captured};
use crate::object::graph::{Batch, Op, Params};
use crate::{Error, Result};

/// A batch that failed: which copy, and why; no copy means the batch as a whole.
type Failure = (usize, Error);

const WHOLE: usize = usize::MAX;

fn of_batch(error: Error) -> Failure {
    (WHOLE, error)
}

/// CUDA: the legacy default stream takes no batches.
fn check_stream(stream: CUstream) -> Result {
    if stream == CU_STREAM_LEGACY || (stream.is_null() && !crate::object::stream::null_is_per_thread()) {
        return Err(Error::InvalidValue("hStream"));
    }
    Stream::from_handle(stream).map(|_| ())
}

fn check_order(order: CUmemcpySrcAccessOrder) -> Result {
    match order {
        CUmemcpySrcAccessOrder::CU_MEMCPY_SRC_ACCESS_ORDER_STREAM
        | CUmemcpySrcAccessOrder::CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL
        | CUmemcpySrcAccessOrder::CU_MEMCPY_SRC_ACCESS_ORDER_ANY => Ok(()),
        _ => Err(Error::InvalidValue("srcAccessOrder")),
    }
}

/// A source that is gone when the call returns has been read by then. In a capture the copy comes later anyway.
fn finish(stream: CUstream, is_during_call: bool) -> Result {
    let is_captured = || {
        capture::info(stream).map(|info| info.status != CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE)
    };
    if !is_during_call || is_captured()? {
        return Ok(());
    }
    Stream::from_handle(stream)?.synchronize()
}

fn is_during_call(order: CUmemcpySrcAccessOrder) -> bool {
    order == CUmemcpySrcAccessOrder::CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL
}

/// What is said of the parts of a batch of `count` operations, and where each part begins.
///
/// # Safety
/// Both arrays have `n` entries, unless they are NULL.
pub(super) unsafe fn entries<'a, T>(
    entries: *const T,
    firsts: *const usize,
    n: usize,
    count: usize,
    (arrays, indices): (&'static str, &'static str),
) -> Result<(&'a [T], &'a [usize])> {
    // CUDA: something is said of every operation, so there is at least one entry, and at most one for each.
    if entries.is_null() || firsts.is_null() || n == 0 || n > count {
        return Err(Error::InvalidValue(arrays));
    }
    // SAFETY: the caller's promise.
    let (entries, firsts) =
        unsafe { (core::slice::from_raw_parts(entries, n), core::slice::from_raw_parts(firsts, n)) };
    // CUDA: the first entry begins with operation 0, each later one behind the one before it.
    if firsts[0] != 0 || !firsts.is_sorted_by(|a, b| a < b) || firsts[n - 1] >= count {
        return Err(Error::InvalidValue(indices));
    }
    Ok((entries, firsts))
}

/// The attributes of a batch of `count` copies: whether any source is read during the call.
///
/// # Safety
/// Both arrays are NULL, or have `n_attrs` elements.
unsafe fn attributes(
    attrs: *const CUmemcpyAttributes,
    firsts: *const usize,
    n_attrs: usize,
    count: usize,
) -> Result<bool> {
    // SAFETY: the caller's promise: `n_attrs` entries in each array.
    let (attrs, _) =
        unsafe { entries(attrs, firsts, n_attrs, count, ("attrs, attrsIdxs or numAttrs", "attrsIdxs")) }?;
    attrs.iter().try_for_each(|entry| check_order(entry.srcAccessOrder))?;
    Ok(attrs.iter().any(|entry| is_during_call(entry.srcAccessOrder)))
}

/// The copies of a batch keep no order among each other; one after the other is such an order.
///
/// # Safety
/// The arrays have `count` elements.
unsafe fn batch(
    targets: *const CUdeviceptr,
    sources: *const CUdeviceptr,
    sizes: *const usize,
    count: usize,
    is_during_call: bool,
    stream: CUstream,
) -> core::result::Result<(), Failure> {
    for index in 0..count {
        // SAFETY: the caller's promise: `count` entries in each array.
        let (target, source, size) = unsafe { (*targets.add(index), *sources.add(index), *sizes.add(index)) };
        cuMemcpyAsync(target, source, size, stream).map_err(|error| (index, error))?;
    }
    finish(stream, is_during_call).map_err(of_batch)
}

fn check_batch(
    targets: *const CUdeviceptr,
    sources: *const CUdeviceptr,
    sizes: *const usize,
    count: usize,
    stream: CUstream,
) -> Result {
    if targets.is_null() || sources.is_null() || sizes.is_null() || count == 0 {
        return Err(Error::InvalidValue("dsts, srcs, sizes or count"));
    }
    check_stream(stream)
}

/// # Safety
/// The arrays are NULL, or have `count` elements, those about attributes `numAttrs`.
pub unsafe fn cuMemcpyBatchAsync_v2(
    dsts: *mut CUdeviceptr,
    srcs: *mut CUdeviceptr,
    sizes: *mut usize,
    count: usize,
    attrs: *mut CUmemcpyAttributes,
    attrsIdxs: *mut usize,
    numAttrs: usize,
    hStream: CUstream,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { cuMemcpyBatchAsync(dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, None.into(), hStream) }
}

/// CUDA: `failIdx` is the copy that is wrong, or the largest number if the batch as a whole is.
///
/// # Safety
/// The arrays are NULL, or have `count` elements, those about attributes `numAttrs`.
pub unsafe fn cuMemcpyBatchAsync(
    dsts: *mut CUdeviceptr,
    srcs: *mut CUdeviceptr,
    sizes: *mut usize,
    count: usize,
    attrs: *mut CUmemcpyAttributes,
    attrsIdxs: *mut usize,
    numAttrs: usize,
    failIdx: OptOut<'_, usize>,
    hStream: CUstream,
) -> Result {
    let answer = check_batch(dsts, srcs, sizes, count, hStream)
        // SAFETY: the caller's promise.
        .and_then(|()| unsafe { attributes(attrs, attrsIdxs, numAttrs, count) })
        .map_err(of_batch)
        .and_then(|is_during_call| {
            let params = CUDA_MEMCPY_BATCH_NODE_PARAMS {
                count,
                dsts,
                srcs,
                sizes,
                attrs,
                attrsIdxs,
                numAttrs,
                ..Default::default()
            };
            if captured(hStream, || node_op(&params)).map_err(of_batch)? {
                return Ok(());
            }
            // SAFETY: the caller's promise; none of them is NULL.
            unsafe { batch(dsts, srcs, sizes, count, is_during_call, hStream) }
        });
    told(answer, failIdx)
}

/// A graph's node of such copies.
pub(crate) fn node_op(params: &CUDA_MEMCPY_BATCH_NODE_PARAMS) -> Result<Arc<Op>> {
    let CUDA_MEMCPY_BATCH_NODE_PARAMS { count, dsts, srcs, sizes, attrs, attrsIdxs, numAttrs, .. } = *params;
    if dsts.is_null() || srcs.is_null() || sizes.is_null() || count == 0 {
        return Err(Error::InvalidValue("dsts, srcs, sizes or count"));
    }
    // SAFETY: CUDA's contract for the structure: `numAttrs` entries in both arrays.
    unsafe { attributes(attrs, attrsIdxs, numAttrs, count) }?;
    // SAFETY: both members are one handle.
    let context = named(unsafe { params.__bindgen_anon_1.ctx })?;
    // SAFETY: CUDA's contract: `count` entries in the first three arrays, `numAttrs` in the others; none is NULL.
    let batch = unsafe {
        Batch {
            targets: core::slice::from_raw_parts(dsts, count).to_vec(),
            sources: core::slice::from_raw_parts(srcs, count).to_vec(),
            sizes: core::slice::from_raw_parts(sizes, count).to_vec(),
            attributes: core::slice::from_raw_parts(attrs, numAttrs).to_vec(),
            firsts: core::slice::from_raw_parts(attrsIdxs, numAttrs).to_vec(),
            context,
        }
    };
    Ok(Op::new(Params::MemcpyBatch(batch), |params, stream| match params {
        Params::MemcpyBatch(Batch { targets, sources, sizes, .. }) => {
            let copies = targets.iter().zip(sources).zip(sizes);
            copies
                .filter(|(_, size)| **size > 0)
                .try_for_each(|((target, source), size)| cuMemcpyAsync(*target, *source, *size, stream))
        }
        _ => Ok(()),
    }))
}

fn told(answer: core::result::Result<(), Failure>, at: OptOut<'_, usize>) -> Result {
    answer.map_err(|(index, error)| {
        at.write(index);
        error
    })
}

pub fn cuMemcpyWithAttributesAsync(
    dst: CUdeviceptr,
    src: CUdeviceptr,
    size: usize,
    attr: &CUmemcpyAttributes,
    hStream: CUstream,
) -> Result {
    check_order(attr.srcAccessOrder)?;
    cuMemcpyAsync(dst, src, size, hStream)?;
    finish(hStream, is_during_call(attr.srcAccessOrder))
}

/// One side of a copy, sizes in bytes.
struct Side {
    kind: CUmemorytype,
    address: CUdeviceptr,
    array: CUarray,
    x_bytes: usize,
    y: usize,
    z: usize,
    pitch: usize,
    height: usize,
}

/// Bytes of an array's elements; memory has none.
fn element_bytes(operand: &CUmemcpy3DOperand) -> Result<Option<usize>> {
    match operand.type_ {
        CUmemcpy3DOperandType::CU_MEMCPY_OPERAND_TYPE_POINTER => Ok(None),
        CUmemcpy3DOperandType::CU_MEMCPY_OPERAND_TYPE_ARRAY => {
            // SAFETY: the member that belongs to the type.
            Ok(Some(Array::from_handle(unsafe { operand.op.array.array })?.element_bytes()))
        }
        _ => Err(Error::InvalidValue("opList: type of an operand")),
    }
}

fn side(operand: &CUmemcpy3DOperand, extent: &CUextent3D, unit: usize) -> Result<Side> {
    let bytes = |n: usize| n.checked_mul(unit).ok_or(Error::InvalidValue("opList"));
    if operand.type_ == CUmemcpy3DOperandType::CU_MEMCPY_OPERAND_TYPE_ARRAY {
        // SAFETY: the member that belongs to the type.
        let place = unsafe { operand.op.array };
        return Ok(Side {
            kind: CUmemorytype::CU_MEMORYTYPE_ARRAY,
            address: 0,
            array: place.array,
            x_bytes: bytes(place.offset.x)?,
            y: place.offset.y,
            z: place.offset.z,
            pitch: 0,
            height: 0,
        });
    }
    // SAFETY: the member that belongs to the type.
    let place = unsafe { operand.op.ptr };
    // CUDA: rows and layers are as long as the copy's if nothing is said, else not shorter.
    let at_least = |said: usize, needed: usize| match said {
        0 => Ok(needed),
        said if said < needed => Err(Error::InvalidValue("opList: rowLength or layerHeight")),
        said => Ok(said),
    };
    Ok(Side {
        kind: CUmemorytype::CU_MEMORYTYPE_UNIFIED,
        address: place.ptr,
        array: core::ptr::null_mut(),
        x_bytes: 0,
        y: 0,
        z: 0,
        pitch: bytes(at_least(place.rowLength, extent.width)?)?,
        height: at_least(place.layerHeight, extent.height)?,
    })
}

/// A batch's entry as a copy. CUDA: extents count elements of the array, or bytes between two pieces of memory.
fn copy_of(op: &CUDA_MEMCPY3D_BATCH_OP) -> Result<CUDA_MEMCPY3D> {
    check_order(op.srcAccessOrder)?;
    let CUextent3D { width, height, depth } = op.extent;
    if width == 0 || height == 0 || depth == 0 {
        return Err(Error::InvalidValue("opList: extent"));
    }
    let (source, target) = (element_bytes(&op.src)?, element_bytes(&op.dst)?);
    // CUDA: two arrays have elements of one size.
    if source.zip(target).is_some_and(|(a, b)| a != b) {
        return Err(Error::InvalidValue("opList: arrays of different elements"));
    }
    let unit = source.or(target).unwrap_or(1);
    let (source, target) = (side(&op.src, &op.extent, unit)?, side(&op.dst, &op.extent, unit)?);
    Ok(CUDA_MEMCPY3D {
        srcXInBytes: source.x_bytes,
        srcY: source.y,
        srcZ: source.z,
        srcMemoryType: source.kind,
        srcDevice: source.address,
        srcArray: source.array,
        srcPitch: source.pitch,
        srcHeight: source.height,
        dstXInBytes: target.x_bytes,
        dstY: target.y,
        dstZ: target.z,
        dstMemoryType: target.kind,
        dstDevice: target.address,
        dstArray: target.array,
        dstPitch: target.pitch,
        dstHeight: target.height,
        WidthInBytes: width.checked_mul(unit).ok_or(Error::InvalidValue("opList: extent"))?,
        Height: height,
        Depth: depth,
        ..Default::default()
    })
}

/// # Safety
/// `opList` is NULL, or has `numOps` elements.
pub unsafe fn cuMemcpy3DBatchAsync(
    numOps: usize,
    opList: *mut CUDA_MEMCPY3D_BATCH_OP,
    failIdx: OptOut<'_, usize>,
    flags: c_ulonglong,
    hStream: CUstream,
) -> Result {
    // SAFETY: the caller's promise.
    told(unsafe { batch_3d(numOps, opList, flags, hStream) }, failIdx)
}

/// # Safety
/// `opList` is NULL, or has `numOps` elements.
pub unsafe fn cuMemcpy3DBatchAsync_v2(
    numOps: usize,
    opList: *mut CUDA_MEMCPY3D_BATCH_OP,
    flags: c_ulonglong,
    hStream: CUstream,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { batch_3d(numOps, opList, flags, hStream) }.map_err(|(_, error)| error)
}

/// # Safety
/// `list` is NULL, or has `count` elements.
unsafe fn batch_3d(
    count: usize,
    list: *const CUDA_MEMCPY3D_BATCH_OP,
    flags: c_ulonglong,
    stream: CUstream,
) -> core::result::Result<(), Failure> {
    if list.is_null() || count == 0 || flags != 0 {
        return Err(of_batch(Error::InvalidValue("numOps, opList or flags")));
    }
    check_stream(stream).map_err(of_batch)?;
    // SAFETY: the caller's promise: `count` entries.
    let list = unsafe { core::slice::from_raw_parts(list, count) };
    for (index, op) in list.iter().enumerate() {
        copy_of(op).and_then(|copy| enqueue(&copy, stream)).map_err(|error| (index, error))?;
    }
    finish(stream, list.iter().any(|op| is_during_call(op.srcAccessOrder))).map_err(of_batch)
}

pub fn cuMemcpy3DWithAttributesAsync(
    op: &CUDA_MEMCPY3D_BATCH_OP,
    flags: c_ulonglong,
    hStream: CUstream,
) -> Result {
    if flags != 0 {
        return Err(Error::InvalidValue("flags"));
    }
    enqueue(&copy_of(op)?, hStream)?;
    finish(hStream, is_during_call(op.srcAccessOrder))
}
