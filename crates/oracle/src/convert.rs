//! `cvt` (§9.7.9.21) and `cvt.pack` (§9.7.9.22).

use crate::float::{Mode, elements};
use crate::form::{Form, Modifiers, SCALES, Type};
use crate::format::{BF16, F16, F32, F64, Format, Specials, TF32};
use crate::value::{Rounding, Value};

pub(crate) fn parse(m: &mut Modifiers<'_>) -> Option<Form> {
    if m.take("pack") {
        return pack(m);
    }
    if m.take("rs") {
        return stochastic(m);
    }
    let integral = m.take_one(&[
        ("rni", Rounding::Nearest),
        ("rzi", Rounding::Zero),
        ("rmi", Rounding::Down),
        ("rpi", Rounding::Up),
    ]);
    let rounds = ["rn", "rna", "rz", "rm", "rp"].iter().any(|name| m.has(name));
    let mode = Mode::take(m);
    let satfinite = m.take("satfinite");
    let (to, from) = (m.ty()?, m.ty()?);
    match (to, from) {
        (SCALES, _) | (_, SCALES) => scales(mode, satfinite, to, from),
        (Type::PackedFloat(..), _) | (_, Type::PackedFloat(..)) => packed(mode, satfinite, to, from),
        (Type::Float(target), Type::Float(source)) if integral.is_none() => {
            // Narrowing names its rounding; widening has none.
            let narrows =
                target.fraction_bits < source.fraction_bits || target.exponent_bits < source.exponent_bits;
            if narrows && !rounds || satfinite && !matches!(target, F16 | BF16 | TF32) {
                return None;
            }
            if mode.rounding == Rounding::NearestAway && target != TF32 {
                return None;
            }
            Form::total(to, &[from], move |x| float(mode, satfinite, target, source, x[0]))
        }
        (Type::Float(target), Type::Float(source)) => {
            let rounding = integral?;
            if target != source {
                return None;
            }
            Form::total(to, &[from], move |x| {
                let value = mode.read(source, x[0]);
                mode.write(target, whole(value, rounding))
            })
        }
        (_, Type::Float(source)) if to.is_integer() => {
            let rounding = integral?;
            Form::total(to, &[from], move |x| integer(mode, rounding, to, source, x[0]))
        }
        (Type::Float(target), _) if from.is_integer() && rounds => {
            Form::total(to, &[from], move |x| mode.write(target, Value::integer(from.integer(x[0]))))
        }
        _ if to.is_integer() && from.is_integer() && !rounds && integral.is_none() => {
            let sat = mode.sat;
            Form::total(to, &[from], move |x| {
                let value = from.integer(x[0]);
                let (low, high) = to.range();
                to.cut(if sat { value.clamp(low, high) } else { value })
            })
        }
        _ => None,
    }
}

/// `.ftz` is about f32 on either side (§9.7.9.21, "Subnormal numbers"), but not where it becomes an f16, whatever the manual
/// says (SASS: `F2F.F16.F32.RP` has no `.FTZ`, while `F2F.FTZ.BF16.F32.RP` has).
fn float(mode: Mode, satfinite: bool, target: Format, source: Format, bits: u128) -> u128 {
    let flushes = |format: Format| mode.ftz && format == F32 && target != F16;
    if flushes(target)
        && source == F64
        && bits & ((1 << 63) - 1) < least_of_f32(mode.rounding, bits >> 63 == 1)
    {
        return if mode.sat { 0 } else { bits >> 63 << 31 };
    }
    let value = source.decode(if flushes(source) { source.flush(bits) } else { bits });
    if value.is_nan() && target.specials == Specials::None {
        // The largest number, without the NaN's sign.
        return target.round_finite(Rounding::Zero, Value::Infinite { negative: false });
    }
    if value.is_nan() && target == F32 && !mode.sat {
        // The manual leaves open which NaN; an H200 keeps its sign and payload, and makes it a quiet one where the format gets narrower.
        match source {
            F64 => return bits >> 63 << 31 | 0x7fc0_0000 | bits >> 29 & 0x3f_ffff,
            BF16 if !mode.ftz => return bits << 16,
            _ => {}
        }
    }
    let rest = Mode { ftz: false, ..mode };
    let bits = rest.write(target, value);
    let bits = if flushes(target) && source != F64 { target.flush(bits) } else { bits };
    if satfinite && !value.is_nan() {
        // Clamped, and below zero by `.relu` already.
        let negative = value.is_negative();
        return match target.decode(bits) {
            Value::Infinite { .. } => target.round_finite(Rounding::Zero, Value::Infinite { negative }),
            _ => bits,
        };
    }
    bits
}

/// The size below which ptxas flushes an f64 that becomes an f32: what rounds to 2^-126 if exponents have no end.
fn least_of_f32(rounding: Rounding, negative: bool) -> u128 {
    match (rounding, negative) {
        (Rounding::Nearest | Rounding::NearestAway, _) => 0x380f_ffff_f000_0000,
        (Rounding::Up, false) | (Rounding::Down, true) => 0x380f_ffff_e000_0001,
        _ => 0x3810_0000_0000_0000,
    }
}

/// A whole number, with the sign of what it came from if it is zero.
fn whole(value: Value, rounding: Rounding) -> Value {
    match value {
        Value::Finite { negative, .. } => match value.to_integer(rounding) {
            Some(0) => Value::zero(negative),
            Some(whole) => Value::integer(whole),
            // So large that it is whole already.
            None => value,
        },
        _ => value,
    }
}

/// To an integer: clamped always, NaN to 0; from f64, or to 64 bits, to 1 << (bits - 1) (§9.7.9.21, "Notes").
fn integer(mode: Mode, rounding: Rounding, to: Type, source: Format, bits: u128) -> u128 {
    let value = mode.read(source, bits);
    let (low, high) = to.range();
    match value {
        Value::Nan if source == F64 || to.bits() == 64 => 1 << (to.bits() - 1),
        Value::Nan => 0,
        _ => match value.to_integer(rounding) {
            Some(whole) => to.cut(whole.clamp(low, high)),
            None => to.cut(if value.is_negative() { low } else { high }),
        },
    }
}

/// To or from the packed formats: the first operand goes to the upper element.
fn packed(mode: Mode, satfinite: bool, to: Type, from: Type) -> Option<Form> {
    let ((target, 2), (source, _)) = (elements(to)?, elements(from)?) else { return None };
    // The narrow formats have no infinity to overflow to, or are never given it.
    let is_mini = target.bits < 16;
    if is_mini && !satfinite || mode.sat || mode.ftz {
        return None;
    }
    let convert = move |bits: u128| float(mode, satfinite, target, source, bits);
    match from {
        Type::Float(F32) => {
            Form::total(to, &[from, from], move |x| convert(x[0]) << target.bits | convert(x[1]))
        }
        Type::PackedFloat(_, 2) if is_mini != (source.bits < 16) => Form::total(to, &[from], move |x| {
            let mask = (1 << source.bits) - 1;
            convert(x[0] >> source.bits & mask) << target.bits | convert(x[0] & mask)
        }),
        _ => None,
    }
}

/// `.rs`: each of the two numbers has random bits of its own, or each two of the four share them, in which case the upper one takes
/// them in reverse: the manual leaves that open, and sm_100 was seen to do so. How `.e2m1x4` shares them is not known.
fn stochastic(m: &mut Modifiers<'_>) -> Option<Form> {
    let (relu, satfinite) = (m.take("relu"), m.take("satfinite"));
    let (to, from) = (m.ty()?, m.ty()?);
    let Type::PackedFloat(target, n) = to else { return None };
    let (f32, b32) = (Type::Float(F32), Type::Bits(32));
    if from != f32 {
        return None;
    }
    let convert = move |x: u128, random: u128, random_bits: u32| match F32.decode(x) {
        Value::Nan if target.specials == Specials::None => {
            target.round_finite(Rounding::Zero, Value::Infinite { negative: false })
        }
        value if relu && value.is_negative() => 0,
        value => {
            let value = rounded_by(target, value, random, random_bits);
            match satfinite {
                true if !value.is_nan() => target.round_finite(Rounding::Nearest, value),
                _ => target.round(Rounding::Nearest, value),
            }
        }
    };
    let half = |random: u128, nth: u32| random >> (16 * nth) & 0xffff;
    match (n, target) {
        (2, F16 | BF16) => {
            let random_bits = if target == F16 { 13 } else { 16 };
            let own = move |random, nth| half(random, nth) & ((1 << random_bits) - 1);
            Form::total(to, &[f32, f32, b32], move |x| {
                convert(x[0], own(x[2], 1), random_bits) << 16 | convert(x[1], own(x[2], 0), random_bits)
            })
        }
        (4, _) if satfinite => Form::total(to, &[f32, f32, f32, f32, b32], move |x| {
            (0..4).fold(0, |code, at| {
                let shared = half(x[4], if at < 2 { 1 } else { 0 });
                let random = if at % 2 == 0 { (shared as u16).reverse_bits().into() } else { shared };
                code << 8 | convert(x[at], random, 16)
            })
        }),
        _ => None,
    }
}

/// The value in whole units of the format's last place: one more than fit where what is left and the random number, as parts of a unit,
/// are 1 or more together.
fn rounded_by(target: Format, value: Value, random: u128, random_bits: u32) -> Value {
    let Value::Finite { negative, mantissa, exponent, .. } = value else { return value };
    if mantissa == 0 {
        return value;
    }
    let top = exponent + 127 - mantissa.leading_zeros() as i32;
    let unit = top.max(target.least_exponent()) - target.fraction_bits as i32;
    let left = (unit - exponent) as u32;
    // A value that lies further below a unit does not reach it with any random number.
    let units = match left {
        ..64 => ((mantissa << random_bits) + (random << left)) >> (left + random_bits),
        _ => 0,
    };
    Value::Finite { negative, mantissa: units, exponent: unit, rest: false }
}

/// `.ue8m0`: code c is 2^(c - 127), and 255 a NaN. A number's magnitude is rounded to a power of two.
fn scales(mode: Mode, satfinite: bool, to: Type, from: Type) -> Option<Form> {
    let power = |code: i32| 2f64.powi(code - 127);
    let code = move |bits: u32| {
        let size = f64::from(f32::from_bits(bits)).abs();
        let code = match mode.rounding {
            Rounding::Up => (0..255).find(|&code| power(code) >= size),
            _ if size == f64::INFINITY => None,
            _ => Some((0..255).rfind(|&code| power(code) <= size).unwrap_or(0)),
        };
        match code {
            _ if size.is_nan() => 255,
            Some(code) => code as u128,
            None => 255 - u128::from(satfinite),
        }
    };
    if !matches!(mode.rounding, Rounding::Up | Rounding::Zero | Rounding::Nearest) || mode.relu {
        return None;
    }
    match (to, from) {
        (SCALES, Type::Float(F32)) => {
            Form::total(to, &[from, from], move |x| code(x[0] as u32) << 8 | code(x[1] as u32))
        }
        (SCALES, Type::PackedFloat(BF16, 2)) => Form::total(to, &[from], move |x| {
            let bits = x[0] as u32;
            code(bits & 0xffff_0000) << 8 | code(bits << 16)
        }),
        (Type::PackedFloat(BF16, 2), SCALES) => Form::total(to, &[from], move |x| {
            let number = |code: u128| match code & 255 {
                255 => 0x7fff,
                // Exact, so that the upper half has it all.
                code => u128::from((power(code as i32) as f32).to_bits() >> 16),
            };
            number(x[0] >> 8) << 16 | number(x[0])
        }),
        _ => None,
    }
}

/// `cvt.pack`: a and b saturated, b lowest; c's low bits above them where there is room.
fn pack(m: &mut Modifiers<'_>) -> Option<Form> {
    if !m.take("sat") {
        return None;
    }
    let (to, from) = (m.ty()?, m.ty()?);
    if from != Type::Signed(32)
        || !matches!(to, Type::Unsigned(2 | 4 | 8 | 16) | Type::Signed(2 | 4 | 8 | 16))
    {
        return None;
    }
    let b32 = Type::Bits(32);
    let with_c = to.bits() < 16;
    if with_c && m.ty()? != b32 {
        return None;
    }
    let part = move |x: u128| {
        let (low, high) = to.range();
        to.cut(from.integer(x).clamp(low, high))
    };
    let n = to.bits();
    let both = move |x: &[u128]| part(x[0]) << n | part(x[1]);
    if with_c {
        Form::total(b32, &[from, from, b32], move |x| b32.cut((x[2] << (2 * n) | both(x)) as i128))
    } else {
        Form::total(b32, &[from, from], both)
    }
}
