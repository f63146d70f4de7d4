//! Recursive descent over the tokens. Each failure is one diagnostic; reading goes on behind the next `;` or at the `}`
//! or directive that cannot belong to the broken statement.

mod declaration;
mod expression;
mod function;
mod module;
mod operand;

use crate::ast::{Block, Ident, Item, Module, Space, Statement};
use crate::diagnostic::Diagnostic;
use crate::lexer::{self, Kind, Op, Token, lex};
use crate::span::{Span, Spanned};
use crate::{Parsed, Skimmed};

/// `{ }` scopes, initialiser lists and operands nest this deep at most.
const MAX_DEPTH: u32 = 128;

/// A construct was not read; its diagnostic is in the list already.
pub(crate) struct Failed;

/// What every reading function returns.
pub(crate) type Read<T> = Result<T, Failed>;

/// Items of `span` of `text`.
pub(crate) fn parse(text: &str, span: Span) -> Parsed<'_> {
    match too_long(text) {
        Some(parsed) => parsed,
        None => {
            let (tokens, diagnostics) = lex(text, span);
            read(text, tokens, diagnostics)
        }
    }
}

pub(crate) fn skim(text: &str) -> Skimmed<'_> {
    if let Some(parsed) = too_long(text) {
        return Skimmed { parsed, declaring: vec![] };
    }
    match lexer::skim(text) {
        Some(lexer::Skim { tokens, diagnostics, declaring }) => {
            Skimmed { parsed: read(text, tokens, diagnostics), declaring }
        }
        // Only the parser can say where a body without a matching brace ends.
        None => forget_bodies(parse(text, Span::new(0, text.len() as u32))),
    }
}

fn too_long(text: &str) -> Option<Parsed<'_>> {
    u32::try_from(text.len()).err()?;
    let diagnostic = Diagnostic::error(Span::default(), "the text is 4 GiB or longer");
    Some(Parsed { module: Module::default(), diagnostics: vec![diagnostic] })
}

fn read(text: &str, tokens: Vec<Token>, diagnostics: Vec<Diagnostic>) -> Parsed<'_> {
    let mut parser = Parser { text, tokens, at: 0, depth: 0, nodes: 0, diagnostics };
    let module = parser.module();
    let mut diagnostics = parser.diagnostics;
    diagnostics.sort_by_key(|diagnostic| diagnostic.span.start);
    Parsed { module, diagnostics }
}

/// What a skim would have given.
fn forget_bodies(mut parsed: Parsed<'_>) -> Skimmed<'_> {
    let mut declaring = vec![];
    for item in &mut parsed.module.items {
        if let Item::Function(function) = item
            && let Some(body) = &mut function.body
        {
            if declares(body) {
                declaring.push(body.span.start);
            }
            body.statements = vec![];
        }
    }
    Skimmed { parsed, declaring }
}

fn declares(block: &Block<'_>) -> bool {
    block.statements.iter().any(|statement| match statement {
        Statement::Variable(variable) => matches!(variable.space.value, Space::Global | Space::Const),
        Statement::Block(block) => declares(block),
        _ => false,
    })
}

/// A position in the tokens.
pub(crate) struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    at: usize,
    /// Depth of nesting now.
    depth: u32,
    /// Nodes of the expression being read; an expression is a tree no deeper than its number of nodes.
    nodes: u32,
    diagnostics: Vec<Diagnostic>,
}

impl<'a> Parser<'a> {
    fn token(&self) -> Token {
        self.look(0)
    }

    /// The token `ahead` of the next one; the end token if there is none.
    fn look(&self, ahead: usize) -> Token {
        // `lex` always ends with an end token, so there is a last one.
        let last = self.tokens.len() - 1;
        self.tokens[(self.at + ahead).min(last)]
    }

    /// The next token and all behind it.
    fn rest(&self) -> &[Token] {
        self.tokens.get(self.at..).unwrap_or_default()
    }

    fn kind(&self) -> Kind {
        self.token().kind
    }

    fn span(&self) -> Span {
        self.token().span
    }

    /// The span of the token just read.
    fn previous_span(&self) -> Span {
        match self.at.checked_sub(1) {
            Some(at) => self.tokens[at].span,
            None => Span::default(),
        }
    }

    fn since(&self, start: Span) -> Span {
        if self.previous_span().end > start.start { start.to(self.previous_span()) } else { start }
    }

    fn source(&self, token: Token) -> &'a str {
        token.span.of(self.text)
    }

    fn next(&mut self) -> Token {
        let token = self.token();
        if token.kind != Kind::End {
            self.at += 1;
        }
        token
    }

    fn is(&self, op: Op) -> bool {
        self.kind() == Kind::Op(op)
    }

    fn eat(&mut self, op: Op) -> bool {
        let found = self.is(op);
        if found {
            self.at += 1;
        }
        found
    }

    fn expect(&mut self, op: Op, text: &str) -> Read<Span> {
        if self.is(op) { Ok(self.next().span) } else { self.unexpected(&format!("`{text}`")) }
    }

    /// The next dot word without its dot, if the next token is one.
    fn dot(&self) -> Option<&'a str> {
        (self.kind() == Kind::Dot).then(|| &self.source(self.token())[1..])
    }

    fn ident(&mut self, what: &str) -> Read<Ident<'a>> {
        if self.kind() != Kind::Word {
            return self.unexpected(what);
        }
        let token = self.next();
        Ok(Spanned::new(self.source(token), token.span))
    }

    fn fail<T>(&mut self, span: Span, message: impl Into<String>) -> Read<T> {
        self.diagnostics.push(Diagnostic::error(span, message));
        Err(Failed)
    }

    /// `expected X, found Y`.
    fn unexpected<T>(&mut self, expected: &str) -> Read<T> {
        let token = self.token();
        if token.kind == Kind::Unknown {
            // The lexer has said it.
            return Err(Failed);
        }
        let found = match token.kind {
            Kind::End => "the end of the text".to_owned(),
            _ => format!("`{}`", shorten(self.source(token))),
        };
        self.fail(token.span, format!("expected {expected}, found {found}"))
    }

    /// Runs `read` one level deeper, unless that is too deep.
    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Read<T>) -> Read<T> {
        if self.depth >= MAX_DEPTH {
            let span = self.span();
            return self.fail(span, format!("nested more than {MAX_DEPTH} deep"));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// Skips past the next `;`, or up to a `}` that closes the enclosing block, or up to what can only begin a new item.
    /// Always makes progress unless it stands at such an end.
    fn recover(&mut self) {
        let mut depth = 0u32;
        loop {
            match self.kind() {
                Kind::End => return,
                Kind::Op(Op::Semicolon) => {
                    self.at += 1;
                    return;
                }
                Kind::Op(Op::LeftBrace) => depth = depth.saturating_add(1),
                Kind::Op(Op::RightBrace) if depth == 0 => return,
                Kind::Op(Op::RightBrace) => depth -= 1,
                Kind::Dot if self.begins_item() => return,
                _ => {}
            }
            self.at += 1;
        }
    }

    /// Directives that stand at module scope only.
    fn begins_item(&self) -> bool {
        matches!(
            self.dot(),
            Some(
                "version"
                    | "target"
                    | "address_size"
                    | "entry"
                    | "func"
                    | "visible"
                    | "extern"
                    | "weak"
                    | "common"
                    | "alias"
            )
        )
    }

    /// Skips a balanced `{ … }`; the brace is next.
    fn skip_braces(&mut self) -> Read<()> {
        let open = self.span();
        let mut depth = 0u32;
        loop {
            match self.kind() {
                Kind::End => return self.fail(open, "`{` is never closed"),
                Kind::Op(Op::LeftBrace) => depth = depth.saturating_add(1),
                Kind::Op(Op::RightBrace) => depth = depth.saturating_sub(1),
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return Ok(());
            }
        }
    }

    /// `"text"`, without the quotes.
    fn string(&mut self) -> Read<Ident<'a>> {
        if self.kind() != Kind::String {
            return self.unexpected("a string");
        }
        let token = self.next();
        let text = self.source(token);
        let inner = text.get(1..text.len().saturating_sub(1)).unwrap_or("");
        Ok(Spanned::new(inner, token.span))
    }

    /// A plain number, as directives take it.
    fn number(&mut self, what: &str) -> Read<u64> {
        if self.kind() != Kind::Int {
            return self.unexpected(what);
        }
        Ok(self.integer()?.0)
    }
}

/// Long tokens are cut for messages.
fn shorten(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
