//! What the first launch of each kernel of PTX files costs: `cargo run --release -p hip-cpu --example cold -- FILE.ptx …`.
//!
//! A line for each kernel, fields joined by tabs: instructions in the PTX, with those of the functions it calls; milliseconds of CPU for reading and lowering, for the
//! baseline code's text, for LLVM's work on it, for loading it; lines of its text; setting, milliseconds for the text and for
//! LLVM, lines and effort of the best code; the process's peak memory while the kernel was compiled, in MB; the kernel. `--baseline` leaves the best code out, `--block N` says how many threads a
//! block has (256), `--only WORD` takes kernels whose name has it, `--named FILE` those that
//! the file names, a line each. `cargo xtask bench first` makes a table of it.

use std::collections::{HashMap, HashSet};

use compiler::back::cpu::{Compiled, emit_baseline};
use compiler::{Diagnostic, Module, Program, Source};
use hip_cpu::budget;
use hip_cpu::exec;
use hip_cpu::jit::{self, Effort, Target};
use ptx::ast::{Block, Function, FunctionKind, OperandKind, Statement};

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

/// Instructions of each kernel of the text and of the functions that it calls by their names, each of them once, by the kernel's name.
fn instructions(text: &str) -> HashMap<String, usize> {
    let parsed = ptx::parse(text);
    let bodies = parsed.module.functions().filter_map(|it| Some((it.name.value, it.body.as_ref()?)));
    let bodies: HashMap<&str, &Block<'_>> = bodies.collect();
    let kernels = parsed.module.functions().filter(|it| it.kind == FunctionKind::Entry);
    let of = |kernel: &Function<'_>| {
        let (mut seen, mut work, mut n) = (HashSet::new(), vec![kernel.name.value], 0);
        while let Some(name) = work.pop() {
            if let (true, Some(body)) = (seen.insert(name), bodies.get(name)) {
                n += body.n_instructions();
                called(body, &mut work);
            }
        }
        (kernel.name.value.to_owned(), n)
    };
    kernels.map(of).collect()
}

/// The names that calls have, those of registers and prototypes included.
fn called<'a>(body: &Block<'a>, names: &mut Vec<&'a str>) {
    for statement in &body.statements {
        match statement {
            Statement::Block(inner) => called(inner, names),
            Statement::Instruction(call) if call.opcode.value == "call" => {
                names.extend(call.operands.iter().filter_map(|it| match it.kind {
                    OperandKind::Name(name) => Some(name),
                    _ => None,
                }));
            }
            _ => {}
        }
    }
}

/// The peak of this process's memory counts from now on, without what was freed.
fn forget_peak() {
    // SAFETY: no condition; it gives back what is free.
    unsafe { libc::malloc_trim(0) };
    // proc(5): 5 resets the peak.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// Megabytes.
fn peak_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kb = line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<f64>().ok());
    kb.unwrap_or(f64::NAN) * 1024.0 / 1e6
}

struct Asked {
    block: u32,
    only: Option<String>,
    named: Option<HashSet<String>>,
    baseline_only: bool,
}

fn measure(text: &str, path: &str, asked: &Asked) {
    let instructions = instructions(text);
    let sources = vec![Source { name: path.to_owned(), text: text.to_owned() }];
    let module = match Module::link(sources) {
        Ok(module) => module,
        Err(diagnostics) => return diagnostics.iter().for_each(|it| eprintln!("{path}: {it}")),
    };
    let target = Target::host();
    for (index, header) in module.kernels().iter().enumerate() {
        let name = &header.name;
        if asked.only.as_ref().is_some_and(|word| !name.contains(word))
            || asked.named.as_ref().is_some_and(|names| !names.contains(name))
        {
            continue;
        }
        forget_peak();
        let (program, lower) = timed(|| module.lower(index));
        let kernel = &program.kernels[0];
        let threads = header.max_threads().map_or(asked.block, |it| it.min(asked.block));
        let options = target.options(header.req_ntid.unwrap_or([threads, 1, 1]));
        let baseline = || {
            let made = emit_baseline(&program, kernel, false, target.vector_bits);
            made.map(|it| (it, Effort::Baseline))
        };
        let Some(first) = Made::of(&program, baseline) else { continue };
        let mut line = format!(
            "{}\t{lower:.2}\t{:.2}\t{:.2}\t{:.2}\t{}",
            instructions.get(name).copied().unwrap_or(0),
            first.text_ms,
            first.llvm_ms,
            first.load_ms,
            first.lines
        );
        let best = || budget::emit(&program, kernel, &options);
        if !asked.baseline_only
            && let Some(best) = Made::of(&program, best)
        {
            let Made { setting, text_ms, llvm_ms, lines, effort, .. } = best;
            line += &format!("\t{setting}\t{text_ms:.2}\t{llvm_ms:.2}\t{lines}\t{effort:?}");
        }
        println!("{line}\t{:.0}\t{name}", peak_mb());
    }
}

/// Code, and what it took.
struct Made {
    setting: &'static str,
    lines: usize,
    effort: Effort,
    text_ms: f64,
    llvm_ms: f64,
    load_ms: f64,
}

impl Made {
    fn of(
        program: &Program,
        emit: impl FnOnce() -> Result<(Compiled, Effort), Vec<Diagnostic>>,
    ) -> Option<Made> {
        let name = &program.kernels[0].name;
        let (compiled, text_ms) = timed(emit);
        let said =
            |diagnostics: &Vec<Diagnostic>| diagnostics.iter().for_each(|it| eprintln!("{name}: {it}"));
        let (compiled, effort) = compiled.inspect_err(said).ok()?;
        let (object, llvm_ms) = timed(|| jit::compile(name, &compiled.text, Target::host(), effort));
        let object = object.inspect_err(|error| eprintln!("{name}: {error}")).ok()?;
        let (code, load_ms) = timed(|| exec::Kernel::load(&object, &(&compiled).into()));
        code.inspect_err(|error| eprintln!("{name}: {error}")).ok()?;
        let (setting, lines) = (compiled.setting.name(), compiled.text.lines().count());
        Some(Made { setting, lines, effort, text_ms, llvm_ms, load_ms })
    }
}

fn main() {
    let mut asked = Asked { block: 256, only: None, named: None, baseline_only: false };
    let mut files = vec![];
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match &*argument {
            "--baseline" => asked.baseline_only = true,
            "--block" => asked.block = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(256),
            "--only" => asked.only = arguments.next(),
            "--named" => {
                let list = arguments.next().map(std::fs::read_to_string);
                let list = list.and_then(Result::ok).expect("--named FILE");
                asked.named = Some(list.lines().map(str::to_owned).collect());
            }
            _ => files.push(argument),
        }
    }
    // LLVM starts once for all.
    let warm = "define i32 @f() {\n  ret i32 1\n}\n";
    let _ = jit::compile("warm", warm, Target::host(), Effort::Baseline);
    for path in files {
        match std::fs::read(&path) {
            Ok(bytes) => measure(&ptx::text(&bytes), &path, &asked),
            Err(error) => eprintln!("{path}: {error}"),
        }
    }
}
