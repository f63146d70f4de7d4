//! Arrays: opaque boxes of elements that textures and surfaces read, row after row in device memory.
//!
//! A mipmapped array is one array per level. Layers and cube faces are slices, as depth is.

use std::ffi::c_uint;
use std::sync::Arc;

use hip_sys::*;

use crate::error::Result;
use crate::handle::Registry;
use crate::memory::{self, Allocation, Kind};
use crate::stream::Place;

/// What one element is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element {
    pub format: hipArray_Format,
    pub channels: u32,
}

impl Element {
    pub fn new(format: hipArray_Format, channels: u32) -> Result<Element> {
        let known = matches!(
            format,
            HIP_AD_FORMAT_UNSIGNED_INT8
                | HIP_AD_FORMAT_UNSIGNED_INT16
                | HIP_AD_FORMAT_UNSIGNED_INT32
                | HIP_AD_FORMAT_SIGNED_INT8
                | HIP_AD_FORMAT_SIGNED_INT16
                | HIP_AD_FORMAT_SIGNED_INT32
                | HIP_AD_FORMAT_HALF
                | HIP_AD_FORMAT_FLOAT
        );
        if known && matches!(channels, 1 | 2 | 4) {
            Ok(Element { format, channels })
        } else {
            Err(hipErrorInvalidValue)
        }
    }

    /// From the bits of each channel, which are equal for all that there are.
    pub fn of_channels(desc: &hipChannelFormatDesc) -> Result<Element> {
        let bits = [desc.x, desc.y, desc.z, desc.w];
        let channels = bits.iter().take_while(|&&n| n != 0).count();
        if bits[..channels].iter().any(|&n| n != desc.x) || bits[channels..].iter().any(|&n| n != 0) {
            return Err(hipErrorInvalidValue);
        }
        let format = match (desc.f, desc.x) {
            (hipChannelFormatKindUnsigned, 8) => HIP_AD_FORMAT_UNSIGNED_INT8,
            (hipChannelFormatKindUnsigned, 16) => HIP_AD_FORMAT_UNSIGNED_INT16,
            (hipChannelFormatKindUnsigned, 32) => HIP_AD_FORMAT_UNSIGNED_INT32,
            (hipChannelFormatKindSigned, 8) => HIP_AD_FORMAT_SIGNED_INT8,
            (hipChannelFormatKindSigned, 16) => HIP_AD_FORMAT_SIGNED_INT16,
            (hipChannelFormatKindSigned, 32) => HIP_AD_FORMAT_SIGNED_INT32,
            (hipChannelFormatKindFloat, 16) => HIP_AD_FORMAT_HALF,
            (hipChannelFormatKindFloat, 32) => HIP_AD_FORMAT_FLOAT,
            _ => return Err(hipErrorInvalidValue),
        };
        Element::new(format, channels as u32)
    }

    pub fn to_channels(self) -> hipChannelFormatDesc {
        let kind = match self.format {
            HIP_AD_FORMAT_HALF | HIP_AD_FORMAT_FLOAT => hipChannelFormatKindFloat,
            HIP_AD_FORMAT_SIGNED_INT8 | HIP_AD_FORMAT_SIGNED_INT16 | HIP_AD_FORMAT_SIGNED_INT32 => {
                hipChannelFormatKindSigned
            }
            _ => hipChannelFormatKindUnsigned,
        };
        let bits = |channel: u32| if channel < self.channels { 8 * self.channel_bytes() as i32 } else { 0 };
        hipChannelFormatDesc { x: bits(0), y: bits(1), z: bits(2), w: bits(3), f: kind }
    }

    pub fn channel_bytes(self) -> usize {
        match self.format {
            HIP_AD_FORMAT_UNSIGNED_INT8 | HIP_AD_FORMAT_SIGNED_INT8 => 1,
            HIP_AD_FORMAT_UNSIGNED_INT16 | HIP_AD_FORMAT_SIGNED_INT16 | HIP_AD_FORMAT_HALF => 2,
            _ => 4,
        }
    }

    pub fn bytes(self) -> usize {
        self.channel_bytes() * self.channels as usize
    }
}

pub struct Array {
    /// As the program gave it: a height or depth of 0 says that there is no such dimension.
    pub width: usize,
    pub height: usize,
    pub depth: usize,
    pub element: Element,
    pub flags: c_uint,
    pub pitch: usize,
    memory: Allocation,
    /// Destroyed with its mipmapped array only.
    is_level: bool,
}

pub struct Mipmapped {
    pub levels: Vec<Arc<Array>>,
    pub flags: c_uint,
}

static ARRAYS: Registry<Array> = Registry::new();
static MIPMAPPED: Registry<Mipmapped> = Registry::new();

/// Arrays that were not freed, mipmapped ones among them.
pub fn left() -> usize {
    ARRAYS.n_live() + MIPMAPPED.n_live()
}

/// Surfaces and textures may count on rows that begin at this.
const ROW_ALIGN: usize = 32;
const FLAGS: c_uint = hipArrayLayered | hipArraySurfaceLoadStore | hipArrayCubemap | hipArrayTextureGather;
/// The largest side that any kind of array may have (CUDA C++ Programming Guide, compute capabilities).
const MAX_SIDE: usize = 131_072;

impl Array {
    fn allocate(desc: &HIP_ARRAY3D_DESCRIPTOR, is_level: bool) -> Result<Array> {
        let element = Element::new(desc.Format, desc.NumChannels)?;
        check_extent(desc)?;
        let row = desc.Width.checked_mul(element.bytes()).ok_or(hipErrorInvalidValue)?;
        let pitch = row.next_multiple_of(ROW_ALIGN);
        let bytes = pitch
            .checked_mul(desc.Height.max(1))
            .and_then(|slice| slice.checked_mul(desc.Depth.max(1)))
            .ok_or(hipErrorOutOfMemory)?;
        let memory = memory::allocate(bytes, Kind::Device, 0)?;
        Ok(Array {
            width: desc.Width,
            height: desc.Height,
            depth: desc.Depth,
            element,
            flags: desc.Flags,
            pitch,
            memory,
            is_level,
        })
    }

    /// Where the elements begin and how far rows and slices are apart.
    pub fn place(&self) -> Place {
        Place { at: self.memory.base, pitch: self.pitch, slice: self.pitch * self.height.max(1) }
    }

    /// Where a box of `bytes` × `rows` × `slices` at `x` bytes, row `y` and slice `z` begins.
    pub fn corner(&self, [x, y, z]: [usize; 3], [bytes, rows, slices]: [usize; 3]) -> Result<Place> {
        let inside = |at: usize, n: usize, all: usize| at.checked_add(n).is_some_and(|end| end <= all);
        if !inside(x, bytes, self.row_bytes())
            || !inside(y, rows, self.height.max(1))
            || !inside(z, slices, self.depth.max(1))
        {
            return Err(hipErrorInvalidValue);
        }
        let place = self.place();
        Ok(Place { at: place.at + x + y * place.pitch + z * place.slice, ..place })
    }

    /// Bytes of a row that are elements.
    pub fn row_bytes(&self) -> usize {
        self.width * self.element.bytes()
    }

    pub fn descriptor(&self) -> HIP_ARRAY3D_DESCRIPTOR {
        HIP_ARRAY3D_DESCRIPTOR {
            Width: self.width,
            Height: self.height,
            Depth: self.depth,
            Format: self.element.format,
            NumChannels: self.element.channels,
            Flags: self.flags,
        }
    }

    pub fn is(&self, flag: c_uint) -> bool {
        self.flags & flag != 0
    }
}

impl Drop for Array {
    fn drop(&mut self) {
        if let Some(taken) = memory::take(self.memory.base, &[Kind::Device]) {
            memory::release(&taken);
        }
    }
}

/// CUDA's rules for what an array may be, by its flags.
fn check_extent(desc: &HIP_ARRAY3D_DESCRIPTOR) -> Result {
    let (width, height, depth) = (desc.Width, desc.Height, desc.Depth);
    let (layered, cube) = (desc.Flags & hipArrayLayered != 0, desc.Flags & hipArrayCubemap != 0);
    let sides = if layered || cube { [width, height, 0] } else { [width, height, depth] };
    let legal = width > 0
        && desc.Flags & !FLAGS == 0
        && sides.iter().all(|&side| side <= MAX_SIDE)
        && match (layered, cube) {
            // A third dimension needs the second.
            (false, false) => depth == 0 || height > 0,
            (true, false) => depth > 0,
            (false, true) => width == height && depth == 6,
            (true, true) => width == height && depth > 0 && depth.is_multiple_of(6),
        };
    if legal { Ok(()) } else { Err(hipErrorInvalidValue) }
}

pub fn create(desc: &HIP_ARRAY3D_DESCRIPTOR) -> Result<hipArray_t> {
    Ok(ARRAYS.add(Arc::new(Array::allocate(desc, false)?)) as hipArray_t)
}

pub fn of_handle(handle: hipArray_const_t) -> Result<Arc<Array>> {
    ARRAYS.get(handle as usize)
}

/// The array is gone; its memory when the last texture or surface object lets go.
pub fn destroy(handle: hipArray_t) -> Result {
    if of_handle(handle)?.is_level {
        return Err(hipErrorInvalidHandle);
    }
    ARRAYS.remove(handle as usize).map(drop)
}

pub fn create_mipmapped(desc: &HIP_ARRAY3D_DESCRIPTOR, n_levels: c_uint) -> Result<hipMipmappedArray_t> {
    check_extent(desc)?;
    let layers = desc.Flags & (hipArrayLayered | hipArrayCubemap) != 0;
    let longest = desc.Width.max(desc.Height).max(if layers { 0 } else { desc.Depth });
    // CUDA: the number is brought into 1 … 1 + floor(log2(longest side)).
    let n_levels = n_levels.clamp(1, 1 + longest.ilog2());
    let smaller = |side: usize, level: u32| if side == 0 { 0 } else { (side >> level).max(1) };
    let levels = (0..n_levels)
        .map(|level| {
            let desc = HIP_ARRAY3D_DESCRIPTOR {
                Width: smaller(desc.Width, level),
                Height: smaller(desc.Height, level),
                Depth: if layers { desc.Depth } else { smaller(desc.Depth, level) },
                ..*desc
            };
            Ok(Arc::new(Array::allocate(&desc, true)?))
        })
        .collect::<Result<Vec<_>>>()?;
    for level in &levels {
        ARRAYS.add(level.clone());
    }
    Ok(MIPMAPPED.add(Arc::new(Mipmapped { levels, flags: desc.Flags })) as hipMipmappedArray_t)
}

pub fn mipmapped_of_handle(handle: hipMipmappedArray_const_t) -> Result<Arc<Mipmapped>> {
    MIPMAPPED.get(handle as usize)
}

pub fn destroy_mipmapped(handle: hipMipmappedArray_t) -> Result {
    let mipmapped = MIPMAPPED.remove(handle as usize)?;
    for level in &mipmapped.levels {
        let _ = ARRAYS.remove(Arc::as_ptr(level) as usize);
    }
    Ok(())
}

/// The handle of one level's array.
pub fn level(handle: hipMipmappedArray_const_t, level: c_uint) -> Result<hipArray_t> {
    let mipmapped = mipmapped_of_handle(handle)?;
    let array = mipmapped.levels.get(level as usize).ok_or(hipErrorInvalidValue)?;
    Ok(Arc::as_ptr(array) as hipArray_t)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn desc(width: usize, height: usize, depth: usize, flags: c_uint) -> HIP_ARRAY3D_DESCRIPTOR {
        HIP_ARRAY3D_DESCRIPTOR {
            Width: width,
            Height: height,
            Depth: depth,
            Format: HIP_AD_FORMAT_FLOAT,
            NumChannels: 1,
            Flags: flags,
        }
    }

    #[test]
    fn arrays_have_the_shapes_that_cuda_allows() {
        for (legal, desc) in [
            (true, desc(5, 0, 0, 0)),
            (true, desc(5, 3, 0, 0)),
            (true, desc(5, 3, 2, 0)),
            (true, desc(5, 0, 2, hipArrayLayered)),
            (true, desc(5, 3, 2, hipArrayLayered)),
            (true, desc(4, 4, 6, hipArrayCubemap)),
            (true, desc(4, 4, 12, hipArrayCubemap | hipArrayLayered)),
            (false, desc(0, 3, 0, 0)),
            (false, desc(5, 0, 2, 0)),
            (false, desc(5, 3, 0, hipArrayLayered)),
            (false, desc(4, 3, 6, hipArrayCubemap)),
            (false, desc(4, 4, 7, hipArrayCubemap | hipArrayLayered)),
            (false, desc(4, 4, 0, 0x8000)),
        ] {
            let made = create(&desc);
            assert_eq!(made.is_ok(), legal, "{desc:?}");
            if let Ok(handle) = made {
                destroy(handle).unwrap();
                assert!(of_handle(handle).is_err());
            }
        }
    }

    #[test]
    fn a_box_stays_inside_its_array() {
        let handle = create(&desc(5, 3, 0, 0)).unwrap();
        let array = of_handle(handle).unwrap();
        assert!(array.corner([4, 1, 0], [16, 2, 1]).is_ok());
        assert!(array.corner([8, 1, 0], [16, 2, 1]).is_err());
        assert!(array.corner([4, 2, 0], [16, 2, 1]).is_err());
        assert!(array.corner([0, 0, 1], [4, 1, 1]).is_err());
        assert!(array.corner([usize::MAX, 0, 0], [4, 1, 1]).is_err());
        destroy(handle).unwrap();
    }

    #[test]
    fn levels_halve_down_to_one_and_belong_to_the_mipmapped_array() {
        let mipmapped = create_mipmapped(&desc(12, 5, 0, 0), 99).unwrap();
        let sizes: Vec<_> = mipmapped_of_handle(mipmapped)
            .unwrap()
            .levels
            .iter()
            .map(|level| (level.width, level.height))
            .collect();
        assert_eq!(sizes, [(12, 5), (6, 2), (3, 1), (1, 1)]);
        let level = level(mipmapped, 1).unwrap();
        assert_eq!(destroy(level), Err(hipErrorInvalidHandle));
        destroy_mipmapped(mipmapped).unwrap();
        assert!(of_handle(level).is_err());
    }

    #[test]
    fn elements_and_channel_descriptions_say_the_same() {
        for format in [1, 2, 3, 8, 9, 10, 16, 32] {
            for channels in [1, 2, 4] {
                let element = Element::new(format, channels).unwrap();
                assert_eq!(Element::of_channels(&element.to_channels()), Ok(element));
            }
        }
        assert!(Element::new(HIP_AD_FORMAT_FLOAT, 3).is_err());
        let uneven = hipChannelFormatDesc { x: 8, y: 16, z: 0, w: 0, f: hipChannelFormatKindUnsigned };
        assert!(Element::of_channels(&uneven).is_err());
    }
}
