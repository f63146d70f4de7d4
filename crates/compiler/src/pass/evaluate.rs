//! What an operation on integers gives where its arguments are known: the one place in the compiler that says so. (`crates/oracle` has its
//! own, so that tests compare two.)

use super::value_ranges::{mask, signed};
use crate::ir::{Bool, Cmp, Int, IntBin, IntUn, Op};

/// The result number `nth`, of `bits` bits. `from`: bits of the first argument. `None`: not such an operation.
///
/// Arguments are as wide as their types say; the result has nothing above its width.
pub fn evaluate(op: &Op, nth: usize, args: &[u128], from: u32, bits: u32) -> Option<u128> {
    let result = match op {
        Op::Const(value) => *value,
        Op::Bitcast | Op::Zext | Op::Trunc => args[0],
        Op::Sext => signed(args[0], from) as u128,
        Op::Pack => {
            args.iter().rev().fold(0u128, |all, part| all.checked_shl(from).unwrap_or_default() | part)
        }
        Op::Unpack => args[0].checked_shr(u32::try_from(nth).ok()?.checked_mul(bits)?)?,
        Op::Int(op, int) => binary(*op, *int, args[0], args[1])?,
        Op::IntUn(op, int) => unary(*op, *int, args[0])?,
        Op::MulWide(int) => number(args[0], *int).wrapping_mul(number(args[1], *int)) as u128,
        Op::Icmp(cmp, int) => {
            let order = number(args[0], *int).cmp(&number(args[1], *int));
            u128::from(match cmp {
                Cmp::Eq => order.is_eq(),
                Cmp::Ne => order.is_ne(),
                Cmp::Lt => order.is_lt(),
                Cmp::Le => order.is_le(),
                Cmp::Gt => order.is_gt(),
                Cmp::Ge => order.is_ge(),
            })
        }
        Op::Bool(Bool::And) => args[0] & args[1],
        Op::Bool(Bool::Or) => args[0] | args[1],
        Op::Bool(Bool::Xor) => args[0] ^ args[1],
        Op::Not => !args[0],
        Op::Select => args[if args[0] & 1 != 0 { 1 } else { 2 }],
        Op::Shf { left, wrap } => {
            let whole = args[1] << 32 | args[0];
            let count = if *wrap { args[2] & 31 } else { args[2].min(32) };
            if *left { whole << count >> 32 } else { whole >> count }
        }
        _ => return None,
    };
    Some(result & mask(bits))
}

/// The most arguments of an operation that is evaluated: a word of 128 bits is packed of bytes.
const MAX_ARGS: usize = 16;

/// The same where an argument may not be known: `of` says what is known of each, by its number.
pub fn evaluate_known(
    op: &Op,
    nth: usize,
    n_args: usize,
    of: impl Fn(usize) -> Option<u128>,
    from: u32,
    bits: u32,
) -> Option<u128> {
    if !is_evaluated(op) {
        return None;
    }
    let mut args = [0; MAX_ARGS];
    let args = args.get_mut(..n_args)?;
    for (at, arg) in args.iter_mut().enumerate() {
        *arg = of(at)?;
    }
    evaluate(op, nth, args, from, bits)
}

/// Whether [`evaluate`] knows the operation.
pub fn is_evaluated(op: &Op) -> bool {
    match op {
        Op::Const(_) | Op::Bitcast | Op::Zext | Op::Sext | Op::Trunc | Op::Pack | Op::Unpack => true,
        Op::Int(op, _) => !matches!(op, IntBin::AddSat | IntBin::SubSat | IntBin::Mul24Lo | IntBin::Mul24Hi),
        Op::IntUn(op, _) => matches!(op, IntUn::Neg | IntUn::Not | IntUn::Abs),
        Op::MulWide(_) | Op::Icmp(..) | Op::Bool(_) | Op::Not | Op::Select | Op::Shf { .. } => true,
        _ => false,
    }
}

/// The number that the bits stand for.
fn number(bits: u128, int: Int) -> i128 {
    let width = u32::from(int.bits);
    if int.signed { signed(bits, width) } else { (bits & mask(width)) as i128 }
}

fn binary(op: IntBin, int: Int, a: u128, b: u128) -> Option<u128> {
    let (left, right) = (number(a, int), number(b, int));
    let width = u128::from(int.bits);
    let result = match op {
        IntBin::Add => left.wrapping_add(right),
        IntBin::Sub => left.wrapping_sub(right),
        IntBin::Mul => left.wrapping_mul(right),
        IntBin::MulHi => left.wrapping_mul(right) >> int.bits,
        IntBin::Div => left.checked_div(right).unwrap_or(-1),
        IntBin::Rem => left.checked_rem(right).unwrap_or(-1),
        IntBin::Min => left.min(right),
        IntBin::Max => left.max(right),
        IntBin::And => left & right,
        IntBin::Or => left | right,
        IntBin::Xor => left ^ right,
        // The count has a width of its own.
        IntBin::Shl if b < width => left << b,
        IntBin::Shl => 0,
        IntBin::Shr => left >> b.min(width),
        IntBin::AddSat | IntBin::SubSat | IntBin::Mul24Lo | IntBin::Mul24Hi => return None,
    };
    Some(result as u128)
}

fn unary(op: IntUn, int: Int, value: u128) -> Option<u128> {
    let value = signed(value, int.bits.into());
    let result = match op {
        IntUn::Neg => value.wrapping_neg(),
        IntUn::Not => !value,
        IntUn::Abs => value.wrapping_abs(),
        IntUn::Popc | IntUn::Clz | IntUn::Bfind { .. } | IntUn::Brev => return None,
    };
    Some(result as u128)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(op: IntBin, bits: u8, signed: bool, a: u128, b: u128) -> u128 {
        let int = Int { bits, signed };
        evaluate(&Op::Int(op, int), 0, &[a, b], bits.into(), bits.into()).unwrap()
    }

    #[test]
    fn edges_of_the_operations() {
        let (max, min) = (0xffff_ffff, 0x8000_0000);
        // PTX ISA, div and rem: unspecified by zero; the values of this machine are those of ir.rs.
        assert_eq!(on(IntBin::Div, 32, false, 7, 0), max);
        assert_eq!(on(IntBin::Div, 32, true, min, max), min);
        assert_eq!(on(IntBin::Rem, 32, true, 7, 0), max);
        assert_eq!(on(IntBin::Rem, 32, true, min, max), 0);
        // PTX ISA, shl and shr: amounts above the width count as the width.
        assert_eq!(on(IntBin::Shl, 32, false, 1, 32), 0);
        assert_eq!(on(IntBin::Shr, 32, false, max, 400), 0);
        assert_eq!(on(IntBin::Shr, 32, true, min, 0xffff_ffff), max);
        assert_eq!(on(IntBin::Shr, 64, true, 1 << 63, 63), u64::MAX.into());
        assert_eq!(on(IntBin::MulHi, 64, false, u64::MAX.into(), u64::MAX.into()), (u64::MAX - 1).into());
        assert_eq!(on(IntBin::MulHi, 32, true, max, 2), max);
        assert_eq!(on(IntBin::Min, 16, true, 0xffff, 1), 0xffff);
        assert_eq!(on(IntBin::Min, 16, false, 0xffff, 1), 1);
    }

    /// Against what Rust gives for the same numbers.
    #[test]
    fn integers_are_those_of_the_machine() {
        for a in [0u32, 1, 5, 31, 32, 0x7fff_ffff, 0x8000_0000, u32::MAX] {
            for b in [0u32, 1, 3, 31, 32, 33, 0x8000_0000, u32::MAX] {
                let of = |op, signed| on(op, 32, signed, a.into(), b.into()) as u32;
                assert_eq!(of(IntBin::Sub, false), a.wrapping_sub(b));
                assert_eq!(of(IntBin::Mul, true), a.wrapping_mul(b));
                assert_eq!(of(IntBin::MulHi, false), ((u64::from(a) * u64::from(b)) >> 32) as u32);
                assert_eq!(of(IntBin::Shl, false), a.checked_shl(b).unwrap_or(0));
                let sign = if (a as i32) < 0 { -1 } else { 0 };
                assert_eq!(of(IntBin::Shr, true) as i32, (a as i32).checked_shr(b).unwrap_or(sign));
                assert_eq!(of(IntBin::Max, true) as i32, (a as i32).max(b as i32));
                assert_eq!(of(IntBin::Div, false), a.checked_div(b).unwrap_or(u32::MAX));
                assert_eq!(of(IntBin::Rem, false), a.checked_rem(b).unwrap_or(u32::MAX));
                let by = if b == 0 { None } else { Some(b as i32) };
                assert_eq!(of(IntBin::Div, true) as i32, by.map_or(-1, |by| (a as i32).wrapping_div(by)));
                assert_eq!(of(IntBin::Rem, true) as i32, by.map_or(-1, |by| (a as i32).wrapping_rem(by)));
            }
        }
    }

    #[test]
    fn parts_and_wholes() {
        let parts = [0x1111, 0x2222, 0x3333, 0x4444];
        let whole = evaluate(&Op::Pack, 0, &parts, 16, 64).unwrap();
        assert_eq!(whole, 0x4444_3333_2222_1111);
        for (nth, part) in parts.iter().enumerate() {
            assert_eq!(evaluate(&Op::Unpack, nth, &[whole], 64, 16), Some(*part));
        }
        let funnel =
            |left, wrap, count| evaluate(&Op::Shf { left, wrap }, 0, &[1, 0x8000_0000, count], 32, 32);
        assert_eq!([funnel(true, true, 33), funnel(true, false, 33)], [Some(0), Some(1)]);
        assert_eq!([funnel(false, true, 32), funnel(false, false, 40)], [Some(1), Some(0x8000_0000)]);
    }

    #[test]
    fn what_is_said_to_be_evaluated_is() {
        let int = Int { bits: 32, signed: true };
        let unaries = [IntUn::Neg, IntUn::Not, IntUn::Abs, IntUn::Popc, IntUn::Clz, IntUn::Brev];
        let binaries =
            [IntBin::Add, IntBin::MulHi, IntBin::Rem, IntBin::AddSat, IntBin::SubSat, IntBin::Mul24Hi];
        let operations = unaries.map(|op| Op::IntUn(op, int)).into_iter();
        for op in operations.chain(binaries.map(|op| Op::Int(op, int))) {
            assert_eq!(evaluate(&op, 0, &[1, 1, 1], 32, 32).is_some(), is_evaluated(&op), "{op:?}");
        }
    }
}
