//! Which values are live at the start of each block. Block parameters are not live-in at their own block.

use super::bits::BitSet;
use super::visit::{for_each_use, term_values};
use crate::ir::Function;

pub fn live_in(function: &Function) -> Vec<BitSet> {
    let n = function.blocks.len();
    let mut used = vec![BitSet::new(function.values.len()); n];
    let mut defined = vec![BitSet::new(function.values.len()); n];
    for (at, block) in function.blocks.iter().enumerate() {
        for param in &block.params {
            defined[at].insert(param.index());
        }
        for inst in &block.insts {
            for arg in &inst.args {
                if !defined[at].contains(arg.index()) {
                    used[at].insert(arg.index());
                }
            }
            for result in &inst.results {
                defined[at].insert(result.index());
            }
        }
        for value in term_values(&block.term) {
            if !defined[at].contains(value.index()) {
                used[at].insert(value.index());
            }
        }
    }
    let mut live = used;
    let mut order = function.reverse_post_order();
    order.reverse();
    let mut changed = true;
    while changed {
        changed = false;
        for &id in &order {
            let mut out = BitSet::default();
            for edge in function.block(id).term.edges() {
                out.union(&live[edge.block.index()]);
            }
            out.subtract(&defined[id.index()]);
            changed |= live[id.index()].union(&out);
        }
    }
    live
}

/// Values used in a block other than the one that defines them.
pub fn crosses_blocks(function: &Function) -> BitSet {
    let mut home = vec![usize::MAX; function.values.len()];
    for (at, block) in function.blocks.iter().enumerate() {
        for value in block.params.iter().chain(block.insts.iter().flat_map(|inst| &inst.results)) {
            home[value.index()] = at;
        }
    }
    let mut crossing = BitSet::new(function.values.len());
    for (at, block) in function.blocks.iter().enumerate() {
        for_each_use(block, |value| {
            if home[value.index()] != at {
                crossing.insert(value.index());
            }
        });
    }
    crossing
}
