//! Whether the lanes that a member mask names have all come to the collective that it is given to.
//!
//! A collective waits for its members, so lanes in lockstep may only run it where no member is elsewhere. A mask may name
//! fewer lanes than are there: each lane names itself, says PTX, so lanes with another mask are a meeting of their own.

use super::bits::BitSet;
use super::classify::View;
use super::divergence::{Spread, mirrored};
use super::value_ranges::signed;
use super::visit::{Definition, definitions};
use crate::ir::*;

/// A mask follows from those that gave it in few steps.
const MAX_DEPTH: u32 = 24;

pub struct Members<'a> {
    view: &'a View<'a>,
    definitions: Vec<Definition>,
    /// Divergent branches, with the blocks that their lanes run apart.
    spreads: Vec<(usize, BitSet)>,
}

impl<'a> Members<'a> {
    /// Lanes count where they may still come to a block of `leads`: those that never meet again cannot be missed.
    pub fn of(view: &'a View<'a>, leads: &[bool]) -> Members<'a> {
        let parts = (0..view.graph.len())
            .filter(|&at| view.group.divergent[at] && view.dominators.is_reachable(at))
            .map(|at| (at, Spread::of(view.graph, view.loops, view.layout, at, |block| leads[block]).apart));
        Members { view, definitions: definitions(view.function), spreads: parts.collect() }
    }

    /// Whether every lane that `mask` names runs block `at` in the same trip of the loops around it, or has ended.
    pub fn are_at(&self, at: usize, mask: Value) -> bool {
        self.named(at, mask, &mut vec![], MAX_DEPTH)
    }

    /// Branches that keep lanes from block `at` while others run it.
    fn parting(&self, at: usize) -> Vec<usize> {
        self.spreads.iter().filter(|(_, apart)| apart.contains(at)).map(|(by, _)| *by).collect()
    }

    /// `assumed`: parameters of loops that are looked at, which hold by induction over the trips.
    fn named(&self, at: usize, mask: Value, assumed: &mut Vec<Value>, depth: u32) -> bool {
        let parting = self.parting(at);
        if parting.is_empty() || self.view.known.names_who_runs(at, &parting, mask) {
            return true;
        }
        let Some(depth) = depth.checked_sub(1) else { return false };
        match self.definitions[mask.index()] {
            Definition::Inst(home, index, 0) => self.made(at, home, index, assumed, depth),
            Definition::Param(header, nth) => self.carried(at, mask, header, nth, assumed, depth),
            _ => false,
        }
    }

    /// The mask is an instruction's result.
    fn made(&self, at: usize, home: usize, index: usize, assumed: &mut Vec<Value>, depth: u32) -> bool {
        let inst = &self.view.function.blocks[home].insts[index];
        match &inst.op {
            // These name lanes that run them, a ballot those for which its predicate holds.
            Op::ActiveMask | Op::Match { .. } => self.same(home, at, None),
            Op::Vote(VoteMode::Ballot) => {
                self.same(home, at, None) || self.is_side_of(home, at, inst.args[0])
            }
            // What one of the lanes here names.
            Op::Shfl(_) => self.same(home, at, None) && self.named(home, inst.args[0], assumed, depth),
            Op::Int(IntBin::And, _) => inst.args.iter().any(|&arg| self.named(at, arg, assumed, depth)),
            Op::Int(IntBin::Or | IntBin::Xor, _) => {
                inst.args.iter().all(|&arg| self.named(at, arg, assumed, depth))
            }
            Op::Select => inst.args[1..].iter().all(|&arg| self.named(at, arg, assumed, depth)),
            // No bit where none of the masks has one that is known to name lanes that are here.
            Op::Lop3(table) => {
                let here = inst.args.iter().map(|&arg| self.named(at, arg, assumed, depth));
                let unknown =
                    here.zip([4, 2, 1]).filter(|(is_here, _)| !is_here).fold(0, |all, (_, bit)| all | bit);
                (0..8u8).filter(|row| row & !unknown == 0).all(|row| table >> row & 1 == 0)
            }
            _ => false,
        }
    }

    /// The mask comes with each trip of a loop.
    fn carried(
        &self,
        at: usize,
        mask: Value,
        header: usize,
        nth: usize,
        assumed: &mut Vec<Value>,
        depth: u32,
    ) -> bool {
        if !self.view.loops.is_header(header) || !self.same(header, at, None) {
            return false;
        }
        if assumed.contains(&mask) {
            return true;
        }
        assumed.push(mask);
        let holds =
            (0..self.view.graph.len()).filter(|&from| self.view.dominators.is_reachable(from)).all(|from| {
                let edges = self.view.function.blocks[from].term.edges();
                edges.iter().filter(|edge| edge.block.index() == header).all(|edge| {
                    if self.view.group.divergent[from] {
                        return self.is_ballot_of(from, edge, edge.args[nth]);
                    }
                    // All who are at the edge's start take it, so it is enough to look there.
                    self.named(from, edge.args[nth], assumed, depth)
                })
            });
        assumed.pop();
        holds
    }

    /// Whether the lanes that run `a` all run `b` later in the same trip, but for what the branch `except` parts.
    fn same(&self, a: usize, b: usize, except: Option<usize>) -> bool {
        let position = &self.view.layout.position;
        self.view.dominators.dominates(a, b)
            && self.spreads.iter().all(|(branch, apart)| {
                Some(*branch) == except
                    || !apart.contains(b)
                    || !self.view.dominators.dominates(a, *branch)
                    || (position[*branch] >= position[b] && !self.comes_between(a, *branch, b))
            })
    }

    /// Whether a loop that is entered behind `a` leads from `branch` to `b` with a later trip.
    fn comes_between(&self, a: usize, branch: usize, b: usize) -> bool {
        let loops = self.view.loops;
        let around = std::iter::successors(loops.of[b], |&index| loops.all[index].parent);
        around.take_while(|&index| !loops.contains(index, a)).any(|index| loops.contains(index, branch))
    }

    /// Whether block `at` is on the side of a branch, taken by the lanes that ran `home`, where `predicate` holds.
    fn is_side_of(&self, home: usize, at: usize, predicate: Value) -> bool {
        let function = self.view.function;
        (0..self.view.graph.len()).any(|branch| {
            let Term::Branch { cond, then, otherwise } = &function.blocks[branch].term else { return false };
            let leads = |edge: &Edge, holds: bool| {
                let side = edge.block.index();
                self.implies(*cond, holds, predicate, true)
                    && function.predecessors()[side].len() == 1
                    && self.view.dominators.dominates(side, at)
            };
            (leads(then, true) || leads(otherwise, false))
                && self.same(home, branch, None)
                && self.same(home, at, Some(branch))
        })
    }

    /// Whether `predicate` is as `wanted` says for each lane for which `cond` is as `holds` says.
    fn implies(&self, cond: Value, holds: bool, predicate: Value, wanted: bool) -> bool {
        let (cond, holds) = self.plain(cond, holds);
        let (predicate, wanted) = self.plain(predicate, wanted);
        if cond == predicate {
            return holds == wanted;
        }
        let Some(inst) = self.inst(cond) else { return false };
        match inst.op {
            Op::Bool(Bool::And) if holds => {
                inst.args.iter().any(|&arg| self.implies(arg, true, predicate, wanted))
            }
            Op::Bool(Bool::Or) if !holds => {
                inst.args.iter().any(|&arg| self.implies(arg, false, predicate, wanted))
            }
            Op::Icmp(..) => match (self.compares(cond), self.compares(predicate)) {
                (Some((a, holds_if)), Some((b, wanted_if))) => {
                    a == b && (holds == holds_if) == (wanted == wanted_if)
                }
                _ => false,
            },
            _ => false,
        }
    }

    /// Whether `mask` is a ballot of the lanes at the branch of block `from` that names those that take this edge.
    fn is_ballot_of(&self, from: usize, edge: &Edge, mask: Value) -> bool {
        let Term::Branch { cond, then, otherwise } = &self.view.function.blocks[from].term else {
            return false;
        };
        let Definition::Inst(home, index, 0) = self.definitions[mask.index()] else { return false };
        let inst = &self.view.function.blocks[home].insts[index];
        inst.op == Op::Vote(VoteMode::Ballot)
            && then.block != otherwise.block
            && self.same(home, from, None)
            && self.implies(*cond, edge.block == then.block, inst.args[0], true)
    }

    fn inst(&self, value: Value) -> Option<&Inst> {
        match self.definitions[value.index()] {
            Definition::Inst(block, at, 0) => Some(&self.view.function.blocks[block].insts[at]),
            _ => None,
        }
    }

    /// Looks through negations.
    fn plain(&self, mut value: Value, mut holds: bool) -> (Value, bool) {
        while let Some(inst) = self.inst(value).filter(|inst| inst.op == Op::Not) {
            (value, holds) = (inst.args[0], !holds);
        }
        (value, holds)
    }

    /// A comparison as one of few forms, and what the comparison says where the form holds.
    fn compares(&self, value: Value) -> Option<(Form, bool)> {
        let inst = self.inst(value)?;
        let Op::Icmp(mut cmp, int) = inst.op else { return None };
        let (mut a, mut b) = (inst.args[0], inst.args[1]);
        let number = |value: Value| self.view.ranges.constant(value).map(|bits| read(bits, int));
        if number(a).is_some() && number(b).is_none() {
            (a, b, cmp) = (b, a, mirrored(cmp));
        }
        let side = number(b).map_or(Side::Value(b), Side::Number);
        Some(match (cmp, side) {
            (Cmp::Eq, side) => (Form::Equal(a, side), true),
            (Cmp::Ne, side) => (Form::Equal(a, side), false),
            (Cmp::Lt, side) => (Form::Less(a, side, int), true),
            (Cmp::Ge, side) => (Form::Less(a, side, int), false),
            // Beyond the type's largest number nothing is compared with it as less.
            (Cmp::Le, Side::Number(n)) => (Form::Less(a, Side::Number(n + 1), int), true),
            (Cmp::Gt, Side::Number(n)) => (Form::Less(a, Side::Number(n + 1), int), false),
            (Cmp::Le, Side::Value(b)) => (Form::Less(b, Side::Value(a), int), false),
            (Cmp::Gt, Side::Value(b)) => (Form::Less(b, Side::Value(a), int), true),
        })
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Side {
    Value(Value),
    Number(i128),
}

#[derive(Clone, Copy, PartialEq)]
enum Form {
    Equal(Value, Side),
    Less(Value, Side, Int),
}

/// A constant as a number of the comparison's type.
fn read(bits: u128, int: Int) -> i128 {
    if int.signed {
        signed(bits, int.bits.into())
    } else {
        (bits & (u128::MAX >> (128 - u32::from(int.bits)))) as i128
    }
}

#[cfg(test)]
mod tests {
    use crate::pass::divergence::Among;
    use crate::pass::regions::plan;
    use crate::pass::testing::function;
    use crate::pass::value_ranges::Threads;

    fn verdict(source: &str) -> Result<usize, String> {
        let threads = Threads { block: [256, 1, 1], open: false, width: 32, assumes: true };
        plan(&function(source), threads, 0, Among::Group).map(|plan| plan.regions.len())
    }

    /// Lanes leave a loop in which those that stay vote, by a mask that begins with all and goes on as `next` says.
    fn looking_back(next: &str, leave: &str) -> String {
        format!(
            "entry: a = const.b64 0; z = const.b32 0; w = const.b32 4294967295; jump head(w)\n head(m:b32): v = load a; t = tid; l = const.b32 9; p = lt v t; n = ballot p m; {leave} branch q done again\n again: jump head({next})\n done: y = ballot p w; exit"
        )
    }

    #[test]
    fn a_ballot_of_those_who_stay_names_the_next_trips_lanes() {
        // Those for whom `v < t` stay, said in both ways.
        assert_eq!(verdict(&looking_back("n", "q = ge v t;")), Ok(1));
        assert_eq!(verdict(&looking_back("n", "q = le t v;")), Ok(1));
    }

    #[test]
    fn a_ballot_of_others_does_not_name_them() {
        for (next, leave) in [("w", "q = ge v t;"), ("n", "q = lt v t;"), ("n", "q = ge t l;")] {
            let verdict = verdict(&looking_back(next, leave));
            assert!(verdict.is_err(), "{next} {leave}: {verdict:?}");
        }
    }

    #[test]
    fn the_edge_back_may_be_the_branch_itself() {
        let loops = |cond: &str| {
            format!(
                "entry: a = const.b64 0; z = const.b32 1; w = const.b32 4294967295; jump head(w)\n head(m:b32): v = load a; t = tid; k = load a; p = lt v t; n = ballot p m; {cond} branch q head(n) done\n done: y = ballot p w; exit"
            )
        };
        assert_eq!(verdict(&loops("q = lt v t;")), Ok(1));
        assert_eq!(verdict(&loops("e = lt z k; q = both p e;")), Ok(1));
        for cond in ["q = ge v t;", "q = lt k t;"] {
            assert!(verdict(&loops(cond)).is_err(), "{cond}");
        }
    }

    #[test]
    fn a_part_of_who_is_here_is_here() {
        let part = |mask: &str| {
            format!(
                "entry: t = tid; n = const.b32 40; c = const.b32 3; w = const.b32 4294967295; p = lt t n; branch p a b\n a: m = activemask; {mask} x = ballot p k; jump b\n b: y = ballot p w; exit"
            )
        };
        assert_eq!(verdict(&part("k = and m c;")), Ok(1));
        assert_eq!(verdict(&part("s = lt t c; k = ballot s m;")), Ok(1));
        assert!(verdict(&part("k = add m c;")).is_err());
    }

    #[test]
    fn lanes_that_left_an_inner_loop_are_missed() {
        let parted = "entry: z = const.b32 0; o = const.b32 1; w = const.b32 4294967295; t = tid; n = const.b32 40; e = lt t n; branch e in done\n in: m = activemask; jump head(z)\n head(i:b32): j = add i o; p = lt j t; x = ballot p m; branch p head(j) out\n out: jump done\n done: y = ballot e w; exit";
        assert!(verdict(parted).unwrap_err().contains("collective"));
    }
}
