//! Operands: what a thread reads from them and writes to them.

use ptx::Constant;
use ptx::ast::{
    Address, BinaryOperator, Expression, ExpressionKind, Operand, OperandKind, Type, UnaryOperator,
};

use super::memory::{LOCAL_WINDOW, SHARED_WINDOW};
use super::program::{Entity, FUNCTIONS};
use super::thread::Thread;
use super::{Block, OPEN, Result, Value};

pub fn truncate(value: u128, bits: u32) -> u128 {
    if bits >= 128 { value } else { value & ((1 << bits) - 1) }
}

/// The low `from` bits of a value, as `to` bits with the same number in them.
pub fn extend(value: u128, from: u32, signed: bool, to: u32) -> u128 {
    let value = truncate(value, from);
    let negative = signed && from < 128 && value >> (from - 1) & 1 == 1;
    truncate(if negative { value | u128::MAX << from } else { value }, to)
}

/// Whether a type's values are sign-extended.
pub fn signed(ty: Type) -> bool {
    matches!(ty, Type::S8 | Type::S16 | Type::S32 | Type::S64)
}

/// The bits of a constant in a place of type `ty`: floats are written in the place's precision.
pub fn immediate(expression: &Expression<'_>, ty: Option<Type>) -> Result<u128> {
    let constant = expression.constant().map_err(|_| "not a constant".to_owned())?;
    let bits = match (constant, ty) {
        (Constant::Single(bits), _) => u128::from(bits),
        (constant @ Constant::Double(_), Some(Type::F32)) => u128::from((constant.double() as f32).to_bits()),
        (Constant::Double(value), _) => u128::from(value.to_bits()),
        (Constant::Signed(value), _) => value as i128 as u128,
        (Constant::Unsigned(value), _) => u128::from(value),
    };
    Ok(ty.map_or(truncate(bits, 64), |ty| truncate(bits, ty.bits())))
}

impl<'a> Thread<'_, 'a> {
    /// The bits of a source operand in a place of type `ty`.
    pub fn source(&self, block: &Block<'_>, operand: &Operand<'a>, ty: Option<Type>) -> Result<Value> {
        Ok(Some(match &operand.kind {
            OperandKind::Name(name) => return self.name(block, name),
            OperandKind::Member(name, member) => self.special(block, name, Some(member))?,
            OperandKind::Expression(expression) => match expression.constant() {
                Ok(_) => immediate(expression, ty)?,
                Err(_) => u128::from(self.address_expression(block, expression)?),
            },
            OperandKind::Not(operand) => {
                return Ok(self.source(block, operand, ty)?.map(|it| u128::from(it == 0)));
            }
            OperandKind::Vector(list) => {
                let bits = ty.ok_or("a vector needs a type")?.bits() / list.len() as u32;
                let mut packed = 0;
                for (nth, part) in list.iter().enumerate() {
                    let Some(part) = self.source(block, part, None)? else { return Ok(None) };
                    packed |= truncate(part, bits) << (nth as u32 * bits);
                }
                packed
            }
            other => return Err(format!("{other:?} is not known as a source")),
        }))
    }

    /// A source that decides something: it must be defined.
    pub fn known(&self, block: &Block<'_>, operand: &Operand<'a>, ty: Option<Type>) -> Result<u128> {
        self.source(block, operand, ty)?.ok_or_else(|| OPEN.to_owned())
    }

    fn name(&self, block: &Block<'_>, name: &str) -> Result<Value> {
        let frame = self.frame();
        match self.program.lookup(frame.function, frame.scope(), name) {
            Some(Entity::Register { slot, .. }) => Ok(frame.registers[*slot]),
            _ => self.constant_name(block, name).map(Some),
        }
    }

    fn constant_name(&self, block: &Block<'_>, name: &str) -> Result<u128> {
        if name == "WARP_SZ" {
            return Ok(32);
        }
        let frame = self.frame();
        match self.program.lookup(frame.function, frame.scope(), name) {
            Some(Entity::Shared(offset)) => Ok(u128::from(*offset)),
            Some(Entity::Local(offset)) => Ok(u128::from(frame.local_base + offset)),
            Some(Entity::Global(address)) => Ok(u128::from(*address)),
            Some(Entity::Function(index)) => Ok(u128::from(FUNCTIONS) + 16 * *index as u128),
            Some(other) => Err(format!("{name} is {other:?}, which has no value")),
            None if name.starts_with('%') => self.special(block, name, None),
            None => Err(format!("{name} is not declared")),
        }
    }

    fn special(&self, block: &Block<'_>, name: &str, member: Option<&str>) -> Result<u128> {
        let of = |triple: [u32; 3]| match member {
            Some("x") => Ok(u128::from(triple[0])),
            Some("y") => Ok(u128::from(triple[1])),
            Some("z") => Ok(u128::from(triple[2])),
            _ => Err(format!("{name} has the members x, y and z")),
        };
        let [x, y, _] = block.launch.block;
        let lane = self.linear % 32;
        Ok(match name {
            "%tid" => return of([self.linear % x, self.linear / x % y, self.linear / x / y]),
            "%ntid" => return of(block.launch.block),
            "%ctaid" => return of(block.index),
            "%nctaid" => return of(block.launch.grid),
            "%laneid" => u128::from(lane),
            "%warpid" => u128::from(self.linear / 32),
            "%nwarpid" => 64,
            "%lanemask_eq" => 1 << lane,
            "%lanemask_lt" => (1 << lane) - 1,
            "%lanemask_le" => (2 << lane) - 1,
            "%lanemask_gt" => u128::from(u32::MAX) & !((2 << lane) - 1),
            "%lanemask_ge" => u128::from(u32::MAX) & !((1 << lane) - 1),
            "%dynamic_smem_size" => u128::from(block.launch.dynamic_shared),
            _ => return Err(format!("special register {name} is not known")),
        })
    }

    /// Register or symbol, plus and minus numbers; a 32-bit register counts zero-extended.
    fn address_expression(&self, block: &Block<'_>, expression: &Expression<'a>) -> Result<u64> {
        if let Ok(constant) = expression.constant() {
            return constant.integer().ok_or_else(|| "a float is no address".to_owned());
        }
        match &expression.kind {
            ExpressionKind::Name(name) => Ok(self.name(block, name)?.ok_or(OPEN)? as u64),
            ExpressionKind::Unary(UnaryOperator::Plus, value) => self.address_expression(block, value),
            ExpressionKind::Unary(UnaryOperator::Minus, value) => {
                Ok(self.address_expression(block, value)?.wrapping_neg())
            }
            ExpressionKind::Binary(operator, left, right) => {
                let (left, right) =
                    (self.address_expression(block, left)?, self.address_expression(block, right)?);
                match operator {
                    BinaryOperator::Add => Ok(left.wrapping_add(right)),
                    BinaryOperator::Subtract => Ok(left.wrapping_sub(right)),
                    other => Err(format!("{other:?} in an address")),
                }
            }
            ExpressionKind::Generic(value) => {
                let ExpressionKind::Name(name) = &value.kind else {
                    return Err("generic of what?".to_owned());
                };
                let address = self.constant_name(block, name)? as u64;
                let frame = self.frame();
                Ok(match self.program.lookup(frame.function, frame.scope(), name) {
                    Some(Entity::Shared(_)) => address + SHARED_WINDOW,
                    Some(Entity::Local(_)) => address + LOCAL_WINDOW,
                    _ => address,
                })
            }
            other => Err(format!("{other:?} in an address")),
        }
    }

    /// The value between the brackets.
    pub fn address(&self, block: &Block<'_>, operand: &Operand<'a>) -> Result<u64> {
        match &operand.kind {
            OperandKind::Address(Address { base, more, suffix }) if more.is_empty() && suffix.is_none() => {
                self.address_expression(block, base)
            }
            other => Err(format!("{other:?} is not known as an address")),
        }
    }

    /// A name in the frame's parameters, plus the number behind it.
    pub fn param(&self, operand: &Operand<'a>) -> Option<u64> {
        let OperandKind::Address(address) = &operand.kind else { return None };
        let (name, offset) = match &address.base.kind {
            ExpressionKind::Name(name) => (*name, 0),
            ExpressionKind::Binary(BinaryOperator::Add, left, right) => {
                let ExpressionKind::Name(name) = &left.kind else { return None };
                (*name, right.constant().ok()?.integer()?)
            }
            _ => return None,
        };
        let frame = self.frame();
        match self.program.lookup(frame.function, frame.scope(), name) {
            Some(Entity::Param { offset: at, .. }) => Some(at + offset),
            _ => None,
        }
    }

    /// Writes `value`, which has `bits` bits, to a destination that may be wider.
    pub fn write(&mut self, operand: &Operand<'a>, value: Value, bits: u32, signed: bool) -> Result<()> {
        match &operand.kind {
            OperandKind::Sink => Ok(()),
            OperandKind::Name(name) => {
                let frame = self.frame();
                let slot = match self.program.lookup(frame.function, frame.scope(), name) {
                    Some(Entity::Register { slot, .. }) => *slot,
                    _ => return Err(format!("{name} is not a register")),
                };
                let frame = self.frame_mut();
                let width = frame.function.registers[slot];
                frame.registers[slot] = value.map(|value| extend(value, bits.min(width), signed, width));
                Ok(())
            }
            OperandKind::Vector(list) => {
                let part = bits / list.len() as u32;
                for (nth, operand) in list.iter().enumerate() {
                    let value = value.map(|value| truncate(value >> (nth as u32 * part), part));
                    self.write(operand, value, part, signed)?;
                }
                Ok(())
            }
            other => Err(format!("{other:?} is not known as a destination")),
        }
    }
}
