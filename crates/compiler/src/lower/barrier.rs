//! Barriers of a block, and fences.

use ptx::ast::Type;

use super::function::Lowerer;
use super::instruction::{Failure, Instr, Lower};
use crate::ir::{BarrierKind, Op, Order, Scope, Ty};

type L<'l, 'i, 'a> = Lowerer<'l, 'i, 'a>;
type I<'i, 'a> = Instr<'i, 'a>;

/// `bar{.cta}.sync a{, b}`, `.arrive a, b`, `.red.op d, a{, b}, {!}p`, `bar.warp.sync mask`: all lanes of the warp
/// execute the same one.
pub(super) fn bar<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    if i.take("warp") {
        i.need_one(&[("sync", ())])?;
        i.done()?;
        let [mask] = i.operands()?;
        let mask = l.value(mask, Type::B32)?;
        l.b.emit(Op::WarpSync, &[mask], &[]);
        return Ok(());
    }
    block_barrier(l, i, true)
}

/// `barrier{.cta}.sync{.aligned} a{, b}` and so on; not aligned unless it says so.
pub(super) fn barrier<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    if i.take("cluster") {
        return cluster(l, i);
    }
    let aligned = i.take("aligned");
    block_barrier(l, i, aligned)
}

/// `barrier.cluster.arrive{.release,.relaxed}{.aligned}`, `barrier.cluster.wait{.acquire}{.aligned}`
fn cluster<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    let wait = i.need_one(&[("arrive", false), ("wait", true)])?;
    // A cluster's blocks share an OS thread, which sees its own writes in order: every form is as strong as the strongest.
    let order = i.order();
    let fits = match order {
        None => true,
        Some(Order::Acquire) => wait,
        Some(Order::Release | Order::Relaxed) => !wait,
        Some(_) => false,
    };
    if !fits {
        return Err(Failure::Unsupported);
    }
    i.take("aligned");
    i.done()?;
    let [] = i.operands()?;
    l.b.emit(Op::ClusterBarrier { wait }, &[], &[]);
    Ok(())
}

fn block_barrier<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>, aligned: bool) -> Lower {
    i.take("cta");
    let kind = if i.take("red") {
        i.need_one(&[
            ("popc", BarrierKind::RedPopc),
            ("and", BarrierKind::RedAnd),
            ("or", BarrierKind::RedOr),
        ])?
    } else {
        i.need_one(&[("sync", BarrierKind::Sync), ("arrive", BarrierKind::Arrive)])?
    };
    let op = Op::Barrier { kind, aligned };
    if matches!(kind, BarrierKind::Sync | BarrierKind::Arrive) {
        i.done()?;
        let mut args = vec![];
        for index in 0..i.count().clamp(1, 2) {
            args.push(l.value(i.operand(index)?, Type::U32)?);
        }
        if i.count() > 2 || kind == BarrierKind::Arrive && args.len() != 2 {
            return Err(Failure::Unsupported);
        }
        l.b.emit(op, &args, &[]);
        return Ok(());
    }
    let (ty, result) = match kind {
        BarrierKind::RedPopc => (Type::U32, Ty::B32),
        _ => (Type::Pred, Ty::Pred),
    };
    if i.take_map(Type::parse).is_some_and(|written| written != ty) {
        return Err(Failure::Unsupported);
    }
    i.done()?;
    let count = i.count();
    if !(3..=4).contains(&count) {
        return Err(Failure::Unsupported);
    }
    let mut args = vec![];
    for index in 1..count - 1 {
        args.push(l.value(i.operand(index)?, Type::U32)?);
    }
    args.push(l.predicate(i.operand(count - 1)?)?);
    let value = l.b.emit1(op, &args, result);
    l.write(i.operand(0)?, value)
}

/// `membar.{cta,gl,sys}`: as `fence.sc` of that scope.
pub(super) fn membar<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    if let Some(()) = proxy(l, i)? {
        return Ok(());
    }
    let scope = i.need_one(&[("cta", Scope::Cta), ("gl", Scope::Gpu), ("sys", Scope::Sys)])?;
    i.done()?;
    let [] = i.operands()?;
    l.b.emit(Op::Fence { order: Order::SeqCst, scope }, &[], &[]);
    Ok(())
}

/// `fence{.sc,.acq_rel,.acquire,.release}.scope`, `fence.proxy.…`
pub(super) fn fence<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    if let Some(()) = proxy(l, i)? {
        return Ok(());
    }
    if i.take("mbarrier_init") {
        // Orders the initialisation of an mbarrier before later operations of the cluster.
        i.take("release");
        i.take("cluster");
        i.done()?;
        l.b.emit(Op::Fence { order: Order::Release, scope: Scope::Cluster }, &[], &[]);
        return Ok(());
    }
    let order = i.order().unwrap_or(Order::AcqRel);
    if matches!(order, Order::Weak | Order::Volatile | Order::Relaxed) {
        return Err(Failure::Unsupported);
    }
    let scope = i.scope().ok_or(Failure::Unsupported)?;
    i.take_map(|word| word.starts_with("sync_restrict::").then_some(()));
    i.done()?;
    let [] = i.operands()?;
    l.b.emit(Op::Fence { order, scope }, &[], &[]);
    Ok(())
}

/// `….proxy.kind`: there is one way to memory here, so an ordinary fence orders them all.
fn proxy<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower<Option<()>> {
    if !i.take("proxy") {
        return Ok(None);
    }
    let kind = ["alias", "async", "async::generic", "tensormap::generic"].map(|kind| (kind, kind));
    let kind = i.need_one(&kind)?;
    if kind == "async" {
        i.take_map(|word| matches!(word, "global" | "shared::cta" | "shared::cluster").then_some(()));
    }
    let mut has_range = false;
    if kind.ends_with("generic") {
        has_range = i.take("acquire") && kind == "tensormap::generic";
        i.take("release");
        i.take_map(|word| word.starts_with("sync_restrict::").then_some(()));
        i.scope().ok_or(Failure::Unsupported)?;
    }
    i.done()?;
    if has_range {
        // The tensor map that is going to be used, and its size.
        let [address, _] = i.operands()?;
        l.place(address, None)?;
    } else {
        let [] = i.operands()?;
    }
    l.b.emit(Op::Fence { order: Order::SeqCst, scope: Scope::Sys }, &[], &[]);
    Ok(Some(()))
}
