//! One lane's memory accesses at an LLVM pointer: loads, stores, atomics, fences.
//!
//! Relaxed, volatile, acquire and release accesses are LLVM atomics of the same order (PTX demands natural alignment);
//! ordinary ones are plain. On a CPU a scope narrower than the process matters for fences only: a block runs on one OS
//! thread.

use super::builder::{Builder, Val};
use super::inst::{Unsupported, emit_pure};
use super::ty::{Scalar, Type};
use crate::ir::{AtomOp, AtomTy, Float, FloatBin, FloatMode, Mem, Op, Order, Scope, Ty};

/// `base + offset` as a pointer.
pub fn offset_pointer(b: &mut Builder, base: &Val, offset: i64) -> Val {
    if offset == 0 {
        return base.clone();
    }
    b.assign(base.ty, format_args!("getelementptr i8, {}, i64 {offset}", base.typed()))
}

/// Loads as many elements as there are `results`.
pub fn load(
    b: &mut Builder,
    pointer: &Val,
    mem: Mem,
    (order, scope): (Order, Scope),
    results: &[Type],
) -> Vec<Val> {
    let bits = u32::from(mem.bits);
    let bytes = i64::from(mem.bits / 8);
    let element = Type::int(bits, 1);
    let mut values = Vec::with_capacity(results.len());
    for (i, to) in results.iter().enumerate() {
        let at = offset_pointer(b, pointer, bytes * i as i64);
        let volatile = if order == Order::Volatile { "volatile " } else { "" };
        let value = match order {
            Order::Weak => b.assign(element, format_args!("load {element}, {}, align {bytes}", at.typed())),
            _ => {
                let llvm = format!("{}{}", b.sync_scope(scope), load_order(order));
                b.assign(
                    element,
                    format_args!("load atomic {volatile}{element}, {} {llvm}, align {bytes}", at.typed()),
                )
            }
        };
        let sized = b.resize(&value, to.bits(), mem.signed);
        values.push(b.bitcast(&sized, *to));
    }
    values
}

/// Stores the elements one after the other.
pub fn store(b: &mut Builder, pointer: &Val, mem: Mem, (order, scope): (Order, Scope), elements: &[Val]) {
    let bytes = i64::from(mem.bits / 8);
    for (i, element) in elements.iter().enumerate() {
        let at = offset_pointer(b, pointer, bytes * i as i64);
        let value = b.to_bits(element);
        let value = b.resize(&value, u32::from(mem.bits), false);
        let volatile = if order == Order::Volatile { "volatile " } else { "" };
        match order {
            Order::Weak => b.inst(format_args!("store {}, {}, align {bytes}", value.typed(), at.typed())),
            _ => {
                let llvm = format!("{}{}", b.sync_scope(scope), store_order(order));
                b.inst(format_args!(
                    "store atomic {volatile}{}, {} {llvm}, align {bytes}",
                    value.typed(),
                    at.typed()
                ));
            }
        }
    }
}

fn load_order(order: Order) -> &'static str {
    match order {
        Order::Acquire | Order::AcqRel => "acquire",
        Order::SeqCst => "seq_cst",
        _ => "monotonic",
    }
}

fn store_order(order: Order) -> &'static str {
    match order {
        Order::Release | Order::AcqRel => "release",
        Order::SeqCst => "seq_cst",
        _ => "monotonic",
    }
}

fn update_order(order: Order) -> &'static str {
    match order {
        Order::Acquire => "acquire",
        Order::Release => "release",
        Order::AcqRel => "acq_rel",
        Order::SeqCst => "seq_cst",
        _ => "monotonic",
    }
}

pub fn fence(b: &mut Builder, order: Order, scope: Scope) {
    let llvm = match order {
        Order::Acquire => "acquire",
        Order::Release => "release",
        Order::AcqRel => "acq_rel",
        _ => "seq_cst",
    };
    let within = match scope {
        Scope::Cta if !b.is_amdgcn() => "syncscope(\"singlethread\") ",
        _ => b.sync_scope(scope),
    };
    b.inst(format_args!("fence {within}{llvm}"));
}

/// `[b]` or `[compare, new]` → the old value in a register of type `to`.
pub fn atomic(
    b: &mut Builder,
    pointer: &Val,
    op: AtomOp,
    ty: AtomTy,
    (order, scope): (Order, Scope),
    args: &[Val],
    to: Type,
) -> Result<Val, Unsupported> {
    let bits = match ty {
        AtomTy::Int(int) => u32::from(int.bits),
        AtomTy::Float(float) => float.ty().bits(),
        AtomTy::B128 => 128,
    };
    let int = Type::int(bits, 1);
    let mut operands = Vec::with_capacity(args.len());
    for arg in args {
        let raw = b.to_bits(arg);
        operands.push(b.resize(&raw, bits, false));
    }
    let old = match (op, ty) {
        (AtomOp::Cas, _) => compare_exchange(b, pointer, (order, scope), &operands[0], &operands[1]),
        (AtomOp::Exch, AtomTy::B128) => {
            let new = operands[0].clone();
            update_loop(b, pointer, (order, scope), int, |_, _| Ok(new.clone()))?
        }
        (AtomOp::Add, AtomTy::Float(float @ (Float::F32 | Float::F64))) => {
            let scalar = if float == Float::F32 { Scalar::Float } else { Scalar::Double };
            let value = b.bitcast(&operands[0], Type::new(scalar, 1));
            let old = read_modify_write(b, "fadd", pointer, (order, scope), &value);
            b.to_bits(&old)
        }
        (AtomOp::Add | AtomOp::Min | AtomOp::Max, AtomTy::Float(float)) => {
            let bin = match op {
                AtomOp::Add => FloatBin::Add,
                AtomOp::Min => FloatBin::Min { nan: false, xorsign_abs: false },
                _ => FloatBin::Max { nan: false, xorsign_abs: false },
            };
            let pure = Op::Float(bin, float, FloatMode::default());
            let register = Ty::of_bits(bits);
            let result = float.ty();
            let addend = operands[0].clone();
            update_loop(b, pointer, (order, scope), int, |b, old| {
                let names =
                    emit_pure(b, &pure, &[&old.text, &addend.text], &[register, register], &[result], 1)?;
                let value = Val::new(Type::of(result, 1), names[0].clone());
                Ok(b.to_bits(&value))
            })?
        }
        // LLVM 15 does not have these two.
        (AtomOp::Inc | AtomOp::Dec, AtomTy::Int(_)) if b.is_amdgcn() => {
            let limit = operands[0].clone();
            update_loop(b, pointer, (order, scope), int, |b, old| Ok(wrapped(b, op, old, &limit)))?
        }
        (_, AtomTy::Int(integer)) => {
            let name = match (op, integer.signed) {
                (AtomOp::Add, _) => "add",
                (AtomOp::Min, true) => "min",
                (AtomOp::Min, false) => "umin",
                (AtomOp::Max, true) => "max",
                (AtomOp::Max, false) => "umax",
                (AtomOp::And, _) => "and",
                (AtomOp::Or, _) => "or",
                (AtomOp::Xor, _) => "xor",
                (AtomOp::Inc, _) => "uinc_wrap",
                (AtomOp::Dec, _) => "udec_wrap",
                _ => "xchg",
            };
            read_modify_write(b, name, pointer, (order, scope), &operands[0])
        }
        (AtomOp::Exch, _) => read_modify_write(b, "xchg", pointer, (order, scope), &operands[0]),
        _ => return Err(Unsupported(format!("atomic {op:?} of {ty:?}"))),
    };
    let sized = b.resize(&old, to.bits(), matches!(ty, AtomTy::Int(int) if int.signed));
    Ok(b.bitcast(&sized, to))
}

/// What `inc` and `dec` leave behind.
fn wrapped(b: &mut Builder, op: AtomOp, old: &Val, limit: &Val) -> Val {
    if op == AtomOp::Inc {
        let next = b.bin_int("add", old, 1);
        let is_last = b.icmp("uge", old, limit);
        return b.select(&is_last, &Builder::int(old.ty, 0), &next);
    }
    let next = b.bin_int("sub", old, 1);
    let is_first = b.icmp_int("eq", old, 0);
    let is_beyond = b.icmp("ugt", old, limit);
    let starts = b.or(&is_first, &is_beyond);
    b.select(&starts, limit, &next)
}

fn read_modify_write(
    b: &mut Builder,
    op: &str,
    pointer: &Val,
    (order, scope): (Order, Scope),
    value: &Val,
) -> Val {
    let bytes = value.ty.bits() / 8;
    let llvm = format!("{}{}", b.sync_scope(scope), update_order(order));
    b.assign(
        value.ty,
        format_args!("atomicrmw {op} {}, {} {llvm}, align {bytes}", pointer.typed(), value.typed()),
    )
}

/// The old value; it was replaced if it equals `compare`.
fn compare_exchange(b: &mut Builder, pointer: &Val, how: (Order, Scope), compare: &Val, new: &Val) -> Val {
    let pair = compare_exchange_pair(b, pointer, how, compare, new);
    let ty = compare.ty;
    b.assign(ty, format_args!("extractvalue {{ {ty}, i1 }} {pair}, 0"))
}

fn compare_exchange_pair(
    b: &mut Builder,
    pointer: &Val,
    (order, scope): (Order, Scope),
    compare: &Val,
    new: &Val,
) -> String {
    let failure = load_order(order);
    let bytes = compare.ty.bits() / 8;
    let llvm = format!("{}{}", b.sync_scope(scope), update_order(order));
    b.assign(
        compare.ty,
        format_args!(
            "cmpxchg {}, {}, {} {llvm} {failure}, align {bytes}",
            pointer.typed(),
            compare.typed(),
            new.typed()
        ),
    )
    .text
}

/// Copies as many bytes as `bytes` says, `size` at most, and fills up with zeros: a call of a function, which is added to the module.
pub fn copy_async(b: &mut Builder, size: u8, to: &Val, from: &Val, bytes: &Val) {
    let name = format!("@copy.async.{size}");
    if !b.is_declared(&name) {
        let ty = format!("<{} x i32>", size / 4);
        let text = format!(
            "define internal void {name}(ptr %to, ptr %from, i32 %bytes) nounwind noinline {{\n\
             entry:\n  %is.whole = icmp uge i32 %bytes, {size}\n  br i1 %is.whole, label %whole, label %fewer\n\
             whole:\n  %all = load {ty}, ptr %from, align 4\n  store {ty} %all, ptr %to, align 4\n  ret void\n\
             fewer:\n  store {ty} zeroinitializer, ptr %to, align 4\n  br label %head\n\
             head:\n  %at = phi i32 [ 0, %fewer ], [ %next, %byte ]\n  %more = icmp ult i32 %at, %bytes\n  \
             br i1 %more, label %byte, label %done\n\
             byte:\n  %source = getelementptr i8, ptr %from, i32 %at\n  %value = load i8, ptr %source\n  \
             %target = getelementptr i8, ptr %to, i32 %at\n  store i8 %value, ptr %target\n  \
             %next = add i32 %at, 1\n  br label %head\n\
             done:\n  ret void\n}}\n"
        );
        b.declare(&name, text);
    }
    let list = [to, from, bytes].map(Val::typed).join(", ");
    b.inst(format_args!("call void {name}({list})"));
}

/// Replaces the value at `pointer` by a function of it, whole; gives the old one.
fn update_loop(
    b: &mut Builder,
    pointer: &Val,
    how: (Order, Scope),
    ty: Type,
    mut next: impl FnMut(&mut Builder, &Val) -> Result<Val, Unsupported>,
) -> Result<Val, Unsupported> {
    let (again, done) = (b.label("update"), b.label("updated"));
    let bytes = ty.bits() / 8;
    // A torn first value only costs another round.
    let first = b.assign(ty, format_args!("load {ty}, {}, align {bytes}", pointer.typed()));
    let before = b.current_block().to_owned();
    b.br(&again);
    b.start_block(&again);
    let (old_name, seen_name) = (b.fresh(), b.fresh());
    // The back edge leaves from the block that `next` ends in; pure operations stay in theirs.
    b.inst(format_args!("{old_name} = phi {ty} [ {}, %{before} ], [ {seen_name}, %{again} ]", first.text));
    let old = Val::new(ty, old_name);
    let new = next(b, &old)?;
    let pair = compare_exchange_pair(b, pointer, how, &old, &new);
    b.inst(format_args!("{seen_name} = extractvalue {{ {ty}, i1 }} {pair}, 0"));
    let won = b.assign(Type::int(1, 1), format_args!("extractvalue {{ {ty}, i1 }} {pair}, 1"));
    b.cond_br(&won, &done, &again);
    b.start_block(&done);
    Ok(old)
}
