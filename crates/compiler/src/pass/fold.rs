//! Values and branches that the block's shape decides: `threadIdx.x < 1024` in a block of 256 is no question.

use super::cfg;
use super::value_ranges::{Threads, ValueRanges};
use super::visit::{Definition, definitions, term_values_mut};
use crate::ir::{Function, Inst, IntBin, Op, Term, Value};

/// Each round can free the next one of a branch or a subtraction; nvcc's remainder loops take three.
const ROUNDS: usize = 16;

pub fn run(function: &mut Function, threads: Threads) {
    for _ in 0..ROUNDS {
        let ranges = ValueRanges::of(function, threads);
        let decided = decide(function, &ranges);
        let simpler = simplify(function, &ranges);
        if decided {
            cfg::clean(function);
        }
        if !decided && !simpler {
            return;
        }
    }
}

/// Makes decided values constants and decided branches jumps; whether a branch was.
fn decide(function: &mut Function, ranges: &ValueRanges) -> bool {
    let mut changed = false;
    for block in &mut function.blocks {
        for inst in block.insts.iter_mut().filter(|inst| inst.op.is_pure() && inst.results.len() == 1) {
            let constant = ranges.constant(inst.results[0]);
            if let Some(bits) = constant.filter(|_| !matches!(inst.op, Op::Const(_) | Op::SharedAddr(_))) {
                inst.op = Op::Const(bits);
                inst.args.clear();
            }
        }
        if let Term::Branch { cond, then, otherwise } = &block.term
            && let Some(holds) = ranges.constant(*cond)
        {
            block.term = Term::Jump(if holds == 1 { then } else { otherwise }.clone());
            changed = true;
        }
    }
    changed
}

/// What a decided operand leaves of an operation: nvcc writes `x % 32` of a signed x as `x - ((x + s) & -32)` with
/// `s = (x >> 31) >>> 27`, which is zero where x is not negative.
fn simplify(function: &mut Function, ranges: &ValueRanges) -> bool {
    let definitions = definitions(function);
    let mut renamed: Vec<Option<Value>> = vec![None; function.values.len()];
    let mut constants = vec![];
    for at in 0..function.blocks.len() {
        for nth in 0..function.blocks[at].insts.len() {
            let inst = &function.blocks[at].insts[nth];
            let (Op::Int(op, int), [a, b], [result]) = (&inst.op, &inst.args[..], &inst.results[..]) else {
                continue;
            };
            let (op, int, a, b, result) = (*op, *int, *a, *b, *result);
            let is_zero = |value| ranges.constant(value) == Some(0);
            let same = match op {
                IntBin::Add | IntBin::Or | IntBin::Xor if is_zero(b) => Some(a),
                IntBin::Add | IntBin::Or | IntBin::Xor if is_zero(a) => Some(b),
                IntBin::Sub | IntBin::Shl | IntBin::Shr if is_zero(b) => Some(a),
                _ => None,
            };
            if let Some(same) = same {
                renamed[result.index()] = Some(same);
                continue;
            }
            // x - (x & c) is x & !c.
            let Definition::Inst(home, index, 0) = definitions[b.index()] else { continue };
            let part = &function.blocks[home].insts[index];
            let is_part =
                op == IntBin::Sub && matches!(part.op, Op::Int(IntBin::And, _)) && part.args.contains(&a);
            let mask = part.args.iter().find(|&&arg| arg != a).and_then(|&arg| ranges.constant(arg));
            let Some(mask) = mask.filter(|_| is_part) else { continue };
            let pos = inst.pos;
            let kept = function.new_value(function.ty(a));
            let bits = u32::from(int.bits);
            let rest = !mask & (u128::MAX >> (128 - bits));
            function.blocks[at].insts[nth] =
                Inst { op: Op::Int(IntBin::And, int), args: vec![a, kept], results: vec![result], pos };
            constants.push((at, Inst { op: Op::Const(rest), args: vec![], results: vec![kept], pos }));
        }
    }
    let mut changed = !constants.is_empty();
    for (at, constant) in constants {
        function.blocks[at].insts.insert(0, constant);
    }
    let resolve = |value: &mut Value| {
        while let Some(new) = renamed.get(value.index()).copied().flatten() {
            *value = new;
        }
    };
    for block in &mut function.blocks {
        for inst in &mut block.insts {
            for arg in &mut inst.args {
                let before = *arg;
                resolve(arg);
                changed |= before != *arg;
            }
        }
        term_values_mut(&mut block.term, |value| {
            let before = *value;
            resolve(value);
            changed |= before != *value;
        });
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pass::testing::function;

    fn blocks_left(source: &str) -> usize {
        let mut f = function(source);
        run(&mut f, Threads { block: [256, 1, 1], open: false, width: 32, assumes: true });
        f.blocks.len()
    }

    #[test]
    fn a_bound_that_no_thread_reaches_is_no_branch() {
        let source = |bound: u32| {
            format!(
                "entry: t = tid; n = const.b32 {bound}; p = lt t n; branch p a b\n a: store t t; exit\n b: exit"
            )
        };
        assert_eq!(blocks_left(&source(256)), 1);
        assert_eq!(blocks_left(&source(255)), 3);
    }

    #[test]
    fn what_one_branch_decides_decides_the_next() {
        let source = "entry: t = tid; n = const.b32 256; z = const.b32 0; p = lt t n; branch p a b\n a: jump c(z)\n b: jump c(t)\n c(v:b32): o = const.b32 1; q = lt v o; branch q d e\n d: store t t; exit\n e: exit";
        assert_eq!(blocks_left(source), 1);
    }

    #[test]
    fn a_loop_that_no_thread_runs_twice_is_none() {
        let loop_of = |step: u32| {
            format!(
                "entry: t = tid; jump head(t)\n head(i:b32): store i i; s = const.b32 {step}; j = add i s; n = const.b32 256; p = lt j n; branch p head(j) done\n done: exit"
            )
        };
        assert_eq!(blocks_left(&loop_of(256)), 1);
        assert_eq!(blocks_left(&loop_of(255)), 3);
    }

    #[test]
    fn the_remainder_of_a_signed_index_is_a_mask() {
        let source = "entry: t = tid; n = const.b32 4294967264; k = and t n; r = sub t k; z = const.b32 0; s = add r z; store s s; exit";
        let mut f = function(source);
        run(&mut f, Threads { block: [256, 1, 1], open: false, width: 32, assumes: true });
        let kept: Vec<&Op> = f.blocks[0].insts.iter().map(|inst| &inst.op).collect();
        assert!(kept.contains(&&Op::Const(31)), "{kept:?}");
        let store = f.blocks[0].insts.iter().find(|inst| matches!(inst.op, Op::Store { .. })).unwrap();
        let index = f.blocks[0].insts.iter().find(|inst| inst.results == store.args[..1]).unwrap();
        assert!(matches!(index.op, Op::Int(IntBin::And, _)), "{index:?}");
    }

    #[test]
    fn a_signed_bound_below_zero_holds_for_no_thread() {
        let source = "entry: t = tid; n = const.b32 4294967295; p = lt t n; branch p a b\n a: store t t; exit\n b: exit";
        assert_eq!(blocks_left(source), 1);
    }
}
