//! The fabric between machines: logical endpoints, cliques and copies over it. There is none here.

use core::ffi::*;

use border::Out;
use cuda_abi::*;

use super::refuse;
use crate::Result;
use crate::object::Device;

// HIP differs: it has no calls for a fabric between machines.
const WHY: &str = "the fabric between machines: no device here is on one";

pub fn cuFabricCpyBatchAsync(
    _numOps: usize,
    _opList: *mut CUDA_FABRIC_COPY_BATCH_OP,
    _flags: c_ulonglong,
    _hStream: CUstream,
) -> Result {
    refuse(WHY)
}

pub fn cuLogicalEndpointAddDevice(_leId: CUlogicalEndpointId, _dev: CUdevice) -> Result {
    refuse(WHY)
}

pub fn cuLogicalEndpointBindAddr(
    _leId: CUlogicalEndpointId,
    _dev: CUdevice,
    _offset: cuuint64_t,
    _ptr: *mut c_void,
    _size: cuuint64_t,
    _flags: c_ulonglong,
) -> Result {
    refuse(WHY)
}

pub fn cuLogicalEndpointBindMem(
    _leId: CUlogicalEndpointId,
    _dev: CUdevice,
    _offset: cuuint64_t,
    _memHandle: CUmemGenericAllocationHandle,
    _memOffset: cuuint64_t,
    _size: cuuint64_t,
    _flags: c_ulonglong,
) -> Result {
    refuse(WHY)
}

pub fn cuLogicalEndpointCreate(_leId: CUlogicalEndpointId, _prop: *const CUlogicalEndpointProp) -> Result {
    refuse(WHY)
}

pub fn cuLogicalEndpointDestroy(_leId: CUlogicalEndpointId) -> Result {
    refuse(WHY)
}

pub fn cuLogicalEndpointExport(
    _handle: *mut c_void,
    _leId: CUlogicalEndpointId,
    _handleType: CUlogicalEndpointIpcHandleType,
) -> Result {
    refuse(WHY)
}

pub fn cuLogicalEndpointGetLimits(
    _bindAlignment: Out<'_, cuuint64_t>,
    _maxSize: Out<'_, cuuint64_t>,
    _prop: *const CUlogicalEndpointProp,
) -> Result {
    refuse(WHY)
}

pub fn cuLogicalEndpointIdRelease(_baseLeId: CUlogicalEndpointId, _count: cuuint32_t) -> Result {
    refuse(WHY)
}

pub fn cuLogicalEndpointIdReserve(_baseLeId: Out<'_, CUlogicalEndpointId>, _count: cuuint32_t) -> Result {
    refuse(WHY)
}

pub fn cuLogicalEndpointImport(
    _leId: CUlogicalEndpointId,
    _handle: *const c_void,
    _handleType: CUlogicalEndpointIpcHandleType,
) -> Result {
    refuse(WHY)
}

pub fn cuLogicalEndpointQuery(
    _leId: CUlogicalEndpointId,
    _count: cuuint32_t,
    _queryStatus: Out<'_, c_int>,
) -> Result {
    refuse(WHY)
}

pub fn cuLogicalEndpointUnbind(
    _leId: CUlogicalEndpointId,
    _dev: CUdevice,
    _offset: cuuint64_t,
    _size: cuuint64_t,
) -> Result {
    refuse(WHY)
}

pub fn cuDeviceGetCliqueCount(_count: Out<'_, usize>, dev: CUdevice) -> Result {
    Device::get(dev)?;
    refuse(WHY)
}

pub fn cuDeviceGetCliqueInfo(
    _cliqueInfo: Out<'_, CUcliqueInfo>,
    _count: *mut usize,
    dev: CUdevice,
) -> Result {
    Device::get(dev)?;
    refuse(WHY)
}

pub fn cuDeviceGetFabricClusterUuid(_uuid: Out<'_, CUuuid>, dev: CUdevice) -> Result {
    Device::get(dev)?;
    refuse(WHY)
}
