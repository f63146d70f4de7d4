//! Memory Management: arrays and mipmapped arrays, and the copies that name one by its bytes.

use core::ffi::{c_uint, c_void};

use border::Out;
use cuda_abi::{
    CUDA_ARRAY_DESCRIPTOR, CUDA_ARRAY_MEMORY_REQUIREMENTS, CUDA_ARRAY_SPARSE_PROPERTIES,
    CUDA_ARRAY3D_DESCRIPTOR, CUDA_MEMCPY2D, CUarray, CUdevice, CUdeviceptr, CUmemorytype, CUmipmappedArray,
    CUstream,
};

use super::copy::{cuMemcpy2DAsync_v2, cuMemcpy2DUnaligned_v2};
use crate::object::array::{Array, Mipmap};
use crate::object::{Context, Device};
use crate::{Error, Result};

pub fn cuArrayCreate_v2(pHandle: Out<'_, CUarray>, pAllocateArray: &CUDA_ARRAY_DESCRIPTOR) -> Result {
    let all = CUDA_ARRAY3D_DESCRIPTOR {
        Width: pAllocateArray.Width,
        Height: pAllocateArray.Height,
        Depth: 0,
        Format: pAllocateArray.Format,
        NumChannels: pAllocateArray.NumChannels,
        Flags: 0,
    };
    pHandle.write(Array::create(&all)?);
    Ok(())
}

pub fn cuArray3DCreate_v2(pHandle: Out<'_, CUarray>, pAllocateArray: &CUDA_ARRAY3D_DESCRIPTOR) -> Result {
    pHandle.write(Array::create(pAllocateArray)?);
    Ok(())
}

pub fn cuArrayGetDescriptor_v2(pArrayDescriptor: Out<'_, CUDA_ARRAY_DESCRIPTOR>, hArray: CUarray) -> Result {
    let all = Array::from_handle(hArray)?.descriptor;
    pArrayDescriptor.write(CUDA_ARRAY_DESCRIPTOR {
        Width: all.Width,
        Height: all.Height,
        Format: all.Format,
        NumChannels: all.NumChannels,
    });
    Ok(())
}

pub fn cuArray3DGetDescriptor_v2(
    pArrayDescriptor: Out<'_, CUDA_ARRAY3D_DESCRIPTOR>,
    hArray: CUarray,
) -> Result {
    pArrayDescriptor.write(Array::from_handle(hArray)?.descriptor);
    Ok(())
}

pub fn cuArrayDestroy(hArray: CUarray) -> Result {
    Array::destroy(hArray)
}

/// CUDA: only arrays of a planar (video) format have planes, and there are none of those.
pub fn cuArrayGetPlane(_pPlaneArray: Out<'_, CUarray>, hArray: CUarray, _planeIdx: c_uint) -> Result {
    Array::from_handle(hArray)?;
    Err(Error::InvalidValue("hArray: its format has no planes"))
}

/// CUDA: only arrays that are mapped later have requirements, and there are none of those.
pub fn cuArrayGetMemoryRequirements(
    _memoryRequirements: Out<'_, CUDA_ARRAY_MEMORY_REQUIREMENTS>,
    array: CUarray,
    device: CUdevice,
) -> Result {
    Array::from_handle(array)?;
    Device::get(device)?;
    Err(Error::InvalidValue("array: made without CUDA_ARRAY3D_DEFERRED_MAPPING"))
}

/// CUDA: only sparse arrays have the properties, and there are none of those.
pub fn cuArrayGetSparseProperties(
    _sparseProperties: Out<'_, CUDA_ARRAY_SPARSE_PROPERTIES>,
    array: CUarray,
) -> Result {
    Array::from_handle(array)?;
    Err(Error::InvalidValue("array: made without CUDA_ARRAY3D_SPARSE"))
}

pub fn cuMipmappedArrayCreate(
    pHandle: Out<'_, CUmipmappedArray>,
    pMipmappedArrayDesc: &CUDA_ARRAY3D_DESCRIPTOR,
    numMipmapLevels: c_uint,
) -> Result {
    pHandle.write(Mipmap::create(pMipmappedArrayDesc, numMipmapLevels)?);
    Ok(())
}

pub fn cuMipmappedArrayGetLevel(
    pLevelArray: Out<'_, CUarray>,
    hMipmappedArray: CUmipmappedArray,
    level: c_uint,
) -> Result {
    pLevelArray.write(Mipmap::from_handle(hMipmappedArray)?.level(level)?);
    Ok(())
}

pub fn cuMipmappedArrayDestroy(hMipmappedArray: CUmipmappedArray) -> Result {
    Mipmap::destroy(hMipmappedArray)
}

pub fn cuMipmappedArrayGetMemoryRequirements(
    _memoryRequirements: Out<'_, CUDA_ARRAY_MEMORY_REQUIREMENTS>,
    mipmap: CUmipmappedArray,
    device: CUdevice,
) -> Result {
    Mipmap::from_handle(mipmap)?;
    Device::get(device)?;
    Err(Error::InvalidValue("mipmap: made without CUDA_ARRAY3D_DEFERRED_MAPPING"))
}

pub fn cuMipmappedArrayGetSparseProperties(
    _sparseProperties: Out<'_, CUDA_ARRAY_SPARSE_PROPERTIES>,
    mipmap: CUmipmappedArray,
) -> Result {
    Mipmap::from_handle(mipmap)?;
    Err(Error::InvalidValue("mipmap: made without CUDA_ARRAY3D_SPARSE"))
}

/// One end of a copy that counts bytes from the array's start, row after row.
#[derive(Clone, Copy)]
enum End {
    Array(CUarray, usize),
    Device(CUdeviceptr),
    Host(*mut c_void),
}

impl End {
    /// Bytes up to the end of the row that `done` lies in, and the place: (row, byte in it).
    fn row(self, done: usize, row_bytes: Option<usize>) -> (usize, usize, usize) {
        match (self, row_bytes) {
            (End::Array(_, offset), Some(row_bytes)) => {
                let at = offset.saturating_add(done);
                (row_bytes - at % row_bytes, at / row_bytes, at % row_bytes)
            }
            _ => (usize::MAX, 0, 0),
        }
    }

    fn row_bytes(self) -> Result<Option<usize>> {
        match self {
            End::Array(handle, _) => Ok(Some(Array::from_handle(handle)?.row_bytes().max(1))),
            _ => Ok(None),
        }
    }
}

/// Copies `count` bytes row by row; each row is a copy of its own.
fn linear(target: End, source: End, count: usize, copy: impl Fn(Option<&CUDA_MEMCPY2D>) -> Result) -> Result {
    Context::current()?;
    let (target_row, source_row) = (target.row_bytes()?, source.row_bytes()?);
    let mut done = 0;
    while done < count {
        let (target_left, target_y, target_x) = target.row(done, target_row);
        let (source_left, source_y, source_x) = source.row(done, source_row);
        let width = (count - done).min(target_left).min(source_left);
        let mut piece = CUDA_MEMCPY2D { WidthInBytes: width, Height: 1, ..Default::default() };
        match source {
            End::Array(array, _) => {
                piece.srcMemoryType = CUmemorytype::CU_MEMORYTYPE_ARRAY;
                (piece.srcArray, piece.srcXInBytes, piece.srcY) = (array, source_x, source_y);
            }
            End::Device(at) => {
                piece.srcMemoryType = CUmemorytype::CU_MEMORYTYPE_DEVICE;
                piece.srcDevice = at + done as u64;
            }
            End::Host(at) => {
                piece.srcMemoryType = CUmemorytype::CU_MEMORYTYPE_HOST;
                piece.srcHost = at.wrapping_byte_add(done);
            }
        }
        match target {
            End::Array(array, _) => {
                piece.dstMemoryType = CUmemorytype::CU_MEMORYTYPE_ARRAY;
                (piece.dstArray, piece.dstXInBytes, piece.dstY) = (array, target_x, target_y);
            }
            End::Device(at) => {
                piece.dstMemoryType = CUmemorytype::CU_MEMORYTYPE_DEVICE;
                piece.dstDevice = at + done as u64;
            }
            End::Host(at) => {
                piece.dstMemoryType = CUmemorytype::CU_MEMORYTYPE_HOST;
                piece.dstHost = at.wrapping_byte_add(done);
            }
        }
        copy(Some(&piece))?;
        done += width;
    }
    Ok(())
}

pub fn cuMemcpyAtoH_v2(
    dstHost: *mut c_void,
    srcArray: CUarray,
    srcOffset: usize,
    ByteCount: usize,
) -> Result {
    linear(End::Host(dstHost), End::Array(srcArray, srcOffset), ByteCount, |piece| {
        cuMemcpy2DUnaligned_v2(piece)
    })
}

pub fn cuMemcpyHtoA_v2(
    dstArray: CUarray,
    dstOffset: usize,
    srcHost: *const c_void,
    ByteCount: usize,
) -> Result {
    let source = End::Host(srcHost.cast_mut());
    linear(End::Array(dstArray, dstOffset), source, ByteCount, cuMemcpy2DUnaligned_v2)
}

pub fn cuMemcpyAtoD_v2(
    dstDevice: CUdeviceptr,
    srcArray: CUarray,
    srcOffset: usize,
    ByteCount: usize,
) -> Result {
    let source = End::Array(srcArray, srcOffset);
    linear(End::Device(dstDevice), source, ByteCount, cuMemcpy2DUnaligned_v2)
}

pub fn cuMemcpyDtoA_v2(
    dstArray: CUarray,
    dstOffset: usize,
    srcDevice: CUdeviceptr,
    ByteCount: usize,
) -> Result {
    let target = End::Array(dstArray, dstOffset);
    linear(target, End::Device(srcDevice), ByteCount, cuMemcpy2DUnaligned_v2)
}

pub fn cuMemcpyAtoA_v2(
    dstArray: CUarray,
    dstOffset: usize,
    srcArray: CUarray,
    srcOffset: usize,
    ByteCount: usize,
) -> Result {
    let (target, source) = (End::Array(dstArray, dstOffset), End::Array(srcArray, srcOffset));
    linear(target, source, ByteCount, cuMemcpy2DUnaligned_v2)
}

pub fn cuMemcpyAtoHAsync_v2(
    dstHost: *mut c_void,
    srcArray: CUarray,
    srcOffset: usize,
    ByteCount: usize,
    hStream: CUstream,
) -> Result {
    let source = End::Array(srcArray, srcOffset);
    linear(End::Host(dstHost), source, ByteCount, |piece| cuMemcpy2DAsync_v2(piece, hStream))
}

pub fn cuMemcpyHtoAAsync_v2(
    dstArray: CUarray,
    dstOffset: usize,
    srcHost: *const c_void,
    ByteCount: usize,
    hStream: CUstream,
) -> Result {
    let (target, source) = (End::Array(dstArray, dstOffset), End::Host(srcHost.cast_mut()));
    linear(target, source, ByteCount, |piece| cuMemcpy2DAsync_v2(piece, hStream))
}
