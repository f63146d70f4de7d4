//! Texture and surface objects, and the named references of modules: the host's side of `exec::texture`.
//!
//! A handle is the address of the object's [`Image`]. Images are never given back to the allocator, so a stale handle
//! finds an image without a mark, or a newer object's.

use std::collections::BTreeMap;
use std::sync::Arc;

use compiler::texture::{Opaque, REFERENCE_BYTES, REFERENCE_OBJECT, Sampler, address_mode, mark};
use hip_sys::*;
use parking_lot::{Mutex, RwLock};

use crate::array::{Array, Element, Mipmapped};
use crate::error::Result;
use crate::exec::texture::{Image, Level, MAX_LEVELS, flag};
use crate::memory;

/// What a texture reads.
#[derive(Clone)]
pub enum Resource {
    Array(Arc<Array>),
    Mipmapped(Arc<Mipmapped>),
    Linear { at: usize, element: Element, bytes: usize },
    Pitch2D { at: usize, element: Element, width: usize, height: usize, pitch: usize },
}

/// As `cuTexObjectCreate` limits them.
const BASE_ALIGN: usize = 512;
const PITCH_ALIGN: usize = 32;
const MAX_LINEAR: usize = 1 << 28;
/// Bits of `HIP_TEXTURE_DESC::flags` that HIP's header lacks and CUDA has: no trilinear optimisation, seamless cubemap.
const SEAMLESS_CUBEMAP: u32 = 0x40;
const FLAGS: u32 =
    HIP_TRSF_READ_AS_INTEGER | HIP_TRSF_NORMALIZED_COORDINATES | HIP_TRSF_SRGB | 0x20 | SEAMLESS_CUBEMAP;

impl Resource {
    pub fn element(&self) -> Result<Element> {
        match self {
            Resource::Array(array) => Ok(array.element),
            Resource::Mipmapped(mipmapped) => {
                mipmapped.levels.first().map(|level| level.element).ok_or(hipErrorInvalidValue)
            }
            Resource::Linear { element, .. } | Resource::Pitch2D { element, .. } => Ok(*element),
        }
    }

    /// CUDA's rules for memory that the program allocated.
    pub fn check(&self) -> Result {
        let good = match self {
            Resource::Array(_) | Resource::Mipmapped(_) => true,
            Resource::Linear { at, element, bytes } => {
                // CUDA takes a size beyond the allocation; what is read there is nothing, as behind the end (`levels`).
                memory::device_range(*at, 1)?;
                at.is_multiple_of(BASE_ALIGN) && *bytes > 0 && bytes / element.bytes() <= MAX_LINEAR
            }
            Resource::Pitch2D { at, element, width, height, pitch } => {
                let row = width.checked_mul(element.bytes()).ok_or(hipErrorInvalidValue)?;
                let extent = (height.max(&1) - 1).checked_mul(*pitch).and_then(|it| it.checked_add(row));
                memory::device_range(*at, extent.ok_or(hipErrorInvalidValue)?)?;
                at.is_multiple_of(BASE_ALIGN)
                    && pitch.is_multiple_of(PITCH_ALIGN)
                    && *width > 0
                    && *height > 0
                    && *pitch >= row
            }
        };
        if good { Ok(()) } else { Err(hipErrorInvalidValue) }
    }

    fn array_flags(&self) -> u32 {
        match self {
            Resource::Array(array) => array.flags,
            Resource::Mipmapped(mipmapped) => mipmapped.flags,
            Resource::Linear { .. } | Resource::Pitch2D { .. } => 0,
        }
    }

    /// Levels, their number, and dimensions.
    fn levels(&self) -> ([Level; MAX_LEVELS], usize, u32) {
        let mut levels = [Level::NONE; MAX_LEVELS];
        let memory = |at: usize, width: usize, height: usize, pitch: usize| Level {
            data: at as *mut u8,
            pitch: pitch as u64,
            slice: (pitch * height) as u64,
            width: width as u32,
            height: height as u32,
            depth: 1,
            zero: 0,
        };
        match self {
            Resource::Array(array) => {
                levels[0] = of_array(array);
                (levels, 1, dimensions(array))
            }
            Resource::Mipmapped(mipmapped) => {
                for (level, array) in levels.iter_mut().zip(&mipmapped.levels) {
                    *level = of_array(array);
                }
                let n = mipmapped.levels.len().min(MAX_LEVELS);
                (levels, n, mipmapped.levels.first().map_or(1, |array| dimensions(array)))
            }
            Resource::Linear { at, element, bytes } => {
                let bytes = crate::memory::reach(*at, *bytes);
                levels[0] = memory(*at, bytes / element.bytes(), 1, bytes);
                (levels, 1, 1)
            }
            Resource::Pitch2D { at, width, height, pitch, .. } => {
                levels[0] = memory(*at, *width, *height, *pitch);
                (levels, 1, 2)
            }
        }
    }
}

fn of_array(array: &Array) -> Level {
    let place = array.place();
    Level {
        data: place.at as *mut u8,
        pitch: place.pitch as u64,
        slice: place.slice as u64,
        width: array.width as u32,
        height: array.height.max(1) as u32,
        depth: array.depth.max(1) as u32,
        zero: 0,
    }
}

fn dimensions(array: &Array) -> u32 {
    let slices = array.is(hipArrayLayered) || array.is(hipArrayCubemap);
    match (array.height, array.depth) {
        (0, _) => 1,
        (_, 0) => 2,
        _ if slices => 2,
        _ => 3,
    }
}

/// HIP's address modes as PTX numbers them.
fn address(mode: hipTextureAddressMode) -> u32 {
    match mode {
        hipAddressModeWrap => address_mode::WRAP,
        hipAddressModeMirror => address_mode::MIRROR,
        hipAddressModeBorder => address_mode::CLAMP_TO_BORDER,
        _ => address_mode::CLAMP_TO_EDGE,
    }
}

/// PTX's address modes as HIP numbers them.
pub fn hip_address(mode: u32) -> hipTextureAddressMode {
    match mode {
        address_mode::WRAP => hipAddressModeWrap,
        address_mode::MIRROR => hipAddressModeMirror,
        address_mode::CLAMP_TO_BORDER => hipAddressModeBorder,
        _ => hipAddressModeClamp,
    }
}

fn sampler(desc: &HIP_TEXTURE_DESC) -> Sampler {
    Sampler {
        normalized: u32::from(desc.flags & HIP_TRSF_NORMALIZED_COORDINATES != 0),
        filter: u32::from(desc.filterMode == hipFilterModeLinear),
        address: desc.addressMode.map(address),
        mip_filter: u32::from(desc.mipmapFilterMode == hipFilterModeLinear),
        mip_bias: desc.mipmapLevelBias,
        min_level: desc.minMipmapLevelClamp,
        max_level: desc.maxMipmapLevelClamp,
        force_unnormalized: 0,
        border: desc.borderColor,
        zero: [0; 2],
    }
}

/// The image of a texture over `resource`, which reads it as `element`.
fn describe(resource: &Resource, element: Element, desc: &HIP_TEXTURE_DESC) -> Image {
    let (levels, n_levels, dimensions) = resource.levels();
    let array = resource.array_flags();
    let fraction = desc.flags & HIP_TRSF_READ_AS_INTEGER == 0 && element.channel_bytes() < 4;
    let flags = [
        (array & hipArrayLayered != 0, flag::LAYERED),
        (array & hipArrayCubemap != 0, flag::CUBE),
        (matches!(resource, Resource::Linear { .. } | Resource::Pitch2D { .. }), flag::LINEAR),
        (fraction && element.format != HIP_AD_FORMAT_HALF, flag::NORMALIZED_FLOAT),
        (desc.flags & HIP_TRSF_SRGB != 0, flag::SRGB),
        (desc.flags & SEAMLESS_CUBEMAP != 0, flag::SEAMLESS),
    ];
    Image {
        mark: mark::TEXTURE,
        format: element.format as u32,
        channels: element.channels,
        flags: flags.iter().filter(|it| it.0).fold(0, |all, it| all | it.1),
        n_levels: n_levels as u32,
        dimensions,
        mipmapped: u32::from(matches!(resource, Resource::Mipmapped(_))),
        sampler: sampler(desc),
        levels,
        plans: [None; 2],
    }
}

/// The resource's view: other bits for the same elements, a part of the levels and layers.
fn view(image: &mut Image, resource: &Resource, view: &HIP_RESOURCE_VIEW_DESC) -> Result {
    if matches!(resource, Resource::Linear { .. } | Resource::Pitch2D { .. }) {
        return Err(hipErrorInvalidValue);
    }
    let first = view.firstMipmapLevel as usize;
    let n_levels = image.n_levels as usize;
    let last = (view.lastMipmapLevel as usize).min(n_levels - 1);
    if first > last {
        return Err(hipErrorInvalidValue);
    }
    image.levels.copy_within(first..=last, 0);
    image.n_levels = (last - first + 1) as u32;
    let level = image.levels[0];
    let is = |given: usize, own: u32| given == own as usize || given == 0 && own == 1;
    let layers = image.is(flag::LAYERED) || image.is(flag::CUBE);
    if !is(view.width, level.width)
        || !is(view.height, level.height)
        || !layers && !is(view.depth, level.depth)
    {
        return Err(hipErrorInvalidValue);
    }
    if image.is(flag::LAYERED) {
        let (from, to) = (view.firstLayer, view.lastLayer.min(level.depth - 1));
        if from > to {
            return Err(hipErrorInvalidValue);
        }
        for level in &mut image.levels[..last - first + 1] {
            // SAFETY: a layer of the level.
            level.data = unsafe { level.data.add(from as usize * level.slice as usize) };
            level.depth = to - from + 1;
        }
    }
    Ok(())
}

/// The element that a view reads.
fn viewed(own: Element, format: hipResourceViewFormat) -> Result<Element> {
    if format == hipResViewFormatNone {
        return Ok(own);
    }
    if (hipResViewFormatUnsignedBlockCompressed1..=hipResViewFormatUnsignedBlockCompressed7).contains(&format)
    {
        return Err(hipErrorNotSupported);
    }
    const FORMATS: [hipArray_Format; 8] = [
        HIP_AD_FORMAT_UNSIGNED_INT8,
        HIP_AD_FORMAT_SIGNED_INT8,
        HIP_AD_FORMAT_UNSIGNED_INT16,
        HIP_AD_FORMAT_SIGNED_INT16,
        HIP_AD_FORMAT_UNSIGNED_INT32,
        HIP_AD_FORMAT_SIGNED_INT32,
        HIP_AD_FORMAT_HALF,
        HIP_AD_FORMAT_FLOAT,
    ];
    let index = usize::try_from(format - 1).map_err(|_| hipErrorInvalidValue)?;
    let format = *FORMATS.get(index / 3).ok_or(hipErrorInvalidValue)?;
    let element = Element::new(format, [1, 2, 4][index % 3])?;
    if element.bytes() == own.bytes() { Ok(element) } else { Err(hipErrorInvalidValue) }
}

// ---- objects ----

pub struct Object {
    pub resource: Resource,
    pub desc: HIP_TEXTURE_DESC,
    pub view: Option<HIP_RESOURCE_VIEW_DESC>,
    kind: Opaque,
}

static OBJECTS: RwLock<BTreeMap<usize, Arc<Object>>> = RwLock::new(BTreeMap::new());
/// Images whose objects are gone.
static SPARE: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// Texture and surface objects that were not destroyed.
pub fn left() -> usize {
    OBJECTS.read().len()
}

fn add(mut image: Image, object: Object) -> usize {
    image.plans = image.plans();
    let at = SPARE.lock().pop().map_or_else(
        || Box::into_raw(Box::new(image)),
        |at| {
            let at = at as *mut Image;
            // SAFETY: an image of ours that no object has.
            unsafe { at.write(image) };
            at
        },
    );
    OBJECTS.write().insert(at as usize, Arc::new(object));
    at as usize
}

fn remove(handle: usize, kind: Opaque) -> Result {
    let mut objects = OBJECTS.write();
    if objects.get(&handle).is_none_or(|object| object.kind != kind) {
        return Err(hipErrorInvalidValue);
    }
    objects.remove(&handle);
    // SAFETY: the object's image, which is ours.
    unsafe { (&raw mut (*(handle as *mut Image)).mark).write(0) };
    SPARE.lock().push(handle);
    Ok(())
}

/// What kind of object or reference lies at an address.
pub fn kind_of(address: usize) -> Option<Opaque> {
    if let Some(object) = OBJECTS.read().get(&address) {
        return Some(object.kind);
    }
    let references = REFERENCES.read();
    let (&base, reference) = references.range(..=address).next_back()?;
    let inside = address - base;
    (inside < reference.bytes && inside.is_multiple_of(REFERENCE_BYTES as usize)).then_some(reference.kind)
}

/// CUDA: modes are those of the enumeration, and only floats are filtered.
fn check(image: &Image, desc: &HIP_TEXTURE_DESC) -> Result {
    let modes =
        desc.addressMode.iter().all(|mode| (hipAddressModeWrap..=hipAddressModeBorder).contains(mode));
    let filters = [desc.filterMode, desc.mipmapFilterMode]
        .iter()
        .all(|mode| matches!(*mode, hipFilterModePoint | hipFilterModeLinear));
    let filtered = image.sampler.filter != 0 && !image.reads_floats();
    if modes && filters && desc.flags & !FLAGS == 0 && !filtered { Ok(()) } else { Err(hipErrorInvalidValue) }
}

pub fn create_texture(
    resource: Resource,
    desc: &HIP_TEXTURE_DESC,
    with_view: Option<&HIP_RESOURCE_VIEW_DESC>,
) -> Result<hipTextureObject_t> {
    resource.check()?;
    let mut element = resource.element()?;
    if let Some(with_view) = with_view {
        element = viewed(element, with_view.format)?;
    }
    let mut image = describe(&resource, element, desc);
    if let Some(with_view) = with_view {
        view(&mut image, &resource, with_view)?;
    }
    check(&image, desc)?;
    let object = Object { resource, desc: *desc, view: with_view.copied(), kind: Opaque::Texture };
    Ok(add(image, object) as hipTextureObject_t)
}

pub fn texture(handle: hipTextureObject_t) -> Result<Arc<Object>> {
    let object = OBJECTS.read().get(&(handle as usize)).cloned().ok_or(hipErrorInvalidValue)?;
    if object.kind == Opaque::Texture { Ok(object) } else { Err(hipErrorInvalidValue) }
}

pub fn destroy_texture(handle: hipTextureObject_t) -> Result {
    remove(handle as usize, Opaque::Texture)
}

pub fn create_surface(array: Arc<Array>) -> Result<hipSurfaceObject_t> {
    let desc = HIP_TEXTURE_DESC { flags: HIP_TRSF_READ_AS_INTEGER, ..HIP_TEXTURE_DESC::default() };
    let resource = Resource::Array(array);
    let image = Image { mark: mark::SURFACE, ..describe(&resource, resource.element()?, &desc) };
    let object = Object { resource, desc, view: None, kind: Opaque::Surface };
    Ok(add(image, object) as hipSurfaceObject_t)
}

pub fn destroy_surface(handle: hipSurfaceObject_t) -> Result {
    remove(handle as usize, Opaque::Surface)
}

// ---- named references ----

/// A `.texref`, `.samplerref` or `.surfref` variable of a module that is loaded.
struct Reference {
    kind: Opaque,
    bytes: usize,
}

static REFERENCES: RwLock<BTreeMap<usize, Reference>> = RwLock::new(BTreeMap::new());

/// Announces a module's variable.
pub fn declare(at: usize, bytes: usize, kind: Opaque) {
    REFERENCES.write().insert(at, Reference { kind, bytes });
}

/// The module is going, and with it what `hipModuleGetTexRef` gave for the variable.
pub fn forget(at: usize) {
    REFERENCES.write().remove(&at);
    let mut texrefs = TEXREFS.lock();
    let gone: Vec<usize> = texrefs.iter().filter(|it| it.1.variable == at).map(|it| *it.0).collect();
    for handle in gone {
        if let Some(texref) = texrefs.remove(&handle) {
            let _ = texref.bound.map(|bound| remove(bound, Opaque::Texture));
            // SAFETY: made by `texref` below, and in the list until now.
            drop(unsafe { Box::from_raw(handle as *mut textureReference) });
        }
    }
}

/// The state behind a `textureReference`.
pub struct Texref {
    variable: usize,
    pub resource: Option<Resource>,
    pub desc: HIP_TEXTURE_DESC,
    /// What linear memory is read as; arrays have their own.
    pub element: Element,
    bound: Option<usize>,
}

static TEXREFS: Mutex<BTreeMap<usize, Texref>> = Mutex::new(BTreeMap::new());

/// The reference of a `.texref` variable; each variable has one.
pub fn texref(variable: usize) -> Result<*mut textureReference> {
    let mut texrefs = TEXREFS.lock();
    if let Some((&handle, _)) = texrefs.iter().find(|it| it.1.variable == variable) {
        return Ok(handle as *mut textureReference);
    }
    // SAFETY: a reference variable holds its sampler there.
    let initial = unsafe {
        let at = variable as *const u8;
        at.add(compiler::texture::REFERENCE_SAMPLER as usize).cast::<Sampler>().read_unaligned()
    };
    let normalized = if initial.normalized != 0 { HIP_TRSF_NORMALIZED_COORDINATES } else { 0 };
    let desc = HIP_TEXTURE_DESC {
        addressMode: initial.address.map(hip_address),
        filterMode: initial.filter as hipTextureFilterMode,
        flags: normalized,
        ..HIP_TEXTURE_DESC::default()
    };
    let element = Element { format: HIP_AD_FORMAT_FLOAT, channels: 1 };
    let texref = Texref { variable, resource: None, desc, element, bound: None };
    let handle = Box::into_raw(Box::new(texref.public()));
    texrefs.insert(handle as usize, texref);
    Ok(handle)
}

/// Looks at a reference.
pub fn with_texref<T>(handle: *const textureReference, look: impl FnOnce(&Texref) -> Result<T>) -> Result<T> {
    TEXREFS.lock().get(&(handle as usize)).ok_or(hipErrorInvalidValue).and_then(look)
}

/// Changes a reference and binds its variable anew. Launches from now on see it: the caller has waited for the others.
pub fn change_texref(handle: *mut textureReference, change: impl FnOnce(&mut Texref) -> Result) -> Result {
    let mut texrefs = TEXREFS.lock();
    let at = handle as usize;
    let texref = texrefs.get_mut(&at).ok_or(hipErrorInvalidValue)?;
    change(texref)?;
    texref.bind();
    // SAFETY: in the list, so still ours.
    unsafe { (at as *mut textureReference).write(texref.public()) };
    Ok(())
}

impl Texref {
    fn bind(&mut self) {
        let before = self.bound.take();
        let made = self.resource.as_ref().and_then(|resource| {
            let element = resource.element().ok()?;
            let image = describe(resource, element, &self.desc);
            let (resource, desc) = (resource.clone(), self.desc);
            Some(add(image, Object { resource, desc, view: None, kind: Opaque::Texture }))
        });
        let handle = made.unwrap_or(0) as u64;
        // SAFETY: the variable is there until the module goes, which takes this reference along.
        unsafe {
            let at = (self.variable as *mut u8).add(REFERENCE_OBJECT as usize);
            at.cast::<u64>().write_unaligned(handle);
        }
        self.bound = made;
        if let Some(before) = before {
            let _ = remove(before, Opaque::Texture);
        }
    }

    fn public(&self) -> textureReference {
        let element = self.resource.as_ref().and_then(|it| it.element().ok()).unwrap_or(self.element);
        let read_as_integer = self.desc.flags & HIP_TRSF_READ_AS_INTEGER != 0;
        textureReference {
            normalized: i32::from(self.desc.flags & HIP_TRSF_NORMALIZED_COORDINATES != 0),
            readMode: if read_as_integer { hipReadModeElementType } else { hipReadModeNormalizedFloat },
            filterMode: self.desc.filterMode,
            addressMode: self.desc.addressMode,
            channelDesc: element.to_channels(),
            sRGB: i32::from(self.desc.flags & HIP_TRSF_SRGB != 0),
            maxAnisotropy: self.desc.maxAnisotropy,
            mipmapFilterMode: self.desc.mipmapFilterMode,
            mipmapLevelBias: self.desc.mipmapLevelBias,
            minMipmapLevelClamp: self.desc.minMipmapLevelClamp,
            maxMipmapLevelClamp: self.desc.maxMipmapLevelClamp,
            textureObject: self.bound.unwrap_or(0) as hipTextureObject_t,
            numChannels: element.channels as i32,
            format: element.format,
        }
    }
}
