//! `cargo run -p compiler --example gcn -- gfx1100 FILE.ptx [KERNEL]`: the LLVM IR for an AMD GPU.

use compiler::gcn::{Target, compile};
use compiler::{Module, Source};

fn main() {
    let mut args = std::env::args().skip(1);
    let (Some(target), Some(file)) = (args.next(), args.next()) else {
        eprintln!("usage: gcn TARGET FILE.ptx [KERNEL]");
        std::process::exit(2);
    };
    let wanted = args.next();
    let target: Target = target.parse().unwrap_or_else(|error| fail(&[error]));
    let text = std::fs::read_to_string(&file).unwrap_or_else(|error| fail(&[error]));
    let module = Module::link(vec![Source { name: file, text }]).unwrap_or_else(|errors| fail(&errors));
    let mut failed = false;
    for (index, header) in module.kernels().iter().enumerate() {
        if wanted.as_ref().is_some_and(|wanted| *wanted != header.name) {
            continue;
        }
        match compile(&module, index, &target) {
            Ok(code) => {
                println!("; {} {:?} shared {}\n{}", code.symbol, code.kernarg, code.shared_bytes, code.text)
            }
            Err(errors) => {
                errors.iter().for_each(|error| eprintln!("{error}"));
                failed = true;
            }
        }
    }
    std::process::exit(i32::from(failed));
}

fn fail<T>(errors: &[impl std::fmt::Display]) -> T {
    errors.iter().for_each(|error| eprintln!("{error}"));
    std::process::exit(1);
}
