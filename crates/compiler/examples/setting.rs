//! Which setting each kernel of a PTX file runs in on the CPU device, and why not in the ones before.
//! `cargo run -p compiler --example setting -- FILE.ptx [threads of a block]`

use compiler::back::cpu::{Options, emit};
use compiler::{Program, Source};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let Some(path) = arguments.next() else {
        eprintln!("usage: setting FILE.ptx [threads of a block]");
        std::process::exit(2);
    };
    let threads = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(256);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) => {
            eprintln!("{path}: {error}");
            std::process::exit(1);
        }
    };
    let program = match Program::load(&[Source { name: path, text }]) {
        Ok(program) => program,
        Err(diagnostics) => {
            diagnostics.iter().for_each(|diagnostic| eprintln!("{diagnostic}"));
            std::process::exit(1);
        }
    };
    for kernel in &program.kernels {
        let block = kernel.req_ntid.unwrap_or([threads, 1, 1]);
        match emit(&program, kernel, &Options::new(block, 256)) {
            Ok(compiled) => {
                let rival = compiled.rival.map_or(String::new(), |rival| format!(" or {rival}"));
                println!("{} {}{rival} {}", compiled.setting.letter(), compiled.width, kernel.name);
                for (setting, why) in [("S", compiled.why_not_simd), ("P", compiled.why_not_warp)] {
                    why.into_iter().for_each(|why| println!("    not {setting}: {why}"));
                }
            }
            Err(diagnostics) => diagnostics.iter().for_each(|it| println!("- {}: {it}", kernel.name)),
        }
    }
}
