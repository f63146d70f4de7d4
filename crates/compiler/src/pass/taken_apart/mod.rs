//! Instructions of tensor cores' programs, as what they consist of: for targets, settings and kinds that have no function for them.

mod copy;
mod rows;
mod wgmma;

use std::borrow::Cow;

use crate::ir::{Function, Inst, IntBin, Mem, Op, Order, Pos, Scope, Space, Special, Term, Ty, U32, Value};

/// The function with those operations taken apart that are `wanted`, of [`Op::Wgmma`], [`Op::MatrixRows`] and [`Op::CopyAsync`].
pub fn run(function: &Function, wanted: impl Fn(&Op) -> bool) -> Cow<'_, Function> {
    let has_parts = |op: &Op| matches!(op, Op::Wgmma(_) | Op::MatrixRows(_) | Op::CopyAsync(_));
    let is_one = |inst: &Inst| has_parts(&inst.op) && wanted(&inst.op);
    if !function.blocks.iter().flat_map(|block| &block.insts).any(is_one) {
        return Cow::Borrowed(function);
    }
    let mut function = function.clone();
    for at in 0..function.blocks.len() {
        let block = &mut function.blocks[at];
        let insts = std::mem::take(&mut block.insts);
        let term = std::mem::replace(&mut block.term, Term::Exit);
        let mut writer = Writer { function: &mut function, at, out: vec![], pos: Pos::default() };
        for inst in insts {
            writer.pos = inst.pos;
            match &inst.op {
                op if !wanted(op) => writer.out.push(inst),
                Op::Wgmma(wgmma) => writer.product(wgmma, &inst),
                Op::MatrixRows(rows) => writer.rows(rows, &inst),
                Op::CopyAsync(copy) => writer.copy(copy, &inst),
                _ => writer.out.push(inst),
            }
        }
        writer.end(term, at);
    }
    Cow::Owned(function)
}

struct Writer<'f> {
    function: &'f mut Function,
    /// The block that is being written, and what it has so far.
    at: usize,
    out: Vec<Inst>,
    pos: Pos,
}

impl Writer<'_> {
    /// Ends the block, and goes on in another one.
    fn end(&mut self, term: Term, next: usize) {
        let block = &mut self.function.blocks[self.at];
        block.insts = std::mem::take(&mut self.out);
        block.term = term;
        self.at = next;
    }

    fn emit(&mut self, op: Op, args: &[Value], results: &[Ty]) -> Vec<Value> {
        let results: Vec<Value> = results.iter().map(|&ty| self.function.new_value(ty)).collect();
        self.out.push(Inst { op, args: args.to_vec(), results: results.clone(), pos: self.pos });
        results
    }

    /// An operation whose result is a value that is there already.
    fn give(&mut self, op: Op, args: &[Value], result: Value) {
        self.out.push(Inst { op, args: args.to_vec(), results: vec![result], pos: self.pos });
    }

    fn emit1(&mut self, op: Op, args: &[Value], result: Ty) -> Value {
        self.emit(op, args, &[result])[0]
    }

    fn word(&mut self, value: u32) -> Value {
        self.emit1(Op::Const(value.into()), &[], Ty::B32)
    }

    fn word_op(&mut self, op: IntBin, a: Value, b: u32) -> Value {
        let b = self.word(b);
        self.words(op, a, b)
    }

    fn words(&mut self, op: IntBin, a: Value, b: Value) -> Value {
        self.emit1(Op::Int(op, U32), &[a, b], Ty::B32)
    }

    fn sum(&mut self, first: Value, terms: &[Value]) -> Value {
        terms.iter().fold(first, |sum, &term| self.words(IntBin::Add, sum, term))
    }
}

/// A load as any lane does it, of so many bits.
fn load(space: Space, bits: u8, offset: i64) -> Op {
    let mem = Mem { bits, signed: false };
    Op::Load { space, mem, offset, order: Order::Weak, scope: Scope::Sys }
}

fn store(space: Space, bits: u8, offset: i64) -> Op {
    let mem = Mem { bits, signed: false };
    Op::Store { space, mem, offset, order: Order::Weak, scope: Scope::Sys }
}

/// Where this lane stands.
struct Lane {
    /// The row of eight.
    group: Value,
    /// Which of the four registers of that row.
    four: Value,
}

impl Lane {
    fn of(l: &mut Writer<'_>) -> Lane {
        let lane = l.emit1(Op::Special(Special::LaneId), &[], Ty::B32);
        Lane { group: l.word_op(IntBin::Shr, lane, 2), four: l.word_op(IntBin::And, lane, 3) }
    }
}
