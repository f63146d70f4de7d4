//! Tensor Map Object Management: descriptions of tensors that kernels copy boxes of.
//!
//! A map's 128 bytes are opaque to programs; ours are `compiler::tensor_map`'s.

use core::ffi::{c_int, c_void};

use border::Out;
use compiler::tensor_map::{BYTES, Element, Im2col, Swizzle, TensorMap};
use cuda_abi::{
    CUtensorMap, CUtensorMapDataType, CUtensorMapFloatOOBfill, CUtensorMapInterleave, CUtensorMapL2promotion,
    CUtensorMapSwizzle, cuuint32_t, cuuint64_t,
};

use crate::{Error, Result};

/// The arguments that both kinds of maps have.
struct Tensor {
    data_type: CUtensorMapDataType,
    rank: cuuint32_t,
    address: *mut c_void,
    dims: *const cuuint64_t,
    strides: *const cuuint64_t,
    steps: *const cuuint32_t,
    interleave: CUtensorMapInterleave,
    swizzle: CUtensorMapSwizzle,
    l2_promotion: CUtensorMapL2promotion,
    fill: CUtensorMapFloatOOBfill,
}

/// # Safety
/// The arrays are NULL, or have as many elements as there are dimensions.
pub unsafe fn cuTensorMapEncodeTiled(
    tensorMap: Out<'_, CUtensorMap>,
    tensorDataType: CUtensorMapDataType,
    tensorRank: cuuint32_t,
    globalAddress: *mut c_void,
    globalDim: *const cuuint64_t,
    globalStrides: *const cuuint64_t,
    boxDim: *const cuuint32_t,
    elementStrides: *const cuuint32_t,
    interleave: CUtensorMapInterleave,
    swizzle: CUtensorMapSwizzle,
    l2Promotion: CUtensorMapL2promotion,
    oobFill: CUtensorMapFloatOOBfill,
) -> Result {
    let tensor = Tensor {
        data_type: tensorDataType,
        rank: tensorRank,
        address: globalAddress,
        dims: globalDim,
        strides: globalStrides,
        steps: elementStrides,
        interleave,
        swizzle,
        l2_promotion: l2Promotion,
        fill: oobFill,
    };
    // SAFETY: the caller's promise.
    let mut map = unsafe { tensor.read() }?;
    // SAFETY: the caller's promise.
    for (axis, size) in unsafe { list(boxDim, map.rank.into(), "boxDim") }?.iter().enumerate() {
        // CUDA: 1 to 256 elements along each dimension.
        map.box_dims[axis] = within(u64::from(*size), 1, 256).ok_or(Error::InvalidValue("boxDim"))? as u16;
    }
    check_row(&map, map.box_dims[0].into(), "boxDim")?;
    write(&tensorMap, &map)
}

/// # Safety
/// The arrays are NULL, or have as many elements as there are dimensions.
pub unsafe fn cuTensorMapEncodeIm2col(
    tensorMap: Out<'_, CUtensorMap>,
    tensorDataType: CUtensorMapDataType,
    tensorRank: cuuint32_t,
    globalAddress: *mut c_void,
    globalDim: *const cuuint64_t,
    globalStrides: *const cuuint64_t,
    pixelBoxLowerCorner: *const c_int,
    pixelBoxUpperCorner: *const c_int,
    channelsPerPixel: cuuint32_t,
    pixelsPerColumn: cuuint32_t,
    elementStrides: *const cuuint32_t,
    interleave: CUtensorMapInterleave,
    swizzle: CUtensorMapSwizzle,
    l2Promotion: CUtensorMapL2promotion,
    oobFill: CUtensorMapFloatOOBfill,
) -> Result {
    let tensor = Tensor {
        data_type: tensorDataType,
        rank: tensorRank,
        address: globalAddress,
        dims: globalDim,
        strides: globalStrides,
        steps: elementStrides,
        interleave,
        swizzle,
        l2_promotion: l2Promotion,
        fill: oobFill,
    };
    // SAFETY: the caller's promise.
    let mut map = unsafe { tensor.read() }?;
    // CUDA: channels, one to three dimensions of pixels, and images.
    let n_axes = usize::from(map.rank).checked_sub(2).filter(|&n| n > 0);
    let n_axes = n_axes.ok_or(Error::InvalidValue("tensorRank"))?;
    let channels = within(channelsPerPixel.into(), 1, 256).ok_or(Error::InvalidValue("channelsPerPixel"))?;
    let pixels = within(pixelsPerColumn.into(), 1, 1024).ok_or(Error::InvalidValue("pixelsPerColumn"))?;
    // CUDA: the more dimensions, the fewer bits each offset has.
    let most = [32767, 127, 15][n_axes - 1];
    let corner = |pointer: *const c_int, name: &'static str| {
        let mut corner = [0i16; 3];
        // SAFETY: the caller's promise.
        for (place, &offset) in corner.iter_mut().zip(unsafe { list(pointer, n_axes, name) }?) {
            if !(-most - 1..=most).contains(&offset) {
                return Err(Error::InvalidValue(name));
            }
            *place = offset as i16;
        }
        Ok(corner)
    };
    let im2col = Im2col {
        lower: corner(pixelBoxLowerCorner, "pixelBoxLowerCorner")?,
        upper: corner(pixelBoxUpperCorner, "pixelBoxUpperCorner")?,
        channels_per_pixel: channels as u16,
        pixels_per_column: pixels as u16,
    };
    for axis in 0..n_axes {
        let last = map.dims[axis + 1] as i64 - 1 + i64::from(im2col.upper[axis]);
        // CUDA: the box is not empty.
        if last < i64::from(im2col.lower[axis]) {
            return Err(Error::InvalidValue("pixelBoxUpperCorner"));
        }
    }
    map.im2col = Some(im2col);
    check_row(&map, channels, "channelsPerPixel")?;
    write(&tensorMap, &map)
}

/// The same tensor elsewhere.
///
/// # Safety
/// `tensorMap` may be read.
pub unsafe fn cuTensorMapReplaceAddress(
    tensorMap: Out<'_, CUtensorMap>,
    globalAddress: *mut c_void,
) -> Result {
    let place = place_of(&tensorMap)?;
    // SAFETY: the caller's promise: a readable map.
    let mut map = TensorMap::decode(&unsafe { place.read() }).ok_or(Error::InvalidValue("tensorMap"))?;
    let is_padded = map.element.together() == 16;
    map.address = aligned_address(globalAddress, if is_padded { 32 } else { 16 })?;
    write(&tensorMap, &map)
}

fn within(value: u64, least: u64, most: u64) -> Option<u64> {
    (least..=most).contains(&value).then_some(value)
}

/// As many entries as the map has dimensions.
///
/// # Safety
/// `pointer` is NULL, or has `count` elements for `'a`.
unsafe fn list<'a, T>(pointer: *const T, count: usize, name: &'static str) -> Result<&'a [T]> {
    match count {
        0 => Ok(&[]),
        _ if pointer.is_null() => Err(Error::InvalidValue(name)),
        // SAFETY: the caller's promise: that many entries.
        _ => Ok(unsafe { core::slice::from_raw_parts(pointer, count) }),
    }
}

/// CUDA: aligned to 16 bytes, or to 32 where the map's elements are padded in shared memory. Null is an address as any other: of a map
/// whose address kernels replace it is never used.
fn aligned_address(address: *mut c_void, align: u64) -> Result<u64> {
    let number = address as u64;
    if !number.is_multiple_of(align) {
        return Err(Error::InvalidValue("globalAddress"));
    }
    Ok(number)
}

/// The bytes of the map; CUDA wants them aligned to 64.
fn place_of(map: &Out<'_, CUtensorMap>) -> Result<*mut [u8; BYTES]> {
    let place = map.as_ptr().cast::<[u8; BYTES]>();
    if (place as usize).is_multiple_of(64) { Ok(place) } else { Err(Error::InvalidValue("tensorMap")) }
}

fn write(map: &Out<'_, CUtensorMap>, what: &TensorMap) -> Result {
    // SAFETY: `Out`'s promise, byte by byte.
    unsafe { place_of(map)?.write(what.encode()) };
    Ok(())
}

/// CUDA: a row of the box in shared memory is a multiple of 16 bytes, and not longer than what is swizzled.
fn check_row(map: &TensorMap, elements: u64, name: &'static str) -> Result {
    let (count, together) = (elements as usize, map.element.together());
    // CUDA: of elements that are padded in shared memory a row has 128.
    if together == 16 && count != 128 || !count.is_multiple_of(together) {
        return Err(Error::InvalidValue(name));
    }
    let bytes = count / together * map.element.shared_bytes();
    let fits = map.swizzle == Swizzle::None || bytes <= map.swizzle.span();
    if bytes.is_multiple_of(16) && fits { Ok(()) } else { Err(Error::InvalidValue(name)) }
}

impl Tensor {
    /// # Safety
    /// The arrays are NULL, or have as many elements as there are dimensions.
    unsafe fn read(&self) -> Result<TensorMap> {
        // CUDA: 1 to 5 dimensions.
        let rank = within(self.rank.into(), 1, 5).ok_or(Error::InvalidValue("tensorRank"))? as usize;
        if self.interleave.0 > 2 || self.l2_promotion.0 > 3 || self.fill.0 > 1 {
            return Err(Error::InvalidValue("interleave, l2Promotion or oobFill"));
        }
        if self.interleave != CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_NONE {
            // CUDA: three dimensions at least.
            return Err(match rank {
                3.. => Error::NotSupported("tensor maps of interleaved layouts"),
                _ => Error::InvalidValue("tensorRank"),
            });
        }
        let element = Element::of_number(self.data_type.0).ok_or(Error::InvalidValue("tensorDataType"))?;
        let is_padded = element.together() == 16;
        let swizzle = Swizzle::of_number(self.swizzle.0).ok_or(Error::InvalidValue("swizzle"))?;
        // CUDA: the elements that are padded in shared memory know two patterns, or for those of 4 bits none.
        let is_of_padded = match element {
            Element::U6Padded => matches!(swizzle, Swizzle::None | Swizzle::Bytes128),
            _ => matches!(swizzle, Swizzle::None | Swizzle::Bytes128 | Swizzle::Bytes128By32),
        };
        if is_padded && !is_of_padded {
            return Err(Error::InvalidValue("swizzle"));
        }
        let nan_fill = self.fill.0 == 1;
        // CUDA: only floats can become NaN.
        if nan_fill && !element.is_float() {
            return Err(Error::InvalidValue("oobFill"));
        }
        let mut map = TensorMap {
            address: aligned_address(self.address, if is_padded { 32 } else { 16 })?,
            dims: [1; 5],
            steps: [1; 5],
            rank: rank as u8,
            element,
            swizzle,
            nan_fill,
            ..TensorMap::default()
        };
        // SAFETY: the caller's promise.
        for (axis, &dim) in unsafe { list(self.dims, rank, "globalDim") }?.iter().enumerate() {
            map.dims[axis] = within(dim, 1, 1 << 32).ok_or(Error::InvalidValue("globalDim"))?;
        }
        // CUDA: rows of elements that share bytes are of whole bytes, or of whole boxes where they are padded.
        if !map.dims[0].is_multiple_of(if is_padded { 128 } else { element.together() as u64 }) {
            return Err(Error::InvalidValue("globalDim"));
        }
        // SAFETY: the caller's promise.
        for (axis, &stride) in unsafe { list(self.strides, rank - 1, "globalStrides") }?.iter().enumerate() {
            // CUDA: multiples of 16, or of 32 where elements are padded, below 2^40.
            if !stride.is_multiple_of(if is_padded { 32 } else { 16 }) || stride >= 1 << 40 {
                return Err(Error::InvalidValue("globalStrides"));
            }
            map.strides[axis] = stride;
        }
        // SAFETY: the caller's promise.
        for (axis, &step) in unsafe { list(self.steps, rank, "elementStrides") }?.iter().enumerate() {
            let step = within(step.into(), 1, 8).ok_or(Error::InvalidValue("elementStrides"))?;
            // CUDA: dimension 0 has no step.
            map.steps[axis] = if axis == 0 { 1 } else { step as u8 };
        }
        Ok(map)
    }
}

/// CUDA: where the class has no effect, which is before compute capability 10, all requests succeed and give the small one.
pub fn cuTensorMapSetAllocationClass(
    tensorMap: *mut CUtensorMap,
    allocClass: cuda_abi::CUtensorMapAllocClass,
    outAllocClass: border::OptOut<'_, cuda_abi::CUtensorMapAllocClass>,
) -> Result {
    type Class = cuda_abi::CUtensorMapAllocClass;
    outAllocClass.write(Class::CU_TENSOR_MAP_ALLOC_CLASS_SMALL);
    crate::process::driver()?;
    let known = [
        Class::CU_TENSOR_MAP_ALLOC_CLASS_AUTO,
        Class::CU_TENSOR_MAP_ALLOC_CLASS_SMALL,
        Class::CU_TENSOR_MAP_ALLOC_CLASS_LARGE,
    ];
    if tensorMap.is_null() || !known.contains(&allocClass) {
        return Err(Error::InvalidValue("tensorMap or allocClass"));
    }
    Ok(())
}

/// CUDA: maps of this kind are for compute capability 10.0 and later, where kernels have instructions that read them.
pub fn cuTensorMapEncodeIm2colWide(
    tensorMap: *mut CUtensorMap,
    _tensorDataType: cuda_abi::CUtensorMapDataType,
    _tensorRank: u32,
    globalAddress: *mut core::ffi::c_void,
    _globalDim: *const u64,
    _globalStrides: *const u64,
    _pixelBoxLowerCornerWidth: core::ffi::c_int,
    _pixelBoxUpperCornerWidth: core::ffi::c_int,
    _channelsPerPixel: u32,
    _pixelsPerColumn: u32,
    _elementStrides: *const u32,
    _interleave: cuda_abi::CUtensorMapInterleave,
    _mode: cuda_abi::CUtensorMapIm2ColWideMode,
    _swizzle: cuda_abi::CUtensorMapSwizzle,
    _l2Promotion: cuda_abi::CUtensorMapL2promotion,
    _oobFill: cuda_abi::CUtensorMapFloatOOBfill,
) -> Result {
    crate::process::driver()?;
    if tensorMap.is_null() || globalAddress.is_null() {
        return Err(Error::InvalidValue("tensorMap or globalAddress"));
    }
    Err(Error::NotSupported("cuTensorMapEncodeIm2colWide: maps of compute capability 10.0"))
}
