//! Between registers and tensor memory: `tcgen05.ld`, `tcgen05.ld.red`, `tcgen05.st`. A lane's words are where the manual's
//! figures "Matrix fragments for shape …" have them, so each lane loads and stores its own.

use ptx::ast::{Operand, OperandKind, Type};

use super::{I, L, whole_warp};
use crate::ir::{
    Float, FloatBin, FloatMode, FloatUn, Int, IntBin, Mem, Op, Order, S32, Scope, Space, Special, Ty, U32,
    U64, Value,
};
use crate::lower::instruction::{Failure, Lower, fail};
use crate::lower::operand::{immediate, split};
use crate::lower::scope::Entity;

const LOAD_ORDER: (Order, Scope) = (Order::Weak, Scope::Sys);
/// Bytes from a lane to the next, and from a column to the next.
const LANE: u32 = 4;
const COLUMN: u32 = 4 * 128;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// `.32x32b`: a lane's columns.
    Rows,
    /// `.16x64b`, `.16x128b`, `.16x256b`: registers of one lane for each that has to be repeated.
    Tiles(u32),
    /// `.16x32bx2`: 16 lanes at two places.
    Halves,
}

/// Shape, registers and whether halves of words are packed.
struct Transfer {
    shape: Shape,
    n_registers: u32,
    is_packed: bool,
}

impl Transfer {
    /// `.shape.num{.pack::16b}` or `{.unpack::16b}`
    fn of(i: &mut I<'_, '_>, packing: &str) -> Lower<Transfer> {
        let shape = i.need_one(&[
            ("32x32b", Shape::Rows),
            ("16x64b", Shape::Tiles(1)),
            ("16x128b", Shape::Tiles(2)),
            ("16x256b", Shape::Tiles(4)),
            ("16x32bx2", Shape::Halves),
        ])?;
        let repeated = i
            .take_map(|word| word.strip_prefix('x')?.parse::<u32>().ok())
            .filter(|it| it.is_power_of_two() && *it <= 128)
            .ok_or(Failure::Unsupported)?;
        let n_registers = repeated * if let Shape::Tiles(each) = shape { each } else { 1 };
        if n_registers > 128 {
            return Err(Failure::Unsupported);
        }
        Ok(Transfer { shape, n_registers, is_packed: i.take(packing) })
    }

    /// Of a register: rows and columns behind those of [`Transfer::first`].
    fn place(&self, register: u32) -> (u32, u32) {
        match self.shape {
            Shape::Tiles(1) => (0, 2 * register),
            Shape::Tiles(2) => (8 * (register % 2), 4 * (register / 2)),
            Shape::Tiles(_) => (8 * (register / 2 % 2), 8 * (register / 4) + register % 2),
            _ => (0, register),
        }
    }

    /// Where the lane's first register lies: offset in the shared window (`B64`).
    fn first(&self, l: &mut L<'_, '_, '_>, address: Value, half: Option<u32>) -> Value {
        let lane = l.b.emit1(Op::Special(Special::LaneId), &[], Ty::B32);
        let (row, column) = match self.shape {
            Shape::Rows => return l.first_of_rows(address, lane),
            Shape::Halves => {
                let upper = l.word_op(IntBin::Shr, lane, 4);
                let column = l.word_op(IntBin::Mul, upper, half.unwrap_or(0));
                (l.word_op(IntBin::And, lane, 15), Some(column))
            }
            Shape::Tiles(1) => {
                let row = l.word_op(IntBin::Shr, lane, 2);
                let odd = l.word_op(IntBin::And, lane, 1);
                let down = l.word_op(IntBin::Shl, odd, 3);
                let row = l.b.emit1(Op::Int(IntBin::Add, U32), &[row, down], Ty::B32);
                let column = l.word_op(IntBin::Shr, lane, 1);
                (row, Some(l.word_op(IntBin::And, column, 1)))
            }
            Shape::Tiles(each) => {
                let four = l.word_op(IntBin::And, lane, 3);
                let column = if each == 4 { l.word_op(IntBin::Shl, four, 1) } else { four };
                (l.word_op(IntBin::Shr, lane, 2), Some(column))
            }
        };
        // A column of packed halves is two.
        let is_scaled = self.is_packed && self.shape != Shape::Halves;
        let column = column.map(|it| if is_scaled { l.word_op(IntBin::Shl, it, 1) } else { it });
        let start = l.word_op(IntBin::Shr, address, 16);
        let row = l.b.emit1(Op::Int(IntBin::Add, U32), &[start, row], Ty::B32);
        let row = l.word_op(IntBin::And, row, 127);
        let row = l.word_op(IntBin::Mul, row, LANE);
        let mut across = address;
        if let Some(column) = column {
            across = l.b.emit1(Op::Int(IntBin::Add, U32), &[address, column], Ty::B32);
        }
        let across = l.word_op(IntBin::And, across, 511);
        let across = l.word_op(IntBin::Mul, across, COLUMN);
        let within = l.b.emit1(Op::Int(IntBin::Add, U32), &[row, across], Ty::B32);
        let memory = l.tensor_memory();
        let within = l.b.emit1(Op::Zext, &[within], Ty::B64);
        l.long_op(IntBin::Add, memory, within)
    }

    /// Bytes from the first register to this one, and of packed halves to the upper one.
    fn offset(&self, register: u32) -> i64 {
        let (row, column) = self.place(register);
        let columns = if self.is_packed { 2 * column } else { column };
        i64::from(row * LANE + columns * COLUMN)
    }
}

impl L<'_, '_, '_> {
    /// Where a lane's word of `.32x32b` lies. A warp has 32 of the 128 rows to itself, of which the address names the first: so its
    /// lanes' words are a line of memory, which the sum says to whoever loads them.
    fn first_of_rows(&mut self, address: Value, lane: Value) -> Value {
        let row = self.word_op(IntBin::Shr, address, 16);
        let row = self.word_op(IntBin::And, row, 96);
        let row = self.word_op(IntBin::Mul, row, LANE);
        let across = self.word_op(IntBin::And, address, 511);
        let across = self.word_op(IntBin::Mul, across, COLUMN);
        let within = self.b.emit1(Op::Int(IntBin::Add, U32), &[row, across], Ty::B32);
        let within = self.b.emit1(Op::Zext, &[within], Ty::B64);
        let memory = self.tensor_memory();
        let first = self.long_op(IntBin::Add, memory, within);
        let lane = self.b.emit1(Op::Zext, &[lane], Ty::B64);
        let four = self.b.constant(Ty::B64, LANE.into());
        let behind = self.b.emit1(Op::Int(IntBin::Mul, U64), &[lane, four], Ty::B64);
        self.long_op(IntBin::Add, first, behind)
    }
}

/// `[taddr]`, `[taddr+offset]`: an address in tensor memory (`B32`), which is in a register.
pub(super) fn address<'a>(l: &mut L<'_, '_, 'a>, operand: &Operand<'a>) -> Lower<Value> {
    let OperandKind::Address(address) = &operand.kind else {
        return fail(operand.span, "expected an address in brackets");
    };
    let (Some(name), offset) = split(&address.base)? else {
        return fail(operand.span, "an address in tensor memory is in a register");
    };
    let Some(Entity::Register(register)) = l.entity(name) else {
        return fail(operand.span, "an address in tensor memory is in a register");
    };
    let ([var], true) = (&*register.vars, address.more.is_empty()) else {
        return fail(operand.span, "not an address");
    };
    let value = l.b.read(*var);
    let value = l.same_width(value, Ty::B32, operand.span)?;
    Ok(if offset == 0 { value } else { l.word_op(IntBin::Add, value, offset as u32) })
}

/// The constant that says how far the second place of `.16x32bx2` is from the first, in columns.
fn half(shape: Shape, operand: Option<&Operand<'_>>) -> Lower<Option<u32>> {
    match operand {
        None => Ok(None),
        Some(operand) => match immediate(operand) {
            Some(columns) if shape == Shape::Halves => Ok(Some(columns as u32)),
            _ => fail(operand.span, "how far the halves are apart is a constant"),
        },
    }
}

/// The registers of `{…}`, of which there are to be so many.
fn registers<'o, 'a>(operand: &'o Operand<'a>, expected: u32) -> Lower<&'o [Operand<'a>]> {
    match &operand.kind {
        OperandKind::Vector(list)
            if list.len() == expected as usize
                && list.iter().all(|it| matches!(it.kind, OperandKind::Name(_))) =>
        {
            Ok(list)
        }
        _ => fail(operand.span, format!("expected a vector of {expected} registers")),
    }
}

/// How `tcgen05.ld.red` takes the words of a lane together.
#[derive(Clone, Copy)]
enum Reduction {
    Float { op: FloatBin, absolute: bool },
    Int { op: IntBin, int: Int },
}

impl Reduction {
    /// `.redOp{.abs}{.NaN}.f32`, `.redOp.u32`, `.redOp.s32`
    fn of(i: &mut I<'_, '_>) -> Lower<Reduction> {
        let is_max = i.need_one(&[("min", false), ("max", true)])?;
        let (absolute, nan) = (i.take("abs"), i.take("NaN"));
        let int = match i.ty()? {
            Type::F32 => None,
            Type::U32 if !absolute && !nan => Some(U32),
            Type::S32 if !absolute && !nan => Some(S32),
            _ => return Err(Failure::Unsupported),
        };
        Ok(match (int, is_max) {
            (Some(int), false) => Reduction::Int { op: IntBin::Min, int },
            (Some(int), true) => Reduction::Int { op: IntBin::Max, int },
            (None, false) => Reduction::Float { op: FloatBin::Min { nan, xorsign_abs: false }, absolute },
            (None, true) => Reduction::Float { op: FloatBin::Max { nan, xorsign_abs: false }, absolute },
        })
    }

    fn all(self, l: &mut L<'_, '_, '_>, words: &[Value]) -> Value {
        let words = words.iter().map(|&word| match self {
            Reduction::Int { .. } => word,
            Reduction::Float { absolute, .. } => {
                let number = l.b.emit1(Op::Bitcast, &[word], Ty::F32);
                let magnitude = Op::FloatUn(FloatUn::Abs, Float::F32, FloatMode::default());
                if absolute { l.b.emit1(magnitude, &[number], Ty::F32) } else { number }
            }
        });
        let words: Vec<Value> = words.collect();
        let (&first, rest) = words.split_first().expect("a transfer has registers");
        rest.iter().fold(first, |so_far, &word| match self {
            Reduction::Int { op, int } => l.b.emit1(Op::Int(op, int), &[so_far, word], Ty::B32),
            Reduction::Float { op, .. } => {
                let op = Op::Float(op, Float::F32, FloatMode::default());
                l.b.emit1(op, &[so_far, word], Ty::F32)
            }
        })
    }
}

/// `tcgen05.ld.sync.aligned.shape.num{.pack::16b}.b32 r, [taddr]{, half}` and
/// `tcgen05.ld.red.sync.aligned.shape.num.redOp{.abs}{.NaN}.type r, reduced, [taddr]{, half}`
pub(super) fn load<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    let is_reduced = i.take("red");
    // It is a part of the opcode's name.
    if is_reduced && i.ast.modifiers.get(1).is_none_or(|it| it.value != "red") {
        return Err(Failure::Unsupported);
    }
    whole_warp(i)?;
    let transfer = Transfer::of(i, if is_reduced { "" } else { "pack::16b" })?;
    let reduction = match is_reduced {
        true => Some(Reduction::of(i)?),
        false => {
            i.need_one(&[("b32", ())])?;
            None
        }
    };
    i.done()?;
    let is_tiled = matches!(transfer.shape, Shape::Tiles(_));
    if is_reduced && (is_tiled || transfer.n_registers == 1) {
        return Err(Failure::Unsupported);
    }
    let at = 1 + usize::from(is_reduced);
    super::expect(i, at + 1 + usize::from(transfer.shape == Shape::Halves))?;
    let targets = registers(i.operand(0)?, transfer.n_registers)?;
    let address = address(l, i.operand(at)?)?;
    let half = half(transfer.shape, i.ast.operands.get(at + 1))?;
    l.meet();
    let first = transfer.first(l, address, half);
    let (order, scope) = LOAD_ORDER;
    let mut words = vec![];
    for register in 0..transfer.n_registers {
        let offset = transfer.offset(register);
        let mut load = |bits: u8, offset: i64| {
            let mem = Mem { bits, signed: false };
            let op = Op::Load { space: Space::Shared, mem, offset, order, scope };
            l.b.emit1(op, &[first], Ty::of_bits(bits.into()))
        };
        words.push(if transfer.is_packed {
            let halves = [load(16, offset), load(16, offset + i64::from(COLUMN))];
            l.b.emit1(Op::Pack, &halves, Ty::B32)
        } else {
            load(32, offset)
        });
    }
    for (target, &word) in targets.iter().zip(&words) {
        l.write(target, word)?;
    }
    if let Some(reduction) = reduction {
        let all = reduction.all(l, &words);
        // ptxas takes braces around it, which the manual does not have; Triton writes them.
        let target = match &i.operand(1)?.kind {
            OperandKind::Vector(list) if list.len() == 1 => &list[0],
            _ => i.operand(1)?,
        };
        l.write(target, all)?;
    }
    Ok(())
}

/// `tcgen05.st.sync.aligned.shape.num{.unpack::16b}.b32 [taddr], {half, }r`
pub(super) fn store<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    whole_warp(i)?;
    let transfer = Transfer::of(i, "unpack::16b")?;
    i.need_one(&[("b32", ())])?;
    i.done()?;
    let has_half = transfer.shape == Shape::Halves;
    super::expect(i, 2 + usize::from(has_half))?;
    let address = address(l, i.operand(0)?)?;
    let half = half(transfer.shape, i.ast.operands.get(1).filter(|_| has_half))?;
    let sources = registers(i.operand(1 + usize::from(has_half))?, transfer.n_registers)?;
    let words: Vec<Value> = sources.iter().map(|it| l.value(it, Type::B32)).collect::<Lower<_>>()?;
    l.meet();
    let first = transfer.first(l, address, half);
    let (order, scope) = LOAD_ORDER;
    for (register, word) in (0..).zip(words) {
        let offset = transfer.offset(register);
        let parts = match transfer.is_packed {
            false => vec![(word, offset)],
            true => {
                let (lower, upper) = (l.word_op(IntBin::And, word, 0xffff), l.word_op(IntBin::Shr, word, 16));
                vec![(lower, offset), (upper, offset + i64::from(COLUMN))]
            }
        };
        for (word, offset) in parts {
            let mem = Mem { bits: 32, signed: false };
            let op = Op::Store { space: Space::Shared, mem, offset, order, scope };
            l.b.emit(op, &[first, word], &[]);
        }
    }
    Ok(())
}
