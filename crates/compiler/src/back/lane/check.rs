//! Loads, stores and atomics; under the sanitizer each asks the host first and is left out when the answer is no.
//!
//! The question names the instruction by its position in the PTX, so reports need no table beside the code.

use super::code::{Code, Result};
use super::layout::service;
use crate::back::llvm::{Builder, Type, Val, memory};
use crate::ir::{AtomTy, Function, Inst, Op, Space};
use crate::pass::bits::BitSet;
use crate::pass::visit::term_values;

/// What is asked, as docs/architecture.md packs it.
#[derive(Clone, Copy)]
struct Access {
    space: Space,
    kind: u32,
    /// Of one element.
    bytes: u32,
    n_elements: u32,
    /// Elements whose value anybody uses.
    used: u32,
}

const READ: u32 = 0;
const WRITE: u32 = 1;
const UPDATE: u32 = 2;

impl Access {
    fn packed(self) -> u32 {
        let space = match self.space {
            Space::Generic => 0,
            Space::Global => 1,
            Space::Const => 2,
            Space::Shared => 3,
            Space::Local => 4,
            Space::Param => 5,
        };
        self.bytes | self.n_elements << 8 | space << 16 | self.kind << 20 | self.used << 24
    }
}

impl Code<'_> {
    /// A load, store or atomic with its results.
    pub fn access(&mut self, inst: &Inst, args: &[Val], results: &[Type]) -> Result<Vec<Val>> {
        let Some((access, offset)) = self.described(inst) else { return Ok(vec![]) };
        let at = self.pointer(access.space, &args[0], offset);
        if !self.options.sanitize {
            return self.perform(inst, &at, args, results);
        }
        let allowed = self.ask_host(&at, access, inst);
        let [go, done] = ["access", "accessed"].map(|hint| self.b.label(hint));
        let asked = self.b.current_block().to_owned();
        self.b.cond_br(&allowed, &go, &done);
        self.b.start_block(&go);
        let values = self.perform(inst, &at, args, results)?;
        let performed = self.b.current_block().to_owned();
        self.b.br(&done);
        self.b.start_block(&done);
        let merged = values.iter().map(|value| {
            let nothing = Builder::bits(value.ty, 0);
            let either =
                format!("phi {} [ {}, %{performed} ], [ {}, %{asked} ]", value.ty, value.text, nothing.text);
            self.b.assign(value.ty, either)
        });
        Ok(merged.collect())
    }

    fn described(&self, inst: &Inst) -> Option<(Access, i64)> {
        Some(match &inst.op {
            Op::Load { space, mem, offset, .. } => {
                let is_used = |(nth, value): (usize, &crate::ir::Value)| {
                    u32::from(self.used.contains(value.index())) << nth
                };
                let used = inst.results.iter().enumerate().map(is_used).fold(0, |mask, bit| mask | bit);
                let n_elements = inst.results.len() as u32;
                (
                    Access { space: *space, kind: READ, bytes: u32::from(mem.bits / 8), n_elements, used },
                    *offset,
                )
            }
            Op::Store { space, mem, offset, .. } => {
                let n_elements = inst.args.len() as u32 - 1;
                (
                    Access {
                        space: *space,
                        kind: WRITE,
                        bytes: u32::from(mem.bits / 8),
                        n_elements,
                        used: 0,
                    },
                    *offset,
                )
            }
            Op::Atomic { space, ty, offset, .. } => {
                let bits = match ty {
                    AtomTy::Int(int) => u32::from(int.bits),
                    AtomTy::Float(float) => float.ty().bits(),
                    AtomTy::B128 => 128,
                };
                (Access { space: *space, kind: UPDATE, bytes: bits / 8, n_elements: 1, used: 1 }, *offset)
            }
            _ => return None,
        })
    }

    fn perform(&mut self, inst: &Inst, at: &Val, args: &[Val], results: &[Type]) -> Result<Vec<Val>> {
        Ok(match &inst.op {
            Op::Load { mem, order, scope, .. } => {
                memory::load(&mut self.b, at, *mem, (*order, *scope), results)
            }
            Op::Store { mem, order, scope, .. } => {
                memory::store(&mut self.b, at, *mem, (*order, *scope), &args[1..]);
                vec![]
            }
            Op::Atomic { op, ty, order, scope, .. } => {
                let to = results.first().copied().unwrap_or(args[1].ty);
                let old = memory::atomic(&mut self.b, at, *op, *ty, (*order, *scope), &args[1..], to)?;
                results.first().map(|_| old).into_iter().collect()
            }
            _ => vec![],
        })
    }

    /// Whether the access may be performed.
    fn ask_host(&mut self, at: &Val, access: Access, inst: &Inst) -> Val {
        let word = Type::int(32, 1);
        let function = self.service(service::CHECK).text;
        let (what, position) = (access.packed(), self.program.lines.number(inst.pos));
        let call = format!(
            "call i32 {function}(ptr %launch, ptr %worker, ptr %thread, {}, i32 {what}, i32 {position})",
            at.typed()
        );
        let answer = self.b.assign(word, call);
        self.b.icmp_int("ne", &answer, 0)
    }
}

/// Every value that an instruction or a terminator reads.
pub fn used(function: &Function) -> BitSet {
    let mut used = BitSet::new(function.values.len());
    for block in &function.blocks {
        for value in block.insts.iter().flat_map(|inst| &inst.args) {
            used.insert(value.index());
        }
        for value in term_values(&block.term) {
            used.insert(value.index());
        }
    }
    used
}
