//! What a warp's lanes get that count keys together: the lanes with the same key are found by ballots over the key's bits, the last of
//! them adds their number to the key's word in shared memory, tells the others what it found there, and each adds how many of them
//! are not behind it. That is what each gets that adds 1 to its key's word in its turn, and the words are left the same.

use super::apart::View;
use super::visit::count_uses;
use crate::ir::*;

/// Values that a mask is made of, at most.
const MOST: u32 = 64;

const ALL: u128 = 0xffff_ffff;

/// One such count: a branch's side that only the last lane of each key goes.
pub struct Rank {
    /// The side's atomic operation.
    pub atomic: usize,
    /// What the ballots are about, and the bits of it that they look at: lanes that agree in those have the same word if the key has no
    /// others.
    pub key: Value,
    pub bits: u32,
    /// What a lane gets, where the branch's sides meet: the word with 1 added.
    pub sum: Value,
}

impl View<'_> {
    /// The count whose atomic operation block `side` does.
    pub fn rank(&self, side: usize) -> Option<Rank> {
        let leader = self.elected(side)?;
        let block = &self.function.blocks[side];
        let mut effects = block.insts.iter().enumerate().filter(|(_, inst)| !inst.op.is_pure());
        let (Some((atomic, inst)), None, true) = (effects.next(), effects.next(), block.params.is_empty())
        else {
            return None;
        };
        let Op::Atomic {
            space: Space::Shared, op: AtomOp::Add, ty: AtomTy::Int(Int { bits: 32, .. }), ..
        } = inst.op
        else {
            return None;
        };
        let (&[address, count], &[old]) = (&inst.args[..], &inst.results[..]) else { return None };
        let members = self.last_of(leader)?;
        if self.counted(count)? != members || !self.is_number_of_lane(side, leader) {
            return None;
        }
        let mut key = None;
        let bits = self.agreeing(members, &mut key, &mut MOST.clone())?;
        let key = key?;
        let depends_on_key = self.told(address).iter().any(|told| told.value == key);
        if !depends_on_key || !self.holds(side, address, 4) {
            return None;
        }
        let sum = self.sum(block, old, leader, count)?;
        Some(Rank { atomic, key, bits, sum })
    }

    /// The lanes of which this is the last: `31 - clz(members)`.
    fn last_of(&self, leader: Value) -> Option<Value> {
        let inst = self.inst(leader)?;
        let (Op::Int(IntBin::Sub, _), &[top, zeros]) = (&inst.op, &inst.args[..]) else { return None };
        let zeros = self.inst(zeros)?;
        let is_clz = matches!(zeros.op, Op::IntUn(IntUn::Clz, Int { bits: 32, .. }));
        (is_clz && self.ranges.constant(top) == Some(31)).then(|| zeros.args[0])
    }

    /// The lanes of which it is the number that are not behind this one: `popc(members & lanemask_le)`.
    fn counted(&self, count: Value) -> Option<Value> {
        let inst = self.inst(count)?;
        let Op::IntUn(IntUn::Popc, Int { bits: 32, .. }) = inst.op else { return None };
        let both = self.inst(inst.args[0])?;
        let (Op::Int(IntBin::And, _), &[a, b]) = (&both.op, &both.args[..]) else { return None };
        let is_mask = |value: Value| {
            self.inst(value).is_some_and(|inst| matches!(inst.op, Op::Special(Special::LaneMaskLe)))
        };
        if is_mask(a) { Some(b) } else { is_mask(b).then_some(a) }
    }

    /// Whether the branch before `side` compares `leader` with what is 0 to 31 in lanes 0 to 31.
    fn is_number_of_lane(&self, side: usize, leader: Value) -> bool {
        let is_number = |value: Value| self.ranges.range(value).is_some_and(|(_, most)| most <= 31);
        let sources = self
            .function
            .blocks
            .iter()
            .filter(|block| block.term.edges().into_iter().any(|edge| edge.block.index() == side));
        sources.into_iter().all(|block| {
            let Term::Branch { cond, .. } = &block.term else { return false };
            let args = self.inst(*cond).map_or(&[][..], |inst| &inst.args);
            // That it is a line of distance 1 or more, `elected` has seen.
            args.iter().all(|&arg| arg == leader || is_number(arg))
        })
    }

    /// The bits of `key` in which the lanes of a mask agree with this one; the mask has all such lanes.
    fn agreeing(&self, mask: Value, key: &mut Option<Value>, left: &mut u32) -> Option<u32> {
        *left = left.checked_sub(1)?;
        if self.ranges.constant(mask) == Some(ALL) {
            return Some(0);
        }
        let inst = self.inst(mask)?;
        match (&inst.op, &inst.args[..]) {
            (Op::Int(IntBin::And, _), &[a, b]) => {
                Some(self.agreeing(a, key, left)? | self.agreeing(b, key, left)?)
            }
            (Op::Select, &[cond, yes, no]) => {
                let (holds, yes, no) = match self.inst(cond) {
                    Some(Inst { op: Op::Not, args, .. }) => (args[0], no, yes),
                    _ => (cond, yes, no),
                };
                let inverted = self.inst(no)?;
                let is_inverse = matches!(inverted.op, Op::IntUn(IntUn::Not, _)) && inverted.args[0] == yes;
                let ballot = self.inst(yes)?;
                let (Op::Vote(VoteMode::Ballot), &[asked, all]) = (&ballot.op, &ballot.args[..]) else {
                    return None;
                };
                let is_whole = self.ranges.constant(all) == Some(ALL);
                (is_inverse && is_whole && asked == holds).then_some(())?;
                self.tested(holds, key)
            }
            _ => None,
        }
    }

    /// The bit of `key` that a condition is about: `key & bit != 0`.
    fn tested(&self, cond: Value, key: &mut Option<Value>) -> Option<u32> {
        let inst = self.inst(cond)?;
        let (Op::Icmp(Cmp::Ne, Int { bits: 32, .. }), &[part, zero]) = (&inst.op, &inst.args[..]) else {
            return None;
        };
        let part = self.inst(part)?;
        let (Op::Int(IntBin::And, _), &[a, b]) = (&part.op, &part.args[..]) else { return None };
        if self.ranges.constant(zero) != Some(0) {
            return None;
        }
        let (value, bit) = match (self.ranges.constant(a), self.ranges.constant(b)) {
            (_, Some(bit)) => (a, bit),
            (Some(bit), None) => (b, bit),
            _ => return None,
        };
        let bit = u32::try_from(bit).ok().filter(|bit| bit.is_power_of_two())?;
        (*key.get_or_insert(value) == value).then_some(bit)
    }

    /// `shfl(what the leader found) + count`, where nobody else asks for either.
    fn sum(&self, side: &Block, old: Value, leader: Value, count: Value) -> Option<Value> {
        let Term::Jump(back) = &side.term else { return None };
        let nth = back.args.iter().position(|&arg| arg == old)?;
        let meet = self.function.block(back.block);
        let found = meet.params[nth];
        let shuffled = meet.insts.iter().find_map(|inst| {
            let (Op::Shfl(ShflMode::Idx), &[from, lane, clamp, all]) = (&inst.op, &inst.args[..]) else {
                return None;
            };
            let is_whole = self.ranges.constant(clamp) == Some(31) && self.ranges.constant(all) == Some(ALL);
            (from == found && lane == leader && is_whole).then(|| inst.results[0])
        })?;
        let sum = meet.insts.iter().find_map(|inst| {
            let (Op::Int(IntBin::Add, Int { bits: 32, .. }), &[a, b]) = (&inst.op, &inst.args[..]) else {
                return None;
            };
            let both = (a, b) == (shuffled, count) || (a, b) == (count, shuffled);
            both.then(|| inst.results[0])
        })?;
        let uses = count_uses(self.function, [old, found, shuffled]);
        uses.values().all(|&uses| uses == 1).then_some(sum)
    }
}
