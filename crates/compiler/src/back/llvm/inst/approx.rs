//! `*.approx` functions in plain vector arithmetic, within the error the PTX manual allows.
//!
//! No table, no libm. Every integer taken from a float is masked or clamped first, so NaN and infinity give no poison.

use super::super::builder::{Builder, Val};
use super::super::ty::{Scalar, Type};
use super::part::in_parts;
use std::f32::consts::{FRAC_2_PI, FRAC_PI_2, LN_2, LOG2_E};

/// 1.5 × 2^23: adding it leaves the nearest integer in the low mantissa bits.
const MAGIC: f64 = 12_582_912.0;
const MAGIC_BITS: i128 = 0x4b40_0000;

/// (2^f - 1) / f on [-1/2, 1/2], error 2^-26.1.
const EX2: [f32; 6] = [LN_2, 0.240_226_5, 0.055_503_57, 0.009_618_083, 0.001_339_086_3, 0.000_154_531_63];
/// log2(1 + r) / r on [√½ - 1, √2 - 1], error 2^-24.9.
const LG2: [f32; 10] = [
    LOG2_E,
    -0.721_347_33,
    0.480_898_53,
    -0.360_696_55,
    0.288_552_55,
    -0.239_608_12,
    0.204_857_65,
    -0.191_388_38,
    0.184_760_33,
    -0.107_497_89,
];
/// (sin r / r - 1) / r², (cos r - 1 + r²/2) / r⁴ in r² on [-π/4, π/4].
const SIN: [f32; 3] = [-0.166_666_64, 0.008_332_725, -0.000_195_828_56];
const COS: [f32; 3] = [0.041_666_664, -0.001_388_827_9, 2.454_289_7e-5];
/// π/2 in three parts.
const HALF_PI: [f32; 3] = [FRAC_PI_2, -4.371_139e-8, -1.715_124_5e-15];
/// (tanh a / a - 1) / a² in a² below a = 0.55, error 2^-25.6.
const TANH: [f32; 5] = [-0.333_333_3, 0.133_331_13, -0.053_909_43, 0.021_309_389, -0.006_610_227_7];
const TANH_SMALL: f64 = 0.549_999_952_316_284_2;
const TWO_LOG2_E: f32 = 2.0 * LOG2_E;

fn constant(like: &Val, value: f32) -> Val {
    Builder::fp(like.ty, f64::from(value))
}

/// Horner's scheme, lowest coefficient first.
fn polynomial(b: &mut Builder, x: &Val, coefficients: &[f32]) -> Val {
    let mut value = constant(x, coefficients[coefficients.len() - 1]);
    for coefficient in coefficients.iter().rev().skip(1) {
        value = b.fma(&value, x, &constant(x, *coefficient));
    }
    value
}

/// The smaller (`ogt`) or larger (`olt`) of a constant limit and `x`; NaN stays NaN.
fn limit(b: &mut Builder, beyond: &str, x: &Val, limit: f64) -> Val {
    let limit = Builder::fp(x.ty, limit);
    let outside = b.fcmp(beyond, x, &limit);
    b.select(&outside, &limit, x)
}

/// 2^n of an integer between -126 and 127.
fn power_of_two(b: &mut Builder, n: &Val) -> Val {
    let biased = b.bin_int("add", n, 127);
    let bits = b.bin_int("shl", &biased, 23);
    b.bitcast(&bits, n.ty.float())
}

pub fn ex2(b: &mut Builder, x: &Val) -> Val {
    let x = limit(b, "ogt", x, 129.0);
    let x = limit(b, "olt", &x, -151.0);
    let magic = Builder::fp(x.ty, MAGIC);
    let shifted = b.fadd(&x, &magic);
    let n = b.to_bits(&shifted);
    let n = b.bin_int("sub", &n, MAGIC_BITS);
    let whole = b.fsub(&shifted, &magic);
    let f = b.fsub(&x, &whole);
    let q = polynomial(b, &f, &EX2);
    let p = b.fma(&q, &f, &Builder::fp(x.ty, 1.0));
    // Two steps, so that subnormal and overflowing results are rounded once.
    let half = b.bin_int("ashr", &n, 1);
    let rest = b.sub(&n, &half);
    let (first, second) = (power_of_two(b, &half), power_of_two(b, &rest));
    let scaled = b.fmul(&p, &first);
    b.fmul(&scaled, &second)
}

pub fn lg2(b: &mut Builder, x: &Val) -> Val {
    let ty = x.ty;
    // Subnormals are scaled into the normal range.
    let tiny = b.fcmp("olt", x, &Builder::fp(ty, f64::from(f32::MIN_POSITIVE)));
    let scaled = b.fmul(x, &Builder::fp(ty, 8_388_608.0));
    let normal = b.select(&tiny, &scaled, x);
    let bits = b.to_bits(&normal);
    // Exponent such that the mantissa lies in [√½, √2).
    let offset = b.bin_int("sub", &bits, 0x3f35_04f3);
    let exponent = b.bin_int("ashr", &offset, 23);
    let removed = b.bin_int("shl", &exponent, 23);
    let mantissa = b.sub(&bits, &removed);
    let mantissa = b.bitcast(&mantissa, ty);
    let shift = b.select(&tiny, &Builder::int(bits.ty, 23), &Builder::int(bits.ty, 0));
    let exponent = b.sub(&exponent, &shift);
    let exponent = b.cast("sitofp", &exponent, ty);
    let r = b.fsub(&mantissa, &Builder::fp(ty, 1.0));
    let q = polynomial(b, &r, &LG2);
    let value = b.fma(&q, &r, &exponent);
    // 0 → -∞, negative and NaN → NaN, +∞ → +∞.
    let zero = Builder::fp(ty, 0.0);
    let infinity = Builder::bits(ty, 0x7f80_0000);
    let is_finite = b.fcmp("olt", x, &infinity);
    let value = b.select(&is_finite, &value, x);
    let is_zero = b.fcmp("oeq", x, &zero);
    let value = b.select(&is_zero, &Builder::bits(ty, 0xff80_0000), &value);
    let negative = b.fcmp("olt", x, &zero);
    b.select(&negative, &Builder::bits(ty, 0x7fff_ffff), &value)
}

pub fn sin_cos(b: &mut Builder, x: &Val, is_cosine: bool) -> Val {
    let ty = x.ty;
    // Both are computed from |x|; the sine takes x's sign in the end, and so keeps that of zero.
    let x_bits = b.to_bits(x);
    let x_sign = b.bin_int("and", &x_bits, 0x8000_0000);
    let x = &b.fabs(x);
    let turns = b.fmul(x, &constant(x, FRAC_2_PI));
    let n = b.round_even(&turns);
    let minus = b.fneg(&n);
    let mut r = x.clone();
    for part in HALF_PI {
        r = b.fma(&minus, &constant(x, part), &r);
    }
    // Far out the reduction loses all digits; the result stays a sine.
    let r = limit(b, "ogt", &r, 0.8);
    let r = limit(b, "olt", &r, -0.8);
    // n modulo 4, exact for every float.
    let quarter = b.fmul(&n, &Builder::fp(ty, 0.25));
    let whole = b.same("floor", &[&quarter]);
    let minus_four = Builder::fp(ty, -4.0);
    let quadrant = b.fma(&whole, &minus_four, &n);
    let quadrant = b.fadd(&quadrant, &Builder::fp(ty, MAGIC));
    let quadrant = b.to_bits(&quadrant);
    let quadrant = if is_cosine { b.bin_int("add", &quadrant, 1) } else { quadrant };

    let square = b.fmul(&r, &r);
    let sine = polynomial(b, &square, &SIN);
    let cube = b.fmul(&square, &r);
    let sine = b.fma(&sine, &cube, &r);
    let cosine = polynomial(b, &square, &COS);
    let cosine = b.fma(&cosine, &square, &Builder::fp(ty, -0.5));
    let cosine = b.fma(&cosine, &square, &Builder::fp(ty, 1.0));

    let odd = b.bin_int("and", &quadrant, 1);
    let is_sine = b.icmp_int("eq", &odd, 0);
    let value = b.select(&is_sine, &sine, &cosine);
    let sign = b.bin_int("and", &quadrant, 2);
    let sign = b.bin_int("shl", &sign, 30);
    let sign = if is_cosine { sign } else { b.xor(&sign, &x_sign) };
    let bits = b.to_bits(&value);
    let bits = b.xor(&bits, &sign);
    b.bitcast(&bits, ty)
}

pub fn tanh(b: &mut Builder, x: &Val) -> Val {
    let ty = x.ty;
    let a = b.fabs(x);
    let square = b.fmul(&a, &a);
    let p = polynomial(b, &square, &TANH);
    let cube = b.fmul(&square, &a);
    let small = b.fma(&p, &cube, &a);
    // 1 - 2 / (e^2a + 1)
    let exponent = b.fmul(&a, &constant(x, TWO_LOG2_E));
    let power = ex2(b, &exponent);
    let one = Builder::fp(ty, 1.0);
    let denominator = b.fadd(&power, &one);
    let rest = b.bin("fdiv", &Builder::fp(ty, 2.0), &denominator);
    let large = b.fsub(&one, &rest);
    let is_small = b.fcmp("olt", &a, &Builder::fp(ty, TANH_SMALL));
    let value = b.select(&is_small, &small, &large);
    b.copysign(&value, x)
}

/// `rsqrt.approx.f32` with AVX-512's seed, good to 2^-14, and one step of Newton's method.
///
/// With a seed r(1 + d) the step leaves -3/2 d², half the rounding of x·y, and that of the result: 2^-27.4 + 2^-25 +
/// 2^-24 < 2^-23.3, whatever the CPU's seeds are. Where the step has no number, the seed is the result: infinities of
/// zeros, 0 of infinity, and NaN. The seed knows subnormals, which the step sees only multiplied by the seed.
pub fn rsqrt(b: &mut Builder, x: &Val) -> Val {
    let seed = rsqrt14(b, x);
    let one = Builder::fp(x.ty, 1.0);
    let near_root = b.fmul(x, &seed);
    let minus = b.fneg(&near_root);
    let rest = b.fma(&minus, &seed, &one);
    // Half of the seed, by its exponent: the multipliers have enough to do. Wrong only for seeds that stay.
    let bits = b.to_bits(&seed);
    let half = b.bin_int("sub", &bits, 1 << 23);
    let half = b.bitcast(&half, x.ty);
    let better = b.fma(&half, &rest, &seed);
    let is_number = b.fcmp("ord", &rest, &rest);
    b.select(&is_number, &better, &seed)
}

/// `vrsqrt14ps` of registers of 16, 8 or 4 lanes.
fn rsqrt14(b: &mut Builder, x: &Val) -> Val {
    let part = x.ty.lanes.clamp(4, 16);
    in_parts(b, &[x], part, |b, x| {
        let (ty, mask) = (x[0].ty, Type::int(part.max(8), 1));
        let name = format!("llvm.x86.avx512.rsqrt14.ps.{}", 32 * part);
        b.declare(&name, format!("declare {ty} @{name}({ty}, {ty}, {mask})"));
        b.assign(ty, format_args!("call {ty} @{name}({}, {ty} zeroinitializer, {mask} -1)", x[0].typed()))
    })
}

/// `div.approx.f32`: the quotient, but a divisor beyond 2^126 counts as infinite.
pub fn div(b: &mut Builder, x: &Val, y: &Val) -> Val {
    let quotient = b.bin("fdiv", x, y);
    if y.ty.scalar != Scalar::Float {
        return quotient;
    }
    let size = b.fabs(y);
    let beyond = b.fcmp("ogt", &size, &Builder::bits(y.ty, 0x7e80_0000));
    let zero = b.copysign(&Builder::fp(y.ty, 0.0), y);
    let product = b.fmul(x, &zero);
    b.select(&beyond, &product, &quotient)
}

/// `rcp.approx.ftz.f64` and `rsqrt.approx.ftz.f64` use and give the upper 32 bits alone and know no subnormals.
pub fn seed64(b: &mut Builder, x: &Val, function: impl FnOnce(&mut Builder, &Val) -> Val) -> Val {
    let bits = b.to_bits(x);
    let high = b.bin_int("and", &bits, 0xffff_ffff_0000_0000);
    let high = flush64(b, &high);
    let input = b.bitcast(&high, x.ty);
    let value = function(b, &input);
    let bits = b.to_bits(&value);
    let bits = flush64(b, &bits);
    let cut = b.bin_int("and", &bits, 0xffff_ffff_0000_0000);
    // A NaN whose payload lies in the lower half only is an infinity here: the instruction sees the upper half alone.
    let is_nan = b.fcmp("uno", &value, &value);
    let nan = Builder::int(bits.ty, 0x7fff_ffff_0000_0000);
    let cut = b.select(&is_nan, &nan, &cut);
    b.bitcast(&cut, x.ty)
}

fn flush64(b: &mut Builder, bits: &Val) -> Val {
    let exponent = b.bin_int("and", bits, 0x7ff0_0000_0000_0000);
    let tiny = b.icmp_int("eq", &exponent, 0);
    let zero = b.bin_int("and", bits, 1i128 << 63);
    b.select(&tiny, &zero, bits)
}
