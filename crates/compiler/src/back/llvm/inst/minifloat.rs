//! tf32 and the 8-bit floats.

use super::super::builder::{Builder, Val};
use super::float;
use crate::ir::{FloatMode, Round};

/// `cvt.{rna,rn,rz}.tf32.f32`: 10 fraction bits, the low 13 bits are zero.
pub fn tf32(b: &mut Builder, mode: FloatMode, x: &Val) -> Val {
    let x = b.bitcast(x, x.ty.float());
    let x = if mode.relu { float::relu(b, &x) } else { x };
    let bits = b.to_bits(&x);
    let addend = match mode.round {
        Round::NearestAway => Builder::int(bits.ty, 0x1000),
        Round::Nearest => {
            let shifted = b.bin_int("lshr", &bits, 13);
            let last = b.bin_int("and", &shifted, 1);
            b.bin_int("add", &last, 0xfff)
        }
        _ => Builder::int(bits.ty, 0),
    };
    let rounded = b.add(&bits, &addend);
    let cut = b.bin_int("and", &rounded, !0x1fff);
    let is_nan = b.fcmp("uno", &x, &x);
    let nan = Builder::int(bits.ty, 0x7fff_ffff);
    b.select(&is_nan, &nan, &cut)
}
