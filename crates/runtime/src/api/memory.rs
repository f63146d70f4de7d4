//! Memory management: device, host and managed memory, copies and memsets.

use core::ffi::{c_int, c_uint, c_void};
use std::ptr;

use border::Out;
use cuda_abi::runtime::{
    cudaArray_t, cudaExtent, cudaMemcpy3DParms, cudaMemcpyKind, cudaPitchedPtr, cudaStream_t,
};
use cuda_abi::{CUDA_MEMCPY2D, CUDA_MEMCPY3D, CUdeviceptr, CUmemorytype};

use crate::driver::Driver;
use crate::{Error, Result, device, stream};

/// The number of an address.
pub fn address(pointer: *const c_void) -> CUdeviceptr {
    pointer.expose_provenance() as CUdeviceptr
}

/// The pointer of an address.
pub fn pointer(address: CUdeviceptr) -> *mut c_void {
    ptr::with_exposed_provenance_mut(address as usize)
}

/// CUDA: 0 bytes succeed and give a null pointer. (The driver refuses them.)
pub fn cudaMalloc(devPtr: Out<'_, *mut c_void>, size: usize) -> Result {
    let mut allocated = 0;
    if size == 0 {
        device::attach()?;
    } else {
        device::with_context(|driver| driver.cuMemAlloc_v2(&mut allocated, size))?;
    }
    devPtr.write(pointer(allocated));
    Ok(())
}

/// CUDA: a null pointer is fine; the call then only initialises the device.
pub fn cudaFree(devPtr: *mut c_void) -> Result {
    if devPtr.is_null() {
        device::attach().map(|_| ())
    } else {
        device::with_context(|driver| driver.cuMemFree_v2(address(devPtr)))
    }
}

pub fn cudaMallocHost(ptr: Out<'_, *mut c_void>, size: usize) -> Result {
    cudaHostAlloc(ptr, size, 0)
}

pub fn cudaHostAlloc(pHost: Out<'_, *mut c_void>, size: usize, flags: c_uint) -> Result {
    let driver = device::attach()?;
    let mut allocated = ptr::null_mut();
    if size != 0 {
        // The flags have the driver's numbers.
        driver.cuMemHostAlloc(&mut allocated, size, flags)?;
    }
    pHost.write(allocated);
    Ok(())
}

pub fn cudaFreeHost(ptr: *mut c_void) -> Result {
    let driver = device::attach()?;
    if ptr.is_null() { Ok(()) } else { driver.cuMemFreeHost(ptr) }
}

pub fn cudaHostRegister(ptr: *mut c_void, size: usize, flags: c_uint) -> Result {
    device::attach()?.cuMemHostRegister_v2(ptr, size, flags)
}

pub fn cudaHostUnregister(ptr: *mut c_void) -> Result {
    device::attach()?.cuMemHostUnregister(ptr)
}

pub fn cudaHostGetDevicePointer(pDevice: Out<'_, *mut c_void>, pHost: *mut c_void, flags: c_uint) -> Result {
    let mut mapped = 0;
    device::attach()?.cuMemHostGetDevicePointer_v2(&mut mapped, pHost, flags)?;
    pDevice.write(pointer(mapped));
    Ok(())
}

pub fn cudaHostGetFlags(pFlags: Out<'_, c_uint>, pHost: *mut c_void) -> Result {
    let mut flags = 0;
    device::attach()?.cuMemHostGetFlags(&mut flags, pHost)?;
    pFlags.write(flags);
    Ok(())
}

pub fn cudaMallocManaged(devPtr: Out<'_, *mut c_void>, size: usize, flags: c_uint) -> Result {
    let driver = device::attach()?;
    if size == 0 {
        return Err(Error::InvalidValue("size"));
    }
    let mut allocated = 0;
    driver.cuMemAllocManaged(&mut allocated, size, flags)?;
    devPtr.write(pointer(allocated));
    Ok(())
}

pub fn cudaMallocPitch(
    devPtr: Out<'_, *mut c_void>,
    pitch: Out<'_, usize>,
    width: usize,
    height: usize,
) -> Result {
    let driver = device::attach()?;
    let (mut allocated, mut pitch_bytes) = (0, 0);
    if width != 0 && height != 0 {
        // The element size only guides the pitch; CUDA's runtime asks for the smallest.
        driver.cuMemAllocPitch_v2(&mut allocated, &mut pitch_bytes, width, height, 4)?;
    }
    devPtr.write(pointer(allocated));
    pitch.write(pitch_bytes);
    Ok(())
}

pub fn cudaMalloc3D(pitchedDevPtr: Out<'_, cudaPitchedPtr>, extent: cudaExtent) -> Result {
    let (mut allocated, mut pitch) = (ptr::null_mut::<c_void>(), 0usize);
    let rows = extent.height.checked_mul(extent.depth).ok_or(Error::InvalidValue("extent"))?;
    cudaMallocPitch(Out::from(&mut allocated), Out::from(&mut pitch), extent.width, rows)?;
    pitchedDevPtr.write(cudaPitchedPtr { ptr: allocated, pitch, xsize: extent.width, ysize: extent.height });
    Ok(())
}

pub fn cudaMemGetInfo(free: Out<'_, usize>, total: Out<'_, usize>) -> Result {
    let (mut free_bytes, mut total_bytes) = (0, 0);
    device::attach()?.cuMemGetInfo_v2(&mut free_bytes, &mut total_bytes)?;
    free.write(free_bytes);
    total.write(total_bytes);
    Ok(())
}

/// Copies, and returns when the copy is done (from pageable host memory: when it may be changed again).
pub fn cudaMemcpy(dst: *mut c_void, src: *const c_void, count: usize, kind: cudaMemcpyKind) -> Result {
    device::with_context(|driver| copy(driver, dst, src, count, kind))
}

fn copy(driver: &Driver, dst: *mut c_void, src: *const c_void, count: usize, kind: cudaMemcpyKind) -> Result {
    check_kind(kind)?;
    if count == 0 {
        return Ok(());
    }
    if !stream::default().is_null() {
        copy_async(driver, dst, src, count, kind, stream::default())?;
        return driver.cuStreamSynchronize(stream::default());
    }
    match kind {
        cudaMemcpyKind::cudaMemcpyHostToDevice => driver.cuMemcpyHtoD_v2(address(dst), src, count),
        cudaMemcpyKind::cudaMemcpyDeviceToHost => driver.cuMemcpyDtoH_v2(dst, address(src), count),
        cudaMemcpyKind::cudaMemcpyDeviceToDevice => driver.cuMemcpyDtoD_v2(address(dst), address(src), count),
        cudaMemcpyKind::cudaMemcpyHostToHost => {
            driver.cuMemcpy2DUnaligned_v2(&rows(dst, count, src, count, count, 1, kind))
        }
        _ => driver.cuMemcpy(address(dst), address(src), count),
    }
}

pub fn cudaMemcpyAsync(
    dst: *mut c_void,
    src: *const c_void,
    count: usize,
    kind: cudaMemcpyKind,
    stream: cudaStream_t,
) -> Result {
    device::with_context(|driver| {
        check_kind(kind)?;
        if count == 0 {
            return Ok(());
        }
        copy_async(driver, dst, src, count, kind, stream::meant(stream))
    })
}

fn copy_async(
    driver: &Driver,
    dst: *mut c_void,
    src: *const c_void,
    count: usize,
    kind: cudaMemcpyKind,
    stream: cudaStream_t,
) -> Result {
    match kind {
        cudaMemcpyKind::cudaMemcpyHostToDevice => {
            driver.cuMemcpyHtoDAsync_v2(address(dst), src, count, stream)
        }
        cudaMemcpyKind::cudaMemcpyDeviceToHost => {
            driver.cuMemcpyDtoHAsync_v2(dst, address(src), count, stream)
        }
        cudaMemcpyKind::cudaMemcpyDeviceToDevice => {
            driver.cuMemcpyDtoDAsync_v2(address(dst), address(src), count, stream)
        }
        cudaMemcpyKind::cudaMemcpyHostToHost => {
            driver.cuMemcpy2DAsync_v2(&rows(dst, count, src, count, count, 1, kind), stream)
        }
        _ => driver.cuMemcpyAsync(address(dst), address(src), count, stream),
    }
}

pub fn check_kind(kind: cudaMemcpyKind) -> Result {
    if kind.0 <= cudaMemcpyKind::cudaMemcpyDefault.0 { Ok(()) } else { Err(Error::InvalidMemcpyDirection) }
}

pub fn cudaMemcpy2D(
    dst: *mut c_void,
    dpitch: usize,
    src: *const c_void,
    spitch: usize,
    width: usize,
    height: usize,
    kind: cudaMemcpyKind,
) -> Result {
    let driver = device::attach()?;
    check_rows((dpitch, spitch), (width, height), kind)?;
    if width == 0 || height == 0 {
        return Ok(());
    }
    let copy = rows(dst, dpitch, src, spitch, width, height, kind);
    if !stream::default().is_null() {
        driver.cuMemcpy2DAsync_v2(&copy, stream::default())?;
        return driver.cuStreamSynchronize(stream::default());
    }
    driver.cuMemcpy2DUnaligned_v2(&copy)
}

pub fn cudaMemcpy2DAsync(
    dst: *mut c_void,
    dpitch: usize,
    src: *const c_void,
    spitch: usize,
    width: usize,
    height: usize,
    kind: cudaMemcpyKind,
    stream: cudaStream_t,
) -> Result {
    let driver = device::attach()?;
    check_rows((dpitch, spitch), (width, height), kind)?;
    if width == 0 || height == 0 {
        return Ok(());
    }
    driver.cuMemcpy2DAsync_v2(&rows(dst, dpitch, src, spitch, width, height, kind), stream::meant(stream))
}

/// CUDA: a row must fit into its pitch, else cudaErrorInvalidPitchValue. A single row has no use for a pitch, and NVIDIA's own sample
/// `cuSOLVER/gesv` copies one with a pitch of 8 bytes.
fn check_rows(
    (dpitch, spitch): (usize, usize),
    (width, height): (usize, usize),
    kind: cudaMemcpyKind,
) -> Result {
    check_kind(kind)?;
    if height != 1 && (width > dpitch || width > spitch) { Err(Error::InvalidPitchValue) } else { Ok(()) }
}

/// The memory types of a copy's destination and source.
pub fn types(kind: cudaMemcpyKind) -> (CUmemorytype, CUmemorytype) {
    let (host, device) = (CUmemorytype::CU_MEMORYTYPE_HOST, CUmemorytype::CU_MEMORYTYPE_DEVICE);
    match kind {
        cudaMemcpyKind::cudaMemcpyHostToHost => (host, host),
        cudaMemcpyKind::cudaMemcpyHostToDevice => (device, host),
        cudaMemcpyKind::cudaMemcpyDeviceToHost => (host, device),
        cudaMemcpyKind::cudaMemcpyDeviceToDevice => (device, device),
        _ => (CUmemorytype::CU_MEMORYTYPE_UNIFIED, CUmemorytype::CU_MEMORYTYPE_UNIFIED),
    }
}

fn rows(
    dst: *mut c_void,
    dpitch: usize,
    src: *const c_void,
    spitch: usize,
    width: usize,
    height: usize,
    kind: cudaMemcpyKind,
) -> CUDA_MEMCPY2D {
    let (to, from) = types(kind);
    CUDA_MEMCPY2D {
        srcXInBytes: 0,
        srcY: 0,
        srcMemoryType: from,
        srcHost: src,
        srcDevice: address(src),
        srcArray: ptr::null_mut(),
        srcPitch: spitch,
        dstXInBytes: 0,
        dstY: 0,
        dstMemoryType: to,
        dstHost: dst,
        dstDevice: address(dst),
        dstArray: ptr::null_mut(),
        dstPitch: dpitch,
        WidthInBytes: width,
        Height: height,
    }
}

/// One end of a 3-D copy: the array if there is one, and the bytes of its elements.
pub fn element(driver: &Driver, array: cudaArray_t) -> Result<Option<usize>> {
    if array.is_null() {
        return Ok(None);
    }
    let found = super::array::descriptor(driver, array)?;
    super::array::element_bytes(&found).map(Some)
}

/// A box between two pitched places or arrays. CUDA: sizes and places in an array count its elements, others bytes.
pub fn boxes(driver: &Driver, parms: &cudaMemcpy3DParms) -> Result<CUDA_MEMCPY3D> {
    check_kind(parms.kind)?;
    let source = element(driver, parms.srcArray)?;
    let target = element(driver, parms.dstArray)?;
    // CUDA: two arrays with elements of different sizes cannot be copied to each other.
    if source.is_some_and(|bytes| target.is_some_and(|other| other != bytes)) {
        return Err(Error::InvalidValue("p: arrays of different elements"));
    }
    let (to, from) = types(parms.kind);
    let kind = |element: Option<usize>, linear| match element {
        Some(_) => CUmemorytype::CU_MEMORYTYPE_ARRAY,
        None => linear,
    };
    let unit = source.or(target).unwrap_or(1);
    let width = parms.extent.width.checked_mul(unit).ok_or(Error::InvalidValue("p.extent"))?;
    let x_bytes = |x: usize, element: Option<usize>| {
        x.checked_mul(element.unwrap_or(1)).ok_or(Error::InvalidValue("p.srcPos or p.dstPos"))
    };
    Ok(CUDA_MEMCPY3D {
        srcXInBytes: x_bytes(parms.srcPos.x, source)?,
        srcY: parms.srcPos.y,
        srcZ: parms.srcPos.z,
        srcMemoryType: kind(source, from),
        srcHost: parms.srcPtr.ptr,
        srcDevice: address(parms.srcPtr.ptr),
        srcArray: parms.srcArray.cast(),
        srcPitch: parms.srcPtr.pitch,
        srcHeight: parms.srcPtr.ysize,
        dstXInBytes: x_bytes(parms.dstPos.x, target)?,
        dstY: parms.dstPos.y,
        dstZ: parms.dstPos.z,
        dstMemoryType: kind(target, to),
        dstHost: parms.dstPtr.ptr,
        dstDevice: address(parms.dstPtr.ptr),
        dstArray: parms.dstArray.cast(),
        dstPitch: parms.dstPtr.pitch,
        dstHeight: parms.dstPtr.ysize,
        WidthInBytes: width,
        Height: parms.extent.height,
        Depth: parms.extent.depth,
        ..Default::default()
    })
}

pub fn cudaMemcpy3D(p: &cudaMemcpy3DParms) -> Result {
    let driver = device::attach()?;
    let copy = boxes(driver, p)?;
    if !stream::default().is_null() {
        driver.cuMemcpy3DAsync_v2(&copy, stream::default())?;
        return driver.cuStreamSynchronize(stream::default());
    }
    driver.cuMemcpy3D_v2(&copy)
}

pub fn cudaMemcpy3DAsync(p: &cudaMemcpy3DParms, stream: cudaStream_t) -> Result {
    let driver = device::attach()?;
    driver.cuMemcpy3DAsync_v2(&boxes(driver, p)?, stream::meant(stream))
}

pub fn cudaMemset(devPtr: *mut c_void, value: c_int, count: usize) -> Result {
    device::with_context(|driver| {
        if count == 0 {
            return Ok(());
        }
        // The driver knows whether the host waits for it.
        if stream::default().is_null() {
            driver.cuMemsetD8_v2(address(devPtr), low_byte(value), count)
        } else {
            driver.cuMemsetD8_v2_ptds(address(devPtr), low_byte(value), count)
        }
    })
}

pub fn cudaMemsetAsync(devPtr: *mut c_void, value: c_int, count: usize, stream: cudaStream_t) -> Result {
    device::with_context(|driver| {
        if count == 0 {
            return Ok(());
        }
        driver.cuMemsetD8Async(address(devPtr), low_byte(value), count, stream::meant(stream))
    })
}

pub fn cudaMemset2D(devPtr: *mut c_void, pitch: usize, value: c_int, width: usize, height: usize) -> Result {
    let driver = device::attach()?;
    if width == 0 || height == 0 {
        return Ok(());
    }
    if stream::default().is_null() {
        driver.cuMemsetD2D8_v2(address(devPtr), pitch, low_byte(value), width, height)
    } else {
        driver.cuMemsetD2D8_v2_ptds(address(devPtr), pitch, low_byte(value), width, height)
    }
}

pub fn cudaMemset2DAsync(
    devPtr: *mut c_void,
    pitch: usize,
    value: c_int,
    width: usize,
    height: usize,
    stream: cudaStream_t,
) -> Result {
    let driver = device::attach()?;
    if width == 0 || height == 0 {
        return Ok(());
    }
    driver.cuMemsetD2D8Async(address(devPtr), pitch, low_byte(value), width, height, stream::meant(stream))
}

pub fn cudaMemset3D(pitchedDevPtr: cudaPitchedPtr, value: c_int, extent: cudaExtent) -> Result {
    for_each_slice(pitchedDevPtr, extent, |slice| {
        cudaMemset2D(slice, pitchedDevPtr.pitch, value, extent.width, extent.height)
    })
}

pub fn cudaMemset3DAsync(
    pitchedDevPtr: cudaPitchedPtr,
    value: c_int,
    extent: cudaExtent,
    stream: cudaStream_t,
) -> Result {
    for_each_slice(pitchedDevPtr, extent, |slice| {
        cudaMemset2DAsync(slice, pitchedDevPtr.pitch, value, extent.width, extent.height, stream)
    })
}

fn for_each_slice(memory: cudaPitchedPtr, extent: cudaExtent, set: impl Fn(*mut c_void) -> Result) -> Result {
    device::attach()?;
    let slice_bytes = memory.pitch.checked_mul(memory.ysize).ok_or(Error::InvalidValue("pitchedDevPtr"))?;
    (0..extent.depth).try_for_each(|z| set(memory.ptr.wrapping_byte_add(z.wrapping_mul(slice_bytes))))
}

/// CUDA: the value is an int of which the low byte counts.
fn low_byte(value: c_int) -> u8 {
    value.to_le_bytes()[0]
}
