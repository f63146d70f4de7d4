//! Unified Addressing: what is behind a pointer.

use core::ffi::{c_int, c_uint, c_void};

use cuda_abi::{CUdeviceptr, CUmemorytype, CUpointer_attribute};

use crate::object::memory::{self, Allocation, Kind};
use crate::process::driver;
use crate::{Error, Result};

/// Where CUDA writes an attribute's value: typed by the attribute's number.
struct Answer(*mut c_void);

impl Answer {
    fn write<T>(&self, value: T) {
        // SAFETY: CUDA's contract: `data` points to a variable of the attribute's type.
        unsafe { self.0.cast::<T>().write(value) };
    }
}

/// One attribute of a known range.
fn answer(attribute: CUpointer_attribute, pointer: CUdeviceptr, range: &Allocation, data: &Answer) -> Result {
    let offset = pointer - range.base;
    match attribute {
        CUpointer_attribute::CU_POINTER_ATTRIBUTE_CONTEXT => data.write(range.context.handle()),
        CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE => data.write(if range.is_host() {
            CUmemorytype::CU_MEMORYTYPE_HOST
        } else {
            CUmemorytype::CU_MEMORYTYPE_DEVICE
        }),
        CUpointer_attribute::CU_POINTER_ATTRIBUTE_DEVICE_POINTER => data.write(range.device_base + offset),
        CUpointer_attribute::CU_POINTER_ATTRIBUTE_HOST_POINTER => {
            // CUDA: device memory has no host address.
            if !range.is_host() && !range.is_managed() {
                return Err(Error::InvalidValue("attribute"));
            }
            data.write(pointer);
        }
        CUpointer_attribute::CU_POINTER_ATTRIBUTE_SYNC_MEMOPS => {
            data.write(c_int::from(range.is_synchronous))
        }
        CUpointer_attribute::CU_POINTER_ATTRIBUTE_BUFFER_ID
        | CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID => data.write(range.id),
        CUpointer_attribute::CU_POINTER_ATTRIBUTE_IS_MANAGED => data.write(c_int::from(range.is_managed())),
        CUpointer_attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL => data.write(range.context.device.ordinal),
        CUpointer_attribute::CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE => {
            data.write(c_int::from(
                range.kind == Kind::Device && range.context.hip().has("hipIpcGetMemHandle"),
            ));
        }
        CUpointer_attribute::CU_POINTER_ATTRIBUTE_RANGE_START_ADDR
        | CUpointer_attribute::CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR => data.write(range.base),
        CUpointer_attribute::CU_POINTER_ATTRIBUTE_RANGE_SIZE
        | CUpointer_attribute::CU_POINTER_ATTRIBUTE_MAPPING_SIZE => data.write(range.len_bytes),
        CUpointer_attribute::CU_POINTER_ATTRIBUTE_MAPPED => data.write(1 as c_int),
        CUpointer_attribute::CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES => data.write(0u64),
        CUpointer_attribute::CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE => data.write(0 as c_int),
        // CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE
        CUpointer_attribute::CU_POINTER_ATTRIBUTE_ACCESS_FLAGS => data.write(3 as c_uint),
        CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE => data.write(range.pool.0),
        CUpointer_attribute::CU_POINTER_ATTRIBUTE_P2P_TOKENS => {
            return Err(Error::NotSupported("cuPointerGetAttribute: P2P_TOKENS"));
        }
        _ => return Err(Error::InvalidValue("attribute")),
    }
    Ok(())
}

pub fn cuPointerGetAttribute(data: *mut c_void, attribute: CUpointer_attribute, ptr: CUdeviceptr) -> Result {
    driver()?;
    if data.is_null() {
        return Err(Error::InvalidValue("data"));
    }
    // CUDA: a pointer it never handed out or registered is an invalid value.
    let range = memory::find(ptr).ok_or(Error::InvalidValue("ptr"))?;
    answer(attribute, ptr, &range, &Answer(data))
}

/// Several attributes at once. An unknown pointer is no error here: its answers are the zeros of their types.
///
/// # Safety
/// Both arrays are NULL, or have `numAttributes` elements; those of `data` have room for what is asked.
pub unsafe fn cuPointerGetAttributes(
    numAttributes: c_uint,
    attributes: *mut CUpointer_attribute,
    data: *mut *mut c_void,
    ptr: CUdeviceptr,
) -> Result {
    driver()?;
    if attributes.is_null() || data.is_null() {
        return Err(Error::InvalidValue("attributes or data"));
    }
    let range = memory::find(ptr);
    for index in 0..numAttributes as usize {
        // SAFETY: the caller's promise: `numAttributes` entries in both arrays.
        let (attribute, at) = unsafe { (*attributes.add(index), *data.add(index)) };
        if at.is_null() {
            return Err(Error::InvalidValue("data"));
        }
        let known = range.as_ref().is_some_and(|range| answer(attribute, ptr, range, &Answer(at)).is_ok());
        if !known {
            unknown(attribute, ptr, &Answer(at))?;
        }
    }
    Ok(())
}

/// What the attributes of an unknown pointer are.
fn unknown(attribute: CUpointer_attribute, pointer: CUdeviceptr, data: &Answer) -> Result {
    match attribute {
        CUpointer_attribute::CU_POINTER_ATTRIBUTE_CONTEXT
        | CUpointer_attribute::CU_POINTER_ATTRIBUTE_DEVICE_POINTER
        | CUpointer_attribute::CU_POINTER_ATTRIBUTE_BUFFER_ID
        | CUpointer_attribute::CU_POINTER_ATTRIBUTE_RANGE_START_ADDR
        | CUpointer_attribute::CU_POINTER_ATTRIBUTE_RANGE_SIZE
        | CUpointer_attribute::CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES
        | CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE
        | CUpointer_attribute::CU_POINTER_ATTRIBUTE_MAPPING_SIZE
        | CUpointer_attribute::CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR
        | CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID => data.write(0u64),
        // The host's own memory is known by the host's address; device memory has none.
        CUpointer_attribute::CU_POINTER_ATTRIBUTE_HOST_POINTER => {
            data.write(if memory::find(pointer).is_some() { 0 } else { pointer });
        }
        CUpointer_attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL => data.write(-2 as c_int),
        CUpointer_attribute::CU_POINTER_ATTRIBUTE_P2P_TOKENS => {
            return Err(Error::NotSupported("cuPointerGetAttributes: P2P_TOKENS"));
        }
        CUpointer_attribute(1..=20) => data.write(0 as c_int),
        _ => return Err(Error::InvalidValue("attributes")),
    }
    Ok(())
}

/// The one attribute that can be set: copies and fills without a stream wait for the memory. Copies always do here.
///
/// # Safety
/// `value` is NULL, or a number of 32 bits.
pub unsafe fn cuPointerSetAttribute(
    value: *const c_void,
    attribute: CUpointer_attribute,
    ptr: CUdeviceptr,
) -> Result {
    driver()?;
    if value.is_null() {
        return Err(Error::InvalidValue("value"));
    }
    if attribute != CUpointer_attribute::CU_POINTER_ATTRIBUTE_SYNC_MEMOPS {
        return Err(Error::InvalidValue("attribute"));
    }
    // SAFETY: the caller's promise: a number that is 0 or not.
    let is_synchronous = unsafe { value.cast::<c_uint>().read() } != 0;
    let is_known = memory::change(ptr, |range| range.is_synchronous = is_synchronous);
    if is_known { Ok(()) } else { Err(Error::InvalidValue("ptr")) }
}
