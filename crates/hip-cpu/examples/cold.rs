//! What the first launch of each kernel of PTX files costs: `cargo run --release -p hip-cpu --example cold -- FILE.ptx …`.
//!
//! By kernel: instructions in the PTX, milliseconds of CPU for reading and lowering, for the baseline code (its text, LLVM,
//! loading) and for the best code (its text, LLVM), and lines of LLVM IR by instruction of both. `--baseline` leaves the
//! best code out, `--block N` says how many threads a block has (256), `--only WORD` takes kernels whose name has it.

use compiler::back::cpu::{Options, Setting, emit};
use compiler::program::Program;
use compiler::{Module, Source};
use hip_cpu::exec;
use hip_cpu::jit::{self, Effort, Target};

/// CPU time of this process, in milliseconds.
fn cpu_ms() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is the kernel's to write.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let start = cpu_ms();
    let result = work();
    (result, cpu_ms() - start)
}

/// Instructions in the body of the entry `name`: statements that are no directives.
fn instructions(text: &str, name: &str) -> usize {
    let Some(at) = text.match_indices(&format!(".entry {name}")).map(|(at, _)| at).find(|at| {
        let behind = text[at + 7 + name.len()..].chars().next();
        behind.is_some_and(|it| !it.is_alphanumeric() && it != '_' && it != '$')
    }) else {
        return 0;
    };
    let body = text[at..].split("\n}").next().unwrap_or_default();
    let body = body.split_once('{').map_or("", |(_, body)| body);
    body.lines().map(str::trim).filter(|line| line.ends_with(';') && !line.starts_with('.')).count()
}

struct Asked {
    block: u32,
    only: Option<String>,
    baseline_only: bool,
}

fn measure(text: &str, path: &str, asked: &Asked) {
    let sources = vec![Source { name: path.to_owned(), text: text.to_owned() }];
    let module = match Module::link(sources) {
        Ok(module) => module,
        Err(diagnostics) => return diagnostics.iter().for_each(|it| eprintln!("{path}: {it}")),
    };
    let target = Target::host();
    for (index, header) in module.kernels().iter().enumerate() {
        let name = &header.name;
        if asked.only.as_ref().is_some_and(|word| !name.contains(word)) {
            continue;
        }
        let n = instructions(text, name).max(1);
        let (program, lower) = timed(|| module.lower(index));
        let block = header.req_ntid.unwrap_or([
            header.max_threads().map_or(asked.block, |it| it.min(asked.block)),
            1,
            1,
        ]);
        let options = Options {
            block,
            open: false,
            setting: None,
            width: None,
            vector_bits: target.vector_bits,
            clustered: false,
            sanitize: false,
        };
        let lane = Options { setting: Some(Setting::Lane), ..options.clone() };
        let one = |options: &Options, effort: Effort| made(&program, options, effort, target);
        let Some((_, lines, text_ms, llvm, load)) = one(&lane, Effort::Baseline) else {
            println!("- {name}: not translated");
            continue;
        };
        let sum = lower + text_ms + llvm + load;
        print!(
            "{n:6} {lower:7.1} + {text_ms:6.1} {llvm:7.1} {load:5.1} = {sum:7.1} ms {:6.1} ms/1000 {:5.1} lines",
            sum / n as f64 * 1e3,
            lines as f64 / n as f64
        );
        if !asked.baseline_only
            && let Some((setting, lines, text_ms, llvm, _)) = one(&options, Effort::Best)
        {
            print!(" | {setting} {text_ms:7.1} {llvm:8.1} {:6.1} lines", lines as f64 / n as f64);
        }
        println!(" {}", &name[..name.len().min(100)]);
    }
}

/// Setting, lines, and milliseconds for text, LLVM and loading.
fn made(
    program: &Program,
    options: &Options,
    effort: Effort,
    target: &Target,
) -> Option<(String, usize, f64, f64, f64)> {
    let kernel = &program.kernels[0];
    let (compiled, text_ms) = timed(|| emit(program, kernel, options));
    let compiled = compiled.ok()?;
    let (object, llvm) = timed(|| jit::compile(&kernel.name, &compiled.text, target, effort));
    let object = object.inspect_err(|error| eprintln!("{}: {error}", kernel.name)).ok()?;
    let (code, load) = timed(|| exec::Kernel::load(&object, &(&compiled).into()));
    code.inspect_err(|error| eprintln!("{}: {error}", kernel.name)).ok()?;
    let setting = format!("{} {:2}", compiled.setting.letter(), compiled.width);
    Some((setting, compiled.text.lines().count(), text_ms, llvm, load))
}

fn main() {
    let mut asked = Asked { block: 256, only: None, baseline_only: false };
    let mut files = vec![];
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match &*argument {
            "--baseline" => asked.baseline_only = true,
            "--block" => asked.block = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(256),
            "--only" => asked.only = arguments.next(),
            _ => files.push(argument),
        }
    }
    Target::host();
    for path in files {
        match std::fs::read_to_string(&path) {
            Ok(text) => measure(&text, &path, &asked),
            Err(error) => eprintln!("{path}: {error}"),
        }
    }
}
