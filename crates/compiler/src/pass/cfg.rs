//! Control-flow clean-up: what later passes need the graph to look like.

use super::dominators::{Dominators, reversed, successors};
use super::loops::Loops;
use crate::ir::{Block, BlockId, Cmp, Edge, Function, Inst, Int, Op, Pos, Term, Ty};

/// Removes unreachable blocks, makes branches with equal sides jumps, and joins chains of blocks.
pub fn clean(function: &mut Function) {
    for block in &mut function.blocks {
        if let Term::Branch { then, otherwise, .. } = &block.term
            && then == otherwise
        {
            block.term = Term::Jump(then.clone());
        }
    }
    remove_unreachable(function);
    join_chains(function);
    remove_unreachable(function);
    // The two sides of a branch are two blocks, so each can have a mask.
    for at in 0..function.blocks.len() {
        if matches!(&function.blocks[at].term, Term::Branch { then, otherwise, .. } if then.block == otherwise.block)
        {
            split_edge(function, at, 0);
        }
    }
}

fn remove_unreachable(function: &mut Function) {
    let order = function.reverse_post_order();
    let mut renamed = vec![None; function.blocks.len()];
    for (new, old) in order.iter().enumerate() {
        renamed[old.index()] = Some(BlockId(new as u32));
    }
    let mut old: Vec<Option<Block>> = std::mem::take(&mut function.blocks).into_iter().map(Some).collect();
    for id in order {
        if let Some(mut block) = old[id.index()].take() {
            for edge in block.term.edges_mut() {
                if let Some(new) = renamed[edge.block.index()] {
                    edge.block = new;
                }
            }
            function.blocks.push(block);
        }
    }
}

/// A block whose only successor has no other predecessor takes that successor in.
fn join_chains(function: &mut Function) {
    let mut predecessors: Vec<usize> = function.predecessors().iter().map(Vec::len).collect();
    let mut renamed: Vec<Option<crate::ir::Value>> = vec![None; function.values.len()];
    for at in 0..function.blocks.len() {
        while let Term::Jump(edge) = &function.blocks[at].term {
            let next = edge.block.index();
            if next == at || next == 0 || predecessors[next] != 1 {
                break;
            }
            let args = edge.args.clone();
            let gone = Block { params: vec![], insts: vec![], term: Term::Exit };
            let taken = std::mem::replace(&mut function.blocks[next], gone);
            predecessors[next] = 0;
            for (param, arg) in taken.params.iter().zip(args) {
                renamed[param.index()] = Some(arg);
            }
            function.blocks[at].insts.extend(taken.insts);
            function.blocks[at].term = taken.term;
        }
    }
    let resolve = |value: &mut crate::ir::Value| {
        while let Some(new) = renamed[value.index()] {
            *value = new;
        }
    };
    for block in &mut function.blocks {
        for inst in &mut block.insts {
            inst.args.iter_mut().for_each(resolve);
        }
        super::visit::term_values_mut(&mut block.term, resolve);
    }
}

/// `brx.idx` becomes a chain of comparisons; the last target takes every larger index.
pub fn lower_switches(function: &mut Function) {
    for at in 0..function.blocks.len() {
        let Term::Switch { index, targets } = function.blocks[at].term.clone() else { continue };
        let Some((last, others)) = targets.split_last() else {
            function.blocks[at].term = Term::Exit;
            continue;
        };
        let mut current = at;
        for (number, target) in others.iter().enumerate() {
            let constant = function.new_value(function.ty(index));
            let cond = function.new_value(Ty::Pred);
            let int = Int { bits: function.ty(index).bits() as u8, signed: false };
            let rest = if number + 1 == others.len() {
                last.clone()
            } else {
                Edge { block: function.new_block(), args: vec![] }
            };
            let inst = |op, args, result| Inst { op, args, results: vec![result], pos: Pos::default() };
            let block = &mut function.blocks[current];
            block.insts.push(inst(Op::Const(number as u128), vec![], constant));
            block.insts.push(inst(Op::Icmp(Cmp::Eq, int), vec![index, constant], cond));
            current = rest.block.index();
            block.term = Term::Branch { cond, then: target.clone(), otherwise: rest };
        }
        if others.is_empty() {
            function.blocks[at].term = Term::Jump(last.clone());
        }
    }
}

/// Every barrier becomes the last instruction of its block, behind which the block jumps.
pub fn isolate_barriers(function: &mut Function) {
    let mut at = 0;
    while at < function.blocks.len() {
        let insts = &function.blocks[at].insts;
        if let Some(position) = insts.iter().position(|inst| inst.op.is_barrier()) {
            let rest = function.new_block();
            let block = &mut function.blocks[at];
            let tail = block.insts.split_off(position + 1);
            let term = std::mem::replace(&mut block.term, Term::Jump(Edge { block: rest, args: vec![] }));
            function.blocks[rest.index()] = Block { params: vec![], insts: tail, term };
        }
        at += 1;
    }
}

/// Puts a new block on an edge: block `from`, its `nth` edge. The new block's index.
fn split_edge(function: &mut Function, from: usize, nth: usize) -> usize {
    let middle = function.new_block();
    let mut edges = function.blocks[from].term.edges_mut();
    let old = std::mem::replace(edges[nth], Edge { block: middle, args: vec![] });
    function.blocks[middle.index()].term = Term::Jump(old);
    middle.index()
}

/// Sends all `edges` (block, nth edge) to `target` through one new block with the same parameters.
fn merge_edges(function: &mut Function, edges: &[(usize, usize)], target: usize) -> usize {
    let params = function.blocks[target].params.clone();
    let params: Vec<_> = params.into_iter().map(|param| function.new_value(function.ty(param))).collect();
    let middle = function.new_block();
    function.blocks[middle.index()].params = params.clone();
    function.blocks[middle.index()].term = Term::Jump(Edge { block: BlockId(target as u32), args: params });
    for &(from, nth) in edges {
        function.blocks[from].term.edges_mut()[nth].block = middle;
    }
    middle.index()
}

/// Gives each loop one back edge and exits of its own: a block behind an edge that
/// leaves a loop has no predecessor outside that loop. `None` when the graph is not reducible.
pub fn canonical_loops(function: &mut Function) -> Option<()> {
    let mut done_latches = vec![];
    'again: loop {
        let graph = successors(function);
        let dominators = Dominators::of_graph(&graph, 0);
        let loops = Loops::of_graph(&graph, &dominators)?;
        for each in &loops.all {
            if done_latches.contains(&each.header) {
                continue;
            }
            done_latches.push(each.header);
            let mut back = vec![];
            for &from in &each.blocks {
                for (nth, &to) in graph[from].iter().enumerate() {
                    if to == each.header {
                        back.push((from, nth));
                    }
                }
            }
            if back.len() > 1 {
                merge_edges(function, &back, each.header);
                continue 'again;
            }
        }
        let predecessors = reversed(&graph);
        for (index, each) in loops.all.iter().enumerate() {
            for &from in &each.blocks {
                for (nth, &to) in graph[from].iter().enumerate() {
                    let leaves = !loops.contains(index, to);
                    let shared =
                        |&other: &usize| dominators.is_reachable(other) && !loops.contains(index, other);
                    if leaves && predecessors[to].iter().any(shared) {
                        split_edge(function, from, nth);
                        continue 'again;
                    }
                }
            }
        }
        return Some(());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pass::testing::{function, text};

    #[test]
    fn a_switch_becomes_comparisons() {
        let mut f = function("entry: i = const.b32 5; switch i a b c\n a: exit\n b: exit\n c: exit");
        lower_switches(&mut f);
        clean(&mut f);
        let branches = f.blocks.iter().filter(|block| matches!(block.term, Term::Branch { .. })).count();
        assert_eq!(branches, 2, "{}", text(&f));
    }

    #[test]
    fn a_loop_with_two_back_edges_gets_one() {
        let mut f = function(
            "entry: p = const.pred 1; jump head\n head: branch p a b\n a: branch p head done\n b: branch p head done\n done: exit",
        );
        canonical_loops(&mut f).unwrap();
        let graph = successors(&f);
        let dominators = Dominators::of_graph(&graph, 0);
        let back = graph.iter().enumerate().flat_map(|(from, to)| to.iter().map(move |&to| (from, to)));
        assert_eq!(back.filter(|&(from, to)| dominators.dominates(to, from)).count(), 1, "{}", text(&f));
    }
}
