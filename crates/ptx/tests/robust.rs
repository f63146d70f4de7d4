//! Whatever the text, the parser comes back, and soon.

use proptest::prelude::*;

const VALID: &str = include_str!("valid.ptx");

fn survive(text: &str) {
    let parsed = ptx::parse(text);
    let lines = ptx::LineIndex::new(text);
    for diagnostic in &parsed.diagnostics {
        assert!(diagnostic.span.start <= diagnostic.span.end);
        assert!(diagnostic.span.end as usize <= text.len());
        diagnostic.render("x", &lines);
    }
}

#[test]
fn the_valid_file_is_valid() {
    let parsed = ptx::parse(VALID);
    assert!(parsed.diagnostics.is_empty(), "{:?}", parsed.diagnostics);
}

#[test]
fn every_truncation_is_survived() {
    for end in 0..VALID.len() {
        survive(&VALID[..end]);
    }
}

#[test]
fn deep_nesting_is_an_error_and_no_stack_overflow() {
    for (open, close) in
        [("{", "}"), ("(", ")"), ("[", "]"), ("-", ""), ("!", ""), ("1+(", ")"), ("1?", ":1"), ("0xff(", ")")]
    {
        let deep = 100_000;
        for frame in ["", ".global .u32 a = ", ".entry k() { mov.u32 %r, ", ".entry k() "] {
            survive(&format!("{frame}{}1{}", open.repeat(deep), close.repeat(deep)));
        }
    }
    survive(&format!(".global .u32 a = {}1;", "1+".repeat(100_000)));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
        survive(&ptx::text(&bytes));
    }

    #[test]
    fn random_tokens(words in proptest::collection::vec(prop::sample::select(WORDS), 0..400)) {
        survive(&words.join(" "));
    }

    #[test]
    fn mutations_of_a_valid_file(edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0u8..3), 1..20)) {
        let mut bytes = VALID.as_bytes().to_vec();
        for (index, byte, kind) in edits {
            let at = index.index(bytes.len());
            match kind {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                _ => drop(bytes.remove(at)),
            }
        }
        survive(&String::from_utf8_lossy(&bytes));
    }
}

const WORDS: &[&str] = &[
    ".entry",
    ".func",
    "k",
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    ";",
    ",",
    ":",
    ".reg",
    ".b32",
    "%r<10>",
    "%r1",
    "@",
    "!",
    "|",
    "+",
    "-",
    "1",
    "0f3f800000",
    "1.5",
    "\"s\"",
    ".loc",
    ".file",
    ".section",
    ".pragma",
    ".global",
    ".param",
    "=",
    "generic",
    "?",
    "add",
    ".s32",
    "_",
    ".version",
    "9.5",
    ".alias",
    ".callprototype",
    "<",
    ">",
    "\n",
    "/*",
    "*/",
    "//",
    ".align",
    "16",
];
