//! Kernels that apply several instructions to the same columns of operands, one thread per row.

use std::fmt::Write;

use hip_cpu::exec;
use hip_cpu::harness::{self, Arg, Error, Globals, How};
use hip_cpu::jit::Effort;

use crate::forms::{Class, Instruction, Source};
use crate::inputs::{BLOCK, Columns};

/// A way to run a kernel.
pub struct Setting {
    pub name: &'static str,
    kind: compiler::back::cpu::Setting,
    width: Option<u32>,
    vector_bits: Option<u32>,
    effort: Effort,
}

const fn simd(name: &'static str, width: u32, vector_bits: Option<u32>) -> Setting {
    Setting {
        name,
        kind: compiler::back::cpu::Setting::Simd,
        width: Some(width),
        vector_bits,
        effort: Effort::Best,
    }
}

const fn steps(name: &'static str, kind: compiler::back::cpu::Setting, effort: Effort) -> Setting {
    Setting { name, kind, width: None, vector_bits: None, effort }
}

pub const SETTINGS: [Setting; 7] = [
    steps("lane", compiler::back::cpu::Setting::Lane, Effort::Best),
    steps("baseline", compiler::back::cpu::Setting::Lane, Effort::Baseline),
    simd("S16, 128-bit vectors", 16, Some(128)),
    steps("warp", compiler::back::cpu::Setting::Warp, Effort::Best),
    simd("S8", 8, None),
    simd("S32, 256-bit vectors", 32, Some(256)),
    simd("S64", 64, None),
];

impl Setting {
    /// Approximations may use what only CPUs with such registers have: results are compared among settings alike in it.
    pub fn has_wide_vectors(&self) -> bool {
        self.vector_bits.unwrap_or(hip_cpu::jit::Target::host().vector_bits) >= 512
    }

    fn how(&self, n: usize) -> How {
        How {
            setting: Some(self.kind),
            width: self.width,
            vector_bits: self.vector_bits,
            effort: self.effort,
            ..How::new((n / BLOCK) as u32, BLOCK as u32)
        }
    }
}

/// Splits off the instructions that the lowering refuses.
pub fn accepted(instructions: Vec<Instruction>) -> (Vec<Instruction>, Vec<String>) {
    let mut known = vec![];
    let mut refused = vec![];
    for instruction in instructions {
        let text = text(std::slice::from_ref(&instruction));
        let lowered = harness::load(&text).is_ok_and(|program| program.kernels[0].body.is_ok());
        if lowered { known.push(instruction) } else { refused.push(instruction.text) }
    }
    (known, refused)
}

fn register(class: Class, name: &str) -> String {
    format!(".reg .{} %{name};\n", class.ptx())
}

/// A kernel's parameters: results, rows, then a column per operand.
fn text(instructions: &[Instruction]) -> String {
    let first = &instructions[0];
    let (version, target) = if first.target > 90 { ("9.5", "sm_100a") } else { ("8.6", "sm_90") };
    let n_columns = first.kinds().len();
    let columns: String = (0..n_columns).map(|i| format!(", .param .u64 column{i}")).collect();
    let mut ptx = format!(
        ".version {version}\n.target {target}\n.address_size 64\n\
         .visible .entry kernel(.param .u64 results, .param .u32 rows{columns})\n{{\n\
         .reg .b32 %thread, %block, %row, %rows, %word, %carry;\n.reg .b64 %at, %place, %step;\n.reg .pred %bit;\n\
         mov.u32 %thread, %tid.x;\nmov.u32 %block, %ctaid.x;\nmad.lo.u32 %row, %block, {BLOCK}, %thread;\n\
         ld.param.u32 %rows, [rows];\nmul.wide.u32 %step, %rows, 8;\n\
         ld.param.u64 %place, [results];\nmad.wide.u32 %place, %row, 8, %place;\n"
    );
    let mut column = 0;
    let mut load = |ptx: &mut String, class: Class, name: &str| {
        *ptx += &register(class, name);
        let _ = write!(ptx, "ld.param.u64 %at, [column{column}];\nmad.wide.u32 %at, %row, 8, %at;\n");
        let _ = match class {
            Class::Pred => write!(ptx, "ld.global.u32 %word, [%at];\nsetp.ne.u32 %{name}, %word, 0;\n"),
            _ => writeln!(ptx, "ld.global.{} %{name}, [%at];", class.ptx()),
        };
        column += 1;
    };
    for (i, source) in first.sources.iter().enumerate() {
        if let Source::Register { class, .. } = source {
            load(&mut ptx, *class, &format!("s{i}"));
        }
    }
    if first.takes_carry {
        load(&mut ptx, Class::B32, "carry_in");
    }
    for (nth, instruction) in instructions.iter().enumerate() {
        ptx += &one(nth, instruction);
    }
    ptx + "ret;\n}\n"
}

/// One instruction and the stores of its results, each into its own plane of rows.
fn one(nth: usize, instruction: &Instruction) -> String {
    let mut ptx = String::new();
    let names: Vec<String> = (0..instruction.results.len()).map(|i| format!("d{nth}_{i}")).collect();
    for ((class, _), name) in instruction.results.iter().zip(&names) {
        ptx += &register(*class, name);
    }
    // CC.CF has no moves: an addition makes it, and another reads it.
    if instruction.takes_carry {
        ptx += "add.cc.u32 %word, %carry_in, -1;\n";
    }
    let results: Vec<String> = names
        .iter()
        .zip(&instruction.results)
        .map(|(name, (_, behind))| format!("%{name}{behind}"))
        .collect();
    let sources: Vec<String> = instruction
        .sources
        .iter()
        .enumerate()
        .map(|(i, source)| match source {
            Source::Register { before, behind, .. } => format!("{before}%s{i}{behind}"),
            Source::Literal { text, .. } => text.clone(),
        })
        .collect();
    let _ = writeln!(ptx, "{} {}, {};", instruction.mnemonic, results.join("|"), sources.join(", "));
    if instruction.gives_carry {
        ptx += "addc.u32 %carry, 0, 0;\n";
    }
    for i in 0..2 {
        if let Some(((class, _), name)) = instruction.results.get(i).zip(names.get(i)) {
            let _ = match class {
                Class::Pred => {
                    writeln!(ptx, "selp.u32 %word, 1, 0, %{name};\nst.global.u32 [%place], %word;")
                }
                _ => writeln!(ptx, "st.global.{} [%place], %{name};", class.ptx()),
            };
        } else if i == instruction.results.len() && instruction.gives_carry {
            ptx += "st.global.u32 [%place], %carry;\n";
        }
        ptx += "add.u64 %place, %place, %step;\n";
    }
    ptx
}

/// Instructions in one kernel.
pub struct Batch {
    n: usize,
    program: compiler::Program,
}

/// Two planes of rows per instruction.
pub struct Found {
    results: Vec<u64>,
    rows: usize,
}

impl Found {
    /// Result number `index` of instruction number `nth`, for every row.
    pub fn plane(&self, nth: usize, index: usize) -> &[u64] {
        &self.results[(2 * nth + index) * self.rows..][..self.rows]
    }
}

impl Batch {
    pub fn new(instructions: &[Instruction]) -> Batch {
        let text = text(instructions);
        let program = harness::load(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        Batch { n: instructions.len(), program }
    }

    pub fn compile<'s>(&self, setting: &'s Setting) -> Result<(&'s Setting, exec::Kernel), Error> {
        let how = setting.how(BLOCK);
        let compiled = harness::emit(&self.program, "kernel", &how)?;
        Ok((setting, harness::code("kernel", &compiled, &how)?))
    }

    pub fn run(&self, (setting, code): &(&Setting, exec::Kernel), columns: &Columns) -> Result<Found, Error> {
        let rows = columns.len();
        let mut results = vec![0u64; 2 * self.n * rows];
        let mut copies = columns.columns.clone();
        let mut args = vec![Arg::Buffer(bytes(&mut results)), Arg::u32(rows as u32)];
        args.extend(copies.iter_mut().map(|column| Arg::Buffer(bytes(column))));
        let mut globals = Globals::place(&self.program);
        harness::run_code(&self.program, "kernel", code, &setting.how(rows), &mut args, &mut globals)?;
        drop(args);
        Ok(Found { results, rows })
    }
}

fn bytes(words: &mut [u64]) -> &mut [u8] {
    let len = size_of_val(words);
    // SAFETY: the bytes of the words, borrowed as the words are; every bit pattern is good for both.
    unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), len) }
}
