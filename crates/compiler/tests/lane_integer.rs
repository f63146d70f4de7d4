//! Integer, bit and packing operations against the PTX manual's definitions.

mod lane_support;

use compiler::ir::*;
use lane_support::Suite;

fn sign(value: u128, bits: u32) -> i128 {
    ((value << (128 - bits)) as i128) >> (128 - bits)
}

fn cut(value: i128, bits: u32) -> u128 {
    if bits == 128 { value as u128 } else { value as u128 & ((1 << bits) - 1) }
}

fn read(int: Int, value: u128) -> i128 {
    if int.signed { sign(value, u32::from(int.bits)) } else { value as i128 }
}

const INTS: [Int; 6] = [U16, S16, U32, S32, U64, S64];

fn range(int: Int) -> (i128, i128) {
    let bits = u32::from(int.bits);
    if int.signed { (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1) } else { (0, (1i128 << bits) - 1) }
}

#[test]
fn integer_arithmetic() {
    let mut suite = Suite::default();
    for int in INTS {
        let bits = u32::from(int.bits);
        let ty = Ty::of_bits(bits);
        let mut bin = |name: &str, op: IntBin, f: fn(i128, i128, Int) -> i128| {
            suite.rust(format!("{name} {int:?}"), Op::Int(op, int), &[ty, ty], &[ty], move |a| {
                vec![cut(f(read(int, a[0]), read(int, a[1]), int), bits)]
            });
        };
        bin("add", IntBin::Add, |a, b, _| a + b);
        bin("sub", IntBin::Sub, |a, b, _| a - b);
        bin("mul", IntBin::Mul, |a, b, _| a.wrapping_mul(b));
        bin("mul.hi", IntBin::MulHi, |a, b, int| {
            if int.bits == 64 && !int.signed {
                ((a as u128 * b as u128) >> 64) as i128
            } else {
                (a * b) >> int.bits
            }
        });
        bin("div", IntBin::Div, |a, b, _| if b == 0 { -1 } else { a / b });
        bin("rem", IntBin::Rem, |a, b, _| if b == 0 { -1 } else { a % b });
        bin("min", IntBin::Min, |a, b, _| a.min(b));
        bin("max", IntBin::Max, |a, b, _| a.max(b));
        bin("and", IntBin::And, |a, b, _| a & b);
        bin("or", IntBin::Or, |a, b, _| a | b);
        bin("xor", IntBin::Xor, |a, b, _| a ^ b);
        bin("add.sat", IntBin::AddSat, |a, b, int| (a + b).clamp(range(int).0, range(int).1));
        bin("sub.sat", IntBin::SubSat, |a, b, int| (a - b).clamp(range(int).0, range(int).1));
        suite.rust(format!("shl {int:?}"), Op::Int(IntBin::Shl, int), &[ty, Ty::B32], &[ty], move |a| {
            vec![if a[1] >= u128::from(bits) { 0 } else { cut((a[0] << a[1]) as i128, bits) }]
        });
        suite.rust(format!("shr {int:?}"), Op::Int(IntBin::Shr, int), &[ty, Ty::B32], &[ty], move |a| {
            vec![cut(read(int, a[0]) >> a[1].min(u128::from(bits)), bits)]
        });
        let mut un = |name: &str, op: IntUn, to: Ty, f: fn(i128, Int) -> i128| {
            suite.rust(format!("{name} {int:?}"), Op::IntUn(op, int), &[ty], &[to], move |a| {
                vec![cut(f(read(int, a[0]), int), to.bits())]
            });
        };
        un("neg", IntUn::Neg, ty, |a, _| -a);
        un("not", IntUn::Not, ty, |a, _| !a);
        un("abs", IntUn::Abs, ty, |a, int| if int.signed { a.abs() } else { a });
        un("popc", IntUn::Popc, Ty::B32, |a, int| i128::from(cut(a, int.bits.into()).count_ones()));
        un("clz", IntUn::Clz, Ty::B32, |a, int| {
            let bits = u32::from(int.bits);
            i128::from(cut(a, bits).leading_zeros() - (128 - bits))
        });
        un("brev", IntUn::Brev, ty, |a, int| {
            let bits = u32::from(int.bits);
            (cut(a, bits).reverse_bits() >> (128 - bits)) as i128
        });
        un("bfind", IntUn::Bfind { shiftamt: false }, Ty::B32, |a, int| {
            let a = if a < 0 { !a } else { a };
            (0..i128::from(int.bits)).rev().find(|i| a >> i & 1 == 1).unwrap_or(-1)
        });
        un("bfind.shiftamt", IntUn::Bfind { shiftamt: true }, Ty::B32, |a, int| {
            let a = if a < 0 { !a } else { a };
            let msb = i128::from(int.bits) - 1;
            (0..=msb).rev().find(|i| a >> i & 1 == 1).map_or(-1, |i| msb - i)
        });
        let wide = Ty::of_bits(2 * bits);
        suite.rust(format!("mul.wide {int:?}"), Op::MulWide(int), &[ty, ty], &[wide], move |a| {
            vec![cut(read(int, a[0]).wrapping_mul(read(int, a[1])), 2 * bits)]
        });
        suite.rust(format!("sad {int:?}"), Op::Sad(int), &[ty, ty, ty], &[ty], move |a| {
            vec![cut(a[2] as i128 + (read(int, a[0]) - read(int, a[1])).abs(), bits)]
        });
        if bits >= 32 {
            suite.rust(format!("add.cc {int:?}"), Op::AddCarry(int), &[ty, ty], &[ty, Ty::Pred], move |a| {
                vec![cut((a[0] + a[1]) as i128, bits), (a[0] + a[1]) >> bits]
            });
            suite.rust(
                format!("addc {int:?}"),
                Op::AddCarry(int),
                &[ty, ty, Ty::Pred],
                &[ty, Ty::Pred],
                move |a| vec![cut((a[0] + a[1] + a[2]) as i128, bits), (a[0] + a[1] + a[2]) >> bits],
            );
            suite.rust(format!("sub.cc {int:?}"), Op::SubCarry(int), &[ty, ty], &[ty, Ty::Pred], move |a| {
                vec![cut(a[0] as i128 - a[1] as i128, bits), u128::from(a[0] >= a[1])]
            });
            suite.rust(
                format!("subc {int:?}"),
                Op::SubCarry(int),
                &[ty, ty, Ty::Pred],
                &[ty, Ty::Pred],
                move |a| {
                    vec![
                        cut(a[0] as i128 - a[1] as i128 - 1 + a[2] as i128, bits),
                        u128::from(a[0] + a[2] > a[1]),
                    ]
                },
            );
        }
    }
    for int in [U32, S32] {
        let low =
            move |value: u128| if int.signed { sign(value, 24) } else { cut(value as i128, 24) as i128 };
        let two = [Ty::B32, Ty::B32];
        suite.rust(format!("mul24.lo {int:?}"), Op::Int(IntBin::Mul24Lo, int), &two, &[Ty::B32], move |a| {
            vec![cut(low(a[0] & 0xff_ffff) * low(a[1] & 0xff_ffff), 32)]
        });
        suite.rust(format!("mul24.hi {int:?}"), Op::Int(IntBin::Mul24Hi, int), &two, &[Ty::B32], move |a| {
            vec![cut((low(a[0] & 0xff_ffff) * low(a[1] & 0xff_ffff)) >> 16, 32)]
        });
    }
    for (a_signed, b_signed) in [(false, false), (false, true), (true, false), (true, true)] {
        let three = [Ty::B32; 3];
        let part = |value: u128, bits: u32, index: u32, signed: bool| {
            let part = cut((value >> (bits * index)) as i128, bits);
            if signed { sign(part, bits) } else { part as i128 }
        };
        suite.rust(
            format!("dp4a {a_signed} {b_signed}"),
            Op::Dp4a { a_signed, b_signed },
            &three,
            &[Ty::B32],
            move |a| {
                let sum: i128 = (0..4).map(|i| part(a[0], 8, i, a_signed) * part(a[1], 8, i, b_signed)).sum();
                vec![cut(sum + a[2] as i128, 32)]
            },
        );
        for hi in [false, true] {
            let op = Op::Dp2a { a_signed, b_signed, hi };
            suite.rust(format!("dp2a {a_signed} {b_signed} {hi}"), op, &three, &[Ty::B32], move |a| {
                let first = if hi { 2 } else { 0 };
                let sum: i128 =
                    (0..2).map(|i| part(a[0], 16, i, a_signed) * part(a[1], 8, first + i, b_signed)).sum();
                vec![cut(sum + a[2] as i128, 32)]
            });
        }
    }
    suite.check("integer");
}

/// What counts of a field's position or length: 8 bits, as the manual says, but on GPUs all bits for fields of 64.
fn extent(value: u128, bits: u32) -> u128 {
    if bits == 32 { value & 0xff } else { value }
}

/// `bfe`, bit by bit as the manual writes it.
fn bfe(a: u128, pos: u128, len: u128, int: Int) -> u128 {
    let msb = u128::from(int.bits) - 1;
    let (pos, len) = (extent(pos, int.bits.into()), extent(len, int.bits.into()));
    let sbit = if !int.signed || len == 0 { 0 } else { a >> (pos + len - 1).min(msb) & 1 };
    (0..=msb).fold(0, |d, i| {
        let bit = if i < len && pos + i <= msb { a >> (pos + i) & 1 } else { sbit };
        d | bit << i
    })
}

fn bfi(a: u128, b: u128, pos: u128, len: u128, bits: u32) -> u128 {
    let msb = u128::from(bits) - 1;
    let (pos, len) = (extent(pos, bits), extent(len, bits));
    let mut f = b;
    for i in 0..len.min(bits.into()) {
        if pos + i <= msb {
            f = f & !(1 << (pos + i)) | (a >> i & 1) << (pos + i);
        }
    }
    f
}

fn fns(mask: u32, base: u32, offset: i32) -> u32 {
    if offset == 0 {
        return if base < 32 && mask >> base & 1 == 1 { base } else { u32::MAX };
    }
    let (mut pos, mut count) = (i64::from(base), i64::from(offset).abs() - 1);
    while (0..32).contains(&pos) {
        if mask >> pos & 1 == 1 {
            if count == 0 {
                return pos as u32;
            }
            count -= 1;
        }
        pos += i64::from(offset.signum());
    }
    u32::MAX
}

fn bmsk(a: u32, b: u32, wrap: bool) -> u32 {
    let a1 = a & 31;
    let mut mask0 = u32::MAX << a1;
    let b1 = b & 31;
    let sum = a1 + b1;
    let mut mask1 = u32::MAX.checked_shl(sum).unwrap_or(0);
    let mut bit_position_overflow = false;
    let mut bit_width_overflow = false;
    if !wrap {
        if a >= 32 {
            bit_position_overflow = true;
            mask0 = 0;
        }
        if b >= 32 {
            bit_width_overflow = true;
        }
    }
    if sum >= 32 || bit_position_overflow || bit_width_overflow {
        mask1 = 0;
    } else if b1 == 0 {
        return 0;
    }
    mask0 & !mask1
}

fn prmt(mode: PrmtMode, a: u128, b: u128, c: u128) -> u128 {
    let bytes: Vec<u128> = (0..8).map(|i| (a | b << 32) >> (8 * i) & 0xff).collect();
    let low = (c & 3) as usize;
    let pick = |order: [usize; 4]| (0..4).fold(0, |d, i| d | bytes[order[i]] << (8 * i));
    match mode {
        PrmtMode::Index => (0..4).fold(0, |d, i| {
            let nibble = c >> (4 * i) & 0xf;
            let byte = bytes[(nibble & 7) as usize];
            let byte = if nibble & 8 == 0 { byte } else { (byte >> 7) * 0xff };
            d | byte << (8 * i)
        }),
        PrmtMode::F4e => pick([low, low + 1, low + 2, low + 3]),
        PrmtMode::B4e => pick([low, (low + 7) % 8, (low + 6) % 8, (low + 5) % 8]),
        PrmtMode::Rc8 => pick([low; 4]),
        PrmtMode::Ecl => pick([low, low.max(1), low.max(2), 3]),
        PrmtMode::Ecr => pick([0, low.min(1), low.min(2), low]),
        PrmtMode::Rc16 => pick([(low & 1) * 2, (low & 1) * 2 + 1, (low & 1) * 2, (low & 1) * 2 + 1]),
    }
}

#[test]
fn bit_fields_and_permutations() {
    let mut suite = Suite::default();
    for int in [U32, S32, U64, S64] {
        let bits = u32::from(int.bits);
        let ty = Ty::of_bits(bits);
        suite.rust(format!("bfe {int:?}"), Op::Bfe(int), &[ty, Ty::B32, Ty::B32], &[ty], move |a| {
            vec![bfe(a[0], a[1], a[2], int)]
        });
        suite.rust(format!("bfi {int:?}"), Op::Bfi(int), &[ty, ty, Ty::B32, Ty::B32], &[ty], move |a| {
            vec![bfi(a[0], a[1], a[2], a[3], bits)]
        });
    }
    for table in 0..=255u8 {
        suite.rust(format!("lop3 {table:#x}"), Op::Lop3(table), &[Ty::B32; 3], &[Ty::B32], move |a| {
            vec![(0..32).fold(0, |d, i| {
                let index = (a[0] >> i & 1) << 2 | (a[1] >> i & 1) << 1 | a[2] >> i & 1;
                d | u128::from(table >> index & 1) << i
            })]
        });
    }
    let three = [Ty::B32; 3];
    for wrap in [false, true] {
        let count = move |c: u128| if wrap { c & 31 } else { c.min(32) };
        suite.rust(
            format!("shf.l wrap={wrap}"),
            Op::Shf { left: true, wrap },
            &three,
            &[Ty::B32],
            move |a| {
                let n = count(a[2]);
                vec![cut(((a[1] << 32 | a[0]) << n >> 32) as i128, 32)]
            },
        );
        suite.rust(
            format!("shf.r wrap={wrap}"),
            Op::Shf { left: false, wrap },
            &three,
            &[Ty::B32],
            move |a| {
                let n = count(a[2]);
                vec![cut(((a[1] << 32 | a[0]) >> n) as i128, 32)]
            },
        );
        suite.rust(format!("bmsk wrap={wrap}"), Op::Bmsk { wrap }, &[Ty::B32; 2], &[Ty::B32], move |a| {
            vec![u128::from(bmsk(a[0] as u32, a[1] as u32, wrap))]
        });
        for int in [U32, S32] {
            let op = Op::Szext { int, wrap };
            suite.rust(format!("szext {int:?} wrap={wrap}"), op, &[Ty::B32; 2], &[Ty::B32], move |a| {
                let n = if wrap { a[1] & 31 } else { a[1].min(32) } as u32;
                let low = if n == 0 { 0 } else { cut(a[0] as i128, n) };
                vec![if n > 0 && int.signed { cut(sign(low, n), 32) } else { low }]
            });
        }
    }
    use PrmtMode::*;
    for mode in [Index, F4e, B4e, Rc8, Ecl, Ecr, Rc16] {
        suite.rust(format!("prmt {mode:?}"), Op::Prmt(mode), &three, &[Ty::B32], move |a| {
            vec![prmt(mode, a[0], a[1], a[2])]
        });
    }
    suite.rust("fns", Op::Fns, &three, &[Ty::B32], |a| {
        vec![u128::from(fns(a[0] as u32, a[1] as u32, a[2] as u32 as i32))]
    });
    // Mostly small positions, so that something is found.
    let last = suite.cases.last_mut().unwrap();
    for row in last.rows.iter_mut().step_by(2) {
        row[1] &= 31;
        row[2] = cut(sign(row[2] & 0x1f, 5), 32);
    }
    suite.check("bits");
}

#[test]
fn packing_and_comparing() {
    let mut suite = Suite::default();
    suite.rust("pack 2x32", Op::Pack, &[Ty::B32; 2], &[Ty::B64], |a| vec![a[0] | a[1] << 32]);
    suite.rust("pack 4x16", Op::Pack, &[Ty::B16; 4], &[Ty::B64], |a| {
        vec![a[0] | a[1] << 16 | a[2] << 32 | a[3] << 48]
    });
    suite.rust("pack 2x64", Op::Pack, &[Ty::B64; 2], &[Ty::B128], |a| vec![a[0] | a[1] << 64]);
    suite.rust("unpack 64", Op::Unpack, &[Ty::B64], &[Ty::B32; 2], |a| vec![a[0] & 0xffff_ffff, a[0] >> 32]);
    suite.rust("unpack 128", Op::Unpack, &[Ty::B128], &[Ty::B64; 2], |a| {
        vec![cut(a[0] as i128, 64), a[0] >> 64]
    });
    suite.rust("unpack f32", Op::Unpack, &[Ty::B64], &[Ty::F32; 2], |a| vec![a[0] & 0xffff_ffff, a[0] >> 32]);
    suite.rust("zext", Op::Zext, &[Ty::Pred], &[Ty::B32], |a| vec![a[0]]);
    suite.rust("sext", Op::Sext, &[Ty::B16], &[Ty::B64], |a| vec![cut(sign(a[0], 16), 64)]);
    suite.rust("trunc", Op::Trunc, &[Ty::B64], &[Ty::B16], |a| vec![a[0] & 0xffff]);
    suite.rust("select", Op::Select, &[Ty::Pred, Ty::B32, Ty::B32], &[Ty::B32], |a| {
        vec![if a[0] == 1 { a[1] } else { a[2] }]
    });
    suite.rust("not", Op::Not, &[Ty::Pred], &[Ty::Pred], |a| vec![1 - a[0]]);
    for int in INTS {
        let ty = Ty::of_bits(int.bits.into());
        for (cmp, holds) in comparisons() {
            suite.rust(
                format!("icmp {cmp:?} {int:?}"),
                Op::Icmp(cmp, int),
                &[ty, ty],
                &[Ty::Pred],
                move |a| vec![u128::from(holds(read(int, a[0]).cmp(&read(int, a[1]))))],
            );
        }
        for to in INTS {
            for sat in [false, true] {
                let mode = FloatMode { sat, ..FloatMode::default() };
                let op = Op::Cvt { from: Num::Int(int), to: Num::Int(to), mode };
                let to_ty = Ty::of_bits(to.bits.into());
                suite.rust(format!("cvt {int:?} to {to:?} sat={sat}"), op, &[ty], &[to_ty], move |a| {
                    let value = read(int, a[0]);
                    let (least, most) = range(to);
                    vec![cut(if sat { value.clamp(least, most) } else { value }, to.bits.into())]
                });
            }
        }
    }
    for signed in [false, true] {
        let byte = Int { bits: 8, signed };
        let op = Op::Cvt {
            from: Num::Int(S32),
            to: Num::Int(byte),
            mode: FloatMode { sat: true, ..FloatMode::default() },
        };
        suite.rust(format!("cvt s32 to 8 bits {signed}"), op, &[Ty::B32], &[Ty::B32], move |a| {
            let (least, most) = range(byte);
            vec![cut(sign(a[0], 32).clamp(least, most), 32)]
        });
    }
    suite.check("pack");
}

/// Whether an order of two integers makes the comparison true.
type Holds = fn(std::cmp::Ordering) -> bool;

fn comparisons() -> [(Cmp, Holds); 6] {
    [
        (Cmp::Eq, |o| o.is_eq()),
        (Cmp::Ne, |o| o.is_ne()),
        (Cmp::Lt, |o| o.is_lt()),
        (Cmp::Le, |o| o.is_le()),
        (Cmp::Gt, |o| o.is_gt()),
        (Cmp::Ge, |o| o.is_ge()),
    ]
}
