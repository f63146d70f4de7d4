//! `clusterlaunchcontrol`: a block asks for the place in the grid of a cluster that has not begun, and does its work instead.
//! Source: PTX manual, "Parallel Synchronization and Communication Instructions".
//!
//! Of the 16 bytes of an answer, which PTX leaves opaque, the first eight have what [`Syscall::CancelCluster`] gives: bit 63, a
//! cluster was cancelled; from bit 32, bit 16 and bit 0 on, `%ctaid.x`, `.y` and `.z` of its first block.

use ptx::ast::Type;

use super::bulk::{self, for_each_block, in_block};
use super::function::Lowerer;
use super::instruction::{Failure, Instr, Lower, fail};
use super::mbarrier::Object;
use crate::ir::{Cmp, IntBin, Mem, Op, Order, S64, Scope, Space, Syscall, Ty, Value};

type L<'l, 'i, 'a> = Lowerer<'l, 'i, 'a>;
type I<'i, 'a> = Instr<'i, 'a>;

const ANSWER_BYTES: u64 = 16;

/// `clusterlaunchcontrol.try_cancel…` and `clusterlaunchcontrol.query_cancel…`
pub(super) fn clusterlaunchcontrol<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    match i.need_one(&[("try_cancel", true), ("query_cancel", false)])? {
        true => try_cancel(l, i),
        false => query_cancel(l, i),
    }
}

/// `clusterlaunchcontrol.try_cancel.async{.shared::cta}.mbarrier::complete_tx::bytes{.multicast::cluster::all}.b128 [addr], [mbar]`
fn try_cancel<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    i.need_one(&[("async", ())])?;
    let space = i.take_one(&[("shared::cta", Space::Shared)]);
    i.need_one(&[("mbarrier::complete_tx::bytes", ())])?;
    let is_multicast = i.take("multicast::cluster::all");
    i.need_one(&[("b128", ())])?;
    i.done()?;
    let [target, object] = i.operands()?;
    let target = l.object(target, space)?;
    let object = l.object(object, space)?;
    let answer = l.b.emit1(Op::Syscall(Syscall::CancelCluster), &[], Ty::B64);
    let put = |l: &mut L<'_, 'i, 'a>, target: &Object, object: &Object| {
        let zero = l.long(0);
        for (offset, word) in [(0, answer), (8, zero)] {
            let mem = Mem { bits: 64, signed: false };
            let (space, offset) = (target.space, target.offset + offset);
            let op = Op::Store { space, mem, offset, order: Order::Weak, scope: Scope::Sys };
            l.b.emit(op, &[target.base, word], &[]);
        }
        let bytes = l.long(ANSWER_BYTES);
        l.complete_transactions(object, bytes);
    };
    if !is_multicast {
        put(l, &target, &object);
        return Ok(());
    }
    let (target, object) = (bulk::in_window(l, target), bulk::in_window(l, object));
    let all = l.b.constant(Ty::B32, u16::MAX.into());
    for_each_block(l, all, |l, rank| {
        let (target, object) = (in_block(l, &target, rank), in_block(l, &object, rank));
        put(l, &target, &object);
        Ok(())
    })
}

/// `clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, answer`,
/// `….get_first_ctaid.v4.b32.b128 {x, y, z, _}, answer`, `….get_first_ctaid::{x,y,z}.b32.b128 d, answer`
fn query_cancel<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    const AXES: [(&str, usize); 3] =
        [("get_first_ctaid::x", 0), ("get_first_ctaid::y", 1), ("get_first_ctaid::z", 2)];
    let asks_whether = i.take("is_canceled");
    let axis = i.take_one(&AXES);
    if asks_whether && axis.is_some() {
        return Err(Failure::Unsupported);
    }
    let asks_for_all = !asks_whether && axis.is_none();
    if asks_for_all {
        i.need_one(&[("get_first_ctaid", ())])?;
        i.need_one(&[("v4", ())])?;
    }
    i.need_one(&[(if asks_whether { "pred" } else { "b32" }, ())])?;
    i.need_one(&[("b128", ())])?;
    i.done()?;
    let [d, answer] = i.operands()?;
    let answer = match l.parts(answer) {
        Some(parts) if !asks_whether => l.packed(answer, parts, Type::B128)?,
        _ => l.value(answer, Type::B128)?,
    };
    let answer = l.b.emit(Op::Unpack, &[answer], &[Ty::B64, Ty::B64])[0];
    if asks_whether {
        let zero = l.long(0);
        let was = l.b.emit1(Op::Icmp(Cmp::Lt, S64), &[answer, zero], Ty::Pred);
        return l.write(d, was);
    }
    if let Some(axis) = axis {
        let index = first_block(l, answer, axis);
        return l.write(d, index);
    }
    let destinations = l.destinations(d)?;
    if destinations.len() != 4 {
        return fail(d.span, "expected 4 registers");
    }
    for (axis, var) in destinations.into_iter().enumerate() {
        let index = first_block(l, answer, axis);
        l.write_same_width(var, index, d.span)?;
    }
    Ok(())
}

/// One of the three numbers in the answer; what the manual leaves open, the fourth, is 0.
fn first_block(l: &mut L<'_, '_, '_>, answer: Value, axis: usize) -> Value {
    let Some(&(shift, mask)) = [(32, 0x7fff_ffff), (16, 0xffff), (0, 0xffff)].get(axis) else {
        return l.word(0);
    };
    let index = l.long_shift(IntBin::Shr, answer, shift);
    let index = l.b.emit1(Op::Trunc, &[index], Ty::B32);
    l.word_op(IntBin::And, index, mask)
}
