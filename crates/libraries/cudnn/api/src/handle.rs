//! `cudnnHandle_t`: a stream, and who computes.

use std::sync::Arc;

use config::LibraryChoice;
use cudnn_cpu::onednn;
use kit::{Place, Registry};
use once_cell::sync::OnceCell;
use parking_lot::Mutex;

use crate::hip::library::Library;
use crate::hip::{HipCall, HipHandle};
use crate::kernels::{self, Kernels};
use crate::types::*;
use crate::{Error, Result};

pub struct Context {
    place: Place,
    stream: Mutex<Stream>,
    /// Made at the first call that MIOpen may have; none where it cannot be.
    hip: OnceCell<Option<Arc<HipHandle>>>,
    kernels: Arc<Kernels>,
}

struct Stream(cudaStream_t);

// SAFETY: streams are the driver's numbers, good on every thread.
unsafe impl Send for Stream {}

impl Context {
    /// For the calling thread's device.
    pub fn new() -> Result<Context> {
        let place = Place::on_copies(&config::get().dnn)?;
        use_onednn();
        let stream = Mutex::new(Stream(cudaStream_t::default()));
        Ok(Context { place, stream, hip: OnceCell::new(), kernels: Arc::default() })
    }

    pub fn stream(&self) -> cudaStream_t {
        self.stream.lock().0
    }

    pub fn set_stream(&self, stream: cudaStream_t) {
        self.stream.lock().0 = stream;
    }

    /// MIOpen on the handle's stream; none on the CPU device, where our own code computes, or where the stream is captured and work for it
    /// follows (`enqueues`).
    pub fn hip(&self, enqueues: bool) -> Result<Option<HipCall>> {
        if !self.place.enter_hip()? {
            return Ok(None);
        }
        let Some(library) = Library::get() else { return Ok(None) };
        let stream = self.stream();
        let hip = match kit::hip::stream(stream, enqueues) {
            // A captured stream: kernels of ours may do the call.
            Err(kit::Error::NotSupported(_)) => return Ok(None),
            answer => answer?,
        };
        let made = self.hip.get_or_init(|| match HipHandle::of(library) {
            Ok(handle) => Some(Arc::new(handle)),
            Err(error) => {
                tracing::warn!(target: "cudaway::dnn", "our own code computes on the host, since MIOpen does not: {error}");
                None
            }
        });
        let Some(handle) = made else { return Ok(None) };
        handle.tell(hip.stream)?;
        Ok(Some(HipCall { handle: Arc::clone(handle), stream }))
    }

    /// Our own kernels on the handle's stream; none on the CPU device, unless they are asked for.
    pub fn kernels(&self) -> Result<Option<kernels::Call>> {
        if !self.place.enter_kernels(&config::get().dnn)? {
            return Ok(None);
        }
        let stream = self.stream();
        if kit::stream::is_capturing(stream)? {
            self.kernels.keep();
        }
        Ok(Some(kernels::Call::new(Arc::clone(&self.kernels), stream)))
    }

    /// Runs the work when the stream has come to it.
    pub fn enqueue(&self, work: impl Fn() + Send + Sync + 'static) -> Result {
        Ok(self.place.enqueue(self.stream(), (), move |()| work())?)
    }

    /// Waits for the stream and does the work, whose answer the call has to know.
    pub fn now<R>(&self, work: impl FnOnce() -> R) -> Result<R> {
        Ok(self.place.now(self.stream(), (), |()| work())?)
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

/// What stands in `CUDAWAY_DNN` for oneDNN wherever the loader finds it.
const ONEDNN: &str = "onednn";

/// The first of `CUDAWAY_DNN`'s paths that is oneDNN computes for the CPU what it has. Others are for the trampolines.
fn use_onednn() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let paths = config::get().dnn.iter().filter_map(LibraryChoice::library);
        let paths = paths.map(|path| path.to_string_lossy().into_owned());
        let named = |path: String| match path.as_str() {
            ONEDNN => onednn::NAMES.map(str::to_owned).to_vec(),
            _ => vec![path],
        };
        for path in paths.flat_map(named) {
            match onednn::open(&path) {
                Ok(found) => {
                    tracing::info!(target: "cudaway::dnn", "{path} computes what it has: {found:?}");
                    return;
                }
                Err(error) => tracing::info!(target: "cudaway::dnn", "{error}"),
            }
        }
    });
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

/// For a call that has a stream and no handle.
pub fn on_stream(stream: cudaStream_t) -> Result<Context> {
    let context = Context::new()?;
    context.place.can_compute()?;
    context.set_stream(stream);
    Ok(context)
}

/// What it was asked for is still done.
pub fn remove(handle: cudnnHandle_t) -> Result {
    CONTEXTS.remove(handle).map_err(|_| Error::NotInitialized)?;
    kernels::kept::free_gone()
}

/// Ends a body's call where MIOpen does it: the block answers whether it has.
macro_rules! on_hip {
    ($context:expr, $hip:ident => $body:expr) => {
        if let Some($hip) = $context.hip(true)?
            && $body?
        {
            return Ok(());
        }
    };
}
pub(crate) use on_hip;

/// The same where our own kernels do it.
macro_rules! on_kernels {
    ($context:expr, $kernels:ident => $body:expr) => {
        if let Some($kernels) = $context.kernels()?
            && $body?
        {
            return Ok(());
        }
    };
}
pub(crate) use on_kernels;

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
