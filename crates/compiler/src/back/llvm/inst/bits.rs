//! Bit fields, byte permutation, three-input logic.

use super::super::builder::{Builder, Val};
use super::integer::{shl, shr};
use crate::ir::{Int, PrmtMode};

/// Ones in the low `len` bits; all of them from the width on.
fn low_mask(b: &mut Builder, like: &Val, len: &Val) -> Val {
    let ones = Builder::int(like.ty, -1);
    let above = shl(b, &ones, len);
    b.not(&above)
}

/// A position or a length of a bit field.
///
/// PTX differs: of 32-bit fields only the low 8 bits of position and length count, as the manual says of all. `bfe` and `bfi` of
/// 64 bits NVIDIA's GPUs put together from shifts that clamp (`a >> pos & (1 << len) - 1`), where all bits count.
fn extent(b: &mut Builder, int: Int, x: &Val) -> Val {
    if int.bits == 64 { x.clone() } else { b.bin_int("and", x, 0xff) }
}

/// `bfe.type d, a, pos, len`
pub fn bfe(b: &mut Builder, int: Int, args: &[Val]) -> Val {
    let a = &args[0];
    let bits = a.ty.bits();
    let (pos, len) = (extent(b, int, &args[1]), extent(b, int, &args[2]));
    let field = shr(b, int.signed, a, &pos);
    if !int.signed {
        let mask = low_mask(b, a, &len);
        return b.and(&field, &mask);
    }
    // Bits above the register are copies of its sign already; a shorter field is extended from its own top bit.
    let width = Builder::int(len.ty, i128::from(bits));
    let used = b.same("umin", &[&len, &width]);
    let spare = b.sub(&width, &used);
    let is_empty = b.icmp_int("eq", &len, 0);
    let zero_count = Builder::int(spare.ty, 0);
    let spare = b.select(&is_empty, &zero_count, &spare);
    let spare = b.resize(&spare, bits, false);
    let top = b.bin("shl", &field, &spare);
    let extended = b.bin("ashr", &top, &spare);
    let zero = Builder::int(a.ty, 0);
    b.select(&is_empty, &zero, &extended)
}

/// `bfi.type f, insert, base, pos, len`
pub fn bfi(b: &mut Builder, int: Int, args: &[Val]) -> Val {
    let (insert, base) = (&args[0], &args[1]);
    let (pos, len) = (extent(b, int, &args[2]), extent(b, int, &args[3]));
    let mask = low_mask(b, insert, &len);
    let mask = shl(b, &mask, &pos);
    let moved = shl(b, insert, &pos);
    // base ^ ((base ^ moved) & mask)
    let changed = b.xor(base, &moved);
    let changed = b.and(&changed, &mask);
    b.xor(base, &changed)
}

/// A boolean function of two inputs; bit `2 * x + y` of `table` is its value.
fn lop2(b: &mut Builder, table: u8, x: &Val, y: &Val) -> Val {
    match table & 0xf {
        0x0 => Builder::int(x.ty, 0),
        0xf => Builder::int(x.ty, -1),
        0xc => x.clone(),
        0xa => y.clone(),
        0x3 => b.not(x),
        0x5 => b.not(y),
        0x8 => b.and(x, y),
        0xe => b.or(x, y),
        0x6 => b.xor(x, y),
        0x7 => {
            let t = b.and(x, y);
            b.not(&t)
        }
        0x1 => {
            let t = b.or(x, y);
            b.not(&t)
        }
        0x9 => {
            let t = b.xor(x, y);
            b.not(&t)
        }
        0x4 => {
            let t = b.not(y);
            b.and(x, &t)
        }
        0x2 => {
            let t = b.not(x);
            b.and(&t, y)
        }
        0xd => {
            let t = b.not(y);
            b.or(x, &t)
        }
        _ => {
            let t = b.not(x);
            b.or(&t, y)
        }
    }
}

/// `lop3.b32 d, a, b, c, table`: bit `4 * a + 2 * b + c` of the table is the result.
pub fn lop3(b: &mut Builder, table: u8, args: &[Val]) -> Val {
    // Split on the input that leaves the cheapest join: if x then high(y, z) else low(y, z).
    let bit = |index: usize| (table >> index) & 1;
    let mut best: Option<(u32, usize, u8, u8)> = None;
    for split in 0..3 {
        let others: Vec<usize> = (0..3).filter(|i| *i != split).collect();
        let (mut low, mut high) = (0u8, 0u8);
        for value in 0..4usize {
            let index = (value >> 1) << (2 - others[0]) | (value & 1) << (2 - others[1]);
            low |= bit(index) << value;
            high |= bit(index | 1 << (2 - split)) << value;
        }
        let cost = match (low, high) {
            _ if low == high => 0,
            (0, _) | (_, 0) | (0xf, _) | (_, 0xf) => 1,
            _ if low == !high & 0xf => 1,
            _ => 3,
        };
        if best.is_none_or(|(least, ..)| cost < least) {
            best = Some((cost, split, low, high));
        }
    }
    let (_, split, low, high) = best.unwrap_or((3, 0, table & 0xf, table >> 4));
    let x = &args[split];
    let others: Vec<&Val> = (0..3).filter(|i| *i != split).map(|i| &args[i]).collect();
    let (y, z) = (others[0], others[1]);
    if low == high {
        return lop2(b, low, y, z);
    }
    if low == !high & 0xf {
        let t = lop2(b, low, y, z);
        return b.xor(x, &t);
    }
    let when_set = lop2(b, high, y, z);
    let when_clear = lop2(b, low, y, z);
    match (low, high) {
        (0, _) => b.and(x, &when_set),
        (0xf, _) => {
            let not = b.not(x);
            b.or(&not, &when_set)
        }
        (_, 0xf) => b.or(x, &when_clear),
        (_, 0) => {
            let not = b.not(x);
            b.and(&not, &when_clear)
        }
        _ => {
            let differ = b.xor(&when_set, &when_clear);
            let differ = b.and(&differ, x);
            b.xor(&differ, &when_clear)
        }
    }
}

/// `shf.{l,r}.{clamp,wrap}.b32 d, low, high, count`
pub fn shf(b: &mut Builder, left: bool, wrap: bool, args: &[Val]) -> Val {
    let (low, high, count) = (&args[0], &args[1], &args[2]);
    // LLVM's funnel shifts take the count modulo the width.
    let shifted = b.same(if left { "fshl" } else { "fshr" }, &[high, low, count]);
    if wrap {
        return shifted;
    }
    // A count of 32 or more moves a whole word.
    let fits = b.icmp_int("ult", count, 32);
    b.select(&fits, &shifted, if left { low } else { high })
}

/// `prmt.b32{.mode} d, a, b, selector`
pub fn prmt(b: &mut Builder, mode: PrmtMode, args: &[Val]) -> Val {
    let selector = &args[2];
    // The other modes are tables of four index selectors.
    let selector = match mode {
        PrmtMode::Index => selector.clone(),
        PrmtMode::F4e => pick(b, selector, [0x3210, 0x4321, 0x5432, 0x6543]),
        PrmtMode::B4e => pick(b, selector, [0x5670, 0x6701, 0x7012, 0x0123]),
        PrmtMode::Rc8 => pick(b, selector, [0x0000, 0x1111, 0x2222, 0x3333]),
        PrmtMode::Ecl => pick(b, selector, [0x3210, 0x3211, 0x3222, 0x3333]),
        PrmtMode::Ecr => pick(b, selector, [0x0000, 0x1110, 0x2210, 0x3210]),
        PrmtMode::Rc16 => pick(b, selector, [0x1010, 0x3232, 0x1010, 0x3232]),
    };
    let ty = args[0].ty;
    let (low, high) = (b.resize(&args[0], 64, false), b.resize(&args[1], 64, false));
    let high = b.bin_int("shl", &high, 32);
    let bytes = b.or(&low, &high);
    let mut result = Builder::int(ty, 0);
    for i in 0..4 {
        let nibble = b.bin_int("lshr", &selector, 4 * i);
        let index = b.bin_int("and", &nibble, 7);
        let index = b.resize(&index, 64, false);
        let count = b.bin_int("shl", &index, 3);
        let byte = b.bin("lshr", &bytes, &count);
        let byte = b.resize(&byte, 8, false);
        let sign = b.bin_int("ashr", &byte, 7);
        let flag = b.bin_int("and", &nibble, 8);
        let plain = b.icmp_int("eq", &flag, 0);
        let byte = b.select(&plain, &byte, &sign);
        let byte = b.resize(&byte, 32, false);
        let byte = b.bin_int("shl", &byte, 8 * i);
        result = b.or(&result, &byte);
    }
    result
}

/// One of four constants by the two low bits.
fn pick(b: &mut Builder, selector: &Val, table: [i128; 4]) -> Val {
    let low = b.bin_int("and", selector, 1);
    let high = b.bin_int("and", selector, 2);
    let (even, below) = (b.icmp_int("eq", &low, 0), b.icmp_int("eq", &high, 0));
    let [t0, t1, t2, t3] = table.map(|entry| Builder::int(selector.ty, entry));
    let first = b.select(&even, &t0, &t1);
    let second = b.select(&even, &t2, &t3);
    b.select(&below, &first, &second)
}

/// `fns.b32 d, mask, base, offset`: position of the offset-th one, counted from bit `base` up (or down when negative).
pub fn fns(b: &mut Builder, args: &[Val]) -> Val {
    let (mask, base, offset) = (&args[0], &args[1], &args[2]);
    let ty = mask.ty;
    let one = Builder::int(ty, 1);
    let ones = Builder::int(ty, -1);
    let zero = Builder::int(ty, 0);
    let at_base = shl(b, &one, base);
    let from_base = shl(b, &ones, base);
    let below_base = b.not(&from_base);
    let to_base = b.or(&below_base, &at_base);
    // Downwards: the same search in the reversed word.
    let is_down = b.icmp_int("slt", offset, 0);
    let is_here = b.icmp_int("eq", offset, 0);
    let range = b.select(&is_down, &to_base, &from_base);
    let range = b.select(&is_here, &at_base, &range);
    let inside = b.icmp_int("ult", base, 32);
    let range = b.select(&inside, &range, &zero);
    let candidates = b.and(mask, &range);
    let reversed = b.same("bitreverse", &[&candidates]);
    let word = b.select(&is_down, &reversed, &candidates);
    // How many ones to skip.
    let distance = b.same_defined("abs", offset);
    let skip = b.sub(&distance, &one);
    let skip = b.select(&is_here, &zero, &skip);
    let total = b.same("ctpop", &[&word]);
    let found = b.icmp("ult", &skip, &total);
    // Binary search: does the lower half still hold more ones than are to be skipped?
    let mut position = zero.clone();
    let mut left = skip;
    for half in [16u32, 8, 4, 2, 1] {
        let window = b.bin("lshr", &word, &position);
        let low = b.bin_int("and", &window, (1i128 << half) - 1);
        let count = b.same("ctpop", &[&low]);
        let beyond = b.icmp("uge", &left, &count);
        let rest = b.sub(&left, &count);
        left = b.select(&beyond, &rest, &left);
        let further = b.bin_int("add", &position, i128::from(half));
        position = b.select(&beyond, &further, &position);
        // Only out of range when nothing is found; keeps the next shift defined.
        position = b.bin_int("and", &position, 31);
    }
    let top = Builder::int(ty, 31);
    let mirrored = b.sub(&top, &position);
    let position = b.select(&is_down, &mirrored, &position);
    b.select(&found, &position, &ones)
}

/// `szext.{clamp,wrap}.{u32,s32} d, a, n`
pub fn szext(b: &mut Builder, int: Int, wrap: bool, args: &[Val]) -> Val {
    let a = &args[0];
    let n = if wrap {
        b.bin_int("and", &args[1], 31)
    } else {
        let width = Builder::int(args[1].ty, 32);
        b.same("umin", &[&args[1], &width])
    };
    if !int.signed {
        let mask = low_mask(b, a, &n);
        return b.and(a, &mask);
    }
    let width = Builder::int(n.ty, 32);
    let spare = b.sub(&width, &n);
    let top = shl(b, a, &spare);
    shr(b, true, &top, &spare)
}

/// `bmsk.{clamp,wrap}.b32 d, pos, len`
pub fn bmsk(b: &mut Builder, wrap: bool, args: &[Val]) -> Val {
    let (pos, len) = if wrap {
        (b.bin_int("and", &args[0], 31), b.bin_int("and", &args[1], 31))
    } else {
        (args[0].clone(), args[1].clone())
    };
    let mask = low_mask(b, &args[0], &len);
    shl(b, &mask, &pos)
}
