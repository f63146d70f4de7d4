//! Stream management: the capture of streams into graphs.

use core::ffi::{c_uint, c_ulonglong, c_void};
use std::collections::HashMap;
use std::ptr;

use border::{OptOut, Out};
use cuda_abi::runtime::{
    cudaGraph_t, cudaGraphEdgeData, cudaGraphNode_t, cudaStream_t, cudaStreamCaptureMode,
    cudaStreamCaptureStatus, v13,
};
use cuda_abi::{
    CUgraphEdgeData, CUgraphNode, CUgraphNodeParams, CUgraphRecaptureStatus, CUresult, CUstreamCaptureMode,
    CUstreamCaptureStatus,
};
use parking_lot::Mutex;

use super::graph::edges;
use super::graph_params::from_driver_v13;
use crate::{Result, device, stream};

pub fn cudaStreamBeginCapture(stream: cudaStream_t, mode: cudaStreamCaptureMode) -> Result {
    device::attach()?.cuStreamBeginCapture_v2(stream::meant(stream), CUstreamCaptureMode(mode.0))
}

pub fn cudaStreamBeginCaptureToGraph(
    stream: cudaStream_t,
    graph: cudaGraph_t,
    dependencies: *const cudaGraphNode_t,
    dependencyData: *const cudaGraphEdgeData,
    numDependencies: usize,
    mode: cudaStreamCaptureMode,
) -> Result {
    device::attach()?.cuStreamBeginCaptureToGraph(
        stream::meant(stream),
        graph,
        dependencies,
        edges(dependencyData),
        numDependencies,
        CUstreamCaptureMode(mode.0),
    )
}

/// The graph of a capture into one of the program's (`cudaStreamBeginCaptureToGraph`) need not be asked for.
pub fn cudaStreamEndCapture(stream: cudaStream_t, pGraph: OptOut<'_, cudaGraph_t>) -> Result {
    let stream = stream::meant(stream);
    let mut graph = ptr::null_mut();
    let wanted = if pGraph.is_wanted() { &raw mut graph } else { ptr::null_mut() };
    let answer = device::attach()?.cuStreamEndCapture(stream, wanted);
    RECAPTURES.lock().as_mut().and_then(|all| all.remove(&stream.addr()));
    // CUDA: a capture that failed gives no graph.
    pGraph.write(if answer.is_ok() { graph } else { ptr::null_mut() });
    answer
}

/// What is known of a capture.
struct Info {
    status: CUstreamCaptureStatus,
    id: u64,
    graph: cudaGraph_t,
    nodes: *const CUgraphNode,
    data: *const CUgraphEdgeData,
    n_nodes: usize,
}

/// Asks the newest call only when edge data are wanted, so that older drivers answer the others.
fn info(stream: cudaStream_t, wants_nodes: bool, wants_data: bool) -> Result<Info> {
    let driver = device::attach()?;
    let stream = stream::meant(stream);
    let mut info = Info {
        status: CUstreamCaptureStatus(0),
        id: 0,
        graph: ptr::null_mut(),
        nodes: ptr::null(),
        data: ptr::null(),
        n_nodes: 0,
    };
    let nodes = if wants_nodes { &raw mut info.nodes } else { ptr::null_mut() };
    if wants_data {
        driver.cuStreamGetCaptureInfo_v3(
            stream,
            &mut info.status,
            &mut info.id,
            &mut info.graph,
            nodes,
            &mut info.data,
            &mut info.n_nodes,
        )?;
    } else {
        driver.cuStreamGetCaptureInfo_v2(
            stream,
            &mut info.status,
            &mut info.id,
            &mut info.graph,
            nodes,
            &mut info.n_nodes,
        )?;
    }
    Ok(info)
}

pub fn cudaStreamGetCaptureInfo_v11(
    stream: cudaStream_t,
    captureStatus_out: Out<'_, cudaStreamCaptureStatus>,
    id_out: OptOut<'_, c_ulonglong>,
) -> Result {
    let info = info(stream, false, false)?;
    captureStatus_out.write(cudaStreamCaptureStatus(info.status.0));
    id_out.write(info.id);
    Ok(())
}

pub fn cudaStreamGetCaptureInfo_v12(
    stream: cudaStream_t,
    captureStatus_out: Out<'_, cudaStreamCaptureStatus>,
    id_out: OptOut<'_, c_ulonglong>,
) -> Result {
    cudaStreamGetCaptureInfo_v11(stream, captureStatus_out, id_out)
}

pub fn cudaStreamGetCaptureInfo_v13(
    stream: cudaStream_t,
    captureStatus_out: Out<'_, cudaStreamCaptureStatus>,
    id_out: OptOut<'_, c_ulonglong>,
    graph_out: OptOut<'_, cudaGraph_t>,
    dependencies_out: OptOut<'_, *const cudaGraphNode_t>,
    edgeData_out: OptOut<'_, *const cudaGraphEdgeData>,
    numDependencies_out: OptOut<'_, usize>,
) -> Result {
    cudaStreamGetCaptureInfo_v3(
        stream,
        captureStatus_out,
        id_out,
        graph_out,
        dependencies_out,
        edgeData_out,
        numDependencies_out,
    )
}

pub fn cudaStreamGetCaptureInfo_v2(
    stream: cudaStream_t,
    captureStatus_out: Out<'_, cudaStreamCaptureStatus>,
    id_out: OptOut<'_, c_ulonglong>,
    graph_out: OptOut<'_, cudaGraph_t>,
    dependencies_out: OptOut<'_, *const cudaGraphNode_t>,
    numDependencies_out: OptOut<'_, usize>,
) -> Result {
    cudaStreamGetCaptureInfo_v3(
        stream,
        captureStatus_out,
        id_out,
        graph_out,
        dependencies_out,
        None.into(),
        numDependencies_out,
    )
}

pub fn cudaStreamGetCaptureInfo_v3(
    stream: cudaStream_t,
    captureStatus_out: Out<'_, cudaStreamCaptureStatus>,
    id_out: OptOut<'_, c_ulonglong>,
    graph_out: OptOut<'_, cudaGraph_t>,
    dependencies_out: OptOut<'_, *const cudaGraphNode_t>,
    edgeData_out: OptOut<'_, *const cudaGraphEdgeData>,
    numDependencies_out: OptOut<'_, usize>,
) -> Result {
    let info = info(stream, dependencies_out.is_wanted(), edgeData_out.is_wanted())?;
    captureStatus_out.write(cudaStreamCaptureStatus(info.status.0));
    id_out.write(info.id);
    graph_out.write(info.graph);
    dependencies_out.write(info.nodes);
    edgeData_out.write(info.data.cast());
    numDependencies_out.write(info.n_nodes);
    Ok(())
}

fn update_dependencies(
    stream: cudaStream_t,
    dependencies: *mut cudaGraphNode_t,
    n: usize,
    flags: c_uint,
) -> Result {
    device::attach()?.cuStreamUpdateCaptureDependencies(stream::meant(stream), dependencies, n, flags)
}

pub fn cudaStreamUpdateCaptureDependencies_v11(
    stream: cudaStream_t,
    dependencies: *mut cudaGraphNode_t,
    numDependencies: usize,
    flags: c_uint,
) -> Result {
    update_dependencies(stream, dependencies, numDependencies, flags)
}

pub fn cudaStreamUpdateCaptureDependencies_v12(
    stream: cudaStream_t,
    dependencies: *mut cudaGraphNode_t,
    numDependencies: usize,
    flags: c_uint,
) -> Result {
    update_dependencies(stream, dependencies, numDependencies, flags)
}

pub fn cudaStreamUpdateCaptureDependencies_v13(
    stream: cudaStream_t,
    dependencies: *mut cudaGraphNode_t,
    dependencyData: *const cudaGraphEdgeData,
    numDependencies: usize,
    flags: c_uint,
) -> Result {
    cudaStreamUpdateCaptureDependencies_v2(stream, dependencies, dependencyData, numDependencies, flags)
}

pub fn cudaStreamUpdateCaptureDependencies_v2(
    stream: cudaStream_t,
    dependencies: *mut cudaGraphNode_t,
    dependencyData: *const cudaGraphEdgeData,
    numDependencies: usize,
    flags: c_uint,
) -> Result {
    let data = edges(dependencyData);
    let stream = stream::meant(stream);
    device::attach()?.cuStreamUpdateCaptureDependencies_v2(stream, dependencies, data, numDependencies, flags)
}

/// The program's function and data, between the driver's structures and the runtime's.
struct Recapture(v13::cudaGraphRecaptureCallbackData);

// SAFETY: the program's function and its own data, which go back to it only.
unsafe impl Send for Recapture {}

/// By stream, until its capture ends.
static RECAPTURES: Mutex<Option<HashMap<usize, Box<Recapture>>>> = Mutex::new(None);

unsafe extern "C" fn relay(
    data: *mut c_void,
    node: CUgraphNode,
    original: *const CUgraphNodeParams,
    recaptured: *const CUgraphNodeParams,
    status: CUgraphRecaptureStatus,
) -> CUresult {
    // SAFETY: `data` is the box of the capture in progress; both structures are the driver's and live through the call.
    let (recapture, original, recaptured) = unsafe { (&*data.cast::<Recapture>(), &*original, &*recaptured) };
    let (Some(callback), Ok(original), Ok(recaptured)) =
        (recapture.0.callbackFunc, from_driver_v13(original), from_driver_v13(recaptured))
    else {
        return CUresult::CUDA_ERROR_UNKNOWN;
    };
    let status = v13::cudaGraphRecaptureStatus(status.0);
    // SAFETY: the program's function, with its own data.
    let answer = unsafe { callback(recapture.0.userData, node, &original, &recaptured, status) };
    CUresult(answer.0)
}

pub fn cudaStreamBeginRecaptureToGraph(
    stream: cudaStream_t,
    mode: cudaStreamCaptureMode,
    graph: cudaGraph_t,
    callbackData: Option<&v13::cudaGraphRecaptureCallbackData>,
) -> Result {
    let driver = device::attach()?;
    let (stream, mode) = (stream::meant(stream), CUstreamCaptureMode(mode.0));
    let callback = callbackData.filter(|data| data.callbackFunc.is_some());
    let Some(callback) = callback else {
        return driver.cuStreamBeginRecaptureToGraph(stream, mode, graph, None, ptr::null_mut());
    };
    let mut recapture = Box::new(Recapture(*callback));
    let data = ptr::from_mut(&mut *recapture).cast();
    driver.cuStreamBeginRecaptureToGraph(stream, mode, graph, Some(relay), data)?;
    // What an earlier capture left, if the driver's own call ended it, goes.
    drop(RECAPTURES.lock().get_or_insert_default().insert(stream.addr(), recapture));
    Ok(())
}
