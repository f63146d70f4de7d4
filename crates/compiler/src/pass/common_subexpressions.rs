//! Equal pure operations on equal values within a block are one, so that equal addresses have one name.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::visit::term_values_mut;
use crate::ir::{Function, Op, Ty, Value};

pub fn run(function: &mut Function) {
    let mut renamed: Vec<Option<Value>> = vec![None; function.values.len()];
    for block in &mut function.blocks {
        // Arguments do not always tell the results' types: a constant has none.
        let mut known: HashMap<(Op, Vec<Value>, Vec<Ty>), Vec<Value>> = HashMap::new();
        block.insts.retain_mut(|inst| {
            for arg in &mut inst.args {
                *arg = renamed[arg.index()].unwrap_or(*arg);
            }
            if !inst.op.is_pure() || inst.results.is_empty() {
                return true;
            }
            let types: Vec<Ty> = inst.results.iter().map(|it| function.values[it.index()]).collect();
            let first = match known.entry((inst.op.clone(), inst.args.clone(), types)) {
                Entry::Occupied(first) => first,
                Entry::Vacant(place) => {
                    place.insert(inst.results.clone());
                    return true;
                }
            };
            for (result, first) in inst.results.iter().zip(first.get()) {
                renamed[result.index()] = Some(*first);
            }
            false
        });
    }
    // Definitions come before uses in dominance order, not in the order of blocks.
    let rename = |value: &mut Value| *value = renamed[value.index()].unwrap_or(*value);
    for block in &mut function.blocks {
        block.insts.iter_mut().for_each(|inst| inst.args.iter_mut().for_each(rename));
        term_values_mut(&mut block.term, rename);
    }
}
