//! Graphs that kernels launch: what they may contain, and how what they do gets to the device.
//!
//! HIP differs: its graphs are not launched by kernels. A provider of ours takes a graph's steps by `cudaway_graph`; what kernels on
//! AMD GPUs launch is run by their own launches (`fired`), and what they change lies in memory that the host reads (`gfx::graphs`).
//!
//! The plan is run in a stream that keeps what is queued, and what it has kept is uploaded under the handle of the executable graph,
//! which kernels name. A launch by the host stands between a beginning and an end in its stream, so that the provider knows what its
//! kernels are part of.
//! Source: the documentation of `cuGraphInstantiateWithParams`.

use core::cell::RefCell;
use core::ffi::{c_int, c_uint};
use core::ptr::null_mut;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use compiler::gcn::children::graphs::{INDEX_SHIFT, MOST, entry};
use cuda_abi::{
    CUDA_MEMCPY3D, CUcontext, CUdeviceptr, CUgraphExec, CUgraphInstantiateResult, CUgraphNode,
    CUlaunchAttribute, CUlaunchAttributeID, CUlaunchAttributeValue, CUmemorytype, CUstream,
};
use hip_sys::graph as asked;
use parking_lot::Mutex;

use super::{Graph, Kernel, Params, fired};
use crate::handle::Handle;
use crate::object::device::Target;
use crate::object::gfx::graphs;
use crate::object::module::Function;
use crate::object::{Context, Stream, memory};
use crate::{Error, Result};

/// `CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH`
pub const LAUNCH: u64 = 4;

/// `CU_STREAM_NON_BLOCKING`
const NON_BLOCKING: u32 = 1;

/// Some graph was instantiated for the device. Before that no kernel can launch one.
static ANY: AtomicBool = AtomicBool::new(false);

/// Why a graph cannot be instantiated for the device, and the node that is in the way.
pub struct Refusal {
    pub result: CUgraphInstantiateResult,
    pub node: CUgraphNode,
    pub error: Error,
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        Refusal { result: CUgraphInstantiateResult::CUDA_GRAPH_INSTANTIATE_ERROR, node: null_mut(), error }
    }
}

impl Refusal {
    fn not_supported(node: CUgraphNode, what: &'static str) -> Refusal {
        let result = CUgraphInstantiateResult::CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED;
        Refusal { result, node, error: Error::NotSupported(what) }
    }
}

/// Kernels of the context have graphs.
fn is_there(context: &Context) -> bool {
    is_gfx(context) || context.hip().has_device_graphs()
}

/// They are the host's.
fn is_gfx(context: &Context) -> bool {
    context.device.target == Target::Amdgcn
}

/// CUDA: kernels, copies and fills of one context, and child graphs of these; at least one of them.
pub fn check(graph: &Graph) -> core::result::Result<(), Refusal> {
    if !is_there(Context::current()?) {
        return Err(Error::NotSupported("graphs launched from the device").into());
    }
    let mut context_id = None;
    check_nodes(graph, &mut context_id)?;
    match context_id {
        Some(_) => {
            ANY.store(true, Ordering::Release);
            Ok(())
        }
        None => Err(Error::InvalidValue("hGraph: a graph for the device does something").into()),
    }
}

fn check_nodes(graph: &Graph, context_id: &mut Option<u64>) -> core::result::Result<(), Refusal> {
    for (_, node) in graph.ordered()? {
        let handle = node.handle.0;
        let id_of = |context: CUcontext| Context::from_handle(context).map(Context::id);
        let own = match &node.op.params {
            Params::Child(child) => {
                check_nodes(&child.0, context_id)?;
                continue;
            }
            Params::Kernel(kernel) => {
                // CUDA: no CUDA Dynamic Parallelism.
                if launches_grids(kernel)? {
                    return Err(Refusal::not_supported(
                        handle,
                        "a kernel of a graph for the device launches grids",
                    ));
                }
                kernel.context_id
            }
            Params::Memcpy { copy, context } => {
                // CUDA: no arrays, and no memory that the device does not see.
                if !sides(copy).iter().all(|&address| is_seen(address)) {
                    return Err(Refusal::not_supported(
                        handle,
                        "a copy of a graph for the device: its memory",
                    ));
                }
                id_of(*context)?
            }
            Params::Memset { fill, context } => {
                if !is_seen(Some(fill.dst)) {
                    return Err(Refusal::not_supported(
                        handle,
                        "a fill of a graph for the device: its memory",
                    ));
                }
                id_of(*context)?
            }
            _ => return Err(Refusal::not_supported(handle, "a node of this type in a graph for the device")),
        };
        if *context_id.get_or_insert(own) != own {
            let result = CUgraphInstantiateResult::CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED;
            let error = Error::NotSupported("a graph for the device in several contexts");
            return Err(Refusal { result, node: handle, error });
        }
    }
    Ok(())
}

fn launches_grids(kernel: &Kernel) -> Result<bool> {
    let handle = if kernel.params.func.is_null() { kernel.params.kern.cast() } else { kernel.params.func };
    Function::from_handle(handle)?.launches_grids()
}

/// Where a copy reads and writes; `None`: an array.
fn sides(copy: &CUDA_MEMCPY3D) -> [Option<CUdeviceptr>; 2] {
    let side = |kind, host: u64, device| match kind {
        CUmemorytype::CU_MEMORYTYPE_HOST => Some(host),
        CUmemorytype::CU_MEMORYTYPE_ARRAY => None,
        _ => Some(device),
    };
    [
        side(copy.srcMemoryType, copy.srcHost.addr() as u64, copy.srcDevice),
        side(copy.dstMemoryType, copy.dstHost.addr() as u64, copy.dstDevice),
    ]
}

/// Whether it is device memory or page-locked host memory.
fn is_seen(address: Option<CUdeviceptr>) -> bool {
    address.is_some_and(|address| memory::find(address).is_some())
}

/// A stream whose work is kept, and not run.
struct Recording(CUstream);

impl Recording {
    fn in_context(context: &'static Context) -> Result<Recording> {
        let null = crate::object::Shared(null_mut());
        let recording = Recording(Stream::create_in(context, NON_BLOCKING, 0, null)?);
        let stream = Stream::from_handle(recording.0)?;
        // SAFETY: the stream is the provider's.
        unsafe { context.hip().graph(asked::RECORD, 0, stream.hip.0, null_mut()) }?;
        Ok(recording)
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        // It is ours alone, and there.
        let _ = Stream::destroy(self.0);
    }
}

/// Brings to the device, at its turn in `stream`, what `run` queues in a stream.
pub fn upload(exec: CUgraphExec, stream: &Stream, run: impl FnOnce(CUstream) -> Result) -> Result {
    if is_gfx(stream.context) {
        return graphs::show_graph(stream.context, exec.bits());
    }
    let recording = Recording::in_context(stream.context)?;
    run(recording.0)?;
    let kept = Stream::from_handle(recording.0)?;
    // SAFETY: both streams are the provider's.
    Ok(unsafe { stream.hip().graph(asked::UPLOAD, exec.bits(), kept.hip.0, stream.hip.0) }?)
}

/// The executable graph is destroyed.
pub fn forget(exec: CUgraphExec, context: &Context) {
    if is_gfx(context) {
        return graphs::hide_graph(context, exec.bits());
    }
    // SAFETY: no stream is named. What the provider does not know is forgotten.
    let _ = unsafe { context.hip().graph(asked::FORGET, exec.bits(), null_mut(), null_mut()) };
}

/// A kernel node that kernels change, by the handle that they have.
pub struct Updatable {
    pub handle: u64,
    context: &'static Context,
    /// What of it the device was told last.
    told: AtomicU64,
    /// As kernels on an AMD GPU have it.
    of_gfx: Option<graphs::Node>,
}

static UPDATABLE: Mutex<BTreeMap<u64, Weak<Updatable>>> = Mutex::new(BTreeMap::new());

/// Which state of a node it is: each that the host makes is another.
pub fn next_version() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Why a node's launch is made.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// It is to run.
    Launch,
    /// It becomes a step of what kernels launch.
    Record,
    /// The device takes its state, and runs nothing.
    Upload,
}

impl Updatable {
    pub fn new(context: &'static Context) -> Result<Arc<Updatable>> {
        if !is_there(context) {
            return Err(Error::NotSupported("device-updatable kernel nodes"));
        }
        let mut known = UPDATABLE.lock();
        // Kernels on an AMD GPU find it by a part of the handle.
        let is_free = |handle: u64| !is_gfx(context) || known.keys().all(|&one| entry(one) != entry(handle));
        let tried = (0..MOST).map(|_| next_version() << INDEX_SHIFT);
        let handle = tried.into_iter().find(|&handle| is_free(handle)).ok_or(Error::OutOfMemory)?;
        let of_gfx = is_gfx(context).then(|| graphs::Node::new(handle, context));
        let made = Arc::new(Updatable { handle, context, told: AtomicU64::new(0), of_gfx });
        known.insert(handle, Arc::downgrade(&made));
        Ok(made)
    }

    /// That of a kernel node's attributes, if it has one.
    pub fn of(attributes: &[CUlaunchAttribute]) -> Result<Option<Arc<Updatable>>> {
        let asked = attributes
            .iter()
            .find_map(|attribute| asked_of(attribute).filter(|(is_asked, _)| *is_asked == 1));
        let Some((_, handle)) = asked else { return Ok(None) };
        let known = UPDATABLE.lock().get(&handle).and_then(Weak::upgrade);
        known.map(Some).ok_or(Error::InvalidValue("deviceUpdatableKernelNode.devNode"))
    }

    /// The attribute that names it.
    pub fn attribute(&self) -> CUlaunchAttribute {
        let mut value = CUlaunchAttributeValue::default();
        value.deviceUpdatableKernelNode.deviceUpdatable = 1;
        value.deviceUpdatableKernelNode.devNode = core::ptr::without_provenance_mut(self.handle as usize);
        CUlaunchAttribute { id: DEVICE_UPDATABLE, pad: [0; 4], value }
    }

    /// Makes the node's launch by `run`. The host's state of that version, if it is new, takes the place of what kernels have set.
    pub fn run(
        self: &Arc<Updatable>,
        version: u64,
        is_enabled: bool,
        turn: Turn,
        run: impl FnOnce() -> Result,
    ) -> Result {
        // A step says nothing of the state, which was uploaded before.
        let is_new = turn != Turn::Record && self.told.swap(version, Ordering::Relaxed) != version;
        if turn == Turn::Upload && !is_new {
            return Ok(());
        }
        if self.of_gfx.is_some() {
            NEXT.set(Some(Use {
                node: Arc::clone(self),
                is_new,
                is_enabled,
                is_upload: turn == Turn::Upload,
            }));
            let answer = run();
            NEXT.set(None);
            if answer.is_err() {
                self.told.store(0, Ordering::Relaxed);
            }
            return answer;
        }
        let flag = |is_set, flag| if is_set { flag } else { 0 };
        let what = asked::NODE
            | flag(is_new, asked::NODE_NEW)
            | flag(!is_enabled, asked::NODE_OFF)
            | flag(turn == Turn::Upload, asked::NODE_UPLOAD);
        let named = self.tell(what);
        let answer = named.and_then(|()| run());
        if answer.is_err() {
            let _ = self.tell(asked::NO_NODE);
            self.told.store(0, Ordering::Relaxed);
        }
        answer
    }

    fn tell(&self, what: c_uint) -> Result {
        // SAFETY: no stream is named.
        Ok(unsafe { self.context.hip().graph(what, self.handle, null_mut(), null_mut()) }?)
    }
}

impl Drop for Updatable {
    fn drop(&mut self) {
        UPDATABLE.lock().remove(&self.handle);
        if self.of_gfx.is_none() {
            // There is nobody to tell of an error.
            let _ = self.tell(asked::FORGET_NODE);
        }
    }
}

thread_local! {
    /// What this thread launches next on an AMD GPU is the node's.
    static NEXT: RefCell<Option<Use>> = const { RefCell::new(None) };
}

/// How a launch on an AMD GPU is that of a node.
pub struct Use {
    node: Arc<Updatable>,
    /// The host's state takes the place of what kernels have set.
    is_new: bool,
    is_enabled: bool,
    /// It is taken, and not run.
    is_upload: bool,
}

impl Use {
    /// Of the launch that this thread is about to make.
    pub fn take() -> Option<Use> {
        NEXT.take()
    }

    /// What is to run in the place of what the host has said, if anything.
    pub fn now(&self, said: graphs::Launch) -> Result<Option<graphs::Launch>> {
        let Some(node) = &self.node.of_gfx else { return Ok(Some(said)) };
        if self.is_new || !node.is_there() {
            node.set(&said, self.is_enabled)?;
        }
        Ok(if self.is_upload { None } else { node.get() })
    }
}

pub const DEVICE_UPDATABLE: CUlaunchAttributeID =
    CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE;

/// What an attribute says of that: whether, as it was written, and the handle.
pub fn asked_of(attribute: &CUlaunchAttribute) -> Option<(c_int, u64)> {
    if attribute.id != DEVICE_UPDATABLE {
        return None;
    }
    // SAFETY: the member that belongs to the id is the one set; both parts are plain numbers.
    let asked = unsafe { attribute.value.deviceUpdatableKernelNode };
    Some((asked.deviceUpdatable, asked.devNode.addr() as u64))
}

/// What comes into the stream until this ends is a launch by the host.
pub struct Launch<'a> {
    stream: Option<&'a Stream>,
    /// On an AMD GPU.
    _host: Option<fired::Host>,
}

impl Launch<'_> {
    /// `exec`: the graph, where kernels may launch it, too.
    pub fn begin(exec: Option<CUgraphExec>, stream: &Stream, handle: CUstream) -> Result<Launch<'_>> {
        let graph = exec.map_or(0, Handle::bits);
        if !ANY.load(Ordering::Acquire) || !is_there(stream.context) {
            return Ok(Launch { stream: None, _host: None });
        }
        if is_gfx(stream.context) {
            let host = fired::Host::begin(graph, handle, stream.context);
            return Ok(Launch { stream: None, _host: Some(host) });
        }
        // SAFETY: the stream is the provider's.
        unsafe { stream.hip().graph(asked::BEGIN, graph, stream.hip.0, null_mut()) }?;
        Ok(Launch { stream: Some(stream), _host: None })
    }
}

impl Drop for Launch<'_> {
    fn drop(&mut self) {
        if let Some(stream) = self.stream {
            // SAFETY: as above. A stream that took the beginning takes the end.
            let _ = unsafe { stream.hip().graph(asked::END, 0, stream.hip.0, null_mut()) };
        }
    }
}
