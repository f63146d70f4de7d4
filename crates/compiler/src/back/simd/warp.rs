//! Warp collectives: a group is a warp, its lanes are in registers. `classify` has proved that the active lanes are the
//! members, so a member mask is not looked at again unless lanes give different ones.

use super::Emitter;
use super::value::PURE;
use crate::back::llvm::{Builder, Type, Val};
use crate::ir::{Inst, Op, ReduxOp, ShflMode, Value, VoteMode};

impl Emitter<'_> {
    pub(super) fn collective(&mut self, inst: &Inst) -> Result<(), String> {
        if self.lanes != 32 {
            return Err("warp collectives need groups of 32".to_owned());
        }
        match &inst.op {
            Op::Shfl(mode) => self.shfl(*mode, inst),
            Op::Vote(mode) => self.vote(*mode, inst),
            Op::ActiveMask => {
                let mask = self.active();
                let bits = self.bits_of(&mask);
                self.define_from_scalar(inst.results[0], bits);
            }
            Op::WarpSync => {}
            Op::Redux(op, int) => self.redux(*op, int.signed, inst),
            Op::Elect => self.elect(inst),
            Op::Match { all, .. } => self.matches(*all, inst),
            Op::Mma(_) => self.mma(&[inst])?,
            Op::Wgmma(wgmma) => self.wgmma(wgmma, inst)?,
            Op::MatrixRows(rows) => self.rows_of_matrices(rows, inst),
            op => return Err(format!("setting `simd` does not have {op:?}")),
        }
        Ok(())
    }

    fn constant(&self, value: Value) -> Option<u32> {
        self.here().ranges.constant(value).and_then(|bits| u32::try_from(bits).ok())
    }

    /// `shfl.sync.mode d|p, a, b, c, members`
    fn shfl(&mut self, mode: ShflMode, inst: &Inst) {
        if self.divergence(inst.results[0]).is_uniform() {
            return self.broadcast(inst);
        }
        let a = self.vector(inst.args[0]);
        let known = self.constant(inst.args[1]).zip(self.constant(inst.args[2]));
        let (val, in_range) = match known {
            Some((b, c)) => {
                let sources: Vec<(u32, bool)> = (0..32).map(|lane| source(mode, lane, b, c)).collect();
                let picks: Vec<String> = sources.iter().map(|(from, _)| format!("i32 {from}")).collect();
                let flags: Vec<String> = sources.iter().map(|(_, ok)| format!("i1 {ok}")).collect();
                let val = self.b.assign(
                    a.ty,
                    format_args!(
                        "shufflevector {}, {} poison, <32 x i32> <{}>",
                        a.typed(),
                        a.ty,
                        picks.join(", ")
                    ),
                );
                (val, Val::new(self.mask_ty(), format!("<{}>", flags.join(", "))))
            }
            None => self.shfl_by(mode, &a, inst),
        };
        self.define_vector(inst.results[0], val);
        if let Some(&flag) = inst.results.get(1) {
            self.define_vector(flag, in_range);
        }
    }

    /// All lanes read one.
    fn broadcast(&mut self, inst: &Inst) {
        let val = if self.divergence(inst.args[0]).is_uniform() {
            self.scalar(inst.args[0])
        } else {
            let (a, lane) = (self.vector(inst.args[0]), self.scalar(inst.args[1]));
            let lane = self.b.bin_int("and", &lane, 31);
            let lane = self.b.resize(&lane, 64, false);
            self.extract(&a, &lane.text)
        };
        self.define_scalar(inst.results[0], val);
        if let Some(&flag) = inst.results.get(1) {
            self.define_scalar(flag, Val::new(Type::int(1, 1), "true"));
        }
    }

    /// The lane to read is computed.
    fn shfl_by(&mut self, mode: ShflMode, a: &Val, inst: &Inst) -> (Val, Val) {
        let (b, c) = (self.vector(inst.args[1]), self.vector(inst.args[2]));
        let lanes = self.iota(32, 1);
        let b = self.b.bin_int("and", &b, 31);
        let clamp = self.b.bin_int("and", &c, 31);
        let segment = self.b.bin_int("lshr", &c, 8);
        let segment = self.b.bin_int("and", &segment, 31);
        let outside = self.b.not(&segment);
        let low = self.b.and(&lanes, &segment);
        let top = self.b.and(&clamp, &outside);
        let limit = self.b.or(&low, &top);
        let from = match mode {
            ShflMode::Up => self.b.sub(&lanes, &b),
            ShflMode::Down => self.b.add(&lanes, &b),
            ShflMode::Bfly => self.b.xor(&lanes, &b),
            ShflMode::Idx => {
                let inner = self.b.and(&b, &outside);
                self.b.or(&low, &inner)
            }
        };
        let in_range = self.b.icmp(if mode == ShflMode::Up { "sge" } else { "sle" }, &from, &limit);
        let from = self.b.select(&in_range, &from, &lanes);
        let from = self.b.bin_int("and", &from, 31);
        if self.wide_gathers && a.ty.bits() == 32 {
            return (self.permute(a, &from), in_range);
        }
        let buffer = self.spill(0, a);
        let mut val = Val::new(a.ty, "poison");
        for lane in 0..32u32 {
            let lane = lane.to_string();
            let index = self.extract(&from, &lane);
            let item = self.item(&buffer, a.ty, &index);
            val = self.insert(&val, &lane, &item);
        }
        (val, in_range)
    }

    /// Of 32 lanes each takes the one of `a` that it names by a number below 32: two permutations of two registers each.
    fn permute(&mut self, a: &Val, from: &Val) -> Val {
        let words = self.b.bitcast(a, a.ty.ints(32));
        let [low, high] = [0, 16].map(|first| self.half(&words, first));
        let [x, y] = [0, 16].map(|first| {
            let from = self.half(from, first);
            self.picked(&low, &from, &high)
        });
        let picks: Vec<String> = (0..32).map(|lane| format!("i32 {lane}")).collect();
        let whole = self.b.assign(
            words.ty,
            format_args!("shufflevector {}, {}, <32 x i32> <{}>", x.typed(), y.typed(), picks.join(", ")),
        );
        self.b.bitcast(&whole, a.ty)
    }

    /// 16 words of two registers: each lane takes the one that it names by a number below 32.
    pub(super) fn picked(&mut self, low: &Val, from: &Val, high: &Val) -> Val {
        let name = "llvm.x86.avx512.vpermi2var.d.512";
        let half = Type::int(32, 16);
        self.b.declare(name, format!("declare {half} @{name}({half}, {half}, {half})"));
        let picked = format!("call {half} @{name}({}, {}, {})", low.typed(), from.typed(), high.typed());
        self.b.assign(half, picked)
    }

    /// 16 of 32 lanes.
    pub(super) fn half(&mut self, whole: &Val, first: u32) -> Val {
        let picks: Vec<String> = (first..first + 16).map(|lane| format!("i32 {lane}")).collect();
        self.b.assign(
            Type::new(whole.ty.scalar, 16),
            format_args!(
                "shufflevector {}, {} poison, <16 x i32> <{}>",
                whole.typed(),
                whole.ty,
                picks.join(", ")
            ),
        )
    }

    /// The members that each lane names, when lanes name different ones.
    fn members(&mut self, inst: &Inst) -> Option<Val> {
        let mask = *inst.args.last()?;
        if self.divergence(mask).is_uniform() { None } else { Some(self.vector(mask)) }
    }

    /// Whether one of a lane's members is in `mask`, for each lane.
    fn any_member(&mut self, members: &Val, mask: &Val) -> Val {
        let both = self.of_members(members, mask);
        self.b.icmp_int("ne", &both, 0)
    }

    /// A mask's bits that stand for a lane's members, for each lane.
    fn of_members(&mut self, members: &Val, mask: &Val) -> Val {
        let bits = self.bits_of(mask);
        let bits = self.splat(&bits);
        self.b.and(members, &bits)
    }

    fn elect(&mut self, inst: &Inst) {
        let lanes = self.iota(32, 1);
        let leaders = match self.members(inst) {
            None => {
                let leader = self.first_active();
                let leader = self.b.resize(&leader, 32, false);
                self.define_from_scalar(inst.results[0], leader.clone());
                self.splat(&leader)
            }
            Some(members) => {
                let active = self.active();
                let members = self.of_members(&members, &active);
                let no = Val::new(Type::int(1, 1), "false");
                let leaders = self.b.intrinsic("cttz", &[members.ty], members.ty, &[&members, &no]);
                self.define_vector(inst.results[0], leaders.clone());
                leaders
            }
        };
        if let Some(&is_leader) = inst.results.get(1) {
            let val = self.b.icmp("eq", &lanes, &leaders);
            self.define_vector(is_leader, val);
        }
    }

    fn vote_in_parts(&mut self, mode: VoteMode, members: &Val, holds: &Val, fails: &Val) -> Val {
        match mode {
            VoteMode::Ballot => self.of_members(members, holds),
            VoteMode::Any => self.any_member(members, holds),
            VoteMode::All => {
                let some = self.any_member(members, fails);
                self.b.not(&some)
            }
            VoteMode::Uni => {
                let (yes, no) = (self.any_member(members, holds), self.any_member(members, fails));
                let both = self.b.and(&yes, &no);
                self.b.not(&both)
            }
        }
    }

    fn vote(&mut self, mode: VoteMode, inst: &Inst) {
        let predicate = self.vector(inst.args[0]);
        let active = self.active();
        let holds = self.b.and(&predicate, &active);
        let against = self.b.not(&predicate);
        let fails = self.b.and(&against, &active);
        if let Some(members) = self.members(inst) {
            let val = self.vote_in_parts(mode, &members, &holds, &fails);
            return self.define_vector(inst.results[0], val);
        }
        let val = match mode {
            VoteMode::Ballot => {
                let bits = self.bits_of(&holds);
                self.in_a_register(bits)
            }
            VoteMode::Any => self.any(&holds),
            VoteMode::All => {
                let some = self.any(&fails);
                self.b.not(&some)
            }
            VoteMode::Uni => {
                let (yes, no) = (self.any(&holds), self.any(&fails));
                let both = self.b.and(&yes, &no);
                self.b.not(&both)
            }
        };
        self.define_from_scalar(inst.results[0], val);
    }

    /// The number as one that LLVM does not know to be a mask: it would widen the mask to 64 bits to spread it over the lanes, and
    /// invert it as a mask, which takes twice as long.
    fn in_a_register(&mut self, bits: Val) -> Val {
        if !self.wide_gathers {
            return bits;
        }
        self.b.assign(bits.ty, format_args!("call {} asm \"\", \"=r,0\"({}) {PURE}", bits.ty, bits.typed()))
    }

    fn redux(&mut self, op: ReduxOp, signed: bool, inst: &Inst) {
        let vals = self.vector(inst.args[0]);
        let (name, neutral) = match (op, signed) {
            (ReduxOp::Add, _) => ("add", 0),
            (ReduxOp::And, _) => ("and", 0xffff_ffff),
            (ReduxOp::Or, _) => ("or", 0),
            (ReduxOp::Xor, _) => ("xor", 0),
            (ReduxOp::Min, false) => ("umin", 0xffff_ffff),
            (ReduxOp::Max, false) => ("umax", 0),
            (ReduxOp::Min, true) => ("smin", 0x7fff_ffff),
            (ReduxOp::Max, true) => ("smax", 0x8000_0000),
        };
        let active = self.active();
        let neutral = Builder::bits(vals.ty, neutral);
        let one = Type::new(vals.ty.scalar, 1);
        let reduced = |me: &mut Self, members: &Val| {
            let vals = me.blend(members, &vals, &neutral);
            me.b.intrinsic(&format!("vector.reduce.{name}"), &[vals.ty], one, &[&vals])
        };
        let Some(members) = self.members(inst) else {
            let val = reduced(self, &active);
            return self.define_from_scalar(inst.results[0], val);
        };
        let val = self.by_members(&members, vals.ty, |me, members| reduced(me, members));
        self.define_vector(inst.results[0], val);
    }

    /// A vector of what `make` gives for the active members that each lane names.
    fn by_members(&mut self, members: &Val, ty: Type, make: impl Fn(&mut Self, &Val) -> Val) -> Val {
        let active = self.active();
        let masks = self.spill(0, members);
        let zero = Builder::bits(ty, 0);
        let out = self.spill(1, &zero);
        let (mask_ty, masks_ty) = (self.mask_ty(), members.ty);
        self.for_lanes(|me, lane| {
            let mask = me.item(&masks, masks_ty, lane);
            let mask = me.b.bitcast(&mask, mask_ty);
            let mask = me.b.and(&mask, &active);
            let val = make(me, &mask);
            me.set_item(&out, lane, &val);
        });
        self.reload(&out, ty)
    }

    fn matches(&mut self, all: bool, inst: &Inst) {
        let vals = self.vector(inst.args[0]);
        let active = self.active();
        let members = self.members(inst);
        if let (true, Some(members)) = (all, &members) {
            return self.match_all_in_parts(members, &vals, inst);
        }
        if all {
            let first = self.first_active();
            let one = self.extract(&vals, &first.text.clone());
            let ones = self.splat(&one);
            let differ = self.b.icmp("ne", &vals, &ones);
            let differ = self.b.and(&differ, &active);
            let some = self.any(&differ);
            let same = self.b.not(&some);
            let bits = self.bits_of(&active);
            let mask = self.b.select(&same, &bits, &Builder::bits(bits.ty, 0));
            self.define_from_scalar(inst.results[0], mask);
            if let Some(&flag) = inst.results.get(1) {
                self.define_from_scalar(flag, same);
            }
            return;
        }
        let mask_ty = Type::int(32, self.lanes);
        let buffer = self.spill(0, &vals);
        let zero = Builder::bits(mask_ty, 0);
        let out = self.spill(1, &zero);
        let vals_ty = vals.ty;
        self.for_lanes(|me, lane| {
            let one = me.item(&buffer, vals_ty, lane);
            let ones = me.splat(&one);
            let same = me.b.icmp("eq", &vals, &ones);
            let same = me.b.and(&same, &active);
            let bits = me.bits_of(&same);
            me.set_item(&out, lane, &bits);
        });
        let val = self.reload(&out, mask_ty);
        let val = match members {
            Some(members) => self.b.and(&val, &members),
            None => val,
        };
        self.define_vector(inst.results[0], val);
    }

    fn match_all_in_parts(&mut self, members: &Val, vals: &Val, inst: &Inst) {
        let ty = Type::int(32, self.lanes);
        let mask = self.by_members(members, ty, |me, mask| {
            let bits = me.bits_of(mask);
            let no = Val::new(Type::int(1, 1), "false");
            let first = me.b.intrinsic("cttz", &[bits.ty], bits.ty, &[&bits, &no]);
            // No member at all: whichever lane.
            let first = me.b.bin_int("and", &first, 31);
            let first = me.b.resize(&first, 64, false);
            let one = me.extract(vals, &first.text);
            let ones = me.splat(&one);
            let differ = me.b.icmp("ne", vals, &ones);
            let differ = me.b.and(&differ, mask);
            let some = me.any(&differ);
            me.b.select(&some, &Builder::bits(bits.ty, 0), &bits)
        });
        if let Some(&flag) = inst.results.get(1) {
            let same = self.b.icmp_int("ne", &mask, 0);
            self.define_vector(flag, same);
        }
        self.define_vector(inst.results[0], mask);
    }
}

/// The lane that lane `lane` reads from, and whether it lies in its segment.
fn source(mode: ShflMode, lane: u32, b: u32, c: u32) -> (u32, bool) {
    let (b, clamp, segment) = (b & 31, c & 31, c >> 8 & 31);
    let low = lane & segment;
    let limit = (low | (clamp & !segment)) as i32;
    let from = match mode {
        ShflMode::Up => lane as i32 - b as i32,
        ShflMode::Down => (lane + b) as i32,
        ShflMode::Bfly => (lane ^ b) as i32,
        ShflMode::Idx => (low | (b & !segment)) as i32,
    };
    let ok = if mode == ShflMode::Up { from >= limit } else { from <= limit };
    (if ok { from as u32 & 31 } else { lane }, ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shuffle_down_stops_at_its_segment() {
        // Width 8: c = (32 - 8) << 8 | 31
        let c = 24 << 8 | 31;
        assert_eq!(source(ShflMode::Down, 6, 1, c), (7, true));
        assert_eq!(source(ShflMode::Down, 7, 1, c), (7, false));
        assert_eq!(source(ShflMode::Up, 8, 1, 24 << 8), (8, false));
        assert_eq!(source(ShflMode::Idx, 13, 2, c), (10, true));
        assert_eq!(source(ShflMode::Bfly, 3, 16, 31), (19, true));
    }
}
