//! Where a thread suspends, and where values lie: decided before any text is written.
//!
//! A block is cut into segments at its suspending instructions. A value used in another segment than its own lives in
//! memory: in its place in the thread's record when it is live where a thread suspends, else in a stack slot (LLVM makes
//! SSA of these again). So nothing is saved or restored at a suspension, and the text grows with the code alone.

use super::places;
use crate::back::cpu::{ANY_BLOCK, Options};
use crate::back::llvm::inst::matrix::warpgroup;
use crate::ir::{BlockId, Function, Op, Order, Space, Special, Syscall, Value};
use crate::pass::bits::BitSet;
use crate::pass::dominators::{Dominators, reversed, successors};
use crate::pass::liveness::live_in;
use crate::pass::visit::term_values;

#[derive(Debug)]
pub struct Plan {
    /// By block and instruction: resume points, from 1.
    pub requests: Vec<Vec<Option<u32>>>,
    /// By block and edge: resume points of threads that may be spinning.
    pub yields: Vec<Vec<Option<u32>>>,
    /// Values that live in memory.
    pub in_slot: BitSet,
    /// Of those, by value: offset in the thread's record.
    pub places: Vec<Option<u64>>,
    /// Values that are written out where they are used.
    pub invariant: BitSet,
    pub n_suspensions: u32,
    /// Where in the thread record those registers lie that all lanes of a warp bring together and that have no places, behind them.
    pub exchange: u64,
    pub context_bytes: u64,
}

/// What a suspended thread's values are kept in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// The thread's record: the function is left.
    InRecord,
    /// The function's frame, on a stack of the thread's own; the record is free behind so many bytes.
    InFrame { behind: u64 },
}

/// The thread stops at it until others have come, or lets others run.
pub fn suspends(op: &Op) -> bool {
    op.is_warp_collective() || matches!(op, Op::Barrier { .. } | Op::ClusterBarrier { .. } | Op::NanoSleep)
}

/// A number, or an address that takes no memory to know. What is read from the launch's or the thread's records is read where the
/// program asks for it: at the start it would be read again whenever the thread goes on.
fn is_invariant(op: &Op, options: &Options) -> bool {
    match op {
        Op::Const(_) | Op::LocalAddr(_) | Op::ParamAddr(_) => true,
        Op::SharedAddr(_) => !options.clustered,
        Op::Special(Special::Ntid(_)) => options.block != ANY_BLOCK && !options.open,
        _ => false,
    }
}

pub fn plan(function: &Function, kept: Kept, options: &Options) -> Plan {
    let mut invariant = BitSet::new(function.values.len());
    let insts = function.blocks.iter().flat_map(|block| &block.insts);
    for inst in insts.filter(|inst| is_invariant(&inst.op, options)) {
        inst.results.iter().for_each(|result| {
            invariant.insert(result.index());
        });
    }
    let live = live_in(function);
    let spinning = spinning_edges(function);
    let (mut requests, mut yields) = (vec![], vec![]);
    let mut n_suspensions = 0;
    let mut number = || {
        n_suspensions += 1;
        n_suspensions
    };
    // Live where a thread suspends.
    let mut survives = BitSet::new(function.values.len());
    let mut exchanged = BitSet::new(function.values.len());
    for (at, block) in function.blocks.iter().enumerate() {
        let mut now = BitSet::default();
        let mut of_edges = vec![];
        for (nth, edge) in block.term.edges().iter().enumerate() {
            let target = edge.block.index();
            now.union(&live[target]);
            of_edges.push(spinning[at].contains(&nth).then(|| {
                survives.union(&live[target]);
                for param in &function.blocks[target].params {
                    survives.insert(param.index());
                }
                number()
            }));
        }
        for value in term_values(&block.term) {
            now.insert(value.index());
        }
        let mut of_insts = vec![None; block.insts.len()];
        for (index, inst) in block.insts.iter().enumerate().rev() {
            for result in &inst.results {
                now.remove(result.index());
            }
            if suspends(&inst.op) {
                survives.union(&now);
                of_insts[index] = Some(number());
            }
            for arg in &inst.args {
                now.insert(arg.index());
            }
            if exchanges(&inst.op) && kept == Kept::InRecord {
                // The host finds them, and leaves them, in their places.
                for value in inst.args.iter().chain(&inst.results).map(|value| value.index()) {
                    survives.insert(value);
                    if !invariant.contains(value) {
                        exchanged.insert(value);
                    }
                }
            }
        }
        requests.push(of_insts);
        yields.push(of_edges);
    }
    let mut in_slot = in_slot(function, &invariant);
    in_slot.union(&exchanged);
    let placed = match kept {
        Kept::InRecord => places::Placed::of(function, &live, |value| {
            survives.contains(value) && !invariant.contains(value)
        }),
        Kept::InFrame { behind } => places::Placed { offsets: vec![], end: behind },
    };
    let exchange = placed.end.next_multiple_of(16);
    let context_bytes = (exchange + exchange_bytes(function)).next_multiple_of(16);
    let places = placed.offsets;
    Plan { requests, yields, in_slot, places, invariant, n_suspensions, exchange, context_bytes }
}

/// All lanes of a warp bring registers together.
pub fn exchanges(op: &Op) -> bool {
    matches!(op, Op::Mma(_) | Op::Wgmma(_) | Op::MatrixRows(_))
}

/// Bytes for a register that has no place of its own.
pub const EXCHANGED: u64 = 8;

/// For as many registers as an instruction brings and takes.
fn exchange_bytes(function: &Function) -> u64 {
    let insts = function.blocks.iter().flat_map(|block| &block.insts);
    let registers = insts.filter(|inst| exchanges(&inst.op)).map(|inst| {
        let words = match inst.op {
            Op::Wgmma(_) => warpgroup::WORDS,
            // Halves of the address, and what is added to it.
            Op::MatrixRows(_) => 3,
            _ => 0,
        };
        inst.args.len() as u64 + inst.results.len() as u64 + u64::from(words)
    });
    registers.max().unwrap_or(0) * EXCHANGED
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
            Op::Atomic { .. } | Op::Syscall(Syscall::TensorMemory) => true,
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
