//! Branches that lanes disagree on, and that are not worth their parting, are gone: sides of few pure operations are run by all lanes, which
//! then select; two branches one behind the other that pass by the same block become one. What is left of `if (a != b) if (a >= 0) count(a)`
//! is one side, which a part of the lanes runs under a mask while all stay together.
//!
//! Loads are as good as pure where the thread reads memory on both sides of theirs in any case, less than a page apart: what lies
//! between is there too. So fields of one structure are read of which a condition chooses some.

use super::divergence::{Divergence, Divergences, SHORT};
use super::intervals::Intervals;
use super::loops::Loops;
use super::value_ranges::ValueRanges;
use super::visit::term_values_mut;
use crate::ir::*;
use std::collections::HashMap;

/// Operations that cost less than finding out which lanes want them.
const FEW: usize = 8;

/// Operations besides constants of a side that loads: a part of the lanes, which has to find out where each of its lanes loads, takes longer.
const SOME: usize = 24;

/// Bytes: the smallest page.
const PAGE: i64 = 4096;

/// Whether anything has changed; the graph is to be cleaned then, and what is known of it to be found anew.
pub fn run(function: &mut Function, loops: &Loops, group: &Divergences, ranges: &ValueRanges) -> bool {
    if !group.divergent.contains(&true) {
        return false;
    }
    let mut pass = Pass {
        predecessors: function.predecessors().iter().map(Vec::len).collect(),
        addresses: Addresses::of(function, ranges),
        bounds: bounds(function, group),
        renamed: vec![None; function.values.len()],
        loops,
        group,
    };
    let mut changed = false;
    // Inner branches first: they may leave a side without branches.
    for id in function.reverse_post_order().into_iter().rev() {
        while pass.select(function, id.index()) || pass.fold(function, id.index()) {
            changed = true;
        }
    }
    if changed {
        let resolve = |value: &mut Value| *value = pass.resolved(*value);
        for block in &mut function.blocks {
            block.insts.iter_mut().for_each(|inst| inst.args.iter_mut().for_each(resolve));
            term_values_mut(&mut block.term, resolve);
        }
    }
    changed
}

struct Pass<'a> {
    predecessors: Vec<usize>,
    /// Conditions that compare a line: most groups are on one side of them with all their lanes.
    bounds: Vec<bool>,
    addresses: Addresses<'a>,
    /// Parameters of blocks that other blocks took in.
    renamed: Vec<Option<Value>>,
    loops: &'a Loops,
    group: &'a Divergences,
}

fn bounds(function: &Function, group: &Divergences) -> Vec<bool> {
    let mut bounds = vec![false; function.values.len()];
    for inst in function.blocks.iter().flat_map(|block| &block.insts) {
        if matches!(inst.op, Op::Icmp(..)) {
            let is_line = |arg: &Value| matches!(group.of[arg.index()], Divergence::Affine { .. });
            bounds[inst.results[0].index()] = inst.args.iter().any(is_line);
        }
    }
    bounds
}

/// Whether vectors of it take an instruction or two.
fn is_cheap(op: &Op) -> bool {
    let is_plain = |ty: &Float| matches!(ty, Float::F32 | Float::F64);
    match op {
        Op::Const(_) | Op::Bitcast | Op::Zext | Op::Sext | Op::Trunc | Op::Select | Op::Bool(_) | Op::Not => {
            true
        }
        Op::Int(op, _) => !matches!(op, IntBin::Div | IntBin::Rem),
        Op::Icmp(..) | Op::Lop3(_) | Op::Shf { .. } => true,
        Op::Float(op, ty, _) => is_plain(ty) && matches!(op, FloatBin::Add | FloatBin::Sub | FloatBin::Mul),
        Op::FloatUn(op, ty, _) => is_plain(ty) && matches!(op, FloatUn::Neg | FloatUn::Abs),
        Op::Fma(ty, _) | Op::Fcmp { ty, .. } => is_plain(ty),
        Op::Cvt { from, to, .. } => [from, to].into_iter().all(|num| match num {
            Num::Int(_) => true,
            Num::Float(ty) => is_plain(ty),
            _ => false,
        }),
        _ => false,
    }
}

/// Where a thread's accesses lie.
struct Addresses<'a> {
    ranges: &'a ValueRanges,
    intervals: Intervals,
    /// What addresses are sums of.
    sums: HashMap<Value, [Value; 2]>,
}

/// Bytes from the value `base` on: the first byte of an access is one of `first`.
struct Access {
    space: Space,
    base: Value,
    first: (i64, i64),
    bytes: i64,
}

impl Access {
    fn last(&self) -> (i64, i64) {
        (self.first.0 + self.bytes - 1, self.first.1 + self.bytes - 1)
    }
}

impl Addresses<'_> {
    fn of<'a>(function: &Function, ranges: &'a ValueRanges) -> Addresses<'a> {
        let order = function.reverse_post_order();
        let insts = order.iter().flat_map(|&id| &function.block(id).insts);
        let sums = insts.filter(|inst| matches!(inst.op, Op::Int(IntBin::Add, Int { bits: 64, .. })));
        let sums = sums.map(|inst| (inst.results[0], [inst.args[0], inst.args[1]])).collect();
        Addresses { ranges, intervals: Intervals::of(function, &order, ranges), sums }
    }

    /// A base, and between which distances from it the value lies.
    fn place(&self, address: Value, resolved: impl Fn(Value) -> Value) -> (Value, (i64, i64)) {
        let (mut base, (mut low, mut high)) = (resolved(address), (0i64, 0i64));
        while let Some(&sum) = self.sums.get(&base) {
            let near = |value: Value| {
                let found = self.intervals.get(value, self.ranges);
                found.filter(|&(low, high)| low > -PAGE && high < PAGE)
            };
            let [a, b] = sum.map(&resolved);
            let (next, by) = match (near(a), near(b)) {
                (_, Some(by)) => (a, by),
                (Some(by), _) => (b, by),
                _ => break,
            };
            (base, low, high) = (next, low.saturating_add(by.0), high.saturating_add(by.1));
        }
        (base, (low, high))
    }
}

fn inst(op: Op, args: Vec<Value>, result: Value, pos: Pos) -> Inst {
    Inst { op, args, results: vec![result], pos }
}

impl Pass<'_> {
    fn resolved(&self, mut value: Value) -> Value {
        while let Some(Some(other)) = self.renamed.get(value.index()) {
            value = *other;
        }
        value
    }

    /// Whether the lanes are known not to lie on a line, and not to be the same.
    fn is_varying(&self, value: Value) -> bool {
        self.renamed.len() <= value.index() || self.group.of[value.index()].is_varying()
    }

    fn is_divergent(&self, at: usize) -> bool {
        self.group.divergent.get(at) == Some(&true)
    }

    /// Whether only `at` leads to the block, and both are in the same loop.
    fn is_own_side(&self, at: usize, to: usize) -> bool {
        to != at && self.predecessors[to] == 1 && self.loops.of[to] == self.loops.of[at]
    }

    /// Whether only `at` leads to the block, all of it is worth running for nobody, and both are in the same loop.
    fn is_speculated(&self, function: &Function, at: usize, side: &Edge) -> bool {
        let to = side.block.index();
        let insts = &function.block(side.block).insts;
        self.is_own_side(at, to) && insts.len() <= FEW && insts.iter().all(|inst| is_cheap(&inst.op))
    }

    /// Whether only `at` leads to the block, and all that it does is to compute, and to load what `at` or the `join` has between what it
    /// accesses.
    fn is_loaded(&self, function: &Function, at: usize, side: &Edge, join: usize) -> bool {
        let to = side.block.index();
        let insts = &function.block(side.block).insts;
        let is_load = |inst: &Inst| matches!(inst.op, Op::Load { order: Order::Weak, .. });
        let is_counted = |inst: &&Inst| !matches!(inst.op, Op::Const(_));
        if !self.is_own_side(at, to)
            || insts.iter().filter(is_counted).count() > SOME
            || !insts.iter().all(|inst| is_load(inst) || is_cheap(&inst.op))
        {
            return false;
        }
        let goes_on = |inst: &&Inst| {
            inst.op.is_pure()
                || matches!(
                    inst.op,
                    Op::Load { order: Order::Weak, .. }
                        | Op::Store { order: Order::Weak, .. }
                        | Op::Special(_)
                )
        };
        let before = function.blocks[at].insts.iter().rev().take_while(goes_on);
        let behind = function.blocks[join].insts.iter().take_while(goes_on);
        let sure: Vec<Access> = before.chain(behind).filter_map(|inst| self.access(inst)).collect();
        insts.iter().filter(|inst| is_load(inst)).all(|inst| {
            self.access(inst).is_some_and(|access| {
                let of_base = || sure.iter().filter(|it| it.space == access.space && it.base == access.base);
                of_base().any(|low| {
                    low.first.1 <= access.first.0
                        && of_base().any(|high| {
                            high.last().0 >= access.last().1 && high.last().1 - low.first.0 < PAGE
                        })
                })
            })
        })
    }

    /// Where an instruction accesses memory by address.
    fn access(&self, inst: &Inst) -> Option<Access> {
        let (space, mem, offset, n) = match inst.op {
            Op::Load { space, mem, offset, .. } => (space, mem, offset, inst.results.len()),
            Op::Store { space, mem, offset, .. } => (space, mem, offset, inst.args.len() - 1),
            _ => return None,
        };
        let (base, (low, high)) = self.addresses.place(inst.args[0], |value| self.resolved(value));
        let first = (low.checked_add(offset)?, high.checked_add(offset)?);
        let is_near = first.0 > -PAGE && first.1 < PAGE && space != Space::Local;
        is_near.then_some(Access { space, base, first, bytes: i64::from(mem.bits / 8) * n as i64 })
    }

    /// The block's instructions become the last ones of `at`.
    fn take_in(&mut self, function: &mut Function, at: usize, side: &Edge) {
        let to = side.block.index();
        let params = function.blocks[to].params.clone();
        for (param, &arg) in params.into_iter().zip(&side.args) {
            self.renamed[param.index()] = Some(arg);
        }
        let insts = std::mem::take(&mut function.blocks[to].insts);
        function.blocks[at].insts.extend(insts);
    }

    /// What the join gets: `yes` where `cond` holds.
    fn selected(
        &self,
        function: &mut Function,
        at: usize,
        cond: Value,
        yes: &[Value],
        no: &[Value],
    ) -> Vec<Value> {
        let pairs = yes.iter().zip(no);
        pairs
            .map(|(&yes, &no)| {
                if self.resolved(yes) == self.resolved(no) {
                    return yes;
                }
                let result = function.new_value(function.ty(yes));
                let pos = function.blocks[at].insts.last().map_or(Pos::default(), |last| last.pos);
                function.blocks[at].insts.push(inst(Op::Select, vec![cond, yes, no], result, pos));
                result
            })
            .collect()
    }

    /// A branch both of whose ways come to the same block at once, over pure operations alone.
    fn select(&mut self, function: &mut Function, at: usize) -> bool {
        if !self.is_divergent(at) {
            return false;
        }
        let Term::Branch { cond, then, otherwise } = function.blocks[at].term.clone() else { return false };
        // Where a way leads, and whether there is a side on it.
        let loads = !self.bounds.get(cond.index()).copied().unwrap_or(false);
        let way = |edge: &Edge| match &function.block(edge.block).term {
            Term::Jump(back)
                if self.is_speculated(function, at, edge)
                    || loads && self.is_loaded(function, at, edge, back.block.index()) =>
            {
                (back.clone(), true)
            }
            _ => (edge.clone(), false),
        };
        let (yes, no) = (way(&then), way(&otherwise));
        let join = yes.0.block;
        if join != no.0.block
            || !(yes.1 || no.1)
            || join.index() == at
            || self.loops.of[join.index()] != self.loops.of[at]
        {
            return false;
        }
        // A number that is the same for all lanes, or lies on a line, is worth more while lanes agree.
        let mut pairs = yes.0.args.iter().zip(&no.0.args);
        let keeps_shape = |(&a, &b): (&Value, &Value)| {
            let (a, b) = (self.resolved(a), self.resolved(b));
            a == b || self.is_varying(a) || self.is_varying(b)
        };
        if !pairs.all(keeps_shape) {
            return false;
        }
        for (edge, (_, has_side)) in [(&then, &yes), (&otherwise, &no)] {
            if *has_side {
                self.take_in(function, at, edge);
                self.predecessors[edge.block.index()] = 0;
                function.blocks[edge.block.index()].term = Term::Exit;
            }
        }
        let args = self.selected(function, at, cond, &yes.0.args, &no.0.args);
        self.predecessors[join.index()] -= 1;
        function.blocks[at].term = Term::Jump(Edge { block: join, args });
        true
    }

    /// A branch past a block that the next branch passes by too: of `if (a) if (b) S`, `if (a & b) S`.
    fn fold(&mut self, function: &mut Function, at: usize) -> bool {
        let Term::Branch { cond, then, otherwise } = function.blocks[at].term.clone() else { return false };
        let is_data = |at: usize, cond: Value| {
            self.is_divergent(at) && !self.bounds.get(cond.index()).copied().unwrap_or(false)
        };
        if !is_data(at, cond) {
            return false;
        }
        for (next, past, on_true) in [(&then, &otherwise, true), (&otherwise, &then, false)] {
            let (middle, join) = (next.block.index(), past.block.index());
            let Term::Branch { cond: second, then: first, otherwise: other } =
                function.blocks[middle].term.clone()
            else {
                continue;
            };
            let (side, back, side_on_true) = if first.block == past.block {
                (&other, &first, false)
            } else if other.block == past.block {
                (&first, &other, true)
            } else {
                continue;
            };
            let in_side = function.block(side.block);
            let comes_back = matches!(&in_side.term, Term::Jump(edge) if edge.block == past.block);
            let is_short = self.predecessors[side.block.index()] == 1
                && in_side.insts.len() <= SHORT
                && !in_side.insts.iter().any(|inst| inst.op.is_barrier());
            let in_loop =
                [join, side.block.index()].into_iter().all(|it| self.loops.of[it] == self.loops.of[at]);
            if !comes_back || !is_short || !in_loop || join == at {
                continue;
            }
            if !is_data(middle, second) || !self.is_speculated(function, at, next) {
                continue;
            }
            self.take_in(function, at, next);
            let (side, back) = (side.clone(), back.clone());
            let pos = function.blocks[at].insts.last().map_or(Pos::default(), |last| last.pos);
            let mut wants = vec![];
            for (cond, on_true) in [(cond, on_true), (second, side_on_true)] {
                if on_true {
                    wants.push(cond);
                    continue;
                }
                let not = function.new_value(Ty::Pred);
                function.blocks[at].insts.push(inst(Op::Not, vec![cond], not, pos));
                wants.push(not);
            }
            let both = function.new_value(Ty::Pred);
            function.blocks[at].insts.push(inst(Op::Bool(Bool::And), wants, both, pos));
            let (yes, no) = if on_true { (&back, past) } else { (past, &back) };
            let args = self.selected(function, at, cond, &yes.args, &no.args);
            let past = Edge { block: past.block, args };
            function.blocks[at].term = Term::Branch { cond: both, then: side, otherwise: past };
            function.blocks[middle].term = Term::Exit;
            self.predecessors[middle] = 0;
            self.predecessors[join] -= 1;
            return true;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pass::cfg;
    use crate::pass::divergence::{Among, analyse, structure};
    use crate::pass::testing::{function, text};
    use crate::pass::value_ranges::Threads;

    fn flat(source: &str) -> Function {
        let mut f = function(source);
        let (_, loops, layout) = structure(&f).unwrap();
        let threads = Threads { block: [64, 1, 1], open: false, width: 16, assumes: true };
        let ranges = ValueRanges::of(&f, threads);
        let group = analyse(&f, &loops, &layout, &ranges, threads, Among::Group, 0, &HashMap::new());
        run(&mut f, &loops, &group, &ranges);
        cfg::clean(&mut f);
        f
    }

    fn branches(f: &Function) -> usize {
        f.blocks.iter().filter(|block| matches!(block.term, Term::Branch { .. })).count()
    }

    #[test]
    fn a_side_of_pure_operations_is_run_by_all() {
        let f = flat(
            "entry: t = tid; a = zext t; x = load a; y = load a; p = lt x y; z = const.b32 0; branch p side join(z)\n \
             side: w = add x y; jump join(w)\n join(v:b32): store a v; exit",
        );
        assert_eq!(branches(&f), 0, "{}", text(&f));
        assert_eq!(f.blocks.len(), 1, "{}", text(&f));
        let selects = f.blocks[0].insts.iter().filter(|inst| inst.op == Op::Select).count();
        assert_eq!(selects, 1, "{}", text(&f));
    }

    #[test]
    fn both_sides_may_be_pure() {
        let f = flat(
            "entry: t = tid; a = zext t; x = load a; y = load a; p = lt x y; branch p one two\n \
             one: v = add x y; jump join(v)\n two: w = sub x y; jump join(w)\n join(u:b32): store a u; exit",
        );
        assert_eq!(branches(&f), 0, "{}", text(&f));
    }

    #[test]
    fn what_lanes_have_in_common_while_they_agree_stays() {
        let f = flat(
            "entry: t = tid; a = zext t; x = load a; y = load a; p = lt x y; z = const.b32 0; branch p side join(z)\n \
             side: w = const.b32 1; jump join(w)\n join(v:b32): store a v; exit",
        );
        assert_eq!(branches(&f), 1, "{}", text(&f));
    }

    #[test]
    fn a_side_with_effects_is_not_run_by_all() {
        let f = flat(
            "entry: t = tid; a = zext t; x = load a; y = load a; p = lt x y; branch p side join\n \
             side: store a x; jump join\n join: exit",
        );
        assert_eq!(branches(&f), 1, "{}", text(&f));
    }

    /// Two words apart by a condition: of the fields at these bytes of a structure one or the other is read, those of `sure` in any case.
    fn chosen_field(cond: &str, fields: [i64; 2], sure: [i64; 2]) -> usize {
        let at = |name: &str, place: i64| {
            format!("{name}o = const.b64 {}; {name} = add64 a {name}o;", place as u64)
        };
        let [one, two] = [at("b", fields[0]), at("c", fields[1])];
        let [low, high] = [at("d", sure[0]), at("e", sure[1])];
        let f = flat(&format!(
            "entry: t = tid; a = zext t; x = load a; n = const.b32 40; {cond}; branch p one two\n \
             one: {one} v = load b; jump join(v)\n two: {two} w = load c; jump join(w)\n \
             join(u:b32): {low} {high} y = load d; z = load e; s = add y z; store a s; store a u; exit"
        ));
        branches(&f)
    }

    #[test]
    fn what_lies_between_bytes_that_are_read_in_any_case_is_read_by_all() {
        let data = "p = lt x n";
        assert_eq!(chosen_field(data, [8, 12], [4, 16]), 0);
        assert_eq!(chosen_field(data, [4, 16], [4, 16]), 0, "those themselves");
        assert_eq!(
            chosen_field(data, [8, 12], [16, 8]),
            0,
            "the structure's first word is read before the branch"
        );
        assert_eq!(chosen_field(data, [8, 20], [4, 16]), 1, "behind the last");
        assert_eq!(chosen_field(data, [8, 14], [4, 12]), 1, "not all of it before the last byte");
        assert_eq!(chosen_field(data, [-4, 8], [4, 16]), 1, "before the first");
        assert_eq!(chosen_field(data, [4092, 8], [4, 4092]), 0, "on the same page or the next one");
        assert_eq!(chosen_field(data, [8, 4], [4, 4096]), 1, "a page may lie between");
        assert_eq!(chosen_field("p = lt t n", [8, 12], [4, 16]), 1, "groups agree on a line");
    }

    #[test]
    fn two_branches_past_one_block_become_one() {
        let f = flat(
            "entry: t = tid; a = zext t; x = load a; y = load a; z = const.b32 0; o = const.b32 1; p = eq x y; branch p join(z) next\n \
             next: q = lt x z; branch q join(o) side\n side: store a x; jump join(x)\n join(v:b32): store a v; exit",
        );
        assert_eq!(branches(&f), 1, "{}", text(&f));
        let Term::Branch { then, otherwise, .. } = &f.blocks[0].term else { panic!("{}", text(&f)) };
        // The side is run where both say so, and lanes that pass by it bring what they did before.
        assert!(f.block(then.block).insts.iter().any(|inst| matches!(inst.op, Op::Store { .. })));
        let select = f.blocks[0].insts.iter().find(|inst| inst.op == Op::Select).unwrap();
        assert_eq!(otherwise.args, select.results, "{}", text(&f));
    }

    #[test]
    fn a_bound_on_a_line_stays_a_branch_of_its_own() {
        let f = flat(
            "entry: t = tid; a = zext t; x = load a; z = const.b32 40; p = lt t z; branch p next join\n \
             next: q = lt x z; branch q side join\n side: store a x; jump join\n join: exit",
        );
        assert_eq!(branches(&f), 2, "{}", text(&f));
    }

    #[test]
    fn sides_that_leave_a_loop_stay() {
        let f = flat(
            "entry: t = tid; a = zext t; jump head\n \
             head: x = load a; y = load a; p = lt x y; branch p next head2\n next: q = eq x y; branch q out head2\n \
             head2: jump head\n out: store a x; exit",
        );
        assert!(branches(&f) >= 1, "{}", text(&f));
    }
}
