//! Which functions stay functions: in a kernel that would become very long, those that are called from several places. So its
//! code grows with the text, and not with the number of ways that lead through it.

use std::collections::{HashMap, HashSet};

use super::inline::callees;
use crate::ir::{FuncId, Function, Op, Order};

/// Instructions of a kernel with all that it calls in it: up to here that is put into it. Beyond, the code that has no calls would
/// be too much for LLVM in vectors in any case (`hip-cpu/src/budget.rs`).
const LONG: usize = 30_000;

/// Instructions of a function, with all that it calls in it, from which a call is worth the room.
const LARGE: usize = 500;

/// The functions of `table` that `kernel` is to call, all of which come to an end. None where it calls recursive ones too: those are
/// told how much of the stack they may take.
pub(crate) fn functions(
    kernel: &Function,
    table: &[Function],
    recursive: &HashSet<FuncId>,
) -> HashSet<FuncId> {
    let mut graph = Graph { table, recursive, whole: HashMap::new() };
    if graph.length_of(kernel) <= LONG {
        return HashSet::new();
    }
    let mut n_calls: HashMap<FuncId, usize> = HashMap::new();
    let mut work = vec![kernel];
    while let Some(function) = work.pop() {
        for id in callees(function) {
            if recursive.contains(&id) {
                return HashSet::new();
            }
            let n = n_calls.entry(id).or_default();
            *n += 1;
            if *n == 1 {
                work.extend(table.get(id.index()));
            }
        }
    }
    let is_kept =
        |id: &FuncId| graph.whole.get(id).is_some_and(|whole| whole.is_plain && whole.length >= LARGE);
    n_calls.into_iter().filter(|(id, n)| *n > 1 && is_kept(id)).map(|(id, _)| id).collect()
}

/// A function with all that it calls in it.
#[derive(Clone, Copy)]
struct Whole {
    length: usize,
    /// It computes, and reads and writes memory: threads neither meet nor wait in it, and nobody is asked for anything.
    is_plain: bool,
}

struct Graph<'a> {
    table: &'a [Function],
    recursive: &'a HashSet<FuncId>,
    whole: HashMap<FuncId, Whole>,
}

impl Graph<'_> {
    fn length_of(&mut self, function: &Function) -> usize {
        let own = function.blocks.iter().map(|block| block.insts.len()).sum::<usize>();
        callees(function).fold(own, |length, id| length.saturating_add(self.whole(id).length))
    }

    /// What is not recursive has an end.
    fn whole(&mut self, id: FuncId) -> Whole {
        if let Some(whole) = self.whole.get(&id) {
            return *whole;
        }
        let table = self.table;
        let whole = match table.get(id.index()) {
            Some(function) if !self.recursive.contains(&id) => {
                let length = self.length_of(function);
                let insts = || function.blocks.iter().flat_map(|block| &block.insts);
                let is_plain = insts().all(|inst| is_plain(&inst.op))
                    && callees(function).all(|it| self.whole(it).is_plain);
                Whole { length, is_plain }
            }
            _ => Whole { length: 0, is_plain: false },
        };
        self.whole.insert(id, whole);
        whole
    }
}

/// What needs nothing that is decided from a kernel's own body: the memory of its block, who the thread is, what others do.
fn is_plain(op: &Op) -> bool {
    match op {
        Op::Load { order, .. } | Op::Store { order, .. } => *order == Order::Weak,
        Op::Special(_) | Op::SharedAddr(_) | Op::ParamAddr(_) | Op::FuncAddr(_) => false,
        Op::Call(_) | Op::Fault(_) | Op::Trap => true,
        op => op.is_pure(),
    }
}
