//! Streams, callbacks, and values to wait for.

use std::ffi::{c_int, c_uint, c_void};

use border::{OptOut, Out};
use hip_sys::*;

use crate::device::healthy;
use crate::error::Result;
use crate::event;
use crate::memory;
use crate::stream::{self, Op};

pub fn hipStreamCreate(stream: Out<'_, hipStream_t>) -> Result {
    hipStreamCreateWithFlags(stream, hipStreamDefault)
}

pub fn hipStreamCreateWithFlags(stream: Out<'_, hipStream_t>, flags: c_uint) -> Result {
    hipStreamCreateWithPriority(stream, flags, 0)
}

pub fn hipStreamCreateWithPriority(stream: Out<'_, hipStream_t>, flags: c_uint, priority: c_int) -> Result {
    healthy()?;
    // One priority only; others are clamped to it, as CUDA does.
    let _ = priority;
    stream.write(stream::create(flags, 0)?);
    Ok(())
}

pub fn hipDeviceGetStreamPriorityRange(
    leastPriority: OptOut<'_, c_int>,
    greatestPriority: OptOut<'_, c_int>,
) -> Result {
    leastPriority.write(0);
    greatestPriority.write(0);
    Ok(())
}

pub fn hipStreamDestroy(stream: hipStream_t) -> Result {
    stream::destroy(stream)
}

pub fn hipStreamQuery(stream: hipStream_t) -> Result {
    let stream = stream::of_handle(stream)?;
    healthy()?;
    if stream.query() { Ok(()) } else { Err(hipErrorNotReady) }
}

pub fn hipStreamSynchronize(stream: hipStream_t) -> Result {
    stream::of_handle(stream)?.synchronize();
    healthy()
}

pub fn hipStreamWaitEvent(stream: hipStream_t, event: hipEvent_t, flags: c_uint) -> Result {
    let stream = stream::of_handle(stream)?;
    let event = event::of_handle(event)?;
    if flags > 1 {
        return Err(hipErrorInvalidValue);
    }
    healthy()?;
    let number = event.last();
    if !event.is_reached() {
        stream.enqueue(Op::AwaitEvent(event, number));
    }
    Ok(())
}

pub fn hipStreamGetFlags(stream: hipStream_t, flags: Out<'_, c_uint>) -> Result {
    flags.write(stream::of_handle(stream)?.flags);
    Ok(())
}

pub fn hipStreamGetPriority(stream: hipStream_t, priority: Out<'_, c_int>) -> Result {
    priority.write(stream::of_handle(stream)?.priority);
    Ok(())
}

pub fn hipStreamGetDevice(stream: hipStream_t, device: Out<'_, hipDevice_t>) -> Result {
    stream::of_handle(stream)?;
    device.write(0);
    Ok(())
}

pub fn hipStreamAddCallback(
    stream: hipStream_t,
    callback: hipStreamCallback_t,
    userData: *mut c_void,
    flags: c_uint,
) -> Result {
    let call = callback.ok_or(hipErrorInvalidValue)?;
    if flags != 0 {
        return Err(hipErrorInvalidValue);
    }
    let own = stream::of_handle(stream)?;
    own.enqueue(Op::Callback { call, stream: stream as usize, data: userData as usize });
    Ok(())
}

pub fn hipLaunchHostFunc(stream: hipStream_t, r#fn: hipHostFn_t, userData: *mut c_void) -> Result {
    let call = r#fn.ok_or(hipErrorInvalidValue)?;
    healthy()?;
    stream::of_handle(stream)?.enqueue(Op::Host(call, userData as usize));
    Ok(())
}

/// What a library of ours computes on the CPU at its turn in the stream, on the stream's thread or on one that waits for it.
pub fn cudaway_work(stream: hipStream_t, function: hipHostFn_t, data: *mut c_void) -> Result {
    let call = function.ok_or(hipErrorInvalidValue)?;
    healthy()?;
    stream::of_handle(stream)?.enqueue(Op::Work(call, data as usize));
    Ok(())
}

/// A value in memory that kernels and copies reach, at its own alignment.
fn value_at(ptr: *mut c_void, bytes: usize) -> Result<usize> {
    let at = ptr as usize;
    if at == 0 || !at.is_multiple_of(bytes) {
        return Err(hipErrorInvalidValue);
    }
    memory::device_range(at, bytes)?;
    Ok(at)
}

fn write_value(stream: hipStream_t, ptr: *mut c_void, value: u64, bytes: usize, flags: c_uint) -> Result {
    healthy()?;
    let stream = stream::of_handle(stream)?;
    if flags > 1 {
        return Err(hipErrorInvalidValue);
    }
    stream.enqueue(Op::Write { to: value_at(ptr, bytes)?, value, bytes });
    Ok(())
}

fn wait_value(
    stream: hipStream_t,
    ptr: *mut c_void,
    value: u64,
    mask: u64,
    bytes: usize,
    flags: c_uint,
) -> Result {
    healthy()?;
    let stream = stream::of_handle(stream)?;
    if flags > 3 {
        return Err(hipErrorInvalidValue);
    }
    stream.enqueue(Op::AwaitValue { from: value_at(ptr, bytes)?, value, mask, bytes, flags });
    Ok(())
}

pub fn hipStreamWriteValue32(stream: hipStream_t, ptr: *mut c_void, value: u32, flags: c_uint) -> Result {
    write_value(stream, ptr, value.into(), 4, flags)
}

pub fn hipStreamWriteValue64(stream: hipStream_t, ptr: *mut c_void, value: u64, flags: c_uint) -> Result {
    write_value(stream, ptr, value, 8, flags)
}

pub fn hipStreamWaitValue32(
    stream: hipStream_t,
    ptr: *mut c_void,
    value: u32,
    flags: c_uint,
    mask: u32,
) -> Result {
    wait_value(stream, ptr, value.into(), mask.into(), 4, flags)
}

pub fn hipStreamWaitValue64(
    stream: hipStream_t,
    ptr: *mut c_void,
    value: u64,
    flags: c_uint,
    mask: u64,
) -> Result {
    wait_value(stream, ptr, value, mask, 8, flags)
}

/// No capture here: every stream answers that it is not capturing.
pub fn hipStreamIsCapturing(stream: hipStream_t, pCaptureStatus: Out<'_, hipStreamCaptureStatus>) -> Result {
    stream::of_handle(stream)?;
    pCaptureStatus.write(hipStreamCaptureStatusNone);
    Ok(())
}
