//! What PTX's pure instructions give, bit by bit, written from the PTX ISA manual in exact arithmetic: the tests' second
//! opinion. It shares neither code nor ideas with `compiler`: a float is a big integer times a power of two, rounded once.
//!
//! [`Form::parse`] takes an instruction apart once, [`Form::eval`] answers for one set of operands.
//!
//! * Operands stand in PTX's order: sources, then the predicate of `setp.…, c`, then CC.CF.
//! * Results likewise: `d` (or `p`), the second predicate, CC.CF.
//! * Each is the low bits of a `u128`: sign or type plays no part in how it is passed. Predicates and CC.CF are 0 or 1.
//! * What the syntax writes at an operand is a modifier here: `a.b0`, `d.h1`, `b.neg`, `c.not`.

#![forbid(unsafe_code)]

mod approximate;
mod compare;
mod convert;
mod float;
mod form;
mod format;
mod integer;
mod logic;
mod matrix;
mod value;
mod video;
mod video_simd;

pub use approximate::{Approximate, Domain, Function, Unit, Verdict};
pub use form::{Form, Operand, Results, Rows, Type};
pub use format::{F16, F32, Format};
pub use matrix::{Block, Narrow};
pub use value::{Rounding, Value};
pub use video_simd::is_simd_video;

/// The results of one instruction; `None` where the manual leaves them open or the instruction is not known here.
pub fn eval(opcode: &str, modifiers: &[&str], operands: &[u128]) -> Option<Vec<u128>> {
    let form = Form::parse(opcode, modifiers)?;
    let results = form.eval(operands)?;
    Some(results[..form.results().len()].to_vec())
}
