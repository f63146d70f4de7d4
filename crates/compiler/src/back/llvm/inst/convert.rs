//! Conversions between number formats.

use super::super::builder::{Builder, Val};
use super::super::ty::{Scalar, Type};
use super::part::in_parts;
use super::{Result, Unsupported, float, minifloat, pack as registers, round};
use crate::ir::{Float, FloatMode, Int, Num, Round};

pub fn cvt(b: &mut Builder, from: Num, to: Num, mode: FloatMode, x: &Val, ty: Type) -> Result<Val> {
    let unsupported = || Err(Unsupported(format!("cvt from {from:?} to {to:?}")));
    let value = match (from, to) {
        (Num::Int(from), Num::Int(to)) => return Ok(int_to_int(b, from, to, mode.sat, x, ty)),
        (Num::Int(from), Num::Float(to)) => int_to_float(b, from, to, mode, x)?,
        (Num::Float(from), Num::Int(to)) => return float_to_int(b, from, to, mode, x, ty),
        (Num::Float(from), Num::Float(to)) => float_to_float(b, from, to, mode, x)?,
        (Num::Float(Float::F32), Num::Tf32) => minifloat::tf32(b, mode, x),
        (Num::E4m3x2 | Num::E5m2x2, Num::Float(Float::F16x2)) => minifloat::unpack(b, from, mode, x),
        (Num::Float(Float::F16x2), Num::E4m3x2 | Num::E5m2x2) => minifloat::pack_halves(b, to, mode, x),
        _ => return unsupported(),
    };
    Ok(registers::resize(b, &value, ty, false))
}

fn int_to_int(b: &mut Builder, from: Int, to: Int, sat: bool, x: &Val, ty: Type) -> Val {
    let bits = b.to_bits(x);
    let x = b.resize(&bits, u32::from(from.bits), from.signed);
    let value = if sat {
        // One more bit than either needs, so that both ranges are signed ranges of it.
        let width = u32::from(from.bits.max(to.bits)) * 2;
        let wide = b.resize(&x, width, from.signed);
        let (least, most) = match to.signed {
            true => (-(1i128 << (to.bits - 1)), (1i128 << (to.bits - 1)) - 1),
            false => (0, (1i128 << to.bits) - 1),
        };
        let (least, most) = (Builder::int(wide.ty, least), Builder::int(wide.ty, most));
        let above = b.same("smax", &[&wide, &least]);
        let inside = b.same("smin", &[&above, &most]);
        b.resize(&inside, u32::from(to.bits), false)
    } else {
        b.resize(&x, u32::from(to.bits), from.signed)
    };
    // PTX differs: into a wider register the result is extended as its own type says.
    let sized = b.resize(&value, ty.bits(), to.signed);
    b.bitcast(&sized, ty)
}

/// An integer as f64: exact, or (64 bits) rounded to odd.
fn int_to_f64_odd(b: &mut Builder, from: Int, x: &Val) -> Val {
    let double = x.ty.double();
    let op = if from.signed { "sitofp" } else { "uitofp" };
    if from.bits < 64 {
        return b.cast(op, x, double);
    }
    // |x| ≥ 2^53: the low 11 bits may not fit; they become one sticky bit above them.
    let magnitude = if from.signed { b.same_defined("abs", x) } else { x.clone() };
    let large = b.icmp_int("uge", &magnitude, 1 << 53);
    let low = b.bin_int("and", &magnitude, 0x7ff);
    let inexact = b.icmp_int("ne", &low, 0);
    let sticky = b.cast("zext", &inexact, x.ty);
    let sticky = b.bin_int("shl", &sticky, 11);
    let high = b.bin_int("and", &magnitude, !0x7ff);
    let odd = b.or(&high, &sticky);
    let magnitude = b.select(&large, &odd, &magnitude);
    let value = b.cast("uitofp", &magnitude, double);
    if !from.signed {
        return value;
    }
    let negative = b.icmp_int("slt", x, 0);
    let minus = b.fneg(&value);
    b.select(&negative, &minus, &value)
}

/// In the target's natural type: f32, f64, or the register of a half.
fn int_to_float(b: &mut Builder, from: Int, to: Float, mode: FloatMode, x: &Val) -> Result<Val> {
    let bits = b.to_bits(x);
    let x = b.resize(&bits, u32::from(from.bits), from.signed);
    let op = if from.signed { "sitofp" } else { "uitofp" };
    let value = match to {
        Float::F16x2 | Float::Bf16x2 => return Err(Unsupported(format!("cvt from an integer to {to:?}"))),
        Float::F32 if mode.round == Round::Nearest => b.cast(op, &x, x.ty.float()),
        Float::F64 if mode.round == Round::Nearest || from.bits < 64 => b.cast(op, &x, x.ty.double()),
        Float::F64 => {
            let nearest = b.cast(op, &x, x.ty.double());
            // Two exact halves give the error.
            let high = if from.signed { b.bin_int("ashr", &x, 32) } else { b.bin_int("lshr", &x, 32) };
            let high = b.cast(op, &high, x.ty.double());
            let high = b.fmul(&high, &Builder::fp(x.ty.double(), 4_294_967_296.0));
            let low = b.bin_int("and", &x, 0xffff_ffff);
            let low = b.cast("uitofp", &low, x.ty.double());
            let rest = b.fsub(&high, &nearest);
            let error = b.fadd(&rest, &low);
            round::correct_f64(b, mode.round, &nearest, &error)
        }
        Float::F32 => {
            let odd = int_to_f64_odd(b, from, &x);
            round::to_f32(b, mode.round, &odd)
        }
        Float::F16 | Float::Bf16 => {
            let odd = int_to_f64_odd(b, from, &x);
            let odd = round::to_f32_odd(b, &odd);
            let odd = float::finish(b, FloatMode { ftz: false, ..mode }, odd);
            return Ok(round::narrow_f32(b, to, mode.round, &odd));
        }
    };
    Ok(float::finish(b, FloatMode { ftz: false, ..mode }, value))
}

fn float_to_int(b: &mut Builder, from: Float, to: Int, mode: FloatMode, x: &Val, ty: Type) -> Result<Val> {
    if matches!(from, Float::F16x2 | Float::Bf16x2) {
        return Err(Unsupported(format!("cvt from {from:?} to an integer")));
    }
    let mut value = float::widen(b, from, x);
    if mode.ftz {
        value = float::flush(b, &value);
    }
    // The conversion itself rounds to zero.
    let value = if mode.round == Round::Zero { value } else { to_integral(b, mode.round, &value) };
    let mut result = saturate(b, to, &value);
    let int = result.ty;
    // PTX differs: NaN gives 0 only from formats smaller than f64 to less than 64 bits, else the top bit alone.
    if from == Float::F64 || to.bits == 64 {
        let is_nan = b.fcmp("uno", &value, &value);
        let top = Builder::int(int, 1i128 << (to.bits - 1));
        result = b.select(&is_nan, &top, &result);
    }
    let sized = b.resize(&result, ty.bits(), to.signed);
    Ok(b.bitcast(&sized, ty))
}

/// To an integer, rounding to zero; what is beyond its range gives the range's end, NaN gives 0.
fn saturate(b: &mut Builder, to: Int, x: &Val) -> Val {
    let bits = u32::from(to.bits);
    let int = x.ty.ints(bits);
    if bits == 64 {
        return b.intrinsic(if to.signed { "fptosi.sat" } else { "fptoui.sat" }, &[int, x.ty], int, &[x]);
    }
    if bits == 32
        && let Some(converted) = saturate_native(b, to, x)
    {
        return converted;
    }
    // LLVM takes its own saturating conversion of vectors apart lane by lane; comparisons stay vectors.
    let (least, end) = match to.signed {
        true => (-2f64.powi(bits as i32 - 1), 2f64.powi(bits as i32 - 1)),
        false => (0.0, 2f64.powi(bits as i32)),
    };
    let (least, end) = (Builder::fp(x.ty, least), Builder::fp(x.ty, end));
    let above = b.fcmp("ogt", x, &least);
    let inside = b.select(&above, x, &least);
    let beyond = b.fcmp("oge", x, &end);
    let inside = b.select(&beyond, &least, &inside);
    // From 32 bits down to 8 the intermediate is i32, which every CPU converts to.
    let wide = x.ty.ints(32);
    let op = if to.signed || bits < 32 { "fptosi" } else { "fptoui" };
    let converted = b.cast(op, &inside, wide);
    let most = if to.signed { (1i128 << (bits - 1)) - 1 } else { (1i128 << bits) - 1 };
    let converted = b.select(&beyond, &Builder::int(wide, most), &converted);
    let is_nan = b.fcmp("uno", x, x);
    let converted = b.select(&is_nan, &Builder::int(wide, 0), &converted);
    b.resize(&converted, bits, false)
}

/// The same to 32 bits by the CPU's own conversion of vectors, which gives the top bit alone for what a signed word cannot have, and all
/// bits for what an unsigned one cannot (AVX-512): one end of the range comes by itself.
fn saturate_native(b: &mut Builder, to: Int, x: &Val) -> Option<Val> {
    let wide = b.vector_bits() >= 512;
    let part = match (x.ty.scalar, wide) {
        (Scalar::Float, true) => 16,
        (Scalar::Float, false) | (Scalar::Double, true) => 8,
        (Scalar::Double, false) => 4,
        _ => return None,
    };
    if b.vector_bits() < 256 || x.ty.lanes < part || !(wide || to.signed) {
        return None;
    }
    let zero = Builder::fp(x.ty, 0.0);
    let inside = if to.signed {
        x.clone()
    } else {
        let above = b.fcmp("ogt", x, &zero);
        b.select(&above, x, &zero)
    };
    let letter = if x.ty.scalar == Scalar::Float { 's' } else { 'd' };
    let converted = in_parts(b, &[&inside], part, |b, pieces| {
        let (from, into) = (pieces[0].ty, pieces[0].ty.ints(32));
        if !wide {
            let name = format!("llvm.x86.avx.cvtt.p{letter}2dq.256");
            b.declare(&name, format!("declare {into} @{name}({from})"));
            return b.assign(into, format_args!("call {into} @{name}({})", pieces[0].typed()));
        }
        let name = format!("llvm.x86.avx512.mask.cvttp{letter}2{}dq.512", if to.signed { "" } else { "u" });
        let flags = Type::int(part, 1);
        b.declare(&name, format!("declare {into} @{name}({from}, {into}, {flags}, i32 immarg)"));
        // 4: as the processor is set.
        let rest = format_args!("{into} zeroinitializer, {flags} -1, i32 4");
        b.assign(into, format_args!("call {into} @{name}({}, {rest})", pieces[0].typed()))
    });
    if !to.signed {
        return Some(converted);
    }
    let beyond = b.fcmp("oge", x, &Builder::fp(x.ty, 2f64.powi(31)));
    let most = Builder::int(converted.ty, i32::MAX.into());
    let converted = b.select(&beyond, &most, &converted);
    let is_nan = b.fcmp("uno", x, x);
    Some(b.select(&is_nan, &Builder::int(converted.ty, 0), &converted))
}

fn to_integral(b: &mut Builder, rounding: Round, x: &Val) -> Val {
    match rounding {
        Round::Nearest => b.round_even(x),
        Round::Zero => b.same("trunc", &[x]),
        Round::Down => b.same("floor", &[x]),
        Round::Up => b.same("ceil", &[x]),
        Round::NearestAway => {
            // Halfway goes outward: trunc(x) plus one where the rest is a half or more.
            let whole = b.same("trunc", &[x]);
            let rest = b.fsub(x, &whole);
            let size = b.fabs(&rest);
            let outward = b.fcmp("oge", &size, &Builder::fp(x.ty, 0.5));
            let one = b.copysign(&Builder::fp(x.ty, 1.0), x);
            let next = b.fadd(&whole, &one);
            b.select(&outward, &next, &whole)
        }
    }
}

/// `cvt.rni.f32.f32` and friends.
pub fn round_int(b: &mut Builder, ty: Float, mode: FloatMode, x: &Val) -> Result<Val> {
    if matches!(ty, Float::F16x2 | Float::Bf16x2) {
        return Err(Unsupported(format!("rounding {ty:?} to integers")));
    }
    let mut value = float::widen(b, ty, x);
    if mode.ftz {
        value = float::flush(b, &value);
    }
    let integral = to_integral(b, mode.round, &value);
    let value = float::finish(b, mode, integral);
    Ok(match ty {
        Float::F16 | Float::Bf16 => round::narrow_f32(b, ty, Round::Nearest, &value),
        _ => value,
    })
}

/// `.ftz` of an f64 that was rounded to f32.
///
/// PTX differs: where `cvt.ftz` makes an f32 of an f64, ptxas looks at the f64. It is flushed below what rounds to the least
/// normal number if exponents had no end, so some that round up to that number as subnormals do are flushed too.
fn flush_rounded(b: &mut Builder, rounding: Round, exact: &Val, rounded: &Val) -> Val {
    // 2^-126, and the least that rounds up to it to the nearest and away from zero.
    let [least, nearest, away] = [0x3810_0000_0000_0000u64, 0x380f_ffff_f000_0000, 0x380f_ffff_e000_0001]
        .map(|bits| Builder::fp(exact.ty, f64::from_bits(bits)));
    let exact_bits = b.to_bits(exact);
    let negative = b.icmp_int("slt", &exact_bits, 0);
    let limit = match rounding {
        Round::Nearest | Round::NearestAway => nearest,
        Round::Zero => least,
        Round::Down => b.select(&negative, &away, &least),
        Round::Up => b.select(&negative, &least, &away),
    };
    let size = b.fabs(exact);
    let is_tiny = b.fcmp("olt", &size, &limit);
    let zero = b.copysign(&Builder::fp(rounded.ty, 0.0), rounded);
    b.select(&is_tiny, &zero, rounded)
}

/// In the target's natural type.
fn float_to_float(b: &mut Builder, from: Float, to: Float, mode: FloatMode, x: &Val) -> Result<Val> {
    if [from, to].iter().any(|ty| matches!(ty, Float::F16x2 | Float::Bf16x2)) {
        return Err(Unsupported(format!("cvt from {from:?} to {to:?}")));
    }
    let mut value = float::widen(b, from, x);
    // PTX differs: NVIDIA's GPUs do not flush what becomes an f16 (`F2F.F16.F32.RP`, without `.FTZ`): rounded up, a subnormal
    // number gives the least f16. To bf16 they do.
    if mode.ftz && to != Float::F16 {
        value = float::flush(b, &value);
    }
    let is_double = from == Float::F64;
    let value = match to {
        Float::F64 => b.cast("fpext", &value, x.ty.double()),
        Float::F32 if is_double => {
            let rounded = round::to_f32(b, mode.round, &value);
            let rounded = if mode.ftz { flush_rounded(b, mode.round, &value, &rounded) } else { rounded };
            return Ok(float::finish(b, FloatMode { ftz: false, ..mode }, rounded));
        }
        Float::F32 => value,
        _ => {
            let value = if is_double { round::to_f32_odd(b, &value) } else { value };
            let value = float::finish(b, FloatMode { ftz: false, ..mode }, value);
            return Ok(round::narrow_f32(b, to, mode.round, &value));
        }
    };
    Ok(float::finish(b, mode, value))
}

/// `[high, low]`: two f32 into one packed register.
pub fn pack(b: &mut Builder, from: Float, to: Num, mode: FloatMode, high: &Val, low: &Val) -> Result<Val> {
    let part = match (from, to) {
        (Float::F32, Num::Float(Float::F16x2)) => Float::F16,
        (Float::F32, Num::Float(Float::Bf16x2)) => Float::Bf16,
        (Float::F32, Num::E4m3x2 | Num::E5m2x2) => return Ok(minifloat::pack_f32(b, to, mode, high, low)),
        _ => return Err(Unsupported(format!("cvt from two {from:?} to {to:?}"))),
    };
    let high = float_to_float(b, from, part, mode, high)?;
    let low = float_to_float(b, from, part, mode, low)?;
    let (high, low) = (b.resize(&high, 32, false), b.resize(&low, 32, false));
    let high = b.bin_int("shl", &high, 16);
    Ok(b.or(&high, &low))
}
