//! Stream Management: the capture of streams into graphs.

use core::ffi::{c_uint, c_void};
use std::cell::Cell;

use border::{OptOut, Out};
use cuda_abi::{
    CUgraph, CUgraphEdgeData, CUgraphNode, CUgraphRecaptureCallback, CUstream, CUstreamCaptureMode,
    CUstreamCaptureStatus, CUstreamCigCaptureParams, cuuint64_t,
};

use super::graph::dependencies_of;
use crate::object::Stream;
use crate::object::graph::capture::{self, Into};
use crate::{Error, Result};

/// The modes say which calls this and other threads may not make meanwhile.
pub fn cuStreamBeginCapture_v2(hStream: CUstream, mode: CUstreamCaptureMode) -> Result {
    capture::begin(hStream, mode, None)
}

pub fn cuStreamBeginCapture(hStream: CUstream) -> Result {
    capture::begin(hStream, CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL, None)
}

/// Captures into a graph of the program's, behind some of its nodes.
///
/// # Safety
/// `dependencies` and `dependencyData` are NULL, or have `numDependencies` elements.
pub unsafe fn cuStreamBeginCaptureToGraph(
    hStream: CUstream,
    hGraph: CUgraph,
    dependencies: *const CUgraphNode,
    dependencyData: *const CUgraphEdgeData,
    numDependencies: usize,
    mode: CUstreamCaptureMode,
) -> Result {
    // SAFETY: the caller's promise.
    let dependencies = unsafe { dependencies_of(dependencies, dependencyData, numDependencies) }?;
    capture::begin(hStream, mode, Some(Into { graph: hGraph, dependencies }))
}

/// Captures the same work again; where a node's parameters are others, the program is asked.
pub fn cuStreamBeginRecaptureToGraph(
    hStream: CUstream,
    mode: CUstreamCaptureMode,
    hGraph: CUgraph,
    callbackFunc: CUgraphRecaptureCallback,
    userData: *mut c_void,
) -> Result {
    capture::begin_again(hStream, mode, hGraph, callbackFunc, userData)
}

/// The graph of a capture into one of the program's (`cuStreamBeginCaptureToGraph`) need not be asked for.
pub fn cuStreamEndCapture(hStream: CUstream, phGraph: OptOut<'_, CUgraph>) -> Result {
    match capture::end(hStream, phGraph.is_wanted()) {
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
    captureStatus.write(capture::info(hStream)?.status);
    Ok(())
}

pub fn cuStreamGetCaptureInfo(
    hStream: CUstream,
    captureStatus_out: Out<'_, CUstreamCaptureStatus>,
    id_out: OptOut<'_, cuuint64_t>,
) -> Result {
    let info = capture::info(hStream)?;
    captureStatus_out.write(info.status);
    id_out.write(info.id);
    Ok(())
}

thread_local! {
    /// The lists that the last call of this thread pointed at.
    static TAIL: Cell<(Vec<CUgraphNode>, Vec<CUgraphEdgeData>)> = const { Cell::new((Vec::new(), Vec::new())) };
}

pub fn cuStreamGetCaptureInfo_v2(
    hStream: CUstream,
    captureStatus_out: Out<'_, CUstreamCaptureStatus>,
    id_out: OptOut<'_, cuuint64_t>,
    graph_out: OptOut<'_, CUgraph>,
    dependencies_out: OptOut<'_, *const CUgraphNode>,
    numDependencies_out: OptOut<'_, usize>,
) -> Result {
    cuStreamGetCaptureInfo_v3(
        hStream,
        captureStatus_out,
        id_out,
        graph_out,
        dependencies_out,
        None.into(),
        numDependencies_out,
    )
}

/// The lists stay valid until this thread asks again.
pub fn cuStreamGetCaptureInfo_v3(
    hStream: CUstream,
    captureStatus_out: Out<'_, CUstreamCaptureStatus>,
    id_out: OptOut<'_, cuuint64_t>,
    graph_out: OptOut<'_, CUgraph>,
    dependencies_out: OptOut<'_, *const CUgraphNode>,
    edgeData_out: OptOut<'_, *const CUgraphEdgeData>,
    numDependencies_out: OptOut<'_, usize>,
) -> Result {
    // CUDA: edge data are asked for together with the nodes.
    if edgeData_out.is_wanted() && !dependencies_out.is_wanted() {
        return Err(Error::InvalidValue("dependencies_out"));
    }
    let info = capture::info(hStream)?;
    // CUDA: edges that say something are not left out without a word.
    let is_plain = info.tail.iter().all(|(_, edge)| edge.is_plain());
    if dependencies_out.is_wanted() && !edgeData_out.is_wanted() && !is_plain {
        return Err(Error::LossyQuery);
    }
    captureStatus_out.write(info.status);
    id_out.write(info.id);
    graph_out.write(info.graph);
    let nodes: Vec<CUgraphNode> = info.tail.iter().map(|(node, _)| *node).collect();
    let data: Vec<CUgraphEdgeData> = info.tail.iter().map(|(_, edge)| edge.data()).collect();
    numDependencies_out.write(nodes.len());
    dependencies_out.write(if nodes.is_empty() { core::ptr::null() } else { nodes.as_ptr() });
    edgeData_out.write(if data.is_empty() { core::ptr::null() } else { data.as_ptr() });
    TAIL.set((nodes, data));
    Ok(())
}

/// # Safety
/// `dependencies` is NULL, or has `numDependencies` elements.
pub unsafe fn cuStreamUpdateCaptureDependencies(
    hStream: CUstream,
    dependencies: *mut CUgraphNode,
    numDependencies: usize,
    flags: c_uint,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe {
        cuStreamUpdateCaptureDependencies_v2(hStream, dependencies, core::ptr::null(), numDependencies, flags)
    }
}

/// Adds to what the next captured operation waits for, or replaces it.
///
/// # Safety
/// `dependencies` and `dependencyData` are NULL, or have `numDependencies` elements.
pub unsafe fn cuStreamUpdateCaptureDependencies_v2(
    hStream: CUstream,
    dependencies: *mut CUgraphNode,
    dependencyData: *const CUgraphEdgeData,
    numDependencies: usize,
    flags: c_uint,
) -> Result {
    // CUDA: CU_STREAM_ADD_CAPTURE_DEPENDENCIES or CU_STREAM_SET_CAPTURE_DEPENDENCIES.
    if flags > 1 {
        return Err(Error::InvalidValue("flags"));
    }
    // SAFETY: the caller's promise.
    let nodes = unsafe { dependencies_of(dependencies, dependencyData, numDependencies) }?;
    capture::update_dependencies(hStream, &nodes, flags == 1)
}

/// Captures of CUDA work for a graphics API to run.
pub fn cuStreamBeginCaptureToCig(
    hStream: CUstream,
    _streamCigCaptureParams: &CUstreamCigCaptureParams,
) -> Result {
    Stream::from_handle(hStream)?;
    super::refuse("cuStreamBeginCaptureToCig: no graphics API is there to run the work")
}

/// Nothing could be begun.
pub fn cuStreamEndCaptureToCig(hStream: CUstream) -> Result {
    Stream::from_handle(hStream)?;
    super::refuse("cuStreamEndCaptureToCig: no graphics API is there to run the work")
}

/// # Safety
/// `mode` is NULL, or a variable that may be read and written.
pub unsafe fn cuThreadExchangeStreamCaptureMode(mode: *mut CUstreamCaptureMode) -> Result {
    crate::process::driver()?;
    // SAFETY: the caller's promise: NULL or a variable to read and write.
    let mode = unsafe { mode.as_mut() }.ok_or(Error::InvalidValue("mode"))?;
    if mode.0 > CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED.0 {
        return Err(Error::InvalidValue("mode"));
    }
    *mode = capture::exchange_mode(*mode);
    Ok(())
}
