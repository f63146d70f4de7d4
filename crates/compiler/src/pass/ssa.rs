//! Repairs SSA form when a value has got further definitions: places block parameters where definitions meet and
//! renames the uses.

use super::dominators::Dominators;
use super::visit::{Definition, definitions, term_values, term_values_mut};
use crate::ir::{Function, Value};
use std::collections::HashMap;

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

/// Copies of `blocks` behind all others, in their order, whose values have names of their own, which are the answer. Edges lead where
/// they led.
pub fn copy(function: &mut Function, blocks: &[usize]) -> HashMap<Value, Value> {
    let mut renamed = HashMap::new();
    for &at in blocks {
        let block = &function.blocks[at];
        let results = block.insts.iter().flat_map(|inst| &inst.results);
        for value in block.params.iter().chain(results).copied().collect::<Vec<_>>() {
            renamed.insert(value, function.new_value(function.ty(value)));
        }
    }
    let rename = |value: &mut Value| {
        if let Some(new) = renamed.get(value) {
            *value = *new;
        }
    };
    for &at in blocks {
        let mut block = function.blocks[at].clone();
        block.params.iter_mut().for_each(rename);
        for inst in &mut block.insts {
            inst.args.iter_mut().chain(&mut inst.results).for_each(rename);
        }
        term_values_mut(&mut block.term, rename);
        function.blocks.push(block);
    }
    renamed
}

/// Where the values of a function are defined and used, while parameters are placed and uses renamed: instructions stay where they are.
///
/// A kernel of matrix products has thousands of instructions and hundreds of values to rename, so nobody may walk through it for each.
pub struct Places {
    homes: Vec<Definition>,
    /// By value: block and instruction (`TERM`: the block's end).
    uses: Vec<Vec<(usize, usize)>>,
}

const TERM: usize = usize::MAX;

impl Places {
    pub fn of(function: &Function) -> Places {
        let mut places = Places { homes: definitions(function), uses: vec![vec![]; function.values.len()] };
        for (at, block) in function.blocks.iter().enumerate() {
            for (nth, inst) in block.insts.iter().enumerate() {
                inst.args.iter().for_each(|&value| places.used(value, at, nth));
            }
            term_values(&block.term).into_iter().for_each(|value| places.used(value, at, TERM));
        }
        places
    }

    fn used(&mut self, value: Value, at: usize, nth: usize) {
        let uses = &mut self.uses[value.index()];
        if uses.last() != Some(&(at, nth)) {
            uses.push((at, nth));
        }
    }

    /// A new value: the last parameter of that block.
    fn placed(&mut self, function: &Function, at: usize) {
        self.homes.resize(function.values.len(), Definition::None);
        self.uses.resize(function.values.len(), vec![]);
        let nth = function.blocks[at].params.len() - 1;
        self.homes[function.blocks[at].params[nth].index()] = Definition::Param(at, nth);
    }
}

/// `value`, whose uses are renamed, is defined where it always was and also as `others` (block, new name: a parameter
/// or an instruction's result there). In `merges` a parameter is placed in any case where the value is live.
pub fn rebuild(
    function: &mut Function,
    graph: &Graph,
    places: &mut Places,
    value: Value,
    others: &[(usize, Value)],
    merges: &[usize],
) {
    let n = function.blocks.len();
    let ty = function.ty(value);
    let home = places.homes[value.index()].block();
    let mut defined: Vec<Option<Value>> = vec![None; n];
    if let Some(at) = home {
        defined[at] = Some(value);
    }
    for &(block, name) in others {
        defined[block] = Some(name);
    }
    let uses = std::mem::take(&mut places.uses[value.index()]);
    // Blocks at whose start the value is needed.
    let mut live = vec![false; n];
    let mut work: Vec<usize> = uses.iter().map(|&(at, _)| at).filter(|&at| Some(at) != home).collect();
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
    let mut place = |function: &mut Function, placed: &mut Vec<Option<Value>>, at: usize| {
        let param = function.new_value(ty);
        function.blocks[at].params.push(param);
        placed[at] = Some(param);
        places.placed(function, at);
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
    let at_start =
        |at: usize| placed[at].unwrap_or_else(|| graph.dominators.immediate(at).map_or(value, at_end));
    let mut renamed = vec![];
    for (at, nth) in uses {
        // A block's own definition counts behind it, and from the start where it is a parameter.
        let own = defined[at].filter(|name| match places.homes[name.index()] {
            Definition::Param(block, _) => block == at,
            Definition::Inst(block, by, _) => block == at && by < nth,
            Definition::None => false,
        });
        let current = own.unwrap_or_else(|| at_start(at));
        let rename = |used: &mut Value| {
            if *used == value {
                *used = current;
            }
        };
        let block = &mut function.blocks[at];
        match block.insts.get_mut(nth) {
            Some(inst) => inst.args.iter_mut().for_each(rename),
            None => term_values_mut(&mut block.term, rename),
        }
        renamed.push((current, at, nth));
    }
    for at in (0..n).filter(|&at| placed[at].is_some()) {
        let mut before = None;
        // A block that branches here by both edges stands there twice, side by side.
        for &from in &graph.predecessors[at] {
            if before.replace(from) == Some(from) {
                continue;
            }
            let last = at_end(from);
            for edge in function.blocks[from].term.edges_mut() {
                if edge.block.index() == at {
                    edge.args.push(last);
                }
            }
            renamed.push((last, from, TERM));
        }
    }
    for (name, at, nth) in renamed {
        places.used(name, at, nth);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pass::testing::function;

    #[test]
    fn values_renamed_one_behind_the_other_keep_all_their_places() {
        // `left` defines both values anew, between two uses; both edges of `right` lead to `join`.
        let mut f = function(
            "entry: a = const.b64 0; i = tid; j = tid; p = lt i j; branch p left right\n \
             left: store a i; k = tid; l = tid; store a j; jump join\n \
             right: branch p join join\n \
             join: m = add i j; store a m; exit",
        );
        let named = |f: &Function, at: usize, nth: usize| f.blocks[at].insts[nth].results[0];
        let (i, j) = (named(&f, 0, 1), named(&f, 0, 2));
        let (k, l) = (named(&f, 1, 1), named(&f, 1, 2));
        let graph = Graph::of(&f);
        let mut places = Places::of(&f);
        rebuild(&mut f, &graph, &mut places, i, &[(1, k)], &[]);
        rebuild(&mut f, &graph, &mut places, j, &[(1, l)], &[]);
        // Before its new definition a use in the same block keeps the old name, behind it has the new one.
        assert_eq!(f.blocks[1].insts[0].args[1], i);
        assert_eq!(f.blocks[1].insts[3].args[1], l);
        let params = f.blocks[3].params.clone();
        assert_eq!(f.blocks[3].insts[0].args, params);
        let carried: Vec<_> = f.blocks[1..3]
            .iter()
            .map(|block| block.term.edges().iter().map(|it| it.args.clone()).collect::<Vec<_>>())
            .collect();
        assert_eq!(carried, [vec![vec![k, l]], vec![vec![i, j], vec![i, j]]]);
    }
}
