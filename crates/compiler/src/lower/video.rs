//! The scalar video instructions: arithmetic on bytes, half words and words of registers, with a second operation or a
//! merge behind it. Everything is computed in 64 bits, which holds every intermediate value of the manual exactly.

use ptx::Span;
use ptx::ast::{Operand, OperandKind, Type};

use super::builder::Var;
use super::function::Lowerer;
use super::instruction::{Failure, Instr, Lower, fail};
use crate::ir::{Cmp, Int, IntBin, IntUn, Op, S64, Ty, U64, Value};

type L<'l, 'i, 'a> = Lowerer<'l, 'i, 'a>;
type I<'i, 'a> = Instr<'i, 'a>;

/// A byte or half word of a register.
#[derive(Clone, Copy)]
struct Part {
    bits: u32,
    shift: u32,
}

const WHOLE: Part = Part { bits: 32, shift: 0 };

fn part(selector: &str) -> Option<Part> {
    Some(match selector {
        "b0" => Part { bits: 8, shift: 0 },
        "b1" => Part { bits: 8, shift: 8 },
        "b2" => Part { bits: 8, shift: 16 },
        "b3" => Part { bits: 8, shift: 24 },
        "h0" => Part { bits: 16, shift: 0 },
        "h1" => Part { bits: 16, shift: 16 },
        _ => return None,
    })
}

/// An operand's register, its part, and whether it is negated.
struct Source<'o, 'a> {
    register: Option<&'a str>,
    operand: &'o Operand<'a>,
    part: Part,
    negated: bool,
}

fn source<'o, 'a>(operand: &'o Operand<'a>) -> Lower<Source<'o, 'a>> {
    let (inner, negated) = match &operand.kind {
        OperandKind::Negate(inner) => (inner.as_ref(), true),
        _ => (operand, false),
    };
    if let OperandKind::Member(name, selector) = &inner.kind {
        let Some(part) = part(selector) else {
            return fail(inner.span, format!("'.{selector}' is not a part"));
        };
        return Ok(Source { register: Some(name), operand: inner, part, negated });
    }
    Ok(Source { register: None, operand: inner, part: WHOLE, negated })
}

impl<'i, 'a> Lowerer<'_, 'i, 'a> {
    fn wide(&mut self, value: i64) -> Value {
        self.b.constant(Ty::B64, value as u64 as u128)
    }

    fn op64(&mut self, op: IntBin, int: Int, a: Value, b: Value) -> Value {
        self.b.emit1(Op::Int(op, int), &[a, b], Ty::B64)
    }

    fn shift64(&mut self, op: IntBin, int: Int, value: Value, bits: u32) -> Value {
        if bits == 0 {
            return value;
        }
        let count = self.b.constant(Ty::B32, u128::from(bits));
        self.b.emit1(Op::Int(op, int), &[value, count], Ty::B64)
    }

    /// The 32-bit register of which an instruction names a part.
    pub(super) fn word_register(&mut self, name: &'a str, span: Span) -> Lower<Var> {
        let register = self.register(name, span)?;
        match &*register.vars {
            [var] if register.ty == Ty::B32 => Ok(*var),
            [_] => fail(span, "parts are of 32-bit registers"),
            _ => fail(span, "a vector has no parts"),
        }
    }

    /// The part of the operand, extended to 64 bits by the type's sign.
    fn part_value(&mut self, source: &Source<'_, 'a>, signed: bool) -> Lower<Value> {
        let word = match source.register {
            Some(name) => {
                let var = self.word_register(name, source.operand.span)?;
                let value = self.b.read(var);
                self.untyped(value)
            }
            None => self.value(source.operand, Type::B32)?,
        };
        let wide = self.b.emit1(Op::Zext, &[word], Ty::B64);
        // Up to the top, and down again with the sign or zeros.
        let up = self.shift64(IntBin::Shl, U64, wide, 64 - source.part.bits - source.part.shift);
        let int = if signed { S64 } else { U64 };
        Ok(self.shift64(IntBin::Shr, int, up, 64 - source.part.bits))
    }

    fn clamp64(&mut self, value: Value, low: i64, high: i64) -> Value {
        let (low, high) = (self.wide(low), self.wide(high));
        let value = self.op64(IntBin::Max, S64, value, low);
        self.op64(IntBin::Min, S64, value, high)
    }
}

fn limits(signed: bool, bits: u32) -> (i64, i64) {
    if signed { (-(1i64 << (bits - 1)), (1i64 << (bits - 1)) - 1) } else { (0, (1i64 << bits) - 1) }
}

fn word_type(i: &mut I<'_, '_>) -> Lower<bool> {
    match i.ty()? {
        Type::U32 => Ok(false),
        Type::S32 => Ok(true),
        _ => Err(Failure::Unsupported),
    }
}

/// Saturation, second operation or merge, and the write: what all but `vmad` end with.
fn finish<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>, value: Value, signed: bool, sat: bool) -> Lower {
    let second = i.take_one(&[("add", IntBin::Add), ("min", IntBin::Min), ("max", IntBin::Max)]);
    i.done()?;
    let d = i.operand(0)?;
    let merge = match &d.kind {
        OperandKind::Member(_, selector) => {
            Some(part(selector).ok_or_else(|| Failure::At(d.span, "not a part of a register".to_owned()))?)
        }
        _ => None,
    };
    let least = if second.is_some() || merge.is_some() { 4 } else { 3 };
    // As ptxas has it, a third source may stand beside a whole destination, of which nothing is left to merge it into.
    if !(least..=4).contains(&i.count()) || second.is_some() && merge.is_some() {
        return Err(Failure::Unsupported);
    }
    let (low, high) = limits(signed, merge.map_or(32, |part| part.bits));
    let value = if sat { l.clamp64(value, low, high) } else { value };
    let mut result = l.b.emit1(Op::Trunc, &[value], Ty::B32);
    let word = Int { bits: 32, signed };
    if let Some(op) = second {
        let c = l.value(i.operand(3)?, Type::B32)?;
        result = l.b.emit1(Op::Int(op, word), &[result, c], Ty::B32);
    }
    if i.count() == 4 && second.is_none() {
        l.value(i.operand(3)?, Type::B32)?;
    }
    let Some(part) = merge else { return l.write(d, result) };
    let c = l.value(i.operand(3)?, Type::B32)?;
    let (position, length) =
        (l.b.constant(Ty::B32, part.shift.into()), l.b.constant(Ty::B32, part.bits.into()));
    let merged = l.b.emit1(Op::Bfi(crate::ir::U32), &[result, c, position, length], Ty::B32);
    let OperandKind::Member(name, _) = &d.kind else { return Err(Failure::Unsupported) };
    let var = l.word_register(name, d.span)?;
    l.write_var(var, merged);
    Ok(())
}

/// `vadd`, `vsub`, `vabsdiff`, `vmin`, `vmax` `.dtype.atype.btype{.sat}{.op2} d{.sel}, a{.sel}, b{.sel}{, c}`
fn arithmetic<'i, 'a>(
    l: &mut L<'_, 'i, 'a>,
    i: &mut I<'i, 'a>,
    op: impl Fn(&mut L<'_, 'i, 'a>, Value, Value) -> Value,
) -> Lower {
    let (signed, a_signed, b_signed) = (word_type(i)?, word_type(i)?, word_type(i)?);
    let sat = i.take("sat");
    let (a, b) = (source(i.operand(1)?)?, source(i.operand(2)?)?);
    if a.negated || b.negated {
        return Err(Failure::Unsupported);
    }
    let (a, b) = (l.part_value(&a, a_signed)?, l.part_value(&b, b_signed)?);
    let value = op(l, a, b);
    finish(l, i, value, signed, sat)
}

/// `vadd`
pub(super) fn vadd<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    arithmetic(l, i, |l, a, b| l.op64(IntBin::Add, S64, a, b))
}

/// `vsub`
pub(super) fn vsub<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    arithmetic(l, i, |l, a, b| l.op64(IntBin::Sub, S64, a, b))
}

/// `vabsdiff`
pub(super) fn vabsdiff<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    arithmetic(l, i, |l, a, b| {
        let difference = l.op64(IntBin::Sub, S64, a, b);
        l.b.emit1(Op::IntUn(IntUn::Abs, S64), &[difference], Ty::B64)
    })
}

/// `vmin`
pub(super) fn vmin<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    arithmetic(l, i, |l, a, b| l.op64(IntBin::Min, S64, a, b))
}

/// `vmax`
pub(super) fn vmax<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    arithmetic(l, i, |l, a, b| l.op64(IntBin::Max, S64, a, b))
}

/// `vshl.dtype.atype.u32{.sat}.mode{.op2} d, a, b{, c}`
pub(super) fn vshl<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    shift(l, i, IntBin::Shl)
}

/// `vshr.dtype.atype.u32{.sat}.mode{.op2} d, a, b{, c}`
pub(super) fn vshr<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    shift(l, i, IntBin::Shr)
}

fn shift<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>, op: IntBin) -> Lower {
    let wrap = i.need_one(&[("clamp", false), ("wrap", true)])?;
    let saturates_left = op == IntBin::Shl && i.ast.has("sat");
    arithmetic(l, i, |l, a, b| {
        let count = if wrap {
            let mask = l.wide(31);
            l.op64(IntBin::And, U64, b, mask)
        } else {
            let most = l.wide(32);
            l.op64(IntBin::Min, U64, b, most)
        };
        // a is extended by its own sign, so an arithmetic shift is right for both.
        let by = |l: &mut L<'_, 'i, 'a>, value: Value, count: Value| {
            let count = l.b.emit1(Op::Trunc, &[count], Ty::B32);
            l.b.emit1(Op::Int(op, S64), &[value, count], Ty::B64)
        };
        let shifted = by(l, a, count);
        if !saturates_left {
            return shifted;
        }
        // Results of scalar video instructions have 34 bits with their sign; GPUs clamp what is left of longer ones.
        let up = l.shift64(IntBin::Shl, U64, shifted, 30);
        l.shift64(IntBin::Shr, S64, up, 30)
    })
}

/// `vset.atype.btype.cmp{.op2} d, a, b{, c}`: 1 or 0.
pub(super) fn vset<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    let cmp = i.need_one(&[
        ("eq", Cmp::Eq),
        ("ne", Cmp::Ne),
        ("lt", Cmp::Lt),
        ("le", Cmp::Le),
        ("gt", Cmp::Gt),
        ("ge", Cmp::Ge),
    ])?;
    let (a_signed, b_signed) = (word_type(i)?, word_type(i)?);
    let (a, b) = (source(i.operand(1)?)?, source(i.operand(2)?)?);
    if a.negated || b.negated {
        return Err(Failure::Unsupported);
    }
    let (a, b) = (l.part_value(&a, a_signed)?, l.part_value(&b, b_signed)?);
    let truth = l.b.emit1(Op::Icmp(cmp, S64), &[a, b], Ty::Pred);
    let value = l.b.emit1(Op::Zext, &[truth], Ty::B64);
    finish(l, i, value, false, false)
}

/// `vmad.dtype.atype.btype{.sat}{.shr7,.shr15} d, {-}a{.sel}, {-}b{.sel}, {-}c`, `vmad….po`
pub(super) fn vmad<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    let (_, a_signed, b_signed) = (word_type(i)?, word_type(i)?, word_type(i)?);
    let plus_one = i.take("po");
    let sat = i.take("sat");
    let scale = i.take_one(&[("shr7", 7), ("shr15", 15)]).unwrap_or(0);
    i.done()?;
    let [d, a, b, c] = i.operands()?;
    let (a, b, c) = (source(a)?, source(b)?, source(c)?);
    if c.part.bits != 32 || plus_one && (a.negated || b.negated || c.negated) {
        return Err(Failure::Unsupported);
    }
    let product_negated = a.negated != b.negated;
    let signed = a_signed || b_signed || product_negated || c.negated;
    let (x, y) = (l.part_value(&a, a_signed)?, l.part_value(&b, b_signed)?);
    let mut product = l.op64(IntBin::Mul, S64, x, y);
    let mut addend = l.part_value(&c, signed)?;
    // The manual's order: the product is negated if its signs differ, else the addend if it is negated.
    if product_negated {
        product = l.b.emit1(Op::IntUn(IntUn::Neg, S64), &[product], Ty::B64);
    } else if c.negated {
        addend = l.b.emit1(Op::IntUn(IntUn::Neg, S64), &[addend], Ty::B64);
    } else if plus_one {
        let one = l.wide(1);
        addend = l.op64(IntBin::Add, S64, addend, one);
    }
    let sum = l.op64(IntBin::Add, S64, product, addend);
    let int = if signed { S64 } else { U64 };
    let scaled = l.shift64(IntBin::Shr, int, sum, scale);
    let result = match (sat, signed) {
        (false, _) => scaled,
        (true, true) => l.clamp64(scaled, i64::from(i32::MIN), i64::from(i32::MAX)),
        (true, false) => {
            let most = l.wide(i64::from(u32::MAX));
            l.op64(IntBin::Min, U64, scaled, most)
        }
    };
    let result = l.b.emit1(Op::Trunc, &[result], Ty::B32);
    l.write(d, result)
}
