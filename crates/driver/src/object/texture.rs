//! Texture and surface objects, and the named references of modules.
//!
//! An object's handle is the provider's own: kernels get it as a plain number. What the program said about it is kept here.

use core::ffi::{CStr, c_int, c_uint};
use std::collections::HashMap;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use compiler::texture::Opaque;
use cuda_abi::{
    CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION, CU_TRSF_NORMALIZED_COORDINATES, CU_TRSF_READ_AS_INTEGER,
    CU_TRSF_SEAMLESS_CUBEMAP, CU_TRSF_SRGB, CUDA_ARRAY3D_DESCRIPTOR, CUDA_ARRAY3D_LAYERED,
    CUDA_ARRAY3D_SURFACE_LDST, CUDA_RESOURCE_DESC, CUDA_RESOURCE_VIEW_DESC, CUDA_TEXTURE_DESC,
    CUaddress_mode, CUarray, CUarray_format, CUdevice_attribute, CUdeviceptr, CUfilter_mode,
    CUmipmappedArray, CUmodule, CUresourcetype, CUsurfref, CUtexref,
};
use hip_sys::{
    HIP_RESOURCE_DESC, HIP_RESOURCE_LINEAR, HIP_RESOURCE_PITCH2D, HIP_RESOURCE_UNION, HIP_RESOURCE_VIEW_DESC,
    HIP_TEXTURE_DESC, hipMemcpyHostToDevice, hipResourceDesc, hipResourceTypeArray, hipResourceTypeLinear,
    hipResourceTypeMipmappedArray, hipResourceTypePitch2D, hipResourceUnion, hipSurfaceObject_t,
    hipTextureObject_t, textureReference,
};
use parking_lot::Mutex;

use super::array::{Array, Mipmap, element_bytes};
use super::device::Target;
use super::gfx::sampler::{Sampler, Texels};
use super::memory::{self, raw};
use super::{Context, Module, Shared};
use crate::api::device::attribute;
use crate::{Error, Result};

static TEXTURES: LazyLock<Mutex<HashMap<u64, Texture>>> = LazyLock::new(Mutex::default);
static SURFACES: LazyLock<Mutex<HashMap<u64, Surface>>> = LazyLock::new(Mutex::default);
static TEXREFS: LazyLock<Mutex<HashMap<usize, TexRef>>> = LazyLock::new(Mutex::default);
static SURFREFS: LazyLock<Mutex<HashMap<usize, SurfRef>>> = LazyLock::new(Mutex::default);

/// What a texture or surface reads.
#[derive(Clone, Copy)]
pub enum Resource {
    Array(Shared<CUarray>),
    Mipmap(Shared<CUmipmappedArray>),
    Linear { at: CUdeviceptr, format: CUarray_format, n_channels: c_uint, len_bytes: usize },
    Pitch2D { at: CUdeviceptr, format: CUarray_format, n_channels: c_uint, size: [usize; 2], pitch: usize },
}

impl Resource {
    pub fn read(desc: &CUDA_RESOURCE_DESC) -> Result<Resource> {
        // CUDA: no flags exist yet.
        if desc.flags != 0 {
            return Err(Error::InvalidValue("pResDesc.flags"));
        }
        match desc.resType {
            CUresourcetype::CU_RESOURCE_TYPE_ARRAY => {
                // SAFETY: the member that belongs to the type.
                Ok(Resource::Array(Shared(unsafe { desc.res.array }.hArray)))
            }
            CUresourcetype::CU_RESOURCE_TYPE_MIPMAPPED_ARRAY => {
                // SAFETY: the member that belongs to the type.
                Ok(Resource::Mipmap(Shared(unsafe { desc.res.mipmap }.hMipmappedArray)))
            }
            CUresourcetype::CU_RESOURCE_TYPE_LINEAR => {
                // SAFETY: the member that belongs to the type.
                let it = unsafe { desc.res.linear };
                let (at, n_channels, len_bytes) = (it.devPtr, it.numChannels, it.sizeInBytes);
                Ok(Resource::Linear { at, format: it.format, n_channels, len_bytes })
            }
            CUresourcetype::CU_RESOURCE_TYPE_PITCH2D => {
                // SAFETY: the member that belongs to the type.
                let it = unsafe { desc.res.pitch2D };
                let (n_channels, size) = (it.numChannels, [it.width, it.height]);
                Ok(Resource::Pitch2D {
                    at: it.devPtr,
                    format: it.format,
                    n_channels,
                    size,
                    pitch: it.pitchInBytes,
                })
            }
            _ => Err(Error::InvalidValue("pResDesc.resType")),
        }
    }

    pub fn write(self) -> CUDA_RESOURCE_DESC {
        let mut desc = CUDA_RESOURCE_DESC::default();
        match self {
            Resource::Array(array) => {
                desc.resType = CUresourcetype::CU_RESOURCE_TYPE_ARRAY;
                desc.res.array.hArray = array.0;
            }
            Resource::Mipmap(mipmap) => {
                desc.resType = CUresourcetype::CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
                desc.res.mipmap.hMipmappedArray = mipmap.0;
            }
            Resource::Linear { at, format, n_channels, len_bytes } => {
                desc.resType = CUresourcetype::CU_RESOURCE_TYPE_LINEAR;
                desc.res.linear.devPtr = at;
                desc.res.linear.format = format;
                desc.res.linear.numChannels = n_channels;
                desc.res.linear.sizeInBytes = len_bytes;
            }
            Resource::Pitch2D { at, format, n_channels, size, pitch } => {
                desc.resType = CUresourcetype::CU_RESOURCE_TYPE_PITCH2D;
                desc.res.pitch2D.devPtr = at;
                desc.res.pitch2D.format = format;
                desc.res.pitch2D.numChannels = n_channels;
                [desc.res.pitch2D.width, desc.res.pitch2D.height] = size;
                desc.res.pitch2D.pitchInBytes = pitch;
            }
        }
        desc
    }

    fn format(self) -> Result<CUarray_format> {
        Ok(match self {
            Resource::Array(array) => Array::from_handle(array.0)?.descriptor.Format,
            Resource::Mipmap(mipmap) => Mipmap::from_handle(mipmap.0)?.descriptor.Format,
            Resource::Linear { format, .. } | Resource::Pitch2D { format, .. } => format,
        })
    }

    fn texels(self, gives_integers: bool) -> Result<Texels> {
        let layers =
            |of: &CUDA_ARRAY3D_DESCRIPTOR| if of.Flags & CUDA_ARRAY3D_LAYERED != 0 { of.Depth } else { 0 };
        let (is_mipmapped, n_channels, n_layers) = match self {
            Resource::Array(array) => {
                let of = Array::from_handle(array.0)?.descriptor;
                (false, of.NumChannels, layers(&of))
            }
            Resource::Mipmap(mipmap) => {
                let of = Mipmap::from_handle(mipmap.0)?.descriptor;
                (true, of.NumChannels, layers(&of))
            }
            Resource::Linear { n_channels, .. } | Resource::Pitch2D { n_channels, .. } => {
                (false, n_channels, 0)
            }
        };
        Ok(Texels { is_mipmapped, gives_integers, n_channels, n_layers })
    }

    /// The same for the provider, after CUDA's checks.
    fn to_hip(self, context: &Context) -> Result<HIP_RESOURCE_DESC> {
        let (resType, res) = match self {
            Resource::Array(array) => {
                let array = Array::from_handle(array.0)?.hip.0;
                (hipResourceTypeArray, HIP_RESOURCE_UNION { array })
            }
            Resource::Mipmap(mipmap) => {
                let mipmap = Mipmap::from_handle(mipmap.0)?.hip.0;
                (hipResourceTypeMipmappedArray, HIP_RESOURCE_UNION { mipmap })
            }
            Resource::Linear { at, format, n_channels, len_bytes } => {
                let element = element_bytes(format, n_channels)?;
                aligned(context, at, CUdevice_attribute::CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT)?;
                // CUDA takes a size that goes beyond the allocation (NVIDIA's sample convolutionFFT2D has one).
                memory::check(at, len_bytes.min(1), "devPtr")?;
                let most =
                    limit(context, CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH);
                // CUDA: an upper bound of elements, which a device without one leaves open.
                if most.is_some_and(|most| len_bytes / element > most) {
                    return Err(Error::InvalidValue("sizeInBytes"));
                }
                let linear = HIP_RESOURCE_LINEAR {
                    devPtr: raw(at),
                    format: format.0.cast_signed(),
                    numChannels: n_channels,
                    sizeInBytes: len_bytes,
                };
                (hipResourceTypeLinear, HIP_RESOURCE_UNION { linear })
            }
            Resource::Pitch2D { at, format, n_channels, size: [width, height], pitch } => {
                let row = element_bytes(format, n_channels)?.checked_mul(width);
                aligned(context, at, CUdevice_attribute::CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT)?;
                aligned(
                    context,
                    pitch as u64,
                    CUdevice_attribute::CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT,
                )?;
                let row = row.filter(|&row| row <= pitch).ok_or(Error::InvalidValue("pitchInBytes"))?;
                let before = height.checked_sub(1).and_then(|rows| rows.checked_mul(pitch));
                let all =
                    before.and_then(|bytes| bytes.checked_add(row)).ok_or(Error::InvalidValue("height"))?;
                memory::check(at, all, "devPtr")?;
                let pitch2D = HIP_RESOURCE_PITCH2D {
                    devPtr: raw(at),
                    format: format.0.cast_signed(),
                    numChannels: n_channels,
                    width,
                    height,
                    pitchInBytes: pitch,
                };
                (hipResourceTypePitch2D, HIP_RESOURCE_UNION { pitch2D })
            }
        };
        Ok(HIP_RESOURCE_DESC { resType, res, flags: 0 })
    }
}

fn limit(context: &Context, attrib: CUdevice_attribute) -> Option<usize> {
    attribute(context.device, attrib).and_then(|value| usize::try_from(value).ok()).filter(|&value| value > 0)
}

/// CUDA: textures over plain memory begin where the device says they may.
fn aligned(context: &Context, at: u64, attrib: CUdevice_attribute) -> Result {
    let alignment = limit(context, attrib).unwrap_or(1) as u64;
    if at.is_multiple_of(alignment) {
        Ok(())
    } else {
        Err(Error::InvalidValue("devPtr or pitch: not aligned"))
    }
}

/// A live texture object.
#[derive(Clone, Copy)]
pub struct Texture {
    context: &'static Context,
    context_id: u64,
    pub resource: Resource,
    pub texture: CUDA_TEXTURE_DESC,
    pub view: Option<CUDA_RESOURCE_VIEW_DESC>,
}

/// The sampler as HIP takes it: same layout, same numbers.
fn sampler(desc: &CUDA_TEXTURE_DESC, format: CUarray_format) -> Result<HIP_TEXTURE_DESC> {
    const KNOWN: u32 = CU_TRSF_READ_AS_INTEGER
        | CU_TRSF_NORMALIZED_COORDINATES
        | CU_TRSF_SRGB
        | CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION
        | CU_TRSF_SEAMLESS_CUBEMAP;
    let is_mode = |mode: CUaddress_mode| mode.0 <= CUaddress_mode::CU_TR_ADDRESS_MODE_BORDER.0;
    let is_filter = |filter: CUfilter_mode| filter.0 <= CUfilter_mode::CU_TR_FILTER_MODE_LINEAR.0;
    if desc.flags & !KNOWN != 0
        || !desc.addressMode.into_iter().all(is_mode)
        || !is_filter(desc.filterMode)
        || !is_filter(desc.mipmapFilterMode)
    {
        return Err(Error::InvalidValue("pTexDesc"));
    }
    // CUDA: what is read as integers is not filtered.
    if desc.filterMode == CUfilter_mode::CU_TR_FILTER_MODE_LINEAR && gives_integers(format, desc.flags) {
        return Err(Error::InvalidValue("pTexDesc.filterMode: of integers"));
    }
    let number = |mode: CUaddress_mode| mode.0.cast_signed();
    Ok(HIP_TEXTURE_DESC {
        addressMode: desc.addressMode.map(number),
        filterMode: desc.filterMode.0.cast_signed(),
        flags: desc.flags,
        maxAnisotropy: desc.maxAnisotropy,
        mipmapFilterMode: desc.mipmapFilterMode.0.cast_signed(),
        mipmapLevelBias: desc.mipmapLevelBias,
        minMipmapLevelClamp: desc.minMipmapLevelClamp,
        maxMipmapLevelClamp: desc.maxMipmapLevelClamp,
        borderColor: desc.borderColor,
        reserved: [0; 12],
    })
}

/// CUDA: 32-bit integers are never promoted to floats, smaller ones unless the flag says otherwise.
fn gives_integers(format: CUarray_format, flags: u32) -> bool {
    match format {
        CUarray_format::CU_AD_FORMAT_HALF | CUarray_format::CU_AD_FORMAT_FLOAT => false,
        CUarray_format::CU_AD_FORMAT_UNSIGNED_INT32 | CUarray_format::CU_AD_FORMAT_SIGNED_INT32 => true,
        _ => flags & CU_TRSF_READ_AS_INTEGER != 0,
    }
}

fn view_of(desc: &CUDA_RESOURCE_VIEW_DESC) -> HIP_RESOURCE_VIEW_DESC {
    HIP_RESOURCE_VIEW_DESC {
        format: desc.format.0.cast_signed(),
        width: desc.width,
        height: desc.height,
        depth: desc.depth,
        firstMipmapLevel: desc.firstMipmapLevel,
        lastMipmapLevel: desc.lastMipmapLevel,
        firstLayer: desc.firstLayer,
        lastLayer: desc.lastLayer,
        reserved: [0; 16],
    }
}

fn bits<T>(object: *mut T) -> u64 {
    object.expose_provenance() as u64
}

impl Texture {
    pub fn create(
        resource: Resource,
        texture: &CUDA_TEXTURE_DESC,
        view: Option<&CUDA_RESOURCE_VIEW_DESC>,
    ) -> Result<u64> {
        Texture::create_in(Context::current()?, resource, texture, view)
    }

    fn create_in(
        context: &'static Context,
        resource: Resource,
        texture: &CUDA_TEXTURE_DESC,
        view: Option<&CUDA_RESOURCE_VIEW_DESC>,
    ) -> Result<u64> {
        let hip_resource = resource.to_hip(context)?;
        let format = resource.format()?;
        let hip_texture = sampler(texture, format)?;
        // CUDA: only arrays can be seen in another way.
        if view.is_some() && !matches!(resource, Resource::Array(_) | Resource::Mipmap(_)) {
            return Err(Error::InvalidValue("pResViewDesc"));
        }
        let gfx = match context.device.target {
            Target::Amdgcn => {
                let texels = resource.texels(gives_integers(format, texture.flags))?;
                Some(Sampler::of(&hip_texture, &texels, view)?)
            }
            Target::Cpu => None,
        };
        let told = gfx.as_ref().map_or(&hip_texture, |sampler| &sampler.told);
        let hip_view = view.map(view_of);
        let hip_view = hip_view.as_ref().map_or(core::ptr::null(), core::ptr::from_ref);
        let mut object: hipTextureObject_t = core::ptr::null_mut();
        // SAFETY: a writable handle and readable descriptions of things that are alive.
        unsafe { context.hip().hipTexObjectCreate(&mut object, &hip_resource, told, hip_view) }?;
        if let Some(sampler) = gfx {
            // SAFETY: HIP just made it for an AMD GPU.
            unsafe { sampler.complete(object) };
        }
        let entry =
            Texture { context, context_id: context.id(), resource, texture: *texture, view: view.copied() };
        TEXTURES.lock().insert(bits(object), entry);
        Ok(bits(object))
    }

    pub fn of(object: u64) -> Result<Texture> {
        crate::process::driver()?;
        TEXTURES.lock().get(&object).copied().ok_or(Error::InvalidValue("texObject"))
    }

    pub fn destroy(object: u64) -> Result {
        crate::process::driver()?;
        TEXTURES.lock().remove(&object).ok_or(Error::InvalidValue("texObject"))?.dispose(object)
    }

    fn dispose(&self, object: u64) -> Result {
        self.context.bind()?;
        let object = core::ptr::with_exposed_provenance_mut(object as usize);
        // SAFETY: the object just left the map, so this is its only end.
        Ok(unsafe { self.context.hip().hipTexObjectDestroy(object) }?)
    }
}

/// A live surface object.
#[derive(Clone, Copy)]
pub struct Surface {
    context: &'static Context,
    context_id: u64,
    pub resource: Resource,
}

impl Surface {
    /// CUDA: surfaces are arrays; whether they were made for it is not asked (measured on driver 580).
    pub fn create(resource: Resource) -> Result<u64> {
        let context = Context::current()?;
        let Resource::Array(array) = resource else { return Err(Error::InvalidValue("pResDesc.resType")) };
        let object = surface_of(context, array.0)?;
        SURFACES.lock().insert(bits(object), Surface { context, context_id: context.id(), resource });
        Ok(bits(object))
    }

    pub fn of(object: u64) -> Result<Surface> {
        crate::process::driver()?;
        SURFACES.lock().get(&object).copied().ok_or(Error::InvalidValue("surfObject"))
    }

    pub fn destroy(object: u64) -> Result {
        crate::process::driver()?;
        SURFACES.lock().remove(&object).ok_or(Error::InvalidValue("surfObject"))?.dispose(object)
    }

    fn dispose(&self, object: u64) -> Result {
        self.context.bind()?;
        let object = core::ptr::with_exposed_provenance_mut(object as usize);
        // SAFETY: the object just left the map, so this is its only end.
        Ok(unsafe { self.context.hip().hipDestroySurfaceObject(object) }?)
    }
}

fn surface_of(context: &Context, array: CUarray) -> Result<hipSurfaceObject_t> {
    let array = Array::from_handle(array)?;
    let res = hipResourceUnion { array: array.hip.0 };
    let desc = hipResourceDesc { resType: hipResourceTypeArray, res };
    let mut object: hipSurfaceObject_t = core::ptr::null_mut();
    // SAFETY: a writable handle and a readable description of an array that is alive.
    unsafe { context.hip().hipCreateSurfaceObject(&mut object, &desc) }?;
    Ok(object)
}

/// A `.texref` of a module, or one of nobody's (`cuTexRefCreate`). What the program set is kept for the calls that ask; the provider has its own copy.
#[derive(Clone, Copy)]
pub struct TexRef {
    pub hip: Shared<*mut textureReference>,
    pub context: &'static Context,
    /// The address of its module's object; 0 for one that belongs to no module.
    module: usize,
    /// On an AMD GPU: where kernels read the handle of the texture object that is bound.
    variable: Option<CUdeviceptr>,
    /// That object, or 0.
    object: u64,
    pub bound: Option<Resource>,
    pub format: CUarray_format,
    pub n_channels: c_int,
    /// As a texture object's.
    pub texture: CUDA_TEXTURE_DESC,
}

impl TexRef {
    /// `cuModuleGetTexRef`: the same handle every time.
    pub fn of_module(handle: CUmodule, name: &CStr) -> Result<CUtexref> {
        let module = Module::from_handle(handle)?;
        if let Some(at) = module.gfx_reference(Opaque::Texture, name)? {
            let texref = || {
                let texref = TexRef::new(core::ptr::null_mut(), module.context, address_of(&module));
                TexRef { variable: Some(at), ..texref }
            };
            TEXREFS.lock().entry(at as usize).or_insert_with(texref);
            return Ok(core::ptr::with_exposed_provenance_mut(at as usize));
        }
        let hip = module.texture_reference(name)?;
        let texref = || TexRef::new(hip, module.context, address_of(&module));
        TEXREFS.lock().entry(hip.addr()).or_insert_with(texref);
        Ok(hip.cast())
    }

    fn new(hip: *mut textureReference, context: &'static Context, module: usize) -> TexRef {
        TexRef {
            hip: Shared(hip),
            context,
            module,
            variable: None,
            object: 0,
            bound: None,
            format: CUarray_format::CU_AD_FORMAT_FLOAT,
            n_channels: 1,
            texture: CUDA_TEXTURE_DESC::default(),
        }
    }

    /// `cuTexRefCreate`: settings that no kernel reads. The provider never hears of it.
    pub fn create() -> Result<CUtexref> {
        static NEXT: AtomicUsize = AtomicUsize::new(1);
        let context = Context::current()?;
        // Odd: those of modules are addresses.
        let handle = NEXT.fetch_add(2, Ordering::Relaxed);
        TEXREFS.lock().insert(handle, TexRef::new(core::ptr::null_mut(), context, 0));
        Ok(core::ptr::without_provenance_mut(handle))
    }

    /// `cuTexRefDestroy`: those of modules go with them.
    pub fn destroy(handle: CUtexref) -> Result {
        TexRef::with(handle, |texref| match texref.module {
            0 => Ok(()),
            _ => Err(Error::InvalidValue("hTexRef: of a module")),
        })?;
        TEXREFS.lock().remove(&handle.addr());
        Ok(())
    }

    /// Where a linear texture begins that is bound at `dptr`, and how many bytes before it: addresses are rounded down.
    pub fn aligned(&self, dptr: CUdeviceptr) -> (CUdeviceptr, usize) {
        let attrib = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT;
        let alignment = limit(self.context, attrib).unwrap_or(1) as u64;
        (dptr - dptr % alignment, (dptr % alignment) as usize)
    }

    pub fn is_on_gfx(&self) -> bool {
        self.variable.is_some()
    }

    /// On an AMD GPU: makes a texture object of what is bound now, and gives it to the kernels to come.
    pub fn renew(&mut self) -> Result {
        let (Some(at), Some(mut bound)) = (self.variable, self.bound) else { return Ok(()) };
        if let Resource::Linear { format, n_channels, .. } = &mut bound {
            (*format, *n_channels) = (self.format, self.n_channels.unsigned_abs());
        }
        // Settings come one by one: between two of them they may be none that a texture can have.
        let object = match Texture::create_in(self.context, bound, &self.texture, None) {
            Err(Error::InvalidValue(why)) => {
                tracing::info!(target: "cudaway::driver", "the texture reference at {at:#x} has no texture: {why}");
                0
            }
            made => made?,
        };
        let place = raw(at + compiler::texture::REFERENCE_OBJECT);
        let word = (&raw const object).cast();
        // SAFETY: the reference is a variable of a live module and has room for the handle there.
        unsafe { self.context.hip().hipMemcpy(place, word, size_of::<u64>(), hipMemcpyHostToDevice) }?;
        match core::mem::replace(&mut self.object, object) {
            0 => Ok(()),
            before => Texture::destroy(before),
        }
    }

    /// Reads or changes a live reference. The change is kept if the provider took it.
    pub fn with<R>(handle: CUtexref, change: impl FnOnce(&mut TexRef) -> Result<R>) -> Result<R> {
        crate::process::driver()?;
        let mut changed = *TEXREFS.lock().get(&handle.addr()).ok_or(Error::InvalidHandle("hTexRef"))?;
        changed.context.bind()?;
        let answer = change(&mut changed)?;
        TEXREFS.lock().insert(handle.addr(), changed);
        Ok(answer)
    }
}

/// A `.surfref` of a module. HIP has none: its first words are a surface object that is written there.
#[derive(Clone, Copy)]
pub struct SurfRef {
    context: &'static Context,
    /// The address of its module's object.
    module: usize,
    at: CUdeviceptr,
    /// The array bound to it and the surface object made for it.
    bound: Option<(Shared<CUarray>, Shared<hipSurfaceObject_t>)>,
}

impl SurfRef {
    /// `cuModuleGetSurfRef`: the same handle every time.
    pub fn of_module(handle: CUmodule, name: &CStr) -> Result<CUsurfref> {
        let module = Module::from_handle(handle)?;
        let at = module.surface_reference(name)?;
        let surfref = || SurfRef { context: module.context, module: address_of(&module), at, bound: None };
        SURFREFS.lock().entry(at as usize).or_insert_with(surfref);
        Ok(core::ptr::with_exposed_provenance_mut(at as usize))
    }

    fn of(handle: CUsurfref) -> Result<SurfRef> {
        crate::process::driver()?;
        let found = SURFREFS.lock().get(&handle.addr()).copied().ok_or(Error::InvalidHandle("hSurfRef"))?;
        found.context.bind()?;
        Ok(found)
    }

    pub fn array(handle: CUsurfref) -> Result<CUarray> {
        SurfRef::of(handle)?.bound.map(|(array, _)| array.0).ok_or(Error::InvalidValue("hSurfRef: not bound"))
    }

    pub fn bind(handle: CUsurfref, array: CUarray) -> Result {
        let reference = SurfRef::of(handle)?;
        // CUDA: a reference is bound to an array that was made for it.
        if Array::from_handle(array)?.descriptor.Flags & CUDA_ARRAY3D_SURFACE_LDST == 0 {
            return Err(Error::InvalidValue("hArray: made without CUDA_ARRAY3D_SURFACE_LDST"));
        }
        let object = surface_of(reference.context, array)?;
        let word = bits(object);
        let place = raw(reference.at + compiler::texture::REFERENCE_OBJECT);
        let hip = reference.context.hip();
        // SAFETY: the reference is a variable of a live module and has room for the handle there.
        unsafe { hip.hipMemcpy(place, (&raw const word).cast(), size_of::<u64>(), hipMemcpyHostToDevice) }?;
        let bound = Some((Shared(array), Shared(object)));
        let before = SURFREFS.lock().insert(handle.addr(), SurfRef { bound, ..reference });
        before.map_or(Ok(()), |before| before.release())
    }

    fn release(&self) -> Result {
        match self.bound {
            // SAFETY: nothing names the object any more.
            Some((_, object)) => Ok(unsafe { self.context.hip().hipDestroySurfaceObject(object.0) }?),
            None => Ok(()),
        }
    }
}

fn address_of(module: &Module) -> usize {
    core::ptr::from_ref(module).addr()
}

/// The references of a module that goes.
pub fn forget_module(module: &Module) {
    let module = address_of(module);
    let gone: Vec<_> = TEXREFS.lock().extract_if(|_, reference| reference.module == module).collect();
    for (_, reference) in gone.iter().filter(|(_, reference)| reference.object != 0) {
        // The module goes whatever HIP says.
        let _ = Texture::destroy(reference.object);
    }
    let gone: Vec<_> = SURFREFS.lock().extract_if(|_, reference| reference.module == module).collect();
    for (_, reference) in gone {
        // The module goes whatever HIP says.
        let _ = reference.release();
    }
}

/// Destroys every object of a context that ends.
pub fn destroy_all(context_id: u64) {
    // The context ends whatever HIP says.
    let textures: Vec<_> = TEXTURES.lock().extract_if(|_, it| it.context_id == context_id).collect();
    for (object, texture) in textures {
        let _ = texture.dispose(object);
    }
    TEXREFS.lock().retain(|_, it| it.module != 0 || it.context.id() != context_id);
    let surfaces: Vec<_> = SURFACES.lock().extract_if(|_, it| it.context_id == context_id).collect();
    for (object, surface) in surfaces {
        let _ = surface.dispose(object);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_not_filtered_unless_they_become_floats() {
        let linear =
            CUDA_TEXTURE_DESC { filterMode: CUfilter_mode::CU_TR_FILTER_MODE_LINEAR, ..Default::default() };
        let as_integer = CUDA_TEXTURE_DESC { flags: CU_TRSF_READ_AS_INTEGER, ..linear };
        assert!(sampler(&linear, CUarray_format::CU_AD_FORMAT_UNSIGNED_INT8).is_ok());
        assert!(sampler(&as_integer, CUarray_format::CU_AD_FORMAT_UNSIGNED_INT8).is_err());
        assert!(sampler(&as_integer, CUarray_format::CU_AD_FORMAT_FLOAT).is_ok());
        assert!(sampler(&linear, CUarray_format::CU_AD_FORMAT_SIGNED_INT32).is_err());
    }
}
