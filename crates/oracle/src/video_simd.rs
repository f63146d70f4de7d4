//! SIMD video instructions (§9.7.18): two half words or four bytes at once, chosen from the parts of both operands.

use crate::form::{Form, Modifiers, Type};
use crate::video::comparison;

const U32: Type = Type::Unsigned(32);

/// The parts that a selector names, from the lowest: `.b7654` is `[4, 5, 6, 7]`.
fn selection(name: Option<&str>, letter: char, n: usize, default: usize) -> Option<Vec<u32>> {
    let Some(name) = name else { return Some((default..default + n).map(|i| i as u32).collect()) };
    let digits: Option<Vec<u32>> = name.strip_prefix(letter)?.chars().rev().map(|c| c.to_digit(10)).collect();
    digits.filter(|parts| parts.len() == n && parts.iter().all(|part| (*part as usize) < 2 * n))
}

/// Which parts of the result a mask has: `.b310`, the highest first.
fn mask(name: Option<&str>, letter: char, n: usize) -> Option<Vec<bool>> {
    let Some(name) = name else { return Some(vec![true; n]) };
    let digits: Vec<usize> = name
        .strip_prefix(letter)?
        .chars()
        .map(|c| c.to_digit(10).map(|d| d as usize))
        .collect::<Option<_>>()?;
    let falls = digits.windows(2).all(|pair| pair[0] > pair[1]);
    (falls && !digits.is_empty() && digits[0] < n).then(|| (0..n).map(|i| digits.contains(&i)).collect())
}

/// Whether an instruction is one of these: their sources are registers, literals are none (NVIDIA's assembler).
#[must_use]
pub fn is_simd_video(instruction: &str) -> bool {
    let opcode = instruction.split('.').next().unwrap_or_default();
    opcode.starts_with('v') && opcode.ends_with(['2', '4'])
}

pub(crate) fn parse(opcode: &str, m: &mut Modifiers<'_>) -> Option<Form> {
    let (stem, n) = match opcode.strip_suffix('2') {
        Some(stem) => (stem, 2),
        None => (opcode.strip_suffix('4')?, 4),
    };
    if !["vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax", "vset"].contains(&stem) {
        return None;
    }
    let letter = if n == 2 { 'h' } else { 'b' };
    let bits = 32 / n as u32;
    let a_parts = selection(m.take_at("a."), letter, n, 0)?;
    let b_parts = selection(m.take_at("b."), letter, n, n)?;
    let mask = mask(m.take_at("d."), letter, n)?;
    let (sat, add) = (m.take("sat"), m.take("add"));
    let compare = if stem == "vset" { Some(comparison(m)?) } else { None };
    let mut word = || m.ty().filter(|ty| matches!(ty, Type::Unsigned(32) | Type::Signed(32)));
    let target = if compare.is_some() { U32 } else { word()? };
    let (a_ty, b_ty) = (word()?, word()?);
    if sat && (add || compare.is_some()) {
        return None;
    }
    let part_of = |ty: Type| if ty.is_signed() { Type::Signed(bits) } else { Type::Unsigned(bits) };
    let (a_part, b_part, d_part) = (part_of(a_ty), part_of(b_ty), part_of(target));
    let stem = stem.to_owned();
    Form::total(target, &[a_ty, b_ty, target], move |x| {
        // Parts of a are the low ones of the pair, parts of b the high ones.
        let both = x[1] << 32 | x[0];
        let mut sum = target.integer(x[2]);
        let mut merged = 0;
        for i in 0..n {
            let a = a_part.integer(both >> (a_parts[i] * bits));
            let b = b_part.integer(both >> (b_parts[i] * bits));
            let value = match stem.as_str() {
                "vadd" => a + b,
                "vsub" => a - b,
                // Half of the sum: one half is rounded away from zero where the sum is not negative, else down.
                "vavrg" => (a + b + i128::from(a + b >= 0)) >> 1,
                "vabsdiff" => (a - b).abs(),
                "vmin" => a.min(b),
                "vmax" => a.max(b),
                _ => i128::from(compare.unwrap()(a, b)),
            };
            let (low, high) = d_part.range();
            let value = if sat { value.clamp(low, high) } else { value };
            let at = i as u32 * bits;
            let keep = x[2] & ((1 << bits) - 1) << at;
            if mask[i] {
                sum += value;
                merged |= d_part.cut(value) << at;
            } else {
                merged |= keep;
            }
        }
        if add { target.cut(sum) } else { merged }
    })
}
