//! Branches to one block that comes back at once: a part of the lanes runs it under a mask, or all run it with what it
//! must not change, and U goes on.

use super::Emitter;
use super::control::Carried;
use crate::back::llvm::Val;
use crate::ir::{Block, Edge, Inst, Op, Order, Space, Term, Value};
use crate::pass::divergence;
use crate::pass::regions::is_checked;

/// Pure operations that are cheaper than a branch.
const FEW: usize = 8;

impl Emitter<'_> {
    /// Whether the side is one block that comes out where the lanes of the other side are at once.
    pub(super) fn is_converted(&self, at: usize, side: &Edge, other: &Edge) -> bool {
        let here = self.here();
        let block = here.function.block(side.block);
        let meets = &here.function.block(other.block).params;
        !here.whole.contains(at)
            && divergence::is_short_side(&here.function, &here.layout, at, side, other)
            // What is no vector is the same number on both sides.
            && meets.iter().all(|&param| self.divergence(param).is_varying() || self.divergence(param).is_uniform())
            && !self.has_checks(block)
    }

    /// Whether U may be left in the block, which M then begins again.
    pub(super) fn has_checks(&self, block: &Block) -> bool {
        let here = self.here();
        let in_rows =
            |inst: &Inst| here.runs.as_ref().is_some_and(|runs| is_checked(inst, &runs.divergences));
        block.insts.iter().any(|inst| {
            is_checked(inst, &here.together.of) || in_rows(inst) || here.offsets_together.is_checked(inst)
        })
    }

    /// Whether running the side under a mask takes no branch, and no longer than by all lanes: it is a few pure operations, and
    /// atomics that lanes that are not active may do too. Where all lanes have the same operand, as those that count by ones, all
    /// of them do it in half the time without a mask, so there it is worth asking.
    pub(super) fn is_straight(&self, side: &Edge) -> bool {
        let insts = &self.here().function.block(side.block).insts;
        let (atomics, others): (Vec<&Inst>, Vec<&Inst>) =
            insts.iter().partition(|inst| matches!(inst.op, Op::Atomic { .. }));
        !atomics.is_empty()
            && atomics.iter().all(|inst| self.is_diverted(inst) && self.divergence(inst.args[1]).is_varying())
            && others.len() <= FEW
            && others.iter().all(|inst| inst.op.is_pure())
    }

    /// A part of the lanes runs the side under a mask, then all go on together. `carried`: what the side gets, and what
    /// the lanes bring that do not run it.
    pub(super) fn convert_if(
        &mut self,
        at: usize,
        side: &Edge,
        (into, past): (&[Carried], &[Carried]),
        mask: Val,
    ) -> Result<(), String> {
        let block = self.block(side.block.index());
        let Term::Jump(back) = &block.term else { return Err("a side that does not come back".to_owned()) };
        self.store_carried(into);
        self.mask = Some(mask.clone());
        self.instructions(side.block.index(), &block.insts)?;
        let mut out = self.carried(back);
        self.mask = None;
        self.meet(&mask, &mut out, past);
        self.follow(at, back);
        Ok(())
    }

    /// As [`Self::convert_if`], also where all lanes run it: which lanes do is seldom the same twice, and a CPU that guesses
    /// wrong loses more than the side takes.
    pub(super) fn run_straight(
        &mut self,
        at: usize,
        (cond, holds): (Value, bool),
        (side, other): (&Edge, &Edge),
        (into, past): (&[Carried], &[Carried]),
    ) -> Result<(), String> {
        let cond = self.vector(cond);
        let mask = if holds { cond } else { self.b.not(&cond) };
        let (some, none) = (self.b.label("some"), self.b.label("none"));
        let any = self.any(&mask);
        self.b.cond_br(&any, &some, &none);
        self.b.start_block(&some);
        self.convert_if(at, side, (into, past), mask)?;
        self.b.start_block(&none);
        self.store_carried(past);
        self.follow(at, other);
        Ok(())
    }

    /// The lanes that ran the side bring `out`, the others `past`.
    pub(super) fn meet(&mut self, mask: &Val, out: &mut [Carried], past: &[Carried]) {
        for (from, other) in out.iter_mut().zip(past) {
            if let (Some(val), Some(other)) = (&mut from.vector, &other.vector) {
                *val = self.blend(mask, val, other);
            }
        }
        self.store_carried(out);
    }

    /// A side that only stores to shared memory what its block has just read there: all lanes store, those that do not
    /// run the side what they read. One OS thread runs the block, so nobody sees that. False when it is not like that.
    pub(super) fn write_back(
        &mut self,
        at: usize,
        (cond, holds): (Value, bool),
        (side, other): (&Edge, &Edge),
        past: &[Carried],
    ) -> Result<bool, String> {
        if !self.is_converted(at, side, other) {
            return Ok(false);
        }
        let block = self.block(side.block.index());
        let (Some(pairs), Term::Jump(back)) = (self.read_before(at, &block), &block.term) else {
            return Ok(false);
        };
        let cond = self.vector(cond);
        let mask = if holds { cond } else { self.b.not(&cond) };
        let (pure, stores): (Vec<Inst>, Vec<Inst>) =
            block.insts.into_iter().partition(|inst| inst.op.is_pure());
        self.instructions(side.block.index(), &pure)?;
        let mut out = self.carried(back);
        let mut blended = vec![];
        for (stored, read) in pairs {
            let (new, old) = (self.vector(stored), self.vector(read));
            let old = self.b.bitcast(&old, new.ty);
            blended.push((stored, self.blend(&mask, &new, &old)));
        }
        // What the stores take for their values.
        self.vectors.extend(blended);
        self.instructions(side.block.index(), &stores)?;
        self.meet(&mask, &mut out, past);
        self.follow(at, back);
        Ok(true)
    }

    /// For each value that the side stores the one that block `at` has read at the same place. All places differ.
    fn read_before(&self, at: usize, side: &Block) -> Option<Vec<(Value, Value)>> {
        let before = &self.here().function.blocks[at].insts;
        let stores: Vec<&Inst> = side.insts.iter().filter(|inst| !inst.op.is_pure()).collect();
        if !side.params.is_empty() || stores.is_empty() || side.insts.len() - stores.len() > FEW {
            return None;
        }
        let is_read = |inst: &Inst| inst.op.is_pure() || matches!(inst.op, Op::Load { .. } | Op::Special(_));
        let since = before.iter().rposition(|inst| !is_read(inst)).map_or(0, |last| last + 1);
        let address = *stores[0].args.first()?;
        let lanes = self.distances(address)?;
        let (mut pairs, mut places) = (vec![], vec![]);
        for store in stores {
            let Op::Store { space: Space::Shared, mem, offset, order: Order::Weak, .. } = store.op else {
                return None;
            };
            if !self.is_same(store.args[0], address) {
                return None;
            }
            for (nth, &stored) in store.args[1..].iter().enumerate() {
                let place = offset + nth as i64 * i64::from(mem.bits / 8);
                let read = before[since..].iter().find_map(|load| {
                    let Op::Load { space: Space::Shared, mem: read, offset, order: Order::Weak, .. } =
                        load.op
                    else {
                        return None;
                    };
                    let first = place - offset;
                    let step = i64::from(read.bits / 8);
                    let same = read.bits == mem.bits && self.is_same(load.args[0], address);
                    if !same || first < 0 || first % step != 0 {
                        return None;
                    }
                    load.results.get((first / step) as usize).copied()
                })?;
                let bits = u32::from(mem.bits);
                if self.ty(read).bits() != bits || self.ty(stored).bits() != bits {
                    return None;
                }
                pairs.push((stored, read));
                places.extend(lanes.iter().map(|lane| (lane + place, i64::from(mem.bits / 8))));
            }
        }
        places.sort_unstable();
        let is_apart = places.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0);
        let distinct = pairs
            .iter()
            .enumerate()
            .all(|(nth, (stored, _))| !pairs[..nth].iter().any(|(other, _)| other == stored));
        (is_apart && distinct).then_some(pairs)
    }
}
