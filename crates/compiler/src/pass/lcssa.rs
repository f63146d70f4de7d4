//! Loop-closed SSA: a value that changes from trip to trip leaves its loop only through a parameter of an exit block.
//!
//! So masked execution has to keep a lane's old value in one place only: where edges meet parameters.

use super::bits::BitSet;
use super::dominators::{Dominators, successors};
use super::loops::Loops;
use super::ssa::{Graph, Places, rebuild};
use super::visit::for_each_use;
use crate::ir::{Function, Value};

/// `invariant` values are the same in every trip and stay as they are. The loops must be canonical.
pub fn run(function: &mut Function, invariant: &BitSet) -> Option<()> {
    let graph = successors(function);
    let dominators = Dominators::of_graph(&graph, 0);
    let loops = Loops::of_graph(&graph, &dominators)?;
    let ssa = Graph::of(function);
    let mut places = Places::of(function);
    for (index, each) in loops.all.iter().enumerate().rev() {
        let inside: Vec<bool> = (0..graph.len()).map(|block| loops.contains(index, block)).collect();
        let mut defined = BitSet::new(function.values.len());
        for &at in &each.blocks {
            let block = &function.blocks[at];
            for value in block.params.iter().chain(block.insts.iter().flat_map(|inst| &inst.results)) {
                if !invariant.contains(value.index()) {
                    defined.insert(value.index());
                }
            }
        }
        let mut escaping = BitSet::new(function.values.len());
        for (at, block) in function.blocks.iter().enumerate() {
            if !inside[at] {
                for_each_use(block, |value| {
                    if defined.contains(value.index()) {
                        escaping.insert(value.index());
                    }
                });
            }
        }
        let mut exits: Vec<usize> = vec![];
        for &from in &each.blocks {
            for &to in &graph[from] {
                if !inside[to] && !exits.contains(&to) {
                    exits.push(to);
                }
            }
        }
        for value in escaping.iter() {
            rebuild(function, &ssa, &mut places, Value(value as u32), &[], &exits);
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pass::testing::{function, text};

    #[test]
    fn a_value_used_behind_its_loop_passes_a_parameter() {
        let mut f = function(
            "entry: n = tid; a = const.b64 0; jump head(n)\n head(i:b32): j = add i n; p = lt j n; branch p head(j) done\n done: store a j; exit",
        );
        run(&mut f, &BitSet::default()).unwrap();
        assert_eq!(f.blocks[2].params.len(), 1, "{}", text(&f));
        assert_eq!(f.blocks[2].insts[0].args[1], f.blocks[2].params[0]);
    }
}
