//! Graphs that kernels launch: what they may contain, and how what they do gets to the device.
//!
//! HIP differs: its graphs are not launched by kernels. A provider of ours takes a graph's steps by `cudaway_graph`.
//!
//! The plan is run in a stream that keeps what is queued, and what it has kept is uploaded under the handle of the executable graph,
//! which kernels name. A launch by the host stands between a beginning and an end in its stream, so that the provider knows what its
//! kernels are part of.
//! Source: the documentation of `cuGraphInstantiateWithParams`.

use core::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};

use cuda_abi::{
    CUDA_MEMCPY3D, CUcontext, CUdeviceptr, CUgraphExec, CUgraphInstantiateResult, CUgraphNode, CUmemorytype,
    CUstream,
};
use hip_sys::graph as asked;

use super::{Graph, Kernel, Params};
use crate::handle::Handle;
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

/// CUDA: kernels, copies and fills of one context, and child graphs of these; at least one of them.
pub fn check(graph: &Graph) -> core::result::Result<(), Refusal> {
    if !Context::current()?.hip().has_device_graphs() {
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
    let recording = Recording::in_context(stream.context)?;
    run(recording.0)?;
    let kept = Stream::from_handle(recording.0)?;
    // SAFETY: both streams are the provider's.
    Ok(unsafe { stream.hip().graph(asked::UPLOAD, exec.bits(), kept.hip.0, stream.hip.0) }?)
}

/// The executable graph is destroyed.
pub fn forget(exec: CUgraphExec, context: &Context) {
    // SAFETY: no stream is named. What the provider does not know is forgotten.
    let _ = unsafe { context.hip().graph(asked::FORGET, exec.bits(), null_mut(), null_mut()) };
}

/// What comes into the stream until this ends is a launch by the host.
pub struct Launch<'a>(Option<&'a Stream>);

impl Launch<'_> {
    /// `exec`: the graph, where kernels may launch it, too.
    pub fn begin(exec: Option<CUgraphExec>, stream: &Stream) -> Result<Launch<'_>> {
        if !ANY.load(Ordering::Acquire) || !stream.hip().has_device_graphs() {
            return Ok(Launch(None));
        }
        let graph = exec.map_or(0, Handle::bits);
        // SAFETY: the stream is the provider's.
        unsafe { stream.hip().graph(asked::BEGIN, graph, stream.hip.0, null_mut()) }?;
        Ok(Launch(Some(stream)))
    }
}

impl Drop for Launch<'_> {
    fn drop(&mut self) {
        if let Some(stream) = self.0 {
            // SAFETY: as above. A stream that took the beginning takes the end.
            let _ = unsafe { stream.hip().graph(asked::END, 0, stream.hip.0, null_mut()) };
        }
    }
}
