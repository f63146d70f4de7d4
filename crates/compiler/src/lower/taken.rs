//! The functions whose address a pointer can hold: named, other than to be called, in a variable or in code that some
//! kernel reaches. All kernels of a module count, since one may write a pointer that another calls through.

use std::collections::{BTreeSet, HashSet};

use ptx::ast::{Block, Instruction, OperandKind, Statement};

use super::function::operand_names;
use super::link::{Defined, Symbol};
use crate::ir::FuncId;
use crate::module::Module;

/// In order of their numbers. Reads every body that is reached.
pub(crate) fn functions(module: &Module) -> Vec<FuncId> {
    let mut taken: BTreeSet<FuncId> = module.linked.pointed.iter().copied().collect();
    let mut seen: HashSet<FuncId> = HashSet::new();
    let mut work: Vec<FuncId> = module.linked.pointed.clone();
    let read = |defined: &Defined, taken: &mut BTreeSet<FuncId>, work: &mut Vec<FuncId>| {
        let text = &module.lines.sources()[defined.unit].text;
        let parsed = ptx::parse_at(text, defined.span);
        for body in parsed.module.functions().filter_map(|it| it.body.as_ref()) {
            let mut mentions = Mentions { module, unit: defined.unit, taken, called: work };
            mentions.block(body);
        }
    };
    for entry in &module.linked.entries {
        read(entry, &mut taken, &mut work);
    }
    loop {
        work.extend(taken.iter().filter(|id| !seen.contains(id)));
        let Some(id) = work.pop() else { break };
        if seen.insert(id) {
            read(&module.linked.functions[id.index()].defined, &mut taken, &mut work);
        }
    }
    taken.into_iter().collect()
}

/// Collects the functions that a body names.
struct Mentions<'m> {
    module: &'m Module,
    unit: usize,
    taken: &'m mut BTreeSet<FuncId>,
    called: &'m mut Vec<FuncId>,
}

impl Mentions<'_> {
    fn block(&mut self, block: &Block<'_>) {
        for statement in &block.statements {
            match statement {
                Statement::Block(block) => self.block(block),
                Statement::Instruction(instruction) => self.instruction(instruction),
                _ => {}
            }
        }
    }

    fn instruction(&mut self, instruction: &Instruction<'_>) {
        let is_list = |kind: &OperandKind<'_>| matches!(kind, OperandKind::List(_));
        // `call (results), f, (arguments)`
        let target = (instruction.opcode.value == "call")
            .then(|| instruction.operands.iter().position(|it| !is_list(&it.kind)))
            .flatten();
        for (index, operand) in instruction.operands.iter().enumerate() {
            operand_names(operand, &mut |name| {
                let Some(Symbol::Function(id)) = self.module.linked.symbol(self.unit, name) else { return };
                if target == Some(index) {
                    self.called.push(id);
                } else {
                    self.taken.insert(id);
                }
            });
        }
    }
}
