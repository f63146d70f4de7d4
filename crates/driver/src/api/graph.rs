//! Graph Management: graphs, their edges, and what is asked of nodes of any type.

use core::ffi::{CStr, c_char, c_int, c_uint, c_ulonglong, c_void};

use border::Out;
use cuda_abi::{
    CUdevice, CUgraph, CUgraphConditionalHandle, CUgraphEdgeData, CUgraphMem_attribute, CUgraphNode,
    CUgraphNodeType,
};

use crate::object::Device;
use crate::object::graph::allocation::{self, Bytes};
use crate::object::graph::condition::context_of;
use crate::object::graph::storage;
use crate::object::graph::{Condition, Edge, Graph, Role, dot};
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
    phGraphClone.write(Graph::from_handle(originalGraph)?.duplicate(Role::Top)?.handle.0);
    Ok(())
}

pub fn cuGraphGetId(hGraph: CUgraph, graphId: Out<'_, c_uint>) -> Result {
    graphId.write(Graph::from_handle(hGraph)?.id);
    Ok(())
}

/// A list of nodes with what the edges say; without data every edge is a full one.
///
/// # Safety
/// `nodes` and `data` are NULL, or have `count` elements.
pub(crate) unsafe fn dependencies_of(
    nodes: *const CUgraphNode,
    data: *const CUgraphEdgeData,
    count: usize,
) -> Result<Vec<(CUgraphNode, Edge)>> {
    if count > 0 && nodes.is_null() {
        return Err(Error::InvalidValue("dependencies"));
    }
    let mut list = Vec::with_capacity(count);
    for index in 0..count {
        // SAFETY: the caller's promise: that many nodes.
        let node = unsafe { *nodes.add(index) };
        // SAFETY: the caller's promise.
        list.push((node, unsafe { edge_at(data, index) }?));
    }
    Ok(list)
}

/// # Safety
/// `data` is NULL, or has an element at `index`.
unsafe fn edge_at(data: *const CUgraphEdgeData, index: usize) -> Result<Edge> {
    if data.is_null() {
        return Ok(Edge::default());
    }
    // SAFETY: the caller's promise: as many entries as there are nodes.
    Edge::read(unsafe { &*data.add(index) })
}

/// # Safety
/// `from` and `to` are NULL, or have `numDependencies` elements.
pub unsafe fn cuGraphAddDependencies(
    hGraph: CUgraph,
    from: *const CUgraphNode,
    to: *const CUgraphNode,
    numDependencies: usize,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { cuGraphAddDependencies_v2(hGraph, from, to, core::ptr::null(), numDependencies) }
}

/// Edge data are kept and given back. Kernels here have no ports: every edge is a full one, which is never too little.
///
/// # Safety
/// `from`, `to` and `edgeData` are NULL, or have `numDependencies` elements.
pub unsafe fn cuGraphAddDependencies_v2(
    hGraph: CUgraph,
    from: *const CUgraphNode,
    to: *const CUgraphNode,
    edgeData: *const CUgraphEdgeData,
    numDependencies: usize,
) -> Result {
    let graph = Graph::from_handle(hGraph)?;
    // SAFETY: the caller's promise.
    unsafe {
        for_each_edge(from, to, edgeData, numDependencies, |from, to, edge| graph.connect(from, to, edge))
    }
}

/// # Safety
/// `from` and `to` are NULL, or have `numDependencies` elements.
pub unsafe fn cuGraphRemoveDependencies(
    hGraph: CUgraph,
    from: *const CUgraphNode,
    to: *const CUgraphNode,
    numDependencies: usize,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { cuGraphRemoveDependencies_v2(hGraph, from, to, core::ptr::null(), numDependencies) }
}

/// CUDA: an edge with data is named together with them.
///
/// # Safety
/// `from`, `to` and `edgeData` are NULL, or have `numDependencies` elements.
pub unsafe fn cuGraphRemoveDependencies_v2(
    hGraph: CUgraph,
    from: *const CUgraphNode,
    to: *const CUgraphNode,
    edgeData: *const CUgraphEdgeData,
    numDependencies: usize,
) -> Result {
    let graph = Graph::from_handle(hGraph)?;
    // SAFETY: the caller's promise.
    unsafe {
        for_each_edge(from, to, edgeData, numDependencies, |from, to, edge| graph.disconnect(from, to, edge))
    }
}

/// # Safety
/// The arrays are NULL, or have `count` elements.
unsafe fn for_each_edge(
    from: *const CUgraphNode,
    to: *const CUgraphNode,
    data: *const CUgraphEdgeData,
    count: usize,
    act: impl Fn(CUgraphNode, CUgraphNode, Edge) -> Result,
) -> Result {
    if count > 0 && (from.is_null() || to.is_null()) {
        return Err(Error::InvalidValue("from or to"));
    }
    for index in 0..count {
        // SAFETY: the caller's promise: that many nodes in each array.
        let (from, to) = unsafe { (*from.add(index), *to.add(index)) };
        // SAFETY: the caller's promise.
        act(from, to, unsafe { edge_at(data, index) }?)?;
    }
    Ok(())
}

/// CUDA's way to hand out a list: without an array the count, else as many as fit, the rest zeros.
///
/// # Safety
/// `at` is NULL, or has room for `room` elements.
unsafe fn write_list<T: Copy>(list: &[T], nothing: T, at: *mut T, room: usize) {
    if at.is_null() {
        return;
    }
    for index in 0..room {
        // SAFETY: the caller's promise: room for as many entries.
        unsafe { at.add(index).write(list.get(index).copied().unwrap_or(nothing)) };
    }
}

/// Reads how many entries there is room for, writes how many there are; with less room, how many were written.
///
/// # Safety
/// `count` is NULL, or may be read and written.
unsafe fn count_of(count: *mut usize, n: usize, is_asked: bool) -> Result<usize> {
    // SAFETY: the caller's promise: NULL or a variable to read and write.
    let count = unsafe { count.as_mut() }.ok_or(Error::InvalidValue("the number of entries"))?;
    let room = *count;
    *count = if is_asked { n.min(room) } else { n };
    Ok(room)
}

/// # Safety
/// The arrays are NULL, or have room for as many elements as `count` says, which is NULL, or may be read and written.
unsafe fn write_nodes(list: &[CUgraphNode], at: *mut CUgraphNode, count: *mut usize) -> Result {
    // SAFETY: the caller's promise.
    let room = unsafe { count_of(count, list.len(), !at.is_null()) }?;
    // SAFETY: the caller's promise.
    unsafe { write_list(list, core::ptr::null_mut(), at, room) };
    Ok(())
}

/// CUDA: edges that say something are not left out without a word.
fn check_lossless(edges: &[Edge], is_asked: bool, data: *const CUgraphEdgeData) -> Result {
    let is_lossy = is_asked && data.is_null() && !edges.iter().all(|edge| edge.is_plain());
    if is_lossy { Err(Error::LossyQuery) } else { Ok(()) }
}

/// # Safety
/// The arrays are NULL, or have room for as many elements as `count` says, which is NULL, or may be read and written.
unsafe fn write_edges(
    list: &[(CUgraphNode, Edge)],
    nodes: *mut CUgraphNode,
    data: *mut CUgraphEdgeData,
    count: *mut usize,
) -> Result {
    // CUDA: edge data are asked for together with the nodes.
    if nodes.is_null() && !data.is_null() {
        return Err(Error::InvalidValue("edgeData"));
    }
    let (handles, edges): (Vec<_>, Vec<_>) = list.iter().copied().unzip();
    check_lossless(&edges, !nodes.is_null(), data)?;
    // SAFETY: the caller's promise.
    let room = unsafe { count_of(count, list.len(), !nodes.is_null()) }?;
    // SAFETY: the caller's promise.
    unsafe { write_list(&handles, core::ptr::null_mut(), nodes, room) };
    // SAFETY: the caller's promise.
    unsafe { write_list(&data_of(&edges), CUgraphEdgeData::default(), data, room) };
    Ok(())
}

fn data_of(edges: &[Edge]) -> Vec<CUgraphEdgeData> {
    edges.iter().map(|edge| edge.data()).collect()
}

/// # Safety
/// The arrays are NULL, or have room for as many elements as `numNodes` says, which is NULL, or may be read and written.
pub unsafe fn cuGraphGetNodes(hGraph: CUgraph, nodes: *mut CUgraphNode, numNodes: *mut usize) -> Result {
    // SAFETY: the caller's promise.
    unsafe { write_nodes(&Graph::from_handle(hGraph)?.nodes(), nodes, numNodes) }
}

/// # Safety
/// The arrays are NULL, or have room for as many elements as `numRootNodes` says, which is NULL, or may be read and written.
pub unsafe fn cuGraphGetRootNodes(
    hGraph: CUgraph,
    rootNodes: *mut CUgraphNode,
    numRootNodes: *mut usize,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { write_nodes(&Graph::from_handle(hGraph)?.roots(), rootNodes, numRootNodes) }
}

/// # Safety
/// The arrays are NULL, or have room for as many elements as `numEdges` says, which is NULL, or may be read and written.
pub unsafe fn cuGraphGetEdges(
    hGraph: CUgraph,
    from: *mut CUgraphNode,
    to: *mut CUgraphNode,
    numEdges: *mut usize,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { cuGraphGetEdges_v2(hGraph, from, to, core::ptr::null_mut(), numEdges) }
}

/// # Safety
/// The arrays are NULL, or have room for as many elements as `numEdges` says, which is NULL, or may be read and written.
pub unsafe fn cuGraphGetEdges_v2(
    hGraph: CUgraph,
    from: *mut CUgraphNode,
    to: *mut CUgraphNode,
    edgeData: *mut CUgraphEdgeData,
    numEdges: *mut usize,
) -> Result {
    let edges = Graph::from_handle(hGraph)?.edges();
    // CUDA: both ends or neither, and the data with them.
    if from.is_null() != to.is_null() || (from.is_null() && !edgeData.is_null()) {
        return Err(Error::InvalidValue("from, to or edgeData"));
    }
    let data: Vec<Edge> = edges.iter().map(|(.., edge)| *edge).collect();
    check_lossless(&data, !from.is_null(), edgeData)?;
    // SAFETY: the caller's promise.
    let room = unsafe { count_of(numEdges, edges.len(), !from.is_null()) }?;
    let sources: Vec<_> = edges.iter().map(|(from, ..)| *from).collect();
    let targets: Vec<_> = edges.iter().map(|(_, to, _)| *to).collect();
    // SAFETY: the caller's promise.
    unsafe { write_list(&sources, core::ptr::null_mut(), from, room) };
    // SAFETY: the caller's promise.
    unsafe { write_list(&targets, core::ptr::null_mut(), to, room) };
    // SAFETY: the caller's promise.
    unsafe { write_list(&data_of(&data), CUgraphEdgeData::default(), edgeData, room) };
    Ok(())
}

/// # Safety
/// The arrays are NULL, or have room for as many elements as `numDependencies` says, which is NULL, or may be read and written.
pub unsafe fn cuGraphNodeGetDependencies(
    hNode: CUgraphNode,
    dependencies: *mut CUgraphNode,
    numDependencies: *mut usize,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { cuGraphNodeGetDependencies_v2(hNode, dependencies, core::ptr::null_mut(), numDependencies) }
}

/// # Safety
/// The arrays are NULL, or have room for as many elements as `numDependencies` says, which is NULL, or may be read and written.
pub unsafe fn cuGraphNodeGetDependencies_v2(
    hNode: CUgraphNode,
    dependencies: *mut CUgraphNode,
    edgeData: *mut CUgraphEdgeData,
    numDependencies: *mut usize,
) -> Result {
    let (graph, place) = Graph::of_node(hNode)?;
    // SAFETY: the caller's promise.
    unsafe { write_edges(&graph.dependencies(place), dependencies, edgeData, numDependencies) }
}

/// # Safety
/// The arrays are NULL, or have room for as many elements as `numDependentNodes` says, which is NULL, or may be read and written.
pub unsafe fn cuGraphNodeGetDependentNodes(
    hNode: CUgraphNode,
    dependentNodes: *mut CUgraphNode,
    numDependentNodes: *mut usize,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe {
        cuGraphNodeGetDependentNodes_v2(hNode, dependentNodes, core::ptr::null_mut(), numDependentNodes)
    }
}

/// # Safety
/// The arrays are NULL, or have room for as many elements as `numDependentNodes` says, which is NULL, or may be read and written.
pub unsafe fn cuGraphNodeGetDependentNodes_v2(
    hNode: CUgraphNode,
    dependentNodes: *mut CUgraphNode,
    edgeData: *mut CUgraphEdgeData,
    numDependentNodes: *mut usize,
) -> Result {
    let (graph, place) = Graph::of_node(hNode)?;
    // SAFETY: the caller's promise.
    unsafe { write_edges(&graph.dependents(place), dependentNodes, edgeData, numDependentNodes) }
}

pub fn cuGraphNodeGetType(hNode: CUgraphNode, type_: Out<'_, CUgraphNodeType>) -> Result {
    type_.write(Graph::op_of(hNode)?.kind());
    Ok(())
}

pub fn cuGraphDestroyNode(hNode: CUgraphNode) -> Result {
    let (graph, place) = Graph::of_node(hNode)?;
    graph.remove(place)
}

pub fn cuGraphNodeFindInClone(
    phNode: Out<'_, CUgraphNode>,
    hOriginalNode: CUgraphNode,
    hClonedGraph: CUgraph,
) -> Result {
    Graph::of_node(hOriginalNode)?;
    phNode.write(Graph::from_handle(hClonedGraph)?.clone_of(hOriginalNode)?);
    Ok(())
}

pub fn cuGraphNodeGetContainingGraph(hNode: CUgraphNode, phGraph: Out<'_, CUgraph>) -> Result {
    phGraph.write(Graph::of_node(hNode)?.0.handle.0);
    Ok(())
}

/// Nodes of a graph count from 0 in the order they were made.
pub fn cuGraphNodeGetLocalId(hNode: CUgraphNode, nodeId: Out<'_, c_uint>) -> Result {
    let (_, place) = Graph::of_node(hNode)?;
    nodeId.write(c_uint::try_from(place).map_err(|_| Error::Unknown)?);
    Ok(())
}

/// The graph's id and the node's in it.
pub fn cuGraphNodeGetToolsId(hNode: CUgraphNode, toolsNodeId: Out<'_, c_ulonglong>) -> Result {
    let (graph, place) = Graph::of_node(hNode)?;
    toolsNodeId.write((c_ulonglong::from(graph.id) << 32) | place as c_ulonglong);
    Ok(())
}

/// Writes the graph in the DOT language.
///
/// # Safety
/// `path` is NULL or a C string.
pub unsafe fn cuGraphDebugDotPrint(hGraph: CUgraph, path: *const c_char, flags: c_uint) -> Result {
    let graph = Graph::from_handle(hGraph)?;
    if path.is_null() {
        return Err(Error::InvalidValue("path"));
    }
    // SAFETY: the caller's promise: a C string.
    let path = unsafe { CStr::from_ptr(path) }.to_str().map_err(|_| Error::InvalidValue("path"))?;
    std::fs::write(path, dot::print(&graph, flags)).map_err(|_| Error::OperatingSystem)
}

/// A number that a conditional node of the graph, or of one inside it, goes by.
pub fn cuGraphConditionalHandleCreate(
    pHandle_out: Out<'_, CUgraphConditionalHandle>,
    hGraph: CUgraph,
    ctx: cuda_abi::CUcontext,
    defaultLaunchValue: c_uint,
    flags: c_uint,
) -> Result {
    let graph = Graph::from_handle(hGraph)?;
    let condition = Condition::make(context_of(ctx)?, defaultLaunchValue, flags)?;
    pHandle_out.write(condition.handle);
    graph.enter_condition(condition);
    Ok(())
}

/// The part of a device's graph memory that an attribute means, and whether it is the high-water mark.
fn attribute(attr: CUgraphMem_attribute, usage: &mut allocation::Usage) -> Result<(&mut Bytes, bool)> {
    match attr {
        CUgraphMem_attribute::CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT => Ok((&mut usage.used, false)),
        CUgraphMem_attribute::CU_GRAPH_MEM_ATTR_USED_MEM_HIGH => Ok((&mut usage.used, true)),
        CUgraphMem_attribute::CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT => Ok((&mut usage.reserved, false)),
        CUgraphMem_attribute::CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH => Ok((&mut usage.reserved, true)),
        _ => Err(Error::InvalidValue("attr")),
    }
}

/// # Safety
/// `value` is NULL, or has room for a number of 64 bits.
pub unsafe fn cuDeviceGetGraphMemAttribute(
    device: CUdevice,
    attr: CUgraphMem_attribute,
    value: *mut c_void,
) -> Result {
    Device::get(device)?;
    if value.is_null() {
        return Err(Error::InvalidValue("value"));
    }
    let answer = allocation::usage(device, |usage| {
        attribute(attr, usage).map(|(bytes, is_high)| if is_high { bytes.high } else { bytes.current })
    })?;
    // SAFETY: the caller's promise: all attributes are 64-bit numbers.
    unsafe { value.cast::<u64>().write(answer) };
    Ok(())
}

/// CUDA: high-water marks can be set back, to 0 only.
///
/// # Safety
/// `value` is NULL, or a number of 64 bits.
pub unsafe fn cuDeviceSetGraphMemAttribute(
    device: CUdevice,
    attr: CUgraphMem_attribute,
    value: *mut c_void,
) -> Result {
    Device::get(device)?;
    // SAFETY: the caller's promise: all attributes are 64-bit numbers.
    let value = unsafe { value.cast::<u64>().as_ref() }.ok_or(Error::InvalidValue("value"))?;
    allocation::usage(device, |usage| {
        let (bytes, is_high) = attribute(attr, usage)?;
        if !is_high || *value != 0 {
            return Err(Error::InvalidValue("attr or value"));
        }
        bytes.high = bytes.current;
        Ok(())
    })
}

/// Gives back the memory that graphs keep for their next launch. CUDA: what is in use stays.
pub fn cuDeviceGraphMemTrim(device: c_int) -> Result {
    storage::trim(Device::get(device)?);
    Ok(())
}
