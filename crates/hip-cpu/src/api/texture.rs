//! Texture and surface objects, and the texture references of modules.

use std::ffi::{CStr, c_int, c_uint};

use border::{OptOut, Out};
use hip_sys::*;

use super::module::text;
use crate::array::{self, Element};
use crate::device::healthy;
use crate::error::Result;
use crate::texture::{self, Resource};
use crate::{module, stream};

// ---- objects, the driver's way ----

fn resource(desc: &HIP_RESOURCE_DESC) -> Result<Resource> {
    // SAFETY: HIP's contract: the type says which member holds, and all are plain numbers.
    unsafe {
        Ok(match desc.resType {
            hipResourceTypeArray => Resource::Array(array::of_handle(desc.res.array)?),
            hipResourceTypeMipmappedArray => {
                Resource::Mipmapped(array::mipmapped_of_handle(desc.res.mipmap)?)
            }
            hipResourceTypeLinear => {
                let linear = desc.res.linear;
                let element = Element::new(linear.format, linear.numChannels)?;
                Resource::Linear { at: linear.devPtr as usize, element, bytes: linear.sizeInBytes }
            }
            hipResourceTypePitch2D => {
                let pitch = desc.res.pitch2D;
                Resource::Pitch2D {
                    at: pitch.devPtr as usize,
                    element: Element::new(pitch.format, pitch.numChannels)?,
                    width: pitch.width,
                    height: pitch.height,
                    pitch: pitch.pitchInBytes,
                }
            }
            _ => return Err(hipErrorInvalidValue),
        })
    }
}

fn described(resource: &Resource) -> HIP_RESOURCE_DESC {
    let mut res = HIP_RESOURCE_UNION { reserved: [0; 32] };
    let resType = match resource {
        Resource::Array(array) => {
            res.array = std::sync::Arc::as_ptr(array) as hipArray_t;
            hipResourceTypeArray
        }
        Resource::Mipmapped(mipmapped) => {
            res.mipmap = std::sync::Arc::as_ptr(mipmapped) as hipMipmappedArray_t;
            hipResourceTypeMipmappedArray
        }
        Resource::Linear { at, element, bytes } => {
            res.linear = HIP_RESOURCE_LINEAR {
                devPtr: *at as hipDeviceptr_t,
                format: element.format,
                numChannels: element.channels,
                sizeInBytes: *bytes,
            };
            hipResourceTypeLinear
        }
        Resource::Pitch2D { at, element, width, height, pitch } => {
            res.pitch2D = HIP_RESOURCE_PITCH2D {
                devPtr: *at as hipDeviceptr_t,
                format: element.format,
                numChannels: element.channels,
                width: *width,
                height: *height,
                pitchInBytes: *pitch,
            };
            hipResourceTypePitch2D
        }
    };
    HIP_RESOURCE_DESC { resType, res, flags: 0 }
}

pub fn hipTexObjectCreate(
    pTexObject: Out<'_, hipTextureObject_t>,
    pResDesc: &HIP_RESOURCE_DESC,
    pTexDesc: &HIP_TEXTURE_DESC,
    pResViewDesc: Option<&HIP_RESOURCE_VIEW_DESC>,
) -> Result {
    healthy()?;
    let resource = resource(pResDesc)?;
    pTexObject.write(texture::create_texture(resource, pTexDesc, pResViewDesc)?);
    Ok(())
}

/// Work that uses it comes first.
pub fn hipTexObjectDestroy(texObject: hipTextureObject_t) -> Result {
    texture::texture(texObject)?;
    stream::quiesce();
    texture::destroy_texture(texObject)
}

pub fn hipTexObjectGetResourceDesc(
    pResDesc: Out<'_, HIP_RESOURCE_DESC>,
    texObject: hipTextureObject_t,
) -> Result {
    pResDesc.write(described(&texture::texture(texObject)?.resource));
    Ok(())
}

pub fn hipTexObjectGetTextureDesc(
    pTexDesc: Out<'_, HIP_TEXTURE_DESC>,
    texObject: hipTextureObject_t,
) -> Result {
    pTexDesc.write(texture::texture(texObject)?.desc);
    Ok(())
}

/// An object made without a view has none to tell of.
pub fn hipTexObjectGetResourceViewDesc(
    pResViewDesc: Out<'_, HIP_RESOURCE_VIEW_DESC>,
    texObject: hipTextureObject_t,
) -> Result {
    let view = texture::texture(texObject)?.view.ok_or(hipErrorInvalidValue)?;
    pResViewDesc.write(view);
    Ok(())
}

// ---- objects, the runtime's way: the same in other structures ----

fn of_runtime(desc: &hipResourceDesc) -> Result<HIP_RESOURCE_DESC> {
    let mut res = HIP_RESOURCE_UNION { reserved: [0; 32] };
    // SAFETY: HIP's contract: the type says which member holds, and all are plain numbers.
    unsafe {
        match desc.resType {
            hipResourceTypeArray => res.array = desc.res.array,
            hipResourceTypeMipmappedArray => res.mipmap = desc.res.mipmap,
            hipResourceTypeLinear => {
                let linear = desc.res.linear;
                let element = Element::of_channels(&linear.desc)?;
                res.linear = HIP_RESOURCE_LINEAR {
                    devPtr: linear.devPtr,
                    format: element.format,
                    numChannels: element.channels,
                    sizeInBytes: linear.sizeInBytes,
                };
            }
            hipResourceTypePitch2D => {
                let pitch = desc.res.pitch2D;
                let element = Element::of_channels(&pitch.desc)?;
                res.pitch2D = HIP_RESOURCE_PITCH2D {
                    devPtr: pitch.devPtr,
                    format: element.format,
                    numChannels: element.channels,
                    width: pitch.width,
                    height: pitch.height,
                    pitchInBytes: pitch.pitchInBytes,
                };
            }
            _ => return Err(hipErrorInvalidValue),
        }
    }
    Ok(HIP_RESOURCE_DESC { resType: desc.resType, res, flags: 0 })
}

pub fn hipCreateTextureObject(
    pTexObject: Out<'_, hipTextureObject_t>,
    pResDesc: &hipResourceDesc,
    pTexDesc: &hipTextureDesc,
    pResViewDesc: Option<&hipResourceViewDesc>,
) -> Result {
    let resource = of_runtime(pResDesc)?;
    let t = pTexDesc;
    let flags = [
        (t.readMode == hipReadModeElementType, HIP_TRSF_READ_AS_INTEGER),
        (t.normalizedCoords != 0, HIP_TRSF_NORMALIZED_COORDINATES),
        (t.sRGB != 0, HIP_TRSF_SRGB),
    ];
    let desc = HIP_TEXTURE_DESC {
        addressMode: t.addressMode,
        filterMode: t.filterMode,
        flags: flags.iter().filter(|it| it.0).fold(0, |all, it| all | it.1),
        maxAnisotropy: t.maxAnisotropy,
        mipmapFilterMode: t.mipmapFilterMode,
        mipmapLevelBias: t.mipmapLevelBias,
        minMipmapLevelClamp: t.minMipmapLevelClamp,
        maxMipmapLevelClamp: t.maxMipmapLevelClamp,
        borderColor: t.borderColor,
        reserved: [0; 12],
    };
    let view = pResViewDesc.map(|v| HIP_RESOURCE_VIEW_DESC {
        format: v.format,
        width: v.width,
        height: v.height,
        depth: v.depth,
        firstMipmapLevel: v.firstMipmapLevel,
        lastMipmapLevel: v.lastMipmapLevel,
        firstLayer: v.firstLayer,
        lastLayer: v.lastLayer,
        reserved: [0; 16],
    });
    hipTexObjectCreate(pTexObject, &resource, &desc, view.as_ref())
}

pub fn hipDestroyTextureObject(textureObject: hipTextureObject_t) -> Result {
    hipTexObjectDestroy(textureObject)
}

pub fn hipGetTextureObjectResourceDesc(
    pResDesc: Out<'_, hipResourceDesc>,
    textureObject: hipTextureObject_t,
) -> Result {
    let object = texture::texture(textureObject)?;
    let driver = described(&object.resource);
    let desc = object.resource.element()?.to_channels();
    // SAFETY: `described` filled the member that the type names.
    let res = unsafe {
        match driver.resType {
            hipResourceTypeArray => hipResourceUnion { array: driver.res.array },
            hipResourceTypeMipmappedArray => hipResourceUnion { mipmap: driver.res.mipmap },
            hipResourceTypeLinear => {
                let linear = driver.res.linear;
                hipResourceUnion {
                    linear: hipResourceLinear {
                        devPtr: linear.devPtr,
                        desc,
                        sizeInBytes: linear.sizeInBytes,
                    },
                }
            }
            _ => {
                let pitch = driver.res.pitch2D;
                hipResourceUnion {
                    pitch2D: hipResourcePitch2D {
                        devPtr: pitch.devPtr,
                        desc,
                        width: pitch.width,
                        height: pitch.height,
                        pitchInBytes: pitch.pitchInBytes,
                    },
                }
            }
        }
    };
    pResDesc.write(hipResourceDesc { resType: driver.resType, res });
    Ok(())
}

pub fn hipGetTextureObjectTextureDesc(
    pTexDesc: Out<'_, hipTextureDesc>,
    textureObject: hipTextureObject_t,
) -> Result {
    let t = texture::texture(textureObject)?.desc;
    let is = |flag: c_uint| t.flags & flag != 0;
    pTexDesc.write(hipTextureDesc {
        addressMode: t.addressMode,
        filterMode: t.filterMode,
        readMode: if is(HIP_TRSF_READ_AS_INTEGER) {
            hipReadModeElementType
        } else {
            hipReadModeNormalizedFloat
        },
        sRGB: is(HIP_TRSF_SRGB).into(),
        borderColor: t.borderColor,
        normalizedCoords: is(HIP_TRSF_NORMALIZED_COORDINATES).into(),
        maxAnisotropy: t.maxAnisotropy,
        mipmapFilterMode: t.mipmapFilterMode,
        mipmapLevelBias: t.mipmapLevelBias,
        minMipmapLevelClamp: t.minMipmapLevelClamp,
        maxMipmapLevelClamp: t.maxMipmapLevelClamp,
    });
    Ok(())
}

pub fn hipGetTextureObjectResourceViewDesc(
    pResViewDesc: Out<'_, hipResourceViewDesc>,
    textureObject: hipTextureObject_t,
) -> Result {
    let v = texture::texture(textureObject)?.view.ok_or(hipErrorInvalidValue)?;
    pResViewDesc.write(hipResourceViewDesc {
        format: v.format,
        width: v.width,
        height: v.height,
        depth: v.depth,
        firstMipmapLevel: v.firstMipmapLevel,
        lastMipmapLevel: v.lastMipmapLevel,
        firstLayer: v.firstLayer,
        lastLayer: v.lastLayer,
    });
    Ok(())
}

pub fn hipCreateSurfaceObject(
    pSurfObject: Out<'_, hipSurfaceObject_t>,
    pResDesc: &hipResourceDesc,
) -> Result {
    healthy()?;
    let desc = pResDesc;
    if desc.resType != hipResourceTypeArray {
        return Err(hipErrorInvalidValue);
    }
    // SAFETY: HIP's contract: the type says which member holds.
    let array = array::of_handle(unsafe { desc.res.array })?;
    pSurfObject.write(texture::create_surface(array)?);
    Ok(())
}

pub fn hipDestroySurfaceObject(surfaceObject: hipSurfaceObject_t) -> Result {
    stream::quiesce();
    texture::destroy_surface(surfaceObject)
}

// ---- references ----

pub fn hipModuleGetTexRef(texRef: Out<'_, *mut textureReference>, hmod: hipModule_t, name: &CStr) -> Result {
    let module = module::of_handle(hmod)?;
    texRef.write(texture::texref(module.texref(text(name)?)?)?);
    Ok(())
}

/// Launches that were made before keep what they saw.
fn change(texRef: *mut textureReference, change: impl FnOnce(&mut texture::Texref) -> Result) -> Result {
    texture::with_texref(texRef, |_| Ok(()))?;
    stream::quiesce();
    texture::change_texref(texRef, change)
}

pub fn hipTexRefSetArray(tex: *mut textureReference, array: hipArray_const_t, flags: c_uint) -> Result {
    if flags != HIP_TRSA_OVERRIDE_FORMAT {
        return Err(hipErrorInvalidValue);
    }
    let array = array::of_handle(array)?;
    change(tex, |texref| {
        texref.element = array.element;
        texref.resource = Some(Resource::Array(array));
        Ok(())
    })
}

pub fn hipTexRefSetMipmappedArray(
    texRef: *mut textureReference,
    mipmappedArray: hipMipmappedArray_t,
    Flags: c_uint,
) -> Result {
    if Flags != HIP_TRSA_OVERRIDE_FORMAT {
        return Err(hipErrorInvalidValue);
    }
    let resource = Resource::Mipmapped(array::mipmapped_of_handle(mipmappedArray)?);
    change(texRef, |texref| {
        texref.element = resource.element()?;
        texref.resource = Some(resource);
        Ok(())
    })
}

/// An address that is not aligned is one with an offset, which the program adds itself.
const BASE_ALIGN: usize = 512;

pub fn hipTexRefSetAddress(
    ByteOffset: OptOut<'_, usize>,
    texRef: *mut textureReference,
    dptr: hipDeviceptr_t,
    bytes: usize,
) -> Result {
    let offset = dptr as usize % BASE_ALIGN;
    if !ByteOffset.is_wanted() && offset != 0 {
        return Err(hipErrorInvalidValue);
    }
    change(texRef, |texref| {
        let at = dptr as usize - offset;
        let resource = Resource::Linear {
            at,
            element: texref.element,
            bytes: bytes.checked_add(offset).ok_or(hipErrorInvalidValue)?,
        };
        resource.check()?;
        texref.resource = Some(resource);
        Ok(())
    })?;
    ByteOffset.write(offset);
    Ok(())
}

pub fn hipTexRefSetAddress2D(
    texRef: *mut textureReference,
    desc: &HIP_ARRAY_DESCRIPTOR,
    dptr: hipDeviceptr_t,
    Pitch: usize,
) -> Result {
    let element = Element::new(desc.Format, desc.NumChannels)?;
    let (width, height) = (desc.Width, desc.Height.max(1));
    let resource = Resource::Pitch2D { at: dptr as usize, element, width, height, pitch: Pitch };
    resource.check()?;
    change(texRef, |texref| {
        texref.element = element;
        texref.resource = Some(resource);
        Ok(())
    })
}

/// What linear memory is read as; arrays have their own format.
pub fn hipTexRefSetFormat(
    texRef: *mut textureReference,
    fmt: hipArray_Format,
    NumPackedComponents: c_int,
) -> Result {
    let given = Element::new(fmt, u32::try_from(NumPackedComponents).map_err(|_| hipErrorInvalidValue)?)?;
    change(texRef, |texref| {
        texref.element = given;
        if let Some(Resource::Linear { element, .. } | Resource::Pitch2D { element, .. }) =
            &mut texref.resource
        {
            *element = given;
        }
        Ok(())
    })
}

pub fn hipTexRefSetAddressMode(
    texRef: *mut textureReference,
    dim: c_int,
    am: hipTextureAddressMode,
) -> Result {
    let known = (hipAddressModeWrap..=hipAddressModeBorder).contains(&am);
    change(texRef, |texref| {
        let modes = &mut texref.desc.addressMode;
        let mode = usize::try_from(dim).ok().and_then(|dim| modes.get_mut(dim)).filter(|_| known);
        *mode.ok_or(hipErrorInvalidValue)? = am;
        Ok(())
    })
}

fn filter(fm: hipTextureFilterMode) -> Result<hipTextureFilterMode> {
    if matches!(fm, hipFilterModePoint | hipFilterModeLinear) { Ok(fm) } else { Err(hipErrorInvalidValue) }
}

pub fn hipTexRefSetFilterMode(texRef: *mut textureReference, fm: hipTextureFilterMode) -> Result {
    let fm = filter(fm)?;
    change(texRef, |texref| {
        texref.desc.filterMode = fm;
        Ok(())
    })
}

pub fn hipTexRefSetFlags(texRef: *mut textureReference, Flags: c_uint) -> Result {
    change(texRef, |texref| {
        texref.desc.flags = Flags;
        Ok(())
    })
}

pub fn hipTexRefSetBorderColor(texRef: *mut textureReference, pBorderColor: &[f32; 4]) -> Result {
    let color = *pBorderColor;
    change(texRef, |texref| {
        texref.desc.borderColor = color;
        Ok(())
    })
}

/// A wish about quality that fetches here do not heed.
pub fn hipTexRefSetMaxAnisotropy(texRef: *mut textureReference, maxAniso: c_uint) -> Result {
    change(texRef, |texref| {
        texref.desc.maxAnisotropy = maxAniso;
        Ok(())
    })
}

pub fn hipTexRefSetMipmapFilterMode(texRef: *mut textureReference, fm: hipTextureFilterMode) -> Result {
    let fm = filter(fm)?;
    change(texRef, |texref| {
        texref.desc.mipmapFilterMode = fm;
        Ok(())
    })
}

pub fn hipTexRefSetMipmapLevelBias(texRef: *mut textureReference, bias: f32) -> Result {
    change(texRef, |texref| {
        texref.desc.mipmapLevelBias = bias;
        Ok(())
    })
}

pub fn hipTexRefSetMipmapLevelClamp(
    texRef: *mut textureReference,
    minMipMapLevelClamp: f32,
    maxMipMapLevelClamp: f32,
) -> Result {
    change(texRef, |texref| {
        texref.desc.minMipmapLevelClamp = minMipMapLevelClamp;
        texref.desc.maxMipmapLevelClamp = maxMipMapLevelClamp;
        Ok(())
    })
}

pub fn hipTexRefGetArray(pArray: Out<'_, hipArray_t>, texRef: *const textureReference) -> Result {
    texture::with_texref(texRef, |texref| match &texref.resource {
        Some(Resource::Array(array)) => {
            pArray.write(std::sync::Arc::as_ptr(array) as hipArray_t);
            Ok(())
        }
        _ => Err(hipErrorInvalidValue),
    })
}

pub fn hipTexRefGetMipMappedArray(
    pArray: Out<'_, hipMipmappedArray_t>,
    texRef: *const textureReference,
) -> Result {
    texture::with_texref(texRef, |texref| match &texref.resource {
        Some(Resource::Mipmapped(mipmapped)) => {
            pArray.write(std::sync::Arc::as_ptr(mipmapped) as hipMipmappedArray_t);
            Ok(())
        }
        _ => Err(hipErrorInvalidValue),
    })
}

pub fn hipTexRefGetAddress(dev_ptr: Out<'_, hipDeviceptr_t>, texRef: *const textureReference) -> Result {
    texture::with_texref(texRef, |texref| match &texref.resource {
        Some(Resource::Linear { at, .. } | Resource::Pitch2D { at, .. }) => {
            dev_ptr.write(*at as hipDeviceptr_t);
            Ok(())
        }
        _ => Err(hipErrorInvalidValue),
    })
}

pub fn hipTexRefGetFormat(
    pFormat: OptOut<'_, hipArray_Format>,
    pNumChannels: OptOut<'_, c_int>,
    texRef: *const textureReference,
) -> Result {
    let element = texture::with_texref(texRef, |texref| Ok(texref.element))?;
    pFormat.write(element.format);
    pNumChannels.write(element.channels as c_int);
    Ok(())
}

/// The part of a reference's description that `pick` names.
fn look<T>(
    answer: Out<'_, T>,
    texRef: *const textureReference,
    pick: impl FnOnce(&HIP_TEXTURE_DESC) -> T,
) -> Result {
    answer.write(texture::with_texref(texRef, |texref| Ok(pick(&texref.desc)))?);
    Ok(())
}

pub fn hipTexRefGetAddressMode(
    pam: Out<'_, hipTextureAddressMode>,
    texRef: *const textureReference,
    dim: c_int,
) -> Result {
    let dim = usize::try_from(dim).ok().filter(|&dim| dim < 3).ok_or(hipErrorInvalidValue)?;
    look(pam, texRef, |desc| desc.addressMode[dim])
}

pub fn hipTexRefGetFilterMode(pfm: Out<'_, hipTextureFilterMode>, texRef: *const textureReference) -> Result {
    look(pfm, texRef, |desc| desc.filterMode)
}

pub fn hipTexRefGetFlags(pFlags: Out<'_, c_uint>, texRef: *const textureReference) -> Result {
    look(pFlags, texRef, |desc| desc.flags)
}

pub fn hipTexRefGetBorderColor(pBorderColor: Out<'_, [f32; 4]>, texRef: *const textureReference) -> Result {
    look(pBorderColor, texRef, |desc| desc.borderColor)
}

pub fn hipTexRefGetMaxAnisotropy(pmaxAnsio: Out<'_, c_int>, texRef: *const textureReference) -> Result {
    look(pmaxAnsio, texRef, |desc| desc.maxAnisotropy as c_int)
}

pub fn hipTexRefGetMipmapFilterMode(
    pfm: Out<'_, hipTextureFilterMode>,
    texRef: *const textureReference,
) -> Result {
    look(pfm, texRef, |desc| desc.mipmapFilterMode)
}

pub fn hipTexRefGetMipmapLevelBias(pbias: Out<'_, f32>, texRef: *const textureReference) -> Result {
    look(pbias, texRef, |desc| desc.mipmapLevelBias)
}

pub fn hipTexRefGetMipmapLevelClamp(
    pminMipmapLevelClamp: Out<'_, f32>,
    pmaxMipmapLevelClamp: Out<'_, f32>,
    texRef: *const textureReference,
) -> Result {
    look(pminMipmapLevelClamp, texRef, |desc| desc.minMipmapLevelClamp)?;
    look(pmaxMipmapLevelClamp, texRef, |desc| desc.maxMipmapLevelClamp)
}
