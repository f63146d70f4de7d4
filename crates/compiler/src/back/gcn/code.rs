//! The kernel as an LLVM function, and the device functions that call themselves.
//!
//! Blocks are blocks and block parameters are phis; what lanes that part do is LLVM's affair.

use std::cell::Cell;
use std::collections::HashMap;

use super::barrier::SharedMemory;
use super::launch::Kernarg;
use super::packing::{Packing, threads_of};
use super::variables::Variables;
use super::{Target, children, heap, services, wide};
use crate::back::llvm::{Builder, Type, Unsupported, Val, emit_pure, memory};
use crate::ir::{BlockId, Edge, Fault, FuncId, Function, Inst, Op, Space, Term, Value};
use crate::pass::dominators::{Dominators, successors};
use crate::pass::loops::Loops;
use crate::pass::spins;
use crate::program::{Diagnostic, Kernel, Program};

pub type Result<T = ()> = std::result::Result<T, Unsupported>;

/// What all functions of a code object share.
pub struct Unit<'a> {
    pub program: &'a Program,
    pub kernel: &'a Kernel,
    pub target: &'a Target,
    pub shared: SharedMemory,
    pub packing: Packing,
    pub variables: &'a Variables,
    /// Some code reads or writes the services buffer.
    pub uses_services: Cell<bool>,
    /// Some code asks the device runtime.
    pub asks: bool,
    /// Some code needs the heap.
    pub uses_heap: Cell<bool>,
    pub asks_of_kernels: Cell<bool>,
    /// Some code uses the locks in it.
    pub uses_locks: Cell<bool>,
}

pub struct Code<'a> {
    pub b: Builder,
    pub unit: &'a Unit<'a>,
    pub function: &'a Function,
    device_function: Option<FuncId>,
    /// Where each local variable lies in the function's part of scratch.
    locals: Vec<u64>,
    constants: Vec<Option<u128>>,
    /// The operand of each value.
    names: Vec<Option<String>>,
    /// Edges, by block, on which a loop goes round that waits for other threads.
    waiting: Vec<(usize, usize)>,
    /// The block that is being written.
    at: usize,
    /// By block: label of the block that an edge comes from, and the operands it brings.
    edges: Vec<Vec<(String, Vec<Val>)>>,
    /// Registers of matrices that this block has as matrix cores take them, by what they were made of.
    pub moved: HashMap<String, Vec<Vec<Val>>>,
}

/// Writes a function; gives what of it the target does not have.
pub fn write(b: &mut Builder, unit: &Unit<'_>, function: &Function, id: Option<FuncId>) -> Vec<Diagnostic> {
    let mut code = Code {
        b: std::mem::replace(b, Builder::for_amdgcn()),
        unit,
        function,
        device_function: id,
        locals: vec![],
        constants: super::barrier::constants(function),
        names: vec![None; function.values.len()],
        waiting: waiting(function),
        at: 0,
        edges: vec![vec![]; function.blocks.len()],
        moved: HashMap::new(),
    };
    let diagnostics = code.whole();
    *b = code.b;
    diagnostics
}

/// The finished module.
pub fn module_text(b: Builder, unit: &Unit<'_>) -> String {
    let threads = unit.kernel.max_ntid.or(unit.kernel.req_ntid);
    let most = threads.map_or(u32::MAX, threads_of);
    let most = unit.packing.threads(most.clamp(1, unit.packing.most_threads()));
    let mut text = String::from("target triple = \"amdgcn-amd-amdhsa\"\n");
    text += &unit.shared.declaration();
    text += &b.finish();
    let attributes = format!(
        "nounwind \"amdgpu-flat-work-group-size\"=\"1,{most}\" \"uniform-work-group-size\"=\"true\" {ATTRIBUTES}"
    );
    text += &format!("attributes #0 = {{ {attributes} }}\n");
    text += &format!("attributes #1 = {{ nounwind noinline {ATTRIBUTES} }}\n");
    if unit.uses_heap.get() {
        text += &heap::functions();
        if unit.uses_locks.get() {
            text += &wide::function();
        }
    }
    if unit.asks {
        text += &children::functions();
    }
    if unit.uses_heap.get() || unit.asks {
        text += &format!("attributes #2 = {{ nounwind alwaysinline {ATTRIBUTES} }}\n");
    }
    text += "!llvm.module.flags = !{!0}\n!0 = !{i32 1, !\"amdgpu_code_object_version\", i32 400}\n";
    text
}

/// Subnormals are kept (`.ftz` is code), and nothing hidden is read, so LLVM need not provide it.
const ATTRIBUTES: &str = "\"denormal-fp-math\"=\"ieee,ieee\" \"denormal-fp-math-f32\"=\"ieee,ieee\" \
    \"amdgpu-no-implicitarg-ptr\" \"amdgpu-implicitarg-num-bytes\"=\"0\" \"amdgpu-no-dispatch-ptr\" \
    \"amdgpu-no-dispatch-id\" \"amdgpu-no-queue-ptr\" \"amdgpu-no-hostcall-ptr\" \"amdgpu-no-heap-ptr\" \
    \"amdgpu-no-multigrid-sync-arg\" \"amdgpu-no-default-queue\" \"amdgpu-no-completion-action\" \
    \"amdgpu-no-lds-kernel-id\"";

impl Code<'_> {
    fn whole(&mut self) -> Vec<Diagnostic> {
        self.header();
        self.b.start_block("entry");
        self.scratch();
        if self.device_function.is_none() {
            self.end_idle_lanes();
            self.claim_shared();
            self.clear_barriers();
        }
        self.b.br(&block_label(BlockId(0)));
        let mut diagnostics = vec![];
        for id in self.function.reverse_post_order() {
            self.block(id, &mut diagnostics);
        }
        self.b.line("}");
        let phis = self.phis();
        self.b.replace_lines(&phis);
        diagnostics
    }

    /// The kernel's one argument is its kernarg segment. A device function gets that, the kernel's part of scratch, from
    /// which local addresses count, and its arguments.
    fn header(&mut self) {
        let function = self.function;
        let Some(id) = self.device_function else {
            let kernarg = Kernarg::of(self.unit.kernel);
            self.b.line(format_args!(
                "define amdgpu_kernel void @\"{}\"(ptr addrspace(4) byref([{} x i8]) align 16 %kernarg) #0 {{",
                self.unit.kernel.name, kernarg.bytes
            ));
            return;
        };
        let mut params = String::new();
        for param in &function.block(BlockId(0)).params {
            let arg = Val::new(Type::of(function.ty(*param), 1), self.b.fresh());
            params += &format!(", {}", arg.typed());
            self.names[param.index()] = Some(arg.text);
        }
        let results = result_type(&function.results.iter().map(|ty| Type::of(*ty, 1)).collect::<Vec<_>>());
        self.b.line(format_args!(
            "define internal {results} @f{}(ptr addrspace(4) %kernarg, ptr addrspace(5) %window{params}) #1 {{",
            id.0
        ));
    }

    /// Room for the local variables.
    fn scratch(&mut self) {
        let keeps_error = self.unit.asks && self.device_function.is_none();
        let mut bytes = if keeps_error { children::ERROR_BYTES } else { 0 };
        for local in &self.function.locals {
            bytes = bytes.next_multiple_of(local.align.max(1));
            self.locals.push(bytes);
            bytes += local.bytes;
        }
        let insts = || self.function.blocks.iter().flat_map(|block| &block.insts);
        let is_local = |inst: &Inst| match inst.op {
            Op::Load { space, .. }
            | Op::Store { space, .. }
            | Op::Atomic { space, .. }
            | Op::Cvta { space, .. } => space == Space::Local,
            Op::LocalAddr(_) | Op::Call(_) => true,
            _ => false,
        };
        if keeps_error || insts().any(is_local) {
            let name = if self.device_function.is_some() { "%frame" } else { "%window" };
            let bytes = bytes.next_multiple_of(16).max(16);
            self.b.inst(format_args!("{name} = alloca [{bytes} x i8], align 16, addrspace(5)"));
            if self.device_function.is_none() {
                self.keep_locals_out_of_shared();
            }
            if keeps_error {
                self.clear_last_error();
            }
        }
    }

    // ---- values ----

    pub fn get(&self, value: Value) -> Val {
        let ty = Type::of(self.function.ty(value), 1);
        // What has no operand has a diagnostic.
        Val::new(ty, self.names[value.index()].clone().unwrap_or_else(|| "poison".to_owned()))
    }

    pub fn is_named(&self, value: Value) -> bool {
        self.names[value.index()].is_some()
    }

    pub fn name_all(&mut self, values: impl IntoIterator<Item = (Value, Val)>) {
        for (value, val) in values {
            self.names[value.index()] = Some(val.text);
        }
    }

    /// Bits of a value that is a constant.
    pub fn constant(&self, value: Value) -> Option<u128> {
        self.constants[value.index()]
    }

    /// A field of the kernarg segment.
    pub fn kernarg(&mut self, offset: u32, ty: Type) -> Val {
        let at = memory::offset_pointer(&mut self.b, &kernarg(), i64::from(offset));
        let bytes = ty.bits() / 8;
        self.b.assign(ty, format_args!("load {ty}, {}, align {bytes}", at.typed()))
    }

    /// A field of [`super::Launch`].
    pub fn launch(&mut self, field: u32, ty: Type) -> Val {
        self.kernarg(Kernarg::of(self.unit.kernel).launch + field, ty)
    }

    // ---- control flow ----

    fn block(&mut self, id: BlockId, diagnostics: &mut Vec<Diagnostic>) {
        let block = self.function.block(id);
        self.b.start_block(&block_label(id));
        self.at = id.index();
        // The entry block's parameters are a device function's arguments.
        if id != BlockId(0) {
            for param in &block.params {
                self.names[param.index()] = Some(format!("%p{}", param.0));
                self.b.line(phi_marker(*param));
            }
        }
        // Products wait for each other: what they have in common is moved once, and two fit one core.
        let mut waiting: Vec<&Inst> = vec![];
        for inst in &block.insts {
            let is_product = self.core_of(inst).is_some();
            let uses = |product: &&Inst| product.results.iter().any(|result| inst.args.contains(result));
            if !is_product && waiting.iter().any(uses) {
                self.products(&mut waiting, diagnostics);
            }
            if is_product {
                waiting.push(inst);
                continue;
            }
            let written = self.inst(inst);
            diagnostics.extend(written.err().map(|why| self.diagnostic(inst, &why)));
        }
        self.products(&mut waiting, diagnostics);
        match &block.term {
            Term::Jump(edge) => {
                self.leave_by(edge);
                self.b.br(&block_label(edge.block));
            }
            Term::Branch { cond, then, otherwise } => {
                let cond = self.get(*cond);
                let labels = [self.b.label("then"), self.b.label("else")];
                self.b.cond_br(&cond, &labels[0], &labels[1]);
                self.edge_blocks(&labels, &[then, otherwise]);
            }
            Term::Switch { index, targets } => self.switch(*index, targets),
            Term::Return(values) => self.returns(values),
            Term::Exit => self.exit(),
        }
    }

    fn diagnostic(&self, inst: &Inst, why: &Unsupported) -> Diagnostic {
        super::diagnostic(&self.unit.program.lines, inst, self.unit.kernel, self.unit.target, why)
    }

    /// Writes the products that wait.
    fn products(&mut self, waiting: &mut Vec<&Inst>, diagnostics: &mut Vec<Diagnostic>) {
        let Some(first) = waiting.first() else { return };
        let written = self.core_products(waiting);
        diagnostics.extend(written.err().map(|why| self.diagnostic(first, &why)));
        waiting.clear();
    }

    /// A block for each edge, so that every phi has one entry for each.
    fn edge_blocks(&mut self, labels: &[String], edges: &[&Edge]) {
        for (label, edge) in labels.iter().zip(edges) {
            self.b.start_block(label);
            self.leave_by(edge);
            self.b.br(&block_label(edge.block));
        }
    }

    fn leave_by(&mut self, edge: &Edge) {
        // Other waves are to come to what this one waits for.
        if self.waiting.contains(&(self.at, edge.block.index())) {
            self.nap();
        }
        let args = edge.args.iter().map(|arg| self.get(*arg)).collect();
        let from = self.b.current_block().to_owned();
        self.edges[edge.block.index()].push((from, args));
    }

    fn switch(&mut self, index: Value, targets: &[Edge]) {
        let index = self.get(index);
        let labels: Vec<String> = targets.iter().map(|_| self.b.label("case")).collect();
        let Some(last) = labels.last() else {
            self.b.inst("unreachable");
            return;
        };
        let case = |(number, label): (usize, &String)| format!(" {} {number}, label %{label}", index.ty);
        let cases: String = labels.iter().enumerate().map(case).collect();
        self.b.inst(format_args!("switch {}, label %{last} [{cases} ]", index.typed()));
        self.edge_blocks(&labels, &targets.iter().collect::<Vec<_>>());
    }

    fn returns(&mut self, values: &[Value]) {
        if self.device_function.is_none() {
            return self.exit();
        }
        let values: Vec<Val> = values.iter().map(|value| self.get(*value)).collect();
        self.leave(false, &values);
    }

    /// A wave cannot leave a function for some of its lanes only: whoever called it ends them.
    pub fn exit(&mut self) {
        match self.device_function {
            Some(_) => self.leave(true, &[]),
            None => self.b.inst("ret void"),
        }
    }

    /// The end of a device function, and whether it is that of the thread as well.
    fn leave(&mut self, is_end: bool, values: &[Val]) {
        let results: Vec<Type> = self.function.results.iter().map(|ty| Type::of(*ty, 1)).collect();
        let ty = result_type(&results);
        let is_end = Builder::int(Type::int(1, 1), i128::from(is_end));
        let mut all = "poison".to_owned();
        for (place, value) in [&is_end].into_iter().chain(values).enumerate() {
            let inserted = format!("insertvalue {ty} {all}, {}, {place}", value.typed());
            all = self.b.assign(value.ty, inserted).text;
        }
        self.b.inst(format_args!("ret {ty} {all}"));
    }

    /// The phi of every block parameter, by its marker.
    fn phis(&self) -> Vec<(String, String)> {
        let mut phis = vec![];
        for (block, edges) in self.function.blocks.iter().zip(&self.edges).skip(1) {
            for (place, param) in block.params.iter().enumerate() {
                let ty = Type::of(self.function.ty(*param), 1);
                let incoming: Vec<String> =
                    edges.iter().map(|(from, args)| format!("[ {}, %{from} ]", args[place].text)).collect();
                let phi = format!("  %p{} = phi {ty} {}", param.0, incoming.join(", "));
                phis.push((phi_marker(*param), phi));
            }
        }
        phis
    }

    // ---- instructions ----

    fn inst(&mut self, inst: &Inst) -> Result {
        let args: Vec<Val> = inst.args.iter().map(|arg| self.get(*arg)).collect();
        let results: Vec<Type> =
            inst.results.iter().map(|value| Type::of(self.function.ty(*value), 1)).collect();
        let values = match &inst.op {
            Op::Special(special) => vec![self.special(*special, results[0])?],
            Op::GlobalAddr(id) if self.is_reference(*id) => {
                self.only_accessed(inst.results[0])?;
                vec![self.bound_object(*id)]
            }
            Op::GlobalAddr(_) | Op::SharedAddr(_) | Op::LocalAddr(_) | Op::ParamAddr(_) => {
                vec![self.address_of(&inst.op, results[0])?]
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
            Op::Barrier { kind, .. } => self.barrier(*kind, inst, &args),
            Op::ClusterBarrier { wait } => {
                self.cluster_barrier(*wait);
                vec![]
            }
            op if op.is_warp_collective() => self.collective(op, &args)?,
            Op::NanoSleep => {
                // PTX lets the sleep end at any time.
                self.nap();
                vec![]
            }
            Op::Fault(fault) => {
                self.fault(match fault {
                    Fault::InvalidPc => services::Fault::InvalidPc,
                    Fault::Stack => services::Fault::Stack,
                });
                vec![]
            }
            Op::Trap | Op::Breakpoint => {
                self.fault(services::Fault::Trap);
                vec![]
            }
            Op::Syscall(syscall) => self.syscall(*syscall, &args)?,
            Op::Call(id) => self.call(*id, &args, &results)?,
            Op::Texture(access) => self.texture(*access, &args, &results)?,
            op if !op.is_pure() => return Err(Unsupported(String::new())),
            op => {
                let names: Vec<&str> = args.iter().map(|arg| arg.text.as_str()).collect();
                let arg_tys: Vec<_> = inst.args.iter().map(|arg| self.function.ty(*arg)).collect();
                let result_tys: Vec<_> = inst.results.iter().map(|value| self.function.ty(*value)).collect();
                let values = emit_pure(&mut self.b, op, &names, &arg_tys, &result_tys, 1)?;
                values.into_iter().zip(&results).map(|(name, ty)| Val::new(*ty, name)).collect()
            }
        };
        self.name_all(inst.results.iter().copied().zip(values));
        Ok(())
    }

    fn call(&mut self, id: FuncId, args: &[Val], results: &[Type]) -> Result<Vec<Val>> {
        let callee = self.unit.program.functions.get(id.index());
        callee.ok_or_else(|| Unsupported(format!("a call of {id}, which the program lacks")))?;
        let arguments: String = args.iter().map(|arg| format!(", {}", arg.typed())).collect();
        let ty = result_type(results);
        let call =
            format!("call {ty} @f{}({}, ptr addrspace(5) %window{arguments})", id.0, kernarg().typed());
        let flag = Type::int(1, 1);
        let all = self.b.assign(flag, call).text;
        let is_end = self.b.assign(flag, format_args!("extractvalue {ty} {all}, 0"));
        let [ended, returned] = ["ended", "returned"].map(|hint| self.b.label(hint));
        self.b.cond_br(&is_end, &ended, &returned);
        self.b.start_block(&ended);
        self.exit();
        self.b.start_block(&returned);
        let part = |(place, to): (usize, &Type)| {
            self.b.assign(*to, format_args!("extractvalue {ty} {all}, {}", place + 1))
        };
        Ok(results.iter().enumerate().map(part).collect())
    }

    /// Offset of a local variable in its function's part of scratch, and the name of that part.
    pub fn local(&self, index: usize) -> (&'static str, u64) {
        (if self.device_function.is_some() { "%frame" } else { "%window" }, self.locals[index])
    }
}

fn waiting(function: &Function) -> Vec<(usize, usize)> {
    let graph = successors(function);
    let dominators = Dominators::of(function);
    let Some(loops) = Loops::of_graph(&graph, &dominators) else { return vec![] };
    let mut edges = vec![];
    for index in spins::waiting(function, &graph, &dominators, &loops) {
        let header = loops.all[index].header;
        let latches = loops.all[index].blocks.iter().filter(|&&from| graph[from].contains(&header));
        edges.extend(latches.map(|&from| (from, header)));
    }
    edges
}

pub fn kernarg() -> Val {
    Val::new(Type::space(4), "%kernarg")
}

/// Of a device function: whether the thread ends, and its results.
fn result_type(results: &[Type]) -> String {
    let types = results.iter().map(|ty| format!(", {ty}"));
    format!("{{ i1{} }}", types.collect::<String>())
}

fn block_label(id: BlockId) -> String {
    format!("bb{}", id.0)
}

fn phi_marker(param: Value) -> String {
    format!("  ; phi {}", param.0)
}
