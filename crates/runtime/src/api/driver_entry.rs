//! Driver functions by name.

use core::ffi::{c_char, c_int, c_uint, c_ulonglong, c_void};
use std::ptr;

use border::{OptOut, Out};
use cuda_abi::runtime::cudaDriverEntryPointQueryResult;
use cuda_abi::{CUdriverProcAddressQueryResult, CUuuid};

use crate::entry::is_per_thread;
use crate::{Error, Result, driver};

/// `CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM`, and the runtime's flag of the same meaning.
const PER_THREAD: c_ulonglong = 2;

pub fn cudaGetDriverEntryPoint_v11(
    symbol: *const c_char,
    funcPtr: Out<'_, *mut c_void>,
    flags: c_ulonglong,
) -> Result {
    let mut status = cudaDriverEntryPointQueryResult(0);
    let mut function = ptr::null_mut();
    look_up(symbol, Out::from(&mut function), 11080, flags, Some(&mut status).into())?;
    // CUDA 11 differs: what is not found is an error, and the pointer stays as it was.
    if function.is_null() {
        return Err(Error::SymbolNotFound);
    }
    funcPtr.write(function);
    Ok(())
}

pub fn cudaGetDriverEntryPoint_v12(
    symbol: *const c_char,
    funcPtr: Out<'_, *mut c_void>,
    flags: c_ulonglong,
    driverStatus: OptOut<'_, cudaDriverEntryPointQueryResult>,
) -> Result {
    look_up(symbol, funcPtr, 12090, flags, driverStatus)
}

pub fn cudaGetDriverEntryPoint_v13(
    symbol: *const c_char,
    funcPtr: Out<'_, *mut c_void>,
    flags: c_ulonglong,
    driverStatus: OptOut<'_, cudaDriverEntryPointQueryResult>,
) -> Result {
    look_up(symbol, funcPtr, 13050, flags, driverStatus)
}

pub fn cudaGetDriverEntryPointByVersion(
    symbol: *const c_char,
    funcPtr: Out<'_, *mut c_void>,
    cudaVersion: c_uint,
    flags: c_ulonglong,
    driverStatus: OptOut<'_, cudaDriverEntryPointQueryResult>,
) -> Result {
    let version = c_int::try_from(cudaVersion).map_err(|_| Error::InvalidValue("cudaVersion"))?;
    look_up(symbol, funcPtr, version, flags, driverStatus)
}

/// CUDA: a name that is not found gives success, a null pointer, and the reason in the status.
fn look_up(
    symbol: *const c_char,
    funcPtr: Out<'_, *mut c_void>,
    version: c_int,
    flags: c_ulonglong,
    driverStatus: OptOut<'_, cudaDriverEntryPointQueryResult>,
) -> Result {
    if symbol.is_null() {
        return Err(Error::InvalidValue("symbol"));
    }
    let driver = driver::get()?;
    // Default asks for what the caller was compiled for.
    let flags = if flags == 0 && is_per_thread() { PER_THREAD } else { flags };
    let mut function = ptr::null_mut();
    let mut status = CUdriverProcAddressQueryResult(0);
    driver.cuGetProcAddress_v2(symbol, &mut function, version, flags, &mut status)?;
    funcPtr.write(function);
    driverStatus.write(cudaDriverEntryPointQueryResult(status.0));
    Ok(())
}

/// NVIDIA's private tables: the driver knows none of them, and says so.
pub fn cudaGetExportTable<Id>(ppExportTable: Out<'_, *const c_void>, pExportTableId: *const Id) -> Result {
    const { assert!(size_of::<Id>() == size_of::<CUuuid>()) };
    driver::get()?.cuGetExportTable(ppExportTable.as_ptr(), pExportTableId.cast())
}
