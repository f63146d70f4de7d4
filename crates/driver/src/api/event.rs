//! Event Management.

use core::ffi::c_uint;
use std::sync::Arc;

use border::{OptOut, Out};
use cuda_abi::{CUevent, CUstream};

use crate::object::graph::capture::{
    captured, captured_event_record, check_event, forbid_unsafe, forget_event,
};
use crate::object::graph::{Op, Params};
use crate::object::{Event, Stream};
use crate::{Error, Result};

pub fn cuEventCreate(phEvent: Out<'_, CUevent>, Flags: c_uint) -> Result {
    phEvent.write(Event::create(Flags)?);
    Ok(())
}

pub fn cuEventDestroy_v2(hEvent: CUevent) -> Result {
    Event::destroy(hEvent)?;
    forget_event(hEvent);
    Ok(())
}

pub fn cuEventDestroy(hEvent: CUevent) -> Result {
    cuEventDestroy_v2(hEvent)
}

pub fn cuEventRecord(hEvent: CUevent, hStream: CUstream) -> Result {
    let event = Event::from_handle(hEvent)?;
    if captured_event_record(hEvent, hStream)? {
        return Ok(());
    }
    let stream = Stream::from_handle(hStream)?;
    // CUDA: event and stream belong to the same context.
    if !core::ptr::eq(event.context, stream.context) {
        return Err(Error::InvalidHandle("hEvent: of another context than the stream"));
    }
    // SAFETY: both are alive.
    Ok(unsafe { stream.hip().hipEventRecord(event.hip.0, stream.hip.0) }?)
}

pub fn cuEventRecordWithFlags(hEvent: CUevent, hStream: CUstream, flags: c_uint) -> Result {
    // CUDA: CU_EVENT_RECORD_DEFAULT or, in graphs, CU_EVENT_RECORD_EXTERNAL.
    match flags {
        0 => cuEventRecord(hEvent, hStream),
        // CUDA: an external record is a node, and there is none outside of a capture.
        1 if captured(hStream, || record_op(hEvent))? => Ok(()),
        1 => Err(Error::InvalidValue("flags: the stream is not captured")),
        _ => Err(Error::InvalidValue("flags")),
    }
}

/// A graph's node that records an event.
pub(crate) fn record_op(event: CUevent) -> Result<Arc<Op>> {
    Event::from_handle(event)?;
    Ok(Op::new(Params::EventRecord(event), |params, stream| match params {
        Params::EventRecord(event) => cuEventRecord(*event, stream),
        _ => Ok(()),
    }))
}

pub fn cuEventQuery(hEvent: CUevent) -> Result {
    let event = Event::from_handle(hEvent)?;
    check_event(hEvent)?;
    forbid_unsafe()?;
    // SAFETY: the event is alive.
    Ok(unsafe { event.hip().hipEventQuery(event.hip.0) }?)
}

pub fn cuEventSynchronize(hEvent: CUevent) -> Result {
    let event = Event::from_handle(hEvent)?;
    check_event(hEvent)?;
    // SAFETY: the event is alive.
    Ok(unsafe { event.hip().hipEventSynchronize(event.hip.0) }?)
}

/// Milliseconds between two recorded events.
pub fn cuEventElapsedTime_v2(pMilliseconds: OptOut<'_, f32>, hStart: CUevent, hEnd: CUevent) -> Result {
    let start = Event::from_handle(hStart)?;
    let end = Event::from_handle(hEnd)?;
    // CUDA: both events must be timed, and of one context.
    if !start.has_timing() || !end.has_timing() || !core::ptr::eq(start.context, end.context) {
        return Err(Error::InvalidHandle("hStart or hEnd"));
    }
    check_event(hStart)?;
    check_event(hEnd)?;
    // CUDA: no place for the time is a handle that is none (measured on driver 580).
    let pMilliseconds = pMilliseconds.wanted().ok_or(Error::InvalidHandle("pMilliseconds"))?;
    let mut ms = 0.0;
    // SAFETY: `ms` is writable; both events are alive.
    unsafe { start.hip().hipEventElapsedTime(&mut ms, start.hip.0, end.hip.0) }?;
    pMilliseconds.write(ms);
    Ok(())
}

/// Before CUDA 12.8: the same, less exact about events that were not recorded yet.
pub fn cuEventElapsedTime(pMilliseconds: OptOut<'_, f32>, hStart: CUevent, hEnd: CUevent) -> Result {
    cuEventElapsedTime_v2(pMilliseconds, hStart, hEnd)
}
