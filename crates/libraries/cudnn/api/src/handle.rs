//! `cudnnHandle_t`: a stream, and who computes.

use std::sync::Arc;

use kit::{Place, Registry};
use parking_lot::Mutex;

use crate::types::*;
use crate::{Error, Result};

pub struct Context {
    place: Place,
    stream: Mutex<Stream>,
}

struct Stream(cudaStream_t);

// SAFETY: streams are the driver's numbers, good on every thread.
unsafe impl Send for Stream {}

impl Context {
    /// For the calling thread's device.
    pub fn new() -> Result<Context> {
        let place = Place::of_current_device(&config::get().dnn, "cuDNN on AMD GPUs")?;
        Ok(Context { place, stream: Mutex::new(Stream(cudaStream_t::default())) })
    }

    pub fn stream(&self) -> cudaStream_t {
        self.stream.lock().0
    }

    pub fn set_stream(&self, stream: cudaStream_t) {
        self.stream.lock().0 = stream;
    }

    /// Runs the work when the stream has come to it.
    pub fn enqueue(&self, work: impl Fn() + Send + Sync + 'static) -> Result {
        Ok(self.place.enqueue(self.stream(), (), move |()| work())?)
    }

    /// Makes the work a node of the program's graph.
    pub fn add_to_graph(&self, graph: cudaGraph_t, work: impl Fn() + Send + Sync + 'static) -> Result {
        Ok(self.place.add_to_graph(graph, (), move |()| work())?)
    }

    /// Waits for what the stream has to do.
    pub fn synchronize(&self) -> Result {
        Ok(self.place.synchronize(self.stream())?)
    }
}

static CONTEXTS: Registry<Context> = Registry::new();

pub fn add(context: Context) -> cudnnHandle_t {
    CONTEXTS.add(context)
}

/// One that is NULL or was destroyed is not one.
pub fn get(handle: cudnnHandle_t) -> Result<Arc<Context>> {
    CONTEXTS.get(handle).map_err(|_| Error::BadParam("the handle is not one that was created"))
}

/// For a call that computes.
pub fn computing(handle: cudnnHandle_t) -> Result<Arc<Context>> {
    let context = get(handle)?;
    context.place.can_compute()?;
    Ok(context)
}

/// What it was asked for is still done.
pub fn remove(handle: cudnnHandle_t) -> Result {
    CONTEXTS.remove(handle).map_err(|_| Error::NotInitialized)?;
    Ok(())
}

/// Enqueues the block with the named type being `f64` where the condition holds, else `f32`.
macro_rules! compute {
    ($context:expr, $is_double:expr, $value:ident => $body:block) => {{
        let is_double: bool = $is_double;
        $context.enqueue(move || {
            if is_double {
                type $value = f64;
                $body
            } else {
                type $value = f32;
                $body
            }
        })
    }};
}
pub(crate) use compute;
