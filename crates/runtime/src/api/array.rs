//! Memory management: arrays and mipmapped arrays, and their copies.

use core::ffi::{c_int, c_uint, c_void};
use std::ptr;

use border::{OptOut, Out};
use cuda_abi::runtime::{
    cudaArray_const_t, cudaArray_t, cudaArrayMemoryRequirements, cudaArraySparseProperties,
    cudaChannelFormatDesc, cudaExtent, cudaMemcpyKind, cudaMipmappedArray_const_t, cudaMipmappedArray_t,
    cudaStream_t,
};
use cuda_abi::{
    CUDA_ARRAY_MEMORY_REQUIREMENTS, CUDA_ARRAY_SPARSE_PROPERTIES, CUDA_ARRAY3D_DESCRIPTOR, CUDA_MEMCPY2D,
    CUarray, CUmemorytype, CUmipmappedArray,
};

use super::channel::{channel_desc, format_of};
use super::memory::{address, check_kind, types};
use crate::driver::Driver;
use crate::{Error, Result, device, stream};

/// The runtime's handles are the driver's.
pub fn driver_array(array: cudaArray_const_t) -> CUarray {
    array.cast_mut().cast()
}

pub fn driver_mipmap(mipmap: cudaMipmappedArray_const_t) -> CUmipmappedArray {
    mipmap.cast_mut().cast()
}

pub fn descriptor(driver: &Driver, array: cudaArray_const_t) -> Result<CUDA_ARRAY3D_DESCRIPTOR> {
    let mut descriptor = CUDA_ARRAY3D_DESCRIPTOR::default();
    driver.cuArray3DGetDescriptor_v2(&mut descriptor, driver_array(array))?;
    Ok(descriptor)
}

/// Bytes of one element of an array.
pub fn element_bytes(descriptor: &CUDA_ARRAY3D_DESCRIPTOR) -> Result<usize> {
    let desc = channel_desc(descriptor.Format, descriptor.NumChannels)?;
    let bits = [desc.x, desc.y, desc.z, desc.w].into_iter().sum::<c_int>();
    usize::try_from(bits / 8).map_err(|_| Error::InvalidChannelDescriptor)
}

fn described(
    desc: &cudaChannelFormatDesc,
    extent: cudaExtent,
    flags: c_uint,
) -> Result<CUDA_ARRAY3D_DESCRIPTOR> {
    let (Format, NumChannels) = format_of(desc)?;
    Ok(CUDA_ARRAY3D_DESCRIPTOR {
        Width: extent.width,
        Height: extent.height,
        Depth: extent.depth,
        Format,
        NumChannels,
        // The flags have the driver's numbers.
        Flags: flags,
    })
}

pub fn cudaMallocArray(
    array: Out<'_, cudaArray_t>,
    desc: &cudaChannelFormatDesc,
    width: usize,
    height: usize,
    flags: c_uint,
) -> Result {
    cudaMalloc3DArray(array, desc, cudaExtent { width, height, depth: 0 }, flags)
}

pub fn cudaMalloc3DArray(
    array: Out<'_, cudaArray_t>,
    desc: &cudaChannelFormatDesc,
    extent: cudaExtent,
    flags: c_uint,
) -> Result {
    let driver = device::attach()?;
    let mut made: CUarray = ptr::null_mut();
    driver.cuArray3DCreate_v2(&mut made, &described(desc, extent, flags)?)?;
    array.write(made.cast());
    Ok(())
}

/// CUDA: a null array is fine.
pub fn cudaFreeArray(array: cudaArray_t) -> Result {
    let driver = device::attach()?;
    if array.is_null() { Ok(()) } else { driver.cuArrayDestroy(driver_array(array)) }
}

pub fn cudaArrayGetInfo(
    desc: OptOut<'_, cudaChannelFormatDesc>,
    extent: OptOut<'_, cudaExtent>,
    flags: OptOut<'_, c_uint>,
    array: cudaArray_t,
) -> Result {
    let found = descriptor(device::attach()?, array)?;
    desc.write(channel_desc(found.Format, found.NumChannels)?);
    extent.write(cudaExtent { width: found.Width, height: found.Height, depth: found.Depth });
    flags.write(found.Flags);
    Ok(())
}

pub fn cudaGetChannelDesc(desc: Out<'_, cudaChannelFormatDesc>, array: cudaArray_const_t) -> Result {
    let found = descriptor(device::attach()?, array)?;
    desc.write(channel_desc(found.Format, found.NumChannels)?);
    Ok(())
}

pub fn cudaArrayGetPlane(pPlaneArray: Out<'_, cudaArray_t>, hArray: cudaArray_t, planeIdx: c_uint) -> Result {
    let mut plane: CUarray = ptr::null_mut();
    device::attach()?.cuArrayGetPlane(&mut plane, driver_array(hArray), planeIdx)?;
    pPlaneArray.write(plane.cast());
    Ok(())
}

pub fn cudaArrayGetMemoryRequirements(
    memoryRequirements: Out<'_, cudaArrayMemoryRequirements>,
    array: cudaArray_t,
    device: c_int,
) -> Result {
    let driver = device::attach()?;
    let mut found = CUDA_ARRAY_MEMORY_REQUIREMENTS::default();
    driver.cuArrayGetMemoryRequirements(&mut found, driver_array(array), device::at(device)?.handle)?;
    memoryRequirements.write(requirements(&found));
    Ok(())
}

pub fn cudaMipmappedArrayGetMemoryRequirements(
    memoryRequirements: Out<'_, cudaArrayMemoryRequirements>,
    mipmap: cudaMipmappedArray_t,
    device: c_int,
) -> Result {
    let driver = device::attach()?;
    let mut found = CUDA_ARRAY_MEMORY_REQUIREMENTS::default();
    driver.cuMipmappedArrayGetMemoryRequirements(
        &mut found,
        driver_mipmap(mipmap),
        device::at(device)?.handle,
    )?;
    memoryRequirements.write(requirements(&found));
    Ok(())
}

fn requirements(found: &CUDA_ARRAY_MEMORY_REQUIREMENTS) -> cudaArrayMemoryRequirements {
    cudaArrayMemoryRequirements { size: found.size, alignment: found.alignment, ..Default::default() }
}

pub fn cudaArrayGetSparseProperties(
    sparseProperties: Out<'_, cudaArraySparseProperties>,
    array: cudaArray_t,
) -> Result {
    let mut found = CUDA_ARRAY_SPARSE_PROPERTIES::default();
    device::attach()?.cuArrayGetSparseProperties(&mut found, driver_array(array))?;
    sparseProperties.write(sparse(&found));
    Ok(())
}

pub fn cudaMipmappedArrayGetSparseProperties(
    sparseProperties: Out<'_, cudaArraySparseProperties>,
    mipmap: cudaMipmappedArray_t,
) -> Result {
    let mut found = CUDA_ARRAY_SPARSE_PROPERTIES::default();
    device::attach()?.cuMipmappedArrayGetSparseProperties(&mut found, driver_mipmap(mipmap))?;
    sparseProperties.write(sparse(&found));
    Ok(())
}

fn sparse(found: &CUDA_ARRAY_SPARSE_PROPERTIES) -> cudaArraySparseProperties {
    let mut properties = cudaArraySparseProperties::default();
    properties.tileExtent.width = found.tileExtent.width;
    properties.tileExtent.height = found.tileExtent.height;
    properties.tileExtent.depth = found.tileExtent.depth;
    properties.miptailFirstLevel = found.miptailFirstLevel;
    properties.miptailSize = found.miptailSize;
    properties.flags = found.flags;
    properties
}

pub fn cudaMallocMipmappedArray(
    mipmappedArray: Out<'_, cudaMipmappedArray_t>,
    desc: &cudaChannelFormatDesc,
    extent: cudaExtent,
    numLevels: c_uint,
    flags: c_uint,
) -> Result {
    let driver = device::attach()?;
    let mut made: CUmipmappedArray = ptr::null_mut();
    driver.cuMipmappedArrayCreate(&mut made, &described(desc, extent, flags)?, numLevels)?;
    mipmappedArray.write(made.cast());
    Ok(())
}

pub fn cudaGetMipmappedArrayLevel(
    levelArray: Out<'_, cudaArray_t>,
    mipmappedArray: cudaMipmappedArray_const_t,
    level: c_uint,
) -> Result {
    let mut found: CUarray = ptr::null_mut();
    device::attach()?.cuMipmappedArrayGetLevel(&mut found, driver_mipmap(mipmappedArray), level)?;
    levelArray.write(found.cast());
    Ok(())
}

/// CUDA: a null array is fine.
pub fn cudaFreeMipmappedArray(mipmappedArray: cudaMipmappedArray_t) -> Result {
    let driver = device::attach()?;
    if mipmappedArray.is_null() {
        Ok(())
    } else {
        driver.cuMipmappedArrayDestroy(driver_mipmap(mipmappedArray))
    }
}

/// A copy that has ended when the call returns.
fn now(copy: &CUDA_MEMCPY2D) -> Result {
    let driver = device::attach()?;
    if !stream::default().is_null() {
        driver.cuMemcpy2DAsync_v2(copy, stream::default())?;
        return driver.cuStreamSynchronize(stream::default());
    }
    driver.cuMemcpy2DUnaligned_v2(copy)
}

fn later(copy: &CUDA_MEMCPY2D, stream: cudaStream_t) -> Result {
    device::attach()?.cuMemcpy2DAsync_v2(copy, stream::meant(stream))
}

/// A rectangle in an array and, in linear memory, the same rectangle.
struct Rectangle {
    array: cudaArray_const_t,
    x_bytes: usize,
    y: usize,
    width_bytes: usize,
    height: usize,
}

impl Rectangle {
    /// CUDA: a row must fit into its pitch, unless it is the only one.
    fn check(&self, pitch: usize, kind: cudaMemcpyKind) -> Result {
        check_kind(kind)?;
        if self.height != 1 && self.width_bytes > pitch { Err(Error::InvalidPitchValue) } else { Ok(()) }
    }

    fn empty(&self) -> CUDA_MEMCPY2D {
        CUDA_MEMCPY2D { WidthInBytes: self.width_bytes, Height: self.height, ..Default::default() }
    }

    fn as_target(&self, src: *const c_void, pitch: usize, kind: cudaMemcpyKind) -> CUDA_MEMCPY2D {
        CUDA_MEMCPY2D {
            dstMemoryType: CUmemorytype::CU_MEMORYTYPE_ARRAY,
            dstArray: driver_array(self.array),
            dstXInBytes: self.x_bytes,
            dstY: self.y,
            srcMemoryType: types(kind).1,
            srcHost: src,
            srcDevice: address(src),
            srcPitch: pitch,
            ..self.empty()
        }
    }

    fn as_source(&self, dst: *mut c_void, pitch: usize, kind: cudaMemcpyKind) -> CUDA_MEMCPY2D {
        CUDA_MEMCPY2D {
            srcMemoryType: CUmemorytype::CU_MEMORYTYPE_ARRAY,
            srcArray: driver_array(self.array),
            srcXInBytes: self.x_bytes,
            srcY: self.y,
            dstMemoryType: types(kind).0,
            dstHost: dst,
            dstDevice: address(dst),
            dstPitch: pitch,
            ..self.empty()
        }
    }
}

pub fn cudaMemcpy2DToArray(
    dst: cudaArray_t,
    wOffset: usize,
    hOffset: usize,
    src: *const c_void,
    spitch: usize,
    width: usize,
    height: usize,
    kind: cudaMemcpyKind,
) -> Result {
    let there = Rectangle { array: dst, x_bytes: wOffset, y: hOffset, width_bytes: width, height };
    there.check(spitch, kind)?;
    now(&there.as_target(src, spitch, kind))
}

pub fn cudaMemcpy2DToArrayAsync(
    dst: cudaArray_t,
    wOffset: usize,
    hOffset: usize,
    src: *const c_void,
    spitch: usize,
    width: usize,
    height: usize,
    kind: cudaMemcpyKind,
    stream: cudaStream_t,
) -> Result {
    let there = Rectangle { array: dst, x_bytes: wOffset, y: hOffset, width_bytes: width, height };
    there.check(spitch, kind)?;
    later(&there.as_target(src, spitch, kind), stream)
}

pub fn cudaMemcpy2DFromArray(
    dst: *mut c_void,
    dpitch: usize,
    src: cudaArray_const_t,
    wOffset: usize,
    hOffset: usize,
    width: usize,
    height: usize,
    kind: cudaMemcpyKind,
) -> Result {
    let there = Rectangle { array: src, x_bytes: wOffset, y: hOffset, width_bytes: width, height };
    there.check(dpitch, kind)?;
    now(&there.as_source(dst, dpitch, kind))
}

pub fn cudaMemcpy2DFromArrayAsync(
    dst: *mut c_void,
    dpitch: usize,
    src: cudaArray_const_t,
    wOffset: usize,
    hOffset: usize,
    width: usize,
    height: usize,
    kind: cudaMemcpyKind,
    stream: cudaStream_t,
) -> Result {
    let there = Rectangle { array: src, x_bytes: wOffset, y: hOffset, width_bytes: width, height };
    there.check(dpitch, kind)?;
    later(&there.as_source(dst, dpitch, kind), stream)
}

pub fn cudaMemcpy2DArrayToArray(
    dst: cudaArray_t,
    wOffsetDst: usize,
    hOffsetDst: usize,
    src: cudaArray_const_t,
    wOffsetSrc: usize,
    hOffsetSrc: usize,
    width: usize,
    height: usize,
    kind: cudaMemcpyKind,
) -> Result {
    check_kind(kind)?;
    now(&CUDA_MEMCPY2D {
        srcMemoryType: CUmemorytype::CU_MEMORYTYPE_ARRAY,
        srcArray: driver_array(src),
        srcXInBytes: wOffsetSrc,
        srcY: hOffsetSrc,
        dstMemoryType: CUmemorytype::CU_MEMORYTYPE_ARRAY,
        dstArray: driver_array(dst),
        dstXInBytes: wOffsetDst,
        dstY: hOffsetDst,
        WidthInBytes: width,
        Height: height,
        ..Default::default()
    })
}

/// The rows of an array that `count` bytes from a place on cover; each with how many bytes came before it.
fn rows(array: cudaArray_const_t, x_bytes: usize, y: usize, count: usize) -> Result<Vec<(Rectangle, usize)>> {
    let found = descriptor(device::attach()?, array)?;
    let row_bytes = found.Width.checked_mul(element_bytes(&found)?).filter(|&bytes| bytes > x_bytes);
    let row_bytes = row_bytes.ok_or(Error::InvalidValue("wOffset"))?;
    let (mut x_bytes, mut y, mut done) = (x_bytes, y, 0);
    let mut pieces = Vec::new();
    while done < count {
        let width_bytes = (row_bytes - x_bytes).min(count - done);
        // Whole rows go together.
        let height = if x_bytes == 0 { ((count - done) / row_bytes).max(1) } else { 1 };
        pieces.push((Rectangle { array, x_bytes, y, width_bytes, height }, done));
        (x_bytes, y, done) = (0, y + height, done + width_bytes * height);
    }
    Ok(pieces)
}

fn to_array(
    place: (cudaArray_t, usize, usize),
    src: *const c_void,
    count: usize,
    kind: cudaMemcpyKind,
    copy: impl Fn(&CUDA_MEMCPY2D) -> Result,
) -> Result {
    check_kind(kind)?;
    let (array, x_bytes, y) = place;
    for (piece, done) in rows(array, x_bytes, y, count)? {
        copy(&piece.as_target(src.wrapping_byte_add(done), piece.width_bytes, kind))?;
    }
    Ok(())
}

fn from_array(
    place: (cudaArray_const_t, usize, usize),
    dst: *mut c_void,
    count: usize,
    kind: cudaMemcpyKind,
    copy: impl Fn(&CUDA_MEMCPY2D) -> Result,
) -> Result {
    check_kind(kind)?;
    let (array, x_bytes, y) = place;
    for (piece, done) in rows(array, x_bytes, y, count)? {
        copy(&piece.as_source(dst.wrapping_byte_add(done), piece.width_bytes, kind))?;
    }
    Ok(())
}

pub fn cudaMemcpyToArray(
    dst: cudaArray_t,
    wOffset: usize,
    hOffset: usize,
    src: *const c_void,
    count: usize,
    kind: cudaMemcpyKind,
) -> Result {
    to_array((dst, wOffset, hOffset), src, count, kind, now)
}

pub fn cudaMemcpyToArrayAsync(
    dst: cudaArray_t,
    wOffset: usize,
    hOffset: usize,
    src: *const c_void,
    count: usize,
    kind: cudaMemcpyKind,
    stream: cudaStream_t,
) -> Result {
    to_array((dst, wOffset, hOffset), src, count, kind, |copy| later(copy, stream))
}

pub fn cudaMemcpyFromArray(
    dst: *mut c_void,
    src: cudaArray_const_t,
    wOffset: usize,
    hOffset: usize,
    count: usize,
    kind: cudaMemcpyKind,
) -> Result {
    from_array((src, wOffset, hOffset), dst, count, kind, now)
}

pub fn cudaMemcpyFromArrayAsync(
    dst: *mut c_void,
    src: cudaArray_const_t,
    wOffset: usize,
    hOffset: usize,
    count: usize,
    kind: cudaMemcpyKind,
    stream: cudaStream_t,
) -> Result {
    from_array((src, wOffset, hOffset), dst, count, kind, |copy| later(copy, stream))
}

/// `count` bytes, row after row on either side.
pub fn cudaMemcpyArrayToArray(
    dst: cudaArray_t,
    wOffsetDst: usize,
    hOffsetDst: usize,
    src: cudaArray_const_t,
    wOffsetSrc: usize,
    hOffsetSrc: usize,
    count: usize,
    kind: cudaMemcpyKind,
) -> Result {
    check_kind(kind)?;
    let driver = device::attach()?;
    let offset = |array, x: usize, y: usize| -> Result<usize> {
        let found = descriptor(driver, array)?;
        let before = found.Width.checked_mul(element_bytes(&found)?).and_then(|row| row.checked_mul(y));
        before.and_then(|bytes| bytes.checked_add(x)).ok_or(Error::InvalidValue("hOffset"))
    };
    driver.cuMemcpyAtoA_v2(
        driver_array(dst),
        offset(dst.cast_const(), wOffsetDst, hOffsetDst)?,
        driver_array(src),
        offset(src, wOffsetSrc, hOffsetSrc)?,
        count,
    )
}
