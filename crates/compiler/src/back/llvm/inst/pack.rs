//! Moves between registers of different widths.

use super::super::builder::{Builder, Val};
use super::super::ty::Type;

/// Zero- or sign-extends, or truncates. Floats count as their bits.
pub fn resize(b: &mut Builder, a: &Val, to: Type, signed: bool) -> Val {
    let bits = b.to_bits(a);
    let sized = b.resize(&bits, to.bits(), signed);
    b.bitcast(&sized, to)
}

/// Equal parts, lowest first, into one wide value.
pub fn pack(b: &mut Builder, parts: &[Val], to: Type) -> Val {
    let part_bits = to.bits() / parts.len() as u32;
    let mut wide: Option<Val> = None;
    for (i, part) in parts.iter().enumerate() {
        let bits = b.to_bits(part);
        let narrow = b.resize(&bits, part_bits.max(1), false);
        let part = b.resize(&narrow, to.bits(), false);
        wide = Some(match wide {
            None => part,
            Some(low) => {
                let high = b.bin_int("shl", &part, i128::from(part_bits) * i as i128);
                b.or(&low, &high)
            }
        });
    }
    let wide = wide.unwrap_or_else(|| Builder::int(to.ints(to.bits()), 0));
    b.bitcast(&wide, to)
}

/// A wide value's equal parts, lowest first.
pub fn unpack(b: &mut Builder, a: &Val, results: &[Type]) -> Vec<Val> {
    let bits = b.to_bits(a);
    let part_bits = a.ty.bits() / results.len() as u32;
    let mut parts = Vec::with_capacity(results.len());
    for (i, to) in results.iter().enumerate() {
        let shifted = match i {
            0 => bits.clone(),
            _ => b.bin_int("lshr", &bits, i128::from(part_bits) * i as i128),
        };
        let part = b.resize(&shifted, part_bits, false);
        let sized = b.resize(&part, to.bits(), false);
        parts.push(b.bitcast(&sized, *to));
    }
    parts
}
