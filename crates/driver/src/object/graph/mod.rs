//! Graphs: work that is described once and launched many times, and streams that describe instead of work.
//!
//! An operation is a call of the driver's own with everything but its stream: a launch makes the calls in an order that
//! keeps every dependency, on one stream. HIP differs: its graphs are not used, so every provider has all of this.
//! Lock order: captures, a graph's nodes, its storage; no call of the program's runs under any.

pub mod allocation;
pub mod capture;
pub mod condition;
pub mod device;
pub mod dot;
pub mod exec;
pub mod fired;
pub mod op;
pub mod storage;

use core::ffi::c_uint;
use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use cuda_abi::{CUdeviceptr, CUgraph, CUgraphEdgeData, CUgraphNode, CUgraphNodeType, CUuserObject};
use parking_lot::Mutex;

use super::Context;
use super::Shared;
use super::user_object::{self, Held};
use crate::handle::Registry;
use crate::{Error, Result};

pub use allocation::Block;
pub use condition::{Condition, Conditional};
pub use exec::Exec;
pub use op::{Arguments, Batch, Kernel, Op, Params};
use storage::{Arena, Storage};

static GRAPHS: Registry<Arc<Graph>, CUgraph> = Registry::new(10);
static NODES: Registry<(Shared<CUgraph>, usize), CUgraphNode> = Registry::new(11);

/// What an edge says of its ends, as bytes: two ports, a type, five zeros.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Edge {
    from_port: u8,
    to_port: u8,
    kind: u8,
}

impl Edge {
    /// CUDA: no node type has an incoming port, only kernels have outgoing ones, and the rest is zero.
    pub fn read(data: &CUgraphEdgeData) -> Result<Edge> {
        let CUgraphEdgeData { from_port, to_port, type_, reserved } = *data;
        // A programmatic edge begins at one of the two ports that are not "the kernel has ended".
        let is_known = match type_ {
            0 => from_port <= 2,
            1 => matches!(from_port, 1 | 2),
            _ => false,
        };
        if !is_known || to_port != 0 || reserved != [0; 5] {
            return Err(Error::InvalidValue("edgeData"));
        }
        Ok(Edge { from_port, to_port, kind: type_ })
    }

    pub fn data(self) -> CUgraphEdgeData {
        let Edge { from_port, to_port, kind } = self;
        CUgraphEdgeData { from_port, to_port, type_: kind, reserved: [0; 5] }
    }

    pub fn is_plain(self) -> bool {
        self == Edge::default()
    }
}

/// The place of a node that another waits for, and how.
pub type Dependency = (usize, Edge);

/// Where a node is about to be added.
pub struct Site<'a> {
    pub graph: &'a Graph,
    pub dependencies: &'a [Dependency],
    /// In a capture of the same work again: the node that was there.
    pub known: Option<Arc<Op>>,
}

impl Site<'_> {
    fn known_block(&self) -> Option<Arc<Block>> {
        match &self.known.as_ref()?.params {
            Params::Alloc(block) => Some(Arc::clone(block)),
            _ => None,
        }
    }
}

#[derive(Clone)]
pub struct Node {
    pub op: Arc<Op>,
    pub dependencies: Vec<Dependency>,
    pub handle: Shared<CUgraphNode>,
    /// The node it is a clone of.
    original: Option<Shared<CUgraphNode>>,
}

/// What a graph is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The program's own.
    Top,
    /// Inside a child node, or a body of a conditional one.
    Child,
    Body,
}

pub struct Graph {
    pub handle: Shared<CUgraph>,
    pub id: u32,
    role: Mutex<Role>,
    /// A node that was destroyed leaves its place empty: places are local ids.
    nodes: Mutex<Vec<Option<Node>>>,
    held: Mutex<Vec<Arc<Held>>>,
    conditions: Mutex<Vec<Arc<Condition>>>,
    storage: Mutex<Storage>,
    n_execs: AtomicUsize,
    is_captured_into: AtomicBool,
}

/// A graph that belongs to a node: it goes with the node.
pub struct Child(pub Arc<Graph>);

impl Drop for Child {
    fn drop(&mut self) {
        Graph::forget(self.0.handle.0);
    }
}

/// Graphs and instantiated graphs are numbered together.
fn next_id() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl Graph {
    pub fn create() -> Result<CUgraph> {
        Ok(Graph::make(Role::Top)?.handle.0)
    }

    pub fn make(role: Role) -> Result<Arc<Graph>> {
        let handle = GRAPHS.insert_with(|handle| {
            Arc::new(Graph {
                handle: Shared(handle),
                id: next_id(),
                role: Mutex::new(role),
                nodes: Mutex::default(),
                held: Mutex::default(),
                conditions: Mutex::default(),
                storage: Mutex::default(),
                n_execs: AtomicUsize::new(0),
                is_captured_into: AtomicBool::new(false),
            })
        });
        Graph::from_handle(handle.ok_or(Error::OutOfMemory)?)
    }

    pub fn from_handle(handle: CUgraph) -> Result<Arc<Graph>> {
        crate::process::driver()?;
        GRAPHS.get(handle).ok_or(Error::InvalidValue("hGraph"))
    }

    /// CUDA: graphs that belong to a node go with it, and a graph is not destroyed while a stream describes it.
    pub fn destroy(handle: CUgraph) -> Result {
        let graph = Graph::from_handle(handle)?;
        if graph.role() != Role::Top || graph.is_captured_into.load(Ordering::Relaxed) {
            return Err(Error::InvalidValue("hGraph"));
        }
        Graph::forget(handle);
        Ok(())
    }

    fn forget(handle: CUgraph) {
        let Some(graph) = GRAPHS.remove(handle) else { return };
        // What the nodes and the program's objects hold is dropped with no lock held.
        let nodes = core::mem::take(&mut *graph.nodes.lock());
        for node in nodes.iter().flatten() {
            NODES.remove(node.handle.0);
        }
        let held = core::mem::take(&mut *graph.held.lock());
        let storage = core::mem::take(&mut *graph.storage.lock());
        drop((nodes, held, storage));
    }

    pub fn role(&self) -> Role {
        *self.role.lock()
    }

    /// Makes the program's graph a node's own (`CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE`).
    pub fn give_away(self: &Arc<Self>) -> Result<Child> {
        let mut role = self.role.lock();
        if *role != Role::Top || self.n_execs.load(Ordering::Relaxed) > 0 {
            return Err(Error::InvalidValue("graph: owned or instantiated already"));
        }
        *role = Role::Child;
        drop(role);
        Ok(Child(Arc::clone(self)))
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

    /// Gives all references back.
    pub fn let_all_go(&self) {
        let held = core::mem::take(&mut *self.held.lock());
        drop(held);
    }

    /// All that the graph and the graphs inside it hold.
    pub fn all_held(&self) -> Vec<Arc<Held>> {
        let mut held = self.held.lock().clone();
        self.visit_inner(&mut |graph| held.extend(graph.held.lock().iter().cloned()));
        held
    }

    /// The graph and place of a live node.
    pub fn of_node(node: CUgraphNode) -> Result<(Arc<Graph>, usize)> {
        crate::process::driver()?;
        let (graph, place) = NODES.get(node).ok_or(Error::InvalidValue("hNode"))?;
        Ok((Graph::from_handle(graph.0)?, place))
    }

    /// A live node's work.
    pub fn op_of(node: CUgraphNode) -> Result<Arc<Op>> {
        let (graph, place) = Graph::of_node(node)?;
        graph.node(place).map(|node| node.op)
    }

    /// The place of a node of this graph.
    pub fn place(&self, node: CUgraphNode) -> Result<usize> {
        match NODES.get(node) {
            Some((graph, place)) if graph.0 == self.handle.0 => Ok(place),
            _ => Err(Error::InvalidValue("dependencies: a node of another graph")),
        }
    }

    pub fn node(&self, place: usize) -> Result<Node> {
        self.nodes.lock().get(place).cloned().flatten().ok_or(Error::InvalidValue("hNode"))
    }

    /// How many places there are, empty ones included.
    pub fn n_places(&self) -> usize {
        self.nodes.lock().len()
    }

    pub fn add(&self, op: Arc<Op>, dependencies: Vec<Dependency>) -> Result<CUgraphNode> {
        // CUDA: no dependency twice.
        let mut seen = HashSet::new();
        if !dependencies.iter().all(|(place, _)| seen.insert(*place)) {
            return Err(Error::InvalidValue("dependencies: one of them twice"));
        }
        self.push(op, dependencies)
    }

    pub fn push(&self, op: Arc<Op>, dependencies: Vec<Dependency>) -> Result<CUgraphNode> {
        self.check_kind(op.kind())?;
        self.push_clone(op, dependencies, None)
    }

    fn push_clone(
        &self,
        op: Arc<Op>,
        dependencies: Vec<Dependency>,
        original: Option<Shared<CUgraphNode>>,
    ) -> Result<CUgraphNode> {
        let mut nodes = self.nodes.lock();
        let handle = NODES.insert((self.handle, nodes.len())).ok_or(Error::OutOfMemory)?;
        if let Params::Free(block) = &op.params {
            self.storage.lock().is_freed(block.address, nodes.len());
        }
        nodes.push(Some(Node { op, dependencies, handle: Shared(handle), original }));
        Ok(handle)
    }

    /// An address for an allocation behind some nodes: where memory lay that is freed before, or a new one.
    fn room(
        &self,
        context: &'static Context,
        len_bytes: usize,
        dependencies: &[Dependency],
    ) -> Result<(CUdeviceptr, Arc<Arena>)> {
        /// Sharing saves memory and changes nothing else, so the look back ends somewhere.
        const MOST_LOOKED_AT: usize = 1024;
        let nodes = self.nodes.lock();
        let mut storage = self.storage.lock();
        if storage.has_room() {
            let mut open: VecDeque<usize> = dependencies.iter().map(|&(place, _)| place).collect();
            let mut seen: HashSet<usize> = open.iter().copied().collect();
            while let Some(place) = open.pop_front() {
                if let Some(found) = storage.take_freed(place, context, len_bytes) {
                    return Ok(found);
                }
                let before = nodes.get(place).into_iter().flatten().flat_map(|node| &node.dependencies);
                for &(place, _) in before {
                    if seen.len() < MOST_LOOKED_AT && seen.insert(place) {
                        open.push_back(place);
                    }
                }
            }
        }
        drop(nodes);
        storage.take_new(context, len_bytes)
    }

    /// What a graph that belongs to a node can have. CUDA: bodies have kernels, copies, fills, empty nodes, children
    /// and conditions; a child gets no memory nodes once it is one, and never has conditions.
    fn check_kind(&self, kind: CUgraphNodeType) -> Result {
        let is_good = match self.role() {
            Role::Top => true,
            Role::Child => !matches!(
                kind,
                CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEM_ALLOC
                    | CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEM_FREE
                    | CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL
            ),
            Role::Body => matches!(
                kind,
                CUgraphNodeType::CU_GRAPH_NODE_TYPE_KERNEL
                    | CUgraphNodeType::CU_GRAPH_NODE_TYPE_EMPTY
                    | CUgraphNodeType::CU_GRAPH_NODE_TYPE_GRAPH
                    | CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMSET
                    | CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMCPY
                    | CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMCPY_BATCH
                    | CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL
            ),
        };
        if is_good { Ok(()) } else { Err(Error::InvalidValue("hGraph: cannot have a node of this type")) }
    }

    /// Makes `to` wait for `from`.
    pub fn connect(&self, from: CUgraphNode, to: CUgraphNode, edge: Edge) -> Result {
        let (from, to) = (self.place(from)?, self.place(to)?);
        let mut nodes = self.nodes.lock();
        let node = nodes[to].as_mut().ok_or(Error::InvalidValue("to"))?;
        // CUDA: an edge that is there already is an invalid value, and so is one from a node to itself.
        if from == to || node.dependencies.iter().any(|&(place, _)| place == from) {
            return Err(Error::InvalidValue("from or to"));
        }
        node.dependencies.push((from, edge));
        Ok(())
    }

    /// Takes an edge away. CUDA: it must be there, with the same data.
    pub fn disconnect(&self, from: CUgraphNode, to: CUgraphNode, edge: Edge) -> Result {
        self.check_removable()?;
        let (from, to) = (self.place(from)?, self.place(to)?);
        let mut nodes = self.nodes.lock();
        let node = nodes[to].as_mut().ok_or(Error::InvalidValue("to"))?;
        let found = node.dependencies.iter().position(|&known| known == (from, edge));
        node.dependencies.remove(found.ok_or(Error::InvalidValue("from or to"))?);
        Ok(())
    }

    /// Takes a node and its edges away.
    pub fn remove(&self, place: usize) -> Result {
        self.check_removable()?;
        if self.is_captured_into.load(Ordering::Relaxed) {
            return Err(Error::InvalidValue("hNode: its graph is being captured"));
        }
        let mut nodes = self.nodes.lock();
        let gone = nodes[place].take_if(|node| node.op.params.updatable().is_none());
        // CUDA: a node that kernels change stays.
        let gone = gone.ok_or(Error::InvalidValue("hNode"))?;
        NODES.remove(gone.handle.0);
        for node in nodes.iter_mut().flatten() {
            node.dependencies.retain(|&(at, _)| at != place);
        }
        drop(nodes);
        drop(gone);
        Ok(())
    }

    /// CUDA: a graph with memory nodes keeps its nodes and edges.
    fn check_removable(&self) -> Result {
        if self.has_memory_nodes() { Err(Error::InvalidValue("hGraph: has memory nodes")) } else { Ok(()) }
    }

    fn any(&self, wanted: impl Fn(&Params) -> bool) -> bool {
        self.nodes.lock().iter().flatten().any(|node| wanted(&node.op.params))
    }

    /// Whether it, or a graph inside it, allocates or frees.
    pub fn has_memory_nodes(&self) -> bool {
        let own = |graph: &Graph| graph.any(|params| matches!(params, Params::Alloc(_) | Params::Free(_)));
        let mut found = own(self);
        self.visit_inner(&mut |graph| found |= own(graph));
        found
    }

    pub fn has_conditions(&self) -> bool {
        let own = |graph: &Graph| graph.any(|params| matches!(params, Params::Conditional(_)));
        let mut found = own(self);
        self.visit_inner(&mut |graph| found |= own(graph));
        found
    }

    /// A node that kernels change, in it or in a graph inside it.
    pub fn updatable_node(&self) -> Option<CUgraphNode> {
        let own = |graph: &Graph| {
            let nodes = graph.nodes.lock();
            let found = nodes.iter().flatten().find(|node| node.op.params.updatable().is_some());
            found.map(|node| node.handle.0)
        };
        let mut found = own(self);
        self.visit_inner(&mut |graph| found = found.or_else(|| own(graph)));
        found
    }

    pub fn has_updatable_nodes(&self) -> bool {
        self.updatable_node().is_some()
    }

    /// Calls `visit` for every graph inside the nodes, at any depth.
    fn visit_inner(&self, visit: &mut impl FnMut(&Arc<Graph>)) {
        for inner in self.inner() {
            visit(&inner);
            inner.visit_inner(visit);
        }
    }

    /// The graphs directly inside the nodes.
    fn inner(&self) -> Vec<Arc<Graph>> {
        let nodes = self.nodes.lock();
        let of = |node: &Node| match &node.op.params {
            Params::Child(child) => vec![Arc::clone(&child.0)],
            Params::Conditional(conditional) => {
                conditional.bodies.iter().map(|body| Arc::clone(&body.0)).collect()
            }
            _ => vec![],
        };
        nodes.iter().flatten().flat_map(of).collect()
    }

    pub fn nodes(&self) -> Vec<CUgraphNode> {
        self.nodes.lock().iter().flatten().map(|node| node.handle.0).collect()
    }

    /// The live nodes with their places.
    pub fn all(&self) -> Vec<(usize, Node)> {
        let nodes = self.nodes.lock();
        nodes.iter().enumerate().filter_map(|(place, node)| Some((place, node.clone()?))).collect()
    }

    pub fn roots(&self) -> Vec<CUgraphNode> {
        let nodes = self.nodes.lock();
        let is_root = |node: &&Node| node.dependencies.is_empty();
        nodes.iter().flatten().filter(is_root).map(|node| node.handle.0).collect()
    }

    /// The nodes a node waits for.
    pub fn dependencies(&self, place: usize) -> Vec<(CUgraphNode, Edge)> {
        let nodes = self.nodes.lock();
        let Some(Some(node)) = nodes.get(place) else { return vec![] };
        let handle = |&(at, edge): &Dependency| Some((nodes[at].as_ref()?.handle.0, edge));
        node.dependencies.iter().filter_map(handle).collect()
    }

    /// The nodes that wait for a node.
    pub fn dependents(&self, place: usize) -> Vec<(CUgraphNode, Edge)> {
        let nodes = self.nodes.lock();
        let edge = |node: &Node| node.dependencies.iter().find(|(at, _)| *at == place).map(|&(_, edge)| edge);
        nodes.iter().flatten().filter_map(|node| Some((node.handle.0, edge(node)?))).collect()
    }

    /// Every edge: from, to, data.
    pub fn edges(&self) -> Vec<(CUgraphNode, CUgraphNode, Edge)> {
        let nodes = self.nodes.lock();
        let mut edges = Vec::new();
        for to in nodes.iter().flatten() {
            for &(from, edge) in &to.dependencies {
                let Some(from) = &nodes[from] else { continue };
                edges.push((from.handle.0, to.handle.0, edge));
            }
        }
        edges
    }

    /// Replaces a node's work.
    pub fn set(&self, place: usize, op: Arc<Op>) -> Result {
        let mut nodes = self.nodes.lock();
        let node = nodes[place].as_mut().ok_or(Error::InvalidValue("hNode"))?;
        if node.op.kind() != op.kind() {
            return Err(Error::InvalidValue("hNode: of another type"));
        }
        let old = core::mem::replace(&mut node.op, op);
        drop(nodes);
        drop(old);
        Ok(())
    }

    /// Takes a condition that a node of this graph, or of one inside it, may use.
    pub fn enter_condition(&self, condition: Arc<Condition>) {
        self.conditions.lock().push(condition);
    }

    /// The condition of a handle, wherever it was made.
    pub fn condition(handle: u64) -> Result<Arc<Condition>> {
        let found = parking_lot::Mutex::new(None);
        GRAPHS.for_each(|graph| {
            let conditions = graph.conditions.lock();
            if let Some(condition) = conditions.iter().find(|condition| condition.handle == handle) {
                *found.lock() = Some(Arc::clone(condition));
            }
        });
        found.into_inner().ok_or(Error::InvalidValue("conditional.handle"))
    }

    /// The conditions of the graph and of those inside it.
    pub fn all_conditions(&self) -> Vec<Arc<Condition>> {
        let mut conditions = self.conditions.lock().clone();
        self.visit_inner(&mut |graph| conditions.extend(graph.conditions.lock().iter().cloned()));
        conditions
    }

    /// A graph of its own with the same nodes. CUDA: memory nodes and conditional nodes cannot be cloned. Nor is there a second node
    /// for the handle by which kernels change one.
    pub fn duplicate(&self, role: Role) -> Result<Arc<Graph>> {
        if self.has_memory_nodes() || self.has_conditions() || self.has_updatable_nodes() {
            return Err(Error::InvalidValue("hGraph: has nodes that exist once only"));
        }
        let graph = Graph::make(role)?;
        let nodes = self.nodes.lock().clone();
        for node in nodes {
            let Some(node) = node else {
                graph.nodes.lock().push(None);
                continue;
            };
            let op = match node.op.params.child() {
                Some(child) => Op::structural(Params::Child(Child(child.duplicate(Role::Child)?))),
                None => node.op,
            };
            graph.push_clone(op, node.dependencies, Some(node.handle))?;
        }
        *graph.held.lock() = self.held.lock().clone();
        Ok(graph)
    }

    /// The node that was made from `original` when this graph was cloned.
    pub fn clone_of(&self, original: CUgraphNode) -> Result<CUgraphNode> {
        let nodes = self.nodes.lock();
        let found = nodes.iter().flatten().find(|node| node.original == Some(Shared(original)));
        found.map(|node| node.handle.0).ok_or(Error::InvalidValue("hOriginalNode"))
    }

    /// Whether both have the same nodes and edges, in the order they were made.
    pub fn is_same(&self, other: &Graph) -> bool {
        let (own, others) = (self.all(), other.all());
        own.len() == others.len()
            && own.iter().zip(&others).all(|((place, node), (other_place, other))| {
                place == other_place
                    && node.dependencies == other.dependencies
                    && node.op.params.is_same(&other.op.params)
            })
    }

    /// The nodes' places, each behind all that it waits for: from the nodes that nobody waits for, in the order they
    /// were made, back through their dependencies in the order those were given. That is also the order in which CUDA
    /// pairs the nodes of two graphs. CUDA: a circle is an invalid value.
    pub fn ordered(&self) -> Result<Vec<(usize, Node)>> {
        let nodes = self.nodes.lock();
        let mut is_waited_for = vec![false; nodes.len()];
        for node in nodes.iter().flatten() {
            node.dependencies.iter().for_each(|&(at, _)| is_waited_for[at] = true);
        }
        #[derive(Clone, Copy, PartialEq)]
        enum Mark {
            New,
            Open,
            Done,
        }
        let mut marks = vec![Mark::New; nodes.len()];
        let mut ordered = Vec::with_capacity(nodes.len());
        let ends = (0..nodes.len()).filter(|&place| !is_waited_for[place]);
        // A node and how many of its dependencies have been looked at.
        let mut open: Vec<(usize, usize)> = Vec::new();
        for end in ends {
            open.push((end, 0));
            while let Some((place, next)) = open.pop() {
                let Some(node) = &nodes[place] else { continue };
                marks[place] = Mark::Open;
                let Some(&(dependency, _)) = node.dependencies.get(next) else {
                    marks[place] = Mark::Done;
                    ordered.push((place, node.clone()));
                    continue;
                };
                open.push((place, next + 1));
                match marks[dependency] {
                    Mark::New => open.push((dependency, 0)),
                    Mark::Open => return Err(Error::InvalidValue("hGraph: a circle")),
                    Mark::Done => {}
                }
            }
        }
        // A circle that nothing hangs on has no end to begin from.
        if ordered.len() < nodes.iter().flatten().count() {
            return Err(Error::InvalidValue("hGraph: a circle"));
        }
        Ok(ordered)
    }
}
