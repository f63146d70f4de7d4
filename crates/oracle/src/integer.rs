//! Integer instructions (§9.7.1) and extended precision (§9.7.2), in `i128`, which holds every product of 64-bit values.

use crate::float::packed;
use crate::form::{Form, Modifiers, Type};

pub(crate) fn parse(opcode: &str, m: &mut Modifiers<'_>) -> Option<Form> {
    match opcode {
        "add" | "sub" | "addc" | "subc" => sum(opcode, m),
        "mul" | "mad" | "madc" => product(opcode, m),
        "mul24" | "mad24" => product24(opcode == "mad24", m),
        "sad" => {
            let ty = number(m, &[16, 32, 64])?;
            Form::total(ty, &[ty; 3], move |x| {
                let [a, b, c] = [0, 1, 2].map(|i| ty.integer(x[i]));
                ty.cut(c + (a - b).abs())
            })
        }
        "div" | "rem" => quotient(opcode == "rem", m),
        "min" | "max" => extremum(opcode == "max", m),
        "abs" | "neg" => {
            let ty = number(m, &[16, 32, 64]).filter(|ty| ty.is_signed())?;
            let is_neg = opcode == "neg";
            Form::total(ty, &[ty], move |x| {
                let a = ty.integer(x[0]);
                ty.cut(if is_neg { -a } else { a.abs() })
            })
        }
        "popc" | "clz" | "brev" => count(opcode, m),
        "bfind" => bfind(m),
        "fns" => fns(m),
        "bfe" => bfe(m),
        "bfi" => bfi(m),
        "bmsk" => bmsk(m),
        "szext" => szext(m),
        "dp4a" => dot(m, None),
        "dp2a" => {
            let first = m.take_one(&[("lo", 0), ("hi", 2)])?;
            dot(m, Some(first))
        }
        _ => None,
    }
}

const U32: Type = Type::Unsigned(32);

fn number(m: &mut Modifiers<'_>, widths: &[u32]) -> Option<Type> {
    m.ty().filter(|ty| matches!(ty, Type::Unsigned(_) | Type::Signed(_)) && widths.contains(&ty.bits()))
}

/// Clamped to the type's range.
fn clamp(ty: Type, value: i128) -> u128 {
    let (low, high) = ty.range();
    ty.cut(value.clamp(low, high))
}

/// `add`, `sub`, and with carry. CC.CF is the bit that does not fit. A subtraction adds the complement and the carry, which is
/// 1 in `sub.cc`, as NVIDIA's GPUs do (`IADD3 P0 = a + -b`, read by an `addc` and a `subc` alike), though the manual speaks of a
/// borrow: the flag is 1 where nothing is borrowed.
fn sum(opcode: &str, m: &mut Modifiers<'_>) -> Option<Form> {
    let takes_carry = opcode.ends_with('c');
    let sign = if opcode.starts_with("add") { 1 } else { -1 };
    let (gives_carry, sat) = (m.take("cc"), m.take("sat"));
    let ty = m.ty()?;
    if let Type::PackedUnsigned(bits, n) | Type::PackedSigned(bits, n) = ty {
        if takes_carry || gives_carry || sat || opcode != "add" {
            return None;
        }
        return Form::total(ty, &[ty, ty], move |x| {
            packed(bits, n, x, |x| Type::Unsigned(bits).cut((x[0] + x[1]) as i128))
        });
    }
    let with_carry = takes_carry || gives_carry;
    let widths: &[u32] = if with_carry { &[32, 64] } else { &[16, 32, 64] };
    if !matches!(ty, Type::Unsigned(_) | Type::Signed(_)) || !widths.contains(&ty.bits()) {
        return None;
    }
    if sat && (ty != Type::Signed(32) || with_carry) {
        return None;
    }
    let mut operands = vec![ty, ty];
    operands.extend(takes_carry.then_some(Type::Carry));
    let mut results = vec![ty];
    results.extend(gives_carry.then_some(Type::Carry));
    Form::new(&results, &operands, move |x| {
        if sat {
            return Some([clamp(ty, ty.integer(x[0]) + sign * ty.integer(x[1])), 0]);
        }
        // The carry is that of the bits read as unsigned, for signed types too.
        let (added, first) = if sign == 1 { (x[1], 0) } else { (ty.cut(!x[1] as i128), 1) };
        let exact = x[0] + added + if takes_carry { x[2] } else { first };
        Some([ty.cut(exact as i128), exact >> ty.bits()])
    })
}

/// The product's part that `.lo`, `.hi` or `.wide` names.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Low,
    High,
    Wide,
}

const PARTS: [(&str, Part); 3] = [("lo", Part::Low), ("hi", Part::High), ("wide", Part::Wide)];

/// `mul`, `mad`, `madc`: n bits of the 2n bits of the product, or all of them.
fn product(opcode: &str, m: &mut Modifiers<'_>) -> Option<Form> {
    let (gives_carry, sat) = (m.take("cc"), m.take("sat"));
    let takes_carry = opcode == "madc";
    let has_addend = opcode != "mul";
    let part = m.take_one(&PARTS)?;
    let with_carry = gives_carry || takes_carry;
    let ty = number(m, if with_carry { &[32, 64] } else { &[16, 32, 64] })?;
    if sat && (!has_addend || with_carry || part != Part::High || ty != Type::Signed(32)) {
        return None;
    }
    if part == Part::Wide && (with_carry || ty.bits() == 64) || gives_carry && !has_addend {
        return None;
    }
    let n = ty.bits();
    let result = match (part, ty) {
        (Part::Wide, Type::Signed(_)) => Type::Signed(2 * n),
        (Part::Wide, _) => Type::Unsigned(2 * n),
        _ => ty,
    };
    let mut operands = vec![ty, ty];
    operands.extend(has_addend.then_some(result));
    operands.extend(takes_carry.then_some(Type::Carry));
    let mut results = vec![result];
    results.extend(gives_carry.then_some(Type::Carry));
    Form::new(&results, &operands, move |x| {
        // 2n bits, as a register pair would hold them.
        let (a, b) = (ty.integer(x[0]), ty.integer(x[1]));
        let wide = if ty.is_signed() { (a * b) as u128 } else { (a as u128) * (b as u128) };
        let taken = match part {
            Part::Low => wide & ((1 << n) - 1),
            Part::High => wide >> n & ((1 << n) - 1),
            Part::Wide => result.cut(wide as i128),
        };
        if sat {
            return Some([clamp(ty, ty.integer(taken) + ty.integer(x[2])), 0]);
        }
        let carry = if takes_carry { x[3] } else { 0 };
        let exact = taken + if has_addend { x[2] } else { 0 } + carry;
        let cut = result.cut(exact as i128);
        Some([cut, u128::from(exact != cut)])
    })
}

/// `mul24`, `mad24` (§9.7.1.5, .6): of the 48 bits of the product of 24-bit numbers, bits 31..0 or 47..16.
fn product24(has_addend: bool, m: &mut Modifiers<'_>) -> Option<Form> {
    let sat = m.take("sat");
    let is_high = m.take_one(&[("lo", false), ("hi", true)])?;
    let ty = number(m, &[32])?;
    if sat && !(has_addend && is_high && ty.is_signed()) {
        return None;
    }
    let low24 = if ty.is_signed() { Type::Signed(24) } else { Type::Unsigned(24) };
    let operands = if has_addend { vec![ty; 3] } else { vec![ty; 2] };
    Form::total(ty, &operands, move |x| {
        let product = low24.integer(x[0]) * low24.integer(x[1]);
        let taken = ty.cut(if is_high { product >> 16 } else { product });
        let addend = if has_addend { ty.integer(x[2]) } else { 0 };
        let exact = ty.integer(taken) + addend;
        if sat { clamp(ty, exact) } else { ty.cut(exact) }
    })
}

/// `div`, `rem` (§9.7.1.8, .9): towards zero. By zero: unspecified; the least signed number by -1 does not fit, and the
/// manual does not say what becomes of it.
fn quotient(is_rem: bool, m: &mut Modifiers<'_>) -> Option<Form> {
    let ty = number(m, &[16, 32, 64])?;
    Form::new(&[ty], &[ty, ty], move |x| {
        let (a, b) = (ty.integer(x[0]), ty.integer(x[1]));
        if b == 0 || ty.is_signed() && b == -1 && a == ty.range().0 {
            return None;
        }
        Some([ty.cut(if is_rem { a % b } else { a / b }), 0])
    })
}

fn extremum(is_max: bool, m: &mut Modifiers<'_>) -> Option<Form> {
    let relu = m.take("relu");
    let ty = m.ty()?;
    let (part, n) = match ty {
        Type::PackedUnsigned(bits, n) => (Type::Unsigned(bits), n),
        Type::PackedSigned(bits, n) => (Type::Signed(bits), n),
        Type::Unsigned(16 | 32 | 64) | Type::Signed(16 | 32 | 64) => (ty, 1),
        _ => return None,
    };
    if relu && !matches!(ty, Type::PackedSigned(16, 2) | Type::Signed(32)) {
        return None;
    }
    Form::total(ty, &[ty, ty], move |x| {
        packed(part.bits(), n, x, |x| {
            let (a, b) = (part.integer(x[0]), part.integer(x[1]));
            let value = if is_max { a.max(b) } else { a.min(b) };
            part.cut(if relu { value.max(0) } else { value })
        })
    })
}

fn count(opcode: &str, m: &mut Modifiers<'_>) -> Option<Form> {
    let ty = m.ty().filter(|ty| matches!(ty, Type::Bits(32 | 64)))?;
    let n = ty.bits();
    match opcode {
        "popc" => Form::total(U32, &[ty], |x| x[0].count_ones().into()),
        "clz" => Form::total(U32, &[ty], move |x| (x[0].leading_zeros() + n - 128).into()),
        _ => Form::total(ty, &[ty], move |x| {
            (0..n).map(|i| (x[0] >> i & 1) << (n - 1 - i)).fold(0, |all, bit| all | bit)
        }),
    }
}

/// `bfind` (§9.7.1.16)
fn bfind(m: &mut Modifiers<'_>) -> Option<Form> {
    let shiftamt = m.take("shiftamt");
    let ty = number(m, &[32, 64])?;
    let top = ty.bits() - 1;
    Form::total(U32, &[ty], move |x| {
        let negative = ty.is_signed() && x[0] >> top == 1;
        let a = if negative { ty.cut(!(x[0] as i128)) } else { x[0] };
        match (0..=top).rev().find(|i| a >> i & 1 == 1) {
            None => 0xffff_ffff,
            Some(at) => u128::from(if shiftamt { top - at } else { at }),
        }
    })
}

/// `fns` (§9.7.1.17): a base beyond 31 is undefined.
fn fns(m: &mut Modifiers<'_>) -> Option<Form> {
    m.ty().filter(|ty| *ty == Type::Bits(32))?;
    Form::new(&[Type::Bits(32)], &[Type::Bits(32), U32, Type::Signed(32)], |x| {
        let (mask, base, offset) = (x[0], x[1] as i128, Type::Signed(32).integer(x[2]));
        if base > 31 {
            return None;
        }
        let is_set = |at: &i128| mask >> at & 1 == 1;
        let found = match offset {
            0 => Some(base).filter(is_set),
            1.. => (base..32).filter(is_set).nth(offset as usize - 1),
            _ => (0..=base).rev().filter(is_set).nth(offset.unsigned_abs() as usize - 1),
        };
        Some([found.map_or(0xffff_ffff, |at| at as u128), 0])
    })
}

/// What counts of a position or a length: the low 8 bits of those of 32-bit fields, as the manual has it. For 64 bits ptxas
/// makes shifts that clamp, and the manual's 8 bits are nowhere (SASS: `SHF.R.U64` by `pos` as it is, `(1 << len) - 1`).
fn extent(ty: Type, x: u128) -> u128 {
    if ty.bits() == 64 { x } else { x & 0xff }
}

/// `bfe` (§9.7.1.19): beyond the register's top stands the sign bit, that of the last bit which is inside.
fn bfe(m: &mut Modifiers<'_>) -> Option<Form> {
    let ty = number(m, &[32, 64])?;
    let msb = u128::from(ty.bits() - 1);
    Form::total(ty, &[ty, U32, U32], move |x| {
        let (a, pos, len) = (x[0], extent(ty, x[1]), extent(ty, x[2]));
        let sign = if !ty.is_signed() || len == 0 { 0 } else { a >> (pos + len - 1).min(msb) & 1 };
        (0..=msb).fold(0, |d, i| {
            let bit = if i < len && pos + i <= msb { a >> (pos + i) & 1 } else { sign };
            d | bit << i
        })
    })
}

/// `bfi` (§9.7.1.20)
fn bfi(m: &mut Modifiers<'_>) -> Option<Form> {
    let ty = m.ty().filter(|ty| matches!(ty, Type::Bits(32 | 64)))?;
    let msb = u128::from(ty.bits() - 1);
    Form::total(ty, &[ty, ty, U32, U32], move |x| {
        let (a, b, pos, len) = (x[0], x[1], extent(ty, x[2]), extent(ty, x[3]));
        (0..len)
            .take_while(|i| pos + i <= msb)
            .fold(b, |d, i| d & !(1 << (pos + i)) | (a >> i & 1) << (pos + i))
    })
}

/// `bmsk` (§9.7.1.22): `width` ones from bit `start` up; nothing above bit 31.
fn bmsk(m: &mut Modifiers<'_>) -> Option<Form> {
    let wrap = m.take_one(&[("clamp", false), ("wrap", true)])?;
    m.ty().filter(|ty| *ty == Type::Bits(32))?;
    Form::total(Type::Bits(32), &[U32, U32], move |x| {
        let (start, width) = if wrap { (x[0] & 31, x[1] & 31) } else { (x[0], x[1]) };
        (0..32).filter(|i| (start..start + width).contains(i)).fold(0, |d, i| d | 1 << i)
    })
}

/// `szext` (§9.7.1.21)
fn szext(m: &mut Modifiers<'_>) -> Option<Form> {
    let wrap = m.take_one(&[("clamp", false), ("wrap", true)])?;
    let ty = number(m, &[32])?;
    Form::total(ty, &[ty, U32], move |x| {
        let n = if wrap { x[1] & 31 } else { x[1].min(32) } as u32;
        let field = match ty {
            _ if n == 0 => return 0,
            Type::Signed(_) => Type::Signed(n),
            _ => Type::Unsigned(n),
        };
        ty.cut(field.integer(x[0]))
    })
}

/// `dp4a` and `dp2a` (§9.7.1.23, .24): `first` is the first byte of b that dp2a takes.
fn dot(m: &mut Modifiers<'_>, first: Option<u32>) -> Option<Form> {
    let (a, b) = (number(m, &[32])?, number(m, &[32])?);
    let result = if a.is_signed() || b.is_signed() { Type::Signed(32) } else { U32 };
    let part = |ty: Type, bits| if ty.is_signed() { Type::Signed(bits) } else { Type::Unsigned(bits) };
    Form::total(result, &[a, b, result], move |x| {
        let (a_bits, n, first) = first.map_or((8, 4, 0), |first| (16, 2, first));
        let sum: i128 = (0..n)
            .map(|i| {
                part(a, a_bits).integer(x[0] >> (i * a_bits)) * part(b, 8).integer(x[1] >> ((first + i) * 8))
            })
            .sum();
        result.cut(result.integer(x[2]) + sum)
    })
}
