//! Host memory that kernels and the host see at the same time, and where kernels find it.

use core::ffi::c_void;
use core::sync::atomic::{AtomicU32, AtomicU64};

use hip_sys as hip;

use super::super::{Context, Shared, memory};
use crate::Result;

/// Page-locked memory of the host's. Who has it gives it back.
#[derive(Clone, Copy)]
pub struct HostMemory {
    pub host: Shared<*mut u8>,
    pub device: u64,
    pub bytes: usize,
}

impl HostMemory {
    /// Zeros.
    pub fn new(context: &Context, bytes: usize) -> Result<HostMemory> {
        let hip = context.hip();
        let flags = hip::hipHostMallocPortable | hip::hipHostMallocMapped | hip::hipHostMallocCoherent;
        let mut host: *mut c_void = core::ptr::null_mut();
        // SAFETY: `host` is writable.
        unsafe { hip.hipHostMalloc(&mut host, bytes, flags) }?;
        // SAFETY: so many bytes were just allocated.
        unsafe { host.cast::<u8>().write_bytes(0, bytes) };
        let mut device: *mut c_void = core::ptr::null_mut();
        // SAFETY: a writable pointer, and memory of HIP's.
        let told = unsafe { hip.hipHostGetDevicePointer(&mut device, host, 0) };
        let memory = HostMemory { host: Shared(host.cast()), device: memory::device_pointer(device), bytes };
        if let Err(error) = told {
            memory.give_back(context);
            return Err(error.into());
        }
        Ok(memory)
    }

    pub fn give_back(self, context: &Context) {
        // SAFETY: nobody uses it any more. There is nobody to tell of an error.
        let _ = unsafe { context.hip().hipHostFree(self.host.0.cast()) };
    }

    pub fn place(&self, at: u64, n: usize) -> *mut u8 {
        let at = (at as usize).min(self.bytes.saturating_sub(n));
        self.host.0.wrapping_add(at)
    }

    pub fn word(&self, at: u64) -> &AtomicU32 {
        // SAFETY: an aligned word inside of the memory, which others access by atomic operations, too.
        unsafe { AtomicU32::from_ptr(self.place(at, 4).cast()) }
    }

    pub fn wide(&self, at: u64) -> &AtomicU64 {
        // SAFETY: as above.
        unsafe { AtomicU64::from_ptr(self.place(at, 8).cast()) }
    }
}
