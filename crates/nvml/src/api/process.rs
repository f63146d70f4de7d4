//! Who uses a device. On the CPU device: the processes in which its threads run.

use core::ffi::{c_uint, c_ulonglong};

use super::write_list;
use crate::sensors::Process;
use crate::types::{nvmlDevice_t, nvmlProcessInfo_t, nvmlProcessInfo_v1_t, nvmlProcessInfo_v2_t};
use crate::{Device, Error, Result};

/// What stands for "not known" in a number of 64 bits, and for "no MIG instance" in one of 32.
const NOT_AVAILABLE: c_ulonglong = c_ulonglong::MAX;
const NO_INSTANCE: c_uint = c_uint::MAX;

trait Row: Copy {
    fn of(process: &Process) -> Self;
}

impl Row for nvmlProcessInfo_v1_t {
    fn of(process: &Process) -> Self {
        nvmlProcessInfo_v1_t {
            pid: process.pid,
            usedGpuMemory: process.memory_bytes.unwrap_or(NOT_AVAILABLE),
        }
    }
}

impl Row for nvmlProcessInfo_v2_t {
    fn of(process: &Process) -> Self {
        nvmlProcessInfo_v2_t {
            pid: process.pid,
            usedGpuMemory: process.memory_bytes.unwrap_or(NOT_AVAILABLE),
            gpuInstanceId: NO_INSTANCE,
            computeInstanceId: NO_INSTANCE,
        }
    }
}

/// # Safety
/// `count` is NULL, or may be read and written; `infos` is NULL, or has room for as many elements.
unsafe fn computing<T: Row>(device: nvmlDevice_t, count: *mut c_uint, infos: *mut T) -> Result {
    let found = Device::of(device)?.sensors.processes();
    let found = found.ok_or(Error::NotSupported("the system does not tell who uses the device"))?;
    let rows: Vec<T> = found.iter().map(T::of).collect();
    // SAFETY: the caller's promise.
    unsafe { write_list(&rows, count, infos) }
}

/// CUDA programs compute; none of them draws with the device, or comes by MPS.
///
/// # Safety
/// `count` is NULL, or may be read and written; `infos` is NULL, or has room for as many elements.
unsafe fn nobody<T: Row>(device: nvmlDevice_t, count: *mut c_uint, infos: *mut T) -> Result {
    Device::of(device)?;
    // SAFETY: the caller's promise.
    unsafe { write_list(&[], count, infos) }
}

/// # Safety
/// `infoCount` is NULL, or may be read and written; `infos` is NULL, or has room for as many elements.
pub unsafe fn nvmlDeviceGetComputeRunningProcesses(
    device: nvmlDevice_t,
    infoCount: *mut c_uint,
    infos: *mut nvmlProcessInfo_v1_t,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { computing(device, infoCount, infos) }
}

/// # Safety
/// `infoCount` is NULL, or may be read and written; `infos` is NULL, or has room for as many elements.
pub unsafe fn nvmlDeviceGetComputeRunningProcesses_v2(
    device: nvmlDevice_t,
    infoCount: *mut c_uint,
    infos: *mut nvmlProcessInfo_v2_t,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { computing(device, infoCount, infos) }
}

/// # Safety
/// `infoCount` is NULL, or may be read and written; `infos` is NULL, or has room for as many elements.
pub unsafe fn nvmlDeviceGetComputeRunningProcesses_v3(
    device: nvmlDevice_t,
    infoCount: *mut c_uint,
    infos: *mut nvmlProcessInfo_t,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { computing(device, infoCount, infos) }
}

/// # Safety
/// `infoCount` is NULL, or may be read and written; `infos` is NULL, or has room for as many elements.
pub unsafe fn nvmlDeviceGetGraphicsRunningProcesses(
    device: nvmlDevice_t,
    infoCount: *mut c_uint,
    infos: *mut nvmlProcessInfo_v1_t,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { nobody(device, infoCount, infos) }
}

/// # Safety
/// `infoCount` is NULL, or may be read and written; `infos` is NULL, or has room for as many elements.
pub unsafe fn nvmlDeviceGetGraphicsRunningProcesses_v2(
    device: nvmlDevice_t,
    infoCount: *mut c_uint,
    infos: *mut nvmlProcessInfo_v2_t,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { nobody(device, infoCount, infos) }
}

/// # Safety
/// `infoCount` is NULL, or may be read and written; `infos` is NULL, or has room for as many elements.
pub unsafe fn nvmlDeviceGetGraphicsRunningProcesses_v3(
    device: nvmlDevice_t,
    infoCount: *mut c_uint,
    infos: *mut nvmlProcessInfo_t,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { nobody(device, infoCount, infos) }
}

/// # Safety
/// `infoCount` is NULL, or may be read and written; `infos` is NULL, or has room for as many elements.
pub unsafe fn nvmlDeviceGetMPSComputeRunningProcesses(
    device: nvmlDevice_t,
    infoCount: *mut c_uint,
    infos: *mut nvmlProcessInfo_v1_t,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { nobody(device, infoCount, infos) }
}

/// # Safety
/// `infoCount` is NULL, or may be read and written; `infos` is NULL, or has room for as many elements.
pub unsafe fn nvmlDeviceGetMPSComputeRunningProcesses_v2(
    device: nvmlDevice_t,
    infoCount: *mut c_uint,
    infos: *mut nvmlProcessInfo_v2_t,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { nobody(device, infoCount, infos) }
}

/// # Safety
/// `infoCount` is NULL, or may be read and written; `infos` is NULL, or has room for as many elements.
pub unsafe fn nvmlDeviceGetMPSComputeRunningProcesses_v3(
    device: nvmlDevice_t,
    infoCount: *mut c_uint,
    infos: *mut nvmlProcessInfo_t,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { nobody(device, infoCount, infos) }
}
