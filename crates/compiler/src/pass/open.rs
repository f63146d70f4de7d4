//! Which kernels lose nothing by code for flat blocks of any length ([`Options::open`](crate::back::cpu::Options)).

use super::fold;
use super::rounds;
use super::value_ranges::Threads;
use super::visit::term_values;
use crate::ir::{Function, Inst, IntBin, Op, Special, Value};

/// Shorter kernels are compiled for each block they are launched with, in some milliseconds.
const LONG: usize = 200;
/// Of a short block whose length is still not known.
const SHORT: u32 = 64;

/// Whether code for flat blocks of up to `most` threads is as good for each of them as code of its own: whatever follows
/// from the block's length follows from the bounds too, and the length itself only scales indices and makes steps.
pub fn is_as_good(body: &Function, most: u32) -> bool {
    if body.blocks.iter().map(|block| block.insts.len()).sum::<usize>() < LONG || !only_scales(body) {
        return false;
    }
    let folded = |length| {
        let mut body = body.clone();
        fold::run(&mut body, Threads { block: [length, 1, 1], open: true, width: 32, assumes: true });
        body
    };
    // Groups of open code do not go in rounds.
    folded(SHORT) == folded(most) && rounds::of(body).is_none()
}

fn is_conversion(op: &Op) -> bool {
    matches!(op, Op::Zext | Op::Sext | Op::Trunc | Op::Bitcast)
}

/// Whether the block's length goes into products and sums only, never into what decides or divides.
fn only_scales(body: &Function) -> bool {
    let mut is_length = vec![false; body.values.len()];
    // Definitions come before uses in reverse post-order.
    for block in body.reverse_post_order() {
        for inst in &body.block(block).insts {
            let converted = is_conversion(&inst.op) && is_length[inst.args[0].index()];
            if converted || inst.op == Op::Special(Special::Ntid(0)) {
                is_length[inst.results[0].index()] = true;
            }
        }
    }
    let scales =
        |op: &Op| is_conversion(op) || matches!(op, Op::MulWide(_) | Op::Int(IntBin::Add | IntBin::Mul, _));
    let uses_length = |values: &[Value]| values.iter().any(|value| is_length[value.index()]);
    body.blocks.iter().all(|block| {
        let is_plain = |inst: &Inst| scales(&inst.op) || !uses_length(&inst.args);
        block.insts.iter().all(is_plain) && !uses_length(&term_values(&block.term))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{Program, Source};

    fn is_good(with: &str, times: usize) -> bool {
        let work = "mad.lo.u32 %x, %x, %i, %t;\nxor.b32 %x, %x, %i;\n".repeat(times);
        let text = format!(
            ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 words) {{\n\
             .reg .b32 %t, %x, %i, %n;\n.reg .b64 %p, %at;\n.reg .pred %c;\n\
             ld.param.u64 %p, [words];\nmov.u32 %t, %tid.x;\nmov.u32 %i, %ctaid.x;\nmov.u32 %n, %ntid.x;\n\
             mad.lo.u32 %i, %i, %n, %t;\nmov.u32 %x, %i;\n{with}{work}\
             mul.wide.u32 %at, %i, 4;\nadd.u64 %at, %at, %p;\nst.global.u32 [%at], %x;\nret;\n}}\n"
        );
        let program = Program::load(&[Source { name: "k".to_owned(), text }]).unwrap();
        is_as_good(program.kernel("k").unwrap().body.as_ref().unwrap(), 1024)
    }

    #[test]
    fn long_kernels_that_use_their_length_for_indices_are_as_good_open() {
        assert!(is_good("", 200));
        assert!(!is_good("", 20), "a short one is compiled in no time");
        assert!(is_good("setp.lt.u32 %c, %t, 1024;\n@%c add.u32 %x, %x, 1;\n", 200), "all blocks are so");
    }

    #[test]
    fn what_the_length_decides_is_not() {
        for with in [
            "setp.lt.u32 %c, %t, 512;\n@%c add.u32 %x, %x, 1;\n",
            "shr.u32 %x, %n, 1;\n",
            "setp.gt.u32 %c, %n, 64;\n@%c add.u32 %x, %x, 1;\n",
        ] {
            assert!(!is_good(with, 200), "{with}");
        }
    }
}
