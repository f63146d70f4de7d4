//! Barriers for as many threads as the block has are barriers of the block: `bar.sync 1, 128;` in a block of 128 threads.

use std::collections::HashSet;

use crate::ir::{BarrierKind, Function, Inst, Op, Value};

/// Leaves the number of threads out at such barriers of a kernel whose blocks have so many. Whether there were any: threads that have
/// ended still count at one with a number.
pub fn run(function: &mut Function, threads: u64) -> bool {
    let insts = || function.blocks.iter().flat_map(|block| &block.insts);
    let is_all = |inst: &&Inst| matches!(inst.op, Op::Const(number) if number == threads.into());
    let counts: HashSet<Value> =
        insts().filter(is_all).flat_map(|inst| inst.results.iter().copied()).collect();
    let is_whole = |inst: &Inst| {
        let Op::Barrier { kind, .. } = inst.op else { return false };
        let numbers = inst.args.len() - usize::from(kind.is_reduction());
        numbers == 2 && counts.contains(&inst.args[1])
    };
    // Those that only arrive do not wait for the others, which then are not all of the block.
    let arrives = |inst: &Inst| matches!(inst.op, Op::Barrier { kind: BarrierKind::Arrive, .. });
    if !insts().any(is_whole) || insts().any(arrives) {
        return false;
    }
    for inst in function.blocks.iter_mut().flat_map(|block| &mut block.insts) {
        if is_whole(inst) {
            inst.args.remove(1);
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{Program, Source};

    /// How many arguments each barrier of a kernel has for blocks of 128 threads.
    fn arguments(barriers: &str) -> Vec<usize> {
        let text = format!(
            ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() {{\n.reg .pred %p, %q;\n.reg .b32 %x, %t;\n\
             mov.u32 %t, %tid.x;\nsetp.eq.u32 %p, %t, 3;\n{barriers}\nret;\n}}\n"
        );
        let program = Program::load(&[Source { name: "k".to_owned(), text }]).unwrap();
        let mut body = program.kernel("k").unwrap().body.clone().unwrap();
        run(&mut body, 128);
        let barriers = body.blocks.iter().flat_map(|block| &block.insts).filter(|inst| inst.op.is_barrier());
        barriers.map(|inst| inst.args.len()).collect()
    }

    #[test]
    fn a_number_that_is_the_blocks_own_goes() {
        assert_eq!(arguments("bar.sync 0;\nbar.sync 1, 128;\nbar.sync 1, 96;"), [1, 1, 2]);
        assert_eq!(arguments("mov.b32 %x, 128;\nbar.sync 2, %x;\nbar.sync 2, %t;"), [1, 2]);
        let reductions = "barrier.cta.red.popc.u32 %x, 1, 128, %p;\nbarrier.cta.red.and.pred %q, 1, 64, %p;";
        assert_eq!(arguments(reductions), [2, 3]);
    }

    #[test]
    fn where_some_only_arrive_all_numbers_stay() {
        assert_eq!(arguments("bar.arrive 1, 128;\nbar.sync 1, 128;"), [2, 2]);
    }
}
