//! Integer arithmetic, extended-precision arithmetic, bit fields, dot products. The opcodes that floats share (`add`,
//! `mul`, `min`, …) start here and go on in `float` when the type says so.

use ptx::ast::{Operand, Type};

use super::float;
use super::function::Lowerer;
use super::instruction::{ALL, Failure, Instr, Lower, WIDE, WORD, fail, int, register_ty};
use super::operand::immediate;
use crate::ir::{FloatBin, FloatUn, Int, IntBin, IntUn, Op, S16, Ty, U16, Value};

type L<'l, 'i, 'a> = Lowerer<'l, 'i, 'a>;
type I<'i, 'a> = Instr<'i, 'a>;

/// Low or high half of a product, or all of it.
#[derive(Clone, Copy, PartialEq)]
enum Half {
    Lo,
    Hi,
    Wide,
}

const HALVES: &[(&str, Half)] = &[("lo", Half::Lo), ("hi", Half::Hi), ("wide", Half::Wide)];

/// `add{.sat}.type d, a, b`, `add.cc`, `add.u16x2`, and of floats.
pub(super) fn add<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    if is_float(i) {
        return float::binary(l, i, FloatBin::Add);
    }
    if i.take("cc") {
        return add_carry(l, i, false, true);
    }
    if i.take("sat") { binary(l, i, IntBin::AddSat, WORD) } else { binary(l, i, IntBin::Add, ALL) }
}

/// `sub{.sat}.type d, a, b`, `sub.cc`, and of floats.
pub(super) fn sub<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    if is_float(i) {
        return float::binary(l, i, FloatBin::Sub);
    }
    if i.take("cc") {
        return sub_carry(l, i, false, true);
    }
    if i.take("sat") { binary(l, i, IntBin::SubSat, WORD) } else { binary(l, i, IntBin::Sub, ALL) }
}

/// `addc{.cc}.type d, a, b`: adds the carry flag.
pub(super) fn addc<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    let sets = i.take("cc");
    add_carry(l, i, true, sets)
}

/// `subc{.cc}.type d, a, b`: subtracts one more where the carry flag is 0.
pub(super) fn subc<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    let sets = i.take("cc");
    sub_carry(l, i, true, sets)
}

fn add_carry<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>, takes: bool, sets: bool) -> Lower {
    let (ty, int) = i.int(WIDE)?;
    i.done()?;
    let [d, a, b] = i.operands()?;
    let (a, b) = (l.value(a, ty)?, l.value(b, ty)?);
    let sum = l.with_carry(Op::AddCarry(int), a, b, takes, sets);
    l.write(d, sum)
}

fn sub_carry<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>, takes: bool, sets: bool) -> Lower {
    let (ty, int) = i.int(WIDE)?;
    i.done()?;
    let [d, a, b] = i.operands()?;
    let (a, b) = (l.value(a, ty)?, l.value(b, ty)?);
    let difference = l.with_carry(Op::SubCarry(int), a, b, takes, sets);
    l.write(d, difference)
}

impl Lowerer<'_, '_, '_> {
    fn with_carry(&mut self, op: Op, a: Value, b: Value, takes: bool, sets: bool) -> Value {
        let flag = match self.carry {
            Some(flag) => flag,
            None => *self.carry.insert(self.b.new_var(Ty::Pred)),
        };
        let mut args = vec![a, b];
        if takes {
            args.push(self.b.read(flag));
        }
        let ty = self.b.ty(a);
        let results = self.b.emit(op, &args, &[ty, Ty::Pred]);
        if sets {
            self.write_var(flag, results[1]);
        }
        results[0]
    }

    fn int2(&mut self, op: IntBin, int: Int, a: Value, b: Value) -> Value {
        self.b.emit1(Op::Int(op, int), &[a, b], Ty::of_bits(u32::from(int.bits)))
    }
}

/// `mul{.hi,.lo,.wide}.type d, a, b`, and of floats.
pub(super) fn mul<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    if is_float(i) {
        return float::binary(l, i, FloatBin::Mul);
    }
    let half = i.need_one(HALVES)?;
    let (ty, int) = i.int(ALL)?;
    i.done()?;
    let [d, a, b] = i.operands()?;
    let (a, b) = (l.value(a, ty)?, l.value(b, ty)?);
    let product = product(l, half, int, a, b)?;
    l.write(d, product)
}

fn product(l: &mut L<'_, '_, '_>, half: Half, int: Int, a: Value, b: Value) -> Lower<Value> {
    Ok(match half {
        Half::Lo => l.int2(IntBin::Mul, int, a, b),
        Half::Hi => l.int2(IntBin::MulHi, int, a, b),
        Half::Wide if int.bits <= 32 => {
            l.b.emit1(Op::MulWide(int), &[a, b], Ty::of_bits(u32::from(int.bits) * 2))
        }
        Half::Wide => return Err(Failure::Unsupported),
    })
}

/// `mad{.hi,.lo,.wide}{.sat}.type d, a, b, c`, `mad.cc`, and of floats.
pub(super) fn mad<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    if is_float(i) {
        // On every target from sm_20 `mad` of floats is `fma`.
        return float::fma(l, i);
    }
    let sets = i.take("cc");
    multiply_add(l, i, false, sets)
}

/// `madc{.hi,.lo}{.cc}.type d, a, b, c`
pub(super) fn madc<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    let sets = i.take("cc");
    multiply_add(l, i, true, sets)
}

fn multiply_add<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>, takes: bool, sets: bool) -> Lower {
    let half = i.need_one(HALVES)?;
    let sat = i.take("sat");
    let (ty, int) = i.int(ALL)?;
    i.done()?;
    let [d, a, b, c] = i.operands()?;
    let (a, b) = (l.value(a, ty)?, l.value(b, ty)?);
    let sum_int = if half == Half::Wide { Int { bits: int.bits.saturating_mul(2), ..int } } else { int };
    let product = product(l, half, int, a, b)?;
    let c = l.value(c, wide_type(ty, half)?)?;
    let sum = if takes || sets {
        l.with_carry(Op::AddCarry(sum_int), product, c, takes, sets)
    } else {
        l.int2(if sat { IntBin::AddSat } else { IntBin::Add }, sum_int, product, c)
    };
    l.write(d, sum)
}

/// The type of the addend: twice as wide for `.wide`.
fn wide_type(ty: Type, half: Half) -> Lower<Type> {
    Ok(match (half, ty) {
        (Half::Wide, Type::S16) => Type::S32,
        (Half::Wide, Type::U16) => Type::U32,
        (Half::Wide, Type::S32) => Type::S64,
        (Half::Wide, Type::U32) => Type::U64,
        (Half::Wide, _) => return Err(Failure::Unsupported),
        _ => ty,
    })
}

/// `mul24{.hi,.lo}.type d, a, b`
pub(super) fn mul24<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    let op = i.need_one(&[("lo", IntBin::Mul24Lo), ("hi", IntBin::Mul24Hi)])?;
    binary(l, i, op, WORD)
}

/// `mad24{.hi,.lo}{.sat}.type d, a, b, c`
pub(super) fn mad24<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    let op = i.need_one(&[("lo", IntBin::Mul24Lo), ("hi", IntBin::Mul24Hi)])?;
    let add = if i.take("sat") { IntBin::AddSat } else { IntBin::Add };
    let (ty, int) = i.int(WORD)?;
    i.done()?;
    let [d, a, b, c] = i.operands()?;
    let (a, b, c) = (l.value(a, ty)?, l.value(b, ty)?, l.value(c, ty)?);
    let product = l.int2(op, int, a, b);
    let sum = l.int2(add, int, product, c);
    l.write(d, sum)
}

/// `div.type d, a, b`, and of floats.
pub(super) fn div<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    if is_float(i) { float::div(l, i) } else { binary(l, i, IntBin::Div, ALL) }
}

/// `rem.type d, a, b`
pub(super) fn rem<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    binary(l, i, IntBin::Rem, ALL)
}

/// `min{.relu}.type d, a, b`, and of floats.
pub(super) fn min<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    min_max(l, i, IntBin::Min)
}

/// `max{.relu}.type d, a, b`, and of floats.
pub(super) fn max<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    min_max(l, i, IntBin::Max)
}

fn min_max<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>, op: IntBin) -> Lower {
    if is_float(i) {
        return float::min_max(l, i, op == IntBin::Min);
    }
    let relu = i.take("relu");
    let ty = i.ty()?;
    if int(ty).is_some_and(|int| int.bits < 16) {
        return Err(Failure::Unsupported);
    }
    i.done()?;
    let [d, a, b] = i.operands()?;
    let (a, b) = (l.value(a, ty)?, l.value(b, ty)?);
    let result = lanes(l, ty, &[a, b], |l, int, args| {
        let result = l.int2(op, int, args[0], args[1]);
        if !relu {
            return result;
        }
        // `.relu`: negative results become zero.
        let zero = l.b.constant(Ty::of_bits(u32::from(int.bits)), 0);
        l.int2(IntBin::Max, int, result, zero)
    })?;
    l.write(d, result)
}

/// One operation on two operands of the instruction's type, in both halves if the type has two.
fn binary<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>, op: IntBin, widths: &[u8]) -> Lower {
    let ty = i.ty()?;
    if int(ty).is_some_and(|int| !widths.contains(&int.bits)) {
        return Err(Failure::Unsupported);
    }
    i.done()?;
    let [d, a, b] = i.operands()?;
    let (a, b) = (l.value(a, ty)?, l.value(b, ty)?);
    let result = lanes(l, ty, &[a, b], |l, int, args| l.int2(op, int, args[0], args[1]))?;
    l.write(d, result)
}

/// Applies `apply` to the operands, or to each half of `.u16x2` and `.s16x2` operands.
fn lanes<'l, 'i, 'a>(
    l: &mut L<'l, 'i, 'a>,
    ty: Type,
    args: &[Value],
    apply: impl Fn(&mut L<'l, 'i, 'a>, Int, &[Value]) -> Value,
) -> Lower<Value> {
    if let Some(int) = int(ty) {
        return Ok(apply(l, int, args));
    }
    let int = match ty {
        Type::U16x2 => U16,
        Type::S16x2 => S16,
        _ => return Err(Failure::Unsupported),
    };
    let halves: Vec<Vec<Value>> =
        args.iter().map(|&arg| l.b.emit(Op::Unpack, &[arg], &[Ty::B16, Ty::B16])).collect();
    let results: Vec<Value> = (0..2)
        .map(|half| {
            let args: Vec<Value> = halves.iter().map(|it| it[half]).collect();
            apply(l, int, &args)
        })
        .collect();
    Ok(l.b.emit1(Op::Pack, &results, Ty::B32))
}

/// `abs.type d, a`
pub(super) fn abs<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    if is_float(i) { float::unary(l, i, FloatUn::Abs) } else { unary(l, i, IntUn::Abs) }
}

/// `neg.type d, a`
pub(super) fn neg<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    if is_float(i) { float::unary(l, i, FloatUn::Neg) } else { unary(l, i, IntUn::Neg) }
}

fn unary<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>, op: IntUn) -> Lower {
    let widths = if matches!(op, IntUn::Neg | IntUn::Abs) { ALL } else { WIDE };
    let (ty, int) = i.int(widths)?;
    i.done()?;
    let [d, a] = i.operands()?;
    let a = l.value(a, ty)?;
    let result = match op {
        IntUn::Popc | IntUn::Clz | IntUn::Bfind { .. } => Ty::B32,
        _ => register_ty(ty),
    };
    let value = l.b.emit1(Op::IntUn(op, int), &[a], result);
    l.write(d, value)
}

/// `popc.type d, a`
pub(super) fn popc<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    unary(l, i, IntUn::Popc)
}

/// `clz.type d, a`
pub(super) fn clz<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    unary(l, i, IntUn::Clz)
}

/// `brev.type d, a`
pub(super) fn brev<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    unary(l, i, IntUn::Brev)
}

/// `bfind{.shiftamt}.type d, a`
pub(super) fn bfind<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    let shiftamt = i.take("shiftamt");
    unary(l, i, IntUn::Bfind { shiftamt })
}

/// `sad.type d, a, b, c`
pub(super) fn sad<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    let (ty, int) = i.int(ALL)?;
    i.done()?;
    let [d, a, b, c] = i.operands()?;
    let args = [l.value(a, ty)?, l.value(b, ty)?, l.value(c, ty)?];
    let result = l.b.emit1(Op::Sad(int), &args, register_ty(ty));
    l.write(d, result)
}

/// A position or a length that is a number has 8 bits, as NVIDIA's assembler demands.
fn check_extent(operand: &Operand<'_>) -> Lower {
    match immediate(operand) {
        Some(value @ 256..) => fail(operand.span, format!("{value} is not within 0 and 255")),
        _ => Ok(()),
    }
}

/// `bfe.type d, a, pos, len`
pub(super) fn bfe<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    let (ty, int) = i.int(WIDE)?;
    i.done()?;
    let [d, a, pos, len] = i.operands()?;
    check_extent(pos)?;
    check_extent(len)?;
    let args = [l.value(a, ty)?, l.value(pos, Type::U32)?, l.value(len, Type::U32)?];
    let result = l.b.emit1(Op::Bfe(int), &args, register_ty(ty));
    l.write(d, result)
}

/// `bfi.type d, insert, base, pos, len`
pub(super) fn bfi<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    let (ty, int) = i.int(WIDE)?;
    i.done()?;
    let [d, a, b, pos, len] = i.operands()?;
    check_extent(pos)?;
    check_extent(len)?;
    let args = [l.value(a, ty)?, l.value(b, ty)?, l.value(pos, Type::U32)?, l.value(len, Type::U32)?];
    let result = l.b.emit1(Op::Bfi(int), &args, register_ty(ty));
    l.write(d, result)
}

/// `fns.b32 d, mask, base, offset`
pub(super) fn fns<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    i.need_one(&[("b32", ())])?;
    i.done()?;
    let [d, mask, base, offset] = i.operands()?;
    let args = [l.value(mask, Type::B32)?, l.value(base, Type::U32)?, l.value(offset, Type::S32)?];
    let result = l.b.emit1(Op::Fns, &args, Ty::B32);
    l.write(d, result)
}

fn signedness(i: &mut I<'_, '_>) -> Lower<bool> {
    match i.ty()? {
        Type::U32 => Ok(false),
        Type::S32 => Ok(true),
        _ => Err(Failure::Unsupported),
    }
}

/// `dp4a.atype.btype d, a, b, c`
pub(super) fn dp4a<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    let (a_signed, b_signed) = (signedness(i)?, signedness(i)?);
    dot(l, i, Op::Dp4a { a_signed, b_signed })
}

/// `dp2a{.lo,.hi}.atype.btype d, a, b, c`
pub(super) fn dp2a<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    let hi = i.need_one(&[("lo", false), ("hi", true)])?;
    let (a_signed, b_signed) = (signedness(i)?, signedness(i)?);
    dot(l, i, Op::Dp2a { a_signed, b_signed, hi })
}

fn dot<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>, op: Op) -> Lower {
    i.done()?;
    let [d, a, b, c] = i.operands()?;
    let args = [l.value(a, Type::B32)?, l.value(b, Type::B32)?, l.value(c, Type::B32)?];
    let result = l.b.emit1(op, &args, Ty::B32);
    l.write(d, result)
}

/// `szext{.clamp,.wrap}.type d, a, n`
pub(super) fn szext<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    let wrap = i.need_one(&[("clamp", false), ("wrap", true)])?;
    let (ty, int) = i.int(WORD)?;
    i.done()?;
    let [d, a, n] = i.operands()?;
    let args = [l.value(a, ty)?, l.value(n, Type::U32)?];
    let result = l.b.emit1(Op::Szext { int, wrap }, &args, Ty::B32);
    l.write(d, result)
}

/// `bmsk{.clamp,.wrap}.b32 d, pos, len`
pub(super) fn bmsk<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    let wrap = i.need_one(&[("clamp", false), ("wrap", true)])?;
    i.need_one(&[("b32", ())])?;
    i.done()?;
    let [d, pos, len] = i.operands()?;
    let args = [l.value(pos, Type::U32)?, l.value(len, Type::U32)?];
    let result = l.b.emit1(Op::Bmsk { wrap }, &args, Ty::B32);
    l.write(d, result)
}

fn is_float(i: &I<'_, '_>) -> bool {
    i.peek_ty().is_some_and(|ty| ty == Type::F32x2 || super::instruction::float(ty).is_some())
}
