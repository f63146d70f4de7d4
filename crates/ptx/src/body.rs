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

/// Bytes that are looked at together.
const CHUNK: usize = 16;

/// Whether a byte can hide a brace, is one, or begins a directive. Without branches: a chunk of them is a few vector
/// instructions.
fn counts(byte: u8, before: u8) -> bool {
    let hides =
        (byte == b'{') | (byte == b'}') | (byte == b'"') | (byte == b'/') | (byte == b'@') | (byte == b'#');
    // A dot within a word or behind one belongs to an instruction.
    let letter = (before | 0x20).wrapping_sub(b'a') < 26;
    let behind_word = letter | (before.wrapping_sub(b'0') < 10) | (before == b'_') | (before == b'$');
    hides | ((byte == b'.') & !behind_word)
}

/// The first byte from `at` on that counts; `at` is not 0.
fn next(bytes: &[u8], mut at: usize) -> Option<usize> {
    let any = |at: usize| {
        let chunk: &[u8; CHUNK] = bytes.get(at..)?.first_chunk()?;
        let before: &[u8; CHUNK] = bytes[at - 1..].first_chunk()?;
        Some(chunk.iter().zip(before).fold(false, |any, (&byte, &before)| any | counts(byte, before)))
    };
    while any(at) == Some(false) {
        at += CHUNK;
    }
    let rest = bytes.get(at..)?.iter().zip(&bytes[at - 1..]);
    Some(at + rest.into_iter().position(|(&byte, &before)| counts(byte, before))?)
}

/// The body whose brace opens at `open`; `None` where no brace closes it, or a new item begins before one does.
pub(crate) fn skip(bytes: &[u8], open: usize) -> Option<Body> {
    let mut at = open + 1;
    let mut depth = 1u32;
    let mut declares = false;
    loop {
        at = next(bytes, at)?;
        let following = bytes.get(at + 1).copied().unwrap_or(0);
        match bytes[at] {
            b'{' => depth += 1,
            b'}' => {
                depth -= 1;
                if depth == 0 {
                    return Some(Body { end: at + 1, declares });
                }
            }
            b'"' => at = string_end(bytes, at),
            b'/' if following == b'/' => at = line_end(bytes, at),
            b'/' if following == b'*' => at = comment_end(bytes, at)?,
            // `@@DWARF` lines, and lines of a preprocessor, end with their line.
            b'@' if following == b'@' => at = line_end(bytes, at),
            b'#' => at = line_end(bytes, at),
            b'.' => match word(bytes, at + 1) {
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
    fn every_byte_that_counts_is_found_wherever_it_stands() {
        for byte in 1..=255u8 {
            for before in [b'a', b'Z', b'0', b'9', b'_', b'$', b' ', b';', b'`', b'{' - 1, b'@' - 1, 0x80] {
                let wanted = b"{}\"/@#".contains(&byte) || byte == b'.' && !is_word(before);
                assert_eq!(counts(byte, before), wanted, "{byte} behind {before}");
            }
        }
        for length in 1..60 {
            for at in 1..length {
                let mut bytes = vec![b' '; length];
                assert_eq!(next(&bytes, 1), None);
                bytes[at] = b'}';
                assert_eq!((next(&bytes, 1), next(&bytes, at + 1)), (Some(at), None));
            }
        }
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
