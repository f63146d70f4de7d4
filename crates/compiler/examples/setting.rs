//! Which setting each kernel of PTX files runs in on the CPU device, and why not in a faster one: a line for each, its fields
//! parted by tabs: file, kernel, setting, width, why not in `simd`, why not in `warp`. A file or a kernel that is refused has `-` for its
//! setting and the reason behind it. `cargo run -p compiler --example setting -- [--threads N] FILE.ptx …`

use compiler::back::cpu::{Options, emit};
use compiler::program::Header;
use compiler::{Diagnostic, Module, Source};

/// Threads of a block, where the kernel does not say.
const THREADS: u32 = 256;
/// Bits of the CPU's vectors.
const VECTOR: u32 = 512;

fn said(diagnostics: &[Diagnostic]) -> String {
    let all: Vec<String> = diagnostics.iter().map(|it| it.to_string().replace(['\n', '\t'], " ")).collect();
    all.join("; ")
}

fn block(header: &Header, threads: u32) -> [u32; 3] {
    let most = header.max_threads().map_or(threads, |most| most.min(threads));
    header.req_ntid.unwrap_or([most, 1, 1])
}

fn look(path: &str, threads: u32) -> Result<(), String> {
    let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
    let text = ptx::text(&bytes).into_owned();
    let module = Module::link(vec![Source { name: path.to_owned(), text }]).map_err(|it| said(&it))?;
    for (index, header) in module.kernels().iter().enumerate() {
        let program = module.lower(index);
        let options = Options::new(block(header, threads), VECTOR);
        let fields = match emit(&program, &program.kernels[0], &options) {
            Ok(compiled) => {
                let why = |why: Option<String>| why.unwrap_or_default().replace(['\n', '\t'], " ");
                let (simd, warp) = (why(compiled.why_not_simd), why(compiled.why_not_warp));
                format!("{}\t{}\t{simd}\t{warp}", compiled.setting.name(), compiled.width)
            }
            Err(diagnostics) => format!("-\t0\t{}\t", said(&diagnostics)),
        };
        println!("{path}\t{}\t{fields}", header.name);
    }
    Ok(())
}

fn main() {
    let mut threads = THREADS;
    let mut files = vec![];
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        if argument == "--threads" {
            threads = arguments.next().and_then(|it| it.parse().ok()).unwrap_or(THREADS);
        } else {
            files.push(argument);
        }
    }
    if files.is_empty() {
        eprintln!("usage: setting [--threads N] FILE.ptx …");
        std::process::exit(2);
    }
    for file in files {
        if let Err(why) = look(&file, threads) {
            println!("{file}\t-\t-\t0\t{}\t", why.replace(['\n', '\t'], " "));
        }
    }
}
