//! What describes arrays as textures and surfaces: HIP's runtime forms (`hipResourceDesc`, …), its driver forms
//! (`HIP_RESOURCE_DESC`, …) and the legacy `textureReference`. Layouts from `hip/driver_types.h` and `texture_types.h`.

use core::ffi::{c_int, c_uint, c_void};
use core::mem::{offset_of, size_of};

use crate::types::*;

pub type hipTextureAddressMode = c_int;
pub type hipTextureFilterMode = c_int;
pub type hipTextureReadMode = c_int;
pub type hipResourceViewFormat = c_int;

constants! {
    hipChannelFormatKind:
        hipChannelFormatKindSigned = 0, hipChannelFormatKindUnsigned = 1, hipChannelFormatKindFloat = 2,
        hipChannelFormatKindNone = 3;
    hipResourceType:
        hipResourceTypeArray = 0, hipResourceTypeMipmappedArray = 1, hipResourceTypeLinear = 2,
        hipResourceTypePitch2D = 3;
    hipTextureAddressMode:
        hipAddressModeWrap = 0, hipAddressModeClamp = 1, hipAddressModeMirror = 2, hipAddressModeBorder = 3;
    hipTextureFilterMode:
        hipFilterModePoint = 0, hipFilterModeLinear = 1;
    hipTextureReadMode:
        hipReadModeElementType = 0, hipReadModeNormalizedFloat = 1;
    hipResourceViewFormat:
        hipResViewFormatNone = 0x00, hipResViewFormatUnsignedChar1 = 0x01, hipResViewFormatUnsignedChar4 = 0x03,
        hipResViewFormatSignedChar1 = 0x04, hipResViewFormatUnsignedShort1 = 0x07,
        hipResViewFormatSignedShort1 = 0x0a, hipResViewFormatUnsignedInt1 = 0x0d,
        hipResViewFormatSignedInt1 = 0x10, hipResViewFormatHalf1 = 0x13, hipResViewFormatFloat1 = 0x16,
        hipResViewFormatFloat4 = 0x18, hipResViewFormatUnsignedBlockCompressed1 = 0x19,
        hipResViewFormatUnsignedBlockCompressed7 = 0x22;
    c_uint:
        hipArrayDefault = 0, hipArrayLayered = 1, hipArraySurfaceLoadStore = 2, hipArrayCubemap = 4,
        hipArrayTextureGather = 8,
        HIP_TRSA_OVERRIDE_FORMAT = 1,
        HIP_TRSF_READ_AS_INTEGER = 1, HIP_TRSF_NORMALIZED_COORDINATES = 2, HIP_TRSF_SRGB = 0x10;
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hipResourceLinear {
    pub devPtr: *mut c_void,
    pub desc: hipChannelFormatDesc,
    pub sizeInBytes: usize,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hipResourcePitch2D {
    pub devPtr: *mut c_void,
    pub desc: hipChannelFormatDesc,
    pub width: usize,
    pub height: usize,
    pub pitchInBytes: usize,
}

/// Which member holds is `resType`'s to say.
#[repr(C)]
#[derive(Clone, Copy)]
pub union hipResourceUnion {
    pub array: hipArray_t,
    pub mipmap: hipMipmappedArray_t,
    pub linear: hipResourceLinear,
    pub pitch2D: hipResourcePitch2D,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct hipResourceDesc {
    pub resType: hipResourceType,
    pub res: hipResourceUnion,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct hipTextureDesc {
    pub addressMode: [hipTextureAddressMode; 3],
    pub filterMode: hipTextureFilterMode,
    pub readMode: hipTextureReadMode,
    pub sRGB: c_int,
    pub borderColor: [f32; 4],
    pub normalizedCoords: c_int,
    pub maxAnisotropy: c_uint,
    pub mipmapFilterMode: hipTextureFilterMode,
    pub mipmapLevelBias: f32,
    pub minMipmapLevelClamp: f32,
    pub maxMipmapLevelClamp: f32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hipResourceViewDesc {
    pub format: hipResourceViewFormat,
    pub width: usize,
    pub height: usize,
    pub depth: usize,
    pub firstMipmapLevel: c_uint,
    pub lastMipmapLevel: c_uint,
    pub firstLayer: c_uint,
    pub lastLayer: c_uint,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HIP_RESOURCE_LINEAR {
    pub devPtr: hipDeviceptr_t,
    pub format: hipArray_Format,
    pub numChannels: c_uint,
    pub sizeInBytes: usize,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HIP_RESOURCE_PITCH2D {
    pub devPtr: hipDeviceptr_t,
    pub format: hipArray_Format,
    pub numChannels: c_uint,
    pub width: usize,
    pub height: usize,
    pub pitchInBytes: usize,
}

/// Which member holds is `resType`'s to say.
#[repr(C)]
#[derive(Clone, Copy)]
pub union HIP_RESOURCE_UNION {
    pub array: hipArray_t,
    pub mipmap: hipMipmappedArray_t,
    pub linear: HIP_RESOURCE_LINEAR,
    pub pitch2D: HIP_RESOURCE_PITCH2D,
    pub reserved: [c_int; 32],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct HIP_RESOURCE_DESC {
    pub resType: hipResourceType,
    pub res: HIP_RESOURCE_UNION,
    pub flags: c_uint,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HIP_TEXTURE_DESC {
    pub addressMode: [hipTextureAddressMode; 3],
    pub filterMode: hipTextureFilterMode,
    pub flags: c_uint,
    pub maxAnisotropy: c_uint,
    pub mipmapFilterMode: hipTextureFilterMode,
    pub mipmapLevelBias: f32,
    pub minMipmapLevelClamp: f32,
    pub maxMipmapLevelClamp: f32,
    pub borderColor: [f32; 4],
    pub reserved: [c_int; 12],
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HIP_RESOURCE_VIEW_DESC {
    pub format: hipResourceViewFormat,
    pub width: usize,
    pub height: usize,
    pub depth: usize,
    pub firstMipmapLevel: c_uint,
    pub lastMipmapLevel: c_uint,
    pub firstLayer: c_uint,
    pub lastLayer: c_uint,
    pub reserved: [c_uint; 16],
}

/// A named `.texref` of a module, as `hipModuleGetTexRef` gives it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct textureReference {
    pub normalized: c_int,
    pub readMode: hipTextureReadMode,
    pub filterMode: hipTextureFilterMode,
    pub addressMode: [hipTextureAddressMode; 3],
    pub channelDesc: hipChannelFormatDesc,
    pub sRGB: c_int,
    pub maxAnisotropy: c_uint,
    pub mipmapFilterMode: hipTextureFilterMode,
    pub mipmapLevelBias: f32,
    pub minMipmapLevelClamp: f32,
    pub maxMipmapLevelClamp: f32,
    pub textureObject: hipTextureObject_t,
    pub numChannels: c_int,
    pub format: hipArray_Format,
}

const _: () = {
    assert!(size_of::<hipResourceDesc>() == 64 && offset_of!(hipResourceDesc, res) == 8);
    assert!(offset_of!(hipResourceLinear, sizeInBytes) == 32 && offset_of!(hipResourcePitch2D, width) == 32);
    assert!(size_of::<hipTextureDesc>() == 64 && offset_of!(hipTextureDesc, borderColor) == 24);
    assert!(size_of::<hipResourceViewDesc>() == 48);
    assert!(size_of::<HIP_RESOURCE_DESC>() == 144 && offset_of!(HIP_RESOURCE_DESC, flags) == 136);
    assert!(size_of::<HIP_TEXTURE_DESC>() == 104 && offset_of!(HIP_TEXTURE_DESC, borderColor) == 40);
    assert!(size_of::<HIP_RESOURCE_VIEW_DESC>() == 112);
    assert!(size_of::<textureReference>() == 88 && offset_of!(textureReference, textureObject) == 72);
};
