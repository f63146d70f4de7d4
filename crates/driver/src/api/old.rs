//! The forms that calls had before CUDA 3.2: device addresses and sizes of 32 bits.
//!
//! The rule: each is the call of today with its arguments widened and its answers narrowed, in a context that `cuCtxCreate`
//! of that time made. Memory of such a context lies where 32 bits reach (`memory::low`), so nothing is ever cut off; an
//! address from elsewhere that does not fit is an error.

use core::ffi::{CStr, c_int, c_uchar, c_uint, c_ushort, c_void};

use border::{OptOut, Out};
use cuda_abi::{
    CU_PARAM_TR_DEFAULT, CUDA_ARRAY_DESCRIPTOR, CUDA_ARRAY_DESCRIPTOR_v1, CUDA_ARRAY3D_DESCRIPTOR,
    CUDA_ARRAY3D_DESCRIPTOR_v1, CUDA_MEMCPY2D, CUDA_MEMCPY2D_v1, CUDA_MEMCPY3D, CUDA_MEMCPY3D_v1, CUarray,
    CUdeviceptr, CUdeviceptr_v1, CUfunction, CUipcMemHandle, CUmodule, CUstream, CUtexref,
};

use super::{array, copy, memory, memset, module, texture};
use crate::object::memory::low;
use crate::object::texture::TexRef;
use crate::object::{Context, Function, context};
use crate::{Error, Result};

/// The current context, made by a call of the same time.
///
/// CUDA: calls of API version 3010 and contexts of 3020 (or the other way round) do not go together.
fn of_that_time() -> Result<&'static Context> {
    let context = Context::current()?;
    if context.api_version() == context::OLD_API_VERSION { Ok(context) } else { Err(Error::InvalidContext) }
}

/// Runs the call of today and hands its answers on, if they fit.
fn narrow<T: Default, U>(
    call: impl FnOnce(Out<'_, T>) -> Result,
    fit: impl FnOnce(T) -> Result<U>,
) -> Result<U> {
    of_that_time()?;
    let mut answer = T::default();
    call(Out::from(&mut answer))?;
    fit(answer)
}

/// An address that 32 bits cannot hold was not made by calls of that time.
fn address(wide: CUdeviceptr) -> Result<CUdeviceptr_v1> {
    CUdeviceptr_v1::try_from(wide).map_err(|_| Error::InvalidValue("dptr: above 4 GiB"))
}

fn size(wide: usize) -> Result<c_uint> {
    c_uint::try_from(wide).map_err(|_| Error::InvalidValue("above 4 GiB"))
}

/// A size that only informs: no more than such a context can address.
fn at_most(wide: usize) -> c_uint {
    c_uint::try_from(wide).unwrap_or(c_uint::MAX)
}

fn wide(narrow: c_uint) -> usize {
    narrow as usize
}

pub fn cuMemAlloc(dptr: Out<'_, CUdeviceptr_v1>, bytesize: c_uint) -> Result {
    dptr.write(address(low::allocate(of_that_time()?, wide(bytesize))?)?);
    Ok(())
}

pub fn cuMemAllocPitch(
    dptr: Out<'_, CUdeviceptr_v1>,
    pPitch: Out<'_, c_uint>,
    WidthInBytes: c_uint,
    Height: c_uint,
    ElementSizeBytes: c_uint,
) -> Result {
    let context = of_that_time()?;
    let (pitch, len_bytes) = memory::pitched(wide(WidthInBytes), wide(Height), ElementSizeBytes)?;
    dptr.write(address(low::allocate(context, len_bytes)?)?);
    pPitch.write(size(pitch)?);
    Ok(())
}

pub fn cuMemFree(dptr: CUdeviceptr_v1) -> Result {
    of_that_time()?;
    memory::cuMemFree_v2(dptr.into())
}

pub fn cuMemAllocHost(pp: Out<'_, *mut c_void>, bytesize: c_uint) -> Result {
    of_that_time()?;
    memory::cuMemAllocHost_v2(pp, wide(bytesize))
}

pub fn cuMemGetInfo(free: Out<'_, c_uint>, total: Out<'_, c_uint>) -> Result {
    of_that_time()?;
    let (mut n_free, mut n_total) = (0, 0);
    memory::cuMemGetInfo_v2((&mut n_free).into(), (&mut n_total).into())?;
    free.write(at_most(n_free));
    total.write(at_most(n_total));
    Ok(())
}

pub fn cuMemGetAddressRange(
    pbase: OptOut<'_, CUdeviceptr_v1>,
    psize: OptOut<'_, c_uint>,
    dptr: CUdeviceptr_v1,
) -> Result {
    of_that_time()?;
    let (mut base, mut len_bytes) = (0, 0);
    memory::cuMemGetAddressRange_v2(Some(&mut base).into(), Some(&mut len_bytes).into(), dptr.into())?;
    pbase.write(address(base)?);
    psize.write(size(len_bytes)?);
    Ok(())
}

pub fn cuMemHostGetDevicePointer(pdptr: Out<'_, CUdeviceptr_v1>, p: *mut c_void, Flags: c_uint) -> Result {
    pdptr.write(narrow(|at| memory::cuMemHostGetDevicePointer_v2(at, p, Flags), address)?);
    Ok(())
}

/// The one form here that is not of CUDA 3.1: its second version only made the runtime enable peer access, which one device needs not.
pub fn cuIpcOpenMemHandle(pdptr: Out<'_, CUdeviceptr>, handle: CUipcMemHandle, Flags: c_uint) -> Result {
    memory::cuIpcOpenMemHandle_v2(pdptr, handle, Flags)
}

pub fn cuModuleGetGlobal(
    dptr: OptOut<'_, CUdeviceptr_v1>,
    bytes: OptOut<'_, c_uint>,
    hmod: CUmodule,
    name: &CStr,
) -> Result {
    of_that_time()?;
    let (mut at, mut len_bytes) = (0, 0);
    module::cuModuleGetGlobal_v2(Some(&mut at).into(), Some(&mut len_bytes).into(), hmod, name)?;
    if let Some(dptr) = dptr.wanted() {
        // A module does not know who will ask, so its variables may lie where 32 bits do not reach.
        dptr.write(
            address(at).map_err(|_| Error::NotSupported("cuModuleGetGlobal: a variable above 4 GiB"))?,
        );
    }
    bytes.write(size(len_bytes)?);
    Ok(())
}

/// # Safety
/// `srcHost` is NULL, or has `ByteCount` bytes.
pub unsafe fn cuMemcpyHtoD(dstDevice: CUdeviceptr_v1, srcHost: *const c_void, ByteCount: c_uint) -> Result {
    of_that_time()?;
    // SAFETY: the caller's promise.
    unsafe { copy::cuMemcpyHtoD_v2(dstDevice.into(), srcHost, wide(ByteCount)) }
}

/// # Safety
/// `dstHost` is NULL, or has `ByteCount` bytes that may be written.
pub unsafe fn cuMemcpyDtoH(dstHost: *mut c_void, srcDevice: CUdeviceptr_v1, ByteCount: c_uint) -> Result {
    of_that_time()?;
    // SAFETY: the caller's promise.
    unsafe { copy::cuMemcpyDtoH_v2(dstHost, srcDevice.into(), wide(ByteCount)) }
}

pub fn cuMemcpyDtoD(dstDevice: CUdeviceptr_v1, srcDevice: CUdeviceptr_v1, ByteCount: c_uint) -> Result {
    of_that_time()?;
    copy::cuMemcpyDtoD_v2(dstDevice.into(), srcDevice.into(), wide(ByteCount))
}

/// # Safety
/// `srcHost` is NULL, or has `ByteCount` bytes, until the stream has done the copy.
pub unsafe fn cuMemcpyHtoDAsync(
    dstDevice: CUdeviceptr_v1,
    srcHost: *const c_void,
    ByteCount: c_uint,
    hStream: CUstream,
) -> Result {
    of_that_time()?;
    // SAFETY: the caller's promise.
    unsafe { copy::cuMemcpyHtoDAsync_v2(dstDevice.into(), srcHost, wide(ByteCount), hStream) }
}

/// # Safety
/// `dstHost` is NULL, or has `ByteCount` bytes that may be written, until the stream has done the copy.
pub unsafe fn cuMemcpyDtoHAsync(
    dstHost: *mut c_void,
    srcDevice: CUdeviceptr_v1,
    ByteCount: c_uint,
    hStream: CUstream,
) -> Result {
    of_that_time()?;
    // SAFETY: the caller's promise.
    unsafe { copy::cuMemcpyDtoHAsync_v2(dstHost, srcDevice.into(), wide(ByteCount), hStream) }
}

pub fn cuMemcpyDtoDAsync(
    dstDevice: CUdeviceptr_v1,
    srcDevice: CUdeviceptr_v1,
    ByteCount: c_uint,
    hStream: CUstream,
) -> Result {
    of_that_time()?;
    copy::cuMemcpyDtoDAsync_v2(dstDevice.into(), srcDevice.into(), wide(ByteCount), hStream)
}

pub fn cuMemcpyDtoA(
    dstArray: CUarray,
    dstOffset: c_uint,
    srcDevice: CUdeviceptr_v1,
    ByteCount: c_uint,
) -> Result {
    of_that_time()?;
    array::cuMemcpyDtoA_v2(dstArray, wide(dstOffset), srcDevice.into(), wide(ByteCount))
}

pub fn cuMemcpyAtoD(
    dstDevice: CUdeviceptr_v1,
    srcArray: CUarray,
    srcOffset: c_uint,
    ByteCount: c_uint,
) -> Result {
    of_that_time()?;
    array::cuMemcpyAtoD_v2(dstDevice.into(), srcArray, wide(srcOffset), wide(ByteCount))
}

pub fn cuMemcpyHtoA(
    dstArray: CUarray,
    dstOffset: c_uint,
    srcHost: *const c_void,
    ByteCount: c_uint,
) -> Result {
    of_that_time()?;
    array::cuMemcpyHtoA_v2(dstArray, wide(dstOffset), srcHost, wide(ByteCount))
}

pub fn cuMemcpyAtoH(dstHost: *mut c_void, srcArray: CUarray, srcOffset: c_uint, ByteCount: c_uint) -> Result {
    of_that_time()?;
    array::cuMemcpyAtoH_v2(dstHost, srcArray, wide(srcOffset), wide(ByteCount))
}

pub fn cuMemcpyAtoA(
    dstArray: CUarray,
    dstOffset: c_uint,
    srcArray: CUarray,
    srcOffset: c_uint,
    ByteCount: c_uint,
) -> Result {
    of_that_time()?;
    array::cuMemcpyAtoA_v2(dstArray, wide(dstOffset), srcArray, wide(srcOffset), wide(ByteCount))
}

pub fn cuMemcpyHtoAAsync(
    dstArray: CUarray,
    dstOffset: c_uint,
    srcHost: *const c_void,
    ByteCount: c_uint,
    hStream: CUstream,
) -> Result {
    of_that_time()?;
    array::cuMemcpyHtoAAsync_v2(dstArray, wide(dstOffset), srcHost, wide(ByteCount), hStream)
}

pub fn cuMemcpyAtoHAsync(
    dstHost: *mut c_void,
    srcArray: CUarray,
    srcOffset: c_uint,
    ByteCount: c_uint,
    hStream: CUstream,
) -> Result {
    of_that_time()?;
    array::cuMemcpyAtoHAsync_v2(dstHost, srcArray, wide(srcOffset), wide(ByteCount), hStream)
}

fn wide_2d(copy: &CUDA_MEMCPY2D_v1) -> Result<CUDA_MEMCPY2D> {
    of_that_time()?;
    Ok(CUDA_MEMCPY2D {
        srcXInBytes: wide(copy.srcXInBytes),
        srcY: wide(copy.srcY),
        srcMemoryType: copy.srcMemoryType,
        srcHost: copy.srcHost,
        srcDevice: copy.srcDevice.into(),
        srcArray: copy.srcArray,
        srcPitch: wide(copy.srcPitch),
        dstXInBytes: wide(copy.dstXInBytes),
        dstY: wide(copy.dstY),
        dstMemoryType: copy.dstMemoryType,
        dstHost: copy.dstHost,
        dstDevice: copy.dstDevice.into(),
        dstArray: copy.dstArray,
        dstPitch: wide(copy.dstPitch),
        WidthInBytes: wide(copy.WidthInBytes),
        Height: wide(copy.Height),
    })
}

fn wide_3d(copy: &CUDA_MEMCPY3D_v1) -> Result<CUDA_MEMCPY3D> {
    of_that_time()?;
    Ok(CUDA_MEMCPY3D {
        srcXInBytes: wide(copy.srcXInBytes),
        srcY: wide(copy.srcY),
        srcZ: wide(copy.srcZ),
        srcLOD: wide(copy.srcLOD),
        srcMemoryType: copy.srcMemoryType,
        srcHost: copy.srcHost,
        srcDevice: copy.srcDevice.into(),
        srcArray: copy.srcArray,
        reserved0: copy.reserved0,
        srcPitch: wide(copy.srcPitch),
        srcHeight: wide(copy.srcHeight),
        dstXInBytes: wide(copy.dstXInBytes),
        dstY: wide(copy.dstY),
        dstZ: wide(copy.dstZ),
        dstLOD: wide(copy.dstLOD),
        dstMemoryType: copy.dstMemoryType,
        dstHost: copy.dstHost,
        dstDevice: copy.dstDevice.into(),
        dstArray: copy.dstArray,
        reserved1: copy.reserved1,
        dstPitch: wide(copy.dstPitch),
        dstHeight: wide(copy.dstHeight),
        WidthInBytes: wide(copy.WidthInBytes),
        Height: wide(copy.Height),
        Depth: wide(copy.Depth),
    })
}

pub fn cuMemcpy2D(pCopy: &CUDA_MEMCPY2D_v1) -> Result {
    copy::cuMemcpy2D_v2(Some(&wide_2d(pCopy)?))
}

pub fn cuMemcpy2DUnaligned(pCopy: &CUDA_MEMCPY2D_v1) -> Result {
    copy::cuMemcpy2DUnaligned_v2(Some(&wide_2d(pCopy)?))
}

pub fn cuMemcpy2DAsync(pCopy: &CUDA_MEMCPY2D_v1, hStream: CUstream) -> Result {
    copy::cuMemcpy2DAsync_v2(Some(&wide_2d(pCopy)?), hStream)
}

pub fn cuMemcpy3D(pCopy: &CUDA_MEMCPY3D_v1) -> Result {
    copy::cuMemcpy3D_v2(&wide_3d(pCopy)?)
}

pub fn cuMemcpy3DAsync(pCopy: &CUDA_MEMCPY3D_v1, hStream: CUstream) -> Result {
    copy::cuMemcpy3DAsync_v2(&wide_3d(pCopy)?, hStream)
}

pub fn cuMemsetD8(dstDevice: CUdeviceptr_v1, uc: c_uchar, N: c_uint) -> Result {
    of_that_time()?;
    memset::cuMemsetD8_v2(dstDevice.into(), uc, wide(N))
}

pub fn cuMemsetD16(dstDevice: CUdeviceptr_v1, us: c_ushort, N: c_uint) -> Result {
    of_that_time()?;
    memset::cuMemsetD16_v2(dstDevice.into(), us, wide(N))
}

pub fn cuMemsetD32(dstDevice: CUdeviceptr_v1, ui: c_uint, N: c_uint) -> Result {
    of_that_time()?;
    memset::cuMemsetD32_v2(dstDevice.into(), ui, wide(N))
}

pub fn cuMemsetD2D8(
    dstDevice: CUdeviceptr_v1,
    dstPitch: c_uint,
    uc: c_uchar,
    Width: c_uint,
    Height: c_uint,
) -> Result {
    of_that_time()?;
    memset::cuMemsetD2D8_v2(dstDevice.into(), wide(dstPitch), uc, wide(Width), wide(Height))
}

pub fn cuMemsetD2D16(
    dstDevice: CUdeviceptr_v1,
    dstPitch: c_uint,
    us: c_ushort,
    Width: c_uint,
    Height: c_uint,
) -> Result {
    of_that_time()?;
    memset::cuMemsetD2D16_v2(dstDevice.into(), wide(dstPitch), us, wide(Width), wide(Height))
}

pub fn cuMemsetD2D32(
    dstDevice: CUdeviceptr_v1,
    dstPitch: c_uint,
    ui: c_uint,
    Width: c_uint,
    Height: c_uint,
) -> Result {
    of_that_time()?;
    memset::cuMemsetD2D32_v2(dstDevice.into(), wide(dstPitch), ui, wide(Width), wide(Height))
}

fn wide_descriptor(descriptor: &CUDA_ARRAY_DESCRIPTOR_v1) -> CUDA_ARRAY_DESCRIPTOR {
    CUDA_ARRAY_DESCRIPTOR {
        Width: wide(descriptor.Width),
        Height: wide(descriptor.Height),
        Format: descriptor.Format,
        NumChannels: descriptor.NumChannels,
    }
}

pub fn cuArrayCreate(pHandle: Out<'_, CUarray>, pAllocateArray: &CUDA_ARRAY_DESCRIPTOR_v1) -> Result {
    of_that_time()?;
    array::cuArrayCreate_v2(pHandle, &wide_descriptor(pAllocateArray))
}

pub fn cuArrayGetDescriptor(pArrayDescriptor: Out<'_, CUDA_ARRAY_DESCRIPTOR_v1>, hArray: CUarray) -> Result {
    pArrayDescriptor.write(narrow(
        |descriptor| array::cuArrayGetDescriptor_v2(descriptor, hArray),
        |all: CUDA_ARRAY_DESCRIPTOR| {
            Ok(CUDA_ARRAY_DESCRIPTOR_v1 {
                Width: size(all.Width)?,
                Height: size(all.Height)?,
                Format: all.Format,
                NumChannels: all.NumChannels,
            })
        },
    )?);
    Ok(())
}

pub fn cuArray3DCreate(pHandle: Out<'_, CUarray>, pAllocateArray: &CUDA_ARRAY3D_DESCRIPTOR_v1) -> Result {
    of_that_time()?;
    let descriptor = CUDA_ARRAY3D_DESCRIPTOR {
        Width: wide(pAllocateArray.Width),
        Height: wide(pAllocateArray.Height),
        Depth: wide(pAllocateArray.Depth),
        Format: pAllocateArray.Format,
        NumChannels: pAllocateArray.NumChannels,
        Flags: pAllocateArray.Flags,
    };
    array::cuArray3DCreate_v2(pHandle, &descriptor)
}

pub fn cuArray3DGetDescriptor(
    pArrayDescriptor: Out<'_, CUDA_ARRAY3D_DESCRIPTOR_v1>,
    hArray: CUarray,
) -> Result {
    pArrayDescriptor.write(narrow(
        |descriptor| array::cuArray3DGetDescriptor_v2(descriptor, hArray),
        |all: CUDA_ARRAY3D_DESCRIPTOR| {
            Ok(CUDA_ARRAY3D_DESCRIPTOR_v1 {
                Width: size(all.Width)?,
                Height: size(all.Height)?,
                Depth: size(all.Depth)?,
                Format: all.Format,
                NumChannels: all.NumChannels,
                Flags: all.Flags,
            })
        },
    )?);
    Ok(())
}

pub fn cuTexRefSetAddress(
    ByteOffset: OptOut<'_, c_uint>,
    hTexRef: CUtexref,
    dptr: CUdeviceptr_v1,
    bytes: c_uint,
) -> Result {
    of_that_time()?;
    let mut offset = 0;
    // CUDA: without a place for the offset the address has to be aligned.
    let wanted = ByteOffset.is_wanted().then_some(&mut offset);
    texture::cuTexRefSetAddress_v2(wanted.into(), hTexRef, dptr.into(), wide(bytes))?;
    ByteOffset.write(size(offset)?);
    Ok(())
}

pub fn cuTexRefSetAddress2D(
    hTexRef: CUtexref,
    desc: &CUDA_ARRAY_DESCRIPTOR_v1,
    dptr: CUdeviceptr_v1,
    Pitch: c_uint,
) -> Result {
    of_that_time()?;
    texture::cuTexRefSetAddress2D_v2(hTexRef, &wide_descriptor(desc), dptr.into(), wide(Pitch))
}

pub fn cuTexRefGetAddress(pdptr: Out<'_, CUdeviceptr_v1>, hTexRef: CUtexref) -> Result {
    pdptr.write(narrow(|at| texture::cuTexRefGetAddress_v2(at, hTexRef), address)?);
    Ok(())
}

/// Says that a kernel uses a texture reference. Those of its module are known to it since CUDA 3.2.
pub fn cuParamSetTexRef(hfunc: CUfunction, texunit: c_int, hTexRef: CUtexref) -> Result {
    Function::from_handle(hfunc)?;
    // CUDA: no other unit than the default one since then.
    if texunit != CU_PARAM_TR_DEFAULT {
        return Err(Error::InvalidValue("texunit"));
    }
    TexRef::with(hTexRef, |_| Ok(()))
}
