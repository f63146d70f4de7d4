//! Directed rounding of f64 operations, by integer arithmetic: there is no wider float to hold the error.
//!
//! Operands become sign, exponent and a 53-bit mantissa; the result is formed exactly (or exact but for a sticky last
//! bit far below the result's) and rounded once by [`round_pack`]. Infinities, NaN and division by zero are left to
//! the native operation.

use super::super::builder::{Builder, Val};
use super::round::native;
use super::sqrt;
use crate::ir::Round;

const MANTISSA: i128 = (1 << 52) - 1;
const INFINITY: i128 = 0x7ff << 52;

/// value = ± mantissa × 2^(exponent - 1075), the mantissa's bit 52 is set unless it is zero.
struct Parts {
    /// `i1`
    negative: Val,
    /// `i64`
    exponent: Val,
    /// `i64`
    mantissa: Val,
    /// Neither infinite nor NaN.
    finite: Val,
}

fn parts(b: &mut Builder, x: &Val) -> Parts {
    let bits = b.to_bits(x);
    let negative = b.icmp_int("slt", &bits, 0);
    let field = b.bin_int("lshr", &bits, 52);
    let field = b.bin_int("and", &field, 0x7ff);
    let finite = b.icmp_int("ne", &field, 0x7ff);
    let fraction = b.bin_int("and", &bits, MANTISSA);
    let subnormal = b.icmp_int("eq", &field, 0);
    let whole = b.bin_int("or", &fraction, 1 << 52);
    let mantissa = b.select(&subnormal, &fraction, &whole);
    let one = Builder::int(bits.ty, 1);
    let exponent = b.select(&subnormal, &one, &field);
    let zeros = b.same_defined("ctlz", &mantissa);
    let shift = b.bin_int("sub", &zeros, 11);
    let mantissa = b.bin("shl", &mantissa, &shift);
    let exponent = b.sub(&exponent, &shift);
    Parts { negative, exponent, mantissa, finite }
}

/// ± `mantissa` (`i128`) × 2^`exponent` (`i64`) as f64. The mantissa's last bit may be sticky if it has 56 bits or more.
fn round_pack(b: &mut Builder, rounding: Round, negative: &Val, mantissa: &Val, exponent: &Val) -> Val {
    let word = exponent.ty;
    let wide = mantissa.ty;
    let zeros = b.same_defined("ctlz", mantissa);
    let shift = b.bin_int("and", &zeros, 127);
    let top = b.bin("shl", mantissa, &shift);
    // Exponent of the leading bit.
    let shift = b.resize(&shift, 64, false);
    let exponent = b.sub(exponent, &shift);
    let exponent = b.bin_int("add", &exponent, 127);
    // Subnormal results keep fewer bits.
    let least = Builder::int(word, -1022);
    let missing = b.sub(&least, &exponent);
    let zero = Builder::int(word, 0);
    let missing = b.same("smax", &[&missing, &zero]);
    let drop = b.bin_int("add", &missing, 75);
    let most = Builder::int(word, 128);
    let drop = b.same("smin", &[&drop, &most]);
    // Dropping all 128 bits is two shifts.
    let all_but_one = b.bin_int("sub", &drop, 1);
    let all_but_one = b.resize(&all_but_one, 128, false);
    let kept = b.bin("lshr", &top, &all_but_one);
    let kept = b.bin_int("lshr", &kept, 1);
    let back = b.bin_int("shl", &kept, 1);
    let back = b.bin("shl", &back, &all_but_one);
    let inexact = b.icmp("ne", &back, &top);
    let kept = b.resize(&kept, 64, false);
    // The leading bit of a normal number adds one to the exponent field.
    let field = b.bin_int("add", &exponent, 1022);
    let field = b.same("smax", &[&field, &zero]);
    let huge = b.icmp_int("sgt", &exponent, 1023);
    let field = b.bin_int("shl", &field, 52);
    let bits = b.add(&field, &kept);
    let never = Builder::int(negative.ty, 0);
    let away = match rounding {
        Round::Down => negative.clone(),
        Round::Up => b.not(negative),
        _ => never,
    };
    let up = b.and(&inexact, &away);
    let up = b.cast("zext", &up, word);
    let bits = b.add(&bits, &up);
    let infinity = Builder::int(word, INFINITY);
    let largest = Builder::int(word, INFINITY - 1);
    let beyond = b.select(&away, &infinity, &largest);
    let bits = b.select(&huge, &beyond, &bits);
    let is_zero = b.icmp("eq", mantissa, &Builder::int(wide, 0));
    let bits = b.select(&is_zero, &zero, &bits);
    let sign = b.cast("zext", negative, word);
    let sign = b.bin_int("shl", &sign, 63);
    let bits = b.or(&bits, &sign);
    b.bitcast(&bits, word.double())
}

pub fn fma(b: &mut Builder, rounding: Round, x: &Val, y: &Val, z: &Val) -> Val {
    if let Some(val) = native(b, "vfmadd", rounding, &[x, y, z]) {
        return val;
    }
    let (xp, yp, zp) = (parts(b, x), parts(b, y), parts(b, z));
    let word = xp.exponent.ty;
    let zero = Builder::int(word, 0);
    // The product has up to 106 bits, bit 104 or 105 leading.
    let (xm, ym) = (b.resize(&xp.mantissa, 256, false), b.resize(&yp.mantissa, 256, false));
    let product = b.mul(&xm, &ym);
    let addend = b.resize(&zp.mantissa, 256, false);
    let product_is_zero = b.icmp("eq", &product, &Builder::int(product.ty, 0));
    let addend_is_zero = b.icmp("eq", &addend, &Builder::int(product.ty, 0));
    let product_exponent = b.add(&xp.exponent, &yp.exponent);
    let product_exponent = b.bin_int("sub", &product_exponent, 2150);
    let addend_exponent = b.bin_int("sub", &zp.exponent, 1075);
    // Zero has the other's exponent.
    let product_exponent = b.select(&product_is_zero, &addend_exponent, &product_exponent);
    let addend_exponent = b.select(&addend_is_zero, &product_exponent, &addend_exponent);

    // The one with the larger exponent is shifted up; where that would take more than 256 bits the other lies far
    // below the result's last bit and only its being there matters.
    let distance = b.sub(&product_exponent, &addend_exponent);
    let product_shift = clamp(b, &distance, 140);
    let product_up = shift_up(b, &product, &product_shift);
    let negative_distance = b.sub(&zero, &distance);
    let addend_shift = clamp(b, &negative_distance, 190);
    let addend_up = shift_up(b, &addend, &addend_shift);
    let one = Builder::int(product.ty, 1);
    let tiny_addend = b.icmp_int("sgt", &distance, 140);
    let addend = b.select(&tiny_addend, &one, &addend_up);
    let tiny_product = b.icmp_int("slt", &distance, -190);
    let product = b.select(&tiny_product, &one, &product_up);
    let exponent = b.sub(&product_exponent, &product_shift);
    let from_addend = b.sub(&addend_exponent, &addend_shift);
    let exponent = b.select(&tiny_product, &from_addend, &exponent);

    let product_negative = b.xor(&xp.negative, &yp.negative);
    let differ = b.xor(&product_negative, &zp.negative);
    let sum = b.add(&product, &addend);
    let difference = b.sub(&product, &addend);
    let total = b.select(&differ, &difference, &sum);
    let flipped = b.icmp_int("slt", &total, 0);
    let magnitude = b.same_defined("abs", &total);
    let negative = b.xor(&product_negative, &flipped);
    // Opposite numbers give +0, but -0 rounding down.
    let cancelled = b.icmp_int("eq", &total, 0);
    let cancelled = b.and(&cancelled, &differ);
    let zero_sign = Builder::int(negative.ty, i128::from(rounding == Round::Down));
    let negative = b.select(&cancelled, &zero_sign, &negative);

    // The upper 128 bits and a sticky one.
    let zeros = b.same_defined("ctlz", &magnitude);
    let shift = b.bin_int("and", &zeros, 255);
    let top = b.bin("shl", &magnitude, &shift);
    let high = b.bin_int("lshr", &top, 128);
    let high = b.resize(&high, 128, false);
    let low = b.resize(&top, 128, false);
    let sticky = b.icmp_int("ne", &low, 0);
    let sticky = b.cast("zext", &sticky, high.ty);
    let mantissa = b.or(&high, &sticky);
    let shift = b.resize(&shift, 64, false);
    let exponent = b.sub(&exponent, &shift);
    let exponent = b.bin_int("add", &exponent, 128);
    let exact = round_pack(b, rounding, &negative, &mantissa, &exponent);

    let finite = b.and(&xp.finite, &yp.finite);
    let finite = b.and(&finite, &zp.finite);
    let native = b.fma(x, y, z);
    b.select(&finite, &exact, &native)
}

/// 0 for negative counts, `most` for larger ones.
fn clamp(b: &mut Builder, count: &Val, most: i128) -> Val {
    let (zero, most) = (Builder::int(count.ty, 0), Builder::int(count.ty, most));
    let count = b.same("smax", &[count, &zero]);
    b.same("smin", &[&count, &most])
}

fn shift_up(b: &mut Builder, x: &Val, count: &Val) -> Val {
    let count = b.resize(count, 256, false);
    b.bin("shl", x, &count)
}

pub fn add(b: &mut Builder, rounding: Round, x: &Val, y: &Val) -> Val {
    if let Some(val) = native(b, "add", rounding, &[x, y]) {
        return val;
    }
    let one = Builder::fp(x.ty, 1.0);
    fma(b, rounding, x, &one, y)
}

pub fn mul(b: &mut Builder, rounding: Round, x: &Val, y: &Val) -> Val {
    if let Some(val) = native(b, "mul", rounding, &[x, y]) {
        return val;
    }
    // A zero of the product's sign adds nothing, not even to the sign of zero.
    let (xb, yb) = (b.to_bits(x), b.to_bits(y));
    let signs = b.xor(&xb, &yb);
    let sign = b.bin_int("and", &signs, 1 << 63);
    let zero = b.bitcast(&sign, x.ty);
    fma(b, rounding, x, y, &zero)
}

/// The mantissa as a float in [1, 2).
fn unit(b: &mut Builder, parts: &Parts) -> Val {
    let fraction = b.bin_int("and", &parts.mantissa, MANTISSA);
    let bits = b.bin_int("or", &fraction, 1023 << 52);
    b.bitcast(&bits, bits.ty.double())
}

/// `nearest` (between ½ and 2) and the sign of its error, as an exact-but-sticky mantissa and its exponent.
fn sticky_mantissa(b: &mut Builder, nearest: &Val, error: &Val) -> (Val, Val) {
    let p = parts(b, nearest);
    let zero = Builder::fp(error.ty, 0.0);
    let more = b.fcmp("ogt", error, &zero);
    let less = b.fcmp("olt", error, &zero);
    let more = b.cast("zext", &more, p.mantissa.ty);
    let less = b.cast("sext", &less, p.mantissa.ty);
    let mantissa = b.bin_int("shl", &p.mantissa, 8);
    let mantissa = b.add(&mantissa, &more);
    let mantissa = b.add(&mantissa, &less);
    let exponent = b.bin_int("sub", &p.exponent, 1075 + 8);
    (b.resize(&mantissa, 128, false), exponent)
}

pub fn div(b: &mut Builder, rounding: Round, x: &Val, y: &Val) -> Val {
    if let Some(val) = native(b, "div", rounding, &[x, y]) {
        return val;
    }
    let (xp, yp) = (parts(b, x), parts(b, y));
    let (xu, yu) = (unit(b, &xp), unit(b, &yp));
    let quotient = b.bin("fdiv", &xu, &yu);
    let minus = b.fneg(&quotient);
    let remainder = b.fma(&minus, &yu, &xu);
    let (mantissa, exponent) = sticky_mantissa(b, &quotient, &remainder);
    let exponent = b.add(&exponent, &xp.exponent);
    let exponent = b.sub(&exponent, &yp.exponent);
    let negative = b.xor(&xp.negative, &yp.negative);
    let exact = round_pack(b, rounding, &negative, &mantissa, &exponent);
    let (x_some, y_some) = (b.icmp_int("ne", &xp.mantissa, 0), b.icmp_int("ne", &yp.mantissa, 0));
    let usual = b.and(&xp.finite, &yp.finite);
    let usual = b.and(&usual, &x_some);
    let usual = b.and(&usual, &y_some);
    let native = b.bin("fdiv", x, y);
    b.select(&usual, &exact, &native)
}

pub fn sqrt(b: &mut Builder, rounding: Round, x: &Val) -> Val {
    if let Some(val) = native(b, "sqrt", rounding, &[x]) {
        return val;
    }
    let p = parts(b, x);
    let unit = unit(b, &p);
    // x = unit × 2^exponent; an odd exponent gives its one to the unit.
    let exponent = b.bin_int("sub", &p.exponent, 1023);
    let odd = b.bin_int("and", &exponent, 1);
    let is_even = b.icmp_int("eq", &odd, 0);
    let doubled = b.fadd(&unit, &unit);
    let unit = b.select(&is_even, &unit, &doubled);
    let half = b.bin_int("ashr", &exponent, 1);
    let root = sqrt::nearest(b, &unit);
    let minus = b.fneg(&root);
    let remainder = b.fma(&minus, &root, &unit);
    let (mantissa, exponent) = sticky_mantissa(b, &root, &remainder);
    let exponent = b.add(&exponent, &half);
    let exact = round_pack(b, rounding, &p.negative, &mantissa, &exponent);
    let positive = b.fcmp("ogt", x, &Builder::fp(x.ty, 0.0));
    let usual = b.and(&p.finite, &positive);
    let native = sqrt::nearest(b, x);
    b.select(&usual, &exact, &native)
}
