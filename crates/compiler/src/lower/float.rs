//! Floating-point arithmetic of every width. Rounding, `.ftz`, `.sat` and `.relu` travel in the operation's mode.

use ptx::ast::{Operand, Type};

use super::function::Lowerer;
use super::instruction::{FLOATS, Failure, Instr, Lower, SINGLE, SINGLE_OR_DOUBLE, float, register_ty};
use crate::ir::{Cmp, Float, FloatBin, FloatMode, FloatUn, IntBin, Num, Op, TestP, Ty, U16, Value};
use crate::tensor_map::OOB_NAN;

type L<'l, 'i, 'a> = Lowerer<'l, 'i, 'a>;
type I<'i, 'a> = Instr<'i, 'a>;

/// `op{.rnd}{.ftz}{.sat}.type d, a, b`
pub(super) fn binary<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>, op: FloatBin) -> Lower {
    let round = i.round();
    let mode = i.float_mode_of(round);
    let fuses = round.is_none() && matches!(op, FloatBin::Add | FloatBin::Sub | FloatBin::Mul);
    binary_with(l, i, op, FloatMode { fuses, ..mode })
}

fn binary_with<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>, op: FloatBin, mode: FloatMode) -> Lower {
    let types = match op {
        FloatBin::DivApprox | FloatBin::DivFull => SINGLE,
        FloatBin::Div | FloatBin::CopySign => SINGLE_OR_DOUBLE,
        _ => FLOATS,
    };
    if matches!(op, FloatBin::Add | FloatBin::Sub | FloatBin::Mul) && i.peek_ty() == Some(Type::F32x2) {
        return f32_pairs::<2>(l, i, Op::Float(op, Float::F32, mode));
    }
    let (ty, float) = i.float(types)?;
    let mixed = match op {
        FloatBin::Add | FloatBin::Sub => mixed_source(i, float)?,
        _ => None,
    };
    i.done()?;
    let [d, a, b] = i.operands()?;
    let args = [l.mixed_value(a, ty, mixed)?, l.value(b, ty)?];
    let result = l.b.emit1(Op::Float(op, float, mode), &args, register_ty(ty));
    l.write(d, result)
}

/// `fma.rnd{.ftz}{.sat}{.relu}.type d, a, b, c`, `fma.rn.oob{.relu}.type`, `fma.rnd{.sat}.f32.{f16,bf16}`
pub(super) fn fma<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    let mode = i.float_mode();
    let oob = i.take("oob");
    if i.peek_ty() == Some(Type::F32x2) {
        return f32_pairs::<3>(l, i, Op::Fma(Float::F32, mode));
    }
    let (ty, float) = i.float(FLOATS)?;
    let mixed = mixed_source(i, float)?;
    i.done()?;
    let [d, a, b, c] = i.operands()?;
    let args = [l.mixed_value(a, ty, mixed)?, l.mixed_value(b, ty, mixed)?, l.value(c, ty)?];
    let mut result = l.b.emit1(Op::Fma(float, mode), &args, register_ty(ty));
    if oob {
        let n = match float {
            Float::F16 | Float::Bf16 => 1,
            Float::F16x2 | Float::Bf16x2 => 2,
            Float::F32 | Float::F64 => return Err(Failure::Unsupported),
        };
        result = l.zero_if_oob(result, &args[..2], n);
    }
    l.write(d, result)
}

/// An operation on each half of 64-bit registers.
fn f32_pairs<'i, 'a, const N: usize>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>, op: Op) -> Lower {
    i.ty()?;
    i.done()?;
    let Some((d, sources)) = i.ast.operands.split_first().filter(|(_, sources)| sources.len() == N) else {
        return Err(Failure::Unsupported);
    };
    let mut halves = [vec![], vec![]];
    for source in sources {
        let pair = l.value(source, Type::B64)?;
        let words = l.b.emit(Op::Unpack, &[pair], &[Ty::B32; 2]);
        for (half, word) in halves.iter_mut().zip(words) {
            half.push(l.b.emit1(Op::Bitcast, &[word], Ty::F32));
        }
    }
    let results = halves.map(|args| {
        let result = l.b.emit1(op.clone(), &args, Ty::F32);
        l.b.emit1(Op::Bitcast, &[result], Ty::B32)
    });
    let result = l.b.emit1(Op::Pack, &results, Ty::B64);
    l.write(d, result)
}

/// The narrower type of a mixed precision operation's first sources.
fn mixed_source(i: &mut I<'_, '_>, to: Float) -> Lower<Option<Type>> {
    let Some(ty @ (Type::F16 | Type::Bf16)) = i.peek_ty() else { return Ok(None) };
    if to != Float::F32 {
        return Err(Failure::Unsupported);
    }
    i.ty()?;
    Ok(Some(ty))
}

impl<'a> Lowerer<'_, '_, 'a> {
    /// A source of type `ty`, or of the type `from` and widened.
    fn mixed_value(&mut self, operand: &Operand<'a>, ty: Type, from: Option<Type>) -> Lower<Value> {
        let Some(from) = from else { return self.value(operand, ty) };
        let value = self.value(operand, from)?;
        let from = Num::Float(float(from).ok_or(Failure::Unsupported)?);
        let cvt = Op::Cvt { from, to: Num::Float(Float::F32), mode: FloatMode::default() };
        Ok(self.b.emit1(cvt, &[value], Ty::F32))
    }

    /// `.oob`: +0 in each of the `n` parts of the result where a factor is the out-of-bounds NaN. A summand is not looked at: so on an H200.
    fn zero_if_oob(&mut self, result: Value, sources: &[Value], n: usize) -> Value {
        let parts = |l: &mut Self, value: Value| match n {
            1 => vec![value],
            _ => l.b.emit(Op::Unpack, &[value], &vec![Ty::B16; n]),
        };
        let mut results = parts(self, result);
        let (magnitude, oob) = (self.b.constant(Ty::B16, 0x7fff), self.b.constant(Ty::B16, OOB_NAN.into()));
        let zero = self.b.constant(Ty::B16, 0);
        for source in sources {
            for (result, source) in results.iter_mut().zip(parts(self, *source)) {
                let bits = self.b.emit1(Op::Int(IntBin::And, U16), &[source, magnitude], Ty::B16);
                let is_oob = self.b.emit1(Op::Icmp(Cmp::Eq, U16), &[bits, oob], Ty::Pred);
                *result = self.b.emit1(Op::Select, &[is_oob, zero, *result], Ty::B16);
            }
        }
        if n == 1 { results[0] } else { self.b.emit1(Op::Pack, &results, Ty::B32) }
    }
}

/// `div.approx{.ftz}.f32`, `div.full{.ftz}.f32`, `div.rnd{.ftz}.f32`, `div.rnd.f64`
pub(super) fn div<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    let approximate = i.take_one(&[("approx", FloatBin::DivApprox), ("full", FloatBin::DivFull)]);
    let rounds = i.round();
    let ftz = i.take("ftz");
    let op = match (approximate, rounds) {
        (Some(op), None) => op,
        (None, Some(_)) => FloatBin::Div,
        _ => return Err(Failure::Unsupported),
    };
    let mode = FloatMode { round: rounds.unwrap_or_default(), ftz, ..FloatMode::default() };
    binary_with(l, i, op, mode)
}

/// `min{.ftz}{.NaN}{.xorsign.abs}.type d, a, b`
pub(super) fn min_max<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>, is_min: bool) -> Lower {
    let nan = i.take("NaN");
    let xorsign_abs = i.count() != 4 && i.take("xorsign") && i.take("abs");
    let abs = !xorsign_abs && i.count() == 4 && i.take("abs");
    let mode = FloatMode { ftz: i.take("ftz"), ..FloatMode::default() };
    let op = if is_min { FloatBin::Min { nan, xorsign_abs } } else { FloatBin::Max { nan, xorsign_abs } };
    if i.count() != 4 {
        return binary_with(l, i, op, mode);
    }
    // Three sources, `.abs` of magnitudes.
    let (ty, float) = i.float(SINGLE)?;
    i.done()?;
    let [d, a, b, c] = i.operands()?;
    let mut source = |operand| {
        let value = l.value(operand, ty)?;
        let magnitude = Op::FloatUn(FloatUn::Abs, float, FloatMode::default());
        Ok(if abs { l.b.emit1(magnitude, &[value], register_ty(ty)) } else { value })
    };
    let [a, b, c] = [source(a)?, source(b)?, source(c)?];
    let first = l.b.emit1(Op::Float(op, float, mode), &[a, b], register_ty(ty));
    let result = l.b.emit1(Op::Float(op, float, mode), &[first, c], register_ty(ty));
    l.write(d, result)
}

/// `copysign.type d, a, b`: the sign of a, the magnitude of b.
pub(super) fn copysign<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    binary_with(l, i, FloatBin::CopySign, FloatMode::default())
}

/// `op{.ftz}.type d, a`
pub(super) fn unary<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>, op: FloatUn) -> Lower {
    let mode = i.float_mode();
    unary_with(l, i, mode, |_| Some(op))
}

fn unary_with<'i, 'a>(
    l: &mut L<'_, 'i, 'a>,
    i: &mut I<'i, 'a>,
    mode: FloatMode,
    op: impl Fn(Float) -> Option<FloatUn>,
) -> Lower {
    let (ty, float) = i.float(FLOATS)?;
    i.done()?;
    let Some(op) = op(float) else { return Err(Failure::Unsupported) };
    let [d, a] = i.operands()?;
    let a = l.value(a, ty)?;
    let result = l.b.emit1(Op::FloatUn(op, float, mode), &[a], register_ty(ty));
    l.write(d, result)
}

/// Exact with a rounding, approximate with `.approx`; the f64 seeds flush.
fn exact_or_approximate<'i, 'a>(
    l: &mut L<'_, 'i, 'a>,
    i: &mut I<'i, 'a>,
    exact: Option<FloatUn>,
    approximate: FloatUn,
    seed: Option<FloatUn>,
) -> Lower {
    let approx = i.take("approx");
    let rounds = i.round();
    let mode = FloatMode { round: rounds.unwrap_or_default(), ftz: i.take("ftz"), ..FloatMode::default() };
    if approx == rounds.is_some() {
        return Err(Failure::Unsupported);
    }
    unary_with(l, i, mode, |float| match (approx, float) {
        (false, Float::F32 | Float::F64) => exact,
        (true, Float::F32) => Some(approximate),
        (true, Float::F64) if mode.ftz => seed,
        _ => None,
    })
}

/// `rcp.approx{.ftz}.f32`, `rcp.rnd{.ftz}.f32`, `rcp.rnd.f64`, `rcp.approx.ftz.f64`
pub(super) fn rcp<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    exact_or_approximate(l, i, Some(FloatUn::Rcp), FloatUn::RcpApprox, Some(FloatUn::RcpApproxFtz64))
}

/// `sqrt.approx{.ftz}.f32`, `sqrt.rnd{.ftz}.f32`, `sqrt.rnd.f64`
pub(super) fn sqrt<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    exact_or_approximate(l, i, Some(FloatUn::Sqrt), FloatUn::SqrtApprox, None)
}

/// `rsqrt.approx{.ftz}.f32`, `rsqrt.approx{.ftz}.f64`
pub(super) fn rsqrt<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    if !i.take("approx") {
        return Err(Failure::Unsupported);
    }
    let mode = FloatMode { ftz: i.take("ftz"), ..FloatMode::default() };
    unary_with(l, i, mode, |float| match (float, mode.ftz) {
        (Float::F32, _) | (Float::F64, false) => Some(FloatUn::RsqrtApprox),
        (Float::F64, true) => Some(FloatUn::RsqrtApproxFtz64),
        _ => None,
    })
}

fn approximate<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>, op: FloatUn, halves: bool) -> Lower {
    if !i.take("approx") {
        return Err(Failure::Unsupported);
    }
    let mode = FloatMode { ftz: i.take("ftz"), ..FloatMode::default() };
    unary_with(l, i, mode, |float| match float {
        Float::F32 => Some(op),
        Float::F16 | Float::F16x2 | Float::Bf16 | Float::Bf16x2 => halves.then_some(op),
        Float::F64 => None,
    })
}

/// `sin.approx{.ftz}.f32 d, a`
pub(super) fn sin<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    approximate(l, i, FloatUn::SinApprox, false)
}

/// `cos.approx{.ftz}.f32 d, a`
pub(super) fn cos<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    approximate(l, i, FloatUn::CosApprox, false)
}

/// `lg2.approx{.ftz}.f32 d, a`
pub(super) fn lg2<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    approximate(l, i, FloatUn::Lg2Approx, false)
}

/// `ex2.approx{.ftz}.f32 d, a`, `ex2.approx.f16`, `ex2.approx.ftz.bf16`, and of pairs
pub(super) fn ex2<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    approximate(l, i, FloatUn::Ex2Approx, true)
}

/// `tanh.approx.f32 d, a`, and of halves and pairs
pub(super) fn tanh<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    approximate(l, i, FloatUn::TanhApprox, true)
}

/// `testp.op.type p, a`
pub(super) fn testp<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    let test = i.need_one(&[
        ("finite", TestP::Finite),
        ("infinite", TestP::Infinite),
        ("number", TestP::Number),
        ("notanumber", TestP::NotANumber),
        ("normal", TestP::Normal),
        ("subnormal", TestP::Subnormal),
    ])?;
    let (ty, float) = i.float(SINGLE_OR_DOUBLE)?;
    i.done()?;
    let [p, a] = i.operands()?;
    let a = l.value(a, ty)?;
    let result = l.b.emit1(Op::TestP(test, float), &[a], Ty::Pred);
    l.write(p, result)
}
