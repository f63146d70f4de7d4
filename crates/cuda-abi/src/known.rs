//! What our driver tells our other libraries; no types of CUDA's.

use core::ffi::{c_char, c_int, c_void};

/// A device as `cudaway_devices` describes it to NVML. `libcuda.so.1` and `libnvidia-ml.so.1` come from one build; the caller says the
/// size that it knows.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CudawayDevice {
    /// Ends with a zero.
    pub name: [c_char; 256],
    pub uuid: [u8; 16],
    pub total_memory: u64,
    /// Major, minor.
    pub compute_capability: [c_int; 2],
    /// Domain, bus, device.
    pub pci: [c_int; 3],
    pub memory_bus_bits: c_int,
    pub has_ecc: c_int,
    pub compute_mode: c_int,
    /// 1: the CPU device.
    pub is_cpu: c_int,
}

impl Default for CudawayDevice {
    fn default() -> CudawayDevice {
        CudawayDevice {
            name: [0; 256],
            uuid: [0; 16],
            total_memory: 0,
            compute_capability: [0; 2],
            pci: [0; 3],
            memory_bus_bits: 0,
            has_ecc: 0,
            compute_mode: 0,
            is_cpu: 0,
        }
    }
}

/// Where a stream's work goes, in the provider's terms: what `cudaway_hip_stream` tells cuBLAS.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CudawayHipStream {
    pub stream: *mut c_void,
    /// The provider's own number of the device.
    pub device: c_int,
    /// 1: the CPU device, which has the streams of HIP but none of ROCm's libraries.
    pub is_cpu: c_int,
}

impl Default for CudawayHipStream {
    fn default() -> CudawayHipStream {
        CudawayHipStream { stream: core::ptr::null_mut(), device: 0, is_cpu: 0 }
    }
}
