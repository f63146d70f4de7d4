//! Control flow: branches, returns, the end of a thread.

use ptx::ast::{OperandKind, Type};

use super::function::Lowerer;
use super::instruction::{Instr, Lower, fail};
use super::scope::Entity;
use crate::ir::{Op, Term};

type L<'l, 'i, 'a> = Lowerer<'l, 'i, 'a>;
type I<'i, 'a> = Instr<'i, 'a>;

/// `@p bra{.uni} target`: the guard is the condition.
pub(super) fn bra<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    i.take("uni");
    i.done()?;
    let [target] = i.operands()?;
    let OperandKind::Name(name) = &target.kind else { return fail(target.span, "expected a label") };
    let target = l.label(name, target.span)?;
    match l.guard.take() {
        Some(condition) => {
            let behind = l.b.new_block();
            l.b.branch(condition, target, behind);
            l.b.enter(behind);
        }
        None => l.b.jump(target),
    }
    Ok(())
}

/// `brx.idx{.uni} index, list`
pub(super) fn brx<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    i.need_one(&[("idx", ())])?;
    i.take("uni");
    i.done()?;
    let [index, list] = i.operands()?;
    let index = l.value(index, Type::U32)?;
    let OperandKind::Name(name) = &list.kind else {
        return fail(list.span, "expected a list of branch targets");
    };
    let Some(Entity::Targets(names)) = l.entity(name) else {
        return fail(list.span, format!("'{name}' is not a list of branch targets"));
    };
    let mut targets = Vec::new();
    for name in names {
        targets.push(super::builder::Builder::edge(l.label(name.value, name.span)?));
    }
    l.b.terminate(Term::Switch { index, targets });
    Ok(())
}

/// `ret{.uni}`
pub(super) fn ret<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    i.take("uni");
    i.done()?;
    let [] = i.operands()?;
    l.return_now();
    Ok(())
}

/// `exit`
pub(super) fn exit<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    i.done()?;
    let [] = i.operands()?;
    l.b.terminate(Term::Exit);
    Ok(())
}

/// `trap`
pub(super) fn trap<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    i.done()?;
    let [] = i.operands()?;
    l.b.emit(Op::Trap, &[], &[]);
    Ok(())
}

/// `brkpt`
pub(super) fn brkpt<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    i.done()?;
    let [] = i.operands()?;
    l.b.emit(Op::Breakpoint, &[], &[]);
    Ok(())
}

/// `nanosleep.u32 t`
pub(super) fn nanosleep<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    i.need_one(&[("u32", ())])?;
    i.done()?;
    let [t] = i.operands()?;
    let t = l.value(t, Type::U32)?;
    l.b.emit(Op::NanoSleep, &[t], &[]);
    Ok(())
}

/// `griddepcontrol.{launch_dependents,wait}`: grids of a stream run one after the other here, so both are fulfilled.
pub(super) fn griddepcontrol<'i, 'a>(_: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    i.need_one(&[("launch_dependents", ()), ("wait", ())])?;
    i.done()?;
    let [] = i.operands()?;
    Ok(())
}
