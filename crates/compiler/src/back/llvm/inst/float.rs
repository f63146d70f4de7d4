//! Float arithmetic.
//!
//! Halves are computed in f32 (f64 for fma) and rounded once more, which gives the same result because the wider format
//! has at least twice the digits plus two. f32 NaNs keep whatever payload the CPU gives until [`canonical_nan`].

use super::super::builder::{Builder, Val};
use super::super::ty::Scalar;
use super::integer::opaque;
use super::{Result, Unsupported, approx, round, sqrt, wide};
use crate::ir::{Float, FloatBin, FloatMode, FloatUn, Round};

/// A half as an f32; f32 and f64 as floats whatever the register's type.
pub fn widen(b: &mut Builder, ty: Float, x: &Val) -> Val {
    match ty {
        Float::F16 => {
            let half = b.bitcast(x, x.ty.with(Scalar::Half));
            b.cast("fpext", &half, x.ty.float())
        }
        Float::Bf16 => {
            let bits = b.resize(x, 32, false);
            let bits = b.bin_int("shl", &bits, 16);
            b.bitcast(&bits, x.ty.float())
        }
        Float::F64 => b.bitcast(x, x.ty.double()),
        _ => b.bitcast(x, x.ty.float()),
    }
}

/// The canonical NaN (`0x7fffffff`, f64 `0xfff8000000000000`) for any NaN.
pub fn canonical_nan(b: &mut Builder, x: &Val) -> Val {
    let is_nan = b.fcmp("uno", x, x);
    let bits = match x.ty.scalar {
        Scalar::Double => 0xfff8_0000_0000_0000,
        Scalar::Half => 0x7fff,
        _ => 0x7fff_ffff,
    };
    let nan = Builder::bits(x.ty, bits);
    b.select(&is_nan, &nan, x)
}

/// `.ftz`: a subnormal f32 becomes zero of its sign.
pub fn flush(b: &mut Builder, x: &Val) -> Val {
    if x.ty.scalar != Scalar::Float {
        return x.clone();
    }
    let bits = b.to_bits(x);
    let flushed = flush_bits(b, &bits, 0x7f80_0000, 0x8000_0000);
    b.bitcast(&flushed, x.ty)
}

/// An f32 or f64 as an operation of this mode takes it.
fn argument(b: &mut Builder, ty: Float, mode: FloatMode, number: usize, x: &Val) -> Val {
    let x = widen(b, ty, x);
    if mode.flushes(number) { flush(b, &x) } else { x }
}

fn flush_bits(b: &mut Builder, bits: &Val, exponent: i128, sign: i128) -> Val {
    let masked = b.bin_int("and", bits, exponent);
    let tiny = b.icmp_int("eq", &masked, 0);
    let zero = b.bin_int("and", bits, sign);
    b.select(&tiny, &zero, bits)
}

/// `.ftz` of an f16 in its register.
pub fn flush_half(b: &mut Builder, ty: Float, ftz: bool, x: &Val) -> Val {
    if ftz && ty == Float::F16 { flush_bits(b, x, 0x7c00, 0x8000) } else { x.clone() }
}

/// `.sat`: clamped to [0, 1]; NaN and -0 give +0.
pub fn saturate(b: &mut Builder, x: &Val) -> Val {
    let (zero, one) = (Builder::fp(x.ty, 0.0), Builder::fp(x.ty, 1.0));
    let positive = b.fcmp("ogt", x, &zero);
    let mut x = b.select(&positive, x, &zero);
    if b.is_amdgcn() {
        // LLVM would make an output modifier of both comparisons, and no manual of AMD's says that it takes the sign from a zero.
        x = opaque(b, &x);
    }
    let below = b.fcmp("olt", &x, &one);
    b.select(&below, &x, &one)
}

/// `.relu`: negative becomes +0, NaN the canonical NaN.
pub fn relu(b: &mut Builder, x: &Val) -> Val {
    let zero = Builder::fp(x.ty, 0.0);
    let keep = b.fcmp("ugt", x, &zero);
    let clamped = b.select(&keep, x, &zero);
    canonical_nan(b, &clamped)
}

/// What comes after rounding: `.ftz`, `.sat`, `.relu`.
pub fn finish(b: &mut Builder, mode: FloatMode, x: Val) -> Val {
    let mut x = x;
    if mode.ftz {
        x = flush(b, &x);
    }
    if mode.sat {
        x = saturate(b, &x);
    }
    if mode.relu {
        x = relu(b, &x);
    }
    x
}

/// Both halves of packed registers, each through `each`, and back.
fn halves(
    b: &mut Builder,
    args: &[Val],
    mut each: impl FnMut(&mut Builder, &[Val]) -> Result<Val>,
) -> Result<Val> {
    let mut parts = Vec::with_capacity(2);
    for shift in [0, 16] {
        let mut half_args = Vec::with_capacity(args.len());
        for arg in args {
            let shifted = if shift == 0 { arg.clone() } else { b.bin_int("lshr", arg, shift) };
            half_args.push(b.resize(&shifted, 16, false));
        }
        let half = each(b, &half_args)?;
        parts.push(b.resize(&half, 32, false));
    }
    let high = b.bin_int("shl", &parts[1], 16);
    Ok(b.or(&parts[0], &high))
}

/// The element type of a packed type.
fn element(ty: Float) -> Option<Float> {
    match ty {
        Float::F16x2 => Some(Float::F16),
        Float::Bf16x2 => Some(Float::Bf16),
        _ => None,
    }
}

/// Rounds an f32 to a half's register and finishes as the mode says.
fn to_half(b: &mut Builder, ty: Float, mode: FloatMode, x: Val) -> Val {
    let mut x = x;
    if mode.sat {
        x = saturate(b, &x);
    }
    if mode.relu {
        x = relu(b, &x);
    }
    let bits = round::narrow_f32(b, ty, Round::Nearest, &x);
    flush_half(b, ty, mode.ftz, &bits)
}

pub fn binary(b: &mut Builder, op: FloatBin, ty: Float, mode: FloatMode, x: &Val, y: &Val) -> Result<Val> {
    if let Some(part) = element(ty) {
        return halves(b, &[x.clone(), y.clone()], |b, args| binary(b, op, part, mode, &args[0], &args[1]));
    }
    if matches!(ty, Float::F16 | Float::Bf16) {
        if mode.round != Round::Nearest {
            return Err(Unsupported(format!("{op:?} of {ty:?} with rounding {:?}", mode.round)));
        }
        if op == FloatBin::CopySign {
            let magnitude = b.bin_int("and", y, 0x7fff);
            let sign = b.bin_int("and", x, 0x8000);
            return Ok(b.or(&magnitude, &sign));
        }
        let (x, y) = (flush_half(b, ty, mode.ftz, x), flush_half(b, ty, mode.ftz, y));
        let (x, y) = (widen(b, ty, &x), widen(b, ty, &y));
        let value = core(b, op, Round::Nearest, &x, &y)?;
        return Ok(to_half(b, ty, mode, value));
    }
    let (x, y) = (argument(b, ty, mode, 0, x), argument(b, ty, mode, 1, y));
    let value = core(b, op, mode.round, &x, &y)?;
    Ok(finish(b, mode, value))
}

/// An operation on f32 or f64 values.
fn core(b: &mut Builder, op: FloatBin, rounding: Round, x: &Val, y: &Val) -> Result<Val> {
    let nearest = rounding == Round::Nearest;
    let is_f64 = x.ty.scalar == Scalar::Double;
    Ok(match op {
        FloatBin::Add if nearest => b.fadd(x, y),
        FloatBin::Sub if nearest => b.fsub(x, y),
        FloatBin::Mul if nearest => b.fmul(x, y),
        FloatBin::Div if nearest => b.bin("fdiv", x, y),
        FloatBin::Add if is_f64 => wide::add(b, rounding, x, y),
        FloatBin::Add => round::add(b, rounding, x, y),
        FloatBin::Sub => {
            let minus = b.fneg(y);
            return core(b, FloatBin::Add, rounding, x, &minus);
        }
        FloatBin::Mul if is_f64 => wide::mul(b, rounding, x, y),
        FloatBin::Mul => round::mul(b, rounding, x, y),
        FloatBin::Div if is_f64 => wide::div(b, rounding, x, y),
        FloatBin::Div => round::div(b, rounding, x, y),
        FloatBin::DivApprox => approx::div(b, x, y),
        FloatBin::DivFull => b.bin("fdiv", x, y),
        FloatBin::Min { nan, xorsign_abs } => min_max(b, "olt", "or", nan, xorsign_abs, x, y),
        FloatBin::Max { nan, xorsign_abs } => min_max(b, "ogt", "and", nan, xorsign_abs, x, y),
        FloatBin::CopySign => b.copysign(y, x),
    })
}

/// PTX differs: the number wins over NaN and -0 < +0; LLVM's `minnum` leaves the sign of zero open.
fn min_max(b: &mut Builder, wins: &str, join: &str, nan: bool, xorsign_abs: bool, x: &Val, y: &Val) -> Val {
    let sign = xorsign_abs.then(|| xor_sign(b, x, y));
    let (x, y) = if xorsign_abs { (b.fabs(x), b.fabs(y)) } else { (x.clone(), y.clone()) };
    let (x, y) = if Builder::is_constant(&x) { (y, x) } else { (x, y) };
    let first = b.fcmp(wins, &x, &y);
    let mut value = b.select(&first, &x, &y);
    // Of what is equal y was taken, which a constant zero of the sign that wins may be, and any other number.
    let losing_zero = if join == "and" { 1 << (x.ty.bits() - 1) } else { 0 };
    let is_decided = Builder::is_constant(&y) && y.text != Builder::bits(y.ty, losing_zero).text;
    if !xorsign_abs && !is_decided {
        // Equal: the same number, or zeros whose signs the bit operation joins.
        let equal = b.fcmp("oeq", &x, &y);
        let (xb, yb) = (b.to_bits(&x), b.to_bits(&y));
        let joined = b.bin(join, &xb, &yb);
        let joined = b.bitcast(&joined, x.ty);
        value = b.select(&equal, &joined, &value);
    }
    if nan {
        let unordered = b.fcmp("uno", &x, &y);
        let canonical = match x.ty.scalar {
            Scalar::Double => 0x7fff_ffff_ffff_ffff,
            _ => 0x7fff_ffff,
        };
        let canonical = Builder::bits(x.ty, canonical);
        value = b.select(&unordered, &canonical, &value);
    } else {
        // x is NaN: the comparison was false and y was taken. y is NaN:
        let y_is_nan = b.fcmp("uno", &y, &y);
        value = b.select(&y_is_nan, &x, &value);
    }
    match sign {
        Some(sign) => b.copysign(&value, &sign),
        None => value,
    }
}

/// A value whose sign is the xor of both signs.
fn xor_sign(b: &mut Builder, x: &Val, y: &Val) -> Val {
    let (xb, yb) = (b.to_bits(x), b.to_bits(y));
    let signs = b.xor(&xb, &yb);
    b.bitcast(&signs, x.ty)
}

pub fn unary(b: &mut Builder, op: FloatUn, ty: Float, mode: FloatMode, x: &Val) -> Result<Val> {
    if let Some(part) = element(ty) {
        return halves(b, std::slice::from_ref(x), |b, args| unary(b, op, part, mode, &args[0]));
    }
    if matches!(ty, Float::F16 | Float::Bf16) {
        let x = flush_half(b, ty, mode.ftz, x);
        match op {
            FloatUn::Neg => return Ok(b.bin_int("xor", &x, 0x8000)),
            FloatUn::Abs => return Ok(b.bin_int("and", &x, 0x7fff)),
            _ => {}
        }
        let x = widen(b, ty, &x);
        let value = unary_core(b, op, mode, &x)?;
        return Ok(to_half(b, ty, mode, value));
    }
    let x = argument(b, ty, mode, 0, x);
    let value = unary_core(b, op, mode, &x)?;
    Ok(finish(b, mode, value))
}

fn unary_core(b: &mut Builder, op: FloatUn, mode: FloatMode, x: &Val) -> Result<Val> {
    let is_f64 = x.ty.scalar == Scalar::Double;
    let one = Builder::fp(x.ty, 1.0);
    Ok(match op {
        FloatUn::Neg => b.fneg(x),
        FloatUn::Abs => b.fabs(x),
        FloatUn::Sqrt if mode.round == Round::Nearest => sqrt::nearest(b, x),
        FloatUn::Sqrt if is_f64 => wide::sqrt(b, mode.round, x),
        FloatUn::Sqrt => round::sqrt(b, mode.round, x),
        FloatUn::Rcp => return core(b, FloatBin::Div, mode.round, &one, x),
        FloatUn::SqrtApprox => sqrt::nearest(b, x),
        FloatUn::RcpApprox => b.bin("fdiv", &one, x),
        FloatUn::RsqrtApprox if !is_f64 && b.vector_bits() >= 512 => approx::rsqrt(b, x),
        // Two roundings: 2^-23.4, the manual allows 2^-22.9.
        FloatUn::RsqrtApprox => {
            let root = sqrt::nearest(b, x);
            b.bin("fdiv", &one, &root)
        }
        FloatUn::RcpApproxFtz64 | FloatUn::RsqrtApproxFtz64 if !is_f64 => {
            return Err(Unsupported(format!("{op:?} of {}", x.ty)));
        }
        FloatUn::RcpApproxFtz64 => approx::seed64(b, x, |b, x| {
            let one = Builder::fp(x.ty, 1.0);
            b.bin("fdiv", &one, x)
        }),
        FloatUn::RsqrtApproxFtz64 => approx::seed64(b, x, |b, x| {
            let one = Builder::fp(x.ty, 1.0);
            let root = sqrt::nearest(b, x);
            b.bin("fdiv", &one, &root)
        }),
        _ if is_f64 => return Err(Unsupported(format!("{op:?} of {}", x.ty))),
        FloatUn::Ex2Approx => approx::ex2(b, x),
        FloatUn::Lg2Approx => approx::lg2(b, x),
        FloatUn::SinApprox => approx::sin_cos(b, x, false),
        FloatUn::CosApprox => approx::sin_cos(b, x, true),
        FloatUn::TanhApprox => approx::tanh(b, x),
    })
}

/// `fma.rnd d, a, b, c`
pub fn fma(b: &mut Builder, ty: Float, mode: FloatMode, args: &[Val]) -> Result<Val> {
    if let Some(part) = element(ty) {
        return halves(b, args, |b, args| fma(b, part, mode, args));
    }
    if matches!(ty, Float::F16 | Float::Bf16) {
        if mode.round != Round::Nearest {
            return Err(Unsupported(format!("fma of {ty:?} with rounding {:?}", mode.round)));
        }
        let mut wide_args = Vec::with_capacity(3);
        for arg in args {
            let arg = flush_half(b, ty, mode.ftz, arg);
            wide_args.push(widen(b, ty, &arg));
        }
        let exact = round::fma_odd(b, &wide_args[0], &wide_args[1], &wide_args[2]);
        let odd = round::to_f32_odd(b, &exact);
        return Ok(to_half(b, ty, mode, odd));
    }
    let mut values = Vec::with_capacity(3);
    for (number, arg) in args.iter().enumerate() {
        values.push(argument(b, ty, mode, number, arg));
    }
    let (x, y, z) = (&values[0], &values[1], &values[2]);
    let value = match (mode.round, ty) {
        (Round::Nearest, _) => b.fma(x, y, z),
        (rounding, Float::F64) => wide::fma(b, rounding, x, y, z),
        (rounding, _) if mode.near => round::fma_near(b, rounding, x, y, z),
        (rounding, _) => round::fma(b, rounding, x, y, z),
    };
    // What is near its constant is not subnormal.
    Ok(finish(b, FloatMode { ftz: mode.ftz && !mode.near, ..mode }, value))
}
