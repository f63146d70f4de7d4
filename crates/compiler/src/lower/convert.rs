//! `cvt`: between integers, between floats, and across. Sources and destinations may be wider than the type they are
//! read or written as.

use ptx::ast::Type;

use super::function::Lowerer;
use super::instruction::{Failure, Instr, Lower, float, int, register_ty};
use super::narrow;
use crate::ir::{Float, FloatMode, Int, IntBin, Num, Op, Round, Ty, Value};

type L<'l, 'i, 'a> = Lowerer<'l, 'i, 'a>;
type I<'i, 'a> = Instr<'i, 'a>;

fn num(ty: Type) -> Option<Num> {
    if let Some(int) = int(ty) {
        return Some(Num::Int(int));
    }
    if let Some(float) = float(ty) {
        return Some(Num::Float(float));
    }
    match ty {
        Type::Tf32 => Some(Num::Tf32),
        Type::E4m3x2 => Some(Num::E4m3x2),
        Type::E5m2x2 => Some(Num::E5m2x2),
        _ => None,
    }
}

/// `cvt{.rnd}{.ftz}{.sat}{.relu}.dtype.atype d, a`, `cvt.rn.f16x2.f32 d, a, b`
pub(super) fn cvt<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    if i.take("pack") {
        return pack(l, i);
    }
    if i.take("rs") {
        return super::stochastic::cvt(l, i);
    }
    let integral = i.take_one(&[
        ("rni", Round::Nearest),
        ("rzi", Round::Zero),
        ("rmi", Round::Down),
        ("rpi", Round::Up),
    ]);
    let rounding = match integral {
        Some(round) => Some(Rounding::ToInteger(round)),
        None => i.round().map(Rounding::ToFloat),
    };
    let is_scaled = i.take("scaled::n2::ue8m0");
    // For 8-bit floats `.satfinite` is the only behaviour there is.
    let satfinite = i.take("satfinite");
    let mode = i.float_mode();
    let mode = match rounding {
        Some(Rounding::ToInteger(round) | Rounding::ToFloat(round)) => FloatMode { round, ..mode },
        None => mode,
    };
    let (target, source) = (i.ty()?, i.ty()?);
    i.done()?;
    if narrow::has(target, source) {
        let round = match rounding {
            Some(Rounding::ToInteger(_)) => return Err(Failure::Unsupported),
            Some(Rounding::ToFloat(round)) => Some(round),
            None => None,
        };
        return narrow::cvt(l, i, [target, source], narrow::Modifiers { round, is_scaled, satfinite, mode });
    }
    if is_scaled {
        return Err(Failure::Unsupported);
    }
    let (Some(to), Some(from)) = (num(target), num(source)) else { return Err(Failure::Unsupported) };
    if !is_legal(from, to, rounding, satfinite, mode) {
        return Err(Failure::Unsupported);
    }
    let is_pair = matches!(to, Num::Float(Float::F16x2 | Float::Bf16x2) | Num::E4m3x2 | Num::E5m2x2);
    let is_mini = matches!(to, Num::E4m3x2 | Num::E5m2x2);
    let infinite = if satfinite && !is_mini { finite_parts(to).ok_or(Failure::Unsupported)? } else { &[] };
    if is_pair && from == Num::Float(Float::F32) {
        let [d, high, low] = i.operands()?;
        let args = [l.value(high, source)?, l.value(low, source)?];
        let result = l.b.emit1(Op::CvtPack { from: Float::F32, to, mode }, &args, register_ty(target));
        let result = l.make_finite(result, register_ty(target), infinite);
        let var = l.destination(d)?;
        return l.write_extended(var, result, false, d.span);
    }
    let [d, a] = i.operands()?;
    let a = l.narrow_value(a, source)?;
    let (result, signed) = match (from, to) {
        (Num::Int(from), Num::Int(to)) => (integer(l, a, from, to, mode), to.signed),
        (Num::Float(from), Num::Float(to)) if from == to && integral.is_some() => {
            (l.b.emit1(Op::RoundInt { ty: to, mode }, &[a], to.ty()), false)
        }
        _ => (
            l.b.emit1(Op::Cvt { from, to, mode }, &[a], register_ty(target)),
            matches!(to, Num::Int(to) if to.signed),
        ),
    };
    let result = l.make_finite(result, register_ty(target), infinite);
    let var = l.destination(d)?;
    l.write_extended(var, result, signed, d.span)
}

/// A rounding as it is written.
#[derive(Clone, Copy)]
enum Rounding {
    /// `.rni` and its like.
    ToInteger(Round),
    /// `.rn` and its like.
    ToFloat(Round),
}

/// Whether the modifiers go with the types, as NVIDIA's assembler has it.
fn is_legal(from: Num, to: Num, rounding: Option<Rounding>, satfinite: bool, mode: FloatMode) -> bool {
    use Float::{Bf16, Bf16x2, F16, F16x2, F32, F64};
    use Rounding::{ToFloat, ToInteger};
    let FloatMode { ftz, sat, relu, .. } = mode;
    let rounds = matches!(rounding, Some(ToFloat(round)) if round != Round::NearestAway);
    let rounds_simply = matches!(rounding, Some(ToFloat(Round::Nearest | Round::Zero)));
    let is_nearest = matches!(rounding, Some(ToFloat(Round::Nearest)));
    let either = |float| from == Num::Float(float) || to == Num::Float(float);
    // `.ftz` is about f32, and bf16 has no `.sat`.
    let is_plain = !satfinite && !relu && (!ftz || either(F32)) && (!sat || !either(Bf16));
    match (from, to) {
        (Num::Int(from), Num::Int(to)) => rounding.is_none() && is_plain && !(sat && holds(to, from)),
        (Num::Int(_), Num::Float(F16 | Bf16 | F32 | F64)) => rounds && is_plain,
        (Num::Float(F16 | Bf16 | F32 | F64), Num::Int(_)) => {
            matches!(rounding, Some(ToInteger(_))) && is_plain
        }
        (Num::Float(from), Num::Float(to)) => match (from, to) {
            (F32, F16 | Bf16) if satfinite || relu => rounds_simply && !ftz && !sat,
            (F64, F32) | (F32 | F64, F16 | Bf16) => rounds && is_plain,
            // A rounding may be written though nothing is rounded.
            (Bf16, F16 | F32 | F64) | (F16, Bf16) => (rounds || rounding.is_none()) && is_plain,
            (F16, F32 | F64) | (F32, F64) => rounding.is_none() && is_plain,
            (F32, F16x2 | Bf16x2) => rounds_simply && !ftz && !sat,
            (F16 | Bf16 | F32 | F64, _) if from == to => {
                matches!(rounding, None | Some(ToInteger(_))) && is_plain
            }
            _ => false,
        },
        (Num::Float(F32), Num::Tf32) => {
            (rounds_simply || matches!(rounding, Some(ToFloat(Round::NearestAway))) && !relu) && !ftz && !sat
        }
        (Num::Float(F32 | F16x2), Num::E4m3x2 | Num::E5m2x2) => is_nearest && satfinite && !ftz && !sat,
        (Num::E4m3x2 | Num::E5m2x2, Num::Float(F16x2)) => is_nearest && !satfinite && !ftz && !sat,
        _ => false,
    }
}

/// Whether every number of `inner` is one of `outer`, so that there is nothing to saturate.
fn holds(outer: Int, inner: Int) -> bool {
    if outer.signed == inner.signed {
        outer.bits >= inner.bits
    } else {
        outer.signed && outer.bits > inner.bits
    }
}

/// One part of a result: its bits but the sign, infinity, and what infinity has more than the largest number.
type Part = (u32, u32, u32);

/// The parts that `.satfinite` makes finite; `None` where it may not stand.
fn finite_parts(to: Num) -> Option<&'static [Part]> {
    Some(match to {
        Num::Float(Float::F16) => &[(0x7fff, 0x7c00, 1)],
        Num::Float(Float::Bf16) => &[(0x7fff, 0x7f80, 1)],
        Num::Float(Float::F16x2) => &[(0x7fff, 0x7c00, 1), (0x7fff_0000, 0x7c00_0000, 0x1_0000)],
        Num::Float(Float::Bf16x2) => &[(0x7fff, 0x7f80, 1), (0x7fff_0000, 0x7f80_0000, 0x1_0000)],
        Num::Tf32 => &[(0x7fff_ffff, 0x7f80_0000, 0x2000)],
        _ => return None,
    })
}

impl Lowerer<'_, '_, '_> {
    /// `.satfinite` of two numbers of 16 bits.
    pub(super) fn finite_pair(&mut self, value: Value, ty: Type) -> Lower<Value> {
        let parts = num(ty).and_then(finite_parts).ok_or(Failure::Unsupported)?;
        Ok(self.make_finite(value, Ty::B32, parts))
    }

    /// `.satfinite`: infinities become the largest number of their sign.
    fn make_finite(&mut self, mut value: Value, ty: Ty, parts: &[Part]) -> Value {
        let int = if ty == Ty::B16 { crate::ir::U16 } else { crate::ir::U32 };
        for &(magnitude, infinity, excess) in parts {
            let [magnitude, infinity, excess] =
                [magnitude, infinity, excess].map(|bits| self.b.constant(ty, bits.into()));
            let size = self.bitwise(IntBin::And, ty, value, magnitude);
            let is_infinite = self.b.emit1(Op::Icmp(crate::ir::Cmp::Eq, int), &[size, infinity], Ty::Pred);
            let largest = self.b.emit1(Op::Int(IntBin::Sub, int), &[value, excess], ty);
            value = self.b.emit1(Op::Select, &[is_infinite, largest, value], ty);
        }
        value
    }
}

/// Integer to integer, as plain extension or truncation where that is all it is.
fn integer(l: &mut L<'_, '_, '_>, a: Value, from: Int, to: Int, mode: FloatMode) -> Value {
    let target = Ty::of_bits(u32::from(to.bits));
    if mode.sat && from != to {
        return l.b.emit1(Op::Cvt { from: Num::Int(from), to: Num::Int(to), mode }, &[a], target);
    }
    // 8-bit values share `B16` with 16-bit ones: their upper half is made to fit.
    let a = if from.bits == 8 { l.extend_byte(a, from.signed) } else { a };
    let resized = l.resize(a, target, from.signed);
    if to.bits == 8 { l.extend_byte(resized, to.signed) } else { resized }
}

/// `cvt.pack.sat.dtype.s32 d, a, b` and `cvt.pack.sat.{u8,s8,u4…}.s32.b32 d, a, b, c`: b and a, saturated, as the low
/// elements; c's low elements move up.
fn pack<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    if !i.take("sat") {
        return Err(Failure::Unsupported);
    }
    let target = i.ty()?;
    i.need_one(&[("s32", ())])?;
    let bits: u32 = match target {
        Type::U16 | Type::S16 => 16,
        Type::U8 | Type::S8 => 8,
        Type::U4 | Type::S4 => 4,
        Type::U2 | Type::S2 => 2,
        _ => return Err(Failure::Unsupported),
    };
    let signed = matches!(target, Type::S16 | Type::S8 | Type::S4 | Type::S2);
    let with_c = bits < 16;
    if with_c {
        i.need_one(&[("b32", ())])?;
    }
    i.done()?;
    let (low, high): (i32, i32) =
        if signed { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) };
    let clamp = |l: &mut L<'_, 'i, 'a>, value: Value| {
        let low = l.b.constant(Ty::B32, low as u32 as u128);
        let high = l.b.constant(Ty::B32, high as u32 as u128);
        let mask = l.b.constant(Ty::B32, (1u128 << bits) - 1);
        let value = l.b.emit1(Op::Int(IntBin::Max, crate::ir::S32), &[value, low], Ty::B32);
        let value = l.b.emit1(Op::Int(IntBin::Min, crate::ir::S32), &[value, high], Ty::B32);
        l.bitwise(IntBin::And, Ty::B32, value, mask)
    };
    let up = |l: &mut L<'_, 'i, 'a>, value: Value, bits: u32| {
        let count = l.b.constant(Ty::B32, u128::from(bits));
        l.b.emit1(Op::Int(IntBin::Shl, crate::ir::U32), &[value, count], Ty::B32)
    };
    let (a, b) = (i.operand(1)?, i.operand(2)?);
    let (a, b) = (l.narrow_value(a, Type::S32)?, l.narrow_value(b, Type::S32)?);
    let (a, b) = (clamp(l, a), clamp(l, b));
    let a = up(l, a, bits);
    let mut result = l.bitwise(IntBin::Or, Ty::B32, a, b);
    let d = if with_c {
        let [d, _, _, c] = i.operands()?;
        let c = l.narrow_value(c, Type::B32)?;
        let c = up(l, c, bits * 2);
        result = l.bitwise(IntBin::Or, Ty::B32, c, result);
        d
    } else {
        let [d, _, _] = i.operands()?;
        d
    };
    let var = l.destination(d)?;
    l.write_extended(var, result, false, d.span)
}
