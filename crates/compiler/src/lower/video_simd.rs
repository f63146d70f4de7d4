//! The SIMD video instructions: one operation on each byte or half word of two registers. Selecting other parts of the
//! operands and writing only some parts of the result are not supported.

use ptx::ast::{OperandKind, Type};

use super::function::Lowerer;
use super::instruction::{Failure, Instr, Lower};
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
    // Sums of results that do not fit their part: the manual does not say what is added.
    let fits =
        sat || matches!(op, Simd::Set(_)) || op == Simd::Difference && !(a_signed || b_signed || signed);
    let [d, a, b, c] = i.operands()?;
    if accumulate && !fits || [d, a, b].iter().any(|it| matches!(it.kind, OperandKind::Member(..))) {
        return Err(Failure::Unsupported);
    }
    let (a, b) = (l.value(a, Type::B32)?, l.value(b, Type::B32)?);
    let mut result = if accumulate {
        l.value(c, Type::B32)?
    } else {
        // Every part is written, so nothing of c is left; it is checked all the same.
        l.value(c, Type::B32)?;
        l.number(0)
    };
    for lane in 0..32 / bits {
        let (x, y) = (l.lane(a, lane, bits, a_signed), l.lane(b, lane, bits, b_signed));
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
    l.write(d, result)
}

impl Lowerer<'_, '_, '_> {
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
