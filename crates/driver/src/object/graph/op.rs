//! What a node does: its parameters as CUDA's structures have them, and the call that does it.

use core::ffi::c_void;
use std::sync::Arc;

use cuda_abi::{
    CUDA_BATCH_MEM_OP_NODE_PARAMS_v2, CUDA_CHILD_GRAPH_NODE_PARAMS, CUDA_EVENT_WAIT_NODE_PARAMS,
    CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS, CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS, CUDA_HOST_NODE_PARAMS,
    CUDA_KERNEL_NODE_PARAMS, CUDA_MEM_FREE_NODE_PARAMS, CUDA_MEMCPY_BATCH_NODE_PARAMS,
    CUDA_MEMCPY_NODE_PARAMS, CUDA_MEMCPY3D, CUDA_MEMSET_NODE_PARAMS, CUDA_MEMSET_NODE_PARAMS_v2, CUcontext,
    CUdeviceptr, CUevent, CUexternalSemaphore, CUgraphChildGraphNodeOwnership, CUgraphNodeParams,
    CUgraphNodeType, CUlaunchAttribute, CUlaunchAttributeID, CUmemcpyAttributes, CUmemorytype, CUstream,
    CUstreamBatchMemOpParams,
};

use super::allocation::Block;
use super::condition::Conditional;
use super::device::Updatable;
use super::{Child, Graph};
use crate::object::module::Function;
use crate::object::{Context, memory};
use crate::{Error, Result};

/// A kernel's arguments, kept: each at its place in a buffer of ours.
pub struct Arguments {
    /// Words, so that every argument is aligned.
    pub buffer: Vec<u128>,
    pub pointers: Vec<*mut c_void>,
}

// SAFETY: the pointers lead into the buffer, which nobody writes.
unsafe impl Send for Arguments {}
// SAFETY: as above.
unsafe impl Sync for Arguments {}

/// A kernel node: the structure's pointers lead into `arguments`.
pub struct Kernel {
    pub params: CUDA_KERNEL_NODE_PARAMS,
    pub attributes: Vec<CUlaunchAttribute>,
    pub arguments: Arc<Arguments>,
    /// Of the function.
    pub context_id: u64,
    pub is_cooperative: bool,
    pub name: String,
    /// What kernels know it by, where they may change it.
    pub updatable: Option<Arc<Updatable>>,
}

impl Kernel {
    pub fn attribute(&self, id: CUlaunchAttributeID) -> Option<&CUlaunchAttribute> {
        self.attributes.iter().find(|attribute| attribute.id == id)
    }

    /// Has the device get its code ready, if the device makes code.
    pub fn prepare(&self) {
        let CUDA_KERNEL_NODE_PARAMS { func, kern, blockDimX, blockDimY, blockDimZ, .. } = self.params;
        // CUDA: a node names a function or a kernel.
        let handle = if func.is_null() { kern.cast() } else { func };
        if Context::current().ok().is_none_or(|context| context.id() != self.context_id) {
            return;
        }
        let Ok(function) = Function::launchable(handle) else { return };
        let asked =
            self.attribute(CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION).map(|attribute| {
                // SAFETY: the member that belongs to the id is the one set.
                let size = unsafe { attribute.value.clusterDim };
                [size.x, size.y, size.z]
            });
        let cluster = asked.filter(|size| *size != [0; 3]).or(function.cluster());
        let is_clustered = cluster.is_some_and(|size| size != [1; 3]);
        let block = [blockDimX, blockDimY, blockDimZ];
        // SAFETY: the function is alive; of one that is unloaded meanwhile the handle is no longer known.
        unsafe { function.context.hip().prepare(function.hip.0, block, is_clustered) };
    }
}

/// Copies without an order among each other. A copy of no bytes is none.
pub struct Batch {
    pub targets: Vec<CUdeviceptr>,
    pub sources: Vec<CUdeviceptr>,
    pub sizes: Vec<usize>,
    pub attributes: Vec<CUmemcpyAttributes>,
    /// The first copy that each entry of `attributes` is for.
    pub firsts: Vec<usize>,
    pub context: CUcontext,
}

/// The parameters of a node, by its type.
pub enum Params {
    Kernel(Kernel),
    Memcpy { copy: CUDA_MEMCPY3D, context: CUcontext },
    MemcpyBatch(Batch),
    Memset { fill: CUDA_MEMSET_NODE_PARAMS, context: CUcontext },
    Host(CUDA_HOST_NODE_PARAMS),
    Child(Child),
    Empty,
    WaitEvent(CUevent),
    EventRecord(CUevent),
    Alloc(Arc<Block>),
    Free(Arc<Block>),
    BatchMemOp { context: CUcontext, operations: Vec<CUstreamBatchMemOpParams>, flags: u32 },
    Conditional(Conditional),
    Signal { semaphores: Vec<CUexternalSemaphore>, params: Vec<CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS> },
    Wait { semaphores: Vec<CUexternalSemaphore>, params: Vec<CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS> },
}

// SAFETY: handles are numbers, and addresses are the program's, which promised that they hold until the node has run.
unsafe impl Send for Params {}
// SAFETY: as above; nothing here is written after it was made.
unsafe impl Sync for Params {}

/// A node's work, without its stream.
pub struct Op {
    pub params: Params,
    run: Run,
}

type Run = Box<dyn Fn(&Params, CUstream) -> Result + Send + Sync>;

impl Op {
    pub fn new(params: Params, run: impl Fn(&Params, CUstream) -> Result + Send + Sync + 'static) -> Arc<Op> {
        Arc::new(Op { params, run: Box::new(run) })
    }

    /// A node whose work is none, or is known to who runs the graph.
    pub fn structural(params: Params) -> Arc<Op> {
        Op::new(params, |_, _| Ok(()))
    }

    pub fn kind(&self) -> CUgraphNodeType {
        self.params.kind()
    }

    pub fn run(&self, stream: CUstream) -> Result {
        (self.run)(&self.params, stream)
    }
}

impl Params {
    pub fn kind(&self) -> CUgraphNodeType {
        match self {
            Params::Kernel(_) => CUgraphNodeType::CU_GRAPH_NODE_TYPE_KERNEL,
            Params::Memcpy { .. } => CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMCPY,
            Params::MemcpyBatch(_) => CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMCPY_BATCH,
            Params::Memset { .. } => CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMSET,
            Params::Host(_) => CUgraphNodeType::CU_GRAPH_NODE_TYPE_HOST,
            Params::Child(_) => CUgraphNodeType::CU_GRAPH_NODE_TYPE_GRAPH,
            Params::Empty => CUgraphNodeType::CU_GRAPH_NODE_TYPE_EMPTY,
            Params::WaitEvent(_) => CUgraphNodeType::CU_GRAPH_NODE_TYPE_WAIT_EVENT,
            Params::EventRecord(_) => CUgraphNodeType::CU_GRAPH_NODE_TYPE_EVENT_RECORD,
            Params::Alloc(_) => CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEM_ALLOC,
            Params::Free(_) => CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEM_FREE,
            Params::BatchMemOp { .. } => CUgraphNodeType::CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
            Params::Conditional(_) => CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL,
            Params::Signal { .. } => CUgraphNodeType::CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL,
            Params::Wait { .. } => CUgraphNodeType::CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT,
        }
    }

    /// Of a kernel node that kernels may change.
    pub fn updatable(&self) -> Option<&Arc<Updatable>> {
        match self {
            Params::Kernel(kernel) => kernel.updatable.as_ref(),
            _ => None,
        }
    }

    /// The graph inside a child node.
    pub fn child(&self) -> Option<&Arc<Graph>> {
        match self {
            Params::Child(child) => Some(&child.0),
            _ => None,
        }
    }

    /// As `cuGraphNodeGetParams` gives them. Pointers lead to what the node keeps.
    pub fn describe(&self) -> CUgraphNodeParams {
        let mut node = CUgraphNodeParams { type_: self.kind(), ..Default::default() };
        let body = &mut node.__bindgen_anon_1;
        match self {
            Params::Kernel(kernel) => body.kernel = (&kernel.params).into(),
            Params::Memcpy { copy, context } => {
                body.memcpy =
                    CUDA_MEMCPY_NODE_PARAMS { flags: 0, reserved: 0, copyCtx: *context, copyParams: *copy };
            }
            Params::MemcpyBatch(batch) => body.memcpyBatch = batch.describe(),
            Params::Memset { fill, context } => {
                let CUDA_MEMSET_NODE_PARAMS { dst, pitch, value, elementSize, width, height } = *fill;
                let ctx = *context;
                body.memset =
                    CUDA_MEMSET_NODE_PARAMS_v2 { dst, pitch, value, elementSize, width, height, ctx };
            }
            Params::Host(host) => {
                body.host.fn_ = host.fn_;
                body.host.userData = host.userData;
            }
            Params::Child(child) => {
                let ownership = CUgraphChildGraphNodeOwnership::CU_GRAPH_CHILD_GRAPH_OWNERSHIP_INVALID;
                body.graph = CUDA_CHILD_GRAPH_NODE_PARAMS { graph: child.0.handle.0, ownership };
            }
            Params::Empty => {}
            Params::WaitEvent(event) => body.eventWait = CUDA_EVENT_WAIT_NODE_PARAMS { event: *event },
            Params::EventRecord(event) => body.eventRecord.event = *event,
            Params::Alloc(block) => body.alloc = block.describe(),
            Params::Free(block) => body.free = CUDA_MEM_FREE_NODE_PARAMS { dptr: block.address },
            Params::BatchMemOp { context, operations, flags } => {
                body.memOp = CUDA_BATCH_MEM_OP_NODE_PARAMS_v2 {
                    ctx: *context,
                    count: u32::try_from(operations.len()).unwrap_or(u32::MAX),
                    paramArray: operations.as_ptr().cast_mut(),
                    flags: *flags,
                };
            }
            Params::Conditional(conditional) => body.conditional = conditional.describe(),
            Params::Signal { semaphores, params } => {
                body.extSemSignal.extSemArray = semaphores.as_ptr().cast_mut();
                body.extSemSignal.paramsArray = params.as_ptr();
                body.extSemSignal.numExtSems = u32::try_from(params.len()).unwrap_or(u32::MAX);
            }
            Params::Wait { semaphores, params } => {
                body.extSemWait.extSemArray = semaphores.as_ptr().cast_mut();
                body.extSemWait.paramsArray = params.as_ptr();
                body.extSemWait.numExtSems = u32::try_from(params.len()).unwrap_or(u32::MAX);
            }
        }
        node
    }

    /// Whether both say the same, arguments of kernels included.
    pub fn is_same(&self, other: &Params) -> bool {
        match (self, other) {
            (Params::Kernel(a), Params::Kernel(b)) => {
                let attribute = |at: &CUlaunchAttribute| (at.id, value_bytes(at));
                launched(&a.params) == launched(&b.params)
                    && a.arguments.buffer == b.arguments.buffer
                    && a.attributes.iter().map(attribute).eq(b.attributes.iter().map(attribute))
            }
            (Params::Memcpy { copy: a, .. }, Params::Memcpy { copy: b, .. }) => sides(a) == sides(b),
            (Params::MemcpyBatch(a), Params::MemcpyBatch(b)) => {
                a.targets == b.targets && a.sources == b.sources && a.sizes == b.sizes
            }
            (Params::Memset { fill: a, .. }, Params::Memset { fill: b, .. }) => {
                let row = |f: &CUDA_MEMSET_NODE_PARAMS| (f.dst, f.value, f.elementSize, f.width, f.height);
                row(a) == row(b) && (a.height <= 1 || a.pitch == b.pitch)
            }
            (Params::Host(a), Params::Host(b)) => {
                a.fn_.map(|f| f as usize) == b.fn_.map(|f| f as usize) && a.userData == b.userData
            }
            (Params::WaitEvent(a), Params::WaitEvent(b))
            | (Params::EventRecord(a), Params::EventRecord(b)) => a == b,
            (Params::Free(a), Params::Free(b)) => a.address == b.address,
            (Params::Alloc(a), Params::Alloc(b)) => a.len_bytes == b.len_bytes,
            (Params::BatchMemOp { operations: a, .. }, Params::BatchMemOp { operations: b, .. }) => {
                // SAFETY: the padding member spans the whole union.
                let bytes = |op: &CUstreamBatchMemOpParams| unsafe { op.pad };
                a.iter().map(bytes).eq(b.iter().map(bytes))
            }
            (Params::Empty, Params::Empty) => true,
            (Params::Child(a), Params::Child(b)) => a.0.is_same(&b.0),
            _ => false,
        }
    }

    /// Whether an instantiated node may become `new`. `is_whole` is an update of the whole graph, which allows more.
    pub fn check_update(&self, new: &Params, is_whole: bool) -> Result {
        match (self, new) {
            // CUDA: the function may change, its context and whether the launch is cooperative may not.
            (Params::Kernel(old), Params::Kernel(new)) => {
                if old.context_id != new.context_id {
                    return Err(Error::InvalidValue("nodeParams.func: of another context"));
                }
                if old.is_cooperative != new.is_cooperative {
                    return Err(Error::InvalidValue("cooperative"));
                }
                Ok(())
            }
            // CUDA: the kind of memory stays; a single node's copy stays 1-dimensional.
            (Params::Memcpy { copy: old, .. }, Params::Memcpy { copy: new, .. }) => {
                let is_flat = |copy: &CUDA_MEMCPY3D| copy.Height <= 1 && copy.Depth <= 1;
                if places(old) != places(new) {
                    return Err(Error::InvalidValue("copyParams: another kind of memory"));
                }
                let can_change = is_whole || (is_flat(old) && is_flat(new));
                if !can_change {
                    return Err(Error::InvalidValue("copyParams: of more than one dimension"));
                }
                Ok(())
            }
            // CUDA: addresses and sizes change, the number of copies and their attributes do not.
            (Params::MemcpyBatch(old), Params::MemcpyBatch(new)) => {
                let order = |batch: &Batch| {
                    batch.attributes.iter().map(|entry| entry.srcAccessOrder).collect::<Vec<_>>()
                };
                let is_same = old.sizes.len() == new.sizes.len()
                    && old.firsts == new.firsts
                    && order(old) == order(new)
                    && old.context == new.context;
                if is_same { Ok(()) } else { Err(Error::InvalidValue("nodeParams.memcpyBatch")) }
            }
            // CUDA: of a two-dimensional fill only the address and the value change, and no fill gets or loses rows.
            (Params::Memset { fill: old, .. }, Params::Memset { fill: new, .. }) => {
                let shape =
                    |fill: &CUDA_MEMSET_NODE_PARAMS| (fill.width, fill.height, fill.elementSize, fill.pitch);
                let is_empty = new.width == 0 || new.height == 0;
                if is_empty || old.height != new.height || (old.height > 1 && shape(old) != shape(new)) {
                    return Err(Error::InvalidValue("memsetParams"));
                }
                Ok(())
            }
            (
                Params::BatchMemOp { operations: old, context: a, flags },
                Params::BatchMemOp { operations: new, context: b, flags: new_flags },
            ) => {
                // CUDA: neither the count nor the context nor the flags change.
                if old.len() == new.len() && a == b && flags == new_flags {
                    Ok(())
                } else {
                    Err(Error::InvalidValue("nodeParams"))
                }
            }
            // CUDA: the number of semaphores stays.
            (Params::Signal { semaphores: old, .. }, Params::Signal { semaphores: new, .. })
            | (Params::Wait { semaphores: old, .. }, Params::Wait { semaphores: new, .. }) => {
                if old.len() == new.len() { Ok(()) } else { Err(Error::InvalidValue("numExtSems")) }
            }
            // CUDA: memory nodes and conditional nodes keep what they were made with.
            (Params::Alloc(old), Params::Alloc(new)) if is_whole && Arc::ptr_eq(old, new) => Ok(()),
            (Params::Free(old), Params::Free(new)) if is_whole && old.address == new.address => Ok(()),
            (
                Params::Alloc(_) | Params::Free(_) | Params::Conditional(_),
                Params::Alloc(_) | Params::Free(_) | Params::Conditional(_),
            ) => Err(Error::InvalidValue("hNode: its parameters cannot change")),
            _ => Ok(()),
        }
    }
}

impl Batch {
    fn describe(&self) -> CUDA_MEMCPY_BATCH_NODE_PARAMS {
        let mut params = CUDA_MEMCPY_BATCH_NODE_PARAMS {
            count: self.sizes.len(),
            dsts: self.targets.as_ptr().cast_mut(),
            srcs: self.sources.as_ptr().cast_mut(),
            sizes: self.sizes.as_ptr().cast_mut(),
            attrs: self.attributes.as_ptr().cast_mut(),
            attrsIdxs: self.firsts.as_ptr().cast_mut(),
            numAttrs: self.firsts.len(),
            ..Default::default()
        };
        params.__bindgen_anon_1.ctx = self.context;
        params
    }
}

/// A kernel node without its arguments.
fn launched(params: &CUDA_KERNEL_NODE_PARAMS) -> ([usize; 2], [u32; 7]) {
    let handles = [params.func.addr(), params.kern.addr()];
    let CUDA_KERNEL_NODE_PARAMS { gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, .. } =
        *params;
    (handles, [gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, params.sharedMemBytes])
}

fn value_bytes(attribute: &CUlaunchAttribute) -> [core::ffi::c_char; 64] {
    // SAFETY: the padding member spans the whole union.
    unsafe { attribute.value.pad }
}

/// A copy's numbers, those of the memory types that are not used left out.
fn sides(copy: &CUDA_MEMCPY3D) -> [usize; 17] {
    let base = |kind, host: usize, device: u64, array: usize| match kind {
        CUmemorytype::CU_MEMORYTYPE_HOST => host,
        CUmemorytype::CU_MEMORYTYPE_ARRAY => array,
        _ => device as usize,
    };
    [
        copy.srcMemoryType.0 as usize,
        base(copy.srcMemoryType, copy.srcHost.addr(), copy.srcDevice, copy.srcArray.addr()),
        copy.srcXInBytes,
        copy.srcY,
        copy.srcZ,
        copy.srcPitch,
        copy.srcHeight,
        copy.dstMemoryType.0 as usize,
        base(copy.dstMemoryType, copy.dstHost.addr(), copy.dstDevice, copy.dstArray.addr()),
        copy.dstXInBytes,
        copy.dstY,
        copy.dstZ,
        copy.dstPitch,
        copy.dstHeight,
        copy.WidthInBytes,
        copy.Height,
        copy.Depth,
    ]
}

/// Where a side of a copy lies.
#[derive(PartialEq, Eq)]
enum Place {
    Host,
    Device,
    Array,
}

/// Source and target: a unified address is the device's if CUDA knows it.
fn places(copy: &CUDA_MEMCPY3D) -> (Place, Place) {
    let place = |kind, device| match kind {
        CUmemorytype::CU_MEMORYTYPE_ARRAY => Place::Array,
        CUmemorytype::CU_MEMORYTYPE_DEVICE => Place::Device,
        CUmemorytype::CU_MEMORYTYPE_UNIFIED if memory::find(device).is_some_and(|at| !at.is_host()) => {
            Place::Device
        }
        _ => Place::Host,
    };
    (place(copy.srcMemoryType, copy.srcDevice), place(copy.dstMemoryType, copy.dstDevice))
}
