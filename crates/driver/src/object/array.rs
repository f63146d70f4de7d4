//! Arrays and mipmapped arrays: memory in a layout of the provider's, reached by copies, textures and surfaces.

use core::ffi::c_uint;
use std::sync::Arc;

use cuda_abi::{
    CUDA_ARRAY3D_CUBEMAP, CUDA_ARRAY3D_DEFERRED_MAPPING, CUDA_ARRAY3D_DESCRIPTOR, CUDA_ARRAY3D_LAYERED,
    CUDA_ARRAY3D_SPARSE, CUDA_ARRAY3D_SURFACE_LDST, CUDA_ARRAY3D_TEXTURE_GATHER, CUarray, CUarray_format,
    CUmipmappedArray,
};
use hip_sys::{HIP_ARRAY3D_DESCRIPTOR, hipArray_t, hipMipmappedArray_t};
use parking_lot::Mutex;

use super::{Context, Shared};
use crate::handle::Registry;
use crate::{Error, Result};

static ARRAYS: Registry<Arc<Array>, CUarray> = Registry::new(14);
static MIPMAPS: Registry<Arc<Mipmap>, CUmipmappedArray> = Registry::new(15);

pub struct Array {
    pub hip: Shared<hipArray_t>,
    pub context: &'static Context,
    context_id: u64,
    pub descriptor: CUDA_ARRAY3D_DESCRIPTOR,
    /// A level goes with its mipmapped array.
    is_level: bool,
}

pub struct Mipmap {
    pub hip: Shared<hipMipmappedArray_t>,
    pub context: &'static Context,
    context_id: u64,
    pub descriptor: CUDA_ARRAY3D_DESCRIPTOR,
    pub n_levels: c_uint,
    /// The handle of each level that was asked for.
    levels: Mutex<Vec<Option<Shared<CUarray>>>>,
}

/// Bytes of one component. The formats of video and block compression are not here: HIP has none of them.
pub fn component_bytes(format: CUarray_format) -> Result<usize> {
    match format {
        CUarray_format::CU_AD_FORMAT_UNSIGNED_INT8 | CUarray_format::CU_AD_FORMAT_SIGNED_INT8 => Ok(1),
        CUarray_format::CU_AD_FORMAT_UNSIGNED_INT16
        | CUarray_format::CU_AD_FORMAT_SIGNED_INT16
        | CUarray_format::CU_AD_FORMAT_HALF => Ok(2),
        CUarray_format::CU_AD_FORMAT_UNSIGNED_INT32
        | CUarray_format::CU_AD_FORMAT_SIGNED_INT32
        | CUarray_format::CU_AD_FORMAT_FLOAT => Ok(4),
        CUarray_format(0x41..) => {
            Err(Error::NotSupported("arrays of video, normalized or compressed formats"))
        }
        _ => Err(Error::InvalidValue("Format")),
    }
}

/// Bytes of one element.
pub fn element_bytes(format: CUarray_format, n_channels: c_uint) -> Result<usize> {
    match n_channels {
        1 | 2 | 4 => Ok(component_bytes(format)? * n_channels as usize),
        _ => Err(Error::InvalidValue("NumChannels")),
    }
}

/// What CUDA says of an array's description.
fn check(descriptor: &CUDA_ARRAY3D_DESCRIPTOR) -> Result {
    let CUDA_ARRAY3D_DESCRIPTOR { Width, Height, Depth, Format, NumChannels, Flags } = *descriptor;
    element_bytes(Format, NumChannels)?;
    let has = |flag: u32| Flags & flag != 0;
    if has(CUDA_ARRAY3D_SPARSE) || has(CUDA_ARRAY3D_DEFERRED_MAPPING) {
        return Err(Error::NotSupported("sparse arrays and arrays mapped later"));
    }
    let (layered, cube) = (has(CUDA_ARRAY3D_LAYERED), has(CUDA_ARRAY3D_CUBEMAP));
    let is_possible = match (layered, cube) {
        // CUDA: a width is always there; a depth without a height makes no array.
        (false, false) => Width > 0 && (Depth == 0 || Height > 0),
        (true, false) => Width > 0 && Depth > 0,
        // CUDA: six square faces, or any number of sixes.
        (false, true) => Width > 0 && Width == Height && Depth == 6,
        (true, true) => Width > 0 && Width == Height && Depth > 0 && Depth.is_multiple_of(6),
    };
    // CUDA: gathers are for plain 2-D arrays.
    let gathers_from_others = has(CUDA_ARRAY3D_TEXTURE_GATHER) && (Depth > 0 || Height == 0);
    if !is_possible || gathers_from_others || Flags >> 9 != 0 {
        return Err(Error::InvalidValue("pAllocateArray"));
    }
    Ok(())
}

/// HIP's description: the numbers are CUDA's. The other flags are promises to graphics interfaces.
fn to_hip(descriptor: &CUDA_ARRAY3D_DESCRIPTOR) -> HIP_ARRAY3D_DESCRIPTOR {
    let known =
        CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST | CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_TEXTURE_GATHER;
    HIP_ARRAY3D_DESCRIPTOR {
        Width: descriptor.Width,
        Height: descriptor.Height,
        Depth: descriptor.Depth,
        Format: descriptor.Format.0.cast_signed(),
        NumChannels: descriptor.NumChannels,
        Flags: descriptor.Flags & known,
    }
}

impl Array {
    pub fn create(descriptor: &CUDA_ARRAY3D_DESCRIPTOR) -> Result<CUarray> {
        let context = Context::current()?;
        check(descriptor)?;
        let mut hip: hipArray_t = core::ptr::null_mut();
        // SAFETY: a writable handle and a readable description.
        unsafe { context.hip().hipArray3DCreate(&mut hip, &to_hip(descriptor)) }?;
        Array::enter(hip, context, *descriptor, false)
    }

    fn enter(
        hip: hipArray_t,
        context: &'static Context,
        descriptor: CUDA_ARRAY3D_DESCRIPTOR,
        is_level: bool,
    ) -> Result<CUarray> {
        let array = Array { hip: Shared(hip), context, context_id: context.id(), descriptor, is_level };
        ARRAYS.insert(Arc::new(array)).ok_or(Error::OutOfMemory)
    }

    pub fn from_handle(handle: CUarray) -> Result<Arc<Array>> {
        crate::process::driver()?;
        let array = ARRAYS.get(handle).ok_or(Error::InvalidHandle("hArray"))?;
        array.context.bind()?;
        Ok(array)
    }

    pub fn destroy(handle: CUarray) -> Result {
        let array = Array::from_handle(handle)?;
        if array.is_level {
            return Err(Error::InvalidValue("hArray: a level of a mipmapped array"));
        }
        ARRAYS.remove(handle).ok_or(Error::InvalidHandle("hArray"))?;
        array.dispose()
    }

    fn dispose(&self) -> Result {
        if self.is_level {
            return Ok(());
        }
        // SAFETY: the array just left the registry, so this is its only end.
        Ok(unsafe { self.context.hip().hipArrayDestroy(self.hip.0) }?)
    }

    pub fn element_bytes(&self) -> usize {
        element_bytes(self.descriptor.Format, self.descriptor.NumChannels).unwrap_or(1)
    }

    pub fn row_bytes(&self) -> usize {
        self.descriptor.Width.saturating_mul(self.element_bytes())
    }

    pub fn rows(&self) -> usize {
        self.descriptor.Height.max(1)
    }

    pub fn slices(&self) -> usize {
        self.descriptor.Depth.max(1)
    }
}

impl Mipmap {
    pub fn create(descriptor: &CUDA_ARRAY3D_DESCRIPTOR, n_levels: c_uint) -> Result<CUmipmappedArray> {
        let context = Context::current()?;
        check(descriptor)?;
        let n_levels = n_levels.clamp(1, most_levels(descriptor));
        let mut hip: hipMipmappedArray_t = core::ptr::null_mut();
        // SAFETY: a writable handle and a readable description.
        unsafe { context.hip().hipMipmappedArrayCreate(&mut hip, &mut to_hip(descriptor), n_levels) }?;
        let mipmap = Mipmap {
            hip: Shared(hip),
            context,
            context_id: context.id(),
            descriptor: *descriptor,
            n_levels,
            levels: Mutex::new(vec![None; n_levels as usize]),
        };
        MIPMAPS.insert(Arc::new(mipmap)).ok_or(Error::OutOfMemory)
    }

    pub fn from_handle(handle: CUmipmappedArray) -> Result<Arc<Mipmap>> {
        crate::process::driver()?;
        let mipmap = MIPMAPS.get(handle).ok_or(Error::InvalidHandle("hMipmappedArray"))?;
        mipmap.context.bind()?;
        Ok(mipmap)
    }

    /// The array of one level; the same handle every time.
    pub fn level(&self, level: c_uint) -> Result<CUarray> {
        let mut levels = self.levels.lock();
        let place = levels.get_mut(level as usize).ok_or(Error::InvalidValue("level"))?;
        if let Some(known) = place {
            return Ok(known.0);
        }
        let mut hip: hipArray_t = core::ptr::null_mut();
        // SAFETY: a writable handle; the mipmapped array is alive.
        unsafe { self.context.hip().hipMipmappedArrayGetLevel(&mut hip, self.hip.0, level) }?;
        let handle = Array::enter(hip, self.context, of_level(&self.descriptor, level), true)?;
        *place = Some(Shared(handle));
        Ok(handle)
    }

    pub fn destroy(handle: CUmipmappedArray) -> Result {
        Mipmap::from_handle(handle)?;
        MIPMAPS.remove(handle).ok_or(Error::InvalidHandle("hMipmappedArray"))?.dispose()
    }

    fn dispose(&self) -> Result {
        for level in self.levels.lock().iter().flatten() {
            ARRAYS.remove(level.0);
        }
        // SAFETY: the mipmapped array just left the registry, so this is its only end.
        Ok(unsafe { self.context.hip().hipMipmappedArrayDestroy(self.hip.0) }?)
    }
}

/// CUDA: down to one element in every direction that shrinks; layers and faces do not.
fn most_levels(descriptor: &CUDA_ARRAY3D_DESCRIPTOR) -> c_uint {
    let keeps_depth = descriptor.Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP) != 0;
    let depth = if keeps_depth { 0 } else { descriptor.Depth };
    1 + descriptor.Width.max(descriptor.Height).max(depth).max(1).ilog2()
}

fn of_level(descriptor: &CUDA_ARRAY3D_DESCRIPTOR, level: c_uint) -> CUDA_ARRAY3D_DESCRIPTOR {
    let keeps_depth = descriptor.Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP) != 0;
    // A direction that is not there stays so.
    let half = |size: usize| if size == 0 { 0 } else { (size >> level).max(1) };
    CUDA_ARRAY3D_DESCRIPTOR {
        Width: half(descriptor.Width),
        Height: half(descriptor.Height),
        Depth: if keeps_depth { descriptor.Depth } else { half(descriptor.Depth) },
        ..*descriptor
    }
}

/// Destroys every array of a context that ends.
pub fn destroy_all(context_id: u64) {
    // The context ends whatever HIP says.
    for mipmap in MIPMAPS.remove_where(|mipmap| mipmap.context_id == context_id) {
        let _ = mipmap.dispose();
    }
    for array in ARRAYS.remove_where(|array| array.context_id == context_id) {
        let _ = array.dispose();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(size: [usize; 3], flags: u32) -> CUDA_ARRAY3D_DESCRIPTOR {
        let [Width, Height, Depth] = size;
        let Format = CUarray_format::CU_AD_FORMAT_FLOAT;
        CUDA_ARRAY3D_DESCRIPTOR { Width, Height, Depth, Format, NumChannels: 1, Flags: flags }
    }

    #[test]
    fn shapes_are_those_that_cuda_has() {
        for good in [[8, 0, 0], [8, 8, 0], [8, 8, 8]] {
            assert_eq!(check(&array(good, 0)), Ok(()));
        }
        assert!(check(&array([0, 8, 0], 0)).is_err());
        assert!(check(&array([8, 0, 8], 0)).is_err());
        assert_eq!(check(&array([8, 0, 8], CUDA_ARRAY3D_LAYERED)), Ok(()));
        assert_eq!(check(&array([8, 8, 6], CUDA_ARRAY3D_CUBEMAP)), Ok(()));
        assert!(check(&array([8, 4, 6], CUDA_ARRAY3D_CUBEMAP)).is_err());
        assert!(check(&array([8, 8, 8], CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_LAYERED)).is_err());
        assert_eq!(element_bytes(CUarray_format::CU_AD_FORMAT_HALF, 4), Ok(8));
        assert!(element_bytes(CUarray_format::CU_AD_FORMAT_HALF, 3).is_err());
    }

    #[test]
    fn a_level_is_half_of_the_one_before() {
        let all = array([20, 6, 3], 0);
        assert_eq!(most_levels(&all), 5);
        let third = of_level(&all, 2);
        assert_eq!((third.Width, third.Height, third.Depth), (5, 1, 1));
        let layers = array([16, 0, 9], CUDA_ARRAY3D_LAYERED);
        let last = of_level(&layers, 4);
        assert_eq!((most_levels(&layers), last.Width, last.Height, last.Depth), (5, 1, 0, 9));
    }
}
