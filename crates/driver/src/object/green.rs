//! Green contexts: a device's primary context, limited to a part of the multiprocessors.
//!
//! Every device here is one part: kernels of all contexts share all of its multiprocessors, and no provider has a call that takes
//! some away. So the one split there is gives everything to its first group, and a green context is the primary context under
//! another handle type, with streams of its own.

use cuda_abi::{
    CUdevResource, CUdevResourceDesc, CUdevResourceType, CUdevSmResource, CUdevice_attribute, CUevent,
    CUgreenCtx, CUstream,
};
use hip_sys::{hipEvent_t, hipEventDisableTiming, hipStream_t, hipStreamNonBlocking};

use super::{Context, Device, Event, Shared, Stream, stream};
use crate::api::device::attribute;
use crate::handle::Registry;
use crate::{Error, Result};

static DESCRIPTIONS: Registry<&'static Device, CUdevResourceDesc> = Registry::new(22);
static GREENS: Registry<Green, CUgreenCtx> = Registry::new(23);

#[derive(Clone, Copy)]
pub struct Green {
    pub context: &'static Context,
    pub id: u64,
    handle: Shared<CUgreenCtx>,
}

/// Marks a resource as ours, in the bytes that CUDA keeps for the driver: a program cannot make one up.
const MARK: [u8; 8] = *b"cudaway1";

/// All multiprocessors of a device.
pub fn multiprocessors(device: &'static Device) -> CUdevResource {
    let count = attribute(device, CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    let count = count.and_then(|count| u32::try_from(count).ok()).unwrap_or(1);
    let mut resource =
        CUdevResource { type_: CUdevResourceType::CU_DEV_RESOURCE_TYPE_SM, ..Default::default() };
    // HIP differs: a stream can be kept to some compute units there, a context cannot. The least part is the whole.
    resource.__bindgen_anon_1.sm = CUdevSmResource {
        smCount: count,
        minSmPartitionSize: count,
        smCoscheduledAlignment: count,
        ..Default::default()
    };
    resource._internal_padding[..8].copy_from_slice(&MARK);
    resource._internal_padding[8..12].copy_from_slice(&device.ordinal.to_ne_bytes());
    resource
}

/// The device whose multiprocessors a program's resource is.
pub fn device_of(resource: &CUdevResource) -> Result<&'static Device> {
    if resource.type_ != CUdevResourceType::CU_DEV_RESOURCE_TYPE_SM {
        return Err(Error::InvalidResourceType);
    }
    let (mark, rest) = resource._internal_padding.split_at(8);
    if mark != MARK {
        return Err(Error::InvalidResourceConfiguration);
    }
    let ordinal = rest.first_chunk().map(|bytes| i32::from_ne_bytes(*bytes));
    Device::get(ordinal.ok_or(Error::InvalidResourceConfiguration)?)
}

pub fn describe(device: &'static Device) -> Result<CUdevResourceDesc> {
    DESCRIPTIONS.insert(device).ok_or(Error::OutOfMemory)
}

impl Green {
    pub fn create(description: CUdevResourceDesc, device: &'static Device) -> Result<CUgreenCtx> {
        let described = DESCRIPTIONS.get(description).ok_or(Error::InvalidValue("desc"))?;
        if !core::ptr::eq(described, device) {
            return Err(Error::InvalidValue("desc: of another device"));
        }
        let context = Context::retain_primary(device)?;
        let id = super::context::next_id();
        let made = GREENS.insert_with(|handle| Green { context, id, handle: Shared(handle) });
        made.ok_or(Error::OutOfMemory)
    }

    pub fn from_handle(handle: CUgreenCtx) -> Result<Green> {
        crate::process::driver()?;
        GREENS.get(handle).ok_or(Error::InvalidContext)
    }

    /// Gives the primary context back. Its streams live on.
    pub fn destroy(handle: CUgreenCtx) -> Result {
        let green = Green::from_handle(handle)?;
        GREENS.remove(handle).ok_or(Error::InvalidContext)?;
        Context::release_primary(green.context.device)
    }

    pub fn stream(&self, flags: u32, priority: i32) -> Result<CUstream> {
        Stream::create_in(self.context, flags, priority, self.handle)
    }

    fn streams(&self) -> Vec<Stream> {
        stream::all_where(|stream| stream.green == self.handle)
    }

    pub fn record(&self, event: CUevent) -> Result {
        record(self.context, &self.streams(), event)
    }

    pub fn wait(&self, event: CUevent) -> Result {
        wait(self.context, &self.streams(), event)
    }
}

/// Every stream of a context: those made in it, and the legacy default one.
pub fn streams_of(context: &'static Context) -> Vec<Stream> {
    let mut streams = stream::all_where(|stream| core::ptr::eq(stream.context, context));
    streams.push(Stream::default_of(context, false));
    streams
}

/// Records an event behind all work of some streams of a context.
pub fn record(context: &'static Context, streams: &[Stream], event: CUevent) -> Result {
    let event = Event::from_handle(event)?;
    if !core::ptr::eq(event.context.device, context.device) {
        return Err(Error::InvalidHandle("hEvent: of another device"));
    }
    context.bind()?;
    let hip = context.hip();
    // A stream of its own meets the others, so that none of them waits for another.
    let mut meeting: hipStream_t = core::ptr::null_mut();
    // SAFETY: `meeting` is writable.
    unsafe { hip.hipStreamCreateWithFlags(&mut meeting, hipStreamNonBlocking) }?;
    let joined = streams.iter().try_for_each(|stream| join(stream, meeting));
    // SAFETY: both are alive.
    let recorded = joined.and_then(|()| Ok(unsafe { hip.hipEventRecord(event.hip.0, meeting) }?));
    // SAFETY: made above; what was put into it still happens.
    let destroyed = unsafe { hip.hipStreamDestroy(meeting) };
    recorded.and(destroyed.map_err(Error::from))
}

/// Makes `meeting` wait for what a stream has now.
fn join(stream: &Stream, meeting: hipStream_t) -> Result {
    let hip = stream.hip();
    let mut mark: hipEvent_t = core::ptr::null_mut();
    // SAFETY: `mark` is writable.
    unsafe { hip.hipEventCreateWithFlags(&mut mark, hipEventDisableTiming) }?;
    // SAFETY: the event is alive, and the stream as long as the program keeps it.
    let marked = unsafe { hip.hipEventRecord(mark, stream.hip.0) };
    // SAFETY: both are alive.
    let waited = marked.and_then(|()| unsafe { hip.hipStreamWaitEvent(meeting, mark, 0) });
    // SAFETY: made above; the wait has what it needs of it.
    let destroyed = unsafe { hip.hipEventDestroy(mark) };
    Ok(waited.and(destroyed)?)
}

/// Makes what some streams of a context do from now on wait for an event.
pub fn wait(context: &'static Context, streams: &[Stream], event: CUevent) -> Result {
    let event = Event::from_handle(event)?;
    context.bind()?;
    for stream in streams {
        // SAFETY: the event is alive, and the stream as long as the program keeps it.
        unsafe { stream.hip().hipStreamWaitEvent(stream.hip.0, event.hip.0, 0) }?;
    }
    Ok(())
}
