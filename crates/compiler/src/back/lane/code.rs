//! The body of `cudaway_step`.

use std::collections::HashSet;

use foldhash::HashMap;

use super::called::Called;
use super::layout::{launch, service, status, thread, worker};
use super::plan::Plan;
use super::{request, special};
use crate::back::cpu::Options;
use crate::back::llvm::{Builder, Type, Unsupported, Val, memory, texture};
use crate::ir::{BlockId, Edge, Fault, FuncId, Function, Inst, Op, Space, Term, Value};
use crate::pass::bits::BitSet;
use crate::pass::effects;
use crate::program::{Kernel, Program};

pub type Result<T = ()> = std::result::Result<T, Unsupported>;

/// Where each local variable lies in the window, or in the function's frame.
pub struct Locals {
    pub offsets: Vec<u64>,
    /// Where they end; a multiple of 16.
    pub bytes: u64,
}

impl Locals {
    /// From `start` on, a multiple of 16.
    pub fn behind(start: u64, function: &Function) -> Locals {
        let mut bytes = start;
        let mut offsets = vec![];
        for local in &function.locals {
            bytes = bytes.next_multiple_of(local.align.max(1));
            offsets.push(bytes);
            bytes += local.bytes;
        }
        Locals { offsets, bytes: bytes.next_multiple_of(16) }
    }
}

/// What all functions of a module share.
#[derive(Clone, Copy)]
pub struct Module<'a> {
    pub program: &'a Program,
    pub kernel: &'a Kernel,
    pub options: &'a Options,
    /// The step asks before the first thing that others see.
    pub is_gated: bool,
    /// Functions that call themselves: their frames are bounded, and have their local variables.
    pub recursive: &'a HashSet<FuncId>,
}

/// The kernel's `cudaway_step`.
pub fn write_step(b: &mut Builder, module: Module<'_>, body: Body<'_>, name: &str) -> Result {
    Code::write(b, module, body, None, |code| code.step(name))
}

/// A device function that was not inlined; it lives on the OS thread's stack.
pub fn write_function(b: &mut Builder, module: Module<'_>, body: Body<'_>, id: FuncId) -> Result {
    Code::write(b, module, body, Some(id), |code| code.device_function(id))
}

/// A function and what was decided about it.
#[derive(Clone, Copy)]
pub struct Body<'a> {
    pub function: &'a Function,
    pub plan: &'a Plan,
    pub locals: &'a Locals,
}

/// Pointers every thread needs, loaded once at entry.
#[derive(Clone)]
pub struct Bases {
    pub params: Val,
    pub shared: Val,
    pub local: Val,
}

pub struct Code<'a> {
    pub b: Builder,
    pub program: &'a Program,
    pub kernel: &'a Kernel,
    pub function: &'a Function,
    pub options: &'a Options,
    pub plan: &'a Plan,
    locals: &'a Locals,
    /// `None` in `cudaway_step`.
    pub device_function: Option<FuncId>,
    pub recursive: &'a HashSet<FuncId>,
    /// The OS thread's stack at entry of the step, if anything is called.
    pub stack_base: Option<Val>,
    /// A recursive function's local variables.
    pub frame: Option<Val>,
    /// Where called functions write their results.
    pub call_results: Option<Val>,
    /// Arguments and results of texture instructions.
    pub texture_words: Option<Val>,
    /// The operand that holds each value: an SSA name or constant, or the pointer of its stack slot.
    names: Vec<Option<String>>,
    pub bases: Option<Bases>,
    /// Label of each resume point, in order of their writing.
    resumes: Vec<(u32, String)>,
    n_sites: u32,
    /// By block: the instruction before which a thread asks whether its block is to go on.
    gates: Vec<Option<usize>>,
    /// Values that anybody uses.
    pub used: BitSet,
    /// Of baseline code: what is called and what is written out.
    pub called: Called,
    pub at_hand: AtHand,
}

/// What has been read or written in the block of LLVM's that is being written, and need not be read again there.
#[derive(Default)]
pub struct AtHand {
    /// Which block that is.
    block: u32,
    values: HashMap<Value, String>,
    /// By space and address, which is a name: the pointer.
    pub pointers: HashMap<(Space, String), Val>,
}

impl<'a> Code<'a> {
    fn write(
        b: &mut Builder,
        module: Module<'a>,
        body: Body<'a>,
        device_function: Option<FuncId>,
        write: impl FnOnce(&mut Code<'a>) -> Result,
    ) -> Result {
        let mut code = Code {
            b: std::mem::take(b),
            program: module.program,
            kernel: module.kernel,
            function: body.function,
            options: module.options,
            plan: body.plan,
            locals: body.locals,
            device_function,
            recursive: module.recursive,
            stack_base: None,
            frame: None,
            call_results: None,
            texture_words: None,
            names: vec![None; body.function.values.len()],
            bases: None,
            resumes: vec![],
            n_sites: 0,
            gates: if module.is_gated { effects::first(body.function) } else { vec![] },
            used: super::check::used(body.function),
            called: Called::default(),
            at_hand: AtHand::default(),
        };
        let result = write(&mut code);
        *b = code.b;
        result
    }

    fn step(&mut self, name: &str) -> Result {
        self.b.line(format_args!(
            "define i32 @{name}(ptr %launch, ptr %worker, ptr noalias writable dereferenceable({}) align 16 %thread) \
             nounwind \"probe-stack\"=\"inline-asm\" {{",
            self.plan.context_bytes
        ));
        self.b.start_block("entry");
        self.entry()?;
        self.b.br("dispatch");
        self.blocks()?;
        self.dispatch();
        self.b.line("}");
        Ok(())
    }

    pub fn blocks(&mut self) -> Result {
        for id in self.function.reverse_post_order() {
            self.block(id)?;
        }
        Ok(())
    }

    /// Slots, the windows, and what is written out where it is used: they dominate all the rest.
    pub fn entry(&mut self) -> Result {
        let function = self.function;
        let n_results = function
            .blocks
            .iter()
            .flat_map(|block| &block.insts)
            .filter_map(|inst| matches!(inst.op, Op::Call(_)).then_some(inst.results.len().max(1)))
            .max();
        if let Some(n_results) = n_results {
            let buffer = self.b.assign(Type::ptr(), format_args!("alloca [{n_results} x i128], align 16"));
            self.stack_base = Some(match self.device_function {
                None => buffer.clone(),
                Some(_) => Val::new(Type::ptr(), "%stack"),
            });
            self.call_results = Some(buffer);
        }
        if function.blocks.iter().flat_map(|block| &block.insts).any(|it| matches!(it.op, Op::Texture(_))) {
            let words = format!("alloca {}, align 16", texture::words_ty());
            self.texture_words = Some(self.b.assign(Type::ptr(), words));
        }
        for (index, ty) in function.values.iter().enumerate() {
            if self.is_in_slot(index) && self.place(index).is_none() {
                let slot = self.b.assign(Type::ptr(), format_args!("alloca {}", Type::of(*ty, 1)));
                self.names[index] = Some(slot.text);
            }
        }
        self.bases = Some(Bases {
            params: self.load_field("%launch", launch::PARAMS, Type::ptr()),
            shared: self.load_field("%worker", worker::SHARED, Type::ptr()),
            local: self.load_field("%thread", thread::LOCAL, Type::ptr()),
        });
        let is_recursive = self.device_function.is_some_and(|id| self.recursive.contains(&id));
        if is_recursive && self.locals.bytes > 0 {
            let frame =
                self.b.assign(Type::ptr(), format_args!("alloca [{} x i8], align 16", self.locals.bytes));
            self.frame = Some(frame);
        }
        for inst in function.blocks.iter().flat_map(|block| &block.insts) {
            if let Some(result) = self.invariant_of(inst) {
                let value = self.nullary(&inst.op, Type::of(function.ty(result), 1))?;
                self.names[result.index()] = Some(value.text);
            }
        }
        Ok(())
    }

    /// What the instruction defines, if that is written out where it is used.
    fn invariant_of(&self, inst: &Inst) -> Option<Value> {
        inst.results.first().copied().filter(|result| self.plan.invariant.contains(result.index()))
    }

    /// What an operation without operands gives.
    fn nullary(&mut self, op: &Op, to: Type) -> Result<Val> {
        let address = |value: u64| Ok(Builder::int(to, i128::from(value)));
        match op {
            Op::Const(bits) => Ok(Builder::bits(to, *bits)),
            Op::Special(special) => Ok(special::read(self, *special, to)),
            Op::GlobalAddr(id) => Ok(self.table_entry(launch::GLOBALS, id.0, to)),
            Op::FuncAddr(id) => Ok(self.table_entry(launch::FUNCTIONS, id.0, to)),
            Op::SharedAddr(id) => {
                let offset = self.kernel.shared.offsets.iter().find(|(shared, _)| shared == id);
                let (_, offset) = offset.ok_or_else(|| {
                    Unsupported(format!("shared variable {id} outside the kernel's layout"))
                })?;
                if !self.options.clustered {
                    return address(*offset);
                }
                let first = self.shared_first();
                let at = self.b.bin_int("add", &first, i128::from(*offset));
                Ok(self.b.resize(&at, to.bits(), false))
            }
            Op::LocalAddr(id) => {
                let offset = self.locals.offsets[id.index()];
                let Some(frame) = self.frame.clone() else { return address(offset) };
                // On the stack; the offset from the window's start reaches it all the same.
                let at = memory::offset_pointer(&mut self.b, &frame, offset as i64);
                Ok(self.convert_address(Space::Local, false, &at, to))
            }
            Op::ParamAddr(offset) => address(u64::from(*offset)),
            _ => Err(Unsupported(format!("{op:?}"))),
        }
    }

    /// Where the block's own shared memory starts in its cluster's window.
    pub fn shared_first(&mut self) -> Val {
        let rank = self.load_field("%worker", worker::CLUSTER_RANK, Type::int(32, 1));
        let rank = self.b.resize(&rank, 64, false);
        self.b.bin_int("shl", &rank, i128::from(crate::ir::CLUSTER_SHIFT))
    }

    pub fn table_entry(&mut self, table: i64, index: u32, to: Type) -> Val {
        let table = self.load_field("%launch", table, Type::ptr());
        let at = memory::offset_pointer(&mut self.b, &table, i64::from(index) * 8);
        let value = self.b.assign(Type::int(64, 1), format_args!("load i64, {}, align 8", at.typed()));
        self.b.resize(&value, to.bits(), false)
    }

    /// Reads a field of one of the structures.
    pub fn load_field(&mut self, structure: &str, offset: i64, ty: Type) -> Val {
        let at = memory::offset_pointer(&mut self.b, &Val::new(Type::ptr(), structure), offset);
        let bytes = ty.bits() / 8;
        self.b.assign(ty, format_args!("load {ty}, {}, align {bytes}", at.typed()))
    }

    /// Writes a field of the thread record.
    pub fn store_field(&mut self, offset: i64, value: &Val) {
        let at = memory::offset_pointer(&mut self.b, &Val::new(Type::ptr(), "%thread"), offset);
        let bytes = value.ty.bits().div_ceil(8).min(8);
        self.b.inst(format_args!("store {}, {}, align {bytes}", value.typed(), at.typed()));
    }

    fn dispatch(&mut self) {
        self.b.start_block("dispatch");
        let resume = self.load_field("%thread", thread::RESUME, Type::int(32, 1));
        let cases: String =
            self.resumes.iter().map(|(number, label)| format!(" i32 {number}, label %{label}")).collect();
        let start = block_label(BlockId(0));
        self.b.inst(format_args!("switch i32 {}, label %{start} [{cases} ]", resume.text));
    }

    // ---- values ----

    /// Whether a value lives in memory.
    fn is_in_slot(&self, value: usize) -> bool {
        self.plan.in_slot.contains(value) && !self.plan.invariant.contains(value)
    }

    /// Where a value lies in the thread's record.
    pub fn place(&self, value: usize) -> Option<u64> {
        self.plan.places.get(value).copied().flatten()
    }

    /// The memory that a value lives in: a slot, or its place in the record, which is written out anew at every use so that it
    /// becomes part of the instruction.
    fn memory_of(&mut self, value: Value) -> Option<Val> {
        if !self.is_in_slot(value.index()) {
            return None;
        }
        if let Some(offset) = self.place(value.index()) {
            let record = Val::new(Type::ptr(), "%thread");
            return Some(memory::offset_pointer(&mut self.b, &record, offset as i64));
        }
        self.names[value.index()].clone().map(|slot| Val::new(Type::ptr(), slot))
    }

    /// What the block that is being written has at hand.
    pub fn at_hand(&mut self) -> &mut AtHand {
        let block = self.b.nth_block();
        if self.at_hand.block != block {
            self.at_hand = AtHand { block, ..AtHand::default() };
        }
        &mut self.at_hand
    }

    /// The operand for a use of `value`.
    pub fn get(&mut self, value: Value) -> Result<Val> {
        let ty = Type::of(self.function.ty(value), 1);
        if let Some(name) = self.at_hand().values.get(&value) {
            return Ok(Val::new(ty, name));
        }
        if let Some(at) = self.memory_of(value) {
            let loaded = self.b.assign(ty, format_args!("load {ty}, {}", at.typed()));
            self.at_hand().values.insert(value, loaded.text.clone());
            return Ok(loaded);
        }
        match self.names[value.index()].clone() {
            Some(name) => Ok(Val::new(ty, name)),
            None => Err(Unsupported(format!("a use of {value} before its definition"))),
        }
    }

    pub fn args(&mut self, inst: &Inst) -> Result<Vec<Val>> {
        inst.args.iter().map(|arg| self.get(*arg)).collect()
    }

    /// Defines `value`.
    pub fn set(&mut self, value: Value, operand: &Val) {
        match self.memory_of(value) {
            Some(at) => {
                self.b.inst(format_args!("store {}, {}", operand.typed(), at.typed()));
                self.at_hand().values.insert(value, operand.text.clone());
            }
            None => self.names[value.index()] = Some(operand.text.clone()),
        }
    }

    // ---- control flow ----

    fn block(&mut self, id: BlockId) -> Result {
        let function = self.function;
        let plan = self.plan;
        let block = function.block(id);
        self.b.start_block(&block_label(id));
        for (index, inst) in block.insts.iter().enumerate() {
            if self.invariant_of(inst).is_some() {
                continue;
            }
            if self.gates.get(id.index()) == Some(&Some(index)) {
                self.gate();
            }
            match &plan.requests[id.index()][index] {
                Some(resume) => self.suspending(inst, *resume)?,
                None => self.inst(inst)?,
            }
        }
        let yields = &plan.yields[id.index()];
        match &block.term {
            Term::Jump(edge) => self.edge(edge, yields[0])?,
            Term::Branch { cond, then, otherwise } => {
                let cond = self.get(*cond)?;
                let labels = [self.b.label("then"), self.b.label("else")];
                self.b.cond_br(&cond, &labels[0], &labels[1]);
                for (nth, edge) in [then, otherwise].into_iter().enumerate() {
                    self.b.start_block(&labels[nth]);
                    self.edge(edge, yields[nth])?;
                }
            }
            Term::Switch { index, targets } => self.switch(*index, targets, yields)?,
            Term::Return(values) if self.device_function.is_some() => self.returns(values)?,
            Term::Return(_) | Term::Exit => self.leave(status::DONE),
        }
        Ok(())
    }

    fn switch(&mut self, index: Value, targets: &[Edge], yields: &[Option<u32>]) -> Result {
        let index = self.get(index)?;
        let labels: Vec<String> = targets.iter().map(|_| self.b.label("case")).collect();
        let Some(last) = labels.last() else {
            self.leave(status::TRAP);
            return Ok(());
        };
        let cases: String = labels
            .iter()
            .enumerate()
            .map(|(number, label)| format!(" {} {number}, label %{label}", index.ty))
            .collect();
        self.b.inst(format_args!("switch {}, label %{last} [{cases} ]", index.typed()));
        for ((label, edge), resume) in labels.iter().zip(targets).zip(yields) {
            self.b.start_block(label);
            self.edge(edge, *resume)?;
        }
        Ok(())
    }

    /// Hands the arguments over at once and goes to the block, by way of a suspension when the thread may be spinning.
    fn edge(&mut self, edge: &Edge, resume: Option<u32>) -> Result {
        let function = self.function;
        let mut values = vec![];
        for arg in &edge.args {
            values.push(self.get(*arg)?);
        }
        for (param, value) in function.block(edge.block).params.iter().zip(&values) {
            self.set(*param, value);
        }
        if let Some(resume) = resume {
            self.suspend(resume, status::YIELDS);
        }
        self.b.br(&block_label(edge.block));
        Ok(())
    }

    pub fn leave(&mut self, status: i32) {
        self.b.inst(format_args!("ret i32 {status}"));
    }

    /// Leaves, and begins a block that nothing reaches for the rest.
    pub fn stop(&mut self, status: i32) {
        self.leave(status);
        let label = self.b.label("unreachable");
        self.b.start_block(&label);
    }

    /// Returns `status`; what follows runs when the thread is resumed, and finds what is live in its places.
    pub fn suspend(&mut self, resume: u32, status: i32) {
        if self.device_function.is_some() {
            // The frames stay where they are: the thread has a stack of its own.
            let service = self.service(service::SUSPEND);
            self.b.inst(format_args!("call void {}(i32 {status})", service.text));
            return;
        }
        self.store_field(thread::RESUME, &Builder::int(Type::int(32, 1), i128::from(resume)));
        self.leave(status);
        let label = self.b.label("resume");
        self.b.start_block(&label);
        self.resumes.push((resume, label));
    }

    /// Goes on where the block may be seen by others; else the host decides, who may not come back.
    fn gate(&mut self) {
        let gate = self.load_field("%worker", worker::GATE, Type::ptr());
        let is_open = self.load_field(&gate.text, 0, Type::int(32, 1));
        let is_closed = self.b.icmp_int("eq", &is_open, 0);
        let [ask, open] = ["ask", "open"].map(|hint| self.b.label(hint));
        self.b.cond_br(&is_closed, &ask, &open);
        self.b.start_block(&ask);
        let commit = self.service(service::COMMIT);
        self.b.inst(format_args!("call void {}(ptr %worker)", commit.text));
        self.b.br(&open);
        self.b.start_block(&open);
    }

    /// A number for this instruction.
    pub fn site(&mut self) -> u32 {
        self.n_sites += 1;
        self.n_sites
    }

    fn suspending(&mut self, inst: &Inst, resume: u32) -> Result {
        if matches!(inst.op, Op::NanoSleep) {
            // PTX lets the sleep end at any time; other threads run meanwhile.
            self.suspend(resume, status::YIELDS);
            return Ok(());
        }
        request::ask(self, inst)?;
        self.suspend(resume, status::WAITS);
        request::answer(self, inst);
        Ok(())
    }

    // ---- instructions ----

    fn inst(&mut self, inst: &Inst) -> Result {
        let args = self.args(inst)?;
        let results: Vec<Type> =
            inst.results.iter().map(|value| Type::of(self.function.ty(*value), 1)).collect();
        let values = match &inst.op {
            op @ (Op::Special(_) | Op::GlobalAddr(_) | Op::FuncAddr(_) | Op::SharedAddr(_)) => {
                vec![self.nullary(op, results[0])?]
            }
            Op::Cvta { space, to_generic } => {
                vec![self.convert_address(*space, *to_generic, &args[0], results[0])]
            }
            Op::IsSpace(space) => vec![self.is_space(*space, &args[0])],
            Op::Load { .. } | Op::Store { .. } | Op::Atomic { .. } => self.access(inst, &args, &results)?,
            Op::Fence { order, scope } => {
                memory::fence(&mut self.b, *order, *scope);
                vec![]
            }
            Op::CopyAsync(copy) => {
                self.copy_async(copy, &args);
                vec![]
            }
            Op::TensorCopy(copy) => vec![self.tensor_copy(*copy, &args)],
            Op::Syscall(syscall) => self.syscall(*syscall, &args)?,
            Op::Texture(access) => self.texture(*access, &args, &results)?,
            Op::Fault(fault) => {
                self.stop(match fault {
                    Fault::InvalidPc => status::INVALID_PC,
                    Fault::Stack => status::NO_MEMORY,
                });
                vec![]
            }
            Op::Trap | Op::Breakpoint => {
                self.stop(status::TRAP);
                vec![]
            }
            Op::Call(id) => self.call(*id, &args, &results)?,
            Op::CallIndirect => return Err(Unsupported("indirect calls".to_owned())),
            _ => self.pure(inst, &args, &results)?,
        };
        for (result, value) in inst.results.iter().zip(&values) {
            self.set(*result, value);
        }
        Ok(())
    }
}

pub fn block_label(id: BlockId) -> String {
    format!("bb{}", id.0)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use crate::back::cpu::emit_baseline;
    use crate::program::{Program, Source};

    #[test]
    fn a_block_reads_what_lives_in_memory_once() {
        let text = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 words) {\n\
             .reg .b32 %t, %x;\n.reg .pred %p;\n.reg .b64 %at;\nld.param.u64 %at, [words];\nmov.u32 %t, %tid.x;\n\
             setp.gt.u32 %p, %t, 5;\n@%p bra END;\nmul.lo.u32 %x, %t, %t;\nst.global.u32 [%at], %x;\n\
             add.u32 %x, %x, %t;\nst.global.u32 [%at+4], %x;\nEND:\nst.global.u32 [%at+8], %t;\nret;\n}\n";
        let program = Program::load(&[Source { name: "k".to_owned(), text: text.to_owned() }]).unwrap();
        let code = emit_baseline(&program, program.kernel("k").unwrap(), false, 256).unwrap().text;
        let slots: Vec<&str> =
            code.lines().filter_map(|line| line.split_once(" = alloca")).map(|it| it.0.trim()).collect();
        assert!(!slots.is_empty(), "{code}");
        let mut seen = HashSet::new();
        let mut n_loads = 0;
        for line in code.lines() {
            if line.ends_with(':') {
                seen.clear();
            } else if let Some((_, slot)) =
                line.split_once(" = load ").and_then(|(_, it)| it.rsplit_once("ptr "))
                && slots.contains(&slot)
            {
                n_loads += 1;
                assert!(seen.insert(slot), "{slot} is read twice:\n{code}");
            }
        }
        assert!(n_loads > 0, "{code}");
        // The address is computed once for both stores of a block.
        assert_eq!(code.matches(" = inttoptr").count(), 2, "{code}");
    }
}
