//! Lines of LLVM IR by PTX instruction of every kernel in PTX files, as baseline code and as the code that is chosen:
//! `cargo run -p compiler --example lines -- [--most LANES,VECTORS] FILE.ptx …`. With `--most` a kernel with more lines in
//! setting `lane`, or in `simd` or `warp`, is an error; 600 lines are for what a short kernel has beside its length.

use std::process::ExitCode;

use compiler::back::cpu::{Compiled, Options, Setting, emit, emit_baseline};
use compiler::{Module, Source};
use ptx::ast::{Block, Function, FunctionKind};

/// Lines beside those that grow with the kernel: an empty kernel has 92; CUB's exclusive sum of a radix sort has 36 for each of its 87
/// instructions, since some 20 of them go lane by lane to places 72 bytes apart, which only long kernels call a function for.
const FIXED: usize = 600;

/// Instructions of the kernel `name`, and of the functions that it may call: all of the text's.
fn instructions(module: &ptx::Module<'_>, name: &str) -> usize {
    let is_counted = |it: &&Function<'_>| it.name.value == name || it.kind != FunctionKind::Entry;
    module.functions().filter(is_counted).filter_map(|it| it.body.as_ref()).map(Block::n_instructions).sum()
}

/// Kernels with more lines than `most` allows.
fn look(path: &str, most: Option<[usize; 2]>) -> Result<usize, String> {
    let bytes = std::fs::read(path).map_err(|error| format!("{path}: {error}"))?;
    let text = ptx::text(&bytes).into_owned();
    let parsed = ptx::parse(&text);
    let source = Source { name: path.to_owned(), text: text.clone() };
    let said = |diagnostics: Vec<compiler::Diagnostic>| {
        diagnostics.iter().map(|it| it.to_string()).collect::<Vec<_>>().join("\n")
    };
    let linked = Module::link(vec![source]).map_err(said)?;
    let mut n_over = 0;
    for (index, header) in linked.kernels().iter().enumerate() {
        let program = linked.lower(index);
        let kernel = &program.kernels[0];
        let n = instructions(&parsed.module, &header.name).max(1);
        let threads = header.max_threads().map_or(256, |most| most.min(256));
        let options = Options::new(header.req_ntid.unwrap_or([threads, 1, 1]), 512);
        let baseline = emit_baseline(&program, kernel, false, 512).map_err(said)?;
        let chosen = emit(&program, kernel, &options).map_err(said)?;
        let over = [&baseline, &chosen].map(|code| most.is_some_and(|most| is_over(code, n, most)));
        n_over += usize::from(over.contains(&true));
        let by = |code: &Compiled| code.text.lines().count() as f64 / n as f64;
        println!(
            "{}{n:6} instructions, baseline {:5.1}, {} {:5.1} {}",
            if over.contains(&true) { "OVER " } else { "" },
            by(&baseline),
            chosen.setting.name(),
            by(&chosen),
            header.name
        );
    }
    Ok(n_over)
}

fn is_over(code: &Compiled, n: usize, [lanes, vectors]: [usize; 2]) -> bool {
    let by = if code.setting == Setting::Lane { lanes } else { vectors };
    code.text.lines().count() > FIXED + by * n
}

fn main() -> ExitCode {
    let mut most = None;
    let mut files = vec![];
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        if argument == "--most" {
            let given = arguments.next().unwrap_or_default();
            most = given.split_once(',').and_then(|(l, v)| Some([l.parse().ok()?, v.parse().ok()?]));
            if most.is_none() {
                eprintln!("--most LANES,VECTORS");
                return ExitCode::FAILURE;
            }
        } else {
            files.push(argument);
        }
    }
    let mut n_over = 0;
    for path in files {
        match look(&path, most) {
            Ok(found) => n_over += found,
            Err(error) => {
                eprintln!("{error}");
                return ExitCode::FAILURE;
            }
        }
    }
    if n_over > 0 {
        eprintln!("{n_over} kernels have more lines of LLVM IR than their PTX allows");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
