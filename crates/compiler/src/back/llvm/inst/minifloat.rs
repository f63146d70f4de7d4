//! tf32, the 8-bit floats, and as what matrices are made of those below 8 bits and the scales.

use super::super::builder::{Builder, Val};
use super::{float, round};
use crate::ir::{Float, FloatMode, Num, Round};
use crate::matrix::{Element, Scale};

/// `cvt.{rna,rn,rz}.tf32.f32`: 10 fraction bits, the low 13 bits are zero.
pub fn tf32(b: &mut Builder, mode: FloatMode, x: &Val) -> Val {
    let x = b.bitcast(x, x.ty.float());
    let x = if mode.relu { float::relu(b, &x) } else { x };
    let bits = b.to_bits(&x);
    let addend = match mode.round {
        Round::NearestAway => Builder::int(bits.ty, 0x1000),
        Round::Nearest => {
            let shifted = b.bin_int("lshr", &bits, 13);
            let last = b.bin_int("and", &shifted, 1);
            b.bin_int("add", &last, 0xfff)
        }
        _ => Builder::int(bits.ty, 0),
    };
    let rounded = b.add(&bits, &addend);
    let cut = b.bin_int("and", &rounded, !0x1fff);
    let is_nan = b.fcmp("uno", &x, &x);
    let nan = Builder::int(bits.ty, 0x7fff_ffff);
    b.select(&is_nan, &nan, &cut)
}

/// An 8-bit float: fraction bits, exponent bias, the code of its largest number.
struct Mini {
    fraction: u32,
    bias: i32,
    largest: i128,
}

fn format(num: Num) -> Mini {
    match num {
        Num::E5m2x2 => Mini { fraction: 2, bias: 15, largest: 0x7b },
        _ => Mini { fraction: 3, bias: 7, largest: 0x7e },
    }
}

/// An f32 as an 8-bit code in 32 bits: nearest even, saturated to the largest number, NaN is `0x7f`.
fn narrow(b: &mut Builder, num: Num, mode: FloatMode, x: &Val) -> Val {
    let Mini { fraction, bias, largest } = format(num);
    let x = b.bitcast(x, x.ty.float());
    let x = if mode.relu { float::relu(b, &x) } else { x };
    let bits = b.to_bits(&x);
    let sign = b.bin_int("lshr", &bits, 24);
    let sign = b.bin_int("and", &sign, 0x80);
    let magnitude = b.bin_int("and", &bits, 0x7fff_ffff);
    // Normal: round off the low fraction bits, then change the exponent's bias.
    let spare = i128::from(23 - fraction);
    let shifted = b.bin_int("lshr", &magnitude, spare);
    let last = b.bin_int("and", &shifted, 1);
    let rounded = b.add(&magnitude, &last);
    let rounded = b.bin_int("add", &rounded, (1 << (spare - 1)) - 1);
    let code = b.bin_int("lshr", &rounded, spare);
    let normal = b.bin_int("sub", &code, i128::from(127 - bias) << fraction);
    // Subnormal: adding 2^23 units rounds to whole units and leaves their number in the low bits.
    let unit_exponent = 1 - bias - fraction as i32;
    let units = Builder::fp(x.ty, 2f64.powi(23 + unit_exponent));
    let absolute = b.bitcast(&magnitude, x.ty);
    let sum = b.fadd(&absolute, &units);
    let sum = b.to_bits(&sum);
    let subnormal = b.bin_int("and", &sum, 0xff);
    let least = Builder::fp(x.ty, 2f64.powi(1 - bias));
    let is_small = b.fcmp("olt", &absolute, &least);
    let is_huge = b.icmp_int("sgt", &normal, largest);
    let code = b.select(&is_huge, &Builder::int(bits.ty, largest), &normal);
    let code = b.select(&is_small, &subnormal, &code);
    let code = b.or(&code, &sign);
    let is_nan = b.fcmp("uno", &x, &x);
    b.select(&is_nan, &Builder::int(bits.ty, 0x7f), &code)
}

/// `cvt.rn.satfinite.{e4m3x2,e5m2x2}.f32 d, a, b`: a goes to the upper byte.
pub fn pack_f32(b: &mut Builder, to: Num, mode: FloatMode, high: &Val, low: &Val) -> Val {
    let (high, low) = (narrow(b, to, mode, high), narrow(b, to, mode, low));
    let high = b.bin_int("shl", &high, 8);
    let both = b.or(&high, &low);
    b.resize(&both, 16, false)
}

/// `cvt.rn.satfinite.{e4m3x2,e5m2x2}.f16x2 d, a`
pub fn pack_halves(b: &mut Builder, to: Num, mode: FloatMode, x: &Val) -> Val {
    let low = b.resize(x, 16, false);
    let high = b.bin_int("lshr", x, 16);
    let high = b.resize(&high, 16, false);
    let (high, low) = (float::widen(b, Float::F16, &high), float::widen(b, Float::F16, &low));
    pack_f32(b, to, mode, &high, &low)
}

/// `cvt.rn.f16x2.{e4m3x2,e5m2x2} d, a`: exact.
pub fn unpack(b: &mut Builder, from: Num, mode: FloatMode, x: &Val) -> Val {
    let mut halves = vec![];
    for shift in [0, 8] {
        let byte = b.bin_int("lshr", x, shift);
        let byte = b.bin_int("and", &byte, 0xff);
        let half = if from == Num::E5m2x2 {
            b.bin_int("shl", &byte, 8)
        } else {
            // The fields moved to an f16's places are the value divided by 2^8.
            let magnitude = b.bin_int("and", &byte, 0x7f);
            let fields = b.bin_int("shl", &magnitude, 7);
            let scaled = float::widen(b, Float::F16, &fields);
            let value = b.fmul(&scaled, &Builder::fp(scaled.ty, 256.0));
            let value = round::narrow_f32(b, Float::F16, Round::Nearest, &value);
            let is_nan = b.icmp_int("eq", &magnitude, 0x7f);
            let value = b.select(&is_nan, &Builder::int(value.ty, 0x7fff), &value);
            let sign = b.bin_int("and", &byte, 0x80);
            let sign = b.bin_int("shl", &sign, 8);
            let signed = b.or(&value, &sign);
            b.select(&is_nan, &value, &signed)
        };
        let value = float::widen(b, Float::F16, &half);
        let value = if mode.relu { float::relu(b, &value) } else { value };
        let half = round::narrow_f32(b, Float::F16, Round::Nearest, &value);
        halves.push(b.resize(&half, 32, false));
    }
    let high = b.bin_int("shl", &halves[1], 16);
    b.or(&high, &halves[0])
}

/// The f32 of codes in 8 bits each: exact, and some NaN for a NaN.
pub fn of_bytes(b: &mut Builder, element: Element, codes: &Val) -> Val {
    let codes = b.resize(codes, 16, false);
    if element == Element::E5m2 {
        // The upper half of an f16.
        let half = b.bin_int("shl", &codes, 8);
        return float::widen(b, Float::F16, &half);
    }
    // The fields moved to an f16's places are the value divided by 2^8.
    let magnitude = b.bin_int("and", &codes, 0x7f);
    let sign = b.bin_int("and", &codes, 0x80);
    let (fields, sign) = (b.bin_int("shl", &magnitude, 7), b.bin_int("shl", &sign, 8));
    let half = b.or(&fields, &sign);
    let scaled = float::widen(b, Float::F16, &half);
    let value = b.fmul(&scaled, &Builder::fp(scaled.ty, 256.0));
    let is_nan = b.icmp_int("eq", &magnitude, 0x7f);
    b.select(&is_nan, &Builder::fp(value.ty, f64::NAN), &value)
}

/// The f32 of codes in 32 bits each, of a format that has finite numbers alone: exact.
pub fn finite(b: &mut Builder, element: Element, codes: &Val) -> Val {
    // Exponent bits, fraction bits, and zeros below the code.
    let (exponent, fraction, below) = match element {
        Element::E2m3 => (2, 3, 0),
        Element::E3m2 => (3, 2, 0),
        Element::E2m1 => (2, 1, 2),
        _ => (2, 1, 0),
    };
    let code = b.bin_int("lshr", codes, below);
    let magnitude = b.bin_int("and", &code, (1 << (exponent + fraction)) - 1);
    let sign = b.bin_int("shl", &code, 31 - exponent - fraction);
    let sign = b.bin_int("and", &sign, 1 << 31);
    // The fields moved to an f16's places are the value divided by a power of two.
    let fields = b.bin_int("shl", &magnitude, 10 - fraction);
    let halves = b.resize(&fields, 16, false);
    let value = float::widen(b, Float::F16, &halves);
    let bias = (1 << (exponent - 1)) - 1;
    let value = b.fmul(&value, &Builder::fp(value.ty, 2f64.powi(15 - bias)));
    let bits = b.to_bits(&value);
    let bits = b.or(&bits, &sign);
    b.bitcast(&bits, value.ty)
}

/// The f64 of scales, whose bytes stand in 32 bits each: exact.
pub fn scale(b: &mut Builder, kind: Scale, codes: &Val) -> Val {
    match kind {
        Scale::Ue8m0 => {
            let wide = b.resize(codes, 64, false);
            let exponent = b.bin_int("add", &wide, 1023 - 127);
            let bits = b.bin_int("shl", &exponent, 52);
            let is_nan = b.icmp_int("eq", &wide, 0xff);
            let bits = b.select(&is_nan, &Builder::int(bits.ty, 0x7ff8 << 48), &bits);
            b.bitcast(&bits, bits.ty.double())
        }
        Scale::Ue4m3 => {
            let magnitude = b.bin_int("and", codes, 0x7f);
            let fields = b.bin_int("shl", &magnitude, 7);
            let halves = b.resize(&fields, 16, false);
            let value = float::widen(b, Float::F16, &halves);
            let value = b.fmul(&value, &Builder::fp(value.ty, 256.0));
            let is_nan = b.icmp_int("eq", &magnitude, 0x7f);
            let value = b.select(&is_nan, &Builder::fp(value.ty, f64::NAN), &value);
            b.cast("fpext", &value, value.ty.double())
        }
    }
}
