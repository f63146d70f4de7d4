//! AMD GPUs: LLVM IR text for one kernel, for ROCm's `libamd_comgr` or LLVM 15 to 21.
//!
//! A warp of CUDA is a wave where waves have 32 lanes, and half of one where they have 64. Branches are the hardware's
//! own: lanes that part meet again where the program's structure says so. One code object has one kernel, so a kernel
//! that cannot be made fails alone; variables at module scope lie in a block that the launcher allocates
//! ([`Variables`]), and what the code must know of a launch stands behind the parameters ([`Launch`]). The text reads
//! no hidden arguments and needs no device library. docs/architecture.md has the seam.

mod access;
mod address;
mod barrier;
pub mod children;
mod code;
mod cores;
mod descriptor;
pub mod heap;
mod launch;
mod matrix;
mod packing;
pub mod services;
mod special;
mod surface;
mod target;
mod texture;
mod variables;
mod warp;
mod wide;

use std::cell::Cell;

use crate::device_runtime;
use crate::ir::{FuncId, Function, Op, Syscall};
use crate::lines::Lines;
use crate::module::Module;
use crate::pass::taken_apart;
use crate::program::{Cause, Diagnostic, Kernel, Program};

use super::llvm::{Builder, Unsupported, nan};

pub use launch::{Kernarg, Launch};
use packing::Wish;
pub use packing::{Blocks, Packing};
pub use target::{Family, Target, UnknownTarget};
pub use variables::Variables;

/// LLVM IR of one kernel and what its launcher must know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code {
    /// LLVM IR text with the one kernel. To be compiled with `-mcode-object-version=4`.
    pub text: String,
    /// Name of the kernel in the code object; its descriptor is `symbol.kd`.
    pub symbol: String,
    pub kernarg: Kernarg,
    /// Bytes of LDS that the code object itself asks for: static shared memory and what the code needs besides.
    /// Dynamic shared memory begins right behind; the launch gives its bytes.
    pub shared_bytes: u32,
    /// A launch without a services buffer loses what the kernel prints, and ends the queue at a fault.
    pub uses_services: bool,
    /// A launch needs a queue: the kernel asks the device runtime.
    pub uses_queue: bool,
    /// The kernel asks what other kernels are like: that stands in the queue.
    pub asks_of_kernels: bool,
    /// A launch needs a heap: the kernel calls `malloc`, or accesses 128 bits at once.
    pub uses_heap: bool,
    /// What a launch has for CUDA's block.
    pub packing: Packing,
    /// Threads that a block can have, in code for [`Blocks::Large`] if not in this.
    pub most_threads: u32,
    /// There is a loop in which lanes of a warp may wait for each other.
    pub lanes_may_wait: bool,
}

/// Makes the module's kernel of this index. `Err` says which instructions cannot be.
pub fn compile(module: &Module, kernel: usize, target: &Target) -> Result<Code, Vec<Diagnostic>> {
    compile_for(module, kernel, target, Blocks::Declared)
}

/// As [`compile`], for blocks of this size.
pub fn compile_for(
    module: &Module,
    kernel: usize,
    target: &Target,
    blocks: Blocks,
) -> Result<Code, Vec<Diagnostic>> {
    let program = module.lower_whole(kernel);
    let Some(kernel) = program.kernels.first() else { return Err(program.diagnostics) };
    emit(&program, kernel, target, blocks)
}

/// Makes a kernel that was lowered.
pub fn emit(
    program: &Program,
    kernel: &Kernel,
    target: &Target,
    blocks: Blocks,
) -> Result<Code, Vec<Diagnostic>> {
    let body = kernel.body.as_ref().map_err(Clone::clone)?;
    let mut functions = called(program, body);
    let mut body = prepared(body);
    let mut wish = Wish::default();
    for function in functions.iter_mut().map(|(_, function)| function).chain([&mut body]) {
        wish.add(function, kernel, target);
    }
    let (body, functions) = (&body, functions);
    let all = || std::iter::once(body).chain(functions.iter().map(|(_, function)| function));
    let shared = barrier::SharedMemory::of(&kernel.shared, all());
    let packing = wish.packing(kernel, blocks);
    let variables = Variables::of(&program.globals);
    let asks = all().any(|function| {
        let insts = function.blocks.iter().flat_map(|block| &block.insts);
        insts.into_iter().any(|inst| inst.op == Op::Syscall(Syscall::DeviceRuntime))
    });
    let unit = code::Unit {
        asks,
        program,
        kernel,
        target,
        shared,
        packing,
        variables: &variables,
        uses_services: Cell::new(false),
        uses_heap: Cell::new(false),
        asks_of_kernels: Cell::new(false),
        uses_locks: Cell::new(false),
    };

    let mut b = Builder::for_amdgcn();
    let mut diagnostics = vec![];
    for (id, function) in &functions {
        diagnostics.extend(code::write(&mut b, &unit, function, Some(*id)));
    }
    diagnostics.extend(code::write(&mut b, &unit, body, None));
    if !diagnostics.is_empty() {
        return Err(diagnostics);
    }
    Ok(Code {
        text: code::module_text(b, &unit),
        symbol: kernel.name.clone(),
        kernarg: Kernarg::of(kernel),
        shared_bytes: unit.shared.bytes(),
        uses_services: unit.uses_services.get(),
        uses_queue: asks,
        asks_of_kernels: unit.asks_of_kernels.get(),
        uses_heap: unit.uses_heap.get(),
        packing,
        most_threads: wish.most_threads(),
        lanes_may_wait: wish.lanes_may_wait,
    })
}

/// A function as the target has its instructions.
fn prepared(function: &Function) -> Function {
    nan::canonical(&taken_apart::run(function, |_| true)).into_owned()
}

/// The device functions reached by calls that are still there: those that call themselves.
fn called(program: &Program, body: &Function) -> Vec<(FuncId, Function)> {
    let mut found: Vec<(FuncId, Function)> = vec![];
    let mut work = vec![body];
    while let Some(function) = work.pop() {
        for inst in function.blocks.iter().flat_map(|block| &block.insts) {
            if let Op::Call(id) = inst.op
                && !found.iter().any(|(known, _)| *known == id)
                && let Some(callee) = program.functions.get(id.index())
            {
                found.push((id, prepared(callee)));
                work.push(callee);
            }
        }
    }
    found
}

/// What is said of an instruction that the target does not have, and why if not because nothing like it is there.
fn diagnostic(
    lines: &Lines,
    inst: &crate::ir::Inst,
    kernel: &Kernel,
    target: &Target,
    why: &Unsupported,
) -> Diagnostic {
    let source = inst.pos.source as usize;
    let text =
        lines.sources().get(source).and_then(|it| it.text.get(inst.pos.offset as usize..)).unwrap_or("");
    // The instruction as it stands there, without its guard and operands.
    let words = text.split(|c: char| c.is_whitespace() || c == ';');
    let opcode = words.take(2).find(|word| !word.starts_with('@')).unwrap_or("");
    let position = lines
        .sources()
        .get(source)
        .map(|_| lines.position(source, ptx::Span::new(inst.pos.offset, inst.pos.offset)));
    let reason = if why.0.is_empty() { String::new() } else { format!(": {}", why.0) };
    let asks_the_host = inst.op == Op::Syscall(Syscall::DeviceRuntime);
    let cause =
        if asks_the_host { Cause::Undefined(device_runtime::SYSCALL.to_owned()) } else { Cause::Code };
    let message = format!("instruction '{opcode}' is not supported on {}{reason}", target.processor());
    Diagnostic {
        source: lines.sources().get(source).map(|it| it.name.clone()).unwrap_or_default(),
        line: position.map_or(0, |it| it.line),
        column: position.map_or(0, |it| it.column),
        function: Some(kernel.name.clone()),
        message,
        cause,
    }
}
