//! Handles, and what the library says of itself. Source: cuSPARSE manual, "Management Functions"; what NVIDIA's library answers
//! without a GPU.

use core::ffi::{c_char, c_int};

use border::Out;

use crate::error::require;
use crate::handle::{self, Context};
use crate::release::RELEASES;
use crate::types::*;
use crate::{Error, Result};

pub fn cusparseCreate(handle: Out<'_, cusparseHandle_t>) -> Result {
    handle.write(handle::add(Context::new()?));
    Ok(())
}

/// NULL is no error.
pub fn cusparseDestroy(handle: cusparseHandle_t) -> Result {
    if handle.is_null() { Ok(()) } else { handle::remove(handle) }
}

fn release() -> [i32; 3] {
    let major = kit::release::major();
    RELEASES.iter().find(|(cuda, _)| *cuda == major).unwrap_or(&RELEASES[0]).1
}

/// Follows the CUDA runtime of the process: `libcusparse.so.12` is that of CUDA 12 and 13.
pub fn cusparseGetVersion(handle: cusparseHandle_t, version: Out<'_, c_int>) -> Result {
    handle::get(handle)?;
    let [major, minor, patch] = release();
    version.write(1000 * major + 100 * minor + patch);
    Ok(())
}

pub fn cusparseGetProperty(type_: libraryPropertyType, value: Out<'_, c_int>) -> Result {
    let [major, minor, patch] = release();
    value.write(match type_ {
        libraryPropertyType::MAJOR_VERSION => major,
        libraryPropertyType::MINOR_VERSION => minor,
        libraryPropertyType::PATCH_LEVEL => patch,
        _ => return Err(Error::InvalidValue("there is no such property")),
    });
    Ok(())
}

pub fn cusparseGetErrorName(status: cusparseStatus_t) -> *const c_char {
    let name = match status.0 {
        0 => c"CUSPARSE_STATUS_SUCCESS",
        1 => c"CUSPARSE_STATUS_NOT_INITIALIZED",
        2 => c"CUSPARSE_STATUS_ALLOC_FAILED",
        3 => c"CUSPARSE_STATUS_INVALID_VALUE",
        4 => c"CUSPARSE_STATUS_ARCH_MISMATCH",
        5 => c"CUSPARSE_STATUS_MAPPING_ERROR",
        6 => c"CUSPARSE_STATUS_EXECUTION_FAILED",
        7 => c"CUSPARSE_STATUS_INTERNAL_ERROR",
        8 => c"CUSPARSE_STATUS_MATRIX_TYPE_NOT_SUPPORTED",
        9 => c"CUSPARSE_STATUS_ZERO_PIVOT",
        10 => c"CUSPARSE_STATUS_NOT_SUPPORTED",
        11 => c"CUSPARSE_STATUS_INSUFFICIENT_RESOURCES",
        _ => c"unrecognized error code",
    };
    name.as_ptr()
}

pub fn cusparseGetErrorString(status: cusparseStatus_t) -> *const c_char {
    let text = match status.0 {
        0 => c"success",
        1 => c"initialization error",
        2 => c"out of memory",
        3 => c"invalid value",
        4 => c"architecture mismatch",
        5 => c"texture memory mapping error",
        6 => c"kernel launch failure",
        7 => c"internal error",
        8 => c"matrix type not supported",
        9 => c"zero pivot",
        10 => c"operation not supported",
        11 => c"insufficient resources",
        _ => c"unrecognized error code",
    };
    text.as_ptr()
}

pub fn cusparseSetStream(handle: cusparseHandle_t, streamId: cudaStream_t) -> Result {
    handle::get(handle)?.set_stream(streamId);
    Ok(())
}

pub fn cusparseGetStream(handle: cusparseHandle_t, streamId: Out<'_, cudaStream_t>) -> Result {
    streamId.write(handle::get(handle)?.stream());
    Ok(())
}

pub fn cusparseGetPointerMode(handle: cusparseHandle_t, mode: Out<'_, cusparsePointerMode_t>) -> Result {
    mode.write(handle::get(handle)?.pointers());
    Ok(())
}

pub fn cusparseSetPointerMode(handle: cusparseHandle_t, mode: cusparsePointerMode_t) -> Result {
    let context = handle::get(handle)?;
    require(mode <= cusparsePointerMode_t::CUSPARSE_POINTER_MODE_DEVICE, "there is no such pointer mode")?;
    context.set_pointers(mode);
    Ok(())
}
