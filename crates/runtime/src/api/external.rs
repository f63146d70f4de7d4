//! External Resource Interoperability: the driver's, with structures of its layout.
//!
//! The majors' structures begin with the same members and differ in how many reserved words follow.

use core::ffi::{c_uint, c_void};
use std::ptr;

use border::Out;
use cuda_abi::runtime::{
    cudaExternalMemory_t, cudaExternalSemaphore_t, cudaExternalSemaphoreSignalParams_v1,
    cudaExternalSemaphoreWaitParams_v1, cudaMipmappedArray_t, cudaStream_t,
};
use cuda_abi::{
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC, CUDA_EXTERNAL_MEMORY_HANDLE_DESC,
    CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC, CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC,
    CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS, CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS,
};

use super::memory::pointer;
use crate::{Error, Result, device, stream};

/// The driver's structure with the first `N` bytes of a major's, and zeros behind them.
fn driver_structure<const N: usize, Theirs, Ours: Default>(theirs: &Theirs) -> Ours {
    const { assert!(size_of::<Theirs>() >= N && size_of::<Ours>() >= N) };
    let mut ours = Ours::default();
    let (from, to) = (ptr::from_ref(theirs).cast::<u8>(), (&raw mut ours).cast::<u8>());
    // SAFETY: both have that many bytes, of C types that any bytes are a value of.
    unsafe { to.copy_from_nonoverlapping(from, N) };
    ours
}

pub fn cudaImportExternalMemory<Desc>(
    extMem_out: Out<'_, cudaExternalMemory_t>,
    memHandleDesc: &Desc,
) -> Result {
    // Type, handle, size, flags.
    let description: CUDA_EXTERNAL_MEMORY_HANDLE_DESC = driver_structure::<36, _, _>(memHandleDesc);
    let mut made = ptr::null_mut();
    device::attach()?.cuImportExternalMemory(&mut made, &description)?;
    extMem_out.write(made.cast());
    Ok(())
}

pub fn cudaExternalMemoryGetMappedBuffer<Desc>(
    devPtr: Out<'_, *mut c_void>,
    extMem: cudaExternalMemory_t,
    bufferDesc: &Desc,
) -> Result {
    // Offset, size, flags.
    let description: CUDA_EXTERNAL_MEMORY_BUFFER_DESC = driver_structure::<20, _, _>(bufferDesc);
    let mut mapped = 0;
    device::attach()?.cuExternalMemoryGetMappedBuffer(&mut mapped, extMem.cast(), &description)?;
    devPtr.write(pointer(mapped));
    Ok(())
}

pub fn cudaExternalMemoryGetMappedMipmappedArray<Desc>(
    mipmap: Out<'_, cudaMipmappedArray_t>,
    extMem: cudaExternalMemory_t,
    _mipmapDesc: &Desc,
) -> Result {
    // The driver has no array for any description, so what it says does not depend on it.
    let description = CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC::default();
    let mut made = ptr::null_mut();
    device::attach()?.cuExternalMemoryGetMappedMipmappedArray(&mut made, extMem.cast(), &description)?;
    mipmap.write(made.cast());
    Ok(())
}

pub fn cudaDestroyExternalMemory(extMem: cudaExternalMemory_t) -> Result {
    device::attach()?.cuDestroyExternalMemory(extMem.cast())
}

pub fn cudaImportExternalSemaphore<Desc>(
    extSem_out: Out<'_, cudaExternalSemaphore_t>,
    semHandleDesc: &Desc,
) -> Result {
    // Type, handle, flags.
    let description: CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC = driver_structure::<28, _, _>(semHandleDesc);
    let mut made = ptr::null_mut();
    device::attach()?.cuImportExternalSemaphore(&mut made, &description)?;
    extSem_out.write(made.cast());
    Ok(())
}

pub fn cudaDestroyExternalSemaphore(extSem: cudaExternalSemaphore_t) -> Result {
    device::attach()?.cuDestroyExternalSemaphore(extSem.cast())
}

/// # Safety
/// `array` is NULL, or has `count` elements for `'a`.
unsafe fn entries<'a, T>(array: *const T, count: c_uint) -> Result<&'a [T]> {
    if count == 0 {
        return Ok(&[]);
    }
    if array.is_null() {
        return Err(Error::InvalidValue("paramsArray"));
    }
    // SAFETY: the caller's promise: `count` entries.
    Ok(unsafe { core::slice::from_raw_parts(array, count as usize) })
}

/// The layout of CUDA 11.2 and later is the driver's.
pub fn cudaSignalExternalSemaphoresAsync_v2<Params>(
    extSemArray: *const cudaExternalSemaphore_t,
    paramsArray: *const Params,
    numExtSems: c_uint,
    stream: cudaStream_t,
) -> Result {
    const { assert!(size_of::<Params>() == size_of::<CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS>()) };
    let stream = stream::meant(stream);
    device::attach()?.cuSignalExternalSemaphoresAsync(
        extSemArray.cast(),
        paramsArray.cast(),
        numExtSems,
        stream,
    )
}
pub use cudaSignalExternalSemaphoresAsync_v2 as cudaSignalExternalSemaphoresAsync_v13;

/// CUDA 10's layout: no reserved words between the members and the flags.
///
/// # Safety
/// Both arrays are NULL, or have `numExtSems` elements.
pub unsafe fn cudaSignalExternalSemaphoresAsync_v12(
    extSemArray: *const cudaExternalSemaphore_t,
    paramsArray: *const cudaExternalSemaphoreSignalParams_v1,
    numExtSems: c_uint,
    stream: cudaStream_t,
) -> Result {
    // SAFETY: the caller's promise.
    let wide = unsafe { entries(paramsArray, numExtSems) }?.iter().map(|narrow| {
        // Fence, NvSciSync fence, key.
        let mut wide: CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS = driver_structure::<24, _, _>(&narrow.params);
        wide.flags = narrow.flags;
        wide
    });
    let wide: Vec<_> = wide.collect();
    let stream = stream::meant(stream);
    device::attach()?.cuSignalExternalSemaphoresAsync(extSemArray.cast(), wide.as_ptr(), numExtSems, stream)
}
pub use cudaSignalExternalSemaphoresAsync_v12 as cudaSignalExternalSemaphoresAsync_v11;

pub fn cudaWaitExternalSemaphoresAsync_v2<Params>(
    extSemArray: *const cudaExternalSemaphore_t,
    paramsArray: *const Params,
    numExtSems: c_uint,
    stream: cudaStream_t,
) -> Result {
    const { assert!(size_of::<Params>() == size_of::<CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS>()) };
    let stream = stream::meant(stream);
    device::attach()?.cuWaitExternalSemaphoresAsync(
        extSemArray.cast(),
        paramsArray.cast(),
        numExtSems,
        stream,
    )
}
pub use cudaWaitExternalSemaphoresAsync_v2 as cudaWaitExternalSemaphoresAsync_v13;

/// # Safety
/// Both arrays are NULL, or have `numExtSems` elements.
pub unsafe fn cudaWaitExternalSemaphoresAsync_v12(
    extSemArray: *const cudaExternalSemaphore_t,
    paramsArray: *const cudaExternalSemaphoreWaitParams_v1,
    numExtSems: c_uint,
    stream: cudaStream_t,
) -> Result {
    // SAFETY: the caller's promise.
    let wide = unsafe { entries(paramsArray, numExtSems) }?.iter().map(|narrow| {
        // Fence, NvSciSync fence, key and timeout.
        let mut wide: CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS = driver_structure::<32, _, _>(&narrow.params);
        wide.flags = narrow.flags;
        wide
    });
    let wide: Vec<_> = wide.collect();
    let stream = stream::meant(stream);
    device::attach()?.cuWaitExternalSemaphoresAsync(extSemArray.cast(), wide.as_ptr(), numExtSems, stream)
}
pub use cudaWaitExternalSemaphoresAsync_v12 as cudaWaitExternalSemaphoresAsync_v11;
