//! Moving 8×8 matrices of 16-bit elements between shared memory and a warp's registers. Lane l holds the elements
//! (l / 4, 2·(l mod 4)) and the one right of it. The addresses of the rows come from the lanes that hold them.
//!
//! Rows of bytes have 16 (`m8n16`, `m16n16`, `m16n8`), in shared memory perhaps of 4 or 6 bits in front of padding ([`Packing`]), which
//! become the lowest bits of a byte.

use ptx::Span;
use ptx::ast::{Operand, Type};

use super::function::Lowerer;
use super::instruction::{Failure, Instr, Lower, fail};
use super::operand::{Place, space};
use crate::ir::{IntBin, Mem, Op, Order, Scope, ShflMode, Space, Special, Ty, U32, U64, Value};
use crate::matrix::MatrixRows;

type L<'l, 'i, 'a> = Lowerer<'l, 'i, 'a>;
type I<'i, 'a> = Instr<'i, 'a>;

/// The lane's row (or column) number and the first of its two columns (or rows).
struct Position {
    row: Value,
    column: Value,
}

/// The base of the rows, an offset in the shared window per lane, and what is added to all of them.
struct Rows {
    base: Value,
    offset: i64,
}

impl Lowerer<'_, '_, '_> {
    pub(super) fn word(&mut self, value: u32) -> Value {
        self.b.constant(Ty::B32, value.into())
    }

    pub(super) fn word_op(&mut self, op: IntBin, a: Value, b: u32) -> Value {
        let b = self.word(b);
        self.b.emit1(Op::Int(op, U32), &[a, b], Ty::B32)
    }

    /// The lane's row of eight, and which of the row's four lanes it is.
    pub(super) fn row_and_lane(&mut self) -> (Value, Value) {
        let lane = self.b.emit1(Op::Special(Special::LaneId), &[], Ty::B32);
        (self.word_op(IntBin::Shr, lane, 2), self.word_op(IntBin::And, lane, 3))
    }

    fn position(&mut self) -> Position {
        let (row, column) = self.row_and_lane();
        let column = self.word_op(IntBin::Shl, column, 1);
        Position { row, column }
    }

    /// `value` of lane `lane`, every lane taking part.
    pub(super) fn value_of_lane(&mut self, value: Value, lane: Value) -> Value {
        let (all, clamp) = (self.word(u32::MAX), self.word(31));
        self.b.emit(Op::Shfl(ShflMode::Idx), &[value, lane, clamp, all], &[Ty::B32, Ty::Pred])[0]
    }

    /// The address that lane `lane` gives.
    fn row_address(&mut self, rows: &Rows, lane: Value) -> Value {
        // An offset in the shared window fits 32 bits.
        let low = self.b.emit1(Op::Trunc, &[rows.base], Ty::B32);
        let low = self.value_of_lane(low, lane);
        self.b.emit1(Op::Zext, &[low], Ty::B64)
    }

    fn matrix_store(&mut self, rows: &Rows, address: Value, value: Value, bits: u8) {
        let op = Op::Store {
            space: Space::Shared,
            mem: Mem { bits, signed: false },
            offset: rows.offset,
            order: Order::Weak,
            scope: Scope::Sys,
        };
        self.b.emit(op, &[address, value], &[]);
    }
}

/// How the 16 elements of a row lie in its 16 bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Packing {
    bits: u32,
}

/// What both directions say.
struct Shape {
    name: &'static str,
    count: usize,
    trans: bool,
    space: Option<Space>,
    /// Of elements of 16 bits none.
    packing: Option<Packing>,
}

const SHAPES: &[(&str, &str)] =
    &[("m8n8", "m8n8"), ("m8n16", "m8n16"), ("m16n16", "m16n16"), ("m16n8", "m16n8")];

fn shape(i: &mut I<'_, '_>) -> Lower<Shape> {
    i.need_one(&[("sync", ())])?;
    i.need_one(&[("aligned", ())])?;
    let name = i.need_one(SHAPES)?;
    let count = i.need_one(&[("x1", 1), ("x2", 2), ("x4", 4)])?;
    let trans = i.take("trans");
    let space = i.take_map(space);
    let format = i.need_one(&[("b16", 16), ("b8", 8), ("b8x16", 0)])?;
    let place = |word: &str| i.ast.modifiers.iter().position(|it| it.value.starts_with(word));
    let [to, from] = [place("b8x16"), place("b6x16").or(place("b4x16"))];
    let packing = match format {
        16 => None,
        0 => {
            let bits = i.need_one(&[("b6x16_p32", 6), ("b4x16_p64", 4)])?;
            if to > from {
                return Err(Failure::Unsupported);
            }
            Some(Packing { bits })
        }
        bits => Some(Packing { bits }),
    };
    i.done()?;
    if !matches!(space, None | Some(Space::Shared)) {
        return Err(Failure::Unsupported);
    }
    Ok(Shape { name, count, trans, space, packing })
}

impl<'i, 'a> Lowerer<'_, 'i, 'a> {
    /// Moves matrices of 16-bit elements.
    fn matrix_rows(&mut self, shape: &Shape, rows: &Rows, values: Vec<Value>, stores: bool) -> Vec<Value> {
        let moved =
            MatrixRows { count: shape.count as u8, is_transposed: shape.trans, stores, offset: rows.offset };
        let args: Vec<Value> = [rows.base].into_iter().chain(values).chain([self.whole_warp()]).collect();
        self.b.emit(Op::MatrixRows(moved), &args, &moved.results())
    }

    /// `address + column`
    fn byte_address(&mut self, address: Value, column: Value) -> Value {
        let column = self.b.emit1(Op::Zext, &[column], Ty::B64);
        self.b.emit1(Op::Int(IntBin::Add, U64), &[address, column], Ty::B64)
    }

    /// An element of a row, whose lane is known, in 32 bits.
    fn byte_of_row(&mut self, rows: &Rows, packing: Packing, lane: Value, column: Value) -> Value {
        let row = self.row_address(rows, lane);
        if packing.bits == 8 {
            let address = self.byte_address(row, column);
            return self.byte_load(rows, address);
        }
        let count = self.word(packing.bits);
        let bit = self.b.emit1(Op::Int(IntBin::Mul, U32), &[column, count], Ty::B32);
        let first = self.word_op(IntBin::Shr, bit, 3);
        let address = self.byte_address(row, first);
        let low = self.byte_load(rows, address);
        // Behind the last element is padding.
        let one = self.b.constant(Ty::B64, 1);
        let next = self.b.emit1(Op::Int(IntBin::Add, U64), &[address, one], Ty::B64);
        let high = self.byte_load(rows, next);
        let high = self.word_op(IntBin::Shl, high, 8);
        let both = self.b.emit1(Op::Int(IntBin::Or, U32), &[low, high], Ty::B32);
        let shift = self.word_op(IntBin::And, bit, 7);
        let found = self.b.emit1(Op::Int(IntBin::Shr, U32), &[both, shift], Ty::B32);
        self.word_op(IntBin::And, found, (1 << packing.bits) - 1)
    }

    fn byte_load(&mut self, rows: &Rows, address: Value) -> Value {
        let op = Op::Load {
            space: Space::Shared,
            mem: Mem { bits: 8, signed: false },
            offset: rows.offset,
            order: Order::Weak,
            scope: Scope::Sys,
        };
        self.b.emit1(op, &[address], Ty::B32)
    }

    /// The registers of matrices of bytes.
    fn load_bytes(&mut self, shape: &Shape, packing: Packing, rows: &Rows) -> Vec<Value> {
        let (row, four) = self.row_and_lane();
        let column_of_four = self.word_op(IntBin::Shl, four, 2);
        let registers = if shape.trans { 2 * shape.count } else { shape.count };
        let mut values = vec![];
        for register in 0..registers as u32 {
            let mut word = self.word(0);
            for byte in 0..4 {
                let (lane, column) = if shape.trans {
                    // Eight columns in each register, of each four rows.
                    let lane = self.word_op(IntBin::Add, column_of_four, register / 2 * 16 + byte);
                    (lane, self.word_op(IntBin::Add, row, register % 2 * 8))
                } else {
                    let column = self.word_op(IntBin::Add, column_of_four, byte);
                    (self.word_op(IntBin::Add, row, register * 8), column)
                };
                let element = self.byte_of_row(rows, packing, lane, column);
                let element = self.word_op(IntBin::Shl, element, 8 * byte);
                word = self.b.emit1(Op::Int(IntBin::Or, U32), &[word, element], Ty::B32);
            }
            values.push(word);
        }
        values
    }

    /// Stores transposed matrices of bytes: two rows for each lane of the four.
    fn store_bytes(&mut self, rows: &Rows, values: Vec<Value>) {
        let (row, four) = self.row_and_lane();
        let pair = self.word_op(IntBin::Shl, four, 1);
        for (register, value) in (0..).zip(values) {
            for byte in 0..4 {
                // Two rows of eight columns, then of the next eight.
                let lane = self.word_op(IntBin::Add, pair, register * 8 + byte % 2);
                let column = self.word_op(IntBin::Add, row, byte / 2 * 8);
                let address = self.row_address(rows, lane);
                let address = self.byte_address(address, column);
                let element = self.word_op(IntBin::Shr, value, 8 * byte);
                self.matrix_store(rows, address, element, 8);
            }
        }
    }
}

fn rows<'i, 'a>(l: &mut L<'_, 'i, 'a>, address: &Operand<'a>, space: Option<Space>) -> Lower<Rows> {
    match l.place(address, space)? {
        // Rows are in shared memory by whatever address: an offset in its window fits one register, so half as much passes between lanes.
        Place::Memory { space: Space::Generic, base, offset } => {
            let op = Op::Cvta { space: Space::Shared, to_generic: false };
            Ok(Rows { base: l.b.emit1(op, &[base], Ty::B64), offset })
        }
        Place::Memory { base, offset, .. } => Ok(Rows { base, offset }),
        Place::Buffer { .. } => fail(address.span, "a parameter is not in shared memory"),
    }
}

/// What a list, a vector register, or for `.x1` a single one gave.
fn checked<T>(registers: Vec<T>, count: usize, span: Span) -> Lower<Vec<T>> {
    if registers.len() == count { Ok(registers) } else { fail(span, format!("expected {count} registers")) }
}

/// `ldmatrix.sync.aligned.m8n8.num{.trans}{.shared}.b16 r, [p]`, `.m16n16.num.trans{.shared}.b8`, and of 4 or 6 bits
/// `.{m8n16.num,m16n16.num.trans}{.shared}.b8x16.source`
pub(super) fn ldmatrix<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    let shape = shape(i)?;
    let Shape { count, trans, .. } = shape;
    let is_there = match (shape.name, shape.packing) {
        ("m8n8", None) => true,
        ("m16n16", Some(_)) => trans && count < 4,
        ("m8n16", Some(packing)) => !trans && packing.bits < 8,
        _ => false,
    };
    if !is_there {
        return Err(Failure::Unsupported);
    }
    let [d, address] = i.operands()?;
    let rows = rows(l, address, shape.space)?;
    if let Some(packing) = shape.packing {
        let values = l.load_bytes(&shape, packing, &rows);
        let destinations = checked(l.destinations(d)?, values.len(), d.span)?;
        for (var, value) in destinations.into_iter().zip(values) {
            l.write_same_width(var, value, d.span)?;
        }
        return Ok(());
    }
    let values = l.matrix_rows(&shape, &rows, vec![], false);
    for (var, value) in checked(l.destinations(d)?, count, d.span)?.into_iter().zip(values) {
        l.write_same_width(var, value, d.span)?;
    }
    Ok(())
}

/// `stmatrix.sync.aligned.m8n8.num{.trans}{.shared}.b16 [p], r`, `.m16n8.num.trans{.shared}.b8`
pub(super) fn stmatrix<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    let shape = shape(i)?;
    let Shape { count, trans, .. } = shape;
    let is_there = match (shape.name, shape.packing) {
        ("m8n8", None) => true,
        ("m16n8", Some(Packing { bits: 8 })) => trans,
        _ => false,
    };
    if !is_there {
        return Err(Failure::Unsupported);
    }
    let [address, a] = i.operands()?;
    let rows = rows(l, address, shape.space)?;
    if shape.packing.is_some() {
        let values = checked(l.exact_values(a, Type::B32)?, count, a.span)?;
        l.store_bytes(&rows, values);
        return Ok(());
    }
    let values = checked(l.exact_values(a, Type::B32)?, count, a.span)?;
    l.matrix_rows(&shape, &rows, values, true);
    Ok(())
}

/// `movmatrix.sync.aligned.m8n8.trans.b16 d, a`
pub(super) fn movmatrix<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    for word in ["sync", "aligned", "m8n8", "trans", "b16"] {
        i.need_one(&[(word, ())])?;
    }
    i.done()?;
    let [d, a] = i.operands()?;
    let a = l.value(a, Type::B32)?;
    let position = l.position();
    // Element (column, row) is in lane 4·column + row / 2, in the half that row's last bit says.
    let in_row = l.word_op(IntBin::Shr, position.row, 1);
    let odd = l.word_op(IntBin::And, position.row, 1);
    let zero = l.word(0);
    let is_odd = l.b.emit1(Op::Icmp(crate::ir::Cmp::Ne, U32), &[odd, zero], Ty::Pred);
    let mut halves = Vec::new();
    for half in 0..2 {
        let row = l.word_op(IntBin::Add, position.column, half);
        let first = l.word_op(IntBin::Shl, row, 2);
        let lane = l.b.emit1(Op::Int(IntBin::Add, U32), &[first, in_row], Ty::B32);
        let pair = l.value_of_lane(a, lane);
        let elements = l.b.emit(Op::Unpack, &[pair], &[Ty::B16, Ty::B16]);
        halves.push(l.b.emit1(Op::Select, &[is_odd, elements[1], elements[0]], Ty::B16));
    }
    let result = l.b.emit1(Op::Pack, &halves, Ty::B32);
    l.write(d, result)
}
