//! Bytes to tokens. Comments, blanks, `@@DWARF` lines and `#` lines end here.
//!
//! A dot belongs to the word behind it (`.s32`, `.shared::cta`, `.2d`), so an opcode is a word and a run of dot words.
//!
//! A skim makes two tokens of a function's body, its braces, and steps over what lies between (`body.rs`).

use crate::body;
use crate::diagnostic::Diagnostic;
use crate::span::Span;

/// What a token is; its text is found by its span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `foo`, `%r1`, `$L__BB0_1`, `_`.
    Word,
    /// `.foo`, `.shared::cta`, `.2d`.
    Dot,
    /// `12`, `0x1fU`, `0b101`, `017`.
    Int,
    /// `0f3f800000`, `0d3ff0000000000000`, `1.5e-3`, and the `9.5` of `.version 9.5`.
    Float,
    /// `"text"`, quotes included.
    String,
    /// One of `( ) [ ] { } < > , ; : @ ! | & ^ ~ + - * / % ? =` and the C operators of two characters.
    Op(Op),
    /// A byte sequence that begins no token; already reported.
    Unknown,
    /// The end of the text, once, last.
    End,
}

/// Punctuation and operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Op {
    LeftParen,
    RightParen,
    LeftBracket,
    RightBracket,
    LeftBrace,
    RightBrace,
    Less,
    Greater,
    LessEqual,
    GreaterEqual,
    ShiftLeft,
    ShiftRight,
    EqualEqual,
    NotEqual,
    AndAnd,
    OrOr,
    Comma,
    Semicolon,
    Colon,
    At,
    Not,
    Or,
    And,
    Xor,
    Tilde,
    Plus,
    Minus,
    Star,
    Slash,
    Percent,
    Question,
    Assign,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Token {
    pub kind: Kind,
    pub span: Span,
}

/// All tokens of `span` of `text`, which the caller has checked to be shorter than 4 GiB.
pub(crate) fn lex(text: &str, span: Span) -> (Vec<Token>, Vec<Diagnostic>) {
    let mut lexer = Lexer::new(text, span);
    while lexer.token() {}
    lexer.finish()
}

/// The tokens of a text without those inside of bodies.
pub(crate) struct Skim {
    pub tokens: Vec<Token>,
    pub diagnostics: Vec<Diagnostic>,
    /// Where a body begins that declares variables of module storage.
    pub declaring: Vec<u32>,
}

/// As [`lex`], bodies stepped over; `None` where a body's braces do not match.
pub(crate) fn skim(text: &str) -> Option<Skim> {
    let end = text.len() as u32;
    let mut lexer = Lexer { skims: true, ..Lexer::new(text, Span::new(0, end)) };
    while lexer.token() {}
    if lexer.unbalanced {
        return None;
    }
    let declaring = std::mem::take(&mut lexer.declaring);
    let (tokens, diagnostics) = lexer.finish();
    Some(Skim { tokens, diagnostics, declaring })
}

struct Lexer<'a> {
    /// Up to where is read.
    bytes: &'a [u8],
    at: usize,
    tokens: Vec<Token>,
    diagnostics: Vec<Diagnostic>,
    skims: bool,
    /// Braces of initialisers that are open; counted by a skim.
    depth: u32,
    unbalanced: bool,
    declaring: Vec<u32>,
}

impl<'a> Lexer<'a> {
    fn new(text: &'a str, span: Span) -> Self {
        let end = (span.end as usize).min(text.len());
        Lexer {
            bytes: &text.as_bytes()[..end],
            at: span.start as usize,
            tokens: Vec::new(),
            diagnostics: Vec::new(),
            skims: false,
            depth: 0,
            unbalanced: false,
            declaring: Vec::new(),
        }
    }

    fn finish(mut self) -> (Vec<Token>, Vec<Diagnostic>) {
        let end = self.bytes.len() as u32;
        self.tokens.push(Token { kind: Kind::End, span: Span::new(end, end) });
        (self.tokens, self.diagnostics)
    }

    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn skip_while(&mut self, accept: impl Fn(u8) -> bool) {
        while self.bytes.get(self.at).is_some_and(|&byte| accept(byte)) {
            self.at += 1;
        }
    }

    fn span_from(&self, start: usize) -> Span {
        Span::new(start as u32, self.at as u32)
    }

    fn push(&mut self, kind: Kind, start: usize) {
        let span = self.span_from(start);
        self.tokens.push(Token { kind, span });
    }

    fn error(&mut self, start: usize, message: impl Into<String>) {
        let span = self.span_from(start);
        self.diagnostics.push(Diagnostic::error(span, message));
    }

    /// Reads one token, comment or run of blanks; false at the end.
    fn token(&mut self) -> bool {
        let start = self.at;
        let Some(&first) = self.bytes.get(start) else { return false };
        match first {
            b' ' | b'\t' | b'\r' | b'\n' | 0x0B | 0x0C => self.at += 1,
            b'/' if self.peek(1) == b'/' => self.skip_while(|byte| byte != b'\n'),
            b'/' if self.peek(1) == b'*' => self.block_comment(),
            // `@@DWARF` lines of old compilers hold debug data only.
            b'@' if self.peek(1) == b'@' => self.skip_while(|byte| byte != b'\n'),
            b'#' => {
                self.skip_while(|byte| byte != b'\n');
                self.error(start, "preprocessor lines are not PTX");
            }
            b'"' => self.string(),
            b'0'..=b'9' => self.number(),
            b'.' if is_word(self.peek(1)) => self.dot_word(),
            b'%' if is_word(self.peek(1)) && !self.after_value() => self.word(),
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' => self.word(),
            b'{' | b'}' if self.skims => return self.brace(),
            _ => self.operator(),
        }
        true
    }

    /// A brace of module scope: of an initialiser, or of a body (or a section), which is stepped over; false where that
    /// has no end.
    fn brace(&mut self) -> bool {
        let begins_initialiser = self.tokens.last().is_some_and(|last| last.kind == Kind::Op(Op::Assign));
        if self.depth > 0 || begins_initialiser {
            let opens = self.peek(0) == b'{';
            self.depth = if opens { self.depth.saturating_add(1) } else { self.depth.saturating_sub(1) };
            self.operator();
            return true;
        }
        let open = self.at;
        self.operator();
        if self.bytes[open] == b'}' {
            return true;
        }
        let Some(body) = body::skip(self.bytes, open) else {
            self.unbalanced = true;
            return false;
        };
        if body.declares {
            self.declaring.push(open as u32);
        }
        self.at = body.end - 1;
        self.operator();
        true
    }

    /// `%` after a value is the remainder operator, elsewhere it begins a name.
    fn after_value(&self) -> bool {
        self.tokens
            .last()
            .is_some_and(|token| matches!(token.kind, Kind::Int | Kind::Float | Kind::Op(Op::RightParen)))
    }

    fn block_comment(&mut self) {
        let start = self.at;
        self.at += 2;
        loop {
            self.skip_while(|byte| byte != b'*');
            if self.at >= self.bytes.len() {
                return self.error(start, "comment without end");
            }
            self.at += 1;
            if self.peek(0) == b'/' {
                self.at += 1;
                return;
            }
        }
    }

    fn string(&mut self) {
        let start = self.at;
        self.at += 1;
        loop {
            self.skip_while(|byte| !matches!(byte, b'"' | b'\\' | b'\n'));
            match self.peek(0) {
                b'"' => {
                    self.at += 1;
                    return self.push(Kind::String, start);
                }
                b'\\' => self.at = (self.at + 2).min(self.bytes.len()),
                _ => {
                    self.push(Kind::Unknown, start);
                    return self.error(start, "string without end");
                }
            }
        }
    }

    fn word(&mut self) {
        let start = self.at;
        self.at += 1;
        self.skip_while(is_word);
        self.push(Kind::Word, start);
    }

    fn dot_word(&mut self) {
        let start = self.at;
        self.at += 1;
        self.skip_while(is_word);
        while self.peek(0) == b':' && self.peek(1) == b':' && is_word(self.peek(2)) {
            self.at += 2;
            self.skip_while(is_word);
        }
        self.push(Kind::Dot, start);
    }

    fn number(&mut self) {
        let start = self.at;
        let kind = match (self.peek(0), self.peek(1)) {
            (b'0', b'f' | b'F' | b'd' | b'D') => {
                self.at += 2;
                self.skip_while(|byte| byte.is_ascii_hexdigit());
                Kind::Float
            }
            (b'0', b'x' | b'X') => {
                self.at += 2;
                self.skip_while(|byte| byte.is_ascii_hexdigit());
                Kind::Int
            }
            (b'0', b'b' | b'B') => {
                self.at += 2;
                self.skip_while(|byte| byte.is_ascii_digit());
                Kind::Int
            }
            _ => self.decimal(),
        };
        if kind == Kind::Int && matches!(self.peek(0), b'U' | b'u') {
            self.at += 1;
        }
        let digits_end = self.at;
        self.skip_while(is_word);
        let malformed = self.at != digits_end;
        self.push(kind, start);
        if malformed {
            self.error(start, "malformed number");
        }
    }

    fn decimal(&mut self) -> Kind {
        self.skip_while(|byte| byte.is_ascii_digit());
        let mut kind = Kind::Int;
        if self.peek(0) == b'.' && (self.peek(1).is_ascii_digit() || !is_word(self.peek(1))) {
            kind = Kind::Float;
            self.at += 1;
            self.skip_while(|byte| byte.is_ascii_digit());
        }
        let sign = usize::from(matches!(self.peek(1), b'+' | b'-'));
        if matches!(self.peek(0), b'e' | b'E') && self.peek(1 + sign).is_ascii_digit() {
            kind = Kind::Float;
            self.at += 1 + sign;
            self.skip_while(|byte| byte.is_ascii_digit());
        }
        kind
    }

    fn operator(&mut self) {
        let start = self.at;
        let two = match (self.peek(0), self.peek(1)) {
            (b'<', b'<') => Some(Op::ShiftLeft),
            (b'>', b'>') => Some(Op::ShiftRight),
            (b'<', b'=') => Some(Op::LessEqual),
            (b'>', b'=') => Some(Op::GreaterEqual),
            (b'=', b'=') => Some(Op::EqualEqual),
            (b'!', b'=') => Some(Op::NotEqual),
            (b'&', b'&') => Some(Op::AndAnd),
            (b'|', b'|') => Some(Op::OrOr),
            _ => None,
        };
        if let Some(op) = two {
            self.at += 2;
            return self.push(Kind::Op(op), start);
        }
        let one = match self.peek(0) {
            b'(' => Op::LeftParen,
            b')' => Op::RightParen,
            b'[' => Op::LeftBracket,
            b']' => Op::RightBracket,
            b'{' => Op::LeftBrace,
            b'}' => Op::RightBrace,
            b'<' => Op::Less,
            b'>' => Op::Greater,
            b',' => Op::Comma,
            b';' => Op::Semicolon,
            b':' => Op::Colon,
            b'@' => Op::At,
            b'!' => Op::Not,
            b'|' => Op::Or,
            b'&' => Op::And,
            b'^' => Op::Xor,
            b'~' => Op::Tilde,
            b'+' => Op::Plus,
            b'-' => Op::Minus,
            b'*' => Op::Star,
            b'/' => Op::Slash,
            b'%' => Op::Percent,
            b'?' => Op::Question,
            b'=' => Op::Assign,
            _ => return self.unknown(),
        };
        self.at += 1;
        self.push(Kind::Op(one), start);
    }

    /// A run of bytes that PTX has no use for, as one diagnostic.
    fn unknown(&mut self) {
        let start = self.at;
        self.at += 1;
        // Whole characters only: continuation bytes and further non-ASCII bytes go along.
        self.skip_while(|byte| !byte.is_ascii());
        self.push(Kind::Unknown, start);
        let text = String::from_utf8_lossy(&self.bytes[start..self.at]).escape_debug().to_string();
        self.error(start, format!("unexpected character `{text}`"));
    }
}

pub(crate) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$')
}
