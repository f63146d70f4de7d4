//! `cvt` of floats below 8 bits, of scales (`.ue8m0`), and between 8-bit floats and `.bf16`, made of other operations.
//! Source: PTX manual, "cvt" and "Alternate Floating-Point Data Formats".

use ptx::ast::{Operand, Type};

use super::function::Lowerer;
use super::instruction::{Failure, Instr, Lower, float, register_ty};
use crate::ir::{Bool, Cmp, Float, FloatBin, FloatMode, Int, IntBin, Num, Op, Round, S32, Ty, U32, Value};

type L<'l, 'i, 'a> = Lowerer<'l, 'i, 'a>;
type I<'i, 'a> = Instr<'i, 'a>;

/// A format that has finite numbers alone, one in each half of two.
#[derive(Clone, Copy)]
struct Small {
    exponent_bits: u32,
    fraction_bits: u32,
    /// What one of the two takes of the register.
    bits: u32,
}

impl Small {
    fn of(ty: Type) -> Option<Small> {
        let (exponent_bits, fraction_bits, bits) = match ty {
            Type::E2m1x2 => (2, 1, 4),
            Type::E2m3x2 => (2, 3, 8),
            Type::E3m2x2 => (3, 2, 8),
            _ => return None,
        };
        Some(Small { exponent_bits, fraction_bits, bits })
    }

    fn bias(self) -> u32 {
        (1 << (self.exponent_bits - 1)) - 1
    }

    fn sign_bit(self) -> u32 {
        self.exponent_bits + self.fraction_bits
    }
}

fn is_byte(ty: Type) -> bool {
    matches!(ty, Type::E4m3x2 | Type::E5m2x2)
}

/// Whether it is a conversion of this chapter.
pub(super) fn has(to: Type, from: Type) -> bool {
    let is_own = |ty| Small::of(ty).is_some() || ty == Type::Ue8m0x2;
    is_own(to) || is_own(from) || is_byte(to) && from == Type::Bf16x2 || is_byte(from) && to == Type::Bf16x2
}

/// What is written besides the types.
#[derive(Clone, Copy)]
pub(super) struct Modifiers {
    pub(super) round: Option<Round>,
    /// `.scaled::n2::ue8m0`
    pub(super) is_scaled: bool,
    pub(super) satfinite: bool,
    pub(super) mode: FloatMode,
}

/// Whether the modifiers go with the types, as NVIDIA's assembler has it.
fn is_legal(to: Type, from: Type, modifiers: Modifiers) -> bool {
    let Modifiers { round, is_scaled, satfinite, mode } = modifiers;
    let is_nearest = round == Some(Round::Nearest);
    let is_wide = matches!(from, Type::F32 | Type::F16x2 | Type::Bf16x2);
    let is_scale = |ty| ty == Type::Ue8m0x2;
    if mode.ftz || mode.sat {
        return false;
    }
    if is_scaled && (to != Type::Bf16x2 || is_scale(from)) {
        return false;
    }
    match (to, from) {
        (to, Type::F32 | Type::Bf16x2) if is_scale(to) => {
            matches!(round, Some(Round::Zero | Round::Up)) && !mode.relu
        }
        (Type::Bf16x2, from) if is_scale(from) => is_nearest && !satfinite && !mode.relu,
        (to, from) if is_scale(to) || is_scale(from) => false,
        (Type::F16x2, _) => is_nearest && !satfinite,
        (Type::Bf16x2, _) => is_nearest,
        _ => is_nearest && satfinite && is_wide,
    }
}

/// What [`has`].
pub(super) fn cvt<'i, 'a>(
    l: &mut L<'_, 'i, 'a>,
    i: &I<'i, 'a>,
    [to, from]: [Type; 2],
    modifiers: Modifiers,
) -> Lower {
    if !is_legal(to, from, modifiers) {
        return Err(Failure::Unsupported);
    }
    let Modifiers { round, is_scaled, satfinite, mode } = modifiers;
    if matches!(to, Type::F16x2 | Type::Bf16x2) {
        let (d, a, scales) = match is_scaled {
            true => {
                let [d, a, scales] = i.operands()?;
                (d, a, Some(l.value(scales, Type::Ue8m0x2)?))
            }
            false => {
                let [d, a] = i.operands()?;
                (d, a, None)
            }
        };
        let a = l.narrow_value(a, from)?;
        let result = if from == Type::Ue8m0x2 {
            l.of_scales(a)
        } else {
            let pair = l.widened_pair(a, from);
            let pair = match scales {
                Some(scales) => l.scaled(pair, scales),
                None => pair,
            };
            let to = Num::Float(float(to).ok_or(Failure::Unsupported)?);
            let pair = if mode.relu { pair.map(|x| l.without_negative(x)) } else { pair };
            l.b.emit1(Op::CvtPack { from: Float::F32, to, mode: FloatMode::default() }, &pair, Ty::B32)
        };
        let result = if satfinite { l.finite_pair(result, to)? } else { result };
        return l.write(d, result);
    }
    let (d, pair) = l.pair(i, from)?;
    let result = match Small::of(to) {
        _ if to == Type::Ue8m0x2 => {
            let codes = pair.map(|x| l.scale(x, round == Some(Round::Up), satfinite));
            l.two(codes, 8)
        }
        Some(small) => {
            let codes = pair.map(|x| l.small(small, x, mode.relu));
            l.two(codes, small.bits)
        }
        None => {
            let to = if to == Type::E4m3x2 { Num::E4m3x2 } else { Num::E5m2x2 };
            l.b.emit1(Op::CvtPack { from: Float::F32, to, mode }, &pair, Ty::B16)
        }
    };
    let result = l.resize(result, register_ty(to), false);
    let var = l.destination(d)?;
    l.write_extended(var, result, false, d.span)
}

impl<'i, 'a> Lowerer<'_, 'i, 'a> {
    /// The destination, and the upper and the lower number of the source, as `.f32`.
    fn pair(&mut self, i: &I<'i, 'a>, from: Type) -> Lower<(&'i Operand<'a>, [Value; 2])> {
        if from == Type::F32 {
            let [d, high, low] = i.operands()?;
            return Ok((d, [self.value(high, from)?, self.value(low, from)?]));
        }
        let [d, a] = i.operands()?;
        let a = self.narrow_value(a, from)?;
        Ok((d, self.widened_pair(a, from)))
    }

    /// The upper and the lower number of a register, exactly, as `.f32`.
    fn widened_pair(&mut self, value: Value, from: Type) -> [Value; 2] {
        if let Some(small) = Small::of(from) {
            let value = self.resize(value, Ty::B32, false);
            return [small.bits, 0].map(|shift| {
                let code = self.word_op(IntBin::Shr, value, shift);
                self.of_small(small, code)
            });
        }
        let (value, half) = match from {
            Type::E4m3x2 | Type::E5m2x2 => {
                let from = if from == Type::E4m3x2 { Num::E4m3x2 } else { Num::E5m2x2 };
                let op = Op::Cvt { from, to: Num::Float(Float::F16x2), mode: FloatMode::default() };
                (self.b.emit1(op, &[value], Ty::B32), Float::F16)
            }
            Type::Bf16x2 => (value, Float::Bf16),
            _ => (value, Float::F16),
        };
        let halves = self.b.emit(Op::Unpack, &[value], &[Ty::B16, Ty::B16]);
        [1, 0].map(|nth| {
            let (from, to) = (Num::Float(half), Num::Float(Float::F32));
            self.b.emit1(Op::Cvt { from, to, mode: FloatMode::default() }, &[halves[nth]], Ty::F32)
        })
    }

    /// The numbers times the power of two that each has in a register of two.
    fn scaled(&mut self, pair: [Value; 2], scales: Value) -> [Value; 2] {
        let scales = self.of_scales(scales);
        let scales = self.widened_pair(scales, Type::Bf16x2);
        [0, 1].map(|nth| {
            let op = Op::Float(FloatBin::Mul, Float::F32, FloatMode::default());
            self.b.emit1(op, &[pair[nth], scales[nth]], Ty::F32)
        })
    }

    /// Upper and lower code in one register of 32 bits.
    fn two(&mut self, [high, low]: [Value; 2], bits: u32) -> Value {
        let high = self.word_op(IntBin::Shl, high, bits);
        self.bitwise(IntBin::Or, Ty::B32, high, low)
    }

    fn compared(&mut self, cmp: Cmp, int: Int, a: Value, b: u32) -> Value {
        let b = self.word(b);
        self.b.emit1(Op::Icmp(cmp, int), &[a, b], Ty::Pred)
    }

    fn both(&mut self, a: Value, b: Value) -> Value {
        self.b.emit1(Op::Bool(Bool::And), &[a, b], Ty::Pred)
    }

    fn chosen(&mut self, condition: Value, yes: Value, no: Value) -> Value {
        self.b.emit1(Op::Select, &[condition, yes, no], Ty::B32)
    }

    /// Negative numbers become 0.
    fn without_negative(&mut self, x: Value) -> Value {
        let bits = self.b.emit1(Op::Bitcast, &[x], Ty::B32);
        let magnitude = self.word_op(IntBin::And, bits, 0x7fff_ffff);
        let is_number = self.compared(Cmp::Le, U32, magnitude, 0x7f80_0000);
        let is_negative = self.compared(Cmp::Lt, S32, bits, 0);
        let goes = self.both(is_number, is_negative);
        let zero = self.word(0);
        let bits = self.chosen(goes, zero, bits);
        self.b.emit1(Op::Bitcast, &[bits], Ty::F32)
    }

    /// The code of an `.f32`: nearest even, the largest number for what is larger, and for a NaN with no sign.
    fn small(&mut self, format: Small, x: Value, relu: bool) -> Value {
        let fraction = format.fraction_bits;
        let (spare, rebias) = (23 - fraction, 127 - format.bias());
        let bits = self.b.emit1(Op::Bitcast, &[x], Ty::B32);
        let magnitude = self.word_op(IntBin::And, bits, 0x7fff_ffff);
        // Normal: the low fraction bits are rounded off, and the exponent gets another bias.
        let last = self.word_op(IntBin::Shr, magnitude, spare);
        let last = self.word_op(IntBin::And, last, 1);
        let rounded = self.b.emit1(Op::Int(IntBin::Add, U32), &[magnitude, last], Ty::B32);
        let rounded = self.word_op(IntBin::Add, rounded, (1 << (spare - 1)) - 1);
        let normal = self.word_op(IntBin::Shr, rounded, spare);
        let normal = self.word_op(IntBin::Sub, normal, rebias << fraction);
        let largest = self.word((1 << format.sign_bit()) - 1);
        let normal = self.b.emit1(Op::Int(IntBin::Min, S32), &[normal, largest], Ty::B32);
        // Subnormal: 2^23 units added round to whole units and leave their number in the low bits.
        let units = (rebias + 1 + spare) << 23;
        let absolute = self.b.emit1(Op::Bitcast, &[magnitude], Ty::F32);
        let unit_sum = self.b.constant(Ty::F32, units.into());
        let op = Op::Float(FloatBin::Add, Float::F32, FloatMode::default());
        let sum = self.b.emit1(op, &[absolute, unit_sum], Ty::F32);
        let sum = self.b.emit1(Op::Bitcast, &[sum], Ty::B32);
        let subnormal = self.word_op(IntBin::Sub, sum, units);
        let is_subnormal = self.compared(Cmp::Lt, U32, magnitude, (rebias + 1) << 23);
        let code = self.chosen(is_subnormal, subnormal, normal);
        let sign = self.word_op(IntBin::Shr, bits, 31);
        let is_nan = self.compared(Cmp::Gt, U32, magnitude, 0x7f80_0000);
        let zero = self.word(0);
        let sign = self.chosen(is_nan, zero, sign);
        if relu {
            let is_negative = self.compared(Cmp::Ne, U32, sign, 0);
            return self.chosen(is_negative, zero, code);
        }
        let sign = self.word_op(IntBin::Shl, sign, format.sign_bit());
        self.bitwise(IntBin::Or, Ty::B32, sign, code)
    }

    /// The number of a code, the bits above which do not matter.
    fn of_small(&mut self, format: Small, code: Value) -> Value {
        let sign_bit = format.sign_bit();
        let magnitude = self.word_op(IntBin::And, code, (1 << sign_bit) - 1);
        // The fields at an f32's places are the number divided by a power of two, subnormal or not.
        let fields = self.word_op(IntBin::Shl, magnitude, 23 - format.fraction_bits);
        let fields = self.b.emit1(Op::Bitcast, &[fields], Ty::F32);
        let scale = self.b.constant(Ty::F32, u128::from((254 - format.bias()) << 23));
        let op = Op::Float(FloatBin::Mul, Float::F32, FloatMode::default());
        let number = self.b.emit1(op, &[fields, scale], Ty::F32);
        let number = self.b.emit1(Op::Bitcast, &[number], Ty::B32);
        let sign = self.word_op(IntBin::Shl, code, 31 - sign_bit);
        let sign = self.word_op(IntBin::And, sign, 1 << 31);
        let bits = self.bitwise(IntBin::Or, Ty::B32, number, sign);
        self.b.emit1(Op::Bitcast, &[bits], Ty::F32)
    }

    /// The power of two, by its exponent, that a number's magnitude becomes by rounding down or up.
    fn scale(&mut self, x: Value, up: bool, satfinite: bool) -> Value {
        let bits = self.b.emit1(Op::Bitcast, &[x], Ty::B32);
        let magnitude = self.word_op(IntBin::And, bits, 0x7fff_ffff);
        let mut code = self.word_op(IntBin::Shr, magnitude, 23);
        if up {
            let fraction = self.word_op(IntBin::And, magnitude, 0x7f_ffff);
            let is_between = self.compared(Cmp::Ne, U32, fraction, 0);
            // The least is 2^-127, which code 0 is already.
            let is_more = self.compared(Cmp::Gt, U32, magnitude, 0x0040_0000);
            let is_number = self.compared(Cmp::Lt, U32, magnitude, 0x7f80_0000);
            let goes_up = self.both(is_between, is_more);
            let goes_up = self.both(goes_up, is_number);
            let next = self.word_op(IntBin::Add, code, 1);
            code = self.chosen(goes_up, next, code);
        }
        if satfinite {
            let is_number = self.compared(Cmp::Le, U32, magnitude, 0x7f80_0000);
            let is_too_large = self.compared(Cmp::Eq, U32, code, 0xff);
            let is_too_large = self.both(is_too_large, is_number);
            let largest = self.word(0xfe);
            code = self.chosen(is_too_large, largest, code);
        }
        code
    }

    /// Two scales as `.bf16x2`.
    fn of_scales(&mut self, value: Value) -> Value {
        let value = self.resize(value, Ty::B32, false);
        let numbers = [8, 0].map(|shift| {
            let code = self.word_op(IntBin::Shr, value, shift);
            let code = self.word_op(IntBin::And, code, 0xff);
            let number = self.word_op(IntBin::Shl, code, 7);
            let is_least = self.compared(Cmp::Eq, U32, code, 0);
            let least = self.word(0x40);
            let number = self.chosen(is_least, least, number);
            let is_nan = self.compared(Cmp::Eq, U32, code, 0xff);
            let nan = self.word(0x7fff);
            self.chosen(is_nan, nan, number)
        });
        self.two(numbers, 16)
    }
}
