//! Atomic operations with and without result.

use ptx::ast::Type;

use super::function::Lowerer;
use super::instruction::{Failure, Instr, Lower, fail, float, int, register_ty};
use super::layout::scalar_bytes;
use super::operand::{Place, space};
use crate::ir::{AtomOp, AtomTy, Op, Order, Scope};

type L<'l, 'i, 'a> = Lowerer<'l, 'i, 'a>;
type I<'i, 'a> = Instr<'i, 'a>;

/// `atom{.order}{.scope}{.space}.op.type d, [a], b{, c}`
pub(super) fn atom<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    atomic(l, i, true)
}

/// `red{.order}{.scope}{.space}.op.type [a], b`
pub(super) fn red<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    if i.ast.has("async") {
        return super::bulk::red_async(l, i);
    }
    atomic(l, i, false)
}

fn atomic<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>, has_result: bool) -> Lower {
    let order = i.order().unwrap_or(Order::Relaxed);
    let scope = i.scope().unwrap_or(Scope::Gpu);
    let space = i.take_map(space);
    let policy = i.cache_hints();
    // Half-precision additions keep subnormals; the modifier says so and is required.
    i.take("noftz");
    let op = i.need_one(&[
        ("add", AtomOp::Add),
        ("min", AtomOp::Min),
        ("max", AtomOp::Max),
        ("and", AtomOp::And),
        ("or", AtomOp::Or),
        ("xor", AtomOp::Xor),
        ("exch", AtomOp::Exch),
        ("cas", AtomOp::Cas),
        ("inc", AtomOp::Inc),
        ("dec", AtomOp::Dec),
    ])?;
    let lanes = i.take_one(&[("v2", 2usize), ("v4", 4), ("v8", 8)]).unwrap_or(1);
    let ty = i.ty()?;
    i.done()?;
    let atom_ty = match (ty, int(ty), float(ty)) {
        (Type::B128, ..) if matches!(op, AtomOp::Exch | AtomOp::Cas) => AtomTy::B128,
        (_, Some(int), _) if int.bits > 8 => AtomTy::Int(int),
        (_, _, Some(float)) if matches!(op, AtomOp::Add | AtomOp::Min | AtomOp::Max) => AtomTy::Float(float),
        _ => return Err(Failure::Unsupported),
    };
    let expected = usize::from(has_result) + if op == AtomOp::Cas { 3 } else { 2 } + usize::from(policy);
    if i.count() != expected {
        return fail(
            i.ast.span,
            format!("'{}' takes {expected} operands, not {}", i.ast.full_name(), i.count()),
        );
    }
    let first = usize::from(has_result);
    let address = i.operand(first)?;
    let mut operands = vec![l.values(i.operand(first + 1)?, ty)?];
    if op == AtomOp::Cas {
        operands.push(l.values(i.operand(first + 2)?, ty)?);
    }
    if operands.iter().any(|list| list.len() != lanes) {
        return fail(i.ast.span, format!("expected {lanes} values"));
    }
    let destinations = if has_result { l.destinations(i.operand(0)?)? } else { vec![None; lanes] };
    if destinations.len() != lanes {
        return fail(i.ast.span, format!("expected {lanes} destinations"));
    }
    let Place::Memory { space, base, offset } = l.place(address, space)? else {
        return fail(address.span, "a parameter is not a place for atomic operations");
    };
    // Each element of a vector is atomic by itself.
    for (lane, var) in destinations.into_iter().enumerate() {
        let offset = offset.wrapping_add(lane as i64 * scalar_bytes(ty) as i64);
        let mut args = vec![base];
        args.extend(operands.iter().map(|list| list[lane]));
        let op = Op::Atomic { space, op, ty: atom_ty, offset, order, scope };
        if var.is_some() {
            let old = l.b.emit1(op, &args, register_ty(ty));
            l.write_extended(var, old, false, i.ast.span)?;
        } else {
            l.b.emit(op, &args, &[]);
        }
    }
    Ok(())
}
