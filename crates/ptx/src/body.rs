//! Steps over the body of a function without reading it: only what can hide a brace is looked at.
//!
//! The rule it keeps: where the braces of a body match, it ends where the parser says it ends.

use crate::lexer::is_word;

/// A body that was stepped over.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Body {
    /// One past the closing brace.
    pub end: usize,
    /// Whether a `.global` or `.const` may begin a statement in it.
    pub declares: bool,
}

/// What a byte can begin.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Other,
    Open,
    Close,
    /// `"`
    Quote,
    /// `/`
    Slash,
    /// `@`
    At,
    /// `#`
    Hash,
    Dot,
}

const CLASSES: [Class; 256] = {
    let mut classes = [Class::Other; 256];
    classes[b'{' as usize] = Class::Open;
    classes[b'}' as usize] = Class::Close;
    classes[b'"' as usize] = Class::Quote;
    classes[b'/' as usize] = Class::Slash;
    classes[b'@' as usize] = Class::At;
    classes[b'#' as usize] = Class::Hash;
    classes[b'.' as usize] = Class::Dot;
    classes
};

/// The body whose brace opens at `open`; `None` where no brace closes it, or a new item begins before one does.
pub(crate) fn skip(bytes: &[u8], open: usize) -> Option<Body> {
    let mut at = open + 1;
    let mut depth = 1u32;
    let mut declares = false;
    loop {
        at += bytes.get(at..)?.iter().position(|&byte| CLASSES[usize::from(byte)] != Class::Other)?;
        let next = bytes.get(at + 1).copied().unwrap_or(0);
        match CLASSES[usize::from(bytes[at])] {
            Class::Open => depth += 1,
            Class::Close => {
                depth -= 1;
                if depth == 0 {
                    return Some(Body { end: at + 1, declares });
                }
            }
            Class::Quote => at = string_end(bytes, at),
            Class::Slash if next == b'/' => at = line_end(bytes, at),
            Class::Slash if next == b'*' => at = comment_end(bytes, at)?,
            // `@@DWARF` lines, and lines of a preprocessor, end with their line.
            Class::At if next == b'@' => at = line_end(bytes, at),
            Class::Hash => at = line_end(bytes, at),
            // A dot within a word or behind one belongs to an instruction.
            Class::Dot if !is_word(bytes[at - 1]) => match word(bytes, at + 1) {
                b"global" | b"const" => declares = true,
                b"version" | b"target" | b"address_size" | b"entry" | b"func" | b"visible" | b"extern"
                | b"common" | b"alias" => return None,
                // Also a modifier; as linkage something else follows.
                b"weak" if bytes.get(at + 5).is_none_or(u8::is_ascii_whitespace) => return None,
                _ => {}
            },
            _ => {}
        }
        at += 1;
    }
}

fn word(bytes: &[u8], start: usize) -> &[u8] {
    let rest = &bytes[start..];
    let length = rest.iter().take(16).take_while(|&&byte| is_word(byte)).count();
    &rest[..length]
}

/// The last byte of the line.
fn line_end(bytes: &[u8], at: usize) -> usize {
    bytes[at..].iter().position(|&byte| byte == b'\n').map_or(bytes.len(), |length| at + length)
}

/// The slash that ends the comment.
fn comment_end(bytes: &[u8], at: usize) -> Option<usize> {
    let inside = at + 2;
    Some(inside + bytes.get(inside..)?.windows(2).position(|pair| pair == b"*/")? + 1)
}

/// The closing quote; the last byte before the end of the line where there is none, as the lexer has it.
fn string_end(bytes: &[u8], open: usize) -> usize {
    let mut at = open + 1;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => return at,
            b'\n' => return at - 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn skipped(text: &str) -> Option<(&str, bool)> {
        skip(text.as_bytes(), 0).map(|body| (&text[..body.end], body.declares))
    }

    #[test]
    fn a_body_ends_at_its_own_brace() {
        assert_eq!(skipped("{ } }"), Some(("{ }", false)));
        assert_eq!(skipped("{ {a, b} { } } x"), Some(("{ {a, b} { } }", false)));
        assert_eq!(skipped("{ "), None);
        assert_eq!(skipped("{ { }"), None);
        assert_eq!(skipped("{"), None);
    }

    #[test]
    fn braces_in_strings_comments_and_debug_lines_do_not_count() {
        for inside in [
            "\"}\"",
            "\"\\\"}\"",
            "// }\n",
            "/* } */",
            "/* } * / */",
            "/**/",
            "@@DWARF }\n",
            "# }\n",
            "\"open {\n",
        ] {
            assert_eq!(skipped(&format!("{{ {inside} }} y")), Some((&*format!("{{ {inside} }}"), false)));
        }
        assert_eq!(skipped("{ /* } "), None);
        assert_eq!(skipped("{ // }"), None);
        assert_eq!(skipped("{ \"}"), None);
    }

    #[test]
    fn a_new_item_ends_it() {
        assert_eq!(skipped("{ add;\n.visible .entry k() { }"), None);
        assert_eq!(skipped("{ .weak .func f() { } }"), None);
        assert_eq!(
            skipped("{ ld.weak.u32 a; ld .weak.u32; .targets }"),
            Some(("{ ld.weak.u32 a; ld .weak.u32; .targets }", false))
        );
    }

    #[test]
    fn variables_of_module_storage_are_noticed() {
        for (text, declares) in [
            ("{ ld.global.u32 a; }", false),
            ("{ .shared .b8 x; .globals }", false),
            ("{\t.global .u32 x; }", true),
            ("{ L:.const .u32 x; }", true),
        ] {
            assert_eq!(skipped(text), Some((text, declares)));
        }
    }
}
