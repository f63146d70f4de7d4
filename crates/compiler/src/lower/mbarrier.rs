//! `mbarrier` objects.
//!
//! The 64 bits of an object are opaque to programs. Ours, lowest first: 20 bits pending arrivals, 20 bits expected
//! arrivals of a phase, 23 bits transaction count plus [`BIAS`], 1 bit parity of the phase. An update is a loop around
//! compare-and-swap; a phase ends when nothing is pending and the transaction count is zero.

use ptx::ast::{Operand, Type};

use super::function::Lowerer;
use super::instruction::{Failure, Instr, Lower, fail};
use super::operand::{Place, space};
use crate::ir::{AtomOp, AtomTy, Cmp, IntBin, Mem, Op, Order, Scope, Space, Ty, U64, Value};

type L<'l, 'i, 'a> = Lowerer<'l, 'i, 'a>;
type I<'i, 'a> = Instr<'i, 'a>;

const COUNT_MASK: u64 = 0xf_ffff;
const EXPECTED_SHIFT: u32 = 20;
const TRANSACTION_SHIFT: u32 = 40;
/// Added to the transaction count, which can be negative, so that it never borrows from its neighbour.
const BIAS: u64 = 1 << 22;
const PHASE: u64 = 1 << 63;

/// An object in memory.
#[derive(Clone, Copy)]
pub(super) struct Object {
    pub(super) space: Space,
    pub(super) base: Value,
    pub(super) offset: i64,
}

impl<'i, 'a> Lowerer<'_, 'i, 'a> {
    pub(super) fn long(&mut self, value: u64) -> Value {
        self.b.constant(Ty::B64, value.into())
    }

    pub(super) fn long_op(&mut self, op: IntBin, a: Value, b: Value) -> Value {
        self.b.emit1(Op::Int(op, U64), &[a, b], Ty::B64)
    }

    pub(super) fn long_shift(&mut self, op: IntBin, a: Value, bits: u32) -> Value {
        let bits = self.b.constant(Ty::B32, bits.into());
        self.b.emit1(Op::Int(op, U64), &[a, bits], Ty::B64)
    }

    pub(super) fn object(&mut self, operand: &Operand<'a>, space: Option<Space>) -> Lower<Object> {
        match self.place(operand, space)? {
            Place::Memory { space, base, offset } => Ok(Object { space, base, offset }),
            Place::Buffer { .. } => fail(operand.span, "a parameter is not a place for this"),
        }
    }

    fn load_object(&mut self, object: &Object, order: Order) -> Value {
        let mem = Mem { bits: 64, signed: false };
        let op = Op::Load { space: object.space, mem, offset: object.offset, order, scope: Scope::Cta };
        self.b.emit1(op, &[object.base], Ty::B64)
    }

    /// Adds `delta` to the object's fields, ends the phase if that completes it, and gives the bits before.
    fn update_object(&mut self, object: &Object, delta: Value, can_complete: bool) -> Value {
        let (again, behind) = (self.b.new_block(), self.b.new_block());
        self.b.enter(again);
        let old = self.load_object(object, Order::Relaxed);
        let mut new = self.long_op(IntBin::Add, old, delta);
        if can_complete {
            let mask = self.long(COUNT_MASK);
            let zero = self.long(0);
            let pending = self.long_op(IntBin::And, new, mask);
            let none_pending = self.b.emit1(Op::Icmp(Cmp::Eq, U64), &[pending, zero], Ty::Pred);
            let without_phase = self.long_shift(IntBin::Shl, new, 1);
            let transactions = self.long_shift(IntBin::Shr, without_phase, TRANSACTION_SHIFT + 1);
            let bias = self.long(BIAS);
            let none_open = self.b.emit1(Op::Icmp(Cmp::Eq, U64), &[transactions, bias], Ty::Pred);
            let complete = self.b.emit1(Op::Bool(crate::ir::Bool::And), &[none_pending, none_open], Ty::Pred);
            let expected = self.long_shift(IntBin::Shr, new, EXPECTED_SHIFT);
            let expected = self.long_op(IntBin::And, expected, mask);
            let refilled = self.long_op(IntBin::Add, new, expected);
            let phase = self.long(PHASE);
            let next = self.long_op(IntBin::Xor, refilled, phase);
            new = self.b.emit1(Op::Select, &[complete, next, new], Ty::B64);
        }
        let op = Op::Atomic {
            space: object.space,
            op: AtomOp::Cas,
            ty: AtomTy::Int(U64),
            offset: object.offset,
            order: Order::AcqRel,
            scope: Scope::Cta,
        };
        let seen = self.b.emit1(op, &[object.base, old, new], Ty::B64);
        let done = self.b.emit1(Op::Icmp(Cmp::Eq, U64), &[seen, old], Ty::Pred);
        self.b.branch(done, behind, again);
        self.b.enter(behind);
        old
    }

    /// A count operand, or one.
    pub(super) fn count(&mut self, operand: Option<&Operand<'a>>) -> Lower<Value> {
        match operand {
            Some(operand) => {
                let count = self.value(operand, Type::U32)?;
                Ok(self.b.emit1(Op::Zext, &[count], Ty::B64))
            }
            None => Ok(self.long(1)),
        }
    }

    /// `bytes` of the phase's transactions have come.
    pub(super) fn complete_transactions(&mut self, object: &Object, bytes: Value) {
        let delta = self.transactions(bytes, true);
        self.update_object(object, delta, true);
    }

    /// One arrival.
    pub(super) fn arrive_once(&mut self, object: &Object) {
        let minus_one = self.long(u64::MAX);
        self.update_object(object, minus_one, true);
    }

    /// `bytes` more (or fewer) open transactions.
    fn transactions(&mut self, bytes: Value, complete: bool) -> Value {
        let delta = self.long_shift(IntBin::Shl, bytes, TRANSACTION_SHIFT);
        if !complete {
            return delta;
        }
        let zero = self.long(0);
        self.long_op(IntBin::Sub, zero, delta)
    }
}

/// `mbarrier.operation{.sem}{.scope}{.space}.b64 …`
pub(super) fn mbarrier<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    let operation = i.take_map(|word| {
        let known = [
            "init",
            "inval",
            "arrive",
            "arrive_drop",
            "test_wait",
            "try_wait",
            "pending_count",
            "complete_tx",
        ];
        known.into_iter().find(|it| *it == word)
    });
    let expect = i.take("expect_tx");
    let parity = i.take("parity");
    let no_complete = i.take("noComplete");
    i.order();
    i.scope();
    let space = i.take_map(space);
    if !matches!(space, None | Some(Space::Shared)) {
        return Err(Failure::Unsupported);
    }
    i.need_one(&[("b64", ())])?;
    i.done()?;
    match operation {
        Some("init") => init(l, i, space),
        // The memory becomes ordinary again.
        Some("inval") => l.object(i.operand(0)?, space).map(|_| ()),
        Some("arrive") => arrive(l, i, space, Arrive { expect, no_complete, drop: false }),
        Some("arrive_drop") => arrive(l, i, space, Arrive { expect, no_complete, drop: true }),
        // `try_wait` may suspend the thread; coming back at once with false is allowed as well.
        Some("test_wait" | "try_wait") => test_wait(l, i, space, parity),
        Some("pending_count") => pending_count(l, i),
        Some("complete_tx") => change_transactions(l, i, space, true),
        None if expect => change_transactions(l, i, space, false),
        _ => Err(Failure::Unsupported),
    }
}

fn init<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &I<'i, 'a>, space: Option<Space>) -> Lower {
    let [address, count] = i.operands()?;
    let object = l.object(address, space)?;
    let count = l.count(Some(count))?;
    let expected = l.long_shift(IntBin::Shl, count, EXPECTED_SHIFT);
    let counts = l.long_op(IntBin::Or, expected, count);
    let bias = l.long(BIAS << TRANSACTION_SHIFT);
    let bits = l.long_op(IntBin::Or, counts, bias);
    let mem = Mem { bits: 64, signed: false };
    let (order, scope) = (Order::Relaxed, Scope::Cta);
    l.b.emit(
        Op::Store { space: object.space, mem, offset: object.offset, order, scope },
        &[object.base, bits],
        &[],
    );
    Ok(())
}

#[derive(Clone, Copy)]
struct Arrive {
    expect: bool,
    no_complete: bool,
    drop: bool,
}

/// `mbarrier.arrive… state, [a]{, count}`, `mbarrier.arrive.expect_tx… state, [a], bytes`
fn arrive<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &I<'i, 'a>, space: Option<Space>, how: Arrive) -> Lower {
    if !(2..=3).contains(&i.count()) || how.expect && i.count() != 3 {
        return Err(Failure::Unsupported);
    }
    let object = l.object(i.operand(1)?, space)?;
    let third = i.ast.operands.get(2);
    let count = l.count(third.filter(|_| !how.expect))?;
    let zero = l.long(0);
    let mut delta = l.long_op(IntBin::Sub, zero, count);
    if how.drop {
        // One less is expected from the next phase on; the present one is served by the arrival.
        let expected = l.long_shift(IntBin::Shl, count, EXPECTED_SHIFT);
        delta = l.long_op(IntBin::Sub, delta, expected);
    }
    if let Some(bytes) = third.filter(|_| how.expect) {
        let bytes = l.count(Some(bytes))?;
        let open = l.transactions(bytes, false);
        delta = l.long_op(IntBin::Add, delta, open);
    }
    let state = l.update_object(&object, delta, !how.no_complete);
    l.write(i.operand(0)?, state)
}

/// `mbarrier.expect_tx… [a], bytes`, `mbarrier.complete_tx… [a], bytes`
fn change_transactions<'i, 'a>(
    l: &mut L<'_, 'i, 'a>,
    i: &I<'i, 'a>,
    space: Option<Space>,
    complete: bool,
) -> Lower {
    let [address, bytes] = i.operands()?;
    let object = l.object(address, space)?;
    let bytes = l.count(Some(bytes))?;
    let delta = l.transactions(bytes, complete);
    l.update_object(&object, delta, complete);
    Ok(())
}

/// `mbarrier.test_wait… p, [a], state`, `….parity… p, [a], parity`: whether that phase is over.
fn test_wait<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &I<'i, 'a>, space: Option<Space>, parity: bool) -> Lower {
    if !(3..=4).contains(&i.count()) {
        return Err(Failure::Unsupported);
    }
    let object = l.object(i.operand(1)?, space)?;
    if let Some(hint) = i.ast.operands.get(3) {
        // How long `try_wait` may suspend; not at all is allowed.
        l.value(hint, Type::U32)?;
    }
    let asked = i.operand(2)?;
    let asked = if parity {
        let parity = l.value(asked, Type::U32)?;
        let parity = l.b.emit1(Op::Zext, &[parity], Ty::B64);
        l.long_shift(IntBin::Shl, parity, 63)
    } else {
        l.value(asked, Type::B64)?
    };
    let now = l.load_object(&object, Order::Acquire);
    let difference = l.long_op(IntBin::Xor, now, asked);
    let phase = l.long_shift(IntBin::Shr, difference, 63);
    let zero = l.long(0);
    let over = l.b.emit1(Op::Icmp(Cmp::Ne, U64), &[phase, zero], Ty::Pred);
    l.write(i.operand(0)?, over)
}

fn pending_count<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &I<'i, 'a>) -> Lower {
    let [d, state] = i.operands()?;
    let state = l.value(state, Type::B64)?;
    let mask = l.long(COUNT_MASK);
    let pending = l.long_op(IntBin::And, state, mask);
    let pending = l.b.emit1(Op::Trunc, &[pending], Ty::B32);
    l.write(d, pending)
}

/// `cp.async.mbarrier.arrive{.noinc}{.shared}.b64 [a]`: the thread's copies are done by now. Without `.noinc` the
/// object's count goes up and down again by one.
pub(super) fn copy_arrive<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    i.need_one(&[("arrive", ())])?;
    let counted = i.take("noinc");
    let space = i.take_map(space);
    i.need_one(&[("b64", ())])?;
    i.done()?;
    let [address] = i.operands()?;
    let object = l.object(address, space)?;
    if counted {
        l.arrive_once(&object);
    }
    Ok(())
}
