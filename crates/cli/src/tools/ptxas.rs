//! `ptxas`: checks PTX with our translator and hands it on where machine code is asked for. Our driver takes the text as the
//! image it is; so would NVIDIA's.
//!
//! What it prints has the form that callers read: the release in `--version`, `FILE, line N; error` for each mistake.

mod options;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use compiler::program::Kernel;
use compiler::{Cause, Module, Source};

use options::{Input, Options};

/// What callers know as a text that ptxas does not take.
const FAILED: u8 = 255;

/// Callers write PTX of the version that comes with this release. Those of before CUDA 13 take no later one; all that the
/// translator knows beyond is not in their texts.
const RELEASE: &str = "12.9";

/// The sentence behind `ptxas fatal`.
type Fatal = String;

pub fn run(words: &[OsString]) -> ExitCode {
    match Options::read(words).and_then(|options| assemble(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(fatal) => {
            eprintln!("ptxas fatal   : {fatal}");
            ExitCode::from(FAILED)
        }
    }
}

fn assemble(options: &Options) -> Result<(), Fatal> {
    if options.help {
        println!("{}", options::usage());
        return Ok(());
    }
    if options.version {
        println!("ptxas: checks PTX and hands it on, for CUDAway {}", env!("CARGO_PKG_VERSION"));
        println!("Cuda compilation tools, release {RELEASE}, V{RELEASE}.0");
        return Ok(());
    }
    let (name, text) = read(options.input.as_ref().ok_or("No input file was given")?)?;
    let source = Source { name: name.clone(), text };
    match check(&source, options) {
        Ok(kernels) if options.verbose => kernels.iter().for_each(|kernel| describe(kernel, options)),
        Ok(_) => {}
        Err(wrong) => {
            for it in wrong {
                eprintln!("ptxas {}, line {}; error   : {}", it.source, it.line, it.message);
            }
            return Err("The PTX has mistakes, or something that CUDAway does not translate".to_owned());
        }
    }
    let text = if options.rounds_products { round_products(&source.text) } else { source.text };
    // Whoever reads the file as an image hands over its address alone: the text has to end by itself.
    let image = [text.as_bytes(), b"\0"].concat();
    let output = options.output.clone().unwrap_or_else(|| PathBuf::from("elf.o"));
    std::fs::write(&output, image).map_err(|error| format!("{}: {error}", output.display()))
}

/// The text and what to call it.
fn read(input: &Input) -> Result<(String, String), Fatal> {
    let (name, bytes) = match input {
        Input::Text(text) => ("<string>".to_owned(), text.clone().into_bytes()),
        Input::File(path) => (path.display().to_string(), bytes(path)?),
    };
    let text = bytes.split(|&byte| byte == 0).next().unwrap_or_default().to_vec();
    let text = String::from_utf8(text).map_err(|_| format!("{name} is no text"))?;
    Ok((name, text))
}

fn bytes(path: &Path) -> Result<Vec<u8>, Fatal> {
    std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// The text with `.rn` at the products, sums and differences of floating-point numbers that have no rounding modifier: without one they
/// may be fused (PTX ISA, `mul`).
fn round_products(text: &str) -> String {
    const FLOATS: [&str; 7] = ["f16", "f16x2", "bf16", "bf16x2", "f32", "f32x2", "f64"];
    const ROUNDINGS: [&str; 4] = ["rn", "rz", "rm", "rp"];
    let is_of_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '$' | '%');
    let mut made = String::with_capacity(text.len() + text.len() / 64);
    for piece in text.split_inclusive(|c: char| !is_of_word(c)) {
        let word = piece.trim_end_matches(|c: char| !is_of_word(c));
        let mut parts = word.split('.');
        let opcode = parts.next().unwrap_or_default();
        let is_plain = matches!(opcode, "mul" | "add" | "sub")
            && word.rsplit('.').next().is_some_and(|ty| FLOATS.contains(&ty))
            && !parts.any(|part| ROUNDINGS.contains(&part));
        if is_plain {
            made.push_str(opcode);
            made.push_str(".rn");
            made.push_str(&piece[opcode.len()..]);
        } else {
            made.push_str(piece);
        }
    }
    made
}

/// Everything in the text, as ptxas looks at everything.
fn check(source: &Source, options: &Options) -> Result<Vec<Kernel>, Vec<compiler::Diagnostic>> {
    let program = Module::link(vec![source.clone()])?.lower_all();
    // A part of a program may leave names to the others.
    let is_wrong = |it: &compiler::Diagnostic| !(options.is_part && matches!(it.cause, Cause::Undefined(_)));
    let wrong: Vec<_> = program.diagnostics.into_iter().filter(is_wrong).collect();
    if wrong.is_empty() { Ok(program.kernels) } else { Err(wrong) }
}

/// What is true of a kernel before a device has it: the memory its text declares. Registers are nobody's yet.
fn describe(kernel: &Kernel, options: &Options) {
    let Ok(body) = &kernel.body else { return };
    let (name, local_bytes) = (&kernel.name, body.locals.iter().map(|local| local.bytes).sum::<u64>());
    eprintln!("ptxas info    : Compiling entry function '{name}' for '{}'", options.gpu);
    eprintln!("ptxas info    : Function properties for {name}");
    eprintln!("    {local_bytes} bytes stack frame, 0 bytes spill stores, 0 bytes spill loads");
    eprintln!(
        "ptxas info    : Left as PTX, registers come later; {} bytes smem, {} bytes of parameters",
        kernel.shared.bytes, kernel.params_bytes
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_without_a_rounding_modifier_get_one() {
        let text = "{ mul.ftz.f32 %f1,%f2,%f3;add.f64 %d1, %d2, mul.f32; sub.rz.f32 %f1, %f2, %f3; mul.lo.s32 %r1, %r2, 3;\n\
                    \tred.global.add.f32 [%rd1], %f1; add.f16x2\t%r1, %r2, %r3; fma.rn.f32 %f1, %f2, %f3, %f4; }";
        let wanted = "{ mul.rn.ftz.f32 %f1,%f2,%f3;add.rn.f64 %d1, %d2, mul.rn.f32; sub.rz.f32 %f1, %f2, %f3; mul.lo.s32 %r1, %r2, 3;\n\
                      \tred.global.add.f32 [%rd1], %f1; add.rn.f16x2\t%r1, %r2, %r3; fma.rn.f32 %f1, %f2, %f3, %f4; }";
        assert_eq!(round_products(text), wanted);
    }
}
