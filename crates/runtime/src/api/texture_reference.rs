//! Texture and surface references (CUDA 11): variables of the program, registered by their address and bound to memory.
//! What the program set in the variable counts when it binds.

use core::ffi::{c_char, c_int, c_void};
use std::ptr;

use border::{OptOut, Out};
use cuda_abi::runtime::{
    cudaArray_const_t, cudaChannelFormatDesc, cudaMipmappedArray_const_t, cudaTextureReadMode,
    surfaceReference, textureReference,
};
use cuda_abi::{
    CU_TRSA_OVERRIDE_FORMAT, CU_TRSF_NORMALIZED_COORDINATES, CU_TRSF_READ_AS_INTEGER, CU_TRSF_SRGB,
    CUDA_ARRAY_DESCRIPTOR, CUaddress_mode, CUarray_format, CUfilter_mode, CUsurfref, CUtexref,
};

use super::array::{descriptor, driver_array, driver_mipmap};
use super::channel::format_of;
use super::memory::address;
use super::texture::check_modes;
use crate::driver::Driver;
use crate::registry::{self, Kind, Reference};
use crate::{Error, Result, device};

/// nvcc gives the symbol's name in place of an address; `deviceName` is the source's (`::scope::name`).
///
/// # Safety
/// `deviceAddress` is NULL, or a C string that stays as long as `fatCubinHandle`.
pub unsafe fn __cudaRegisterTexture(
    fatCubinHandle: *mut *mut c_void,
    hostVar: *const textureReference,
    deviceAddress: *mut *const c_void,
    _deviceName: *const c_char,
    _dim: c_int,
    norm: c_int,
    _ext: c_int,
) {
    if deviceAddress.is_null() {
        return;
    }
    let kind = Kind::Texture { normalizes: norm != 0 };
    // SAFETY: the caller's promise; generated code passes a literal.
    unsafe { registry::add_reference(fatCubinHandle, hostVar.cast(), deviceAddress.cast(), kind) };
}

/// # Safety
/// `deviceAddress` is NULL, or a C string that stays as long as `fatCubinHandle`.
pub unsafe fn __cudaRegisterSurface(
    fatCubinHandle: *mut *mut c_void,
    hostVar: *const surfaceReference,
    deviceAddress: *mut *const c_void,
    _deviceName: *const c_char,
    _dim: c_int,
    _ext: c_int,
) {
    if deviceAddress.is_null() {
        return;
    }
    // SAFETY: the caller's promise; generated code passes a literal.
    unsafe { registry::add_reference(fatCubinHandle, hostVar.cast(), deviceAddress.cast(), Kind::Surface) };
}

/// A registered texture on its way to be bound.
struct Binding {
    reference: std::sync::Arc<Reference>,
    settings: textureReference,
    driver: &'static Driver,
    texref: CUtexref,
}

impl Binding {
    fn of(texref: *const textureReference) -> Result<Binding> {
        let driver = device::attach()?;
        let reference = registry::texture(texref.cast()).ok_or(Error::InvalidTexture)?;
        let mut handle: CUtexref = ptr::null_mut();
        driver.cuModuleGetTexRef(&mut handle, reference.module()?, reference.name.as_ptr())?;
        // SAFETY: the registry knows the address, so it is that of a variable the program registered.
        let settings = unsafe { texref.read() };
        Ok(Binding { reference, settings, driver, texref: handle })
    }

    /// The sampler, which every way of binding sets.
    fn sample(&self, format: CUarray_format) -> Result {
        let Binding { driver, settings, texref, .. } = self;
        let read = if self.reference.normalizes() {
            cudaTextureReadMode::cudaReadModeNormalizedFloat
        } else {
            cudaTextureReadMode::cudaReadModeElementType
        };
        check_modes(format, read, settings.filterMode)?;
        for (dim, mode) in (0..).zip(settings.addressMode) {
            driver.cuTexRefSetAddressMode(*texref, dim, CUaddress_mode(mode.0))?;
        }
        driver.cuTexRefSetFilterMode(*texref, CUfilter_mode(settings.filterMode.0))?;
        driver.cuTexRefSetMipmapFilterMode(*texref, CUfilter_mode(settings.mipmapFilterMode.0))?;
        driver.cuTexRefSetMipmapLevelBias(*texref, settings.mipmapLevelBias)?;
        let (least, most) = (settings.minMipmapLevelClamp, settings.maxMipmapLevelClamp);
        driver.cuTexRefSetMipmapLevelClamp(*texref, least, most)?;
        driver.cuTexRefSetMaxAnisotropy(*texref, settings.maxAnisotropy)?;
        let flag = |set: bool, flag: u32| if set { flag } else { 0 };
        let flags = flag(read == cudaTextureReadMode::cudaReadModeElementType, CU_TRSF_READ_AS_INTEGER)
            | flag(settings.normalized != 0, CU_TRSF_NORMALIZED_COORDINATES)
            | flag(settings.sRGB != 0, CU_TRSF_SRGB);
        driver.cuTexRefSetFlags(*texref, flags)
    }
}

/// CUDA: `size` may reach beyond the allocation (the C++ form's default is the largest unsigned int).
fn clamped(driver: &Driver, at: *const c_void, size: usize) -> Result<usize> {
    let (mut base, mut len_bytes) = (0, 0);
    driver.cuMemGetAddressRange_v2(&mut base, &mut len_bytes, address(at))?;
    let behind = usize::try_from(address(at) - base).map_err(|_| Error::InvalidValue("devPtr"))?;
    Ok(size.min(len_bytes.saturating_sub(behind)))
}

pub fn cudaBindTexture(
    offset: OptOut<'_, usize>,
    texref: *const textureReference,
    devPtr: *const c_void,
    desc: &cudaChannelFormatDesc,
    size: usize,
) -> Result {
    let binding = Binding::of(texref)?;
    let (format, n_channels) = format_of(desc)?;
    binding.sample(format)?;
    let driver = binding.driver;
    let size = clamped(driver, devPtr, size)?;
    driver.cuTexRefSetFormat(binding.texref, format, n_channels.cast_signed())?;
    let mut found = 0;
    driver.cuTexRefSetAddress_v2(&mut found, binding.texref, address(devPtr), size)?;
    binding.reference.bind(Some(found));
    offset.write(found);
    Ok(())
}

pub fn cudaBindTexture2D(
    offset: OptOut<'_, usize>,
    texref: *const textureReference,
    devPtr: *const c_void,
    desc: &cudaChannelFormatDesc,
    width: usize,
    height: usize,
    pitch: usize,
) -> Result {
    let binding = Binding::of(texref)?;
    let (format, n_channels) = format_of(desc)?;
    binding.sample(format)?;
    let shape =
        CUDA_ARRAY_DESCRIPTOR { Width: width, Height: height, Format: format, NumChannels: n_channels };
    binding.driver.cuTexRefSetAddress2D_v3(binding.texref, &shape, address(devPtr), pitch)?;
    binding.reference.bind(Some(0));
    offset.write(0);
    Ok(())
}

/// CUDA: the descriptor has to be the array's own.
fn check_desc(desc: &cudaChannelFormatDesc, format: CUarray_format, n_channels: u32) -> Result {
    if format_of(desc)? == (format, n_channels) { Ok(()) } else { Err(Error::InvalidChannelDescriptor) }
}

pub fn cudaBindTextureToArray(
    texref: *const textureReference,
    array: cudaArray_const_t,
    desc: &cudaChannelFormatDesc,
) -> Result {
    let binding = Binding::of(texref)?;
    let found = descriptor(binding.driver, array)?;
    check_desc(desc, found.Format, found.NumChannels)?;
    binding.sample(found.Format)?;
    binding.driver.cuTexRefSetArray(binding.texref, driver_array(array), CU_TRSA_OVERRIDE_FORMAT)?;
    binding.reference.bind(Some(0));
    Ok(())
}

pub fn cudaBindTextureToMipmappedArray(
    texref: *const textureReference,
    mipmappedArray: cudaMipmappedArray_const_t,
    desc: &cudaChannelFormatDesc,
) -> Result {
    let binding = Binding::of(texref)?;
    let (format, _) = format_of(desc)?;
    binding.sample(format)?;
    binding.driver.cuTexRefSetMipmappedArray(
        binding.texref,
        driver_mipmap(mipmappedArray),
        CU_TRSA_OVERRIDE_FORMAT,
    )?;
    binding.reference.bind(Some(0));
    Ok(())
}

/// CUDA: a texture that is not bound stays so.
pub fn cudaUnbindTexture(texref: *const textureReference) -> Result {
    device::attach()?;
    registry::texture(texref.cast()).ok_or(Error::InvalidTexture)?.bind(None);
    Ok(())
}

pub fn cudaGetTextureAlignmentOffset(offset: Out<'_, usize>, texref: *const textureReference) -> Result {
    device::attach()?;
    let reference = registry::texture(texref.cast()).ok_or(Error::InvalidTexture)?;
    offset.write(reference.offset().ok_or(Error::InvalidTextureBinding)?);
    Ok(())
}

/// The reference that a symbol names is the variable itself.
pub fn cudaGetTextureReference(texref: Out<'_, *const textureReference>, symbol: *const c_void) -> Result {
    registry::texture(symbol).ok_or(Error::InvalidTexture)?;
    texref.write(symbol.cast());
    Ok(())
}

pub fn cudaBindSurfaceToArray(
    surfref: *const surfaceReference,
    array: cudaArray_const_t,
    desc: &cudaChannelFormatDesc,
) -> Result {
    let driver = device::attach()?;
    let reference = registry::surface(surfref.cast()).ok_or(Error::InvalidSurface)?;
    let found = descriptor(driver, array)?;
    check_desc(desc, found.Format, found.NumChannels)?;
    let mut handle: CUsurfref = ptr::null_mut();
    driver.cuModuleGetSurfRef(&mut handle, reference.module()?, reference.name.as_ptr())?;
    driver.cuSurfRefSetArray(handle, driver_array(array), 0)
}

pub fn cudaGetSurfaceReference(surfref: Out<'_, *const surfaceReference>, symbol: *const c_void) -> Result {
    registry::surface(symbol).ok_or(Error::InvalidSurface)?;
    surfref.write(symbol.cast());
    Ok(())
}
