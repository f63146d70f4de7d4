//! Module scope: `.version`, `.target`, linkage, and what they stand before.

use super::{Parser, Read};
use crate::ast::{Alias, File, Item, Linkage, Module, Section};
use crate::lexer::{Kind, Op};
use crate::span::{Span, Spanned};

impl<'a> Parser<'a> {
    /// The whole text.
    pub(super) fn module(&mut self) -> Module<'a> {
        let mut module = Module::default();
        while self.kind() != Kind::End {
            let before = self.at;
            // These three have no end of their own: what stands behind a broken one is not part of it.
            let is_head = matches!(self.dot(), Some("version" | "target" | "address_size"));
            if self.item(&mut module).is_err() && !(is_head && self.kind() == Kind::Dot) {
                self.recover_at_module_scope(before);
            }
        }
        module
    }

    /// Goes on at the next directive that begins an item; at least one token further than `before`.
    fn recover_at_module_scope(&mut self, before: usize) {
        if self.at == before {
            self.at += 1;
        }
        loop {
            match self.kind() {
                Kind::End => return,
                Kind::Dot if self.begins_item() => return,
                Kind::Op(Op::Semicolon) => {
                    self.at += 1;
                    return;
                }
                Kind::Op(Op::LeftBrace) => {
                    // A body whose header was not understood. If it is never closed, the end is reached and said.
                    let _ = self.skip_braces();
                    return;
                }
                _ => self.at += 1,
            }
        }
    }

    fn item(&mut self, module: &mut Module<'a>) -> Read<()> {
        let start = self.span();
        let Some(word) = self.dot() else {
            if self.eat(Op::Semicolon) {
                return Ok(());
            }
            return self.unexpected("a directive");
        };
        match word {
            "version" => {
                self.at += 1;
                let version = self.version()?;
                module.version = Some(Spanned::new(version, self.since(start)));
            }
            "target" => {
                self.at += 1;
                loop {
                    module.targets.push(self.ident("a target")?);
                    if !self.eat(Op::Comma) {
                        break;
                    }
                }
            }
            "address_size" => {
                self.at += 1;
                let size = self.number("32 or 64")?;
                let span = self.since(start);
                match u32::try_from(size) {
                    Ok(size @ (32 | 64)) => module.address_size = Some(Spanned::new(size, span)),
                    _ => return self.fail(span, "an address has 32 or 64 bits"),
                }
            }
            "file" => module.items.push(Item::File(self.file()?)),
            "section" => module.items.push(Item::Section(self.section()?)),
            "pragma" => module.items.push(Item::Pragma(self.pragma()?)),
            // Debug data outside of functions.
            "loc" => drop(self.location()?),
            "alias" => module.items.push(Item::Alias(self.alias(start)?)),
            _ => module.items.push(self.declared(start)?),
        }
        Ok(())
    }

    /// A variable or function, with linkage and attributes in front.
    fn declared(&mut self, start: Span) -> Read<Item<'a>> {
        let mut linkage = Linkage::Local;
        let mut attributes = Vec::new();
        loop {
            linkage = match self.dot() {
                Some("extern") => Linkage::Extern,
                Some("visible") => Linkage::Visible,
                Some("weak") => Linkage::Weak,
                Some("common") => Linkage::Common,
                Some("attribute") => {
                    attributes.extend(self.attribute_list()?);
                    continue;
                }
                Some("entry" | "func") => {
                    return Ok(Item::Function(self.function(linkage, attributes, start)?));
                }
                _ if self.space().is_some() => {
                    return Ok(Item::Variable(self.variable_statement(linkage, attributes, start)?));
                }
                Some(word) => {
                    let (span, message) =
                        (self.span(), format!("`.{word}` is not a directive of module scope"));
                    return self.fail(span, message);
                }
                None => return self.unexpected("a directive"),
            };
            self.at += 1;
        }
    }

    /// `9.5`
    fn version(&mut self) -> Read<(u32, u32)> {
        if !matches!(self.kind(), Kind::Float) {
            return self.unexpected("a version");
        }
        let token = self.next();
        let parts = self.source(token).split_once('.');
        match parts.map(|(major, minor)| (major.parse(), minor.parse())) {
            Some((Ok(major), Ok(minor))) => Ok((major, minor)),
            _ => self.fail(token.span, "malformed version"),
        }
    }

    /// `.file 1 "a.cu", 1700000000, 1234`; the directive is next.
    pub(super) fn file(&mut self) -> Read<File<'a>> {
        self.at += 1;
        let index = self.number("a file index")?;
        let name = self.string()?;
        while self.is(Op::Comma) && self.look(1).kind == Kind::Int {
            self.at += 2;
        }
        Ok(File { index, name })
    }

    /// `.section .debug_info { … }`; the directive is next.
    pub(super) fn section(&mut self) -> Read<Section<'a>> {
        let start = self.next().span;
        let token = self.token();
        if !matches!(token.kind, Kind::Dot | Kind::Word) {
            return self.unexpected("the name of a section");
        }
        self.at += 1;
        let name = Spanned::new(self.source(token), token.span);
        if !self.is(Op::LeftBrace) {
            return self.unexpected("`{`");
        }
        self.skip_braces()?;
        Ok(Section { name, span: self.since(start) })
    }

    /// `.alias a, b;`; the directive is next.
    fn alias(&mut self, start: Span) -> Read<Alias<'a>> {
        self.at += 1;
        let name = self.ident("a name")?;
        self.expect(Op::Comma, ",")?;
        let target = self.ident("a name")?;
        self.expect(Op::Semicolon, ";")?;
        Ok(Alias { name, target, span: self.since(start) })
    }
}
