//! Loops that wait take in all that their lanes do before they meet others.
//!
//! ```text
//! do {                                     do {
//!   if (it is there) break;                  if (it is there) { tell others; done = true; }
//! } while (more);                    →       else done = !more;
//! tell others;                             } while (!done);
//! barrier;                                 barrier;
//! ```
//!
//! For a thread both are the same. Where lanes run in step, those that leave a loop stand still until all others have left
//! it: on the left nobody is told before the last lane has found what it waits for. What other ways lead to as
//! well is there twice. (`release` takes in no more than what lets others go on, for GPUs whose lanes are the hardware's.)

use super::bits::BitSet;
use super::cfg;
use super::dominators::{Dominators, block, successors};
use super::loops::Loops;
use super::release::{self, constant};
use super::spins;
use super::ssa::{Graph, Places, rebuild};
use super::visit::{Definition, definitions, for_each_use, term_values_mut};
use crate::ir::*;
use std::collections::HashMap;

/// More instructions than this stay behind their loop.
const MOST: usize = 400;
/// At most so many are done again for the next trip.
const MOST_AGAIN: usize = 12;

/// The part between two barriers with such loops changed, if there are any.
pub fn run(region: &Function) -> Option<Function> {
    let mut function = region.clone();
    cfg::canonical_loops(&mut function)?;
    let mut done = vec![];
    let mut changed = false;
    while let Some(tail) = Tail::next(&mut function, &mut done) {
        tail.take_in(&mut function);
        cfg::clean(&mut function);
        cfg::canonical_loops(&mut function)?;
        changed = true;
    }
    changed.then_some(function)
}

/// What comes behind a loop until lanes meet.
struct Tail {
    header: usize,
    latch: usize,
    /// The loop's blocks.
    inside: Vec<usize>,
    /// Blocks that every lane of a trip has run, whether it leaves the loop then or goes round.
    sure: Vec<usize>,
    /// Blocks behind it, all of which lead to `meeting`.
    blocks: Vec<usize>,
    meeting: usize,
}

/// As [`release::meets`]; a call through a pointer may meet as well.
pub(super) fn meets(op: &Op) -> bool {
    release::meets(op) || *op == Op::CallIndirect
}

impl Tail {
    /// The next loop that has something to take in and is not `done`.
    fn next(function: &mut Function, done: &mut Vec<Value>) -> Option<Tail> {
        loop {
            let graph = successors(function);
            let dominators = Dominators::of_graph(&graph, 0);
            let loops = Loops::of_graph(&graph, &dominators)?;
            let waiting = spins::waiting(function, &graph, &dominators, &loops);
            let mut candidates =
                waiting.into_iter().filter_map(|index| Some((index, mark(function, &loops, index)?)));
            let (index, mark) = candidates.find(|(_, mark)| !done.contains(mark))?;
            done.push(mark);
            if let Some(tail) = Tail::of(function, &graph, &dominators, &loops, index) {
                return Some(tail);
            }
        }
    }

    fn of(
        function: &mut Function,
        graph: &[Vec<usize>],
        dominators: &Dominators,
        loops: &Loops,
        index: usize,
    ) -> Option<Tail> {
        let each = &loops.all[index];
        let latch = *each.blocks.iter().find(|&&from| graph[from].contains(&each.header))?;
        let leaves = |&to: &usize| !loops.contains(index, to);
        let mut work: Vec<usize> =
            each.blocks.iter().flat_map(|&from| &graph[from]).copied().filter(leaves).collect();
        let mut blocks: Vec<usize> = vec![];
        let mut stops: Vec<usize> = vec![];
        while let Some(at) = work.pop() {
            if blocks.contains(&at) || stops.contains(&at) {
                continue;
            }
            let first = function.blocks[at].insts.iter().position(|inst| meets(&inst.op));
            match (first, &function.blocks[at].term) {
                (Some(0), _) => stops.push(at),
                (Some(_), _) | (None, Term::Exit) => blocks.push(at),
                (None, Term::Return(_)) => return None,
                (None, _) => {
                    // Lanes that go round in a loop around this one meet those that wait in the next trip.
                    if graph[at]
                        .iter()
                        .any(|&to| loops.contains(index, to) || !is_within(loops, each.parent, to))
                    {
                        return None;
                    }
                    if is_back(loops, each.parent, &graph[at]) {
                        return None;
                    }
                    blocks.push(at);
                    work.extend(&graph[at]);
                }
            }
        }
        let before = |&at: &usize| function.blocks[at].insts.iter().take_while(|inst| !meets(&inst.op));
        let insts = || blocks.iter().flat_map(before);
        if insts().count() > MOST || !insts().any(|inst| spins::is_seen(&inst.op)) {
            return None;
        }
        // What ends in a meeting is cut before it; where threads end is a block of its own.
        let mut end = None;
        for &at in &blocks {
            if let Some(first) = function.blocks[at].insts.iter().position(|inst| meets(&inst.op)) {
                let rest = function.new_block();
                let block = &mut function.blocks[at];
                let insts = block.insts.split_off(first);
                let term = std::mem::replace(&mut block.term, Term::Jump(Edge { block: rest, args: vec![] }));
                function.blocks[rest.index()] = Block { params: vec![], insts, term };
                stops.push(rest.index());
            } else if matches!(function.blocks[at].term, Term::Exit) {
                let end = *end.get_or_insert_with(|| function.new_block());
                function.blocks[at].term = Term::Jump(Edge { block: end, args: vec![] });
            }
        }
        if let Some(end) = end {
            function.blocks[end.index()].term = Term::Exit;
            stops.push(end.index());
        }
        let [meeting] = stops[..] else { return None };
        let leaving = |&&from: &&usize| from == latch || graph[from].iter().any(leaves);
        let sure = |&at: &usize| {
            dominators.dominates(at, each.header)
                || each.blocks.iter().filter(leaving).all(|&from| dominators.dominates(at, from))
        };
        let sure = (0..graph.len()).filter(|&at| dominators.is_reachable(at)).filter(sure).collect();
        Some(Tail { header: each.header, latch, inside: each.blocks.clone(), sure, blocks, meeting })
    }

    fn take_in(&self, function: &mut Function) {
        let join = function.new_block();
        let latch = function.blocks[self.latch].term.edges();
        let again = latch.into_iter().find(|edge| edge.block.index() == self.header).cloned();
        let again = again.unwrap_or(Edge { block: block(self.header), args: vec![] });
        // What every lane of the trip knows, or can make out again, does not pass through the place where lanes with
        // nothing to carry come too: there it would be another for each lane.
        let definitions = definitions(function);
        let mut chain = vec![];
        let mut carried: Vec<Value> = again.args.clone();
        carried.retain(|&arg| !self.knows(function, &definitions, arg, &mut chain));
        let round = function.new_block();
        let copies = self.copies(function, join, &carried);

        // Where lanes that are done part from those that go round.
        let params = function.blocks[self.meeting].params.clone();
        let mut like = |values: &[Value]| -> Vec<Value> {
            let types: Vec<Ty> = values.iter().map(|&value| function.ty(value)).collect();
            types.into_iter().map(|ty| function.new_value(ty)).collect()
        };
        let met = like(&params);
        let received = like(&carried);
        let done = function.new_value(Ty::Pred);
        function.blocks[join.index()] = Block {
            params: [&[done], &met[..], &received[..]].concat(),
            insts: vec![],
            term: Term::Branch {
                cond: done,
                then: Edge { block: block(self.meeting), args: met.clone() },
                otherwise: Edge { block: round, args: vec![] },
            },
        };
        let mut names: HashMap<Value, Value> = carried.iter().copied().zip(received).collect();
        for (at, nth) in chain {
            let mut inst = function.blocks[at].insts[nth].clone();
            let name = |value: &mut Value| *value = names.get(value).copied().unwrap_or(*value);
            inst.args.iter_mut().for_each(name);
            let new = function.new_value(function.ty(inst.results[0]));
            names.insert(inst.results[0], new);
            inst.results[0] = new;
            function.blocks[round.index()].insts.push(inst);
        }
        let args = again.args.iter().map(|arg| names.get(arg).copied().unwrap_or(*arg)).collect();
        function.blocks[round.index()].term = Term::Jump(Edge { block: again.block, args });
        let no = constant(function, self.latch, Ty::Pred);
        let nothing: Vec<Value> =
            met.iter().map(|&value| constant(function, self.latch, function.ty(value))).collect();
        for edge in function.blocks[self.latch].term.edges_mut() {
            if edge.block == again.block {
                *edge = Edge { block: join, args: [&[no], &nothing[..], &carried[..]].concat() };
                break;
            }
        }
        self.carry(function, &copies);
    }

    /// Whether all lanes of a trip have the value, or the few instructions of `chain` make it again from such values.
    fn knows(
        &self,
        function: &Function,
        definitions: &[Definition],
        value: Value,
        chain: &mut Vec<(usize, usize)>,
    ) -> bool {
        let Some(home) = definitions[value.index()].block() else { return false };
        if self.sure.contains(&home) {
            return true;
        }
        let Definition::Inst(at, nth, 0) = definitions[value.index()] else { return false };
        if chain.contains(&(at, nth)) {
            return true;
        }
        let inst = &function.blocks[at].insts[nth];
        let length = chain.len();
        let known = inst.op.is_pure()
            && inst.results.len() == 1
            && length < MOST_AGAIN
            && inst.args.iter().all(|&arg| self.knows(function, definitions, arg, chain));
        if known {
            chain.push((at, nth));
        } else {
            chain.truncate(length);
        }
        known
    }

    /// Copies the tail into the loop, from whose exits lanes come to the copy and from there to `join`, where `carried`
    /// more values are wanted. Blocks and values of the tail by their copies'.
    fn copies(&self, function: &mut Function, join: BlockId, carried: &[Value]) -> Copies {
        let mut copies = Copies::default();
        for &at in &self.blocks {
            copies.blocks.insert(at, function.new_block());
            let block = &function.blocks[at];
            let defined = block.params.iter().chain(block.insts.iter().flat_map(|inst| &inst.results));
            for value in defined.copied().collect::<Vec<_>>() {
                let copy = function.new_value(function.ty(value));
                copies.values.insert(value, (copy, copies.blocks[&at].index()));
            }
        }
        // A way on from the loop or its tail leads to copies, or as one that is done to where lanes wait.
        for &at in &self.blocks {
            let mut copy = function.blocks[at].clone();
            let rename = |value: &mut Value| {
                if let Some((new, _)) = copies.values.get(value) {
                    *value = *new;
                }
            };
            copy.params.iter_mut().for_each(rename);
            for inst in &mut copy.insts {
                inst.args.iter_mut().chain(&mut inst.results).for_each(rename);
            }
            term_values_mut(&mut copy.term, rename);
            function.blocks[copies.blocks[&at].index()] = copy;
        }
        let from: Vec<usize> =
            self.inside.iter().copied().chain(copies.blocks.values().map(|id| id.index())).collect();
        for at in from {
            for nth in 0..function.blocks[at].term.edges().len() {
                let edge = function.blocks[at].term.edges()[nth].clone();
                let target = edge.block.index();
                let to = if let Some(&copy) = copies.blocks.get(&target) {
                    Edge { block: copy, ..edge }
                } else if target == self.meeting {
                    // A block of its own, so that nothing is done there that other sides of a branch do not do.
                    let arrival = function.new_block();
                    let yes = function.new_value(Ty::Pred);
                    let inst =
                        Inst { op: Op::Const(1), args: vec![], results: vec![yes], pos: Pos::default() };
                    function.blocks[arrival.index()].insts.push(inst);
                    let round =
                        carried.iter().map(|&value| constant(function, arrival.index(), function.ty(value)));
                    let round: Vec<Value> = round.collect();
                    let args = std::iter::once(yes).chain(edge.args).chain(round).collect();
                    function.blocks[arrival.index()].term = Term::Jump(Edge { block: join, args });
                    Edge { block: arrival, args: vec![] }
                } else {
                    continue;
                };
                *function.blocks[at].term.edges_mut()[nth] = to;
            }
        }
        copies
    }

    /// What the loop and its tail define is used behind the meeting; lanes that go round have nothing of it yet.
    fn carry(&self, function: &mut Function, copies: &Copies) {
        let graph = Graph::of(function);
        let reachable = |at: usize| graph.dominators.is_reachable(at);
        // Where nobody comes to the tail but from the loop, the copy is all there is.
        let only: HashMap<Value, Value> = {
            let definitions = definitions(function);
            let gone = |value: &Value| definitions[value.index()].block().is_some_and(|at| !reachable(at));
            copies
                .values
                .iter()
                .filter(|(value, _)| gone(value))
                .map(|(&value, &(copy, _))| (value, copy))
                .collect()
        };
        for block in &mut function.blocks {
            let rename = |value: &mut Value| {
                if let Some(new) = only.get(value) {
                    *value = *new;
                }
            };
            block.insts.iter_mut().flat_map(|inst| &mut inst.args).for_each(rename);
            term_values_mut(&mut block.term, rename);
        }
        let mut own = BitSet::new(function.blocks.len());
        self.inside.iter().copied().chain(copies.blocks.values().map(|id| id.index())).for_each(|at| {
            own.insert(at);
        });
        let mut wanted = BitSet::new(function.values.len());
        for (at, block) in function.blocks.iter().enumerate() {
            if !own.contains(at) && reachable(at) {
                for_each_use(block, |value| {
                    wanted.insert(value.index());
                });
            }
        }
        let definitions = definitions(function);
        let mut renamed = vec![];
        for index in wanted.iter() {
            let value = Value(index as u32);
            let Some(home) = definitions[index].block() else { continue };
            let copy = copies.values.get(&value).filter(|_| reachable(home));
            let late = own.contains(home) && !graph.dominators.dominates(home, self.latch);
            if copy.is_none() && !late {
                continue;
            }
            let nothing = constant(function, self.latch, function.ty(value));
            let mut others = vec![(self.latch, nothing)];
            others.extend(copy.map(|&(name, at)| (at, name)));
            renamed.push((value, others));
        }
        let mut places = Places::of(function);
        for (value, others) in renamed {
            rebuild(function, &graph, &mut places, value, &others, &[]);
        }
    }
}

#[derive(Default)]
struct Copies {
    blocks: HashMap<usize, BlockId>,
    /// Each value's copy and the block that has it.
    values: HashMap<Value, (Value, usize)>,
}

/// Something by which a loop is known while blocks are renumbered: the first value that its header defines.
pub(super) fn mark(function: &Function, loops: &Loops, index: usize) -> Option<Value> {
    let header = &function.blocks[loops.all[index].header];
    header.params.iter().chain(header.insts.iter().flat_map(|inst| &inst.results)).next().copied()
}

fn is_within(loops: &Loops, parent: Option<usize>, at: usize) -> bool {
    parent.is_none_or(|parent| loops.contains(parent, at))
}

/// Whether one of `to` begins the loop around.
fn is_back(loops: &Loops, parent: Option<usize>, to: &[usize]) -> bool {
    parent.is_some_and(|parent| to.contains(&loops.all[parent].header))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pass::testing::{function, regions_of_warps};

    /// Whether warps may run it in step, with what waits for others changed.
    fn verdict(source: &str) -> Result<usize, String> {
        regions_of_warps(source, run)
    }

    const START: &str = "a = const.b64 0; b = const.b64 64; z = const.b32 0; o = const.b32 1; t = tid;";

    #[test]
    fn lanes_tell_others_what_they_found_before_the_slowest_has_looked_back() {
        // `i` counts down, `s` is a sum that is used behind the meeting too; some lanes never come into the loop.
        let source = format!(
            "entry: {START} c = ctaid; p = lt c o; branch p tell(z) head(c,z)\n head(i:b32, s:b32): jump wait\n wait: v = vload a; q = eq v z; branch q wait seen\n seen: n = add s v; r = lt v z; branch r tell(n) more\n more: j = sub i o; g = lt z j; branch g head(j,n) tell(n)\n tell(f:b32): vstore b f; w = add f o; x = lt t w; branch x one two\n one: store b w; jump two\n two: barrier z; store a w; exit"
        );
        assert_eq!(verdict(&source), Ok(2));
    }

    #[test]
    fn the_owner_of_a_lock_does_its_work_in_the_loop() {
        let source = format!(
            "entry: {START} jump head\n head: v = cas a z o; p = lt z v; branch p head work\n work: w = load b; x = add w o; store b x; vstore a z; exit"
        );
        assert_eq!(verdict(&source), Ok(1));
    }

    #[test]
    fn who_has_to_be_told_by_a_lane_beside_the_loop_is_not_helped() {
        let source = format!(
            "entry: {START} q = lt t o; branch q tell head\n tell: vstore a o; jump meet\n head: v = vload a; p = lt z v; branch p leave head\n leave: jump meet\n meet: barrier z; exit"
        );
        let hangs = "entry: a = const.b64 0; z = const.b32 0; o = const.b32 1; t = tid; q = lt t o; branch q head tell\n tell: vstore a o; jump meet\n head: v = vload a; p = lt z v; branch p leave head\n leave: jump meet\n meet: barrier z; exit";
        // Which side runs first is the layout's affair: one of both hangs, or is refused.
        assert!([source.as_str(), hangs].iter().any(|source| verdict(source).is_err()));
    }

    #[test]
    fn lanes_that_meet_in_a_barrier_before_they_tell_keep_their_loop() {
        let source = format!(
            "entry: {START} jump head\n head: v = cas a z o; p = lt z v; branch p head work\n work: barrier z; store a z; exit"
        );
        assert!(run(&function(&source)).is_none());
    }
}
