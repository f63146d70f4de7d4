//! May this kernel run with lanes in lockstep (settings `simd` and `warp`)? If not, why.
//!
//! A kernel is refused whenever a thread could have to wait for another thread of its group outside a barrier that all
//! of them reach, or where a warp's members at a collective are not provably those that execute it. In `simd` the same holds
//! for the threads of the whole block; in `warp` warps may wait for each other.

use super::divergence::{Among, Divergences, Spread};
use super::dominators::Dominators;
use super::known::Known;
use super::layout::Layout;
use super::loops::Loops;
use super::members::Members;
use super::spins;
use super::value_ranges::ValueRanges;
use crate::ir::*;

pub struct View<'a> {
    pub function: &'a Function,
    pub graph: &'a [Vec<usize>],
    pub dominators: &'a Dominators,
    pub loops: &'a Loops,
    pub layout: &'a Layout,
    /// Shapes among the lanes of a group.
    pub group: &'a Divergences,
    /// Shapes among the threads of a block.
    pub block: &'a Divergences,
    pub ranges: &'a ValueRanges,
    pub known: &'a Known<'a>,
}

impl View<'_> {
    /// The branches that they may not agree on.
    fn divergent(&self, among: Among) -> &[bool] {
        match among {
            Among::Block => &self.block.divergent,
            Among::Group => &self.group.divergent,
        }
    }
}

/// Why a kernel with barriers for fewer threads than its blocks have does not run in `simd`.
pub const PARTIAL: &str = "a barrier is for a part of the block only";

/// `Err` is the reason why threads cannot run it in step: those of the block (`simd`), or those of a warp (`warp`).
pub fn classify(view: &View<'_>, among: Among) -> Result<(), String> {
    for block in &view.function.blocks {
        for inst in &block.insts {
            operation(&inst.op)?;
            match among {
                Among::Block => whole_barrier(&inst.op, inst.args.len())?,
                Among::Group => warp_barrier(view, inst)?,
            }
        }
        if let Term::Return(_) = block.term {
            return Err("it returns like a device function".to_owned());
        }
    }
    barriers(view, among)?;
    collectives(view)?;
    // Loops within a region are looked at when regions are cut: there a loop may wait.
    if among == Among::Block && waits_across_barriers(view) {
        return Err("a loop with a barrier may wait for another thread".to_owned());
    }
    Ok(())
}

fn waits_across_barriers(view: &View<'_>) -> bool {
    let waiting = spins::waiting(view.function, view.graph, view.dominators, view.loops);
    let is_barrier = |block: &usize| has(view.function, *block, Op::is_barrier);
    waiting.iter().any(|&index| view.loops.all[index].blocks.iter().any(is_barrier))
}

fn operation(op: &Op) -> Result<(), String> {
    match op {
        Op::Call(_) => Err("it calls a function that could not be inlined".to_owned()),
        Op::CallIndirect => Err("it calls through a pointer".to_owned()),
        _ => Ok(()),
    }
}

/// A warp comes to one barrier, and waits for one number of threads.
fn warp_barrier(view: &View<'_>, inst: &Inst) -> Result<(), String> {
    let Op::Barrier { kind, .. } = inst.op else { return Ok(()) };
    let numbers = &inst.args[..inst.args.len() - usize::from(kind.is_reduction())];
    if numbers.iter().all(|arg| view.group.of[arg.index()].is_uniform()) {
        return Ok(());
    }
    Err("lanes of a warp may come to different barriers".to_owned())
}

fn whole_barrier(op: &Op, arguments: usize) -> Result<(), String> {
    match op {
        Op::ClusterBarrier { .. } => Err("it meets the blocks of its cluster".to_owned()),
        Op::Barrier { kind: BarrierKind::Arrive, .. } => {
            Err("it arrives at a barrier without waiting".to_owned())
        }
        Op::Barrier { kind: BarrierKind::Sync, .. } if arguments > 1 => Err(PARTIAL.to_owned()),
        Op::Barrier { kind: BarrierKind::Sync, .. } => Ok(()),
        Op::Barrier { .. } if arguments > 2 => Err(PARTIAL.to_owned()),
        _ => Ok(()),
    }
}

/// Blocks from which a block that `wanted` holds for can be reached.
pub fn leading_to(graph: &[Vec<usize>], wanted: impl Fn(usize) -> bool) -> Vec<bool> {
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

/// Every barrier is reached by all threads (of the block, or of a warp) that still run, in the same trip of every loop.
fn barriers(view: &View<'_>, among: Among) -> Result<(), String> {
    let divergent = view.divergent(among);
    let whom = match among {
        Among::Block => "threads of the block",
        Among::Group => "lanes of a warp",
    };
    let is_barrier = |block: usize| has(view.function, block, Op::is_barrier);
    let leads = leading_to(view.graph, is_barrier);
    for at in (0..view.graph.len()).filter(|&at| divergent[at] && view.dominators.is_reachable(at)) {
        let spread = Spread::of(view.graph, view.loops, view.layout, at, |block| leads[block]);
        if spread.apart.iter().any(is_barrier) {
            return Err(format!("a barrier is under control that {whom} may not agree on"));
        }
    }
    Ok(())
}

/// Whether some threads of the block, or of a group, may end while others of it still come to a barrier.
pub fn loses_threads(view: &View<'_>, among: Among) -> bool {
    let divergent = view.divergent(among);
    let leads = leading_to(view.graph, |block| has(view.function, block, Op::is_barrier));
    let parts =
        (0..view.graph.len()).filter(|&at| divergent[at] && leads[at] && view.dominators.is_reachable(at));
    let leaves = |block: usize| view.graph[block].iter().any(|&to| !leads[to]);
    parts.into_iter().any(|at| {
        let spread = Spread::of(view.graph, view.loops, view.layout, at, |block| leads[block]);
        leaves(at) || spread.apart.iter().any(leaves)
    })
}

fn collectives(view: &View<'_>) -> Result<(), String> {
    let meets = |op: &Op| op.is_warp_collective() && !matches!(op, Op::ActiveMask);
    let leads = leading_to(view.graph, |block| has(view.function, block, meets));
    let members = Members::of(view, &leads);
    for at in (0..view.graph.len()).filter(|&at| view.dominators.is_reachable(at)) {
        for inst in view.function.blocks[at].insts.iter().filter(|inst| meets(&inst.op)) {
            if !inst.args.last().is_some_and(|&mask| members.are_at(at, mask)) {
                return Err("a warp collective is under control that lanes may not agree on".to_owned());
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::pass::divergence::Among;
    use crate::pass::regions::plan;
    use crate::pass::testing::function;
    use crate::pass::value_ranges::Threads;

    fn verdict(source: &str) -> Result<usize, String> {
        verdict_among(source, Among::Block)
    }

    fn verdict_among(source: &str, among: Among) -> Result<usize, String> {
        let threads = Threads { block: [256, 1, 1], open: false, width: 32, assumes: true };
        plan(&function(source), threads, 0, among).map(|plan| plan.regions.len())
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
    fn threads_are_lost_where_a_part_of_them_ends_before_a_barrier() {
        let threads = Threads { block: [256, 1, 1], open: false, width: 32, assumes: true };
        let loses = |source| plan(&function(source), threads, 0, Among::Block).unwrap().loses_threads;
        // By a branch of its own, by way of the last block, and behind a branch on the block's number.
        let part =
            "entry: t = tid; n = const.b32 40; p = lt t n; branch p a b\n a: barrier n; exit\n b: exit";
        let shared =
            "entry: t = tid; n = const.b32 40; p = lt t n; branch p a b\n a: barrier n; jump b\n b: exit";
        let all = "entry: t = tid; c = ctaid; n = const.b32 40; p = lt c n; branch p a b\n a: barrier n; q = lt t n; branch q b d\n d: exit\n b: exit";
        assert!(loses(part) && loses(shared));
        assert!(!loses(all));
    }

    #[test]
    fn whole_blocks_may_wait_for_a_flag() {
        let source = "entry: a = const.b64 0; z = const.b32 0; jump head\n head: v = vload a; p = lt z v; branch p done head\n done: exit";
        assert_eq!(verdict(source), Ok(1));
    }

    #[test]
    fn taking_a_lock_needs_l() {
        let source = "entry: a = const.b64 0; z = const.b32 0; o = const.b32 1; jump head\n head: v = cas a z o; p = lt z v; branch p head done\n done: exit";
        assert!(verdict(source).unwrap_err().contains("may wait for each other"));
    }

    /// Thread 0 waits for a flag, `before` and `after`, which all threads run, in the same region.
    fn wait_of_thread_0(before: &str, after: &str) -> String {
        format!(
            "entry: a = const.b64 0; z = const.b32 0; t = tid; {before} p = eq t z; branch p head meet\n head: v = vload a; q = lt z v; branch q done head\n done: store a v; jump meet\n meet: {after} barrier z; store a t; exit"
        )
    }

    #[test]
    fn one_group_may_wait_where_the_others_do_nothing() {
        assert_eq!(verdict(&wait_of_thread_0("", "")), Ok(2));
    }

    #[test]
    fn one_group_may_not_wait_where_later_ones_could_store() {
        for source in [wait_of_thread_0("store a z;", ""), wait_of_thread_0("", "store a z;")] {
            assert!(verdict(&source).unwrap_err().contains("may wait for each other"));
        }
    }

    #[test]
    fn the_last_group_may_wait_for_those_before() {
        for early in ["store a z;", ""] {
            let source = format!(
                "entry: a = const.b64 0; z = const.b32 0; n = const.b32 224; t = tid; {early} p = lt t n; branch p others late\n others: store a t; jump meet\n late: jump head\n head: v = vload a; q = lt z v; branch q done head\n done: jump meet\n meet: barrier z; exit"
            );
            assert_eq!(verdict(&source), Ok(2));
        }
    }

    #[test]
    fn a_ballot_of_several_tiles_of_a_warp_is_allowed() {
        let source = "entry: t = tid; o = const.b32 24; p = lt t o; m = and t o; v = ballot p m; exit";
        assert_eq!(verdict(source), Ok(1));
    }

    #[test]
    fn a_constant_mask_may_name_the_lanes_of_a_branch() {
        let source = "entry: t = tid; n = const.b32 8; p = lt t n; m = const.b32 255; branch p a b\n a: v = ballot p m; jump b\n b: exit";
        assert_eq!(verdict(source), Ok(1));
    }

    #[test]
    fn a_ballot_among_parted_lanes_needs_l() {
        let source = "entry: t = tid; n = const.b32 40; p = lt t n; m = const.b32 255; branch p a b\n a: v = ballot p m; exit\n b: w = ballot p m; exit";
        assert!(verdict(source).unwrap_err().contains("collective"));
    }
}
