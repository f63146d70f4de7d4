//! Directed rounding to f32 and smaller formats.
//!
//! Quotients and roots of f32 are computed in f64, where their error is known exactly; the f64 result is then "rounded to
//! odd": when inexact, the last bit is one. f64 has more than two spare digits, so rounding that once more in any direction
//! gives the correctly rounded result. The nearest f32 to a sum is compared with its terms in f64, and moved one step where
//! it lies on the wrong side.
//!
//! AVX-512 has the rounding in the instruction.

use super::super::builder::{Builder, Val};
use super::super::ty::Scalar;
use super::part::in_parts;
use super::sqrt;
use crate::ir::{Float, Round};

/// `add`, `mul`, `div`, `sqrt` or `vfmadd` as one instruction of CPUs that can, f32 or f64.
pub fn native(b: &mut Builder, operation: &str, rounding: Round, args: &[&Val]) -> Option<Val> {
    let (letter, part) = match args[0].ty.scalar {
        Scalar::Float => ('s', 16),
        Scalar::Double => ('d', 8),
        _ => return None,
    };
    if b.vector_bits() < 512 {
        return None;
    }
    // 8: no exceptions.
    let mode = 8 | match rounding {
        Round::Nearest => 0,
        Round::Down => 1,
        Round::Up => 2,
        Round::Zero => 3,
        Round::NearestAway => return None,
    };
    Some(in_parts(b, args, part, |b, pieces| {
        let ty = pieces[0].ty;
        let name = format!("llvm.x86.avx512.{operation}.p{letter}.512");
        let (types, values): (Vec<String>, Vec<String>) =
            pieces.iter().map(|it| (it.ty.to_string(), it.typed())).unzip();
        b.declare(&name, format!("declare {ty} @{name}({}, i32 immarg)", types.join(", ")));
        b.assign(ty, format_args!("call {ty} @{name}({}, i32 {mode})", values.join(", ")))
    }))
}

/// `s` is a nearest value of `s + error`: makes the last bit odd if `error` is not zero.
fn to_odd(b: &mut Builder, s: &Val, error: &Val) -> Val {
    let zero = Builder::fp(s.ty, 0.0);
    // False for NaN, which infinities leave.
    let inexact = b.fcmp("one", error, &zero);
    let bits = b.to_bits(s);
    let last = b.bin_int("and", &bits, 1);
    let is_even = b.icmp_int("eq", &last, 0);
    let adjust = b.and(&inexact, &is_even);
    // The exact value lies further from zero when the error has the sign of `s`.
    let error_bits = b.to_bits(error);
    let differ = b.xor(&bits, &error_bits);
    let outward = b.icmp_int("sge", &differ, 0);
    let up = b.bin_int("add", &bits, 1);
    let down = b.bin_int("sub", &bits, 1);
    let odd = b.select(&outward, &up, &down);
    let bits = b.select(&adjust, &odd, &bits);
    b.bitcast(&bits, s.ty)
}

/// Exact error of the f64 sum `s` of `x` and `y`.
fn sum_error(b: &mut Builder, x: &Val, y: &Val, s: &Val) -> Val {
    let y_part = b.fsub(s, x);
    let x_part = b.fsub(s, &y_part);
    let x_error = b.fsub(x, &x_part);
    let y_error = b.fsub(y, &y_part);
    b.fadd(&x_error, &y_error)
}

/// One step from `r` in the rounding's direction where `back` (`r` made wider again) is on the wrong side of `exact`.
fn step(b: &mut Builder, rounding: Round, r: &Val, back: &Val, exact: &Val) -> Val {
    let wrong = match rounding {
        Round::Zero => {
            let (back, exact) = (b.fabs(back), b.fabs(exact));
            b.fcmp("ogt", &back, &exact)
        }
        Round::Down => b.fcmp("ogt", back, exact),
        _ => b.fcmp("olt", back, exact),
    };
    stepped(b, rounding, r, &wrong)
}

/// The bits of 1 where `like` is positive and of -1 where it is negative: added to a float's bits, one step away from zero.
fn outward(b: &mut Builder, like: &Val) -> Val {
    let bits = b.to_bits(like);
    let sign = b.bin_int("ashr", &bits, i128::from(bits.ty.bits() - 1));
    b.bin_int("or", &sign, 1)
}

/// One step from `r` in the rounding's direction where it is `wrong`.
fn stepped(b: &mut Builder, rounding: Round, r: &Val, wrong: &Val) -> Val {
    let bits = b.to_bits(r);
    let other = match rounding {
        Round::Zero => b.bin_int("sub", &bits, 1),
        Round::Down => {
            let outward = outward(b, r);
            b.sub(&bits, &outward)
        }
        _ => {
            let outward = outward(b, r);
            b.add(&bits, &outward)
        }
    };
    let bits = b.select(wrong, &other, &bits);
    b.bitcast(&bits, r.ty)
}

/// f64 to f32.
pub fn to_f32(b: &mut Builder, rounding: Round, x: &Val) -> Val {
    let nearest = b.cast("fptrunc", x, x.ty.float());
    if matches!(rounding, Round::Nearest | Round::NearestAway) {
        return nearest;
    }
    let back = b.cast("fpext", &nearest, x.ty);
    step(b, rounding, &nearest, &back, x)
}

/// f64 to f32, rounded to odd, for a format smaller still.
pub fn to_f32_odd(b: &mut Builder, x: &Val) -> Val {
    let low = to_f32(b, Round::Zero, x);
    let back = b.cast("fpext", &low, x.ty);
    let inexact = b.fcmp("one", &back, x);
    let bits = b.to_bits(&low);
    let odd = b.bin_int("or", &bits, 1);
    let bits = b.select(&inexact, &odd, &bits);
    b.bitcast(&bits, low.ty)
}

/// f32 to the register of a half; any NaN gives `0x7fff`.
pub fn narrow_f32(b: &mut Builder, ty: Float, rounding: Round, x: &Val) -> Val {
    let int = x.ty.ints(16);
    let bits = if ty == Float::F16 {
        let nearest = b.cast("fptrunc", x, x.ty.with(Scalar::Half));
        let half = match rounding {
            Round::Nearest | Round::NearestAway => nearest,
            _ => {
                let back = b.cast("fpext", &nearest, x.ty);
                step(b, rounding, &nearest, &back, x)
            }
        };
        b.bitcast(&half, int)
    } else {
        let bits = b.to_bits(x);
        let addend = match rounding {
            Round::Nearest => {
                let shifted = b.bin_int("lshr", &bits, 16);
                let last = b.bin_int("and", &shifted, 1);
                b.bin_int("add", &last, 0x7fff)
            }
            Round::NearestAway => Builder::int(bits.ty, 0x8000),
            Round::Zero => Builder::int(bits.ty, 0),
            Round::Down | Round::Up => {
                let sign = b.bin_int("ashr", &bits, 31);
                let sign = if rounding == Round::Up { b.not(&sign) } else { sign };
                b.bin_int("and", &sign, 0xffff)
            }
        };
        let rounded = b.add(&bits, &addend);
        let high = b.bin_int("lshr", &rounded, 16);
        b.resize(&high, 16, false)
    };
    let is_nan = b.fcmp("uno", x, x);
    let nan = Builder::int(int, 0x7fff);
    b.select(&is_nan, &nan, &bits)
}

/// x + y in f64, rounded to odd.
fn add_odd(b: &mut Builder, x: &Val, y: &Val) -> Val {
    let s = b.fadd(x, y);
    let error = sum_error(b, x, y, &s);
    to_odd(b, &s, &error)
}

/// `nearest`, the nearest f32 to the sum of `x` and `y`, moved one step where the rounding goes the other way. `x` and `y` are f64, `y`
/// an f32's value and `x` that of a product of two; `negative` has the sign bit of a sum of `x` and `y` that are both zero.
///
/// `nearest > x + y` is `nearest - x > y` and it is `nearest - y > x`. Each difference is rounded to f64, which keeps the order or makes
/// both sides equal; and one of them is exact, that with the larger of `x` and `y`: it is a multiple of that one's last bit, or of the
/// nearest's where they cancel, and has no more than 50 bits.
fn directed_sum(b: &mut Builder, rounding: Round, nearest: &Val, x: &Val, y: &Val, negative: &Val) -> Val {
    let wide = double(b, nearest);
    // Toward zero is down, once the result's sign is taken from all.
    let (wide, x, y) = if rounding == Round::Zero {
        let sign = |b: &mut Builder, it: &Val| {
            let (it, sign) = (b.to_bits(it), b.to_bits(&wide));
            let sign = b.bin_int("and", &sign, i128::from(1u64 << 63));
            let bits = b.xor(&it, &sign);
            b.bitcast(&bits, wide.ty)
        };
        (b.fabs(&wide), sign(b, x), sign(b, y))
    } else {
        (wide, x.clone(), y.clone())
    };
    let beyond = if rounding == Round::Up { "olt" } else { "ogt" };
    let less_x = b.fsub(&wide, &x);
    let less_y = b.fsub(&wide, &y);
    let wrong = b.fcmp(beyond, &less_x, &y);
    let too = b.fcmp(beyond, &less_y, &x);
    let wrong = b.or(&wrong, &too);
    let sum = stepped(b, rounding, nearest, &wrong);
    if rounding != Round::Down {
        return sum;
    }
    // The sum of opposite numbers is -0.
    let whole = b.fadd(&x, &y);
    let zero = Builder::fp(whole.ty, 0.0);
    let is_zero = b.fcmp("oeq", &whole, &zero);
    let sign = b.bin_int("and", negative, i128::from(1u32 << 31));
    let sign = b.bitcast(&sign, sum.ty);
    b.select(&is_zero, &sign, &sum)
}

fn double(b: &mut Builder, x: &Val) -> Val {
    b.cast("fpext", x, x.ty.double())
}

pub fn add(b: &mut Builder, rounding: Round, x: &Val, y: &Val) -> Val {
    if let Some(val) = native(b, "add", rounding, &[x, y]) {
        return val;
    }
    let nearest = b.fadd(x, y);
    let (xb, yb) = (b.to_bits(x), b.to_bits(y));
    let negative = b.or(&xb, &yb);
    let (x, y) = (double(b, x), double(b, y));
    directed_sum(b, rounding, &nearest, &x, &y, &negative)
}

/// The product of two f32 is exact in f64.
pub fn mul(b: &mut Builder, rounding: Round, x: &Val, y: &Val) -> Val {
    if let Some(val) = native(b, "mul", rounding, &[x, y]) {
        return val;
    }
    let (x, y) = (double(b, x), double(b, y));
    let product = b.fmul(&x, &y);
    to_f32(b, rounding, &product)
}

/// f32 operands to x × y + z in f64, rounded to odd.
pub fn fma_odd(b: &mut Builder, x: &Val, y: &Val, z: &Val) -> Val {
    let (x, y, z) = (double(b, x), double(b, y), double(b, z));
    let product = b.fmul(&x, &y);
    add_odd(b, &product, &z)
}

pub fn fma(b: &mut Builder, rounding: Round, x: &Val, y: &Val, z: &Val) -> Val {
    if let Some(val) = native(b, "vfmadd", rounding, &[x, y, z]) {
        return val;
    }
    let nearest = b.fma(x, y, z);
    let (xb, yb, zb) = (b.to_bits(x), b.to_bits(y), b.to_bits(z));
    let negative = b.xor(&xb, &yb);
    let negative = b.or(&negative, &zb);
    let (x, y, z) = (double(b, x), double(b, y), double(b, z));
    let product = b.fmul(&x, &y);
    directed_sum(b, rounding, &nearest, &product, &z, &negative)
}

/// [`fma`] where the nearest result minus the constant `z` is exact (`FloatMode::near`), and so is the sign of what that leaves of the
/// product.
pub fn fma_near(b: &mut Builder, rounding: Round, x: &Val, y: &Val, z: &Val) -> Val {
    if let Some(val) = native(b, "vfmadd", rounding, &[x, y, z]) {
        return val;
    }
    let nearest = b.fma(x, y, z);
    let taken = b.fsub(z, &nearest);
    let error = b.fma(x, y, &taken);
    let zero = Builder::fp(error.ty, 0.0);
    let outward = outward(b, z);
    let none = Builder::int(outward.ty, 0);
    let (wrong, step) = match rounding {
        Round::Down => (b.fcmp("olt", &error, &zero), b.sub(&none, &outward)),
        Round::Up => (b.fcmp("ogt", &error, &zero), outward),
        _ => {
            let (error, sign) = (b.to_bits(&error), b.to_bits(z));
            let sign = b.bin_int("and", &sign, i128::from(1u32 << 31));
            let error = b.xor(&error, &sign);
            let error = b.bitcast(&error, z.ty);
            (b.fcmp("olt", &error, &zero), Builder::int(none.ty, -1))
        }
    };
    let step = b.select(&wrong, &step, &none);
    let bits = b.to_bits(&nearest);
    let bits = b.add(&bits, &step);
    b.bitcast(&bits, nearest.ty)
}

pub fn div(b: &mut Builder, rounding: Round, x: &Val, y: &Val) -> Val {
    if let Some(val) = native(b, "div", rounding, &[x, y]) {
        return val;
    }
    let (x, y) = (double(b, x), double(b, y));
    let quotient = b.bin("fdiv", &x, &y);
    // x - quotient × y is exact; over y it has the error's sign.
    let minus = b.fneg(&quotient);
    let remainder = b.fma(&minus, &y, &x);
    let sign = b.copysign(&Builder::fp(y.ty, 1.0), &y);
    let error = b.fmul(&remainder, &sign);
    let quotient = to_odd(b, &quotient, &error);
    to_f32(b, rounding, &quotient)
}

pub fn sqrt(b: &mut Builder, rounding: Round, x: &Val) -> Val {
    if let Some(val) = native(b, "sqrt", rounding, &[x]) {
        return val;
    }
    let x = double(b, x);
    let root = sqrt::nearest(b, &x);
    let minus = b.fneg(&root);
    let error = b.fma(&minus, &root, &x);
    let root = to_odd(b, &root, &error);
    to_f32(b, rounding, &root)
}

/// `s`, the nearest f64 to `s + error`, moved one step if the rounding goes the other way.
pub fn correct_f64(b: &mut Builder, rounding: Round, s: &Val, error: &Val) -> Val {
    let zero = Builder::fp(s.ty, 0.0);
    let wrong = match rounding {
        Round::Nearest | Round::NearestAway => return s.clone(),
        Round::Zero => {
            let inexact = b.fcmp("one", error, &zero);
            let (bits, error_bits) = (b.to_bits(s), b.to_bits(error));
            let differ = b.xor(&bits, &error_bits);
            let inward = b.icmp_int("slt", &differ, 0);
            b.and(&inexact, &inward)
        }
        Round::Down => b.fcmp("olt", error, &zero),
        Round::Up => b.fcmp("ogt", error, &zero),
    };
    stepped(b, rounding, s, &wrong)
}
