//! Logic and shift instructions (§9.7.8), and `prmt` (§9.7.9.7).

use crate::form::{Form, Modifiers, Type};

const B32: Type = Type::Bits(32);
const U32: Type = Type::Unsigned(32);

pub(crate) fn parse(opcode: &str, m: &mut Modifiers<'_>) -> Option<Form> {
    match opcode {
        "and" | "or" | "xor" | "not" | "cnot" => bitwise(opcode, m),
        "lop3" => lop3(m),
        "shf" => shf(m),
        "shl" | "shr" => shift(opcode == "shl", m),
        _ => prmt(m),
    }
}

fn bitwise(opcode: &str, m: &mut Modifiers<'_>) -> Option<Form> {
    let ty = m.ty().filter(|ty| matches!(ty, Type::Pred | Type::Bits(16 | 32 | 64)))?;
    match opcode {
        "and" => Form::total(ty, &[ty, ty], |x| x[0] & x[1]),
        "or" => Form::total(ty, &[ty, ty], |x| x[0] | x[1]),
        "xor" => Form::total(ty, &[ty, ty], |x| x[0] ^ x[1]),
        "not" => Form::total(ty, &[ty], move |x| ty.cut(!(x[0] as i128))),
        _ if ty == Type::Pred => None,
        _ => Form::total(ty, &[ty], |x| u128::from(x[0] == 0)),
    }
}

/// `lop3` (§9.7.8.6): bit abc of the table, a the most significant. With a Boolean operation the predicate is whether any
/// bit is set, combined with `q`.
fn lop3(m: &mut Modifiers<'_>) -> Option<Form> {
    let and = m.take_one(&[("or", false), ("and", true)]);
    m.ty().filter(|ty| *ty == B32)?;
    let table = |x: &[u128]| {
        (0..32).fold(0, |d, i| {
            let index = (x[0] >> i & 1) << 2 | (x[1] >> i & 1) << 1 | x[2] >> i & 1;
            d | (x[3] >> index & 1) << i
        })
    };
    let operands = [B32, B32, B32, Type::Immediate];
    let Some(and) = and else { return Form::total(B32, &operands, table) };
    Form::new(&[B32, Type::Pred], &[B32, B32, B32, Type::Immediate, Type::Pred], move |x| {
        let d = table(x);
        let any = u128::from(d != 0);
        Some([d, if and { any & x[4] } else { any | x[4] }])
    })
}

/// `shf` (§9.7.8.7): the 64 bits b:a, shifted.
fn shf(m: &mut Modifiers<'_>) -> Option<Form> {
    let left = m.take_one(&[("l", true), ("r", false)])?;
    let wrap = m.take_one(&[("clamp", false), ("wrap", true)])?;
    m.ty().filter(|ty| *ty == B32)?;
    Form::total(B32, &[B32, B32, U32], move |x| {
        let n = if wrap { x[2] & 31 } else { x[2].min(32) };
        let both = x[1] << 32 | x[0];
        B32.cut(if left { both << n >> 32 } else { both >> n } as i128)
    })
}

/// `shl`, `shr` (§9.7.8.8, .9): amounts beyond the width are clamped to it.
fn shift(left: bool, m: &mut Modifiers<'_>) -> Option<Form> {
    let ty = m.ty().filter(|ty| ty.is_integer() && matches!(ty.bits(), 16 | 32 | 64))?;
    if left && !matches!(ty, Type::Bits(_)) {
        return None;
    }
    Form::total(ty, &[ty, U32], move |x| {
        let n = x[1].min(ty.bits().into());
        let a = ty.integer(x[0]);
        ty.cut(if left { a << n } else { a >> n })
    })
}

/// `prmt` (§9.7.9.7): which of the eight bytes b:a goes to each place of the result.
fn prmt(m: &mut Modifiers<'_>) -> Option<Form> {
    // For each value of the control's two low bits, the bytes of the result from the highest to the lowest.
    let mode: Option<[u32; 4]> = m.take_one(&[
        ("f4e", [0x3210, 0x4321, 0x5432, 0x6543]),
        ("b4e", [0x5670, 0x6701, 0x7012, 0x0123]),
        ("rc8", [0x0000, 0x1111, 0x2222, 0x3333]),
        ("ecl", [0x3210, 0x3211, 0x3222, 0x3333]),
        ("ecr", [0x0000, 0x1110, 0x2210, 0x3210]),
        ("rc16", [0x1010, 0x3232, 0x1010, 0x3232]),
    ]);
    m.ty().filter(|ty| *ty == B32)?;
    Form::total(B32, &[B32, B32, B32], move |x| {
        let both = x[1] << 32 | x[0];
        let control = mode.map_or(x[2], |mode| mode[(x[2] & 3) as usize].into());
        (0..4).fold(0, |d, place| {
            let selection = control >> (4 * place) & 0xf;
            let byte = both >> (8 * (selection & 7)) & 0xff;
            // The fourth bit asks for eight copies of the byte's sign.
            let byte = if selection & 8 == 0 { byte } else { 0xff * (byte >> 7) };
            d | byte << (8 * place)
        })
    })
}
