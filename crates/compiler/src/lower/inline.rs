//! Puts the bodies of device functions into their callers. What remains a call is recursive.

use std::collections::HashSet;

use super::builder::empty_block;
use crate::ir::{BlockId, Edge, FuncId, Function, Inst, LocalId, Op, Term, Value};

/// A body does not grow beyond this many instructions; inlining can multiply without end.
const MAX_INSTRUCTIONS: usize = 2_000_000;

/// The functions that can call themselves, directly or through others.
pub(crate) fn recursive(functions: &[Function]) -> HashSet<FuncId> {
    let callees: Vec<Vec<usize>> =
        functions.iter().map(|it| callees(it).map(|id| id.index()).collect()).collect();
    let mut recursive = HashSet::new();
    for start in 0..functions.len() {
        let mut seen = vec![false; functions.len()];
        let mut work = callees[start].clone();
        while let Some(at) = work.pop() {
            if at == start {
                recursive.insert(FuncId(start as u32));
                break;
            }
            if !std::mem::replace(&mut seen[at], true) {
                work.extend(&callees[at]);
            }
        }
    }
    recursive
}

/// The functions that `function` calls by name.
pub(crate) fn callees(function: &Function) -> impl Iterator<Item = FuncId> {
    function.blocks.iter().flat_map(|block| &block.insts).filter_map(|inst| match inst.op {
        Op::Call(id) => Some(id),
        _ => None,
    })
}

/// Inlines every call that `accept` says yes to; `Err` when the body becomes too large.
pub(crate) fn inline(
    function: &mut Function,
    functions: &[Function],
    accept: impl Fn(FuncId) -> bool,
) -> Result<(), String> {
    let mut size: usize = function.blocks.iter().map(|block| block.insts.len()).sum();
    let mut changed = false;
    let mut at = 0;
    // New blocks are appended and looked at in their turn, so calls inside inlined bodies are found too.
    while at < function.blocks.len() {
        let call = function.blocks[at].insts.iter().position(|inst| match inst.op {
            Op::Call(id) => accept(id),
            _ => false,
        });
        let Some(call) = call else {
            at += 1;
            continue;
        };
        let tail = function.blocks[at].insts.split_off(call + 1);
        let Some(inst) = function.blocks[at].insts.pop() else { continue };
        let Op::Call(id) = inst.op else { continue };
        let callee = &functions[id.index()];
        size += callee.blocks.iter().map(|block| block.insts.len()).sum::<usize>();
        if size > MAX_INSTRUCTIONS {
            return Err(format!(
                "'{}' grows beyond {MAX_INSTRUCTIONS} instructions when calls are inlined",
                function.name
            ));
        }
        splice(function, BlockId(at as u32), tail, &inst, callee);
        changed = true;
        at += 1;
    }
    if changed {
        super::simplify::run(function);
    }
    Ok(())
}

/// Block `at` ends where the call was; `tail` and the old terminator go to a block behind the callee's body.
fn splice(function: &mut Function, at: BlockId, tail: Vec<Inst>, call: &Inst, callee: &Function) {
    let first_value = function.values.len() as u32;
    function.values.extend(&callee.values);
    let value = |it: Value| Value(it.0 + first_value);
    let first_local = function.locals.len() as u32;
    function.locals.extend(callee.locals.iter().cloned());

    let behind = BlockId(function.blocks.len() as u32);
    let first_block = behind.0 + 1;
    let mut last = empty_block();
    last.params = call.results.clone();
    last.insts = tail;
    last.term = std::mem::replace(
        &mut function.blocks[at.index()].term,
        Term::Jump(Edge { block: BlockId(first_block), args: call.args.clone() }),
    );
    function.blocks.push(last);

    for block in &callee.blocks {
        let mut block = block.clone();
        block.params.iter_mut().for_each(|it| *it = value(*it));
        for inst in &mut block.insts {
            inst.args.iter_mut().for_each(|it| *it = value(*it));
            inst.results.iter_mut().for_each(|it| *it = value(*it));
            if let Op::LocalAddr(LocalId(local)) = &mut inst.op {
                *local += first_local;
            }
        }
        block.term.for_each_value_mut(|it| *it = value(*it));
        for edge in block.term.edges_mut() {
            edge.block.0 += first_block;
        }
        if let Term::Return(values) = &block.term {
            block.term = Term::Jump(Edge { block: behind, args: values.clone() });
        }
        function.blocks.push(block);
    }
}
