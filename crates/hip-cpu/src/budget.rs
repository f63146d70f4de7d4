//! What LLVM may take for a kernel's best code, as foretold from the text: the same text always gets the same code. A kernel that would
//! take longer gets code that costs less to make, and gives the same bits.

use compiler::Diagnostic;
use compiler::back::cpu::{self, Compiled, Options, Setting};
use compiler::program::{Kernel, Program};

use crate::jit::Effort;

/// Milliseconds of CPU for a kernel as they are foretold, by prices that were measured on a busy machine: 4.5 s leaves room below 5.
const BUDGET: f64 = 4500.0;

/// Milliseconds for code that takes the place of baseline code: what would take longer is made for less at first. CUB's kernels are some
/// four times as soon, and take 1.1 to 2 times as long as the best code; baseline code takes 10 to 40 times as long.
const PATIENCE: f64 = 150.0;

/// What a line of text, a block of instructions, each pair of blocks, a value that is handed over where lanes part, each pair of lines
/// with vectors in one block, and a line for having vectors cost, in milliseconds: fitted to CUB's sorts, selections and partitions, of
/// 20,000 to 110,000 lines and 1,500 to 10,000 blocks, and to its histograms, of up to 90,000 values. Pairs of blocks count for the
/// values that are carried through blocks; pairs of lines for the order that is looked for in a long block and for what then has no
/// register, fitted to Triton's products on tensor memory, of up to 62,000 lines and 1,800 vectors in a block, which took LLVM up to
/// 6.0 s where the other prices came to 3.0 s.
const BEST: [f64; 6] = [0.02, 0.25, 77e-6, 0.035, 50e-6, 0.0];
/// Of long text in setting `lane`, whose blocks are long too: fitted to hashcat's kernels of 35,000 to 151,000 lines.
const BEST_OF_LONG: [f64; 6] = [0.06, 0.25, 77e-6, 0.035, 50e-6, 0.0];
/// Of code that carries nothing and stays in its order. A line with vectors is left to the slow selector, which takes most of the time:
/// llama.cpp's quantised products and hashcat's MD5, 60,000 to 181,000 lines of which 79 to 95 % have vectors, took 0.02 to 0.035 ms for
/// each line, the more the busier the machine was; CUB's segmented sorts (147,000 lines, 44 % with vectors) 0.017 ms, hashcat's in
/// setting `lane` 0.005 ms.
const THRIFTY: [f64; 6] = [0.015, 0.0, 0.0, 0.0, 0.0, 0.014];

/// Lines of text in setting `lane` beyond which what takes many lines is called there: LLVM would look for ways through all of them at
/// once, in time that grows with their square. Of hashcat's MD5, whose permutations of bytes have 57 lines each, 184,000 lines took 11 s.
const LONG: usize = 60_000;

/// How much LLVM may do for the code; `None` where anything would be too much.
pub fn affordable(code: &Compiled) -> Option<Effort> {
    within(code, BEST, BUDGET)
}

fn within(code: &Compiled, best: [f64; 6], budget: f64) -> Option<Effort> {
    let costs = costs(code, [best, THRIFTY]);
    let efforts = [Effort::Best, Effort::Thrifty];
    efforts.into_iter().zip(costs).find_map(|(effort, cost)| (cost <= budget).then_some(effort))
}

/// Milliseconds at these prices.
fn costs<const N: usize>(code: &Compiled, prices: [[f64; 6]; N]) -> [f64; N] {
    let (mut lines, mut blocks, mut in_block, mut vectors, mut pairs) = (0u32, 0u32, 0u32, 0u32, 0.0);
    for line in code.text.lines() {
        lines += 1;
        if line.ends_with(':') && !line.starts_with(' ') {
            blocks += 1;
            pairs += f64::from(in_block).powi(2);
            in_block = 0;
        } else if line.contains('<') {
            in_block += 1;
            vectors += 1;
        }
    }
    pairs += f64::from(in_block).powi(2);
    let (lines, blocks, vectors) = (f64::from(lines), f64::from(blocks), f64::from(vectors));
    let handed_over = f64::from(code.handed_over);
    prices.map(|[line, block, pair, value, pair_of_lines, vector]| {
        let of_lines = lines * line + vectors * vector + pairs * pair_of_lines;
        of_lines + blocks * (block + blocks * pair) + handed_over * value
    })
}

/// How much LLVM does at first for a text that it does `best` for in the end.
pub fn at_first(code: &Compiled, best: Effort) -> Effort {
    let [cost] = costs(code, [BEST]);
    if best == Effort::Best && cost > PATIENCE { Effort::Thrifty } else { best }
}

/// The best code that can be afforded: as the translator chooses, else in setting `lane`, whose text is the shortest, with calls
/// of what would make it long, else what baseline code is made by, whose price grows with the text alone.
pub fn emit(
    program: &Program,
    kernel: &Kernel,
    options: &Options,
) -> Result<(Compiled, Effort), Vec<Diagnostic>> {
    emit_within(program, kernel, options, BUDGET)
}

fn emit_within(
    program: &Program,
    kernel: &Kernel,
    options: &Options,
    budget: f64,
) -> Result<(Compiled, Effort), Vec<Diagnostic>> {
    let chosen = cpu::emit(program, kernel, options)?;
    let of_lanes = match within(&chosen, BEST, budget) {
        _ if chosen.setting == Setting::Lane => chosen,
        Some(Effort::Best) => return Ok((chosen, Effort::Best)),
        // A trial would take as long once more.
        Some(effort) => return Ok((Compiled { rival: None, ..chosen }, effort)),
        None => instead(program, kernel, options, &chosen)?,
    };
    if of_lanes.text.lines().nth(LONG).is_none() {
        let effort = within(&of_lanes, BEST, budget).unwrap_or(Effort::Baseline);
        return Ok((of_lanes, effort));
    }
    long(program, kernel, options, of_lanes, budget)
}

/// Of long code in setting `lane` the short text where that gets the best code, else the whole text, if something can be done for it.
fn long(
    program: &Program,
    kernel: &Kernel,
    options: &Options,
    whole: Compiled,
    budget: f64,
) -> Result<(Compiled, Effort), Vec<Diagnostic>> {
    let is_affordable = within(&whole, BEST_OF_LONG, budget).is_some();
    let options = Options { brief: true, ..options.clone() };
    let brief = instead(program, kernel, &options, &whole)?;
    match within(&brief, BEST_OF_LONG, budget) {
        Some(Effort::Best) => Ok((brief, Effort::Best)),
        _ if is_affordable => Ok((whole, Effort::Thrifty)),
        effort => Ok((brief, effort.unwrap_or(Effort::Baseline))),
    }
}

/// Code in setting `lane` in the place of what is too long.
fn instead(
    program: &Program,
    kernel: &Kernel,
    options: &Options,
    long: &Compiled,
) -> Result<Compiled, Vec<Diagnostic>> {
    let why = || Some("LLVM would take too long for it".to_owned());
    let (why_not_simd, why_not_warp) = match long.setting {
        Setting::Simd => (why(), why()),
        Setting::Warp => (long.why_not_simd.clone(), why()),
        Setting::Lane => (long.why_not_simd.clone(), long.why_not_warp.clone()),
    };
    let lanes = Options { setting: Some(Setting::Lane), width: None, ..options.clone() };
    Ok(Compiled { why_not_simd, why_not_warp, ..cpu::emit(program, kernel, &lanes)? })
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::*;
    use compiler::Source;

    fn code(text: String, handed_over: u32) -> Compiled {
        let program = branches(1);
        let made = emit(&program, program.kernel("k").unwrap(), &Options::new([128, 1, 1], 512)).unwrap().0;
        Compiled { text, handed_over, ..made }
    }

    #[test]
    fn longer_texts_get_less_effort() {
        let line = "  %a = add i32 %a, %b\n";
        let affordable = |text: String, handed_over: u32| affordable(&code(text, handed_over));
        assert_eq!(affordable(line.repeat(1000), 0), Some(Effort::Best));
        assert_eq!(affordable(line.repeat(250_000), 0), Some(Effort::Thrifty));
        assert_eq!(affordable(line.repeat(310_000), 0), None);
        // Labels alone.
        assert_eq!(affordable("block:\n".repeat(5000), 0), Some(Effort::Best));
        assert_eq!(affordable("block:\n".repeat(7000), 0), Some(Effort::Thrifty));
        // Vectors in one block, and in many.
        let vector = "  %a = add <32 x i32> %a, %b\n";
        assert_eq!(affordable(vector.repeat(9_000), 0), Some(Effort::Best));
        assert_eq!(affordable(vector.repeat(10_000), 0), Some(Effort::Thrifty));
        let in_short_blocks = |n: usize| format!("{}block:\n", vector.repeat(100)).repeat(n);
        assert_eq!(affordable(in_short_blocks(1000), 0), Some(Effort::Best));
        // For less they cost more than other lines.
        assert_eq!(affordable(vector.repeat(150_000), 0), Some(Effort::Thrifty));
        assert_eq!(affordable(vector.repeat(160_000), 0), None);
        // And where many values live on.
        assert_eq!(affordable(line.repeat(1000), 100_000), Some(Effort::Best));
        assert_eq!(affordable(line.repeat(1000), 150_000), Some(Effort::Thrifty));
    }

    #[test]
    fn what_takes_long_is_made_for_less_at_first() {
        let text = |lines: usize| code("  %a = add i32 %a, %b\n".repeat(lines), 0);
        assert_eq!(at_first(&text(5000), Effort::Best), Effort::Best);
        assert_eq!(at_first(&text(10_000), Effort::Best), Effort::Thrifty);
        // What gets no more in the end gets no less.
        for effort in [Effort::Thrifty, Effort::Baseline] {
            assert_eq!(at_first(&text(10_000), effort), effort);
        }
    }

    /// A kernel with as many branches that lanes of a group take by themselves, whose sides all lanes would run in longer.
    fn branches(n: usize) -> Program {
        let mut text = String::from(
            ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 words) {\n\
             .reg .b32 %t, %x;\n.reg .pred %p;\n.reg .b64 %at;\nld.param.u64 %at, [words];\nmov.u32 %t, %tid.x;\n\
             mov.u32 %x, %t;\n",
        );
        for nth in 0..n {
            let _ = writeln!(
                text,
                "and.b32 %x, %x, 1023;\nsetp.gt.u32 %p, %x, {nth};\n@%p bra L{nth};\ndiv.u32 %x, %x, 7;\n\
                 L{nth}:\nadd.u32 %x, %x, %t;"
            );
        }
        text += "st.global.u32 [%at], %x;\nret;\n}\n";
        Program::load(&[Source { name: "k".to_owned(), text }]).unwrap()
    }

    #[test]
    fn kernels_that_llvm_would_take_too_long_for_are_made_for_less() {
        let program = branches(40);
        let options = Options::new([128, 1, 1], 512);
        let made =
            |budget: f64| emit_within(&program, program.kernel("k").unwrap(), &options, budget).unwrap();
        let (best, effort) = made(BUDGET);
        assert_eq!((best.setting, effort), (Setting::Simd, Effort::Best));
        let [for_less] = costs(&best, [THRIFTY]);
        // What the same text costs for less, and no more.
        let (same, effort) = made(for_less);
        assert_eq!((same.setting, effort, same.rival), (Setting::Simd, Effort::Thrifty, None));
        assert_eq!(same.text, best.text);
        let (lanes, effort) = made(for_less * 0.9);
        assert_eq!(lanes.setting, Setting::Lane);
        assert_ne!(effort, Effort::Baseline);
        assert!(
            lanes.why_not_simd.unwrap().contains("too long")
                && lanes.text.lines().count() < best.text.lines().count()
        );
        let (lanes, effort) = made(0.0);
        assert_eq!((lanes.setting, effort), (Setting::Lane, Effort::Baseline));
    }

    #[test]
    fn long_code_in_lanes_calls_what_takes_many_lines() {
        let kernel = |n: usize| {
            let text = format!(
                ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 words) {{\n\
                 .reg .b32 %t, %x;\n.reg .b64 %at;\nld.param.u64 %at, [words];\nmov.u32 %t, %tid.x;\n\
                 mov.u32 %x, %t;\n{}st.global.u32 [%at], %x;\nret;\n}}\n",
                "prmt.b32 %x, %t, %x, %x;\n".repeat(n)
            );
            Program::load(&[Source { name: "k".to_owned(), text }]).unwrap()
        };
        let options = Options { setting: Some(Setting::Lane), ..Options::new([128, 1, 1], 512) };
        let made = |program: &Program, budget: f64| {
            emit_within(program, program.kernel("k").unwrap(), &options, budget).unwrap()
        };
        let lines = |code: &Compiled| code.text.lines().count();
        let (short, effort) = made(&kernel(100), BUDGET);
        assert!(lines(&short) > 5_000 && effort == Effort::Best);
        let long = kernel(LONG / 50);
        let (brief, effort) = made(&long, BUDGET);
        assert!(lines(&brief) < 10_000 && effort == Effort::Best, "{}", lines(&brief));
        let (code, effort) = made(&long, lines(&brief) as f64 * THRIFTY[0]);
        assert_eq!((code.text == brief.text, effort), (true, Effort::Thrifty));
        let (code, effort) = made(&long, 0.0);
        assert_eq!((code.text == brief.text, effort), (true, Effort::Baseline));
    }
}
