//! Prints the LLVM IR of one kernel: `cargo run -p compiler --example emit -- FILE.ptx KERNEL 16x16 [SETTING [WIDTH
//! [VECTOR_BITS]]]`; a setting or width of `-` is the usual one. `baseline` for a setting is the code that is made first.

use std::process::ExitCode;

use compiler::back::cpu::{Options, Setting, emit, emit_baseline};
use compiler::{Program, Source};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, kernel, block, rest @ ..] = arguments.as_slice() else {
        eprintln!("emit FILE.ptx KERNEL X[xY[xZ]] [lane|warp|simd|baseline|- [WIDTH|- [VECTOR_BITS]]]");
        return ExitCode::FAILURE;
    };
    match text(path, kernel, block, rest) {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn text(path: &str, kernel: &str, block: &str, rest: &[String]) -> Result<String, String> {
    let bytes = std::fs::read(path).map_err(|error| format!("{path}: {error}"))?;
    let source = Source { name: path.to_owned(), text: ptx::text(&bytes).into_owned() };
    let said = |diagnostics: Vec<compiler::Diagnostic>| {
        diagnostics.iter().map(|it| it.to_string()).collect::<Vec<_>>().join("\n")
    };
    let program = Program::load(&[source]).map_err(said)?;
    let kernel = program.kernels.iter().find(|it| it.name.contains(kernel)).ok_or("no such kernel")?;
    let number = |text: &str| text.parse::<u32>().map_err(|error| format!("{text}: {error}"));
    let mut sizes = [1; 3];
    for (size, text) in sizes.iter_mut().zip(block.split('x')) {
        *size = number(text)?;
    }
    let given = |nth: usize| rest.get(nth).map(String::as_str).filter(|text| *text != "-");
    let vector_bits = given(2).map_or(Ok(256), number)?;
    if given(0) == Some("baseline") {
        return emit_baseline(&program, kernel, false, vector_bits).map(|it| it.text).map_err(said);
    }
    let options = Options {
        setting: match given(0) {
            None => None,
            Some("lane") => Some(Setting::Lane),
            Some("warp") => Some(Setting::Warp),
            Some("simd") => Some(Setting::Simd),
            Some(other) => return Err(format!("{other}: lane, warp, simd or baseline")),
        },
        width: given(1).map(number).transpose()?,
        has_vnni: vector_bits >= 512,
        ..Options::new(sizes, vector_bits)
    };
    emit(&program, kernel, &options).map(|it| it.text).map_err(said)
}
