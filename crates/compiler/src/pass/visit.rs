//! Walking over the values a block names.

use std::collections::HashMap;

use crate::ir::{Block, Function, Term, Value};

/// The values a terminator reads: its own operand and what its edges carry.
pub fn term_values(term: &Term) -> Vec<Value> {
    let mut values = match term {
        Term::Branch { cond, .. } => vec![*cond],
        Term::Switch { index, .. } => vec![*index],
        Term::Return(values) => values.clone(),
        Term::Jump(_) | Term::Exit => vec![],
    };
    values.extend(term.edges().iter().flat_map(|edge| &edge.args));
    values
}

pub fn term_values_mut(term: &mut Term, mut visit: impl FnMut(&mut Value)) {
    match term {
        Term::Branch { cond, .. } => visit(cond),
        Term::Switch { index, .. } => visit(index),
        Term::Return(values) => values.iter_mut().for_each(&mut visit),
        Term::Jump(_) | Term::Exit => {}
    }
    for edge in term.edges_mut() {
        edge.args.iter_mut().for_each(&mut visit);
    }
}

pub fn for_each_use(block: &Block, mut visit: impl FnMut(Value)) {
    for inst in &block.insts {
        inst.args.iter().for_each(|&value| visit(value));
    }
    term_values(&block.term).into_iter().for_each(visit);
}

/// How often a function's code names each of these values.
pub fn count_uses(function: &Function, values: impl IntoIterator<Item = Value>) -> HashMap<Value, usize> {
    let mut uses: HashMap<Value, usize> = values.into_iter().map(|value| (value, 0)).collect();
    if !uses.is_empty() {
        for block in &function.blocks {
            for_each_use(block, |value| {
                if let Some(count) = uses.get_mut(&value) {
                    *count += 1;
                }
            });
        }
    }
    uses
}

/// Where each value is defined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Definition {
    None,
    /// Block, position among its parameters.
    Param(usize, usize),
    /// Block, instruction, position among its results.
    Inst(usize, usize, usize),
}

impl Definition {
    pub fn block(self) -> Option<usize> {
        match self {
            Definition::None => None,
            Definition::Param(block, _) | Definition::Inst(block, ..) => Some(block),
        }
    }
}

pub fn definitions(function: &Function) -> Vec<Definition> {
    let mut definitions = vec![Definition::None; function.values.len()];
    for (at, block) in function.blocks.iter().enumerate() {
        for (nth, param) in block.params.iter().enumerate() {
            definitions[param.index()] = Definition::Param(at, nth);
        }
        for (index, inst) in block.insts.iter().enumerate() {
            for (nth, result) in inst.results.iter().enumerate() {
                definitions[result.index()] = Definition::Inst(at, index, nth);
            }
        }
    }
    definitions
}
