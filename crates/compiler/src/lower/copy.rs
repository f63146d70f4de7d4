//! Asynchronous copies. They may complete at any time before they are waited for; here they complete at once.

use ptx::ast::{OperandKind, Type};

use super::bulk;
use super::function::Lowerer;
use super::instruction::{Failure, Instr, Lower, fail};
use super::operand::{Place, immediate};
use crate::ir::{Cmp, Mem, Op, Order, Scope, Space, Ty, Value};

type L<'l, 'i, 'a> = Lowerer<'l, 'i, 'a>;
type I<'i, 'a> = Instr<'i, 'a>;

/// `cp.async.{ca,cg}.shared.global [dst], [src], size{, src-size | ignore}{, policy}`, `cp.async.commit_group`,
/// `cp.async.wait_group n`, `cp.async.wait_all`
pub(super) fn cp<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    let kind = if i.take("reduce") { bulk::Kind::Reduce } else { bulk::Kind::Copy };
    i.need_one(&[("async", ())])?;
    if i.take("bulk") {
        return bulk::bulk(l, i, kind);
    }
    if kind == bulk::Kind::Reduce {
        return Err(Failure::Unsupported);
    }
    if i.take("mbarrier") {
        return super::mbarrier::copy_arrive(l, i);
    }
    if i.take("commit_group") || i.take("wait_all") {
        i.done()?;
        let [] = i.operands()?;
        return Ok(());
    }
    if i.take("wait_group") {
        i.done()?;
        return i.operands::<1>().map(|_| ());
    }
    let policy = i.cache_hints();
    i.take_map(|word| matches!(word, "shared" | "shared::cta" | "shared::cluster").then_some(()))
        .ok_or(Failure::Unsupported)?;
    i.need_one(&[("global", ())])?;
    i.done()?;
    let count = i.count() - usize::from(policy && i.count() > 0);
    if !(3..=4).contains(&count) {
        return Err(Failure::Unsupported);
    }
    let size = immediate(i.operand(2)?);
    let Some(size @ (4 | 8 | 16)) = size else {
        return fail(i.operand(2)?.span, "the size of 'cp.async' is 4, 8 or 16");
    };
    let target = l.place(i.operand(0)?, Some(Space::Shared))?;
    let source = l.place(i.operand(1)?, Some(Space::Global))?;
    let fill = if count == 4 { Some(fill(l, i)?) } else { None };
    copy(l, i, target, source, size, fill)
}

/// What the fourth operand says: copy nothing, or only so many bytes; the rest is zero.
enum Fill {
    Ignore(Value),
    Bytes(Value),
}

fn fill<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &I<'i, 'a>) -> Lower<Fill> {
    let operand = i.operand(3)?;
    let is_predicate = match &operand.kind {
        OperandKind::Name(name) => l.register(name, operand.span)?.ty == Ty::Pred,
        OperandKind::Not(_) => true,
        _ => false,
    };
    if is_predicate {
        Ok(Fill::Ignore(l.predicate(operand)?))
    } else {
        Ok(Fill::Bytes(l.value(operand, Type::U32)?))
    }
}

fn copy<'i, 'a>(
    l: &mut L<'_, 'i, 'a>,
    i: &I<'i, 'a>,
    target: Place,
    source: Place,
    size: u64,
    fill: Option<Fill>,
) -> Lower {
    let (
        Place::Memory { space: to, base: to_base, offset: to_offset },
        Place::Memory { space: from, base: from_base, offset: from_offset },
    ) = (target, source)
    else {
        return fail(i.ast.span, "'cp.async' copies from global to shared memory");
    };
    // A byte that is not to be read must not be touched: it may lie outside of the allocation.
    let step = if matches!(fill, Some(Fill::Bytes(_))) { 1u64 } else { 4 };
    let mem = Mem { bits: (step * 8) as u8, signed: false };
    let ty = if step == 1 { Ty::B16 } else { Ty::B32 };
    let access = |offset: i64, load: bool, space| {
        let (order, scope) = (Order::Weak, Scope::Sys);
        if load {
            Op::Load { space, mem, offset, order, scope }
        } else {
            Op::Store { space, mem, offset, order, scope }
        }
    };
    for at in (0..size).step_by(step as usize) {
        let zero = l.b.constant(ty, 0);
        let condition = match &fill {
            None => None,
            Some(Fill::Ignore(ignore)) => Some(l.b.emit1(Op::Not, &[*ignore], Ty::Pred)),
            Some(Fill::Bytes(bytes)) => {
                let index = l.b.constant(Ty::B32, u128::from(at));
                Some(l.b.emit1(Op::Icmp(Cmp::Lt, crate::ir::U32), &[index, *bytes], Ty::Pred))
            }
        };
        let load = access(from_offset.wrapping_add(at as i64), true, from);
        let value = match condition {
            None => l.b.emit1(load, &[from_base], ty),
            Some(condition) => {
                let result = l.b.new_var(ty);
                let (inside, behind) = (l.b.new_block(), l.b.new_block());
                l.b.write(result, zero);
                l.b.branch(condition, inside, behind);
                l.b.enter(inside);
                let value = l.b.emit1(load, &[from_base], ty);
                l.b.write(result, value);
                l.b.enter(behind);
                l.b.read(result)
            }
        };
        l.b.emit(access(to_offset.wrapping_add(at as i64), false, to), &[to_base, value], &[]);
    }
    Ok(())
}
