//! Where a thread suspends, and what must survive: decided before any text is written.
//!
//! A block is cut into segments at its suspending instructions. A value used in another segment than its own lives in
//! a stack slot (LLVM makes SSA of these again); at a suspension the slots of live values go to the thread record.

use super::layout::thread;
use crate::ir::{BlockId, Function, Op, Order, Space, Special, Ty, Value};
use crate::pass::bits::BitSet;
use crate::pass::dominators::{Dominators, reversed, successors};
use crate::pass::liveness::live_in;
use crate::pass::visit::term_values;

/// A live value's place in the thread record while the thread is suspended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Saved {
    pub value: Value,
    pub offset: u64,
}

#[derive(Clone, Debug)]
pub struct Suspension {
    /// Resume point, from 1.
    pub number: u32,
    pub saved: Vec<Saved>,
}

#[derive(Debug)]
pub struct Plan {
    /// By block and instruction.
    pub requests: Vec<Vec<Option<Suspension>>>,
    /// By block and edge: suspensions of threads that may be spinning.
    pub yields: Vec<Vec<Option<Suspension>>>,
    /// Values that live in a stack slot.
    pub in_slot: BitSet,
    /// Values written out anew at every use: constants and what never changes during a launch.
    pub invariant: BitSet,
    pub n_suspensions: u32,
    /// Where in the thread record the registers lie that all lanes of a warp bring together, behind the saved values.
    pub exchange: u64,
    pub context_bytes: u64,
}

/// The thread stops at it until others have come, or lets others run.
pub fn suspends(op: &Op) -> bool {
    op.is_warp_collective() || matches!(op, Op::Barrier { .. } | Op::ClusterBarrier { .. } | Op::NanoSleep)
}

/// The same value for the whole life of the thread, and cheap to have at its start.
pub fn is_invariant(op: &Op) -> bool {
    match op {
        Op::Const(_)
        | Op::GlobalAddr(_)
        | Op::SharedAddr(_)
        | Op::LocalAddr(_)
        | Op::ParamAddr(_)
        | Op::FuncAddr(_) => true,
        Op::Special(special) => !matches!(
            special,
            Special::Clock
                | Special::ClockHi
                | Special::Clock64
                | Special::GlobalTimer
                | Special::GlobalTimerLo
                | Special::GlobalTimerHi
        ),
        _ => false,
    }
}

pub fn plan(function: &Function) -> Plan {
    let mut invariant = BitSet::new(function.values.len());
    for inst in function.blocks.iter().flat_map(|block| &block.insts).filter(|inst| is_invariant(&inst.op)) {
        inst.results.iter().for_each(|result| {
            invariant.insert(result.index());
        });
    }
    let live = live_in(function);
    let spinning = spinning_edges(function);
    let mut plan = Plan {
        requests: vec![],
        yields: vec![],
        in_slot: in_slot(function, &invariant),
        invariant,
        n_suspensions: 0,
        exchange: 0,
        context_bytes: thread::SAVED,
    };
    for (at, block) in function.blocks.iter().enumerate() {
        let mut now = BitSet::default();
        let mut yields = vec![];
        for (nth, edge) in block.term.edges().iter().enumerate() {
            let target = edge.block.index();
            now.union(&live[target]);
            let suspension = spinning[at].contains(&nth).then(|| {
                let mut kept = live[target].clone();
                for param in &function.blocks[target].params {
                    kept.insert(param.index());
                }
                plan.suspend(function, &kept)
            });
            yields.push(suspension);
        }
        for value in term_values(&block.term) {
            now.insert(value.index());
        }
        let mut requests: Vec<Option<Suspension>> = vec![None; block.insts.len()];
        for (index, inst) in block.insts.iter().enumerate().rev() {
            for result in &inst.results {
                now.remove(result.index());
            }
            if suspends(&inst.op) {
                requests[index] = Some(plan.suspend(function, &now));
            }
            for arg in &inst.args {
                now.insert(arg.index());
            }
        }
        plan.requests.push(requests);
        plan.yields.push(yields);
    }
    plan.exchange = plan.context_bytes.next_multiple_of(16);
    plan.context_bytes = (plan.exchange + exchange_bytes(function)).next_multiple_of(16);
    plan
}

impl Plan {
    /// Numbers a suspension and gives each live value a place, widest first.
    fn suspend(&mut self, function: &Function, live: &BitSet) -> Suspension {
        self.n_suspensions += 1;
        let mut values: Vec<Value> = live
            .iter()
            .filter(|value| !self.invariant.contains(*value))
            .map(|value| Value(value as u32))
            .collect();
        values.sort_by_key(|value| std::cmp::Reverse(slot_bytes(function.ty(*value))));
        let mut offset = thread::SAVED;
        let mut saved = vec![];
        for value in values {
            saved.push(Saved { value, offset });
            offset += slot_bytes(function.ty(value));
        }
        self.context_bytes = self.context_bytes.max(offset);
        Suspension { number: self.n_suspensions, saved }
    }
}

/// The most that an instruction brings or takes.
fn exchange_bytes(function: &Function) -> u64 {
    let insts = function.blocks.iter().flat_map(|block| &block.insts);
    let bytes = insts.filter_map(|inst| match &inst.op {
        Op::Mma(mma) => {
            let registers = mma.lane_words().len().max(inst.results.len());
            Some(registers as u64 * u64::from(mma.register_bytes()))
        }
        _ => None,
    });
    bytes.max().unwrap_or(0)
}

fn slot_bytes(ty: Ty) -> u64 {
    u64::from(ty.bits().div_ceil(8))
}

/// Values used in another segment than the one that defines them, and all block parameters.
fn in_slot(function: &Function, invariant: &BitSet) -> BitSet {
    let mut home = vec![(usize::MAX, 0usize); function.values.len()];
    let mut slots = BitSet::new(function.values.len());
    for (at, block) in function.blocks.iter().enumerate() {
        for param in &block.params {
            slots.insert(param.index());
        }
        let mut segment = 0;
        for inst in &block.insts {
            // Results of a suspending instruction arrive behind the suspension.
            segment += usize::from(suspends(&inst.op));
            for result in &inst.results {
                home[result.index()] = (at, segment);
            }
        }
    }
    for (at, block) in function.blocks.iter().enumerate() {
        let mut segment = 0;
        let mut used = |value: Value, segment: usize| {
            if home[value.index()] != (at, segment) && !invariant.contains(value.index()) {
                slots.insert(value.index());
            }
        };
        for inst in &block.insts {
            inst.args.iter().for_each(|arg| used(*arg, segment));
            segment += usize::from(suspends(&inst.op));
        }
        term_values(&block.term).into_iter().for_each(|value| used(value, segment));
    }
    slots
}

/// Per block the edges (by number) that close a loop in which a thread may wait for another one.
///
/// Such a loop decides something by what others may write: by the result of an atomic, by a load that is not weak, or
/// by a weak load when a fence in the loop makes it fresh. Unoptimised code stores what it read to a local variable first.
fn spinning_edges(function: &Function) -> Vec<Vec<usize>> {
    let graph = successors(function);
    let predecessors = reversed(&graph);
    let dominators = Dominators::of(function);
    let mut found = vec![vec![]; function.blocks.len()];
    for (from, targets) in graph.iter().enumerate() {
        for (nth, &to) in targets.iter().enumerate() {
            let closes =
                dominators.is_reachable(from) && dominators.position(to) <= dominators.position(from);
            if closes && may_spin(function, &loop_blocks(&predecessors, from, to)) {
                found[from].push(nth);
            }
        }
    }
    found
}

/// Blocks from which `from` is reached without passing `to`, and both.
fn loop_blocks(predecessors: &[Vec<usize>], from: usize, to: usize) -> Vec<bool> {
    let mut inside = vec![false; predecessors.len()];
    inside[to] = true;
    let mut work = vec![from];
    while let Some(block) = work.pop() {
        if !std::mem::replace(&mut inside[block], true) {
            work.extend(&predecessors[block]);
        }
    }
    inside
}

fn may_spin(function: &Function, inside: &[bool]) -> bool {
    let blocks: Vec<BlockId> =
        (0..inside.len()).filter(|at| inside[*at]).map(|at| BlockId(at as u32)).collect();
    let insts = || blocks.iter().flat_map(|id| &function.block(*id).insts);
    let has_fence = insts().any(|inst| matches!(inst.op, Op::Fence { .. } | Op::NanoSleep));
    let mut shared = BitSet::new(function.values.len());
    for inst in insts() {
        let is_source = match &inst.op {
            Op::Atomic { .. } => true,
            Op::Load { order, .. } => *order != Order::Weak || has_fence,
            _ => false,
        };
        if is_source {
            inst.results.iter().for_each(|result| {
                shared.insert(result.index());
            });
        }
    }
    let mut kept_locally = false;
    let mut changed = true;
    while changed {
        changed = false;
        for id in &blocks {
            let block = function.block(*id);
            for inst in &block.insts {
                let from_others = inst.args.iter().any(|arg| shared.contains(arg.index()));
                let is_local = |space| matches!(space, Space::Local | Space::Generic);
                let comes_back = match inst.op {
                    Op::Store { space, .. } if from_others && is_local(space) => {
                        changed |= !std::mem::replace(&mut kept_locally, true);
                        false
                    }
                    Op::Load { space, .. } => kept_locally && is_local(space),
                    _ => false,
                };
                if from_others || comes_back {
                    for result in &inst.results {
                        changed |= shared.insert(result.index());
                    }
                }
            }
            for edge in block.term.edges() {
                for (param, arg) in function.block(edge.block).params.iter().zip(&edge.args) {
                    if shared.contains(arg.index()) {
                        changed |= shared.insert(param.index());
                    }
                }
            }
        }
    }
    blocks.iter().any(|id| match &function.block(*id).term {
        crate::ir::Term::Branch { cond, .. } => shared.contains(cond.index()),
        crate::ir::Term::Switch { index, .. } => shared.contains(index.index()),
        _ => false,
    })
}
