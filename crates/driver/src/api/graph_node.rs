//! Graph Management: nodes of each type, made, read and changed. What an instantiated graph has is in `graph_exec`.

use std::sync::Arc;

use border::Out;
use cuda_abi::{
    CUDA_BATCH_MEM_OP_NODE_PARAMS, CUDA_BATCH_MEM_OP_NODE_PARAMS_v2, CUDA_CONDITIONAL_NODE_PARAMS,
    CUDA_HOST_NODE_PARAMS, CUDA_KERNEL_NODE_PARAMS, CUDA_KERNEL_NODE_PARAMS_v1, CUDA_MEM_ALLOC_NODE_PARAMS,
    CUDA_MEM_ALLOC_NODE_PARAMS_v2, CUDA_MEMCPY3D, CUDA_MEMSET_NODE_PARAMS, CUDA_MEMSET_NODE_PARAMS_v2,
    CUcontext, CUdeviceptr, CUevent, CUgraph, CUgraphChildGraphNodeOwnership, CUgraphEdgeData, CUgraphNode,
    CUgraphNodeParams, CUgraphNodeType, CUkernelNodeAttrID, CUkernelNodeAttrValue, CUlaunchAttribute,
};

use super::event::record_op;
use super::graph::dependencies_of;
use super::graph_semaphore::{signal_op, wait_op as semaphores_op};
use super::stream::{batch, mem_op, wait_op};
use super::{batch_copy, copy, execution, host_function, memset, pool};
use crate::object::graph::condition::{check_size, context_of};
use crate::object::graph::device::{self, Updatable};
use crate::object::graph::{Block, Child, Conditional, Graph, Kernel, Op, Params, Role, Site};
use crate::object::{self, Context};
use crate::{Error, Result};

/// Enters a node behind its dependencies.
///
/// # Safety
/// `dependencies` is NULL, or has `n_dependencies` elements.
pub(crate) unsafe fn add(
    node: Out<'_, CUgraphNode>,
    graph: CUgraph,
    dependencies: *const CUgraphNode,
    n_dependencies: usize,
    op: impl FnOnce(&Site) -> Result<Arc<Op>>,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { add_with(node, graph, dependencies, core::ptr::null(), n_dependencies, op) }
}

/// # Safety
/// `dependencies` and `data` are NULL, or have `n_dependencies` elements.
unsafe fn add_with(
    node: Out<'_, CUgraphNode>,
    graph: CUgraph,
    dependencies: *const CUgraphNode,
    data: *const CUgraphEdgeData,
    n_dependencies: usize,
    op: impl FnOnce(&Site) -> Result<Arc<Op>>,
) -> Result {
    let graph = Graph::from_handle(graph)?;
    // SAFETY: the caller's promise.
    let dependencies = unsafe { dependencies_of(dependencies, data, n_dependencies) }?;
    let places = dependencies.iter().map(|&(node, edge)| Ok((graph.place(node)?, edge)));
    let places = places.collect::<Result<Vec<_>>>()?;
    let op = op(&Site { graph: &graph, dependencies: &places, known: None })?;
    node.write(graph.add(op, places)?);
    Ok(())
}

/// Replaces a node's parameters; only the type stays.
pub(crate) fn set(node: CUgraphNode, op: Arc<Op>) -> Result {
    let (graph, place) = Graph::of_node(node)?;
    graph.set(place, op)
}

const OTHER_TYPE: Error = Error::InvalidValue("hNode: of another type");

/// The context that a node names, or the current one; what the node names is looked up in it.
pub(crate) fn named(ctx: CUcontext) -> Result<CUcontext> {
    let context = context_of(ctx)?;
    context.bind()?;
    Ok(context.handle())
}

pub(crate) fn kernel_op(
    params: &CUDA_KERNEL_NODE_PARAMS,
    attributes: Vec<CUlaunchAttribute>,
) -> Result<Arc<Op>> {
    // CUDA: the context matters for a CUkernel only; a function has its own.
    if !params.func.is_null() || params.ctx.is_null() || params.ctx == Context::current()?.handle() {
        return execution::node_op(params, attributes);
    }
    let context = Context::from_handle(params.ctx)?;
    let func = object::Kernel::from_handle(params.kern)?.function(context)?;
    execution::node_op(&CUDA_KERNEL_NODE_PARAMS { func, ..*params }, attributes)
}

pub(crate) fn memcpy_op(copy: &CUDA_MEMCPY3D, ctx: CUcontext) -> Result<Arc<Op>> {
    copy::node_op(copy, named(ctx)?)
}

pub(crate) fn memset_op(fill: &CUDA_MEMSET_NODE_PARAMS, ctx: CUcontext) -> Result<Arc<Op>> {
    memset::node_op(fill, named(ctx)?)
}

pub(crate) fn batch_op(params: &CUDA_BATCH_MEM_OP_NODE_PARAMS) -> Result<Arc<Op>> {
    // SAFETY: CUDA's contract for the structure: `count` entries.
    mem_op(unsafe { batch(params.paramArray, params.count) }?, context_of(params.ctx)?, params.flags)
}

/// CUDA: a child has no conditional nodes, and memory nodes only if it is moved.
fn child_op(graph: CUgraph, parent: &Graph, is_moved: bool) -> Result<Arc<Op>> {
    let graph = Graph::from_handle(graph)?;
    if core::ptr::eq(&*graph, parent) || graph.has_conditions() {
        return Err(Error::InvalidValue("childGraph"));
    }
    let child = if is_moved { graph.give_away()? } else { Child(graph.duplicate(Role::Child)?) };
    Ok(Op::structural(Params::Child(child)))
}

fn alloc_op(params: &mut CUDA_MEM_ALLOC_NODE_PARAMS, site: &Site) -> Result<Arc<Op>> {
    let block = Block::make(params, site)?;
    params.dptr = block.address;
    Ok(pool::alloc_op(block))
}

/// The bodies are made with the node; their handles are its own array.
fn conditional_op(params: &mut CUDA_CONDITIONAL_NODE_PARAMS) -> Result<Arc<Op>> {
    let condition = Graph::condition(params.handle)?;
    // CUDA: node and handle belong to one context.
    if !core::ptr::eq(context_of(params.ctx)?, condition.context) {
        return Err(Error::InvalidValue("conditional.ctx"));
    }
    check_size(params.type_, params.size)?;
    condition.claim()?;
    let bodies = (0..params.size).map(|_| Graph::make(Role::Body).map(Child)).collect::<Result<Vec<_>>>()?;
    let conditional = Conditional::new(condition, params.type_, bodies);
    params.phGraph_out = conditional.describe().phGraph_out;
    Ok(Op::structural(Params::Conditional(conditional)))
}

/// # Safety
/// `dependencies` is NULL, or has `numDependencies` elements.
pub unsafe fn cuGraphAddKernelNode_v2(
    phGraphNode: Out<'_, CUgraphNode>,
    hGraph: CUgraph,
    dependencies: *const CUgraphNode,
    numDependencies: usize,
    nodeParams: &CUDA_KERNEL_NODE_PARAMS,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { add(phGraphNode, hGraph, dependencies, numDependencies, |_| kernel_op(nodeParams, vec![])) }
}

/// # Safety
/// `dependencies` is NULL, or has `numDependencies` elements.
pub unsafe fn cuGraphAddKernelNode(
    phGraphNode: Out<'_, CUgraphNode>,
    hGraph: CUgraph,
    dependencies: *const CUgraphNode,
    numDependencies: usize,
    nodeParams: &CUDA_KERNEL_NODE_PARAMS_v1,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { cuGraphAddKernelNode_v2(phGraphNode, hGraph, dependencies, numDependencies, &nodeParams.into()) }
}

/// # Safety
/// `dependencies` is NULL, or has `numDependencies` elements.
pub unsafe fn cuGraphAddMemcpyNode(
    phGraphNode: Out<'_, CUgraphNode>,
    hGraph: CUgraph,
    dependencies: *const CUgraphNode,
    numDependencies: usize,
    copyParams: &CUDA_MEMCPY3D,
    ctx: CUcontext,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { add(phGraphNode, hGraph, dependencies, numDependencies, |_| memcpy_op(copyParams, ctx)) }
}

/// # Safety
/// `dependencies` is NULL, or has `numDependencies` elements.
pub unsafe fn cuGraphAddMemsetNode(
    phGraphNode: Out<'_, CUgraphNode>,
    hGraph: CUgraph,
    dependencies: *const CUgraphNode,
    numDependencies: usize,
    memsetParams: &CUDA_MEMSET_NODE_PARAMS,
    ctx: CUcontext,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { add(phGraphNode, hGraph, dependencies, numDependencies, |_| memset_op(memsetParams, ctx)) }
}

/// # Safety
/// `dependencies` is NULL, or has `numDependencies` elements.
pub unsafe fn cuGraphAddHostNode(
    phGraphNode: Out<'_, CUgraphNode>,
    hGraph: CUgraph,
    dependencies: *const CUgraphNode,
    numDependencies: usize,
    nodeParams: &CUDA_HOST_NODE_PARAMS,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe {
        add(phGraphNode, hGraph, dependencies, numDependencies, |_| host_function::host_op(*nodeParams))
    }
}

/// # Safety
/// `dependencies` is NULL, or has `numDependencies` elements.
pub unsafe fn cuGraphAddEmptyNode(
    phGraphNode: Out<'_, CUgraphNode>,
    hGraph: CUgraph,
    dependencies: *const CUgraphNode,
    numDependencies: usize,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { add(phGraphNode, hGraph, dependencies, numDependencies, |_| Ok(Op::structural(Params::Empty))) }
}

/// The child's nodes as they are now, in a graph of the node's own.
///
/// # Safety
/// `dependencies` is NULL, or has `numDependencies` elements.
pub unsafe fn cuGraphAddChildGraphNode(
    phGraphNode: Out<'_, CUgraphNode>,
    hGraph: CUgraph,
    dependencies: *const CUgraphNode,
    numDependencies: usize,
    childGraph: CUgraph,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe {
        add(phGraphNode, hGraph, dependencies, numDependencies, |site| {
            child_op(childGraph, site.graph, false)
        })
    }
}

/// # Safety
/// `dependencies` is NULL, or has `numDependencies` elements.
pub unsafe fn cuGraphAddEventRecordNode(
    phGraphNode: Out<'_, CUgraphNode>,
    hGraph: CUgraph,
    dependencies: *const CUgraphNode,
    numDependencies: usize,
    event: CUevent,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { add(phGraphNode, hGraph, dependencies, numDependencies, |_| record_op(event)) }
}

/// # Safety
/// `dependencies` is NULL, or has `numDependencies` elements.
pub unsafe fn cuGraphAddEventWaitNode(
    phGraphNode: Out<'_, CUgraphNode>,
    hGraph: CUgraph,
    dependencies: *const CUgraphNode,
    numDependencies: usize,
    event: CUevent,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { add(phGraphNode, hGraph, dependencies, numDependencies, |_| wait_op(event)) }
}

/// # Safety
/// `dependencies` is NULL, or has `numDependencies` elements.
pub unsafe fn cuGraphAddBatchMemOpNode(
    phGraphNode: Out<'_, CUgraphNode>,
    hGraph: CUgraph,
    dependencies: *const CUgraphNode,
    numDependencies: usize,
    nodeParams: &CUDA_BATCH_MEM_OP_NODE_PARAMS,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { add(phGraphNode, hGraph, dependencies, numDependencies, |_| batch_op(nodeParams)) }
}

/// The address is known, and stays, from here on.
///
/// # Safety
/// `nodeParams` is NULL, or a structure that may be read and written; `dependencies` is NULL, or has `numDependencies` elements.
pub unsafe fn cuGraphAddMemAllocNode(
    phGraphNode: Out<'_, CUgraphNode>,
    hGraph: CUgraph,
    dependencies: *const CUgraphNode,
    numDependencies: usize,
    nodeParams: *mut CUDA_MEM_ALLOC_NODE_PARAMS,
) -> Result {
    // SAFETY: the caller's promise: NULL or a structure to read and write.
    let params = unsafe { nodeParams.as_mut() }.ok_or(Error::InvalidValue("nodeParams"))?;
    // SAFETY: the caller's promise.
    unsafe { add(phGraphNode, hGraph, dependencies, numDependencies, |site| alloc_op(params, site)) }
}

/// # Safety
/// `dependencies` is NULL, or has `numDependencies` elements.
pub unsafe fn cuGraphAddMemFreeNode(
    phGraphNode: Out<'_, CUgraphNode>,
    hGraph: CUgraph,
    dependencies: *const CUgraphNode,
    numDependencies: usize,
    dptr: CUdeviceptr,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe {
        add(phGraphNode, hGraph, dependencies, numDependencies, |site| pool::free_op(dptr, site.graph.id))
    }
}

/// # Safety
/// As [`cuGraphAddNode_v2`].
pub unsafe fn cuGraphAddNode(
    phGraphNode: Out<'_, CUgraphNode>,
    hGraph: CUgraph,
    dependencies: *const CUgraphNode,
    numDependencies: usize,
    nodeParams: *mut CUgraphNodeParams,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe {
        cuGraphAddNode_v2(phGraphNode, hGraph, dependencies, core::ptr::null(), numDependencies, nodeParams)
    }
}

/// # Safety
/// `nodeParams` is NULL, or a structure that may be read and written, with the member of its type; `dependencies` and
/// `dependencyData` are NULL, or have `numDependencies` elements.
pub unsafe fn cuGraphAddNode_v2(
    phGraphNode: Out<'_, CUgraphNode>,
    hGraph: CUgraph,
    dependencies: *const CUgraphNode,
    dependencyData: *const CUgraphEdgeData,
    numDependencies: usize,
    nodeParams: *mut CUgraphNodeParams,
) -> Result {
    // SAFETY: the caller's promise: NULL or a structure to read and write.
    let params = unsafe { nodeParams.as_mut() }.ok_or(Error::InvalidValue("nodeParams"))?;
    // SAFETY: the caller's promise.
    unsafe {
        add_with(phGraphNode, hGraph, dependencies, dependencyData, numDependencies, |site| {
            make(params, site)
        })
    }
}

/// Since 13.4: the same node types, with contexts of their own where they had none before. There is one context to choose.
///
/// # Safety
/// As [`cuGraphAddNode_v2`].
pub unsafe fn cuGraphAddNode_v3(
    phGraphNode: Out<'_, CUgraphNode>,
    hGraph: CUgraph,
    dependencies: *const CUgraphNode,
    dependencyData: *const CUgraphEdgeData,
    numDependencies: usize,
    nodeParams: *mut CUgraphNodeParams,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe {
        cuGraphAddNode_v2(phGraphNode, hGraph, dependencies, dependencyData, numDependencies, nodeParams)
    }
}

/// A new node, with what CUDA gives back written into the structure.
fn make(node: &mut CUgraphNodeParams, site: &Site) -> Result<Arc<Op>> {
    check_reserved(node)?;
    let body = &mut node.__bindgen_anon_1;
    match node.type_ {
        CUgraphNodeType::CU_GRAPH_NODE_TYPE_GRAPH => {
            // SAFETY: the member that belongs to the type.
            let child = unsafe { body.graph };
            let is_moved = match child.ownership {
                CUgraphChildGraphNodeOwnership::CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE => false,
                CUgraphChildGraphNodeOwnership::CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE => true,
                _ => return Err(Error::InvalidValue("nodeParams.graph.ownership")),
            };
            child_op(child.graph, site.graph, is_moved)
        }
        CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEM_ALLOC => {
            // SAFETY: the member that belongs to the type; both versions of the structure are the same.
            let params = unsafe { &mut *(&raw mut body.alloc).cast::<CUDA_MEM_ALLOC_NODE_PARAMS>() };
            alloc_op(params, site)
        }
        CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEM_FREE => {
            // SAFETY: the member that belongs to the type.
            let dptr = unsafe { body.free.dptr };
            pool::free_op(dptr, site.graph.id)
        }
        // SAFETY: the member that belongs to the type.
        CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL => conditional_op(unsafe { &mut body.conditional }),
        CUgraphNodeType::CU_GRAPH_NODE_TYPE_EMPTY => Ok(Op::structural(Params::Empty)),
        _ => parameters(node, vec![]),
    }
}

/// CUDA: what is reserved is zero.
fn check_reserved(node: &CUgraphNodeParams) -> Result {
    let is_zero = node.reserved0 == [0; 3] && node.reserved2 == 0;
    if is_zero { Ok(()) } else { Err(Error::InvalidValue("nodeParams: reserved members")) }
}

/// The work of a node whose parameters can change. `attributes` are those a kernel node has.
pub(crate) fn parameters(node: &CUgraphNodeParams, attributes: Vec<CUlaunchAttribute>) -> Result<Arc<Op>> {
    check_reserved(node)?;
    let body = &node.__bindgen_anon_1;
    match node.type_ {
        CUgraphNodeType::CU_GRAPH_NODE_TYPE_KERNEL => {
            // SAFETY: the member that belongs to the type.
            kernel_op(&unsafe { &body.kernel }.into(), attributes)
        }
        CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMCPY => {
            // SAFETY: the member that belongs to the type.
            let copy = unsafe { &body.memcpy };
            memcpy_op(&copy.copyParams, copy.copyCtx)
        }
        CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMSET => {
            // SAFETY: the member that belongs to the type.
            let CUDA_MEMSET_NODE_PARAMS_v2 { dst, pitch, value, elementSize, width, height, ctx } =
                unsafe { body.memset };
            memset_op(&CUDA_MEMSET_NODE_PARAMS { dst, pitch, value, elementSize, width, height }, ctx)
        }
        CUgraphNodeType::CU_GRAPH_NODE_TYPE_HOST => {
            // SAFETY: the member that belongs to the type.
            let host = unsafe { body.host };
            host_function::host_op(CUDA_HOST_NODE_PARAMS { fn_: host.fn_, userData: host.userData })
        }
        // SAFETY: the member that belongs to the type.
        CUgraphNodeType::CU_GRAPH_NODE_TYPE_WAIT_EVENT => wait_op(unsafe { body.eventWait.event }),
        // SAFETY: the member that belongs to the type.
        CUgraphNodeType::CU_GRAPH_NODE_TYPE_EVENT_RECORD => record_op(unsafe { body.eventRecord.event }),
        CUgraphNodeType::CU_GRAPH_NODE_TYPE_BATCH_MEM_OP => {
            // SAFETY: the member that belongs to the type.
            let CUDA_BATCH_MEM_OP_NODE_PARAMS_v2 { ctx, count, paramArray, flags } = unsafe { body.memOp };
            batch_op(&CUDA_BATCH_MEM_OP_NODE_PARAMS { ctx, count, paramArray, flags })
        }
        CUgraphNodeType::CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL => {
            // SAFETY: the member that belongs to the type.
            let params = unsafe { &body.extSemSignal };
            // SAFETY: CUDA's contract for the structure: `numExtSems` entries in both arrays.
            unsafe { signal_op(params.extSemArray, params.paramsArray, params.numExtSems) }
        }
        CUgraphNodeType::CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT => {
            // SAFETY: the member that belongs to the type.
            let params = unsafe { &body.extSemWait };
            // SAFETY: CUDA's contract for the structure: `numExtSems` entries in both arrays.
            unsafe { semaphores_op(params.extSemArray, params.paramsArray, params.numExtSems) }
        }
        // SAFETY: the member that belongs to the type.
        CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMCPY_BATCH => batch_copy::node_op(unsafe { &body.memcpyBatch }),
        CUgraphNodeType::CU_GRAPH_NODE_TYPE_FABRIC_CPY_BATCH => {
            Err(Error::NotSupported("graph nodes of copies over a fabric"))
        }
        // CUDA: memory, child and conditional nodes keep what they were made with.
        CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEM_ALLOC
        | CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEM_FREE
        | CUgraphNodeType::CU_GRAPH_NODE_TYPE_GRAPH
        | CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL
        | CUgraphNodeType::CU_GRAPH_NODE_TYPE_EMPTY => {
            Err(Error::NotSupported("cuGraphNodeSetParams: nodes of this type"))
        }
        _ => Err(Error::InvalidValue("nodeParams.type")),
    }
}

/// Pointers lead to what the node keeps.
pub fn cuGraphNodeGetParams(hNode: CUgraphNode, nodeParams: Out<'_, CUgraphNodeParams>) -> Result {
    nodeParams.write(Graph::op_of(hNode)?.params.describe());
    Ok(())
}

pub fn cuGraphNodeSetParams(hNode: CUgraphNode, params: &CUgraphNodeParams) -> Result {
    if Graph::op_of(hNode)?.kind() != params.type_ {
        return Err(OTHER_TYPE);
    }
    set(hNode, parameters(params, attributes_of(hNode)?)?)
}

/// Since 13.4; see `cuGraphAddNode_v3`.
pub fn cuGraphNodeSetParams_v2(hNode: CUgraphNode, nodeParams: &CUgraphNodeParams) -> Result {
    cuGraphNodeSetParams(hNode, nodeParams)
}

/// The attributes of a kernel node, none of another.
pub(crate) fn attributes_of(node: CUgraphNode) -> Result<Vec<CUlaunchAttribute>> {
    Ok(match &Graph::op_of(node)?.params {
        Params::Kernel(kernel) => kernel.attributes.clone(),
        _ => vec![],
    })
}

/// Looks at a node's parameters.
pub(crate) fn with<R>(node: CUgraphNode, read: impl FnOnce(&Params) -> Option<R>) -> Result<R> {
    read(&Graph::op_of(node)?.params).ok_or(OTHER_TYPE)
}

fn with_kernel<R>(node: CUgraphNode, read: impl FnOnce(&Kernel) -> R) -> Result<R> {
    with(node, |params| match params {
        Params::Kernel(kernel) => Some(read(kernel)),
        _ => None,
    })
}

pub fn cuGraphKernelNodeGetParams_v2(
    hNode: CUgraphNode,
    nodeParams: Out<'_, CUDA_KERNEL_NODE_PARAMS>,
) -> Result {
    nodeParams.write(with_kernel(hNode, |kernel| kernel.params)?);
    Ok(())
}

/// Before CUDA 12: a kernel is given as its function.
pub fn cuGraphKernelNodeGetParams(
    hNode: CUgraphNode,
    nodeParams: Out<'_, CUDA_KERNEL_NODE_PARAMS_v1>,
) -> Result {
    let params = with_kernel(hNode, |kernel| kernel.params)?;
    let func = if params.func.is_null() {
        object::Kernel::from_handle(params.kern)?.function(Context::from_handle(params.ctx)?)?
    } else {
        params.func
    };
    nodeParams.write(CUDA_KERNEL_NODE_PARAMS_v1 {
        func,
        gridDimX: params.gridDimX,
        gridDimY: params.gridDimY,
        gridDimZ: params.gridDimZ,
        blockDimX: params.blockDimX,
        blockDimY: params.blockDimY,
        blockDimZ: params.blockDimZ,
        sharedMemBytes: params.sharedMemBytes,
        kernelParams: params.kernelParams,
        extra: params.extra,
    });
    Ok(())
}

pub fn cuGraphKernelNodeSetParams_v2(hNode: CUgraphNode, nodeParams: &CUDA_KERNEL_NODE_PARAMS) -> Result {
    set(hNode, kernel_op(nodeParams, attributes_of(hNode)?)?)
}

pub fn cuGraphKernelNodeSetParams(hNode: CUgraphNode, nodeParams: &CUDA_KERNEL_NODE_PARAMS_v1) -> Result {
    cuGraphKernelNodeSetParams_v2(hNode, &nodeParams.into())
}

/// An attribute that was never set is zero.
pub fn cuGraphKernelNodeGetAttribute(
    hNode: CUgraphNode,
    attr: CUkernelNodeAttrID,
    value_out: Out<'_, CUkernelNodeAttrValue>,
) -> Result {
    if !execution::is_kept(attr) {
        return Err(Error::InvalidValue("attr"));
    }
    let value = with_kernel(hNode, |kernel| kernel.attribute(attr).map(|found| found.value))?;
    value_out.write(value.unwrap_or_default());
    Ok(())
}

/// # Safety
/// `value` is NULL or readable, and writable for a device-updatable node, whose handle comes back in it.
pub unsafe fn cuGraphKernelNodeSetAttribute(
    hNode: CUgraphNode,
    attr: CUkernelNodeAttrID,
    value: *const CUkernelNodeAttrValue,
) -> Result {
    // SAFETY: the caller's promise.
    let given = unsafe { border::borrow(value, "value") }?;
    if !execution::is_kept(attr) {
        return Err(Error::InvalidValue("attr"));
    }
    if attr == device::DEVICE_UPDATABLE {
        let handle = make_updatable(hNode, &CUlaunchAttribute { id: attr, pad: [0; 4], value: *given })?;
        if let Some(attribute) = handle {
            // SAFETY: as above.
            unsafe { value.cast_mut().write(attribute.value) };
        }
        return Ok(());
    }
    let (params, mut attributes) = with_kernel(hNode, |kernel| (kernel.params, kernel.attributes.clone()))?;
    attributes.retain(|known| known.id != attr);
    attributes.push(CUlaunchAttribute { id: attr, pad: [0; 4], value: *given });
    set(hNode, kernel_op(&params, attributes)?)
}

/// Lets kernels change a node; the attribute with its handle, unless nothing of it was asked for.
fn make_updatable(node: CUgraphNode, asked: &CUlaunchAttribute) -> Result<Option<CUlaunchAttribute>> {
    let is_asked = match device::asked_of(asked) {
        Some((0, _)) => false,
        Some((1, _)) => true,
        _ => return Err(Error::InvalidValue("deviceUpdatableKernelNode.deviceUpdatable")),
    };
    let known = with_kernel(node, |kernel| kernel.updatable.clone())?;
    match known {
        // CUDA: there is no way back.
        Some(_) if !is_asked => Err(Error::InvalidValue("deviceUpdatableKernelNode.deviceUpdatable")),
        Some(known) => Ok(Some(known.attribute())),
        None if !is_asked => Ok(None),
        None => {
            let (params, mut attributes) =
                with_kernel(node, |kernel| (kernel.params, kernel.attributes.clone()))?;
            let made = Updatable::new(Context::from_handle(params.ctx)?)?;
            attributes.retain(|known| known.id != device::DEVICE_UPDATABLE);
            attributes.push(made.attribute());
            set(node, kernel_op(&params, attributes)?)?;
            Ok(Some(made.attribute()))
        }
    }
}

/// CUDA: both nodes belong to one context.
pub fn cuGraphKernelNodeCopyAttributes(dst: CUgraphNode, src: CUgraphNode) -> Result {
    let (attributes, source) = with_kernel(src, |kernel| (kernel.attributes.clone(), kernel.context_id))?;
    let (params, target) = with_kernel(dst, |kernel| (kernel.params, kernel.context_id))?;
    if source != target {
        return Err(Error::InvalidContext);
    }
    let is_updatable = |node| with_kernel(node, |kernel| kernel.updatable.is_some());
    // CUDA: nodes that kernels change neither give their attributes nor take others.
    if is_updatable(src)? || is_updatable(dst)? {
        return Err(Error::InvalidValue("hNode: device-updatable"));
    }
    set(dst, kernel_op(&params, attributes)?)
}

pub fn cuGraphMemcpyNodeGetParams(hNode: CUgraphNode, nodeParams: Out<'_, CUDA_MEMCPY3D>) -> Result {
    let copy = with(hNode, |params| match params {
        Params::Memcpy { copy, .. } => Some(*copy),
        _ => None,
    })?;
    nodeParams.write(copy);
    Ok(())
}

pub fn cuGraphMemcpyNodeSetParams(hNode: CUgraphNode, nodeParams: &CUDA_MEMCPY3D) -> Result {
    let context = with(hNode, |params| match params {
        Params::Memcpy { context, .. } => Some(*context),
        _ => None,
    })?;
    set(hNode, memcpy_op(nodeParams, context)?)
}

pub fn cuGraphMemsetNodeGetParams(
    hNode: CUgraphNode,
    nodeParams: Out<'_, CUDA_MEMSET_NODE_PARAMS>,
) -> Result {
    let fill = with(hNode, |params| match params {
        Params::Memset { fill, .. } => Some(*fill),
        _ => None,
    })?;
    nodeParams.write(fill);
    Ok(())
}

pub fn cuGraphMemsetNodeSetParams(hNode: CUgraphNode, nodeParams: &CUDA_MEMSET_NODE_PARAMS) -> Result {
    let context = with(hNode, |params| match params {
        Params::Memset { context, .. } => Some(*context),
        _ => None,
    })?;
    set(hNode, memset_op(nodeParams, context)?)
}

pub fn cuGraphHostNodeGetParams(hNode: CUgraphNode, nodeParams: Out<'_, CUDA_HOST_NODE_PARAMS>) -> Result {
    let host = with(hNode, |params| match params {
        Params::Host(host) => Some(*host),
        _ => None,
    })?;
    nodeParams.write(host);
    Ok(())
}

pub fn cuGraphHostNodeSetParams(hNode: CUgraphNode, nodeParams: &CUDA_HOST_NODE_PARAMS) -> Result {
    set(hNode, host_function::host_op(*nodeParams)?)
}

/// The graph inside the node, which stays the node's.
pub fn cuGraphChildGraphNodeGetGraph(hNode: CUgraphNode, phGraph: Out<'_, CUgraph>) -> Result {
    phGraph.write(with(hNode, |params| params.child().map(|child| child.handle.0))?);
    Ok(())
}

pub fn cuGraphEventRecordNodeGetEvent(hNode: CUgraphNode, event_out: Out<'_, CUevent>) -> Result {
    let event = with(hNode, |params| match params {
        Params::EventRecord(event) => Some(*event),
        _ => None,
    })?;
    event_out.write(event);
    Ok(())
}

pub fn cuGraphEventRecordNodeSetEvent(hNode: CUgraphNode, event: CUevent) -> Result {
    set(hNode, record_op(event)?)
}

pub fn cuGraphEventWaitNodeGetEvent(hNode: CUgraphNode, event_out: Out<'_, CUevent>) -> Result {
    let event = with(hNode, |params| match params {
        Params::WaitEvent(event) => Some(*event),
        _ => None,
    })?;
    event_out.write(event);
    Ok(())
}

pub fn cuGraphEventWaitNodeSetEvent(hNode: CUgraphNode, event: CUevent) -> Result {
    set(hNode, wait_op(event)?)
}

pub fn cuGraphMemAllocNodeGetParams(
    hNode: CUgraphNode,
    params_out: Out<'_, CUDA_MEM_ALLOC_NODE_PARAMS>,
) -> Result {
    let found = with(hNode, |params| match params {
        Params::Alloc(block) => Some(block.describe()),
        _ => None,
    })?;
    let CUDA_MEM_ALLOC_NODE_PARAMS_v2 { poolProps, accessDescs, accessDescCount, bytesize, dptr } = found;
    params_out.write(CUDA_MEM_ALLOC_NODE_PARAMS { poolProps, accessDescs, accessDescCount, bytesize, dptr });
    Ok(())
}

pub fn cuGraphMemFreeNodeGetParams(hNode: CUgraphNode, dptr_out: Out<'_, CUdeviceptr>) -> Result {
    let address = with(hNode, |params| match params {
        Params::Free(block) => Some(block.address),
        _ => None,
    })?;
    dptr_out.write(address);
    Ok(())
}

pub fn cuGraphBatchMemOpNodeGetParams(
    hNode: CUgraphNode,
    nodeParams_out: Out<'_, CUDA_BATCH_MEM_OP_NODE_PARAMS>,
) -> Result {
    let op = Graph::op_of(hNode)?;
    let Params::BatchMemOp { context, operations, flags } = &op.params else { return Err(OTHER_TYPE) };
    nodeParams_out.write(CUDA_BATCH_MEM_OP_NODE_PARAMS {
        ctx: *context,
        count: u32::try_from(operations.len()).map_err(|_| Error::Unknown)?,
        paramArray: operations.as_ptr().cast_mut(),
        flags: *flags,
    });
    Ok(())
}

pub fn cuGraphBatchMemOpNodeSetParams(
    hNode: CUgraphNode,
    nodeParams: &CUDA_BATCH_MEM_OP_NODE_PARAMS,
) -> Result {
    set(hNode, batch_op(nodeParams)?)
}
