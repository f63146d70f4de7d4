//! Events.

use std::ffi::c_uint;

use border::Out;
use hip_sys::*;

use crate::device::healthy;
use crate::error::Result;
use crate::event;
use crate::exec::printf;
use crate::pending;
use crate::stream::{self, Op};

pub fn hipEventCreate(event: Out<'_, hipEvent_t>) -> Result {
    hipEventCreateWithFlags(event, hipEventDefault)
}

pub fn hipEventCreateWithFlags(event: Out<'_, hipEvent_t>, flags: c_uint) -> Result {
    healthy()?;
    event.write(event::create(flags)?);
    Ok(())
}

pub fn hipEventRecord(event: hipEvent_t, stream: hipStream_t) -> Result {
    let event = event::of_handle(event)?;
    let stream = stream::of_handle(stream)?;
    healthy()?;
    if event.begins_measuring() {
        pending::settle();
    }
    let number = event.record();
    stream.enqueue_short(Op::Record(event, number));
    Ok(())
}

pub fn hipEventDestroy(event: hipEvent_t) -> Result {
    event::destroy(event)
}

pub fn hipEventSynchronize(event: hipEvent_t) -> Result {
    let event = event::of_handle(event)?;
    let number = event.last();
    event.wait_for(number);
    printf::flush();
    healthy()
}

pub fn hipEventQuery(event: hipEvent_t) -> Result {
    let event = event::of_handle(event)?;
    healthy()?;
    if event.is_reached() { Ok(()) } else { Err(hipErrorNotReady) }
}

pub fn hipEventElapsedTime(ms: Out<'_, f32>, start: hipEvent_t, stop: hipEvent_t) -> Result {
    let (start, stop) = (event::of_handle(start)?, event::of_handle(stop)?);
    ms.write(event::elapsed_ms(&start, &stop)?);
    Ok(())
}
