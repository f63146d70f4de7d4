//! What is known of single threads: values that follow from the thread index alone, and who can run a block.
//!
//! The block's dimensions are constants, so such a value is a table with one entry per thread. Of an open block the table
//! is the largest block's: what holds for all of its warps holds for the first ones.

use super::dominators::Dominators;
use super::number::{Threads, signed};
use super::visit::{Definition, definitions};
use crate::ir::*;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

const WARP: usize = 32;
/// A condition on the thread index takes few steps.
const MAX_DEPTH: u32 = 32;

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
            // Nobody comes to the side but by this branch, or from the side itself.
            let leads = |edge: &Edge| {
                let to = edge.block.index();
                let from = self.predecessors[to].iter().map(|from| from.index());
                self.dominators.dominates(to, at)
                    && from.filter(|&from| !self.dominators.dominates(to, from)).eq([branch])
            };
            match (leads(then), leads(otherwise)) {
                (true, false) => Some((branch, *cond, true)),
                (false, true) => Some((branch, *cond, false)),
                _ => None,
            }
        })
    }

    /// Whether at most one lane of each warp ever runs block `at`.
    pub fn is_for_one_lane(&self, at: usize) -> bool {
        if !self.dominators.is_reachable(at) {
            return true;
        }
        if self.sides(at).any(|(_, cond, holds)| holds && self.is_elected(cond)) {
            return true;
        }
        let conditions: Vec<(Table, bool)> =
            self.sides(at).filter_map(|(_, cond, holds)| Some((self.table(cond)?, holds))).collect();
        self.warps().all(|warp| self.lanes(&conditions, warp).count_ones() <= 1)
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

    /// The predicate that `elect.sync` gives, or one that implies it.
    fn is_elected(&self, cond: Value) -> bool {
        let Definition::Inst(block, at, nth) = self.definitions[cond.index()] else { return false };
        let inst = &self.function.blocks[block].insts[at];
        match inst.op {
            Op::Elect => nth == 1,
            Op::Bool(Bool::And) => inst.args.iter().any(|&arg| self.is_elected(arg)),
            _ => false,
        }
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
        let Definition::Inst(block, at, 0) = self.definitions[value.index()] else { return None };
        let inst = &self.function.blocks[block].insts[at];
        let bits = self.function.ty(value).bits();
        if bits > 64 {
            return None;
        }
        let keep = u64::MAX >> (64 - bits);
        let args: Vec<Table> =
            inst.args.iter().map(|&arg| self.table_within(arg, depth)).collect::<Option<_>>()?;
        let widths: Vec<u32> = inst.args.iter().map(|&arg| self.function.ty(arg).bits()).collect();
        (0..self.n_threads())
            .map(|thread| {
                let numbers: Vec<u64> = args.iter().map(|table| table[thread]).collect();
                Some(self.computed(&inst.op, &numbers, &widths, thread)? & keep)
            })
            .collect()
    }

    /// One thread's result; bits above the result's width do not matter.
    fn computed(&self, op: &Op, args: &[u64], widths: &[u32], thread: usize) -> Option<u64> {
        let extended = |nth: usize| signed(args[nth].into(), widths[nth]) as i64;
        let [x, y, _] = self.threads.block.map(u64::from);
        let linear = thread as u64;
        Some(match op {
            Op::Const(bits) => *bits as u64,
            Op::Special(Special::Tid(0)) => linear % x,
            Op::Special(Special::Tid(1)) => linear / x % y,
            Op::Special(Special::Tid(2)) => linear / (x * y),
            Op::Special(Special::Ntid(axis)) => self.threads.ntid(*axis)?.into(),
            Op::Special(Special::LaneId) => linear % 32,
            Op::Special(Special::WarpId) => linear / 32,
            Op::Special(Special::LaneMaskEq) => 1 << (linear % 32),
            Op::Special(Special::LaneMaskLt) => (1 << (linear % 32)) - 1,
            Op::Bitcast | Op::Zext | Op::Trunc => args[0],
            Op::Sext => extended(0) as u64,
            Op::Not => !args[0],
            Op::IntUn(IntUn::Not, _) => !args[0],
            Op::IntUn(IntUn::Neg, _) => args[0].wrapping_neg(),
            Op::Select => args[if args[0] & 1 != 0 { 1 } else { 2 }],
            Op::Bool(Bool::And) => args[0] & args[1],
            Op::Bool(Bool::Or) => args[0] | args[1],
            Op::Bool(Bool::Xor) => args[0] ^ args[1],
            Op::MulWide(int) if int.signed => extended(0).wrapping_mul(extended(1)) as u64,
            Op::MulWide(_) => args[0].wrapping_mul(args[1]),
            Op::Int(op, int) => integer(*op, *int, args)?,
            Op::Shf { left, wrap } => shf(*left, *wrap, args),
            Op::Icmp(cmp, int) => {
                let order = if int.signed { extended(0).cmp(&extended(1)) } else { args[0].cmp(&args[1]) };
                u64::from(match cmp {
                    Cmp::Eq => order.is_eq(),
                    Cmp::Ne => order.is_ne(),
                    Cmp::Lt => order.is_lt(),
                    Cmp::Le => order.is_le(),
                    Cmp::Gt => order.is_gt(),
                    Cmp::Ge => order.is_ge(),
                })
            }
            _ => return None,
        })
    }
}

fn integer(op: IntBin, int: Int, args: &[u64]) -> Option<u64> {
    let (a, b) = (args[0], args[1]);
    Some(match op {
        IntBin::Add => a.wrapping_add(b),
        IntBin::Sub => a.wrapping_sub(b),
        IntBin::Mul => a.wrapping_mul(b),
        IntBin::And => a & b,
        IntBin::Or => a | b,
        IntBin::Xor => a ^ b,
        IntBin::Shl if b < u64::from(int.bits) => a << b,
        IntBin::Shl => 0,
        IntBin::Shr if !int.signed && b < u64::from(int.bits) => a >> b,
        IntBin::Shr if !int.signed => 0,
        IntBin::Div if !int.signed && b != 0 => a / b,
        IntBin::Rem if !int.signed && b != 0 => a % b,
        _ => return None,
    })
}

/// `shf` of `[low, high, count]`.
fn shf(left: bool, wrap: bool, args: &[u64]) -> u64 {
    let whole = args[1] << 32 | args[0];
    let count = if wrap { args[2] & 31 } else { args[2].min(32) };
    if left { whole << count >> 32 } else { whole >> count }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pass::testing::function;

    fn with(source: &str, block: [u32; 3], check: impl Fn(&Known<'_>)) {
        let f = function(source);
        let dominators = Dominators::of(&f);
        check(&Known::of(&f, &dominators, Threads { block, open: false, width: 32 }));
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
