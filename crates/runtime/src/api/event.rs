//! Event management.

use core::ffi::c_uint;
use std::ptr;

use border::Out;
use cuda_abi::runtime::{cudaEvent_t, cudaStream_t};

use crate::{Result, device, stream};

pub fn cudaEventCreate(event: Out<'_, cudaEvent_t>) -> Result {
    cudaEventCreateWithFlags(event, 0)
}

/// The flags have the driver's numbers.
pub fn cudaEventCreateWithFlags(event: Out<'_, cudaEvent_t>, flags: c_uint) -> Result {
    let mut created = ptr::null_mut();
    device::with_context(|driver| driver.cuEventCreate(&mut created, flags))?;
    event.write(created);
    Ok(())
}

pub fn cudaEventDestroy(event: cudaEvent_t) -> Result {
    device::with_context(|driver| driver.cuEventDestroy_v2(event))
}

pub fn cudaEventRecord(event: cudaEvent_t, stream: cudaStream_t) -> Result {
    device::with_context(|driver| driver.cuEventRecord(event, stream::meant(stream)))
}

pub fn cudaEventRecordWithFlags(event: cudaEvent_t, stream: cudaStream_t, flags: c_uint) -> Result {
    device::attach()?.cuEventRecordWithFlags(event, stream::meant(stream), flags)
}

pub fn cudaEventQuery(event: cudaEvent_t) -> Result {
    device::with_context(|driver| driver.cuEventQuery(event))
}

pub fn cudaEventSynchronize(event: cudaEvent_t) -> Result {
    device::with_context(|driver| driver.cuEventSynchronize(event))
}

/// Milliseconds between two recorded events.
pub fn cudaEventElapsedTime(ms: Out<'_, f32>, start: cudaEvent_t, end: cudaEvent_t) -> Result {
    let mut elapsed = 0.0;
    device::with_context(|driver| driver.cuEventElapsedTime(&mut elapsed, start, end))?;
    ms.write(elapsed);
    Ok(())
}

pub fn cudaEventElapsedTime_v2(ms: Out<'_, f32>, start: cudaEvent_t, end: cudaEvent_t) -> Result {
    cudaEventElapsedTime(ms, start, end)
}
