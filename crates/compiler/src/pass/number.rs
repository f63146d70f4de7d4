//! What is known of integers at compile time: their range over all threads, and powers of two that divide them.

use super::visit::{Definition, definitions};
use crate::ir::{Function, Int, IntBin, Op, Special, Value};

/// The threads a kernel is specialised for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threads {
    pub block: [u32; 3],
    /// Lanes per group.
    pub width: u32,
}

impl Threads {
    pub fn total(self) -> u64 {
        self.block.iter().map(|&n| u64::from(n)).product()
    }

    /// How `tid` runs along the lanes of a group in dimension `d`: `None` when neither the same nor one more per lane.
    pub fn tid_stride(self, d: usize) -> Option<i64> {
        let below: u64 = self.block[..d].iter().map(|&n| u64::from(n)).product();
        let above: u64 = self.block[d + 1..].iter().map(|&n| u64::from(n)).product();
        let width = u64::from(self.width);
        match u64::from(self.block[d]) {
            1 => Some(0),
            n if below == 1 && (n % width == 0 || above == 1) => Some(1),
            _ if below % width == 0 => Some(0),
            _ => None,
        }
    }
}

pub struct Numbers<'a> {
    function: &'a Function,
    definitions: Vec<Definition>,
    threads: Threads,
}

const DEPTH: u32 = 8;

impl<'a> Numbers<'a> {
    pub fn new(function: &'a Function, threads: Threads) -> Numbers<'a> {
        Numbers { function, definitions: definitions(function), threads }
    }

    fn inst(&self, value: Value) -> Option<&'a crate::ir::Inst> {
        match self.definitions[value.index()] {
            Definition::Inst(block, index, 0) => Some(&self.function.blocks[block].insts[index]),
            _ => None,
        }
    }

    /// The bits of a constant.
    pub fn constant(&self, value: Value) -> Option<u128> {
        let inst = self.inst(value)?;
        match inst.op {
            Op::Const(bits) => Some(bits),
            Op::Special(Special::Ntid(d)) => self.threads.block.get(usize::from(d)).map(|&n| u128::from(n)),
            Op::Zext | Op::Bitcast => self.constant(inst.args[0]),
            Op::Trunc => Some(self.constant(inst.args[0])? & mask(self.function.ty(value).bits())),
            Op::Sext => {
                let from = self.function.ty(inst.args[0]).bits();
                Some(signed(self.constant(inst.args[0])?, from) as u128 & mask(self.function.ty(value).bits()))
            }
            Op::Int(op, int) => {
                let (a, b) = (self.constant(inst.args[0])?, self.constant(inst.args[1])?);
                let bits = u32::from(int.bits);
                let result = match op {
                    IntBin::Add => a.wrapping_add(b),
                    IntBin::Sub => a.wrapping_sub(b),
                    IntBin::Mul => a.wrapping_mul(b),
                    IntBin::And => a & b,
                    IntBin::Or => a | b,
                    IntBin::Shl if b < u128::from(bits) => a << b,
                    IntBin::Shr if b < u128::from(bits) && !int.signed => a >> b,
                    IntBin::Div if b != 0 && !int.signed => a / b,
                    _ => return None,
                };
                Some(result & mask(bits))
            }
            _ => None,
        }
    }

    /// As a signed number.
    pub fn signed_constant(&self, value: Value) -> Option<i64> {
        Some(signed(self.constant(value)?, self.function.ty(value).bits()) as i64)
    }

    /// The log2 of a power of two that divides lane 0's value in every group. Exact zero gives 64.
    pub fn divisor(&self, value: Value) -> u32 {
        self.divisor_in(value, DEPTH)
    }

    fn divisor_in(&self, value: Value, depth: u32) -> u32 {
        if let Some(bits) = self.constant(value) {
            return if bits == 0 { 64 } else { bits.trailing_zeros() };
        }
        if self.function.ty(value).bits() <= 64 && self.range_in(value, depth.min(3)) == Some((0, 0)) {
            return 64;
        }
        let (Some(inst), true) = (self.inst(value), depth > 0) else { return 0 };
        let of = |index: usize| self.divisor_in(inst.args[index], depth - 1);
        match &inst.op {
            Op::Special(Special::Tid(d)) => match self.threads.tid_stride(usize::from(*d)) {
                Some(1) => self.threads.width.trailing_zeros(),
                _ => 0,
            },
            Op::Special(Special::LaneId) => {
                if self.threads.width == 32 { 64 } else { self.threads.width.trailing_zeros() }
            }
            Op::Zext | Op::Sext | Op::Bitcast => of(0),
            Op::Trunc => of(0),
            Op::Int(IntBin::Add | IntBin::Sub | IntBin::Or | IntBin::Xor | IntBin::Min | IntBin::Max, _) => {
                of(0).min(of(1))
            }
            Op::Int(IntBin::And, _) => of(0).max(of(1)),
            Op::Int(IntBin::Mul, _) | Op::MulWide(_) => (of(0) + of(1)).min(64),
            Op::Int(IntBin::Shl, _) => match self.constant(inst.args[1]) {
                Some(count) if count < 64 => (of(0) + count as u32).min(64),
                _ => of(0),
            },
            Op::SharedAddr(_) | Op::LocalAddr(_) => 0,
            _ => 0,
        }
    }

    /// Smallest and largest value over all threads, read as unsigned.
    pub fn range(&self, value: Value) -> Option<(u64, u64)> {
        self.range_in(value, DEPTH)
    }

    fn range_in(&self, value: Value, depth: u32) -> Option<(u64, u64)> {
        let bits = self.function.ty(value).bits();
        if let Some(bits) = self.constant(value) {
            let bits = u64::try_from(bits).ok()?;
            return Some((bits, bits));
        }
        let full = (bits < 64).then(|| (0, mask(bits) as u64));
        let (Some(inst), true) = (self.inst(value), depth > 0) else { return full };
        let of = |index: usize| self.range_in(inst.args[index], depth - 1);
        let fits = |low: u64, high: u64| (u128::from(high) <= mask(bits)).then_some((low, high));
        let found = match &inst.op {
            Op::Special(register) => match register {
                Special::Tid(d) => Some((0, u64::from(*self.threads.block.get(usize::from(*d))?).saturating_sub(1))),
                Special::LaneId => Some((0, 31)),
                Special::WarpId => Some((0, 31)),
                Special::Ctaid(0) => Some((0, (1 << 31) - 2)),
                Special::Nctaid(0) => Some((0, (1 << 31) - 1)),
                Special::Ctaid(_) | Special::Nctaid(_) => Some((0, 65535)),
                _ => None,
            },
            Op::SharedAddr(_) => Some((0, 1 << 18)),
            Op::Zext | Op::Bitcast => of(0),
            Op::Sext => {
                let from = self.function.ty(inst.args[0]).bits();
                of(0).filter(|&(_, high)| u128::from(high) <= mask(from) >> 1)
            }
            Op::Trunc => of(0).filter(|&(_, high)| u128::from(high) <= mask(bits)),
            Op::Int(op, int) => self.binary(*op, *int, inst, depth).and_then(|(low, high)| fits(low, high)),
            Op::MulWide(int) => {
                let positive = |range: &(u64, u64)| !int.signed || range.1 <= (mask(u32::from(int.bits)) >> 1) as u64;
                let (a, b) = (of(0).filter(positive), of(1).filter(positive));
                a.zip(b).and_then(|(a, b)| Some((a.0.checked_mul(b.0)?, a.1.checked_mul(b.1)?)))
            }
            _ => None,
        };
        found.or(full)
    }

    fn binary(&self, op: IntBin, int: Int, inst: &crate::ir::Inst, depth: u32) -> Option<(u64, u64)> {
        let of = |index: usize| self.range_in(inst.args[index], depth - 1);
        let half = (mask(u32::from(int.bits)) >> 1) as u64;
        let known_positive = |range: &(u64, u64)| !int.signed || range.1 <= half;
        match op {
            IntBin::Add => {
                let (a, b) = (of(0)?, of(1)?);
                Some((a.0 + b.0, a.1.checked_add(b.1)?))
            }
            IntBin::Mul => {
                let (a, b) = (of(0)?, of(1)?);
                Some((a.0.checked_mul(b.0)?, a.1.checked_mul(b.1)?))
            }
            IntBin::Shl => {
                let count = self.constant(inst.args[1]).filter(|&count| count < 32)? as u32;
                let a = of(0)?;
                Some((a.0.checked_mul(1 << count)?, a.1.checked_mul(1 << count)?))
            }
            IntBin::Shr => {
                let count = self.constant(inst.args[1]).filter(|&count| count < 64)? as u32;
                let a = of(0).filter(known_positive)?;
                Some((a.0 >> count, a.1 >> count))
            }
            IntBin::And => match (of(0), of(1)) {
                (Some(a), Some(b)) => Some((0, a.1.min(b.1))),
                (a, b) => a.or(b).map(|a| (0, a.1)),
            },
            IntBin::Or | IntBin::Xor => {
                let (a, b) = (of(0)?, of(1)?);
                Some((0, (a.1 | b.1).checked_add(1)?.checked_next_power_of_two()? - 1))
            }
            IntBin::Div => {
                let by = self.constant(inst.args[1]).and_then(|by| u64::try_from(by).ok()).filter(|&by| by != 0)?;
                let a = of(0).filter(known_positive)?;
                (!int.signed || by <= half).then_some((a.0 / by, a.1 / by))
            }
            IntBin::Rem => {
                let by = self.constant(inst.args[1]).and_then(|by| u64::try_from(by).ok()).filter(|&by| by != 0)?;
                let a = of(0).filter(known_positive)?;
                (!int.signed || by <= half).then_some((0, a.1.min(by - 1)))
            }
            IntBin::Min => {
                let (a, b) = (of(0).filter(known_positive)?, of(1).filter(known_positive)?);
                Some((a.0.min(b.0), a.1.min(b.1)))
            }
            _ => None,
        }
    }
}

fn mask(bits: u32) -> u128 {
    if bits >= 128 { u128::MAX } else { (1 << bits) - 1 }
}

fn signed(value: u128, bits: u32) -> i128 {
    let shift = 128 - bits;
    ((value << shift) as i128) >> shift
}
