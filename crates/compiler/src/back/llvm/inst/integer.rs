//! Integer arithmetic.

use super::super::builder::{Builder, Val};
use super::super::ty::Type;
use crate::ir::{Int, IntBin, IntUn};

/// The operand as the operation's width sees it (a register may be wider).
fn operand(b: &mut Builder, int: Int, a: &Val) -> Val {
    let bits = b.to_bits(a);
    b.resize(&bits, u32::from(int.bits), int.signed)
}

/// Into the result's register, extended as the type says.
fn result(b: &mut Builder, int: Int, a: &Val, to: Type) -> Val {
    let sized = b.resize(a, to.bits(), int.signed);
    b.bitcast(&sized, to)
}

fn signed_min(ty: Type) -> i128 {
    -(1i128 << (ty.bits() - 1))
}

pub fn binary(b: &mut Builder, op: IntBin, int: Int, x: &Val, y: &Val, to: Type) -> Val {
    let x = operand(b, int, x);
    // Counts have their own type.
    let y = match op {
        IntBin::Shl | IntBin::Shr => b.to_bits(y),
        _ => operand(b, int, y),
    };
    let value = match op {
        IntBin::Add => b.add(&x, &y),
        IntBin::Sub => b.sub(&x, &y),
        IntBin::Mul => b.mul(&x, &y),
        IntBin::MulHi => mul_hi(b, int, &x, &y),
        IntBin::Div => div(b, int, &x, &y),
        IntBin::Rem => rem(b, int, &x, &y),
        IntBin::Min => b.same(if int.signed { "smin" } else { "umin" }, &[&x, &y]),
        IntBin::Max => b.same(if int.signed { "smax" } else { "umax" }, &[&x, &y]),
        IntBin::And => b.and(&x, &y),
        IntBin::Or => b.or(&x, &y),
        IntBin::Xor => b.xor(&x, &y),
        IntBin::Shl => shl(b, &x, &y),
        IntBin::Shr => shr(b, int.signed, &x, &y),
        IntBin::AddSat => b.same(if int.signed { "sadd.sat" } else { "uadd.sat" }, &[&x, &y]),
        IntBin::SubSat => b.same(if int.signed { "ssub.sat" } else { "usub.sat" }, &[&x, &y]),
        IntBin::Mul24Lo => {
            let (x, y) = (low24(b, int.signed, &x), low24(b, int.signed, &y));
            b.mul(&x, &y)
        }
        IntBin::Mul24Hi => {
            let (x, y) = (low24(b, int.signed, &x), low24(b, int.signed, &y));
            let (x, y) = (b.resize(&x, 64, int.signed), b.resize(&y, 64, int.signed));
            let product = b.mul(&x, &y);
            let high = b.bin_int("lshr", &product, 16);
            b.resize(&high, u32::from(int.bits), false)
        }
    };
    result(b, int, &value, to)
}

fn low24(b: &mut Builder, signed: bool, x: &Val) -> Val {
    if !signed {
        return b.bin_int("and", x, 0xff_ffff);
    }
    let spare = i128::from(x.ty.bits()) - 24;
    let top = b.bin_int("shl", x, spare);
    b.bin_int("ashr", &top, spare)
}

fn mul_hi(b: &mut Builder, int: Int, x: &Val, y: &Val) -> Val {
    let bits = x.ty.bits();
    let wide = (b.resize(x, 2 * bits, int.signed), b.resize(y, 2 * bits, int.signed));
    let product = b.mul(&wide.0, &wide.1);
    let high = b.bin_int("lshr", &product, i128::from(bits));
    b.resize(&high, bits, false)
}

/// The divisor with the values x86 traps on replaced by 1.
fn safe_divisor(b: &mut Builder, int: Int, x: &Val, y: &Val, is_zero: &Val) -> Val {
    // LLVM sees for itself what a constant divides by, if it is neither of the two.
    if is_harmless_constant(y) {
        return y.clone();
    }
    let one = Builder::int(y.ty, 1);
    if !int.signed {
        return b.select(is_zero, &one, y);
    }
    let is_min = b.icmp_int("eq", x, signed_min(x.ty));
    let is_minus_one = b.icmp_int("eq", y, -1);
    let overflows = b.and(&is_min, &is_minus_one);
    let replace = b.or(is_zero, &overflows);
    b.select(&replace, &one, y)
}

/// A constant other than 0 and -1, as [`Builder::bits`] writes it.
fn is_harmless_constant(y: &Val) -> bool {
    let scalar = y.text.strip_prefix("splat (").and_then(|text| text.strip_suffix(')')?.split(' ').nth(1));
    let value = scalar.unwrap_or(&y.text).parse::<u128>();
    value.is_ok_and(|value| value != 0 && value != (1 << y.ty.bits().min(127)) - 1)
}

/// x / y, which neither traps nor overflows.
fn quotient(b: &mut Builder, signed: bool, x: &Val, y: &Val) -> Val {
    if b.is_amdgcn() && x.ty.bits() == 64 {
        // LLVM up to 19 divides wrongly where it sees that the operands were extended from 32 bits.
        let (x, y) = (opaque(b, x), opaque(b, y));
        return b.bin(if signed { "sdiv" } else { "udiv" }, &x, &y);
    }
    if x.ty.lanes == 1 || x.ty.bits() > 32 || Builder::is_constant(y) {
        return b.bin(if signed { "sdiv" } else { "udiv" }, x, y);
    }
    // No CPU divides integer vectors. In f64 the quotient of 32-bit numbers is never rounded up to an integer.
    let double = x.ty.double();
    let (to, from) = if signed { ("sitofp", "fptosi") } else { ("uitofp", "fptoui") };
    let (xf, yf) = (b.cast(to, x, double), b.cast(to, y, double));
    let quotient = b.bin("fdiv", &xf, &yf);
    b.cast(from, &quotient, x.ty)
}

/// The same value, whose history LLVM does not see.
pub fn opaque(b: &mut Builder, x: &Val) -> Val {
    if Builder::is_constant(x) {
        return x.clone();
    }
    b.assign(x.ty, format_args!("call {} asm \"\", \"=v,0\"({})", x.ty, x.typed()))
}

/// PTX differs: dividing by zero gives all ones and `MIN / -1` gives `MIN`. LLVM would be undefined, x86 would trap.
fn div(b: &mut Builder, int: Int, x: &Val, y: &Val) -> Val {
    let is_zero = b.icmp_int("eq", y, 0);
    let divisor = safe_divisor(b, int, x, y, &is_zero);
    let quotient = quotient(b, int.signed, x, &divisor);
    let ones = Builder::int(x.ty, -1);
    b.select(&is_zero, &ones, &quotient)
}

/// PTX differs: the remainder by zero has all bits (on an H200, in all widths) and `MIN % -1` is 0.
fn rem(b: &mut Builder, int: Int, x: &Val, y: &Val) -> Val {
    let is_zero = b.icmp_int("eq", y, 0);
    let divisor = safe_divisor(b, int, x, y, &is_zero);
    let quotient = quotient(b, int.signed, x, &divisor);
    let product = b.mul(&quotient, &divisor);
    let remainder = b.sub(x, &product);
    let all = Builder::int(x.ty, -1);
    b.select(&is_zero, &all, &remainder)
}

/// A shift count reduced to the value's type and range, and whether it was in range.
fn shift_count(b: &mut Builder, x: &Val, count: &Val) -> (Val, Val) {
    let bits = x.ty.bits();
    let fits = b.icmp_int("ult", count, i128::from(bits));
    let sized = b.resize(count, bits, false);
    (b.bin_int("and", &sized, i128::from(bits - 1)), fits)
}

/// A shift by a constant that is in range.
fn by_constant(b: &mut Builder, op: &str, x: &Val, count: &Val) -> Option<Val> {
    let count = Builder::constant_int(count).filter(|it| *it < u128::from(x.ty.bits()))?;
    Some(b.bin_int(op, x, count as i128))
}

/// PTX differs: the count is clamped to the width, so a large shift gives 0. LLVM would give poison.
pub fn shl(b: &mut Builder, x: &Val, count: &Val) -> Val {
    if let Some(shifted) = by_constant(b, "shl", x, count) {
        return shifted;
    }
    let (count, fits) = shift_count(b, x, count);
    let shifted = b.bin("shl", x, &count);
    let zero = Builder::int(x.ty, 0);
    b.select(&fits, &shifted, &zero)
}

/// PTX differs: as for `shl`; a large signed shift gives the sign.
pub fn shr(b: &mut Builder, signed: bool, x: &Val, count: &Val) -> Val {
    if let Some(shifted) = by_constant(b, if signed { "ashr" } else { "lshr" }, x, count) {
        return shifted;
    }
    if signed {
        let largest = Builder::int(count.ty, i128::from(x.ty.bits() - 1));
        let clamped = b.same("umin", &[count, &largest]);
        let count = b.resize(&clamped, x.ty.bits(), false);
        return b.bin("ashr", x, &count);
    }
    let (count, fits) = shift_count(b, x, count);
    let shifted = b.bin("lshr", x, &count);
    let zero = Builder::int(x.ty, 0);
    b.select(&fits, &shifted, &zero)
}

pub fn unary(b: &mut Builder, op: IntUn, int: Int, x: &Val, to: Type) -> Val {
    let x = operand(b, int, x);
    let bits = x.ty.bits();
    let value = match op {
        IntUn::Neg => {
            let zero = Builder::int(x.ty, 0);
            b.sub(&zero, &x)
        }
        IntUn::Not => b.not(&x),
        IntUn::Abs if !int.signed => x,
        IntUn::Abs => b.same_defined("abs", &x),
        IntUn::Brev => b.same("bitreverse", &[&x]),
        // These three have results of their own type.
        IntUn::Popc => {
            let count = b.same("ctpop", &[&x]);
            return b.resize(&count, to.bits(), false);
        }
        IntUn::Clz => {
            let count = b.same_defined("ctlz", &x);
            return b.resize(&count, to.bits(), false);
        }
        IntUn::Bfind { shiftamt } => {
            let x = if int.signed {
                let sign = b.bin_int("ashr", &x, i128::from(bits - 1));
                b.xor(&x, &sign)
            } else {
                x
            };
            let zeros = b.same_defined("ctlz", &x);
            let zeros = b.resize(&zeros, to.bits(), false);
            if !shiftamt {
                // No bit: `bits - 1 - bits` is the all ones that PTX gives.
                let top = Builder::int(to, i128::from(bits - 1));
                return b.sub(&top, &zeros);
            }
            let none = b.icmp_int("eq", &x, 0);
            let ones = Builder::int(to, -1);
            return b.select(&none, &ones, &zeros);
        }
    };
    result(b, int, &value, to)
}

pub fn mul_wide(b: &mut Builder, int: Int, x: &Val, y: &Val, to: Type) -> Val {
    let (x, y) = (operand(b, int, x), operand(b, int, y));
    let (x, y) = (b.resize(&x, to.bits(), int.signed), b.resize(&y, to.bits(), int.signed));
    b.mul(&x, &y)
}

pub fn add_carry(b: &mut Builder, int: Int, args: &[Val]) -> Vec<Val> {
    let (x, y) = (operand(b, int, &args[0]), operand(b, int, &args[1]));
    let sum = b.add(&x, &y);
    let carry = b.icmp("ult", &sum, &x);
    let Some(carry_in) = args.get(2) else {
        return vec![sum, carry];
    };
    let one = b.cast("zext", carry_in, sum.ty);
    let total = b.add(&sum, &one);
    let second = b.icmp("ult", &total, &sum);
    let carry = b.or(&carry, &second);
    vec![total, carry]
}

/// PTX differs: the manual calls the flag of a subtraction a borrow. NVIDIA's GPUs have one carry for both: they add `~b` and
/// the carry (1 in `sub.cc`), so `CC.CF` is 1 where nothing is borrowed, for an `addc` behind a `sub.cc` too.
pub fn sub_carry(b: &mut Builder, int: Int, args: &[Val]) -> Vec<Val> {
    let (x, y) = (operand(b, int, &args[0]), operand(b, int, &args[1]));
    let difference = b.sub(&x, &y);
    let borrows = b.icmp("ult", &x, &y);
    let Some(carry_in) = args.get(2) else {
        return vec![difference, b.not(&borrows)];
    };
    let borrow_in = b.not(carry_in);
    let one = b.cast("zext", &borrow_in, difference.ty);
    let total = b.sub(&difference, &one);
    let second = b.icmp("ult", &difference, &one);
    let borrows = b.or(&borrows, &second);
    vec![total, b.not(&borrows)]
}

/// `sad.type d, a, b, c`: c + |a - b|
pub fn sad(b: &mut Builder, int: Int, args: &[Val]) -> Val {
    let (x, y, z) = (operand(b, int, &args[0]), operand(b, int, &args[1]), operand(b, int, &args[2]));
    let (min, max) = if int.signed { ("smin", "smax") } else { ("umin", "umax") };
    let (low, high) = (b.same(min, &[&x, &y]), b.same(max, &[&x, &y]));
    let distance = b.sub(&high, &low);
    b.add(&z, &distance)
}

/// `bits` wide part number `index` of a 32-bit register, extended to 32 bits.
pub fn part(b: &mut Builder, x: &Val, bits: u32, index: u32, signed: bool) -> Val {
    let shifted = match index {
        0 => x.clone(),
        _ => b.bin_int("lshr", x, i128::from(bits * index)),
    };
    let part = b.resize(&shifted, bits, false);
    b.resize(&part, 32, signed)
}

pub fn dp2a(b: &mut Builder, a_signed: bool, b_signed: bool, hi: bool, args: &[Val]) -> Val {
    let mut sum = args[2].clone();
    for i in 0..2 {
        let x = part(b, &args[0], 16, i, a_signed);
        let y = part(b, &args[1], 8, i + 2 * u32::from(hi), b_signed);
        let product = b.mul(&x, &y);
        sum = b.add(&sum, &product);
    }
    sum
}
