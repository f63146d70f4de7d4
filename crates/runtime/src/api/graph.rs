//! Graph management: graphs, their edges, instantiated graphs. The nodes are in `graph_node`.
//!
//! Handles and most enums are the driver's. Majors 11 and 12 give unversioned names to the calls without edge data, 13 to
//! those with them.

use core::ffi::{c_char, c_int, c_uint, c_ulonglong, c_void};
use std::ptr;

use border::{OptOut, Out};
use cuda_abi::runtime::{
    cudaExecutionContext_t, cudaGraph_t, cudaGraphConditionalHandle, cudaGraphEdgeData, cudaGraphExec_t,
    cudaGraphExecUpdateResult, cudaGraphExecUpdateResultInfo, cudaGraphInstantiateParams,
    cudaGraphMemAttributeType, cudaGraphNode_t, cudaGraphNodeType, cudaHostFn_t, cudaStream_t,
    cudaUserObject_t,
};
use cuda_abi::{
    CUDA_GRAPH_INSTANTIATE_PARAMS, CUcontext, CUgraphEdgeData, CUgraphExecUpdateResultInfo,
    CUgraphMem_attribute, CUgraphNodeType,
};

use super::execution_context::driver_context;
use crate::driver::Driver;
use crate::{Error, Result, device, stream};

/// Makes a handle and gives it to the program.
pub fn made<T>(out: Out<'_, *mut T>, make: impl FnOnce(&Driver, *mut *mut T) -> Result) -> Result {
    let mut handle = ptr::null_mut();
    make(device::attach()?, &mut handle)?;
    out.write(handle);
    Ok(())
}

/// The context of the calls that name one in the driver and none here.
pub fn current_context(driver: &Driver) -> Result<CUcontext> {
    let mut context = ptr::null_mut();
    driver.cuCtxGetCurrent(&mut context)?;
    Ok(context)
}

/// The driver's edge data have the same eight bytes.
pub fn edges(data: *const cudaGraphEdgeData) -> *const CUgraphEdgeData {
    const { assert!(size_of::<cudaGraphEdgeData>() == size_of::<CUgraphEdgeData>()) };
    data.cast()
}

pub fn cudaGraphCreate(pGraph: Out<'_, cudaGraph_t>, flags: c_uint) -> Result {
    made(pGraph, |driver, graph| driver.cuGraphCreate(graph, flags))
}

pub fn cudaGraphDestroy(graph: cudaGraph_t) -> Result {
    device::attach()?.cuGraphDestroy(graph)
}

pub fn cudaGraphClone(pGraphClone: Out<'_, cudaGraph_t>, originalGraph: cudaGraph_t) -> Result {
    made(pGraphClone, |driver, graph| driver.cuGraphClone(graph, originalGraph))
}

pub fn cudaGraphGetId(hGraph: cudaGraph_t, graphID: Out<'_, c_uint>) -> Result {
    device::attach()?.cuGraphGetId(hGraph, graphID.as_ptr())
}

pub fn cudaGraphExecGetId(hGraphExec: cudaGraphExec_t, graphID: Out<'_, c_uint>) -> Result {
    device::attach()?.cuGraphExecGetId(hGraphExec, graphID.as_ptr())
}

pub fn cudaGraphDebugDotPrint(graph: cudaGraph_t, path: *const c_char, flags: c_uint) -> Result {
    device::attach()?.cuGraphDebugDotPrint(graph, path, flags)
}

fn add_dependencies(
    graph: cudaGraph_t,
    from: *const cudaGraphNode_t,
    to: *const cudaGraphNode_t,
    n: usize,
) -> Result {
    device::attach()?.cuGraphAddDependencies(graph, from, to, n)
}

pub fn cudaGraphAddDependencies_v11(
    graph: cudaGraph_t,
    from: *const cudaGraphNode_t,
    to: *const cudaGraphNode_t,
    numDependencies: usize,
) -> Result {
    add_dependencies(graph, from, to, numDependencies)
}

pub fn cudaGraphAddDependencies_v12(
    graph: cudaGraph_t,
    from: *const cudaGraphNode_t,
    to: *const cudaGraphNode_t,
    numDependencies: usize,
) -> Result {
    add_dependencies(graph, from, to, numDependencies)
}

pub fn cudaGraphAddDependencies_v13(
    graph: cudaGraph_t,
    from: *const cudaGraphNode_t,
    to: *const cudaGraphNode_t,
    edgeData: *const cudaGraphEdgeData,
    numDependencies: usize,
) -> Result {
    cudaGraphAddDependencies_v2(graph, from, to, edgeData, numDependencies)
}

pub fn cudaGraphAddDependencies_v2(
    graph: cudaGraph_t,
    from: *const cudaGraphNode_t,
    to: *const cudaGraphNode_t,
    edgeData: *const cudaGraphEdgeData,
    numDependencies: usize,
) -> Result {
    if edgeData.is_null() {
        return add_dependencies(graph, from, to, numDependencies);
    }
    device::attach()?.cuGraphAddDependencies_v2(graph, from, to, edges(edgeData), numDependencies)
}

fn remove_dependencies(
    graph: cudaGraph_t,
    from: *const cudaGraphNode_t,
    to: *const cudaGraphNode_t,
    n: usize,
) -> Result {
    device::attach()?.cuGraphRemoveDependencies(graph, from, to, n)
}

pub fn cudaGraphRemoveDependencies_v11(
    graph: cudaGraph_t,
    from: *const cudaGraphNode_t,
    to: *const cudaGraphNode_t,
    numDependencies: usize,
) -> Result {
    remove_dependencies(graph, from, to, numDependencies)
}

pub fn cudaGraphRemoveDependencies_v12(
    graph: cudaGraph_t,
    from: *const cudaGraphNode_t,
    to: *const cudaGraphNode_t,
    numDependencies: usize,
) -> Result {
    remove_dependencies(graph, from, to, numDependencies)
}

pub fn cudaGraphRemoveDependencies_v13(
    graph: cudaGraph_t,
    from: *const cudaGraphNode_t,
    to: *const cudaGraphNode_t,
    edgeData: *const cudaGraphEdgeData,
    numDependencies: usize,
) -> Result {
    cudaGraphRemoveDependencies_v2(graph, from, to, edgeData, numDependencies)
}

pub fn cudaGraphRemoveDependencies_v2(
    graph: cudaGraph_t,
    from: *const cudaGraphNode_t,
    to: *const cudaGraphNode_t,
    edgeData: *const cudaGraphEdgeData,
    numDependencies: usize,
) -> Result {
    if edgeData.is_null() {
        return remove_dependencies(graph, from, to, numDependencies);
    }
    device::attach()?.cuGraphRemoveDependencies_v2(graph, from, to, edges(edgeData), numDependencies)
}

pub fn cudaGraphGetNodes(graph: cudaGraph_t, nodes: *mut cudaGraphNode_t, numNodes: *mut usize) -> Result {
    device::attach()?.cuGraphGetNodes(graph, nodes, numNodes)
}

pub fn cudaGraphGetRootNodes(
    graph: cudaGraph_t,
    pRootNodes: *mut cudaGraphNode_t,
    pNumRootNodes: *mut usize,
) -> Result {
    device::attach()?.cuGraphGetRootNodes(graph, pRootNodes, pNumRootNodes)
}

fn get_edges(
    graph: cudaGraph_t,
    from: *mut cudaGraphNode_t,
    to: *mut cudaGraphNode_t,
    n: *mut usize,
) -> Result {
    device::attach()?.cuGraphGetEdges(graph, from, to, n)
}

pub fn cudaGraphGetEdges_v11(
    graph: cudaGraph_t,
    from: *mut cudaGraphNode_t,
    to: *mut cudaGraphNode_t,
    numEdges: *mut usize,
) -> Result {
    get_edges(graph, from, to, numEdges)
}

pub fn cudaGraphGetEdges_v12(
    graph: cudaGraph_t,
    from: *mut cudaGraphNode_t,
    to: *mut cudaGraphNode_t,
    numEdges: *mut usize,
) -> Result {
    get_edges(graph, from, to, numEdges)
}

pub fn cudaGraphGetEdges_v13(
    graph: cudaGraph_t,
    from: *mut cudaGraphNode_t,
    to: *mut cudaGraphNode_t,
    edgeData: *mut cudaGraphEdgeData,
    numEdges: *mut usize,
) -> Result {
    cudaGraphGetEdges_v2(graph, from, to, edgeData, numEdges)
}

pub fn cudaGraphGetEdges_v2(
    graph: cudaGraph_t,
    from: *mut cudaGraphNode_t,
    to: *mut cudaGraphNode_t,
    edgeData: *mut cudaGraphEdgeData,
    numEdges: *mut usize,
) -> Result {
    device::attach()?.cuGraphGetEdges_v2(graph, from, to, edges(edgeData).cast_mut(), numEdges)
}

fn get_dependencies(node: cudaGraphNode_t, list: *mut cudaGraphNode_t, n: *mut usize) -> Result {
    device::attach()?.cuGraphNodeGetDependencies(node, list, n)
}

pub fn cudaGraphNodeGetDependencies_v11(
    node: cudaGraphNode_t,
    pDependencies: *mut cudaGraphNode_t,
    pNumDependencies: *mut usize,
) -> Result {
    get_dependencies(node, pDependencies, pNumDependencies)
}

pub fn cudaGraphNodeGetDependencies_v12(
    node: cudaGraphNode_t,
    pDependencies: *mut cudaGraphNode_t,
    pNumDependencies: *mut usize,
) -> Result {
    get_dependencies(node, pDependencies, pNumDependencies)
}

pub fn cudaGraphNodeGetDependencies_v13(
    node: cudaGraphNode_t,
    pDependencies: *mut cudaGraphNode_t,
    edgeData: *mut cudaGraphEdgeData,
    pNumDependencies: *mut usize,
) -> Result {
    cudaGraphNodeGetDependencies_v2(node, pDependencies, edgeData, pNumDependencies)
}

pub fn cudaGraphNodeGetDependencies_v2(
    node: cudaGraphNode_t,
    pDependencies: *mut cudaGraphNode_t,
    edgeData: *mut cudaGraphEdgeData,
    pNumDependencies: *mut usize,
) -> Result {
    let data = edges(edgeData).cast_mut();
    device::attach()?.cuGraphNodeGetDependencies_v2(node, pDependencies, data, pNumDependencies)
}

fn get_dependents(node: cudaGraphNode_t, list: *mut cudaGraphNode_t, n: *mut usize) -> Result {
    device::attach()?.cuGraphNodeGetDependentNodes(node, list, n)
}

pub fn cudaGraphNodeGetDependentNodes_v11(
    node: cudaGraphNode_t,
    pDependentNodes: *mut cudaGraphNode_t,
    pNumDependentNodes: *mut usize,
) -> Result {
    get_dependents(node, pDependentNodes, pNumDependentNodes)
}

pub fn cudaGraphNodeGetDependentNodes_v12(
    node: cudaGraphNode_t,
    pDependentNodes: *mut cudaGraphNode_t,
    pNumDependentNodes: *mut usize,
) -> Result {
    get_dependents(node, pDependentNodes, pNumDependentNodes)
}

pub fn cudaGraphNodeGetDependentNodes_v13(
    node: cudaGraphNode_t,
    pDependentNodes: *mut cudaGraphNode_t,
    edgeData: *mut cudaGraphEdgeData,
    pNumDependentNodes: *mut usize,
) -> Result {
    cudaGraphNodeGetDependentNodes_v2(node, pDependentNodes, edgeData, pNumDependentNodes)
}

pub fn cudaGraphNodeGetDependentNodes_v2(
    node: cudaGraphNode_t,
    pDependentNodes: *mut cudaGraphNode_t,
    edgeData: *mut cudaGraphEdgeData,
    pNumDependentNodes: *mut usize,
) -> Result {
    let data = edges(edgeData).cast_mut();
    device::attach()?.cuGraphNodeGetDependentNodes_v2(node, pDependentNodes, data, pNumDependentNodes)
}

/// The types have the driver's numbers.
pub fn cudaGraphNodeGetType(node: cudaGraphNode_t, pType: Out<'_, cudaGraphNodeType>) -> Result {
    let mut found = CUgraphNodeType(0);
    device::attach()?.cuGraphNodeGetType(node, &mut found)?;
    pType.write(cudaGraphNodeType(found.0));
    Ok(())
}

pub fn cudaGraphDestroyNode(node: cudaGraphNode_t) -> Result {
    device::attach()?.cuGraphDestroyNode(node)
}

pub fn cudaGraphNodeFindInClone(
    pNode: Out<'_, cudaGraphNode_t>,
    originalNode: cudaGraphNode_t,
    clonedGraph: cudaGraph_t,
) -> Result {
    made(pNode, |driver, node| driver.cuGraphNodeFindInClone(node, originalNode, clonedGraph))
}

pub fn cudaGraphNodeGetContainingGraph(hNode: cudaGraphNode_t, phGraph: Out<'_, cudaGraph_t>) -> Result {
    made(phGraph, |driver, graph| driver.cuGraphNodeGetContainingGraph(hNode, graph))
}

pub fn cudaGraphNodeGetLocalId(hNode: cudaGraphNode_t, nodeId: Out<'_, c_uint>) -> Result {
    device::attach()?.cuGraphNodeGetLocalId(hNode, nodeId.as_ptr())
}

pub fn cudaGraphNodeGetToolsId(hNode: cudaGraphNode_t, toolsNodeId: Out<'_, c_ulonglong>) -> Result {
    device::attach()?.cuGraphNodeGetToolsId(hNode, toolsNodeId.as_ptr())
}

pub fn cudaGraphNodeSetEnabled(
    hGraphExec: cudaGraphExec_t,
    hNode: cudaGraphNode_t,
    isEnabled: c_uint,
) -> Result {
    device::attach()?.cuGraphNodeSetEnabled(hGraphExec, hNode, isEnabled)
}

pub fn cudaGraphNodeGetEnabled(
    hGraphExec: cudaGraphExec_t,
    hNode: cudaGraphNode_t,
    isEnabled: Out<'_, c_uint>,
) -> Result {
    device::attach()?.cuGraphNodeGetEnabled(hGraphExec, hNode, isEnabled.as_ptr())
}

/// In 11 the call has a place for a message and a node; there is nothing to say about either.
pub fn cudaGraphInstantiate_v11(
    pGraphExec: Out<'_, cudaGraphExec_t>,
    graph: cudaGraph_t,
    pErrorNode: OptOut<'_, cudaGraphNode_t>,
    pLogBuffer: OptOut<'_, c_char>,
    bufferSize: usize,
) -> Result {
    if bufferSize > 0 {
        pLogBuffer.write(0);
    }
    pErrorNode.write(ptr::null_mut());
    cudaGraphInstantiateWithFlags(pGraphExec, graph, 0)
}

pub fn cudaGraphInstantiate_v12(
    pGraphExec: Out<'_, cudaGraphExec_t>,
    graph: cudaGraph_t,
    flags: c_ulonglong,
) -> Result {
    cudaGraphInstantiateWithFlags(pGraphExec, graph, flags)
}

pub fn cudaGraphInstantiate_v13(
    pGraphExec: Out<'_, cudaGraphExec_t>,
    graph: cudaGraph_t,
    flags: c_ulonglong,
) -> Result {
    cudaGraphInstantiateWithFlags(pGraphExec, graph, flags)
}

pub fn cudaGraphInstantiateWithFlags(
    pGraphExec: Out<'_, cudaGraphExec_t>,
    graph: cudaGraph_t,
    flags: c_ulonglong,
) -> Result {
    made(pGraphExec, |driver, exec| driver.cuGraphInstantiateWithFlags(exec, graph, flags))
}

/// The structure is the driver's, the stream in it may be the default one of this call.
///
/// # Safety
/// `instantiateParams` is NULL, or a structure that may be read and written.
pub unsafe fn cudaGraphInstantiateWithParams(
    pGraphExec: Out<'_, cudaGraphExec_t>,
    graph: cudaGraph_t,
    instantiateParams: *mut cudaGraphInstantiateParams,
) -> Result {
    const {
        assert!(size_of::<cudaGraphInstantiateParams>() == size_of::<CUDA_GRAPH_INSTANTIATE_PARAMS>());
    }
    // SAFETY: the caller's promise.
    let params = unsafe { instantiateParams.as_mut() }.ok_or(Error::InvalidValue("instantiateParams"))?;
    let mut inner = *params;
    inner.uploadStream = stream::meant(params.uploadStream);
    let answer = made(pGraphExec, |driver, exec| {
        driver.cuGraphInstantiateWithParams(exec, graph, ptr::from_mut(&mut inner).cast())
    });
    params.errNode_out = inner.errNode_out;
    params.result_out = inner.result_out;
    answer
}

pub fn cudaGraphExecDestroy(graphExec: cudaGraphExec_t) -> Result {
    device::attach()?.cuGraphExecDestroy(graphExec)
}

pub fn cudaGraphExecGetFlags(graphExec: cudaGraphExec_t, flags: Out<'_, c_ulonglong>) -> Result {
    let mut found = 0;
    device::attach()?.cuGraphExecGetFlags(graphExec, &mut found)?;
    flags.write(found);
    Ok(())
}

pub fn cudaGraphUpload(graphExec: cudaGraphExec_t, stream: cudaStream_t) -> Result {
    device::attach()?.cuGraphUpload(graphExec, stream::meant(stream))
}

pub fn cudaGraphLaunch(graphExec: cudaGraphExec_t, stream: cudaStream_t) -> Result {
    device::attach()?.cuGraphLaunch(graphExec, stream::meant(stream))
}

/// What the driver says of an update goes to the program also when the update was refused.
fn update(exec: cudaGraphExec_t, graph: cudaGraph_t) -> Result<(CUgraphExecUpdateResultInfo, Result)> {
    let mut info = CUgraphExecUpdateResultInfo::default();
    let answer = device::attach()?.cuGraphExecUpdate_v2(exec, graph, &mut info);
    Ok((info, answer))
}

pub fn cudaGraphExecUpdate_v11(
    hGraphExec: cudaGraphExec_t,
    hGraph: cudaGraph_t,
    hErrorNode_out: OptOut<'_, cudaGraphNode_t>,
    updateResult_out: Out<'_, cudaGraphExecUpdateResult>,
) -> Result {
    let (info, answer) = update(hGraphExec, hGraph)?;
    hErrorNode_out.write(info.errorNode);
    updateResult_out.write(cudaGraphExecUpdateResult(info.result.0));
    answer
}

pub fn cudaGraphExecUpdate_v12(
    hGraphExec: cudaGraphExec_t,
    hGraph: cudaGraph_t,
    resultInfo: Out<'_, cudaGraphExecUpdateResultInfo>,
) -> Result {
    let (info, answer) = update(hGraphExec, hGraph)?;
    resultInfo.write(cudaGraphExecUpdateResultInfo {
        result: cudaGraphExecUpdateResult(info.result.0),
        errorNode: info.errorNode,
        errorFromNode: info.errorFromNode,
    });
    answer
}

pub fn cudaGraphExecUpdate_v13(
    hGraphExec: cudaGraphExec_t,
    hGraph: cudaGraph_t,
    resultInfo: Out<'_, cudaGraphExecUpdateResultInfo>,
) -> Result {
    cudaGraphExecUpdate_v12(hGraphExec, hGraph, resultInfo)
}

pub fn cudaGraphConditionalHandleCreate(
    pHandle_out: Out<'_, cudaGraphConditionalHandle>,
    graph: cudaGraph_t,
    defaultLaunchValue: c_uint,
    flags: c_uint,
) -> Result {
    cudaGraphConditionalHandleCreate_v2(pHandle_out, graph, ptr::null_mut(), defaultLaunchValue, flags)
}

pub fn cudaGraphConditionalHandleCreate_v2(
    pHandle_out: Out<'_, cudaGraphConditionalHandle>,
    graph: cudaGraph_t,
    ctx: cudaExecutionContext_t,
    defaultLaunchValue: c_uint,
    flags: c_uint,
) -> Result {
    let driver = device::attach()?;
    let (mut handle, context) = (0, driver_context(driver, ctx)?);
    driver.cuGraphConditionalHandleCreate(&mut handle, graph, context, defaultLaunchValue, flags)?;
    pHandle_out.write(handle);
    Ok(())
}

pub fn cudaDeviceGetGraphMemAttribute(
    device: c_int,
    attr: cudaGraphMemAttributeType,
    value: *mut c_void,
) -> Result {
    let device = device::at(device)?.handle;
    device::attach()?.cuDeviceGetGraphMemAttribute(device, CUgraphMem_attribute(attr.0), value)
}

pub fn cudaDeviceSetGraphMemAttribute(
    device: c_int,
    attr: cudaGraphMemAttributeType,
    value: *mut c_void,
) -> Result {
    let device = device::at(device)?.handle;
    device::attach()?.cuDeviceSetGraphMemAttribute(device, CUgraphMem_attribute(attr.0), value)
}

pub fn cudaDeviceGraphMemTrim(device: c_int) -> Result {
    let device = device::at(device)?.handle;
    device::attach()?.cuDeviceGraphMemTrim(device)
}

pub fn cudaUserObjectCreate(
    object_out: Out<'_, cudaUserObject_t>,
    ptr: *mut c_void,
    destroy: cudaHostFn_t,
    initialRefcount: c_uint,
    flags: c_uint,
) -> Result {
    made(object_out, |driver, object| driver.cuUserObjectCreate(object, ptr, destroy, initialRefcount, flags))
}

pub fn cudaUserObjectRetain(object: cudaUserObject_t, count: c_uint) -> Result {
    device::attach()?.cuUserObjectRetain(object, count)
}

pub fn cudaUserObjectRelease(object: cudaUserObject_t, count: c_uint) -> Result {
    device::attach()?.cuUserObjectRelease(object, count)
}

pub fn cudaGraphRetainUserObject(
    graph: cudaGraph_t,
    object: cudaUserObject_t,
    count: c_uint,
    flags: c_uint,
) -> Result {
    device::attach()?.cuGraphRetainUserObject(graph, object, count, flags)
}

pub fn cudaGraphReleaseUserObject(graph: cudaGraph_t, object: cudaUserObject_t, count: c_uint) -> Result {
    device::attach()?.cuGraphReleaseUserObject(graph, object, count)
}
