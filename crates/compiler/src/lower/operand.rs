//! Operands: registers, constants, symbols and special registers as values; addresses as base and offset; destinations
//! as variables.

use ptx::Span;
use ptx::ast::{self, BinaryOperator, Expression, ExpressionKind, Operand, OperandKind, Type};

use super::builder::Var;
use super::function::Lowerer;
use super::instruction::{Failure, Lower, fail, register_ty};
use super::link::{Symbol, bits_of};
use super::scope::Entity;
use super::special;
use crate::ir::{GlobalId, Int, IntBin, Op, Space, Ty, Value};
use crate::program::GlobalSpace;

/// What a memory operand names.
pub(super) enum Place {
    Memory {
        space: Space,
        base: Value,
        offset: i64,
    },
    /// A parameter held in registers.
    Buffer {
        index: usize,
        offset: i64,
    },
}

/// The integer that an operand is when the text is read.
pub(super) fn immediate(operand: &Operand<'_>) -> Option<u64> {
    match &operand.kind {
        OperandKind::Expression(expression) => expression.constant().ok().and_then(ptx::Constant::integer),
        _ => None,
    }
}

impl<'l, 'i, 'a> Lowerer<'l, 'i, 'a> {
    /// The operand as a value of `ty`.
    pub(super) fn value(&mut self, operand: &Operand<'a>, ty: Type) -> Lower<Value> {
        let want = register_ty(ty);
        if let Some(value) = self.register_value(operand)? {
            // As ptxas has it, of a sum its low bits are enough.
            let is_sum = matches!(operand.kind, OperandKind::Expression(_));
            return match is_sum {
                true => self.narrowed(value, ty, operand.span),
                false => self.same_width(value, want, operand.span),
            };
        }
        match &operand.kind {
            OperandKind::Name(name) => self.named_value(name, want, operand.span),
            OperandKind::Member(name, member) => self.special_element(name, member, want, operand.span),
            OperandKind::Expression(expression) => self.expression_value(expression, ty),
            OperandKind::Not(inner) if ty == Type::Pred => {
                let value = self.value(inner, ty)?;
                Ok(self.b.emit1(Op::Not, &[value], Ty::Pred))
            }
            OperandKind::Element(name, index) => {
                let (_, base, offset) = self.element(name, index, operand.span)?;
                let address = self.add_offset(base, offset);
                Ok(self.resize(address, want, false))
            }
            OperandKind::Sink => fail(operand.span, "`_` is not a source"),
            _ => fail(operand.span, "expected a register or a constant"),
        }
    }

    /// The operand as a value of `ty`'s width or wider, cut to it: what `cvt` and `st` allow.
    pub(super) fn narrow_value(&mut self, operand: &Operand<'a>, ty: Type) -> Lower<Value> {
        match self.register_value(operand)? {
            Some(value) => self.narrowed(value, ty, operand.span),
            None => self.value(operand, ty),
        }
    }

    fn narrowed(&mut self, value: Value, ty: Type, span: Span) -> Lower<Value> {
        let want = register_ty(ty);
        if self.b.ty(value).bits() > want.bits() {
            return Ok(self.resize(value, want, false));
        }
        self.same_width(value, want, span)
    }

    /// `r`, `v.x`, `r + 1`: what a register holds, in its own type; `None` if the operand names none.
    fn register_value(&mut self, operand: &Operand<'a>) -> Lower<Option<Value>> {
        let (name, number) = match &operand.kind {
            OperandKind::Name(name) => (*name, None),
            OperandKind::Member(name, member) if !special::is_vector(name) => {
                let var = self.member(name, member, operand.span)?;
                return Ok(Some(self.b.read(var)));
            }
            OperandKind::Expression(expression) if expression.constant() == Err(ptx::NotConstant::Name) => {
                let (Some(name), number) = split(expression)? else { return Ok(None) };
                (name, Some(number))
            }
            _ => return Ok(None),
        };
        let Some(Entity::Register(register)) = self.entity(name) else { return Ok(None) };
        let [var] = register.vars[..] else { return fail(operand.span, format!("'{name}' is a vector")) };
        let value = self.b.read(var);
        let Some(number) = number else { return Ok(Some(value)) };
        // As ptxas has it, the number is added in the register's width.
        let int = match register.ty {
            Ty::B16 => crate::ir::U16,
            Ty::B32 => crate::ir::U32,
            Ty::B64 => crate::ir::U64,
            _ => return fail(operand.span, "a number is added to registers of integers alone"),
        };
        let number = self.b.constant(register.ty, number as u128 & ((1 << register.ty.bits()) - 1));
        Ok(Some(self.b.emit1(Op::Int(IntBin::Add, int), &[value, number], register.ty)))
    }

    /// A predicate, `!p` included.
    pub(super) fn predicate(&mut self, operand: &Operand<'a>) -> Lower<Value> {
        self.value(operand, Type::Pred)
    }

    fn expression_value(&mut self, expression: &Expression<'a>, ty: Type) -> Lower<Value> {
        match expression.constant() {
            Ok(constant) => Ok(self.b.constant(register_ty(ty), bits_of(constant, ty))),
            Err(ptx::NotConstant::Name) => {
                let (base, offset) = split(expression)?;
                let Some(name) = base else { return fail(expression.span, "the expression has no value") };
                let address = self.symbol_address(name, expression.span)?.1;
                let address = self.add_offset(address, offset);
                Ok(self.resize(address, register_ty(ty), false))
            }
            Err(_) => fail(expression.span, "the expression has no value"),
        }
    }

    fn add_offset(&mut self, base: Value, offset: i64) -> Value {
        if offset == 0 {
            return base;
        }
        let offset = self.b.constant(Ty::B64, offset as u64 as u128);
        self.b.emit1(Op::Int(IntBin::Add, crate::ir::U64), &[base, offset], Ty::B64)
    }

    /// A name that is no register of this function: special register or symbol.
    fn named_value(&mut self, name: &'a str, want: Ty, span: Span) -> Lower<Value> {
        if name == "WARP_SZ" {
            return Ok(self.b.constant(want, 32));
        }
        if let Some(value) = special::constant(name) {
            if let Some(need) = special::need_of_constant(name) {
                self.require(span, &format!("'{name}'"), need)?;
            }
            return Ok(self.b.constant(want, value));
        }
        if let Some(special) = special::find(name, None) {
            return self.special(name, special, want, span);
        }
        let address = self.symbol_address(name, span)?.1;
        if !matches!(want, Ty::B32 | Ty::B64) {
            return fail(span, format!("the address of '{name}' does not fit the type"));
        }
        Ok(self.resize(address, want, false))
    }

    /// `%tid.x`
    fn special_element(&mut self, name: &str, member: &str, want: Ty, span: Span) -> Lower<Value> {
        match special::find(name, Some(member)) {
            Some(special) => self.special(name, special, want, span),
            None if matches!(member, "w" | "a") => Ok(self.b.constant(want, 0)),
            None => fail(span, format!("'.{member}' is not a vector element")),
        }
    }

    /// The four elements of `%tid` and its like.
    pub(super) fn special_vector(&mut self, operand: &Operand<'a>, ty: Type) -> Lower<Option<Vec<Value>>> {
        let OperandKind::Name(name) = operand.kind else { return Ok(None) };
        if !special::is_vector(name) {
            return Ok(None);
        }
        let elements = ["x", "y", "z", "w"];
        let elements =
            elements.into_iter().map(|it| self.special_element(name, it, register_ty(ty), operand.span));
        elements.collect::<Lower<_>>().map(Some)
    }

    fn special(&mut self, name: &str, special: crate::ir::Special, want: Ty, span: Span) -> Lower<Value> {
        if let Some(need) = special::need(special) {
            self.require(span, &format!("'{name}'"), need)?;
        }
        let ty = special::ty(special);
        let value = self.b.emit1(Op::Special(special), &[], ty);
        Ok(self.resize(value, want, false))
    }

    /// The space of a symbol and its address in that space.
    pub(super) fn symbol_address(&mut self, name: &str, span: Span) -> Lower<(Space, Value)> {
        let (space, op) = self.symbol(name, span)?;
        Ok((space, self.b.emit1(op, &[], Ty::B64)))
    }

    /// The space of a symbol, and what gives its address there.
    fn symbol(&mut self, name: &str, span: Span) -> Lower<(Space, Op)> {
        Ok(match self.entity(name) {
            Some(Entity::KernelParam(offset)) => (Space::Param, Op::ParamAddr(offset)),
            Some(Entity::Local(id)) => (Space::Local, Op::LocalAddr(id)),
            Some(Entity::Global(id)) => (self.global_space(id), Op::GlobalAddr(id)),
            Some(Entity::Shared(id)) => (Space::Shared, Op::SharedAddr(id)),
            Some(Entity::Buffer(_)) => {
                return fail(span, format!("the address of parameter '{name}' is not supported"));
            }
            Some(_) => return fail(span, format!("'{name}' has no address")),
            None => match self.module.linked.symbol(self.unit, name) {
                Some(Symbol::Global(id)) => (self.global_space(id), Op::GlobalAddr(id)),
                Some(Symbol::Shared(id)) => (Space::Shared, Op::SharedAddr(id)),
                Some(Symbol::Function(id)) => (Space::Generic, Op::FuncAddr(id)),
                Some(Symbol::External(_) | Symbol::Undefined) => {
                    return Err(Failure::Undefined(span, name.to_owned()));
                }
                Some(Symbol::Kernel(index)) => {
                    (Space::Generic, Op::Const(super::indirect::kernel_address(index).into()))
                }
                None => return fail(span, format!("'{name}' is not declared")),
            },
        })
    }

    fn global_space(&self, id: GlobalId) -> Space {
        match self.module.globals()[id.index()].space {
            GlobalSpace::Global => Space::Global,
            GlobalSpace::Const => Space::Const,
        }
    }

    /// `name[index]`, an element of an array: its space, an address and what is to be added to that. As ptxas has it, an
    /// index in a register is multiplied in its own width, and zeros fill what is missing to an address.
    fn element(&mut self, name: &'a str, index: &Expression<'a>, span: Span) -> Lower<(Space, Value, i64)> {
        let (space, address) = self.symbol(name, span)?;
        let bytes = match address {
            Op::LocalAddr(id) => self.b.locals()[id.index()].element,
            Op::GlobalAddr(id) => self.module.globals()[id.index()].element,
            Op::SharedAddr(id) => self.shared[id.index()].element,
            _ => return fail(span, format!("'{name}' is not an array")),
        };
        let base = self.b.emit1(address, &[], Ty::B64);
        let (register, number) = split(index)?;
        let offset = number.wrapping_mul(bytes as i64);
        let Some(register) = register else { return Ok((space, base, offset)) };
        let Some(Entity::Register(register)) = self.entity(register) else {
            return fail(index.span, "an index is a register or a constant");
        };
        let int = match register.ty {
            Ty::B32 => crate::ir::U32,
            Ty::B64 => crate::ir::U64,
            _ => return fail(index.span, "an index has 32 or 64 bits"),
        };
        let (ty, value) = (register.ty, self.b.read(register.vars[0]));
        let size = self.b.constant(ty, bytes.into());
        let scaled = self.b.emit1(Op::Int(IntBin::Mul, int), &[value, size], ty);
        let scaled = self.resize(scaled, Ty::B64, false);
        let base = self.b.emit1(Op::Int(IntBin::Add, crate::ir::U64), &[base, scaled], Ty::B64);
        Ok((space, base, offset))
    }

    /// `[base + offset]` of an access that says `explicit` as its space, or none.
    pub(super) fn place(&mut self, operand: &Operand<'a>, explicit: Option<Space>) -> Lower<Place> {
        let expression = match &operand.kind {
            OperandKind::Address(address) if address.more.is_empty() => &address.base,
            OperandKind::Address(_) => return fail(operand.span, "expected a plain address"),
            OperandKind::Element(name, index) => {
                let element = self.element(name, index, operand.span)?;
                return in_space(explicit, name, element, operand.span);
            }
            _ => return fail(operand.span, "expected an address in brackets"),
        };
        let (base, offset) = split(expression)?;
        let Some(name) = base else {
            let base = self.b.constant(Ty::B64, offset as u64 as u128);
            return Ok(Place::Memory { space: explicit.unwrap_or(Space::Generic), base, offset: 0 });
        };
        match self.entity(name) {
            Some(Entity::Register(register)) if register.vars.len() == 1 => {
                let value = self.b.read(register.vars[0]);
                if !matches!(register.ty, Ty::B16 | Ty::B32 | Ty::B64) {
                    return fail(expression.span, format!("'{name}' is not an address"));
                }
                let base = self.resize(value, Ty::B64, false);
                Ok(Place::Memory { space: explicit.unwrap_or(Space::Generic), base, offset })
            }
            Some(Entity::Buffer(index)) if matches!(explicit, Some(Space::Param)) => {
                Ok(Place::Buffer { index, offset })
            }
            _ => {
                let (space, base) = self.symbol_address(name, expression.span)?;
                in_space(explicit, name, (space, base, offset), expression.span)
            }
        }
    }

    /// The same bits as another type of that width.
    pub(super) fn same_width(&mut self, value: Value, want: Ty, span: Span) -> Lower<Value> {
        let ty = self.b.ty(value);
        if ty.bits() != want.bits() {
            let message =
                format!("the operand has {} bits, the instruction takes {}", ty.bits(), want.bits());
            return fail(span, message);
        }
        Ok(self.resize(value, want, false))
    }

    /// The low bits of `value`, or `value` extended, as `want`.
    pub(super) fn resize(&mut self, value: Value, want: Ty, signed: bool) -> Value {
        let ty = self.b.ty(value);
        if ty == want {
            return value;
        }
        if ty.bits() == want.bits() {
            return self.b.emit1(Op::Bitcast, &[value], want);
        }
        let bits = self.untyped(value);
        let op = match (ty.bits() < want.bits(), signed) {
            (true, true) => Op::Sext,
            (true, false) => Op::Zext,
            (false, _) => Op::Trunc,
        };
        let untyped = Ty::of_bits(want.bits());
        let resized = self.b.emit1(op, &[bits], untyped);
        if untyped == want { resized } else { self.b.emit1(Op::Bitcast, &[resized], want) }
    }

    /// The value as plain bits.
    pub(super) fn untyped(&mut self, value: Value) -> Value {
        let ty = self.b.ty(value);
        let untyped = Ty::of_bits(ty.bits());
        if ty == untyped { value } else { self.b.emit1(Op::Bitcast, &[value], untyped) }
    }

    /// Cuts a register to its low 8 bits; a `B16` holds 8-bit values extended.
    pub(super) fn extend_byte(&mut self, value: Value, signed: bool) -> Value {
        if signed {
            let op = Op::Cvt {
                from: crate::ir::Num::Int(Int { bits: 8, signed: true }),
                to: crate::ir::Num::Int(crate::ir::S16),
                mode: Default::default(),
            };
            return self.b.emit1(op, &[value], Ty::B16);
        }
        let mask = self.b.constant(Ty::B16, 0xff);
        self.b.emit1(Op::Int(IntBin::And, crate::ir::U16), &[value, mask], Ty::B16)
    }

    // ---- destinations ----

    /// The variable that an operand names; `None` for `_`.
    pub(super) fn destination(&mut self, operand: &Operand<'a>) -> Lower<Option<Var>> {
        match &operand.kind {
            OperandKind::Name(name) => {
                let register = self.register(name, operand.span)?;
                match &*register.vars {
                    [var] => Ok(Some(*var)),
                    _ => fail(operand.span, format!("'{name}' is a vector")),
                }
            }
            OperandKind::Member(name, member) => self.member(name, member, operand.span).map(Some),
            OperandKind::Sink => Ok(None),
            _ => fail(operand.span, "expected a register as destination"),
        }
    }

    /// The variables of `{a, b, _}`, of a vector register, or of a single register.
    pub(super) fn destinations(&mut self, operand: &Operand<'a>) -> Lower<Vec<Option<Var>>> {
        match &operand.kind {
            OperandKind::Vector(list) => list.iter().map(|it| self.destination(it)).collect(),
            OperandKind::Name(name) => {
                let register = self.register(name, operand.span)?;
                Ok(register.vars.iter().copied().map(Some).collect())
            }
            _ => Ok(vec![self.destination(operand)?]),
        }
    }

    /// The values of `{a, b}`, of a vector register, or of a single operand.
    pub(super) fn values(&mut self, operand: &Operand<'a>, ty: Type) -> Lower<Vec<Value>> {
        match &operand.kind {
            OperandKind::Vector(list) => list.iter().map(|it| self.narrow_value(it, ty)).collect(),
            OperandKind::Name(name) => {
                if let Some(Entity::Register(register)) = self.entity(name)
                    && register.vars.len() > 1
                {
                    let values: Vec<Value> = register.vars.iter().map(|&var| self.b.read(var)).collect();
                    return values.into_iter().map(|it| self.narrowed(it, ty, operand.span)).collect();
                }
                Ok(vec![self.narrow_value(operand, ty)?])
            }
            _ => Ok(vec![self.narrow_value(operand, ty)?]),
        }
    }

    fn member(&mut self, name: &str, member: &str, span: Span) -> Lower<Var> {
        let register = self.register(name, span)?;
        let index = match member {
            "x" | "r" => 0,
            "y" | "g" => 1,
            "z" | "b" => 2,
            "w" | "a" => 3,
            _ => return fail(span, format!("'.{member}' is not a vector element")),
        };
        match register.vars.get(index) {
            Some(&var) if register.vars.len() > 1 => Ok(var),
            _ => fail(span, format!("'{name}' has no element '.{member}'")),
        }
    }

    /// Writes `value` to the register that `operand` names; widths agree.
    pub(super) fn write(&mut self, operand: &Operand<'a>, value: Value) -> Lower {
        let var = self.destination(operand)?;
        self.write_same_width(var, value, operand.span)
    }

    pub(super) fn write_same_width(&mut self, var: Option<Var>, value: Value, span: Span) -> Lower {
        if let Some(var) = var {
            let value = self.same_width(value, self.b.var_ty(var), span)?;
            self.write_var(var, value);
        }
        Ok(())
    }

    /// Writes `value` to a register that may be wider; the rest is filled with the sign or zeros.
    pub(super) fn write_extended(
        &mut self,
        var: Option<Var>,
        value: Value,
        signed: bool,
        span: Span,
    ) -> Lower {
        let Some(var) = var else { return Ok(()) };
        let want = self.b.var_ty(var);
        if want.bits() < self.b.ty(value).bits() || want == Ty::Pred && self.b.ty(value) != Ty::Pred {
            return fail(span, "the destination is too small");
        }
        let value = self.resize(value, want, signed);
        self.write_var(var, value);
        Ok(())
    }

    /// Writes under the guard of a pure instruction.
    pub(super) fn write_var(&mut self, var: Var, value: Value) {
        let value = match self.guard {
            Some(guard) => {
                let old = self.b.read(var);
                let ty = self.b.ty(value);
                self.b.emit1(Op::Select, &[guard, value, old], ty)
            }
            None => value,
        };
        self.b.write(var, value);
    }

    // ---- parameters in registers ----

    /// `bytes` bytes at `offset` of a parameter, as bits.
    pub(super) fn read_buffer(&mut self, index: usize, offset: i64, bytes: u32, span: Span) -> Lower<Value> {
        let buffer = self.buffers[index].clone();
        let chunk = i64::from(buffer.chunk);
        let size = i64::from(bytes);
        if offset < 0 || offset + size > chunk * buffer.vars.len() as i64 {
            return fail(span, "outside of the parameter");
        }
        let ty = Ty::of_bits(bytes * 8);
        let (first, within) = ((offset / chunk) as usize, offset % chunk);
        if size == chunk && within == 0 {
            let value = self.b.read(buffer.vars[first]);
            return Ok(self.resize(value, ty, false));
        }
        if within + size <= chunk {
            let word = self.b.read(buffer.vars[first]);
            let word = self.untyped(word);
            let word_ty = self.b.ty(word);
            let shifted = self.shift_right(word, word_ty, within as u32 * 8);
            let part = self.resize(shifted, ty, false);
            return Ok(if bytes == 1 { self.extend_byte(part, false) } else { part });
        }
        if within != 0 || size % chunk != 0 {
            return fail(span, "an access across parts of the parameter is not supported");
        }
        let parts = (size / chunk) as usize;
        let mut result = None;
        for at in 0..parts {
            let part = self.b.read(buffer.vars[first + at]);
            let mut part = self.untyped(part);
            if chunk == 1 {
                part = self.extend_byte(part, false);
            }
            let part = self.resize(part, ty, false);
            let part = self.shift_left(part, ty, at as u32 * buffer.chunk * 8);
            result = Some(match result {
                None => part,
                Some(result) => self.bitwise(IntBin::Or, ty, result, part),
            });
        }
        match result {
            Some(result) => Ok(result),
            None => fail(span, "outside of the parameter"),
        }
    }

    /// Writes `bytes` bytes at `offset` of a parameter.
    pub(super) fn write_buffer(
        &mut self,
        index: usize,
        offset: i64,
        bytes: u32,
        value: Value,
        span: Span,
    ) -> Lower {
        let buffer = self.buffers[index].clone();
        let chunk = i64::from(buffer.chunk);
        let size = i64::from(bytes);
        if offset < 0 || offset + size > chunk * buffer.vars.len() as i64 {
            return fail(span, "outside of the parameter");
        }
        let (first, within) = ((offset / chunk) as usize, offset % chunk);
        if size == chunk && within == 0 {
            let var = buffer.vars[first];
            let value = self.resize(value, self.b.var_ty(var), false);
            self.write_var(var, value);
            return Ok(());
        }
        let value = self.untyped(value);
        if within + size <= chunk {
            let var = buffer.vars[first];
            let old = self.b.read(var);
            let old = self.untyped(old);
            let ty = self.b.ty(old);
            let field = ((1u128 << (bytes * 8)) - 1) << (within * 8);
            let keep = self.b.constant(ty, !field);
            let only = self.b.constant(ty, field);
            let kept = self.bitwise(IntBin::And, ty, old, keep);
            let wide = self.resize(value, ty, false);
            let shifted = self.shift_left(wide, ty, within as u32 * 8);
            let part = self.bitwise(IntBin::And, ty, shifted, only);
            let merged = self.bitwise(IntBin::Or, ty, kept, part);
            let merged = self.resize(merged, self.b.var_ty(var), false);
            self.write_var(var, merged);
            return Ok(());
        }
        if within != 0 || size % chunk != 0 {
            return fail(span, "an access across parts of the parameter is not supported");
        }
        let ty = self.b.ty(value);
        for at in 0..(size / chunk) as usize {
            let var = buffer.vars[first + at];
            let shifted = self.shift_right(value, ty, at as u32 * buffer.chunk * 8);
            let part = self.resize(shifted, self.b.var_ty(var), false);
            self.write_var(var, part);
        }
        Ok(())
    }

    fn shift_right(&mut self, value: Value, ty: Ty, bits: u32) -> Value {
        self.shift(IntBin::Shr, value, ty, bits)
    }

    fn shift_left(&mut self, value: Value, ty: Ty, bits: u32) -> Value {
        self.shift(IntBin::Shl, value, ty, bits)
    }

    fn shift(&mut self, op: IntBin, value: Value, ty: Ty, bits: u32) -> Value {
        if bits == 0 {
            return value;
        }
        let count = self.b.constant(Ty::B32, u128::from(bits));
        self.b.emit1(Op::Int(op, Int { bits: ty.bits() as u8, signed: false }), &[value, count], ty)
    }

    pub(super) fn bitwise(&mut self, op: IntBin, ty: Ty, a: Value, b: Value) -> Value {
        self.b.emit1(Op::Int(op, Int { bits: ty.bits() as u8, signed: false }), &[a, b], ty)
    }
}

/// What `name` is to an access that says `explicit` as its space, or none.
fn in_space(
    explicit: Option<Space>,
    name: &str,
    (space, base, offset): (Space, Value, i64),
    span: Span,
) -> Lower<Place> {
    if !agrees(explicit, space) {
        return fail(span, format!("'{name}' is not in that state space"));
    }
    Ok(Place::Memory { space, base, offset })
}

/// Whether an access that says `explicit` may go to a symbol in `space`.
fn agrees(explicit: Option<Space>, space: Space) -> bool {
    match explicit {
        None | Some(Space::Generic) => true,
        // A parameter that lives in local memory is still `.param` to the text.
        Some(Space::Param) => matches!(space, Space::Param | Space::Local),
        Some(explicit) => explicit == space,
    }
}

/// An address expression as its one name and the sum of its numbers.
pub(super) fn split<'a>(expression: &Expression<'a>) -> Lower<(Option<&'a str>, i64)> {
    if let Ok(constant) = expression.constant() {
        return match constant.integer() {
            Some(bits) => Ok((None, bits as i64)),
            None => fail(expression.span, "an address is an integer"),
        };
    }
    match &expression.kind {
        ExpressionKind::Name(name) => Ok((Some(name), 0)),
        ExpressionKind::Generic(inner) => split(inner),
        ExpressionKind::Binary(BinaryOperator::Add, left, right) => match (split(left)?, split(right)?) {
            ((Some(name), a), (None, b)) | ((None, a), (Some(name), b)) => {
                Ok((Some(name), a.wrapping_add(b)))
            }
            _ => fail(expression.span, "an address has one register or symbol"),
        },
        ExpressionKind::Binary(BinaryOperator::Subtract, left, right) => {
            match (split(left)?, split(right)?) {
                ((Some(name), a), (None, b)) => Ok((Some(name), a.wrapping_sub(b))),
                _ => fail(expression.span, "an address has one register or symbol"),
            }
        }
        _ => fail(expression.span, "not an address"),
    }
}

/// The space an instruction's modifier names.
pub(super) fn space(word: &str) -> Option<Space> {
    Some(match word {
        "global" => Space::Global,
        "shared" | "shared::cta" | "shared::cluster" => Space::Shared,
        "local" => Space::Local,
        "param" | "param::entry" | "param::func" => Space::Param,
        "const" => Space::Const,
        _ => return None,
    })
}

/// The suffix of `[a].unified` says where the memory is; it changes nothing.
pub(super) fn has_only_known_suffix(operand: &Operand<'_>) -> bool {
    match &operand.kind {
        OperandKind::Address(ast::Address { suffix: Some(suffix), .. }) => suffix.value == "unified",
        _ => true,
    }
}
