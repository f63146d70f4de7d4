//! Channel descriptors.

use core::ffi::{c_int, c_uint};

use cuda_abi::CUarray_format;
use cuda_abi::runtime::{cudaChannelFormatDesc, cudaChannelFormatKind};

use crate::{Error, Result};

/// Bits of each component and what they hold.
pub fn cudaCreateChannelDesc(
    x: c_int,
    y: c_int,
    z: c_int,
    w: c_int,
    f: cudaChannelFormatKind,
) -> cudaChannelFormatDesc {
    cudaChannelFormatDesc { x, y, z, w, f }
}

/// The driver's word for a channel descriptor: the format of a component, and how many there are.
pub fn format_of(desc: &cudaChannelFormatDesc) -> Result<(CUarray_format, c_uint)> {
    // CUDA: one, two or four components of the same width, from x on.
    let n_channels = match (desc.x, desc.y, desc.z, desc.w) {
        (_, 0, 0, 0) => 1,
        (x, y, 0, 0) if x == y => 2,
        (x, y, z, w) if x == y && x == z && x == w => 4,
        _ => return Err(Error::InvalidChannelDescriptor),
    };
    let format = match (desc.f, desc.x) {
        (cudaChannelFormatKind::cudaChannelFormatKindUnsigned, 8) => {
            CUarray_format::CU_AD_FORMAT_UNSIGNED_INT8
        }
        (cudaChannelFormatKind::cudaChannelFormatKindUnsigned, 16) => {
            CUarray_format::CU_AD_FORMAT_UNSIGNED_INT16
        }
        (cudaChannelFormatKind::cudaChannelFormatKindUnsigned, 32) => {
            CUarray_format::CU_AD_FORMAT_UNSIGNED_INT32
        }
        (cudaChannelFormatKind::cudaChannelFormatKindSigned, 8) => CUarray_format::CU_AD_FORMAT_SIGNED_INT8,
        (cudaChannelFormatKind::cudaChannelFormatKindSigned, 16) => CUarray_format::CU_AD_FORMAT_SIGNED_INT16,
        (cudaChannelFormatKind::cudaChannelFormatKindSigned, 32) => CUarray_format::CU_AD_FORMAT_SIGNED_INT32,
        (cudaChannelFormatKind::cudaChannelFormatKindFloat, 16) => CUarray_format::CU_AD_FORMAT_HALF,
        (cudaChannelFormatKind::cudaChannelFormatKindFloat, 32) => CUarray_format::CU_AD_FORMAT_FLOAT,
        (cudaChannelFormatKind(4..), _) => {
            return Err(Error::NotSupported("arrays of video, normalized or compressed formats"));
        }
        _ => return Err(Error::InvalidChannelDescriptor),
    };
    Ok((format, n_channels))
}

/// The way back.
pub fn channel_desc(format: CUarray_format, n_channels: c_uint) -> Result<cudaChannelFormatDesc> {
    let (bits, f) = match format {
        CUarray_format::CU_AD_FORMAT_UNSIGNED_INT8 => {
            (8, cudaChannelFormatKind::cudaChannelFormatKindUnsigned)
        }
        CUarray_format::CU_AD_FORMAT_UNSIGNED_INT16 => {
            (16, cudaChannelFormatKind::cudaChannelFormatKindUnsigned)
        }
        CUarray_format::CU_AD_FORMAT_UNSIGNED_INT32 => {
            (32, cudaChannelFormatKind::cudaChannelFormatKindUnsigned)
        }
        CUarray_format::CU_AD_FORMAT_SIGNED_INT8 => (8, cudaChannelFormatKind::cudaChannelFormatKindSigned),
        CUarray_format::CU_AD_FORMAT_SIGNED_INT16 => (16, cudaChannelFormatKind::cudaChannelFormatKindSigned),
        CUarray_format::CU_AD_FORMAT_SIGNED_INT32 => (32, cudaChannelFormatKind::cudaChannelFormatKindSigned),
        CUarray_format::CU_AD_FORMAT_HALF => (16, cudaChannelFormatKind::cudaChannelFormatKindFloat),
        CUarray_format::CU_AD_FORMAT_FLOAT => (32, cudaChannelFormatKind::cudaChannelFormatKindFloat),
        _ => return Err(Error::InvalidChannelDescriptor),
    };
    let has = |channel: c_uint| if channel < n_channels { bits } else { 0 };
    Ok(cudaChannelFormatDesc { x: has(0), y: has(1), z: has(2), w: has(3), f })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_descriptor_survives_the_drivers_word_for_it() {
        for f in [
            cudaChannelFormatKind::cudaChannelFormatKindSigned,
            cudaChannelFormatKind::cudaChannelFormatKindUnsigned,
            cudaChannelFormatKind::cudaChannelFormatKindFloat,
        ] {
            for (bits, n) in [(16, 1), (16, 2), (32, 4)] {
                let has = |channel| if channel < n { bits } else { 0 };
                let desc = cudaCreateChannelDesc(has(0), has(1), has(2), has(3), f);
                let (format, n_channels) = format_of(&desc).unwrap();
                let back = channel_desc(format, n_channels).unwrap();
                assert_eq!((back.x, back.y, back.z, back.w, back.f), (desc.x, desc.y, desc.z, desc.w, f));
            }
        }
        let three = cudaCreateChannelDesc(8, 8, 8, 0, cudaChannelFormatKind::cudaChannelFormatKindSigned);
        assert_eq!(format_of(&three), Err(Error::InvalidChannelDescriptor));
        let narrow = cudaCreateChannelDesc(8, 0, 0, 0, cudaChannelFormatKind::cudaChannelFormatKindFloat);
        assert_eq!(format_of(&narrow), Err(Error::InvalidChannelDescriptor));
    }
}
