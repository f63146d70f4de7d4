//! Whatever the text, the parser comes back, and soon.

use proptest::prelude::*;
use ptx::ast::{Block, Function, Item, Space, Statement};

const VALID: &str = include_str!("valid.ptx");

fn survive(text: &str) {
    let parsed = ptx::parse(text);
    agree(text, &parsed);
    let lines = ptx::LineIndex::new(text);
    for diagnostic in &parsed.diagnostics {
        assert!(diagnostic.span.start <= diagnostic.span.end);
        assert!(diagnostic.span.end as usize <= text.len());
        diagnostic.render("x", &lines);
    }
}

/// A skim sees what the parser sees at module scope, and every function that it found can be read by itself.
fn agree(text: &str, parsed: &ptx::Parsed<'_>) {
    let ptx::Skimmed { parsed: skimmed, declaring } = ptx::skim(text);
    if parsed.has_errors() {
        // Where statements end depends on what was meant; only that it comes back is promised.
        return;
    }
    let heads = |module: &ptx::Module<'_>| -> Vec<String> {
        let items = module.items.iter().map(|item| match item {
            Item::Function(function) => {
                let body = function.body.as_ref().map(|body| Block { statements: vec![], span: body.span });
                format!("{:?}", Function { body, ..function.clone() })
            }
            other => format!("{other:?}"),
        });
        items.collect()
    };
    assert_eq!(heads(&skimmed.module), heads(&parsed.module), "{text}");
    assert_eq!(skimmed.diagnostics, parsed.diagnostics, "{text}");
    for function in parsed.module.functions() {
        let alone = ptx::parse_at(text, function.span);
        assert_eq!(
            format!("{:?}", alone.module.functions().next()),
            format!("{:?}", Some(function)),
            "{text}"
        );
        let Some(body) = &function.body else { continue };
        assert!(!declares(body) || declaring.contains(&body.span.start), "{text}");
    }
}

fn declares(block: &Block<'_>) -> bool {
    block.statements.iter().any(|statement| match statement {
        Statement::Variable(variable) => matches!(variable.space.value, Space::Global | Space::Const),
        Statement::Block(block) => declares(block),
        _ => false,
    })
}

#[test]
fn a_function_that_was_stepped_over_tells_its_errors_where_they_are() {
    let text = ".version 8.0\n.entry a() { \"}\"; }\n.func b()\n{ /* } */ add.s32 ]; // }\n ret; }\n.global .u32 x;\n";
    let ptx::Skimmed { parsed, .. } = ptx::skim(text);
    assert!(parsed.diagnostics.is_empty(), "{:?}", parsed.diagnostics);
    assert_eq!(parsed.module.items.len(), 3);
    let span = parsed.module.functions().nth(1).unwrap().span;
    let body = ptx::parse_at(text, span);
    let said: Vec<_> = body.diagnostics.iter().map(|it| it.render("t", &ptx::LineIndex::new(text))).collect();
    assert_eq!(said, ["t:4:19: error: expected a value, found `]`"]);
}

#[test]
fn a_body_without_end_is_told_as_the_parser_tells_it() {
    for text in
        [".entry k() { { ret; }", ".entry k() { { ret; }\n.visible .entry l() { ret; }", ".entry k() { } }"]
    {
        let (skimmed, parsed) = (ptx::skim(text).parsed, ptx::parse(text));
        assert!(!parsed.diagnostics.is_empty());
        assert_eq!(skimmed.diagnostics, parsed.diagnostics);
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
    "{1, 2}",
    ".const",
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
