//! Texture Object Management, Surface Object Management, and the named references of old.

use core::ffi::{CStr, c_int, c_uint};

use border::{OptOut, Out};
use cuda_abi::{
    CU_TRSA_OVERRIDE_FORMAT, CUDA_ARRAY_DESCRIPTOR, CUDA_RESOURCE_DESC, CUDA_RESOURCE_VIEW_DESC,
    CUDA_TEXTURE_DESC, CUaddress_mode, CUarray, CUarray_format, CUdevice, CUdevice_attribute, CUdeviceptr,
    CUfilter_mode, CUmipmappedArray, CUmodule, CUsurfObject, CUsurfref, CUtexObject, CUtexref,
};
use hip_sys::{HIP_ARRAY_DESCRIPTOR, HIP_TRSA_OVERRIDE_FORMAT, Hip, HipError, textureReference};

use super::device::attribute;
use crate::object::array::{Array, Mipmap, element_bytes};
use crate::object::memory::{self, raw};
use crate::object::texture::{Resource, SurfRef, Surface, TexRef, Texture};
use crate::object::{Device, Shared};
use crate::{Error, Result};

pub fn cuTexObjectCreate(
    pTexObject: Out<'_, CUtexObject>,
    pResDesc: &CUDA_RESOURCE_DESC,
    pTexDesc: &CUDA_TEXTURE_DESC,
    pResViewDesc: Option<&CUDA_RESOURCE_VIEW_DESC>,
) -> Result {
    pTexObject.write(Texture::create(Resource::read(pResDesc)?, pTexDesc, pResViewDesc)?);
    Ok(())
}

pub fn cuTexObjectDestroy(texObject: CUtexObject) -> Result {
    Texture::destroy(texObject)
}

pub fn cuTexObjectGetResourceDesc(pResDesc: Out<'_, CUDA_RESOURCE_DESC>, texObject: CUtexObject) -> Result {
    pResDesc.write(Texture::of(texObject)?.resource.write());
    Ok(())
}

pub fn cuTexObjectGetTextureDesc(pTexDesc: Out<'_, CUDA_TEXTURE_DESC>, texObject: CUtexObject) -> Result {
    pTexDesc.write(Texture::of(texObject)?.texture);
    Ok(())
}

/// CUDA: a texture that was made without a view has none to give.
pub fn cuTexObjectGetResourceViewDesc(
    pResViewDesc: Out<'_, CUDA_RESOURCE_VIEW_DESC>,
    texObject: CUtexObject,
) -> Result {
    pResViewDesc.write(Texture::of(texObject)?.view.ok_or(Error::InvalidValue("texObject: without a view"))?);
    Ok(())
}

pub fn cuSurfObjectCreate(pSurfObject: Out<'_, CUsurfObject>, pResDesc: &CUDA_RESOURCE_DESC) -> Result {
    pSurfObject.write(Surface::create(Resource::read(pResDesc)?)?);
    Ok(())
}

pub fn cuSurfObjectDestroy(surfObject: CUsurfObject) -> Result {
    Surface::destroy(surfObject)
}

pub fn cuSurfObjectGetResourceDesc(
    pResDesc: Out<'_, CUDA_RESOURCE_DESC>,
    surfObject: CUsurfObject,
) -> Result {
    pResDesc.write(Surface::of(surfObject)?.resource.write());
    Ok(())
}

/// How many elements of a format a linear texture may have: what the device says, whatever the format.
pub fn cuDeviceGetTexture1DLinearMaxWidth(
    maxWidthInElements: Out<'_, usize>,
    format: CUarray_format,
    numChannels: c_uint,
    dev: CUdevice,
) -> Result {
    let device = Device::get(dev)?;
    element_bytes(format, numChannels)?;
    let most = attribute(device, CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH);
    maxWidthInElements.write(most.and_then(|most| usize::try_from(most).ok()).unwrap_or(0));
    Ok(())
}

pub fn cuModuleGetTexRef(pTexRef: Out<'_, CUtexref>, hmod: CUmodule, name: &CStr) -> Result {
    pTexRef.write(TexRef::of_module(hmod, name)?);
    Ok(())
}

/// Deprecated: a reference that kernels cannot see; CUDA has none but those of modules that they can.
pub fn cuTexRefCreate(pTexRef: Out<'_, CUtexref>) -> Result {
    pTexRef.write(TexRef::create()?);
    Ok(())
}

pub fn cuTexRefDestroy(hTexRef: CUtexref) -> Result {
    TexRef::destroy(hTexRef)
}

pub fn cuModuleGetSurfRef(pSurfRef: Out<'_, CUsurfref>, hmod: CUmodule, name: &CStr) -> Result {
    pSurfRef.write(SurfRef::of_module(hmod, name)?);
    Ok(())
}

/// CUDA: no flags exist yet.
pub fn cuSurfRefSetArray(hSurfRef: CUsurfref, hArray: CUarray, Flags: c_uint) -> Result {
    if Flags != 0 {
        return Err(Error::InvalidValue("Flags"));
    }
    SurfRef::bind(hSurfRef, hArray)
}

pub fn cuSurfRefGetArray(phArray: Out<'_, CUarray>, hSurfRef: CUsurfref) -> Result {
    phArray.write(SurfRef::array(hSurfRef)?);
    Ok(())
}

/// Tells the provider, if it knows the reference, then keeps what was said.
fn set(
    reference: CUtexref,
    tell: impl FnOnce(&Hip, *mut textureReference) -> core::result::Result<(), HipError>,
    keep: impl FnOnce(&mut TexRef),
) -> Result {
    TexRef::with(reference, |texref| {
        if !texref.hip.0.is_null() {
            tell(texref.context.hip(), texref.hip.0)?;
        }
        keep(texref);
        // HIP differs: its references are variables of its own code objects. On an AMD GPU they are ours.
        texref.renew()
    })
}

/// CUDA: the one flag there is must be set; the reference then has the array's format.
fn check_override(flags: c_uint) -> Result {
    if flags == CU_TRSA_OVERRIDE_FORMAT { Ok(()) } else { Err(Error::InvalidValue("Flags")) }
}

pub fn cuTexRefSetArray(hTexRef: CUtexref, hArray: CUarray, Flags: c_uint) -> Result {
    check_override(Flags)?;
    let array = Array::from_handle(hArray)?;
    set(
        hTexRef,
        // SAFETY: both are alive.
        |hip, texref| unsafe { hip.hipTexRefSetArray(texref, array.hip.0, HIP_TRSA_OVERRIDE_FORMAT) },
        |texref| {
            texref.bound = Some(Resource::Array(Shared(hArray)));
            texref.format = array.descriptor.Format;
            texref.n_channels = array.descriptor.NumChannels.cast_signed();
        },
    )
}

pub fn cuTexRefSetMipmappedArray(
    hTexRef: CUtexref,
    hMipmappedArray: CUmipmappedArray,
    Flags: c_uint,
) -> Result {
    check_override(Flags)?;
    let mipmap = Mipmap::from_handle(hMipmappedArray)?;
    set(
        hTexRef,
        // SAFETY: both are alive.
        |hip, texref| unsafe {
            hip.hipTexRefSetMipmappedArray(texref, mipmap.hip.0, HIP_TRSA_OVERRIDE_FORMAT)
        },
        |texref| {
            texref.bound = Some(Resource::Mipmap(Shared(hMipmappedArray)));
            texref.format = mipmap.descriptor.Format;
            texref.n_channels = mipmap.descriptor.NumChannels.cast_signed();
        },
    )
}

/// CUDA: an address that is not aligned is rounded down, and `ByteOffset` says by how much; without a place for the
/// offset it has to be aligned.
pub fn cuTexRefSetAddress_v2(
    ByteOffset: OptOut<'_, usize>,
    hTexRef: CUtexref,
    dptr: CUdeviceptr,
    bytes: usize,
) -> Result {
    memory::check(dptr, bytes, "dptr")?;
    let (mut offset, mut on_gfx) = (0, 0);
    set(
        hTexRef,
        // SAFETY: the reference is alive and the range was checked.
        |hip, texref| unsafe { hip.hipTexRefSetAddress(&mut offset, texref, raw(dptr), bytes) },
        |texref| {
            let n_channels = texref.n_channels.unsigned_abs();
            let format = texref.format;
            let (at, before) = if texref.is_on_gfx() { texref.aligned(dptr) } else { (dptr, 0) };
            on_gfx = before;
            texref.bound = Some(Resource::Linear { at, format, n_channels, len_bytes: bytes + before });
        },
    )?;
    offset += on_gfx;
    ByteOffset.write(offset);
    Ok(())
}

pub fn cuTexRefSetAddress2D_v3(
    hTexRef: CUtexref,
    desc: &CUDA_ARRAY_DESCRIPTOR,
    dptr: CUdeviceptr,
    Pitch: usize,
) -> Result {
    let row = element_bytes(desc.Format, desc.NumChannels)?.checked_mul(desc.Width);
    let row = row.filter(|&row| row <= Pitch).ok_or(Error::InvalidValue("Pitch"))?;
    let before = desc.Height.checked_sub(1).and_then(|rows| rows.checked_mul(Pitch));
    let all = before.and_then(|bytes| bytes.checked_add(row)).ok_or(Error::InvalidValue("desc.Height"))?;
    memory::check(dptr, all, "dptr")?;
    let hip_desc = HIP_ARRAY_DESCRIPTOR {
        Width: desc.Width,
        Height: desc.Height,
        Format: desc.Format.0.cast_signed(),
        NumChannels: desc.NumChannels,
    };
    set(
        hTexRef,
        // SAFETY: the reference is alive, the description readable, the range checked.
        |hip, texref| unsafe { hip.hipTexRefSetAddress2D(texref, &hip_desc, raw(dptr), Pitch) },
        |texref| {
            texref.format = desc.Format;
            texref.n_channels = desc.NumChannels.cast_signed();
            texref.bound = Some(Resource::Pitch2D {
                at: dptr,
                format: desc.Format,
                n_channels: desc.NumChannels,
                size: [desc.Width, desc.Height],
                pitch: Pitch,
            });
        },
    )
}

/// As `_v3`, which only tells a program that it may bind unaligned pitches.
pub fn cuTexRefSetAddress2D_v2(
    hTexRef: CUtexref,
    desc: &CUDA_ARRAY_DESCRIPTOR,
    dptr: CUdeviceptr,
    Pitch: usize,
) -> Result {
    cuTexRefSetAddress2D_v3(hTexRef, desc, dptr, Pitch)
}

pub fn cuTexRefSetFormat(hTexRef: CUtexref, fmt: CUarray_format, NumPackedComponents: c_int) -> Result {
    element_bytes(fmt, u32::try_from(NumPackedComponents).unwrap_or(0))?;
    set(
        hTexRef,
        // SAFETY: the reference is alive.
        |hip, texref| unsafe { hip.hipTexRefSetFormat(texref, fmt.0.cast_signed(), NumPackedComponents) },
        |texref| (texref.format, texref.n_channels) = (fmt, NumPackedComponents),
    )
}

fn dimension(dim: c_int) -> Result<usize> {
    usize::try_from(dim).ok().filter(|&dim| dim < 3).ok_or(Error::InvalidValue("dim"))
}

pub fn cuTexRefSetAddressMode(hTexRef: CUtexref, dim: c_int, am: CUaddress_mode) -> Result {
    let axis = dimension(dim)?;
    if am.0 > CUaddress_mode::CU_TR_ADDRESS_MODE_BORDER.0 {
        return Err(Error::InvalidValue("am"));
    }
    set(
        hTexRef,
        // SAFETY: the reference is alive.
        |hip, texref| unsafe { hip.hipTexRefSetAddressMode(texref, dim, am.0.cast_signed()) },
        |texref| texref.texture.addressMode[axis] = am,
    )
}

fn check_filter(fm: CUfilter_mode) -> Result {
    if fm.0 > CUfilter_mode::CU_TR_FILTER_MODE_LINEAR.0 { Err(Error::InvalidValue("fm")) } else { Ok(()) }
}

pub fn cuTexRefSetFilterMode(hTexRef: CUtexref, fm: CUfilter_mode) -> Result {
    check_filter(fm)?;
    set(
        hTexRef,
        // SAFETY: the reference is alive.
        |hip, texref| unsafe { hip.hipTexRefSetFilterMode(texref, fm.0.cast_signed()) },
        |texref| texref.texture.filterMode = fm,
    )
}

pub fn cuTexRefSetMipmapFilterMode(hTexRef: CUtexref, fm: CUfilter_mode) -> Result {
    check_filter(fm)?;
    set(
        hTexRef,
        // SAFETY: the reference is alive.
        |hip, texref| unsafe { hip.hipTexRefSetMipmapFilterMode(texref, fm.0.cast_signed()) },
        |texref| texref.texture.mipmapFilterMode = fm,
    )
}

pub fn cuTexRefSetMipmapLevelBias(hTexRef: CUtexref, bias: f32) -> Result {
    set(
        hTexRef,
        // SAFETY: the reference is alive.
        |hip, texref| unsafe { hip.hipTexRefSetMipmapLevelBias(texref, bias) },
        |texref| texref.texture.mipmapLevelBias = bias,
    )
}

pub fn cuTexRefSetMipmapLevelClamp(
    hTexRef: CUtexref,
    minMipmapLevelClamp: f32,
    maxMipmapLevelClamp: f32,
) -> Result {
    set(
        hTexRef,
        // SAFETY: the reference is alive.
        |hip, texref| unsafe {
            hip.hipTexRefSetMipmapLevelClamp(texref, minMipmapLevelClamp, maxMipmapLevelClamp)
        },
        |texref| {
            texref.texture.minMipmapLevelClamp = minMipmapLevelClamp;
            texref.texture.maxMipmapLevelClamp = maxMipmapLevelClamp;
        },
    )
}

pub fn cuTexRefSetMaxAnisotropy(hTexRef: CUtexref, maxAniso: c_uint) -> Result {
    set(
        hTexRef,
        // SAFETY: the reference is alive.
        |hip, texref| unsafe { hip.hipTexRefSetMaxAnisotropy(texref, maxAniso) },
        |texref| texref.texture.maxAnisotropy = maxAniso,
    )
}

/// # Safety
/// `pBorderColor` is NULL, or has four elements.
pub unsafe fn cuTexRefSetBorderColor(hTexRef: CUtexref, pBorderColor: *mut f32) -> Result {
    if pBorderColor.is_null() {
        return Err(Error::InvalidValue("pBorderColor"));
    }
    // SAFETY: the caller's promise: four floats.
    let colour = unsafe { pBorderColor.cast::<[f32; 4]>().read_unaligned() };
    set(
        hTexRef,
        // SAFETY: the reference is alive; the colour is readable.
        |hip, texref| unsafe { hip.hipTexRefSetBorderColor(texref, colour.as_ptr().cast_mut()) },
        |texref| texref.texture.borderColor = colour,
    )
}

pub fn cuTexRefSetFlags(hTexRef: CUtexref, Flags: c_uint) -> Result {
    set(
        hTexRef,
        // SAFETY: the reference is alive.
        |hip, texref| unsafe { hip.hipTexRefSetFlags(texref, Flags) },
        |texref| texref.texture.flags = Flags,
    )
}

fn get<R>(reference: CUtexref, look: impl FnOnce(&TexRef) -> Result<R>) -> Result<R> {
    TexRef::with(reference, |texref| look(texref))
}

pub fn cuTexRefGetArray(phArray: Out<'_, CUarray>, hTexRef: CUtexref) -> Result {
    phArray.write(get(hTexRef, |texref| match texref.bound {
        Some(Resource::Array(array)) => Ok(array.0),
        _ => Err(Error::InvalidValue("hTexRef: no array is bound")),
    })?);
    Ok(())
}

pub fn cuTexRefGetMipmappedArray(phMipmappedArray: Out<'_, CUmipmappedArray>, hTexRef: CUtexref) -> Result {
    phMipmappedArray.write(get(hTexRef, |texref| match texref.bound {
        Some(Resource::Mipmap(mipmap)) => Ok(mipmap.0),
        _ => Err(Error::InvalidValue("hTexRef: no mipmapped array is bound")),
    })?);
    Ok(())
}

pub fn cuTexRefGetAddress_v2(pdptr: Out<'_, CUdeviceptr>, hTexRef: CUtexref) -> Result {
    pdptr.write(get(hTexRef, |texref| match texref.bound {
        Some(Resource::Linear { at, .. } | Resource::Pitch2D { at, .. }) => Ok(at),
        _ => Err(Error::InvalidValue("hTexRef: no memory is bound")),
    })?);
    Ok(())
}

/// CUDA: a result that nobody asks for is ignored.
pub fn cuTexRefGetFormat(
    pFormat: OptOut<'_, CUarray_format>,
    pNumChannels: OptOut<'_, c_int>,
    hTexRef: CUtexref,
) -> Result {
    let (format, n_channels) = get(hTexRef, |texref| Ok((texref.format, texref.n_channels)))?;
    pFormat.write(format);
    pNumChannels.write(n_channels);
    Ok(())
}

pub fn cuTexRefGetAddressMode(pam: Out<'_, CUaddress_mode>, hTexRef: CUtexref, dim: c_int) -> Result {
    let axis = dimension(dim)?;
    pam.write(get(hTexRef, |texref| Ok(texref.texture.addressMode[axis]))?);
    Ok(())
}

pub fn cuTexRefGetFilterMode(pfm: Out<'_, CUfilter_mode>, hTexRef: CUtexref) -> Result {
    pfm.write(get(hTexRef, |texref| Ok(texref.texture.filterMode))?);
    Ok(())
}

pub fn cuTexRefGetMipmapFilterMode(pfm: Out<'_, CUfilter_mode>, hTexRef: CUtexref) -> Result {
    pfm.write(get(hTexRef, |texref| Ok(texref.texture.mipmapFilterMode))?);
    Ok(())
}

pub fn cuTexRefGetMipmapLevelBias(pbias: Out<'_, f32>, hTexRef: CUtexref) -> Result {
    pbias.write(get(hTexRef, |texref| Ok(texref.texture.mipmapLevelBias))?);
    Ok(())
}

pub fn cuTexRefGetMipmapLevelClamp(
    pminMipmapLevelClamp: Out<'_, f32>,
    pmaxMipmapLevelClamp: Out<'_, f32>,
    hTexRef: CUtexref,
) -> Result {
    let texture = get(hTexRef, |texref| Ok(texref.texture))?;
    pminMipmapLevelClamp.write(texture.minMipmapLevelClamp);
    pmaxMipmapLevelClamp.write(texture.maxMipmapLevelClamp);
    Ok(())
}

pub fn cuTexRefGetMaxAnisotropy(pmaxAniso: Out<'_, c_int>, hTexRef: CUtexref) -> Result {
    pmaxAniso.write(get(hTexRef, |texref| Ok(texref.texture.maxAnisotropy.cast_signed()))?);
    Ok(())
}

/// # Safety
/// `pBorderColor` is NULL, or has room for four elements.
pub unsafe fn cuTexRefGetBorderColor(pBorderColor: *mut f32, hTexRef: CUtexref) -> Result {
    if pBorderColor.is_null() {
        return Err(Error::InvalidValue("pBorderColor"));
    }
    let colour = get(hTexRef, |texref| Ok(texref.texture.borderColor))?;
    // SAFETY: the caller's promise: room for four floats.
    unsafe { pBorderColor.cast::<[f32; 4]>().write_unaligned(colour) };
    Ok(())
}

pub fn cuTexRefGetFlags(pFlags: Out<'_, c_uint>, hTexRef: CUtexref) -> Result {
    pFlags.write(get(hTexRef, |texref| Ok(texref.texture.flags))?);
    Ok(())
}
