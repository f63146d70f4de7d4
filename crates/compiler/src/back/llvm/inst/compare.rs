//! Comparisons, predicates and float classes.

use super::super::builder::{Builder, Val};
use super::float;
use super::{Result, Unsupported};
use crate::ir::{Bool, Cmp, Float, FloatCmp, Int, TestP};

pub fn icmp(b: &mut Builder, cmp: Cmp, int: Int, x: &Val, y: &Val) -> Val {
    let (x, y) = (b.to_bits(x), b.to_bits(y));
    let (x, y) = (b.resize(&x, u32::from(int.bits), false), b.resize(&y, u32::from(int.bits), false));
    let condition = match (cmp, int.signed) {
        (Cmp::Eq, _) => "eq",
        (Cmp::Ne, _) => "ne",
        (Cmp::Lt, true) => "slt",
        (Cmp::Le, true) => "sle",
        (Cmp::Gt, true) => "sgt",
        (Cmp::Ge, true) => "sge",
        (Cmp::Lt, false) => "ult",
        (Cmp::Le, false) => "ule",
        (Cmp::Gt, false) => "ugt",
        (Cmp::Ge, false) => "uge",
    };
    b.icmp(condition, &x, &y)
}

pub fn fcmp(b: &mut Builder, cmp: FloatCmp, ty: Float, ftz: bool, x: &Val, y: &Val) -> Result<Val> {
    if matches!(ty, Float::F16x2 | Float::Bf16x2) {
        return Err(Unsupported(format!("a comparison of {ty:?} in one operation")));
    }
    let (x, y) = (float::flush_half(b, ty, ftz, x), float::flush_half(b, ty, ftz, y));
    let (mut x, mut y) = (float::widen(b, ty, &x), float::widen(b, ty, &y));
    if ftz && ty == Float::F32 {
        (x, y) = (float::flush(b, &x), float::flush(b, &y));
    }
    let condition = match cmp {
        FloatCmp::Ordered(Cmp::Eq) => "oeq",
        FloatCmp::Ordered(Cmp::Ne) => "one",
        FloatCmp::Ordered(Cmp::Lt) => "olt",
        FloatCmp::Ordered(Cmp::Le) => "ole",
        FloatCmp::Ordered(Cmp::Gt) => "ogt",
        FloatCmp::Ordered(Cmp::Ge) => "oge",
        FloatCmp::Unordered(Cmp::Eq) => "ueq",
        FloatCmp::Unordered(Cmp::Ne) => "une",
        FloatCmp::Unordered(Cmp::Lt) => "ult",
        FloatCmp::Unordered(Cmp::Le) => "ule",
        FloatCmp::Unordered(Cmp::Gt) => "ugt",
        FloatCmp::Unordered(Cmp::Ge) => "uge",
        FloatCmp::Num => "ord",
        FloatCmp::Nan => "uno",
    };
    Ok(b.fcmp(condition, &x, &y))
}

pub fn boolean(b: &mut Builder, op: Bool, x: &Val, y: &Val) -> Val {
    match op {
        Bool::And => b.and(x, y),
        Bool::Or => b.or(x, y),
        Bool::Xor => b.xor(x, y),
    }
}

/// `testp.op.{f32,f64}`; zero counts as normal.
pub fn testp(b: &mut Builder, test: TestP, ty: Float, x: &Val) -> Result<Val> {
    if matches!(ty, Float::F16x2 | Float::Bf16x2) {
        return Err(Unsupported(format!("testp of {ty:?}")));
    }
    let mantissa = match ty {
        Float::F16 => 10,
        Float::Bf16 => 7,
        Float::F32 => 23,
        _ => 52,
    };
    let bits = b.to_bits(x);
    let width = bits.ty.bits();
    let magnitude = b.bin_int("and", &bits, (1i128 << (width - 1)) - 1);
    let least_normal = 1i128 << mantissa;
    let infinity = (1i128 << (width - 1)) - least_normal;
    Ok(match test {
        TestP::Finite => b.icmp_int("ult", &magnitude, infinity),
        TestP::Infinite => b.icmp_int("eq", &magnitude, infinity),
        TestP::Number => b.icmp_int("ule", &magnitude, infinity),
        TestP::NotANumber => b.icmp_int("ugt", &magnitude, infinity),
        TestP::Subnormal => {
            // 1 ..= least_normal - 1
            let below = b.bin_int("sub", &magnitude, 1);
            b.icmp_int("ult", &below, least_normal - 1)
        }
        TestP::Normal => {
            let finite = b.icmp_int("ult", &magnitude, infinity);
            let below = b.bin_int("sub", &magnitude, 1);
            let not_subnormal = b.icmp_int("uge", &below, least_normal - 1);
            b.and(&finite, &not_subnormal)
        }
    })
}
