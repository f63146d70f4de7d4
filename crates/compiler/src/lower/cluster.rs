//! Addresses in the window that the shared memories of a cluster's blocks form ([`CLUSTER_SHIFT`]).

use ptx::ast::{Operand, OperandKind, Type};

use super::function::Lowerer;
use super::instruction::{Failure, Instr, Lower, fail, register_ty};
use super::link::Symbol;
use super::operand::split;
use super::scope::Entity;
use crate::ir::{Bool, CLUSTER_SHIFT, Cmp, IntBin, Op, Space, Special, Ty, U32, U64, Value};

type L<'l, 'i, 'a> = Lowerer<'l, 'i, 'a>;
type I<'i, 'a> = Instr<'i, 'a>;

/// A generic address lies in the window of a cluster of several blocks.
pub(super) fn in_window(l: &mut L<'_, '_, '_>, generic: Value) -> Value {
    let op = Op::Cvta { space: Space::Shared, to_generic: false };
    let offset = l.b.emit1(op, &[generic], Ty::B64);
    let n_blocks = l.b.emit1(Op::Special(Special::ClusterNctaRank), &[], Ty::B32);
    let one = l.b.constant(Ty::B32, 1);
    let several = l.b.emit1(Op::Icmp(Cmp::Gt, U32), &[n_blocks, one], Ty::Pred);
    let n_blocks = l.b.emit1(Op::Zext, &[n_blocks], Ty::B64);
    let shift = l.b.constant(Ty::B32, CLUSTER_SHIFT.into());
    let end = l.b.emit1(Op::Int(IntBin::Shl, U64), &[n_blocks, shift], Ty::B64);
    let inside = l.b.emit1(Op::Icmp(Cmp::Lt, U64), &[offset, end], Ty::Pred);
    l.b.emit1(Op::Bool(Bool::And), &[several, inside], Ty::Pred)
}

/// The operand as an offset in the window (`B64`): it is one, or a generic address, or names a shared variable.
fn offset<'a>(l: &mut L<'_, '_, 'a>, operand: &Operand<'a>, ty: Type, is_offset: bool) -> Lower<Value> {
    let value = l.value(operand, ty)?;
    let value = l.resize(value, Ty::B64, false);
    let is_register = match &operand.kind {
        OperandKind::Name(name) => matches!(l.entity(name), Some(Entity::Register(_))),
        OperandKind::Expression(expression) => expression.constant().is_ok(),
        _ => true,
    };
    if !is_register && !is_shared(l, operand) {
        return fail(operand.span, "only variables in shared memory have such an address");
    }
    if is_offset || !is_register {
        return Ok(value);
    }
    Ok(l.b.emit1(Op::Cvta { space: Space::Shared, to_generic: false }, &[value], Ty::B64))
}

/// Whether the operand names a variable in shared memory, or, as ptxas has it, a function.
fn is_shared<'a>(l: &mut L<'_, '_, 'a>, operand: &Operand<'a>) -> bool {
    let name = match &operand.kind {
        OperandKind::Name(name) => *name,
        OperandKind::Expression(expression) => match split(expression) {
            Ok((Some(name), _)) => name,
            _ => return false,
        },
        _ => return true,
    };
    match l.entity(name) {
        Some(entity) => matches!(entity, Entity::Shared(_) | Entity::Register(_)),
        None => match l.module.linked.symbol(l.unit, name) {
            Some(symbol) => matches!(symbol, Symbol::Shared(_) | Symbol::Function(_)),
            None => true,
        },
    }
}

/// The offset's address in the part of block `rank`; what part it lies in now does not matter.
pub(super) fn at_rank(l: &mut L<'_, '_, '_>, offset: Value, rank: Value) -> Value {
    let mask = l.b.constant(Ty::B64, (1 << CLUSTER_SHIFT) - 1);
    let within = l.b.emit1(Op::Int(IntBin::And, U64), &[offset, mask], Ty::B64);
    let rank = l.resize(rank, Ty::B64, false);
    let shift = l.b.constant(Ty::B32, CLUSTER_SHIFT.into());
    let start = l.b.emit1(Op::Int(IntBin::Shl, U64), &[rank, shift], Ty::B64);
    l.b.emit1(Op::Int(IntBin::Or, U64), &[within, start], Ty::B64)
}

fn address_type(i: &mut I<'_, '_>) -> Lower<Type> {
    let ty = i.ty()?;
    // As ptxas has it, an address may have a sign.
    match ty {
        Type::U32 | Type::S32 => Ok(Type::U32),
        Type::U64 | Type::S64 => Ok(Type::U64),
        _ => Err(Failure::Unsupported),
    }
}

/// `mapa{.shared::cluster}.type d, a, b`: the address of `a` in the shared memory of the cluster's block b; offsets in the
/// window with `.shared::cluster`, generic addresses without.
pub(super) fn mapa<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    let is_offset = i.take("shared::cluster");
    let ty = address_type(i)?;
    i.done()?;
    let [d, a, b] = i.operands()?;
    let a = offset(l, a, ty, is_offset)?;
    let b = l.value(b, Type::U32)?;
    let mut address = at_rank(l, a, b);
    if !is_offset {
        address = l.b.emit1(Op::Cvta { space: Space::Shared, to_generic: true }, &[address], Ty::B64);
    }
    let address = l.resize(address, register_ty(ty), false);
    l.write(d, address)
}

/// `getctarank{.shared::cluster}.type d, a`: which block of the cluster the address `a` belongs to.
pub(super) fn getctarank<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    let is_offset = i.take("shared::cluster");
    let ty = address_type(i)?;
    i.done()?;
    let [d, a] = i.operands()?;
    let a = offset(l, a, ty, is_offset)?;
    let shift = l.b.constant(Ty::B32, CLUSTER_SHIFT.into());
    let rank = l.b.emit1(Op::Int(IntBin::Shr, U64), &[a, shift], Ty::B64);
    let rank = l.resize(rank, Ty::B32, false);
    l.write(d, rank)
}
