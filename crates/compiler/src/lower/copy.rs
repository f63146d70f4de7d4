//! Asynchronous copies. They may complete at any time before they are waited for; here they complete at once.

use ptx::ast::{OperandKind, Type};

use super::bulk;
use super::dialect::Need;
use super::function::Lowerer;
use super::instruction::{Failure, Instr, Lower, fail};
use super::mbarrier::Object;
use super::operand::{Place, immediate, space};
use crate::ir::{CopyAsync, Op, Space, Ty, Value};

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
    let is_around_level_1 = i.ast.has("cg");
    for to in [Space::Shared, Space::Global] {
        if i.take_map(space) != Some(to) {
            return fail(i.ast.span, "'cp.async' copies from global to shared memory");
        }
    }
    i.done()?;
    let count = i.count() - usize::from(policy && i.count() > 0);
    if !(3..=4).contains(&count) {
        return Err(Failure::Unsupported);
    }
    let size = immediate(i.operand(2)?);
    let Some(size @ (4 | 8 | 16)) = size else {
        return fail(i.operand(2)?.span, "the size of 'cp.async' is 4, 8 or 16");
    };
    if is_around_level_1 && size != 16 {
        return fail(i.operand(2)?.span, "the size of 'cp.async.cg' is 16");
    }
    if count == 4 && immediate(i.operand(3)?).is_some_and(|bytes| bytes > size) {
        return fail(i.operand(3)?.span, "more bytes are read than copied");
    }
    let target = l.place(i.operand(0)?, Some(Space::Shared))?;
    let source = l.place(i.operand(1)?, Some(Space::Global))?;
    // A size that is written out and asks for everything, as libcu++ does it, says nothing.
    let is_said = count == 4 && immediate(i.operand(3)?).is_none_or(|bytes| bytes < size);
    let fill = if is_said { Some(fill(l, i)?) } else { None };
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
    let is_float = match &operand.kind {
        OperandKind::Name(name) => matches!(l.register(name, operand.span)?.declared, Type::F32),
        OperandKind::Expression(expression) => {
            expression.constant().is_ok_and(|constant| constant.integer().is_none())
        }
        _ => false,
    };
    if is_float {
        return fail(operand.span, "a number of bytes is an integer");
    }
    if is_predicate {
        static IGNORED: Need = Need::new("7.5", "80");
        l.require(operand.span, "a predicate of 'cp.async'", &IGNORED)?;
        Ok(Fill::Ignore(l.predicate(operand)?))
    } else {
        Ok(Fill::Bytes(l.value(operand, Type::U32)?))
    }
}

/// Copies `size` bytes, or what `fill` says.
fn copy<'i, 'a>(
    l: &mut L<'_, 'i, 'a>,
    i: &I<'i, 'a>,
    target: Place,
    source: Place,
    size: u64,
    fill: Option<Fill>,
) -> Lower {
    let (Some(target), Some(source)) = (object(target), object(source)) else {
        return fail(i.ast.span, "'cp.async' copies from global to shared memory");
    };
    let Some(fill) = fill else {
        whole(l, &target, &source, size);
        return Ok(());
    };
    let (is_ignored, fill) = match fill {
        Fill::Ignore(ignore) => (true, ignore),
        Fill::Bytes(bytes) => (false, bytes),
    };
    let copy = CopyAsync { size: size as u8, is_ignored, to: target.offset, from: source.offset };
    l.b.emit(Op::CopyAsync(copy), &[target.base, source.base, fill], &[]);
    Ok(())
}

fn object(place: Place) -> Option<Object> {
    match place {
        Place::Memory { space, base, offset } => Some(Object { space, base, offset }),
        _ => None,
    }
}

fn whole(l: &mut L<'_, '_, '_>, target: &Object, source: &Object, size: u64) {
    let types = vec![Ty::B32; (size / 4) as usize];
    let words = l.b.emit(bulk::load(source, 32), &[source.base], &types);
    store(l, target, words);
}

fn store(l: &mut L<'_, '_, '_>, target: &Object, words: Vec<Value>) {
    let args = [vec![target.base], words].concat();
    l.b.emit(bulk::store(target, 32), &args, &[]);
}
