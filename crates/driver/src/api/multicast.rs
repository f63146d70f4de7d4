//! Multicast objects: one address that reaches the memory of several devices.
//!
//! CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED is 0 here: devices of different providers have no link that could copy a store.

use core::ffi::*;

use border::Out;
use cuda_abi::*;

use super::refuse;
use crate::Result;

// HIP differs: it has no multicast objects.
const WHY: &str = "multicast objects: devices here have no link that copies stores";

pub fn cuMulticastAddDevice(_mcHandle: CUmemGenericAllocationHandle, _dev: CUdevice) -> Result {
    refuse(WHY)
}

pub fn cuMulticastBindAddr(
    _mcHandle: CUmemGenericAllocationHandle,
    _mcOffset: usize,
    _memptr: CUdeviceptr,
    _size: usize,
    _flags: c_ulonglong,
) -> Result {
    refuse(WHY)
}

pub fn cuMulticastBindAddr_v2(
    _mcHandle: CUmemGenericAllocationHandle,
    _dev: CUdevice,
    _mcOffset: usize,
    _memptr: CUdeviceptr,
    _size: usize,
    _flags: c_ulonglong,
) -> Result {
    refuse(WHY)
}

pub fn cuMulticastBindMem(
    _mcHandle: CUmemGenericAllocationHandle,
    _mcOffset: usize,
    _memHandle: CUmemGenericAllocationHandle,
    _memOffset: usize,
    _size: usize,
    _flags: c_ulonglong,
) -> Result {
    refuse(WHY)
}

pub fn cuMulticastBindMem_v2(
    _mcHandle: CUmemGenericAllocationHandle,
    _dev: CUdevice,
    _mcOffset: usize,
    _memHandle: CUmemGenericAllocationHandle,
    _memOffset: usize,
    _size: usize,
    _flags: c_ulonglong,
) -> Result {
    refuse(WHY)
}

pub fn cuMulticastCreate(
    _mcHandle: Out<'_, CUmemGenericAllocationHandle>,
    _prop: *const CUmulticastObjectProp,
) -> Result {
    refuse(WHY)
}

pub fn cuMulticastGetGranularity(
    _granularity: Out<'_, usize>,
    _prop: *const CUmulticastObjectProp,
    _option: CUmulticastGranularity_flags,
) -> Result {
    refuse(WHY)
}

pub fn cuMulticastUnbind(
    _mcHandle: CUmemGenericAllocationHandle,
    _dev: CUdevice,
    _mcOffset: usize,
    _size: usize,
) -> Result {
    refuse(WHY)
}
