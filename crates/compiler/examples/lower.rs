//! Prints the IR of PTX files, linked together: `cargo run -p compiler --example lower -- [-k KERNEL] FILE…`

use std::process::ExitCode;

use compiler::{Program, Source};

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).peekable();
    let mut only = None;
    if arguments.next_if(|it| it == "-k").is_some() {
        only = arguments.next();
    }
    let mut sources = Vec::new();
    for path in arguments {
        match std::fs::read(&path) {
            Ok(bytes) => sources.push(Source { name: path, text: ptx::text(&bytes).into_owned() }),
            Err(error) => {
                eprintln!("{path}: {error}");
                return ExitCode::FAILURE;
            }
        }
    }
    match Program::load(&sources) {
        Ok(program) => {
            for kernel in
                program.kernels.iter().filter(|it| only.as_ref().is_none_or(|only| it.name.contains(only)))
            {
                if let Ok(body) = &kernel.body
                    && let Err(error) = compiler::lower::verify::verify(body)
                {
                    println!("{}: {error}", kernel.name);
                }
                if let (Ok(body), true) = (&kernel.body, only.is_some()) {
                    println!("{body}");
                }
            }
            let works = program.kernels.iter().filter(|it| it.body.is_ok()).count();
            for diagnostic in &program.diagnostics {
                println!("{diagnostic} ({})", diagnostic.function.as_deref().unwrap_or(""));
            }
            println!(
                "{works} of {} kernels, {} functions, {} globals, {} shared",
                program.kernels.len(),
                program.functions.len(),
                program.globals.len(),
                program.shared.len()
            );
            ExitCode::SUCCESS
        }
        Err(diagnostics) => {
            diagnostics.iter().for_each(|it| println!("{it}"));
            ExitCode::FAILURE
        }
    }
}
