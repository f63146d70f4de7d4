//! Floating-point arithmetic of every width. Rounding, `.ftz`, `.sat` and `.relu` travel in the operation's mode.

use super::function::Lowerer;
use super::instruction::{FLOATS, Failure, Instr, Lower, SINGLE, SINGLE_OR_DOUBLE, register_ty};
use crate::ir::{Float, FloatBin, FloatMode, FloatUn, Op, TestP, Ty};

type L<'l, 'i, 'a> = Lowerer<'l, 'i, 'a>;
type I<'i, 'a> = Instr<'i, 'a>;

/// `op{.rnd}{.ftz}{.sat}.type d, a, b`
pub(super) fn binary<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>, op: FloatBin) -> Lower {
    let mode = i.float_mode();
    binary_with(l, i, op, mode)
}

fn binary_with<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>, op: FloatBin, mode: FloatMode) -> Lower {
    let types = match op {
        FloatBin::DivApprox | FloatBin::DivFull => SINGLE,
        FloatBin::Div | FloatBin::CopySign => SINGLE_OR_DOUBLE,
        _ => FLOATS,
    };
    let (ty, float) = i.float(types)?;
    i.done()?;
    let [d, a, b] = i.operands()?;
    let args = [l.value(a, ty)?, l.value(b, ty)?];
    let result = l.b.emit1(Op::Float(op, float, mode), &args, register_ty(ty));
    l.write(d, result)
}

/// `fma.rnd{.ftz}{.sat}{.relu}.type d, a, b, c`
pub(super) fn fma<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    let mode = i.float_mode();
    let (ty, float) = i.float(FLOATS)?;
    i.done()?;
    let [d, a, b, c] = i.operands()?;
    let args = [l.value(a, ty)?, l.value(b, ty)?, l.value(c, ty)?];
    let result = l.b.emit1(Op::Fma(float, mode), &args, register_ty(ty));
    l.write(d, result)
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
    let xorsign_abs = i.take("xorsign") && i.take("abs");
    let mode = FloatMode { ftz: i.take("ftz"), ..FloatMode::default() };
    let op = if is_min { FloatBin::Min { nan, xorsign_abs } } else { FloatBin::Max { nan, xorsign_abs } };
    // The form with three sources is new on sm_100.
    if i.count() == 4 {
        return Err(Failure::Unsupported);
    }
    binary_with(l, i, op, mode)
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
