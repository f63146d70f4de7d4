//! Graph Management: instantiated graphs, their launches and their updates.

use core::ffi::{c_char, c_uint, c_ulonglong};

use border::{OptOut, Out};
use cuda_abi::{
    CUDA_BATCH_MEM_OP_NODE_PARAMS, CUDA_GRAPH_INSTANTIATE_PARAMS, CUDA_HOST_NODE_PARAMS,
    CUDA_KERNEL_NODE_PARAMS, CUDA_KERNEL_NODE_PARAMS_v1, CUDA_MEMCPY3D, CUDA_MEMSET_NODE_PARAMS, CUcontext,
    CUevent, CUgraph, CUgraphExec, CUgraphExecUpdateResult, CUgraphExecUpdateResultInfo,
    CUgraphInstantiateResult, CUgraphNode, CUgraphNodeParams, CUgraphNodeType, CUstream, cuuint64_t,
};

use super::event::record_op;
use super::graph_node::{attributes_of, batch_op, kernel_op, memcpy_op, memset_op, parameters};
use super::host_function;
use super::stream::wait_op;
use crate::object::graph::capture::captured;
use crate::object::graph::{Exec, Graph, device};
use crate::{Error, Result};

/// The flag about node priorities changes nothing here.
fn check_flags(flags: u64) -> Result {
    const AUTO_FREE_ON_LAUNCH: u64 = 1;
    const BOTH: u64 = AUTO_FREE_ON_LAUNCH | device::LAUNCH;
    match flags {
        // CUDA: the two exclude each other.
        flags if flags & BOTH == BOTH => Err(Error::InvalidValue("flags")),
        0..=15 => Ok(()),
        _ => Err(Error::InvalidValue("flags")),
    }
}

/// `CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD`
const UPLOAD: u64 = 2;

fn instantiate(hGraph: CUgraph, flags: u64) -> core::result::Result<CUgraphExec, device::Refusal> {
    check_flags(flags)?;
    let graph = Graph::from_handle(hGraph)?;
    if flags & device::LAUNCH != 0 {
        device::check(&graph)?;
    }
    Ok(Exec::instantiate(&graph, flags)?)
}

pub fn cuGraphInstantiateWithFlags(
    phGraphExec: Out<'_, CUgraphExec>,
    hGraph: CUgraph,
    flags: c_ulonglong,
) -> Result {
    phGraphExec.write(instantiate(hGraph, flags).map_err(|refusal| refusal.error)?);
    Ok(())
}

/// CUDA 11's form, with a place for a message and a node that there is nothing to say about.
pub fn cuGraphInstantiate_v2(
    phGraphExec: Out<'_, CUgraphExec>,
    hGraph: CUgraph,
    phErrorNode: OptOut<'_, CUgraphNode>,
    logBuffer: OptOut<'_, c_char>,
    bufferSize: usize,
) -> Result {
    if bufferSize > 0 {
        logBuffer.write(0);
    }
    phErrorNode.write(core::ptr::null_mut());
    cuGraphInstantiateWithFlags(phGraphExec, hGraph, 0)
}

pub fn cuGraphInstantiate(
    phGraphExec: Out<'_, CUgraphExec>,
    hGraph: CUgraph,
    phErrorNode: OptOut<'_, CUgraphNode>,
    logBuffer: OptOut<'_, c_char>,
    bufferSize: usize,
) -> Result {
    cuGraphInstantiate_v2(phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize)
}

/// # Safety
/// `instantiateParams` is NULL, or a structure that may be read and written.
pub unsafe fn cuGraphInstantiateWithParams(
    phGraphExec: Out<'_, CUgraphExec>,
    hGraph: CUgraph,
    instantiateParams: *mut CUDA_GRAPH_INSTANTIATE_PARAMS,
) -> Result {
    // SAFETY: the caller's promise: NULL or a structure to read and write.
    let params = unsafe { instantiateParams.as_mut() }.ok_or(Error::InvalidValue("instantiateParams"))?;
    params.hErrNode_out = core::ptr::null_mut();
    params.result_out = CUgraphInstantiateResult::CUDA_GRAPH_INSTANTIATE_ERROR;
    let graph = Graph::from_handle(hGraph)?;
    // CUDA: what is wrong with the graph itself has numbers of its own.
    if graph.ordered().is_err() {
        params.result_out = CUgraphInstantiateResult::CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE;
    } else if graph.all_conditions().iter().any(|condition| !condition.is_used()) {
        params.result_out = CUgraphInstantiateResult::CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED;
    }
    let exec = instantiate(hGraph, params.flags).map_err(|refusal| {
        if !refusal.node.is_null() {
            params.result_out = refusal.result;
            params.hErrNode_out = refusal.node;
        }
        refusal.error
    })?;
    if params.flags & UPLOAD != 0
        && let Err(error) = cuGraphUpload(exec, params.hUploadStream)
    {
        Exec::destroy(exec)?;
        return Err(error);
    }
    phGraphExec.write(exec);
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

pub fn cuGraphExecGetId(hGraphExec: CUgraphExec, graphId: Out<'_, c_uint>) -> Result {
    graphId.write(Exec::from_handle(hGraphExec)?.id);
    Ok(())
}

/// Brings a graph that kernels launch to the device. The host needs nothing moved before it launches one.
pub fn cuGraphUpload(hGraph: CUgraphExec, hStream: CUstream) -> Result {
    let exec = Exec::from_handle(hGraph)?;
    exec.upload(hGraph, hStream)
}

/// The graph's work on the stream. In a stream that is being captured it becomes a child node.
pub fn cuGraphLaunch(hGraph: CUgraphExec, hStream: CUstream) -> Result {
    let exec = Exec::from_handle(hGraph)?;
    if captured(hStream, || exec.as_child())? {
        return Ok(());
    }
    exec.launch(hGraph, hStream)
}

pub fn cuGraphExecKernelNodeSetParams_v2(
    hGraphExec: CUgraphExec,
    hNode: CUgraphNode,
    nodeParams: &CUDA_KERNEL_NODE_PARAMS,
) -> Result {
    let exec = Exec::from_handle(hGraphExec)?;
    exec.set(hNode, kernel_op(nodeParams, attributes_of(hNode)?)?)
}

pub fn cuGraphExecKernelNodeSetParams(
    hGraphExec: CUgraphExec,
    hNode: CUgraphNode,
    nodeParams: &CUDA_KERNEL_NODE_PARAMS_v1,
) -> Result {
    cuGraphExecKernelNodeSetParams_v2(hGraphExec, hNode, &nodeParams.into())
}

pub fn cuGraphExecMemcpyNodeSetParams(
    hGraphExec: CUgraphExec,
    hNode: CUgraphNode,
    copyParams: &CUDA_MEMCPY3D,
    ctx: CUcontext,
) -> Result {
    Exec::from_handle(hGraphExec)?.set(hNode, memcpy_op(copyParams, ctx)?)
}

pub fn cuGraphExecMemsetNodeSetParams(
    hGraphExec: CUgraphExec,
    hNode: CUgraphNode,
    memsetParams: &CUDA_MEMSET_NODE_PARAMS,
    ctx: CUcontext,
) -> Result {
    Exec::from_handle(hGraphExec)?.set(hNode, memset_op(memsetParams, ctx)?)
}

pub fn cuGraphExecHostNodeSetParams(
    hGraphExec: CUgraphExec,
    hNode: CUgraphNode,
    nodeParams: &CUDA_HOST_NODE_PARAMS,
) -> Result {
    Exec::from_handle(hGraphExec)?.set(hNode, host_function::host_op(*nodeParams)?)
}

/// Takes the parameters of a graph of the child's shape.
pub fn cuGraphExecChildGraphNodeSetParams(
    hGraphExec: CUgraphExec,
    hNode: CUgraphNode,
    childGraph: CUgraph,
) -> Result {
    Exec::from_handle(hGraphExec)?.set_child(hNode, &*Graph::from_handle(childGraph)?)
}

pub fn cuGraphExecEventRecordNodeSetEvent(
    hGraphExec: CUgraphExec,
    hNode: CUgraphNode,
    event: CUevent,
) -> Result {
    Exec::from_handle(hGraphExec)?.set(hNode, record_op(event)?)
}

pub fn cuGraphExecEventWaitNodeSetEvent(
    hGraphExec: CUgraphExec,
    hNode: CUgraphNode,
    event: CUevent,
) -> Result {
    Exec::from_handle(hGraphExec)?.set(hNode, wait_op(event)?)
}

pub fn cuGraphExecBatchMemOpNodeSetParams(
    hGraphExec: CUgraphExec,
    hNode: CUgraphNode,
    nodeParams: &CUDA_BATCH_MEM_OP_NODE_PARAMS,
) -> Result {
    Exec::from_handle(hGraphExec)?.set(hNode, batch_op(nodeParams)?)
}

pub fn cuGraphExecNodeSetParams(
    hGraphExec: CUgraphExec,
    hNode: CUgraphNode,
    params: &CUgraphNodeParams,
) -> Result {
    let exec = Exec::from_handle(hGraphExec)?;
    if params.type_ == CUgraphNodeType::CU_GRAPH_NODE_TYPE_GRAPH {
        // SAFETY: the member that belongs to the type.
        let child = unsafe { params.__bindgen_anon_1.graph.graph };
        return exec.set_child(hNode, &*Graph::from_handle(child)?);
    }
    exec.set(hNode, parameters(params, attributes_of(hNode)?)?)
}

pub fn cuGraphNodeSetEnabled(hGraphExec: CUgraphExec, hNode: CUgraphNode, isEnabled: c_uint) -> Result {
    Exec::from_handle(hGraphExec)?.enable(hNode, isEnabled != 0)
}

pub fn cuGraphNodeGetEnabled(
    hGraphExec: CUgraphExec,
    hNode: CUgraphNode,
    isEnabled: Out<'_, c_uint>,
) -> Result {
    isEnabled.write(c_uint::from(Exec::from_handle(hGraphExec)?.is_enabled(hNode)?));
    Ok(())
}

/// Takes the parameters of a graph of the same shape.
pub fn cuGraphExecUpdate_v2(
    hGraphExec: CUgraphExec,
    hGraph: CUgraph,
    resultInfo: Out<'_, CUgraphExecUpdateResultInfo>,
) -> Result {
    let info = Exec::from_handle(hGraphExec)?.update(&Graph::from_handle(hGraph)?);
    let is_updated = info.result == CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_SUCCESS;
    resultInfo.write(info);
    if is_updated { Ok(()) } else { Err(Error::GraphExecUpdateFailure) }
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
    hErrorNode_out.write(info.errorNode);
    updateResult_out.write(info.result);
    answer
}
