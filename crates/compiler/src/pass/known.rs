//! What is known of single threads: values that follow from the thread index alone, and who can run a block.
//!
//! The block's dimensions are constants, so such a value is a table with one entry per thread. Of an open block the table
//! is the largest block's: what holds for all of its warps holds for the first ones.

use super::bits::BitSet;
use super::dominators::Dominators;
use super::evaluate::{evaluate, is_evaluated};
use super::value_ranges::Threads;
use super::visit::{Definition, definitions};
use crate::ir::*;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

const WARP: usize = 32;
/// A condition on the thread index takes few steps.
const MAX_DEPTH: u32 = 32;
/// A condition has few parts, one in the other.
const MAX_PARTS: u32 = 6;

/// One number per thread of the block, in linear order.
type Table = Rc<Vec<u64>>;

pub struct Known<'a> {
    function: &'a Function,
    dominators: &'a Dominators,
    threads: Threads,
    definitions: Vec<Definition>,
    predecessors: Vec<Vec<BlockId>>,
    tables: RefCell<HashMap<Value, Option<Table>>>,
}

impl<'a> Known<'a> {
    pub fn of(function: &'a Function, dominators: &'a Dominators, threads: Threads) -> Known<'a> {
        Known {
            function,
            dominators,
            threads,
            definitions: definitions(function),
            predecessors: function.predecessors(),
            tables: RefCell::default(),
        }
    }

    /// Sides of branches that lead to block `at` whatever way is taken: the branch's block, its condition, and whether
    /// that holds.
    fn sides(&self, at: usize) -> impl Iterator<Item = (usize, Value, bool)> {
        self.function.blocks.iter().enumerate().filter_map(move |(branch, block)| {
            let Term::Branch { cond, then, otherwise } = &block.term else { return None };
            let leads =
                |edge: &Edge| self.dominators.dominates(edge.block.index(), at) && self.leads(branch, edge);
            match (leads(then), leads(otherwise)) {
                (true, false) => Some((branch, *cond, true)),
                (false, true) => Some((branch, *cond, false)),
                _ => None,
            }
        })
    }

    /// Whether nobody comes to this side of the branch but by it, or from the side itself.
    fn leads(&self, branch: usize, edge: &Edge) -> bool {
        let to = edge.block.index();
        let from = self.predecessors[to].iter().map(|from| from.index());
        from.filter(|&from| !self.dominators.dominates(to, from)).eq([branch])
    }

    /// Whether at most one lane of each warp ever runs block `at`.
    pub fn is_for_one_lane(&self, at: usize) -> bool {
        if !self.dominators.is_reachable(at) {
            return true;
        }
        if self.sides(at).any(|(_, cond, holds)| self.is_elected(cond, holds, MAX_PARTS)) {
            return true;
        }
        let mut conditions = vec![];
        for (_, cond, holds) in self.sides(at) {
            self.conditions(cond, holds, MAX_PARTS, &mut conditions);
        }
        self.leave_one_lane(&conditions)
    }

    /// Blocks that at most one lane of each warp runs, as one of these branches says by itself.
    pub fn blocks_for_one_lane(&self, is_asked: impl Fn(usize) -> bool) -> BitSet {
        let function = self.function;
        let mut found = BitSet::new(function.blocks.len());
        for (at, block) in function.blocks.iter().enumerate() {
            let Term::Branch { cond, then, otherwise } = &block.term else { continue };
            if !is_asked(at) || !self.dominators.is_reachable(at) {
                continue;
            }
            for (edge, holds) in [(then, true), (otherwise, false)] {
                if then.block != otherwise.block && self.leads(at, edge) && self.is_for_one(*cond, holds) {
                    found.insert(edge.block.index());
                }
            }
        }
        for at in function.reverse_post_order() {
            if self.dominators.immediate(at.index()).is_some_and(|before| found.contains(before)) {
                found.insert(at.index());
            }
        }
        found
    }

    /// Whether at most one lane of each warp goes on where the condition is as told.
    fn is_for_one(&self, cond: Value, holds: bool) -> bool {
        let mut conditions = vec![];
        self.conditions(cond, holds, MAX_PARTS, &mut conditions);
        self.is_elected(cond, holds, MAX_PARTS) || !conditions.is_empty() && self.leave_one_lane(&conditions)
    }

    fn leave_one_lane(&self, conditions: &[(Table, bool)]) -> bool {
        self.warps().all(|warp| self.lanes(conditions, warp).count_ones() <= 1)
    }

    /// What is known of a condition that is as told: of all of it, or of the parts that all have to be as they are then.
    fn conditions(&self, cond: Value, holds: bool, parts: u32, found: &mut Vec<(Table, bool)>) {
        if let Some(table) = self.table(cond) {
            found.push((table, holds));
            return;
        }
        let Definition::Inst(block, at, _) = self.definitions[cond.index()] else { return };
        let inst = &self.function.blocks[block].insts[at];
        let holds = match inst.op {
            Op::Bool(Bool::And) if holds => true,
            Op::Bool(Bool::Or) if !holds => false,
            Op::Not => !holds,
            _ => return,
        };
        let Some(parts) = parts.checked_sub(1) else { return };
        for &arg in &inst.args {
            self.conditions(arg, holds, parts, found);
        }
    }

    /// The first and the last thread that may run block `at`.
    pub fn threads_at(&self, at: usize) -> Option<(usize, usize)> {
        if !self.dominators.is_reachable(at) {
            return None;
        }
        let conditions: Vec<(Table, bool)> =
            self.sides(at).filter_map(|(_, cond, holds)| Some((self.table(cond)?, holds))).collect();
        let runs =
            |&thread: &usize| conditions.iter().all(|(table, holds)| (table[thread] & 1 != 0) == *holds);
        let mut threads = 0..self.n_threads();
        Some((threads.find(runs)?, (0..self.n_threads()).rev().find(runs)?))
    }

    /// Whether the condition is false for some of these threads, and true for some; `None` if that does not follow from
    /// their numbers.
    pub fn holds_for(&self, cond: Value, threads: std::ops::Range<usize>) -> Option<[bool; 2]> {
        let table = self.table(cond)?;
        let holds = |wanted: bool| table[threads.clone()].iter().any(|number| (number & 1 != 0) == wanted);
        Some([holds(false), holds(true)])
    }

    /// Of at most 64 threads those for which the condition holds, the first one's bit the lowest.
    pub fn lanes_of(&self, cond: Value, threads: std::ops::Range<usize>) -> Option<u64> {
        let table = self.table(cond)?;
        let bits = table[threads].iter().enumerate().map(|(lane, number)| (number & 1) << lane);
        Some(bits.fold(0, |all, bit| all | bit))
    }

    /// Whether a condition that is as told holds for the lane alone that `elect.sync` has elected. Lanes with masks of their own, as
    /// tiles of a warp have them, elect one each.
    fn is_elected(&self, cond: Value, holds: bool, parts: u32) -> bool {
        let Definition::Inst(block, at, nth) = self.definitions[cond.index()] else { return false };
        let inst = &self.function.blocks[block].insts[at];
        let any = |holds| {
            let parts = parts.checked_sub(1);
            parts.is_some_and(|parts| inst.args.iter().any(|&arg| self.is_elected(arg, holds, parts)))
        };
        match inst.op {
            Op::Elect => holds && nth == 1 && self.is_constant(inst.args[0]),
            Op::Bool(Bool::And) if holds => any(true),
            Op::Bool(Bool::Or) if !holds => any(false),
            Op::Not => any(!holds),
            _ => false,
        }
    }

    fn is_constant(&self, value: Value) -> bool {
        let Definition::Inst(block, at, _) = self.definitions[value.index()] else { return false };
        matches!(self.function.blocks[block].insts[at].op, Op::Const(_))
    }

    /// Whether `mask` names the lanes that run block `at`, when the branches of `parting` are all that keep lanes from
    /// it. Bits of threads that do not exist or have ended do not count.
    pub fn names_who_runs(&self, at: usize, parting: &[usize], mask: Value) -> bool {
        let sides: Vec<(usize, Value, bool)> = self.sides(at).collect();
        let mut conditions = vec![];
        for &branch in parting {
            let Some(&(_, cond, holds)) = sides.iter().find(|side| side.0 == branch) else { return false };
            let Some(table) = self.table(cond) else { return false };
            conditions.push((table, holds));
        }
        let Some(masks) = self.table(mask) else { return false };
        self.warps().all(|warp| {
            let lanes = self.lanes(&conditions, warp);
            let exist = self.lanes(&[], warp);
            (0..WARP)
                .filter(|lane| lanes >> lane & 1 != 0)
                .all(|lane| masks[warp * WARP + lane] as u32 & exist == lanes)
        })
    }

    fn warps(&self) -> std::ops::Range<usize> {
        0..self.n_threads().div_ceil(WARP)
    }

    fn n_threads(&self) -> usize {
        self.threads.total() as usize
    }

    /// Lanes of a warp for which all conditions are as wanted.
    fn lanes(&self, conditions: &[(Table, bool)], warp: usize) -> u32 {
        let first = warp * WARP;
        (first..(first + WARP).min(self.n_threads()))
            .filter(|&thread| conditions.iter().all(|(table, holds)| (table[thread] & 1 != 0) == *holds))
            .fold(0, |lanes, thread| lanes | 1 << (thread - first))
    }

    /// `None`: it does not follow from the thread index, or not in a way that is looked for.
    fn table(&self, value: Value) -> Option<Table> {
        self.table_within(value, MAX_DEPTH)
    }

    fn table_within(&self, value: Value, depth: u32) -> Option<Table> {
        if let Some(found) = self.tables.borrow().get(&value) {
            return found.clone();
        }
        let made = self.made(value, depth.checked_sub(1)?).map(Rc::new);
        self.tables.borrow_mut().insert(value, made.clone());
        made
    }

    fn made(&self, value: Value, depth: u32) -> Option<Vec<u64>> {
        let Definition::Inst(block, at, nth) = self.definitions[value.index()] else { return None };
        let inst = &self.function.blocks[block].insts[at];
        if let Op::Special(special) = inst.op {
            return (0..self.n_threads()).map(|thread| self.special(special, thread as u64)).collect();
        }
        let bits = self.function.ty(value).bits();
        if bits > 64 || !is_evaluated(&inst.op) {
            return None;
        }
        let tables: Vec<Table> =
            inst.args.iter().map(|&arg| self.table_within(arg, depth)).collect::<Option<_>>()?;
        let from = inst.args.first().map_or(0, |&arg| self.function.ty(arg).bits());
        let mut args = vec![0; tables.len()];
        (0..self.n_threads())
            .map(|thread| {
                for (arg, table) in args.iter_mut().zip(&tables) {
                    *arg = table[thread].into();
                }
                evaluate(&inst.op, nth, &args, from, bits).map(|result| result as u64)
            })
            .collect()
    }

    /// A register of one thread.
    fn special(&self, register: Special, thread: u64) -> Option<u64> {
        let [x, y, _] = self.threads.block.map(u64::from);
        let lane = thread % WARP as u64;
        Some(match register {
            Special::Tid(0) => thread % x,
            Special::Tid(1) => thread / x % y,
            Special::Tid(2) => thread / (x * y),
            Special::Ntid(axis) => self.threads.ntid(axis)?.into(),
            Special::LaneId => lane,
            Special::WarpId => thread / WARP as u64,
            Special::LaneMaskEq => 1 << lane,
            Special::LaneMaskLt => (1 << lane) - 1,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pass::testing::function;

    fn with(source: &str, block: [u32; 3], check: impl Fn(&Known<'_>)) {
        let f = function(source);
        let dominators = Dominators::of(&f);
        check(&Known::of(&f, &dominators, Threads { block, open: false, width: 32, assumes: true }));
    }

    #[test]
    fn a_part_of_a_condition_may_leave_one_lane() {
        // `q` is of the grid, which nobody knows; the last block is for nobody in particular.
        let source =
            "entry: t = tid; c = ctaid; z = const.b32 0; p = eq t z; q = eq c z; r = both p q; branch r a b
                      a: branch q c d
                      c: jump d
                      d: jump b
                      b: exit";
        with(source, [64, 1, 1], |known| {
            let found = known.blocks_for_one_lane(|_| true);
            assert_eq!(found.iter().collect::<Vec<_>>(), [1, 2, 3]);
            assert!(known.is_for_one_lane(1) && !known.is_for_one_lane(4));
            assert_eq!(known.blocks_for_one_lane(|at| at != 0).iter().count(), 0);
        });
        let either = source.replace("both p q", "either p q");
        with(&either, [64, 1, 1], |known| assert_eq!(known.blocks_for_one_lane(|_| true).iter().count(), 0));
    }

    #[test]
    fn thread_zero_is_one_lane() {
        let source = "entry: t = tid; z = const.b32 0; p = eq t z; branch p a b\n a: jump b\n b: exit";
        with(source, [256, 1, 1], |known| {
            assert!(known.is_for_one_lane(1) && !known.is_for_one_lane(2));
        });
        with(source, [16, 16, 1], |known| assert!(!known.is_for_one_lane(1), "two rows share a warp"));
    }

    #[test]
    fn a_mask_is_compared_with_who_gets_there() {
        let source = "entry: t = tid; n = const.b32 8; m = const.b32 255; w = const.b32 511; p = lt t n; branch p a b\n a: jump b\n b: exit";
        with(source, [64, 1, 1], |known| {
            let [mask, wrong] =
                [known.function.blocks[0].insts[2].results[0], known.function.blocks[0].insts[3].results[0]];
            assert!(known.names_who_runs(1, &[0], mask) && !known.names_who_runs(1, &[0], wrong));
        });
    }

    #[test]
    fn lanes_that_do_not_exist_are_not_missed() {
        let source = "entry: m = const.b32 4294967295; t = tid; z = const.b32 0; p = lt t z; branch p b a\n a: exit\n b: exit";
        with(source, [8, 1, 1], |known| {
            assert!(known.names_who_runs(2, &[0], known.function.blocks[0].insts[0].results[0]));
        });
    }
}
