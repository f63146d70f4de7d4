//! The SIMD video instructions: one operation on each byte or half word of two registers. Each part of a source is any
//! part of the register pair `{b, a}` (`a.b7531`); a mask on the destination (`d.b20`) says which parts are written.

use ptx::ast::{Operand, OperandKind, Type};

use super::function::Lowerer;
use super::instruction::{Failure, Instr, Lower, fail};
use crate::ir::{Cmp, IntBin, IntUn, Op, S32, Ty, U32, Value};

type L<'l, 'i, 'a> = Lowerer<'l, 'i, 'a>;
type I<'i, 'a> = Instr<'i, 'a>;

#[derive(Clone, Copy, PartialEq)]
enum Simd {
    Add,
    Sub,
    Average,
    Difference,
    Min,
    Max,
    Set(Cmp),
}

/// `v{add,sub,avrg,absdiff,min,max}{2,4}.dtype.atype.btype{.sat}{.add} d, a, b, c`, `vset{2,4}.atype.btype.cmp{.add}`
pub(super) fn simd<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    let name = i.ast.opcode.value;
    let (stem, lanes) = name.split_at(name.len().saturating_sub(1));
    let bits = if lanes == "4" { 8 } else { 16 };
    let op = match stem {
        "vadd" => Simd::Add,
        "vsub" => Simd::Sub,
        "vavrg" => Simd::Average,
        "vabsdiff" => Simd::Difference,
        "vmin" => Simd::Min,
        "vmax" => Simd::Max,
        _ => Simd::Set(i.need_one(&[
            ("eq", Cmp::Eq),
            ("ne", Cmp::Ne),
            ("lt", Cmp::Lt),
            ("le", Cmp::Le),
            ("gt", Cmp::Gt),
            ("ge", Cmp::Ge),
        ])?),
    };
    let is_signed = |ty| match ty {
        Type::U32 => Ok(false),
        Type::S32 => Ok(true),
        _ => Err(Failure::Unsupported),
    };
    let signed = if matches!(op, Simd::Set(_)) { false } else { is_signed(i.ty()?)? };
    let (a_signed, b_signed) = (is_signed(i.ty()?)?, is_signed(i.ty()?)?);
    let sat = i.take("sat");
    let accumulate = i.take("add");
    i.done()?;
    if sat && accumulate {
        return Err(Failure::Unsupported);
    }
    let [d, a, b, c] = i.operands()?;
    // As of NVIDIA's assembler; the manual does not say so.
    for source in [a, b, c] {
        if matches!(source.kind, OperandKind::Expression(_)) {
            return fail(source.span, "a source of a SIMD video instruction is a register");
        }
    }
    let n = 32 / bits;
    let mask = match selector(d) {
        Some(text) => parts(text, bits, n).ok_or(Failure::Unsupported)?,
        None => (0..n).collect(),
    };
    let from = |operand: &Operand<'a>, first: u32| match selector(operand) {
        Some(text) => {
            parts(text, bits, 2 * n).filter(|it| it.len() == n as usize).ok_or(Failure::Unsupported)
        }
        None => Ok((first..first + n).collect()),
    };
    let (from_a, from_b) = (from(a, 0)?, from(b, n)?);
    let words = [l.simd_word(a)?, l.simd_word(b)?];
    // The secondary operation: the sum of c and all results, or c's parts where the mask has none.
    let mut result = l.value(c, Type::B32)?;
    for lane in mask {
        let mut part = |from: &[u32], signed: bool| {
            let part = from[lane as usize];
            l.lane(words[(part / n) as usize], part % n, bits, signed)
        };
        let (x, y) = (part(&from_a, a_signed), part(&from_b, b_signed));
        let mut value = l.simd_op(op, x, y);
        if sat {
            let (low, high) =
                if signed { (-(1i32 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) };
            let (low, high) = (l.number(low as u32), l.number(high as u32));
            value = l.b.emit1(Op::Int(IntBin::Max, S32), &[value, low], Ty::B32);
            value = l.b.emit1(Op::Int(IntBin::Min, S32), &[value, high], Ty::B32);
        }
        result = if accumulate {
            l.b.emit1(Op::Int(IntBin::Add, U32), &[result, value], Ty::B32)
        } else {
            let (position, length) = (l.number(lane * bits), l.number(bits));
            l.b.emit1(Op::Bfi(U32), &[value, result, position, length], Ty::B32)
        };
    }
    match &d.kind {
        OperandKind::Member(name, _) => {
            let var = l.word_register(name, d.span)?;
            l.write_var(var, result);
            Ok(())
        }
        _ => l.write(d, result),
    }
}

/// What stands behind an operand's register.
fn selector<'a>(operand: &Operand<'a>) -> Option<&'a str> {
    match operand.kind {
        OperandKind::Member(_, selector) => Some(selector),
        _ => None,
    }
}

/// `b3210`, `h32`: the parts named, the lowest first; each below `limit`.
fn parts(selector: &str, bits: u32, limit: u32) -> Option<Vec<u32>> {
    let digits = selector.strip_prefix(if bits == 8 { 'b' } else { 'h' })?;
    let part = |digit: char| digit.to_digit(10).filter(|&part| part < limit);
    digits.chars().rev().map(part).collect()
}

impl<'a> Lowerer<'_, '_, 'a> {
    fn simd_word(&mut self, operand: &Operand<'a>) -> Lower<Value> {
        match &operand.kind {
            OperandKind::Member(name, _) => {
                let var = self.word_register(name, operand.span)?;
                let value = self.b.read(var);
                Ok(self.untyped(value))
            }
            _ => self.value(operand, Type::B32),
        }
    }

    fn number(&mut self, value: u32) -> Value {
        self.b.constant(Ty::B32, value.into())
    }

    /// One part of a register, extended to 32 bits.
    fn lane(&mut self, word: Value, lane: u32, bits: u32, signed: bool) -> Value {
        let (position, length) = (self.number(lane * bits), self.number(bits));
        let int = if signed { S32 } else { U32 };
        self.b.emit1(Op::Bfe(int), &[word, position, length], Ty::B32)
    }

    /// The operation on parts, exact in 32 bits.
    fn simd_op(&mut self, op: Simd, x: Value, y: Value) -> Value {
        let binary =
            |l: &mut Self, op: IntBin, a: Value, b: Value| l.b.emit1(Op::Int(op, S32), &[a, b], Ty::B32);
        match op {
            Simd::Add => binary(self, IntBin::Add, x, y),
            Simd::Sub => binary(self, IntBin::Sub, x, y),
            Simd::Min => binary(self, IntBin::Min, x, y),
            Simd::Max => binary(self, IntBin::Max, x, y),
            Simd::Difference => {
                let difference = binary(self, IntBin::Sub, x, y);
                self.b.emit1(Op::IntUn(IntUn::Abs, S32), &[difference], Ty::B32)
            }
            Simd::Average => {
                // Half of the sum, rounded away from zero where it is not negative, and down where it is.
                let sum = binary(self, IntBin::Add, x, y);
                let zero = self.number(0);
                let rounds = self.b.emit1(Op::Icmp(Cmp::Ge, S32), &[sum, zero], Ty::Pred);
                let one = self.b.emit1(Op::Zext, &[rounds], Ty::B32);
                let sum = binary(self, IntBin::Add, sum, one);
                let count = self.number(1);
                binary(self, IntBin::Shr, sum, count)
            }
            Simd::Set(cmp) => {
                let truth = self.b.emit1(Op::Icmp(cmp, S32), &[x, y], Ty::Pred);
                self.b.emit1(Op::Zext, &[truth], Ty::B32)
            }
        }
    }
}
