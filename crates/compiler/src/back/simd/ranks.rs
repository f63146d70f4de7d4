//! Lanes of a warp that count keys together ([`crate::pass::ranks`]) do it one after the other here: a load, an addition and a store for
//! each lane take less than a ballot for each bit of the keys.

use super::{Copy, Emitter};
use crate::back::llvm::{Builder, Type, Val};
use crate::ir::{Edge, Inst, Op, Term, Value};
use crate::pass::ranks::Rank;

impl Emitter<'_> {
    /// In U, the side of a branch that the last lane of each key goes, and what all lanes get where the sides meet. False when it is
    /// not like that.
    pub(super) fn count_in_turn(
        &mut self,
        at: usize,
        (cond, holds): (Value, bool),
        (side, other): (&Edge, &Edge),
        past: &[super::control::Carried],
    ) -> Result<bool, String> {
        if self.lanes != 32 || !self.is_converted(at, side, other) {
            return Ok(false);
        }
        if self.has_checks(self.here().function.block(other.block)) {
            return Ok(false);
        }
        let from = side.block.index();
        let Some(rank) = self.view().rank(from).filter(|rank| self.divergence(rank.sum).is_varying()) else {
            return Ok(false);
        };
        let block = self.block(from);
        let Term::Jump(back) = &block.term else { return Ok(false) };
        let mut pure = block.insts.clone();
        let atomic = pure.remove(rank.atomic);
        self.instructions(from, &pure)?;
        let sums = self.counts(&atomic, &rank);
        let slot = format!("%counted{}_{}", self.region, rank.sum.0);
        self.alloca(&slot, sums.ty);
        self.store_slot(&slot, &sums);
        self.ranked.insert(rank.sum, slot);
        // What the leaders find is nobody's business any more, nor who they are.
        self.define_vector(atomic.results[0], Builder::bits(sums.ty, 0));
        let cond = self.vector(cond);
        let mask = if holds { cond } else { self.b.not(&cond) };
        let mut out = self.carried(back);
        self.meet(&mask, &mut out, past);
        self.follow(at, back);
        Ok(true)
    }

    /// Gives a sum that has been counted.
    pub(super) fn define_counted(&mut self, inst: &Inst) -> bool {
        let &[sum] = &inst.results[..] else { return false };
        let Some(slot) = self.ranked.get(&sum).cloned().filter(|_| self.copy == Copy::Unmasked) else {
            return false;
        };
        let ty = self.vector_ty(self.ty(sum));
        let sums = self.load_slot(&slot, ty);
        self.define_vector(sum, sums);
        true
    }

    /// Adds 1 at each lane's place, by a function that all such counts call.
    fn counts(&mut self, atomic: &Inst, rank: &Rank) -> Val {
        let Op::Atomic { space, offset, .. } = atomic.op else { unreachable!("that is what was found") };
        let base = self.pointer(space, &self.i64(0), offset);
        let places = self.vector(atomic.args[0]);
        let places = self.narrowed(atomic.args[0], &places);
        let keys = self.vector(rank.key);
        let ty = Type::int(32, self.lanes);
        let name = format!("count.{:x}", rank.bits);
        let bits = rank.bits;
        let sums = self.outlined(&name, &[base, places, keys], &[ty], |me, params| {
            let places = me.leaders_places(&params[1], &params[2], bits);
            vec![me.count_each(&params[0], &places)]
        });
        sums.into_iter().next().unwrap_or_else(|| Builder::bits(ty, 0))
    }

    /// Each lane's place; where a key has other bits than those that were looked at, that of the last lane with the same of those.
    fn leaders_places(&mut self, places: &Val, keys: &Val, bits: u32) -> Val {
        let more = self.b.bin_int("and", keys, i128::from(!bits));
        let more = self.b.icmp_int("ne", &more, 0);
        let some = self.any(&more);
        let found = self.fork(
            &some,
            |me| {
                let looked_at = me.b.bin_int("and", keys, i128::from(bits));
                let all = me.spill(0, places);
                let each = me.spill(1, &looked_at);
                let out = me.scratch(2, places.ty);
                me.for_lanes(|me, lane| {
                    let one = me.item(&each, keys.ty, lane);
                    let ones = me.splat(&one);
                    let same = me.b.icmp("eq", &looked_at, &ones);
                    let same = me.bits_of(&same);
                    let yes = Val::new(Type::int(1, 1), "true");
                    let zeros = me.b.intrinsic("ctlz", &[same.ty], same.ty, &[&same, &yes]);
                    let last = me.b.sub(&Builder::int(zeros.ty, 31), &zeros);
                    let last = me.b.resize(&last, 64, false);
                    let place = me.item(&all, places.ty, &last);
                    me.set_item(&out, lane, &place);
                });
                vec![me.reload(&out, places.ty)]
            },
            |_| vec![places.clone()],
        );
        found.into_iter().next().unwrap_or_else(|| places.clone())
    }

    fn count_each(&mut self, base: &Val, places: &Val) -> Val {
        let (one, all) = (Type::int(32, 1), Type::int(32, self.lanes));
        let out = self.scratch(3, all);
        for (lane, place) in self.lane_offsets(places).iter().enumerate() {
            let at = self
                .b
                .assign(Type::ptr(), format_args!("getelementptr i8, {}, {}", base.typed(), place.typed()));
            let old = self.b.assign(one, format_args!("load {one}, ptr {}, align 4", at.text));
            let new = self.b.bin_int("add", &old, 1);
            self.b.inst(format_args!("store {}, ptr {}, align 4", new.typed(), at.text));
            let lane = self.i64(lane as u64);
            self.set_item(&out, &lane, &new);
        }
        self.reload(&out, all)
    }
}
