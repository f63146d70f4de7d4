//! Variables: registers, memory, parameters, and their initialisers.

use super::{Parser, Read};
use crate::ast::{Attribute, Declarator, Expression, Initializer, Linkage, Pointer, Space, Type, Variable};
use crate::lexer::{Kind, Op};
use crate::span::{Span, Spanned};

impl<'a> Parser<'a> {
    /// The state space that is next, if it is one.
    pub(super) fn space(&self) -> Option<Space> {
        self.dot().and_then(Space::parse)
    }

    /// A declaration up to and including its semicolon; the state space is next.
    pub(super) fn variable_statement(
        &mut self,
        linkage: Linkage,
        attributes: Vec<Attribute<'a>>,
        start: Span,
    ) -> Read<Variable<'a>> {
        let mut variable = self.variable_head(linkage, attributes, start)?;
        loop {
            let name = self.declarator()?;
            variable.names.push(name);
            if !self.eat(Op::Comma) {
                break;
            }
        }
        self.expect(Op::Semicolon, ";")?;
        variable.span = self.since(start);
        Ok(variable)
    }

    /// `(.param .b32 a, .reg .b32 b)`; the parenthesis is next.
    pub(super) fn parameters(&mut self) -> Read<Vec<Variable<'a>>> {
        self.expect(Op::LeftParen, "(")?;
        let mut parameters = Vec::new();
        if self.eat(Op::RightParen) {
            return Ok(parameters);
        }
        loop {
            let start = self.span();
            let mut parameter = self.variable_head(Linkage::Local, Vec::new(), start)?;
            // A prototype may leave the name out.
            if !matches!(self.kind(), Kind::Op(Op::Comma | Op::RightParen)) {
                let name = self.declarator()?;
                parameter.names.push(name);
            }
            parameter.span = self.since(start);
            parameters.push(parameter);
            if !self.eat(Op::Comma) {
                break;
            }
        }
        self.expect(Op::RightParen, ")")?;
        Ok(parameters)
    }

    /// State space, alignment, vector, type, attributes and `.ptr`, in any order NVIDIA's assembler takes.
    fn variable_head(
        &mut self,
        linkage: Linkage,
        mut attributes: Vec<Attribute<'a>>,
        start: Span,
    ) -> Read<Variable<'a>> {
        let Some(space) = self.space() else { return self.unexpected("a state space") };
        let space = Spanned::new(space, self.next().span);
        let bank = self.bank()?;
        let mut align = None;
        let mut vector = None;
        let mut ty = None;
        let mut pointer: Option<Pointer> = None;
        while let Some(word) = self.dot() {
            let span = self.span();
            match word {
                "align" => {
                    self.at += 1;
                    let value = self.number("an alignment")?;
                    if !value.is_power_of_two() {
                        return self.fail(span, "an alignment is a power of two");
                    }
                    match &mut pointer {
                        Some(pointer) => pointer.align = Some(value),
                        None => align = Some(Spanned::new(value, self.since(span))),
                    }
                }
                "v2" | "v4" | "v8" => {
                    self.at += 1;
                    vector = word[1..].parse().ok();
                }
                "ptr" => {
                    self.at += 1;
                    pointer = Some(Pointer { space: None, align: None });
                }
                "attribute" => {
                    let attribute = self.attribute_list()?;
                    attributes.extend(attribute);
                }
                _ => {
                    if let (Some(pointer), Some(space)) = (&mut pointer, Space::parse(word)) {
                        pointer.space = Some(space);
                    } else if let Some(known) = Type::parse(word) {
                        ty = Some(Spanned::new(known, span));
                    } else {
                        return self.fail(span, format!("`.{word}` is not a type"));
                    }
                    self.at += 1;
                }
            }
        }
        let Some(ty) = ty else { return self.unexpected("a type") };
        let span = self.since(start);
        Ok(Variable { linkage, attributes, space, bank, align, vector, ty, pointer, names: Vec::new(), span })
    }

    /// `[3]` behind `.const`.
    fn bank(&mut self) -> Read<Option<u64>> {
        if !self.eat(Op::LeftBracket) {
            return Ok(None);
        }
        let bank = self.number("a bank")?;
        self.expect(Op::RightBracket, "]")?;
        Ok(Some(bank))
    }

    /// `.attribute(.managed, .unified(1, 2))`; the directive is next.
    pub(super) fn attribute_list(&mut self) -> Read<Vec<Attribute<'a>>> {
        self.at += 1;
        self.expect(Op::LeftParen, "(")?;
        let mut attributes = Vec::new();
        loop {
            let Some(word) = self.dot() else { return self.unexpected("an attribute") };
            let name = Spanned::new(word, self.next().span);
            let mut arguments = Vec::new();
            if self.eat(Op::LeftParen) {
                arguments = self.expressions()?;
                self.expect(Op::RightParen, ")")?;
            }
            attributes.push(Attribute { name, arguments });
            if !self.eat(Op::Comma) {
                break;
            }
        }
        self.expect(Op::RightParen, ")")?;
        Ok(attributes)
    }

    /// One or more expressions with commas between.
    pub(super) fn expressions(&mut self) -> Read<Vec<Expression<'a>>> {
        let mut expressions = Vec::new();
        loop {
            expressions.push(self.expression()?);
            if !self.eat(Op::Comma) {
                return Ok(expressions);
            }
        }
    }

    fn declarator(&mut self) -> Read<Declarator<'a>> {
        let start = self.span();
        let name = self.ident("a name")?;
        let mut range = None;
        if self.eat(Op::Less) {
            let span = self.span();
            let count = self.number("a count")?;
            range = match u32::try_from(count) {
                Ok(count) => Some(count),
                Err(_) => return self.fail(span, "more registers than there are names"),
            };
            self.expect(Op::Greater, ">")?;
        }
        let mut dimensions = Vec::new();
        while self.eat(Op::LeftBracket) {
            dimensions.push(if self.is(Op::RightBracket) { None } else { Some(self.expression()?) });
            self.expect(Op::RightBracket, "]")?;
        }
        let initializer = if self.eat(Op::Assign) { Some(self.initializer()?) } else { None };
        Ok(Declarator { name, range, dimensions, initializer, span: self.since(start) })
    }

    fn initializer(&mut self) -> Read<Initializer<'a>> {
        let start = self.span();
        if self.eat(Op::LeftBrace) {
            return self.nested(|this| {
                let mut list = Vec::new();
                while !this.is(Op::RightBrace) {
                    list.push(this.initializer()?);
                    if !this.eat(Op::Comma) {
                        break;
                    }
                }
                this.expect(Op::RightBrace, "}")?;
                Ok(Initializer::List(list, this.since(start)))
            });
        }
        if self.kind() == Kind::Word && self.look(1).kind == Kind::Op(Op::Assign) {
            let name = self.ident("a field")?;
            self.at += 1;
            return Ok(Initializer::Field(name, self.expression()?));
        }
        Ok(Initializer::Value(self.expression()?))
    }
}
