//! What was wrong, and where.

use std::fmt;

use crate::span::{LineIndex, Span};

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The construct was read; something about it is odd.
    Warning,
    /// The construct was not understood.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Severity::Warning => "warning",
            Severity::Error => "error",
        })
    }
}

/// One finding about the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// Where.
    pub span: Span,
    /// What, as one sentence fragment without a final stop.
    pub message: String,
}

impl Diagnostic {
    /// An error.
    pub fn error(span: Span, message: impl Into<String>) -> Self {
        Diagnostic { severity: Severity::Error, span, message: message.into() }
    }

    /// A warning.
    pub fn warning(span: Span, message: impl Into<String>) -> Self {
        Diagnostic { severity: Severity::Warning, span, message: message.into() }
    }

    /// `file:line:column: error: message`.
    pub fn render(&self, file: &str, lines: &LineIndex<'_>) -> String {
        let at = lines.position(self.span.start);
        format!("{file}:{}:{}: {}: {}", at.line, at.column, self.severity, self.message)
    }
}
