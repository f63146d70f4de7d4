//! Stream management.

use core::ffi::{c_int, c_uint, c_ulonglong, c_void};
use std::ptr;

use border::Out;
use cuda_abi::runtime::{
    cudaEvent_t, cudaLaunchAttributeID, cudaStream_t, cudaStreamCallback_t, cudaStreamCaptureMode,
    cudaStreamCaptureStatus,
};
use cuda_abi::{
    CUlaunchAttributeID, CUlaunchAttributeValue, CUresult, CUstream, CUstreamCallback, CUstreamCaptureMode,
    CUstreamCaptureStatus,
};

use super::memory::address;
use crate::{Result, device, stream};

pub fn cudaStreamCreate(pStream: Out<'_, cudaStream_t>) -> Result {
    cudaStreamCreateWithFlags(pStream, 0)
}

pub fn cudaStreamCreateWithFlags(pStream: Out<'_, cudaStream_t>, flags: c_uint) -> Result {
    let mut created = ptr::null_mut();
    device::with_context(|driver| driver.cuStreamCreate(&mut created, flags))?;
    pStream.write(created);
    Ok(())
}

pub fn cudaStreamCreateWithPriority(
    pStream: Out<'_, cudaStream_t>,
    flags: c_uint,
    priority: c_int,
) -> Result {
    let mut created = ptr::null_mut();
    device::attach()?.cuStreamCreateWithPriority(&mut created, flags, priority)?;
    pStream.write(created);
    Ok(())
}

pub fn cudaStreamDestroy(stream: cudaStream_t) -> Result {
    device::with_context(|driver| driver.cuStreamDestroy_v2(stream))
}

pub fn cudaStreamSynchronize(stream: cudaStream_t) -> Result {
    device::with_context(|driver| driver.cuStreamSynchronize(stream::meant(stream)))
}

pub fn cudaStreamQuery(stream: cudaStream_t) -> Result {
    device::with_context(|driver| driver.cuStreamQuery(stream::meant(stream)))
}

pub fn cudaStreamWaitEvent(stream: cudaStream_t, event: cudaEvent_t, flags: c_uint) -> Result {
    device::with_context(|driver| driver.cuStreamWaitEvent(stream::meant(stream), event, flags))
}

pub fn cudaStreamGetFlags(hStream: cudaStream_t, flags: Out<'_, c_uint>) -> Result {
    let mut found = 0;
    device::attach()?.cuStreamGetFlags(stream::meant(hStream), &mut found)?;
    flags.write(found);
    Ok(())
}

pub fn cudaStreamGetPriority(hStream: cudaStream_t, priority: Out<'_, c_int>) -> Result {
    let mut found = 0;
    device::attach()?.cuStreamGetPriority(stream::meant(hStream), &mut found)?;
    priority.write(found);
    Ok(())
}

pub fn cudaStreamGetId(hStream: cudaStream_t, streamId: Out<'_, c_ulonglong>) -> Result {
    let mut found = 0;
    device::attach()?.cuStreamGetId(stream::meant(hStream), &mut found)?;
    streamId.write(found);
    Ok(())
}

pub fn cudaStreamGetDevice(hStream: cudaStream_t, device: Out<'_, c_int>) -> Result {
    let mut found = 0;
    device::attach()?.cuStreamGetDevice(stream::meant(hStream), &mut found)?;
    let ordinal =
        device::all()?.iter().find(|device| device.handle == found).map_or(found, |device| device.ordinal);
    device.write(ordinal);
    Ok(())
}

pub fn cudaStreamAttachMemAsync(
    stream: cudaStream_t,
    devPtr: *mut c_void,
    length: usize,
    flags: c_uint,
) -> Result {
    device::attach()?.cuStreamAttachMemAsync(stream::meant(stream), address(devPtr), length, flags)
}

pub fn cudaStreamCopyAttributes(dstStream: cudaStream_t, srcStream: cudaStream_t) -> Result {
    device::attach()?.cuStreamCopyAttributes(stream::meant(dstStream), stream::meant(srcStream))
}

/// Runs the callback on a host thread after the stream's earlier work, and lets later work wait for it.
pub fn cudaStreamAddCallback(
    stream: cudaStream_t,
    callback: cudaStreamCallback_t,
    userData: *mut c_void,
    flags: c_uint,
) -> Result {
    let driver = device::attach()?;
    // SAFETY: the two function types differ only in the name of the status enum, which has the same numbers and size.
    let callback = unsafe {
        core::mem::transmute::<
            cudaStreamCallback_t,
            Option<unsafe extern "C" fn(hStream: CUstream, status: CUresult, userData: *mut c_void)>,
        >(callback)
    };
    driver.cuStreamAddCallback(stream::meant(stream), callback as CUstreamCallback, userData, flags)
}

pub fn cudaStreamIsCapturing(
    stream: cudaStream_t,
    pCaptureStatus: Out<'_, cudaStreamCaptureStatus>,
) -> Result {
    let mut status = CUstreamCaptureStatus(0);
    device::attach()?.cuStreamIsCapturing(stream::meant(stream), &mut status)?;
    pCaptureStatus.write(cudaStreamCaptureStatus(status.0));
    Ok(())
}

pub fn cudaThreadExchangeStreamCaptureMode(mode: Out<'_, cudaStreamCaptureMode>) -> Result {
    // SAFETY: `mode` is in and out: the caller has set it.
    let mut exchanged = CUstreamCaptureMode(unsafe { *mode.as_ptr() }.0);
    device::attach()?.cuThreadExchangeStreamCaptureMode(&mut exchanged)?;
    mode.write(cudaStreamCaptureMode(exchanged.0));
    Ok(())
}

/// `Value` is the major's cudaLaunchAttributeValue, which has the driver's layout in all of them.
pub fn cudaStreamGetAttribute<Value>(
    stream: cudaStream_t,
    attr: cudaLaunchAttributeID,
    value: Out<'_, Value>,
) -> Result {
    const { assert!(size_of::<Value>() == size_of::<CUlaunchAttributeValue>()) };
    device::attach()?.cuStreamGetAttribute(
        stream::meant(stream),
        CUlaunchAttributeID(attr.0),
        value.as_ptr().cast(),
    )
}

/// `Value` as in cudaStreamGetAttribute.
pub fn cudaStreamSetAttribute<Value>(
    stream: cudaStream_t,
    attr: cudaLaunchAttributeID,
    param: &Value,
) -> Result {
    const { assert!(size_of::<Value>() == size_of::<CUlaunchAttributeValue>()) };
    device::attach()?.cuStreamSetAttribute(
        stream::meant(stream),
        CUlaunchAttributeID(attr.0),
        ptr::from_ref(param).cast(),
    )
}
