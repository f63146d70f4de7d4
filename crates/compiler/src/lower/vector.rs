//! Registers of several parts: lists in braces and vector registers, what they are as bits, and how they travel into a
//! function and back.

use ptx::Span;
use ptx::ast::{Operand, OperandKind, Type};

use super::function::Lowerer;
use super::instruction::{Lower, fail, register_ty};
use super::layout::Shape;
use super::scope::{Entity, Register};
use crate::ir::{IntBin, Op, Ty, U16, Value};

impl<'a> Lowerer<'_, '_, 'a> {
    /// The number of parts of a list or of a vector register; `None` for what is one value.
    pub(super) fn parts(&mut self, operand: &Operand<'a>) -> Option<usize> {
        match &operand.kind {
            OperandKind::Vector(list) => Some(list.len()),
            _ => self.vector_register(operand).map(|register| register.vars.len()),
        }
    }

    fn vector_register(&mut self, operand: &Operand<'a>) -> Option<Register> {
        match &operand.kind {
            OperandKind::Name(name) => match self.entity(name) {
                Some(Entity::Register(register)) if register.vars.len() > 1 => Some(register),
                _ => None,
            },
            _ => None,
        }
    }

    /// The elements of a list or of a vector register, or the one value, each as wide as `ty`.
    pub(super) fn exact_values(&mut self, operand: &Operand<'a>, ty: Type) -> Lower<Vec<Value>> {
        if let OperandKind::Vector(list) = &operand.kind {
            return list.iter().map(|it| self.value(it, ty)).collect();
        }
        let Some(register) = self.vector_register(operand) else { return Ok(vec![self.value(operand, ty)?]) };
        let values: Vec<Value> = register.vars.iter().map(|&var| self.b.read(var)).collect();
        values.into_iter().map(|it| self.same_width(it, register_ty(ty), operand.span)).collect()
    }

    /// `mov.b32 d, {a, b}`, `mov.b32 d, v`: the bits of the parts, which make up `ty`.
    pub(super) fn packed(&mut self, operand: &Operand<'a>, parts: usize, ty: Type) -> Lower<Value> {
        let part = part_type(ty.bits(), parts, operand.span)?;
        let values = self.exact_values(operand, part)?;
        let packed = self.join(values, part.bits());
        Ok(self.resize(packed, register_ty(ty), false))
    }

    /// `mov.b32 {a, b}, value`, `mov.b32 v, value`
    pub(super) fn unpack(&mut self, operand: &Operand<'a>, value: Value) -> Lower {
        let vars = self.destinations(operand)?;
        let part = part_type(self.b.ty(value).bits(), vars.len(), operand.span)?;
        let parts = self.divide(value, part.bits());
        for (var, part) in vars.into_iter().zip(parts) {
            self.write_same_width(var, part, operand.span)?;
        }
        Ok(())
    }

    /// Parts of `bits` bits side by side, the first lowest. A part of 8 bits is the low half of its value.
    fn join(&mut self, parts: Vec<Value>, bits: u32) -> Value {
        let mut parts: Vec<Value> = parts.into_iter().map(|part| self.untyped(part)).collect();
        let total = bits * parts.len() as u32;
        if bits == 8 {
            let bytes = std::mem::take(&mut parts);
            for pair in bytes.chunks_exact(2) {
                let low = self.extend_byte(pair[0], false);
                let count = self.b.constant(Ty::B32, 8);
                let high = self.b.emit1(Op::Int(IntBin::Shl, U16), &[pair[1], count], Ty::B16);
                parts.push(self.bitwise(IntBin::Or, Ty::B16, low, high));
            }
        }
        match parts.as_slice() {
            [single] => *single,
            _ => self.b.emit1(Op::Pack, &parts, Ty::of_bits(total)),
        }
    }

    /// `value` cut into parts of `bits` bits, which those of 8 are extended from with zeros.
    fn divide(&mut self, value: Value, bits: u32) -> Vec<Value> {
        let value = self.untyped(value);
        let total = self.b.ty(value).bits();
        let pieces = (total / bits.max(16)) as usize;
        let pieces = match pieces {
            0 | 1 => vec![value],
            _ => self.b.emit(Op::Unpack, &[value], &vec![Ty::of_bits(bits.max(16)); pieces]),
        };
        if bits != 8 {
            return pieces;
        }
        let mut bytes = Vec::new();
        for piece in pieces {
            bytes.push(self.extend_byte(piece, false));
            let count = self.b.constant(Ty::B32, 8);
            bytes.push(self.b.emit1(Op::Int(IntBin::Shr, U16), &[piece, count], Ty::B16));
        }
        bytes
    }

    /// Whether a register holds what a parameter of that shape does.
    pub(super) fn fits(&self, register: &Register, shape: &Shape) -> bool {
        let parts = register.vars.len() as u64;
        parts == 1 && shape.count == 1
            || parts * u64::from(register.declared.bits())
                == u64::from(shape.count) * u64::from(shape.chunk) * 8
    }

    /// A register in the chunks of a shape that it fits.
    pub(super) fn read_chunks(&mut self, register: &Register, shape: &Shape) -> Vec<Value> {
        let values: Vec<Value> = register.vars.iter().map(|&var| self.b.read(var)).collect();
        let chunks = self.regrouped(values, register.declared.bits(), shape.count as usize, shape.chunk * 8);
        chunks.into_iter().map(|chunk| self.resize(chunk, shape.ty, false)).collect()
    }

    /// Writes the chunks of a shape to a register that fits it.
    pub(super) fn write_chunks(&mut self, register: &Register, shape: &Shape, chunks: &[Value]) {
        let values =
            self.regrouped(chunks.to_vec(), shape.chunk * 8, register.vars.len(), register.declared.bits());
        for (&var, value) in register.vars.iter().zip(values) {
            let value = self.resize(value, register.ty, false);
            self.write_var(var, value);
        }
    }

    /// The same bits in `count` values of `to` bits instead of `from`.
    fn regrouped(&mut self, values: Vec<Value>, from: u32, count: usize, to: u32) -> Vec<Value> {
        if values.len() == count {
            return values;
        }
        let whole = self.join(values, from);
        self.divide(whole, to)
    }
}

/// The type of one of `parts` equal parts.
fn part_type(bits: u32, parts: usize, span: Span) -> Lower<Type> {
    match u32::try_from(parts)
        .ok()
        .and_then(|parts| bits.checked_div(parts).filter(|part| part * parts == bits))
    {
        Some(8) => Ok(Type::B8),
        Some(16) => Ok(Type::B16),
        Some(32) => Ok(Type::B32),
        Some(64) => Ok(Type::B64),
        _ => fail(span, "the parts do not make up the type"),
    }
}
