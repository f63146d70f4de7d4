//! Any text: linking and lowering come back, and what was lowered keeps the rules of the IR.

#![no_main]

use compiler::lower::verify::verify;
use compiler::{Program, Source};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    // Two sources, divided by a byte that is no PTX, so that linking is reached too.
    let sources: Vec<Source> = bytes
        .split(|&byte| byte == 0xff)
        .take(3)
        .map(|text| Source { name: "fuzz".to_owned(), text: String::from_utf8_lossy(text).into_owned() })
        .collect();
    if let Ok(program) = Program::load(&sources) {
        for body in program.kernels.iter().filter_map(|it| it.body.as_ref().ok()).chain(&program.functions) {
            if let Err(error) = verify(body) {
                panic!("{error}\n{body}");
            }
        }
    }
});
