//! Bulk copies and reductions, and the single stores and reductions that report to an mbarrier. They may complete at any
//! time before they are waited for; here they complete at once.

use ptx::ast::{Operand, OperandKind, Type};

use super::cluster::at_rank;
use super::function::Lowerer;
use super::instruction::{Failure, Instr, Lower, fail, float, int, register_ty};
use super::layout::scalar_bytes;
use super::mbarrier::Object;
use super::operand::space;
use super::tensor;
use crate::ir::{
    AtomOp, AtomTy, Cmp, Float, IntBin, Mem, Op, Order, Scope, Space, Special, Ty, U32, U64, Value,
};

type L<'l, 'i, 'a> = Lowerer<'l, 'i, 'a>;
type I<'i, 'a> = Instr<'i, 'a>;

/// Which family the instruction is of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// `cp.async.bulk`
    Copy,
    /// `cp.reduce.async.bulk`
    Reduce,
}

/// What each element of a reduction does.
#[derive(Clone, Copy)]
struct Reduction {
    op: AtomOp,
    atom: AtomTy,
    ty: Type,
}

/// `add`, `min` … of a reduction.
pub(super) fn reduction_op(i: &mut I<'_, '_>) -> Lower<AtomOp> {
    i.need_one(&[
        ("add", AtomOp::Add),
        ("min", AtomOp::Min),
        ("max", AtomOp::Max),
        ("inc", AtomOp::Inc),
        ("dec", AtomOp::Dec),
        ("and", AtomOp::And),
        ("or", AtomOp::Or),
        ("xor", AtomOp::Xor),
    ])
}

/// The manual's table of operations and types; additions of halves say `.noftz`.
fn reduction(i: &mut I<'_, '_>, to_shared: bool) -> Lower<Reduction> {
    let op = reduction_op(i)?;
    let noftz = i.take("noftz");
    let ty = i.ty()?;
    let is_half = matches!(ty, Type::F16 | Type::Bf16);
    let legal = match op {
        AtomOp::Add if to_shared => matches!(ty, Type::U32 | Type::S32 | Type::U64),
        AtomOp::Min | AtomOp::Max if to_shared => matches!(ty, Type::U32 | Type::S32),
        AtomOp::And | AtomOp::Or | AtomOp::Xor if to_shared => ty == Type::B32,
        AtomOp::Add => is_half || matches!(ty, Type::U32 | Type::S32 | Type::U64 | Type::F32 | Type::F64),
        AtomOp::Min | AtomOp::Max => is_half || matches!(ty, Type::U32 | Type::S32 | Type::U64 | Type::S64),
        AtomOp::Inc | AtomOp::Dec => ty == Type::U32,
        _ => matches!(ty, Type::B32 | Type::B64),
    };
    if !legal || noftz != (is_half && op == AtomOp::Add) {
        return Err(Failure::Unsupported);
    }
    let atom = match (int(ty), float(ty)) {
        (Some(int), _) => AtomTy::Int(int),
        (_, Some(float)) => AtomTy::Float(float),
        _ => return Err(Failure::Unsupported),
    };
    Ok(Reduction { op, atom, ty })
}

/// `cp{.reduce}.async.bulk.dst.src.completion…{.redOp.type}`: what stands behind `bulk`.
pub(super) fn bulk<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>, kind: Kind) -> Lower {
    if kind == Kind::Copy {
        if i.take("commit_group") {
            i.done()?;
            return i.operands::<0>().map(|_| ());
        }
        if i.take("wait_group") {
            i.take("read");
            i.done()?;
            return i.operands::<1>().map(|_| ());
        }
        if i.take("prefetch") {
            return if i.take("tensor") { tensor::prefetch(l, i) } else { prefetch(l, i) };
        }
    }
    if i.take("tensor") {
        return tensor::copy(l, i, kind);
    }
    copy(l, i, kind)
}

/// `cp.async.bulk.prefetch.L2.global{.L2::cache_hint} [a], size{, policy}`: nothing to do.
fn prefetch<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    i.need_one(&[("L2", ())])?;
    i.need_one(&[("global", ())])?;
    let policy = i.cache_hints();
    i.done()?;
    expect_operands(i, 2 + usize::from(policy))?;
    l.object(i.operand(0)?, Some(Space::Global))?;
    l.value(i.operand(1)?, Type::U32).map(|_| ())
}

pub(super) fn expect_operands(i: &I<'_, '_>, expected: usize) -> Lower {
    if i.count() == expected {
        return Ok(());
    }
    let message = format!("'{}' takes {expected} operands, not {}", i.ast.full_name(), i.count());
    fail(i.ast.span, message)
}

/// The spaces as written: destination, then source.
pub(super) fn direction(i: &mut I<'_, '_>) -> Lower<(&'static str, &'static str)> {
    // Taken in the order written.
    let names = ["shared::cluster", "shared::cta", "global"].map(|name| (name, name));
    Ok((i.need_one(&names)?, i.need_one(&names)?))
}

fn copy<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>, kind: Kind) -> Lower {
    i.take("weak");
    let (to, from) = direction(i)?;
    let reports = to != "global";
    i.need_one(&[(if reports { "mbarrier::complete_tx::bytes" } else { "bulk_group" }, ())])?;
    let is_copy = kind == Kind::Copy;
    let may_be_many = is_copy && (to, from) == ("shared::cluster", "global");
    let multicast = if may_be_many { multicast(i) } else { None };
    let ignores = is_copy && (to, from) == ("shared::cta", "global") && i.take("ignore_oob");
    let masks = is_copy && to == "global" && i.take("cp_mask");
    let policy = (to == "global" || from == "global") && i.cache_hints();
    let legal = match (to, from) {
        ("shared::cluster", "global") | ("shared::cta", "global") => is_copy,
        ("shared::cluster", "shared::cta") | ("global", "shared::cta") => true,
        _ => false,
    };
    if !legal {
        return Err(Failure::Unsupported);
    }
    let reduction = if is_copy { None } else { Some(reduction(i, reports)?) };
    i.done()?;
    let flags = [reports, ignores, ignores, multicast.is_some(), masks, policy];
    expect_operands(i, 3 + flags.into_iter().filter(|&flag| flag).count())?;
    let target = l.object(i.operand(0)?, space(to))?;
    let source = l.object(i.operand(1)?, space(from))?;
    let size = l.count(Some(i.operand(2)?))?;
    let mut at = 3;
    let mut next = |is_there: bool| {
        at += usize::from(is_there);
        at - 1
    };
    if ignores {
        let left = l.count(Some(i.operand(next(true))?))?;
        let right = l.count(Some(i.operand(next(true))?))?;
        // The bytes at both ends are not read; what arrives in their place is not said.
        let end = l.long_op(IntBin::Sub, size, right);
        bytes_loop(l, &target, &source, left, end, None);
        let object = mbarrier(l, i.operand(next(true))?)?;
        l.complete_transactions(&object, size);
        return Ok(());
    }
    if let Some(reduction) = reduction {
        reduce_loop(l, &target, &source, size, reduction);
    } else if masks {
        next(policy);
        let mask = l.value(i.operand(next(true))?, Type::U16)?;
        let mask = l.resize(mask, Ty::B64, false);
        let zero = l.long(0);
        bytes_loop(l, &target, &source, zero, size, Some(mask));
    } else if multicast.is_none() {
        copy_loop(l, &target, &source, size);
    }
    if !reports {
        return Ok(());
    }
    let object = mbarrier(l, i.operand(next(true))?)?;
    let Some(mask_type) = multicast else {
        l.complete_transactions(&object, size);
        return Ok(());
    };
    let mask = l.value(i.operand(next(true))?, mask_type)?;
    for_each_block(l, mask, |l, rank| {
        let target = in_block(l, &target, rank);
        copy_loop(l, &target, &source, size);
        let object = in_block(l, &object, rank);
        l.complete_transactions(&object, size);
        Ok(())
    })
}

/// The mbarrier operand of an asynchronous operation.
pub(super) fn mbarrier<'a>(l: &mut L<'_, '_, 'a>, operand: &Operand<'a>) -> Lower<Object> {
    if !matches!(operand.kind, OperandKind::Address(_)) {
        return fail(operand.span, "expected the address of an mbarrier");
    }
    l.object(operand, Some(Space::Shared))
}

/// The same object by its offset in the shared window.
pub(super) fn in_window(l: &mut L<'_, '_, '_>, object: Object) -> Object {
    if object.space == Space::Shared {
        return object;
    }
    let op = Op::Cvta { space: Space::Shared, to_generic: false };
    Object { space: Space::Shared, base: l.b.emit1(op, &[object.base], Ty::B64), ..object }
}

/// What lies at the same place in the shared memory of another block of the cluster.
pub(super) fn in_block(l: &mut L<'_, '_, '_>, object: &Object, rank: Value) -> Object {
    let offset = l.long(object.offset as u64);
    let address = l.long_op(IntBin::Add, object.base, offset);
    Object { space: Space::Shared, base: at_rank(l, address, rank), offset: 0 }
}

/// Takes `.multicast::cluster` or `.multicast::cluster::32b`: the type of the mask that says to which blocks.
pub(super) fn multicast(i: &mut I<'_, '_>) -> Option<Type> {
    i.take_one(&[("multicast::cluster", Type::U16), ("multicast::cluster::32b", Type::U32)])
}

/// Runs `body` for every block of the cluster whose bit is set in the `mask` of 16 or 32 bits.
pub(super) fn for_each_block<'i, 'a>(
    l: &mut L<'_, 'i, 'a>,
    mask: Value,
    body: impl FnOnce(&mut L<'_, 'i, 'a>, Value) -> Lower,
) -> Lower {
    let mask = l.resize(mask, Ty::B32, false);
    let at = l.b.new_var(Ty::B32);
    let zero = l.b.constant(Ty::B32, 0);
    l.b.write(at, zero);
    let n_blocks = l.b.emit1(Op::Special(Special::ClusterNctaRank), &[], Ty::B32);
    let [check, test, inside, next, behind] = std::array::from_fn(|_| l.b.new_block());
    l.b.enter(check);
    let rank = l.b.read(at);
    let more = l.b.emit1(Op::Icmp(Cmp::Lt, U32), &[rank, n_blocks], Ty::Pred);
    l.b.branch(more, test, behind);
    l.b.enter(test);
    let rest = l.b.emit1(Op::Int(IntBin::Shr, U32), &[mask, rank], Ty::B32);
    let one = l.b.constant(Ty::B32, 1);
    let bit = l.b.emit1(Op::Int(IntBin::And, U32), &[rest, one], Ty::B32);
    let is_set = l.b.emit1(Op::Icmp(Cmp::Ne, U32), &[bit, zero], Ty::Pred);
    l.b.branch(is_set, inside, next);
    l.b.enter(inside);
    body(l, rank)?;
    l.b.jump(next);
    l.b.enter(next);
    let one = l.b.constant(Ty::B32, 1);
    let after = l.b.emit1(Op::Int(IntBin::Add, U32), &[rank, one], Ty::B32);
    l.b.write(at, after);
    l.b.jump(check);
    l.b.enter(behind);
    Ok(())
}

/// `body` with every multiple of `step` from `start` on that is below `end`.
fn for_each_offset<'i, 'a>(
    l: &mut L<'_, 'i, 'a>,
    (start, end, step): (Value, Value, u64),
    body: impl FnOnce(&mut L<'_, 'i, 'a>, Value),
) {
    let at = l.b.new_var(Ty::B64);
    l.b.write(at, start);
    let (check, inside, behind) = (l.b.new_block(), l.b.new_block(), l.b.new_block());
    l.b.enter(check);
    let index = l.b.read(at);
    let more = l.b.emit1(Op::Icmp(Cmp::Lt, U64), &[index, end], Ty::Pred);
    l.b.branch(more, inside, behind);
    l.b.enter(inside);
    body(l, index);
    let step = l.long(step);
    let next = l.long_op(IntBin::Add, index, step);
    l.b.write(at, next);
    l.b.jump(check);
    l.b.enter(behind);
}

pub(super) fn load(object: &Object, bits: u8) -> Op {
    let mem = Mem { bits, signed: false };
    Op::Load { space: object.space, mem, offset: object.offset, order: Order::Weak, scope: Scope::Sys }
}

pub(super) fn store(object: &Object, bits: u8) -> Op {
    let mem = Mem { bits, signed: false };
    Op::Store { space: object.space, mem, offset: object.offset, order: Order::Weak, scope: Scope::Sys }
}

/// Sizes are multiples of 16, and so are the addresses.
pub(super) fn copy_loop(l: &mut L<'_, '_, '_>, target: &Object, source: &Object, size: Value) {
    let zero = l.long(0);
    for_each_offset(l, (zero, size, 16), |l, index| {
        let from = l.long_op(IntBin::Add, source.base, index);
        let words = l.b.emit(load(source, 32), &[from], &[Ty::B32; 4]);
        let to = l.long_op(IntBin::Add, target.base, index);
        let mut args = vec![to];
        args.extend(words);
        l.b.emit(store(target, 32), &args, &[]);
    });
}

/// Byte by byte; with a mask, those whose bit is set, by their place in 16 bytes.
pub(super) fn bytes_loop(
    l: &mut L<'_, '_, '_>,
    target: &Object,
    source: &Object,
    start: Value,
    end: Value,
    mask: Option<Value>,
) {
    for_each_offset(l, (start, end, 1), |l, index| {
        let behind = l.b.new_block();
        if let Some(mask) = mask {
            let place = l.b.emit1(Op::Trunc, &[index], Ty::B32);
            let low = l.b.constant(Ty::B32, 15);
            let place = l.b.emit1(Op::Int(IntBin::And, U32), &[place, low], Ty::B32);
            let rest = l.b.emit1(Op::Int(IntBin::Shr, U64), &[mask, place], Ty::B64);
            let bit = l.b.emit1(Op::Trunc, &[rest], Ty::B32);
            let one = l.b.constant(Ty::B32, 1);
            let bit = l.b.emit1(Op::Int(IntBin::And, U32), &[bit, one], Ty::B32);
            let is_set = l.b.emit1(Op::Icmp(Cmp::Eq, U32), &[bit, one], Ty::Pred);
            let inside = l.b.new_block();
            l.b.branch(is_set, inside, behind);
            l.b.enter(inside);
        }
        let from = l.long_op(IntBin::Add, source.base, index);
        let byte = l.b.emit1(load(source, 8), &[from], Ty::B16);
        let to = l.long_op(IntBin::Add, target.base, index);
        l.b.emit(store(target, 8), &[to, byte], &[]);
        l.b.jump(behind);
        l.b.enter(behind);
    });
}

fn reduce_loop(l: &mut L<'_, '_, '_>, target: &Object, source: &Object, size: Value, how: Reduction) {
    let zero = l.long(0);
    let bytes = scalar_bytes(how.ty);
    for_each_offset(l, (zero, size, bytes), |l, index| {
        let from = l.long_op(IntBin::Add, source.base, index);
        let value = l.b.emit1(load(source, (bytes * 8) as u8), &[from], register_ty(how.ty));
        let to = l.long_op(IntBin::Add, target.base, index);
        l.b.emit(atomic(target, how.op, how.atom, Order::Relaxed, Scope::Gpu), &[to, value], &[]);
    });
}

fn atomic(object: &Object, op: AtomOp, ty: AtomTy, order: Order, scope: Scope) -> Op {
    Op::Atomic { space: object.space, op, ty, offset: object.offset, order, scope }
}

/// `st.async{.weak}{.shared::cluster}.mbarrier::complete_tx::bytes{.vec}.type [a], b, [mbar]`
pub(super) fn store_async<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    i.need_one(&[("async", ())])?;
    if i.take("release") {
        return store_released(l, i);
    }
    let is_weak = i.take("weak");
    let is_of_cluster = !is_weak && i.take("cluster");
    let spaces: &[&str] = match is_of_cluster {
        true => &["shared::cluster"],
        false => &["shared::cluster", "shared::cta", "shared"],
    };
    let space = i.take_map(|word| spaces.contains(&word).then_some(Space::Shared));
    i.need_one(&[("mbarrier::complete_tx::bytes", ())])?;
    let lanes = i.take_one(&[("v2", 2usize), ("v4", 4)]).unwrap_or(1);
    let ty = i.ty()?;
    i.done()?;
    if !matches!(ty.bits(), 32 | 64) || !(int(ty).is_some() || matches!(ty, Type::F32 | Type::F64)) {
        return Err(Failure::Unsupported);
    }
    let [a, b, mbar] = i.operands()?;
    let target = l.object(a, space)?;
    let values = l.values(b, ty)?;
    if values.len() != lanes {
        return fail(b.span, format!("expected {lanes} values"));
    }
    let object = l.object(mbar, space)?;
    let mut args = vec![target.base];
    args.extend(values);
    l.b.emit(store(&target, ty.bits() as u8), &args, &[]);
    let bytes = l.long(scalar_bytes(ty) * lanes as u64);
    l.complete_transactions(&object, bytes);
    Ok(())
}

/// `red.async{.relaxed}{.cluster}{.shared::cluster}.mbarrier::complete_tx::bytes.op.type [a], b, [mbar]`
pub(super) fn red_async<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    i.need_one(&[("async", ())])?;
    if i.take("release") {
        return reduce_released(l, i);
    }
    i.take("relaxed");
    i.take("cluster");
    let space = i.take("shared::cluster").then_some(Space::Shared);
    i.need_one(&[("mbarrier::complete_tx::bytes", ())])?;
    let op = reduction_op(i)?;
    let ty = i.ty()?;
    i.done()?;
    let Some(int) = int(ty).filter(|_| is_reduced(op, ty)) else { return Err(Failure::Unsupported) };
    let [a, b, mbar] = i.operands()?;
    let target = l.object(a, space)?;
    let value = l.value(b, ty)?;
    let object = l.object(mbar, space)?;
    let op = atomic(&target, op, AtomTy::Int(int), Order::Relaxed, Scope::Cluster);
    l.b.emit(op, &[target.base, value], &[]);
    let bytes = l.long(scalar_bytes(ty));
    l.complete_transactions(&object, bytes);
    Ok(())
}

/// Whether an asynchronous reduction has that operation for the type.
fn is_reduced(op: AtomOp, ty: Type) -> bool {
    match op {
        AtomOp::Inc | AtomOp::Dec => ty == Type::U32,
        AtomOp::Min | AtomOp::Max => matches!(ty, Type::U32 | Type::S32),
        AtomOp::Add => matches!(ty, Type::U32 | Type::S32 | Type::U64),
        _ => ty == Type::B32,
    }
}

/// `{.mmio}.release.scope{.global}`: what is asynchronous is done at once.
fn released(i: &mut I<'_, '_>) -> Lower<(Scope, Option<Space>)> {
    i.take("mmio");
    let scope = i.scope().ok_or(Failure::Unsupported)?;
    Ok((scope, i.take("global").then_some(Space::Global)))
}

/// `st.async{.mmio}.release.scope{.global}.type [a], b`
fn store_released<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    let (scope, space) = released(i)?;
    let ty = i.ty()?;
    i.done()?;
    if !(int(ty).is_some() || matches!(ty, Type::F32 | Type::F64)) {
        return Err(Failure::Unsupported);
    }
    let [a, b] = i.operands()?;
    let target = l.object(a, space)?;
    let value = l.value(b, ty)?;
    let mem = Mem { bits: ty.bits() as u8, signed: false };
    let op = Op::Store { space: target.space, mem, offset: target.offset, order: Order::Release, scope };
    l.b.emit(op, &[target.base, value], &[]);
    Ok(())
}

/// `red.async{.mmio}.release.scope{.global}.op.type [a], b`
fn reduce_released<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    let (scope, space) = released(i)?;
    let op = reduction_op(i)?;
    let ty = i.ty()?;
    i.done()?;
    let legal = is_reduced(op, ty) || op == AtomOp::Add && ty == Type::S64;
    let Some(int) = int(ty).filter(|_| legal) else { return Err(Failure::Unsupported) };
    let [a, b] = i.operands()?;
    let target = l.object(a, space)?;
    let value = l.value(b, ty)?;
    l.b.emit(atomic(&target, op, AtomTy::Int(int), Order::Release, scope), &[target.base, value], &[]);
    Ok(())
}

/// `multimem.…`: a multicast address stands for one place on each of its devices. This is the only device and a set of
/// devices cannot be made, so an address has one place and the operations are those on it.
pub(super) fn multimem<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    if i.take("cp") {
        let kind = if i.take("reduce") { Kind::Reduce } else { Kind::Copy };
        i.need_one(&[("async", ())])?;
        i.need_one(&[("bulk", ())])?;
        if !i.ast.has("global") || !i.ast.has("shared::cta") || !i.ast.has("bulk_group") {
            return Err(Failure::Unsupported);
        }
        return copy(l, i, kind);
    }
    let what = i.need_one(&[("ld_reduce", What::Load), ("st", What::Store), ("red", What::Reduce)])?;
    let order = i.order();
    let scope = i.scope().unwrap_or_default();
    let space = i.take("global").then_some(Space::Global);
    let op = if what == What::Store { None } else { Some(reduction_op(i)?) };
    i.take_map(|word| matches!(word, "acc::f32" | "acc::f16").then_some(()));
    let lanes = i.take_one(&[("v2", 2usize), ("v4", 4), ("v8", 8)]).unwrap_or(1);
    let ty = i.ty()?;
    i.done()?;
    let is_float = float(ty).is_some();
    let is_mini = is_mini(ty) && (32..=128).contains(&(lanes as u32 * ty.bits()));
    let legal = match op {
        _ if is_mini => {
            what != What::Reduce && matches!(op, None | Some(AtomOp::Add | AtomOp::Min | AtomOp::Max))
        }
        None => int(ty).is_some_and(|it| it.bits >= 32) || is_float,
        Some(AtomOp::Add) => is_float || matches!(ty, Type::U32 | Type::S32 | Type::U64),
        Some(AtomOp::Min | AtomOp::Max) => {
            matches!(float(ty), Some(Float::F16 | Float::Bf16 | Float::F16x2 | Float::Bf16x2))
                || matches!(ty, Type::U32 | Type::S32 | Type::U64 | Type::S64)
        }
        Some(AtomOp::And | AtomOp::Or | AtomOp::Xor) => matches!(ty, Type::B32 | Type::B64),
        Some(_) => false,
    };
    if !legal {
        return Err(Failure::Unsupported);
    }
    let [first, second] = i.operands()?;
    let (address, other) = if what == What::Load { (second, first) } else { (first, second) };
    let object = l.object(address, space)?;
    let bits = ty.bits() as u8;
    let mem = Mem { bits, signed: false };
    if what == What::Load {
        let vars = l.destinations(other)?;
        if vars.len() != lanes {
            return fail(other.span, format!("expected {lanes} destinations"));
        }
        let order = order.unwrap_or_default();
        let op = Op::Load { space: object.space, mem, offset: object.offset, order, scope };
        let values = l.b.emit(op, &[object.base], &vec![register_ty(ty); lanes]);
        for (var, value) in vars.into_iter().zip(values) {
            l.write_extended(var, value, false, other.span)?;
        }
        return Ok(());
    }
    let values = l.values(other, ty)?;
    if values.len() != lanes {
        return fail(other.span, format!("expected {lanes} values"));
    }
    let Some(op) = op else {
        let order = order.unwrap_or_default();
        let op = Op::Store { space: object.space, mem, offset: object.offset, order, scope };
        let mut args = vec![object.base];
        args.extend(values);
        l.b.emit(op, &args, &[]);
        return Ok(());
    };
    let atom = match (int(ty), float(ty)) {
        (Some(int), _) => AtomTy::Int(int),
        (_, Some(float)) => AtomTy::Float(float),
        _ => return Err(Failure::Unsupported),
    };
    for (lane, value) in values.into_iter().enumerate() {
        let offset = object.offset.wrapping_add(lane as i64 * i64::from(bits / 8));
        let order = order.unwrap_or(Order::Relaxed);
        let op = Op::Atomic { space: object.space, op, ty: atom, offset, order, scope };
        l.b.emit(op, &[object.base, value], &[]);
    }
    Ok(())
}

/// Whether it is one, two or four floats of 8 bits.
fn is_mini(ty: Type) -> bool {
    use Type::{E4m3, E4m3x2, E4m3x4, E5m2, E5m2x2, E5m2x4};
    matches!(ty, E4m3 | E4m3x2 | E4m3x4 | E5m2 | E5m2x2 | E5m2x4)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Load,
    Store,
    Reduce,
}
