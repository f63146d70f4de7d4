//! Texture and surface objects. Descriptions differ by name between the majors only; handles are the driver's.

use core::ffi::c_int;
use std::ptr;

use border::Out;
use cuda_abi::runtime::{
    cudaChannelFormatDesc, cudaResourceType, cudaResourceViewFormat, cudaSurfaceObject_t,
    cudaTextureAddressMode, cudaTextureDesc_v2, cudaTextureFilterMode, cudaTextureObject_t,
    cudaTextureReadMode, v11, v12, v13,
};
use cuda_abi::{
    CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION, CU_TRSF_NORMALIZED_COORDINATES, CU_TRSF_READ_AS_INTEGER,
    CU_TRSF_SEAMLESS_CUBEMAP, CU_TRSF_SRGB, CUDA_RESOURCE_DESC, CUDA_RESOURCE_VIEW_DESC, CUDA_TEXTURE_DESC,
    CUaddress_mode, CUarray_format, CUfilter_mode, CUresourceViewFormat, CUresourcetype,
};

use super::array::{descriptor, driver_array, driver_mipmap};
use super::channel::{channel_desc, format_of};
use super::memory::{address, pointer};
use crate::{Error, Result, device};

/// The driver's description of what a texture reads.
macro_rules! resource_of {
    ($desc:expr) => {{
        let desc = $desc;
        let mut to = CUDA_RESOURCE_DESC::default();
        // SAFETY: each member is read when the type says that it is the one set; what is written is plain data.
        unsafe {
            match desc.resType {
                cudaResourceType::cudaResourceTypeArray => {
                    to.resType = CUresourcetype::CU_RESOURCE_TYPE_ARRAY;
                    to.res.array.hArray = driver_array(desc.res.array.array);
                }
                cudaResourceType::cudaResourceTypeMipmappedArray => {
                    to.resType = CUresourcetype::CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
                    to.res.mipmap.hMipmappedArray = driver_mipmap(desc.res.mipmap.mipmap);
                }
                cudaResourceType::cudaResourceTypeLinear => {
                    let from = desc.res.linear;
                    let (format, n_channels) = format_of(&from.desc)?;
                    to.resType = CUresourcetype::CU_RESOURCE_TYPE_LINEAR;
                    to.res.linear.devPtr = address(from.devPtr);
                    to.res.linear.format = format;
                    to.res.linear.numChannels = n_channels;
                    to.res.linear.sizeInBytes = from.sizeInBytes;
                }
                cudaResourceType::cudaResourceTypePitch2D => {
                    let from = desc.res.pitch2D;
                    let (format, n_channels) = format_of(&from.desc)?;
                    to.resType = CUresourcetype::CU_RESOURCE_TYPE_PITCH2D;
                    to.res.pitch2D.devPtr = address(from.devPtr);
                    to.res.pitch2D.format = format;
                    to.res.pitch2D.numChannels = n_channels;
                    to.res.pitch2D.width = from.width;
                    to.res.pitch2D.height = from.height;
                    to.res.pitch2D.pitchInBytes = from.pitchInBytes;
                }
                _ => return Err(Error::InvalidValue("pResDesc.resType")),
            }
        }
        to
    }};
}

/// The way back, into a description of the major's own.
macro_rules! resource_into {
    ($from:expr, $type:ty) => {{
        let from: CUDA_RESOURCE_DESC = $from;
        let mut to = <$type>::default();
        // SAFETY: each member is read when the type says that it is the one set; what is written is plain data.
        unsafe {
            match from.resType {
                CUresourcetype::CU_RESOURCE_TYPE_ARRAY => {
                    to.resType = cudaResourceType::cudaResourceTypeArray;
                    to.res.array.array = from.res.array.hArray.cast();
                }
                CUresourcetype::CU_RESOURCE_TYPE_MIPMAPPED_ARRAY => {
                    to.resType = cudaResourceType::cudaResourceTypeMipmappedArray;
                    to.res.mipmap.mipmap = from.res.mipmap.hMipmappedArray.cast();
                }
                CUresourcetype::CU_RESOURCE_TYPE_LINEAR => {
                    let it = from.res.linear;
                    to.resType = cudaResourceType::cudaResourceTypeLinear;
                    to.res.linear.devPtr = pointer(it.devPtr);
                    to.res.linear.desc = channel_desc(it.format, it.numChannels)?;
                    to.res.linear.sizeInBytes = it.sizeInBytes;
                }
                _ => {
                    let it = from.res.pitch2D;
                    to.resType = cudaResourceType::cudaResourceTypePitch2D;
                    to.res.pitch2D.devPtr = pointer(it.devPtr);
                    to.res.pitch2D.desc = channel_desc(it.format, it.numChannels)?;
                    to.res.pitch2D.width = it.width;
                    to.res.pitch2D.height = it.height;
                    to.res.pitch2D.pitchInBytes = it.pitchInBytes;
                }
            }
        }
        to
    }};
}

macro_rules! view_of {
    ($desc:expr) => {
        $desc.map(|desc| CUDA_RESOURCE_VIEW_DESC {
            format: CUresourceViewFormat(desc.format.0),
            width: desc.width,
            height: desc.height,
            depth: desc.depth,
            firstMipmapLevel: desc.firstMipmapLevel,
            lastMipmapLevel: desc.lastMipmapLevel,
            firstLayer: desc.firstLayer,
            lastLayer: desc.lastLayer,
            reserved: [0; 16],
        })
    };
}

macro_rules! view_into {
    ($object:expr, $type:ty) => {{
        let mut from = CUDA_RESOURCE_VIEW_DESC::default();
        device::attach()?.cuTexObjectGetResourceViewDesc(&mut from, $object)?;
        let mut to = <$type>::default();
        to.format = cudaResourceViewFormat(from.format.0);
        to.width = from.width;
        to.height = from.height;
        to.depth = from.depth;
        to.firstMipmapLevel = from.firstMipmapLevel;
        to.lastMipmapLevel = from.lastMipmapLevel;
        to.firstLayer = from.firstLayer;
        to.lastLayer = from.lastLayer;
        to
    }};
}

/// The sampler in the newest major's form.
fn newest(desc: &v11::cudaTextureDesc) -> v13::cudaTextureDesc {
    v13::cudaTextureDesc {
        addressMode: desc.addressMode,
        filterMode: desc.filterMode,
        readMode: desc.readMode,
        sRGB: desc.sRGB,
        borderColor: desc.borderColor,
        normalizedCoords: desc.normalizedCoords,
        maxAnisotropy: desc.maxAnisotropy,
        mipmapFilterMode: desc.mipmapFilterMode,
        mipmapLevelBias: desc.mipmapLevelBias,
        minMipmapLevelClamp: desc.minMipmapLevelClamp,
        maxMipmapLevelClamp: desc.maxMipmapLevelClamp,
        disableTrilinearOptimization: desc.disableTrilinearOptimization,
        seamlessCubemap: 0,
    }
}

macro_rules! newest_of {
    ($($type:ty),*) => {$(
        impl Newest for $type {
            fn newest(&self) -> v13::cudaTextureDesc {
                v13::cudaTextureDesc {
                    addressMode: self.addressMode,
                    filterMode: self.filterMode,
                    readMode: self.readMode,
                    sRGB: self.sRGB,
                    borderColor: self.borderColor,
                    normalizedCoords: self.normalizedCoords,
                    maxAnisotropy: self.maxAnisotropy,
                    mipmapFilterMode: self.mipmapFilterMode,
                    mipmapLevelBias: self.mipmapLevelBias,
                    minMipmapLevelClamp: self.minMipmapLevelClamp,
                    maxMipmapLevelClamp: self.maxMipmapLevelClamp,
                    disableTrilinearOptimization: self.disableTrilinearOptimization,
                    seamlessCubemap: self.seamlessCubemap,
                }
            }
        }
    )*};
}

trait Newest {
    fn newest(&self) -> v13::cudaTextureDesc;
}
newest_of!(cudaTextureDesc_v2, v12::cudaTextureDesc);

/// What the runtime checks before it asks the driver.
pub fn check_modes(
    format: CUarray_format,
    read: cudaTextureReadMode,
    filter: cudaTextureFilterMode,
) -> Result {
    let is_float = matches!(format, CUarray_format::CU_AD_FORMAT_HALF | CUarray_format::CU_AD_FORMAT_FLOAT);
    let is_wide = matches!(
        format,
        CUarray_format::CU_AD_FORMAT_SIGNED_INT32 | CUarray_format::CU_AD_FORMAT_UNSIGNED_INT32
    );
    let normalized = read == cudaTextureReadMode::cudaReadModeNormalizedFloat;
    // CUDA: only 8- and 16-bit integers become floats.
    if normalized && is_wide {
        return Err(Error::InvalidNormSetting);
    }
    // CUDA: only floats are filtered.
    if filter == cudaTextureFilterMode::cudaFilterModeLinear && !is_float && !normalized {
        return Err(Error::InvalidFilterSetting);
    }
    Ok(())
}

fn sampler(desc: &v13::cudaTextureDesc) -> CUDA_TEXTURE_DESC {
    let flag = |set: bool, flag: u32| if set { flag } else { 0 };
    let as_is = desc.readMode == cudaTextureReadMode::cudaReadModeElementType;
    CUDA_TEXTURE_DESC {
        addressMode: desc.addressMode.map(|mode| CUaddress_mode(mode.0)),
        filterMode: CUfilter_mode(desc.filterMode.0),
        flags: flag(as_is, CU_TRSF_READ_AS_INTEGER)
            | flag(desc.normalizedCoords != 0, CU_TRSF_NORMALIZED_COORDINATES)
            | flag(desc.sRGB != 0, CU_TRSF_SRGB)
            | flag(desc.disableTrilinearOptimization != 0, CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION)
            | flag(desc.seamlessCubemap != 0, CU_TRSF_SEAMLESS_CUBEMAP),
        maxAnisotropy: desc.maxAnisotropy,
        mipmapFilterMode: CUfilter_mode(desc.mipmapFilterMode.0),
        mipmapLevelBias: desc.mipmapLevelBias,
        minMipmapLevelClamp: desc.minMipmapLevelClamp,
        maxMipmapLevelClamp: desc.maxMipmapLevelClamp,
        borderColor: desc.borderColor,
        reserved: [0; 12],
    }
}

fn texture_desc(object: cudaTextureObject_t) -> Result<v13::cudaTextureDesc> {
    let mut from = CUDA_TEXTURE_DESC::default();
    device::attach()?.cuTexObjectGetTextureDesc(&mut from, object)?;
    let has = |flag: u32| c_int::from(from.flags & flag != 0);
    Ok(v13::cudaTextureDesc {
        addressMode: from.addressMode.map(|mode| cudaTextureAddressMode(mode.0)),
        filterMode: cudaTextureFilterMode(from.filterMode.0),
        readMode: if has(CU_TRSF_READ_AS_INTEGER) != 0 {
            cudaTextureReadMode::cudaReadModeElementType
        } else {
            cudaTextureReadMode::cudaReadModeNormalizedFloat
        },
        sRGB: has(CU_TRSF_SRGB),
        borderColor: from.borderColor,
        normalizedCoords: has(CU_TRSF_NORMALIZED_COORDINATES),
        maxAnisotropy: from.maxAnisotropy,
        mipmapFilterMode: cudaTextureFilterMode(from.mipmapFilterMode.0),
        mipmapLevelBias: from.mipmapLevelBias,
        minMipmapLevelClamp: from.minMipmapLevelClamp,
        maxMipmapLevelClamp: from.maxMipmapLevelClamp,
        disableTrilinearOptimization: has(CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION),
        seamlessCubemap: has(CU_TRSF_SEAMLESS_CUBEMAP),
    })
}

fn create(
    object: Out<'_, cudaTextureObject_t>,
    resource: &CUDA_RESOURCE_DESC,
    desc: &v13::cudaTextureDesc,
    view: Option<CUDA_RESOURCE_VIEW_DESC>,
) -> Result {
    let driver = device::attach()?;
    // SAFETY: the member that belongs to the type is the one set.
    let format = unsafe {
        match resource.resType {
            CUresourcetype::CU_RESOURCE_TYPE_ARRAY => {
                Some(descriptor(driver, resource.res.array.hArray.cast_const().cast())?.Format)
            }
            CUresourcetype::CU_RESOURCE_TYPE_LINEAR => Some(resource.res.linear.format),
            CUresourcetype::CU_RESOURCE_TYPE_PITCH2D => Some(resource.res.pitch2D.format),
            // The first level has it.
            _ => None,
        }
    };
    if let Some(format) = format {
        check_modes(format, desc.readMode, desc.filterMode)?;
    }
    let view = view.as_ref().map_or(ptr::null(), ptr::from_ref);
    let mut made = 0;
    driver.cuTexObjectCreate(&mut made, resource, &sampler(desc), view)?;
    object.write(made);
    Ok(())
}

/// CUDA: a texture without a description is an invalid resource handle (measured with CUDA 13.5's runtime).
fn described<T>(desc: Option<&T>) -> Result<&T> {
    desc.ok_or(Error::NoTextureDescription)
}

pub fn cudaCreateTextureObject_v11(
    pTexObject: Out<'_, cudaTextureObject_t>,
    pResDesc: &v11::cudaResourceDesc,
    pTexDesc: Option<&v11::cudaTextureDesc>,
    pResViewDesc: Option<&v11::cudaResourceViewDesc>,
) -> Result {
    let pTexDesc = described(pTexDesc)?;
    create(pTexObject, &resource_of!(pResDesc), &newest(pTexDesc), view_of!(pResViewDesc))
}

pub fn cudaCreateTextureObject_v2(
    pTexObject: Out<'_, cudaTextureObject_t>,
    pResDesc: &v11::cudaResourceDesc,
    pTexDesc: Option<&cudaTextureDesc_v2>,
    pResViewDesc: Option<&v11::cudaResourceViewDesc>,
) -> Result {
    let pTexDesc = described(pTexDesc)?;
    create(pTexObject, &resource_of!(pResDesc), &pTexDesc.newest(), view_of!(pResViewDesc))
}

pub fn cudaCreateTextureObject_v12(
    pTexObject: Out<'_, cudaTextureObject_t>,
    pResDesc: &v12::cudaResourceDesc,
    pTexDesc: Option<&v12::cudaTextureDesc>,
    pResViewDesc: Option<&v12::cudaResourceViewDesc>,
) -> Result {
    let pTexDesc = described(pTexDesc)?;
    create(pTexObject, &resource_of!(pResDesc), &pTexDesc.newest(), view_of!(pResViewDesc))
}

pub fn cudaCreateTextureObject_v13(
    pTexObject: Out<'_, cudaTextureObject_t>,
    pResDesc: &v13::cudaResourceDesc,
    pTexDesc: Option<&v13::cudaTextureDesc>,
    pResViewDesc: Option<&v13::cudaResourceViewDesc>,
) -> Result {
    let pTexDesc = described(pTexDesc)?;
    create(pTexObject, &resource_of!(pResDesc), pTexDesc, view_of!(pResViewDesc))
}

/// CUDA: 0 is no object, and nothing happens to it.
pub fn cudaDestroyTextureObject(texObject: cudaTextureObject_t) -> Result {
    let driver = device::attach()?;
    if texObject == 0 { Ok(()) } else { driver.cuTexObjectDestroy(texObject) }
}

fn resource_desc(object: cudaTextureObject_t) -> Result<CUDA_RESOURCE_DESC> {
    let mut found = CUDA_RESOURCE_DESC::default();
    device::attach()?.cuTexObjectGetResourceDesc(&mut found, object)?;
    Ok(found)
}

pub fn cudaGetTextureObjectResourceDesc_v11(
    pResDesc: Out<'_, v11::cudaResourceDesc>,
    texObject: cudaTextureObject_t,
) -> Result {
    pResDesc.write(resource_into!(resource_desc(texObject)?, v11::cudaResourceDesc));
    Ok(())
}

pub fn cudaGetTextureObjectResourceDesc_v12(
    pResDesc: Out<'_, v12::cudaResourceDesc>,
    texObject: cudaTextureObject_t,
) -> Result {
    pResDesc.write(resource_into!(resource_desc(texObject)?, v12::cudaResourceDesc));
    Ok(())
}

pub fn cudaGetTextureObjectResourceDesc_v13(
    pResDesc: Out<'_, v13::cudaResourceDesc>,
    texObject: cudaTextureObject_t,
) -> Result {
    pResDesc.write(resource_into!(resource_desc(texObject)?, v13::cudaResourceDesc));
    Ok(())
}

pub fn cudaGetTextureObjectTextureDesc_v11(
    pTexDesc: Out<'_, v11::cudaTextureDesc>,
    texObject: cudaTextureObject_t,
) -> Result {
    let desc = texture_desc(texObject)?;
    pTexDesc.write(v11::cudaTextureDesc {
        addressMode: desc.addressMode,
        filterMode: desc.filterMode,
        readMode: desc.readMode,
        sRGB: desc.sRGB,
        borderColor: desc.borderColor,
        normalizedCoords: desc.normalizedCoords,
        maxAnisotropy: desc.maxAnisotropy,
        mipmapFilterMode: desc.mipmapFilterMode,
        mipmapLevelBias: desc.mipmapLevelBias,
        minMipmapLevelClamp: desc.minMipmapLevelClamp,
        maxMipmapLevelClamp: desc.maxMipmapLevelClamp,
        disableTrilinearOptimization: desc.disableTrilinearOptimization,
    });
    Ok(())
}

/// The newest form's fields in another structure that has all of them.
macro_rules! same_fields {
    ($desc:expr, $type:path) => {{
        let desc = $desc;
        $type {
            addressMode: desc.addressMode,
            filterMode: desc.filterMode,
            readMode: desc.readMode,
            sRGB: desc.sRGB,
            borderColor: desc.borderColor,
            normalizedCoords: desc.normalizedCoords,
            maxAnisotropy: desc.maxAnisotropy,
            mipmapFilterMode: desc.mipmapFilterMode,
            mipmapLevelBias: desc.mipmapLevelBias,
            minMipmapLevelClamp: desc.minMipmapLevelClamp,
            maxMipmapLevelClamp: desc.maxMipmapLevelClamp,
            disableTrilinearOptimization: desc.disableTrilinearOptimization,
            seamlessCubemap: desc.seamlessCubemap,
        }
    }};
}

pub fn cudaGetTextureObjectTextureDesc_v2(
    pTexDesc: Out<'_, cudaTextureDesc_v2>,
    texObject: cudaTextureObject_t,
) -> Result {
    pTexDesc.write(same_fields!(texture_desc(texObject)?, cudaTextureDesc_v2));
    Ok(())
}

pub fn cudaGetTextureObjectTextureDesc_v12(
    pTexDesc: Out<'_, v12::cudaTextureDesc>,
    texObject: cudaTextureObject_t,
) -> Result {
    pTexDesc.write(same_fields!(texture_desc(texObject)?, v12::cudaTextureDesc));
    Ok(())
}

pub fn cudaGetTextureObjectTextureDesc_v13(
    pTexDesc: Out<'_, v13::cudaTextureDesc>,
    texObject: cudaTextureObject_t,
) -> Result {
    pTexDesc.write(texture_desc(texObject)?);
    Ok(())
}

pub fn cudaGetTextureObjectResourceViewDesc_v11(
    pResViewDesc: Out<'_, v11::cudaResourceViewDesc>,
    texObject: cudaTextureObject_t,
) -> Result {
    pResViewDesc.write(view_into!(texObject, v11::cudaResourceViewDesc));
    Ok(())
}

pub fn cudaGetTextureObjectResourceViewDesc_v12(
    pResViewDesc: Out<'_, v12::cudaResourceViewDesc>,
    texObject: cudaTextureObject_t,
) -> Result {
    pResViewDesc.write(view_into!(texObject, v12::cudaResourceViewDesc));
    Ok(())
}

pub fn cudaGetTextureObjectResourceViewDesc_v13(
    pResViewDesc: Out<'_, v13::cudaResourceViewDesc>,
    texObject: cudaTextureObject_t,
) -> Result {
    pResViewDesc.write(view_into!(texObject, v13::cudaResourceViewDesc));
    Ok(())
}

fn create_surface(object: Out<'_, cudaSurfaceObject_t>, resource: &CUDA_RESOURCE_DESC) -> Result {
    let mut made = 0;
    device::attach()?.cuSurfObjectCreate(&mut made, resource)?;
    object.write(made);
    Ok(())
}

pub fn cudaCreateSurfaceObject_v11(
    pSurfObject: Out<'_, cudaSurfaceObject_t>,
    pResDesc: &v11::cudaResourceDesc,
) -> Result {
    create_surface(pSurfObject, &resource_of!(pResDesc))
}

pub fn cudaCreateSurfaceObject_v12(
    pSurfObject: Out<'_, cudaSurfaceObject_t>,
    pResDesc: &v12::cudaResourceDesc,
) -> Result {
    create_surface(pSurfObject, &resource_of!(pResDesc))
}

pub fn cudaCreateSurfaceObject_v13(
    pSurfObject: Out<'_, cudaSurfaceObject_t>,
    pResDesc: &v13::cudaResourceDesc,
) -> Result {
    create_surface(pSurfObject, &resource_of!(pResDesc))
}

/// CUDA: 0 is no object, and nothing happens to it.
pub fn cudaDestroySurfaceObject(surfObject: cudaSurfaceObject_t) -> Result {
    let driver = device::attach()?;
    if surfObject == 0 { Ok(()) } else { driver.cuSurfObjectDestroy(surfObject) }
}

fn surface_desc(object: cudaSurfaceObject_t) -> Result<CUDA_RESOURCE_DESC> {
    let mut found = CUDA_RESOURCE_DESC::default();
    device::attach()?.cuSurfObjectGetResourceDesc(&mut found, object)?;
    Ok(found)
}

pub fn cudaGetSurfaceObjectResourceDesc_v11(
    pResDesc: Out<'_, v11::cudaResourceDesc>,
    surfObject: cudaSurfaceObject_t,
) -> Result {
    pResDesc.write(resource_into!(surface_desc(surfObject)?, v11::cudaResourceDesc));
    Ok(())
}

pub fn cudaGetSurfaceObjectResourceDesc_v12(
    pResDesc: Out<'_, v12::cudaResourceDesc>,
    surfObject: cudaSurfaceObject_t,
) -> Result {
    pResDesc.write(resource_into!(surface_desc(surfObject)?, v12::cudaResourceDesc));
    Ok(())
}

pub fn cudaGetSurfaceObjectResourceDesc_v13(
    pResDesc: Out<'_, v13::cudaResourceDesc>,
    surfObject: cudaSurfaceObject_t,
) -> Result {
    pResDesc.write(resource_into!(surface_desc(surfObject)?, v13::cudaResourceDesc));
    Ok(())
}

pub fn cudaDeviceGetTexture1DLinearMaxWidth(
    maxWidthInElements: Out<'_, usize>,
    fmtDesc: &cudaChannelFormatDesc,
    device: c_int,
) -> Result {
    let driver = device::attach()?;
    let (format, n_channels) = format_of(fmtDesc)?;
    let mut most = 0;
    driver.cuDeviceGetTexture1DLinearMaxWidth(&mut most, format, n_channels, device::at(device)?.handle)?;
    maxWidthInElements.write(most);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_that_cuda_refuses_have_codes_of_their_own() {
        let (point, linear) =
            (cudaTextureFilterMode::cudaFilterModePoint, cudaTextureFilterMode::cudaFilterModeLinear);
        let (element, normalized) =
            (cudaTextureReadMode::cudaReadModeElementType, cudaTextureReadMode::cudaReadModeNormalizedFloat);
        let byte = CUarray_format::CU_AD_FORMAT_UNSIGNED_INT8;
        let word = CUarray_format::CU_AD_FORMAT_SIGNED_INT32;
        assert_eq!(check_modes(CUarray_format::CU_AD_FORMAT_FLOAT, element, linear), Ok(()));
        assert_eq!(check_modes(byte, normalized, linear), Ok(()));
        assert_eq!(check_modes(byte, element, linear), Err(Error::InvalidFilterSetting));
        assert_eq!(check_modes(word, normalized, point), Err(Error::InvalidNormSetting));
    }
}
