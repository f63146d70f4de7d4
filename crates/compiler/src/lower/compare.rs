//! Comparison and selection.

use ptx::ast::{Operand, OperandKind, Type};

use super::function::Lowerer;
use super::instruction::{Failure, Instr, Lower, float, int, register_ty};
use crate::ir::{Bool, Cmp, Float, FloatCmp, Op, Ty, Value};

type L<'l, 'i, 'a> = Lowerer<'l, 'i, 'a>;
type I<'i, 'a> = Instr<'i, 'a>;

/// Name, comparison, and whether it is the unordered form of floats or the unsigned form of integers.
#[derive(Clone, Copy)]
enum Comparison {
    Plain(Cmp),
    /// `lo`, `ls`, `hi`, `hs`
    Unsigned(Cmp),
    Unordered(Cmp),
    Num,
    Nan,
}

const COMPARISONS: &[(&str, Comparison)] = &[
    ("eq", Comparison::Plain(Cmp::Eq)),
    ("ne", Comparison::Plain(Cmp::Ne)),
    ("lt", Comparison::Plain(Cmp::Lt)),
    ("le", Comparison::Plain(Cmp::Le)),
    ("gt", Comparison::Plain(Cmp::Gt)),
    ("ge", Comparison::Plain(Cmp::Ge)),
    ("lo", Comparison::Unsigned(Cmp::Lt)),
    ("ls", Comparison::Unsigned(Cmp::Le)),
    ("hi", Comparison::Unsigned(Cmp::Gt)),
    ("hs", Comparison::Unsigned(Cmp::Ge)),
    ("equ", Comparison::Unordered(Cmp::Eq)),
    ("neu", Comparison::Unordered(Cmp::Ne)),
    ("ltu", Comparison::Unordered(Cmp::Lt)),
    ("leu", Comparison::Unordered(Cmp::Le)),
    ("gtu", Comparison::Unordered(Cmp::Gt)),
    ("geu", Comparison::Unordered(Cmp::Ge)),
    ("num", Comparison::Num),
    ("nan", Comparison::Nan),
];

const COMBINATIONS: &[(&str, Bool)] = &[("and", Bool::And), ("or", Bool::Or), ("xor", Bool::Xor)];

impl<'i, 'a> Lowerer<'_, 'i, 'a> {
    /// One comparison; two results (low half, high half) for packed types.
    fn compare(
        &mut self,
        comparison: Comparison,
        ty: Type,
        ftz: bool,
        a: &Operand<'a>,
        b: &Operand<'a>,
    ) -> Lower<Vec<Value>> {
        let (a, b) = (self.value(a, ty)?, self.value(b, ty)?);
        if let Some(float) = float(ty) {
            let cmp = match comparison {
                Comparison::Plain(cmp) => FloatCmp::Ordered(cmp),
                Comparison::Unordered(cmp) => FloatCmp::Unordered(cmp),
                Comparison::Num => FloatCmp::Num,
                Comparison::Nan => FloatCmp::Nan,
                Comparison::Unsigned(_) => return Err(Failure::Unsupported),
            };
            let half = match float {
                Float::F16x2 => Float::F16,
                Float::Bf16x2 => Float::Bf16,
                _ => return Ok(vec![self.b.emit1(Op::Fcmp { cmp, ty: float, ftz }, &[a, b], Ty::Pred)]),
            };
            let a = self.b.emit(Op::Unpack, &[a], &[Ty::B16, Ty::B16]);
            let b = self.b.emit(Op::Unpack, &[b], &[Ty::B16, Ty::B16]);
            let op = Op::Fcmp { cmp, ty: half, ftz };
            return Ok((0..2).map(|it| self.b.emit1(op.clone(), &[a[it], b[it]], Ty::Pred)).collect());
        }
        let (cmp, int) = match (comparison, int(ty).filter(|int| int.bits >= 16)) {
            (Comparison::Plain(cmp), Some(int)) => (cmp, int),
            (Comparison::Unsigned(cmp), Some(int)) => (cmp, crate::ir::Int { signed: false, ..int }),
            _ => return Err(Failure::Unsupported),
        };
        Ok(vec![self.b.emit1(Op::Icmp(cmp, int), &[a, b], Ty::Pred)])
    }
}

/// `setp.cmp{.bool}{.ftz}.type p{|q}, a, b{, {!}c}`
pub(super) fn setp<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    let comparison = i.need_one(COMPARISONS)?;
    let combination = i.take_one(COMBINATIONS);
    let ftz = i.take("ftz");
    let ty = i.ty()?;
    i.done()?;
    let (d, results) = compared(l, i, comparison, combination, ftz, ty)?;
    match &d.kind {
        OperandKind::Pair(p, q) => {
            // Packed types: the two halves. Others: the result and its complement, each combined with c.
            l.write(p, results.0)?;
            l.write(q, results.1)
        }
        _ => l.write(d, results.0),
    }
}

/// The first operand, and the two predicates that a pair of destinations takes.
fn compared<'i, 'a>(
    l: &mut L<'_, 'i, 'a>,
    i: &I<'i, 'a>,
    comparison: Comparison,
    combination: Option<Bool>,
    ftz: bool,
    ty: Type,
) -> Lower<(&'i Operand<'a>, (Value, Value))> {
    let (d, a, b, c) = match combination {
        None => {
            let [d, a, b] = i.operands()?;
            (d, a, b, None)
        }
        Some(combination) => {
            let [d, a, b, c] = i.operands()?;
            (d, a, b, Some((combination, l.predicate(c)?)))
        }
    };
    let results = l.compare(comparison, ty, ftz, a, b)?;
    let combine = |l: &mut L<'_, 'i, 'a>, value: Value| match c {
        Some((combination, c)) => l.b.emit1(Op::Bool(combination), &[value, c], Ty::Pred),
        None => value,
    };
    let first = combine(l, results[0]);
    let second = match results.get(1) {
        Some(&high) => high,
        None => l.b.emit1(Op::Not, &[results[0]], Ty::Pred),
    };
    let second = combine(l, second);
    Ok((d, (first, second)))
}

/// `set.cmp{.bool}{.ftz}.dtype.stype d, a, b{, {!}c}`
pub(super) fn set<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    let comparison = i.need_one(COMPARISONS)?;
    let combination = i.take_one(COMBINATIONS);
    let ftz = i.take("ftz");
    let target = i.ty()?;
    let source = i.ty()?;
    i.done()?;
    let (d, (first, second)) = compared(l, i, comparison, combination, ftz, source)?;
    let truth: u128 = match target {
        Type::F32 => 0x3f80_0000,
        Type::F64 => 0x3ff0_0000_0000_0000,
        Type::F16 | Type::F16x2 => 0x3c00,
        Type::Bf16 | Type::Bf16x2 => 0x3f80,
        _ => u128::MAX,
    };
    let is_packed = matches!(source, Type::F16x2 | Type::Bf16x2);
    let select = |l: &mut L<'_, 'i, 'a>, condition: Value, ty: Ty| {
        let (yes, no) = (l.b.constant(ty, truth), l.b.constant(ty, 0));
        l.b.emit1(Op::Select, &[condition, yes, no], ty)
    };
    let result = if is_packed {
        // Each half of the result answers for its half of the operands.
        let (low, high) = (select(l, first, Ty::B16), select(l, second, Ty::B16));
        l.b.emit1(Op::Pack, &[low, high], Ty::B32)
    } else {
        select(l, first, register_ty(target))
    };
    l.write(d, result)
}

/// `selp.type d, a, b, c`
pub(super) fn selp<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    let ty = i.ty()?;
    i.done()?;
    let [d, a, b, c] = i.operands()?;
    let (a, b, c) = (l.value(a, ty)?, l.value(b, ty)?, l.predicate(c)?);
    let result = l.b.emit1(Op::Select, &[c, a, b], register_ty(ty));
    l.write(d, result)
}

/// `slct{.ftz}.dtype.ctype d, a, b, c`: a where c ≥ 0.
pub(super) fn slct<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    let ftz = i.take("ftz");
    let ty = i.ty()?;
    let selector = i.ty()?;
    i.done()?;
    let [d, a, b, c] = i.operands()?;
    let (a, b, c) = (l.value(a, ty)?, l.value(b, ty)?, l.value(c, selector)?);
    let zero = l.b.constant(register_ty(selector), 0);
    // A NaN selects b; -0 selects a.
    let op = match selector {
        Type::S32 => Op::Icmp(Cmp::Ge, crate::ir::S32),
        Type::F32 => Op::Fcmp { cmp: FloatCmp::Ordered(Cmp::Ge), ty: Float::F32, ftz },
        _ => return Err(Failure::Unsupported),
    };
    let condition = l.b.emit1(op, &[c, zero], Ty::Pred);
    let result = l.b.emit1(Op::Select, &[condition, a, b], register_ty(ty));
    l.write(d, result)
}
