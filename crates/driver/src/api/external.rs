//! External Resource Interoperability: memory and semaphores of other APIs.
//!
//! CUDA's structures have HIP's layout member by member, so they are passed on as they are. What a provider cannot import it says.

use core::ffi::{c_uint, c_void};

use border::Out;
use cuda_abi::{
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC, CUDA_EXTERNAL_MEMORY_HANDLE_DESC,
    CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC, CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC,
    CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS, CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS, CUdeviceptr,
    CUexternalMemory, CUexternalSemaphore, CUmipmappedArray, CUstream,
};
use hip_sys::{hipExternalMemory_t, hipExternalSemaphore_t};

use super::graph_semaphore::{signal_op, wait_op};
use crate::handle::Registry;
use crate::object::graph::capture::captured;
use crate::object::memory::{self, Allocation, Kind, device_pointer};
use crate::object::{Context, Shared, Stream};
use crate::{Error, Result};

static MEMORY: Registry<(Shared<hipExternalMemory_t>, &'static Context), CUexternalMemory> =
    Registry::new(20);
static SEMAPHORES: Registry<(Shared<hipExternalSemaphore_t>, &'static Context), CUexternalSemaphore> =
    Registry::new(21);

pub fn cuImportExternalMemory(
    extMem_out: Out<'_, CUexternalMemory>,
    memHandleDesc: &CUDA_EXTERNAL_MEMORY_HANDLE_DESC,
) -> Result {
    let context = Context::current()?;
    let mut made: hipExternalMemory_t = core::ptr::null_mut();
    let description = core::ptr::from_ref(memHandleDesc).cast();
    // SAFETY: `made` is writable, the description HIP's by layout.
    unsafe { context.hip().hipImportExternalMemory(&mut made, description) }?;
    extMem_out.write(MEMORY.insert((Shared(made), context)).ok_or(Error::OutOfMemory)?);
    Ok(())
}

fn memory_of(handle: CUexternalMemory) -> Result<(Shared<hipExternalMemory_t>, &'static Context)> {
    crate::process::driver()?;
    let found = MEMORY.get(handle).ok_or(Error::InvalidHandle("extMem"))?;
    found.1.bind()?;
    Ok(found)
}

/// CUDA: the buffer is given back by `cuMemFree`, before the memory is destroyed.
pub fn cuExternalMemoryGetMappedBuffer(
    devPtr: Out<'_, CUdeviceptr>,
    extMem: CUexternalMemory,
    bufferDesc: &CUDA_EXTERNAL_MEMORY_BUFFER_DESC,
) -> Result {
    let (hip, context) = memory_of(extMem)?;
    let len_bytes = usize::try_from(bufferDesc.size).map_err(|_| Error::InvalidValue("bufferDesc.size"))?;
    if len_bytes == 0 || bufferDesc.flags != 0 {
        return Err(Error::InvalidValue("bufferDesc.size or flags"));
    }
    let mut at = core::ptr::null_mut();
    let description = core::ptr::from_ref(bufferDesc).cast();
    // SAFETY: `at` is writable, the memory alive, the description HIP's by layout.
    unsafe { context.hip().hipExternalMemoryGetMappedBuffer(&mut at, hip.0, description) }?;
    let base = device_pointer(at);
    memory::enter(Allocation::new(base, len_bytes, Kind::External, context));
    devPtr.write(base);
    Ok(())
}

/// Images of other APIs are laid out as their device likes.
pub fn cuExternalMemoryGetMappedMipmappedArray(
    _mipmap: Out<'_, CUmipmappedArray>,
    extMem: CUexternalMemory,
    _mipmapDesc: &CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC,
) -> Result {
    memory_of(extMem)?;
    // HIP differs: its call takes images of AMD's own drivers.
    Err(Error::NotSupported("cuExternalMemoryGetMappedMipmappedArray: another device's image layout"))
}

pub fn cuDestroyExternalMemory(extMem: CUexternalMemory) -> Result {
    let (hip, context) = memory_of(extMem)?;
    MEMORY.remove(extMem).ok_or(Error::InvalidHandle("extMem"))?;
    // SAFETY: the handle left the registry, so this is the only destroy of it.
    Ok(unsafe { context.hip().hipDestroyExternalMemory(hip.0) }?)
}

pub fn cuImportExternalSemaphore(
    extSem_out: Out<'_, CUexternalSemaphore>,
    semHandleDesc: &CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC,
) -> Result {
    let context = Context::current()?;
    let mut made: hipExternalSemaphore_t = core::ptr::null_mut();
    let description = core::ptr::from_ref(semHandleDesc).cast();
    // SAFETY: `made` is writable, the description HIP's by layout.
    unsafe { context.hip().hipImportExternalSemaphore(&mut made, description) }?;
    extSem_out.write(SEMAPHORES.insert((Shared(made), context)).ok_or(Error::OutOfMemory)?);
    Ok(())
}

pub fn cuDestroyExternalSemaphore(extSem: CUexternalSemaphore) -> Result {
    crate::process::driver()?;
    let (hip, context) = SEMAPHORES.remove(extSem).ok_or(Error::InvalidHandle("extSem"))?;
    context.bind()?;
    // SAFETY: the handle left the registry, so this is the only destroy of it.
    Ok(unsafe { context.hip().hipDestroyExternalSemaphore(hip.0) }?)
}

/// The provider's semaphores behind a program's list.
///
/// # Safety
/// `list` is NULL, or has `count` elements.
pub(crate) unsafe fn hip_semaphores(
    list: *const CUexternalSemaphore,
    params: *const c_void,
    count: c_uint,
) -> Result<Vec<hipExternalSemaphore_t>> {
    if count > 0 && (list.is_null() || params.is_null()) {
        return Err(Error::InvalidValue("extSemArray or paramsArray"));
    }
    (0..count as usize)
        .map(|index| {
            // SAFETY: the caller's promise: `count` entries.
            let handle = unsafe { *list.add(index) };
            SEMAPHORES.get(handle).map(|(hip, _)| hip.0).ok_or(Error::InvalidHandle("extSemArray"))
        })
        .collect()
}

/// # Safety
/// Both arrays are NULL, or have `numExtSems` elements.
pub unsafe fn cuSignalExternalSemaphoresAsync(
    extSemArray: *const CUexternalSemaphore,
    paramsArray: *const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS,
    numExtSems: c_uint,
    stream: CUstream,
) -> Result {
    // SAFETY: the caller's promise.
    if captured(stream, || unsafe { signal_op(extSemArray, paramsArray, numExtSems) })? {
        return Ok(());
    }
    let stream = Stream::from_handle(stream)?;
    // SAFETY: the caller's promise: NULL or as many semaphores.
    let list = unsafe { hip_semaphores(extSemArray, paramsArray.cast(), numExtSems) }?;
    let (hip, params) = (stream.hip(), paramsArray.cast());
    // SAFETY: semaphores that are alive and, by the caller's promise, as many parameters, HIP's by layout.
    Ok(unsafe { hip.hipSignalExternalSemaphoresAsync(list.as_ptr(), params, numExtSems, stream.hip.0) }?)
}

/// # Safety
/// Both arrays are NULL, or have `numExtSems` elements.
pub unsafe fn cuWaitExternalSemaphoresAsync(
    extSemArray: *const CUexternalSemaphore,
    paramsArray: *const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS,
    numExtSems: c_uint,
    stream: CUstream,
) -> Result {
    // SAFETY: the caller's promise.
    if captured(stream, || unsafe { wait_op(extSemArray, paramsArray, numExtSems) })? {
        return Ok(());
    }
    let stream = Stream::from_handle(stream)?;
    // SAFETY: the caller's promise: NULL or as many semaphores.
    let list = unsafe { hip_semaphores(extSemArray, paramsArray.cast(), numExtSems) }?;
    let (hip, params) = (stream.hip(), paramsArray.cast());
    // SAFETY: semaphores that are alive and, by the caller's promise, as many parameters, HIP's by layout.
    Ok(unsafe { hip.hipWaitExternalSemaphoresAsync(list.as_ptr(), params, numExtSems, stream.hip.0) }?)
}
