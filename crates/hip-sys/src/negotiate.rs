//! What moved in the ABI between ROCm 5, 6 and 7, decided once per provider when it is opened.
//!
//! Everyone else speaks the ROCm 6.4 shapes of `types`; this module converts on the way out and back.

use core::ffi::{CStr, c_int, c_uint, c_void};

use crate::table::{Hip, HipError};
use crate::types::*;

/// Which numbering and which layouts a provider uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// ROCm 5: `hipMemoryTypeHost` is 0, `HIP_MEMCPY3D` has 32-bit members.
    Rocm5,
    /// ROCm 6 and later.
    Rocm6,
}

/// The part of the device properties whose place depends on the version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceIdentity {
    pub name: String,
    /// `gfx1100`, `gfx90a:sramecc+:xnack-`, or `cpu`.
    pub arch: String,
    pub uuid: Option<[u8; 16]>,
    pub total_global_mem: usize,
}

/// Larger than every known layout, so that a newer library never writes past the end.
const PROPERTIES_BYTES: usize = 4096;

#[repr(C, align(16))]
struct PropertiesBuffer([u8; PROPERTIES_BYTES]);

/// Where the members lie in `hipDeviceProp_tR0600` and in the layout before it (5.2 and 5.7, measured).
struct Offsets {
    name: usize,
    uuid: Option<usize>,
    total_global_mem: usize,
    arch: usize,
}

const R0600: Offsets = Offsets { name: 0, uuid: Some(256), total_global_mem: 288, arch: 1160 };
const R0000: Offsets = Offsets { name: 0, uuid: None, total_global_mem: 256, arch: 396 };

impl Layout {
    /// ROCm 6 came with the new layouts and with this name; unlike a version number, a name is there or is not.
    #[must_use]
    pub fn of(hip: &Hip) -> Layout {
        if hip.has("hipGetDevicePropertiesR0600") { Layout::Rocm6 } else { Layout::Rocm5 }
    }

    /// All properties of one device; `None` where only the old layout can be had.
    pub fn properties(hip: &Hip, device: c_int) -> Option<hipDeviceProp_tR0600> {
        let mut buffer = Box::new(PropertiesBuffer([0; PROPERTIES_BYTES]));
        let at = buffer.0.as_mut_ptr();
        // SAFETY: the buffer is larger than the structure.
        unsafe { hip.hipGetDevicePropertiesR0600(at.cast(), device) }.ok()?;
        // SAFETY: the call filled the structure, which is plain data.
        Some(unsafe { at.cast::<hipDeviceProp_tR0600>().read_unaligned() })
    }

    /// Name, architecture, UUID and memory of one device.
    pub fn identity(hip: &Hip, device: c_int) -> Result<DeviceIdentity, HipError> {
        let mut buffer = Box::new(PropertiesBuffer([0; PROPERTIES_BYTES]));
        let at = buffer.0.as_mut_ptr().cast::<c_void>();
        // SAFETY: the buffer is larger than every layout of the structure.
        let offsets = match unsafe { hip.hipGetDevicePropertiesR0600(at, device) } {
            Ok(()) => R0600,
            // HIP differs: the plain name fills the old layout even in a 6.x library, so it is the second choice.
            Err(HipError::Missing(_)) => {
                // SAFETY: as above.
                unsafe { hip.hipGetDeviceProperties(at, device) }?;
                R0000
            }
            Err(error) => return Err(error),
        };
        let bytes = &buffer.0;
        let text = |at: usize| {
            CStr::from_bytes_until_nul(&bytes[at..at + 256])
                .map(|text| text.to_string_lossy().into_owned())
                .unwrap_or_default()
        };
        let uuid = offsets
            .uuid
            .map(|at| bytes[at..at + 16].try_into().unwrap_or([0; 16]))
            .filter(|uuid| *uuid != [0; 16])
            .or_else(|| {
                let mut uuid = hipUUID { bytes: [0; 16] };
                // SAFETY: `uuid` is a writable hipUUID.
                unsafe { hip.hipDeviceGetUuid(&mut uuid, device) }.ok().map(|()| uuid.bytes)
            })
            .filter(|uuid| *uuid != [0; 16]);
        let memory = &bytes[offsets.total_global_mem..offsets.total_global_mem + 8];
        Ok(DeviceIdentity {
            name: text(offsets.name),
            arch: text(offsets.arch),
            uuid,
            total_global_mem: usize::from_ne_bytes(memory.try_into().unwrap_or([0; 8])),
        })
    }

    /// ROCm 6's `hipMemoryType` as this provider numbers it.
    #[must_use]
    pub fn memory_type_to_provider(self, kind: hipMemoryType) -> hipMemoryType {
        match (self, kind) {
            (Layout::Rocm6, kind) => kind,
            (Layout::Rocm5, hipMemoryTypeHost) => 0,
            (Layout::Rocm5, hipMemoryTypeDevice) => 1,
            (Layout::Rocm5, hipMemoryTypeArray) => 2,
            (Layout::Rocm5, hipMemoryTypeUnified) => 3,
            (Layout::Rocm5, hipMemoryTypeManaged) => 4,
            (Layout::Rocm5, other) => other,
        }
    }

    /// This provider's `hipMemoryType` as ROCm 6 numbers it.
    #[must_use]
    pub fn memory_type_from_provider(self, kind: hipMemoryType) -> hipMemoryType {
        match (self, kind) {
            (Layout::Rocm6, kind) => kind,
            (Layout::Rocm5, 0) => hipMemoryTypeHost,
            (Layout::Rocm5, 1) => hipMemoryTypeDevice,
            (Layout::Rocm5, 2) => hipMemoryTypeArray,
            (Layout::Rocm5, 3) => hipMemoryTypeUnified,
            (Layout::Rocm5, 4) => hipMemoryTypeManaged,
            (Layout::Rocm5, _) => hipMemoryTypeUnregistered,
        }
    }

    /// A 2-D copy, on `stream` or (with `None`) synchronous.
    ///
    /// # Safety
    /// The descriptor's ranges are valid for the copy until it is done; `stream` is the provider's.
    pub unsafe fn memcpy_2d(
        self,
        hip: &Hip,
        copy: &hip_Memcpy2D,
        stream: Option<hipStream_t>,
    ) -> Result<(), HipError> {
        let mut copy = *copy;
        copy.srcMemoryType = self.memory_type_to_provider(copy.srcMemoryType);
        copy.dstMemoryType = self.memory_type_to_provider(copy.dstMemoryType);
        match stream {
            // SAFETY: `copy` is the provider's 128-byte descriptor; the caller promised the ranges.
            None => unsafe { hip.hipMemcpyParam2D(&copy) },
            // SAFETY: as above.
            Some(stream) => unsafe { hip.hipMemcpyParam2DAsync(&copy, stream) },
        }
    }

    /// A 3-D copy, on `stream` or (with `None`) synchronous.
    ///
    /// # Safety
    /// As for [`Layout::memcpy_2d`].
    pub unsafe fn memcpy_3d(
        self,
        hip: &Hip,
        copy: &HIP_MEMCPY3D,
        stream: Option<hipStream_t>,
    ) -> Result<(), HipError> {
        let mut copy = *copy;
        copy.srcMemoryType = self.memory_type_to_provider(copy.srcMemoryType);
        copy.dstMemoryType = self.memory_type_to_provider(copy.dstMemoryType);
        let small;
        let at = match self {
            Layout::Rocm6 => (&raw const copy).cast::<HIP_MEMCPY3D>(),
            Layout::Rocm5 => {
                small = Memcpy3dRocm5::from(&copy)?;
                (&raw const small).cast::<HIP_MEMCPY3D>()
            }
        };
        match stream {
            // SAFETY: `at` is the descriptor in the provider's own layout; the caller promised the ranges.
            None => unsafe { hip.hipDrvMemcpy3D(at) },
            // SAFETY: as above.
            Some(stream) => unsafe { hip.hipDrvMemcpy3DAsync(at, stream) },
        }
    }
}

/// `HIP_MEMCPY3D` before ROCm 6: 128 bytes.
#[repr(C)]
struct Memcpy3dRocm5 {
    src_x_in_bytes: c_uint,
    src_y: c_uint,
    src_z: c_uint,
    src_lod: c_uint,
    src_memory_type: hipMemoryType,
    src_host: *const c_void,
    src_device: hipDeviceptr_t,
    src_array: hipArray_t,
    src_pitch: c_uint,
    src_height: c_uint,
    dst_x_in_bytes: c_uint,
    dst_y: c_uint,
    dst_z: c_uint,
    dst_lod: c_uint,
    dst_memory_type: hipMemoryType,
    dst_host: *mut c_void,
    dst_device: hipDeviceptr_t,
    dst_array: hipArray_t,
    dst_pitch: c_uint,
    dst_height: c_uint,
    width_in_bytes: c_uint,
    height: c_uint,
    depth: c_uint,
}

const _: () = assert!(size_of::<Memcpy3dRocm5>() == 128);

impl Memcpy3dRocm5 {
    /// HIP differs: sizes beyond 32 bits do not fit ROCm 5's descriptor.
    fn from(copy: &HIP_MEMCPY3D) -> Result<Memcpy3dRocm5, HipError> {
        let fit = |value: usize| {
            c_uint::try_from(value).map_err(|_| HipError::Code {
                call: "hipDrvMemcpy3D",
                code: crate::error::hipErrorInvalidValue,
            })
        };
        Ok(Memcpy3dRocm5 {
            src_x_in_bytes: fit(copy.srcXInBytes)?,
            src_y: fit(copy.srcY)?,
            src_z: fit(copy.srcZ)?,
            src_lod: fit(copy.srcLOD)?,
            src_memory_type: copy.srcMemoryType,
            src_host: copy.srcHost,
            src_device: copy.srcDevice,
            src_array: copy.srcArray,
            src_pitch: fit(copy.srcPitch)?,
            src_height: fit(copy.srcHeight)?,
            dst_x_in_bytes: fit(copy.dstXInBytes)?,
            dst_y: fit(copy.dstY)?,
            dst_z: fit(copy.dstZ)?,
            dst_lod: fit(copy.dstLOD)?,
            dst_memory_type: copy.dstMemoryType,
            dst_host: copy.dstHost,
            dst_device: copy.dstDevice,
            dst_array: copy.dstArray,
            dst_pitch: fit(copy.dstPitch)?,
            dst_height: fit(copy.dstHeight)?,
            width_in_bytes: fit(copy.WidthInBytes)?,
            height: fit(copy.Height)?,
            depth: fit(copy.Depth)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exports_give_the_layout_measured_on_the_libraries() {
        for (exports, layout) in [
            (include_str!("../../../tools/data/hip/hip_exports_5.2.txt"), Layout::Rocm5),
            (include_str!("../../../tools/data/hip/hip_exports_5.7.txt"), Layout::Rocm5),
            (include_str!("../../../tools/data/hip/hip_exports_6.4.txt"), Layout::Rocm6),
        ] {
            let has = |name: &CStr| exports.split_whitespace().any(|word| word.as_bytes() == name.to_bytes());
            let address = |name: &CStr| core::ptr::without_provenance_mut(usize::from(has(name)));
            // SAFETY: nothing of the table is called.
            let hip = unsafe { Hip::from_lookup(address) };
            assert_eq!(Layout::of(&hip), layout);
        }
    }

    #[test]
    fn memory_types_survive_the_way_to_rocm_5_and_back() {
        for kind in [
            hipMemoryTypeHost,
            hipMemoryTypeDevice,
            hipMemoryTypeArray,
            hipMemoryTypeUnified,
            hipMemoryTypeManaged,
        ] {
            let provider = Layout::Rocm5.memory_type_to_provider(kind);
            assert_eq!(Layout::Rocm5.memory_type_from_provider(provider), kind);
            assert_eq!(Layout::Rocm6.memory_type_to_provider(kind), kind);
        }
        assert_eq!(Layout::Rocm5.memory_type_to_provider(hipMemoryTypeHost), 0);
    }
}
