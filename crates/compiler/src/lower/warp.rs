//! Threads of a warp together: shuffles, votes, matches, reductions.

use ptx::ast::{OperandKind, Type};

use super::function::Lowerer;
use super::instruction::{Failure, Instr, Lower, WORD};
use crate::ir::{Cmp, IntBin, Op, ReduxOp, S32, ShflMode, Ty, U32, Value, VoteMode};

type L<'l, 'i, 'a> = Lowerer<'l, 'i, 'a>;
type I<'i, 'a> = Instr<'i, 'a>;

/// The member mask: the last operand of `.sync` forms, the active lanes for the old forms.
fn members<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &I<'i, 'a>, sync: bool) -> Lower<Value> {
    if sync {
        return l.value(i.operand(i.count().saturating_sub(1))?, Type::B32);
    }
    Ok(l.b.emit1(Op::ActiveMask, &[], Ty::B32))
}

/// `shfl.sync.mode.b32 d{|p}, a, b, c, mask`, and the old form without mask
pub(super) fn shfl<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    let sync = i.take("sync");
    let mode = i.need_one(&[
        ("up", ShflMode::Up),
        ("down", ShflMode::Down),
        ("bfly", ShflMode::Bfly),
        ("idx", ShflMode::Idx),
    ])?;
    i.need_one(&[("b32", ())])?;
    i.done()?;
    let [d, a, b, c] = if sync {
        let [d, a, b, c, _] = i.operands()?;
        [d, a, b, c]
    } else {
        i.operands()?
    };
    let mask = members(l, i, sync)?;
    let args = [l.value(a, Type::B32)?, l.value(b, Type::B32)?, l.value(c, Type::B32)?, mask];
    let results = l.b.emit(Op::Shfl(mode), &args, &[Ty::B32, Ty::Pred]);
    match &d.kind {
        OperandKind::Pair(d, p) => {
            l.write(d, results[0])?;
            l.write(p, results[1])
        }
        _ => l.write(d, results[0]),
    }
}

/// `vote.sync.mode.pred d, {!}p, mask`, `vote.sync.ballot.b32`, and the old forms without mask
pub(super) fn vote<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    let sync = i.take("sync");
    let mode = i.need_one(&[
        ("all", VoteMode::All),
        ("any", VoteMode::Any),
        ("uni", VoteMode::Uni),
        ("ballot", VoteMode::Ballot),
    ])?;
    let (word, result) = if mode == VoteMode::Ballot { ("b32", Ty::B32) } else { ("pred", Ty::Pred) };
    i.need_one(&[(word, ())])?;
    i.done()?;
    let [d, p] = if sync {
        let [d, p, _] = i.operands()?;
        [d, p]
    } else {
        i.operands()?
    };
    let mask = members(l, i, sync)?;
    let args = [l.predicate(p)?, mask];
    let value = l.b.emit1(Op::Vote(mode), &args, result);
    l.write(d, value)
}

/// `match.any.sync.type d, a, mask`, `match.all.sync.type d{|p}, a, mask`
pub(super) fn match_<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    let all = i.need_one(&[("any", false), ("all", true)])?;
    i.need_one(&[("sync", ())])?;
    let ty = i.ty()?;
    i.done()?;
    let bits = match ty {
        Type::B32 => 32,
        Type::B64 => 64,
        _ => return Err(Failure::Unsupported),
    };
    let [d, a, _] = i.operands()?;
    let mask = members(l, i, true)?;
    let args = [l.value(a, ty)?, mask];
    let types: &[Ty] = if all { &[Ty::B32, Ty::Pred] } else { &[Ty::B32] };
    let results = l.b.emit(Op::Match { all, bits }, &args, types);
    match (&d.kind, all) {
        (OperandKind::Pair(d, p), true) => {
            l.write(d, results[0])?;
            l.write(p, results[1])
        }
        _ => l.write(d, results[0]),
    }
}

/// `redux.sync.op.type d, a, mask`, and of floats `redux.sync.{min,max}{.abs}{.NaN}.f32`
pub(super) fn redux<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    i.need_one(&[("sync", ())])?;
    let op = i.need_one(&[
        ("add", ReduxOp::Add),
        ("min", ReduxOp::Min),
        ("max", ReduxOp::Max),
        ("and", ReduxOp::And),
        ("or", ReduxOp::Or),
        ("xor", ReduxOp::Xor),
    ])?;
    if i.take("f32") {
        return redux_float(l, i, op);
    }
    let (ty, int) = i.int(WORD)?;
    i.done()?;
    let [d, a, _] = i.operands()?;
    let mask = members(l, i, true)?;
    let args = [l.value(a, ty)?, mask];
    let value = l.b.emit1(Op::Redux(op, int), &args, Ty::B32);
    l.write(d, value)
}

/// As a reduction of whole numbers that are in the floats' order, -0 below +0. A NaN is the one that is taken, with `.NaN`, or the
/// last that would be.
fn redux_float<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>, op: ReduxOp) -> Lower {
    let (absolute, keeps_nan) = (i.take("abs"), i.take("NaN"));
    i.done()?;
    let (first, last) = match op {
        ReduxOp::Min => (0, u32::MAX),
        ReduxOp::Max => (u32::MAX, 0),
        _ => return Err(Failure::Unsupported),
    };
    let [d, a, _] = i.operands()?;
    let mask = members(l, i, true)?;
    let value = l.value(a, Type::F32)?;
    let bits = l.b.emit1(Op::Bitcast, &[value], Ty::B32);
    let magnitude = l.word_op(IntBin::And, bits, 0x7fff_ffff);
    let bits = if absolute { magnitude } else { bits };
    // Of what is negative all bits change, else the sign alone.
    let flipped = |l: &mut L<'_, 'i, 'a>, bits: Value, sign: Value| {
        let thirty_one = l.word(31);
        let sign = l.b.emit1(Op::Int(IntBin::Shr, S32), &[sign, thirty_one], Ty::B32);
        let flips = l.word_op(IntBin::Or, sign, 1 << 31);
        l.b.emit1(Op::Int(IntBin::Xor, U32), &[bits, flips], Ty::B32)
    };
    let key = flipped(l, bits, bits);
    let infinity = l.word(0x7f80_0000);
    let is_nan = l.b.emit1(Op::Icmp(Cmp::Gt, U32), &[magnitude, infinity], Ty::Pred);
    let nan_key = l.word(if keeps_nan { first } else { last });
    let key = l.b.emit1(Op::Select, &[is_nan, nan_key, key], Ty::B32);
    let found = l.b.emit1(Op::Redux(op, U32), &[key, mask], Ty::B32);
    let opposite = l.word_op(IntBin::Xor, found, u32::MAX);
    let bits = flipped(l, found, opposite);
    let is_nan = l.b.emit1(Op::Icmp(Cmp::Eq, U32), &[found, nan_key], Ty::Pred);
    let nan = l.word(0x7fff_ffff);
    let bits = l.b.emit1(Op::Select, &[is_nan, nan, bits], Ty::B32);
    let value = l.b.emit1(Op::Bitcast, &[bits], Ty::F32);
    l.write(d, value)
}

/// `activemask.b32 d`
pub(super) fn activemask<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    i.need_one(&[("b32", ())])?;
    i.done()?;
    let [d] = i.operands()?;
    let value = l.b.emit1(Op::ActiveMask, &[], Ty::B32);
    l.write(d, value)
}

/// `elect.sync d|p, mask`
pub(super) fn elect<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    i.need_one(&[("sync", ())])?;
    i.done()?;
    let [d, _] = i.operands()?;
    let mask = members(l, i, true)?;
    let results = l.b.emit(Op::Elect, &[mask], &[Ty::B32, Ty::Pred]);
    let OperandKind::Pair(d, p) = &d.kind else { return Err(Failure::Unsupported) };
    l.write(d, results[0])?;
    l.write(p, results[1])
}
