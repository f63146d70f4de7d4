//! Setting `lane`: one thread at a time, from one meeting point to the next. The reference for every other setting.
//!
//! `cudaway_step` is a state machine: the record's resume point picks the place to go on at. [`plan`] decides what is
//! saved where, `code` writes the function, the other files what they are named after.

mod address;
mod call;
mod called;
mod check;
mod code;
pub(crate) mod layout;
mod places;
mod plan;
mod request;
mod special;

use super::cpu::{self, ANY_BLOCK, Compiled, ENTRY_LANE, Options, Setting};
use super::llvm::{Builder, Unsupported, nan};
use crate::ir::{FuncId, Function, Op};
use crate::lower::inline;
use crate::program::{Cause, Diagnostic, Kernel, Program};
use code::{Body, Locals, Module};
use plan::Kept;

pub fn emit(
    program: &Program,
    kernel: &Kernel,
    body: &Function,
    options: &Options,
) -> Result<Compiled, Vec<Diagnostic>> {
    write(program, kernel, body, options).map_err(|reason| {
        vec![Diagnostic {
            source: String::new(),
            line: 0,
            column: 0,
            function: Some(kernel.name.clone()),
            message: reason.to_string(),
            cause: Cause::Code,
        }]
    })
}

fn write(
    program: &Program,
    kernel: &Kernel,
    body: &Function,
    options: &Options,
) -> Result<Compiled, Unsupported> {
    let recursive = &inline::recursive(&program.functions);
    let called = called(program, body);
    let module = Module { program, kernel, options, is_gated: false, recursive };
    let mut b = Builder::numbered(options.vector_bits);
    let own = plan::plan(body, Kept::InRecord, options);
    let (mut stackful, mut context_bytes) = (false, own.context_bytes);
    let of_kernel = Locals::behind(0, body);
    let mut local_bytes = of_kernel.bytes;
    for &id in &called {
        let function = program.functions.get(id.index());
        let function =
            function.ok_or_else(|| Unsupported(format!("a call of {id}, which the program lacks")))?;
        let function = &cpu::taken_apart(function, options);
        let function = &nan::canonical(function);
        // What it brings to an exchange lies in the same record, behind what the kernel keeps there.
        let plan = &plan::plan(function, Kept::InFrame { behind: own.context_bytes }, options);
        // What calls nothing that calls it has its places in the window once, behind those of all others.
        let locals = &Locals::behind(if recursive.contains(&id) { 0 } else { local_bytes }, function);
        if !recursive.contains(&id) {
            local_bytes = locals.bytes;
        }
        stackful |= plan.n_suspensions > 0;
        context_bytes = context_bytes.max(plan.context_bytes);
        code::write_function(&mut b, module, Body { function, plan, locals }, id)?;
    }
    // A thread with a stack of its own, and a cluster, go on in any case.
    let is_gated =
        options.block == ANY_BLOCK && !options.clustered && !called.iter().any(|id| recursive.contains(id));
    let module = Module { is_gated, ..module };
    code::write_step(&mut b, module, Body { function: body, plan: &own, locals: &of_kernel }, ENTRY_LANE)?;
    Ok(Compiled {
        text: b.finish(),
        setting: Setting::Lane,
        width: 1,
        context_bytes,
        local_bytes,
        stackful,
        is_gated,
        why_not_simd: None,
        why_not_warp: None,
        rival: None,
        handed_over: 0,
    })
}

/// The device functions reached by calls that are still there.
fn called(program: &Program, body: &Function) -> Vec<FuncId> {
    let mut found: Vec<FuncId> = vec![];
    let mut work = vec![body];
    while let Some(function) = work.pop() {
        for inst in function.blocks.iter().flat_map(|block| &block.insts) {
            if let Op::Call(id) = inst.op
                && !found.contains(&id)
            {
                found.push(id);
                work.extend(program.functions.get(id.index()));
            }
        }
    }
    found
}
