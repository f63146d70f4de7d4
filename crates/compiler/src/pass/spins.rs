//! Loops in which a thread may wait for another one, and whether lanes of its own warp could be who it waits for.

use super::bits::BitSet;
use super::divergence::{Among, Spread};
use super::dominators::{Dominators, post_dominators};
use super::known::Known;
use super::layout::Layout;
use super::loops::Loops;
use super::visit::{Definition, definitions};
use crate::ir::*;
use crate::texture::Access;

/// Indices of the loops that end when another thread has done something, as far as one can tell.
pub fn waiting(
    function: &Function,
    graph: &[Vec<usize>],
    dominators: &Dominators,
    loops: &Loops,
) -> Vec<usize> {
    let view = View { function, graph, dominators, loops, definitions: definitions(function) };
    (0..loops.all.len()).filter(|&index| view.waits(index)).collect()
}

/// Whether there is anything by which a loop could wait for another thread.
pub fn may_wait(function: &Function) -> bool {
    let waits = |inst: &Inst| match inst.op {
        Op::Load { order, .. } => order != Order::Weak,
        Op::Atomic { .. } | Op::Fence { .. } | Op::NanoSleep | Op::Syscall(Syscall::TensorMemory) => true,
        _ => false,
    };
    function.blocks.iter().any(|block| block.insts.iter().any(waits))
}

fn may_be_local(space: Space) -> bool {
    matches!(space, Space::Local | Space::Generic)
}

struct View<'a> {
    function: &'a Function,
    graph: &'a [Vec<usize>],
    dominators: &'a Dominators,
    loops: &'a Loops,
    definitions: Vec<Definition>,
}

impl View<'_> {
    fn has(&self, block: usize, wanted: impl Fn(&Op) -> bool) -> bool {
        self.function.blocks[block].insts.iter().any(|inst| wanted(&inst.op))
    }

    fn passes_all_trips(&self, index: usize, block: usize) -> bool {
        let each = &self.loops.all[index];
        let mut latches = each.blocks.iter().filter(|&&from| self.graph[from].contains(&each.header));
        latches.all(|&latch| self.dominators.dominates(block, latch))
    }

    fn is_inside(&self, index: usize, value: Value) -> bool {
        self.definitions[value.index()].block().is_some_and(|block| self.loops.contains(index, block))
    }

    fn exits(&self, index: usize) -> impl Iterator<Item = (usize, usize)> {
        let edges = self.loops.all[index].blocks.iter();
        edges
            .flat_map(|&from| self.graph[from].iter().map(move |&to| (from, to)))
            .filter(move |&(_, to)| !self.loops.contains(index, to))
    }

    /// Whether the branch of `block` only ends an inner loop, which is looked at by itself.
    fn ends_an_inner_loop(&self, index: usize, block: usize) -> bool {
        let Some(inner) = self.loops.of[block].filter(|&inner| inner != index) else { return false };
        self.exits(inner).count() == 1 && self.exits(inner).all(|(from, _)| from == block)
    }

    fn waits(&self, index: usize) -> bool {
        let each = &self.loops.all[index];
        let fenced = each
            .blocks
            .iter()
            .any(|&block| self.has(block, |op| matches!(op, Op::Fence { .. } | Op::NanoSleep)));
        let meets_barrier = each
            .blocks
            .iter()
            .any(|&block| self.passes_all_trips(index, block) && self.has(block, Op::is_barrier));
        if meets_barrier {
            return false;
        }
        // Backward slice of what decides whether the loop goes on.
        let mut seen = BitSet::new(self.function.values.len());
        let mut work: Vec<Value> = vec![];
        for &block in &each.blocks {
            if let Term::Branch { cond, .. } = self.function.blocks[block].term
                && !self.ends_an_inner_loop(index, block)
            {
                work.push(cond);
            }
        }
        while let Some(value) = work.pop() {
            if !self.is_inside(index, value) || !seen.insert(value.index()) {
                continue;
            }
            match self.definitions[value.index()] {
                Definition::Param(block, nth) => {
                    for (from, successors) in self.graph.iter().enumerate() {
                        for (edge, _) in successors.iter().enumerate().filter(|&(_, &to)| to == block) {
                            work.push(self.function.blocks[from].term.edges()[edge].args[nth]);
                        }
                    }
                }
                Definition::Inst(block, at, _) => {
                    let inst = &self.function.blocks[block].insts[at];
                    if self.depends_on_others(index, block, inst, fenced) {
                        return true;
                    }
                    match inst.op {
                        // Unoptimised code keeps its variables in memory: what the loop stored may come back.
                        Op::Load { order: Order::Weak, space, .. } if may_be_local(space) => {
                            work.extend(self.stored_locally(index));
                        }
                        // What memory held is the thread's own business from here on.
                        Op::Atomic { .. } | Op::Load { .. } => {}
                        _ => work.extend(&inst.args),
                    }
                }
                Definition::None => {}
            }
        }
        false
    }

    /// Values that the loop stores where the thread's local memory may be.
    fn stored_locally(&self, index: usize) -> impl Iterator<Item = Value> {
        let insts = self.loops.all[index].blocks.iter().flat_map(|&block| &self.function.blocks[block].insts);
        let stores = insts.filter(|inst| matches!(inst.op, Op::Store { space, .. } if may_be_local(space)));
        stores.flat_map(|inst| inst.args[1..].iter().copied())
    }

    /// Whether the instruction's result in loop `index` may be what another thread has to change first.
    fn depends_on_others(&self, index: usize, block: usize, inst: &Inst, fenced: bool) -> bool {
        match &inst.op {
            Op::Load { order: Order::Weak, space, .. } => {
                fenced && !matches!(space, Space::Const | Space::Param | Space::Local)
            }
            Op::Load { .. } => !self.is_tried_again(index, inst),
            // Another thread may store to the surface.
            Op::Texture(Access::Load { .. }) => fenced,
            Op::Atomic { op: AtomOp::Cas, .. } => {
                !(self.passes_all_trips(index, block) && self.retries(index, inst))
            }
            // Each thread takes its own ticket and goes on by it.
            Op::Atomic { op: AtomOp::Add, .. } => {
                let adds = self.definitions[inst.args[1].index()];
                !matches!(adds, Definition::Inst(b, i, 0)
                    if matches!(self.function.blocks[b].insts[i].op, Op::Const(bits) if bits != 0))
            }
            // Another warp may give columns back, another block come as well.
            Op::Atomic { .. } | Op::Syscall(Syscall::TensorMemory) => true,
            _ => false,
        }
    }

    /// Looks through changes of type.
    fn plain(&self, mut value: Value) -> Value {
        while let Definition::Inst(block, at, 0) = self.definitions[value.index()] {
            let inst = &self.function.blocks[block].insts[at];
            if !matches!(inst.op, Op::Bitcast) {
                break;
            }
            value = inst.args[0];
        }
        value
    }

    /// A compare-and-swap loop that compares with what it last saw and leaves as soon as it succeeds: some thread
    /// always gets through.
    fn retries(&self, index: usize, cas: &Inst) -> bool {
        let Some(&old) = cas.results.first() else { return false };
        let (old, compare) = (self.plain(old), self.plain(cas.args[1]));
        let last_seen = match self.definitions[compare.index()] {
            Definition::Param(header, nth) => {
                header == self.loops.all[index].header
                    && self.graph.iter().enumerate().all(|(from, successors)| {
                        !self.loops.contains(index, from)
                            || successors.iter().enumerate().all(|(edge, &to)| {
                                to != header
                                    || self.plain(self.function.blocks[from].term.edges()[edge].args[nth])
                                        == old
                            })
                    })
            }
            Definition::Inst(block, at, _) => {
                self.reads_first(index, &self.function.blocks[block].insts[at], cas)
            }
            Definition::None => false,
        };
        last_seen && self.success_edges(index, old, compare).next().is_some()
    }

    /// The loop reads what the compare-and-swap compares with, at the same place, in each trip.
    fn reads_first(&self, index: usize, load: &Inst, cas: &Inst) -> bool {
        let (Op::Load { space, offset, .. }, Op::Atomic { space: cas_space, offset: cas_offset, .. }) =
            (&load.op, &cas.op)
        else {
            return false;
        };
        let home = load.results.first().and_then(|value| self.definitions[value.index()].block());
        home.is_some_and(|home| self.loops.of[home] == Some(index))
            && (space, offset) == (cas_space, cas_offset)
            && load.args[0] == cas.args[0]
    }

    /// Edges out of the loop that are taken because `old` is `compare`.
    fn success_edges(
        &self,
        index: usize,
        old: Value,
        compare: Value,
    ) -> impl Iterator<Item = (usize, usize)> {
        self.loops.all[index].blocks.iter().filter_map(move |&block| {
            let Term::Branch { cond, then, otherwise } = &self.function.blocks[block].term else {
                return None;
            };
            let Definition::Inst(b, i, 0) = self.definitions[cond.index()] else { return None };
            let inst = &self.function.blocks[b].insts[i];
            let Op::Icmp(cmp @ (Cmp::Eq | Cmp::Ne), _) = inst.op else { return None };
            let args = (self.plain(inst.args[0]), self.plain(inst.args[1]));
            let success = if cmp == Cmp::Eq { then } else { otherwise }.block.index();
            let compares = args == (old, compare) || args == (compare, old);
            (compares && !self.loops.contains(index, success)).then_some((block, success))
        })
    }

    /// Whether the load only feeds a compare-and-swap whose success is the only way out of the loop.
    fn is_tried_again(&self, index: usize, load: &Inst) -> bool {
        let Some(&value) = load.results.first() else { return false };
        self.loops.all[index].blocks.iter().any(|&block| {
            self.passes_all_trips(index, block)
                && self.function.blocks[block].insts.iter().any(|cas| {
                    matches!(cas.op, Op::Atomic { op: AtomOp::Cas, .. })
                        && self.plain(cas.args[1]) == value
                        && cas.results.first().is_some_and(|&old| {
                            self.reads_first(index, load, cas)
                                && self.success_edges(index, self.plain(old), value).eq(self.exits(index))
                        })
                })
        })
    }
}

/// A region between barriers when warps run by themselves, or a whole function.
pub struct Parts<'a> {
    pub function: &'a Function,
    pub graph: &'a [Vec<usize>],
    pub dominators: &'a Dominators,
    pub loops: &'a Loops,
    pub layout: &'a Layout,
    /// Branches on which the lanes of a warp may not agree, by block.
    pub divergent: &'a [bool],
    pub known: &'a Known<'a>,
}

/// Headers of the loops in which a warp has to let others run. `Err`: lanes of one warp may wait for each other.
///
/// While lanes of a warp go round in a loop its other lanes stand still. That is no different from running them first
/// as long as nobody could see what they do before they have to wait for the looping lanes anyhow.
pub fn of_warps(parts: &Parts<'_>) -> Result<Vec<usize>, String> {
    let waiting = waiting(parts.function, parts.graph, parts.dominators, parts.loops);
    if waiting.is_empty() {
        return Ok(vec![]);
    }
    let spreads = parts.spreads();
    let mut headers = vec![];
    for index in waiting {
        if parts.holds_back_effects(index, &spreads) {
            return Err("lanes of a warp may wait for each other in a loop".to_owned());
        }
        headers.push(parts.loops.all[index].header);
    }
    Ok(headers)
}

/// Whether some threads of a wave may wait in a loop for others of it, which stand still meanwhile: lanes of a warp, or
/// the warps of a block, two of which share a wave. `parts` has what parts those threads, and which branches do not.
///
/// In what order a wave runs the sides of a branch is the compiler's affair, and they meet where all ways lead.
pub fn may_hang(parts: &Parts<'_>, whom: Among, agrees: impl Fn(usize) -> bool) -> bool {
    let waiting = waiting(parts.function, parts.graph, parts.dominators, parts.loops);
    let meeting = post_dominators(parts.graph);
    let branches: Vec<(usize, BitSet)> = (0..parts.graph.len())
        .filter(|&at| parts.divergent[at] && parts.dominators.is_reachable(at) && !agrees(at))
        .map(|at| (at, parts.until(at, |block| block != at && meeting.dominates(block, at))))
        .collect();
    let hangs = |index: usize| {
        let header = parts.loops.all[index].header;
        branches.iter().filter(|(_, apart)| apart.contains(header)).any(|(at, apart)| {
            let held = match parts.loops.contains(index, *at) {
                true => parts.behind(index),
                false => parts.beside(index, *at, apart),
            };
            parts.shows(held, apart, Some(index), whom)
        })
    };
    waiting.into_iter().any(hangs)
}

/// Headers of the loops in which a block has to let other blocks run. `Err`: its threads may wait for each other.
///
/// Groups run a region one after the other, each to its end. One that waits there is passed by those before it, and
/// nobody can miss those behind it if they do nothing that another thread sees: what comes behind the next barrier no
/// thread reaches while one waits.
pub fn of_blocks(parts: &Parts<'_>, width: u32) -> Result<Vec<usize>, String> {
    let headers = of_warps(parts)?;
    let threads = |at: usize| parts.known.threads_at(at);
    let Some(first) = headers.iter().filter_map(|&header| threads(header)).map(|(first, _)| first).min()
    else {
        return Ok(headers);
    };
    let group = |thread: usize| thread / width as usize;
    let acts = |block: &Block| block.insts.iter().any(|inst| !inst.op.is_barrier() && is_seen(&inst.op));
    let later = |at: usize| threads(at).is_some_and(|(_, last)| group(last) > group(first));
    // Of wider groups it is not known which of their lanes may wait for each other.
    if width > 32 || parts.function.blocks.iter().enumerate().any(|(at, block)| acts(block) && later(at)) {
        return Err("threads of a block may wait for each other in a loop".to_owned());
    }
    Ok(headers)
}

/// Whether other threads may notice the operation, apart from what makes lanes meet.
pub(super) fn is_seen(op: &Op) -> bool {
    match op {
        op if op.is_warp_collective() => false,
        Op::Store { space: Space::Local | Space::Param, .. } => false,
        Op::Load { .. } | Op::Fence { .. } | Op::NanoSleep | Op::Special(_) => false,
        Op::Syscall(Syscall::Vprintf | Syscall::Malloc | Syscall::Free) => false,
        op => !op.is_pure(),
    }
}

impl Parts<'_> {
    /// Blocks whose branch parts lanes of a warp, and what it does. (One lane goes one way.)
    fn spreads(&self) -> Vec<(usize, Spread)> {
        (0..self.graph.len())
            .filter(|&at| {
                self.divergent[at] && self.dominators.is_reachable(at) && !self.known.is_for_one_lane(at)
            })
            .map(|at| (at, Spread::of(self.graph, self.loops, self.layout, at, |_| true)))
            .collect()
    }

    /// Whether lanes that are not in loop `index` while others are have something to do that others could see.
    fn holds_back_effects(&self, index: usize, spreads: &[(usize, Spread)]) -> bool {
        let header = self.loops.all[index].header;
        spreads.iter().any(|(at, spread)| {
            spread.apart.contains(header)
                && self.shows(self.held(index, *at, spread), &spread.apart, None, Among::Group)
        })
    }

    /// Where lanes go on that the branch of block `at` has kept out of the loop, or let out of it. What lies before
    /// the loop in the layout they have done already.
    fn held(&self, index: usize, at: usize, spread: &Spread) -> Vec<usize> {
        let inside = |block: usize| self.loops.contains(index, block);
        if inside(at) {
            return self.behind(index);
        }
        if let Some(around) = self.comes_again(index, at) {
            return self.behind(around);
        }
        let mut work = self.beside(index, at, &spread.apart);
        let head = self.layout.position[self.loops.all[index].header];
        let mut seen = vec![false; self.graph.len()];
        let mut found = vec![];
        while let Some(block) = work.pop() {
            if inside(block) || std::mem::replace(&mut seen[block], true) {
                continue;
            }
            if self.layout.position[block] > head {
                found.push(block);
            } else {
                work.extend(&self.graph[block]);
            }
        }
        found
    }

    /// The loop with whose next trip lanes come to loop `index` after the branch of block `at`, if it lies behind: those
    /// that the branch parts have run that trip to its end by then, or left.
    fn comes_again(&self, index: usize, at: usize) -> Option<usize> {
        if self.layout.position[at] < self.layout.position[self.loops.all[index].header] {
            return None;
        }
        let around =
            std::iter::successors(self.loops.all[index].parent, |&outer| self.loops.all[outer].parent);
        around.into_iter().find(|&outer| self.loops.contains(outer, at))
    }

    /// Where the loop is left to.
    fn behind(&self, index: usize) -> Vec<usize> {
        let blocks = self.loops.all[index].blocks.iter();
        let next = blocks.flat_map(|&from| &self.graph[from]).copied();
        next.filter(|&to| !self.loops.contains(index, to)).collect()
    }

    /// Blocks behind the branch of block `at`, up to those that `ends` holds for.
    fn until(&self, at: usize, ends: impl Fn(usize) -> bool) -> BitSet {
        let mut found = BitSet::new(self.graph.len());
        let mut work = self.graph[at].clone();
        while let Some(block) = work.pop() {
            if !ends(block) && found.insert(block) {
                work.extend(&self.graph[block]);
            }
        }
        found
    }

    /// The sides of the branch of block `at` whose lanes may miss those that went another way, into loop `index`. Lanes
    /// that went the loop's way are all in it, as far as this branch goes.
    fn beside(&self, index: usize, at: usize, apart: &BitSet) -> Vec<usize> {
        let header = self.loops.all[index].header;
        let sides = &self.graph[at];
        let enters: Vec<bool> = sides.iter().map(|&side| self.reaches(side, header, apart)).collect();
        let others = |nth: usize| (0..sides.len()).any(|other| other != nth && enters[other]);
        (0..sides.len()).filter(|&nth| others(nth)).map(|nth| sides[nth]).collect()
    }

    /// Whether there is a way from one block to another through blocks of `within`.
    fn reaches(&self, from: usize, to: usize, within: &BitSet) -> bool {
        let mut seen = vec![false; self.graph.len()];
        let mut work = vec![from];
        while let Some(block) = work.pop() {
            if block == to {
                return true;
            }
            if within.contains(block) && !std::mem::replace(&mut seen[block], true) {
                work.extend(&self.graph[block]);
            }
        }
        false
    }

    /// Whether from one of `starts` on, but for the loop `except`, something can be seen before those of `whom` meet.
    fn shows(&self, starts: Vec<usize>, apart: &BitSet, except: Option<usize>, whom: Among) -> bool {
        let mut seen = vec![false; self.graph.len()];
        let mut work = starts;
        while let Some(block) = work.pop() {
            if except.is_some_and(|index| self.loops.contains(index, block))
                || std::mem::replace(&mut seen[block], true)
            {
                continue;
            }
            match self.first_event(block, !apart.contains(block), whom) {
                Some(Event::Effect) => return true,
                Some(Event::Meeting) => {}
                None => work.extend(&self.graph[block]),
            }
        }
        false
    }

    fn first_event(&self, block: usize, together: bool, whom: Among) -> Option<Event> {
        self.function.blocks[block].insts.iter().find_map(|inst| match &inst.op {
            Op::ActiveMask => None,
            op if op.is_warp_collective() => (together && whom == Among::Group).then_some(Event::Meeting),
            Op::Barrier { kind: BarrierKind::Arrive, .. } | Op::ClusterBarrier { wait: false } => {
                Some(Event::Effect)
            }
            Op::Barrier { .. } | Op::ClusterBarrier { .. } => {
                Some(if together { Event::Meeting } else { Event::Effect })
            }
            op => is_seen(op).then_some(Event::Effect),
        })
    }
}

enum Event {
    /// Threads outside the warp, or its other lanes, could see it.
    Effect,
    /// All lanes of the warp have to be here, or all threads of the block.
    Meeting,
}

#[cfg(test)]
mod tests {
    use crate::pass::divergence::Among;
    use crate::pass::regions::plan;
    use crate::pass::testing::function;
    use crate::pass::value_ranges::Threads;

    /// Loops of all regions in which a warp lets others run.
    fn yields(source: &str) -> Result<usize, String> {
        let threads = Threads { block: [256, 1, 1], open: false, width: 32, assumes: true };
        let plan = plan(&function(source), threads, 0, Among::Group)?;
        Ok(plan.regions.iter().map(|region| region.spins.len()).sum())
    }

    const FLAG: &str = "a = const.b64 0; z = const.b32 0;";

    #[test]
    fn a_whole_warp_may_wait_for_another() {
        let source = format!(
            "entry: {FLAG} jump head\n head: v = vload a; p = lt z v; branch p done head\n done: store a z; exit"
        );
        assert_eq!(yields(&source), Ok(1));
    }

    #[test]
    fn one_lane_may_wait_while_the_others_stand_at_a_barrier() {
        let source = format!(
            "entry: {FLAG} t = tid; q = lt z t; branch q meet head\n head: v = vload a; p = lt z v; branch p leave head\n leave: jump meet\n meet: barrier z; store a z; exit"
        );
        assert_eq!(yields(&source), Ok(1));
    }

    /// Thread 0 waits for a flag of the others, then sets the one that they wait for.
    #[test]
    fn lanes_that_wait_for_each_other_by_turns_are_refused() {
        let source = format!(
            "entry: {FLAG} b = const.b64 64; t = tid; q = lt z t; branch q two one\n one: jump head\n head: v = vload a; p = lt z v; branch p tell head\n tell: store b t; jump meet\n two: store a t; jump wait\n wait: w = vload b; r = lt z w; branch r leave wait\n leave: jump meet\n meet: barrier z; store a z; exit"
        );
        assert!(yields(&source).unwrap_err().contains("each other"));
    }

    #[test]
    fn one_lane_may_take_a_lock_for_its_warp() {
        let source = format!(
            "entry: {FLAG} o = const.b32 1; t = tid; q = eq z t; branch q head meet\n head: v = cas a z o; p = lt z v; branch p head done\n done: store a z; jump meet\n meet: barrier z; exit"
        );
        assert_eq!(yields(&source), Ok(1));
    }

    #[test]
    fn what_a_lane_did_before_the_loop_is_done() {
        let source = format!(
            "entry: {FLAG} t = tid; q = lt z t; branch q meet one\n one: store a z; jump head\n head: v = vload a; p = lt z v; branch p leave head\n leave: jump meet\n meet: barrier z; exit"
        );
        assert_eq!(yields(&source), Ok(1));
    }

    #[test]
    fn adding_by_load_and_compare_and_swap_waits_for_nobody() {
        let source = format!(
            "entry: {FLAG} jump head\n head: v = vload a; n = add v v; o = cas a v n; p = eq o v; branch p done head\n done: exit"
        );
        assert_eq!(yields(&source), Ok(0));
    }
}
