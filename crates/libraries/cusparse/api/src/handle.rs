//! `cusparseHandle_t`: a stream, where scalars lie, and who computes.

use std::sync::Arc;

use kit::{Addresses, Place, Registry};
use once_cell::sync::OnceCell;
use parking_lot::Mutex;

use crate::Result;
use crate::hip::library::Library;
use crate::hip::{HipCall, HipHandle};
use crate::types::*;

#[derive(Clone, Copy)]
struct State {
    stream: cudaStream_t,
    pointers: cusparsePointerMode_t,
}

pub struct Context {
    place: Place,
    state: Mutex<State>,
    /// Made at the first call that hipSPARSE has.
    hip: OnceCell<Arc<HipHandle>>,
}

// SAFETY: streams are the driver's numbers, good on every thread.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Context {
    /// For the calling thread's device.
    pub fn new() -> Result<Context> {
        let place = Place::on_copies(&config::get().sparse)?;
        let state = State {
            stream: cudaStream_t::default(),
            pointers: cusparsePointerMode_t::CUSPARSE_POINTER_MODE_HOST,
        };
        Ok(Context { place, state: Mutex::new(state), hip: OnceCell::new() })
    }

    pub fn stream(&self) -> cudaStream_t {
        self.state.lock().stream
    }

    pub fn set_stream(&self, stream: cudaStream_t) {
        self.state.lock().stream = stream;
    }

    pub fn pointers(&self) -> cusparsePointerMode_t {
        self.state.lock().pointers
    }

    pub fn set_pointers(&self, pointers: cusparsePointerMode_t) {
        self.state.lock().pointers = pointers;
    }

    pub fn on_host(&self) -> bool {
        self.pointers() == cusparsePointerMode_t::CUSPARSE_POINTER_MODE_HOST
    }

    /// hipSPARSE on the handle's stream and in its mode; none on the CPU device, or where our own code computes. `enqueues`: work for the
    /// stream follows.
    pub fn hip(&self, enqueues: bool) -> Result<Option<HipCall>> {
        if !self.place.enter_hip()? {
            return Ok(None);
        }
        let Some(library) = Library::get() else { return Ok(None) };
        let State { stream, pointers } = *self.state.lock();
        let hip = kit::hip::stream(stream, enqueues)?;
        let handle = self.hip.get_or_try_init(|| HipHandle::of(library).map(Arc::new))?;
        handle.tell(hip.stream, pointers)?;
        Ok(Some(HipCall { handle: Arc::clone(handle), stream }))
    }

    /// What computes asks this first.
    pub fn can_compute(&self) -> Result {
        Ok(self.place.can_compute()?)
    }

    /// Runs the work when the stream has come to it.
    pub fn enqueue<A: Addresses + 'static>(&self, at: A, work: impl Fn(A) + Send + Sync + 'static) -> Result {
        Ok(self.place.enqueue(self.stream(), at, work)?)
    }

    /// Waits for the stream and does the work, whose answer the call has to know: it cannot be captured.
    pub fn now<A: Addresses, R>(&self, at: A, work: impl FnOnce(A) -> R) -> Result<R> {
        Ok(self.place.now(self.stream(), at, work)?)
    }

    /// Waits for a result that goes to the host, as a copy to its memory does; in a graph it is there when the graph has run.
    pub fn deliver(&self) -> Result {
        Ok(self.place.deliver(self.stream())?)
    }
}

static CONTEXTS: Registry<Context> = Registry::new();

pub fn add(context: Context) -> cusparseHandle_t {
    CONTEXTS.add(context)
}

/// NVIDIA's library says of a handle that is NULL that it is an invalid value.
pub fn get(handle: cusparseHandle_t) -> Result<Arc<Context>> {
    crate::error::require(!handle.is_null(), "handle is NULL")?;
    Ok(CONTEXTS.get(handle)?)
}

/// What it was asked for is still done.
pub fn remove(handle: cusparseHandle_t) -> Result {
    CONTEXTS.remove(handle)?;
    Ok(())
}
