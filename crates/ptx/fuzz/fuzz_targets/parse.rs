//! Any bytes: the parser comes back, and every span lies in the text.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let text = ptx::text(bytes);
    let parsed = ptx::parse(&text);
    let skimmed = ptx::skim(&text).parsed;
    for function in skimmed.module.functions() {
        assert!(function.span.end as usize <= text.len());
        let _ = ptx::parse_at(&text, function.span);
    }
    let lines = ptx::LineIndex::new(&text);
    for diagnostic in &parsed.diagnostics {
        assert!(diagnostic.span.start <= diagnostic.span.end && diagnostic.span.end as usize <= text.len());
        diagnostic.render("fuzz", &lines);
    }
});
