//! Logic and shifts.

use ptx::ast::{OperandKind, Type};

use super::function::Lowerer;
use super::instruction::{ALL, Failure, Instr, Lower, fail, int, register_ty};
use crate::ir::{Bool, Cmp, IntBin, IntUn, Op, PrmtMode, Ty};

type L<'l, 'i, 'a> = Lowerer<'l, 'i, 'a>;
type I<'i, 'a> = Instr<'i, 'a>;

/// `and.type d, a, b`
pub(super) fn and<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    binary(l, i, Bool::And, IntBin::And)
}

/// `or.type d, a, b`
pub(super) fn or<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    binary(l, i, Bool::Or, IntBin::Or)
}

/// `xor.type d, a, b`
pub(super) fn xor<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    binary(l, i, Bool::Xor, IntBin::Xor)
}

fn binary<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>, predicates: Bool, bits: IntBin) -> Lower {
    let ty = i.ty()?;
    i.done()?;
    let [d, a, b] = i.operands()?;
    let args = [l.value(a, ty)?, l.value(b, ty)?];
    let op = match (ty, int(ty)) {
        (Type::Pred, _) => Op::Bool(predicates),
        (_, Some(int)) if int.bits >= 16 => Op::Int(bits, int),
        _ => return Err(Failure::Unsupported),
    };
    let result = l.b.emit1(op, &args, register_ty(ty));
    l.write(d, result)
}

/// `not.type d, a`
pub(super) fn not<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    let ty = i.ty()?;
    i.done()?;
    let [d, a] = i.operands()?;
    let a = l.value(a, ty)?;
    let op = match (ty, int(ty)) {
        (Type::Pred, _) => Op::Not,
        (_, Some(int)) if int.bits >= 16 => Op::IntUn(IntUn::Not, int),
        _ => return Err(Failure::Unsupported),
    };
    let result = l.b.emit1(op, &[a], register_ty(ty));
    l.write(d, result)
}

/// `cnot.type d, a`: 1 if a is 0, else 0.
pub(super) fn cnot<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    let (ty, int) = i.int(ALL)?;
    i.done()?;
    let [d, a] = i.operands()?;
    let a = l.value(a, ty)?;
    let zero = l.b.constant(register_ty(ty), 0);
    let is_zero = l.b.emit1(Op::Icmp(Cmp::Eq, int), &[a, zero], Ty::Pred);
    let result = l.b.emit1(Op::Zext, &[is_zero], register_ty(ty));
    l.write(d, result)
}

/// `lop3.b32 d, a, b, c, table`, `lop3.{or,and}.b32 d|p, a, b, c, table, q`
pub(super) fn lop3<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    let combination = i.take_one(&[("or", Bool::Or), ("and", Bool::And)]);
    i.need_one(&[("b32", ())])?;
    i.done()?;
    let table = i.operand(4)?;
    let OperandKind::Expression(expression) = &table.kind else {
        return fail(table.span, "the table of 'lop3' is a constant");
    };
    let Some(bits) = expression.constant().ok().and_then(ptx::Constant::integer) else {
        return fail(table.span, "the table of 'lop3' is a constant");
    };
    let Ok(bits) = u8::try_from(bits) else { return fail(table.span, "the table of 'lop3' has 8 bits") };
    let args = [
        l.value(i.operand(1)?, Type::B32)?,
        l.value(i.operand(2)?, Type::B32)?,
        l.value(i.operand(3)?, Type::B32)?,
    ];
    let result = l.b.emit1(Op::Lop3(bits), &args, Ty::B32);
    let Some(combination) = combination else {
        let [d, ..] = i.operands::<5>()?;
        return l.write(d, result);
    };
    let [d, .., q] = i.operands::<6>()?;
    let OperandKind::Pair(d, p) = &d.kind else { return fail(d.span, "expected 'd|p'") };
    let q = l.predicate(q)?;
    let zero = l.b.constant(Ty::B32, 0);
    let is_set = l.b.emit1(Op::Icmp(Cmp::Ne, crate::ir::U32), &[result, zero], Ty::Pred);
    let predicate = l.b.emit1(Op::Bool(combination), &[is_set, q], Ty::Pred);
    l.write(d, result)?;
    l.write(p, predicate)
}

/// `shl.b{16,32,64} d, a, b`: the operation clamps the count.
pub(super) fn shl<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    shift(l, i, IntBin::Shl)
}

/// `shr.type d, a, b`: fills with the sign for signed types.
pub(super) fn shr<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    shift(l, i, IntBin::Shr)
}

fn shift<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>, op: IntBin) -> Lower {
    let (ty, int) = i.int(ALL)?;
    i.done()?;
    let [d, a, count] = i.operands()?;
    let args = [l.value(a, ty)?, l.value(count, Type::U32)?];
    let result = l.b.emit1(Op::Int(op, int), &args, register_ty(ty));
    l.write(d, result)
}

/// `shf.{l,r}.{clamp,wrap}.b32 d, low, high, count`
pub(super) fn shf<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    let left = i.need_one(&[("l", true), ("r", false)])?;
    let wrap = i.need_one(&[("clamp", false), ("wrap", true)])?;
    i.need_one(&[("b32", ())])?;
    i.done()?;
    let [d, low, high, count] = i.operands()?;
    let args = [l.value(low, Type::B32)?, l.value(high, Type::B32)?, l.value(count, Type::U32)?];
    let result = l.b.emit1(Op::Shf { left, wrap }, &args, Ty::B32);
    l.write(d, result)
}

/// `prmt.b32{.mode} d, a, b, c`
pub(super) fn prmt<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    let mode = i.take_one(&[
        ("f4e", PrmtMode::F4e),
        ("b4e", PrmtMode::B4e),
        ("rc8", PrmtMode::Rc8),
        ("ecl", PrmtMode::Ecl),
        ("ecr", PrmtMode::Ecr),
        ("rc16", PrmtMode::Rc16),
    ]);
    i.need_one(&[("b32", ())])?;
    i.done()?;
    let [d, a, b, c] = i.operands()?;
    let args = [l.value(a, Type::B32)?, l.value(b, Type::B32)?, l.value(c, Type::B32)?];
    let result = l.b.emit1(Op::Prmt(mode.unwrap_or(PrmtMode::Index)), &args, Ty::B32);
    l.write(d, result)
}
