//! `alloca`, `stacksave`, `stackrestore`: a function that uses them has a local array as its dynamic stack, empty at
//! entry, so that returning frees what was allocated.

use ptx::ast::{OperandKind, Type};

use super::builder::Var;
use super::function::Lowerer;
use super::instruction::{Failure, Instr, Lower, fail};
use super::layout::Layout;
use super::operand::immediate;
use crate::ir::{Cmp, Fault, IntBin, LocalId, Op, Ty, U64, Value};

type L<'l, 'i, 'a> = Lowerer<'l, 'i, 'a>;
type I<'i, 'a> = Instr<'i, 'a>;

/// Bytes that one call of a function can allocate; more ends the kernel like any other stack overflow.
const BYTES: u64 = 8 << 10;
/// Alignment without an operand that says so.
const ALIGN: u64 = 8;
/// The array's own alignment, so the most that can be asked for.
const MOST_ALIGN: u64 = 128;

/// The dynamic stack of one function.
#[derive(Clone, Copy)]
pub(super) struct Stack {
    array: LocalId,
    /// Bytes in use.
    used: Var,
}

/// The address type: `.u64`, or `.u32` of 32-bit addresses.
fn address_ty(i: &mut I<'_, '_>) -> Lower<Type> {
    match i.ty()? {
        ty @ (Type::U32 | Type::U64) => Ok(ty),
        _ => Err(Failure::Unsupported),
    }
}

/// `alloca.type ptr, size{, align}`
pub(super) fn alloca<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    let ty = address_ty(i)?;
    i.done()?;
    let align = match i.count() {
        2 => ALIGN,
        _ => {
            let operand = i.operand(2)?;
            let warp = matches!(operand.kind, OperandKind::Name("WARP_SZ")).then_some(32);
            match warp.or_else(|| immediate(operand)) {
                Some(align) if align.is_power_of_two() && align <= MOST_ALIGN => align,
                _ => return fail(operand.span, format!("expected a power of two up to {MOST_ALIGN}")),
            }
        }
    };
    let size = l.value(i.operand(1)?, ty)?;
    let size = l.as_offset(size);
    let stack = l.stack();
    let used = l.b.read(stack.used);
    let (up, mask) = (l.offset(align - 1), l.offset(!(align - 1)));
    let start = l.b.emit1(Op::Int(IntBin::Add, U64), &[used, up], Ty::B64);
    let start = l.b.emit1(Op::Int(IntBin::And, U64), &[start, mask], Ty::B64);
    let all = l.offset(BYTES);
    // Where the start itself lies beyond, `room` has wrapped to more than any array has.
    let room = l.b.emit1(Op::Int(IntBin::SubSat, U64), &[all, start], Ty::B64);
    let fits = l.b.emit1(Op::Icmp(Cmp::Le, U64), &[size, room], Ty::Pred);
    let (overflow, behind) = (l.b.new_block(), l.b.new_block());
    l.b.branch(fits, behind, overflow);
    l.b.enter(overflow);
    l.b.emit(Op::Fault(Fault::Stack), &[], &[]);
    l.b.jump(behind);
    l.b.enter(behind);
    let end = l.b.emit1(Op::Int(IntBin::Add, U64), &[start, size], Ty::B64);
    l.b.write(stack.used, end);
    let base = l.b.emit1(Op::LocalAddr(stack.array), &[], Ty::B64);
    let address = l.b.emit1(Op::Int(IntBin::Add, U64), &[base, start], Ty::B64);
    l.write_offset(i, ty, address)
}

/// `stacksave.type d`
pub(super) fn stacksave<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    let ty = address_ty(i)?;
    i.done()?;
    let [_] = i.operands()?;
    let stack = l.stack();
    let used = l.b.read(stack.used);
    l.write_offset(i, ty, used)
}

/// `stackrestore.type a`
pub(super) fn stackrestore<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    let ty = address_ty(i)?;
    i.done()?;
    let [a] = i.operands()?;
    let saved = l.value(a, ty)?;
    let saved = l.as_offset(saved);
    let stack = l.stack();
    l.b.write(stack.used, saved);
    Ok(())
}

impl<'i, 'a> Lowerer<'_, 'i, 'a> {
    fn stack(&mut self) -> Stack {
        if let Some(stack) = self.stack {
            return stack;
        }
        // A variable that nobody wrote is zero: the stack is empty at entry.
        let stack = Stack {
            array: self.new_local("alloca", Layout { bytes: BYTES, align: MOST_ALIGN, element: 1 }),
            used: self.b.new_var(Ty::B64),
        };
        self.stack = Some(stack);
        stack
    }

    fn offset(&mut self, value: u64) -> Value {
        self.b.constant(Ty::B64, value.into())
    }

    fn as_offset(&mut self, value: Value) -> Value {
        if self.b.ty(value) == Ty::B64 { value } else { self.b.emit1(Op::Zext, &[value], Ty::B64) }
    }

    fn write_offset(&mut self, i: &I<'i, 'a>, ty: Type, value: Value) -> Lower {
        let value = if ty == Type::U32 { self.b.emit1(Op::Trunc, &[value], Ty::B32) } else { value };
        self.write(i.operand(0)?, value)
    }
}
