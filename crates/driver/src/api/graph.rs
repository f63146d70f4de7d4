//! Graph Management, and the capture of streams into graphs.

use core::ffi::{c_char, c_uint, c_ulonglong, c_void};
use std::cell::Cell;

use cuda_abi::out::{OptOut, Out};
use cuda_abi::{
    CUDA_GRAPH_INSTANTIATE_PARAMS, CUDA_HOST_NODE_PARAMS, CUDA_KERNEL_NODE_PARAMS,
    CUDA_KERNEL_NODE_PARAMS_v1, CUDA_MEMCPY3D, CUDA_MEMSET_NODE_PARAMS, CUcontext, CUevent, CUgraph,
    CUgraphEdgeData, CUgraphExec, CUgraphExecUpdateResult, CUgraphExecUpdateResultInfo,
    CUgraphInstantiateResult, CUgraphNode, CUgraphNodeType, CUhostFn, CUstream, CUstreamCaptureMode,
    CUstreamCaptureStatus, CUuserObject, cuuint64_t,
};

use super::event::cuEventRecord;
use super::stream::cuStreamWaitEvent;
use super::{copy, execution, memset};
use crate::object::graph::{self, Exec, Graph, Op, captured};
use crate::object::{Context, Event, Shared, user_object};
use crate::{Error, Result};

pub fn cuGraphCreate(phGraph: Out<'_, CUgraph>, flags: c_uint) -> Result {
    crate::process::driver()?;
    if flags != 0 {
        return Err(Error::InvalidValue("flags"));
    }
    phGraph.write(Graph::create()?);
    Ok(())
}

pub fn cuGraphDestroy(hGraph: CUgraph) -> Result {
    Graph::destroy(hGraph)
}

pub fn cuGraphClone(phGraphClone: Out<'_, CUgraph>, originalGraph: CUgraph) -> Result {
    phGraphClone.write(Graph::from_handle(originalGraph)?.duplicate()?);
    Ok(())
}

/// Enters a node behind its dependencies.
fn add(
    node: Out<'_, CUgraphNode>,
    graph: CUgraph,
    dependencies: *const CUgraphNode,
    n_dependencies: usize,
    op: impl FnOnce() -> Result<std::sync::Arc<Op>>,
) -> Result {
    let graph = Graph::from_handle(graph)?;
    let dependencies = match n_dependencies {
        0 => &[],
        _ if dependencies.is_null() => return Err(Error::InvalidValue("dependencies")),
        // SAFETY: CUDA's contract: that many nodes.
        n => unsafe { core::slice::from_raw_parts(dependencies, n) },
    };
    node.write(graph.add(op()?, dependencies)?);
    Ok(())
}

/// Makes the node's context current for looking up what the node names.
fn check_context(ctx: CUcontext) -> Result {
    if ctx.is_null() { Context::current().map(|_| ()) } else { Context::from_handle(ctx)?.bind() }
}

pub fn cuGraphAddKernelNode_v2(
    phGraphNode: Out<'_, CUgraphNode>,
    hGraph: CUgraph,
    dependencies: *const CUgraphNode,
    numDependencies: usize,
    nodeParams: &CUDA_KERNEL_NODE_PARAMS,
) -> Result {
    add(phGraphNode, hGraph, dependencies, numDependencies, || execution::node_op(nodeParams))
}

/// Before CUDA 12: without a CUkernel.
fn newer(params: &CUDA_KERNEL_NODE_PARAMS_v1) -> CUDA_KERNEL_NODE_PARAMS {
    CUDA_KERNEL_NODE_PARAMS {
        func: params.func,
        gridDimX: params.gridDimX,
        gridDimY: params.gridDimY,
        gridDimZ: params.gridDimZ,
        blockDimX: params.blockDimX,
        blockDimY: params.blockDimY,
        blockDimZ: params.blockDimZ,
        sharedMemBytes: params.sharedMemBytes,
        kernelParams: params.kernelParams,
        extra: params.extra,
        kern: core::ptr::null_mut(),
        ctx: core::ptr::null_mut(),
    }
}

pub fn cuGraphAddKernelNode(
    phGraphNode: Out<'_, CUgraphNode>,
    hGraph: CUgraph,
    dependencies: *const CUgraphNode,
    numDependencies: usize,
    nodeParams: &CUDA_KERNEL_NODE_PARAMS_v1,
) -> Result {
    cuGraphAddKernelNode_v2(phGraphNode, hGraph, dependencies, numDependencies, &newer(nodeParams))
}

pub fn cuGraphAddMemcpyNode(
    phGraphNode: Out<'_, CUgraphNode>,
    hGraph: CUgraph,
    dependencies: *const CUgraphNode,
    numDependencies: usize,
    copyParams: &CUDA_MEMCPY3D,
    ctx: CUcontext,
) -> Result {
    check_context(ctx)?;
    add(phGraphNode, hGraph, dependencies, numDependencies, || copy::node_op(copyParams))
}

pub fn cuGraphAddMemsetNode(
    phGraphNode: Out<'_, CUgraphNode>,
    hGraph: CUgraph,
    dependencies: *const CUgraphNode,
    numDependencies: usize,
    memsetParams: &CUDA_MEMSET_NODE_PARAMS,
    ctx: CUcontext,
) -> Result {
    check_context(ctx)?;
    add(phGraphNode, hGraph, dependencies, numDependencies, || memset::node_op(memsetParams))
}

pub fn cuGraphAddHostNode(
    phGraphNode: Out<'_, CUgraphNode>,
    hGraph: CUgraph,
    dependencies: *const CUgraphNode,
    numDependencies: usize,
    nodeParams: &CUDA_HOST_NODE_PARAMS,
) -> Result {
    if nodeParams.fn_.is_none() {
        return Err(Error::InvalidValue("nodeParams.fn"));
    }
    add(phGraphNode, hGraph, dependencies, numDependencies, || {
        Ok(execution::host_op(nodeParams.fn_, nodeParams.userData))
    })
}

pub fn cuGraphAddEmptyNode(
    phGraphNode: Out<'_, CUgraphNode>,
    hGraph: CUgraph,
    dependencies: *const CUgraphNode,
    numDependencies: usize,
) -> Result {
    add(phGraphNode, hGraph, dependencies, numDependencies, || Ok(Op::empty()))
}

/// The child's nodes as they are now.
pub fn cuGraphAddChildGraphNode(
    phGraphNode: Out<'_, CUgraphNode>,
    hGraph: CUgraph,
    dependencies: *const CUgraphNode,
    numDependencies: usize,
    childGraph: CUgraph,
) -> Result {
    add(phGraphNode, hGraph, dependencies, numDependencies, || Graph::from_handle(childGraph)?.as_op())
}

pub fn cuGraphAddEventRecordNode(
    phGraphNode: Out<'_, CUgraphNode>,
    hGraph: CUgraph,
    dependencies: *const CUgraphNode,
    numDependencies: usize,
    event: CUevent,
) -> Result {
    Event::from_handle(event)?;
    let event = Shared(event);
    add(phGraphNode, hGraph, dependencies, numDependencies, || {
        Ok(Op::new(CUgraphNodeType::CU_GRAPH_NODE_TYPE_EVENT_RECORD, move |stream| {
            let event = &event;
            cuEventRecord(event.0, stream)
        }))
    })
}

pub fn cuGraphAddEventWaitNode(
    phGraphNode: Out<'_, CUgraphNode>,
    hGraph: CUgraph,
    dependencies: *const CUgraphNode,
    numDependencies: usize,
    event: CUevent,
) -> Result {
    Event::from_handle(event)?;
    let event = Shared(event);
    add(phGraphNode, hGraph, dependencies, numDependencies, || {
        Ok(Op::new(CUgraphNodeType::CU_GRAPH_NODE_TYPE_WAIT_EVENT, move |stream| {
            let event = &event;
            cuStreamWaitEvent(stream, event.0, 0)
        }))
    })
}

pub fn cuGraphAddDependencies(
    hGraph: CUgraph,
    from: *const CUgraphNode,
    to: *const CUgraphNode,
    numDependencies: usize,
) -> Result {
    let graph = Graph::from_handle(hGraph)?;
    if numDependencies > 0 && (from.is_null() || to.is_null()) {
        return Err(Error::InvalidValue("from or to"));
    }
    for index in 0..numDependencies {
        // SAFETY: CUDA's contract: that many nodes in each array.
        let (from, to) = unsafe { (*from.add(index), *to.add(index)) };
        graph.connect(from, to)?;
    }
    Ok(())
}

/// Edge data tell of ports that kernels here do not have: every edge is a full one, which is never too little.
pub fn cuGraphAddDependencies_v2(
    hGraph: CUgraph,
    from: *const CUgraphNode,
    to: *const CUgraphNode,
    _edgeData: *const CUgraphEdgeData,
    numDependencies: usize,
) -> Result {
    cuGraphAddDependencies(hGraph, from, to, numDependencies)
}

/// CUDA's way to hand out a list: without an array the count, else as many as fit, the rest NULL.
fn write_nodes(list: &[CUgraphNode], at: *mut CUgraphNode, count: *mut usize) -> Result {
    if count.is_null() {
        return Err(Error::InvalidValue("number of nodes"));
    }
    if !at.is_null() {
        // SAFETY: CUDA's contract: room for as many nodes as the count says.
        let room = unsafe { *count };
        for index in 0..room {
            // SAFETY: as above.
            unsafe { at.add(index).write(list.get(index).copied().unwrap_or(core::ptr::null_mut())) };
        }
    }
    // SAFETY: the count is a writable variable.
    unsafe { count.write(list.len()) };
    Ok(())
}

pub fn cuGraphGetNodes(hGraph: CUgraph, nodes: *mut CUgraphNode, numNodes: *mut usize) -> Result {
    write_nodes(&Graph::from_handle(hGraph)?.nodes(), nodes, numNodes)
}

pub fn cuGraphGetRootNodes(hGraph: CUgraph, rootNodes: *mut CUgraphNode, numRootNodes: *mut usize) -> Result {
    write_nodes(&Graph::from_handle(hGraph)?.roots(), rootNodes, numRootNodes)
}

pub fn cuGraphGetEdges(
    hGraph: CUgraph,
    from: *mut CUgraphNode,
    to: *mut CUgraphNode,
    numEdges: *mut usize,
) -> Result {
    let (sources, targets): (Vec<_>, Vec<_>) = Graph::from_handle(hGraph)?.edges().into_iter().unzip();
    if numEdges.is_null() || from.is_null() != to.is_null() {
        return Err(Error::InvalidValue("from, to or numEdges"));
    }
    // SAFETY: the count is a readable variable.
    let mut room = unsafe { *numEdges };
    write_nodes(&sources, from, &mut room)?;
    write_nodes(&targets, to, numEdges)
}

pub fn cuGraphNodeGetType(hNode: CUgraphNode, type_: Out<'_, CUgraphNodeType>) -> Result {
    let (graph, place) = Graph::of_node(hNode)?;
    type_.write(graph.kind(place));
    Ok(())
}

pub fn cuGraphNodeGetDependencies(
    hNode: CUgraphNode,
    dependencies: *mut CUgraphNode,
    numDependencies: *mut usize,
) -> Result {
    let (graph, place) = Graph::of_node(hNode)?;
    write_nodes(&graph.dependencies(place), dependencies, numDependencies)
}

pub fn cuGraphNodeGetDependentNodes(
    hNode: CUgraphNode,
    dependentNodes: *mut CUgraphNode,
    numDependentNodes: *mut usize,
) -> Result {
    let (graph, place) = Graph::of_node(hNode)?;
    write_nodes(&graph.dependents(place), dependentNodes, numDependentNodes)
}

pub fn cuGraphKernelNodeSetParams_v2(hNode: CUgraphNode, nodeParams: &CUDA_KERNEL_NODE_PARAMS) -> Result {
    let (graph, place) = Graph::of_node(hNode)?;
    graph.set(place, execution::node_op(nodeParams)?)
}

pub fn cuGraphKernelNodeSetParams(hNode: CUgraphNode, nodeParams: &CUDA_KERNEL_NODE_PARAMS_v1) -> Result {
    cuGraphKernelNodeSetParams_v2(hNode, &newer(nodeParams))
}

/// Flags about uploading and freeing memory nodes change nothing here; launches from the device are not there.
fn check_flags(flags: u64) -> Result {
    const DEVICE_LAUNCH: u64 = 4;
    match flags {
        flags if flags & DEVICE_LAUNCH != 0 => Err(Error::NotSupported("graphs launched from the device")),
        0..=15 => Ok(()),
        _ => Err(Error::InvalidValue("flags")),
    }
}

pub fn cuGraphInstantiateWithFlags(
    phGraphExec: Out<'_, CUgraphExec>,
    hGraph: CUgraph,
    flags: c_ulonglong,
) -> Result {
    check_flags(flags)?;
    phGraphExec.write(Exec::instantiate(&*Graph::from_handle(hGraph)?, flags)?);
    Ok(())
}

/// CUDA 11's form, with a place for a message and a node that there is nothing to say about.
pub fn cuGraphInstantiate_v2(
    phGraphExec: Out<'_, CUgraphExec>,
    hGraph: CUgraph,
    phErrorNode: OptOut<'_, CUgraphNode>,
    logBuffer: *mut c_char,
    bufferSize: usize,
) -> Result {
    if !logBuffer.is_null() && bufferSize > 0 {
        // SAFETY: CUDA's contract: `bufferSize` writable bytes.
        unsafe { logBuffer.write(0) };
    }
    phErrorNode.write(core::ptr::null_mut());
    cuGraphInstantiateWithFlags(phGraphExec, hGraph, 0)
}

pub fn cuGraphInstantiate(
    phGraphExec: Out<'_, CUgraphExec>,
    hGraph: CUgraph,
    phErrorNode: OptOut<'_, CUgraphNode>,
    logBuffer: *mut c_char,
    bufferSize: usize,
) -> Result {
    cuGraphInstantiate_v2(phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize)
}

pub fn cuGraphInstantiateWithParams(
    phGraphExec: Out<'_, CUgraphExec>,
    hGraph: CUgraph,
    instantiateParams: *mut CUDA_GRAPH_INSTANTIATE_PARAMS,
) -> Result {
    // SAFETY: CUDA's contract: NULL or a structure to read and write.
    let params = unsafe { instantiateParams.as_mut() }.ok_or(Error::InvalidValue("instantiateParams"))?;
    params.hErrNode_out = core::ptr::null_mut();
    params.result_out = CUgraphInstantiateResult::CUDA_GRAPH_INSTANTIATE_ERROR;
    cuGraphInstantiateWithFlags(phGraphExec, hGraph, params.flags)?;
    params.result_out = CUgraphInstantiateResult::CUDA_GRAPH_INSTANTIATE_SUCCESS;
    Ok(())
}

pub fn cuGraphExecDestroy(hGraphExec: CUgraphExec) -> Result {
    Exec::destroy(hGraphExec)
}

pub fn cuGraphExecGetFlags(hGraphExec: CUgraphExec, flags: Out<'_, cuuint64_t>) -> Result {
    flags.write(Exec::from_handle(hGraphExec)?.flags);
    Ok(())
}

/// Nothing has to be moved anywhere before a launch.
pub fn cuGraphUpload(hGraph: CUgraphExec, hStream: CUstream) -> Result {
    Exec::from_handle(hGraph)?;
    crate::object::Stream::from_handle(hStream).map(|_| ())
}

/// The graph's work on the stream. In a stream that is being captured it becomes a node.
pub fn cuGraphLaunch(hGraph: CUgraphExec, hStream: CUstream) -> Result {
    let exec = Exec::from_handle(hGraph)?;
    if captured(hStream, || Ok(exec.as_op()))? {
        return Ok(());
    }
    exec.launch(hStream)
}

pub fn cuGraphExecKernelNodeSetParams_v2(
    hGraphExec: CUgraphExec,
    hNode: CUgraphNode,
    nodeParams: &CUDA_KERNEL_NODE_PARAMS,
) -> Result {
    Exec::from_handle(hGraphExec)?.set(hNode, execution::node_op(nodeParams)?)
}

pub fn cuGraphExecKernelNodeSetParams(
    hGraphExec: CUgraphExec,
    hNode: CUgraphNode,
    nodeParams: &CUDA_KERNEL_NODE_PARAMS_v1,
) -> Result {
    cuGraphExecKernelNodeSetParams_v2(hGraphExec, hNode, &newer(nodeParams))
}

pub fn cuGraphExecMemcpyNodeSetParams(
    hGraphExec: CUgraphExec,
    hNode: CUgraphNode,
    copyParams: &CUDA_MEMCPY3D,
    ctx: CUcontext,
) -> Result {
    check_context(ctx)?;
    Exec::from_handle(hGraphExec)?.set(hNode, copy::node_op(copyParams)?)
}

pub fn cuGraphExecMemsetNodeSetParams(
    hGraphExec: CUgraphExec,
    hNode: CUgraphNode,
    memsetParams: &CUDA_MEMSET_NODE_PARAMS,
    ctx: CUcontext,
) -> Result {
    check_context(ctx)?;
    Exec::from_handle(hGraphExec)?.set(hNode, memset::node_op(memsetParams)?)
}

/// Takes the parameters of a graph of the same shape.
pub fn cuGraphExecUpdate_v2(
    hGraphExec: CUgraphExec,
    hGraph: CUgraph,
    resultInfo: Out<'_, CUgraphExecUpdateResultInfo>,
) -> Result {
    let is_same = Exec::from_handle(hGraphExec)?.update(&*Graph::from_handle(hGraph)?)?;
    let result = if is_same {
        CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_SUCCESS
    } else {
        CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED
    };
    resultInfo.write(CUgraphExecUpdateResultInfo { result, ..Default::default() });
    if is_same { Ok(()) } else { Err(Error::GraphExecUpdateFailure) }
}

/// CUDA 11's form.
pub fn cuGraphExecUpdate(
    hGraphExec: CUgraphExec,
    hGraph: CUgraph,
    hErrorNode_out: OptOut<'_, CUgraphNode>,
    updateResult_out: Out<'_, CUgraphExecUpdateResult>,
) -> Result {
    let mut info = CUgraphExecUpdateResultInfo::default();
    let answer = cuGraphExecUpdate_v2(hGraphExec, hGraph, (&mut info).into());
    hErrorNode_out.write(core::ptr::null_mut());
    updateResult_out.write(info.result);
    answer
}

/// The modes say which calls other threads may not make meanwhile; none of ours would break a capture.
pub fn cuStreamBeginCapture_v2(hStream: CUstream, mode: CUstreamCaptureMode) -> Result {
    if mode.0 > CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED.0 {
        return Err(Error::InvalidValue("mode"));
    }
    graph::begin_capture(hStream)
}

pub fn cuStreamBeginCapture(hStream: CUstream) -> Result {
    graph::begin_capture(hStream)
}

pub fn cuStreamEndCapture(hStream: CUstream, phGraph: Out<'_, CUgraph>) -> Result {
    match graph::end_capture(hStream) {
        Ok(graph) => {
            phGraph.write(graph);
            Ok(())
        }
        Err(error) => {
            // CUDA: a capture that failed gives no graph.
            phGraph.write(core::ptr::null_mut());
            Err(error)
        }
    }
}

pub fn cuStreamIsCapturing(hStream: CUstream, captureStatus: Out<'_, CUstreamCaptureStatus>) -> Result {
    captureStatus.write(graph::capture_info(hStream)?.status);
    Ok(())
}

pub fn cuStreamGetCaptureInfo(
    hStream: CUstream,
    captureStatus_out: Out<'_, CUstreamCaptureStatus>,
    id_out: OptOut<'_, cuuint64_t>,
) -> Result {
    let info = graph::capture_info(hStream)?;
    captureStatus_out.write(info.status);
    id_out.write(info.id);
    Ok(())
}

thread_local! {
    /// The list of nodes that the last call of this thread pointed at.
    static TAIL: Cell<Vec<CUgraphNode>> = const { Cell::new(Vec::new()) };
    static MODE: Cell<CUstreamCaptureMode> =
        const { Cell::new(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL) };
}

/// The list of nodes stays valid until this thread asks again.
pub fn cuStreamGetCaptureInfo_v2(
    hStream: CUstream,
    captureStatus_out: Out<'_, CUstreamCaptureStatus>,
    id_out: OptOut<'_, cuuint64_t>,
    graph_out: OptOut<'_, CUgraph>,
    dependencies_out: OptOut<'_, *const CUgraphNode>,
    numDependencies_out: OptOut<'_, usize>,
) -> Result {
    let info = graph::capture_info(hStream)?;
    captureStatus_out.write(info.status);
    id_out.write(info.id);
    graph_out.write(info.graph);
    numDependencies_out.write(info.tail.len());
    dependencies_out.write(if info.tail.is_empty() { core::ptr::null() } else { info.tail.as_ptr() });
    TAIL.set(info.tail);
    Ok(())
}

pub fn cuStreamGetCaptureInfo_v3(
    hStream: CUstream,
    captureStatus_out: Out<'_, CUstreamCaptureStatus>,
    id_out: OptOut<'_, cuuint64_t>,
    graph_out: OptOut<'_, CUgraph>,
    dependencies_out: OptOut<'_, *const CUgraphNode>,
    edgeData_out: OptOut<'_, *const CUgraphEdgeData>,
    numDependencies_out: OptOut<'_, usize>,
) -> Result {
    // CUDA: no edge data means that every edge is a full one.
    edgeData_out.write(core::ptr::null());
    cuStreamGetCaptureInfo_v2(
        hStream,
        captureStatus_out,
        id_out,
        graph_out,
        dependencies_out,
        numDependencies_out,
    )
}

pub fn cuThreadExchangeStreamCaptureMode(mode: *mut CUstreamCaptureMode) -> Result {
    crate::process::driver()?;
    // SAFETY: CUDA's contract: NULL or a variable to read and write.
    let mode = unsafe { mode.as_mut() }.ok_or(Error::InvalidValue("mode"))?;
    if mode.0 > CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED.0 {
        return Err(Error::InvalidValue("mode"));
    }
    *mode = MODE.replace(*mode);
    Ok(())
}

/// A thing of the program's that graphs keep alive; `destroy` runs when the last reference goes.
pub fn cuUserObjectCreate(
    object_out: Out<'_, CUuserObject>,
    ptr: *mut c_void,
    destroy: CUhostFn,
    initialRefcount: c_uint,
    flags: c_uint,
) -> Result {
    crate::process::driver()?;
    // CUDA: the one flag there is (the destructor may run at any time) has to be given.
    if destroy.is_none() || initialRefcount == 0 || initialRefcount > i32::MAX as c_uint || flags != 1 {
        return Err(Error::InvalidValue("destroy, initialRefcount or flags"));
    }
    object_out.write(user_object::create(ptr, destroy, initialRefcount)?);
    Ok(())
}

pub fn cuUserObjectRetain(object: CUuserObject, count: c_uint) -> Result {
    crate::process::driver()?;
    if count == 0 {
        return Err(Error::InvalidValue("count"));
    }
    user_object::retain(object, count)
}

pub fn cuUserObjectRelease(object: CUuserObject, count: c_uint) -> Result {
    crate::process::driver()?;
    if count == 0 {
        return Err(Error::InvalidValue("count"));
    }
    user_object::release(object, count)
}

/// With CU_GRAPH_USER_OBJECT_MOVE the caller's references become the graph's.
pub fn cuGraphRetainUserObject(graph: CUgraph, object: CUuserObject, count: c_uint, flags: c_uint) -> Result {
    if count == 0 || flags > 1 {
        return Err(Error::InvalidValue("count or flags"));
    }
    Graph::from_handle(graph)?.hold(object, count, flags == 1)
}

pub fn cuGraphReleaseUserObject(graph: CUgraph, object: CUuserObject, count: c_uint) -> Result {
    Graph::from_handle(graph)?.let_go(object, count)
}
