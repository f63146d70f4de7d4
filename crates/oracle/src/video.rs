//! Scalar video instructions (§9.7.17): 33-bit values from parts of registers, one operation, clamped, then a second
//! operation with `c` or a merge into it.

use crate::form::{Form, Modifiers, Type};

const U32: Type = Type::Unsigned(32);

/// `.b0` to `.b3`, `.h0`, `.h1`: where a part starts and how long it is.
fn part(name: Option<&str>) -> Option<(u32, u32)> {
    Some(match name {
        None => (0, 32),
        Some("b0") => (0, 8),
        Some("b1") => (8, 8),
        Some("b2") => (16, 8),
        Some("b3") => (24, 8),
        Some("h0") => (0, 16),
        Some("h1") => (16, 16),
        _ => return None,
    })
}

/// The part of a register, extended by its type's sign.
fn select(ty: Type, (at, bits): (u32, u32), word: u128) -> i128 {
    let ty = if ty.is_signed() { Type::Signed(bits) } else { Type::Unsigned(bits) };
    ty.integer(word >> at)
}

#[derive(Clone, Copy)]
enum Second {
    Add,
    Min,
    Max,
}

fn word(m: &mut Modifiers<'_>) -> Option<Type> {
    m.ty().filter(|ty| matches!(ty, Type::Unsigned(32) | Type::Signed(32)))
}

pub(crate) fn parse(opcode: &str, m: &mut Modifiers<'_>) -> Option<Form> {
    let (a_part, b_part) = (part(m.take_at("a."))?, part(m.take_at("b."))?);
    if opcode == "vmad" {
        return vmad(m, a_part, b_part);
    }
    let place = m.take_at("d.");
    let (place_bits, merges) = (part(place)?, place.is_some());
    let second = m.take_one(&[("add", Second::Add), ("min", Second::Min), ("max", Second::Max)]);
    let sat = m.take("sat");
    let is_set = opcode == "vset";
    let target = if is_set { U32 } else { word(m)? };
    let (a_ty, b_ty) = (word(m)?, word(m)?);
    let shift_wraps =
        matches!(opcode, "vshl" | "vshr").then(|| m.take_one(&[("clamp", false), ("wrap", true)]));
    let shift_wraps = match shift_wraps {
        Some(mode) => Some(mode?),
        None => None,
    };
    if shift_wraps.is_some() && b_ty != U32 || second.is_some() && merges {
        return None;
    }
    let compare = if is_set { Some(comparison(m)?) } else { None };
    let operation = opcode.to_owned();
    let has_c = second.is_some() || merges;
    let mut operands = vec![a_ty, b_ty];
    operands.extend(has_c.then_some(target));
    Form::new(&[target], &operands, move |x| {
        let (a, b) = (select(a_ty, a_part, x[0]), select(b_ty, b_part, x[1]));
        let by = match shift_wraps {
            Some(true) => b & 31,
            _ => b.min(32),
        };
        let mut value = match operation.as_str() {
            "vadd" => a + b,
            "vsub" => a - b,
            "vabsdiff" => (a - b).abs(),
            "vmin" => a.min(b),
            "vmax" => a.max(b),
            // Results have 34 bits with their sign (§9.7.17), which a shift alone can outgrow: so GPUs have it, too.
            "vshl" => Type::Signed(34).integer((a << by) as u128),
            "vshr" => a >> by,
            _ => i128::from(compare.unwrap()(a, b)),
        };
        let clamped =
            if target.is_signed() { Type::Signed(place_bits.1) } else { Type::Unsigned(place_bits.1) };
        if sat {
            let (low, high) = clamped.range();
            value = value.clamp(low, high);
        }
        if let Some(second) = second {
            let c = target.integer(x[2]);
            let (low, high) = target.range();
            value = match second {
                Second::Add => value + c,
                // Of a value that has outgrown its type the manual says nothing more than that it has 33 bits.
                _ if !(low..=high).contains(&value) => return None,
                Second::Min => value.min(c),
                Second::Max => value.max(c),
            };
        }
        let (at, bits) = place_bits;
        if !merges {
            return Some([target.cut(value), 0]);
        }
        let mask = ((1u128 << bits) - 1) << at;
        Some([(value as u128) << at & mask | x[2] & !mask, 0])
    })
}

/// `.eq`, `.ne` and their like.
pub(crate) fn comparison(m: &mut Modifiers<'_>) -> Option<fn(i128, i128) -> bool> {
    m.take_one::<fn(i128, i128) -> bool>(&[
        ("eq", |a, b| a == b),
        ("ne", |a, b| a != b),
        ("lt", |a, b| a < b),
        ("le", |a, b| a <= b),
        ("gt", |a, b| a > b),
        ("ge", |a, b| a >= b),
    ])
}

/// `vmad` (§9.7.17.4): (a·b) + c, or minus one of them, scaled down, clamped.
fn vmad(m: &mut Modifiers<'_>, a_part: (u32, u32), b_part: (u32, u32)) -> Option<Form> {
    let negates_product = m.take("a.neg") != m.take("b.neg");
    let negates_c = m.take("c.neg");
    let (plus_one, sat) = (m.take("po"), m.take("sat"));
    let scale = m.take_one(&[("shr7", 7), ("shr15", 15)]).unwrap_or(0);
    let (target, a_ty, b_ty) = (word(m)?, word(m)?, word(m)?);
    if negates_product && negates_c || plus_one && (negates_product || negates_c) {
        return None;
    }
    let product_signed = a_ty.is_signed() || b_ty.is_signed() || negates_product;
    let signed = product_signed || negates_c;
    let c_ty = if product_signed { Type::Signed(32) } else { U32 };
    Form::total(target, &[a_ty, b_ty, c_ty], move |x| {
        let product = select(a_ty, a_part, x[0]) * select(b_ty, b_part, x[1]);
        // The pseudo code complements the 32 bits of c, extends them by the final sign, and adds one.
        let final_ty = if signed { Type::Signed(32) } else { U32 };
        let value = if negates_product {
            final_ty.integer(x[2]) - product
        } else if negates_c {
            product + final_ty.integer(U32.cut(!(x[2] as i128))) + 1
        } else {
            product + final_ty.integer(x[2]) + i128::from(plus_one)
        };
        let value = value >> scale;
        let (low, high) = final_ty.range();
        U32.cut(if sat { value.clamp(low, high) } else { value })
    })
}
