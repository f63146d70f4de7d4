//! Graph management: nodes of each type, in graphs and in instantiated graphs.

use core::ffi::c_void;
use std::ptr;

use border::Out;
use cuda_abi::runtime::{
    cudaEvent_t, cudaGraph_t, cudaGraphEdgeData, cudaGraphExec_t, cudaGraphNode_t, cudaHostNodeParams,
    cudaKernelNodeParams, cudaLaunchAttributeID, cudaMemcpy3DParms, cudaMemcpyKind, cudaMemsetParams, v13,
};
use cuda_abi::{
    CUDA_HOST_NODE_PARAMS, CUDA_KERNEL_NODE_PARAMS, CUDA_MEM_ALLOC_NODE_PARAMS, CUDA_MEMCPY3D,
    CUDA_MEMSET_NODE_PARAMS, CUgraphNodeParams, CUlaunchAttributeID, CUlaunchAttributeValue,
};

use super::graph::{current_context, edges, made};
use super::graph_params::{NodeParams, copy, copy_back, from_driver_v13, kernel, kernel_back, row};
use super::memory::{address, pointer};
use super::symbol::{Side, part};
use crate::{Result, device};

/// The driver's structure, which has the same members.
fn fill(params: &cudaMemsetParams) -> *const CUDA_MEMSET_NODE_PARAMS {
    const { assert!(size_of::<cudaMemsetParams>() == size_of::<CUDA_MEMSET_NODE_PARAMS>()) };
    ptr::from_ref(params).cast()
}

/// The driver's structure, which has the same members.
fn host(params: *const cudaHostNodeParams) -> *const CUDA_HOST_NODE_PARAMS {
    const { assert!(size_of::<cudaHostNodeParams>() == size_of::<CUDA_HOST_NODE_PARAMS>()) };
    params.cast()
}

pub fn cudaGraphAddKernelNode(
    pGraphNode: Out<'_, cudaGraphNode_t>,
    graph: cudaGraph_t,
    pDependencies: *const cudaGraphNode_t,
    numDependencies: usize,
    pNodeParams: &cudaKernelNodeParams,
) -> Result {
    let params = kernel(pNodeParams)?;
    made(pGraphNode, |driver, node| {
        driver.cuGraphAddKernelNode_v2(node, graph, pDependencies, numDependencies, &params)
    })
}

pub fn cudaGraphKernelNodeGetParams(
    node: cudaGraphNode_t,
    pNodeParams: Out<'_, cudaKernelNodeParams>,
) -> Result {
    let mut params = CUDA_KERNEL_NODE_PARAMS::default();
    device::attach()?.cuGraphKernelNodeGetParams_v2(node, &mut params)?;
    pNodeParams.write(kernel_back(&params));
    Ok(())
}

pub fn cudaGraphKernelNodeSetParams(node: cudaGraphNode_t, pNodeParams: &cudaKernelNodeParams) -> Result {
    device::attach()?.cuGraphKernelNodeSetParams_v2(node, &kernel(pNodeParams)?)
}

pub fn cudaGraphExecKernelNodeSetParams(
    hGraphExec: cudaGraphExec_t,
    node: cudaGraphNode_t,
    pNodeParams: &cudaKernelNodeParams,
) -> Result {
    device::attach()?.cuGraphExecKernelNodeSetParams_v2(hGraphExec, node, &kernel(pNodeParams)?)
}

/// `Value` is the major's cudaLaunchAttributeValue, which has the driver's layout in all of them.
pub fn cudaGraphKernelNodeGetAttribute<Value>(
    hNode: cudaGraphNode_t,
    attr: cudaLaunchAttributeID,
    value_out: Out<'_, Value>,
) -> Result {
    const { assert!(size_of::<Value>() == size_of::<CUlaunchAttributeValue>()) };
    let id = CUlaunchAttributeID(attr.0);
    device::attach()?.cuGraphKernelNodeGetAttribute(hNode, id, value_out.as_ptr().cast())
}

/// `Value` as in cudaGraphKernelNodeGetAttribute.
pub fn cudaGraphKernelNodeSetAttribute<Value>(
    hNode: cudaGraphNode_t,
    attr: cudaLaunchAttributeID,
    // The driver writes there the handle of a node that kernels change.
    value: *const Value,
) -> Result {
    const { assert!(size_of::<Value>() == size_of::<CUlaunchAttributeValue>()) };
    let id = CUlaunchAttributeID(attr.0);
    device::attach()?.cuGraphKernelNodeSetAttribute(hNode, id, value.cast())
}

/// 11 and 12 name the source first, 13 the destination, as the driver does.
pub fn cudaGraphKernelNodeCopyAttributes_v11(hSrc: cudaGraphNode_t, hDst: cudaGraphNode_t) -> Result {
    device::attach()?.cuGraphKernelNodeCopyAttributes(hDst, hSrc)
}

pub fn cudaGraphKernelNodeCopyAttributes_v12(hSrc: cudaGraphNode_t, hDst: cudaGraphNode_t) -> Result {
    device::attach()?.cuGraphKernelNodeCopyAttributes(hDst, hSrc)
}

pub fn cudaGraphKernelNodeCopyAttributes_v13(hDst: cudaGraphNode_t, hSrc: cudaGraphNode_t) -> Result {
    device::attach()?.cuGraphKernelNodeCopyAttributes(hDst, hSrc)
}

pub fn cudaGraphAddMemcpyNode(
    pGraphNode: Out<'_, cudaGraphNode_t>,
    graph: cudaGraph_t,
    pDependencies: *const cudaGraphNode_t,
    numDependencies: usize,
    pCopyParams: &cudaMemcpy3DParms,
) -> Result {
    let copy = copy(pCopyParams)?;
    made(pGraphNode, |driver, node| {
        let context = current_context(driver)?;
        driver.cuGraphAddMemcpyNode(node, graph, pDependencies, numDependencies, &copy, context)
    })
}

pub fn cudaGraphAddMemcpyNode1D(
    pGraphNode: Out<'_, cudaGraphNode_t>,
    graph: cudaGraph_t,
    pDependencies: *const cudaGraphNode_t,
    numDependencies: usize,
    dst: *mut c_void,
    src: *const c_void,
    count: usize,
    kind: cudaMemcpyKind,
) -> Result {
    cudaGraphAddMemcpyNode(pGraphNode, graph, pDependencies, numDependencies, &row(dst, src, count, kind))
}

pub fn cudaGraphAddMemcpyNodeToSymbol(
    pGraphNode: Out<'_, cudaGraphNode_t>,
    graph: cudaGraph_t,
    pDependencies: *const cudaGraphNode_t,
    numDependencies: usize,
    symbol: *const c_void,
    src: *const c_void,
    count: usize,
    offset: usize,
    kind: cudaMemcpyKind,
) -> Result {
    let parms = row(part(symbol, offset, count, kind, Side::Target)?, src, count, kind);
    cudaGraphAddMemcpyNode(pGraphNode, graph, pDependencies, numDependencies, &parms)
}

pub fn cudaGraphAddMemcpyNodeFromSymbol(
    pGraphNode: Out<'_, cudaGraphNode_t>,
    graph: cudaGraph_t,
    pDependencies: *const cudaGraphNode_t,
    numDependencies: usize,
    dst: *mut c_void,
    symbol: *const c_void,
    count: usize,
    offset: usize,
    kind: cudaMemcpyKind,
) -> Result {
    let parms = row(dst, part(symbol, offset, count, kind, Side::Source)?, count, kind);
    cudaGraphAddMemcpyNode(pGraphNode, graph, pDependencies, numDependencies, &parms)
}

pub fn cudaGraphMemcpyNodeGetParams(
    node: cudaGraphNode_t,
    pNodeParams: Out<'_, cudaMemcpy3DParms>,
) -> Result {
    let driver = device::attach()?;
    let mut copy = CUDA_MEMCPY3D::default();
    driver.cuGraphMemcpyNodeGetParams(node, &mut copy)?;
    pNodeParams.write(copy_back(driver, &copy)?);
    Ok(())
}

pub fn cudaGraphMemcpyNodeSetParams(node: cudaGraphNode_t, pNodeParams: &cudaMemcpy3DParms) -> Result {
    device::attach()?.cuGraphMemcpyNodeSetParams(node, &copy(pNodeParams)?)
}

pub fn cudaGraphMemcpyNodeSetParams1D(
    node: cudaGraphNode_t,
    dst: *mut c_void,
    src: *const c_void,
    count: usize,
    kind: cudaMemcpyKind,
) -> Result {
    cudaGraphMemcpyNodeSetParams(node, &row(dst, src, count, kind))
}

pub fn cudaGraphMemcpyNodeSetParamsToSymbol(
    node: cudaGraphNode_t,
    symbol: *const c_void,
    src: *const c_void,
    count: usize,
    offset: usize,
    kind: cudaMemcpyKind,
) -> Result {
    let target = part(symbol, offset, count, kind, Side::Target)?;
    cudaGraphMemcpyNodeSetParams(node, &row(target, src, count, kind))
}

pub fn cudaGraphMemcpyNodeSetParamsFromSymbol(
    node: cudaGraphNode_t,
    dst: *mut c_void,
    symbol: *const c_void,
    count: usize,
    offset: usize,
    kind: cudaMemcpyKind,
) -> Result {
    let source = part(symbol, offset, count, kind, Side::Source)?;
    cudaGraphMemcpyNodeSetParams(node, &row(dst, source, count, kind))
}

pub fn cudaGraphExecMemcpyNodeSetParams(
    hGraphExec: cudaGraphExec_t,
    node: cudaGraphNode_t,
    pNodeParams: &cudaMemcpy3DParms,
) -> Result {
    let copy = copy(pNodeParams)?;
    let driver = device::attach()?;
    driver.cuGraphExecMemcpyNodeSetParams(hGraphExec, node, &copy, current_context(driver)?)
}

pub fn cudaGraphExecMemcpyNodeSetParams1D(
    hGraphExec: cudaGraphExec_t,
    node: cudaGraphNode_t,
    dst: *mut c_void,
    src: *const c_void,
    count: usize,
    kind: cudaMemcpyKind,
) -> Result {
    cudaGraphExecMemcpyNodeSetParams(hGraphExec, node, &row(dst, src, count, kind))
}

pub fn cudaGraphExecMemcpyNodeSetParamsToSymbol(
    hGraphExec: cudaGraphExec_t,
    node: cudaGraphNode_t,
    symbol: *const c_void,
    src: *const c_void,
    count: usize,
    offset: usize,
    kind: cudaMemcpyKind,
) -> Result {
    let target = part(symbol, offset, count, kind, Side::Target)?;
    cudaGraphExecMemcpyNodeSetParams(hGraphExec, node, &row(target, src, count, kind))
}

pub fn cudaGraphExecMemcpyNodeSetParamsFromSymbol(
    hGraphExec: cudaGraphExec_t,
    node: cudaGraphNode_t,
    dst: *mut c_void,
    symbol: *const c_void,
    count: usize,
    offset: usize,
    kind: cudaMemcpyKind,
) -> Result {
    let source = part(symbol, offset, count, kind, Side::Source)?;
    cudaGraphExecMemcpyNodeSetParams(hGraphExec, node, &row(dst, source, count, kind))
}

pub fn cudaGraphAddMemsetNode(
    pGraphNode: Out<'_, cudaGraphNode_t>,
    graph: cudaGraph_t,
    pDependencies: *const cudaGraphNode_t,
    numDependencies: usize,
    pMemsetParams: &cudaMemsetParams,
) -> Result {
    made(pGraphNode, |driver, node| {
        let context = current_context(driver)?;
        driver.cuGraphAddMemsetNode(node, graph, pDependencies, numDependencies, fill(pMemsetParams), context)
    })
}

pub fn cudaGraphMemsetNodeGetParams(node: cudaGraphNode_t, pNodeParams: Out<'_, cudaMemsetParams>) -> Result {
    device::attach()?.cuGraphMemsetNodeGetParams(node, pNodeParams.as_ptr().cast())
}

pub fn cudaGraphMemsetNodeSetParams(node: cudaGraphNode_t, pNodeParams: &cudaMemsetParams) -> Result {
    device::attach()?.cuGraphMemsetNodeSetParams(node, fill(pNodeParams))
}

pub fn cudaGraphExecMemsetNodeSetParams(
    hGraphExec: cudaGraphExec_t,
    node: cudaGraphNode_t,
    pNodeParams: &cudaMemsetParams,
) -> Result {
    let driver = device::attach()?;
    driver.cuGraphExecMemsetNodeSetParams(hGraphExec, node, fill(pNodeParams), current_context(driver)?)
}

pub fn cudaGraphAddHostNode(
    pGraphNode: Out<'_, cudaGraphNode_t>,
    graph: cudaGraph_t,
    pDependencies: *const cudaGraphNode_t,
    numDependencies: usize,
    pNodeParams: &cudaHostNodeParams,
) -> Result {
    made(pGraphNode, |driver, node| {
        driver.cuGraphAddHostNode(node, graph, pDependencies, numDependencies, host(pNodeParams))
    })
}

pub fn cudaGraphHostNodeGetParams(node: cudaGraphNode_t, pNodeParams: Out<'_, cudaHostNodeParams>) -> Result {
    device::attach()?.cuGraphHostNodeGetParams(node, host(pNodeParams.as_ptr()).cast_mut())
}

pub fn cudaGraphHostNodeSetParams(node: cudaGraphNode_t, pNodeParams: &cudaHostNodeParams) -> Result {
    device::attach()?.cuGraphHostNodeSetParams(node, host(pNodeParams))
}

pub fn cudaGraphExecHostNodeSetParams(
    hGraphExec: cudaGraphExec_t,
    node: cudaGraphNode_t,
    pNodeParams: &cudaHostNodeParams,
) -> Result {
    device::attach()?.cuGraphExecHostNodeSetParams(hGraphExec, node, host(pNodeParams))
}

pub fn cudaGraphAddChildGraphNode(
    pGraphNode: Out<'_, cudaGraphNode_t>,
    graph: cudaGraph_t,
    pDependencies: *const cudaGraphNode_t,
    numDependencies: usize,
    childGraph: cudaGraph_t,
) -> Result {
    made(pGraphNode, |driver, node| {
        driver.cuGraphAddChildGraphNode(node, graph, pDependencies, numDependencies, childGraph)
    })
}

pub fn cudaGraphChildGraphNodeGetGraph(node: cudaGraphNode_t, pGraph: Out<'_, cudaGraph_t>) -> Result {
    made(pGraph, |driver, graph| driver.cuGraphChildGraphNodeGetGraph(node, graph))
}

pub fn cudaGraphExecChildGraphNodeSetParams(
    hGraphExec: cudaGraphExec_t,
    node: cudaGraphNode_t,
    childGraph: cudaGraph_t,
) -> Result {
    device::attach()?.cuGraphExecChildGraphNodeSetParams(hGraphExec, node, childGraph)
}

pub fn cudaGraphAddEmptyNode(
    pGraphNode: Out<'_, cudaGraphNode_t>,
    graph: cudaGraph_t,
    pDependencies: *const cudaGraphNode_t,
    numDependencies: usize,
) -> Result {
    made(pGraphNode, |driver, node| driver.cuGraphAddEmptyNode(node, graph, pDependencies, numDependencies))
}

pub fn cudaGraphAddEventRecordNode(
    pGraphNode: Out<'_, cudaGraphNode_t>,
    graph: cudaGraph_t,
    pDependencies: *const cudaGraphNode_t,
    numDependencies: usize,
    event: cudaEvent_t,
) -> Result {
    made(pGraphNode, |driver, node| {
        driver.cuGraphAddEventRecordNode(node, graph, pDependencies, numDependencies, event)
    })
}

pub fn cudaGraphEventRecordNodeGetEvent(node: cudaGraphNode_t, event_out: Out<'_, cudaEvent_t>) -> Result {
    made(event_out, |driver, event| driver.cuGraphEventRecordNodeGetEvent(node, event))
}

pub fn cudaGraphEventRecordNodeSetEvent(node: cudaGraphNode_t, event: cudaEvent_t) -> Result {
    device::attach()?.cuGraphEventRecordNodeSetEvent(node, event)
}

pub fn cudaGraphExecEventRecordNodeSetEvent(
    hGraphExec: cudaGraphExec_t,
    hNode: cudaGraphNode_t,
    event: cudaEvent_t,
) -> Result {
    device::attach()?.cuGraphExecEventRecordNodeSetEvent(hGraphExec, hNode, event)
}

pub fn cudaGraphAddEventWaitNode(
    pGraphNode: Out<'_, cudaGraphNode_t>,
    graph: cudaGraph_t,
    pDependencies: *const cudaGraphNode_t,
    numDependencies: usize,
    event: cudaEvent_t,
) -> Result {
    made(pGraphNode, |driver, node| {
        driver.cuGraphAddEventWaitNode(node, graph, pDependencies, numDependencies, event)
    })
}

pub fn cudaGraphEventWaitNodeGetEvent(node: cudaGraphNode_t, event_out: Out<'_, cudaEvent_t>) -> Result {
    made(event_out, |driver, event| driver.cuGraphEventWaitNodeGetEvent(node, event))
}

pub fn cudaGraphEventWaitNodeSetEvent(node: cudaGraphNode_t, event: cudaEvent_t) -> Result {
    device::attach()?.cuGraphEventWaitNodeSetEvent(node, event)
}

pub fn cudaGraphExecEventWaitNodeSetEvent(
    hGraphExec: cudaGraphExec_t,
    hNode: cudaGraphNode_t,
    event: cudaEvent_t,
) -> Result {
    device::attach()?.cuGraphExecEventWaitNodeSetEvent(hGraphExec, hNode, event)
}

/// `Params` is the major's cudaMemAllocNodeParams, which has the driver's layout in all of them.
pub fn cudaGraphAddMemAllocNode<Params>(
    pGraphNode: Out<'_, cudaGraphNode_t>,
    graph: cudaGraph_t,
    pDependencies: *const cudaGraphNode_t,
    numDependencies: usize,
    nodeParams: *mut Params,
) -> Result {
    const { assert!(size_of::<Params>() == size_of::<CUDA_MEM_ALLOC_NODE_PARAMS>()) };
    made(pGraphNode, |driver, node| {
        driver.cuGraphAddMemAllocNode(node, graph, pDependencies, numDependencies, nodeParams.cast())
    })
}

/// `Params` as in cudaGraphAddMemAllocNode.
pub fn cudaGraphMemAllocNodeGetParams<Params>(node: cudaGraphNode_t, params_out: Out<'_, Params>) -> Result {
    const { assert!(size_of::<Params>() == size_of::<CUDA_MEM_ALLOC_NODE_PARAMS>()) };
    device::attach()?.cuGraphMemAllocNodeGetParams(node, params_out.as_ptr().cast())
}

pub fn cudaGraphAddMemFreeNode(
    pGraphNode: Out<'_, cudaGraphNode_t>,
    graph: cudaGraph_t,
    pDependencies: *const cudaGraphNode_t,
    numDependencies: usize,
    dptr: *mut c_void,
) -> Result {
    made(pGraphNode, |driver, node| {
        driver.cuGraphAddMemFreeNode(node, graph, pDependencies, numDependencies, address(dptr))
    })
}

/// `dptr_out` is the address of a pointer.
///
/// # Safety
/// `dptr_out` is NULL, or has room for a pointer.
pub unsafe fn cudaGraphMemFreeNodeGetParams(node: cudaGraphNode_t, dptr_out: *mut c_void) -> Result {
    let driver = device::attach()?;
    if dptr_out.is_null() {
        return Err(crate::Error::InvalidValue("dptr_out"));
    }
    let mut found = 0;
    driver.cuGraphMemFreeNodeGetParams(node, &mut found)?;
    // SAFETY: the caller's promise: a variable for a pointer.
    unsafe { dptr_out.cast::<*mut c_void>().write(pointer(found)) };
    Ok(())
}

/// # Safety
/// `params` is NULL, or a structure that may be read and written.
unsafe fn add_node<Params: NodeParams>(
    node: Out<'_, cudaGraphNode_t>,
    graph: cudaGraph_t,
    dependencies: *const cudaGraphNode_t,
    data: *const cudaGraphEdgeData,
    n: usize,
    params: *mut Params,
) -> Result {
    // SAFETY: the caller's promise: NULL or a structure to read and write.
    let params = unsafe { params.as_mut() }.ok_or(crate::Error::InvalidValue("nodeParams"))?;
    let mut inner = params.to_driver()?;
    made(node, |driver, node| {
        if data.is_null() {
            return driver.cuGraphAddNode(node, graph, dependencies, n, &mut inner);
        }
        driver.cuGraphAddNode_v2(node, graph, dependencies, edges(data), n, &mut inner)
    })?;
    params.take_back(&inner);
    Ok(())
}

/// # Safety
/// `nodeParams` is NULL, or a structure that may be read and written.
pub unsafe fn cudaGraphAddNode_v12<Params: NodeParams>(
    pGraphNode: Out<'_, cudaGraphNode_t>,
    graph: cudaGraph_t,
    pDependencies: *const cudaGraphNode_t,
    numDependencies: usize,
    nodeParams: *mut Params,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { add_node(pGraphNode, graph, pDependencies, ptr::null(), numDependencies, nodeParams) }
}

/// # Safety
/// `nodeParams` is NULL, or a structure that may be read and written.
pub unsafe fn cudaGraphAddNode_v13<Params: NodeParams>(
    pGraphNode: Out<'_, cudaGraphNode_t>,
    graph: cudaGraph_t,
    pDependencies: *const cudaGraphNode_t,
    dependencyData: *const cudaGraphEdgeData,
    numDependencies: usize,
    nodeParams: *mut Params,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { add_node(pGraphNode, graph, pDependencies, dependencyData, numDependencies, nodeParams) }
}

/// # Safety
/// `nodeParams` is NULL, or a structure that may be read and written.
pub unsafe fn cudaGraphAddNode_v2<Params: NodeParams>(
    pGraphNode: Out<'_, cudaGraphNode_t>,
    graph: cudaGraph_t,
    pDependencies: *const cudaGraphNode_t,
    dependencyData: *const cudaGraphEdgeData,
    numDependencies: usize,
    nodeParams: *mut Params,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { add_node(pGraphNode, graph, pDependencies, dependencyData, numDependencies, nodeParams) }
}

/// # Safety
/// `params` is NULL, or a structure that may be read.
unsafe fn to_driver<Params: NodeParams>(params: *const Params) -> Result<CUgraphNodeParams> {
    // SAFETY: the caller's promise: NULL or a readable structure.
    unsafe { params.as_ref() }.ok_or(crate::Error::InvalidValue("nodeParams"))?.to_driver()
}

/// # Safety
/// `nodeParams` is NULL, or a structure that may be read.
pub unsafe fn cudaGraphNodeSetParams<Params: NodeParams>(
    node: cudaGraphNode_t,
    nodeParams: *mut Params,
) -> Result {
    // SAFETY: the caller's promise.
    let mut inner = unsafe { to_driver(nodeParams) }?;
    device::attach()?.cuGraphNodeSetParams(node, &mut inner)
}

/// # Safety
/// `nodeParams` is NULL, or a structure that may be read.
pub unsafe fn cudaGraphExecNodeSetParams<Params: NodeParams>(
    graphExec: cudaGraphExec_t,
    node: cudaGraphNode_t,
    nodeParams: *mut Params,
) -> Result {
    // SAFETY: the caller's promise.
    let mut inner = unsafe { to_driver(nodeParams) }?;
    device::attach()?.cuGraphExecNodeSetParams(graphExec, node, &mut inner)
}

pub fn cudaGraphNodeGetParams(
    node: cudaGraphNode_t,
    nodeParams: Out<'_, v13::cudaGraphNodeParams>,
) -> Result {
    let mut inner = CUgraphNodeParams::default();
    device::attach()?.cuGraphNodeGetParams(node, &mut inner)?;
    nodeParams.write(from_driver_v13(&inner)?);
    Ok(())
}
