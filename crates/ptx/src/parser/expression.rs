//! Numbers and constant expressions, with C's operators and precedence.

use super::{Parser, Read};
use crate::ast::{BinaryOperator as B, Expression, ExpressionKind, UnaryOperator};
use crate::lexer::{Kind, Op};

/// More nodes than any compiler writes; bounds the depth of the tree.
const MAX_NODES: u32 = 512;

impl<'a> Parser<'a> {
    /// One expression, `? :` included.
    pub(super) fn expression(&mut self) -> Read<Expression<'a>> {
        // An expression inside another one (in an address inside an operand) counts for itself.
        let outer = std::mem::replace(&mut self.nodes, 0);
        let result = self.conditional();
        self.nodes = outer;
        result
    }

    fn node(&mut self, kind: ExpressionKind<'a>, start: crate::Span) -> Read<Expression<'a>> {
        self.nodes += 1;
        let span = self.since(start);
        if self.nodes > MAX_NODES {
            return self.fail(span, "the expression is too long");
        }
        Ok(Expression { kind, span })
    }

    fn conditional(&mut self) -> Read<Expression<'a>> {
        self.nested(|this| {
            let start = this.span();
            let condition = this.binary(0)?;
            if !this.eat(Op::Question) {
                return Ok(condition);
            }
            let yes = this.conditional()?;
            this.expect(Op::Colon, ":")?;
            let no = this.conditional()?;
            this.node(ExpressionKind::Conditional(Box::new([condition, yes, no])), start)
        })
    }

    /// Precedence climbing: operators that bind at least as tightly as `floor`.
    fn binary(&mut self, floor: u8) -> Read<Expression<'a>> {
        let start = self.span();
        let mut left = self.unary()?;
        while let Kind::Op(op) = self.kind() {
            let Some((operator, precedence)) = operator(op) else { break };
            if precedence < floor {
                break;
            }
            self.at += 1;
            let right = self.nested(|this| this.binary(precedence + 1))?;
            left = self.node(ExpressionKind::Binary(operator, Box::new(left), Box::new(right)), start)?;
        }
        Ok(left)
    }

    fn unary(&mut self) -> Read<Expression<'a>> {
        let start = self.span();
        let operator = match self.kind() {
            Kind::Op(Op::Plus) => UnaryOperator::Plus,
            Kind::Op(Op::Minus) => UnaryOperator::Minus,
            Kind::Op(Op::Not) => UnaryOperator::LogicalNot,
            Kind::Op(Op::Tilde) => UnaryOperator::Complement,
            _ => return self.primary(),
        };
        self.at += 1;
        let value = self.nested(Self::unary)?;
        self.node(ExpressionKind::Unary(operator, Box::new(value)), start)
    }

    fn primary(&mut self) -> Read<Expression<'a>> {
        let start = self.span();
        match self.kind() {
            Kind::Int => {
                let (value, unsigned) = self.integer()?;
                // `0xff00(sym)` picks bytes of an address.
                if self.eat(Op::LeftParen) {
                    let inner = self.conditional()?;
                    self.expect(Op::RightParen, ")")?;
                    return self.node(ExpressionKind::Mask(value, Box::new(inner)), start);
                }
                self.node(ExpressionKind::Integer { value, unsigned }, start)
            }
            Kind::Float => {
                let kind = self.float()?;
                self.node(kind, start)
            }
            // `.5`
            Kind::Dot if self.dot().is_some_and(|word| word.starts_with(|c: char| c.is_ascii_digit())) => {
                let token = self.next();
                match self.source(token).parse::<f64>() {
                    Ok(value) => self.node(ExpressionKind::Double(value.to_bits()), start),
                    Err(_) => self.fail(token.span, "malformed number"),
                }
            }
            Kind::Op(Op::LeftParen) => {
                self.at += 1;
                if let Some(cast @ ("s64" | "u64")) = self.dot() {
                    self.at += 1;
                    self.expect(Op::RightParen, ")")?;
                    let value = Box::new(self.nested(Self::unary)?);
                    return self.node(ExpressionKind::Cast { unsigned: cast == "u64", value }, start);
                }
                let inner = self.conditional()?;
                self.expect(Op::RightParen, ")")?;
                Ok(inner)
            }
            Kind::Word => {
                let name = self.ident("a name")?;
                if name.value == "generic" && self.eat(Op::LeftParen) {
                    let inner = self.conditional()?;
                    self.expect(Op::RightParen, ")")?;
                    return self.node(ExpressionKind::Generic(Box::new(inner)), start);
                }
                if name.value == "mask" && self.eat(Op::LeftParen) {
                    return self.mask_call(start);
                }
                self.node(ExpressionKind::Name(name.value), start)
            }
            _ => self.unexpected("a value"),
        }
    }

    /// `mask(0xff)(sym)`, the long form some printers use for `0xff(sym)`.
    fn mask_call(&mut self, start: crate::Span) -> Read<Expression<'a>> {
        let value = self.number("a mask")?;
        self.expect(Op::RightParen, ")")?;
        self.expect(Op::LeftParen, "(")?;
        let inner = self.conditional()?;
        self.expect(Op::RightParen, ")")?;
        self.node(ExpressionKind::Mask(value, Box::new(inner)), start)
    }

    /// The integer that is next, and whether it is unsigned.
    pub(super) fn integer(&mut self) -> Read<(u64, bool)> {
        let token = self.next();
        let text = self.source(token);
        let (digits, suffixed) = match text.strip_suffix(['U', 'u']) {
            Some(digits) => (digits, true),
            None => (text, false),
        };
        let (digits, radix) = match digits.as_bytes() {
            [b'0', b'x' | b'X', ..] => (&digits[2..], 16),
            [b'0', b'b' | b'B', ..] => (&digits[2..], 2),
            [b'0', _, ..] => (&digits[1..], 8),
            _ => (digits, 10),
        };
        match u64::from_str_radix(digits, radix) {
            // The manual: a literal is `.s64` unless it has a `U` or needs the 64th bit.
            Ok(value) => Ok((value, suffixed || i64::try_from(value).is_err())),
            Err(error) if *error.kind() == std::num::IntErrorKind::PosOverflow => {
                self.fail(token.span, "the number does not fit 64 bits")
            }
            Err(_) => self.fail(token.span, "malformed number"),
        }
    }

    fn float(&mut self) -> Read<ExpressionKind<'a>> {
        let token = self.next();
        let text = self.source(token);
        let bits = |digits: &str| u64::from_str_radix(digits, 16).ok();
        let kind = match text.as_bytes() {
            [b'0', b'f' | b'F', ..] if text.len() == 10 => {
                bits(&text[2..]).map(|bits| ExpressionKind::Single(bits as u32))
            }
            [b'0', b'd' | b'D', ..] if text.len() == 18 => bits(&text[2..]).map(ExpressionKind::Double),
            [b'0', b'f' | b'F' | b'd' | b'D', ..] => None,
            _ => text.parse::<f64>().ok().map(|value| ExpressionKind::Double(value.to_bits())),
        };
        match kind {
            Some(kind) => Ok(kind),
            None => self.fail(token.span, "malformed floating-point number"),
        }
    }
}

fn operator(op: Op) -> Option<(B, u8)> {
    Some(match op {
        Op::OrOr => (B::LogicalOr, 1),
        Op::AndAnd => (B::LogicalAnd, 2),
        Op::Or => (B::Or, 3),
        Op::Xor => (B::Xor, 4),
        Op::And => (B::And, 5),
        Op::EqualEqual => (B::Equal, 6),
        Op::NotEqual => (B::NotEqual, 6),
        Op::Less => (B::Less, 7),
        Op::LessEqual => (B::LessEqual, 7),
        Op::Greater => (B::Greater, 7),
        Op::GreaterEqual => (B::GreaterEqual, 7),
        Op::ShiftLeft => (B::ShiftLeft, 8),
        Op::ShiftRight => (B::ShiftRight, 8),
        Op::Plus => (B::Add, 9),
        Op::Minus => (B::Subtract, 9),
        Op::Star => (B::Multiply, 10),
        Op::Slash => (B::Divide, 10),
        Op::Percent => (B::Remainder, 10),
        _ => return None,
    })
}
