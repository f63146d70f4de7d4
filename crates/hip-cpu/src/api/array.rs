//! Arrays and mipmapped arrays: made, described, copied to and from.

use std::ffi::{c_uint, c_void};

use border::{OptOut, Out};
use hip_sys::*;

use super::copy::{When, copy_box};
use crate::array::{self, Array, Element};
use crate::device::healthy;
use crate::error::Result;
use crate::stream::{self, Place, Shape};

pub fn hipArray3DCreate(array: Out<'_, hipArray_t>, pAllocateArray: &HIP_ARRAY3D_DESCRIPTOR) -> Result {
    healthy()?;
    array.write(array::create(pAllocateArray)?);
    Ok(())
}

pub fn hipArrayCreate(pHandle: Out<'_, hipArray_t>, pAllocateArray: &HIP_ARRAY_DESCRIPTOR) -> Result {
    let desc = HIP_ARRAY3D_DESCRIPTOR {
        Width: pAllocateArray.Width,
        Height: pAllocateArray.Height,
        Depth: 0,
        Format: pAllocateArray.Format,
        NumChannels: pAllocateArray.NumChannels,
        Flags: hipArrayDefault,
    };
    hipArray3DCreate(pHandle, &desc)
}

fn described(
    desc: &hipChannelFormatDesc,
    extent: hipExtent,
    flags: c_uint,
) -> Result<HIP_ARRAY3D_DESCRIPTOR> {
    let element = Element::of_channels(desc)?;
    Ok(HIP_ARRAY3D_DESCRIPTOR {
        Width: extent.width,
        Height: extent.height,
        Depth: extent.depth,
        Format: element.format,
        NumChannels: element.channels,
        Flags: flags,
    })
}

pub fn hipMallocArray(
    array: Out<'_, hipArray_t>,
    desc: &hipChannelFormatDesc,
    width: usize,
    height: usize,
    flags: c_uint,
) -> Result {
    hipMalloc3DArray(array, desc, hipExtent { width, height, depth: 0 }, flags)
}

pub fn hipMalloc3DArray(
    array: Out<'_, hipArray_t>,
    desc: &hipChannelFormatDesc,
    extent: hipExtent,
    flags: c_uint,
) -> Result {
    hipArray3DCreate(array, &described(desc, extent, flags)?)
}

pub fn hipArrayDestroy(array: hipArray_t) -> Result {
    array::of_handle(array)?;
    // Work that uses it comes first.
    stream::quiesce();
    array::destroy(array)
}

/// HIP: null is freed successfully.
pub fn hipFreeArray(array: hipArray_t) -> Result {
    if array.is_null() { Ok(()) } else { hipArrayDestroy(array) }
}

pub fn hipArray3DGetDescriptor(
    pArrayDescriptor: Out<'_, HIP_ARRAY3D_DESCRIPTOR>,
    array: hipArray_t,
) -> Result {
    pArrayDescriptor.write(array::of_handle(array)?.descriptor());
    Ok(())
}

pub fn hipArrayGetDescriptor(pArrayDescriptor: Out<'_, HIP_ARRAY_DESCRIPTOR>, array: hipArray_t) -> Result {
    let found = array::of_handle(array)?;
    pArrayDescriptor.write(HIP_ARRAY_DESCRIPTOR {
        Width: found.width,
        Height: found.height,
        Format: found.element.format,
        NumChannels: found.element.channels,
    });
    Ok(())
}

/// Any of the three answers may be left out.
pub fn hipArrayGetInfo(
    desc: OptOut<'_, hipChannelFormatDesc>,
    extent: OptOut<'_, hipExtent>,
    flags: OptOut<'_, c_uint>,
    array: hipArray_t,
) -> Result {
    let found = array::of_handle(array)?;
    desc.write(found.element.to_channels());
    extent.write(hipExtent { width: found.width, height: found.height, depth: found.depth });
    flags.write(found.flags);
    Ok(())
}

pub fn hipGetChannelDesc(desc: Out<'_, hipChannelFormatDesc>, array: hipArray_const_t) -> Result {
    desc.write(array::of_handle(array)?.element.to_channels());
    Ok(())
}

pub fn hipMipmappedArrayCreate(
    pHandle: Out<'_, hipMipmappedArray_t>,
    pMipmappedArrayDesc: &HIP_ARRAY3D_DESCRIPTOR,
    numMipmapLevels: c_uint,
) -> Result {
    healthy()?;
    pHandle.write(array::create_mipmapped(pMipmappedArrayDesc, numMipmapLevels)?);
    Ok(())
}

pub fn hipMallocMipmappedArray(
    mipmappedArray: Out<'_, hipMipmappedArray_t>,
    desc: &hipChannelFormatDesc,
    extent: hipExtent,
    numLevels: c_uint,
    flags: c_uint,
) -> Result {
    hipMipmappedArrayCreate(mipmappedArray, &described(desc, extent, flags)?, numLevels)
}

pub fn hipMipmappedArrayDestroy(hMipmappedArray: hipMipmappedArray_t) -> Result {
    array::mipmapped_of_handle(hMipmappedArray)?;
    stream::quiesce();
    array::destroy_mipmapped(hMipmappedArray)
}

pub fn hipFreeMipmappedArray(mipmappedArray: hipMipmappedArray_t) -> Result {
    if mipmappedArray.is_null() { Ok(()) } else { hipMipmappedArrayDestroy(mipmappedArray) }
}

pub fn hipMipmappedArrayGetLevel(
    pLevelArray: Out<'_, hipArray_t>,
    hMipMappedArray: hipMipmappedArray_t,
    level: c_uint,
) -> Result {
    hipGetMipmappedArrayLevel(pLevelArray, hMipMappedArray, level)
}

pub fn hipGetMipmappedArrayLevel(
    levelArray: Out<'_, hipArray_t>,
    mipmappedArray: hipMipmappedArray_const_t,
    level: c_uint,
) -> Result {
    levelArray.write(array::level(mipmappedArray, level)?);
    Ok(())
}

// ---- copies of a run of bytes ----

/// One end of such a copy: memory, or an array from a byte on, its rows without the gaps between them.
enum Run<'a> {
    Memory(usize),
    Array(&'a Array, usize),
}

impl Run<'_> {
    fn check(&self, bytes: usize) -> Result {
        match self {
            Run::Memory(0) => Err(hipErrorInvalidValue),
            Run::Memory(_) => Ok(()),
            Run::Array(array, from) => {
                let all = array.row_bytes() * array.height.max(1) * array.depth.max(1);
                let inside = from.checked_add(bytes).is_some_and(|end| end <= all);
                if inside { Ok(()) } else { Err(hipErrorInvalidValue) }
            }
        }
    }

    /// The place of byte `at`, and how many lie there in a row.
    fn piece(&self, at: usize) -> (usize, usize) {
        match self {
            Run::Memory(base) => (base + at, usize::MAX),
            Run::Array(array, from) => {
                let (row, x) = ((from + at) / array.row_bytes(), (from + at) % array.row_bytes());
                (array.place().at + row * array.pitch + x, array.row_bytes() - x)
            }
        }
    }
}

fn copy_run(
    to: &Run<'_>,
    from: &Run<'_>,
    bytes: usize,
    kind: hipMemcpyKind,
    stream: hipStream_t,
    when: When,
) -> Result {
    to.check(bytes)?;
    from.check(bytes)?;
    let mut at = 0;
    while at < bytes {
        let ((to, to_row), (from, from_row)) = (to.piece(at), from.piece(at));
        let width = to_row.min(from_row).min(bytes - at);
        let place = |at| Place { at, pitch: width, slice: width };
        copy_box(place(to), place(from), Shape { width, height: 1, depth: 1 }, kind, stream, when)?;
        at += width;
    }
    Ok(())
}

pub fn hipMemcpyAtoD(
    dstDevice: hipDeviceptr_t,
    srcArray: hipArray_t,
    srcOffset: usize,
    ByteCount: usize,
) -> Result {
    let from = array::of_handle(srcArray)?;
    let (to, from) = (Run::Memory(dstDevice as usize), Run::Array(&from, srcOffset));
    copy_run(&to, &from, ByteCount, hipMemcpyDeviceToDevice, hipStreamLegacy, When::Now)
}

pub fn hipMemcpyDtoA(
    dstArray: hipArray_t,
    dstOffset: usize,
    srcDevice: hipDeviceptr_t,
    ByteCount: usize,
) -> Result {
    let to = array::of_handle(dstArray)?;
    let (to, from) = (Run::Array(&to, dstOffset), Run::Memory(srcDevice as usize));
    copy_run(&to, &from, ByteCount, hipMemcpyDeviceToDevice, hipStreamLegacy, When::Now)
}

pub fn hipMemcpyAtoA(
    dstArray: hipArray_t,
    dstOffset: usize,
    srcArray: hipArray_t,
    srcOffset: usize,
    ByteCount: usize,
) -> Result {
    let (to, from) = (array::of_handle(dstArray)?, array::of_handle(srcArray)?);
    let (to, from) = (Run::Array(&to, dstOffset), Run::Array(&from, srcOffset));
    copy_run(&to, &from, ByteCount, hipMemcpyDeviceToDevice, hipStreamLegacy, When::Now)
}

fn array_to_host(
    dst: *mut c_void,
    srcArray: hipArray_t,
    srcOffset: usize,
    count: usize,
    stream: hipStream_t,
    when: When,
) -> Result {
    let from = array::of_handle(srcArray)?;
    let (to, from) = (Run::Memory(dst as usize), Run::Array(&from, srcOffset));
    copy_run(&to, &from, count, hipMemcpyDeviceToHost, stream, when)
}

fn host_to_array(
    dstArray: hipArray_t,
    dstOffset: usize,
    src: *const c_void,
    count: usize,
    stream: hipStream_t,
    when: When,
) -> Result {
    let to = array::of_handle(dstArray)?;
    let (to, from) = (Run::Array(&to, dstOffset), Run::Memory(src as usize));
    copy_run(&to, &from, count, hipMemcpyHostToDevice, stream, when)
}

pub fn hipMemcpyAtoH(dst: *mut c_void, srcArray: hipArray_t, srcOffset: usize, count: usize) -> Result {
    array_to_host(dst, srcArray, srcOffset, count, hipStreamLegacy, When::Now)
}

pub fn hipMemcpyHtoA(dstArray: hipArray_t, dstOffset: usize, srcHost: *const c_void, count: usize) -> Result {
    host_to_array(dstArray, dstOffset, srcHost, count, hipStreamLegacy, When::Now)
}

pub fn hipMemcpyAtoHAsync(
    dstHost: *mut c_void,
    srcArray: hipArray_t,
    srcOffset: usize,
    ByteCount: usize,
    stream: hipStream_t,
) -> Result {
    array_to_host(dstHost, srcArray, srcOffset, ByteCount, stream, When::InStream)
}

pub fn hipMemcpyHtoAAsync(
    dstArray: hipArray_t,
    dstOffset: usize,
    srcHost: *const c_void,
    ByteCount: usize,
    stream: hipStream_t,
) -> Result {
    host_to_array(dstArray, dstOffset, srcHost, ByteCount, stream, When::InStream)
}

// ---- copies of rows ----

/// Rows in memory.
fn rows(at: *const c_void, pitch: usize, width: usize) -> Result<Place> {
    match at as usize {
        0 => Err(hipErrorInvalidValue),
        _ if pitch < width => Err(hipErrorInvalidPitchValue),
        at => Ok(Place { at, pitch, slice: 0 }),
    }
}

pub fn hipMemcpy2DToArray(
    dst: hipArray_t,
    wOffset: usize,
    hOffset: usize,
    src: *const c_void,
    spitch: usize,
    width: usize,
    height: usize,
    kind: hipMemcpyKind,
) -> Result {
    let from = rows(src, spitch, width)?;
    let to = array::of_handle(dst)?.corner([wOffset, hOffset, 0], [width, height, 1])?;
    copy_box(to, from, Shape { width, height, depth: 1 }, kind, hipStreamLegacy, When::Now)
}

pub fn hipMemcpy2DToArrayAsync(
    dst: hipArray_t,
    wOffset: usize,
    hOffset: usize,
    src: *const c_void,
    spitch: usize,
    width: usize,
    height: usize,
    kind: hipMemcpyKind,
    stream: hipStream_t,
) -> Result {
    let from = rows(src, spitch, width)?;
    let to = array::of_handle(dst)?.corner([wOffset, hOffset, 0], [width, height, 1])?;
    copy_box(to, from, Shape { width, height, depth: 1 }, kind, stream, When::InStream)
}

pub fn hipMemcpy2DFromArray(
    dst: *mut c_void,
    dpitch: usize,
    src: hipArray_const_t,
    wOffset: usize,
    hOffset: usize,
    width: usize,
    height: usize,
    kind: hipMemcpyKind,
) -> Result {
    let to = rows(dst, dpitch, width)?;
    let from = array::of_handle(src)?.corner([wOffset, hOffset, 0], [width, height, 1])?;
    copy_box(to, from, Shape { width, height, depth: 1 }, kind, hipStreamLegacy, When::Now)
}

pub fn hipMemcpy2DFromArrayAsync(
    dst: *mut c_void,
    dpitch: usize,
    src: hipArray_const_t,
    wOffset: usize,
    hOffset: usize,
    width: usize,
    height: usize,
    kind: hipMemcpyKind,
    stream: hipStream_t,
) -> Result {
    let to = rows(dst, dpitch, width)?;
    let from = array::of_handle(src)?.corner([wOffset, hOffset, 0], [width, height, 1])?;
    copy_box(to, from, Shape { width, height, depth: 1 }, kind, stream, When::InStream)
}

pub fn hipMemcpy2DArrayToArray(
    dst: hipArray_t,
    wOffsetDst: usize,
    hOffsetDst: usize,
    src: hipArray_const_t,
    wOffsetSrc: usize,
    hOffsetSrc: usize,
    width: usize,
    height: usize,
    kind: hipMemcpyKind,
) -> Result {
    let size = [width, height, 1];
    let to = array::of_handle(dst)?.corner([wOffsetDst, hOffsetDst, 0], size)?;
    let from = array::of_handle(src)?.corner([wOffsetSrc, hOffsetSrc, 0], size)?;
    copy_box(to, from, Shape { width, height, depth: 1 }, kind, hipStreamLegacy, When::Now)
}
