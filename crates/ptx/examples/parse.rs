//! Reads PTX files and prints their diagnostics: `cargo run -p ptx --example parse -- FILE…`

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut clean = true;
    for path in std::env::args().skip(1) {
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) => {
                eprintln!("{path}: {error}");
                clean = false;
                continue;
            }
        };
        let text = ptx::text(&bytes);
        let parsed = ptx::parse(&text);
        let lines = ptx::LineIndex::new(&text);
        for diagnostic in &parsed.diagnostics {
            println!("{}", diagnostic.render(&path, &lines));
        }
        println!("{path}: {} items, {} diagnostics", parsed.module.items.len(), parsed.diagnostics.len());
        clean &= !parsed.has_errors();
    }
    if clean { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
