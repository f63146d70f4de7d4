//! Instantiated graphs: a list of calls in an order that keeps every dependency, replaced as a whole when it changes.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use cuda_abi::{
    CUgraphConditionalNodeType, CUgraphExec, CUgraphExecUpdateResult, CUgraphExecUpdateResultInfo,
    CUgraphNode, CUgraphNodeType, CUstream,
};
use parking_lot::Mutex;

use super::capture::{self, StreamKey};
use super::condition::chosen;
use super::device::{self, Turn};
use super::storage::{Arena, Claim, Mark};
use super::{Block, Child, Condition, Edge, Graph, Node, Op, Params, Role, next_id};
use crate::handle::Registry;
use crate::object::user_object::Held;
use crate::object::{Context, Shared, Stream};
use crate::{Error, Result};

static EXECS: Registry<Arc<Exec>, CUgraphExec> = Registry::new(12);

/// `CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH`
const AUTO_FREE: u64 = 1;

#[derive(Clone)]
enum Work {
    Call(Arc<Op>),
    Child(Arc<Plan>),
    Conditional { condition: Arc<Condition>, kind: CUgraphConditionalNodeType, bodies: Vec<Arc<Plan>> },
}

impl Work {
    fn kind(&self) -> CUgraphNodeType {
        match self {
            Work::Call(op) => op.kind(),
            Work::Child(_) => CUgraphNodeType::CU_GRAPH_NODE_TYPE_GRAPH,
            Work::Conditional { .. } => CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL,
        }
    }
}

/// A node, as it was when the graph was instantiated.
#[derive(Clone)]
struct Step {
    node: Shared<CUgraphNode>,
    work: Work,
    /// Earlier steps.
    dependencies: Vec<(usize, Edge)>,
    is_enabled: bool,
    /// Another one after each change.
    version: u64,
}

/// Steps in the order they run.
#[derive(Clone)]
struct Plan(Vec<Step>);

/// Why an update was refused, and for which node.
struct Refusal {
    result: CUgraphExecUpdateResult,
    node: Option<CUgraphNode>,
    from: Option<CUgraphNode>,
}

impl Refusal {
    fn topology(node: Option<CUgraphNode>) -> Refusal {
        let result = CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
        Refusal { result, node, from: None }
    }

    fn at(node: CUgraphNode, result: CUgraphExecUpdateResult) -> Refusal {
        Refusal { result, node: Some(node), from: None }
    }
}

impl Plan {
    fn of(graph: &Graph) -> Result<Plan> {
        let ordered = graph.ordered()?;
        let mut position = vec![0; ordered.iter().map(|(place, _)| place + 1).max().unwrap_or(0)];
        let mut steps = Vec::with_capacity(ordered.len());
        for (index, (place, node)) in ordered.into_iter().enumerate() {
            position[place] = index;
            let dependencies = node.dependencies.iter().map(|&(at, edge)| (position[at], edge)).collect();
            let (work, version) = (Plan::work(&node)?, device::next_version());
            steps.push(Step { node: node.handle, work, dependencies, is_enabled: true, version });
        }
        Ok(Plan(steps))
    }

    fn work(node: &Node) -> Result<Work> {
        Ok(match &node.op.params {
            Params::Child(child) => Work::Child(Arc::new(Plan::of(&child.0)?)),
            Params::Conditional(conditional) => Work::Conditional {
                condition: Arc::clone(&conditional.condition),
                kind: conditional.kind,
                bodies: conditional
                    .bodies
                    .iter()
                    .map(|body| Plan::of(&body.0).map(Arc::new))
                    .collect::<Result<_>>()?,
            },
            params => {
                if let Params::Kernel(kernel) = params {
                    kernel.prepare();
                }
                Work::Call(Arc::clone(&node.op))
            }
        })
    }

    fn run(&self, stream: CUstream, turn: Turn) -> Result {
        self.0.iter().try_for_each(|step| match &step.work {
            // CUDA: kernels may turn it on again.
            Work::Call(op) if let Some(node) = op.params.updatable() => {
                node.run(step.version, step.is_enabled, turn, || op.run(stream))
            }
            _ if !step.is_enabled => Ok(()),
            Work::Child(plan) => plan.run(stream, turn),
            Work::Conditional { bodies, .. } if turn == Turn::Upload => {
                bodies.iter().try_for_each(|body| body.run(stream, turn))
            }
            Work::Call(_) if turn == Turn::Upload => Ok(()),
            Work::Call(op) => op.run(stream),
            Work::Conditional { condition, kind, bodies } => run_condition(condition, *kind, bodies, stream),
        })
    }

    /// The step of a node, at any depth, ready to be changed.
    fn find(&mut self, node: CUgraphNode) -> Option<&mut Step> {
        for step in &mut self.0 {
            if step.node.0 == node {
                return Some(step);
            }
            let inner = match &mut step.work {
                Work::Call(_) => continue,
                Work::Child(plan) => core::slice::from_mut(plan),
                Work::Conditional { bodies, .. } => bodies.as_mut_slice(),
            };
            for plan in inner {
                if plan.has(node) {
                    return Arc::make_mut(plan).find(node);
                }
            }
        }
        None
    }

    fn has(&self, node: CUgraphNode) -> bool {
        self.0.iter().any(|step| {
            step.node.0 == node
                || match &step.work {
                    Work::Call(_) => false,
                    Work::Child(plan) => plan.has(node),
                    Work::Conditional { bodies, .. } => bodies.iter().any(|body| body.has(node)),
                }
        })
    }

    /// Calls `visit` for every call, at any depth.
    fn visit(&self, visit: &mut impl FnMut(&Op)) {
        for step in &self.0 {
            match &step.work {
                Work::Call(op) => visit(op),
                Work::Child(plan) => plan.visit(visit),
                Work::Conditional { bodies, .. } => bodies.iter().for_each(|body| body.visit(visit)),
            }
        }
    }

    /// This plan with the parameters of a graph of the same shape.
    fn updated(&self, graph: &Graph) -> core::result::Result<Plan, Refusal> {
        let Ok(new) = Plan::of(graph) else { return Err(Refusal::topology(None)) };
        self.updated_by(&new)
    }

    fn updated_by(&self, new: &Plan) -> core::result::Result<Plan, Refusal> {
        if self.0.len() != new.0.len() {
            return Err(Refusal::topology(None));
        }
        let mut steps = Vec::with_capacity(self.0.len());
        for (old, step) in self.0.iter().zip(&new.0) {
            let node = step.node.0;
            if old.dependencies.len() != step.dependencies.len() {
                return Err(Refusal::topology(Some(node)));
            }
            if let Some(at) = old.dependencies.iter().zip(&step.dependencies).position(|(a, b)| a != b) {
                let from = Some(new.0[step.dependencies[at].0].node.0);
                return Err(Refusal { from, ..Refusal::topology(Some(node)) });
            }
            if old.work.kind() != step.work.kind() {
                let result = CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
                return Err(Refusal::at(node, result));
            }
            steps.push(Step { work: updated_work(&old.work, step)?, ..old.clone() });
        }
        Ok(Plan(steps))
    }
}

fn updated_work(old: &Work, step: &Step) -> core::result::Result<Work, Refusal> {
    let node = step.node.0;
    match (old, &step.work) {
        (Work::Call(old), Work::Call(new)) => {
            if old.params.check_update(&new.params, true).is_ok() {
                return Ok(Work::Call(Arc::clone(new)));
            }
            let result = match (&old.params, &new.params) {
                (Params::Kernel(old), Params::Kernel(new)) if old.context_id != new.context_id => {
                    CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE
                }
                (Params::Kernel(_), _) => {
                    CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED
                }
                _ => CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED,
            };
            Err(Refusal::at(node, result))
        }
        (Work::Child(old), Work::Child(new)) => Ok(Work::Child(Arc::new(old.updated_by(new)?))),
        (
            Work::Conditional { kind, bodies, .. },
            Work::Conditional { condition, kind: new_kind, bodies: new },
        ) => {
            // CUDA: type and size of a conditional node stay.
            if kind != new_kind || bodies.len() != new.len() {
                let result = CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
                return Err(Refusal::at(node, result));
            }
            let updated = |(old, new): (&Arc<Plan>, &Arc<Plan>)| old.updated_by(new).map(Arc::new);
            let bodies = bodies.iter().zip(new).map(updated).collect::<core::result::Result<_, _>>()?;
            Ok(Work::Conditional { condition: Arc::clone(condition), kind: *kind, bodies })
        }
        _ => Err(Refusal::topology(Some(node))),
    }
}

/// HIP differs: it has no conditional nodes. The launch waits for the stream at each of them, so that it knows the value;
/// what the bodies do is queued like the rest.
fn run_condition(
    condition: &Condition,
    kind: CUgraphConditionalNodeType,
    bodies: &[Arc<Plan>],
    stream: CUstream,
) -> Result {
    while let Some(body) = chosen(kind, condition.wait(stream)?, bodies.len()) {
        bodies[body].run(stream, Turn::Launch)?;
        if kind != CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_WHILE {
            break;
        }
    }
    Ok(())
}

/// Where a graph was launched, and the mark behind it.
#[derive(Clone)]
struct Launched {
    stream: StreamKey,
    mark: Arc<Mark>,
}

/// A graph as it was when it was uploaded.
pub struct Uploaded(Arc<Plan>);

impl Uploaded {
    /// Its nodes that kernels change are what they have made of them.
    pub fn run(&self, stream: CUstream) -> Result {
        self.0.run(stream, Turn::Record)
    }
}

/// A graph ready to launch.
pub struct Exec {
    pub flags: u64,
    pub id: u32,
    plan: Mutex<Arc<Plan>>,
    /// Blocks that a launch hands out, where they lie, and blocks of other graphs that it frees.
    blocks: Vec<Arc<Block>>,
    arenas: Vec<Arc<Arena>>,
    freed: Vec<Arc<Block>>,
    /// The last launch.
    last: Mutex<Option<Launched>>,
    /// Conditions that a launch sets back.
    conditions: Mutex<Vec<Arc<Condition>>>,
    held: Mutex<Vec<Arc<Held>>>,
    source: Arc<Graph>,
    /// CUDA: it has nodes that exist once only, so it can be no child.
    is_single: bool,
    /// Kernels may change nodes of it.
    is_updatable: bool,
    /// What kernels launch, and the context that it was uploaded in.
    uploaded: Mutex<Option<(Arc<Plan>, &'static Context)>>,
}

impl Exec {
    pub fn instantiate(graph: &Arc<Graph>, flags: u64) -> Result<CUgraphExec> {
        if graph.role() != Role::Top {
            return Err(Error::InvalidValue("hGraph: belongs to a node"));
        }
        let conditions = graph.all_conditions();
        // CUDA: every handle belongs to a node.
        if conditions.iter().any(|condition| !condition.is_used()) {
            return Err(Error::InvalidValue("hGraph: a conditional handle without a node"));
        }
        let plan = Plan::of(graph)?;
        let is_updatable = graph.has_updatable_nodes();
        let is_single = graph.has_memory_nodes() || graph.has_conditions() || is_updatable;
        // CUDA: memory nodes, conditional nodes and nodes that kernels change are instantiated once at a time.
        if graph.n_execs.fetch_add(1, Ordering::Relaxed) > 0 && is_single {
            graph.n_execs.fetch_sub(1, Ordering::Relaxed);
            return Err(Error::InvalidValue("hGraph: instantiated already"));
        }
        let (mut blocks, mut freed) = (Vec::new(), Vec::new());
        plan.visit(&mut |op| match &op.params {
            Params::Alloc(block) => blocks.push(Arc::clone(block)),
            Params::Free(block) => freed.push(Arc::clone(block)),
            _ => {}
        });
        let own: HashSet<_> = blocks.iter().map(Arc::as_ptr).collect();
        freed.retain(|block| !own.contains(&Arc::as_ptr(block)));
        let mut arenas: Vec<_> = blocks.iter().map(|block| Arc::clone(&block.arena)).collect();
        arenas.sort_by_key(Arc::as_ptr);
        arenas.dedup_by_key(|arena| Arc::as_ptr(arena));
        let exec = Exec {
            flags,
            id: next_id(),
            plan: Mutex::new(Arc::new(plan)),
            blocks,
            arenas,
            freed,
            last: Mutex::default(),
            conditions: Mutex::new(conditions),
            held: Mutex::new(graph.all_held()),
            source: Arc::clone(graph),
            is_single,
            is_updatable,
            uploaded: Mutex::default(),
        };
        EXECS.insert(Arc::new(exec)).ok_or(Error::OutOfMemory)
    }

    pub fn from_handle(handle: CUgraphExec) -> Result<Arc<Exec>> {
        crate::process::driver()?;
        EXECS.get(handle).ok_or(Error::InvalidValue("hGraphExec"))
    }

    pub fn destroy(handle: CUgraphExec) -> Result {
        crate::process::driver()?;
        let exec = EXECS.remove(handle).ok_or(Error::InvalidValue("hGraphExec"))?;
        let uploaded = exec.uploaded.lock().take();
        if let Some((_, context)) = uploaded {
            device::forget(handle, context);
        }
        Ok(())
    }

    /// CUDA: kernels launch a graph as it was when it was uploaded last, and what they change of a node is overwritten by an upload
    /// after the host has changed it. Other graphs have nothing to bring anywhere.
    pub fn upload(&self, exec: CUgraphExec, handle: CUstream) -> Result {
        if self.flags & device::LAUNCH == 0 && !self.is_updatable {
            return Ok(());
        }
        let stream = &Stream::from_handle(handle)?;
        let plan = Arc::clone(&self.plan.lock());
        if self.is_updatable {
            plan.run(handle, Turn::Upload)?;
        }
        if self.flags & device::LAUNCH == 0 {
            return Ok(());
        }
        let is_there = self.uploaded.lock().as_ref().is_some_and(|(there, _)| Arc::ptr_eq(there, &plan));
        if is_there {
            return Ok(());
        }
        device::upload(exec, stream, |recording| plan.run(recording, Turn::Record))?;
        *self.uploaded.lock() = Some((plan, stream.context));
        Ok(())
    }

    /// What kernels launch by that handle, and the context that it was uploaded in.
    pub fn uploaded(handle: CUgraphExec) -> Option<(Uploaded, &'static Context)> {
        let (plan, context) = EXECS.get(handle)?.uploaded.lock().clone()?;
        Some((Uploaded(plan), context))
    }

    /// CUDA: a launch comes after what is queued on its stream and after the launch before, wherever that was.
    pub fn launch(&self, exec: CUgraphExec, handle: CUstream) -> Result {
        let stream = Stream::from_handle(handle)?;
        let plan = Arc::clone(&self.plan.lock());
        let key = capture::key(&stream);
        let before = self.last.lock().clone();
        let last = before.as_ref().map(|last| &last.mark);
        if let Some(before) = before.as_ref().filter(|before| before.stream != key)
            && !before.mark.is_reached()
        {
            before.mark.precede(&stream)?;
        }
        for block in self.blocks.iter().filter(|block| block.is_out()) {
            // CUDA: what the last launch allocated is freed, or the launch is refused.
            if self.flags & AUTO_FREE == 0 {
                return Err(Error::InvalidValue("hGraphExec: memory of the last launch was not freed"));
            }
            block.take_back()?;
        }
        let claim = Claim::new(&self.arenas, &self.freed, &stream, last)?;
        let conditions = self.conditions.lock().clone();
        let run = || {
            // CUDA: a launch by the host uploads the graph, if nothing did before.
            self.upload(exec, handle)?;
            let _launch = device::Launch::begin(
                Some(exec).filter(|_| self.flags & device::LAUNCH != 0),
                &stream,
                handle,
            )?;
            conditions.iter().try_for_each(|condition| condition.reset(handle))?;
            plan.run(handle, Turn::Launch)
        };
        let outcome = run();
        // What was queued is to be waited for, be it all or not.
        let mark = match last.filter(|mark| mark.serves(&stream)) {
            Some(mark) => Arc::clone(mark),
            None => Mark::new(stream.context)?,
        };
        let marked = mark.put(&stream);
        claim.is_queued(&stream, &mark);
        *self.last.lock() = Some(Launched { stream: key, mark });
        outcome.and(marked)
    }

    /// The work as a child of another graph, for a launch that is itself captured.
    pub fn as_child(&self) -> Result<Arc<Op>> {
        let plan = Arc::clone(&self.plan.lock());
        if self.is_single {
            return Err(Error::InvalidValue("hGraphExec: has nodes that exist once only"));
        }
        Ok(Op::structural(Params::Child(Child(plan.as_graph()?))))
    }

    /// Replaces one node's call.
    pub fn set(&self, node: CUgraphNode, op: Arc<Op>) -> Result {
        self.change(node, |step| {
            let Work::Call(old) = &step.work else {
                return Err(Error::InvalidValue("hNode: of another type"));
            };
            if old.kind() != op.kind() {
                return Err(Error::InvalidValue("hNode: of another type"));
            }
            old.params.check_update(&op.params, false)?;
            step.work = Work::Call(op);
            Ok(())
        })
    }

    /// Takes the parameters of a graph for a child node.
    pub fn set_child(&self, node: CUgraphNode, graph: &Graph) -> Result {
        self.change(node, |step| {
            let Work::Child(plan) = &step.work else {
                return Err(Error::InvalidValue("hNode: of another type"));
            };
            let updated =
                plan.updated(graph).map_err(|_| Error::InvalidValue("childGraph: of another shape"))?;
            step.work = Work::Child(Arc::new(updated));
            Ok(())
        })
    }

    fn change(&self, node: CUgraphNode, change: impl FnOnce(&mut Step) -> Result) -> Result {
        // CUDA: the node is still in its graph.
        Graph::of_node(node)?;
        let mut plan = self.plan.lock();
        if !plan.has(node) {
            return Err(Error::InvalidValue("hNode: not of this graph"));
        }
        match Arc::make_mut(&mut plan).find(node) {
            Some(step) => {
                change(step)?;
                step.version = device::next_version();
                Ok(())
            }
            None => Err(Error::InvalidValue("hNode: not of this graph")),
        }
    }

    /// CUDA: kernels, copies and fills can be turned off.
    pub fn enable(&self, node: CUgraphNode, is_enabled: bool) -> Result {
        self.change(node, |step| {
            check_can_be_off(step)?;
            step.is_enabled = is_enabled;
            Ok(())
        })
    }

    pub fn is_enabled(&self, node: CUgraphNode) -> Result<bool> {
        Graph::of_node(node)?;
        let mut plan = Arc::clone(&self.plan.lock());
        let step = Arc::make_mut(&mut plan).find(node).map(|step| step.clone());
        let step = step.ok_or(Error::InvalidValue("hNode: not of this graph"))?;
        check_can_be_off(&step)?;
        Ok(step.is_enabled)
    }

    /// Takes the parameters of a graph of the same shape.
    pub fn update(&self, graph: &Arc<Graph>) -> CUgraphExecUpdateResultInfo {
        let null = core::ptr::null_mut;
        // CUDA: neither of the two may have nodes that kernels change.
        let updatable = graph.updatable_node();
        if self.is_updatable || updatable.is_some() {
            return CUgraphExecUpdateResultInfo {
                result: CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED,
                errorNode: updatable.unwrap_or(null()),
                errorFromNode: null(),
            };
        }
        let mut plan = self.plan.lock();
        match plan.updated(graph) {
            Ok(updated) => {
                *plan = Arc::new(updated);
                drop(plan);
                let conditions = core::mem::replace(&mut *self.conditions.lock(), graph.all_conditions());
                let held = core::mem::replace(&mut *self.held.lock(), graph.all_held());
                drop((conditions, held));
                let result = CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_SUCCESS;
                CUgraphExecUpdateResultInfo { result, errorNode: null(), errorFromNode: null() }
            }
            Err(Refusal { result, node, from }) => CUgraphExecUpdateResultInfo {
                result,
                errorNode: node.unwrap_or(null()),
                errorFromNode: from.unwrap_or(null()),
            },
        }
    }
}

impl Drop for Exec {
    fn drop(&mut self) {
        self.source.n_execs.fetch_sub(1, Ordering::Relaxed);
    }
}

fn check_can_be_off(step: &Step) -> Result {
    match step.work.kind() {
        CUgraphNodeType::CU_GRAPH_NODE_TYPE_KERNEL
        | CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMCPY
        | CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMCPY_BATCH
        | CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMSET => Ok(()),
        _ => Err(Error::InvalidValue("hNode: of a type that is always on")),
    }
}

impl Plan {
    /// A graph of its own with the plan's nodes; those that are off are empty.
    fn as_graph(&self) -> Result<Arc<Graph>> {
        let graph = Graph::make(Role::Child)?;
        for step in &self.0 {
            let op = match &step.work {
                _ if !step.is_enabled => Op::structural(Params::Empty),
                Work::Call(op) => Arc::clone(op),
                Work::Child(plan) => Op::structural(Params::Child(Child(plan.as_graph()?))),
                Work::Conditional { .. } => return Err(Error::InvalidValue("hGraphExec")),
            };
            graph.push(op, step.dependencies.clone())?;
        }
        Ok(graph)
    }
}
