//! Memory and events shared between processes.

use core::ffi::{c_uint, c_void};
use std::ptr;

use border::Out;
use cuda_abi::runtime::{cudaEvent_t, cudaIpcEventHandle_t, cudaIpcMemHandle_t};
use cuda_abi::{CUipcEventHandle, CUipcMemHandle};

use super::memory::{address, pointer};
use crate::{Result, device};

pub fn cudaIpcGetMemHandle(handle: Out<'_, cudaIpcMemHandle_t>, devPtr: *mut c_void) -> Result {
    let mut made = CUipcMemHandle::default();
    device::attach()?.cuIpcGetMemHandle(&mut made, address(devPtr))?;
    handle.write(cudaIpcMemHandle_t { reserved: made.reserved });
    Ok(())
}

pub fn cudaIpcOpenMemHandle(
    devPtr: Out<'_, *mut c_void>,
    handle: cudaIpcMemHandle_t,
    flags: c_uint,
) -> Result {
    let mut mapped = 0;
    device::attach()?.cuIpcOpenMemHandle_v2(
        &mut mapped,
        CUipcMemHandle { reserved: handle.reserved },
        flags,
    )?;
    devPtr.write(pointer(mapped));
    Ok(())
}

pub fn cudaIpcCloseMemHandle(devPtr: *mut c_void) -> Result {
    device::attach()?.cuIpcCloseMemHandle(address(devPtr))
}

pub fn cudaIpcGetEventHandle(handle: Out<'_, cudaIpcEventHandle_t>, event: cudaEvent_t) -> Result {
    let mut made = CUipcEventHandle::default();
    device::attach()?.cuIpcGetEventHandle(&mut made, event)?;
    handle.write(cudaIpcEventHandle_t { reserved: made.reserved });
    Ok(())
}

pub fn cudaIpcOpenEventHandle(event: Out<'_, cudaEvent_t>, handle: cudaIpcEventHandle_t) -> Result {
    let mut opened = ptr::null_mut();
    device::attach()?.cuIpcOpenEventHandle(&mut opened, CUipcEventHandle { reserved: handle.reserved })?;
    event.write(opened);
    Ok(())
}
