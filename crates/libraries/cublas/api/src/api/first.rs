//! The first API's helpers (`cublas.h`); its routines are generated (crate::legacy). Source: cuBLAS manual, "Using the
//! cuBLAS Legacy API".

use core::ffi::{c_int, c_void};

use border::Out;
use cuda_abi::CUresult;
use kit::driver;

use crate::api::{lifecycle, mode};
use crate::handle::Handle;

use crate::{Error, Result, cublasStatus_t, cudaStream_t, handle, legacy, require};

/// A second call keeps what is there.
pub fn cublasInit() -> Result {
    if legacy::handle().is_err() {
        let other = legacy::replace(handle::add(Handle::new()?));
        // Another thread was first.
        _ = handle::remove(other);
    }
    Ok(())
}

pub fn cublasShutdown() -> Result {
    lifecycle::cublasDestroy_v2(legacy::replace(core::ptr::null_mut()))
}

pub fn cublasGetError() -> cublasStatus_t {
    legacy::take_last()
}

pub fn cublasSetKernelStream(stream: cudaStream_t) -> Result {
    mode::cublasSetStream_v2(legacy::handle()?, stream)
}

pub fn cublasAlloc(n: c_int, elemSize: c_int, devicePtr: Out<'_, *mut c_void>) -> Result {
    require(n > 0 && elemSize > 0, "n or elemSize is not positive")?;
    driver::context(None)?;
    let mut address = 0;
    let bytes = n as usize * elemSize as usize;
    // SAFETY: the place outlives the call.
    let code = unsafe { (driver::driver()?.cuMemAlloc_v2)(&mut address, bytes) };
    if code != CUresult::CUDA_SUCCESS {
        return Err(Error::AllocFailed("cuMemAlloc"));
    }
    devicePtr.write(std::ptr::with_exposed_provenance_mut(address as usize));
    Ok(())
}

pub fn cublasFree(devicePtr: *mut c_void) -> Result {
    driver::context(None)?;
    // SAFETY: the driver looks at the address itself.
    Ok(driver::check("cuMemFree", unsafe { (driver::driver()?.cuMemFree_v2)(devicePtr.addr() as u64) })?)
}
