//! Events. The provider keeps their times and their state.

use core::ffi::c_uint;

use cuda_abi::{CUevent, CUevent_flags};
use hip_sys::{Hip, hipEvent_t};

use super::{Context, Shared};
use crate::handle::{Registry, Shown};
use crate::shown::shown;
use crate::{Error, Result};

static EVENTS: Registry<Event, CUevent, Event> = Registry::new(3);

#[derive(Clone, Copy)]
pub struct Event {
    pub hip: Shared<hipEvent_t>,
    pub context: &'static Context,
    context_id: u64,
    pub flags: c_uint,
}

shown!(Event in Cells {
    hip: Shared<hipEvent_t>,
    context: &'static Context,
    context_id: u64,
    flags: c_uint,
});

impl Shown<Event> for Event {
    fn of(event: &Event) -> Event {
        *event
    }
}

impl Event {
    /// `cuEventCreate` in the current context.
    pub fn create(flags: c_uint) -> Result<CUevent> {
        let context = Context::current()?;
        let known = CUevent_flags::CU_EVENT_BLOCKING_SYNC.0
            | CUevent_flags::CU_EVENT_DISABLE_TIMING.0
            | CUevent_flags::CU_EVENT_INTERPROCESS.0;
        let interprocess = flags & CUevent_flags::CU_EVENT_INTERPROCESS.0 != 0;
        let timed = flags & CUevent_flags::CU_EVENT_DISABLE_TIMING.0 == 0;
        // CUDA: an interprocess event has no timing.
        if flags & !known != 0 || (interprocess && timed) {
            return Err(Error::InvalidValue("Flags"));
        }
        let mut event: hipEvent_t = core::ptr::null_mut();
        // SAFETY: `event` is a writable handle.
        unsafe { context.hip().hipEventCreateWithFlags(&mut event, flags) }?;
        Event::enter(event, context, flags)
    }

    pub fn enter(event: hipEvent_t, context: &'static Context, flags: c_uint) -> Result<CUevent> {
        let entry = Event { hip: Shared(event), context, context_id: context.id(), flags };
        EVENTS.insert(entry).ok_or(Error::OutOfMemory)
    }

    /// The live event, with this thread bound to its device.
    #[inline]
    pub fn from_handle(handle: CUevent) -> Result<Event> {
        crate::process::driver()?;
        let event = EVENTS.peek(handle).ok_or(Error::InvalidHandle("hEvent"))?;
        event.context.bind()?;
        Ok(event)
    }

    pub fn destroy(handle: CUevent) -> Result {
        let event = Event::from_handle(handle)?;
        EVENTS.remove(handle).ok_or(Error::InvalidHandle("hEvent"))?;
        // SAFETY: the handle is out of the registry, so this is the only destroy of it.
        Ok(unsafe { event.hip().hipEventDestroy(event.hip.0) }?)
    }

    #[inline]
    pub fn hip(&self) -> &'static Hip {
        self.context.hip()
    }

    pub fn has_timing(&self) -> bool {
        self.flags & CUevent_flags::CU_EVENT_DISABLE_TIMING.0 == 0
    }
}

/// Destroys every event of a context that ends.
pub fn destroy_all(context_id: u64) {
    for event in EVENTS.remove_where(|event| event.context_id == context_id) {
        // SAFETY: it just left the registry. The context ends whatever HIP says.
        let _ = unsafe { event.hip().hipEventDestroy(event.hip.0) };
    }
}
