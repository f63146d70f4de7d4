//! Each pure operation of the IR as LLVM instructions, one file per family.
//!
//! The same code serves one lane and W lanes: every helper takes [`Val`]s and works on whatever type they have.

mod approx;
mod bits;
mod bytes;
mod compare;
mod convert;
pub(crate) mod float;
mod integer;
pub mod matrix;
pub(crate) mod minifloat;
mod pack;
mod part;
pub(crate) mod round;
mod sqrt;
pub(crate) mod wide;

use super::builder::{Builder, Val};
use super::ty::Type;
use crate::ir::{Op, Ty};
use std::fmt;

/// An operation this back end does not have (yet); says which.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsupported(pub String);

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "this target does not have {}", self.0)
    }
}

pub(crate) type Result<T> = std::result::Result<T, Unsupported>;

/// Emits a pure operation whose arguments are the named values (or constants) of `arg_tys`, each `lanes` wide, and
/// gives the names of its results. What depends on the thread or the program ([`Op::Special`], addresses of
/// variables, [`Op::IsSpace`], [`Op::Cvta`]) is the setting's own and `Unsupported` here.
pub fn emit_pure(
    b: &mut Builder,
    op: &Op,
    args: &[&str],
    arg_tys: &[Ty],
    result_tys: &[Ty],
    lanes: u32,
) -> std::result::Result<Vec<String>, Unsupported> {
    let vals: Vec<Val> =
        args.iter().zip(arg_tys).map(|(text, ty)| Val::new(Type::of(*ty, lanes), *text)).collect();
    let results: Vec<Type> = result_tys.iter().map(|ty| Type::of(*ty, lanes)).collect();
    let out = emit(b, op, &vals, &results)?;
    debug_assert_eq!(out.iter().map(|v| v.ty).collect::<Vec<_>>(), results, "result types of {op:?}");
    Ok(out.into_iter().map(|val| val.text).collect())
}

/// How many arguments an operation may have, so that a malformed function gives a diagnostic and no panic.
fn arity(op: &Op) -> std::ops::RangeInclusive<usize> {
    match op {
        Op::Const(_) => 0..=0,
        Op::AddCarry(_) | Op::SubCarry(_) => 2..=3,
        Op::Pack => 1..=16,
        Op::Bitcast | Op::Zext | Op::Sext | Op::Trunc | Op::Unpack | Op::Not => 1..=1,
        Op::IntUn(..) | Op::FloatUn(..) | Op::TestP(..) | Op::Cvt { .. } | Op::RoundInt { .. } => 1..=1,
        Op::Bfe(_) | Op::Lop3(_) | Op::Shf { .. } | Op::Prmt(_) | Op::Sad(_) | Op::Fns => 3..=3,
        Op::Dp4a { .. } | Op::Dp2a { .. } | Op::Fma(..) | Op::Select => 3..=3,
        Op::Bfi(_) => 4..=4,
        _ => 2..=2,
    }
}

fn emit(b: &mut Builder, op: &Op, args: &[Val], results: &[Type]) -> Result<Vec<Val>> {
    let unsupported = || Err(Unsupported(format!("{op:?}")));
    if !op.is_pure() || !arity(op).contains(&args.len()) || results.is_empty() {
        return unsupported();
    }
    let to = results[0];
    let one = match op {
        Op::Const(bits) => Builder::bits(to, *bits),
        Op::Bitcast => b.bitcast(&args[0], to),
        Op::Zext | Op::Sext | Op::Trunc => pack::resize(b, &args[0], to, matches!(op, Op::Sext)),
        Op::Pack => pack::pack(b, args, to),
        Op::Unpack => return Ok(pack::unpack(b, &args[0], results)),

        Op::Int(bin, int) => integer::binary(b, *bin, *int, &args[0], &args[1], to),
        Op::IntUn(un, int) => integer::unary(b, *un, *int, &args[0], to),
        Op::MulWide(int) => integer::mul_wide(b, *int, &args[0], &args[1], to),
        Op::AddCarry(int) => return Ok(integer::add_carry(b, *int, args)),
        Op::SubCarry(int) => return Ok(integer::sub_carry(b, *int, args)),
        Op::Sad(int) => integer::sad(b, *int, args),
        Op::Dp4a { a_signed, b_signed } => bytes::dp4a(b, *a_signed, *b_signed, args),
        Op::Dp2a { a_signed, b_signed, hi } => integer::dp2a(b, *a_signed, *b_signed, *hi, args),

        Op::Bfe(int) => bits::bfe(b, *int, args),
        Op::Bfi(int) => bits::bfi(b, *int, args),
        Op::Lop3(table) => bits::lop3(b, *table, args),
        Op::Shf { left, wrap } => bits::shf(b, *left, *wrap, args),
        Op::Prmt(mode) => bits::prmt(b, *mode, args),
        Op::Fns => bits::fns(b, args),
        Op::Szext { int, wrap } => bits::szext(b, *int, *wrap, args),
        Op::Bmsk { wrap } => bits::bmsk(b, *wrap, args),

        Op::Float(bin, ty, mode) => float::binary(b, *bin, *ty, *mode, &args[0], &args[1])?,
        Op::FloatUn(un, ty, mode) => float::unary(b, *un, *ty, *mode, &args[0])?,
        Op::Fma(ty, mode) => float::fma(b, *ty, *mode, args)?,
        Op::TestP(test, ty) => compare::testp(b, *test, *ty, &args[0])?,

        Op::Icmp(cmp, int) => compare::icmp(b, *cmp, *int, &args[0], &args[1]),
        Op::Fcmp { cmp, ty, ftz } => compare::fcmp(b, *cmp, *ty, *ftz, &args[0], &args[1])?,
        Op::Bool(op) => compare::boolean(b, *op, &args[0], &args[1]),
        Op::Not => b.not(&args[0]),
        Op::Select => b.select(&args[0], &args[1], &args[2]),

        Op::Cvt { from, to: num, mode } => convert::cvt(b, *from, *num, *mode, &args[0], to)?,
        Op::RoundInt { ty, mode } => convert::round_int(b, *ty, *mode, &args[0])?,
        Op::CvtPack { from, to: num, mode } => convert::pack(b, *from, *num, *mode, &args[0], &args[1])?,
        _ => return unsupported(),
    };
    Ok(vec![one])
}
