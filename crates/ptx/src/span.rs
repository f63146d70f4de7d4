//! Where in the text: byte spans, and the line and column computed from them when a person asks.

use std::borrow::Cow;

/// A half-open range of bytes of the PTX text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The span from `start` up to, not including, `end`.
    pub fn new(start: u32, end: u32) -> Self {
        Span { start, end }
    }

    /// The smallest span that holds both.
    pub fn to(self, other: Span) -> Span {
        Span { start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// Whether `other` lies inside.
    pub fn contains(self, other: Span) -> bool {
        self.start <= other.start && other.end <= self.end
    }

    /// The text of the span; empty where the span does not fit `text`.
    pub fn of(self, text: &str) -> &str {
        text.get(self.start as usize..self.end as usize).unwrap_or("")
    }
}

/// A value and where it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spanned<T> {
    /// The value.
    pub value: T,
    /// Where it was written.
    pub span: Span,
}

impl<T> Spanned<T> {
    /// `value`, written at `span`.
    pub fn new(value: T, span: Span) -> Self {
        Spanned { value, span }
    }
}

/// Line and column, both from 1; a column counts characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// From 1.
    pub line: u32,
    /// From 1, in characters.
    pub column: u32,
}

/// Answers "which line is byte n on" in O(log lines).
#[derive(Debug, Clone)]
pub struct LineIndex<'a> {
    text: &'a str,
    starts: Cow<'a, [u32]>,
}

/// Where each line of `text` begins (LF or CRLF), the first at 0.
pub fn line_starts(text: &str) -> Vec<u32> {
    let newlines = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n');
    std::iter::once(0).chain(newlines.map(|(at, _)| u32::try_from(at + 1).unwrap_or(u32::MAX))).collect()
}

impl<'a> LineIndex<'a> {
    /// Reads where the lines of `text` begin.
    pub fn new(text: &'a str) -> Self {
        LineIndex { text, starts: Cow::Owned(line_starts(text)) }
    }

    /// With what [`line_starts`] said of `text`.
    pub fn with(text: &'a str, starts: &'a [u32]) -> Self {
        LineIndex { text, starts: Cow::Borrowed(starts) }
    }

    /// The position of a byte offset; offsets past the end count as the end.
    pub fn position(&self, offset: u32) -> Position {
        let line = self.starts.partition_point(|&start| start <= offset).max(1) - 1;
        let start = self.starts[line] as usize;
        let end = (offset as usize).min(self.text.len()).max(start);
        let before = &self.text.as_bytes()[start.min(self.text.len())..end];
        // UTF-8 continuation bytes do not start a character.
        let column = before.iter().filter(|&&byte| byte & 0xC0 != 0x80).count();
        Position { line: line as u32 + 1, column: column as u32 + 1 }
    }
}
