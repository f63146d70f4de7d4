//! Constant expressions, by the manual's rules (chapter "Constants"): 64-bit integers, signed unless a `U`, a cast or
//! the size says otherwise, and doubles.

use crate::ast::{BinaryOperator, Expression, ExpressionKind, UnaryOperator};

/// The value of a constant expression.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Constant {
    /// `.s64`
    Signed(i64),
    /// `.u64`
    Unsigned(u64),
    /// `0f…`: exactly these bits, not converted.
    Single(u32),
    /// `0d…` or decimal.
    Double(f64),
}

/// Why an expression has no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotConstant {
    /// It holds the name of a symbol or register.
    Name,
    /// Division or remainder by zero.
    DivisionByZero,
    /// An operator that floating point does not have.
    Type,
}

impl Constant {
    /// The 64 bits of an integer; a float is not converted.
    pub fn integer(self) -> Option<u64> {
        match self {
            Constant::Signed(value) => Some(value as u64),
            Constant::Unsigned(value) => Some(value),
            Constant::Single(_) | Constant::Double(_) => None,
        }
    }

    /// As a double, for a `.f64` place.
    pub fn double(self) -> f64 {
        match self {
            Constant::Signed(value) => value as f64,
            Constant::Unsigned(value) => value as f64,
            Constant::Single(bits) => f64::from(f32::from_bits(bits)),
            Constant::Double(value) => value,
        }
    }

    fn is_true(self) -> bool {
        match self {
            Constant::Signed(value) => value != 0,
            Constant::Unsigned(value) => value != 0,
            Constant::Single(bits) => f32::from_bits(bits) != 0.0,
            Constant::Double(value) => value != 0.0,
        }
    }

    fn is_float(self) -> bool {
        matches!(self, Constant::Single(_) | Constant::Double(_))
    }
}

impl Expression<'_> {
    /// The value, if there are no names in it.
    pub fn constant(&self) -> Result<Constant, NotConstant> {
        match &self.kind {
            ExpressionKind::Integer { value, unsigned: true } => Ok(Constant::Unsigned(*value)),
            ExpressionKind::Integer { value, unsigned: false } => Ok(Constant::Signed(*value as i64)),
            ExpressionKind::Single(bits) => Ok(Constant::Single(*bits)),
            ExpressionKind::Double(bits) => Ok(Constant::Double(f64::from_bits(*bits))),
            ExpressionKind::Name("WARP_SZ") => Ok(Constant::Signed(32)),
            ExpressionKind::Name(_) | ExpressionKind::Generic(_) | ExpressionKind::Mask(..) => {
                Err(NotConstant::Name)
            }
            ExpressionKind::Unary(operator, value) => unary(*operator, value.constant()?),
            ExpressionKind::Binary(operator, left, right) => {
                binary(*operator, left.constant()?, right.constant()?)
            }
            ExpressionKind::Conditional(parts) => {
                let [condition, yes, no] = parts.as_ref();
                if condition.constant()?.is_true() { yes.constant() } else { no.constant() }
            }
            ExpressionKind::Cast { unsigned, value } => {
                let bits = value.constant()?.integer().ok_or(NotConstant::Type)?;
                Ok(if *unsigned { Constant::Unsigned(bits) } else { Constant::Signed(bits as i64) })
            }
        }
    }
}

fn unary(operator: UnaryOperator, value: Constant) -> Result<Constant, NotConstant> {
    Ok(match (operator, value) {
        (UnaryOperator::Plus, value) => value,
        (UnaryOperator::Minus, Constant::Signed(value)) => Constant::Signed(value.wrapping_neg()),
        (UnaryOperator::Minus, Constant::Unsigned(value)) => Constant::Unsigned(value.wrapping_neg()),
        (UnaryOperator::Minus, Constant::Single(bits)) => Constant::Single(bits ^ 0x8000_0000),
        (UnaryOperator::Minus, Constant::Double(value)) => Constant::Double(-value),
        (UnaryOperator::LogicalNot, value) => Constant::Signed(i64::from(!value.is_true())),
        (UnaryOperator::Complement, Constant::Signed(value)) => Constant::Signed(!value),
        (UnaryOperator::Complement, Constant::Unsigned(value)) => Constant::Unsigned(!value),
        (UnaryOperator::Complement, _) => return Err(NotConstant::Type),
    })
}

fn binary(operator: BinaryOperator, left: Constant, right: Constant) -> Result<Constant, NotConstant> {
    use BinaryOperator as B;
    let truth = |value: bool| Ok(Constant::Signed(i64::from(value)));
    match operator {
        B::LogicalAnd => return truth(left.is_true() && right.is_true()),
        B::LogicalOr => return truth(left.is_true() || right.is_true()),
        _ => {}
    }
    if left.is_float() || right.is_float() {
        let (a, b) = (left.double(), right.double());
        return Ok(Constant::Double(match operator {
            B::Add => a + b,
            B::Subtract => a - b,
            B::Multiply => a * b,
            B::Divide => a / b,
            B::Less => return truth(a < b),
            B::LessEqual => return truth(a <= b),
            B::Greater => return truth(a > b),
            B::GreaterEqual => return truth(a >= b),
            B::Equal => return truth(a == b),
            B::NotEqual => return truth(a != b),
            _ => return Err(NotConstant::Type),
        }));
    }
    let (Some(a), Some(b)) = (left.integer(), right.integer()) else { return Err(NotConstant::Type) };
    let signed = matches!((left, right), (Constant::Signed(_), Constant::Signed(_)));
    // Shifts and their like take the type of the left operand.
    let left_signed = matches!(left, Constant::Signed(_));
    let integer = |bits: u64, signed: bool| {
        Ok(if signed { Constant::Signed(bits as i64) } else { Constant::Unsigned(bits) })
    };
    match operator {
        B::Add => integer(a.wrapping_add(b), signed),
        B::Subtract => integer(a.wrapping_sub(b), signed),
        B::Multiply => integer(a.wrapping_mul(b), signed),
        B::Divide | B::Remainder if b == 0 => Err(NotConstant::DivisionByZero),
        B::Divide if signed => integer((a as i64).wrapping_div(b as i64) as u64, true),
        B::Divide => integer(a / b, false),
        B::Remainder if signed => integer((a as i64).wrapping_rem(b as i64) as u64, true),
        B::Remainder => integer(a % b, false),
        B::ShiftLeft => integer(if b < 64 { a << b } else { 0 }, left_signed),
        B::ShiftRight if left_signed => integer(((a as i64) >> b.min(63)) as u64, true),
        B::ShiftRight => integer(if b < 64 { a >> b } else { 0 }, false),
        B::And => integer(a & b, signed),
        B::Or => integer(a | b, signed),
        B::Xor => integer(a ^ b, signed),
        B::Less => truth(if signed { (a as i64) < b as i64 } else { a < b }),
        B::LessEqual => truth(if signed { a as i64 <= b as i64 } else { a <= b }),
        B::Greater => truth(if signed { a as i64 > b as i64 } else { a > b }),
        B::GreaterEqual => truth(if signed { a as i64 >= b as i64 } else { a >= b }),
        B::Equal => truth(a == b),
        B::NotEqual => truth(a != b),
        B::LogicalAnd | B::LogicalOr => Err(NotConstant::Type),
    }
}
