//! Operands of instructions.

use super::{Parser, Read};
use crate::ast::{Address, Operand, OperandKind};
use crate::lexer::{Kind, Op};
use crate::span::Spanned;

/// Tokens that are looked at to know how many operands there will be: those of most instructions.
const MANY: usize = 16;

impl<'a> Parser<'a> {
    /// Operands up to the one that is not followed by a comma.
    pub(super) fn operands(&mut self) -> Read<Vec<Operand<'a>>> {
        let of_statement = self.rest().iter().take_while(|it| it.kind != Kind::Op(Op::Semicolon));
        let n_commas = of_statement.take(MANY).filter(|it| it.kind == Kind::Op(Op::Comma)).count();
        let mut operands = Vec::with_capacity(n_commas + 1);
        loop {
            operands.push(self.operand()?);
            if !self.eat(Op::Comma) {
                return Ok(operands);
            }
        }
    }

    /// Operands of a call, where parentheses hold a list.
    pub(super) fn call_operands(&mut self) -> Read<Vec<Operand<'a>>> {
        let mut operands = Vec::new();
        loop {
            let start = self.span();
            operands.push(if self.eat(Op::LeftParen) {
                let kind = OperandKind::List(self.operand_list(Op::RightParen, ")")?);
                Operand { kind, span: self.since(start) }
            } else {
                self.operand()?
            });
            if !self.eat(Op::Comma) {
                return Ok(operands);
            }
        }
    }

    pub(super) fn operand(&mut self) -> Read<Operand<'a>> {
        self.nested(|this| {
            let start = this.span();
            let first = this.single()?;
            // `p|q`: two destinations. Between numbers `|` is an operator and has been read by then.
            if !this.is(Op::Or) {
                return Ok(first);
            }
            this.at += 1;
            let second = this.single()?;
            let kind = OperandKind::Pair(Box::new(first), Box::new(second));
            Ok(Operand { kind, span: this.since(start) })
        })
    }

    fn single(&mut self) -> Read<Operand<'a>> {
        let start = self.span();
        let kind = match self.kind() {
            Kind::Op(Op::LeftBracket) => OperandKind::Address(self.address()?),
            Kind::Op(Op::LeftBrace) => {
                self.at += 1;
                OperandKind::Vector(self.operand_list(Op::RightBrace, "}")?)
            }
            Kind::Op(Op::Not) if self.look(1).kind == Kind::Word => {
                self.at += 1;
                OperandKind::Not(Box::new(self.nested(Self::single)?))
            }
            Kind::Op(Op::Minus) if self.look(1).kind == Kind::Word => {
                self.at += 1;
                OperandKind::Negate(Box::new(self.nested(Self::single)?))
            }
            Kind::Word => self.named()?,
            _ => OperandKind::Expression(self.expression()?),
        };
        Ok(Operand { kind, span: self.since(start) })
    }

    fn operand_list(&mut self, close: Op, text: &str) -> Read<Vec<Operand<'a>>> {
        if self.eat(close) {
            return Ok(Vec::new());
        }
        let operands = self.operands()?;
        self.expect(close, text)?;
        Ok(operands)
    }

    /// What begins with a name: a name alone, a member, an element, or an expression.
    fn named(&mut self) -> Read<OperandKind<'a>> {
        let token = self.token();
        let name = self.source(token);
        match self.look(1).kind {
            Kind::Dot => {
                self.at += 1;
                let member = self.next();
                Ok(OperandKind::Member(name, &self.source(member)[1..]))
            }
            Kind::Op(Op::LeftBracket) => {
                self.at += 2;
                let index = self.expression()?;
                self.expect(Op::RightBracket, "]")?;
                Ok(OperandKind::Element(name, index))
            }
            Kind::Op(
                Op::Plus
                | Op::Minus
                | Op::Star
                | Op::Slash
                | Op::Percent
                | Op::ShiftLeft
                | Op::ShiftRight
                | Op::LeftParen,
            ) => Ok(OperandKind::Expression(self.expression()?)),
            _ => {
                self.at += 1;
                Ok(if name == "_" { OperandKind::Sink } else { OperandKind::Name(name) })
            }
        }
    }

    fn address(&mut self) -> Read<Address<'a>> {
        self.expect(Op::LeftBracket, "[")?;
        let base = self.expression()?;
        let more = if self.eat(Op::Comma) { self.operands()? } else { Vec::new() };
        self.expect(Op::RightBracket, "]")?;
        let suffix = (self.kind() == Kind::Dot).then(|| {
            let token = self.next();
            Spanned::new(&self.source(token)[1..], token.span)
        });
        Ok(Address { base, more, suffix })
    }
}
