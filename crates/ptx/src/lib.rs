//! PTX ISA 9.x: text in, syntax tree with byte spans out.
//!
//! The parser is generic over opcodes: an instruction it has never heard of is kept as written, so nothing is lost
//! silently, and whoever lowers it can name it. It returns what could be read *and* every diagnostic; it never panics,
//! never recurses without a bound and never allocates by a number read from the text.

#![forbid(unsafe_code)]

pub mod ast;
mod body;
mod constant;
mod diagnostic;
mod lexer;
mod parser;
mod span;

pub use ast::Module;
pub use constant::{Constant, NotConstant};
pub use diagnostic::{Diagnostic, Severity};
pub use span::{LineIndex, Position, Span, Spanned, line_starts};

use std::borrow::Cow;

/// What could be read, and all that could not.
#[derive(Debug, Clone)]
pub struct Parsed<'a> {
    /// Every item, statement and operand that was understood.
    pub module: Module<'a>,
    /// In the order of the text.
    pub diagnostics: Vec<Diagnostic>,
}

impl Parsed<'_> {
    /// Whether any diagnostic is an error.
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
    }
}

/// Parses one PTX module.
pub fn parse(text: &str) -> Parsed<'_> {
    parser::parse(text, whole(text))
}

/// Parses the items of one `span` of a PTX module, such as a function that a [`skim`] found. Spans are those of the
/// whole text.
pub fn parse_at(text: &str, span: Span) -> Parsed<'_> {
    parser::parse(text, span)
}

/// A module whose functions have bodies without statements.
#[derive(Debug, Clone)]
pub struct Skimmed<'a> {
    /// All items, as [`parse`] reads them; a body has its span only. What is wrong inside of bodies is not told, where
    /// their braces match.
    pub parsed: Parsed<'a>,
    /// Where the bodies begin that declare `.global` or `.const` variables (or look as if), in the text's order.
    pub declaring: Vec<u32>,
}

/// Parses what stands at module scope and steps over the bodies of functions, which is quick.
pub fn skim(text: &str) -> Skimmed<'_> {
    parser::skim(text)
}

fn whole(text: &str) -> Span {
    Span::new(0, u32::try_from(text.len()).unwrap_or(u32::MAX))
}

/// PTX bytes as text: a trailing NUL (as in fat binaries) is dropped, bytes that are not UTF-8 become U+FFFD.
pub fn text(bytes: &[u8]) -> Cow<'_, str> {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end])
}
