//! Repairs SSA form when a value has got further definitions: places block parameters where definitions meet and
//! renames the uses.

use super::dominators::Dominators;
use super::visit::{for_each_use, term_values_mut};
use crate::ir::{Function, Value};

/// The control-flow graph as it stays while values are renamed.
pub struct Graph {
    pub predecessors: Vec<Vec<usize>>,
    pub dominators: Dominators,
    pub frontiers: Vec<Vec<usize>>,
}

impl Graph {
    pub fn of(function: &Function) -> Graph {
        let graph = super::dominators::successors(function);
        let dominators = Dominators::of_graph(&graph, 0);
        let frontiers = dominators.frontiers(&graph);
        Graph { predecessors: super::dominators::reversed(&graph), dominators, frontiers }
    }
}

/// `value`, whose uses are renamed, is defined where it always was and also as `others` (block, new name: a parameter
/// or an instruction's result there). In `merges` a parameter is placed in any case where the value is live.
pub fn rebuild(
    function: &mut Function,
    graph: &Graph,
    value: Value,
    others: &[(usize, Value)],
    merges: &[usize],
) {
    let n = function.blocks.len();
    let ty = function.ty(value);
    let mut defined: Vec<Option<Value>> = vec![None; n];
    for (at, block) in function.blocks.iter().enumerate() {
        if block.params.contains(&value) || block.insts.iter().any(|inst| inst.results.contains(&value)) {
            defined[at] = Some(value);
        }
    }
    for &(block, name) in others {
        defined[block] = Some(name);
    }
    // Blocks at whose start the value is needed.
    let mut live = vec![false; n];
    let mut work: Vec<usize> = vec![];
    for (at, block) in function.blocks.iter().enumerate() {
        let mut uses = false;
        for_each_use(block, |used| uses |= used == value);
        let own =
            block.params.contains(&value) || block.insts.iter().any(|inst| inst.results.contains(&value));
        if uses && !own {
            work.push(at);
        }
    }
    while let Some(at) = work.pop() {
        if std::mem::replace(&mut live[at], true) {
            continue;
        }
        for &from in &graph.predecessors[at] {
            if defined[from].is_none() {
                work.push(from);
            }
        }
    }
    // Parameters where definitions meet.
    let mut placed: Vec<Option<Value>> = vec![None; n];
    let mut work: Vec<usize> = (0..n).filter(|&at| defined[at].is_some()).collect();
    let place = |function: &mut Function, placed: &mut Vec<Option<Value>>, at: usize| {
        let param = function.new_value(ty);
        function.blocks[at].params.push(param);
        placed[at] = Some(param);
    };
    for &at in merges {
        if live[at] && placed[at].is_none() {
            place(function, &mut placed, at);
            work.push(at);
        }
    }
    while let Some(at) = work.pop() {
        for &join in &graph.frontiers[at] {
            if live[join] && placed[join].is_none() {
                place(function, &mut placed, join);
                work.push(join);
            }
        }
    }
    // What reaches the start and the end of a block.
    let at_end = |mut at: usize| loop {
        if let Some(name) = defined[at].or(placed[at]) {
            return name;
        }
        match graph.dominators.immediate(at) {
            Some(parent) => at = parent,
            None => return value,
        }
    };
    let names: Vec<(Value, Value)> = (0..n)
        .map(|at| {
            let start = placed[at].unwrap_or_else(|| graph.dominators.immediate(at).map_or(value, at_end));
            (start, at_end(at))
        })
        .collect();
    for at in 0..n {
        let block = &mut function.blocks[at];
        let (mut current, _) = names[at];
        if let Some(name) = defined[at].filter(|name| block.params.contains(name)) {
            current = name;
        }
        for inst in &mut block.insts {
            for arg in &mut inst.args {
                if *arg == value {
                    *arg = current;
                }
            }
            if let Some(name) = defined[at].filter(|name| inst.results.contains(name)) {
                current = name;
            }
        }
        term_values_mut(&mut block.term, |used| {
            if *used == value {
                *used = current;
            }
        });
    }
    for (block, (_, last)) in function.blocks.iter_mut().zip(names) {
        for edge in block.term.edges_mut() {
            if placed[edge.block.index()].is_some() {
                edge.args.push(last);
            }
        }
    }
}
