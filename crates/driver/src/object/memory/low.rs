//! Memory where 32 bits reach, for contexts of CUDA 3.1 and before.
//!
//! Host memory can be asked for there, and a provider that shows registered
//! memory to its device at the host's address makes device memory of it; another one has none to give.

use super::{Allocation, Kind, device_pointer, enter, raw};
use crate::object::Context;
use crate::{Error, Result};

/// Allocates `len_bytes` bytes below 2 GiB.
pub fn allocate(context: &'static Context, len_bytes: usize) -> Result<u64> {
    if len_bytes == 0 {
        return Err(Error::InvalidValue("bytesize"));
    }
    // HIP differs: it has no contexts of CUDA 3.1, and no call that says where memory shall lie.
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_32BIT;
    // SAFETY: a fresh mapping; the result is checked.
    let at = unsafe { libc::mmap(core::ptr::null_mut(), len_bytes, protection, flags, -1, 0) };
    if at == libc::MAP_FAILED {
        return Err(Error::OutOfMemory);
    }
    let hip = context.hip();
    // SAFETY: the mapping is ours.
    let registered = unsafe { hip.hipHostRegister(at, len_bytes, hip_sys::hipHostRegisterMapped) };
    let mut device = core::ptr::null_mut();
    // SAFETY: `device` is writable; asked only of registered memory.
    let seen = registered.and_then(|()| unsafe { hip.hipHostGetDevicePointer(&mut device, at, 0) });
    let range = Allocation::new(device_pointer(at), len_bytes, Kind::Low, context);
    if seen.is_err() || device != at {
        if registered.is_ok() {
            // SAFETY: registered above; nobody knows it yet.
            let _ = unsafe { hip.hipHostUnregister(at) };
        }
        unmap(&range);
        // CUDA: what cannot lie where the context's addresses reach is not there.
        return Err(seen.err().map_or(Error::OutOfMemory, Error::from));
    }
    enter(range);
    Ok(range.base)
}

/// Gives the range back; it must be out of the registry already.
pub(super) fn release(range: &Allocation) -> Result {
    // SAFETY: registered when it was made, and released once.
    let answer = unsafe { range.context.hip().hipHostUnregister(raw(range.base)) };
    unmap(range);
    Ok(answer?)
}

fn unmap(range: &Allocation) {
    // SAFETY: exactly what was mapped; nobody else has it.
    unsafe { libc::munmap(raw(range.base), range.len_bytes) };
}
