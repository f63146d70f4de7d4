//! Sums of products of bytes: by the CPU's own instruction where it has one (VNNI), else by products of 16-bit halves, which every
//! x86-64 sums up by pairs.

use super::super::builder::{Builder, Val};
use super::super::ty::Type;
use super::integer::part as part_of;
use super::part::in_parts;

/// Each byte has its top bit alone.
const TOPS: u128 = 0x8080_8080;

/// `args[2]` and the products of the four bytes of `args[0]` and `args[1]`.
pub fn dp4a(b: &mut Builder, a_signed: bool, b_signed: bool, args: &[Val]) -> Val {
    let [x, y, sum] = args else { unreachable!("a dot product has three operands") };
    let lanes = x.ty.lanes;
    if lanes < 4 || b.vector_bits() < 128 {
        return by_bytes(b, a_signed, b_signed, args);
    }
    let part = lanes.min(b.vector_bits() / 32);
    if b.has_vnni() {
        let (x, y, signs) = match (a_signed, b_signed) {
            (true, false) => (y, x, (false, true)),
            signs => (x, y, signs),
        };
        return in_parts(b, &[x, y, sum], part, |b, pieces| vnni(b, signs, pieces));
    }
    in_parts(b, &[x, y, sum], part, |b, pieces| by_halves(b, a_signed, b_signed, pieces))
}

fn by_bytes(b: &mut Builder, a_signed: bool, b_signed: bool, args: &[Val]) -> Val {
    let mut sum = args[2].clone();
    for i in 0..4 {
        let (x, y) = (part_of(b, &args[0], 8, i, a_signed), part_of(b, &args[1], 8, i, b_signed));
        let product = b.mul(&x, &y);
        sum = b.add(&sum, &product);
    }
    sum
}

/// The instruction takes unsigned bytes and signed ones. Of two alike, one is moved by 128, and what that adds is taken off.
fn vnni(b: &mut Builder, signs: (bool, bool), args: &[Val]) -> Val {
    let [x, y, sum] = args else { unreachable!("a dot product has three operands") };
    let (tops, none) = (Builder::int(x.ty, TOPS as i128), Builder::int(x.ty, 0));
    match signs {
        (false, true) => products(b, sum, x, y),
        (true, _) => {
            // a = (a + 128) - 128
            let moved = b.xor(x, &tops);
            let sum = products(b, sum, &moved, y);
            let more = products(b, &none, &tops, y);
            b.sub(&sum, &more)
        }
        (false, false) => {
            // b = (b - 128) + 128
            let moved = b.xor(y, &tops);
            let sum = products(b, sum, x, &moved);
            let less = products(b, &none, x, &tops);
            b.sub(&sum, &less)
        }
    }
}

fn products(b: &mut Builder, sum: &Val, unsigned: &Val, signed: &Val) -> Val {
    let ty = sum.ty;
    let name = format!("llvm.x86.avx512.vpdpbusd.{}", ty.bits() * ty.lanes);
    b.declare(&name, format!("declare {ty} @{name}({ty}, {ty}, {ty})"));
    let args = [sum, unsigned, signed].map(Val::typed).join(", ");
    b.assign(ty, format_args!("call {ty} @{name}({args})"))
}

/// The even bytes and the odd ones as 16-bit numbers.
fn by_halves(b: &mut Builder, a_signed: bool, b_signed: bool, args: &[Val]) -> Val {
    let [x, y, sum] = args else { unreachable!("a dot product has three operands") };
    let (x, y) = (halves(b, x, a_signed), halves(b, y, b_signed));
    let name = match sum.ty.bits() * sum.ty.lanes {
        512 => "llvm.x86.avx512.pmaddw.d.512",
        256 => "llvm.x86.avx2.pmadd.wd",
        _ => "llvm.x86.sse2.pmadd.wd",
    };
    let (from, into) = (x[0].ty, sum.ty);
    b.declare(name, format!("declare {into} @{name}({from}, {from})"));
    let mut sum = sum.clone();
    for (x, y) in x.iter().zip(&y) {
        let pair = b.assign(into, format_args!("call {into} @{name}({}, {})", x.typed(), y.typed()));
        sum = b.add(&sum, &pair);
    }
    sum
}

fn halves(b: &mut Builder, x: &Val, is_signed: bool) -> [Val; 2] {
    let pairs = b.bitcast(x, Type::int(16, x.ty.lanes * 2));
    if is_signed {
        let low = b.bin_int("shl", &pairs, 8);
        [b.bin_int("ashr", &low, 8), b.bin_int("ashr", &pairs, 8)]
    } else {
        [b.bin_int("and", &pairs, 0xff), b.bin_int("lshr", &pairs, 8)]
    }
}
