//! Functions: headers, bodies, statements.

use super::{Parser, Read};
use crate::ast::{
    Attribute, Block, CallPrototype, Directive, Function, FunctionKind, Guard, Ident, Instruction, Linkage,
    Location, Pragma, Statement, Targets,
};
use crate::lexer::{Kind, Op};
use crate::span::{Span, Spanned};

impl<'a> Parser<'a> {
    /// `.entry …` or `.func …`; that directive is next.
    pub(super) fn function(
        &mut self,
        linkage: Linkage,
        mut attributes: Vec<Attribute<'a>>,
        start: Span,
    ) -> Read<Function<'a>> {
        let kind = if self.dot() == Some("entry") { FunctionKind::Entry } else { FunctionKind::Func };
        self.at += 1;
        while self.dot() == Some("attribute") {
            attributes.extend(self.attribute_list()?);
        }
        let returns = if self.is(Op::LeftParen) { self.parameters()? } else { Vec::new() };
        let name = self.ident("the name of the function")?;
        let parameters = if self.is(Op::LeftParen) { self.parameters()? } else { Vec::new() };
        let directives = self.directives()?;
        let mut function = Function {
            kind,
            linkage,
            attributes,
            returns,
            name,
            parameters,
            directives,
            body: None,
            span: start,
        };
        if !self.eat(Op::Semicolon) {
            if !self.is(Op::LeftBrace) {
                return self.unexpected("`{` or `;`");
            }
            function.body = Some(self.block()?);
        }
        function.span = self.since(start);
        Ok(function)
    }

    /// Performance directives and the like between the header and the body.
    fn directives(&mut self) -> Read<Vec<Directive<'a>>> {
        let mut directives = Vec::new();
        while let Some(word) = self.dot() {
            if self.begins_item() {
                break;
            }
            let start = self.next().span;
            let name = Spanned::new(word, start);
            let mut arguments = Vec::new();
            if self.kind() == Kind::String {
                // `.pragma "nounroll";` as a function directive: its semicolon belongs to it.
                self.strings()?;
                self.expect(Op::Semicolon, ";")?;
            } else if matches!(self.kind(), Kind::Int | Kind::Float | Kind::Word) {
                arguments = self.expressions()?;
            }
            directives.push(Directive { name, arguments, span: self.since(start) });
        }
        Ok(directives)
    }

    /// `{ … }`; the brace is next. Broken statements inside are reported and skipped.
    fn block(&mut self) -> Read<Block<'a>> {
        let start = self.expect(Op::LeftBrace, "{")?;
        let mut statements = Vec::new();
        loop {
            match self.kind() {
                Kind::Op(Op::RightBrace) => {
                    self.at += 1;
                    break;
                }
                Kind::End => {
                    self.diagnostics.push(crate::Diagnostic::error(start, "`{` is never closed"));
                    break;
                }
                Kind::Dot if self.begins_item() => {
                    let span = self.span();
                    let message = "a new item begins before the function is closed";
                    self.diagnostics.push(crate::Diagnostic::error(span, message));
                    break;
                }
                Kind::Op(Op::Semicolon) => self.at += 1,
                _ => {
                    let begin = self.span();
                    match self.statement() {
                        Ok(Some(statement)) => statements.push(statement),
                        Ok(None) => {}
                        Err(_) => {
                            self.recover();
                            statements.push(Statement::Invalid(self.since(begin)));
                        }
                    }
                }
            }
        }
        Ok(Block { statements, span: self.since(start) })
    }

    /// One statement; `None` for debug data that says nothing.
    fn statement(&mut self) -> Read<Option<Statement<'a>>> {
        let start = self.span();
        match self.kind() {
            Kind::Op(Op::LeftBrace) => Ok(Some(Statement::Block(self.nested(Self::block)?))),
            Kind::Op(Op::At) => Ok(Some(Statement::Instruction(self.instruction()?))),
            Kind::Word if self.look(1).kind == Kind::Op(Op::Colon) => Ok(Some(self.labelled()?)),
            Kind::Word => Ok(Some(Statement::Instruction(self.instruction()?))),
            Kind::Dot => match self.dot().unwrap_or("") {
                _ if self.space().is_some() => Ok(Some(Statement::Variable(self.variable_statement(
                    Linkage::Local,
                    Vec::new(),
                    start,
                )?))),
                "loc" => Ok(Some(Statement::Location(self.location()?))),
                "pragma" => Ok(Some(Statement::Pragma(self.pragma()?))),
                "file" => self.file().map(|_| None),
                "section" => self.section().map(|_| None),
                word => {
                    let message = format!("`.{word}` is not a directive of a function body");
                    self.fail(start, message)
                }
            },
            _ => self.unexpected("a statement"),
        }
    }

    /// `name:` and what only a label can precede.
    fn labelled(&mut self) -> Read<Statement<'a>> {
        let name = self.ident("a label")?;
        self.expect(Op::Colon, ":")?;
        match self.dot() {
            Some("callprototype") => {
                self.at += 1;
                let returns = if self.is(Op::LeftParen) { self.parameters()? } else { Vec::new() };
                self.ident("`_`")?;
                let parameters = if self.is(Op::LeftParen) { self.parameters()? } else { Vec::new() };
                let directives = self.directives()?;
                self.expect(Op::Semicolon, ";")?;
                let span = self.since(name.span);
                Ok(Statement::CallPrototype(CallPrototype { name, returns, parameters, directives, span }))
            }
            Some("calltargets") => Ok(Statement::CallTargets(self.targets(name)?)),
            Some("branchtargets") => Ok(Statement::BranchTargets(self.targets(name)?)),
            _ => Ok(Statement::Label(name)),
        }
    }

    fn targets(&mut self, name: Ident<'a>) -> Read<Targets<'a>> {
        self.at += 1;
        let mut targets = Vec::new();
        loop {
            targets.push(self.ident("a name")?);
            if !self.eat(Op::Comma) {
                break;
            }
        }
        self.expect(Op::Semicolon, ";")?;
        Ok(Targets { name, targets, span: self.since(name.span) })
    }

    fn instruction(&mut self) -> Read<Instruction<'a>> {
        let start = self.span();
        let mut guard = None;
        if self.eat(Op::At) {
            let negated = self.eat(Op::Not);
            guard = Some(Guard { negated, register: self.ident("a predicate")? });
        }
        let opcode = self.ident("an instruction")?;
        // There are many of them: each takes no more memory than it needs.
        let n_modifiers = self.rest().iter().take_while(|it| it.kind == Kind::Dot).count();
        let mut modifiers = Vec::with_capacity(n_modifiers);
        while let Some(word) = self.dot() {
            modifiers.push(Spanned::new(word, self.next().span));
        }
        let operands = match opcode.value {
            _ if self.is(Op::Semicolon) => Vec::new(),
            "call" => self.call_operands()?,
            _ => self.operands()?,
        };
        self.expect(Op::Semicolon, ";")?;
        Ok(Instruction { guard, opcode, modifiers, operands, span: self.since(start) })
    }

    /// `.loc 1 23 5, function_name $L__info_string0, inlined_at 1 10 3`; the directive is next.
    pub(super) fn location(&mut self) -> Read<Location> {
        let start = self.next().span;
        let file = self.number("a file index")?;
        let line = self.number("a line")?;
        let column = self.number("a column")?;
        let mut inlined_at = None;
        while self.is(Op::Comma) && self.look(1).kind == Kind::Word {
            self.at += 1;
            let what = self.ident("`function_name` or `inlined_at`")?;
            match what.value {
                "function_name" => {
                    self.ident("a label")?;
                    if self.eat(Op::Plus) {
                        self.number("an offset")?;
                    }
                }
                "inlined_at" => {
                    let file = self.number("a file index")?;
                    let line = self.number("a line")?;
                    let column = self.number("a column")?;
                    inlined_at = Some((file, line, column));
                }
                _ => return self.fail(what.span, "expected `function_name` or `inlined_at`"),
            }
        }
        Ok(Location { file, line, column, inlined_at, span: self.since(start) })
    }

    /// `.pragma "nounroll";`; the directive is next.
    pub(super) fn pragma(&mut self) -> Read<Pragma<'a>> {
        let start = self.next().span;
        let strings = self.strings()?;
        self.expect(Op::Semicolon, ";")?;
        Ok(Pragma { strings, span: self.since(start) })
    }

    fn strings(&mut self) -> Read<Vec<Ident<'a>>> {
        let mut strings = Vec::new();
        loop {
            strings.push(self.string()?);
            if !self.eat(Op::Comma) {
                return Ok(strings);
            }
        }
    }
}
