//! Peer devices.

use core::ffi::{c_int, c_uint, c_void};

use border::Out;
use cuda_abi::runtime::{
    cudaDeviceP2PAttr, cudaMemcpy3DParms, cudaMemcpy3DPeerParms, cudaMemcpyKind, cudaStream_t,
};
use cuda_abi::{CUcontext, CUdevice_P2PAttribute};

use super::memory::{address, cudaMemcpy3D, cudaMemcpy3DAsync};
use crate::{Result, device, driver, stream};

pub fn cudaDeviceCanAccessPeer(canAccessPeer: Out<'_, c_int>, device: c_int, peerDevice: c_int) -> Result {
    let (device, peer) = (device::at(device)?, device::at(peerDevice)?);
    let mut can = 0;
    driver::get()?.cuDeviceCanAccessPeer(&mut can, device.handle, peer.handle)?;
    canAccessPeer.write(can);
    Ok(())
}

pub fn cudaDeviceGetP2PAttribute(
    value: Out<'_, c_int>,
    attr: cudaDeviceP2PAttr,
    srcDevice: c_int,
    dstDevice: c_int,
) -> Result {
    let (from, to) = (device::at(srcDevice)?, device::at(dstDevice)?);
    let mut found = 0;
    driver::get()?.cuDeviceGetP2PAttribute(
        &mut found,
        CUdevice_P2PAttribute(attr.0),
        from.handle,
        to.handle,
    )?;
    value.write(found);
    Ok(())
}

pub fn cudaDeviceEnablePeerAccess(peerDevice: c_int, flags: c_uint) -> Result {
    let driver = device::attach()?;
    driver.cuCtxEnablePeerAccess(device::at(peerDevice)?.context()?, flags)
}

pub fn cudaDeviceDisablePeerAccess(peerDevice: c_int) -> Result {
    let driver = device::attach()?;
    driver.cuCtxDisablePeerAccess(device::at(peerDevice)?.context()?)
}

pub fn cudaMemcpyPeer(
    dst: *mut c_void,
    dstDevice: c_int,
    src: *const c_void,
    srcDevice: c_int,
    count: usize,
) -> Result {
    let driver = device::attach()?;
    let (to, from) = contexts(dstDevice, srcDevice)?;
    if count == 0 { Ok(()) } else { driver.cuMemcpyPeer(address(dst), to, address(src), from, count) }
}

pub fn cudaMemcpyPeerAsync(
    dst: *mut c_void,
    dstDevice: c_int,
    src: *const c_void,
    srcDevice: c_int,
    count: usize,
    stream: cudaStream_t,
) -> Result {
    let driver = device::attach()?;
    let (to, from) = contexts(dstDevice, srcDevice)?;
    if count == 0 {
        Ok(())
    } else {
        driver.cuMemcpyPeerAsync(address(dst), to, address(src), from, count, stream::meant(stream))
    }
}

/// CUDA: a copy between devices, or from and to arrays on them; the addresses say where linear memory is.
fn boxes(p: &cudaMemcpy3DPeerParms) -> Result<cudaMemcpy3DParms> {
    contexts(p.dstDevice, p.srcDevice)?;
    Ok(cudaMemcpy3DParms {
        srcArray: p.srcArray,
        srcPos: p.srcPos,
        srcPtr: p.srcPtr,
        dstArray: p.dstArray,
        dstPos: p.dstPos,
        dstPtr: p.dstPtr,
        extent: p.extent,
        kind: cudaMemcpyKind::cudaMemcpyDefault,
    })
}

pub fn cudaMemcpy3DPeer(p: &cudaMemcpy3DPeerParms) -> Result {
    cudaMemcpy3D(&boxes(p)?)
}

pub fn cudaMemcpy3DPeerAsync(p: &cudaMemcpy3DPeerParms, stream: cudaStream_t) -> Result {
    cudaMemcpy3DAsync(&boxes(p)?, stream)
}

fn contexts(to: c_int, from: c_int) -> Result<(CUcontext, CUcontext)> {
    Ok((device::at(to)?.context()?, device::at(from)?.context()?))
}
