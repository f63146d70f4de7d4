//! Threads of one wave that wait for each other, on hardware that runs a wave's lanes in step.
//!
//! The sides of a branch run one after the other there, so a lane that waits in a loop keeps the others of its wave from
//! where they would let it go on; and the hardware's barrier counts a wave each time one of its lanes comes.

use super::cfg;
use super::classify::leading_to;
use super::divergence::{Among, Divergence, Spread, analyse, structure};
use super::dominators::successors;
use super::invariant::Invariant;
use super::known::Known;
use super::lcssa;
use super::spins::{self, Parts};
use super::value_ranges::{Threads, ValueRanges};
use crate::ir::*;

/// Who of a wave may wait for whom, as far as one can tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// A warp for another one, when they share a wave.
    pub warps: bool,
    /// A lane for another one of its warp.
    pub lanes: bool,
}

/// Shapes of blocks that tell a condition on the thread's number from one on some of its coordinates.
const SHAPES: [[u32; 3]; 3] = [[1024, 1, 1], [16, 16, 4], [2, 2, 256]];
const WARP: usize = 32;

impl Waits {
    /// `block`: the shape of every block, where the kernel has one.
    pub fn of(function: &Function, block: Option<[u32; 3]>) -> Waits {
        let interesting = |op: &Op| op.is_barrier() || reads_what_others_write(op);
        let insts = || function.blocks.iter().flat_map(|block| &block.insts);
        if !insts().any(|inst| interesting(&inst.op)) {
            return Waits::default();
        }
        // What cannot be looked into may do anything.
        look_into(function, block).unwrap_or_else(|| {
            let spins = insts().any(|inst| reads_what_others_write(&inst.op));
            Waits { warps: true, lanes: spins }
        })
    }
}

fn reads_what_others_write(op: &Op) -> bool {
    match op {
        Op::Load { order, .. } => *order != Order::Weak,
        op => matches!(op, Op::Atomic { .. } | Op::Fence { .. } | Op::NanoSleep),
    }
}

/// `None`: its control flow is irreducible.
fn look_into(function: &Function, block: Option<[u32; 3]>) -> Option<Waits> {
    let mut body = function.clone();
    cfg::lower_switches(&mut body);
    cfg::clean(&mut body);
    cfg::canonical_loops(&mut body)?;
    let invariant = Invariant::of(&body);
    lcssa::run(&mut body, &invariant.thread)?;
    let graph = successors(&body);
    let (dominators, loops, layout) = structure(&body)?;
    let reads = |axis| {
        let insts = body.blocks.iter().flat_map(|block| &block.insts);
        insts.into_iter().any(|inst| inst.op == Op::Special(Special::Tid(axis)))
    };
    // Who never asks for the other coordinates has blocks without them.
    let shapes: Vec<[u32; 3]> = match block {
        Some(block) => vec![block],
        None if reads(1) || reads(2) => SHAPES.to_vec(),
        None => SHAPES[..1].to_vec(),
    };
    let threads = |block| Threads { block, open: false, width: WARP as u32, assumes: true };
    let known: Vec<Known<'_>> =
        shapes.iter().map(|&block| Known::of(&body, &dominators, threads(block))).collect();
    let is_of_one_warp = |at: usize| {
        known.iter().all(|known| known.threads_at(at).is_none_or(|(first, last)| first / WARP == last / WARP))
    };
    let ranges = ValueRanges::of(&body, threads(shapes[0]));
    // A device function's arguments can be anything.
    let given = body.blocks[0].params.iter().map(|param| (*param, Divergence::Varying)).collect();
    let among = |whom| analyse(&body, &loops, &layout, &ranges, threads(shapes[0]), whom, 0, &given);
    let [lanes, warps] = [Among::Group, Among::Block].map(among);
    let parts = |divergent| Parts {
        function: &body,
        graph: &graph,
        dominators: &dominators,
        loops: &loops,
        layout: &layout,
        divergent,
        known: &known[0],
    };
    let is_for_one_lane = |at: usize| known[0].is_for_one_lane(at);
    let whole = parts(&warps.divergent);
    Some(Waits {
        warps: parts_at_barriers(&whole, is_of_one_warp)
            || spins::may_hang(&whole, Among::Block, is_of_one_warp),
        lanes: spins::may_hang(&parts(&lanes.divergent), Among::Group, is_for_one_lane),
    })
}

/// Whether some threads of the block may come to a barrier in another place than others do.
fn parts_at_barriers(parts: &Parts<'_>, agrees: impl Fn(usize) -> bool) -> bool {
    let is_barrier = |at: usize| parts.function.blocks[at].insts.iter().any(|inst| inst.op.is_barrier());
    // Threads that ended are not waited for.
    let leads = leading_to(parts.graph, is_barrier);
    let mut branches = (0..parts.graph.len())
        .filter(|&at| parts.divergent[at] && parts.dominators.is_reachable(at) && !agrees(at));
    branches.any(|at| {
        let spread = Spread::of(parts.graph, parts.loops, parts.layout, at, |block| leads[block]);
        spread.apart.iter().any(is_barrier)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pass::testing::function;

    fn waits(source: &str) -> (bool, bool) {
        let Waits { warps, lanes } = Waits::of(&function(source), None);
        (warps, lanes)
    }

    const FLAG: &str = "a = const.b64 0; z = const.b32 0; o = const.b32 1; n = const.b32 32; t = tid;";

    #[test]
    fn barriers_that_all_come_to_part_nobody() {
        let source = "entry: z = const.b32 0; n = ctaid; jump head(z)\n head(i:b32): barrier z; o = const.b32 1; j = add i o; p = lt j n; branch p head(j) done\n done: exit";
        assert_eq!(waits(source), (false, false));
    }

    #[test]
    fn warps_that_meet_at_two_barriers_cannot_share_a_wave() {
        let source = format!(
            "entry: {FLAG} p = lt t n; branch p a b\n a: barrier z; jump c\n b: barrier z; jump c\n c: exit"
        );
        assert_eq!(waits(&source), (true, false));
        // Who ended is not waited for.
        let ends = format!("entry: {FLAG} p = lt t n; branch p a b\n a: barrier z; exit\n b: exit");
        assert_eq!(waits(&ends), (false, false));
    }

    #[test]
    fn a_warp_may_wait_for_a_flag_of_another() {
        let source = format!(
            "entry: {FLAG} p = lt t n; branch p head set\n head: v = vload a; q = lt z v; branch q done head\n done: store a v; exit\n set: store a o; exit"
        );
        assert!(waits(&source).0);
    }

    #[test]
    fn thread_32_may_wait_for_thread_0() {
        let source = format!(
            "entry: {FLAG} p = eq t z; branch p set next\n set: store a o; exit\n next: q = eq t n; branch q head done\n head: v = vload a; r = lt z v; branch r done head\n done: exit"
        );
        assert!(waits(&source).0);
    }

    #[test]
    fn thread_0_may_wait_for_other_blocks_while_its_own_stands_at_a_barrier() {
        let source = format!(
            "entry: {FLAG} p = eq t z; branch p head meet\n head: v = vload a; q = lt z v; branch q done head\n done: store a z; jump meet\n meet: barrier z; store a t; exit"
        );
        assert_eq!(waits(&source), (false, false));
    }

    #[test]
    fn a_lane_may_wait_for_who_holds_the_lock() {
        let taken = "head: v = cas a z o; p = lt z v; branch p head done\n done: store a z; exit";
        assert_eq!(waits(&format!("entry: {FLAG} jump head\n {taken}")), (true, true));
    }

    #[test]
    fn a_lock_that_is_let_go_inside_the_loop_keeps_nobody() {
        let source = format!(
            "entry: {FLAG} jump head(z)\n head(d:b32): v = cas a z o; p = eq z v; branch p work next(d)\n work: store a z; jump next(o)\n next(e:b32): q = eq e z; branch q head(e) done\n done: exit"
        );
        assert_eq!(waits(&source), (false, false));
    }
}
