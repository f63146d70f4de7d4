//! Copies between tensors and shared memory: `cp{.reduce}.async.bulk.tensor`, its prefetch, and `tensormap`.
//!
//! What a tensor map says is known at run time only, so the copy itself is the host side's ([`Op::TensorCopy`]); what waits
//! for it, and the blocks it goes to, are lowered here.

use ptx::ast::{Operand, OperandKind, Type};

use super::bulk::{self, Kind, expect_operands, for_each_block, in_block};
use super::function::Lowerer;
use super::instruction::{Failure, Instr, Lower, fail};
use super::mbarrier::Object;
use super::operand::split;
use crate::ir::{IntBin, Op, Order, Space, TensorCopy, TensorDirection, Ty, Value};

type L<'l, 'i, 'a> = Lowerer<'l, 'i, 'a>;
type I<'i, 'a> = Instr<'i, 'a>;

fn rank(i: &mut I<'_, '_>) -> Lower<u8> {
    i.need_one(&[("1d", 1), ("2d", 2), ("3d", 3), ("4d", 4), ("5d", 5)])
}

/// `[map, {coordinates}]`: the map's generic address and five coordinates.
fn tensor<'a>(l: &mut L<'_, '_, 'a>, operand: &Operand<'a>, rank: u8) -> Lower<Vec<Value>> {
    let OperandKind::Address(address) = &operand.kind else {
        return fail(operand.span, "expected a tensor map and coordinates in brackets");
    };
    let (base, offset) = split(&address.base)?;
    let Some(name) = base else { return fail(operand.span, "expected the address of a tensor map") };
    let map = match l.entity(name) {
        Some(super::scope::Entity::Register(_)) => {
            let register = l.register(name, operand.span)?;
            let [var] = register.vars.as_slice() else { return fail(operand.span, "not an address") };
            let value = l.b.read(*var);
            l.resize(value, Ty::B64, false)
        }
        _ => {
            let (space, value) = l.symbol_address(name, operand.span)?;
            l.b.emit1(Op::Cvta { space, to_generic: true }, &[value], Ty::B64)
        }
    };
    let offset = l.long(offset as u64);
    let map = l.long_op(IntBin::Add, map, offset);
    let list = match address.more.as_slice() {
        [only] => match &only.kind {
            OperandKind::Vector(list) => list.as_slice(),
            _ => std::slice::from_ref(only),
        },
        _ => &[],
    };
    if list.len() != usize::from(rank) {
        return fail(operand.span, format!("expected {rank} coordinates"));
    }
    let mut values = vec![map];
    for coordinate in list {
        values.push(l.value(coordinate, Type::S32)?);
    }
    values.resize_with(6, || l.b.constant(Ty::B32, 0));
    Ok(values)
}

/// The 16-bit offsets of `.im2col`, lowest first in one value; there are two fewer than dimensions.
fn offsets<'a>(l: &mut L<'_, '_, 'a>, operand: &Operand<'a>, rank: u8) -> Lower<Value> {
    let list = match &operand.kind {
        OperandKind::Vector(list) => list.as_slice(),
        _ => std::slice::from_ref(operand),
    };
    if list.len() + 2 != usize::from(rank) {
        return fail(operand.span, format!("expected {} offsets", rank.saturating_sub(2)));
    }
    let mut all = l.long(0);
    for (nth, offset) in list.iter().enumerate() {
        let value = l.value(offset, Type::U16)?;
        let value = l.resize(value, Ty::B64, false);
        let value = l.long_shift(IntBin::Shl, value, 16 * nth as u32);
        all = l.long_op(IntBin::Or, all, value);
    }
    Ok(all)
}

fn generic(l: &mut L<'_, '_, '_>, object: &Object) -> Value {
    let offset = l.long(object.offset as u64);
    let address = l.long_op(IntBin::Add, object.base, offset);
    l.b.emit1(Op::Cvta { space: Space::Shared, to_generic: true }, &[address], Ty::B64)
}

/// `cp{.reduce}.async.bulk.tensor.dim.dst.src{.redOp}{.mode}.completion… `: what stands behind `tensor`.
pub(super) fn copy<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>, kind: Kind) -> Lower {
    let rank = rank(i)?;
    match bulk::direction(i)? {
        ("shared::cluster", "global") if kind == Kind::Copy => load(l, i, rank, true),
        ("shared::cta", "global") if kind == Kind::Copy => load(l, i, rank, false),
        ("global", "shared::cta") => store(l, i, rank, kind),
        _ => Err(Failure::Unsupported),
    }
}

fn load<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>, rank: u8, to_cluster: bool) -> Lower {
    let im2col = !i.take("tile") && i.take("im2col");
    i.need_one(&[("mbarrier::complete_tx::bytes", ())])?;
    let multicast = to_cluster && i.take("multicast::cluster");
    let policy = i.cache_hints();
    i.done()?;
    if im2col && rank < 3 {
        return Err(Failure::Unsupported);
    }
    let flags = [im2col, multicast, policy];
    expect_operands(i, 3 + flags.into_iter().filter(|&flag| flag).count())?;
    let target = l.object(i.operand(0)?, Some(Space::Shared))?;
    let mut args = tensor(l, i.operand(1)?, rank)?;
    let object = bulk::mbarrier(l, i.operand(2)?)?;
    let offsets = if im2col { offsets(l, i.operand(3)?, rank)? } else { l.long(0) };
    args.push(offsets);
    let op = Op::TensorCopy(TensorCopy { direction: TensorDirection::Load, rank, im2col });
    let arrive = |l: &mut L<'_, 'i, 'a>, target: Object, object: Object| {
        let mut args = args.clone();
        args.insert(1, generic(l, &target));
        let bytes = l.b.emit1(op.clone(), &args, Ty::B32);
        let bytes = l.resize(bytes, Ty::B64, false);
        l.complete_transactions(&object, bytes);
        Ok(())
    };
    if !multicast {
        return arrive(l, target, object);
    }
    let mask = l.value(i.operand(3 + usize::from(im2col))?, Type::U16)?;
    for_each_block(l, mask, |l, rank| {
        let (target, object) = (in_block(l, &target, rank), in_block(l, &object, rank));
        arrive(l, target, object)
    })
}

fn store<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>, rank: u8, kind: Kind) -> Lower {
    let direction = match kind {
        Kind::Copy => TensorDirection::Store,
        Kind::Reduce => TensorDirection::Reduce(bulk::reduction_op(i)?),
    };
    let im2col = !i.take("tile") && i.take("im2col_no_offs");
    i.need_one(&[("bulk_group", ())])?;
    let policy = i.cache_hints();
    i.done()?;
    if im2col && rank < 3 {
        return Err(Failure::Unsupported);
    }
    expect_operands(i, 2 + usize::from(policy))?;
    let mut args = tensor(l, i.operand(0)?, rank)?;
    let source = l.object(i.operand(1)?, Some(Space::Shared))?;
    args.insert(1, generic(l, &source));
    args.push(l.long(0));
    l.b.emit1(Op::TensorCopy(TensorCopy { direction, rank, im2col }), &args, Ty::B32);
    Ok(())
}

/// `cp.async.bulk.prefetch.tensor.dim.L2.global{.mode}{.L2::cache_hint} [map, {…}]{, offsets}{, policy}`: nothing to do.
pub(super) fn prefetch<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    let rank = rank(i)?;
    i.need_one(&[("L2", ())])?;
    i.need_one(&[("global", ())])?;
    let im2col = !i.take("tile") && i.take("im2col");
    let policy = i.cache_hints();
    i.done()?;
    expect_operands(i, 1 + usize::from(im2col) + usize::from(policy))?;
    tensor(l, i.operand(0)?, rank)?;
    if im2col {
        offsets(l, i.operand(1)?, rank)?;
    }
    Ok(())
}

/// `tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.scope.sync.aligned [dst], [src], 128`: copies a
/// map and orders it before later uses. (`tensormap.replace` needs an `a` target.)
pub(super) fn tensormap<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    for word in ["cp_fenceproxy", "global", "shared::cta", "tensormap::generic", "release", "sync", "aligned"]
    {
        i.need_one(&[(word, ())])?;
    }
    let scope = i.scope().ok_or(Failure::Unsupported)?;
    i.done()?;
    let [to, from, size] = i.operands()?;
    let target = l.object(to, Some(Space::Global))?;
    let source = l.object(from, Some(Space::Shared))?;
    let size = l.count(Some(size))?;
    bulk::copy_loop(l, &target, &source, size);
    l.b.emit(Op::Fence { order: Order::Release, scope }, &[], &[]);
    Ok(())
}
