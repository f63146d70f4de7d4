//! Where `.ftz` has nothing to do. nvcc's `-use_fast_math` writes it on every operation, whose arguments are mostly what another such
//! operation gave, or a half or an integer that became an f32: none of them is subnormal. Flushing takes four operations for an
//! argument or a result.

use crate::ir::{Float, FloatBin, FloatUn, Function, Inst, Num, Op, Value};

/// Whether a value may be a subnormal f32.
enum Is {
    Any,
    Never,
    /// If none of these is.
    As(Vec<Value>),
}

/// Says of each operation with `.ftz` which arguments are never subnormal, and takes `.ftz` from those that it changes nothing of.
pub(super) fn run(function: &mut Function) {
    if !function.blocks.iter().flat_map(|block| &block.insts).any(|inst| has_ftz(&inst.op)) {
        return;
    }
    let normal = normal(function);
    for inst in function.blocks.iter_mut().flat_map(|block| &mut block.insts) {
        let of = |number: usize| normal[inst.args[number].index()];
        relieve(&mut inst.op, of);
    }
}

fn has_ftz(op: &Op) -> bool {
    match op {
        Op::Float(_, _, mode) | Op::FloatUn(_, _, mode) | Op::Fma(_, mode) => mode.ftz,
        Op::Cvt { mode, .. } | Op::RoundInt { mode, .. } | Op::CvtPack { mode, .. } => mode.ftz,
        Op::Fcmp { ftz, .. } => *ftz,
        _ => false,
    }
}

/// Of each value, whether it is never subnormal. All are taken for such first; those that may be otherwise take what follows from them
/// along, each once.
fn normal(function: &Function) -> Vec<bool> {
    let mut normal = vec![true; function.values.len()];
    let mut any = vec![];
    let mut follows: Vec<(Value, Value)> = vec![];
    let entry = function.blocks.first().map(|block| block.params.as_slice());
    any.extend_from_slice(entry.unwrap_or_default());
    for block in &function.blocks {
        for inst in &block.insts {
            for (number, &result) in inst.results.iter().enumerate() {
                match if number == 0 { is(inst) } else { Is::Any } {
                    Is::Any => any.push(result),
                    Is::Never => {}
                    Is::As(values) => follows.extend(values.into_iter().map(|value| (value, result))),
                }
            }
        }
        for edge in block.term.edges() {
            let params = &function.blocks[edge.block.index()].params;
            follows.extend(edge.args.iter().copied().zip(params.iter().copied()));
        }
    }
    follows.sort_unstable();
    while let Some(value) = any.pop() {
        if std::mem::replace(&mut normal[value.index()], false) {
            let from = follows.partition_point(|&(of, _)| of < value);
            let these = follows[from..].iter().take_while(|&&(of, _)| of == value);
            any.extend(these.map(|&(_, follows)| follows));
        }
    }
    normal
}

/// What an instruction's first result is. Halves are B16, so none of them is looked at as an f32.
fn is(inst: &Inst) -> Is {
    let args = &inst.args;
    match &inst.op {
        Op::Const(bits) if is_normal(*bits as u32) => Is::Never,
        Op::Bitcast => Is::As(vec![args[0]]),
        Op::Select => Is::As(args[1..].to_vec()),
        Op::Float(_, Float::F32, mode) | Op::FloatUn(_, Float::F32, mode) | Op::Fma(Float::F32, mode)
            if mode.ftz =>
        {
            Is::Never
        }
        Op::Float(FloatBin::Min { .. } | FloatBin::Max { .. }, Float::F32, _) => Is::As(args.clone()),
        Op::FloatUn(FloatUn::Neg | FloatUn::Abs, Float::F32, _) => Is::As(args.clone()),
        Op::FloatUn(op, Float::F32, _) if is_root(*op) => Is::Never,
        Op::RoundInt { ty: Float::F32, .. } => Is::Never,
        Op::Cvt { from, to: Num::Float(Float::F32), mode } => match from {
            // The least half is 2^-24.
            Num::Int(_) | Num::Float(Float::F16) => Is::Never,
            Num::Float(_) if mode.ftz => Is::Never,
            _ => Is::Any,
        },
        _ => Is::Any,
    }
}

/// Zero, or with a digit before the point.
fn is_normal(bits: u32) -> bool {
    bits & 0x7fff_ffff == 0 || bits & 0x7f80_0000 != 0
}

/// Roots are far from subnormal, and so is one over them.
fn is_root(op: FloatUn) -> bool {
    matches!(op, FloatUn::Sqrt | FloatUn::SqrtApprox | FloatUn::RsqrtApprox)
}

/// `normal` says of an argument whether it is never subnormal.
fn relieve(op: &mut Op, normal: impl Fn(usize) -> bool) {
    let all = |n: usize| (0..n).all(&normal);
    match op {
        // One of its arguments.
        Op::Float(FloatBin::Min { .. } | FloatBin::Max { .. }, Float::F32, mode) if all(2) => {
            mode.ftz = false
        }
        Op::Float(_, Float::F32, mode) if mode.ftz => mode.normal = bits(2, normal),
        Op::FloatUn(FloatUn::Neg | FloatUn::Abs, Float::F32, mode) if all(1) => mode.ftz = false,
        Op::FloatUn(op, Float::F32, mode) if is_root(*op) && all(1) => mode.ftz = false,
        Op::FloatUn(_, Float::F32, mode) if mode.ftz => mode.normal = bits(1, normal),
        Op::Fma(Float::F32, mode) if mode.ftz => mode.normal = bits(3, normal),
        Op::RoundInt { ty: Float::F32, mode } if all(1) => mode.ftz = false,
        Op::Fcmp { ty: Float::F32, ftz, .. } if all(2) => *ftz = false,
        Op::Cvt { from: Num::Float(Float::F32), mode, .. } if all(1) => mode.ftz = false,
        Op::Cvt { from: Num::Float(Float::F16), to: Num::Float(Float::F32), mode } => mode.ftz = false,
        Op::CvtPack { from: Float::F32, mode, .. } if all(2) => mode.ftz = false,
        _ => {}
    }
}

fn bits(n: usize, normal: impl Fn(usize) -> bool) -> u8 {
    (0..n).map(|number| u8::from(normal(number)) << number).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{Program, Source};

    /// The arguments that the last operation with a mode flushes, as bits; `None`: it has no `.ftz`. `%a` is loaded, `%n` is
    /// what an operation with `.ftz` gave.
    fn flushed(body: &str) -> Option<u8> {
        let text = format!(
            ".version 8.6\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p) {{\n.reg .b64 %p;\n.reg .f32 %a, %b, %c, %n;\n\
             .reg .b16 %h;\n.reg .b32 %r;\n.reg .pred %q;\nld.param.u64 %p, [p];\nld.global.f32 %a, [%p];\nld.global.b32 %r, [%p+4];\n\
             ld.global.b16 %h, [%p+8];\nsetp.ne.u32 %q, %r, 0;\nadd.ftz.f32 %n, %a, 0f3F800000;\n{body}\nst.global.f32 [%p], %c;\nret;\n}}\n"
        );
        let program = Program::load(&[Source { name: "k".to_owned(), text }]).unwrap();
        let body = program.kernel("k").unwrap().body.as_ref().unwrap();
        let of = |inst: &Inst| {
            let mode = match inst.op {
                Op::Float(_, _, mode) | Op::FloatUn(_, _, mode) | Op::Fma(_, mode) => mode,
                Op::RoundInt { mode, .. } | Op::Cvt { mode, .. } => mode,
                _ => return None,
            };
            let flushed = (0..inst.args.len()).map(|number| u8::from(mode.flushes(number)) << number).sum();
            Some(mode.ftz.then_some(flushed))
        };
        let mut insts = body.blocks.iter().flat_map(|block| &block.insts);
        insts.rfind(|inst| of(inst).is_some()).and_then(of).unwrap()
    }

    fn of_sum(body: &str) -> Option<u8> {
        flushed(&format!("{body}\nadd.ftz.f32 %c, %b, %n;"))
    }

    #[test]
    fn what_is_loaded_is_flushed_and_what_was_flushed_is_not() {
        assert_eq!(of_sum("mov.f32 %b, %a;"), Some(1));
        assert_eq!(of_sum("mov.f32 %b, %n;"), Some(0));
        assert_eq!(flushed("fma.rn.ftz.f32 %c, %n, %a, %n;"), Some(2));
    }

    #[test]
    fn results_without_ftz_may_be_subnormal() {
        assert_eq!(of_sum("mul.f32 %b, %n, %n;"), Some(1));
        assert_eq!(of_sum("ex2.approx.f32 %b, %n;"), Some(1));
        assert_eq!(of_sum("sqrt.rn.f32 %b, %a;"), Some(0));
        assert_eq!(of_sum("rsqrt.approx.f32 %b, %a;"), Some(0));
        assert_eq!(of_sum("cvt.rni.f32.f32 %b, %a;"), Some(0));
    }

    #[test]
    fn numbers_from_integers_and_halves_are_normal() {
        assert_eq!(of_sum("cvt.rn.f32.s32 %b, %r;"), Some(0));
        assert_eq!(of_sum("cvt.f32.f16 %b, %h;"), Some(0));
        assert_eq!(of_sum("cvt.f32.bf16 %b, %h;"), Some(1));
        assert_eq!(of_sum("mov.b32 %b, %r;"), Some(1));
    }

    #[test]
    fn constants_are_looked_at() {
        assert_eq!(of_sum("mov.f32 %b, 0f3F800000;"), Some(0));
        assert_eq!(of_sum("mov.f32 %b, 0f80000000;"), Some(0));
        assert_eq!(of_sum("mov.f32 %b, 0f00400000;"), Some(1));
    }

    #[test]
    fn what_is_one_of_several_is_normal_if_all_are() {
        assert_eq!(of_sum("selp.f32 %b, %n, %a, %q;"), Some(1));
        assert_eq!(of_sum("selp.f32 %b, %n, 0f3F800000, %q;"), Some(0));
        assert_eq!(of_sum("min.f32 %b, %n, %a;"), Some(1));
        assert_eq!(of_sum("max.f32 %b, %n, 0f3F800000;"), Some(0));
        assert_eq!(of_sum("neg.f32 %b, %a;"), Some(1));
        assert_eq!(of_sum("abs.f32 %b, %n;"), Some(0));
    }

    #[test]
    fn a_loop_carries_what_comes_into_it() {
        let around = |start: &str| {
            format!(
                "mov.f32 %b, {start};\nmov.u32 %r, 0;\nagain:\nadd.u32 %r, %r, 1;\nsetp.lt.u32 %q, %r, 9;\n\
                 fma.rn.ftz.f32 %b, %b, %n, %n;\n@%q bra again;\nmov.f32 %c, %b;"
            )
        };
        assert_eq!(flushed(&around("0f00000000")), Some(0));
        assert_eq!(flushed(&around("%a")), Some(1));
    }

    #[test]
    fn an_operation_that_nothing_is_flushed_in_has_no_ftz() {
        assert_eq!(flushed("max.ftz.f32 %c, %n, %n;"), None);
        assert_eq!(flushed("max.ftz.f32 %c, %n, %a;"), Some(2));
        assert_eq!(flushed("sqrt.rn.ftz.f32 %c, %n;"), None);
        assert_eq!(flushed("cvt.ftz.f32.f16 %c, %h;"), None);
        assert_eq!(flushed("cvt.rzi.ftz.f32.f32 %c, %n;"), None);
        assert_eq!(flushed("cvt.rzi.ftz.f32.f32 %c, %a;"), Some(1));
        // Its result may be subnormal.
        assert_eq!(flushed("mul.ftz.f32 %c, %n, %n;"), Some(0));
    }
}
