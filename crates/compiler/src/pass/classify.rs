//! May this kernel run with lanes in lockstep (setting S)? If not, why.
//!
//! A kernel is refused whenever a thread could have to wait for another thread of its group or block outside a barrier
//! that all of them reach, or where a warp's members at a collective are not provably those that execute it.

use super::bits::BitSet;
use super::dominators::Dominators;
use super::layout::Layout;
use super::loops::Loops;
use super::shape::{Shapes, Spread};
use super::visit::{Definition, definitions};
use crate::ir::*;

pub struct View<'a> {
    pub function: &'a Function,
    pub graph: &'a [Vec<usize>],
    pub dominators: &'a Dominators,
    pub loops: &'a Loops,
    pub layout: &'a Layout,
    /// Shapes among the lanes of a group.
    pub group: &'a Shapes,
    /// Shapes among the threads of a block.
    pub block: &'a Shapes,
    pub total_threads: u64,
}

/// `Err` is the reason why setting S cannot run it.
pub fn classify(view: &View<'_>) -> Result<(), String> {
    for block in &view.function.blocks {
        for inst in &block.insts {
            operation(&inst.op, inst.args.len())?;
        }
        if let Term::Return(_) = block.term {
            return Err("it returns like a device function".to_owned());
        }
    }
    barriers(view)?;
    collectives(view)?;
    spins(view)
}

fn operation(op: &Op, arguments: usize) -> Result<(), String> {
    match op {
        Op::Call(_) => Err("it calls a function that could not be inlined".to_owned()),
        Op::CallIndirect => Err("it calls through a pointer".to_owned()),
        Op::ClusterBarrier { .. } => Err("it meets the blocks of its cluster".to_owned()),
        Op::Barrier { kind: BarrierKind::Arrive, .. } => {
            Err("it arrives at a barrier without waiting".to_owned())
        }
        Op::Barrier { kind: BarrierKind::Sync, .. } if arguments > 1 => {
            Err("a barrier is for a part of the block only".to_owned())
        }
        Op::Barrier { kind: BarrierKind::Sync, .. } => Ok(()),
        Op::Barrier { .. } if arguments > 2 => Err("a barrier is for a part of the block only".to_owned()),
        _ => Ok(()),
    }
}

/// Blocks from which a block that `wanted` holds for can be reached.
fn leading_to(graph: &[Vec<usize>], wanted: impl Fn(usize) -> bool) -> Vec<bool> {
    let reversed = super::dominators::reversed(graph);
    let mut leads = vec![false; graph.len()];
    let mut work: Vec<usize> = (0..graph.len()).filter(|&block| wanted(block)).collect();
    while let Some(at) = work.pop() {
        if !std::mem::replace(&mut leads[at], true) {
            work.extend(&reversed[at]);
        }
    }
    leads
}

fn has(function: &Function, block: usize, wanted: impl Fn(&Op) -> bool) -> bool {
    function.blocks[block].insts.iter().any(|inst| wanted(&inst.op))
}

/// Every barrier is reached by all threads that still run, in the same trip of every loop.
fn barriers(view: &View<'_>) -> Result<(), String> {
    let is_barrier = |block: usize| has(view.function, block, |op| matches!(op, Op::Barrier { .. }));
    let leads = leading_to(view.graph, is_barrier);
    for at in (0..view.graph.len()).filter(|&at| view.block.divergent[at] && view.dominators.is_reachable(at))
    {
        let spread = Spread::of(view.graph, view.loops, view.layout, at, |block| leads[block]);
        if spread.apart.iter().any(is_barrier) {
            return Err("a barrier is under control that threads of the block may not agree on".to_owned());
        }
    }
    Ok(())
}

fn collectives(view: &View<'_>) -> Result<(), String> {
    let meets = |op: &Op| op.is_warp_collective() && !matches!(op, Op::ActiveMask);
    let is_collective = |block: usize| has(view.function, block, meets);
    let leads = leading_to(view.graph, is_collective);
    let mut spreads: Vec<(usize, BitSet)> = vec![];
    for at in (0..view.graph.len()).filter(|&at| view.group.divergent[at] && view.dominators.is_reachable(at))
    {
        // Threads that never meet again cannot be missed, unless they still count as active.
        let spread = Spread::of(view.graph, view.loops, view.layout, at, |block| leads[block]);
        spreads.push((at, spread.apart));
    }
    let definitions = definitions(view.function);
    for at in (0..view.graph.len()).filter(|&at| view.dominators.is_reachable(at)) {
        let apart: Vec<usize> =
            spreads.iter().filter(|(_, apart)| apart.contains(at)).map(|(by, _)| *by).collect();
        if apart.is_empty() {
            continue;
        }
        for inst in view.function.blocks[at].insts.iter().filter(|inst| meets(&inst.op)) {
            let mask = inst.args.last().copied();
            if !mask.is_some_and(|mask| members_are_active(view, &definitions, &spreads, at, mask)) {
                return Err("a warp collective is under control that lanes may not agree on".to_owned());
            }
        }
    }
    Ok(())
}

/// Whether `mask` names exactly the lanes that are active in block `at`.
fn members_are_active(
    view: &View<'_>,
    definitions: &[Definition],
    spreads: &[(usize, BitSet)],
    at: usize,
    mask: Value,
) -> bool {
    let Definition::Inst(home, index, 0) = definitions[mask.index()] else { return false };
    let inst = &view.function.blocks[home].insts[index];
    // The same lanes run `a` and, later in the same trip, `b`, but for what the branch `except` parts.
    let same = |a: usize, b: usize, except: Option<usize>| {
        view.dominators.dominates(a, b)
            && spreads.iter().all(|(branch, apart)| {
                Some(*branch) == except
                    || !apart.contains(b)
                    || !view.dominators.dominates(a, *branch)
                    || view.layout.position[*branch] >= view.layout.position[b]
            })
    };
    match &inst.op {
        Op::ActiveMask => same(home, at, None),
        Op::Vote(VoteMode::Ballot) => {
            let predicate = inst.args[0];
            // ballot(p), then a branch on p: the side where p holds runs exactly the mask's lanes.
            (0..view.graph.len()).any(|branch| {
                let Term::Branch { cond, then, .. } = &view.function.blocks[branch].term else {
                    return false;
                };
                *cond == predicate
                    && same(home, branch, None)
                    && view.function.predecessors()[then.block.index()].len() == 1
                    && view.dominators.dominates(then.block.index(), at)
                    && same(home, at, Some(branch))
            })
        }
        _ => false,
    }
}

/// No loop waits for another thread.
fn spins(view: &View<'_>) -> Result<(), String> {
    let definitions = definitions(view.function);
    for (index, each) in view.loops.all.iter().enumerate() {
        let inside = |value: Value| {
            definitions[value.index()].block().is_some_and(|block| view.loops.contains(index, block))
        };
        let fenced =
            each.blocks.iter().any(|&block| has(view.function, block, |op| matches!(op, Op::Fence { .. })));
        let latches: Vec<usize> =
            each.blocks.iter().copied().filter(|&block| view.graph[block].contains(&each.header)).collect();
        let passes_all_trips =
            |block: usize| latches.iter().all(|&latch| view.dominators.dominates(block, latch));
        let meets_barrier = each.blocks.iter().any(|&block| {
            passes_all_trips(block) && has(view.function, block, |op| matches!(op, Op::Barrier { .. }))
        });
        if meets_barrier {
            continue;
        }
        // Backward slice of what decides whether the loop goes on.
        let mut seen = BitSet::new(view.function.values.len());
        let mut work: Vec<Value> = vec![];
        for &block in &each.blocks {
            if let Term::Branch { cond, .. } = view.function.blocks[block].term {
                work.push(cond);
            }
        }
        while let Some(value) = work.pop() {
            if !inside(value) || !seen.insert(value.index()) {
                continue;
            }
            match definitions[value.index()] {
                Definition::Param(block, nth) => {
                    for (from, successors) in view.graph.iter().enumerate() {
                        for (edge, _) in successors.iter().enumerate().filter(|&(_, &to)| to == block) {
                            work.push(view.function.blocks[from].term.edges()[edge].args[nth]);
                        }
                    }
                }
                Definition::Inst(block, at, _) => {
                    let inst = &view.function.blocks[block].insts[at];
                    let waits = match &inst.op {
                        Op::Load { order: Order::Weak, space, .. } => {
                            fenced && !matches!(space, Space::Const | Space::Param | Space::Local)
                        }
                        Op::Load { .. } => true,
                        Op::Atomic { op: AtomOp::Cas, .. } => {
                            !(passes_all_trips(block) && retries(view, &definitions, index, inst))
                        }
                        // Each thread takes its own ticket and goes on by it.
                        Op::Atomic { op: AtomOp::Add, .. } => {
                            let adds = definitions[inst.args[1].index()];
                            !matches!(adds, Definition::Inst(b, i, 0)
                                if matches!(view.function.blocks[b].insts[i].op, Op::Const(bits) if bits != 0))
                        }
                        Op::Atomic { .. } => true,
                        _ => false,
                    };
                    if waits {
                        return Err("a loop may wait for another thread".to_owned());
                    }
                    // What memory held is the thread's own business from here on.
                    if !matches!(inst.op, Op::Atomic { .. } | Op::Load { .. }) {
                        work.extend(&inst.args);
                    }
                }
                Definition::None => {}
            }
        }
    }
    Ok(())
}

/// A compare-and-swap loop that compares with what it last saw and leaves as soon as it succeeds: some thread always
/// gets through.
fn retries(view: &View<'_>, definitions: &[Definition], index: usize, cas: &Inst) -> bool {
    let Some(&old) = cas.results.first() else { return false };
    let compare = cas.args[1];
    let plain = |mut value: Value| {
        while let Definition::Inst(block, at, 0) = definitions[value.index()] {
            let inst = &view.function.blocks[block].insts[at];
            if !matches!(inst.op, Op::Bitcast) {
                break;
            }
            value = inst.args[0];
        }
        value
    };
    let (old, compare) = (plain(old), plain(compare));
    let Definition::Param(header, nth) = definitions[compare.index()] else { return false };
    if header != view.loops.all[index].header {
        return false;
    }
    let carried = view.graph.iter().enumerate().all(|(from, successors)| {
        !view.loops.contains(index, from)
            || successors.iter().enumerate().all(|(edge, &to)| {
                to != header || plain(view.function.blocks[from].term.edges()[edge].args[nth]) == old
            })
    });
    let leaves = view.loops.all[index].blocks.iter().any(|&block| {
        let Term::Branch { cond, then, otherwise } = &view.function.blocks[block].term else { return false };
        let Definition::Inst(b, i, 0) = definitions[cond.index()] else { return false };
        let inst = &view.function.blocks[b].insts[i];
        let Op::Icmp(cmp @ (Cmp::Eq | Cmp::Ne), _) = inst.op else { return false };
        let args = (plain(inst.args[0]), plain(inst.args[1]));
        let success = if cmp == Cmp::Eq { then } else { otherwise };
        (args == (old, compare) || args == (compare, old))
            && !view.loops.contains(index, success.block.index())
    });
    carried && leaves
}

#[cfg(test)]
mod tests {
    use crate::pass::number::Threads;
    use crate::pass::regions::plan;
    use crate::pass::testing::function;

    fn verdict(source: &str) -> Result<usize, String> {
        let threads = Threads { block: [256, 1, 1], width: 32 };
        plan(&function(source), threads, 0).map(|plan| plan.regions.len())
    }

    #[test]
    fn a_barrier_in_a_loop_all_threads_run_alike_is_a_region_of_its_own() {
        let source = "entry: z = const.b32 0; n = ctaid; jump head(z)\n head(i:b32): barrier z; o = const.b32 1; j = add i o; p = lt j n; branch p head(j) done\n done: exit";
        assert_eq!(verdict(source), Ok(2));
    }

    #[test]
    fn a_barrier_on_one_side_of_a_divergent_branch_needs_l() {
        let source = "entry: t = tid; n = const.b32 40; p = lt t n; branch p a b\n a: barrier n; jump c\n b: jump c\n c: barrier n; exit";
        assert!(verdict(source).unwrap_err().contains("barrier"));
    }

    #[test]
    fn threads_that_end_do_not_count_at_a_barrier() {
        let source =
            "entry: t = tid; n = const.b32 40; p = lt t n; branch p a b\n a: barrier n; exit\n b: exit";
        assert_eq!(verdict(source), Ok(2));
    }

    #[test]
    fn waiting_for_a_flag_needs_l() {
        let source = "entry: a = const.b64 0; z = const.b32 0; jump head\n head: v = vload a; p = lt z v; branch p done head\n done: exit";
        assert_eq!(verdict(source).unwrap_err(), "a loop may wait for another thread");
    }

    #[test]
    fn taking_a_lock_needs_l() {
        let source = "entry: a = const.b64 0; z = const.b32 0; o = const.b32 1; jump head\n head: v = cas a z o; p = lt z v; branch p head done\n done: exit";
        assert_eq!(verdict(source).unwrap_err(), "a loop may wait for another thread");
    }

    #[test]
    fn a_ballot_among_parted_lanes_needs_l() {
        let source = "entry: t = tid; n = const.b32 40; p = lt t n; m = const.b32 255; branch p a b\n a: v = ballot p m; exit\n b: w = ballot p m; exit";
        assert!(verdict(source).unwrap_err().contains("collective"));
    }
}
