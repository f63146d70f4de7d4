//! Driver Entry Point Access: from a base name, a CUDA version and a stream flavour to an export's address.
//!
//! The map is measured on NVIDIA's drivers 535 to 615 (shared/facts/abi.md §2). Works before `cuInit`, as theirs does.

use core::ffi::{CStr, c_char, c_int, c_void};

use border::{OptOut, Out};
use cuda_abi::proc_address::{self, Flavour, Lookup};
use cuda_abi::{CUdriverProcAddressQueryResult, CUuuid, cuuint64_t};

use crate::generated::proc_address::{PROCS, address};
use crate::process::not_gone;
use crate::{Error, Result};

/// The two stream flavours a program may ask for together.
const KNOWN_FLAGS: cuuint64_t = 3;

/// # Safety
/// `symbol` is NULL or a C string.
unsafe fn find(symbol: *const c_char, version: c_int, flags: cuuint64_t) -> Result<Lookup> {
    // CUDA: bits beyond the known flags are an invalid value (measured).
    if flags & !KNOWN_FLAGS != 0 {
        return Err(Error::InvalidValue("flags"));
    }
    if symbol.is_null() {
        return Err(Error::InvalidValue("symbol"));
    }
    // SAFETY: the caller's promise: a C string.
    let name = unsafe { CStr::from_ptr(symbol) };
    let name = name.to_str().unwrap_or("");
    let version = u32::try_from(version).unwrap_or(0);
    let flavour = if flags & 2 != 0 { Flavour::PerThread } else { Flavour::Plain };
    Ok(proc_address::find(PROCS, name, version, flavour))
}

/// The address of a driver function. A name that is not there is no error: the pointer becomes NULL and the status
/// says why.
///
/// # Safety
/// `symbol` is NULL or a C string.
pub unsafe fn cuGetProcAddress_v2(
    symbol: *const c_char,
    pfn: Out<'_, *mut c_void>,
    cudaVersion: c_int,
    flags: cuuint64_t,
    symbolStatus: OptOut<'_, CUdriverProcAddressQueryResult>,
) -> Result {
    not_gone()?;
    // SAFETY: the caller's promise.
    let (pointer, status) = match unsafe { find(symbol, cudaVersion, flags) }? {
        Lookup::Found(export) => match address(export) {
            Some(function) => {
                (function.0.cast_mut(), CUdriverProcAddressQueryResult::CU_GET_PROC_ADDRESS_SUCCESS)
            }
            None => return Err(Error::NotFound),
        },
        Lookup::UnknownName => {
            (core::ptr::null_mut(), CUdriverProcAddressQueryResult::CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND)
        }
        Lookup::VersionTooLow => (
            core::ptr::null_mut(),
            CUdriverProcAddressQueryResult::CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT,
        ),
    };
    pfn.write(pointer);
    symbolStatus.write(status);
    Ok(())
}

/// CUDA 11's form: a name that is not there is `CUDA_ERROR_NOT_FOUND` and leaves the pointer as it is.
///
/// # Safety
/// `symbol` is NULL or a C string.
pub unsafe fn cuGetProcAddress(
    symbol: *const c_char,
    pfn: Out<'_, *mut c_void>,
    cudaVersion: c_int,
    flags: cuuint64_t,
) -> Result {
    not_gone()?;
    // SAFETY: the caller's promise.
    let Lookup::Found(export) = unsafe { find(symbol, cudaVersion, flags) }? else {
        return Err(Error::NotFound);
    };
    pfn.write(address(export).ok_or(Error::NotFound)?.0.cast_mut());
    Ok(())
}

/// The table that each of NVIDIA's runtimes asks for first, and gives up without.
const OF_THE_RUNTIME: &str = "6bd5fb6c5bf4e74a8987d93912fd9df9";

/// NVIDIA's private tables: every id is unknown here. As on their drivers, that is an invalid value and a NULL table.
pub fn cuGetExportTable(ppExportTable: Out<'_, *const c_void>, pExportTableId: Option<&CUuuid>) -> Result {
    not_gone()?;
    let id = pExportTableId.ok_or(Error::InvalidValue("pExportTableId"))?;
    let id: String = id.bytes.iter().map(|byte| format!("{:02x}", *byte as u8)).collect();
    if id == OF_THE_RUNTIME {
        tracing::warn!(
            target: "cudaway::driver",
            "NVIDIA's own CUDA runtime is in this process and its calls will fail: it could not be replaced when this library was \
             loaded, after the program had begun. `cudaway run -- program` starts a program with ours in its place"
        );
    }
    tracing::info!(target: "cudaway::driver", "cuGetExportTable: {id} is private to NVIDIA's own libraries");
    ppExportTable.write(core::ptr::null());
    Err(Error::InvalidValue("pExportTableId"))
}
