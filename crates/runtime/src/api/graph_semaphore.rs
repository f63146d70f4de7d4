//! Graph management: nodes that signal semaphores of other APIs, or wait for them. The structures are the driver's.

use std::ptr;

use border::Out;
use cuda_abi::runtime::{
    cudaExternalSemaphoreSignalNodeParams, cudaExternalSemaphoreWaitNodeParams, cudaGraph_t, cudaGraphExec_t,
    cudaGraphNode_t,
};
use cuda_abi::{CUDA_EXT_SEM_SIGNAL_NODE_PARAMS, CUDA_EXT_SEM_WAIT_NODE_PARAMS};

use super::graph::made;
use crate::{Result, device};

fn signal(params: *const cudaExternalSemaphoreSignalNodeParams) -> *const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS {
    const {
        assert!(
            size_of::<cudaExternalSemaphoreSignalNodeParams>()
                == size_of::<CUDA_EXT_SEM_SIGNAL_NODE_PARAMS>()
        );
    }
    params.cast()
}

fn wait(params: *const cudaExternalSemaphoreWaitNodeParams) -> *const CUDA_EXT_SEM_WAIT_NODE_PARAMS {
    const {
        assert!(
            size_of::<cudaExternalSemaphoreWaitNodeParams>() == size_of::<CUDA_EXT_SEM_WAIT_NODE_PARAMS>()
        );
    }
    params.cast()
}

pub fn cudaGraphAddExternalSemaphoresSignalNode(
    pGraphNode: Out<'_, cudaGraphNode_t>,
    graph: cudaGraph_t,
    pDependencies: *const cudaGraphNode_t,
    numDependencies: usize,
    nodeParams: &cudaExternalSemaphoreSignalNodeParams,
) -> Result {
    let params = signal(ptr::from_ref(nodeParams));
    made(pGraphNode, |driver, node| {
        driver.cuGraphAddExternalSemaphoresSignalNode(node, graph, pDependencies, numDependencies, params)
    })
}

pub fn cudaGraphExternalSemaphoresSignalNodeGetParams(
    hNode: cudaGraphNode_t,
    params_out: Out<'_, cudaExternalSemaphoreSignalNodeParams>,
) -> Result {
    let params = signal(params_out.as_ptr()).cast_mut();
    device::attach()?.cuGraphExternalSemaphoresSignalNodeGetParams(hNode, params)
}

pub fn cudaGraphExternalSemaphoresSignalNodeSetParams(
    hNode: cudaGraphNode_t,
    nodeParams: &cudaExternalSemaphoreSignalNodeParams,
) -> Result {
    device::attach()?.cuGraphExternalSemaphoresSignalNodeSetParams(hNode, signal(nodeParams))
}

pub fn cudaGraphExecExternalSemaphoresSignalNodeSetParams(
    hGraphExec: cudaGraphExec_t,
    hNode: cudaGraphNode_t,
    nodeParams: &cudaExternalSemaphoreSignalNodeParams,
) -> Result {
    let params = signal(nodeParams);
    device::attach()?.cuGraphExecExternalSemaphoresSignalNodeSetParams(hGraphExec, hNode, params)
}

pub fn cudaGraphAddExternalSemaphoresWaitNode(
    pGraphNode: Out<'_, cudaGraphNode_t>,
    graph: cudaGraph_t,
    pDependencies: *const cudaGraphNode_t,
    numDependencies: usize,
    nodeParams: &cudaExternalSemaphoreWaitNodeParams,
) -> Result {
    let params = wait(ptr::from_ref(nodeParams));
    made(pGraphNode, |driver, node| {
        driver.cuGraphAddExternalSemaphoresWaitNode(node, graph, pDependencies, numDependencies, params)
    })
}

pub fn cudaGraphExternalSemaphoresWaitNodeGetParams(
    hNode: cudaGraphNode_t,
    params_out: Out<'_, cudaExternalSemaphoreWaitNodeParams>,
) -> Result {
    let params = wait(params_out.as_ptr()).cast_mut();
    device::attach()?.cuGraphExternalSemaphoresWaitNodeGetParams(hNode, params)
}

pub fn cudaGraphExternalSemaphoresWaitNodeSetParams(
    hNode: cudaGraphNode_t,
    nodeParams: &cudaExternalSemaphoreWaitNodeParams,
) -> Result {
    device::attach()?.cuGraphExternalSemaphoresWaitNodeSetParams(hNode, wait(nodeParams))
}

pub fn cudaGraphExecExternalSemaphoresWaitNodeSetParams(
    hGraphExec: cudaGraphExec_t,
    hNode: cudaGraphNode_t,
    nodeParams: &cudaExternalSemaphoreWaitNodeParams,
) -> Result {
    let params = wait(nodeParams);
    device::attach()?.cuGraphExecExternalSemaphoresWaitNodeSetParams(hGraphExec, hNode, params)
}
