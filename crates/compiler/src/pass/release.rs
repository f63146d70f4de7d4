//! Loops that wait take in what is done until others may go on.
//!
//! ```text
//! while (lock is taken) {}                 do {
//! work;                                      if (lock is taken) continue;
//! let the lock go;                   →       work; let the lock go; done = true;
//! rest;                                    } while (!done);
//!                                          rest;
//! ```
//!
//! For a thread both are the same. Where lanes run in step, those that leave a loop wait behind it for all others of
//! their wave: on the left the owner of a lock for those that want it.

use super::bits::BitSet;
use super::cfg;
use super::dominators::{Dominators, block, post_dominators, successors};
use super::loops::Loops;
use super::spins;
use super::ssa::{Graph, Places, rebuild};
use super::visit::{Definition, definitions};
use crate::ir::*;

/// How many operations an address may be away from what both sides have in common.
const MAX_DEPTH: u32 = 8;

/// Changes every loop that waits and has one way out, if something behind it lets others go on before lanes have to meet.
pub fn run(function: &mut Function) {
    let mut body = function.clone();
    cfg::lower_switches(&mut body);
    cfg::clean(&mut body);
    if cfg::canonical_loops(&mut body).is_none() {
        return;
    }
    let mut done = vec![];
    while let Some(step) = find(&body, &mut done) {
        step.apply(&mut body);
        *function = body.clone();
    }
}

/// What is to be changed of one loop.
struct Step {
    header: usize,
    latch: usize,
    /// The loop's blocks, and those between it and the release.
    inside: BitSet,
    /// Block and instruction that lets others go on.
    release: (usize, usize),
}

/// The next loop whose header is not `done`.
fn find(function: &Function, done: &mut Vec<usize>) -> Option<Step> {
    let graph = successors(function);
    let dominators = Dominators::of_graph(&graph, 0);
    let loops = Loops::of_graph(&graph, &dominators)?;
    let meeting = post_dominators(&graph);
    for index in spins::waiting(function, &graph, &dominators, &loops) {
        let each = &loops.all[index];
        if done.contains(&each.header) {
            continue;
        }
        done.push(each.header);
        let search = Search {
            function,
            graph: &graph,
            dominators: &dominators,
            loops: &loops,
            meeting: &meeting,
            index,
        };
        let step = search.step();
        if step.is_some() {
            return step;
        }
    }
    None
}

struct Search<'a> {
    function: &'a Function,
    graph: &'a [Vec<usize>],
    dominators: &'a Dominators,
    loops: &'a Loops,
    meeting: &'a Dominators,
    index: usize,
}

impl Search<'_> {
    fn step(&self) -> Option<Step> {
        let each = &self.loops.all[self.index];
        let edges = each.blocks.iter().flat_map(|&from| self.graph[from].iter().map(move |&to| (from, to)));
        let mut exits = edges.clone().filter(|&(_, to)| !self.loops.contains(self.index, to));
        let (Some((_, exit)), None) = (exits.next(), exits.next()) else { return None };
        let latch = edges.clone().find(|&(_, to)| to == each.header)?.0;
        let mut inside = BitSet::new(self.graph.len());
        let (release, between) = self.release(exit)?;
        for &block in each.blocks.iter().chain(&between) {
            inside.insert(block);
        }
        Some(Step { header: each.header, latch, inside, release })
    }

    /// What lets others go on, at the place that the loop looks at or else the last that could, and the blocks up to it.
    fn release(&self, exit: usize) -> Option<((usize, usize), Vec<usize>)> {
        let places = self.places();
        let definitions = definitions(self.function);
        let mut best = None;
        let (mut at, mut before) = (exit, vec![exit]);
        loop {
            for (nth, inst) in self.function.blocks[at].insts.iter().enumerate() {
                if meets(&inst.op) {
                    return best;
                }
                let Some(place) = written(inst) else { continue };
                let is_looked_at = places
                    .iter()
                    .any(|other| other.1 == place.1 && self.same(&definitions, other.0, place.0, MAX_DEPTH));
                if is_looked_at {
                    return Some(((at, nth), before));
                }
                if is_ordered(&inst.op) {
                    best = Some(((at, nth), before.clone()));
                }
            }
            // On to where all ways from here lead, in the same trip of the loops around.
            let Some(next) = self.meeting.immediate(at).filter(|&next| next < self.graph.len()) else {
                return best;
            };
            if !self.dominators.dominates(exit, next) || self.loops.of[next] != self.loops.of[exit] {
                return best;
            }
            let mut work = self.graph[at].clone();
            while let Some(block) = work.pop() {
                if block == next || before.contains(&block) {
                    continue;
                }
                let stops = self.function.blocks[block].insts.iter().any(|inst| meets(&inst.op));
                if stops || !self.dominators.dominates(exit, block) {
                    return best;
                }
                before.push(block);
                work.extend(&self.graph[block]);
            }
            before.push(next);
            at = next;
        }
    }

    /// Where the loop sees what others write.
    fn places(&self) -> Vec<(Value, i64)> {
        let blocks = self.loops.all[self.index].blocks.iter();
        let insts = blocks.flat_map(|&block| &self.function.blocks[block].insts);
        let places = insts.filter_map(|inst| match inst.op {
            Op::Load { offset, order, .. } if order != Order::Weak => Some((inst.args[0], offset)),
            Op::Atomic { offset, .. } => Some((inst.args[0], offset)),
            _ => None,
        });
        places.collect()
    }

    /// Whether both are computed alike from the same values.
    fn same(&self, definitions: &[Definition], a: Value, b: Value, depth: u32) -> bool {
        let inst = |value: Value| match definitions[value.index()] {
            Definition::Inst(block, at, 0) => Some(&self.function.blocks[block].insts[at]),
            _ => None,
        };
        if a == b {
            return true;
        }
        let (Some(x), Some(y), Some(depth)) = (inst(a), inst(b), depth.checked_sub(1)) else { return false };
        x.op == y.op
            && x.op.is_pure()
            && x.args.len() == y.args.len()
            && x.args.iter().zip(&y.args).all(|(&a, &b)| self.same(definitions, a, b, depth))
    }
}

/// Lanes have to come here together, or it is not known what happens.
pub(super) fn meets(op: &Op) -> bool {
    op.is_barrier() || matches!(op, Op::Call(_)) || op.is_warp_collective() && *op != Op::ActiveMask
}

fn written(inst: &Inst) -> Option<(Value, i64)> {
    match inst.op {
        Op::Store { offset, .. } | Op::Atomic { offset, .. } => Some((inst.args[0], offset)),
        _ => None,
    }
}

fn is_ordered(op: &Op) -> bool {
    matches!(op, Op::Atomic { .. }) || matches!(op, Op::Store { order, .. } if *order != Order::Weak)
}

impl Step {
    fn apply(self, function: &mut Function) {
        let (home, nth) = self.release;
        // What comes behind the release.
        let rest = function.new_block();
        let insts = function.blocks[home].insts.split_off(nth + 1);
        let term = std::mem::replace(&mut function.blocks[home].term, Term::Exit);
        function.blocks[rest.index()] = Block { params: vec![], insts, term };

        // Where lanes that are done part from those that go round.
        let join = function.new_block();
        let done = function.new_value(Ty::Pred);
        let again = function.blocks[self.latch]
            .term
            .edges()
            .into_iter()
            .find(|edge| edge.block == block(self.header));
        let again = again.cloned().unwrap_or(Edge { block: block(self.header), args: vec![] });
        let carried: Vec<Value> =
            again.args.iter().map(|arg| function.new_value(function.ty(*arg))).collect();
        function.blocks[join.index()] = Block {
            params: std::iter::once(done).chain(carried.iter().copied()).collect(),
            insts: vec![],
            term: Term::Branch {
                cond: done,
                then: Edge { block: rest, args: vec![] },
                otherwise: Edge { block: again.block, args: carried.clone() },
            },
        };

        let no = constant(function, self.latch, Ty::Pred);
        let args = std::iter::once(no).chain(again.args.iter().copied()).collect();
        for edge in function.blocks[self.latch].term.edges_mut() {
            if edge.block == again.block {
                *edge = Edge { block: join, args };
                break;
            }
        }
        // No compiler can know that it holds, and send the lane on at once.
        let [mask, yes] = [Ty::B32, Ty::Pred].map(|ty| function.new_value(ty));
        let zero = constant(function, home, Ty::B32);
        let inst = |op, args, result| Inst { op, args, results: vec![result], pos: Pos::default() };
        let active = inst(Op::ActiveMask, vec![], mask);
        let is_there = inst(Op::Icmp(Cmp::Ne, U32), vec![mask, zero], yes);
        function.blocks[home].insts.extend([active, is_there]);
        let nothing = carried.iter().map(|&value| (value, function.ty(value))).collect::<Vec<_>>();
        let nothing = nothing.into_iter().map(|(_, ty)| constant(function, home, ty));
        let args = std::iter::once(yes).chain(nothing.collect::<Vec<_>>()).collect();
        function.blocks[home].term = Term::Jump(Edge { block: join, args });

        self.carry(function, &definitions(function), rest);
    }

    /// What the loop and the part behind it define and the rest uses; lanes that go round have something else.
    fn carry(&self, function: &mut Function, definitions: &[Definition], rest: BlockId) {
        let graph = Graph::of(function);
        let defined: Vec<Value> = (0..definitions.len())
            .filter(|&value| {
                definitions[value].block().is_some_and(|block| {
                    block < rest.index()
                        && self.inside.contains(block)
                        && !graph.dominators.dominates(block, self.latch)
                })
            })
            .map(|value| Value(value as u32))
            .collect();
        let nothing: Vec<Value> = defined
            .iter()
            .map(|&value| {
                let ty = function.ty(value);
                constant(function, self.latch, ty)
            })
            .collect();
        let mut places = Places::of(function);
        for (value, other) in defined.into_iter().zip(nothing) {
            rebuild(function, &graph, &mut places, value, &[(self.latch, other)], &[]);
        }
    }
}

/// 0 of that type at the block's end.
pub(super) fn constant(function: &mut Function, at: usize, ty: Ty) -> Value {
    let value = function.new_value(ty);
    let pos = Pos::default();
    function.blocks[at].insts.push(Inst { op: Op::Const(0), args: vec![], results: vec![value], pos });
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lower::verify::verify;
    use crate::pass::testing::{function, text};
    use crate::pass::waves::Waits;

    /// Whether lanes may still wait for each other afterwards.
    fn released(source: &str) -> (bool, String) {
        let mut f = function(source);
        assert!(Waits::of(&f, None).lanes);
        run(&mut f);
        verify(&f).unwrap_or_else(|error| panic!("{error}\n{}", text(&f)));
        (!Waits::of(&f, None).lanes, text(&f))
    }

    const LOCK: &str = "a = const.b64 0; z = const.b32 0; o = const.b32 1;";

    #[test]
    fn the_owner_of_a_lock_opens_it_inside_the_loop() {
        let source = format!(
            "entry: {LOCK} jump head\n head: v = cas a z o; p = lt z v; branch p head work\n work: w = load a; store a z; exit"
        );
        let (is_released, text) = released(&source);
        assert!(is_released, "{text}");
    }

    #[test]
    fn what_the_owner_saw_is_known_behind_the_loop() {
        // `i` goes round, `w` comes from the part that the loop takes in.
        let source = format!(
            "entry: {LOCK} jump head(z)\n head(i:b32): j = add i o; v = cas a z o; p = lt z v; branch p head(j) work\n work: w = load a; store a z; x = add w j; q = lt x z; branch q one two\n one: y = add w i; jump two\n two: exit"
        );
        let (is_released, text) = released(&source);
        assert!(is_released, "{text}");
    }

    #[test]
    fn lanes_that_meet_before_the_lock_opens_keep_their_loop() {
        let source = format!(
            "entry: {LOCK} jump head\n head: v = cas a z o; p = lt z v; branch p head work\n work: barrier z; store a z; exit"
        );
        let mut f = function(&source);
        run(&mut f);
        assert_eq!(text(&f), text(&function(&source)));
    }
}
