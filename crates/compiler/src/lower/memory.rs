//! Data movement: `mov`, loads and stores of every space, addresses and their spaces, hints.

use ptx::ast::{Operand, OperandKind, Type};

use super::function::Lowerer;
use super::instruction::{Failure, Instr, Lower, fail, int, register_ty};
use super::layout::scalar_bytes;
use super::operand::{Place, has_only_known_suffix, space};
use super::scope::Entity;
use crate::ir::{Cmp, IntBin, Mem, Op, Order, Scope, Space, Ty, U64, Value};

type L<'l, 'i, 'a> = Lowerer<'l, 'i, 'a>;
type I<'i, 'a> = Instr<'i, 'a>;

/// `mov.type d, a`; `mov.b64 {lo, hi}, a`; `mov.b32 d, {a, b}`, or a vector register in place of the list
pub(super) fn mov<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    let lanes = i.take_one(&[("v2", 2usize), ("v4", 4)]);
    let ty = i.ty()?;
    i.done()?;
    let [d, a] = i.operands()?;
    if let Some(lanes) = lanes {
        return mov_vector(l, d, a, ty, lanes);
    }
    if let OperandKind::Name(name) = &a.kind
        && l.reference(name).is_some()
        && ty != Type::U64
    {
        return fail(a.span, format!("'{name}' has an address of 64 bits"));
    }
    let value = match l.parts(a) {
        Some(parts) => l.packed(a, parts, ty)?,
        None => l.value(a, ty)?,
    };
    if l.parts(d).is_some() { l.unpack(d, value) } else { l.write(d, value) }
}

/// `mov.v2.f32 d, a`, `mov.v4.u32 d, %tid`: element by element.
fn mov_vector<'a>(l: &mut L<'_, '_, 'a>, d: &Operand<'a>, a: &Operand<'a>, ty: Type, lanes: usize) -> Lower {
    let values = match l.special_vector(a, ty)? {
        Some(_) if matches!(ty, Type::F32 | Type::F64) => {
            return fail(a.span, "a special register is of integers");
        }
        Some(elements) => elements,
        None => l.values(a, ty)?,
    };
    let vars = l.destinations(d)?;
    if values.len() != lanes || vars.len() != lanes {
        return fail(d.span, format!("expected {lanes} elements"));
    }
    for (var, value) in vars.into_iter().zip(values) {
        l.write_extended(var, value, false, d.span)?;
    }
    Ok(())
}

/// What `ld` and `st` have in common.
struct Access {
    space: Option<Space>,
    order: Order,
    scope: Scope,
    ty: Type,
    lanes: usize,
    mem: Mem,
}

impl Access {
    /// The one access that a vector is which others may read or write at the same time. PTX orders its elements in no way; on NVIDIA's devices
    /// it is one access, and look-back scans keep a flag and its value in one.
    fn whole(&self) -> Option<Mem> {
        let bits = self.ty.bits() * self.lanes as u32;
        let is_one = self.lanes > 1 && self.ty.bits() >= 16 && bits <= 128;
        (self.order != Order::Weak && is_one).then_some(Mem { bits: bits as u8, signed: false })
    }
}

fn access(i: &mut I<'_, '_>) -> Lower<Access> {
    let mmio = i.take("mmio");
    let order = i.order().unwrap_or_default();
    // Memory-mapped accesses are never merged or removed.
    let order = if mmio { Order::Volatile } else { order };
    let scope = i.scope().unwrap_or_default();
    let space = i.take_map(space);
    let lanes = i.take_one(&[("v2", 2usize), ("v4", 4), ("v8", 8)]).unwrap_or(1);
    let ty = i.ty()?;
    let is_memory_type = int(ty).is_some()
        || matches!(
            ty,
            Type::B128 | Type::F16 | Type::F16x2 | Type::Bf16 | Type::Bf16x2 | Type::F32 | Type::F64
        );
    if !is_memory_type {
        return Err(Failure::Unsupported);
    }
    let signed = int(ty).is_some_and(|int| int.signed);
    let mem = Mem { bits: ty.bits() as u8, signed };
    Ok(Access { space, order, scope, ty, lanes, mem })
}

/// `ld{.order}{.scope}{.space}{.hints}{.vec}.type d, [a]{, policy}`, `ldu`, `ld.global.nc`
pub(super) fn ld<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    // `.cv`: "don't cache and fetch again"; a loop may wait on it.
    let fetches_again = i.ast.has("cv");
    let policy = i.cache_hints();
    let mut access = access(i)?;
    if fetches_again && access.order == Order::Weak {
        access.order = Order::Volatile;
    }
    i.done()?;
    let (d, a) = if policy {
        let [d, a, policy] = i.operands()?;
        l.value(policy, Type::B64)?;
        (d, a)
    } else {
        let [d, a] = i.operands()?;
        (d, a)
    };
    if !has_only_known_suffix(a) {
        return Err(Failure::Unsupported);
    }
    let vars = l.destinations(d)?;
    if vars.len() != access.lanes {
        return fail(d.span, format!("expected {} destinations", access.lanes));
    }
    let element = register_ty(access.ty);
    let values = match l.place(a, access.space)? {
        Place::Memory { space, base, offset } => {
            let whole = access.whole();
            let mem = whole.unwrap_or(access.mem);
            let op = Op::Load { space, mem, offset, order: access.order, scope: access.scope };
            match whole {
                Some(mem) => {
                    let value = l.b.emit1(op, &[base], Ty::of_bits(mem.bits.into()));
                    let parts = vec![Ty::of_bits(access.ty.bits()); access.lanes];
                    let values = l.b.emit(Op::Unpack, &[value], &parts);
                    values.into_iter().map(|value| l.resize(value, element, false)).collect()
                }
                None => l.b.emit(op, &[base], &vec![element; access.lanes]),
            }
        }
        Place::Buffer { index, offset } => {
            let bytes = scalar_bytes(access.ty) as u32;
            let mut values = Vec::new();
            for lane in 0..access.lanes {
                let at = offset.saturating_add(lane as i64 * i64::from(bytes));
                let value = l.read_buffer(index, at, bytes, a.span)?;
                let value = if bytes == 1 { l.extend_byte(value, access.mem.signed) } else { value };
                values.push(l.resize(value, element, false));
            }
            values
        }
    };
    for (var, value) in vars.into_iter().zip(values) {
        l.write_extended(var, value, access.mem.signed, d.span)?;
    }
    Ok(())
}

/// `st{.order}{.scope}{.space}{.hints}{.vec}.type [a], b{, policy}`
pub(super) fn st<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    if i.ast.has("async") {
        return super::bulk::store_async(l, i);
    }
    if i.take("bulk") {
        return st_bulk(l, i);
    }
    let policy = i.cache_hints();
    let access = access(i)?;
    i.done()?;
    let (a, b) = if policy {
        let [a, b, policy] = i.operands()?;
        l.value(policy, Type::B64)?;
        (a, b)
    } else {
        let [a, b] = i.operands()?;
        (a, b)
    };
    if !has_only_known_suffix(a) {
        return Err(Failure::Unsupported);
    }
    let values = l.values(b, access.ty)?;
    if values.len() != access.lanes {
        return fail(b.span, format!("expected {} values", access.lanes));
    }
    match l.place(a, access.space)? {
        Place::Memory { space, base, offset } => {
            let whole = access.whole();
            let mem = whole.unwrap_or(access.mem);
            let op = Op::Store { space, mem, offset, order: access.order, scope: access.scope };
            let mut args = vec![base];
            match whole {
                Some(mem) => {
                    let parts: Vec<Value> = values.into_iter().map(|value| l.untyped(value)).collect();
                    args.push(l.b.emit1(Op::Pack, &parts, Ty::of_bits(mem.bits.into())));
                }
                None => args.extend(values),
            }
            l.b.emit(op, &args, &[]);
        }
        Place::Buffer { index, offset } => {
            let bytes = scalar_bytes(access.ty) as u32;
            for (lane, value) in values.into_iter().enumerate() {
                let at = offset.saturating_add(lane as i64 * i64::from(bytes));
                l.write_buffer(index, at, bytes, value, a.span)?;
            }
        }
    }
    Ok(())
}

/// `st.bulk{.weak}{.shared::cta} [a], size, 0`: zeros, eight bytes at a time.
fn st_bulk<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    i.take("weak");
    let space = i.take_map(space);
    i.done()?;
    let [a, size, value] = i.operands()?;
    let (size, value) = (l.value(size, Type::U64)?, l.value(value, Type::U64)?);
    let Place::Memory { space, base, offset } = l.place(a, space)? else { return Err(Failure::Unsupported) };
    let mem = Mem { bits: 64, signed: false };
    let (at, zero) = (l.b.new_var(Ty::B64), l.b.constant(Ty::B64, 0));
    l.b.write(at, zero);
    let [head, body, behind] = [l.b.new_block(), l.b.new_block(), l.b.new_block()];
    l.b.enter(head);
    let here = l.b.read(at);
    let more = l.b.emit1(Op::Icmp(Cmp::Lt, U64), &[here, size], Ty::Pred);
    l.b.branch(more, body, behind);
    l.b.enter(body);
    let address = l.b.emit1(Op::Int(IntBin::Add, U64), &[base, here], Ty::B64);
    let store = Op::Store { space, mem, offset, order: Order::Weak, scope: Scope::Sys };
    l.b.emit(store, &[address, value], &[]);
    let step = l.b.constant(Ty::B64, 8);
    let next = l.b.emit1(Op::Int(IntBin::Add, U64), &[here, step], Ty::B64);
    l.b.write(at, next);
    l.b.jump(head);
    l.b.enter(behind);
    Ok(())
}

/// `cvta.space.size p, a`, `cvta.to.space.size p, a`
pub(super) fn cvta<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    let to_generic = !i.take("to");
    let space = i.take_map(space).ok_or(Failure::Unsupported)?;
    let ty = i.ty()?;
    i.done()?;
    if !matches!(ty, Type::U32 | Type::U64) {
        return Err(Failure::Unsupported);
    }
    let [d, a] = i.operands()?;
    if let OperandKind::Name(name) = &a.kind
        && l.reference(name).is_some()
        && space != Space::Global
    {
        return fail(a.span, format!("'{name}' is not in that state space"));
    }
    if !to_generic
        && matches!(&a.kind, OperandKind::Name(name) if *name != "WARP_SZ" && l.register(name, a.span).is_err())
    {
        return fail(a.span, "'cvta.to' takes the address that a register has");
    }
    let a = l.value(a, ty)?;
    let a = l.resize(a, Ty::B64, false);
    let result = l.b.emit1(Op::Cvta { space, to_generic }, &[a], Ty::B64);
    let result = l.resize(result, register_ty(ty), false);
    l.write(d, result)
}

/// `isspacep.space p, a`
pub(super) fn isspacep<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    let of_cluster = i.ast.has("shared::cluster");
    let space = i.take_map(space).ok_or(Failure::Unsupported)?;
    i.done()?;
    let [p, a] = i.operands()?;
    let is_word = match &a.kind {
        OperandKind::Name(name) | OperandKind::Member(name, _) => {
            matches!(l.entity(name), Some(Entity::Register(register)) if register.ty.bits() == 32)
        }
        _ => false,
    };
    let a = l.value(a, if is_word { Type::U32 } else { Type::U64 })?;
    let a = l.resize(a, Ty::B64, false);
    let mut result = l.b.emit1(Op::IsSpace(space), &[a], Ty::Pred);
    if of_cluster {
        let elsewhere = super::cluster::in_window(l, a);
        result = l.b.emit1(Op::Bool(crate::ir::Bool::Or), &[result, elsewhere], Ty::Pred);
    }
    l.write(p, result)
}

/// `prefetch`, `prefetchu`, `discard`, `applypriority`: allowed to do nothing. A line that is discarded has undefined
/// contents, and the old ones are as good as any.
pub(super) fn hint<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    let space = i.take_map(space);
    i.take("tensormap");
    i.take_map(|word| matches!(word, "L1" | "L2").then_some(()));
    i.cache_hints();
    i.done()?;
    // The address is checked for names, and never read through.
    let address = i.operand(0)?;
    match l.place(address, space)? {
        Place::Memory { space: Space::Shared | Space::Local, .. } if i.ast.opcode.value == "prefetchu" => {
            fail(address.span, "'prefetchu' takes a generic address")
        }
        _ => Ok(()),
    }
}

/// `createpolicy…`: the policy is opaque and hints do nothing here, so any value is as good as another.
pub(super) fn createpolicy<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    i.take_map(|word| matches!(word, "fractional" | "range").then_some(()));
    i.take("cvt");
    i.take("global");
    i.take("L2");
    i.cache_hints();
    i.need_one(&[("b64", ())])?;
    i.done()?;
    let policy = l.b.constant(Ty::B64, 0);
    l.write(i.operand(0)?, policy)
}
