//! Sums that stay near a constant: `expf` as nvcc writes it takes the whole part of its argument by `fma.rm` of a number from `.sat`, a
//! factor and 12582913, and then the constant away again. CPUs without a rounding in the instruction compute the error of such a sum
//! with two operations; without knowing where it lies they need some twenty, in f64.

use crate::ir::{Float, Function, Inst, Num, Op, Round, Value};

/// Marks each fused multiply-add in f32, with a rounding other than to nearest, whose sum is known to be near its constant.
pub(super) fn run(function: &mut Function) {
    let insts = || function.blocks.iter().flat_map(|block| &block.insts);
    if !insts().any(is_directed) {
        return;
    }
    let mut known = vec![Known::Nothing; function.values.len()];
    for inst in insts() {
        if let &[result] = inst.results.as_slice() {
            known[result.index()] = Known::of(inst);
        }
    }
    for inst in function.blocks.iter_mut().flat_map(|block| &mut block.insts).filter(|it| is_directed(it)) {
        let of = |value: Value| known[value.index()];
        let is_near = match (of(inst.args[0]), of(inst.args[1]), of(inst.args[2])) {
            (Known::Share, Known::Number(factor), Known::Number(addend))
            | (Known::Number(factor), Known::Share, Known::Number(addend)) => stays_near(factor, addend),
            _ => false,
        };
        if let Op::Fma(_, mode) = &mut inst.op {
            mode.near = is_near;
        }
    }
}

fn is_directed(inst: &Inst) -> bool {
    matches!(inst.op, Op::Fma(Float::F32, mode) if matches!(mode.round, Round::Down | Round::Up | Round::Zero))
}

#[derive(Clone, Copy)]
enum Known {
    Nothing,
    Number(f32),
    /// From 0 to 1, and no NaN.
    Share,
}

impl Known {
    fn of(inst: &Inst) -> Known {
        match inst.op {
            Op::Const(bits) => Known::Number(f32::from_bits(bits as u32)),
            Op::Float(_, Float::F32, mode) | Op::Fma(Float::F32, mode) if mode.sat => Known::Share,
            Op::Cvt { to: Num::Float(Float::F32), mode, .. } if mode.sat => Known::Share,
            _ => Known::Nothing,
        }
    }
}

/// Whether `addend` and a share of `factor` are at least half of `addend` together, and at most twice of it; and no share of the factor
/// that is not zero is too small for an f32, nor anything too large.
fn stays_near(factor: f32, addend: f32) -> bool {
    (1.0..=addend.abs() / 2.0).contains(&factor.abs()) && addend.abs() < 1e30
}

#[cfg(test)]
mod tests {
    use super::stays_near;
    use crate::ir::Op;
    use crate::program::{Program, Source};

    fn is_near(multiply: &str) -> bool {
        let text = format!(
            ".version 8.6\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p) {{\n.reg .b64 %p;\n.reg .f32 %a, %s, %c;\n\
             ld.param.u64 %p, [p];\nld.global.f32 %a, [%p];\ncvt.sat.f32.f32 %s, %a;\n{multiply}\nst.global.f32 [%p], %c;\nret;\n}}\n"
        );
        let program = Program::load(&[Source { name: "k".to_owned(), text }]).unwrap();
        let body = program.kernel("k").unwrap().body.as_ref().unwrap();
        let insts = body.blocks.iter().flat_map(|block| &block.insts);
        let mut modes =
            insts.filter_map(|inst| if let Op::Fma(_, mode) = inst.op { Some(mode) } else { None });
        modes.next_back().expect("a multiply-add").near
    }

    #[test]
    fn a_share_of_a_number_far_below_the_constant_leaves_the_sum_near_it() {
        assert!(is_near("fma.rm.f32 %c, %s, 0f437C0000, 0f4B400001;"));
        assert!(is_near("fma.rp.ftz.f32 %c, 0fC37C0000, %s, 0f4B400001;"));
        assert!(is_near("fma.rn.sat.f32 %s, %a, %a, %a;\nfma.rz.f32 %c, %s, 0f437C0000, 0fCB400001;"));
    }

    #[test]
    fn any_number_or_any_addend_may_leave_it_anywhere() {
        assert!(!is_near("fma.rm.f32 %c, %a, 0f437C0000, 0f4B400001;"));
        assert!(!is_near("fma.rm.f32 %c, %s, 0f437C0000, %a;"));
        assert!(!is_near("fma.rm.f32 %c, %s, %a, 0f4B400001;"));
        assert!(!is_near("fma.rn.f32 %c, %s, 0f437C0000, 0f4B400001;"));
    }

    #[test]
    fn the_factor_is_at_most_half_of_the_constant_and_at_least_one() {
        assert!(stays_near(-1.0, 2.0) && stays_near(1.0, -2.0));
        assert!(!stays_near(1.1, 2.0) && !stays_near(0.9, 4.0) && !stays_near(1.0, 1e31));
        assert!(
            !stays_near(f32::NAN, 2.0)
                && !stays_near(1.0, f32::NAN)
                && !stays_near(f32::INFINITY, f32::INFINITY)
        );
    }
}
