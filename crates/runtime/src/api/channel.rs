//! Channel descriptors.

use core::ffi::c_int;

use cuda_abi::runtime::{cudaChannelFormatDesc, cudaChannelFormatKind};

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
