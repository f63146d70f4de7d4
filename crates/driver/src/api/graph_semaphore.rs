//! Graph Management: nodes that signal semaphores of other APIs, or wait for them.

use core::ffi::c_uint;
use std::sync::Arc;

use border::Out;
use cuda_abi::{
    CUDA_EXT_SEM_SIGNAL_NODE_PARAMS, CUDA_EXT_SEM_WAIT_NODE_PARAMS, CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS,
    CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS, CUexternalSemaphore, CUgraph, CUgraphExec, CUgraphNode,
};

use super::external::{cuSignalExternalSemaphoresAsync, cuWaitExternalSemaphoresAsync, hip_semaphores};
use super::graph_node::{add, set, with};
use crate::object::graph::{Exec, Op, Params};
use crate::{Error, Result};

/// Copies of a program's two lists; every semaphore is alive.
///
/// # Safety
/// Both arrays are NULL, or have `count` elements.
unsafe fn lists<P: Copy>(
    semaphores: *const CUexternalSemaphore,
    params: *const P,
    count: c_uint,
) -> Result<(Vec<CUexternalSemaphore>, Vec<P>)> {
    // SAFETY: the caller's promise.
    unsafe { hip_semaphores(semaphores, params.cast(), count) }?;
    if count == 0 {
        return Ok((vec![], vec![]));
    }
    // SAFETY: the caller's promise: `count` entries in each list; neither is NULL.
    let (semaphores, params) = unsafe {
        (
            core::slice::from_raw_parts(semaphores, count as usize),
            core::slice::from_raw_parts(params, count as usize),
        )
    };
    Ok((semaphores.to_vec(), params.to_vec()))
}

/// # Safety
/// Both arrays are NULL, or have `count` elements.
pub(crate) unsafe fn signal_op(
    semaphores: *const CUexternalSemaphore,
    params: *const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS,
    count: c_uint,
) -> Result<Arc<Op>> {
    // SAFETY: the caller's promise.
    let (semaphores, params) = unsafe { lists(semaphores, params, count) }?;
    Ok(Op::new(Params::Signal { semaphores, params }, |node, stream| match node {
        Params::Signal { semaphores, params } => {
            let count = c_uint::try_from(params.len()).map_err(|_| Error::Unknown)?;
            // SAFETY: the node has as many semaphores as parameters.
            unsafe { cuSignalExternalSemaphoresAsync(semaphores.as_ptr(), params.as_ptr(), count, stream) }
        }
        _ => Ok(()),
    }))
}

/// # Safety
/// Both arrays are NULL, or have `count` elements.
pub(crate) unsafe fn wait_op(
    semaphores: *const CUexternalSemaphore,
    params: *const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS,
    count: c_uint,
) -> Result<Arc<Op>> {
    // SAFETY: the caller's promise.
    let (semaphores, params) = unsafe { lists(semaphores, params, count) }?;
    Ok(Op::new(Params::Wait { semaphores, params }, |node, stream| match node {
        Params::Wait { semaphores, params } => {
            let count = c_uint::try_from(params.len()).map_err(|_| Error::Unknown)?;
            // SAFETY: the node has as many semaphores as parameters.
            unsafe { cuWaitExternalSemaphoresAsync(semaphores.as_ptr(), params.as_ptr(), count, stream) }
        }
        _ => Ok(()),
    }))
}

fn signal_of(params: &CUDA_EXT_SEM_SIGNAL_NODE_PARAMS) -> Result<Arc<Op>> {
    // SAFETY: CUDA's contract for the structure: `numExtSems` entries in both arrays.
    unsafe { signal_op(params.extSemArray, params.paramsArray, params.numExtSems) }
}

fn wait_of(params: &CUDA_EXT_SEM_WAIT_NODE_PARAMS) -> Result<Arc<Op>> {
    // SAFETY: CUDA's contract for the structure: `numExtSems` entries in both arrays.
    unsafe { wait_op(params.extSemArray, params.paramsArray, params.numExtSems) }
}

/// # Safety
/// `dependencies` is NULL, or has `numDependencies` elements.
pub unsafe fn cuGraphAddExternalSemaphoresSignalNode(
    phGraphNode: Out<'_, CUgraphNode>,
    hGraph: CUgraph,
    dependencies: *const CUgraphNode,
    numDependencies: usize,
    nodeParams: &CUDA_EXT_SEM_SIGNAL_NODE_PARAMS,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { add(phGraphNode, hGraph, dependencies, numDependencies, |_| signal_of(nodeParams)) }
}

/// Pointers lead to what the node keeps.
pub fn cuGraphExternalSemaphoresSignalNodeGetParams(
    hNode: CUgraphNode,
    params_out: Out<'_, CUDA_EXT_SEM_SIGNAL_NODE_PARAMS>,
) -> Result {
    let (extSemArray, paramsArray, count) = with(hNode, |node| match node {
        Params::Signal { semaphores, params } => {
            Some((semaphores.as_ptr().cast_mut(), params.as_ptr(), params.len()))
        }
        _ => None,
    })?;
    let numExtSems = c_uint::try_from(count).map_err(|_| Error::Unknown)?;
    params_out.write(CUDA_EXT_SEM_SIGNAL_NODE_PARAMS { extSemArray, paramsArray, numExtSems });
    Ok(())
}

pub fn cuGraphExternalSemaphoresSignalNodeSetParams(
    hNode: CUgraphNode,
    nodeParams: &CUDA_EXT_SEM_SIGNAL_NODE_PARAMS,
) -> Result {
    set(hNode, signal_of(nodeParams)?)
}

pub fn cuGraphExecExternalSemaphoresSignalNodeSetParams(
    hGraphExec: CUgraphExec,
    hNode: CUgraphNode,
    nodeParams: &CUDA_EXT_SEM_SIGNAL_NODE_PARAMS,
) -> Result {
    Exec::from_handle(hGraphExec)?.set(hNode, signal_of(nodeParams)?)
}

/// # Safety
/// `dependencies` is NULL, or has `numDependencies` elements.
pub unsafe fn cuGraphAddExternalSemaphoresWaitNode(
    phGraphNode: Out<'_, CUgraphNode>,
    hGraph: CUgraph,
    dependencies: *const CUgraphNode,
    numDependencies: usize,
    nodeParams: &CUDA_EXT_SEM_WAIT_NODE_PARAMS,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { add(phGraphNode, hGraph, dependencies, numDependencies, |_| wait_of(nodeParams)) }
}

/// Pointers lead to what the node keeps.
pub fn cuGraphExternalSemaphoresWaitNodeGetParams(
    hNode: CUgraphNode,
    params_out: Out<'_, CUDA_EXT_SEM_WAIT_NODE_PARAMS>,
) -> Result {
    let (extSemArray, paramsArray, count) = with(hNode, |node| match node {
        Params::Wait { semaphores, params } => {
            Some((semaphores.as_ptr().cast_mut(), params.as_ptr(), params.len()))
        }
        _ => None,
    })?;
    let numExtSems = c_uint::try_from(count).map_err(|_| Error::Unknown)?;
    params_out.write(CUDA_EXT_SEM_WAIT_NODE_PARAMS { extSemArray, paramsArray, numExtSems });
    Ok(())
}

pub fn cuGraphExternalSemaphoresWaitNodeSetParams(
    hNode: CUgraphNode,
    nodeParams: &CUDA_EXT_SEM_WAIT_NODE_PARAMS,
) -> Result {
    set(hNode, wait_of(nodeParams)?)
}

pub fn cuGraphExecExternalSemaphoresWaitNodeSetParams(
    hGraphExec: CUgraphExec,
    hNode: CUgraphNode,
    nodeParams: &CUDA_EXT_SEM_WAIT_NODE_PARAMS,
) -> Result {
    Exec::from_handle(hGraphExec)?.set(hNode, wait_of(nodeParams)?)
}
