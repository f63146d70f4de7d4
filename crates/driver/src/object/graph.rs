//! Graphs: work that is described once and launched many times, and streams that describe instead of work.
//!
//! An operation is a call of the driver's own with everything but its stream: a launch makes the calls in an order that
//! keeps every dependency, on one stream. HIP differs: its graphs are not used, so every provider has all of this.

use core::ffi::c_uint;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use cuda_abi::{
    CUevent, CUgraph, CUgraphExec, CUgraphNode, CUgraphNodeType, CUstream, CUstreamCaptureStatus,
    CUuserObject,
};
use parking_lot::Mutex;

use super::user_object::{self, Held};
use super::{Shared, Stream};
use crate::handle::{Handle, Registry};
use crate::{Error, Result};

static GRAPHS: Registry<Arc<Graph>, CUgraph> = Registry::new(10);
static NODES: Registry<(Shared<CUgraph>, usize), CUgraphNode> = Registry::new(11);
static EXECS: Registry<Arc<Exec>, CUgraphExec> = Registry::new(12);

/// One call, without its stream.
pub struct Op {
    pub kind: CUgraphNodeType,
    run: Box<dyn Fn(CUstream) -> Result + Send + Sync>,
}

impl Op {
    pub fn new(kind: CUgraphNodeType, run: impl Fn(CUstream) -> Result + Send + Sync + 'static) -> Arc<Op> {
        Arc::new(Op { kind, run: Box::new(run) })
    }

    pub fn empty() -> Arc<Op> {
        Op::new(CUgraphNodeType::CU_GRAPH_NODE_TYPE_EMPTY, |_| Ok(()))
    }

    /// Several operations as one.
    pub fn sequence(ops: Vec<Arc<Op>>) -> Arc<Op> {
        Op::new(CUgraphNodeType::CU_GRAPH_NODE_TYPE_GRAPH, move |stream| {
            ops.iter().try_for_each(|op| op.run(stream))
        })
    }

    pub fn run(&self, stream: CUstream) -> Result {
        (self.run)(stream)
    }
}

#[derive(Clone)]
struct Node {
    op: Arc<Op>,
    /// Places of the nodes it waits for.
    dependencies: Vec<usize>,
    handle: Shared<CUgraphNode>,
}

pub struct Graph {
    handle: Shared<CUgraph>,
    nodes: Mutex<Vec<Node>>,
    held: Mutex<Vec<Arc<Held>>>,
}

impl Graph {
    pub fn create() -> Result<CUgraph> {
        GRAPHS
            .insert_with(|handle| {
                Arc::new(Graph { handle: Shared(handle), nodes: Mutex::default(), held: Mutex::default() })
            })
            .ok_or(Error::OutOfMemory)
    }

    pub fn from_handle(handle: CUgraph) -> Result<Arc<Graph>> {
        crate::process::driver()?;
        GRAPHS.get(handle).ok_or(Error::InvalidValue("hGraph"))
    }

    pub fn destroy(handle: CUgraph) -> Result {
        crate::process::driver()?;
        let graph = GRAPHS.remove(handle).ok_or(Error::InvalidValue("hGraph"))?;
        for node in graph.nodes.lock().drain(..) {
            NODES.remove(node.handle.0);
        }
        Ok(())
    }

    /// Keeps references to a user object; with `is_moved` the caller gives its own away.
    pub fn hold(&self, object: CUuserObject, count: c_uint, is_moved: bool) -> Result {
        if !is_moved {
            user_object::retain(object, count)?;
        }
        self.held.lock().push(Arc::new(Held { object: Shared(object), count }));
        Ok(())
    }

    /// Gives references back that the graph holds.
    pub fn let_go(&self, object: CUuserObject, count: c_uint) -> Result {
        let mut held = self.held.lock();
        let found = held.iter().position(|held| held.object.0 == object && held.count == count);
        let gone = held.remove(found.ok_or(Error::InvalidValue("object or count"))?);
        drop(held);
        // The program's destructor may run here, with no lock held.
        drop(gone);
        Ok(())
    }

    /// The graph and place of a live node.
    pub fn of_node(node: CUgraphNode) -> Result<(Arc<Graph>, usize)> {
        crate::process::driver()?;
        let (graph, place) = NODES.get(node).ok_or(Error::InvalidValue("hNode"))?;
        Ok((Graph::from_handle(graph.0)?, place))
    }

    /// The place of a node of this graph.
    fn place(&self, node: CUgraphNode) -> Result<usize> {
        match NODES.get(node) {
            Some((graph, place)) if graph.0 == self.handle.0 => Ok(place),
            _ => Err(Error::InvalidValue("dependencies: a node of another graph")),
        }
    }

    pub fn add(&self, op: Arc<Op>, dependencies: &[CUgraphNode]) -> Result<CUgraphNode> {
        let places = dependencies.iter().map(|&node| self.place(node)).collect::<Result<Vec<_>>>()?;
        self.push(op, places)
    }

    fn push(&self, op: Arc<Op>, dependencies: Vec<usize>) -> Result<CUgraphNode> {
        let mut nodes = self.nodes.lock();
        let handle = NODES.insert((self.handle, nodes.len())).ok_or(Error::OutOfMemory)?;
        nodes.push(Node { op, dependencies, handle: Shared(handle) });
        Ok(handle)
    }

    /// Makes `to` wait for `from`.
    pub fn connect(&self, from: CUgraphNode, to: CUgraphNode) -> Result {
        let (from, to) = (self.place(from)?, self.place(to)?);
        let mut nodes = self.nodes.lock();
        // CUDA: an edge that is there already is an invalid value, and so is one from a node to itself.
        if from == to || nodes[to].dependencies.contains(&from) {
            return Err(Error::InvalidValue("from or to"));
        }
        nodes[to].dependencies.push(from);
        Ok(())
    }

    pub fn nodes(&self) -> Vec<CUgraphNode> {
        self.nodes.lock().iter().map(|node| node.handle.0).collect()
    }

    pub fn roots(&self) -> Vec<CUgraphNode> {
        self.nodes
            .lock()
            .iter()
            .filter(|node| node.dependencies.is_empty())
            .map(|node| node.handle.0)
            .collect()
    }

    /// The nodes a node waits for.
    pub fn dependencies(&self, place: usize) -> Vec<CUgraphNode> {
        let nodes = self.nodes.lock();
        nodes[place].dependencies.iter().map(|&at| nodes[at].handle.0).collect()
    }

    /// The nodes that wait for a node.
    pub fn dependents(&self, place: usize) -> Vec<CUgraphNode> {
        let nodes = self.nodes.lock();
        nodes.iter().filter(|node| node.dependencies.contains(&place)).map(|node| node.handle.0).collect()
    }

    pub fn edges(&self) -> Vec<(CUgraphNode, CUgraphNode)> {
        let nodes = self.nodes.lock();
        nodes
            .iter()
            .flat_map(|to| to.dependencies.iter().map(|&from| (nodes[from].handle.0, to.handle.0)))
            .collect()
    }

    pub fn kind(&self, place: usize) -> CUgraphNodeType {
        self.nodes.lock()[place].op.kind
    }

    pub fn set(&self, place: usize, op: Arc<Op>) -> Result {
        let mut nodes = self.nodes.lock();
        if nodes[place].op.kind != op.kind {
            return Err(Error::InvalidValue("hNode: of another type"));
        }
        nodes[place].op = op;
        Ok(())
    }

    /// A graph of its own with the same nodes.
    pub fn duplicate(&self) -> Result<CUgraph> {
        let copy = Graph::create()?;
        let graph = Graph::from_handle(copy)?;
        for node in self.nodes.lock().clone() {
            graph.push(node.op, node.dependencies)?;
        }
        *graph.held.lock() = self.held.lock().clone();
        Ok(copy)
    }

    /// The nodes, each behind all that it waits for. CUDA: a circle is an invalid value.
    fn ordered(&self) -> Result<Vec<(CUgraphNode, Arc<Op>)>> {
        let nodes = self.nodes.lock();
        let mut waiting: Vec<usize> = nodes.iter().map(|node| node.dependencies.len()).collect();
        let mut ready: std::collections::VecDeque<usize> =
            (0..nodes.len()).filter(|&place| waiting[place] == 0).collect();
        let mut ordered = Vec::with_capacity(nodes.len());
        while let Some(place) = ready.pop_front() {
            ordered.push((nodes[place].handle.0, Arc::clone(&nodes[place].op)));
            for (other, node) in nodes.iter().enumerate() {
                let n_edges = node.dependencies.iter().filter(|&&at| at == place).count();
                if n_edges > 0 {
                    waiting[other] -= n_edges;
                    if waiting[other] == 0 {
                        ready.push_back(other);
                    }
                }
            }
        }
        if ordered.len() == nodes.len() { Ok(ordered) } else { Err(Error::InvalidValue("hGraph: a circle")) }
    }

    /// The graph's work as one operation.
    pub fn as_op(&self) -> Result<Arc<Op>> {
        Ok(Op::sequence(self.ordered()?.into_iter().map(|(_, op)| op).collect()))
    }
}

/// A node's call, by the node it came from.
type Step = (Shared<CUgraphNode>, Arc<Op>);

/// A graph ready to launch.
pub struct Exec {
    /// In the order they run; replaced as a whole when a node's parameters change.
    ops: Mutex<Arc<Vec<Step>>>,
    _held: Vec<Arc<Held>>,
    pub flags: u64,
}

impl Exec {
    pub fn instantiate(graph: &Graph, flags: u64) -> Result<CUgraphExec> {
        let ops = graph.ordered()?.into_iter().map(|(node, op)| (Shared(node), op)).collect();
        let held = graph.held.lock().clone();
        let exec = Exec { ops: Mutex::new(Arc::new(ops)), _held: held, flags };
        EXECS.insert(Arc::new(exec)).ok_or(Error::OutOfMemory)
    }

    pub fn from_handle(handle: CUgraphExec) -> Result<Arc<Exec>> {
        crate::process::driver()?;
        EXECS.get(handle).ok_or(Error::InvalidValue("hGraphExec"))
    }

    pub fn destroy(handle: CUgraphExec) -> Result {
        crate::process::driver()?;
        EXECS.remove(handle).map(|_| ()).ok_or(Error::InvalidValue("hGraphExec"))
    }

    pub fn launch(&self, stream: CUstream) -> Result {
        let ops = Arc::clone(&self.ops.lock());
        ops.iter().try_for_each(|(_, op)| op.run(stream))
    }

    /// The work as one operation, for a launch that is itself captured.
    pub fn as_op(&self) -> Arc<Op> {
        let ops = Arc::clone(&self.ops.lock());
        Op::sequence(ops.iter().map(|(_, op)| Arc::clone(op)).collect())
    }

    /// Replaces one node's call.
    pub fn set(&self, node: CUgraphNode, op: Arc<Op>) -> Result {
        let mut ops = self.ops.lock();
        let place = ops.iter().position(|(known, _)| known.0 == node).ok_or(Error::InvalidValue("hNode"))?;
        if ops[place].1.kind != op.kind {
            return Err(Error::InvalidValue("hNode: of another type"));
        }
        Arc::make_mut(&mut ops)[place].1 = op;
        Ok(())
    }

    /// Takes the calls of a graph of the same shape. `false` when the shapes differ.
    pub fn update(&self, graph: &Graph) -> Result<bool> {
        let new = graph.ordered()?;
        let mut ops = self.ops.lock();
        let is_same =
            new.len() == ops.len() && new.iter().zip(ops.iter()).all(|(new, old)| new.1.kind == old.1.kind);
        if is_same {
            *ops = Arc::new(ops.iter().zip(new).map(|(old, new)| (old.0, new.1)).collect());
        }
        Ok(is_same)
    }
}

/// Streams that are being captured; 0 nearly always, which is all that other calls look at.
static N_CAPTURING: AtomicUsize = AtomicUsize::new(0);
static CAPTURES: Mutex<Option<Captures>> = Mutex::new(None);

/// A stream, default streams included.
type StreamKey = (u64, u64);

#[derive(Default)]
struct Captures {
    of_stream: HashMap<StreamKey, u64>,
    captures: HashMap<u64, Capture>,
    /// Events recorded in a capture: which one, and behind which nodes.
    events: HashMap<u64, (u64, Vec<usize>)>,
}

struct Capture {
    graph: Arc<Graph>,
    origin: StreamKey,
    is_invalid: bool,
    /// What the next operation of each stream waits for.
    tails: HashMap<StreamKey, Vec<usize>>,
}

fn key(stream: &Stream) -> StreamKey {
    (stream.context.id(), stream.id)
}

/// Describes the operation instead of running it, if `stream` is being captured.
#[inline]
pub fn captured(stream: CUstream, op: impl FnOnce() -> Result<Arc<Op>>) -> Result<bool> {
    if N_CAPTURING.load(Ordering::Relaxed) == 0 {
        return Ok(false);
    }
    record(stream, op)
}

#[cold]
fn record(stream: CUstream, op: impl FnOnce() -> Result<Arc<Op>>) -> Result<bool> {
    let key = key(&Stream::from_handle(stream)?);
    // Making the operation may look functions up, so it happens before the lock is taken.
    if !CAPTURES.lock().as_ref().is_some_and(|all| all.of_stream.contains_key(&key)) {
        return Ok(false);
    }
    let op = op()?;
    let mut all = CAPTURES.lock();
    let Some(capture) = all.as_mut().and_then(|all| all.captures.get_mut(all.of_stream.get(&key)?)) else {
        return Ok(false);
    };
    if capture.is_invalid {
        return Err(Error::StreamCaptureInvalidated);
    }
    let tail = capture.tails.get(&key).cloned().unwrap_or_default();
    let place = capture.graph.nodes.lock().len();
    capture.graph.push(op, tail)?;
    capture.tails.insert(key, vec![place]);
    Ok(true)
}

/// Calls that a capture cannot hold end it: CUDA invalidates the capture and says why.
#[inline]
pub fn forbid_in_capture(stream: CUstream) -> Result {
    if N_CAPTURING.load(Ordering::Relaxed) == 0 {
        return Ok(());
    }
    let key = key(&Stream::from_handle(stream)?);
    let mut all = CAPTURES.lock();
    match all.as_mut().and_then(|all| all.captures.get_mut(all.of_stream.get(&key)?)) {
        Some(capture) => {
            capture.is_invalid = true;
            Err(Error::StreamCaptureUnsupported)
        }
        None => Ok(()),
    }
}

/// `cuEventRecord` in a captured stream marks a place in the graph.
pub fn captured_event_record(event: CUevent, stream: CUstream) -> Result<bool> {
    if N_CAPTURING.load(Ordering::Relaxed) == 0 {
        return Ok(false);
    }
    let key = key(&Stream::from_handle(stream)?);
    let mut all = CAPTURES.lock();
    let Some(all) = all.as_mut() else { return Ok(false) };
    match all.of_stream.get(&key).copied() {
        Some(id) => {
            let tail = all.captures.get(&id).and_then(|capture| capture.tails.get(&key)).cloned();
            all.events.insert(event.bits(), (id, tail.unwrap_or_default()));
            Ok(true)
        }
        None => {
            all.events.remove(&event.bits());
            Ok(false)
        }
    }
}

/// `cuStreamWaitEvent` for an event of a capture takes the stream into it.
pub fn captured_event_wait(event: CUevent, stream: CUstream) -> Result<bool> {
    if N_CAPTURING.load(Ordering::Relaxed) == 0 {
        return Ok(false);
    }
    let key = key(&Stream::from_handle(stream)?);
    let mut all = CAPTURES.lock();
    let Some(all) = all.as_mut() else { return Ok(false) };
    let of_stream = all.of_stream.get(&key).copied();
    match (all.events.get(&event.bits()).cloned(), of_stream) {
        (None, None) => Ok(false),
        // CUDA: a captured stream cannot wait for work that is not captured.
        (None, Some(id)) => {
            if let Some(capture) = all.captures.get_mut(&id) {
                capture.is_invalid = true;
            }
            Err(Error::StreamCaptureIsolation)
        }
        (Some((id, _)), Some(own)) if id != own => Err(Error::StreamCaptureMerge),
        (Some((id, nodes)), _) => {
            let capture = all.captures.get_mut(&id).ok_or(Error::CapturedEvent)?;
            let tail = capture.tails.entry(key).or_default();
            tail.extend(nodes.iter().filter(|place| !tail.contains(place)).copied().collect::<Vec<_>>());
            if of_stream.is_none() {
                all.of_stream.insert(key, id);
                N_CAPTURING.fetch_add(1, Ordering::Relaxed);
            }
            Ok(true)
        }
    }
}

/// Begins to capture a stream.
pub fn begin_capture(stream: CUstream) -> Result {
    let stream = Stream::from_handle(stream)?;
    // CUDA: the legacy default stream cannot be captured.
    if stream.id == 1 {
        return Err(Error::StreamCaptureImplicit);
    }
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let graph = Graph::from_handle(Graph::create()?)?;
    let key = key(&stream);
    let mut all = CAPTURES.lock();
    let all = all.get_or_insert_default();
    if all.of_stream.contains_key(&key) {
        let handle = graph.handle.0;
        drop(graph);
        Graph::destroy(handle)?;
        return Err(Error::IllegalState);
    }
    let id = NEXT.fetch_add(1, Ordering::Relaxed);
    all.of_stream.insert(key, id);
    all.captures.insert(id, Capture { graph, origin: key, is_invalid: false, tails: HashMap::new() });
    N_CAPTURING.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

/// Ends the capture that began on this stream and gives its graph.
pub fn end_capture(stream: CUstream) -> Result<CUgraph> {
    let key = key(&Stream::from_handle(stream)?);
    let mut all = CAPTURES.lock();
    let all = all.as_mut().ok_or(Error::IllegalState)?;
    let id = all.of_stream.get(&key).copied().ok_or(Error::IllegalState)?;
    // CUDA: it ends where it began.
    if all.captures.get(&id).is_some_and(|capture| capture.origin != key) {
        return Err(Error::StreamCaptureUnmatched);
    }
    let capture = all.captures.remove(&id).ok_or(Error::IllegalState)?;
    let before = all.of_stream.len();
    all.of_stream.retain(|_, of| *of != id);
    N_CAPTURING.fetch_sub(before - all.of_stream.len(), Ordering::Relaxed);
    all.events.retain(|_, (of, _)| *of != id);
    let handle = capture.graph.handle.0;
    let error = if capture.is_invalid {
        Some(Error::StreamCaptureInvalidated)
    } else if !capture.is_joined() {
        Some(Error::StreamCaptureUnjoined)
    } else {
        None
    };
    match error {
        None => Ok(handle),
        Some(error) => {
            Graph::destroy(handle)?;
            Err(error)
        }
    }
}

impl Capture {
    /// Whether everything in the graph is waited for by the stream the capture began on.
    fn is_joined(&self) -> bool {
        let nodes = self.graph.nodes.lock();
        let mut reached = vec![false; nodes.len()];
        let mut open = self.tails.get(&self.origin).cloned().unwrap_or_default();
        while let Some(place) = open.pop() {
            if !core::mem::replace(&mut reached[place], true) {
                open.extend(&nodes[place].dependencies);
            }
        }
        self.tails.values().flatten().all(|&place| reached[place])
    }
}

/// What is known of a stream's capture: status, id, graph, and the nodes the next operation waits for.
pub struct CaptureInfo {
    pub status: CUstreamCaptureStatus,
    pub id: u64,
    pub graph: CUgraph,
    pub tail: Vec<CUgraphNode>,
}

pub fn capture_info(stream: CUstream) -> Result<CaptureInfo> {
    let none = CaptureInfo {
        status: CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE,
        id: 0,
        graph: core::ptr::null_mut(),
        tail: Vec::new(),
    };
    let key = key(&Stream::from_handle(stream)?);
    let all = CAPTURES.lock();
    let Some(all) = all.as_ref() else { return Ok(none) };
    let Some(&id) = all.of_stream.get(&key) else { return Ok(none) };
    let Some(capture) = all.captures.get(&id) else { return Ok(none) };
    let nodes = capture.graph.nodes.lock();
    let tail = capture.tails.get(&key).into_iter().flatten().map(|&place| nodes[place].handle.0).collect();
    Ok(CaptureInfo {
        status: if capture.is_invalid {
            CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_INVALIDATED
        } else {
            CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE
        },
        id,
        graph: capture.graph.handle.0,
        tail,
    })
}
