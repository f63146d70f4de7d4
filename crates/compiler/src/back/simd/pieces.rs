//! Stores whose lanes lie in pieces of lines: each lane writes at its own number behind an entry of a table, and neighbours mostly have
//! the same entry, as where a sort writes keys that are in order within a block. The first and the last piece of a vector are a store
//! under a mask each, which takes less than an instruction that writes lane by lane, and leaves room for stores that wait for memory.

use super::Emitter;
use super::memory::Access;
use crate::back::llvm::{Type, Val};
use crate::ir::{Inst, IntBin, Op, Space, Value};
use crate::pass::divergence::Divergence;
use crate::pass::visit::Definition;

/// Operations that are looked through on the way from an address to what it is made of.
const STEPS: u32 = 8;

/// What an address adds to what all lanes have in common.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Parts {
    /// From lane to lane.
    stride: i64,
    /// What lanes have loaded is a part.
    has_entry: bool,
}

impl Emitter<'_> {
    /// Whether lanes that have loaded the same write side by side.
    pub(super) fn is_in_pieces(&self, access: Access, address: Value) -> bool {
        let may = self.is_native(access) && self.mask.is_none() && self.lanes > 1;
        let is_far = matches!(access.space, Space::Global | Space::Generic);
        let parts = Parts { stride: access.step(), has_entry: true };
        may && is_far && self.parts(address, STEPS) == Some(parts)
    }

    fn parts(&self, value: Value, steps: u32) -> Option<Parts> {
        match self.divergence(value) {
            Divergence::Uniform => return Some(Parts { stride: 0, has_entry: false }),
            Divergence::Affine { stride, .. } => return Some(Parts { stride, has_entry: false }),
            Divergence::Varying => {}
        }
        let Definition::Inst(block, at, _) = self.definitions[value.index()] else { return None };
        let inst = &self.here().function.blocks[block].insts[at];
        let of = |nth: usize| self.parts(inst.args[nth], steps.checked_sub(1)?);
        let times = |by: i64| {
            let parts = of(0)?;
            Some(Parts { stride: parts.stride.checked_mul(by)?, ..parts })
        };
        match inst.op {
            Op::Load { .. } => Some(Parts { stride: 0, has_entry: true }),
            Op::Cvta { .. } | Op::Bitcast | Op::Zext | Op::Sext => of(0),
            Op::Int(IntBin::Add, _) => {
                let (a, b) = (of(0)?, of(1)?);
                let stride = a.stride.checked_add(b.stride)?;
                Some(Parts { stride, has_entry: a.has_entry || b.has_entry })
            }
            Op::Int(IntBin::Shl, _) => times(1 << self.number(inst, 1).filter(|&by| by < 32)?),
            Op::Int(IntBin::Mul, _) | Op::MulWide(_) => times(self.number(inst, 1)?),
            _ => None,
        }
    }

    fn number(&self, inst: &Inst, nth: usize) -> Option<i64> {
        i64::try_from(self.here().ranges.constant(inst.args[nth])?).ok()
    }

    /// All lanes write; where two of them write one word, the later one's stays.
    pub(super) fn store_pieces(&mut self, access: Access, at: &Val, words: &Val) {
        let name = format!("store_pieces.{}", access.name());
        self.outlined(&name, &[at.clone(), words.clone()], &[], |me, params| {
            let lanes = me.lanes;
            let together = (64 / access.step() as u32).min(lanes);
            for first in (0..lanes).step_by(together as usize) {
                let [at, words] = [&params[0], &params[1]].map(|all| me.slice(all, first, together));
                me.with_lanes(together, |me| me.store_two_pieces(access.step(), &at, &words));
            }
            vec![]
        });
    }

    fn slice(&mut self, all: &Val, first: u32, count: u32) -> Val {
        let picks: Vec<_> = (first..first + count).map(|lane| Some(lane as usize)).collect();
        self.shuffle(all, None, &picks)
    }

    /// A vector of at most two pieces by two stores, any other lane by lane.
    fn store_two_pieces(&mut self, step: i64, at: &Val, words: &Val) {
        let places = self.b.cast("ptrtoint", at, Type::int(64, self.lanes));
        let steps = self.iota(64, step);
        let starts = self.b.sub(&places, &steps);
        let pieces = [0, self.lanes - 1].map(|lane| {
            let start = self.extract(&starts, &lane.to_string());
            let all = self.splat(&start);
            let mask = self.b.icmp("eq", &starts, &all);
            (start, mask)
        });
        let [first, last] = [0, 1].map(|nth| self.bits_of(&pieces[nth].1));
        // The first piece has the lower lanes, so each lane's word is written after those of the lanes before it.
        let next = self.b.bin_int("add", &first, 1);
        let beyond = self.b.and(&first, &next);
        let is_low = self.b.icmp_int("eq", &beyond, 0);
        let both = self.b.or(&first, &last);
        let are_all = self.b.icmp_int("eq", &both, -1);
        let are_two = self.b.and(&is_low, &are_all);
        self.fork(
            &are_two,
            |me| {
                for (start, mask) in &pieces {
                    let start = me.b.cast("inttoptr", start, Type::ptr());
                    me.store_under(mask, step, &start, words);
                }
                vec![]
            },
            |me| {
                me.scatter_to(at, words);
                vec![]
            },
        );
    }
}
