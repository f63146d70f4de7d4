//! Which values are live at the start of each block. Block parameters are not live-in at their own block.

use super::bits::BitSet;
use super::visit::for_each_use;
use crate::ir::{Block, Function, Value};

pub fn live_in(function: &Function) -> Vec<BitSet> {
    let mut live = vec![BitSet::new(function.values.len()); function.blocks.len()];
    for (at, block) in function.blocks.iter().enumerate() {
        for_each_use(block, |value| {
            live[at].insert(value.index());
        });
        for value in made(block) {
            live[at].remove(value.index());
        }
    }
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
            for value in made(function.block(id)) {
                out.remove(value.index());
            }
            changed |= live[id.index()].union(&out);
        }
    }
    live
}

/// The values that a block makes.
pub fn made(block: &Block) -> impl Iterator<Item = Value> + '_ {
    block.params.iter().chain(block.insts.iter().flat_map(|inst| &inst.results)).copied()
}

/// Values used in a block other than the one that defines them.
pub fn crosses_blocks(function: &Function) -> BitSet {
    let mut home = vec![usize::MAX; function.values.len()];
    for (at, block) in function.blocks.iter().enumerate() {
        for value in made(block) {
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
