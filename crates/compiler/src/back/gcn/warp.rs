//! Threads of a warp together. A wave of 64 lanes holds two warps: masks and lanes are those of the own half.
//!
//! Members that wait for each other stand in one place of the program (`.sync` names them), and lanes that parted meet
//! again there, so whoever is active is there. Everything here is by ballots and by reading other lanes' registers.

use super::code::{Code, Result};
use crate::back::llvm::{Builder, Scalar, Type, Unsupported, Val};
use crate::ir::{Int, Op, ReduxOp, ShflMode, VoteMode};

impl Code<'_> {
    pub fn collective(&mut self, op: &Op, args: &[Val]) -> Result<Vec<Val>> {
        Ok(match op {
            Op::Shfl(mode) => self.shfl(*mode, args),
            Op::Vote(mode) => vec![self.vote(*mode, &args[0], &args[1])],
            Op::Match { all, bits } => self.matches(*all, *bits, &args[0], &args[1]),
            Op::Redux(op, int) => vec![self.redux(*op, *int, &args[0], &args[1])],
            Op::ActiveMask => vec![self.active()],
            Op::Elect => {
                let leader = self.b.same_defined("cttz", &args[0]);
                let lane = self.lane();
                let is_leader = self.b.icmp("eq", &lane, &leader);
                vec![leader, is_leader]
            }
            Op::WarpSync => {
                // Lanes of a wave run together; what they wrote must be in order for each other.
                self.b.inst("fence syncscope(\"wavefront\") acq_rel");
                self.b.call_void("llvm.amdgcn.wave.barrier", "", &[]);
                vec![]
            }
            Op::Mma(mma) => self.by_lanes(mma, args)?,
            _ => return Err(Unsupported(String::new())),
        })
    }

    pub fn is_wide(&self) -> bool {
        self.unit.target.wave() == 64
    }

    /// The lane's number in its wave.
    pub fn wave_lane(&mut self) -> Val {
        let word = Type::int(32, 1);
        let (ones, zero) = (Builder::int(word, -1), Builder::int(word, 0));
        let low = self.b.intrinsic("amdgcn.mbcnt.lo", &[], word, &[&ones, &zero]);
        if self.is_wide() { self.b.intrinsic("amdgcn.mbcnt.hi", &[], word, &[&ones, &low]) } else { low }
    }

    /// The lane's number in its warp.
    pub fn lane(&mut self) -> Val {
        let lane = self.wave_lane();
        if self.shares_wave() { self.b.bin_int("and", &lane, 31) } else { lane }
    }

    /// Bits of the warp's active lanes whose predicate holds.
    pub fn ballot(&mut self, predicate: &Val) -> Val {
        let wave = Type::int(self.unit.target.wave(), 1);
        let all = self.b.intrinsic("amdgcn.ballot", &[wave], wave, &[predicate]);
        if !self.is_wide() {
            return all;
        }
        if !self.shares_wave() {
            return self.b.resize(&all, 32, false);
        }
        let first = self.first();
        let first = self.b.resize(&first, 64, false);
        let own = self.b.bin("lshr", &all, &first);
        self.b.resize(&own, 32, false)
    }

    /// The warp's first lane in its wave.
    fn first(&mut self) -> Val {
        let lane = self.wave_lane();
        self.b.bin_int("and", &lane, 32)
    }

    pub fn active(&mut self) -> Val {
        self.ballot(&Builder::int(Type::int(1, 1), 1))
    }

    /// The 32-bit `value` that lane `from` of the warp has.
    pub fn read_lane(&mut self, value: &Val, from: &Val) -> Val {
        let mut lane = from.clone();
        if self.shares_wave() {
            let first = self.first();
            lane = self.b.or(&lane, &first);
        }
        self.read_wave_lane(value, &lane)
    }

    /// The 32-bit `value` that lane `lane` of the wave has.
    pub fn read_wave_lane(&mut self, value: &Val, lane: &Val) -> Val {
        let at = self.b.bin_int("shl", lane, 2);
        self.b.intrinsic("amdgcn.ds.bpermute", &[], value.ty, &[&at, value])
    }

    /// `shfl.sync.mode d|p, a, b, c`: c holds the clamp in its low bits and the segment mask in bits 8 to 12.
    fn shfl(&mut self, mode: ShflMode, args: &[Val]) -> Vec<Val> {
        let [value, b, c] = [&args[0], &args[1], &args[2]];
        let value_bits = self.b.to_bits(value);
        let lane = self.lane();
        let b = self.b.bin_int("and", b, 31);
        let clamp = self.b.bin_int("and", c, 31);
        let segment = self.b.bin_int("lshr", c, 8);
        let segment = self.b.bin_int("and", &segment, 31);
        let inverse = self.b.bin_int("xor", &segment, 31);
        let least = self.b.and(&lane, &segment);
        let rest = self.b.and(&clamp, &inverse);
        let most = self.b.or(&least, &rest);
        let (from, is_inside) = match mode {
            ShflMode::Up => {
                let from = self.b.sub(&lane, &b);
                let inside = self.b.icmp("sge", &from, &most);
                (from, inside)
            }
            ShflMode::Down => {
                let from = self.b.add(&lane, &b);
                let inside = self.b.icmp("sle", &from, &most);
                (from, inside)
            }
            ShflMode::Bfly => {
                let from = self.b.xor(&lane, &b);
                let inside = self.b.icmp("sle", &from, &most);
                (from, inside)
            }
            ShflMode::Idx => {
                let offset = self.b.and(&b, &inverse);
                let from = self.b.or(&least, &offset);
                let inside = self.b.icmp("sle", &from, &most);
                (from, inside)
            }
        };
        let from = self.b.select(&is_inside, &from, &lane);
        let read = self.read_lane(&value_bits, &from);
        let read = self.b.bitcast(&read, value.ty);
        vec![read, is_inside]
    }

    fn vote(&mut self, mode: VoteMode, predicate: &Val, members: &Val) -> Val {
        let holds = self.ballot(predicate);
        let holds = self.b.and(&holds, members);
        if mode == VoteMode::Ballot {
            return holds;
        }
        let any = self.b.icmp_int("ne", &holds, 0);
        if mode == VoteMode::Any {
            return any;
        }
        let not = self.b.not(predicate);
        let fails = self.ballot(&not);
        let fails = self.b.and(&fails, members);
        let all = self.b.icmp_int("eq", &fails, 0);
        if mode == VoteMode::All {
            return all;
        }
        let none = self.b.not(&any);
        self.b.or(&all, &none)
    }

    /// Bit by bit: the lanes that have the same bit remain.
    fn matches(&mut self, all: bool, bits: u8, value: &Val, members: &Val) -> Vec<Val> {
        let value = self.b.to_bits(value);
        let active = self.active();
        let mut same = self.b.and(&active, members);
        let group = same.clone();
        for bit in 0..u32::from(bits) {
            let one = self.b.bin_int("and", &value, 1i128 << bit);
            let is_set = self.b.icmp_int("ne", &one, 0);
            let set = self.ballot(&is_set);
            let clear = self.b.not(&set);
            let like_me = self.b.select(&is_set, &set, &clear);
            same = self.b.and(&same, &like_me);
        }
        if !all {
            return vec![same];
        }
        let is_all = self.b.icmp("eq", &same, &group);
        let none = Builder::int(group.ty, 0);
        let mask = self.b.select(&is_all, &group, &none);
        vec![mask, is_all]
    }

    /// One member after the other. Lanes beside the members read what does not count.
    fn redux(&mut self, op: ReduxOp, int: Int, value: &Val, members: &Val) -> Val {
        let value = self.b.to_bits(value);
        let ty = value.ty;
        let start = match (op, int.signed) {
            (ReduxOp::Add | ReduxOp::Or | ReduxOp::Xor, _) | (ReduxOp::Max, false) => 0,
            (ReduxOp::And, _) | (ReduxOp::Min, false) => 0xffff_ffff,
            (ReduxOp::Min, true) => 0x7fff_ffff,
            (ReduxOp::Max, true) => 0x8000_0000,
        };
        let neutral = Builder::bits(ty, start);
        let mut sum = neutral.clone();
        for lane in 0..32 {
            let other = self.read_lane(&value, &Builder::int(ty, lane));
            let bit = self.b.bin_int("and", members, 1i128 << lane);
            let is_member = self.b.icmp_int("ne", &bit, 0);
            let other = self.b.select(&is_member, &other, &neutral);
            sum = match (op, int.signed) {
                (ReduxOp::Add, _) => self.b.add(&sum, &other),
                (ReduxOp::And, _) => self.b.and(&sum, &other),
                (ReduxOp::Or, _) => self.b.or(&sum, &other),
                (ReduxOp::Xor, _) => self.b.xor(&sum, &other),
                (ReduxOp::Min, true) => self.b.same("smin", &[&sum, &other]),
                (ReduxOp::Min, false) => self.b.same("umin", &[&sum, &other]),
                (ReduxOp::Max, true) => self.b.same("smax", &[&sum, &other]),
                (ReduxOp::Max, false) => self.b.same("umax", &[&sum, &other]),
            };
        }
        debug_assert_eq!(sum.ty.scalar, Scalar::Int(32));
        sum
    }
}
