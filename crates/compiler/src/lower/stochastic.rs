//! `cvt.rs`: rounding of `.f32` by random bits that the program gives. Source: PTX manual, "cvt", and for the order of bits that
//! it leaves open, public measurements of sm_100.

use ptx::ast::Type;

use super::function::Lowerer;
use super::instruction::{Failure, Instr, Lower, fail, register_ty};
use crate::ir::{Bool, Cmp, IntBin, IntUn, Op, S32, Ty, U32, Value};

type L<'l, 'i, 'a> = Lowerer<'l, 'i, 'a>;
type I<'i, 'a> = Instr<'i, 'a>;

/// What one number becomes.
#[derive(Clone, Copy)]
struct Format {
    exponent_bits: u32,
    fraction_bits: u32,
    /// What one number takes of the register.
    bits: u32,
    /// The code of what is too large, and of infinity.
    most: u32,
    nan: u32,
    /// Bits that are random.
    random_bits: u32,
}

impl Format {
    /// The format, and how many numbers there are.
    fn of(ty: Type, satfinite: bool) -> Option<(Format, usize)> {
        let (exponent_bits, fraction_bits, bits, most, nan, random_bits, count) = match ty {
            Type::F16x2 => (5, 10, 16, if satfinite { 0x7bff } else { 0x7c00 }, 0x7fff, 13, 2),
            Type::Bf16x2 => (8, 7, 16, if satfinite { 0x7f7f } else { 0x7f80 }, 0x7fff, 16, 2),
            Type::E4m3x4 if satfinite => (4, 3, 8, 0x7e, 0x7f, 16, 4),
            Type::E5m2x4 if satfinite => (5, 2, 8, 0x7b, 0x7f, 16, 4),
            Type::E2m3x4 if satfinite => (2, 3, 8, 0x1f, 0x1f, 16, 4),
            Type::E3m2x4 if satfinite => (3, 2, 8, 0x1f, 0x1f, 16, 4),
            Type::E2m1x4 if satfinite => (2, 1, 4, 7, 7, 16, 4),
            _ => return None,
        };
        Some((Format { exponent_bits, fraction_bits, bits, most, nan, random_bits }, count))
    }

    fn sign_bit(self) -> u32 {
        self.exponent_bits + self.fraction_bits
    }
}

/// `cvt.rs{.relu}{.satfinite}.f16x2.f32 d, a, b, rbits`, `cvt.rs{.relu}.satfinite.e4m3x4.f32 d, {a, b, e, f}, rbits`: the first
/// number is the uppermost.
pub(super) fn cvt<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    let (relu, satfinite) = (i.take("relu"), i.take("satfinite"));
    let (to, from) = (i.ty()?, i.ty()?);
    i.done()?;
    let Some((format, count)) = Format::of(to, satfinite).filter(|_| from == Type::F32) else {
        return Err(Failure::Unsupported);
    };
    let (d, values, random) = if count == 2 {
        let [d, high, low, random] = i.operands()?;
        (d, vec![l.narrow_value(high, from)?, l.narrow_value(low, from)?], random)
    } else {
        let [d, list, random] = i.operands()?;
        let values = l.exact_values(list, from)?;
        if values.len() != count {
            return fail(list.span, format!("expected {count} values"));
        }
        (d, values, random)
    };
    let random = l.value(random, Type::B32)?;
    let shares = l.shares(to, random);
    let mut result = l.word(0);
    for (value, share) in values.into_iter().zip(shares) {
        let code = l.stochastic(format, value, share, relu);
        result = l.word_op(IntBin::Shl, result, format.bits);
        result = l.bitwise(IntBin::Or, Ty::B32, result, code);
    }
    let result = l.resize(result, register_ty(to), false);
    let var = l.destination(d)?;
    l.write_extended(var, result, false, d.span)
}

impl Lowerer<'_, '_, '_> {
    /// What each number gets of the random bits, the uppermost number first.
    fn shares(&mut self, to: Type, random: Value) -> Vec<Value> {
        let halves = [16, 0].map(|shift| {
            let half = self.word_op(IntBin::Shr, random, shift);
            self.word_op(IntBin::And, half, 0xffff)
        });
        match to {
            Type::F16x2 => halves.map(|half| self.word_op(IntBin::And, half, 0x1fff)).into(),
            Type::Bf16x2 => halves.into(),
            _ => {
                let pairs = if to == Type::E2m1x4 { self.bytes_of_halves(halves) } else { halves };
                // The manual gives a pair of numbers the same 16 bits; hardware mirrors them for the upper one.
                pairs.into_iter().flat_map(|pair| [self.mirrored(pair), pair]).collect()
            }
        }
    }

    /// The upper bytes of two halves, and their lower ones, as 16 bits each. The manual does not say which of the two is the
    /// upper one then.
    fn bytes_of_halves(&mut self, [high, low]: [Value; 2]) -> [Value; 2] {
        [8, 0].map(|shift| {
            let [high, low] = [high, low].map(|half| {
                let byte = self.word_op(IntBin::Shr, half, shift);
                self.word_op(IntBin::And, byte, 0xff)
            });
            let high = self.word_op(IntBin::Shl, high, 8);
            self.bitwise(IntBin::Or, Ty::B32, high, low)
        })
    }

    /// 16 bits, the last first.
    fn mirrored(&mut self, bits: Value) -> Value {
        let mirrored = self.b.emit1(Op::IntUn(IntUn::Brev, U32), &[bits], Ty::B32);
        self.word_op(IntBin::Shr, mirrored, 16)
    }

    /// The code of an `.f32`: away from zero where what is cut off and the random number, both as parts of the last place, are 1
    /// or more together. A NaN has no sign.
    fn stochastic(&mut self, format: Format, x: Value, random: Value, relu: bool) -> Value {
        let bits = self.b.emit1(Op::Bitcast, &[x], Ty::B32);
        let magnitude = self.word_op(IntBin::And, bits, 0x7fff_ffff);
        let code = self.stochastic_magnitude(format, magnitude, random);
        let nan_above = self.word(0x7f80_0000);
        let is_nan = self.b.emit1(Op::Icmp(Cmp::Gt, U32), &[magnitude, nan_above], Ty::Pred);
        let (zero, nan) = (self.word(0), self.word(format.nan));
        let is_below = self.b.emit1(Op::Icmp(Cmp::Lt, S32), &[bits, zero], Ty::Pred);
        let is_number = self.b.emit1(Op::Not, &[is_nan], Ty::Pred);
        let is_negative = self.b.emit1(Op::Bool(Bool::And), &[is_number, is_below], Ty::Pred);
        let code = self.b.emit1(Op::Select, &[is_nan, nan, code], Ty::B32);
        let signed = match relu {
            true => zero,
            false => {
                let sign = self.word(1 << format.sign_bit());
                self.bitwise(IntBin::Or, Ty::B32, code, sign)
            }
        };
        self.b.emit1(Op::Select, &[is_negative, signed, code], Ty::B32)
    }

    fn stochastic_magnitude(&mut self, format: Format, magnitude: Value, random: Value) -> Value {
        let (spare, bias) = (23 - format.fraction_bits, (1 << (format.exponent_bits - 1)) - 1);
        let rebias = 127 - bias;
        let signed = |l: &mut Self, op: IntBin, a: Value, b: u32| {
            let b = l.word(b);
            l.b.emit1(Op::Int(op, S32), &[a, b], Ty::B32)
        };
        // Subnormal numbers have the exponent of the least normal ones.
        let written = self.word_op(IntBin::Shr, magnitude, 23);
        let exponent = signed(self, IntBin::Max, written, 1);
        let hidden = self.word_op(IntBin::Min, written, 1);
        let hidden = self.word_op(IntBin::Shl, hidden, 23);
        let fraction = self.word_op(IntBin::And, magnitude, 0x7f_ffff);
        let significand = self.bitwise(IntBin::Or, Ty::B32, hidden, fraction);
        let wanted = self.word_op(IntBin::Sub, exponent, rebias);
        let target = signed(self, IntBin::Max, wanted, 1);
        // How many bits are cut off; of numbers that lie deeper the random ones do not reach the last place.
        let deeper = self.b.emit1(Op::Int(IntBin::Sub, U32), &[target, wanted], Ty::B32);
        let cut = self.word_op(IntBin::Add, deeper, spare);
        let cut = self.word_op(IntBin::Min, cut, 24 + format.random_bits);
        let lift = self.word_op(IntBin::Sub, cut, format.random_bits);
        let [significand, random] = [significand, random].map(|it| self.b.emit1(Op::Zext, &[it], Ty::B64));
        let random = self.b.emit1(Op::Int(IntBin::Shl, crate::ir::U64), &[random, lift], Ty::B64);
        let sum = self.long_op(IntBin::Add, significand, random);
        let units = self.b.emit1(Op::Int(IntBin::Shr, crate::ir::U64), &[sum, cut], Ty::B64);
        let units = self.b.emit1(Op::Trunc, &[units], Ty::B32);
        let above = self.word_op(IntBin::Sub, target, 1);
        let above = self.word_op(IntBin::Shl, above, format.fraction_bits);
        let code = self.b.emit1(Op::Int(IntBin::Add, U32), &[above, units], Ty::B32);
        self.word_op(IntBin::Min, code, format.most)
    }
}
