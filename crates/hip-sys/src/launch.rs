//! What `hipDrvLaunchKernelEx` takes (HIP 6.5 and later; the cluster attribute since 7.1): the layouts and numbers are CUDA's.

use core::ffi::{c_char, c_int, c_uint};
use core::mem::{offset_of, size_of};

use crate::types::hipStream_t;

pub type hipLaunchAttributeID = c_int;

pub const hipLaunchAttributeAccessPolicyWindow: hipLaunchAttributeID = 1;
pub const hipLaunchAttributeCooperative: hipLaunchAttributeID = 2;
pub const hipLaunchAttributeClusterDimension: hipLaunchAttributeID = 4;
pub const hipLaunchAttributePriority: hipLaunchAttributeID = 8;

/// Blocks of a cluster.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct hipLaunchClusterDim {
    pub x: c_uint,
    pub y: c_uint,
    pub z: c_uint,
}

/// Which member holds is the attribute's `id` to say.
#[repr(C)]
#[derive(Clone, Copy)]
pub union hipLaunchAttributeValue {
    pub pad: [c_char; 64],
    pub cooperative: c_int,
    pub clusterDim: hipLaunchClusterDim,
    pub priority: c_int,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct hipLaunchAttribute {
    pub id: hipLaunchAttributeID,
    pub pad: [c_char; 4],
    pub value: hipLaunchAttributeValue,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct HIP_LAUNCH_CONFIG {
    pub gridDimX: c_uint,
    pub gridDimY: c_uint,
    pub gridDimZ: c_uint,
    pub blockDimX: c_uint,
    pub blockDimY: c_uint,
    pub blockDimZ: c_uint,
    pub sharedMemBytes: c_uint,
    pub hStream: hipStream_t,
    pub attrs: *mut hipLaunchAttribute,
    pub numAttrs: c_uint,
}

const _: () = {
    assert!(size_of::<hipLaunchAttribute>() == 72 && offset_of!(hipLaunchAttribute, value) == 8);
    assert!(size_of::<HIP_LAUNCH_CONFIG>() == 56 && offset_of!(HIP_LAUNCH_CONFIG, hStream) == 32);
};
