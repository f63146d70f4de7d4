//! What is known of integers at compile time: their range over all threads, and powers of two that divide them.

use crate::ir::{CLUSTER_SHIFT, Function, Inst, Int, IntBin, Op, Special, Value};

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
            n if below == 1 && (n.is_multiple_of(width) || above == 1) => Some(1),
            _ if below.is_multiple_of(width) => Some(0),
            _ => None,
        }
    }
}

/// Facts about every value of a function that a chain of pure operations makes.
#[derive(Clone, Debug)]
pub struct Numbers {
    constants: Vec<Option<u128>>,
    ranges: Vec<Option<(u64, u64)>>,
    divisors: Vec<u32>,
}

struct Finder<'a> {
    function: &'a Function,
    threads: Threads,
    found: Numbers,
}

impl Numbers {
    pub fn of(function: &Function, threads: Threads) -> Numbers {
        let n = function.values.len();
        let full = |ty: &crate::ir::Ty| (ty.bits() < 64).then(|| (0, mask(ty.bits()) as u64));
        let found = Numbers {
            constants: vec![None; n],
            ranges: function.values.iter().map(full).collect(),
            divisors: vec![0; n],
        };
        let mut finder = Finder { function, threads, found };
        for id in function.reverse_post_order() {
            for inst in function.block(id).insts.iter().filter(|inst| inst.results.len() == 1) {
                finder.look_at(inst);
            }
        }
        finder.found
    }

    /// The bits of a constant.
    pub fn constant(&self, value: Value) -> Option<u128> {
        self.constants[value.index()]
    }

    /// The log2 of a power of two that divides lane 0's value in every group. Exact zero gives 64.
    pub fn divisor(&self, value: Value) -> u32 {
        self.divisors[value.index()]
    }

    /// Smallest and largest value over all threads, read as unsigned.
    pub fn range(&self, value: Value) -> Option<(u64, u64)> {
        self.ranges[value.index()]
    }
}

impl Finder<'_> {
    fn look_at(&mut self, inst: &Inst) {
        let result = inst.results[0];
        let bits = self.function.ty(result).bits();
        if let Some(value) = self.constant(inst, bits) {
            self.found.constants[result.index()] = Some(value);
            self.found.ranges[result.index()] = u64::try_from(value).ok().map(|value| (value, value));
            self.found.divisors[result.index()] = if value == 0 { 64 } else { value.trailing_zeros() };
            return;
        }
        let range = self.range(inst, bits).filter(|&(_, high)| u128::from(high) <= mask(bits));
        if let Some(range) = range {
            self.found.ranges[result.index()] = Some(range);
        }
        self.found.divisors[result.index()] = if range == Some((0, 0)) { 64 } else { self.divisor(inst) };
    }

    fn constant(&self, inst: &Inst, bits: u32) -> Option<u128> {
        let of = |index: usize| self.found.constant(inst.args[index]);
        let from = inst.args.first().map_or(0, |&arg| self.function.ty(arg).bits());
        match inst.op {
            Op::Const(value) => Some(value),
            Op::Special(Special::Ntid(d)) => self.threads.block.get(usize::from(d)).map(|&n| u128::from(n)),
            Op::Zext | Op::Bitcast => of(0),
            Op::Trunc => Some(of(0)? & mask(bits)),
            Op::Sext => Some(signed(of(0)?, from) as u128 & mask(bits)),
            Op::Int(op, int) => {
                let (a, b) = (of(0)?, of(1)?);
                let width = u128::from(int.bits);
                let result = match op {
                    IntBin::Add => a.wrapping_add(b),
                    IntBin::Sub => a.wrapping_sub(b),
                    IntBin::Mul => a.wrapping_mul(b),
                    IntBin::And => a & b,
                    IntBin::Or => a | b,
                    IntBin::Shl if b < width => a << b,
                    IntBin::Shr if b < width && !int.signed => a >> b,
                    IntBin::Div if b != 0 && !int.signed => a / b,
                    _ => return None,
                };
                Some(result & mask(int.bits.into()))
            }
            _ => None,
        }
    }

    fn divisor(&self, inst: &Inst) -> u32 {
        let of = |index: usize| self.found.divisor(inst.args[index]);
        match &inst.op {
            Op::Special(Special::Tid(d)) => match self.threads.tid_stride(usize::from(*d)) {
                Some(1) => self.threads.width.trailing_zeros(),
                _ => 0,
            },
            Op::Special(Special::LaneId) => {
                if self.threads.width == 32 {
                    64
                } else {
                    self.threads.width.trailing_zeros()
                }
            }
            Op::Zext | Op::Sext | Op::Bitcast | Op::Trunc => of(0),
            Op::Int(op, _) => match op {
                IntBin::Add | IntBin::Sub | IntBin::Or | IntBin::Xor | IntBin::Min | IntBin::Max => {
                    of(0).min(of(1))
                }
                IntBin::And => of(0).max(of(1)),
                IntBin::Mul => (of(0) + of(1)).min(64),
                IntBin::Shl => match self.found.constant(inst.args[1]) {
                    Some(count) if count < 64 => (of(0) + count as u32).min(64),
                    _ => of(0),
                },
                _ => 0,
            },
            Op::MulWide(_) => (of(0) + of(1)).min(64),
            _ => 0,
        }
    }

    fn range(&self, inst: &Inst, bits: u32) -> Option<(u64, u64)> {
        let of = |index: usize| self.found.range(inst.args[index]);
        match &inst.op {
            Op::Special(register) => match register {
                Special::Tid(d) => {
                    Some((0, u64::from(*self.threads.block.get(usize::from(*d))?).saturating_sub(1)))
                }
                Special::LaneId | Special::WarpId => Some((0, 31)),
                Special::Ctaid(0) => Some((0, (1 << 31) - 2)),
                Special::Nctaid(0) => Some((0, (1 << 31) - 1)),
                Special::Ctaid(_) | Special::Nctaid(_) => Some((0, 65535)),
                _ => None,
            },
            // The window is no larger.
            // In the window of a cluster of 16 blocks.
            Op::SharedAddr(_) => Some((0, 16 << CLUSTER_SHIFT)),
            Op::Zext | Op::Bitcast => of(0),
            Op::Sext => {
                let from = self.function.ty(inst.args[0]).bits();
                of(0).filter(|&(_, high)| u128::from(high) <= mask(from) >> 1)
            }
            Op::Trunc => of(0).filter(|&(_, high)| u128::from(high) <= mask(bits)),
            Op::Int(op, int) => self.binary(*op, *int, inst),
            Op::MulWide(int) => {
                let positive =
                    |range: &(u64, u64)| !int.signed || range.1 <= (mask(u32::from(int.bits)) >> 1) as u64;
                let (a, b) = (of(0).filter(positive)?, of(1).filter(positive)?);
                Some((a.0.checked_mul(b.0)?, a.1.checked_mul(b.1)?))
            }
            _ => None,
        }
    }

    fn binary(&self, op: IntBin, int: Int, inst: &Inst) -> Option<(u64, u64)> {
        let of = |index: usize| self.found.range(inst.args[index]);
        let constant =
            |index: usize| self.found.constant(inst.args[index]).and_then(|n| u64::try_from(n).ok());
        let half = (mask(u32::from(int.bits)) >> 1) as u64;
        let known_positive = |range: &(u64, u64)| !int.signed || range.1 <= half;
        match op {
            IntBin::Add => {
                let (a, b) = (of(0)?, of(1)?);
                Some((a.0.checked_add(b.0)?, a.1.checked_add(b.1)?))
            }
            IntBin::Mul => {
                let (a, b) = (of(0)?, of(1)?);
                Some((a.0.checked_mul(b.0)?, a.1.checked_mul(b.1)?))
            }
            IntBin::Shl => {
                let count = constant(1).filter(|&count| count < u64::from(int.bits).min(63))? as u32;
                let a = of(0)?;
                Some((a.0.checked_mul(1 << count)?, a.1.checked_mul(1 << count)?))
            }
            IntBin::Shr => {
                let count = constant(1).filter(|&count| count < u64::from(int.bits).min(64))? as u32;
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
                let by = constant(1).filter(|&by| by != 0)?;
                let a = of(0).filter(known_positive)?;
                (!int.signed || by <= half).then_some((a.0 / by, a.1 / by))
            }
            IntBin::Rem => {
                let by = constant(1).filter(|&by| by != 0)?;
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

/// Sign-extends the low `bits`.
pub fn signed(value: u128, bits: u32) -> i128 {
    let shift = 128 - bits;
    ((value << shift) as i128) >> shift
}
