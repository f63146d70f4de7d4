//! The rows of [`form`], run in `lane`, in `warp` and in `simd` at every width: in each run in `lane`, by baseline code and in half of
//! the other ways, drawn for each kernel.

pub mod form;

use std::collections::HashMap;

use compiler::Program;
use compiler::back::cpu::Setting;

use crate::memory::watched;

use super::{Arg, Draw, Error, Globals, How};
use crate::exec;
use crate::jit::Effort;

pub use form::{Expected, Row, Shape, argument, parse};

/// What a run of rows did.
#[derive(Debug, Default)]
pub struct Report {
    pub n_rows: usize,
    /// Rows that also ran in setting `simd`, at one width at least.
    pub n_simd: usize,
    /// Rows that also ran in setting `warp`.
    pub n_warp: usize,
    pub failures: Vec<String>,
    /// Why kernels do not run in `warp` or `simd`, one line per kernel and setting.
    pub refused: Vec<String>,
}

impl Report {
    fn refuse(&mut self, line: String) {
        if !self.refused.contains(&line) {
            self.refused.push(line);
        }
    }
}

/// Widths that setting `simd` is asked for.
pub const WIDTHS: [u32; 5] = [1, 8, 16, 32, 64];

/// Runs every row of a PTX text in `lane`, in `warp`, in `simd` at every width, and in `simd` for the narrower vector registers, as far
/// as they are drawn.
pub fn run(name: &str, text: &str, draw: Draw) -> Report {
    let mut report = Report::default();
    let rows = match parse(text) {
        Ok(rows) => rows,
        Err(error) => {
            report.failures.push(format!("{name}: {error}"));
            return report;
        }
    };
    let program = match super::load(text) {
        Ok(program) => program,
        Err(error) => {
            report.failures.push(format!("{name}: {error}"));
            return report;
        }
    };
    if rows.is_empty() {
        report.failures.push(format!("{name}: no rows"));
    }
    let mut codes = Codes::default();
    for row in &rows {
        report.n_rows += 1;
        let at = format!("{name}:{}: {}({})", row.line, row.kernel, row.arguments.join(", "));
        let how = How::from(row.how);
        // The sanitizer is in the code of setting `lane`, not in baseline code.
        let baseline = Some(how.clone().baseline()).filter(|_| !watched::is_on());
        let is_drawn = |how: &How| {
            draw.takes(2, (name, &row.kernel, form(how), how.setting, how.width, how.vector_bits))
        };
        let (lane, open) = in_both(how.lane());
        for how in [lane].into_iter().chain(open.filter(is_drawn)).chain(baseline) {
            if let Err(error) = run_row(&program, row, &how, &mut codes) {
                report.failures.push(format!("{at} in lane{}: {error}", form(&how)));
            }
        }
        // The sanitizer has setting `lane` only.
        if row.lane_only || watched::is_on() {
            continue;
        }
        let (warp, open) = in_both(How::from(row.how).warp());
        for how in [warp].into_iter().chain(open).filter(is_drawn) {
            match run_row(&program, row, &how, &mut codes) {
                Ok(()) => report.n_warp += usize::from(!how.open),
                Err(Failure::Refused(why)) if !row.warp_only => {
                    report.refuse(format!("{name}: {} in warp: {why}", row.kernel));
                }
                Err(error) => report.failures.push(format!("{at} in warp{}: {error}", form(&how))),
            }
        }
        if row.warp_only {
            continue;
        }
        let mut in_simd = false;
        for width in WIDTHS {
            let how = How::from(row.how).simd(width);
            let mut ways = vec![how.clone()];
            if width == 16 {
                ways.extend(how.clone().opened());
            }
            for bits in [128, 256] {
                // One width is enough to see what narrower registers change.
                if width == 16 && bits < crate::jit::Target::host().vector_bits {
                    ways.push(How { vector_bits: Some(bits), ..how.clone() });
                }
            }
            for how in ways.into_iter().filter(is_drawn) {
                match run_row(&program, row, &how, &mut codes) {
                    Ok(()) => in_simd = true,
                    Err(Failure::Refused(why)) => {
                        report.refuse(format!("{name}: {} in simd{width}: {why}", row.kernel));
                    }
                    Err(error) => {
                        let bits = how.vector_bits.map(|b| format!(", {b}-bit vectors")).unwrap_or_default();
                        report.failures.push(format!("{at} in simd{width}{}{bits}: {error}", form(&how)));
                    }
                }
            }
        }
        report.n_simd += usize::from(in_simd);
    }
    report
}

/// By code for the row's block, and by code for any length where it is flat.
fn in_both(how: How) -> (How, Option<How>) {
    let opened = how.clone().opened();
    (how, opened)
}

/// What is special about the code.
fn form(how: &How) -> &'static str {
    match how.effort {
        Effort::Baseline => ", baseline",
        Effort::Thrifty => ", for less",
        Effort::Best if how.open => ", open",
        Effort::Best => "",
    }
}

#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error("the kernel does not allow the setting: {0}")]
    Refused(String),
    #[error("{0}")]
    Run(Error),
    #[error("{0}")]
    Row(String),
    #[error("result {index} is {got}, expected {expected:?}")]
    Differs { index: usize, got: String, expected: Expected },
}

/// Code by kernel and the part of [`How`] that it depends on: rows share it.
type Codes = HashMap<(String, Blocks, Effort, Option<Setting>, Option<u32>, Option<u32>, bool), exec::Kernel>;

/// A shape, or any that open code is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Blocks {
    Of([u32; 3]),
    Open,
}

fn code<'c>(
    program: &Program,
    kernel: &str,
    how: &How,
    codes: &'c mut Codes,
) -> Result<&'c exec::Kernel, Error> {
    use std::collections::hash_map::Entry;
    let is_clustered = how.cluster != [1; 3];
    let blocks = if how.open { Blocks::Open } else { Blocks::Of(how.block) };
    let key = (kernel.to_owned(), blocks, how.effort, how.setting, how.width, how.vector_bits, is_clustered);
    match codes.entry(key) {
        Entry::Occupied(found) => Ok(found.into_mut()),
        Entry::Vacant(place) => {
            let compiled = super::emit(program, kernel, how)?;
            Ok(place.insert(super::code(kernel, &compiled, how)?))
        }
    }
}

/// Runs one row in one way.
fn run_row(program: &Program, row: &Row, how: &How, codes: &mut Codes) -> Result<(), Failure> {
    let kernel = super::find(program, &row.kernel).map_err(Failure::Run)?;
    let wrong = |what: &str| Failure::Row(what.to_owned());
    if kernel.params.len() != row.arguments.len() + 1 {
        return Err(wrong(
            "the row's arguments do not fit the kernel's parameters (the first is the result pointer)",
        ));
    }
    // Canaries on both sides: a kernel that writes too far is caught here.
    const GUARD: usize = 64;
    let bytes: usize = row.results.iter().map(|r| r.bytes()).sum();
    let mut out = vec![0xa5u8; GUARD + bytes + GUARD];
    // The alignment that device memory has.
    let mut aligned = vec![0u128; (bytes + 2 * GUARD).div_ceil(16) + 16];
    let start = aligned.as_mut_ptr().cast::<u8>();
    let offset = start.align_offset(256);
    // SAFETY: the vector is 256 bytes longer than the two guards and the results.
    let buffer = unsafe { std::slice::from_raw_parts_mut(start.add(offset), 2 * GUARD + bytes) };
    buffer.fill(0xa5);
    {
        let mut args = vec![Arg::Buffer(&mut buffer[GUARD..])];
        for (text, param) in row.arguments.iter().zip(&kernel.params[1..]) {
            let value =
                argument(text, param.bytes as usize).ok_or_else(|| wrong(&format!("argument {text}")))?;
            args.push(Arg::Value(value));
        }
        let ran = code(program, &row.kernel, how, codes).and_then(|code| {
            super::run_code(program, &row.kernel, code, how, &mut args, &mut Globals::place(program))
        });
        match ran {
            Ok(()) => {}
            Err(Error::Refused { why, .. }) => return Err(Failure::Refused(why)),
            Err(error) => return Err(Failure::Run(error)),
        }
    }
    out.copy_from_slice(buffer);
    let mut at = GUARD;
    for (index, result) in row.results.iter().enumerate() {
        let got = &out[at..at + result.bytes()];
        if !result.matches(got) {
            return Err(Failure::Differs { index, got: result.show(got), expected: *result });
        }
        at += result.bytes();
    }
    if out[..GUARD].iter().chain(&out[at..]).any(|&b| b != 0xa5) {
        return Err(wrong("the kernel wrote outside its results"));
    }
    Ok(())
}
