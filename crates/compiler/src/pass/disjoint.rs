//! Parts of addresses that are put together by OR without a bit in common are sums, which the passes that look at distances know: compilers
//! write `base | 12` where the base is a multiple of 16.

use super::bits::BitSet;
use super::value_ranges::{ValueRanges, mask};
use super::visit::{Definition, definitions};
use crate::ir::*;

/// Operations that are followed to see which bits a value may have.
const STEPS: u32 = 8;

pub fn run(function: &mut Function, ranges: &ValueRanges) {
    let definitions = definitions(function);
    let finder = Finder { function, definitions: &definitions, ranges };
    let is_sum = |&(block, at): &(usize, usize)| {
        let args = &finder.function.blocks[block].insts[at].args;
        finder.may_have(args[0], STEPS) & finder.may_have(args[1], STEPS) == 0
    };
    let sums: Vec<(usize, usize)> = finder.ors_of_addresses().into_iter().filter(is_sum).collect();
    for (block, at) in sums {
        let inst = &mut function.blocks[block].insts[at];
        if let Op::Int(op, _) = &mut inst.op {
            *op = IntBin::Add;
        }
    }
}

struct Finder<'a> {
    function: &'a Function,
    definitions: &'a [Definition],
    ranges: &'a ValueRanges,
}

impl Finder<'_> {
    fn inst(&self, value: Value) -> Option<(usize, usize, &Inst)> {
        let Definition::Inst(block, at, 0) = self.definitions[value.index()] else { return None };
        Some((block, at, &self.function.blocks[block].insts[at]))
    }

    /// Where integers are put together that addresses are made of.
    fn ors_of_addresses(&self) -> Vec<(usize, usize)> {
        let is_access =
            |inst: &&Inst| matches!(inst.op, Op::Load { .. } | Op::Store { .. } | Op::Atomic { .. });
        let insts = self.function.blocks.iter().flat_map(|block| &block.insts);
        let mut work: Vec<Value> = insts.filter(is_access).map(|inst| inst.args[0]).collect();
        let incoming = self.function.predecessors();
        let mut seen = BitSet::new(self.function.values.len());
        let mut found = vec![];
        while let Some(value) = work.pop() {
            if !seen.insert(value.index()) {
                continue;
            }
            if let Definition::Param(block, nth) = self.definitions[value.index()] {
                for from in &incoming[block] {
                    let edges = self.function.block(*from).term.edges().into_iter();
                    let edges = edges.filter(|edge| edge.block.index() == block);
                    work.extend(edges.map(|edge| edge.args[nth]));
                }
            }
            let Some((block, at, inst)) = self.inst(value) else { continue };
            match inst.op {
                Op::Int(IntBin::Or, _) => found.push((block, at)),
                Op::Int(IntBin::Add | IntBin::Sub | IntBin::Mul | IntBin::Shl, _) => {}
                Op::MulWide(_) | Op::Zext | Op::Sext | Op::Bitcast | Op::Cvta { .. } | Op::Select => {}
                _ => continue,
            }
            work.extend(&inst.args);
        }
        found
    }

    /// Bits that the value may have for some thread; all, as far as it is not known.
    fn may_have(&self, value: Value, steps: u32) -> u64 {
        let bits = self.function.ty(value).bits();
        let all = mask(bits.min(64)) as u64;
        if let Some(number) = self.ranges.constant(value) {
            return number as u64 & all;
        }
        let high = self.ranges.range(value).map_or(all, |(_, high)| high);
        let in_range = u64::MAX.checked_shr(high.leading_zeros()).unwrap_or(0) & all;
        let (Some((_, _, inst)), true) = (self.inst(value), steps > 0) else { return in_range };
        let of = |nth: usize| self.may_have(inst.args[nth], steps - 1);
        // No bit below the lowest one.
        let from = |zeros: u32| u64::MAX.checked_shl(zeros).unwrap_or(0);
        let made = match &inst.op {
            Op::Int(IntBin::And, _) => of(0) & of(1),
            Op::Int(IntBin::Or | IntBin::Xor, _) => of(0) | of(1),
            Op::Int(IntBin::Add | IntBin::Sub, _) => from((of(0) | of(1)).trailing_zeros()),
            Op::Int(IntBin::Mul, _) | Op::MulWide(_) => from(of(0).trailing_zeros() + of(1).trailing_zeros()),
            Op::Int(IntBin::Shl, _) => match self.ranges.constant(inst.args[1]) {
                Some(count) if count < 64 => of(0) << count,
                _ => from(of(0).trailing_zeros()),
            },
            Op::Int(IntBin::Shr, int) if !int.signed => match self.ranges.constant(inst.args[1]) {
                Some(count) if count < 64 => of(0) >> count,
                _ => all,
            },
            Op::Zext | Op::Trunc | Op::Bitcast => of(0),
            Op::Sext => {
                let narrow = of(0);
                let from_bits = self.function.ty(inst.args[0]).bits();
                let has_sign = narrow >> (from_bits.clamp(1, 64) - 1) & 1 == 1;
                if has_sign { narrow | !(mask(from_bits) as u64) } else { narrow }
            }
            Op::Select => of(1) | of(2),
            _ => all,
        };
        made & in_range
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pass::testing::function;
    use crate::pass::value_ranges::Threads;

    /// Whether the OR of `a` and `b` is a sum afterwards.
    fn is_sum(made: &str) -> bool {
        let source = format!("entry: t = tid; {made}; o = or a b; p = zext o; store p t; exit");
        let mut f = function(&source);
        let ranges =
            ValueRanges::of(&f, Threads { block: [256, 1, 1], open: false, width: 32, assumes: true });
        run(&mut f, &ranges);
        !f.blocks[0].insts.iter().any(|inst| matches!(inst.op, Op::Int(IntBin::Or, _)))
    }

    #[test]
    fn parts_without_a_common_bit_are_added() {
        let sixteen = "s = const.b32 48; c = ctaid; a = mul c s";
        assert!(is_sum(&format!("{sixteen}; b = const.b32 15")), "a multiple of 48 has no bit below 16");
        assert!(!is_sum(&format!("{sixteen}; b = const.b32 16")));
        assert!(is_sum("n = const.b32 256; c = ctaid; a = mul c n; k = const.b32 255; b = and c k"));
        assert!(is_sum("n = const.b32 256; c = ctaid; a = mul c n; b = tid"), "a block has 256 threads");
        assert!(!is_sum("n = const.b32 128; c = ctaid; a = mul c n; b = tid"));
        assert!(is_sum(
            "n = const.b32 4; c = ctaid; d = mul c n; e = const.b32 32; a = sub d e; b = const.b32 3"
        ));
        assert!(!is_sum(
            "n = const.b32 2; c = ctaid; d = mul c n; e = const.b32 32; a = sub d e; b = const.b32 3"
        ));
        assert!(!is_sum("c = ctaid; k = const.b32 3; a = shr c k; b = const.b32 1"));
    }

    #[test]
    fn other_numbers_are_left_alone() {
        let mut f = function(
            "entry: t = tid; s = const.b32 256; c = ctaid; a = mul c s; o = or a t; p = zext t; store p o; exit",
        );
        let before = f.clone();
        let ranges =
            ValueRanges::of(&f, Threads { block: [256, 1, 1], open: false, width: 32, assumes: true });
        run(&mut f, &ranges);
        assert_eq!(f, before);
    }
}
